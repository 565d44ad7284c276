"""cutset.torch: names that collide, containers without an example, arguments by keyword, bad graphs
and options at their limits."""
import time

import numpy
import pytest
import torch
from torch.fx import Graph, GraphModule, symbolic_trace

import cutset
import cutset.torch
from torch_checks import calls, check, check_behaviour, children, segments, snapshot

X = (torch.rand(4, 4, generator=torch.Generator().manual_seed(0)),)
SPLITS = ({torch.sin, "sin"}, {torch.relu, "relu"}, None, ())


def every_way(gm, inputs, kwargs=None):
    """Partitions under several supports, with and without host submodules; checks everything."""
    before = snapshot(gm)
    for supported in SPLITS:
        for inline in (False, True):
            result = cutset.torch.partition(gm, supported=supported, host_submodules=not inline)
            check(gm, result, inputs, kwargs, host_submodules=not inline)
    assert snapshot(gm) == before
    return result


# ---- names ----

def test_nodes_named_like_parts():
    graph = Graph()
    x = graph.create_node("placeholder", "_run_on_acc_1", name="_run_on_acc_1")
    a = graph.create_node("call_function", torch.relu, (x,), name="_run_on_acc_0")
    b = graph.create_node("call_function", torch.sin, (a,), name="_run_on_gpu_1")
    c = graph.create_node("call_function", torch.add, (a, b), name="_run_on_acc_0_out_0")
    graph.output((a, b, c))
    gm = GraphModule({}, graph)
    every_way(gm, X)
    fused = cutset.torch.fuse_partitions(gm, [["_run_on_gpu_1", "_run_on_acc_0"]])
    fused.graph.lint()
    check_behaviour(gm, fused, X)


def test_attributes_named_like_parts():
    """The children that bear a part's name are the parts; what stood there is held elsewhere."""
    root, graph = torch.nn.Module(), Graph()
    root._run_on_acc_0 = torch.nn.Linear(4, 4)
    root._run_on_gpu_0 = torch.nn.Sequential(torch.nn.Linear(4, 4))
    root._run_on_acc_7 = torch.nn.Parameter(torch.rand(4))
    a = graph.call_module("_run_on_acc_0", (graph.placeholder("x"),))
    b = graph.call_module("_run_on_gpu_0.0", (graph.call_function(torch.sin, (a,)),))
    held = graph.get_attr("_run_on_gpu_0.0.weight"), graph.get_attr("_run_on_acc_7")
    graph.output((graph.call_function(torch.mul, (b, held[1])), *held))
    gm = GraphModule(root, graph)
    for supported in ({torch.mul}, {torch.sin}, None):
        for inline in (False, True):
            result = cutset.torch.partition(gm, supported=supported, host_submodules=not inline)
            check_behaviour(gm, result, X)
            parts = result.meta["cutset"].parts
            assert sorted(children(result)) == [
                p.id for p in parts if not (inline and p.target == "host")]
            assert {id(p) for p in result.parameters()} == {id(p) for p in gm.parameters()}


@pytest.mark.parametrize("inline", [False, True])
def test_a_partitioned_module_is_partitioned_again(inline):
    gm = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(),
                                            torch.nn.Linear(4, 4)))
    once = cutset.torch.partition(gm, supported={"1"})
    twice = cutset.torch.partition(once, supported={"_run_on_gpu_0"}, host_submodules=not inline)
    assert segments(twice) == [(True, ("_run_on_gpu_0",)),
                               (False, ("_run_on_acc_1", "_run_on_gpu_2"))]
    assert sorted(children(twice)) == ([0] if inline else [0, 1])
    check_behaviour(once, twice, X)


# ---- containers that no example tells ----

class Several(torch.nn.Module):
    """A leaf that returns a dict."""

    def forward(self, x):
        return {"a": x + 1, "b": [x * 2]}


class Leaves(torch.fx.Tracer):
    def is_leaf_module(self, module, name):
        return isinstance(module, Several) or super().is_leaf_module(module, name)


class OfList(torch.nn.Module):
    def forward(self, x):
        return x[0].relu() + x[1][0].sin()


class OfDict(torch.nn.Module):
    def forward(self, x):
        return x["a"].relu() + x["b"].sin()


class OfStars(torch.nn.Module):
    def forward(self, *args, **options):
        return args[0].relu() + options["z"].sin()


class Returned(torch.nn.Module):
    def forward(self, x):
        return x, x[0].relu().sin()


class OfModule(torch.nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.several, self.whole = Several(), whole

    def forward(self, x):
        found = self.several(x.relu())
        result = found["a"].sin() + found["b"][0].relu()
        return (result, found) if self.whole else result


@pytest.mark.parametrize("module, inputs, kwargs", [
    (OfList(), ([X[0], (X[0],)],), {}), (OfDict(), ({"a": X[0], "b": X[0]},), {}),
    (OfStars(), X, {"z": X[0]}), (Returned(), ([X[0]],), {}),
    (OfModule(False), X, {}), (OfModule(True), X, {})])
def test_containers_do_not_cross(module, inputs, kwargs):
    every_way(GraphModule(module, Leaves().trace(module)), inputs, kwargs)


def test_an_annotation_says_what_an_input_is():
    def of_tensor(x: torch.Tensor):
        return x[0].relu() + x[1].relu()

    gm = symbolic_trace(of_tensor)
    result = cutset.torch.partition(gm)
    assert result.meta["cutset"].engines == 1 and not result.meta["cutset"].fallback
    check(gm, result, X)


# ---- arguments by keyword ----

def by_name(x, y):
    a = torch.transpose(input=x, dim0=0, dim1=1)
    b = torch.split(tensor=y, split_size_or_sections=2)
    x.add_(other=1)
    torch.relu_(input=y)
    return a * 1, b[0] * 1, x * 2


def drawn(x, y):
    torch.nn.init.normal_(x)
    torch.nn.init.uniform_(tensor=y)
    return x * y


def test_writes_and_views_by_keyword():
    inputs = (X[0].clone(), X[0] + 1)
    for function in (by_name, drawn):
        gm = symbolic_trace(function)
        for k in range(6):
            names = [n.name for n in calls(gm.graph)]
            result = cutset.torch.partition(
                gm, supported=(lambda n: names.index(n.name) % 3 != k % 3) if k < 3 else
                (lambda n: names.index(n.name) % 2 == k % 2) if k < 5 else None)
            check(gm, result, inputs)
    refused = {f.node: f.why for f in cutset.torch.plan(symbolic_trace(drawn)).fallback}
    assert set(refused) == {"normal_", "uniform_"}


# ---- graphs that are none ----

def refused(gm):
    before = str(gm.graph)
    for call in (cutset.torch.partition, cutset.torch.plan, cutset.torch.support_overview,
                 lambda g: cutset.torch.fuse_partitions(g, [])):
        with pytest.raises(cutset.ModelError) as error:
            call(gm)
        assert "\n" not in str(error.value)
    assert str(gm.graph) == before
    return str(error.value)


def test_graphs_without_one_output_at_the_end():
    graph = Graph()
    assert "output node" in refused(GraphModule({}, graph))
    x = graph.placeholder("x")
    graph.output(x)
    graph.call_function(torch.relu, (x,))
    assert "output node" in refused(GraphModule({}, graph))
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(x)
    graph.output(x)
    assert "2 output nodes" in refused(GraphModule({}, graph))


def test_lazy_weights():
    gm = symbolic_trace(torch.nn.Sequential(torch.nn.LazyLinear(3)))
    assert "weight 0.weight is not initialised" in refused(gm)


# ---- options at their limits ----

def linears(n):
    return symbolic_trace(torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(n))))


@pytest.mark.parametrize("size", [2**60 + 1, 2**63 - 1, 2**63, 2**200, "9223372036854775808",
                                  "99999999999TiB", numpy.uint64(2**63), "max"])
def test_a_size_above_2_to_60_is_no_limit(size):
    assert cutset.torch.plan(linears(2), cpu_memory_budget=size).options.host_memory is None


def test_numbers_of_other_kinds():
    plan = cutset.torch.plan(linears(3), cpu_memory_budget=numpy.int64(80),
                             memory_factor=numpy.float32(1))
    assert plan.engines == 3
    for factor in (True, float("nan"), float("inf"), -1, "4", None, 1j):
        with pytest.raises(cutset.UsageError, match="memory_factor"):
            cutset.torch.plan(linears(1), memory_factor=factor)


@pytest.mark.parametrize("oversize", ["error", "host", "keep"])
@pytest.mark.parametrize("budget", [50, 239])
def test_full_compilation_over_the_budget(oversize, budget):
    """Whatever one node takes, the error names what all of them need."""
    gm, options = linears(3), dict(require_full_compilation=True, memory_factor=1)
    with pytest.raises(cutset.BudgetError, match="budget.*240") as error:
        cutset.torch.partition(gm, cpu_memory_budget=budget, oversize=oversize, **options)
    assert (error.value.needed, error.value.budget) == (240, budget)
    assert error.value.atom == ("_0", "_1", "_2")
    assert cutset.torch.plan(gm, cpu_memory_budget=240, **options).engines == 1


def test_collections_that_are_none():
    gm = cutset.torch.partition(linears(2))
    for partitions in (None, 5, "_0"):
        with pytest.raises(cutset.PartitionError):
            cutset.torch.fuse_partitions(gm, partitions)
    for options in (dict(groups=5), dict(groups=None), dict(groups={"a": "b"}),
                    dict(atomic_subgraphs="x")):
        with pytest.raises(cutset.UsageError):
            cutset.torch.resource_partition(gm, 1000, **options)
    for options in (dict(init_args=5), dict(example_inputs=5), dict(init_args="ab")):
        with pytest.raises(cutset.UsageError):
            cutset.torch.register_atomic_subgraph(is_core_aten=True, **options)


def test_fuse_of_many_writes_is_no_square():
    """6,000 writes among 18,000 nodes took two minutes."""
    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(6000):
        v = graph.call_method("view", (x, -1))
        v = graph.call_function(torch.sin, (v,))
        graph.call_method("add_", (x, 1))
    graph.output(v)
    gm = GraphModule({}, graph)
    start = time.process_time()
    cutset.torch.fuse_partitions(gm, [["sin"]])
    assert time.process_time() - start < 30
