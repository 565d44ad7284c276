"""Parts out and back: split, check, chain, compare, merge, compare.

Every model is made here. A target takes all but the operators that a test names; the parts are
checked with onnx.checker, chained with ONNX Runtime, and compared bit for bit with the whole.
"""
import json
import os
import pathlib
import stat
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

CUTSET = os.environ["CUTSET"]
F32, I64 = TensorProto.FLOAT, TensorProto.INT64
MODES = ["copy", "inline", "refer"]


# ---- helpers ----

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
    imports = more.pop("opset_imports", [helper.make_opsetid("", opset)])
    made = helper.make_model(graph, opset_imports=imports, **more)
    made.ir_version = ir
    return made


def chain(n=3, shape=(64, 64)):
    """MatMul, Sigmoid, MatMul, Sigmoid ...: Sigmoid on the host gives one part a node."""
    nodes, weights, at = [], [], "x"
    for i in range(n):
        weights.append(weight(f"w{i}", i, shape))
        nodes += [helper.make_node("MatMul", [at, f"w{i}"], [f"m{i}"], f"mm{i}"),
                  helper.make_node("Sigmoid", [f"m{i}"], [f"s{i}"], f"sg{i}")]
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
        for (name, x), y in zip(run_whole(source, feeds).items(), run_whole(merged, feeds).values()):
            assert same(x, y), name
    return a, b


def save(tmp_path, made, name="m.onnx", **external):
    folder = tmp_path / "src"
    folder.mkdir(exist_ok=True)
    onnx.save_model(made, str(folder / name), **external)
    return folder / name


# ---- weights ----

@pytest.mark.parametrize("mode", ["auto", "copy", "inline"])
@pytest.mark.parametrize("external", [False, True])
def test_modes_in_a_new_folder(tmp_path, mode, external):
    more = dict(save_as_external_data=True, location="w.bin", size_threshold=0) if external else {}
    source = save(tmp_path, chain(), **more)
    out = split(tmp_path, source, f"--weights={mode}")
    assert len(parts_of(out)) == 6
    check(out)
    compare(source, out, feed())
    has = (out / "weights").is_dir()
    assert has == (mode == "copy")
    if mode == "copy":
        assert sorted(p.name for p in (out / "weights").iterdir()) == [
            f"part-{i:03}.bin" for i in (0, 2, 4)]
    merge_and_compare(source, out, tmp_path / "merged.onnx", feed())
    assert not (tmp_path / "merged.onnx.data").exists()
    if not external and mode != "copy":  # inline in, inline out: the very same nodes
        a, b = onnx.load(str(source)), onnx.load(str(tmp_path / "merged.onnx"))
        assert a.graph.SerializeToString() == b.graph.SerializeToString()


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("above", [False, True])
def test_refer(tmp_path, external, above):
    more = dict(save_as_external_data=True, location="w.bin", size_threshold=0) if external else {}
    source = save(tmp_path, chain(), **more)
    out = source.parent.parent if above else source.parent
    before = source.read_bytes()
    split(tmp_path, source, "--weights=refer", out=out)
    assert source.read_bytes() == before and not (out / "weights").exists()
    check(out)
    for p, path in parts_of(out):
        assert path.stat().st_size < 2000
        for t in onnx.load(str(path), load_external_data=False).graph.initializer:
            where = {e.key: e.value for e in t.external_data}
            assert where["location"] == ("src/" if above else "") + ("w.bin" if external else "m.onnx")
            assert set(where) <= {"location", "offset", "length", "checksum"}
    compare(source, out, feed())
    _, b = merge_and_compare(source, out, tmp_path / "merged.onnx", feed())
    raw = onnx.load(str(tmp_path / "merged.onnx"), load_external_data=False)
    refers = [t.data_location == TensorProto.EXTERNAL for t in raw.graph.initializer]
    assert refers == [external] * 3  # w.bin lies below tmp_path; what was inline is inline again
    # a second split into the same folder replaces the first, and leaves what is not its own
    (out / "note.txt").write_text("mine")
    split(tmp_path, source, "--weights=refer", "--exclude", "MatMul", out=out)
    assert len(parts_of(out)) == 1
    assert (out / "note.txt").read_text() == "mine"
    assert not (out / "part-003-host.onnx").exists() and source.read_bytes() == before
    assert not list(out.glob(".cutset*"))


def test_auto_refers_where_it_can(tmp_path):
    source = save(tmp_path, chain())
    split(tmp_path, source, out=source.parent)
    loaded = onnx.load(str(parts_of(source.parent)[0][1]), load_external_data=False)
    assert loaded.graph.initializer[0].data_location == TensorProto.EXTERNAL


@pytest.mark.parametrize("external", [False, True])
def test_refer_that_would_go_up(tmp_path, external):
    more = dict(save_as_external_data=True, location="w.bin", size_threshold=0) if external else {}
    source = save(tmp_path, chain(), **more)
    said = split(tmp_path, source, "--weights=refer", code=2)
    assert "--weights=copy" in said and ("w.bin" if external else "m.onnx") in said
    assert str(tmp_path / "out") in said and not (tmp_path / "out").exists()


def test_refer_from_standard_input(tmp_path):
    source = save(tmp_path, chain())
    with open(source, "rb") as file:
        done = subprocess.run([CUTSET, "split", "-", "--target", target(tmp_path, "Sigmoid"),
                               "--weights=refer", "-o", tmp_path / "out"], stdin=file,
                              capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    with open(source, "rb") as file:
        subprocess.run([CUTSET, "split", "-", "--target", target(tmp_path, "Sigmoid"),
                        "--weights=copy", "-o", tmp_path / "out"], stdin=file, check=True,
                       capture_output=True)
    check(tmp_path / "out")
    compare(source, tmp_path / "out", feed())


def test_shared_and_tied_weights(tmp_path):
    made = chain(3)
    for node in made.graph.node:
        if node.op_type == "MatMul":
            node.input[1] = "w0"
    source = save(tmp_path, made)
    out = split(tmp_path, source, "--weights=copy")
    assert [p.name for p in (out / "weights").iterdir()] == ["shared.bin"]
    assert (out / "weights/shared.bin").stat().st_size == 64 * 64 * 4
    check(out)
    compare(source, out, feed())
    said = run("merge", out, "-o", tmp_path / "back.onnx")
    assert "w1" in said and "w2" in said
    b = onnx.load(str(tmp_path / "back.onnx"))
    assert [t.name for t in b.graph.initializer] == ["w0"]
    # tied: two initializers with one place in the file
    source = save(tmp_path, chain(2), save_as_external_data=True, location="w.bin", size_threshold=0)
    tied = onnx.load(str(source), load_external_data=False)
    tied.graph.initializer[1].CopyFrom(tied.graph.initializer[0])
    tied.graph.initializer[1].name = "w1"
    onnx.save(tied, str(source))
    out = split(tmp_path, source, "--weights=copy", out=tmp_path / "tied")
    assert (out / "weights/shared.bin").stat().st_size == 64 * 64 * 4
    check(out)
    compare(source, out, feed())


def test_offsets_and_small_tensors(tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]),
             helper.make_node("MatMul", ["a", "v"], ["n"]), helper.make_node("Sigmoid", ["n"], ["y"])]
    made = model(nodes, [info("x")], [info("y")],
                 [weight("w", 0, (64, 65)), weight("b", 1, (65,)), weight("v", 2, (65, 64))])
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 64
    source = save(tmp_path, made)
    out = split(tmp_path, source, "--weights=copy")
    part = onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
    at = {t.name: {e.key: e.value for e in t.external_data} for t in part.graph.initializer}
    assert at["b"] == {}  # small: inline
    assert at["w"]["offset"] == "0" and at["v"]["offset"] == str(-(-64 * 65 * 4 // 4096) * 4096)
    check(out)
    compare(source, out, feed())


def test_holes_stay_holes(tmp_path):
    folder = tmp_path / "src"
    folder.mkdir()
    n = 4096
    made = model([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Sigmoid", ["m"], ["y"])],
                 [info("x", (1, n))], [info("y", (1, n))])
    t = made.graph.initializer.add(name="w", data_type=F32, dims=[n, n])
    t.data_location = TensorProto.EXTERNAL
    for k, v in dict(location="w.bin", offset="0", length=str(4 * n * n)).items():
        t.external_data.add(key=k, value=v)
    with open(folder / "w.bin", "wb") as file:
        file.truncate(4 * n * n)
    onnx.save(made, str(folder / "m.onnx"))
    for mode in ("copy", "inline"):
        out = split(tmp_path, folder / "m.onnx", f"--weights={mode}", out=tmp_path / mode)
        path = out / ("weights/part-000.bin" if mode == "copy" else "part-000-mine.onnx")
        assert path.stat().st_size >= 4 * n * n
        assert path.stat().st_blocks * 512 < 4 << 20, mode
        check(out)


def test_links(tmp_path):
    source = save(tmp_path, chain(), save_as_external_data=True, location="w.bin", size_threshold=0)
    (source.parent / "w.bin").rename(tmp_path / "blob")
    (source.parent / "w.bin").symlink_to(tmp_path / "blob")
    assert "--follow-links" in split(tmp_path, source, code=3)
    assert "symbolic link" in split(tmp_path, source, "--follow-links", "--weights=refer",
                                    out=source.parent, code=2)
    for mode in ("auto", "copy", "inline"):
        out = split(tmp_path, source, "--follow-links", f"--weights={mode}", out=tmp_path / mode)
        check(out)
        run("merge", out, "-o", tmp_path / f"{mode}.onnx")
        a = tensors(onnx.load(str(tmp_path / f"{mode}.onnx")).graph)
        known = tensors(chain().graph)
        assert all(same(a[k], known[k]) for k in known)


def test_checksum_and_odd_spellings(tmp_path):
    source = save(tmp_path, chain(1), save_as_external_data=True, location="w.bin", size_threshold=0)
    made = onnx.load(str(source), load_external_data=False)
    t = made.graph.initializer[0]
    for e in t.external_data:
        if e.key == "location":
            e.value = "./w.bin"
    t.external_data.add(key="checksum", value="0" * 40)
    kept = [e for e in t.external_data if e.key != "length"]
    del t.external_data[:]
    t.external_data.extend(kept)
    onnx.save(made, str(source))
    out = split(tmp_path, source, "--weights=refer", out=tmp_path)
    where = {e.key: e.value for e in onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
             .graph.initializer[0].external_data}
    assert where == {"location": "src/w.bin", "offset": "0", "length": str(64 * 64 * 4),
                     "checksum": "0" * 40}
    out = split(tmp_path, source, "--weights=copy", out=tmp_path / "copied")
    where = {e.key for e in onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
             .graph.initializer[0].external_data}
    assert where == {"location", "offset", "length"}


# ---- what a part holds ----

def test_metadata_and_unknown_fields(tmp_path):
    made = chain(2)
    made.producer_name, made.producer_version, made.domain, made.model_version = "p", "1", "d", 5
    made.doc_string = "doc"
    helper.set_model_props(made, {"a": "b"})
    made.graph.doc_string = "graph doc"
    made.opset_import.extend([helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("", 13)])
    unknown = b"\xfa\x3e\x03abc"  # field 1007, bytes
    node = made.graph.node[0].SerializeToString() + unknown
    folder = tmp_path / "src"
    folder.mkdir()
    made.graph.node[0].ParseFromString(node)
    data = made.SerializeToString() + unknown
    source = folder / "m.onnx"
    source.write_bytes(data)
    out = split(tmp_path, source)
    for _, path in parts_of(out):
        part = onnx.load(str(path))
        assert (part.producer_name, part.producer_version, part.domain) == ("p", "1", "d")
        assert (part.model_version, part.doc_string, part.ir_version) == (5, "doc", 8)
        assert part.metadata_props[0].key == "a" and part.graph.doc_string == "graph doc"
        assert [(o.domain, o.version) for o in part.opset_import] == [("", 17)]
        assert path.read_bytes().count(unknown) == (2 if path.name.startswith("part-000") else 1)
    merge_and_compare(source, out, tmp_path / "merged.onnx", feed(),
                      dropped=["opset import com.microsoft"])
    assert (tmp_path / "merged.onnx").read_bytes().count(unknown) == 2


def test_value_infos_and_annotations(tmp_path):
    made = chain(2)
    made.graph.value_info.extend([info("m0"), info("s0", ("N", 64)), info("m1")])
    made.graph.value_info[1].doc_string = "kept"
    note = made.graph.quantization_annotation.add(tensor_name="m1")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    made.graph.initializer.append(weight("scale", 9, ()))
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    parts = [onnx.load(str(path)) for _, path in parts_of(out)]
    assert [v.doc_string for v in parts[2].graph.input] == ["kept"]
    assert [v.doc_string for v in parts[1].graph.output] == ["kept"]
    assert [len(p.graph.quantization_annotation) for p in parts] == [0, 0, 1, 1]
    assert "scale" in [t.name for t in parts[2].graph.initializer]
    a, b = merge_and_compare(source, out, tmp_path / "merged.onnx", feed())
    assert a.graph.quantization_annotation == b.graph.quantization_annotation
    assert [v.name for v in b.graph.value_info] == ["m0", "s0", "m1"]


def test_inferred_types_and_symbols(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sigmoid", ["r"], ["s"]),
             helper.make_node("Concat", ["s", "s"], ["c"], axis=0), helper.make_node("Sigmoid", ["c"], ["y"])]
    source = save(tmp_path, model(nodes, [info("x", ("my batch", 4))], [info("y", (None, 4))]))
    out = split(tmp_path, source, "--type", 'c=f32[2*"my batch",4]')
    check(out)
    parts = [onnx.load(str(path)) for _, path in parts_of(out)]
    dims = [[d.dim_param or d.dim_value for d in p.graph.output[0].type.tensor_type.shape.dim]
            for p in parts]
    assert dims[0] == ["my batch", 4] and dims[1] == ["my batch", 4]
    assert dims[2] == ['2*"my batch"', 4]
    compare(source, out, feed((3, 4)))


def test_constants(tmp_path):
    big = weight("", 5)
    nodes = [helper.make_node("Constant", [], ["c"], value=big),
             helper.make_node("Constant", [], ["dead"], value_float=1.0),
             helper.make_node("Constant", [], ["k"], value_floats=[0.5]),
             helper.make_node("MatMul", ["x", "c"], ["a"]), helper.make_node("Sigmoid", ["a"], ["s"]),
             helper.make_node("Mul", ["s", "k"], ["t"]), helper.make_node("MatMul", ["t", "c"], ["u"]),
             helper.make_node("Add", ["u", "k"], ["y"])]
    source = save(tmp_path, model(nodes, [info("x")], [info("y")]))
    for mode in MODES:
        out = split(tmp_path, source, f"--weights={mode}",
                    out=source.parent if mode == "refer" else tmp_path / mode)
        check(out)
        compare(source, out, feed())
        ops = [[n.op_type for n in onnx.load(str(p)).graph.node] for _, p in parts_of(out)]
        assert ops == [["Constant", "MatMul"], ["Sigmoid"],
                       ["Constant", "Mul", "Constant", "MatMul", "Add"]]
        a, b = merge_and_compare(source, out, tmp_path / f"{mode}.onnx", feed(), dropped=["dead"])
        assert [n.op_type for n in b.graph.node] == [n.op_type for n in a.graph.node
                                                      if n.output[0] != "dead"]
        for n in b.graph.node:  # inline again, bytes and all
            assert n.SerializeToString() in [m.SerializeToString() for m in a.graph.node]


def test_outputs_that_no_node_makes(tmp_path):
    made = chain(1)
    made.graph.output.extend([info("x"), info("w0", (64, 64)), info("s0"), info("m0")])
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    froms = [o["from"] for o in plan_of(out)["outputs"]] if "outputs" in plan_of(out) else \
            [o["from"] for o in plan_of(out)["model"]["outputs"]]
    assert froms == [1, "input", "weight", 1, 0]
    check(out)
    compare(source, out, feed())
    run("merge", out, "-o", tmp_path / "merged.onnx")
    b = onnx.load(str(tmp_path / "merged.onnx"))
    assert [o.name for o in b.graph.output] == ["s0", "x", "w0", "s0", "m0"]
    assert b.graph == onnx.load(str(source)).graph


def test_ir_3(tmp_path):
    made = chain(2)
    made.ir_version = 3
    made.opset_import[0].version = 8
    made.graph.input.extend([info("w0", (64, 64)), info("w1", (64, 64))])
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    check(out)
    part = onnx.load(str(parts_of(out)[2][1]))
    assert part.ir_version == 3 and [i.name for i in part.graph.input] == ["s0", "w1"]
    compare(source, out, feed())
    merge_and_compare(source, out, tmp_path / "merged.onnx", feed())


def test_overridable_default(tmp_path):
    made = chain(2)
    made.graph.node[2].input[1] = "w0"
    made.graph.input.append(info("w0", (64, 64)))
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    check(out)
    for i in (0, 2):
        part = onnx.load(str(parts_of(out)[i][1])).graph
        assert "w0" in [t.name for t in part.initializer] and "w0" in [v.name for v in part.input]
    compare(source, out, feed())
    compare(source, out, feed() | feed((64, 64), 11, "w0"))
    merge_and_compare(source, out, tmp_path / "merged.onnx", feed() | feed((64, 64), 11, "w0"))


def test_sparse(tmp_path):
    values = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "sp")
    indices = numpy_helper.from_array(np.array([1, 65, 4000], np.int64))
    sparse = helper.make_sparse_tensor(values, indices, [64, 64])
    nodes = [helper.make_node("MatMul", ["x", "sp"], ["a"]), helper.make_node("Sigmoid", ["a"], ["s"]),
             helper.make_node("MatMul", ["s", "sp"], ["y"])]
    source = save(tmp_path, model(nodes, [info("x")], [info("y")], sparse_initializer=[sparse]))
    out = split(tmp_path, source)
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path))
    for i, n in ((0, 1), (1, 0), (2, 1)):
        assert len(onnx.load(str(parts_of(out)[i][1])).graph.sparse_initializer) == n
    run("merge", out, "-o", tmp_path / "merged.onnx")
    assert onnx.load(str(tmp_path / "merged.onnx")).graph == onnx.load(str(source)).graph


def nested(depth, captured, label):
    """An If whose branch holds an If ...: the innermost adds the captured value and a weight."""
    w = weight(f"body_{label}", 30 + depth)
    inner_out = f"o_{label}_{depth}"
    if depth == 0:
        nodes = [helper.make_node("MatMul", [captured, f"body_{label}"], [f"t_{label}"]),
                 helper.make_node("Add", [f"t_{label}", "outer_w"], [inner_out])]
        return helper.make_graph(nodes, "g", [], [info(inner_out)], [w])
    node = helper.make_node("If", ["cond"], [inner_out],
                            then_branch=nested(depth - 1, captured, label + "t"),
                            else_branch=nested(depth - 1, captured, label + "e"))
    return helper.make_graph([node], "g", [], [info(inner_out)])


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("external", [False, True])
def test_captures_two_levels_deep(tmp_path, mode, external):
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sigmoid", ["r"], ["s"]),
             helper.make_node("If", ["cond"], ["f"], then_branch=nested(2, "s", "a"),
                              else_branch=nested(2, "r", "b")),
             helper.make_node("Sigmoid", ["f"], ["y"])]
    made = model(nodes, [info("x"), info("cond", (), TensorProto.BOOL)], [info("y")],
                 [weight("outer_w", 3, (2, 64))])
    more = dict(save_as_external_data=True, location="w.bin", size_threshold=0,
                convert_attribute=True) if external else {}
    source = save(tmp_path, made, **more)
    out = split(tmp_path, source, f"--weights={mode}",
                out=source.parent if mode == "refer" else tmp_path / "out")
    check(out)
    p = plan_of(out)["parts"][2]
    assert set(p["inputs"]) == {"cond", "s", "r"}
    for value in (True, False):
        feeds = feed() | {"cond": np.array(value)}
        compare(source, out, feeds)
    merge_and_compare_loose(source, out, tmp_path / "merged.onnx", feed() | {"cond": np.array(True)})


def merge_and_compare_loose(source, out, merged, feeds):
    run("merge", out, "-o", merged)
    onnx.checker.check_model(str(merged))
    a, b = onnx.load(str(source)), onnx.load(str(merged))
    assert [n.output for n in a.graph.node] == [n.output for n in b.graph.node]
    for (name, x), y in zip(run_whole(source, feeds).items(), run_whole(merged, feeds).values()):
        assert same(x, y), name


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("external", [False, True])
def test_functions_that_call_functions(tmp_path, mode, external):
    onnx_op = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    big = weight("", 40)
    inner = helper.make_function("mine", "Inner", ["a"], ["b"],
                                 [helper.make_node("Constant", [], ["c"], value=big),
                                  helper.make_node("MatMul", ["a", "c"], ["b"])], onnx_op)
    outer = helper.make_function("mine", "Outer", ["a"], ["b"],
                                 [helper.make_node("Inner", ["a"], ["t"], domain="mine"),
                                  helper.make_node("Relu", ["t"], ["b"])], onnx_op)
    dead = helper.make_function("other", "Dead", ["a"], ["b"],
                                [helper.make_node("Relu", ["a"], ["b"])], onnx_op[:1])
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Sigmoid", ["r"], ["s"]),
             helper.make_node("Outer", ["s"], ["o"], domain="mine"),
             helper.make_node("Sigmoid", ["o"], ["t"]),
             helper.make_node("Inner", ["t"], ["y"], domain="mine")]
    made = model(nodes, [info("x")], [info("y")], functions=[outer, dead, inner],
                 opset_imports=[*onnx_op, helper.make_opsetid("other", 1)])
    made.graph.value_info.extend([info("o")])
    more = dict(save_as_external_data=True, location="w.bin", size_threshold=0,
                convert_attribute=True) if external else {}
    source = save(tmp_path, made, **more)
    out = split(tmp_path, source, f"--weights={mode}",
                out=source.parent if mode == "refer" else tmp_path / "out")
    parts = [onnx.load(str(p), load_external_data=False) for _, p in parts_of(out)]
    assert [[f.name for f in p.functions] for p in parts] == [[], [], ["Outer", "Inner"], [], ["Inner"]]
    assert [sorted(o.domain for o in p.opset_import) for p in parts] == [
        [""], [""], ["", "mine"], [""], ["", "mine"]]
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path))
    compare(source, out, feed())
    said = run("merge", out, "-o", tmp_path / "merged.onnx")
    assert "function other:Dead" in said and "opset import other" in said
    merged = onnx.load(str(tmp_path / "merged.onnx"))
    assert [f.name for f in merged.functions] == ["Outer", "Inner"]
    assert same(run_whole(source, feed())["y"], run_whole(tmp_path / "merged.onnx", feed())["y"])


def test_unknown_rank_at_a_boundary(tmp_path):
    nodes = [helper.make_node("Relu", ["x"], ["r"]),
             helper.make_node("Odd", ["r"], ["o"], domain="odd"), helper.make_node("Sigmoid", ["o"], ["y"])]
    made = model(nodes, [info("x")], [info("y", (2, None))],
                 opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("odd", 1)])
    source = save(tmp_path, made)
    said = split(tmp_path, source, "--pin", "o=mine", code=3)
    assert "--type 'o=f32[?,?]'" in said and "Odd" in said and not (tmp_path / "out").exists()
    out = split(tmp_path, source, "--pin", "o=mine", "--type", "o=f32[?,?]")
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path))
    part = onnx.load(str(parts_of(out)[0][1]))
    assert len(part.graph.output[0].type.tensor_type.shape.dim) == 2


def test_sequences_cross(tmp_path):
    nodes = [helper.make_node("SplitToSequence", ["x"], ["q"], axis=1),
             helper.make_node("SequenceAt", ["q", "i"], ["a"]), helper.make_node("Sigmoid", ["a"], ["y"])]
    made = model(nodes, [info("x"), info("i", (), I64)], [info("y", (2, None))])
    source = save(tmp_path, made)
    out = split(tmp_path, source, host=("SequenceAt",))
    check(out)
    feeds = feed() | {"i": np.array(3, np.int64)}
    assert same(run_parts(out, feeds)["y"], run_whole(source, feeds)["y"])


# ---- the folder ----

def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_replaces_an_earlier_split(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source, "--weights=copy")
    (out / "build").mkdir()
    (out / "build" / "journal.jsonl").write_text("{}\n")
    before = listing(tmp_path)
    split(tmp_path, source, "--exclude", "MatMul")
    assert listing(out) == ["part-000-host.onnx", "plan.json"]
    assert len(before) > len(listing(tmp_path))
    assert not [p for p in listing(tmp_path) if "cutset" in p]


def test_refuses_foreign_folders(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    (out / "mine.txt").write_text("x")
    before = {p: p.read_bytes() for p in out.iterdir()}
    for mode in ("auto", "copy", "inline"):
        assert "mine.txt" in split(tmp_path, source, f"--weights={mode}", code=2)
    assert before == {p: p.read_bytes() for p in out.iterdir()}
    assert "is a file" in split(tmp_path, source, out=source, code=2)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    split(tmp_path, source, out=tmp_path / "nowhere", code=2)
    assert str(tmp_path / "no") in split(tmp_path, source, out=tmp_path / "no" / "out", code=4)
    (tmp_path / "file").write_text("")
    split(tmp_path, source, out=tmp_path / "file" / "out", code=4)
    assert not [p for p in listing(tmp_path) if ".cutset" in p]


def test_in_place_keeps_foreign_files(tmp_path):
    source = save(tmp_path, chain())
    (source.parent / "part-001-host.onnx").write_text("mine")
    said = split(tmp_path, source, "--weights=refer", out=source.parent, code=2)
    assert "part-001-host.onnx" in said
    assert listing(source.parent) == ["m.onnx", "part-001-host.onnx"]
    (source.parent / "part-001-host.onnx").unlink()
    (source.parent / "plan.json").write_text("{}")
    assert "plan.json" in split(tmp_path, source, "--weights=refer", out=source.parent, code=2)


def test_never_replaces_its_own_source(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    part = parts_of(out)[0][1]
    before = listing(out)
    split(tmp_path, part, "--weights=inline", out=out, host=("MatMul",), code=2)
    assert part.name in split(tmp_path, part, "--weights=refer", out=out, code=2)
    assert listing(out) == before


def test_an_empty_folder_and_the_current_one(tmp_path):
    source = save(tmp_path, chain())
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o750)
    split(tmp_path, source, out=empty)
    check(empty)
    assert stat.S_IMODE(empty.stat().st_mode) == 0o750
    here = tmp_path / "here"
    here.mkdir()
    inode = here.stat().st_ino
    for _ in range(2):
        run("split", source, "--target", target(tmp_path, "Sigmoid"), "--weights=copy", "-o", ".",
            cwd=here)
        assert here.stat().st_ino == inode
        check(here)
    assert not [p for p in listing(here) if ".cutset" in p]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_parent(tmp_path):
    source = save(tmp_path, chain())
    parent = tmp_path / "parent"
    parent.mkdir(mode=0o500)
    split(tmp_path, source, out=parent / "out", code=4)


def test_same_bytes_twice(tmp_path):
    source = save(tmp_path, chain())
    a = split(tmp_path, source, "--weights=copy", out=tmp_path / "a")
    b = split(tmp_path, source, "--weights=copy", out=tmp_path / "b")
    assert listing(a) == listing(b)
    for name in listing(a):
        if (a / name).is_file():
            assert (a / name).read_bytes() == (b / name).read_bytes(), name


# ---- merge ----

def test_merge_refuses(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    parts = [path for _, path in parts_of(out)]
    assert "source" in run("merge", out, "-o", source, code=2)
    assert "part" in run("merge", out, "-o", parts[0], code=2)
    kept = parts[1].read_bytes()
    parts[1].write_bytes(parts[0].read_bytes())
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=3)
    parts[1].write_bytes(kept[:-7])
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=3)
    parts[1].unlink()
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=4)
    parts[1].write_bytes(kept)
    run("merge", out, "-o", tmp_path / "no" / "m2.onnx", code=4)
    assert not (tmp_path / "m2.onnx").exists()
    run("merge", out, "-o", tmp_path / "m2.onnx")


def test_merge_of_unsorted_nodes(tmp_path):
    made = chain(2)
    nodes = list(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend([nodes[2], nodes[0], nodes[3], nodes[1]])
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    check(out)
    run("merge", out, "-o", tmp_path / "merged.onnx")
    assert onnx.load(str(tmp_path / "merged.onnx")).graph == made.graph
