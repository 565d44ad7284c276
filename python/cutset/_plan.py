"""Plans as plain Python objects, read from plan.json when they are first looked at.

A `Plan` is its text: equality, hash, pickling and copies go by it, so a plan of 40,000 nodes costs
nothing until a part is asked for.
"""
from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from ._errors import OversizeWarning
from ._lib import Call, ffi, lib


class Record:
    """An object of plan.json or of a report: its keys are attributes (`-` as `_`, `from` also as
    `from_`) and can be looked up with `[]`. Immutable; equal by content."""

    __slots__ = ("_data", "_whole")
    _data: dict[str, Any]  # lists become tuples, dicts become records, when they are looked at
    _whole: bool

    def __init__(self, data: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_data", dict(data))
        object.__setattr__(self, "_whole", False)

    def _get(self, key: str) -> Any:
        value = self._data[key]
        if isinstance(value, (list, dict)) and not isinstance(value, Table):
            value = self._data[key] = _frozen(value, key)
        return value

    def _all(self) -> dict[str, Any]:
        if not self._whole:
            for key in self._data:
                self._get(key)
            object.__setattr__(self, "_whole", True)
        return self._data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for key in (name, name.replace("_", "-"), name.removesuffix("_")):
            if key in self._data:
                return self._get(key)
        raise AttributeError(f"{type(self).__name__} has no {name}; it has "
                             f"{', '.join(self._data)}")

    def __getitem__(self, key: str) -> Any:
        return self._get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.replace("-", "_") for key in self._data)]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return self._all() == other._all() if isinstance(other, Record) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self._all().items()))

    def __repr__(self) -> str:
        inner = ", ".join(f"{key.replace('-', '_')}={value!r}"
                          for key, value in self._all().items())
        return f"{type(self).__name__}({inner})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._all(),)

    def __copy__(self) -> Record:
        return self

    def __deepcopy__(self, memo: Any) -> Record:
        return self


class Table(dict[str, Any]):
    """A read-only dict: the keys are the model's, not ours (`part.ops`)."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this dict cannot be changed")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (dict(self),)

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: Any) -> Table:
        return self


_TABLES = frozenset({"ops"})


def _frozen(value: Any, key: str = "") -> Any:
    if isinstance(value, list):
        if value and isinstance(value[0], (list, dict)):
            return tuple(_frozen(item, key) for item in value)
        return tuple(value)
    if isinstance(value, dict):
        return Table(value) if key in _TABLES else Record(value)
    return value


class Part(Record):
    """An engine or a host part: `id`, `target`, `nodes` in execution order, `inputs`, ..."""

    __slots__ = ()


class Boundary(Record):
    """A value that crosses parts: `value`, `type`, `bytes`, `from_`, `to`."""

    __slots__ = ()


class Fallback(Record):
    """A node on the host for a reason: `node`, `op`, `rule`, `why`, ..."""

    __slots__ = ()


class Options(Record):
    """Every effective option, sizes in bytes."""

    __slots__ = ()


class Objective(Record):
    """What the plan reaches, and the bounds no plan can beat."""

    __slots__ = ()


_KINDS: dict[str, type[Record]] = {
    "parts": Part, "boundaries": Boundary, "fallback": Fallback, "options": Options,
    "objective": Objective,
}


class Plan:
    """The decision: parts, boundaries, reasons, bounds. Immutable; equal where the text is."""

    __slots__ = ("_text", "_raw", "_made")
    _text: str
    _raw: dict[str, Any] | None
    _made: dict[str, Any]  # what was looked at, by key

    def __init__(self) -> None:
        raise TypeError("plans are made by cutset.plan and Plan.from_json")

    @classmethod
    def _of(cls, text: str) -> Plan:
        """From text that the library wrote."""
        plan = object.__new__(cls)
        object.__setattr__(plan, "_text", text)
        object.__setattr__(plan, "_raw", None)
        object.__setattr__(plan, "_made", {})
        return plan

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Reads a plan.json. ModelError where it is none."""
        if not isinstance(text, str):
            raise TypeError(f"from_json takes a string, not {type(text).__name__}")
        open_plan(text)
        return cls._of(text)

    def to_json(self) -> str:
        """The text of plan.json, as the command writes it."""
        return self._text

    def _look(self, key: str) -> Any:
        if key not in self._made:
            raw = self._raw
            if raw is None:
                raw = json.loads(self._text)
                object.__setattr__(self, "_raw", raw)
            kind, value = _KINDS.get(key), raw[key]
            self._made[key] = (_frozen(value, key) if kind is None else
                               kind(value) if isinstance(value, dict) else tuple(map(kind, value)))
        return self._made[key]

    @property
    def parts(self) -> tuple[Part, ...]:
        """In execution order; `parts[i].id == i`."""
        return self._look("parts")

    @property
    def boundaries(self) -> tuple[Boundary, ...]:
        """Every value that crosses parts."""
        return self._look("boundaries")

    @property
    def fallback(self) -> tuple[Fallback, ...]:
        """Every node that is on the host for a reason."""
        return self._look("fallback")

    @property
    def certificate(self) -> tuple[str, ...]:
        """Nodes that show why no plan has fewer engines than `engines_bound`."""
        return self._look("certificate")

    @property
    def options(self) -> Options:
        """The options it was made with."""
        return self._look("options")

    @property
    def objective(self) -> Objective:
        """Engines, parts, bytes that cross, and their bounds."""
        return self._look("objective")

    @property
    def model(self) -> Record:
        """Path, hash, inputs and outputs of the model."""
        return self._look("model")

    @property
    def targets(self) -> tuple[Record, ...]:
        """Names and hashes of the targets."""
        return self._look("targets")

    @property
    def engines(self) -> int:
        """How many parts run on an accelerator."""
        return self.objective.engines

    @property
    def engines_bound(self) -> int:
        """No plan that gives each node the same target has fewer engines."""
        return self.objective.engines_bound

    @property
    def engines_proved(self) -> bool:
        """Is `engines` the fewest?"""
        return self.objective.engines_proved

    @property
    def oversized(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """Parts over a budget that `oversize="keep"` kept: (nodes, bytes they need)."""
        return tuple((part.nodes, _excess(part, self.options)) for part in self.parts
                     if part.oversized)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("a plan cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a plan cannot be changed")

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Plan) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        proved = "proved minimal" if self.engines_proved else f"bound {self.engines_bound}"
        return f"<cutset.Plan: {self.engines} engines ({proved}), {len(self.parts)} parts>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._text,)

    def __copy__(self) -> Plan:
        return self

    def __deepcopy__(self, memo: Any) -> Plan:
        return self


Plan.__module__ = "cutset"


def _unpickle(text: str) -> Plan:
    return Plan._of(text)


def _excess(part: Part, options: Options) -> int:
    """The bytes that are over their budget: those of the build, or else of the device."""
    budget = options.host_memory
    return part.host_build_bytes if budget is not None and part.host_build_bytes > budget else (
        part.device_bytes)


def warn_oversized(plan: Plan, stacklevel: int) -> None:
    """One warning for all atoms over the budget that became engines. `stacklevel`: the user's line,
    where 2 is the caller."""
    if '"oversized": true' not in plan.to_json():  # quotes in a name are escaped there
        return
    (nodes, need), *more = plan.oversized
    others = f", and {len(more)} more" if more else ""
    warnings.warn(f"{nodes[0]} needs {need} bytes, over the budget: it is an engine of its own"
                  f"{others}", OversizeWarning, stacklevel=stacklevel)


# ---- to and from the library ----

def take_plan(plan: Any, call: Call) -> Plan:
    """A Plan from a cutset_plan; its model's path is relative to the current folder."""
    call.check(lib.cutset_plan_write(plan, ffi.NULL, call.write, call.payload, call.err))
    return Plan._of(call.taken().decode("utf-8"))


def open_plan(text: str) -> Any:
    """A cutset_plan from text; it is freed when it is let go of."""
    call = Call()
    out = ffi.new("cutset_plan **")
    data = text.encode("utf-8", "surrogatepass")
    call.check(lib.cutset_plan_read_memory(out, data, len(data), call.err))
    return ffi.gc(out[0], lib.cutset_plan_free)
