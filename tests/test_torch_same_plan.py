"""The same graph gives the same plan and the same modules, whatever the hash seed and the heap."""
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import cutset.torch
from torch_programs import program
ballast = [object() for _ in range(int(sys.argv[1]) * 1000)]
for seed in range(12):
    gm, _, supported = program(seed)
    parted = cutset.torch.partition(gm, supported=supported, cpu_memory_budget=100,
                                    memory_factor=1, oversize="host")
    print(parted.meta["cutset"].to_json(), parted.code)
    print([part.code for name, part in parted.named_children() if name.startswith("_run_on")])
"""


def test_hash_seeds():
    results = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", SCRIPT, seed], env=environment, check=True,
                              cwd=Path(__file__).parent, capture_output=True, text=True)
        assert "_run_on_acc_" in done.stdout
        results.add(done.stdout)
    assert len(results) == 1
