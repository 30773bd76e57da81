"""Transforms and windows of signals, patches of images, and what else is a product with a constant matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import int64
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.table import row
from weft.ir.graph import Expr, PrimValue
from weft.script import relax as R


def fourier(n: OnnxNode, x: Expr) -> Expr:
    """The discrete Fourier transform along one axis; the last axis holds real and imaginary parts."""
    if n.has(1) and n.known(1) is None:
        raise Unsupported("a length that only the run can tell")
    rank = n.rank(x)
    if n.version >= 20:
        axis = int(n.constant(2).item()) if n.has(2) else -2
    else:
        axis = int(n.attr("axis", 1))
    axis %= rank
    length = int(n.constant(1).item()) if n.has(1) else None
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if inverse and onesided:
        raise Unsupported("the inverse of half a transform")
    if not onesided:
        return R.signal.fft(x, length, axis, inverse)
    if n.shape(x)[-1] == 1:
        return R.signal.rfft(R.squeeze(x, [rank - 1]), length, axis)
    (size,) = n.dims(x, [axis]) if length is None else (length,)
    return R.strided_slice(R.signal.fft(x, length, axis), [axis], [0], [size // 2 + 1])


def short_time_fourier(n: OnnxNode, x: Expr) -> Expr:
    """Transforms of frames; a signal has one (real) part or none."""
    if n.known(1) is None or (n.has(3) and n.known(3) is None):
        raise Unsupported("a step or a length of frames that only the run can tell")
    step, onesided = int(n.constant(1).item()), bool(n.attr("onesided", 1))
    if n.rank(x) == 3:
        if n.shape(x)[-1] != 1:
            raise Unsupported("frames of complex values")
        x = n.emit(R.squeeze(x, [2]), "signal")
    if n.has(2):
        return R.signal.stft(x, n.need(2), step, onesided)
    if not n.has(3):
        raise Unsupported("frames without a window and a length")
    return R.signal.stft(x, R.ones((int(n.constant(3).item()),), n.dtype(x)), step, onesided)


def window(coefficients: tuple[float, ...]) -> Callable[..., Any]:
    """A window that is a sum of cosines."""

    def made(n: OnnxNode) -> Expr:
        (size,) = (
            n.sizes(0)
            if n.known(0) is not None
            else n.sizes_of(R.reshape(R.astype(n.need(0), "int64"), (1,)), n.input_name(0))
        )
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
    image, block = (n.constant(index).astype(int).tolist() for index in (1, 2))
    rank = len(image)
    strides = list(n.attr("strides") or [1] * rank)
    dilations = list(n.attr("dilations") or [1] * rank)
    pads = list(n.attr("pads") or [0] * (2 * rank))
    batch, channels = n.shape(x)[0], n.dims(x, [1])[0] // math.prod(block)
    full = [size + pads[i] + pads[rank + i] for i, size in enumerate(image)]
    steps = [(full[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    place = np.zeros((math.prod(block), math.prod(steps)), "int64")
    for b, offset in enumerate(np.ndindex(*block)):
        for s, step in enumerate(np.ndindex(*steps)):
            at = [step[i] * strides[i] + offset[i] * dilations[i] for i in range(rank)]
            place[b, s] = np.ravel_multi_index(at, full)
    flat = R.permute_dims(R.reshape(x, (batch, channels, place.size)), (2, 0, 1))
    zeros = R.zeros((math.prod(full), batch, channels), n.dtype(x))
    summed = R.scatter_nd(zeros, int64(place.reshape(-1, 1)), flat, "add")
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
