"""Tensor-level expressions to LLVM values, and the addresses of buffer elements.

    value(expr)         the spelling of the value, of LLVM type `value_type(expr.dtype)`
    size(extent)        an extent as a 64-bit size, folded when constant
    offset(indices)     a Linear (base + stride * lane) or a vector of offsets: what decides between contiguous vector
                        access, broadcast and lane-by-lane access

Index arithmetic is done in 64 bits whatever the dtype of the index, so no address wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import (
    binary,
    call,
    cast,
    extractelement,
    getelementptr,
    icmp,
    insertelement,
    load,
    phi,
    select,
    shufflevector,
    store,
)
from weft.codegen.backends.llvm.asm.overflow import Exact
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.asm.types import constant, element_bytes, memory_type, value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic, mangled
from weft.codegen.backends.llvm.math.intrinsics import emit_math, is_math
from weft.errors import TargetError
from weft.ir.graph import Expr, StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    COMPARISONS,
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    Extent,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    Shuffle,
    Unary,
)

__all__ = ["BufferView", "ExpressionEmitter", "Linear", "Scattered", "dtype_of"]

_TRUE, _FALSE = ("true", "splat (i1 true)"), ("false", "splat (i1 false)")
_SIZES = frozenset({"add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max"})
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_CHEAP = (PrimVar, IntImm, FloatImm, Binary, Unary, Cast, Select, Broadcast, Ramp)


@dataclass
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


@dataclass
class Linear:
    """Offsets base + plus, base + plus + stride, ...; one lane is a scalar offset.

    The constant stands apart, so that the copies of an unrolled loop share the base.
    """

    base: Size
    stride: Size
    lanes: int
    plus: int = 0


@dataclass
class Scattered:
    """Offsets without a pattern: a vector of int64."""

    offsets: str
    lanes: int


def _known(size: Size) -> tuple[Size, int]:
    """A size as what is known when it runs and a constant."""
    return (0, size) if isinstance(size, int) else (size, 0)


class ExpressionEmitter:
    """Emits expressions into one function."""

    def __init__(self, writer: FunctionWriter, program: Program, flags: str) -> None:
        self.w = writer
        self.program = program
        self.arith = Arithmetic(writer, flags, program.strict_math, program.features)
        self.variables: dict[PrimVar, str] = {}
        self.wide: dict[PrimVar, Size] = {}  # 64-bit values of narrower integer variables, where known
        self.buffers: dict[Buffer, BufferView] = {}
        self.masks: dict[str, str] = {}  # of values that were read under one

    # Values

    def value(self, expr: Expr) -> str:
        """Emit an expression; gives the spelling of its value."""
        method = _VALUES.get(type(expr))
        if method is None:
            raise TargetError(
                f"llvm: a {type(expr).__name__} cannot stand in a tensor-level expression", code="W740", span=expr.span
            )
        return method(self, expr)

    def _variable(self, expr: PrimVar) -> str:
        found = self.variables.get(expr)
        if found is None:
            raise TargetError(f"llvm: the variable {expr.name or '_'} has no value here", code="W740", span=expr.span)
        return found

    def _int(self, expr: IntImm) -> str:
        return constant(expr.value, expr.dtype)

    def _float(self, expr: FloatImm) -> str:
        return constant(expr.value, expr.dtype)

    def _unary(self, expr: Unary) -> str:
        return self.arith.unary(expr.kind, expr.dtype, self.value(expr.a))

    def _binary(self, expr: Binary) -> str:
        if expr.kind in ("and", "or") and dtypes.lanes(expr.dtype) == 1 and not self.is_cheap(expr.b):
            return self._short_circuit(expr)
        if expr.kind in ("and", "or") and isinstance(expr.a, Broadcast) and isinstance(expr.b, Broadcast):
            both = self.arith.binary(expr.kind, "bool", self.value(expr.a.value), self.value(expr.b.value))
            return self.splat(both, "bool", expr.a.lanes)
        compared = self._compared_ramp(expr)
        if compared is not None:
            return compared
        a = self.value(expr.a)
        b = self.value(expr.b)
        if expr.kind in ("and", "or"):
            whole, nothing = (_TRUE, _FALSE) if expr.kind == "and" else (_FALSE, _TRUE)
            for one, other in ((a, b), (b, a)):
                if one in whole or other in nothing:
                    return other
        return self.arith.binary(expr.kind, expr.a.dtype, a, b)

    def _compared_ramp(self, expr: Binary) -> str | None:
        """Consecutive indices compared with a bound, as masks are written; None for anything else."""
        kind, ramp, bound = expr.kind, expr.a, expr.b
        if isinstance(ramp, Broadcast):
            kind, ramp, bound = _TURNED.get(kind, kind), bound, ramp
        if kind not in _TURNED or not isinstance(ramp, Ramp) or not isinstance(bound, Broadcast):
            return None
        if dtypes.element(ramp.dtype) != "int64" or not isinstance(ramp.stride, IntImm) or ramp.stride.value != 1:
            return None
        base, limit = self.size(ramp.base), self.size(bound.value)
        limit = self.w.add(limit, 1) if kind in ("le", "gt") else limit
        return self.lanes_below(base, limit, ramp.lanes, turned=kind in ("gt", "ge"))

    def lanes_below(self, base: Size, limit: Size, lanes: int, turned: bool = False) -> str:
        """Lane k is true when base + k < limit, or (turned) when not."""
        count = self.w.sub(limit, base)
        least, most = self.w.range_of(count) or (-1, lanes + 1)
        if least == most or least >= lanes or most <= 0:
            bits = [f"i1 {'true' if (lane < least) != turned else 'false'}" for lane in range(lanes)]
            return f"splat ({bits[0]})" if len(set(bits)) == 1 else f"<{', '.join(bits)}>"
        for kind, bound, needed in (("max", 0, least < 0), ("min", lanes, most > lanes)):
            count = self.arith.binary(kind, "int64", str(count), str(bound)) if needed else count
        # 32 bits are enough for a number of lanes, and the ramp is a constant that takes few registers.
        ramp = f"<{', '.join(f'i32 {lane}' for lane in range(lanes))}>"
        until = self.splat(self.arith.cast("int64", "int32", str(count)), "int32", lanes)
        return self.w.emit(icmp("sge" if turned else "slt", f"<{lanes} x i32>", ramp, until))

    def _short_circuit(self, expr: Binary, evaluate: Callable[[PrimExpr], str] | None = None) -> str:
        """The right side is evaluated only when it decides: `i < n and x[i] > 0` never reads past the end."""
        evaluate = evaluate or self.value
        a, w = evaluate(expr.a), self.w
        start, more, done = w.block_label, w.label("more"), w.label("done")
        w.branch(a, *((more, done) if expr.kind == "and" else (done, more)))
        w.open(more)
        b, end = evaluate(expr.b), w.block_label
        w.open(done)
        return w.emit(phi("i1", ("false" if expr.kind == "and" else "true", start), (b, end)))

    def _cast(self, expr: Cast) -> str:
        return self.arith.cast(expr.value.dtype, expr.dtype, self.value(expr.value))

    def _select(self, expr: Select) -> str:
        condition = self._condition_for(expr.condition, expr.dtype)
        a = self.value(expr.true_value)
        return self._chosen(condition, expr.dtype, a, self.value(expr.false_value))

    def _chosen(self, condition: str, dtype: str, a: str, b: str) -> str:
        """One of two values; what was read under the condition is zero elsewhere already."""
        if self.masks.get(a) == condition and b in ("zeroinitializer", f"splat ({constant_zero(dtype)})"):
            return a
        return self.arith.select(condition, dtype, a, b)

    def _condition_for(self, condition: PrimExpr, dtype: str) -> str:
        lanes = dtypes.lanes(dtype)
        value = self.value(condition)
        return self.splat(value, "bool", lanes) if lanes > 1 and dtypes.lanes(condition.dtype) == 1 else value

    def _ramp(self, expr: Ramp) -> str:
        scalar, ty = value_type(expr.base.dtype), value_type(expr.dtype)
        steps = f"<{', '.join(f'{scalar} {lane}' for lane in range(expr.lanes))}>"
        if not isinstance(expr.stride, IntImm) or expr.stride.value != 1:
            stride = self.splat(self.value(expr.stride), expr.base.dtype, expr.lanes)
            steps = self.w.emit(binary("mul", ty, steps, stride))
        base = self.splat(self.value(expr.base), expr.base.dtype, expr.lanes)
        return self.w.emit(binary("add", ty, base, steps))

    def _broadcast(self, expr: Broadcast) -> str:
        return self.splat(self.value(expr.value), expr.value.dtype, expr.lanes)

    def splat(self, value: str, dtype: str, lanes: int) -> str:
        """A scalar value of `dtype` in every lane."""
        scalar = value_type(dtype)
        if not value.startswith("%"):
            return f"splat ({scalar} {value})"
        if scalar == "i1":
            return self.w.emit(select("i1", value, f"<{lanes} x i1>", "splat (i1 true)", "zeroinitializer"))
        first = self.w.emit(insertelement(f"<{lanes} x {scalar}>", "poison", scalar, value, 0))
        return self.w.emit(shufflevector(f"<{lanes} x {scalar}>", first, "poison", [0] * lanes))

    def _shuffle(self, expr: Shuffle) -> str:
        kinds = {vector.dtype for vector in expr.vectors}
        known = [index.value for index in expr.indices if isinstance(index, IntImm)]
        (kind, *others) = kinds
        lanes = dtypes.lanes(kind)
        if len(expr.vectors) == 2 and not others and lanes > 1 and len(known) == len(expr.indices) > 1:
            if all(0 <= lane < 2 * lanes for lane in known):
                a, b, ty = self.value(expr.vectors[0]), self.value(expr.vectors[1]), value_type(kind)
                return self.w.emit(shufflevector(ty, a, b, known))
        parts: list[tuple[str, str]] = []
        for vector in expr.vectors:
            value, scalar = self.value(vector), value_type(dtypes.element(vector.dtype))
            for lane in range(dtypes.lanes(vector.dtype)):
                if dtypes.lanes(vector.dtype) == 1:
                    parts.append((scalar, value))
                else:
                    parts.append((scalar, self.w.emit(extractelement(value_type(vector.dtype), value, lane))))
        picked = []
        for index in expr.indices:
            if not isinstance(index, IntImm) or not 0 <= index.value < len(parts):
                raise TargetError(
                    "llvm: the lanes of T.Shuffle must be constants in range", code="W740", span=expr.span
                )
            picked.append(parts[index.value])
        if len(picked) == 1:
            return picked[0][1]
        result, ty = "poison", value_type(expr.dtype)
        for lane, (scalar, value) in enumerate(picked):
            result = self.w.emit(insertelement(ty, result, scalar, value, lane))
        return result

    def _let(self, expr: Let) -> str:
        self.bind(expr.var, self.value(expr.value))
        return self.value(expr.body)

    def bind(self, var: PrimVar, value: str, wide: Size | None = None) -> None:
        """Give a variable its value."""
        self.variables[var] = value
        self.wide.pop(var, None)
        if wide is not None:
            self.wide[var] = wide

    def is_cheap(self, expr: Expr) -> bool:
        """Whether evaluating the expression has no effect, reads no memory and costs little."""
        return all(
            isinstance(part, _CHEAP)
            and not (isinstance(part, Binary) and part.kind in ("div", "floordiv", "floormod", "truncdiv", "truncmod"))
            for part in walk(expr)
        )

    # Sizes and offsets

    def size(self, extent: Extent) -> Size:
        """An extent in 64 bits."""
        return self.w.add(*self.apart(extent))

    def apart(self, extent: Extent) -> tuple[Size, int]:
        """An extent in 64 bits as what is known when it runs (0 for nothing) and a constant to be added."""
        if isinstance(extent, int):
            return 0, extent
        if isinstance(extent, IntImm):
            return 0, extent.value
        if isinstance(extent, PrimVar):
            return _known(self.wide[extent] if extent in self.wide else self._widened(extent))
        if isinstance(extent, Cast) and dtypes.is_integer(extent.dtype) and dtypes.is_integer(extent.value.dtype):
            if dtypes.bits(extent.dtype) >= dtypes.bits(extent.value.dtype) and dtypes.is_signed(extent.value.dtype):
                return self.apart(extent.value)
        if isinstance(extent, Binary) and dtypes.is_signed(extent.dtype):
            if extent.kind in ("add", "sub", "mul"):
                return self._combined(extent.kind, *self.apart(extent.a), *self.apart(extent.b))
            if extent.kind in ("floordiv", "floormod", "truncdiv", "truncmod", "min", "max"):
                a, b = str(self.size(extent.a)), str(self.size(extent.b))
                return _known(self.arith.binary(extent.kind, "int64", a, b))
        return _known(self._widened(extent))

    def exact_size(self, extent: Extent, exact: Exact) -> Size:
        """An extent in 64 bits; `exact` knows whether a part of its arithmetic leaves them."""
        if isinstance(extent, Cast) and dtypes.is_integer(extent.dtype) and dtypes.is_integer(extent.value.dtype):
            if dtypes.bits(extent.dtype) >= dtypes.bits(extent.value.dtype) and dtypes.is_signed(extent.value.dtype):
                return self.exact_size(extent.value, exact)
        if isinstance(extent, Binary) and extent.kind in _SIZES and dtypes.is_signed(extent.dtype):
            a, b = self.exact_size(extent.a, exact), self.exact_size(extent.b, exact)
            if extent.kind in ("add", "sub", "mul"):
                return getattr(exact, extent.kind)(a, b)
            value = self.arith.binary(extent.kind, "int64", str(a), str(b))
            return int(value) if value.lstrip("-").isdigit() else value
        return self.size(extent)

    def exact_condition(self, condition: PrimExpr) -> str:
        """The condition of a check of bounds: a comparison whose arithmetic leaves 64 bits does not hold."""
        if isinstance(condition, Binary) and condition.kind in ("and", "or"):
            if self.is_cheap(condition.b) and not _has_arithmetic(condition.b):
                return self.arith.binary(
                    condition.kind, "bool", self.exact_condition(condition.a), self.value(condition.b)
                )
            return self._short_circuit(condition, self.exact_condition)
        if not isinstance(condition, Binary) or condition.kind not in COMPARISONS or not _has_arithmetic(condition):
            return self.value(condition)
        if not (dtypes.is_integer(condition.a.dtype) and dtypes.is_signed(condition.a.dtype)):
            return self.value(condition)
        exact = Exact(self.w)
        a, b = self.exact_size(condition.a, exact), self.exact_size(condition.b, exact)
        holds = exact.holds()
        compared = self.arith.binary(condition.kind, "int64", str(a), str(b))
        if isinstance(holds, bool):
            return compared if holds else "false"
        return self.arith.binary("and", "bool", compared, holds)

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

    def _widened(self, expr: PrimExpr) -> Size:
        value = self.arith.cast(expr.dtype, "int64", self.value(expr))
        return int(value) if value.lstrip("-").isdigit() else value

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
        lanes = max((dtypes.lanes(index.dtype) for index in indices), default=1)
        base: Size = 0
        step: Size = 0
        plus = 0
        vector = ""
        for index, stride in zip(indices, view.strides, strict=True):
            part = self.lanes_of(index)
            if isinstance(part, Linear):
                if isinstance(stride, int):
                    plus += part.plus * stride
                else:
                    base = self.w.add(base, self.w.mul(part.plus, stride))
                base = self.w.add(base, self.w.mul(part.base, stride))
                step = self.w.add(step, self.w.mul(part.stride, stride))
            else:
                ty = f"<{lanes} x i64>"
                scale = self.splat(str(stride), "int64", lanes)
                scaled = part.offsets if stride == 1 else self.w.emit(binary("mul", ty, part.offsets, scale))
                vector = self.w.emit(binary("add", ty, vector, scaled)) if vector else scaled
        if not vector:
            return Linear(base, step, lanes, plus)
        ramp = self._ramp_of(self.w.add(base, plus), step, lanes)
        return Scattered(self.w.emit(binary("add", f"<{lanes} x i64>", vector, ramp)), lanes)

    def _ramp_of(self, base: Size, step: Size, lanes: int) -> str:
        ty = f"<{lanes} x i64>"
        steps = f"<{', '.join(f'i64 {lane}' for lane in range(lanes))}>"
        if step != 1:
            steps = self.w.emit(binary("mul", ty, steps, self.splat(str(step), "int64", lanes)))
        return steps if base == 0 else self.w.emit(binary("add", ty, steps, self.splat(str(base), "int64", lanes)))

    def address(self, view: BufferView, offset: Size, plus: int = 0) -> str:
        """The address of an element, so many more further on."""
        if isinstance(offset, int):
            offset, plus = offset + plus, 0
        pointer, ty = view.pointer, memory_type(view.dtype)
        for step in (offset, plus):
            if step != 0:
                pointer = self.w.emit(getelementptr(ty, pointer, step))
        return pointer

    # Memory

    def view(self, buffer: Buffer) -> BufferView:
        """Where a buffer is; TargetError when it has no memory here."""
        found = self.buffers.get(buffer)
        if found is None:
            raise TargetError(
                f"llvm: the buffer {buffer.name or '_'} has no memory here", code="W740", span=buffer.span
            )
        return found

    def _load(self, expr: BufferLoad) -> str:
        view = self.view(expr.buffer)
        where = self.offset(view, expr.indices)
        mask = None if expr.predicate is None else self.mask(expr.predicate, expr.dtype)
        return self.load(view, where, mask)

    def mask(self, predicate: PrimExpr, dtype: str) -> str:
        """A predicate with the lanes of `dtype`."""
        return self._condition_for(predicate, dtype)

    def load(self, view: BufferView, where: Linear | Scattered, mask: str | None = None) -> str:
        """Read elements; lanes whose mask is false are not read and give zero."""
        lanes = where.lanes
        dtype = dtypes.with_lanes(view.dtype, lanes) if lanes > 1 else view.dtype
        if isinstance(where, Linear) and mask is None:
            if lanes == 1 or where.stride == 0:
                pointer = self.address(view, where.base, where.plus)
                value = self._from_memory(view.dtype, self._read(view.dtype, pointer))
                return value if lanes == 1 else self.splat(value, view.dtype, lanes)
            if where.stride == 1:
                return self._from_memory(dtype, self._read(dtype, self.address(view, where.base, where.plus)))
        if isinstance(where, Linear) and where.stride == 1 and lanes > 1 and mask is not None:
            pointer = self.address(view, where.base, where.plus)
            return (self._picked_load if view.holds(where) else self._masked_load)(pointer, dtype, mask)
        plain = memory_type(dtype) == value_type(dtype)
        if isinstance(where, Linear) and isinstance(where.stride, int) and 1 < where.stride <= min(4, lanes) and plain:
            return self._strided_load(view, where, where.stride, dtype, mask)
        return self._lanes_load(view, where, lanes, dtype, mask)

    def _strided_load(self, view: BufferView, where: Linear, stride: int, dtype: str, mask: str | None) -> str:
        """Every `stride`-th element, picked from whole vectors.

        Nothing is read beyond the last element: without a mask the last vector ends there, with one only the elements
        of lanes that are on are read at all.
        """
        w, lanes, ty = self.w, dtypes.lanes(dtype), value_type(dtype)
        starts = [part * lanes for part in range(stride)]
        if mask is None:
            starts[-1] = (lanes - 1) * (stride - 1)
        result = "poison"
        for part, start in enumerate(starts):
            pointer = self.address(view, where.base, where.plus + start)
            if mask is None:
                value = self._read(dtype, pointer)
            else:
                wanted = [start + x for x in range(lanes)]
                lane = [x // stride if x % stride == 0 and x // stride < lanes else lanes for x in wanted]
                bits = f"<{lanes} x i1>"
                part_mask = w.emit(shufflevector(bits, mask, "zeroinitializer", lane))
                value = self._masked_load(pointer, dtype, part_mask)
            here = range(part * lanes, (part + 1) * lanes)  # elements that come from this vector
            order = [lanes + x * stride - start if x * stride in here else x for x in range(lanes)]
            result = w.emit(shufflevector(ty, result, value, order))
        return result

    def _read(self, dtype: str, pointer: str) -> str:
        return self.w.emit(load(memory_type(dtype), pointer, element_bytes(dtype)))

    def _from_memory(self, dtype: str, value: str) -> str:
        memory, ty = memory_type(dtype), value_type(dtype)
        if memory == ty:
            return value
        if dtypes.is_bool(dtype):
            return self.w.emit(icmp("ne", memory, value, splat_memory("0", memory)))
        return self.w.emit(cast("trunc", memory, value, ty))

    def in_memory(self, dtype: str, value: str) -> str:
        """A value in the type that it has in memory."""
        memory, ty = memory_type(dtype), value_type(dtype)
        if memory == ty:
            return value
        return self.w.emit(cast("sext" if dtypes.is_signed(dtype) else "zext", ty, value, memory))

    def _picked_load(self, pointer: str, dtype: str, mask: str) -> str:
        """A whole load and a choice: memory on the stack that is only read and written so stays in registers."""
        value, ty = self._from_memory(dtype, self._read(dtype, pointer)), value_type(dtype)
        bits = f"<{dtypes.lanes(dtype)} x i1>"
        picked = self.w.emit(select(bits, mask, ty, value, "zeroinitializer"))
        self.masks[picked] = mask
        return picked

    def _masked_load(self, pointer: str, dtype: str, mask: str) -> str:
        memory, lanes = memory_type(dtype), dtypes.lanes(dtype)
        name = f"llvm.masked.load.{memory_mangled(memory)}.p0"
        self.w.module.declare(name, memory, ("ptr", "i32 immarg", f"<{lanes} x i1>", memory))
        where = [("ptr", pointer), ("i32", element_bytes(dtype)), (f"<{lanes} x i1>", mask)]
        read = self.w.emit(call(memory, f"@{name}", [*where, (memory, "zeroinitializer")]))
        value = self._from_memory(dtype, read)
        self.masks[value] = mask
        return value

    def _lanes_load(self, view: BufferView, where: Linear | Scattered, lanes: int, dtype: str, mask: str | None) -> str:
        w, ty, scalar = self.w, value_type(dtype), value_type(view.dtype)
        result = "zeroinitializer" if mask else "poison"
        if lanes == 1:
            assert isinstance(where, Linear)
            assert mask is not None
            return self._guarded(mask, scalar, lambda: self.load(view, where))
        if mask is not None and memory_type(dtype) == ty:
            return self._gather(view, where, lanes, dtype, mask)
        for lane in range(lanes):
            pointer = self.lane_address(view, where, lane)

            def one(pointer: str = pointer) -> str:
                return self._from_memory(view.dtype, self._read(view.dtype, pointer))

            if mask is None:
                value = one()
            else:
                value = self._guarded(w.emit(extractelement(f"<{lanes} x i1>", mask, lane)), scalar, one)
            result = w.emit(insertelement(ty, result, scalar, value, lane))
        return result

    def _gather(self, view: BufferView, where: Linear | Scattered, lanes: int, dtype: str, mask: str) -> str:
        """The elements of the lanes that are on, zeros in the others: one instruction, where the processor has it."""
        w, ty, pointers = self.w, value_type(dtype), f"<{lanes} x ptr>"
        if isinstance(where, Linear):
            offsets = self._ramp_of(w.add(where.base, where.plus), where.stride, lanes)
        else:
            offsets = where.offsets
        places = w.emit(getelementptr(memory_type(view.dtype), view.pointer, offsets, f"<{lanes} x i64>"))
        name = f"llvm.masked.gather.{memory_mangled(ty)}.v{lanes}p0"
        w.module.declare(name, ty, (pointers, "i32 immarg", f"<{lanes} x i1>", ty))
        chosen = [(pointers, places), ("i32", element_bytes(view.dtype)), (f"<{lanes} x i1>", mask)]
        return w.emit(call(ty, f"@{name}", [*chosen, (ty, "zeroinitializer")]))

    def _guarded(self, condition: str, ty: str, body: Callable[[], str]) -> str:
        w = self.w
        start, then, done = w.block_label, w.label("lane"), w.label("lane.done")
        w.branch(condition, then, done)
        w.open(then)
        value, end = body(), w.block_label
        w.open(done)
        return w.emit(phi(ty, ("zeroinitializer", start), (value, end)))

    def lane_address(self, view: BufferView, where: Linear | Scattered, lane: int) -> str:
        """The address of one lane."""
        if isinstance(where, Scattered):
            offset = self.w.emit(extractelement(f"<{where.lanes} x i64>", where.offsets, lane))
            return self.address(view, offset)
        if isinstance(where.stride, int):
            return self.address(view, where.base, where.plus + where.stride * lane)
        return self.address(view, self.w.add(where.base, self.w.mul(where.stride, lane)), where.plus)

    def store(
        self, view: BufferView, where: Linear | Scattered, dtype: str, value: str, mask: str | None = None
    ) -> None:
        """Write a value of `dtype`; lanes whose mask is false are not written."""
        lanes = dtypes.lanes(dtype) if not dtypes.lanes(view.dtype) > 1 else 1
        if lanes == 1:
            assert isinstance(where, Linear)
            self._guard(mask, lambda: self._write(view.dtype, self.address(view, where.base, where.plus), value))
        elif isinstance(where, Linear) and where.stride == 1 and mask is None:
            self._write(dtype, self.address(view, where.base, where.plus), value)
        elif isinstance(where, Linear) and where.stride == 1 and mask is not None:
            pointer = self.address(view, where.base, where.plus)
            (self._picked_store if view.holds(where) else self._masked_store)(dtype, pointer, value, mask)
        else:
            for lane in range(lanes):
                part = self.w.emit(extractelement(value_type(dtype), value, lane))
                pointer = self.lane_address(view, where, lane)
                bit = None if mask is None else self.w.emit(extractelement(f"<{lanes} x i1>", mask, lane))
                self._guard(bit, lambda part=part, pointer=pointer: self._write(view.dtype, pointer, part))

    def _write(self, dtype: str, pointer: str, value: str) -> None:
        self.w.do(store(memory_type(dtype), self.in_memory(dtype, value), pointer, element_bytes(dtype)))

    def _picked_store(self, dtype: str, pointer: str, value: str, mask: str) -> None:
        """What was there in the lanes that are off, as for `_picked_load`."""
        memory, new = memory_type(dtype), self.in_memory(dtype, value)
        old = self._read(dtype, pointer)
        bits = f"<{dtypes.lanes(dtype)} x i1>"
        picked = self.w.emit(select(bits, mask, memory, new, old))
        self.w.do(store(memory, picked, pointer, element_bytes(dtype)))

    def _masked_store(self, dtype: str, pointer: str, value: str, mask: str) -> None:
        memory, lanes = memory_type(dtype), dtypes.lanes(dtype)
        name = f"llvm.masked.store.{memory_mangled(memory)}.p0"
        self.w.module.declare(name, "void", (memory, "ptr", "i32 immarg", f"<{lanes} x i1>"))
        where = [("ptr", pointer), ("i32", element_bytes(dtype)), (f"<{lanes} x i1>", mask)]
        self.w.do(call("void", f"@{name}", [(memory, self.in_memory(dtype, value)), *where]))

    def _guard(self, condition: str | None, body: Callable[[], None]) -> None:
        if condition is None:
            body()
            return
        then, done = self.w.label("then"), self.w.label("done")
        self.w.branch(condition, then, done)
        self.w.open(then)
        body()
        self.w.open(done)

    # Calls

    def _call(self, expr: PrimCall) -> str:
        name = expr.op if isinstance(expr.op, str) else ""
        special = self.calls.get(name)
        if special is not None:
            return special(self, expr)
        if is_math(name):
            operands = [self.value(arg) for arg in expr.args]
            return emit_math(self.arith, name, expr.dtype, operands, [dtype_of(arg) for arg in expr.args])
        if not name:
            return self.call_function(expr)
        known = "" if name in INTRINSICS else " (an operation of another device)"
        raise TargetError(
            f"llvm: the CPU has no T.{name}{known}",
            code="W742",
            span=expr.span,
            hint="lower it for this target first, or compile for its device",
        )

    def call_function(self, expr: PrimCall) -> str:
        """A call of another function of the module."""
        raise NotImplementedError

    def call_if_then_else(self, expr: PrimCall) -> str:
        """Only the chosen value is evaluated."""
        condition, a, b = expr.args
        assert isinstance(condition, PrimExpr)
        if dtypes.lanes(dtype_of(condition)) > 1 or (self.is_cheap(a) and self.is_cheap(b)):
            picked = self._condition_for(condition, expr.dtype)
            first = self.value(a)
            return self._chosen(picked, expr.dtype, first, self.value(b))
        w, chosen = self.w, self.value(condition)
        then, other, done = w.label("then"), w.label("else"), w.label("done")
        w.branch(chosen, then, other)
        w.open(then)
        first, first_end = self.value(a), w.block_label
        w.jump(done)
        w.open(other)
        second, second_end = self.value(b), w.block_label
        w.open(done)
        return w.emit(phi(value_type(expr.dtype), (first, first_end), (second, second_end)))

    def call_address_of(self, expr: PrimCall) -> str:
        """The address of a buffer element."""
        target = expr.args[0]
        if not isinstance(target, BufferLoad):
            raise TargetError("llvm: T.address_of takes an element of a buffer", code="W740", span=expr.span)
        view = self.view(target.buffer)
        where = self.offset(view, target.indices)
        return self.lane_address(view, where, 0)

    def call_access_ptr(self, expr: PrimCall) -> str:
        """A pointer into a buffer: access_ptr(buffer[...], ...)."""
        return self.call_address_of(expr)

    def call_handle_add_byte_offset(self, expr: PrimCall) -> str:
        """A pointer moved by bytes."""
        pointer = self.value(expr.args[0])
        amount = expr.args[1]
        assert isinstance(amount, PrimExpr)
        return self.w.emit(getelementptr("i8", pointer, self.size(amount)))

    def call_undef(self, expr: PrimCall) -> str:
        """Some value: zero, so that compiled code is deterministic."""
        return constant(0, expr.dtype) if not dtypes.is_float(expr.dtype) else constant(0.0, expr.dtype)

    def call_assume(self, expr: PrimCall) -> str:
        """A promise of the user; nothing is emitted."""
        return "true"

    def call_vectorlow(self, expr: PrimCall) -> str:
        """The first half of a vector's lanes."""
        return self._part(expr, 0)

    def call_vectorhigh(self, expr: PrimCall) -> str:
        """The second half of a vector's lanes."""
        return self._part(expr, dtypes.lanes(expr.dtype))

    def _part(self, expr: PrimCall, first: int) -> str:
        source = next(arg for arg in reversed(expr.args) if not isinstance(arg, StringImm))
        ty, lanes = value_type(dtype_of(source)), dtypes.lanes(expr.dtype)
        value = self.value(source)
        if lanes == 1:
            return self.w.emit(extractelement(ty, value, first))
        return self.w.emit(shufflevector(ty, value, "poison", range(first, first + lanes)))

    def call_vectorcombine(self, expr: PrimCall) -> str:
        """Two vectors end to end."""
        low, high = expr.args[-2:]
        ty, lanes = value_type(dtype_of(low)), dtypes.lanes(expr.dtype)
        a = self.value(low)
        return self.w.emit(shufflevector(ty, a, self.value(high), range(lanes)))

    def call_get_active_lane_mask(self, expr: PrimCall) -> str:
        """Lane k is true when base + k < limit."""
        base, limit = expr.args[-2:]
        assert isinstance(base, PrimExpr)
        assert isinstance(limit, PrimExpr)
        return self.lanes_below(self.size(base), self.size(limit), dtypes.lanes(expr.dtype))

    def call_llvm_intrin(self, expr: PrimCall) -> str:
        """An LLVM intrinsic by its name; a name without a type suffix gets that of the result."""
        head, *rest = expr.args
        operands = [arg for arg in rest if isinstance(arg, PrimExpr)]
        if not isinstance(head, StringImm) or not head.value.startswith("llvm."):
            raise TargetError(
                "llvm: call_llvm_intrin takes the intrinsic's name, such as 'llvm.sqrt'", code="W740", span=expr.span
            )
        if (
            len(operands) > 1
            and isinstance(operands[0], IntImm)
            and operands[0].dtype == "uint32"
            and operands[0].value == len(operands) - 1
        ):
            operands = operands[1:]  # older scripts state the number of operands
        suffix = mangled(expr.dtype)
        name = head.value if head.value.endswith(f".{suffix}") else f"{head.value}.{suffix}"
        return self.arith.call(name, expr.dtype, *((value_type(arg.dtype), self.value(arg)) for arg in operands))

    calls: ClassVar[Mapping[str, Callable[[Any, PrimCall], str]]] = {
        "access_ptr": call_access_ptr,
        "address_of": call_address_of,
        "assume": call_assume,
        "call_llvm_intrin": call_llvm_intrin,
        "call_llvm_pure_intrin": call_llvm_intrin,
        "get_active_lane_mask": call_get_active_lane_mask,
        "handle_add_byte_offset": call_handle_add_byte_offset,
        "if_then_else": call_if_then_else,
        "undef": call_undef,
        "vectorcombine": call_vectorcombine,
        "vectorhigh": call_vectorhigh,
        "vectorlow": call_vectorlow,
    }
    """The intrinsics that are more than arithmetic, by name."""


def constant_zero(dtype: str) -> str:
    """A zero of the element of a dtype, with its type."""
    element = dtypes.element(dtype)
    return f"{value_type(element)} {constant(0.0 if dtypes.is_float(element) else 0, element)}"


def dtype_of(expr: Expr) -> str:
    """The dtype of a tensor-level expression."""
    return expr.dtype if isinstance(expr, PrimExpr) else "handle"


def splat_memory(text: str, memory: str) -> str:
    """A constant of a memory type, in every lane."""
    return text if not memory.startswith("<") else "zeroinitializer"


def memory_mangled(memory: str) -> str:
    """The type suffix of an intrinsic over a memory vector type."""
    count, scalar = memory[1:-1].split(" x ")
    names = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
    return f"v{count}{names.get(scalar, scalar)}"


_VALUES = {
    PrimVar: ExpressionEmitter._variable,
    IntImm: ExpressionEmitter._int,
    FloatImm: ExpressionEmitter._float,
    Unary: ExpressionEmitter._unary,
    Binary: ExpressionEmitter._binary,
    Cast: ExpressionEmitter._cast,
    Select: ExpressionEmitter._select,
    BufferLoad: ExpressionEmitter._load,
    Ramp: ExpressionEmitter._ramp,
    Broadcast: ExpressionEmitter._broadcast,
    Shuffle: ExpressionEmitter._shuffle,
    Let: ExpressionEmitter._let,
    PrimCall: ExpressionEmitter._call,
}


def _has_arithmetic(condition: PrimExpr) -> bool:
    """Whether a condition compares results of 64-bit arithmetic that could overflow."""
    return any(
        isinstance(part, Binary) and part.kind in ("add", "sub", "mul") and dtypes.is_signed(part.dtype)
        for part in walk(condition)
    )
