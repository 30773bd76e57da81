"""The intrinsics that are more than arithmetic: choices, addresses, parts of vectors, intrinsics of LLVM by name."""

from __future__ import annotations

from collections.abc import Mapping

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import extractelement, getelementptr, phi, shufflevector
from weft.codegen.backends.llvm.asm.types import constant, value_type
from weft.codegen.backends.llvm.math.conversions import mangled
from weft.codegen.backends.llvm.values.expressions import CallForm, ExpressionEmitter, dtype_of, is_cheap
from weft.codegen.backends.llvm.values.lanes import lanes_below
from weft.errors import TargetError
from weft.ir.graph import StringImm
from weft.ir.tensor import BufferLoad, IntImm, PrimCall, PrimExpr

__all__ = ["INTRINSIC_CALLS"]


def _if_then_else(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """Only the chosen value is evaluated."""
    condition, a, b = expr.args
    assert isinstance(condition, PrimExpr)
    if dtypes.lanes(dtype_of(condition)) > 1 or (is_cheap(a) and is_cheap(b)):
        picked = emitter.condition_for(condition, expr.dtype)
        first = emitter.value(a)
        return emitter.chosen(picked, expr.dtype, first, emitter.value(b))
    w, chosen = emitter.w, emitter.value(condition)
    then, other, done = w.label("then"), w.label("else"), w.label("done")
    w.branch(chosen, then, other)
    w.open(then)
    first, first_end = emitter.value(a), w.block_label
    w.jump(done)
    w.open(other)
    second, second_end = emitter.value(b), w.block_label
    w.open(done)
    return w.emit(phi(value_type(expr.dtype), (first, first_end), (second, second_end)))


def _address_of(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """The address of a buffer element."""
    target = expr.args[0]
    if not isinstance(target, BufferLoad):
        raise TargetError("llvm: T.address_of takes an element of a buffer", code="W740", span=expr.span)
    view = emitter.view(target.buffer)
    return emitter.memory.lane_address(view, emitter.index.offset(view, target.indices), 0)


def _add_byte_offset(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """A pointer moved by bytes."""
    pointer, amount = emitter.value(expr.args[0]), expr.args[1]
    assert isinstance(amount, PrimExpr)
    return emitter.w.emit(getelementptr("i8", pointer, emitter.size(amount)))


def _undef(_emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """Some value: zero, so that compiled code is deterministic."""
    return constant(0.0 if dtypes.is_float(expr.dtype) else 0, expr.dtype)


def _assume(_emitter: ExpressionEmitter, _expr: PrimCall) -> str:
    """A promise of the user; nothing is emitted."""
    return "true"


def _low_part(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """The first half of a vector's lanes."""
    return _part(emitter, expr, 0)


def _high_part(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """The second half of a vector's lanes."""
    return _part(emitter, expr, dtypes.lanes(expr.dtype))


def _part(emitter: ExpressionEmitter, expr: PrimCall, first: int) -> str:
    source = next(arg for arg in reversed(expr.args) if not isinstance(arg, StringImm))
    ty, lanes = value_type(dtype_of(source)), dtypes.lanes(expr.dtype)
    value = emitter.value(source)
    if lanes == 1:
        return emitter.w.emit(extractelement(ty, value, first))
    return emitter.w.emit(shufflevector(ty, value, "poison", range(first, first + lanes)))


def _combined(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """Two vectors end to end."""
    low, high = expr.args[-2:]
    ty, lanes = value_type(dtype_of(low)), dtypes.lanes(expr.dtype)
    a = emitter.value(low)
    return emitter.w.emit(shufflevector(ty, a, emitter.value(high), range(lanes)))


def _active_lane_mask(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """Lane k is true when base + k < limit."""
    base, limit = expr.args[-2:]
    assert isinstance(base, PrimExpr)
    assert isinstance(limit, PrimExpr)
    first = emitter.size(base)
    return lanes_below(emitter.arith, first, emitter.size(limit), dtypes.lanes(expr.dtype))


def _llvm_intrinsic(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    """An LLVM intrinsic by its name; a name without a type suffix gets that of the result."""
    head, *rest = expr.args
    operands = [arg for arg in rest if isinstance(arg, PrimExpr)]
    if not isinstance(head, StringImm) or not head.value.startswith("llvm."):
        raise TargetError(
            "llvm: call_llvm_intrin takes the intrinsic's name, such as 'llvm.sqrt'", code="W740", span=expr.span
        )
    if _is_count(operands):
        operands = operands[1:]  # older scripts state the number of operands
    suffix = mangled(expr.dtype)
    name = head.value if head.value.endswith(f".{suffix}") else f"{head.value}.{suffix}"
    return emitter.arith.call(name, expr.dtype, *((value_type(arg.dtype), emitter.value(arg)) for arg in operands))


def _is_count(operands: list[PrimExpr]) -> bool:
    """Whether the first operand says how many others there are."""
    first = operands[0] if len(operands) > 1 else None
    return isinstance(first, IntImm) and first.dtype == "uint32" and first.value == len(operands) - 1


INTRINSIC_CALLS: Mapping[str, CallForm] = {
    "access_ptr": _address_of,
    "address_of": _address_of,
    "assume": _assume,
    "call_llvm_intrin": _llvm_intrinsic,
    "call_llvm_pure_intrin": _llvm_intrinsic,
    "get_active_lane_mask": _active_lane_mask,
    "handle_add_byte_offset": _add_byte_offset,
    "if_then_else": _if_then_else,
    "undef": _undef,
    "vectorcombine": _combined,
    "vectorhigh": _high_part,
    "vectorlow": _low_part,
}
"""By name of the intrinsic."""
