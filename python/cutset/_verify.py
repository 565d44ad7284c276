"""Verify: the whole model against the chain of its parts."""
from __future__ import annotations

import glob
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _options
from ._errors import Error, UsageError
from ._lib import Call, encode, ffi, lib, strings, text
from ._model import PathLike, spell_shapes
from ._plan import Record


@dataclass(frozen=True)
class Verification:
    """What verify found. True where no output differs."""

    equal: bool
    """No output differs: bit for bit, or within the tolerance that `outputs` names."""
    first_difference: Record | None
    """`part` (id), `file`, `value` and figures; `part` is None where it could not be found."""
    parts: int
    """How many parts there are."""
    outputs: tuple[Record, ...] = ()
    """`name`, `type`, `result` and figures for each output."""
    report: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False, hash=False)
    """All that `cutset verify --json` prints."""
    message: str = ""
    """One line that tells the difference; empty where there is none."""

    def __bool__(self) -> bool:
        return self.equal


def _version(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", os.path.basename(path))]


def _installed_runtime() -> str | None:
    """The library inside an installed onnxruntime; nothing is imported."""
    try:
        spec = importlib.util.find_spec("onnxruntime")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations if spec else None) or ():
        found = glob.glob(os.path.join(glob.escape(folder), "capi", "libonnxruntime.so*"))
        if found:
            return max(found, key=_version)
    return None


def _save_inputs(inputs: Any, folder: str) -> list[str]:
    """`NAME=file.npy` for each: arrays are saved in `folder`, paths stay as they are."""
    if not isinstance(inputs, Mapping):
        raise UsageError(f"inputs is {type(inputs).__name__}: give a dict by name")
    found = []
    for i, (name, value) in enumerate(inputs.items()):
        if not isinstance(name, str) or not name:
            raise UsageError(f"inputs holds {name!r}: names are strings")
        if isinstance(value, (str, os.PathLike)):
            path = _options.path(value, f"inputs[{name!r}]")
        else:
            import numpy

            try:
                array = numpy.asarray(value)
            except Exception:  # ragged lists; tensors on a device, or that want a gradient
                array = numpy.asarray(None)
            if array.dtype.hasobject:
                raise UsageError(f"inputs[{name!r}] is {type(value).__name__} that is no array of "
                                 "numbers here: give a NumPy array, or the path of a .npy file")
            path = os.path.join(folder, f"{i}.npy")
            numpy.save(path, numpy.asarray(array, order="C"), allow_pickle=False)
        found.append(f"{name}={path}")
    return found


def _difference(report: Mapping[str, Any]) -> Record | None:
    """Where it differs first; without the part, what the first output shows."""
    if report.get("first_difference"):
        return Record(report["first_difference"])
    for output in report.get("outputs", ()):
        if output["result"] == "different":
            figures = {key: value for key, value in output.items()
                       if key not in ("name", "type", "result", "tolerance")}
            return Record({"part": None, "file": None, "value": output["name"],
                           "why": report.get("not_located", ""), **figures})
    return None


def _count_parts(dir: str) -> int:
    """Where the report was not reached; the plan was read before."""
    try:
        with open(os.path.join(dir, "plan.json"), encoding="utf-8") as file:
            return len(json.load(file)["parts"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def verify(dir: PathLike, *, seed: int = 0, runs: int = 1,
           inputs: Mapping[str, Any] | None = None,
           shapes: Mapping[str, Sequence[int | str] | str] | None = None,
           onnxruntime: PathLike | None = None) -> Verification:
    """Runs the whole model and the chain of parts in the split directory `dir` on the same inputs.

    `inputs`: arrays, or paths of .npy files, by name; what is not given is random, from `seed` on.
    `shapes`: by name, for dims the model leaves open. `onnxruntime`: the library to load; without
    it `$CUTSET_ONNXRUNTIME`, then the installed package's. A difference is a result, no exception.
    """
    place = _options.path(dir, "dir")
    call = Call(path=place)
    opts = ffi.new("cutset_verify_opts *")
    lib.cutset_verify_opts_init(opts)
    opts.seed = _options.count(seed, "seed", 0, 2**64 - 1)
    opts.runs = _options.count(runs, "runs", 1, 2**31 - 1)
    opts.json = 1
    opts.progress = call.progress
    if onnxruntime is not None:
        library: str | None = _options.path(onnxruntime, "onnxruntime")
    else:
        library = None if os.environ.get("CUTSET_ONNXRUNTIME") else _installed_runtime()
    name = ffi.new("char[]", encode(library, "onnxruntime")) if library else ffi.NULL
    opts.onnxruntime = name
    with tempfile.TemporaryDirectory(prefix="cutset-") as folder:
        given, n_given, alive = strings(_save_inputs(inputs or {}, folder))
        opts.inputs, opts.n_inputs = given, n_given
        sizes, n_sizes, alive_too = strings(spell_shapes(shapes))
        opts.shapes, opts.n_shapes = sizes, n_sizes
        status = lib.cutset_verify(encode(place, "dir"), opts, call.write, call.payload, call.err)
    written = call.taken()
    if status != lib.CUTSET_NO:
        try:
            call.check(status)
        except Error as error:  # the folder is gone, the caller knows the inputs by name
            error.message = re.sub(rf"=?{re.escape(folder)}\S*?\.npy", "", error.message)
            error.args = (error.message,)
            error.path = None if (error.path or "").startswith(folder) else error.path
            raise
    message = text(call.err.message) if status else ""
    report = json.loads(written) if written else {}
    first = _difference(report)
    if status and first is None:
        first = Record({"part": None, "file": None, "value": None, "why": message})
    outputs = tuple(map(Record, report.get("outputs", ())))
    return Verification(equal=not status, first_difference=first,
                        parts=report["parts"] if report else _count_parts(place),
                        outputs=outputs, report=report, message=message)
