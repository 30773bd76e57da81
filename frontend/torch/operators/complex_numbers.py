"""Complex numbers, Fourier transforms and short-time transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.dtypes import is_complex, is_float, part
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.operators.elementwise import sign
from weft.frontend.torch.table import row
from weft.ir.graph import Expr
from weft.script import relax as R

# Parts ----------------------------------------------------------------------------------------------------------------


def polar(n: FxNode, length: Expr, angle: Expr) -> Expr:
    """The numbers of a length and an angle."""
    length, angle = n.emit(length), n.emit(angle)
    return R.complex(R.multiply(length, R.cos(angle)), R.multiply(length, R.sin(angle)))


def absolute(n: FxNode, x: Expr) -> Expr:
    """|x|, of complex numbers a float."""
    return R.abs(x if is_complex(n.dtype(x)) else n.cast(x, n.dtype_out))


def sgn(n: FxNode, x: Expr) -> Expr:
    """x / |x|, 0 of 0; of real numbers the sign."""
    if not is_complex(n.dtype(x)):
        return sign(n, x)
    x = n.emit(x)
    length = n.emit(R.abs(x))
    zero = R.equal(length, n.cast(0, n.dtype(length)))
    safe = R.where(zero, R.ones_like(length), length)
    return R.complex(R.divide(R.real(x), safe), R.divide(R.imag(x), safe))


def angle(n: FxNode, x: Expr) -> Expr:
    """The angle of numbers in the plane."""
    return R.angle(x if is_complex(n.dtype(x)) else n.cast(x, n.dtype_out))


def adjoint(n: FxNode, x: Expr) -> Expr:
    """The conjugate of matrices with rows and columns exchanged."""
    rank = n.rank(x)
    x = R.conj(x) if is_complex(n.dtype(x)) else x
    return R.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


row("view_as_real", lambda n, x: R.view_as_real(x))
row("view_as_complex", lambda n, x: R.view_as_complex(x))
row("complex", lambda n, real, imag: R.complex(real, imag))
row("polar", polar)
row("real", lambda n, x: R.real(x))
row("imag", lambda n, x: R.imag(x))
row("_conj conj conj_physical _conj_physical", lambda n, x: R.conj(x))
row("resolve_conj resolve_neg", lambda n, x: x)
row("_neg_view", lambda n, x: R.negative(x))
row("abs", absolute)
row("sgn", sgn)
row("angle", angle)
row("mH adjoint", adjoint)

# Fourier transforms ---------------------------------------------------------------------------------------------------


def _operand(n: FxNode, x: Expr) -> Expr:
    """x in the precision of the result."""
    dtype = n.dtype(x)
    return x if is_complex(dtype) else n.cast(x, part(n.dtype_out))


def line(operator: Callable[..., Expr]) -> Any:
    """A transform along one axis."""

    def made(n: FxNode, x: Expr, length: Any = None, dim: int = -1, norm: str | None = None) -> Expr:
        return operator(_operand(n, x), length, dim, norm or "backward")

    return made


def _axes(n: FxNode, x: Expr, s: Any, dim: Any) -> tuple[list[int], list[Any]]:
    """The axes of a transform along several, and how many values it takes along each; -1 is as many as there are."""
    rank, shape = n.rank(x), n.shape(x)
    if dim is None:
        dim = range(rank) if s is None else range(rank - len(s), rank)
    axes = [axis % rank for axis in dim]
    sizes = [-1] * len(axes) if s is None else list(s)
    return axes, [shape[axis] if size == -1 else size for axis, size in zip(axes, sizes, strict=True)]


_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def planes(operator: Callable[..., Expr], default: Any = None, *, half: bool = False, hermitian: bool = False) -> Any:
    """A transform along several axes; `half` of which the operand has half of the last one."""

    def made(n: FxNode, x: Expr, s: Any = None, dim: Any = default, norm: str | None = None) -> Expr:
        x, norm = _operand(n, x), norm or "backward"
        axes, sizes = _axes(n, x, s, dim)
        if half and (s is None or s[-1] == -1):
            sizes[-1] = 2 * (n.shape(x)[axes[-1]] - 1)
        norm = _OTHER[norm] if hermitian else norm
        if hermitian and half:
            x = R.conj(x) if is_complex(n.dtype(x)) else x
        found = operator(x, sizes, axes, norm)
        return R.conj(found) if hermitian and not half else found

    return made


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    row(f"fft_{_name}", line(getattr(R.fft, _name)))
for _name in ("fft", "ifft", "rfft", "irfft"):
    row(f"fft_{_name}n", planes(getattr(R.fft, f"{_name}n"), half=_name == "irfft"))
    row(f"fft_{_name}2", planes(getattr(R.fft, f"{_name}n"), (-2, -1), half=_name == "irfft"))
for _suffix, _default in (("n", None), ("2", (-2, -1))):
    row(f"fft_hfft{_suffix}", planes(R.fft.irfftn, _default, half=True, hermitian=True))
    row(f"fft_ihfft{_suffix}", planes(R.fft.rfftn, _default, hermitian=True))


def _norm(mode: int, forward: bool) -> str:
    """Which direction is divided: 0 none is, 1 by the root, 2 this one."""
    if mode == 1:
        return "ortho"
    return "forward" if (mode == 2) == forward else "backward"


def c2c(n: FxNode, x: Expr, dim: Any, normalization: int, forward: bool) -> Expr:
    """Transforms of complex numbers, in the terms of ATen."""
    operator = R.fft.fftn if forward else R.fft.ifftn
    return operator(x, None, list(dim), _norm(normalization, forward)) if dim else x


def r2c(n: FxNode, x: Expr, dim: Any, normalization: int, onesided: bool) -> Expr:
    """Transforms of real numbers."""
    operator = R.fft.rfftn if onesided else R.fft.fftn
    return operator(x, None, list(dim), _norm(normalization, True))


def c2r(n: FxNode, x: Expr, dim: Any, normalization: int, last_dim_size: Any) -> Expr:
    """The real numbers of halves of transforms."""
    axes, sizes = _axes(n, x, None, dim)
    return R.fft.irfftn(x, [*sizes[:-1], last_dim_size], axes, _norm(normalization, False))


def frequencies(operator: Callable[..., Expr]) -> Any:
    """The frequencies of a transform."""
    return lambda n, count, d=1.0, **options: operator(count, float(d), n.dtype_out)


def shifted(operator: Callable[..., Expr]) -> Any:
    """Values moved by half of the axes."""

    def made(n: FxNode, x: Expr, dim: Any = None) -> Expr:
        return operator(x, None if dim is None else list(n.axes(x, dim)))

    return made


row("_fft_c2c", c2c)
row("_fft_r2c", r2c)
row("_fft_c2r", c2r)
row("fft_fftshift", shifted(R.fft.fftshift))
row("fft_ifftshift", shifted(R.fft.ifftshift))
row("fft_fftfreq", frequencies(R.fft.fftfreq))
row("fft_rfftfreq", frequencies(R.fft.rfftfreq))

# Short-time transforms ------------------------------------------------------------------------------------------------


def _window(n: FxNode, window: Any, length: int, size: int, dtype: str) -> Expr:
    """The window of a frame, zeros around one that is shorter."""
    found = R.ones((length,), dtype) if window is None else n.cast(window, dtype)
    before = (size - length) // 2
    return found if length == size else R.nn.pad(found, [before, size - length - before])


def _frames(n: FxNode, window: Any, win_length: Any, hop_length: Any, n_fft: int, dtype: str) -> tuple[Expr, int]:
    """The weights of the values of a frame, and from one frame to the next."""
    if window is not None and is_complex(n.dtype(window)):
        raise Unsupported("a complex window")
    weights = _window(n, window, n_fft if win_length is None else win_length, n_fft, dtype)
    return weights, n_fft // 4 if hop_length is None else hop_length


def stft(
    n: FxNode,
    x: Expr,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Expr:
    """Transforms of frames, bins before frames."""
    dtype = n.dtype(x)
    if not is_float(dtype) or align_to_window:
        raise Unsupported("frames of complex numbers, or aligned to the window")
    weights, step = _frames(n, window, win_length, hop_length, n_fft, dtype)
    pairs = R.signal.stft(x, weights, step, onesided is None or bool(onesided))
    rank = n.rank(x)
    pairs = R.permute_dims(pairs, [*range(rank - 1), rank, rank - 1, rank + 1])
    if normalized:
        pairs = R.multiply(pairs, n.cast(1 / math.sqrt(n_fft), dtype))
    return R.view_as_complex(n.emit(pairs)) if return_complex else pairs


def istft(
    n: FxNode,
    x: Expr,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: bool = True,
    normalized: bool = False,
    onesided: Any = None,
    length: Any = None,
    return_complex: bool = False,
) -> Expr:
    """The signal of transforms of its frames."""
    if return_complex or not is_complex(n.dtype(x)):
        raise Unsupported("a complex signal")
    dtype, rank = part(n.dtype(x)), n.rank(x)
    weights, step = _frames(n, window, win_length, hop_length, n_fft, dtype)
    pairs = R.permute_dims(R.view_as_real(x), [*range(rank - 2), rank - 1, rank - 2, rank])
    if normalized:
        pairs = R.multiply(pairs, n.cast(math.sqrt(n_fft), dtype))
    half = onesided or (onesided is None and n.shape(x)[rank - 2] != n_fft)
    if not half:  # of all bins PyTorch reads the first half, for a signal of real numbers
        pairs = R.strided_slice(n.emit(pairs), [rank - 1], [0], [n_fft // 2 + 1])
    signal = n.emit(R.signal.istft(n.emit(pairs), weights, step, True))
    start, total = n_fft // 2 if center else 0, n.shape(signal)[-1]
    end = total - start if length is None else start + length
    axis = n.rank(signal) - 1
    if isinstance(end, int) and isinstance(total, int) and end > total:
        signal = R.nn.pad(signal, [*[0] * (2 * axis), 0, end - total])
    return R.strided_slice(signal, [axis], [start], [end])


row("stft", stft)
row("istft", istft)
