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
SOURCE = os.environ.get("CUTSET_SOURCE", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONG = os.environ.get("CUTSET_LONG") == "1"
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

# ---- types: ("t", elem or None, dims or None), ("seq", type), ("opt", type), ("map", elem, type) or
# None. A dim is a number or None.


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
    raw = re.sub(rb'\\(x[0-9a-fA-F]{2}|.)',
                 lambda m: bytes([int(m[1][1:], 16)]) if m[1][:1] == b"x" and len(m[1]) == 3 else m[1],
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
        print(f"{what}: {self.cases} models, {self.values} values of onnx, {self.recorded} recorded "
              f"outputs; {len(self.wrong)} contradict, {len(self.unknown)} that onnx knows and we do "
              f"not, {self.dims} with a size we do not know, {len(self.data_dependent)} recorded with "
              f"a rank we do not know")
        for line in self.wrong + self.unknown + self.data_dependent:
            print("  " + line)
        assert not self.wrong and not self.unknown
        assert self.cases > 0 and self.values > 0


def run(what, cases, seed):
    tally = Tally()
    with tempfile.TemporaryDirectory() as temp:
        for case in sample(cases, seed):
            tally.case(*case, temp)
    tally.done(what)


def test_debian_models():
    assert os.path.isdir(DEBIAN), "libonnx-testdata is not installed"
    run("libonnx-testdata", file_cases(DEBIAN), 1)


def test_package_models():
    run("onnx package", file_cases(os.path.join(os.path.dirname(onnx.__file__),
                                                "backend", "test", "data")), 2)


def test_node_cases():
    run("onnx node tests", node_cases(), 3)


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
