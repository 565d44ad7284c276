"""torch.fx graphs of about N operators, as torch.export leaves them: ATen, weights as get_attr,
types and sizes in `meta`. Tensors are small, so that running a net costs little.

    chain        residual blocks (linear, relu, linear, add) in a row; every 40th operator is for
                 the host
    wide         16 such chains side by side, hosts at different heights, summed in the end
    random       each operator reads one to three of the last 30 values; a tenth for the host
    transformer  attention and MLP, one operator for the host in each layer; the embedding is also
                 the head, so one weight is read first and last

The host operator is aten.lgamma: no accelerator has it. `whole=True` leaves hosts out; weights are
of uneven size then, for budgets. Equal arguments give equal nets.
"""
import math
import operator
import random

import torch
from torch.fx.passes.shape_prop import _extract_tensor_metadata

aten = torch.ops.aten
HOST = aten.lgamma.default
ROWS, WIDTH, HEADS = 4, 16, 4


class Maker:
    def __init__(self, seed, whole):
        self.random = random.Random(seed)
        self.seeds = torch.Generator().manual_seed(seed)
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.operators = self.weights = 0
        self.whole = whole

    def _typed(self, node, shape):
        value = torch.empty(shape, device="meta")
        node.meta.update(val=value, tensor_meta=_extract_tensor_metadata(value), type=torch.Tensor)
        return node

    def input(self):
        return self._typed(self.graph.placeholder("x"), (ROWS, WIDTH))

    def weight(self, *shape):
        name = f"w{self.weights}"
        self.weights += 1
        value = torch.randn(shape, generator=self.seeds) / math.sqrt(shape[-1])
        self.root.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
        return self._typed(self.graph.get_attr(name), shape)

    def call(self, target, *args, shape=(ROWS, WIDTH)):
        node = self.graph.call_function(target, args)
        self.operators += 1
        return node if shape is None else self._typed(node, shape)

    def inner(self):
        """Width of a block's inside: 0.5 to 32 KiB a matrix where budgets matter."""
        return round(8 * 64 ** self.random.random()) if self.whole else WIDTH

    def linear(self, x, taken=WIDTH, given=WIDTH):
        return self.call(aten.linear.default, x, self.weight(given, taken), self.weight(given),
                         shape=(ROWS, given))

    def block(self, x):
        width = self.inner()
        y = self.call(aten.relu.default, self.linear(x, WIDTH, width), shape=(ROWS, width))
        return self.call(aten.add.Tensor, x, self.linear(y, width, WIDTH))

    def host(self, x):
        return x if self.whole else self.call(HOST, x)

    def run(self, x, operators, first=0):
        """Blocks in a row; a host operator every 40, the first after 40 - first."""
        end, last = self.operators + operators, self.operators - first
        while self.operators < end:
            x = self.block(x)
            if self.operators - last >= 39:
                x, last = self.host(x), self.operators
        return x

    def end(self, results):
        self.graph.output(tuple(results) if len(results) > 1 else results[0])
        gm = torch.fx.GraphModule(self.root, self.graph)
        gm.graph.lint()
        return gm


def chain(make, size):
    return [make.run(make.input(), size)]


def wide(make, size, branches=16):
    x = make.input()
    ends = [make.run(x, size // branches, 40 * b // branches) for b in range(branches)]
    while len(ends) > 1:
        pairs = zip(ends[::2], ends[1::2])
        ends = [make.call(aten.add.Tensor, a, b) for a, b in pairs] + ends[len(ends) & ~1:]
    return ends


def random_graph(make, size, window=30):
    values = [make.input()]
    while make.operators < size:
        reads = [make.random.choice(values[-window:]) for _ in range(make.random.randint(1, 3))]
        values.append(_random_operator(make, reads))
    return [v for v in values[1:] if not v.users]


def _random_operator(make, reads):
    pick = make.random.random()
    if not make.whole and make.random.random() < 0.1:
        return make.host(reads[0])
    if len(reads) == 3:
        return make.call(aten.where.self, make.call(aten.gt.Scalar, reads[0], 0.0), *reads[1:])
    if len(reads) == 2:
        return make.call(aten.add.Tensor if pick < 0.5 else aten.mul.Tensor, *reads)
    if pick < 0.5:
        width = make.inner()
        return make.linear(make.linear(reads[0], WIDTH, width), width, WIDTH)
    return make.call(aten.relu.default if pick < 0.75 else aten.tanh.default, reads[0])


def transformer(make, size):
    words = 32
    x, table = make.input(), make.weight(words, WIDTH)
    head = make.call(aten.permute.default, table, [1, 0], shape=(WIDTH, words))
    x = make.call(aten.mm.default, make.call(aten.mm.default, x, head, shape=(ROWS, words)), table)
    while make.operators < size:
        x = make.call(aten.add.Tensor, x, _attention(make, _norm(make, x)))
        y = _norm(make, x)
        width = 4 * make.inner()
        y = make.call(aten.gelu.default, make.linear(y, WIDTH, width), shape=(ROWS, width))
        x = make.call(aten.add.Tensor, x, make.host(make.linear(y, width, WIDTH)))
    return [make.call(aten.mm.default, x, head, shape=(ROWS, words))]


def _norm(make, x):
    y = make.call(aten.native_layer_norm.default, x, [WIDTH], make.weight(WIDTH),
                  make.weight(WIDTH), 1e-5, shape=None)
    return make.call(operator.getitem, y, 0)


def _attention(make, x):
    deep = WIDTH // HEADS

    def split(y, order, shape):
        y = make.call(aten.view.default, y, [ROWS, HEADS, deep], shape=(ROWS, HEADS, deep))
        return make.call(aten.permute.default, y, order, shape=shape)

    query = split(make.linear(x), [1, 0, 2], (HEADS, ROWS, deep))
    key = split(make.linear(x), [1, 2, 0], (HEADS, deep, ROWS))
    value = split(make.linear(x), [1, 0, 2], (HEADS, ROWS, deep))
    scores = make.call(aten.bmm.default, query, key, shape=(HEADS, ROWS, ROWS))
    scores = make.call(aten.mul.Tensor, scores, deep ** -0.5, shape=(HEADS, ROWS, ROWS))
    scores = make.call(aten._softmax.default, scores, -1, False, shape=(HEADS, ROWS, ROWS))
    y = make.call(aten.bmm.default, scores, value, shape=(HEADS, ROWS, deep))
    y = make.call(aten.permute.default, y, [1, 0, 2], shape=(ROWS, HEADS, deep))
    return make.linear(make.call(aten.reshape.default, y, [ROWS, WIDTH]))


NETS = {"chain": chain, "wide": wide, "random": random_graph, "transformer": transformer}


def build(name, size, whole=False, seed=1):
    """The GraphModule. It takes one tensor of ROWS x WIDTH floats."""
    make = Maker(seed, whole)
    return make.end(NETS[name](make, size))


def branches(count, blocks=4):
    """`count` chains of equal products side by side, summed: a budget of one chain fits each."""
    make = Maker(1, True)
    x, ends = make.input(), []
    for _ in range(count):
        y = x
        for _ in range(blocks):
            y = make.call(aten.mm.default, y, make.weight(WIDTH, WIDTH))
        ends.append(y)
    y = ends[0]
    for z in ends[1:]:
        y = make.call(aten.add.Tensor, y, z)
    return make.end([y])


def engine_of(inner):
    """A module with `inner` as its one engine, `_run_on_acc_0`, which a budget is applied to."""
    root, graph = torch.nn.Module(), torch.fx.Graph()
    root.add_module("_run_on_acc_0", inner)
    call = graph.call_module("_run_on_acc_0", (graph.placeholder("x"),))
    result = inner.graph.output_node().args[0]
    several = isinstance(result, (tuple, list))
    graph.output(tuple(graph.call_function(operator.getitem, (call, i))
                       for i in range(len(result))) if several else call)
    return torch.fx.GraphModule(root, graph)
