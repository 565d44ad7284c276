"""Parts as GraphModules, and the graph that calls them.

    pieces = cut(gm, [Piece("_run_on_acc_0", nodes, repeated), ...], as_inputs)
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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg


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
    read = set(_arguments(gm.graph.output_node()))
    for piece in pieces:
        piece.inputs = _inputs_of(piece, as_inputs)
        read.update(piece.inputs)
    for piece in pieces:
        repeated = piece.repeated
        piece.outputs = [n for n in piece.nodes if n in read and n not in repeated]
        if not piece.inline:
            piece.module = _build(gm, piece, as_inputs)


def _arguments(node: Node) -> Iterable[Node]:
    return node._input_nodes


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


def install(source: torch.nn.Module, target: torch.nn.Module, path: str) -> None:
    """Hangs the attribute of that dotted name of `source` into `target`: the same object, a
    parameter or buffer if it is one there. Modules between are made as needed."""
    *parents, name = path.split(".")
    for parent in parents:
        inner = getattr(source, parent)
        held = target._modules.get(parent)
        if held is inner:
            return  # a module that is there as a whole
        if held is None:
            held = _Shell()
            held.training = getattr(inner, "training", False)
            target._modules[parent] = held
        source, target = inner, held
    value = getattr(source, name)
    if isinstance(value, torch.nn.Module):
        target._modules[name] = value  # also in place of a shell: it has what hangs there
    elif isinstance(value, torch.nn.Parameter):
        target._parameters[name] = value
    elif isinstance(value, torch.Tensor):
        persistent = name in source._buffers and name not in source._non_persistent_buffers_set
        target._buffers[name] = value
        if not persistent:
            target._non_persistent_buffers_set.add(name)
    else:
        setattr(target, name, value)


# ---- the graph that calls them ----

def call(graph: Graph, piece: Piece, at: dict[Node, Any]) -> None:
    """Adds the call of a piece, and `getitem`s for its results, to `graph`; `at` maps nodes of the
    source graph to nodes of `graph`, and gains the results."""
    made = graph.create_node("call_module", piece.name, tuple(at[n] for n in piece.inputs), {},
                             piece.name)
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
                                 f"{piece.name}_out_{k}")
        item.meta.update(_result_meta(node))
        at[node] = item


def _result_meta(node: Node) -> dict[str, Any]:
    """What is known of the value, not of the operator."""
    return {k: node.meta[k] for k in ("val", "tensor_meta", "example_value", "type")
            if k in node.meta}


def assemble(gm: GraphModule, pieces: Sequence[Piece]) -> GraphModule:
    """A module that takes and gives what `gm` does. Pieces stand in their order, after `cut`."""
    source = gm.graph
    graph = Graph(tracer_cls=getattr(source, "_tracer_cls", None))
    graph.set_codegen(copy.copy(source._codegen))
    root = torch.nn.Module()
    at: dict[Node, Any] = {}
    children: dict[str, GraphModule] = {}
    for node in source.nodes:
        if node.op == "placeholder":
            at[node] = _copy_node(graph, node, at)

    def bring(node: Node) -> None:
        if node.op == "get_attr" and node not in at:
            at[node] = _copy_node(graph, node, at)
            install(gm, root, node.target)

    for piece in pieces:
        if not piece.inline:
            for node in piece.inputs:
                bring(node)
            assert piece.module is not None
            children[piece.name] = piece.module
            call(graph, piece, at)
            continue
        for node in piece.nodes:
            for argument in node._input_nodes:
                bring(argument)
            if node.op == "call_module":
                install(gm, root, node.target)
            if node not in at:
                at[node] = _copy_node(graph, node, at)
    output = source.output_node()
    for node in output._input_nodes:
        bring(node)
    _copy_node(graph, output, at)
    result = finish(root, graph, gm.training, False, children)
    result.meta = {**gm.meta} if hasattr(gm, "meta") else {}
    return result
