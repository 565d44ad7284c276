"""cutset.torchscript: plans of known graphs, modules in parts against TorchScript itself.

The graphs named TS1 ... TS8, X1 ... X5 and G48 are known cases with known answers. Random programs
(script_programs.py) run whole and in parts, as they are and with each engine replaced by a copy
that clones what it takes and gives; an ordinary run takes a seeded sample, CUTSET_LONG=1 more.
"""
import copy
import io
import os
import pathlib
import pickle
import random
import re
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: E402

sys.path.insert(0, os.path.dirname(__file__))
import script_programs  # noqa: E402

import cutset  # noqa: E402
from cutset import BudgetError, NotFullySupportedError, UsageError  # noqa: E402
from cutset.torchscript import PartitionedModule, partition, plan  # noqa: E402

LONG = os.environ.get("CUTSET_LONG") == "1"
HERE = os.path.dirname(os.path.abspath(__file__))


def script(module, train=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module.train(train))


def same(a, b, grad=False):
    """Equal to the bit, in structure, dtype and strides."""
    if isinstance(a, torch.Tensor):
        return (isinstance(b, torch.Tensor) and torch.equal(a, b) and a.dtype == b.dtype
                and a.stride() == b.stride() and (not grad or a.requires_grad == b.requires_grad))
    if isinstance(a, (list, tuple)):
        named = [getattr(value, "_fields", type(value)) for value in (a, b)]
        return named[0] == named[1] and len(a) == len(b) and all(
            same(x, y, grad) for x, y in zip(a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k], grad) for k in a)
    return type(a) is type(b) and a == b


class Cloning(nn.Module):
    """An engine as a function of values: its own weights, its own tensors in and out."""

    def __init__(self, engine):
        super().__init__()
        self.engine = copy.deepcopy(engine)

    def forward(self, *given):
        assert all(isinstance(value, torch.Tensor) for value in given)
        made = self.engine(*(value.clone() for value in given))
        if made is None:  # nothing but writes to tensors of its own
            return None
        several = isinstance(made, tuple)
        assert all(isinstance(value, torch.Tensor) for value in (made if several else (made,)))
        return tuple(value.clone() for value in made) if several else made.clone()


def engines(parted):
    return [name for name, _ in parted.named_children() if name.startswith("_run_on_acc_")]


def bake(parted):
    for name in engines(parted):
        setattr(parted, name, Cloning(getattr(parted, name)))
    return parted


def check(module, args, **options):
    """Partitions copies of a module; twice the same results, arguments, state. The plan."""
    for baked in (False, True):
        whole, parted = copy.deepcopy(module), partition(copy.deepcopy(module), **options)
        assert [f"_run_on_{'gpu' if part.target == 'host' else 'acc'}_{part.id}"
                for part in parted.plan.parts] == [
                    name for name, _ in parted.named_children() if name.startswith("_run_on_")]
        for name in engines(parted):
            kinds = {str(value.type()) for value in getattr(parted, name).graph.inputs()}
            assert kinds <= {"Tensor"}, kinds
        if baked:
            bake(parted)
        for _ in range(2):
            given, taken = copy.deepcopy(args), copy.deepcopy(args)
            assert same(whole(*given), parted(*taken))
            assert same(given, taken)
        state = parted.state_dict()
        assert list(state) == list(whole.state_dict())
        assert all(torch.equal(value, state[name]) for name, value in whole.state_dict().items())
    return parted.plan


def shape(found):
    """(target, kinds without constructs) of each part."""
    return [("P" if part.target == "host" else "T",
             [kind.removeprefix("aten::") for kind in part.ops if not kind.startswith("prim::")])
            for part in found.parts]


# ---- known graphs ----

class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 16, 3)
        self.c3 = nn.Conv2d(16, 8, 3)

    def forward(self, x):
        return self.c3(F.logsigmoid(self.c2(F.relu(self.c1(x)))))


class Fork(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 16, 3)
        self.c3 = nn.Conv2d(32, 16, 3)

    def forward(self, x):
        a = self.c1(x)
        b = self.c2(a)
        return F.max_pool2d(self.c3(F.logsigmoid(a)) + F.relu(b), 2)


class Cross(nn.Module):
    def forward(self, x, y):
        a, b = x + y, torch.lgamma(x)
        c, d, e = x * y, torch.lgamma(y), x / y
        return torch.cat([b, d, torch.lgamma(e), a, c], 0)


X = (torch.randn(3, 3, 16, 16),)
SIGMOID = {"torch_executed_ops": ["aten::log_sigmoid"]}


@pytest.mark.parametrize("name, module, options, expected", [
    ("TS1", Chain, SIGMOID, [("T", ["conv2d", "relu", "conv2d"]), ("P", ["log_sigmoid"]),
                             ("T", ["conv2d"])]),
    ("TS2", Chain, {**SIGMOID, "min_block_size": 3},
     [("T", ["conv2d", "relu", "conv2d"]), ("P", ["log_sigmoid", "conv2d"])]),
    ("TS4", Chain, {"torch_executed_ops": ["aten::log_sigmoid", "aten::relu"]},
     [("T", ["conv2d"]), ("P", ["relu"]), ("T", ["conv2d"]), ("P", ["log_sigmoid"]),
      ("T", ["conv2d"])]),
    ("TS6", Fork, {**SIGMOID, "min_block_size": 3},
     [("T", ["conv2d", "conv2d", "relu"]), ("P", ["log_sigmoid"]),
      ("T", ["conv2d", "add", "max_pool2d"])]),
])
def test_segments(name, module, options, expected):
    module = script(module())
    found = check(module, X, **options)
    assert shape(found) == expected
    assert found.engines_proved


@pytest.mark.parametrize("name, module, options, count", [
    ("TS5", Fork, SIGMOID, (2, 1)),
    ("TS7", Fork, {"torch_executed_ops": ["aten::log_sigmoid", "aten::relu"]}, (2, 1)),
    ("TS8", Cross, {"torch_executed_ops": ["aten::lgamma"]}, (2, 1)),
])
def test_counts(name, module, options, count):
    args = X if module is Fork else (torch.rand(3, 4) + 1, torch.rand(3, 4) + 1)
    found = check(script(module()), args, **options)
    targets = [part.target for part in found.parts]
    assert (targets.count("acc"), targets.count("host")) == count
    assert found.engines_proved


class Indexed(nn.Module):
    """TS3."""

    def forward(self, b, c, index):
        first, second, third = b.reshape([2, 6]), c.reshape([2, 6]), b.reshape([3, 4])
        moved = first.to(torch.float64)
        size = third.size(0)
        third.index_add_(0, index, second.reshape([3, 4]))
        return moved, third.reshape([size, 4])


def test_written_views():
    """TS3, with its views of what index_add_ writes: these may be in no engine. The write reaches
    the caller's b, and an engine of the four nodes that Torch-TensorRT has would hide it: a reshape
    in an engine that copies gives new memory. With 3 nodes at least, no engine is left."""
    args = (torch.randn(12), torch.randn(12), torch.tensor([0, 2, 1]))
    b = args[0].clone()
    script(Indexed())(b, *args[1:])
    assert not torch.equal(b, args[0])
    supported = ("aten::reshape", "aten::to", "aten::size")
    found = check(script(Indexed()), args, supported=supported)
    assert [shape for shape in shape(found) if shape[0] == "T"] == [("T", ["reshape", "reshape"])]
    assert check(script(Indexed()), args, supported=supported, min_block_size=3).engines == 0


class Sized(nn.Module):
    """An engine reads the size of a tensor."""

    def forward(self, x):
        groups = x.size(1)
        y = F.logsigmoid(x)
        return F.relu(y.view([groups, -1]))


class Listed(nn.Module):
    """A list of tensors is read on both sides."""

    def forward(self, x, w):
        both = [x, x]
        low = F.logsigmoid(torch.cat(both, 0))
        return low, F.relu(F.conv2d(torch.cat(both, 1), w))


class ListedOnce(nn.Module):
    def forward(self, x, w):
        both = [x, x]
        low = F.logsigmoid(x)
        return low, F.relu(F.conv2d(torch.cat(both, 1), w))


class Branching(nn.Module):
    def forward(self, x, y):
        a = x + y
        t = torch.tensor(a.size(0))
        if torch.is_floating_point(t):
            a = a - y
        else:
            a = a - x
        if torch.is_floating_point(a):
            a = a - y
        return a + x


class DictBuilt(nn.Module):
    def forward(self, x):
        found: Dict[str, torch.Tensor] = {}
        found["in"] = x
        y = found["in"] * 2
        z = torch.relu(y + 1)
        w = torch.tanh(z)
        mask = z > 1.5
        w[mask] = torch.tensor(0.5, dtype=x.dtype, device=x.device)
        found["out"] = w
        return found["in"], found["out"]


class Constants(nn.Module):
    """What constants alone make is new in every run, also where another part writes it."""

    def forward(self, x, flag: bool):
        total, seen = torch.zeros(3), torch.jit.annotate(List[int], [])
        y = torch.relu(x)
        if flag:
            total.add_(y)
            seen.append(1)
        return total + y, seen


class Several(nn.Module):
    """Sizes and ranges on both sides of a transposed convolution; an instance norm checks sizes."""

    def __init__(self):
        super().__init__()
        self.up, self.norm = nn.ConvTranspose2d(4, 4, 3, padding=1), nn.InstanceNorm2d(4)
        self.w = nn.Parameter(torch.randn(16, 16))

    def forward(self, x):
        flat = torch.matmul(torch.flatten(x, 2), self.w.t())
        y = flat.reshape([x.size(0), x.size(1), 4, 4])
        return self.norm(self.up(y, [4, 4]))


class Shown(nn.Module):
    """Sizes and lists that are results of blocks, and read by engines as well."""

    def forward(self, x, flag: bool):
        n = x.size(0)
        both = [x.sin(), x]
        y = torch.stack(both).relu().sum()
        if flag:
            m = x.size(1)
            z = torch.relu(x).view(m, -1).cos()
        else:
            m, z = n, torch.tanh(x)
        print(y)
        return self.last(z, m, n), m

    def last(self, z, m: int, n: int):
        print(torch.relu(z).view(n, -1).sum(), m)
        return n


def test_results_are_recomputed_too(capfd):
    for flag in (True, False):
        found = check(script(Shown()), (torch.randn(3, 4), flag))
        kinds = {node: kind for part in found.parts for node, kind in zip(part.nodes, part.ops)}
        for part in found.parts:
            assert not set(part.nodes) & set(part.copies)
            if part.target == "host":
                assert not {"aten::stack", "aten::relu", "aten::view"} & set(part.ops)
        assert len(kinds) == sum(len(part.nodes) for part in found.parts)
    capfd.readouterr()

    class Size(nn.Module):
        def forward(self, x):
            n = x.size(0)
            print(torch.relu(x).view(n, -1).sum())
            return n

    found = check(script(Size()), (torch.randn(3, 4),))
    assert shape(found)[0] == ("T", ["relu", "view", "sum"]) and found.parts[0].copies
    capfd.readouterr()


def test_sizes_and_lists_are_recomputed():
    """Every input of an engine is a tensor (checked in `check`)."""
    found = check(script(Sized()), (torch.randn(2, 3, 4),), **SIGMOID)
    assert found.engines == 1 and len(found.parts) == 2
    args = (torch.randn(2, 3, 8, 8), torch.randn(4, 6, 3, 3))
    found = check(script(Listed()), args, **SIGMOID)
    assert [part.target for part in found.parts] == ["acc", "host"]
    found = check(script(ListedOnce()), args, **SIGMOID)
    assert found.engines == 1
    check(script(Branching()), (torch.randn(2, 3), torch.randn(2, 3)),
          torch_executed_ops=["aten::sub"])
    check(script(Constants()), (torch.ones(3), True))
    found = check(script(Several()), (torch.randn(2, 4, 4, 4),),
                  torch_executed_ops=["aten::conv_transpose2d"])
    assert [part.block for part in found.parts if part.target == "acc"][0] == ""
    assert found.engines == 3  # the last two are the branches of a check of sizes
    found = check(script(DictBuilt()), (torch.randn(3, 4),), supported=[
        "aten::mul", "aten::add", "aten::relu", "aten::tanh", "aten::gt"])
    assert found.engines == 1
    for part in found.parts:
        if part.target == "host":
            assert not ({"found.1"} <= set(part.inputs) and "found.1" in part.outputs)


class InPlaceBranch(nn.Module):
    def forward(self, x, flag: bool):
        y = x * 2
        if flag:
            y.add_(1)
            z = torch.cat([y, y])
        else:
            z = torch.cat([x, y]) * 3
        return torch.relu(z) + 1


class Engined(nn.Module):
    """Two engines in each branch: a sigmoid between them."""

    def forward(self, x):
        if bool(x.sum() > 0):
            y = torch.relu(F.logsigmoid(torch.cos(x) + 1) * 2)
        else:
            y = F.logsigmoid(x * 3).sin()
        return y - 1


class Looped(nn.Module):
    def forward(self, x, n: int):
        total = torch.zeros_like(x)
        for i in range(n):
            total = total + torch.ones_like(x) * i
            if i > 2:
                return total * 2
        return total.relu()


class Effect(nn.Module):
    """G48: a branch with an effect and no output."""

    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(3))

    def forward(self, x, flag: bool):
        y = torch.relu(x)
        if flag:
            self.buf.add_(1)
        return y + self.buf


def test_branches():
    for flag in (True, False):
        check(script(InPlaceBranch()), (torch.randn(2, 3), flag),
              torch_executed_ops=["aten::cat", "prim::ListConstruct"])
        check(script(Effect()), (torch.randn(3), flag))
    for sign in (1, -1):
        found = check(script(Engined()), (torch.ones(3) * sign,), **SIGMOID)
    fork = next(part for part in found.parts if "prim::If" in part.ops)
    assert fork.target == "host" and fork.block == ""
    inner = {block: [p.target for p in found.parts if p.block == f"{fork.id}.{block}"]
             for block in (0, 1)}
    assert inner == {0: ["acc", "host", "acc"], 1: ["acc", "host", "acc"]}


def test_engines_in_branches_can_be_replaced():
    parted = partition(script(Engined()), **SIGMOID)
    calls = []

    class Counted(nn.Module):
        def __init__(self, engine):
            super().__init__()
            self.engine = engine

        def forward(self, *given):
            calls.append(self.engine)
            return self.engine(*given)

    for name in engines(parted):
        setattr(parted, name, Counted(getattr(parted, name)))
    for sign in (1, -1):
        x = torch.ones(3) * sign
        assert same(parted(x), parted.original(x))
    assert len(calls) == len(set(calls)) + sum(
        1 for p in parted.plan.parts if p.target == "acc" and not p.block)


def test_whole_branches_and_loops():
    kinds = ["prim::If", "aten::relu", "aten::cos", "aten::sin", "aten::add", "aten::mul",
             "aten::sub", "aten::log_sigmoid", "aten::sum", "aten::gt", "aten::Bool"]
    found = check(script(Engined()), (torch.ones(3),), supported=kinds)
    assert len(found.parts) == 1 and "prim::If" in found.parts[0].ops
    for n in (0, 2, 5):
        for options in ({}, {"torch_executed_ops": ["aten::ones_like"]},
                        {"supported": lambda node: not node.kind().endswith("_")}):
            check(script(Looped()), (torch.randn(2, 3), n), **options)


# ---- writes ----

class X1(nn.Module):
    def forward(self, a):
        b = a.clone()
        b.mul_(10)
        return b + 1


class X2(nn.Module):
    def forward(self, a):
        b = a.clone()
        r = b + 1
        w = b.mul_(10)
        return w + r


class X4(nn.Module):
    def forward(self, x):
        t = x + 1
        w = x.neg_()
        return w * t


class X5(nn.Module):
    def forward(self, x):
        v = x.view(-1)
        v.neg_()
        return x + 1


@pytest.mark.parametrize("module, value", [(X1, 11), (X2, 12), (X4, -2), (X5, 0)])
def test_writes_keep_their_order(module, value):
    for options in ({}, {"supported": ["aten::clone", "aten::add", "aten::mul", "aten::view"]}):
        found = check(script(module()), (torch.ones(3),), **options)
        assert torch.equal(partition(script(module()), **options)(torch.ones(3)),
                           torch.full((3,), float(value)))
    assert found.engines >= 1


class State(nn.Module):
    """Attributes of every sort are set, lists shared and changed."""

    seen: List[int]

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("last", torch.zeros(2))
        self.mean = torch.zeros(2)
        self.count = 0
        self.seen = []

    def forward(self, x):
        self.steps.add_(1)
        old = self.last
        self.last = torch.relu(x) * 2
        self.mean = self.mean * 0.5 + x
        self.count += 1
        self.seen.append(self.count)
        both: Dict[str, List[torch.Tensor]] = {"a": [x], "b": [old]}
        shared = both["a"]
        y = torch.tanh(x + old)
        shared.append(y)
        both["b"] = shared
        both["a"].append(torch.cos(y))
        return both, self.seen, self.last + self.mean


def test_state_and_identity():
    module = script(State())
    check(module, (torch.randn(2),))
    whole, parted = copy.deepcopy(module), partition(copy.deepcopy(module))
    for _ in range(3):
        x = torch.randn(2)
        assert same(whole(x), parted(x))
    assert parted.original.count == 3 and parted.original.seen == [1, 2, 3]
    assert torch.equal(parted.original.mean, whole.mean)
    assert torch.equal(parted.last, whole.last) and torch.equal(parted.steps, torch.full((1,), 3.0))


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.fc(x).sigmoid()
            z = F.logsigmoid(y)
        return self.fc(z), y


class NoGradLists(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        z = self.fc(x)
        with torch.no_grad():
            pieces = torch.unsafe_chunk(z, 2)
        return F.logsigmoid(z), pieces[0] + 1


def test_lists_made_in_contexts():
    """What computes tensors keeps its place among contexts, also where it gives a list."""
    parted = partition(script(NoGradLists()))
    for _ in range(2):
        assert [value.requires_grad for value in parted(torch.randn(4, 4))] == [True, False]


def test_contexts_across_parts():
    whole = script(NoGrad())
    for options in (SIGMOID, {"supported": ["aten::linear"]}):
        parted = partition(whole, **options)
        for _ in range(3):
            x = torch.randn(2, 3)
            assert same(whole(x), parted(x), grad=True)
        assert torch.is_grad_enabled()


class Mixed(nn.Module):
    def forward(self, x, y):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            z = torch.mm(F.logsigmoid(torch.mm(x, y).float()), y)
        return torch.mm(x, y) + z


class Forked(nn.Module):
    def forward(self, x):
        future = torch.jit.fork(torch.neg, x)
        return torch.relu(x) + torch.jit.wait(future)


class Raising(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        with torch.no_grad():
            assert x.size(0) == 2, "two are needed"
        return y * 2


def test_autocast_forks_and_errors():
    args = (torch.rand(3, 3), torch.rand(3, 3))
    assert check(script(Mixed()), args, **SIGMOID).engines == 2
    assert check(script(Forked()), (torch.randn(3),)).engines == 1
    parted = partition(script(Raising()))
    assert same(parted(torch.ones(2)), torch.full((2,), 2.0))
    for module in (parted, parted.original):
        with pytest.raises(torch.jit.Error, match="two are needed"):
            module(torch.ones(3))
        torch.set_grad_enabled(True)


def test_quantised():
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return torch.relu(self.fc(x)) + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = torch.ao.quantization.quantize_dynamic(Small().eval(), {nn.Linear})
            model(torch.ones(1, 4))
        except (RuntimeError, AttributeError, NotImplementedError):
            pytest.skip("no engine for quantised operators here")
    found = check(script(model), (torch.randn(2, 4),))
    assert shape(found)[-1] == ("T", ["relu", "add"])


class Widened(nn.Module):
    """Branches whose results have a narrower type than the whole, and share what they hold."""

    def forward(self, x, flag: bool):
        items = [x]
        kept: Optional[List[torch.Tensor]] = None
        pair: Tuple[torch.Tensor, Optional[torch.Tensor]] = (x, None)
        anything: Optional[int] = None
        if flag:
            kept = items
            y = torch.relu(x)
            pair, anything = (y, y), 3
        else:
            x.add_(1)
        if kept is not None:
            kept.append(torch.sin(x))
        a, b = pair
        return items, kept, torch.cos(a), b, anything


class Attention(nn.Module):
    """The second result of the operator is an undefined tensor, which Python has no value for."""

    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(48, 16)), nn.Parameter(torch.randn(48))
        self.v, self.c = nn.Parameter(torch.randn(16, 16)), nn.Parameter(torch.randn(16))

    def forward(self, x):
        y = torch.sin(x)
        a, none = torch._native_multi_head_attention(
            y, y, y, 16, 2, self.w, self.b, self.v, self.c, None, False, True, None)
        pair = (a, none)
        z = F.logsigmoid(a)
        if bool(z.sum() < 1e9):
            z = torch.cos(z)
        else:
            pair = (none, a)
        first, second = pair
        return torch.relu(z) * 2, first


def test_results_of_branches_that_widen():
    for flag in (True, False):
        for options in ({}, {"supported": []}):
            check(script(Widened()), (torch.randn(3), flag), **options)


def test_undefined_tensors():
    with torch.no_grad():
        for options in ({}, {"supported": []}, SIGMOID,
                        {"torch_executed_ops": ["aten::_native_multi_head_attention"]}):
            check(script(Attention()), (torch.randn(2, 5, 16),), **options)
        layer = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)
        for options in ({}, {"min_block_size": 4}, {"freeze": True}):
            check(script(layer), (torch.randn(2, 5, 16), torch.randn(2, 5, 16)), **options)


def test_modules_that_were_loaded_or_frozen():
    module = script(Chain())
    file = io.BytesIO()
    torch.jit.save(module, file)
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded, stuck = torch.jit.load(file), torch.jit.freeze(module)
    parted = partition(loaded, **SIGMOID)
    assert same(parted(*X), module(*X)) and list(parted.state_dict()) == list(module.state_dict())
    parted(*X).sum().backward()
    assert loaded.c1.weight.grad is not None
    parted = partition(stuck, **SIGMOID)
    assert same(parted(*X), stuck(*X)) and parted.plan.engines == 2


# ---- weights ----

def test_parameters_are_those_of_the_module():
    module = script(Chain(), train=True)
    before = str(module.graph), {name: id(value) for name, value in module.named_parameters()}
    parted = partition(module, **SIGMOID)
    assert (str(module.graph), {n: id(v) for n, v in module.named_parameters()}) == before
    assert list(parted.state_dict()) == list(module.state_dict())
    for name, value in module.state_dict(keep_vars=True).items():
        assert parted.state_dict(keep_vars=True)[name] is value
    assert [n for n, _ in parted.named_parameters()] == [n for n, _ in module.named_parameters()]
    parted(X[0]).sum().backward()
    assert all(value.grad is not None for value in parted.parameters())
    with torch.no_grad():  # the next run reads what is there then
        module.c1.weight.mul_(2)
    assert same(module(*X), parted(*X))
    weights = [value for value in parted._run_on_acc_0.graph.findAllNodes("prim::Constant")
               if isinstance(value.output().toIValue(), torch.Tensor)]
    assert {w.output().toIValue().data_ptr() for w in weights} == {
        w.data_ptr() for m in (module.c1, module.c2) for w in m.parameters()}
    parted.double()
    assert parted(X[0].double()).dtype == torch.float64
    state = {name: torch.zeros_like(value) for name, value in parted.state_dict().items()}
    parted.load_state_dict(state, assign=True)
    assert not parted(X[0].double()).any()


def test_weights_on_the_meta_device():
    """They have sizes, so they can be planned; parts could not run."""
    for name in ("c1.weight", "c2.bias"):
        module = Chain()
        at, _, last = name.rpartition(".")
        setattr(getattr(module, at), last, nn.Parameter(
            module.get_parameter(name).to("meta"), requires_grad=False))
        module = script(module)
        assert plan(module, cpu_memory_budget="1MiB", **SIGMOID).engines == 2
        before = str(module.graph)
        for options in ({}, {"freeze": True}):
            with pytest.raises(cutset.ModelError, match=f"'{name}' is on the meta device") as caught:
                partition(module, **options)
            assert caught.value.node == name and "\n" not in str(caught.value)
        assert str(module.graph) == before and list(module.state_dict())

    class Unread(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.empty(3, device="meta"))

        def forward(self, x):
            return torch.relu(x)

    assert same(partition(script(Unread()))(torch.ones(2)), torch.ones(2))


def test_names_of_parts_are_taken():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self._run_on_acc_0 = nn.Linear(3, 3)

        def forward(self, x):
            return torch.relu(self._run_on_acc_0(x))

    with pytest.raises(cutset.ModelError, match="has a child '_run_on_acc_0'"):
        partition(script(Named()))
    assert plan(script(Named())).engines == 1


def test_the_graph_of_an_engine_runs_alone():
    parted = partition(script(Chain()), **SIGMOID)
    engine = parted._run_on_acc_0
    alone = torch._C._create_function_from_graph("alone", engine.graph)
    assert same(alone(*X), engine(*X))
    parted._run_on_acc_0 = alone_module = Wrapped(alone)
    assert parted._run_on_acc_0 is alone_module
    assert same(parted(*X), parted.original(*X))


class Wrapped(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *given):
        return self.call(*given)


def test_budget_counts_storages():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(8, 8, bias=False) for _ in range(3))
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.c(self.b(self.a(x)))

    module = script(Tied())
    assert plan(module).parts[0].weight_bytes == 512
    assert plan(module, cpu_memory_budget=2048).engines == 1
    found = plan(module, cpu_memory_budget=1024)
    assert found.engines == 2
    assert max(part.host_build_bytes for part in found.parts) <= 1024
    with pytest.raises(BudgetError, match="budget"):
        plan(module, cpu_memory_budget=1000)
    with pytest.warns(cutset.OversizeWarning):
        kept = plan(module, cpu_memory_budget=1000, oversize="keep")
    assert len(kept.oversized) == kept.engines == 3
    assert plan(module, cpu_memory_budget=1000, oversize="host").engines == 0
    assert plan(module, cpu_memory_budget=1024, memory_factor=1, memory_base=600).engines == 2
    assert plan(module, cpu_memory_budget="auto").engines == 1
    check(module, (torch.randn(2, 8),), cpu_memory_budget=1024)


# ---- arguments and results ----

class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Structured(nn.Module):
    def forward(self, x, pair: Tuple[torch.Tensor, int], named: Dict[str, torch.Tensor],
                extra: Optional[torch.Tensor] = None, scale: float = 2.0, shift: int = 1):
        y = torch.relu(x) * scale + shift
        if extra is not None:
            y = y + extra
        return Pair(F.logsigmoid(y), pair[0] * pair[1]), named["k"], None, [x], scale


def test_arguments_and_results():
    module = script(Structured())
    parted = partition(module, **SIGMOID)
    x = torch.randn(3)
    args = (x, (x, 2), {"k": x})
    for more, named in (((), {}), ((x,), {}), ((None, 1), {}), ((), {"extra": x, "scale": 3}),
                        ((x, 3.0), {"shift": 5})):
        assert same(module(*args, *more, **named), parted(*args, *more, **named))
    assert parted(*args)[0]._fields == ("left", "right")
    assert same(module(x=x, pair=(x, 1), named={"k": x}), parted(x=x, pair=(x, 1), named={"k": x}))
    for bad, named in ((args[:2], {}), (args, {"nothing": 1}), ((*args, x, 1.0, 2, 3), {}),
                       (args, {"x": x})):
        with pytest.raises(TypeError):
            parted(*bad, **named)
    with pytest.raises(RuntimeError):
        parted(x, (x, 1), {"k": 1})


class Methods(nn.Module):
    def forward(self, x):
        return x

    @torch.jit.export
    def other(self, x, n: int):
        return torch.relu(x) * n


def test_method():
    module = script(Methods())
    parted = partition(module, method="other")
    assert parted.plan.engines == 1
    assert same(parted(torch.ones(2), 3), module.other(torch.ones(2), 3))
    with pytest.raises(UsageError, match="method is 'missing'"):
        plan(module, method="missing")


# ---- options ----

class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Fork(), Fork()
        self.act = nn.Sigmoid()

    def forward(self, x):
        return self.act(self.first(x)[:, :3]) + self.act(self.second(x)[:, :3])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["Sigmoid", "torch.nn.modules.activation.Sigmoid", nn.Sigmoid])
def test_modules_stay_in_torch(traced, name):
    module = Nested().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(module, X) if traced else torch.jit.script(module)
    found = plan(module, torch_executed_modules=[name])
    host = [kind for part in found.parts if part.target == "host" for kind in part.ops]
    assert [kind for kind in host if kind == "aten::sigmoid"] == ["aten::sigmoid"] * 2
    assert {f.rule for f in found.fallback if f.op == "aten::sigmoid"} == {"user"}
    found = plan(module, torch_executed_modules=["Fork"])
    accelerated = {kind for part in found.parts if part.target != "host" for kind in part.ops}
    assert "aten::conv2d" not in accelerated and "aten::_convolution" not in accelerated
    assert "aten::sigmoid" in accelerated
    assert plan(module, torch_executed_modules=["Absent"]).engines == 1


def test_supported_forms():
    module = script(Chain())
    convolution = {"aten::conv2d"}
    by_name = plan(module, supported=convolution)
    assert by_name.engines == 2 or by_name.engines == 3
    assert plan(module, supported=["aten::relu", "aten::conv2d"]).engines == 2
    asked = []

    def ask(node):
        asked.append(node.kind())
        return node.kind() in convolution or "only convolutions"

    by_call = plan(module, supported=ask)
    assert [p.nodes for p in by_call.parts] == [p.nodes for p in by_name.parts]
    assert asked.count("aten::conv2d") == 3 and "prim::Constant" not in asked
    assert next(f.why for f in by_call.fallback) == "only convolutions"

    class Overloads(nn.Module):
        def forward(self, x):
            return (x + x) + 1

    found = plan(script(Overloads()), supported=["aten::add.Scalar"])
    assert [part.target for part in found.parts] == ["host", "acc"]
    for bad, words in ((3, "supported is 3"), ("aten::relu", "supported is 'aten::relu'"),
                       ([1], "supported holds 1"), (lambda node: 3, "supported answered 3"),
                       (lambda node: 1 / 0, "supported raised ZeroDivisionError")):
        with pytest.raises(UsageError, match=words) as caught:
            partition(module, supported=bad)
        assert "\n" not in str(caught.value)


def test_full_compilation():
    module = script(Chain())
    assert plan(module, require_full_compilation=True, min_block_size=100).engines == 1
    with pytest.raises(NotFullySupportedError) as caught:
        partition(module, require_full_compilation=True, supported=["aten::conv2d"])
    assert len(caught.value.nodes) == 2
    for option in ("torch_executed_ops", "torch_executed_modules"):
        with pytest.raises(ValueError, match="require_full_compilation"):
            plan(module, require_full_compilation=True, **{option: ["x"]})
    needed = plan(module).parts[0].host_build_bytes
    for budget in (1000, 80000, needed - 1):  # also where one node alone is over it
        with pytest.raises(BudgetError, match=f"budget.*cpu_memory_budget={needed}"):
            plan(module, require_full_compilation=True, cpu_memory_budget=budget)
    assert plan(module, require_full_compilation=True, cpu_memory_budget=needed).engines == 1
    assert plan(script(Listed()), require_full_compilation=True).engines == 1


def test_other_options():
    module = script(Chain())
    convs = [name for part in plan(module).parts
             for name, kind in zip(part.nodes, part.ops) if kind == "aten::conv2d"]
    with pytest.raises(UsageError):
        plan(module, groups=[["nothing"]])
    assert plan(module, groups=[convs[:2]], **SIGMOID).engines == 2
    assert plan(module, max_engines=1, **SIGMOID).engines == 1
    for name, value in (("min_block_size", -1), ("cpu_memory_budget", 0), ("oversize", "x"),
                        ("memory_factor", -1), ("cpu_memory_budget", "12 parsecs"),
                        ("torch_executed_ops", 3), ("torch_executed_modules", [3])):
        with pytest.raises(ValueError):
            partition(module, **{name: value})


def test_what_is_no_script_module():
    def function(x):
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = torch.jit.script(function)
    for bad in (function, Chain(), None):
        with pytest.raises(TypeError, match="ScriptModule"):
            partition(bad)
        with pytest.raises(TypeError, match="ScriptModule"):
            plan(bad)


def test_nothing_to_accelerate():
    module = script(Chain())
    with pytest.warns(UserWarning, match="no engine"):
        parted = partition(module, supported=())
    assert same(parted(*X), module(*X)) and not engines(parted)

    class Empty(nn.Module):
        def forward(self, x, y: int):
            return x

    with pytest.warns(UserWarning, match="no engine"):
        parted = partition(script(Empty()))
    x = torch.ones(2)
    assert parted(x, 1) is x and not parted.plan.parts


def test_freeze():
    module = script(Chain())
    before = str(module.graph)
    parted = partition(module, freeze=True, **SIGMOID)
    assert str(module.graph) == before and list(parted.state_dict()) == list(module.state_dict())
    assert parted.plan.engines == 2
    assert parted.plan.parts[0].weight_bytes == 4 * (32 * 27 + 32 + 16 * 288 + 16)
    assert same(parted(*X), module(*X))
    with pytest.raises(UsageError, match="freeze"):
        partition(script(Chain(), train=True), freeze=True)


def test_modes():
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm1d(4)

        def forward(self, x):
            return torch.relu(self.norm(self.drop(x)))

    evaluated = script(Dropping())
    found = check(evaluated, (torch.randn(3, 4),))
    assert found.engines == 1
    training = script(Dropping(), train=True)
    whole, parted = copy.deepcopy(training), partition(copy.deepcopy(training))
    for baked in (False, True):
        for seed in range(2):
            torch.manual_seed(seed)
            x = torch.randn(3, 4)
            torch.manual_seed(seed)
            expected = whole(x)
            torch.manual_seed(seed)
            assert same(expected, parted(x))
        assert torch.equal(whole.norm.running_mean, parted.norm.running_mean)
        bake(parted)
    assert parted.train() is parted and parted.training
    with pytest.raises(UsageError, match="mode"):
        parted.eval()
    assert not partition(script(Chain())).training


# ---- text ----

TEXTS = [path.read_bytes() for path in sorted(pathlib.Path(HERE, "torchscript").glob("*.ts"))]


def read_text(text):
    """Opens and plans a text; ModelError with a place in one line is what may be raised."""
    from cutset._lib import Call, ffi, lib
    from cutset._model import make_plan, plan_options

    call, held = Call(), ffi.from_buffer(text)
    given = ffi.new("cutset_torchscript *", {"text": ffi.cast("const char *", held),
                                             "len": len(text)})
    out, target = ffi.new("cutset_model **"), ffi.new("cutset_target **")
    try:
        call.check(lib.cutset_model_open_torchscript(out, given, call.err))
    except cutset.ModelError as error:
        said = str(error)
        assert said.isprintable() and "line " in said and 0 <= error.offset <= len(text), said
        return False
    call.check(lib.cutset_target_marked(target, b"acc", 4.0, 0, 0, call.err))
    options, _ = plan_options(call, host_memory=None, device_memory=None, min_nodes=1, pin=None,
                              exclude=(), groups=(), oversize="error", objective="engines",
                              max_engines=None, effort=1, connected=False)
    make_plan(ffi.gc(out[0], lib.cutset_model_free),
              [ffi.gc(target[0], lib.cutset_target_free)], options, call)
    return True


def test_texts_cut_off_at_every_byte():
    for text in TEXTS:
        taken = [end for end in range(len(text)) if read_text(text[:end])]
        assert taken in ([], [len(text) - 1])  # without the last line break


def test_changed_texts():
    rng = random.Random(6)
    words = re.findall(rb"%[\w.]+|\w+::\w+|Tensor|int\[\]|[()\[\]{}:,=\n]|block0|->|return",
                       b"".join(TEXTS))
    taken = 0
    for _ in range(100_000 if LONG else 3000):
        text = rng.choice(TEXTS)
        for _ in range(rng.randrange(1, 4)):
            at, lines = rng.randrange(len(text)), text.split(b"\n")
            end, one, two = (at + rng.randrange(1, 30), rng.randrange(len(lines)),
                             rng.randrange(len(lines)))
            lines[one], lines[two] = lines[two], lines[one]
            text = rng.choice((
                text[:at] + bytes([rng.randrange(256)]) + text[at + 1:], text[:at] + text[end:],
                text[:at] + rng.choice(words) + text[at:], b"\n".join(lines))) or b"graph"
        taken += read_text(text)
    assert taken > 20


# ---- copies ----

def test_copies_and_pickles():
    module = script(State())
    parted = partition(module)
    parted(torch.ones(2))
    file = io.BytesIO()
    torch.save(parted, file)
    file.seek(0)
    others = [copy.deepcopy(parted), pickle.loads(pickle.dumps(parted)),
              torch.load(file, weights_only=False)]
    whole = copy.deepcopy(module)
    for other in others:
        assert isinstance(other, PartitionedModule) and other.plan == parted.plan
        assert [part.ops for part in other.plan.parts] == [part.ops for part in parted.plan.parts]
        assert other.original is not module
        assert list(other.state_dict()) == list(parted.state_dict())
    for _ in range(2):
        x = torch.randn(2)
        expected = whole(x)
        for other in (parted, *others):
            assert same(expected, other(x))


def test_copies_have_parameters_of_their_own():
    parted = partition(script(Chain()), **SIGMOID)
    parted._run_on_acc_2 = nn.Conv2d(16, 8, 3)  # an engine of another kind
    new = copy.deepcopy(parted)
    assert isinstance(new._run_on_acc_2, nn.Conv2d)
    assert new._run_on_acc_2 is not parted._run_on_acc_2
    new(*X).sum().backward()
    assert new.c1.weight.grad is not None and parted.c1.weight.grad is None
    loaded = pickle.loads(pickle.dumps(parted))
    assert same(loaded(*X), parted(*X))
    parted.double()
    assert pickle.loads(pickle.dumps(parted)).c1.weight.dtype == torch.float64
    assert pickle.loads(pickle.dumps(parted.plan)) == parted.plan


# ---- random programs ----

def arguments(seed):
    generator = torch.Generator().manual_seed(seed)
    a, b, c = (torch.randn(4, 4, generator=generator) * 0.5 for _ in range(3))
    return [a, b, [c]]


def run_twice(module, seed):
    """Results, arguments afterwards, and the next random number; the state in the end."""
    found = []
    for at in range(2):
        args = arguments(seed)
        torch.manual_seed(seed + at)
        with torch.no_grad():
            found.append((module(*args), args[:2], torch.rand(1)))
    original = getattr(module, "original", module)
    return found, {**module.state_dict(), "h": original.h, "count": original.count}


def supports(rng, module):
    kinds = sorted({node.kind() for node in module.inlined_graph.nodes()
                    if node.kind().startswith("aten::")})
    some = [kind for kind in kinds if rng.random() < 0.7]
    return rng.choice([None, None, some, [*some, "prim::If", "prim::Loop"]])


SEEDS = range(1200) if LONG else random.Random(4).sample(range(1200, 100_000), 50)


@pytest.mark.parametrize("chunk", range(10))
def test_random_programs(chunk, tmp_path):
    """Whole, in parts, and with each engine a function of values. TorchScript's optimiser is wrong
    now and then about writes; then the program as Python is what the parts must equal."""
    made = 0
    for seed in SEEDS[chunk::10]:
        rng = random.Random(seed)
        torch.manual_seed(seed)
        python = script_programs.load(seed, str(tmp_path))().train(rng.random() < 0.5)
        try:
            base = script(python, python.training)
            expected = run_twice(copy.deepcopy(base), seed)
        except RuntimeError:
            continue  # it cannot be compiled, or raises whole too
        options = {"supported": supports(rng, base), "min_block_size": rng.choice([1, 1, 2, 3])}
        for baked in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                parted = partition(copy.deepcopy(base), **options)
            found = run_twice(bake(parted) if baked else parted, seed)
            if not same(expected, found):
                assert same(run_twice(copy.deepcopy(python), seed), found), (seed, baked, options)
            made += len(engines(parted))
    assert made > 10


# ---- real models ----

def models():
    vision = pytest.importorskip("torchvision.models")
    return {"resnet18": (vision.resnet18, ["aten::add", "aten::add_"], "BasicBlock"),
            "mobilenet_v2": (vision.mobilenet_v2, ["aten::hardtanh", "aten::hardtanh_"],
                             "Conv2dNormActivation")}


SMALL = {  # name: constructor, arguments, size of the image
    "vit": ("VisionTransformer", {"image_size": 32, "patch_size": 16, "num_layers": 2,
                                  "num_heads": 2, "hidden_dim": 32, "mlp_dim": 64}, 32),
    "lraspp": ("segmentation.lraspp_mobilenet_v3_large", {"weights": None,
                                                          "weights_backbone": None}, 64),
    "shufflenet": ("shufflenet_v2_x0_5", {"weights": None}, 64)}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("traced", [False, True])
def test_more_models(name, traced):
    """Attention, results in dictionaries, channels split and joined."""
    path, options, size = SMALL[name]
    make = pytest.importorskip("torchvision.models")
    for step in path.split("."):
        make = getattr(make, step)
    torch.manual_seed(0)
    model, x = make(**options).eval(), torch.randn(1, 3, size, size)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        module = (torch.jit.trace(model, x, strict=False, check_trace=False) if traced
                  else torch.jit.script(model))
        expected = module(x), module(x)
        for taken in ({}, {"min_block_size": 4}, {"supported": ["aten::conv2d", "aten::linear",
                                                                "aten::relu_", "aten::add"]}):
            parted = partition(module, **taken)
            assert same(expected[1], parted(x)), taken
            assert same(expected[1], bake(parted)(x)), taken


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
@pytest.mark.parametrize("traced", [False, True])
def test_models(name, traced):
    make, kinds, block = models()[name]
    torch.manual_seed(0)
    model = make(weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = torch.jit.trace(model, x) if traced else torch.jit.script(model)
    with torch.no_grad():
        expected = module(x)
        takes = {"supported": lambda node: node.kind().startswith("aten::")}  # writes too
        for options in ({}, takes, {"torch_executed_ops": kinds},
                        {"torch_executed_modules": [block]},
                        {**takes, "torch_executed_ops": kinds, "min_block_size": 5},
                        {**takes, "freeze": True}, {**takes, "cpu_memory_budget": "40MiB"}):
            parted = partition(module, **options)
            found = parted.plan
            assert same(expected, parted(x)), options
            assert list(parted.state_dict()) == list(module.state_dict())
            assert found.engines and found.engines_bound <= found.engines
            assert same(expected, bake(parted)(x)), options
            if "cpu_memory_budget" in options:
                assert max(part.host_build_bytes for part in found.parts
                           if part.target != "host") <= 40 << 20
                assert found.engines > 1 or name != "resnet18"
            elif len(options) == 1 and "supported" in options:
                assert found.engines == 1
    if name == "resnet18":
        state = module.state_dict()
        assert all(value.data_ptr() == state[key].data_ptr()
                   for key, value in parted.state_dict().items())
