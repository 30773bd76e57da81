"""Models of other frameworks become modules.

    weft.frontend.load("model.onnx")                       by the ending of the file; importers can be added
    weft.frontend.onnx.load("model.onnx")                  ONNX, the extra `onnx`
    weft.frontend.torch.from_exported(program)             PyTorch's exported programs, the extra `torch`
    weft.frontend.safetensors.load("model.safetensors")    arrays by name, mapped from the file
    weft.frontend.import_report(module)                    what became of each node of the model

One table for each format says what its operators are in ours. What has no form there is a call of a Python function
(`R.call_py`) and stands in the report; a model that is not valid is a `weft.ModelError` that names the node.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.frontend.importers import load, register_importer, unregister_importer
from weft.frontend.report import ImportedNode, ImportReport, import_report

if TYPE_CHECKING:
    from weft.frontend import onnx, safetensors, torch

__all__ = [
    "ImportReport",
    "ImportedNode",
    "import_report",
    "load",
    "onnx",
    "register_importer",
    "safetensors",
    "torch",
    "unregister_importer",
]

_FORMATS = ("onnx", "safetensors", "torch")

if __name__ != "weft.frontend":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.frontend, not frontend")


def __getattr__(name: str) -> Any:
    if name in _FORMATS:
        return importlib.import_module(f"weft.frontend.{name}")
    raise AttributeError(f"module 'weft.frontend' has no attribute {name!r}")
