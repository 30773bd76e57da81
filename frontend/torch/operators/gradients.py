"""Gradients as programs of training steps hold them (`*_backward` of core ATen): expressions over our operators.

    norms          rstd (g - mean(g) - x' mean(g x')): x' is the normalised input, g the gradient times the scale
    convolutions   the input's is a transposed convolution, the weights' a convolution of the input with the gradient
    pools          shares of each window, or the element that was the greatest
    embeddings     rows added where they were taken from

Results that the mask leaves out are None. Source: the definitions of core ATen; half precision is computed in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode, sequence
from weft.frontend.torch.operators.networks import convolution
from weft.frontend.torch.table import row
from weft.ir.dim import Dim, product
from weft.ir.graph import Constant, Expr
from weft.script import relax as R


def _wide(n: FxNode, *values: Expr) -> list[Any]:
    """Values in float32 where they are of half precision."""
    return [n.cast(value, "float32") if n.dtype(value) in ("float16", "bfloat16") else value for value in values]


def _normalized(n: FxNode, g: Expr, x: Expr, rstd: Expr, axes: tuple[int, ...]) -> Expr:
    """The gradient of a norm for its input, from that of the normalised values."""
    g = n.emit(g, "g")
    shared = R.add(R.mean(g, axes, True), R.multiply(x, R.mean(R.multiply(g, x), axes, True)))
    return R.multiply(rstd, R.subtract(g, shared))


def layer_norm_backward(
    n: FxNode, grad: Expr, x: Expr, shape: Any, mean: Expr, rstd: Expr, scale: Expr | None, bias: Any, mask: Any
) -> list[Expr | None]:
    """The gradients of a layer norm for its input, scale and bias."""
    dtype, rank = n.dtype(x), n.rank(x)
    inner, outer = tuple(range(rank - len(shape), rank)), tuple(range(rank - len(shape)))
    grad, x, mean, rstd = _wide(n, grad, x, mean, rstd)
    grad, rstd = n.emit(grad, "grad"), n.emit(rstd, "rstd")
    own = n.emit(R.multiply(R.subtract(x, mean), rstd), "normalized")
    g = grad if scale is None else R.multiply(grad, _wide(n, scale)[0])
    return [
        n.cast(_normalized(n, g, own, rstd, inner), dtype) if mask[0] else None,
        n.cast(R.sum(R.multiply(grad, own), outer) if outer else R.multiply(grad, own), dtype) if mask[1] else None,
        n.cast(R.sum(grad, outer) if outer else grad, dtype) if mask[2] else None,
    ]


def group_norm_backward(
    n: FxNode, grad: Expr, x: Expr, mean: Expr, rstd: Expr, scale: Expr | None,
    batch: Dim, channels: Dim, places: Dim, groups: int, mask: Any,
) -> list[Expr | None]:  # fmt: skip
    """The gradients of a group norm for its input, scale and bias."""
    dtype, dims = n.dtype(x), n.shape(x)
    (count,) = n.ints(channels)
    parts, per_channel = (batch, groups, count // groups, places), (batch, count, places)
    grad, x, mean, rstd = _wide(n, grad, x, mean, rstd)
    grad = n.emit(R.reshape(grad, per_channel), "grad")
    mean, rstd = (n.emit(R.reshape(value, (batch, groups, 1, 1))) for value in (mean, rstd))
    own = n.emit(R.multiply(R.subtract(R.reshape(x, parts), mean), rstd), "normalized")
    g = grad if scale is None else R.multiply(grad, R.reshape(_wide(n, scale)[0], (1, count, 1)))
    made = _normalized(n, R.reshape(g, parts), own, rstd, (2, 3)) if mask[0] else None
    return [
        n.cast(R.reshape(made, dims), dtype) if made is not None else None,
        n.cast(R.sum(R.multiply(grad, R.reshape(own, per_channel)), (0, 2)), dtype) if mask[1] else None,
        n.cast(R.sum(grad, (0, 2)), dtype) if mask[2] else None,
    ]


row("native_layer_norm_backward", layer_norm_backward)
row("native_group_norm_backward", group_norm_backward)

# Convolutions ---------------------------------------------------------------------------------------------------------


def _cut(n: FxNode, x: Expr, sizes: Any) -> Expr:
    """The first places along the last axes."""
    x, rank = n.emit(x), n.rank(x)
    cut = [(axis, size) for axis, size in enumerate(sizes, rank - len(sizes)) if n.shape(x)[axis] != size]
    if not cut:
        return x
    return R.strided_slice(x, [axis for axis, _ in cut], [0] * len(cut), [size for _, size in cut])


def _weights_gradient(
    n: FxNode, x: Expr, grad: Expr, kernel: list[int], stride: Any, padding: Any, dilation: Any, groups: int
) -> Expr:
    """The gradient for the weights (channels of grad, channels of x / groups, kernel) of a convolution of x."""
    batch, channels, *sizes = n.shape(x)
    (channels,) = n.ints(channels)
    made, rank = n.shape(grad)[1], len(sizes)
    spatial = tuple(range(2, 2 + rank))
    parts = R.reshape(x, (batch, groups, channels // groups, *sizes))
    parts = R.permute_dims(parts, (2, 1, 0, *(axis + 1 for axis in spatial)))
    parts = n.emit(R.reshape(parts, (channels // groups, batch * groups, *sizes)), "parts")
    moved = n.emit(R.permute_dims(grad, (1, 0, *spatial)), "moved")
    found = convolution(n, parts, moved, None, dilation, padding, stride, False, 0, groups)
    assert n.shape(moved)[0] == made
    return R.permute_dims(_cut(n, found, kernel), (1, 0, *spatial))


def convolution_backward(
    n: FxNode, grad: Expr, x: Expr, w: Expr, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, extra: Any, groups: int, mask: Any,
) -> list[Expr | None]:  # fmt: skip
    """The gradients of a convolution for its input, weights and bias."""
    rank = n.rank(w) - 2
    if rank not in (1, 2, 3) or n.rank(x) != rank + 2:
        raise Unsupported(f"windows over {rank} axes of a tensor of rank {n.rank(x)}")
    stride, padding, dilation = (sequence(values, rank) for values in (stride, padding, dilation))
    kernel, sizes = n.dims_of(w)[2:], n.shape(x)[2:]
    found: list[Expr | None] = [None, None, None]
    if mask[0] and transposed:
        found[0] = _cut(n, convolution(n, grad, w, None, stride, padding, dilation, False, 0, groups), sizes)
    elif mask[0]:
        steps = zip(sizes, n.shape(grad)[2:], stride, padding, dilation, kernel, strict=True)
        left = [own - ((out - 1) * s - 2 * p + d * (k - 1) + 1) for own, out, s, p, d, k in steps]
        found[0] = convolution(n, grad, w, None, stride, padding, dilation, True, n.ints(left), groups)
    if mask[1]:
        first, second = (grad, x) if transposed else (x, grad)
        found[1] = _weights_gradient(n, first, second, kernel, stride, padding, dilation, groups)
    if mask[2]:
        found[2] = R.sum(grad, (0, *range(2, rank + 2)))
    return found


row("convolution_backward", convolution_backward)

# Pools and embeddings -------------------------------------------------------------------------------------------------


def _images(n: FxNode, x: Expr) -> tuple[Expr, tuple[Dim, ...]]:
    """A batch of images, and the sizes of what was given: three axes are those of one image."""
    dims = n.shape(x)
    return (R.expand_dims(x, [0]) if len(dims) == 3 else x), dims


def average_backward(
    n: FxNode, grad: Expr, x: Expr, kernel: Any, stride: Any, padding: Any, ceil: bool, counts: bool, divisor: Any
) -> Expr:
    """The gradient of an average pool: equal shares for the elements of each window."""
    kernel, padding = sequence(kernel, 2), sequence(padding, 2)
    stride = sequence(stride, 2) if stride else kernel
    if ceil or divisor is not None:  # windows may end behind the padding, and have fewer elements there
        told = zip(n.dims_of_last(grad, 2), n.dims_of_last(x, 2), kernel, stride, padding, strict=True)
        made = [_window_shares(*item, counts, divisor) for item in told]
        return R.multiply(_spread(n, grad, made), 1.0 if divisor is None else 1.0 / divisor)
    (images, dims), (given, _) = _images(n, x), _images(n, grad)
    pads = [*padding, *padding]
    return R.reshape(
        R.grad.avg_pool2d_backward(given, images, kernel, stride, pads, 1, False, counts, "NCHW", "NCHW"), dims
    )


def _window_shares(
    out: int, own: int, kernel: int, stride: int, padding: int, counts: bool, divisor: int | None
) -> np.ndarray:
    """The share of each element of an axis in each window, (windows, elements)."""
    shares = np.zeros((out, own))
    for index in range(out):
        start = index * stride - padding
        end = min(start + kernel, own + padding)
        inside = max(start, 0), min(end, own)
        count = end - start if counts else inside[1] - inside[0]
        shares[index, slice(*inside)] = 1 / (count if divisor is None else 1)
    return shares


def _spread(n: FxNode, grad: Expr, shares: list[np.ndarray]) -> Expr:
    """The gradient of the last two axes, by the shares (windows, elements) of each."""
    rows, columns = (item.astype(n.dtype(grad)) for item in shares)
    return R.matmul(Constant(np.ascontiguousarray(rows.T)), R.matmul(grad, Constant(columns)))


def greatest_backward(n: FxNode, grad: Expr, x: Expr, *options: Any) -> Expr:
    """The gradient of a pool of greatest elements: each goes to the place where the element was."""
    indices, dims, rank = options[-1], n.shape(x), n.spatial
    rows, places = product(dims[:-rank]), product(dims[-rank:])
    flat = (rows, product(n.shape(grad)[-rank:]))
    start = R.zeros((rows, places), n.dtype(x))
    added = R.scatter_elements(start, R.reshape(indices, flat), R.reshape(grad, flat), 1, "add")
    return R.reshape(added, dims)


def adaptive_backward(n: FxNode, grad: Expr, x: Expr) -> Expr:
    """The gradient of an adaptive average pool: a product with the shares of each axis."""
    made: list[np.ndarray] = []
    for out, own in zip(n.dims_of_last(grad, 2), n.dims_of_last(x, 2), strict=True):
        shares = np.zeros((out, own))
        for index in range(out):
            start, end = index * own // out, -(-(index + 1) * own // out)
            shares[index, start:end] = 1 / (end - start)
        made.append(shares)
    return _spread(n, grad, made)


def embedding_backward(n: FxNode, grad: Expr, indices: Expr, count: Dim, padding: int, by_frequency: bool) -> Expr:
    """The gradient of a table of rows: each row gets the sum of the gradients of the places that it was taken to."""
    width, places = n.shape(grad)[-1], product(n.shape(indices))
    at = n.emit(R.reshape(n.cast(indices, "int64"), (places,)), "at")
    rows = R.reshape(grad, (places, width))
    if by_frequency:
        ones = R.ones((places,), n.dtype(grad))
        times = R.scatter_nd(R.zeros((count,), n.dtype(grad)), R.expand_dims(at, [1]), ones, "add")
        rows = R.divide(rows, R.expand_dims(R.take(times, at, 0), [1]))
    if not isinstance(padding, int) or padding >= 0:
        kept = R.not_equal(at, R.const(n.number(padding), "int64"))
        rows = R.where(R.expand_dims(kept, [1]), rows, R.zeros((), n.dtype(grad)))
    return R.scatter_nd(R.zeros((count, width), n.dtype(grad)), R.expand_dims(at, [1]), rows, "add")


row("avg_pool2d_backward", average_backward)
row("max_pool2d_with_indices_backward max_pool3d_with_indices_backward", greatest_backward)
row("_adaptive_avg_pool2d_backward", adaptive_backward)
row("embedding_dense_backward", embedding_backward)
