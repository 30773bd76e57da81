"""Regions of interest of images.

A region is a row (batch, x1, y1, x2, y2) of rois, in pixels of the image that spatial_scale makes positions of data.
Errors: ShapeError W202, W205 attributes, W228 a layout; DTypeError W320, W321; BoundsError for a batch that data
does not have.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.kernel.prim import binary
from weft.ir.op.common import (
    example,
    f32,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import INDEX, LoopKernel, counted, index, joined, load, loops, store
from weft.ir.op.layout_rules.families import by_text
from weft.ir.op.nn.layouts import Layout, finished, layout_of, packed, unpacked
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType

__all__: list[str] = []

_MOST = 1 << 20
"""More samples along an axis of one bin than any region needs: what limits regions that are infinite or nan."""


def _rule(args: Arguments, context: TypeContext) -> TensorType:
    data, rois = tensor(args, "data", context), tensor(args, "rois", context)
    layout = _layout(args)
    for name, ty, rank in (("data", data, layout.ndim), ("rois", rois, 2)):
        require_rank(args, name, ty, rank)
        require_dtype(args, name, ty, "float")
    same_dtype(args, data, rois)
    sizes = _pooled(args)
    dims, own = dims_of(data), dims_of(rois)
    if own is not None:
        context.require_equal(own[1], 5, f"{args.name}: the second size of rois", args.span)
    if dims is None or own is None:
        return TensorType(None, data.dtype, layout.ndim, data.vdevice)
    channels = layout.check(args, "data", dims, context)["C"]
    shape = layout.result(args, {"N": own[0], "C": channels, "H": sizes[0], "W": sizes[1]}, context)
    return TensorType(shape, data.dtype, vdevice=data.vdevice)


def _layout(args: Arguments) -> Layout:
    return layout_of(args, "layout", args.layout, "NCHW")


def _pooled(args: Arguments) -> tuple[int, int]:
    sizes = args.pooled_size * 2 if len(args.pooled_size) == 1 else args.pooled_size
    if len(sizes) != 2 or min(sizes) < 1:
        raise shape_error(args, f"pooled_size must be 1 or 2 positive values, got {args.pooled_size}", "W205")
    return sizes


def _real(value: Any) -> PrimExpr:
    return te.const(float(value), "float64") if isinstance(value, (int, float)) else te.cast("float64", value)


def _whole(value: PrimExpr, low: int, high: PrimExpr) -> PrimExpr:
    """A float as an int64 in [low, high], whatever it is: nan gives the lowest."""
    least, most = _real(low), _real(high)
    return te.cast(INDEX, te.select(value > least, te.select(value < most, value, most), least))


class _Regions(LoopKernel):
    """The kernel of a pool of regions: what both share."""

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        frame = self.frame
        self.data, self.rois = frame.input("data"), frame.input("rois")
        self.out = frame.output()
        self.layout = _layout(self.args)
        sizes = self.layout.sizes(dims_of(frame.context.type_of(self.args.data)) or ())
        self.batch, self.height, self.width = (frame.size(sizes[letter]) for letter in "NHW")
        self.total, self.found = frame.local("total", "float64"), frame.local("found")
        check = counted("roi", self.rois.shape[0], self._check)
        bins = loops(self.out.shape, lambda i: self.bin(self.layout.places(i), i))
        return finished(frame.finish(check, bins), self.layout)

    def _check(self, roi: PrimExpr) -> Stmt:
        batch = _real(load(self.rois, [roi, 0]))
        inside = binary("and", binary("ge", batch, _real(0)), binary("lt", batch, _real(self.batch)))
        return self.frame.check(inside, "a region of a batch that data does not have")

    def region(self, roi: PrimExpr) -> list[PrimExpr]:
        """x1, y1, x2, y2 in float64, as given."""
        return [_real(load(self.rois, [roi, column])) for column in (1, 2, 3, 4)]

    def element(self, at: dict[str, PrimExpr], y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """One element of the batch and channel of an output."""
        batch = _whole(_real(load(self.rois, [at["N"], 0])), 0, self.batch - 1)
        return _real(load(self.data, self.layout.indices({**at, "N": batch, "H": y, "W": x})))

    def bin(self, at: dict[str, PrimExpr], i: Any) -> Stmt:
        """The statements that compute one output."""
        raise NotImplementedError


# ---------------------------------------------------------------------------------------------------------------------
# Alignment
# ---------------------------------------------------------------------------------------------------------------------


class _Align(_Regions):
    def bin(self, at: dict[str, PrimExpr], i: Any) -> Stmt:
        args, (rows, columns) = self.args, _pooled(self.args)
        scale = _real(args.spatial_scale)
        x1, y1, x2, y2 = (value * scale for value in self.region(at["N"]))
        extents = (y2 - y1, x2 - x1)
        if not args.aligned:
            extents = tuple(te.maximum(extent, _real(1)) for extent in extents)
        bins = [extent / _real(count) for extent, count in zip(extents, (rows, columns), strict=True)]
        counts = [index(args.sample_ratio)] * 2
        if args.sample_ratio <= 0:
            counts = [_whole(te.ceil(bin_size), 0, index(_MOST)) for bin_size in bins]

        def place(start: PrimExpr, letter: str, axis: int, sample: PrimExpr) -> PrimExpr:
            share = (_real(sample) + _real(0.5)) / _real(te.maximum(counts[axis], 1))
            return start + (_real(at[letter]) + share) * bins[axis]

        def sampled(sy: PrimExpr, sx: PrimExpr) -> Stmt:
            value = self._bilinear(at, place(y1, "H", 0, sy), place(x1, "W", 1, sx))
            return self._join(value)

        samples = counted("sy", counts[0], lambda sy: counted("sx", counts[1], lambda sx: sampled(sy, sx)))
        total, found = load(self.total, [0]), load(self.found, [0])
        result = total / _real(te.maximum(found, 1)) if args.mode == "avg" else total
        return joined(store(self.total, _real(0)), store(self.found, index(0)), samples, store(self.out, result, i))

    def _join(self, value: PrimExpr) -> Stmt:
        total, found = load(self.total, [0]), load(self.found, [0])
        new = total + value if self.args.mode == "avg" else te.select(found > 0, te.maximum(total, value), value)
        return joined(store(self.total, new), store(self.found, found + index(1)))

    def _bilinear(self, at: dict[str, PrimExpr], y: PrimExpr, x: PrimExpr) -> PrimExpr:
        """The value between four elements; 0 more than one element outside of data."""
        height, width = _real(self.height), _real(self.width)
        inside = te.all(y >= _real(-1), y <= height, x >= _real(-1), x <= width, self.height > 0, self.width > 0)
        parts: list[tuple[PrimExpr, PrimExpr, PrimExpr]] = []
        for place, size in ((y, self.height), (x, self.width)):
            held = te.maximum(te.minimum(place, _real(size - 1)), _real(0))
            low = _whole(te.floor(held), 0, size - 1)
            parts.append((low, te.minimum(low + 1, size - 1), held - _real(low)))
        (top, bottom, v), (left, right, h) = parts
        one = _real(1)
        upper = self.element(at, top, left) * (one - h) + self.element(at, top, right) * h
        lower = self.element(at, bottom, left) * (one - h) + self.element(at, bottom, right) * h
        return te.if_then_else(inside, upper * (one - v) + lower * v, _real(0))


def _check_batches(name: str, data: np.ndarray, rois: np.ndarray) -> None:
    if rois.size and (rois[:, 0].min() < 0 or rois[:, 0].max() >= data.shape[0]):
        raise BoundsError(f"R.vision.{name}: a region of a batch that data does not have")


def _numpy_bilinear(plane: np.ndarray, y: float, x: float) -> float:
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width) or not plane.size:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, h = y - top, x - left
    upper = plane[top, left] * (1 - h) + plane[top, right] * h
    return upper * (1 - v) + (plane[bottom, left] * (1 - h) + plane[bottom, right] * h) * v


def _numpy_roi_align(
    data: np.ndarray,
    rois: np.ndarray,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int,
    aligned: bool,
    layout: str,
    mode: str,
) -> np.ndarray:
    _check_batches("roi_align", data, rois)
    rows, columns = pooled_size * 2 if len(pooled_size) == 1 else pooled_size
    images = unpacked(data, layout, "NCHW").astype(np.float64)
    out = np.zeros((len(rois), images.shape[1], rows, columns))
    for r, c, row, column in np.ndindex(out.shape):
        x1, y1, x2, y2 = (float(value) * spatial_scale for value in rois[r, 1:])
        high, wide = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1.0), max(x2 - x1, 1.0))
        bins = (high / rows, wide / columns)
        counts = [sample_ratio if sample_ratio > 0 else max(math.ceil(size), 0) for size in bins]
        values = [
            _numpy_bilinear(
                images[int(rois[r, 0]), c],
                y1 + (row + (sy + 0.5) / counts[0]) * bins[0],
                x1 + (column + (sx + 0.5) / counts[1]) * bins[1],
            )
            for sy in range(counts[0])
            for sx in range(counts[1])
        ]
        out[r, c, row, column] = (sum(values) / len(values) if mode == "avg" else max(values)) if values else 0.0
    return packed(out, layout, "NCHW").astype(data.dtype)


_ROIS = {"rois": (0.0, 0.9)}


@register_op(
    "vision.roi_align",
    [
        Param("data"),
        Param("rois"),
        Param("pooled_size", "attr", of="ints"),
        Param("spatial_scale", "attr", of="float"),
        Param("sample_ratio", "attr", -1, "int"),
        Param("aligned", "attr", False, "bool"),
        Param("layout", "attr", "NCHW", "str"),
        Param("mode", "attr", "avg", "str"),
    ],
    lowering=_Align.lowering(),
    numpy=_numpy_roi_align,
    pure=True,
    layout=by_text("data"),
    examples=(
        example(f32(1, 2, 6, 5), f32(3, 5), (2, 3), 5.0, ranges=_ROIS),
        example(f32(1, 1, "h", 4), f32("r", 5), 2, 4.0, sample_ratio=2, aligned=True, mode="max", ranges=_ROIS),
        example(f32(1, 4, 5, 2), f32(2, 5), (2, 2), 6.0, layout="NHWC", ranges=_ROIS),
    ),
)
def roi_align(args: Arguments, context: TypeContext) -> TensorType:
    """Each region cut into pooled_size bins, of whose values between elements the mean (avg) or the greatest (max) is
    taken: data (n, c, h, w), rois (r, 5) -> (r, c, y, x).

    A bin has sample_ratio samples along an axis, as many as it has elements when that is not positive. Unless aligned,
    a region is at least one element large. A bin without samples is 0.
    """
    if args.mode not in ("avg", "max"):
        raise shape_error(args, f"mode must be avg or max, got {args.mode!r}", "W205")
    return _rule(args, context)


# ---------------------------------------------------------------------------------------------------------------------
# Pools
# ---------------------------------------------------------------------------------------------------------------------


class _Pool(_Regions):
    def bin(self, at: dict[str, PrimExpr], i: Any) -> Stmt:
        rows, columns = _pooled(self.args)
        scale = _real(self.args.spatial_scale)
        x1, y1, x2, y2 = (self._rounded(value * scale) for value in self.region(at["N"]))
        ranges: list[tuple[PrimExpr, PrimExpr]] = []
        for first, last, letter, count, size in (
            (y1, y2, "H", rows, self.height),
            (x1, x2, "W", columns, self.width),
        ):
            share = te.maximum(last - first + _real(1), _real(1)) / _real(count)
            start = te.floor(_real(at[letter]) * share) + first
            stop = te.ceil((_real(at[letter]) + _real(1)) * share) + first
            ranges.append((_whole(start, 0, size), _whole(stop, 0, size)))
        (top, bottom), (left, right) = ranges

        def look(y: PrimExpr, x: PrimExpr) -> Stmt:
            value, total = self.element(at, top + y, left + x), load(self.total, [0])
            first = te.equal(load(self.found, [0]), 0)
            new = te.select(first, value, te.maximum(total, value))
            return joined(store(self.total, new), store(self.found, index(1)))

        heights, widths = te.maximum(bottom - top, 0), te.maximum(right - left, 0)
        search = counted("y", heights, lambda y: counted("x", widths, lambda x: look(y, x)))
        clear = (store(self.total, _real(0)), store(self.found, index(0)))
        return joined(*clear, search, store(self.out, load(self.total, [0]), i))

    @staticmethod
    def _rounded(value: PrimExpr) -> PrimExpr:
        # Halves away from zero.
        return te.select(value >= _real(0), te.floor(value + _real(0.5)), te.ceil(value - _real(0.5)))


def _numpy_roi_pool(
    data: np.ndarray, rois: np.ndarray, pooled_size: Any, spatial_scale: float, layout: str
) -> np.ndarray:
    _check_batches("roi_pool", data, rois)
    rows, columns = pooled_size * 2 if len(pooled_size) == 1 else pooled_size
    images = unpacked(data, layout, "NCHW")
    out = np.zeros((len(rois), images.shape[1], rows, columns))
    for r, c, row, column in np.ndindex(out.shape):
        scaled = [float(value) * spatial_scale for value in rois[r, 1:]]
        x1, y1, x2, y2 = (math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1) for value in scaled)
        cuts: list[slice] = []
        for first, last, place, count, size in (
            (y1, y2, row, rows, images.shape[2]),
            (x1, x2, column, columns, images.shape[3]),
        ):
            share = max(last - first + 1, 1) / count
            ends = (math.floor(place * share) + first, math.ceil((place + 1) * share) + first)
            cuts.append(slice(*(min(max(end, 0), size) for end in ends)))
        part = images[int(rois[r, 0]), c][tuple(cuts)]
        out[r, c, row, column] = part.max() if part.size else 0.0
    return packed(out, layout, "NCHW").astype(data.dtype)


@register_op(
    "vision.roi_pool",
    [
        Param("data"),
        Param("rois"),
        Param("pooled_size", "attr", of="ints"),
        Param("spatial_scale", "attr", of="float"),
        Param("layout", "attr", "NCHW", "str"),
    ],
    lowering=_Pool.lowering(),
    numpy=_numpy_roi_pool,
    pure=True,
    layout=by_text("data"),
    examples=(
        example(f32(1, 2, 6, 5), f32(3, 5), (2, 3), 6.0, ranges=_ROIS),
        example(f32(1, 1, "h", 4), f32("r", 5), 2, 5.0, ranges=_ROIS),
        example(f32(1, 4, 5, 2), f32(2, 5), (2, 2), 6.0, layout="NHWC", ranges=_ROIS),
    ),
)
def roi_pool(args: Arguments, context: TypeContext) -> TensorType:
    """Each region, rounded to whole elements (halves away from zero), cut into pooled_size bins, of which the greatest
    element is taken: data (n, c, h, w), rois (r, 5) -> (r, c, y, x).

    A bin without elements is 0.
    """
    return _rule(args, context)
