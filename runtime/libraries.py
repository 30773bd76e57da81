"""Functions of NumPy's linear algebra (LAPACK) and Fourier transforms (pocketfft), registered under names that compiled
programs call: `weft.linalg.svd`, `weft.fft.rfft_backward`.

They take and give arrays, batches of matrices included. A matrix that a function has no answer for is an ArgumentError,
as it is in kernels. Complex values stand in a last axis of two: the real and the imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.runtime.registry import register_func

__all__ = ["cholesky", "eigh", "inv", "lstsq", "pinv", "qr", "qr_complete", "solve", "svd", "svd_full"]

Function = Callable[..., Any]


def _checked(function: Function) -> Function:
    """The function, registered, with an error of NumPy as one of weft."""

    @wraps(function)
    def checked(*arrays: Any) -> Any:
        try:
            found = function(*arrays)
        except np.linalg.LinAlgError as error:
            name = function.__name__.partition("_")[0]
            raise ArgumentError(f"R.linalg.{name}: {str(error).lower()}") from None
        return tuple(found) if isinstance(found, (tuple, list)) else found

    return register_func(f"weft.linalg.{function.__name__}", checked)


@_checked
def cholesky(x: Any) -> Any:
    """The lower factor L of x = L L^T."""
    return np.linalg.cholesky(x)


@_checked
def solve(a: Any, b: Any) -> Any:
    """x of a x = b; b has as many dimensions as a, or is one vector."""
    return np.linalg.solve(a, b)


@_checked
def inv(x: Any) -> Any:
    """The inverse."""
    return np.linalg.inv(x)


@_checked
def qr(x: Any) -> Any:
    """q and r, of which q has as many columns as the shorter side."""
    return np.linalg.qr(x, "reduced")


@_checked
def qr_complete(x: Any) -> Any:
    """q, which is square, and r."""
    return np.linalg.qr(x, "complete")


@_checked
def eigh(x: Any) -> Any:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, from their lower triangles."""
    return np.linalg.eigh(x, "L")


@_checked
def svd(x: Any) -> Any:
    """u, s and v^T, of which u and v have as many columns as the shorter side."""
    return np.linalg.svd(x, full_matrices=False)


@_checked
def svd_full(x: Any) -> Any:
    """u, s and v^T, of which u and v are square."""
    return np.linalg.svd(x, full_matrices=True)


@_checked
def pinv(x: Any, rcond: Any) -> Any:
    """The inverse of Moore and Penrose; singular values up to rcond times the greatest count as 0."""
    return np.linalg.pinv(x, rcond=np.asarray(rcond, x.real.dtype)).astype(x.dtype)


@_checked
def lstsq(a: Any, b: Any) -> Any:
    """The x with the least |a x - b|, the shortest of several."""
    if a.ndim == 2:
        return np.linalg.lstsq(a, b, rcond=None)[0].astype(a.dtype)
    rows = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    first, second = (np.broadcast_to(part, (*rows, *part.shape[-2:])) for part in (a, b))
    out = np.empty((*rows, a.shape[-1], b.shape[-1]), a.dtype)
    for place in np.ndindex(*rows):
        out[place] = np.linalg.lstsq(first[place], second[place], rcond=None)[0]
    return out


def _complex(x: Any) -> Any:
    if x.shape[-1] == 1:
        return x[..., 0]
    return np.ascontiguousarray(x).view("complex64" if x.dtype == "float32" else "complex128")[..., 0]


def _transform(name: str, norm: str) -> Function:
    """A transform along an axis, of as many values as it is told, registered."""
    function = getattr(np.fft, name)

    def transform(x: Any, length: Any, axis: Any) -> Any:
        if length < 1:
            raise ShapeError(f"R.fft: invalid number of values ({int(length)}), it is at least 1", code="W224")
        found = function(x if name == "rfft" else _complex(x), int(length), int(axis), norm)
        return found if name == "irfft" else np.ascontiguousarray(found)[..., None].view(found.real.dtype)

    return register_func(f"weft.fft.{name}_{norm}", transform)


for _name in ("fft", "ifft", "rfft", "irfft"):
    for _norm in ("backward", "ortho", "forward"):
        _transform(_name, _norm)
