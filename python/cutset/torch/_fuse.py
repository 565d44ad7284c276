"""`fuse_partitions`: parts made by hand, checked and built.

The parts and the other nodes are put in an order that every edge allows, by Kahn's algorithm, the
first ready node first; what is left over closes a cycle. Edges are data and order edges: last write
-> readers and writers, readers -> next write, over values that may share memory; side effects and
random draws among themselves (as src/graph/effects.c has them). Cost: O((n + m) log n).
"""
from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule, Node

from .._errors import PartitionError, UsageError
from .._lib import NONE
from . import _parts
from ._codes import CALLS, EFFECT, RANDOM
from ._crossing import Crossing, Rules, cross
from ._parts import ACC, Piece


def fuse_partitions(gm: GraphModule, partitions: Iterable[Iterable[Any]], *,
                    prefix: str = ACC) -> GraphModule:
    """A module whose children `<prefix>0`, `<prefix>1`, ... hold the given nodes (or names), the
    rest inline. `gm` is not changed. PartitionError: a node twice, an unknown node, or a cycle
    between the parts."""
    if not isinstance(gm, GraphModule):
        raise UsageError(f"gm is {type(gm).__name__}: give a torch.fx.GraphModule")
    if not isinstance(prefix, str) or not prefix.isidentifier():
        raise UsageError(f"prefix is {prefix!r}: give the beginning of a child's name")
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        raise PartitionError(f"partitions is {partitions!r}: give collections of nodes")
    crossing = cross(gm, Rules(pinned=True, patterns=False))
    by_name = {node.name: node for node in gm.graph.nodes}
    part_of: dict[Node, int] = {}
    count = 0
    for at, group in enumerate(partitions):
        if isinstance(group, (str, Node)) or not isinstance(group, Iterable):
            raise PartitionError(f"partition {at} is {group!r}: give a collection of nodes")
        for item in dict.fromkeys(_members(group, by_name, at)):
            if item.op == "get_attr":
                continue  # it goes where it is read
            if item in part_of:
                raise PartitionError(f"node {item.name} is in partitions {part_of[item]} and {at}: "
                                     "give each node to one", node=item.name, nodes=[item.name])
            part_of[item] = at
        count = at + 1
    pieces = _order(crossing, part_of, count, prefix)
    roots = {crossing.roots[value] for _, value in crossing.writes}
    written = {n for n in gm.graph.nodes if roots and n.op == "get_attr"
               and crossing.ids[n] != NONE and crossing.roots[crossing.ids[n]] in roots}
    _parts.cut(gm, pieces, written)
    return _parts.assemble(gm, pieces)


def _members(group: Iterable[Any], by_name: Mapping[str, Node], at: int) -> Iterable[Node]:
    seen = set()
    for item in group:
        node = by_name.get(item) if isinstance(item, str) else item
        if not isinstance(node, Node) or by_name.get(node.name) is not node or (
                node.op not in CALLS and node.op != "get_attr"):
            name = getattr(item, "name", item)
            raise PartitionError(f"partition {at} holds {name!r}, which is no call node of the "
                                 "graph: name one", nodes=[str(name)])
        if node in seen:
            raise PartitionError(f"node {node.name} is in partition {at} twice: name it once",
                                 node=node.name, nodes=[node.name])
        seen.add(node)
        yield node


def _order(crossing: Crossing, part_of: Mapping[Node, int], count: int, prefix: str) -> list[Piece]:
    """The parts and the other nodes in an order that all edges allow; the first ready one first."""
    nodes = crossing.nodes
    heads: dict[int, int] = {}  # the first node of each part
    owner = []
    for at, node in enumerate(nodes):
        part = part_of.get(node)
        owner.append(at if part is None else heads.setdefault(part, at))
    members: dict[int, list[int]] = {}
    for at, head in enumerate(owner):
        members.setdefault(head, []).append(at)
    index = {node: at for at, node in enumerate(nodes)}
    edges = {(owner[index[a]], owner[at]) for at, node in enumerate(nodes)
             for a in node._input_nodes if a in index}
    edges |= {(owner[a], owner[b]) for a, b in _order_edges(crossing)}
    after: dict[int, list[int]] = {}
    waits = dict.fromkeys(members, 0)
    for a, b in edges:
        if a != b:
            after.setdefault(a, []).append(b)
            waits[b] += 1
    ready = [head for head, n in waits.items() if n == 0]
    heapq.heapify(ready)
    pieces = []
    while ready:
        head = heapq.heappop(ready)
        pieces.append(_piece(crossing, members[head], part_of.get(nodes[head]), prefix))
        for other in after.get(head, ()):
            waits[other] -= 1
            if waits[other] == 0:
                heapq.heappush(ready, other)
    if len(pieces) < len(members):
        left = [h for h, n in waits.items() if n > 0 and len(members[h]) > 1]
        names = [nodes[h].name for h in left]
        raise PartitionError(
            f"the partitions close a cycle: what stands outside depends on, and is needed by, "
            f"{', '.join(names[:3]) or 'one of them'}: give partitions without one", nodes=names)
    return pieces


def _piece(crossing: Crossing, members: Sequence[int], part: int | None, prefix: str) -> Piece:
    return Piece(f"{prefix}{part}", [crossing.nodes[at] for at in members],
                 impure=not crossing.touched.isdisjoint(members), inline=part is None)


# ---- order edges ----

def _order_edges(crossing: Crossing) -> Iterator[tuple[int, int]]:
    yield from crossing.order
    for flag in (EFFECT, RANDOM):
        marked = [at for at, flags in enumerate(crossing.flags) if flags & flag]
        yield from zip(marked, marked[1:])
    if not crossing.writes:
        return
    root, writes_of = crossing.roots, crossing.writes_of()
    written: dict[int, set[int]] = {}  # by class: the nodes that write it
    for at, value in crossing.writes:
        written.setdefault(root[value], set()).add(at)
    last: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for at in range(len(crossing.nodes)):
        touched = {root[v] for v in (*crossing.row(at), crossing.outs[at])}
        touched |= {root[v] for v in writes_of.get(at, ())}
        for value in touched & written.keys():
            if value in last:
                yield last[value], at
            if at in written[value]:
                for reader in readers.pop(value, ()):
                    yield reader, at
                last[value] = at
            else:
                readers.setdefault(value, []).append(at)
