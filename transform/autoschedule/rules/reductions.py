"""Reductions: sums, products, minima and maxima.

    along rows      y[i] = y[i] + f(x[i, k]):  vectors along k, several accumulators, combined at the end
    down columns    y[j] = y[j] + f(x[k, j]):  vectors along j, each lane an accumulator of its own; long rows go
                    through the nearest cache, a few rows at a time, so that memory is read in long runs

Combining along rows changes the order of a sum, as every vector sum does; its rounding error grows no faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from weft import dtypes
from weft.ir import structural_equal, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.accumulators import IDENTITIES, Accumulators, guarded, is_zero
from weft.transform.autoschedule.rules.loops import (
    INDEX,
    minus,
    nested,
    over_vectors,
    plus,
    sequence,
    split,
    times,
    vector_loop,
)
from weft.transform.autoschedule.rules.strides import cases_along, kinds_in, loads_in, same_place, step_along, uses
from weft.transform.infra.decisions import Decision

__all__ = ["Reduction", "ReductionRule", "reduction_axis", "reduction_of"]

_ZERO = const(0, INDEX)
_LONGEST_ROW = 8
"""Elements of a row of a window that are written out."""
_MOST_TILES = 4
"""Tiles of a row of windows that are written out."""


def reduction_axis(found: Reduction) -> tuple[PrimVar, bool] | None:
    """The variable that vectors go along, and whether it is one of the results (down the columns); None: no vectors."""
    nest = found.nest
    variables = (*nest.spatial, *nest.reduction)
    if nest.reduction and all(step_along(load, var) == 0 for load in loads_in(found.term) for var in variables):
        last = nest.reduction[-1]  # one value again and again, of which a single accumulator would lose digits
        return (last, False) if _is_long(nest.extents[last]) else None
    for var in reversed(nest.spatial):
        if step_along(nest.store, var) == 1 and found.is_even(var) and _is_long(nest.extents[var]):
            return var, True
    for var in reversed(nest.reduction):
        if any(step_along(load, var) == 1 for load in loads_in(found.term)) and found.is_even(var):
            return (var, False) if _is_long(nest.extents[var]) else None
    return None


class ReductionRule(Rule):
    """Sums, products, minima and maxima: vectors along the rows or down the columns."""

    name = "reduction"
    order = 320
    pins = frozenset(("lanes", "vectors"))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Down the columns where the results lie along one, else along the rows."""
        found = None if site.nest is None else site.once(reduction_of, site.nest, machine, knobs)
        axis = None if found is None else site.once(reduction_axis, found)
        if found is None or axis is None:
            return None
        var, down = axis
        vectors = knobs.column_vectors if down else _accumulators(found, var)
        values = {"form": "columns" if down else "rows", "axis": var.name, "lanes": found.lanes, "vectors": vectors}
        reason = "a lane for each result" if down else "accumulators that are combined at the end"
        return Decision(site.name, self.name, values, reason)

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops."""
        found = None if site.nest is None else site.once(reduction_of, site.nest, machine, knobs)
        axis = None if found is None else site.once(reduction_axis, found)
        assert found is not None
        assert axis is not None
        var, down = axis
        lanes = checked(decision, "lanes", 2, 64, "lanes of a vector", power=True)
        vectors = checked(decision, "vectors", 1, 64, "vectors that are combined by halves", power=not down)
        if down:
            return _down_columns(replace(found, lanes=lanes, knobs=replace(knobs, column_vectors=vectors)), var)
        return _along_rows(replace(found, lanes=lanes), var, vectors)


def _accumulators(found: Reduction, var: PrimVar) -> int:
    """How many vectors a reduction along a row runs in: fewer where it is short."""
    count, extent = found.knobs.accumulators, found.nest.extents[var]
    return 1 << max(1, min(count, extent // found.lanes)).bit_length() - 1 if isinstance(extent, int) else count


@dataclass(frozen=True)
class Reduction:
    """y = combine(y, term), where y = start before."""

    nest: Nest
    kind: str
    term: PrimExpr
    start: PrimExpr
    machine: MachineModel
    knobs: Knobs
    lanes: int

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.nest.store.buffer.dtype

    @property
    def identity(self) -> PrimExpr:
        """The value that changes nothing."""
        return const(IDENTITIES[self.kind](self.dtype), self.dtype)

    def combine(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Two values combined."""
        return binary(self.kind, a, b)

    def is_even(self, var: PrimVar) -> bool:
        """Whether vectors along a variable load contiguous or evenly strided memory."""
        return all(step_along(load, var) in range(self.knobs.max_stride + 1) for load in loads_in(self.term))

    def fresh(self, variables: Iterable[PrimVar]) -> dict[PrimVar, PrimVar]:
        """Loop variables for iteration variables."""
        return {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in variables}

    def loops(self, variables: dict[PrimVar, PrimVar], body: Stmt) -> Stmt:
        """Loops over iteration variables."""
        return nested([(new, self.nest.extents[old]) for old, new in variables.items()], body)


def _is_long(extent: Extent, minimum: int = 2) -> bool:
    return not isinstance(extent, int) or extent >= minimum


def reduction_of(nest: Nest, machine: MachineModel, knobs: Knobs) -> Reduction | None:
    """The nest as a reduction of terms that vectors can compute; None when it is none."""
    store, init, value = nest.store, nest.init, nest.store.value
    if not nest.reduction or init is None or not isinstance(value, Binary) or value.kind not in IDENTITIES:
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
    lanes = machine.lanes(kinds)
    return Reduction(nest, value.kind, term, init.value, machine, knobs, lanes) if lanes > 1 else None


def _running(found: Reduction, width: int) -> Accumulators:
    """Accumulators for a vector of results, or for the parts of one."""
    vectors = width // found.lanes if width >= found.lanes else 1
    lanes = width // vectors
    return Accumulators.of(found.kind, found.dtype, lanes, vectors, found.machine.has_masks)


# Along rows ---------------------------------------------------------------------------------------------------------


def _along_rows(found: Reduction, var: PrimVar, count: int) -> Stmt:
    nest = found.nest
    running = _running(found, count * found.lanes)
    outer, inner = found.fresh(nest.spatial), found.fresh(x for x in nest.reduction if x is not var)

    def term(index: PrimExpr) -> PrimExpr:
        return substitute(found.term, {**outer, **inner, var: index})

    results = [nest.extents[x] for x in nest.spatial]
    few = math.prod(x if isinstance(x, int) else 1 << 20 for x in results) <= found.knobs.chunks
    name, extent = var.name.removeprefix("v"), nest.extents[var]
    steps = found.loops(inner, sequence(running.along(name, extent, lambda make: [make(0, term)], may_be_long=few)))
    value = found.combine(found.start, running.at(_ZERO))
    target = BufferStore(nest.store.buffer, value, nest.store.indices, span=nest.store.span)
    body = [AllocBuffer(running.buffer), *running.clear(), steps, *running.combined(0), substitute(target, outer)]
    return found.loops(outer, sequence(body))


# Down columns -------------------------------------------------------------------------------------------------------


def _down_columns(found: Reduction, var: PrimVar) -> Stmt:
    nest, lanes, extent = found.nest, found.lanes, found.nest.extents[var]
    outer, name = found.fresh(x for x in nest.spatial if x is not var), var.name.removeprefix("v")
    widths = [found.knobs.column_vectors, 1]
    if len(nest.reduction) == 1 and _is_long(nest.extents[nest.reduction[0]], found.knobs.column_rows):
        room = found.machine.l1_bytes * 8 // (found.knobs.column_rows * found.machine.vector_bits)
        widths.insert(0, max(found.knobs.column_vectors, min(found.knobs.wide_column_vectors, room)))
    if isinstance(extent, int):  # as many vectors in each tile, rather than full tiles and a small one
        vectors = max(1, extent // lanes)
        widths = [-(-vectors // -(-vectors // width)) for width in widths]
    parts: list[Stmt] = []
    done: Extent = 0
    for count in sorted(set(widths), reverse=True):
        steps, end = split(done, extent, count * lanes)
        if not is_zero(steps):
            i = PrimVar(f"{name}_{count * lanes}", INDEX)
            tile = _tile if count <= found.knobs.column_vectors else _wide_tile
            if isinstance(steps, int) and steps <= _MOST_TILES and _window_of(found, var).row is not None:
                starts = [plus(done, const(n * count * lanes, INDEX)) for n in range(steps)]
                parts += [tile(found, var, outer, start, count * lanes, None) for start in starts]
            else:
                start = plus(done, times(i, count * lanes))
                parts.append(For(i, 0, steps, tile(found, var, outer, start, count * lanes, None)))
        done = end
    left = minus(extent, done)
    if not is_zero(left):
        parts.append(_last_columns(found, var, outer, done, left))
    return found.loops(outer, sequence(parts))


def _last_columns(found: Reduction, var: PrimVar, outer: dict[PrimVar, PrimVar], start: Extent, left: Extent) -> Stmt:
    if found.machine.has_masks:
        width = 1 << (left - 1).bit_length() if isinstance(left, int) else found.lanes
        return _tile(found, var, outer, as_expr(start, INDEX), width, None if width == left else left)
    t = PrimVar("rest", INDEX)
    return For(t, 0, left, _tile(found, var, outer, plus(start, t), 1, None))


@dataclass(frozen=True)
class _Columns:
    """Columns from `start` on, and accumulators for them."""

    found: Reduction
    var: PrimVar
    start: PrimExpr
    width: int
    running: Accumulators
    variables: dict[PrimVar, PrimExpr]

    def at(self, value: PrimExpr, j: PrimExpr, more: dict[PrimVar, PrimExpr] | None = None) -> PrimExpr:
        """A value of the nest in column j."""
        return substitute(value, {**self.variables, **(more or {}), self.var: plus(self.start, j)})

    def each(self, action: Callable[[PrimExpr], Stmt]) -> list[Stmt]:
        """An action on all columns, a vector after another."""
        one = min(self.width, self.found.lanes)
        return [vector_loop(at, one, action) for at in range(0, self.width, one)]

    def vectors(self, action: Callable[[PrimExpr], Stmt]) -> list[Stmt]:
        """An action on all columns, in a loop."""
        lanes = self.found.lanes
        return over_vectors("column", self.width, lanes, 4, action)

    def write(self, j: PrimExpr) -> Stmt:
        """The result of column j."""
        store = self.found.nest.store
        indices = tuple(self.at(index, j) for index in store.indices)
        return BufferStore(store.buffer, self.running.at(j), indices, span=store.span)


def _tile(
    found: Reduction, var: PrimVar, outer: dict[PrimVar, PrimVar], start: PrimExpr, width: int, left: Extent | None
) -> Stmt:
    """`width` columns from `start` on, in registers; with `left`, only so many of them."""
    running, inner, zero = _running(found, width), found.fresh(found.nest.reduction), const(0, found.dtype)
    columns = _Columns(found, var, start, width, running, {**outer, **inner})
    clear = columns.each(lambda j: running.put(j, guarded(j, left, columns.at(found.start, j), zero)))
    window = _window_of(found, var)

    def terms(more: dict[PrimVar, PrimExpr]) -> list[Stmt]:
        return columns.each(lambda j: running.add(j, guarded(j, left, columns.at(window.term, j, more), zero)))

    body: Stmt
    if window.row is None:
        body = sequence(terms({}))
    else:
        del inner[window.row]
        values = (const(value, INDEX) for value in range(window.size))
        body = sequence(simplify(stmt) for value in values for stmt in terms({window.row: value}))
    if window.guard is not None:
        body = IfThenElse(substitute(window.guard, {**outer, **inner}), body, None)
    writes = columns.each(columns.write) if left is None else [vector_loop(0, width, columns.write, left)]
    return sequence([AllocBuffer(running.buffer), *clear, found.loops(inner, body), *writes])


@dataclass(frozen=True)
class _Window:
    """The term of a minimum or maximum in windows, some elements of which lie beside the input.

    Where the `guard` does not hold, no lane has an element. The `row` of a window, `size` elements, is written out, as
    it says which lanes have none: of most vectors all have.
    """

    term: PrimExpr
    guard: PrimExpr | None = None
    row: PrimVar | None = None
    size: int = 0


def _window_of(found: Reduction, var: PrimVar) -> _Window:
    """The term, without what is known of its condition for all lanes."""
    row = found.nest.reduction[-1]
    size, width = found.nest.extents[row], found.nest.extents[var]
    guard, value, other = cases_along(found.term, var)
    inner = value.args[2] if isinstance(value, PrimCall) and value.op == "if_then_else" else None
    others = [part for part in (other, inner) if part is not None]
    is_identity = bool(others) and all(structural_equal(part, found.identity) for part in others)
    if not is_identity or found.kind not in ("min", "max") or (guard is not None and uses(guard, row)):
        return _Window(found.term)
    if inner is None or not isinstance(width, int) or not isinstance(size, int) or size > _LONGEST_ROW:
        return _Window(value, guard)
    return _Window(value, guard, row, size)


def _wide_tile(
    found: Reduction, var: PrimVar, outer: dict[PrimVar, PrimVar], start: PrimExpr, width: int, left: Extent | None
) -> Stmt:
    """`width` columns from `start` on, in the nearest cache: each is read and written once for a few rows."""
    running, (row,), rows_at_once = _running(found, width), found.nest.reduction, found.knobs.column_rows
    columns = _Columns(found, var, start, width, running, {**outer})
    parts = [AllocBuffer(running.buffer), *columns.vectors(lambda j: running.put(j, columns.at(found.start, j)))]
    done: Extent = 0
    for count in (rows_at_once, 1):
        steps, end = split(done, found.nest.extents[row], count)
        if not is_zero(steps):
            k = PrimVar(row.name.removeprefix("v"), INDEX)
            first = plus(done, times(k, count))

            def rows(j: PrimExpr, count: int = count, first: PrimExpr = first) -> Stmt:
                value: PrimExpr = running.at(j)
                for u in range(count):
                    value = found.combine(value, columns.at(found.term, j, {row: plus(first, u)}))
                return running.put(j, value)

            parts.append(For(k, 0, steps, sequence(columns.vectors(rows))))
        done = end
    return sequence([*parts, *columns.vectors(columns.write)])
