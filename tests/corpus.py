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


SILERO = {"input": "1x576", "state": "2x1x128", "h": "1x1x128", "c": "1x1x128"}


def verify_options(path, folder):
    """What `verify` must be told so that the model runs at all."""
    if DEBIAN in path.parents:
        return test_inputs(path, folder)
    names = [i.name for i in onnx.load(path, load_external_data=False).graph.input]
    options = []
    for name in names:
        if "silero" in str(path) and name in SILERO:
            options += ["--shape", f"{name}:{SILERO[name]}"]
        if name == "sr":
            options += ["--range", "sr=16000..16000"]
    return options


def rank_at_run_time(path, value, options):
    """The rank that ONNX Runtime gives to an inner value of the model."""
    import numpy as np
    import onnxruntime
    model = onnx.load(path)
    model.graph.output.add(name=value)
    shapes = dict(o.split(":") for o in options if ":" in o)
    feed = {}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for i in session.get_inputs():
        dims = [int(d) for d in shapes[i.name].split("x")] if i.name in shapes else \
            [d if isinstance(d, int) else 1 for d in i.shape]
        kind = np.int64 if "int64" in i.type else np.float32
        feed[i.name] = np.full(dims, 16000, kind) if i.name == "sr" else np.zeros(dims, kind)
    return session.run([value], feed)[0].ndim


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
