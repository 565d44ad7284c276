"""PartitionedModule: what `partition` gives back."""
from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from .._errors import ModelError, UsageError
from .._plan import Plan
from ._boxes import Box
from ._parts import Attributes, Branches, duplicate
from ._program import Program
from ._source import Path, Source, Table, holder


class Scope(nn.Module):
    """Parameters, buffers and further scopes, under the names that the original has for them."""


class PartitionedModule(nn.Module):
    """A ScriptModule's method in parts: children `_run_on_acc_N` and `_run_on_gpu_N`.

    Takes and gives what the method does. Parameters and buffers are those of `original`; what the
    method sets on the module, it sets on `original`. A child that is put in another's place runs
    instead of it. Pickled as the original and the plan; no attribute of the original but its
    parameters, buffers and what the method sets may change after the partition.
    """

    def __init__(self, original: torch.jit.ScriptModule, plan: Plan, *, method: str = "forward",
                 freeze: bool = False, source: Source | None = None,
                 table: Table | None = None) -> None:
        super().__init__()
        source = source or Source(original, method, freeze=freeze)
        if table is not None:
            source.rename(table)
        slots: dict[Path, tuple[dict[str, Any], str]] = {}
        _mirror(self, original, set(original.state_dict(keep_vars=True)), (), slots)
        program = Program(source, plan, Attributes(source, slots))
        taken = next(filter(self._modules.__contains__, program.children), None)
        if taken is not None:
            raise ModelError(f"the module has a child {taken!r}, which is the name of a part: "
                             "rename it", node=taken)
        self.__dict__.update(_original=original, _plan=plan, _source=source, _freeze=freeze,
                             _slots=slots, _program=program, _made=dict(program.children))
        self._modules.update(program.children)
        for child in program.children.values():
            child.training = self.training
            if isinstance(child, Branches):
                child._children = self._modules

    @property
    def plan(self) -> Plan:
        """The plan it follows."""
        return self.__dict__["_plan"]

    @property
    def original(self) -> torch.jit.ScriptModule:
        """The module it was made from."""
        return self.__dict__["_original"]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the parts."""
        program: Program = self.__dict__["_program"]
        values = program.enter(args, kwargs)
        grad = torch.is_grad_enabled()
        try:
            program.top.run(self._modules, values)
        finally:  # a part may have entered no_grad before another failed
            if torch.is_grad_enabled() is not grad:
                torch._C._set_grad_enabled(grad)
        made = values[program.top.outputs[0]]
        return Box.take(made) if program.boxes_out[0] else made

    def train(self, mode: bool = True) -> PartitionedModule:
        """Refused where the plan rests on the other mode: writes and random draws depend on it."""
        fixed = self.__dict__.get("_source")
        if fixed is not None and any(path[-1] == "training" and flag is not bool(mode)
                                     for path, flag in fixed.flags.items()):
            raise UsageError(f"the plan was made for the other mode: call train({bool(mode)}) on "
                             "the original and partition it again")
        return super().train(mode)

    # ---- copies ----

    def _now(self, copied: bool) -> torch.jit.ScriptModule:
        """The original with the parameters and buffers that are registered here now."""
        original, source = self.original, self.__dict__["_source"]
        changed = {path: slot[0][slot[1]] for path, slot in self.__dict__["_slots"].items()
                   if holder(original, path).getattr(path[-1]) is not slot[0][slot[1]]}
        changed.update((path, flag) for path, flag in source.flags.items()
                       if holder(original, path).getattr(path[-1]) is not flag)
        if source.module is not original:
            changed.update((path, source.attribute(path)) for path in source.set_paths
                           if path not in changed)
        if changed or copied:
            original = _copy(original)
        for path, value in changed.items():
            holder(original, path).setattr(path[-1], duplicate(value, {}))
        return original

    def _others(self) -> dict[str, nn.Module]:
        """Children that were put in the place of ours."""
        made = self.__dict__["_made"]
        return {name: child for name, child in self._modules.items()
                if name in made and child is not made[name]}

    def __reduce__(self) -> tuple[Any, ...]:
        source = self.__dict__["_source"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            data = self._now(copied=False)._c.save_to_buffer()
        return _restore, (data, self.plan, source.method, self.__dict__["_freeze"],
                          source.table(), self._others())

    def __deepcopy__(self, memo: dict[int, Any]) -> PartitionedModule:
        source = self.__dict__["_source"]
        new = PartitionedModule(self._now(copied=True), self.plan, method=source.method,
                                freeze=self.__dict__["_freeze"], table=source.table())
        memo[id(self)] = new
        new._modules.update((name, copy.deepcopy(child, memo))
                            for name, child in self._others().items())
        return new


def _copy(module: torch.jit.ScriptModule) -> torch.jit.ScriptModule:
    """A deep copy whose parameters are its own: torch's are computed from the old ones."""
    new = copy.deepcopy(module)
    made: dict[int, torch.Tensor] = {}
    for name, old in module.named_parameters(remove_duplicate=False):
        path = tuple(name.split("."))
        at = holder(new, path)
        fresh = made.get(id(old))
        if fresh is None:
            fresh = at.getattr(path[-1]).detach()
            fresh = made[id(old)] = (nn.Parameter(fresh, old.requires_grad) if isinstance(
                old, nn.Parameter) else fresh.requires_grad_(old.requires_grad))
        at.setattr(path[-1], fresh)
    return new


def _mirror(scope: nn.Module, module: torch.jit.ScriptModule, saved: set[str], path: Path,
            slots: dict[Path, tuple[dict[str, Any], str]]) -> None:
    """Registers what `module` has, the same tensors, under the same names. Written past nn.Module's
    own setters: names that it keeps for itself are fine here, and so are parameters that a loaded
    module holds as plain tensors."""
    stack = [(scope, module, path)]
    while stack:
        scope, module, path = stack.pop()
        scope.training = getattr(module, "training", False)  # a frozen module has none
        for name, value in module.named_parameters(recurse=False):
            scope._parameters[name] = value
            slots[(*path, name)] = (scope._parameters, name)
        for name, value in module.named_buffers(recurse=False):
            scope._buffers[name] = value
            slots[(*path, name)] = (scope._buffers, name)
            if ".".join((*path, name)) not in saved:
                scope._non_persistent_buffers_set.add(name)
        for name, inner in module.named_children():
            scope._modules[name] = Scope()
            stack.append((scope._modules[name], inner, (*path, name)))


def _restore(data: bytes, plan: Plan, method: str, freeze: bool, table: Table,
             others: Mapping[str, nn.Module]) -> PartitionedModule:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        original = torch.jit.load(io.BytesIO(data))
    new = PartitionedModule(original, plan, method=method, freeze=freeze, table=table)
    new._modules.update(others)
    return new
