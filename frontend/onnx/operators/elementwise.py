"""Arithmetic, comparisons, logic, activations and casts: one value of the result for each of the inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import bits, is_float, is_integer, is_unsigned
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.short_types import (
    from_short_float,
    is_short_float,
    is_short_integer,
    to_short_float,
    to_short_integer,
)
from weft.frontend.onnx.table import row
from weft.ir.graph import Constant, Expr
from weft.script import relax as R

# One operator of ours -------------------------------------------------------------------------------------------------

_UNARY = {
    "Abs": R.abs,
    "Acos": R.acos,
    "Acosh": R.acosh,
    "Asin": R.asin,
    "Asinh": R.asinh,
    "Atan": R.atan,
    "Atanh": R.atanh,
    "BitwiseNot": R.bitwise_not,
    "Ceil": R.ceil,
    "Cos": R.cos,
    "Cosh": R.cosh,
    "Exp": R.exp,
    "Floor": R.floor,
    "IsNaN": R.isnan,
    "Log": R.log,
    "Neg": R.negative,
    "Not": R.logical_not,
    "Relu": R.nn.relu,
    "Round": R.round,
    "Sigmoid": R.sigmoid,
    "Sign": R.sign,
    "Sin": R.sin,
    "Sinh": R.sinh,
    "Sqrt": R.sqrt,
    "Tan": R.tan,
    "Tanh": R.tanh,
}
_BINARY = {
    "Add": R.add,
    "And": R.logical_and,
    "BitwiseAnd": R.bitwise_and,
    "BitwiseOr": R.bitwise_or,
    "BitwiseXor": R.bitwise_xor,
    "Equal": R.equal,
    "Greater": R.greater,
    "GreaterOrEqual": R.greater_equal,
    "Less": R.less,
    "LessOrEqual": R.less_equal,
    "Mul": R.multiply,
    "Or": R.logical_or,
    "Sub": R.subtract,
    "Xor": R.logical_xor,
}


def _unary(operator: Any) -> Any:
    return lambda n, x: operator(x)


def _aligned(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """The second operand of a binary operator before version 7: its axes follow `axis`, and `broadcast` permits it."""
    if n.version >= 7 or not n.attr("broadcast", 0) or not n.given("axis"):
        return b
    behind = n.rank(a) - n.axis(a) - n.rank(b)
    return R.expand_dims(b, [n.rank(b) + i for i in range(behind)]) if behind > 0 else b


def _binary(operator: Any) -> Any:
    return lambda n, a, b: operator(a, _aligned(n, a, b))


for _name, _operator in _UNARY.items():
    row(_name, _unary(_operator))
for _name, _operator in _BINARY.items():
    row(_name, _binary(_operator))
row("Identity", lambda n, x: n.inputs[0], values=True)
row("Where", lambda n, c, a, b: R.where(c, a, b))

# Arithmetic -----------------------------------------------------------------------------------------------------------


def divide(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """Quotients; those of integers are truncated."""
    b = _aligned(n, a, b)
    dtype = n.dtype(a)
    if is_float(dtype):
        return R.divide(a, b)
    if is_unsigned(dtype):
        return R.floor_divide(a, b)
    return R.floor_divide(R.subtract(a, R.mod(a, b)), b)


def modulo(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """The remainder with the sign of the divisor, with fmod that of the dividend."""
    return R.mod(a, b) if n.attr("fmod", 0) else R.floor_mod(a, b)


def power(n: OnnxNode, a: Expr, b: Expr) -> Expr:
    """Powers in the dtype of the base."""
    if n.dtype(a) == n.dtype(b):
        return R.power(a, _aligned(n, a, b))
    if is_float(n.dtype(a)):
        return R.power(a, R.astype(b, n.dtype(a)))
    if is_float(n.dtype(b)):
        wide = "float64" if n.dtype(b) == "float64" or n.dtype(a) in ("int64", "int32") else n.dtype(b)
        return R.astype(R.power(R.astype(a, wide), R.astype(b, wide)), n.dtype(a))
    return R.power(a, R.astype(b, n.dtype(a)))


def several(operator: Any) -> Any:
    """An operator of two values over all inputs, one after another."""

    def joined(n: OnnxNode, *values: Expr) -> Expr:
        result = values[0]
        for value in values[1:]:
            result = operator(result, value)
        return result if len(values) > 1 else n.inputs[0]  # type: ignore[return-value]

    return joined


def mean(n: OnnxNode, *values: Expr) -> Expr:
    """The mean of all inputs."""
    result = values[0]
    for value in values[1:]:
        result = R.add(result, value)
    return R.divide(result, float(len(values)))


def clip(n: OnnxNode, x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    """Values within bounds, each of which may be left out."""
    result = x
    if low is not None:
        result = R.maximum(result, low)
    if high is not None:
        result = R.minimum(result, high)
    return n.inputs[0] if result is x else result  # type: ignore[return-value]


def clip_by_attributes(n: OnnxNode, x: Expr) -> Expr:
    """Bounds that are attributes, before version 11."""
    dtype = n.dtype(x)
    low, high = n.attr("min"), n.attr("max")
    bounds = [Constant(np.asarray(value, dtype)) if value is not None else None for value in (low, high)]
    return clip(n, x, *bounds)


def shift(n: OnnxNode, x: Expr, y: Expr) -> Expr:
    """Bits moved left or right; those that leave are lost."""
    return R.left_shift(x, y) if n.attr("direction") == "LEFT" else R.right_shift(x, y)


def is_infinite(n: OnnxNode, x: Expr) -> Expr:
    """Infinities of the signs that are asked for."""
    both = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if both == (1, 1):
        return R.isinf(x)
    if both == (0, 0):
        return R.zeros_like(x, "bool")
    return R.logical_and(R.isinf(x), R.greater(x, 0.0) if both[0] else R.less(x, 0.0))


row("Div", divide)
row("Mod", modulo)
row("Pow", power)
row("Sum", several(R.add))
row("Max", several(R.maximum))
row("Min", several(R.minimum))
row("Mean", mean)
row("Clip", clip_by_attributes)
row("Clip", clip, since=11)
row("BitShift", shift)
row("IsInf", is_infinite)
row("Reciprocal", lambda n, x: R.divide(R.ones((), n.dtype(x)), x))

# Activations ----------------------------------------------------------------------------------------------------------


def selu(n: OnnxNode, x: Expr) -> Expr:
    """gamma (e^x alpha - alpha) below zero, gamma x above."""
    return R.multiply(R.nn.elu(x, float(n.attr("alpha"))), float(n.attr("gamma")))


def hard_sigmoid(n: OnnxNode, x: Expr) -> Expr:
    """alpha x + beta within 0 and 1."""
    line = R.add(R.multiply(x, float(n.attr("alpha"))), float(n.attr("beta")))
    return R.maximum(R.minimum(line, 1.0), 0.0)


def hard_swish(n: OnnxNode, x: Expr) -> Expr:
    """x times its hard sigmoid of 1/6 and 1/2, of which x + 3 is exact near where it begins."""
    return R.multiply(x, R.multiply(R.maximum(R.minimum(R.add(x, 3.0), 6.0), 0.0), 1 / 6))


def gelu(n: OnnxNode, x: Expr) -> Expr:
    """x times the normal distribution function, or its approximation by tanh."""
    return R.nn.gelu_tanh(x) if n.attr("approximate", "none") == "tanh" else R.nn.gelu(x)


def softplus(n: OnnxNode, x: Expr) -> Expr:
    """log(1 + e^x), without overflow."""
    return R.add(R.maximum(x, 0.0), R.log(R.add(R.exp(R.negative(R.abs(x))), 1.0)))


def mish(n: OnnxNode, x: Expr) -> Expr:
    """x tanh(softplus(x))."""
    return R.multiply(x, R.tanh(softplus(n, x)))


def shrink(n: OnnxNode, x: Expr) -> Expr:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    limit, bias = float(n.attr("lambd")), float(n.attr("bias"))
    if not is_float(n.dtype(x)):
        if limit != int(limit) or bias != int(bias) or is_unsigned(n.dtype(x)):
            return R.astype(_shrunk(R.astype(x, "float64"), limit, bias), n.dtype(x))
        limit, bias = int(limit), int(bias)
    return _shrunk(x, limit, bias)


def _shrunk(x: Expr, limit: float, bias: float) -> Expr:
    zero = R.zeros_like(x)
    below = R.where(R.less(x, -limit), R.add(x, bias), zero)
    return R.where(R.greater(x, limit), R.subtract(x, bias), below)


def prelu(n: OnnxNode, x: Expr, slope: Expr) -> Expr:
    """x where it is not negative, else x times the slope; before version 7 slopes are of channels."""
    if n.version < 7 and n.rank(slope) == 1 and n.rank(x) > 2:
        slope = R.reshape(slope, (n.shape(slope)[0], *(1,) * (n.rank(x) - 2)))
    return R.where(R.less(x, R.zeros_like(x)), R.multiply(x, slope), x)


row("Elu", lambda n, x: R.nn.elu(x, float(n.attr("alpha"))))
row("Celu", lambda n, x: R.nn.celu(x, float(n.attr("alpha"))))
row("Selu", selu)
row("HardSigmoid", hard_sigmoid)
row("HardSwish", hard_swish)
row("Gelu", gelu)
row("LeakyRelu", lambda n, x: R.where(R.less(x, 0.0), R.multiply(x, float(n.attr("alpha"))), x))
row("Erf", lambda n, x: R.erf(x) if is_float(n.dtype(x)) else R.astype(R.erf(R.astype(x, "float32")), n.dtype(x)))
row("Mish", mish)
row("PRelu", prelu)
row("Shrink", shrink)
row("Softplus", softplus)
row("Softsign", lambda n, x: R.divide(x, R.add(R.abs(x), 1.0)))
row("Swish", lambda n, x: R.multiply(x, R.sigmoid(R.multiply(x, float(n.attr("alpha", 1.0))))))
row("ThresholdedRelu", lambda n, x: R.where(R.greater(x, float(n.attr("alpha"))), x, R.zeros_like(x)))

# Types ----------------------------------------------------------------------------------------------------------------

_PLAIN = {
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
}


def cast(n: OnnxNode, x: Expr) -> Any:
    """Another dtype; what saturates there is left to the reference."""
    return cast_to(n, x, element_dtype(n.attr("to")))


def cast_to(n: OnnxNode, x: Expr, dtype: str) -> Any:
    """The values in a dtype."""
    found = n.dtype(x)
    if found == dtype:
        return n.inputs[0]
    if is_short_float(found) and is_float(dtype) and dtype in _PLAIN:
        return from_short_float(n, x, dtype)
    if is_short_float(dtype) and is_float(found) and found in _PLAIN:
        return to_short_float(n, x, dtype, bool(n.attr("saturate", 1)))
    if is_short_integer(dtype) and (found in _PLAIN or is_short_integer(found)):
        return to_short_integer(n, x, dtype)
    if dtype not in _PLAIN or is_short_float(found):
        raise Unsupported(f"a cast from {found} to {dtype}")
    if is_float(found) and is_integer(dtype):
        wide = R.astype(R.trunc(x) if found != "bfloat16" else x, "int64")
        return wide if dtype == "int64" else R.astype(wide, dtype)
    return R.astype(x, dtype)


def bit_cast(n: OnnxNode, x: Expr) -> Any:
    """The same bits read as another dtype of the same width."""
    dtype = element_dtype(n.attr("to"))
    if bits(dtype) != bits(n.dtype(x)) or bits(dtype) < 8:
        raise Unsupported("bits read as a dtype of another width")
    return R.memory.view(n.emit(x), None, dtype)


row("BitCast", bit_cast)
row("Cast", cast)
row("CastLike", lambda n, x, like: cast_to(n, x, n.dtype(like)))
