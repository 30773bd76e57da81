"""Factors, inverses and determinants of matrices, and systems of equations.

Where PyTorch gives a number that says whether a matrix was singular, that is 0: ours raises at the call for what has no
result.
"""

from __future__ import annotations

from typing import Any

from weft.dtypes import is_complex
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.operators.complex_numbers import adjoint
from weft.frontend.torch.table import row
from weft.ir.graph import Expr, TupleGetItem
from weft.script import relax as R


def _turned(n: FxNode, x: Expr) -> Expr:
    """Matrices with rows and columns exchanged."""
    rank = n.rank(x)
    return R.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


def _parts(n: FxNode, whole: Expr, count: int) -> list[Expr]:
    var = n.emit(whole)
    return [TupleGetItem(var, index) for index in range(count)]


def _fine(n: FxNode, x: Expr) -> Expr:
    """The number for each matrix that says that it was not singular."""
    return R.zeros(n.shape(x)[:-2], "int32")


def _with_factors(n: FxNode, results: list[Any], x: Expr, first: int) -> list[Any]:
    """Results followed by the factors L and U with the exchanges of rows, where somebody uses them."""
    wanted = n.wanted(first) or n.wanted(first + 1)
    return [*results, *(_parts(n, R.linalg.lu_factor(x), 2) if wanted else (None, None))]


def determinant(n: FxNode, x: Expr) -> Any:
    """The determinants, and factors."""
    return _with_factors(n, [R.linalg.det(x)], x, 1)


def log_determinant(n: FxNode, x: Expr) -> Any:
    """The signs and the logarithms of the sizes of determinants, and factors."""
    return _with_factors(n, _parts(n, R.linalg.slogdet(x), 2), x, 2)


def solve(n: FxNode, a: Expr, b: Expr, *, left: bool = True, check_errors: bool = False) -> Any:
    """x of a x = b, or of x a = b."""
    vector = n.rank(b) == n.rank(a) - 1
    wide = n.emit(R.expand_dims(b, [n.rank(b)]) if vector else b)
    if left:
        x = R.linalg.solve(a, wide)
    else:
        x = _turned(n, n.emit(R.linalg.solve(n.emit(_turned(n, a)), n.emit(_turned(n, wide)))))
    x = R.squeeze(n.emit(x), [n.rank(b)]) if vector else x
    return [*_with_factors(n, [x], a, 1), _fine(n, a)]


def cholesky(n: FxNode, x: Expr, *, upper: bool = False, check_errors: bool = False) -> Any:
    """The triangular factor of positive definite matrices."""
    return [R.linalg.cholesky(x, upper), _fine(n, x)]


def singular_values(n: FxNode, x: Expr, full: bool = False, vectors: bool = True, *, driver: Any = None) -> Any:
    """u, the singular values, and v^T."""
    found = _parts(n, R.linalg.svd(x, full), 3)
    none = R.zeros((0,), n.dtype(x))
    return found if vectors else [none, found[1], none]


def eigenvalues(n: FxNode, x: Expr, triangle: str = "L", vectors: bool = True) -> Any:
    """The eigenvalues and eigenvectors of symmetric matrices, one of whose triangles is read."""
    values, columns = _parts(n, R.linalg.eigh(x if triangle == "L" else n.emit(adjoint(n, x))), 2)
    return [values, columns if vectors else R.zeros((0,), n.dtype(x))]


def factors(n: FxNode, x: Expr, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """L and U in one matrix, and the exchanges of rows."""
    if not pivot:
        raise Unsupported("factors without exchanges of rows")
    return [*_parts(n, R.linalg.lu_factor(x), 2), _fine(n, x)]


def triangular(n: FxNode, a: Expr, b: Expr, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Expr:
    """x of a x = b, or of x a = b, a triangular."""
    dims = n.dims_out[:-2]
    a, b = (n.emit(R.broadcast_to(v, (*dims, *n.shape(v)[-2:]))) for v in (a, b))
    if left:
        return R.linalg.triangular_solve(a, b, upper, False, unitriangular)
    found = n.emit(R.linalg.triangular_solve(a, n.emit(_turned(n, b)), upper, True, unitriangular))
    return _turned(n, found)


def triangular_solve(
    n: FxNode, b: Expr, a: Expr, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """x of a x = b, a triangular; and a."""
    dims = n.dims_out[:-2]
    a, b = (n.emit(R.broadcast_to(v, (*dims, *n.shape(v)[-2:]))) for v in (a, b))
    return [R.linalg.triangular_solve(a, b, upper, transpose, unitriangular), a]


def _substituted(n: FxNode, factor: Expr, b: Expr, upper: bool, turned: bool) -> Expr:
    """x of factor x = b, or of the adjoint of the factor."""
    if not (turned and is_complex(n.dtype(b))):
        return n.emit(R.linalg.triangular_solve(factor, b, upper, turned))
    return n.emit(R.conj(n.emit(R.linalg.triangular_solve(factor, n.emit(R.conj(b)), upper, True))))


def solve_by_cholesky(n: FxNode, b: Expr, factor: Expr, upper: bool = False) -> Expr:
    """x of (L L^H) x = b."""
    dims = n.dims_out[:-2]
    factor, b = (n.emit(R.broadcast_to(v, (*dims, *n.shape(v)[-2:]))) for v in (factor, b))
    return _substituted(n, factor, _substituted(n, factor, b, upper, upper), upper, not upper)


def inverse_by_cholesky(n: FxNode, factor: Expr, upper: bool = False) -> Expr:
    """The inverse of L L^H."""
    size, dtype = n.shape(factor)[-1], n.dtype(factor)
    unit = n.emit(R.broadcast_to(R.eye(size, size, 0, dtype), n.shape(factor)))
    return _substituted(n, factor, _substituted(n, factor, unit, upper, upper), upper, not upper)


def pseudo_inverse(
    n: FxNode, x: Expr, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Expr:
    """The inverse of Moore and Penrose."""
    if hermitian:  # one triangle is read
        x = n.emit(R.add(R.tril(x), n.emit(adjoint(n, n.emit(R.tril(x, -1))))))
    share = rcond if rcond is not None else rtol
    if atol is not None or isinstance(share, Expr):
        raise Unsupported("bounds that are tensors, or not shares of the greatest singular value")
    return R.linalg.pinv(x) if share is None else R.linalg.pinv(x, float(share))


row("_linalg_det", determinant)
row("_linalg_slogdet", log_determinant)
row("_linalg_solve_ex", solve)
row("linalg_inv_ex", lambda n, x, **o: [R.linalg.inv(x), _fine(n, x)])
row("linalg_cholesky_ex", cholesky)
row("linalg_qr", lambda n, x, mode="reduced": _parts(n, R.linalg.qr(x, mode), 2) if mode != "r" else _only_r(n, x))
row("_linalg_svd", singular_values)
row("_linalg_eigh", eigenvalues)
row("linalg_lu_factor_ex", factors)
row("linalg_solve_triangular", triangular)
row("triangular_solve", triangular_solve)
row("cholesky_solve", solve_by_cholesky)
row("cholesky_inverse", inverse_by_cholesky)
row("linalg_pinv", pseudo_inverse)


def _only_r(n: FxNode, x: Expr) -> list[Expr]:
    return [R.zeros((0,), n.dtype(x)), _parts(n, R.linalg.qr(x, "reduced"), 2)[1]]
