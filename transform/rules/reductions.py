"""Nests that join many elements into one: sums, products, least and greatest values.

    along rows      y[i] = y[i] + f(x[i, k]):  vectors along k, several running ones, joined at the end
    down columns    y[j] = y[j] + f(x[k, j]):  vectors along j, each lane a running value of its own

Joining along rows changes the order of a sum, as every vector sum does; its rounding error grows no faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from weft.ir import dtype as dtypes
from weft.ir import substitute
from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.nests import Nest
from weft.transform.rules.access import kinds_in, loads_in, same_place, step_along, uses
from weft.transform.rules.facts import Facts
from weft.transform.rules.loops import INDEX, minus, nested, plus, sequence, split, times, vector_loop

__all__ = ["vector_reduction"]

_IDENTITIES: dict[str, Callable[[str], int | float]] = {
    "add": lambda dtype: 0,
    "mul": lambda dtype: 1,
    "max": lambda dtype: -float("inf") if dtypes.is_float(dtype) else dtypes.min_value(dtype),
    "min": lambda dtype: float("inf") if dtypes.is_float(dtype) else dtypes.max_value(dtype),
}
_ZERO = const(0, INDEX)


def vector_reduction(nest: Nest, facts: Facts) -> Stmt | None:
    """The nest on vectors, where its terms are read evenly along one of its variables."""
    found = _reduction(nest, facts)
    if found is None:
        return None
    for var in reversed(nest.spatial):
        if step_along(nest.store, var) == 1 and found.is_even(var) and _is_long(nest.extents[var]):
            return _down_columns(found, var)
    for var in reversed(nest.reduction):
        if any(step_along(load, var) == 1 for load in loads_in(found.term)) and found.is_even(var):
            return _along_rows(found, var) if _is_long(nest.extents[var]) else None
    return None


@dataclass(frozen=True)
class _Reduction:
    """y = join(y, term), where y = start before."""

    nest: Nest
    kind: str
    term: PrimExpr
    start: PrimExpr
    facts: Facts
    lanes: int

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.nest.store.buffer.dtype

    @property
    def identity(self) -> PrimExpr:
        """What joins with a value to that value."""
        return const(_IDENTITIES[self.kind](self.dtype), self.dtype)

    def join(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Two values joined."""
        return binary(self.kind, a, b)

    def is_even(self, var: PrimVar) -> bool:
        """Whether vectors along a variable load whole pieces of memory."""
        return all(step_along(load, var) in range(self.facts.largest_step + 1) for load in loads_in(self.term))

    def fresh(self, variables: Iterable[PrimVar]) -> dict[PrimVar, PrimVar]:
        """Loop variables for iteration variables."""
        return {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in variables}

    def loops(self, variables: dict[PrimVar, PrimVar], body: Stmt) -> Stmt:
        """Loops over iteration variables."""
        return nested([(new, self.nest.extents[old]) for old, new in variables.items()], body)


def _is_long(extent: Extent) -> bool:
    return not isinstance(extent, int) or extent >= 2


def _reduction(nest: Nest, facts: Facts) -> _Reduction | None:
    store, init, value = nest.store, nest.init, nest.store.value
    if not nest.reduction or init is None or not isinstance(value, Binary) or value.kind not in _IDENTITIES:
        return None
    if not same_place(init, store):
        return None
    own = [part for part in (value.a, value.b) if isinstance(part, BufferLoad) and same_place(part, store)]
    if len(own) != 1 or value.dtype != store.buffer.dtype or dtypes.is_bool(value.dtype):
        return None
    term = value.b if own[0] is value.a else value.a
    kinds = kinds_in(value)
    loads = [*loads_in(term), *loads_in(init.value)]
    if kinds is None or any(load.buffer is store.buffer for load in loads):
        return None
    if any(uses(part, var) for part in (init.value, *store.indices) for var in nest.reduction):
        return None
    lanes = facts.lanes(kinds)
    return _Reduction(nest, value.kind, term, init.value, facts, lanes) if lanes > 1 else None


@dataclass(frozen=True)
class _Running:
    """The running values: a small buffer, which registers hold."""

    found: _Reduction
    buffer: Buffer

    def at(self, place: PrimExpr) -> BufferLoad:
        """One of them."""
        return BufferLoad(self.buffer, (place,))

    def put(self, place: PrimExpr, value: PrimExpr) -> Stmt:
        """Set one."""
        return BufferStore(self.buffer, value, (place,))

    def add(self, place: PrimExpr, value: PrimExpr) -> Stmt:
        """Join a value to one."""
        return self.put(place, self.found.join(self.at(place), value))


def _running(found: _Reduction, width: int) -> _Running:
    return _Running(found, Buffer("running", (width,), found.dtype, "local"))


def _guarded(j: PrimExpr, left: Extent | None, value: PrimExpr, other: PrimExpr) -> PrimExpr:
    """The value for lanes below `left`, whose loads then happen for those alone."""
    if left is None:
        return value
    return PrimCall("if_then_else", (binary("lt", j, as_expr(left, INDEX)), value, other), value.dtype)


# Along rows ---------------------------------------------------------------------------------------------------------


def _along_rows(found: _Reduction, var: PrimVar) -> Stmt:
    nest, lanes, extent = found.nest, found.lanes, found.nest.extents[var]
    count = found.facts.accumulators
    if isinstance(extent, int):
        count = 1 << max(1, min(count, extent // lanes)).bit_length() - 1
    running = _running(found, count * lanes)
    outer, inner = found.fresh(nest.spatial), found.fresh(x for x in nest.reduction if x is not var)

    def term(index: PrimExpr) -> PrimExpr:
        return substitute(found.term, {**outer, **inner, var: index})

    clear = [vector_loop(at, lanes, lambda j: running.put(j, found.identity)) for at in range(0, count * lanes, lanes)]
    steps = found.loops(inner, sequence(_steps_along(running, var.name.removeprefix("v"), extent, count, term)))
    value = found.join(found.start, running.at(_ZERO))
    target = BufferStore(nest.store.buffer, value, nest.store.indices, span=nest.store.span)
    body = [AllocBuffer(running.buffer), *clear, steps, *_joined(running, count * lanes), substitute(target, outer)]
    return found.loops(outer, sequence(body))


def _steps_along(
    running: _Running, name: str, extent: Extent, count: int, term: Callable[[PrimExpr], PrimExpr]
) -> Iterator[Stmt]:
    """All terms joined to the running values: `count` vectors at a time, then single ones, then a part of one."""
    lanes = running.found.lanes
    steps, done = split(0, extent, count * lanes)
    if not _is_zero(steps):
        i, u, j = PrimVar(name, INDEX), PrimVar("u", INDEX), PrimVar("j", INDEX)
        place = plus(times(u, lanes), j)
        step = For(j, 0, lanes, running.add(place, term(plus(times(i, count * lanes), place))), "vectorized")
        yield For(i, 0, steps, For(u, 0, count, step, "unrolled"))
    if count > 1:
        start = done
        steps, done = split(start, extent, lanes)
        if not _is_zero(steps):
            t = PrimVar(name, INDEX)
            at = plus(start, times(t, lanes))
            yield For(t, 0, steps, vector_loop(0, lanes, lambda j: running.add(j, term(plus(at, j)))))
    rest = minus(extent, done)
    if _is_zero(rest):
        return
    if not running.found.facts.masks:
        t = PrimVar("rest", INDEX)
        yield For(t, 0, rest, running.add(_ZERO, term(plus(done, t))))
        return
    width = 1 << (rest - 1).bit_length() if isinstance(rest, int) else lanes
    most = None if width == rest else rest
    identity = running.found.identity
    yield vector_loop(0, width, lambda j: running.add(j, _guarded(j, most, term(plus(done, j)), identity)))


def _is_zero(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 0


def _joined(running: _Running, width: int) -> Iterator[Stmt]:
    """The running values joined by halves, until the first is all of them."""
    while width > 1:
        width //= 2
        half = width
        lanes = min(half, running.found.lanes)
        for start in range(0, half, lanes):
            yield vector_loop(start, lanes, lambda j, half=half: running.add(j, running.at(plus(j, half))))


# Down columns -------------------------------------------------------------------------------------------------------


def _down_columns(found: _Reduction, var: PrimVar) -> Stmt:
    nest, lanes, extent = found.nest, found.lanes, found.nest.extents[var]
    outer, name = found.fresh(x for x in nest.spatial if x is not var), var.name.removeprefix("v")
    most = found.facts.columns
    if isinstance(extent, int):  # as many vectors in each tile, rather than full tiles and a small one
        vectors = max(1, extent // lanes)
        most = -(-vectors // -(-vectors // most))
    parts: list[Stmt] = []
    done: Extent = 0
    for count in sorted({most, 1}, reverse=True):
        steps, end = split(done, extent, count * lanes)
        if not _is_zero(steps):
            i = PrimVar(f"{name}_{count * lanes}", INDEX)
            start = plus(done, times(i, count * lanes))
            parts.append(For(i, 0, steps, _tile(found, var, outer, start, count * lanes, None)))
        done = end
    left = minus(extent, done)
    if not _is_zero(left):
        parts.append(_last_columns(found, var, outer, done, left))
    return found.loops(outer, sequence(parts))


def _last_columns(
    found: _Reduction, var: PrimVar, outer: dict[PrimVar, PrimVar], start: Extent, left: Extent
) -> Stmt:
    if found.facts.masks:
        width = 1 << (left - 1).bit_length() if isinstance(left, int) else found.lanes
        return _tile(found, var, outer, as_expr(start, INDEX), width, None if width == left else left)
    t = PrimVar("rest", INDEX)
    return For(t, 0, left, _tile(found, var, outer, plus(start, t), 1, None))


def _tile(
    found: _Reduction, var: PrimVar, outer: dict[PrimVar, PrimVar], start: PrimExpr, width: int, left: Extent | None
) -> Stmt:
    """`width` columns from `start` on; with `left`, only so many of them."""
    running, inner, store = _running(found, width), found.fresh(found.nest.reduction), found.nest.store
    one = min(width, found.lanes)
    zero = const(0, found.dtype)

    def each(action: Callable[[PrimExpr], Stmt]) -> list[Stmt]:
        return [vector_loop(at, one, action) for at in range(0, width, one)]

    def column(value: PrimExpr, j: PrimExpr) -> PrimExpr:
        return substitute(value, {**outer, **inner, var: plus(start, j)})

    def write(j: PrimExpr) -> Stmt:
        indices = tuple(column(index, j) for index in store.indices)
        return BufferStore(store.buffer, running.at(j), indices, span=store.span)

    clear = each(lambda j: running.put(j, _guarded(j, left, column(found.start, j), zero)))
    steps = found.loops(
        inner, sequence(each(lambda j: running.add(j, _guarded(j, left, column(found.term, j), zero))))
    )
    writes = each(write) if left is None else [vector_loop(0, width, write, left)]
    return sequence([AllocBuffer(running.buffer), *clear, steps, *writes])
