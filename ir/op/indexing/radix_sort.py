"""The positions of a row in the order of its elements: a radix sort (stable, linear) as statements.

    keys      an unsigned number for each element whose order is that of the elements: equal elements have equal keys
    digits    8 bits of a key, 11 for many elements
    counts    how many keys have each digit, for every place of a key in one walk; then where the next one goes
    moved     with every key its position; nothing where nobody asks for positions (`of_values`): keys say the elements

Zeros of both signs are equal, nan is the greatest and equal to nan. So their keys do not say which they are: where a
row has -0.0 or nan, `of_values` walks it once more and gives the ranks of zeros and nan the elements in their order.

The interface is that of `merge_sort.RowSort`, which is quicker for few elements: `sort_of` takes this one from `LEAST`
elements on, and decides at the call for symbols.

Source: Knuth, The Art of Computer Programming 3, 5.2.5.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import bits, is_float, is_signed
from weft.ir.kernel.prim import binary, cast, const, intrinsic
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
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)

__all__ = ["LEAST", "RadixSort", "Sort", "sort_of"]

LEAST = 96
"""From how many elements on the radix sort is quicker."""
_MANY, _LARGEST = 8192, 2**31
_FLOATS = ("float16", "float32", "float64")
Element = Callable[[PrimExpr], PrimExpr]


class RadixSort:
    """The sort of one row of at most `capacity` elements, of which there are `size`; `order` has the positions then."""

    def __init__(
        self,
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        dtype: str,
        descending: bool,
        *,
        order: Buffer | None = None,
        of_values: bool = False,
    ) -> None:
        self.size, self.element, self.dtype, self.descending = size, element, dtype, descending
        self.of_values = of_values
        self.key, width = f"uint{bits(dtype)}", bits(dtype)
        self.digit = 11 if width >= 32 and isinstance(capacity, int) and capacity >= _MANY else 8
        self.passes = -(-width // self.digit)
        narrow = isinstance(capacity, int) and capacity < _LARGEST
        self.number = "int32" if narrow and order is None else INDEX
        self.keys = [Buffer(name, (capacity,), self.key) for name in ("keys", "moved_keys")]
        self.counts = Buffer("counts", (self.passes << self.digit,), self.number)
        self.total = Buffer("total", (1,), self.number)
        self.buffers: tuple[Buffer, ...] = (*self.keys, self.counts, self.total)
        self.moved: list[Buffer] = []
        self.order = self.keys[self.passes % 2]
        if of_values:
            self.special = Buffer("special", (1,), self.key)
            self.ranks = [Buffer(f"{name}_rank", (1,), INDEX) for name in ("zero", "nan")]
            self.buffers += (self.special, *self.ranks)
            return
        self.order = last = order or Buffer("order", (capacity,), self.number)
        other = Buffer("other", (capacity,), self.number)
        self.moved = [last, other] if self.passes % 2 == 0 else [other, last]
        self.buffers = (*([last] if order is None else []), other, *self.buffers)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return cast(INDEX, BufferLoad(self.order, (index(rank),)))

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        if not self.of_values:
            return self.element(self.at(rank))
        key = self._turned(BufferLoad(self.order, (index(rank),)))
        if is_float(self.dtype):
            above = binary("ne", binary("bitwise_and", key, self._top), self._constant(0))
            key = lazy(above, binary("bitwise_xor", key, self._top), binary("bitwise_xor", key, self._all))
        elif is_signed(self.dtype):
            key = binary("bitwise_xor", key, self._top)
        return PrimCall("reinterpret", (key,), self.dtype)

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        d = PrimVar("d", INDEX)
        clear = For(d, 0, self.passes << self.digit, BufferStore(self.counts, const(0, self.number), (d,)))
        found: list[Stmt] = [clear]
        if self._has_special:
            found.append(BufferStore(self.special, self._constant(0), (index(0),)))
        found.append(self._count())
        for number in range(self.passes):
            found += [*self._starts(number), self._move(number)]
        return [*found, self._restored()] if self._has_special else found

    @property
    def _has_special(self) -> bool:
        """Whether there may be elements that a key does not say."""
        return self.of_values and is_float(self.dtype)

    def _constant(self, value: int) -> PrimExpr:
        return const(value, self.key)

    @property
    def _top(self) -> PrimExpr:
        return self._constant(1 << (bits(self.dtype) - 1))

    @property
    def _all(self) -> PrimExpr:
        return self._constant((1 << bits(self.dtype)) - 1)

    def _turned(self, key: PrimExpr) -> PrimExpr:
        """A key for the other order where elements descend."""
        return binary("bitwise_xor", key, self._all) if self.descending else key

    def _total(self, value: PrimExpr) -> PrimExpr:
        """The key of an element among all that have other bits."""
        if is_float(self.dtype):
            raw = PrimCall("reinterpret", (value,), self.key)
            negative = binary("ne", binary("bitwise_and", raw, self._top), self._constant(0))
            below = binary("bitwise_xor", raw, self._all)
            return self._turned(lazy(negative, below, binary("bitwise_xor", raw, self._top)))
        if is_signed(self.dtype):
            return self._turned(binary("bitwise_xor", PrimCall("reinterpret", (value,), self.key), self._top))
        return self._turned(value)

    def _key(self, value: PrimExpr) -> PrimExpr:
        """The key of an element: one for both zeros, and one for all nan."""
        found = self._total(value)
        if is_float(self.dtype):
            found = lazy(binary("eq", value, const(0.0, self.dtype)), self._turned(self._top), found)
            found = lazy(intrinsic("isnan", value), self._turned(self._all), found)
        return found

    def _slot(self, key: PrimExpr, number: int) -> PrimExpr:
        """Where the digit of a key is counted."""
        shifted = binary("shift_right", key, self._constant(self.digit * number)) if number else key
        digit = cast(INDEX, binary("bitwise_and", shifted, self._constant((1 << self.digit) - 1)))
        return digit + (number << self.digit)

    def _count(self) -> Stmt:
        i, key, value = PrimVar("i", INDEX), PrimVar("key", self.key), PrimVar("value", self.dtype)
        statements: list[Stmt] = [
            Bind(value, self.element(i)),
            Bind(key, self._key(value)),
            BufferStore(self.keys[0], key, (i,)),
        ]
        if self.moved:
            statements.append(BufferStore(self.moved[0], cast(self.number, i), (i,)))
        if self._has_special:
            differs = binary("bitwise_xor", key, self._total(value))
            seen = binary("bitwise_or", BufferLoad(self.special, (index(0),)), differs)
            statements.append(BufferStore(self.special, seen, (index(0),)))
        for number in range(self.passes):
            slot = PrimVar(f"slot{number}", INDEX)
            more = BufferLoad(self.counts, (slot,)) + 1
            statements += [Bind(slot, self._slot(key, number)), BufferStore(self.counts, more, (slot,))]
        return For(i, 0, self.size, SeqStmt(tuple(statements)))

    def _starts(self, number: int) -> list[Stmt]:
        """Sums of the counts before each digit."""
        d, slot = PrimVar("d", INDEX), PrimVar("slot", INDEX)
        count, total = PrimVar("count", self.number), PrimVar("sum", self.number)
        body = (
            Bind(slot, d + (number << self.digit)),
            Bind(count, BufferLoad(self.counts, (slot,))),
            Bind(total, BufferLoad(self.total, (index(0),))),
            BufferStore(self.counts, total, (slot,)),
            BufferStore(self.total, total + count, (index(0),)),
        )
        start = BufferStore(self.total, const(0, self.number), (index(0),))
        return [start, For(d, 0, 1 << self.digit, SeqStmt(body))]

    def _move(self, number: int) -> Stmt:
        """Every key to its place by one digit."""
        i, key, slot = PrimVar("i", INDEX), PrimVar("key", self.key), PrimVar("slot", INDEX)
        count, place = PrimVar("count", self.number), PrimVar("place", INDEX)
        source, target = number % 2, 1 - number % 2
        body: list[Stmt] = [
            Bind(key, BufferLoad(self.keys[source], (i,))),
            Bind(slot, self._slot(key, number)),
            Bind(count, BufferLoad(self.counts, (slot,))),
            BufferStore(self.counts, count + 1, (slot,)),
            Bind(place, cast(INDEX, count)),
        ]
        if self.moved:
            body.append(BufferStore(self.moved[target], BufferLoad(self.moved[source], (i,)), (place,)))
        if number + 1 < self.passes or self.of_values:
            body.append(BufferStore(self.keys[target], key, (place,)))
        return For(i, 0, self.size, SeqStmt(tuple(body)))

    def _restored(self) -> Stmt:
        """Zeros and nan among the sorted keys as they came, where there are some that their keys do not say."""
        kinds = list(zip(self.ranks, (self._turned(self._top), self._turned(self._all)), strict=True))
        i, j = PrimVar("i", INDEX), PrimVar("j", INDEX)
        value, key = PrimVar("value", self.dtype), PrimVar("key", self.key)
        steps: list[Stmt] = [BufferStore(rank, index(0), (index(0),)) for rank, _ in kinds]
        sorted_key = BufferLoad(self.order, (j,))
        before = [
            IfThenElse(
                binary("lt", sorted_key, kind), BufferStore(rank, BufferLoad(rank, (index(0),)) + 1, (index(0),))
            )
            for rank, kind in kinds
        ]
        steps.append(For(j, 0, self.size, SeqStmt(tuple(before))))
        walk: list[Stmt] = [Bind(value, self.element(i)), Bind(key, self._key(value))]
        for rank, kind in kinds:
            place = BufferLoad(rank, (index(0),))
            kept = BufferStore(self.order, self._total(value), (place,))
            walk.append(IfThenElse(binary("eq", key, kind), SeqStmt((kept, BufferStore(rank, place + 1, (index(0),))))))
        steps.append(For(i, 0, self.size, SeqStmt(tuple(walk))))
        found = binary("ne", BufferLoad(self.special, (index(0),)), self._constant(0))
        return IfThenElse(found, SeqStmt(tuple(steps)))


class _Either:
    """Whichever is quicker for the size that the call has."""

    def __init__(self, capacity: Extent, size: PrimExpr, element: Element, dtype: str, descending: bool) -> None:
        self.size = size
        self.few = RowSort(capacity, size, element, dtype, descending)
        self.many = RadixSort(capacity, size, element, dtype, descending, order=self.few.order)
        self.buffers = (*self.few.buffers, *self.many.buffers)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return self.few.at(rank)

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.few.value(rank)

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        few, many = (SeqStmt(tuple(sort.statements())) for sort in (self.few, self.many))
        return [IfThenElse(binary("lt", self.size, index(LEAST)), few, many)]


Sort = RowSort | RadixSort | _Either


def sort_of(
    capacity: Extent, size: PrimExpr, element: Element, dtype: str, descending: bool, of_values: bool = False
) -> Sort:
    """The sort of a row that is quickest for its size and dtype; `of_values` where nobody asks for positions."""
    if (is_float(dtype) and dtype not in _FLOATS) or bits(dtype) % 8:
        return RowSort(capacity, size, element, dtype, descending)
    if not isinstance(capacity, int):
        return _Either(capacity, size, element, dtype, descending)
    if capacity < LEAST:
        return RowSort(capacity, size, element, dtype, descending)
    return RadixSort(capacity, size, element, dtype, descending, of_values=of_values)
