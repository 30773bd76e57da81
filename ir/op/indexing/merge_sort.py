"""The positions of a row in the order of its elements: a bottom-up merge sort (stable, n log n) as statements.

    order = RowSort(capacity, size, element, dtype, descending)
    (*(AllocBuffer(b) for b in order.buffers), *order.statements(), ... order.at(rank) ...)

`element(position)` is the element at a position; nan counts as greater than every number. Positions of equal elements
stay in their order, also where the order is descending.

Source: Knuth, The Art of Computer Programming 3, 5.2.4.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import is_float
from weft.ir.kernel.prim import binary, const, intrinsic, unary
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["RowSort", "lazy"]


def lazy(condition: PrimExpr, yes: PrimExpr, no: PrimExpr) -> PrimExpr:
    """One of two values, of which only that one is computed."""
    return PrimCall("if_then_else", (condition, yes, no), yes.dtype)


class RowSort:
    """The sort of one row of at most `capacity` elements, of which there are `size`."""

    def __init__(
        self,
        capacity: Extent,
        size: PrimExpr,
        element: Callable[[PrimExpr], PrimExpr],
        dtype: str,
        descending: bool,
    ) -> None:
        self.size = size
        self.element = element
        self.is_float = is_float(dtype)
        self.descending = descending
        self.order, self.merged = (Buffer(name, (capacity,), INDEX) for name in ("order", "merged"))
        self.width, self.left, self.right = (Buffer(name, (1,), INDEX) for name in ("width", "left", "right"))
        self.buffers = (self.order, self.merged, self.width, self.left, self.right)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return _get(self.order, rank)

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.element(self.at(rank))

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        i = PrimVar("i", INDEX)
        start = For(i, 0, self.size, _set(self.order, i, i))
        return [start, _set(self.width, 1), While(binary("lt", _get(self.width), self.size), self._pass())]

    def is_before(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Whether a must stand before b."""
        if self.descending:
            a, b = b, a
        less = binary("lt", a, b)
        if not self.is_float:
            return less
        nan_last = binary("and", intrinsic("isnan", b), unary("not", intrinsic("isnan", a)))
        return binary("or", less, nan_last)

    def _pass(self) -> Stmt:
        """Merge neighbouring runs of `width` positions, and double it."""
        width, run, i = _get(self.width), PrimVar("run", INDEX), PrimVar("j", INDEX)
        runs = binary("floordiv", self.size + width * 2 - 1, width * 2)
        copy = For(i, 0, self.size, _set(self.order, _get(self.merged, i), i))
        return SeqStmt((For(run, 0, runs, self._merge(run, width)), copy, _set(self.width, width * 2)))

    def _merge(self, run: PrimVar, width: PrimExpr) -> Stmt:
        """Merge [low, middle) and [middle, high) of the order."""
        low, middle, high, at = (PrimVar(name, INDEX) for name in ("low", "middle", "high", "at"))
        left, right = _get(self.left), _get(self.right)
        later = self.is_before(self.element(self.at(right)), self.element(self.at(left)))
        true, false = const(True, "bool"), const(False, "bool")
        from_left = lazy(binary("lt", left, middle), lazy(binary("lt", right, high), unary("not", later), true), false)

        def take(side: Buffer) -> Stmt:
            position = _get(side)
            return SeqStmt((_set(self.merged, self.at(position), at), _set(side, position + 1)))

        return SeqStmt(
            (
                Bind(low, run * 2 * width),
                Bind(middle, binary("min", low + width, self.size)),
                Bind(high, binary("min", low + width * 2, self.size)),
                _set(self.left, low),
                _set(self.right, middle),
                For(at, low, high - low, IfThenElse(from_left, take(self.left), take(self.right))),
            )
        )


def _get(buffer: Buffer, position: int | PrimExpr = 0) -> PrimExpr:
    return BufferLoad(buffer, (index(position),))


def _set(buffer: Buffer, value: int | PrimExpr, position: int | PrimExpr = 0) -> Stmt:
    return BufferStore(buffer, index(value), (index(position),))
