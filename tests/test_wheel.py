"""The wheel, in an environment of its own: no compiler, no source tree, no development packages.

Builds it in the folder that tools/install_python.sh uses, so little is compiled. Nothing is
downloaded: cffi and its parser are linked in from the environment of the test.
"""
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent))
GRAPH = ("input %x : f32[2]\n%y = Relu(%x) @acc,host\n%z = Sigmoid(%y) @host\n"
         "%q = Neg(%z) @acc,host\noutput %q\n")
for needed in ("cffi", "scikit_build_core"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"no {needed}", allow_module_level=True)


def run(*command, code=0, **more):
    done = subprocess.run([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=1200, **more)
    assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def build(out):
    """The settings are those of the project: what `pip wheel .` makes."""
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", SOURCE, "-w", out,
        "--no-build-isolation", "--no-deps", "--no-index")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    build(out)
    found = list(out.iterdir())
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def place(wheel, tmp_path_factory):
    """A fresh environment with the wheel; its folder."""
    folder = tmp_path_factory.mktemp("fresh") / "env"
    venv.create(folder, with_pip=False, symlinks=True)
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python",
        folder / "bin" / "python", "install", "--no-index", "--no-deps", wheel)
    site = next(folder.glob("lib/python3*/site-packages"))
    for name in ("cffi", "_cffi_backend", "pycparser"):
        origin = Path(importlib.util.find_spec(name).origin)
        origin = origin.parent if origin.name == "__init__.py" else origin
        (site / origin.name).symlink_to(origin)
    return folder


@pytest.fixture
def bare(place, tmp_path):
    """Runs in an empty folder, with nothing in the environment that leads back here."""
    (tmp_path / "g.cut").write_text(GRAPH)
    env = {"PATH": "/nowhere", "HOME": str(tmp_path)}

    def start(*command, **more):
        return run(*command, cwd=tmp_path, env=env, **more)

    start.env, start.folder = env, tmp_path
    return start


def test_name_and_contents(wheel):
    assert re.fullmatch(r"cutset-[0-9.]+-py3-none-linux_[a-z0-9_]+\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(n for n in names if n.endswith("METADATA"))).decode()
    for name in ("cutset/__init__.py", "cutset/py.typed", "cutset/libcutset.so",
                 "cutset/include/cutset.h", "cutset/torch/__init__.py",
                 "cutset/torchscript/__init__.py"):
        assert name in names, f"{name} is not in the wheel"
    assert any(name.endswith(".data/scripts/cutset") for name in names)
    assert any(name.endswith("LICENSES") for name in names)
    assert not [n for n in names if n.startswith(("tests", "src")) or "__pycache__" in n]
    assert len([n for n in names if ".so" in n]) == 1  # no links, no second copy
    assert "Requires-Python: >=3.11" in metadata
    assert re.findall(r"^Requires-Dist: (?!.*extra)(.*)$", metadata, re.M) == ["cffi>=1.15"]


def test_needs_the_c_library_alone(place):
    for file in (next(place.glob("lib/python3*/site-packages/cutset/libcutset.so")),
                 place / "bin" / "cutset"):
        needed = set(re.findall(r"^\t(\S+?)\.so", run("ldd", file), re.M))
        needed = {Path(name).name for name in needed}
        assert needed <= {"linux-vdso", "libc", "libm", "libdl", "libpthread", "ld-linux-x86-64",
                          "ld-linux-aarch64"}, needed
    names = run("nm", "-D", "--defined-only", next(place.glob("lib/*/*/cutset/libcutset.so")))
    names = {line.split()[-1] for line in names.splitlines()}
    assert "cutset_plan_make" in names and all(n.startswith("cutset_") for n in names), names
    for file in [place / "bin" / "cutset", *place.glob("lib/python3*/site-packages/cutset/*.so")]:
        assert str(SOURCE).encode() not in file.read_bytes(), f"{file} holds the path of the tree"


def test_import_and_plan(place, bare):
    said = bare(place / "bin" / "python", "-c", (
        "import sys, cutset\n"
        "print(sorted({'torch', 'onnx', 'numpy'} & set(sys.modules)))\n"
        "plan = cutset.plan('g.cut', target='acc')\n"
        "print(plan.engines, plan.engines_proved, cutset.__version__)\n"
        "print(cutset.plan(b'input %x : f32[2]\\n%y = Relu(%x)\\noutput %y').targets[0])\n"
        "print(cutset.__file__)\n"
        "import importlib.metadata as m; print(m.version('cutset'))\n"))
    lines = said.splitlines()
    assert lines[0] == "[]" and lines[1].startswith("2 True ") and "tensorrt-" in lines[2]
    assert lines[3].startswith(str(place)) and lines[1].split()[-1] == lines[4]


def test_target_files_are_read(place, bare):
    """Through the archives that were linked in: libcyaml and libyaml, and jansson for plans."""
    (bare.folder / "mine.yaml").write_text("name: mine\nnodes: {all: true}\n")
    (bare.folder / "bad.yaml").write_text("name: mine\nnodes: [\n")
    (bare.folder / "m.cut").write_text("input %x : f32[2]\n%y = Relu(%x)\noutput %y\n")
    said = bare(place / "bin" / "python", "-c", (
        "import cutset\n"
        "plan = cutset.plan('m.cut', target='./mine.yaml')\n"
        "print(plan.parts[0].target, cutset.Plan.from_json(plan.to_json()) == plan)\n"
        "try: cutset.plan('m.cut', target='bad.yaml')\n"
        "except cutset.ModelError as e: print(e)\n"))
    lines = said.splitlines()
    assert lines[0] == "mine True" and "bad.yaml" in lines[1] and len(lines) == 2


def test_command(place, bare):
    command = place / "bin" / "cutset"
    assert "2 engines on acc" in bare(command, "plan", "g.cut", "--target", "acc")
    assert "tensorrt" in bare(command, "targets")
    bare(command, "plan", "none.cut", "--target", "acc", code=4)
    assert (place / "share" / "man" / "man1" / "cutset.1").is_file()


def test_signals_reach_the_command(place, bare):
    """It is the program itself, not a script around it."""
    process = subprocess.Popen([place / "bin" / "cutset", "plan", "-", "--target", "acc"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=bare.env)
    process.stdin.write(b"# a comment\n" * 100000)
    process.stdin.flush()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr.read() == b"cutset: interrupted during reading standard input\n"
    process.stdin.close()


def test_torch_is_asked_for_when_it_is_needed(place, bare):
    said = bare(place / "bin" / "python", "-c", (
        "import cutset\n"
        "for name in ('torch', 'torchscript'):\n"
        "    try: getattr(cutset, name)\n"
        "    except ImportError as e: print(name, e.name)\n"))
    assert said == "torch torch\ntorchscript torch\n"


def test_a_missing_library_is_said(place, bare):
    done = subprocess.run([place / "bin" / "python", "-c", "import cutset"], text=True,
                          env={**bare.env, "CUTSET_LIBRARY": "/nowhere/libcutset.so"},
                          capture_output=True)
    assert done.returncode and "CUTSET_LIBRARY" in done.stderr.splitlines()[-1]


def test_a_second_build_compiles_nothing(wheel):
    def compiled():
        log = (SOURCE / "build" / "python" / ".ninja_log").read_text()
        fields = (line.split("\t") for line in log.splitlines() if ".c.o" in line)
        return {output: when for _, _, when, output, _ in fields}  # the last line of each counts

    before = compiled()
    assert len(before) > 50
    with tempfile.TemporaryDirectory() as out:
        build(out)
    assert compiled() == before
