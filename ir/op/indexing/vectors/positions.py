"""The positions of the elements of a row where they are known without a sort, by vector code.

    T.sort_positions(order, data, size, descending)    rows in order, runs that are merged, few kinds that are counted
    is_known                                           whether `order` has the positions; its first is -1 where not

Elements of a row stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.kernel.prim import binary, cast, const
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import Buffer, BufferLoad, Evaluate, Extent, PrimCall, PrimExpr, Stmt

__all__ = ["VectorPositions"]

Place = Callable[[PrimExpr], BufferLoad]
"""Where the element at a position, or the position of a rank, stands."""


class VectorPositions:
    """The positions of one row of at most `capacity` elements, of which there are `size`.

    They stand where `target` says, which is int32, or in memory of their own.
    """

    def __init__(
        self, capacity: Extent, size: PrimExpr, data: Place, descending: bool, target: Place | None = None
    ) -> None:
        self.size, self.data, self.descending = size, data, descending
        room = max(capacity, 1) if isinstance(capacity, int) else binary("max", index(capacity), index(1))
        known = Buffer("known", (room,), "int32")

        def own(rank: PrimExpr) -> BufferLoad:
            return BufferLoad(known, (rank,))

        self.target: Place = target or own
        self.buffers: tuple[Buffer, ...] = () if target else (known,)

    def at(self, rank: PrimExpr) -> PrimExpr:
        """The position of the element of a rank."""
        return cast(INDEX, self.target(rank))

    @property
    def is_known(self) -> PrimExpr:
        """Whether the positions are known."""
        return binary("le", const(0, "int32"), self.target(index(0)))

    def statements(self) -> list[Stmt]:
        """What looks, and writes them."""
        addresses = [PrimCall("address_of", (place(index(0)),), "handle") for place in (self.target, self.data)]
        order = const(self.descending, "bool")
        return [Evaluate(PrimCall("sort_positions", (*addresses, self.size, order), "void"))]
