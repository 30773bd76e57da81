"""Few columns: when inner products beat tiles whose vectors a few columns would not fill.

    c[i, j] = c[i, j] + a[i, k] * b[k, j]        a lies along k, and j has a few values

A tile loads an element of A for every vector of columns, whether these fill it or not. Inner products read A in whole
vectors along k, each of which all columns share; they multiply once for each column, and bring a vector of sums
together for each result. B has to lie along k for that: it is copied where it does not.
"""

from __future__ import annotations

from weft.ir.kernel.prim import binary, const
from weft.ir.tensor import Buffer, BufferLoad, PrimExpr
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.gemm.dot_products.dot import dot_of
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, packs_whole
from weft.transform.autoschedule.rules.strides import kinds_in, step_along

__all__ = ["columns_along_k", "few_columns"]

_CHAINS = 8
"""Multiply-adds that have to be on their way for none to wait: two a cycle, each of four cycles."""
_COPIED = 5
"""Elements of A that are copied in groups in the time of a multiply-add."""
_STORE = 2
"""What bringing a vector of sums together costs beyond its halvings, in multiply-adds."""


def few_columns(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> bool | PrimExpr:
    """Whether inner products cost less than tiles, or the condition on a symbolic number of columns."""
    if not _lies_well(found) or found.has_long_epilogue:
        return False
    assert found.r is not None
    columns = found.extents[found.v]
    if isinstance(columns, int):
        return 1 < columns < 2 * capacity.lanes and _costs_less(found, columns, capacity, constants)
    most = _most_columns(found, capacity)
    # Blocks of something longer are seldom short; results beyond the last column are that once more, which may not be
    # added twice.
    if most < 2 or not found.runs or found.accumulates or most_of(columns) is not None:
        return False
    return binary("le", columns, const(most, INDEX))


def _lies_well(found: Contraction) -> bool:
    """Whether rows of A lie along k, and both operands can be read in vectors."""
    if found.window is not None or found.r is None or len(found.reduction) != 1 or 0 in found.extents.values():
        return False
    rows = found.extents[found.r]
    readable = kinds_in(found.of_a(found.scalar)) is not None and kinds_in(found.of_b(found.vector)) is not None
    (k,) = found.reduction
    there = found.runs or step_along(found.vector, k) == 1
    return readable and there and step_along(found.scalar, k) == 1 and not (isinstance(rows, int) and rows < 2)


def _costs_less(found: Contraction, columns: int, capacity: Capacity, constants: frozenset[Buffer]) -> bool:
    """Both costs in multiply-adds of vectors; a size that is not known is a typical one."""
    assert found.r is not None
    typical, lanes = capacity.knobs.typical_extent, capacity.lanes
    rows, k = (x if isinstance(x := found.extents[var], int) else typical for var in (found.r, found.reduction[0]))
    copied = 0 if not found.runs or packs_whole(found, found.vector, found.v, constants) else k
    inner = columns * (rows * (k // lanes + _combining(lanes)) + copied)
    return inner < _steps_of_tiles(found, k, capacity) * max(rows * ceil_div(columns, lanes), _CHAINS)


def _steps_of_tiles(found: Contraction, k: int, capacity: Capacity) -> int:
    """The steps of a tile along k; instructions for dot products take fewer, and a copy of A that is in groups."""
    dot = dot_of(found, capacity.machine)
    return k if dot is None else k // dot.group + k // _COPIED


def _combining(lanes: int) -> int:
    """The cost of bringing a vector of sums together."""
    return lanes.bit_length() - 1 + _STORE


def _most_columns(found: Contraction, capacity: Capacity) -> int:
    """The columns up to which inner products of many rows cost less than tiles of a vector; 0 where k is a symbol.

    A second form is text to compile, and products of which nothing is known have several already.
    """
    k, lanes = found.extents[found.reduction[0]], capacity.lanes
    if not isinstance(k, int):
        return 0
    return min(lanes, _steps_of_tiles(found, k, capacity) // (k // lanes + _combining(lanes)))


def columns_along_k(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> tuple[Buffer, BufferLoad]:
    """Where columns of B that lie across are copied to, in the type of the sums but for constants; and B there."""
    (k,) = found.reduction
    columns = found.extents[found.v]
    is_constant = packs_whole(found, found.vector, found.v, constants)
    dtype = found.vector.dtype if is_constant else found.dtype
    buffer = Buffer("b_columns", (columns if isinstance(columns, int) else capacity.lanes, found.extents[k]), dtype)
    return buffer, BufferLoad(buffer, (found.v, k))
