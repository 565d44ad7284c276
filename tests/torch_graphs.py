"""Random torch.fx graphs: operators, views, views of views, in-place calls as functions and
methods, `out=`, buffers that are written, random draws, lists, getitems, sizes, modules.

`graph(seed)` gives (GraphModule, inputs, a support): the support takes each call node or not.
"""
import operator
import random

import torch

A = torch.ops.aten
SHAPE = (4, 6)


class Maker:
    def __init__(self, seed, size, writes):
        self.pick = random.Random(seed)
        self.gen = torch.Generator().manual_seed(seed)
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.values = []  # (node, shape)
        self.buffers = []
        self.numbers = []
        self.n = 0
        self.writes = writes
        self.inputs = [self.tensor() for _ in range(self.pick.randint(1, 3))]
        for i, value in enumerate(self.inputs):
            node = self.graph.placeholder(f"x{i}")
            self.values.append((node, value.shape))
        self.weights()
        while self.n < size:
            self.step()
        self.finish()

    def tensor(self, *shape):
        return torch.rand(*(shape or SHAPE), generator=self.gen) + 0.5

    def weights(self):
        for i in range(self.pick.randint(0, 3)):
            name = f"w{i}"
            self.root.register_parameter(name, torch.nn.Parameter(self.tensor(), False))
        for i in range(self.pick.randint(0, 2)):
            self.root.register_buffer(f"b{i}", self.tensor())
        if self.pick.random() < 0.3:  # a second name, and a view of the first
            first = next(iter([*self.root.parameters(), *self.root.buffers()]), None)
            if first is not None:
                self.root.register_buffer("tied", first.detach())
                self.root.register_buffer("slice", first.detach()[1:])
        self.root.inplace = torch.nn.ReLU(inplace=True)
        self.root.plain = torch.nn.Linear(6, 6)
        self.names = [k for k, _ in [*self.root.named_parameters(recurse=False),
                                     *self.root.named_buffers(recurse=False)]]

    def add(self, op, target, args, kwargs, shape):
        node = self.graph.create_node(op, target, args, kwargs)
        self.n += 1
        if shape is not None:
            self.values.append((node, torch.Size(shape)))
        return node

    def some(self, shape=None):
        known = [(n, s) for n, s in self.values[-12:] if shape is None or s == shape]
        if self.names and self.pick.random() < 0.15:
            name = self.pick.choice(self.names)
            value = getattr(self.root, name)
            if shape is None or value.shape == shape:
                return self.graph.get_attr(name), value.shape
        if not known:
            node, _ = self.pick.choice(self.values)
            full = self.add("call_function", A.new_full.default, (node, list(shape), 0.25), {},
                            shape)
            return full, shape
        return self.pick.choice(known)

    def step(self):
        kinds = [(6, self.pure), (3, self.view), (1, self.several), (1, self.size),
                 (1, self.module)]
        if self.writes:
            kinds += [(3, self.write), (1, self.draw), (1, self.out)]
        total = self.pick.random() * sum(w for w, _ in kinds)
        for weight, make in kinds:
            total -= weight
            if total < 0:
                return make()

    def pure(self):
        x, shape = self.some()
        op = self.pick.choice([A.add.Tensor, A.mul.Tensor, A.sigmoid.default, A.tanh.default,
                               operator.add, torch.maximum, "sin", A.sub.Tensor])
        if op in (A.sigmoid.default, A.tanh.default):
            self.add("call_function", op, (x,), {}, shape)
        elif op == "sin":
            self.add("call_method", op, (x,), {}, shape)
        else:
            y, _ = self.some(shape)
            self.add("call_function", op, (x, y), {}, shape)

    def view(self):
        x, shape = self.some()
        rows = shape[0]
        kind = self.pick.choice(["t", "slice", "view", "method", "reshape", "getitem", "contiguous",
                                 "to", "unsqueeze"])
        call = "call_function"
        if kind == "t" and len(shape) == 2:
            self.add(call, A.t.default, (x,), {}, shape[::-1])
        elif kind == "slice" and rows > 1:
            self.add(call, A.slice.Tensor, (x, 0, 0, rows - 1), {}, (rows - 1, *shape[1:]))
        elif kind == "view":
            self.add(call, A.reshape.default, (x, [shape.numel()]), {}, (shape.numel(),))
        elif kind == "method":
            self.add("call_method", "reshape", (x, -1), {}, (shape.numel(),))
        elif kind == "reshape":
            self.add(call, torch.reshape, (x, list(shape)), {}, shape)
        elif kind == "getitem":
            self.add(call, operator.getitem, (x, slice(0, max(1, rows - 1))), {},
                     (max(1, rows - 1), *shape[1:]))
        elif kind == "contiguous":
            self.add("call_method", "contiguous", (x,), {}, shape)
        elif kind == "to":
            self.add("call_method", "to", (x, torch.float32), {}, shape)
        else:
            self.add(call, A.unsqueeze.default, (x, 0), {}, (1, *shape))

    def write(self):
        x, shape = self.some()
        kind = self.pick.choice(["mul_", "add_", "method", "setitem", "copy_", "iadd", "zero_"])
        if x.op == "get_attr" and x.target.startswith("w"):
            return self.pure()
        keep = shape if self.pick.random() < 0.5 else None
        call = "call_function"
        if kind == "mul_":
            self.add(call, A.mul_.Tensor, (x, 0.5), {}, keep)
        elif kind == "add_":
            self.add(call, A.add_.Tensor, (x, self.some(shape)[0]), {}, keep)
        elif kind == "method":
            self.add("call_method", "mul_", (x, 1.5), {}, keep)
        elif kind == "setitem":
            self.add(call, operator.setitem, (x, 0, 0.75), {}, None)
        elif kind == "copy_":
            self.add("call_method", "copy_", (x, self.some(shape)[0]), {}, keep)
        elif kind == "iadd":
            self.add(call, operator.iadd, (x, 0.125), {}, keep)
        else:
            self.add("call_method", "clamp_", (x, 0.1, 2.0), {}, keep)

    def out(self):
        x, shape = self.some()
        to, _ = self.some(shape)
        if to.op == "get_attr":
            return self.pure()
        self.add("call_function", torch.add, (x, 1.0), {"out": to}, shape)

    def draw(self):
        x, shape = self.some()
        op = self.pick.choice([A.rand_like.default, torch.randn_like, A.bernoulli.p])
        args = (x, 0.5) if op is A.bernoulli.p else (x,)
        self.add("call_function", op, args, {}, shape)

    def several(self):
        x, shape = self.some()
        if shape[-1] % 2 or shape[-1] < 2:
            return self.pure()
        half = (*shape[:-1], shape[-1] // 2)
        op = self.pick.choice([A.split.Tensor, torch.chunk, "chunk"])
        args = (x, shape[-1] // 2, -1) if op is A.split.Tensor else (x, 2, -1)
        pair = self.add("call_method" if op == "chunk" else "call_function", op, args, {}, None)
        for k in range(2):
            if k == 0 or self.pick.random() < 0.6:
                self.add("call_function", operator.getitem, (pair, k), {}, half)

    def size(self):
        x, shape = self.some()
        kind = self.pick.choice(["dim", "whole", "item"])
        if kind == "dim":
            rows = self.add("call_method", "size", (x, 0), {}, None)
        elif kind == "whole":
            whole = self.add("call_method", "size", (x,), {}, None)
            y, _ = self.some(shape)
            self.add("call_method", "view" if y.op == "placeholder" else "reshape", (y, whole), {},
                     shape)
            return
        else:
            whole = self.add("call_method", "size", (x,), {}, None)
            rows = self.add("call_function", operator.getitem, (whole, 0), {}, None)
        twice = self.add("call_function", operator.mul, (rows, 2), {}, None)
        self.add("call_function", A.mul.Tensor, (x, twice), {}, shape)

    def module(self):
        x, shape = self.some()
        if shape[-1] == 6 and self.pick.random() < 0.6:
            self.add("call_module", "plain", (x,), {}, shape)
        elif self.writes and x.op != "get_attr":
            self.add("call_module", "inplace", (x,), {}, shape)

    def finish(self):
        results = [n for n, _ in self.values if not n.users and n.op != "placeholder"]
        results += [n for n, _ in self.pick.sample(self.values, min(2, len(self.values)))]
        self.graph.output(tuple(dict.fromkeys(results)) if len(results) != 1 else results[0])


def graph(seed, size=None, writes=True):
    """(GraphModule, inputs, support) of that seed. A graph that eager refuses is made anew."""
    for attempt in range(20):
        maker = Maker(seed * 1000 + attempt, size or 8 + seed % 30, writes)
        module = torch.fx.GraphModule(maker.root, maker.graph).eval()
        inputs = tuple(maker.inputs)
        try:
            with torch.no_grad():
                held = {k: v.detach().clone() for k, v in module.state_dict().items()}
                module(*(v.clone() for v in inputs))
                module.load_state_dict(held)
        except RuntimeError:
            continue
        pick = random.Random(seed)
        share = pick.choice((0.3, 0.6, 0.9))
        taken = {n.name for n in module.graph.nodes if pick.random() < share}
        return module, inputs, lambda node: node.name in taken
    raise AssertionError(f"no graph for seed {seed}")
