"""Transforms and windows of signals, patches of images, and what else is a product with a constant matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import int64
from weft.frontend.onnx.node import Node
from weft.frontend.onnx.table import row
from weft.ir.graph import Constant, Expr, PrimValue
from weft.script import relax as R


def fourier(n: Node, x: Expr) -> Expr:
    """The discrete Fourier transform along one axis: a product with the matrix of roots of one.

    The last axis holds real and imaginary parts.
    """
    if n.has(1) and n.known(1) is None:
        raise Unsupported("a length that only the run can tell")
    rank = n.rank(x)
    if n.version >= 20:
        axis = int(n.constant(2).item()) if n.has(2) else -2
    else:
        axis = int(n.attr("axis", 1))
    axis %= rank
    (size,), parts = n.dims(x, [axis]), n.dims(x, [rank - 1])[0]
    length = int(n.constant(1).item()) if n.has(1) else size
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if inverse and onesided:
        raise Unsupported("the inverse of half a transform")
    kept = length // 2 + 1 if onesided else length
    angle = 2 * np.pi * np.outer(np.arange(min(size, length)), np.arange(kept)) / length * (1 if inverse else -1)
    real, imaginary = np.cos(angle), np.sin(angle)
    if inverse:
        real, imaginary = real / length, imaginary / length
    dtype = n.dtype(x)
    if size > length:
        x = R.strided_slice(x, [axis], [0], [length])
    order = [*(a for a in range(rank - 1) if a != axis), axis]
    moved = [n.emit(R.permute_dims(_component(x, rank, i), order), "part") for i in range(parts)]
    c, s = (Constant(matrix.astype(dtype)) for matrix in (real, imaginary))
    out_real, out_imaginary = R.matmul(moved[0], c), R.matmul(moved[0], s)
    if parts == 2:
        out_real = R.subtract(out_real, R.matmul(moved[1], s))
        out_imaginary = R.add(out_imaginary, R.matmul(moved[1], c))
    back = [order.index(a) for a in range(rank - 1)]
    return R.stack([R.permute_dims(part, back) for part in (out_real, out_imaginary)], rank - 1)


def _component(x: Expr, rank: int, index: int) -> Expr:
    return R.squeeze(R.strided_slice(x, [rank - 1], [index], [index + 1]), [rank - 1])


def window(coefficients: tuple[float, ...]) -> Callable[..., Any]:
    """A window that is a sum of cosines."""

    def made(n: Node) -> Expr:
        (size,) = n.sizes(0) if n.known(0) is not None else n.sizes_of(
            R.reshape(R.astype(n.need(0), "int64"), (1,)), n.input_name(0)
        )  # fmt: skip
        dtype = n.dtype_of(n.attr("output_datatype", 1))
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


def columns_to_image(n: Node, x: Expr) -> Expr:
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
row("HannWindow", window((0.5, -0.5)))
row("HammingWindow", window((25 / 46, -21 / 46)))
row("BlackmanWindow", window((0.42, -0.5, 0.08)))
row("Col2Im", columns_to_image)
