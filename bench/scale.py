"""Planning of very large graphs: a chain of blocks, 10^5 and 10^6 nodes, as text and as ONNX.

A block has ten nodes: two products with weights of its own (of four sizes) and one with a weight
that every sixteenth block shares, a multiply-add that is one atom, and a residual over all of it.
In every tenth block, at irregular places, one node is for the host: 1 % of all. Every value has its
type in the file and every ONNX node a name.

`plan` is compared with `inspect`, which reads the same file, infers types and makes no decision.
"""
import os
import zlib

import measure
import proto
from measure import seconds, size

HIDDEN = 64
HOST = ("bench", "Lookup")  # an operator that no accelerator has
SHARED = 16
SIZES = (10**5, 10**6)


def wide(i):
    return HIDDEN * (1 + i * 7 % 4)


def on_host(i):
    return zlib.crc32(b"%d" % i) % 10 == 0


def block(i, b, x):
    """Block i as (domain, operator, args, output, dims); its names begin with b, its input is x."""
    k = wide(i)
    row, rows = [1, HIDDEN], [1, k]
    last = HOST if on_host(i) else ("", "Tanh")
    return [("", "MatMul", [x, f"{b}.w1"], f"{b}.h", rows),
            ("", "Add", [f"{b}.h", f"bias{k}"], f"{b}.a", rows),
            ("", "Relu", [f"{b}.a"], f"{b}.r", rows),
            ("", "MatMul", [f"{b}.r", f"{b}.w2"], f"{b}.m", row),
            ("", "Sigmoid", [f"{b}.m"], f"{b}.g", row),
            ("", "Mul", [f"{b}.m", f"{b}.g"], f"{b}.u", row),
            ("", "Add", [f"{b}.u", f"bias{HIDDEN}"], f"{b}.v", row),
            ("", "MatMul", [f"{b}.v", f"proj{i % SHARED:02}"], f"{b}.p", row),
            (*last, [f"{b}.p"], f"{b}.t", row),
            ("", "Add", [f"{b}.t", x], f"{b}.y", row)]


def shared_weights():
    biases = [(f"bias{HIDDEN * k}", [HIDDEN * k]) for k in (1, 2, 3, 4)]
    return biases + [(f"proj{i:02}", [HIDDEN, HIDDEN]) for i in range(SHARED)]


def own_weights(i, b):
    return [(f"{b}.w1", [HIDDEN, wide(i)]), (f"{b}.w2", [wide(i), HIDDEN])]


class Blocks:
    """The bytes of each block. A kind of block is written once, with marks of the length of names;
    then marks are replaced, which is what makes 10^6 nodes quick."""

    OWN, BEFORE = "b@@@@@@", "b######.y"

    def __init__(self, spell):
        self.spell, self.made = spell, {}

    def bytes(self, i):
        kind = wide(i), on_host(i), i % SHARED
        if kind not in self.made:
            self.made[kind] = b"".join(self.spell(n) for n in block(i, self.OWN, self.BEFORE))
        made = self.made[kind].replace(b"b@@@@@@", b"b%06d" % i)
        return made.replace(b"b######.y", b"b%06d.y" % (i - 1) if i else b"the.input")


def as_onnx(node):
    domain, op, args, out, dims = node
    return proto.node(op, args, [out], domain) + proto.typed(13, out, dims)


def as_text(node):
    domain, op, args, out, dims = node
    mark = "" if domain else " @acc"
    op = f"{domain}:{op}" if domain else op
    typed = ",".join(map(str, dims))
    return f"%{out} : f32[{typed}] = {op}({', '.join('%' + a for a in args)}){mark}\n".encode()


def write_text(path, nodes):
    blocks = Blocks(as_text)
    with open(path, "wb", buffering=1 << 20) as file:
        def weight(name, dims):
            file.write(f"weight %{name} : f32[{','.join(map(str, dims))}]\n".encode())

        file.write(f"graph bench\nopset 17 bench:1\ninput %the.input : f32[1,{HIDDEN}]\n".encode())
        for name, dims in shared_weights():
            weight(name, dims)
        for i in range(nodes // 10):
            for name, dims in own_weights(i, f"b{i:06}"):
                weight(name, dims)
            file.write(blocks.bytes(i))
        file.write(f"output %b{nodes // 10 - 1:06}.y\n".encode())


def write_onnx(path, nodes):
    location, offset = path.stem + ".weights", 0
    blocks = Blocks(as_onnx)
    with proto.Model(path, domains=["bench"]) as model:
        def weight(name, dims):
            nonlocal offset
            length = 4
            for d in dims:
                length *= d
            model.write(proto.external(name, dims, location, offset, length))
            offset += length

        model.write(proto.typed(11, "the.input", [1, HIDDEN]))
        for name, dims in shared_weights():
            weight(name, dims)
        for i in range(nodes // 10):
            for name, dims in own_weights(i, f"b{i:06}"):
                weight(name, dims)
            model.write(blocks.bytes(i))
        model.write(proto.typed(12, f"b{nodes // 10 - 1:06}.y", [1, HIDDEN]))
    with open(path.parent / location, "wb") as file:
        os.truncate(file.fileno(), offset)


FORMS = {"text": (write_text, ".cut", "acc", "1MiB"),
         "ONNX": (write_onnx, ".onnx", "tensorrt-11", "4MiB")}


def commands(path, target, budget):
    plan = [*measure.CUTSET, "plan", path, "--target", target]
    return {"inspect": [*measure.CUTSET, "inspect", path], "plan": plan,
            f"plan --host-memory {budget}": [*plan, "--host-memory", budget],
            "plan -o FILE": [*plan, "-o", path.with_suffix(".json")]}


def measure_form(table, form, made, args):
    _, _, target, budget = FORMS[form]
    small, large = (commands(p, target, budget) for p in made)
    names = list(large)
    runs = measure.interleave([*small.values(), *large.values()], args.runs)
    few, many = (dict(zip(names, runs[i:i + 4])) for i in (0, 4))
    read = many["inspect"]
    table.add(f"{form}, inspect", "", f"{seconds(read.wall)}, peak {size(read.most('peak'))}, "
              f"file {size(made[1].stat().st_size)}")
    for name in names[1:]:
        sample, what = many[name], f"{form}, {name}"
        bar = name != "plan -o FILE"
        times, growth = measure.ratio(sample, read), measure.ratio(sample, few[name])
        table.add(what, "2 x inspect" if bar else "",
                  f"{times:.2f} x inspect: {seconds(sample.wall)}; processor time "
                  f"{measure.ratio(sample, read, 'cpu'):.2f} x", times <= 2 if bar else None)
        peak = sample.most("peak")
        table.add(what, "peak under 400 MB" if bar else "",
                  f"{size(peak)} ({size(sample.most('anon'))} without file pages)",
                  peak < 400 * measure.MB if bar else None)
        table.add(what, "12 x for 10 x the nodes" if bar else "",
                  f"{growth:.1f} x: {seconds(few[name].wall)} at 10^5; processor time "
                  f"{measure.ratio(sample, few[name], 'cpu'):.1f} x", growth <= 12 if bar else None)


def main():
    parser = measure.options(__doc__, runs=5)
    parser.add_argument("--form", choices=FORMS, action="append", help="only this form")
    parser.add_argument("--generate", metavar="PATH", help="only write a model: x.cut or x.onnx")
    parser.add_argument("--nodes", type=int, default=10**6, help="of --generate (1000000)")
    args = measure.start(parser)
    if args.generate:
        path = measure.Path(args.generate)
        return (write_text if path.suffix == ".cut" else write_onnx)(path, args.nodes)
    table = measure.Table("scale", "A chain of blocks of 10^6 nodes, 1 % of them for the host.",
                          args)
    with measure.folder(args, 10**9) as where:
        for form in args.form or FORMS:
            write, suffix = FORMS[form][:2]
            made = [where / f"{n}{suffix}" for n in SIZES]
            for path, nodes in zip(made, SIZES):
                write(path, nodes)
            measure_form(table, form, made, args)
            for path in made:
                path.unlink()
    table.notes.append("text: target acc; ONNX: target tensorrt-11, weights in a sparse file.")
    return table.end()


if __name__ == "__main__":
    raise SystemExit(main())
