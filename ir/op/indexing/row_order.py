"""The rows of a matrix in order: compared by their first elements, where these are equal by the second ones, and so on.

The last column is sorted first, and each sort keeps the order of the one before among equal elements.

Source: Knuth, The Art of Computer Programming 3, 5.2.5.
"""

from __future__ import annotations

import numpy as np

from weft.dtypes import is_float
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.kernel.prim import binary, intrinsic, unary
from weft.ir.op.common import example, f32, require_dtype, require_rank, tensor, typed
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.indexing.merge_sort import RowSort
from weft.ir.op.kernel_builder import INDEX, Loops, counted, index, joined, load, loops_lowering, store
from weft.ir.op.precision import never
from weft.ir.op.registry import register_op
from weft.ir.tensor import IfThenElse, PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType, TupleType, Type

__all__ = ["differs", "distinct_rows"]


def differs(here: PrimExpr, before: PrimExpr) -> PrimExpr:
    """Whether two elements have different values; all nan are one value."""
    unequal = binary("ne", here, before)
    if not is_float(here.dtype):
        return unequal
    both = binary("and", intrinsic("isnan", here), intrinsic("isnan", before))
    return binary("and", unequal, unary("not", both))


@loops_lowering
def _lower_row_order(frame: Loops) -> PrimFunc | None:
    rows = frame.input("rows")
    order, number = frame.outputs("places", "number")
    size, columns = index(rows.shape[0]), index(rows.shape[1])

    def by_column(step: PrimExpr) -> Stmt:
        column = columns - 1 - step
        sort = RowSort(rows.shape[0], size, lambda at: load(rows, [load(order, [at]), column]), rows.dtype, False)
        for buffer in sort.buffers:
            frame.own(buffer)
        moved = counted("i", size, lambda i: store(sort.merged, load(order, [sort.at(i)]), [i]))
        back = counted("i", size, lambda i: store(order, load(sort.merged, [i]), [i]))
        return joined(*sort.statements(), moved, back)

    def element(i: PrimExpr, column: PrimExpr) -> PrimExpr:
        return load(rows, [load(order, [i]), column])

    def numbered(before: PrimExpr) -> Stmt:
        here, last = before + 1, load(number, [before])

        def compared(column: PrimExpr) -> Stmt:
            return IfThenElse(differs(element(here, column), element(before, column)), store(number, last + 1, [here]))

        return joined(store(number, last, [here]), counted("column", columns, compared))

    return frame.finish(
        counted("i", size, lambda i: joined(store(order, i, [i]), store(number, index(0), [i]))),
        counted("step", columns, by_column),
        counted("i", binary("max", size - 1, index(0)), numbered),
    )


def _numpy_row_order(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.arange(len(rows))
    for column in rows.T[::-1]:
        order = order[np.argsort(column[order], kind="stable")]
    here, before = rows[order][1:], rows[order][:-1]
    unequal = (here != before) & ((here == here) | (before == before))
    return order.astype(INDEX), np.concatenate([np.zeros(len(rows[:1]), INDEX), np.cumsum(unequal.any(1), dtype=INDEX)])


def distinct_rows(x: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    """What `numpy.unique` gives along an axis with all that it can give, where all nan are one."""
    moved = np.moveaxis(x, axis, 0)
    order, number = _numpy_row_order(moved.reshape(len(moved), int(np.prod(moved.shape[1:]))))
    _, first, counts = np.unique(number, return_index=True, return_counts=True)
    inverse = np.empty_like(number)
    inverse[order] = number
    return np.take(x, order[first], axis), order[first], inverse, counts


@register_op(
    "dynamic.row_order",
    [Param("rows")],
    lowering=_lower_row_order,
    numpy=_numpy_row_order,
    pure=True,
    examples=(
        example(typed("int32", "n", 3), ranges={"rows": (0, 2)}),
        example(typed("int64", 7, "m"), ranges={"rows": (0, 2)}),
        example(f32(5, 2)),
    ),
    precision=never("it gives positions, and those of equal rows depend on every bit"),
)
def row_order(args: Arguments, context: TypeContext) -> Type:
    """The positions of the rows of a matrix in ascending order, and for each in this order how many different rows
    stand before it; nan counts as the greatest, and all nan are one.

    Errors: ShapeError W202 for another rank; DTypeError W321.
    """
    rows = tensor(args, "rows", context)
    require_rank(args, "rows", rows, 2)
    require_dtype(args, "rows", rows, "number")
    dims = dims_of(rows)
    found = TensorType(None if dims is None else dims[:1], INDEX, 1, rows.vdevice)
    return TupleType((found, found))
