"""Which dimensions arithmetic in 64 bits has exactly: the rule of wrapping, which lives here and nowhere else.

Dimensions are integers, machine words wrap. Sums, differences and products keep their value modulo 2**64 whatever
wraps in between, so a value that is proved to lie in a range of 64 bits is the number that code computes. Quotients,
remainders, minima and comparisons are only of operands that are exact themselves.

What is known of every tensor that exists: its bytes are at most `MAX_BYTES`, and with them its extents.
"""

from __future__ import annotations

from weft import dtypes
from weft.ir.dim import Dim, interval_of, operation, product
from weft.ir.kernel.extents import MAX_BYTES
from weft.ir.tensor import Buffer
from weft.transform.analysis.indices.facts import Fact

__all__ = ["LARGEST", "LEAST", "Exactness", "is_reinterpreted", "limits_of", "most_elements"]

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1


def limits_of(dtype: str) -> tuple[int, int]:
    """The least and the greatest number that an integer dtype holds and 64 bits with a sign do, too."""
    if dtypes.is_bool(dtype):
        return 0, 1
    return max(LEAST, int(dtypes.min_value(dtype))), min(LARGEST, int(dtypes.max_value(dtype)))


def is_reinterpreted(dtype: str) -> bool:
    """Whether a dtype has values that 64 bits with a sign do not: a dimension is what the same bits mean there.

    Sums and products are right so, modulo 2**64; comparisons, quotients and minima are of values below 2**63 only.

    >>> is_reinterpreted("uint64"), is_reinterpreted("uint32")
    (True, False)
    """
    return dtypes.is_unsigned(dtype) and dtypes.bits(dtype) == 64


def most_elements(buffer: Buffer) -> int:
    """How many elements a dense buffer that exists has at most: of each extent, and of all that are not 0 together."""
    return LARGEST if buffer.strides is not None else MAX_BYTES // dtypes.item_bytes(buffer.dtype)


class Exactness:
    """The intervals of symbols, and what the tensors that exist say of their extents."""

    def __init__(self) -> None:
        self._intervals: dict[str, tuple[int, int]] = {}
        self._known: dict[Dim, tuple[float, float]] = {}
        self.extents: tuple[Fact, ...] = ()

    def note(self, name: str, low: float, high: float) -> None:
        """A symbol's value lies in [low, high], as far as 64 bits go."""
        self._intervals[name] = (int(max(low, LEAST)), int(min(high, LARGEST)))
        self._known.clear()

    def exists(self, buffer: Buffer, extents: tuple[Dim, ...]) -> None:
        """A buffer with these extents is there."""
        bounded = [product(extents)] if len(extents) > 1 else []
        bounded += [extent for extent in extents if operation(extent)[0] not in ("constant", "symbol")]
        most = most_elements(buffer)
        self.extents = (*self.extents, *(Fact(most - dim) for dim in bounded if not isinstance(dim, int)))

    def interval(self, dim: Dim) -> tuple[float, float]:
        """Bounds of a dimension in spelled symbols."""
        found = self._known.get(dim)
        if found is None:
            found = self._known[dim] = interval_of(dim, self._intervals)
        return found
