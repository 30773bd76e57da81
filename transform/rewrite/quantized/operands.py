"""What rules read of a graph in QDQ form: dequantized values, constants, and quotients of scales as whole numbers.

    Dequantized     data, scale, zero point, axis      of   R.dequantize(data, scale, zero_point, axis)
    constant_of     the array behind an expression of constants
    fixed_point     factors as multipliers of at most 31 bits and one shift

Scales are finite and above 0, and known when compiling; one scale for all, or one for each index of an axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_integer, max_value, min_value, presented
from weft.errors import WeftError
from weft.ir import Call, Constant, Expr, Op, PrimValue, ShapeExpr, TensorType
from weft.ir.dim import DimExpr
from weft.ir.op import OPS, get_op
from weft.ir.op.elementwise.requantize import LARGEST_SHIFT
from weft.support.records import dataclass
from weft.transform.pattern.rule import Site
from weft.transform.rewrite.cancel_transposes import axes_of_permutation

__all__ = [
    "Dequantized",
    "called",
    "constant_of",
    "dequantized",
    "fixed_point",
    "limits",
    "scalar",
    "signed",
    "whole",
]


@dataclass(frozen=True)
class Dequantized:
    """Integers that stand for floats: `scale` and `zero` are float64 and int64 arrays of shape () or (n,), `axis` is
    that of the n, from the front."""

    data: Expr
    dtype: str
    ndim: int
    scale: np.ndarray
    zero: np.ndarray
    axis: int

    @property
    def is_uniform(self) -> bool:
        """Whether one scale and one zero point stand for all elements."""
        return self.scale.ndim == 0 and self.zero.ndim == 0

    def same_as(self, other: Dequantized) -> bool:
        """Whether both stand for the same floats, number for number."""
        uniform = self.is_uniform and other.is_uniform
        return uniform and bool(self.scale == other.scale) and bool(self.zero == other.zero)


def called(value: Expr, *names: str) -> Call | None:
    """The value if it is a call of one of these operators."""
    if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in names:
        return value
    return None


def constant_of(site: Site, expr: Expr) -> np.ndarray | None:
    """The array that an expression of constants stands for, None where something is not known when compiling."""
    return _evaluated(site, expr) if site.is_constant(expr) else None


def _evaluated(site: Site, expr: Expr) -> Any:
    value = site.value(expr)
    if isinstance(value, Constant):
        return presented(value.data, value.dtype)
    if isinstance(value, PrimValue):
        return None if isinstance(value.value, DimExpr) else np.asarray(value.value, value.dtype)
    if isinstance(value, ShapeExpr):
        return value.dims
    if not isinstance(value, Call) or not isinstance(value.op, Op):
        return None
    args = [_evaluated(site, arg) for arg in value.args]
    if any(arg is None for arg in args):
        return None
    try:
        return np.asarray(OPS[value.op.name].run(value, args, {}))
    except (WeftError, ValueError):
        return None


def dequantized(site: Site, expr: Expr) -> Dequantized | None:
    """What an expression is the dequantized form of, or the permutation of one; None where parts are not known."""
    value = site.value(expr)
    if (moved := called(value, "permute_dims")) is not None:
        inner = dequantized(site, moved.args[0])
        return None if inner is None else _permuted(site, inner, axes_of_permutation(moved, inner.ndim))
    call = called(value, "dequantize")
    if call is None:
        return None
    args = OPS["dequantize"].values(call)
    data = site.tensor(args["data"])
    if args["group_size"] or args["out_dtype"] != "float32" or data is None or not is_integer(data.dtype or ""):
        return None
    scale, zero = (constant_of(site, args[name]) for name in ("scale", "zero_point"))
    if scale is None or zero is None or zero.dtype.kind not in "iu":
        return None
    scale, zero = (part.reshape(()) if part.size == 1 else part for part in (scale, zero))
    if not np.isfinite(scale).all() or not (scale > 0).all():
        return None
    axis = args["axis"] % data.ndim if data.ndim else 0
    return Dequantized(args["data"], data.dtype or "", data.ndim, scale.astype("float64"), zero.astype("int64"), axis)


def _permuted(site: Site, inner: Dequantized, axes: Sequence[int]) -> Dequantized:
    known = site.value(inner.data)
    if isinstance(known, Constant):
        data: Expr = Constant(np.transpose(known.data, axes), known.dtype)
    else:
        data = get_op("permute_dims")(inner.data, axes=tuple(axes))
    return Dequantized(data, inner.dtype, inner.ndim, inner.scale, inner.zero, list(axes).index(inner.axis))


def signed(site: Site, operand: Dequantized) -> Dequantized | None:
    """The operand as int8: uint8 with 128 taken from the integers and from their zero point; None for other dtypes."""
    if operand.dtype == "int8":
        return operand
    if operand.dtype != "uint8":
        return None
    known = constant_of(site, operand.data)
    if known is not None:
        data: Expr = Constant((known.astype("int16") - 128).astype("int8"))
    else:
        astype = get_op("astype")
        data = astype(get_op("subtract")(astype(operand.data, "int16"), Constant(np.asarray(128, "int16"))), "int8")
    return Dequantized(data, "int8", operand.ndim, operand.scale, operand.zero - 128, operand.axis)


def scalar(values: np.ndarray, dtype: str) -> Expr:
    """Numbers as an argument: one alone as a scalar."""
    rounded = values.astype(dtype)
    return PrimValue(rounded.item(), dtype) if rounded.ndim == 0 else Constant(rounded)


def whole(values: np.ndarray | int) -> Constant:
    """Whole numbers as a constant of int32."""
    return Constant(np.asarray(values, "int32"))


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    return int(min_value(dtype)), int(max_value(dtype))


def fixed_point(factors: np.ndarray) -> tuple[np.ndarray, int] | None:
    """Positive factors as (multipliers of int32, shift): factor = multiplier / 2**shift, the largest with 31 bits.

    None where the largest is too large.

    >>> fixed_point(np.array(0.75))
    (array(1610612736, dtype=int32), 31)
    >>> fixed_point(np.array([2.0**-40, 2.0**-20]))[0].tolist()
    [1024, 1073741824]
    """
    largest = float(np.max(factors, initial=0))
    if not largest > 0:
        return np.zeros(np.shape(factors), "int32"), 0
    shift = min(31 - math.frexp(largest)[1], LARGEST_SHIFT)
    if round(math.ldexp(largest, shift)) >= 1 << 31:
        shift -= 1
    if shift < 0:
        return None
    return np.asarray(np.rint(np.ldexp(factors, shift)), "int32"), shift


def tensor_dims(ty: TensorType | None) -> tuple[Any, ...]:
    """The sizes of a tensor; none where it has none that are known."""
    return () if ty is None or ty.dims is None else ty.dims
