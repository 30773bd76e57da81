"""Constant operands as a whole in the order of tiles: plain copies, which `PackConstants` takes out of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.ir import substitute
from weft.ir.kernel.prim import const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.transform.autoschedule.gemm.blocking import Blocking, has_matrices, known, padded_k_of
from weft.transform.autoschedule.gemm.packing import each_k
from weft.transform.autoschedule.gemm.tiles import divided, plus, runs_of_panels, times
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["packed_constants", "row_of_constant"]


def packed_constants(blocking: Blocking) -> Iterator[Stmt]:
    """The copies of those operands that are constants."""
    if blocking.constant_a:
        yield AllocBuffer(blocking.a)
    if blocking.constant_b:
        yield AllocBuffer(blocking.b)
    if blocking.constant_a:
        yield from _copies_of_a(blocking)
    if blocking.constant_b:
        yield from _copies_of_b(blocking)


def row_of_constant(blocking: Blocking, target: Buffer, start: PrimExpr) -> tuple[PrimExpr, int]:
    """The row of a packed constant that holds a panel or tile from `start` on, and the elements before it there.

    Narrower ones, which cover the remainder, share the last row.
    """
    width, length = (blocking.nr, padded_k_of(blocking)) if target is blocking.b else (blocking.mr, blocking.k_extent)
    if isinstance(start, IntImm):
        return const(start.value // width, INDEX), start.value % width * length
    return divided(start, width), 0


def _copies_of_a(blocking: Blocking) -> Iterator[Stmt]:
    rows = known(blocking.found.extents[blocking.r])
    whole = rows // blocking.mr * blocking.mr
    for start, width, count in ((0, blocking.mr, rows // blocking.mr), (whole, rows - whole, 1)):
        if width and count:
            yield _copy(blocking, blocking.found.scalar, blocking.r, blocking.a, start, width, count, width)


def _copies_of_b(blocking: Blocking) -> Iterator[Stmt]:
    found, b = blocking.found, blocking.b
    load, v = found.vector, found.v
    columns = known(found.extents[v])
    whole = has_matrices(blocking)
    runs = runs_of_panels(columns, blocking.nr_vectors, blocking.capacity, blocking.separate_remainders, whole)
    if padded_k_of(blocking) != blocking.k_extent:
        row, i = PrimVar("row", INDEX), PrimVar("i", INDEX)
        clear = BufferStore(b, const(0.0, b.dtype), (row, i))
        yield For(row, 0, b.shape[0], For(i, 0, b.shape[1], clear))
    for start, width, count, last in runs:
        if last == width:
            yield _copy(blocking, load, v, b, start, width, count, width)
            continue
        if count > 1:
            yield _copy(blocking, load, v, b, start, width, count - 1, width)
        end = start + (count - 1) * width
        i, (row, skipped) = PrimVar("i", INDEX), row_of_constant(blocking, b, const(end, INDEX))
        place = (row, plus(const(skipped, INDEX), i))
        yield For(i, 0, padded_k_of(blocking) * width, BufferStore(b, const(0.0, b.dtype), place))
        yield _copy(blocking, load, v, b, end, width, 1, last)


def _copy(
    blocking: Blocking, load: BufferLoad, var: PrimVar, target: Buffer, start: int, width: int, count: int, used: int
) -> Stmt:
    """`count` panels or tiles of `width` from `start` on, of which `used` are there: each along k."""
    found, panel = blocking.found, PrimVar("panel", INDEX)
    first, skipped = row_of_constant(blocking, target, const(start, INDEX))
    row = first if count == 1 else plus(first, panel)
    widens = target is blocking.a and blocking.widens_a

    def each_column(copied: Callable[[PrimExpr, PrimExpr], Stmt]) -> Stmt:
        """What is done for each place in a panel or tile, and the column or row there."""
        j, part, first = PrimVar("j", INDEX), PrimVar("part", INDEX), plus(const(start, INDEX), times(panel, width))
        if found.parts is None or var is not found.v:
            return For(j, 0, used, copied(j, plus(first, j)))
        each = width // found.part_count
        column = plus(plus(divided(first, found.part_count), times(part, found.parts.columns)), j)
        return For(part, 0, found.part_count, For(j, 0, each, copied(plus(times(part, each), j), column)))

    def at_k(values: dict[PrimVar, PrimExpr], number: PrimExpr) -> Stmt:
        def copied(at: PrimExpr, column: PrimExpr) -> Stmt:
            place = (row, plus(const(skipped, INDEX), plus(times(number, width), at)))
            value = substitute(load, {**values, var: column})
            return BufferStore(target, found.of_a(value) if widens else value, place)

        return each_column(copied)

    extent = known(blocking.found.extents[blocking.k])
    if blocking.group == 1 or target is not blocking.b:
        return For(panel, 0, count, each_k(blocking, const(0, INDEX), extent, at_k))
    group, q = blocking.group, PrimVar("q", INDEX)

    def of_group(number: PrimExpr, terms: int) -> Stmt:
        def copied(at: PrimExpr, column: PrimExpr) -> Stmt:
            t = PrimVar("t", INDEX)
            value = substitute(load, {blocking.k: plus(times(number, group), t), var: column})
            place = (row, plus(const(skipped, INDEX), plus(times(plus(times(number, width), at), group), t)))
            return For(t, 0, terms, BufferStore(target, value, place))

        return each_column(copied)

    copies: list[Stmt] = [For(q, 0, extent // group, of_group(q, group))]
    if extent % group:
        copies.append(of_group(const(extent // group, INDEX), extent % group))
    return For(panel, 0, count, sequence(copies))
