"""The elements of a row in order by vector code, from the memory where they stand to that of the result.

    T.sort_values(result, data, size, descending)    copies what is in order, merges runs, parts the rest by pivots
    order                                            of rank r is the element at r of the result

Rows whose elements do not stand side by side are gathered before and scattered after that. The two memories
are never the same one.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import bits
from weft.ir.graph import StringImm
from weft.ir.kernel.prim import binary, const
from weft.ir.op.indexing.sort_keys import Element, has_keys
from weft.ir.op.indexing.vectors.sort import FEWEST
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import Buffer, BufferLoad, BufferStore, Evaluate, Extent, For, PrimCall, PrimExpr, PrimVar, Stmt

__all__ = ["VectorValues"]

_WIDTHS = (16, 32, 64)
Place = Callable[[PrimExpr], BufferLoad]
"""Where the element of a rank, or at a position, stands."""


class VectorValues:
    """The sort of the values of one row of at most `capacity` elements, of which there are `size`.

    `data` and `result` say where elements stand, and are None where those of a row do not stand side by side.
    """

    def __init__(
        self,
        capacity: Extent,
        size: PrimExpr,
        element: Element,
        dtype: str,
        descending: bool,
        places: tuple[Place, Place] | None,
    ) -> None:
        self.size, self.element, self.dtype, self.descending = size, element, dtype, descending
        self.writes_results = places is not None
        room = max(capacity, 1) if isinstance(capacity, int) else binary("max", index(capacity), index(1))
        row, ordered = (Buffer(name, (room,), dtype) for name in ("row", "ordered"))
        self.data, self.result = places or (lambda i: BufferLoad(row, (i,)), lambda i: BufferLoad(ordered, (i,)))
        self.buffers: tuple[Buffer, ...] = () if places else (row, ordered)

    @staticmethod
    def has(dtype: str, capacity: Extent) -> bool:
        """Whether elements of a dtype are sorted so in rows of so many.

        >>> VectorValues.has("float32", 100), VectorValues.has("int8", 100), VectorValues.has("int64", 3)
        (True, False, False)
        """
        is_short = isinstance(capacity, int) and capacity < FEWEST
        return has_keys(dtype) and bits(dtype) in _WIDTHS and not is_short

    @property
    def condition(self) -> PrimExpr:
        """Whether the form may be taken: the target has the intrinsic."""
        return PrimCall("has_intrinsic", (StringImm("sort_values"), StringImm(self.dtype)), "bool")

    def at(self, rank: int | PrimExpr) -> PrimExpr:
        """Nobody asks for positions of values."""
        raise NotImplementedError

    def value(self, rank: int | PrimExpr) -> PrimExpr:
        """The element of a rank."""
        return self.result(index(rank))

    def statements(self) -> list[Stmt]:
        """What sorts the row."""
        i = PrimVar("i", INDEX)
        addresses = [PrimCall("address_of", (place(index(0)),), "handle") for place in (self.result, self.data)]
        order = const(self.descending, "bool")
        found: list[Stmt] = []
        if not self.writes_results:
            place = self.data(i)
            found.append(For(i, 0, self.size, BufferStore(place.buffer, self.element(i), place.indices)))
        found.append(Evaluate(PrimCall("sort_values", (*addresses, self.size, order), "void")))
        return found
