"""Quantised integers: their scales, blocks and zero points, and products and convolutions of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_float, max_value, min_value
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.operators.networks import conv_integer, convolved
from weft.frontend.onnx.short_types import (
    from_short_float,
    is_short_float,
    is_short_integer,
    to_short_float,
    to_short_integer,
)
from weft.frontend.onnx.table import row
from weft.ir.graph import Constant, Expr, PrimValue
from weft.script import relax as R

_PLAIN = ("int8", "uint8", "int16", "uint16")
"""Integers that `R.quantize` and `R.dequantize` take as ONNX does."""
_OFFERED = ("int8", "uint8", "int16", "uint16", "int32", "int4", "uint4", "int2", "uint2")


def _spread(n: OnnxNode, v: Expr, x: Expr, axis: int) -> Expr:
    """A scale or zero point in the rank of what it belongs to: one value, one for each index of an axis, or blocks."""
    block = int(n.attr("block_size", 0) or 0)
    if n.rank(v) == 0 or (n.rank(v) == 1 and n.shape(v) == (1,) and n.shape(x)[axis : axis + 1] != (1,)):
        return R.reshape(v, ())
    if block:
        size = n.shape(x)[axis]
        wide = R.repeat(v, block, axis)
        return R.strided_slice(wide, [axis], [0], [size])
    if n.rank(v) == 1:
        return R.reshape(v, tuple(n.shape(v)[0] if i == axis else 1 for i in range(n.rank(x))))
    raise Unsupported("a scale of more than one axis without blocks")


def _axis(n: OnnxNode, x: Expr) -> int:
    return int(n.attr("axis", 1)) % max(n.rank(x), 1)


def _is_plain(n: OnnxNode, x: Expr, dtype: str, *parts: Expr | None) -> bool:
    """Whether R has the operator: float32, and one scale and zero point for all, or for each index of an axis."""
    given = [part for part in parts if part is not None]
    ranks = all(n.rank(part) <= 1 for part in given) and n.rank(x) > 0
    return dtype in _PLAIN and ranks and not n.attr("block_size", 0) and n.dtype(given[0]) == "float32"


def _vector(n: OnnxNode, part: Expr | None) -> Expr:
    """A scale or a zero point: one for all as a scalar."""
    if part is None:
        return PrimValue(0, "int32")
    return R.reshape(part, ()) if n.shape(part) in ((), (1,)) else part


def dequantize(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None) -> Expr:
    """(x - zero point) * scale, in the dtype of the scale."""
    axis, dtype = _axis(n, x), n.dtype(scale)
    integers = n.dtype(x) if n.dtype(x) != "int32" or zero is not None else "int16"  # int32 is that of a bias
    if _is_plain(n, x, integers, scale, zero) and not n.attr("output_dtype", 0):
        return R.dequantize(x, _vector(n, scale), _vector(n, zero), axis=axis)
    wide = _wide(n, x)
    if zero is not None:
        wide = R.subtract(wide, _spread(n, _wide(n, zero), x, axis))
    result = R.multiply(wide, _spread(n, R.astype(scale, "float32"), x, axis))
    wanted = element_dtype(n.attr("output_dtype")) if n.attr("output_dtype", 0) else dtype
    return R.astype(result, wanted)


def quantize(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None) -> Expr:
    """round(x / scale) + zero point, halves to even, within the values of the result's dtype."""
    dtype = n.dtype(zero) if zero is not None else "uint8"
    if n.attr("output_dtype", 0):
        dtype = element_dtype(n.attr("output_dtype"))
    axis = _axis(n, x)
    if _is_plain(n, x, dtype, scale, zero) and n.dtype(x) == "float32":
        return R.quantize(x, _vector(n, scale), _vector(n, zero), axis=axis, out_dtype=dtype)
    if is_float(dtype):
        return _quantized_float(n, x, scale, zero, dtype, axis)
    if dtype not in _OFFERED:
        raise Unsupported(f"integers of {dtype}")
    wide = "float32" if n.dtype(x) != "float64" else "float64"
    quotient = R.round(R.divide(R.astype(x, wide), _spread(n, R.astype(scale, wide), x, axis)))
    return saturated(n, quotient, None if zero is None else _spread(n, zero, x, axis), dtype)


def saturated(n: OnnxNode, quotient: Expr, zero: Expr | None, dtype: str) -> Expr:
    """Whole floats and a zero point as integers, limited to their values."""
    low, high = float(min_value(dtype)), float(max_value(dtype))
    total = quotient if zero is None else R.add(quotient, R.astype(zero, n.dtype(quotient)))
    limited = R.clip(total, low, high)
    return to_short_integer(n, limited, dtype) if is_short_integer(dtype) else R.astype(limited, dtype)


def _quantized_float(n: OnnxNode, x: Expr, scale: Expr, zero: Expr | None, dtype: str, axis: int) -> Expr:
    if not n.attr("saturate", 1):
        raise Unsupported("short floats without saturation")
    quotient = R.divide(R.astype(x, "float32"), _spread(n, R.astype(scale, "float32"), x, axis))
    if zero is not None:
        quotient = R.add(quotient, _spread(n, _wide(n, zero), x, axis))
    return to_short_float(n, quotient, dtype, True)


def _wide(n: OnnxNode, x: Expr) -> Expr:
    return from_short_float(n, x, "float32") if is_short_float(n.dtype(x)) else R.astype(x, "float32")


def dynamic_quantize(n: OnnxNode, x: Expr) -> Any:
    """uint8 with the scale and zero point of the values that are there."""
    zero = Constant(np.zeros((), "float32"))
    axes = tuple(range(n.rank(x)))
    top = n.emit(R.maximum(R.max(x, axes), zero), "top")
    low = n.emit(R.minimum(R.min(x, axes), zero), "low")
    # Of zeros alone any scale will do but 0, by which nothing can be divided: 1 as onnxruntime has it.
    scale = R.where(R.equal(top, low), R.const(1.0, "float32"), R.divide(R.subtract(top, low), 255.0))
    scale = n.emit(scale, "scale")
    point = n.emit(R.clip(R.round(R.divide(R.negative(low), scale)), 0.0, 255.0), "point")
    y = R.clip(R.add(R.round(R.divide(x, scale)), point), 0.0, 255.0)
    return R.astype(y, "uint8"), scale, R.astype(point, "uint8")


def _is_known(n: OnnxNode) -> bool:
    """Whether the scales and zero points of a product of 8-bit integers are known, that of the result for all."""
    one = all(n.shape(n.need(place)) in ((), (1,)) for place in (6, 7))
    dtypes = all(n.dtype(n.need(place)) in ("int8", "uint8") for place in (0, 3, 7))
    floats = all(n.dtype(n.need(place)) == "float32" for place in (1, 4, 6))
    return one and dtypes and floats and all(n.known(place) is not None for place in (1, 2, 4, 5, 6, 7))


def _centred(n: OnnxNode, x: Expr, zero: Expr, axis: int) -> Expr:
    point = R.astype(zero, "int32")
    if n.rank(zero) == 1 and n.shape(zero) != (1,):
        point = R.reshape(point, tuple(n.shape(zero)[0] if i == axis else 1 for i in range(n.rank(x))))
    elif n.rank(zero) == 1:
        point = R.reshape(point, ())
    return R.subtract(R.astype(x, "int32"), point)


def quantized_matmul(
    n: OnnxNode, a: Expr, a_scale: Expr, a_zero: Expr, b: Expr, b_scale: Expr, b_zero: Expr, y_scale: Expr, y_zero: Expr
) -> Expr:
    """The product of quantised matrices, quantised again: in QDQ form where scales and zero points are known."""
    if _is_known(n) and all(n.rank(v) <= 1 for v in (a_scale, a_zero, b_scale, b_zero)):
        left = R.dequantize(a, _vector(n, a_scale), _vector(n, a_zero), axis=n.rank(a) - 2)
        right = R.dequantize(b, _vector(n, b_scale), _vector(n, b_zero), axis=n.rank(b) - 1)
        return R.quantize(R.matmul(left, right), _vector(n, y_scale), _vector(n, y_zero), out_dtype=n.dtype(y_zero))
    rows, columns = n.rank(a) - 2, n.rank(b) - 1
    product = R.astype(R.matmul(_centred(n, a, a_zero, rows), _centred(n, b, b_zero, columns)), "float32")

    def scale(v: Expr, position: int, rank: int) -> Expr:
        wide = R.astype(v, "float32")
        if n.rank(v) == 1 and n.shape(v) != (1,):
            return R.reshape(wide, tuple(n.shape(v)[0] if i == position else 1 for i in range(rank)))
        return R.reshape(wide, ()) if n.rank(v) <= 1 else wide

    if any(n.rank(v) > 1 for v in (a_zero, b_zero, a_scale, b_scale, y_scale)):
        raise Unsupported("a scale for each row of each matrix")
    rank = max(n.rank(a), n.rank(b))
    factor = R.divide(
        R.multiply(scale(a_scale, rank - 2, rank), scale(b_scale, rank - 1, rank)), scale(y_scale, rank - 2, rank)
    )
    zero = R.reshape(y_zero, ()) if n.rank(y_zero) <= 1 and n.shape(y_zero) in ((), (1,)) else None
    if zero is None:
        raise Unsupported("a zero point for each row of the result")
    return saturated(n, R.round(R.multiply(product, factor)), zero, n.dtype(y_zero))


def quantized_conv(
    n: OnnxNode,
    x: Expr,
    x_scale: Expr,
    x_zero: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero: Expr,
    y_scale: Expr,
    y_zero: Expr,
    bias: Expr | None,
) -> Expr:
    """A convolution of quantised integers, quantised again; each output channel may have a scale.

    It is in QDQ form where scales and zero points are known.
    """
    rank = n.rank(x) - 2
    if _is_known(n) and all(n.shape(v) in ((), (1,)) for v in (x_scale, x_zero)):
        step, zero = _vector(n, x_scale), _vector(n, w_zero)
        left = R.dequantize(x, step, _vector(n, x_zero))
        result = convolved(n, left, R.dequantize(w, _vector(n, w_scale), zero, axis=0))
        if bias is not None:
            real = R.dequantize(bias, R.multiply(_vector(n, w_scale), step), 0, axis=0)
            result = R.add(result, R.reshape(real, (n.shape(bias)[0], *(1,) * rank)))
        return R.quantize(result, _vector(n, y_scale), _vector(n, y_zero), out_dtype=n.dtype(y_zero))
    total = conv_integer(n, _centred(n, x, x_zero, 1), _centred(n, w, w_zero, 0), centred=True)

    def channels(v: Expr) -> Expr:
        wide = R.astype(v, "float32")
        one = n.rank(v) == 0 or n.shape(v) == (1,)
        return R.reshape(wide, ()) if one else R.reshape(wide, (n.shape(v)[0], *(1,) * rank))

    if bias is not None:
        total = R.add(total, R.reshape(bias, (n.shape(bias)[0], *(1,) * rank)))
    factor = R.divide(R.multiply(channels(x_scale), channels(w_scale)), channels(y_scale))
    quotient = R.round(R.multiply(R.astype(total, "float32"), factor))
    return saturated(n, quotient, R.reshape(y_zero, ()), n.dtype(y_zero))


row("DequantizeLinear", dequantize)
row("QuantizeLinear", quantize)
row("DynamicQuantizeLinear", dynamic_quantize)
row("QLinearMatMul", quantized_matmul)
row("QLinearConv", quantized_conv)
