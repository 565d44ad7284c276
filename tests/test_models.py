"""Real models, split in many ways: parts pass the checker, chained they equal the whole, merged they
are the source.

Each model of two nodes or more is split under tensorrt-10.15, tensorrt-11 and seeded random
supports, without a budget and with a loose and a tight one. CUTSET_LONG=1 does all of it (20
supports a model), otherwise a seeded sample. Random operators and what the reference runtime cannot
run are counted and listed, never hidden.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx

import corpus

LONG = bool(os.environ.get("CUTSET_LONG"))
SUPPORTS = 20
SAMPLE = 160  # splits of an ordinary run
COMMAND = os.environ.get("CUTSET", str(corpus.SOURCE / "build/release/cutset"))
RELEASE = corpus.SOURCE / "build/release/cutset"
if LONG and RELEASE.exists():
    COMMAND = str(RELEASE)


def run(*args, timeout=600):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr.strip()


class Failure(Exception):
    pass


def expect(true, *what):
    if not true:
        raise Failure(" ".join(map(str, what)))


def supports(model, seed):
    """Options of one random support: an accelerator that takes everything but some operators and
    some nodes."""
    pick = random.Random(seed)
    ops = sorted({n.op_type for n in model.graph.node if n.op_type != "Constant"})
    refused = [op for op in ops if pick.random() < pick.choice((0.1, 0.3, 0.6))]
    options = ["--target", "onnxruntime"]
    for op in refused:
        options += ["--exclude", op]
    share = pick.choice((0, 0.1, 0.3))
    for node in model.graph.node:
        first = next((o for o in node.output if o), None)
        if node.op_type != "Constant" and node.op_type not in refused and first and \
                pick.random() < share and not set("*?[\\") & set(first):
            options += ["--pin", f"{first}=host"]
    return options


def cases(path):
    """(label, options) of every split of a model."""
    model = onnx.load(path, load_external_data=False)
    targets = [("tensorrt-10.15", ["--target", "tensorrt-10.15"]),
               ("tensorrt-11", ["--target", "tensorrt-11"])]
    targets += [(f"random {i}", supports(model, f"{path.name} {i}")) for i in range(SUPPORTS)]
    for label, options in targets:
        for budget in ("none", "loose", "tight"):
            yield label, options, budget


def budget_options(budget, weight_bytes):
    if budget == "none" or not weight_bytes:
        return []
    share = 0.6 if budget == "loose" else 0.15
    return ["--device-memory", str(max(1, int(weight_bytes * share))), "--oversize=keep"]


def loaded(path):
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        del tensor.external_data[:]
        tensor.ClearField("data_location")
    return model


def compare_merged(source, merged):
    """Same nodes in order (dead Constants may be gone), same used weights, same inputs and outputs."""
    a, b = loaded(source), loaded(merged)
    read = set()

    def walk(graph):
        for node in graph.node:
            read.update(node.input)
            for attribute in node.attribute:
                for inner in [attribute.g] * attribute.HasField("g") + list(attribute.graphs):
                    walk(inner)
                    read.update(o.name for o in inner.output)
    walk(a.graph)
    read.update(o.name for o in a.graph.output)
    kept = [n for n in a.graph.node if n.op_type != "Constant" or set(n.output) & read]
    expect(len(kept) == len(b.graph.node), "merge:", len(b.graph.node), "nodes, source has", len(kept))
    for x, y in zip(kept, b.graph.node):
        expect(x == y, "merge: node differs:", x.name or x.output[:1])
    weights = {t.name: t for t in b.graph.initializer}
    weights.update({t.values.name: t for t in b.graph.sparse_initializer})
    for t in list(a.graph.initializer) + list(a.graph.sparse_initializer):
        name = t.name if isinstance(t, onnx.TensorProto) else t.values.name
        if name in read:
            expect(name in weights, "merge: weight lost:", name)
            same = t == weights[name] or (isinstance(t, onnx.TensorProto) and (
                onnx.numpy_helper.to_array(t).tobytes() ==
                onnx.numpy_helper.to_array(weights[name]).tobytes()))
            expect(same, "merge: weight differs:", name)
    expect([i.name for i in a.graph.input if i.name in {j.name for j in b.graph.input}] ==
           [i.name for i in b.graph.input], "merge: inputs differ")
    expect([o.name for o in a.graph.output] == [o.name for o in b.graph.output], "merge: outputs differ")


CURE = re.compile(r"--type '?(.+?)=f32\[")


def split_with_cures(path, options, folder, hints, seen):
    """Splits; where a boundary value has no rank, takes the cure that the message gives."""
    for _ in range(12):
        code, _, err = run("split", path, *options, "-o", folder)
        cure = CURE.search(err) if code == 3 else None
        if not cure:
            break
        name = cure[1]
        rank = corpus.rank_at_run_time(path, name, hints or [])
        options = options + ["--type", f"{name}=f32[{','.join('?' * rank)}]"]
        seen["needed --type"].append(f"{path.parent.name}/{path.name}")
    expect(code == 0, "split:", code, err)


def checker_accepts(path):
    try:
        onnx.checker.check_model(str(path))
        return True, ""
    except Exception as error:  # the checker raises many kinds
        return False, str(error).splitlines()[0]


def one(path, options, budget, inputs, source_ok, seen):
    code, out, err = run("inspect", path, "--json")
    expect(code == 0, "inspect:", err)
    facts = json.loads(out)
    options = options + budget_options(budget, facts["weight_bytes"])
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "parts"
        split_with_cures(path, options, folder, inputs, seen)
        plan = json.loads((folder / "plan.json").read_text())
        limit = plan["options"]["device-memory"]
        for part in plan["parts"]:
            ok, why = checker_accepts(folder / part["file"])
            expect(ok or not source_ok, "checker:", part["file"], why)
            if limit and part["target"] != "host":
                expect(part["oversized"] or part["device_bytes"] <= limit, "over budget:", part["id"])
        expect(plan["objective"]["engines_bound"] <= plan["objective"]["engines"], "bound above value")
        code, out, err = run("verify", folder, *(inputs or []))
        if code == 3 and "reference runtime refuses" in err:
            seen["refused by the reference runtime"].append(f"{path.parent.name}/{path.name}")
            verdict = "refused"
        else:
            expect(code == 0, "verify:", code, err)
            verdict = "random" if "random" in out else "equal"
        merged = Path(work) / "merged.onnx"
        code, out, err = run("merge", folder, "-o", merged)
        expect(code == 0, "merge:", err)
        compare_merged(path, merged)
    return verdict


def main():
    seen = collections.defaultdict(list)
    counts = collections.Counter()
    failures = []
    with tempfile.TemporaryDirectory() as work:
        every = corpus.light(work) + corpus.packages() + corpus.debian()
        expect(len(every) > 1000, "only", len(every), "models found: is libonnx-testdata installed?")
        work_list = []
        single = 0
        for path in every:
            model = onnx.load(path, load_external_data=False)
            nodes = sum(n.op_type != "Constant" for n in model.graph.node)
            if nodes < 2:
                single += 1
                work_list.append((path, None, None, None))
                continue
            work_list += [(path, *case) for case in cases(path)]
        pick = random.Random(20)
        splits = [w for w in work_list if w[1]]
        print(f"{len(every)} models, {single} of one node; {len(splits)} splits possible")
        if not LONG:
            heavy = [w for w in splits if str(w[0]).startswith(work)]
            rest = [w for w in splits if not str(w[0]).startswith(work)]
            splits = pick.sample(heavy, 12) + pick.sample(rest, SAMPLE)
            work_list = pick.sample([w for w in work_list if not w[1]], 100) + splits
        prepared = {}
        for path in {w[0] for w in work_list if w[1]}:
            data = Path(tempfile.mkdtemp(dir=work))
            prepared[path] = (corpus.verify_options(path, data), checker_accepts(path)[0])

        def job(item):
            path, label, options, budget = item
            try:
                if label is None:
                    code, _, err = run("inspect", path)
                    expect(code == 0, "inspect:", err)
                    return "read"
                inputs, source_ok = prepared[path]
                return one(path, options, budget, inputs, source_ok, seen)
            except Failure as failure:
                failures.append(f"{path} [{label}, {budget}]: {failure}")
                return "FAILED"
            except subprocess.TimeoutExpired:
                failures.append(f"{path} [{label}, {budget}]: timed out")
                return "FAILED"

        with ThreadPoolExecutor(2) as pool:
            for done, verdict in enumerate(pool.map(job, work_list), 1):
                counts[verdict] += 1
                if done % 1000 == 0:
                    print(f"{done} of {len(work_list)}, {len(failures)} failures", flush=True)
    for verdict, count in sorted(counts.items()):
        print(f"{verdict:8} {count}")
    for reason, models in seen.items():
        unique = sorted(set(models))
        print(f"{reason}: {len(unique)}: {', '.join(unique[:40])}")
    for failure in failures[:40]:
        print("FAILED", failure)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
