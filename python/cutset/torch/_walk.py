"""The first pass over a graph: values, nodes, arguments, kinds and types as flat arrays.

Call nodes make one value each, which bears their name. `get_attr` nodes are weights, told apart by
storage; an attribute that is no tensor is no value. Modules, and graphs that a higher-order
operator is given, bring their weights as hidden arguments. A `getitem` of a tuple follows its
maker. Everything that depends on the target, the attribute or the type alone is found once.
"""
from __future__ import annotations

import operator
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from .._errors import ModelError
from .._lib import NONE
from . import _effects
from ._codes import FOLLOW, FREE, LIST, SCALAR, TENSOR
from ._effects import Facts
from ._modules import ModuleFacts, module_facts
from ._types import Types

if TYPE_CHECKING:
    from ._crossing import Crossing


class Walk:
    """The arrays of one graph."""

    def __init__(self, out: Crossing) -> None:
        self.gm, self.rules, self.out = out.module, out.rules, out
        self.types = Types()
        self.names: list[str] = []  # by value
        self.kinds = bytearray()
        self.value_types: array[int] = array("I")
        self.value_storages: array[int] = array("I")
        self.storage_of: dict[Any, int] = {}
        self.storage_bytes: array[int] = array("q")
        self.inputs: array[int] = array("I")
        self.outputs: array[int] = array("I")
        self.ids = out.ids  # NONE: no value (an attribute that is no tensor)
        self.args, self.arg_rows, self.outs = self.out.args, self.out.arg_rows, self.out.outs
        self.facts: list[Facts] = []  # by node
        self.known: dict[tuple[str, Any], Facts] = {}
        self.ops: dict[str, int] = {}
        self.node_ops: array[int] = array("I")
        self.op_of: dict[int, int] = {}  # by id of facts: index into ops
        self.attributes: dict[Any, Any] = {}  # by target; bodies and hidden weights too
        self.modules: dict[str, ModuleFacts] = {}
        self.module_args: dict[str, list[int]] = {}
        self.of_storage: dict[int, int] = {}  # a value of each storage
        self.bodies: dict[Node, ModuleFacts] = {}  # get_attr of a graph that is called
        self.called: dict[int, list[ModuleFacts]] = {}  # by node id: the graphs that it calls
        self.busy: dict[int, str] = {}  # by node id: why it is no pure operator
        self.special: list[int] = []  # node ids to look at for effects
        self.sequences: list[int] = []  # node ids of tuples of numbers
        self.numbers: set[int] = set()  # their values
        self.forced: dict[int, str] = {}  # node ids that stay on the host, and why
        self.tuple_inputs: set[int] = set()

    # ---- values ----

    def add_value(self, name: str, kind: int, type_id: int, storage: int = NONE) -> int:
        value = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.value_types.append(type_id)
        self.value_storages.append(storage)
        return value

    def add_weight(self, name: str, tensor: torch.Tensor) -> int:
        storage = self.storage(tensor)
        value = self.add_value(name, TENSOR, self.types.of_tensor(tensor), storage)
        self.of_storage.setdefault(storage, value)
        return value

    def see_device(self, path: str, tensor: torch.Tensor) -> None:
        if tensor.device.type == "meta" and self.out.without_bytes is None:
            self.out.without_bytes = path

    def storage(self, tensor: torch.Tensor) -> int:
        """Tensors that share memory share a storage."""
        try:
            memory = tensor.untyped_storage()
            key, size = memory._cdata, memory.nbytes()
        except (NotImplementedError, RuntimeError):  # sparse, opaque
            key, size = ("tensor", id(tensor)), tensor.numel() * tensor.element_size()
        found = self.storage_of.get(key)
        if found is None:
            found = self.storage_of[key] = len(self.storage_bytes)
            self.storage_bytes.append(size)
        return found

    # ---- nodes ----

    def walk(self) -> None:
        """Values, nodes, arguments, kinds, types."""
        ids, args, known = self.ids, self.args, self.known
        nodes, kind_of = self.out.nodes, self.types.of_meta
        odd = False  # some argument is no value
        for node in self.gm.graph.nodes:
            op = node.op
            if op == "get_attr":
                odd |= self.see_attribute(node)
                continue
            if op == "placeholder":
                self.see_input(node)
                continue
            if op == "output":
                self.see_output(node)
                continue
            key = (op, node.target)
            facts = known.get(key)
            if facts is None:
                facts = self.learn(node)
            at = len(nodes)
            nodes.append(node)
            self.facts.append(facts)
            self.node_ops.append(self.op_of[id(facts)])
            row = [ids[a] for a in node._input_nodes]
            if odd and NONE in row:
                row = self.take_bodies(node, row)
            if op == "call_module":
                row += self.module_args[node.target]
            args.extend(row)
            self.arg_rows.append(len(args))
            kind, type_id = kind_of(node.meta)
            flags = 0
            if kind != TENSOR or facts.getitem:
                kind, flags = self.see_odd(node, facts, kind, row)
            value = ids[node] = len(self.names)
            self.names.append(node.name)
            self.kinds.append(kind)
            self.value_types.append(type_id)
            self.value_storages.append(NONE)
            self.outs.append(value)
            self.out.flags.append(flags)
            if facts.special:
                self.special.append(at)

    def learn(self, node: Node) -> Facts:
        """Facts of a target that is met for the first time."""
        target = node.target
        if node.op == "call_function":
            facts = _effects.function_facts(target)
        elif node.op == "call_method":
            facts = _effects.method_facts(target)
        else:
            facts = Facts(target, target)
            facts.special = True
            self.see_module(target)
        self.known[node.op, target] = facts
        self.op_of[id(facts)] = self.ops.setdefault(facts.name, len(self.ops))
        return facts

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
            self.see_device(name, tensor)
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

    def see_attribute(self, node: Node) -> bool:
        """A weight; True: it is no tensor."""
        target = node.target
        found = self.attributes.get(target, self)
        if found is self:
            try:
                found = operator.attrgetter(target)(self.gm)
            except AttributeError:
                raise ModelError(f"node {node.name} names {target}, which the module does not "
                                 "have: add it", node=node.name) from None
            self.attributes[target] = found
        if isinstance(found, torch.Tensor):
            self.see_device(target, found)
            self.ids[node] = self.add_weight(node.name, found)
            return False
        self.ids[node] = NONE
        if isinstance(found, torch.nn.Module):
            key = ("body", target)
            if key not in self.attributes:
                self.attributes[key] = module_facts(found, target)
            self.bodies[node] = self.attributes[key]
        return True

    def see_input(self, node: Node) -> None:
        kind, type_id = self.types.of_meta(node.meta)
        if kind == Types.UNKNOWN:
            kind = LIST if _effects.takes_several(node) else TENSOR
        kind = min(kind, LIST)
        value = self.ids[node] = self.add_value(node.name, kind, type_id)
        self.inputs.append(value)
        if kind == LIST:
            self.tuple_inputs.add(value)

    def see_output(self, node: Node) -> None:
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
