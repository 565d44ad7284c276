"""Random torch.fx programs with writes, views and random operators, by seed.

`program(seed)` gives (GraphModule, inputs, supported); the same seed gives the same program with
tensors of its own. Values are small float32 tensors; operators are ATen overloads, Tensor methods,
torch functions and Python operators in turn, so that every way to say a write or a view occurs.
"""
import operator
import random

import torch
from torch import fx, nn

A = torch.ops.aten


class Net:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.root = nn.Module()
        self.graph = fx.Graph()
        self.values = {}  # shape -> nodes
        self.writes = self.rng.choice((0, 1, 1, 2))  # how eager to write
        self.uses_random = self.rng.random() < 0.4

    def tensor(self, *shape):
        return torch.rand(*shape, generator=self.generator) + 0.5

    def keep(self, node, shape):
        self.values.setdefault(shape, []).append(node)
        return node

    def pick(self, shape=None):
        """A value, recent ones more often, and its shape."""
        if shape is None:
            shape = self.rng.choice(list(self.values))
        nodes = self.values[shape]
        near = self.rng.random() < 0.6
        return (nodes[-1 - self.rng.randrange(min(3, len(nodes)))] if near
                else self.rng.choice(nodes)), shape

    def call(self, target, *args, **kwargs):
        if isinstance(target, str):
            return self.graph.call_method(target, args, kwargs)
        return self.graph.call_function(target, args, kwargs)

    # ---- attributes: a parameter, a tied one, a buffer, a view of that buffer ----

    def attributes(self):
        self.root.register_parameter("p", nn.Parameter(self.tensor(2, 3), requires_grad=False))
        self.root.q = self.root.p  # tied
        self.root.register_buffer("b", self.tensor(2, 3))
        self.root.register_buffer("c", self.root.b[:1], persistent=False)  # a view of the buffer
        self.root.sub = nn.Module()
        self.root.sub.w = nn.Parameter(self.tensor(3, 3), requires_grad=False)
        shapes = {"p": (2, 3), "q": (2, 3), "b": (2, 3), "c": (1, 3), "sub.w": (3, 3)}
        for name in self.rng.sample(sorted(shapes), self.rng.randint(1, 4)):
            self.keep(self.graph.get_attr(name), shapes[name])

    # ---- one step of each sort ----

    def pure(self):
        x, shape = self.pick()
        y, _ = self.pick(shape)
        target, args = self.rng.choice((
            (A.add.Tensor, (x, y)), (A.mul.Tensor, (x, y)), (A.relu.default, (x,)),
            (A.sigmoid.default, (x,)), (torch.sub, (x, y)), (operator.add, (x, y)),
            (operator.mul, (x, 0.5)), ("cos", (x,)), (torch.tanh, (x,)), ("add", (x, y)),
            (A.clone.default, (x,)), (A.maximum.default, (x, y))))
        self.keep(self.call(target, *args), shape)

    def product(self):
        if (2, 3) in self.values and (3, 3) in self.values:
            x, w = self.pick((2, 3))[0], self.pick((3, 3))[0]
            y = self.call(self.rng.choice((A.mm.default, torch.matmul, operator.matmul)), x, w)
            self.keep(self.call(A.sigmoid.default, y), (2, 3))

    def view(self):
        x, shape = self.pick()
        n = 1
        for d in shape:
            n *= d
        choices = [((A.alias.default, x), shape), ((A.detach.default, x), shape),
                   (("contiguous", x), shape), ((A.view.default, x, list(shape)), shape),
                   ((torch.reshape, x, (n,)), (n,)), (("view", x, n), (n,)),
                   ((A.unsqueeze.default, x, 0), (1, *shape)),
                   (("to", x, torch.float32), shape), ((operator.getitem, x, 0), shape[1:])]
        if len(shape) == 2:
            choices += [((A.t.default, x), shape[::-1]), (("t", x), shape[::-1]),
                        ((A.slice.Tensor, x, 1, 0, 2), (shape[0], min(2, shape[1]))),
                        ((A.select.int, x, 0, 0), shape[1:]),
                        ((A.permute.default, x, [1, 0]), shape[::-1])]
        (target, *args), out = self.rng.choice(choices)
        if len(out) and target != "view" or len(out) and all(True for _ in out):
            try_view = target in ("view", A.view.default)
            if try_view:  # of a contiguous value: others cannot be viewed
                args[0] = self.call("contiguous", args[0])
            self.keep(self.call(target, *args), out)

    def write(self):
        x, shape = self.pick()
        y, _ = self.pick(shape)
        target, args, kwargs = self.rng.choice((
            (A.add_.Tensor, (x, y), {}), (A.mul_.Tensor, (x, 0.75), {}), (A.copy_.default, (x, y), {}),
            ("mul_", (x, 0.5), {}), ("add_", (x, y), {}), ("zero_", (x,), {}),
            (torch.relu_, (x,), {}), (operator.iadd, (x, y), {}), (operator.imul, (x, 0.9), {}),
            (operator.setitem, (x, 0, 0.25), {}), (A.fill_.Scalar, (x, 0.125), {}),
            (A.add.out, (x, y), {"out": self.pick(shape)[0]}),
            (torch.mul, (x, y), {"out": self.pick(shape)[0]}),
            (nn.functional.relu, (x,), {"inplace": True})))
        node = self.call(target, *args, **kwargs)
        if target is not operator.setitem and self.rng.random() < 0.7:
            self.keep(node, shape)

    def several(self):
        x, shape = self.pick()
        if not shape or shape[0] < 2:
            return self.pure()
        half = shape[0] // 2
        target, args = self.rng.choice(((A.split.Tensor, (x, half)), (torch.chunk, (x, 2)),
                                        ("split", (x, half)), (A.unbind.int, (x,)),
                                        (A.var_mean.correction, (x, [0]))))
        node = self.call(target, *args)
        first = shape[1:] if target in (A.unbind.int, A.var_mean.correction) else (half, *shape[1:])
        if target is torch.chunk:
            first = (-(-shape[0] // 2), *shape[1:])
        for k in range(self.rng.randint(0, 2)):
            if k and first != shape[1:] and shape[0] - first[0] != first[0]:
                continue
            self.keep(self.call(operator.getitem, node, k), first)
        if self.rng.random() < 0.3 and target in (A.split.Tensor, A.unbind.int):
            joined = self.call(A.cat.default, node) if target is A.split.Tensor \
                else self.call(A.stack.default, node)
            self.keep(joined, shape)

    def sized(self):
        x, shape = self.pick()
        y, other = self.pick()
        if not shape or not other:
            return self.pure()
        size = self.call(*self.rng.choice(((A.sym_size.int, x, 0), ("size", x, 0))))
        n = self.call(operator.mul, size, 2) if self.rng.random() < 0.5 else size
        self.keep(self.call(A.add.Scalar, y, n), other)
        if self.rng.random() < 0.4:
            whole = self.call("size", x)
            z = self.call(self.rng.choice(("reshape", "expand")), x, whole)
            self.keep(z, shape)

    def draw(self):
        x, shape = self.pick()
        target, args, kwargs = self.rng.choice((
            (A.rand_like.default, (x,), {}), (A.bernoulli.p, (x, 0.5), {}),
            (torch.rand, (list(shape),), {}), (nn.functional.dropout, (x, 0.5, True), {}),
            (A.uniform_.default, (x,), {})))
        if target is A.uniform_.default and not self.writes:
            return self.pure()
        self.keep(self.call(target, *args, **kwargs), shape)


def program(seed):
    net = Net(seed)
    rng = net.rng
    inputs = []
    for k in range(rng.randint(1, 3)):
        shape = rng.choice(((2, 3), (2, 3), (3, 3), (4,)))
        inputs.append(net.tensor(*shape))
        net.keep(net.graph.placeholder(f"x{k}"), shape)
    if rng.random() < 0.8:
        net.attributes()
    steps = [net.pure] * 8 + [net.product] * 2 + [net.view] * 5 + [net.several] * 2 + [net.sized]
    steps += [net.write] * (3 * net.writes) + [net.draw] * (2 * net.uses_random)
    for _ in range(rng.randint(2, 24)):
        rng.choice(steps)()
    made = [n for nodes in net.values.values() for n in nodes]
    outputs = [rng.choice(made) for _ in range(rng.randint(1, 3))]
    net.graph.output(tuple(outputs) if len(outputs) > 1 or rng.random() < 0.5 else outputs[0])
    gm = fx.GraphModule(net.root, net.graph)
    gm.graph.lint()
    share = rng.choice((0.3, 0.6, 0.9, 1.0))
    chosen = {n.name for n in gm.graph.nodes if n.op.startswith("call") and rng.random() < share}
    only_pure = rng.random() < 0.3
    return gm, inputs, None if only_pure else (lambda node: node.name in chosen)
