"""cutset.torch: torch.fx graphs and exported programs cut into the fewest engines that fit.

    parted = cutset.torch.partition(torch.export.export(model, args), cpu_memory_budget="8GiB")
    parted.meta["cutset"]                       # the Plan: engines, bounds, reasons
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._fuse import fuse_partitions
from ._partition import partition, plan
from ._patterns import ATOMIC_SUBGRAPHS, register_atomic_subgraph

if TYPE_CHECKING:
    from ._compile import compile
    from ._overview import SupportOverview, support_overview
    from ._resource import resource_partition

_LATER = {"compile": "_compile",
          "SupportOverview": "_overview", "support_overview": "_overview",
          "resource_partition": "_resource"}
__all__ = [
    "ATOMIC_SUBGRAPHS", "SupportOverview", "compile", "fuse_partitions", "partition",
    "plan", "register_atomic_subgraph", "resource_partition", "support_overview",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
