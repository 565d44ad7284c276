"""A part as engine builders take it: an ExportedProgram, and inputs to build it with.

A part of a graph from torch.export is all operators, with fake values in `meta`: its program is put
together from it as it stands, so sizes that are symbols stay the same symbols in every part.
Tracing a part again would lose how its sizes depend on each other, and fix them where it asks. Any
other part (modules inside, no `meta`) is traced again, with the sizes that were seen.

Nothing here runs an operator on the caller's tensors; only `seen_inputs` may run them, on copies.
"""
from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch._export.verifier import load_verifier
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import ExportedProgram
from torch.export import graph_signature as signature
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.fx import Graph, GraphModule, Node
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_UNKNOWN = 4  # what a size that only the data tells is taken for


def resolve(module: torch.nn.Module, path: str) -> Any:
    """What a dotted name of a `get_attr` or `call_module` node names."""
    return operator.attrgetter(path)(module)


def inputs_of(part: GraphModule) -> list[Node]:
    return part.graph.find_nodes(op="placeholder", sort=True)


def outputs_of(part: GraphModule) -> tuple[bool, tuple[Any, ...]]:
    """Whether the part gives one bare value, and what it gives."""
    result = part.graph.output_node().args[0]
    several = isinstance(result, (tuple, list))
    return not several, tuple(result) if several else (result,)


def is_dynamic(part: GraphModule) -> bool:
    """Does an input have a size that is a symbol?"""
    return any(_symbols(n.meta.get("val")) for n in inputs_of(part))


# ---- inputs ----

def hint(number: Any) -> Any:
    """A number for a symbolic one: what it was when the graph was exported."""
    if not isinstance(number, SYMBOLIC):
        return number
    env, expr = number.node.shape_env, number.node.expr
    known = getattr(env, "backed_var_to_val", None)
    known = env.var_to_val if known is None else known
    values = {s: known[s] if s in known else _within(env.var_to_range.get(s))
              for s in expr.free_symbols}
    kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(number)]
    return kind(expr.xreplace(values))


def _within(bounds: Any) -> int:
    if bounds is None:
        return _UNKNOWN
    return int(min(max(bounds.lower, _UNKNOWN), bounds.upper))


def example(value: Any) -> Any:
    """A real value like a fake one: zeros, which are valid indices too."""
    if isinstance(value, torch.Tensor):
        return torch.zeros([hint(s) for s in value.shape], dtype=value.dtype, device=value.device)
    return hint(value)


def example_inputs(part: GraphModule, seen: Sequence[Any] | None = None) -> list[Any]:
    """Zeros of the types and sizes the part takes, from `meta` or from what was seen."""
    if seen is None:
        seen = [n.meta.get("val") for n in inputs_of(part)]
    return [example(v) for v in seen]


def knows_inputs(part: GraphModule) -> bool:
    return all(n.meta.get("val") is not None for n in inputs_of(part))


def seen_inputs(gm: GraphModule, names: Sequence[str], args: Sequence[Any],
                kwargs: dict[str, Any]) -> dict[str, list[Any]]:
    """What these children take when `gm` runs: on fake tensors, or else on copies of everything."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode, torch.no_grad():
            fakes = pytree.tree_map_only(torch.Tensor, mode.from_tensor, (tuple(args), kwargs))
            return _watch(gm, names, *fakes)
    except Exception:  # sizes that only the data tells, operators without a fake kernel
        devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
        with torch.random.fork_rng(devices), torch.no_grad():
            return _watch(*copy.deepcopy((gm, names, tuple(args), kwargs)))


def _watch(gm: GraphModule, names: Sequence[str], args: tuple[Any, ...],
           kwargs: dict[str, Any]) -> dict[str, list[Any]]:
    seen: dict[str, list[Any]] = {}
    hooks = [gm.get_submodule(name).register_forward_pre_hook(
        lambda _, inputs, name=name: seen.__setitem__(name, list(inputs))) for name in names]
    try:
        gm(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


# ---- programs ----

def fill_meta(part: GraphModule, inputs: Sequence[Any]) -> None:
    """Gives the nodes fake values, where the operators allow; the sizes are those of the inputs."""
    with contextlib.suppress(Exception):  # without them fewer questions can be answered, no more
        FakeTensorProp(part).propagate(*inputs)


def _is_flat(node: Node) -> bool:
    if node.op in ("call_module", "call_method"):
        return False
    if node.op in ("get_attr", "output"):
        return True
    value = node.meta.get("val")
    if value is None or node.op == "placeholder":
        return value is not None
    return node.target is operator.getitem or not isinstance(value, torch.Tensor) or \
        isinstance(node.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator))


def flat(part: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """The part as a graph of operators whose nodes have fake values: itself, or a trace of it."""
    if all(map(_is_flat, part.graph.nodes)):
        return part
    if is_dynamic(part):
        raise ValueError("a part with symbolic sizes must be all operators, as torch.export leaves "
                         "them")
    traced = torch.export.export(part, tuple(inputs)).module()
    graph = Graph()
    result = graph.graph_copy(traced.graph, {})
    graph.output(result)
    for node in graph.find_nodes(op="call_module"):
        graph.erase_node(node)  # the guards of the export
    return GraphModule(traced, graph)


def program(part: GraphModule, inputs: Sequence[Any]) -> ExportedProgram:
    """The part with its weights as an ExportedProgram; it writes nothing, and gives a tuple."""
    part = flat(part, inputs)
    graph, copies = Graph(), {}
    specs, state = _lift_weights(part, graph, copies)
    for node in inputs_of(part):
        made = copies[node] = graph.placeholder(node.name)
        made.meta = dict(node.meta)
        specs.append(signature.InputSpec(signature.InputKind.USER_INPUT, _argument(made), None))
    for node in part.graph.nodes:
        if node not in copies and node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    outputs = [copies[n] if isinstance(n, Node) else n for n in outputs_of(part)[1]]
    graph.output(tuple(outputs))
    specs_out = [signature.OutputSpec(signature.OutputKind.USER_OUTPUT, _argument(n), None)
                 for n in outputs]
    takes = pytree.tree_structure(((0,) * len(inputs_of(part)), {}))
    gives = pytree.tree_structure((0,) * len(outputs))
    call = ModuleCallSignature([], [], takes, gives)
    return ExportedProgram(part, graph, signature.ExportGraphSignature(specs, specs_out), state,
                           _ranges(graph), [ModuleCallEntry("", call)],
                           verifiers=[load_verifier("TRAINING")])


def _lift_weights(part: GraphModule, graph: Graph, copies: dict[Node, Node]) \
        -> tuple[list[signature.InputSpec], dict[str, torch.Tensor]]:
    """Puts a placeholder for each weight in front; get_attrs of graphs stay what they are."""
    mode = next((n.meta["val"].fake_mode for n in part.graph.nodes
                 if hasattr(n.meta.get("val"), "fake_mode")), None) or FakeTensorMode()
    specs, state, known = [], {}, {}
    for node in part.graph.find_nodes(op="get_attr", sort=True):
        weight = resolve(part, node.target)
        if not isinstance(weight, torch.Tensor):
            continue
        if node.target not in known:
            made = known[node.target] = graph.placeholder(f"weight_{len(known)}")
            made.meta["val"] = mode.from_tensor(weight, static_shapes=True)
            is_parameter = isinstance(weight, torch.nn.Parameter)
            kind = signature.InputKind.PARAMETER if is_parameter else signature.InputKind.BUFFER
            specs.append(signature.InputSpec(kind, signature.TensorArgument(made.name), node.target,
                                             None if is_parameter else True))
            state[node.target] = weight
        copies[node] = known[node.target]
    return specs, state


def _argument(node: Any) -> Any:
    if not isinstance(node, Node):
        return signature.ConstantArgument("", node)
    value = node.meta.get("val")
    for kind, argument in ((torch.SymInt, signature.SymIntArgument),
                           (torch.SymFloat, signature.SymFloatArgument),
                           (torch.SymBool, signature.SymBoolArgument)):
        if isinstance(value, kind):
            return argument(node.name)
    if isinstance(value, (int, float, bool, str)):
        return signature.ConstantArgument(node.name, value)
    return signature.TensorArgument(node.name)


def _symbols(value: Any) -> list[Any]:
    """The symbolic numbers of a value: itself, or its sizes; also of several values."""
    if isinstance(value, (tuple, list)):
        return [s for v in value for s in _symbols(v)]
    numbers = value.shape if isinstance(value, torch.Tensor) else (value,)
    return [n for n in numbers if isinstance(n, SYMBOLIC)]


def _ranges(graph: Graph) -> dict[Any, Any]:
    ranges = {}
    for node in graph.nodes:
        for number in _symbols(node.meta.get("val")):
            bounds = number.node.shape_env.var_to_range
            ranges.update({s: bounds[s] for s in number.node.expr.free_symbols if s in bounds})
    return ranges
