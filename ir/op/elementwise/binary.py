"""Elementwise operators of two tensors, broadcast as in NumPy.

Operands have one dtype; Python numbers adopt it. Sizes must be equal or 1: an equality that is not proved becomes a
check of the kernel (its buffers share the symbol), so nothing is read out of bounds. Errors: DTypeError W320 for two
dtypes, W321 outside the domain; ShapeError W201 for sizes that never broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft.dtypes import bits, is_bool, is_complex, is_float, is_integer, is_signed
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.kernel.prim import binary, intrinsic, unary
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    broadcast,
    broadcast_load,
    broadcast_shape,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    rounded_once,
    same_dtype,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Example, OpDef, Param, Reference
from weft.ir.op.elementwise import complex_formulas
from weft.ir.op.layout_rules import families as layout_rules
from weft.ir.op.precision import DECIDES, RANGE, Precision, follow
from weft.ir.op.registry import add_op
from weft.ir.tensor import IntImm, Let, PrimExpr, PrimFunc, PrimVar
from weft.ir.types import TensorType

_WHOLE = ("integer", "bits", "bool")

__all__ = ["binary_op", "broadcasting", "floor_mod_of", "log_add_exp", "quiet", "truncated_mod_of"]


def broadcasting(
    name: str,
    doc: str,
    params: tuple[str, ...],
    domain: str,
    *,
    scalar: Callable[[Any, Any], PrimExpr] | Callable[[Any, Any, Any], PrimExpr],
    numpy: Reference,
    result: str | Callable[[str], str] | None = None,
    examples: tuple[Example, ...],
    family: str,
    precision: Precision | None = None,
) -> OpDef:
    """Declare an operator that applies a function to the elements of tensors of one dtype, broadcast to one shape."""

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        operands = [tensor(args, param, context) for param in params]
        for param, operand in zip(params, operands, strict=True):
            require_dtype(args, param, operand, domain)
        dtype = same_dtype(args, *operands)
        device = next((operand.vdevice for operand in operands if operand.vdevice is not None), None)
        own = result if result is None or isinstance(result, str) else result(dtype) if dtype else None
        return replace(broadcast(args, context, *operands), dtype=own or dtype, vdevice=device)

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args, context = kernel.args, kernel.context
        function = cast("Callable[..., PrimExpr]", scalar)
        shapes = [broadcast_shape(tensor(args, param, context), kernel.dims) for param in params]
        operands = [kernel.input(param, shape) for param, shape in zip(params, shapes, strict=True)]
        return kernel.compute(lambda *i: rounded_once(function, *(broadcast_load(operand, i) for operand in operands)))

    declared = tuple(Param(param) for param in params)
    return add_op(
        OpDef(
            name,
            declared,
            rule,
            doc,
            lowering,
            numpy=numpy,
            pure=True,
            examples=examples,
            family=family,
            layout=layout_rules.broadcasting(*params),
            precision=precision or (follow(*params) if result is None and domain not in _WHOLE else DECIDES),
        )
    )


def binary_op(
    name: str,
    doc: str,
    domain: str = "number",
    *,
    scalar: Callable[[Any, Any], PrimExpr],
    numpy: Callable[[Any, Any], Any],
    examples: tuple[Example, ...] | None = None,
    ranges: dict[str, tuple[float, float]] | None = None,
    result: str | None = None,
    precision: Precision | None = None,
) -> OpDef:
    """Declare a broadcasting operator of two operands x1 and x2."""
    return broadcasting(
        name,
        doc,
        ("x1", "x2"),
        domain,
        scalar=scalar,
        numpy=numpy,
        result=result,
        examples=_default_examples(domain, ranges or {}) if examples is None else examples,
        family="binary",
        precision=precision,
    )


def _default_examples(domain: str, ranges: dict[str, tuple[float, float]]) -> tuple[Example, ...]:
    options: dict[str, Any] = {"ranges": ranges}
    dtype = {"bool": "bool", "bits": "int32", "integer": "int32"}.get(domain, "float32")
    examples = [
        example(typed(dtype, 2, 3), typed(dtype, 2, 3), **options),
        example(typed(dtype, "n", 4), typed(dtype, 4), **options),
        example(typed(dtype, "n", 1, 4), typed(dtype, 3, 1), **options),
        example(typed(dtype, "n"), typed(dtype, "m"), **options),
    ]
    if domain in ("number", "any", "arithmetic", "ordered"):
        examples.append(example(typed("int64", 5), typed("int64", 5), **options))
    if domain in ("any", "arithmetic"):
        examples += _COMPLEX_PAIRS
    return (*examples, *(_BOOLS if domain in ("any", "ordered") else ()))


# ---------------------------------------------------------------------------------------------------------------------
# Division of integers and floats
# ---------------------------------------------------------------------------------------------------------------------


def _constant(value: PrimExpr) -> int | None:
    return value.value if isinstance(value, IntImm) else None


def _divide_integers(kind: str, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A division of integers that never traps: 0 where the divisor is 0, wrapping where the quotient does not fit.

    Machines trap on x / 0 and on the least integer / -1, so neither reaches the division.
    """
    if _constant(b) not in (None, 0, -1):
        return binary(kind, a, b)
    zero = te.const(0, a.dtype)
    quotient = kind in ("floordiv", "truncdiv")
    special = te.equal(b, 0)
    on_minus_one = zero
    if is_signed(b.dtype):
        special = te.any(special, te.equal(b, -1))
        on_minus_one = unary("neg", a) if quotient else zero
    safe = te.select(special, te.const(1, b.dtype), b)
    return te.select(te.equal(b, 0), zero, te.select(special, on_minus_one, binary(kind, a, safe)))


def _opposite(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Whether one value is negative and the other is not."""
    return te.not_equal(te.cast("int8", a < 0), te.cast("int8", b < 0))


def floor_mod_of(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The remainder of a / b with the sign of b."""
    if not is_float(a.dtype):
        return _divide_integers("floormod", a, b)
    rest = intrinsic("fmod", a, b)
    nothing = intrinsic("copysign", te.const(0, a.dtype), b)
    return te.select(te.equal(rest, 0), nothing, te.select(_opposite(rest, b), rest + b, rest))


def _floor_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if not is_float(a.dtype):
        return _divide_integers("floordiv", a, b)
    # Subtracting the remainder first makes the quotient whole before it is rounded: 1.0 // 0.1 is 9. A zero has the
    # sign of the quotient, as what is not zero has by itself.
    rest = intrinsic("fmod", a, b)
    whole = (a - rest) / b
    lower = te.all(te.not_equal(rest, 0), _opposite(rest, b))
    floor = intrinsic("round", te.select(lower, whole - 1, whole))
    return te.select(te.equal(b, 0), a / b, intrinsic("copysign", floor, a / b))


def truncated_mod_of(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The remainder of a / b with the sign of a."""
    return intrinsic("fmod", a, b) if is_float(a.dtype) else _divide_integers("truncmod", a, b)


def quiet(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """NumPy without warnings about division by zero and overflow, whose results are defined."""

    def quieted(a: Any, b: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(a, b)

    return quieted


def _numpy_divide(a: Any, b: Any) -> Any:
    """NumPy's division, of integers toward zero."""
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        if a.dtype.kind not in "iu":
            return np.divide(a, b)
        quotient = np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))
        inexact = (quotient * b != a) & (b != 0) & ((a < 0) != (b < 0))
        return (quotient + inexact).astype(a.dtype)


# ---------------------------------------------------------------------------------------------------------------------
# Powers, shifts, logic
# ---------------------------------------------------------------------------------------------------------------------


def _power(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if is_complex(a.dtype):
        return complex_formulas.power(a, b)
    return intrinsic("pow", a, b) if is_float(a.dtype) else _integer_power(a, b)


def _integer_power(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Repeated squaring, one step per bit of the exponent; wraps, and a negative exponent truncates 1 / a ** -b."""
    dtype = a.dtype
    one, constant = te.const(1, dtype), _constant(b)
    width = bits(dtype) - is_signed(dtype)
    used = max(constant.bit_length(), 1) if constant is not None and constant >= 0 else width
    squares = [PrimVar(f"square{bit}", dtype) for bit in range(used)]

    def chosen(bit: int) -> PrimExpr:
        mask = binary("bitwise_and", binary("shift_right", b, te.const(bit, dtype)), one)
        return te.select(te.equal(mask, 1), squares[bit], one)

    result = chosen(0)
    for bit in range(1, used):
        result = result * chosen(bit)
    if is_signed(dtype) and (constant is None or constant < 0):
        odd = te.equal(binary("bitwise_and", b, one), 1)
        of_minus_one = te.select(odd, te.const(-1, dtype), one)
        small = te.select(te.equal(a, 1), one, te.select(te.equal(a, -1), of_minus_one, te.const(0, dtype)))
        result = te.select(b < 0, small, result)
    for bit in range(used - 1, 0, -1):
        result = Let(squares[bit], squares[bit - 1] * squares[bit - 1], result)
    return Let(squares[0], a, result)


def _numpy_power(a: Any, b: Any) -> Any:
    """NumPy's power, with a meaning for integers to negative powers, which NumPy refuses."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind != "i":
        return np.power(a, b)
    of_minus_one = np.where(b % 2 == 0, 1, -1)
    truncated = np.where(a == 1, 1, np.where(a == -1, of_minus_one, 0))
    return np.where(b < 0, truncated, np.power(a, np.maximum(b, 0))).astype(a.dtype)


def _shift(kind: str) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """A shift whose amount may be anything: past the width nothing is left but the sign of a right shift."""

    def shift(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        width, amount = bits(a.dtype), _constant(b)
        if amount is not None and 0 <= amount < width:
            return binary(kind, a, b)
        inside = te.all(b >= 0, b < width) if is_signed(b.dtype) else b < width
        shifted = binary(kind, a, te.select(inside, b, te.const(0, b.dtype)))
        past = te.const(0, a.dtype)
        if kind == "shift_right" and is_signed(a.dtype):
            past = te.select(a < 0, te.const(-1, a.dtype), past)
        return te.select(inside, shifted, past)

    return shift


def _truth(x: PrimExpr) -> PrimExpr:
    return x if is_bool(x.dtype) else te.not_equal(x, 0)


def log_add_exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """log(exp(a) + exp(b)) without overflow."""
    # Equal operands apart, so that two infinities give an infinity and not nan.
    rest = te.maximum(a, b) + intrinsic("log1p", te.exp(unary("neg", te.abs(a - b))))
    return te.select(te.equal(a, b), a + math.log(2.0), rest)


def _of_bools(of_numbers: Callable[[Any, Any], PrimExpr], kind: str) -> Callable[[Any, Any], PrimExpr]:
    """A function of numbers that of bools is a conjunction or disjunction: what NumPy's is."""
    return lambda a, b: binary(kind, a, b) if is_bool(a.dtype) else of_numbers(a, b)


def _ordered(value: PrimExpr) -> PrimExpr:
    """A value that machines compare: a bool as a number."""
    return te.cast("uint8", value) if is_bool(value.dtype) else value


def _compare(name: str, kind: str, numpy: Callable[[Any, Any], Any], text: str) -> OpDef:
    equality = kind in ("eq", "ne")
    return binary_op(
        name,
        f"Whether x1 {text} x2, elementwise; bool." + ("" if equality else " Complex numbers have no order."),
        "any" if equality else "ordered",
        scalar=lambda a, b: binary(kind, _ordered(a), _ordered(b)),
        numpy=numpy,
        result="bool",
        examples=(*_PAIRS, *_COMPLEX_PAIRS) if equality else _PAIRS,
    )


def _logical(name: str, scalar: Callable[[Any, Any], PrimExpr], numpy: Callable[[Any, Any], Any], text: str) -> OpDef:
    return binary_op(
        name,
        f"Whether {text} not zero (false), elementwise; bool.",
        "any",
        scalar=lambda a, b: scalar(_truth(a), _truth(b)),
        numpy=numpy,
        result="bool",
        examples=(example(typed("bool", 2, 3), typed("bool", 3)), example(typed("int32", "n"), typed("int32", "n"))),
    )


def _bits(name: str, kind: str, numpy: Callable[[Any, Any], Any], text: str) -> OpDef:
    return binary_op(
        name, f"{text} of the bits, elementwise.", "bits", scalar=lambda a, b: binary(kind, a, b), numpy=numpy
    )


_PAIRS = (
    example(typed("int32", 2, 3), typed("int32", 3), ranges={"x1": (-2, 2), "x2": (-2, 2)}),
    example(typed("float32", "n", 4), typed("float32", "n", 4)),
    example(typed("int64", "n", 1), typed("int64", "m"), ranges={"x1": (-2, 2), "x2": (-2, 2)}),
    example(typed("float64", 5), typed("float64", 1)),
    example(typed("bool", 6), typed("bool", 6)),
)
_COMPLEX_PAIRS = (
    example(typed("complex64", "n", 4), typed("complex64", 4)),
    example(typed("complex128", 3, 1), typed("complex128", "m")),
)
_BOOLS = (example(typed("bool", 2, "n"), typed("bool", "n")),)
_DIVISIONS = (
    example(f32(2, 3), f32(2, 3)),
    example(f32("n", 4), f32(4)),
    example(typed("int32", "n", 4), typed("int32", "n", 4), ranges={"x1": (-9, 9), "x2": (-3, 3)}),
    example(typed("int64", 40), typed("int64", 1), ranges={"x2": (-1, 0)}),
    example(typed("int8", 6), 3, ranges={"x1": (-128, 127)}),
    example(typed("uint8", "n"), typed("uint8", "n"), ranges={"x2": (0, 3)}),
)

binary_op(
    "add",
    "x1 + x2, elementwise; of bools, whether one is true.",
    "any",
    scalar=_of_bools(lambda a, b: a + b, "bitwise_or"),
    numpy=np.add,
)
binary_op(
    "atan2",
    "The angle of the point (x2, x1), elementwise.",
    "float",
    scalar=lambda a, b: intrinsic("atan2", a, b),
    numpy=np.arctan2,
    precision=RANGE,
)
_bits("bitwise_and", "bitwise_and", np.bitwise_and, "Conjunction")
_bits("bitwise_or", "bitwise_or", np.bitwise_or, "Disjunction")
_bits("bitwise_xor", "bitwise_xor", np.bitwise_xor, "Exclusive disjunction")
binary_op(
    "divide",
    "x1 / x2, elementwise; x / 0 is an infinity or nan. Of integers toward zero, and 0 where x2 is 0 (floor_divide "
    "rounds down). Of complex numbers it is Smith's quotient.",
    "arithmetic",
    scalar=lambda a, b: _divide_integers("truncdiv", a, b) if is_integer(a.dtype) else a / b,
    numpy=_numpy_divide,
    examples=(
        example(f32(2, 3), f32(2, 3), ranges={"x2": (0.5, 2)}),
        example(f32("n", 4), f32(4), ranges={"x2": (0.5, 2)}),
        example(f32("n", 1, 4), f32(3, 1), ranges={"x2": (0.5, 2)}),
        example(f32("n"), f32("m"), ranges={"x2": (0.5, 2)}),
        example(typed("int32", "n", 4), typed("int32", "n", 4), ranges={"x1": (-9, 9), "x2": (-3, 3)}),
        example(typed("int64", 40), typed("int64", 1), ranges={"x2": (-1, 0)}),
        *_COMPLEX_PAIRS,
    ),
)
_compare("equal", "eq", np.equal, "equals")
binary_op(
    "floor_divide",
    "The greatest whole number not above x1 / x2, elementwise; of integers 0 where x2 is 0.",
    scalar=_floor_divide,
    numpy=quiet(np.floor_divide),
    examples=_DIVISIONS,
    precision=RANGE,
)
binary_op(
    "floor_mod",
    "x1 - floor(x1 / x2) * x2, elementwise, with the sign of x2; of integers 0 where x2 is 0.",
    scalar=floor_mod_of,
    numpy=quiet(np.remainder),
    examples=_DIVISIONS,
    precision=RANGE,
)
_compare("greater", "gt", np.greater, "is greater than")
_compare("greater_equal", "ge", np.greater_equal, "is greater than or equal to")
binary_op(
    "left_shift",
    "x1 shifted left by x2 bits, elementwise; 0 where x2 is negative or not below the width.",
    "integer",
    scalar=_shift("shift_left"),
    numpy=np.left_shift,
    ranges={"x2": (0, 33)},
    precision=RANGE,
)
_compare("less", "lt", np.less, "is less than")
_compare("less_equal", "le", np.less_equal, "is less than or equal to")
binary_op(
    "log_add_exp",
    "log(exp(x1) + exp(x2)), elementwise, without overflow.",
    "float",
    scalar=log_add_exp,
    numpy=np.logaddexp,
    precision=RANGE,
)
_logical("logical_and", te.all, np.logical_and, "both are")
_logical("logical_or", te.any, np.logical_or, "one at least is")
_logical("logical_xor", lambda a, b: binary("ne", a, b), np.logical_xor, "exactly one is")
binary_op(
    "maximum",
    "The greater of x1 and x2, elementwise; nan where one is nan.",
    "ordered",
    scalar=_of_bools(te.maximum, "bitwise_or"),
    numpy=np.maximum,
)
binary_op(
    "minimum",
    "The smaller of x1 and x2, elementwise; nan where one is nan.",
    "ordered",
    scalar=_of_bools(te.minimum, "bitwise_and"),
    numpy=np.minimum,
)
binary_op(
    "mod",
    "The remainder of x1 / x2 with the sign of x1 (as in C), elementwise; of integers 0 where x2 is 0.",
    scalar=truncated_mod_of,
    numpy=quiet(np.fmod),
    examples=_DIVISIONS,
    precision=RANGE,
)
binary_op(
    "multiply",
    "x1 * x2, elementwise; of bools, whether both are true; of complex numbers (a c - b d, a d + b c).",
    "any",
    scalar=_of_bools(lambda a, b: a * b, "bitwise_and"),
    numpy=np.multiply,
)
_compare("not_equal", "ne", np.not_equal, "differs from")
binary_op(
    "power",
    "x1 to the power of x2, elementwise; of integers it wraps, and a negative exponent truncates toward 0. Complex "
    "numbers to a small whole number are multiplied, else it is exp(x2 log(x1)).",
    "arithmetic",
    scalar=_power,
    numpy=_numpy_power,
    examples=(
        example(f32(2, 3), f32(2, 3), ranges={"x1": (0.1, 2)}),
        example(f32("n", 4), f32(4), ranges={"x1": (0.1, 2)}),
        example(f32("n"), 2),
        example(typed("int32", "n"), typed("int32", "n"), ranges={"x2": (-3, 6)}),
        example(typed("int64", 4), 3),
        example(typed("complex64", "n"), 3),
        example(typed("complex128", "n"), typed("complex128", "n")),
    ),
    precision=RANGE,
)
binary_op(
    "right_shift",
    "x1 shifted right by x2 bits, keeping the sign, elementwise; 0 or -1 where x2 is negative or not below the width.",
    "integer",
    scalar=_shift("shift_right"),
    numpy=np.right_shift,
    ranges={"x2": (0, 33)},
    precision=RANGE,
)
binary_op("subtract", "x1 - x2, elementwise.", "arithmetic", scalar=lambda a, b: a - b, numpy=np.subtract)

broadcasting(
    "ewise_fma",
    "x1 * x2 + x3, elementwise, broadcast.",
    ("x1", "x2", "x3"),
    "arithmetic",
    scalar=lambda a, b, c: a * b + c,
    numpy=lambda a, b, c: a * b + c,
    examples=(example(f32(2, 3), f32(3), f32(2, 1)), example(f32("n", 4), f32("n", 4), f32(4))),
    family="binary",
)
