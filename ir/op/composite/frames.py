"""Frames of signals: added where they overlap, transformed back, and their bins joined to bands.

Complex values stand in a last axis: the real and the imaginary part, as in `fourier`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.dtypes import is_float
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import symbol
from weft.ir.graph import Expr, PrimValue
from weft.ir.op.common import (
    Kernel,
    dtype_error,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_known_rank,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.reductions.reduction import accumulator
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []

_STEP = Param("step", "attr", of="int")
_NO_FRAME = "there is no frame"
_TINY = 1e-11
"""The least sum of squared weights by which a value of a signal is divided."""


@kernel_lowering
def _lower_overlap_add(kernel: Kernel) -> PrimFunc | None:
    frames, step = kernel.input("frames"), kernel.args.step
    count, size = frames.shape[-2:]
    kernel.require_le(1, count, _NO_FRAME)
    taps = te.reduce_axis((0, (size + step - 1) // step), name="tap")
    wide = accumulator(kernel.dtype)

    def value(*at: PrimExpr) -> te.Reduction:
        frame, place = at[-1] // step - taps, at[-1] % step + taps * step
        inside = te.all(frame >= 0, frame < te.size(count), place < te.size(size))
        element = te.cast(wide, frames(*at[:-1], frame, place))
        return te.sum(te.if_then_else(inside, element, te.const(0, wide)), axis=[taps])

    total = te.compute(kernel.dims, value, "total")
    return kernel.compute(total, "overlap_add")


def _added(frames: np.ndarray, step: int) -> np.ndarray:
    count, size = frames.shape[-2:]
    out = np.zeros((*frames.shape[:-2], (count - 1) * step + size), frames.dtype)
    for frame in range(count):
        out[..., frame * step : frame * step + size] += frames[..., frame, :]
    return out


def _overlap_add_reference(frames: Any, *, step: int) -> Any:
    exact = frames.astype("float64") if is_float(str(frames.dtype)) else frames
    return _added(exact, step).astype(frames.dtype)


@register_op(
    "signal.overlap_add",
    [Param("frames"), _STEP],
    lowering=_lower_overlap_add,
    numpy=_overlap_add_reference,
    pure=True,
    family="signal",
    examples=(
        example(f32(2, 3, 8), 4),
        example(f32("b", "n", "m"), 3, least=1),
        example(typed("int32", 4, 2), 3),
        example(typed("float16", 3, 7), 1),
    ),
)
def overlap_add(args: Arguments, context: TypeContext) -> TensorType:
    """The signal whose frames, one every `step` values, are added where they overlap: (..., f, n) -> (..., (f - 1) step
    + n).

    Errors: ShapeError W202, W205 a step below 1 or no frame; DTypeError W321.
    """
    frames = tensor(args, "frames", context)
    require_dtype(args, "frames", frames, "number")
    if args.step < 1:
        raise shape_error(args, f"the step is at least 1, got {args.step}", "W205")
    dims = dims_of(frames)
    if dims is None:
        return TensorType(dtype=frames.dtype, ndim=max(frames.ndim - 1, -1))
    if len(dims) < 2:
        raise shape_error(args, f"frames has two dimensions or more, got {len(dims)}")
    if dims[-2] == 0:
        raise shape_error(args, _NO_FRAME, "W205")
    context.require_le(1, dims[-2], f"{args.name}: {_NO_FRAME}", args.span)
    return TensorType((*dims[:-2], (dims[-2] - 1) * args.step + dims[-1]), frames.dtype)


# The inverse of short-time transforms


def _istft_reference(x: Any, window: Any, *, step: int, onesided: bool) -> Any:
    spectrum, weights = x.astype("float64"), window.astype("float64")
    spectrum = spectrum[..., 0] + 1j * spectrum[..., 1]
    size = window.shape[0]
    frames = np.fft.irfft(spectrum, size) if onesided else np.fft.ifft(spectrum).real
    total = _added(frames * weights, step)
    share = _added(np.broadcast_to(weights * weights, frames.shape[-2:]), step)
    return np.where(share > _TINY, total / np.where(share > _TINY, share, 1), 0).astype(x.dtype)


@composite(
    "signal.istft",
    [Param("x"), Param("window"), _STEP, Param("onesided", "attr", True, "bool")],
    numpy=_istft_reference,
    family="signal",
    examples=(
        example(f32("b", 4, 5, 2), f32(8), 4, ranges={"window": (0.5, 1)}),
        example(
            typed("float64", "n", 5, 2), typed("float64", 5), 2, onesided=False, ranges={"window": (0.5, 1)}, least=1
        ),
        example(f32(2, 3, 4, 2), f32(7), 9, ranges={"window": (0.5, 1)}),
    ),
)
def istft(args: Parts) -> Expr:
    """The signal of which signal.stft has these transforms, as near as squares go: (..., f, bins, 2), (n,) -> (...,
    (f - 1) step + n).

    Frames are transformed back, times the window, added where they overlap, and divided by the sum of the squared
    windows there; where that is not above 1e-11 the signal is 0. bins are n // 2 + 1 where it is onesided, else n.
    Errors: ShapeError W201, W202, W205; DTypeError W320, W321.

    Source: Griffin and Lim, Signal estimation from modified short-time Fourier transform, 1984.
    """
    args.require("x", "float")
    args.require("window", "float")
    require_known_rank(args.arguments, "window", args.type("window"), 1)
    dims, (size,) = args.dims("x"), args.dims("window")
    if len(dims) < 3 or dims[-1] != 2:
        raise args.error("x has frames, bins and the two parts of complex values on its last axes")
    args.context.require_equal(
        dims[-2], size // 2 + 1 if args.onesided else size, f"{args.arguments.name}: bins of the window", args.span
    )
    if args.onesided:
        frames = call("signal.irfft", args.x, size)
    else:
        last = len(dims) - 1
        frames = call("signal.fft", args.x, inverse=True)
        frames = call("squeeze", call("strided_slice", frames, [last], [0], [1]), [last])
    total = call("signal.overlap_add", call("multiply", frames, args.window), args.step)
    squares = call("broadcast_to", call("multiply", args.window, args.window), (dims[-3], size))
    share = call("signal.overlap_add", squares, args.step)
    counts = call("greater", share, args.number(_TINY, "x"))
    one, nothing = args.number(1.0, "x"), args.number(0.0, "x")
    return call("where", counts, call("divide", total, call("where", counts, share, one)), nothing)


# Bands


def _edges(bands: int, length: int, rate: int, low: float, high: float) -> np.ndarray:
    ends = 2595 * np.log1p(np.array([low, high]) / 700) / np.log(10)
    mels = np.arange(bands + 2) * ((ends[1] - ends[0]) / (bands + 2)) + ends[0]
    return (length + 1) * (700 * np.expm1(mels / 2595 * np.log(10))) // rate


def _mel_reference(
    num_mel_bins: int, dft_length: int, sample_rate: int, lower_edge_hertz: float, upper_edge_hertz: float, dtype: str
) -> Any:
    edges = _edges(num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz)
    first, middle, last = edges[:-2], edges[1:-1], edges[2:]
    bins = np.arange(dft_length // 2 + 1)[:, None]
    rises = np.where(first == middle, 1.0, (bins - first) / np.maximum(middle - first, 1))
    falls = (last - bins) / np.maximum(last - middle, 1)
    up = np.where((bins >= first) & (bins <= middle), rises, 0)
    return np.where((bins >= middle) & (bins < last), falls, up).astype(dtype)


@composite(
    "signal.mel_weight_matrix",
    [
        Param("num_mel_bins", "attr", of="dim"),
        Param("dft_length", "attr", of="dim"),
        Param("sample_rate", "attr", of="int"),
        Param("lower_edge_hertz", "attr", of="float"),
        Param("upper_edge_hertz", "attr", of="float"),
        Param("dtype", "dtype", "float32"),
    ],
    numpy=_mel_reference,
    family="signal",
    examples=(
        example(8, 16, 8192, 0.0, 4096.0),
        example(symbol("bands"), 64, 16000, 20.0, 7600.0, "float64"),
        example(5, symbol("n"), 8000, 100.0, 3000.0, least=2),
    ),
)
def mel_weight_matrix(args: Parts) -> Expr:
    """Weights by which bins of a transform are joined to bands of equal width in mels: (dft_length // 2 + 1,
    num_mel_bins).

    The bands are triangles between num_mel_bins + 2 edges from lower_edge_hertz on; 1 mel is 700 (10**(m / 2595) - 1)
    hertz, and the edges are rounded down to bins. The edges are computed in float64.
    Errors: ShapeError W205; DTypeError W321.

    Source: MelWeightMatrix of ONNX; Stevens, Volkmann and Newman, A scale for the measurement of pitch, 1937.
    """
    if not is_float(args.dtype):
        raise dtype_error(args.arguments, f"dtype must be floating, got {args.dtype}", "W321")
    low, high = args.lower_edge_hertz, args.upper_edge_hertz
    if args.sample_rate < 1 or not 0 <= low < high:
        raise args.error(f"edges from {low} to {high} at {args.sample_rate} samples a second")
    bands, length = args.num_mel_bins, args.dft_length
    for name, count in (("num_mel_bins", bands), ("dft_length", length)):
        if isinstance(count, int) and count < 1:
            raise args.error(f"{name} is at least 1, got {count}")
    ends = [2595 * math.log1p(edge / 700) / math.log(10) for edge in (low, high)]
    width = call("divide", call("full", (), ends[1] - ends[0], "float64"), _float(bands + 2))
    mels = call("add", call("multiply", _count(bands + 2), width), ends[0])
    hertz = call("multiply", call("expm1", call("multiply", call("divide", mels, 2595.0), math.log(10))), 700.0)
    edges = call("floor", call("divide", call("multiply", hertz, _float(length + 1)), float(args.sample_rate)))
    first, middle, last = (call("strided_slice", edges, [0], [place], [bands + place]) for place in range(3))
    bins = call("expand_dims", _count(length // 2 + 1), 1)
    up = call("divide", call("subtract", bins, first), call("maximum", call("subtract", middle, first), 1.0))
    up = call("where", call("equal", first, middle), 1.0, up)
    down = call("divide", call("subtract", last, bins), call("maximum", call("subtract", last, middle), 1.0))
    rises = call("logical_and", call("greater_equal", bins, first), call("less_equal", bins, middle))
    falls = call("logical_and", call("greater_equal", bins, middle), call("less", bins, last))
    weights = call("where", falls, down, call("where", rises, up, 0.0))
    return call("astype", weights, args.dtype)


def _float(size: Any) -> Expr:
    return call("astype", call("full", (), PrimValue(size), "int64"), "float64")


def _count(size: Any) -> Expr:
    return call("astype", call("arange", 0, size, 1, "int64"), "float64")
