"""Masks between brackets: `x[mask]` of a tensor of truth values, which stands for as many axes as it has.

    x[mask]     places = R.match_cast(R.nonzero(mask), R.Tensor((1, "chosen"), "int64"))
                R.take(x, R.squeeze(places, axis=0), axis=0)

As in NumPy, a mask is the positions where it is true, one index for each of its axes; it has the sizes of these axes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from weft.ir.deduction.infer import type_text
from weft.ir.dim import Dim, prove_equal
from weft.ir.graph import Expr, PrimValue
from weft.ir.types import TensorType
from weft.script.reader.graph.bindings import as_leaf, bind_checked, fresh_target, type_of
from weft.script.reader.graph.expressions.boundaries import new_symbol
from weft.script.reader.graph.expressions.operators import call_operator
from weft.script.reader.graph.session import GraphSession

__all__ = ["Item", "axes_of", "mask_of", "with_positions"]

Item: TypeAlias = tuple[Any, ast.expr]
"""A slice with its boundaries read, None, or an index; and where it stands."""


def mask_of(session: GraphSession, item: Any, place: ast.expr) -> TensorType | None:
    """The type of an index that is a tensor of truth values with axes."""
    if not isinstance(item, Expr):
        return None
    ty = type_of(session, as_leaf(session, item, place), place)
    return ty if isinstance(ty, TensorType) and ty.dtype == "bool" and ty.ndim > 0 else None


def axes_of(session: GraphSession, item: Any, place: ast.expr) -> int:
    """How many axes an item between brackets stands for."""
    if item is None or item is Ellipsis:
        return 0
    mask = mask_of(session, item, place)
    return 1 if mask is None else mask.ndim


def with_positions(session: GraphSession, items: Sequence[Item], ty: TensorType) -> list[Item]:
    """Items with positions in place of masks; W115 where sizes are not known, W201 for a mask of other sizes."""
    made, axis = list[Item](), 0
    for item, place in items:
        mask = mask_of(session, item, place)
        if mask is None:
            made.append((item, place))
        elif ty.dims is None or mask.dims is None:
            raise session.fail("W115", "the size of the axis is not known", place, "use R.match_cast to say the shape")
        else:
            dims = ty.dims[axis : axis + mask.ndim]
            checked = _of_sizes(session, as_leaf(session, item, place), mask, dims, place)
            made.extend((index, place) for index in _positions(session, checked, mask.ndim, place))
        axis += axes_of(session, item, place)
    return made


def _of_sizes(session: GraphSession, mask: Expr, ty: TensorType, dims: Sequence[Dim], place: ast.expr) -> Expr:
    """The mask, whose sizes are proved or checked to be those of the axes."""
    equal = [prove_equal(size, dim) for size, dim in zip(ty.dims or (), dims, strict=True)]
    if False in equal:
        axes = TensorType(tuple(dims), "bool")
        raise session.fail("W201", f"a mask of {type_text(ty)} where the axes have {type_text(axes)}", place)
    if all(equal):
        return mask
    return bind_checked(session, fresh_target(session, place, "mask"), mask, TensorType(tuple(dims), "bool"), place)


def _positions(session: GraphSession, mask: Expr, count: int, place: ast.expr) -> Iterator[Expr]:
    """The positions where a mask is true, in each of its axes."""
    found = as_leaf(session, call_operator(session, "nonzero", [mask], {}, place), place)
    shape = TensorType((count, new_symbol(session, "chosen")), "int64")
    chosen = bind_checked(session, fresh_target(session, place), found, shape, place)
    if count == 1:
        yield as_leaf(session, call_operator(session, "squeeze", [chosen], {"axis": 0}, place), place)
        return
    for axis in range(count):
        row = call_operator(session, "take", [chosen, PrimValue(axis, "int64")], {"axis": 0}, place)
        yield as_leaf(session, row, place)
