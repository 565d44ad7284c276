"""The arrays of a graph on their way into the library: one call."""
from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

from .._lib import NONE, Call, ffi, lib
from ._codes import OPTION_WORDS
from ._decide import find_groups
from ._walk import Walk


def build(w: Walk) -> None:
    """Makes `w.out.model`. The arrays are lent for the call, the library copies them."""
    out = w.out
    groups, soft = find_groups(w)
    graph = ffi.new("cutset_graph *")
    keep: list[Any] = []

    def lend(field_name: str, data: Any, kind: str = "uint32_t[]") -> None:
        if len(data):
            data = array("I", data) if isinstance(data, list) else data
            at = ffi.from_buffer(kind, data)
            keep.append((at, data))
            setattr(graph, field_name, at)

    def lend_names(field_name: str, names: Iterable[str]) -> None:
        lend(field_name, "\0".join(names).encode() + b"\0", "char[]")

    graph.n_values, graph.n_nodes = len(w.names), len(out.nodes)
    graph.n_types, graph.n_storages = len(w.types.texts), len(w.storage_bytes)
    graph.n_inputs, graph.n_outputs = len(w.inputs), len(w.outputs)
    graph.n_ops, graph.n_groups, graph.n_soft_groups = len(w.ops), len(groups), soft
    graph.n_writes, graph.n_aliases = len(out.writes), len(out.aliases)
    graph.n_order = len(out.order)
    lend_names("value_names", w.names)
    lend("value_kinds", w.kinds, "uint8_t[]")
    lend("value_types", w.value_types)
    lend("value_storages", w.value_storages)
    lend_names("types", w.types.texts)
    lend("storage_bytes", w.storage_bytes, "int64_t[]")
    lend("inputs", w.inputs)
    lend("outputs", w.outputs)
    lend_names("ops", w.ops)
    lend("node_ops", w.node_ops)
    lend("node_flags", out.flags)
    lend("arg_rows", w.arg_rows)
    lend("args", w.args)
    lend("out_rows", array("I", range(len(out.nodes) + 1)))
    lend("outs", w.outs)
    for name, pairs in (("writes", out.writes), ("aliases", out.aliases),
                        ("order", out.order)):
        lend(name, array("I", [v for pair in pairs for v in pair]))
    rows = array("I", [0])
    members: array[int] = array("I")
    for group in groups:
        members.extend(group)
        rows.append(len(members))
    lend("group_rows", rows)
    lend("group_nodes", members)
    lend("allow", out.allow)
    reasons: dict[str, int] = {}
    of_node = array("I", [NONE]) * len(out.nodes)
    for at, why in out.reasons.items():
        of_node[at] = reasons.setdefault(_one_line(why), len(reasons))
    graph.n_reasons = len(reasons)
    lend_names("reasons", reasons)
    lend("node_reasons", of_node)
    made = ffi.new("cutset_model **")
    call = Call(words=OPTION_WORDS)
    call.check(lib.cutset_model_build(made, graph, call.err))
    out.model = ffi.gc(made[0], lib.cutset_model_free)


def _one_line(why: str) -> str:
    return " ".join(why.replace("\0", " ").split())
