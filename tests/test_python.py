"""The Python package: plans, options, exceptions, sizes, memory, interrupts, threads."""
import copy
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

cutset = pytest.importorskip("cutset")

CUTSET = os.environ.get("CUTSET", "cutset")
GRAPH = """\
input %x : f32[2,2]
weight %w : f32[2,2]
weight %v : f32[2,2]
%y = MatMul(%x, %w) @acc,host
%z = Sigmoid(%y) @host
%q = MatMul(%z, %v) @acc,host
%r = Add(%y, %q) @acc,host
output %r
"""


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "g.cut"
    path.write_text(GRAPH)
    return path


def command(*args, code=0):
    done = subprocess.run([CUTSET, *map(str, args)], capture_output=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stdout


def python(program, *args, **more):
    """Runs a program in a new interpreter; its standard output."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), *map(str, args)],
                          capture_output=True, text=True, timeout=300, **more)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def onnx_model(nodes, inputs, outputs, weights=()):
    helper = pytest.importorskip("onnx").helper
    info = helper.make_tensor_value_info
    return helper.make_model(helper.make_graph(
        [helper.make_node(*node[:3], **(node[3] if node[3:] else {})) for node in nodes], "g",
        [info(name, 1, shape) for name, shape in inputs.items()],
        [info(name, 1, shape) for name, shape in outputs.items()], list(weights)),
        ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def large(nodes):
    """A text graph whose plan takes a while."""
    lines = ["input %x : f32[4]"]
    before = "x"
    for i in range(nodes):
        lines.append(f"%v{i} : f32[4] = Relu(%{before}) {'@acc,host' if i % 7 else '@host'}")
        before = f"v{i}" if i % 3 else f"v{i // 2}"
    return "\n".join([*lines, f"output %{before}", ""])


# ---- the package ----

def test_imports_neither_torch_nor_onnx():
    said = python("""
        import sys, cutset
        heavy = {"torch", "onnx", "onnxruntime", "numpy", "google"}
        print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
        print("cutset.torch" in sys.modules, "torch" in dir(cutset), "torchscript" in dir(cutset))
    """)
    assert said == "[]\nFalse True True\n"


def test_version():
    assert cutset.__version__ == command("--version").decode().split()[-1]
    header = Path(cutset.__file__).parent / "include" / "cutset.h"
    if header.exists():  # installed
        assert f'CUTSET_VERSION "{cutset.__version__}"' in header.read_text()


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="nothing"):
        cutset.nothing


# ---- plans ----

def test_plan_is_what_the_command_writes(graph):
    for options, args in [({}, []), ({"host_memory": "1KiB"}, ["--host-memory", "1KiB"]),
                          ({"min_nodes": 3, "effort": 2}, ["--min-nodes", 3, "--effort", 2]),
                          ({"exclude": ["Add"], "groups": [["y", "q"]], "oversize": "host"},
                           ["--exclude", "Add", "--group", "y,q", "--oversize", "host"]),
                          ({"pin": {"r": "host"}, "connected": True},
                           ["--pin", "r=host", "--connected"])]:
        plan = cutset.plan("g.cut", target="acc", **options)
        assert plan.to_json().encode() == command("plan", "g.cut", "--target", "acc", "--json", *args)
    assert cutset.plan(graph, target="acc") == cutset.plan("g.cut", target="acc")


def test_plan_has_the_keys_of_plan_json(graph):
    plan = cutset.plan(graph, target="acc")
    raw = json.loads(plan.to_json())
    for name in ("parts", "boundaries", "fallback"):
        records = getattr(plan, name)
        assert isinstance(records, tuple) and len(records) == len(raw[name]) > 0
        for record, data in zip(records, raw[name]):
            assert list(record) == list(data)
            for key, value in data.items():
                found = getattr(record, key)
                assert (list(found) if isinstance(value, list) else found) == value
                assert record[key] is found
    assert plan.parts[0].nodes == ("y",) and plan.parts[1].target == "host"
    assert plan.parts[2].ops == {"MatMul": 1, "Add": 1} and plan.parts[2].ops["Add"] == 1
    assert plan.boundaries[0].from_ == getattr(plan.boundaries[0], "from") == 0
    assert plan.boundaries[0].to == (1, 2)
    assert plan.fallback[0].rule == "user"
    assert plan.engines == plan.engines_bound == 2 and plan.engines_proved is True
    assert plan.certificate == ("y", "z", "q") and plan.oversized == ()
    assert plan.objective.parts == 3 and plan.objective["boundary_bytes"] == 32
    assert plan.options.host_memory is None and plan.options["min-nodes"] == 0
    assert plan.options.target == ("acc",) and plan.targets[0].name == "acc"
    assert plan.model.inputs[0].type == "f32[2,2]"
    assert "2 engines (proved minimal), 3 parts" in repr(plan)
    assert "nodes=('y',)" in repr(plan.parts[0]) and "nodes" in dir(plan.parts[0])


def test_plan_cannot_be_changed(graph):
    plan = cutset.plan(graph, target="acc")
    with pytest.raises(AttributeError):
        plan.engines = 7
    with pytest.raises(AttributeError):
        plan.parts[0].nodes = ()
    with pytest.raises(AttributeError):
        del plan.parts[0].nodes
    for change in (lambda ops: ops.update(Conv=1), lambda ops: ops.pop("MatMul"),
                   lambda ops: ops.__setitem__("x", 1), lambda ops: ops.clear()):
        with pytest.raises(TypeError):
            change(plan.parts[0].ops)
    with pytest.raises(AttributeError, match="no weight; it has id, "):
        plan.parts[0].weight
    with pytest.raises(TypeError):
        cutset.Plan()
    assert plan.to_json() == cutset.plan(graph, target="acc").to_json()


def test_plan_round_trips(graph):
    plan = cutset.plan(graph, target="acc")
    again = [cutset.Plan.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan)),
             copy.copy(plan), copy.deepcopy(plan)]
    for other in again:
        assert other == plan and hash(other) == hash(plan) and other.parts == plan.parts
        assert other.to_json() == plan.to_json()
    part = plan.parts[2]
    for other in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):
        assert other == part and hash(other) == hash(part) and type(other) is type(part)
    assert plan != cutset.plan(graph, target="acc", exclude="Add") and plan != 1
    assert plan.parts[0] != plan.parts[1]
    assert len({*again, plan}) == 1


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"cutset": 1}', "\ud800"])
def test_no_plan(text):
    with pytest.raises(cutset.ModelError) as caught:
        cutset.Plan.from_json(text)
    assert caught.value.code == 3 and "\n" not in str(caught.value)


def test_changed_plan_is_refused(graph):
    text = cutset.plan(graph, target="acc").to_json()
    with pytest.raises(cutset.ModelError, match="number of engines"):
        cutset.Plan.from_json(text.replace('"engines": 2', '"engines": 3'))
    with pytest.raises(TypeError):
        cutset.Plan.from_json(text.encode())


def test_names_that_are_not_utf8(tmp_path):
    data = GRAPH.replace("%q", '%"\\xff"').encode()
    plan = cutset.plan(data, target="acc")
    assert plan.parts[2].nodes == ("\\xff", "r")
    assert cutset.Plan.from_json(plan.to_json()) == plan


# ---- models ----

def test_model_forms(graph, tmp_path):
    onnx = pytest.importorskip("onnx")
    made = onnx_model([("Relu", ["x"], ["r"]), ("Neg", ["r"], ["y"])], {"x": [2]}, {"y": [2]})
    path = tmp_path / "m.onnx"
    onnx.save(made, path)
    data = path.read_bytes()
    plans = [cutset.plan(model, target="tensorrt")
             for model in (made, data, bytearray(data), memoryview(data), str(path), path)]
    assert len({plan.parts for plan in plans}) == 1 and plans[0].engines == 1
    assert plans[0] == plans[1] == plans[2] and plans[0].model.path is None
    assert plans[4] == plans[5] and plans[4].model.path == "m.onnx"
    assert cutset.plan(GRAPH.encode(), target="acc").parts == cutset.plan(graph, target="acc").parts

    class Broken:
        def SerializeToString(self):
            raise ValueError("more than\n2 GiB")

    with pytest.raises(cutset.ModelError, match="cannot be serialised: more than 2 GiB"):
        cutset.plan(Broken())
    with pytest.raises(cutset.UsageError, match="model is int"):
        cutset.plan(3)
    with pytest.raises(cutset.ModelError):
        cutset.plan(b"")
    with pytest.raises(cutset.ModelError, match="empty"):
        (tmp_path / "empty").touch()
        cutset.plan(tmp_path / "empty")


def test_external_weights_want_a_path(tmp_path):
    onnx = pytest.importorskip("onnx")
    numpy = pytest.importorskip("numpy")
    weight = onnx.numpy_helper.from_array(numpy.ones((64, 64), "float32"), "w")
    made = onnx_model([("MatMul", ["x", "w"], ["y"])], {"x": [2, 64]}, {"y": [2, 64]}, [weight])
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    assert cutset.plan(path).engines == 1
    bare = onnx.load(path, load_external_data=False)
    for model in (bare, path.read_bytes()):
        with pytest.raises(cutset.ModelError) as caught:
            cutset.plan(model)
        assert caught.value.path is None and "w" in str(caught.value)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(cutset.ModelError) as caught:
        cutset.plan(path)
    assert caught.value.path == str(path) and "w.bin" in str(caught.value)


def test_declared_shapes(tmp_path):
    data = b"input %x : f32[N,3]\n%y = Relu(%x) @acc\n%z = Relu(%y) @host\noutput %z\n"
    open_, fixed = (cutset.plan(data, target="acc", **more)
                    for more in ({}, {"shapes": {"x": [8, 3]}}))
    assert cutset.plan(data, target="acc", shapes={"x": "8x3"}).parts == fixed.parts
    assert cutset.plan(data, target="acc", dims={"N": 8}).parts == fixed.parts
    assert fixed.boundaries[0].bytes in (96, None) and fixed.options.shape == ("x:[8,3]",)
    assert open_.boundaries[0].bytes is None
    typed = cutset.plan(data, target="acc", types={"y": "f32[N,3]"})
    assert typed.options.type == ("y=f32[N,3]",)
    for bad in ({"shapes": {"x": [True]}}, {"shapes": {"x": 3}}, {"shapes": 3}, {"dims": {"N": -1}},
                {"dims": {"M": 3}}, {"types": {"x": 3}}, {"shapes": {"nope": [1]}},
                {"shapes": {1: [1]}}):
        with pytest.raises(cutset.UsageError):
            cutset.plan(data, target="acc", **bad)


# ---- options ----

def test_targets(graph, tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\nnodes: {all: true}\n")
    (tmp_path / "mine.yml").write_text("name: other\nnodes: {all: true, except: [Sigmoid]}\n")
    model = GRAPH.replace("@acc,host", "").replace("@host", "").encode()
    assert cutset.plan(model, target="mine.yaml", exclude=["Add"]).targets[0].name == "mine"
    two = cutset.plan(model, target=[Path("mine.yml"), "./mine.yaml"])
    assert [t.name for t in two.targets] == ["other", "mine"]
    assert [p.target for p in two.parts] == ["other", "mine", "other"]
    assert cutset.plan(model, target=("./mine.yaml",)).engines == 1
    for bad in ("nope", [], [""], "a\0b", 3, [3], ["acc", "acc"]):
        with pytest.raises(cutset.UsageError):
            cutset.plan(graph, target=bad)
    with pytest.raises(cutset.ModelError) as caught:
        (tmp_path / "bad.yaml").write_text("name: [\n")
        cutset.plan(graph, target="./bad.yaml")
    assert caught.value.path == "./bad.yaml"
    with pytest.raises(cutset.IoError) as caught:
        cutset.plan(graph, target="./none.yaml")
    assert caught.value.path == "./none.yaml"


def test_names_with_commas_and_backslashes():
    def model(a, b):
        spelt = [n.replace("\\", "\\\\") for n in (a, b)]
        return (f'input %x : f32[2]\n%"{spelt[0]}" = Relu(%x) @acc,host\n'
                f'%"{spelt[1]}" = Relu(%x) @acc,host\n%h = Add(%"{spelt[0]}", %"{spelt[1]}") @host\n'
                "output %h\n").encode()
    for a, b in [("a,b", "c"), ("a", "b,c,d"), ("a\\", "c"), ("a*", "c"), ("a=b", "c")]:
        plan = cutset.plan(model(a, b), target="acc", groups=[[a, b]], pin={a: "acc"})
        assert any(set(part.nodes) == {a, b} for part in plan.parts), (a, b, plan.parts)


def test_groups_and_pins_reach_the_plan(graph):
    plan = cutset.plan(graph, target="acc", groups=[("y", "q"), ["r"]], pin={"[yq]": "host"})
    assert plan.options.group == ("y,q", "r") and plan.options.pin == ("[yq]=host",)
    assert plan.engines == 1 and plan.parts[-1].nodes == ("r",)
    assert cutset.plan(graph, target="acc", groups=iter([iter(["y", "q"])])).options.group == ("y,q",)


@pytest.mark.parametrize("options", [
    {"host_memory": 0}, {"host_memory": -1}, {"host_memory": "0"}, {"host_memory": "1 GiB"},
    {"host_memory": "-1GiB"}, {"host_memory": ""}, {"host_memory": 1.5}, {"host_memory": True},
    {"host_memory": "1.5B"}, {"host_memory": "1.GiB"}, {"host_memory": "1gib"}, {"host_memory": b"1"},
    {"host_memory": 2**63}, {"host_memory": "9999999TiB"}, {"host_memory": "9" * 30},
    {"host_memory": "٣"}, {"host_memory": [1]}, {"host_memory": "Auto"},
    {"device_memory": "auto"}, {"device_memory": 0}, {"device_memory": "x"},
    {"min_nodes": -1}, {"min_nodes": "2"}, {"min_nodes": 1.0}, {"min_nodes": None},
    {"min_nodes": True}, {"max_engines": 0}, {"max_engines": -1}, {"max_engines": "1"},
    {"effort": 4}, {"effort": -1}, {"effort": "1"}, {"oversize": "drop"}, {"oversize": None},
    {"objective": "bytes"}, {"objective": "parts"}, {"objective": None},
    {"pin": {"nothing": "acc"}}, {"pin": {"y": "nope"}}, {"pin": {"y": ""}}, {"pin": {"": "acc"}},
    {"pin": {"y": 3}}, {"pin": ["y=acc"]}, {"pin": {"y": "a=b"}}, {"pin": {"a\0": "acc"}},
    {"exclude": ["nothing"]}, {"exclude": [3]}, {"exclude": 3}, {"exclude": [""]},
    {"groups": [["nothing"]]}, {"groups": ["yq"]}, {"groups": "yq"}, {"groups": [[3]]},
    {"groups": 3}, {"groups": [["y", ""]]}, {"groups": [["y", "nothing"]]}])
def test_bad_options(graph, options):
    with pytest.raises(cutset.UsageError) as caught:
        cutset.plan(graph, target="acc", **options)
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, cutset.Error) and error.code == 2
    name = next(iter(options))
    assert name in str(error) and "\n" not in str(error)
    assert "--" not in str(error).replace("inspect --text", "")


def test_max_engines(graph):
    plan = cutset.plan(graph, target="acc", max_engines=1)
    assert plan.engines == 1 and plan.options.max_engines == 1
    assert {f.rule for f in plan.fallback} == {"user", "limit"}
    assert cutset.plan(graph, target="acc", max_engines=2).engines == 2
    assert plan.to_json().encode() == command("plan", "g.cut", "--target", "acc", "--max-engines", 1,
                                              "--json")


def test_unknown_options(graph):
    for call in (cutset.plan, lambda *a, **k: cutset.split(*a, "out", **k)):
        with pytest.raises(TypeError):
            call(graph, target="acc", nonsense=3)
    with pytest.raises(TypeError):
        cutset.plan(graph, "acc")  # keyword only


@pytest.mark.parametrize("size,bytes_", [
    (1, 1), ("1", 1), ("12B", 12), ("1KB", 1000), ("1KiB", 1024), ("1.5KiB", 1536), ("2MiB", 2 << 20),
    ("8GB", 8 * 10**9), ("0.5TiB", 1 << 39), ("1.0009KB", 1000), ("007", 7),
    ("9223372036854775807", 2**63 - 1)])
def test_sizes_are_the_commands(graph, size, bytes_):
    plan = cutset.plan(graph, target="acc", host_memory=size, device_memory=size, oversize="host")
    assert plan.options.host_memory == plan.options.device_memory == bytes_
    assert plan.to_json().encode() == command(
        "plan", "g.cut", "--target", "acc", "--host-memory", size, "--device-memory", size,
        "--oversize", "host", "--json")


def test_numpy_numbers_are_numbers(graph):
    numpy = pytest.importorskip("numpy")
    plan = cutset.plan(graph, target="acc", host_memory=numpy.int64(64), effort=numpy.int8(2))
    assert plan.options.host_memory == 64 and plan.options.effort == 2


# ---- exceptions ----

def test_budget_error(graph):
    with pytest.raises(cutset.BudgetError) as caught:
        cutset.plan(graph, target="acc", host_memory=10, groups=[["q", "r"]])
    e = caught.value
    assert isinstance(e, ValueError) and e.code == 1
    assert (e.atom, e.needed, e.budget, e.node) in ((("y",), 16, 10, "y"), (("q", "r"), 16, 10, "q"))
    assert "budget" in str(e) and "16" in str(e) and "host_memory 10" in str(e)
    assert cutset.plan(graph, target="acc", host_memory=e.needed, groups=[["q", "r"]]).engines
    with pytest.raises(cutset.BudgetError) as caught:
        cutset.plan(graph, target="acc", device_memory=15)
    assert "device_memory 15" in str(caught.value)


def test_oversize(graph):
    assert cutset.plan(graph, target="acc", host_memory=10, oversize="host").oversized == ()
    with pytest.warns(cutset.OversizeWarning) as warned:
        plan = cutset.plan(graph, target="acc", host_memory=10, oversize="keep")
    assert len(warned) == 1 and warned[0].filename == __file__
    assert sorted(plan.oversized) == [(("q", "r"), 16), (("y",), 16)]
    assert issubclass(cutset.OversizeWarning, UserWarning)


def test_group_error(graph):
    with pytest.raises(cutset.GroupError) as caught:
        cutset.plan(graph, target="acc", groups=[["y", "q"]], pin={"y": "acc"})
    e = caught.value
    assert isinstance(e, ValueError) and e.code == 1 and e.cycle == ("z", "q", "y")
    assert "%z -> %q ~ %y -> %z" in str(e)
    with pytest.raises(cutset.GroupError) as caught:
        cutset.plan(graph, target="acc", groups=[["y", "z"]], pin={"y": "acc"})
    assert set(caught.value.cycle) == {"y", "z"}


def test_model_errors_say_where(tmp_path):
    path = tmp_path / "m.cut"
    path.write_text(GRAPH + "%n = (\n")
    with pytest.raises(cutset.ModelError) as caught:
        cutset.plan(path, target="acc")
    e = caught.value
    assert isinstance(e, ValueError) and e.code == 3 and e.path == str(path)
    assert e.offset is not None and e.offset >= len(GRAPH) and "line 9" in str(e)
    path.write_text("input %x : f32[2]\n%a = Add(%x, %b)\n%b = Relu(%a)\noutput %b\n")
    with pytest.raises(cutset.ModelError, match="cycle") as caught:
        cutset.plan(path, target="acc")
    assert caught.value.node == "a"


def test_onnx_errors_name_the_node(tmp_path):
    made = onnx_model([("Relu", ["nowhere"], ["y"], {"name": "culprit"})], {}, {"y": [2]})
    with pytest.raises(cutset.ModelError) as caught:
        cutset.plan(made)
    assert caught.value.node == "y" and caught.value.offset > 0 and "culprit" in str(caught.value)


def test_io_error(tmp_path):
    with pytest.raises(cutset.IoError) as caught:
        cutset.plan(tmp_path / "none.onnx")
    e = caught.value
    assert isinstance(e, OSError) and e.code == 4 and e.errno == 2
    assert e.path == e.filename == str(tmp_path / "none.onnx")
    assert str(e) == f"cannot open {tmp_path}/none.onnx: No such file or directory"
    with pytest.raises(cutset.IoError, match="is a folder"):
        cutset.plan(tmp_path)


def test_every_class():
    place = {"node": "n", "offset": 7, "path": "p"}
    made = [
        (cutset.Error("m", **place), Exception, 1), (cutset.UsageError("m", **place), ValueError, 2),
        (cutset.ModelError("m", **place), ValueError, 3),
        (cutset.IoError("m", errno=28, **place), OSError, 4),
        (cutset.BudgetError("m", atom=["a"], needed=5, budget=3, **place), ValueError, 1),
        (cutset.GroupError("m", cycle=["a", "b"], **place), ValueError, 1),
        (cutset.PartitionError("m", nodes=["a"], **place), ValueError, 2),
        (cutset.NotFullySupportedError("m", nodes=["a"], **place), AssertionError, 1)]
    for error, base, code in made:
        assert isinstance(error, base) and isinstance(error, cutset.Error) and str(error) == "m"
        assert error.code == code
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "m" and again.args == error.args
        for name in ("code", "node", "offset", "path", "atom", "needed", "budget", "cycle", "nodes",
                     "errno", "filename"):
            assert getattr(again, name, None) == getattr(error, name, None), name
        assert copy.copy(error).node == "n"
        bare = type(error)("two\nlines")
        assert str(bare) == "two lines" and bare.node is bare.offset is bare.path is None
    assert cutset.Error("m", code=130).code == 130
    assert pickle.loads(pickle.dumps(cutset.Error("m", code=9))).code == 9


def test_a_message_keeps_what_looks_like_an_option():
    data = b'input %x : f32[2]\n%"--host-memory" = Relu(%x) @acc\n%y = Relu(%"--pinned") @acc\noutput %y\n'
    with pytest.raises(cutset.ModelError, match="--pinned"):
        cutset.plan(data, target="acc")


# ---- memory ----

def machine(tmp_path, kib=1024000):
    proc, cgroup = tmp_path / "proc", tmp_path / "cg"
    (proc / "self").mkdir(parents=True)
    cgroup.mkdir()
    (proc / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable: {kib} kB\n")
    return proc, cgroup


def test_available_memory(tmp_path):
    assert cutset.available_memory() > 0
    proc, cgroup = machine(tmp_path)
    assert cutset.available_memory(proc_root=proc, cgroup_root=str(cgroup)) == 1024000 * 1024
    (proc / "self/cgroup").write_text("0::/a/b\n")
    (cgroup / "a/b").mkdir(parents=True)
    for name, text in [("a/memory.max", "1000000"), ("a/memory.current", "700000"),
                       ("a/memory.stat", "inactive_file 50000\n"), ("a/b/memory.max", "max")]:
        (cgroup / name).write_text(text + "\n")
    assert cutset.available_memory(proc_root=proc, cgroup_root=cgroup) == 350000
    (cgroup / "a/memory.current").write_text("5000000")
    assert cutset.available_memory(proc_root=proc, cgroup_root=cgroup) == 0
    with pytest.raises(cutset.IoError):
        cutset.available_memory(proc_root=tmp_path / "none", cgroup_root=tmp_path / "none")
    with pytest.raises(cutset.UsageError):
        cutset.available_memory(proc_root=3)
    with pytest.raises(TypeError):
        cutset.available_memory(proc)


def test_auto_is_recorded_in_bytes(graph):
    plan = cutset.plan(graph, target="acc", host_memory="auto")
    assert abs(plan.options.host_memory - cutset.available_memory()) < 4 << 30
    again = cutset.plan(graph, target="acc", host_memory=plan.options.host_memory)
    assert again == plan
    written = json.loads(command("plan", graph, "--target", "acc", "--host-memory", "auto", "--json"))
    assert written["options"]["host-memory"] > 0


def test_a_resource_limit_counts(graph):
    said = python("""
        import resource, cutset
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, resource.RLIM_INFINITY))
        print(cutset.available_memory())
    """)
    assert 0 < int(said) < 3 << 30


# ---- long calls ----

INTERRUPTED = """
    import os, signal, sys, threading, time
    import cutset
    data = open(sys.argv[1], "rb").read()
    def send():
        time.sleep(0.15)
        start.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    start = []
    sender = threading.Thread(target=send)
    sender.start()
    try:
        while True:  # the machine may be faster than we think
            cutset.plan(data, target="acc")
    except KeyboardInterrupt:
        print(f"interrupted {time.monotonic() - start[0]:.3f}")
    sender.join()
    print(cutset.plan(b"input %x : f32[2]\\n%y = Relu(%x) @acc\\noutput %y\\n", target="acc").engines)
"""


def test_ctrl_c(tmp_path):
    (tmp_path / "large.cut").write_text(large(1_000_000))
    said = python(INTERRUPTED, tmp_path / "large.cut")
    match = re.fullmatch(r"interrupted ([0-9.]+)\n1\n", said)
    assert match, said
    assert float(match[1]) < 5, "it went on to the end"


def test_an_exception_of_a_handler_comes_out(tmp_path):
    (tmp_path / "large.cut").write_text(large(300_000))
    said = python("""
        import signal, sys, cutset
        class Late(Exception): pass
        def late(*_): raise Late("too late")
        signal.signal(signal.SIGALRM, late)
        data = open(sys.argv[1], "rb").read()
        signal.setitimer(signal.ITIMER_REAL, 0.15)
        try:
            while True:
                cutset.plan(data, target="acc")
        except Late as e:
            print(repr(e))
    """, tmp_path / "large.cut")
    assert said == "Late('too late')\n"


def test_other_threads_go_on():
    data = large(300_000).encode()
    inside, done = threading.Event(), threading.Event()
    ticks = 0

    def plan():
        inside.set()
        assert cutset.plan(data, target="acc").engines
        done.set()

    worker = threading.Thread(target=plan)
    worker.start()
    inside.wait()
    while not done.is_set():  # only counts while the other thread is in its one call
        ticks += 1
        time.sleep(0.001)
    worker.join()
    assert ticks > 20


def test_threads_may_plan_at_once(graph):
    wanted = cutset.plan(graph, target="acc")
    found = []
    threads = [threading.Thread(target=lambda: found.extend(
        cutset.plan(graph, target="acc") == wanted for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 200


def test_many_nodes():
    """Through Python in one call; the plan costs nothing until it is looked at."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    data = large(100_000).encode()
    sys.setprofile(count)
    try:
        plan = cutset.plan(data, target="acc")
    finally:
        sys.setprofile(None)
    assert calls < 3000
    assert sum(len(part.nodes) for part in plan.parts) == 100_000


def test_nothing_leaks(graph):
    said = python("""
        import gc, resource, sys, cutset
        def run():
            for _ in range(300):
                cutset.plan(sys.argv[1], target="acc", groups=[["y", "q"]], exclude=["Add"])
                try:
                    cutset.plan(sys.argv[1], target="acc", host_memory=1)
                except cutset.BudgetError:
                    pass
            gc.collect()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        run()
        before = run()
        for _ in range(5):
            after = run()
        print(after - before)
    """, graph)
    assert int(said) < 4096  # KiB, for 3000 plans and errors of 3 KB each
