"""The few first elements in order of a short row by vector code.

    groups       the least key of each group of elements, which stand at even distances: a walk of vectors
    limit        the least keys sorted, that of the last rank: as many groups have a key that does not come after it
    candidates   what does not come after the limit, until there are as many as are asked for; then what comes before it
    order        the candidates are sorted

In rows of any order the candidates before the limit are in fewer groups than elements are asked for. Later elements
that equal it are none: enough come before them. A walk looks at a block of elements together (`block_hits`).
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import bits, is_float
from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.indexing.block_hits import BLOCK, BlockHits
from weft.ir.op.indexing.sort_keys import Element, SortKeys
from weft.ir.op.indexing.vectors.sort import SORTS, VectorSort, layout_of, sort_call
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

__all__ = ["VectorFew"]

_GROUPS = 64
"""How many groups there are: twice as many as elements are asked for at least."""
_LEAST, _LONG = 128, 1 << 14
"""The least elements of a row that is walked twice, and of one whose walks take as long as reading it twice."""


class VectorFew(VectorSort):
    """The sort of the `count` first elements in order of a row of so many, at least `_LEAST`."""

    def __init__(self, size: int, element: Element, dtype: str, descending: bool, count: int) -> None:
        layout = layout_of(dtype, size, True)
        assert layout is not None
        super().__init__(size, index(size), element, SortKeys(dtype, descending, False), layout)
        self.extent, self.count = size, count
        self.key_dtype = self.sort_keys.key_dtype
        ranked = f"uint{max(bits(dtype), 32)}"
        self.groups = Buffer("groups", (_GROUPS,), self.key_dtype)
        self.ranked = [Buffer(name, (_GROUPS,), ranked) for name in ("ranked", "spare_ranked")]
        self.hits = BlockHits()
        self.found, self.block = (Buffer(name, (1,), INDEX) for name in ("found", "block"))
        self.buffers = (*self.buffers, self.groups, *self.ranked, self.hits.buffer, self.found, self.block)
        self.row = Buffer("row_keys", (size,), self.key_dtype) if is_float(dtype) else None
        self.buffers += (self.row,) if self.row else ()

    @staticmethod
    def takes(dtype: str, size: Extent, count: int) -> bool:
        """Whether so many elements of a row are selected so.

        >>> VectorFew.takes("int64", 1000, 10), VectorFew.takes("int64", 1000, 40), VectorFew.takes("int64", 99, 10)
        (True, False, False)
        """
        if not isinstance(size, int) or not _LEAST <= size < _LONG or 2 * count > _GROUPS:
            return False
        return layout_of(dtype, size, True) is not None

    @classmethod
    def of_few(cls, size: Extent, element: Element, dtype: str, descending: bool, count: int) -> VectorFew | None:
        """The sort of so many elements; None where one walk that keeps them, which guesses worse, takes less time."""
        if not isinstance(size, int) or not cls.takes(dtype, size, count):
            return None
        return cls(size, element, dtype, descending, count)

    def statements(self) -> list[Stmt]:
        """What selects and sorts."""
        limit = PrimVar("limit", self.key_dtype)
        blocks, zero = self.extent // BLOCK, (index(0),)
        block, found = BufferLoad(self.block, zero), BufferLoad(self.found, zero)
        wanted = binary("and", binary("lt", found, index(self.count)), binary("lt", block, index(blocks)))
        first = (*self._block(block * BLOCK, limit, "le"), BufferStore(self.block, block + 1, zero))
        i, start = PrimVar("i", INDEX), PrimVar("start", INDEX)
        later = For(i, 0, blocks - start, SeqStmt(tuple(self._block((i + start) * BLOCK, limit, "lt"))))
        return [
            *self._grouped(),
            Bind(limit, cast(self.key_dtype, BufferLoad(self.ranked[0], (index(self.count - 1),)))),
            BufferStore(self.found, index(0), zero),
            BufferStore(self.block, index(0), zero),
            While(wanted, SeqStmt(first)),
            Bind(start, block),
            later,
            self._keep(index(blocks * BLOCK), self.extent % BLOCK, lambda key: binary("le", key, limit)),
            self._call(SORTS, found),
        ]

    def _grouped(self) -> list[Stmt]:
        """The least keys of groups in order."""
        j, group, k = (PrimVar(name, INDEX) for name in ("j", "group", "k"))
        whole = self.extent // _GROUPS
        most = const((1 << bits(self.key_dtype)) - 1, self.key_dtype)
        ranked = self.ranked[0]
        return [
            For(j, 0, _GROUPS, BufferStore(self.groups, most, (j,))),
            For(group, 0, whole, self._least(group * _GROUPS, _GROUPS)),
            self._least(index(whole * _GROUPS), self.extent % _GROUPS),
            For(k, 0, _GROUPS, BufferStore(ranked, cast(ranked.dtype, BufferLoad(self.groups, (k,))), (k,))),
            sort_call(SORTS[0], self.ranked, index(_GROUPS)),
        ]

    def _least(self, start: PrimExpr, count: int) -> Stmt:
        """Keep the lesser keys of elements beside each other, each in the group of its place."""
        j, key = PrimVar("j", INDEX), PrimVar("key", self.key_dtype)
        steps: list[Stmt] = [Bind(key, self.sort_keys.key(self.element(start + j)))]
        steps += [BufferStore(self.row, key, (start + j,))] if self.row else []
        steps.append(BufferStore(self.groups, binary("min", BufferLoad(self.groups, (j,)), key), (j,)))
        return For(j, 0, count, SeqStmt(tuple(steps)))

    def _key(self, at: PrimExpr) -> PrimExpr:
        """The key of an element that was looked at; those of floats, which take several steps, were kept."""
        return BufferLoad(self.row, (at,)) if self.row else self.sort_keys.key(self.element(at))

    def _block(self, start: PrimExpr, limit: PrimExpr, kind: str) -> list[Stmt]:
        """Keep what is a candidate of a block."""
        kept = self._keep(start, BLOCK, lambda key: binary(kind, key, limit))
        look = self.hits.look(lambda j: binary(kind, self._key(start + j), limit))
        return [look, IfThenElse(self.hits.is_hit, kept)]

    def _keep(self, start: PrimExpr, count: int, is_kept: Callable[[PrimExpr], PrimExpr]) -> Stmt:
        """Add the candidates of a range; others are written over by the next."""
        j, at, place = (PrimVar(name, INDEX) for name in ("j", "at", "place"))
        key, zero = PrimVar("key", self.key_dtype), (index(0),)
        steps = (
            Bind(at, start + j),
            Bind(key, self._key(at)),
            Bind(place, BufferLoad(self.found, zero)),
            *self._stores(self._number(key, at), at, place),
            BufferStore(self.found, place + cast(INDEX, is_kept(key)), zero),
        )
        return For(j, 0, count, SeqStmt(steps))
