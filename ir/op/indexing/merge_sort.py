"""The positions of a row in the order of its elements: a bottom-up merge sort (stable, n log n) as statements.

    order = RowSort(capacity, size, element, dtype, descending)
    (*(AllocBuffer(b) for b in order.buffers), *order.statements(), ... order.at(rank) ...)

`element(position)` is the element at a position; nan counts as greater than every number. Positions of equal elements
stay in their order, also where the order is descending.

`RowRuns` tells a row that is in order already, or in the opposite one, so that nothing is sorted.

Source: Knuth, The Art of Computer Programming 3, 5.2.4.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import bits, is_float
from weft.ir.kernel.prim import binary, cast, const, intrinsic, unary
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

__all__ = ["RowRuns", "RowSort", "lazy"]


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


_FIRST, FEWEST = 32, 512
"""How many neighbours are looked at first, and of how many elements a row is in which that costs nothing."""


class RowRuns:
    """The order of one row of `size` elements, by two flags: 0 where it is rising, or falling, throughout.

    The first elements are looked at before all are: of a row without order they tell it at once. Equal elements are in
    order as they stand, zeros of both signs too; a falling row has none, unless `ties` says that nobody can tell them
    apart. nan is in no order here: a row with one is sorted. `put(position)` writes what a row that rises gives: the
    walk that may find so does that too.

    Source: Knuth, The Art of Computer Programming 3, 5.2.4 (natural merges).
    """

    def __init__(
        self,
        size: PrimExpr,
        element: Callable[[PrimExpr], PrimExpr],
        dtype: str,
        descending: bool,
        ties: bool,
        put: Callable[[PrimExpr], Stmt],
    ) -> None:
        self.size, self.element, self.dtype, self.put = size, element, dtype, put
        rising, falling = ("ge", "le" if ties else "lt") if descending else ("le", "ge" if ties else "gt")
        self.kinds = (rising, falling)
        number = f"uint{bits(dtype)}"
        self.flags = [Buffer(name, (1,), number) for name in ("unlike_rising", "unlike_falling")]

    @staticmethod
    def pays(capacity: Extent) -> bool:
        """Whether a row may have so many elements that looking at the first ones costs nothing."""
        return not isinstance(capacity, int) or capacity >= FEWEST

    def statements(self) -> list[Stmt]:
        """What decides."""
        short = binary("lt", self.size, index(FEWEST))
        rising, falling = self.flags
        risen = binary("or", short, self._holds(rising))
        last = IfThenElse(self._holds(rising), self.put(self.size - 1))
        return [*self._walks(rising, self.kinds[0], short, self.put), last, *self._walks(falling, self.kinds[1], risen)]

    def _walks(
        self, flag: Buffer, kind: str, unlike: PrimExpr, put: Callable[[PrimExpr], Stmt] | None = None
    ) -> list[Stmt]:
        """The first elements, then all where these are in order; nothing of a row that is unlike at once."""
        return [
            BufferStore(flag, cast(flag.dtype, unlike), (index(0),)),
            IfThenElse(self._holds(flag), self._walk(flag, kind, index(_FIRST))),
            IfThenElse(self._holds(flag), self._walk(flag, kind, self.size - 1, put)),
        ]

    def _walk(self, flag: Buffer, kind: str, count: PrimExpr, put: Callable[[PrimExpr], Stmt] | None = None) -> Stmt:
        i, here, there = PrimVar("i", INDEX), PrimVar("here", self.dtype), PrimVar("there", self.dtype)
        differs = binary("bitwise_xor", cast(flag.dtype, binary(kind, here, there)), const(1, flag.dtype))
        steps: list[Stmt] = [
            Bind(here, self.element(i)),
            Bind(there, self.element(i + 1)),
            BufferStore(flag, binary("bitwise_or", BufferLoad(flag, (index(0),)), differs), (index(0),)),
        ]
        if put is not None:
            steps.append(put(i))
        return For(i, 0, count, SeqStmt(tuple(steps)))

    def _holds(self, flag: Buffer) -> PrimExpr:
        return binary("eq", BufferLoad(flag, (index(0),)), const(0, flag.dtype))

    @property
    def is_rising(self) -> PrimExpr:
        """Whether the row is in order."""
        return self._holds(self.flags[0])

    @property
    def is_falling(self) -> PrimExpr:
        """Whether the row is in the opposite order, and no elements are equal."""
        return self._holds(self.flags[1])
