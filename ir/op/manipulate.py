"""Operators that rearrange elements: shapes change, values do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir import te
from weft.ir.dim import Dim, floordiv, floormod, product, prove_equal
from weft.ir.infer import TypeContext
from weft.ir.op.common import Dims, Kernel, example, f32, shape_error, shape_of_arg, tensor
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.relations import dims_of
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

# ---------------------------------------------------------------------------------------------------------------------
# Reshaping
# ---------------------------------------------------------------------------------------------------------------------


def _equal(a: Dim, b: Dim, context: TypeContext) -> bool:
    return prove_equal(a, b, context.facts) is True


def regroup(source: Dims, target: Dims, indices: Sequence[PrimExpr], context: TypeContext) -> list[PrimExpr]:
    """The index into a row-major tensor of shape `source` of what stands at `indices` in shape `target`.

    Equal leading and trailing sizes keep their indices; only what lies between is flattened and split again.
    """
    front = 0
    while front < min(len(source), len(target)) and _equal(source[front], target[front], context):
        front += 1
    back = 0
    while back < min(len(source), len(target)) - front and _equal(source[-1 - back], target[-1 - back], context):
        back += 1
    inner_source, inner_target = source[front : len(source) - back], target[front : len(target) - back]
    flat: PrimExpr | None = None
    for size, index in zip(inner_target, indices[front : len(target) - back], strict=True):
        flat = index if flat is None or (size == 1 and flat is None) else flat * te.size(size) + index
    middle = _split_index(te.size(0) if flat is None else flat, inner_source)
    return [*indices[:front], *middle, *indices[len(target) - back :]]


def _split_index(flat: PrimExpr, dims: Dims) -> list[PrimExpr]:
    """The indices of a row-major position."""
    found: list[PrimExpr] = []
    for position, size in enumerate(reversed(dims)):
        last = position == len(dims) - 1
        found.append(te.size(0) if size == 1 else flat if last else flat % te.size(size))
        if not last and size != 1:
            flat = flat // te.size(size)
    return found[::-1]


def _reshaped(args: Arguments, x: TensorType, wanted: Dims, context: TypeContext) -> Dims | None:
    """The sizes that a reshape gives, with -1 resolved; None where that needs a size that is not known."""
    if any(isinstance(dim, int) and dim < -1 for dim in wanted) or sum(dim == -1 for dim in wanted) > 1:
        raise shape_error(
            args, f"cannot reshape to {wanted}", "W205", "at most one size may be -1, the others are not negative"
        )
    dims = dims_of(x)
    if -1 not in wanted:
        if dims is not None:
            context.require_equal(product(dims), product(wanted), f"{args.name}: numbers of elements", args.span)
        return wanted
    if dims is None:
        return None
    rest = product(dim for dim in wanted if not (isinstance(dim, int) and dim == -1))
    if rest == 0:
        raise shape_error(args, f"the size -1 in {wanted} is not determined: another size is 0", "W205")
    context.require_equal(
        floormod(product(dims), rest), 0, f"{args.name}: {product(dims)} elements divide by {rest}", args.span
    )
    return tuple(floordiv(product(dims), rest) if isinstance(dim, int) and dim == -1 else dim for dim in wanted)


def _lower_reshape(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    kernel = Kernel(args, context, name)
    if not kernel.known:
        return None
    x = kernel.input("x")
    source = dims_of(tensor(args, "x", context)) or ()
    kernel.require_equal(product(source), product(kernel.dims), "the numbers of elements differ")
    return kernel.compute(lambda *i: x(*regroup(source, kernel.dims, i, context)))


@register_op(
    "reshape",
    [Param("x"), Param("shape", "shape")],
    lowering=_lower_reshape,
    numpy=np.reshape,
    pure=True,
    examples=(
        example(f32(2, 6), (3, 4)),
        example(f32("n", 4), (-1, 2)),
        example(f32("n", 2, 3), (-1, 6)),
        example(f32(2, 3, 4), (2, 12)),
        example(f32(), (1, 1)),
    ),
)
def reshape(args: Arguments, context: TypeContext) -> TensorType:
    """The elements in row-major order under another shape; one size may be -1 and is computed.

    Errors: ShapeError W201 when the numbers of elements differ, W205 for an impossible shape.
    """
    x = tensor(args, "x", context)
    dims, ndim = shape_of_arg(args, "shape", context)
    if dims is None:
        return TensorType(None, x.dtype, ndim, x.vdevice)
    return TensorType(_reshaped(args, x, dims, context), x.dtype, len(dims), x.vdevice)
