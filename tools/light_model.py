"""Makes a real topology with weights of its real size, in little space.

The `onnx` package carries nine networks whose weights are ConstantOfShape nodes. This turns each of
these into an initializer with external data in a sparse file: the first bytes of every tensor are
random (seeded), the rest is a hole. DenseNet-121, ResNet-50, VGG-19 and others.

    light_model.py NAME DIR       writes DIR/NAME.onnx and DIR/NAME.weights
    light_model.py --list         the names
"""
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

FILLED = 16384  # elements of each tensor that are random


def folder():
    return Path(onnx.__file__).parent / "backend/test/data/light"


def names():
    return sorted(p.stem.removeprefix("light_") for p in folder().glob("light_*.onnx"))


def external(name, dims, location, offset, length):
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=dims)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def make(name, out):
    """Writes the model and its weights below `out`; returns the path of the model."""
    model = onnx.load(folder() / f"light_{name}.onnx")
    graph = model.graph
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    out = Path(out)
    location = f"{name}.weights"
    nodes, weights, offset = [], [], 0
    with open(out / location, "wb") as file:
        for node in graph.node:
            if node.op_type != "ConstantOfShape":
                nodes.append(node)
                continue
            dims = [int(d) for d in constants[node.input[0]]]
            count = int(np.prod(dims))
            random = np.random.default_rng(zlib.crc32(node.output[0].encode()))
            file.seek(offset)
            file.write((0.02 * random.standard_normal(min(count, FILLED))).astype("<f4").tobytes())
            weights.append(external(node.output[0], dims, location, offset, 4 * count))
            offset = (offset + 4 * count + 4095) // 4096 * 4096
        file.truncate(offset)
    read = {i for n in nodes for i in n.input}
    kept = [t for t in graph.initializer if t.name in read]
    inputs = [i for i in graph.input if i.name not in constants]
    made = helper.make_graph(nodes, name, inputs, list(graph.output), kept + weights)
    result = helper.make_model(made, opset_imports=model.opset_import, ir_version=8)
    path = out / f"{name}.onnx"
    path.write_bytes(result.SerializeToString())
    return path


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names()))
    elif len(sys.argv) == 3:
        os.makedirs(sys.argv[2], exist_ok=True)
        print(make(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(__doc__)
