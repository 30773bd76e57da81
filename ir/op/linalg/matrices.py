"""What the operators on matrices share: their types, calls of the library, and kernels over batches of matrices.

Small matrices, with sizes that are known and at most SMALL, are computed by kernels, which run everywhere; others by
NumPy (LAPACK), where a Python process runs the program (`weft.linalg.*`, by `R.call_py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.graph import Expr
from weft.ir.op.common import Dims, require_dtype, shape_error, tensor
from weft.ir.op.composite.declaring import call
from weft.ir.op.declare import Arguments, Lower
from weft.ir.op.kernel_builder import Loops, counted, joined, loops
from weft.ir.tensor import PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType, TupleType, Type

__all__ = [
    "SMALL",
    "batch_kernel",
    "for_columns_from",
    "is_small",
    "library",
    "matrix",
    "matrix_dims",
    "reference",
    "square",
]

SMALL = 64


def matrix(args: Arguments, name: str, context: TypeContext) -> TensorType:
    """The type of a tensor of matrices; ShapeError W202 fewer than two axes, DTypeError W321 integers."""
    ty = tensor(args, name, context)
    require_dtype(args, name, ty, "inexact")
    if ty.dtype in ("float16", "bfloat16"):
        raise shape_error(
            args, f"{name} is float32, float64 or complex, got {ty.dtype}", "W205", "convert it with R.astype"
        )
    if 0 <= ty.ndim < 2:
        raise shape_error(args, f"{name} has at least two dimensions, got {ty.ndim}")
    return ty


def square(args: Arguments, name: str, context: TypeContext) -> TensorType:
    """The type of a tensor of square matrices; ShapeError W201 for others."""
    ty = matrix(args, name, context)
    dims = dims_of(ty)
    if dims is not None:
        context.require_equal(dims[-2], dims[-1], f"{args.name}: the rows and columns of {name}", args.span)
    return ty


def matrix_dims(args: Arguments, ty: TensorType) -> Dims:
    """The sizes of a tensor of matrices; ShapeError W202 where they are not known."""
    dims = dims_of(ty)
    if dims is None:
        raise shape_error(args, "the sizes of the matrices have to be known", "W202", "use R.match_cast to name them")
    return dims


def is_small(*sizes: Dim) -> bool:
    """Whether a kernel is as good as the library."""
    return all(isinstance(size, int) and size <= SMALL for size in sizes)


def library(name: str, operands: Sequence[Expr], ty: Type) -> Expr:
    """A call of a function of the library."""
    types = list(ty.fields) if isinstance(ty, TupleType) else ty
    return call("call_py", f"weft.linalg.{name}", tuple(operands), types)


def reference(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A reference whose failures are those of the operator."""

    @wraps(function)
    def checked(*values: Any, **attributes: Any) -> Any:
        try:
            return function(*values, **attributes)
        except np.linalg.LinAlgError as error:
            raise ArgumentError(f"R.linalg.{name}: {str(error).lower()}") from None

    return checked


Write = Callable[[Loops, list[PrimExpr]], Stmt]


def batch_kernel(write: Callable[[Loops], tuple[Sequence[Any], Write]]) -> Lower:
    """A lowering by statements for one matrix: `write` gives the axes of the batch, and what is done at one place."""

    def lowering(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
        frame = Loops(args, context, name)
        if not frame.known:
            return None
        axes, statements = write(frame)
        return frame.finish(loops(axes, lambda place: statements(frame, list(place))))

    return lowering


def for_columns_from(start: PrimExpr, size: Any, name: str, body: Callable[[PrimExpr], Stmt]) -> Stmt:
    """A loop from a place to the end of an axis."""
    return counted(name, size - start, lambda offset: joined(body(start + offset)))
