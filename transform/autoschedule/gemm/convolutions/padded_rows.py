"""Padded rows: what pads the input of windows, computed row by row in memory that stays near.

if the row is one of the input:  rows[y, :] = the first vector, under a mask; whole ones; the last one, under a mask
else:                            rows[y, :] = what it is padded with

A mask is there where a lane may lie beside the input, which follows from the range of the lanes: in the middle of a row
there is none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from weft.ir import replace, substitute, walk
from weft.ir.kernel.prim import binary, const
from weft.ir.kernel.simplify import simplify
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.analysis.access_pattern import Cost, cost, nest_of, writes_whole
from weft.transform.autoschedule.gemm.match import Contraction, Filling
from weft.transform.autoschedule.gemm.tiles import plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.registry import Site
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.strides import cases_along, uses

__all__ = ["ends_in_padding", "filled", "filling_at", "filling_before", "padded_row"]

Store = Callable[[int, PrimExpr, PrimExpr], BufferStore]
"""The part of a row, the place in it, a value -> what puts it there."""


def padded_row(
    value: PrimExpr, x: PrimVar, length: int, stride: int, lanes: int, store: Store, has_room: bool = False
) -> Stmt:
    """All `length` values along x, parted by the remainder of the stride, in vectors of so many lanes.

    A row that `has_room` for whole vectors is stored without a mask.
    """
    inside, value, outside = cases_along(value, x)
    row = sequence(_vectors(value, x, length, stride, lanes, store, has_room))
    if inside is None or outside is None:
        return row
    return IfThenElse(inside, row, sequence(_vectors(outside, x, length, stride, lanes, store, has_room)))


def ends_in_padding(value: PrimExpr, x: PrimVar, length: int) -> bool:
    """Whether values from `length` on along x are what a row is padded with, so that nothing is read for them."""
    value = cases_along(value, x)[1]
    if not isinstance(value, PrimCall) or value.op != "if_then_else":
        return False
    beyond = simplify(substitute(value.args[0], {x: const(length, INDEX)}))
    return isinstance(beyond, IntImm) and not beyond.value


def _vectors(
    value: PrimExpr, x: PrimVar, length: int, stride: int, lanes: int, store: Store, has_room: bool
) -> Iterator[Stmt]:
    """The parts of a row: of each the first vector, those in the middle, and what is left."""

    def vector(part: int, at: PrimExpr, used: int) -> Stmt:
        lane = PrimVar("lane", INDEX)
        place = plus(times(plus(at, lane), stride), const(part, INDEX))
        stmt: Stmt = store(part, plus(at, lane), substitute(value, {x: place}))
        if used < lanes and not has_room:
            stmt = IfThenElse(binary("lt", lane, const(used, INDEX)), stmt, None)
        return For(lane, 0, lanes, stmt, "vectorized")

    for part in range(stride):
        whole, left = divmod(ceil_div(length - part, stride), lanes)
        if whole:
            yield simplify(vector(part, const(0, INDEX), lanes))
        if whole > 1:
            j = PrimVar("j", INDEX)
            yield simplify(For(j, 1, whole - 1, vector(part, times(j, lanes), lanes)))
        if left:
            yield simplify(vector(part, const(whole * lanes, INDEX), left))


def filling_at(filling: Filling, places: Sequence[PrimExpr]) -> PrimExpr:
    """What an element of the input is computed as."""
    axes = (index for index in filling.store.indices if isinstance(index, PrimVar))
    return substitute(filling.store.value, dict(zip(axes, places, strict=True)))


def filled(found: Contraction, filling: Filling | None) -> Contraction:
    """Windows whose input is computed by a filling, or not, in the type of the sums.

    Elements of another type have one in any case: each is converted once as it is copied, and not by every tile.
    """
    buffer, casts = found.vector.buffer, found.casts[1]
    if not casts:
        return dataclasses.replace(found, filling=filling)
    axes = tuple(PrimVar(f"x{axis}", INDEX) for axis in range(buffer.ndim))
    store = BufferStore(buffer, BufferLoad(buffer, axes), axes) if filling is None else filling.store
    wide = BufferStore(Buffer(buffer.name, buffer.shape, found.dtype), _wide(found, store.value), store.indices)
    return dataclasses.replace(found, filling=Filling(wide, None if filling is None else filling.stmt))


def _wide(found: Contraction, value: PrimExpr) -> PrimExpr:
    """A value in the type of the sums: under a condition, the one where it holds and the other."""
    if isinstance(value, PrimCall) and value.op == "if_then_else":
        condition, chosen, other = value.args
        assert isinstance(chosen, PrimExpr)
        assert isinstance(other, PrimExpr)
        return replace(value, args=(condition, _wide(found, chosen), _wide(found, other)), dtype=found.dtype)
    return simplify(found.of_b(value))


def filling_before(site: Site, found: Contraction) -> Filling | None:
    """The nest right before windows that computes all of their input, which nothing else reads."""
    window, load = found.window, found.vector
    if window is None or any(uses(index, axis) for index in load.indices[: -len(window.axes)] for axis in window.axes):
        return None
    earlier = site.stmts[: site.position]
    before = [stmt for stmt in earlier if not isinstance(stmt, AllocBuffer)]
    is_local = any(isinstance(stmt, AllocBuffer) and stmt.buffer is load.buffer for stmt in earlier)
    stmt = before[-1] if before and isinstance(before[-1], For) else None
    nest = None if stmt is None else nest_of(stmt)
    if stmt is None or nest is None or nest.store.buffer is not load.buffer or not is_local:
        return None
    if nest.reduction or nest.init is not None or not writes_whole(nest) or cost(nest.store.value) is Cost.EXPENSIVE:
        return None
    others = [x for x in site.stmts if x is not stmt and x is not site.stmt and not isinstance(x, AllocBuffer)]
    alone = not any(part is load.buffer for other in others for part in walk(other))
    return Filling(nest.store, stmt) if alone else None
