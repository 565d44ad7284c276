#!/usr/bin/env bash
# Shows cutset on real models: what `make demo` runs after building. Takes a few seconds.
#   tools/demo.sh [DIR]      DIR: where its files go; default: a new folder in the temporary folder
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cutset=${CUTSET:-$root/build/release/cutset}
python=$root/.venv/bin/python

die() {
    echo "demo: $*" >&2
    exit 1
}

[[ -x $cutset ]] || die "$cutset is not there: run make first"
[[ -x $python ]] || die "$python is not there: run tools/setup.sh first"
if [[ $# -gt 0 ]]; then
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
    [[ -z $(ls -A "$dir") ]] || die "$dir is not empty: name a new folder"
else
    dir=$(mktemp -d "${TMPDIR:-/tmp}/cutset-demo.XXXXXX")
fi
cd "$dir"
export VIRTUAL_ENV=$root/.venv
PATH=$(dirname "$cutset"):$PATH
trap 'status=$?; [[ $status -eq 0 ]] || echo "demo: failed; its files are in $dir" >&2' EXIT

step=0
say() { # what comes next, and why
    step=$((step + 1))
    printf '\n--- %d. %s\n' "$step" "$1"
    shift
    [[ $# -eq 0 ]] || printf '    %s\n' "$@"
    echo
}
show() { # a command, and what it prints
    echo "\$ $*"
    "$@"
}

echo "The files of this demo are in $dir"
"$python" "$root/tools/light_model.py" resnet50 . >/dev/null
cp "$("$python" -c 'import importlib.util as u, pathlib as p
print(p.Path(u.find_spec("silero_vad").origin).parent / "data" / "silero_vad_16k_op15.onnx")')" vad.onnx

say "What is in a ResNet-50?" \
    "Its weights have their real size, in a sparse file; they are not read."
show cutset inspect resnet50.onnx

say "How many TensorRT engines does it take?" \
    "Every operator is supported, so one; it is built in four times its weights."
show cutset plan resnet50.onnx --target tensorrt

say "And on a machine that has 128 MiB for each build?" \
    "\"volume\": the weights do not fit into three, so four is proved to be minimal."
show cutset plan resnet50.onnx --target tensorrt --host-memory 128MiB -o plan.json

say "What no budget can hold is named; the exit code is 1, \"the answer is no\"."
echo '$ cutset plan resnet50.onnx --target tensorrt --host-memory 20MiB'
status=0
cutset plan resnet50.onnx --target tensorrt --host-memory 20MiB || status=$?
echo "exit code $status"
[[ $status -eq 1 ]]

say "Write the four parts: each is an ONNX model of its own."
echo '$ cutset split resnet50.onnx --plan plan.json -o parts >/dev/null'
cutset split resnet50.onnx --plan plan.json -o parts >/dev/null
show ls parts

say "Do they compute what the whole model computes?" \
    "ONNX Runtime runs both on three sets of random inputs; every bit is compared."
show cutset verify parts --runs 3

say "Merge the parts back, and compare the result with the source."
show cutset merge parts -o again.onnx
"$python" - <<'EOP'
import numpy as np
import onnx
from onnx import numpy_helper

first, second = onnx.load("resnet50.onnx").graph, onnx.load("again.onnx").graph
assert list(first.node) == list(second.node), "the nodes differ"
assert len(first.initializer) == len(second.initializer), "the number of weights differs"
for a, b in zip(first.initializer, second.initializer):
    assert a.name == b.name, f"{a.name} has become {b.name}"
    assert np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)), f"{a.name} differs"
print(f"{len(first.node)} nodes and {len(first.initializer)} weights are the same, in the same order")
EOP

say "A model with control flow: the voice detector silero-vad." \
    "The branches of its Ifs differ in rank: TensorRT refuses these, and what depends on them."
show cutset plan vad.onnx --target tensorrt

say "Its parts carry the branches of the Ifs, and what these read from outside." \
    "The run gets the sizes and the sample rate that the model leaves open."
echo '$ cutset split vad.onnx --target tensorrt -o vad >/dev/null'
cutset split vad.onnx --target tensorrt -o vad >/dev/null
show cutset verify vad --shape input:1x576 --dim batch=1 --range sr=16000

cat <<EOM

Done. cutset
  - cut a ResNet-50 into 4 engines of at most 128 MiB, and proved that 3 do not do,
  - cut a model with control flow around what TensorRT refuses,
  - ran the parts of both against the whole models: equal, bit for bit,
  - merged the parts back into the same model.
The files are in $dir
(rm -r $dir)
EOM
