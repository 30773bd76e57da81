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
_DIVISIONS = frozenset(("floordiv", "floormod", "truncdiv", "truncmod", "min", "max"))


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
                a, b = str(self.size(extent.a)), str(self.size(extent.b))
                found = self.arith.binary(kind, "int64", a, b)
                return found, 0
        return self._known(extent)

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
            value = self.arith.binary(extent.kind, "int64", str(a), str(b))
            return int(value) if value.lstrip("-").isdigit() else value
        return self.size(extent)

    def lanes_of(self, expr: PrimExpr) -> Linear | Scattered:
        """A vector index as a Linear when it is one, else as a vector of int64."""
        lanes = dtypes.lanes(expr.dtype)
        if lanes == 1:
            return self._linear(expr, 0, 1)
        if isinstance(expr, Ramp):
            return self._linear(expr.base, self.size(expr.stride), lanes)
        if isinstance(expr, Broadcast):
            return self._linear(expr.value, 0, lanes)
        return Scattered(self.arith.cast(expr.dtype, dtypes.with_lanes("int64", lanes), self.value(expr)), lanes)

    def _linear(self, first: PrimExpr, stride: Size, lanes: int) -> Linear:
        base, plus = self.apart(first)
        return Linear(base, stride, lanes, plus)

    def offset(self, view: BufferView, indices: Sequence[PrimExpr]) -> Linear | Scattered:
        """The offset in elements that the indices mean."""
        if len(indices) != len(view.shape):
            raise TargetError(f"llvm: {len(indices)} indices into a buffer of rank {len(view.shape)}", code="W740")
        w, lanes, vector = self.w, 1, ""
        base: Size = 0
        step: Size = 0
        plus = 0
        for index, stride in zip(indices, view.strides, strict=True):
            part = self.lanes_of(index)
            lanes = max(lanes, part.lanes)
            if isinstance(part, Scattered):
                vector = self._added(vector, part, stride)
                continue
            if isinstance(stride, int):
                plus += part.plus * stride
            else:
                base = w.add(base, w.mul(part.plus, stride))
            base = w.add(base, w.mul(part.base, stride))
            if part.stride != 0:
                step = w.add(step, w.mul(part.stride, stride))
        if not vector:
            return Linear(base, step, lanes, plus)
        places = ramp(w, w.add(base, plus), step, lanes)
        return Scattered(w.emit(binary("add", f"<{lanes} x i64>", vector, places)), lanes)

    def _added(self, vector: str, part: Scattered, stride: Size) -> str:
        """A vector of offsets (empty for none), and another one times its stride."""
        w, ty = self.w, f"<{part.lanes} x i64>"
        scale = broadcast(w, str(stride), "int64", part.lanes)
        scaled = part.offsets if stride == 1 else w.emit(binary("mul", ty, part.offsets, scale))
        return w.emit(binary("add", ty, vector, scaled)) if vector else scaled


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
