"""Where elements are: the memory of a buffer, and offsets into it."""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.function import Size
from weft.support.records import dataclass

__all__ = ["BufferView", "Linear", "Scattered"]


@dataclass(slots=True)
class BufferView:
    """Where a buffer is: the address of its first element, sizes and strides in elements.

    `room` counts the elements that are known to be there: those of memory on the stack.
    """

    pointer: str
    dtype: str
    shape: list[Size]
    strides: list[Size]
    room: int = 0

    def holds(self, where: Linear) -> bool:
        """Whether all lanes are known to be there, those that a mask turns off among them."""
        return where.base == 0 and where.stride == 1 and 0 <= where.plus <= self.room - where.lanes


@dataclass(slots=True)
class Linear:
    """Offsets base + plus, base + plus + stride, ...; one lane is a scalar offset.

    The constant stands apart, so that the copies of an unrolled loop share the base.
    """

    base: Size
    stride: Size
    lanes: int
    plus: int = 0


@dataclass(slots=True)
class Scattered:
    """Offsets without a pattern: a vector of int64."""

    offsets: str
    lanes: int
