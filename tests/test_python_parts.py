"""split, verify and merge through the Python package."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

cutset = pytest.importorskip("cutset")
onnx = pytest.importorskip("onnx")
numpy = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")

CUTSET = os.environ.get("CUTSET", "cutset")


def model(shape=("N", 64)):
    helper = onnx.helper
    info = helper.make_tensor_value_info
    random = numpy.random.default_rng(3)
    weights = [onnx.numpy_helper.from_array(random.standard_normal((64, 64)).astype("float32"), name)
               for name in ("w1", "w2")]
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Sign", ["b"], ["c"]), helper.make_node("MatMul", ["c", "w2"], ["d"]),
             helper.make_node("Add", ["d", "b"], ["y"])]
    return helper.make_model(
        helper.make_graph(nodes, "g", [info("x", 1, shape)], [info("y", 1, shape)], weights),
        ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "m.onnx")
    return tmp_path / "m.onnx"


def split(path, out="parts", **more):
    return cutset.split(path, out, target="tensorrt", exclude=["Sign"], **more)


def damage(folder, part):
    """Changes a weight of a part."""
    file = Path(folder) / part
    made = onnx.load(file)
    weight = made.graph.initializer[0]
    values = onnx.numpy_helper.to_array(weight).copy()
    values[0] += 1
    weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
    onnx.save(made, file)


# ---- split ----

def test_split_writes_what_the_command_writes(path, tmp_path):
    plan = split("m.onnx", "parts", weights="inline")
    done = subprocess.run([CUTSET, "split", "m.onnx", "--target", "tensorrt", "--exclude", "Sign",
                           "--weights", "inline", "--json", "-o", "others"], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert plan.to_json().encode() == done.stdout
    names = sorted(p.name for p in Path("parts").iterdir())
    assert names == sorted(p.name for p in Path("others").iterdir())
    assert names == [*sorted(part.file for part in plan.parts), "plan.json"] and plan.engines == 2
    for name in names:
        assert Path("parts", name).read_bytes() == Path("others", name).read_bytes()


def test_split_of_a_plan(path):
    plan = cutset.plan(path, target="tensorrt", exclude=["Sign"], shapes={"x": [3, 64]})
    assert cutset.split(path, "parts", plan=plan) == plan
    written = cutset.Plan.from_json(Path("parts/plan.json").read_text())
    assert written.parts == plan.parts and written.model.path == "../m.onnx"
    for options in ({"target": "tensorrt"}, {"effort": 1}, {"shapes": {"x": [3, 64]}}):
        with pytest.raises(cutset.UsageError, match=next(iter(options))):
            cutset.split(path, "parts", plan=plan, **options)
    with pytest.raises(cutset.UsageError, match="plan is str"):
        cutset.split(path, "parts", plan=plan.to_json())
    changed = model()
    changed.graph.node[1].op_type = "Neg"
    onnx.save(changed, path)
    with pytest.raises(cutset.ModelError, match="has changed since the plan was made"):
        cutset.split(path, "again", plan=plan)
    with pytest.raises(cutset.ModelError, match="changed"):
        cutset.split(changed, "again", plan=plan)
    assert not Path("again").exists()


@pytest.mark.parametrize("weights", ["auto", "inline", "copy"])
def test_split_of_bytes(path, weights):
    made = onnx.load(path)
    plan = cutset.split(made, "parts", target="tensorrt", exclude=["Sign"], weights=weights)
    assert plan.model.path is None
    for part in plan.parts:
        onnx.checker.check_model(f"parts/{part.file}")
    assert Path("parts/weights").exists() == (weights == "copy")
    plan = cutset.plan(made, target="tensorrt", exclude=["Sign"])
    assert cutset.split(made, "again", plan=plan, weights=weights) == plan
    with pytest.raises(cutset.UsageError, match="is gone"):
        cutset.verify("parts")
    with pytest.raises(cutset.UsageError, match="is gone"):
        cutset.merge("parts", "out.onnx")


def test_split_of_bytes_cannot_refer(path):
    with pytest.raises(cutset.UsageError, match="the model is not a file"):
        split(onnx.load(path), weights="refer")
    assert not Path("parts").exists()


def test_split_refuses(path, tmp_path):
    for weights in ("both", None, 3):
        with pytest.raises(cutset.UsageError, match="weights"):
            split(path, weights=weights)
    with pytest.raises(cutset.UsageError, match="out_dir"):
        split(path, 3)
    Path("file").touch()
    with pytest.raises(cutset.UsageError) as caught:
        split(path, "file")
    assert caught.value.path == "file"
    with pytest.raises(cutset.IoError) as caught:
        split(path, "no/such/parent")
    assert caught.value.errno == 2
    with pytest.raises(cutset.ModelError, match="text form"):
        cutset.split(b"input %x : f32[2]\n%y = Relu(%x) @acc\noutput %y\n", "parts", target="acc")
    assert not Path("parts").exists()


def test_linked_weights(path):
    onnx.save(model(), "e.onnx", save_as_external_data=True, location="real.bin", size_threshold=0)
    Path("real.bin").rename("elsewhere.bin")
    Path("real.bin").symlink_to("elsewhere.bin")
    with pytest.raises(cutset.ModelError, match="symbolic link.*follow_links"):
        split("e.onnx")
    plan = split("e.onnx", follow_links=True)
    assert cutset.split("e.onnx", "again", plan=plan, follow_links=True) == plan
    assert cutset.verify("again")


# ---- verify ----

def test_verify(path):
    split(path)
    found = cutset.verify("parts")
    assert found and found.equal is True and found.first_difference is None
    assert found.parts == 3 and found.message == ""
    assert [(o.name, o.result) for o in found.outputs] == [("y", "equal")]
    assert found.report["seed"] == 0 and found.report["runs"] == 1
    again = cutset.verify(Path("parts"), seed=7, runs=3, shapes={"x": [5, 64]})
    assert again and again.report["seed"] == 7 and again.report["runs"] == 3
    assert "f32[5,64]" in again.report["inputs"][0]["type"]
    assert cutset.verify("parts", shapes={"x": "5x64"})


def test_a_difference_is_a_result(path):
    plan = split(path, weights="inline")
    damage("parts", plan.parts[2].file)
    found = cutset.verify("parts")
    assert not found and found.equal is False and found.parts == 3
    first = found.first_difference
    assert first.part == 2 and first.file == plan.parts[2].file and first.value in ("d", "y")
    assert first.differ > 0 and first.max_abs > 0
    assert found.outputs[0].result == "different" and "y differs first in" in found.message
    odd = onnx.load(Path("parts", plan.parts[1].file))
    odd.graph.node[0].op_type = "Sgin"
    onnx.save(odd, Path("parts", plan.parts[1].file))
    found = cutset.verify("parts")
    assert not found and "does not load" in found.message and found.parts == 3
    assert "does not load" in found.first_difference.why


def test_inputs(path, tmp_path, monkeypatch):
    split(path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    array = numpy.arange(2 * 64, dtype="float32").reshape(2, 64)
    numpy.save("x.npy", array)
    for value in (array, array.tolist() and numpy.asfortranarray(array), "x.npy", Path("x.npy")):
        found = cutset.verify("parts", inputs={"x": value})
        assert found and found.report["inputs"][0]["file"].endswith(".npy")
        assert found.report["inputs"][0]["type"] == "f32[2,64]"
    for bad in ({"nope": array}, {"x": None}, {"x": array.astype("float64")}, {"x": array[0]},
                {"x": "x" * 5000}, {"": array}, ["x"], {"x": object()},
                {"x": [[1], [2, 3]]}):
        with pytest.raises((cutset.UsageError, cutset.IoError)) as caught:
            cutset.verify("parts", inputs=bad)
        assert "\n" not in str(caught.value) and "--" not in str(caught.value)
        assert str(temporary) not in f"{caught.value} {caught.value.path}"
        assert not list(temporary.iterdir())


def test_verify_refuses(path, tmp_path):
    split(path)
    for bad in ({"runs": 0}, {"runs": "1"}, {"seed": -1}, {"seed": 1.5}, {"seed": 2**64},
                {"shapes": {"nope": [1]}}):
        with pytest.raises(cutset.UsageError):
            cutset.verify("parts", **bad)
    with pytest.raises(cutset.IoError) as caught:
        cutset.verify("nowhere")
    assert caught.value.path == "nowhere"
    with pytest.raises(cutset.IoError, match="cannot be loaded"):
        cutset.verify("parts", onnxruntime="x.so")
    Path("parts/plan.json").write_text("{}")
    with pytest.raises(cutset.ModelError):
        cutset.verify("parts")


def test_runtime_is_found_without_importing_it(path):
    split(path)
    program = """
        import os, sys, cutset
        os.environ.pop("CUTSET_ONNXRUNTIME", None)
        os.environ.pop("VIRTUAL_ENV", None)
        os.environ["PATH"] = "/nowhere"
        os.chdir("/")
        found = cutset.verify(sys.argv[1])
        print(found.equal, "onnxruntime" in sys.modules, "numpy" in sys.modules)
        print(found.report["library"])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), Path("parts").resolve()],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    equal, library = done.stdout.splitlines()
    assert equal == "True False False" and "onnxruntime/capi/libonnxruntime.so" in library


def test_the_runtime_refuses(path):
    made = model()
    made.graph.node[2].op_type = "Sgin"
    made.graph.node[2].domain = "com.example"
    made.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    for value in ("c", "d", "b", "a"):
        made.graph.value_info.append(onnx.helper.make_tensor_value_info(value, 1, ["N", 64]))
    onnx.save(made, "odd.onnx")
    cutset.split("odd.onnx", "odd", target="tensorrt")
    with pytest.raises(cutset.ModelError, match="refuses the model") as caught:
        cutset.verify("odd")
    assert "\n" not in str(caught.value)


# ---- merge ----

def test_merge(path):
    split(path)
    assert cutset.merge("parts", "again.onnx") is None
    assert onnx.load("again.onnx").graph.node == onnx.load(path).graph.node
    cutset.merge(Path("parts"), Path("other.onnx"))
    assert Path("again.onnx").read_bytes() == Path("other.onnx").read_bytes()
    with pytest.raises(cutset.IoError):
        cutset.merge("nowhere", "x.onnx")
    with pytest.raises(cutset.UsageError):
        cutset.merge("parts", 3)
    with pytest.raises(cutset.IoError) as caught:
        cutset.merge("parts", "no/such/x.onnx")
    assert caught.value.errno == 2 and not Path("x.onnx").exists()


# ---- Ctrl-C ----

def test_ctrl_c_leaves_nothing_half_written(path):
    """A split is interrupted again and again, whenever; what it leaves is whole or not there."""
    program = """
        import os, signal, sys, cutset
        whole = 0
        stopped = 0
        for wait in range(1, 25):
            out = f"parts-{wait}"
            signal.setitimer(signal.ITIMER_REAL, wait * 0.0015)
            try:
                try:
                    while True:
                        cutset.split(sys.argv[1], out, target="tensorrt", exclude=["Sign"])
                        whole += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            if os.path.exists(out):
                assert cutset.Plan.from_json(open(f"{out}/plan.json").read()).engines == 2
                assert all(os.path.exists(f"{out}/{part.file}") for part in
                           cutset.Plan.from_json(open(f"{out}/plan.json").read()).parts)
        print(stopped)
    """
    program = ("import signal\nsignal.signal(signal.SIGALRM, signal.default_int_handler)\n" +
               textwrap.dedent(program))
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout == "24\n"
    assert not [p for p in Path().iterdir() if "tmp" in p.name]
