"""Reductions that keep the position of the maximum or minimum: argmax and argmin.

    p[i], v[i] = (p[i], v[i]) if is_first((p[i], v[i]), (k, x[i, k])) else (k, x[i, k])

    along rows      vectors along k, several running values with the step that each came from; then combined by halves
    down columns    vectors along i, where neighbours of x in memory belong to different results

Steps grow, so a lane keeps what it has unless the new value is better, or is the first nan: two comparisons. Combining
the lanes compares positions as well, so that of equal values the first counts, as in the nest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weft import dtypes
from weft.ir import replace, substitute, te
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, binary, cast, const, unary
from weft.ir.op.indexing.search import Better, is_first
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    AllocBuffer,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest, is_pure_value, nest_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence, split, times, vector_loop
from weft.transform.autoschedule.rules.strides import kinds_in, loads_in, same_place, step_along, uses
from weft.transform.infra.decisions import Decision

__all__ = ["ArgReduceRule"]

SEGMENT = 1 << 30
"""Elements of a segment of a row: steps within one are counted in 32 bits."""


_KINDS: tuple[tuple[str, Better, Callable[[str], float | int]], ...] = (
    ("le", lambda a, b: a > b, dtypes.lowest),
    ("ge", lambda a, b: a < b, dtypes.highest),
)
"""What holds where a value is not better than another one, what "better" is, and the worst value of a dtype."""


class ArgReduceRule(Rule):
    """Positions of minima and maxima: vectors along the rows or down the columns."""

    name = "argreduce"
    order = 220
    pins = frozenset(("vectors",))

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """Two values are stored, so that it is no nest around one store."""
        return site.nest is None

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Down the columns where the results lie along one, else along the rows."""
        found = site.once(_arg_reduction, site.stmt, machine, knobs)
        axis = None if found is None else _axis(found)
        if found is None or axis is None:
            return None
        found, var, down = axis
        vectors = 1 if down else _vectors(found, var)
        values = {"form": "columns" if down else "rows", "axis": var.name, "lanes": found.lanes, "vectors": vectors}
        return Decision(site.name, self.name, values, "values and the numbers of their steps side by side")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The loops."""
        found = site.once(_arg_reduction, site.stmt, machine, knobs)
        axis = None if found is None else _axis(found)
        assert axis is not None
        found, var, down = axis
        max_vectors = 1 if down else 16
        vectors = checked(decision, "vectors", 1, max_vectors, "vectors that are combined by halves", power=True)
        return _down_columns(found, var) if down else _along_rows(found, var, vectors)


def _axis(found: _ArgReduction) -> tuple[_ArgReduction, PrimVar, bool] | None:
    """The variable that vectors go along evenly, and whether it is one of the results (down the columns)."""
    nest = found.nest
    if len(nest.reduction) == 1 and found.position is nest.reduction[0]:
        down = dataclasses.replace(found, short=_is_short(nest.extents[nest.reduction[0]]))
        for var in reversed(nest.spatial):
            if step_along(nest.store, var) == 1 and found.is_even(var) and _is_long(nest, var):
                return (down, var, True) if down.lanes > 1 else None
    for var in reversed(nest.reduction):
        if any(step_along(load, var) == 1 for load in loads_in(found.value)) and found.is_even(var):
            return (found, var, False) if _is_long(nest, var) else None
    return None


def _vectors(found: _ArgReduction, var: PrimVar) -> int:
    """In how many vectors a row is looked through: fewer where it is short."""
    extent, count = found.nest.extents[var], found.knobs.argreduce_vectors
    if not isinstance(extent, int) or not _is_short(extent):
        return count
    return 1 << max(1, min(count, extent // found.lanes)).bit_length() - 1


def _is_short(extent: Extent) -> bool:
    """Whether any position fits the numbers of steps."""
    return isinstance(extent, int) and extent <= SEGMENT


def _is_long(nest: Nest, var: PrimVar) -> bool:
    extent = nest.extents[var]
    return not isinstance(extent, int) or extent >= 2


@dataclass(frozen=True)
class _ArgReduction:
    """Positions and values: what is stored, what it starts from, and the candidate of one iteration."""

    nest: Nest
    places: tuple[BufferLoad, BufferLoad]
    start: tuple[BufferStore, BufferStore]
    position: PrimExpr
    value: PrimExpr
    not_better: str
    better: Better
    machine: MachineModel
    knobs: Knobs
    short: bool = True

    @property
    def lanes(self) -> int:
        """Lanes of its vectors."""
        loads = (load.dtype for load in loads_in(self.value))
        return self.machine.lanes([*loads, self.value.dtype, self.step_dtype])

    @property
    def step_dtype(self) -> str:
        """The dtype of the numbers of steps, of which vectors have as many lanes as of values."""
        return "int32" if self.short and dtypes.bits(self.value.dtype) <= 32 else INDEX

    def is_even(self, var: PrimVar) -> bool:
        """Whether vectors along a variable load contiguous or evenly strided memory."""
        return all(step_along(load, var) in range(self.knobs.max_stride + 1) for load in loads_in(self.value))

    def wins(self, new: PrimExpr, old: PrimExpr) -> PrimExpr:
        """Whether a later value replaces an earlier one."""
        wins = unary("not", binary(self.not_better, new, old))
        return te.all(wins, te.equal(old, old)) if dtypes.is_float(old.dtype) else wins

    def update(self, position: PrimExpr, value: PrimExpr) -> list[Stmt]:
        """A candidate given to what is stored, as in the nest."""
        keep = is_first(self.better, self.places, (position, value))
        names = [PrimVar(name, place.dtype) for name, place in zip(("position", "value"), self.places, strict=True)]
        binds = [
            Bind(name, Select(keep, place, new))
            for name, place, new in zip(names, self.places, (position, value), strict=True)
        ]
        stores = [
            BufferStore(place.buffer, name, place.indices, span=store.span)
            for name, place, store in zip(names, self.places, self.start, strict=True)
        ]
        return [*binds, *stores]


def _arg_reduction(stmt: Stmt, machine: MachineModel, knobs: Knobs) -> _ArgReduction | None:
    _, block = perfect_nest(stmt)
    if not isinstance(block, Block) or not isinstance(block.body, SeqStmt) or not isinstance(block.init, SeqStmt):
        return None
    if len(block.body.stmts) != 4 or len(block.init.stmts) != 2:
        return None
    first, second, *stores = block.body.stmts
    start = block.init.stmts
    if not isinstance(first, Bind) or not isinstance(second, Bind):
        return None
    put = tuple(part for part in (*stores, *start) if isinstance(part, BufferStore) and part.predicate is None)
    if len(put) != 4 or put[0].value is not first.var or put[1].value is not second.var:
        return None
    # One of the two stores stands for both in a nest, which says what the loops are.
    alone = replace(block, body=replace(put[0], value=first.value), init=put[2], reads=None, writes=None)
    nest = nest_of(_with_block(stmt, alone))
    if nest is None or not nest.reduction:
        return None
    return _arg_reduction_of(nest, first.value, second.value, (put[0], put[1]), (put[2], put[3]), machine, knobs)


def _with_block(stmt: Stmt, block: Block) -> Stmt:
    return replace(stmt, body=_with_block(stmt.body, block)) if isinstance(stmt, For) else block


def _arg_reduction_of(
    nest: Nest,
    first: PrimExpr,
    second: PrimExpr,
    stores: tuple[BufferStore, BufferStore],
    start: tuple[BufferStore, BufferStore],
    machine: MachineModel,
    knobs: Knobs,
) -> _ArgReduction | None:
    if not isinstance(first, Select) or not isinstance(second, Select):
        return None
    position, value = first.false_value, second.false_value
    places = (BufferLoad(stores[0].buffer, stores[0].indices), BufferLoad(stores[1].buffer, stores[1].indices))
    kept = (first.true_value, second.true_value)
    for place, old, begin in zip(places, kept, start, strict=True):
        if not isinstance(old, BufferLoad) or not same_place(place, old) or not same_place(place, begin):
            return None
    kinds, own = kinds_in(value), {store.buffer for store in stores}
    loads = [*loads_in(value), *loads_in(position), *(load for put in start for load in loads_in(put.value))]
    if len(own) != 2 or kinds is None or not is_pure_value(value) or any(load.buffer in own for load in loads):
        return None
    if position.dtype != INDEX or any(uses(x, var) for put in stores for x in put.indices for var in nest.reduction):
        return None
    if dtypes.is_bool(value.dtype):
        return None
    for not_better, better, worst in _KINDS:
        keep = is_first(better, places, (position, value))
        given = [first.condition, second.condition, start[0].value, start[1].value]
        expected = [keep, keep, const(dtypes.max_value(INDEX), INDEX), const(worst(value.dtype), value.dtype)]
        if all(structural_equal(x, y) for x, y in zip(given, expected, strict=True)):
            found = _ArgReduction(nest, places, start, position, value, not_better, better, machine, knobs)
            return found if found.lanes > 1 else None
    return None


# Along rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Running:
    """Running values and the steps that they came from, in small buffers that registers hold."""

    found: _ArgReduction
    steps: Buffer
    values: Buffer

    def clear(self, place: PrimExpr) -> Stmt:
        """Nothing was seen: the first candidate that is better than the worst value counts, else the first one."""
        zero = const(0, self.steps.dtype)
        worst = self.found.start[1].value
        return SeqStmt((BufferStore(self.steps, zero, (place,)), BufferStore(self.values, worst, (place,))))

    def take(self, place: PrimExpr, step: PrimExpr, value: PrimExpr) -> Stmt:
        """A candidate for one of them."""
        old_step, old = BufferLoad(self.steps, (place,)), BufferLoad(self.values, (place,))
        wins = self.found.wins(value, old)
        new_step = Select(wins, cast(self.steps.dtype, step), old_step)
        put = BufferStore(self.values, Select(wins, value, old), (place,))
        return SeqStmt((BufferStore(self.steps, new_step, (place,)), put))  # the step first: it looks at the old value


def _running(found: _ArgReduction, width: int) -> _Running:
    steps = Buffer("steps", (width,), found.step_dtype, "local")
    return _Running(found, steps, Buffer("values", (width,), found.value.dtype, "local"))


def _along_rows(found: _ArgReduction, var: PrimVar, count: int) -> Stmt:
    nest, extent = found.nest, found.nest.extents[var]
    outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.spatial}
    inner = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.reduction if x is not var}
    loops = [(new, nest.extents[old]) for old, new in inner.items()]
    if _is_short(extent):
        segment = _segment(found, var, {**outer, **inner}, 0, extent, count)
    else:
        number, start = PrimVar("segment", INDEX), PrimVar("start", INDEX)
        length = binary("min", minus(extent, start), const(SEGMENT, INDEX))
        body = _segment(found, var, {**outer, **inner}, start, length, count)
        whole = SeqStmt((Bind(start, as_expr(times(number, SEGMENT), INDEX)), *body))
        segment = [For(number, 0, binary("floordiv", plus(extent, SEGMENT - 1), const(SEGMENT, INDEX)), whole)]
    begin = [substitute(store, outer) for store in found.start]
    row = sequence([*begin, nested(loops, sequence(segment))])
    return nested([(new, nest.extents[old]) for old, new in outer.items()], row)


def _segment(
    found: _ArgReduction, var: PrimVar, variables: dict[PrimVar, PrimVar], start: Extent, length: Extent, count: int
) -> list[Stmt]:
    """`length` elements of a row from `start` on, and what is stored updated by the best of them."""
    lanes = found.lanes
    width = count * lanes
    running = _running(found, width)
    places = Buffer("places", (width,), INDEX, "local")
    starts, zero = range(0, width, lanes), const(0, INDEX)

    def value(index: PrimExpr) -> PrimExpr:
        return substitute(found.value, {**variables, var: plus(start, index)})

    def placed(j: PrimExpr) -> Stmt:
        return BufferStore(places, plus(times(cast(INDEX, BufferLoad(running.steps, (j,))), width), j), (j,))

    best = substitute(found.position, {**variables, var: plus(start, BufferLoad(places, (zero,)))})
    update = found.update(best, BufferLoad(running.values, (zero,)))
    return [
        AllocBuffer(running.steps),
        AllocBuffer(running.values),
        AllocBuffer(places),
        *(vector_loop(at, lanes, running.clear) for at in starts),
        *_steps_along(running, var.name.removeprefix("v"), length, count, value),
        *(vector_loop(at, lanes, placed) for at in starts),
        *_combined(found, running.values, places, width),
        *(substitute(part, variables) for part in update),
    ]


def _steps_along(
    running: _Running, name: str, extent: Extent, count: int, value: Callable[[PrimExpr], PrimExpr]
) -> Iterator[Stmt]:
    """All candidates: `count` vectors in a step; in the last step those that there are."""
    found = running.found
    lanes = found.lanes
    width = count * lanes
    steps, done = split(0, extent, width)
    if not (isinstance(steps, int) and steps == 0):
        i, u, j = (PrimVar(x, INDEX) for x in (name, "u", "j"))
        place = plus(times(u, lanes), j)
        step = For(j, 0, lanes, running.take(place, i, value(plus(times(i, width), place))), "vectorized")
        yield For(i, 0, steps, For(u, 0, count, step, "unrolled"))
    rest, last = minus(extent, done), as_expr(steps, INDEX)
    if isinstance(rest, int) and rest == 0:
        return
    if not found.machine.has_masks:
        t = PrimVar("rest", INDEX)
        yield For(t, 0, rest, running.take(t, last, value(plus(done, t))))
        return
    worst = found.start[1].value
    for at in range(0, width, lanes):
        if isinstance(rest, int) and at >= rest:
            break
        whole = isinstance(rest, int) and at + lanes <= rest

        def part(place: PrimExpr, whole: bool = whole) -> Stmt:
            new = value(plus(done, place))
            if not whole:
                new = PrimCall("if_then_else", (binary("lt", place, as_expr(rest, INDEX)), new, worst), new.dtype)
            return running.take(place, last, new)

        yield vector_loop(at, lanes, part)


def _combined(found: _ArgReduction, values: Buffer, places: Buffer, width: int) -> Iterator[Stmt]:
    """Pairs combined by halves, until the first is the one to keep."""
    while width > 1:
        width //= 2
        half, lanes = width, min(width, found.lanes)

        def combine(j: PrimExpr, half: int = half) -> Stmt:
            (i, a), (k, b) = ((BufferLoad(places, (at,)), BufferLoad(values, (at,))) for at in (j, plus(j, half)))
            keep = is_first(found.better, (i, a), (k, b))
            return SeqStmt(
                (
                    BufferStore(places, Select(keep, i, k), (j,)),
                    BufferStore(values, Select(keep, a, b), (j,)),
                )
            )

        for start in range(0, half, lanes):
            yield vector_loop(start, lanes, combine)


# Down columns -------------------------------------------------------------------------------------------------------


def _down_columns(found: _ArgReduction, var: PrimVar) -> Stmt:
    nest, lanes = found.nest, found.lanes
    (row,) = nest.reduction
    outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.spatial if x is not var}

    def tile(start: PrimExpr, width: int, left: Extent | None) -> Stmt:
        running, k = _running(found, width), PrimVar(row.name.removeprefix("v"), INDEX)

        def whole(action: Callable[[PrimExpr], Stmt]) -> Stmt:
            return vector_loop(0, width, action)

        def at(value: PrimExpr, j: PrimExpr) -> PrimExpr:
            return substitute(value, {**outer, row: k, var: plus(start, j)})

        def take(j: PrimExpr) -> Stmt:
            new = at(found.value, j)
            if left is not None:
                less = binary("lt", j, as_expr(left, INDEX))
                new = PrimCall("if_then_else", (less, new, found.start[1].value), new.dtype)
            return running.take(j, k, new)

        def write(j: PrimExpr) -> Stmt:
            results = (cast(INDEX, BufferLoad(running.steps, (j,))), BufferLoad(running.values, (j,)))
            return SeqStmt(
                tuple(
                    BufferStore(put.buffer, result, tuple(at(index, j) for index in put.indices), span=put.span)
                    for put, result in zip(found.start, results, strict=True)
                )
            )

        steps = For(k, 0, nest.extents[row], whole(take))
        writes = whole(write) if left is None else vector_loop(0, width, write, left)
        return sequence([AllocBuffer(running.steps), AllocBuffer(running.values), whole(running.clear), steps, writes])

    steps, done = split(0, nest.extents[var], lanes)
    i, left = PrimVar(f"{var.name.removeprefix('v')}_{lanes}", INDEX), minus(nest.extents[var], done)
    body = []
    if not (isinstance(steps, int) and steps == 0):
        body.append(For(i, 0, steps, tile(as_expr(times(i, lanes), INDEX), lanes, None)))
    if found.machine.has_masks and not (isinstance(left, int) and left == 0):
        width = 1 << (left - 1).bit_length() if isinstance(left, int) else lanes
        body.append(tile(as_expr(done, INDEX), width, None if width == left else left))
    elif not (isinstance(left, int) and left == 0):
        t = PrimVar("rest", INDEX)
        body.append(For(t, 0, left, tile(plus(done, t), 1, None)))
    return nested([(new, nest.extents[old]) for old, new in outer.items()], sequence(body))
