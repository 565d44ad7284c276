"""A method of a ScriptModule as one graph of its own: calls inlined, attributes told apart.

The graph is a private copy; the module is never changed. The lines of its text are its nodes in the
order of `lines`: a node, then the nodes of its blocks, block by block. `prim::Constant` and
`prim::GetAttr` are no nodes of a plan, but for a GetAttr of an attribute that the graph sets with
`prim::SetAttr`, which is one: it reads what is there at that moment. All others are moved out of
blocks, since they read the same whenever they run; `path_of` names what they read.
Flags of the module that nothing sets (`training`) are constants, as they are when it is read here.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from .._errors import ModelError, UsageError

Path = tuple[str, ...]
CONSTANT, GETATTR, SETATTR = "prim::Constant", "prim::GetAttr", "prim::SetAttr"
UNINITIALIZED = "prim::Uninitialized"
ENTER, EXIT = "prim::Enter", "prim::Exit"
_VAGUE = ("_backward", "attention")  # in the kinds of operators with undefined results
_PASSES = ("prim::TupleUnpack", "prim::TupleIndex", "prim::ListUnpack", "prim::If", "prim::Loop",
           "aten::__getitem__")  # results are what others made


def method_of(module: Any, method: Any) -> torch._C.ScriptMethod:
    """The method to be partitioned; TypeError where `module` is no ScriptModule."""
    if not isinstance(module, torch.jit.ScriptModule):
        hint = ("wrap it in a module" if isinstance(module, torch.jit.ScriptFunction)
                else "use torch.jit.script or torch.jit.trace first")
        raise TypeError(f"a torch.jit.ScriptModule is needed, not {type(module).__name__}: {hint}")
    if not isinstance(method, str) or not module._c._has_method(method):
        raise UsageError(f"method is {method!r}: the module has "
                         f"{', '.join(map(repr, module._c._method_names())) or 'none'}")
    if module._c._get_forward_hooks() or module._c._get_forward_pre_hooks():
        raise UsageError(f"{module.original_name} has scripted hooks, which are no part of the "
                         f"graph of {method}: call them in the method, or remove them")
    return module._c._get_method(method)


def frozen(module: torch.jit.ScriptModule, method: str) -> torch.jit.ScriptModule:
    """A frozen copy: attributes become constants of the graph, with the same storage."""
    if getattr(module, "training", False):
        raise UsageError("freeze=True needs a module in evaluation mode: call module.eval() first")
    for name, value in module.state_dict(keep_vars=True).items():
        if value.is_meta:
            raise on_meta(name)
    kept = [] if method == "forward" else [method]
    return torch.jit.freeze(module, preserved_attrs=kept, optimize_numerics=False)


def on_meta(name: str) -> ModelError:
    """The weight cannot be used."""
    return ModelError(f"weight {name!r} is on the meta device, which holds no values: load it "
                      "first (module.to_empty(device='cpu'), then load_state_dict)", node=name)


def holder(module: torch.jit.ScriptModule, path: Path) -> torch._C.ScriptModule:
    """The submodule that has the attribute at the end of a path."""
    found = module._c
    for name in path[:-1]:
        found = found.getattr(name)
    return found


def walk(block: Any) -> Iterator[torch._C.Node]:
    """The nodes in text order, those of blocks included."""
    stack = [block.nodes()]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        blocks = [inner.nodes() for inner in node.blocks()]
        if blocks:
            stack.extend(reversed(blocks))


def _vague(node: torch._C.Node) -> bool:
    """May results of it be undefined tensors? As src/torch/parse.c has it."""
    return node.outputsSize() > 1 and any(mark in node.kind() for mark in _VAGUE)


def holds_tensor(kind: torch._C.Type) -> bool:
    """Is it Tensor, or Tensor?"""
    if kind.kind() == "OptionalType":
        kind = kind.getElementType()
    return kind.kind() == "TensorType"


class Table(NamedTuple):
    """The names of a graph, in the order of its lines."""

    inputs: list[str]
    nodes: list[tuple[str, ...]]  # kind, name, names of the outputs
    reads: list[tuple[str, Path]]  # of attributes: name, path


class Source:
    """The graph of one method. `module` is what its attributes are read from."""

    def __init__(self, module: torch.jit.ScriptModule, method: str = "forward", *,
                 freeze: bool = False) -> None:
        found = method_of(module, method)
        self.module, self.method = module, method
        if freeze:
            self.module = frozen(module, method)
            found = self.module._c._get_method(method)
        self.schema = found.schema
        self.graph: torch._C.Graph = found.graph.copy()
        torch._C._jit_pass_inline(self.graph)
        if self.graph.findNode("prim::fork"):
            torch._C._jit_pass_inline_fork_wait(self.graph)
        self._apply_autocasts()
        self.flags: dict[Path, bool] = {}  # that nothing sets, as they are now
        self.set_paths: set[Path] = set()  # that are read too
        self.path_of: dict[int, Path] = {}  # by value: modules, and attributes nothing sets
        self._find_paths()
        self._fold()
        self._hoist()
        inputs = list(self.graph.inputs())
        self.inputs = inputs[1:]
        self.outputs = list(self.graph.outputs())
        self.lines = list(walk(self.graph))
        self._vague = any(map(_vague, self.lines))
        self.names: list[str | None] = [None] * len(self.lines)  # of nodes, by line
        self.line_of: dict[str, int] = {}
        self.values: dict[str, torch._C.Value] = {}
        self._name()

    # ---- what TorchScript does before it runs a graph ----

    def _apply_autocasts(self) -> None:
        """Casts in the place of autocast contexts, which take effect within one graph only."""
        ends = [node for kind in (ENTER, EXIT) for node in self.graph.findAllNodes(kind)
                if str(node.input().type()).endswith(".autocast")]
        if ends:
            torch._C._jit_pass_autocast(self.graph)
        for node in ends:
            node.output().replaceAllUsesWith(node.input())
            node.destroy()

    # ---- attributes ----

    def _find_paths(self) -> None:
        """What each GetAttr reads. Attributes that are set, on any object of the type, are left
        out."""
        paths: dict[int, Path] = {next(self.graph.inputs()).unique(): ()}
        slots = {(str(node.inputsAt(0).type()), node.s("name"))
                 for node in self.graph.findAllNodes(SETATTR)}
        for node in self.graph.findAllNodes(GETATTR):
            owner = paths.get(node.input().unique())
            if owner is None:
                continue
            path = (*owner, node.s("name"))
            if (str(node.input().type()), node.s("name")) in slots:
                self.set_paths.add(path)
            else:
                paths[node.output().unique()] = path
        self.path_of = paths

    def _fold(self) -> None:
        """Flags become constants, a prim::If whose condition is one becomes what it runs, and what
        nobody needs goes, as when TorchScript runs the method (a dead dropout draws nothing)."""
        for node in self.graph.findAllNodes(GETATTR):
            path = self.path_of.get(node.output().unique())
            if path is not None and node.output().type().kind() == "BoolType":
                self.flags[path] = self.attribute(path)
                with self.graph.insert_point_guard(node):
                    constant = self.graph.insertConstant(self.flags[path])
                node.output().replaceAllUsesWith(constant)
        torch._C._jit_pass_constant_propagation_immutable_types(self.graph)
        torch._C._jit_pass_dce(self.graph)

    def _hoist(self) -> None:
        """Reads of attributes in blocks go before the line of the graph that holds the block."""
        for line in self.graph.nodes():
            for inner in [inner for block in line.blocks() for inner in walk(block)
                          if inner.kind() == GETATTR]:
                if inner.output().unique() in self.path_of:
                    inner.moveBefore(line)

    # ---- names ----

    def is_node(self, node: torch._C.Node) -> bool:
        """Is it a node of plans?"""
        kind = node.kind()
        return kind != CONSTANT and not (kind == GETATTR
                                         and node.output().unique() in self.path_of)

    def _name(self) -> None:
        for value in self.inputs:
            self.values[value.debugName()] = value
        position = 0
        for line, node in enumerate(self.lines):
            outs = list(node.outputs())
            for value in outs:
                self.values[value.debugName()] = value
            if node.kind() == GETATTR:
                self.line_of[outs[0].debugName()] = line
            if self.is_node(node):
                name = outs[0].debugName() if outs else f"${position}"
                self.names[line] = name
                self.line_of[name] = line
            if node.kind() not in (CONSTANT, GETATTR):
                position += 1

    def kinds(self) -> dict[str, str]:
        """The kind of each node, by name."""
        return {name: node.kind() for node, name in zip(self.lines, self.names) if name is not None}

    def table(self) -> Table:
        """What names mean, by position: a module that is saved and loaded gets other names."""
        nodes = [(node.kind(), name, *(value.debugName() for value in node.outputs()))
                 for node, name in zip(self.lines, self.names) if name is not None]
        reads = [(node.output().debugName(), self.path_of[node.output().unique()])
                 for node in self.lines if node.kind() == GETATTR and not self.is_node(node)]
        return Table([value.debugName() for value in self.inputs], nodes, reads)

    def rename(self, table: Table) -> None:
        """Takes the names of a `table` that was made before the module was saved and loaded."""
        lines = [line for line, name in enumerate(self.names) if name is not None]
        if ([row[0] for row in table.nodes] != [self.lines[line].kind() for line in lines]
                or len(table.inputs) != len(self.inputs)):
            raise ModelError("the module reads differently since it was saved and loaded, so its "
                             "plan does not fit: partition it again")
        reads = {path: self.values[node.output().debugName()] for node in self.lines
                 if (path := self.path_of.get(node.output().unique()
                                              if node.kind() == GETATTR else -1)) is not None}
        self.names, self.line_of = [None] * len(self.lines), {}
        self.values = dict(zip(table.inputs, self.inputs))
        for (_, name, *outs), line in zip(table.nodes, lines):
            self.names[line], self.line_of[name] = name, line
            self.values.update(zip(outs, self.lines[line].outputs()))
        self.values.update((name, reads[path]) for name, path in table.reads if path in reads)

    # ---- values ----

    def key(self, value: torch._C.Value) -> int | Path:
        """One key for all reads of one attribute, else the value's own number."""
        return self.path_of.get(value.unique(), value.unique())

    def attribute(self, path: Path) -> Any:
        """The attribute's value now, or the module for (). Containers come as copies."""
        return holder(self.module, path).getattr(path[-1]) if path else self.module._c

    def may_miss(self, value: torch._C.Value) -> bool:
        """May it be an undefined tensor?"""
        node = value.node()
        return (self._vague and holds_tensor(value.type())
                and (_vague(node) or node.kind() in _PASSES))

    def weights(self) -> Iterator[tuple[int, str, torch.Tensor]]:
        """The tensors that lines read: line, name, tensor."""
        for line, node in enumerate(self.lines):
            if node.kind() not in (CONSTANT, GETATTR) or not holds_tensor(node.output().type()):
                continue
            path = self.path_of.get(node.output().unique())
            value = (node.output().toIValue() if node.kind() == CONSTANT else
                     None if path is None else self.attribute(path))
            if isinstance(value, torch.Tensor):
                yield line, ".".join(path or (node.output().debugName(),)), value

    def check_weights(self) -> None:
        """ModelError where parts could not run: a weight without values."""
        for _, name, value in self.weights():
            if value.is_meta:
                raise on_meta(name)

    # ---- classes ----

    def classes(self, node: torch._C.Node) -> set[str]:
        """Names, qualified and bare, of the classes of modules whose code made the node."""
        module: Any = self.module._c
        names = {self.module.original_name, *_class_names(module)}
        for name, kind in re.findall(r"([^().]+)\(([^()]*)\)", node.getModuleHierarchy()):
            if name != "SELF":
                known = module is not None and module.hasattr(name)
                module = module.getattr(name) if known else None
            names |= {kind} if module is None else _class_names(module)
        return names


def _class_names(module: torch._C.ScriptModule) -> set[str]:
    name = module._type().qualified_name().removeprefix("__torch__.")
    name = re.sub(r"\b___torch_mangle_\d+\.", "", name)
    return {name, name.rpartition(".")[2]}
