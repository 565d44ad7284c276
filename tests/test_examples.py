"""Every program of examples/ runs, says something, and finds what it asserts."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cutset")

FOLDER = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).resolve().parent.parent)) / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
# Lines that are the point of the example.
SAYS = {"fx": ["4 engines, proved minimal", "on the host: cumsum, cumsum is not implemented",
               "in place: ['_run_on_acc_0_resource_split_0', '_run_on_acc_0_resource_split_1']"],
        "export": ["Total Operators", "_run_on_acc_0", "largest difference, torch.jit: 0.0"]}


def test_there_are_examples():
    assert {p.stem for p in EXAMPLES} >= {"fx", "export", "torchscript"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    done = subprocess.run([sys.executable, "-W", "ignore", path], capture_output=True, text=True,
                          cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
    for line in SAYS.get(path.stem, ()):
        assert line in done.stdout, done.stdout
    assert not list(tmp_path.iterdir())
