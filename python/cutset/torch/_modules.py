"""What calling a module does: its weights, its state, its random draws.

A module with everything in it is one node. One in training mode that has buffers of its own (batch
norm) writes them; dropout in training mode draws; hooks may do anything. A GraphModule, as a child
or as the body of a higher-order operator, does what its operators do; where they write what is not
born inside, any of its inputs may be meant.
"""
from __future__ import annotations

import operator

import torch
from torch.fx import GraphModule, Node

from ._effects import Facts, draws, function_facts, method_facts, viewed, written


class ModuleFacts:
    """What calling a module does: `weights` are (name, tensor), its own and its children's."""

    __slots__ = ("weights", "effect", "random", "inplace", "views", "stateful", "stored")

    def __init__(self) -> None:
        self.weights: list[tuple[str, torch.Tensor]] = []
        self.effect = False
        self.random = False
        self.inplace = False  # writes its inputs
        self.views = True  # may return them
        self.stateful = False  # writes some of its weights:
        self.stored: list[torch.Tensor] = []


_PASSING = (torch.nn.Identity, torch.nn.Flatten, torch.nn.Unflatten, torch.nn.PixelShuffle,
            torch.nn.PixelUnshuffle, torch.nn.ChannelShuffle, torch.nn.Sequential,
            torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.modules.dropout._DropoutNd)
_DROPS = torch.nn.modules.dropout._DropoutNd


def module_facts(module: torch.nn.Module, name: str) -> ModuleFacts:
    """Of one module with everything in it."""
    facts = ModuleFacts()
    facts.views = (not type(module).__module__.startswith("torch.nn.modules.")
                   or isinstance(module, _PASSING) or _is_hooked(module))
    for path, inner in module.named_modules(prefix=name):
        _add_weights(facts, path, inner)
        facts.effect |= _is_hooked(inner) or bool(getattr(inner, "_is_impure", False))
        facts.inplace |= bool(getattr(inner, "inplace", False))
        if isinstance(inner, GraphModule):
            passes = _add_body(facts, path, inner)
            if inner is module:
                facts.views = passes or _is_hooked(inner)
        if inner.training or hasattr(inner, "observer_enabled"):
            _add_training(facts, inner)
    facts.effect |= facts.stateful
    facts.views |= facts.inplace
    return facts


def _is_hooked(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _add_weights(facts: ModuleFacts, path: str, module: torch.nn.Module) -> None:
    held = (*module._parameters.items(), *module._buffers.items(),
            *((k, v) for k, v in vars(module).items() if isinstance(v, torch.Tensor)))
    facts.weights += [(f"{path}.{key}", t) for key, t in held if t is not None]


def _add_training(facts: ModuleFacts, module: torch.nn.Module) -> None:
    norm = isinstance(module, torch.nn.modules.batchnorm._NormBase)
    buffers = [b for b in module._buffers.values() if b is not None]
    if buffers and (not norm or module.track_running_stats) and not isinstance(module, GraphModule):
        facts.stateful = True
        facts.stored += buffers
    if isinstance(module, _DROPS):
        facts.random |= module.p > 0
    elif isinstance(module, (torch.nn.RNNBase, torch.nn.MultiheadAttention)):
        facts.random |= module.dropout > 0
    elif isinstance(module, torch.nn.RReLU):
        facts.random = True
    elif type(module).__name__.startswith("FractionalMaxPool"):
        facts.random = True


def _add_body(facts: ModuleFacts, path: str, body: GraphModule) -> bool:
    """A graph that is called as a whole; may it return its inputs or weights, or views of them?"""
    outer: set[Node] = set()  # what may share memory with its inputs and weights
    methods: dict[str, Facts] = {}
    for node in body.graph.nodes:
        if node.op == "output":
            return not outer.isdisjoint(node._input_nodes)
        if node.op == "get_attr":
            _add_attribute(facts, path, body, node)
        if node.op not in ("call_function", "call_method"):
            outer.add(node)
            continue
        inner = function_facts(node.target) if node.op == "call_function" else (
            methods.get(node.target) or methods.setdefault(node.target, method_facts(node.target)))
        if not outer.isdisjoint(viewed(inner, node)):
            outer.add(node)
        if inner.special:
            facts.effect |= inner.effect
            facts.random |= draws(inner, node)
            facts.inplace |= not outer.isdisjoint(written(inner, node))
    return True


def _add_attribute(facts: ModuleFacts, path: str, body: GraphModule, node: Node) -> None:
    """A tensor that hangs below no registered name."""
    try:
        value = operator.attrgetter(node.target)(body)
    except AttributeError:
        return
    if isinstance(value, torch.Tensor) and not any(value is t for _, t in facts.weights):
        facts.weights.append((f"{path}.{node.target}", value))
