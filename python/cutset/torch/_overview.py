"""What an accelerator takes of a graph, why the rest stays on the host, what that costs in engines.

The numbers are those of the plan. The text is the report that Torch-TensorRT users know from
`dryrun`; each min_block_size it recommends was planned, so the engines it promises are those that
`partition` makes.
"""
from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.fx import Node

from .._errors import IoError, UsageError
from .._plan import Fallback, Part, Plan
from . import _effects
from ._crossing import FREE, Crossing
from ._partition import Model, Request, as_module

# A node on the host by another rule is one that the accelerator would take.
_REFUSALS = frozenset({"op", "type", "rank", "shape", "attr", "const", "opset", "dds", "user"})
_MOST_RECOMMENDED = 8
_RULE = "+" * 50
_DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16",
    "u8": "uint8", "bool": "bool", "c64": "complex64", "c128": "complex128"}


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

    def to_torch_tensorrt(self) -> tuple[dict[str, int], dict[str, int]]:
        """What its operator-support object holds: supported and unsupported operators, counted."""
        return dict(self.supported), dict(self.unsupported)

    def __str__(self) -> str:
        return "\n".join(_report(self))


# ---- the numbers ----

def overview_of(crossing: Crossing, plan: Plan, replan: Callable[[int], Plan],
                min_block_size: int = 1) -> SupportOverview:
    """`replan` gives the plan for another min_block_size."""
    known: dict[Any, str] = {}
    ops = {node.name: _op_name(node, known) for node in crossing.nodes}
    refused = Counter(ops[f.node] for f in plan.fallback if f.rule in _REFUSALS)
    taken = Counter(ops.values()) - refused
    total = len(ops)
    engines = _engines(plan)
    return SupportOverview(
        dict(taken.most_common()), dict(refused.most_common()), total,
        taken.total() / total if total else 1.0, plan.fallback, plan.engines,
        tuple(len(part.nodes) for part in engines),
        _recommend(crossing, plan, replan, min_block_size), plan)


def _op_name(node: Node, known: dict[Any, str]) -> str:
    """As plans spell it."""
    key = node.op, node.target
    if key not in known:
        known[key] = (_effects.function_facts(node.target).name
                      if node.op == "call_function" else str(node.target))
    return known[key]


def _engines(plan: Plan) -> list[Part]:
    return [part for part in plan.parts if part.target != "host"]


def _recommend(crossing: Crossing, plan: Plan, replan: Callable[[int], Plan],
               min_block_size: int) -> tuple[tuple[int, int], ...]:
    """For each distinct size of an engine, the engines of that min_block_size; of many sizes some,
    the least and the largest among them. Sizes are those that min_block_size counts."""
    counted = {node.name for i, node in enumerate(crossing.nodes)
               if not crossing.flags[i] & FREE and i not in crossing.constant}
    sizes = sorted({max(1, sum(name in counted for name in part.nodes))
                    for part in _engines(plan)})
    if len(sizes) > _MOST_RECOMMENDED:
        last = len(sizes) - 1
        sizes = [sizes[last * i // (_MOST_RECOMMENDED - 1)] for i in range(_MOST_RECOMMENDED)]
    return tuple((size, plan.engines if size <= min_block_size else replan(size).engines)
                 for size in sizes)


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
        yield from map(_fallback_line, o.fallback)
        yield ""
    yield "  Graph Structure:"
    yield ""
    yield from _structure(o)
    yield ""
    yield from _aggregate(o)


def _fallback_line(f: Fallback) -> str:
    saved = f.engines_saved_if_supported
    cost = f"; supported, it would save {saved} engine{'s' * (saved != 1)}" if saved else ""
    return f"  Node: {f.op}, {f.node} ({f.rule}): {f.why}{cost}"


def _structure(o: SupportOverview) -> Iterable[str]:
    types = {b.value: b.type for b in o.plan.boundaries}
    types |= {v.name: v.type for v in (*o.plan.model.inputs, *o.plan.model.outputs)}

    def spell(names: Iterable[str]) -> str:
        return f"List[{', '.join(_spell_type(types.get(name, '?')) for name in names)}]"

    yield f"   Inputs: {spell(v.name for v in o.plan.model.inputs)}"
    for number, part in enumerate(_engines(o.plan), 1):
        yield "    ..."
        yield f"    Engine #{number} - Submodule name: _run_on_acc_{part.id}"
        yield f"     Engine Inputs: {spell(part.inputs)}"
        yield f"     Number of Operators in Engine: {len(part.nodes)}"
        yield f"     Engine Outputs: {spell(part.outputs)}"
    yield "    ..."
    yield f"   Outputs: {spell(v.name for v in o.plan.model.outputs)}"


def _spell_type(text: str) -> str:
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
    *between, (most, fewest) = o.recommendations
    yield (f"   - For minimal graph segmentation, select min_block_size={most} which would "
           f"generate {fewest} engine(s)")
    for size, engines in reversed(between[1:]):
        yield (f"   - For moderate graph segmentation, select min_block_size={size} which would "
               f"generate {engines} engine(s)")
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
    show(support_overview(model, **options), dryrun)
    return model


# ---- the call ----

def support_overview(model: Model, **options: Any) -> SupportOverview:
    """What the accelerator takes of the graph, why the rest stays on the host, and what that costs.
    Options as for `plan`; nothing is built."""
    request = Request(as_module(model), **options)
    crossing, plan = request.decide()

    def replan(min_block_size: int) -> Plan:
        return request.plan(crossing, request.budget, min_block_size)

    return overview_of(crossing, plan, replan, request.min_nodes)
