"""cutset plan FILE.ts: segments of Torch-TensorRT's own cases (TS1 to TS8, C.2, X4, X5, G48), blocks,
containers, attributes; and texts that are refused.

The graphs in tests/torchscript are printed by torch (make_graphs.py); torch is not needed here.
"""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

CUTSET = os.environ["CUTSET"]
GRAPHS = Path(__file__).parent / "torchscript"
SIGMOID = ["--exclude", "aten::log_sigmoid"]
RELU = ["--exclude", "aten::relu"]
COPIED = {"prim::ListConstruct"}  # in these graphs: repeated wherever they are read


def run(*args, code=0, stdin=None):
    done = subprocess.run([CUTSET, *map(str, args)], capture_output=True, input=stdin, timeout=120)
    assert done.returncode == code, done.stderr
    assert done.stderr.count(b"\n") == (1 if code else 0), done.stderr
    return (done.stderr if code else done.stdout).decode()


def plan(name, *options):
    return json.loads(run("plan", GRAPHS / f"{name}.ts", "--target", "acc", "--json", *options))


def kinds(name):
    """{node's name in a plan: kind}, from the text."""
    found, number = {}, 0
    for line in (GRAPHS / f"{name}.ts").read_text("utf-8").splitlines():
        m = re.match(r"\s*(?:%([^ ]+) : .*?)? ?= (\w+::\w+)", line)
        if not m:
            continue
        is_node = m[2] not in ("prim::Constant", "prim::GetAttr")
        found[m[1] if m[1] is not None else f"${number}"] = m[2]
        number += is_node
    return found


def segments(name, *options):
    """[(target or target and block, kinds in order)], without what is repeated anywhere."""
    table, out = kinds(name), []
    for part in plan(name, *options)["parts"]:
        ops = [table[node].removeprefix("aten::") for node in part["nodes"]
               if table[node] not in COPIED]
        out.append((part["target"] + (" " + part["block"] if part["block"] else ""), ops))
    return out


def counts(name, *options):
    p = plan(name, *options)
    assert p["objective"]["engines_proved"]
    host = sum(part["target"] == "host" for part in p["parts"])
    return p["objective"]["engines"], host


# ---- C.1: TS1 to TS8 ----

def test_ts1():
    assert segments("ts1", *SIGMOID) == [("acc", ["conv2d", "relu", "conv2d"]),
                                         ("host", ["log_sigmoid"]), ("acc", ["conv2d"])]


def test_ts2():
    assert segments("ts1", *SIGMOID, "--min-nodes", 3) == [
        ("acc", ["conv2d", "relu", "conv2d"]), ("host", ["log_sigmoid", "conv2d"])]


def test_ts3():
    """The write reaches the caller's b through reshape, so what views b stays on the host: Torch-TensorRT
    has one segment of four nodes here, and loses the write where reshape does not copy."""
    assert segments("ts3") == [
        ("acc", ["reshape"]),
        ("host", ["reshape", "reshape", "to", "size", "add", "index_add_", "reshape", "add"])]
    assert counts("ts3", "--min-nodes", 3) == (0, 1)
    rules = {f["node"]: f["rule"] for f in plan("ts3")["fallback"]}
    assert sorted(rules.values()) == ["boundary"] * 7 + ["op"]


def test_ts4():
    assert segments("ts1", *SIGMOID, *RELU) == [
        ("acc", ["conv2d"]), ("host", ["relu"]), ("acc", ["conv2d"]), ("host", ["log_sigmoid"]),
        ("acc", ["conv2d"])]


def test_ts5():
    assert counts("ts5", *SIGMOID) == (2, 1)


def test_ts6():
    """Six nodes are kept, where Torch-TensorRT keeps four."""
    assert segments("ts5", *SIGMOID, "--min-nodes", 3) == [
        ("acc", ["conv2d", "conv2d", "relu"]), ("host", ["log_sigmoid"]),
        ("acc", ["conv2d", "add", "max_pool2d"])]


def test_ts7():
    assert segments("ts5", *SIGMOID, *RELU) == [
        ("acc", ["conv2d", "conv2d"]), ("host", ["log_sigmoid", "relu"]),
        ("acc", ["conv2d", "add", "max_pool2d"])]


def test_ts8():
    assert segments("ts8", "--exclude", "aten::lgamma") == [
        ("acc", ["add", "mul", "div"]), ("host", ["lgamma"] * 3), ("acc", ["cat"])]


# ---- C.2 ----

def test_list_of_tensors():
    p = plan("list", *SIGMOID)
    assert counts("list", *SIGMOID) == (1, 1)
    assert p["parts"][0]["target"] == "acc" and p["parts"][0]["inputs"] == ["x", "w1"]


def test_size_is_computed_inside():
    p = plan("size", *SIGMOID)
    assert counts("size", *SIGMOID) == (1, 1)
    engine = p["parts"][1]
    assert "aten::size" in engine["ops"] and "x" in engine["inputs"]
    assert all(b["value"] in ("10",) for b in p["boundaries"])  # the result of log_sigmoid


def test_size_without_support_takes_its_reader_along():
    assert counts("size", "--exclude", "aten::size") == (2, 1)  # conv2d to the host
    host = next(p for p in plan("size", "--exclude", "aten::size")["parts"] if p["target"] == "host")
    assert host["ops"] == {"aten::conv2d": 1, "aten::size": 1, "prim::ListConstruct": 2}


def test_branches_of_ifs():
    assert segments("ifs", "--exclude", "aten::sub")[1:4] == [
        ("host", ["size", "prim::NumToTensor", "is_floating_point", "prim::If"]),
        ("host 1.0", ["sub"]), ("host 1.1", ["sub"])]
    p = plan("ifs")
    assert p["objective"]["engines"] == 6
    assert [part["block"] for part in p["parts"]] == ["", "", "1.0", "1.1", "", "4.0", "4.1", ""]
    assert [part["id"] for part in p["parts"]] == list(range(8))


def test_dictionary():
    p = plan("dict")
    assert counts("dict") == (1, 1)  # Torch-TensorRT: 1 and 2
    assert p["parts"][1]["target"] == "host" and "aten::_set_item" in p["parts"][1]["ops"]


# ---- C.10, G48 ----

def test_x4_a_write_between_two_readers():
    assert segments("x4") == [("acc", ["add"]), ("host", ["mul_"]), ("acc", ["mul"])]


def test_x5_a_write_through_a_view():
    assert segments("x5") == [("host", ["view", "mul_"]), ("acc", ["add"])]


def test_g48_a_branch_without_results():
    assert segments("gate") == [("host", ["prim::If"]), ("host 0.0", ["add_"]),
                                ("acc", ["relu", "add"])]
    p = plan("gate")
    assert "buf" in p["parts"][2]["inputs"] and p["parts"][2]["weights"] == 0  # written: no weight


# ---- attributes, blocks, loops ----

def test_an_attribute_that_is_set_is_read_in_order():
    host = next(p for p in plan("counter")["parts"] if p["target"] == "host")
    assert host["nodes"] == ["state.1", "$2", "state"]
    assert host["ops"] == {"prim::GetAttr": 2, "prim::SetAttr": 1}


def test_branches_in_branches():
    p = plan("branches", *SIGMOID)
    blocks = [part["block"] for part in p["parts"]]
    assert blocks == ["", "", "1.0", "1.0", "3.0", "3.1", "1.1", ""]
    inner = p["parts"][4]
    # The size of x and the list of it stand outside the branches; the engine computes them itself.
    assert inner["copies"] == ["6", "shape.1"] and "x.1" in inner["inputs"]
    assert inner["weights"] == 2
    assert sum(len(part["nodes"]) for part in p["parts"]) == p["model"]["nodes"]
    assert p["objective"]["engines"] == 5 and p["objective"]["engines_proved"]


def test_min_nodes_counts_in_every_branch():
    p = plan("branches", *SIGMOID, "--min-nodes", 3)
    assert [(part["block"], len(part["nodes"])) for part in p["parts"] if part["target"] == "acc"] == [
        ("3.0", 3)]


def test_max_engines_counts_all_branches():
    p = plan("branches", *SIGMOID, "--max-engines", 2)
    assert p["objective"]["engines"] <= 2
    assert any(f["rule"] == "limit" for f in p["fallback"])


def test_a_loop_goes_whole():
    assert segments("loop") == [("acc", ["relu"]), ("host", ["prim::Loop", "stack"]),
                                ("acc", ["relu"]), ("host", ["prim::TupleConstruct"])]


def test_dropout_that_does_nothing_is_taken():
    p = plan("chunks")
    reasons = {f["op"] for f in p["fallback"]}
    assert "aten::dropout" not in reasons and "aten::chunk" not in reasons


def test_exclude_group_and_pin():
    assert counts("ts8", "--exclude", "aten::lgamma", "--exclude", "16") == (1, 1)
    p = plan("ts8", "--pin", "9=host")
    assert {"node": "9", "rule": "user"} == {k: p["fallback"][0][k] for k in ("node", "rule")}
    p = plan("branches", "--group", "27,16")
    assert sum({"27", "16"} <= set(part["nodes"]) for part in p["parts"]) == 1
    assert "different blocks" in run("plan", GRAPHS / "branches.ts", "--target", "acc", "--group",
                                     "27,21", code=2)
    assert "matches no" in run("plan", GRAPHS / "ts1.ts", "--target", "acc", "--exclude", "nothing",
                               code=2)


@pytest.mark.parametrize("path", sorted(GRAPHS.glob("*.ts")), ids=lambda p: p.stem)
def test_every_graph(path, tmp_path):
    if path.stem == "calls":
        said = run("plan", path, "--target", "acc", code=3)
        assert re.search(r"line \d+, column \d+: prim::CallMethod .* inline", said), said
        return
    out = tmp_path / "plan.json"
    run("plan", path, "--target", "acc", "-o", out)
    first = out.read_text()
    assert first == (run("plan", path, "--target", "acc", "-o", out), out.read_text())[1]
    p = json.loads(first)
    named = [node for part in p["parts"] for node in part["nodes"]]
    assert len(named) == len(set(named)) == p["model"]["nodes"]
    assert set(named) <= set(kinds(path.stem))
    inside = {part["block"] for part in p["parts"]} - {""}
    assert all(p["parts"][int(b.split(".")[0])]["target"] == "host" for b in inside)


# ---- what the command refuses ----

@pytest.mark.parametrize("args,code,words", [
    (["plan", "FILE", "--target", "acc", "--host-memory", "1GiB"], 2, "no weight sizes"),
    (["plan", "FILE", "--target", "acc", "--device-memory", "1GiB"], 2, "no weight sizes"),
    (["plan", "FILE", "--target", "tensorrt"], 2, "give acc"),
    (["plan", "FILE", "--target", "acc", "--dim", "N=1"], 2, "leave --shape, --dim, --type out"),
    (["inspect", "FILE"], 2, "TorchScript"),
    (["split", "FILE", "--target", "acc", "-o", "DIR"], 3, "TorchScript"),
])
def test_refused(args, code, words, tmp_path):
    args = [{"FILE": GRAPHS / "gate.ts", "DIR": tmp_path / "out"}.get(a, a) for a in args]
    assert words in run(*args, code=code)
    assert not list(tmp_path.iterdir())


def test_standard_input_is_told_by_content():
    text = (GRAPHS / "ts1.ts").read_bytes()
    assert json.loads(run("plan", "-", "--target", "acc", "--json", stdin=text))["parts"]


def test_cut_off_anywhere():
    """Every prefix is refused in one line, but for those that only lack the last line break."""
    text = (GRAPHS / "branches.ts").read_bytes()
    for cut in [*range(6, len(text) - 2, 37), len(text) - 2]:
        said = run("plan", "-", "--target", "acc", code=3, stdin=text[:cut])
        assert "line" in said or "empty" in said, said


