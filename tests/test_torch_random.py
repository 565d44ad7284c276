"""Random programs: parted equals eager, also with every engine replaced by a copy that is a function
of values. 2,000 programs under CUTSET_LONG=1, a seeded sample else."""
import os
import random
import warnings

import cutset
import cutset.torch
from torch_checks import check, engines, run, snapshot
from torch_programs import program

SAMPLE = 2000 if os.environ.get("CUTSET_LONG") else 250


def options(seed):
    rng = random.Random(seed * 31)
    chosen = {}
    if rng.random() < 0.3:
        chosen["min_block_size"] = rng.randint(2, 4)
    if rng.random() < 0.3:
        chosen.update(cpu_memory_budget=rng.choice((60, 100, 200, 400)), memory_factor=1,
                      oversize=rng.choice(("keep", "host")))
    for name, share in (("host_submodules", 0.2), ("allow_non_tensor", 0.2)):
        if rng.random() < share:
            chosen[name] = False
    if rng.random() < 0.15:
        chosen["skip_horizontal_fusion"] = True
    if rng.random() < 0.15:
        chosen["max_engines"] = rng.randint(1, 3)
    return chosen


def one(seed):
    """The number of engines, or None: the program itself does not run."""
    gm, inputs, supported = program(seed)
    try:
        run(gm, gm, inputs, {}, 7)
    except (RuntimeError, IndexError):  # writes to an expanded value, a scalar is indexed
        return None
    before, chosen = snapshot(gm), options(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cutset.OversizeWarning)
        parted = cutset.torch.partition(gm, supported=supported, **chosen)
    assert snapshot(gm) == before
    plan = parted.meta["cutset"]
    assert len(engines(parted)) == plan.engines
    assert plan.engines >= plan.engines_bound or "max_engines" in chosen
    check(gm, parted, inputs, host_submodules=chosen.get("host_submodules", True), seed=7,
          exact=True)
    return plan.engines


def test_random_programs():
    found, ran = 0, 0
    for seed in range(SAMPLE):
        try:
            n = one(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        ran += n is not None
        found += n or 0
    assert ran > SAMPLE * 0.7 and found > SAMPLE // 2, (ran, found)
