"""Types that `cutset inspect --text` infers, against the onnx package and recorded outputs.

Models: Debian's libonnx-testdata, the onnx package's light, real and simple models, and the node
tests that the package generates. Each is read twice: as it is (declared and inferred types must
fit), and with every declared type of its main graph removed but those of the inputs. The second is
compared with onnx.shape_inference and with the tensors that the tests expect: nothing may
contradict, and nothing that the peer knows of element type and rank may be unknown to us.

An ordinary run takes a seeded sample; CUTSET_LONG=1 takes all.
"""
import glob
import os
import random
import re
import subprocess
import tempfile
import warnings

import numpy as np
import onnx
import onnx.defs
from onnx import TensorProto, numpy_helper

CUTSET = os.environ.get("CUTSET", "build/release/cutset")
SOURCE = os.environ.get("CUTSET_SOURCE") or os.path.join(os.path.dirname(__file__), "..")
LONG = os.environ.get("CUTSET_LONG") == "1"
PACKAGES = os.path.dirname(os.path.dirname(onnx.__file__))
DEBIAN = "/usr/share/libonnx-testdata/data"
SAMPLE = 250  # cases of each source in an ordinary run

ELEMS = {  # the text form's names
    TensorProto.FLOAT: "f32", TensorProto.DOUBLE: "f64", TensorProto.FLOAT16: "f16",
    TensorProto.BFLOAT16: "bf16", TensorProto.STRING: "str", TensorProto.BOOL: "bool",
    TensorProto.COMPLEX64: "c64", TensorProto.COMPLEX128: "c128",
}
for number, name in [(number, name) for name, number in TensorProto.DataType.items()]:
    if match := re.fullmatch(r"(U?)INT(\d+)", name):
        ELEMS[number] = ("u" if match[1] else "i") + match[2]
    elif match := re.fullmatch(r"FLOAT(\dE.*)", name):
        ELEMS[number] = "f" + match[1].lower()

# ---- types: ("t", elem or None, dims or None), ("seq", type), ("opt", type), ("map", elem, type),
# or None. A dim is a number or None.


def of_proto(proto):
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        t = proto.tensor_type
        dims = None
        if t.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
                    for d in t.shape.dim]
        return ("t", ELEMS.get(t.elem_type), dims)
    if kind == "sequence_type":
        return ("seq", of_proto(proto.sequence_type.elem_type))
    if kind == "optional_type":
        return ("opt", of_proto(proto.optional_type.elem_type))
    if kind == "map_type":
        return ("map", ELEMS.get(proto.map_type.key_type), of_proto(proto.map_type.value_type))
    return None


def of_text(text):
    text = text.strip()
    if match := re.fullmatch(r"(seq|opt)\((.*)\)", text):
        return (match[1], of_text(match[2]))
    if match := re.fullmatch(r"map\((\w+), ?(.*)\)", text):
        return ("map", match[1], of_text(match[2]))
    if text == "?":
        return None
    match = re.fullmatch(r"(\w+|\?)(?:\[(.*)\])?", text)
    assert match, text
    dims = None
    if match[2] is not None:
        dims = [int(d) if re.fullmatch(r"\d+", d) else None for d in split(match[2])]
    return ("t", None if match[1] == "?" else match[1], dims)


def split(text):
    """At commas outside of quotes and parentheses."""
    parts, depth, start, quoted, i = [], 0, 0, False, 0
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    if text[start:].strip():
        parts.append(text[start:].strip())
    return parts


def of_array(value):
    """Of an expected output: a tensor, a list for a sequence, None for an empty optional."""
    if isinstance(value, list):
        return ("seq", of_array(value[0])) if value else ("seq", None)
    if value is None or isinstance(value, dict):
        return None
    if isinstance(value, TensorProto):
        return ("t", ELEMS[value.data_type], list(value.dims))
    array = np.asarray(value)
    try:
        elem = ELEMS[onnx.helper.np_dtype_to_tensor_dtype(array.dtype)]
    except (KeyError, ValueError):
        elem = "str" if array.dtype.kind in "UO" else None
    return ("t", elem, list(array.shape))


def fits(ours, peer):
    if ours is None or peer is None:
        return True
    if ours[0] == "opt" and peer[0] != "opt":  # recorded: what is inside
        return fits(ours[1], peer)
    if ours[0] != peer[0]:
        return False
    if ours[0] == "t":
        # Old recordings keep bf16 as u16.
        if ours[1] and peer[1] and ours[1] != peer[1] and (ours[1], peer[1]) != ("bf16", "u16"):
            return False
        if ours[2] is None or peer[2] is None:
            return True
        return len(ours[2]) == len(peer[2]) and all(
            a is None or b is None or a == b for a, b in zip(ours[2], peer[2]))
    if ours[0] == "map":
        return ours[1] == peer[1] and fits(ours[2], peer[2])
    return fits(ours[1], peer[1])


def missing(ours, peer):
    """What the peer knows and we do not: "elem", "rank", "dim" or ""."""
    if peer is None:
        return ""
    if ours is None:
        if peer[0] == "t":
            return "elem" if peer[1] else "rank" if peer[2] is not None else ""
        return "elem"
    if ours[0] == "t" and peer[0] == "t":
        if peer[1] and not ours[1]:
            return "elem"
        if peer[2] is not None and ours[2] is None:
            return "rank"
        if peer[2] is not None and any(a is None and b is not None
                                       for a, b in zip(ours[2], peer[2])):
            return "dim"
        return ""
    return missing(ours[-1], peer[-1]) if ours[0] == peer[0] else ""


# ---- reading the text form

VAL = r'%("(?:\\.|[^"\\])*"|[A-Za-z0-9_./-]+)'


def unquote(name):
    if not name.startswith('"'):
        return name
    raw = re.sub(rb'\\(?:x([0-9a-fA-F]{2})|(.))',
                 lambda m: bytes([int(m[1], 16)]) if m[1] else m[2],
                 name[1:-1].encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


def typed_values(text):
    """name -> types of values that nodes make, in bodies too; and the main graph's alone."""
    everywhere, main, depth = {}, {}, 0
    for line in text.splitlines():
        line = line.strip()
        if re.match(r"body\s", line):
            depth += 1
        elif line == "end":
            depth -= 1
        elif line.startswith(("%", "_")):
            for name, type_ in outputs_of(line):
                everywhere.setdefault(name, []).append(type_)
                if depth == 0:
                    main[name] = type_
    return everywhere, main


def outputs_of(line):
    i, found = 0, []
    while True:
        match = re.compile(r"\s*(?:" + VAL + r"|_)").match(line, i)
        assert match, line
        i = match.end()
        type_ = None
        if colon := re.compile(r"\s*:\s*").match(line, i):
            i = start = colon.end()
            depth, quoted = 0, False
            while not (depth == 0 and not quoted and (line[i] == "," or line.startswith(" = ", i))):
                if quoted:
                    i += line[i] == "\\"
                    quoted = line[i] != '"'
                elif line[i] == '"':
                    quoted = True
                else:
                    depth += (line[i] in "[(") - (line[i] in "])")
                i += 1
            type_ = of_text(line[start:i])
        if match[1]:
            found.append((unquote(match[1]), type_))
        if line[i] != ",":
            return found
        i += 1


def inspect(path):
    run = subprocess.run([CUTSET, "inspect", "--text", path], capture_output=True)
    text = run.stdout.decode("utf-8", "surrogateescape")
    return run.returncode, text, run.stderr.decode("utf-8", "replace")


# ---- cases: (name, model, folder of external data or None, expected outputs or None)


def recorded(folder):
    outputs = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "test_data_set_0", "output_*.pb")):
        index = int(re.search(r"output_(\d+)\.pb", path)[1])
        tensor = TensorProto()
        with open(path, "rb") as file:
            data = file.read()
        try:
            tensor.ParseFromString(data)
            outputs[index] = of_array(numpy_helper.to_array(tensor))
        except Exception:  # a sequence or optional
            outputs[index] = None
    return [outputs[i] for i in range(len(outputs)) if i in outputs] if outputs else None


def file_cases(root):
    for path in sorted(glob.glob(os.path.join(root, "**", "*.onnx"), recursive=True)):
        yield path, None, os.path.dirname(path), recorded(os.path.dirname(path))


def node_cases():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        inputs, outputs = case.data_sets[0]
        outputs = [of_array(value) for value in outputs]
        yield case.name, case.model, None, outputs
        yield case.name + " (constant)", constant(case.model, inputs), None, outputs
        yield case.name + " (vague)", vague(case.model, case.name), None, outputs


def constant(model, values):
    """With tensor inputs as initializers: shapes, axes, sizes are known then."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.ir_version = max(made.ir_version, 4)
    for info, value in zip(model.graph.input, values):
        if isinstance(value, TensorProto):
            tensor = onnx.TensorProto()
            tensor.CopyFrom(value)
            tensor.name = info.name
        elif isinstance(value, (list, dict)) or value is None:
            continue
        else:
            tensor = numpy_helper.from_array(np.asarray(value), info.name)
        made.graph.initializer.append(tensor)
        made.graph.input.remove(info)
    return made


def vague(model, seed):
    """With some dims of the inputs and some shapes taken away: what is inferred must still hold."""
    chance = random.Random(seed)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for info in made.graph.input:
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
            continue
        if chance.random() < 0.2:
            tensor.ClearField("shape")
            continue
        for dim in tensor.shape.dim:
            if chance.random() < 0.4 and dim.HasField("dim_value"):
                size = dim.dim_value
                dim.Clear()
                if chance.random() < 0.7:  # one symbol a size
                    dim.dim_param = f"s{size}"
    return made


def sample(cases, seed):
    cases = list(cases)
    if LONG or len(cases) <= SAMPLE:
        return cases
    return random.Random(seed).sample(cases, SAMPLE)


def strip(model):
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.ClearField("type")
    return bare


def peer_types(model):
    """name -> types in all graphs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:
        return None
    types = {}

    def walk(graph):
        for info in list(graph.value_info) + list(graph.output):
            if info.HasField("type"):
                types.setdefault(info.name, []).append(of_proto(info.type))
        for node in graph.node:
            for attr in node.attribute:
                if attr.type == onnx.AttributeProto.GRAPH:
                    walk(attr.g)
    walk(done.graph)
    return types


class Tally:
    def __init__(self):
        self.cases = self.values = self.recorded = self.dims = 0
        self.wrong, self.unknown, self.data_dependent = [], [], []

    def compare(self, where, name, ours, peer, who):
        if not fits(ours, peer):
            self.wrong.append(f"{where}: {name}: {ours} but {who} {peer}")
        elif lack := missing(ours, peer):
            if lack == "dim":
                self.dims += 1
                if os.environ.get("CUTSET_LIST_DIMS"):
                    print(f"dim: {where}: {name}: {ours}, {who} {peer}")
            else:
                lines = self.unknown if who == "onnx" else self.data_dependent
                lines.append(f"{where}: {name}: {lack} unknown, {who} {peer}")

    def case(self, name, model, folder, outputs, temp):
        if model is None:
            model = onnx.load(name, load_external_data=False)
        self.cases += 1
        paths = [os.path.join(temp, "declared.onnx"), os.path.join(temp, "bare.onnx")]
        bare = strip(model)
        for path, content in zip(paths, (model, bare)):
            with open(path, "wb") as file:
                file.write(content.SerializeToString())
            status, text, message = inspect(path)
            if status != 0:
                self.wrong.append(f"{name}: exit {status}: {message.strip()}")
                return
        everywhere, main = typed_values(text)
        for value, types in (peer_types(bare) or {}).items():
            if value in everywhere and len(types) == 1 and len(everywhere[value]) == 1:
                self.values += 1
                self.compare(name, value, everywhere[value][0], types[0], "onnx")
        for output, expected in zip(model.graph.output, outputs or []):
            if output.name in main:
                self.recorded += 1
                self.compare(name, output.name, main[output.name], expected, "recorded")

    def done(self, what):
        print(f"{what}: {self.cases} models, {self.values} values of onnx, {self.recorded} "
              f"recorded outputs; {len(self.wrong)} contradict, {len(self.unknown)} that onnx "
              f"knows and we do not, {self.dims} with a size we do not know, "
              f"{len(self.data_dependent)} recorded with a rank we do not know")
        for line in self.wrong + self.unknown + self.data_dependent:
            print("  " + line)
        assert not self.wrong and not self.unknown
        assert self.cases > 0


def run(what, cases, seed):
    tally = Tally()
    with tempfile.TemporaryDirectory() as temp:
        for case in sample(cases, seed):
            tally.case(*case, temp)
    tally.done(what)
    assert tally.values > 0


def test_debian_models():
    assert os.path.isdir(DEBIAN), "libonnx-testdata is not installed"
    run("libonnx-testdata", file_cases(DEBIAN), 1)


def test_package_models():
    run("onnx package", file_cases(os.path.join(PACKAGES, "onnx", "backend", "test", "data")), 2)


def test_real_models():
    cases = [case for package in ("silero_vad", "magika")
             for case in file_cases(os.path.join(PACKAGES, package))]
    assert cases, "tools/setup.sh installs silero-vad and magika"
    run("real models", cases, 4)


def test_node_cases():
    run("onnx node tests", node_cases(), 3)


# ---- against what ONNX Runtime computes: operators that the node tests leave out


def f32(*shape):
    return (np.arange(np.prod(shape)) % 7 / 7 - .4).reshape(shape).astype(np.float32)


def u8(*shape):
    return (np.arange(np.prod(shape)) % 200).reshape(shape).astype(np.uint8)


def i8(*shape):
    return (np.arange(np.prod(shape)) % 100).reshape(shape).astype(np.int8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def text(*values):
    return np.array(values, object)


S, Z, Z8 = np.float32(.1), np.uint8(3), np.int8(0)  # a scale, zero points
TREE = dict(nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2], nodes_featureids=[0, 0, 0],
            nodes_values=[0., 0., 0.], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
            nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0])
VOTES = dict(class_treeids=[0, 0], class_nodeids=[1, 2], class_ids=[0, 1], class_weights=[1., 2.])
KERNEL = dict(kernel_type="LINEAR", kernel_params=[0., 0., 0.], coefficients=[.1] * 6, rho=[.1] * 3)

RUNTIME = [  # operator (com.microsoft), inputs, number of outputs or which of them, attributes
    ("Gelu", [f32(2, 3)], 1, {}),
    ("FastGelu", [f32(2, 3), f32(3)], 1, {}),
    ("QuickGelu", [f32(2, 3)], 1, {}),
    ("BiasGelu", [f32(2, 4, 3), f32(3)], 1, {}),
    ("FusedMatMul", [f32(2, 3, 4), f32(2, 5, 4)], 1, dict(transB=1)),
    ("FusedMatMul", [f32(2, 3, 4), f32(2, 3, 5)], 1, dict(transA=1)),
    ("FusedMatMul", [f32(3, 2, 4), f32(2, 4, 5)], 1, dict(transBatchA=1)),
    ("TransposeMatMul", [f32(3, 4), f32(5, 4)], 1, dict(transB=1)),
    ("FusedGemm", [f32(3, 4), f32(5, 4), f32(5)], 1, dict(transB=1, activation="Relu")),
    ("FusedConv", [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], 1,
     dict(activation="Relu", pads=[1, 1, 1, 1], strides=[2, 2])),
    ("Attention", [f32(2, 5, 12), f32(12, 36), f32(36)], 2, dict(num_heads=3)),
    ("Attention", [f32(2, 5, 12), f32(12, 48), f32(48)], 1,
     dict(num_heads=3, qkv_hidden_sizes=[12, 12, 24])),
    ("QAttention", [u8(2, 5, 12), u8(12, 36), f32(36), S, S, None, Z, Z], 2, dict(num_heads=3)),
    ("MultiHeadAttention", [f32(2, 5, 12), f32(2, 6, 12), f32(2, 6, 18)], 1, dict(num_heads=3)),
    ("MultiHeadAttention", [f32(2, 5, 12), f32(2, 3, 7, 4), f32(2, 3, 7, 4)], 1, dict(num_heads=3)),
    ("MultiHeadAttention", [f32(2, 5, 12), f32(2, 5, 12), f32(2, 5, 12), None, None, None,
                            f32(2, 3, 4, 4), f32(2, 3, 4, 4)], 3, dict(num_heads=3)),
    ("RotaryEmbedding", [f32(2, 3, 8), i64(0), f32(16, 2), f32(16, 2)], 1, dict(num_heads=2)),
    ("SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)], [0, 3], {}),
    ("SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], [0, 3], {}),
    (":SimplifiedLayerNormalization", [f32(2, 3, 8), f32(8)], 2, {}),
    ("EmbedLayerNormalization", [i32([0, 1, 0, 1]), i32([0, 1, 0, 1]), f32(10, 8), f32(6, 8),
                                 f32(3, 8), f32(8), f32(8), i32([0, 1, 0, 1])], 3, {}),
    ("MatMulNBits", [f32(2, 3, 32), u8(16, 1, 16), f32(16)], 1,
     dict(K=32, N=16, bits=4, block_size=32)),
    ("MatMulBnb4", [f32(2, 32), u8(256), f32(16)], 1,
     dict(K=32, N=16, block_size=32, quant_type=0)),
    ("MatMulIntegerToFloat", [u8(2, 3, 4), u8(4, 5), S, S, Z, Z], 1, {}),
    ("MatMulInteger16", [np.ones((2, 3), np.int16), np.ones((3, 4), np.int16)], 1, {}),
    ("DynamicQuantizeMatMul", [f32(2, 3, 4), u8(4, 5), S, Z], 1, {}),
    ("QGemm", [u8(3, 4), S, Z, u8(4, 5), S, Z], 1, {}),
    ("QGemm", [u8(3, 4), S, Z, u8(5, 4), S, Z, None, S, Z], 1, dict(transB=1)),
    ("QLinearAdd", [u8(2, 1, 3), S, Z, u8(4, 1), S, Z, S, Z], 1, {}),
    ("QLinearMul", [i8(2, 3), S, Z8, i8(3), S, Z8, S, Z8], 1, {}),
    ("QLinearSigmoid", [u8(2, 3), S, Z, S, Z], 1, {}),
    ("QLinearLeakyRelu", [u8(2, 3), S, Z, S, Z], 1, {}),
    ("QLinearSoftmax", [u8(2, 3), S, Z, S, Z], 1, dict(opset=13)),
    ("QLinearConcat", [S, Z, u8(2, 3), S, Z, u8(2, 4), S, Z], 1, dict(axis=1)),
    ("QLinearWhere", [np.ones((2, 1), bool), u8(1, 3), S, Z, u8(2, 3), S, Z, S, Z], 1, {}),
    ("QLinearAveragePool", [u8(1, 8, 8, 3), S, Z, S, Z], 1,
     dict(kernel_shape=[3, 3], strides=[2, 2], channels_last=1)),
    ("QLinearGlobalAveragePool", [u8(1, 8, 8, 3), S, Z, S, Z], 1, dict(channels_last=1)),
    ("QLinearGlobalAveragePool", [u8(1, 3, 8, 8), S, Z, S, Z], 1, {}),
    ("QLinearConv", [u8(1, 8, 8, 3), S, Z, u8(4, 3, 3, 3), S, Z, S, Z], 1,
     dict(channels_last=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    ("NhwcMaxPool", [u8(1, 8, 8, 3)], 1, dict(kernel_shape=[2, 2], strides=[2, 2])),
    ("QuantizeLinear", [f32(2, 3), S, Z], 1, {}),
    ("DequantizeLinear", [u8(2, 3), S, Z], 1, {}),
    ("DynamicQuantizeLSTM", [f32(4, 2, 3), u8(1, 3, 20), u8(1, 5, 20), None, None, None, None, None,
                             f32(1), u8(1), f32(1), u8(1)], 3, dict(hidden_size=5)),
    ("GatherND", [f32(2, 3, 4), i64([0, 1], [1, 0])], 1, {}),
    ("GatherBlockQuantized", [u8(4, 16), i64(0, 1), f32(4, 1)], 1,
     dict(block_size=32, bits=4, gather_axis=0, quantize_axis=1)),
    ("Trilu", [f32(3, 4)], 1, {}),
    ("Unique", [f32(6)], 3, {}),
    ("ExpandDims", [f32(2, 3), np.int32(1)], 1, {}),
    ("Tokenizer", [text("a b", "c")], 1,
     dict(mark=0, pad_value="#", mincharnum=1, separators=[" "])),
    ("CropAndResize", [f32(1, 3, 8, 8), f32(2, 4), i32(0, 0), i32(4, 5)], 1, {}),
    ("CDist", [f32(4, 3), f32(5, 3)], 1, dict(metric="euclidean")),
    ("MurmurHash3", [i32(1, 2)], 1, {}),
    ("MurmurHash3", [i32(1, 2)], 1, dict(positive=0)),
    ("Range", [np.float32(0), np.float32(5), np.float32(2)], 1, {}),
    ("Pad", [f32(2, 3), i64(0, 1, 1, 0)], 1, {}),
    ("ConvTransposeWithDynamicPads", [f32(1, 3, 4, 4), f32(3, 2, 3, 3), i64(0, 0, 0, 0)], 1, {}),
    ("NGramRepeatBlock", [i64([1, 2, 3]), f32(1, 8)], 1, dict(ngram_size=2)),
    ("MoE", [f32(4, 8), f32(4, 2), f32(2, 8, 16), f32(2, 16), f32(2, 16, 8), f32(2, 8)], 1,
     dict(k=1)),
    ("UnfoldTensor", [f32(2, 8, 3)], 1, dict(dim=1, size=4, step=2)),
    ("DynamicTimeWarping", [f32(1, 4, 5)], 1, {}),
    ("ai.onnx.ml:CategoryMapper", [text("a", "b")], 1,
     dict(cats_strings=["a", "b"], cats_int64s=[1, 2])),
    ("ai.onnx.ml:FeatureVectorizer", [f32(2, 3), f32(2, 2)], 1, dict(inputdimensions=[3, 2])),
    ("ai.onnx.ml:Imputer", [f32(2, 3)], 1, dict(imputed_value_floats=[0., 0., 0.])),
    ("ai.onnx.ml:LinearClassifier", [f32(4, 3)], 2,
     dict(coefficients=[.1] * 9, intercepts=[.1] * 3, classlabels_ints=[0, 1, 2])),
    ("ai.onnx.ml:LinearClassifier", [f32(4, 3)], 2,
     dict(coefficients=[.1] * 3, intercepts=[.1], classlabels_strings=["a", "b"])),
    ("ai.onnx.ml:LinearRegressor", [f32(4, 3)], 1, dict(coefficients=[.1] * 6, targets=2)),
    ("ai.onnx.ml:Normalizer", [f32(4, 3)], 1, dict(norm="L2")),
    ("ai.onnx.ml:Scaler", [i64([1, 2])], 1, dict(offset=[0.], scale=[1.])),
    ("ai.onnx.ml:OneHotEncoder", [i64([1], [2])], 1, dict(cats_int64s=[1, 2, 3], zeros=1)),
    ("ai.onnx.ml:ArrayFeatureExtractor", [f32(4), i64(0, 2)], 1, {}),
    ("ai.onnx.ml:LabelEncoder", [i64(1)], 1, dict(keys_int64s=[1], values_strings=["a"])),
    ("ai.onnx.ml:TreeEnsembleRegressor", [f32(3, 2)], 1,
     dict(TREE, n_targets=1, target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
          target_weights=[1., 2.])),
    ("ai.onnx.ml:TreeEnsembleClassifier", [f32(3, 2)], 2,
     dict(TREE, **VOTES, classlabels_int64s=[0, 1, 2])),
    ("ai.onnx.ml:TreeEnsembleClassifier", [f32(3, 2)], 2,
     dict(TREE, **VOTES, classlabels_strings=["a", "b"])),
    ("ai.onnx.ml:SVMClassifier", [f32(3, 2)], 2, dict(KERNEL, classlabels_ints=[0, 1, 2])),
    (":GlobalLpPool", [f32(1, 2, 4, 4)], 1, {}),
    (":MaxRoiPool", [f32(1, 2, 8, 8), np.array([[0, 0, 0, 4, 4]], np.float32)], 1,
     dict(pooled_shape=[2, 3])),
    (":Multinomial", [f32(2, 3)], 1, dict(sample_size=4, dtype=7)),
    (":RandomNormal", [], 1, dict(shape=[2, 3])),
    (":RandomUniformLike", [i64(1)], 1, dict(dtype=1)),
    (":SequenceConstruct", [f32(2), f32(3)], 1, {}),
    (":ConvTranspose", [f32(1, 3, 4, 5), f32(3, 2, 3, 3)], 1,
     dict(auto_pad="SAME_UPPER", strides=[2, 2])),
    (":ConvTranspose", [f32(1, 3, 4, 5), f32(3, 2, 3, 3)], 1,
     dict(output_shape=[9, 11], strides=[2, 2])),
    (":ConvTranspose", [f32(1, 4, 4, 5), f32(4, 2, 3, 3)], 1,
     dict(group=2, output_padding=[1, 1], dilations=[2, 1], strides=[2, 2], pads=[1, 0, 1, 2])),
    (":MaxPool", [f32(1, 3, 9, 9)], 2,
     dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)),
    (":MaxPool", [f32(1, 1, 4, 4)], 1,
     dict(kernel_shape=[2, 2], strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1)),
    (":AveragePool", [f32(1, 1, 8, 8)], 1,
     dict(kernel_shape=[3, 3], strides=[2, 2], auto_pad="VALID", ceil_mode=1)),
    (":Slice", [f32(5), i64(10), i64(-20), i64(0), i64(-2)], 1, {}),
    (":Slice", [f32(5), i64(-10), i64(-20), i64(0), i64(-1)], 1, {}),
    (":SplitToSequence", [f32(6, 2)], 1, dict(keepdims=0)),
]


def one_node(op, inputs, outputs, attrs):
    """The first input stays an input, the others are constants."""
    domain, _, name = op.rpartition(":")
    domain = domain if ":" in op else "com.microsoft"
    which = range(outputs) if isinstance(outputs, int) else outputs
    made = [f"o{i}" if i in which else "" for i in range(max(which) + 1)]
    types = [None if x is None else TensorProto.STRING if x.dtype == object
             else onnx.helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    node = onnx.helper.make_node(name, ["" if x is None else f"i{k}" for k, x in enumerate(inputs)],
                                 made, domain=domain, **attrs)
    graph = onnx.helper.make_graph(
        [node], "g",
        [onnx.helper.make_tensor_value_info("i0", types[0], inputs[0].shape)] if inputs else [],
        [onnx.ValueInfoProto(name=name) for name in made if name],
        [numpy_helper.from_array(np.asarray(x), f"i{k}")
         for k, x in enumerate(inputs) if k and x is not None])
    versions = {"": 19, "com.microsoft": 1, "ai.onnx.ml": 3}
    return onnx.helper.make_model(graph, ir_version=9, opset_imports=[
        onnx.helper.make_opsetid(*pair) for pair in versions.items()])


def test_against_runtime():
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    tally = Tally()
    with tempfile.TemporaryDirectory() as temp:
        for op, inputs, outputs, attrs in RUNTIME:
            model = one_node(op, inputs, outputs, attrs)
            session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                   providers=["CPUExecutionProvider"])
            results = session.run(None, {"i0": np.asarray(inputs[0])} if inputs else {})
            tally.case(op, model, None, [of_array(result) for result in results], temp)
    tally.done("ONNX Runtime")
    assert tally.recorded >= len(RUNTIME) and not tally.data_dependent


def test_every_operator_has_an_entry():
    names = set()
    for path in glob.glob(os.path.join(SOURCE, "src", "onnx", "infer_*.c")):
        with open(path, encoding="utf-8") as file:
            names.update(re.findall(r'"([A-Z]\w*)"', file.read()))
    wanted = {s.name for s in onnx.defs.get_all_schemas_with_history()
              if s.domain in ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training",
                              "ai.onnx.training")}
    assert len(wanted) > 200
    assert sorted(wanted - names) == []
