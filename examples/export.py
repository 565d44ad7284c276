"""An exported model: the report first, then engines that run.

    python examples/export.py
"""
import torch

import cutset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.SiLU(),
            torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.SiLU())
        self.head = torch.nn.Linear(16, 10)

    def forward(self, x):
        y = self.body(x).mean((2, 3))
        y = torch.sort(y, dim=1).values  # on the host, below
        return self.head(y)


torch.manual_seed(0)
model, x = Net().eval(), torch.randn(2, 3, 32, 32)
program = torch.export.export(model, (x,)).run_decompositions({})
host = ["torch.ops.aten.sort.default"]

# What would become of it: coverage, engines, what each operator on the host costs.
print(cutset.torch.support_overview(program, torch_executed_ops=host))

# Decide, then build the modules: the names that Torch-TensorRT users know.
plan = cutset.torch.plan(program, torch_executed_ops=host)
parted = cutset.torch.partition(program, torch_executed_ops=host)
assert plan.engines == 2 and parted.meta["cutset"] == plan
assert torch.equal(parted(x), model(x))

# Engines in place of the parts, with any function that builds one ...
compiled = cutset.torch.compile(model, (x,), torch_executed_ops=host,
                                backend=lambda name, part, inputs: torch.jit.trace(part, inputs))
print("largest difference, torch.jit:", (compiled(x) - model(x)).abs().max().item())

# ... or with a backend that is installed.
try:
    compiled = cutset.torch.compile(model, (x,), torch_executed_ops=host, backend="onnxruntime")
    print("largest difference, ONNX Runtime:", (compiled(x) - model(x)).abs().max().item())
except ImportError as error:
    print(error)
