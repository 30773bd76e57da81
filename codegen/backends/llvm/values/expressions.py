"""Tensor-level expressions to LLVM values.

    value(expr)         the spelling of the value, of LLVM type `value_type(expr.dtype)`

Each kind of expression has a function here (`_VALUES`), each intrinsic that is more than arithmetic one in a table that
the emitter is made with. Sizes and offsets are those of `index`, accesses of memory those of `memory`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from weft import dtypes
from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, extractelement, insertelement, phi, shufflevector
from weft.codegen.backends.llvm.asm.program import Program
from weft.codegen.backends.llvm.asm.types import constant, value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.math.intrinsics import emit_math, is_math
from weft.codegen.backends.llvm.values.indices import IndexEmitter
from weft.codegen.backends.llvm.values.lanes import broadcast, counted, lanes_below
from weft.codegen.backends.llvm.values.memory import MemoryEmitter
from weft.codegen.backends.llvm.values.views import BufferView
from weft.errors import TargetError
from weft.ir.graph import Expr
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
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

__all__ = ["CallForm", "ExpressionEmitter", "dtype_of", "is_cheap"]

CallForm = Callable[[Any, PrimCall], str]
"""What emits the call of an intrinsic, with the emitter."""
_TRUE, _FALSE = ("true", "splat (i1 true)"), ("false", "splat (i1 false)")
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_CHEAP = (PrimVar, IntImm, FloatImm, Binary, Unary, Cast, Select, Broadcast, Ramp)
_DEAR = frozenset(("div", "floordiv", "floormod", "truncdiv", "truncmod"))


class ExpressionEmitter:
    """Emits expressions into one function; `calls` has the intrinsics, and calls of functions under an empty name."""

    def __init__(
        self, writer: FunctionWriter, program: Program, flags: str = "", calls: Mapping[str, CallForm] | None = None
    ) -> None:
        self.w = writer
        self.program = program
        self.arith = Arithmetic(writer, flags, program.strict_math, program.features)
        self.index = IndexEmitter(self.arith, self.value)
        self.memory = MemoryEmitter(writer, program.gathers, program.features)
        self.size = self.index.size
        self.calls = calls or {}
        self.lane_masks: dict[tuple[Any, ...], str] = {}
        """Masks of consecutive lanes by the block that they are in, and what they follow from."""
        self.variables: dict[PrimVar, str] = {}
        self.buffers: dict[Buffer, BufferView] = {}

    def value(self, expr: Expr) -> str:
        """Emit an expression; gives the spelling of its value."""
        form = _VALUES.get(type(expr))
        if form is None:
            raise TargetError(
                f"llvm: a {type(expr).__name__} cannot stand in a tensor-level expression", code="W740", span=expr.span
            )
        return form(self, expr)

    def bind(self, var: PrimVar, value: str, wide: Size | None = None) -> None:
        """Give a variable its value."""
        self.index.sums.bind(var)
        self.variables[var] = value
        self.index.wide.pop(var, None)
        if wide is not None:
            self.index.wide[var] = wide

    def view(self, buffer: Buffer) -> BufferView:
        """Where a buffer is; TargetError when it has no memory here."""
        found = self.buffers.get(buffer)
        if found is None:
            raise TargetError(
                f"llvm: the buffer {buffer.name or '_'} has no memory here", code="W740", span=buffer.span
            )
        return found

    def condition_for(self, condition: PrimExpr, dtype: str) -> str:
        """A condition with the lanes of `dtype`."""
        lanes = dtypes.lanes(dtype)
        value = self.value(condition)
        return broadcast(self.w, value, "bool", lanes) if lanes > 1 and dtypes.lanes(condition.dtype) == 1 else value

    def chosen(self, condition: str, dtype: str, a: str, b: str) -> str:
        """One of two values; what was read under the condition is zero elsewhere already."""
        if self.memory.masks.get(a) == condition and b in ("zeroinitializer", f"splat ({_zero(dtype)})"):
            return a
        return self.arith.select(condition, dtype, a, b)

    def short_circuit(self, expr: Binary, evaluate: Callable[[PrimExpr], str]) -> str:
        """The right side is evaluated only when it decides: `i < n and x[i] > 0` never reads past the end."""
        a, w = evaluate(expr.a), self.w
        start, more, done = w.block_label, w.label("more"), w.label("done")
        w.branch(a, *((more, done) if expr.kind == "and" else (done, more)))
        w.open(more)
        b, end = evaluate(expr.b), w.block_label
        w.open(done)
        return w.emit(phi("i1", ("false" if expr.kind == "and" else "true", start), (b, end)))


def dtype_of(expr: Expr) -> str:
    """The dtype of a tensor-level expression."""
    return expr.dtype if isinstance(expr, PrimExpr) else "handle"


def is_cheap(expr: Expr) -> bool:
    """Whether evaluating the expression has no effect, reads no memory and costs little."""
    return all(
        isinstance(part, _CHEAP) and not (isinstance(part, Binary) and part.kind in _DEAR) for part in walk(expr)
    )


def _zero(dtype: str) -> str:
    """A zero of the element of a dtype, with its type."""
    element = dtypes.element(dtype)
    return f"{value_type(element)} {constant(0.0 if dtypes.is_float(element) else 0, element)}"


# One function for each kind of expression.


def _variable(emitter: ExpressionEmitter, expr: PrimVar) -> str:
    found = emitter.variables.get(expr)
    if found is None:
        raise TargetError(f"llvm: the variable {expr.name or '_'} has no value here", code="W740", span=expr.span)
    return found


def _constant(_emitter: ExpressionEmitter, expr: IntImm | FloatImm) -> str:
    return constant(expr.value, expr.dtype)


def _unary(emitter: ExpressionEmitter, expr: Unary) -> str:
    return emitter.arith.unary(expr.kind, expr.dtype, emitter.value(expr.a))


def _binary(emitter: ExpressionEmitter, expr: Binary) -> str:
    if expr.kind in ("and", "or"):
        return _logical(emitter, expr)
    compared = _compared_ramp(emitter, expr) if expr.kind in _TURNED else None
    if compared is not None:
        return compared
    a = emitter.value(expr.a)
    return emitter.arith.binary(expr.kind, expr.a.dtype, a, emitter.value(expr.b))


def _logical(emitter: ExpressionEmitter, expr: Binary) -> str:
    if dtypes.lanes(expr.dtype) == 1 and not is_cheap(expr.b):
        return emitter.short_circuit(expr, emitter.value)
    if isinstance(expr.a, Broadcast) and isinstance(expr.b, Broadcast):
        a = emitter.value(expr.a.value)
        both = emitter.arith.binary(expr.kind, "bool", a, emitter.value(expr.b.value))
        return broadcast(emitter.w, both, "bool", expr.a.lanes)
    a = emitter.value(expr.a)
    b = emitter.value(expr.b)
    whole, nothing = (_TRUE, _FALSE) if expr.kind == "and" else (_FALSE, _TRUE)
    for one, other in ((a, b), (b, a)):
        if one in whole or other in nothing:
            return other
    return emitter.arith.binary(expr.kind, expr.a.dtype, a, b)


def _compared_ramp(emitter: ExpressionEmitter, expr: Binary) -> str | None:
    """Consecutive indices compared with a bound, as masks are written; None for anything else."""
    kind, ramp, bound = expr.kind, expr.a, expr.b
    if isinstance(ramp, Broadcast):
        kind, ramp, bound = _TURNED[kind], bound, ramp
    if not isinstance(ramp, Ramp) or not isinstance(bound, Broadcast):
        return None
    if dtypes.element(ramp.dtype) != "int64" or not isinstance(ramp.stride, IntImm) or ramp.stride.value != 1:
        return None
    base, limit = emitter.size(ramp.base), emitter.size(bound.value)
    limit = emitter.w.add(limit, 1) if kind in ("le", "gt") else limit
    asked = emitter.w.block_label, base, limit, ramp.lanes, kind in ("gt", "ge")
    mask = emitter.lane_masks.get(asked)
    if mask is None:
        mask = emitter.lane_masks[asked] = lanes_below(emitter.arith, base, limit, ramp.lanes, turned=asked[-1])
    return mask


def _cast(emitter: ExpressionEmitter, expr: Cast) -> str:
    return emitter.arith.cast(expr.value.dtype, expr.dtype, emitter.value(expr.value))


def _select(emitter: ExpressionEmitter, expr: Select) -> str:
    condition = emitter.condition_for(expr.condition, expr.dtype)
    a = emitter.value(expr.true_value)
    return emitter.chosen(condition, expr.dtype, a, emitter.value(expr.false_value))


def _load(emitter: ExpressionEmitter, expr: BufferLoad) -> str:
    view = emitter.view(expr.buffer)
    where = emitter.index.offset(view, expr.indices)
    mask = None if expr.predicate is None else emitter.condition_for(expr.predicate, expr.dtype)
    return emitter.memory.load(view, where, mask)


def _ramp(emitter: ExpressionEmitter, expr: Ramp) -> str:
    scalar, ty, w = value_type(expr.base.dtype), value_type(expr.dtype), emitter.w
    steps = counted(scalar, expr.lanes)
    if not isinstance(expr.stride, IntImm) or expr.stride.value != 1:
        stride = broadcast(w, emitter.value(expr.stride), expr.base.dtype, expr.lanes)
        steps = w.emit(binary("mul", ty, steps, stride))
    base = broadcast(w, emitter.value(expr.base), expr.base.dtype, expr.lanes)
    return w.emit(binary("add", ty, base, steps))


def _broadcast(emitter: ExpressionEmitter, expr: Broadcast) -> str:
    return broadcast(emitter.w, emitter.value(expr.value), expr.value.dtype, expr.lanes)


def _shuffle(emitter: ExpressionEmitter, expr: Shuffle) -> str:
    (kind, *others) = {vector.dtype for vector in expr.vectors}
    known = [index.value for index in expr.indices if isinstance(index, IntImm)]
    lanes = dtypes.lanes(kind)
    if len(expr.vectors) == 1 and lanes > 1 and len(known) == len(expr.indices) > 1:
        if all(0 <= lane < lanes for lane in known):
            return emitter.w.emit(shufflevector(value_type(kind), emitter.value(expr.vectors[0]), "poison", known))
    if len(expr.vectors) == 2 and not others and lanes > 1 and len(known) == len(expr.indices) > 1:
        if all(0 <= lane < 2 * lanes for lane in known):
            a, b, ty = emitter.value(expr.vectors[0]), emitter.value(expr.vectors[1]), value_type(kind)
            return emitter.w.emit(shufflevector(ty, a, b, known))
    return _assembled(emitter, expr)


def _assembled(emitter: ExpressionEmitter, expr: Shuffle) -> str:
    """A shuffle lane by lane, of which only those that are picked are taken out of their vectors."""
    values = [emitter.value(vector) for vector in expr.vectors]
    starts = [*accumulate((dtypes.lanes(vector.dtype) for vector in expr.vectors), initial=0)]
    picked: list[tuple[str, str]] = []
    for index in expr.indices:
        if not isinstance(index, IntImm) or not 0 <= index.value < starts[-1]:
            raise TargetError("llvm: the lanes of T.Shuffle must be constants in range", code="W740", span=expr.span)
        number = bisect_right(starts, index.value) - 1
        picked.append(_lane(emitter, expr.vectors[number].dtype, values[number], index.value - starts[number]))
    if len(picked) == 1:
        return picked[0][1]
    result, ty = "poison", value_type(expr.dtype)
    for lane, (scalar, value) in enumerate(picked):
        result = emitter.w.emit(insertelement(ty, result, scalar, value, lane))
    return result


def _lane(emitter: ExpressionEmitter, dtype: str, value: str, lane: int) -> tuple[str, str]:
    """The type and the value of one lane."""
    if dtypes.lanes(dtype) > 1:
        value = emitter.w.emit(extractelement(value_type(dtype), value, lane))
    return value_type(dtypes.element(dtype)), value


def _let(emitter: ExpressionEmitter, expr: Let) -> str:
    emitter.bind(expr.var, emitter.value(expr.value))
    return emitter.value(expr.body)


def _call(emitter: ExpressionEmitter, expr: PrimCall) -> str:
    name = expr.op if isinstance(expr.op, str) else ""
    special = emitter.calls.get(name)
    if special is not None:
        return special(emitter, expr)
    if is_math(name):
        operands = [emitter.value(arg) for arg in expr.args]
        return emit_math(emitter.arith, name, expr.dtype, operands, [dtype_of(arg) for arg in expr.args])
    known = "" if name in INTRINSICS else " (an operation of another device)"
    raise TargetError(
        f"llvm: the CPU has no T.{name}{known}",
        code="W742",
        span=expr.span,
        hint="lower it for this target first, or compile for its device",
    )


_VALUES: dict[type, Callable[[ExpressionEmitter, Any], str]] = {
    PrimVar: _variable,
    IntImm: _constant,
    FloatImm: _constant,
    Unary: _unary,
    Binary: _binary,
    Cast: _cast,
    Select: _select,
    BufferLoad: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Shuffle: _shuffle,
    Let: _let,
    PrimCall: _call,
}
