"""Installs the build into a folder, moves that folder, and builds programs against it.

Takes the release build where there is one: the sanitizers of the build under test would have to be
linked into every program.
"""
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent))
RELEASE = SOURCE / "build" / "release"
BUILD = RELEASE if (RELEASE / "cutset").exists() else Path(os.environ["CUTSET"]).parent
PROGRAM = SOURCE / "tests" / "install"


def run(*command, **env):
    command = [str(word) for word in command]
    done = subprocess.run(command, env={**os.environ, **env}, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


def cache(key):
    lines = (BUILD / "CMakeCache.txt").read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith(key + ":")), "")


def main(folder):
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    prefix = (folder / "first").rename(folder / "second")
    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    for name in ["bin/cutset", "include/cutset.h", "share/doc/cutset/LICENSE"]:
        assert (prefix / name).is_file(), f"{name} is not installed"
    if (SOURCE / "doc" / "cutset.1").exists():
        assert (prefix / "share/man/man1/cutset.1").is_file(), "the manual is not installed"
    for file in [*lib.rglob("*.cmake"), *lib.rglob("*.pc")]:
        for place in [SOURCE, folder]:
            assert str(place) not in file.read_text(), f"{file} holds the path {place}"

    # Nothing but the public API leaves the shared library.
    names = [line.split()[-1] for line in
             run("nm", "-D", "--defined-only", lib / "libcutset.so").splitlines()]
    assert "cutset_version_string" in names
    assert all(name.startswith("cutset_") for name in names), names

    flags = "-fsanitize=address,undefined" if cache("CUTSET_SANITIZE") == "ON" else ""
    cc, env = cache("CMAKE_C_COMPILER"), {"PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    version = run("pkg-config", "--modversion", "cutset", **env).strip()

    # pkg-config, shared and static
    words = shlex.split(run("pkg-config", "--cflags", "--libs", "cutset", **env))
    run(cc, *flags.split(), PROGRAM / "main.c", "-o", folder / "user", *words)
    printed = [run(folder / "user", LD_LIBRARY_PATH=str(lib))]
    words = shlex.split(run("pkg-config", "--static", "--cflags", "--libs", "cutset", **env))
    words = ["-l:libcutset.a" if word == "-lcutset" else word for word in words]
    run(cc, *flags.split(), PROGRAM / "main.c", "-o", folder / "user-static", *words)
    printed.append(run(folder / "user-static"))

    # find_package
    run("cmake", "-G", "Ninja", "-S", PROGRAM, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={cc}", f"-DCMAKE_C_FLAGS={flags}")
    run("cmake", "--build", folder / "build")
    printed += [run(folder / "build" / "user"), run(folder / "build" / "user_static")]

    assert printed == [version + "\n"] * 4, f"{printed}, but cutset.pc says {version}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
    print(f"installed from {BUILD.name}")
    sys.exit(0)
