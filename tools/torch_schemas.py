"""Writes src/torch/schemas.inc: what the operators of TorchScript write, share, draw and cause.

    python tools/torch_schemas.py > src/torch/schemas.inc        # with torch (and torchvision) at hand

Facts only, taken from the schemas that torch has registered: one row a name, sorted bytewise. A row
without overloads is pure: it writes nothing, shares no memory, and its results are new. Else all
overloads are there, without names and defaults:

    overload = {flag} "(" types ")" types          overloads are separated by ";"
    flag     = "!"     has a side effect
             | "~"     draws random numbers
             | "b" N   draws, writes only while the bool argument N (from 0) is not known to be false
             | "p" N   ... while the number N is not known to be 0
             | "d"     gives its argument back as it is while it does not draw
    type     = as in torch's schemas, with T Tensor, i int, f float, b bool, s str, c complex,
               N Scalar, D Device, o anything else; "." any arguments from here on

Schemas leave some sharing and writes unsaid; RETURNS_FIRST, SHARES_ELEMENTS and NORMS say them.
"""
import re
import sys
import warnings
from collections import defaultdict

SPACES = ("aten", "prim", "quantized", "torchvision")
# Names of prim that a plain graph never holds: the reader takes them as unknown.
ODD = re.compile(r"rpc|Python|profile|Bail|Guard|Graph|Group|MKLDNN|mkldnn|oneDNN|Static|TensorExpr|"
                 r"Fus|Check|Autograd|Var|MMBatch|MMTree|IfThenElse|awaitable|BroadcastSizes|"
                 r"ReductionSizes|ModuleContainer|grad$")
ABBREVIATIONS = {"Tensor": "T", "int": "i", "SymInt": "i", "float": "f", "bool": "b", "SymBool": "b",
                 "str": "s", "complex": "c", "Scalar": "N", "number": "N", "Device": "D",
                 "ScalarType": "i", "Layout": "i", "MemoryFormat": "i"}

# What changes the world or stops the program, as torch::jit::Node::hasSideEffects lists it, and
# what touches the generator's state. Operators without results and without writes are added.
EFFECTS = {"aten::warn", "aten::save", "aten::manual_seed", "aten::seed", "prim::Print",
           "prim::RaiseException", "prim::AddStatValue", "prim::TimePoint", "aten::wait"}

# May return what they are given, or a view of it.
RETURNS_FIRST = """dropout feature_dropout alpha_dropout feature_alpha_dropout type_as atleast_1d
atleast_2d atleast_3d sum_to_size conj_physical to_dense to_sparse to_mkldnn data lift _cast_Byte
_cast_Char _cast_Double _cast_Float _cast_Int _cast_Long _cast_Short _cast_Half _to_cpu
_unsafe_view unsafe_chunk unsafe_split unsafe_split_with_sizes dequantize native_dropout
rrelu matrix_power pad constant_pad_nd special_round _wrapped_linear_prepack to_padded_tensor
_nested_tensor_from_mask _conj_physical clone_if_needed""".split()
# ... or an element of a list that they are given, or views of its elements.
SHARES_ELEMENTS = """meshgrid broadcast_tensors einsum chain_matmul cartesian_prod align_tensors
atleast_1d atleast_2d atleast_3d block_diag combinations dequantize _to_cpu""".split()
# Write running statistics (arguments 3 and 4) while argument 5 is true.
NORMS = """batch_norm instance_norm native_batch_norm _batch_norm_impl_index cudnn_batch_norm
miopen_batch_norm""".split()


def split(text):
    """At the commas outside brackets and strings."""
    parts, depth, quoted, last = [], 0, False, 0
    for i, ch in enumerate(text):
        if ch == '"' and text[i - 1:i] != "\\":
            quoted = not quoted
        if quoted:
            continue
        depth += (ch in "([{<") - (ch in ")]}" or ch == ">" and text[i - 1:i] != "-")
        if ch == "," and depth == 0:
            parts.append(text[last:i])
            last = i + 1
    return [p.strip() for p in parts + [text[last:]] if p.strip()]


def matching(text, start):
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError(text)


def take_type(text):
    """The abbreviated type at the start of an argument; the rest."""
    if text.startswith("..."):
        return ".", text[3:]
    if text[0] == "(":  # a tuple
        end = matching(text, 0)
        out, rest = "(" + ",".join(take_type(p)[0] for p in split(text[1:end])) + ")", text[end + 1:]
    else:
        name = re.match(r"[A-Za-z_][\w.]*", text)[0]
        rest = text[len(name):]
        if name in ("Dict", "Future", "RRef", "Await", "Union", "Optional", "List", "Tuple"):
            end = matching(rest, 0)
            inner = [take_type(p)[0] for p in split(rest[1:end])]
            out = f"Dict({','.join(inner)})" if name == "Dict" else "o"
            rest = rest[end + 1:]
        elif re.fullmatch(r"t(\d|Key|Val|T)?", name):
            out = "t"
        else:
            out = ABBREVIATIONS.get(name, "o")
    while rest:
        if m := re.match(r"\[\d*\]", rest):
            out, rest = out + "[]", rest[m.end():]
        elif rest[0] == "?":
            out, rest = out + "?", rest[1:]
        elif rest[0] == "(":
            end = matching(rest, 0)
            out, rest = out + rest[:end + 1].replace(" ", ""), rest[end + 1:]
        else:
            break
    return out, rest.strip()


class Overload:
    def __init__(self, schema):
        text = str(schema)
        self.name = schema.name
        start = text.index("(")
        end = matching(text, start)
        args = [a for a in split(text[start + 1:end]) if a != "*"]
        returns = text[end + 1:].split("->", 1)[1].strip()
        self.args = [take_type(a) for a in args]
        self.names = [re.split(r"[= ]", rest, maxsplit=1)[0] for _, rest in self.args]
        self.args = [a for a, _ in self.args]
        if returns.startswith("(") and matching(returns, 0) == len(returns) - 1:
            self.returns = [take_type(r)[0] for r in split(returns[1:-1])]
        else:
            self.returns = [take_type(returns)[0]]
        self.flags = ""

    def plain(self):
        """Pure, with new results, and no type variable that could carry elements."""
        return not (self.flags or re.search(r"[!*|.]|\([a-z]", "".join(self.args + self.returns))
                    or "t" in "".join(self.returns).replace("Dict", ""))

    def text(self):
        return f"{self.flags}({','.join(self.args)}){','.join(self.returns)}"


def add_facts(o, schema, tags):
    short = o.name.partition("::")[2]
    aten = o.name.startswith("aten::")
    annotated = any("(" in a for a in o.args + o.returns if not a.startswith("("))
    if aten and not annotated and o.args:
        if short in RETURNS_FIRST and o.args[0].startswith("T"):
            o.args[0] = o.args[0].replace("T", "T(a)", 1)
            o.returns = [r.replace("T", "T(a)", 1) for r in o.returns[:1]] + o.returns[1:]
        if short in SHARES_ELEMENTS and "T[]" in o.args:
            o.args = [a.replace("T[]", "T(a)[]") for a in o.args]
            o.returns = [r.replace("T", "T(a)", 1) for r in o.returns]
        if short in NORMS and len(o.args) > 5 and o.args[3].startswith("T"):
            o.flags = "b5"
            o.args[3:5] = [a.replace("T", f"T({c}!)", 1) for a, c in zip(o.args[3:5], "xy")]
    if o.name == "aten::sorted" and o.args[0] == "T[](a)":
        o.args[0], o.returns = "T(a)[]", ["T(a)[]"]
    if o.name == "aten::data" and not annotated:
        o.args, o.returns = ["T(a)"], ["T(a)"]
    writes = any("!" in a for a in o.args)
    if o.name in EFFECTS or (not o.returns and not writes):
        o.flags += "!"
    generator = any(str(a.type).replace("Optional[", "").startswith("Generator") for a in schema.arguments)
    # A seed that is given is no draw, but the generator moves: the order is kept all the same.
    if "nondeterministic_seeded" in tags or generator and not o.name.endswith("seed"):
        o.flags += "~"
        for name in ("train", "training"):
            if name in o.names and o.args[o.names.index(name)].rstrip("?") == "b":
                o.flags += f"b{o.names.index(name)}"
        if short.endswith("dropout_"):
            o.flags += "d"
        for name in ("p", "dropout", "dropout_p"):
            if name in o.names and o.args[o.names.index(name)] == "f":
                o.flags += f"p{o.names.index(name)}"


def tags_of(schema):
    import torch
    space, _, name = schema.name.partition("::")
    try:
        op = getattr(getattr(getattr(torch.ops, space), name), schema.overload_name or "default")
        return {tag.name for tag in op.tags}
    except Exception:  # registered for the interpreter alone: no tags
        return set()


def main():
    warnings.simplefilter("ignore")
    import torch
    versions = f"torch {torch.__version__.split('+')[0]}"
    try:
        import torchvision
        versions += f", torchvision {torchvision.__version__.split('+')[0]}"
    except ImportError:
        pass
    rows = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space not in SPACES or (space == "prim" and ODD.search(name)):
            continue
        overload = Overload(schema)
        add_facts(overload, schema, tags_of(schema))
        rows[schema.name].append(overload)
    print(f"/* Made by tools/torch_schemas.py from the schemas of {versions}; the form is told there. */")
    for name in sorted(rows, key=str.encode):
        overloads = rows[name]
        text = "" if all(o.plain() for o in overloads) else \
            ";".join(sorted({o.text() for o in overloads}))
        lines, row = [], f'{{"{name}", "{text}"}},'
        while len(row) > 98:
            cut = row.rfind(";", 0, 97) + 1 or row.rfind(",", 0, 97) + 1 or 97
            lines.append(row[:cut] + '"')
            row = ' "' + row[cut:]
        print("\n".join(lines + [row]))


if __name__ == "__main__":
    sys.exit(main())
