"""Which keys a mask shows to a block of rows, and where the others may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const, unary
from weft.ir.tensor import Buffer, BufferLoad, Extent, PrimExpr, PrimVar, Stmt
from weft.transform.autoschedule.attention.key_blocks import total_nest
from weft.transform.autoschedule.attention.mask_bounds import MAX_SQUARES, MaskBound
from weft.transform.autoschedule.attention.row_block import RowBlock
from weft.transform.autoschedule.rules.loops import INDEX, plus

__all__ = ["VisibleKeys"]


class VisibleKeys:
    """The bounds of a mask for one block of rows."""

    def __init__(self, block: RowBlock) -> None:
        self.block, self.whole, self.bounds = block, block.key_blocks, block.key_blocks.mask_bounds

    def _bound(self, bound: MaskBound, *, first: bool) -> PrimExpr:
        """A bound for the first or the last row."""
        assert self.bounds is not None
        block, role = self.block, self.bounds.role
        last = plus(block.start, binary("sub", as_expr(block.count, INDEX), const(1, INDEX)))
        row = block.start if first else last
        outer = self.whole.outer_values(role.number)
        return substitute(bound.end, {block.found.row.variables[role.number]: row, **outer})

    def squares(self) -> Iterator[Stmt]:
        """The sum of the squares of the queries, where hidden keys are left out by it."""
        if self.bounds is not None and self.bounds.added:
            block, row, k = self.block, PrimVar("vs", INDEX), PrimVar("vk", INDEX)
            load = self.whole.widened(BufferLoad(block.query, (row, k)))
            over = [(row, block.count), (k, self.whole.head_size)]
            yield total_nest(block.squares, const(0, INDEX), over, binary("mul", load, load))

    def end(self, again: PrimVar) -> PrimExpr | None:
        """How many keys are looked at, which hides none that a row sees, all of them again; None for all at once."""
        if self.bounds is None or not self.bounds.ends:
            return None
        keys = as_expr(self.block.found.keys, INDEX)
        ends = [self._bound(bound, first=False) for bound in self.bounds.ends]
        # A row that sees nothing looks at the first key, which is hidden as well.
        seen = binary("max", reduce(lambda a, b: binary("min", a, b), ends), const(1, INDEX))
        return binary("min", keys, plus(seen, binary("mul", again, keys)))

    def vanish(self) -> PrimExpr:
        """Whether hidden keys add nothing."""
        assert self.bounds is not None
        tests = list(self._vanish(self.whole.totals, const(0, INDEX)))
        if self.bounds.is_finite:
            tests.append(binary("gt", self._bound(self.bounds.ends[0], first=True), const(0, INDEX)))
        return reduce(lambda a, b: binary("and", a, b), tests)

    def _vanish(self, checks: Sequence[Buffer], at: PrimExpr) -> Iterator[PrimExpr]:
        """Whether hidden keys add nothing: tests of their values, and of their scores where these count."""
        dtype = self.whole.dtype
        yield binary("eq", BufferLoad(checks[0], (at,)), const(0.0, dtype))
        for squares in checks[1:]:
            own = BufferLoad(self.block.squares, (const(0, INDEX),))
            yield binary("lt", binary("mul", BufferLoad(squares, (at,)), own), const(MAX_SQUARES, dtype))

    def in_block(self, number: PrimExpr, start: PrimExpr, count: Extent) -> PrimExpr | None:
        """Whether a row sees a key of a block, or its keys count although they are hidden; None where they all do."""
        if self.bounds is None or not self.bounds.starts:
            return None
        end = plus(start, as_expr(count, INDEX))
        seen = [binary("gt", end, self._bound(bound, first=True)) for bound in self.bounds.starts]
        vanish = reduce(lambda a, b: binary("and", a, b), self._vanish(self.whole.checks, number))
        return binary("or", reduce(lambda a, b: binary("and", a, b), seen), unary("not", vanish))
