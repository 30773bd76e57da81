"""Programs of PyTorch as modules.

    from_exported(torch.export.export(net, args, dynamic_shapes=...))        -> IRModule with one function, `main`
    torch.compile(net, backend="weft", dynamic=True)                         found by its entry point

Parameters and buffers are constants; dynamic sizes are symbols, with their upper bounds. What has no native form runs
in PyTorch (`R.call_py`) and stands in the report. Needs the extra `torch`. Importing this module registers the function
that such nodes are calls of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.dlpack import offered_array
from weft.errors import ModelError
from weft.frontend.extras import require
from weft.frontend.report import attach_report
from weft.frontend.torch import operators as _operators
from weft.frontend.torch.importer import Importer
from weft.frontend.torch.table import TABLE, row
from weft.ir.dim import DimExpr
from weft.ir.module import IRModule

__all__ = ["TABLE", "from_exported", "row"]

_KEPT = (
    "scaled_dot_product_attention", "layer_norm", "linear", "gelu", "silu", "conv1d", "conv2d", "conv3d", "batch_norm",
    "softmax", "relu6", "hardswish", "matmul", "group_norm", "rms_norm", "embedding",
)  # fmt: skip
"""Operators that are imported as they are and not taken apart."""


def from_exported(program: Any) -> IRModule:
    """A module with the function `main` of an exported program: its inputs, in order, to its results.

    Raises ModelError W977 for what has no form (a buffer that the program changes, a result that is None),
    MissingExtraError W971 without torch.
    """
    torch = require("torch", "torch")
    if not isinstance(program, torch.export.ExportedProgram):
        raise ModelError(
            f"an exported program is wanted, got {type(program).__name__}", code="W977",
            hint="torch.export.export(net, args)",
        )  # fmt: skip
    program = program.run_decompositions(_decompositions(torch))
    signature = program.graph_signature
    if signature.buffers_to_mutate:
        names = ", ".join(signature.buffers_to_mutate.values())
        raise ModelError(f"the program changes its buffers {names}, which has no form", code="W977")
    state = {**program.state_dict, **program.constants}
    held = {
        **signature.inputs_to_parameters, **signature.inputs_to_buffers, **signature.inputs_to_lifted_tensor_constants,
    }  # fmt: skip

    def placeholder(node: Any) -> np.ndarray | None:
        name = held.get(node.name)
        return None if name is None else array_of(state[name])

    importer = Importer()
    module, report = importer.run(
        program.graph, placeholder, lambda node: node.args[0], attrs=_bounds(importer, program.range_constraints)
    )
    return attach_report(module, report)


def _decompositions(torch: Any) -> Any:
    table = torch.export.default_decompositions()
    for operator in [key for key in table if getattr(key, "_opname", "") in _KEPT]:
        table.pop(operator)
    return table


def array_of(tensor: Any) -> np.ndarray:
    """The array of a tensor; bfloat16 as that of `ml_dtypes`."""
    array = offered_array(tensor.detach().contiguous())
    assert array is not None  # tensors offer one, or fail
    return array


def _bounds(importer: Importer, constraints: Mapping[Any, Any]) -> dict[str, Any] | None:
    """What the program says of the greatest sizes: the attribute that planners read."""
    found: dict[str, int] = {}
    for size, limits in constraints.items():
        dim = importer.dim(size)
        upper = getattr(limits, "upper", None)
        most = int(str(upper)) if str(upper).isdecimal() else 2**31
        if most < 2**31 and isinstance(dim, DimExpr) and str(dim).isidentifier():
            found[str(dim)] = most
    return {"tir_var_upper_bound": found} if found else None
