"""cutset.torch beside the partitioners of torch.fx and Torch-TensorRT, on the same graphs.

Needs the Python package and torch (`make bench` brings both). Torch-TensorRT's is compared where it
is installed, its own partitioning files, TensorRT itself not needed:

    pip install --no-deps --target DIR torch_tensorrt==2.14.0

Every case runs in a process of its own, under a limit of time and memory.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import measure
from measure import seconds, size

SIZES = (4000, 40000)
NETS = ("chain", "wide", "random", "transformer")
BARS = {4000: 50, 40000: 200}  # plan is to be so many times faster than Torch-TensorRT
STOP = {"fast": 250, "fx": 60, "budget": 250}  # seconds of processor time
MEMORY = 9 * 10**9


class Cases:
    def __init__(self, args):
        self.python, self.runs, self.pause = args.python, args.runs, 0.1
        self.env = dict(os.environ, PYTHONPATH=os.pathsep.join(
            filter(None, [str(measure.ROOT / "bench"), str(args.torch_tensorrt or ""),
                          os.environ.get("PYTHONPATH", "")])))

    def run(self, *case):
        """What the case printed; {"stopped": why} where it was ended from here."""
        argv = [self.python, str(measure.ROOT / "bench/torch_case.py"), *map(str, case)]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as log:
            child = subprocess.Popen(argv, stdout=out, stderr=log, env=self.env)
            start = time.monotonic()
            while child.poll() is None:
                time.sleep(self.pause)
                used = measure.memory_now(child.pid)
                if sum(used.get(k, 0) for k in ("RssAnon", "RssShmem")) > MEMORY:
                    child.kill()
                    child.wait()
                    return {"stopped": 0, "why": f"over {size(MEMORY)} after "
                                                 f"{time.monotonic() - start:.0f} s"}
            out.seek(0)
            log.seek(0)
            text = out.read().strip()
            if child.returncode != 0 or not text:
                sys.exit(f"{' '.join(argv)}\nended with {child.returncode}:\n{log.read()[-3000:]}")
            return json.loads(text.splitlines()[-1])


def compare_times(table, cases, nets, sizes):
    for count in sizes:
        for net in nets:
            what = f"{net}, {count}"
            ours = cases.run("cutset", net, count, cases.runs)
            ratio = ours["plan_walk"]
            table.add(f"{what}, plan", "40 x a walk", f"{ratio:.1f} x: {seconds(ours['plan'])}, "
                      f"{1e6 * ours['plan'] / ours['nodes']:.1f} us a node; a walk "
                      f"{1e6 * ours['walk'] / ours['nodes']:.2f} us", ratio <= 40)
            ratio = ours["partition_copy"]
            table.add(f"{what}, partition", "2 x a copy", f"{ratio:.2f} x: "
                      f"{seconds(ours['partition'])}", ratio <= 2)
            table.add(f"{what}, engines", "proved, same results",
                      f"{ours['engines']}", ours["proved"] and ours["same"])
            peer(table, cases.run("fast", net, count, STOP["fast"]), ours, what,
                 "Torch-TensorRT fast", BARS.get(count))
            peer(table, cases.run("fx", net, count, STOP["fx"]), ours, what,
                 "torch.fx capability", None)


def peer(table, theirs, ours, what, name, bar):
    what = f"{what}, {name}"
    if "missing" in theirs:
        return table.add(what, "", f"{theirs['missing']} is not installed")
    if "stopped" in theirs:
        least = theirs["stopped"] / ours["plan"]
        why = theirs.get("why", f"stopped after {theirs['stopped']} s")
        text = f"{why}: over {least:.0f} times the time of plan" if least else why
        met = True if bar and least >= bar else None
        return table.add(what, f"{bar} x plan" if bar else "", text, met)
    times = theirs["took"] / ours["plan"]
    met = ours["engines"] <= theirs["engines"] and (times >= bar if bar else True)
    return table.add(what, f"{bar} x plan, no fewer engines" if bar else "no fewer engines",
                     f"{times:.0f} x plan: {seconds(theirs['took'])}, {theirs['engines']} engines",
                     met)


def compare_budgets(table, cases, nets, sizes):
    settings = [("branches", b, b) for b in (2, 4, 8, 16)]
    settings += [(net, count, 10) for count in sizes for net in nets]
    for net, count, pieces in settings:
        what = f"{net}, {count}, budget"
        ours = cases.run("budget", "cutset", net, count, pieces, STOP["budget"])
        met = ours["over"] == 0 and ours["same"] and (net != "branches" or ours["pieces"] == pieces)
        table.add(what, "none over" if net != "branches" else f"{pieces} pieces, none over",
                  split(ours) + (", proved" if ours["proved"] else ", not proved"), met)
        theirs = cases.run("budget", "torch_tensorrt", net, count, pieces, STOP["budget"])
        table.add(f"{what}, Torch-TensorRT", "", split(theirs))


def split(made):
    if "missing" in made:
        return f"{made['missing']} is not installed"
    if "stopped" in made:
        return made.get("why", f"stopped after {made['stopped']} s")
    text = f"{made['pieces']} pieces, the largest {made['largest'] / made['budget']:.2f} x the " \
           f"budget, {made['over']} over; {seconds(made['took'])}"
    return text if made["same"] else text + "; other results"


def main():
    parser = measure.options(__doc__, runs=5)
    venv = measure.ROOT / ".venv/bin/python"
    parser.add_argument("--python", default=str(venv) if venv.exists() else sys.executable,
                        help="the Python that has cutset and torch (.venv/bin/python)")
    parser.add_argument("--torch-tensorrt", metavar="DIR", type=measure.Path,
                        help="where torch_tensorrt is installed, if not beside torch")
    parser.add_argument("--net", choices=NETS, action="append", help="only this net")
    parser.add_argument("--size", type=int, action="append", help="only this size (4000, 40000)")
    parser.add_argument("--only", choices=("times", "budgets"))
    args = measure.start(parser)
    table = measure.Table("torch side by side", "torch.fx graphs, seconds of processor time, each "
                          "case in a process of its own.", args)
    cases, nets, sizes = Cases(args), args.net or NETS, args.size or SIZES
    if args.only != "budgets":
        compare_times(table, cases, nets, sizes)
    if args.only != "times":
        compare_budgets(table, cases, nets, sizes)
    table.notes += [
        "A walk reads each node and its inputs. A copy is node by node, and recompiled. plan reads "
        "the graph, crosses it into C and back; partition builds the modules too.",
        "Torch-TensorRT 2.14's own files, TensorRT's libraries replaced by empty ones. Both are "
        "told the same operators. What was stopped is a lower bound.",
        "budget: a tenth of the weights (branches: one branch), or the heaviest operator; pieces "
        "as each tool's resource_partition makes them."]
    return table.end()


if __name__ == "__main__":
    raise SystemExit(main())
