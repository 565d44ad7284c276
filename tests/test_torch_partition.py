"""cutset.torch: partition, plan, fuse_partitions, against the cases of Torch-TensorRT and torch.fx.

Names of tests are those of the cases (D: dynamo, F: torch.fx partitioner, S: splitter, X: what goes
wrong elsewhere). Every result is checked by torch_checks: structure, eager equality, engines as
values.
"""
import copy
import math
import operator
import random
import sys
import warnings

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace
from torch.fx.passes.shape_prop import ShapeProp

import cutset
import cutset.torch
from torch_checks import calls, check, children, engine_sets, engines, segments, snapshot
from torch_graphs import graph as random_graph

A = torch.ops.aten
OPS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "relu": torch.relu,
       "sigmoid": torch.sigmoid, "cat": "cat", "sum": torch.sum, "pow": torch.pow,
       "view": A.view.default, "permute": A.permute.default, "split": torch.split,
       "getitem": operator.getitem, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh,
       "neg": operator.neg, "var_mean": torch.var_mean, "where": torch.where, "stack": "stack",
       "mm": A.mm.default, "size": "size"}
FX = {operator.add, operator.getitem, A.view.default, A.permute.default, torch.std_mean}


def make(inputs, lines, outputs, weights=()):
    """A graph from lines such as "n1 = add n0 b": words are nodes, or numbers."""
    g = torch.fx.Graph()
    at = {name: g.placeholder(name) for name in inputs.split()}
    root = torch.nn.Module()
    for name, value in weights:
        root.register_buffer(name, value)
        at[name] = g.get_attr(name)
    for line in lines:
        name, _, rest = line.partition(" = ")
        op, *words = rest.split()
        args = tuple(at[w] if w in at else int(w) if w.lstrip("-").isdigit() else w for w in words)
        if op in ("cat", "stack"):
            at[name] = g.create_node("call_function", getattr(torch, op), (args,), {}, name)
        elif op == "view" or op == "permute":
            at[name] = g.create_node("call_function", OPS[op], (args[0], list(args[1:])), {}, name)
        elif op == "size":
            at[name] = g.create_node("call_method", "size", args, {}, name)
        else:
            target = OPS.get(op) or getattr(torch, op)
            at[name] = g.create_node("call_function", target, args, {}, name)
        at[name].name = name
    outs = [at[o] for o in outputs.split()]
    g.output(tuple(outs) if len(outs) != 1 else outs[0])
    return GraphModule(root, g)


def rand(n, *shape):
    torch.manual_seed(n)
    return tuple(torch.rand(shape or (4, 4)) for _ in range(n))


def cut(gm, inputs=None, **options):
    """Partitions and checks everything, the caller's module too."""
    before = snapshot(gm) if isinstance(gm, GraphModule) else None
    result = cutset.torch.partition(gm, **options)
    if before is not None:
        assert snapshot(gm) == before, "the caller's module was changed"
        check(gm, result, inputs, host_submodules=options.get("host_submodules", True))
    assert cutset.torch.plan(gm, **{k: v for k, v in options.items() if k != "host_submodules"}) \
        == result.meta["cutset"]
    return result


def counted(result):
    return len(engines(result))


# ---- C.3: dynamo ----

D4 = ("x y", ["n0 = add x y", "n1 = add x n0", "n2 = sum n0", "n3 = sum n1", "n4 = add n2 n3",
              "n5 = relu n4", "n6 = pow n5 2"], "n6")
D4_OPS = {operator.add, torch.relu, torch.pow, torch.sub, operator.sub, torch.cat}


def test_d1_d2_one_node():
    gm = make("x y", ["n0 = add x y"], "n0")
    assert counted(cut(gm, rand(2), min_block_size=5)) == 0
    assert counted(cut(gm, rand(2), min_block_size=5, require_full_compilation=True)) == 1


def test_d3():
    gm = make("x y", ["n0 = sub x y", "n1 = cat x n0", "n2 = relu n1", "n3 = pow n2 2"], "n3")
    assert counted(cut(gm, rand(2), min_block_size=2)) == 1


def test_d4():
    result = cut(make(*D4), rand(2), supported=D4_OPS, min_block_size=2)
    assert engine_sets(result) == [{"n0", "n1"}, {"n4", "n5", "n6"}]


def test_d5():
    gm = make("x y", ["n0 = add x y", "n1 = add x n0", "n2 = add n0 n1", "n3 = relu n2",
                      "n4 = pow n3 2"], "n4")
    result = cut(gm, rand(2), torch_executed_ops=["_operator.add"], min_block_size=2)
    assert engine_sets(result) == [{"n3", "n4"}]
    assert {f.rule for f in result.meta["cutset"].fallback} == {"user"}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Conv2d(4, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(36, 5)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(self.bn(torch.relu(self.conv1(x))), 2)
        x = torch.nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(torch.flatten(x, 1) + 1)


def exported(module, args, **kw):
    return torch.export.export(module.eval(), args, **kw).module(check_guards=False)


def test_d6():
    gm = exported(Net(), (torch.rand(2, 3, 16, 16),))
    inputs = (torch.rand(2, 3, 16, 16),)
    assert counted(cut(gm, inputs)) == 1
    assert counted(cut(gm, inputs, torch_executed_ops=[A.relu])) == 3


class ConvBnRelu(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(3, 3, 1), torch.nn.Conv2d(3, 3, 1)
        self.na, self.nb = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)

    def forward(self, x):
        x = torch.relu(self.na(self.a(x)))
        return torch.relu(self.nb(self.b(x)))


def test_d7_d8_two_accelerators():
    gm = exported(ConvBnRelu(), (torch.rand(2, 3, 4, 4),))
    backends = {"A": [A.conv2d], "B": lambda node: node.target is not A.conv2d.default}
    for executed, acc, host in (((), 4, 0), ([A.batch_norm], 4, 2)):
        result = cut(gm, (torch.rand(2, 3, 4, 4),), supported=backends,
                     torch_executed_ops=executed, atomic_subgraphs=False)
        targets = [p.target for p in result.meta["cutset"].parts]
        assert (targets.count("A"), targets.count("B"), targets.count("host")) == (2, 2, host)
        assert counted(result) == acc


def test_d9_d12():
    chain = make("x y", ["n0 = sub x y", "n1 = add n0 y", "n2 = mul n1 2", "n3 = add n2 x",
                         "n4 = mean n3"], "n4")
    assert counted(cut(chain, rand(2), min_block_size=3)) == 1
    two = make("x y", ["n0 = sub x y", "m = mul x 3", "n1 = sub n0 m", "n2 = add n1 y",
                       "n3 = mul n2 2", "n4 = mean n3"], "n4")
    assert counted(cut(two, rand(2), torch_executed_ops={operator.add})) == 2
    d11 = make("x y", ["n0 = add x y", "n1 = mul n0 2", "n2 = mean n1"], "n2")
    assert counted(cut(d11, rand(2), min_block_size=3)) == 1
    d12 = make("x y", ["n0 = add x y", "n1 = abs n0"], "n1")
    assert engine_sets(cut(d12, rand(2), torch_executed_ops={operator.add})) == [{"n1"}]


def test_d13_d14_data_dependent():
    gm = make("x", ["n0 = relu x", "n1 = nonzero n0", "n2 = add n1 1"], "n2")
    assert counted(cut(gm, rand(1))) == 1
    result = cut(gm, rand(1), fallback_data_dependent_ops=True)
    assert all("n1" not in e for e in engine_sets(result)) and counted(result) == 2
    assert [f.rule for f in result.meta["cutset"].fallback] == ["dds"]
    with pytest.raises(cutset.NotFullySupportedError) as error:
        cutset.torch.partition(gm, fallback_data_dependent_ops=True, require_full_compilation=True)
    assert error.value.nodes == ("n1",) and isinstance(error.value, AssertionError)


def test_d15_complex_stays_on_the_host():
    def f(x):
        y = torch.view_as_complex((x * 2).reshape(2, 4, 2))
        return torch.view_as_real(y * y) * 3

    class M(torch.nn.Module):
        def forward(self, x):
            return f(x)

    gm = exported(M(), (torch.rand(4, 4),))
    result = cut(gm, rand(1))
    assert counted(result) >= 1
    for node in [n for e in engines(result) for n in e.graph.nodes]:
        value = node.meta.get("val")
        assert not (isinstance(value, torch.Tensor) and value.is_complex())


def test_s17_dtypes():
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    for dtype, expected in ((torch.float16, 1), (torch.float64, 0)):
        gm = exported(M(), (torch.rand(4).to(dtype),))
        assert counted(cut(gm, (torch.rand(4).to(dtype),))) == expected


# ---- C.5: the partitioner of torch.fx ----

F = {
    "F1": ("a b c", ["n0 = add a b", "n1 = add n0 b", "n2 = add n1 c", "r1 = relu n2",
                     "n3 = add n1 n2", "n4 = add n1 r1", "n5 = add n4 n3", "r2 = relu n5",
                     "n6 = add r2 n5", "n7 = add n6 n5"], "n5 n7",
           [{"n0", "n1", "n2"}, {"n3", "n4", "n5"}, {"n6", "n7"}]),
    "F2": ("a b", ["n0 = add a b", "n1 = add n0 b", "r = relu n1", "n2 = add n1 r",
                   "n3 = add n1 n2"], "n3 n1", [{"n0", "n1"}, {"n2", "n3"}]),
    "F3": ("a b c", ["n0 = add a b", "n1 = add a c", "n2 = add b c"], "n0 n1 n2",
           [{"n0", "n1", "n2"}]),
    "F4": ("a b c m", ["n0 = add a b", "n1 = add a c", "n2 = add b c", "w = where m n0 n1",
                       "v = where m w n2"], "v", [{"n0", "n1", "n2"}]),
    "F5": ("a", ["n0 = add a 1", "r = relu n0", "n1 = add n0 2"], "r n1", [{"n0", "n1"}]),
    "F6": ("a", ["n0 = add a 1", "r = relu n0", "s = relu n0"], "r s", [{"n0"}]),
    "F8": ("a", ["n0 = add a 1", "n1 = add n0 2", "n2 = add n0 1", "n3 = add n2 n1"], "n3",
           [{"n0", "n1", "n2", "n3"}]),
    "F10": ("a", ["n0 = add a 1", "n1 = add n0 1", "n2 = add n0 1", "n3 = add n0 2",
                  "s = stack n1 n2 n3"], "s", [{"n0", "n1", "n2", "n3"}]),
    "F11": ("a", ["n0 = add a 1", "r1 = relu n0", "n1 = add n0 r1", "r2 = relu n0",
                  "s = stack r1 n1 r2"], "s", [{"n0"}, {"n1"}]),
    "F13": ("a b c", ["s = split a 1", "g0 = getitem s 0", "g1 = getitem s 1", "n0 = add g0 b",
                      "n1 = add g1 c", "n2 = add n0 n1"], "n2", [{"n0", "n1", "n2"}]),
    "F15": ("a", ["v = view a 4 4", "p = permute v 1 0", "n0 = add p 1", "q = permute n0 1 0",
                  "n1 = add q 1", "s = permute n1 1 0", "t = permute s 1 0"], "t",
            [{"v", "p", "n0", "q", "n1", "s", "t"}]),
    "F17": ("a b c d e f", ["n0 = add a b", "n1 = add c d", "n2 = add e f"], "n0 n1 n2",
            [{"n0", "n1", "n2"}]),
    "F18": ("a", ["v = var_mean a", "g = getitem v 0"], "g", []),
    "F27a": ("a", ["r = relu a", "s = relu r"], "s", []),
    "F27b": ("a b", ["n0 = add a b"], "n0", [{"n0"}]),
    "F27c": ("a b", ["n0 = add a b", "n1 = add n0 b", "n2 = add n1 b"], "n2", [{"n0", "n1", "n2"}]),
    "F28": ("a b", ["base = add a b", "r0 = relu base", "r1 = relu base", "r2 = relu base",
                    "r3 = relu base", "n1 = add base b"], "n1", [{"base", "n1"}]),
    "F31": ("a", ["n0 = add a 1", "n1 = add n0 1", "r = relu n1", "n2 = add r 1", "n3 = add n2 1",
                  "s = relu n3", "n4 = add s 1"], "n4", [{"n0", "n1"}, {"n2", "n3"}, {"n4"}]),
    "F33": ("a b", ["n0 = add a 1", "n1 = add n0 1", "r = relu b", "n2 = add r 1"], "n1 n2",
            [{"n0", "n1", "n2"}]),
    "F34": ("a", ["n0 = add a 1", "n1 = add n0 1", "n2 = add n1 1", "r = relu n2",
                  "n3 = add r n0"], "n3", [{"n0", "n1", "n2"}, {"n3"}]),
    "F35": ("a", ["n0 = add a 1", "r = relu n0", "s = sigmoid r", "n1 = add s 1"], "n1",
            [{"n0"}, {"n1"}]),
    "F39": ("x", ["n0 = add x x", "n1 = add n0 x"], "n1", [{"n0", "n1"}]),
}


@pytest.mark.parametrize("name", F)
@pytest.mark.parametrize("host_submodules", (True, False))
def test_fx(name, host_submodules):
    inputs, lines, outputs, expected = F[name]
    gm = make(inputs, lines, outputs)
    values = [torch.rand(4, 4) > 0.5 if n == "m" else torch.rand(4, 4) for n in inputs.split()]
    if name == "F13":
        values = list(rand(3))
    result = cut(gm, tuple(values), supported=FX, host_submodules=host_submodules)
    found = engine_sets(result)
    assert len(found) == len(expected) and result.meta["cutset"].engines_proved
    if name not in ("F1", "F33", "F4"):  # there more than one is best as long as sizes are unknown
        assert found == expected
    ShapeProp(gm).propagate(*values)
    assert engine_sets(cut(gm, supported=FX)) == expected or name in ("F1", "F33", "F4")


def test_f15_f16_bookends():
    v = {A.view.default, A.permute.default}
    _, lines, outputs, _ = F["F15"]
    result = cut(make("a", lines, outputs), rand(1), supported=FX, non_compute_ops=v,
                 remove_bookend_non_compute_ops=True)
    assert engine_sets(result) == [{"n0", "q", "n1"}]
    gm = make("a", ["r = neg a", "v = view r 4 4", "p = permute v 1 0", "n0 = add p 1",
                    "q = permute n0 1 0", "n1 = add q 1", "s = permute n1 1 0", "t = permute s 1 0",
                    "z = neg t"], "z")
    assert [len(e) for e in engine_sets(cut(gm, rand(1), supported=FX))] == [7]
    result = cut(gm, rand(1), supported=FX, non_compute_ops=v, remove_bookend_non_compute_ops=True)
    assert engine_sets(result) == [{"n0", "q", "n1"}]


def test_f29_depth_window():
    pick = random.Random(0)
    lines, names = [], ["a", "b"]
    for i in range(8):
        op = "relu" if i in pick.sample(range(8), 5) else "add"
        words = [pick.choice(names)] if op == "relu" else [pick.choice(names), pick.choice(names)]
        lines.append(f"n{i} = {op} {' '.join(words)}")
        names.append(f"n{i}")
    gm = make("a b", lines, " ".join(names[2:]))
    assert cut(gm, rand(2), supported=FX).meta["cutset"].engines_proved


def test_f30_small_engines():
    gm = make("a", ["r = relu a", "n0 = add r 1"], "n0")
    assert counted(cut(gm, rand(1), supported=FX, min_block_size=2)) == 0
    assert counted(cut(gm, rand(1), supported=FX, min_block_size=2,
                       allowed_single_node_partition_ops=[operator.add])) == 1


def test_f37_nested_tuples():
    def nested(x):
        return (x + 1, (x + 2, x + 3))

    g = torch.fx.Graph()
    a = g.placeholder("a")
    t = g.call_function(nested, (a,))
    first, rest = (g.call_function(operator.getitem, (t, k)) for k in (0, 1))
    second, third = (g.call_function(operator.getitem, (rest, k)) for k in (0, 1))
    r = g.call_function(torch.relu, (first,))
    g.output(g.call_function(operator.add, (g.call_function(operator.add, (r, second)), third)))
    gm = GraphModule(torch.nn.Module(), g)
    result = cut(gm, rand(1), supported=FX | {nested})
    home = [e for e in engine_sets(result) if t.name in e]
    assert home and {n.name for n in (first, rest, second, third)} <= home[0]
    result = cut(gm, rand(1), supported=FX)  # unsupported: its getitems stay with it
    assert all(n.name not in e for e in engine_sets(result) for n in (t, first, rest, second))


def test_f38_long_chain():
    lines = ["n0 = add a 1"] + [f"n{i} = {'relu' if i % 500 == 0 else 'add'} n{i - 1}"
                                + ("" if i % 500 == 0 else " 1")
                                for i in range(1, 3 * sys.getrecursionlimit())]
    gm = make("a", lines, f"n{len(lines) - 1}")
    result = cutset.torch.partition(gm, supported=FX)
    assert counted(result) == len(lines) // 500 + (len(lines) % 500 > 1)
    x = torch.zeros(1)
    assert torch.equal(result(x), gm(x))


def test_f39_the_same_ten_times():
    inputs, lines, outputs, _ = F["F1"]
    texts = {cutset.torch.plan(make(inputs, lines, outputs), supported=FX).to_json()
             for _ in range(10)}
    assert len(texts) == 1


@pytest.mark.parametrize("inputs, lines, outputs, expected", [
    ("a b c d e f", ["n0 = add a b", "n1 = add c d", "n2 = add e f"], "n0 n1 n2",
     [{"n0"}, {"n1"}, {"n2"}]),
    ("a b c", ["n0 = add a b", "n1 = add n0 c", "n2 = add n1 1"], "n2", [{"n0", "n1", "n2"}]),
    ("a", ["r = relu a", "n0 = add r 1", "n1 = add r 2"], "n0 n1", [{"n0"}, {"n1"}]),
    ("a b c", ["n0 = add a b", "n1 = add c c", "r = relu n1", "n2 = add n0 r", "n3 = add n0 n1"],
     "n2 n3", [{"n0", "n1", "n3"}, {"n2"}]),
    ("a", ["n0 = add a 1", "n1 = add n0 2", "n2 = add n0 1", "n3 = add n2 n1"], "n3",
     [{"n0", "n1", "n2", "n3"}]),
])
def test_skip_horizontal_fusion(inputs, lines, outputs, expected):
    gm = make(inputs, lines, outputs)
    result = cut(gm, rand(len(inputs.split())), supported=FX, skip_horizontal_fusion=True)
    assert sorted(map(sorted, engine_sets(result))) == sorted(map(sorted, expected))


# ---- C.6: parts made by hand ----

class Fuse(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.rand(4, 4))
        self.linear, self.linear2 = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, a, b, c):
        add = a + b
        linear_1 = self.linear(add)
        add_1 = add + c
        add_2 = add_1 + self.param
        add_3 = add_1 + linear_1
        add_4 = add_2 + add_3
        linear_2 = self.linear2(add_4)
        add_5 = linear_2 + add_4
        add_6 = add_5 + a
        return add_4, add_6.relu()


VALID = [[["add", "add_1"], ["add_5", "add_6"]], [["add", "add_1", "add_2"]], [["add_2", "add_3"]],
         [["add_3", "add_4"]], [["add_6", "add_5"]], [["add_4", "add_1", "add_3", "add_2"]],
         [["add_5", "add_6"], ["add_1", "add_2", "add_3", "add_4"]], [["add_5", "linear2"]],
         [["add_6", "relu"]], [["param", "add_2"]], [["param", "add_1", "linear"]],
         [["add", "linear", "add_1", "param", "add_2", "add_3", "add_4", "linear2", "add_5",
           "add_6", "relu"]]]
INVALID = [[["add", "add_1"], ["add_1", "add_5", "add_6"]], [["add", "add_1", "add_3"]],
           [["add_4", "add_5"]], [["relu", "add_5"]]]


@pytest.mark.parametrize("groups", VALID)
def test_fuse(groups):
    gm, inputs = symbolic_trace(Fuse()), rand(3)
    before, wanted = snapshot(gm), gm(*inputs)
    fused = cutset.torch.fuse_partitions(gm, groups)
    fused.graph.lint()
    assert snapshot(gm) == before
    assert all(map(torch.equal, fused(*inputs), wanted))
    for k, group in enumerate(groups):
        child = getattr(fused, f"_run_on_acc_{k}")
        assert {n.name for n in calls(child.graph)} == set(group) - {"param"}
    left = {n.name for n in calls(fused.graph) if not n.name.startswith("_run_on_acc_")}
    inside = {n for g in groups for n in g}
    assert left == {n.name for n in calls(gm.graph)} - inside


@pytest.mark.parametrize("groups", INVALID)
def test_fuse_refuses(groups):
    gm = symbolic_trace(Fuse())
    if groups[0] == ["add", "add_1", "add_3"]:
        groups = [groups[0]]
    before = snapshot(gm)
    with pytest.raises(cutset.PartitionError) as error:
        cutset.torch.fuse_partitions(gm, groups)
    assert "\n" not in str(error.value) and snapshot(gm) == before
    assert error.value.nodes and isinstance(error.value, ValueError)


def test_fuse_by_node_and_prefix():
    gm = symbolic_trace(Fuse())
    nodes = {n.name: n for n in gm.graph.nodes}
    fused = cutset.torch.fuse_partitions(gm, [[nodes["add_1"], nodes["add"]]], prefix="fused_")
    assert [n.name for n in calls(fused.fused_0.graph)] == ["add", "add_1"]
    for bad in ([["nowhere"]], [["a"]], [["output"]], ["add"], [[symbolic_trace(Fuse()).graph
                                                                   .find_nodes(op="output")[0]]]):
        with pytest.raises(cutset.PartitionError):
            cutset.torch.fuse_partitions(gm, bad)


def test_fuse_refuses_what_writes_order():
    """x.mul_(2) stands between two readers of x: they cannot be one part."""
    class M(torch.nn.Module):
        def forward(self, x):
            before = x + 1
            x.mul_(2)
            return before + (x + 3)

    gm = symbolic_trace(M())
    with pytest.raises(cutset.PartitionError):
        cutset.torch.fuse_partitions(gm, [["add", "add_1"]])
    fused = cutset.torch.fuse_partitions(gm, [["mul_", "add_1"]])
    x = torch.ones(2)
    assert torch.equal(fused(x.clone()), gm(x.clone()))


# ---- C.7: the splitter ----

def test_s1():
    gm = make("a", ["b = sin a", "c = cos a", "d = add b c"], "d")
    result = cut(gm, rand(1), supported={torch.sin, torch.cos})
    assert segments(result) == [(True, ("b", "c")), (False, ("d",))]


def test_s2():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (torch.nn.Parameter(torch.rand(1, 3, 4, 4)) for _ in range(2))
            self.conv, self.linear = torch.nn.Conv2d(3, 3, 1), torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(self.conv(x + self.a) - self.b)

    gm = symbolic_trace(M())
    result = cut(gm, rand(1, 1, 3, 4, 4), supported={operator.sub, "linear"})
    assert [acc for acc, _ in segments(result)] == [False, True]
    held = [{n.target for n in c.graph.nodes if n.op == "get_attr"} | {
        k for k, _ in c.named_parameters()} for c in children(result).values()]
    assert held == [{"a", "conv.weight", "conv.bias"}, {"b", "linear.weight", "linear.bias"}]


def test_s3_s16_nothing_to_run():
    class Identity(torch.nn.Module):
        def forward(self, x):
            return x

    class Weight(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(2))

        def forward(self, x):
            return self.w

    for module in (Identity(), Weight()):
        gm = symbolic_trace(module)
        result = cut(gm, (torch.rand(2),))
        assert not children(result) and result.meta["cutset"].parts == ()
        assert [n.op for n in result.graph.nodes] == [n.op for n in gm.graph.nodes]
        assert result(torch.ones(2)) is gm.w if hasattr(gm, "w") else True


def test_s4():
    gm = make("a", ["t = topk a 2", "g0 = getitem t 0", "g1 = getitem t 1", "s = sigmoid g0"],
              "s g1")
    result = cut(gm, rand(1))
    assert counted(result) == 1 and len(engines(result)[0].graph.output_node().args[0]) == 2


def test_s5():
    gm = make("x", ["r = relu x", "s = sin x", "d = add r s"], "d")
    assert segments(cut(gm, rand(1), supported={torch.sin})) == [
        (True, ("s",)), (False, ("r", "d"))]  # the original's other host part is not needed


S6 = ("x", ["a = sin x", "b = relu a", "c = cos b", "d = sigmoid c", "e = tanh d"], "e")


@pytest.mark.parametrize("acc, least, expected", [
    ({torch.relu, torch.sigmoid}, 1, [False, True, False, True, False]),
    ({torch.sin, torch.cos, torch.tanh}, 2, [False]),
    ({torch.sin, torch.relu, torch.cos}, 2, [True, False]),
])
def test_s6_s7_s8(acc, least, expected):
    result = cut(make(*S6), rand(1), supported=acc, min_block_size=least)
    assert [a for a, _ in segments(result)] == expected


def test_s18_refused_by_name():
    result = cut(make(*S6), rand(1), supported=lambda n: n.name != "c" or "by name")
    assert [a for a, _ in segments(result)] == [True, False, True]
    [fallen] = result.meta["cutset"].fallback
    assert (fallen.node, fallen.rule, fallen.why) == ("c", "op", "by name")


def test_finder_numbers():
    gm = make("x y z", ["a1 = size x", "a2 = getitem a1 0", "b = add y a2", "c = sub z a2",
                        "d = add b c"], "d")
    acc = {operator.sub, operator.getitem, "size"}
    assert counted(cut(gm, rand(3), supported=acc, allow_non_tensor=False)) == 0
    assert counted(cut(gm, rand(3), supported=acc)) == 1


# ---- C.10: what goes wrong elsewhere ----

class X1(torch.nn.Module):
    def forward(self, a):
        b = A.clone.default(a)
        A.mul_.Tensor(b, 10)
        return A.add.Tensor(b, 1)


class X2(torch.nn.Module):
    def forward(self, a):
        b = A.clone.default(a)
        r = A.add.Tensor(b, 1)
        w = A.mul_.Tensor(b, 10)
        return A.add.Tensor(w, r)


class X3(torch.nn.Module):
    def forward(self, a):
        b = A.clone.default(a)
        b.mul_(10)
        return A.add.Tensor(b, 1)


class X4(torch.nn.Module):
    def forward(self, x):
        t = A.add.Tensor(x, 1)
        w = A.mul_.Tensor(x, 3)
        return A.mul.Tensor(w, t)


class X5(torch.nn.Module):
    def forward(self, x):
        v = A.view.default(x, [4])
        A.mul_.Tensor(v, 3)
        return A.add.Tensor(x, 1)


@pytest.mark.parametrize("module, value", [(X1, 11), (X2, 12), (X3, 11), (X4, 6), (X5, 4)])
@pytest.mark.parametrize("takes_writes", (False, True))
def test_x1_to_x5(module, value, takes_writes):
    gm = symbolic_trace(module())
    x = torch.ones(2, 2)
    result = cut(gm, (x,), supported=lambda n: takes_writes or "mul_" not in str(n.target))
    assert torch.equal(result(x.clone()), torch.full((2, 2), float(value)))
    if takes_writes and module in (X1, X2, X3):
        assert counted(result) == 1 and not result.meta["cutset"].fallback  # born in the engine


def test_x6_no_tuple_crosses():
    gm = make("a", ["s = split a 2", "g = getitem s 0", "n = add g 1"], "n")
    result = cut(gm, rand(1), supported=FX)
    assert segments(result) == [(False, ("s", "g")), (True, ("n",))]


def test_x7_weights_are_no_borders():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(4, 4))

        def forward(self, a):
            x = torch.sigmoid(torch.relu(torch.mm(a, self.w)))
            return torch.relu(torch.mm(x, self.w))

    gm = symbolic_trace(M())
    result = cut(gm, rand(1), supported={torch.mm, torch.relu})
    assert counted(result) == 2
    for engine in engines(result):
        assert engine.w is gm.w and len(engine.graph.find_nodes(op="get_attr")) == 1


@pytest.mark.parametrize("length", (3, 6, 12))
def test_x8_two_chains(length):
    lines = [f"{c}{i} = {op} {c}{i - 1}" for c, op in (("p", "sin"), ("q", "cos"))
             for i in range(1, length + 1)]
    lines = [x for pair in zip(lines[:length], lines[length:]) for x in pair]
    gm = make("p0 q0", lines, f"p{length} q{length}")
    result = cut(gm, rand(2), supported={"A": [torch.sin], "B": [torch.cos]})
    assert [p.target for p in result.meta["cutset"].parts] == ["A", "B"]


def test_x9_slack():
    gm = make("a b", ["a1 = add a 1", "c1 = relu a1", "a2 = add b 1", "p1 = add c1 a2",
                      "p2 = add p1 1", "p3 = add p2 1"], "p3")
    result = cut(gm, rand(2), supported=FX, min_block_size=3)
    assert engine_sets(result) == [{"a2", "p1", "p2", "p3"}]


def longest(gm, acc):
    """The largest number of accelerated stretches on a path."""
    level = {}
    for node in calls(gm.graph):
        mine = node.name in acc
        level[node] = max([level[a] + (mine and a.name not in acc) for a in node._input_nodes
                           if a in level], default=0)
        if mine:
            level[node] = max(level[node], 1)
    return max((level[n] for n in level if n.name in acc), default=0)


@pytest.mark.parametrize("seed", range(40))
def test_x10_engines_equal_the_longest_path(seed):
    pick = random.Random(seed)
    lines, names = [], ["a", "b"]
    for i in range(pick.randint(5, 60)):
        lines.append(f"n{i} = add {pick.choice(names[-8:])} {pick.choice(names[-8:])}")
        names.append(f"n{i}")
    gm = make("a b", lines, " ".join(names[-3:]))
    acc = {n for n in names if pick.random() < 0.6}
    result = cut(gm, None, supported=lambda n: n.name in acc)
    assert counted(result) == longest(gm, acc) and result.meta["cutset"].engines_proved


# ---- random graphs with writes, views and draws ----

@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    gm, inputs, support = random_graph(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut(gm, inputs, supported=support, min_block_size=1 + seed % 3,
            host_submodules=bool(seed % 2))


# ---- exported programs ----

class State(torch.nn.Module):
    """Buffers and inputs that are written, sizes that are symbols, a dict, a topk, None."""

    def __init__(self):
        super().__init__()
        self.l, self.bn = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x, d):
        self.count.add_(1)
        y = self.bn(self.l(x)) + self.count
        z = y.view(x.shape[0] * 2, 2)
        a, b = torch.split(y, 2, dim=1)
        d["q"].mul_(2)
        with torch.no_grad():
            w = z * 2
        return {"y": y, "z": [w, a + 1, x.shape[0]], "t": torch.topk(b, 1), "n": None,
                "o": self.l.weight.t() + 1}


@pytest.mark.parametrize("training", (False, True))
@pytest.mark.parametrize("host_submodules", (False, True))
def test_exported_state(training, host_submodules):
    shapes = ({0: torch.export.Dim("n", min=2)}, {"q": None})
    args = (torch.rand(4, 4), {"q": torch.rand(3)})
    program = torch.export.export(State().train(training), args, dynamic_shapes=shapes)
    gm = program.module(check_guards=False)
    new = (torch.rand(7, 4), {"q": torch.rand(3)})
    for seed in (None, *range(6)):
        pick = random.Random(seed)
        supported = None if seed is None else {n.target for n in calls(gm.graph)
                                               if pick.random() < 0.7}
        result = cut(gm, new, supported=supported, host_submodules=host_submodules)
        assert set(result(*copy.deepcopy(new))) == {"y", "z", "t", "n", "o"}
    result = cutset.torch.partition(program)
    check(program.module(check_guards=False), result)
    assert result(*copy.deepcopy(new))["z"][2] == 7


def test_exported_keywords():
    class M(torch.nn.Module):
        def forward(self, x, *, scale, shift=None):
            return {"out": (x * scale, scale)}

    program = torch.export.export(M(), (torch.rand(3),), {"scale": torch.rand(3)})
    result = cutset.torch.partition(program)
    x, s = torch.rand(3), torch.rand(3)
    assert torch.equal(result(x, scale=s)["out"][0], x * s)


def test_batch_norm_in_training_writes():
    program = torch.export.export(Net().train(), (torch.rand(2, 3, 16, 16),))
    plan = cutset.torch.plan(program)
    assert "batch_norm" in {f.node for f in plan.fallback}


def test_control_flow():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(4))

        def forward(self, x):
            y = torch.sin(x)
            z = torch.cond(y.sum() > 0, lambda v: v + self.w, lambda v: v - self.w, (y,))
            return torch.cos(z)

    gm = exported(M(), (torch.rand(4),))
    whole = cut(gm, (torch.rand(4),))
    assert counted(whole) == 1 and whole.meta["cutset"].parts[0].weight_bytes == 16
    result = cut(gm, (torch.rand(4),), supported=lambda n: "cond" not in n.name)
    assert counted(result) >= 1


# ---- weights, modules, constants ----

def test_constant_expressions_are_repeated():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(4, 4))

        def forward(self, x):
            t = self.w.t() * 2
            return torch.relu(torch.sin(x @ t) @ t), t

    gm = symbolic_trace(M())
    asked = []

    def support(node):
        asked.append(node.name)
        return node.target is operator.matmul

    result = cut(gm, rand(1), supported=support)
    assert sorted(set(asked)) == ["matmul", "matmul_1", "relu", "sin"]
    plan = result.meta["cutset"]
    holders = [p for p in plan.parts if {"t", "mul"} & {*p.nodes, *p.copies}]
    assert len(holders) == 2 and sum("mul" in p.nodes for p in plan.parts) == 1


def test_asked_once():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(4, 4)

        def forward(self, x):
            a, b = x.chunk(2)
            return self.l(a) + b.relu() + torch.sin(x[:2])

    gm = symbolic_trace(M())
    asked = []
    cut(gm, rand(1), supported=lambda n: asked.append(n.name) or True)
    names = [n.name for n in calls(gm.graph)]
    unasked = {"getitem", "getitem_1"}  # of chunk; the slice of a tensor is asked about
    once = [n for n in names if n not in unasked]
    assert sorted(asked) == sorted(once * 2)  # `cut` plans twice


def test_weights_by_storage():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(8, 8, bias=False)
            self.b = torch.nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("view", self.a.weight.detach()[2:4], persistent=False)
            self.plain = torch.rand(8)

        def forward(self, x):
            return self.b(torch.sin(self.a(x))) + self.view[0] + self.plain

    gm = symbolic_trace(M())
    result = cut(gm, rand(1, 2, 8))
    [part] = result.meta["cutset"].parts
    assert (part.weights, part.weight_bytes) == (2, 8 * 8 * 4 + 8 * 4)
    two = cut(gm, rand(1, 2, 8), torch_executed_ops={torch.sin})
    assert [p.weight_bytes for p in two.meta["cutset"].parts] == [256, 0, 288]
    assert not set(two.state_dict()) & {"view", "plain"}


def test_modules_in_training_stay_on_the_host():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bn, self.drop = torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)
            self.relu = torch.nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.drop(self.bn(x + 1) * 2) + 3)

    gm = symbolic_trace(M().train())
    result = cut(gm, rand(1))
    assert {f.node for f in result.meta["cutset"].fallback} >= {"bn", "drop"}
    result = cut(gm, rand(1), supported=lambda n: True)
    assert "bn" in {f.node for f in result.meta["cutset"].fallback}
    assert not cut(symbolic_trace(M().eval()), rand(1), supported=lambda n: True
                   ).meta["cutset"].fallback


def test_hooks_are_effects():
    seen = []
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    gm = symbolic_trace(module)
    gm.get_submodule("0").register_forward_hook(lambda *a: seen.append(1))
    plan = cutset.torch.plan(gm)
    assert [f.node for f in plan.fallback] == ["_0"]


def test_a_written_buffer_is_an_input():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(4))

        def forward(self, x):
            y = x * self.b
            self.b.add_(1)
            return y + self.b

    gm = exported(M(), (torch.rand(4),))
    result = cut(gm, (torch.rand(4),))
    assert counted(result) == 2
    for engine in engines(result):
        assert not engine.graph.find_nodes(op="get_attr")


def test_dead_writes_are_kept():
    class M(torch.nn.Module):
        def forward(self, x, y):
            y.mul_(2)
            return x + 1

    gm = symbolic_trace(M())
    result = cut(gm, rand(2))
    assert [len(s) for _, s in segments(result)] == [1, 1]
    result.graph.eliminate_dead_code()
    result.recompile()
    x, y = rand(2)
    z = y.clone()
    result(x, z)
    assert torch.equal(z, y * 2)


def test_random_draws_keep_their_order():
    class M(torch.nn.Module):
        def forward(self, x):
            a = torch.rand_like(x)
            b = torch.sin(x) + a
            c = torch.rand_like(x)
            return torch.cos(b) * c

    gm = symbolic_trace(M())
    cut(gm, rand(1))
    cut(gm, rand(1), supported=lambda n: n.name in ("rand_like_1", "sin"))
    cut(gm, rand(1), supported=lambda n: True)


def test_attention_without_dropout_is_supported():
    class M(torch.nn.Module):
        def forward(self, q):
            y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
            return torch.nn.functional.dropout(y, 0.5, False)

    for gm in (exported(M(), (torch.rand(1, 2, 3, 4),)), symbolic_trace(M())):
        assert counted(cut(gm, rand(1, 1, 2, 3, 4))) == 1


def test_returned_tuples_stay_as_they_are():
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.topk(torch.relu(x), 2), x.size(), x

    gm = symbolic_trace(M())
    result = cut(gm, rand(1))
    got = result(torch.rand(3, 3))
    assert type(got[0]) is torch.return_types.topk and type(got[1]) is torch.Size


def test_tuple_inputs():
    g = torch.fx.Graph()
    pair = g.placeholder("pair")
    pair.meta["val"] = (torch.rand(2), torch.rand(2))
    a = g.call_function(operator.getitem, (pair, 0))
    g.output(g.call_function(torch.sin, (a,)))
    gm = GraphModule(torch.nn.Module(), g)
    result = cut(gm, ((torch.rand(2), torch.rand(2)),))
    assert counted(result) == 1


# ---- options ----

def test_names_of_operators():
    gm = exported(ConvBnRelu(), (torch.rand(2, 3, 4, 4),))
    for name in (A.relu.default, A.relu, "torch.ops.aten.relu.default", "aten::relu", "aten.relu",
                 "aten::relu.default", "aten.relu.default"):
        assert counted(cut(gm, supported=[name])) == 2
        assert counted(cut(gm, torch_executed_ops={name})) == 2
    fx = symbolic_trace(Net().eval())
    for name in ("conv1", torch.relu, "_operator.add", operator.add, "torch.flatten"):
        assert counted(cut(fx, supported=[name])) >= 1, name


def test_a_bare_operator_is_no_collection():
    for bare in (A.relu, A.relu.default):
        for what in ("supported", "torch_executed_ops", "non_compute_ops"):
            said = str(refused(cutset.UsageError, **{what: bare}))
            assert f"give a list, {what}=[torch.ops.{bare}]" in said
        refused(cutset.UsageError, supported={"a": bare})


def test_torch_executed_modules():
    gm = exported(Net(), (torch.rand(2, 3, 16, 16),))
    said = str(refused(cutset.UsageError, torch_executed_modules=[torch.nn.Sequential(
        torch.nn.ReLU())]))
    assert "class Sequential" in said and "(0)" not in said
    for name in (torch.nn.Conv2d, "torch.nn.modules.conv.Conv2d", "torch.nn.Conv2d"):
        result = cut(gm, torch_executed_modules=[name])
        assert {f.node for f in result.meta["cutset"].fallback} == {"conv2d", "conv2d_1"}
    fx = symbolic_trace(Net().eval())
    result = cut(fx, torch_executed_modules={torch.nn.BatchNorm2d})
    assert {f.node for f in result.meta["cutset"].fallback} == {"bn"}


def test_support_objects():
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Mine(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            assert all(isinstance(m, torch.nn.Module) for m in submodules.values())
            return node.op == "call_module" and isinstance(submodules[node.target], torch.nn.Conv2d)

    result = cut(symbolic_trace(Net().eval()), supported=Mine())
    assert engine_sets(result) == [{"conv1"}, {"conv2"}]


def test_pins_and_groups():
    gm = make(*S6)
    result = cut(gm, rand(1), supported={torch.sin, torch.relu}, min_block_size=5, pin={"a": "acc"})
    assert engine_sets(result) == [{"a", "b"}]  # its engine may be small
    result = cut(gm, rand(1), pin={"[ab]": "host"})
    assert engine_sets(result) == [{"c", "d", "e"}]
    result = cut(gm, rand(1), supported=lambda n: n.name != "c", groups=[["b", "d"]])
    assert engine_sets(result) == [{"a"}, {"e"}] or counted(result) == 1
    assert {f.rule for f in result.meta["cutset"].fallback} >= {"group"}
    with pytest.raises(cutset.GroupError):
        cutset.torch.plan(gm, supported=lambda n: n.name != "c", groups=[["b", "d"]],
                          pin={"b": "acc"})


def blocks(n, size=64):
    """A chain of n linears of size * size * 4 bytes each."""
    module = torch.nn.Sequential(*(torch.nn.Linear(size, size, bias=False) for _ in range(n)))
    return symbolic_trace(module)


def test_budgets():
    gm, one = blocks(4), 64 * 64 * 4
    x = rand(1, 2, 64)
    for budget, factor, base, expected in ((one, 1, 0, 4), (4 * one, 4, 0, 4), (2 * one, 1, 0, 2),
                                           (8 * one + 7, 4, 7, 2), (f"{4 * one}", 1, 0, 1),
                                           ("max", 4, 0, 1), (2**61, 4, 0, 1), (None, 4, 0, 1)):
        result = cut(gm, x, cpu_memory_budget=budget, memory_factor=factor, memory_base=base)
        assert counted(result) == expected and result.meta["cutset"].engines_proved
    with pytest.raises(cutset.BudgetError) as error:
        cutset.torch.partition(gm, cpu_memory_budget=one, memory_factor=4)
    assert error.value.needed == 4 * one and error.value.budget == one and error.value.atom
    assert "budget" in str(error.value) and str(4 * one) in str(error.value)
    assert counted(cut(gm, x, cpu_memory_budget=one, oversize="host")) == 0
    with pytest.warns(cutset.OversizeWarning) as warned:
        result = cutset.torch.partition(gm, cpu_memory_budget=one, oversize="keep")
    assert len(warned) == 1 and counted(result) == 4
    assert [b for _, b in result.meta["cutset"].oversized] == [4 * one] * 4
    with pytest.raises(cutset.BudgetError):
        cutset.torch.plan(gm, cpu_memory_budget=8 * one, require_full_compilation=True)
    for auto in ("auto", -1):
        assert cutset.torch.plan(gm, cpu_memory_budget=auto).engines == 1


def test_max_engines():
    gm = make(*S6)
    result = cut(gm, rand(1), supported={torch.relu, torch.sigmoid}, max_engines=1)
    assert counted(result) == 1


@pytest.mark.parametrize("branches", (2, 4, 8, 16))
def test_parallel_branches(branches):
    """Branches of 4 equal blocks, a budget of one branch: that many engines, each full."""
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for i in range(branches * 4):
                self.add_module(f"l{i}", torch.nn.Linear(16, 16, bias=False))

        def forward(self, x):
            total = []
            for b in range(branches):
                y = x
                for k in range(4):
                    y = torch.relu(getattr(self, f"l{4 * b + k}")(y))
                total.append(y)
            return total

    branch = 4 * 16 * 16 * 4
    result = cut(symbolic_trace(M()), rand(1, 2, 16), cpu_memory_budget=branch, memory_factor=1)
    parts = result.meta["cutset"].parts
    assert [p.weight_bytes for p in parts] == [branch] * branches


def test_meta_weights_are_planned_and_not_built():
    """Sizes are known without values: a plan and an overview, and no module."""
    with torch.device("meta"):
        module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
    one = 64 * 65 * 4
    options = dict(cpu_memory_budget=one, memory_factor=1)
    graph = torch.fx.Graph()
    x, bias = graph.placeholder("x"), graph.get_attr("0.bias")
    graph.output(graph.call_function(torch.add, (x, bias)))
    for gm, weight, count in ((symbolic_trace(module), "0.weight", 2),
                              (GraphModule(module, graph), "0.bias", 1)):
        before = snapshot(gm)
        assert cutset.torch.plan(gm, **options).engines == count
        assert cutset.torch.support_overview(gm, **options).engines == count
        says = f"weight {weight} .*to_empty.*load_state_dict"
        with pytest.raises(cutset.ModelError, match=says):
            cutset.torch.partition(gm, **options)
        top = torch.fx.Graph()
        top.output(top.call_module("_run_on_acc_0", (top.placeholder("x"),)))
        whole = GraphModule({"_run_on_acc_0": gm}, top)
        with pytest.raises(cutset.ModelError, match=says):
            cutset.torch.resource_partition(whole, one)
        assert snapshot(gm) == before and whole._run_on_acc_0 is gm
        fused = cutset.torch.fuse_partitions(gm, [[calls(gm.graph)[0]]])
        assert len(children(fused)) == 1


# ---- bad input ----

def refused(kind, gm=None, **options):
    gm = gm or make(*S6)
    before = snapshot(gm)
    with pytest.raises(kind) as error:
        cutset.torch.partition(gm, **options)
    with pytest.raises(kind):
        cutset.torch.plan(gm, **options)
    assert snapshot(gm) == before
    message = str(error.value)
    assert message and "\n" not in message and isinstance(error.value, cutset.Error)
    return error.value


def test_a_graph_that_does_not_lint():
    gm = make(*S6)
    nodes = list(gm.graph.nodes)
    nodes[2].append(nodes[1])  # a reader before its maker
    assert isinstance(refused(cutset.ModelError, gm), ValueError)
    gm = make(*S6)
    list(gm.graph.nodes)[2].name = "a"  # a name twice
    refused(cutset.ModelError, gm)


class Held(torch.nn.Module):
    """What broken graphs name: a module with a weight and None for a bias, a buffer."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2, bias=False)
        self.register_buffer("table", torch.ones(2))


def held():
    """x, inner.weight, table, relu(x), add(relu, table), its neg(), inner(neg), inner.weight once
    more, output; by name."""
    graph = torch.fx.Graph()
    x, w, t = graph.placeholder("x"), graph.get_attr("inner.weight"), graph.get_attr("table")
    f = graph.call_function(torch.relu, (x,))
    g = graph.call_function(torch.add, (f, t))
    m = graph.call_method("neg", (g,))
    c = graph.call_module("inner", (m,))
    again = graph.get_attr("inner.weight")
    out = graph.output((c, w, again))
    return torch.fx.GraphModule(Held(), graph), dict(x=x, w=w, t=t, f=f, g=g, m=m, c=c,
                                                     again=again, out=out)


def elsewhere():
    return torch.fx.Graph().placeholder("y")


def unlisted(gm, node):
    gm.graph._find_nodes_lookup_table.remove(node)


EACH = ("x", "w", "t", "f", "g", "m", "c", "again", "out")
# One for each condition of Graph.lint(), at each kind of node that it can break at.
UNLINTED = {
    "unknown kind": lambda gm, n: setattr(n["m"], "op", "call_magic"),
    "a name twice": lambda gm, n: setattr(n["f"], "name", n["g"].name),
    "a weight's name twice": lambda gm, n: setattr(n["w"], "name", n["t"].name),
    "a call with another call's name": lambda gm, n: setattr(n["out"], "name", n["f"].name),
    "read before made": lambda gm, n: n["g"].append(n["f"]),
    "a weight read before made": lambda gm, n: n["g"].append(n["t"]),
    "a value of another graph": lambda gm, n: setattr(n["f"], "args", (elsewhere(),)),
    "a default that is made later": lambda gm, n: setattr(n["x"], "args", (n["g"],)),
    **{f"{k}, which reads what is made later": lambda gm, n, k=k: setattr(n[k], "args", (n["out"],))
       for k in ("w", "again")},
    "a result of another graph": lambda gm, n: setattr(n["out"], "args", (elsewhere(),)),
    **{f"{k} of another graph": lambda gm, n, k=k: object.__setattr__(  # found in gm's all the same
        n[k], "graph", elsewhere().graph) for k in EACH},
    **{f"{k} is not found": lambda gm, n, k=k: unlisted(gm, n[k]) for k in EACH},
    "a function that cannot be called": lambda gm, n: setattr(n["f"], "target", "relu"),
    "a second function that cannot be": lambda gm, n: setattr(n["g"], "target", 7),
    **{f"{k} is named by no string": lambda gm, n, k=k: setattr(n[k], "target", torch.relu)
       for k in ("x", "w", "m", "c", "out")},
    "no such weight": lambda gm, n: setattr(n["t"], "target", "chair"),
    "no such weight of a module": lambda gm, n: setattr(n["w"], "target", "inner.heavy"),
    "no such module on the way": lambda gm, n: setattr(n["w"], "target", "outer.weight"),
    "a weight that is None": lambda gm, n: setattr(n["w"], "target", "inner.bias"),
    "no name of a weight": lambda gm, n: setattr(n["t"], "target", ""),
    "no such module": lambda gm, n: setattr(n["c"], "target", "outer"),
    "no name of a module": lambda gm, n: setattr(n["c"], "target", ""),
    "a tensor called as a module": lambda gm, n: setattr(n["c"], "target", "table"),
    "a weight called as a module": lambda gm, n: setattr(n["c"], "target", "inner.weight"),
}


@pytest.mark.parametrize("what", UNLINTED)
def test_what_lint_refuses_is_refused(what):
    """cutset.torch looks at what `lint` looks at by itself, and asks `lint` for words alone."""
    gm, nodes = held()
    assert len(cutset.torch.plan(gm).parts) == 1
    gm, nodes = held()
    UNLINTED[what](gm, nodes)
    with pytest.raises((RuntimeError, ValueError, AttributeError, TypeError)):
        gm.graph.lint()
    for call in (cutset.torch.plan, cutset.torch.partition):
        with pytest.raises(cutset.ModelError, match="does not lint: .*: correct it") as error:
            call(gm)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("answer", (None, 1, [], object()))
def test_supports_that_answer_nonsense(answer):
    error = refused(cutset.Error, supported=lambda n: answer)
    assert error.node == "a" and isinstance(error, ValueError)


def test_supports_that_raise():
    def bad(node):
        raise KeyError(node.name)

    error = refused(cutset.Error, supported=bad)
    assert error.node == "a" and isinstance(error.__cause__, KeyError)
    with pytest.raises(KeyboardInterrupt):
        def stop(node):
            raise KeyboardInterrupt
        cutset.torch.plan(make(*S6), supported=stop)


@pytest.mark.parametrize("options", [
    {"supported": 5}, {"supported": "trt"}, {"supported": [5]}, {"supported": {}},
    {"supported": {1: None}}, {"min_block_size": -1}, {"min_block_size": 1.5},
    {"min_block_size": "2"}, {"cpu_memory_budget": 0}, {"cpu_memory_budget": -2},
    {"cpu_memory_budget": "lots"}, {"cpu_memory_budget": 1.5}, {"cpu_memory_budget": True},
    {"cpu_memory_budget": 100, "memory_base": 100}, {"memory_base": -1}, {"memory_factor": -1},
    {"memory_factor": "4"}, {"memory_factor": math.nan}, {"oversize": "maybe"}, {"max_engines": 0},
    {"groups": ["a"]}, {"groups": [["a", "nowhere"]]}, {"groups": 3}, {"pin": {"nowhere": "acc"}},
    {"pin": {"a": "gpu"}}, {"pin": 3}, {"torch_executed_ops": "relu"}, {"torch_executed_ops": 3},
    {"torch_executed_modules": torch.nn.Linear}, {"torch_executed_modules": [3]},
    {"non_compute_ops": 3}, {"objective": "speed"}, {"require_full_compilation": "yes"},
    {"allow_non_tensor": None},
])
def test_bad_options(options):
    assert isinstance(refused(cutset.UsageError, **options), ValueError)


def test_names_that_match_nothing_where_they_may():
    gm = make(*S6)
    assert counted(cut(gm, supported=["nothing"], torch_executed_ops=["x.y"],
                       torch_executed_modules=["a.B"])) == 0


def test_what_is_no_model():
    for model in (torch.nn.Linear(2, 2), None, "model.onnx", make(*S6).graph):
        with pytest.raises(cutset.UsageError):
            cutset.torch.partition(model)


def test_full_support_missing():
    error = refused(cutset.NotFullySupportedError, supported={torch.sin},
                    require_full_compilation=True)
    assert set(error.nodes) == {"b", "c", "d", "e"}
    error = refused(cutset.NotFullySupportedError, supported={"A": [torch.sin], "B": [torch.relu]},
                    gm=make("x", ["a = sin x", "b = relu a"], "b"), require_full_compilation=True)
    assert set(error.nodes) == {"a", "b"}


def test_full_compilation_finds_the_accelerator_that_takes_all():
    gm = make("x", ["a = sin x", "b = relu a"], "b")
    result = cut(gm, rand(1), supported={"A": [torch.sin], "B": None},
                 require_full_compilation=True)
    assert [p.target for p in result.meta["cutset"].parts] == ["B"]


def test_constants_of_export_are_constants():
    """torch.export writes torch.tensor(2.) as lift_fresh_copy and detach_."""
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.relu(x * torch.tensor(2.0)))

    gm = exported(M(), rand(1))
    assert any("detach_" in str(n.target) for n in calls(gm.graph))
    assert counted(cut(gm, rand(1), require_full_compilation=True)) == 1


def test_children_that_are_graphs():
    class Inner(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(4, 4)

        def forward(self, x):
            y = torch.relu(self.l(x))
            return y.mul_(2)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = symbolic_trace(Inner())

        def forward(self, x):
            return self.inner(x) + self.inner(torch.sin(x))

    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, module, name):
            return True

    root = Outer()
    gm = GraphModule(root, Tracer().trace(root))
    result = cut(gm, rand(1), supported=lambda n: n.name != "sin")
    assert counted(result) == 1 and result.meta["cutset"].parts[1].weight_bytes == 80
    again = cutset.torch.partition(result, supported=lambda n: n.name == "_run_on_acc_1",
                                   host_submodules=False)
    [x] = rand(1)
    assert torch.equal(again(x), gm(x))


def test_operators_of_libraries():
    gm = exported(Twice(), (torch.rand(3),))
    result = cut(gm, (torch.rand(3),), supported=lambda n: True)
    assert [acc for acc, _ in segments(result)] == [True, False, True]  # what is the caller's


@torch.library.custom_op("cutset_tests::inc", mutates_args={"x"})
def inc(x: torch.Tensor) -> None:
    x.add_(1)


class Twice(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        torch.ops.cutset_tests.inc(y)
        z = torch.sin(y)
        torch.ops.cutset_tests.inc(x)
        return z + x


def test_odd_arguments_and_results():
    class M(torch.nn.Module):
        def forward(self, x, y=None, k=3):
            a = torch.relu(x) * k
            return [a, (a, x)], {"q": a, "x": x, "c": 7}

    gm = symbolic_trace(M())
    for supported in (None, {torch.relu}):
        cut(gm, rand(1), supported=supported)


def test_constants_alone_make_no_engine():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.rand(4, 4))

        def forward(self, x):
            return self.w.t(), torch.sin(x)

    gm = symbolic_trace(M())
    assert counted(cut(gm, rand(1), supported=())) == 0
    assert counted(cut(gm, rand(1), require_full_compilation=True)) == 1


def test_slices_of_inputs_are_no_tuples():
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.sin(x[:2]) + x[0]

    assert counted(cut(symbolic_trace(M()), rand(1), require_full_compilation=True)) == 1


def test_whole_sizes_are_repeated():
    class M(torch.nn.Module):
        def forward(self, x, y):
            shape = x.size()
            a = torch.sin(y.view(shape))
            return torch.cos(torch.relu(a).view(shape) + shape[0])

    gm = symbolic_trace(M())
    result = cut(gm, rand(2), torch_executed_ops=[torch.relu])
    plan = result.meta["cutset"]
    assert plan.engines == 2 and any("size" in p.copies for p in plan.parts)
    result = cut(gm, rand(2), torch_executed_ops=["size"])  # then its readers are on the host too
    assert not any({"view", "view_1"} & e for e in engine_sets(result))


def test_a_write_elsewhere_cuts_nothing():
    class M(torch.nn.Module):
        def forward(self, x, y):
            y.add_(1)
            z = torch.nn.functional.linear(y, x)
            y.mul_(2)
            w = torch.nn.functional.relu(z)
            return torch.sin(w) + torch.nn.functional.interpolate(w[None], 4)[0]

    result = cut(symbolic_trace(M()), rand(2))
    assert [len(n) for acc, n in segments(result) if acc] == [7]  # all but the writes


def test_autocast_regions_are_kept():
    class M(torch.nn.Module):
        def forward(self, x):
            a = x @ x
            with torch.autocast("cpu", dtype=torch.bfloat16):
                b = x @ x
            return a, b, x @ b.float()

    gm = exported(M(), rand(1))
    cut(gm, rand(1))
    g = torch.fx.Graph()
    x = g.placeholder("x")
    a = g.call_function(torch.matmul, (x, x))
    mode = g.call_function(torch.amp.autocast_mode._enter_autocast,
                           ("cpu", torch.bfloat16, True, True))
    b = g.call_function(torch.matmul, (x, x))
    g.call_function(torch.amp.autocast_mode._exit_autocast, (mode,))
    c = g.call_function(torch.matmul, (x, x))
    g.output((a, b, c))
    gm = GraphModule(torch.nn.Module(), g)
    result = cut(gm, rand(1), supported=lambda n: True)
    assert [r.dtype for r in result(*rand(1))] == [torch.float32, torch.bfloat16, torch.float32]


def test_the_result_can_be_copied_and_pickled():
    import pickle
    gm = make(*S6)
    result = cut(gm, rand(1), supported={torch.relu})
    again = copy.deepcopy(result)
    assert again.meta["cutset"] == result.meta["cutset"]
    loaded = pickle.loads(pickle.dumps(result))
    [x] = rand(1)
    assert torch.equal(again(x), gm(x)) and torch.equal(loaded(x), gm(x))


def test_import_is_light():
    import subprocess
    code = ("import sys, cutset; assert 'torch' not in sys.modules; cutset.torch.partition; "
            "assert 'torch' in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_batch_norm_is_no_view():
    """In evaluation it makes a new tensor: a write on its result leaves it in its engine."""
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True)
    model = torch.nn.Sequential(*layers).eval()
    program = torch.export.export(model, (torch.rand(1, 3, 8, 8),))
    plan = cutset.torch.plan(program)
    assert [(p.target, p.nodes) for p in plan.parts] == [
        ("acc", ("conv2d", "batch_norm")), ("host", ("relu_",))]
