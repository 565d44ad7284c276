"""`partition` and `plan`: options checked, the graph crossed, the parts built."""
from __future__ import annotations

import numbers
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from .. import _options
from .._errors import BudgetError, NotFullySupportedError, UsageError
from .._memory import available_memory
from .._plan import Plan, warn_oversized
from . import _parts
from ._crossing import Budget, Crossing, Rules, cross, find_nodes
from ._parts import ACC, GPU, Piece
from ._support import Modules, Names, Support

_NO_LIMIT = 2**60
Model = GraphModule | ExportedProgram
Size = int | str


# ---- options ----

def as_module(model: Model) -> GraphModule:
    """The GraphModule that is cut; it is not changed."""
    if isinstance(model, ExportedProgram):
        try:
            return model.module(check_guards=False)
        except TypeError:  # torch before check_guards
            return model.module()
    if not isinstance(model, GraphModule):
        raise UsageError(f"model is {type(model).__name__}: give a torch.fx.GraphModule or an "
                         "ExportedProgram (torch.fx.symbolic_trace and torch.export.export make "
                         "them)")
    return model


def budget_of(size: Any, factor: Any, base: Any, oversize: Any, *, default: Any = None) -> Budget:
    """The budget options, resolved to bytes. `default`: what None stands for."""
    if isinstance(factor, bool) or not isinstance(factor, numbers.Real) or not 0 <= factor <= 1e6:
        raise UsageError(f"memory_factor is {factor!r}: give a number from 0 to 1000000")
    fixed = 0 if base is None or _options.whole(base) == 0 else _options.size_bytes(
        base, "memory_base")
    kind = _options.choice(oversize, "oversize", _options.OVERSIZE)
    if size is None:
        size = default
    limit: int | None
    if size is None or (isinstance(size, str) and size == "max"):
        limit = None
    elif (isinstance(size, str) and size == "auto") or _options.whole(size) == -1:
        limit = max(available_memory(), 1)
    elif _options.is_above(size, _NO_LIMIT):
        limit = None
    else:
        limit = _options.size_bytes(size, "cpu_memory_budget")
    if limit is not None and fixed >= limit:
        raise UsageError(f"memory_base is {fixed} bytes, not below the budget cpu_memory_budget of "
                         f"{limit}: give less, or a larger budget")
    return Budget(limit, float(factor), fixed, kind)


def switch(value: Any, what: str) -> bool:
    if not isinstance(value, (bool, int)) and type(value).__name__ not in ("bool_", "bool"):
        raise UsageError(f"{what} is {value!r}: give True or False")
    return bool(value)


def groups_of(gm: GraphModule, groups: Any) -> list[list[Node]]:
    """`groups=`: iterables of nodes or names."""
    if isinstance(groups, (str, Mapping)) or not isinstance(groups, Iterable):
        raise UsageError(f"groups is {groups!r}: give lists of node names")
    found = []
    for group in groups:
        if isinstance(group, (str, Node)) or not isinstance(group, Iterable):
            raise UsageError(f"groups holds {group!r}: each group is a list of node names")
        found.append(find_nodes(gm, group, "groups"))
    return found


class Request:
    """What `plan` and `partition` are asked, checked."""

    def __init__(self, gm: GraphModule, *, supported: Any = None, min_block_size: int = 1,
                 torch_executed_ops: Any = (), torch_executed_modules: Any = (),
                 require_full_compilation: bool = False, cpu_memory_budget: Size | None = None,
                 memory_factor: float = 4, memory_base: Size = 0, oversize: str = "error",
                 max_engines: int | None = None, groups: Any = (),
                 pin: Mapping[str, str] | None = None, atomic_subgraphs: bool = True,
                 allow_non_tensor: bool = True, skip_horizontal_fusion: bool = False,
                 non_compute_ops: Any = (), remove_bookend_non_compute_ops: bool = False,
                 allowed_single_node_partition_ops: Any = (),
                 fallback_data_dependent_ops: bool = False, objective: str = "engines") -> None:
        self.gm = gm
        self.full = switch(require_full_compilation, "require_full_compilation")
        least = _options.count(min_block_size, "min_block_size", 0)
        self.min_nodes = 1 if self.full else least
        self.budget = budget_of(cpu_memory_budget, memory_factor, memory_base, oversize)
        self.max_engines = None if max_engines is None else _options.count(
            max_engines, "max_engines")
        self.connected = switch(skip_horizontal_fusion, "skip_horizontal_fusion")
        self.bookends = switch(remove_bookend_non_compute_ops, "remove_bookend_non_compute_ops")
        self.pin = pin
        _options.objective(objective)
        self.rules = Rules(
            support=Support(supported, gm),
            executed_ops=Names(torch_executed_ops, "torch_executed_ops"),
            executed_modules=Modules(torch_executed_modules, "torch_executed_modules"),
            free=Names(non_compute_ops, "non_compute_ops"),
            exempt=Names(allowed_single_node_partition_ops, "allowed_single_node_partition_ops"),
            data_dependent_on_host=switch(fallback_data_dependent_ops,
                                           "fallback_data_dependent_ops"),
            tensors_only=not switch(allow_non_tensor, "allow_non_tensor"), full=self.full,
            groups=groups_of(gm, groups), patterns=switch(atomic_subgraphs, "atomic_subgraphs"))

    def decide(self) -> tuple[Crossing, Plan]:
        """Crosses and plans."""
        crossing = cross(self.gm, self.rules)
        plan = self.full_plan(crossing) if self.full else self.plan(crossing, self.budget)
        if self.budget.oversize == "keep":
            warn_oversized(plan, 4)
        return crossing, plan

    def plan(self, crossing: Crossing, budget: Budget, min_nodes: int | None = None) -> Plan:
        """The plan under these options, another `min_block_size` apart."""
        return crossing.plan(
            budget, min_nodes=self.min_nodes if min_nodes is None else min_nodes,
            max_engines=self.max_engines, connected=self.connected, bookends=self.bookends,
            pin=self.pin)

    def full_plan(self, crossing: Crossing) -> Plan:
        """`require_full_compilation`: one engine, or the error that says what stands against it."""
        _require_support(crossing)
        budget = self.budget
        whole = self.plan(crossing, Budget(None, budget.factor, budget.base))
        _require_one(crossing, whole)
        if budget.bytes is None:
            return whole
        try:
            plan = self.plan(crossing, budget)
            if _is_one(plan):
                return plan
        except BudgetError:
            pass
        raise too_large(whole, budget.bytes, [n.name for n in crossing.nodes])


def too_large(whole: Plan, budget: int, nodes: Iterable[str]) -> BudgetError:
    """`require_full_compilation`: the one engine of `whole` does not fit."""
    needed = max((p.host_build_bytes for p in whole.parts), default=0)
    return BudgetError(
        f"require_full_compilation, but one engine needs {needed} bytes, over the budget of "
        f"{budget}: give cpu_memory_budget={needed}, or drop the option",
        atom=nodes, needed=needed, budget=budget)


def _require_support(crossing: Crossing) -> None:
    """`require_full_compilation`: nobody may be on the host already."""
    if crossing.reasons:
        stay = sorted(crossing.reasons)
        _not_full((crossing.nodes[at].name for at in stay),
                  reason=crossing.reasons[stay[0]].partition(": ")[2])
    common = (1 << len(crossing.targets)) - 1
    for allow in crossing.allow:
        common &= allow
    if not common and crossing.nodes:
        _not_full((n.name for n in crossing.nodes), "no accelerator takes them all")


def _not_full(names: Iterable[str], why: str = "", reason: str = "") -> None:
    """`reason`: of the first."""
    kept = tuple(names)
    first = f"{kept[0]} ({reason})" if reason else kept[0]
    more = f", and {len(kept) - 3} more" if len(kept) > 3 else ""
    raise NotFullySupportedError(
        f"require_full_compilation, but {why or 'these must stay on the host'}: "
        f"{', '.join((first, *kept[1:3]))}{more}: support them, or drop the option", nodes=kept)


def _is_one(plan: Plan) -> bool:
    return not plan.parts or (len(plan.parts) == 1 and plan.parts[0].target != "host")


def _require_one(crossing: Crossing, plan: Plan) -> None:
    """`require_full_compilation`: one engine and nothing else."""
    if _is_one(plan):
        return
    host = [n for part in plan.parts if part.target == "host" for n in part.nodes]
    if host:
        _not_full(host)
    _not_full([n.name for n in crossing.nodes], "they need several engines")


# ---- parts of a plan ----

def pieces_of(crossing: Crossing, plan: Plan, *, host_modules: bool = True) -> list[Piece]:
    """The parts of a plan as pieces, in its order. Copies stand among the nodes of a piece."""
    position = {node.name: at for at, node in enumerate(crossing.nodes)}
    touched = crossing.touched
    pieces = []
    for part in plan.parts:
        own = [position[name] for name in part.nodes]
        copies = [position[name] for name in part.copies]
        acc = part.target != "host"
        nodes = [crossing.nodes[at] for at in sorted(own + copies)]
        pieces.append(Piece(
            f"{ACC if acc else GPU}{part.id}",
            nodes, {crossing.nodes[at] for at in copies},
            impure=not touched.isdisjoint(own),
            inline=not (acc or host_modules)))
    return pieces


def written_weights(crossing: Crossing, plan: Plan) -> set[Node]:
    """`get_attr` nodes that the plan counts as inputs, since something writes them."""
    if not crossing.writes:
        return set()
    named = {name for part in plan.parts for name in part.inputs}
    return {n for n in crossing.module.graph.nodes if n.op == "get_attr" and n.name in named}


# ---- the calls ----

def plan(model: Model, *, supported: Any = None, min_block_size: int = 1,
         torch_executed_ops: Collection[Any] = (), torch_executed_modules: Collection[Any] = (),
         require_full_compilation: bool = False, cpu_memory_budget: Size | None = None,
         memory_factor: float = 4, memory_base: Size = 0, oversize: str = "error",
         max_engines: int | None = None, groups: Iterable[Iterable[Any]] = (),
         pin: Mapping[str, str] | None = None, atomic_subgraphs: bool = True,
         allow_non_tensor: bool = True, skip_horizontal_fusion: bool = False,
         non_compute_ops: Collection[Any] = (), remove_bookend_non_compute_ops: bool = False,
         allowed_single_node_partition_ops: Collection[Any] = (),
         fallback_data_dependent_ops: bool = False, objective: str = "engines") -> Plan:
    """Decides how `partition` would cut the graph; nothing is built. Options as there."""
    return Request(
        as_module(model), supported=supported, min_block_size=min_block_size,
        torch_executed_ops=torch_executed_ops, torch_executed_modules=torch_executed_modules,
        require_full_compilation=require_full_compilation, cpu_memory_budget=cpu_memory_budget,
        memory_factor=memory_factor, memory_base=memory_base, oversize=oversize,
        max_engines=max_engines, groups=groups, pin=pin, atomic_subgraphs=atomic_subgraphs,
        allow_non_tensor=allow_non_tensor, skip_horizontal_fusion=skip_horizontal_fusion,
        non_compute_ops=non_compute_ops,
        remove_bookend_non_compute_ops=remove_bookend_non_compute_ops,
        allowed_single_node_partition_ops=allowed_single_node_partition_ops,
        fallback_data_dependent_ops=fallback_data_dependent_ops, objective=objective).decide()[1]


def partition(model: Model, *, supported: Any = None, min_block_size: int = 1,
              torch_executed_ops: Collection[Any] = (),
              torch_executed_modules: Collection[Any] = (),
              require_full_compilation: bool = False, cpu_memory_budget: Size | None = None,
              memory_factor: float = 4, memory_base: Size = 0, oversize: str = "error",
              max_engines: int | None = None, groups: Iterable[Iterable[Any]] = (),
              pin: Mapping[str, str] | None = None, atomic_subgraphs: bool = True,
              allow_non_tensor: bool = True, skip_horizontal_fusion: bool = False,
              non_compute_ops: Collection[Any] = (),
              remove_bookend_non_compute_ops: bool = False,
              allowed_single_node_partition_ops: Collection[Any] = (),
              fallback_data_dependent_ops: bool = False, host_submodules: bool = True,
              objective: str = "engines", dryrun: bool | str = False) -> GraphModule:
    """Cuts a graph into the fewest engines: a GraphModule whose children are `_run_on_acc_N` and,
    for the host, `_run_on_gpu_N`. It shares parameters and buffers with `model`, which is not
    changed; `result.meta["cutset"]` is the Plan.

    `supported`: what the accelerator takes: None (every operator that neither writes, draws random
    numbers nor has a side effect, on any dtype but float64 and complex), a collection of operators,
    a function of a node that answers True, False or why not, an object with `is_node_supported`,
    "tensorrt", or {name: any of these} for several accelerators, first named, first served.
    `torch_executed_ops`, `torch_executed_modules`: what stays on the host in any case.
    `min_block_size`: smaller engines go to the host; `allowed_single_node_partition_ops` exempt
    theirs, `non_compute_ops` do not count. `require_full_compilation`: one engine or
    NotFullySupportedError. `cpu_memory_budget`: an engine fits if memory_factor * weight bytes +
    memory_base is no more: bytes, "8GiB", "auto" or -1 (what the container allows), None for no
    budget; `oversize`: what becomes of nodes over it alone: "error", "host", "keep". `max_engines`:
    what costs least goes to the host. `groups`: nodes that share a part; `pin`: {name or glob:
    accelerator or "host"}. `atomic_subgraphs`: fusion patterns are not cut. `allow_non_tensor`:
    numbers may pass between engines and host. `skip_horizontal_fusion`: engines are connected.
    `remove_bookend_non_compute_ops`: engines begin and end with none.
    `fallback_data_dependent_ops`: `nonzero` and its like stay on the host.
    `host_submodules=False`: host nodes stay in the top graph. `dryrun`: True prints a report and
    gives the model back, a path also writes it there. `plan` takes weights on the meta device, this
    does not.

    Raises UsageError, ModelError, BudgetError, GroupError, NotFullySupportedError.
    """
    options: dict[str, Any] = dict(
        supported=supported, min_block_size=min_block_size, torch_executed_ops=torch_executed_ops,
        torch_executed_modules=torch_executed_modules,
        require_full_compilation=require_full_compilation, cpu_memory_budget=cpu_memory_budget,
        memory_factor=memory_factor, memory_base=memory_base, oversize=oversize,
        max_engines=max_engines, groups=groups, pin=pin, atomic_subgraphs=atomic_subgraphs,
        allow_non_tensor=allow_non_tensor, skip_horizontal_fusion=skip_horizontal_fusion,
        non_compute_ops=non_compute_ops,
        remove_bookend_non_compute_ops=remove_bookend_non_compute_ops,
        allowed_single_node_partition_ops=allowed_single_node_partition_ops,
        fallback_data_dependent_ops=fallback_data_dependent_ops, objective=objective)
    if dryrun is not False:
        from ._overview import dry_run
        return dry_run(model, dryrun, **options)
    inline = not switch(host_submodules, "host_submodules")
    gm = as_module(model)
    crossing, found = Request(gm, **options).decide()
    crossing.require_bytes()
    pieces = pieces_of(crossing, found, host_modules=not inline)
    _parts.cut(gm, pieces, written_weights(crossing, found))
    result = _parts.assemble(gm, pieces)
    result.meta["cutset"] = found
    return result
