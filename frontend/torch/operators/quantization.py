"""Quantized programs (`quantized_decomposed.*`, as pt2e and torchao export them): integers, scales and zero points.

    quantize_per_tensor          clamp(round(x / scale) + zero point), as PyTorch has it: x times 1 / scale
    dequantize_per_tensor        (q - zero point) * scale
    .._per_channel, _per_token, _per_channel_group      with one scale for each index of an axis, row, or part of a row
    fake_quantize                (q - zero point) * scale of the clamped q, and where nothing was clamped
    choose_qparams               the scale and the zero point of the least and the greatest value

Source: torch/ao/quantization/fx/_decomposed.py. Values without a range (infinite, none) are not looked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.graph import Constant, Expr
from weft.script import relax as R


def _inverse(n: FxNode, scale: Any, dtype: str) -> Expr:
    """1 / scale, divided in float64 where the scale is a number or float64, in a dtype."""
    if isinstance(scale, (int, float)):
        return R.const(1.0 / scale, dtype)
    return n.cast(R.divide(R.const(1.0, n.dtype(scale)), scale), dtype)


def _float(n: FxNode, x: Expr) -> Expr:
    return n.cast(x, "float32") if n.dtype(x) in ("float16", "bfloat16") else x


def _clamped(n: FxNode, values: Expr, low: Any, high: Any) -> Expr:
    return n.cast(R.clip(values, n.number(low), n.number(high)), n.dtype_out)


def quantize(n: FxNode, x: Expr, scale: Any, zero: Any, low: Any, high: Any, dtype: Any) -> Expr:
    """Integers with one scale."""
    x = _float(n, x)
    if isinstance(scale, Expr) and n.rank(scale):
        scale, zero = R.reshape(scale, ()), R.reshape(zero, ())
    scale = n.cast(scale, "float64") if isinstance(scale, Expr) else scale
    whole = R.round(R.multiply(x, _inverse(n, scale, "float32")))
    return _clamped(n, R.add(whole, n.cast(zero, "float32")), low, high)


def dequantize(n: FxNode, x: Expr, scale: Any, zero: Any, *rest: Any, out_dtype: Any = None) -> Expr:
    """The values of integers with one scale."""
    if isinstance(scale, Expr) and n.rank(scale):
        scale, zero = R.reshape(scale, ()), R.reshape(zero, ())
    dtype, wide = n.dtype_out, "float64" if n.dtype_out == "float64" else "float32"
    moved = R.subtract(n.cast(x, dtype), n.cast(zero, dtype))
    return n.cast(R.multiply(n.cast(moved, wide), n.cast(scale, wide)), dtype)


def _along(n: FxNode, x: Expr, values: Expr, axis: int) -> Expr:
    """A vector along an axis of a tensor."""
    sizes = [1] * n.rank(x)
    sizes[n.axis(x, axis)] = n.shape(values)[0]  # type: ignore[call-overload]
    return R.reshape(values, tuple(sizes))


def _wide(n: FxNode, scales: Expr) -> str:
    return "float64" if n.dtype(scales) == "float64" else "float32"


def quantize_channels(
    n: FxNode, x: Expr, scales: Expr, zeros: Expr, axis: int, low: Any, high: Any, dtype: Any
) -> Expr:
    """Integers with a scale for each index of an axis."""
    dtype, x = _wide(n, scales), _float(n, x)
    inverse = _along(n, x, _inverse(n, scales, dtype), axis)
    whole = R.round(R.multiply(n.cast(x, dtype), inverse))
    return _clamped(n, R.add(whole, n.cast(_along(n, x, zeros, axis), dtype)), low, high)


def dequantize_channels(
    n: FxNode, x: Expr, scales: Expr, zeros: Expr | None, axis: int, *rest: Any, out_dtype: Any = None
) -> Expr:
    """The values of integers with a scale for each index of an axis."""
    dtype = _wide(n, scales)
    values = n.cast(x, dtype)
    if zeros is not None:
        values = R.subtract(values, n.cast(_along(n, x, zeros, axis), dtype))
    return n.cast(R.multiply(values, n.cast(_along(n, x, scales, axis), dtype)), n.dtype_out)


def quantize_rows(n: FxNode, x: Expr, scales: Expr, zeros: Expr, low: Any, high: Any, dtype: Any) -> Expr:
    """Integers with a scale for each row; the zero point is rounded with the value."""
    dtype = "float64" if "float64" in (n.dtype(x), n.dtype(scales)) else "float32"
    moved = R.add(R.multiply(n.cast(x, dtype), _inverse(n, scales, dtype)), n.cast(zeros, dtype))
    return _clamped(n, R.round(moved), low, high)


def dequantize_rows(n: FxNode, x: Expr, scales: Expr, zeros: Expr | None, *rest: Any) -> Expr:
    """The values of integers with a scale for each row."""
    dtype = _wide(n, scales)
    values = n.cast(x, dtype)
    if zeros is not None:
        values = R.subtract(values, n.cast(zeros, dtype))
    return n.cast(R.multiply(values, n.cast(scales, dtype)), n.dtype_out)


def _grouped(n: FxNode, x: Expr, group: int) -> Expr:
    """The matrix as (parts, size of a part)."""
    return R.reshape(x, (-1, min(group, n.dims_of(x)[-1])))


def _column(values: Expr) -> Expr:
    """One value for each part."""
    return R.reshape(values, (-1, 1))


def quantize_groups(
    n: FxNode, x: Expr, scales: Expr, zeros: Expr, low: Any, high: Any, dtype: Any, group: int = 128
) -> Expr:
    """Integers with a scale for each part of a row."""
    parts = n.emit(_grouped(n, x, group))
    return R.reshape(quantize_rows(n, parts, _column(scales), _column(zeros), low, high, dtype), n.shape(x))


def dequantize_groups(
    n: FxNode, x: Expr, scales: Expr, zeros: Expr | None, low: Any, high: Any, dtype: Any, group: int = 128, *rest: Any
) -> Expr:
    """The values of integers with a scale for each part of a row."""
    parts = n.emit(_grouped(n, x, group))
    zeros = _column(zeros) if zeros is not None else None
    return R.reshape(dequantize_rows(n, parts, _column(scales), zeros), n.shape(x))


def choose(n: FxNode, x: Expr, low: int, high: int, eps: float, dtype: Any, symmetric: bool = False) -> Any:
    """(scale, zero point) of the least and the greatest value, each a vector of one."""
    x = n.emit(x, "x")
    zero = R.const(0.0, n.dtype(x))
    least = n.emit(n.cast(R.minimum(R.min(x), zero), "float32"), "least")
    greatest = n.emit(n.cast(R.maximum(R.max(x), zero), "float32"), "greatest")
    if symmetric:
        widest = R.maximum(R.negative(least), greatest)
        scale = R.maximum(R.divide(widest, (high - low) / 2), float(np.float32(eps)))
        middle = 128 if "uint8" in str(dtype) else 0
        return R.astype(R.reshape(scale, (1,)), "float64"), Constant(np.asarray([middle], "int64"))
    scale = R.maximum(R.divide(R.subtract(greatest, least), float(high - low)), float(np.float32(eps)))
    scale = n.emit(scale, "scale")
    point = R.subtract(R.const(low, "int64"), R.astype(R.round(R.divide(least, scale)), "int64"))
    return R.astype(R.reshape(scale, (1,)), "float64"), R.reshape(R.clip(point, low, high), (1,))


def choose_rows(n: FxNode, x: Expr, dtype: Any) -> Any:
    """(scales, zero points) of rows, symmetric in int8."""
    if n.dtype(x) == "bfloat16" or "int8" not in str(dtype):
        raise Unsupported("scales of bfloat16, or integers of another kind than int8")
    greatest = n.cast(R.max(R.abs(x), [-1], True), "float32")
    scales = n.emit(R.divide(R.maximum(greatest, 1e-5), 127.0), "scales")
    return scales, R.zeros_like(scales)


def choose_rows_asymmetric(n: FxNode, x: Expr, dtype: Any) -> Any:
    """(scales, zero points) of rows in int8, by the smaller of the errors at the ends, as XNNPACK chooses them."""
    if n.dtype(x) != "float32":
        raise Unsupported("rows of another dtype than float32")
    least = n.emit(R.minimum(R.min(x, [-1], True), 0.0), "least")
    greatest = n.emit(R.maximum(R.max(x, [-1], True), 0.0), "greatest")
    epsilon = float(np.finfo("float32").eps)
    scale = n.emit(R.maximum(R.divide(R.subtract(greatest, least), 255.0), epsilon), "scale")
    below, above = n.emit(R.divide(least, scale), "below"), n.emit(R.divide(greatest, scale), "above")
    first = R.greater(R.add(R.add(below, -128.0), R.add(above, 127.0)), 0.0)
    point = R.where(first, R.subtract(R.const(-128.0, "float32"), below), R.subtract(R.const(127.0, "float32"), above))
    return R.astype(scale, "float64"), R.astype(R.round(R.clip(point, -128.0, 127.0)), "int64")


def _fake(n: FxNode, x: Expr, scale: Any, zero: Any, low: Any, high: Any, axis: int | None = None) -> list[Expr]:
    """The values that quantized integers stand for, and where these were within bounds."""
    dtype = n.dtype(x)
    wide = "float64" if dtype == "float64" else "float32"

    def scalar(value: Any) -> Expr:
        made = n.emit(n.cast(value, wide), "parameter")
        if axis is not None:
            return n.emit(_along(n, x, made, axis), "parameter")
        return n.emit(R.reshape(made, ()), "parameter")

    step, middle = scalar(scale), scalar(zero)
    whole = R.round(R.multiply(n.cast(x, wide), R.divide(R.const(1.0, wide), step)))
    q = n.emit(R.add(whole, middle), "whole")
    least, most = n.cast(low, wide), n.cast(high, wide)
    kept = n.emit(R.minimum(R.maximum(R.where(R.isnan(q), least, q), least), most), "kept")
    inside = R.logical_and(R.less_equal(least, q), R.less_equal(q, most))
    return [n.cast(R.multiply(R.subtract(kept, middle), step), dtype), inside]


def fake_quantize(n: FxNode, x: Expr, scale: Any, zero: Any, low: Any, high: Any) -> list[Expr]:
    """Quantized and back, with one scale."""
    return _fake(n, x, scale, zero, low, high)


def fake_quantize_channels(n: FxNode, x: Expr, scale: Expr, zero: Expr, axis: int, low: Any, high: Any) -> list[Expr]:
    """Quantized and back, with a scale for each index of an axis."""
    return _fake(n, x, scale, zero, low, high, axis)


def fake_quantize_where(n: FxNode, x: Expr, scale: Expr, zero: Expr, enabled: Expr, low: Any, high: Any) -> list[Expr]:
    """Quantized and back where a vector of one says so, else as it was."""
    on = n.emit(R.reshape(n.cast(enabled, "bool"), ()), "enabled")
    made, inside = _fake(n, x, scale, zero, low, high)
    return [R.where(on, made, x), R.where(on, inside, R.ones_like(x, "bool"))]


def _learnt(n: FxNode, x: Expr, scale: Expr, zero: Expr, low: Any, high: Any, axis: int | None = None) -> list[Expr]:
    """With a zero point that is learnt, which is rounded and clamped."""
    whole = R.round(n.cast(zero, "float32"))
    least, most = n.cast(low, "float32"), n.cast(high, "float32")
    return _fake(n, x, scale, n.emit(R.minimum(R.maximum(whole, least), most), "zero"), low, high, axis)


row("quantize_per_tensor", quantize)
row("fake_quantize_per_tensor_affine_cachemask", fake_quantize)
row("fake_quantize_per_channel_affine_cachemask", fake_quantize_channels)
row("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", fake_quantize_where)
row(
    "_fake_quantize_learnable_per_tensor_affine",
    lambda n, x, scale, zero, low, high, factor=1.0: _learnt(n, x, scale, zero, low, high)[0],
)
row(
    "_fake_quantize_learnable_per_channel_affine",
    lambda n, x, scale, zero, axis, low, high, factor=1.0: _learnt(n, x, scale, zero, low, high, axis)[0],
)
row("dequantize_per_tensor", dequantize)
row("quantize_per_channel", quantize_channels)
row("dequantize_per_channel", dequantize_channels)
row("quantize_per_token", quantize_rows)
row("dequantize_per_token", dequantize_rows)
row("quantize_per_channel_group", quantize_groups)
row("dequantize_per_channel_group", dequantize_groups)
row("choose_qparams", choose)
row("choose_qparams_symmetric", lambda n, *args: choose(n, *args, symmetric=True))
row("choose_qparams_per_token", choose_rows)
row("choose_qparams_per_token_asymmetric _choose_qparams_per_token_asymmetric_impl", choose_rows_asymmetric)
