"""Kinds and types of values, from the examples that nodes carry (`meta["val"]`, `"tensor_meta"`);
and the memory that holds a tensor.

Types are spelt as in the text form: `f32[s0,3]`. A symbolic size is spelt only where the text form
can say it (sums, products, floor, ceiling, least and greatest); any other is `?`. Each distinct
(dtype, shape) is spelt once.
"""
from __future__ import annotations

import re
from typing import Any

import torch

from .._lib import NONE
from ._codes import LIST, SCALAR, TENSOR

ELEMENTS = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
    torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz"}
for _name, _spelling in (("uint16", "u16"), ("uint32", "u32"), ("uint64", "u64"),
                         ("float8_e8m0fnu", "f8e8m0")):
    if hasattr(torch, _name):
        ELEMENTS[getattr(torch, _name)] = _spelling
_WIDE = frozenset({torch.float64, torch.complex64, torch.complex128} |
                  ({torch.complex32} if hasattr(torch, "complex32") else set()))
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = frozenset({"floor", "ceil", "min", "max"})
_MOST_TEXT = 200


class Types:
    """Types met so far. `of_meta` answers a kind, one of cutset.h or of those below, and an index
    into `texts`."""

    NUMBERS = 3  # a tuple or list without tensors
    UNKNOWN = 4

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.wide: set[int] = set()  # those of float64 and complex numbers
        self.known: dict[Any, int] = {}  # by dtype and shape

    def of_meta(self, meta: dict[str, Any]) -> tuple[int, int]:
        """Of a node."""
        value = meta.get("val")
        if value is None:
            value = meta.get("tensor_meta")
            if value is None:
                if "val" in meta:
                    return SCALAR, NONE
                value = meta.get("example_value")
                if value is None:
                    return self.UNKNOWN, NONE
        try:  # a tensor, or a TensorMetadata, which is a tuple
            return TENSOR, self.of_tensor(value)
        except AttributeError:
            return self._of_other(value), NONE

    def of_tensor(self, value: Any) -> int:
        """Of a tensor, or of what has its dtype and shape."""
        try:
            return self.known[value.dtype, value.shape]
        except (KeyError, TypeError):  # new; symbolic sizes have no hash
            return self._learn(value)

    def _learn(self, value: Any) -> int:
        dtype, shape = value.dtype, tuple(map(_known_size, value.shape))
        found = self.known.get((dtype, shape))
        if found is None:
            element = ELEMENTS.get(dtype)
            found = NONE
            if element is not None:
                found = len(self.texts)
                self.texts.append(f"{element}[{','.join(map(_spell_size, shape))}]")
                if dtype in _WIDE:
                    self.wide.add(found)
            self.known[dtype, shape] = found
        return found

    def _of_other(self, value: Any) -> int:
        if not isinstance(value, (tuple, list, dict, set)):
            return SCALAR
        todo = list(value.values()) if isinstance(value, dict) else list(value)
        while todo:
            item = todo.pop()
            if hasattr(item, "dtype") and hasattr(item, "shape"):
                return LIST
            if isinstance(item, (tuple, list)):
                todo.extend(item)
            elif isinstance(item, dict):
                todo.extend(item.values())
        return self.NUMBERS


def memory_of(tensor: torch.Tensor) -> tuple[Any, int]:
    """A key of the tensor's storage, and its bytes."""
    try:
        memory = tensor.untyped_storage()
        return memory._cdata, memory.nbytes()
    except (NotImplementedError, RuntimeError):  # sparse, opaque
        return ("tensor", id(tensor)), tensor.numel() * tensor.element_size()


def _known_size(size: Any) -> Any:
    """An int, or the expression of a symbolic size, which has a hash."""
    if type(size) is int:
        return size
    node = getattr(size, "node", None)
    expression = getattr(node, "_expr", None)
    if expression is None:
        try:
            return int(size)
        except Exception:
            return "?"
    return int(expression) if getattr(expression, "is_Integer", False) else expression


def _spell_size(size: Any) -> str:
    if isinstance(size, int):
        return str(size) if size >= 0 else "?"
    text = _spell(size, 0) if not isinstance(size, str) else "?"
    return text if text is not None and len(text) <= _MOST_TEXT else "?"


def _spell(e: Any, depth: int) -> str | None:
    """An expression of sympy in the words of the text form, or None."""
    if depth > 20:
        return None
    if getattr(e, "is_Integer", False):
        return str(int(e)) if int(e) >= 0 else None
    if getattr(e, "is_Symbol", False):
        name = str(e)
        return name if _SYMBOL.match(name) and name not in _RESERVED else None
    parts = [_spell(a, depth + 1) for a in e.args]
    kind = type(e).__name__
    if kind == "Add":
        return _spell_sum(e, depth)
    if None in parts or not parts:
        return None
    known = [p for p in parts if p is not None]
    if kind == "Mul":
        return "*".join(f"({p})" if _is_sum(p) else p for p in known)
    if kind == "Pow" and getattr(e.args[1], "is_Integer", False) and 1 < int(e.args[1]) <= 4:
        base = f"({known[0]})" if _is_sum(known[0]) else known[0]
        return "*".join([base] * int(e.args[1]))
    if kind in ("FloorDiv", "CleanDiv", "CeilDiv") and len(known) == 2:
        word = "ceil" if kind == "CeilDiv" else "floor"
        return f"{word}(({known[0]})/({known[1]}))"
    if kind in ("Max", "Min"):
        text = known[0]
        for other in known[1:]:
            text = f"{kind.lower()}({text},{other})"
        return text
    return None


def _is_sum(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c in "+-" and depth == 0:
            return True
    return False


def _spell_sum(e: Any, depth: int) -> str | None:
    """Terms with a plus first: the text form has no sign."""
    plus, minus = [], []
    for term in e.args:
        coefficient = term.as_coeff_Mul()[0] if hasattr(term, "as_coeff_Mul") else 1
        negative = bool(coefficient < 0)
        text = _spell(-term if negative else term, depth + 1)
        if text is None:
            return None
        (minus if negative else plus).append(f"({text})" if _is_sum(text) else text)
    if not plus:
        return None
    return "-".join(["+".join(plus), *minus])
