"""Random TorchScript programs as Python source: views, writes, containers, branches, loops, state.

A program is a module whose forward takes tensors `a`, `b` of 4 x 4 and a list of such tensors, and
gives back a tensor, or a tuple with containers. Values stay small: every step that could grow one
damps it. torch.jit.script reads the source from a file.
"""
import importlib.util
import os
import random

HEAD = '''"""Made by script_programs.py"""
from typing import Dict, List, Optional, Tuple
import torch
import torch.nn.functional as F


class Program(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)
        self.register_buffer("buf", torch.ones(4, 4))
        self.register_buffer("other", torch.full((4, 4), 0.5))
        self.h = torch.zeros(4, 4)
        self.count = 0
        self.scale = 0.5

    def forward(self, a: torch.Tensor, b: torch.Tensor, given: List[torch.Tensor]):
        items: List[torch.Tensor] = [a * 0.5]
        named: Dict[str, torch.Tensor] = {"k": b.sin()}
'''

PURE = ("torch.relu({x})", "torch.sin({x})", "torch.tanh({x} + {y})", "{x} * 0.5 + {y} * 0.25",
        "torch.mm({x}, {y}).tanh()", "self.fc({x}).sin()", "({x} - {y}).cos()", "{x}.clone()",
        "torch.cat([{x}, {y}], 0)[2:6].sin()", "({x} + self.buf).sin()", "({x} * self.scale)",
        "F.log_softmax({x}, {n})", "{x}.size(0) * {x} * 0.1", "{x}.sum({n}).expand(4, 4).clone()",
        "torch.stack([{x}, {y}]).mean(0)", "{x}.view(-1, {x}.size(1)).cos()",
        "torch.where({x} > {y}, {x}, {y})", "torch.full([4, 4], 0.25)", "torch.zeros([4, 4])",
        "({x} + self.other).cos()")
VIEWS = ("{x}.t()", "{x}.view(4, 4)", "{x}.reshape(2, 8).view(4, 4)", "{x}.transpose(0, 1)",
         "{x}.contiguous()", "{x}.to(torch.float32)", "{x}[0:4]", "{x}.detach()")
WRITES = ("{x}.add_({y}.sin() * 0.1)", "{x}.mul_(0.5)", "{x}[{n}].add_(0.25)",
          "{x}.t()[1].mul_(0.5)", "{x}.copy_({y}.sin())", "{x}[{n}, 1:3].zero_()",
          "self.buf.add_({x}.detach().sin() * 0.1)",
          "self.buf.mul_(0.5)", "self.h = {x}.detach().sin()", "torch.sin({x}, out={x})",
          "F.relu({x}, inplace=True)")
CONTAINERS = ("items.append({x})", "named['{k}'] = {x}", "given.append({x})", "items[0] = {x}",
              "named['k'].mul_(0.5)", "items[-1].add_(0.125)", "items.extend([{x}, {y}])",
              "items.insert(0, {x})", "given[0].mul_(0.5)", "if len(items) > 3: items.pop()",
              "nested.append(items)", "nested[0].append({x})", "fresh.append({x})",
              "fresh = [{x}]", "nested.append(fresh)",
              "fresh = torch.jit.annotate(List[torch.Tensor], [])")
READS = ("items[-1].sin()", "named['k']", "items[0]", "given[0].cos()",
         "torch.stack(items).mean(0)",
         "self.h + {x} * 0.5", "self.buf.t()", "nested[0][0]", "torch.stack(given).sum(0).sin()",
         "named['k'] * len(items) * 0.1", "torch.stack(fresh + items).mean(0)", "{x} * len(fresh)")
RANDOM = ("{x} * torch.rand_like({x})", "self.drop({x})", "F.dropout({x}, 0.5, True) * 0.5",
          "torch.randn([4, 4]) * 0.1 + {x}")
RETURNS = ("{v}", "({v}, {w})", "({v}, items, named)", "({v}, {w}.size(0), named)", "[{v}, {w}]",
           "{{'v': {v}, 'w': {w}}}", "({v}, (items, {w}), nested[0])", "(drawn, {v})")


class Writer:
    """One program from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.names = ["a", "b"]
        self.count = 0
        self.lines: list[str] = []

    def fill(self, text: str) -> str:
        pick = self.rng.choice
        return text.format(x=pick(self.names), y=pick(self.names), v=pick(self.names),
                           w=pick(self.names), n=self.rng.randrange(2), k=pick("kmn"))

    def simple(self, pad: str) -> None:
        """One statement that makes no name."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            self.lines.append(pad + self.fill(rng.choice(WRITES)))
        elif kind < 0.5:
            self.lines.append(pad + self.fill(rng.choice(CONTAINERS)))
        else:
            name = rng.choice(self.names[2:] or ["a"])
            self.assign(pad, name)

    def assign(self, pad: str, name: str) -> None:
        """A random draw is always needed: TorchScript drops others, or only in some runs."""
        group = self.rng.choice((PURE, PURE, VIEWS, READS, RANDOM))
        text = self.fill(self.rng.choice(group))
        if group is RANDOM:
            self.lines.append(pad + f"drawn = drawn * 0.5 + {text}")
            text = "drawn.sin()"
        self.lines.append(pad + f"{name} = {text}")

    def body(self, pad: str, depth: int, n: int) -> None:
        for _ in range(n):
            kind = self.rng.random()
            if depth and kind < 0.15:
                self.branch(pad, depth)
            elif depth and kind < 0.25:
                self.loop(pad, depth)
            else:
                self.simple(pad)

    def branch(self, pad: str, depth: int) -> None:
        test = self.rng.choice(("bool({x}.sum() > 0)", "bool({x}[0, 0] > {y}[0, 0])",
                                "len(items) > 2", "self.training", "{x}.dim() == 2",
                                "'{k}' in named"))
        self.lines.append(pad + f"if {self.fill(test)}:")
        self.body(pad + "    ", depth - 1, self.rng.randrange(1, 4))
        if self.rng.random() < 0.6:
            self.lines.append(pad + "else:")
            self.body(pad + "    ", depth - 1, self.rng.randrange(1, 4))

    def loop(self, pad: str, depth: int) -> None:
        text = self.rng.choice(("for i in range(2):", "for t in items[0:2]:",
                                "for i in range(len(items)):"))
        self.lines.append(pad + text)
        self.body(pad + "    ", 0, self.rng.randrange(1, 3))

    def source(self) -> str:
        rng, pad = self.rng, " " * 8
        self.lines.append(pad + "nested: List[List[torch.Tensor]] = [items]")
        self.lines.append(pad + "fresh: List[torch.Tensor] = []")
        self.lines.append(pad + "drawn = torch.zeros(4, 4)")
        for _ in range(rng.randrange(4, 14)):
            kind = rng.random()
            if kind < 0.5:
                name = f"v{self.count}"
                self.count += 1
                self.assign(pad, name)
                self.names.append(name)
            else:
                self.body(pad, 2, 1)
        if rng.random() < 0.1:
            self.lines.append(pad + self.fill("if bool({x}.mean() > 0.2):"))
            self.lines.append(pad + "    self.count = self.count + 1")
        self.lines.append(pad + "self.h = self.h + drawn.detach()")
        self.lines.append(pad + "return " + self.fill(rng.choice(RETURNS)))
        return HEAD + "\n".join(self.lines) + "\n"


def load(seed: int, folder: str):
    """The module class of a seed; its source stays in `folder`."""
    name = f"script_program_{seed}"
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(Writer(seed).source())
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Program
