"""Transforms and windows of signals, patches of images, and what else is a product with a constant matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import chosen_at_run, int64
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.table import row
from weft.ir.dim import Dim, product
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R


def fourier(n: OnnxNode, x: Expr) -> Any:
    """The discrete Fourier transform along one axis; the last axis holds real and imaginary parts."""
    rank, length = n.rank(x), _size(n, 1) if n.has(1) else None
    if n.version >= 20 and n.has(2) and n.known(2) is None:
        axis = R.reshape(R.astype(n.need(2), "int64"), ())
        axis = n.emit(R.floor_mod(axis, rank), "axis")
        results = [partial(_transformed, n, x, length, candidate) for candidate in range(rank - 1)]
        return n.named_result(chosen_at_run(n, axis, results), n.proto.output[0])
    if n.version >= 20:
        axis = int(n.constant(2).item()) if n.has(2) else -2
    else:
        axis = int(n.attr("axis", 1))
    return _transformed(n, x, length, axis % rank)


def _size(n: OnnxNode, index: int) -> Dim:
    """An input that is a number, as a size."""
    if n.known(index) is not None:
        return n.sizes(index)[0]
    vector = n.emit(R.reshape(R.astype(n.need(index), "int64"), (1,)), "size")
    return n.sizes_of(vector, n.input_name(index))[0]


def _transformed(n: OnnxNode, x: Expr, length: Dim | None, axis: int) -> Expr:
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    rank = n.rank(x)
    if not onesided:
        return R.signal.fft(x, length, axis, inverse)
    if inverse and length is None and n.shape(x)[axis] == 1:
        return R.zeros((*n.shape(x)[:axis], 0, *n.shape(x)[axis + 1 : -1], 1), n.dtype(x))
    if inverse:
        return R.expand_dims(R.signal.irfft(x, length, axis), [rank - 1])
    if n.shape(x)[-1] == 1:
        return R.signal.rfft(R.squeeze(x, [rank - 1]), length, axis)
    size = n.shape(x)[axis] if length is None else length
    return R.strided_slice(R.signal.fft(x, length, axis), [axis], [0], [size // 2 + 1])


def short_time_fourier(n: OnnxNode, x: Expr) -> Expr:
    """Transforms of frames; a signal has one (real) part or none."""
    onesided = bool(n.attr("onesided", 1))
    if n.rank(x) == 3:
        if n.shape(x)[-1] != 1:
            raise Unsupported("frames of complex values")
        x = n.emit(R.squeeze(x, [2]), "signal")
    if n.has(2):
        frame: Expr = n.need(2)
    elif n.has(3):
        frame = n.emit(R.ones((_size(n, 3),), n.dtype(x)), "window")
    else:
        raise Unsupported("frames without a window and a length")
    step = _size(n, 1)
    if isinstance(step, int):
        return R.signal.stft(x, frame, step, onesided)
    (length,) = n.shape(frame)
    count = (n.shape(x)[1] - length) // step + 1
    starts = R.multiply(R.arange(count), R.full((), PrimValue(step), "int64"))
    places = n.emit(R.add(R.expand_dims(starts, [1]), R.arange(length)), "places")
    frames = n.emit(R.multiply(R.take(x, places, 1), frame), "frames")
    return R.signal.rfft(frames) if onesided else R.signal.fft(R.expand_dims(frames, [3]))


def window(coefficients: tuple[float, ...]) -> Callable[..., Any]:
    """A window that is a sum of cosines."""

    def made(n: OnnxNode) -> Expr:
        size = _size(n, 0)
        dtype = element_dtype(n.attr("output_datatype", 1))
        if dtype not in ("float32", "float64", "float16"):
            raise Unsupported(f"a window of {dtype}")
        count = R.full((), PrimValue(size if n.attr("periodic", 1) else size - 1), "int64")
        angle = R.divide(R.astype(R.arange(size), "float64"), R.maximum(R.astype(count, "float64"), 1.0))
        angle = n.emit(R.multiply(angle, 2 * math.pi), "angle")
        total: Expr = R.full((), coefficients[0], "float64")
        for index, factor in enumerate(coefficients[1:], 1):
            total = R.add(total, R.multiply(R.cos(R.multiply(angle, float(index))), factor))
        return R.astype(total, dtype)

    return made


def mel_weights(n: OnnxNode) -> Expr:
    """Weights by which bins of a transform are joined to bands."""
    if any(n.known(index) is None for index in range(5)):
        raise Unsupported("bands that only the run can tell")
    bands, length = n.sizes(0)[0], n.sizes(1)[0]
    rate, low, high = (n.constant(index).item() for index in range(2, 5))
    dtype = element_dtype(n.attr("output_datatype", 1))
    if dtype not in ("float32", "float64", "float16"):
        raise Unsupported(f"weights of {dtype}")
    return R.signal.mel_weight_matrix(bands, length, int(rate), float(low), float(high), dtype)


def columns_to_image(n: OnnxNode, x: Expr) -> Expr:
    """Patches added where they were taken from."""
    image, block = n.sizes(1), n.sizes(2)
    rank = len(image)
    strides = list(n.attr("strides") or [1] * rank)
    dilations = list(n.attr("dilations") or [1] * rank)
    pads = list(n.attr("pads") or [0] * (2 * rank))
    batch, rows = n.shape(x)[:2]
    channels = rows // product(block)
    full = [size + pads[i] + pads[rank + i] for i, size in enumerate(image)]
    steps = [(full[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    place: Expr = int64(0)
    for i in range(rank):
        offsets, starts = (
            R.reshape(R.multiply(R.arange(size), factor), tuple(size if j == axis else 1 for j in range(2 * rank)))
            for axis, size, factor in ((i, block[i], dilations[i]), (rank + i, steps[i], strides[i]))
        )
        along = R.full((), PrimValue(product(full[i + 1 :])), "int64")
        place = n.emit(R.add(place, R.multiply(R.add(offsets, starts), along)), "place")
    count = product([*block, *steps])
    flat = R.permute_dims(R.reshape(x, (batch, channels, count)), (2, 0, 1))
    zeros = R.zeros((product(full), batch, channels), n.dtype(x))
    summed = R.scatter_nd(zeros, R.reshape(place, (count, 1)), flat, "add")
    whole = R.reshape(R.permute_dims(summed, (1, 2, 0)), (batch, channels, *full))
    axes = list(range(2, 2 + rank))
    return R.strided_slice(whole, axes, pads[:rank], [pads[i] + image[i] for i in range(rank)])


row("DFT", fourier)
row("STFT", short_time_fourier)
row("HannWindow", window((0.5, -0.5)))
row("HammingWindow", window((25 / 46, -21 / 46)))
row("BlackmanWindow", window((0.42, -0.5, 0.08)))
row("MelWeightMatrix", mel_weights)
row("Col2Im", columns_to_image)
