"""compile: partition, then an engine in place of each accelerated part.

1. A Module is exported, and its in-place operators are made functional.
2. The graph is partitioned; `supported` is what the backend takes, unless the caller says.
3. Each `_run_on_acc_N` goes to the backend (_backends.py), with zeros of the types and sizes that
   it takes.
4. A backend may refuse a part. The operators to blame are then looked for: those that the backend's
   message names first, each on its own. `supported` refuses them from then on, in the backend's
   words, and the graph is planned again; parts that come out as before keep their engines. A
   constant expression stays with its readers whatever `supported` says, so when it is refused again
   they are refused too. Every round refuses another node, so this ends. Where no operator is to
   blame alone, compile raises.
"""
from __future__ import annotations

import operator
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from .. import _options
from .._errors import Error, ModelError, UsageError
from . import _backends, _program
from ._effects import op_name
from ._partition import partition
from ._parts import ACC
from ._support import Refusing


def compile(model: torch.nn.Module | ExportedProgram, args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None, *, backend: Any = "onnxruntime",
            memory_budget: int | str | None = None, dynamic_shapes: Any = None,
            cache_dir: Any = None, **options: Any) -> torch.nn.Module:
    """The model with an engine in place of each accelerated part; `.meta["cutset"]` is the Plan.

    model           a Module (exported with `args`, `kwargs` and `dynamic_shapes`, then made
                    functional), a GraphModule or an ExportedProgram (taken as they are)
    backend         "onnxruntime", "openvino", "tensorrt", "inductor", "eager", or a callable
                    (name, GraphModule, example_inputs) -> callable; the inputs are zeros, and a
                    Module that it gives becomes the child itself
    memory_budget   budget of the plan where `cpu_memory_budget` is not given; builds are not capped
                    yet (a warning says so)
    cache_dir       where "onnxruntime" keeps exported parts, by content; the others have none yet
    options         those of `partition`; `supported` defaults to what the backend takes; `dryrun`
                    gives `model` back

    What a backend refuses runs on the host, with a UserWarning; what a callable raises is raised.
    Engines compute without gradients; those of "onnxruntime", "openvino" and "tensorrt" hold
    copies of their weights. ImportError: the backend's package is not installed.
    """
    chosen = _backends.find(backend, cache_dir)
    args, kwargs = (args,) if isinstance(args, torch.Tensor) else tuple(args), dict(kwargs or {})
    if memory_budget is not None:
        _take_budget(memory_budget, options)
    supported = options.pop("supported", None)
    supported = chosen.takes if supported is None else supported
    graph = _graph(model, args, kwargs, dynamic_shapes)
    refusals: dict[str, str] = {}
    engines: dict[Any, torch.nn.Module] = {}
    while True:
        result = partition(graph, supported=Refusing(supported, refusals), **options)
        if options.get("dryrun", False) is not False:
            return model
        refused = _build_all(result, chosen, engines, args, kwargs)
        if not refused:
            return result
        known = frozenset(refusals)
        for part, inputs, error in refused:
            for node, why in _blame(result, part, inputs, error, chosen).items():
                refusals.update(dict.fromkeys(_refused_with(node, known, why), why))


def _take_budget(size: Any, options: dict[str, Any]) -> None:
    """`memory_budget`, where `cpu_memory_budget` leaves it something to say."""
    if size not in ("auto", "max") and _options.whole(size) != -1 and not _options.is_above(
            size, _options.MOST):
        _options.size_bytes(size, "memory_budget")
    if options.get("cpu_memory_budget") is None:
        options["cpu_memory_budget"] = size
        says = "memory_budget bounds the forecast of each engine"
    else:
        says = "memory_budget does nothing yet, as cpu_memory_budget is given"
    warnings.warn(f"{says}; builds run in this process and are not capped yet", UserWarning,
                  stacklevel=3)


def _graph(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any) -> Any:
    if isinstance(model, (GraphModule, ExportedProgram)):
        if dynamic_shapes is not None:
            raise UsageError(f"dynamic_shapes goes with a Module; this {type(model).__name__} has "
                             "its sizes already: give them to torch.export.export")
        return model
    if isinstance(model, torch.jit.ScriptModule) or not isinstance(model, torch.nn.Module):
        raise UsageError(f"model is a {type(model).__name__}: give a torch.nn.Module, GraphModule "
                         "or ExportedProgram")
    try:
        program = torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        return program.run_decompositions({})
    except Exception as error:
        raise ModelError(f"torch.export cannot export {type(model).__name__}: "
                         f"{_said(error)}") from error


# ---- engines ----

class Engine(torch.nn.Module):
    """What a backend built, called as the part was: the same types, devices and memory layouts."""

    run: Callable[..., Any]

    def __init__(self, name: str, part: GraphModule) -> None:
        super().__init__()
        self.name = name
        self.bare, outputs = _program.outputs_of(part)
        self.like = [_likeness(n) for n in outputs]

    @torch.no_grad()
    def forward(self, *args: Any) -> Any:
        results = self.run(*args)
        results = results if isinstance(results, (tuple, list)) else (results,)
        if len(results) != len(self.like):
            raise Error(f"{self.name}: the engine gives {len(results)} values, its part "
                        f"{len(self.like)}", node=self.name)
        made = tuple(like(r) for like, r in zip(self.like, results))
        return made[0] if self.bare else made

    def extra_repr(self) -> str:
        return f"{self.name}: {type(self.run).__name__}"


def _likeness(node: Any) -> Callable[[Any], Any]:
    """A function that gives a result the type, device and order of strides that the part gives."""
    value = node.meta.get("val") if isinstance(node, Node) else node
    if value is None:
        return lambda result: result
    if not isinstance(value, torch.Tensor):
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}.get(type(value))
        kind = kind or type(value)
        return lambda result: kind(result)
    dtype, device, order = value.dtype, value.device, _order(value)

    def like(result: torch.Tensor) -> torch.Tensor:
        result = result.to(device=device, dtype=dtype)
        if order is None:
            return result
        return torch.empty_permuted(result.shape, order, dtype=dtype,
                                    device=device).copy_(result)
    return like


def _order(value: torch.Tensor) -> list[int] | None:
    """The dimensions by falling stride, where that is not their own order: channels_last, say."""
    sizes, strides = ([_program.hint(n) for n in numbers]
                      for numbers in (value.shape, value.stride()))
    order = sorted(range(len(sizes)), key=strides.__getitem__, reverse=True)
    dense = 1
    for d in reversed(order):
        if strides[d] != dense and sizes[d] != 1:
            return None
        dense *= sizes[d]
    return order if order != list(range(len(sizes))) else None


Refusal = tuple[GraphModule, list[Any], Exception]


def _build_all(gm: GraphModule, backend: _backends.Backend, engines: dict[Any, torch.nn.Module],
               args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Refusal]:
    """Puts an engine in the place of each part that has none; the refused parts."""
    parts = [(n, p) for n, p in gm.named_children() if n.startswith(ACC)]
    unknown = [n for n, p in parts if not _program.knows_inputs(p)]
    seen = _program.seen_inputs(gm, unknown, args, kwargs) if unknown else {}
    refused = []
    for name, part in parts:
        key = _same(part)
        if key not in engines:
            inputs = _program.example_inputs(part, seen.get(name))
            if name in seen:
                _program.fill_meta(part, inputs)
            try:
                engines[key] = _build(backend, name, part, inputs)
            except (Error, ImportError, MemoryError, OSError):
                raise
            except Exception as error:
                if not backend.moves:
                    raise
                refused.append((part, inputs, error))
                continue
        setattr(gm, name, engines[key])
    return refused


def _build(backend: _backends.Backend, name: str, part: GraphModule,
           inputs: list[Any]) -> torch.nn.Module:
    engine = Engine(name, part)  # first: a builder may change the part
    with torch.no_grad():
        run = backend.build(name, part, inputs)
    if not callable(run):
        raise UsageError(f"backend {backend.name!r} gave a {type(run).__name__} for {name}: it has "
                         "to give a callable")
    if run is part or (not backend.moves and isinstance(run, torch.nn.Module)):
        return run
    engine.run = run
    return engine


def _same(part: GraphModule) -> tuple[Any, ...]:
    """Equal for parts of one graph that hold the same nodes and take and give the same values."""
    return tuple((n.op, n.name, str(n.target), str(n.args), str(n.kwargs))
                 for n in part.graph.nodes)


# ---- refusals ----

def _blame(gm: GraphModule, part: GraphModule, inputs: list[Any], error: Exception,
           backend: _backends.Backend) -> dict[Node, str]:
    """The nodes that the backend refuses alone, each with its words; raises where it takes all."""
    said: dict[Any, str | None] = {}
    for group in _suspects(part, error):
        for node in group:
            if _signature(node) not in said:
                said[_signature(node)] = _refusal(backend, part, node)
        nodes = {n: why for n in part.graph.nodes if (why := said.get(_signature(n)))}
        if nodes:
            ops: dict[str, str] = {}
            for node, why in nodes.items():
                ops.setdefault(op_name(node), f"{op_name(node)} ({node.name}): {why}")
            warnings.warn(f"backend {backend.name!r} refuses {'; '.join(ops.values())}; on the "
                          "host", UserWarning, stacklevel=3)
            return {n: f"{backend.name}: {why}" for n, why in nodes.items()}
    name = next(n for n, p in gm.named_children() if p is part)
    raise Error(f"{name}: backend {backend.name!r} refuses it, though it takes each of its "
                f"operators alone: {_said(error)}; keep some on the host with torch_executed_ops",
                node=name) from error


def _refused_with(node: Node, known: frozenset[str], why: str) -> list[str]:
    """The node; where it was refused before, the nearest readers that were not."""
    level = [node]
    while all(n.name in known for n in level):
        level = list(dict.fromkeys(u for n in level for u in n.users if u.op != "output"))
        if not level:
            raise Error(f"{node.name} cannot be kept from the engines, {why}: pin neither it nor "
                        "what reads it to an accelerator", node=node.name)
    return [n.name for n in level]


def _suspects(part: GraphModule, error: BaseException) -> Iterator[list[Node]]:
    """Nodes that the error names, its causes first; in the end all."""
    nodes = [n for n in part.graph.nodes
             if n.op.startswith("call_") and n.target is not operator.getitem]
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    for link in reversed(chain):
        words = set(re.findall(r"\w+(?:(?:\.|::)\w+)*", str(link).replace("::", ".")))
        words |= {w.removeprefix("node_") for w in words}
        named = [n for n in nodes if n.name in words or _spellings(n) & words]
        if named:
            yield named
    yield nodes


def _spellings(node: Node) -> set[str]:
    if isinstance(node.target, torch._ops.OpOverload):
        return {str(node.target), str(node.target.overloadpacket)}
    return {node.target} if isinstance(node.target, str) else set()


def _signature(node: Node) -> tuple[Any, ...]:
    """Operator, types and ranks of what it reads, and its constants: a backend's reasons."""
    def described(n: Node) -> str:
        value = n.meta.get("val")
        return f"{value.dtype}/{value.dim()}" if isinstance(value, torch.Tensor) else "number"
    return (node.op, str(node.target),
            str(torch.fx.map_arg((node.args, node.kwargs), described)))


def _refusal(backend: _backends.Backend, part: GraphModule, node: Node) -> str | None:
    """What the backend says against a part of this node alone; None where it takes it."""
    graph, copies = Graph(), {}
    for read in node.all_input_nodes:
        if read.op == "get_attr":
            copies[read] = graph.node_copy(read)
            continue
        copies[read] = made = graph.placeholder(read.name)
        made.meta = dict(read.meta)
    if getattr(getattr(node.target, "_schema", None), "is_mutable", True):
        for read, made in list(copies.items()):  # a part writes none of its inputs
            value = read.meta.get("val")
            if isinstance(value, torch.Tensor):
                copies[read] = graph.call_function(torch.ops.aten.clone.default, (made,))
                copies[read].meta["val"] = value
    made = graph.node_copy(node, copies.__getitem__)
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        items = []
        for i, one in enumerate(value):
            if isinstance(one, torch.Tensor):
                items.append(graph.call_function(operator.getitem, (made, i)))
                items[-1].meta["val"] = one
        graph.output(tuple(items))
    else:
        graph.output(made)
    alone = GraphModule(part, graph)
    try:
        _build(backend, node.name, alone, _program.example_inputs(alone))
    except (MemoryError, OSError):
        raise
    except Exception as error:
        return _said(error)
    return None


def _said(error: BaseException) -> str:
    """The innermost cause that says something, cut to a line."""
    said, link, seen = type(error).__name__, error, set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        text = " ".join(str(link).split())
        text = textwrap.shorten(text, 300, placeholder=" ...")
        said = f"{type(link).__name__}: {text}" if text else said
        link = link.__cause__
    return said
