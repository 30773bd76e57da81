"""Rows sorted by vector code: keys, one intrinsic, elements.

    keys[i] = key of element i            an unsigned number; with its position below it where positions are asked for
    T.sort_keys(keys, spare, size)        networks in registers and partitions of vectors
    order                                 positions are the low bits of a key; values are what the key says

Keys that leave no room for positions have them beside (T.sort_pairs). Keys with positions are all different, so their
order is that of a stable sort. The form is for targets that have the intrinsic (T.has_intrinsic); the interface is that
of `merge_sort.RowSort`, and `radix_sort` is what others do.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.dtypes import bits, is_float
from weft.ir.graph import StringImm
from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.indexing.sort_keys import Element, Restored, SortKeys, has_keys
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    Extent,
    For,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass

__all__ = ["FEWEST", "SELECTS", "SORTS", "Layout", "VectorSort", "layout_of", "sort_call"]

SORTS, SELECTS = ("sort_keys", "sort_pairs"), ("select_key", "select_pair")
_WIDTHS = (32, 64)
_POSITION = "uint32"
_SMALLEST = 2
"""Elements of one byte are counted: no comparison is as quick."""
FEWEST = 16
"""A row that is known to have fewer elements does not fill a vector."""


@dataclass(frozen=True)
class Layout:
    """Where a key stands in the number that is sorted: above so many bits of its position, or with that beside."""

    bits: int
    position_bits: int
    beside: bool = False

    @property
    def dtype(self) -> str:
        """The dtype of the numbers."""
        return f"uint{self.bits}"


def layout_of(dtype: str, capacity: Extent, with_positions: bool) -> Layout | None:
    """The narrowest numbers that hold the keys of a dtype (and positions if they can); None where none do."""
    width = bits(dtype)
    if not has_keys(dtype) or width < 8 * _SMALLEST or (isinstance(capacity, int) and capacity < FEWEST):
        return None
    if not with_positions:
        return Layout(max(width, _WIDTHS[0]), 0)
    if isinstance(capacity, int) and capacity >= 1 << 32:
        return None
    for total in _WIDTHS:
        room = total - width
        if room >= 32 or (room > 0 and isinstance(capacity, int) and capacity <= 1 << room):
            return Layout(total, min(room, 32))
    return Layout(_WIDTHS[-1], 32, beside=True)


def sort_call(name: str, memory: Sequence[Buffer], *sizes: PrimExpr) -> Stmt:
    """The call of an intrinsic on memory, of whose keys there are so many."""
    addresses = [PrimCall("address_of", (BufferLoad(each, (index(0),)),), "handle") for each in memory]
    return Evaluate(PrimCall(name, (*addresses, *sizes), "void"))


class VectorSort:
    """The sort of one row of at most `capacity` elements, of which there are `size`."""

    def __init__(
        self,
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        keys: SortKeys,
        layout: Layout,
    ) -> None:
        self.size, self.element, self.sort_keys, self.layout = size, element, keys, layout
        room = max(capacity, 1) if isinstance(capacity, int) else binary("max", index(capacity), index(1))
        self.keys, self.spare = (Buffer(name, (room,), layout.dtype) for name in ("keys", "spare"))
        names = ("positions", "spare_positions") if layout.beside else ()
        self.positions = tuple(Buffer(name, (room,), _POSITION) for name in names)
        self.restored = Restored(keys) if not layout.position_bits and is_float(keys.dtype) else None
        more = self.restored.buffers if self.restored else ()
        self.buffers: tuple[Buffer, ...] = (self.keys, self.spare, *self.positions, *more)

    @classmethod
    def of(
        cls,
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        dtype: str,
        descending: bool,
        of_values: bool = False,
    ) -> VectorSort | None:
        """The sort of a row; None where its keys do not fit."""
        layout = layout_of(dtype, capacity, not of_values)
        return None if layout is None else cls(capacity, size, element, SortKeys(dtype, descending, of_values), layout)

    @property
    def condition(self) -> PrimExpr:
        """Whether the form may be taken: the target has the intrinsic, and positions have room."""
        query = PrimCall("has_intrinsic", (StringImm(self._named(SORTS)), StringImm(self.layout.dtype)), "bool")
        known = isinstance(self.keys.shape[0], int)
        if known or not self.layout.position_bits:
            return query
        return binary("and", query, binary("lt", self.size, index(1 << self.layout.position_bits)))

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        place = (index(rank),)
        if self.layout.beside:
            return cast(INDEX, BufferLoad(self.positions[0], place))
        return self._position(BufferLoad(self.keys, place))

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        if self.layout.position_bits:
            return self.element(self.at(rank))
        return self.sort_keys.element(cast(self.sort_keys.key_dtype, BufferLoad(self.keys, (index(rank),))))

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        found = [*self._start(), self._fill(), self._work()]
        if self.restored:
            found.append(self.restored.statements(self.keys, self.size, self.element))
        return found

    def _work(self) -> Stmt:
        """What puts the keys in order."""
        return self._call(SORTS, self.size)

    def _position(self, key: PrimExpr) -> PrimExpr:
        mask = (1 << self.layout.position_bits) - 1
        return cast(INDEX, binary("bitwise_and", key, const(mask, self.layout.dtype)))

    def _start(self) -> list[Stmt]:
        return [self.restored.start()] if self.restored else []

    def _fill(self) -> Stmt:
        """The numbers that are sorted."""
        i, value, key = (
            PrimVar("i", INDEX),
            PrimVar("value", self.sort_keys.dtype),
            PrimVar("key", self.sort_keys.key_dtype),
        )
        number = self._number(key, i)
        body: list[Stmt] = [Bind(value, self.element(i)), Bind(key, self.sort_keys.key(value))]
        body += self._stores(number, i, i)
        body += self._look(key, value, number)
        return For(i, 0, self.size, SeqStmt(tuple(body)))

    def _number(self, key: PrimExpr, position: PrimExpr) -> PrimExpr:
        """What is sorted for a key."""
        number: PrimExpr = cast(self.layout.dtype, key)
        if self.layout.position_bits and not self.layout.beside:
            number = binary("shift_left", number, const(self.layout.position_bits, self.layout.dtype))
            number = binary("bitwise_or", number, cast(self.layout.dtype, position))
        return number

    def _stores(self, number: PrimExpr, position: PrimExpr, place: PrimExpr) -> list[Stmt]:
        """Put a number, and the position beside it, in a place."""
        found: list[Stmt] = [BufferStore(self.keys, number, (place,))]
        if self.layout.beside:
            found.append(BufferStore(self.positions[0], cast(_POSITION, position), (place,)))
        return found

    def _look(self, key: PrimExpr, value: PrimExpr, number: PrimExpr) -> list[Stmt]:
        return [self.restored.look(key, value)] if self.restored else []

    def _call(self, names: tuple[str, str], *sizes: PrimExpr) -> Stmt:
        memory = (self.keys, self.spare)
        if self.layout.beside:
            memory = (self.keys, self.positions[0], self.spare, self.positions[1])
        return sort_call(self._named(names), memory, *sizes)

    def _named(self, names: tuple[str, str]) -> str:
        """The intrinsic for the layout, of that for keys and that for pairs."""
        return names[self.layout.beside]
