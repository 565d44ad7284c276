"""What the nodes of a graph do to each other beside passing values: writes, views, effects, order;
and what is so pure that it is repeated.

Views matter only where something is written, and are looked for only then. Nothing moves across an
operator that changes how others compute (autocast, grad mode): order edges from all before it and
to all after it, up to the next such, so their number is linear.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch.fx import Node

from .._lib import NONE
from . import _effects
from ._codes import EFFECT, FOLLOW, RANDOM, REPEAT, SCALAR
from ._walk import Walk

# ---- writes, views, effects ----


def find_effects(w: Walk) -> None:
    """Flags, writes and order edges; views only where something is written."""
    out = w.out
    last_barrier = -1
    for at in sorted(set(w.special)):
        node, facts = out.nodes[at], w.facts[at]
        if node.op == "call_module":
            _module_effects(w, at, node)
            continue
        bodies = w.called.get(at, ())
        targets = [w.ids[n] for n in _effects.written(facts, node)]
        if any(b.inplace or b.stateful for b in bodies):
            targets += out.row(at)
        _add_writes(w, at, targets)
        if facts.effect or any(b.effect for b in bodies):
            _add_effect(w, at, "has a side effect")
        if _effects.draws(facts, node) or any(b.random for b in bodies):
            _add_draw(w, at)
        if facts.barrier:
            w.forced.setdefault(at, "op: it changes how what follows computes")
            out.order += [(k, at) for k in range(max(last_barrier, 0), at)]
            if last_barrier >= 0:
                out.order += [(last_barrier, k) for k in range(last_barrier + 1, at)]
            last_barrier = at
    if last_barrier >= 0:
        out.order += [(last_barrier, k) for k in range(last_barrier + 1, len(out.nodes))]
    if out.writes:
        _find_views(w)


def _add_effect(w: Walk, at: int, why: str) -> None:
    w.out.flags[at] |= EFFECT
    w.out.touched.add(at)
    w.busy.setdefault(at, why)


def _add_draw(w: Walk, at: int) -> None:
    w.out.flags[at] |= RANDOM
    w.out.touched.add(at)
    w.busy.setdefault(at, "draws random numbers")


def _add_writes(w: Walk, at: int, values: Iterable[int]) -> None:
    """Only memory can be written: numbers and lists of them cannot."""
    for value in dict.fromkeys(values):
        if value != NONE and w.kinds[value] != SCALAR:
            w.out.writes.append((at, value))
            w.out.touched.add(at)
            w.busy.setdefault(at, "writes to memory that it is given")


def _module_effects(w: Walk, at: int, node: Node) -> None:
    facts = w.modules[node.target]
    if facts.effect:
        _add_effect(w, at, "has state or a side effect")
        w.forced[at] = "boundary: its module keeps state, or has hooks"
    if facts.random:
        _add_draw(w, at)
    if facts.inplace:
        _add_writes(w, at, [w.ids[n] for n in node._input_nodes])
    # others may read its state by a get_attr
    _add_writes(w, at, [w.of_storage[s] for s in map(w.storage, facts.stored)
                        if s in w.of_storage])


def _find_views(w: Walk) -> None:
    out, aliases = w.out, w.out.aliases
    for at, node in enumerate(out.nodes):
        facts, value = w.facts[at], w.outs[at]
        if w.kinds[value] == SCALAR:
            continue
        if node.op == "call_module":
            if w.modules[node.target].views:
                aliases += [(value, v) for v in w.out.row(at) if w.kinds[v] != SCALAR]
            continue
        if not (facts.views or facts.views_all or facts.outs or facts.inplace
                or facts.short == "getattr"):
            continue
        for source in _effects.viewed(facts, node):
            of = w.ids[source]
            if of != NONE and w.kinds[of] != SCALAR:
                aliases.append((value, of))
    out.roots = _roots(w)
    _keep_hidden_weights_home(w)


def _keep_hidden_weights_home(w: Walk) -> None:
    """A module or a called graph whose weights something writes cannot be given them: it stays
    on the host."""
    root = w.out.roots
    written = {root[v] for _, v in w.out.writes}
    hidden = {v for key, v in w.attributes.items()
              if isinstance(key, tuple) and key[0] == "hidden"}
    if not any(root[v] in written for v in hidden):
        return
    for at in range(len(w.out.nodes)):
        if any(v in hidden and root[v] in written for v in w.out.row(at)):
            w.forced.setdefault(at, "boundary: something writes its module's weights")


def _roots(w: Walk) -> list[int]:
    """By value: the least value that it may share memory with."""
    parent = list(range(len(w.names)))

    def find(v: int) -> int:
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    pairs = list(w.out.aliases)
    first: dict[int, int] = {}
    for value, storage in enumerate(w.value_storages):
        if storage != NONE:
            pairs.append((value, first.setdefault(storage, value)))
    for a, b in pairs:
        a, b = find(a), find(b)
        parent[max(a, b)] = min(a, b)
    return [find(v) for v in range(len(w.names))]


# ---- constant expressions, and what is repeated like them ----


def find_constants(w: Walk) -> None:
    """Pure nodes made of weights that nothing writes, as src/graph/arrays.c finds them."""
    constant = bytearray(len(w.names))
    for value in w.weights:
        constant[value] = 1
    root: Sequence[int] = w.out.roots
    written: set[int] = set()
    if w.out.writes:
        written = {root[v] for _, v in w.out.writes}
        for value in range(len(w.names)):
            if root[value] in written:
                constant[value] = 0
    args, outs, touched = w.args, w.outs, w.out.touched
    end = 0
    for at, next_row in enumerate(w.arg_rows[1:]):
        start, end = end, next_row
        if start == end or not constant[args[start]]:
            continue
        if at in touched or not all(constant[args[k]] for k in range(start + 1, end)):
            continue
        if written and root[outs[at]] in written:
            continue
        constant[outs[at]] = 1
        w.out.constant.add(at)
    _find_repeats(w, root, written)


def _find_repeats(w: Walk, root: Sequence[int], written: set[int]) -> None:
    """A tuple of numbers that is read as a whole, and what is made from it, is repeated: no
    tuple crosses. Not where only tensors may cross: then its place matters."""
    if w.rules.tensors_only or not w.sequences:
        return
    returned = set(w.outputs)
    ids, at_of = w.ids, {v: i for i, v in enumerate(w.outs)}
    for at in reversed(w.sequences):
        node, value = w.out.nodes[at], w.outs[at]
        users = [at_of[ids[u]] for u in node.users if u in ids and ids[u] in at_of]
        flags = w.out.flags
        if value in returned or not users or at in w.busy:
            continue
        if written and any(root[v] in written for v in w.out.row(at)):
            continue
        if all(flags[u] & FOLLOW for u in users):
            continue
        flags[at] = (flags[at] | REPEAT) & ~FOLLOW
        for u in users:
            if flags[u] & FOLLOW and ids[w.out.nodes[u]] not in returned:
                flags[u] = (flags[u] | REPEAT) & ~FOLLOW
