"""Parts as GraphModules, and the graph that calls them.

    pieces = [Piece("_run_on_acc_0", nodes, repeated), ...]
    cut(gm, pieces, as_inputs)
    assemble(gm, pieces)                       # a new top graph; or splice them in by hand

A piece has the nodes it is given, in the order of the source graph, under their names, with their
`meta`. It takes what other pieces make as placeholders, in order of first use, and gives what
others and the graph's output read, in order of production. `get_attr` nodes are repeated under
their dotted names, on the same objects; those in `as_inputs` (buffers that something writes) are
taken as placeholders. The source graph and its modules are not changed.

Cost: linear; each node is copied once, each piece is compiled once.
"""
from __future__ import annotations

import copy
import operator
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg


ACC, GPU = "_run_on_acc_", "_run_on_gpu_"
_HEAD = re.compile("(_run_on_)?")


@dataclass
class Piece:
    """`nodes` in the order of the source graph, `repeated` those of them that belong to other
    pieces; the rest is filled in by `cut`. `inputs`, `outputs`: nodes of the source graph."""

    name: str
    nodes: Sequence[Node]
    repeated: Collection[Node] = ()
    impure: bool = False  # has work whose results nobody reads
    inline: bool = False  # its nodes stay in the top graph
    inputs: list[Node] = field(default_factory=list)
    outputs: list[Node] = field(default_factory=list)
    module: GraphModule | None = None


def cut(gm: GraphModule, pieces: Sequence[Piece], as_inputs: Collection[Node] = ()) -> None:
    """Fills in inputs, outputs and, where a piece is not `inline`, the module."""
    read = set(gm.graph.output_node()._input_nodes)
    for piece in pieces:
        piece.inputs = _inputs_of(piece, as_inputs)
        read.update(piece.inputs)
    for piece in pieces:
        repeated = piece.repeated
        piece.outputs = [n for n in piece.nodes if n in read and n not in repeated]
        if not piece.inline:
            piece.module = _build(gm, piece, as_inputs)


def _inputs_of(piece: Piece, as_inputs: Collection[Node]) -> list[Node]:
    found: dict[Node, None] = {}
    own = set(piece.nodes)
    for node in piece.nodes:
        for source in node._input_nodes:
            if source in own or source in found:
                continue
            if source.op != "get_attr" or source in as_inputs:
                found[source] = None
    return list(found)


def _copy_node(graph: Graph, node: Node, at: Mapping[Node, Any]) -> Node:
    new = graph.create_node(node.op, node.target, map_arg(node.args, at.__getitem__),
                            map_arg(node.kwargs, at.__getitem__), node.name, node.type)
    new.meta.update(node.meta)
    if new.name != node.name:
        new.name = node.name
    return new


def _place(graph: Graph, source: Node) -> Node:
    """A placeholder for what `source` makes."""
    new = graph.create_node("placeholder", source.name, (), {}, source.name, source.type)
    new.meta.update(source.meta)
    if new.name != source.name:
        new.name = new.target = source.name
    return new


def _build(gm: GraphModule, piece: Piece, as_inputs: Collection[Node]) -> GraphModule:
    graph = Graph(tracer_cls=getattr(gm.graph, "_tracer_cls", None))
    at: dict[Node, Node] = {source: _place(graph, source) for source in piece.inputs}
    root = torch.nn.Module()
    for node in piece.nodes:
        for source in node._input_nodes:
            if source.op == "get_attr" and source not in at:
                at[source] = _copy_node(graph, source, at)
                install(gm, root, source.target)
        if node.op == "call_module":
            install(gm, root, node.target)
        at[node] = _copy_node(graph, node, at)
    results = tuple(at[n] for n in piece.outputs)
    graph.output(results[0] if len(results) == 1 else results)
    return finish(root, graph, gm.training, piece.impure)


def finish(root: torch.nn.Module, graph: Graph, training: bool, impure: bool,
           children: Mapping[str, GraphModule] = {}) -> GraphModule:
    """A GraphModule of attributes that stand in `root` already, and of `children`."""
    graphs = {path: inner for path, inner in _graphs_in(root)}
    graphs.update(children)  # GraphModule compiles what is in it anew: they are hung in afterwards
    for path in graphs:
        parent, _, name = path.rpartition(".")
        root.get_submodule(parent)._modules[name] = torch.nn.Module()
    module = GraphModule(root, graph)
    for path, inner in graphs.items():
        parent, _, name = path.rpartition(".")
        module.get_submodule(parent)._modules[name] = inner
    module.training = training
    if impure:
        module._is_impure = True  # torch.fx keeps calls of it that nobody reads
    return module


class _Shell(torch.nn.Module):
    """A module on the way to an attribute."""


def _graphs_in(root: torch.nn.Module) -> Iterable[tuple[str, GraphModule]]:
    """GraphModules that hang in shells, whose own attributes nobody reads."""
    todo = [("", root)]
    while todo:
        path, module = todo.pop()
        for name, inner in module._modules.items():
            if isinstance(inner, _Shell):
                todo.append((f"{path}{name}.", inner))
            elif isinstance(inner, GraphModule):
                yield f"{path}{name}", inner


def install(source: torch.nn.Module, target: torch.nn.Module, path: str, under: str = "") -> None:
    """Hangs the attribute of that dotted name of `source` into `target`: the same object, a
    parameter or buffer if it is one there. Modules between are made as needed. `under`: the same
    path there, where its first name differs."""
    *parents, name = path.split(".")
    *held_as, new_name = (under or path).split(".")
    for parent, place in zip(parents, held_as):
        inner = getattr(source, parent)
        held = target._modules.get(place)
        if held is inner:
            return  # a module that is there as a whole
        if held is None:
            held = _Shell()
            held.training = getattr(inner, "training", False)
            target._modules[place] = held
        source, target = inner, held
    value = getattr(source, name)
    if isinstance(value, torch.nn.Module):
        target._modules[new_name] = value  # also in place of a shell: it has what hangs there
    elif isinstance(value, torch.nn.Parameter):
        target._parameters[new_name] = value
    elif isinstance(value, torch.Tensor):
        persistent = name in source._buffers and name not in source._non_persistent_buffers_set
        target._buffers[new_name] = value
        if not persistent:
            target._non_persistent_buffers_set.add(new_name)
    else:
        setattr(target, new_name, value)


# ---- the graph that calls them ----

def call(graph: Graph, piece: Piece, at: dict[Node, Any], taken: Collection[str]) -> None:
    """Adds the call of a piece, and `getitem`s for its results, to `graph`; `at` maps nodes of the
    source graph to nodes of `graph`, and gains the results. `taken`: names that come later."""
    made = graph.create_node("call_module", piece.name, tuple(at[n] for n in piece.inputs), {},
                             _free(piece.name, taken))
    if len(piece.outputs) == 1:
        [only] = piece.outputs
        made.meta.update(_result_meta(only))
        at[only] = made
        return
    values = [n.meta.get("val") for n in piece.outputs]
    if piece.outputs and all("val" in n.meta for n in piece.outputs):
        made.meta["val"] = tuple(values)
    for k, node in enumerate(piece.outputs):
        item = graph.create_node("call_function", operator.getitem, (made, k), {},
                                 _free(f"{piece.name}_out_{k}", taken))
        item.meta.update(_result_meta(node))
        at[node] = item


def _free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _result_meta(node: Node) -> dict[str, Any]:
    """What is known of the value, not of the operator."""
    return {k: node.meta[k] for k in ("val", "tensor_meta", "example_value", "type")
            if k in node.meta}


def assemble(gm: GraphModule, pieces: Sequence[Piece]) -> GraphModule:
    """A module that takes and gives what `gm` does. Pieces stand in their order, after `cut`.

    What stays in the top graph keeps its name. An attribute of `gm` that is called like a part is
    held as `outer_...`: the children of a part's name are the parts."""
    source = gm.graph
    graph = Graph(tracer_cls=getattr(source, "_tracer_cls", None))
    graph.set_codegen(copy.copy(source._codegen))
    root = torch.nn.Module()
    at: dict[Node, Any] = {}
    children: dict[str, GraphModule] = {}
    for node in source.nodes:
        if node.op == "placeholder":
            at[node] = _copy_node(graph, node, at)
    taken = {n.name for n in source.nodes if n.op in ("placeholder", "get_attr")}
    taken |= {n.name for piece in pieces if piece.inline for n in piece.nodes}
    parts = {piece.name for piece in pieces if not piece.inline}

    def hold(node: Node) -> None:
        """Copies a node, with the attribute that it names."""
        if node in at:
            return
        new = at[node] = _copy_node(graph, node, at)
        if node.op in ("get_attr", "call_module"):
            new.target = _outer(gm, node.target, parts)
            install(gm, root, node.target, new.target)

    def bring(node: Node) -> None:
        if node.op == "get_attr":
            hold(node)

    for piece in pieces:
        if not piece.inline:
            for node in piece.inputs:
                bring(node)
            assert piece.module is not None
            children[piece.name] = piece.module
            call(graph, piece, at, taken)
            continue
        for node in piece.nodes:
            for argument in node._input_nodes:
                bring(argument)
            hold(node)
    output = source.output_node()
    for node in output._input_nodes:
        bring(node)
    _copy_node(graph, output, at)
    result = finish(root, graph, gm.training, False, children)
    result.meta = {**gm.meta} if hasattr(gm, "meta") else {}
    return result


def _outer(gm: GraphModule, path: str, parts: Collection[str]) -> str:
    """Where the top module holds an attribute: elsewhere if its name is one of a part."""
    first, dot, rest = path.partition(".")
    if first not in parts and not first.startswith((ACC, GPU)):
        return path
    first = _HEAD.sub("outer_", first, 1)
    while hasattr(gm, first):
        first += "_"
    return first + dot + rest
