"""Plans of TorchScript: `part.ops` lists the kinds of the part's nodes, in order."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._plan import Part, Plan


class ScriptPlan(Plan):
    """A Plan that knows the kinds of its nodes; plan.json only counts them."""

    __slots__ = ("_kinds", "_listed")
    _kinds: Mapping[str, str]
    _listed: tuple[Part, ...] | None

    @classmethod
    def of(cls, plan: Plan, kinds: Mapping[str, str]) -> ScriptPlan:
        """`kinds` by name of node."""
        new = cls._of(plan.to_json())
        object.__setattr__(new, "_kinds", kinds)
        object.__setattr__(new, "_listed", None)
        return new

    @property
    def parts(self) -> tuple[Part, ...]:
        """In execution order; `parts[i].id == i`."""
        if self._listed is None:
            kind = self._kinds.__getitem__
            object.__setattr__(self, "_listed", tuple(
                Part({**{key: part[key] for key in part}, "ops": tuple(map(kind, part.nodes))})
                for part in super().parts))
        return self._listed

    def __reduce__(self) -> tuple[Any, ...]:
        return ScriptPlan.of, (Plan._of(self.to_json()), dict(self._kinds))
