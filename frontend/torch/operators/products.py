"""Products of rows by a matrix for each group of them, as mixtures of experts have, and of three tensors."""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.dim import Dim
from weft.ir.graph import Expr
from weft.ir.types import TensorType
from weft.script import relax as R

_MOST_GROUPS = 64
"""A product is made for each."""


def grouped(
    n: FxNode, x: Expr, weights: Expr, offs: Expr | None = None, bias: Any = None, out_dtype: Any = None
) -> Expr:
    """Rows (m, k) by matrices (groups, k, n): group g has the rows from offs[g - 1] to offs[g]; the rest becomes 0."""
    if offs is None or bias is not None or (n.rank(x), n.rank(weights)) != (2, 3):
        raise Unsupported("groups that are no ranges of rows")
    (groups, inner, columns), dtype = n.shape(weights), n.dtype_out
    if not isinstance(groups, int) or groups > _MOST_GROUPS:
        raise Unsupported(f"{groups} groups")
    ends = n.emit(R.astype(offs, "int64"), "ends")
    starts = R.concat([R.const([0], "int64"), R.strided_slice(ends, [0], [0], [groups - 1])], 0)
    counts = n.emitter.sizes_of(n.emit(R.subtract(ends, starts), "counts"), "rows")
    parts = []
    for group, (end, count) in enumerate(zip(accumulate(counts), counts, strict=True)):
        rows = _rows(n, x, end - count, end, (count, inner))
        matrix = R.squeeze(R.strided_slice(weights, [0], [group], [group + 1]), [0])
        parts.append(n.emit(R.matmul(rows, n.emit(matrix, "expert"), dtype), "product"))
    rest: Dim = n.shape(x)[0] - sum(counts)
    return R.concat([*parts, n.emit(R.zeros((rest, columns), dtype), "rest")], 0)


def _rows(n: FxNode, x: Expr, start: Dim, end: Dim, dims: tuple[Dim, ...]) -> Expr:
    rows = n.emit(R.strided_slice(x, [0], [start], [end]), "rows")
    return n.emitter.builder.match_cast(rows, TensorType(dims, n.dtype(x)), "group")


def trilinear(
    n: FxNode,
    a: Expr,
    b: Expr,
    c: Expr,
    new_in_a: Sequence[int],
    new_in_b: Sequence[int],
    new_in_c: Sequence[int],
    summed: Sequence[int],
    unroll_dim: int = 1,
) -> Expr:
    """The product of three tensors, each with new axes, summed along some."""
    rank = n.rank(a) + len(new_in_a)
    axes = dict(enumerate(string.ascii_lowercase[:rank]))

    def without(left_out: Sequence[int]) -> str:
        return "".join(letter for axis, letter in axes.items() if axis not in [item % rank for item in left_out])

    terms = ",".join(map(without, (new_in_a, new_in_b, new_in_c)))
    return R.einsum([a, b, c], f"{terms}->{without(summed)}")


row("_grouped_mm grouped_mm_fallback", grouped)
row("_trilinear", trilinear)
