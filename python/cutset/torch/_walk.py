"""The first pass over a graph: values, nodes, arguments, kinds and types as flat arrays.

Call nodes make one value each, which bears their name. `get_attr` nodes are weights, told apart by
storage; an attribute that is no tensor is no value. Modules, and graphs that a higher-order
operator is given, bring their weights as hidden arguments. A `getitem` of a tuple follows its
maker. Everything that depends on the target, the attribute or the type alone is found once.

What `Graph.lint` looks at is looked at here, on the way: a node of another graph, or read before it
is made; a name twice; an unknown kind of node; a node that `Graph.find_nodes` does not find; targets
that are not there. Any such thing raises, then `cross` asks `lint` itself what to say.

Cost: 3 to 4 us a call node with an example, half of it for the weight that it reads.
"""
from __future__ import annotations

import operator
from array import array
from bisect import bisect_left
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node
from torch.nn.parameter import is_lazy

from .._errors import ModelError
from .._lib import NONE
from . import _effects
from ._codes import CALLS, FOLLOW, FREE, LIST, SCALAR, TENSOR
from ._effects import Facts
from ._modules import ModuleFacts, module_facts
from ._types import Types, memory_of

if TYPE_CHECKING:
    from ._crossing import Crossing


class Walk:
    """The arrays of one graph."""

    def __init__(self, out: Crossing) -> None:
        self.gm, self.rules, self.out = out.module, out.rules, out
        self.graph = self.gm.graph
        self.types = Types()
        self.names: list[str] = []  # by value
        self.kinds = bytearray()
        self.value_types: list[int] = []
        self.value_storages: array[int] = array("I")  # after the walk
        self.weights: dict[int, int] = {}  # storages of the values that are weights
        self.storage_of: dict[Any, int] = {}
        self.storage_bytes: array[int] = array("q")
        self.inputs: array[int] = array("I")
        self.outputs: array[int] = array("I")
        self.ids = out.ids  # NONE: no value (an attribute that is no tensor)
        self.args, self.arg_rows, self.outs = self.out.args, self.out.arg_rows, self.out.outs
        self.facts: list[Facts] = []  # by node
        # By kind of call and target (of a function its id: operators are slow to hash): facts; what
        # `find_nodes` finds; is there nothing to look at but arguments and type?
        self.known: dict[str, dict[Any, tuple[Facts, set[Node], bool]]] = {
            op: {} for op in CALLS}
        self.listed: dict[Any, set[Node]] = {}  # what `find_nodes` finds of other kinds
        self.ops: dict[str, int] = {}
        self.node_ops: array[int] = array("I")  # after the walk
        self.op_of: dict[Facts, int] = {}  # index into ops
        self.targets: dict[Facts, Any] = {}  # a target that has them
        self.held: dict[str, Any] = {}  # parameters and buffers, of modules looked at
        self.modules_held: set[str] = set()
        self.valueless: set[Node] = set()  # attributes that are no tensor
        self.attributes: dict[Any, Any] = {}  # by target; bodies and hidden weights too
        self.modules: dict[str, ModuleFacts] = {}
        self.module_args: dict[str, list[int]] = {}
        self.bodies: dict[Node, ModuleFacts] = {}  # get_attr of a graph that is called
        self.called: dict[int, list[ModuleFacts]] = {}  # by node id: the graphs that it calls
        self.busy: dict[int, str] = {}  # by node id: why it is no pure operator
        self.special: list[int] = []  # node ids to look at for effects
        self.sequences: list[int] = []  # node ids of tuples of numbers
        self.numbers: set[int] = set()  # their values
        self.forced: dict[int, str] = {}  # node ids that stay on the host, and why
        self.tuple_inputs: set[int] = set()

    # ---- values ----

    def add_value(self, name: str, kind: int, type_id: int) -> int:
        value = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.value_types.append(type_id)
        return value

    def add_weight(self, name: str, tensor: torch.Tensor) -> int:
        value = self.add_value(name, TENSOR, self.types.of_tensor(tensor))
        self.weights[value] = self.storage(tensor)
        return value

    def look_at(self, path: str, tensor: torch.Tensor) -> None:
        """Has it sizes, and values? ModelError: it has no size yet."""
        if is_lazy(tensor):
            raise ModelError(f"weight {path} is not initialised: run the module once, so that its "
                             "lazy parameters get their sizes", node=path)
        if tensor.is_meta and self.out.without_bytes is None:
            self.out.without_bytes = path

    @cached_property
    def of_storage(self) -> dict[int, int]:
        """The first value of each storage, after the walk."""
        return {storage: value for value, storage in reversed(self.weights.items())}

    def storage(self, tensor: torch.Tensor) -> int:
        """Tensors that share memory share a storage."""
        key, size = memory_of(tensor)
        found = self.storage_of.get(key)
        if found is None:
            found = self.storage_of[key] = len(self.storage_bytes)
            self.storage_bytes.append(size)
        return found

    # ---- nodes ----

    def walk(self) -> None:
        """Values, nodes, arguments, kinds, types. ModelError, or anything else: it does not lint."""
        nodes = list(self.graph.nodes)
        names = [node.name for node in nodes]
        if len(set(names)) < len(names):
            raise ModelError("two nodes have one name: rename one")
        try:
            self.walk_over(nodes, names)
        except KeyError as error:
            what = error.args[0]
            if not isinstance(what, Node):
                raise
            raise ModelError(f"node {what.name} is read and makes no value before: put it "
                             "first", node=what.name) from None
        self.node_ops.extend(map(self.op_of.__getitem__, self.facts))
        self.value_storages.extend([NONE] * len(self.names))
        for value, storage in self.weights.items():
            self.value_storages[value] = storage

    def walk_over(self, nodes: list[Node], names: list[str]) -> None:
        """One turn for each node. Most nodes are weights that the module holds, or calls that read
        values, make a tensor that has an example, and have facts that say nothing more: all that
        is done for them stands here, in local names, since it is most of the time that a plan
        takes."""
        graph, out, ids, learn = self.graph, self.out, self.ids, self.learn
        calls, all_facts, args, rows, outs = out.nodes, self.facts, self.args, self.arg_rows, self.outs
        value_names, kinds, types, flags = self.names, self.kinds, self.value_types, out.flags
        value_of, kind_of, type_of = ids.__getitem__, self.types.of_meta, self.types.known
        valueless, known_by_op = self.valueless, self.known
        held, weights, attributes = self.held, self.weights, self.find("get_attr")
        storage_of, sizes, see_attribute = self.storage_of, self.storage_bytes, self.see_attribute
        plain_types = (torch.nn.Parameter, torch.Tensor)
        others: dict[str, Callable[[Node], None]] = {
            "placeholder": self.see_input, "output": self.see_output}
        for node, name in zip(nodes, names):
            op = node.op
            if op == "get_attr":
                tensor = held.get(node.target)
                if (type(tensor) not in plain_types or tensor.is_meta or node._input_nodes
                        or node not in attributes or node.graph is not graph):
                    see_attribute(node)
                    continue
                try:
                    type_id = type_of[tensor.dtype, tensor.shape]
                    memory = tensor.untyped_storage()
                except (KeyError, NotImplementedError, RuntimeError):  # new; sparse, opaque
                    see_attribute(node)
                    continue
                key = memory._cdata
                storage = storage_of.get(key)
                if storage is None:
                    storage = storage_of[key] = len(sizes)
                    sizes.append(memory.nbytes())
                value = ids[node] = len(types)
                weights[value] = storage
                value_names.append(name)
                kinds.append(TENSOR)
                types.append(type_id)
                continue
            known = known_by_op.get(op)
            if known is None:
                others[op](node)
                continue
            target = node.target
            facts, listed, plain = known.get(
                id(target) if op == "call_function" else target) or learn(node)
            if node not in listed or node.graph is not graph:
                raise _misplaced(node)
            calls.append(node)
            all_facts.append(facts)
            args.extend(map(value_of, node._input_nodes))
            example = node.meta.get("val")
            try:
                kind, type_id = TENSOR, type_of[example.dtype, example.shape]
            except (AttributeError, KeyError, TypeError):  # no tensor; new; symbolic sizes
                kind, type_id = kind_of(node.meta)
            flag = 0
            if kind != TENSOR or not plain or (
                    valueless and not valueless.isdisjoint(node._input_nodes)):
                kind, flag = self.see_call(node, facts, kind)
            value = ids[node] = len(types)
            value_names.append(name)
            kinds.append(kind)
            types.append(type_id)
            rows.append(len(args))
            outs.append(value)
            flags.append(flag)

    def see_call(self, node: Node, facts: Facts, kind: int) -> tuple[int, int]:
        """The rest of a call that is not plain: kind and flags of its result."""
        start = self.arg_rows[-1]
        if facts.special:
            self.special.append(len(self.out.nodes) - 1)
        if not self.valueless.isdisjoint(node._input_nodes):
            self.args[start:] = self.take_bodies(node, self.args[start:])
        if node.op == "call_module":
            self.args.extend(self.module_args[node.target])
        if kind != TENSOR or facts.getitem:
            return self.see_odd(node, facts, kind, self.args[start:])
        return kind, 0

    def check(self, node: Node) -> None:
        """What `lint` checks of a node that is no call."""
        for item in node._input_nodes:
            self.ids[item]
        if node not in self.find(node.op) or node.graph is not self.graph or not isinstance(
                node.target, str):
            raise _misplaced(node)

    def find(self, op: str) -> set[Node]:
        """What `find_nodes` finds of that kind, which is not call_function."""
        if op not in self.listed:
            self.listed[op] = set(self.graph.find_nodes(op=op, sort=False))
        return self.listed[op]

    def learn(self, node: Node) -> tuple[Facts, set[Node], bool]:
        """What is known of a target that is met for the first time."""
        op, target = node.op, node.target
        if not (callable(target) if op == "call_function" else target and isinstance(target, str)):
            raise _misplaced(node)
        if op == "call_function":
            facts = _effects.function_facts(target)
            listed = set(self.graph.find_nodes(op=op, target=target, sort=False))
        else:
            listed = self.find(op)
            if op == "call_method":
                facts = _effects.method_facts(target)
            else:
                facts = Facts(target, target)
                facts.special = True
                self.see_module(target)
        self.targets[facts] = target
        self.op_of[facts] = self.ops.setdefault(facts.name, len(self.ops))
        found = facts, listed, not (facts.special or facts.getitem)
        self.known[op][id(target) if op == "call_function" else target] = found
        return found

    def see_module(self, target: str) -> None:
        try:
            module = self.gm.get_submodule(target)
        except AttributeError:
            raise ModelError(f"the graph calls module {target}, which is not there: add "
                             "it") from None
        facts = self.modules[target] = module_facts(module, target)
        self.module_args[target] = self.hidden(facts)

    def hidden(self, facts: ModuleFacts) -> list[int]:
        """Values of the weights that a module brings along."""
        stored = {self.storage(t) for t in facts.stored}
        values = []
        for name, tensor in facts.weights:
            self.look_at(name, tensor)
            if self.storage(tensor) in stored:
                continue  # its own state, which no other part is given
            value = self.attributes.get(("hidden", name))
            if value is None:
                value = self.add_weight(self.fresh(name), tensor)
                self.attributes["hidden", name] = value
            values.append(value)
        return values

    def fresh(self, name: str) -> str:
        """Dotted, so that it is no node's name."""
        return name if "." in name else f".{name}"

    def see_attribute(self, node: Node) -> None:
        """A weight, or what is no value."""
        self.check(node)
        target = node.target
        self.hold(target.rpartition(".")[0])
        found = self.held.get(target)
        if found is None:  # not the usual kind: as Python looks it up
            found = self.attributes.get(target, self)
            if found is self:
                found = self.attributes[target] = self.look_up(node)
        if isinstance(found, torch.Tensor):
            self.look_at(target, found)
            self.ids[node] = self.add_weight(node.name, found)
            return
        self.ids[node] = NONE
        self.valueless.add(node)
        if isinstance(found, torch.nn.Module):
            key = ("body", target)
            if key not in self.attributes:
                self.attributes[key] = module_facts(found, target)
            self.bodies[node] = self.attributes[key]

    def hold(self, path: str) -> None:
        """Adds the parameters and buffers of a module to `held`."""
        if path in self.modules_held:
            return
        self.modules_held.add(path)
        try:
            module = self.gm.get_submodule(path)
        except AttributeError:
            return
        for tensors in (module._buffers, module._parameters):
            if path:
                tensors = {f"{path}.{name}": tensor for name, tensor in tensors.items()}
            self.held.update(tensors)

    def look_up(self, node: Node) -> Any:
        """What a `get_attr` node names."""
        try:
            found = operator.attrgetter(node.target)(self.gm)
        except AttributeError:
            found = None
        if found is None:
            raise ModelError(f"node {node.name} names {node.target}, which the module does not "
                             "have: add it", node=node.name)
        return found

    def see_input(self, node: Node) -> None:
        self.check(node)
        kind, type_id = self.types.of_meta(node.meta)
        if kind == Types.UNKNOWN:
            kind = LIST if _effects.takes_several(node) else TENSOR
        kind = min(kind, LIST)
        value = self.ids[node] = self.add_value(node.name, kind, type_id)
        self.inputs.append(value)
        if kind == LIST:
            self.tuple_inputs.add(value)

    def see_output(self, node: Node) -> None:
        self.check(node)
        for item in _effects.nodes_in(node.args):
            value = self.ids[item]
            if value != NONE:
                self.outputs.append(value)

    def take_bodies(self, node: Node, row: list[int]) -> list[int]:
        """Arguments without what is no value; a graph that is called brings its weights."""
        at = len(self.out.nodes) - 1
        for item in node._input_nodes:
            facts = self.bodies.get(item)
            if facts is None:
                continue
            row += [v for v in self.hidden(facts) if v not in row]
            self.called.setdefault(at, []).append(facts)
        if at in self.called:
            self.special.append(at)
        return [v for v in row if v != NONE]

    def see_odd(self, node: Node, facts: Facts, kind: int, row: list[int]) -> tuple[int, int]:
        """Kind and flags of what is not known to be a tensor."""
        at = len(self.out.nodes) - 1
        if facts.getitem and row:
            first = node.args[0]
            holder = self.kinds[row[0]] if isinstance(first, Node) else TENSOR
            if holder == LIST:
                return self.see_item(node, kind, row[0])
        if kind == Types.UNKNOWN:
            guess = _effects.guess_kind(facts, node, self.kind_of)
            kind = {"tensor": TENSOR, "scalar": SCALAR, "tuple": Types.NUMBERS,
                    "list": LIST}[guess]
        if kind == TENSOR:
            return TENSOR, FREE if facts.getitem else 0
        if kind == Types.NUMBERS:
            self.note_numbers(at)
            return LIST, FREE
        return kind, FREE if kind == SCALAR else 0

    def note_numbers(self, at: int) -> None:
        """Node `at` makes a tuple of numbers, the value that comes next."""
        self.sequences.append(at)
        self.numbers.add(len(self.names))

    def see_item(self, node: Node, kind: int, holder: int) -> tuple[int, int]:
        """A getitem of a tuple or list."""
        at = len(self.out.nodes) - 1
        if kind == Types.UNKNOWN and holder in self.numbers:
            kind = Types.NUMBERS if isinstance(node.args[1], slice) else SCALAR
        elif kind == Types.UNKNOWN:
            kind = LIST if _effects.only_unpacked(node) else TENSOR
        if kind == Types.NUMBERS:
            self.note_numbers(at)
            kind = LIST
        if holder in self.tuple_inputs:
            self.forced[at] = "boundary: it reads a tuple that the graph is given"
            if kind == LIST:
                self.tuple_inputs.add(len(self.names))
            return kind, FREE
        return kind, FREE | FOLLOW

    def kind_of(self, node: Node) -> str:
        value = self.ids[node]
        if value in self.numbers:
            return "tuple"
        return "scalar" if value != NONE and self.kinds[value] == SCALAR else "tensor"

    def node_of(self, value: int) -> int:
        """The node that makes a value."""
        return bisect_left(self.outs, value)


def _misplaced(node: Node) -> ModelError:
    return ModelError(f"node {node.name} is not a proper node of its graph: make it anew, with the "
                      "methods of Graph", node=node.name)
