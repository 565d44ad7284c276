"""For test_emit*.py: models made in place, split, checked, chained, compared, merged.

A target takes all but the operators that a test names; the parts are checked with onnx.checker,
chained with ONNX Runtime, and compared bit for bit with the whole.
"""
import json
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

CUTSET = os.environ["CUTSET"]
F32, I64 = TensorProto.FLOAT, TensorProto.INT64
EXTERNAL = dict(save_as_external_data=True, location="w.bin", size_threshold=0)
MODES = ["copy", "inline", "refer"]
op, opset_id = helper.make_node, helper.make_opsetid


def run(*args, code=0, cwd=None):
    done = subprocess.run([CUTSET, *map(str, args)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == code, f"exit {done.returncode}: {done.stderr}\n{done.stdout[-2000:]}"
    if code:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr if code else done.stdout


def target(folder, *host_ops, name="mine"):
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nsummary: all but a few\nweights: baked\n"
                    "memory: {host_base: 0, host_per_weight_byte: 1.0, device_base: 0, "
                    "device_per_weight_byte: 1.0}\n"
                    f"nodes: {{all: true, except: [{', '.join(host_ops)}]}}\n")
    return path


def info(name, shape=(2, 64), elem=F32):
    return helper.make_tensor_value_info(name, elem, shape)


def weight(name, seed, shape=(64, 64)):
    data = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 8
    return numpy_helper.from_array(data, name)


def model(nodes, inputs, outputs, weights=(), ir=8, opset=17, **more):
    graph_more = {k: more.pop(k) for k in ("value_info", "sparse_initializer") if k in more}
    graph = helper.make_graph(list(nodes), "net", inputs, outputs, list(weights), **graph_more)
    imports = more.pop("opset_imports", [opset_id("", opset)])
    made = helper.make_model(graph, opset_imports=imports, **more)
    made.ir_version = ir
    return made


def chain(n=3, shape=(64, 64)):
    """MatMul, Sigmoid, MatMul, Sigmoid ...: Sigmoid on the host gives one part a node."""
    nodes, weights, at = [], [], "x"
    for i in range(n):
        weights.append(weight(f"w{i}", i, shape))
        nodes += [op("MatMul", [at, f"w{i}"], [f"m{i}"], f"mm{i}"),
                  op("Sigmoid", [f"m{i}"], [f"s{i}"], f"sg{i}")]
        at = f"s{i}"
    return model(nodes, [info("x")], [info(at)], weights)


def split(folder, source, *options, host=("Sigmoid",), out=None, code=0):
    out = out if out is not None else folder / "out"
    said = run("split", source, "--target", target(pathlib.Path(folder), *host), "-o", out,
               *options, code=code)
    return said if code else out


def plan_of(out):
    return json.loads((out / "plan.json").read_text())


def parts_of(out):
    return [(p, out / p["file"]) for p in plan_of(out)["parts"]]


def check(out):
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path), full_check=True)
        loaded = onnx.load(str(path), load_external_data=False)
        assert loaded.graph.name and loaded.graph.node


def session(path):
    opts = ort.SessionOptions()
    opts.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    opts.intra_op_num_threads = 1
    opts.log_severity_level = 3
    return ort.InferenceSession(str(path), opts, providers=["CPUExecutionProvider"])


def run_whole(source, feeds):
    s = session(source)
    given = {i.name for i in s.get_inputs()} | {i.name for i in s.get_overridable_initializers()}
    return dict(zip([o.name for o in s.get_outputs()],
                    s.run(None, {k: v for k, v in feeds.items() if k in given})))


def run_parts(out, feeds):
    known = dict(feeds)
    for _, path in parts_of(out):
        s = session(path)
        given = [i.name for i in s.get_inputs()]
        given += [i.name for i in s.get_overridable_initializers() if i.name in known]
        names = [o.name for o in s.get_outputs()]
        known.update(zip(names, s.run(names, {n: known[n] for n in given})))
    return known


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=np.asarray(a).dtype.kind == "f")


def compare(source, out, feeds):
    known = run_parts(out, feeds)
    for name, value in run_whole(source, feeds).items():
        if name in known:
            assert same(value, known[name]), name


def feed(shape=(2, 64), seed=7, name="x"):
    return {name: np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def tensors(graph):
    """All weights of a loaded model's main graph, as arrays."""
    found = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    return found


def without_data(node):
    """A node's bytes, apart from where its tensors' data is."""
    copy = onnx.NodeProto.FromString(node.SerializeToString())
    for a in copy.attribute:
        if a.HasField("t"):
            a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t), a.t.name))
    return copy.SerializeToString()


def merge_and_compare(source, out, merged, feeds=None, dropped=()):
    said = run("merge", out, "-o", merged)
    for text in dropped:
        assert text in said
    onnx.checker.check_model(str(merged), full_check=True)
    a, b = onnx.load(str(source)), onnx.load(str(merged))
    live = [n for n in a.graph.node if n.op_type != "Constant"]
    back = [n for n in b.graph.node if n.op_type != "Constant"]
    assert [without_data(n) for n in live] == [without_data(n) for n in back]
    ours, theirs = tensors(b.graph), tensors(a.graph)
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype and same(value, theirs[name]), name
    assert [i.name for i in b.graph.output] == [i.name for i in a.graph.output]
    kept = [i.name for i in a.graph.input]
    assert [i.name for i in b.graph.input] == [n for n in kept if n not in theirs or n in ours]
    if feeds is not None:
        back = run_whole(merged, feeds)
        for name, value in run_whole(source, feeds).items():
            assert same(value, back[name]), name
    return a, b


def save(tmp_path, made, name="m.onnx", **external):
    folder = tmp_path / "src"
    folder.mkdir(exist_ok=True)
    onnx.save_model(made, str(folder / name), **external)
    return folder / name


def merge_and_compare_loose(source, out, merged, feeds):
    run("merge", out, "-o", merged)
    onnx.checker.check_model(str(merged))
    a, b = onnx.load(str(source)), onnx.load(str(merged))
    assert [n.output for n in a.graph.node] == [n.output for n in b.graph.node]
    back = run_whole(merged, feeds)
    for name, value in run_whole(source, feeds).items():
        assert same(value, back[name]), name
