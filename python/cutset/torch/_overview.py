"""What an accelerator takes of a graph, why the rest stays on the host, what that costs in engines.

The numbers are those of the plan. The text is the report that Torch-TensorRT users know from
`dryrun`; each min_block_size it recommends was planned, so the engines it promises are those that
`partition` makes.
"""
from __future__ import annotations

import contextlib
import inspect
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from .._errors import BudgetError, IoError, NotFullySupportedError, UsageError
from .._plan import Fallback, Part, Plan
from ._codes import FOLLOW, FREE
from ._crossing import Crossing
from ._effects import op_name
from ._partition import Model, Request, as_module
from ._parts import ACC
from ._types import ELEMENTS

# A node on the host by another rule is one that the accelerator would take.
_REFUSALS = frozenset({"op", "type", "rank", "shape", "attr", "const", "opset", "dds", "user"})
_MOST_RECOMMENDED = 8
_RULE = "+" * 50
_DTYPES = {spelling: str(dtype).removeprefix("torch.") for dtype, spelling in ELEMENTS.items()}


@dataclass(frozen=True)
class SupportOverview:
    """Made by `support_overview`. `str()` is the dry-run report."""

    supported: Mapping[str, int]  # {operator: how many}
    unsupported: Mapping[str, int]  # excluded ones too
    total: int  # call nodes
    coverage: float  # 0..1
    fallback: tuple[Fallback, ...]  # rule, why, engines_saved_if_supported: as in the plan
    engines: int
    engine_ops: tuple[int, ...]  # call nodes, by engine
    recommendations: tuple[tuple[int, int], ...]  # (min_block_size, engines), ascending
    plan: Plan = field(repr=False)
    counted: tuple[int, ...] = field(default=(), repr=False)  # for min_block_size, by engine
    demoted: tuple[int, ...] = field(default=(), repr=False)  # call nodes, by recommendation
    follows: Mapping[str, str] = field(default_factory=dict, repr=False)  # {getitem: its tuple}
    numbers: Mapping[str, str] = field(default_factory=dict, repr=False)  # {value: "int", ...}

    def to_torch_tensorrt(self) -> tuple[dict[str, int], dict[str, int]]:
        """What its operator-support object holds: supported and unsupported operators, counted."""
        return dict(self.supported), dict(self.unsupported)

    def __str__(self) -> str:
        return "\n".join(_report(self))


# ---- the numbers ----

def overview_of(crossing: Crossing, plan: Plan, replan: Callable[[int], Plan],
                min_block_size: int = 1) -> SupportOverview:
    """`replan` gives the plan for another min_block_size."""
    first = {(node.op, node.target): node for node in crossing.nodes}
    known = {kind: op_name(node) for kind, node in first.items()}
    ops = {node.name: known[node.op, node.target] for node in crossing.nodes}
    refused = Counter(ops[f.node] for f in plan.fallback if f.rule in _REFUSALS)
    taken = Counter(ops.values()) - refused
    total = len(ops)
    engines = _engines(plan)
    counted = {node.name for i, node in enumerate(crossing.nodes)
               if not crossing.flags[i] & FREE and i not in crossing.constant}
    counts = tuple(sum(name in counted for name in part.nodes) for part in engines)
    plans = _recommend(counts, plan, replan, min_block_size)
    held = sum(len(part.nodes) for part in engines)
    return SupportOverview(
        dict(taken.most_common()), dict(refused.most_common()), total,
        taken.total() / total if total else 1.0, plan.fallback, plan.engines,
        tuple(len(part.nodes) for part in engines),
        tuple((size, other.engines) for size, other in plans), plan, counts,
        tuple(held - sum(len(part.nodes) for part in _engines(other)) for _, other in plans),
        {node.name: node.all_input_nodes[0].name for i, node in enumerate(crossing.nodes)
         if crossing.flags[i] & FOLLOW and node.all_input_nodes},
        _numbers(crossing))


def _engines(plan: Plan) -> list[Part]:
    return [part for part in plan.parts if part.target != "host"]


_KINDS = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}


def _numbers(crossing: Crossing) -> dict[str, str]:
    """The values that are known to be no tensors."""
    found = {}
    for node in crossing.module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, (bool, int, float, *_KINDS)):
            found[node.name] = _KINDS.get(type(value), type(value).__name__)
    return found


def _recommend(counts: Iterable[int], plan: Plan, replan: Callable[[int], Plan],
               min_block_size: int) -> tuple[tuple[int, Plan], ...]:
    """For each distinct size of an engine, the plan of that min_block_size; of many sizes some, the
    least and the largest among them. Sizes are those that min_block_size counts."""
    sizes = sorted({max(1, count) for count in counts})
    if len(sizes) > _MOST_RECOMMENDED:
        last = len(sizes) - 1
        sizes = [sizes[last * i // (_MOST_RECOMMENDED - 1)] for i in range(_MOST_RECOMMENDED)]
    return tuple((size, plan if size <= min_block_size else replan(size)) for size in sizes)


# ---- the text ----

def _report(o: SupportOverview) -> Iterable[str]:
    yield f"{_RULE} Dry-Run Results for Graph {_RULE}"
    yield ""
    yield (f"The graph consists of {o.total} Total Operators, of which "
           f"{sum(o.supported.values())} operators are supported, "
           f"{round(o.coverage * 100, 2)}% coverage")
    yield ""
    if o.unsupported:
        yield ("The following ops are currently unsupported or excluded from conversion, and are "
               "listed with their op-count in the graph:")
        yield from (f"  {name}: {count}" for name, count in o.unsupported.items())
        yield ""
    if o.fallback:
        yield "The following nodes are currently set to run in Torch:"
        yield from (_fallback_line(f, o.follows.get(f.node)) for f in o.fallback)
        yield ""
    yield "  Graph Structure:"
    yield ""
    yield from _structure(o)
    yield ""
    yield from _aggregate(o)


def _plural(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _fallback_line(f: Fallback, producer: str | None) -> str:
    if producer is not None:
        return f"  Node: {f.op}, {f.node}: goes where {producer} goes"
    saved = f.engines_saved_if_supported
    cost = f"; supported, it would save {_plural(saved, 'engine')}" if saved else ""
    return f"  Node: {f.op}, {f.node} ({f.rule}): {f.why}{cost}"


def _structure(o: SupportOverview) -> Iterable[str]:
    types = {b.value: "number" if (b.type, b.bytes) == ("?", 0) else b.type
             for b in o.plan.boundaries}
    types |= {v.name: v.type for v in (*o.plan.model.inputs, *o.plan.model.outputs)}
    types |= o.numbers
    budget, several = o.plan.options.host_memory, len(o.plan.options.target) > 1

    def spell(names: Iterable[str]) -> str:
        return f"List[{', '.join(_spell_type(types.get(name, '?')) for name in names)}]"

    if budget is not None:
        yield f"   Budget of an engine: {budget} bytes"
    yield f"   Inputs: {spell(v.name for v in o.plan.model.inputs)}"
    for number, part in enumerate(_engines(o.plan), 1):
        yield "    ..."
        yield f"    Engine #{number} - Submodule name: {ACC}{part.id}"
        if several:
            yield f"     Accelerator: {part.target}"
        yield f"     Engine Inputs: {spell(part.inputs)}"
        counted = o.counted[number - 1]
        of_them = f" ({counted} for min_block_size)" if counted != len(part.nodes) else ""
        yield f"     Number of Operators in Engine: {len(part.nodes)}{of_them}"
        if budget is not None:
            yield f"     Bytes to build it: {part.host_build_bytes}"
        yield f"     Engine Outputs: {spell(part.outputs)}"
    yield "    ..."
    yield f"   Outputs: {spell(v.name for v in o.plan.model.outputs)}"


def _spell_type(text: str) -> str:
    if text in _KINDS.values():
        return text
    match = re.fullmatch(r"(\w+)(?:\[(.*)\])?", text)
    if match is None or match[1] not in _DTYPES:
        return "Tensor" if text == "?" else text
    if match[2] is None:
        return f"Tensor: @{_DTYPES[match[1]]}"
    dims = match[2].replace(",", ", ")
    return f"Tensor: ({dims})@{_DTYPES[match[1]]}"


def _aggregate(o: SupportOverview) -> Iterable[str]:
    if not o.engines:
        yield "  Aggregate stats not available since no engines were generated."
        return
    dashes, stars = "-" * 25, "*" * 10
    average = sum(o.engine_ops) / o.engines
    yield f"  {dashes} Aggregate Stats {dashes}"
    yield ""
    yield f"   Average Number of Operators per Engine: {round(average, 2)}"
    yield f"   Most Operators in an Engine: {max(o.engine_ops)}"
    yield ""
    yield f"  {stars} Recommendations {stars}"
    yield ""
    moves = [f": {_plural(number, 'more operator')} on the host" if number else ""
             for number in o.demoted]
    if o.plan.options.host_memory is not None and o.engines > 1:  # fewer engines do less
        for (size, engines), move in reversed([*zip(o.recommendations, moves)][1:]):
            yield f"   - min_block_size={size} leaves {_plural(engines, 'engine')}{move}"
    else:
        *between, (most, fewest) = o.recommendations
        yield (f"   - For minimal graph segmentation, select min_block_size={most} which would "
               f"generate {fewest} engine(s){moves[-1]}")
        for (size, engines), move in reversed([*zip(between, moves)][1:]):
            yield (f"   - For moderate graph segmentation, select min_block_size={size} which "
                   f"would generate {engines} engine(s){move}")
    least, engines = o.recommendations[0]
    yield ("   - The current level of graph segmentation is equivalent to selecting "
           f"min_block_size={least} which generates {engines} engine(s)")


# ---- dryrun ----

def show(overview: SupportOverview, dryrun: bool | str | os.PathLike[str]) -> None:
    """Prints the report; a path is also written, but never over a file."""
    text = str(overview)
    print(text)
    if isinstance(dryrun, bool):
        return
    path = os.fspath(dryrun)
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text + "\n")
    except FileExistsError:
        warnings.warn(f"{path} is there already, the report was not written: name another file",
                      stacklevel=3)
    except OSError as error:
        raise IoError(f"{path} cannot be written: {error.strerror}: name another file",
                      errno=error.errno, path=path) from error


def dry_run(model: Model, dryrun: bool | str | os.PathLike[str], **options: Any) -> Model:
    """`partition` with `dryrun`: shows the report and gives the model back."""
    if not isinstance(dryrun, (bool, str, os.PathLike)):
        raise UsageError(f"dryrun is {dryrun!r}: give True, False or a path")
    try:
        overview = support_overview(model, **options)
    except (BudgetError, NotFullySupportedError):
        if not options.get("require_full_compilation"):
            raise
        freely = {**options, "require_full_compilation": False, "min_block_size": 1}
        with contextlib.suppress(BudgetError):
            show(support_overview(model, **freely), dryrun)
        raise
    show(overview, dryrun)
    return model


# ---- the call ----

def support_overview(model: Model, **options: Any) -> SupportOverview:
    """What the accelerator takes of the graph, why the rest stays on the host, and what that costs.
    Options as for `plan`; nothing is built."""
    for name in options.keys() - inspect.signature(Request).parameters.keys():
        raise TypeError(f"support_overview() takes no option {name!r}: it takes those of plan")
    request = Request(as_module(model), **options)
    crossing, plan = request.decide()

    def replan(min_block_size: int) -> Plan:
        return request.plan(crossing, request.budget, min_block_size)

    return overview_of(crossing, plan, replan, request.min_nodes)
