"""The C library: loaded once, its declarations made from its own header.

`ffi` and `lib` are cffi's (ABI mode: no extension module). The GIL is released in every call. A
`Call` carries what one call needs beside its own arguments: the error, a progress function through
which Ctrl-C works, a sink for bytes. An exception in one of its callbacks stops the call and comes
out of `Call.check`.

The library is `$CUTSET_LIBRARY` where that is set, else the one in this package.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import cffi

from . import _errors

NONE = 0xFFFFFFFF  # CUTSET_NONE
ALLOW_HOST = 1 << 31  # CUTSET_ALLOW_HOST

_HERE = Path(__file__).resolve().parent
_ASK_EVERY_NS = 20_000_000


def _declarations() -> str:
    """The header without what only a compiler needs."""
    header = _HERE / "include" / "cutset.h"
    if not header.exists():
        header = _HERE.parent.parent / "include" / "cutset.h"
    text = header.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus$.*?^#endif$", "", text, flags=re.S | re.M)
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    return text.replace("CUTSET_API ", "")


def _load() -> tuple[Any, Any]:
    ffi = cffi.FFI()
    ffi.cdef(_declarations())
    path = os.environ.get("CUTSET_LIBRARY") or str(_HERE / "libcutset.so")
    try:
        return ffi, ffi.dlopen(path)
    except OSError as error:
        raise ImportError(f"the library of cutset cannot be loaded: {error}: install the package, "
                          "or name a libcutset.so in CUTSET_LIBRARY") from None


ffi, lib = _load()


# ---- strings ----

def text(at: Any) -> str:
    """A C string; bytes that are not UTF-8 as \\xNN."""
    return ffi.string(at).decode("utf-8", "backslashreplace")


def encode(value: str | bytes | os.PathLike[str], what: str = "text") -> bytes:
    """For the library; a zero byte would cut it short."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
    else:
        try:
            data = os.fsencode(value)
        except TypeError:
            raise _errors.UsageError(
                f"{what} is {type(value).__name__}: give a string") from None
    if b"\0" in data:
        raise _errors.UsageError(f"{what} {value!r} holds a zero byte: leave it out")
    return data


def strings(values: Iterable[str | bytes]) -> tuple[Any, int, list[Any]]:
    """`const char *const *`, how many, and what must stay alive while they are used."""
    keep = [ffi.new("char[]", encode(value)) for value in values]
    return ffi.new("const char *[]", keep) if keep else ffi.NULL, len(keep), keep


# ---- calls ----

def _stop(kind: type[BaseException], error: BaseException, trace: Any) -> int:
    """Keeps what a callback raised. A signal may end a callback before its first line."""
    ffi.from_handle(trace.tb_frame.f_locals["payload"]).raised = error
    return 1


@ffi.callback("cutset_progress_fn", error=1, onerror=_stop)
def _ask(payload: Any, phase: Any, done: int, total: int) -> int:
    return 0  # Python has run the signal handlers by now


@ffi.callback("cutset_write_fn", error=1, onerror=_stop)
def _take(payload: Any, data: Any, size: int) -> int:
    ffi.from_handle(payload).pieces.append(ffi.buffer(data, size)[:])
    return 0


class _Sink:
    """What the callbacks of a call leave behind."""

    __slots__ = ("pieces", "raised")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.raised: BaseException | None = None


class Call:
    """One call or a few into the library, from one thread."""

    __slots__ = ("err", "payload", "words", "path", "_sink", "_seldom")
    write = _take  # a cutset_write_fn, with `payload`

    def __init__(self, *, path: str | None = None,
                 words: Mapping[str, str] = _errors.WORDS) -> None:
        """`path`: the file that errors are about. `words`: how its caller calls options."""
        self.err = ffi.new("cutset_error *")
        self._sink = _Sink()
        self.payload = ffi.new_handle(self._sink)
        self.words = words
        self.path = path
        self._seldom = ffi.new("cutset_seldom *", {
            "inner": {"call": _ask, "payload": self.payload}, "interval_ns": _ASK_EVERY_NS})

    @property
    def progress(self) -> Any:
        """A cutset_progress for an option struct; the Call must outlive it."""
        return ffi.new("cutset_progress *",
                       {"call": lib.cutset_progress_seldom, "payload": self._seldom})[0]

    def taken(self) -> bytes:
        """What was written so far; the sink is empty then."""
        data = b"".join(self._sink.pieces)
        self._sink.pieces.clear()
        return data

    def check(self, status: int, *, path: str | None = None) -> None:
        """Raises what a callback raised, or the exception for the status."""
        error, self._sink.raised = self._sink.raised, None
        if error is not None:
            raise error
        if status:
            err = self.err
            raise _errors.make(
                status, text(err.message), errno=err.system, offset=err.offset, about=err.about,
                needed=err.needed, budget=err.budget, names=_names(err), path=path or self.path,
                words=self.words)


def _names(err: Any) -> tuple[str, ...]:
    data = ffi.buffer(err.names)[:]
    kept = data[:data.index(b"\0\0")].split(b"\0") if err.n_names else []
    return tuple(name.decode("utf-8", "backslashreplace") for name in kept[:err.n_names] if name)
