"""Checks of buffer accesses: rank, index dtypes, lanes, stored dtypes, indices that are out of range whatever
happens.
"""

from __future__ import annotations

from weft import dtypes
from weft.ir.dim import Dim, prove_le, prove_lt
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.kernel.regions import Access, Bounds, accesses
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, IntImm, PrimExpr, PrimFunc, Select
from weft.ir.verify.findings import Report

__all__ = ["check_load", "check_ranges", "check_store", "may_cross_rows"]


def check_load(node: BufferLoad, report: Report) -> None:
    """W455, W457, W458 of a load."""
    _check_indices(node, report)
    if node.predicate is not None:
        _check_predicate(node.predicate, dtypes.lanes(node.dtype), report)


def check_store(node: BufferStore, report: Report) -> None:
    """W455, W457, W458, W459 of a store."""
    _check_indices(node, report)
    count = max((dtypes.lanes(index.dtype) for index in node.indices), default=1)
    lanes = count * dtypes.lanes(node.buffer.dtype)
    value = node.value.dtype
    if dtypes.lanes(value) != lanes:
        report.add(
            "W458", f"{dtypes.lanes(value)} lanes are stored to {count} elements of {node.buffer.name!r}", node.span
        )
    elif dtypes.element(value) != dtypes.element(node.buffer.dtype):
        message = f"a {dtypes.element(value)} is stored in {node.buffer.name!r}, a buffer of {node.buffer.dtype}"
        report.add("W459", message, node.span, hint="cast the value")
    if node.predicate is not None:
        _check_predicate(node.predicate, lanes, report)


def _check_indices(node: BufferLoad | BufferStore, report: Report) -> None:
    buffer = node.buffer
    if len(node.indices) != buffer.ndim:
        report.add(
            "W455", f"{len(node.indices)} indices for {buffer.name!r}, which has {buffer.ndim} dimensions", node.span
        )
    for index in node.indices:
        if not dtypes.is_integer(dtypes.element(index.dtype)):
            report.add("W457", f"an index of {buffer.name!r} is {index.dtype}, not an integer", index.span or node.span)
    counts = {dtypes.lanes(index.dtype) for index in node.indices} - {1}
    if len(counts) > 1:
        report.add("W458", f"the indices of {buffer.name!r} have several numbers of lanes", node.span)


def _check_predicate(predicate: PrimExpr, lanes: int, report: Report) -> None:
    if dtypes.element(predicate.dtype) not in ("bool", "uint1"):
        report.add("W461", f"a predicate is {predicate.dtype}, not bool", predicate.span)
    elif dtypes.lanes(predicate.dtype) != lanes:
        report.add("W458", f"a predicate of {dtypes.lanes(predicate.dtype)} lanes for {lanes} elements", predicate.span)


def check_ranges(function: PrimFunc, report: Report) -> None:
    """W456: an index that is outside its dimension for all sizes at which the code runs."""
    for access in accesses(function.body, Bounds()):
        if len(access.intervals) == access.buffer.ndim:
            for position in range(access.buffer.ndim):
                _check_range(access, position, report, function)


def _is_chosen(access: Access, function: PrimFunc) -> bool:
    """Whether a load is a side of `T.Select`: both are loaded, which is an error of the run only."""
    choices = (node for node in walk(function.body) if isinstance(node, Select))
    sides = (side for choice in choices for side in (choice.true_value, choice.false_value))
    return any(access.node is node for side in sides for node in walk(side))


def may_cross_rows(access: Access, position: int) -> bool:
    """Whether the access is a vector along the last dimension of several, which may go on in the next row."""
    indices = getattr(access.node, "indices", ())
    last = access.buffer.ndim > 1 and position == access.buffer.ndim - 1 and len(indices) > position
    return last and dtypes.lanes(indices[position].dtype) > 1


def _check_range(access: Access, position: int, report: Report, function: PrimFunc) -> None:
    interval, buffer = access.intervals[position], access.buffer
    size = access.bounds.of(buffer.shape[position])
    if interval is None or size is None:
        return
    # A fixed index is wrong wherever it stands; a varying one must be known to reach its bound (in a loop of one
    # iteration it may be guarded: `if i + 1 < n`). No index is right in a dimension without elements: there, only code
    # that runs is wrong.
    indices = getattr(access.node, "indices", ())
    constant = position < len(indices) and isinstance(indices[position], IntImm)
    if not (constant and size.high != 0) and not (access.certain and interval.exact):
        return
    if may_cross_rows(access, position):
        return
    wrong: Dim | None = None
    if prove_lt(interval.low, 0):
        wrong = interval.low
    elif prove_le(size.high, interval.high) and (constant or not isinstance(size.low, int) or size.low > 0):
        wrong = interval.high
    if wrong is not None and (constant or not _is_chosen(access, function)):
        report.add("W456", _message(buffer, position, wrong), access.node.span, key=access.node)


def _message(buffer: Buffer, position: int, index: Dim) -> str:
    dims = [prim_to_dim(extent) for extent in buffer.shape]
    sizes = ["..." if dim is None else str(dim) for dim in dims]
    shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    return f"index {index} in dimension {position} is out of range for {buffer.name!r} of shape {shape}"
