"""verify: equal parts, and every way in which parts can be wrong, missing or not comparable.

Every model is made here and split with a target that takes all but the named operators. Needs ONNX
Runtime beside this Python.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T, helper, numpy_helper

pytest.importorskip("onnxruntime")
CUTSET = os.environ["CUTSET"]


# ---- helpers ----

def run(*args, code=0, cwd=None, env=None):
    done = subprocess.run([CUTSET, *map(str, args)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **ENV, **(env or {})}, timeout=600)
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}\n{done.stdout[-3000:]}"
    if code:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done


def library():
    import onnxruntime
    folder = pathlib.Path(onnxruntime.__file__).parent / "capi"
    return sorted(folder.glob("libonnxruntime.so*"))[-1]


ENV = {"CUTSET_ONNXRUNTIME": str(library())}


def info(name, shape, elem=T.FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def weight(name, *shape, dtype=np.float32, seed=1):
    data = np.random.default_rng(seed).standard_normal(shape) / 4
    return numpy_helper.from_array(data.astype(dtype), name)


def node(op, ins, outs, **more):
    return helper.make_node(op, ins.split(), outs.split(), **more)


def save(folder, nodes, inputs, outputs, weights=(), opset=18, ir=10, **more):
    graph = helper.make_graph(list(nodes), "net", inputs, outputs, list(weights), **more)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    path = folder / "m.onnx"
    onnx.save(made, path)
    return path


def split(folder, model, *hosts, options=()):
    target = folder / "most.yaml"
    target.write_text("name: most\nnodes: {all: true}\nmemory: {host_base: 0, "
                      "host_per_weight_byte: 1.0, device_base: 0, device_per_weight_byte: 1.0}\n")
    excludes = [x for h in hosts for x in ("--exclude", h)]
    run("split", model, "--target", target, *excludes, *options, "-o", folder / "parts")
    return folder / "parts"


def report(parts, *options, code=0, **more):
    return json.loads(run("verify", parts, "--json", *options, code=code, **more).stdout)


def results(parts, *options, **more):
    return {o["name"]: o["result"] for o in report(parts, *options, **more)["outputs"]}


def mlp(folder):
    """Three parts: a and c on the accelerator, b between them on the host."""
    nodes = [node("MatMul", "x w0", "a"), node("Relu", "a", "b"), node("MatMul", "b w1", "c"),
             node("Tanh", "c", "y"), node("Neg", "x", "z")]
    return save(folder, nodes, [info("x", ["N", 64])], [info("y", ["N", 32]), info("z", ["N", 64])],
                [weight("w0", 64, 64), weight("w1", 64, 32)])


def tamper(path):
    model = onnx.load(path)
    first = model.graph.initializer[0]
    first.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(first) + 0.25, first.name))
    onnx.save(model, path)


@pytest.fixture
def three(tmp_path):
    parts = split(tmp_path, mlp(tmp_path), "Relu", options=["--weights", "inline"])
    assert len(list(parts.glob("*.onnx"))) == 3
    return parts


# ---- equal ----

def test_equal(three):
    found = report(three, "--runs", "3", "--seed", "5")
    assert found["equal"] == 2 and found["different"] == found["close"] == 0
    assert found["runs"] == 3 and found["seed"] == 5 and found["first_difference"] is None
    assert found["inputs"] == [{"name": "x", "type": "f32[2,64]", "range": "-1..1"}]
    text = run("verify", three).stdout
    assert "2 equal bit for bit" in text
    assert max(map(len, text.splitlines())) <= 80
    assert run("verify", three).stdout == text


def test_refer_and_copy(tmp_path):
    model = mlp(tmp_path)
    run("split", model, "--target", "acc", "--weights", "refer", "-o", tmp_path)
    assert set(results(tmp_path).values()) == {"equal"}
    parts = split(tmp_path, model, "Relu", options=["--weights", "copy"])
    assert (parts / "weights").is_dir()
    assert set(results(parts).values()) == {"equal"}


def test_dims_and_shapes(three):
    assert report(three, "--dim", "N=7")["inputs"][0]["type"] == "f32[7,64]"
    assert report(three, "--shape", "x:3x64")["inputs"][0]["type"] == "f32[3,64]"
    assert "no" in run("verify", three, "--dim", "M=7", code=2).stderr
    run("verify", three, "--shape", "x:3x65", code=2)


def test_dims_of_the_plan_hold(tmp_path):
    parts = split(tmp_path, mlp(tmp_path), "Relu", options=["--dim", "N=5"])
    assert report(parts)["inputs"][0]["type"] == "f32[5,64]"
    assert report(parts, "--dim", "N=5")["inputs"][0]["type"] == "f32[5,64]"


def test_one_symbol_one_size(tmp_path):
    nodes = [node("MatMul", "x y", "a"), node("Relu", "a", "b"), node("Concat", "b z", "o", axis=0)]
    model = save(tmp_path, nodes, [info("x", ["a", "b"]), info("y", ["b", "c"]),
                                   info("z", ["a + b", "c"])], [info("o", ["n", "c"])])
    found = report(split(tmp_path, model, "Relu"))
    assert [i["type"] for i in found["inputs"]] == ["f32[2,3]", "f32[3,4]", "f32[5,4]"]
    assert found["equal"] == 1


# ---- different ----

@pytest.mark.parametrize("bad, value", [(0, "a"), (2, "y")])
def test_tampered_part_is_named(three, bad, value):
    name = f"part-{bad:03}-most.onnx"
    tamper(three / name)
    done = run("verify", three, code=1)
    assert f"output y differs first in {name} (value {value}): element 0 is" in done.stderr
    assert name in done.stdout
    found = report(three, code=1)
    assert found["different"] == 1 and found["equal"] == 1
    assert found["first_difference"]["file"] == name
    assert found["first_difference"]["value"] == value
    y = next(o for o in found["outputs"] if o["name"] == "y")
    assert y["differ"] == y["elements"] == 64 and y["max_abs"] > 0 and y["whole"] != y["parts"]


def test_tampered_part_of_a_model_with_external_weights(tmp_path):
    path = mlp(tmp_path)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="m.bin", size_threshold=0)
    parts = split(tmp_path, path, "Relu", options=["--weights", "inline"])
    assert set(results(parts).values()) == {"equal"}
    tamper(parts / "part-000-most.onnx")
    assert "first in part-000-most.onnx (value a)" in run("verify", parts, code=1, cwd="/").stderr


def test_wrong_type_or_shape(three):
    path = three / "part-001-host.onnx"
    part = onnx.load(path)
    part.graph.node[0].op_type = "Shape"
    part.graph.output[0].CopyFrom(info(part.graph.output[0].name, [2], T.INT64))
    onnx.save(part, path)
    assert "part-002-most.onnx does not run" in run("verify", three, code=1).stderr


def test_part_that_does_not_load(three):
    path = three / "part-001-host.onnx"
    part = onnx.load(path)
    part.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(part, path)
    error = run("verify", three, code=1).stderr
    assert "part-001-host.onnx does not load" in error and "NoSuchOperator" in error


# ---- half floats, random numbers ----

def half(folder, elem):
    nodes = [node("Cast", "x", "h", to=elem), node("MatMul", "h w0", "a"), node("Sigmoid", "a", "b"),
             node("MatMul", "b w1", "c"), node("Cast", "c", "y", to=T.FLOAT), node("Neg", "x", "z")]
    weights = [helper.make_tensor(n, elem, s, numpy_helper.to_array(weight(n, *s)).ravel())
               for n, s in (("w0", (64, 160)), ("w1", (160, 8)))]
    return save(folder, nodes, [info("x", ["N", 64])], [info("y", ["N", 8]), info("z", ["N", 64])],
                weights)


def test_f16_boundary(tmp_path):
    parts = split(tmp_path, half(tmp_path, T.FLOAT16), "Sigmoid", options=["--weights", "inline"])
    found = report(parts, "--runs", "4")
    by_name = {o["name"]: o for o in found["outputs"]}
    assert by_name["y"]["result"] == "close" and by_name["y"]["tolerance"] == 0.01
    assert 0 < by_name["y"]["max_abs"] < 0.02
    assert by_name["z"]["result"] == "equal" and by_name["z"]["tolerance"] == 0
    assert found["close"] == 1 and found["equal"] == 1
    assert "1 equal within the tolerance" in run("verify", parts).stdout.replace("\n", " ")
    for path in parts.glob("*.onnx"):
        if onnx.load(path).graph.initializer:
            tamper(path)
            break
    assert f"first in {path.name}" in run("verify", parts, code=1).stderr


def test_inner_f16_is_exact(tmp_path):
    nodes = [node("Relu", "x", "r"), node("Cast", "r", "h", to=T.FLOAT16), node("Exp", "h", "e"),
             node("Cast", "e", "y", to=T.FLOAT)]
    model = save(tmp_path, nodes, [info("x", [64])], [info("y", [64])])
    found = report(split(tmp_path, model, "Relu"))
    assert found["outputs"][0]["tolerance"] == 0 and found["equal"] == 1


def test_random_operators(tmp_path):
    nodes = [node("RandomNormalLike", "x", "r"), node("Add", "x r", "s"), node("Relu", "s", "y"),
             node("NonZero", "y", "n"), node("Neg", "x", "z")]
    model = save(tmp_path, nodes, [info("x", [4, 8])],
                 [info("y", [4, 8]), info("n", [2, "k"], T.INT64), info("z", [4, 8])])
    parts = split(tmp_path, model, "Add")
    assert results(parts) == {"y": "random", "n": "random", "z": "equal"}
    assert "2 random" in run("verify", parts).stdout


def test_random_operator_in_a_body(tmp_path):
    noise = helper.make_graph([node("RandomUniform", "", "u", shape=[2])], "t", [], [info("u", [2])])
    calm = helper.make_graph([node("Identity", "x", "v")], "e", [], [info("v", [2])])
    nodes = [node("If", "c", "w", then_branch=noise, else_branch=calm), node("Neg", "w", "y")]
    model = save(tmp_path, nodes, [info("c", [], T.BOOL), info("x", [2])], [info("y", [2])])
    assert results(split(tmp_path, model, "If")) == {"y": "random"}


# ---- values that are no number tensors ----

def test_sequences_between_parts(tmp_path):
    nodes = [node("SplitToSequence", "x", "s", axis=0, keepdims=0),
             node("SequenceInsert", "s q", "t"), node("ConcatFromSequence", "t", "c", axis=0, new_axis=1),
             node("Relu", "c", "y"), node("SequenceLength", "t", "n")]
    model = save(tmp_path, nodes, [info("x", [3, 4]), info("q", [4])],
                 [info("y", [4, 4]), info("n", [], T.INT64),
                  helper.make_tensor_sequence_value_info("t", T.FLOAT, [4])])
    parts = split(tmp_path, model, "SequenceInsert")
    assert len(list(parts.glob("*.onnx"))) == 3
    assert results(parts) == {"y": "equal", "n": "equal", "t": "equal"}


def test_sequence_and_optional_inputs(tmp_path):
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(T.FLOAT, [2]))
    nodes = [node("ConcatFromSequence", "s", "t", axis=0), node("Relu", "t", "y"),
             node("OptionalGetElement", "o", "e"), node("Neg", "e", "z")]
    model = save(tmp_path, nodes, [helper.make_tensor_sequence_value_info("s", T.FLOAT, ["a", 3]),
                                   helper.make_value_info("o", optional)],
                 [info("y", ["b", 3]), info("z", [2])])
    assert set(results(split(tmp_path, model, "Relu")).values()) == {"equal"}


def test_absent_optional_is_refused_not_crashed_on(tmp_path):
    kind = helper.make_tensor_type_proto(T.FLOAT, [2])
    nodes = [node("Optional", "", "o", type=kind), node("OptionalHasElement", "o", "h")]
    model = save(tmp_path, nodes, [info("x", [2])], [info("h", [], T.BOOL)])
    error = run("verify", split(tmp_path, model, "Optional"), code=3).stderr
    assert "optional without a value" in error and "--group" in error


def test_strings(tmp_path):
    nodes = [node("Identity", "x", "a"), node("Concat", "a x", "y", axis=0), node("Shape", "y", "n")]
    model = save(tmp_path, nodes, [info("x", ["N"], T.STRING)],
                 [info("y", ["M"], T.STRING), info("n", [1], T.INT64)])
    parts = split(tmp_path, model, "Identity")
    assert results(parts) == {"y": "equal", "n": "equal"}
    np.save(tmp_path / "x.npy", np.array(["one", "zw\u00f6lf", ""]))
    found = report(parts, "--input", f"x={tmp_path / 'x.npy'}")
    assert found["inputs"][0]["type"] == "str[3]" and found["equal"] == 2


def test_passed_through(tmp_path):
    nodes = [node("Relu", "x", "y")]
    model = save(tmp_path, nodes, [info("x", [2]), info("k", [2])],
                 [info("y", [2]), info("k", [2]), info("w", [2])], [weight("w", 2)])
    assert results(split(tmp_path, model)) == {"y": "equal", "k": "equal", "w": "passed through"}


def test_part_without_outputs(tmp_path):
    """Dead nodes have nothing to compare; what only they read is not kept for them."""
    model = save(tmp_path, [node("Relu", "x", "a"), node("Neg", "a", "dead"), node("Exp", "a", "b"),
                            node("Neg", "b", "c"), node("Relu", "c", "y")],
                 [info("x", [2])], [info("y", [2])])
    parts = split(tmp_path, model, "Neg")
    dead = [p for p in json.loads((parts / "plan.json").read_text())["parts"] if not p["outputs"]]
    found = report(parts, "--runs", 2)
    assert found["equal"] == 1 and found["parts_without_outputs"] == len(dead)
    simple = save(tmp_path, [node("Relu", "x", "y"), node("Neg", "x", "d")],
                  [info("x", [2])], [info("y", [2])])
    parts = split(tmp_path, simple, "Neg")
    assert report(parts)["parts_without_outputs"] == 1
    assert "1 without outputs, not run" in run("verify", parts).stdout
    (parts / "part-001-host.onnx").unlink()  # still a part of the split
    run("verify", parts, code=4)


def test_runtime_that_cannot_start_a_session(tmp_path):
    """An exception while a session is made is logged by some runtimes: one line all the same."""
    model = save(tmp_path, [], [], [])
    done = run("verify", split(tmp_path, model), code=3)
    assert "refuses the model" in done.stderr


def test_overridable_default_is_not_fed(tmp_path):
    model = save(tmp_path, [node("Add", "x d", "a"), node("Relu", "a", "y")],
                 [info("x", [2]), info("d", [2])], [info("y", [2])], [weight("d", 2)])
    parts = split(tmp_path, model, "Relu")
    assert [i["name"] for i in report(parts)["inputs"]] == ["x"]
    assert results(parts) == {"y": "equal"}


# ---- inputs ----

def test_integers_are_tried_smaller(tmp_path):
    nodes = [node("Gather", "t i", "a"), node("Relu", "a", "y")]
    model = save(tmp_path, nodes, [info("i", ["N"], T.INT64)], [info("y", ["N", 3])],
                 [weight("t", 2, 3)])
    parts = split(tmp_path, model, "Relu")
    assert report(parts)["inputs"][0]["range"] == "0..1"
    assert report(parts, "--range", "i=-2..-1")["inputs"][0]["range"] == "-2..-1"
    done = run("verify", parts, "--range", "i=5..9", code=3)
    assert "the reference runtime refuses the model: " in done.stderr
    assert "not compared" in done.stdout
    assert report(parts, "--range", "i=5..9", code=3)["refused"]


def test_input_files(three, tmp_path):
    x = np.linspace(-1, 1, 3 * 64, dtype=np.float32).reshape(3, 64)
    np.save(tmp_path / "x.npy", x)
    found = report(three, "--input", f"x={tmp_path / 'x.npy'}")
    assert found["inputs"][0] == {"name": "x", "type": "f32[3,64]", "file": str(tmp_path / "x.npy")}
    assert found["equal"] == 2

    def refused(array, words, code=2, **more):
        np.save(tmp_path / "bad.npy", array, **more)
        assert words in run("verify", three, "--input", f"x={tmp_path / 'bad.npy'}",
                            code=code).stderr

    refused(x.astype(np.float64), "its elements are f8, those of x are f32")
    refused(x[:, :5], "its shape is [3,5], that of x is f32[N,64]")
    refused(x.astype(">f4"), "big-endian", code=3)
    refused(np.asfortranarray(x), "ascontiguousarray", code=3)
    refused(np.array([{}]), "Python objects", code=3, allow_pickle=True)
    (tmp_path / "bad.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    assert "cut off" in run("verify", three, "--input", f"x={tmp_path}/bad.npy", code=3).stderr
    assert "no input" in run("verify", three, "--input", "q=x.npy", code=2).stderr
    run("verify", three, "--input", "x=/nonexistent.npy", code=4)
    run("verify", three, "--range", "x=1..0", code=2)
    run("verify", three, "--runs", "0", code=2)


def test_a_symbol_takes_its_size_from_a_file(tmp_path):
    nodes = [node("Add", "x y", "a"), node("Relu", "a", "b")]
    model = save(tmp_path, nodes, [info("x", ["N", 3]), info("y", ["N", 3])], [info("b", ["N", 3])])
    np.save(tmp_path / "y.npy", np.zeros((6, 3), np.float32))
    found = report(split(tmp_path, model, "Relu"), "--input", f"y={tmp_path / 'y.npy'}")
    assert [i["type"] for i in found["inputs"]] == ["f32[6,3]", "f32[6,3]"]


def test_bfloat16_from_raw_bytes(tmp_path):
    nodes = [node("Cast", "x", "a", to=T.FLOAT), node("Neg", "a", "y")]
    model = save(tmp_path, nodes, [info("x", ["N"], T.BFLOAT16)], [info("y", ["N"])])
    np.save(tmp_path / "x.npy", np.array([0x3f80, 0x4000], np.uint16).view("V2"))
    parts = split(tmp_path, model, "Neg")
    assert report(parts, "--input", f"x={tmp_path / 'x.npy'}")["inputs"][0]["type"] == "bf16[2]"


# ---- what is not there ----

def test_missing_part(three):
    (three / "part-001-host.onnx").unlink()
    assert "part-001-host.onnx" in run("verify", three, code=4).stderr


def test_broken_part(three):
    path = three / "part-001-host.onnx"
    path.write_bytes(path.read_bytes()[:-3])
    assert "part-001-host.onnx" in run("verify", three, code=3).stderr


def test_missing_weights_of_a_part(tmp_path):
    parts = split(tmp_path, mlp(tmp_path), "Relu", options=["--weights", "copy"])
    shutil.rmtree(parts / "weights")
    run("verify", parts, code=3)


def test_missing_folder_or_plan(tmp_path, three):
    assert "nowhere" in run("verify", tmp_path / "nowhere", code=4).stderr
    run("verify", tmp_path / "m.onnx", code=4)
    (three / "plan.json").unlink()
    assert "plan.json" in run("verify", three, code=4).stderr


def test_changed_model(three, tmp_path):
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.node[1].op_type = "Sigmoid"
    onnx.save(model, tmp_path / "m.onnx")
    assert run("verify", three, code=3).stderr.count("xxh3:") == 2
    (tmp_path / "m.onnx").unlink()
    run("verify", three, code=4)


def test_runtime_that_refuses(tmp_path):
    model = save(tmp_path, [node("Max", "x x", "a"), node("Neg", "a", "y")],
                 [info("x", [2], T.INT16)], [info("y", [2], T.INT16)])
    done = run("verify", split(tmp_path, model, "Neg"), code=3)
    assert "the reference runtime refuses the model: " in done.stderr


# ---- the library ----

def test_library_that_is_named(three):
    env = {"CUTSET_ONNXRUNTIME": "/nonexistent/lib.so"}
    assert "/nonexistent/lib.so" in run("verify", three, code=4, env=env).stderr
    assert report(three, "--onnxruntime", library(), env=env)["library"] == str(library())
    error = run("verify", three, "--onnxruntime", "/etc/passwd", code=4).stderr
    assert "cannot be loaded" in error


def test_library_that_is_found(three, tmp_path):
    """An environment beside the current folder, then python3's; none: how to get one."""
    none = {"CUTSET_ONNXRUNTIME": "", "PATH": "/nonexistent", "VIRTUAL_ENV": ""}
    away = tmp_path / "bin" / "cutset"  # else it looks above the build folder too
    away.parent.mkdir()
    shutil.copy(CUTSET, away)

    def verify(code, env, cwd):
        done = subprocess.run([away, "verify", three, "--json"], capture_output=True, text=True,
                              cwd=cwd, env={**os.environ, **none, **env})
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)["library"] if code == 0 else done.stderr

    error = verify(4, {}, "/")
    assert "was not found" in error and "--onnxruntime" in error
    capi = tmp_path / "env" / "lib" / "python3.99" / "site-packages" / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    (capi / library().name).symlink_to(library())
    (capi / "libonnxruntime_providers_shared.so").touch()
    assert verify(0, {"VIRTUAL_ENV": str(tmp_path / "env")}, "/").startswith(str(capi))
    deep = tmp_path / "work" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "work" / ".venv").symlink_to(tmp_path / "env")
    assert verify(0, {}, deep).startswith(str(tmp_path / "work" / ".venv"))
    python = tmp_path / "python"
    python.mkdir()
    (python / "python3").write_text(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
    (python / "python3").chmod(0o755)
    assert verify(0, {"PATH": f"{python}:/usr/bin:/bin"}, "/") == str(library())
