"""What a tensor is, as scalars: rank, sizes, strides, offsets, and the parts of its dtype.

Tensors are compact and start where their memory starts, so strides and offsets follow from the sizes. Each operator is
written out as a number or a dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.dtypes import bits, is_bool, is_float, is_unsigned
from weft.ir.deduction.infer import TypeContext, quick_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product, symbol
from weft.ir.graph import Expr, PrimValue, Var
from weft.ir.op.common import axis_of, dtype_error, shape_error, tensor
from weft.ir.op.declare import Arguments, Builtin, OpDef, Param
from weft.ir.op.registry import add_op
from weft.ir.types import PrimType, TensorType

__all__: list[str] = []


def _code(dtype: str) -> int:
    """The kind of a dtype: 0 integers, 1 unsigned integers, 2 floats, 4 bfloat16, 6 bool."""
    if is_bool(dtype):
        return 6
    if dtype == "bfloat16":
        return 4
    return 2 if is_float(dtype) else 1 if is_unsigned(dtype) else 0


def _axis(args: Arguments, ndim: int) -> int:
    axis = args.axis.value if isinstance(args.axis, PrimValue) else None
    if not isinstance(axis, int):
        raise shape_error(args, "the axis must be a number that is known", "W203")
    return axis_of(args, axis, ndim) if ndim >= 0 else axis


def _named(args: Arguments, builder: Any) -> tuple[Dim, ...]:
    """The sizes of the tensor; a match_cast names those that are not known."""
    ty = quick_type(args.tensor)
    assert isinstance(ty, TensorType)
    dims = dims_of(ty)
    if dims is not None:
        return dims
    if ty.ndim < 0:
        raise shape_error(args, "the number of dimensions is not known", "W202", "use R.match_cast to state it")
    hint = args.tensor.name if isinstance(args.tensor, Var) else "tensor"
    dims = tuple(symbol(builder.get_unique_name(f"{hint}_size{axis}")) for axis in range(ty.ndim))
    builder.match_cast(args.tensor, TensorType(dims, ty.dtype, vdevice=ty.vdevice))
    return dims


def _inspect(
    name: str,
    doc: str,
    dtype: str,
    value: Callable[[Arguments, Any], Dim],
    numpy: Callable[[Any], Any] | Callable[[Any, Any], Any],
    axis: bool = False,
) -> OpDef:
    def rule(args: Arguments, context: TypeContext) -> PrimType:
        ty = tensor(args, "tensor", context)
        if axis:
            _axis(args, ty.ndim)
        return PrimType(dtype)

    def decompose(args: Arguments, builder: Any) -> Expr:
        return PrimValue(value(args, builder), dtype, span=args.span)

    params = (Param("tensor"), *((Param("axis", "prim"),) if axis else ()))
    return add_op(
        OpDef(
            f"inspect.tensor_{name}",
            params,
            rule,
            doc,
            decompose=decompose,
            numpy=numpy,
            pure=True,
            builtin=Builtin.WRITTEN_OUT,
            family="inspection",
        )
    )


def _dtype_of(args: Arguments) -> str:
    ty = quick_type(args.tensor)
    if not isinstance(ty, TensorType) or ty.dtype is None:
        raise dtype_error(args, "the dtype of the tensor is not known", "W321")
    return ty.dtype


def _kind(array: Any) -> int:
    return {"b": 6, "u": 1, "i": 0, "f": 2}[array.dtype.kind]


def _stride(args: Arguments, builder: Any) -> Dim:
    dims = _named(args, builder)
    return product(dims[_axis(args, len(dims)) + 1 :])


_inspect("ndim", "The number of dimensions of a tensor.", "int32", lambda a, b: len(_named(a, b)), lambda x: x.ndim)
_inspect(
    "shape_i",
    "The size of an axis of a tensor.\n\nErrors: ShapeError W203 an axis that is out of range or not known.",
    "int64",
    lambda a, b: _named(a, b)[_axis(a, len(_named(a, b)))],
    lambda x, axis: x.shape[axis],
    axis=True,
)
_inspect(
    "stride_i",
    "How many elements apart neighbours along an axis of a tensor are: the product of the sizes after it.\n\n"
    "Errors: ShapeError W203 an axis that is out of range or not known.",
    "int64",
    _stride,
    lambda x, axis: int(product(x.shape[axis % x.ndim + 1 :])),
    axis=True,
)
_inspect("byte_offset", "Where a tensor starts in its memory, in bytes: 0.", "int64", lambda a, b: 0, lambda x: 0)
_inspect("elem_offset", "Where a tensor starts in its memory, in elements: 0.", "int64", lambda a, b: 0, lambda x: 0)
_inspect(
    "dtype_code",
    "The kind of dtype of a tensor: 0 integers, 1 unsigned integers, 2 floats, 4 bfloat16, 6 bool.",
    "uint8",
    lambda a, b: _code(_dtype_of(a)),
    _kind,
)
_inspect(
    "dtype_bits",
    "The bits of an element of a tensor; those of a truth value are a byte.",
    "uint8",
    lambda a, b: max(bits(_dtype_of(a)), 8 if is_bool(_dtype_of(a)) else 0),
    lambda x: 8 * x.dtype.itemsize,
)
_inspect("dtype_lanes", "How many values an element of a tensor holds: 1.", "uint16", lambda a, b: 1, lambda x: 1)
