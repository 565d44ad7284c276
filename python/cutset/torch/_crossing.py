"""A torch.fx graph as flat arrays, and the library's model of it.

    crossing = cross(gm, Rules(support=Support(None, gm)))
    plan = crossing.plan(Budget(...), min_nodes=5)

`cross` goes over the graph three times: values, edges, kinds and types (_walk.py); writes and
views, where there are any, and constant expressions (_relations.py); who may run what (_decide.py),
since a node is asked about only when it is known to be no constant expression. What the library
decides itself (order edges, constant expressions, patterns, what an engine may hold) is not decided
here: constant expressions are only told apart from the nodes that `supported` is asked about, by
the rule of src/graph/arrays.c. `Crossing.nodes[i]` is node i of the library's model: the call nodes
in program order.

`lint` itself is asked only where the first pass finds something wrong, for what it says.

Cost: linear; about 5 us a node, beside what `supported` and the planner take.
"""
from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.fx import GraphModule, Node

from .. import _model
from .._errors import ModelError, UsageError
from .._lib import Call, encode, ffi, lib
from .._plan import Plan, take_plan
from . import _arrays, _decide, _relations
from ._codes import CALLS, OPTION_WORDS
from ._support import Modules, Names, Support
from ._walk import Walk


@dataclass
class Rules:
    """What decides who may run what. `pinned`: everything runs on the accelerator, nothing is
    asked (a child that is cut again)."""

    support: Support | None = None
    pinned: bool = False
    executed_ops: Names = field(default_factory=lambda: Names((), "torch_executed_ops"))
    executed_modules: Modules = field(default_factory=lambda: Modules((), "torch_executed_modules"))
    free: Names = field(default_factory=lambda: Names((), "non_compute_ops"))
    exempt: Names = field(default_factory=lambda: Names((), "allowed_single_node_partition_ops"))
    data_dependent_on_host: bool = False
    tensors_only: bool = False
    full: bool = False  # everything in one engine
    groups: Sequence[Sequence[Node]] = ()  # the user's: never broken
    patterns: bool = True  # built-in ones and ATOMIC_SUBGRAPHS


@dataclass
class Budget:
    """An engine fits if factor * weight bytes + base <= bytes. None: no budget."""

    bytes: int | None = None
    factor: float = 4
    base: int = 0
    oversize: str = "error"


class Crossing:
    """A graph in the library."""

    def __init__(self, module: GraphModule, rules: Rules) -> None:
        self.module = module
        self.rules = rules
        self.nodes: list[Node] = []  # call nodes; node i of the model
        self.targets: tuple[str, ...] = rules.support.names if rules.support else ("acc",)
        self.flags: list[int] = []
        self.allow: array[int] = array("I")
        self.reasons: dict[int, str] = {}  # by node id: why it is on the host
        self.constant: set[int] = set()  # node ids of constant expressions
        self.touched: set[int] = set()  # node ids that write, draw or have an effect
        self.order: list[tuple[int, int]] = []
        self.writes: list[tuple[int, int]] = []  # (node id, value id)
        self.aliases: list[tuple[int, int]] = []  # value ids
        self.args: list[int] = []  # value ids, by arg_rows
        self.arg_rows: list[int] = [0]
        self.outs: list[int] = []  # the value of each node
        self.ids: dict[Node, int] = {}  # value ids
        self.roots: Sequence[int] = ()  # by value, where something is written: what it may share
        self.without_bytes: str | None = None  # a weight on the meta device
        self.model: Any = None  # a cutset_model

    def row(self, at: int) -> list[int]:
        """The values that node `at` reads."""
        return self.args[self.arg_rows[at]:self.arg_rows[at + 1]]

    def writes_of(self) -> dict[int, list[int]]:
        """By node: the values that it writes."""
        found: dict[int, list[int]] = {}
        for at, value in self.writes:
            found.setdefault(at, []).append(value)
        return found

    def require_bytes(self) -> None:
        """ModelError: a weight has a size and no values, so no engine can be built."""
        if self.without_bytes is not None:
            raise ModelError(
                f"weight {self.without_bytes} is on the meta device, without values: materialise "
                "the module first, with to_empty(device=...) and load_state_dict; plan works as it "
                "is",
                node=self.without_bytes)

    def plan(self, budget: Budget | None = None, *, min_nodes: int = 1,
             max_engines: int | None = None, connected: bool = False, bookends: bool = False,
             pin: Mapping[str, str] | None = None) -> Plan:
        """Decides. BudgetError, GroupError, UsageError."""
        budget = budget or Budget()
        call = Call(words=OPTION_WORDS)
        opts, keep = _model.plan_options(
            call, host_memory=budget.bytes, device_memory=None, min_nodes=min_nodes, pin=pin,
            exclude=(), groups=(), oversize=budget.oversize, objective="engines",
            max_engines=max_engines, effort=1, connected=connected)
        opts.tensors_only = self.rules.tensors_only
        opts.bookends = bookends
        targets = []
        for name in self.targets:
            out = ffi.new("cutset_target **")
            call.check(lib.cutset_target_marked(
                out, encode(name, "supported"), budget.factor, budget.base,
                self.rules.patterns, call.err))
            targets.append(ffi.gc(out[0], lib.cutset_target_free))
        made = _model.make_plan(self.model, targets, opts, call)
        del keep
        return take_plan(made, call)


def cross(gm: GraphModule, rules: Rules) -> Crossing:
    """Reads the graph of `gm` into the library. ModelError: it does not lint; UsageError:
    `supported` raises or answers nonsense."""
    out = Crossing(gm, rules)
    walk = Walk(out)
    try:
        walk.walk()
    except Exception:
        lint(gm)
        raise
    _check_output(gm)
    _relations.find_effects(walk)
    _relations.find_constants(walk)
    _decide.decide(walk)
    _decide.flag_views_and_patterns(walk)
    _arrays.build(walk)
    return out


def lint(gm: GraphModule) -> None:
    """ModelError where `graph.lint()` is not content."""
    try:
        gm.graph.lint()
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise ModelError(f"the graph does not lint: {first}: correct it") from error
    _check_output(gm)


def _check_output(gm: GraphModule) -> None:
    """`lint` does not look at it."""
    last = next(iter(reversed(gm.graph.nodes)), None)
    if last is None or last.op != "output":
        raise ModelError("the graph does not end with its output node: give it one")
    outputs = gm.graph.find_nodes(op="output", sort=False)
    if len(outputs) > 1:
        raise ModelError(f"the graph has {len(outputs)} output nodes: leave one",
                         node=outputs[1].name)


def find_nodes(gm: GraphModule, names: Iterable[Any], what: str) -> list[Node]:
    """Call nodes by themselves or by name."""
    by_name = {node.name: node for node in gm.graph.nodes}
    found = []
    for name in names:
        node = by_name.get(name) if isinstance(name, str) else name
        if not isinstance(node, Node) or by_name.get(node.name) is not node or node.op not in CALLS:
            raise UsageError(f"{what} names {name!r}, which is no call node of the graph: name "
                             "one")
        found.append(node)
    return found
