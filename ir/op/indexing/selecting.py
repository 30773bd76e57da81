"""The positions of the few first elements of a row: one walk that keeps them in order (insertion) as statements.

An element is compared with the last of those that are kept, a block of them at a time; few of many blocks are looked at
again. In long rows a sample at even distances goes first. The last that it keeps is a bound: copies of it, which every
equal element comes before, are what is kept as the walk begins, so that few elements of ascending rows are inserted.
The interface is that of `merge_sort.RowSort`, for ranks below `kept`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.ir.kernel.prim import binary, cast, const, unary
from weft.ir.op.indexing.block_hits import BLOCK, BlockHits
from weft.ir.op.indexing.merge_sort import RowSort, lazy
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["MOST", "FewFirst"]

MOST = 32
"""How many elements are kept at most."""
_LONG = 4096
"""The least elements of a row that is sampled."""
_STRIDE = 256
"""The distance of the elements of a sample where the size is known at run time."""


class FewFirst:
    """The selection of the `kept` first elements of a row of `size`, at least as many."""

    def __init__(
        self,
        kept: int,
        capacity: Extent,
        size: PrimExpr,
        element: Callable[[PrimExpr], PrimExpr],
        dtype: str,
        descending: bool,
    ) -> None:
        self.kept, self.size, self.element = kept, size, element
        self.stride = math.isqrt(capacity // kept) if isinstance(capacity, int) else _STRIDE
        self.least = max(_LONG, self.stride * kept)
        self.is_long = not isinstance(capacity, int) or capacity >= self.least
        self.before = RowSort(kept, size, element, dtype, descending).is_before
        self.dtype = dtype
        self.order = Buffer("order", (kept,), INDEX)
        self.values = Buffer("values", (kept,), dtype)
        self.place = Buffer("place", (1,), INDEX)
        self.hits = BlockHits()
        self.buffers = (self.order, self.values, self.place, self.hits.buffer)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return BufferLoad(self.order, (index(rank),))

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.element(self.at(rank))

    def statements(self) -> list[Stmt]:
        """What selects."""
        block, begin = PrimVar("block", INDEX), PrimVar("begin", INDEX)
        blocks = binary("floordiv", self.size - begin, index(BLOCK))
        rest = binary("floormod", self.size - begin, index(BLOCK))
        start = block * BLOCK + begin
        return [
            *self._begin(begin),
            For(
                block,
                0,
                blocks,
                SeqStmt((self._look(start), IfThenElse(self.hits.is_hit, self._walk(start, index(BLOCK))))),
            ),
            self._walk(blocks * BLOCK + begin, rest),
        ]

    def _begin(self, begin: PrimVar) -> list[Stmt]:
        """What is there before the walk, and the position where that begins."""
        if not self.is_long:
            return [self._insert_first(index(1)), Bind(begin, index(self.kept))]
        is_long, step = binary("le", index(self.least), self.size), PrimVar("step", INDEX)
        sample = binary("floordiv", self.size, index(self.stride)) - self.kept
        j, at, value = PrimVar("j", INDEX), PrimVar("at", INDEX), PrimVar("value", self.dtype)
        kept = IfThenElse(self.before(value, self._last), self._insert(at, value, index(self.kept - 1)))
        more = (Bind(at, (j + self.kept) * self.stride), Bind(value, self.element(at)), kept)
        bound, rank = PrimVar("bound", self.dtype), PrimVar("rank", INDEX)
        copies = (BufferStore(self.values, bound, (rank,)), BufferStore(self.order, self.size, (rank,)))
        sampled = (
            For(j, 0, sample, SeqStmt(more)),
            Bind(bound, self._last),
            For(rank, 0, self.kept, SeqStmt(copies)),
        )
        walked = binary("mul", cast(INDEX, unary("not", is_long)), index(self.kept))
        return [
            Bind(step, cast(INDEX, is_long) * (self.stride - 1) + 1),
            self._insert_first(step),
            IfThenElse(is_long, SeqStmt(sampled)),
            Bind(begin, walked),
        ]

    def _insert_first(self, step: PrimExpr) -> Stmt:
        """Put the first elements in order, of all or of those at so many positions."""
        i, value = PrimVar("i", INDEX), PrimVar("value", self.dtype)
        at = i * step
        return For(i, 0, self.kept, SeqStmt((Bind(value, self.element(at)), self._insert(at, value, i))))

    def _comes_before(self, value: PrimExpr, rank: PrimExpr) -> PrimExpr:
        """Whether an element comes before what is kept at a rank; all others there have smaller positions."""
        kept = BufferLoad(self.values, (rank,))
        comes = self.before(value, kept)
        if not self.is_long:
            return comes
        return binary("or", comes, binary("and", self._is_copy(rank), unary("not", self.before(kept, value))))

    def _is_copy(self, rank: PrimExpr) -> PrimExpr:
        """Whether a copy of the bound is what is kept at a rank: its position is behind the row."""
        return binary("eq", self.at(rank), self.size)

    def _look(self, start: PrimExpr) -> Stmt:
        """Note whether some element of a block is among the first so far."""
        strict = self._note(start, lambda value: self.before(value, self._last))
        if not self.is_long:
            return strict
        equal = self._note(start, lambda value: unary("not", self.before(self._last, value)))
        return IfThenElse(self._is_copy(index(self.kept - 1)), equal, strict)

    def _note(self, start: PrimExpr, is_kept: Callable[[PrimExpr], PrimExpr]) -> Stmt:
        """Note whether some element of a block is kept."""
        return self.hits.look(lambda j: is_kept(self.element(start + j)))

    @property
    def _last(self) -> PrimExpr:
        """The last of the elements that are kept."""
        return BufferLoad(self.values, (index(self.kept - 1),))

    def _walk(self, start: PrimExpr, count: PrimExpr) -> Stmt:
        """Keep those elements of a range that are among the first."""
        j, at, value = PrimVar("j", INDEX), PrimVar("at", INDEX), PrimVar("value", self.dtype)
        last = index(self.kept - 1)
        kept = IfThenElse(self._comes_before(value, last), self._insert(at, value, last))
        return For(j, 0, count, SeqStmt((Bind(at, start + j), Bind(value, self.element(at)), kept)))

    def _insert(self, position: PrimExpr, value: PrimExpr, filled: PrimExpr) -> Stmt:
        """Keep an element in place of the one of rank `filled`, where its order says."""
        zero = (index(0),)
        place = BufferLoad(self.place, zero)
        before = BufferLoad(self.values, (place - 1,))
        moves = lazy(binary("lt", index(0), place), self._comes_before(value, place - 1), const(False, "bool"))
        shift = (
            BufferStore(self.order, self.at(place - 1), (place,)),
            BufferStore(self.values, before, (place,)),
            BufferStore(self.place, place - 1, zero),
        )
        return SeqStmt(
            (
                BufferStore(self.place, filled, zero),
                While(moves, SeqStmt(shift)),
                BufferStore(self.order, position, (place,)),
                BufferStore(self.values, value, (place,)),
            )
        )
