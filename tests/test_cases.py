"""Graphs with known plans: every file of tests/cases, and generated ones too large to keep.

A file holds a graph, the options to plan it with and what must come out, in comments; the small
language of these is in tests/cases/README.md. Besides, every plan is recomputed from the graph
(tests/cases/checks), and every file is written by `inspect --text`, read again and planned again.
The files in tests/cases/bad must be refused, each with one exact line.

    CUTSET=build/dev/cutset tests/test_cases.py [--bless] [NAME ...]

--bless rewrites the counts on `expect` lines (engines=, bound=, ...) to what the command says.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent))
CASES = SOURCE / "tests" / "cases"
CUTSET = os.environ.get("CUTSET", str(SOURCE / "build" / "dev" / "cutset"))
sys.path.insert(0, str(CASES))
from checks import cut, large, plan as plan_checks  # noqa: E402

UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}


# ---- a case ----

class Run:
    def __init__(self, command, line):
        self.command, self.line = shlex.split(command), line
        self.expects, self.exit, self.stderr = [], 0, None

    def args(self, model):
        return [self.command[0], model, *self.command[1:]]

    def options(self):
        """The planning options, as the checks want them."""
        found = {"group": [], "pins": [], "target": [], "exclude": []}
        for name, value in flatten(self.command[1:]):
            if name == "pin":
                found["pins"].append(tuple(value.rsplit("=", 1)))
            elif name in found:
                found[name].append(value)
            elif name in ("host-memory", "device-memory"):
                found[name] = size(value)
            elif name in ("min-nodes", "max-engines"):
                found[name] = int(value)
            else:
                found[name] = value
        budgets = [found[k] for k in ("host-memory", "device-memory") if k in found]
        found["budget"] = min(budgets) if budgets else None
        found["patterns"] = any(has(t, "patterns:") for t in found["target"])
        found["boundary"] = any(has(t, "boundary:") for t in found["target"])
        return found


def flatten(words):
    """--a b, --a=b and flags as (name, value) pairs."""
    pairs, i = [], 0
    while i < len(words):
        name, eq, value = words[i].removeprefix("--").partition("=")
        if not eq and name not in ("connected", "json") and i + 1 < len(words):
            i += 1
            value = words[i]
        pairs.append((name, value or True))
        i += 1
    return pairs


def size(text):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", text).groups()
    return int(float(number) * UNITS[unit])


def has(target, key):
    """Does the target file have this key?"""
    if target == "acc":
        return False
    path = SOURCE / (target if target.endswith(".yaml") else f"targets/{target}.yaml")
    return any(line.startswith(key) for line in path.read_text().splitlines())


class Case:
    def __init__(self, name, text, path=None):
        self.name, self.text, self.path = name, text, path
        self.runs = []
        for number, line in enumerate(text.split("\n")):
            key = re.match(r"# (source|note|run|expect|stderr): ?(.*)", line)
            if not key:
                if line and not line.startswith("#"):
                    break
                assert not re.match(r"# ?\w+:", line), f"{name}: not understood: {line}"
                continue
            if key[1] == "run":
                self.runs.append(Run(key[2], number))
            elif key[1] == "stderr":
                self.runs[-1].stderr = key[2]
            elif key[1] == "expect":
                if re.fullmatch("exit [0-9]+", key[2]):
                    self.runs[-1].exit = int(key[2].split()[1])
                else:
                    self.runs[-1].expects.append((number, key[2]))
        assert self.runs, f"{name}: no run line"


def command(args, text=None):
    """(exit, stdout, stderr)"""
    done = subprocess.run([CUTSET, *args], input=text.encode() if text is not None else b"",
                          capture_output=True, cwd=SOURCE, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# ---- expectations ----

def counts(plan):
    goal, parts = plan["objective"], plan["parts"]
    engines = [p for p in parts if p["target"] != "host"]
    found = {key: goal[key] for key in ("engines", "parts", "boundary_bytes", "boundary_bytes_bound",
                                        "boundaries_unknown")}
    return found | {"bound": goal["engines_bound"], "kind": goal["bound_kind"],
                    "crossing": len(plan["boundaries"]), "fallback": len(plan["fallback"]),
                    "certificate": len(plan["certificate"]),
                    "weight_bytes": plan["model"]["weight_bytes"],
                    "kept": sum(len(p["nodes"]) for p in engines),
                    "oversized": sum(p["oversized"] for p in engines)}


def show(parts):
    return " ".join(f"{p['target']}{{{' '.join(p['nodes'])}}}" for p in parts)


def as_text(value):
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def matches_counts(plan, words):
    """Faults, and the same words with today's numbers."""
    found, faults, blessed = counts(plan), [], []
    proved = "proved" if plan["objective"]["engines_proved"] else "gap"
    for word in words:
        key, eq, value = word.partition("=")
        now = as_text(found[key]) if eq else proved
        blessed.append(f"{key}={now}" if eq else now)
        if word != blessed[-1]:
            faults.append(f"{blessed[-1]}, expected {word}")
    return faults, blessed


def matches(plan, expect):
    """Faults of one expectation, not of counts."""
    word, _, rest = expect.partition(" ")
    part_of = {name: p for p in plan["parts"] for name in p["nodes"]}
    placed = re.fullmatch(r"(\S+?)\{([^}]*)\}", expect)
    mentioned = placed[2].split() if placed else rest.split() if word in ("together", "apart") else []
    if set(mentioned) - set(part_of):
        return [f"no node {' '.join(set(mentioned) - set(part_of))}"]
    if word == "parts":
        wanted = [(t, sorted(some.split())) for t, some in re.findall(r"(\S+?)\{([^}]*)\}", rest)]
        found = [(p["target"], sorted(p["nodes"])) for p in plan["parts"]]
        return [] if found == wanted else [f"parts {show(plan['parts'])}, expected {rest}"]
    if placed:
        wrong = [n for n in mentioned if part_of[n]["target"] != placed[1]]
        return [f"not on {placed[1]}: {' '.join(wrong)}"] if wrong else []
    if word in ("together", "apart"):
        ids = [part_of[n]["id"] for n in mentioned]
        good = len(set(ids)) == (1 if word == "together" else len(ids))
        return [] if good else [f"{rest} are in parts {ids}, expected {word}"]
    if word in ("rule", "saved"):
        key = "rule" if word == "rule" else "engines_saved_if_supported"
        found = {f["node"]: as_text(f[key]) for f in plan["fallback"]}
        pairs = [pair.rpartition("=")[::2] for pair in rest.split()]
        return [f"{word} of {n} is {found.get(n)}, expected {v}" for n, v in pairs if found.get(n) != v]
    if word in ("part", "boundary", "output"):
        name, *pairs = rest.split()
        things = {"part": {as_text(p["id"]): p for p in plan["parts"]},
                  "boundary": {b["value"]: b for b in plan["boundaries"]},
                  "output": {o["name"]: o for o in plan["model"]["outputs"]}}[word]
        if name not in things:
            return [f"there is no {word} {name}"]
        pairs = [pair.split("=") for pair in pairs]
        found = {k: as_text(things[name][k]) for k, _ in pairs}
        return [f"{word} {name}: {k}={found[k]}, expected {v}" for k, v in pairs if found[k] != v]
    return [f"not understood: {expect}"]


def check_plan(case, run, plan, bless):
    faults = []
    for number, expect in run.expects:
        words = expect.split()
        if re.match(r"[a-z_]+=|proved|gap", words[0]):
            wrong, blessed = matches_counts(plan, words)
            if bless and wrong:
                lines = case.text.split("\n")
                lines[number] = "# expect: " + " ".join(blessed)
                case.text, wrong = "\n".join(lines), []
            faults += wrong
        else:
            faults += matches(plan, expect)
    return faults


def check_refusal(run, said):
    faults = []
    for _, expect in run.expects:
        word, _, rest = expect.partition(" ")
        if word != "error" or rest not in said:
            faults.append(f"expected {expect}, it said: {said.strip()}")
    return faults


# ---- running ----

def one_line(said):
    return said.endswith("\n") and said.count("\n") == 1


def run_case(case, bless):
    """The faults of one file, as lines; how many runs it has, how many plans were searched for."""
    faults, graph, plans, searched = [], None, [], 0
    model = os.path.relpath(case.path, SOURCE) if case.path else "-"
    text = None if case.path else case.text
    for run in case.runs:
        code, out, said = command(run.args(model) + ["--json"], text)
        here = []
        if code != run.exit:
            here.append(f"exit {code}, expected {run.exit}: {said.strip()[-600:]}")
        elif code:
            here += [] if one_line(said) and not out else ["an error is one line on stderr"]
            here += check_refusal(run, said)
        else:
            plan = json.loads(out)
            graph = graph or cut.read(case.text)
            here += [] if not said else [f"unexpected: {said.strip()}"]
            here += check_plan(case, run, plan, bless)
            wrong, known = plan_checks.check(graph, plan, run.options())
            here += wrong
            searched += known
            plans.append((run, plan))
        faults += [f"{case.name}: {' '.join(run.command)}: {fault}" for fault in here]
    faults += [f"{case.name}: {fault}" for fault in round_trip(model, text, plans)]
    if bless and case.path and case.text != case.path.read_text():
        case.path.write_text(case.text)
    return faults, len(case.runs), searched


def round_trip(model, text, plans):
    """inspect --text, read again: the same text, and the same plan."""
    code, written, said = command(["inspect", model, "--text"], text)
    if code:
        return [f"inspect --text: exit {code}: {said.strip()[-600:]}"]
    code, again, said = command(["inspect", "-", "--text"], written)
    if again != written:
        return [f"inspect --text of its own text differs: {said.strip()[-600:]}"]
    for run, plan in plans[:1]:
        code, out, said = command(run.args("-") + ["--json"], written)
        if code:
            return [f"plan of the written text: exit {code}: {said.strip()[-600:]}"]
        replanned = json.loads(out)
        for key in ("path", "hash"): # the hash covers the order of the lines
            plan["model"][key] = replanned["model"][key]
        different = [key for key in plan if plan[key] != replanned[key]]
        if different:
            return [f"the plan of the written text differs in {', '.join(different)}"]
        return reordered(run, plan, written)
    return []


def reordered(run, plan, text):
    """The nodes in reverse order: the same counts, where these do not depend on chance."""
    budget, targets = run.options()["budget"], plan["targets"]
    if budget or len(targets) > 1 or "--connected" in run.command or re.search("[$!]", text):
        return []
    blocks = re.findall(r"^(?:[%_(].* \{\n(?:.*\n)*?\}|[^ }].*)\n", text, re.M)
    nodes = [b for b in blocks if b[0] in "%_("]
    others = [b for b in blocks if b[0] not in "%_("]
    assert "".join(blocks) == text, "the text could not be taken apart"
    code, out, said = command(run.args("-") + ["--json"], "".join(others + nodes[::-1]))
    if code:
        return [f"with its nodes reversed: exit {code}: {said.strip()[-600:]}"]
    goal, other = plan["objective"], json.loads(out)["objective"]
    keys = ["engines", "engines_bound"] + ["parts"] * ("--min-nodes" not in run.command)
    return [f"with its nodes reversed: {key}={other[key]}, not {goal[key]}"
            for key in keys if goal[key] != other[key]]


def run_bad(case, _bless):
    """A file that is refused: exit code, and one exact line."""
    faults = []
    for run in case.runs:
        model = os.path.relpath(case.path, SOURCE)
        code, out, said = command(run.args(model))
        said = said.replace(f"cutset: {model}: ", "cutset: ", 1)  # cases leave out their own path
        where = f"bad/{case.name}: {' '.join(run.command)}"
        if code != run.exit or not run.exit:
            faults.append(f"{where}: exit {code}, expected {run.exit}: {said.strip()[-600:]}")
        if said != f"{run.stderr}\n":
            faults.append(f"{where}: it said\n  {said.strip()}\n  expected\n  {run.stderr}")
        if out:
            faults.append(f"{where}: something on stdout: {out[:200]}")
    return faults, len(case.runs), 0


def self_test():
    """The checks must see what is wrong: a good plan, spoilt in one way at a time."""
    case = Case("g01", (CASES / "g01.cut").read_text())
    text = command(case.runs[0].args("-") + ["--json"], case.text)[1]
    graph, options = cut.read(case.text), case.runs[0].options()

    def move(plan, name, to):
        for part in plan["parts"]:
            part["nodes"] = [n for n in part["nodes"] if n != name]
        plan["parts"][to]["nodes"].append(name)

    def merge_hosts(plan):
        plan["parts"][2]["target"] = "host"

    spoilt = [lambda p: p["parts"][0]["nodes"].pop(), lambda p: move(p, "add5", 2),
              lambda p: move(p, "add3", 2), lambda p: p["parts"][0]["nodes"].reverse(),
              lambda p: p["parts"].reverse(), merge_hosts, lambda p: p["boundaries"].pop(),
              lambda p: p["boundaries"][0].update(bytes=8), lambda p: p["fallback"].pop(),
              lambda p: p["fallback"][0].update(rule="op"), lambda p: p["certificate"].pop(),
              lambda p: p["certificate"].insert(0, "r2"), lambda p: p["parts"][0]["inputs"].reverse(),
              lambda p: p["parts"][4]["outputs"].append("add5"),
              lambda p: p["parts"][0].update(weight_bytes=4),
              lambda p: p["parts"][0].update(activation_peak_bytes=4),
              lambda p: p["fallback"][0].update(engines_saved_if_supported=2)]
    spoilt += [lambda p, key=key, value=value: p["objective"].update({key: value})
               for key, value in (("engines", 2), ("engines_bound", 2), ("engines_bound", 4),
                                  ("engines_proved", False), ("parts", 4), ("boundary_bytes", 95),
                                  ("boundary_bytes_bound", 80), ("boundaries_unknown", 1))]
    for spoil in spoilt:
        plan = json.loads(text)
        assert not plan_checks.check(graph, plan, options)[0]
        spoil(plan)
        assert plan_checks.check(graph, plan, options)[0], f"not seen: {spoilt.index(spoil)}"
    plan = json.loads(text)
    for wrong in ("engines=2", "bound=4", "gap", "kept=7", "parts acc{add} host{r1}", "host{add}",
                  "acc{r1}", "together add r1", "apart add add1", "rule r1=op", "saved r1=0",
                  "part 0 outputs=add", "part 9 inputs=a", "boundary add1 bytes=8",
                  "output add4 from=0", "acc{nobody}", "something else"):
        run = Run("plan", 0)
        run.expects = [(0, wrong)]
        assert check_plan(case, run, plan, False), f"not seen: {wrong}"


def main(args):
    self_test()
    bless = "--bless" in args
    chosen = {a for a in args if not a.startswith("-")}
    work = [(run_case, Case(p.stem, p.read_text(), p)) for p in sorted(CASES.glob("*.cut"))]
    work += [(run_case, Case(name, text)) for name, text in large.cases()]
    work += [(run_bad, Case(p.stem, p.read_text(), p)) for p in sorted(CASES.glob("bad/*.cut"))]
    work = [(call, case) for call, case in work if not chosen or case.name in chosen]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda item: item[0](item[1], bless), work))
    faults = [fault for some, _, _ in results for fault in some]
    print(*faults, sep="\n", end="\n" if faults else "")
    runs, searched = (sum(r[i] for r in results) for i in (1, 2))
    print(f"{len(work)} files, {runs} runs, {searched} plans compared with a search, "
          f"{len(faults)} faults")
    return 1 if faults or not work else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
