"""Keys of elements: unsigned numbers whose order is that of the elements, for sorts that compare bits.

    key       one for both zeros and one for all nan, which is the greatest; the other way round where elements descend
    total     the bits of the element in that order: it says the element, and differs from the key for -0.0 and for nan
              but the usual one (positive, quiet, nothing else said)

A sort of keys alone loses which zero or nan an element was: `Restored` puts those back in the order in which they came,
where there are some.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.dtypes import bits, float_format, is_float, is_signed
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass

__all__ = ["Element", "Restored", "SortKeys", "has_keys"]

Element = Callable[[PrimExpr], PrimExpr]
_FLOATS = ("float16", "float32", "float64")


def has_keys(dtype: str) -> bool:
    """Whether elements of a dtype have keys: whole bytes, integers or the floats of IEEE 754 that NumPy has.

    >>> has_keys("float32"), has_keys("bfloat16"), has_keys("int4")
    (True, False, False)
    """
    return (dtype in _FLOATS or not is_float(dtype)) and bits(dtype) % 8 == 0


@dataclass(frozen=True)
class SortKeys:
    """The keys of the elements of a dtype in ascending or descending order.

    Where nobody makes elements of keys, those of negative floats are greater by one, so that both zeros have one key.
    """

    dtype: str
    descending: bool
    tells_elements: bool = True

    @property
    def key_dtype(self) -> str:
        """The dtype of keys."""
        return f"uint{bits(self.dtype)}"

    @property
    def kinds(self) -> tuple[PrimExpr, PrimExpr]:
        """The keys of zeros and of nan, the latter that of the usual nan."""
        usual = self._constant(float_format(self.dtype).nan | 1 << (bits(self.dtype) - 1))
        return self._turned(self._top), self._turned(usual)

    def total(self, value: PrimExpr) -> PrimExpr:
        """The key of an element among all that have other bits."""
        if is_float(self.dtype):
            raw = PrimCall("reinterpret", (value,), self.key_dtype)
            negative = binary("ne", binary("bitwise_and", raw, self._top), self._constant(0))
            below = binary("bitwise_xor", raw, self._all)
            return self._turned(Select(negative, below, binary("bitwise_xor", raw, self._top)))
        if is_signed(self.dtype):
            return self._turned(binary("bitwise_xor", PrimCall("reinterpret", (value,), self.key_dtype), self._top))
        return self._turned(value)

    def key(self, value: PrimExpr) -> PrimExpr:
        """The key of an element: one for both zeros, and one for all nan."""
        if not is_float(self.dtype):
            return self.total(value)
        zero, nan = self.kinds
        if self.tells_elements:
            found = Select(binary("eq", value, const(0.0, self.dtype)), zero, self.total(value))
        else:
            raw = PrimCall("reinterpret", (value,), self.key_dtype)
            negative = binary("ne", binary("bitwise_and", raw, self._top), self._constant(0))
            below = binary("sub", self._constant(0), raw)
            found = self._turned(Select(negative, below, binary("bitwise_xor", raw, self._top)))
        return Select(intrinsic("isnan", value), nan, found)

    def element(self, total: PrimExpr) -> PrimExpr:
        """The element that a total key says."""
        key = self._turned(total)
        if is_float(self.dtype):
            above = binary("ne", binary("bitwise_and", key, self._top), self._constant(0))
            key = Select(above, binary("bitwise_xor", key, self._top), binary("bitwise_xor", key, self._all))
        elif is_signed(self.dtype):
            key = binary("bitwise_xor", key, self._top)
        return PrimCall("reinterpret", (key,), self.dtype)

    def _constant(self, value: int) -> PrimExpr:
        return const(value, self.key_dtype)

    @property
    def _top(self) -> PrimExpr:
        return self._constant(1 << (bits(self.dtype) - 1))

    @property
    def _all(self) -> PrimExpr:
        return self._constant((1 << bits(self.dtype)) - 1)

    def _turned(self, key: PrimExpr) -> PrimExpr:
        """A key for the other order where elements descend."""
        return binary("bitwise_xor", key, self._all) if self.descending else key


class Restored:
    """Zeros and nan among sorted keys as they came, where there are some that their keys do not say."""

    def __init__(self, keys: SortKeys) -> None:
        self.keys = keys
        self.special = Buffer("special", (1,), keys.key_dtype)
        self.ranks = [Buffer(f"{name}_rank", (1,), INDEX) for name in ("zero", "nan")]
        self.buffers = (self.special, *self.ranks)

    def start(self) -> Stmt:
        """Nothing was seen yet."""
        return BufferStore(self.special, const(0, self.keys.key_dtype), (index(0),))

    def look(self, key: PrimExpr, value: PrimExpr) -> Stmt:
        """Note whether a key does not say its element."""
        differs = binary("bitwise_xor", key, self.keys.total(value))
        seen = binary("bitwise_or", BufferLoad(self.special, (index(0),)), differs)
        return BufferStore(self.special, seen, (index(0),))

    def statements(self, order: Buffer, size: PrimExpr, element: Element) -> Stmt:
        """What walks the elements once more, and gives the ranks of zeros and nan the elements in their order."""
        zero, keys = (index(0),), self.keys
        kinds = list(zip(self.ranks, keys.kinds, strict=True))
        i = PrimVar("i", INDEX)
        value, key = PrimVar("value", keys.dtype), PrimVar("key", keys.key_dtype)
        steps: list[Stmt] = [BufferStore(rank, index(0), zero) for rank, _ in kinds]
        for rank, kind in kinds:
            j = PrimVar("j", INDEX)
            sorted_key = cast(keys.key_dtype, BufferLoad(order, (j,)))
            more = cast(INDEX, binary("lt", sorted_key, kind))
            steps.append(For(j, 0, size, BufferStore(rank, BufferLoad(rank, zero) + more, zero)))
        walk: list[Stmt] = [Bind(value, element(i)), Bind(key, keys.key(value))]
        for rank, kind in kinds:
            place = BufferLoad(rank, zero)
            kept = BufferStore(order, cast(order.dtype, keys.total(value)), (place,))
            walk.append(IfThenElse(binary("eq", key, kind), SeqStmt((kept, BufferStore(rank, place + 1, zero)))))
        steps.append(For(i, 0, size, SeqStmt(tuple(walk))))
        found = binary("ne", BufferLoad(self.special, zero), const(0, keys.key_dtype))
        return IfThenElse(found, SeqStmt(tuple(steps)))
