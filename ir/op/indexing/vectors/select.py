"""The element of one rank of a row by vector code.

    keys        of all elements, of which one is selected: it stands in its place, lesser ones before it
    position    of equal elements the one with as many before it as the rank leaves, found block by block

In long rows the keys of a sample, sorted, say between which two keys the wanted one likely is. A walk counts the
elements before these and keeps the keys between (T.keep_keys); where the rank is among them, one of them is selected.
Where it is not, the sample misled, and all keys are looked at. Keys between equal ones need no selection.

Source: Floyd and Rivest, Expected time bounds for selection, 1975.
"""

from __future__ import annotations

from weft.ir.graph import StringImm
from weft.ir.kernel.prim import binary, cast, const, intrinsic, unary
from weft.ir.op.indexing.block_hits import BLOCK
from weft.ir.op.indexing.sort_keys import Element, SortKeys
from weft.ir.op.indexing.vectors.sort import SELECTS, SORTS, Layout, VectorSort, layout_of
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
    While,
)

__all__ = ["VectorSelect"]

KEEPS = "keep_keys"
_LARGE, _SAMPLES, _BESIDE = 1 << 16, (256, 1024), (24, 48)
"""The elements of a sample, and how far from the wanted rank those stand that it is likely between: below so many
elements, and from there on."""
_LONG = 1 << 11
"""The least elements of a row that is sampled."""


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
        place: BufferLoad | None,
    ) -> None:
        super().__init__(capacity, size, element, keys, layout)
        self.rank, self.restored = rank, None
        self.with_nan, self.place = with_nan, place
        self.is_long = not isinstance(capacity, int) or capacity >= _LONG
        self.sample, self.beside = (self._by_size(*pair) for pair in (_SAMPLES, _BESIDE))
        self.chosen, self.greatest = (Buffer(name, (1,), keys.key_dtype) for name in ("chosen", "greatest"))
        self.counts = Buffer("counts", (3,), "uint64")
        names = ("before", "block", "same", "found", "final", "kept")
        self.before, self.block, self.same, self.found, self.final, self.kept = (
            Buffer(name, (1,), INDEX) for name in names
        )
        self.buffers = (self.keys, self.spare, self.chosen, self.greatest, self.before, self.block, self.same)
        self.buffers += (self.found, self.final, self.kept, self.counts)

    @staticmethod
    def of_rank(
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        dtype: str,
        descending: bool,
        rank: PrimExpr,
        with_nan: bool,
        place: BufferLoad | None,
    ) -> VectorSelect | None:
        """What finds the element of a rank in a row, and the last nan if asked; None where its keys do not fit.

        The elements of the row stand side by side from `place` on, if that is one.
        """
        layout = layout_of(dtype, capacity, False)
        found = SortKeys(dtype, descending, False)
        return None if layout is None else VectorSelect(capacity, size, element, found, layout, rank, with_nan, place)

    @property
    def condition(self) -> PrimExpr:
        """Whether the form may be taken: the target has the intrinsics."""
        dtype = self.layout.dtype if self.place is None else self.sort_keys.dtype
        keeps = PrimCall("has_intrinsic", (StringImm(KEEPS), StringImm(dtype)), "bool")
        return binary("and", super().condition, keeps) if self.is_long else super().condition

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
            narrowed = IfThenElse(binary("le", index(_LONG), self.size), SeqStmt(tuple(self._narrowed())))
            rest = IfThenElse(binary("lt", _get(self.kept), index(0)), whole)
            steps[1:] = [_set(self.kept, index(-1)), narrowed, rest]
        return [*steps, *self._positions(), *self._last_nan()]

    def _by_size(self, few: int, many: int) -> PrimExpr:
        """One of two numbers."""
        return Select(binary("le", index(_LARGE), self.size), index(many), index(few))

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
        low, high = (PrimVar(name, self.sort_keys.key_dtype) for name in ("low", "high"))
        n, share, first, count, rest = (PrimVar(name, INDEX) for name in ("n", "share", "first", "count", "rest"))
        sampled = n * binary("floordiv", self.size, self.sample)
        least, most = (
            binary("max", share - self.beside, index(0)),
            binary("min", share + self.beside, self.sample - 1),
        )
        is_between = binary("and", binary("le", first, self.rank), binary("lt", self.rank, first + count))
        alike = SeqStmt((_set(self.chosen, low), _set(self.before, self.rank - first), _set(self.kept, index(0))))
        between = SeqStmt((Bind(rest, self.rank - first), _set(self.kept, count), *self._selected(count, rest)))
        return [
            For(n, 0, self.sample, SeqStmt(tuple(self._stores(self._number(self._key(sampled), n), n, n)))),
            self._call(SORTS, self.sample),
            Bind(share, binary("floordiv", self.rank * self.sample, self.size)),
            Bind(low, self._sampled(least)),
            Bind(high, self._sampled(most)),
            *self._keep(low, high),
            Bind(first, self._count(0, INDEX)),
            Bind(count, self._count(1, INDEX)),
            *([_set(self.greatest, self._count(2, self.greatest.dtype))] if self.with_nan else []),
            IfThenElse(is_between, IfThenElse(binary("eq", low, high), alike, between)),
        ]

    def _count(self, number: int, dtype: str) -> PrimExpr:
        """What the walk over all elements found."""
        return cast(dtype, BufferLoad(self.counts, (index(number),)))

    def _sampled(self, rank: PrimExpr) -> PrimExpr:
        return cast(self.sort_keys.key_dtype, BufferLoad(self.keys, (rank,)))

    def _keep(self, low: PrimExpr, high: PrimExpr) -> list[Stmt]:
        """Keep the keys from one to another; elements that do not stand side by side get their keys there before."""
        i, found = PrimVar("i", INDEX), list[Stmt]()
        place, descending = self.place, self.sort_keys.descending
        if place is None:
            number, descending = self._number(self._key(i), i), False
            found.append(For(i, 0, self.size, BufferStore(self.spare, number, (i,))))
            place = BufferLoad(self.spare, (index(0),))
            low, high = (cast(self.spare.dtype, bound) for bound in (low, high))
        memory = [BufferLoad(self.keys, (index(0),)), BufferLoad(self.counts, (index(0),)), place]
        addresses = [PrimCall("address_of", (each,), "handle") for each in memory]
        order = const(descending, "bool")
        return [*found, Evaluate(PrimCall(KEEPS, (*addresses, self.size, low, high, order), "void"))]

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
