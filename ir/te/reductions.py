"""Reductions: expressions combined over axes.

    reduction ::= sum | max | min | prod (expr, axis) | comm_reducer(combine, identity)((expr, ...), axis)

A reduction is a whole formula, not a part of one: W480 where it stands in an expression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from weft import dtypes
from weft.errors import ShapeError, Span, VerifyError
from weft.ir.dim import DimExpr
from weft.ir.kernel import prim
from weft.ir.node import ignored, node
from weft.ir.te.scalars import const, maximum, minimum
from weft.ir.te.sizes import INDEX, Size, as_extent, size
from weft.ir.tensor import Extent, PrimExpr
from weft.support.guards import is_listing
from weft.support.records import dataclass

__all__ = ["Axes", "ReduceAxis", "Reduction", "comm_reducer", "max", "min", "prod", "reduce_axis", "sum"]


@node
class ReduceAxis(PrimExpr):
    """An index that a reduction runs over, in [start, start + extent); identity is the object."""

    name: str = ignored(default="")
    dtype: str = INDEX
    start: Extent = 0
    extent: Extent = 1
    span: Span | None = ignored(default=None)


def reduce_axis(bounds: tuple[Size, Size], name: str = "k") -> ReduceAxis:
    """An index over [low, high) for a reduction; ShapeError W221 where high is below low.

    >>> k = reduce_axis((0, 16), name="k")
    >>> k.extent, k.dtype
    (16, 'int64')
    """
    low, high = bounds
    if isinstance(low, int) and isinstance(high, int) and high < low:
        raise ShapeError(f"the axis {name} goes from {low} to {high}: a negative size", code="W221")
    if isinstance(low, int) and low == 0:
        return ReduceAxis(name, INDEX, start=0, extent=as_extent(high))
    if isinstance(low, (int, DimExpr)) and isinstance(high, (int, DimExpr)):
        return ReduceAxis(name, INDEX, start=as_extent(low), extent=as_extent(high - low))
    return ReduceAxis(name, INDEX, start=as_extent(low), extent=size(high) - size(low))


@dataclass(frozen=True, eq=False, slots=True)
class Reduction:
    """Expressions combined over axes; it is a whole formula, not a part of one."""

    combine: Callable[[tuple[PrimExpr, ...], tuple[PrimExpr, ...]], tuple[PrimExpr, ...]]
    identity: tuple[PrimExpr, ...]
    values: tuple[PrimExpr, ...]
    axes: tuple[ReduceAxis, ...]
    may_be_empty: bool = True  # False: the result for empty axes is never read, so nothing need be stored for it

    def no_arithmetic(self, *_: Any) -> Any:
        """VerifyError W480: what arithmetic with a reduction gives."""
        raise VerifyError(
            "a reduction is used inside an expression",
            code="W480",
            hint="give the reduction a compute of its own and use the tensor that it returns",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = no_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = no_arithmetic


Axes: TypeAlias = ReduceAxis | Sequence[ReduceAxis]


def comm_reducer(
    combine: Callable[..., Any], identity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Reduction]:
    """A reduction of the user's own; `combine(x, y)` must be associative, `identity(dtype)` neutral for it.

    For several values at once (an index and a value), the functions take and give tuples: `combine((i, a), (j, b))`,
    `identity(dtype_i, dtype_a)`.

    >>> product = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype))
    """

    def reducer(value: Any, axis: Axes) -> Reduction:
        several = is_listing(value)
        values = tuple(prim.as_expr(part) for part in value) if several else (prim.as_expr(value),)
        neutral = identity(*(part.dtype for part in values))
        neutral = tuple(neutral) if several else (neutral,)

        def combined(a: tuple[PrimExpr, ...], b: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
            return tuple(combine(a, b)) if several else (combine(a[0], b[0]),)

        start = tuple(prim.as_expr(part, values[i].dtype) for i, part in enumerate(neutral))
        return Reduction(combined, start, values, (axis,) if isinstance(axis, ReduceAxis) else tuple(axis))

    reducer.__name__ = name
    return reducer


def _least(dtype: str) -> PrimExpr:
    return const(dtypes.lowest(dtype), dtype)


def _greatest(dtype: str) -> PrimExpr:
    return const(dtypes.highest(dtype), dtype)


def _zero(dtype: str) -> PrimExpr:
    return const(0, dtype)


def _one(dtype: str) -> PrimExpr:
    return const(1, dtype)


_sum_reducer = comm_reducer(operator.add, _zero, "sum")
_prod_reducer = comm_reducer(operator.mul, _one, "prod")
_max_reducer = comm_reducer(maximum, _least, "max")
_min_reducer = comm_reducer(minimum, _greatest, "min")


def sum(expr: Any, axis: Axes) -> Reduction:
    """The sum over the axes; 0 when they are empty."""
    return _sum_reducer(expr, axis)


def prod(expr: Any, axis: Axes) -> Reduction:
    """The product over the axes; 1 when they are empty."""
    return _prod_reducer(expr, axis)


def max(expr: Any, axis: Axes) -> Reduction:
    """The greatest value over the axes; the least value of the dtype (-inf for floats) when they are empty."""
    return _max_reducer(expr, axis)


def min(expr: Any, axis: Axes) -> Reduction:
    """The least value over the axes; the greatest value of the dtype (inf for floats) when they are empty."""
    return _min_reducer(expr, axis)
