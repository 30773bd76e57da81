"""Index arithmetic: extents as 64-bit sizes, indices as offsets.

    size(extent)        an extent as a 64-bit size, folded when constant
    offset(indices)     a Linear (base + stride * lane) or a vector of offsets: what decides between contiguous vector
                        access, broadcast and lane-by-lane access

It is done in 64 bits whatever the dtype of the index, so no address wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import Size
from weft.codegen.backends.llvm.asm.instructions import binary
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.values.lanes import broadcast, ramp
from weft.codegen.backends.llvm.values.round_sums import RoundSums
from weft.codegen.backends.llvm.values.views import BufferView, Linear, Scattered
from weft.errors import TargetError
from weft.ir.graph import Expr
from weft.ir.tensor import Binary, Broadcast, Cast, Extent, IntImm, PrimExpr, PrimVar, Ramp

__all__ = ["IndexEmitter"]

_EXACT = {"add": Exact.add, "sub": Exact.sub, "mul": Exact.mul}
_SUMS = frozenset(_EXACT)
_TRUNCATED = {"floordiv": "truncdiv", "floormod": "truncmod"}
_QUOTIENTS = frozenset(("floordiv", "truncdiv"))
_EXTREMES = {"min": min, "max": max}
_DIVISIONS = frozenset((*_QUOTIENTS, "floormod", "truncmod", *_EXTREMES))
_Range = tuple[int, int]
"""The least and the greatest value."""


class IndexEmitter:
    """Emits sizes and offsets into one function; `value` emits any other expression."""

    def __init__(self, arith: Arithmetic, value: Callable[[Expr], str]) -> None:
        self.w = arith.w
        self.arith = arith
        self.value = value
        self.wide: dict[PrimVar, Size] = {}
        """64-bit values of narrower integer variables, where known."""
        self.sums = RoundSums(self.w)

    def size(self, extent: Extent) -> Size:
        """An extent in 64 bits."""
        return self.w.add(*self.apart(extent))

    def apart(self, extent: Extent) -> tuple[Size, int]:
        """An extent in 64 bits as what is known when it runs (0 for nothing) and a constant to be added."""
        form = _FORMS.get(type(extent))
        if form is not None:
            return form(self, extent)
        return (0, extent) if isinstance(extent, int) else self._known(extent)

    def _variable(self, extent: PrimVar) -> tuple[Size, int]:
        self.sums.uses(extent)
        found = self.wide.get(extent)
        if found is None:
            return self._cast_to_size(extent)
        return (0, found) if isinstance(found, int) else (found, 0)

    def _cast(self, extent: Cast) -> tuple[Size, int]:
        return self.apart(extent.value) if _keeps_value(extent) else self._known(extent)

    def _binary(self, extent: Binary) -> tuple[Size, int]:
        sums = self.sums
        return sums.find(extent, self._computed) if sums.depth else self._computed(extent)

    def _computed(self, extent: Binary) -> tuple[Size, int]:
        kind = extent.kind
        if dtypes.is_signed(extent.dtype):
            if kind in _SUMS:
                return self._combined(kind, *self.apart(extent.a), *self.apart(extent.b))
            if kind in _DIVISIONS:
                found = self._divided(kind, self.size(extent.a), self.size(extent.b))
                return (0, found) if isinstance(found, int) else (found, 0)
        return self._known(extent)

    def _divided(self, kind: str, a: Size, b: Size) -> Size:
        """A quotient, a remainder, the lesser or the greater of two sizes: folded where numbers or ranges decide."""
        first, second = self.w.range_of(a), self.w.range_of(b)
        if first is None or second is None:
            if b == 1 and kind in _QUOTIENTS:
                return a
            return self.arith.binary(kind, "int64", str(a), str(b))
        folded = _decided(kind, a, b, first, second)
        if folded is not None:
            return folded
        # Of what is not negative, floor and truncation are the same, and truncation is one instruction.
        plain = kind if first[0] < 0 or second[0] <= 0 or _is_power_of_two(b) else _TRUNCATED.get(kind, kind)
        found = self.arith.binary(plain, "int64", str(a), str(b))
        if first[0] >= 0 and second[0] > 0:
            self.w.ranges[found] = _range_of_result(kind, first, second)
        return found

    def _combined(self, kind: str, a: Size, plus_a: int, b: Size, plus_b: int) -> tuple[Size, int]:
        w = self.w
        if kind == "add":
            return w.add(a, b), plus_a + plus_b
        if kind == "sub":
            return w.sub(a, b), plus_a - plus_b
        if b == 0:
            return w.mul(a, plus_b), plus_a * plus_b
        if a == 0:
            return w.mul(b, plus_a), plus_a * plus_b
        return w.mul(w.add(a, plus_a), w.add(b, plus_b)), 0

    def _known(self, expr: PrimExpr) -> tuple[Size, int]:
        """A value of any width, extended; it may change from one statement to the next."""
        self.sums.changes()
        return self._cast_to_size(expr)

    def _cast_to_size(self, expr: PrimExpr) -> tuple[Size, int]:
        value = self.arith.cast(expr.dtype, "int64", self.value(expr))
        return (0, int(value)) if value.lstrip("-").isdigit() else (value, 0)

    def exact_size(self, extent: Extent, exact: Exact) -> Size:
        """An extent in 64 bits; `exact` knows whether a part of its arithmetic leaves them."""
        if isinstance(extent, Cast) and _keeps_value(extent):
            return self.exact_size(extent.value, exact)
        if isinstance(extent, Binary) and dtypes.is_signed(extent.dtype) and extent.kind in (_SUMS | _DIVISIONS):
            a, b = self.exact_size(extent.a, exact), self.exact_size(extent.b, exact)
            if extent.kind in _SUMS:
                return _EXACT[extent.kind](exact, a, b)
            return self._divided(extent.kind, a, b)
        return self.size(extent)

    def _first_of(self, index: PrimExpr, lanes: int) -> tuple[PrimExpr | None, Size]:
        """The first lane of an index and what is added for each next one; None for lanes without a pattern."""
        if lanes == 1:
            return index, 0
        if isinstance(index, Ramp):
            return index.base, self.size(index.stride)
        return index.value if isinstance(index, Broadcast) else None, 0

    def offset(self, view: BufferView, indices: Sequence[PrimExpr]) -> Linear | Scattered:
        """The offset in elements that the indices mean."""
        if len(indices) != len(view.shape):
            raise TargetError(f"llvm: {len(indices)} indices into a buffer of rank {len(view.shape)}", code="W740")
        w, lanes, vector = self.w, 1, ""
        base: Size = 0
        step: Size = 0
        plus = 0
        for index, stride in zip(indices, view.strides, strict=True):
            width = dtypes.lanes(index.dtype)
            if width > lanes:
                lanes = width
            first, each = self._first_of(index, width)
            if first is None:
                vector = self._added(vector, index, width, stride)
                continue
            start, more = self.apart(first)
            if isinstance(stride, int):
                plus += more * stride
            else:
                base = w.add(base, w.mul(more, stride))
            base = w.add(base, w.mul(start, stride))
            if each != 0:
                step = w.add(step, w.mul(each, stride))
        if not vector:
            return Linear(base, step, lanes, plus)
        places = ramp(w, w.add(base, plus), step, lanes)
        return Scattered(w.emit(binary("add", f"<{lanes} x i64>", vector, places)), lanes)

    def _added(self, vector: str, index: PrimExpr, lanes: int, stride: Size) -> str:
        """A vector of offsets (empty for none), and an index of several lanes times its stride."""
        w, ty = self.w, f"<{lanes} x i64>"
        offsets = self.arith.cast(index.dtype, dtypes.with_lanes("int64", lanes), self.value(index))
        scale = broadcast(w, str(stride), "int64", lanes)
        scaled = offsets if stride == 1 else w.emit(binary("mul", ty, offsets, scale))
        return w.emit(binary("add", ty, vector, scaled)) if vector else scaled


def _decided(kind: str, a: Size, b: Size, first: _Range, second: _Range) -> Size | None:
    """What the ranges of two sizes say that a quotient, a remainder or an extreme is; None where they do not."""
    if kind in _EXTREMES:
        if first[1] <= second[0]:
            return a if kind == "min" else b
        if second[1] <= first[0]:
            return b if kind == "min" else a
        return None
    if first[0] < 0 or second[0] <= 0:
        return None
    if first[1] < second[0]:  # less than the divisor
        return 0 if kind in _QUOTIENTS else a
    if second[1] == 1:
        return a if kind in _QUOTIENTS else 0
    if isinstance(a, int) and isinstance(b, int):
        return a // b if kind in _QUOTIENTS else a % b
    return None


def _range_of_result(kind: str, first: _Range, second: _Range) -> _Range:
    """The range of a quotient, a remainder or an extreme of a size that is not negative and a positive one."""
    if kind in _EXTREMES:
        pick = _EXTREMES[kind]
        return pick(first[0], second[0]), pick(first[1], second[1])
    if kind in _QUOTIENTS:
        return first[0] // second[1], first[1] // second[0]
    return 0, min(first[1], second[1] - 1)


def _is_power_of_two(size: Size) -> bool:
    return isinstance(size, int) and size > 0 and size & (size - 1) == 0


def _keeps_value(cast: Cast) -> bool:
    """Whether a cast between integers changes no value: that of a signed one to as many bits or more."""
    source, target = cast.value.dtype, cast.dtype
    if not (dtypes.is_signed(source) and dtypes.is_integer(target)):
        return False
    return dtypes.bits(target) >= dtypes.bits(source)


_FORMS: dict[type, Callable[[IndexEmitter, Any], tuple[Size, int]]] = {
    int: lambda _emitter, extent: (0, extent),
    IntImm: lambda _emitter, extent: (0, extent.value),
    PrimVar: IndexEmitter._variable,
    Cast: IndexEmitter._cast,
    Binary: IndexEmitter._binary,
}
