"""Whether some element of a block has a property, noted for the block as a whole.

A reduction, which vectors do: blocks without such an element take as long as reading them.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, For, PrimExpr, PrimVar, SeqStmt, Stmt

__all__ = ["BLOCK", "BlockHits"]

BLOCK = 32
"""The elements that are looked at together."""


class BlockHits:
    """The note, in a buffer of its own."""

    def __init__(self) -> None:
        self.buffer = Buffer("hits", (1,), "int32")

    def look(self, has_property: Callable[[PrimExpr], PrimExpr]) -> Stmt:
        """Note whether an element of a block, by its place in that, has the property."""
        j, zero = PrimVar("j", INDEX), (index(0),)
        seen = binary("bitwise_or", BufferLoad(self.buffer, zero), cast("int32", has_property(j)))
        none = BufferStore(self.buffer, const(0, "int32"), zero)
        return SeqStmt((none, For(j, 0, BLOCK, BufferStore(self.buffer, seen, zero))))

    @property
    def is_hit(self) -> PrimExpr:
        """Whether there was one."""
        return binary("ne", BufferLoad(self.buffer, (index(0),)), const(0, "int32"))
