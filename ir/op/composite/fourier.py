"""Discrete Fourier transforms. Complex values stand in a last axis: the real and the imaginary part, as in ONNX.

    R.signal.fft(x)                  (..., n, 1 or 2) -> (..., n, 2)
    R.signal.rfft(x)                 (..., n) -> (..., n // 2 + 1, 2)
    R.signal.irfft(x)                (..., m, 2) -> (..., 2 m - 2)
    R.signal.stft(x, window, step)   (..., t) -> (..., frames, bins, 2)

A length that is known, at most LONGEST and without large prime factors is a series of products with constant matrices,
which runs everywhere: n = r c is r transforms of c after c transforms of r, with roots of one between them. Others are
pocketfft's (NumPy: `weft.fft.*`, by `R.call_py`), where a Python process runs the program.

Source: Cooley and Tukey, An algorithm for the machine calculation of complex Fourier series, 1965.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Expr
from weft.ir.op.common import Dims, axis_of, example, f32, require_dtype, same_dtype, shape_error, tensor, typed
from weft.ir.op.composite.declaring import call
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.types import TensorType

__all__ = ["LONGEST", "is_native"]

LONGEST = 4096
"""The greatest length of a transform that is written as products."""
_SIDE, _PRIME = 64, 128
"""The greatest side of a matrix where there is a choice, and the greatest prime factor that is a matrix itself."""
_NORMS = ("backward", "ortho", "forward")
_NORM = Param("norm", "attr", "backward", "str")
_LENGTH = Param("length", "attr", None, "dim?")

Pair = tuple[Expr, Expr | None]  # real and imaginary part; None is 0


def is_native(length: Dim) -> bool:
    """Whether a transform of the length is written as products.

    >>> is_native(1000), is_native(1009), is_native(2**20)
    (True, False, False)
    """
    return isinstance(length, int) and 0 < length <= LONGEST and _largest_prime(length) <= _PRIME


def _largest_prime(number: int) -> int:
    found, factor = 1, 2
    while factor * factor <= number:
        while number % factor == 0:
            found, number = factor, number // factor
        factor += 1
    return max(found, number)


def _rows(length: int) -> int:
    """The first factor of a length, 1 where it is one matrix."""
    if length <= _SIDE:
        return 1
    return max(factor for factor in range(1, min(_SIDE, math.isqrt(length)) + 1) if length % factor == 0)


@cache
def _roots(
    rows: int, columns: int, length: int, forward: bool, dtype: str, scale: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """exp(+-2 pi i r c / length) at (r, c), scaled: the cosines and the sines."""
    angle = 2 * np.pi / length * (np.outer(np.arange(rows), np.arange(columns)) % length)
    return (np.cos(angle) * scale).astype(dtype), (np.sin(angle) * (-scale if forward else scale)).astype(dtype)


def _combined(x: Pair, roots: tuple[np.ndarray, np.ndarray], by: Any) -> Pair:
    """Complex values times a constant of complex values; `by` is the product."""
    cosine, sine = (Constant(part) for part in roots)
    real, imaginary = x
    if imaginary is None:
        return by(real, cosine), by(real, sine)
    return (
        call("subtract", by(real, cosine), by(imaginary, sine)),
        call("add", by(real, sine), by(imaginary, cosine)),
    )


def _on_left(x: Expr, matrix: Expr) -> Expr:
    return call("matmul", matrix, x)


def _on_right(x: Expr, matrix: Expr) -> Expr:
    return call("matmul", x, matrix)


def _times(x: Expr, factors: Expr) -> Expr:
    return call("multiply", x, factors)


def _each(x: Pair, name: str, *args: Any) -> Pair:
    real, imaginary = x
    return call(name, real, *args), None if imaginary is None else call(name, imaginary, *args)


def _transformed(x: Pair, batch: Dims, length: int, kept: int, forward: bool, dtype: str, scale: float) -> Pair:
    """The first `kept` values of the transform along the last axis, times a number."""
    rows = _rows(length)
    if rows == 1:
        return _combined(x, _roots(length, kept, length, forward, dtype, scale), _on_right)
    columns = length // rows
    x = _each(x, "reshape", (*batch, rows, columns))
    x = _combined(x, _roots(rows, rows, rows, forward, dtype), _on_left)
    x = _combined(x, _roots(rows, columns, length, forward, dtype), _times)
    # Value r + rows * c of the result is value c of row r.
    x = _transformed(x, (*batch, rows), columns, -(-kept // rows), forward, dtype, scale)
    ndim = len(batch)
    x = _each(x, "permute_dims", [*range(ndim), ndim + 1, ndim])
    x = _each(x, "reshape", (*batch, rows * -(-kept // rows)))
    return x if kept % rows == 0 else _each(x, "strided_slice", [ndim], [0], [kept])


def _fitted(x: Expr, axis: int, dims: Dims, length: Dim) -> Expr:
    """The tensor with as many values along an axis as the transform has: the first ones, or zeros after them."""
    size = dims[axis]
    if isinstance(size, int) and isinstance(length, int) and size < length:
        widths = [0] * (2 * len(dims))
        widths[2 * axis + 1] = length - size
        return call("nn.pad", x, widths)
    return x if size == length else call("strided_slice", x, [axis], [0], [length])


def _scale(norm: str, length: int, forward: bool) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(length)
    return 1 / length if forward == (norm == "forward") else 1.0


class _Signal:
    """The operand of a transform: its type, the axis of its values and how many the transform takes."""

    def __init__(self, args: Arguments, context: TypeContext, parts: tuple[int, ...]) -> None:
        self.args, self.ty = args, tensor(args, "x", context)
        require_dtype(args, "x", self.ty, "float")
        if args.norm not in _NORMS:
            raise shape_error(args, f"the norm is one of {', '.join(_NORMS)}, got {args.norm!r}", "W205")
        dims = dims_of(self.ty)
        if dims is None:
            raise shape_error(args, "the sizes of x have to be known", "W202", "use R.match_cast to name them")
        if len(dims) < (2 if parts else 1):
            raise shape_error(args, f"x has too few dimensions: {len(dims)}")
        self.dims, self.dtype = dims, str(self.ty.dtype)
        self.wide = "float64" if self.dtype == "float64" else "float32"
        self.axis = axis_of(args, args.axis, len(dims))
        self.parts = self._parts(parts)

    def _parts(self, allowed: tuple[int, ...]) -> int:
        if not allowed:
            return 0
        if self.dims[-1] not in allowed:
            shown = " or ".join(map(str, allowed))
            raise self.error(f"the last axis holds the parts of complex values, {shown} of them, not {self.dims[-1]}")
        if self.axis == len(self.dims) - 1:
            raise self.error("the last axis holds the parts of complex values: the transform is along another one")
        return int(str(self.dims[-1]))

    def error(self, message: str) -> WeftError:
        return shape_error(self.args, message, "W205")

    def length(self, default: Dim) -> Dim:
        """How many values the transform takes."""
        length = default if self.args.length is None else self.args.length
        if isinstance(length, int) and length < 1:
            raise self.error(f"a transform of {length} values")
        return length

    @property
    def rest(self) -> Dims:
        """The sizes of the axes that are neither that of the values nor that of their parts."""
        return tuple(size for axis, size in enumerate(self.values) if axis != self.axis)

    @property
    def values(self) -> Dims:
        """The sizes without the axis of the parts."""
        return self.dims[:-1] if self.parts else self.dims

    def moved(self, x: Expr) -> Expr:
        """The axis of the values as the last one."""
        order = [*(axis for axis in range(len(self.values)) if axis != self.axis), self.axis]
        return x if order == sorted(order) else call("permute_dims", x, order)

    def back(self, x: Expr) -> Expr:
        """The last axis where the values stood, in the dtype of the operand."""
        ndim, x = len(self.values), call("astype", x, self.dtype)
        order = [*range(self.axis), ndim - 1, *range(self.axis, ndim - 1)]
        return x if order == sorted(order) else call("permute_dims", x, order)

    def components(self, length: Dim) -> Pair:
        """Real and imaginary part with the values on the last axis, as many as the transform takes."""
        last = len(self.dims) - 1
        x = _fitted(call("astype", self.args.x, self.wide), self.axis, self.dims, length)
        if not self.parts:
            return self.moved(x), None
        found = [call("strided_slice", x, [last], [part], [part + 1]) for part in range(self.parts)]
        real, *more = (self.moved(call("squeeze", part, [last])) for part in found)
        return real, more[0] if more else None

    def with_size(self, size: Dim, *parts: int) -> TensorType:
        """The type with another size along the axis."""
        dims = list(self.values)
        dims[self.axis] = size
        return TensorType((*dims, *parts), self.ty.dtype)

    def native(self, length: Dim) -> bool:
        """Whether products do it: the values that are there are known too where they are not as many."""
        known = self.args.length is None or isinstance(self.dims[self.axis], int)
        return known and is_native(length)

    def library(self, name: str, length: Dim, ty: TensorType) -> Expr:
        """A call of pocketfft along the axis."""
        numbers = [call("full", (), number, "int64") for number in (length, self.axis)]
        operands = (call("astype", self.args.x, self.wide), *numbers)
        wide = TensorType(ty.dims, self.wide)
        return call("astype", call("call_py", f"weft.fft.{name}_{self.args.norm}", operands, wide), self.dtype)


def _stacked(signal: _Signal, x: Pair) -> Expr:
    real, imaginary = x
    assert imaginary is not None
    return call("stack", [signal.back(real), signal.back(imaginary)], len(signal.values))


# The operators


def _complex(x: np.ndarray) -> np.ndarray:
    wide = x.astype("float64")
    return wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]


def _split(x: Any, dtype: Any) -> np.ndarray:
    return np.stack([x.real, x.imag], -1).astype(dtype)


def _fft_reference(x: Any, *, length: Any, axis: int, inverse: bool, norm: Any) -> Any:
    axis = axis % x.ndim
    return _split((np.fft.ifft if inverse else np.fft.fft)(_complex(x), length, axis, norm), x.dtype)


def _fft(args: Arguments, builder: Any) -> Expr:
    signal, forward = _Signal(args, builder.types, (1, 2)), not args.inverse
    length = signal.length(signal.dims[signal.axis])
    if not signal.native(length):
        return signal.library("fft" if forward else "ifft", length, signal.with_size(length, 2))
    count = int(str(length))
    x = signal.components(count)
    scale = _scale(args.norm, count, forward)
    return _stacked(signal, _transformed(x, signal.rest, count, count, forward, signal.wide, scale))


@register_op(
    "signal.fft",
    [Param("x"), _LENGTH, Param("axis", "attr", -2, "int"), Param("inverse", "attr", False, "bool"), _NORM],
    pure=True,
    family="signal",
    decompose=_fft,
    numpy=_fft_reference,
    examples=(
        example(f32("b", 8, 1)),
        example(typed("float64", 5, 3, 2), axis=0, inverse=True),
        example(f32(2, "n", 2), norm="ortho", least=1),
        example(f32(3, 2), length=70),
    ),
)
def fft(args: Arguments, context: TypeContext) -> TensorType:
    """X[k] = sum of x[j] exp(-2 pi i j k / n) along an axis: (..., n, 1 or 2) -> (..., n, 2); the inverse is exp(2 pi i
    j k / n).

    length is n where it is not the size of the axis: values are left out, or zeros added. norm "backward" divides the
    inverse by n, "forward" the other, "ortho" each by the root. Errors: ShapeError W202, W203, W205; DTypeError W321.
    """
    signal = _Signal(args, context, (1, 2))
    return signal.with_size(signal.length(signal.dims[signal.axis]), 2)


def _rfft_reference(x: Any, *, length: Any, axis: int, norm: Any) -> Any:
    return _split(np.fft.rfft(x.astype("float64"), length, axis, norm), x.dtype)


def _rfft(args: Arguments, builder: Any) -> Expr:
    signal = _Signal(args, builder.types, ())
    length = signal.length(signal.dims[signal.axis])
    if not signal.native(length):
        return signal.library("rfft", length, signal.with_size(length // 2 + 1, 2))
    count = int(str(length))
    x, scale = signal.components(count), _scale(args.norm, count, True)
    return _stacked(signal, _transformed(x, signal.rest, count, count // 2 + 1, True, signal.wide, scale))


@register_op(
    "signal.rfft",
    [Param("x"), _LENGTH, Param("axis", "attr", -1, "int"), _NORM],
    pure=True,
    family="signal",
    decompose=_rfft,
    numpy=_rfft_reference,
    examples=(
        example(f32("b", 75)),
        example(typed("float64", 5, 2), axis=0, norm="forward"),
        example(f32(2, "n"), least=1),
        example(f32(2, 9), length=6),
    ),
)
def rfft(args: Arguments, context: TypeContext) -> TensorType:
    """The first half of the transform of real values, which says the rest: (..., n) -> (..., n // 2 + 1, 2).

    length and norm are those of signal.fft. Errors: ShapeError W202, W203, W205; DTypeError W321.
    """
    signal = _Signal(args, context, ())
    return signal.with_size(signal.length(signal.dims[signal.axis]) // 2 + 1, 2)


def _irfft_reference(x: Any, *, length: Any, axis: int, norm: Any) -> Any:
    return np.fft.irfft(_complex(x), length, axis % x.ndim, norm).astype(x.dtype)


def _whole(x: Pair, length: int, ndim: int, dtype: str) -> Pair:
    """The values of a spectrum of real values, of which the first half is given."""
    half, axis = length // 2 + 1, ndim - 1
    real, imaginary = x
    assert imaginary is not None
    ends = [0, half - 1] if length % 2 == 0 else [0]
    # What stands for no frequency, and for the highest one, is real: an imaginary part that is given is not seen.
    mask = np.ones(half)
    mask[ends] = 0
    imaginary = call("multiply", imaginary, Constant(mask.astype(dtype)))
    start, stop = 1, half - 1 if length % 2 == 0 else half
    if start >= stop:
        return real, imaginary
    rest = [call("flip", call("strided_slice", part, [axis], [start], [stop]), axis) for part in (real, imaginary)]
    return (
        call("concat", [real, rest[0]], axis),
        call("concat", [imaginary, call("negative", rest[1])], axis),
    )


def _irfft(args: Arguments, builder: Any) -> Expr:
    signal = _Signal(args, builder.types, (2,))
    length = signal.length(2 * signal.dims[signal.axis] - 2)
    if not signal.native(length):
        return signal.library("irfft", length, signal.with_size(length))
    count = int(str(length))
    half = _whole(signal.components(count // 2 + 1), count, len(signal.values), signal.wide)
    real, _ = _transformed(half, signal.rest, count, count, False, signal.wide, _scale(args.norm, count, False))
    return signal.back(real)


@register_op(
    "signal.irfft",
    [Param("x"), _LENGTH, Param("axis", "attr", -2, "int"), _NORM],
    pure=True,
    family="signal",
    decompose=_irfft,
    numpy=_irfft_reference,
    examples=(
        example(f32("b", 5, 2), length=9),
        example(typed("float64", 5, 2, 2), axis=0),
        example(f32(2, "n", 2), least=2),
        example(f32(1, 40, 2), length=78, norm="ortho"),
    ),
)
def irfft(args: Arguments, context: TypeContext) -> TensorType:
    """The real values of which signal.rfft gives the transform: (..., m, 2) -> (..., length), by default 2 m - 2.

    Errors: ShapeError W202, W203, W205; DTypeError W321.
    """
    signal = _Signal(args, context, (2,))
    return signal.with_size(signal.length(2 * signal.dims[signal.axis] - 2))


# Short-time transforms


def _stft_reference(x: Any, window: Any, *, step: int, onesided: bool) -> Any:
    frames = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), window.shape[0], -1)[..., ::step, :]
    transform = np.fft.rfft if onesided else np.fft.fft
    return _split(transform(frames * window.astype("float64"), axis=-1), x.dtype)


def _frames(args: Arguments, context: TypeContext) -> tuple[Dims, Dim, Dim]:
    """The sizes of the batch, how many frames there are and how long each is."""
    x, window = tensor(args, "x", context), tensor(args, "window", context)
    require_dtype(args, "x", x, "float")
    same_dtype(args, x, window)
    dims, sizes = dims_of(x), dims_of(window)
    if not dims or sizes is None or len(sizes) != 1:
        raise shape_error(args, "x has a known shape (..., t), and window one of (n,)", "W202")
    if args.step < 1:
        raise shape_error(args, f"the step is at least 1, got {args.step}", "W205")
    size = sizes[0]
    if size == 0:
        raise shape_error(args, "the window is empty", "W205")
    context.require_le(1, size, f"{args.name}: the window is not empty", args.span)
    context.require_le(size, dims[-1], f"{args.name}: the window is no longer than x", args.span)
    return dims[:-1], (dims[-1] - size) // args.step + 1, size


def _stft(args: Arguments, builder: Any) -> Expr:
    batch, count, size = _frames(args, builder.types)
    starts = call("multiply", call("arange", 0, count, 1, "int64"), args.step)
    places = call("add", call("expand_dims", starts, 1), call("arange", 0, size, 1, "int64"))
    frames = call("multiply", call("take", args.x, places, len(batch)), args.window)
    if args.onesided:
        return call("signal.rfft", frames)
    return call("signal.fft", call("expand_dims", frames, len(batch) + 2))


@register_op(
    "signal.stft",
    [Param("x"), Param("window"), Param("step", "attr", of="int"), Param("onesided", "attr", True, "bool")],
    pure=True,
    family="signal",
    decompose=_stft,
    numpy=_stft_reference,
    examples=(
        example(f32("b", 20), f32(8), 4),
        example(typed("float64", 17), typed("float64", 5), 5, onesided=False),
    ),
)
def stft(args: Arguments, context: TypeContext) -> TensorType:
    """Transforms of the frames of a signal, one every `step` values, each times the window: (..., t), (n,) -> (...,
    (t - n) // step + 1, n // 2 + 1, 2), with n bins where it is not onesided.

    Errors: ShapeError W201 a window longer than x, W202, W205; DTypeError W320, W321.
    """
    batch, count, size = _frames(args, context)
    return TensorType((*batch, count, size // 2 + 1 if args.onesided else size, 2), tensor(args, "x", context).dtype)
