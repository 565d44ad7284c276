"""Numbers and words that this package and the library share."""
from __future__ import annotations

from collections.abc import Mapping

from .._errors import WORDS
from .._lib import lib

TENSOR: int = lib.CUTSET_TENSOR
SCALAR: int = lib.CUTSET_SCALAR
LIST: int = lib.CUTSET_LIST
EFFECT: int = lib.CUTSET_NODE_EFFECT
RANDOM: int = lib.CUTSET_NODE_RANDOM
REPEAT: int = lib.CUTSET_NODE_REPEAT
FOLLOW: int = lib.CUTSET_NODE_FOLLOW
FREE: int = lib.CUTSET_NODE_FREE
EXEMPT: int = lib.CUTSET_NODE_EXEMPT
BOOKEND: int = lib.CUTSET_NODE_BOOKEND
NO_PATTERN: int = lib.CUTSET_NODE_NO_PATTERN
CALLS = ("call_function", "call_method", "call_module")

# What the library calls an option, and what it is called here.
OPTION_WORDS: Mapping[str, str] = {
    **WORDS, "host-memory": "cpu_memory_budget", "min-nodes": "min_block_size",
    "exclude": "torch_executed_ops", "connected": "skip_horizontal_fusion"}
