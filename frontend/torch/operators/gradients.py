"""Gradients as programs of training steps hold them (`*_backward` of core ATen): expressions over our operators.

    norms          rstd (g - mean(g) - x' mean(g x')): x' is the normalised input, g the gradient times the scale
    convolutions   the input's is a transposed convolution, the weights' a convolution of the input with the gradient
    pools          shares of each window, or the element that was the greatest
    resizing       a product along each axis with the weights of the forward one, turned
    embeddings     rows added where they were taken from

Results that the mask leaves out are None. Source: the definitions of core ATen; half precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.sampling import product_along
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
    rank = n.spatial
    kernel, padding = sequence(kernel, rank), sequence(padding, rank)
    stride = sequence(stride, rank) if stride else kernel
    if ceil or divisor is not None or rank == 3:  # windows may end behind the padding, and have fewer elements there
        told = zip(n.dims_of_last(grad, rank), n.dims_of_last(x, rank), kernel, stride, padding, strict=True)
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
    """The gradient of the last axes, by the shares (windows, elements) of each."""
    rank, dtype = n.rank(grad), n.dtype(grad)
    for axis, item in enumerate(shares, rank - len(shares)):
        turned = Constant(np.ascontiguousarray(item.T.astype(dtype)))
        grad = n.emit(product_along(n.emit(grad), rank, axis, turned), "spread")
    return grad


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
    for out, own in zip(n.dims_of_last(grad, n.spatial), n.dims_of_last(x, n.spatial), strict=True):
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


row("avg_pool2d_backward avg_pool3d_backward", average_backward)
row(
    "max_pool2d_with_indices_backward max_pool3d_with_indices_backward adaptive_max_pool2d_backward"
    " adaptive_max_pool3d_backward fractional_max_pool2d_backward fractional_max_pool3d_backward",
    greatest_backward,
)
row("_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward", adaptive_backward)
row("embedding_dense_backward", embedding_backward)

# Images at another size -----------------------------------------------------------------------------------------------

Weights = Callable[[int, int, float, bool], np.ndarray]
"""(old size, new size, old elements for each new one, whether corners are aligned) -> weights (new, old)."""


def _nearest(offset: float) -> Weights:
    """The element whose position is below the new one's."""

    def made(old: int, new: int, step: float, corners: bool) -> np.ndarray:
        at = np.floor((np.arange(new, dtype="float32") + np.float32(offset)) * np.float32(step)).astype(int)
        return np.eye(old)[np.minimum(at, old - 1)]

    return made


def _positions(old: int, new: int, step: float, corners: bool) -> np.ndarray:
    if corners:
        return np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    return (np.arange(new) + 0.5) * step - 0.5


def _linear(old: int, new: int, step: float, corners: bool) -> np.ndarray:
    """Two neighbours by their distances."""
    at = np.maximum(_positions(old, new, step, corners), 0.0)[:, None]
    places = np.minimum(at, old - 1)
    return np.maximum(1.0 - np.abs(places - np.arange(old)), 0.0)


def _cubic(old: int, new: int, step: float, corners: bool) -> np.ndarray:
    """Four neighbours by a cubic; those outside are the elements at the ends."""
    at = _positions(old, new, step, corners)
    made, first = np.zeros((new, old)), np.floor(at).astype(int)
    for offset in range(-1, 3):
        d, a = np.abs(at - (first + offset)), -0.75
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        np.add.at(made, (np.arange(new), np.clip(first + offset, 0, old - 1)), np.where(d <= 1, near, far))
    return made


def resize_backward(n: FxNode, grad: Expr, new: Any, old: Any, *options: Any, weights: Weights) -> Expr:
    """The gradient of an image at another size."""
    sizes, rank = n.ints(old)[2:], n.spatial
    corners, scales = (options[0], options[1:]) if options and isinstance(options[0], bool) else (False, options)
    scales = (*scales, *[None] * (rank - len(scales)))
    steps = [
        own / made if scale is None else 1.0 / scale
        for own, made, scale in zip(sizes, n.ints(new), scales, strict=True)
    ]
    told = zip(sizes, n.ints(new), steps, strict=True)
    return _spread(n, grad, [weights(own, made, step, bool(corners)) for own, made, step in told])


def edges_backward(n: FxNode, grad: Expr, x: Expr, padding: Any) -> Expr:
    """The gradient of a padding by the elements at the edges."""
    rank, before = n.spatial, n.ints(padding)[::2][::-1]  # the last axis comes first
    told = zip(n.dims_of_last(x, rank), n.dims_of_last(grad, rank), before, strict=True)
    places = [(own, np.clip(np.arange(new) - first, 0, own - 1)) for own, new, first in told]
    return _spread(n, grad, [np.eye(own)[place] for own, place in places])


for _names, _weights in {
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d": _nearest(0.0),
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d": _nearest(0.5),
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d": _linear,
    "upsample_bicubic2d": _cubic,
}.items():
    for _name in _names.split():
        row(f"{_name}_backward", partial(resize_backward, weights=_weights))
row("replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward", edges_backward)

# Elements and distances -----------------------------------------------------------------------------------------------


def shrink_backward(n: FxNode, grad: Expr, x: Expr, limit: Any) -> Expr:
    """The gradient of what is zero near zero."""
    kept = R.logical_not(R.less_equal(R.abs(x), n.cast(limit, n.dtype(x))))
    return R.where(kept, grad, R.zeros_like(grad))


def masked_scatter_backward(n: FxNode, grad: Expr, mask: Expr, sizes: Any) -> Expr:
    """The gradient of what was put where a mask is true, in order."""
    count, dtype = product(tuple(sizes)), n.dtype(grad)
    chosen = n.emit(R.reshape(R.broadcast_to(mask, n.shape(grad)), (product(n.shape(grad)),)), "mask")
    place = R.subtract(R.cumsum(R.astype(chosen, "int64"), 0), R.const(1, "int64"))
    place = n.emit(R.maximum(place, R.const(0, "int64")), "place")
    values = R.where(chosen, R.reshape(grad, n.shape(chosen)), R.zeros((), dtype))
    return R.reshape(R.scatter_elements(R.zeros((count,), dtype), place, n.emit(values), 0, "add"), tuple(sizes))


def distances_backward(n: FxNode, grad: Expr, a: Expr, b: Expr, p: float, distances: Expr) -> Expr:
    """The gradient of the distances of rows (..., rows of a, rows of b) for those of a."""
    rank, dtype = n.rank(a), n.dtype(a)
    apart = n.emit(R.subtract(R.expand_dims(a, [rank - 1]), R.expand_dims(b, [rank - 2])), "apart")
    wide = n.emit(R.expand_dims(distances, [rank]), "distances")
    return R.sum(R.multiply(R.expand_dims(grad, [rank]), _slope(n, apart, wide, p, dtype)), [rank - 1], False)


def _slope(n: FxNode, apart: Expr, distance: Expr, p: float, dtype: str) -> Expr:
    """How a distance changes with one coordinate; 0 where it is none."""
    if p == 0:
        return R.zeros_like(apart)
    sign, size = R.sign(apart), n.emit(R.abs(apart), "size")
    zero, one = n.cast(0, dtype), n.cast(1, dtype)
    if p == 1:
        return sign
    if p == float("inf"):
        return R.where(R.equal(size, distance), sign, zero)
    share = R.divide(size, R.where(R.equal(distance, zero), one, distance))
    powers = share if p == 2 else R.power(n.emit(share, "share"), n.cast(p - 1, dtype))
    return R.where(R.logical_or(R.equal(size, zero), R.equal(distance, zero)), zero, R.multiply(sign, powers))


row("hardshrink_backward softshrink_backward", shrink_backward)
row("masked_scatter_backward", masked_scatter_backward)
row("_cdist_backward", distances_backward)
