"""The children of a PartitionedModule, and how they run one after the other.

Values are kept by what made them and let go of after their last reader. A `prim::If` on the host is
a part too: it looks at its condition and runs the parts of one branch, by the names under which
they are children of the whole, so that whatever was put in their place runs.
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from .._errors import ModelError
from ._boxes import Box
from ._build import Built
from ._source import Path, Source, holder

Key = int | Path
Read = Callable[[Path], Any]
Recast = Callable[[Any], Any] | None


class Attributes:
    """The attributes as they are now: in the scopes of the partitioned module, else in the source.

    `slots`: where the parameters and buffers are. What a part sets, it sets in the source.
    """

    def __init__(self, source: Source, slots: Mapping[Path, tuple[dict[str, Any], str]]) -> None:
        self.source, self.slots = source, slots

    def read(self, path: Path) -> Any:
        """The value of an attribute; of a parameter or buffer, the one registered now."""
        slot = self.slots.get(path)
        return slot[0][slot[1]] if slot else self.source.attribute(path)

    def before(self, paths: Iterable[Path]) -> None:
        """A part will read and set these in the source."""
        for path in paths:
            slot = self.slots.get(path)
            if slot and self.source.attribute(path) is not slot[0][slot[1]]:
                holder(self.source.module, path).setattr(path[-1], slot[0][slot[1]])

    def after(self, paths: Iterable[Path]) -> None:
        """A part has set these in the source."""
        for path in paths:
            slot = self.slots.get(path)
            if slot:
                slot[0][slot[1]] = self.source.attribute(path)


def duplicate(value: Any, memo: dict[int, Any]) -> Any:
    """A deep copy; also of tensors that something computed, which deepcopy refuses."""
    if isinstance(value, torch.Tensor) and not value.is_leaf:
        return value.detach().clone().requires_grad_(value.requires_grad)
    return copy.deepcopy(value, memo)


class _Baked:
    """Copies of attributes, for a part that was copied alone."""

    def __init__(self, values: dict[Path, Any]) -> None:
        self.values = values
        self.read: Read = values.__getitem__

    def before(self, paths: Iterable[Path]) -> None:
        pass

    after = before


class Part(nn.Module):
    """A part: positional values in, one value or a tuple out.

    `graph` is what it runs, with its weights as constants of the same storage. A copy has weights
    of its own.
    """

    def __init__(self, name: str, built: Built, shown: Callable[[Read], torch._C.Graph],
                 attributes: Any) -> None:
        super().__init__()
        self._name, self._built, self._shown, self._attributes = name, built, shown, attributes
        self._run = built.function(name)
        self._graph: tuple[list[Any], torch._C.Graph] | None = None

    @property
    def graph(self) -> torch._C.Graph:
        """Made when it is asked for, and again when weights were replaced."""
        weights = [self._attributes.read(path) for path in self._built.bound]
        last = self._graph
        if last is None or any(old is not new for old, new in zip(last[0], weights)):
            self._graph = last = (weights, self._shown(self._attributes.read))
        return last[1]

    @property
    def boxed(self) -> bool:
        """Do lists and their like pass in or out?"""
        return self._built.boxed

    def forward(self, *inputs: Any, boxed: bool = False) -> Any:
        """`boxed`: give lists and their like in boxes, as the whole wants them."""
        built, attributes = self._built, self._attributes
        inputs = enter(inputs, built.boxes_in, self._name)
        bound = [attributes.read(path) for path in built.bound]
        if built.sets:
            attributes.before(built.sets)
        before = torch._C._get_graph_executor_optimize()  # of this thread
        if built.fixed:
            torch._C._set_graph_executor_optimize(False)
        try:
            made = self._run(*inputs, *bound)
        finally:
            torch._C._set_graph_executor_optimize(before)
            if built.sets:
                attributes.after(built.sets)
        return made if boxed or not built.boxed else leave(made, built.boxes_out)

    def __deepcopy__(self, memo: dict[int, Any]) -> Part:
        values = {path: duplicate(self._attributes.read(path), memo) for path in self._built.bound}
        new = Part(self._name, self._built, self._shown, _Baked(values))
        new.training = self.training
        memo[id(self)] = new
        return new


class Step(NamedTuple):
    """A part in a block: which child, what it takes and gives, what is not needed after it."""

    child: str
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]
    boxes_in: tuple[Box | None, ...]
    boxes_out: tuple[Box | None, ...]
    drop: tuple[Key, ...]


class Block(NamedTuple):
    """What runs in order. `loads`: constants and attributes that parts take or the block gives."""

    loads: tuple[tuple[Key, Callable[[], Any]], ...]
    steps: tuple[Step, ...]
    outputs: tuple[Key, ...]

    def run(self, children: Mapping[str, Any], values: dict[Key, Any]) -> None:
        """Runs it; `values` gets what it makes."""
        for key, load in self.loads:
            values[key] = load()
        for child, inputs, outputs, boxes_in, boxes_out, drop in self.steps:
            module = children[child]
            given = [values[key] for key in inputs]
            if not isinstance(module, (Part, Branches)):
                given = leave_all(given, boxes_in)
                made = module(*given)
            elif module.boxed:
                made = module(*given, boxed=True)
            else:
                made = module(*given)
            if len(outputs) == 1:
                made = (made,)
            elif outputs and len(made) != len(outputs):
                raise ModelError(f"{child} gives {len(made)} values: it has to give "
                                 f"{len(outputs)}", node=child)
            if outputs and not isinstance(module, (Part, Branches)):
                made = enter(made, boxes_out, child)
            values.update(zip(outputs, made or ()))
            for key in drop:
                values.pop(key, None)


class Branches(nn.Module):
    """A `prim::If` on the host: runs the parts of the branch that its condition names.

    `keys`, `boxes_in`: of what it takes. `first`: a part that repeats what the condition and the
    branches need, and the keys of what it makes. `recasts`: by branch and result, how it gets the
    type that the whole has for it. `children`: those of the whole.
    """

    def __init__(self, name: str, keys: Sequence[Key], boxes_in: Sequence[Box | None],
                 boxes_out: Sequence[Box | None], condition: Key, blocks: tuple[Block, Block],
                 recasts: Sequence[Sequence[Recast]],
                 first: tuple[Part, tuple[Key, ...]] | None,
                 shown: Callable[[], torch._C.Graph]) -> None:
        super().__init__()
        self._name, self._keys, self._condition, self._blocks = name, keys, condition, blocks
        self._boxes_in, self._boxes_out, self._recasts = boxes_in, boxes_out, recasts
        self.boxed = any(boxes_in) or any(boxes_out)
        self._first = None if first is None else (first,)  # in a tuple: no child of its own
        self._shown, self._graph = shown, None
        self._children: Mapping[str, Any] = {}

    @property
    def graph(self) -> torch._C.Graph:
        """The whole `prim::If`."""
        if self._graph is None:
            self._graph = self._shown()
        return self._graph

    def forward(self, *inputs: Any, boxed: bool = False) -> Any:
        """As Part.forward."""
        inputs = enter(inputs, self._boxes_in, self._name)
        values = dict(zip(self._keys, inputs))
        if self._first:
            part, keys = self._first[0]
            made = part(*inputs, boxed=True)
            values.update(zip(keys, (made,) if len(keys) == 1 else made))
        branch = 0 if values[self._condition] else 1
        block = self._blocks[branch]
        block.run(self._children, values)
        made = tuple(recast(values[key]) if recast else values[key]
                     for key, recast in zip(block.outputs, self._recasts[branch]))
        if self.boxed and not boxed:
            made = tuple(leave_all(made, self._boxes_out))
        return made[0] if len(made) == 1 else made or None

    def __deepcopy__(self, memo: dict[int, Any]) -> Branches:
        new = copy.copy(self)
        memo[id(self)] = new
        inner = {step.child for block in self._blocks for step in block.steps}
        new._children = {name: copy.deepcopy(self._children[name], memo) for name in inner}
        return new


# ---- boxes at the doors ----

def enter(given: Sequence[Any], boxes: Sequence[Box | None], name: str) -> Sequence[Any]:
    """What is not in a box yet and has to be."""
    if len(given) != len(boxes):
        raise TypeError(f"{name} takes {len(boxes)} values, not {len(given)}")
    if not any(boxes):
        return given
    return [box.put(value) if box and not box.is_box(value) else value
            for value, box in zip(given, boxes)]


def leave_all(made: Sequence[Any], boxes: Sequence[Box | None]) -> list[Any]:
    """Python values, out of their boxes."""
    return [Box.take(value) if box else value for value, box in zip(made, boxes)]


def leave(made: Any, boxes: Sequence[Box | None]) -> Any:
    """The same for what a part returns: one bare value or a tuple."""
    if len(boxes) == 1:
        return Box.take(made) if boxes[0] else made
    return tuple(leave_all(made, boxes)) if boxes else made
