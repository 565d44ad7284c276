"""Values that Python would copy, carried from part to part as themselves.

TorchScript hands lists, dicts, tuples and objects to Python as copies, so a list that two host
parts share would become two. Between parts such a value therefore stays in a box: a module with one
attribute, made and opened inside the graphs. Numbers, strings and their like need none, nor do
tensors, but for one that may be undefined: Python has no value for that.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._source import Source

_UNIT = torch._C.CompilationUnit()  # the types of boxes; they must outlive every graph
_count = 0

_PLAIN = frozenset({
    "TensorType", "IntType", "FloatType", "BoolType", "ComplexType", "StringType", "NoneType",
    "NumberType", "DeviceObjType", "GeneratorType", "ScalarTypeType", "LayoutType",
    "MemoryFormatType", "QSchemeType", "StreamObjType", "SymIntType"})
_DEFAULTS = {"IntType": 0, "FloatType": 0.0, "BoolType": False, "ComplexType": 0j,
             "StringType": "", "NumberType": 0}


def plain(kind: torch._C.Type) -> bool:
    """Does a value of this type pass through Python as itself?"""
    if kind.kind() == "OptionalType":
        kind = kind.getElementType()
    return kind.kind() in _PLAIN


class Box:
    """How values of one type are boxed."""

    def __init__(self, kind: torch._C.Type) -> None:
        global _count
        _count += 1
        self.kind = kind
        held = kind if kind.kind() in ("OptionalType", "AnyType") else torch._C.OptionalType(kind)
        self._empty = torch._C.ScriptModule(f"__torch__.cutset.Box{_count}", _UNIT, True)
        self._empty._register_attribute("value", held, None)
        self.type = self._empty._type()
        self._held = held
        self._put: Any = None

    def put(self, value: Any) -> Any:
        """A Python value in a box of its own; RuntimeError where it has another type."""
        if self._put is None:
            graph = torch._C.Graph()
            given = graph.addInput("value")
            given.setType(self.kind)
            graph.registerOutput(self.wrap(graph, given))
            self._put = torch._C._create_function_from_graph("box", graph)
        return self._put(value)

    def recast(self, box: Box) -> Callable[[Any], Any]:
        """Takes the same value from a box of this type into one of a wider type."""
        graph = torch._C.Graph()
        given = graph.addInput("box")
        given.setType(self.type)
        graph.registerOutput(box.wrap(graph, self.unwrap(graph, given)))
        return torch._C._create_function_from_graph("recast", graph)

    @staticmethod
    def take(box: Any) -> Any:
        """What is in a box, as Python."""
        return box.getattr("value")

    def is_box(self, value: Any) -> bool:
        """Is it one of these boxes?"""
        return isinstance(value, torch._C.ScriptModule) and value._type() == self.type

    def wrap(self, graph: torch._C.Graph, value: torch._C.Value) -> torch._C.Value:
        """In a graph: `value` in a new box."""
        made = graph.insertNode(graph.create("prim::CreateObject", 1)).output()
        made.setType(self.type)
        graph.insertNode(graph.create("prim::SetAttr", [made, value], 0)).s_("name", "value")
        return made

    def unwrap(self, graph: torch._C.Graph, box: torch._C.Value) -> torch._C.Value:
        """In a graph: what is in `box`."""
        read = graph.insertNode(graph.create("prim::GetAttr", [box], 1)).s_("name", "value")
        read.output().setType(self._held)
        if self._held is self.kind:
            return read.output()
        cast = graph.insertNode(graph.create("prim::unchecked_cast", [read.output()], 1)).output()
        cast.setType(self.kind)
        return cast


class Boxes:
    """The boxes of one module, one a type."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._by_type: dict[str, list[Box]] = {}

    def box(self, value: torch._C.Value) -> Box | None:
        """How to box a value of the source; None where it needs no box."""
        kind = value.type()
        if plain(kind) and not self._source.may_miss(value):
            return None
        found = self._by_type.setdefault(str(kind), [])
        for box in found:
            if box.kind == kind:
                return box
        found.append(Box(kind))
        return found[-1]

    def recast(self, old: torch._C.Value, new: torch._C.Value) -> Callable[[Any], Any] | None:
        """How a value becomes another of a wider type; None where it is passed as it is."""
        here, there = self.box(old), self.box(new)
        if here is there or there is None:
            return None
        return here.recast(there) if here else there.put


def default(graph: torch._C.Graph, kind: torch._C.Type) -> torch._C.Value:
    """In a graph: some value of a type, for one that is never read (`prim::Uninitialized`)."""
    name = kind.kind()
    if name in ("OptionalType", "NoneType", "AnyType"):
        return graph.insertConstant(None)
    if name == "TensorType":
        return graph.insertConstant(torch.empty(0))
    if name in _DEFAULTS:
        return graph.insertConstant(_DEFAULTS[name])
    if name == "DeviceObjType":
        return graph.insertConstant(torch.device("cpu"))
    parts: list[torch._C.Value] = []
    if name == "TupleType":
        parts = [default(graph, inner) for inner in kind.elements()]
    maker = {"ListType": "prim::ListConstruct", "DictType": "prim::DictConstruct",
             "TupleType": "prim::TupleConstruct"}.get(name, "prim::CreateObject")
    made = graph.insertNode(graph.create(maker, parts, 1)).output()
    made.setType(kind)
    return made


def python_default(kind: torch._C.Type) -> Any:
    """The same as a Python value, for types that need no box."""
    name = kind.kind()
    return torch.empty(0) if name == "TensorType" else _DEFAULTS.get(name)
