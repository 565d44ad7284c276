"""The text form, read a second time and naively, to check plans against.

It trusts the file to be well formed (the command is what refuses bad ones) and keeps what a plan is
checked against: nodes, edges, groups, weights, types. Nothing here is shared with the command.
"""
import fnmatch
import functools
import re

BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i8": 8,
        "i4": 4, "i2": 2, "u64": 64, "u32": 32, "u16": 16, "u8": 8, "u4": 4, "u2": 2, "bool": 8,
        "c64": 64, "c128": 128, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e5m2": 8, "f8e5m2fnuz": 8,
        "f8e8m0": 8, "f6e2m3": 6, "f6e3m2": 6, "f4e2m1": 4}


@functools.lru_cache(None)
def type_bytes(text):
    """Bytes of a value of this type; None where the type does not tell."""
    match = re.fullmatch(r"([a-z0-9]+)\[([0-9, ]*)\]", text or "")
    if not match or match[1] not in BITS:
        return None
    elements = 1
    for dim in filter(None, match[2].replace(" ", "").split(",")):
        elements *= int(dim)
    return (elements * BITS[match[1]] + 7) // 8


class Node:
    def __init__(self, index):
        self.index, self.op, self.name = index, "", ""
        self.outs, self.args, self.captures, self.targets, self.writes = [], [], [], [], []
        self.effect, self.bodies = False, []

    def reads(self):
        return [v for v in self.args if v is not None] + self.captures

    def made(self):
        return [v for v in self.outs if v is not None]


class Line:
    """One line without its comment, taken apart from the left."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def blanks(self):
        while self.at < len(self.text) and self.text[self.at] in " \t\r":
            self.at += 1

    def take(self, piece):
        self.blanks()
        if not self.text.startswith(piece, self.at):
            return False
        self.at += len(piece)
        return True

    def need(self, piece):
        assert self.take(piece), f"{piece!r} is missing at {self.text[self.at:]!r}"

    def done(self):
        self.blanks()
        return self.at == len(self.text)

    def name(self):
        """bare | string"""
        self.blanks()
        match = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z0-9_./-]+)').match(self.text, self.at)
        assert match, f"a name is missing at {self.text[self.at:]!r}"
        self.at = match.end()
        if match[1] is None:
            return match[2]
        return re.sub(r"\\(x..|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" and m[1][1:]
                      else m[1], match[1])

    def value(self):
        self.need("%")
        return self.name()

    def balanced(self, opening, closing):
        """The text up to the bracket that closes the one just taken."""
        start, depth, quoted = self.at, 1, False
        while depth:
            char = self.text[self.at]
            if char == "\\" and quoted:
                self.at += 1
            elif char == '"':
                quoted = not quoted
            elif not quoted:
                depth += (char == opening) - (char == closing)
            self.at += 1
        return self.text[start:self.at - 1]

    def type(self):
        self.blanks()
        if self.take("?"):
            return "?"
        head = re.compile(r"[a-z0-9]+").match(self.text, self.at)
        self.at = head.end()
        for opening, closing in ("[]", "()"):
            if self.at < len(self.text) and self.text[self.at] == opening:
                self.at += 1
                return head[0] + opening + self.balanced(opening, closing) + closing
        return head[0]


class Graph:
    def __init__(self, outer=None):
        self.outer = outer
        self.types, self.inputs, self.outputs = {}, [], []
        self.weights, self.ties = {}, {}
        self.nodes, self.given_order, self.groups = [], [], []

    # ---- names ----

    def label(self, node):
        return next(iter(node.made()), f"${node.index}")

    def find(self, name):
        """The node that a name stands for: one of its outputs, or $ and its index."""
        if name.startswith("$"):
            return self.nodes[int(name[1:])]
        return next(n for n in self.nodes if name in n.made())

    def match(self, pattern):
        """The nodes that an option names: exactly, else by a glob over outputs."""
        exact = [n for n in self.nodes if pattern in n.made() or pattern == f"${n.index}"]
        return exact or [n for n in self.nodes
                         if any(fnmatch.fnmatchcase(v, pattern) for v in n.made())]

    def maker(self):
        return {v: n for n in self.nodes for v in n.made()}

    # ---- weights ----

    def storage(self, weight):
        while weight in self.ties:
            weight = self.ties[weight]
        return weight

    def storages(self, nodes):
        """Storage -> bytes of what these nodes read, bodies included."""
        found = {}
        for node in nodes:
            for v in node.reads():
                if v in self.weights:
                    found[self.storage(v)] = type_bytes(self.weights[self.storage(v)])
            for body in node.bodies:
                found.update(body.own_storages())
        return found

    def own_storages(self):
        found = {(id(self), w): type_bytes(t) for w, t in self.weights.items() if w not in self.ties}
        for node in self.nodes:
            for body in node.bodies:
                found.update(body.own_storages())
        return found

    # ---- edges ----

    def has_effect(self):
        return any(n.effect or any(b.has_effect() for b in n.bodies) for n in self.nodes)

    def written(self, node):
        """What a node writes, itself or in a body."""
        values = list(node.writes)
        for body in node.bodies:
            own = set(body.types)
            values += [v for n in body.nodes for v in body.written(n) if v not in own]
        return values

    def edges(self):
        """All (u, v) pairs of node indexes: values, order edges, effects, writes."""
        maker, edges = self.maker(), set(self.given_order)
        for node in self.nodes:
            edges |= {(maker[v].index, node.index) for v in node.reads() if v in maker}
        effects = [n.index for n in self.nodes
                   if n.effect or any(b.has_effect() for b in n.bodies)]
        edges |= set(zip(effects, effects[1:]))
        writes = [self.written(n) for n in self.nodes]
        for v in {v for some in writes for v in some}:
            touch = [n for n in self.nodes if v in n.reads() or v in writes[n.index]]
            for i, first in enumerate(touch):
                for second in touch[i + 1:]:
                    if v in writes[first.index] or v in writes[second.index]:
                        edges.add((first.index, second.index))
            if v in maker:
                edges |= {(maker[v].index, n.index) for n in touch}
        return {(u, v) for u, v in edges if u != v}

    def atoms(self, more_groups=()):
        """By node: the smallest index of its atom (groups, then whatever lies on their cycles)."""
        atom = list(range(len(self.nodes)))
        for group in list(self.groups) + list(more_groups):
            merge(atom, group)
        if len(set(atom)) == len(atom):
            return atom
        edges = self.edges()
        while True:
            component = cycles(len(atom), {(atom[u], atom[v]) for u, v in edges if atom[u] != atom[v]})
            merged = {}
            for i, a in enumerate(atom):
                merged.setdefault(component[a], []).append(i)
            for nodes in merged.values():
                merge(atom, nodes)
            if len(set(atom)) == len(merged):
                return atom


def merge(atom, nodes):
    """The atoms of these nodes become one."""
    old = {atom[n] for n in nodes}
    for i, a in enumerate(atom):
        if a in old:
            atom[i] = min(old)


def cycles(n, edges):
    """By node: a number of its strongly connected component (two passes, no recursion)."""
    after, before = [[] for _ in range(n)], [[] for _ in range(n)]
    for u, v in edges:
        after[u].append(v)
        before[v].append(u)
    seen, finished = [False] * n, []
    for root in range(n):
        stack = [] if seen[root] else [(root, iter(after[root]))]
        seen[root] = True
        while stack:
            node, rest = stack[-1]
            child = next((c for c in rest if not seen[c]), None)
            if child is None:
                finished.append(node)
                stack.pop()
            else:
                seen[child] = True
                stack.append((child, iter(after[child])))
    component = [None] * n
    for root in reversed(finished):
        todo = [] if component[root] is not None else [root]
        while todo:
            node = todo.pop()
            if component[node] is None:
                component[node] = root
                todo += before[node]
    return component


# ---- reading ----

def strip_comment(line):
    quoted = False
    for i, char in enumerate(line):
        if char == '"' and (i == 0 or line[i - 1] != "\\"):
            quoted = not quoted
        if char == "#" and not quoted and (line[:i].strip() == "" or line[i - 1] in " \t\r"):
            return line[:i].rstrip()
    return line.rstrip()


def read_node(graph, line, lines):
    node = Node(len(graph.nodes))
    graph.nodes.append(node)
    if line.take("("):
        line.need(")")
    else:
        while True:
            line.blanks()
            absent = line.text[line.at] == "_"
            if absent:
                line.at += 1
            v = None if absent else line.value()
            kind = line.type() if line.take(":") else None
            node.outs.append(v)
            if v is not None:
                graph.types[v] = kind
            if not line.take(","):
                break
    line.need("=")
    node.op = line.name()
    if line.take(":"):
        node.op += ":" + line.name()
    line.need("(")
    while not line.take(")"):
        line.blanks()
        absent = line.text[line.at] in ",)"
        node.args.append(None if absent else line.value())
        if line.take(",") and line.text[line.at:].lstrip().startswith(")"):
            node.args.append(None)
    bodies = line.text.rstrip().endswith("{")
    if not (bodies and line.text[line.at:].strip() == "{") and line.take("{"):
        line.balanced("{", "}")
    if line.take("@"):
        node.targets.append(line.name())
        while line.take(","):
            node.targets.append(line.name())
    while line.take("!"):
        word = line.name()
        node.effect |= word == "effect"
        if word == "writes":
            line.need("(")
            node.writes.append(line.value())
            while line.take(","):
                node.writes.append(line.value())
            line.need(")")
    if bodies:
        line.need("{")
        read_bodies(graph, node, lines)
    assert line.done(), f"left over: {line.text[line.at:]!r}"


def read_bodies(graph, node, lines):
    for text in lines:
        line = Line(text)
        if line.take("}"):
            break
        line.need("body")
        line.name()
        body = Graph(graph)
        while not line.done():
            read_input(body, line)
        read_statements(body, lines)
        node.bodies.append(body)
        for v in body_reads(body):
            if v not in node.captures and v not in node.args:
                node.captures.append(v)


def body_reads(body):
    """Values that a body takes from outside, in order of first use."""
    found = []
    for v in [v for n in body.nodes for v in n.reads() + n.writes] + body.outputs:
        if v not in body.types and v not in found:
            found.append(v)
    return found


def read_input(graph, line):
    v = line.value()
    line.need(":")
    graph.types[v] = line.type()
    graph.inputs.append(v)


def read_weight(graph, line):
    v = line.value()
    line.need(":")
    graph.types[v] = graph.weights[v] = line.type()
    if line.take("="):
        graph.ties[v] = line.value()


def node_name(line):
    return "$" + line.name() if line.take("$") else line.value()


def read_statements(graph, lines):
    order, groups = [], []
    for text in lines:
        line = Line(text)
        word = re.match(r"\s*([a-z]+)(?=\s|$)", text)
        word = word[1] if word else ""
        if word in ("graph", "opset", "input", "weight", "order", "group", "output", "end"):
            line.need(word)
        if word == "end":
            break
        if word == "input":
            read_input(graph, line)
        elif word == "weight":
            read_weight(graph, line)
        elif word == "order":
            first = node_name(line)
            line.need("->")
            order.append((first, node_name(line)))
        elif word == "group":
            line.name()
            line.need("{")
            groups.append([])
            while not line.take("}"):
                groups[-1].append(node_name(line))
        elif word == "output":
            graph.outputs.append(line.value())
        elif word not in ("graph", "opset"):
            read_node(graph, line, lines)
    graph.given_order = [(graph.find(a).index, graph.find(b).index) for a, b in order]
    graph.groups = [[graph.find(name).index for name in names] for names in groups]


def read(text):
    graph = Graph()
    stripped = (strip_comment(line) for line in text.split("\n"))
    read_statements(graph, iter([line for line in stripped if line.strip()]))
    return graph
