"""The values of a row in order by how often each occurs: what sorts many elements of few bits.

    counts    how many elements have each key
    keys      every key as often as it was counted, from the least to the greatest

A walk that counts and one that writes from end to end, with no comparison and no element moved. Keys say the elements,
but for -0.0 and nan, which `Restored` puts back. The interface is that of `merge_sort.RowSort`; there are no positions.

Source: Seward, Information sorting in the application of electronic digital computers to business operations, 1954.
"""

from __future__ import annotations

from weft.dtypes import bits, is_float
from weft.ir.kernel.prim import cast, const
from weft.ir.op.indexing.sort_keys import Element, Restored, SortKeys, has_keys
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import Bind, Buffer, BufferLoad, BufferStore, Extent, For, PrimExpr, PrimVar, SeqStmt, Stmt

__all__ = ["CountingSort", "is_counted"]

_WIDEST, _PER_KEY, _LARGEST = 16, 4, 2**31
"""The most bits of elements, and how many elements there are at least for each key that one can have."""


def is_counted(dtype: str, capacity: Extent) -> bool:
    """Whether values of a dtype are counted in a row of so many.

    >>> is_counted("int16", 1 << 20), is_counted("int16", 1000), is_counted("int32", 1 << 20)
    (True, False, False)
    """
    width = bits(dtype)
    if not isinstance(capacity, int) or width > _WIDEST or not has_keys(dtype):
        return False
    return _PER_KEY << width <= capacity < _LARGEST


class CountingSort:
    """The sort of the values of one row of at most `capacity` elements, of which there are `size`."""

    def __init__(self, capacity: Extent, size: PrimExpr, element: Element, dtype: str, descending: bool) -> None:
        self.size, self.element, self.dtype = size, element, dtype
        self.sort_keys = SortKeys(dtype, descending)
        self.keys = Buffer("keys", (capacity,), self.sort_keys.key_dtype)
        self.counts = Buffer("counts", (1 << bits(dtype),), "int32")
        self.place = Buffer("place", (1,), INDEX)
        self.restored = Restored(self.sort_keys) if is_float(dtype) else None
        more = self.restored.buffers if self.restored else ()
        self.buffers: tuple[Buffer, ...] = (self.keys, self.counts, self.place, *more)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """Nobody asks for positions of values."""
        raise NotImplementedError

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.sort_keys.element(BufferLoad(self.keys, (index(rank),)))

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        d = PrimVar("d", INDEX)
        found: list[Stmt] = [For(d, 0, self.counts.shape[0], BufferStore(self.counts, const(0, "int32"), (d,)))]
        if self.restored:
            found.append(self.restored.start())
        found += [self._count(), BufferStore(self.place, index(0), (index(0),)), self._write()]
        if self.restored:
            found.append(self.restored.statements(self.keys, self.size, self.element))
        return found

    def _count(self) -> Stmt:
        """Count the keys."""
        i, value, slot = PrimVar("i", INDEX), PrimVar("value", self.dtype), PrimVar("slot", INDEX)
        key = PrimVar("key", self.sort_keys.key_dtype)
        steps: list[Stmt] = [
            Bind(value, self.element(i)),
            Bind(key, self.sort_keys.key(value)),
            Bind(slot, cast(INDEX, key)),
            BufferStore(self.counts, BufferLoad(self.counts, (slot,)) + 1, (slot,)),
        ]
        if self.restored:
            steps.append(self.restored.look(key, value))
        return For(i, 0, self.size, SeqStmt(tuple(steps)))

    def _write(self) -> Stmt:
        """Write every key as often as it was counted."""
        d, j, start, count = (PrimVar(name, INDEX) for name in ("d", "j", "start", "count"))
        key = cast(self.sort_keys.key_dtype, d)
        steps = (
            Bind(count, cast(INDEX, BufferLoad(self.counts, (d,)))),
            Bind(start, BufferLoad(self.place, (index(0),))),
            For(j, 0, count, BufferStore(self.keys, key, (start + j,))),
            BufferStore(self.place, start + count, (index(0),)),
        )
        return For(d, 0, self.counts.shape[0], SeqStmt(steps))
