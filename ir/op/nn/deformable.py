"""Deformable convolution: every element of a window is read beside its place, by offsets that come as a tensor.

The elements are interpolated into columns first, then multiplied with the kernel as in any convolution.
Errors: those of windows (W205, W227); ShapeError W201, W202; DTypeError W320, W321.

Source: Dai et al., Deformable convolutional networks, 2017; with a mask: Zhu et al., Deformable ConvNets v2, 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Dims,
    Kernel,
    converted,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_known_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.linalg.products import contraction
from weft.ir.op.nn.window import Window, check_window, window_of
from weft.ir.op.precision import never
from weft.ir.op.reductions.reduction import accumulator, sizes_of
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []


def _window(args: Arguments, weight: Dims) -> Window:
    return window_of(args, "HW", weight[2:])


def _shapes(args: Arguments, data: Dims, weight: Dims) -> dict[str, Dims]:
    """The shapes that offset, mask and result have."""
    rows, columns = _window(args, weight).outputs(args, data[2:])
    elements = args.offset_groups * weight[2] * weight[3]
    return {
        "offset": (data[0], 2 * elements, rows, columns),
        "mask": (data[0], elements, rows, columns),
        "out": (data[0], weight[0], rows, columns),
    }


def _stated(data: Dims, weight: Dims, groups: int) -> tuple[Dims, Dims]:
    """The shapes with the channels of one stated through those of the other."""
    if isinstance(weight[1], int) or not isinstance(data[1], int) or data[1] % groups:
        return (data[0], weight[1] * groups, *data[2:]), weight
    return data, (weight[0], data[1] // groups, *weight[2:])


class _Sampled:
    """The element that a window reads, between the four elements around its place."""

    def __init__(self, kernel: Kernel, data: te.Tensor, offset: te.Tensor, mask: te.Tensor | None) -> None:
        self.args, self.data, self.offset, self.mask = kernel.args, data, offset, mask
        self.wide = accumulator(kernel.dtype)

    def __call__(self, window: Window, at: tuple[PrimExpr, ...]) -> PrimExpr:
        n, c, row, column, i, j = at
        kernel_rows, kernel_columns = map(te.size, window.sizes)
        group = c // (te.size(self.data.shape[1]) // self.args.offset_groups)
        element = (group * kernel_rows + row) * kernel_columns + column
        places: list[PrimExpr] = []
        for axis, (step, tap) in enumerate(((i, row), (j, column))):
            place = step * window.strides[axis] - window.begins[axis] + tap * window.dilation[axis]
            moved = te.cast(self.wide, self.offset(n, element * 2 + axis, i, j))
            places.append(te.cast(self.wide, place) + moved)
        value = self._between(n, c, places)
        return value if self.mask is None else value * te.cast(self.wide, self.mask(n, element, i, j))

    def _between(self, n: PrimExpr, c: PrimExpr, places: list[PrimExpr]) -> PrimExpr:
        floors = [te.floor(place) for place in places]
        lows = [te.cast("int64", floor) for floor in floors]
        shares = [place - floor for place, floor in zip(places, floors, strict=True)]
        total: PrimExpr | None = None
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            spots = [low + step for low, step in zip(lows, corner, strict=True)]
            inside = [spot >= 0 for spot in spots]
            inside += [spot < size for spot, size in zip(spots, self.data.shape[2:], strict=True)]
            parts = [share if step else 1 - share for share, step in zip(shares, corner, strict=True)]
            value = te.cast(self.wide, self.data(n, c, *spots)) * (parts[0] * parts[1])
            value = te.if_then_else(te.all(*inside), value, te.const(0, self.wide))
            total = value if total is None else total + value
        assert total is not None
        return total


@kernel_lowering
def _lower(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    groups = args.groups
    data_dims, weight_dims = _stated(sizes_of(args, "data", context), sizes_of(args, "weight", context), groups)
    window, shapes = _window(args, weight_dims), _shapes(args, data_dims, weight_dims)
    kernel.require_equal(weight_dims[0] % groups, 0, "the output channels are not a multiple of groups")
    kernel.require_equal(data_dims[1] % args.offset_groups, 0, "the channels are not a multiple of offset_groups")
    check_window(kernel, window, data_dims[2:])
    data, offset = kernel.input("data", data_dims), kernel.input("offset", shapes["offset"])
    weight = kernel.input("weight", weight_dims)
    mask: Any = kernel.input("mask", shapes["mask"]) if args.mask is not None else None
    assert isinstance(data, te.Tensor)
    assert isinstance(offset, te.Tensor)
    sampled = _Sampled(kernel, data, offset, mask)
    columns = te.compute(
        (*data_dims[:2], *weight_dims[2:], *shapes["out"][2:]), lambda *at: sampled(window, at), "columns"
    )
    channel, row, column = (te.reduce_axis((0, weight_dims[1 + i]), name=f"r{'chw'[i]}") for i in range(3))

    def formula(dtype: str) -> Any:
        def body(n: PrimExpr, o: PrimExpr, i: PrimExpr, j: PrimExpr) -> PrimExpr:
            depth: Any = channel
            if groups > 1:
                depth = o // (te.size(weight_dims[0]) // groups) * te.size(weight_dims[1]) + channel
            value = te.cast(dtype, columns(n, depth, row, column, i, j))
            return value * te.cast(dtype, weight(o, channel, row, column))

        return body

    return kernel.finish(contraction(kernel, kernel.dims, formula, [channel, row, column], "deformable_conv2d"))


def _pair(values: Any) -> tuple[int, int]:
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _reference(
    data: Any,
    offset: Any,
    weight: Any,
    mask: Any,
    *,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    offset_groups: int,
) -> Any:
    x, w = data.astype("float64"), weight.astype("float64")
    n, channels, *sizes = x.shape
    count, _, *kernel = w.shape
    outputs = offset.shape[2:]
    moved = offset.astype("float64").reshape(n, offset_groups, *kernel, 2, *outputs)
    factors = np.ones((n, offset_groups, *kernel, *outputs))
    if mask is not None:
        factors = mask.astype("float64").reshape(factors.shape)
    steps, gaps, pads = _pair(strides), _pair(dilation), _pair(padding)
    columns = np.zeros((n, channels, *kernel, *outputs))
    for at in np.ndindex(*columns.shape):
        b, c, *tap, i, j = at
        group = c // (channels // offset_groups)
        wide = "float64" if data.dtype == "float64" else "float32"
        places = [
            np.asarray(place * step - pad + t * gap, wide) + moved[(b, group, *tap, axis, i, j)].astype(wide)
            for axis, (place, step, pad, t, gap) in enumerate(zip((i, j), steps, pads, tap, gaps, strict=True))
        ]
        lows = [int(converted(np.floor(place), "int64")) for place in places]
        shares = [float(place) - np.floor(float(place)) for place in places]
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            spot = [low + step for low, step in zip(lows, corner, strict=True)]
            if all(0 <= p < size for p, size in zip(spot, sizes, strict=True)):
                part = np.prod([share if step else 1 - share for share, step in zip(shares, corner, strict=True)])
                columns[at] += x[(b, c, *spot)] * part
        columns[at] *= factors[(b, group, *tap, i, j)]
    result = np.zeros((n, count, *outputs))
    for group in range(groups):
        own = slice(group * count // groups, (group + 1) * count // groups)
        taken = slice(group * w.shape[1], (group + 1) * w.shape[1])
        result[:, own] = np.einsum("nchwij,ochw->noij", columns[:, taken], w[own])
    return result.astype(data.dtype)


@register_op(
    "nn.deformable_conv2d",
    [
        Param("data"),
        Param("offset"),
        Param("weight"),
        Param("mask", default=None),
        Param("strides", "attr", (1, 1), "ints"),
        Param("padding", "attr", (0, 0), "ints"),
        Param("dilation", "attr", (1, 1), "ints"),
        Param("groups", "attr", 1, "int"),
        Param("offset_groups", "attr", 1, "int"),
    ],
    lowering=_lower,
    numpy=_reference,
    pure=True,
    examples=(
        example(f32(1, 2, 5, 4), f32(1, 12, 4, 2), f32(3, 2, 2, 3)),
        example(
            f32("n", 4, 5, 6),
            f32("n", 16, 2, 3),
            f32(2, 2, 2, 2),
            f32("n", 8, 2, 3),
            strides=2,
            groups=2,
            offset_groups=2,
        ),
        example(f32(1, 1, "h", 5), f32(1, 18, "h", 3), f32(2, 1, 3, 3), padding=[1, 0], least=1),
        example(typed("float16", 1, 2, 4, 4), typed("float16", 1, 8, 2, 2), typed("float16", 1, 2, 2, 2), dilation=2),
    ),
    precision=never("the places that it samples need float32"),
)
def deformable_conv2d(args: Arguments, context: TypeContext) -> TensorType:
    """A convolution over two axes whose windows read each element beside its place, moved by an offset.

    data (n, c, h, w), weight (o, c / groups, kh, kw), offset (n, 2 offset_groups kh kw, h', w') with the rows and the
    columns of each element in turn, mask (n, offset_groups kh kw, h', w') of factors. Elements between others are
    interpolated linearly, with 0 around data.
    """
    data, offset, weight = (tensor(args, name, context) for name in ("data", "offset", "weight"))
    given = [("data", data), ("offset", offset), ("weight", weight)]
    if args.mask is not None:
        given.append(("mask", tensor(args, "mask", context)))
    for name, ty in given:
        require_known_rank(args, name, ty, 4)
        require_dtype(args, name, ty, "float")
    dtype = same_dtype(args, *(ty for _, ty in given))
    for name in ("groups", "offset_groups"):
        if args[name] < 1:
            raise shape_error(args, f"{name} must be positive, got {args[name]}", "W205")
    dims, kernel = dims_of(data), dims_of(weight)
    if dims is None or kernel is None:
        return TensorType(dtype=dtype, ndim=4)
    _require(args, context, "channels of data and of weight", dims[1], kernel[1] * args.groups)
    _require(args, context, "output channels modulo groups", kernel[0] % args.groups, 0)
    _require(args, context, "channels modulo offset_groups", dims[1] % args.offset_groups, 0)
    shapes = _shapes(args, dims, kernel)
    for name, ty in given:
        for own, wanted in zip(dims_of(ty) or (), shapes.get(name, ()), strict=False):
            _require(args, context, f"the sizes of {name}", own, wanted)
    return TensorType(shapes["out"], dtype)


def _require(args: Arguments, context: TypeContext, what: str, own: Dim, wanted: Dim) -> None:
    context.require_equal(own, wanted, f"{args.name}: {what}", args.span)
