"""What a part of a split holds: metadata, types, constants, bodies, functions, and back again."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from emit_models import *

def test_metadata_and_unknown_fields(tmp_path):
    made = chain(2)
    made.producer_name, made.producer_version, made.domain, made.model_version = "p", "1", "d", 5
    made.doc_string = "doc"
    helper.set_model_props(made, {"a": "b"})
    made.graph.doc_string = "graph doc"
    made.opset_import.extend([opset_id("com.microsoft", 1), opset_id("", 13)])
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
    nodes = [op("Relu", ["x"], ["r"]), op("Sigmoid", ["r"], ["s"]),
             op("Concat", ["s", "s"], ["c"], axis=0), op("Sigmoid", ["c"], ["y"])]
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
    nodes = [op("Constant", [], ["c"], value=big),
             op("Constant", [], ["dead"], value_float=1.0),
             op("Constant", [], ["k"], value_floats=[0.5]),
             op("MatMul", ["x", "c"], ["a"]), op("Sigmoid", ["a"], ["s"]),
             op("Mul", ["s", "k"], ["t"]), op("MatMul", ["t", "c"], ["u"]),
             op("Add", ["u", "k"], ["y"])]
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
    nodes = [op("MatMul", ["x", "sp"], ["a"]), op("Sigmoid", ["a"], ["s"]),
             op("MatMul", ["s", "sp"], ["y"])]
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
        nodes = [op("MatMul", [captured, f"body_{label}"], [f"t_{label}"]),
                 op("Add", [f"t_{label}", "outer_w"], [inner_out])]
        return helper.make_graph(nodes, "g", [], [info(inner_out)], [w])
    node = op("If", ["cond"], [inner_out],
                            then_branch=nested(depth - 1, captured, label + "t"),
                            else_branch=nested(depth - 1, captured, label + "e"))
    return helper.make_graph([node], "g", [], [info(inner_out)])


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("external", [False, True])
def test_captures_two_levels_deep(tmp_path, mode, external):
    nodes = [op("Relu", ["x"], ["r"]), op("Sigmoid", ["r"], ["s"]),
             op("If", ["cond"], ["f"], then_branch=nested(2, "s", "a"),
                              else_branch=nested(2, "r", "b")),
             op("Sigmoid", ["f"], ["y"])]
    made = model(nodes, [info("x"), info("cond", (), TensorProto.BOOL)], [info("y")],
                 [weight("outer_w", 3, (2, 64))])
    more = dict(EXTERNAL, convert_attribute=True) if external else {}
    source = save(tmp_path, made, **more)
    out = split(tmp_path, source, f"--weights={mode}",
                out=source.parent if mode == "refer" else tmp_path / "out")
    check(out)
    p = plan_of(out)["parts"][2]
    assert set(p["inputs"]) == {"cond", "s", "r"}
    for value in (True, False):
        feeds = feed() | {"cond": np.array(value)}
        compare(source, out, feeds)
    merge_and_compare_loose(source, out, tmp_path / "merged.onnx", feeds)


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("external", [False, True])
def test_functions_that_call_functions(tmp_path, mode, external):
    onnx_op = [opset_id("", 17), opset_id("mine", 1)]
    big = weight("", 40)
    inner = helper.make_function("mine", "Inner", ["a"], ["b"],
                                 [op("Constant", [], ["c"], value=big),
                                  op("MatMul", ["a", "c"], ["b"])], onnx_op)
    outer = helper.make_function("mine", "Outer", ["a"], ["b"],
                                 [op("Inner", ["a"], ["t"], domain="mine"),
                                  op("Relu", ["t"], ["b"])], onnx_op)
    dead = helper.make_function("other", "Dead", ["a"], ["b"],
                                [op("Relu", ["a"], ["b"])], onnx_op[:1])
    nodes = [op("Relu", ["x"], ["r"]), op("Sigmoid", ["r"], ["s"]),
             op("Outer", ["s"], ["o"], domain="mine"),
             op("Sigmoid", ["o"], ["t"]),
             op("Inner", ["t"], ["y"], domain="mine")]
    made = model(nodes, [info("x")], [info("y")], functions=[outer, dead, inner],
                 opset_imports=[*onnx_op, opset_id("other", 1)])
    made.graph.value_info.extend([info("o")])
    more = dict(EXTERNAL, convert_attribute=True) if external else {}
    source = save(tmp_path, made, **more)
    out = split(tmp_path, source, f"--weights={mode}",
                out=source.parent if mode == "refer" else tmp_path / "out")
    parts = [onnx.load(str(p), load_external_data=False) for _, p in parts_of(out)]
    assert [[f.name for f in p.functions] for p in parts] == [
        [], [], ["Outer", "Inner"], [], ["Inner"]]
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
    nodes = [op("Relu", ["x"], ["r"]),
             op("Odd", ["r"], ["o"], domain="odd"), op("Sigmoid", ["o"], ["y"])]
    made = model(nodes, [info("x")], [info("y", (2, None))],
                 opset_imports=[opset_id("", 17), opset_id("odd", 1)])
    source = save(tmp_path, made)
    said = split(tmp_path, source, "--pin", "o=mine", code=3)
    assert "--type 'o=f32[?,?]'" in said and "Odd" in said and not (tmp_path / "out").exists()
    out = split(tmp_path, source, "--pin", "o=mine", "--type", "o=f32[?,?]")
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path))
    part = onnx.load(str(parts_of(out)[0][1]))
    assert len(part.graph.output[0].type.tensor_type.shape.dim) == 2


def test_sequences_cross(tmp_path):
    nodes = [op("SplitToSequence", ["x"], ["q"], axis=1),
             op("SequenceAt", ["q", "i"], ["a"]), op("Sigmoid", ["a"], ["y"])]
    made = model(nodes, [info("x"), info("i", (), I64)], [info("y", (2, None))])
    source = save(tmp_path, made)
    out = split(tmp_path, source, host=("SequenceAt",))
    check(out)
    feeds = feed() | {"i": np.array(3, np.int64)}
    assert same(run_parts(out, feeds)["y"], run_whole(source, feeds)["y"])


def test_optionals_and_maps_cross(tmp_path):
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(F32, (2, 64)))
    nodes = [op("Optional", ["x"], ["o"], type=helper.make_tensor_type_proto(F32, (2, 64))),
             op("OptionalGetElement", ["o"], ["a"]), op("Relu", ["a"], ["y"])]
    made = model(nodes, [info("x")], [info("y")])
    source = save(tmp_path, made)
    out = split(tmp_path, source, host=("OptionalGetElement",))
    check(out)
    assert onnx.load(str(parts_of(out)[0][1])).graph.output[0].type == kind
    ml = [opset_id("", 17), opset_id("ai.onnx.ml", 2)]
    nodes = [op("Relu", ["x"], ["r"]),
             op("ZipMap", ["r"], ["z"], domain="ai.onnx.ml", classlabels_int64s=list(range(64))),
             op("Identity", ["z"], ["y"])]
    scores = helper.make_map_type_proto(I64, helper.make_tensor_type_proto(F32, ()))
    result = helper.make_sequence_type_proto(scores)
    made = model(nodes, [info("x")], [helper.make_value_info("y", result)], opset_imports=ml)
    source = save(tmp_path, made, "zip.onnx")
    out = split(tmp_path, source, host=("Identity",), out=tmp_path / "zip")
    for _, path in parts_of(out):
        onnx.checker.check_model(str(path))
    made = onnx.load(str(parts_of(out)[0][1])).graph.output[0].type
    assert made.WhichOneof("value") == "sequence_type"
