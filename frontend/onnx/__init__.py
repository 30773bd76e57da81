"""ONNX models as modules.

    load(model)                    a path, bytes or a ModelProto -> IRModule with one function, `main`
    load(model, weights="parameters")      initial values become parameters after the inputs: `parameters(model)`
    load(model, fixed={"axes": [1]})       inputs whose values are known
    check(model)                           the results beside those of onnxruntime or the reference

Sizes of the inputs that have a name are symbols; `import_report` of the module says what became of each node. Needs the
extra `onnx`. Importing this module registers the Python function that nodes without a native form are calls of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from weft.errors import ModelError
from weft.frontend.onnx import operators as _operators
from weft.frontend.onnx.checking import CheckResult, check
from weft.frontend.onnx.importer import Importer
from weft.frontend.onnx.model import read_model
from weft.frontend.onnx.table import TABLE, Row, row
from weft.frontend.report import attach_report
from weft.ir.module import IRModule

__all__ = ["TABLE", "CheckResult", "Row", "check", "load", "parameters", "row"]


def load(
    model: Any,
    *,
    weights: Literal["constants", "parameters"] = "constants",
    fixed: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> IRModule:
    """A module with the function `main` of a model, given as a path, its bytes, an open file or a ModelProto.

    `weights` says what the initial values become; `fixed` gives inputs their values; `folder` is where external data
    lies, by default beside the file; `progress` is told how many nodes of how many are done. Large arrays are those of
    the file, which stays mapped. Raises ModelError W973 for what is no valid model, W974 for tensors whose bytes do not
    fit, W975 for external data outside of the folder, MissingExtraError W971 without the package onnx.
    """
    if weights not in ("constants", "parameters"):
        raise ModelError(f'weights are "constants" or "parameters", got {weights!r}', code="W977")
    read = read_model(model, folder)
    module, report = Importer(read, parameters=weights == "parameters", fixed=fixed).run(progress)
    return attach_report(module, report)


def parameters(model: Any, *, folder: str | Path | None = None) -> dict[str, np.ndarray]:
    """The initial values of a model by name, in the order in which `load(..., weights="parameters")` takes them."""
    read = read_model(model, folder)
    return {
        name: array for name, array in read.initializers(read.graph) if array.size > 64 or array.dtype.kind not in "iub"
    }
