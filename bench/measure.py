"""Runs whole processes and tells what they took: time, processor time, memory.

Memory is told twice:

    peak   the high water mark of resident memory, mapped files included: ru_maxrss. The kernel
           starts it, for a child, at what the parent had held, so a smaller peak reads as that: an
           upper bound, about 20 MB.
    anon   the highest sum of RssAnon and RssShmem that was seen: memory without file pages. Sampled
           every 2 ms, so a spike may be missed. `fits` is the proof: it runs the command with
           RLIMIT_DATA, which refuses private writable memory over the limit, touched or not.

Times are compared in interleaved pairs (a b, b a, a b ...), so that a machine that slows down slows
both; the ratio is the median of the ratios of the pairs. Nothing here imports numpy or onnx: what
makes models runs in a process of its own.
"""
import argparse
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
MB = 10**6
SAMPLE = 0.002  # seconds


@dataclass
class Sample:
    wall: float
    cpu: float
    peak: int  # bytes
    anon: int
    status: int  # exit code, or minus the signal
    output: str


def memory_now(pid):
    """Bytes by name, RssAnon and others; {} when the process has no memory any more."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {k: int(v) * 1024 for k, v in re.findall(r"^(Rss\w+):\s+(\d+) kB", text, re.M)}


def run(argv):
    """One run; its stdout and stderr go to a file, which `Sample.output` holds the end of."""
    argv = [str(a) for a in argv]
    with tempfile.TemporaryFile() as log:
        start = time.monotonic()
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        anon = 0
        while True:
            seen = memory_now(child.pid)
            anon = max(anon, seen.get("RssAnon", 0) + seen.get("RssShmem", 0))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(SAMPLE)
        wall = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        log.seek(max(0, log.seek(0, os.SEEK_END) - 20000))
        text = log.read().decode(errors="replace")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, anon,
                  child.returncode, text)


def must(argv):
    sample = run(argv)
    if sample.status != 0:
        sys.exit(f"{' '.join(map(str, argv))}\nended with {sample.status}:\n{sample.output}")
    return sample


def fits(argv, limit):
    """Does the command run with at most `limit` bytes of private writable memory?"""
    return run(["prlimit", f"--data={limit}", *argv]).status == 0


class Series:
    """Samples of one command; the medians of them."""

    def __init__(self):
        self.samples = []

    def __getattr__(self, name):
        return statistics.median(getattr(s, name) for s in self.samples)

    def most(self, name):
        return max(getattr(s, name) for s in self.samples)


def interleave(commands, runs, before=None, after=None):
    """Runs every command `runs` times, in turns and in both directions; a Series for each.

    A command is an argv or a function that returns a Sample; before and after run outside the time.
    """
    result = [Series() for _ in commands]
    order = list(enumerate(commands))
    for turn in range(runs):
        for index, command in order if turn % 2 == 0 else reversed(order):
            if before:
                before()
            result[index].samples.append(command() if callable(command) else must(command))
            if after:
                after()
    return result


def ratio(a, b, name="wall"):
    """Median of the ratios of the pairs."""
    return statistics.median(getattr(x, name) / getattr(y, name)
                             for x, y in zip(a.samples, b.samples, strict=True))


def blocks(path):
    """Bytes that a file or the files of a folder take on the disk."""
    path = Path(path)
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    return sum(p.stat().st_blocks * 512 for p in files)


def flush(path):
    """Writes back what is dirty on the file system of `path`, so that no run pays for another."""
    subprocess.run(["sync", "-f", str(path)], check=True)


# ---- words ----

def seconds(x):
    return f"{x:.2f} s" if x >= 1 else f"{1000 * x:.0f} ms"


def size(x):
    for unit, name in ((10**9, "GB"), (MB, "MB"), (1000, "kB")):
        if x >= unit:
            return f"{x / unit:.{0 if x >= 100 * unit else 1}f} {name}"
    return f"{x} B"


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    ram = re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return [("processor", cpu.group(1) if cpu else os.uname().machine),
            ("cores", str(os.cpu_count())),
            ("memory", f"{int(ram.group(1)) / 2**20:.1f} GiB"),
            ("kernel", os.uname().release.split("-")[0]),
            ("python", sys.version.split()[0])]


def load():
    return " ".join(f"{x:.1f}" for x in os.getloadavg())


# ---- the table ----

class Table:
    """Rows of one script: what was asked, what came out, met or not."""

    def __init__(self, name, about, args):
        self.name, self.about, self.args = name, about, args
        self.rows, self.notes, self.began = [], [], load()
        print(f"{name}: {about}", flush=True)

    def add(self, what, bar, measured, met=None):
        """met None: a figure without a bar."""
        verdict = {None: "", True: "met", False: "**missed**"}[met]
        self.rows.append((what, bar, measured, verdict))
        print(f"  {what}: {measured}{f'; bar: {bar}; {verdict}' if bar else ''}", flush=True)

    def text(self):
        width = [max(len(r[i]) for r in [*self.rows, HEAD]) for i in range(4)]
        lines = [f"## {self.name}", "", self.about, ""]
        for row in [HEAD, tuple("-" * w for w in width), *self.rows]:
            lines.append("| " + " | ".join(c.ljust(w) for c, w in zip(row, width)) + " |")
        lines += ["", *(f"- {n}" for n in self.notes)]
        lines += [f"- Medians of {self.args.runs} runs in turns; load average {self.began} before, "
                  f"{load()} after, with the bench's own.", ""]
        return "\n".join(lines)

    def end(self):
        """Saves when told to; 1 when a bar was missed."""
        if self.args.save:
            save(self.name, self.text())
        return 1 if any(r[3] == "**missed**" for r in self.rows) else 0


HEAD = ("what", "bar", "measured", "")
INTRO = """# Results

What `make bench` measured: whole processes of the release build, files in the page cache. Made by
the scripts beside this file; the ratios say more than the times. "Peak" is resident memory, mapped
files included; one under 20 MB or so reads as what the measuring process holds, an upper bound.
"Without file pages" is anonymous and shared memory, sampled. MB = 10^6 bytes.
"""


def save(name, text):
    """Puts one section in the place of the older one."""
    parts = re.split(r"^(?=## )", RESULTS.read_text(), flags=re.M)[1:] if RESULTS.exists() else []
    sections = {p.split("\n")[0].removeprefix("## "): p for p in parts}
    facts = "".join(f"| {k} | {v} |\n" for k, v in [*machine(), ("version", version())])
    sections["machine"] = f"## machine\n\n| fact | value |\n|---|---|\n{facts}"
    sections[name] = text
    order = ["machine", "scale", "weights", "extract"]
    names = sorted(sections, key=lambda n: order.index(n) if n in order else len(order))
    RESULTS.write_text("\n".join([INTRO, *(sections[n].rstrip() + "\n" for n in names)]))


def version():
    """The command's version and the last commit that changed its source, where git knows."""
    def output(*argv):
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()

    said = output(CUTSET[0], "--version")
    commit = output("git", "-C", ROOT, "log", "-1", "--format=%h", "--", "src", "targets")
    changed = output("git", "-C", ROOT, "status", "--porcelain", "--", "src", "targets")
    return f"{said}, {commit}{' and changes' if changed else ''}" if commit else said


# ---- the script's frame ----

CUTSET = [str(ROOT / "build/release/cutset")]


def options(doc, runs):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cutset", default=CUTSET[0], help="the command (build/release/cutset)")
    parser.add_argument("--dir", default=ROOT / "build/bench", type=Path,
                        help="where models are made, and removed again (build/bench)")
    parser.add_argument("--runs", type=int, default=runs, help=f"runs of each command ({runs})")
    parser.add_argument("--save", action="store_true", help="write the table to bench/RESULTS.md")
    return parser


def start(parser):
    args = parser.parse_args()
    CUTSET[0] = str(Path(args.cutset).resolve())
    if not os.access(CUTSET[0], os.X_OK):
        sys.exit(f"{args.cutset} is not there: run make first, or name it with --cutset")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # folders are removed on the way out
    return args


@contextlib.contextmanager
def folder(args, free):
    """A folder for this run, gone afterwards; `free` bytes must be left on its disk."""
    args.dir.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(args.dir).free < free + 2 * 10**9:
        sys.exit(f"{args.dir} needs {size(free + 2 * 10**9)} of free space: name another folder "
                 "with --dir")
    with tempfile.TemporaryDirectory(dir=args.dir) as path:
        yield Path(path)
