"""TorchScript modules in parts: as few engines as can be, the rest on the host.

    parted = cutset.torchscript.partition(torch.jit.script(model), supported={"aten::relu"})
    parted._run_on_acc_0 = MyEngine(parted._run_on_acc_0.graph)
    parted(x)

Calls are inlined; a `prim::If` on the host has engines in its branches. Engines take and give
tensors only. Parameters and buffers are those of the module, which is never changed.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from .._plan import Plan
from ._decide import Request
from ._module import PartitionedModule
from ._source import Source

__all__ = ["PartitionedModule", "partition", "plan"]
Supported = Collection[str] | Callable[[torch._C.Node], bool | str] | None


def plan(module: torch.jit.ScriptModule, *, supported: Supported = None, min_block_size: int = 1,
         torch_executed_ops: Iterable[str] = (),
         torch_executed_modules: Iterable[str | type] = (),
         require_full_compilation: bool = False, cpu_memory_budget: int | str | None = None,
         memory_factor: float = 4, memory_base: int | str = 0, oversize: str = "error",
         max_engines: int | None = None, groups: Iterable[Iterable[str]] = (),
         method: str = "forward", freeze: bool = False) -> Plan:
    """Decides only; nothing is built. Arguments as for `partition`."""
    return _decide(module, method, freeze, supported=supported, min_block_size=min_block_size,
                   torch_executed_ops=torch_executed_ops,
                   torch_executed_modules=torch_executed_modules,
                   require_full_compilation=require_full_compilation,
                   cpu_memory_budget=cpu_memory_budget, memory_factor=memory_factor,
                   memory_base=memory_base, oversize=oversize, max_engines=max_engines,
                   groups=groups)[1]


def partition(module: torch.jit.ScriptModule, *, supported: Supported = None,
              min_block_size: int = 1, torch_executed_ops: Iterable[str] = (),
              torch_executed_modules: Iterable[str | type] = (),
              require_full_compilation: bool = False, cpu_memory_budget: int | str | None = None,
              memory_factor: float = 4, memory_base: int | str = 0, oversize: str = "error",
              max_engines: int | None = None, groups: Iterable[Iterable[str]] = (),
              method: str = "forward", freeze: bool = False) -> PartitionedModule:
    """The module's method in parts.

    `supported`: kinds (`"aten::relu"`, `"aten::add.Tensor"`), or a function of a node that answers
    True, False, or why not; None: every `aten::` operator that neither writes, draws random numbers
    nor has a side effect. `torch_executed_ops`, `torch_executed_modules`: kinds, and classes of
    modules by qualified or bare name, that stay on the host. `min_block_size`: smaller engines go
    to the host; nodes with a Tensor result count. `require_full_compilation`: one engine holds
    everything, else NotFullySupportedError. An engine fits if memory_factor x weight bytes +
    memory_base <= cpu_memory_budget; `oversize`: what becomes of nodes that are over it alone.
    `groups`: names of nodes that share a part. `freeze`: attributes become constants first, in a
    copy. The mode (train or eval) is that of the module, and stays.

    Raises BudgetError, GroupError, UsageError, ModelError (weights on the meta device are one; a
    plan takes them); TypeError for what is no ScriptModule.
    UserWarning where no engine was made.
    """
    source, decided = _decide(
        module, method, freeze, supported=supported, min_block_size=min_block_size,
        torch_executed_ops=torch_executed_ops, torch_executed_modules=torch_executed_modules,
        require_full_compilation=require_full_compilation, cpu_memory_budget=cpu_memory_budget,
        memory_factor=memory_factor, memory_base=memory_base, oversize=oversize,
        max_engines=max_engines, groups=groups)
    source.check_weights()
    if not decided.engines:
        warnings.warn("no engine was made: every part runs in torch (plan.fallback says why)",
                      UserWarning, stacklevel=2)
    return PartitionedModule(module, decided, method=method, freeze=bool(freeze), source=source)


def _decide(module: torch.jit.ScriptModule, method: str, freeze: bool,
            **options: Any) -> tuple[Source, Plan]:
    source = Source(module, method, freeze=bool(freeze))
    return source, Request(source, **options).decide()
