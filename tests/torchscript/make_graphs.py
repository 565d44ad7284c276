"""Prints the graphs of tests/torchscript/*.ts, the text that str(torch._C.Graph) gives.

    python tests/torchscript/make_graphs.py           # with torch; rewrites the files beside it

Files ts*.ts are the graphs of Torch-TensorRT's segmentation tests, written as IR and printed by torch;
the others are modules, scripted or traced. Paths in comments are cut to file names.
"""
import re
import warnings
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import torch
from torch import nn

HERE = Path(__file__).parent
CONV = "aten::conv2d({0}, %w{1}, %none, %ones, %zeros, %ones, %one)"
HEAD = """%none : NoneType = prim::Constant()
%one : int = prim::Constant[value=1]()
%zero : int = prim::Constant[value=0]()
%two : int = prim::Constant[value=2]()
%no : bool = prim::Constant[value=0]()
%ones : int[] = prim::ListConstruct(%one, %one)
%zeros : int[] = prim::ListConstruct(%zero, %zero)
"""


def conv(x, w):
    return CONV.format(f"%{x}", w)


IR = {
    "ts1": ("x w1 w2 w3", f"""%0 : Tensor = {conv('x', 1)}
%1 : Tensor = aten::relu(%0)
%2 : Tensor = {conv('1', 2)}
%3 : Tensor = aten::log_sigmoid(%2)
%4 : Tensor = {conv('3', 3)}""", "4"),
    "ts3": ("b c i", """%0 : Tensor = aten::reshape(%b, %ones)
%1 : Tensor = aten::reshape(%c, %ones)
%2 : Tensor = aten::reshape(%b, %ones)
%3 : Tensor = aten::to(%0, %one, %no, %no, %none)
%4 : int[] = aten::size(%b)
%5 : int[] = aten::add(%4, %ones)
%6 : Tensor = aten::index_add_(%2, %zero, %i, %1, %one)
%7 : Tensor = aten::reshape(%6, %5)
%8 : Tensor = aten::add(%7, %3, %one)""", "8"),
    "ts5": ("x w1 w2 w3", f"""%0 : Tensor = {conv('x', 1)}
%1 : Tensor = {conv('0', 2)}
%2 : Tensor = aten::log_sigmoid(%0)
%3 : Tensor = {conv('2', 3)}
%4 : Tensor = aten::relu(%1)
%5 : Tensor = aten::add(%3, %4, %one)
%6 : Tensor = aten::max_pool2d(%5, %ones, %ones, %zeros, %ones, %no)""", "6"),
    "ts8": ("x y", """%0 : Tensor = aten::add(%x, %y, %one)
%1 : Tensor = aten::lgamma(%x)
%2 : Tensor = aten::mul(%x, %y)
%3 : Tensor = aten::lgamma(%y)
%4 : Tensor = aten::div(%x, %y)
%5 : Tensor = aten::lgamma(%4)
%6 : Tensor[] = prim::ListConstruct(%1, %3, %5, %0, %2)
%7 : Tensor = aten::cat(%6, %zero)""", "7"),
    # C.10 of the cases: X4 writes an input between two readers, X5 through a view
    "x4": ("x", """%t1 : Tensor = aten::add(%x, %one, %one)
%w : Tensor = aten::mul_(%x, %two)
%y : Tensor = aten::mul(%w, %t1)""", "y"),
    "x5": ("x", """%v : Tensor = aten::view(%x, %ones)
%w : Tensor = aten::mul_(%v, %two)
%y : Tensor = aten::add(%x, %one, %one)""", "y"),
    # C.2: a list of tensors read by engines and by the host
    "list": ("x w1", f"""%l : Tensor[] = prim::ListConstruct(%x, %x)
%a : Tensor = aten::cat(%l, %zero)
%b : Tensor = aten::log_sigmoid(%a)
%c : Tensor = aten::cat(%l, %one)
%d : Tensor = {conv('c', 1)}
%e : Tensor = aten::relu(%d)
%t : (Tensor, Tensor) = prim::TupleConstruct(%b, %e)""", "t"),
    # C.2 "simple": groups come from a size
    "size": ("x w1", """%s : int = aten::size(%x, %one)
%l : Tensor = aten::log_sigmoid(%x)
%c : Tensor = aten::conv2d(%l, %w1, %none, %ones, %zeros, %ones, %s)
%r : Tensor = aten::relu(%c)""", "r"),
    # C.2 "IF block"
    "ifs": ("x y", """%a : Tensor = aten::add(%x, %y, %one)
%s : int = aten::size(%a, %zero)
%t : Tensor = prim::NumToTensor(%s)
%c : bool = aten::is_floating_point(%t)
%p : Tensor = prim::If(%c)
  block0():
    %p0 : Tensor = aten::sub(%a, %y, %one)
    -> (%p0)
  block1():
    %p1 : Tensor = aten::sub(%y, %a, %one)
    -> (%p1)
%q : Tensor = prim::If(%c)
  block0():
    %q0 : Tensor = aten::sub(%p, %y, %one)
    -> (%q0)
  block1():
    %q1 : Tensor = aten::sub(%y, %p, %one)
    -> (%q1)
%r : Tensor = aten::add(%p, %q, %one)""", "r"),
    # C.2 "only necessary": a dictionary between engines
    "dict": ("x i", """%ka : str = prim::Constant[value="a"]()
%kb : str = prim::Constant[value="b"]()
%d : Dict(str, Tensor) = prim::DictConstruct()
%r : Tensor = aten::relu(%x)
aten::_set_item(%d, %ka, %r)
%g : Tensor = aten::__getitem__(%d, %ka)
%m : Tensor = aten::lt(%g, %one)
%j : Tensor?[] = prim::ListConstruct(%m)
%z : Tensor = aten::relu(%i)
%n : Tensor = aten::index_put_(%g, %j, %z, %no)
aten::_set_item(%d, %kb, %n)
%u : Tensor = aten::__getitem__(%d, %ka)
%v : Tensor = aten::__getitem__(%d, %kb)
%o : (Tensor, Tensor) = prim::TupleConstruct(%u, %v)""", "o"),
}


def printed_ir(inputs, body, result):
    # Names that are numbers would be numbered anew.
    body, result = re.sub(r"%(\d)", r"%n\1", body), re.sub(r"^(\d)", r"n\1", result)
    arguments = ", ".join(f"%{name} : Tensor" for name in inputs.split())
    lines = "\n".join("  " + line for line in (HEAD + body).splitlines())
    graph = torch._C.parse_ir(f"graph({arguments}):\n{lines}\n  return (%{result})\n")
    torch._C._jit_pass_dce(graph)
    return str(graph)


class Gate(nn.Module):
    """G48: a branch without results that writes a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(4))

    def forward(self, x, flag: bool):
        if flag:
            self.buf.add_(1)
        return torch.relu(x) + self.buf


class Counter(nn.Module):
    """An attribute that is set: every read of it is a node."""

    def __init__(self):
        super().__init__()
        self.state = torch.zeros(4)

    def forward(self, x):
        before = torch.relu(self.state)
        self.state = x * 2
        return before + torch.relu(self.state)


class Branches(nn.Module):
    """Branches in branches; sizes, lists and weights from outside."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, flag: bool, other: bool):
        shape = [x.size(0), -1]
        h = torch.relu(self.first(x))
        if flag:
            h = nn.functional.logsigmoid(h)
            if other:
                h = torch.relu(self.second(h)).view(shape)
            else:
                h = torch.tanh(h)
        else:
            h = torch.tanh(h.view(shape))
        return torch.relu(h)


class Loop(nn.Module):
    def forward(self, x, n: int):
        out: List[torch.Tensor] = []
        x = torch.relu(x)
        for i in range(n):
            x = torch.tanh(x) * i
            out.append(x)
        return torch.relu(x), torch.stack(out)


class Chunks(nn.Module):
    def forward(self, x, y: Optional[torch.Tensor]):
        a, b = torch.chunk(torch.relu(x), 2, 1)
        if y is not None:
            a = a + y
        c = torch.nn.functional.dropout(a, 0.5, False)
        return torch.tanh(c) * b, [a, b]


class Everything(nn.Module):
    """Types, escapes, effects and constants of all kinds."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.names = ["a", "b"]

    def forward(self, x, d: Dict[str, torch.Tensor], t: Tuple[int, Optional[float]]):
        y = self.bn(self.conv(x))
        if y.dim() != 4:
            raise ValueError("dim {} of \"y\", h\u00e9".format(y.dim()))
        print("y\\n", y.shape)
        for name in self.names:
            d[name] = y
        noise = torch.rand_like(y)
        w = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
        return {"y": y + noise, "w": w}, (t[0] + 1, self.names), torch.device("cpu"), 1.5, 1e300


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    texts = {name: printed_ir(*ir) for name, ir in IR.items()}
    scripted = {"gate": Gate, "counter": Counter, "branches": Branches, "loop": Loop,
                "chunks": Chunks, "everything": Everything}
    for name, module in scripted.items():
        texts[name] = str(torch.jit.script(module().eval()).inlined_graph)
    texts["frozen"] = str(torch.jit.freeze(torch.jit.script(Everything().eval())).graph)
    traced = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten()).eval()
    texts["traced"] = str(torch.jit.trace(traced, torch.rand(1, 3, 8, 8)).inlined_graph)
    texts["calls"] = str(torch.jit.script(Branches().eval()).graph)
    for name, text in texts.items():
        text = re.sub(r"# \S*/([^/\s]+:\d+:\d+)", r"# \1", text)
        text = text.replace("__torch__.__main__.", "__torch__.")
        (HERE / f"{name}.ts").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
