"""`cutset split` against `onnx.utils.extract_model`, on the same cut.

The plan's parts are the cut: `extract_model` is called once a part with the part's inputs and
outputs, in one process, with its defaults (it checks the model and infers shapes). It writes
weights inside the parts, as `--weights=inline` does. Both must give the same nodes.

    vgg19     the topology from the onnx package, 575 MB of weights in a file beside the model
    chain     24 products, 1.5 GiB of weights inside the model
"""
import json
import os
import sys

import measure
import weights
from measure import seconds, size

PYTHON = measure.ROOT / ".venv/bin/python"

EXTRACT = """
import json, sys, onnx.utils
model, out, *parts = sys.argv[1:]
for part in map(json.loads, parts):
    onnx.utils.extract_model(model, f"{out}/{part['file']}", part["inputs"], part["outputs"])
"""

SAME = """
import sys, onnx

def names(folder, file, field):
    graph = onnx.load(f"{folder}/{file}", load_external_data=False).graph
    return sorted(x.output[0] if field == "node" else x.name for x in getattr(graph, field))

ours, theirs, *files = sys.argv[1:]
for file in files:
    for field in ("node", "input", "output", "initializer"):
        a, b = (names(folder, file, field) for folder in (ours, theirs))
        if a != b:
            sys.exit(f"{file}: {field} differs: {sorted(set(a) ^ set(b))[:5]}")
"""


def vgg19(where):
    """Real bytes in place of the holes, which reading and writing would get for nothing."""
    measure.must([PYTHON, measure.ROOT / "tools/light_model.py", "vgg19", where])
    data = where / "vgg19.weights"
    some = os.urandom(1 << 20)
    with open(data, "r+b") as file:
        for at in range(0, data.stat().st_size, len(some)):
            file.write(some[:data.stat().st_size - at])
    return where / "vgg19.onnx"


def chain(where):
    model = where / "chain.onnx"
    weights.inside(model, 24, host_every=0)
    return model


MODELS = {"vgg19": (vgg19, "2GiB"), "chain": (chain, "4GiB")}


def measure_model(table, name, model, budget, where):
    ours, theirs = where / "ours", where / "theirs"
    plan = where / "plan.json"
    target = ["--target", "tensorrt-11", "--host-memory", budget]
    measure.must([*measure.CUTSET, "plan", model, *target, "-o", plan])
    parts = json.loads(plan.read_text())["parts"]
    texts = [json.dumps({k: p[k] for k in ("file", "inputs", "outputs")}) for p in parts]

    def split(how, out):
        return [*measure.CUTSET, "split", model, *target, f"--weights={how}", "-o", out]

    def extract(some):
        return [PYTHON, "-c", EXTRACT, model, theirs, *some]

    def before():
        weights.clear(where, model.name, model.stem + ".weights")
        theirs.mkdir()
        measure.flush(where)

    before()
    measure.must(split("inline", ours))
    measure.must(extract(texts))
    measure.must([PYTHON, "-c", SAME, ours, theirs, *(p["file"] for p in parts)])
    commands = [split("inline", ours), split("refer", where), extract(texts), extract(texts[:1]),
                [PYTHON, "-c", "import onnx.utils"]]
    inline, refer, whole, first, nothing = measure.interleave(commands, table.args.runs, before)
    what = f"{name}, {len(parts)} parts"
    for series, how in ((whole, "extract_model"), (first, "extract_model, the first part only"),
                        (nothing, "import onnx.utils")):
        table.add(f"{what}, {how}", "", f"{seconds(series.wall)}, peak {size(series.most('peak'))}")
    for series, how in ((inline, "inline"), (refer, "refer")):
        faster = measure.ratio(whole, series)
        less = whole.most("peak") / series.most("peak")
        table.add(f"{what}, split {how}", "", f"{seconds(series.wall)}, {faster:.0f} times faster")
        table.add(f"{what}, split {how}", "",
                  f"peak {size(series.most('peak'))}, at least {less:.0f} times less")
    weights.clear(where)


def main():
    parser = measure.options(__doc__, runs=3)
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one")
    args = measure.start(parser)
    if not PYTHON.exists():
        sys.exit(f"{PYTHON} is not there: run tools/setup.sh first")
    table = measure.Table("extract", "`split` against `onnx.utils.extract_model` on the same cut; "
                          "both write the same nodes and weights.", args)
    with measure.folder(args, 6 * 10**9) as where:
        for name in args.model or MODELS:
            make, budget = MODELS[name]
            measure_model(table, name, make(where), budget, where)
    got = measure.must([PYTHON, "-c", "import onnx; print(onnx.__version__)"]).output.strip()
    table.notes.append(f"onnx {got}; the peak of `import onnx.utils` alone is part of its peaks.")
    return table.end()


if __name__ == "__main__":
    raise SystemExit(main())
