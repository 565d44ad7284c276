"""Who may run what, and why not; flags and groups for the planner.

Each node is asked about once, unless it is a constant expression or follows another. What other
options keep on the host is told after that, whatever the answer was.
"""
from __future__ import annotations

import operator
from array import array
from collections.abc import Callable

import torch
from torch.fx import Node

from .._lib import ALLOW_HOST
from . import _effects, _patterns
from ._codes import BOOKEND, EXEMPT, FOLLOW, FREE, LIST, NO_PATTERN, REPEAT
from ._effects import Facts
from ._walk import Walk


def decide(w: Walk) -> None:
    """Asks, once for each node that is neither a constant expression nor follows another."""
    out, rules, support = w.out, w.rules, w.rules.support
    everything = (1 << len(out.targets)) - 1 | ALLOW_HOST
    permitted = everything & ~ALLOW_HOST
    out.allow.extend([permitted if rules.pinned else everything] * len(out.nodes))
    if rules.pinned:
        for at in out.constant:
            out.allow[at] = everything
        return _settle_constants(w, everything)
    returned = {v for v in w.outputs if w.kinds[v] == LIST}
    tuples = bool(returned or w.tuple_inputs)
    marks = _marks(w)
    anything_else = bool(marks or w.forced or tuples)
    ask = support.ask if support is not None else None
    by_type = support is not None and support.plain and bool(w.types.wide)
    constant, flags, busy = out.constant, out.flags, w.busy
    for at, (node, facts) in enumerate(zip(out.nodes, w.facts)):
        if at in constant:
            continue
        answer: bool | int | str = True
        if ask is not None and not (facts.getitem and flags[at] & (FOLLOW | REPEAT)):
            answer = ask(node, facts, busy.get(at, ""), by_type and _is_wide(w, at))
        if anything_else:
            stays = ""
            for mark in marks:
                stays = mark(at, node, facts) or stays
            answer = (stays or w.forced.get(at, "") or (tuples and _tuple_rule(w, at, returned))
                      or answer)
        if answer is True:
            continue
        if isinstance(answer, int):
            out.allow[at] = answer | ALLOW_HOST
            continue
        out.allow[at] = ALLOW_HOST
        out.reasons[at] = answer
        if flags[at] & REPEAT:
            _plant(w, at)
    _settle_constants(w, everything)


def _tuple_rule(w: Walk, at: int, returned: set[int]) -> str:
    """No tuple goes from or to an engine, the graph's own neither."""
    if w.outs[at] in returned:
        return "boundary: the graph returns its tuple"
    if not w.tuple_inputs.isdisjoint(w.out.row(at)):
        return "boundary: it reads a tuple that the graph is given"
    return ""


def _settle_constants(w: Walk, everything: int) -> None:
    """Constant expressions make no engine of their own; `full`: one accelerator for all."""
    out = w.out
    asked = set(out.allow)
    if out.constant:
        asked = {allow for at, allow in enumerate(out.allow) if at not in out.constant}
    common = everything & ~ALLOW_HOST
    for allow in asked:
        common &= allow
    if asked <= {ALLOW_HOST} and len(out.constant) < len(out.nodes):
        for at in out.constant:
            out.allow[at] = ALLOW_HOST
    if w.rules.full and common:
        out.allow = array("I", [common | ALLOW_HOST]) * len(out.nodes)


def _plant(w: Walk, at: int) -> None:
    """A tuple of numbers that is refused stays where it is made."""
    out = w.out
    out.flags[at] &= ~REPEAT
    if out.nodes[at].target is operator.getitem:
        out.flags[at] |= FOLLOW
    for user in out.nodes[at].users:
        if user.target is operator.getitem and user in w.ids:
            at_user = w.node_of(w.ids[user])
            if out.flags[at_user] & REPEAT:
                out.flags[at_user] = (out.flags[at_user] & ~REPEAT) | FOLLOW


def _marks(w: Walk) -> list[Callable[[int, Node, Facts], str]]:
    """Options that keep nodes on the host, or flag them."""
    rules, flags, found = w.rules, w.out.flags, []

    def data(at: int, node: Node, facts: Facts) -> str:
        dependent = _effects.is_data_dependent(facts, node)
        return "dds: its output's shape or value depends on data" if dependent else ""

    def by_op(at: int, node: Node, facts: Facts) -> str:
        return "user: in torch_executed_ops" if rules.executed_ops.holds(node, facts) else ""

    def by_module(at: int, node: Node, facts: Facts) -> str:
        module = w.gm.get_submodule(node.target) if node.op == "call_module" else None
        return "user: in torch_executed_modules" if rules.executed_modules.holds(
            node, module) else ""

    def uncounted(at: int, node: Node, facts: Facts) -> str:
        if rules.free.holds(node, facts):
            flags[at] |= FREE | BOOKEND
        return ""

    def alone(at: int, node: Node, facts: Facts) -> str:
        if rules.exempt.holds(node, facts):
            flags[at] |= EXEMPT
        return ""

    found += [data] if rules.data_dependent_on_host else []
    found += [by_op] if rules.executed_ops else []
    found += [by_module] if rules.executed_modules else []
    found += [uncounted] if rules.free else []
    found += [alone] if rules.exempt else []
    return found


def _is_wide(w: Walk, at: int) -> bool:
    """Does it take or make float64 or complex numbers?"""
    wide = w.types.wide
    types, start, end = w.value_types, w.arg_rows[at], w.arg_rows[at + 1]
    return types[w.outs[at]] in wide or any(
        types[w.args[k]] in wide for k in range(start, end))


def flag_views_and_patterns(w: Walk) -> None:
    """`aten.view` does not count; nodes that look like a built-in pattern's and are none."""
    flags = w.out.flags
    patterned = {torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor,
                 torch.ops.aten.gelu.default, torch.ops.aten.convolution.default,
                 torch.ops.aten._native_batch_norm_legit_no_training.default,
                 operator.getitem} if w.rules.patterns else set()
    view = torch.ops.aten.view
    views = {facts for facts, target in w.targets.items()
             if target is view or getattr(target, "overloadpacket", None) is view}
    looked = views | {facts for facts, target in w.targets.items() if target in patterned}
    if not looked:
        return
    for at, facts in enumerate(w.facts):
        if facts not in looked:
            continue
        if facts in views:
            flags[at] |= FREE
        elif _patterns.unfusable(w.out.nodes[at]):
            flags[at] |= NO_PATTERN


def find_groups(w: Walk) -> tuple[list[list[int]], int]:
    """The user's groups, then the matches of registered patterns: how many these are."""
    out = w.out
    found = []
    for group in w.rules.groups:
        members = [w.node_of(w.ids[n]) for n in group]
        found.append([m for m in dict.fromkeys(members) if m not in out.constant])
    soft: list[list[int]] = []
    if w.rules.patterns and _patterns.ATOMIC_SUBGRAPHS:
        index = {node: at for at, node in enumerate(out.nodes)}

        def allowed(node: Node) -> bool:
            return bool(out.allow[index[node]] & ~ALLOW_HOST)

        soft = [[index[n] for n in match]
                for match in _patterns.registered_groups(w.gm.graph, allowed)]
    return found + soft, len(soft)
