"""Nests that swap axes: squares of vectors, transposed in registers.

    for i: for j: y[i, j] = x[j, i]        for squares: lanes rows of x are loaded, log2(lanes) stages of shuffles make
                                           them rows of y, which are stored

Each stage replaces pairs of rows by two shuffles of them, of a kind that instruction sets have one instruction for (a
butterfly network has none for half of its stages): first the halves, quarters, ... of both rows, down to groups of 128
bits, then the lower and the upper elements of each group in turn. The remainder is copied element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.dtypes import bits, is_bool, with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import const
from weft.ir.tensor import (
    Bind,
    BufferLoad,
    BufferStore,
    Extent,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import Nest
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, checked
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence, split, times
from weft.transform.autoschedule.rules.strides import kinds_in, step_along
from weft.transform.infra.decisions import Decision

__all__ = ["TransposeRule", "transposed"]

_GROUP_BITS = 128
"""Within so many bits instructions take elements of two vectors in turn."""


class TransposeRule(Rule):
    """Elements along another axis: squares of vectors, transposed in registers."""

    name = "transpose"
    order = 310
    pins = frozenset(("lanes",))

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Squares of as many elements as a register has."""
        found = None if site.nest is None else site.once(_transposed, site.nest, machine)
        if found is None:
            return None
        _, u, v, lanes = found
        values = {"from_axis": u.name, "to_axis": v.name, "lanes": lanes}
        return Decision(site.name, self.name, values, "whole vectors are loaded and stored along both axes")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """Loops over squares."""
        found = None if site.nest is None else site.once(_transposed, site.nest, machine)
        assert found is not None
        assert site.nest is not None
        load, u, v, _ = found
        extents = [extent for x in (u, v) if isinstance(extent := site.nest.extents[x], int)]
        lanes = checked(decision, "lanes", 2, min([64, *extents]), "a square has to fit both axes", power=True)
        return _squares(site.nest, load, u, v, lanes)


def _transposed(nest: Nest, machine: MachineModel) -> tuple[BufferLoad, PrimVar, PrimVar, int] | None:
    """What is loaded, the axis that it lies along, the axis of what is stored, the lanes of a vector."""
    store, load = nest.store, nest.store.value
    if nest.reduction or nest.init is not None or not isinstance(load, BufferLoad) or load.buffer is store.buffer:
        return None
    if load.dtype != store.buffer.dtype or is_bool(load.dtype) or kinds_in(load) is None:
        return None
    v = next((var for var in nest.spatial if step_along(store, var) == 1), None)
    u = next((var for var in nest.spatial if step_along(load, var) == 1), None)
    lanes = machine.lanes([load.dtype])
    if u is None or v is None or u is v or lanes < 2 or not _is_flat(store, v) or not _is_flat(load, u):
        return None
    extents = [nest.extents[x] for x in (u, v)]
    if any(isinstance(extent, int) and extent < lanes for extent in extents):
        return None
    return load, u, v, lanes


def _is_flat(access: BufferLoad | BufferStore, var: PrimVar) -> bool:
    """Whether the variable is the last index, so that a vector along it is a Ramp there."""
    return access.indices[-1] is var


def _squares(nest: Nest, load: BufferLoad, u: PrimVar, v: PrimVar, lanes: int) -> Stmt:
    store = nest.store
    outer = {x: PrimVar(x.name.removeprefix("v"), INDEX) for x in nest.spatial if x not in (u, v)}
    i, j = (PrimVar(f"{x.name.removeprefix('v')}_{lanes}", INDEX) for x in (u, v))
    (rows, end_u), (columns, end_v) = (split(0, nest.extents[x], lanes) for x in (u, v))
    at_u, at_v = plus(times(i, lanes), 0), plus(times(j, lanes), 0)

    def row(k: int) -> BufferLoad:
        places: dict[PrimVar, PrimExpr] = {**outer, v: plus(at_v, k)}
        indices = tuple(substitute(x, places) for x in load.indices[:-1])
        return BufferLoad(load.buffer, (*indices, Ramp(at_u, const(1, INDEX), lanes)), span=load.span)

    def put(k: int, value: PrimExpr) -> Stmt:
        places: dict[PrimVar, PrimExpr] = {**outer, u: plus(at_u, k)}
        indices = tuple(substitute(x, places) for x in store.indices[:-1])
        return BufferStore(store.buffer, value, (*indices, Ramp(at_v, const(1, INDEX), lanes)), span=store.span)

    parts: list[Stmt | None] = [nested([(i, rows), (j, columns)], transposed(row, put, lanes, load.dtype))]
    parts.append(_copied(nest, outer, (u, 0, end_u), (v, end_v, nest.extents[v])))
    parts.append(_copied(nest, outer, (u, end_u, nest.extents[u]), (v, 0, nest.extents[v])))
    kept = [part for part in parts if part is not None]
    return nested([(new, nest.extents[old]) for old, new in outer.items()], sequence(kept))


def _copied(nest: Nest, outer: dict[PrimVar, PrimVar], *ranges: tuple[PrimVar, Extent, Extent]) -> Stmt | None:
    """Elements of a rectangle one by one; None where it is empty."""
    loops: list[tuple[PrimVar, Extent]] = []
    places: dict[PrimVar, PrimExpr] = {**outer}
    for var, start, end in ranges:
        count = minus(end, start)
        if isinstance(count, int) and count == 0:
            return None
        new = PrimVar(var.name.removeprefix("v"), INDEX)
        places[var] = plus(start, new)
        loops.append((new, count))
    return nested(loops, substitute(nest.store, places))


def transposed(row: Callable[[int], PrimExpr], put: Callable[[int, PrimExpr], Stmt], lanes: int, dtype: str) -> Stmt:
    """`put(k, vector)` for every column k of the square whose rows are `row(0)`, `row(1)`, ..."""
    kind = with_lanes(dtype, lanes)
    stmts: list[Stmt] = []

    def named(value: PrimExpr, name: str) -> PrimVar:
        var = PrimVar(name, kind)
        stmts.append(Bind(var, value))
        return var

    rows = [named(row(k), f"row_{k}") for k in range(lanes)]
    in_group = 1 << (_GROUP_BITS // bits(dtype)).bit_length() - 1
    for stage in _stages(lanes, min(lanes, in_group)):
        new = list(rows)
        for (first, second), places in stage.pairs.items():
            a, b = rows[first], rows[second]
            for place, order in zip(places, stage.orders, strict=True):
                new[place] = named(Shuffle((a, b), order), f"row_{place}")
        rows = new
    stmts.extend(put(k, rows[k]) for k in range(lanes))
    return SeqStmt(tuple(stmts))


@dataclass(frozen=True)
class _Stage:
    """Pairs of rows, and the rows that two shuffles of them become."""

    pairs: Mapping[tuple[int, int], tuple[int, int]]
    orders: tuple[tuple[PrimExpr, ...], tuple[PrimExpr, ...]]


def _stages(lanes: int, group: int) -> list[_Stage]:
    """The stages for squares of so many lanes, in groups of so many."""
    by_groups, by_elements = (size.bit_length() - 1 for size in (lanes // group, group))
    parted = [_parted(lanes, group, lanes >> stage) for stage in range(by_groups)]
    return parted + [_interleaved(lanes, group)] * by_elements


def _parted(lanes: int, group: int, size: int) -> _Stage:
    """The first and the second halves of each so many lanes, of rows that are a group apart among as many."""
    half = size // 2
    starts = range(0, lanes, size)
    firsts = [at + e for at in range(0, size, 2 * group) for e in range(group)]
    pairs = {(at + row, at + row + group): (at + k, at + k + half) for at in starts for k, row in enumerate(firsts)}
    first = [row + at + e for row in (0, lanes) for at in starts for e in range(half)]
    return _Stage(pairs, (_numbers(first), _numbers([lane + half for lane in first])))


def _interleaved(lanes: int, group: int) -> _Stage:
    """The lower and the upper elements of each group, in turn of rows that are half a group apart."""
    half = group // 2
    firsts = [at + e for at in range(0, lanes, group) for e in range(half)]
    pairs = {(row, row + half): (2 * at, 2 * at + 1) for at, row in enumerate(firsts)}
    lower = [row + first for first in firsts for row in (0, lanes)]
    return _Stage(pairs, (_numbers(lower), _numbers([lane + half for lane in lower])))


def _numbers(lanes: list[int]) -> tuple[PrimExpr, ...]:
    return tuple(const(lane, "int32") for lane in lanes)
