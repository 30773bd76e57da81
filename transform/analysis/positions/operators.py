"""The operators whose elements are formulas of the position, each a function of a call and a position.

Division is not among them, and integers stay small (`_small`): no formula is of a value that may wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from weft.dtypes import is_float, is_integer
from weft.ir import Tuple
from weft.ir.dim import Dim, DimExpr, free_symbols, prove_equal
from weft.ir.dim.expression import terms_of
from weft.transform.analysis.positions.constants import number_in
from weft.transform.analysis.positions.evaluate import Operator, Position, View, position_in
from weft.transform.analysis.positions.formulas import (
    SMALL,
    All,
    Choice,
    Element,
    both,
    choose,
    is_dim,
    is_nonnegative,
    mapped,
    negated,
)

__all__ = ["OPERATORS"]

_Binary: TypeAlias = "Callable[[View, Element, Element], Element | None]"


def _small(value: Dim) -> Dim | None:
    """An integer that does not wrap: a sum of symbols with small factors."""
    if isinstance(value, int):
        return value if abs(value) < SMALL else None
    terms = terms_of(value)
    plain = all(sum(power for _, power in monomial.powers) <= 1 for monomial in terms)
    return value if plain and all(abs(factor) < SMALL for factor in terms.values()) else None


# Sources -------------------------------------------------------------------------------------------------------------


def _arange(view: View, at: Position) -> Element | None:
    start = 0 if view["end"] is None else view.number("start")
    step = view.number("step")
    if not isinstance(start, (int, DimExpr)) or not isinstance(step, int) or not is_integer(view.dtype):
        return None
    return _small(start + at[0] * step)


def _full(view: View, at: Position) -> Element | None:
    value = view.number("fill_value")
    if isinstance(value, DimExpr):
        return _small(value) if view.dtype in ("int32", "int64") else None
    return number_in(view.dtype, value) if isinstance(value, (int, float)) else None


def _filled(number: int) -> Operator:
    return lambda view, at: number_in(view.dtype, number)


# Views ---------------------------------------------------------------------------------------------------------------


def _reshape(view: View, at: Position) -> Element | None:
    """Sizes of 1 come and go."""
    dims = view.sizes(view["x"])
    if dims is None:
        return None
    kept = [index for size, index in zip(view.dims, at, strict=True) if size != 1]
    sizes, own = [size for size in view.dims if size != 1], [size for size in dims if size != 1]
    if len(sizes) != len(own) or not all(prove_equal(a, b) is True for a, b in zip(sizes, own, strict=True)):
        return None
    indices = iter(kept)
    return view.element(view["x"], [0 if size == 1 else next(indices) for size in dims])


def _broadcast_to(view: View, at: Position) -> Element | None:
    return view.broadcast(view["x"], at)


def _permute_dims(view: View, at: Position) -> Element | None:
    rank = len(at)
    axes = view["axes"] or tuple(reversed(range(rank)))
    own: list[Dim] = [0] * rank
    for index, axis in zip(at, axes, strict=True):
        own[axis % rank] = index
    return view.element(view["x"], own)


def _strided_slice(view: View, at: Position) -> Element | None:
    """Where the result has elements at all, its first one is at `begin`."""
    dims, own = view.sizes(view["x"]), list(at)
    axes, begin = view.numbers("axes"), view.numbers("begin")
    steps: tuple[Any, ...] = (1,) * len(begin) if view["strides"] is None else view.numbers("strides")
    if dims is None or not len(begin) == len(axes) == len(steps):
        return None
    for axis, start, step in zip(axes, begin, steps, strict=True):
        if not isinstance(start, (int, DimExpr)) or not isinstance(step, int) or step < 1:
            return None
        place, size = int(axis), dims[int(axis)]
        first: Dim = size + start if isinstance(start, int) and start < 0 else start
        own[place] = first + at[place] * step
        if not view.positions.is_within(own[place], size):
            return None
    return view.element(view["x"], own)


def _concat(view: View, at: Position) -> Element | None:
    parts = view["tensors"]
    if not isinstance(parts, Tuple):
        return None
    axis = view.axis(len(at))
    found: Element | None = None
    end: Dim = view.dims[axis]
    for part in reversed(parts.fields):
        dims = view.sizes(part)
        if dims is None:
            return None
        start = end - dims[axis]
        own = view.element(part, (*at[:axis], at[axis] - start, *at[axis + 1 :]))
        if own is None:
            return None
        if found is None:
            found = own
        else:
            # `found` is for what comes from `end` on.
            found = choose(is_nonnegative(at[axis] - end, view.facts), found, own, view.facts)
            if found is None:
                return None
        end = start
    return found if end == 0 else None


def _index_tensor(view: View, at: Position) -> Element | None:
    dims, indices = view.sizes(view["data"]), view["indices"]
    if dims is None or not isinstance(indices, Tuple) or len(indices.fields) > len(dims):
        return None
    count = len(at) - (len(dims) - len(indices.fields))
    own = [view.broadcast(index, at[:count], view.dims[:count]) for index in indices.fields]
    return _gathered(view, dims, [*own, *at[count:]])


def _take(view: View, at: Position) -> Element | None:
    dims, inner = view.sizes(view["x"]), view.sizes(view["indices"])
    if dims is None or inner is None or (view["axis"] is None and len(dims) != 1):
        return None
    axis = view.axis(len(dims))
    index = view.element(view["indices"], at[axis : axis + len(inner)])
    return _gathered(view, dims, [*at[:axis], index, *at[axis + len(inner) :]])


def _gather_elements(view: View, at: Position) -> Element | None:
    dims = view.sizes(view["data"])
    if dims is None:
        return None
    axis = view.axis(len(dims))
    index = view.element(view["indices"], at)
    return _gathered(view, dims, [*at[:axis], index, *at[axis + 1 :]])


def _gathered(view: View, dims: Position, indices: list[Element | None]) -> Element | None:
    """The element of `data` or `x` at indices that are proved to lie within."""
    own: list[Dim] = []
    for index, size in zip(indices, dims, strict=True):
        if not isinstance(index, (int, DimExpr)) or not view.positions.is_within(index, size):
            return None
        own.append(index)
    return view.element(view["data"] if "data" in view.values else view["x"], own)


def _triangle(sign: int) -> Operator:
    """What is on one side of a diagonal, 0 elsewhere."""

    def element(view: View, at: Position) -> Element | None:
        place, own = view.number("k"), view.element(view["x"], at)
        zero = number_in(view.dtype, 0)
        if own is None or zero is None or not isinstance(place, (int, DimExpr)) or len(at) < 2:
            return None
        return choose(is_nonnegative((at[-2] - at[-1] + place) * sign, view.facts), own, zero, view.facts)

    return element


# Sums ----------------------------------------------------------------------------------------------------------------


def _cumsum(view: View, at: Position) -> Element | None:
    """Of terms that are all the same number."""
    if view["axis"] is None or not is_integer(view.dtype):
        return None
    axis = view.axis(len(at))
    used = {name for index in at for name in free_symbols(index)}
    other = position_in("sum", used)
    within = view.positions.under(view.facts.assume_le(other + 1, view.dims[axis]))
    term = within.element(view["data"], (*at[:axis], other, *at[axis + 1 :]))
    if isinstance(term, bool):
        term = int(term)
    if not isinstance(term, int):
        return None
    return _small(term * at[axis]) if view["exclusive"] else _small(term * (at[axis] + 1))


# Elementwise ---------------------------------------------------------------------------------------------------------


def _elementwise(make: _Binary) -> Operator:
    def element(view: View, at: Position) -> Element | None:
        first, second = view.broadcast(view["x1"], at), view.broadcast(view["x2"], at)
        if first is None or second is None:
            return None
        return mapped(
            lambda a: mapped(lambda b: make(view, a, b), second, view.facts),
            first,
            view.facts,
        )

    return element


def _arithmetic(dims: Callable[[Dim, Dim], Dim], floats: Callable[[float, float], float]) -> Operator:
    def make(view: View, a: Element, b: Element) -> Element | None:
        if isinstance(a, (int, DimExpr)) and isinstance(b, (int, DimExpr)) and is_dim(a) and is_dim(b):
            return _small(dims(a, b)) if view.dtype in ("int32", "int64") else None
        if isinstance(a, float) and isinstance(b, float) and is_float(view.dtype):
            found = floats(a, b)
            return number_in(view.dtype, found)
        return None

    return _elementwise(make)


def _comparison(make: Callable[[Dim, Dim, View], Element | None]) -> Operator:
    def compare(view: View, a: Element, b: Element) -> Element | None:
        if isinstance(a, (int, DimExpr)) and isinstance(b, (int, DimExpr)) and is_dim(a) and is_dim(b):
            return make(a, b, view)
        return None

    return _elementwise(compare)


def _equal(a: Dim, b: Dim, view: View) -> Element:
    return both(is_nonnegative(a - b, view.facts), is_nonnegative(b - a, view.facts))


def _not_equal(a: Dim, b: Dim, view: View) -> Element | None:
    equal = prove_equal(a, b, view.facts)
    return None if equal is None else not equal


def _and(view: View, a: Element, b: Element) -> Element | None:
    return both(a, b) if isinstance(a, (bool, All)) and isinstance(b, (bool, All)) else None


def _or(view: View, a: Element, b: Element) -> Element | None:
    if not isinstance(a, (bool, All)) or not isinstance(b, (bool, All)):
        return None
    if isinstance(a, bool) or isinstance(b, bool):
        return (a or b) if isinstance(a, bool) else (b or a)
    return a if a == b else None


def _not(view: View, at: Position) -> Element | None:
    own = view.element(view["x"], at)
    return negated(own, view.facts) if isinstance(own, (bool, All)) else None


def _negative(view: View, at: Position) -> Element | None:
    def make(own: Element) -> Element | None:
        if isinstance(own, float):
            return -own
        return -own if isinstance(own, (int, DimExpr)) and is_dim(own) and view.dtype in ("int32", "int64") else None

    own = view.element(view["x"], at)
    return None if own is None else mapped(make, own, view.facts)


def _where(view: View, at: Position) -> Element | None:
    condition = view.broadcast(view["condition"], at)
    if isinstance(condition, bool):
        return view.broadcast(view["x1"] if condition else view["x2"], at)
    if not isinstance(condition, All):
        return None
    then, otherwise = view.broadcast(view["x1"], at), view.broadcast(view["x2"], at)
    if then is None or otherwise is None:
        return None
    return choose(condition, then, otherwise, view.facts)


def _astype(view: View, at: Position) -> Element | None:
    own = view.element(view["x"], at)
    if isinstance(own, All):
        own = Choice(own, True, False)
    return None if own is None else mapped(lambda value: _converted(view, value), own, view.facts)


def _converted(view: View, value: Element) -> Element | None:
    if isinstance(value, (bool, int, float)):
        return number_in(view.dtype, value)
    return value if isinstance(value, DimExpr) and view.dtype in ("int32", "int64") else None


OPERATORS: dict[str, Operator] = {
    "arange": _arange,
    "full": _full,
    "ones": _filled(1),
    "zeros": _filled(0),
    "ones_like": _filled(1),
    "zeros_like": _filled(0),
    "full_like": _full,
    "reshape": _reshape,
    "expand_dims": _reshape,
    "squeeze": _reshape,
    "broadcast_to": _broadcast_to,
    "permute_dims": _permute_dims,
    "strided_slice": _strided_slice,
    "concat": _concat,
    "index_tensor": _index_tensor,
    "take": _take,
    "gather_elements": _gather_elements,
    "tril": _triangle(1),
    "triu": _triangle(-1),
    "cumsum": _cumsum,
    "add": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
    "subtract": _arithmetic(lambda a, b: a - b, lambda a, b: a - b),
    "multiply": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
    "negative": _negative,
    "less": _comparison(lambda a, b, view: is_nonnegative(b - a - 1, view.facts)),
    "less_equal": _comparison(lambda a, b, view: is_nonnegative(b - a, view.facts)),
    "greater": _comparison(lambda a, b, view: is_nonnegative(a - b - 1, view.facts)),
    "greater_equal": _comparison(lambda a, b, view: is_nonnegative(a - b, view.facts)),
    "equal": _comparison(_equal),
    "not_equal": _comparison(_not_equal),
    "logical_and": _elementwise(_and),
    "bitwise_and": _elementwise(_and),
    "logical_or": _elementwise(_or),
    "bitwise_or": _elementwise(_or),
    "logical_not": _not,
    "bitwise_not": _not,
    "where": _where,
    "astype": _astype,
}
"""By name."""
