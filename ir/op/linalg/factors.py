"""Factors of matrices and what follows from them: Cholesky, LU, triangular systems, solutions, inverses, determinants.

Matrices are the last two axes; batches are the axes before. A matrix without an answer (not positive definite, or
singular where a solution is asked for) is an ArgumentError at the call.

Source: Golub and Van Loan, Matrix computations (LU with partial pivoting, Cholesky, substitution).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_complex, part
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import minimum
from weft.ir.graph import Expr, Tuple, TupleGetItem
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.op.common import example, f32, same_dtype, shape_error, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import Loops, counted, index, joined, load, store
from weft.ir.op.linalg.matrices import batch_kernel, is_small, library, matrix, matrix_dims, reference, square
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import Buffer, IfThenElse, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.ir.types import TensorType, TupleType

__all__: list[str] = []

_X = Param("x")


def _below(name: str, stop: Any, body: Callable[[PrimVar], Sequence[Stmt]]) -> Stmt:
    """A loop from 0 up to a place."""
    return counted(name, stop, lambda variable: joined(*body(variable)))


def _after(name: str, start: PrimExpr, size: PrimExpr, body: Callable[[PrimExpr], Sequence[Stmt]]) -> Stmt:
    """A loop over the places after one."""
    return counted(name, size - start - 1, lambda offset: joined(*body(start + offset + 1)))


def _conjugate(x: PrimExpr) -> PrimExpr:
    return te.conj(x) if is_complex(x.dtype) else x


# Cholesky

_INDEFINITE = "matrix is not positive definite"


def _cholesky_kernel(frame: Loops) -> Any:
    x, out = frame.input("x"), frame.output()
    total, size = frame.local("total", x.dtype), index(x.shape[-1])
    upper = frame.args.upper

    def at(b: list[PrimExpr], i: PrimExpr, j: PrimExpr) -> list[PrimExpr]:
        return [*b, j, i] if upper else [*b, i, j]

    def statements(frame: Loops, b: list[PrimExpr]) -> Stmt:
        def element(i: PrimExpr, j: PrimExpr) -> list[Stmt]:

            def product(k: PrimExpr) -> PrimExpr:
                return load(out, at(b, i, k)) * _conjugate(load(out, at(b, j, k)))

            less = _below("k", j, lambda k: [store(total, load(total, [0]) - product(k))])
            value = load(total, [0])
            size = te.real(value) if is_complex(x.dtype) else value
            definite = frame.check(binary("gt", size, const(0, size.dtype)), _INDEFINITE, "ArgumentError")
            diagonal = joined(definite, store(out, cast(x.dtype, intrinsic("sqrt", size)), at(b, i, j)))
            beside = store(out, value / load(out, at(b, j, j)), at(b, i, j))
            first = load(x, [*b, i, j])
            inner = joined(
                store(total, _conjugate(first) if upper else first),
                less,
                IfThenElse(binary("eq", i, j), diagonal, beside),
            )
            return [IfThenElse(binary("le", j, i), inner, store(out, const(0, x.dtype), at(b, i, j)))]

        return _below("i", size, lambda i: [_below("j", size, lambda j: element(i, j))])

    return x.shape[:-2], statements


def _cholesky_reference(x: Any, *, upper: bool) -> Any:
    lower = untyped_np.linalg.cholesky(x)
    return untyped_np.ascontiguousarray(untyped_np.swapaxes(lower.conj(), -1, -2)) if upper else lower


def _small_cholesky(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    dims = dims_of(square(args, "x", context))
    return batch_kernel(_cholesky_kernel)(args, context, name) if dims and is_small(dims[-1]) else None


def _cholesky_call(args: Arguments, builder: Any) -> Expr:
    lower = library("cholesky", [args.x], square(args, "x", builder.types))
    if not args.upper:
        return lower
    turned = _transposed(builder.emit(lower), builder.types)
    return call("conj", builder.emit(turned)) if is_complex(builder.types.type_of(args.x).dtype or "") else turned


def _transposed(x: Expr, context: TypeContext) -> Expr:
    ty = context.type_of(x)
    assert isinstance(ty, TensorType)
    ndim = ty.ndim
    return call("permute_dims", x, [*range(ndim - 2), ndim - 1, ndim - 2])


_HERMITIAN = np.array([[4.0, 1 - 1j, 0.5j], [1 + 1j, 3.0, 0.2], [-0.5j, 0.2, 2.0]], "complex128")
_UNEVEN = np.array([[0.0, 2j, 1.0], [1 - 1j, 0.5, 0.0], [3.0, 1.0, 2 + 1j]], "complex64")
_DEFINITE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]], "float32")


@register_op(
    "linalg.cholesky",
    [_X, Param("upper", "attr", False, "bool")],
    lowering=_small_cholesky,
    decompose=_cholesky_call,
    numpy=reference("cholesky", _cholesky_reference),
    pure=True,
    family="linear_algebra",
    examples=(
        example(_DEFINITE),
        example(np.stack([_DEFINITE, 2 * _DEFINITE]).astype("float64"), upper=True),
        example(f32("b", 1, 1), ranges={"x": (0.5, 2)}),
        example(_HERMITIAN),
        example(_HERMITIAN.astype("complex64"), upper=True),
    ),
)
def cholesky(args: Arguments, context: TypeContext) -> TensorType:
    """The lower triangular L with x = L L^T of symmetric positive definite matrices, whose lower triangles are read.

    With upper it is L^T. Of Hermitian matrices L^T stands for its conjugate. Of up to 64 rows a kernel, else LAPACK.
    Errors: ShapeError W201, W202; DTypeError W321; ArgumentError at the call where one is not positive definite.
    """
    return square(args, "x", context)


# Triangular systems


def _triangular_kernel(frame: Loops) -> Any:
    a, b_in = frame.input("a"), frame.input("b")
    out, total = frame.output(), frame.local("total", a.dtype)
    args, size, columns = frame.args, index(a.shape[-1]), index(b_in.shape[-1])
    ascending = args.upper == args.transpose

    def statements(frame: Loops, b: list[PrimExpr]) -> Stmt:
        def coefficient(i: PrimExpr, k: PrimExpr) -> PrimExpr:
            return load(a, [*b, k, i] if args.transpose else [*b, i, k])

        def row(i: PrimExpr, c: PrimExpr) -> list[Stmt]:
            def less(k: PrimExpr) -> list[Stmt]:
                return [store(total, load(total, [0]) - coefficient(i, k) * load(out, [*b, k, c]))]

            known = _below("k", i, less) if ascending else _after("k", i, size, less)
            value = load(total, [0]) if args.unit_diagonal else load(total, [0]) / coefficient(i, i)
            return [store(total, load(b_in, [*b, i, c])), known, store(out, value, [*b, i, c])]

        def place(r: PrimExpr) -> PrimExpr:
            return r if ascending else size - r - 1

        return _below("r", size, lambda r: [_below("c", columns, lambda c: row(place(r), c))])

    return a.shape[:-2], statements


def _triangular_reference(a: Any, b: Any, *, upper: bool, transpose: bool, unit_diagonal: bool) -> Any:
    part = np.triu(a) if upper else np.tril(a)
    if unit_diagonal:
        places = untyped_np.arange(a.shape[-1])
        part[..., places, places] = 1
    return untyped_np.linalg.solve(np.swapaxes(part, -1, -2) if transpose else part, b).astype(b.dtype)


@register_op(
    "linalg.triangular_solve",
    [
        Param("a"),
        Param("b"),
        Param("upper", "attr", False, "bool"),
        Param("transpose", "attr", False, "bool"),
        Param("unit_diagonal", "attr", False, "bool"),
    ],
    lowering=batch_kernel(_triangular_kernel),
    numpy=reference("triangular_solve", _triangular_reference),
    pure=True,
    family="linear_algebra",
    examples=(
        example(f32(3, 3), f32(3, 2), ranges={"a": (0.5, 2)}),
        example(typed("float64", 2, 3, 3), typed("float64", 2, 3, "m"), upper=True, ranges={"a": (0.5, 2)}),
        example(f32("n", "n"), f32("n", 2), unit_diagonal=True, transpose=True, ranges={"a": (0.1, 0.5)}),
        example(_UNEVEN.T + 2 * np.eye(3, dtype="complex64"), typed("complex64", 3, 2), transpose=True),
    ),
)
def triangular_solve(args: Arguments, context: TypeContext) -> TensorType:
    """x of a x = b, a lower (or upper) triangular: (..., n, n), (..., n, m) -> (..., n, m).

    The other triangle is not read, and with unit_diagonal neither is the diagonal, which counts as ones. With transpose
    a^T x = b. A zero on the diagonal gives infinities. Errors: ShapeError W201, W202; DTypeError W320, W321.
    """
    return _system(args, context)


def _system(args: Arguments, context: TypeContext) -> TensorType:
    """The type of the solution of a system with matrices on both sides."""
    a, b = square(args, "a", context), matrix(args, "b", context)
    dtype, left, right = same_dtype(args, a, b), dims_of(a), dims_of(b)
    if left is None or right is None:
        return TensorType(dtype=dtype, ndim=b.ndim)
    if len(left) != len(right):
        raise shape_error(args, f"a and b have as many dimensions, not {len(left)} and {len(right)}")
    for one, other in zip(left[:-1], right[:-1], strict=True):
        context.require_equal(one, other, f"{args.name}: the rows of a and b, and their batches", args.span)
    return TensorType(right, dtype)


# LU


def _less(a: Buffer, place: list[PrimExpr], share: PrimExpr, other: list[PrimExpr]) -> Stmt:
    """One element less its share of another."""
    return store(a, load(a, place) - share * load(a, other), place)


def _copied(out: Buffer, x: Buffer, b: list[PrimExpr], rows: PrimExpr, columns: PrimExpr, own: list[PrimExpr]) -> Stmt:
    """The matrix of a place in the batch, copied."""

    def move(i: PrimExpr, j: PrimExpr) -> Stmt:
        return store(out, load(x, [*b, i, j]), [*own, i, j])

    return _below("i", rows, lambda i: [_below("j", columns, lambda j: [move(i, j)])])


def _swap(frame: Loops, held: Buffer, a: Buffer, first: list[PrimExpr], second: list[PrimExpr]) -> list[Stmt]:
    return [store(held, load(a, first)), store(a, load(a, second), first), store(a, load(held, [0]), second)]


def _size(x: PrimExpr) -> PrimExpr:
    """By what pivots are chosen: of complex numbers the sum of the sizes of the parts, as LAPACK does."""
    if is_complex(x.dtype):
        return intrinsic("fabs", te.real(x)) + intrinsic("fabs", te.imag(x))
    return intrinsic("fabs", x)


def _find_pivot(a: Buffer, b: list[PrimExpr], k: PrimExpr, rows: PrimExpr, best: Buffer, where: Buffer) -> list[Stmt]:
    """The row, from k on, with the greatest element of column k."""

    def look(i: PrimExpr) -> list[Stmt]:
        value = _size(load(a, [*b, i, k]))
        found = joined(store(best, value), store(where, i))
        return [IfThenElse(binary("gt", value, load(best, [0])), found)]

    start = [store(best, _size(load(a, [*b, k, k]))), store(where, k)]
    return [*start, _after("i", k, rows, look)]


def _eliminate(a: Buffer, b: list[PrimExpr], k: PrimExpr, rows: PrimExpr, columns: PrimExpr) -> Stmt:
    """Rows after k less their shares of row k; the shares stay in column k."""

    def row(i: PrimExpr) -> list[Stmt]:
        share = store(a, load(a, [*b, i, k]) / load(a, [*b, k, k]), [*b, i, k])
        return [share, _after("j", k, columns, lambda j: [_less(a, [*b, i, j], load(a, [*b, i, k]), [*b, k, j])])]

    return _after("i", k, rows, row)


def _lu_kernel(frame: Loops) -> Any:
    x = frame.input("x")
    out, pivots = frame.outputs("lu", "pivots")
    best, where, held = frame.local("best", part(x.dtype)), frame.local("where"), frame.local("held", x.dtype)
    rows, columns = index(x.shape[-2]), index(x.shape[-1])

    def statements(frame: Loops, b: list[PrimExpr]) -> Stmt:
        def step(k: PrimExpr) -> list[Stmt]:
            found = load(where, [0])
            swap = _below("c", columns, lambda c: _swap(frame, held, out, [*b, k, c], [*b, found, c]))
            regular = binary("ne", load(out, [*b, k, k]), const(0, x.dtype))
            return [
                *_find_pivot(out, b, k, rows, best, where),
                store(pivots, found + 1, [*b, k]),
                IfThenElse(binary("ne", found, k), swap),
                IfThenElse(regular, _eliminate(out, b, k, rows, columns)),
            ]

        return joined(_copied(out, x, b, rows, columns, b), _below("k", index(pivots.shape[-1]), step))

    return x.shape[:-2], statements


def _lu_reference(x: Any) -> Any:
    out = x.copy()
    rows, columns = x.shape[-2:]
    count = min(rows, columns)
    pivots = np.zeros((*x.shape[:-2], count), "int32")
    for b in np.ndindex(*x.shape[:-2]):
        a = out[b]
        for k in range(count):
            p = k + int(np.argmax(np.abs(a[k:, k].real) + np.abs(a[k:, k].imag)))
            pivots[(*b, k)] = p + 1
            a[[k, p]] = a[[p, k]]
            if a[k, k] != 0:
                a[k + 1 :, k] /= a[k, k]
                a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return out, pivots


@register_op(
    "linalg.lu_factor",
    [_X],
    lowering=batch_kernel(_lu_kernel),
    numpy=_lu_reference,
    pure=True,
    family="linear_algebra",
    examples=(
        example(f32(3, 3)),
        example(typed("float64", 2, 3, 4)),
        example(f32("n", 3)),
        example(f32("n", "n")),
        example(typed("complex128", "n", 3)),
    ),
)
def lu_factor(args: Arguments, context: TypeContext) -> TupleType:
    """L and U of matrices with their rows exchanged, in one matrix, and the exchanges: (..., m, n), (..., min(m, n)).

    Below the diagonal stands L, whose diagonal is ones, on and above it U. Row i was exchanged with row pivots[i] - 1
    (int32, as LAPACK has them). A singular matrix has a zero on the diagonal. Errors: ShapeError W202; DTypeError W321.
    """
    x = matrix(args, "x", context)
    dims = dims_of(x)
    if dims is None:
        return TupleType((x, TensorType(dtype="int32", ndim=x.ndim - 1 if x.ndim > 0 else -1)))
    return TupleType((x, TensorType((*dims[:-2], minimum(dims[-2], dims[-1])), "int32")))


# Solutions


def _solve_kernel(frame: Loops) -> Any:
    a, b_in = frame.input("a"), frame.input("b")
    out, dtype = frame.output(), a.dtype
    work = frame.local("work", dtype, dims_of(frame.context.type_of(frame.args.a))[-2:])  # type: ignore[index]
    best, where, held = frame.local("best", part(dtype)), frame.local("where"), frame.local("held", dtype)
    size, columns = index(a.shape[-1]), index(b_in.shape[-1])

    def statements(frame: Loops, b: list[PrimExpr]) -> Stmt:
        def step(k: PrimExpr) -> list[Stmt]:
            found = load(where, [0])
            swap = joined(
                _below("c", size, lambda c: _swap(frame, held, work, [k, c], [found, c])),
                _below("c", columns, lambda c: _swap(frame, held, out, [*b, k, c], [*b, found, c])),
            )
            regular = binary("gt", load(best, [0]), const(0, part(dtype)))

            def less(i: PrimExpr, c: PrimExpr) -> list[Stmt]:
                return [_less(out, [*b, i, c], load(work, [i, k]), [*b, k, c])]

            return [
                *_find_pivot(work, [], k, size, best, where),
                frame.check(regular, "singular matrix", "ArgumentError"),
                IfThenElse(binary("ne", found, k), swap),
                _eliminate(work, [], k, size, size),
                _after("i", k, size, lambda i: [_below("c", columns, lambda c: less(i, c))]),
            ]

        def back(r: PrimExpr) -> list[Stmt]:
            i = size - r - 1

            def less(k: PrimExpr, c: PrimExpr) -> list[Stmt]:
                return [_less(out, [*b, i, c], load(work, [i, k]), [*b, k, c])]

            def divided(c: PrimExpr) -> list[Stmt]:
                return [store(out, load(out, [*b, i, c]) / load(work, [i, i]), [*b, i, c])]

            rest = _after("k", i, size, lambda k: [_below("c", columns, lambda c: less(k, c))])
            return [rest, _below("c", columns, divided)]

        copies = _copied(work, a, b, size, size, []), _copied(out, b_in, b, size, columns, b)
        return joined(*copies, _below("k", size, step), _below("r", size, back))

    return a.shape[:-2], statements


def _small_solve(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    a, b = dims_of(square(args, "a", context)), context.type_of(args.b)
    vector = isinstance(b, TensorType) and b.ndim == 1
    return batch_kernel(_solve_kernel)(args, context, name) if a and is_small(a[-1]) and not vector else None


def _solve_call(args: Arguments, builder: Any) -> Expr:
    b = builder.types.type_of(args.b)
    if b.ndim != 1:
        return library("solve", [args.a, args.b], _system(args, builder.types))
    columns = builder.emit(call("expand_dims", args.b, 1))
    return call("squeeze", builder.emit(call("linalg.solve", args.a, columns)), [1])


_REGULAR = np.array([[0.0, 2.0, 1.0], [1.0, 0.5, 0.0], [3.0, 1.0, 2.0]], "float32")


@register_op(
    "linalg.solve",
    [Param("a"), Param("b")],
    lowering=_small_solve,
    decompose=_solve_call,
    numpy=reference("solve", untyped_np.linalg.solve),
    pure=True,
    family="linear_algebra",
    examples=(
        example(_REGULAR, f32(3, "m")),
        example(_REGULAR, f32(3)),
        example(np.stack([_REGULAR, _REGULAR.T]).astype("float64"), typed("float64", 2, 3, 1)),
        example(_UNEVEN, typed("complex64", 3, "m")),
    ),
)
def solve(args: Arguments, context: TypeContext) -> TensorType:
    """x of a x = b: (..., n, n), (..., n, m) -> (..., n, m), or a vector b of one matrix.

    Of up to 64 rows a kernel, by elimination with exchanges of rows, else LAPACK. Errors: ShapeError W201, W202;
    DTypeError W320, W321; ArgumentError at the call for a singular matrix.
    """
    b = context.type_of(args.b)
    if not isinstance(b, TensorType) or b.ndim != 1:
        return _system(args, context)
    a, sizes = square(args, "a", context), dims_of(b)
    if a.ndim not in (2, -1):
        raise shape_error(args, f"a vector b goes with one matrix, a has {a.ndim} dimensions")
    left = dims_of(a)
    if left is not None and sizes is not None:
        context.require_equal(left[0], sizes[0], f"{args.name}: the rows of a and b", args.span)
    return TensorType(sizes, same_dtype(args, a, b), 1)


def _inverse_of(args: Parts) -> Expr:
    ty = square(args.arguments, "x", args.context)
    dims = matrix_dims(args.arguments, ty)
    if not is_small(dims[-1]):
        return library("inv", [args.x], ty)
    one = call("eye", dims[-1], dims[-1], 0, dtype=ty.dtype)
    return call("linalg.solve", args.x, call("broadcast_to", one, dims) if len(dims) > 2 else one)


@composite(
    "linalg.inv",
    [_X],
    family="linear_algebra",
    numpy=reference("inv", untyped_np.linalg.inv),
    examples=(
        example(_REGULAR),
        example(np.stack([_REGULAR, _REGULAR.T]).astype("float64")),
        example(typed("float32", "b", 1, 1), ranges={"x": (0.5, 2)}),
        example(_UNEVEN),
    ),
)
def inv(args: Parts) -> Expr:
    """The inverses of square matrices; an ArgumentError at the call for a singular one."""
    return _inverse_of(args)


def _factors(args: Parts) -> tuple[Expr, Expr]:
    """The diagonal of U, and whether the rows were exchanged an odd number of times (as -1)."""
    ty = square(args.arguments, "x", args.context)
    dims = matrix_dims(args.arguments, ty)
    both = call("linalg.lu_factor", args.x)
    diagonal = call("diagonal", TupleGetItem(both, 0), axis1=-2, axis2=-1)
    places = call("arange", 1, dims[-1] + 1, 1, "int32")
    one = call("full", (), 1.0, ty.dtype)
    signs = call("where", call("equal", TupleGetItem(both, 1), places), one, call("negative", one))
    return diagonal, call("prod", signs, axis=-1)


def _numpy_det(x: Any) -> Any:
    return np.asarray(np.linalg.det(x)).astype(x.dtype)


@composite(
    "linalg.det",
    [_X],
    family="linear_algebra",
    numpy=_numpy_det,
    examples=(
        example(_REGULAR),
        example(f32("b", 2, 2)),
        example(typed("float64", 2, 4, 4)),
        example(typed("complex128", "b", 3, 3)),
    ),
)
def det(args: Parts) -> Expr:
    """The determinants of square matrices: products of the diagonal of U."""
    diagonal, sign = _factors(args)
    return call("multiply", call("prod", diagonal, axis=-1), sign)


def _slogdet_reference(x: Any) -> Any:
    sign, logarithm = np.linalg.slogdet(x)
    return np.asarray(sign).astype(x.dtype), np.asarray(logarithm).astype(x.real.dtype)


def _direction(x: Expr, dtype: str) -> Expr:
    """Numbers over their sizes, 0 of 0; of real ones the signs."""
    if not is_complex(dtype):
        return call("sign", x)
    size = call("abs", x)
    safe = call("where", call("equal", x, 0), call("ones_like", size), size)
    return call("complex", call("divide", call("real", x), safe), call("divide", call("imag", x), safe))


@composite(
    "linalg.slogdet",
    [_X],
    family="linear_algebra",
    numpy=_slogdet_reference,
    examples=(example(_REGULAR), example(typed("float64", "b", 3, 3), ranges={"x": (0.1, 2)}), example(_UNEVEN)),
)
def slogdet(args: Parts) -> Expr:
    """The signs and the logarithms of the sizes of determinants; 0 and -inf of singular matrices.

    The sign of a complex number is the number over its size, and the logarithm is a float.
    """
    diagonal, sign = _factors(args)
    total = call("sum", call("log", call("abs", diagonal)), axis=-1)
    signs = _direction(diagonal, args.type("x").dtype or "")
    return Tuple((call("multiply", call("prod", signs, axis=-1), sign), total))


def _power_reference(x: Any, *, n: int) -> Any:
    return np.linalg.matrix_power(x, n)


@composite(
    "linalg.matrix_power",
    [_X, Param("n", "attr", of="int")],
    family="linear_algebra",
    numpy=reference("matrix_power", _power_reference),
    examples=(example(f32(3, 3), 5), example(f32("b", 2, 2), 0), example(_REGULAR, -2), example(_UNEVEN, -1)),
)
def matrix_power(args: Parts) -> Expr:
    """The n-th power of square matrices, by squares; of the inverses for n below 0."""
    ty = square(args.arguments, "x", args.context)
    dims = matrix_dims(args.arguments, ty)
    base = call("linalg.inv", args.x) if args.n < 0 else args.x
    if args.n == 0:
        one = call("eye", dims[-1], dims[-1], 0, dtype=ty.dtype)
        return call("broadcast_to", one, dims) if len(dims) > 2 else one
    power, result = abs(args.n), None
    while power:
        if power % 2:
            result = base if result is None else call("matmul", result, base)
        power //= 2
        base = call("matmul", base, base) if power else base
    assert result is not None
    return result
