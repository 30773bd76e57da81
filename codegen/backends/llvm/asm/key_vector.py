"""The vectors of unsigned keys that are sorted, and what LLVM calls them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KeyVector"]

POSITION_BITS = 32
"""The width of the positions beside keys."""


@dataclass(frozen=True, order=True)
class KeyVector:
    """A vector of unsigned keys: how many bits each has, how many there are, whether each has a position beside it.

    Those `of_values` are made of elements as they are read, and become elements again as they are written; those
    `of_order` are only compared, `of_floats` by what floats mean. Others are not keys, but positions of elements.
    """

    bits: int
    lanes: int
    has_positions: bool = False
    of_values: bool = False
    of_order: bool = False
    of_floats: bool = False
    are_positions: bool = False

    @property
    def element(self) -> str:
        """LLVM's type of a key."""
        return f"i{self.bits}"

    @property
    def type(self) -> str:
        """LLVM's type of a vector."""
        return f"<{self.lanes} x i{self.bits}>"

    @property
    def mask_type(self) -> str:
        """LLVM's type of a truth value for each key."""
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """The end of the name of an intrinsic of LLVM over such vectors."""
        return f"v{self.lanes}i{self.bits}"

    @property
    def name(self) -> str:
        """The end of the names of functions over such vectors."""
        kinds = {"p": self.has_positions, "v": self.of_values, "o": self.of_order, "f": self.of_floats}
        kinds |= {"n": self.are_positions}
        return f"u{self.bits}x{self.lanes}" + "".join(kind for kind, is_one in kinds.items() if is_one)

    @property
    def positions(self) -> KeyVector:
        """The vector of the positions of as many keys."""
        return KeyVector(POSITION_BITS, self.lanes)
