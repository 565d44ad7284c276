"""From a plan to children and the order they run in."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from .._errors import ModelError
from .._plan import Plan
from ..torch._parts import ACC, GPU
from ._boxes import Boxes, python_default
from ._build import build
from ._parts import Attributes, Block, Branches, Key, Part, Read, Step
from ._source import CONSTANT, UNINITIALIZED, Source


class Program:
    """The children by name, the top block, and how arguments come in."""

    def __init__(self, source: Source, plan: Plan, attributes: Attributes) -> None:
        self.source, self.attributes, self.boxes = source, attributes, Boxes(source)
        self.children: dict[str, nn.Module] = {}  # in the order of the plan
        self._parts: dict[str, list[Any]] = {}
        for part in plan.parts:
            self._parts.setdefault(part.block, []).append(part)
            self.children[_child(part)] = nn.Module()  # keeps its place
        self._by_key = {source.key(value): value for value in source.values.values()}
        self.inputs = [source.key(value) for value in source.inputs]
        self.boxes_in = [self.boxes.box(value) for value in source.inputs]
        self._numbers = [{"FloatType": float, "ComplexType": complex}.get(value.type().kind())
                         for value in source.inputs]
        self.boxes_out = [self.boxes.box(value) for value in source.outputs]
        self.top = self._block("", frozenset(self.inputs), source.outputs)

    # ---- arguments ----

    def enter(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[Key, Any]:
        """Arguments by the value they are, as the method's schema has them."""
        if kwargs or len(args) != len(self.inputs):
            args = self._bind(args, kwargs)
        values: dict[Key, Any] = {}
        for key, box, number, value in zip(self.inputs, self.boxes_in, self._numbers, args):
            if box:
                value = box.put(value)
            elif number and isinstance(value, (int, float)):
                value = number(value)
            values[key] = value
        return values

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        schema = self.source.schema
        wanted = schema.arguments[1:]
        if len(args) > len(wanted):
            raise TypeError(f"{schema.name}() takes {len(wanted)} arguments, not {len(args)}")
        left = dict(kwargs)
        bound = list(args)
        for argument in wanted[len(args):]:
            if argument.name in left:
                bound.append(left.pop(argument.name))
            elif argument.has_default_value():
                bound.append(argument.default_value)
            else:
                raise TypeError(f"{schema.name}() misses its argument {argument.name!r}")
        if left:
            raise TypeError(f"{schema.name}() has no argument {next(iter(left))!r}, or has "
                            "it twice")
        return tuple(bound)

    # ---- blocks ----

    def _block(self, block: str, there: frozenset[Key], outputs: Sequence[torch._C.Value]) -> Block:
        """The parts of a block. `there`: the values that exist when it starts."""
        have, own = set(there), set()
        loads: dict[Key, Callable[[], Any]] = {}
        steps: list[tuple[str, list[torch._C.Value], list[torch._C.Value]]] = []

        def need(value: torch._C.Value) -> Key:
            key = self.source.key(value)
            if key not in have:
                have.add(key)
                loads[key] = self._load(value)
            return key

        for part in self._parts.get(block, ()):
            name = _child(part)
            lines, copies = self._lines(part.nodes), self._lines(part.copies)
            inputs, outs = self._values(part.inputs), self._values(part.outputs)
            fork = [line for line in lines if part.target == "host"
                    and self.source.lines[line].kind() == "prim::If"]
            if fork:
                inside = have.difference(loads).union(map(need, inputs))
                others = [line for line in lines + copies if line != fork[0]]
                inputs = self._branches(name, part.id, fork[0], others, inputs, outs,
                                        frozenset(inside))
            else:
                self._part(name, lines + copies, inputs, outs)
            for value in inputs:
                need(value)
            made = set(map(self.source.key, outs))
            have |= made
            own |= made
            steps.append((name, inputs, outs))
        given = tuple(map(need, outputs))
        return Block(tuple(loads.items()), self._steps(steps, own.difference(given)), given)

    def _steps(self, steps: Sequence[tuple[str, list[Any], list[Any]]],
               own: set[Key]) -> tuple[Step, ...]:
        """`own`: what may be dropped after its last reader."""
        key, box = self.source.key, self.boxes.box
        last = {key(value): at for at, (_, inputs, outs) in enumerate(steps)
                for value in (*outs, *inputs)}
        drops: list[list[Key]] = [[] for _ in steps]
        for found in own:
            drops[last[found]].append(found)
        return tuple(Step(name, tuple(map(key, inputs)), tuple(map(key, outs)),
                          tuple(box(value) for value in inputs),
                          tuple(box(value) for value in outs), tuple(drop))
                     for (name, inputs, outs), drop in zip(steps, drops))

    def _load(self, value: torch._C.Value) -> Callable[[], Any]:
        """How a value that no part makes comes to be."""
        source, node = self.source, value.node()
        box = self.boxes.box(value)
        path = source.path_of.get(value.unique())
        if path is not None:
            if box is None:
                return partial(self.attributes.read, path)
        elif node.kind() not in (CONSTANT, UNINITIALIZED):
            raise _unfit(value.debugName())
        elif box is None and node.kind() == CONSTANT:
            constant = value.toIValue()
            return lambda: constant
        elif box is None:
            return partial(python_default, value.type())
        built = build(source, [], [], [value], self.boxes)
        function, bound = built.function("load"), built.bound
        return lambda: function(*map(self.attributes.read, bound))

    # ---- children ----

    def _part(self, name: str, lines: list[int], inputs: list[Any], outs: list[Any]) -> None:
        built = build(self.source, lines, inputs, outs, self.boxes)
        shown = partial(self._shown, lines, inputs, outs)
        self.children[name] = Part(name, built, shown, self.attributes)

    def _shown(self, lines: list[int], inputs: list[Any], outs: list[Any],
               read: Read) -> torch._C.Graph:
        return build(self.source, lines, inputs, outs, None, read).graph

    def _branches(self, name: str, number: int, line: int, copies: list[int],
                  inputs: list[torch._C.Value], outs: list[torch._C.Value],
                  there: frozenset[Key]) -> list[torch._C.Value]:
        """Adds the child for a prim::If. Returns the values it takes: its inputs, then what else
        its parts read. `copies`: lines it repeats for its condition."""
        node, key = self.source.lines[line], self.source.key
        copied = {key(value): value for at in copies for value in self.source.lines[at].outputs()}
        places = [value.offset() for value in outs]
        blocks, recasts = [], []
        for at, inner in enumerate(node.blocks()):
            given = list(inner.outputs())
            results = [given[i] for i in places]
            blocks.append(self._block(f"{number}.{at}", there.union(copied), results))
            recasts.append([self.boxes.recast(value, out)
                            for value, out in zip(results, outs)])
        read = [key(node.input())]
        for block in blocks:
            read += [found for step in block.steps for found in step.inputs]
            read += block.outputs
        takes = {key(value): value for value in inputs}
        takes.update((found, self._by_key[found]) for found in read
                     if found not in copied and (found in there or found == read[0]))
        values = list(takes.values())
        wanted = [value for found, value in copied.items() if found in read]
        first = None
        if wanted:
            built = build(self.source, copies, values, wanted, self.boxes)
            first = Part(name, built, lambda read: built.graph, self.attributes), tuple(
                map(key, wanted))
        box = self.boxes.box
        self.children[name] = Branches(
            name, tuple(takes), tuple(box(value) for value in values),
            tuple(box(value) for value in outs), read[0], (blocks[0], blocks[1]),
            recasts, first,
            partial(self._shown, [line, *copies], values, outs, self.attributes.read))
        return values

    # ---- names ----

    def _lines(self, names: Iterable[str]) -> list[int]:
        try:
            return [self.source.line_of[name] for name in names]
        except KeyError as error:
            raise _unfit(error.args[0]) from None

    def _values(self, names: Iterable[str]) -> list[torch._C.Value]:
        try:
            return [self.source.values[name] for name in names]
        except KeyError as error:
            raise _unfit(error.args[0]) from None


def _child(part: Any) -> str:
    return f"{GPU if part.target == 'host' else ACC}{part.id}"


def _unfit(name: str) -> ModelError:
    return ModelError(f"the plan does not fit the module, which has no {name!r}: partition "
                      "it again",
                      node=name)
