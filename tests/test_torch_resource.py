"""resource_partition: the original's cases and defects, brute force, what it does to a module."""
import copy
import functools
import itertools
import operator
import os
import random
import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch.fx import Graph, GraphModule  # noqa: E402

import cutset  # noqa: E402
import cutset.torch  # noqa: E402
from cutset.torch import _partition, resource_partition  # noqa: E402
from torch_checks import AsValues, check_part, weight_bytes  # noqa: E402

LONG = os.environ.get("CUTSET_LONG") == "1"
MiB, GiB = 2**20, 2**30
aten = torch.ops.aten
resource = functools.partial(resource_partition, memory_factor=1)


def use(x, *weights):
    """Reads weights of any size."""
    for w in weights:
        x = x + w.flatten()[0]
    return x


class Net:
    """Writes a graph: weights are 1000 bytes a unit unless they are given."""

    def __init__(self, *inputs):
        self.root, self.graph = torch.nn.Module(), Graph()
        self.inputs = [self.graph.placeholder(name) for name in inputs or ("x",)]

    def weight(self, name, value, buffer=False):
        """By units, or by a tensor. Memory nobody touches costs nothing: `use` reads one number."""
        if not isinstance(value, torch.Tensor):
            value = torch.empty(250 * value)
            value[:1] = 0.5
        if buffer:
            self.root.register_buffer(name, value)
        elif not hasattr(self.root, name):
            self.root.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
        return self.graph.get_attr(name)

    def call(self, target, *args, **kwargs):
        return self.graph.call_function(target, args, kwargs)

    def use(self, x, *units):
        """A node with new weights, or given ones."""
        weights = [u if isinstance(u, torch.fx.Node) else
                   self.weight(f"w{len(self.graph.nodes)}", u) for u in units]
        return self.call(use, x, *weights)

    def done(self, *results):
        self.graph.output(results if len(results) != 1 else results[0])
        return GraphModule(self.root, self.graph)


def whole(gm, name="_run_on_acc_0"):
    """A module whose only child is `gm`."""
    graph = Graph()
    args = [graph.placeholder(n.target) for n in gm.graph.find_nodes(op="placeholder", sort=True)]
    call = graph.call_module(name, tuple(args))
    result = gm.graph.output_node().args[0]
    if isinstance(result, tuple):
        graph.output(tuple(graph.call_function(operator.getitem, (call, i))
                           for i in range(len(result))))
    else:
        graph.output(call)
    root = torch.nn.Module()
    root.add_module(name, gm)
    return GraphModule(root, graph)


def pieces_of(gm):
    """(name, bytes) of the children on an accelerator, in the order of their calls."""
    names = [n.target for n in gm.graph.nodes
             if n.op == "call_module" and "_run_on_acc" in n.target]
    return [(name, weight_bytes(gm.get_submodule(name))) for name in names]


def sizes(gm):
    return [size for _, size in pieces_of(gm)]


def call_names(graph):
    return [n.name for n in graph.nodes if n.op.startswith("call_")]


def check(gm, child, budget):
    """The rules of pieces, for a module whose only child was `child`."""
    gm.graph.lint()
    names = [name for piece in gm.children() for name in call_names(piece.graph)]
    assert sorted(set(names)) == sorted(call_names(child.graph))
    plan = gm.meta["cutset_resource"]["_run_on_acc_0"]
    order = {node.name: i for i, node in enumerate(child.graph.nodes)}
    by_name = {node.name: node for node in child.graph.nodes}
    for k, part in enumerate(plan.parts):
        name = "_run_on_acc_0" + f"_resource_split_{k}" * (len(plan.parts) > 1)
        if len(plan.parts) > 1:  # what fits stays as it was
            check_part(child, gm.get_submodule(name), part, by_name, order)
        assert part.weight_bytes == weight_bytes(gm.get_submodule(name))
        assert part.oversized or part.weight_bytes <= budget
    assert len(list(gm.children())) == len(plan.parts)
    for graph in (gm.graph, *(piece.graph for piece in gm.children())):
        assert not any(hasattr(node, "tag") for node in graph.nodes)


# ---- C.4 ----

def conv_layer(net, x, i, into, out, act=True):
    """Convolution 3x3, batch norm, relu as core ATen has them."""
    def weight(name, *shape):
        return net.weight(f"{name}{i}", torch.empty(shape))
    x = net.call(aten.convolution.default, x, weight("conv", out, into, 3, 3), weight("bias", out),
                 [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    x = net.call(aten._native_batch_norm_legit_no_training.default, x, weight("gamma", out),
                 weight("beta", out), weight("mean", out), weight("var", out), 0.1, 1e-5)
    x = net.call(operator.getitem, x, 0)
    return net.call(aten.relu.default, x) if act else x


def pool(net, x):
    x = net.call(aten.max_pool2d_with_indices.default, x, [2, 2], [2, 2])
    return net.call(operator.getitem, x, 0)


def head(net, x, inputs):
    x = net.call(aten.view.default, x, [1, inputs])
    weight = net.call(aten.permute.default, net.weight("fc", torch.empty(10, inputs)), [1, 0])
    return net.call(aten.addmm.default, net.weight("fc_bias", torch.empty(10)), x, weight)


def net_r1():
    net = Net()
    x = conv_layer(net, net.inputs[0], 1, 1024, 4096)
    x = conv_layer(net, pool(net, x), 2, 4096, 1024)
    return net.done(head(net, pool(net, x), 1024 * 56 * 56))


def net_r2():
    net = Net()
    x = conv_layer(net, net.inputs[0], 1, 1024, 4096)
    x = pool(net, conv_layer(net, x, 2, 4096, 4096))
    x = conv_layer(net, x, 3, 4096, 4096)
    x = pool(net, conv_layer(net, x, 4, 4096, 1024))
    return net.done(head(net, x, 1024 * 56 * 56))


def parted_r2():
    gm = cutset.torch.partition(net_r2(), torch_executed_ops=[aten.max_pool2d_with_indices])
    assert sorted(gm._modules) == ["_run_on_acc_0", "_run_on_acc_2", "_run_on_acc_4",
                                   "_run_on_gpu_1", "_run_on_gpu_3"]
    return gm


LESS = {"memory_base": 512 * MiB}  # where the original takes its own resident memory off


def test_r1():
    child = net_r1()
    gm = whole(child)
    total = weight_bytes(child)
    assert round(total / MiB, 1) == 410.6
    # G57: 1,642 MiB at factor 4: one engine under 2 GiB
    assert resource_partition(gm, 2 * GiB) is gm and list(gm._modules) == ["_run_on_acc_0"]
    assert gm.meta["cutset_resource"]["_run_on_acc_0"].engines == 1
    # R1: 384 MiB per engine
    resource_partition(gm, 2 * GiB, **LESS)
    assert list(gm._modules) == ["_run_on_acc_0_resource_split_0", "_run_on_acc_0_resource_split_1"]
    check(gm, child, 384 * MiB)
    plan = gm.meta["cutset_resource"]["_run_on_acc_0"]
    assert (plan.engines, plan.engines_bound, plan.engines_proved) == (2, 2, True)
    # R5: 9 and 3 operators there, the border 1x1024x112x112. What is folded goes with its reader.
    counts = [len(call_names(piece.graph)) for piece in gm.children()]
    assert sum(counts) == len(call_names(child.graph))
    last = gm.get_submodule("_run_on_acc_0_resource_split_1").graph
    assert {"permute_default", "addmm_default"} <= {n.name for n in last.nodes}


@pytest.mark.parametrize("less, per_engine", [(512 * MiB, 230.4 * MiB), (0, 358.4 * MiB)])
def test_r2_and_g58(less, per_engine):
    gm = parted_r2()
    with pytest.warns(cutset.OversizeWarning) as seen:
        resource_partition(gm, int(1.4 * GiB), memory_base=less)
    assert len(seen) == 1 and "budget" in str(seen[0].message)
    assert len([n for n in gm._modules if "_run_on_gpu" in n]) == 2
    assert [round(size / MiB) for size in sizes(gm)] == [144, 576, 576, 144, 123]
    assert sum(size > per_engine for size in sizes(gm)) == 2
    plans = gm.meta["cutset_resource"]
    assert [(name, plans[name].engines, len(plans[name].oversized)) for name in sorted(plans)] == [
        ("_run_on_acc_0", 2, 1), ("_run_on_acc_2", 2, 1), ("_run_on_acc_4", 1, 0)]


def test_r3_registered_patterns_chain():
    @cutset.torch.register_atomic_subgraph(is_core_aten=True)
    class ReluConv(torch.nn.Module):
        def forward(self, x, weight, bias, stride, padding, dilation, transposed, output, groups):
            return aten.convolution.default(aten.relu.default(x), weight, bias, stride, padding,
                                            dilation, transposed, output, groups)

    gm = parted_r2()
    try:
        with pytest.warns(cutset.OversizeWarning):
            resource_partition(gm, int(1.4 * GiB), **LESS)
    finally:
        cutset.torch.ATOMIC_SUBGRAPHS.pop()
    assert [round(size / MiB) for size in sizes(gm)] == [720, 720, 123]
    assert len(gm._modules) == 5  # and two host parts


def test_r4_a_pattern_is_never_cut():
    net = Net()
    x = conv_layer(net, net.inputs[0], 1, 8, 8)
    gm = whole(net.done(head(net, x, 8)))
    # the convolution alone would fit with the head as well: a cut before relu is the tempting one
    resource(gm, weight_bytes(gm._run_on_acc_0) - 1)
    [first] = [set(call_names(piece.graph)) for piece in gm.children()
               if "convolution_default" in call_names(piece.graph)]
    assert {"convolution_default", "relu_default", "getitem"} <= first


def test_row_83():
    """151, 151 and 128 MB under 384 MB: two engines."""
    net = Net()
    x = net.inputs[0]
    for i, size in enumerate((151, 151, 128)):
        x = net.call(use, x, net.weight(f"w{i}", torch.empty(size * 250_000)))
    gm = whole(net.done(x))
    resource_partition(gm, 2_000_000_000, memory_base=512_000_000)
    assert len(sizes(gm)) == 2 and max(sizes(gm)) <= 372_000_000


@pytest.mark.parametrize("act", [True, False])
def test_rows_84_and_85(act):
    """With convolution and relu atomic or not: 5 engines, two of one operator over the budget."""
    net = Net()
    x = net.inputs[0]
    for i, (into, out) in enumerate(((1024, 4096), (4096, 4096), (4096, 4096), (4096, 1024))):
        weight = net.weight(f"conv{i}", torch.empty(out, into, 3, 3))
        x = net.call(aten.convolution.default, x, weight, None, [1, 1], [1, 1], [1, 1], False,
                     [0, 0], 1)
        x = net.call(aten.relu.default, x) if act else x
        x = pool(net, x) if i % 2 else x
    gm = cutset.torch.partition(net.done(head(net, x, 1024 * 56 * 56)),
                                torch_executed_ops=["torch.ops.aten.max_pool2d_with_indices"])
    with pytest.warns(cutset.OversizeWarning):
        resource_partition(gm, int(1.4 * GiB), **LESS)
    assert [round(size / MiB) for size in sizes(gm)] == [144, 576, 576, 144, 123]
    assert len(gm._modules) == 7


# ---- A.5: what the original does wrong ----

def chain(*units):
    net = Net()
    x = net.inputs[0]
    for size in units:
        x = net.use(x, size) if size else net.call(torch.relu, x)
    return net.done(x)


def cut(child, budget, **options):
    """Sizes in units after the cut; every rule of pieces is checked."""
    gm = whole(child)
    resource(gm, budget * 1000, **options)
    check(gm, child, budget * 1000)
    return [size / 1000 for size in sizes(gm)], gm


@pytest.mark.parametrize("budget, expected", [
    (150, [100] * 4), (100, [100] * 4), (200, [200, 200]), (399, None), (400, [400])])
def test_a5_chain_of_four(budget, expected):
    found, _ = cut(chain(100, 100, 100, 100), budget)
    assert found == expected or (expected is None and len(found) == 2)


def test_a5_chain_under_a_budget_no_node_fits():
    gm = whole(chain(100, 100, 100, 100))
    with pytest.warns(cutset.OversizeWarning, match="100000 bytes alone, over the budget of 99000, "
                      "the largest of 4") as seen:
        resource(gm, 99_000)
    assert len(seen) == 1 and sizes(gm) == [100_000] * 4
    with pytest.raises(cutset.BudgetError, match="budget") as info:
        resource(whole(chain(100, 100)), 99_000, oversize="error")
    assert isinstance(info.value, ValueError) and "100000" in str(info.value)


def test_a5_chains_of_500():
    found, _ = cut(chain(*[1] * 500), 50)
    assert found == [50] * 10
    found, _ = cut(chain(*[1] * 500), 11)
    assert len(found) == 46 and max(found) <= 11


def test_a5_two_towers():
    net = Net()
    towers = [net.inputs[0]] * 2
    for _ in range(4):
        towers = [net.use(x, 100) for x in towers]
    found, _ = cut(net.done(net.call(operator.add, *towers)), 200)
    assert found == [200] * 4


def test_a5_eight_independent_nodes_and_a_sum():
    net = Net()
    nodes = [net.use(net.inputs[0], 100) for _ in range(8)]
    total = functools.reduce(lambda a, b: net.call(operator.add, a, b), nodes)
    found, _ = cut(net.done(total), 250)
    assert sorted(found) == [200] * 4


def test_a5_tied_weights_count_once_a_piece_and_in_each():
    net = Net()
    tied = net.weight("tied", 300)
    x = net.use(net.inputs[0], tied)
    x = net.use(net.use(x, 100), 100)
    x = net.use(x, tied)
    found, gm = cut(net.done(x), 350)
    assert found == [300, 200, 300]
    first, _, last = gm.children()
    assert first.tied is last.tied
    # a view and a second name are the same memory
    net = Net()
    base = torch.empty(25_000)
    x = net.call(use, net.inputs[0], net.weight("a", base), net.weight("b", base[5:]))
    found, _ = cut(net.done(net.call(use, x, net.weight("c", base.view(5, 5000)))), 100)
    assert found == [100]


def test_a5_one_large_node():
    for child, rest in ((chain(500, 0), 1), (chain(*[0] * 300, 500), 300)):
        gm = whole(child)
        with pytest.warns(cutset.OversizeWarning, match="500000 bytes alone") as seen:
            resource(gm, 100_000)
        assert len(seen) == 1 and sizes(gm) == [500_000]
        assert len(call_names(gm._run_on_acc_0.graph)) == rest + 1


def test_a5_pattern_chain():
    net = Net()
    x = net.inputs[0]
    for i in range(4):
        x = net.call(aten.mul.Tensor, x, net.weight(f"m{i}", 100))
        x = net.call(aten.add.Tensor, x, net.weight(f"a{i}", torch.empty(250)))
    child = net.done(x)
    found, _ = cut(child, 150)
    assert found == [101] * 4
    # 151 would hold mul, add, mul: only without patterns
    for patterns in (True, False):
        assert len(cut(child, 202, atomic_subgraphs=patterns)[0]) == 2
        found, _ = cut(child, 201, atomic_subgraphs=patterns)
        assert len(found) == (4 if patterns else 3)


@pytest.mark.parametrize("branches", [2, 4, 8, 16])
@pytest.mark.parametrize("breadth_first", [False, True])
def test_parallel_branches(branches, breadth_first):
    """Budget = one branch of 4 blocks: as many engines, each exactly the budget."""
    net = Net()
    ends = [net.inputs[0]] * branches
    for _ in range(4) if breadth_first else ():
        ends = [net.use(x, 25) for x in ends]
    if not breadth_first:
        for i in range(branches):
            for _ in range(4):
                ends[i] = net.use(ends[i], 25)
    found, gm = cut(net.done(functools.reduce(
        lambda a, b: net.call(operator.add, a, b), ends)), 100)
    assert found == [100] * branches
    assert gm.meta["cutset_resource"]["_run_on_acc_0"].engines_proved


def test_constant_expressions_go_with_their_readers():
    net = Net()
    big = net.weight("big", torch.rand(40, 50))
    turned = net.call(torch.t, big)
    x = net.use(net.inputs[0], 4, 4)
    x = net.call(torch.add, x, net.call(torch.sum, turned))
    x = net.use(x, 5)
    x = net.call(torch.mul, x, net.call(torch.sum, turned))
    child = net.done(x)
    want = child(torch.ones(3))
    found, gm = cut(child, 13)
    assert max(found) <= 13
    holders = [piece for piece in gm.children() if "t" in call_names(piece.graph)]
    assert holders and all(piece.big is child.big for piece in holders)
    assert torch.equal(gm(torch.ones(3)), want)


def test_missing_state_dict_entries_are_sized_from_the_attribute():
    net = Net()
    net.root.plain, net.root.cache = torch.empty(25_000), torch.empty(25_000)
    x = net.call(use, net.inputs[0], net.graph.get_attr("plain"))
    child = net.done(net.call(use, x, net.graph.get_attr("cache")))
    del child._buffers["plain"]
    child.plain = net.root.plain  # neither parameter nor buffer
    child.register_buffer("cache", net.root.cache, persistent=False)
    assert not child.state_dict()
    assert cut(child, 100)[0] == [100, 100]


# ---- against brute force ----

def fewest(child, budget, groups=()):
    """The least number of pieces: a shortest way through the sets of nodes that may run first.
    A piece fits, or holds one atom that does not and nothing that adds to its bytes."""
    nodes = [n for n in child.graph.nodes if n.op == "call_function"]
    index = {n: i for i, n in enumerate(nodes)}
    owned = [{a.target for a in n.args if a.op == "get_attr"} for n in nodes]
    need = [sum(1 << index[a] for a in n.args if a in index) for n in nodes]
    size_of = {name: getattr(child, name).numel() * 4 for names in owned for name in names}
    atoms = {i: {i} for i in range(len(nodes))}
    for group in groups:
        merged = set().union(*(atoms[index[n]] for n in group))
        for i in merged:
            atoms[i] = merged
    masks = {sum(1 << i for i in atom) for atom in map(frozenset, atoms.values())}

    def cost(mask):
        return sum(size_of[w] for w in set().union(
            *(owned[i] for i in range(len(nodes)) if mask >> i & 1)))

    over = [m for m in masks if cost(m) > budget]

    def fits(mask):
        held = [m for m in over if mask & m]
        return cost(mask) <= (budget if not held else cost(held[0])) and len(held) < 2

    full = (1 << len(nodes)) - 1
    closed = [m for m in range(full + 1)
              if all(need[i] & ~m == 0 for i in range(len(nodes)) if m >> i & 1)
              and all(m & a in (0, a) for a in masks)]
    least = {0: 0}
    for mask in closed:
        for before in closed:
            if before != mask and before & ~mask == 0 and before in least and fits(mask & ~before):
                least[mask] = min(least.get(mask, 99), least[before] + 1)
    return least[full]


def random_child(rng, n):
    net = Net("x", "y")
    weights = [net.weight(f"tied{i}", rng.randrange(1, 8)) for i in range(2)]
    made = list(net.inputs)
    for i in range(n):
        inputs = rng.sample(made[-5:], rng.randrange(1, 3))
        own = [net.weight(f"w{i}", rng.randrange(1, 8))] if rng.random() < 0.7 else []
        tied = [rng.choice(weights)] if rng.random() < 0.3 else []
        made.append(net.call(use, *inputs, *own, *tied))
    ends = [m for m in made[2:] if not m.users]
    return net.done(*ends)


def test_against_brute_force():
    for seed in range(1500 if LONG else 120):
        rng = random.Random(seed)
        child = random_child(rng, rng.randrange(2, 9))
        budget = rng.randrange(3, 20)
        calls = [n for n in child.graph.nodes if n.op == "call_function"]
        groups = [rng.sample(calls, 2)] if rng.random() < 0.3 and len(calls) > 2 else []
        if groups and not convex(calls, groups[0]):
            groups = []
        best = fewest(child, budget * 1000, groups)
        gm = whole(child)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cutset.OversizeWarning)
            resource(gm, budget * 1000, groups=groups)
        plan = gm.meta["cutset_resource"]["_run_on_acc_0"]
        assert plan.engines == len(sizes(gm))
        assert (plan.engines, plan.engines_proved) == (best, True), seed


def convex(calls, group):
    """Does no path leave the group and come back?"""
    inside, tainted = set(group), set()
    for node in calls:
        if any(a in tainted for a in node.args if a in calls):
            if node in inside:
                return False
            tainted.add(node)
        elif node not in inside and any(a in inside for a in node.args):
            tainted.add(node)
    return True


# ---- results, and the module ----

def run(gm, *args):
    with torch.no_grad():
        return gm(*args)


def test_random_modules_compute_what_they_did():
    for seed in range(200 if LONG else 25):
        rng = random.Random(f"eager {seed}")
        child = random_child(rng, rng.randrange(2, 20))
        for tensor in child.parameters():
            tensor.uniform_()
        gm = whole(child)
        x, y = torch.rand(3), torch.rand(3)
        want = run(gm, x, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cutset.OversizeWarning)
            resource(gm, rng.randrange(2, 30) * 1000)
        got = run(gm, x, y)
        assert all(map(torch.equal, *(t if isinstance(t, tuple) else (t,) for t in (got, want))))
        check(gm, child, 1 << 60)


def snapshot(gm):
    return (gm.code, [(name, id(module)) for name, module in gm._modules.items()],
            [(n.name, n.op, str(n.target), str(n.args)) for n in gm.graph.nodes],
            dict(gm.meta))


def test_a_second_call_changes_nothing():
    gm = whole(chain(100, 100, 100, 100))
    resource(gm, 150_000)
    before = snapshot(gm)
    assert resource(gm, 150_000) is gm
    assert snapshot(gm) == before
    resource(gm, "200kB".replace("k", "K"))
    assert snapshot(gm)[1] == before[1]
    # less memory cuts pieces again
    gm = whole(chain(100, 100, 100, 100))
    resource(gm, 200_000)
    resource(gm, 100_000)
    assert [name for name, _ in pieces_of(gm)] == [
        f"_run_on_acc_0_resource_split_{i}_resource_split_{k}" for i in (0, 1) for k in (0, 1)]
    assert not hasattr(gm, "_run_on_acc_0")


def test_what_raises_leaves_the_module_as_it_was():
    gm = whole(chain(*[100] * 60))
    for node in [*gm.graph.nodes, *gm._run_on_acc_0.graph.nodes]:
        node.tag = "kept"
    before = snapshot(gm)
    for options, error in [
            (dict(cpu_memory_budget=100_000), cutset.BudgetError),
            (dict(cpu_memory_budget=50_000, oversize="error"), cutset.BudgetError),
            (dict(cpu_memory_budget=0), ValueError), (dict(cpu_memory_budget=-2), ValueError),
            (dict(cpu_memory_budget="many"), ValueError), (dict(cpu_memory_budget=1.5), ValueError),
            (dict(cpu_memory_budget=True), ValueError),
            (dict(cpu_memory_budget=1000, memory_base=1000), ValueError),
            (dict(cpu_memory_budget=1000, memory_base=-1), ValueError),
            (dict(cpu_memory_budget=1000, memory_factor=-1), ValueError),
            (dict(cpu_memory_budget=1000, memory_factor=float("nan")), ValueError),
            (dict(cpu_memory_budget=1000, oversize="maybe"), ValueError),
            (dict(cpu_memory_budget=1000, max_engines=0), ValueError),
            (dict(cpu_memory_budget=1000, groups=[["no_such_node"]]), ValueError),
            (dict(cpu_memory_budget=1000, groups=["use"]), ValueError)]:
        with pytest.raises(error) as info:
            resource_partition(gm, **{"memory_factor": 1, **options})
        assert isinstance(info.value, cutset.Error) and "\n" not in str(info.value)
        assert snapshot(gm) == before
        assert all(n.tag == "kept" for n in gm.graph.nodes)
    resource(gm, 100_000 * 60)
    assert not any(hasattr(n, "tag") for n in [*gm.graph.nodes, *gm._run_on_acc_0.graph.nodes])


def test_more_pieces_than_max_engines():
    gm = whole(chain(*[100] * 60))
    with pytest.raises(ValueError, match="60 pieces under a budget of 100000 bytes") as info:
        resource(gm, 100_000)
    assert info.value.budget == 100_000
    enough = int(re.search(r"a budget of (\d+) bytes would do", str(info.value))[1])
    assert enough == info.value.needed <= 210_000
    resource(gm, enough)
    assert len(sizes(gm)) <= 50
    gm = whole(chain(*[100] * 60))
    resource(gm, 100_000, max_engines=60)
    assert len(sizes(gm)) == 60
    # decided by the plan, not by size over budget: 51 x 99 is under 50.5 budgets of 100
    gm = whole(chain(*[99] * 51))
    with pytest.raises(cutset.BudgetError, match="51 pieces"):
        resource(gm, 100_000)
    gm = whole(chain(*[2] * 102))
    with pytest.raises(cutset.BudgetError, match="51 pieces"):
        resource(gm, 4000)


def test_budgets(monkeypatch):
    def plan_of(*args, **options):
        gm = whole(chain(100, 100, 100, 100))
        resource_partition(gm, *args, **options)
        return gm.meta["cutset_resource"]["_run_on_acc_0"]

    monkeypatch.setattr(_partition, "available_memory", lambda: 800_000)
    auto = plan_of()
    assert auto.engines == 2 and auto == plan_of("auto") == plan_of(-1) == plan_of(800_000)
    assert plan_of(memory_base=400_000).engines == 4
    monkeypatch.setattr(_partition, "available_memory", None)  # an explicit budget never asks
    assert plan_of(1_600_000).engines == 1
    assert plan_of("1600KB").engines == 1
    assert plan_of(1_599_999).engines == 2
    assert plan_of(400_000, memory_factor=1.0).engines == 1
    assert plan_of(500_000, memory_factor=1, memory_base="100KB").engines == 1
    assert plan_of(500_000, memory_factor=1, memory_base=100_001).engines == 2


def test_children_that_fit_and_others_stay():
    net = Net()
    small, large = chain(10, 10), chain(100, 100)
    root = torch.nn.Module()
    for name, module in (("first_run_on_acc_9", small), ("_run_on_gpu_1", chain(100, 100)),
                         ("_run_on_acc_2", large), ("_run_on_acc_3", torch.nn.ReLU())):
        root.add_module(name, module)
    x = net.graph.placeholder("y")
    for name in root._modules:
        x = net.graph.call_module(name, (x,))
    net.graph.output(x)
    gm = GraphModule(root, net.graph)
    want = run(gm, None, torch.ones(2))
    resource(gm, 100_000)
    assert list(gm._modules) == ["first_run_on_acc_9", "_run_on_gpu_1",
                                 "_run_on_acc_2_resource_split_0", "_run_on_acc_2_resource_split_1",
                                 "_run_on_acc_3"]
    assert gm.first_run_on_acc_9 is small
    assert sorted(gm.meta["cutset_resource"]) == ["_run_on_acc_2", "first_run_on_acc_9"]
    assert torch.allclose(run(gm, None, torch.ones(2)), want)


def test_calls_of_every_form():
    """Arguments by name, defaults, a tuple read whole, a weight and an input handed through, two
    calls of one child."""
    net = Net("a")
    scale = net.graph.placeholder("scale", default_value=2.0)
    first = net.use(net.call(torch.mul, net.inputs[0], scale), 100)
    second = net.use(first, 100)
    child = net.done(second, first, net.inputs[0], net.graph.get_attr("w3"))
    for tensor in child.parameters():
        tensor.fill_(0.5)
    outer = Graph()
    x = outer.placeholder("x")
    one = outer.call_module("_run_on_acc_0", (), {"a": x})
    item = outer.call_function(operator.getitem, (one, 0))
    two = outer.call_module("_run_on_acc_0", (item, 3.0))
    outer.output((one, outer.call_function(operator.getitem, (two, -1)),
                  outer.call_function(len, (two,)), {"all": two}))
    root = torch.nn.Module()
    root.add_module("_run_on_acc_0", child)
    gm = GraphModule(root, outer)
    want = run(gm, torch.ones(2))
    resource(gm, 100_000)
    gm.graph.lint()
    got = run(gm, torch.ones(2))
    assert len(gm._modules) == 2 and not hasattr(gm, "_run_on_acc_0")
    assert str(got) == str(want)
    assert copy.deepcopy(gm)(torch.ones(2))[2] == 4


def test_groups_stay_together():
    gm = whole(chain(60, 60, 60))
    names = call_names(gm._run_on_acc_0.graph)
    resource(gm, 120_000, groups=[names[1:]])
    assert [call_names(piece.graph) for piece in gm.children()] == [names[:1], names[1:]]
    gm = whole(chain(60, 60, 60))
    nodes = [n for n in gm._run_on_acc_0.graph.nodes if n.name in names]
    with pytest.warns(cutset.OversizeWarning):  # the group closes a cycle with what is between
        resource(gm, 120_000, groups=[[nodes[0], nodes[2]]])
    assert sizes(gm) == [180_000]


def test_oversized_nodes_on_the_host():
    gm = whole(chain(10, 500, 10))
    want = run(gm, torch.ones(2))
    resource(gm, 100_000, oversize="host")
    assert list(gm._modules) == ["_run_on_acc_0_resource_split_0", "_run_on_gpu_0_resource_split_1",
                                 "_run_on_acc_0_resource_split_2"]
    assert torch.equal(run(gm, torch.ones(2)), want)


def test_modules_as_nodes_and_a_child_without_nodes():
    graph = Graph()
    x = graph.placeholder("x")
    for i in range(3):
        x = graph.call_module(f"layers.{i}", (x,))
    graph.output(x)
    root = torch.nn.Module()
    root.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))
    gm = whole(GraphModule(root, graph))
    want = run(gm, torch.ones(1, 8))
    resource(gm, 300)
    assert sizes(gm) == [288] * 3
    assert torch.equal(run(gm, torch.ones(1, 8)), want)
    empty = Graph()
    empty.output(empty.placeholder("x"))
    gm = whole(GraphModule(torch.nn.Module(), empty))
    assert resource(gm, 1) is gm and list(gm._modules) == ["_run_on_acc_0"]


def test_several_results_stay_with_their_reader():
    """No tuple crosses."""
    net = Net()
    x = net.use(net.inputs[0], 10)
    parts = net.call(torch.split, x, 2)
    ends = [net.use(net.call(operator.getitem, parts, i), 10) for i in range(3)]
    child = net.done(*ends)
    gm = whole(child)
    want = run(gm, torch.arange(6.0))
    resource(gm, 10_000)
    check(gm, child, 10_000)
    assert all(map(torch.equal, run(gm, torch.arange(6.0)), want))
    owner = [call_names(piece.graph) for piece in gm.children()
             if "split" in call_names(piece.graph)]
    assert len(owner) == 1 and {"getitem", "getitem_1", "getitem_2"} <= set(owner[0])


def test_a_graph_that_does_not_lint_and_what_is_no_module():
    gm = whole(chain(1, 1))
    nodes = [n for n in gm._run_on_acc_0.graph.nodes if n.op == "call_function"]
    nodes[0].append(nodes[1])
    nodes[0].args = (nodes[1], *nodes[0].args[1:])
    with pytest.raises(cutset.ModelError):
        resource(gm, 1000)
    with pytest.raises(ValueError):
        resource(torch.nn.Linear(1, 1), 1000)


def test_on_what_torchs_own_splitter_makes():
    """A module of split_by_tags, with its tags, its flattened input and its attribute names."""
    from torch.fx.passes.split_utils import split_by_tags
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(m for _ in range(4) for m in (
        torch.nn.Linear(8, 8), torch.nn.Tanh()))).eval()
    x = torch.rand(2, 8)
    program = torch.export.export(model, (x,)).run_decompositions()
    source = program.module(check_guards=False)
    tags = ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    calls = [n for n in source.graph.nodes if n.op == "call_function"]
    for i, node in enumerate(calls):
        node.tag = tags[0 if i < 5 else 1 if i == 5 else 2]
    gm = split_by_tags(source, tags)
    assert any(hasattr(n, "tag") for child in gm.children() for n in child.graph.nodes)
    want = gm(x)
    resource(gm, 288)
    assert sizes(gm) == [288] * 4 and torch.equal(gm(x), want)
    assert not any(hasattr(n, "tag") for m in (gm, *gm.children()) for n in m.graph.nodes)
    assert [name for name in gm._modules if "gpu" in name] == ["_run_on_gpu_1"]


def with_copies(gm):
    """Each child replaced by a function of values."""
    gm = copy.deepcopy(gm)
    for name, part in list(gm._modules.items()):
        setattr(gm, name, AsValues(part))
    return gm


def test_writes_inside_a_child_stay_with_what_they_write():
    """In-place work on what the child made: every piece is a function of values still."""
    net = Net()

    def add(x):
        weight = net.weight(f"w{len(net.graph.nodes)}", 10)
        return net.call(aten.add.Tensor, x, net.call(aten.sum.default, weight))

    first = net.call(aten.clone.default, add(net.inputs[0]))
    before = add(first)
    net.call(aten.mul_.Tensor, first, 3.0)
    after = add(first)
    base = add(after)
    view = net.call(aten.view.default, base, [-1])
    net.call(aten.add_.Tensor, view, 1.0)
    child = net.done(add(net.call(aten.add.Tensor, net.call(aten.cos.default, base), before)))
    for tensor in child.parameters():
        tensor.fill_(0.01)
    want = child(torch.ones(3))
    for budget in (10, 20, 30):
        gm = whole(child)
        resource(gm, budget * 1000)
        check(gm, child, budget * 1000)
        x = torch.ones(3)
        assert torch.equal(gm(x), want) and torch.equal(with_copies(gm)(x), want)
        assert torch.equal(x, torch.ones(3))
    assert len(sizes(gm)) == 2


@pytest.mark.skipif(not LONG, reason="long")
def test_40000_nodes():
    found, gm = cut(chain(*[1, 0] * 20_000), 500)
    assert found == [500] * 40
    assert len(gm._modules) == 40


def test_on_partitioned_models():
    """partition, then resource_partition: the same values, every piece within its budget."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Sequential(
        torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Softmax(1) if i % 3 == 2 else torch.nn.Identity()) for i in range(9))).eval()
    x = torch.rand(1, 8, 6, 6)
    program = torch.export.export(model, (x,)).run_decompositions()
    for factor, budget in itertools.product((1, 4), (3000, 6000, 20_000)):
        gm = cutset.torch.partition(program, torch_executed_ops=["torch.ops.aten._softmax.default"])
        resource_partition(gm, budget * factor, memory_factor=factor)
        assert all(size <= budget for size in sizes(gm))
        assert torch.equal(gm(x), program.module()(x))
        for plan in gm.meta["cutset_resource"].values():
            assert plan.engines == {3000: 3, 6000: 2, 20_000: 1}[budget] and plan.engines_proved
