"""Conversion between dtypes."""

from __future__ import annotations

from weft.dtypes import is_bool
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.node import replace
from weft.ir.op.common import Kernel, converted, example, f32, kernel_lowering, require_parts, tensor, typed
from weft.ir.op.declare import Arguments, Lower, Param
from weft.ir.op.layout_rules.families import broadcasting
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType


def _converted(value: PrimExpr, dtype: str) -> PrimExpr:
    """A value in another dtype; anything but zero is true."""
    return te.not_equal(value, 0) if is_bool(dtype) and not is_bool(value.dtype) else te.cast(dtype, value)


def _converting(parameter: str) -> Lower:
    """The lowering of an operator that gives the values of a parameter in another dtype."""

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        dtype = kernel.args.dtype
        x = kernel.input(parameter)
        return kernel.compute(lambda *i: _converted(x(*i), dtype))

    return lowering


@register_op(
    "astype",
    [Param("x"), Param("dtype", "dtype")],
    lowering=_converting("x"),
    numpy=converted,
    pure=True,
    layout=broadcasting("x"),
    examples=(
        example(f32(2, 3), "int32"),
        example(typed("int64", "n"), "float32"),
        example(f32("n", 4), "float64"),
        example(f32("n"), "bool"),
        example(typed("bool", "n"), "float32"),
        example(typed("int32", 5), "int8"),
        example(f32(4), "float16"),
        example(f32("n", 2), "complex64"),
        example(typed("complex64", "n"), "complex128"),
        example(typed("complex128", 3), "bool"),
    ),
)
def astype(args: Arguments, context: TypeContext) -> TensorType:
    """The values in another dtype: floats to integers drop the fraction, integers wrap, and anything but zero is true.

    A float that does not fit an integer dtype becomes the nearest value that does, and nan becomes 0. Complex numbers
    become complex ones or bools: DTypeError W321 for others, which would drop the imaginary part.
    """
    x = tensor(args, "x", context)
    require_parts(args, x, args.dtype)
    return replace(x, dtype=args.dtype)


@register_op(
    "wrap_param",
    [Param("data"), Param("dtype", "dtype", "float32")],
    lowering=_converting("data"),
    numpy=converted,
    pure=True,
    examples=(example(typed("float16", 2, 3)), example(typed("float64", "n"), dtype="float32")),
)
def wrap_param(args: Arguments, context: TypeContext) -> TensorType:
    """A parameter of a model in the dtype that the computation uses."""
    data = tensor(args, "data", context)
    require_parts(args, data, args.dtype)
    return replace(data, dtype=args.dtype)
