"""Does a partitioned module keep every promise of cutset.torch?

`check(original, result, inputs)` asserts the structure (each call node once, names, meta, order,
inputs and outputs of parts, shared weights, agreement with the plan) and, where inputs are given,
that results, the caller's tensors and all buffers equal eager: as it is, and with each engine
replaced by a deep copy that clones its tensors in and out. `original` must be as it was when
`result` was made; both are left as they were found.
"""
import copy
import operator

import torch
import torch.utils._pytree as pytree
from torch.fx import Node

CALLS = ("call_function", "call_method", "call_module")
ACC, GPU = "_run_on_acc_", "_run_on_gpu_"


# ---- looking ----

def calls(graph):
    return [n for n in graph.nodes if n.op in CALLS]


def children(result):
    """Part modules by id."""
    return {int(name.rsplit("_", 1)[1]): m for name, m in result.named_children()
            if name.startswith((ACC, GPU))}


def engines(result):
    return [m for name, m in result.named_children() if name.startswith(ACC)]


def segments(result):
    """(is an engine, names of its nodes) of each part, in execution order."""
    plan = result.meta["cutset"]
    return [(p.target != "host", tuple(p.nodes)) for p in plan.parts]


def engine_sets(result):
    """The nodes of each engine."""
    return [set(nodes) for acc, nodes in segments(result) if acc]


def attribute(module, path):
    return operator.attrgetter(path)(module)


def weight_bytes(part):
    """Bytes of the distinct storages that its nodes read."""
    found = {}
    for node in part.graph.nodes:
        if node.op == "get_attr" and node.users:
            tensors = [attribute(part, node.target)]
        elif node.op == "call_module":
            tensors = part.get_submodule(node.target).state_dict().values()
        else:
            continue
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor):
                found[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
    return sum(found.values())


def snapshot(gm):
    """What a caller can see of a module."""
    return (str(gm.graph), gm.code, [n.name for n in gm.graph.nodes],
            [dict(n.meta) for n in gm.graph.nodes], sorted(gm._modules),
            {k: id(v) for k, v in [*gm.named_parameters(), *gm.named_buffers()]})


# ---- structure ----

def check_structure(original, result, host_submodules=True):
    plan = result.meta["cutset"]
    result.graph.lint()
    parts = children(result)
    inline = [p for p in plan.parts if p.target == "host"] if not host_submodules else []
    assert sorted(parts) == [p.id for p in plan.parts if p not in inline], "children"
    assert [p.id for p in plan.parts] == list(range(len(plan.parts)))
    check_once(original, plan)
    top = calls(result.graph)
    called = [n for n in top if n.op == "call_module" and n.target.startswith((ACC, GPU))]
    assert [n.target for n in called] == [
        (ACC if p.target != "host" else GPU) + str(p.id) for p in plan.parts if p not in inline]
    by_name = {n.name: n for n in calls(original.graph)}
    order = {n.name: i for i, n in enumerate(original.graph.nodes)}
    for part in plan.parts:
        if part in inline:
            check_inline(result, part, by_name)
            continue
        name = (ACC if part.target != "host" else GPU) + str(part.id)
        check_part(original, parts[part.id], part, by_name, order)
        assert parts[part.id] is getattr(result, name)
    if not inline:
        check_top(result, called)
    for a, b in zip(plan.parts, plan.parts[1:]):
        assert a.target != "host" or b.target != "host", "two host parts in a row"


def check_once(original, plan):
    planned = [n for p in plan.parts for n in p.nodes]
    assert len(planned) == len(set(planned)), "a node in two parts"
    assert set(planned) == {n.name for n in calls(original.graph)}, "nodes lost or invented"


def check_inline(result, part, by_name):
    top = {n.name: n for n in calls(result.graph)}
    for name in part.nodes:
        check_node(by_name[name], top[name])


def check_node(old, new):
    assert (old.op, old.target) == (new.op, new.target), old.name
    assert old.meta == new.meta or set(old.meta) == set(new.meta), f"meta of {old.name}"
    assert [a.name for a in new._input_nodes] and len(new._input_nodes) == len(old._input_nodes) \
        or not old._input_nodes


def check_top(result, called):
    for node in result.graph.nodes:
        assert node.op in ("placeholder", "get_attr", "output") or node in called or (
            node.op == "call_function" and node.target is operator.getitem
            and node.args[0] in called), f"{node.name} in the top graph"


def check_part(original, child, part, by_name, order):
    child.graph.lint()
    nodes = calls(child.graph)
    names = [n.name for n in nodes]
    assert set(names) == {*part.nodes, *part.copies} and len(names) == len(set(names))
    assert [n for n in names if n not in set(part.copies)] == list(part.nodes), "execution order"
    assert names == sorted(names, key=order.__getitem__), "the source's order"
    for node in nodes:
        check_node(by_name[node.name], node)
        if node.op == "call_module":
            assert attribute(child, node.target) is attribute(original, node.target)
    for node in child.graph.nodes:
        if node.op == "get_attr":
            value = attribute(original, node.target)
            assert attribute(child, node.target) is value, f"{node.target} was copied"
    for (key, value) in [*child.named_parameters(), *child.named_buffers()]:
        assert attribute(original, key) is value, f"{key} is not shared"
    check_borders(child, part)


def check_borders(child, part):
    places = [n for n in child.graph.nodes if n.op == "placeholder"]
    assert list(child.graph.nodes)[:len(places)] == places
    used = []
    for node in calls(child.graph):
        used += [a for a in node._input_nodes if a.op == "placeholder" and a not in used]
    assert used == places, "placeholders in order of first use"
    hidden = [n for n in part.inputs if "." in n]  # weights of a module that something writes
    assert [n.name for n in places] == [n for n in part.inputs if n not in hidden], "plan's inputs"
    output = child.graph.output_node().args[0]
    results = [output] if isinstance(output, Node) else list(output)
    assert isinstance(output, Node) or len(results) != 1, "one output is bare"
    at = {n: i for i, n in enumerate(child.graph.nodes)}
    assert [at[r] for r in results] == sorted({at[r] for r in results}), "outputs in order, once"
    assert [r.name for r in results] == list(part.outputs), "plan's outputs"
    assert all(r.op in CALLS for r in results), "an input or weight is an output"
    if part.target != "host":
        for node in (*places, *results):
            assert not isinstance(node.meta.get("val"), (tuple, list)), f"{node.name}: a tuple"


# ---- behaviour ----

class AsValues(torch.nn.Module):
    """An engine as a function of values: a deep copy that clones what goes in and comes out."""

    def __init__(self, engine):
        super().__init__()
        with torch.no_grad():
            self.engine = copy.deepcopy(engine)

    def forward(self, *args):
        for value in args:
            assert not isinstance(value, (tuple, list, dict)), "a tuple crosses the border"
        results = self.engine(*clone(args))
        several = isinstance(results, (tuple, list))
        assert several or not isinstance(results, (list, dict))
        return clone(results)


def clone(tree):
    return pytree.tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, tree)


def tensors_of(gm):
    """Every tensor that the graph or its modules hold, by name."""
    found = dict([*gm.named_parameters(), *gm.named_buffers()])
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            value = attribute(gm, node.target)
            if isinstance(value, torch.Tensor):
                found[node.target] = value
    return found


def run(module, gm, inputs, kwargs, seed):
    """(results, the inputs afterwards, gm's tensors afterwards); gm's tensors are put back."""
    held = tensors_of(gm)
    before = {k: v.detach().clone() for k, v in held.items()}
    args, kw = copy.deepcopy(inputs), copy.deepcopy(kwargs)
    torch.manual_seed(seed)
    try:
        with torch.no_grad():
            out = clone(module(*args, **kw))
            after = {k: v.detach().clone() for k, v in held.items()}
    finally:
        with torch.no_grad():
            for k, v in held.items():
                v.detach().copy_(before[k])
    return out, (args, kw), after


def same(a, b, what, exact=False):
    """Asserts one structure, and equal values: tensors nearly, unless exact."""
    near = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-5, "atol": 1e-6}
    flat_a, spec_a = pytree.tree_flatten(a)
    flat_b, spec_b = pytree.tree_flatten(b)
    assert spec_a == spec_b, f"{what}: structure {spec_a} and {spec_b}"
    for x, y in zip(flat_a, flat_b):
        if isinstance(x, torch.Tensor):
            assert isinstance(y, torch.Tensor) and x.dtype == y.dtype and x.shape == y.shape, what
            assert torch.equal(x, y) or torch.allclose(x, y, equal_nan=True, **near), what
        else:
            assert x == y, f"{what}: {x} and {y}"


def check_behaviour(original, result, inputs, kwargs=None, seed=0, exact=False):
    kwargs = kwargs or {}
    wanted = run(original, original, inputs, kwargs, seed)
    for what, wrap in (("parts", False), ("engines as values", True)):
        if wrap:
            swapped = {n: m for n, m in result.named_children() if n.startswith(ACC)}
            for name, engine in swapped.items():
                result._modules[name] = AsValues(engine)
        try:
            got = run(result, original, inputs, kwargs, seed)
        finally:
            if wrap:
                result._modules.update(swapped)
        for part, a, b in zip(("results", "the caller's tensors", "buffers"), wanted, got):
            same(a, b, f"{what}: {part}", exact)


def check(original, result, inputs=None, kwargs=None, host_submodules=True, seed=0, exact=False):
    check_structure(original, result, host_submodules)
    if inputs is not None:
        check_behaviour(original, result, inputs, kwargs, seed, exact)
    return result
