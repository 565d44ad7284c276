#!/usr/bin/env bash
# Puts the Python package of this tree into .venv; a second run costs nothing where nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
stamp=build/python.stamp

[[ -x $python ]] || {
    echo "install_python: no .venv: run tools/setup.sh first" >&2
    exit 1
}
want=$(
    "$python" -c 'import sys; print(sys.version, sys.prefix)'
    find CMakeLists.txt pyproject.toml README.md LICENSE cmake doc/cutset.1 include python src targets \
        -name __pycache__ -prune -o -type f -printf '%p %T@ %s\n' | sort
)
if [[ -f $stamp && $(<"$stamp") == "$want" ]] &&
    "$python" -c 'import importlib.metadata as m; m.version("cutset")' 2>/dev/null; then
    exit 0
fi
echo "install_python: building the package into .venv"
"$python" -m pip --quiet --disable-pip-version-check install --no-build-isolation --no-deps \
    --no-index --force-reinstall . || {
    echo "install_python: pip could not build the package" >&2
    exit 1
}
mkdir -p build
echo "$want" >"$stamp"
