"""Orthogonal factors, eigenvalues and singular values, of LAPACK, and what is made of them.

Only a Python process calls LAPACK (through NumPy): `graph`, `aot` and C refuse these. Signs of vectors are LAPACK's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.dtypes import is_complex, part
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import Dim, minimum
from weft.ir.graph import Expr, TupleGetItem
from weft.ir.op.common import Dims, example, f32, same_dtype, shape_error, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.linalg.matrices import library, matrix, matrix_dims, reference, square
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.types import TensorType, TupleType, Type

__all__: list[str] = []

_X, _FAMILY = Param("x"), "linear_algebra"


def _of(ty: TensorType, dims: Dims, *sizes: Dim) -> TensorType:
    """The type of matrices (or vectors) of other sizes in the same batch."""
    return TensorType((*dims[:-2], *sizes), ty.dtype)


def _sizes(ty: TensorType, dims: Dims, count: Dim) -> TensorType:
    """The type of eigenvalues or singular values, which are real."""
    return TensorType((*dims[:-2], count), None if ty.dtype is None else part(ty.dtype))


def _qr_types(args: Arguments, context: TypeContext) -> TupleType:
    if args.mode not in ("reduced", "complete"):
        raise shape_error(args, f"the mode is 'reduced' or 'complete', got {args.mode!r}", "W205")
    ty = matrix(args, "x", context)
    dims = matrix_dims(args, ty)
    rows, columns = dims[-2:]
    inner = rows if args.mode == "complete" else minimum(rows, columns)
    return TupleType((_of(ty, dims, rows, inner), _of(ty, dims, inner, columns)))


@register_op(
    "linalg.qr",
    [_X, Param("mode", "attr", "reduced", "str")],
    pure=True,
    family=_FAMILY,
    decompose=lambda args, builder: library(
        "qr" if args.mode == "reduced" else "qr_complete", [args.x], _qr_types(args, builder.types)
    ),
    numpy=lambda x, mode: tuple(np.linalg.qr(x, mode)),
    examples=(
        example(f32(4, 2)),  # of rank 2 with the numbers of the page: every column of q is determined
        example(typed("float64", "b", 3, 5)),
        example(f32(4, 2), "complete"),
        example(typed("complex64", 3, 2)),
    ),
)
def qr(args: Arguments, context: TypeContext) -> Type:
    """q with orthonormal columns and the upper triangular r of x = q r: (..., m, n) -> (..., m, k), (..., k, n).

    k is min(m, n), or m for the mode complete. Errors: ShapeError W202, W205; DTypeError W321.
    """
    return _qr_types(args, context)


def _eigh_types(args: Arguments, context: TypeContext) -> TupleType:
    ty = square(args, "x", context)
    dims = matrix_dims(args, ty)
    return TupleType((_sizes(ty, dims, dims[-1]), ty))


def _eigh_reference(x: Any) -> Any:
    return tuple(np.linalg.eigh(x))


_SYMMETRIC = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 4.0]], "float32")
_HERMITIAN = np.array([[2.0, 0.5 - 1j], [0.5 + 1j, 4.0]], "complex128")


@register_op(
    "linalg.eigh",
    [_X],
    pure=True,
    family=_FAMILY,
    decompose=lambda args, builder: library("eigh", [args.x], _eigh_types(args, builder.types)),
    numpy=reference("eigh", _eigh_reference),
    examples=(example(_SYMMETRIC), example(typed("float64", "b", 1, 1)), example(_HERMITIAN)),
)
def eigh(args: Arguments, context: TypeContext) -> Type:
    """The eigenvalues, ascending, and the eigenvectors (columns) of symmetric matrices, whose lower triangles are read.

    (..., n, n) -> (..., n), (..., n, n). Complex ones are Hermitian: their eigenvalues are floats. Errors: ShapeError
    W201, W202; DTypeError W321.
    """
    return _eigh_types(args, context)


def _svd_types(args: Arguments, context: TypeContext) -> TupleType:
    ty = matrix(args, "x", context)
    dims = matrix_dims(args, ty)
    rows, columns = dims[-2:]
    short = minimum(rows, columns)
    left, right = (rows, columns) if args.full_matrices else (short, short)
    return TupleType((_of(ty, dims, rows, left), _sizes(ty, dims, short), _of(ty, dims, right, columns)))


def _svd_reference(x: Any, full_matrices: bool) -> Any:
    return tuple(np.linalg.svd(x, full_matrices))


@register_op(
    "linalg.svd",
    [_X, Param("full_matrices", "attr", True, "bool")],
    pure=True,
    family=_FAMILY,
    decompose=lambda args, builder: library(
        "svd_full" if args.full_matrices else "svd", [args.x], _svd_types(args, builder.types)
    ),
    numpy=reference("svd", _svd_reference),
    examples=(
        example(f32(3, 2)),
        example(typed("float64", "b", 2, 4), full_matrices=False),
        example(typed("complex64", 2, 3)),
    ),
)
def svd(args: Arguments, context: TypeContext) -> Type:
    """u, the singular values in descending order, and v^T of x = u diag(s) v^T: (..., m, n) -> (..., m, m), (..., k),
    (..., n, n).

    k is min(m, n); without full_matrices u has k columns and v^T k rows. Of complex numbers v^T is the conjugate, too,
    and singular values are floats. Errors: ShapeError W202; DTypeError W321.
    """
    return _svd_types(args, context)


def _pinv_type(args: Arguments, context: TypeContext) -> TensorType:
    ty = matrix(args, "x", context)
    dims = matrix_dims(args, ty)
    return _of(ty, dims, dims[-1], dims[-2])


def _rcond(args: Arguments, context: TypeContext) -> Expr:
    """The share of the greatest singular value below which one counts as 0: by default that of torch."""
    ty = matrix(args, "x", context)
    rows, columns = matrix_dims(args, ty)[-2:]
    if args.rcond is not None or not (isinstance(rows, int) and isinstance(columns, int)):
        share = 1e-15 if args.rcond is None else args.rcond
    else:
        share = float(np.finfo(ty.dtype or "float32").eps) * max(rows, columns)
    return call("full", (), share, "float64")


def _pinv_reference(x: Any, *, rcond: float | None) -> Any:
    share = np.finfo(x.dtype).eps * max(x.shape[-2:]) if rcond is None else rcond
    return untyped_np.linalg.pinv(x, rcond=np.asarray(share, x.real.dtype)).astype(x.dtype)


@register_op(
    "linalg.pinv",
    [_X, Param("rcond", "attr", None, "float?")],
    pure=True,
    family=_FAMILY,
    decompose=lambda args, builder: library(
        "pinv", [args.x, builder.emit(_rcond(args, builder.types))], _pinv_type(args, builder.types)
    ),
    numpy=reference("pinv", _pinv_reference),
    examples=(example(f32(4, 2)), example(typed("float64", "b", 2, 3), rcond=1e-6), example(typed("complex64", 3, 2))),
)
def pinv(args: Arguments, context: TypeContext) -> TensorType:
    """The inverses of Moore and Penrose: (..., m, n) -> (..., n, m).

    Singular values up to rcond times the greatest count as 0; by default the precision of the dtype times max(m, n).
    """
    return _pinv_type(args, context)


def _lstsq_type(args: Arguments, context: TypeContext) -> TensorType:
    a, b = matrix(args, "a", context), matrix(args, "b", context)
    dtype, left, right = same_dtype(args, a, b), matrix_dims(args, a), matrix_dims(args, b)
    if len(left) != len(right):
        raise shape_error(args, f"a and b have as many dimensions, not {len(left)} and {len(right)}")
    for one, other in zip(left[:-1], right[:-1], strict=True):
        context.require_equal(one, other, f"{args.name}: the rows of a and b, and their batches", args.span)
    return TensorType((*left[:-2], left[-1], right[-1]), dtype)


def _lstsq_reference(a: Any, b: Any) -> Any:
    out = np.empty((*a.shape[:-2], a.shape[-1], b.shape[-1]), a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        out[place] = np.linalg.lstsq(a[place], b[place], rcond=None)[0]
    return out


@register_op(
    "linalg.lstsq",
    [Param("a"), Param("b")],
    pure=True,
    family=_FAMILY,
    decompose=lambda args, builder: library("lstsq", [args.a, args.b], _lstsq_type(args, builder.types)),
    numpy=reference("lstsq", _lstsq_reference),
    examples=(
        example(f32(4, 2), f32(4, "m")),
        example(typed("float64", 2, 2, 3), typed("float64", 2, 2, 1)),
        example(typed("complex128", 3, 2), typed("complex128", 3, 1)),
    ),
)
def lstsq(args: Arguments, context: TypeContext) -> TensorType:
    """The x with the least |a x - b|, the shortest of several: (..., m, n), (..., m, k) -> (..., n, k)."""
    return _lstsq_type(args, context)


# Norms


def _vector_reference(x: Any, *, ord: float, axis: Any, keepdims: bool) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in np.atleast_1d(axis))
    size, dtype = np.abs(x).astype("float64"), x.real.dtype
    if ord == 0:
        return (size != 0).sum(axes, keepdims=keepdims).astype(dtype)
    if np.isinf(ord):
        return np.asarray((size.max if ord > 0 else size.min)(axis=axes, keepdims=keepdims)).astype(dtype)
    with np.errstate(all="ignore"):
        return ((size**ord).sum(axes, keepdims=keepdims) ** (1 / ord)).astype(dtype)


_NORM = (
    Param("x"),
    Param("ord", "attr", 2.0, "float"),
    Param("axis", "attr", None, "ints?"),
    Param("keepdims", "attr", False, "bool"),
)


@composite(
    "linalg.vector_norm",
    _NORM,
    family=_FAMILY,
    numpy=_vector_reference,
    examples=(
        example(f32(2, 3)),
        example(f32("n", 4), 1.0, axis=[1]),
        example(f32(2, 4), 3.0, axis=[0], keepdims=True),
        example(f32(3, "m"), float("inf"), axis=[0]),
        example(typed("float64", 2, 3), 0.0, axis=[-1]),
        example(typed("complex64", "n", 3), axis=[1]),
        example(typed("complex128", 2, 3), 3.0),
        example(typed("complex64", 4), 0.0),
    ),
)
def vector_norm(args: Parts) -> Expr:
    """(sum |x|**ord)**(1 / ord) over the axes (all of them for None); inf and -inf give the greatest and the least |x|,
    0 the number of elements that are not 0.
    """
    args.require("x", "inexact")
    how = {"axis": args.axis, "keepdims": args.keepdims}
    if args.ord == 2:
        return call("sqrt", call("sum", _squares(args), **how))
    size = call("abs", args.x)
    if args.ord in (float("inf"), float("-inf")):
        return call("max" if args.ord > 0 else "min", size, **how)
    if args.ord == 0:
        return call(
            "sum",
            call("astype", call("not_equal", args.x, args.number(0, "x")), part(str(args.type("x").dtype))),
            **how,
        )
    if args.ord == 1:
        return call("sum", size, **how)
    return call("power", call("sum", call("power", size, args.ord), **how), 1 / args.ord)


def _squares(args: Parts) -> Expr:
    """The squares of the sizes of elements."""
    if not is_complex(args.type("x").dtype or ""):
        return call("multiply", args.x, args.x)
    real, imaginary = call("real", args.x), call("imag", args.x)
    return call("add", call("multiply", real, real), call("multiply", imaginary, imaginary))


_MATRIX_NORMS = ("fro", "nuc", "1", "-1", "2", "-2", "inf", "-inf")


def _matrix_reference(x: Any, *, ord: str, axes: Any, keepdims: bool) -> Any:
    rows, columns = axes
    if ord in ("fro", "nuc"):
        return np.asarray(np.linalg.norm(x, ord, (rows, columns), keepdims)).astype(x.real.dtype)
    if ord in ("2", "-2"):
        sizes = np.linalg.svd(np.moveaxis(x, (rows, columns), (-2, -1)), compute_uv=False)
        found = np.expand_dims((sizes.min if ord == "-2" else sizes.max)(axis=-1), (rows, columns))
    else:
        inner, outer = (rows, columns) if ord.endswith("1") else (columns, rows)
        sums = np.abs(x).sum(axis=inner, keepdims=True)
        found = (sums.min if ord.startswith("-") else sums.max)(axis=outer, keepdims=True)
    return (found if keepdims else np.squeeze(found, (rows, columns))).astype(x.real.dtype)


@composite(
    "linalg.matrix_norm",
    [
        Param("x"),
        Param("ord", "attr", "fro", "str"),
        Param("axes", "attr", (-2, -1), "ints"),
        Param("keepdims", "attr", False, "bool"),
    ],
    family=_FAMILY,
    numpy=_matrix_reference,
    examples=(
        example(f32(2, 3)),
        example(f32("n", 3, 2), "1"),
        example(f32(3, 2), "-inf", keepdims=True),
        example(f32(2, "n", 3), "inf", axes=[0, 2], least=1),
        example(typed("float64", 3, 3), "nuc"),
        example(f32(4, 3), "2"),
        example(typed("complex64", "n", 3)),
        example(typed("complex128", 3, 2), "nuc"),
        example(typed("complex64", 3, 2), "1"),
    ),
)
def matrix_norm(args: Parts) -> Expr:
    """A norm of matrices along two axes: fro the root of the sum of squares; 1 and inf the greatest sum of sizes of a
    column and of a row, -1 and -inf the least; nuc the sum of the singular values, 2 and -2 the greatest and the least.
    """
    args.require("x", "inexact")
    if args.ord not in _MATRIX_NORMS or len(args.axes) != 2:
        raise args.error(f"one of the norms {', '.join(_MATRIX_NORMS)}, over two axes: {args.ord!r} over {args.axes}")
    ndim = args.type("x").ndim
    rows, columns = (args.place_of(axis, ndim) for axis in args.axes)
    if args.ord == "fro":
        total = call("sum", _squares(args), axis=[rows, columns], keepdims=args.keepdims)
        return call("sqrt", total)
    if args.ord in ("nuc", "2", "-2"):
        return _spectral(args, rows, columns, ndim)
    inner, outer = (rows, columns) if args.ord in ("1", "-1") else (columns, rows)
    sums = call("sum", call("abs", args.x), axis=inner, keepdims=True)
    found = call("min" if args.ord.startswith("-") else "max", sums, axis=outer, keepdims=True)
    return found if args.keepdims else call("squeeze", found, [rows, columns])


def _spectral(args: Parts, rows: int, columns: int, ndim: int) -> Expr:
    rest = [axis for axis in range(ndim) if axis not in (rows, columns)]
    moved = call("permute_dims", args.x, [*rest, rows, columns])
    values = TupleGetItem(call("linalg.svd", moved, full_matrices=False), 1)
    found = call({"nuc": "sum", "2": "max", "-2": "min"}[args.ord], values, axis=-1)
    return call("expand_dims", found, sorted((rows, columns))) if args.keepdims else found
