"""min_block_size, skip_horizontal_fusion, groups and pins of cutset.torch against brute force: most
counted nodes kept, then fewest engines, over every assignment of up to 9 nodes.

Graphs hold what counts differently: getitems, views, non_compute_ops, exempt operators.
"""
import operator
import os
import random

import pytest
import torch
from torch.fx import Graph, GraphModule

import cutset.torch
from torch_checks import calls, check

LONG = os.environ.get("CUTSET_LONG") == "1"
A = torch.ops.aten
VIEW, NEG, ABS, SPLIT = A.view.default, A.neg.default, A.abs.default, A.split.Tensor
FREE = {operator.getitem, VIEW}


def draw(pick, n):
    """A graph of n call nodes."""
    graph = Graph()
    values = [graph.placeholder("x")]
    made = 0

    def recent():
        return values[max(0, len(values) - 1 - int(pick.expovariate(0.5)))]

    def add(target, *args):
        nonlocal made
        made += 1
        return graph.call_function(target, args)

    while made < n:
        kind = pick.random()
        if kind < 0.12 and made < n - 1:
            several = add(SPLIT, recent(), 2)
            for k in range(min(pick.randint(1, 2), n - made)):
                values.append(add(operator.getitem, several, k))
        elif kind < 0.5:
            target = VIEW if kind < 0.3 else NEG if kind < 0.4 else ABS
            values.append(add(target, recent(), *([[-1]] if target is VIEW else ())))
        elif kind < 0.65:
            values.append(add(A.relu.default, recent()))
        else:
            values.append(add(A.maximum.default, recent(), recent()))
    ends = [v for v in values if not v.users and v.op != "placeholder"]
    graph.output(tuple(ends))
    return GraphModule({}, graph)


class Case:
    """A graph, its options, and its atoms: sets of nodes that share a part, in execution order."""

    def __init__(self, seed, most, connected):
        pick = random.Random(seed)
        self.gm = draw(pick, pick.randint(3, most))
        self.nodes = calls(self.gm.graph)
        share = pick.choice([0.5, 0.7, 0.85])
        self.taken = {n.name: pick.random() < share for n in self.nodes}
        self.least = pick.choice([1, 2, 2, 3, 3, 4])
        self.free = FREE | ({NEG} if pick.random() < 0.5 else set())
        self.exempt = {ABS} if pick.random() < 0.4 else set()
        self.connected = connected
        alone = [n.name for n in self.nodes if n.target not in (operator.getitem, SPLIT)]
        self.pin = {}
        if alone and pick.random() < 0.3:
            self.pin = {pick.choice(alone): pick.choice(["acc", "host"])}
        self.groups = []
        if not self.pin and pick.random() < 0.4:
            self.groups = [[n.name for n in pick.sample(self.nodes, 2)]]
        self.find_atoms()

    def options(self):
        return dict(
            supported=lambda n: self.taken[n.name], min_block_size=self.least, pin=self.pin,
            groups=self.groups, atomic_subgraphs=False, non_compute_ops=self.free & {NEG},
            allowed_single_node_partition_ops=self.exempt, skip_horizontal_fusion=self.connected)

    def counted(self, names):
        return sum(n.name in names and n.target not in self.free for n in self.nodes)

    def find_atoms(self):
        atoms = [{n} for n in self.nodes]
        pairs = [(n, n.args[0]) for n in self.nodes if n.target is operator.getitem]
        by_name = {n.name: n for n in self.nodes}
        pairs += [tuple(by_name[name] for name in group) for group in self.groups]
        while pairs:
            for a, b in pairs:
                joined = [atom for atom in atoms if a in atom or b in atom]
                atoms = [atom for atom in atoms if atom not in joined] + [set().union(*joined)]
            pairs = cycle_of(atoms)
        before = [needs(atom, atoms) for atom in atoms]
        self.atoms, self.needs, done = [], [], []
        while len(done) < len(atoms):
            at = next(i for i in range(len(atoms)) if i not in done and before[i] <= set(done))
            done.append(at)
            self.atoms.append(atoms[at])
        self.needs = [needs(atom, self.atoms) for atom in self.atoms]

    def best(self):
        """(counted nodes kept, engines)."""
        allowed, must, counts, exempt = [], [], [], []
        for atom in self.atoms:
            pins = {self.pin.get(n.name) for n in atom}
            allowed.append("host" not in pins and all(
                n.target is operator.getitem or self.taken[n.name] or n.name in self.pin
                for n in atom))
            must.append("acc" in pins or (self.least < 2 and allowed[-1]))
            counts.append(self.counted({n.name for n in atom}))
            exempt.append("acc" in pins or any(n.target in self.exempt for n in atom))
        found = (-1, 0)
        todo = [((), 0)]
        while todo:
            labels, engines = todo.pop()
            at = len(labels)
            if at < len(self.atoms):
                if not must[at]:
                    todo.append(((*labels, -1), engines))
                if allowed[at]:
                    todo += [((*labels, k), max(engines, k + 1)) for k in range(engines + 1)]
                continue
            kept = sum(c for c, label in zip(counts, labels) if label >= 0)
            if (kept, -engines) > found and self.is_valid(labels, engines, counts, exempt):
                found = kept, -engines
        return found[0], -found[1]

    def is_valid(self, labels, engines, counts, exempt):
        parts = [{i for i, label in enumerate(labels) if label == k} for k in range(engines)]
        if self.least > 1 and any(
                sum(counts[i] for i in part) < self.least and not any(exempt[i] for i in part)
                for part in parts):
            return False
        if self.connected and not all(map(self.is_connected, parts)):
            return False
        parts += [{i} for i, label in enumerate(labels) if label < 0]
        done = set()
        while parts:
            ready = [p for p in parts if set().union(*(self.needs[i] for i in p)) - p <= done]
            if not ready:
                return False
            done.update(*ready)
            parts = [p for p in parts if p not in ready]
        return True

    def is_connected(self, part):
        reached = {min(part)}
        while True:
            more = {i for i in part if self.needs[i] & reached}
            more |= {i for k in reached for i in self.needs[k] & part}
            if more <= reached:
                return reached == part
            reached |= more


def needs(atom, atoms):
    sources = {a for n in atom for a in n._input_nodes} - atom
    return {i for i, other in enumerate(atoms) if other & sources}


def cycle_of(atoms):
    """Pairs of nodes that a cycle between atoms joins."""
    before = [needs(atom, atoms) for atom in atoms]
    for _ in atoms:
        before = [b.union(*(before[i] for i in b)) for b in before]
    return [(next(iter(atoms[i])), next(iter(atoms[k])))
            for i, b in enumerate(before) for k in b if i != k and i in before[k]]


@pytest.mark.parametrize("connected", [False, True])
def test_against_brute_force(connected):
    seeds = range(3000) if LONG else range(120)
    for seed in seeds:
        case = Case(seed, 9 if LONG else 7, connected)
        result = cutset.torch.partition(case.gm, **case.options())
        check(case.gm, result)
        plan = result.meta["cutset"]
        kept = sum(case.counted(set(p.nodes)) for p in plan.parts if p.target != "host")
        assert (kept, plan.engines) == case.best(), f"seed {seed}"
        assert plan.engines_bound <= plan.engines
