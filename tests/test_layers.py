"""The layer rule: a layer of src/ includes itself, include/ and the layers left of it.

base <- graph <- {onnx, torch, target} <- plan <- {emit, engine, report} <- api <- cli;
those between braces are siblings and never include each other.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

RANKS = [["base"], ["graph"], ["onnx", "torch", "target"], ["plan"], ["emit", "engine", "report"],
         ["api"], ["cli"]]
RANK = {layer: rank for rank, layers in enumerate(RANKS) for layer in layers}
CODE = {".c", ".h", ".inc", ".def"}


def layer_of(path, src):
    """The first folder of a path below src, None for a path that is not below a folder of src."""
    relative = os.path.relpath(os.path.normpath(path), src)
    return relative.split(os.sep)[0] if os.sep in relative and not relative.startswith("..") else None


def check(root):
    """The broken rules, as lines "file:line: what"; and the number of #include lines read."""
    src, include = root / "src", root / "include"
    broken, count = [], 0
    for file in sorted(f for f in src.rglob("*") if f.suffix in CODE):
        own, name = layer_of(file, src), file.relative_to(root)
        if own not in RANK:
            broken.append(f"{name}:1: not in the folder of a layer")
            continue
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not match:
                continue
            count += 1
            quoted, what = match[1] == '"', match[2]
            places = [file.parent] * quoted + [include, src]
            found = next((p / what for p in places if (p / what).is_file()), None)
            if found is None:
                # A system header, unless its first folder says otherwise.
                if quoted and what.split("/")[0] in RANK:
                    broken.append(f"{name}:{number}: {what} does not exist")
                continue
            if include in found.parents:
                continue
            other = layer_of(found, src)
            if other not in RANK:
                broken.append(f"{name}:{number}: {what} is in no layer")
            elif other != own and RANK[other] >= RANK[own]:
                why = "a sibling" if RANK[other] == RANK[own] else "above it"
                broken.append(f"{name}:{number}: {own} includes {what}, but {other} is {why}")
    return broken, count


def self_test():
    """A made-up tree in which each rule is broken once."""
    files = {
        "include/cutset.h": "",
        "src/base/arena.h": '#include "cutset.h"\n#include <stdlib.h>\n',
        "src/base/bad.c": '#include "base/arena.h"\n\n#include "graph/graph.h"\n',
        "src/graph/graph.h": '#include <cutset.h>\n#include "base/arena.h"\n',
        "src/onnx/onnx.h": '#include "graph/graph.h"\n',
        "src/onnx/wire.c": '#include "onnx.h"\n#include "onnx/onnx.h"\n',
        "src/target/bad.c": '#  include "../onnx/onnx.h"\n',
        "src/plan/plan.h": '#include "onnx/onnx.h"\n#include "base/arena.h"\n',
        "src/emit/emit.h": '#include "plan/plan.h"\n',
        "src/report/bad.c": '#include <emit/emit.h>\n',
        "src/api/bad.c": '#include "plan/gone.h"\n',
        "src/cli/main.c": '#include "cutset.h"\n#include "plan/plan.h"\n#include "emit/emit.h"\n',
        "src/misc/bad.c": '#include "base/arena.h"\n',
        "src/bad.c": "",
    }
    expected = [
        "src/api/bad.c:1: plan/gone.h does not exist",
        "src/bad.c:1: not in the folder of a layer",
        "src/base/bad.c:3: base includes graph/graph.h, but graph is above it",
        "src/misc/bad.c:1: not in the folder of a layer",
        "src/report/bad.c:1: report includes emit/emit.h, but emit is a sibling",
        "src/target/bad.c:1: target includes ../onnx/onnx.h, but onnx is a sibling",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        broken, _ = check(Path(folder))
    assert broken == expected, "\n".join(broken)


if __name__ == "__main__":
    self_test()
    source = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent))
    broken, count = check(source)
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{count} includes, {len(broken)} broken rules")
    sys.exit(1 if broken or not count else 0)
