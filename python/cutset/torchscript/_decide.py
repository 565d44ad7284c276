"""A graph on its way into the library: its text, and by line who may run it, how large it is.

All that is decided is decided there. What happens here: `supported` is asked, names are matched
with kinds and classes, weights are sized by storage.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import torch

from .. import _options
from .._errors import BudgetError, NotFullySupportedError, UsageError
from .._lib import ALLOW_HOST, NONE, Call, ffi, lib
from .._model import make_plan, plan_options
from .._plan import Plan, take_plan, warn_oversized
from ..torch._codes import OPTION_WORDS
from ..torch._partition import budget_of, too_large
from ..torch._support import asker_of
from ..torch._types import memory_of
from ._kinds import ScriptPlan
from ._source import CONSTANT, GETATTR, Source

Answer = bool | str | None  # None: the library knows
Ask = Callable[[torch._C.Node], Answer]
ALLOW_DEFAULT = 1 << 30  # CUTSET_ALLOW_DEFAULT
_ACC = 1


class Request:
    """What `plan` and `partition` are asked, checked."""

    def __init__(self, source: Source, *, supported: Any, min_block_size: Any,
                 torch_executed_ops: Any, torch_executed_modules: Any,
                 require_full_compilation: Any, cpu_memory_budget: Any, memory_factor: Any,
                 memory_base: Any, oversize: Any, max_engines: Any, groups: Any) -> None:
        self.source = source
        self.full = bool(require_full_compilation)
        least = _options.count(min_block_size, "min_block_size", 0)
        self.min_nodes = 1 if self.full else least
        self.budget = budget_of(cpu_memory_budget, memory_factor, memory_base, oversize)
        self.max_engines = max_engines
        self.groups = groups
        self.ask = _asker(supported)
        self.ops = frozenset(_options.names(torch_executed_ops, "torch_executed_ops"))
        self.classes = frozenset(_class_name(item) for item in _items(torch_executed_modules))
        if self.full and (self.ops or self.classes):
            raise UsageError("require_full_compilation=True leaves nothing to torch: drop "
                             "torch_executed_ops and torch_executed_modules, or the option")

    def decide(self) -> Plan:
        """Crosses and plans."""
        call = Call(words=OPTION_WORDS)
        model = self._cross(call)
        plan = (self._full_plan(call, model) if self.full else
                self._plan(call, model, self.budget.bytes))
        if self.budget.oversize == "keep":
            warn_oversized(plan, 5)
        return plan

    def _plan(self, call: Call, model: Any, budget: int | None) -> Plan:
        opts, keep = plan_options(
            call, host_memory=budget, device_memory=None, min_nodes=self.min_nodes, pin=None,
            exclude=(), groups=self.groups, oversize=self.budget.oversize, objective="engines",
            max_engines=self.max_engines, effort=1, connected=False)
        opts.tensors_only = 1
        out = ffi.new("cutset_target **")
        call.check(lib.cutset_target_marked(out, b"acc", float(self.budget.factor),
                                            self.budget.base, 0, call.err))
        plan = make_plan(model, [ffi.gc(out[0], lib.cutset_target_free)], opts, call)
        del keep
        return ScriptPlan.of(take_plan(plan, call), self.source.kinds())

    # ---- the graph ----

    def _cross(self, call: Call) -> Any:
        lines = self.source.lines
        text = str(self.source.graph).encode("utf-8", "surrogateescape")
        allow, reasons, why = self._permits()
        sizes, storages = _storages(self.source)
        schemas = sorted({str(node.schema()) for node in lines
                          if not node.kind().startswith(("aten::", "prim::"))}
                         - {"(no schema)"})
        keep = [ffi.new("char[]", text), ffi.new("uint32_t[]", allow),
                ffi.new("char[]", _listed(reasons)), ffi.new("uint32_t[]", why),
                ffi.new("int64_t[]", sizes), ffi.new("uint32_t[]", storages),
                ffi.new("char[]", _listed(schemas))]
        given = ffi.new("cutset_torchscript *", {
            "text": keep[0], "len": len(text), "n_lines": len(lines), "allow": keep[1],
            "n_reasons": len(reasons), "reasons": keep[2], "line_reasons": keep[3],
            "n_storages": len(sizes), "storage_bytes": keep[4], "storages": keep[5],
            "n_schemas": len(schemas), "schemas": keep[6]})
        out = ffi.new("cutset_model **")
        call.check(lib.cutset_model_open_torchscript(out, given, call.err))
        return ffi.gc(out[0], lib.cutset_model_free)

    def _permits(self) -> tuple[list[int], list[str], list[int]]:
        """By line: who may run it; the reasons; by line, which of them."""
        allow, why = [], []
        known: dict[str, int] = {}
        for node in self.source.lines:
            answer = True if node.kind() in (CONSTANT, GETATTR) else self._answer(node)
            allow.append(ALLOW_HOST | (ALLOW_DEFAULT if answer is None else
                                       _ACC if answer is True else 0))
            why.append(known.setdefault(answer, len(known)) if isinstance(answer, str) else NONE)
        return allow, list(known), why

    def _answer(self, node: torch._C.Node) -> Answer:
        if self.ops and _is_one(node, self.ops):
            return "user: torch_executed_ops names its kind"
        if self.classes:
            found = self.classes & self.source.classes(node)
            if found:
                return f"user: torch_executed_modules names {min(found)}"
        return self.ask(node)

    # ---- require_full_compilation ----

    def _full_plan(self, call: Call, model: Any) -> Plan:
        """One engine, and on the host nothing but the assembling of results; or an error that says
        what stands against it."""
        free = self._plan(call, model, None)
        names = _host_nodes(self.source, free)
        if not self._is_one(free):
            more = f", and {len(names) - 3} more" if len(names) > 3 else ""
            shown = ", ".join(names[:3])
            reason = f"these must stay on the host: {shown}{more}" if names else (
                f"{free.engines} engines are needed" if free.engines else "nothing is supported")
            raise NotFullySupportedError(f"require_full_compilation, but {reason}: support all "
                                         "operators, or drop the option", nodes=names)
        if self.budget.bytes is None:
            return free
        try:
            plan = self._plan(call, model, self.budget.bytes)
            if self._is_one(plan):
                return plan
        except BudgetError:
            pass
        raise too_large(free, self.budget.bytes,
                        [name for part in free.parts for name in part.nodes])

    def _is_one(self, plan: Plan) -> bool:
        return not plan.parts or (plan.engines == 1 and not _host_nodes(self.source, plan))


_ASSEMBLE = frozenset({"prim::TupleConstruct", "prim::ListConstruct", "prim::DictConstruct"})


def _host_nodes(source: Source, plan: Plan) -> list[str]:
    return [name for part in plan.parts if part.target == "host" for name in part.nodes
            if source.lines[source.line_of[name]].kind() not in _ASSEMBLE]


# ---- who may run what ----

def _asker(supported: Any) -> Ask:
    if supported is None:
        return lambda node: None
    if callable(supported) and not isinstance(supported, type):
        return asker_of(supported, lambda node: (f"a node of {node.kind()}", _name(node)))
    if isinstance(supported, (str, type, Mapping)) or not isinstance(supported, Collection):
        raise UsageError(f"supported is {supported!r}: give None, a collection of kinds such as "
                         "'aten::relu', or a function of a torch._C.Node")
    kinds = frozenset(_options.names(supported, "supported"))
    return lambda node: _is_one(node, kinds) or "op: it is not among the supported operators"


def _name(node: torch._C.Node) -> str | None:
    return next((value.debugName() for value in node.outputs()), None)


def _is_one(node: torch._C.Node, kinds: frozenset[str]) -> bool:
    """Is its kind, or its kind with overload, one of these?"""
    return node.kind() in kinds or str(node.schema()).partition("(")[0] in kinds


def _items(classes: Any) -> Iterable[Any]:
    if isinstance(classes, (str, type)):
        return [classes]
    if not isinstance(classes, Iterable):
        raise UsageError(f"torch_executed_modules is {classes!r}: give names of classes")
    return classes


def _class_name(item: Any) -> str:
    if isinstance(item, type):
        item = f"{item.__module__}.{item.__qualname__}"
    if not isinstance(item, str) or not item:
        raise UsageError(f"torch_executed_modules holds {item!r}: give a class, or its name")
    return item.removeprefix("__torch__.").removeprefix("__main__.")


# ---- weights ----

def _storages(source: Source) -> tuple[list[int], list[int]]:
    """The bytes of each storage; by line, which of them it reads."""
    sizes: list[int] = []
    places: dict[Any, int] = {}
    rows = [NONE] * len(source.lines)
    for line, _, value in source.weights():
        key, size = memory_of(value)
        rows[line] = places.setdefault(key, len(sizes))
        if rows[line] == len(sizes):
            sizes.append(size)
    return sizes, rows


def _listed(strings: Iterable[str]) -> bytes:
    return b"".join(text.encode("utf-8", "surrogateescape") + b"\0" for text in strings) or b"\0"
