"""The models that tests split: real topologies, models from packages, Debian's conformance models."""
import os
import sys
from pathlib import Path

import onnx
from onnx import numpy_helper

SOURCE = Path(os.environ.get("CUTSET_SOURCE", Path(__file__).parent.parent))
sys.path.insert(0, str(SOURCE / "tools"))
import light_model  # noqa: E402

DEBIAN = Path("/usr/share/libonnx-testdata/data")


def packages():
    """The .onnx files that the silero-vad and magika packages carry."""
    site = Path(onnx.__file__).parent.parent
    return sorted(site.glob("silero_vad/data/*.onnx")) + sorted(site.glob("magika/models/*/*.onnx"))


def debian():
    return sorted(DEBIAN.glob("*/*/*.onnx"))


def light(folder):
    """The nine light networks with external weights in sparse files."""
    return [light_model.make(name, folder) for name in light_model.names()]


def test_inputs(path, folder):
    """--input options for the recorded inputs beside a Debian model; None where one is no tensor."""
    import numpy as np
    model = onnx.load(path, load_external_data=False)
    data = path.parent / "test_data_set_0"
    initial = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in initial or model.ir_version >= 4]
    options = []
    for number, name in enumerate(names):
        file = data / f"input_{number}.pb"
        kind = next(i.type.WhichOneof("value") for i in model.graph.input if i.name == name)
        if not file.exists():
            continue
        if kind != "tensor_type":
            return None
        tensor = onnx.TensorProto()
        tensor.ParseFromString(file.read_bytes())
        array = numpy_helper.to_array(tensor)
        if array.dtype == object or array.dtype.kind in "SUV" or str(array.dtype) not in np.sctypeDict:
            return None
        target = Path(folder) / f"{number}.npy"
        np.save(target, array)
        options += ["--input", f"{name}={target}"]
    return options
