"""Random programs: parted equals eager, also with every engine replaced by a copy that is a function
of values. 2,000 programs under CUTSET_LONG=1, a seeded sample else."""
import copy
import os
import random
import warnings

import torch

import cutset
import cutset.torch
from torch_programs import program

SAMPLE = 2000 if os.environ.get("CUTSET_LONG") else 250


class Copied(torch.nn.Module):
    """An engine as a builder makes it: weights baked in, inputs and outputs of its own."""

    def __init__(self, module):
        super().__init__()
        self.engine = copy.deepcopy(module)

    def forward(self, *args):
        out = self.engine(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args])
        if isinstance(out, tuple):
            return tuple(o.clone() if isinstance(o, torch.Tensor) else o for o in out)
        return out.clone() if isinstance(out, torch.Tensor) else out


def run(module, inputs, owner):
    """Results; then the inputs, and the parameters and buffers of `owner`, as they are afterwards."""
    torch.manual_seed(7)
    out = module(*inputs)
    out = out if isinstance(out, (tuple, list)) else (out,)
    state = [*inputs, *owner.parameters(), *owner.buffers()]
    return [x.detach().clone() for x in (*out, *state)]


def same(a, b):
    return len(a) == len(b) and all(
        x.shape == y.shape and torch.equal(x.nan_to_num(7), y.nan_to_num(7)) for x, y in zip(a, b))


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
        want = run(gm, inputs, gm)
    except (RuntimeError, IndexError):  # writes to an expanded value, a scalar is indexed
        return None
    before = {}
    results = []
    for copied in (False, True):
        gm, inputs, supported = program(seed)
        code = gm.code
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cutset.OversizeWarning)
            parted = cutset.torch.partition(gm, supported=supported, **options(seed))
        assert gm.code == code
        names = [n for n, _ in parted.named_children() if n.startswith("_run_on_acc_")]
        plan = parted.meta["cutset"]
        assert len(names) == plan.engines >= plan.engines_bound or "max_engines" in options(seed)
        if copied:
            for name in names:
                setattr(parted, name, Copied(getattr(parted, name)))
        results.append(run(parted, inputs, gm))
        before[copied] = len(names)
    assert same(want, results[0]), f"seed {seed}: parted differs from eager"
    assert same(want, results[1]), f"seed {seed}: engines as copies differ from eager"
    return before[False]


def test_random_programs():
    engines, ran = 0, 0
    for seed in range(SAMPLE):
        try:
            n = one(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
        ran += n is not None
        engines += n or 0
    assert ran > SAMPLE * 0.7 and engines > SAMPLE // 2, (ran, engines)
