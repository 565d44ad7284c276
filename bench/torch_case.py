"""One case of torch_side_by_side.py, in a process of its own. Prints one JSON object.

    torch_case.py cutset NET SIZE RUNS            plan and partition, a walk and a copy beside them
    torch_case.py fast|fx NET SIZE SECONDS        a peer; stopped after so much processor time
    torch_case.py budget cutset|torch_tensorrt NET SIZE PIECES SECONDS
                                                  weights over PIECES is the budget; NET branches:
                                                  SIZE chains, the budget is one of them
"""
import gc
import json
import logging
import os
import signal
import statistics
import sys
import time
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402

import torch_nets  # noqa: E402

CALLS = ("call_function", "call_method", "call_module")


def takes(node):
    return node.target is not torch_nets.HOST


def timed(call):
    """Processor time of one call, in seconds, and what it returns. All of it is one thread."""
    gc.collect()
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def stop_after(seconds):
    def stop(*_):
        print(json.dumps({"stopped": seconds}), flush=True)
        os._exit(0)

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def walk(gm):
    found = 0
    for node in gm.graph.nodes:
        for _ in node.all_input_nodes:
            found += 1
    return found


def copied(gm):
    graph, copies = torch.fx.Graph(), {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    return torch.fx.GraphModule(gm, graph)


def engines_in(gm):
    return [m for n, m in gm.named_children() if n.startswith("_run_on_acc_")]


# ---- cases ----

def cutset_case(net, size, runs):
    import cutset
    gm = torch_nets.build(net, size)
    calls = {"walk": lambda: walk(gm), "plan": lambda: cutset.torch.plan(gm, supported=takes),
             "copy": lambda: copied(gm),
             "partition": lambda: cutset.torch.partition(gm, supported=takes)}
    times, last = {name: [] for name in calls}, {}
    for turn in range(runs + 1):  # the first warms up
        for name, call in calls.items():
            last.pop(name, None)
            seconds, last[name] = timed(call)
            if turn:
                times[name].append(seconds)
    plan, parted = last["plan"], last["partition"]
    assert len(engines_in(parted)) == plan.engines
    x = torch.randn(torch_nets.ROWS, torch_nets.WIDTH)
    return {**{k: statistics.median(v) for k, v in times.items()},
            "plan_walk": statistics.median(a / b for a, b in zip(times["plan"], times["walk"])),
            "partition_copy": statistics.median(
                a / b for a, b in zip(times["partition"], times["copy"])),
            "nodes": sum(n.op in CALLS for n in gm.graph.nodes), "engines": plan.engines,
            "proved": plan.engines_proved, "same": same(gm, parted, x)}


def same(gm, other, x):
    wanted, found = gm(x), other(x)
    wanted, found = ([r] if isinstance(r, torch.Tensor) else list(r) for r in (wanted, found))
    return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(wanted, found))


def fast_case(net, size, seconds):
    import trt_stand_in
    partitioning = trt_stand_in.load()
    if partitioning is None:
        return {"missing": "torch_tensorrt"}
    gm = torch_nets.build(net, size)
    stop_after(seconds)
    took, (parted, _) = timed(lambda: partitioning.fast_partition(
        gm, min_block_size=1, torch_executed_ops={torch_nets.HOST}))
    return {"took": took, "engines": len(engines_in(parted)),
            "covered": sum(n.op in CALLS for m in engines_in(parted) for n in m.graph.nodes)}


def fx_case(net, size, seconds):
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op in CALLS and takes(node)

    gm = torch_nets.build(net, size)
    stop_after(seconds)
    took, parts = timed(lambda: CapabilityBasedPartitioner(
        gm, Support(), allows_single_node_partition=True).propose_partitions())
    return {"took": took, "engines": len(parts)}


def weights_of(gm, nodes):
    """Bytes of the distinct storages."""
    storages = {}
    for node in nodes:
        if node.op == "get_attr":
            storage = getattr(gm, node.target).untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def budget_case(who, net, size, pieces, seconds):
    inner = torch_nets.branches(size) if net == "branches" else \
        torch_nets.build(net, size, whole=True)
    total = weights_of(inner, inner.graph.nodes)
    largest = max(weights_of(inner, n.all_input_nodes) for n in inner.graph.nodes)
    budget = max(total // pieces, largest)
    gm = torch_nets.engine_of(inner)
    x = torch.randn(torch_nets.ROWS, torch_nets.WIDTH)
    reference = torch_nets.engine_of(copied(inner))
    if who == "cutset":
        import cutset
        split = cutset.torch.resource_partition
    else:
        import trt_stand_in
        if trt_stand_in.load() is None:
            return {"missing": "torch_tensorrt"}
        from torch_tensorrt.dynamo.partitioning._resource_partitioner import (
            resource_partition as split)
    stop_after(seconds)
    took, parted = timed(lambda: split(gm, cpu_memory_budget=4 * budget))
    signal.setitimer(signal.ITIMER_PROF, 0)
    sizes = [weights_of(m, m.graph.nodes) for m in engines_in(parted)]
    made = {"took": took, "pieces": len(sizes), "total": total, "budget": budget,
            "largest": max(sizes), "over": sum(s > budget for s in sizes),
            "same": same(reference, parted, x)}
    if who == "cutset":
        plan = next(iter(gm.meta["cutset_resource"].values()), None)
        made["proved"] = plan.engines_proved if plan else True
    return made


def main(kind, *args):
    if kind == "budget":
        who, net, *numbers = args
        made = budget_case(who, net, *map(int, numbers))
    else:
        net, *numbers = args
        made = {"cutset": cutset_case, "fast": fast_case, "fx": fx_case}[kind](
            net, *map(int, numbers))
    print(json.dumps(made), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
