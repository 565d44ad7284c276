"""Parts of models with very large weights: what it costs to refer to weights, and to copy them.

    8 GiB outside    a chain of 128 products whose weights stand in a sparse file: 4 KiB of data
                     each, the rest a hole
    1.5 GiB inside   the same with 24 weights inside the model file, real bytes, so that `copy` and
                     `cp` have as much to move

`cp` is of the model file, to the same disk. Before every run the disk is brought to rest and what
the last one wrote is removed; times with "sync" include writing all of it back.
"""
import os
import shutil

import measure
import proto
from measure import seconds, size

SIDE = 4096
WEIGHT = 4 * SIDE * SIDE  # 64 MiB
HOST_EVERY = 8


def graph(model, count, weight, host_every):
    """A chain of `count` products, some followed by an operator for the host."""
    for i in range(count):
        weight(i)
    model.write(proto.typed(11, "v0", [1, SIDE]))
    value = "v0"
    for i in range(count):
        model.write(proto.node("MatMul", [value, f"w{i}"], [f"m{i}"]))
        model.write(proto.typed(13, f"m{i}", [1, SIDE]))
        value = f"m{i}"
        if host_every and i % host_every == host_every - 1:
            model.write(proto.node("Lookup", [value], [f"h{i}"], "bench"))
            model.write(proto.typed(13, f"h{i}", [1, SIDE]))
            value = f"h{i}"
    model.write(proto.typed(12, value, [1, SIDE]))


def outside(path, count):
    data = path.parent / "model.weights"
    with proto.Model(path, domains=["bench"]) as model:
        graph(model, count, lambda i: model.write(
            proto.external(f"w{i}", [SIDE, SIDE], data.name, i * WEIGHT, WEIGHT)), HOST_EVERY)
    proto.sparse(data, count * WEIGHT, range(0, count * WEIGHT, WEIGHT))
    return data


def inside(path, count, host_every=HOST_EVERY):
    some = os.urandom(1 << 20)

    def weight(i):
        model.write(proto.inline(f"w{i}", [SIDE, SIDE], WEIGHT))
        turned = some[i:] + some[:i]  # no two weights the same
        for _ in range(WEIGHT // len(some)):
            model.write(turned)

    with proto.Model(path, domains=["bench"]) as model:
        graph(model, count, weight, host_every)


def split(model, how, out):
    return [*measure.CUTSET, "split", model, "--target", "tensorrt-11", f"--weights={how}", "-o",
            out]


def clear(where, *keep):
    for path in where.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def measure_refer(table, what, model, where, keep):
    argv = split(model, "refer", where)
    runs, = measure.interleave([argv], table.args.runs, before=lambda: clear(where, *keep))
    table.add(f"{what}, refer", "under 1 s", seconds(runs.wall), runs.wall < 1)
    peak = runs.most("peak")
    table.add(f"{what}, refer", "peak under 50 MB", size(peak), peak < 50 * measure.MB)
    parts = [p.stat().st_size for p in where.glob("part-*.onnx")]
    table.add(f"{what}, refer", "", f"{len(parts)} parts, {size(sum(parts))}")
    clear(where, *keep)


def measure_holes(table, what, model, data, where, out):
    sample = measure.must(split(model, "copy", out))
    copies = out / "weights"
    had, has = measure.blocks(data), measure.blocks(copies)
    length = sum(p.stat().st_size for p in copies.iterdir())
    table.add(f"{what}, copy", "keeps the holes",
              f"{size(length)} long, {size(has)} on the disk; "
              f"the source {size(data.stat().st_size)}, {size(had)}",
              length >= data.stat().st_size and has <= 2 * had)
    table.add(f"{what}, copy", "", f"{seconds(sample.wall)}, peak {size(sample.peak)}")
    clear(where, model.name, data.name)


def timed(argv, synced, where):
    """The command, and with `synced` until the disk has it."""
    def go():
        if not synced:
            return measure.must(argv)
        script = 'disk=$1; shift; "$@" >/dev/null && sync -f "$disk"'
        return measure.must(["sh", "-c", script, "sh", where, *argv])
    return go


def measure_copy(table, what, model, where):
    out, plain = where / "out", where / "plain.onnx"
    argv = split(model, "copy", out)

    def before():
        clear(where, model.name)
        measure.flush(where)

    for synced in (False, True):
        ours, theirs = measure.interleave(
            [timed(argv, synced, where), timed(["cp", model, plain], synced, where)],
            table.args.runs, before=before)
        times = measure.ratio(ours, theirs)
        table.add(f"{what}, copy{' and sync' if synced else ''}", "1.3 x cp",
                  f"{times:.2f} x cp: {seconds(ours.wall)}, cp {seconds(theirs.wall)}",
                  times <= 1.3)
        if not synced:
            memory = ours
    anon, limit = memory.most("anon"), 50 * measure.MB
    clear(where, model.name)
    table.add(f"{what}, copy", "under 50 MB without file pages",
              f"{size(anon)} seen, peak {size(memory.most('peak'))} with them",
              anon < limit)
    fits = measure.fits(argv, limit)
    table.add(f"{what}, copy", "under 50 MB of RLIMIT_DATA",
              "runs" if fits else "does not run", fits)
    clear(where, model.name)


def main():
    args = measure.start(measure.options(__doc__, runs=5))
    table = measure.Table("weights", "`split` of models whose weights are much larger than its "
                          "memory should be.", args)
    with measure.folder(args, 4 * 10**9) as where:
        model = where / "model.onnx"
        data = outside(model, 128)
        measure_refer(table, "8 GiB outside", model, where, (model.name, data.name))
        measure_holes(table, "8 GiB outside", model, data, where, where / "out")
        clear(where)
        inside(model, 24)
        measure_refer(table, "1.5 GiB inside", model, where, (model.name,))
        measure_copy(table, "1.5 GiB inside", model, where)
    table.notes.append("`cp` and `copy` write to the same disk.")
    return table.end()


if __name__ == "__main__":
    raise SystemExit(main())
