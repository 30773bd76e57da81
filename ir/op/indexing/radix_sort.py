"""The positions of a row in the order of its elements: a radix sort (stable, linear) as statements.

    keys      an unsigned number for each element whose order is that of the elements: equal elements have equal keys
    digits    8 bits of a key, 11 for many elements
    counts    how many keys have each digit, for every place of a key in one walk; then where the next one goes
    moved     with every key its position; nothing where nobody asks for positions (`of_values`): keys say the elements

Zeros of both signs are equal, nan is the greatest and equal to nan. So their keys do not say which they are: where a
row has -0.0 or nan, `of_values` puts them back (`sort_keys`).

The interface is that of `merge_sort.RowSort`, which is quicker for few elements: `sort_of` takes this one from `LEAST`
elements on, and decides at the call for symbols.

Source: Knuth, The Art of Computer Programming 3, 5.2.5.
"""

from __future__ import annotations

from weft.dtypes import bits, is_float
from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.indexing.counting_sort import CountingSort, is_counted
from weft.ir.op.indexing.merge_sort import RowSort
from weft.ir.op.indexing.sort_keys import Element, Restored, SortKeys, has_keys
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
)

__all__ = ["LEAST", "RadixSort", "Sort", "sort_of"]

LEAST = 96
"""From how many elements on the radix sort is quicker."""
_MANY, _LARGEST = 8192, 2**31


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
        self.size, self.element, self.dtype = size, element, dtype
        self.of_values = of_values
        self.sort_keys = SortKeys(dtype, descending)
        self.key, width = self.sort_keys.key_dtype, bits(dtype)
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
        self.restored = Restored(self.sort_keys) if of_values and is_float(dtype) else None
        if of_values:
            self.buffers += self.restored.buffers if self.restored else ()
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
        return self.sort_keys.element(BufferLoad(self.order, (index(rank),)))

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        d = PrimVar("d", INDEX)
        clear = For(d, 0, self.passes << self.digit, BufferStore(self.counts, const(0, self.number), (d,)))
        found: list[Stmt] = [clear]
        if self.restored:
            found.append(self.restored.start())
        found.append(self._count())
        for number in range(self.passes):
            found += [*self._starts(number), self._move(number)]
        if self.restored:
            found.append(self.restored.statements(self.order, self.size, self.element))
        return found

    def _constant(self, value: int) -> PrimExpr:
        return const(value, self.key)

    def _slot(self, key: PrimExpr, number: int) -> PrimExpr:
        """Where the digit of a key is counted."""
        shifted = binary("shift_right", key, self._constant(self.digit * number)) if number else key
        digit = cast(INDEX, binary("bitwise_and", shifted, self._constant((1 << self.digit) - 1)))
        return digit + (number << self.digit)

    def _count(self) -> Stmt:
        i, key, value = PrimVar("i", INDEX), PrimVar("key", self.key), PrimVar("value", self.dtype)
        statements: list[Stmt] = [
            Bind(value, self.element(i)),
            Bind(key, self.sort_keys.key(value)),
            BufferStore(self.keys[0], key, (i,)),
        ]
        if self.moved:
            statements.append(BufferStore(self.moved[0], cast(self.number, i), (i,)))
        if self.restored:
            statements.append(self.restored.look(key, value))
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


Sort = RowSort | RadixSort | CountingSort | _Either


def sort_of(
    capacity: Extent, size: PrimExpr, element: Element, dtype: str, descending: bool, of_values: bool = False
) -> Sort:
    """The sort of a row that is quickest for its size and dtype; `of_values` where nobody asks for positions."""
    if not has_keys(dtype):
        return RowSort(capacity, size, element, dtype, descending)
    if not isinstance(capacity, int):
        return _Either(capacity, size, element, dtype, descending)
    if capacity < LEAST:
        return RowSort(capacity, size, element, dtype, descending)
    if of_values and is_counted(dtype, capacity):
        return CountingSort(capacity, size, element, dtype, descending)
    return RadixSort(capacity, size, element, dtype, descending, of_values=of_values)
