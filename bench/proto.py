"""ONNX files, written as bytes: a model of 10^6 nodes in seconds, 8 GiB of weights in no space.

Only what the benches need: nodes, external and inline f32 weights, value types. The graph is one
message whose length stands before it. It is written first, behind room that the model's own fields
then fill exactly (`producer_name` is padded), so nothing is gathered in memory or copied.
"""
import os

F32 = 1
ROOM = 64  # bytes before the graph


def varint(x):
    out = bytearray()
    while x > 127:
        out.append(x & 127 | 128)
        x >>= 7
    out.append(x)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def head(field, length):
    return varint(field << 3 | 2) + varint(length)


def field(number_, value):
    """A string or a message."""
    value = value.encode() if isinstance(value, str) else value
    return head(number_, len(value)) + value


def node(op, args, outs, domain=""):
    """NodeProto, as a field of the graph; named after its first output, as exporters do."""
    body = b"".join([*(field(1, a) for a in args), *(field(2, o) for o in outs)])
    body += field(3, f"/{outs[0]}/{op}") + field(4, op)
    return field(1, body + (field(7, domain) if domain else b""))


def typed(number_, name, dims):
    """ValueInfoProto of an f32 tensor; number_: 11 input, 12 output, 13 value_info."""
    shape = b"".join(field(1, number(1, d)) for d in dims)
    return field(number_, field(1, name) + field(2, field(1, number(1, F32) + field(2, shape))))


def _tensor(name, dims):
    return b"".join(number(1, d) for d in dims) + number(2, F32) + field(8, name)


def external(name, dims, location, offset, length):
    entries = (("location", location), ("offset", offset), ("length", length))
    pairs = b"".join(field(13, field(1, k) + field(2, str(v))) for k, v in entries)
    return field(5, _tensor(name, dims) + pairs + number(14, 1))


def inline(name, dims, length):
    """What stands before the `length` bytes of raw_data."""
    body = _tensor(name, dims)
    raw = head(9, length)
    return head(5, len(body) + len(raw) + length) + body + raw


class Model:
    """with Model(path) as m: m.write(fields of the graph)"""

    def __init__(self, path, opset=17, domains=()):
        self.file = open(path, "wb", buffering=1 << 20)
        self.file.seek(ROOM)
        self.imports = field(8, number(2, opset))
        for domain in domains:
            self.imports += field(8, field(1, domain) + number(2, 1))
        self.write = self.file.write

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.write(field(2, "bench"))  # the graph's name
            graph = head(7, self.file.tell() - ROOM)
            fixed = number(1, 8) + self.imports  # IR version 8
            pad = ROOM - len(fixed) - len(graph) - len(field(2, ""))
            self.file.seek(0)
            self.write(fixed + field(2, "bench".ljust(pad)) + graph)
        self.file.close()


def sparse(path, total, tensors):
    """A file of `total` bytes, holes but for 4 KiB of data at each of `tensors` (offsets)."""
    with open(path, "wb") as file:
        for at in tensors:
            os.pwrite(file.fileno(), b"\x00\x00\x80\x3c" * 1024, at)
        file.truncate(total)
