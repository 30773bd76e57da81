"""Packing for instructions over matrices: k is filled up with zeros to whole matrices, and rows with the last one.

A   one step of k after another, `depth` products each: the rows of the tile side by side
B   a panel for dot products in groups, with zeros for the groups that a last step has not
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import with_lanes
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import BufferLoad, BufferStore, Extent, For, IfThenElse, PrimExpr, PrimVar, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.dot_products.packing import DotPacking
from weft.transform.autoschedule.gemm.packing import place_in_b
from weft.transform.autoschedule.gemm.tiles import (
    Access,
    Panel,
    ceil_of,
    minus,
    plus,
    row_at,
    times,
    times_of,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["MatrixPacking"]


@dataclass(frozen=True)
class MatrixPacking(DotPacking):
    """The copies of the operands of a contraction whose products an instruction over matrices adds up."""

    def tile_of_a(self, row: PrimExpr, at: PrimExpr, count: int, clamp: Access, k: PrimExpr, steps: Extent) -> Stmt:
        """A tile of `count` rows from `at` on, of the block that starts at `row`."""
        blocking, depth = self.blocking, self.dot.depth
        padded, start = self.dot.padded_rows(count), times(at, blocking.padded_kc)

        def each_row(action: Callable[[BufferLoad, PrimExpr], Stmt]) -> Stmt:
            i = PrimVar("i", INDEX)
            own = i if padded == count else binary("min", i, const(count - 1, INDEX))
            load = row_at(blocking.found.scalar, blocking.r, plus(row, clamp(plus(at, own))))
            return For(i, 0, padded, action(load, i))

        def place(step: PrimExpr, i: PrimExpr) -> PrimExpr:
            return plus(start, times(plus(times(step, padded), i), depth))

        def copied(load: BufferLoad, i: PrimExpr, step: PrimExpr, first: PrimExpr, lanes: int) -> Stmt:
            value = self._of_a(load, k, plus(times(step, depth), first), lanes)
            return BufferStore(blocking.a, self._as_a(value), (vector_index(plus(place(step, i), first), lanes),))

        def steps_of_row(load: BufferLoad, i: PrimExpr) -> Stmt:
            stmts: list[Stmt] = []
            if whole != 0:
                p = PrimVar("p", INDEX)
                stmts.append(For(p, 0, whole, copied(load, i, p, const(0, INDEX), depth)))
            if rest != 0:
                t, last, zeros = (
                    PrimVar("t", INDEX),
                    as_expr(whole, INDEX),
                    const(0, with_lanes(blocking.a.dtype, depth)),
                )
                clear = BufferStore(blocking.a, zeros, (vector_index(place(last, i), depth),))
                partly = SeqStmt((clear, For(t, 0, rest, copied(load, i, last, t, 1))))
                is_there = None if isinstance(rest, int) else binary("gt", rest, const(0, INDEX))
                stmts.append(partly if is_there is None else IfThenElse(is_there, partly, None))
            return sequence(stmts)

        steps = times_of(steps, blocking.granularity)
        whole = steps // depth if isinstance(steps, int) else binary("floordiv", steps, const(depth, INDEX))
        rest = minus(steps, times_of(whole, depth))
        return each_row(steps_of_row)

    def panel_of_b(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """The groups of the panel one after another; zeros where it has no columns or no groups."""
        copy = super().panel_of_b(k, steps, panel)
        group, depth = self.dot.group, self.dot.depth
        steps = times_of(steps, self.blocking.granularity)
        if isinstance(steps, int):
            first: Extent = ceil_div(steps, group)
            missing: Extent = ceil_div(steps, depth) * (depth // group) - first
            if missing == 0:
                return copy
        else:
            first = ceil_of(steps, group)
            missing = minus(times(ceil_of(steps, depth), depth // group), first)
        q, j, lanes = PrimVar("q", INDEX), PrimVar("j", INDEX), panel.lanes * group
        place = times(plus(times(plus(as_expr(first, INDEX), q), panel.width), times(j, panel.lanes)), group)
        zero = const(0, with_lanes(self.blocking.b.dtype, lanes))
        clear = BufferStore(self.blocking.b, zero, place_in_b(self.blocking, panel, place, lanes))
        return sequence([copy, For(q, 0, missing, For(j, 0, panel.vectors, clear, "unrolled"))])

    def groups_of_b(self, k: PrimExpr, first: PrimExpr, count: int, panel: Panel) -> Stmt:
        """So many groups of a panel of a B that runs along the columns, of the block that starts at `k`."""
        q = PrimVar("q", INDEX)
        return For(q, 0, count, self._rows(k, plus(first, q), panel, lambda t: True))
