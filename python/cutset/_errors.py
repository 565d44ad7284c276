"""The exceptions of cutset, and how an error of the library becomes one.

`code` is the exit code that the command has for the same mistake. `str(e)` is one line that names
the place and the cure. What does not apply is None, or empty.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any


class Error(Exception):
    """What cutset raises. `code`: the command's exit code; `node`, `offset`, `path`: the place."""

    code: int = 1

    def __init__(self, message: str = "", *, code: int | None = None, node: str | None = None,
                 offset: int | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = " ".join(str(message).splitlines())
        if code is not None:
            self.code = code
        self.node = node
        self.offset = offset
        self.path = path

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.message, {**self.__dict__, "code": self.code})


def _restore(kind: type[Error], message: str, state: Mapping[str, Any]) -> Error:
    error = kind(message)
    error.__dict__.update(state)
    return error


class UsageError(Error, ValueError):
    """A bad option, size, target or pattern."""

    code = 2


class ModelError(Error, ValueError):
    """A bad, unsupported or changed model, plan, target file or graph."""

    code = 3


class IoError(Error, OSError):
    """The system said no: a missing file, permissions, a full disk, no memory, no runtime."""

    code = 4

    def __init__(self, message: str = "", *, errno: int | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.errno = errno
        self.strerror = self.message
        self.filename = self.path

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_io, (type(self), self.message, self.errno,
                             {**self.__dict__, "code": self.code})


def _restore_io(kind: type[IoError], message: str, errno: int | None,
                state: Mapping[str, Any]) -> IoError:
    error = kind(message, errno=errno)
    error.__dict__.update(state)
    error.filename = error.path
    return error


class BudgetError(Error, ValueError):
    """Nodes that must stay together (`atom`) need `needed` bytes, over the `budget`."""

    def __init__(self, message: str = "", *, atom: Iterable[str] = (), needed: int | None = None,
                 budget: int | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.atom = tuple(atom)
        self.needed = needed
        self.budget = budget


class GroupError(Error, ValueError):
    """A group that cannot be one part; `cycle`: the nodes it pulls in, where it closes a cycle."""

    def __init__(self, message: str = "", *, cycle: Iterable[str] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.cycle = tuple(cycle)


class PartitionError(Error, ValueError):
    """A hand-made partition with a node twice, an unknown node, or a cycle between its parts."""

    code = 2

    def __init__(self, message: str = "", *, nodes: Iterable[str] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.nodes = tuple(nodes)


class NotFullySupportedError(Error, AssertionError):
    """`require_full_compilation`, and `nodes` must stay on the host."""

    def __init__(self, message: str = "", *, nodes: Iterable[str] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.nodes = tuple(nodes)


class OversizeWarning(UserWarning):
    """An atom over the budget became an engine of its own (`oversize="keep"`)."""


for _class in (Error, UsageError, ModelError, IoError, BudgetError, GroupError, PartitionError,
               NotFullySupportedError, OversizeWarning):
    _class.__module__ = "cutset"  # where users find them


# ---- from the library ----

# What the command calls an option, and what Python calls it.
WORDS: Mapping[str, str] = {
    "host-memory": "host_memory", "device-memory": "device_memory", "min-nodes": "min_nodes",
    "max-engines": "max_engines", "oversize": "oversize", "objective": "objective",
    "effort": "effort", "target": "target", "pin": "pin", "exclude": "exclude", "group": "groups",
    "connected": "connected", "shape": "shapes", "dim": "dims", "type": "types",
    "weights": "weights", "follow-links": "follow_links", "plan": "plan", "input": "inputs",
    "onnxruntime": "onnxruntime",
}

ABOUT_BUDGET, ABOUT_GROUP = 1, 2


def spell(message: str, words: Mapping[str, str] = WORDS) -> str:
    """The message with options spelt as Python spells them: `host_memory` for `--host-memory`."""
    return re.sub(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?=[\s=:,;.)']|$)",
                  lambda m: words.get(m[1], m[0]), message)


def make(status: int, message: str, *, errno: int = 0, offset: int = -1, about: int = 0,
         needed: int = 0, budget: int = 0, names: tuple[str, ...] = (), path: str | None = None,
         words: Mapping[str, str] = WORDS) -> BaseException:
    """The exception for an error of the library."""
    if status == 130:
        return KeyboardInterrupt()
    message = spell(message, words)
    place: dict[str, Any] = {"node": names[0] if names else None,
                             "offset": offset if offset >= 0 else None, "path": path}
    if status == 1 and about == ABOUT_BUDGET:
        return BudgetError(message, atom=names, needed=needed, budget=budget, **place)
    if status == 1 and about == ABOUT_GROUP:
        return GroupError(message, cycle=names, **place)
    if status == 2:
        return UsageError(message, **place)
    if status == 3:
        return ModelError(message, **place)
    if status == 4:
        return IoError(message, errno=errno or None, **place)
    return Error(message, code=status, **place)
