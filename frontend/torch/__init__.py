"""Programs of PyTorch as modules.

    from_exported(torch.export.export(net, args, dynamic_shapes=...))        -> IRModule with one function, `main`
    from_exported(program, weights="parameters"), parameters(program)        weights come after the inputs
    state(program)                                                           the buffers that it changes, at first
    torch.compile(net, backend="weft", dynamic=True)                         found by its entry point

Parameters and buffers are constants; dynamic sizes are symbols, with their upper bounds. What has no native form runs
in PyTorch (`R.call_py`) and stands in the report. Needs the extra `torch`. Importing this module registers the function
that such nodes are calls of.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from weft.errors import ModelError
from weft.frontend.report import ImportReport, attach_report
from weft.frontend.torch import operators as _operators
from weft.frontend.torch.checking import check
from weft.frontend.torch.functional import is_ready
from weft.frontend.torch.importer import Importer
from weft.frontend.torch.program import Program, array_of, read_program, taken_apart
from weft.frontend.torch.reference import allow
from weft.frontend.torch.table import TABLE, row
from weft.ir.attrs import UPPER_BOUNDS
from weft.ir.dim import DimExpr
from weft.ir.module import IRModule

__all__ = ["TABLE", "allow", "array_of", "check", "from_exported", "parameters", "row", "state"]


def from_exported(program: Any, *, weights: Literal["constants", "parameters"] = "constants") -> IRModule:
    """A module with the function `main` of an exported program: its inputs, in order, to its results.

    Buffers that the program changes are state: parameters after the inputs, whose new values follow the results, as
    those of inputs that it changes do. `weights` says what parameters and other buffers become; as parameters they come
    last. Raises ModelError W977 for what has no form, MissingExtraError W971 without torch.
    """
    if weights not in ("constants", "parameters"):
        raise ModelError(f'weights are "constants" or "parameters", got {weights!r}', code="W977")
    apart = _read(program).exported
    importer, module, report = _imported(read_program(apart), weights == "parameters")
    if importer.failed and apart is program:
        apart = taken_apart(program)
        importer, module, report = _imported(read_program(apart), weights == "parameters")
    for _ in range(_ROUNDS):
        further = taken_apart(apart, importer.failed) if importer.failed else apart
        if further is apart:
            break
        apart = further
        importer, module, report = _imported(read_program(apart), weights == "parameters")
    return attach_report(module, report)


def _read(program: Any) -> Program:
    """A program without effects, in operators that have rows, as far as that goes."""
    read = read_program(program)
    return read if is_ready(program.graph) else read_program(taken_apart(program))


_ROUNDS = 4  # definitions of definitions


def _imported(program: Program, parameters: bool) -> tuple[Importer, IRModule, ImportReport]:
    importer = Importer()
    exported = program.exported
    program.name_sizes(importer.sizes)
    attrs = _bounds(importer, exported.range_constraints)
    placeholder = partial(program.placeholder, parameters=parameters)
    module, report = importer.run(exported.graph_module, exported.graph, placeholder, program.ordered_results, attrs)
    return importer, module, report


def state(program: Any) -> dict[str, np.ndarray]:
    """The buffers that a program changes, by name in the order of the parameters, as they are before the first call."""
    return _read(program).initial_state


def parameters(program: Any) -> dict[str, np.ndarray]:
    """The weights of a program in the order in which `from_exported(..., weights="parameters")` takes them."""
    read = _read(program)
    return {name: array_of(read.held[name]) for name in read.weights}


def _bounds(importer: Importer, constraints: Mapping[Any, Any]) -> dict[str, Any] | None:
    """What the program says of the greatest sizes: the attribute that planners read."""
    found: dict[str, int] = {}
    for size, limits in constraints.items():
        dim = importer.sizes.dim(size)
        upper = getattr(limits, "upper", None)
        most = int(str(upper)) if str(upper).isdecimal() else 2**31
        if most < 2**31 and isinstance(dim, DimExpr) and str(dim).isidentifier():
            found[str(dim)] = most
    return {UPPER_BOUNDS: found} if found else None
