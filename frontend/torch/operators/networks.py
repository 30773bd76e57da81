"""Convolutions, pooling and norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.frontend import windows
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode, sequence
from weft.frontend.torch.table import row
from weft.ir.dim import maximum, product
from weft.ir.graph import Constant, Expr, TupleGetItem
from weft.script import relax as R

_FRACTIONAL = {2: R.nn.fractional_max_pool2d, 3: R.nn.fractional_max_pool3d}
_ADAPTIVE = {1: R.nn.adaptive_avg_pool1d, 2: R.nn.adaptive_avg_pool2d, 3: R.nn.adaptive_avg_pool3d}


def _batched(n: FxNode, x: Expr, rank: int, function: Any) -> Expr:
    """An operator of a batch, applied to one without as well."""
    if n.rank(x) == rank + 2:
        return function(x)
    return R.squeeze(function(n.emit(R.expand_dims(x, [0]))), [0])


def convolution(
    n: FxNode,
    x: Expr,
    w: Expr,
    bias: Expr | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
) -> Expr:
    """A convolution of one to three axes, or a transposed one."""
    rank = n.rank(w) - 2
    if rank not in (1, 2, 3):
        raise Unsupported(f"windows over {rank} axes")
    stride, dilation = sequence(stride, rank), sequence(dilation, rank)
    if isinstance(padding, str):
        total = [(n.dims_of(w)[2 + axis] - 1) * dilation[axis] for axis in range(rank)]
        total = total if padding == "same" else [0] * rank
        pads = [*(size // 2 for size in total), *(size - size // 2 for size in total)]
    else:
        pads = [*sequence(padding, rank), *sequence(padding, rank)]

    def made(x: Expr) -> Expr:
        if transposed:
            return windows.CONV_TRANSPOSE[rank](x, w, stride, pads, sequence(output_padding, rank), dilation, groups)
        return windows.CONV[rank](x, w, stride, pads, dilation, groups)

    result = _batched(n, x, rank, made)
    return result if bias is None else R.add(result, R.reshape(bias, (n.shape(bias)[0], *(1,) * rank)))


def conv(
    n: FxNode,
    x: Expr,
    w: Expr,
    bias: Expr | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Expr:
    """A convolution by its number of axes."""
    return convolution(n, x, w, bias, stride, padding, dilation, False, 0, groups)


def max_pool(
    n: FxNode, x: Expr, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    """The greatest element of each window."""
    rank = n.spatial
    kernel = sequence(kernel, rank)
    stride = sequence(stride, rank) if stride else kernel
    pads, dilation = [*sequence(padding, rank)] * 2, sequence(dilation, rank)
    return _batched(n, x, rank, lambda v: windows.MAX_POOL[rank](v, kernel, stride, pads, dilation, ceil))


def max_pool_with_places(
    n: FxNode, x: Expr, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    """The greatest elements, and their places in the image where somebody uses these."""
    if not n.wanted(1):
        return [max_pool(n, x, kernel, stride, padding, dilation, ceil), None]
    rank = n.spatial
    kernel = sequence(kernel, rank)
    stride = sequence(stride, rank) if stride else kernel
    pads, dilation = [*sequence(padding, rank)] * 2, sequence(dilation, rank)
    single = n.rank(x) == rank + 1
    batch = n.emit(R.expand_dims(x, [0])) if single else x
    both = n.emit(windows.MAX_POOL_WITH_INDICES[rank](batch, kernel, stride, pads, dilation, ceil), "pooled")
    parts = [n.emit(TupleGetItem(both, index)) for index in range(2)]
    return [_batched(n, x, rank, lambda _, part=part: part) for part in parts]


def fractional_max_pool(n: FxNode, x: Expr, kernel: Any, size: Any, samples: Expr) -> Any:
    """The greatest elements of windows that samples spread, and their places in the image."""
    rank = n.spatial
    single = n.rank(x) == rank + 1
    batch = n.emit(R.expand_dims(x, [0])) if single else x
    both = n.emit(_FRACTIONAL[rank](batch, samples, sequence(kernel, rank), n.ints(sequence(size, rank))), "pooled")
    return [R.squeeze(TupleGetItem(both, i), [0]) if single else TupleGetItem(both, i) for i in range(2)]


def adaptive_max_pool(n: FxNode, x: Expr, size: Any) -> Any:
    """The greatest elements of as many windows as the result has elements, and their places."""
    reads = []
    for out, own in zip(n.ints(n.dims_out[-n.spatial :]), n.dims_of(x)[-n.spatial :], strict=True):
        starts, ends = np.arange(out) * own // out, -(-(np.arange(out) + 1) * own // out)
        longest = int((ends - starts).max(initial=1))
        reads.append(np.minimum(starts[:, None] + np.arange(longest), ends[:, None] - 1))
    return _greatest_of(n, x, reads)


def _greatest_of(n: FxNode, x: Expr, reads: list[np.ndarray]) -> list[Expr]:
    """The greatest of the elements that each window reads along each axis, and its place in the image."""
    rank, sizes = len(reads), n.dims_of_last(x, len(reads))
    front = n.shape(x)[: n.rank(x) - rank]
    valid, places = np.ones((), bool), np.zeros((), "int64")
    for axis, (read, size) in enumerate(zip(reads, sizes, strict=True)):
        shape = [1] * (2 * rank)
        shape[2 * axis], shape[2 * axis + 1] = read.shape
        valid = valid & ((read >= 0) & (read < size)).reshape(shape)
        places = places * size + np.clip(read, 0, size - 1).reshape(shape)
    order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
    windows = (*(read.shape[0] for read in reads), math.prod(read.shape[1] for read in reads))
    table, inside = (np.transpose(v, order).reshape(windows) for v in (places, np.broadcast_to(valid, places.shape)))
    flat = R.reshape(x, (*front, math.prod(sizes)))
    found = R.take(flat, Constant(np.ascontiguousarray(table)), len(front))
    if not inside.all():
        found = R.where(Constant(np.ascontiguousarray(inside)), found, n.cast(-math.inf, n.dtype(x)))
    found = n.emit(found, "windows")
    best = n.emit(R.argmax(found, -1, True), "best")
    wide = R.broadcast_to(Constant(np.ascontiguousarray(table)), (*front, *windows))
    last = n.rank(found) - 1
    place = R.squeeze(R.gather_elements(n.emit(wide, "places"), best, last), [last])
    return [R.squeeze(R.gather_elements(found, best, last), [last]), place]


def avg_pool(
    n: FxNode,
    x: Expr,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_padding: bool = True,
    divisor: Any = None,
) -> Expr:
    """The mean of each window, or its sum over another divisor."""
    rank = n.spatial
    kernel = sequence(kernel, rank)
    stride = sequence(stride, rank) if stride else kernel
    pads, ones = sequence(padding, rank), (1,) * rank

    def pooled(v: Expr) -> Expr:
        if divisor:
            whole = _padded_for(n, v, rank, kernel, stride, pads)
            factor = math.prod(kernel) / float(divisor)
            return R.multiply(windows.AVG_POOL[rank](whole, kernel, stride, (0,) * rank, ones, False, False), factor)
        return windows.AVG_POOL[rank](v, kernel, stride, [*pads] * 2, ones, ceil, count_padding)

    return _batched(n, x, rank, pooled)


def _padded_for(n: FxNode, x: Expr, rank: int, kernel: Any, stride: Any, pads: Any) -> Expr:
    """An image with zeros around, as far as windows reach."""
    widths: list[Any] = [0] * 4
    for axis in range(rank):
        reach = (n.dims_out[n.out.ndim - rank + axis] - 1) * stride[axis] + kernel[axis]
        widths += [pads[axis], maximum(reach - n.shape(x)[2 + axis] - pads[axis], 0)]
    return n.emit(R.nn.pad(x, widths, "constant", 0.0), "padded")


def adaptive(n: FxNode, x: Expr, size: Any) -> Expr:
    """The means of as many windows as the result has elements."""
    rank = n.spatial
    wanted = sequence(size, rank)
    if all(item == 1 for item in wanted):
        return R.mean(x, tuple(range(n.rank(x) - rank, n.rank(x))), True)
    return _batched(n, x, rank, lambda v: _ADAPTIVE[rank](v, tuple(wanted)))


def batch_norm(n: FxNode, x: Expr, scale: Any, bias: Any, mean: Expr, var: Expr, *rest: Any) -> Any:
    """Each channel normalised by the statistics that were learnt."""
    name = n.operator
    epsilon = float(rest[-1]) if "no_training" in name else float(rest[2])
    if "no_training" not in name and rest[0]:
        raise Unsupported("statistics in training")
    rank = n.rank(x)

    def channels(v: Expr) -> Expr:
        return R.reshape(v, (n.shape(v)[0], *(1,) * (rank - 2)))

    inverse = R.rsqrt(R.add(var, epsilon))
    factor = n.emit(inverse if scale is None else R.multiply(scale, inverse), "factor")
    offset = R.negative(R.multiply(mean, factor))
    offset = n.emit(offset if bias is None else R.add(bias, offset), "offset")
    y = R.add(R.multiply(x, channels(factor)), channels(offset))
    if name == "batch_norm":
        return y
    none = R.zeros((0,), n.dtype(x))  # the statistics of a batch, outside of training
    return [y, none, none]


def layer_norm(
    n: FxNode, x: Expr, shape: Any, scale: Any = None, bias: Any = None, epsilon: float = 1e-5, *rest: Any
) -> Any:
    """The last axes normalised together."""
    count, rank = len(shape), n.rank(x)
    axes = tuple(range(rank - count, rank))
    dims = n.shape(x)[rank - count :]
    gamma = R.ones(dims, n.dtype(x)) if scale is None else scale
    beta = R.zeros(dims, n.dtype(x)) if bias is None else bias
    y = R.nn.layer_norm(x, gamma, beta, axes, float(epsilon))
    if n.operator == "layer_norm":
        return y
    return [y, *_statistics(n, x, axes, float(epsilon))]


def _statistics(n: FxNode, x: Expr, axes: tuple[int, ...], epsilon: float) -> list[Expr | None]:
    """The means and the inverse deviations of a norm, where somebody uses them."""
    if not n.wanted(1) and not n.wanted(2):
        return [None, None]
    if n.dtype(x) not in ("float32", "float64"):
        raise Unsupported("the statistics of a norm in half precision")
    mean = n.emit(R.mean(x, axes, True), "mean")
    return [mean, R.rsqrt(R.add(R.mean(R.square(R.subtract(x, mean)), axes, True), epsilon))]


def rms_norm(n: FxNode, x: Expr, shape: Any, scale: Any = None, epsilon: Any = None) -> Expr:
    """The last axes over their root mean square."""
    axes = tuple(range(n.rank(x) - len(shape), n.rank(x)))
    if scale is None:
        scale = R.ones(n.shape(x)[axes[0] :], n.dtype(x))
    elif n.dtype(scale) != n.dtype(x):
        raise Unsupported("a weight of another dtype")
    if epsilon is None:  # of the dtype that it computes in
        epsilon = np.finfo("float64" if n.dtype(x) == "float64" else "float32").eps
    return R.nn.rms_norm(x, scale, axes, float(epsilon))


def group_norm(n: FxNode, x: Expr, *args: Any) -> Any:
    """Groups of channels normalised together."""
    native = n.operator == "native_group_norm"
    groups, scale, bias, epsilon = _group_arguments(args, native)
    channels, axes = n.shape(x)[1], tuple(range(2, n.rank(x)))
    gamma = R.ones((channels,), n.dtype(x)) if scale is None else scale
    beta = R.zeros((channels,), n.dtype(x)) if bias is None else bias
    y = R.nn.group_norm(x, gamma, beta, groups, 1, axes, float(epsilon))
    if not native:
        return y
    batch, each = n.shape(x)[0], channels // groups
    parts = R.reshape(x, (batch, groups, each * product(n.shape(x)[2:])))
    found = _statistics(n, n.emit(parts, "parts"), (2,), float(epsilon))
    return [y, *(None if item is None else R.reshape(item, (batch, groups)) for item in found)]


def _group_arguments(args: tuple[Any, ...], native: bool) -> tuple[int, Any, Any, float]:
    if native:
        scale, bias, _, _, _, groups, epsilon = args
        return groups, scale, bias, float(epsilon)
    filled: list[Any] = [*args, None, None, None, None]
    return filled[0], filled[1], filled[2], 1e-5 if filled[3] is None else float(filled[3])


row("convolution", convolution)
row("conv1d conv2d conv3d", conv)
row(
    "conv_transpose1d conv_transpose2d conv_transpose3d",
    lambda n, x, w, bias=None, stride=1, padding=0, extra=0, groups=1, dilation=1: convolution(
        n, x, w, bias, stride, padding, dilation, True, extra, groups
    ),
)
row(
    "col2im",
    lambda n, x, size, kernel, dilation, padding, stride: _batched(
        n, x, 1, lambda v: R.nn.fold(v, size, kernel, stride, padding, dilation)
    ),
)
row(
    "im2col",
    lambda n, x, kernel, dilation, padding, stride: _batched(
        n, x, 2, lambda v: R.nn.unfold(v, kernel, stride, padding, dilation)
    ),
)
row("max_pool1d max_pool2d max_pool3d", max_pool)
row("max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices", max_pool_with_places)
row("fractional_max_pool2d fractional_max_pool3d", fractional_max_pool)
row("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", adaptive_max_pool)
row("avg_pool1d avg_pool2d avg_pool3d", avg_pool)
row("adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d", adaptive)
row("batch_norm _native_batch_norm_legit_no_training _native_batch_norm_legit", batch_norm)
row("layer_norm native_layer_norm", layer_norm)
row("rms_norm", rms_norm)
row("group_norm native_group_norm", group_norm)
