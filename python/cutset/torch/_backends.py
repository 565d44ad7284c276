"""What builds an engine of a part. A builder is `(name, part, example_inputs) -> callable`.

    onnxruntime   the part as ONNX, run on the CPU. torch.onnx writes it: with onnxscript where that
                  is installed, else with torch's older exporter, for fixed shapes only
    openvino      its PyTorch front end reads the part's program; runs on the CPU
    tensorrt      torch_tensorrt.dynamo.compile, an installed Torch-TensorRT
    inductor      torch._inductor.compile; needs a C++ compiler
    eager         the part itself

An engine takes and gives tensors and numbers by value. A builder that raises refuses the part; what
becomes of it is _compile.py's to say. `takes` is what a backend is first asked to run.
"""
from __future__ import annotations

import contextlib
import copy
import ctypes
import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from .._errors import UsageError
from . import _program
from ._support import AllBut

Builder = Callable[[str, GraphModule, list[Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Backend:
    """`takes`: `supported` of partition where the caller gives none."""

    name: str
    build: Builder
    takes: Any = None
    caches: bool = False
    moves: bool = True  # what it refuses goes to the host; a caller's builder means its errors


def find(backend: Any, cache_dir: Any = None) -> Backend:
    """The backend that a name or a callable stands for, ready to build. ImportError: not there."""
    if callable(backend):
        found = Backend(getattr(backend, "__name__", type(backend).__name__), backend,
                        moves=False)
        _require_signature(found)
    elif isinstance(backend, str) and backend in _OPENERS:
        found = _OPENERS[backend](cache_dir)
    else:
        names = ", ".join(map(repr, _OPENERS))
        raise UsageError(f"backend is {backend!r}: give one of {names} or a callable "
                         "(name, GraphModule, example_inputs) -> callable")
    if cache_dir is not None and not found.caches:
        raise UsageError(f"cache_dir is not there yet for backend {found.name!r}: leave it out, or "
                         "use 'onnxruntime'")
    return found


def _require_signature(backend: Backend) -> None:
    """UsageError: it cannot be called as builders are."""
    try:
        signature = inspect.signature(backend.build)
    except (TypeError, ValueError):  # not to be known
        return
    try:
        signature.bind("", None, [])
    except TypeError as error:
        raise UsageError(f"backend {backend.name!r} takes {signature}: give a callable (name, "
                         f"GraphModule, example_inputs) -> callable ({error})") from None


def _need(package: str, backend: str, install: str | None = None) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"backend={backend!r} needs the package {package}, which cannot be "
                          f"imported ({error}): pip install {install or package}",
                          name=package) from error


_COMPLEX = (torch.complex32, torch.complex64, torch.complex128)


# ---- onnxruntime ----

def _open_onnxruntime(cache_dir: Any) -> Backend:
    ort = _need("onnxruntime", "onnxruntime")
    folder = None if cache_dir is None else Path(os.fspath(cache_dir))

    def build(name: str, part: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = torch.get_num_threads()
        with _onnx_file(part, inputs, folder) as path:
            session = ort.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        return _Session(ort, session)

    return Backend("onnxruntime", build, AllBut(_COMPLEX), caches=True)


class _Session:
    """A session of ONNX Runtime that takes and gives tensors."""

    # Element types of ONNX that numpy has not, and the integers that stand for them on the way.
    RAW = {torch.bfloat16: (16, torch.int16, "u2"), torch.float8_e4m3fn: (17, torch.int8, "u1"),
           torch.float8_e5m2: (19, torch.int8, "u1")}
    FROM_ONNX = {number: dtype for dtype, (number, _, _) in RAW.items()}

    def __init__(self, ort: Any, session: Any) -> None:
        self.ort, self.session = ort, session
        self.inputs = {i.name: n for n, i in ((int(i.name.rpartition("_")[2]), i)
                                              for i in session.get_inputs())}
        self.outputs = [o.name for o in session.get_outputs()]

    def __call__(self, *args: Any) -> tuple[torch.Tensor, ...]:
        feeds = {name: self.to_ort(args[at]) for name, at in self.inputs.items()}
        return tuple(map(self.from_ort, self.session.run_with_ort_values(self.outputs, feeds)))

    def to_ort(self, value: Any) -> Any:
        value = torch.as_tensor(value).detach().cpu().contiguous()
        make = self.ort.OrtValue
        if value.dtype not in self.RAW:
            return make.ortvalue_from_numpy(value.numpy())
        number, integer, raw = self.RAW[value.dtype]
        bits = value.view(integer).numpy().view(raw)
        return make.ortvalue_from_numpy_with_onnx_type(bits, number)

    def from_ort(self, value: Any) -> torch.Tensor:
        dtype = self.FROM_ONNX.get(value.element_type())
        if dtype is None:
            return torch.from_numpy(value.numpy())
        result = torch.empty(value.shape(), dtype=dtype)
        ctypes.memmove(result.data_ptr(), value.data_ptr(), result.numel() * result.element_size())
        return result


@contextlib.contextmanager
def _onnx_file(part: GraphModule, inputs: list[Any], folder: Path | None) -> Iterator[Path]:
    """The part as an ONNX file: of an earlier run where `folder` holds one for the same content."""
    key = None if folder is None else _content(part)
    if key is None:
        with tempfile.TemporaryDirectory(prefix="cutset-") as path:
            yield _write_onnx(part, inputs, Path(path) / "part.onnx")
        return
    # A model and its data lie in a folder of their own, so that a rename brings both or neither.
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / key
    if not (done / "part.onnx").exists():
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as path:
            made = Path(path) / key
            made.mkdir()
            _write_onnx(part, inputs, made / "part.onnx")
            with contextlib.suppress(OSError):  # another process was first: the same content
                made.rename(done)
    yield done / "part.onnx"


def _write_onnx(part: GraphModule, inputs: list[Any], path: Path) -> Path:
    names = {"input_names": [f"in_{i}" for i in range(len(inputs))],
             "output_names": [f"out_{i}" for i in range(len(_program.outputs_of(part)[1]))]}
    if importlib.util.find_spec("onnxscript") is None:
        if _program.is_dynamic(part):
            raise ImportError("backend='onnxruntime' needs the package onnxscript for dynamic "
                              "shapes: pip install onnxscript", name="onnxscript")
        _write_traced(part, inputs, path, names)
        return path
    made = torch.onnx.export(_program.program(part, inputs), dynamo=True, verbose=False,
                             optimize=False, **names)
    size = sum(t.nbytes for t in made.exported_program.state_dict.values())
    made.save(path, external_data=size > 2**30)
    return path


def _write_traced(part: GraphModule, inputs: list[Any], path: Path, names: dict[str, Any]) -> None:
    """With torch's older exporter, which needs no other package."""
    part = _program.flat(part, inputs)
    graph = Graph()
    graph.output(graph.graph_copy(part.graph, {}))
    for node in graph.find_nodes(op="call_function", target=_NORM):
        _use_older_norm(graph, node)
    with warnings.catch_warnings(), _quiet("torch.onnx"):
        warnings.simplefilter("ignore")
        torch.onnx.export(GraphModule(part, graph), tuple(inputs), str(path), dynamo=False,
                          verbose=False, **names)


_NORM = torch.ops.aten._native_batch_norm_legit_no_training.default


def _use_older_norm(graph: Graph, node: Node) -> None:
    """The operator that it knows, in the place of what torch.export makes of it."""
    if any(u.args[1] != 0 for u in node.users):
        return
    value, weight, bias, mean, variance, momentum, epsilon = node.args
    with graph.inserting_before(node):
        made = graph.call_function(torch.ops.aten.batch_norm.default, (
            value, weight, bias, mean, variance, False, momentum, epsilon, False))
    for user in list(node.users):
        user.replace_all_uses_with(made)
        graph.erase_node(user)
    graph.erase_node(node)


@contextlib.contextmanager
def _quiet(name: str | None) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _content(part: GraphModule) -> str | None:
    """A key for what the part computes: operators, types, sizes and the bytes of its weights.

    None for a part with modules inside, whose code is not known.
    """
    if not _program.knows_inputs(part) or part.graph.find_nodes(op="call_module"):
        return None
    script = importlib.util.find_spec("onnxscript") is not None
    key = hashlib.sha256(f"cutset 1, torch {torch.__version__}, onnxscript {script}\n".encode())
    for node in part.graph.nodes:
        key.update(f"{node.op} {node.name} {node.target} {node.args} {node.kwargs}\n".encode())
        if node.op == "placeholder":
            key.update(f"{_described(node.meta['val'])}\n".encode())
        elif node.op == "get_attr":
            weight = _program.resolve(part, node.target)
            if not isinstance(weight, torch.Tensor):
                return None
            key.update(f"{_described(weight)}\n".encode())
            raw = weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            key.update(memoryview(raw.numpy()))
    return key.hexdigest()[:40]


def _described(value: Any) -> str:
    return f"{value.dtype} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else f"{value}"


# ---- openvino ----

def _open_openvino(_: Any) -> Backend:
    openvino = _need("openvino", "openvino")
    frontend = _need("openvino.frontend", "openvino")
    decoder = _need("openvino.frontend.pytorch.fx_decoder", "openvino").TorchFXPythonDecoder

    def build(name: str, part: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        # As openvino.convert_model does, which also reports each use over the network.
        reader = frontend.FrontEndManager().load_by_framework("pytorch")
        program = _program.program(part, inputs)
        for name, weight in program.state_dict.items():  # the model would share their memory
            copied = weight.detach().clone()
            is_parameter = isinstance(weight, torch.nn.Parameter)
            program.state_dict[name] = torch.nn.Parameter(copied, False) if is_parameter else copied
        with warnings.catch_warnings(), _quiet(None):
            warnings.simplefilter("ignore")
            decoded = decoder.from_exported_program(program)  # has to outlive the conversion
            try:
                model = reader.convert(reader.load(decoded))
            except frontend.OpConversionFailure as error:
                raise RuntimeError(_summary(str(error))) from None
        # Some processors would compute in bf16, far from what eager gives.
        compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

        def run(*args: Any) -> tuple[torch.Tensor, ...]:
            arrays = [torch.as_tensor(a).detach().cpu().contiguous().numpy() for a in args]
            results = compiled(arrays, share_inputs=True, share_outputs=False)
            return tuple(torch.from_numpy(results[o]) for o in compiled.outputs)
        return run

    return Backend("openvino", build, AllBut(
        (*_COMPLEX, torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)))


def _summary(text: str) -> str:
    """The line that counts of a failed conversion's report: the operators that have no rule; what
    else failed did so after them."""
    lines = [line.removeprefix("-- ") for line in text.rpartition("Summary:")[2].splitlines()
             if line.strip()]
    return next((line for line in lines if "No conversion rule" in line), " ".join(lines))


# ---- tensorrt ----

def _open_tensorrt(_: Any) -> Backend:
    tensorrt = _need("torch_tensorrt", "tensorrt", "torch-tensorrt")
    dynamo = getattr(tensorrt, "dynamo", None) or _need("torch_tensorrt.dynamo", "tensorrt",
                                                        "torch-tensorrt")
    try:
        importlib.import_module("torch_tensorrt.dynamo.conversion")
        takes = "tensorrt"  # its table of converters
    except ImportError:
        takes = None

    def build(name: str, part: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        # The part is an engine already: it is not to be cut again.
        return dynamo.compile(_program.program(part, inputs), inputs, require_full_compilation=True,
                              min_block_size=1)

    return Backend("tensorrt", build, takes)


# ---- inductor, eager ----

def _open_inductor(_: Any) -> Backend:
    from torch._inductor import cpp_builder
    try:
        cpp_builder.get_cpp_compiler()
    except Exception as error:
        raise ImportError("backend='inductor' needs a C++ compiler and finds none: install g++, or "
                          "name one in the environment variable CXX") from error

    def build(name: str, part: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        part = _program.flat(part, inputs)
        part = GraphModule(part, copy.deepcopy(part.graph))  # it changes the graph
        return torch._inductor.compile(part, [n.meta["val"] for n in _program.inputs_of(part)])

    return Backend("inductor", build, AllBut())


def _open_eager(_: Any) -> Backend:
    return Backend("eager", lambda name, part, inputs: part, AllBut())


_OPENERS: dict[str, Callable[[Any], Backend]] = {
    "onnxruntime": _open_onnxruntime, "openvino": _open_openvino, "tensorrt": _open_tensorrt,
    "inductor": _open_inductor, "eager": _open_eager}
