"""A traced graph cut into engines: which operators an accelerator takes, and how much memory.

    python examples/fx.py
"""
import torch

import cutset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(6))

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            if i == 2:
                x = torch.cumsum(x, dim=1)  # the accelerator has no such operator
        return x


model = torch.fx.symbolic_trace(Net().eval())
x = torch.randn(4, 256)

# What the accelerator takes: a collection of operators, or a function that may answer why not.
def supported(node):
    return "cumsum is not implemented" if node.target is torch.cumsum else True


# The fewest engines. A build needs about four times the weights; 3 MiB are enough for two layers.
parted = cutset.torch.partition(model, supported=supported, cpu_memory_budget="3MiB")
plan = parted.meta["cutset"]
print(f"{plan.engines} engines, {'proved minimal' if plan.engines_proved else 'not proved'}")
for name, part in parted.named_children():
    if name.startswith("_run_on_"):
        print(f"  {name}: {[n.name for n in part.graph.nodes if n.op.startswith('call_')]}")
for node in plan.fallback:
    print(f"on the host: {node.node}, {node.why}")

# The same results; each _run_on_acc_N may be replaced by what a builder makes of it.
assert torch.equal(parted(x), model(x))

# One engine that is too large for its budget, cut in place, as Torch-TensorRT's resource_partition.
whole = cutset.torch.partition(torch.fx.symbolic_trace(torch.nn.Sequential(
    *(torch.nn.Linear(256, 256) for _ in range(4)))))
cutset.torch.resource_partition(whole, 2 * 4 * (256 * 256 + 256) * 4)
print("in place:", [n for n, _ in whole.named_children() if n.startswith("_run_on_")])
