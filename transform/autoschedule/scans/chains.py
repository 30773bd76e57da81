"""Scans along rows whose joins may not be grouped: several rows side by side.

    for i: for k: out[i, k] = join(out[i, k - 1], x[i, k])      a join waits for the one before it
    for i in steps of 4:
      for k:                                                    four joins wait, each for the one of its own row
        out[i, k] = join(out[i, k - 1], x[i, k])
        out[i + 1, k] = join(out[i + 1, k - 1], x[i + 1, k]) ...

Every row is computed in its own order, to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.autoschedule.rules.accumulators import is_zero
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence, split, times
from weft.transform.autoschedule.scans.match import Scan

__all__ = ["rows_side_by_side"]


def rows_side_by_side(found: Scan, rows: int) -> Stmt:
    """Loops over the rows, so many at a time, and one over their elements; then the rows that are left."""
    *others, last = found.spatial
    outer = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in others}
    parts: list[Stmt] = []
    done: Extent = 0
    for count in (rows, 1):
        steps, end = split(done, found.extents[last], count)
        if not is_zero(steps):
            i = PrimVar(f"{last.name.removeprefix('v')}_{count}", INDEX)
            first = plus(done, times(i, count))
            chains = [_Chain(found, {**outer, last: plus(first, r)}) for r in range(count)]
            parts.append(For(i, 0, steps, sequence(_together(found, chains))))
        done = end
    return nested([(new, found.extents[old]) for old, new in outer.items()], sequence(parts))


class _Chain:
    """One row: its place, and the element before the one that comes, in a register."""

    def __init__(self, found: Scan, place: dict[PrimVar, PrimExpr]) -> None:
        self.found = found
        self.place = place
        self.before = Buffer("before", (1,), found.store.buffer.dtype, "local")

    @property
    def last(self) -> PrimExpr:
        """The element before."""
        return BufferLoad(self.before, (const(0, INDEX),))

    def put(self, value: PrimExpr, at: PrimExpr) -> Iterator[Stmt]:
        """The value of the scan at a place along the row, kept for the next and stored."""
        store, where = self.found.store, {**self.place, self.found.axis: at}
        yield BufferStore(self.before, substitute(value, {**where, self.found.previous: self.last}), (const(0, INDEX),))
        yield BufferStore(
            store.buffer, self.last, tuple(substitute(index, where) for index in store.indices), span=store.span
        )


def _together(found: Scan, chains: list[_Chain]) -> Iterator[Stmt]:
    """The elements of some rows, one of each after another."""
    yield from (AllocBuffer(chain.before) for chain in chains)
    extent, k = found.extents[found.axis], PrimVar(found.axis.name.removeprefix("v"), INDEX)
    start = [stmt for chain in chains for stmt in chain.put(found.first, const(0, INDEX))]
    step = [stmt for chain in chains for stmt in chain.put(found.later, plus(k, 1))]
    stmts = (*start, For(k, 0, minus(extent, 1), sequence(step)))
    if isinstance(extent, int):  # at least 2, as the rule has made sure
        yield from stmts
    else:
        yield IfThenElse(binary("gt", as_expr(extent, INDEX), const(0, INDEX)), sequence(stmts), None)
