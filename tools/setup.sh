#!/usr/bin/env bash
# Installs what is missing on a Debian 12; a second run costs nothing.
#   tools/setup.sh build    what compiling needs
#   tools/setup.sh          the same, and what the tests need: packages and .venv
#   tools/setup.sh dev      the same, and clang for fuzzing and formatting
set -euo pipefail
cd "$(dirname "$0")/.."

build=(gcc libc6-dev cmake ninja-build make pkg-config libjansson-dev libcyaml-dev libyaml-dev
       libxxhash-dev)
tests=(binutils g++ libcmocka-dev libonnx-testdata mandoc python3 python3-dev python3-venv)
dev=(clang clang-format libclang-rt-14-dev)

die() {
    echo "setup: $*" >&2
    exit 1
}

install_packages() {
    local missing=() name root=()
    if ! command -v dpkg-query >/dev/null; then
        echo "setup: not a Debian, packages not checked; needed: $*" >&2
        return 0
    fi
    for name in "$@"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true) == installed ]] ||
            missing+=("$name")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) -ne 0 ]]; then
        command -v sudo >/dev/null || die "as root, install first: ${missing[*]}"
        root=(sudo)
    fi
    echo "setup: installing ${missing[*]}"
    "${root[@]}" apt-get update -qq || die "apt-get update failed; still missing: ${missing[*]}"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" ||
        die "apt-get install failed; still missing: ${missing[*]}"
}

# Asks for the tools themselves, so that the build needs no Debian.
can_build() {
    command -v cmake >/dev/null && command -v ninja >/dev/null &&
        command -v "${CC:-cc}" >/dev/null && command -v pkg-config >/dev/null &&
        pkg-config --exists jansson libcyaml yaml-0.1 libxxhash
}

make_venv() {
    local python=${PYTHON:-python3} stamp=.venv/setup.stamp want
    want=$(cat tools/requirements.txt tools/requirements-nodeps.txt | sha256sum)
    if [[ -f $stamp && $(<"$stamp") == "$want" ]] && .venv/bin/python -c '' 2>/dev/null; then
        return 0
    fi
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        die "Python 3.11 or newer is needed (PYTHON=$python)"
    echo "setup: making .venv"
    .venv/bin/python -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear .venv ||
        die "$python cannot make .venv"
    local pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
    "${pip[@]}" install -r tools/requirements.txt || die "pip failed on tools/requirements.txt"
    "${pip[@]}" install --no-deps -r tools/requirements-nodeps.txt ||
        die "pip failed on tools/requirements-nodeps.txt"
    echo "$want" >"$stamp"
}

case ${1:-test} in
build)
    can_build || install_packages "${build[@]}"
    can_build || die "cannot find cmake, ninja, a C compiler, pkg-config, jansson, libcyaml, libyaml or xxhash"
    ;;
test)
    install_packages "${build[@]}" "${tests[@]}"
    make_venv
    ;;
dev)
    install_packages "${build[@]}" "${tests[@]}" "${dev[@]}"
    make_venv
    ;;
*)
    echo "usage: tools/setup.sh [build|test|dev]" >&2
    exit 2
    ;;
esac
