"""cutset: cut a machine-learning graph into the fewest accelerator engines that fit in memory.

    plan = cutset.plan("model.onnx", target="tensorrt", host_memory="8GiB")
    cutset.split("model.onnx", "parts", plan=plan)
    assert cutset.verify("parts")

ONNX models here; `cutset.torch` takes torch.fx graphs and exported programs, `cutset.torchscript`
script modules. Importing cutset imports neither torch nor onnx. The library runs without the GIL,
and Ctrl-C stops it.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _model, _options
from ._errors import (BudgetError, Error, GroupError, IoError, ModelError, NotFullySupportedError,
                      OversizeWarning, PartitionError, UsageError)
from ._lib import Call, encode, ffi, lib, text
from ._memory import available_memory
from ._model import Model, PathLike, Size, Target
from ._plan import Plan, open_plan, take_plan, warn_oversized
from ._verify import Verification, verify

if TYPE_CHECKING:
    from . import torch, torchscript

__version__ = text(lib.cutset_version_string())
__all__ = [
    "BudgetError", "Error", "GroupError", "IoError", "ModelError", "NotFullySupportedError",
    "OversizeWarning", "PartitionError", "Plan", "UsageError", "Verification", "available_memory",
    "merge", "plan", "split", "torch", "torchscript", "verify",
]


def __getattr__(name: str) -> Any:
    if name in ("torch", "torchscript"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _plan(model: Model, call: Call, *, target: Target = "tensorrt",
          host_memory: Size | None = None, device_memory: Size | None = None, min_nodes: int = 1,
          pin: Mapping[str, str] | None = None, exclude: Iterable[str] = (),
          groups: Iterable[Iterable[str]] = (), oversize: str = "error",
          objective: str = "engines", max_engines: int | None = None, effort: int = 1,
          connected: bool = False, shapes: Mapping[str, Sequence[int | str] | str] | None = None,
          dims: Mapping[str, int] | None = None, types: Mapping[str, str] | None = None,
          follow_links: bool = False) -> tuple[Any, Any]:
    """The library's plan and model."""
    opts, keep = _model.plan_options(
        call, host_memory=host_memory, device_memory=device_memory, min_nodes=min_nodes, pin=pin,
        exclude=exclude, groups=groups, oversize=oversize, objective=objective,
        max_engines=max_engines, effort=effort, connected=connected)
    targets = _model.open_targets(target, call)
    opened = _model.open_model(
        model, call, shapes=_model.spell_shapes(shapes), dims=_model.spell_dims(dims),
        types=_model.spell_types(types), follow_links=follow_links)
    made = _model.make_plan(opened, targets, opts, call)
    del keep
    return made, opened


def plan(model: Model, *, target: Target = "tensorrt", host_memory: Size | None = None,
         device_memory: Size | None = None, min_nodes: int = 1,
         pin: Mapping[str, str] | None = None, exclude: Iterable[str] = (),
         groups: Iterable[Iterable[str]] = (), oversize: str = "error",
         objective: str = "engines", max_engines: int | None = None, effort: int = 1,
         connected: bool = False, shapes: Mapping[str, Sequence[int | str] | str] | None = None,
         dims: Mapping[str, int] | None = None, types: Mapping[str, str] | None = None,
         follow_links: bool = False) -> Plan:
    """Decides which nodes run on an accelerator, and groups them into as few engines as can be.

    `model`: a path, bytes, or an onnx.ModelProto; also the text form. `target`: a shipped name, the
    path of a YAML file, or several: first named, first served. `host_memory`, `device_memory`: the
    budget of each engine while it is built, and while it runs: bytes, "512MiB", or for the host
    "auto", what the system allows now (the plan records the bytes). `min_nodes`: smaller engines go
    to the host. `pin`: {node, value or glob: target}. `exclude`: operators or names that stay on
    the host. `groups`: names of nodes that share a part. `oversize`: what becomes of nodes that are
    over a budget alone: "error", "host", "keep". `max_engines`: what costs least goes to the host.
    `effort`: 0 to 3. `connected`: an engine is one connected piece. `shapes`, `dims`, `types`: what
    the model leaves open. `follow_links`: weight files may be symbolic links.

    Raises BudgetError, GroupError, UsageError, ModelError, IoError.
    """
    call = Call()
    made, opened = _plan(
        model, call, target=target, host_memory=host_memory, device_memory=device_memory,
        min_nodes=min_nodes, pin=pin, exclude=exclude, groups=groups, oversize=oversize,
        objective=objective, max_engines=max_engines, effort=effort, connected=connected,
        shapes=shapes, dims=dims, types=types, follow_links=follow_links)
    found = take_plan(made, call)
    if oversize == "keep":
        warn_oversized(found, 3)
    return found


def _reopen(model: Model, chosen: Plan, follow_links: bool, call: Call) -> tuple[Any, Any]:
    """The library's plan from `chosen`, and the model, with what was declared then."""
    made = open_plan(chosen.to_json())
    if not _model.is_file(model):
        o = chosen.options
        return made, _model.open_model(model, call, shapes=o["shape"], dims=o["dim"],
                                       types=o["type"], follow_links=follow_links)
    path = _options.path(model, "model")
    out = ffi.new("cutset_model **")
    progress = ffi.new("cutset_progress *", call.progress)
    call.check(lib.cutset_plan_open_model(out, made, encode(path, "model"), bool(follow_links),
                                          progress, call.err), path=path)
    return made, ffi.gc(out[0], lib.cutset_model_free)


def split(model: Model, out_dir: PathLike, *, plan: Plan | None = None, weights: str = "auto",
          follow_links: bool = False, **options: Any) -> Plan:
    """Plans, or takes `plan`, and writes each part as a model into the folder `out_dir`.

    `options` are those of `cutset.plan`. `weights`: "refer" (parts name the model's own data),
    "copy" (beside the parts), "inline" (inside them), or "auto": the first that can be. The folder
    appears whole or not at all. Parts of a model that was given as bytes have their weights inline
    or copied; `verify` and `merge` want a model that was given as a path.
    """
    mode = _model.WEIGHTS.index(_options.choice(weights, "weights", _model.WEIGHTS))
    place = _options.path(out_dir, "out_dir")
    call = Call()
    if plan is None:
        made, opened = _plan(model, call, follow_links=follow_links, **options)
    elif not isinstance(plan, Plan):
        raise UsageError(f"plan is {type(plan).__name__}: give a cutset.Plan")
    elif options:
        raise UsageError(f"plan has its options in it: drop {', '.join(options)}")
    else:
        made, opened = _reopen(model, plan, follow_links, call)
    opts = ffi.new("cutset_split_opts *")
    lib.cutset_split_opts_init(opts)
    opts.weights = mode
    opts.progress = call.progress
    call.check(lib.cutset_split_write(opened, made, encode(place, "out_dir"), opts, call.err),
               path=place)
    found = take_plan(made, call)
    if options.get("oversize") == "keep":
        warn_oversized(found, 3)
    return found


def merge(dir: PathLike, out_model: PathLike) -> None:
    """Writes one model that equals the source of the split in `dir`: same nodes, same weights."""
    place, path = _options.path(dir, "dir"), _options.path(out_model, "out_model")
    call = Call(path=place)
    progress = ffi.new("cutset_progress *", call.progress)
    call.check(lib.cutset_merge(encode(place, "dir"), encode(path, "out_model"), progress,
                                call.write, call.payload, call.err))
