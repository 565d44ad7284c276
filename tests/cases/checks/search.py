"""The best plan of a small graph, by search over orders of its atoms.

Parts with an acyclic quotient are the stretches of equal target in some order of the atoms, so the
best plan is a shortest path: a state is the set of atoms done, and the open part as far as it
matters. It knows nothing of levels, packing or bounds. None: too many states to tell.
"""
import heapq

STATES = 60000


class Problem:
    """Atoms with their targets, order, sizes and storages."""

    def __init__(self, graph, atom, target, budget=None, least=0, pinned=()):
        self.atoms = sorted(set(atom))
        number = {a: i for i, a in enumerate(self.atoms)}
        members = [[n for n in graph.nodes if atom[n.index] == a] for a in self.atoms]
        self.target = [target[m[0].index] for m in members]
        self.size = [len(m) for m in members]
        self.before = [0] * len(self.atoms)
        for u, v in graph.edges():
            if atom[u] != atom[v]:
                self.before[number[atom[v]]] |= 1 << number[atom[u]]
        self.storages = [graph.storages(m) for m in members]
        self.bytes = {s: b for some in self.storages for s, b in some.items()}
        self.budget, self.least = budget, least
        self.pinned = [any(n.index in pinned for n in m) for m in members]
        self.over = [budget is not None and t != "host" and self.sum(s) > budget
                     for t, s in zip(self.target, self.storages)]

    def sum(self, storages):
        return sum(self.bytes[s] for s in storages)

    def starts(self, a):
        """The open parts that atom `a` may begin; an engine for an atom over the budget is meant for
        that atom from the start, wherever in it the atom comes."""
        target = self.target[a]
        yield target, None, frozenset(), 0
        if target != "host":
            for o, over in enumerate(self.over):
                if over and self.target[o] == target:
                    yield target, o, frozenset(), 0

    def grow(self, part, a):
        """The open part (target, its atom over the budget, storages, nodes) with atom `a`, or None."""
        target, over, storages, nodes = part
        if target == "host":
            return part
        if self.budget is not None and over is None:
            storages = storages.union(self.storages[a])
            if self.over[a] or self.sum(storages) > self.budget:
                return None
        elif over is not None and a != over:
            extra = self.storages[a].keys() - self.storages[over].keys()
            if self.over[a] or self.sum(extra):
                return None
        if self.least:
            nodes = self.least if self.pinned[a] else min(self.least, nodes + self.size[a])
        return target, over, storages, nodes

    def closes(self, part, done):
        if part is None or part[0] == "host":
            return True
        return part[3] >= self.least and (part[1] is None or bool(done >> part[1] & 1))

    def best(self):
        """(engines, parts) of the best plan; (None, None): there is none; None: not known."""
        everything = (1 << len(self.atoms)) - 1
        heap, seen, tick = [((0, 0), 0, 0, None)], set(), 0
        while heap:
            cost, _, done, part = heapq.heappop(heap)
            if (done, part) in seen:
                continue
            seen.add((done, part))
            if len(seen) > STATES:
                return None
            if done == everything and self.closes(part, done):
                return cost
            for a in range(len(self.atoms)):
                if done >> a & 1 or self.before[a] & ~done:
                    continue
                target = self.target[a]
                steps = []
                if part is not None and part[0] == target:
                    steps.append((self.grow(part, a), cost))
                if self.closes(part, done):
                    more = (cost[0] + (target != "host"), cost[1] + 1)
                    steps += [(self.grow(start, a), more) for start in self.starts(a)]
                for grown, price in steps:
                    if grown is not None and (done | 1 << a, grown) not in seen:
                        tick += 1
                        heapq.heappush(heap, (price, tick, done | 1 << a, grown))
        return None, None


def most_kept(graph, atom, target, least, pinned):
    """--min-nodes: (nodes kept, engines) of the best choice of nodes that stay; None: not known.

    `target` is where each node runs before any goes to the host for its engine's size.
    """
    movable = sorted({atom[i] for i, t in enumerate(target)
                      if t != "host" and not any(atom[p] == atom[i] for p in pinned)})
    if len(movable) > 9:
        return None
    choices = []
    for code in range(1 << len(movable)):
        gone = {a for i, a in enumerate(movable) if code >> i & 1}
        chosen = ["host" if atom[i] in gone else t for i, t in enumerate(target)]
        choices.append((-sum(t != "host" for t in chosen), code, chosen))
    best = None
    for kept, _, chosen in sorted(choices):
        if best is not None and -kept < best[0]:
            break
        cost = Problem(graph, atom, chosen, least=least, pinned=pinned).best()
        if cost is None:
            return None
        if cost[0] is not None and (best is None or cost[0] < best[1]):
            best = -kept, cost[0]
    return best
