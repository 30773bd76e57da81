"""Complex numbers and their parts.

`view_as_real` and `view_as_complex` see the same memory: a complex number lies as its real and its imaginary part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_complex, part, with_parts
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.graph import Expr
from weft.ir.kernel.intrinsics import of_parts
from weft.ir.node import replace
from weft.ir.op.common import dtype_error, example, require_dtype, shape_error, tensor, typed
from weft.ir.op.composite.declaring import call
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.elementwise import complex_formulas
from weft.ir.op.elementwise.binary import broadcasting
from weft.ir.op.elementwise.unary import elementwise
from weft.ir.op.precision import never
from weft.ir.op.registry import register_op
from weft.ir.types import TensorType

__all__ = ["as_complex", "as_real"]

_WIDE = never("the parts of complex numbers are float32 or float64")
_PLAIN = (example(typed("complex64", "n", 3)), example(typed("complex128", 4)), example(typed("float32", "n")))

elementwise(
    "real",
    "The real parts, elementwise: floats for complex numbers, real ones as they are.",
    "arithmetic",
    scalar=lambda x: te.real(x) if is_complex(x.dtype) else x,
    numpy=np.real,
    result=part,
    examples=_PLAIN,
    precision=_WIDE,
)
elementwise(
    "imag",
    "The imaginary parts, elementwise: floats for complex numbers, 0 of real ones.",
    "arithmetic",
    scalar=lambda x: te.imag(x) if is_complex(x.dtype) else te.const(0, x.dtype),
    numpy=np.imag,
    result=part,
    examples=_PLAIN,
    precision=_WIDE,
)
elementwise(
    "conj",
    "The numbers with the other sign of the imaginary part, elementwise; real ones as they are.",
    "arithmetic",
    scalar=lambda x: te.conj(x) if is_complex(x.dtype) else x,
    numpy=np.conj,
    examples=_PLAIN,
    precision=_WIDE,
)
elementwise(
    "angle",
    "The angles of numbers in the plane, elementwise, in (-pi, pi]: of real ones 0 or pi.",
    "inexact",
    scalar=complex_formulas.angle,
    numpy=np.angle,
    result=part,
    examples=_PLAIN,
    precision=_WIDE,
)


def _joined(real: Any, imag: Any) -> Any:
    return np.asarray(of_parts(*np.broadcast_arrays(real, imag)))


broadcasting(
    "complex",
    "Complex numbers of real and imaginary parts, broadcast: float32 gives complex64, float64 complex128.",
    ("real", "imag"),
    "float",
    scalar=te.complex,
    numpy=_joined,
    result=with_parts,
    examples=(
        example(typed("float32", "n", 3), typed("float32", 3)),
        example(typed("float64", 4), typed("float64", 4)),
    ),
    family="binary",
    precision=_WIDE,
)


def as_real(x: Expr, ty: TensorType) -> Expr:
    """The memory of complex numbers of known sizes as floats, the parts along a last axis of two."""
    assert ty.dtype is not None
    return call("memory.view", x, (*(dims_of(ty) or ()), 2), part(ty.dtype))


def as_complex(x: Expr, ty: TensorType) -> Expr:
    """The memory of floats of known sizes, of which the last is two, as complex numbers."""
    assert ty.dtype is not None
    return call("memory.view", x, (dims_of(ty) or ())[:-1], with_parts(ty.dtype))


def _known(args: Arguments, context: TypeContext) -> TensorType:
    ty = tensor(args, "x", context)
    if dims_of(ty) is None or ty.dtype is None:
        raise shape_error(args, "the sizes of x have to be known", "W202", "use R.match_cast to name them")
    return ty


def _split(x: Any) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


def _of_pairs(x: Any) -> Any:
    return _joined(x[..., 0], x[..., 1])


@register_op(
    "view_as_real",
    [Param("x")],
    pure=True,
    family="manipulate",
    decompose=lambda args, builder: as_real(args.x, tensor(args, "x", builder.types)),
    numpy=_split,
    examples=(example(typed("complex64", "n", 3)), example(typed("complex128"))),
    precision=_WIDE,
)
def view_as_real(args: Arguments, context: TypeContext) -> TensorType:
    """The parts of complex numbers along a new last axis: (...) complex -> (..., 2) float. Nothing is copied.

    Errors: ShapeError W202; DTypeError W321.
    """
    ty = _known(args, context)
    require_dtype(args, "x", ty, "complex")
    return replace(ty, shape=(*(dims_of(ty) or ()), 2), dtype=part(str(ty.dtype)))


@register_op(
    "view_as_complex",
    [Param("x")],
    pure=True,
    family="manipulate",
    decompose=lambda args, builder: as_complex(args.x, tensor(args, "x", builder.types)),
    numpy=_of_pairs,
    examples=(example(typed("float32", "n", 3, 2)), example(typed("float64", 2))),
    precision=_WIDE,
)
def view_as_complex(args: Arguments, context: TypeContext) -> TensorType:
    """Complex numbers of which the last axis of two has the parts: (..., 2) float -> (...) complex. Nothing is copied.

    Errors: ShapeError W202, W205 for another last axis; DTypeError W321.
    """
    ty = _known(args, context)
    if ty.dtype not in ("float32", "float64"):
        raise dtype_error(args, f"x must be float32 or float64, got {ty.dtype}", "W321", "convert it with R.astype")
    dims = dims_of(ty) or ()
    if not dims or dims[-1] != 2:
        raise shape_error(args, "the last axis of x has the two parts of complex numbers", "W205")
    return replace(ty, shape=dims[:-1], dtype=with_parts(ty.dtype))
