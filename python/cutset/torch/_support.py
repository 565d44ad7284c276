"""Which accelerators take which node.

`supported` comes in many forms (torch_api); each becomes a list of askers, one an accelerator: a
function of a node and what is known of it that answers True or the reason for a refusal, spelt
"rule: sentence". A user's code is asked exactly once for each node it is asked about.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from .._errors import UsageError
from ._effects import Facts, draws
from ._modules import ModuleFacts, module_facts

_MOST_TARGETS = 31  # bits of a permit below CUTSET_ALLOW_HOST


Answer = bool | str
Asker = Callable[[Node, Facts, str, bool], Answer]


def spellings(node: Node, facts: Facts | None) -> tuple[Any, ...]:
    """Everything an operator is named by."""
    target = node.target
    if node.op != "call_function" or facts is None:
        return (target,)
    packet = getattr(target, "overloadpacket", None)
    names = (target, facts.name)
    return names if packet is None else (*names, packet, facts.packet)


def _no_operator(spec: Any, what: str) -> None:
    """UsageError for a bare operator; a packet would be a list of its overloads' names."""
    if isinstance(spec, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        raise UsageError(f"{what} is the operator {spec}: give a list, {what}=[torch.ops.{spec}]")


class Names:
    """A collection of operators. Strings may also be spelt "aten::add" and "aten.add.Tensor"."""

    __slots__ = ("_names", "_found")

    def __init__(self, names: Any, what: str) -> None:
        _no_operator(names, what)
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise UsageError(f"{what} is {names!r}: give a collection of operators")
        kept: set[Any] = set()
        for name in names:
            if not isinstance(name, str) and not callable(name):
                raise UsageError(f"{what} holds {name!r}: give an operator, or its name")
            try:
                kept.add(name)
            except TypeError:
                raise UsageError(f"{what} holds {name!r}, which has no hash: give its "
                                 "name") from None
            if isinstance(name, str) and ("." in name or "::" in name):
                kept.add("torch.ops." + name.replace("::", "."))  # aten::add, aten.add.Tensor
        self._names = frozenset(kept)
        self._found: dict[tuple[str, Any], bool] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def holds(self, node: Node, facts: Facts | None) -> bool:
        """Is the operator of this node among them?"""
        key = (node.op, node.target)
        found = self._found.get(key)
        if found is None:
            found = any(name in self._names for name in spellings(node, facts))
            self._found[key] = found
        return found


class Modules:
    """Classes, by themselves or by qualified name: `torch_executed_modules`."""

    def __init__(self, classes: Any, what: str) -> None:
        if isinstance(classes, (str, type)) or not isinstance(classes, Iterable):
            raise UsageError(f"{what} is {classes!r}: give a collection of classes")
        self._names: set[str] = set()
        for item in classes:
            if isinstance(item, type):
                self._names.add(_class_name(item))
            elif isinstance(item, str):
                self._names |= {item, *_imported(item)}
            elif isinstance(item, torch.nn.Module):
                raise UsageError(f"{what} holds a module of class {type(item).__name__}: give the "
                                 f"class, or its name {_class_name(type(item))!r}")
            else:
                raise UsageError(f"{what} holds {item!r}: give a class, or its qualified name")

    def __bool__(self) -> bool:
        return bool(self._names)

    def holds(self, node: Node, module: torch.nn.Module | None) -> bool:
        """Does the node come from such a module?"""
        if module is not None and _class_name(type(module)) in self._names:
            return True
        stack = node.meta.get("nn_module_stack") or {}
        return any(_class_name(entry[1]) in self._names for entry in stack.values()
                   if isinstance(entry, tuple) and len(entry) > 1)


def _imported(name: str) -> Iterator[str]:
    """What the class calls itself that is imported by this name, if one is."""
    module, _, last = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), last) if module else None
    except Exception:  # a name that matches nothing is fine
        return
    if isinstance(found, type):
        yield _class_name(found)


def _class_name(item: Any) -> str:
    if isinstance(item, type):
        return f"{item.__module__}.{item.__qualname__}"
    return str(item)


# ---- the forms of `supported` ----

def _default(node: Node, facts: Facts, busy: str, wide: bool) -> Answer:
    if busy:
        return f"op: it {busy}"
    return "type: it takes or makes float64 or complex numbers" if wide else True


def _of_names(names: Names) -> Asker:
    def ask(node: Node, facts: Facts, busy: str, wide: bool) -> Answer:
        return names.holds(node, facts) or "op: it is not among the supported operators"
    return ask


def asker_of(call: Callable[[Any], Any],
             told: Callable[[Any], tuple[str, str | None]]) -> Callable[..., Answer]:
    """A user's code: what it raises and answers is checked. `told`: how errors speak of a node, and
    its name."""
    def ask(node: Any, facts: Facts | None = None, busy: str = "", wide: bool = False) -> Answer:
        try:
            answer = call(node)
            if answer is True:
                return True
        except Exception as error:
            what, name = told(node)
            raise UsageError(f"supported raised {type(error).__name__} for {what}: {error}: mend "
                             "it", node=name) from error
        if isinstance(answer, str):
            return "op: " + (" ".join(answer.split()) or "it is refused")
        if isinstance(answer, bool) or type(answer).__name__ in ("bool_", "bool"):
            return bool(answer) or "op: it is not supported"
        what, name = told(node)
        raise UsageError(f"supported answered {answer!r} for {what}: answer True, False, or a "
                         "string that says why not", node=name)
    return ask


def _of_answers(call: Callable[[Node], Any]) -> Asker:
    return asker_of(call, lambda node: (f"node {node.name}", node.name))


def _of_registry() -> Asker:
    try:
        import torch_tensorrt.dynamo.conversion  # type: ignore[import-not-found]  # noqa: F401
        from torch_tensorrt.dynamo.conversion._ConverterRegistry import (  # type: ignore[import-not-found]
            DYNAMO_CONVERTERS)
    except ImportError as error:
        raise ImportError('supported="tensorrt" needs the package torch_tensorrt: install '
                          "it") from error
    return _of_answers(lambda node: node in DYNAMO_CONVERTERS)


@dataclass(frozen=True)
class AllBut:
    """A form of `supported` for our own use: every operator that draws no random numbers and has no
    side effect, on all but these types.

    Operators that write are taken too: builders turn writes into values, and a part holds one only
    where nothing outside sees it.
    """

    types: tuple[torch.dtype, ...] = ()


def _of_types(types: tuple[torch.dtype, ...], gm: GraphModule) -> Asker:
    modules: dict[str, ModuleFacts] = {}  # by target

    def ask(node: Node, facts: Facts, busy: str, wide: bool) -> Answer:
        if node.op == "call_module":
            inside = modules.get(node.target)
            if inside is None:
                inside = module_facts(gm.get_submodule(node.target), node.target)
                modules[node.target] = inside
            effect, random = inside.effect, inside.random
        else:
            effect, random = facts.effect, draws(facts, node)
        if effect or random:
            return "op: has a side effect" if effect else "op: draws random numbers"
        for one in (node, *node._input_nodes) if types else ():
            example = one.meta.get("val")
            for value in example if isinstance(example, (tuple, list)) else (example,):
                if isinstance(value, torch.Tensor) and value.dtype in types:
                    return f"op: {str(value.dtype).removeprefix('torch.')} is not taken"
        return True
    return ask


def _one(spec: Any, gm: GraphModule) -> Asker:
    if spec is None:
        return _default
    if isinstance(spec, AllBut):
        return _of_types(spec.types, gm)
    _no_operator(spec, "supported")
    if spec == "tensorrt" if isinstance(spec, str) else False:
        return _of_registry()
    method = getattr(spec, "is_node_supported", None)
    if method is not None and not isinstance(spec, type):
        modules = dict(gm.named_modules())
        return _of_answers(lambda node: method(modules, node))
    if isinstance(spec, (str, type, Mapping)):
        raise UsageError(f'supported is {spec!r}: give None, "tensorrt", operators, a function, or '
                         "an object with is_node_supported")
    if callable(spec):
        return _of_answers(spec)
    return _of_names(Names(spec, "supported"))


@dataclass(frozen=True)
class Refusing:
    """A form of `supported` for our own use: `spec`, but for these nodes, which no accelerator
    takes: {name: why}."""

    spec: Any
    why: Mapping[str, str]


def _but(ask: Callable[..., bool | int | str],
         refused: Mapping[str, str]) -> Callable[..., bool | int | str]:
    def asked(node: Node, facts: Facts, busy: str, wide: bool) -> bool | int | str:
        why = refused.get(node.name)
        return ask(node, facts, busy, wide) if why is None else f"op: {why}"
    return asked


class Support:
    """The accelerators by name, in order, and what each takes."""

    def __init__(self, spec: Any, gm: GraphModule) -> None:
        refused: Mapping[str, str] = {}
        if isinstance(spec, Refusing):
            spec, refused = spec.spec, spec.why
        if isinstance(spec, Mapping):
            if not 0 < len(spec) <= _MOST_TARGETS:
                raise UsageError(f"supported names {len(spec)} accelerators: name 1 to "
                                 f"{_MOST_TARGETS}")
            for name in spec:
                if not isinstance(name, str):
                    raise UsageError(f"supported names an accelerator {name!r}: give a string")
            self.names = tuple(spec)
            self._askers = [_one(value, gm) for value in spec.values()]
        else:
            self.names = ("acc",)
            self._askers = [_one(spec, gm)]
        if len(self._askers) == 1:
            self.ask = self._askers[0]  # type: ignore[method-assign]
        self.plain = all(a is _default for a in self._askers)  # decides by what is known alone
        if refused:
            self.ask = _but(self.ask, refused)  # type: ignore[method-assign]

    def ask(self, node: Node, facts: Facts, busy: str, wide: bool) -> bool | int | str:
        """True: every accelerator takes it; the accelerators that do, as bits; with none, why the
        first refuses."""
        mask, why = 0, ""
        for at, asker in enumerate(self._askers):
            answer = asker(node, facts, busy, wide)
            if answer is True:
                mask |= 1 << at
            elif not why:
                why = str(answer)
        return True if not why else mask or why
