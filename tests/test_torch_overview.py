"""support_overview and dryrun: the report says what the plan says."""
import os
import re

import pytest

torch = pytest.importorskip("torch")

import cutset  # noqa: E402
import cutset.torch  # noqa: E402
from cutset.torch import SupportOverview, partition, support_overview  # noqa: E402

aten = torch.ops.aten


class Steps(torch.nn.Module):
    """Stretches of 3, 1 and 2 cosines with a sine between."""

    def forward(self, x):
        for length in (3, 1, 2):
            for _ in range(length):
                x = torch.cos(x)
            x = torch.sin(x)
        return x


@pytest.fixture(scope="module")
def steps():
    return torch.export.export(Steps(), (torch.ones(2, 3),))


HOST = {"torch_executed_ops": [aten.sin.default]}


def test_numbers(steps):
    o = support_overview(steps, **HOST)
    assert isinstance(o, SupportOverview)
    assert o.supported == {"torch.ops.aten.cos.default": 6}
    assert o.unsupported == {"torch.ops.aten.sin.default": 3}
    assert (o.total, o.coverage) == (9, 6 / 9)
    assert (o.engines, o.engine_ops) == (3, (3, 1, 2))
    assert o.recommendations == ((1, 3), (2, 2), (3, 1))
    assert [(f.node, f.rule) for f in o.fallback] == [
        ("sin", "user"), ("sin_1", "user"), ("sin_2", "user")]
    assert [f.engines_saved_if_supported for f in o.fallback] == [1, 1, 0]
    assert o.fallback == cutset.torch.plan(steps, **HOST).fallback
    assert o.to_torch_tensorrt() == (o.supported, o.unsupported)
    for block, engines in o.recommendations:
        assert cutset.torch.plan(steps, min_block_size=block, **HOST).engines == engines


def test_options_count(steps):
    o = support_overview(steps, min_block_size=2, **HOST)
    # too small an engine: its operator is supported all the same
    assert o.supported == {"torch.ops.aten.cos.default": 6} and o.coverage == 6 / 9
    assert (o.engines, o.engine_ops, o.recommendations) == (2, (3, 2), ((2, 2), (3, 1)))
    assert [f.rule for f in o.fallback].count("size") == 1
    everything = support_overview(steps)
    assert (everything.engines, everything.coverage, everything.unsupported) == (1, 1.0, {})
    nothing = support_overview(steps, supported=())
    assert (nothing.engines, nothing.coverage, nothing.engine_ops) == (0, 0.0, ())
    assert nothing.recommendations == ()
    with pytest.raises(TypeError, match=r"support_overview\(\).*no_such_option"):
        support_overview(steps, no_such_option=1)
    with pytest.raises(ValueError):
        support_overview(torch.nn.Linear(1, 1))


def test_reasons(steps):
    o = support_overview(steps, supported=lambda n: "no" if n.target is aten.sin.default else True)
    assert {f.why for f in o.fallback} == {"no"} and {f.rule for f in o.fallback} == {"op"}


def test_text(steps):
    text = str(support_overview(steps, **HOST))
    assert ("The graph consists of 9 Total Operators, of which 6 operators are supported, "
            "66.67% coverage") in text
    assert "  torch.ops.aten.sin.default: 3\n" in text
    for line in ("Graph Structure:", "Inputs: List[Tensor: (2, 3)@float32]",
                 "Engine #1 - Submodule name: _run_on_acc_0", "Number of Operators in Engine: 3",
                 "Engine #2 - Submodule name: _run_on_acc_2", "Number of Operators in Engine: 1",
                 "Engine #3 - Submodule name: _run_on_acc_4", "Number of Operators in Engine: 2",
                 "Engine Inputs: List[Tensor: (2, 3)@float32]",
                 "For minimal graph segmentation, select min_block_size=3 which would generate 1 "
                 "engine(s)",
                 "select min_block_size=2 which would generate 2 engine(s)",
                 "equivalent to selecting min_block_size=1 which generates 3 engine(s)"):
        assert line in text, line
    assert "Node: torch.ops.aten.sin.default, sin (user): in torch_executed_ops; supported, it " \
        "would save 1 engine" in text
    # the names are those of the children
    names = re.findall(r"Submodule name: (\S+)", text)
    assert names == [n for n in partition(steps, **HOST)._modules if "acc" in n]
    assert "not available" in str(support_overview(steps, supported=()))


def test_a_graph_without_nodes():
    graph = torch.fx.Graph()
    graph.output(graph.placeholder("x"))
    o = support_overview(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert (o.total, o.engines, o.coverage) == (0, 0, 1.0)
    assert "consists of 0 Total Operators" in str(o)


def test_many_sizes_are_thinned():
    class Ladder(torch.nn.Module):
        def forward(self, x):
            for length in range(1, 13):
                for _ in range(length):
                    x = torch.cos(x)
                x = torch.sin(x)
            return x

    o = support_overview(torch.export.export(Ladder(), (torch.ones(2),)), **HOST)
    assert o.engine_ops == tuple(range(1, 13))
    assert len(o.recommendations) == 8
    assert o.recommendations[0] == (1, 12) and o.recommendations[-1] == (12, 1)
    assert all(engines == 13 - size for size, engines in o.recommendations)


def test_what_does_not_count(steps):
    class Views(torch.nn.Module):
        def forward(self, x):
            a, b = torch.split(x, 2)
            return torch.ops.aten.view(a, [-1]) + torch.ops.aten.view(b, [-1])

    o = support_overview(torch.export.export(Views(), (torch.ones(4, 3),)))
    assert o.total == o.engine_ops[0] == 6  # split, two getitems, two views, add
    assert o.recommendations == ((2, 1),)  # split and add


class Sorted(torch.nn.Module):
    """Three linear layers, a sort between, and a size that crosses."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        v, i = torch.sort(self.layers[0](x).sigmoid(), 1)
        v = v.view(x.shape[0], 16)
        return self.layers[2](self.layers[1](v)).relu() + x.shape[0], i


def test_text_with_sizes_getitems_and_a_budget():
    program = torch.export.export(Sorted(), (torch.randn(3, 16),),
                                  dynamic_shapes=({0: torch.export.Dim.AUTO},))
    need = 4 * (16 * 16 + 16) * 4
    o = support_overview(program, torch_executed_ops=["aten::sort"], cpu_memory_budget=need,
                         supported={"first": None, "second": None})
    text = str(o)
    assert o.engines == 3
    assert "  Node: _operator.getitem, getitem_1: goes where sort goes\n" in text
    assert text.count("in torch_executed_ops") == 1
    assert re.search(r"Engine Outputs: List\[int, Tensor: \(\w+, 16\)@float32\]", text)
    assert f"Budget of an engine: {need} bytes" in text
    assert [int(n) for n in re.findall(r"Bytes to build it: (\d+)", text)] == [
        p.host_build_bytes for p in o.plan.parts if p.target != "host"]
    assert re.findall(r"Accelerator: (\w+)", text) == ["first"] * 3
    assert "Number of Operators in Engine: 3 (2 for min_block_size)" in text
    assert "For minimal" not in text and "1 engines" not in text  # the budget forces three
    for (size, engines), demoted in zip(o.recommendations, o.demoted, strict=True):
        less = cutset.torch.plan(
            program, torch_executed_ops=["aten::sort"], cpu_memory_budget=need,
            supported={"first": None, "second": None}, min_block_size=size)
        held = sum(len(p.nodes) for p in less.parts if p.target != "host")
        assert (engines, demoted) == (less.engines, sum(o.engine_ops) - held)
        if size > 1:
            assert demoted and f"min_block_size={size} leaves {engines} engine" in text
            assert f": {demoted} more operator" in text
    one = str(support_overview(program, torch_executed_ops=["aten::sort"], max_engines=1))
    assert "more than 1 engine\n" in one and "1 engines" not in one
    free = str(support_overview(program, torch_executed_ops=["aten::sort"]))
    assert "Budget" not in free and "Accelerator" not in free and "For minimal" in free
    assert "more operators on the host" in free


def test_a_size_without_meta_is_a_number():
    class Sized(torch.nn.Module):
        def forward(self, x):
            return torch.cos(torch.sin(x) + x.size(0))

    text = str(support_overview(torch.fx.symbolic_trace(Sized()), torch_executed_ops=["size"]))
    assert re.search(r"Engine Inputs: List\[(Tensor, number|number, Tensor)\]", text)


def test_dryrun_of_what_must_be_full_shows_first(steps, capsys, tmp_path):
    path = tmp_path / "report.txt"
    with pytest.raises(cutset.NotFullySupportedError):
        partition(steps, dryrun=str(path), require_full_compilation=True, min_block_size=9, **HOST)
    assert capsys.readouterr().out == str(support_overview(steps, **HOST)) + "\n"
    assert path.exists()
    program = torch.export.export(Sorted(), (torch.randn(3, 16),))
    need = 4 * (16 * 16 + 16) * 4
    with pytest.raises(cutset.BudgetError, match="require_full_compilation"):
        partition(program, dryrun=True, require_full_compilation=True, cpu_memory_budget=need)
    assert "Engine #3" in capsys.readouterr().out


def test_dryrun(steps, capsys, tmp_path):
    assert partition(steps, dryrun=True, **HOST) is steps
    text = str(support_overview(steps, **HOST))
    assert capsys.readouterr().out == text + "\n"
    path = tmp_path / "report.txt"
    for given in (str(path), tmp_path / "again.txt"):
        assert partition(steps, dryrun=given, **HOST) is steps
        assert capsys.readouterr().out == text + "\n"
        with open(given, encoding="utf-8") as file:
            assert file.read() == text + "\n"


def test_dryrun_never_writes_over_a_file(steps, capsys, tmp_path):
    path = tmp_path / "report.txt"
    path.write_text("mine")
    with pytest.warns(UserWarning, match="is there already") as seen:
        assert partition(steps, dryrun=str(path), **HOST) is steps
    assert path.read_text() == "mine" and len(seen) == 1
    assert "Total Operators" in capsys.readouterr().out
    os.unlink(path)
    path.symlink_to(tmp_path / "nowhere")  # a link to nothing is there as well
    with pytest.warns(UserWarning, match="is there already"):
        partition(steps, dryrun=str(path), **HOST)
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(OSError) as info:
        partition(steps, dryrun=str(tmp_path / "no" / "folder"), **HOST)
    assert isinstance(info.value, cutset.IoError)
    with pytest.raises(ValueError):
        partition(steps, dryrun=3, **HOST)
