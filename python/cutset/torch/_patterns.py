"""Atomic subgraphs: patterns whose nodes are never cut apart.

The built-in ones (convolution, batch norm, activation; mul, add; mul, mul: core ATen as
Torch-TensorRT registers them) are matched in C (src/plan/patterns.c); what C cannot see of them,
their literals, is in `unfusable`. Registered ones are matched here with torch's `SubgraphMatcher`,
default settings, and cross as groups that are not formed where a node must stay on the host.

Cost of a registered pattern: one look at the operators of the graph; then torch's matcher at the
nodes that may end a match, and a search for a cycle no further than the match reaches. (torch's own
`match` walks to the end of the graph for each match.) Patterns with several results go through
`match` itself.
"""
from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

from .._errors import UsageError
from ._codes import CALLS

# (class, init_args, is_core_aten, example_inputs); an entry that is removed is a pattern no longer.
ATOMIC_SUBGRAPHS: list[tuple[type, tuple[Any, ...], bool, tuple[Any, ...] | None]] = []

_graphs: list[tuple[Any, Graph]] = []  # (entry, its pattern), of entries still registered


def register_atomic_subgraph(
    init_args: tuple[Any, ...] = (), is_core_aten: bool = False, *,
    example_inputs: tuple[Any, ...] | None = None,
) -> Callable[[type], type]:
    """Class decorator: matches of the module `cls(*init_args)` are never cut apart.

    Its inputs stand for any value. `is_core_aten`: `forward` is core ATen code and is traced as it
    is; else the module is exported with `example_inputs` and decomposed to core ATen, and without
    them that is a ValueError. The class comes back unchanged.
    """
    for what, given in (("init_args", init_args), ("example_inputs", example_inputs)):
        if not isinstance(given, (tuple, list)) and given is not None:
            raise UsageError(f"{what} is {given!r}: give a tuple")
    if not is_core_aten and example_inputs is None:
        raise UsageError("a pattern that is not core ATen is exported: give example_inputs, or "
                         "is_core_aten=True where forward calls torch.ops.aten alone")

    def decorate(cls: type) -> type:
        if not (isinstance(cls, type) and issubclass(cls, torch.nn.Module)):
            raise UsageError(f"{cls!r} is no torch.nn.Module class: decorate one")
        inputs = None if example_inputs is None else tuple(example_inputs)
        ATOMIC_SUBGRAPHS.append((cls, tuple(init_args or ()), bool(is_core_aten), inputs))
        return cls

    return decorate


# ---- a registered class as a pattern ----

def _trace(entry: Sequence[Any]) -> Graph:
    """The pattern of an entry, without what nothing reads."""
    cls, init_args, is_core_aten, example_inputs = entry
    module = cls(*init_args).eval()
    if is_core_aten:
        graph = torch.fx.symbolic_trace(module).graph
    else:
        graph = torch.export.export(module, example_inputs).run_decompositions().graph
    for node in reversed(list(graph.nodes)):
        if node.op != "output" and not node.users:
            graph.erase_node(node)
    if not any(node.op in CALLS for node in graph.nodes):
        raise ValueError("it calls no operator")
    return graph


def pattern_of(entry: Sequence[Any]) -> Graph:
    """The pattern of an entry of ATOMIC_SUBGRAPHS, traced once. UsageError: it is none."""
    _graphs[:] = [known for known in _graphs if any(known[0] is e for e in ATOMIC_SUBGRAPHS)]
    for known, graph in _graphs:
        if known is entry:
            return graph
    try:
        graph = _trace(entry)
    except Exception as error:
        name = getattr(entry[0], "__qualname__", entry[0])
        raise UsageError(f"atomic subgraph {name} cannot be made a pattern: {error}: take it out "
                         "of ATOMIC_SUBGRAPHS or correct it") from error
    _graphs.append((entry, graph))
    return graph


# ---- matches ----

def _key(node: Node) -> Any:
    return node.op, node.target


def _closes_cycle(nodes: set[Node], position: dict[Node, int]) -> bool:
    """Does a path leave `nodes` and come back? Nothing behind the last of them can."""
    last = max(position[node] for node in nodes)
    stack = [user for node in nodes for user in node.users if user not in nodes]
    seen = set(stack)
    while stack:
        for user in stack.pop().users:
            if user in nodes:
                return True
            if user not in seen and position[user] < last:
                seen.add(user)
                stack.append(user)
    return False


def _at_one_anchor(matcher: SubgraphMatcher, candidates: Iterable[Node],
                   position: dict[Node, int]) -> Iterable[InternalMatch]:
    """What `match` finds of a pattern with one result, the search for cycles cut short."""
    [anchor] = matcher.pattern_anchors
    for node in candidates:
        match = InternalMatch(anchors=matcher.pattern_anchors)
        if (matcher._match_nodes(anchor, node, match) and matcher._is_contained(match.nodes_map)
                and not _closes_cycle(_own(match), position)):
            yield match


def _own(match: InternalMatch) -> set[Node]:
    """What the match holds, without what stands for the pattern's inputs."""
    return {gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")}


def matches(pattern: Graph, graph: Graph, by_kind: dict[Any, list[Node]],
            position: dict[Node, int], allowed: Callable[[Node], bool], *,
            overlapping: bool = False) -> list[tuple[Node, ...]]:
    """The matches of one pattern whose nodes are all `allowed`, each in node order; of those that
    overlap the first, as `SubgraphMatcher` has it."""
    calls = [node for node in pattern.nodes if node.op in CALLS]
    if any(_key(node) not in by_kind for node in calls):
        return []
    matcher = SubgraphMatcher(pattern, remove_overlapping_matches=False)
    found: Iterable[InternalMatch]
    if len(matcher.pattern_anchors) == 1 and matcher.pattern_anchors[0].op in CALLS:
        found = _at_one_anchor(matcher, by_kind[_key(matcher.pattern_anchors[0])], position)
    else:
        found = matcher.match(graph)
    taken: set[Node] = set()
    result = []
    for match in found:
        own = _own(match)
        nodes = sorted((node for node in own if node.op in CALLS), key=position.__getitem__)
        if not all(map(allowed, nodes)) or (not overlapping and not taken.isdisjoint(own)):
            continue
        taken |= own
        result.append(tuple(nodes))
    return result


def registered_groups(graph: Graph, allowed: Callable[[Node], bool]) -> list[tuple[Node, ...]]:
    """Groups of two nodes and more that the registered patterns match. `allowed`: may this call
    node leave the host? A match with one that may not is none."""
    if not ATOMIC_SUBGRAPHS:
        return []
    by_kind: dict[Any, list[Node]] = collections.defaultdict(list)
    position = {}
    for i, node in enumerate(graph.nodes):
        position[node] = i
        if node.op in CALLS:
            by_kind[_key(node)].append(node)
    groups = []
    for entry in list(ATOMIC_SUBGRAPHS):
        groups += matches(pattern_of(entry), graph, by_kind, position, allowed)
    return [group for group in groups if len(group) > 1]


# ---- the built-in patterns: what their literals must be ----

_aten = torch.ops.aten
_ADD, _GELU = _aten.add.Tensor, _aten.gelu.default
_SEVERAL_INPUTS = {_ADD, _aten.mul.Tensor, _aten.convolution.default,
                   _aten._native_batch_norm_legit_no_training.default}


def unfusable(node: Node) -> bool:
    """Is this a node of a built-in pattern's kind whose arguments no built-in pattern has? It gets
    CUTSET_NODE_NO_PATTERN. As `SubgraphMatcher` compares literals, with their type; and it never
    lets one node stand for two inputs."""
    target = node.target
    if target is operator.getitem:
        index = node.args[1] if len(node.args) > 1 else None
        return not (type(index) is int and index == 0)
    if target is _GELU:
        return not _is_default(node, 1, "approximate", "none")
    if target not in _SEVERAL_INPUTS:
        return False
    args, kwargs = node.args, node.kwargs
    if len(args) == 2 and not kwargs:  # most are such
        return args[0] is args[1] and isinstance(args[0], Node)
    if target is _ADD and not _is_default(node, 2, "alpha", 1):
        return True
    inputs = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, Node)]
    return len(set(inputs)) < len(inputs)


def _is_default(node: Node, place: int, name: str, default: Any) -> bool:
    value = node.args[place] if len(node.args) > place else node.kwargs.get(name, default)
    return type(value) is type(default) and bool(value == default)
