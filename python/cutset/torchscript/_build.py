"""The graph of one part: its nodes copied, in the order of the whole, and what they read.

A value that a node reads is one the part made, one of its inputs, a constant (copied), or an
attribute of the module: an input after the others, which the part binds itself when it runs. So
weights keep their storage, and follow the module when they are moved or replaced. What is bound is
told by the path of an attribute, or () for the module itself, which `prim::SetAttr` and what it sets
need. Lists and their like pass in boxes (`_boxes`). `fixed`: it has to run as it is written,
since TorchScript's optimiser would make an output once for all runs that another part then writes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._boxes import Box, Boxes, default, plain
from ._source import CONSTANT, ENTER, EXIT, GETATTR, SETATTR, UNINITIALIZED, Path, Source, walk


class Built:
    """The graph, how its inputs and outputs pass, what it binds, and what it sets."""

    def __init__(self, graph: torch._C.Graph, bound: list[Path], boxes_in: list[Box | None],
                 boxes_out: list[Box | None], sets: list[Path], fixed: bool) -> None:
        self.graph, self.bound, self.sets, self.fixed = graph, bound, sets, fixed
        self.boxes_in, self.boxes_out = boxes_in, boxes_out
        self.boxed = any(boxes_in) or any(boxes_out)

    def function(self, name: str) -> Callable[..., Any]:
        """What runs: inputs, then what is bound; one output bare, several as a tuple."""
        return torch._C._create_function_from_graph(name, self.graph)


def build(source: Source, lines: Sequence[int], inputs: Sequence[torch._C.Value],
          outputs: Sequence[torch._C.Value], boxes: Boxes | None,
          read: Callable[[Path], Any] | None = None) -> Built:
    """The part with these lines. Without `boxes`, lists pass as they are. With `read`, attributes
    become constants, with the same storage; the module, where it is needed, stays bound."""
    made = _Maker(source, inputs, boxes, read)
    nodes = [source.lines[line] for line in sorted(lines)]
    whole = _contexts(nodes, ENTER) & _contexts(nodes, EXIT)
    for node in nodes:
        if node.kind() in (ENTER, EXIT) and node.input().unique() not in whole:
            made.call(node)
        else:
            made.copy(node)
    boxes_out = made.finish(outputs)
    sets = [path for node in nodes for path in _sets(source, node)]
    return Built(made.graph, made.bound, made.boxes_in, boxes_out, sets, made.fixed)


def _contexts(nodes: Sequence[torch._C.Node], kind: str) -> set[int]:
    return {node.input().unique() for node in nodes if node.kind() == kind}


class _Maker:
    def __init__(self, source: Source, inputs: Sequence[torch._C.Value],
                 boxes: Boxes | None, read: Callable[[Path], Any] | None) -> None:
        self.source, self.boxes, self.read = source, boxes, read
        self.graph = torch._C.Graph()
        self.bound: list[Path] = []
        self.fixed = False
        self.of: dict[int | Path, torch._C.Value] = {}
        self.boxes_in: list[Box | None] = []
        given = []
        for value in inputs:
            box = boxes.box(value) if boxes else None
            new = self.graph.addInput()
            new.setType(box.type if box else value.type())
            _rename(new, value)
            self.boxes_in.append(box)
            given.append((value, new, box))
        for value, new, box in given:
            self.of[source.key(value)] = box.unwrap(self.graph, new) if box else new

    def copy(self, node: torch._C.Node) -> None:
        """Copies a node with its blocks to the end of the graph."""
        if node.kind() == UNINITIALIZED:
            value = node.output()
            self.of[value.unique()] = default(self.graph, value.type())
            return
        copy = self.graph.insertNode(self.graph.createClone(node, self.value))
        for old, new in zip(node.outputs(), copy.outputs()):
            self.of[self.source.key(old)] = new
        _fill(self.graph, copy)

    def call(self, node: torch._C.Node) -> None:
        """Enters or leaves a context whose other end is in another part: the interpreter pairs them
        within one graph only, so the method is called."""
        context = self.value(node.input())
        enter = node.kind() == ENTER
        none = [] if enter else [self.graph.insertConstant(None)] * 3
        made = self.graph.insertNode(
            self.graph.create("prim::CallMethod", [context, *none], 1)).s_(
                "name", "__enter__" if enter else "__exit__")
        made.output().setType(node.output().type())
        self.of[node.output().unique()] = made.output()

    def value(self, value: torch._C.Value) -> torch._C.Value:
        """The copy of a value of the whole."""
        key = self.source.key(value)
        found = self.of.get(key)
        if found is None:
            found = self.of[key] = self._reach(value)
        return found

    def _reach(self, value: torch._C.Value) -> torch._C.Value:
        path, node = self.source.path_of.get(value.unique()), value.node()
        if path is not None:
            baked = self._bake(path, value.type()) if self.read else None
            if baked is not None:
                return baked
            if plain(value.type()) or value.type().kind() == "ClassType" and self._module(path):
                return self._bind(path, value)
        if node.kind() in (CONSTANT, GETATTR):
            return self.graph.insertNode(self.graph.createClone(node, self.value)).output()
        if node.kind() == UNINITIALIZED:
            return default(self.graph, value.type())
        raise AssertionError(f"a part reads %{value.debugName()} of {node.kind()}, which neither "
                             "it makes nor the plan gives it")

    def _module(self, path: Path) -> bool:
        return isinstance(self.source.attribute(path), torch._C.ScriptModule)

    def _bind(self, path: Path, value: torch._C.Value) -> torch._C.Value:
        self.bound.append(path)
        new = self.graph.addInput()
        new.setType(value.type())
        _rename(new, value)
        return new

    def _bake(self, path: Path, kind: torch._C.Type) -> torch._C.Value | None:
        found = self.read(path)
        if isinstance(found, torch.Tensor):
            found = found.detach()
        try:
            constant = self.graph.insertConstant(found)
        except (RuntimeError, TypeError):
            return None
        if found is not None and not isinstance(found, torch.Tensor):
            constant.setType(kind)
        return constant

    def finish(self, outputs: Sequence[torch._C.Value]) -> list[Box | None]:
        """Registers the outputs, checks the graph."""
        boxes = [self.boxes.box(value) if self.boxes else None for value in outputs]
        values = [self.value(value) for value in outputs]
        self.fixed = _is_fixed(self.graph, values, any(boxes))
        outs = [box.wrap(self.graph, value) if box else value
                for value, box in zip(values, boxes)]
        if len(outs) == 1:
            self.graph.registerOutput(outs[0])
        elif outs:
            node = self.graph.insertNode(self.graph.create("prim::TupleConstruct", outs, 1))
            node.output().setType(torch._C.TupleType([out.type() for out in outs]))
            self.graph.registerOutput(node.output())
        else:
            self.graph.registerOutput(self.graph.insertConstant(None))
        self.graph.lint()
        return boxes


def _is_fixed(graph: torch._C.Graph, outputs: list[torch._C.Value], boxed: bool) -> bool:
    """May an output be, or hold, something mutable that is computed from constants alone?
    TorchScript makes that once, for all runs, where it sees no write in the same graph."""
    fixed: set[int] = set()
    mutable: set[int] = set()
    for node in walk(graph):
        if node.kind() == CONSTANT:
            fixed.add(node.output().unique())
        elif all(value.unique() in fixed for value in node.inputs()) and not any(node.blocks()):
            fixed.update(value.unique() for value in node.outputs())
            mutable.update(value.unique() for value in node.outputs()
                           if value.type().kind() == "TensorType" or not plain(value.type()))
    return bool(mutable) and (boxed or any(value.unique() in mutable for value in outputs))


def _rename(new: torch._C.Value, old: torch._C.Value) -> None:
    name = old.debugName()
    new.setDebugName(f"v{name}" if name.isdigit() else name)


def _fill(graph: torch._C.Graph, node: torch._C.Node) -> None:
    """Values that are never read would not pass to Python; they get some value."""
    for found in [inner for block in node.blocks() for inner in block.findAllNodes(UNINITIALIZED)]:
        with graph.insert_point_guard(found):
            found.output().replaceAllUsesWith(default(graph, found.output().type()))
        found.destroy()


def _sets(source: Source, node: torch._C.Node) -> list[Path]:
    """The attributes that a node sets, itself or in its blocks."""
    paths = []
    for found in (node, *(inner for block in node.blocks() for inner in walk(block))):
        if found.kind() == SETATTR:
            owner = source.path_of.get(found.inputsAt(0).unique())
            if owner is not None:
                paths.append((*owner, found.s("name")))
    return paths
