"""Splits: where weights go, what becomes of the folder, and merging back."""
import os
import stat
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from emit_models import *

# ---- weights ----

@pytest.mark.parametrize("mode", ["auto", "copy", "inline"])
@pytest.mark.parametrize("external", [False, True])
def test_modes_in_a_new_folder(tmp_path, mode, external):
    more = EXTERNAL if external else {}
    source = save(tmp_path, chain(), **more)
    out = split(tmp_path, source, f"--weights={mode}")
    assert len(parts_of(out)) == 6
    check(out)
    compare(source, out, feed())
    has = (out / "weights").is_dir()
    assert has == (mode == "copy")
    if mode == "copy":
        assert sorted(p.name for p in (out / "weights").iterdir()) == [
            f"part-{i:03}.bin" for i in (0, 2, 4)]
    merge_and_compare(source, out, tmp_path / "merged.onnx", feed())
    assert not (tmp_path / "merged.onnx.data").exists()
    if not external:  # inline in, inline out: the very same bytes
        assert source.read_bytes() == (tmp_path / "merged.onnx").read_bytes()


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("above", [False, True])
def test_refer(tmp_path, external, above):
    more = EXTERNAL if external else {}
    source = save(tmp_path, chain(), **more)
    out = source.parent.parent if above else source.parent
    before = source.read_bytes()
    split(tmp_path, source, "--weights=refer", out=out)
    assert source.read_bytes() == before and not (out / "weights").exists()
    check(out)
    for p, path in parts_of(out):
        assert path.stat().st_size < 2000
        for t in onnx.load(str(path), load_external_data=False).graph.initializer:
            where = {e.key: e.value for e in t.external_data}
            name = "w.bin" if external else "m.onnx"
            assert where["location"] == ("src/" if above else "") + name
            assert set(where) <= {"location", "offset", "length", "checksum"}
    compare(source, out, feed())
    _, b = merge_and_compare(source, out, tmp_path / "merged.onnx", feed())
    raw = onnx.load(str(tmp_path / "merged.onnx"), load_external_data=False)
    refers = [t.data_location == TensorProto.EXTERNAL for t in raw.graph.initializer]
    assert refers == [external] * 3  # w.bin lies below tmp_path; what was inline is inline again
    if not external:
        assert source.read_bytes() == (tmp_path / "merged.onnx").read_bytes()
    # a second split into the same folder replaces the first, and leaves what is not its own
    (out / "note.txt").write_text("mine")
    split(tmp_path, source, "--weights=refer", "--exclude", "MatMul", out=out)
    assert len(parts_of(out)) == 1
    assert (out / "note.txt").read_text() == "mine"
    assert not (out / "part-003-host.onnx").exists() and source.read_bytes() == before
    assert not list(out.glob(".cutset*"))


def test_auto_refers_where_it_can(tmp_path):
    source = save(tmp_path, chain())
    run("split", "m.onnx", "--target", target(tmp_path, "Sigmoid"), "-o", ".", cwd=source.parent)
    loaded = onnx.load(str(parts_of(source.parent)[0][1]), load_external_data=False)
    assert loaded.graph.initializer[0].data_location == TensorProto.EXTERNAL


@pytest.mark.parametrize("external", [False, True])
def test_refer_that_would_go_up(tmp_path, external):
    more = EXTERNAL if external else {}
    source = save(tmp_path, chain(), **more)
    said = split(tmp_path, source, "--weights=refer", code=2)
    assert "--weights=copy" in said and ("w.bin" if external else "m.onnx") in said
    assert str(tmp_path / "out") in said and not (tmp_path / "out").exists()


def test_refer_from_standard_input(tmp_path):
    source = save(tmp_path, chain())
    with open(source, "rb") as file:
        done = subprocess.run([CUTSET, "split", "-", "--target", target(tmp_path, "Sigmoid"),
                               "--weights=refer", "-o", tmp_path / "out"], stdin=file,
                              capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "out").exists()
    with open(source, "rb") as file:
        subprocess.run([CUTSET, "split", "-", "--target", target(tmp_path, "Sigmoid"),
                        "--weights=copy", "-o", tmp_path / "out"], stdin=file, check=True,
                       capture_output=True)
    check(tmp_path / "out")
    compare(source, tmp_path / "out", feed())


@pytest.mark.parametrize("mode", MODES)
def test_empty_typed_and_string_tensors(tmp_path, mode):
    typed = helper.make_tensor("w", F32, [64, 64], np.linspace(-1, 1, 4096, dtype=np.float32))
    typed2 = helper.make_tensor("ints", I64, [4096], list(range(4096)))
    text = helper.make_tensor("text", TensorProto.STRING, [3000], [b"abc"] * 3000)
    nothing = TensorProto(name="none", data_type=F32, dims=[0, 64],
                          data_location=TensorProto.EXTERNAL)
    for k, v in dict(location="deep/er/w.bin", offset="0", length="0").items():
        nothing.external_data.add(key=k, value=v)
    nodes = [op("MatMul", ["x", "w"], ["a"]), op("Sigmoid", ["a"], ["s"]),
             op("Concat", ["s", "none"], ["y"], axis=0),
             op("Gather", ["ints", "i"], ["z"]), op("Identity", ["text"], ["t"])]
    made = model(nodes, [info("x"), info("i", (2,), I64)],
                 [info("y"), info("z", (2,), I64), info("t", (3000,), TensorProto.STRING)],
                 [typed, typed2, text, nothing])
    folder = tmp_path / "src"
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/w.bin").write_bytes(b"")
    onnx.save(made, str(folder / "m.onnx"))
    out = split(tmp_path, folder / "m.onnx", f"--weights={mode}",
                out=folder if mode == "refer" else tmp_path / "out")
    check(out)
    feeds = feed() | {"i": np.array([5, 4000], np.int64)}
    compare(folder / "m.onnx", out, feeds)
    (tmp_path / "else").mkdir()
    merge_and_compare(folder / "m.onnx", out, tmp_path / "else/merged.onnx", feeds)


def test_merge_where_the_data_is_not_below(tmp_path):
    source = save(tmp_path, chain(), **EXTERNAL)
    split(tmp_path, source, "--weights=refer", out=tmp_path)
    (tmp_path / "else").mkdir()
    merge_and_compare(source, tmp_path, tmp_path / "else/merged.onnx", feed())
    raw = onnx.load(str(tmp_path / "else/merged.onnx"), load_external_data=False)
    assert all(t.HasField("raw_data") and not t.external_data for t in raw.graph.initializer)


def test_shared_and_tied_weights(tmp_path):
    made = chain(3)
    for node in made.graph.node:
        if node.op_type == "MatMul":
            node.input[1] = "w0"
    source = save(tmp_path, made)
    out = split(tmp_path, source, "--weights=copy")
    assert [p.name for p in (out / "weights").iterdir()] == ["shared.bin"]
    assert 0 <= (out / "weights/shared.bin").stat().st_size - 64 * 64 * 4 < 4096  # once
    check(out)
    compare(source, out, feed())
    said = run("merge", out, "-o", tmp_path / "back.onnx")
    assert "w1" in said and "w2" in said
    b = onnx.load(str(tmp_path / "back.onnx"))
    assert [t.name for t in b.graph.initializer] == ["w0"]
    # tied: two initializers with one place in the file
    source = save(tmp_path, chain(2), **EXTERNAL)
    tied = onnx.load(str(source), load_external_data=False)
    tied.graph.initializer[1].CopyFrom(tied.graph.initializer[0])
    tied.graph.initializer[1].name = "w1"
    onnx.save(tied, str(source))
    out = split(tmp_path, source, "--weights=copy", out=tmp_path / "tied")
    assert 0 <= (out / "weights/shared.bin").stat().st_size - 64 * 64 * 4 < 4096  # once
    check(out)
    compare(source, out, feed())


def test_offsets_and_small_tensors(tmp_path):
    nodes = [op("MatMul", ["x", "w"], ["m"]), op("Add", ["m", "b"], ["a"]),
             op("MatMul", ["a", "v"], ["n"]), op("Sigmoid", ["n"], ["y"])]
    made = model(nodes, [info("x")], [info("y")],
                 [weight("w", 0, (64, 65)), weight("b", 1, (65,)), weight("v", 2, (65, 64))])
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 64
    source = save(tmp_path, made)
    out = split(tmp_path, source, "--weights=copy")
    part = onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
    at = {t.name: {e.key: e.value for e in t.external_data} for t in part.graph.initializer}
    assert at["b"] == {}  # small: inline
    data = source.read_bytes()
    for name in ("w", "v"):  # where it was within its page, so that the kernel copies whole pages
        tensor = next(t for t in made.graph.initializer if t.name == name)
        assert int(at[name]["offset"]) % 4096 == data.index(tensor.raw_data) % 4096
    assert int(at["w"]["offset"]) < 4096 and int(at["v"]["offset"]) >= 64 * 65 * 4
    check(out)
    compare(source, out, feed())


def test_holes_stay_holes(tmp_path):
    folder = tmp_path / "src"
    folder.mkdir()
    n = 4096
    made = model([op("MatMul", ["x", "w"], ["m"]), op("Sigmoid", ["m"], ["y"])],
                 [info("x", (1, n))], [info("y", (1, n))])
    t = made.graph.initializer.add(name="w", data_type=F32, dims=[n, n])
    t.data_location = TensorProto.EXTERNAL
    for k, v in dict(location="w.bin", offset="0", length=str(4 * n * n)).items():
        t.external_data.add(key=k, value=v)
    with open(folder / "w.bin", "wb") as file:
        file.truncate(4 * n * n)
    onnx.save(made, str(folder / "m.onnx"))
    for mode in ("copy", "inline"):
        out = split(tmp_path, folder / "m.onnx", f"--weights={mode}", out=tmp_path / mode)
        path = out / ("weights/part-000.bin" if mode == "copy" else "part-000-mine.onnx")
        assert path.stat().st_size >= 4 * n * n
        assert path.stat().st_blocks * 512 < 4 << 20, mode
        check(out)


def test_links(tmp_path):
    source = save(tmp_path, chain(), **EXTERNAL)
    (source.parent / "w.bin").rename(tmp_path / "blob")
    (source.parent / "w.bin").symlink_to(tmp_path / "blob")
    assert "--follow-links" in split(tmp_path, source, code=3)
    assert "symbolic link" in split(tmp_path, source, "--follow-links", "--weights=refer",
                                    out=source.parent, code=2)
    for mode in ("auto", "copy", "inline"):
        out = split(tmp_path, source, "--follow-links", f"--weights={mode}", out=tmp_path / mode)
        check(out)
        run("merge", out, "-o", tmp_path / f"{mode}.onnx")
        a = tensors(onnx.load(str(tmp_path / f"{mode}.onnx")).graph)
        known = tensors(chain().graph)
        assert all(same(a[k], known[k]) for k in known)


def test_checksum_and_odd_spellings(tmp_path):
    source = save(tmp_path, chain(1), **EXTERNAL)
    made = onnx.load(str(source), load_external_data=False)
    t = made.graph.initializer[0]
    for e in t.external_data:
        if e.key == "location":
            e.value = "./w.bin"
    t.external_data.add(key="checksum", value="0" * 40)
    kept = [e for e in t.external_data if e.key != "length"]
    del t.external_data[:]
    t.external_data.extend(kept)
    onnx.save(made, str(source))
    out = split(tmp_path, source, "--weights=refer", out=tmp_path)
    where = {e.key: e.value for e in onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
             .graph.initializer[0].external_data}
    assert where == {"location": "src/w.bin", "offset": "0", "length": str(64 * 64 * 4),
                     "checksum": "0" * 40}
    out = split(tmp_path, source, "--weights=copy", out=tmp_path / "copied")
    where = {e.key for e in onnx.load(str(parts_of(out)[0][1]), load_external_data=False)
             .graph.initializer[0].external_data}
    assert where == {"location", "offset", "length"}


# ---- the folder ----

def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_replaces_an_earlier_split(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source, "--weights=copy")
    (out / "build").mkdir()
    (out / "build" / "journal.jsonl").write_text("{}\n")
    before = listing(tmp_path)
    split(tmp_path, source, "--exclude", "MatMul")
    assert listing(out) == ["part-000-host.onnx", "plan.json"]
    assert len(before) > len(listing(tmp_path))
    assert not [p for p in listing(tmp_path) if "cutset" in p]


def test_refuses_foreign_folders(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    (out / "mine.txt").write_text("x")
    before = {p: p.read_bytes() for p in out.iterdir()}
    for mode in ("auto", "copy", "inline"):
        assert "mine.txt" in split(tmp_path, source, f"--weights={mode}", code=2)
    assert before == {p: p.read_bytes() for p in out.iterdir()}
    assert "is a file" in split(tmp_path, source, out=source, code=2)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    split(tmp_path, source, out=tmp_path / "nowhere", code=2)
    assert str(tmp_path / "no") in split(tmp_path, source, out=tmp_path / "no" / "out", code=4)
    (tmp_path / "file").write_text("")
    split(tmp_path, source, out=tmp_path / "file" / "out", code=4)
    assert not [p for p in listing(tmp_path) if ".cutset" in p]


def test_in_place_keeps_foreign_files(tmp_path):
    source = save(tmp_path, chain())
    (source.parent / "part-001-host.onnx").write_text("mine")
    said = split(tmp_path, source, "--weights=refer", out=source.parent, code=2)
    assert "part-001-host.onnx" in said
    assert listing(source.parent) == ["m.onnx", "part-001-host.onnx"]
    (source.parent / "part-001-host.onnx").unlink()
    (source.parent / "plan.json").write_text("{}")
    assert "plan.json" in split(tmp_path, source, "--weights=refer", out=source.parent, code=2)


def test_never_replaces_its_own_source(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    part = parts_of(out)[0][1]
    before = listing(out)
    split(tmp_path, part, "--weights=inline", out=out, host=("MatMul",), code=2)
    assert part.name in split(tmp_path, part, "--weights=refer", out=out, code=2)
    assert listing(out) == before


def test_an_empty_folder_and_the_current_one(tmp_path):
    source = save(tmp_path, chain())
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o750)
    split(tmp_path, source, out=empty)
    check(empty)
    assert stat.S_IMODE(empty.stat().st_mode) == 0o750
    here = tmp_path / "here"
    here.mkdir()
    inode = here.stat().st_ino
    for _ in range(2):
        run("split", source, "--target", target(tmp_path, "Sigmoid"), "--weights=copy", "-o", ".",
            cwd=here)
        assert here.stat().st_ino == inode
        check(here)
    assert not [p for p in listing(here) if ".cutset" in p]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_parent(tmp_path):
    source = save(tmp_path, chain())
    parent = tmp_path / "parent"
    parent.mkdir(mode=0o500)
    split(tmp_path, source, out=parent / "out", code=4)


def test_same_bytes_twice(tmp_path):
    source = save(tmp_path, chain())
    a = split(tmp_path, source, "--weights=copy", out=tmp_path / "a")
    b = split(tmp_path, source, "--weights=copy", out=tmp_path / "b")
    assert listing(a) == listing(b)
    for name in listing(a):
        if (a / name).is_file():
            assert (a / name).read_bytes() == (b / name).read_bytes(), name


# ---- merge ----

def test_merge_refuses(tmp_path):
    source = save(tmp_path, chain())
    out = split(tmp_path, source)
    parts = [path for _, path in parts_of(out)]
    assert "source" in run("merge", out, "-o", source, code=2)
    assert "this split" in run("merge", out, "-o", parts[0], code=2)
    kept = parts[1].read_bytes()
    parts[1].write_bytes(parts[0].read_bytes())
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=3)
    parts[1].write_bytes(kept[:-7])
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=3)
    parts[1].unlink()
    assert parts[1].name in run("merge", out, "-o", tmp_path / "m2.onnx", code=4)
    parts[1].write_bytes(kept)
    run("merge", out, "-o", tmp_path / "no" / "m2.onnx", code=4)
    assert not (tmp_path / "m2.onnx").exists()
    run("merge", out, "-o", tmp_path / "m2.onnx")


@pytest.mark.parametrize("mode", ["copy", "refer"])
def test_merge_never_writes_over_what_it_reads(tmp_path, mode):
    source = save(tmp_path, chain(), **EXTERNAL)
    out = split(tmp_path, source, f"--weights={mode}",
                out=source.parent if mode == "refer" else tmp_path / "out")
    own = [source, source.parent / "w.bin"]
    split_files = [p for p in out.rglob("*") if p.is_file() and p not in own]
    assert len(split_files) == 7 + 3 * (mode == "copy")
    before = {p: p.read_bytes() for p in own + split_files}
    link, hard = tmp_path / "link", tmp_path / "hard"
    for path in before:
        word = "source model" if path in own else "this split"
        assert word in run("merge", out, "-o", path, code=2)
        link.symlink_to(path)
        assert word in run("merge", out, "-o", link, code=2)
        assert link.is_symlink() and link.resolve() == path
        link.unlink()
        os.link(path, hard)
        assert word in run("merge", out, "-o", hard, code=2)
        hard.unlink()
        assert {p: p.read_bytes() for p in before} == before, path
    run("merge", out, "-o", "", code=2)
    run("merge", out, "-o", tmp_path / "merged.onnx")
    assert {p: p.read_bytes() for p in before} == before


@pytest.mark.parametrize("through", [False, True])
def test_merge_without_live_nodes(tmp_path, through):
    """No node needs an import, and the checker still wants one."""
    outputs = [info("x")] if through else [info("w", (64, 64))]
    source = save(tmp_path, model([], [info("x")], outputs, [weight("w", 1)]))
    onnx.checker.check_model(str(source))
    out = split(tmp_path, source)
    assert not parts_of(out)
    run("merge", out, "-o", tmp_path / "merged.onnx")
    onnx.checker.check_model(str(tmp_path / "merged.onnx"))
    assert [(i.domain, i.version) for i in onnx.load(str(tmp_path / "merged.onnx")).opset_import] == [
        ("", 17)]


def test_merge_of_unsorted_nodes(tmp_path):
    made = chain(2)
    nodes = list(made.graph.node)
    del made.graph.node[:]
    made.graph.node.extend([nodes[2], nodes[0], nodes[3], nodes[1]])
    source = save(tmp_path, made)
    out = split(tmp_path, source)
    check(out)
    run("merge", out, "-o", tmp_path / "merged.onnx")
    assert onnx.load(str(tmp_path / "merged.onnx")).graph == made.graph
