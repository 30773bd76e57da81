"""Convolutions, pooling, resizing and sampling of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import lowest
from weft.frontend import windows
from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.frontend.sampling import sampled
from weft.ir.dim import Dim, ceildiv, maximum, product
from weft.ir.graph import Expr, PrimValue, TupleGetItem
from weft.script import relax as R


def _spatial(n: OnnxNode, x: Expr) -> int:
    rank = n.rank(x) - 2
    if rank not in (1, 2, 3):
        raise Unsupported(f"windows over {rank} axes")
    return rank


class Window:
    """What the attributes of a convolution or a pooling, or the sizes of weights, say of its window.

    `pads` are numbers; `around` is what more stands before and after each axis where that depends on sizes of the run.
    """

    def __init__(self, n: OnnxNode, x: Expr, kernel: Sequence[Dim]) -> None:
        rank = _spatial(n, x)
        self.kernel = tuple(kernel)
        self.strides = tuple(n.attr("strides") or (1,) * rank)
        self.dilation = tuple(n.attr("dilations") or (1,) * rank)
        pads = self._pads(n, x, n.attr("auto_pad", "NOTSET"))
        known = [pad for pad in pads if isinstance(pad, int)]
        self.around = pads if len(known) < len(pads) else []
        self.pads = known if not self.around else [0] * (2 * rank)

    def _pads(self, n: OnnxNode, x: Expr, mode: str) -> list[Dim]:
        rank = len(self.kernel)
        if mode in ("NOTSET", ""):
            return [int(item) for item in (n.attr("pads") or [0] * (2 * rank))]
        if mode == "VALID":
            return [0] * (2 * rank)
        before, after = [], []
        sizes = n.shape(x)[2:]
        for size, kernel, stride, dilation in zip(sizes, self.kernel, self.strides, self.dilation, strict=True):
            total = maximum((ceildiv(size, stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
            small, great = total // 2, total - total // 2
            before.append(small if mode == "SAME_UPPER" else great)
            after.append(great if mode == "SAME_UPPER" else small)
        return [*before, *after]

    def surrounded(self, n: OnnxNode, x: Expr, value: float) -> Expr:
        """The tensor with what stands around it where only the run can tell how much that is."""
        rank = len(self.kernel)
        for axis, (before, after) in enumerate(zip(self.around[:rank], self.around[rank:], strict=True), 2):
            dims = n.shape(x)
            sides = [(*dims[:axis], size, *dims[axis + 1 :]) for size in (before, after)]
            front, back = (R.full(side, R.const(value, n.dtype(x))) for side in sides)
            x = n.emit(R.concat([front, x, back], axis), "around")
        return x


def _biased(n: OnnxNode, result: Expr, bias: Expr | None, rank: int) -> Expr:
    if bias is None:
        return result
    return R.add(result, R.reshape(bias, (1, n.shape(bias)[0], *(1,) * rank)))


def conv(n: OnnxNode, x: Expr, w: Expr, bias: Expr | None) -> Expr:
    """A convolution of one to three axes, in groups."""
    rank = _spatial(n, x)
    return _biased(n, convolved(n, x, w), bias, rank)


def conv_transpose(n: OnnxNode, x: Expr, w: Expr, bias: Expr | None) -> Expr:
    """A transposed convolution; output_shape says how much is cut off."""
    rank = _spatial(n, x)
    strides = tuple(n.attr("strides") or (1,) * rank)
    dilation = tuple(n.attr("dilations") or (1,) * rank)
    extra: list[int] = list(n.attr("output_padding") or (0,) * rank)
    mode, stated = n.attr("auto_pad", "NOTSET"), n.attr("output_shape")
    pads: list[int] = list(n.attr("pads") or (0,) * (2 * rank)) if mode == "NOTSET" else [0] * (2 * rank)
    if stated or mode.startswith("SAME"):
        sizes, widths = n.shape(x)[2:], n.shape(w)[2:]
        reached = [
            stride * (size - 1) + more + (width - 1) * gap + 1
            for stride, size, more, width, gap in zip(strides, sizes, extra, widths, dilation, strict=True)
        ]
        if stated:
            totals = [full - size for full, size in zip(reached, list(stated)[-rank:], strict=True)]
        else:  # steps that are wider than windows leave less than a multiple of the sizes, and nothing is cut off
            multiples = [size * stride for size, stride in zip(sizes, strides, strict=True)]
            totals = [maximum(full - size, 0) for full, size in zip(reached, multiples, strict=True)]
        wanted = [full - total for full, total in zip(reached, totals, strict=True)]
        known = [total for total in totals if isinstance(total, int)]
        if len(known) < rank:
            return _biased(n, _cut_transpose(n, x, w, strides, extra, dilation, totals, wanted), bias, rank)
        extra = [more - min(total, 0) for more, total in zip(extra, known, strict=True)]
        before = [_before(max(total, 0), mode) for total in known]
        pads = [*before, *(max(total, 0) - first for total, first in zip(known, before, strict=True))]
    if any(item >= stride for item, stride in zip(extra, strides, strict=True)):
        return _padded_transpose(n, x, w, bias, strides, pads, extra, dilation, rank)
    result = windows.CONV_TRANSPOSE[rank](x, w, strides, pads, extra, dilation, int(n.attr("group", 1)))
    return _biased(n, result, bias, rank)


def _before(total: Any, mode: str) -> Any:
    """How much of what is cut off is cut off in front."""
    return total // 2 if mode == "SAME_UPPER" else total - total // 2


def _cut_transpose(
    n: OnnxNode, x: Expr, w: Expr, strides: Any, extra: Any, dilation: Any, totals: Sequence[Dim], wanted: Sequence[Dim]
) -> Expr:
    """All that windows reach, with zeros at the ends where that is too little, and cut to sizes of the run."""
    rank = len(strides)
    zeros = [0] * (2 * rank), [0] * rank
    result = windows.CONV_TRANSPOSE[rank](x, w, strides, *zeros, dilation, int(n.attr("group", 1)))
    for axis, (more, total, size) in enumerate(zip(extra, totals, wanted, strict=True), 2):
        dims = n.shape(result)
        behind = (*dims[:axis], maximum(more - total, more), *dims[axis + 1 :])
        result = n.emit(R.concat([result, R.full(behind, R.const(0, n.dtype(x)))], axis), "reached")
        front = _before(maximum(total, 0), n.attr("auto_pad", "NOTSET"))
        result = n.emit(R.strided_slice(result, [axis], [front], [front + size], assume_inbound=True), "cut")
    return result


def _padded_transpose(
    n: OnnxNode, x: Expr, w: Expr, bias: Expr | None, strides: Any, pads: Any, extra: Any, dilation: Any, rank: int
) -> Expr:
    """More elements at the end than the operator takes: zeros, before the bias."""
    less = [min(item, stride - 1) for item, stride in zip(extra, strides, strict=True)]
    result = windows.CONV_TRANSPOSE[rank](x, w, strides, pads, less, dilation, int(n.attr("group", 1)))
    widths = [0] * 4 + [item for a, b in zip(extra, less, strict=True) for item in (0, a - b)]
    return _biased(n, R.nn.pad(result, widths, "constant", 0.0), bias, rank)


def conv_integer(n: OnnxNode, x: Expr, w: Expr, *, centred: bool = False) -> Expr:
    """A convolution of integers without their zero points (unless they are taken off), in int32."""
    rank = _spatial(n, x)
    x, w = R.astype(x, "int32"), R.astype(w, "int32")
    if n.has(2) and not centred:
        x = R.subtract(x, R.astype(n.need(2), "int32"))
    if n.has(3) and not centred:
        zero = R.astype(n.need(3), "int32")
        w = R.subtract(w, R.reshape(zero, (-1, *(1,) * (rank + 1))) if n.rank(n.need(3)) else zero)
    return convolved(n, x, w)


def convolved(n: OnnxNode, x: Expr, w: Expr) -> Expr:
    """A convolution of operands of one dtype, with the attributes of a node."""
    rank = _spatial(n, x)
    window = Window(n, x, n.shape(w)[2:])
    x = window.surrounded(n, x, 0)
    return windows.CONV[rank](x, w, window.strides, window.pads, window.dilation, int(n.attr("group", 1)))


def max_pool(n: OnnxNode, x: Expr) -> Any:
    """The greatest element of each window, and where it stands in the whole tensor."""
    window, rank = Window(n, x, n.attr("kernel_shape")), _spatial(n, x)
    options = window.kernel, window.strides, window.pads, window.dilation, bool(n.attr("ceil_mode", 0))
    if not n.output_wanted(1):
        return windows.MAX_POOL[rank](window.surrounded(n, x, lowest(n.dtype(x))), *options)
    if window.around:
        raise Unsupported("positions beside padding that only the run can tell")
    both = n.emit(windows.MAX_POOL_WITH_INDICES[rank](x, *options), "pooled")
    values, places = (n.emit(TupleGetItem(both, index)) for index in range(2))
    return values, _in_whole(n, x, n.emit(places, "places"), bool(n.attr("storage_order", 0)))


def _in_whole(n: OnnxNode, x: Expr, places: Expr, column_major: bool) -> Expr:
    """Places in the planes of channels, in row-major order, as places in the whole tensor."""
    batch, channels, *spatial = n.shape(x)
    size = product(tuple(spatial))
    if column_major:
        rest, places = places, R.zeros_like(places)
        for axis in range(len(spatial) - 1, -1, -1):
            extent = _scalar(spatial[axis])
            own = n.emit(R.floor_mod(rest, extent), "place")
            places = R.add(places, R.multiply(own, _scalar(product(tuple(spatial[:axis])))))
            rest = n.emit(R.floor_divide(rest, extent), "rest")
    planes = R.reshape(R.arange(0, batch * channels, 1, "int64"), (batch, channels, *(1,) * len(spatial)))
    return R.add(places, R.multiply(planes, _scalar(size)))


def _scalar(size: Dim) -> Expr:
    return R.full((), PrimValue(size), "int64")


def average_pool(n: OnnxNode, x: Expr) -> Expr:
    """The mean of each window; beside padding of the run that of zeros and elements over the share of elements."""
    window, rank = Window(n, x, n.attr("kernel_shape")), _spatial(n, x)
    ceils, padding = bool(n.attr("ceil_mode", 0)), bool(n.attr("count_include_pad", 0))

    def mean(values: Expr) -> Expr:
        options = window.kernel, window.strides, window.pads, window.dilation, ceils, padding
        return windows.AVG_POOL[rank](window.surrounded(n, values, 0), *options)

    if padding or not window.around:
        return mean(x)
    return R.divide(mean(x), mean(R.ones((1, 1, *n.shape(x)[2:]), n.dtype(x))))


def lp_pool(n: OnnxNode, x: Expr) -> Expr:
    """The p-norm of each window: from the mean of powers, padding counted, and what hangs over the end too."""
    window, rank = Window(n, x, n.attr("kernel_shape")), _spatial(n, x)
    p = float(n.attr("p", 2))
    pads = window.pads
    if n.attr("ceil_mode", 0):
        steps = zip(window.kernel, window.dilation, window.strides, pads[rank:], strict=True)
        hang = [min(max((size - 1) * gap + 1 - end, 0), step) - 1 for size, gap, step, end in steps]
        pads = [*pads[:rank], *(end + more for end, more in zip(pads[rank:], hang, strict=True))]
    powers = window.surrounded(n, n.emit(R.power(R.abs(x), p), "powers"), 0)
    mean = windows.AVG_POOL[rank](powers, window.kernel, window.strides, pads, window.dilation, False, True)
    return R.power(R.multiply(mean, float(np.prod(n.attr("kernel_shape")))), 1.0 / p)


def max_unpool(n: OnnxNode, x: Expr, places: Expr) -> Expr:
    """Zeros with the elements in the places that a pool gave; output_shape adds zeros at the ends."""
    if n.has(2) and n.known(2) is None:
        raise Unsupported("sizes that only the run can tell")
    kernel, rank = n.attr("kernel_shape"), _spatial(n, x)
    strides, pads = n.attr("strides") or [1] * rank, n.attr("pads") or [0] * (2 * rank)
    batch, channels, *given = n.shape(x)
    sizes = [
        (size - 1) * stride - (pads[axis] + pads[rank + axis]) + kernel[axis]
        for axis, (size, stride) in enumerate(zip(given, strides, strict=True))
    ]
    plane = R.floor_mod(places, _scalar(product(tuple(sizes))))
    result = R.nn.max_unpool(x, plane, (*sizes,))
    if not n.has(2):
        return result
    wanted = n.sizes(2)
    more = [new - own for new, own in zip(wanted, (batch, channels, *sizes), strict=True)]
    if any(not isinstance(size, int) or size < 0 for size in more):
        raise Unsupported("fewer elements than the pool had, or sizes that are not known")
    return R.nn.pad(result, [width for size in more for width in (0, size)], "constant", 0.0)


def deformable_conv(n: OnnxNode, x: Expr, w: Expr, offset: Expr, bias: Expr | None, mask: Expr | None) -> Expr:
    """A convolution whose windows read each element beside its place."""
    rank = _spatial(n, x)
    if rank != 2:
        raise Unsupported(f"a deformable convolution over {rank} axes")
    window = Window(n, x, n.dims(w, range(2, 4)))
    groups, offset_groups = int(n.attr("group", 1)), int(n.attr("offset_group", 1))
    options = window.strides, window.pads, window.dilation, groups, offset_groups
    return _biased(n, R.nn.deformable_conv2d(x, offset, w, mask, *options), bias, rank)


def max_roi_pool(n: OnnxNode, x: Expr, rois: Expr) -> Expr:
    """The greatest elements of regions of images, cut into bins."""
    size = tuple(int(item) for item in n.attr("pooled_shape"))
    return R.vision.roi_pool(x, rois, size, float(n.attr("spatial_scale", 1.0)))


def over_space(operator: Any) -> Any:
    """A reduction over all spatial axes, which stay with the size 1."""
    return lambda n, x: operator(x, tuple(range(2, n.rank(x))), True)


def lrn(n: OnnxNode, x: Expr) -> Expr:
    """Each value over a power of the sum of squares of its neighbours among the channels."""
    size, alpha, beta, bias = int(n.attr("size")), n.attr("alpha"), n.attr("beta"), n.attr("bias")
    dims = n.shape(x)
    widths = [0] * (2 * len(dims))
    widths[2], widths[3] = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = n.emit(R.nn.pad(R.square(x), widths, "constant", 0.0), "squares")
    total: Any = None
    for offset in range(size):
        part = R.strided_slice(squares, [1], [offset], [dims[1] + offset], assume_inbound=True)
        total = part if total is None else R.add(total, part)
    scale = R.power(R.add(R.multiply(total, float(alpha) / size), float(bias)), float(beta))
    return R.divide(x, scale)


row("Conv", conv)
row("ConvTranspose", conv_transpose)
row("ConvInteger", conv_integer)
row("MaxPool", max_pool)
row("AveragePool", average_pool)
row("LpPool", lp_pool)
row("GlobalAveragePool", over_space(R.mean))
row("GlobalMaxPool", over_space(R.max))
row("LRN", lrn)
row("GlobalLpPool", lambda n, x: R.linalg.vector_norm(x, float(n.attr("p", 2)), tuple(range(2, n.rank(x))), True))
row("MaxUnpool", max_unpool)
row("DeformConv", deformable_conv)
row("MaxRoiPool", max_roi_pool)

# Images ---------------------------------------------------------------------------------------------------------------


def grid_sample(n: OnnxNode, x: Expr, grid: Expr) -> Expr:
    """The image at positions of a grid, whose last axis holds them."""
    mode = {
        "bilinear": "bilinear",
        "linear": "bilinear",
        "nearest": "nearest",
        "bicubic": "bicubic",
        "cubic": "bicubic",
    }[n.attr("mode", "bilinear")]
    padding, align_corners = n.attr("padding_mode", "zeros"), bool(n.attr("align_corners", 0))
    return sampled(x, grid, _spatial(n, x), mode, padding, align_corners)


def affine_grid(n: OnnxNode, theta: Expr) -> Expr:
    """The grid of a sampling that an affine map gives."""
    size = n.sizes(1)
    grid = R.image.affine_grid(theta, size[2:], bool(n.attr("align_corners")))
    return R.permute_dims(grid, (0, *range(2, len(size)), 1))


def roi_align(n: OnnxNode, x: Expr, rois: Expr, batches: Expr) -> Expr:
    """Regions of images cut into bins."""
    aligned = n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" and n.version >= 16
    first = R.expand_dims(R.astype(batches, n.dtype(rois)), [1])
    size = int(n.attr("output_height")), int(n.attr("output_width"))
    if n.attr("mode") == "max":
        raise Unsupported("the greatest of interpolated products")
    ratio = int(n.attr("sampling_ratio"))
    if aligned:  # ours only leaves out the least size of a region
        rois = R.subtract(rois, 0.5 / float(n.attr("spatial_scale")))
    return R.vision.roi_align(
        x, R.concat([first, rois], 1), size, float(n.attr("spatial_scale")), ratio or -1, aligned, "NCHW", "avg"
    )


row("GridSample", grid_sample)
row("AffineGrid", affine_grid)
row("RoiAlign", roi_align)
