"""The command at its edges: full outputs, signals, empty and overwritten models, wrong values."""
import json
import os
import signal
import subprocess
import time

import pytest

CUTSET = os.environ["CUTSET"]
GRAPH = "input %x : f32[2]\n%y = Relu(%x)\noutput %y\n"


def run(*args, code=0, **more):
    """Its one line on stderr where it fails, else its stdout."""
    done = subprocess.run([CUTSET, *map(str, args)], text=True, stdin=more.pop("stdin", subprocess.DEVNULL),
                          stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          timeout=120, **more)
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}\n{done.stdout}"
    if code:
        assert done.stderr.endswith("\n") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr if code else done.stdout


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "g.cut"
    path.write_text(GRAPH)
    return path


# ---- standard output ----

@pytest.mark.parametrize("args", [["targets"], ["targets", "--json"], ["targets", "acc"], ["--help"],
                                  ["help"], ["--version"], ["plan", "--help"], ["inspect", "GRAPH"],
                                  ["inspect", "GRAPH", "--json"], ["inspect", "GRAPH", "--text"],
                                  ["plan", "GRAPH", "--target", "acc"],
                                  ["plan", "GRAPH", "--target", "acc", "--json"]])
def test_full_output(graph, args):
    args = [graph if a == "GRAPH" else a for a in args]
    with open("/dev/full", "w") as full:
        said = run(*args, stdout=full, code=4)
    assert said == "cutset: cannot write standard output: No space left on device\n"


def test_closed_pipe(graph):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        said = run("inspect", graph, stdout=pipe, code=4)
    assert said == "cutset: cannot write standard output: Broken pipe\n"


# ---- signals ----

def start(*args, ignored=()):
    def prepare():  # a shell's "&" may have had some ignored
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN if s in ignored else signal.SIG_DFL)
    process = subprocess.Popen([CUTSET, *map(str, args)], stdin=subprocess.PIPE, preexec_fn=prepare,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"# a comment\n" * 100000)  # more than a pipe holds: it reads by now
    process.stdin.flush()
    return process


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_stop_cleanly(tmp_path, name):
    process = start("plan", "-", "--target", "acc", "-o", tmp_path / "p.json")
    time.sleep(0.2)
    process.send_signal(getattr(signal, name))
    assert process.wait(60) == 130
    assert process.stderr.read() == b"cutset: interrupted during reading standard input\n"
    assert process.stdout.read() == b"" and not list(tmp_path.iterdir())
    process.stdin.close()


def test_ignored_signals_stay_ignored():
    process = start("inspect", "-", ignored=[signal.SIGHUP])  # nohup
    process.send_signal(signal.SIGHUP)
    out, said = process.communicate(GRAPH.encode(), timeout=60)
    assert process.returncode == 0 and out and not said


# ---- models ----

def test_empty_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.touch()
    for command in (["inspect", path], ["plan", path, "--target", "acc"]):
        assert f"{path} is empty: " in run(*command, code=3)
    assert "standard input is empty: " in run("inspect", "-", code=3)
    for text in ("\n", "# nothing\n", " \n# nothing"):
        path.write_text(text)
        run("inspect", path)


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "m.cut"
    path.write_text(GRAPH + "%z = (\n")
    assert run("inspect", path, code=3).startswith(f"cutset: {path}: line 4, ")
    with open(path) as file:
        assert run("inspect", "-", stdin=file, code=3).startswith("cutset: standard input: line 4, ")
    path.write_bytes(b"\x08\x08\x3a\x05ab")
    assert run("inspect", path, code=3).startswith(f"cutset: {path}: ")
    assert run("inspect", tmp_path / "no", code=4).count(str(tmp_path)) == 1


def test_a_plan_never_replaces_its_model(graph, tmp_path):
    link, hard = tmp_path / "link", tmp_path / "hard"
    link.symlink_to(graph)
    os.link(graph, hard)
    for path in (graph, link, hard, tmp_path / "." / "g.cut"):
        said = run("plan", graph, "--target", "acc", "-o", path, code=2)
        assert str(path) in said and graph.read_text() == GRAPH and link.is_symlink()
    run("plan", graph, "--target", "acc", "-o", tmp_path / "plan.json")
    run("plan", graph, "--target", "acc", "-o", tmp_path / "plan.json")


def test_a_plan_never_replaces_weights(tmp_path):
    onnx = pytest.importorskip("onnx")
    numpy = pytest.importorskip("numpy")
    info = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [info("x", 1, [2, 64])], [info("y", 1, [2, 64])],
        [onnx.numpy_helper.from_array(numpy.ones((64, 64), "float32"), "w")]))
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin",
              size_threshold=0)
    before = [(tmp_path / name).read_bytes() for name in ("m.onnx", "w.bin")]
    for name in ("m.onnx", "w.bin"):
        run("plan", tmp_path / "m.onnx", "--target", "acc", "-o", tmp_path / name, code=2)
    assert before == [(tmp_path / name).read_bytes() for name in ("m.onnx", "w.bin")]


# ---- values ----

def test_values_that_are_refused(graph):
    for number in ("+1", "0", "-1", "1.0", "", "+"):
        assert "--min-nodes" in run("plan", graph, "--target", "acc", f"--min-nodes={number}", code=2)
    assert "-o" in run("plan", graph, "--target", "acc", "-o", "", code=2)


# ---- a plan that lies elsewhere ----

def test_split_records_where_the_model_is(tmp_path):
    """The plan's own path no longer holds: it was printed in one folder and saved in another."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    info = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["r"]), onnx.helper.make_node("Neg", ["r"], ["y"])],
        "g", [info("x", 1, [2])], [info("y", 1, [2])]), ir_version=8,
        opset_imports=[onnx.helper.make_opsetid("", 17)])
    onnx.save(made, tmp_path / "m.onnx")
    plans = tmp_path / "plans"
    plans.mkdir()
    plan = run("plan", "m.onnx", "--target", "onnxruntime", "--exclude", "Neg", "--json", cwd=tmp_path)
    (plans / "p.json").write_text(plan)
    run("split", "m.onnx", "--plan", plans / "p.json", "-o", "out", cwd=tmp_path)
    assert json.loads((tmp_path / "out/plan.json").read_text())["model"]["path"] == "../m.onnx"
    run("merge", "out", "-o", "again.onnx", cwd=tmp_path)
    assert onnx.load(tmp_path / "again.onnx").graph.node == made.graph.node
