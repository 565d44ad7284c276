"""What must hold for every plan, whatever the case: recomputed from the graph, naively.

`check(graph, plan, options)` gives the faults as lines, and whether the plan could also be compared
with the best one that a search finds. `options` are those of the run, parsed.
"""
from . import cut, search

UNIT_MEMORY = {"acc", "mock-a", "mock-b", "unit-memory", "narrow-boundary"}  # forecast = weight bytes
SEARCHED = 40  # nodes
DEMOTED = {"size", "limit", "benefit", "group", "budget", "boundary", "user"}


class Checker:
    def __init__(self, graph, plan, options):
        self.graph, self.plan, self.options = graph, plan, options
        self.parts, self.goal = plan["parts"], plan["objective"]
        self.faults = []
        self.node = {graph.label(n): n for n in graph.nodes}
        self.edges = graph.edges()
        self.maker = graph.maker()
        groups = [[n.index for name in names.split(",") for n in graph.match(name)]
                  for names in options.get("group", [])]
        self.atom = graph.atoms(groups)
        self.has_patterns = options["patterns"]
        self.part, self.where = {}, {}
        self.searched = False

    def expect(self, good, text):
        if not good:
            self.faults.append(text)
        return good

    def same(self, what, found, expected):
        self.expect(found == expected, f"{what}: {found}, should be {expected}")

    # ---- nodes and parts ----

    def place(self):
        """Every node in exactly one part; targets as marked."""
        listed = [name for p in self.parts for name in p["nodes"]]
        if not self.expect(sorted(listed) == sorted(self.node),
                           "parts do not hold every node exactly once"):
            return False
        self.same("model.nodes", self.plan["model"]["nodes"], len(listed))
        self.same("part ids", [p["id"] for p in self.parts], list(range(len(self.parts))))
        for p in self.parts:
            self.expect(p["nodes"], f"part {p['id']} is empty")
            for position, name in enumerate(p["nodes"]):
                self.part[self.node[name].index] = p["id"]
                self.where[self.node[name].index] = position
        return True

    def target_of(self, node):
        return self.parts[self.part[node.index]]["target"]

    def is_engine(self, part):
        return self.parts[part]["target"] != "host"

    def coverage(self):
        rule = {f["node"]: f["rule"] for f in self.plan["fallback"]}
        on_host = {name for name, n in self.node.items() if self.target_of(n) == "host"}
        self.same("nodes in fallback", set(rule), on_host)
        named = {t["name"] for t in self.plan["targets"]}
        for name, node in self.node.items():
            target = self.target_of(node)
            self.expect(target == "host" or target in named, f"%{name} runs on {target}")
            forced = {t for n, t in self.options["pins"] if node in self.graph.match(n)}
            allowed = forced or set(node.targets) or (named - {"acc"}) | {"host"}
            if target == "host" and "host" not in allowed:
                self.expect(not forced and rule.get(name) in ("group", "boundary", "user"),
                            f"%{name} is pinned, yet on the host")
            elif target != "host":
                self.expect(target in allowed or rule.get(name) == "group",
                            f"%{name} may not run on {target}")
            elif set(node.targets) == {"host"} and not forced:
                self.same(f"rule of %{name}, marked @host", rule.get(name), "user")
            elif not node.targets and named == {"acc"} and not forced:
                self.expect(rule.get(name) in ("op", "user"),
                            f"rule of the unmarked %{name}: {rule.get(name)}")
            elif node.targets:
                self.expect(rule.get(name) in DEMOTED, f"rule of %{name}: {rule.get(name)}")

    def pinned(self):
        names = {n.index for pattern, t in self.options["pins"] if t != "host"
                 for n in self.graph.match(pattern)}
        host = {n.index for pattern, t in self.options["pins"] if t == "host"
                for n in self.graph.match(pattern)}
        marked = {n.index for n in self.graph.nodes if n.targets and "host" not in n.targets}
        return {i for i in names | (marked - host) if self.is_engine(self.part[i])}

    def order(self):
        """The quotient is acyclic, and nodes stand in execution order."""
        for u, v in sorted(self.edges):
            pu, pv = self.part[u], self.part[v]
            names = " -> ".join(self.graph.label(self.graph.nodes[i]) for i in (u, v))
            self.expect(pu <= pv, f"{names} goes from part {pu} back to part {pv}")
            self.expect(pu != pv or self.where[u] < self.where[v],
                        f"{names} is out of order in part {pu}")
        for a, b in zip(self.parts, self.parts[1:]):
            self.expect(a["target"] != "host" or b["target"] != "host",
                        f"parts {a['id']} and {b['id']} are both on the host")
        for i, a in enumerate(self.atom):
            self.expect(self.part[i] == self.part[a],
                        f"%{self.graph.label(self.graph.nodes[i])} is torn from its group")

    def nodes_of(self, p):
        return [self.node[name] for name in p["nodes"]]

    def sizes(self):
        least = self.options.get("min-nodes", 0)
        pinned = self.pinned()
        for p in self.parts:
            nodes = self.nodes_of(p)
            if p["target"] == "host":
                continue
            self.expect(len(nodes) >= least or any(n.index in pinned for n in nodes),
                        f"part {p['id']} has fewer than {least} nodes")
            if "connected" in self.options:
                self.same(f"connected pieces of part {p['id']}",
                          len(self.pieces({n.index for n in nodes})), 1)

    def pieces(self, nodes):
        """The connected pieces of a set of nodes, each as a set; an atom is never torn."""
        left, found = set(nodes), []
        near = {i: set() for i in nodes}
        for u, v in list(self.edges) + list(enumerate(self.atom)):
            if u in near and v in near:
                near[u].add(v)
                near[v].add(u)
        while left:
            todo, piece = [left.pop()], set()
            while todo:
                node = todo.pop()
                piece.add(node)
                todo += near[node] & left
                left -= near[node]
            found.append(piece)
        return found

    # ---- values ----

    def readers(self, value):
        return {self.part[n.index] for n in self.graph.nodes if value in n.reads()}

    def values(self):
        """Inputs, outputs and boundaries."""
        graph, read_in = self.graph, {}
        for n in graph.nodes:
            for v in n.reads():
                read_in.setdefault(v, set()).add(self.part[n.index])
        crossing = []
        for p in self.parts:
            inputs, outputs = [], []
            for n in self.nodes_of(p):
                for v in n.reads():
                    outside = v not in self.maker or self.part[self.maker[v].index] != p["id"]
                    if outside and v not in graph.weights and v not in inputs:
                        inputs.append(v)
                for v in n.made():
                    away = sorted(read_in.get(v, set()) - {p["id"]})
                    if away or v in graph.outputs:
                        outputs.append(v)
                    if away:
                        crossing.append((v, p["id"], away))
            if any(n.bodies for n in self.nodes_of(p)):
                inputs, found = sorted(inputs), sorted(p["inputs"])
            else:
                found = p["inputs"]
            self.same(f"inputs of part {p['id']}", found, inputs)
            self.same(f"outputs of part {p['id']}", p["outputs"], outputs)
        found = [(b["value"], b["from"], b["to"]) for b in self.plan["boundaries"]]
        self.same("boundaries", found, crossing)
        self.count_bytes()
        for o in self.plan["model"]["outputs"]:
            v = o["name"]
            source = (self.part[self.maker[v].index] if v in self.maker
                      else "weight" if v in graph.weights else "input")
            self.same(f"from of output %{v}", o["from"], source)
        self.same("model inputs", [i["name"] for i in self.plan["model"]["inputs"]], graph.inputs)
        self.same("model outputs", [o["name"] for o in self.plan["model"]["outputs"]], graph.outputs)

    def count_bytes(self):
        total, unknown, least = 0, 0, 0
        for b in self.plan["boundaries"]:
            declared = self.graph.types.get(b["value"])
            size = cut.type_bytes(b["type"])
            self.expect(cut.type_bytes(declared) in (None, size),
                        f"%{b['value']} is {b['type']}, declared {declared}")
            self.same(f"bytes of %{b['value']}", b["bytes"], size)
            if size is None:
                unknown += 1
                continue
            ends = [b["from"]] + b["to"]
            total += size if any(self.is_engine(p) for p in ends) else 0
            made_on = self.parts[b["from"]]["target"]
            least += size if any(self.parts[p]["target"] != made_on for p in b["to"]) else 0
        self.same("boundary_bytes", self.goal["boundary_bytes"], total)
        self.same("boundaries_unknown", self.goal["boundaries_unknown"], unknown)
        self.expect(self.goal["boundary_bytes_bound"] <= total, "boundary_bytes is below its bound")
        self.same("boundary_bytes_bound", self.goal["boundary_bytes_bound"], least)

    def peak(self, p):
        """activation_peak_bytes, or None where a size is not known."""
        nodes = self.nodes_of(p)
        size = {v: cut.type_bytes(self.graph.types.get(v))
                for v in p["inputs"] + p["outputs"] + [v for n in nodes for v in n.made()]}
        if None in size.values():
            return None
        whole = set(p["inputs"]) | set(p["outputs"])
        last = {}
        for i, n in enumerate(nodes):
            last.update({v: i for v in n.made() if v not in last})
            last.update({v: i for v in n.reads() if v in last})
        made = {v: i for i, n in enumerate(nodes) for v in n.made()}
        inner = max(sum(size[v] for v in made if v not in whole and made[v] <= i <= last[v])
                    for i in range(len(nodes))) if nodes else 0
        return sum(size[v] for v in whole) + inner

    # ---- memory ----

    def memory(self):
        budgets = {"host_build_bytes": self.options.get("host-memory"),
                   "device_bytes": self.options.get("device-memory")}
        for p in self.parts:
            nodes = self.nodes_of(p)
            storages = self.graph.storages(nodes)
            self.same(f"weights of part {p['id']}", p["weights"], len(storages))
            self.same(f"weight_bytes of part {p['id']}", p["weight_bytes"], sum(storages.values()))
            ops = {}
            for n in nodes:
                ops[n.op] = ops.get(n.op, 0) + 1
            self.same(f"ops of part {p['id']}", p["ops"], ops)
            if len(nodes) <= 200 and self.peak(p) is not None:
                self.same(f"activation peak of part {p['id']}", p["activation_peak_bytes"],
                          self.peak(p))
            for key, budget in budgets.items():
                if p["target"] == "host":
                    self.same(f"{key} of host part {p['id']}", p[key], 0)
                    continue
                if p["target"] in UNIT_MEMORY:
                    self.same(f"{key} of part {p['id']}", p[key], p["weight_bytes"])
                self.expect(budget is None or p[key] <= budget or p["oversized"],
                            f"part {p['id']} needs {p[key]}, over {budget}, and is not oversized")
            if p["oversized"]:
                self.oversized(p, nodes)
        for p in self.parts:
            for key in ("same_as", "same_structure"):
                other = p[key]
                if other is not None:
                    self.expect(other < p["id"] and self.parts[other]["ops"] == p["ops"],
                                f"part {p['id']} is not the same as {other}")

    def oversized(self, p, nodes):
        """It holds one atom over the budget, and nothing that adds to it."""
        self.expect(self.options.get("oversize") == "keep", f"part {p['id']} is oversized")
        if p["target"] not in UNIT_MEMORY:
            return
        budget = self.options["budget"]
        atoms = {}
        for n in nodes:
            atoms.setdefault(self.atom[n.index], []).append(n)
        alone = [sum(self.graph.storages(a).values()) for a in atoms.values()]
        over = [b for b in alone if b > budget]
        self.same(f"atoms over the budget in part {p['id']}", len(over), 1)
        self.same(f"bytes of oversized part {p['id']}", p["weight_bytes"], max(alone))

    # ---- numbers and proofs ----

    def stretches(self, target):
        """By node: most engine stretches on a path that ends there, and that starts there."""
        n = len(self.graph.nodes)
        atoms = sorted(set(self.atom))
        after, before = {a: set() for a in atoms}, {a: set() for a in atoms}
        for u, v in self.edges:
            if self.atom[u] != self.atom[v]:
                after[self.atom[u]].add(self.atom[v])
                before[self.atom[v]].add(self.atom[u])
        waits = {a: len(before[a]) for a in atoms}
        ready, order = [a for a in atoms if not waits[a]], []
        while ready:
            a = ready.pop()
            order.append(a)
            for b in after[a]:
                waits[b] -= 1
                if not waits[b]:
                    ready.append(b)
        lam, mu = {}, {}
        for way, near, level in ((order, before, lam), (order[::-1], after, mu)):
            for a in way:
                own = target[a] != "host"
                level[a] = max([own] + [level[b] + (own and target[b] != target[a]) for b in near[a]])
        return [[int(level[self.atom[i]]) for i in range(n)] for level in (lam, mu)]

    def numbers(self):
        engines = sum(p["target"] != "host" for p in self.parts)
        self.same("engines", self.goal["engines"], engines)
        self.same("parts", self.goal["parts"], len(self.parts))
        self.same("engines_proved", self.goal["engines_proved"], engines == self.goal["engines_bound"])
        self.expect(self.goal["engines_bound"] <= engines, "the bound is above the engines")
        kind, path = self.goal["bound_kind"], self.plan["certificate"]
        if not self.expect(all(name in self.node for name in path), "the certificate names no node"):
            return
        nodes = [self.node[name] for name in path]
        if kind == "search":  # optimum() looks for fewer
            self.expect(not path and self.goal["engines_proved"], "a search proves what was found")
        elif kind == "path":
            self.path_certificate(nodes)
        elif "connected" in self.options and self.on_pieces(nodes):
            pass
        elif len(self.plan["targets"]) == 1 and self.plan["targets"][0]["name"] in UNIT_MEMORY:
            self.sum_certificate(nodes)

    def path_certificate(self, nodes):
        for a, b in zip(nodes, nodes[1:]):
            joined = self.has_patterns or self.atom[a.index] == self.atom[b.index]
            self.expect((a.index, b.index) in self.edges or joined,
                        f"certificate: %{self.graph.label(b)} does not follow %{self.graph.label(a)}")
        runs, last = 0, "host"
        for n in nodes:
            here = self.target_of(n)
            runs += here not in ("host", last)
            last = here
        self.same("stretches on the certificate", runs, self.goal["engines_bound"])

    def on_pieces(self, nodes):
        """Do the certificate's paths cross as many stretches of single pieces as the bound has?

        Of each piece the path with most stretches counts, whatever else lies on it."""
        target = {i: self.target_of(n) for i, n in enumerate(self.graph.nodes)}
        pieces = [p for t in set(target.values()) - {"host"}
                  for p in self.pieces({i for i in target if target[i] == t})]
        paths = []
        for n in nodes:
            last = paths[-1][-1] if paths else None
            if last is not None and ((last, n.index) in self.edges or
                                     self.atom[last] == self.atom[n.index]):
                paths[-1].append(n.index)
            else:
                paths.append([n.index])
        proved = 0
        for piece in pieces:
            proved += max((sum(i in piece and (k == 0 or path[k - 1] not in piece)
                               for k, i in enumerate(path)) for path in paths), default=0)
        return proved >= self.goal["engines_bound"]

    def sum_certificate(self, nodes):
        budget = self.options["budget"]
        if not self.expect(budget, "a sum of weights proves nothing without a budget"):
            return
        listed = {}
        for n in nodes:
            listed.setdefault(self.atom[n.index], []).append(n)
        over = [a for a, some in listed.items() if sum(self.graph.storages(some).values()) > budget]
        kept_out = set(self.graph.storages([n for a in over for n in listed[a]]))
        weighed = {s: b for s, b in self.graph.storages(nodes).items() if s not in kept_out}
        lam, mu = self.stretches([self.target_of(n) for n in self.graph.nodes])
        windows = min(lam[n.index] for n in nodes) + min(mu[n.index] for n in nodes) - 2
        proved = windows + len(over) + -(-sum(weighed.values()) // budget)
        proved = max(proved, self.milestones(nodes, budget))
        self.expect(proved >= self.goal["engines_bound"],
                    f"the certificate proves {proved} engines, not {self.goal['engines_bound']}")

    def milestones(self, nodes, budget):
        """Engines that a chain of nodes proves: what lies between two of them, both included, takes
        its bytes over the budget, or two if a host node is there; neighbours share one engine."""
        n = len(self.graph.nodes)
        near = [set() for _ in range(n)]
        for a, b in self.edges:
            near[a].add(b)
        for i in range(n):  # what shares an atom is reached together
            near[i] |= {k for k in range(n) if k != i and self.atom[k] == self.atom[i]}

        def reached(start, near):
            seen, todo = {start}, [start]
            while todo:
                for b in near[todo.pop()] - seen:
                    seen.add(b)
                    todo.append(b)
            return seen
        back = [{a for a in range(n) if b in near[a]} for b in range(n)]
        level = 1
        for u, v in zip(nodes, nodes[1:]):
            between = reached(u.index, near) & reached(v.index, back)
            if v.index not in between:
                return 0
            own = [self.graph.nodes[i] for i in between if self.target_of(self.graph.nodes[i]) != "host"]
            by_atom = {}
            for node in own:
                by_atom.setdefault(self.atom[node.index], []).append(node)
            over = [a for a, some in by_atom.items() if sum(self.graph.storages(some).values()) > budget]
            kept_out = set(self.graph.storages([x for a in over for x in by_atom[a]]))
            bytes_ = sum(b for s, b in self.graph.storages(own).items() if s not in kept_out)
            need = len(over) + -(-bytes_ // budget)
            level += max(need, 2 if len(own) < len(between) else 1) - 1
        return level

    def savings(self):
        """engines_saved_if_supported, by the path bound with one node more on the accelerator."""
        target = [self.target_of(n) for n in self.graph.nodes]
        now = max(self.stretches(target)[0], default=0)
        known = [f for f in self.plan["fallback"] if f["engines_saved_if_supported"] is not None]
        for f in known[::len(known) // 8 + 1]:  # a sample, each costs a pass over the graph
            saved = f["engines_saved_if_supported"]
            node = self.node[f["node"]].index
            flipped = list(target)
            flipped[node] = self.plan["targets"][0]["name"]
            then = max(self.stretches(flipped)[0], default=0)
            self.same(f"engines saved by %{f['node']}", saved, max(0, now - then))

    def optimum(self):
        """Against the best plan that a search finds, where the graph is small enough."""
        if self.has_patterns or "connected" in self.options or len(self.graph.nodes) > SEARCHED:
            return
        target = [self.target_of(n) for n in self.graph.nodes]
        least, budget = self.options.get("min-nodes", 0), self.options["budget"]
        if budget and not all(t["name"] in UNIT_MEMORY for t in self.plan["targets"]):
            return
        pinned = self.pinned()
        best = search.Problem(self.graph, self.atom, target, budget, least, pinned).best()
        self.searched = best is not None
        if best is not None:
            engines, parts = best
            self.expect(engines is not None, "the search finds no plan with these targets")
            self.expect(engines is None or self.goal["engines_bound"] <= engines,
                        f"the bound is {self.goal['engines_bound']}, the optimum {engines}")
            self.same("engines, by search", self.goal["engines"], engines)
            if len(set(target) - {"host"}) <= 1 and not budget and least < 2:
                self.same("parts, by search", self.goal["parts"], parts)
        if least > 1 and not budget:
            self.kept(target, least, pinned)

    def kept(self, target, least, pinned):
        name = self.plan["targets"][0]["name"]
        size = {f["node"] for f in self.plan["fallback"] if f["rule"] == "size"}
        before = [name if self.graph.label(n) in size else t for n, t in zip(self.graph.nodes, target)]
        if len(self.plan["targets"]) > 1 or self.options["boundary"]:
            return
        best = search.most_kept(self.graph, self.atom, before, least, pinned)
        if best is not None:
            self.same("nodes kept, by search", (sum(t != "host" for t in target), self.goal["engines"]),
                      best)


def check(graph, plan, options):
    c = Checker(graph, plan, options)
    if c.place():
        c.coverage()
        c.order()
        c.sizes()
        c.values()
        c.memory()
        c.numbers()
        c.savings()
        c.optimum()
    return c.faults, c.searched
