"""What an operator does to memory: writes, views, random draws, side effects.

Facts are found once for each distinct target: from operator schemas (`alias_info`, tags); for
methods and Python functions from the ATen operators of their name; for operators whose schema is
silent (batch norm in training mode, dropout outside it) from a short list. What depends on
arguments (`training`, `inplace`, `out`, `dropout_p`) is looked up at the node. Where nothing is
known of a callable, it is taken to return any of its inputs and to write none.
"""
from __future__ import annotations

import builtins
import inspect
import operator
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import _get_qualified_name

_Overload = torch._ops.OpOverload
_Packet = torch._ops.OpOverloadPacket
_HigherOrder = torch._ops.HigherOrderOperator
_SEEDED = torch.Tag.nondeterministic_seeded
_DYNAMIC = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
_MAYBE_ALIAS = getattr(torch.Tag, "maybe_aliasing_or_mutating", None)

# They change how later operators compute: nothing moves across them.
_BARRIERS = frozenset({
    "_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_enter_inference_mode",
    "_exit_inference_mode", "_enter_dual_level", "_exit_dual_level", "_jvp_increment_nesting",
    "_jvp_decrement_nesting", "set_grad_enabled", "set_default_dtype", "set_flush_denormal"})
# They may return their input, or a view of it, and their schemas do not say so.
_MAY_RETURN_INPUT = frozenset({
    "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout",
    "dropout1d", "dropout2d", "dropout3d",
    "type_as", "sum_to_size", "broadcast_tensors", "meshgrid", "atleast_1d", "atleast_2d",
    "atleast_3d", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "cartesian_prod",
    "einsum", "conj_physical", "resolve_conj", "resolve_neg", "to_dense", "pad", "rrelu",
    "_autocast_to_full_precision", "_autocast_to_reduced_precision", "lift", "block_diag",
    "combinations", "tensordot", "rot90", "linalg_matrix_power", "matrix_power", "set_"})
# Functions of torch.nn.functional without an operator of their name, that return new memory ...
_FRESH_FUNCTIONS = frozenset({
    "interpolate", "upsample", "normalize", "cross_entropy", "one_hot", "affine_grid", "unfold",
    "fold", "multi_head_attention_forward", "gumbel_softmax", "lp_pool1d", "lp_pool2d",
    "softmin", "softsign", "tanhshrink", "local_response_norm", "embedding_bag"})
_SEEDED_FUNCTIONS = frozenset({  # ... and that draw random numbers
    "multi_head_attention_forward", "gumbel_softmax", "fractional_max_pool2d",
    "fractional_max_pool3d", "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d_with_indices"})
_FIXED_INITS = frozenset({"constant_", "ones_", "zeros_", "eye_", "dirac_", "calculate_gain"})
# Methods that ATen has no operator for, and that may return their tensor.
_CASTS = frozenset({
    "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat",
    "cdouble", "chalf", "cpu", "cuda", "xpu", "type", "to", "type_as", "numpy", "data"})
_SCALAR_METHODS = frozenset({
    "dim", "ndimension", "numel", "nelement", "element_size", "item", "is_contiguous", "get_device",
    "storage_offset", "tolist", "is_floating_point", "is_complex", "__len__", "__bool__",
    "__int__", "__float__", "is_cuda", "data_ptr", "untyped_storage"})
_TUPLE_METHODS = frozenset({"size", "stride"})
_EFFECT_METHODS = frozenset({"backward", "register_hook", "retain_grad"})
_VIEW_ATTRIBUTES = frozenset({"data", "T", "H", "mT", "mH", "real", "imag", "grad"})
# They change what autograd knows of a tensor, not its memory. torch.export puts `detach_` after
# every constant that a model makes.
_AUTOGRAD_ONLY = frozenset({"detach_", "requires_grad_"})
_INPLACE_OPERATORS = frozenset({
    "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior",
    "ixor", "ilshift", "irshift", "iconcat"})
_BATCH_NORMS = frozenset({
    "batch_norm", "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm",
    "miopen_batch_norm", "_batch_norm_impl_index", "instance_norm", "batch_norm_update_stats"})
_SEEDS = frozenset({"manual_seed", "seed", "set_rng_state"})


class Facts:
    """What is known of a target. `writes`, `views`: arguments, as (position, name)."""

    __slots__ = ("name", "packet", "short", "where", "writes", "views", "views_all", "effect",
                 "barrier", "seeded", "gates", "norm", "inplace", "outs", "dynamic", "listed",
                 "scalar", "special", "getitem", "index")

    def __init__(self, name: str, short: str = "") -> None:
        self.name = name  # as plans spell it
        self.packet: str | None = None  # the name of its overload packet
        self.short = short or name
        self.where: dict[str, int] = {}  # positions of named arguments
        self.writes: tuple[tuple[int, str], ...] = ()
        self.views: tuple[tuple[int, str], ...] = ()
        self.views_all = False  # its result may share memory with any input
        self.effect = False
        self.barrier = False
        self.seeded = False
        self.gates: tuple[str, ...] = ()  # arguments that turn the randomness off
        self.norm = False  # writes running statistics when training
        self.inplace = False  # has an argument of that name
        self.outs = False  # may be given out=
        self.dynamic = False  # its output's shape or value depends on data
        self.listed = False  # returns a tuple or list
        self.scalar = False  # returns no tensor
        self.getitem = False
        self.index = False  # data dependent only with a mask
        self.special = False  # look at each node

    def settle(self) -> Facts:
        self.special = bool(self.writes or self.effect or self.seeded or self.norm or self.inplace
                            or self.outs)
        return self

    def argument(self, node: Node, name: str, otherwise: Any = None) -> Any:
        """What `node` passes for an argument of that name."""
        if name in node.kwargs:
            return node.kwargs[name]
        at = self.where.get(name)
        return node.args[at] if at is not None and at < len(node.args) else otherwise


def nodes_in(argument: Any) -> Iterator[Node]:
    """The nodes in an argument: itself, or in its lists and dicts."""
    todo = [argument]
    while todo:
        item = todo.pop()
        if isinstance(item, Node):
            yield item
        elif isinstance(item, (list, tuple)):
            todo.extend(reversed(item))
        elif isinstance(item, dict):
            todo.extend(reversed(list(item.values())))


_SPELT = {"self": "input", "input": "self"}  # schemas say self, torch's functions input


def _at(node: Node, place: tuple[int, str]) -> Any:
    position, name = place
    if 0 <= position < len(node.args):
        return node.args[position]
    return node.kwargs.get(name, node.kwargs.get(_SPELT.get(name, name)))


# ---- schemas ----

def _read_schema(facts: Facts, overload: Any, out: bool) -> None:
    """Adds what one overload does. `out`: this is the variant that is given out=."""
    schema = overload._schema
    positional = 0
    for argument in schema.arguments:
        at = -1
        if not argument.kwarg_only:
            at = positional
            positional += 1
            facts.where.setdefault(argument.name, at)
        info = argument.alias_info
        if info is None:
            continue
        if info.is_write and (out or argument.name != "out"):
            facts.writes += ((at, argument.name),)
        # `(a)` is shared with a result; `(a!)` of an out= is returned
        if any(_shares(info, result) for result in schema.returns):
            facts.views += ((at, argument.name),)
    tags = overload.tags
    facts.seeded |= _SEEDED in tags
    # a batch norm mutates, in training, and never returns its input
    facts.views_all |= _MAYBE_ALIAS in tags and "batch_norm" not in schema.name
    facts.dynamic |= any(tag in tags for tag in _DYNAMIC)


def _shares(info: Any, result: Any) -> bool:
    other = result.alias_info
    if other is None:
        return False
    # Tensor(a)[]: the set of a list says nothing, that it is there is enough
    return not other.before_set or not info.before_set or bool(other.before_set & info.before_set)


def _returns(overload: Any) -> str:
    """"tensor", "list" or "scalar"."""
    returns = overload._schema.returns
    if len(returns) != 1:
        return "list" if returns else "scalar"
    kind = str(returns[0].type)
    if "Tensor" not in kind:
        return "scalar" if "List" not in kind else "list"
    return "list" if "List" in kind else "tensor"


def _gates(facts: Facts) -> None:
    """Randomness that an argument turns off."""
    names = [n for n in ("train", "training", "dropout_p") if n in facts.where]
    if "dropout" in facts.short and "p" in facts.where:
        names.append("p")
    facts.gates = tuple(names)


def _overload_facts(target: Any) -> Facts:
    short = target._schema.name.rpartition("::")[2]
    facts = Facts(_get_qualified_name(target), short)
    facts.packet = _get_qualified_name(target.overloadpacket)
    _read_schema(facts, target, True)
    if short in _AUTOGRAD_ONLY:
        facts.writes = ()
    facts.norm = short in _BATCH_NORMS and not facts.writes
    facts.views_all |= short in _MAY_RETURN_INPUT
    kind = _returns(target)
    facts.listed = kind == "list"
    facts.scalar = kind == "scalar"
    facts.index = short in ("index", "index_put", "index_put_")
    _gates(facts)
    return facts


def _aten(name: str) -> Any:
    """The ATen operators of that name, or None."""
    if not name or name.startswith("__"):
        return None
    packet = getattr(torch.ops.aten, name, None)
    return packet if isinstance(packet, _Packet) else None


def _union(facts: Facts, packet: Any, out: bool) -> bool:
    """Adds what the overloads of a packet may do; False: it has none. Mixed results: a tensor, the
    readers tell (see `guess_kind`)."""
    kinds = set()
    seeded, dynamic, views_all = [], [], []
    for name in packet.overloads():
        overload = getattr(packet, name)
        given = any(a.name == "out" or (a.alias_info and a.alias_info.is_write and a.kwarg_only)
                    for a in overload._schema.arguments)
        if given != out and not name.startswith("default"):
            continue
        part = Facts(facts.name, facts.short)
        _read_schema(part, overload, out)
        for key, at in part.where.items():
            facts.where.setdefault(key, at)
        facts.writes += tuple(w for w in part.writes if w not in facts.writes)
        facts.views += tuple(v for v in part.views if v not in facts.views)
        seeded.append(part.seeded)
        dynamic.append(part.dynamic)
        views_all.append(part.views_all)
        kinds.add(_returns(overload))
    facts.seeded |= any(seeded)
    facts.dynamic |= bool(dynamic) and all(dynamic)
    facts.views_all |= any(views_all)
    facts.listed = kinds == {"list"}
    facts.scalar = kinds == {"scalar"}
    return bool(kinds)


# ---- functions ----

def _signature(facts: Facts, target: Any) -> None:
    """Positions of a Python function's own arguments: they may differ from the operator's."""
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return
    facts.where = {name: at for at, name in enumerate(names)}


def _python_facts(target: Any) -> Facts:
    """A Python function: torch.relu, torch.nn.functional.relu, operator.add, a user's own."""
    try:
        name = _get_qualified_name(target)
    except Exception:
        name = f"{getattr(target, '__module__', '')}.{getattr(target, '__name__', repr(target))}"
    short = getattr(target, "__name__", "") or ""
    facts = Facts(name, short)
    module = getattr(target, "__module__", None) or ""
    if module in ("_operator", "operator"):
        _operator_facts(facts, target)
        return facts
    if module == "math" or target in _BUILTIN_SCALARS:
        facts.scalar = True
        return facts
    if target is builtins.getattr:
        facts.short = "getattr"
        return facts
    if target is builtins.setattr:
        facts.effect = True
        return facts
    of_torch = (module.partition(".")[0] == "torch" or isinstance(target, _TORCH_BUILTINS))
    packet = _aten(short) if of_torch else None
    known = packet is not None and _union(facts, packet, False)
    facts.views_all |= not known and not (of_torch and short in _FRESH_FUNCTIONS)
    if not isinstance(target, _TORCH_BUILTINS):
        _signature(facts, target)  # its own arguments may stand elsewhere than the operator's
        facts.writes, facts.views = (), tuple(_own_place(facts, v) for v in facts.views)
        facts.seeded |= of_torch and short in _SEEDED_FUNCTIONS
    if short.endswith("_") and not short.endswith("__") and of_torch and not facts.writes:
        facts.writes = facts.views = ((0, next(iter(facts.where), "input")),)
    facts.seeded |= module == "torch.nn.init" and short not in _FIXED_INITS
    facts.norm = of_torch and short in _BATCH_NORMS
    facts.inplace = "inplace" in facts.where
    facts.outs = True
    facts.views_all |= short in _MAY_RETURN_INPUT
    if of_torch and short in _SEEDS:
        facts.effect = facts.seeded = True
    facts.index = short in ("index", "index_put", "index_put_")
    if short.startswith("sym_") and of_torch:
        facts.scalar = True
    _gates(facts)
    return facts


def _own_place(facts: Facts, place: tuple[int, str]) -> tuple[int, str]:
    """Where a Python function has the argument that its operator has there, by name if it can."""
    at, name = place
    own = list(facts.where)
    if name in facts.where:
        return facts.where[name], name
    return (at, own[at]) if 0 <= at < len(own) else place


_TORCH_BUILTINS = (type(torch.relu), type(torch.Tensor.add))
_BUILTIN_SCALARS: tuple[Any, ...] = (len, int, float, bool, str, isinstance, range, type)


def _operator_facts(facts: Facts, target: Any) -> None:
    short = facts.short
    if target is operator.getitem:
        facts.getitem = True
        facts.views = ((0, "a"),)
    elif short in ("setitem", "delitem"):
        facts.writes = ((0, "a"),)
        facts.scalar = True
    elif short in _INPLACE_OPERATORS:
        facts.writes = facts.views = ((0, "a"),)
    elif short in ("pos",):
        facts.views = ((0, "a"),)


def _higher_order_facts(target: Any) -> Facts:
    """Their bodies are looked at where they are called (`Walk.take_bodies`)."""
    name = target.name() if callable(getattr(target, "name", None)) else str(target)
    facts = Facts(f"torch.ops.higher_order.{name}", name)
    functional = name in ("auto_functionalized", "auto_functionalized_v2",
                          "triton_kernel_wrapper_functional", "flex_attention")
    facts.views_all = not functional
    facts.listed = name in ("cond", "while_loop", "map_impl", "scan", "associative_scan",
                            "auto_functionalized", "auto_functionalized_v2",
                            "wrap_with_set_grad_enabled", "wrap_with_autocast",
                            "triton_kernel_wrapper_functional", "hints_wrapper")
    facts.effect = name in ("with_effects", "call_torchbind", "print")
    facts.seeded = name in ("run_and_save_rng_state", "run_with_rng_state",
                            "graphsafe_run_with_rng_state")
    if name == "triton_kernel_wrapper_mutation":
        facts.writes = ((-1, "kwargs"),)
    return facts


def _is_effectful(target: Any) -> bool:
    """As torch.fx has it for dead code; random draws and writes are told by other facts."""
    if target is operator.setitem:
        return False
    from torch.fx.node import _side_effectful_functions
    if target in _side_effectful_functions:
        return True
    try:
        from torch._higher_order_ops.effects import _get_effect
        return (isinstance(target, (_Overload, _HigherOrder)) and _get_effect(target) is not None)
    except ImportError:
        return False


def _is_drawn(target: Any) -> bool:
    try:
        from torch._library.utils import _RANDOM_FUNCTIONS
    except ImportError:
        return False
    return target in _RANDOM_FUNCTIONS


_OVERLOADS: dict[Any, Facts] = {}  # an overload's schema never changes


def function_facts(target: Any) -> Facts:
    """Facts of the target of a call_function."""
    facts = _OVERLOADS.get(target) if isinstance(target, _Overload) else None
    if facts is None:
        if isinstance(target, _Overload):
            facts = _OVERLOADS[target] = _overload_facts(target)
        elif isinstance(target, _Packet):
            facts = Facts(_get_qualified_name(target), getattr(target, "__name__", ""))
            _union(facts, target, False)
            facts.packet = facts.name
            facts.norm = facts.short in _BATCH_NORMS and not facts.writes
            facts.views_all |= facts.short in _MAY_RETURN_INPUT
            facts.outs = True
            _gates(facts)
        elif isinstance(target, _HigherOrder):
            facts = _higher_order_facts(target)
        else:
            facts = _python_facts(target)
            facts.seeded |= _is_drawn(target)
        facts.barrier = facts.short in _BARRIERS
    facts.effect |= facts.barrier or _is_effectful(target)
    return facts.settle()


def method_facts(name: str) -> Facts:
    """Facts of the target of a call_method."""
    facts = Facts(name, name)
    first = ((0, "self"),)
    packet = _aten(name)
    known = packet is not None and _union(facts, packet, False)
    if name in _CASTS:
        facts.views, facts.scalar, facts.listed = first, False, False
    elif name in _SCALAR_METHODS:
        facts.scalar, facts.views = True, ()
    elif name in _TUPLE_METHODS:
        facts.scalar, facts.views = False, ()
    elif not known:
        facts.views_all = True
    inplace = name.endswith("_") and not name.endswith("__")
    if inplace or name in ("__setitem__", "__delitem__") or (
            name.startswith("__i") and name.strip("_") in _INPLACE_OPERATORS):
        facts.writes = facts.writes or first
        facts.views = facts.views or first
    if name in _AUTOGRAD_ONLY:
        facts.writes, facts.views = (), first
    facts.effect = name in _EFFECT_METHODS
    facts.views_all |= name in _MAY_RETURN_INPUT
    facts.outs = True
    _gates(facts)
    return facts.settle()


def op_name(node: Node) -> str:
    """As plans spell it."""
    return function_facts(node.target).name if node.op == "call_function" else str(node.target)


# ---- what a node does ----

def draws(facts: Facts, node: Node) -> bool:
    """Does it draw random numbers?"""
    if not facts.seeded:
        return False
    for name in facts.gates:
        value = facts.argument(node, name)
        if name in ("train", "training"):
            if value is False or (value is None and node.op == "call_function"
                                  and name in facts.where and _default(node, name) is False):
                return False
        elif value == 0 or (value is None and name == "dropout_p"):
            return False
    return True


def _default(node: Node, name: str) -> Any:
    target = node.target
    if isinstance(target, _Overload):
        for argument in target._schema.arguments:
            if argument.name == name:
                return argument.default_value if argument.has_default_value() else None
        return None
    try:
        return inspect.signature(target).parameters[name].default  # type: ignore[arg-type]
    except (TypeError, ValueError, KeyError):
        return None


def written(facts: Facts, node: Node) -> list[Node]:
    """The nodes whose memory it writes."""
    found: list[Node] = []
    for place in facts.writes:
        found.extend(nodes_in(node.kwargs if place[1] == "kwargs" else _at(node, place)))
    if facts.norm:
        training = facts.argument(node, "training")
        if training is None:
            training = facts.argument(node, "train")
        if training is None:
            training = facts.argument(node, "use_input_stats", facts.short == "instance_norm")
        if training:
            for name in ("running_mean", "running_var"):
                found.extend(nodes_in(facts.argument(node, name)))
    if facts.inplace and facts.argument(node, "inplace"):
        found.extend(nodes_in(node.args[0] if node.args else node.kwargs.get("input")))
    if facts.outs:
        found.extend(nodes_in(node.kwargs.get("out")))
    return found


def viewed(facts: Facts, node: Node) -> list[Node]:
    """The nodes whose memory its result may share."""
    if facts.short == "getattr" and node.op == "call_function":
        shares = len(node.args) > 1 and node.args[1] in _VIEW_ATTRIBUTES
        return list(nodes_in(node.args[0])) if shares else []
    if facts.views_all:
        return list(node._input_nodes)
    found: list[Node] = []
    for place in facts.views:
        found.extend(nodes_in(_at(node, place)))
    if facts.outs:
        found.extend(nodes_in(node.kwargs.get("out")))
    if facts.inplace and facts.argument(node, "inplace"):
        found.extend(nodes_in(node.args[0] if node.args else None))
    return found


def is_data_dependent(facts: Facts, node: Node) -> bool:
    """Does the shape or the value of its output depend on data (nonzero, item)?"""
    if not facts.dynamic:
        return False
    if not facts.index:
        return True
    indices = facts.argument(node, "indices")
    for item in nodes_in(indices):
        value = item.meta.get("val", item.meta.get("tensor_meta"))
        if getattr(value, "dtype", torch.bool) in (torch.bool, torch.uint8):
            return True
    return False


# ---- kinds of results, where no example says ----

def guess_kind(facts: Facts, node: Node, kind_of: Callable[[Node], str]) -> str:
    """"tensor", "scalar", "tuple" (of scalars) or "list" (of tensors)."""
    if node.op == "call_method" and facts.short in _TUPLE_METHODS:
        return "scalar" if len(node.args) > 1 or node.kwargs else "tuple"
    if facts.short == "getattr" and node.op == "call_function":
        name = node.args[1] if len(node.args) > 1 else ""
        return "tuple" if name == "shape" else "tensor" if name in _VIEW_ATTRIBUTES else "scalar"
    if facts.scalar:
        return "scalar"
    if facts.listed:
        return "list"
    module = getattr(node.target, "__module__", "") if node.op == "call_function" else ""
    if module in ("_operator", "operator") and node._input_nodes and all(
            kind_of(a) != "tensor" for a in node._input_nodes):
        return "tuple" if any(kind_of(a) == "tuple" for a in node._input_nodes) else "scalar"
    if module in ("_operator", "operator") or isinstance(node.target, _Overload):
        return "tensor"
    return "list" if only_unpacked(node) else "tensor"


def only_unpacked(node: Node) -> bool:
    """Is it read by `x[int]` alone, or by a name, which no tensor is?"""
    keys = [u.args[1] if u.target is operator.getitem and u.args[0] is node else None
            for u in node.users if u.op != "output"]
    return any(isinstance(key, str) for key in keys) or (
        bool(keys) and all(type(key) is int for key in keys))


def takes_several(node: Node) -> bool:
    """Is this placeholder without an example a tuple, list or dict? `*args` and `**kwargs` are;
    else its annotation tells; else how it is read: a tensor that is read as `x[0]` alone counts as
    one, which costs engines, where a list taken for a tensor would cross into them."""
    if str(node.target).startswith("*"):
        return True
    if node.type is not None:
        said = typing.get_origin(node.type) or node.type
        if isinstance(said, type):
            return issubclass(said, (tuple, list, dict, set, Sequence, Mapping))
    return only_unpacked(node)
