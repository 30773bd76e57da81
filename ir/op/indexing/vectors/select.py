"""The element of one rank of a row by vector code.

    keys        of all elements, of which one is selected: it stands in its place, lesser ones before it
    position    of equal elements the one with as many before it as the rank leaves, found block by block

In long rows the keys of a sample, sorted, say between which two keys the wanted one likely is. A walk counts the
elements before and up to these; where the rank is among them another one keeps their keys, of which one is selected.
Where it is not, the sample misled, and all keys are looked at. Keys between equal ones need no selection.

Source: Floyd and Rivest, Expected time bounds for selection, 1975.
"""

from __future__ import annotations

from weft.ir.kernel.prim import binary, cast, const, intrinsic, unary
from weft.ir.op.indexing.block_hits import BLOCK, BlockHits
from weft.ir.op.indexing.sort_keys import Element, SortKeys
from weft.ir.op.indexing.vectors.sort import SELECTS, SORTS, Layout, VectorSort, layout_of
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

__all__ = ["VectorSelect"]

_SAMPLE, _BESIDE = 1024, 48
"""The elements of a sample, and how far from the wanted rank those stand that it is likely between."""
_LONG = {64: 8 * _SAMPLE, 32: 128 * _SAMPLE}
"""The least elements of a row that is sampled, by the bits of its keys: narrow ones are selected in less time."""
_LARGEST = 2**31


class VectorSelect(VectorSort):
    """The positions of the element of one rank, and of the last nan, of a row that is not empty."""

    def __init__(
        self,
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        keys: SortKeys,
        layout: Layout,
        rank: PrimExpr,
        with_nan: bool,
    ) -> None:
        super().__init__(capacity, size, element, keys, layout)
        self.rank, self.restored = rank, None
        self.with_nan = with_nan
        self.least = _LONG[layout.bits]
        self.is_long = not isinstance(capacity, int) or capacity >= self.least
        narrow = isinstance(capacity, int) and capacity < _LARGEST
        self.number = "int32" if narrow else INDEX
        self.hits = BlockHits()
        self.chosen, self.greatest = (Buffer(name, (1,), keys.key_dtype) for name in ("chosen", "greatest"))
        self.counts = [Buffer(name, (1,), self.number) for name in ("below", "inside")]
        names = ("before", "block", "same", "found", "final", "kept")
        self.before, self.block, self.same, self.found, self.final, self.kept = (
            Buffer(name, (1,), INDEX) for name in names
        )
        self.buffers = (self.keys, self.spare, self.chosen, self.greatest, self.before, self.block, self.same)
        self.buffers += (self.found, self.final, self.kept, *self.counts, self.hits.buffer)

    @staticmethod
    def of_rank(
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        dtype: str,
        descending: bool,
        rank: PrimExpr,
        with_nan: bool,
    ) -> VectorSelect | None:
        """What finds the element of a rank in a row, and the last nan if asked; None where its keys do not fit."""
        layout = layout_of(dtype, capacity, False)
        found = SortKeys(dtype, descending, False)
        return None if layout is None else VectorSelect(capacity, size, element, found, layout, rank, with_nan)

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """The position of the element of the rank."""
        return _get(self.found)

    def last(self) -> PrimExpr:
        """The position of the last nan, of the first element where there is none."""
        return _get(self.final)

    def statements(self) -> list[Stmt]:
        """What selects, and finds the positions."""
        whole: Stmt = SeqStmt((self._fill(), *self._selected(self.size, self.rank)))
        steps = [_set(self.greatest, const(0, self.greatest.dtype)), whole]
        if self.is_long:
            narrowed = IfThenElse(binary("le", index(self.least), self.size), SeqStmt(tuple(self._narrowed())))
            rest = IfThenElse(binary("lt", _get(self.kept), index(0)), whole)
            steps[1:] = [_set(self.kept, index(-1)), narrowed, rest]
        return [*steps, *self._positions(), *self._last_nan()]

    def _look(self, key: PrimExpr, value: PrimExpr, number: PrimExpr) -> list[Stmt]:
        return [_set(self.greatest, binary("max", _get(self.greatest), key))] if self.with_nan else []

    def _key(self, i: PrimExpr) -> PrimExpr:
        return self.sort_keys.key(self.element(i))

    def _selected(self, count: PrimExpr, rank: PrimExpr) -> list[Stmt]:
        """Select among so many keys; which one it is, and how many equal ones come before it."""
        j, wanted = PrimVar("j", INDEX), PrimVar("wanted", self.layout.dtype)
        less = cast(INDEX, binary("lt", BufferLoad(self.keys, (j,)), wanted))
        return [
            self._call(SELECTS, count, rank),
            Bind(wanted, BufferLoad(self.keys, (rank,))),
            _set(self.chosen, cast(self.chosen.dtype, wanted)),
            _set(self.before, rank),
            For(j, 0, rank, _set(self.before, _get(self.before) - less)),
        ]

    def _narrowed(self) -> list[Stmt]:
        """Select among the keys between two of a sample; `kept` is still below 0 where the wanted one is not there."""
        low, high, key = (PrimVar(name, self.sort_keys.key_dtype) for name in ("low", "high", "key"))
        n, i, share = PrimVar("n", INDEX), PrimVar("i", INDEX), PrimVar("share", INDEX)
        below, inside = self.counts
        sampled = n * binary("floordiv", self.size, index(_SAMPLE))
        last = index(_SAMPLE - 1)
        walk: list[Stmt] = [Bind(key, self._key(i))]
        for counts, kind, bound in ((below, "lt", low), (inside, "le", high)):
            walk.append(_set(counts, _get(counts) + cast(self.number, binary(kind, key, bound))))
        rest = PrimVar("rest", INDEX)
        first, end = (cast(INDEX, _get(counts)) for counts in self.counts)
        is_between = binary("and", binary("le", first, self.rank), binary("lt", self.rank, end))
        alike = SeqStmt((_set(self.chosen, low), _set(self.before, self.rank - first), _set(self.kept, index(0))))
        between = SeqStmt((Bind(rest, self.rank - first), *self._kept(low, high), *self._selected(self._size, rest)))
        return [
            For(n, 0, index(_SAMPLE), SeqStmt(tuple(self._stores(self._number(self._key(sampled), n), n, n)))),
            self._call(SORTS, index(_SAMPLE)),
            Bind(share, binary("floordiv", self.rank * _SAMPLE, self.size)),
            Bind(low, self._sampled(binary("max", share - _BESIDE, index(0)))),
            Bind(high, self._sampled(binary("min", share + _BESIDE, last))),
            _set(below, const(0, self.number)),
            _set(inside, const(0, self.number)),
            For(i, 0, self.size, SeqStmt((*walk, *self._look(key, key, key)))),
            IfThenElse(is_between, IfThenElse(binary("eq", low, high), alike, between)),
        ]

    @property
    def _size(self) -> PrimExpr:
        """How many keys were kept."""
        return _get(self.kept)

    def _sampled(self, rank: PrimExpr) -> PrimExpr:
        return cast(self.sort_keys.key_dtype, BufferLoad(self.keys, (rank,)))

    def _kept(self, low: PrimExpr, high: PrimExpr) -> list[Stmt]:
        """Keep the keys from one to another."""
        block = PrimVar("block", INDEX)
        blocks, rest = (binary(kind, self.size, index(BLOCK)) for kind in ("floordiv", "floormod"))

        def is_kept(key: PrimExpr) -> PrimExpr:
            return binary("and", binary("le", low, key), binary("le", key, high))

        def keep(start: PrimExpr, count: PrimExpr) -> Stmt:
            j, key, place = PrimVar("j", INDEX), PrimVar("key", self.sort_keys.key_dtype), PrimVar("place", INDEX)
            steps = (
                Bind(key, self._key(start + j)),
                Bind(place, _get(self.kept)),
                *self._stores(self._number(key, place), place, place),
                _set(self.kept, place + cast(INDEX, is_kept(key))),
            )
            return For(j, 0, count, SeqStmt(steps))

        look = self.hits.look(lambda j: is_kept(self._key(block * BLOCK + j)))
        walk = SeqStmt((look, IfThenElse(self.hits.is_hit, keep(block * BLOCK, index(BLOCK)))))
        return [_set(self.kept, index(0)), For(block, 0, blocks, walk), keep(blocks * BLOCK, rest)]

    def _positions(self) -> list[Stmt]:
        """Where the chosen key is that has as many equal ones before it as are left."""
        wanted, i = PrimVar("wanted", self.chosen.dtype), PrimVar("i", INDEX)
        blocks = binary("floordiv", self.size, index(BLOCK))
        block, before, same = (_get(buffer) for buffer in (self.block, self.before, self.same))
        start = block * BLOCK

        def count() -> Stmt:
            j = PrimVar("j", INDEX)
            more = cast(INDEX, binary("eq", self._key(start + j), wanted))
            return For(j, 0, BLOCK, _set(self.same, same + more))

        restart = _set(self.same, index(0))
        skip = SeqStmt((_set(self.before, before - same), _set(self.block, block + 1), restart, count()))
        goes_on = binary("and", binary("lt", block + 1, blocks), binary("le", same, before))
        is_it = binary("eq", before, index(0))
        there = SeqStmt((IfThenElse(is_it, _set(self.found, i)), _set(self.before, before - 1)))
        k, first = PrimVar("k", INDEX), PrimVar("first", INDEX)
        look = SeqStmt((Bind(i, first + k), IfThenElse(binary("eq", self._key(i), wanted), there)))
        return [
            Bind(wanted, _get(self.chosen)),
            _set(self.block, index(0)),
            restart,
            _set(self.found, index(0)),
            IfThenElse(binary("lt", index(0), blocks), count()),
            While(goes_on, skip),
            Bind(first, start),
            For(k, 0, binary("min", self.size - first, index(2 * BLOCK)), look),
        ]

    def _last_nan(self) -> list[Stmt]:
        """Where the last nan is, where there is one."""
        if not self.with_nan:
            return []
        _, nan = self.sort_keys.kinds
        final = _get(self.final)
        is_other = unary("not", intrinsic("isnan", self.element(final)))
        search = SeqStmt((_set(self.final, self.size - 1), While(is_other, _set(self.final, final - 1))))
        return [_set(self.final, index(0)), IfThenElse(binary("eq", _get(self.greatest), nan), search)]


def _get(buffer: Buffer) -> PrimExpr:
    return BufferLoad(buffer, (index(0),))


def _set(buffer: Buffer, value: PrimExpr) -> Stmt:
    return BufferStore(buffer, value, (index(0),))
