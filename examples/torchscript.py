"""TorchScript: a scripted model in engines and host parts, engines of branches included.

The accelerator of this example takes convolutions, ReLU, additions and pooling; whatever else the
model does stays in torch. Each engine is then replaced by something that "runs" its graph.
"""
import torch
from torch import nn

import cutset.torchscript


class Model(nn.Module):
    """A convolutional stem, then one of two heads, depending on the data."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU())
        self.small, self.large = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 3, padding=1)

    def forward(self, x):
        y = self.stem(x)
        if bool(y.mean() > 0.1):
            y = torch.relu(self.large(y))
        else:
            y = torch.relu(self.small(y))
        return torch.erfinv(torch.tanh(y) * 0.5), y.size(1)


SUPPORTED = {"aten::conv2d", "aten::relu", "aten::add", "aten::max_pool2d"}


class Engine(nn.Module):
    """Stands for a built engine: made from the graph, called with tensors."""

    def __init__(self, graph):
        super().__init__()
        self.operators = [node.kind() for node in graph.nodes() if node.kind() in SUPPORTED]
        self.run = torch._C._create_function_from_graph("engine", graph)

    def forward(self, *tensors):
        return self.run(*tensors)


def main():
    scripted = torch.jit.script(Model().eval())
    parted = cutset.torchscript.partition(scripted, supported=SUPPORTED)

    for part in parted.plan.parts:
        place = f"in block {part.block}" if part.block else ""
        print(f"{part.id}  {part.target:4}  {', '.join(part.ops)}  {place}")
    for node in parted.plan.fallback:
        print(f"on the host: {node.op} ({node.why})")

    for name, child in list(parted.named_children()):
        if name.startswith("_run_on_acc_"):
            setattr(parted, name, Engine(child.graph))

    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        expected, channels = scripted(x)
        found = parted(x)
    assert torch.equal(found[0], expected) and found[1] == channels
    assert parted.plan.engines == 3  # the stem, and one in each branch
    assert list(parted.state_dict()) == list(scripted.state_dict())


if __name__ == "__main__":
    main()
