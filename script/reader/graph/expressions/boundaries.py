"""Boundaries of slices that a run computes: `x[lo:hi]` with numbers in tensors.

    x[lo:hi]    found = R.tensor_to_shape(R.stack((lo, hi)))          (of a negative one its place from the start)
                sizes = R.match_cast(found, R.Shape(["start", "stop"]))
                x[start:stop]

    x[lo:hi:k]  places = R.arange(lo, hi, k)                          (of boundaries counted as Python counts them)
                taken = R.match_cast(places, R.Tensor(("taken",), "int64"))
                R.take(x, taken, axis=0)

The boundaries become sizes, so that the slice has a shape that is known by name. Where a run decides the step, or goes
back from what it decides, the slice is the positions that it takes.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import NoneType
from typing import Any

from weft.dtypes import is_integer
from weft.ir.dim import Dim, DimExpr, symbol
from weft.ir.graph import Expr, Tuple
from weft.ir.types import ShapeType, TensorType, is_scalar_type
from weft.script.reader.graph.bindings import (
    as_leaf,
    bind_checked,
    fresh_target,
    in_dtype,
    number_dtype,
    scalar_tensor,
    type_of,
)
from weft.script.reader.graph.expressions.operators import call_operator, combine_values
from weft.script.reader.graph.joined import fresh_name
from weft.script.reader.graph.session import GraphSession

__all__ = ["counted_range", "is_boundary", "is_by_places", "new_symbol", "places_of", "with_sizes"]


def is_boundary(session: GraphSession, value: Any, tree: ast.expr) -> bool:
    """Whether a value that a run computes is an integer of rank 0."""
    if not isinstance(value, Expr):
        return False
    ty = type_of(session, as_leaf(session, value, tree), tree)
    return is_scalar_type(ty) and ty.dtype is not None and is_integer(ty.dtype)


def with_sizes(session: GraphSession, part: slice, size: Dim | None, tree: ast.expr) -> slice:
    """A slice of an axis of a size, with sizes in place of what a run computes; W115 where it cannot have them."""
    computed = {"start": part.start, "stop": part.stop}
    computed = {name: value for name, value in computed.items() if isinstance(value, Expr)}
    if not computed:
        return part
    if size is None:
        raise session.fail("W115", "the size of the axis is not known", tree, "use R.match_cast to say the shape")
    places = Tuple(tuple(_from_start(session, value, size, tree) for value in computed.values()))
    stacked = as_leaf(session, call_operator(session, "stack", [places], {}, tree), tree)
    found = as_leaf(session, call_operator(session, "tensor_to_shape", [stacked], {}, tree), tree)
    sizes = {name: new_symbol(session, name) for name in computed}
    bind_checked(session, fresh_target(session, tree), found, ShapeType(tuple(sizes.values())), tree)
    return slice(sizes.get("start", part.start), sizes.get("stop", part.stop), part.step)


def is_by_places(part: slice) -> bool:
    """Whether a slice is the positions that it takes: of a step that a run decides, or back between what it decides."""
    computed = isinstance(part.start, Expr) or isinstance(part.stop, Expr)
    return not isinstance(part.step, (int, NoneType)) or (computed and (part.step or 1) < 0)


def places_of(session: GraphSession, part: slice, size: Dim | None, tree: ast.expr) -> Expr:
    """The positions of a slice of an axis of a size, as Python counts them; W115 where the size is not known."""
    if size is None:
        raise session.fail("W115", "the size of the axis is not known", tree, "use R.match_cast to say the shape")

    def called(name: str, *args: Any) -> Expr:
        return as_leaf(session, call_operator(session, name, list(args), {}, tree), tree)

    step, count = _integer(session, part.step, tree), _integer(session, size, tree)
    forward = as_leaf(session, combine_values(session, "gt", step, 0, tree), tree)
    low = called("where", forward, _integer(session, 0, tree), _integer(session, -1, tree))
    high = called("add", low, count)

    def place(given: Any, otherwise: Expr) -> Expr:
        if given is None:
            return otherwise
        value = _integer(session, given, tree)
        below = as_leaf(session, combine_values(session, "lt", value, 0, tree), tree)
        return called(
            "minimum", called("maximum", called("where", below, called("add", value, count), value), low), high
        )

    start = place(part.start, called("where", forward, low, high))
    stop = place(part.stop, called("where", forward, high, low))
    return counted_range(session, (start, stop, step), "taken", tree)


def counted_range(session: GraphSession, bounds: Sequence[Any], name: str, tree: ast.expr) -> Expr:
    """The numbers of a range that a run decides, as a tensor whose size has a name."""
    integers = [_integer(session, bound, tree) for bound in bounds]
    made = as_leaf(session, call_operator(session, "arange", integers, {}, tree), tree)
    size = TensorType((new_symbol(session, name),), "int64")
    return bind_checked(session, fresh_target(session, tree), made, size, tree)


def _integer(session: GraphSession, value: Any, tree: ast.expr) -> Expr:
    """A boundary as a tensor of int64."""
    made = scalar_tensor(session, value, tree)
    return made if number_dtype(session, made, tree) == "int64" else in_dtype(session, made, "int64", tree)


def _from_start(session: GraphSession, value: Expr, size: Dim, tree: ast.expr) -> Expr:
    """The place of a boundary, counted from the start of the axis; below the axis it is its start."""
    place = _integer(session, value, tree)
    counted = as_leaf(session, combine_values(session, "add", place, size, tree), tree)
    inside = as_leaf(session, call_operator(session, "maximum", [counted, 0], {}, tree), tree)
    below = as_leaf(session, combine_values(session, "lt", place, 0, tree), tree)
    return as_leaf(session, call_operator(session, "where", [below, inside, place], {}, tree), tree)


def new_symbol(session: GraphSession, base: str) -> DimExpr:
    """A size of which a run decides, by a name that nothing has."""
    name = fresh_name(base, lambda name: name in session.symbols or session.has_value(name))
    session.symbols.add(name)
    return symbol(name)
