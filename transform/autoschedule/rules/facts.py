"""What rules know of the machine, and the constants that they are tuned by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft import dtypes

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """Width and number of vector registers; accumulators of a sum along a row, vectors of a sum down the columns.

    Columns are summed in tiles of `columns` vectors, or of `wide_columns` where there are `rows` rows, which then are
    read that many at a time. `extremes` is the number of vectors in which an extreme along a row is looked for.
    Reductions of `shared` elements or more to few results are cut in parts.

    `largest_step` is the widest constant distance of elements that one vector still gathers from whole loads.
    """

    vector_bits: int = 256
    registers: int = 16
    accumulators: int = 4
    columns: int = 8
    wide_columns: int = 64
    rows: int = 8
    extremes: int = 2
    shared: int = 1 << 18
    largest_step: int = 4

    @property
    def masks(self) -> bool:
        """Whether part of a vector is loaded and stored by one instruction."""
        return self.vector_bits >= 256

    def side_by_side(self, lanes: int) -> int:
        """How many vectors a long computation takes at once: chains hide each other's latency, and all need registers.

        >>> Facts(vector_bits=512, registers=32).side_by_side(16), Facts().side_by_side(8)
        (4, 2)
        """
        return max(1, min(self.registers // 8, 64 // lanes))

    def lanes(self, kinds: Iterable[str]) -> int:
        """Lanes of vectors whose widest elements fill a register.

        >>> Facts(vector_bits=512).lanes(["float32", "float16"])
        16
        """
        return max(1, min(64, self.vector_bits // max((dtypes.bits(kind) for kind in kinds), default=64)))
