"""`resource_partition`: engines of a partitioned module, cut until each fits in memory.

The library plans each child with every node pinned to the accelerator, so what it decides is only
where to cut. All children are planned and their pieces built before `gm` is touched; then pieces
take the place of their child, in `gm.graph` and among its children.
"""
from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.graph import CodeGen
from torch.fx.node import map_arg

from .. import _options
from .._errors import BudgetError, ModelError, OversizeWarning, UsageError
from .._plan import Plan
from . import _parts
from ._codes import CALLS
from ._crossing import Budget, Crossing, Rules, cross, lint
from ._partition import budget_of, pieces_of, switch, written_weights
from ._parts import ACC

_ENGINE, _HOST = "_run_on_acc", "_run_on_gpu"
_PIECE = re.compile(r"(.*)_resource_split_\d+")
_KEY = "cutset_resource"  # in gm.meta: {child: Plan}
_SEARCH = 1 << 16  # nodes planned to find a budget that would do


def resource_partition(
    gm: GraphModule, cpu_memory_budget: int | str | None = None, *, memory_factor: float = 4,
    memory_base: int | str = 0, max_engines: int | None = 50, oversize: str = "keep",
    groups: Iterable[Iterable[Node | str]] = (), atomic_subgraphs: bool = True,
) -> GraphModule:
    """Cuts each child of `gm` with `_run_on_acc` in its name into the fewest pieces that fit:
    memory_factor * weight bytes + memory_base <= cpu_memory_budget.

    Works in place and returns `gm`; untouched where it raises. A piece is called
    `<child>_resource_split_<k>`; `gm.meta["cutset_resource"]` maps children to Plans. None, -1 and
    "auto" are what memory is available now; an explicit budget never depends on that. `oversize`:
    what alone is over the budget is kept as a piece with one OversizeWarning ("keep"), goes to the
    host ("host") or is a BudgetError ("error"), as are more than `max_engines` pieces of a child.
    """
    if not isinstance(gm, GraphModule):
        raise UsageError(f"resource_partition takes a GraphModule, not {type(gm).__name__}")
    budget = budget_of(cpu_memory_budget, memory_factor, memory_base, oversize, default="auto")
    if max_engines is not None:
        max_engines = _options.count(max_engines, "max_engines")
    patterns = switch(atomic_subgraphs, "atomic_subgraphs")
    lint(gm)
    children = {name: child for name, child in gm.named_children()
                if isinstance(child, GraphModule) and _ENGINE in name}
    members = _members(children, groups)
    plans, cuts = {}, []
    for name, child in children.items():
        calls = gm.graph.find_nodes(op="call_module", target=name)
        if not calls:
            continue
        crossing = cross(child, Rules(pinned=budget.oversize != "host", groups=members[name],
                                      patterns=patterns))
        crossing.require_bytes()
        plan = plans[name] = crossing.plan(budget)
        if max_engines is not None and plan.engines > max_engines:
            raise _too_many(name, crossing, plan, budget, max_engines)
        if len(plan.parts) > 1 or (plan.parts and not plan.engines):
            cuts.append(_cut(gm, name, crossing, plan, calls))
    _put(gm, cuts)
    known = dict(gm.meta.get(_KEY) or {})
    for name, plan in plans.items():
        piece = _PIECE.fullmatch(name)
        if len(plan.parts) > 1 or not (piece and piece[1] in known):
            known[name] = plan
    gm.meta[_KEY] = known
    _drop_tags(gm)
    _warn(plans)
    return gm


# ---- options ----

def _members(children: Mapping[str, GraphModule],
             groups: Iterable[Iterable[Node | str]]) -> dict[str, list[list[Node]]]:
    """The groups of each child. A group is in each child that has all of its names."""
    found: dict[str, list[list[Node]]] = {name: [] for name in children}
    by_name = {name: {node.name: node for node in child.graph.nodes if node.op in CALLS}
               for name, child in children.items()}
    if isinstance(groups, (str, Mapping)) or not isinstance(groups, Iterable):
        raise UsageError(f"groups is {groups!r}: give lists of nodes or names")
    for group in groups:
        if isinstance(group, (str, Node)) or not isinstance(group, Iterable):
            raise UsageError(f"groups holds {group!r}: give lists of nodes or names")
        wanted = list(group)
        somewhere = False
        for child, nodes in by_name.items():
            here = [nodes.get(item) if isinstance(item, str) else item for item in wanted]
            if all(isinstance(node, Node) and nodes.get(node.name) is node for node in here):
                found[child].append([node for node in here if isinstance(node, Node)])
                somewhere = True
        if not somewhere:
            raise UsageError(f"groups holds {wanted!r}, which are not call nodes of one child: "
                             f"name nodes of {', '.join(children) or 'a child'}")
    return found


# ---- too many pieces ----

def _too_many(name: str, crossing: Crossing, plan: Plan, budget: Budget,
              limit: int) -> BudgetError:
    enough = _enough(crossing, plan, budget, limit)
    what = "needs" if plan.engines_proved else "was cut into"
    return BudgetError(
        f"{name} {what} {plan.engines} pieces under a budget of {budget.bytes} bytes, over "
        f"max_engines={limit}: a budget of {enough} bytes would do", node=name, needed=enough,
        budget=budget.bytes)


def _enough(crossing: Crossing, plan: Plan, budget: Budget, limit: int) -> int:
    """A budget under which the plan has at most `limit` engines, near the least one."""
    assert budget.bytes is not None
    low = budget.bytes
    high = math.ceil(budget.factor * plan.model.weight_bytes) + budget.base + len(crossing.nodes)
    rounds = min(16, _SEARCH // (len(crossing.nodes) + 1))
    while rounds > 0 and high - low > high // 64:
        rounds -= 1
        middle = (low + high) // 2
        if _fits(crossing, Budget(middle, budget.factor, budget.base, budget.oversize), limit):
            high = middle
        else:
            low = middle
    return high


def _fits(crossing: Crossing, budget: Budget, limit: int) -> bool:
    try:
        return crossing.plan(budget).engines <= limit
    except BudgetError:
        return False


# ---- a cut: what takes a child's place ----

@dataclass
class _Cut:
    child: str
    top: GraphModule  # calls the pieces, under the names they have in gm
    attributes: dict[str, str]  # what it returns of the child: names in gm
    calls: list[Node]


def _cut(gm: GraphModule, name: str, crossing: Crossing, plan: Plan, calls: list[Node]) -> _Cut:
    child = crossing.module
    if type(child.graph._codegen) is not CodeGen:
        raise ModelError(f"{name} takes its inputs in a structure, so it cannot be cut in place: "
                         "flatten it first", node=name)
    pieces = pieces_of(crossing, plan)
    for k, piece in enumerate(pieces):
        base = name if piece.name.startswith(ACC) else name.replace(_ENGINE, _HOST)
        piece.name = f"{base}_resource_split_{k}"
        if hasattr(gm, piece.name):
            raise ModelError(f"{piece.name} is an attribute already, and {name} would be cut into "
                             "it: rename one", node=name)
    _parts.cut(child, pieces, written_weights(crossing, plan))
    top = _parts.assemble(child, pieces)
    attributes = {
        node.target: _free_name(gm, f"{name}_{node.target}".replace(".", "_"))
        for node in top.graph.find_nodes(op="get_attr")}
    for call in calls:
        _bind(name, top.graph, call)  # raises now, not when gm is half changed
    return _Cut(name, top, attributes, calls)


def _free_name(gm: GraphModule, name: str) -> str:
    while hasattr(gm, name):
        name += "_"
    return name


def _bind(name: str, graph: Graph, call: Node) -> dict[Node, Any]:
    """What a call gives for each placeholder."""
    bound: dict[Node, Any] = {}
    for i, hole in enumerate(graph.find_nodes(op="placeholder", sort=True)):
        if hole.target.startswith("*"):
            raise ModelError(f"{name} takes {hole.target}, so it cannot be cut: name its inputs",
                             node=name)
        if i < len(call.args):
            bound[hole] = call.args[i]
        elif hole.target in call.kwargs:
            bound[hole] = call.kwargs[hole.target]
        elif hole.args:
            bound[hole] = hole.args[0]
        else:
            raise ModelError(f"{call.name} gives {name} no {hole.target}: give it one",
                             node=call.name)
    return bound


# ---- in place ----

def _put(gm: GraphModule, cuts: list[_Cut]) -> None:
    if not cuts:
        return
    for cut in cuts:
        for target, name in cut.attributes.items():
            path, _, last = target.rpartition(".")
            _parts.install(cut.top.get_submodule(path), gm, last, name)
        for call in cut.calls:
            _inline(gm.graph, call, cut)
    of_child = {cut.child: cut for cut in cuts}
    children: dict[str, torch.nn.Module | None] = {}
    for name, module in gm._modules.items():
        at = of_child.get(name)
        if at is None:
            children[name] = module
        else:
            children.update((node.target, at.top.get_submodule(node.target))
                            for node in at.top.graph.find_nodes(op="call_module", sort=True))
    gm._modules.clear()
    gm._modules.update(children)
    gm.recompile()


def _inline(graph: Graph, call: Node, cut: _Cut) -> None:
    """Copies the top graph to where the call stands, and takes the call out."""
    env = _bind(cut.child, cut.top.graph, call)
    with graph.inserting_before(call):
        for node in cut.top.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                result = map_arg(node.args[0], env.__getitem__)
                break
            made = env[node] = graph.node_copy(node, env.__getitem__)
            if node.op == "get_attr":
                made.target = cut.attributes[node.target]
    for user in list(call.users):
        if user.target is operator.getitem and user.args[0] is call and not isinstance(
                result, Node):
            _replace(user, result[user.args[1]])
    _replace(call, result)


def _replace(node: Node, value: Any) -> None:
    """Takes a node out; its readers read `value`, a node or a structure of nodes."""
    for user in list(node.users):
        user.args = map_arg(user.args, lambda n: value if n is node else n)
        user.kwargs = map_arg(user.kwargs, lambda n: value if n is node else n)
    node.graph.erase_node(node)


def _drop_tags(gm: GraphModule) -> None:
    """What splitters leave on nodes; another run of one would refuse to tag them again."""
    for module in (gm, *gm.children()):
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            if hasattr(node, "tag"):
                del node.tag


def _warn(plans: Mapping[str, Plan]) -> None:
    over = [(name, nodes, size) for name, plan in plans.items() for nodes, size in plan.oversized]
    if not over:
        return
    name, nodes, size = max(over, key=lambda item: item[2])
    budget = plans[name].options.host_memory
    others = f", the largest of {len(over)} that are" if len(over) > 1 else ""
    warnings.warn(f"{nodes[0]} of {name} needs {size} bytes alone, over the budget of {budget}"
                  f"{others}: kept as a piece of its own", OversizeWarning, stacklevel=3)
