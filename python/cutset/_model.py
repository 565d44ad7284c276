"""Models, targets and planning options on their way into the library."""
from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Union

from . import _options
from ._errors import ModelError, UsageError
from ._lib import Call, encode, ffi, lib, strings

PathLike = Union[str, "os.PathLike[str]"]


class ModelProto(Protocol):
    """onnx.ModelProto, or what serialises like it."""

    def SerializeToString(self) -> bytes: ...


Model = Union[PathLike, bytes, bytearray, memoryview, ModelProto]
Size = Union[int, str]
Target = Union[PathLike, Sequence[PathLike]]

WEIGHTS = ("auto", "refer", "copy", "inline")


# ---- models ----

def _bytes(model: Any) -> bytes | bytearray | memoryview | None:
    """The model's bytes, or None for a path."""
    if isinstance(model, (str, os.PathLike)):
        return None
    if isinstance(model, (bytes, bytearray)):
        return model
    if isinstance(model, memoryview):
        return model if model.c_contiguous else bytes(model)
    serialise = getattr(model, "SerializeToString", None)
    if serialise is None:
        raise UsageError(f"model is {type(model).__name__}: give a path, bytes or an "
                         "onnx.ModelProto")
    try:
        return serialise()
    except Exception as error:  # protobuf's own: 2 GiB and more, or an odd object
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(f"the model cannot be serialised: {reason}: save it, with its weights "
                         "beside it, and give the path") from error


def is_file(model: Any) -> bool:
    """Is it a path?"""
    return isinstance(model, (str, os.PathLike))


def open_model(model: Model, call: Call, *, shapes: Iterable[str] = (), dims: Iterable[str] = (),
               types: Iterable[str] = (), follow_links: bool = False) -> Any:
    """A cutset_model; it is freed when it is let go of. The lists are spelt as for the command."""
    opts = ffi.new("cutset_open_opts *")
    lib.cutset_open_opts_init(opts)
    keep = []
    for name, values in (("shapes", shapes), ("dims", dims), ("types", types)):
        at, n, alive = strings(values)
        setattr(opts, name, at)
        setattr(opts, f"n_{name}", n)
        keep.append((at, alive))
    opts.follow_links = bool(follow_links)
    opts.progress = call.progress
    out = ffi.new("cutset_model **")
    data = _bytes(model)
    if data is None:
        path = _options.path(model, "model")
        call.check(lib.cutset_model_open(out, encode(path, "model"), opts, call.err), path=path)
        return ffi.gc(out[0], lib.cutset_model_free)
    view = ffi.from_buffer(data)  # also keeps a bytearray from being resized
    call.check(lib.cutset_model_open_memory(out, view, len(view), ffi.NULL, opts, call.err))
    return ffi.gc(out[0], lambda at, view=view: lib.cutset_model_free(at))


# ---- what the caller declares ----

def _pairs(values: Any, what: str) -> list[tuple[str, Any]]:
    if values is None:
        return []
    if not isinstance(values, Mapping):
        raise UsageError(f"{what} is {values!r}: give a dict by name")
    for name in values:
        if not isinstance(name, str) or not name or "\0" in name:
            raise UsageError(f"{what} holds {name!r}: names are strings")
    return list(values.items())


def spell_shapes(shapes: Mapping[str, Sequence[int | str] | str] | None) -> list[str]:
    """`x:[1,3,224,224]` for each input; a shape may also be text (`1x3x224x224`)."""
    found = []
    for name, shape in _pairs(shapes, "shapes"):
        if not isinstance(shape, str):
            if not isinstance(shape, Iterable):
                raise UsageError(f"shapes[{name!r}] is {shape!r}: give the dims")
            dims = [d if isinstance(d, str) else _options.whole(d) for d in shape]
            if None in dims:
                raise UsageError(f"shapes[{name!r}] is {shape!r}: dims are whole numbers")
            shape = f"[{','.join(map(str, dims))}]"
        found.append(f"{name}:{shape}")
    return found


def spell_dims(dims: Mapping[str, int] | None) -> list[str]:
    """`N=8` for each symbol."""
    return [f"{name}={_options.count(size, f'dims[{name!r}]', 0)}"
            for name, size in _pairs(dims, "dims")]


def spell_types(types: Mapping[str, str] | None) -> list[str]:
    """`y=f32[?,?]` for each value."""
    found = []
    for name, kind in _pairs(types, "types"):
        if not isinstance(kind, str):
            raise UsageError(f"types[{name!r}] is {kind!r}: give a type such as 'f32[?,?]'")
        found.append(f"{name}={kind}")
    return found


# ---- targets ----

def open_targets(target: Target, call: Call) -> list[Any]:
    """The cutset_targets; first named, first served."""
    one = isinstance(target, (str, os.PathLike))
    if not one and not isinstance(target, Iterable):
        raise UsageError(f"target is {target!r}: give a name, a path of a YAML file, or several")
    opened = []
    for value in [target] if one else target:  # type: ignore[union-attr]
        name = _options.path(value, "target")
        if not isinstance(value, str) and "/" not in name:
            name = f"./{name}"  # a path, whatever it ends in
        is_path = "/" in name or name.endswith(".yaml")
        out = ffi.new("cutset_target **")
        call.check(lib.cutset_target_open(out, encode(name, "target"), call.err),
                   path=name if is_path else None)
        opened.append(ffi.gc(out[0], lib.cutset_target_free))
    if not opened:
        raise UsageError("target is empty: name one, such as 'tensorrt'")
    return opened


# ---- planning options ----

def _escape(name: str) -> str:
    """A name in a list that commas separate; the library takes `\\,` for a comma."""
    trailing = len(name) - len(name.rstrip("\\"))
    return name.replace(",", "\\,") + "\\" * (trailing % 2)


def _spell_groups(groups: Any) -> list[str]:
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise UsageError(f"groups is {groups!r}: give lists of node names")
    found = []
    for group in groups:
        if isinstance(group, str):
            raise UsageError(f"groups holds {group!r}: each group is a list of node names")
        members = _options.names(group, "groups")
        if members:
            found.append(",".join(map(_escape, members)))
    return found


def _spell_pins(pin: Any) -> list[str]:
    found = []
    for name, target in _pairs(pin, "pin"):
        if not isinstance(target, str) or not target or "=" in target or "\0" in target:
            raise UsageError(f"pin[{name!r}] is {target!r}: give the name of a target")
        found.append(f"{name}={target}")
    return found


def plan_options(call: Call, *, host_memory: Size | None, device_memory: Size | None,
                 min_nodes: int, pin: Mapping[str, str] | None, exclude: Iterable[str],
                 groups: Iterable[Iterable[str]], oversize: str, objective: str,
                 max_engines: int | None, effort: int, connected: bool) -> tuple[Any, Any]:
    """A cutset_plan_opts, and what must stay alive with it."""
    opts = ffi.new("cutset_plan_opts *")
    lib.cutset_plan_opts_init(opts)
    _options.objective(objective)
    opts.oversize = _options.OVERSIZE.index(
        _options.choice(oversize, "oversize", _options.OVERSIZE))
    opts.effort = _options.count(effort, "effort", 0, 3)
    least = _options.count(min_nodes, "min_nodes", 0)
    opts.min_nodes = least if least > 1 else 0
    opts.max_engines = 0 if max_engines is None else _options.count(max_engines, "max_engines")
    opts.connected = bool(connected)
    keep = []
    for name, values in (("pins", _spell_pins(pin)), ("groups", _spell_groups(groups)),
                         ("excludes", _options.names(exclude, "exclude"))):
        at, n, alive = strings(values)
        setattr(opts, name, at)
        setattr(opts, f"n_{name}", n)
        keep.append((at, alive))
    opts.host_memory = _options.memory(host_memory, "host_memory", auto=True) or 0
    opts.device_memory = _options.memory(device_memory, "device_memory", auto=False) or 0
    opts.progress = call.progress
    return opts, keep


def make_plan(model: Any, targets: list[Any], opts: Any, call: Call) -> Any:
    """A cutset_plan; it is freed when it is let go of."""
    out = ffi.new("cutset_plan **")
    array = ffi.new("const cutset_target *[]", targets)
    call.check(lib.cutset_plan_make(out, model, array, len(targets), opts, call.err))
    return ffi.gc(out[0], lib.cutset_plan_free)
