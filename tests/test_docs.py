"""The documents say what is so: examples are run, lists are compared with the code.

- README.md and doc/cutset.1: every block that begins with "$ " is run in a folder of its own, and what
  it prints is compared; a line "..." stands for any lines. `$ cat FILE` makes a file that is not there.
- README.md: the Python sessions are run by doctest, with the package where it is installed.
- The C program of README.md is compiled against the library beside $CUTSET, and run.
- doc/cutset.1 has the options of each command's help and no others; mandoc finds no fault.
- doc/FORMAT.md: its text graph and target file are read; its keys of plan.json are those of a plan, in
  order; its rules are those of the code. Links between documents lead somewhere.

Numbers, sizes and names count. Only places of files and the version of ONNX Runtime are made equal.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent))
CUTSET = Path(os.environ.get("CUTSET", SOURCE / "build" / "release" / "cutset")).resolve()
BUILD = CUTSET.parent
README, MANUAL, FORMAT = SOURCE / "README.md", SOURCE / "doc" / "cutset.1", SOURCE / "doc" / "FORMAT.md"
COMMANDS = ["inspect", "plan", "split", "verify", "merge", "targets"]
faults = []


def fault(what):
    faults.append(what)
    print(f"FAULT {what}")


def run(command, folder, check=True):
    env = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    if sys.prefix != sys.base_prefix:
        env["VIRTUAL_ENV"] = sys.prefix
    done = subprocess.run(command, shell=isinstance(command, str), cwd=folder, env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode:
        fault(f"{command}: exit {done.returncode}: {done.stdout.strip()}")
    return done.stdout


# ---- examples ----

def fenced(text, language=""):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return [block for of, block in blocks if of == language]


def displays(text):
    """The displays of an mdoc page, as they are printed."""
    blocks = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", text, re.M | re.S)
    return [block.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\") for block in blocks]


def steps(blocks):
    """(command, printed lines) for each "$ " line."""
    for block in blocks:
        lines = block.splitlines()
        if not lines or not lines[0].startswith("$ "):
            continue
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")] + [len(lines)]
        for start, end in zip(starts, starts[1:]):
            yield lines[start][2:], lines[start + 1:end]


def plain(line, folder):
    """Places of files and the runtime's version made equal."""
    line = re.sub(r"ONNX Runtime [0-9.]+", "ONNX Runtime X", line).rstrip()
    words = [os.path.normpath(word) if "/../" in word else word for word in line.split(" ")]
    return " ".join(words).replace(f"{folder}/", "")


def agrees(shown, printed):
    """Does `printed` look as `shown`, in which "..." stands for any lines?"""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(agrees(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and agrees(shown[1:], printed[1:])


def check_examples(name, blocks, folder):
    count = 0
    for command, shown in steps(blocks):
        made = re.fullmatch(r"cat (\S+)", command)
        if made and not (folder / made[1]).exists():
            (folder / made[1]).write_text("\n".join(shown) + "\n")
        printed = [plain(line, folder) for line in run(command, folder).splitlines()]
        if not agrees([plain(line, folder) for line in shown], printed):
            fault("\n    ".join([f"{name}: $ {command}", "--- shown", *shown, "--- printed", *printed]))
        count += 1
    if count < 5:
        fault(f"{name}: {count} examples found")
    return count


def make_model(name, folder):
    run([sys.executable, str(SOURCE / "tools" / "light_model.py"), name, str(folder)], folder)


# ---- the C program ----

def cache(key):
    lines = (BUILD / "CMakeCache.txt").read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{key}:")), "")


def check_program(folder):
    programs = fenced(README.read_text(), "c")
    if len(programs) != 1:
        fault(f"README.md has {len(programs)} C programs")
        return
    (folder / "example.c").write_text(programs[0])
    flags = ["-fsanitize=address,undefined"] if cache("CUTSET_SANITIZE") == "ON" else []
    run([cache("CMAKE_C_COMPILER"), "-std=c17", "-Wall", "-Wextra", "-Werror", "-pedantic", *flags,
         f"-I{SOURCE / 'include'}", "example.c", "-o", "example", f"-L{BUILD}", "-lcutset",
         f"-Wl,-rpath,{BUILD}"], folder)
    if not (folder / "example").exists():
        return  # told already
    printed = run(["./example"], folder)
    if not re.fullmatch(r"[0-9]+ engines, proved minimal\n", printed):
        fault(f"README.md: the C program prints {printed!r}")
    if not (folder / "from-c" / "plan.json").exists():
        fault("README.md: the C program writes no plan.json")


# ---- the Python sessions ----

def check_sessions(folder):
    sessions = fenced(README.read_text(), "pycon")
    if not sessions:
        fault("README.md has no Python session")
    if importlib.util.find_spec("cutset") is None:
        print("README.md: no Python package, its sessions are not run")
        return
    (folder / "sessions.txt").write_text("\n".join(sessions))
    print(f"README.md: {len(sessions)} Python sessions")
    run([sys.executable, "-m", "doctest", "-o", "ELLIPSIS", "sessions.txt"], folder)


# ---- the manual ----

def check_manual(folder):
    text = MANUAL.read_text()
    sections = {part.split("\n", 1)[0].strip(): part
                for part in re.split(r"^\.S[sh] ", text, flags=re.M)[1:]}

    def options(section):
        return set(re.findall(r"^\.It Fl (?:Fl )?([a-z-]+)", sections[section], re.M))

    shared = {"model": options("Model options"), "planning": options("Planning options")}
    for command in COMMANDS:
        told = options(command)
        if "model options apply" in sections[command]:
            told |= shared["model"]
        if "planning and model options apply" in sections[command]:
            told |= shared["planning"]
        text_of_help = run(["cutset", command, "--help"], folder)
        helped = set(re.findall(r"(?<![\w-])--?([a-z][a-z-]*)", text_of_help))
        if told != helped:
            fault(f"cutset {command}: only in --help {sorted(helped - told)}, only in the manual "
                  f"{sorted(told - helped)}")
    parsed = {"later": set(), "now": set()}
    for file in sorted((SOURCE / "src" / "cli").glob("*.[ch]")):
        for name, kind in re.findall(r'\{"([a-z-]+)", CLI_([A-Z]+)', file.read_text()):
            parsed["later" if kind == "LATER" else "now"].add(name)
    everything = set(re.findall(r"Fl (?:Fl )?([a-z-]+)", text))
    later = set(re.findall(r"Fl Fl ([a-z-]+)", sections["BUGS"])) - {"objective"}
    if not parsed["now"] or not parsed["now"] <= everything:
        fault(f"options without a word in the manual: {sorted(parsed['now'] - everything)}")
    if later != parsed["later"]:
        fault(f"BUGS lists {sorted(later)} as not there yet, the code {sorted(parsed['later'])}")
    if shutil.which("mandoc"):
        said = run(["mandoc", "-T", "lint", "-W", "style", str(MANUAL)], folder, check=False)
        said = [line for line in said.splitlines() if "mandoc.db" not in line]
        if said:
            fault("mandoc: " + "; ".join(said))


# ---- FORMAT.md ----

def keys_of(value, name=""):
    """The keys below a JSON value in order: a.b, a[].c; what has none inside is a key itself."""
    if isinstance(value, dict) and name != "parts[].ops":
        for key, inner in value.items():
            yield from keys_of(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from keys_of(value[0], f"{name}[]")
    else:
        yield name


def check_format(folder):
    text = FORMAT.read_text()
    graph, target = fenced(text, "cut"), fenced(text, "yaml")
    if len(graph) != 1 or len(target) != 1:
        fault(f"FORMAT.md has {len(graph)} graphs and {len(target)} target files")
        return
    (folder / "format.cut").write_text(graph[0])
    (folder / "format.yaml").write_text(target[0])
    first = run("cutset inspect --text format.cut | tee again.cut", folder)
    if first.startswith("note:") or run("cutset inspect --text again.cut", folder) != first:
        fault(f"FORMAT.md: the text graph is not read as it is written: {first}")
    run("cutset targets ./format.yaml", folder)
    plan = json.loads(run("cutset plan format.cut --target acc --json 2>/dev/null", folder))
    real = list(keys_of(plan))
    told = re.findall(r"^\| `([a-z_.\[\]-]+)` \|", text.split("\n## 2")[1].split("\n## 3")[0], re.M)
    told = [key for key in told if "." in key or key == "certificate"]
    if told != real:
        fault(f"plan.json: FORMAT.md lacks {[k for k in real if k not in told]}, has too many "
              f"{[k for k in told if k not in real]}, or their order is another")
    rules = set(re.findall(r'X\([A-Z]+, "([a-z]+)"\)', (SOURCE / "src/target/target.h").read_text()))
    listed = set(re.findall(r"`([a-z]+)`", text.split("**Rules.**")[1].split("\n\n")[0]))
    if not rules or rules != listed:
        fault(f"rules: FORMAT.md has {sorted(listed)}, the code {sorted(rules)}")


def check_links():
    for page in [README, *sorted((SOURCE / "doc").glob("*.md"))]:
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            if not (page.parent / link).exists():
                fault(f"{page.name}: a link to {link}, which is not there")
        headings = {re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-")
                    for h in re.findall(r"^#+ (.*)$", text, re.M)}
        for link in re.findall(r"\]\(#([^)]+)\)", text):
            if link not in headings:
                fault(f"{page.name}: a link to #{link}, which is no heading")


if __name__ == "__main__":
    check_links()
    for name, blocks, model in [("README.md", fenced(README.read_text()), "resnet50"),
                                ("cutset.1", displays(MANUAL.read_text()), "squeezenet")]:
        with tempfile.TemporaryDirectory() as place:
            place = Path(place).resolve()
            make_model(model, place)
            print(f"{name}: {check_examples(name, blocks, place)} examples")
            if name == "README.md":
                check_program(place)
                check_sessions(place)
    with tempfile.TemporaryDirectory() as place:
        check_manual(place)
        check_format(Path(place))
    sys.exit(f"faults: {len(faults)}" if faults else 0)
