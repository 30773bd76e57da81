"""The positions of the few first elements of a row: one walk that keeps them in order (insertion) as statements.

An element is looked at once, and compared with the last of those that are kept; few of many elements go further. The
interface is that of `merge_sort.RowSort`, for ranks below `kept`.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.kernel.prim import binary, const
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


class FewFirst:
    """The selection of the `kept` first elements of a row of `size`, at least as many."""

    def __init__(
        self, kept: int, size: PrimExpr, element: Callable[[PrimExpr], PrimExpr], dtype: str, descending: bool
    ) -> None:
        self.kept, self.size, self.element = kept, size, element
        self.before = RowSort(kept, size, element, dtype, descending).is_before
        self.dtype = dtype
        self.order = Buffer("order", (kept,), INDEX)
        self.place = Buffer("place", (1,), INDEX)
        self.last = Buffer("last", (1,), dtype)
        self.buffers = (self.order, self.place, self.last)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return BufferLoad(self.order, (index(rank),))

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.element(self.at(rank))

    def statements(self) -> list[Stmt]:
        """What selects."""
        i, value = PrimVar("i", INDEX), PrimVar("value", self.dtype)
        zero = (index(0),)
        is_kept = lazy(
            binary("lt", i, index(self.kept)), const(True, "bool"), self.before(value, BufferLoad(self.last, zero))
        )
        place = BufferLoad(self.place, zero)
        above = self.element(self.at(place - 1))
        moves = lazy(binary("lt", index(0), place), self.before(value, above), const(False, "bool"))
        shift = SeqStmt(
            (
                BufferStore(self.order, self.at(place - 1), (place,)),
                BufferStore(self.place, place - 1, zero),
            )
        )
        filled = binary("min", i, index(self.kept - 1))
        insert = SeqStmt(
            (
                BufferStore(self.place, filled, zero),
                While(moves, shift),
                BufferStore(self.order, i, (place,)),
                BufferStore(self.last, self.element(self.at(filled)), zero),
            )
        )
        walk = For(i, 0, self.size, SeqStmt((Bind(value, self.element(i)), IfThenElse(is_kept, insert))))
        start = BufferStore(self.last, const(0, self.dtype), zero)
        return [start, walk]
