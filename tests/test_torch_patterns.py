"""Atomic subgraphs: the built-in patterns as C matches them against torch's SubgraphMatcher, and
registered ones, matched here as torch does."""
import itertools
import operator
import os
import random

import pytest

torch = pytest.importorskip("torch")

from torch.fx import Graph, GraphModule  # noqa: E402
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher  # noqa: E402

import cutset  # noqa: E402
from cutset import _lib  # noqa: E402
from cutset._plan import take_plan  # noqa: E402
from cutset.torch import _patterns  # noqa: E402

LONG = os.environ.get("CUTSET_LONG") == "1"
aten = torch.ops.aten
ACTIVATIONS = [aten.silu.default, aten.gelu.default, aten.relu.default, aten.sigmoid.default]
BATCH_NORM = aten._native_batch_norm_legit_no_training.default


# ---- the built-in patterns, for torch's matcher ----

def chain(*steps):
    """A pattern: each step's first argument is the step before; the rest are inputs. A step is a
    target and how many arguments it has in all; an int is the index of a getitem."""
    graph, count = Graph(), itertools.count()

    def hole():
        return graph.placeholder(f"in_{next(count)}")

    at = None
    sizes = [0 if isinstance(step, int) else step[1] - bool(i) for i, step in enumerate(steps)]
    holes = [[hole() for _ in range(size)] for size in sizes]
    for step, rest in zip(steps, holes):
        if isinstance(step, int):
            at = graph.call_function(operator.getitem, (at, step))
        else:
            at = graph.call_function(step[0], (*([] if at is None else [at]), *rest))
    graph.output(at)
    return graph


CONV, NORM = (aten.convolution.default, 9), (BATCH_NORM, 7)
MUL, ADD = (aten.mul.Tensor, 2), (aten.add.Tensor, 2)
BUILT_IN = [*(chain(CONV, NORM, 0, (act, 1)) for act in ACTIVATIONS),
            *(chain(CONV, (act, 1)) for act in ACTIVATIONS), chain(MUL, ADD), chain(MUL, MUL)]


def own(match):
    return [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]


def torch_matches(pattern, graph, allowed):
    """Torch's matches on allowed nodes; where they overlap the first stands."""
    if all(allowed(node) for node in graph.nodes):
        return [own(match) for match in SubgraphMatcher(pattern).match(graph)]
    taken, kept = set(), []
    for match in SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph):
        nodes = own(match)
        if all(map(allowed, nodes)) and taken.isdisjoint(nodes):
            taken.update(nodes)
            kept.append(nodes)
    return kept


# ---- the atoms that C makes ----

def plan_of(graph, allowed, groups=(), soft=(), budget=1, patterns=1):
    """The plan of a graph of tensors in which each node has 100 bytes of weights of its own. With
    a budget of 1 every engine is one atom."""
    ffi, lib = _lib.ffi, _lib.lib
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    value = {node: i for i, node in enumerate([*inputs, *nodes])}
    first_weight = len(value)
    names = [node.name for node in value] + [f"weight_{i}" for i in range(len(nodes))]
    kinds = [2 if node.target is BATCH_NORM else 0 for node in value] + [0] * len(nodes)
    index = {node: i for i, node in enumerate(nodes)}
    ops = list(dict.fromkeys(name_of(node.target) for node in nodes))
    args, rows = [], [0]
    for i, node in enumerate(nodes):
        args += [value[arg] for arg in node.args if isinstance(arg, torch.fx.Node)]
        args.append(first_weight + i)
        rows.append(len(args))
    flags = [(512 if _patterns.unfusable(node) else 0)
             | (16 if node.target is operator.getitem else 0) for node in nodes]
    both = [*groups, *soft]
    group_rows = list(itertools.accumulate(map(len, both), initial=0))
    keep = []

    def array(kind, data):
        keep.append(ffi.new(f"{kind}[]", list(data)) if not isinstance(data, bytes)
                    else ffi.from_buffer(data))
        return keep[-1]

    def joined(strings):
        return array("char", b"".join(s.encode() + b"\0" for s in strings))

    results = graph.output_node().all_input_nodes
    in_graph = ffi.new("cutset_graph *", dict(
        n_values=len(names), value_names=joined(names), value_kinds=array("uint8_t", kinds),
        value_types=array("uint32_t", [0] * len(names)), n_types=1, types=joined(["f32[4]"]),
        value_storages=array("uint32_t", [_lib.NONE] * first_weight + list(range(len(nodes)))),
        n_storages=len(nodes), storage_bytes=array("int64_t", [100] * len(nodes)),
        n_inputs=len(inputs), inputs=array("uint32_t", range(len(inputs))),
        n_outputs=len(results), outputs=array("uint32_t", [value[node] for node in results]),
        n_nodes=len(nodes), n_ops=len(ops), ops=joined(ops),
        node_ops=array("uint32_t", [ops.index(name_of(node.target)) for node in nodes]),
        node_flags=array("uint32_t", flags), arg_rows=array("uint32_t", rows),
        args=array("uint32_t", args), out_rows=array("uint32_t", range(len(nodes) + 1)),
        outs=array("uint32_t", [value[node] for node in nodes]),
        n_groups=len(both), group_rows=array("uint32_t", group_rows), n_soft_groups=len(soft),
        group_nodes=array("uint32_t", [index[node] for group in both for node in group]),
        allow=array("uint32_t", [_lib.ALLOW_HOST | allowed(node) for node in nodes])))
    call = _lib.Call()
    model, target, plan = (ffi.new(f"cutset_{kind} **") for kind in ("model", "target", "plan"))
    call.check(lib.cutset_model_build(model, in_graph, call.err))
    call.check(lib.cutset_target_marked(target, b"acc", 1.0, 0, patterns, call.err))
    options = ffi.new("cutset_plan_opts *")
    lib.cutset_plan_opts_init(options)
    options.host_memory, options.oversize = budget, 2  # keep
    call.check(lib.cutset_plan_make(plan, model[0], target, 1, options, call.err))
    made = take_plan(plan[0], call)
    lib.cutset_plan_free(plan[0])
    lib.cutset_target_free(target[0])
    lib.cutset_model_free(model[0])
    return made


def name_of(target):
    return f"torch.ops.{target}" if isinstance(target, torch._ops.OpOverload) else (
        f"{target.__module__}.{target.__name__}")


def atoms_in_c(graph, allowed, **more):
    plan = plan_of(graph, allowed, **more)
    return {frozenset(part.nodes) for part in plan.parts if part.target == "acc"}


def atoms_of(graph, allowed, sets):
    """The unions of overlapping sets, and what is in none."""
    nodes = [node for node in graph.nodes if node.op == "call_function"]
    parent = {node: node for node in nodes}

    def find(node):
        while parent[node] is not node:
            node = parent[node]
        return node

    for group in sets:
        for node in group[1:]:
            parent[find(node)] = find(group[0])
    for node in nodes:
        if node.target is operator.getitem:
            parent[find(node)] = find(node.args[0])
    atoms = {}
    for node in nodes:
        if allowed(node):
            atoms.setdefault(find(node), set()).add(node.name)
    return {frozenset(atom) for atom in atoms.values()}


# ---- random graphs ----

NEXT = {aten.convolution.default: "nnaa", operator.getitem: "aa", aten.mul.Tensor: "mmpp"}


def random_graph(rng, size, twist):
    """Of the operators of the patterns, mostly in their order; `twist`: also with literals and
    repeated arguments."""
    graph = Graph()
    given = [graph.placeholder(f"x{i}") for i in range(8)]
    tensors = list(given)

    def first():
        return tensors[-1] if rng.random() < 0.85 else rng.choice(tensors)

    def rest(n, *other):
        if twist and rng.random() < 0.3:
            return [rng.choice(tensors) for _ in range(n)]
        return rng.sample([node for node in given if node not in other], n)

    def add(target, *args, **kwargs):
        tensors.append(graph.call_function(target, args, kwargs))

    def conv():
        x = first()
        w, bias = rest(2, x)
        bias = None if rng.random() < 0.5 else bias
        add(aten.convolution.default, x, w, bias, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)

    def norm():
        x = first()
        node = graph.call_function(BATCH_NORM, (x, *rest(4, x), 0.1, 1e-5))
        for i in ([0], [0], [0, 1], [1], [0, 0])[rng.randrange(5) if twist else 0]:
            tensors.append(graph.call_function(operator.getitem, (node, i)))

    def act():
        target = rng.choice([*ACTIVATIONS, aten.tanh.default])
        if twist and target is aten.gelu.default and rng.random() < 0.5:
            add(target, first(), approximate=rng.choice(["none", "tanh"]))
        else:
            add(target, first())

    def two(target):
        a = first()
        [b] = rest(1, a)
        if twist and rng.random() < 0.2:
            b = rng.choice([2.0, 1])
        if rng.random() < 0.15 and isinstance(b, torch.fx.Node):
            a, b = b, a
        alpha = {"alpha": rng.choice([1, 2, 1.0])} if (
            twist and target is aten.add.Tensor and rng.random() < 0.3) else {}
        add(target, a, b, **alpha)

    kinds = {"c": conv, "n": norm, "a": act, "m": lambda: two(aten.mul.Tensor),
             "p": lambda: two(aten.add.Tensor)}
    for _ in range(size):
        likely = NEXT.get(tensors[-1].target, "") if rng.random() < 0.7 else ""
        kinds[rng.choice(likely or "ccnammp")]()
    unread = [node for node in tensors if not node.users and node.op == "call_function"]
    graph.output(tuple(unread or tensors[-1:]) + tuple(rng.sample(tensors[4:], 1)))
    graph.lint()
    return graph


@pytest.mark.parametrize("twist", [False, True])
@pytest.mark.parametrize("supported", ["all", "some"])
def test_built_in_patterns_mean_what_torch_means(twist, supported):
    matched = 0
    for seed in range(1500 if LONG else 150):
        rng = random.Random(f"{seed} {twist} {supported}")
        graph = random_graph(rng, rng.randrange(2, 25), twist)
        host = set() if supported == "all" else {
            node for node in graph.nodes if rng.random() < 0.15}
        for node in graph.nodes:  # a getitem is where the maker of the tuple is
            if node.target is operator.getitem:
                (host.add if node.args[0] in host else host.discard)(node)

        def allowed(node):
            return node not in host

        sets = [found for pattern in BUILT_IN for found in torch_matches(pattern, graph, allowed)]
        matched += len(sets)
        assert atoms_in_c(graph, allowed) == atoms_of(graph, allowed, sets), (seed, str(graph))
    assert matched > 150


def test_without_patterns_every_node_is_its_own_atom():
    graph = random_graph(random.Random(3), 30, False)
    assert atoms_in_c(graph, lambda node: True, patterns=0) == atoms_of(
        graph, lambda node: True, [])


# ---- registered patterns: the matches ----

def find(pattern, graph, **more):
    by_kind, position = {}, {}
    for i, node in enumerate(graph.nodes):
        position[node] = i
        by_kind.setdefault((node.op, node.target), []).append(node)
    return _patterns.matches(pattern, graph, by_kind, position, lambda node: True, **more)


def test_single_result_patterns_are_found_as_torch_finds_them():
    found = 0
    for seed in range(600 if LONG else 60):
        graph = random_graph(random.Random(f"single {seed}"), 25, True)
        for pattern in BUILT_IN:
            for overlapping in (False, True):
                torchs = SubgraphMatcher(
                    pattern, remove_overlapping_matches=not overlapping).match(graph)
                ours = find(pattern, graph, overlapping=overlapping)
                assert [set(own(match)) for match in torchs] == [set(match) for match in ours]
                found += len(ours)
    assert found > 100


def graph_of(function):
    return torch.fx.symbolic_trace(function).graph


def counts(pattern, target):
    """Matches without overlaps, and with."""
    pattern, target = graph_of(pattern), graph_of(target)
    return (len(find(pattern, target)), len(find(pattern, target, overlapping=True)))


# Counts of torch.fx's own matcher tests (C.8); the columns where neither output nor placeholders are matched.

def test_c8_neg_in_neg_add():
    assert counts(lambda x: x.neg(), lambda x: x.neg() + 1)[0] == 1
    assert counts(lambda x: x.neg() + x.neg(), lambda x, y: x.neg() + y.neg())[0] == 0


def test_c8_three_cat_sum():
    def pattern(a, b):
        return torch.cat([a, b]).sum()

    def target(a, b, c):
        x, y, z = torch.cat([a, b]).sum(), torch.cat([b, c]).sum(), torch.cat([c, a]).sum()
        return x + y + z
    assert counts(pattern, target)[0] == 3


def test_c8_whole_graph():
    def pattern(a):
        b = a.neg()
        return torch.add(b, b)
    assert counts(pattern, pattern) == (1, 1)


def test_c8_diamond():
    def pattern(x):
        y = torch.relu(x)
        return torch.sigmoid(y) + torch.relu(y)
    assert counts(pattern, pattern)[0] == 1


def test_c8_an_inner_value_that_leaks():
    def pattern(a, b, c, d, e):
        return torch.addmm(a, torch.cat([b, c]), torch.cat([d, e]))

    def target(a, b, c, d, e):
        whole = pattern(a, b, c, d, e)
        leaks = torch.cat([b, c])
        return whole + torch.addmm(a, leaks, torch.cat([d, e])) + leaks
    assert counts(pattern, target)[0] == 1

    def scaled(x, w):
        return torch.mul(torch.nn.functional.linear(x, w), 2)

    def used_elsewhere(x, w):
        y = torch.nn.functional.linear(x, w)
        return torch.mul(y, 2) + y
    assert counts(scaled, used_elsewhere) == (0, 0)


def test_c8_overlaps():
    def twice(x):
        return torch.sigmoid(torch.sigmoid(x))
    assert counts(twice, lambda x: twice(twice(x))) == (2, 3)

    def pattern(x):
        y = torch.relu(x)
        return y, torch.sigmoid(y), torch.sum(y)

    def target(x):
        y = torch.relu(x)
        return torch.sigmoid(y), torch.sigmoid(y), torch.sum(y), torch.sum(y)
    assert counts(pattern, target) == (1, 4)


def test_a_match_that_would_close_a_cycle_is_none():
    def pattern(x, y):
        a = torch.relu(x)
        return a, torch.sigmoid(torch.add(a, y))  # one anchor: a has a reader inside

    def target(x):
        a = torch.relu(x)
        return torch.sigmoid(torch.add(a, torch.tanh(a)))
    assert counts(pattern, target) == (0, 0)
    assert counts(
        pattern, lambda x: torch.sigmoid(torch.add(torch.relu(x), torch.tanh(x)))) == (1, 1)


def test_ten_thousand_matches_take_a_linear_search():
    """Torch's own `match` would walk 10^8 nodes here."""
    def pattern(x):
        return torch.relu(torch.neg(x))
    graph = Graph()
    at = graph.placeholder("x")
    for _ in range(10_000):
        at = graph.call_function(torch.relu, (graph.call_function(torch.neg, (at,)),))
    graph.output(at)
    assert len(find(graph_of(pattern), graph)) == 10_000


# ---- registering ----

@pytest.fixture(autouse=True)
def clean():
    before = list(_patterns.ATOMIC_SUBGRAPHS)
    yield
    _patterns.ATOMIC_SUBGRAPHS[:] = before


def test_registering_and_unregistering():
    @_patterns.register_atomic_subgraph(init_args=(aten.relu.default,), is_core_aten=True)
    class Pair(torch.nn.Module):
        def __init__(self, op):
            super().__init__()
            self.op = op

        def forward(self, x):
            return self.op(aten.neg.default(x))

    assert isinstance(Pair, type) and issubclass(Pair, torch.nn.Module)
    assert _patterns.ATOMIC_SUBGRAPHS[-1] == (Pair, (aten.relu.default,), True, None)
    graph = Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(aten.neg.default, (x,))
    relu = graph.call_function(aten.relu.default, (neg,))
    graph.output(relu)
    assert _patterns.registered_groups(graph, lambda node: True) == [(neg, relu)]
    assert _patterns.registered_groups(graph, lambda node: node is not neg) == []
    _patterns.ATOMIC_SUBGRAPHS.pop()
    assert _patterns.registered_groups(graph, lambda node: True) == []


def test_a_decorator_may_stand_twice():
    @_patterns.register_atomic_subgraph(init_args=(aten.silu.default,), is_core_aten=True)
    @_patterns.register_atomic_subgraph(init_args=(aten.tanh.default,), is_core_aten=True)
    class Pair(torch.nn.Module):
        def __init__(self, op):
            super().__init__()
            self.op = op

        def forward(self, x):
            return self.op(aten.abs.default(x))

    graph = Graph()
    x = graph.placeholder("x")
    outs = [graph.call_function(op, (graph.call_function(aten.abs.default, (x,)),))
            for op in (aten.silu.default, aten.tanh.default, aten.cos.default)]
    graph.output(tuple(outs))
    assert [group[-1] for group in _patterns.registered_groups(graph, lambda node: True)] == [
        outs[1], outs[0]]


def test_an_exported_pattern():
    class Block(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = torch.nn.Linear(width, width)

        def forward(self, x):
            return torch.tanh(self.linear(x))

    with pytest.raises(ValueError, match="example_inputs"):
        _patterns.register_atomic_subgraph(init_args=(4,))(Block)
    assert not _patterns.ATOMIC_SUBGRAPHS
    _patterns.register_atomic_subgraph(init_args=(4,), example_inputs=(torch.ones(2, 4),))(Block)
    model = torch.nn.Sequential(Block(4), Block(4), torch.nn.Linear(4, 4))
    exported = torch.export.export(model.eval(), (torch.ones(2, 4),)).run_decompositions()
    graph = exported.module().graph
    groups = _patterns.registered_groups(graph, lambda node: True)
    assert [[str(node.target) for node in group][-2:] for group in groups] == [
        ["aten.addmm.default", "aten.tanh.default"]] * 2


def test_what_is_no_pattern():
    with pytest.raises(ValueError, match="Module class"):
        _patterns.register_atomic_subgraph(is_core_aten=True)(lambda x: x)

    class Nothing(torch.nn.Module):
        def forward(self, x):
            return x

    class Branches(torch.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    graph = graph_of(lambda x: x.neg())
    for cls in (Nothing, Branches):
        _patterns.register_atomic_subgraph(is_core_aten=True)(cls)
        with pytest.raises(cutset.UsageError, match=f"atomic subgraph .*{cls.__name__}") as info:
            _patterns.registered_groups(graph, lambda node: True)
        assert "\n" not in str(info.value)
        _patterns.ATOMIC_SUBGRAPHS.pop()


def test_inputs_nobody_reads_are_no_part_of_a_pattern():
    @_patterns.register_atomic_subgraph(is_core_aten=True)
    class Pair(torch.nn.Module):
        def forward(self, x, unused):
            return aten.relu.default(aten.neg.default(x))

    graph = Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(aten.relu.default, (graph.call_function(aten.neg.default, (x,)),))
    graph.output(relu)
    assert len(_patterns.registered_groups(graph, lambda node: True)) == 1


# ---- groups that are not formed where a node must stay on the host ----

def line(*targets):
    graph = Graph()
    at = graph.placeholder("x")
    nodes = [at := graph.call_function(target, (at,)) for target in targets]
    graph.output(at)
    return graph, nodes


def test_soft_groups_are_dropped_where_groups_go_to_the_host():
    graph, (a, b, c) = line(aten.neg.default, aten.abs.default, aten.cos.default)

    def parts(allowed, **more):
        return [(part.target, part.nodes) for part in plan_of(graph, allowed, **more).parts]
    together = (("neg_default", "abs_default"), ("cos_default",))
    names = tuple(node.name for node in (a, b, c))
    together = [("acc", names[:2]), ("acc", names[2:])]
    assert parts(lambda node: True, soft=[(a, b)]) == together
    assert parts(lambda node: True, groups=[(a, b)]) == together
    # b on the host: the group goes there whole, the pattern is not formed
    assert parts(lambda node: node is not b, groups=[(a, b)]) == [
        ("host", names[:2]), ("acc", names[2:])]
    assert parts(lambda node: node is not b, soft=[(a, b)]) == [
        ("acc", names[:1]), ("host", names[1:2]), ("acc", names[2:])]
    # a and c around a host node: a cycle
    assert parts(lambda node: node is not b, groups=[(a, c)]) == [("host", names)]
    assert parts(lambda node: node is not b, soft=[(a, c), (b, c)]) == [
        ("acc", names[:1]), ("host", names[1:2]), ("acc", names[2:])]
    # ... around an accelerated one: closed
    assert parts(lambda node: True, soft=[(a, c)]) == [("acc", names)]


def test_constant_expressions_do_not_hide_a_pattern():
    """x * scale + shift, both made of the same weights, as frozen batch norms have them."""
    root, graph = torch.nn.Module(), Graph()
    for name, size in (("both", 1), ("first", 25), ("scale", 25), ("shift", 25), ("last", 25)):
        setattr(root, name, torch.nn.Parameter(torch.rand(size), False))
    x, (both, first, scale, shift, last) = graph.placeholder("x"), map(
        graph.get_attr, ("both", "first", "scale", "shift", "last"))
    scale = graph.call_function(aten.mul.Tensor, (both, scale))
    shift = graph.call_function(aten.sub.Tensor, (shift, both))
    x = graph.call_function(aten.sub.Tensor, (x, first))
    mul = graph.call_function(aten.mul.Tensor, (x, scale))
    add = graph.call_function(aten.add.Tensor, (mul, shift))
    graph.output(graph.call_function(aten.sub.Tensor, (add, last)))
    gm = GraphModule(root, graph)
    for patterns, engines in ((True, 3), (False, 2)):
        assert cutset.torch.plan(gm, cpu_memory_budget=204, memory_factor=1,
                                 atomic_subgraphs=patterns).engines == engines


def test_a_budget_breaks_built_in_patterns_but_no_registered_ones():
    graph = Graph()
    x, y, z = (graph.placeholder(name) for name in "xyz")
    mul = graph.call_function(aten.mul.Tensor, (x, y))
    add = graph.call_function(aten.add.Tensor, (mul, z))
    graph.output(add)
    assert [len(part.nodes) for part in plan_of(graph, lambda n: True, budget=100).parts] == [1, 1]
    assert [len(part.nodes) for part in plan_of(graph, lambda n: True, budget=200).parts] == [2]
    kept = plan_of(graph, lambda n: True, budget=100, soft=[(mul, add)])
    assert [len(part.nodes) for part in kept.parts] == [2]
    assert kept.oversized == ((("mul_tensor", "add_tensor"), 200),)
