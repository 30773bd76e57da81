"""Fourier transforms of complex tensors, with the meaning of numpy.fft: `R.fft.fft`, `rfft`, `fftn`, ...

    R.fft.fft(x, n, axis, norm)      R.signal.fft over the memory of x seen as pairs of floats
    R.fft.fftn(x, s, axes, norm)     R.fft.fft along each axis, the last one first
    R.fft.hfft(x)                    R.fft.irfft of the conjugate, normed the other way

There is one implementation, that of `fourier`: products where the length is known, at most 4096 and without large prime
factors, which run everywhere; pocketfft's else, where a Python process runs the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.dtypes import is_complex, is_float, part
from weft.ir.deduction.infer import infer_type
from weft.ir.dim import Dim, symbol
from weft.ir.graph import Expr, PrimValue
from weft.ir.op.common import axes_of, dtype_error, example, f32, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Param
from weft.ir.op.elementwise.complex_numbers import as_complex, as_real
from weft.ir.types import PrimType, TensorType

__all__: list[str] = []

_LENGTH, _AXIS = Param("n", "attr", None, "dim?"), Param("axis", "attr", -1, "int")
_SIZES = Param("s", "attr", None, "dims?")
_NORM = Param("norm", "attr", "backward", "str")
_OTHER_NORM: dict[Any, Any] = {"backward": "forward", "forward": "backward"}


def _of(args: Parts, x: Expr) -> TensorType:
    ty = infer_type(x, args.context)
    if isinstance(ty, PrimType):
        return TensorType((), ty.dtype)
    assert isinstance(ty, TensorType)
    return ty


def _operand(args: Parts, of_reals: bool = False) -> Expr:
    """x, whose dtype has parts of float32 or float64; DTypeError W321 for others."""
    ty = args.require("x", "float" if of_reals else "inexact")
    args.dims("x")
    if part(str(ty.dtype)) not in ("float32", "float64"):
        message = f"x must be float32, float64 or complex, got {ty.dtype}"
        raise dtype_error(args.arguments, message, "W321", 'convert it: R.astype(x, "float32")')
    return args.x


def _pairs(args: Parts, x: Expr) -> Expr:
    """Numbers as their parts along a new last axis: one of real numbers."""
    ty = _of(args, x)
    return as_real(x, ty) if is_complex(str(ty.dtype)) else call("expand_dims", x, -1)


def _joined(args: Parts, pairs: Expr) -> Expr:
    return as_complex(pairs, _of(args, pairs))


def _fft(args: Parts, x: Expr, length: Dim | None, axis: int, norm: str, inverse: bool) -> Expr:
    axis = args.place_of(axis, _of(args, x).ndim)
    pairs = call("signal.fft", _pairs(args, x), length=length, axis=axis, inverse=inverse, norm=norm)
    return _joined(args, pairs)


def _rfft(args: Parts, x: Expr, length: Dim | None, axis: int, norm: str) -> Expr:
    axis = args.place_of(axis, _of(args, x).ndim)
    return _joined(args, call("signal.rfft", x, length=length, axis=axis, norm=norm))


def _irfft(args: Parts, x: Expr, length: Dim | None, axis: int, norm: str) -> Expr:
    ty = _of(args, x)
    axis = args.place_of(axis, ty.ndim)
    if not is_complex(str(ty.dtype)):
        x = call("complex", x, call("zeros_like", x))
    return call("signal.irfft", _pairs(args, x), length=length, axis=axis, norm=norm)


# ---------------------------------------------------------------------------------------------------------------------
# Along one axis
# ---------------------------------------------------------------------------------------------------------------------

_LINES = (
    example(typed("complex64", "b", 8)),
    example(typed("complex128", 6, 3), axis=0, norm="ortho"),
    example(typed("complex64", 2, "m"), least=1),
    example(typed("complex64", 2, 5), n=8, norm="forward"),
)
_REAL_LINES = (
    example(f32("b", 8)),
    example(typed("float64", 6, 3), axis=0, norm="ortho"),
    example(f32(2, "m"), least=1),
    example(f32(2, 9), n=6),
)
_HALF_LINES = (
    example(typed("complex64", "b", 5)),
    example(typed("complex128", 5, 3), n=9, axis=0, norm="ortho"),
    example(typed("complex64", 2, "m"), least=2),
)


def _as_precise(found: Any, x: Any) -> Any:
    """What NumPy found, in the precision of what it was found of."""
    kind = x.real.dtype
    return found.astype(kind if found.dtype.kind == "f" else np.result_type(kind, np.complex64))


def _line(name: str, doc: str, reals: bool, shown: Any, formula: Callable[[Parts, Expr], Expr]) -> None:
    """Declare a transform along one axis."""
    numpy: Any = getattr(np.fft, name)

    def reference(x: Any, *, n: Any, axis: Any, norm: Any) -> Any:
        return _as_precise(numpy(x, n, axis, norm), x)

    def definition(args: Parts) -> Expr:
        return formula(args, _operand(args, reals))

    composite(
        f"fft.{name}",
        [Param("x"), _LENGTH, _AXIS, _NORM],
        numpy=reference,
        family="fft",
        examples=shown,
        doc=f"{doc}\n\nn values along the axis are taken, the first ones, or zeros added. norm backward divides the "
        "inverse by n, forward the other, ortho each by the root. Lengths that are known, at most 4096 and without "
        "large prime factors run everywhere, others where there is Python. Errors: ShapeError W202, W203, W205; "
        "DTypeError W321.",
    )(definition)


_line(
    "fft",
    "The discrete Fourier transform along an axis: X[k] = sum of x[j] exp(-2 pi i j k / n).",
    False,
    (*_LINES, example(f32("b", 6))),
    lambda args, x: _fft(args, x, args.n, args.axis, args.norm, False),
)
_line(
    "ifft",
    "The inverse transform along an axis: x[j] = sum of X[k] exp(2 pi i j k / n) / n.",
    False,
    _LINES,
    lambda args, x: _fft(args, x, args.n, args.axis, args.norm, True),
)
_line(
    "rfft",
    "The first half of the transform of real numbers, which says the rest: n values give n // 2 + 1.",
    True,
    _REAL_LINES,
    lambda args, x: _rfft(args, x, args.n, args.axis, args.norm),
)
_line(
    "irfft",
    "The real numbers of which rfft gives the transform: m values give n, by default 2 m - 2.",
    False,
    _HALF_LINES,
    lambda args, x: _irfft(args, x, args.n, args.axis, args.norm),
)
_line(
    "hfft",
    "The transform, which is real, of numbers of which the second half is the conjugate of the first.",
    False,
    _HALF_LINES,
    lambda args, x: _irfft(args, call("conj", x), args.n, args.axis, _OTHER_NORM.get(args.norm, args.norm)),
)
_line(
    "ihfft",
    "The inverse of hfft: the first half of the inverse transform of real numbers.",
    True,
    _REAL_LINES,
    lambda args, x: call("conj", _rfft(args, x, args.n, args.axis, _OTHER_NORM.get(args.norm, args.norm))),
)


# ---------------------------------------------------------------------------------------------------------------------
# Along several axes
# ---------------------------------------------------------------------------------------------------------------------


def _axes(args: Parts) -> list[tuple[int, Dim | None]]:
    """The axes, each with how many values are taken along it."""
    ndim = args.type("x").ndim
    axes = args.axes
    if axes is None:
        axes = range(ndim) if args.s is None else range(-len(args.s), 0)
    sizes = [None] * len(axes) if args.s is None else list(args.s)
    if len(sizes) != len(axes):
        raise args.error(f"there are {len(sizes)} sizes for {len(axes)} axes")
    if not axes:
        raise args.error("there is no axis to transform along")
    return list(zip(axes_of(args.arguments, axes, ndim), sizes, strict=True))


def _fft_along(args: Parts, x: Expr, axes: list[tuple[int, Dim | None]], inverse: bool) -> Expr:
    for axis, size in reversed(axes):
        x = _fft(args, x, size, axis, args.norm, inverse)
    return x


def _complex_axes(args: Parts, x: Expr, inverse: bool) -> Expr:
    return _fft_along(args, x, _axes(args), inverse)


def _real_axes(args: Parts, x: Expr) -> Expr:
    *axes, (last, size) = _axes(args)
    return _fft_along(args, _rfft(args, x, size, last, args.norm), axes, False)


def _from_half_axes(args: Parts, x: Expr) -> Expr:
    *axes, (last, size) = _axes(args)
    return _irfft(args, _fft_along(args, x, axes, True), size, last, args.norm)


def _planes(name: str, doc: str, reals: bool, dtype: str, formula: Callable[[Parts, Expr], Expr]) -> None:
    """Declare a transform along several axes, and that along the last two."""
    for suffix, axes, what in (("n", None, "all axes"), ("2", (-2, -1), "the last two axes")):
        numpy: Any = getattr(np.fft, f"{name}{suffix}")

        def reference(x: Any, *, s: Any, axes: Any, norm: Any, numpy: Any = numpy) -> Any:
            if s is not None and axes is None:
                axes = tuple(range(-len(s), 0))
            return _as_precise(numpy(x, s, axes, norm), x)

        def definition(args: Parts) -> Expr:
            return formula(args, _operand(args, reals))

        composite(
            f"fft.{name}{suffix}",
            [Param("x"), _SIZES, Param("axes", "attr", axes, "ints?"), _NORM],
            numpy=reference,
            family="fft",
            examples=(
                example(typed(dtype, "b", 4, 6), axes=[1, 2]),
                example(typed(dtype, 3, 5), s=[4, 6], axes=[0, 1], norm="ortho"),
                example(typed(dtype, "m", 3), axes=[0, 1], norm="forward", least=2),
            ),
            doc=f"{doc} along {what}, or those that are named, the last one first.\n\ns has how many values are taken "
            "along each, norm what results are divided by, as R.fft.fft has them. Errors: ShapeError W202, W203, W205; "
            "DTypeError W321.",
        )(definition)


_planes("fft", "Fourier transforms", False, "complex64", lambda args, x: _complex_axes(args, x, False))
_planes("ifft", "Inverse Fourier transforms", False, "complex64", lambda args, x: _complex_axes(args, x, True))
_planes("rfft", "Fourier transforms of real numbers, half of the values of the last axis,", True, "float32", _real_axes)
_planes("irfft", "Real numbers of halves of transforms, inverse transforms", False, "complex64", _from_half_axes)


# ---------------------------------------------------------------------------------------------------------------------
# Orders and frequencies
# ---------------------------------------------------------------------------------------------------------------------


def _shift(name: str, doc: str, first: Callable[[Dim], Dim]) -> None:
    """Declare an operator that moves the values from a place on to the front; `first` gives it by the size."""
    numpy: Any = getattr(np.fft, name)

    def definition(args: Parts) -> Expr:
        x, dims = args.x, args.dims("x")
        for axis in range(len(dims)) if args.axes is None else args.axes:
            place = args.place_of(axis, len(dims))
            size = dims[place]
            ends = [(first(size), size), (0, first(size))]
            parts = [call("strided_slice", x, [place], [start], [stop]) for start, stop in ends]
            x = call("concat", parts, place)
        return x

    composite(
        f"fft.{name}",
        [Param("x"), Param("axes", "attr", None, "ints?")],
        numpy=lambda x, axes: numpy(x, axes),
        family="fft",
        examples=(example(f32(4, 5)), example(typed("complex64", "m", 3), axes=[0]), example(typed("int32", 7))),
        doc=doc,
    )(definition)


_shift(
    "fftshift",
    "The values of transforms with that of frequency 0 in the middle, along all axes or those that are named.",
    lambda size: size - size // 2,
)
_shift(
    "ifftshift",
    "The inverse of fftshift: the value in the middle first, along all axes or those that are named.",
    lambda size: size // 2,
)


def _frequencies(name: str, doc: str, count: Callable[[Dim], Dim]) -> None:
    numpy: Any = getattr(np.fft, name)

    def reference(n: int, d: float, dtype: str) -> np.ndarray:
        if n == 0:  # of which NumPy gives none: no frequency, or that of no value
            return np.full(count(n), np.nan, dtype)
        return numpy(n, d).astype(dtype)

    def definition(args: Parts) -> Expr:
        if not is_float(args.dtype):
            raise dtype_error(args.arguments, f"dtype must be floating, got {args.dtype}", "W321")
        if isinstance(args.n, int) and args.n < 1:
            raise args.error(f"a transform of {args.n} values")
        length = call("full", (), PrimValue(args.n), "int64")
        places = call("arange", 0, count(args.n), 1, "int64")
        if name == "fftfreq":
            above = call("greater", places, call("full", (), PrimValue((args.n - 1) // 2), "int64"))
            places = call("where", above, call("subtract", places, length), places)
        wide = call("multiply", call("astype", length, "float64"), args.d)
        return call("astype", call("divide", call("astype", places, "float64"), wide), args.dtype)

    composite(
        f"fft.{name}",
        [
            Param("n", "attr", of="dim"),
            Param("d", "attr", 1.0, "float"),
            Param("dtype", "dtype", "float32"),
        ],
        numpy=reference,
        family="fft",
        examples=(example(8), example(7, 0.5, "float64"), example(symbol("n"), 2.0, least=1)),
        doc=doc,
    )(definition)


_frequencies(
    "fftfreq",
    "The frequencies of the values of fft of n values, d apart: k / (n d), those above the middle negative.",
    lambda n: n,
)
_frequencies(
    "rfftfreq",
    "The frequencies of the values of rfft of n values, d apart: k / (n d), up to the middle.",
    lambda n: n // 2 + 1,
)
