"""Numbers and words that this package and the library share."""
from __future__ import annotations

from collections.abc import Mapping

from .._errors import WORDS

TENSOR, SCALAR, LIST = 0, 1, 2  # CUTSET_TENSOR ...
# CUTSET_NODE_...
EFFECT, RANDOM, REPEAT, FOLLOW, FREE, EXEMPT, BOOKEND, NO_PATTERN = 1, 4, 8, 16, 32, 64, 128, 512
CALLS = ("call_function", "call_method", "call_module")

# What the library calls an option, and what it is called here.
OPTION_WORDS: Mapping[str, str] = {
    **WORDS, "host-memory": "cpu_memory_budget", "min-nodes": "min_block_size",
    "exclude": "torch_executed_ops", "connected": "skip_horizontal_fusion"}
