"""The first elements in order of a row by vector code.

    sample       the keys of elements at even distances, selected: a key that about as many as are asked for come before
    candidates   one walk keeps what does not come after it, mostly a few times as many as are asked for
    order        the candidates are selected and sorted; the whole row where they are too few or it is short

The walk looks at a block of elements together, so that blocks without a candidate take as long as reading them.
"""

from __future__ import annotations

from weft.ir.kernel.prim import binary, cast, const
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
)

__all__ = ["VectorLeading"]

_FEW = 3
"""How many times as many elements there are at least where it pays to select before the sort."""
_SAMPLE = 4096
"""The elements of a sample."""
_LONG = 4 * _SAMPLE
"""The least elements of a row that is sampled."""
_SPARSE = 8
"""How many times as many elements there are at least where it pays to sample."""


class VectorLeading(VectorSort):
    """The sort of the `count` first elements in order of a row: where these are few they are selected first."""

    def __init__(
        self, capacity: Extent, size: PrimExpr, element: Element, keys: SortKeys, layout: Layout, count: PrimExpr
    ) -> None:
        super().__init__(capacity, size, element, keys, layout)
        self.count = count
        self.is_long = not isinstance(capacity, int) or capacity >= _LONG
        self.hits, self.found = BlockHits(), Buffer("found", (1,), INDEX)
        if self.is_long:
            self.buffers = (*self.buffers, self.hits.buffer, self.found)

    @staticmethod
    def of_count(
        capacity: Extent, size: PrimExpr, element: Element, dtype: str, descending: bool, count: PrimExpr
    ) -> VectorLeading | None:
        """The sort of so many elements, at least one; None where keys do not fit."""
        layout = layout_of(dtype, capacity, True)
        found = SortKeys(dtype, descending, False)
        return None if layout is None else VectorLeading(capacity, size, element, found, layout, count)

    def statements(self) -> list[Stmt]:
        """What selects and sorts."""
        whole = SeqStmt((self._fill(), self._lead(self.size)))
        if not self.is_long:
            return [whole]
        kept = PrimVar("kept", INDEX)
        pays = binary("le", binary("max", self.count * _SPARSE, index(_LONG)), self.size)
        return [
            BufferStore(self.found, index(0), (index(0),)),
            IfThenElse(pays, self._candidates()),
            Bind(kept, BufferLoad(self.found, (index(0),))),
            IfThenElse(binary("le", self.count, kept), self._lead(kept), whole),
        ]

    def _lead(self, size: PrimExpr) -> Stmt:
        """Put the first of so many numbers in order."""
        selected = SeqStmt((self._call(SELECTS, size, self.count - 1), self._call(SORTS, self.count)))
        return IfThenElse(binary("le", self.count * _FEW, size), selected, self._call(SORTS, size))

    def _candidates(self) -> Stmt:
        """Put the numbers in front that do not come after one of a sample."""
        i, limit, most = PrimVar("i", INDEX), PrimVar("limit", self.layout.dtype), PrimVar("most", INDEX)
        block = PrimVar("block", INDEX)
        position = i * binary("floordiv", self.size, index(_SAMPLE))
        sampled = self._stores(self._number(self.sort_keys.key(self.element(position)), position), position, i)
        blocks = binary("floordiv", self.size, index(BLOCK))
        start, rest = block * BLOCK, binary("floormod", self.size, index(BLOCK))
        walk = (self._look_at(start, limit), IfThenElse(self.hits.is_hit, self._keep(start, index(BLOCK), limit)))
        return SeqStmt(
            (
                For(i, 0, index(_SAMPLE), SeqStmt(tuple(sampled))),
                Bind(most, self._sample_rank()),
                self._call(SELECTS, index(_SAMPLE), most),
                Bind(limit, BufferLoad(self.keys, (most,))),
                For(block, 0, blocks, SeqStmt(walk)),
                self._keep(blocks * BLOCK, rest, limit),
            )
        )

    def _sample_rank(self) -> PrimExpr:
        """The rank in a sample that enough elements of the row likely come before: a quarter more, and 8."""
        share = binary("floordiv", self.count * _SAMPLE, self.size)
        return share + binary("floordiv", share, index(4)) + 8

    def _look_at(self, start: PrimExpr, limit: PrimExpr) -> Stmt:
        """Note whether some key of a block does not come after the limit."""
        key_dtype = self.sort_keys.key_dtype
        beside = 0 if self.layout.beside else self.layout.position_bits
        above = cast(key_dtype, binary("shift_right", limit, const(beside, limit.dtype)) if beside else limit)
        return self.hits.look(lambda j: binary("le", self.sort_keys.key(self.element(start + j)), above))

    def _keep(self, start: PrimExpr, count: PrimExpr, limit: PrimExpr) -> Stmt:
        """Add the numbers of a range that do not come after the limit; others are written over by the next."""
        j, at, number, place = (
            PrimVar("j", INDEX),
            PrimVar("at", INDEX),
            PrimVar("number", self.layout.dtype),
            PrimVar("place", INDEX),
        )
        kept = cast(INDEX, binary("le", number, limit))
        steps = (
            Bind(at, start + j),
            Bind(number, self._number(self.sort_keys.key(self.element(at)), at)),
            Bind(place, BufferLoad(self.found, (index(0),))),
            *self._stores(number, at, place),
            BufferStore(self.found, place + kept, (index(0),)),
        )
        return For(j, 0, count, SeqStmt(steps))
