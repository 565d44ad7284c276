"""compile: engines of every backend equal eager, and what becomes of a part that one refuses."""
import os
import re
import subprocess
import sys
import types
import warnings

import pytest

torch = pytest.importorskip("torch")

import cutset  # noqa: E402
from cutset.torch import _backends, _program  # noqa: E402

LONG = os.environ.get("CUTSET_LONG") == "1"
aten = torch.ops.aten
Dim = torch.export.Dim


# ---- models ----

class Net(torch.nn.Module):
    """Convolution, batch norm, in-place activation, a sort that a test may keep on the host, and
    two outputs."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.norm = torch.nn.BatchNorm2d(8)
        self.act = torch.nn.ReLU(inplace=True)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        y = self.act(self.norm(self.conv(x))).mean((2, 3))
        y = torch.sort(y, dim=1).values
        return self.head(y), y * 2


class Block(torch.nn.Module):
    """A transformer layer between views that depend on two sizes."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, x):
        batch, length = x.shape[:2]
        y = self.layer(x).view(batch * length, 16)
        y = torch.sort(y, dim=0).values.view(batch, length, 16)
        return y.relu().sum(1)


class Digamma(torch.nn.Module):
    """Two operators that ONNX and OpenVINO have not, between some that they have."""

    def __init__(self):
        super().__init__()
        self.first, self.last = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        y = self.first(x).sigmoid() + 1
        return self.last(torch.digamma(torch.digamma(y) + 3))


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def built(backend, model, args, **options):
    """A compiled model; the backend's package, or the whole test is skipped."""
    packages = {"onnxruntime": "onnxruntime", "openvino": "openvino"}
    if backend in packages:
        pytest.importorskip(packages[backend])
    if isinstance(model, torch.nn.Module) and not isinstance(model, torch.fx.GraphModule):
        model.eval()
    return cutset.torch.compile(model, args, backend=backend, **options)


def children(module, prefix="_run_on_"):
    return [n for n, _ in module.named_children() if n.startswith(prefix)]


def assert_equal(found, wanted, tolerance=1e-4):
    assert type(found) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted):
            assert_equal(a, b, tolerance)
        return
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    scale = max(1e-12, wanted.abs().max().item())
    assert (found - wanted).abs().max().item() <= tolerance * scale


BACKENDS = ["eager", "onnxruntime", "openvino"]


# ---- equal to eager ----

@pytest.mark.parametrize("backend", BACKENDS)
def test_net(backend):
    model, x = Net(), torch.randn(2, 3, 12, 12)
    given = x.clone()
    compiled = built(backend, model, (x,), torch_executed_ops=[aten.sort])
    assert children(compiled) == ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    assert isinstance(compiled.meta["cutset"], cutset.Plan)
    assert compiled.meta["cutset"].engines == 2
    for _ in range(2):
        y = torch.randn_like(x)
        assert_equal(compiled(y), model(y))
    assert torch.equal(x, given)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_are_symbols_stay_symbols(backend):
    model, x = Block(), torch.randn(2, 5, 16)
    compiled = built(backend, model, (x,), torch_executed_ops=["torch.ops.aten.sort.default"],
                     dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    assert len(children(compiled, "_run_on_acc_")) == 2
    for batch, length in ((2, 5), (3, 7), (5, 2)):
        y = torch.randn(batch, length, 16)
        assert_equal(compiled(y), model(y))


@pytest.mark.parametrize("backend, name", [("eager", "mobilenet_v3_small"), ("eager", "resnet18"),
                                           ("onnxruntime", "resnet18"), ("openvino", "resnet18")])
def test_topology(backend, name):
    if backend != "eager" and not LONG:
        pytest.skip("in the long run")
    models = pytest.importorskip("torchvision").models
    model, x = getattr(models, name)(weights=None), torch.randn(1, 3, 64, 64)
    compiled = built(backend, model, (x,), torch_executed_ops=[aten.max_pool2d, aten.hardsigmoid])
    assert len(children(compiled, "_run_on_acc_")) >= 2
    with torch.no_grad():
        assert_equal(compiled(x), model(x))


def test_inductor():
    from torch._inductor import cpp_builder
    try:
        cpp_builder.get_cpp_compiler()
    except Exception:
        pytest.skip("no C++ compiler")
    model, x = Digamma(), torch.randn(3, 4)
    compiled = built("inductor", model, (x,), torch_executed_ops=[aten.sigmoid])
    assert children(compiled) == ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    assert_equal(compiled(x), model(x))


# ---- forms of the model ----

@pytest.mark.parametrize("backend", BACKENDS)
def test_exported_program_with_a_write_inside_an_engine(backend):
    model = torch.nn.Sequential(torch.nn.Softplus(), torch.nn.ReLU(inplace=True), torch.nn.ELU(),
                                torch.nn.Tanh(), torch.nn.Linear(6, 2))
    x = torch.randn(2, 6)
    program = torch.export.export(model.eval(), (x,))
    assert any(n.target is aten.relu_.default for n in program.graph.nodes)
    compiled = built(backend, program, (), torch_executed_ops=[aten.tanh])
    assert children(compiled) == ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    assert "relu_" in compiled.meta["cutset"].parts[0].nodes
    assert_equal(compiled(x), model(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_traced_graph_with_modules_and_no_meta(backend):
    inner = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    gm, x = torch.fx.symbolic_trace(inner.eval()), torch.randn(3, 6)
    compiled = built(backend, gm, (x,), torch_executed_ops=["1"])
    assert children(compiled) == ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    assert not children(gm)
    assert_equal(compiled(x), inner(x))


def test_keywords_and_structures():
    class Model(torch.nn.Module):
        def forward(self, pair, *, scale):
            return {"sum": (pair[0] + pair[1]) * scale, "pair": [pair[0] * 2]}

    args, kwargs = ((torch.randn(2, 3), torch.randn(3)),), {"scale": torch.randn(3)}
    compiled = built("onnxruntime", Model(), args, kwargs=kwargs)
    found, wanted = compiled(*args, **kwargs), Model()(*args, **kwargs)
    assert list(found) == ["sum", "pair"]
    assert_equal(found["sum"], wanted["sum"])
    assert_equal(found["pair"], wanted["pair"])


def test_types_that_numpy_lacks_and_empty_tensors():
    class Model(torch.nn.Module):
        def forward(self, x, i, m):
            return x.reshape(4, 3), torch.where(m, i, -i), x[:0]

    args = (torch.randn(3, 4).bfloat16(), torch.arange(12).view(3, 4), torch.rand(3, 4) > 0.5)
    compiled = built("onnxruntime", Model(), args)
    for a, b in zip(compiled(*args), Model()(*args)):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_memory_layout_is_that_of_the_part():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)

        def forward(self, x):
            y = torch.sin(self.conv(x))
            return y.permute(0, 2, 3, 1).view(-1, 8)  # fails on another order of strides

    model, x = Model(), torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last)
    compiled = built("onnxruntime", model, (x,), torch_executed_ops=[aten.permute])
    assert "_run_on_acc_0" in children(compiled) and "_run_on_gpu_1" in children(compiled)
    assert_equal(compiled(x), model(x))


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_weights_are_copied(backend):
    model, x = Digamma(), torch.randn(3, 4)
    compiled = built(backend, model, (x,), torch_executed_ops=[aten.digamma])
    wanted = model(x).detach()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert_equal(compiled(x), wanted)


def test_without_onnxscript(monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    model, x = Net(), torch.randn(2, 3, 12, 12)
    compiled = built("onnxruntime", model, (x,), torch_executed_ops=[aten.sort])
    assert children(compiled) == ["_run_on_acc_0", "_run_on_gpu_1", "_run_on_acc_2"]
    assert_equal(compiled(x), model(x))
    with pytest.raises(ImportError, match="onnxscript"):
        built("onnxruntime", Block(), (torch.randn(2, 5, 16),),
              dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))


# ---- refusals ----

@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_what_a_backend_refuses_goes_to_the_host(backend):
    model, x = Digamma(), torch.randn(3, 4)
    refuses = r"refuses torch\.ops\.aten\.digamma\.default \(digamma\): .*digamma"
    with pytest.warns(UserWarning, match=refuses) as seen:
        compiled = built(backend, model, (x,))
    assert len([w for w in seen if "refuses" in str(w.message)]) == 1
    on_host = {n for p in compiled.meta["cutset"].parts if p.target == "host" for n in p.nodes}
    assert {"digamma", "digamma_1"} <= on_host and "linear" not in on_host
    why = {f.node: f.why for f in compiled.meta["cutset"].fallback}
    assert why["digamma"] == why["digamma_1"] and why["digamma"].startswith(f"{backend}: ")
    assert not compiled.meta["cutset"].options.pin
    assert_equal(compiled(x), model(x))


class Refused(torch.nn.Module):
    """An operator with getitems that OpenVINO lacks, and two that both backends lack."""

    def forward(self, x):
        return torch.special.i1e(torch.digamma(x.exp())), torch.mode(x.exp(), 1).values


def test_openvino_says_which_operators():
    with pytest.warns(UserWarning, match="refuses") as seen:
        compiled = built("openvino", Refused(), (torch.randn(3, 4),))
    said = " ".join(str(w.message) for w in seen)
    for op in ("digamma.default", "special_i1e.default", "mode.default"):
        assert re.search(rf"ops\.aten\.{op} \(\w+\): [^;]*aten\.{op};", said), (op, said)
    assert "getitem" not in said
    why = {f.node: f.why for f in compiled.meta["cutset"].fallback}
    assert why["digamma"].endswith("aten.digamma.default") and why["mode"].endswith("mode.default")


def test_each_refused_operator_has_its_own_reason(monkeypatch):
    def build(name, part, inputs):
        for node in part.graph.nodes:
            if node.target in (aten.exp.default, aten.digamma.default):
                raise RuntimeError(f"no\n{node.target} here, nor special_i1e.default nor "
                                   "aten.exp.default nor aten.digamma.default")
        return part

    monkeypatch.setitem(_backends._OPENERS, "mine", lambda _: _backends.Backend("mine", build))
    x = torch.randn(3, 4)
    for supported in (None, {"a": None, "b": [aten.exp, aten.mode]}):
        with pytest.warns(UserWarning) as seen:
            compiled = built("mine", Refused(), (x,), supported=supported, pin={"mode": "host"})
        said, = {str(w.message) for w in seen if "refuses" in str(w.message)}
        assert "aten.exp.default (exp): RuntimeError: no aten.exp.default here" in said
        assert "digamma.default (digamma): RuntimeError: no aten.digamma.default here" in said
        plan = compiled.meta["cutset"]
        why = {f.node: f.why for f in plan.fallback}
        assert why["digamma"].startswith("mine: RuntimeError: no aten.digamma.default here")
        assert why["exp"].startswith("mine: RuntimeError: no aten.exp.default here")
        assert plan.options.pin == ("mode=host",)
        for a, b in zip(compiled(x), Refused()(x)):
            assert torch.equal(a, b)


def test_a_refused_constant_expression_ends(monkeypatch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4))

        def forward(self, x):
            return (x + self.weight.sinh()).relu()

    def build(name, part, inputs):
        if any(n.target is aten.sinh.default for n in part.graph.nodes):
            raise RuntimeError("no aten.sinh.default")
        return part

    monkeypatch.setitem(_backends._OPENERS, "mine", lambda _: _backends.Backend("mine", build))
    x = torch.randn(3, 4)
    model = Model()
    with pytest.warns(UserWarning, match="no aten.sinh.default"):
        compiled = built("mine", model, (x,))
    assert_equal(compiled(x), model(x))
    on_host = {n for p in compiled.meta["cutset"].parts if p.target == "host" for n in p.nodes}
    assert "sinh" in on_host


def test_a_refused_node_that_is_pinned_to_the_accelerator(monkeypatch):
    def build(name, part, inputs):
        if any(n.target is aten.digamma.default for n in part.graph.nodes):
            raise RuntimeError("no digamma")
        return part

    monkeypatch.setitem(_backends._OPENERS, "mine", lambda _: _backends.Backend("mine", build))
    pin = {"digamma": "acc", "digamma_1": "acc", "add_1": "acc", "linear_1": "acc"}
    with pytest.warns(UserWarning, match="no digamma"), \
            pytest.raises(cutset.Error, match="digamma.*no digamma: pin neither"):
        built("mine", Digamma(), (torch.randn(3, 4),), pin=pin)


def test_a_refused_part_that_must_not_be_moved(monkeypatch):
    def build(name, part, inputs):
        if any(n.target is aten.digamma.default for n in part.graph.nodes):
            raise RuntimeError("no digamma")
        return part

    monkeypatch.setitem(_backends._OPENERS, "mine", lambda _: _backends.Backend("mine", build))
    with pytest.warns(UserWarning, match="no digamma"), \
            pytest.raises(cutset.NotFullySupportedError) as caught:
        built("mine", Digamma(), (torch.randn(3, 4),), require_full_compilation=True)
    assert set(caught.value.nodes) == {"digamma", "digamma_1"}
    assert "digamma (mine: RuntimeError: no digamma)" in str(caught.value)


def test_a_part_refused_for_no_operator(monkeypatch):
    def build(name, part, inputs):
        if sum(n.op == "call_function" for n in part.graph.nodes) > 2:
            raise RuntimeError("too\nlong")
        return part

    monkeypatch.setitem(_backends._OPENERS, "short", lambda _: _backends.Backend("short", build))
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
    with pytest.raises(cutset.Error, match="_run_on_acc_0.*too long") as caught:
        built("short", model, (torch.randn(1, 4),))
    assert caught.value.node == "_run_on_acc_0" and "\n" not in str(caught.value)


def test_random_operators_stay_on_the_host():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.bernoulli(x.sigmoid()) + torch.rand_like(x) * x.exp()

    x = torch.randn(3, 4)
    compiled = built("eager", Model(), (x,))
    torch.manual_seed(3)
    found = compiled(x)
    torch.manual_seed(3)
    assert torch.equal(found, Model()(x))
    on_host = {n for p in compiled.meta["cutset"].parts if p.target == "host" for n in p.nodes}
    assert {"bernoulli", "rand_like"} <= on_host


# ---- a caller's own backend ----

def test_callable_backend():
    calls = []

    def backend(name, gm, example_inputs):
        calls.append(name)
        assert isinstance(gm, torch.fx.GraphModule)
        assert [tuple(t.shape) for t in example_inputs] == [
            tuple(n.meta["val"].shape) for n in gm.graph.find_nodes(op="placeholder")]
        assert type(example_inputs[0]) is torch.Tensor
        gm(*example_inputs)
        return lambda *inputs: [r * 1 for r in [gm(*inputs)] for r in (
            r if isinstance(r, tuple) else (r,))]  # a list, also of one

    model, x = Net(), torch.randn(2, 3, 12, 12)
    compiled = built(backend, model, (x,), torch_executed_ops=[aten.sort])
    assert calls == ["_run_on_acc_0", "_run_on_acc_2"]
    assert_equal(compiled(x), model(x))


def test_callable_backend_that_gives_modules_or_fails():
    class Mine(torch.nn.Module):
        def __init__(self, gm):
            super().__init__()
            self.gm = gm

        def forward(self, *args):
            return self.gm(*args)

    model, x = Digamma(), torch.randn(3, 4)
    compiled = built(lambda name, gm, inputs: Mine(gm), model, (x,))
    assert isinstance(compiled._run_on_acc_0, Mine)
    assert_equal(compiled(x), model(x))

    def raises(name, gm, inputs):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        built(raises, model, (x,))
    with pytest.raises(cutset.UsageError, match="_run_on_acc_0.*callable"):
        built(lambda name, gm, inputs: None, model, (x,))
    for wrong in (lambda gm, inputs: gm, lambda *, name: None):
        with pytest.raises(cutset.UsageError, match=r"\(name, GraphModule, example_inputs\)"):
            built(wrong, model, (x,))
    assert_equal(built(lambda *given: given[1], model, (x,))(x), model(x))


# ---- Torch-TensorRT, as its documented interface says ----

def test_tensorrt_stand_in(monkeypatch):
    calls = []

    def compile(exported_program, inputs=None, *, arg_inputs=None, require_full_compilation=False,
                min_block_size=5, **settings):
        assert isinstance(exported_program, torch.export.ExportedProgram)
        assert (inputs is None) != (arg_inputs is None) and require_full_compilation
        if any(n.target is aten.digamma.default for n in exported_program.graph.nodes):
            raise AssertionError("1 operators are unsupported: aten.digamma.default")
        calls.append([tuple(t.shape) for t in inputs or arg_inputs])
        return exported_program.module()

    package, dynamo = types.ModuleType("torch_tensorrt"), types.ModuleType("torch_tensorrt.dynamo")
    package.dynamo, dynamo.compile = dynamo, compile
    monkeypatch.setitem(sys.modules, "torch_tensorrt", package)
    monkeypatch.setitem(sys.modules, "torch_tensorrt.dynamo", dynamo)
    model, x = Digamma(), torch.randn(3, 4)
    with pytest.warns(UserWarning, match="refuses torch.ops.aten.digamma.default"):
        compiled = built("tensorrt", model, (x,))
    assert calls[-3:] == [[(3, 4)], [(3, 8)], [(3, 8)]]
    assert_equal(compiled(x), model(x))


# ---- options, budgets, caches ----

def test_memory_budget_bounds_the_plan():
    model, x = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4))), torch.randn(2, 64)
    one = 4 * (64 * 64 + 64) * 4
    with pytest.warns(UserWarning, match="not capped yet"):
        compiled = built("eager", model, (x,), memory_budget=2 * one)
    assert compiled.meta["cutset"].engines == 2
    assert_equal(compiled(x), model(x))
    with pytest.warns(UserWarning, match="memory_budget does nothing yet"):
        compiled = built("eager", model, (x,), memory_budget=one, cpu_memory_budget=4 * one)
    assert compiled.meta["cutset"].engines == 1
    with pytest.warns(UserWarning, match="bounds the forecast"):
        compiled = built("eager", model, (x,), memory_budget=one, cpu_memory_budget=None)
    assert compiled.meta["cutset"].engines == 4
    for wrong in ("x", 0, -2, 1.5):
        with pytest.raises(cutset.UsageError, match="^memory_budget is"):
            built("eager", model, (x,), memory_budget=wrong)


def test_dryrun_gives_the_model_back(capsys, tmp_path):
    model, x = Digamma(), torch.randn(3, 4)
    for dryrun in (True, str(tmp_path / "report.txt")):
        assert built("eager", model, (x,), dryrun=dryrun) is model
        assert "Total Operators" in capsys.readouterr().out
    program = torch.export.export(model, (x,))
    assert cutset.torch.compile(program, backend="eager", dryrun=True) is program
    assert not children(model)


def test_cache(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    model, x = Digamma(), torch.randn(3, 4)
    options = {"torch_executed_ops": [aten.digamma], "cache_dir": tmp_path}
    built("onnxruntime", model, (x,), **options)
    files = sorted(tmp_path.rglob("*.onnx"))
    assert len(files) == 3 and not list(tmp_path.glob(".new-*"))
    writes = []
    write = _backends._write_onnx
    monkeypatch.setattr(_backends, "_write_onnx", lambda *a: (writes.append(1), write(*a))[1])
    compiled = built("onnxruntime", model, (x,), **options)
    assert not writes and sorted(tmp_path.rglob("*.onnx")) == files
    assert_equal(compiled(x), model(x))
    with torch.no_grad():
        model.last.bias += 1
    compiled = built("onnxruntime", model, (x,), **options)
    assert len(writes) == 1 and len(list(tmp_path.rglob("*.onnx"))) == 4
    assert_equal(compiled(x), model(x))


def test_bad_use():
    model, x = Digamma(), torch.randn(3, 4)
    for backend in ("tensor_rt", None, 3):
        with pytest.raises(cutset.UsageError, match="backend"):
            built(backend, model, (x,))
    with pytest.raises(cutset.UsageError, match="cache_dir"):
        built("eager", model, (x,), cache_dir="x")
    with pytest.raises(cutset.UsageError, match="dynamic_shapes"):
        cutset.torch.compile(torch.export.export(model, (x,)), backend="eager", dynamic_shapes=())
    with pytest.raises(cutset.UsageError, match="Module"):
        cutset.torch.compile(3, backend="eager")

    class Jumps(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(cutset.ModelError, match="Jumps") as caught:
        built("eager", Jumps(), (x,))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backend, package", [
    ("onnxruntime", "onnxruntime"), ("openvino", "openvino"), ("tensorrt", "torch_tensorrt")])
def test_a_missing_package_is_named(backend, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=package):
        cutset.torch.compile(Digamma(), (torch.randn(3, 4),), backend=backend)


def test_inductor_without_a_compiler(monkeypatch):
    from torch._inductor import cpp_builder

    def none():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(ImportError, match=r"g\+\+"):
        cutset.torch.compile(Digamma(), (torch.randn(3, 4),), backend="inductor")


def test_importing_brings_no_backend():
    code = ("import sys, cutset.torch; cutset.torch.compile; "
            "sys.exit(bool({'onnxruntime', 'openvino', 'torch_tensorrt'} & set(sys.modules)))")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# ---- programs of parts ----

def test_program_keeps_the_symbols_of_its_part():
    model, x = Block().eval(), torch.randn(2, 5, 16)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},))
    parted = cutset.torch.partition(program, torch_executed_ops=[aten.sort])
    last = parted.get_submodule(children(parted, "_run_on_acc_")[-1])
    assert _program.is_dynamic(last)
    made = _program.program(last, _program.example_inputs(last))
    assert made.range_constraints
    y = [torch.randn(*t.shape) if isinstance(t, torch.Tensor) else t
         for t in _program.example_inputs(last)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = made.module()(*y)
    assert_equal(found[0], last(*y))
