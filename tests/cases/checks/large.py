"""Cases that are too large to keep as files: chains made from a few numbers.

`cases()` gives (name, text) pairs; the text begins with the same comments as a file.
"""
import random

def lines(head, body):
    return "\n".join([f"# {line.strip()}" for line in head.strip().split("\n")] + body) + "\n"


def chain(runs, kind="f32[1,64]"):
    """A chain of runs (length, operator, mark), each node reading the one before."""
    text, before, n = [f"input %x : {kind}"], "x", 0
    for length, op, mark in runs:
        for _ in range(length):
            text.append(f"%n{n} : {kind} = {op}(%{before}) {mark}")
            before, n = f"n{n}", n + 1
    return text + [f"output %{before}"]


def with_gaps(lengths, host=1):
    """Runs for the accelerator with host nodes between them."""
    runs = []
    for length in lengths:
        runs += [(length, "Add", "@acc,host"), (host, "Mod", "@host")]
    return runs[:-1]


def fragments():
    lengths = [3] * 16 + [7 + i % 13 for i in range(55)] + [30] * 11 + [115] * 37 + [114]
    random.Random(70).shuffle(lengths)
    assert len(lengths) == 120 and sum(lengths) == 5447 and sum(n >= 50 for n in lengths) == 38
    kept = sum(n for n in lengths if n >= 50)
    return lines(f"""
        source: G52, speech-core#70: 120 runs between 119 single nodes of the host
        run: plan --target acc
        expect: engines=120 bound=120 proved parts=239 kept=5447
        run: plan --target acc --min-nodes 50
        expect: engines=38 bound=38 proved kept={kept}
        """, chain(with_gaps(lengths)))


def padded():
    lengths = [16] * 2 + [15] * 12
    runs = [run for n in lengths for run in ((1, "Pad", "@host"), (n, "Conv", "@acc,host"))]
    return lines("""
        source: G53, onnxruntime#28022: 14 times a Pad that is refused, then 15 or 16 others
        run: plan --target acc
        expect: engines=14 bound=14 proved parts=28 kept=212 fallback=14
        run: plan --target acc --pin n0=acc --min-nodes 16
        expect: engines=2 bound=2 proved kept=33
        """, chain([(n, op.lower(), mark) for n, op, mark in runs]))


def alternating():
    runs = [(1, "conv" if i % 2 == 0 else "leaky", "@acc,host" if i % 2 == 0 else "@host")
            for i in range(150)]
    return lines("""
        source: G55, DLA: 75 times a convolution and an activation that is refused
        run: plan --target acc
        expect: engines=75 bound=75 proved parts=150
        run: plan --target acc --min-nodes 2
        expect: engines=0 bound=0 proved parts=1
        run: plan --target acc --max-engines 8
        expect: engines=8 bound=8 proved parts=16 kept=8
        """, chain(runs))


def seven():
    return lines("""
        source: G56, tensorflow#66677: yolov4-tiny, parts of 8, 11, 11, 23, 30, 23 and 11
        note: Only the sizes are known: a chain with the 35 other nodes spread over six gaps.
        run: plan --target acc
        expect: engines=7 bound=7 proved parts=13 kept=117 fallback=35
        run: plan --target acc --min-nodes 11
        expect: engines=6 bound=6 proved kept=109
        run: plan --target acc --min-nodes 20
        expect: engines=3 bound=3 proved kept=76
        """, chain([run for n, gap in zip((8, 11, 11, 23, 30, 23, 11), (6, 6, 6, 6, 6, 5, 0))
                    for run in ((n, "Add", "@acc,host"), (gap, "Mod", "@host"))]))


def qwen():
    """Sizes of Qwen2.5-0.5B over 8: layers of 29.8 MB, an embedding of 272 MB used twice."""
    hidden, ffn, heads, kv = 896, 4864, 14 * 64, 2 * 64
    shapes = {"q": hidden * heads, "k": hidden * kv, "v": hidden * kv, "o": heads * hidden,
              "gate": hidden * ffn, "up": hidden * ffn, "down": ffn * hidden, "bias": heads + 2 * kv,
              "norm": 2 * hidden}
    body = ["input %ids : i64[1]", f"weight %emb : f16[{151936 * hidden // 8}]",
            f"weight %norm : f16[{hidden // 8}]"]
    nodes = ["%h0 : f16[1,896] = gather(%emb, %ids) @acc,host"]
    for i in range(24):
        for past in ("key", "value"):
            body.append(f"input %past_{past}{i} : f16[1,2,31,64]")
        body += [f"weight %{name}{i} : f16[{n // 8}]" for name, n in shapes.items()]
        read = ", ".join(f"%{name}{i}" for name in ("h", "q", "k", "v", "bias", "norm"))
        nodes += [f"%qkv{i} : f16[1,1152] = project({read}) @acc,host",
                  f"%key{i} : f16[1,2,32,64] = append(%past_key{i}, %qkv{i}) @acc,host",
                  f"%value{i} : f16[1,2,32,64] = append(%past_value{i}, %qkv{i}) @acc,host",
                  f"%att{i} : f16[1,896] = attend(%qkv{i}, %key{i}, %value{i}, %o{i}) @acc,host",
                  f"%h{i + 1} : f16[1,896] = mlp(%att{i}, %gate{i}, %up{i}, %down{i}) @acc,host"]
    nodes += ["%last : f16[1,896] = rms(%h24, %norm) @acc,host",
              "%logits : f16[1,151936] = head(%last, %emb) @acc,host", "output %logits"]
    nodes += [f"output %{name}{i}" for i in range(24) for name in ("key", "value")]
    return lines("""
        source: G59, onnxsim#1765: a decode step of Qwen2.5-0.5B, weights over 8
        note: 64 MB for 512: eight layers beside the embedding, up to 17 without it. 32 MB for 256:
        note: eight layers an engine; the embedding alone is over it, at both ends of the chain.
        run: plan --target acc
        expect: engines=1 bound=1 proved parts=1 weight_bytes=123508192
        run: plan --target acc --host-memory 64MB
        expect: engines=3 bound=3 proved parts=3
        run: plan --target acc --host-memory 32MB --oversize keep
        expect: engines=5 bound=5 proved parts=5 oversized=2
        run: plan --target acc --host-memory 32MB --oversize host
        expect: engines=3 bound=3 proved parts=5 fallback=2
        expect: host{h0 logits}
        run: plan --target acc --host-memory 32MB
        expect: exit 1
        expect: error %h0 takes 34033664 bytes
        """, body + nodes)


def packed():
    """2,720 nodes; the first 587 hold 152.67 MB as f16, the others as much as i4."""
    text, nodes, before = ["input %x : f32[1]"], [], "x"
    for i in range(2720):
        text.append(f"weight %w{i} : {'f16[130042]' if i < 587 else 'i4[143152]'}")
        nodes.append(f"%n{i} : f32[1] = op(%{before}, %w{i}) @acc,host")
        before = f"n{i}"
    return lines("""
        source: G62, coremltools#2320: half of the bytes are packed, and counted as what they are
        run: plan --target acc --host-memory 153MB
        expect: engines=2 bound=2 proved parts=2 weight_bytes=305340916
        run: plan --target acc --host-memory 120MB
        expect: engines=3 bound=3 proved parts=3
        """, text + nodes + ["output %n2719"])


def deep():
    return lines("""
        source: G73 and F38, onnx#6423: a chain deeper than a recursion limit, then nothing but cuts
        run: plan --target acc
        expect: engines=1 bound=1 proved parts=1 kept=1500
        run: plan --target acc --exclude n*[02468]
        expect: engines=750 bound=750 proved parts=1500 kept=750
        run: plan --target acc --exclude n*[02468] --min-nodes 2
        expect: engines=0 bound=0 proved parts=1
        """, chain([(1500, "Relu", "@acc,host")], "f32[1]"))


def deeper():
    return lines("""
        source: G73: the same with 50,000 nodes
        run: plan --target acc --min-nodes 50000
        expect: engines=1 bound=1 proved parts=1 kept=50000
        """, chain([(50000, "Relu", "@acc,host")], "f32[1]"))


def limited():
    return lines("""
        source: own; 3,000 engines of 1, 2 and 3 nodes in turn: more than the minimum cut takes on
        run: plan --target acc --max-engines 1500
        expect: engines=1500 bound=1500 proved kept=4000
        run: plan --target acc --max-engines 1500 --pin n0=acc
        expect: engines=1500 bound=1500 proved kept=3999
        run: plan --target acc --max-engines 1499 --min-nodes 3
        expect: engines=1000 bound=1000 proved kept=3000
        """, chain(with_gaps([1 + i % 3 for i in range(3000)])))


def cases():
    return [("g52", fragments()), ("g53", padded()), ("g55", alternating()), ("g56", seven()),
            ("g59", qwen()), ("g62", packed()), ("g73", deep()), ("g73b", deeper()),
            ("own-limited", limited())]
