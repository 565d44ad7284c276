"""Makes the partitioning files of an installed Torch-TensorRT importable without TensorRT.

Those files decide on the CPU and call nothing of TensorRT; but their package imports its libraries
first. Here `tensorrt` is a module whose every name is an empty class, and the packages around the
partitioners are empty ones with the installed paths, so that everything that is then imported below
them (partitioners, converter table with its validators, settings) is the installed file.
"""
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path


class Empty(type):
    """A class that has every attribute: another such class."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = Empty(name, (), {"__init__": lambda self, *args, **kwargs: None})
        setattr(cls, name, made)
        return made

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class EmptyModule(types.ModuleType):
    names = Empty("Names", (), {})

    def __getattr__(self, name):
        return getattr(self.names, name)


def package(name, path):
    made = sys.modules[name] = types.ModuleType(name)
    made.__path__ = [str(path)] if path else []
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
    return made


def load():
    """The module torch_tensorrt.dynamo.partitioning, or None where Torch-TensorRT is not there."""
    found = importlib.util.find_spec("torch_tensorrt")
    if found is None:
        return None
    root = Path(found.submodule_search_locations[0])
    tensorrt = sys.modules["tensorrt"] = EmptyModule("tensorrt")
    tensorrt.__version__, tensorrt.__path__ = "11.0.0", []
    tensorrt.__spec__ = importlib.machinery.ModuleSpec("tensorrt", None)
    tensorrt.tensorrt = tensorrt
    sys.modules["dllist"] = types.SimpleNamespace(dllist=list)
    # An explicit budget is lowered by what the process holds: nothing, here.
    sys.modules["psutil"] = types.SimpleNamespace(
        Process=lambda: types.SimpleNamespace(memory_info=lambda: types.SimpleNamespace(rss=0)),
        virtual_memory=lambda: types.SimpleNamespace(available=0))

    import torch
    torch.cuda.get_device_capability = lambda *_: (8, 0)
    top = package("torch_tensorrt", root)
    top.dynamo = package("torch_tensorrt.dynamo", root / "dynamo")
    top.dynamo.conversion = package("torch_tensorrt.dynamo.conversion", root / "dynamo/conversion")
    for module, names in (("_features", ("ENABLED_FEATURES",)), ("_Device", ("Device",)),
                          ("_Input", ("Input",)),
                          ("_enums", ("DeviceType", "EngineCapability", "Platform", "dtype",
                                      "memory_format"))):
        made = importlib.import_module(f"torch_tensorrt.{module}")
        for name in names:
            setattr(top, name, getattr(made, name))
    importlib.import_module("torch_tensorrt.dynamo.conversion.aten_ops_converters")
    importlib.import_module("torch_tensorrt.dynamo.conversion.ops_evaluators")
    return importlib.import_module("torch_tensorrt.dynamo.partitioning")
