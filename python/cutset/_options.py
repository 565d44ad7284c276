"""Options as callers give them, checked: sizes, counts, choices, names. Mistakes are UsageError.

Sizes are spelt as for the command: `512MiB`, `8GB`, `1.5GiB`, or bytes.
"""
from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import UsageError

MOST = 2**63 - 1
OVERSIZE = ("error", "host", "keep")  # as CUTSET_OVERSIZE_... count
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def whole(value: Any) -> int | None:
    """An int, also numpy's; None for anything else, bools too."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _parse_size(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]+)(?:\.([0-9]+))?([A-Za-z]*)", text, re.ASCII)
    unit = _UNITS.get(match[3]) if match else None
    if match is None or unit is None or (match[2] and unit == 1):
        return None
    size = int(match[1]) * unit if len(match[1]) < 20 else MOST + 1
    if match[2]:
        size += int(match[2]) * unit // 10 ** len(match[2]) if len(match[2]) < 4000 else 0
    return size


def size_bytes(value: Any, what: str) -> int:
    """A positive size in bytes, from an int or a string. `what` names the option."""
    size = _parse_size(value) if isinstance(value, str) else whole(value)
    if size is None or not 0 < size <= MOST:
        raise UsageError(f"{what} is {value!r}: give a positive size in bytes, or one such as "
                         "'512MiB', '8GiB' or '8GB'")
    return size


def is_above(value: Any, limit: int) -> bool:
    """Is it a size of more than `limit` bytes, however large?"""
    size = _parse_size(value) if isinstance(value, str) else whole(value)
    return size is not None and size > limit


def memory(value: Any, what: str, *, auto: bool) -> int | None:
    """A budget: None for none; `"auto"` is what the system allows now, where it may be given."""
    if value is None:
        return None
    if isinstance(value, str) and value == "auto":
        if not auto:
            raise UsageError(f"{what}='auto' is not there yet: give a size such as '8GiB'")
        from ._memory import available_memory
        return max(available_memory(), 1)  # 0 would mean no budget
    return size_bytes(value, what)


def count(value: Any, what: str, least: int = 1, most: int = MOST) -> int:
    """A whole number of at least `least`."""
    number = whole(value)
    if number is None or not least <= number <= most:
        limit = f"from {least} to {most}" if most < MOST else f"of at least {least}"
        raise UsageError(f"{what} is {value!r}: give a whole number {limit}")
    return number


def choice(value: Any, what: str, allowed: Sequence[str]) -> str:
    """One of the words."""
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{what} is {value!r}: give {', '.join(map(repr, allowed[:-1]))} or "
                         f"{allowed[-1]!r}")
    return value


def objective(value: Any) -> None:
    """UsageError for what is no objective, or none yet."""
    if choice(value, "objective", ("engines", "bytes")) == "bytes":
        raise UsageError("objective='bytes' is not there yet: leave it out")


def names(values: Any, what: str) -> list[str]:
    """Strings; a single one counts as a list of one."""
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, Iterable):
        raise UsageError(f"{what} is {values!r}: give names")
    found = list(values)
    for name in found:
        if not isinstance(name, str) or not name or "\0" in name:
            raise UsageError(f"{what} holds {name!r}: give names, as strings")
    return found


def path(value: Any, what: str) -> str:
    """A path as a string."""
    try:
        found = os.fsdecode(value)
    except TypeError:
        raise UsageError(f"{what} is {type(value).__name__}: give a path") from None
    if not found or "\0" in found:
        raise UsageError(f"{what} is {value!r}: give a path")
    return found
