"""The positions of the few first elements of a row: one walk that keeps them in order (insertion) as statements.

An element is compared with the last of those that are kept, a block of them at a time; few of many blocks are looked at
again. The interface is that of `merge_sort.RowSort`, for ranks below `kept`.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.indexing.merge_sort import RowSort, lazy
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
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
_BLOCK = 32
"""The elements that are looked at together."""


class FewFirst:
    """The selection of the `kept` first elements of a row of `size`, at least as many."""

    def __init__(
        self, kept: int, size: PrimExpr, element: Callable[[PrimExpr], PrimExpr], dtype: str, descending: bool
    ) -> None:
        self.kept, self.size, self.element = kept, size, element
        self.before = RowSort(kept, size, element, dtype, descending).is_before
        self.dtype = dtype
        self.order = Buffer("order", (kept,), INDEX)
        self.values = Buffer("values", (kept,), dtype)
        self.place = Buffer("place", (1,), INDEX)
        self.hits = Buffer("hits", (1,), "int32")
        self.buffers = (self.order, self.values, self.place, self.hits)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return BufferLoad(self.order, (index(rank),))

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.element(self.at(rank))

    def statements(self) -> list[Stmt]:
        """What selects."""
        i, block = PrimVar("i", INDEX), PrimVar("block", INDEX)
        blocks = binary("floordiv", self.size - self.kept, index(_BLOCK))
        rest = binary("floormod", self.size - self.kept, index(_BLOCK))
        value = PrimVar("value", self.dtype)
        first = For(i, 0, self.kept, SeqStmt((Bind(value, self.element(i)), self._insert(i, value, i))))
        start = block * _BLOCK + self.kept
        return [
            first,
            For(
                block,
                0,
                blocks,
                SeqStmt((self._look(start), IfThenElse(self._is_hit, self._walk(start, index(_BLOCK))))),
            ),
            self._walk(blocks * _BLOCK + self.kept, rest),
        ]

    def _look(self, start: PrimExpr) -> Stmt:
        """Note whether some element of a block is among the first so far: a reduction, which vectors do."""
        j, zero = PrimVar("j", INDEX), (index(0),)
        is_kept = cast("int32", self.before(self.element(start + j), self._last))
        seen = binary("bitwise_or", BufferLoad(self.hits, zero), is_kept)
        return SeqStmt(
            (BufferStore(self.hits, const(0, "int32"), zero), For(j, 0, _BLOCK, BufferStore(self.hits, seen, zero)))
        )

    @property
    def _is_hit(self) -> PrimExpr:
        return binary("ne", BufferLoad(self.hits, (index(0),)), const(0, "int32"))

    @property
    def _last(self) -> PrimExpr:
        """The last of the elements that are kept."""
        return BufferLoad(self.values, (index(self.kept - 1),))

    def _walk(self, start: PrimExpr, count: PrimExpr) -> Stmt:
        """Keep those elements of a range that are among the first."""
        j, at, value = PrimVar("j", INDEX), PrimVar("at", INDEX), PrimVar("value", self.dtype)
        kept = IfThenElse(self.before(value, self._last), self._insert(at, value, index(self.kept - 1)))
        return For(j, 0, count, SeqStmt((Bind(at, start + j), Bind(value, self.element(at)), kept)))

    def _insert(self, position: PrimExpr, value: PrimExpr, filled: PrimExpr) -> Stmt:
        """Keep an element in place of the one of rank `filled`, where its order says."""
        zero = (index(0),)
        place = BufferLoad(self.place, zero)
        before = BufferLoad(self.values, (place - 1,))
        moves = lazy(binary("lt", index(0), place), self.before(value, before), const(False, "bool"))
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
