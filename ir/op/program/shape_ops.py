"""Shapes as values, effects, and placement."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import VOID, TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import product, symbol
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    dtype_error,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    require_scalar,
    shape_of_arg,
    tensor,
)
from weft.ir.op.declare import Arguments, Builtin, Param
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import AnyType, ShapeType, TensorType, Type

# ---------------------------------------------------------------------------------------------------------------------
# Shapes
# ---------------------------------------------------------------------------------------------------------------------


def _numpy_shape(expr: Any) -> Any:
    return tuple(expr.shape)


def _numpy_size(expr: Any) -> Any:
    return np.asarray(expr.size, "int64")


def _numpy_int64(expr: Any) -> Any:
    return np.asarray(expr, "int64")


@register_op("shape_of", [Param("expr")], pure=True, builtin=Builtin.EXECUTORS, numpy=_numpy_shape)
def shape_of(args: Arguments, context: TypeContext) -> Type:
    """The shape of a tensor as a value."""
    ty = tensor(args, "expr", context)
    return ShapeType(dims_of(ty), ty.ndim)


@kernel_lowering
def _lower_size(kernel: Kernel) -> PrimFunc | None:
    x = kernel.input("expr")
    return kernel.compute(lambda: te.size(product(x.shape)))


@register_op(
    "size",
    [Param("expr")],
    lowering=_lower_size,
    numpy=_numpy_size,
    pure=True,
    examples=(example(f32(2, 3)), example(f32("n", 4)), example(f32())),
)
def size(args: Arguments, context: TypeContext) -> TensorType:
    """The number of elements of a tensor, as a scalar tensor of int64."""
    tensor(args, "expr", context)
    return TensorType((), "int64")


@kernel_lowering
def _lower_shape_to_tensor(kernel: Kernel) -> PrimFunc | None:
    dims, _ = shape_of_arg(kernel.args, "expr", kernel.context)
    if dims is None:
        return None

    def element(i: PrimExpr) -> PrimExpr:
        result = te.size(dims[-1]) if dims else te.size(0)
        for position in reversed(range(len(dims) - 1)):
            result = te.select(te.equal(i, position), te.size(dims[position]), result)
        return result

    return kernel.compute(element)


@register_op(
    "shape_to_tensor",
    [Param("expr", "shape")],
    lowering=_lower_shape_to_tensor,
    numpy=_numpy_int64,
    pure=True,
    examples=(example((2, 3)), example((symbol("n"), 4, symbol("m") + 1))),
)
def shape_to_tensor(args: Arguments, context: TypeContext) -> TensorType:
    """A shape as a tensor of int64 with one element per dimension."""
    _, ndim = shape_of_arg(args, "expr", context)
    return TensorType((ndim,) if ndim >= 0 else None, "int64", 1)


def _numpy_tensor_to_shape(expr: np.ndarray) -> tuple[int, ...]:
    if expr.size and expr.min() < 0:
        raise BoundsError(f"R.tensor_to_shape: a size is negative in {expr.tolist()}")
    return tuple(int(value) for value in expr)


@register_op("tensor_to_shape", [Param("expr")], pure=True, builtin=Builtin.EXECUTORS, numpy=_numpy_tensor_to_shape)
def tensor_to_shape(args: Arguments, context: TypeContext) -> Type:
    """A vector of integers as a shape, whose sizes a match_cast may name."""
    ty = tensor(args, "expr", context)
    require_dtype(args, "expr", ty, "integer")
    require_rank(args, "expr", ty, 1)
    dims = dims_of(ty)
    return ShapeType(None, dims[0] if dims is not None and isinstance(dims[0], int) else -1)


# ---------------------------------------------------------------------------------------------------------------------
# Effects
# ---------------------------------------------------------------------------------------------------------------------


def _numpy_print(*values: Any, format: str) -> tuple[()]:
    print(format.format(*values) if format else " ".join(map(str, values)))
    return ()


@register_op(
    "print",
    [Param("values", "variadic"), Param("format", "attr", "", "str")],
    pure=False,
    builtin=Builtin.EXECUTORS,
    numpy=_numpy_print,
)
def print_(args: Arguments, context: TypeContext) -> Type:
    """Print values, by a Python format string where one is given."""
    return VOID


@register_op(
    "assert_op",
    [Param("condition", of="bool"), Param("format_args", "exprs", None), Param("format", "attr", "", "str")],
    pure=False,
    builtin=Builtin.EXECUTORS,
)
def assert_op(args: Arguments, context: TypeContext) -> Type:
    """Stop with an AssertionError, whose message the format makes of the values, unless the condition holds."""
    ty = require_scalar(args, "condition", context, None)
    dtype = getattr(ty, "dtype", None)
    if dtype not in (None, "bool"):
        raise dtype_error(args, f"the condition must be bool, got {dtype}", "W321")
    return VOID


@register_op("null_value", [], pure=True, builtin=Builtin.EXECUTORS)
def null_value(args: Arguments, context: TypeContext) -> Type:
    """The value that stands for nothing."""
    return AnyType()


# ---------------------------------------------------------------------------------------------------------------------
# Placement
# ---------------------------------------------------------------------------------------------------------------------


@register_op(
    "to_vdevice", [Param("data"), Param("dst_vdevice", "attr", of="device")], pure=True, builtin=Builtin.EXECUTORS
)
def to_vdevice(args: Arguments, context: TypeContext) -> Type:
    """The tensor on another device."""
    return replace(tensor(args, "data", context), vdevice=args.dst_vdevice)


@register_op(
    "hint_on_device",
    [Param("data"), Param("dst_vdevice", "attr", of="device"), Param("memory_scope", "attr", "global", "str")],
    pure=True,
    builtin=Builtin.EXECUTORS,
)
def hint_on_device(args: Arguments, context: TypeContext) -> Type:
    """The tensor itself, with advice about the device that should hold it."""
    return tensor(args, "data", context)
