"""Convolutions and transposed convolutions over one, two or three spatial axes, in any order of axes.

The result has `out_dtype`, by default the dtype of the operands; sums of types narrower than float32 run in float32.
Errors: those of windows (W205, W227, W228); ShapeError W201 channels that do not match; DTypeError W320, W321.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product as combinations
from typing import Any, ClassVar

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Kernel,
    converted,
    example,
    f32,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.layout_rules.families import windowed
from weft.ir.op.linalg.products import contraction
from weft.ir.op.nn.conv_phases import TransposedShape, by_phases
from weft.ir.op.nn.layouts import Layout, finished, layout_of, packed, unpacked
from weft.ir.op.nn.window import (
    SpatialFamily,
    Window,
    begins_and_ends,
    by_letter,
    check_window,
    padded_stage,
    per_axis,
    spread,
    window_of,
)
from weft.ir.op.precision import Precision, always
from weft.ir.op.reductions.reduction import sizes_of
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType
from weft.support.records import dataclass

__all__: list[str] = []

Sizes = dict[str, Dim]


def _layouts(args: Arguments, spatial: str) -> tuple[Layout, Layout, Layout]:
    """The layouts of data, kernel and result, checked."""
    return (
        layout_of(args, "data_layout", args.data_layout, f"NC{spatial}"),
        layout_of(args, "kernel_layout", args.kernel_layout, f"OI{spatial}"),
        layout_of(args, "out_layout", args.out_layout or args.data_layout, f"NC{spatial}"),
    )


def _operands(
    args: Arguments, layouts: tuple[Layout, ...], context: TypeContext
) -> tuple[TensorType, TensorType, str | None]:
    data, weight = tensor(args, "data", context), tensor(args, "weight", context)
    for name, operand, layout in zip(("data", "weight"), (data, weight), layouts, strict=False):
        require_rank(args, name, operand, layout.ndim)
        require_dtype(args, name, operand, "number")
    if args.groups < 1:
        raise shape_error(args, f"groups must be positive, got {args.groups}", "W205")
    same_dtype(args, data, weight)
    return data, weight, args.out_dtype or same_dtype(args, data, weight)


def _matched_channels(data: Sizes, weight: Sizes, groups: int) -> tuple[Sizes, Sizes]:
    """The sizes, with the channels of data and kernel stated through each other: so the kernel's buffers check them."""
    channels, inner = data["C"], weight["I"]
    if isinstance(inner, int):
        return {**data, "C": inner * groups}, weight
    if isinstance(channels, int) and channels % groups == 0:
        return data, {**weight, "I": channels // groups}
    return {**data, "C": inner * groups}, weight


def _window(args: Arguments, spatial: str, weight: Mapping[str, Dim]) -> Window:
    return window_of(args, spatial, [weight[letter] for letter in spatial])


# ---------------------------------------------------------------------------------------------------------------------
# Convolution
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Windowed(SpatialFamily):
    """A convolution over so many spatial axes, or the transposed one."""

    kernel_order: ClassVar[str] = "OI"
    extra: ClassVar[tuple[str, ...]] = ()
    layout: ClassVar[Any] = staticmethod(windowed)
    precision: ClassVar[Precision] = always("data", "weight")

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        one, none = (1,) * self.count, (0,) * self.count
        return (
            Param("data"),
            Param("weight"),
            Param("strides", "attr", one, "ints"),
            Param("padding", "attr", none, "ints"),
            *(Param(name, "attr", none, "ints") for name in self.extra),
            Param("dilation", "attr", one, "ints"),
            Param("groups", "attr", 1, "int"),
            Param("data_layout", "attr", f"NC{self.spatial}", "str"),
            Param("kernel_layout", "attr", f"{self.kernel_order}{self.spatial}", "str"),
            Param("out_layout", "attr", None, "str?"),
            Param("out_dtype", "dtype", None),
        )

    def rule(self, args: Arguments, context: TypeContext) -> TensorType:
        """The type of the result."""
        layouts = _layouts(args, self.spatial)
        data, weight, dtype = _operands(args, layouts, context)
        data_layout, kernel_layout, out_layout = layouts
        if data.dims is None or weight.dims is None:
            return TensorType(dtype=dtype, ndim=out_layout.ndim)
        sizes = data_layout.check(args, "data", data.dims, context)
        kernel = kernel_layout.check(args, "weight", weight.dims, context)
        result = self.outputs(args, context, sizes, kernel)
        return TensorType(out_layout.result(args, result, context), dtype, vdevice=data.vdevice)

    def outputs(
        self, args: Arguments, context: TypeContext, sizes: dict[str, Dim], kernel: dict[str, Dim]
    ) -> dict[str, Dim]:
        """The sizes of the result by letter, those of data and weight being checked against each other."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Convolution(_Windowed):
    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.conv{self.count}d"

    def outputs(
        self, args: Arguments, context: TypeContext, sizes: dict[str, Dim], kernel: dict[str, Dim]
    ) -> dict[str, Dim]:
        groups = args.groups
        context.require_equal(
            sizes["C"], kernel["I"] * groups, f"{args.name}: channels of data and of weight", args.span
        )
        context.require_equal(kernel["O"] % groups, 0, f"{args.name}: output channels modulo groups", args.span)
        outputs = _window(args, self.spatial, kernel).outputs(args, [sizes[letter] for letter in self.spatial])
        return {"N": sizes["N"], "C": kernel["O"], **by_letter(self.spatial, outputs)}

    def lower(self, frame: Kernel) -> PrimFunc | None:
        args, context = frame.args, frame.context
        data_layout, kernel_layout, out_layout = _layouts(args, self.spatial)
        groups = args.groups
        sizes, kernel = _matched_channels(
            data_layout.sizes(sizes_of(args, "data", context)),
            kernel_layout.sizes(sizes_of(args, "weight", context)),
            groups,
        )
        window = _window(args, self.spatial, kernel)
        frame.require_equal(kernel["O"] % groups, 0, "the output channels are not a multiple of groups")
        check_window(frame, window, [sizes[letter] for letter in self.spatial])
        data = frame.input("data", data_layout.dims(sizes))
        weight = frame.input("weight", kernel_layout.dims(kernel))
        assert isinstance(data, te.Tensor)
        place = {letter: data_layout.index(letter) for letter in self.spatial}
        begins = {place[letter]: window.begins[axis] for axis, letter in enumerate(self.spatial)}
        ends = {place[letter]: window.ends[axis] for axis, letter in enumerate(self.spatial)}
        source = padded_stage(data, begins, ends, te.const(0, data.dtype))
        channels, channel = data_layout.reduction("C", kernel["I"], "rc")
        offsets = {letter: te.reduce_axis((0, kernel[letter]), name=f"r{letter.lower()}") for letter in self.spatial}

        def formula(dtype: str) -> Any:
            def body(*indices: PrimExpr) -> PrimExpr:
                at = out_layout.places(indices)
                within = {
                    letter: _scaled(at[letter], window.strides[axis]) + _scaled(offsets[letter], window.dilation[axis])
                    for axis, letter in enumerate(self.spatial)
                }
                group = at["C"] // (kernel["O"] // groups) * kernel["I"] if groups > 1 else None
                depth = channel if group is None else group + channel
                left = source(*data_layout.indices({"N": at["N"], "C": depth, **within}))
                right = weight(*kernel_layout.indices({"O": at["C"], "I": channel, **offsets}))
                return te.cast(dtype, left) * te.cast(dtype, right)

            return body

        axes = [*channels, *offsets.values()]
        nest = contraction(frame, frame.dims, formula, axes, f"conv{self.count}d")
        return finished(frame.finish(nest), data_layout, kernel_layout, out_layout)

    def reference(self, data: Any, weight: Any, **attrs: Any) -> Any:
        """The convolution by slices."""
        return _convolved(self.spatial, data, weight, _Given(**attrs))


def _scaled(index: PrimExpr, factor: int) -> PrimExpr:
    return index if factor == 1 else index * factor


def _canonical(array: Any, layout: str, order: str, target: np.dtype[Any]) -> Any:
    """An array with its axes in a given order, in a dtype that is exact enough for a reference."""
    exact = np.dtype("float64") if np.issubdtype(target, np.floating) else target
    return converted(unpacked(array, layout, order), exact)


@dataclass(frozen=True)
class _Given:
    """The attributes of a call, for references."""

    strides: Any
    padding: Any
    dilation: Any
    groups: int
    data_layout: str
    kernel_layout: str
    out_layout: str | None
    out_dtype: str | None
    output_padding: Any = (0,)


def _convolved(spatial: str, data: Any, weight: Any, given: _Given) -> Any:
    """The convolution as a sum over the kernel's positions of products of strided slices."""
    target, count = np.dtype(given.out_dtype or data.dtype), len(spatial)
    x = _canonical(data, given.data_layout, f"NC{spatial}", target)
    w = _canonical(weight, given.kernel_layout, f"OI{spatial}", target)
    begins, ends = begins_and_ends(given.padding, count)
    x = np.pad(x, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
    steps, gaps = spread(given.strides, count), spread(given.dilation, count)
    rooms = [x.shape[2 + a] - gaps[a] * (w.shape[2 + a] - 1) - 1 for a in range(count)]
    if min(rooms) < 0:
        raise ValueError("the window does not fit")
    outputs = [room // step + 1 for room, step in zip(rooms, steps, strict=True)]
    result = np.zeros((x.shape[0], w.shape[0], *outputs), x.dtype)
    width = w.shape[0] // given.groups
    for group in range(given.groups):
        own = slice(group * width, (group + 1) * width)
        channels = slice(group * w.shape[1], (group + 1) * w.shape[1])
        for offset in combinations(*map(range, w.shape[2:])):
            cut = tuple(
                slice(o * gap, o * gap + (size - 1) * step + 1, step)
                for o, gap, size, step in zip(offset, gaps, outputs, steps, strict=True)
            )
            part = x[(slice(None), channels, *cut)]
            result[:, own] += np.einsum("nc...,oc->no...", part, w[(own, slice(None), *offset)])
    return packed(result, given.out_layout or given.data_layout, f"NC{spatial}").astype(target)


_Convolution(1).declare(
    "The convolution over one axis: sums of products of windows of data with a kernel, by groups of channels.",
    (
        example(f32(2, 3, 9), f32(4, 3, 3)),
        example(f32("n", 4, "w"), f32(2, 2, 1), groups=2, least=1),
        example(f32("n", 8, 3), f32(3, 3, 2), strides=2, padding=1, data_layout="NWC", kernel_layout="WIO"),
        example(f32(1, 2, 9), f32(2, 2, 3), dilation=2, padding=[1, 2], out_layout="NWC"),
    ),
)
_Convolution(2).declare(
    "The convolution over two axes: sums of products of windows of data with a kernel, by groups of channels.",
    (
        example(f32(1, 3, 6, 7), f32(4, 3, 3, 2)),
        example(f32("n", 2, "h", 5), f32(3, 2, 1, 3), padding=[1, 1], least=1),
        example(
            f32(1, 7, 6, 3),
            f32(2, 2, 3, 4),
            strides=[2, 1],
            padding=[1, 0, 2, 1],
            data_layout="NHWC",
            kernel_layout="HWIO",
        ),
        example(f32(2, 4, 7, 7), f32(6, 2, 3, 3), groups=2, dilation=2, out_layout="NHWC"),
        example(f32(1, 3, 5, 5), f32(3, 1, 3, 3), groups=3, padding=1),
        example(f32(1, "c", 4, 4), f32("o", "c", 2, 2), strides=2),
        example(typed("float16", 1, 8, 4, 4), typed("float16", 2, 8, 3, 3)),
        example(typed("int8", 1, 2, 4, 4), typed("int8", 2, 2, 2, 2), out_dtype="int32"),
        example(f32(1, 2, 5, 5, 4), f32(2, 8, 3, 3, 4), padding=1, data_layout="NCHW4c", kernel_layout="OIHW4o"),
        example(
            f32(1, 2, 4, 4, 2), f32(1, 2, 2, 2, 2, 4), data_layout="NCHW2c", kernel_layout="OIHW2i4o", out_layout="NHWC"
        ),
        example(f32(2, 4, 4, 4), f32(4, 2, 3, 3), groups=2, out_layout="NHWC2n2c"),
        example(f32("n", "c", 4, 4, 4), f32("o", 8, 3, 3, 4), data_layout="NCHW4c", kernel_layout="OIHW4o"),
    ),
)
_Convolution(3).declare(
    "The convolution over three axes: sums of products of windows of data with a kernel, by groups of channels.",
    (
        example(f32(1, 2, 4, 5, 4), f32(2, 2, 2, 3, 2)),
        example(
            f32("n", 3, 3, 4, 2),
            f32(2, 2, 2, 1, 1),
            strides=[1, 2, 1],
            padding=1,
            groups=2,
            data_layout="NDHWC",
            kernel_layout="ODHWI",
            dilation=[1, 1, 2],
        ),
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# Transposed convolution
# ---------------------------------------------------------------------------------------------------------------------


def _transposed_outputs(args: Arguments, window: Window, extra: tuple[int, ...], sizes: list[Dim]) -> tuple[Dim, ...]:
    found: list[Dim] = []
    for axis, size in enumerate(sizes):
        if extra[axis] >= max(window.strides[axis], window.dilation[axis]):
            message = f"output_padding ({extra[axis]}) must be smaller than the stride or the dilation"
            raise shape_error(args, message, "W205")
        covered = (size - 1) * window.strides[axis] + window.reach(axis) + extra[axis]
        left = covered - window.begins[axis] - window.ends[axis]
        if isinstance(left, int) and left < 0:
            raise shape_error(args, f"the padding leaves nothing along {window.letters[axis]}", "W227")
        found.append(left)
    return tuple(found)


@dataclass(frozen=True)
class _TransposedConvolution(_Windowed):
    kernel_order: ClassVar[str] = "IO"
    extra: ClassVar[tuple[str, ...]] = ("output_padding",)

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.conv{self.count}d_transpose"

    def outputs(
        self, args: Arguments, context: TypeContext, sizes: dict[str, Dim], kernel: dict[str, Dim]
    ) -> dict[str, Dim]:
        context.require_equal(sizes["C"], kernel["I"], f"{args.name}: channels of data and of weight", args.span)
        context.require_equal(sizes["C"] % args.groups, 0, f"{args.name}: channels modulo groups", args.span)
        extra = per_axis(args, "output_padding", self.count, 0)
        window = _window(args, self.spatial, kernel)
        outputs = _transposed_outputs(args, window, extra, [sizes[letter] for letter in self.spatial])
        return {"N": sizes["N"], "C": kernel["O"] * args.groups, **by_letter(self.spatial, outputs)}

    def lower(self, frame: Kernel) -> PrimFunc | None:
        args, context = frame.args, frame.context
        data_layout, kernel_layout, out_layout = _layouts(args, self.spatial)
        sizes = data_layout.sizes(sizes_of(args, "data", context))
        kernel = kernel_layout.sizes(sizes_of(args, "weight", context))
        channels = sizes["C"] if isinstance(sizes["C"], int) else kernel["I"]
        sizes["C"] = kernel["I"] = channels
        frame.require_equal(channels % args.groups, 0, "the channels are not a multiple of groups")
        window = _window(args, self.spatial, kernel)
        result = out_layout.sizes(frame.dims)
        for letter in self.spatial:
            if not isinstance(result[letter], int):
                frame.require(te.size(result[letter]) >= 0, f"the padding leaves nothing along {letter}")
        data = frame.input("data", data_layout.dims(sizes))
        weight = frame.input("weight", kernel_layout.dims(kernel))
        extra = per_axis(args, "output_padding", self.count, 0)
        shape = TransposedShape(
            self.spatial, data_layout, kernel_layout, out_layout, window, extra, args.groups, channels, kernel, result
        )
        if shape.has_few_phases:
            assert isinstance(data, te.Tensor)
            assert isinstance(weight, te.Tensor)
            return finished(frame.finish(by_phases(frame, data, weight, shape)), data_layout, kernel_layout, out_layout)
        depths, channel = data_layout.reduction("C", channels // args.groups, "rc")
        offsets = {letter: te.reduce_axis((0, kernel[letter]), name=f"r{letter.lower()}") for letter in self.spatial}

        def formula(dtype: str) -> Any:
            def body(*indices: PrimExpr) -> PrimExpr:
                at = out_layout.places(indices)
                within: dict[str, PrimExpr] = {}
                inside: list[PrimExpr] = []
                for axis, letter in enumerate(self.spatial):
                    # The output element lies under offset k of the input element y where y * stride + k * gap - begin
                    # is its place.
                    place = at[letter] + window.begins[axis] - _scaled(offsets[letter], window.dilation[axis])
                    step = window.strides[axis]
                    within[letter] = place if step == 1 else place // step
                    if step != 1:
                        inside.append(te.equal(place % step, te.const(0, "int64")))
                    inside += [place >= 0, within[letter] < sizes[letter]]
                group = at["C"] // kernel["O"]
                depth = channel if args.groups == 1 else group * (channels // args.groups) + channel
                filters = at["C"] if args.groups == 1 else at["C"] % kernel["O"]
                left = data(*data_layout.indices({"N": at["N"], "C": depth, **within}))
                right = weight(*kernel_layout.indices({"O": filters, "I": depth, **offsets}))
                value = te.cast(dtype, left) * te.cast(dtype, right)
                return te.if_then_else(te.all(*inside), value, te.const(0, dtype))

            return body

        axes = [*depths, *offsets.values()]
        nest = contraction(frame, frame.dims, formula, axes, f"conv{self.count}d_transpose")
        return finished(frame.finish(nest), data_layout, kernel_layout, out_layout)

    def reference(self, data: Any, weight: Any, **attrs: Any) -> Any:
        """The transposed convolution by slices."""
        return _scattered(self.spatial, data, weight, _Given(**attrs))


def _scattered(spatial: str, data: Any, weight: Any, given: _Given) -> Any:
    """The transposed convolution: every input element adds its multiple of the kernel to the output."""
    target, count = np.dtype(given.out_dtype or data.dtype), len(spatial)
    x = _canonical(data, given.data_layout, f"NC{spatial}", target)
    w = _canonical(weight, given.kernel_layout, f"IO{spatial}", target)
    begins, ends = begins_and_ends(given.padding, count)
    steps, gaps, extra = (
        spread(given.strides, count),
        spread(given.dilation, count),
        spread(given.output_padding, count),
    )
    full = [
        (x.shape[2 + a] - 1) * steps[a] + gaps[a] * (w.shape[2 + a] - 1) + 1 + extra[a] + ends[a] for a in range(count)
    ]
    result = np.zeros((x.shape[0], w.shape[1] * given.groups, *full), x.dtype)
    width, own = w.shape[1], x.shape[1] // given.groups
    for group in range(given.groups):
        filters = slice(group * width, (group + 1) * width)
        channels = slice(group * own, (group + 1) * own)
        for offset in combinations(*map(range, w.shape[2:])):
            cut = tuple(
                slice(o * gap, o * gap + (size - 1) * step + 1, step)
                for o, gap, size, step in zip(offset, gaps, x.shape[2:], steps, strict=True)
            )
            part = np.einsum("nc...,co->no...", x[:, channels], w[(channels, slice(None), *offset)])
            result[(slice(None), filters, *cut)] += part
    sizes = [full[a] - ends[a] - begins[a] - ends[a] for a in range(count)]
    crop = tuple(slice(begins[a], begins[a] + sizes[a]) for a in range(count))
    return packed(
        result[(slice(None), slice(None), *crop)], given.out_layout or given.data_layout, f"NC{spatial}"
    ).astype(target)


_TransposedConvolution(1).declare(
    "The transposed convolution over one axis: every element of data adds its multiple of the kernel to the result.",
    (
        example(f32(2, 3, 5), f32(3, 4, 3)),
        example(f32("n", 2, "w"), f32(2, 2, 3), strides=2, padding=1, output_padding=1, least=1),
        example(f32(1, 5, 4), f32(4, 2, 3), groups=2, dilation=2, data_layout="NWC"),
    ),
)
_TransposedConvolution(2).declare(
    "The transposed convolution over two axes: every element of data adds its multiple of the kernel to the result.",
    (
        example(f32(1, 2, 3, 4), f32(2, 3, 3, 2), strides=[2, 1], padding=[1, 0, 0, 1]),
        example(f32("n", 3, 3, 4), f32(2, 2, 2, 4), strides=2, groups=2, data_layout="NHWC", kernel_layout="HWOI"),
        example(f32(1, 2, 3, "w"), f32(2, 2, 2, 4), strides=[3, 2], padding=[0, 2], output_padding=[2, 0], least=2),
        example(f32(2, 2, 3, 3), f32(2, 2, 3, 2), strides=[1, 4], dilation=[2, 1], padding=[3, 0]),
        example(f32(1, 2, 3, 3), f32(2, 1, 3, 2), strides=4, groups=2, padding=1, out_layout="NHWC"),
        example(f32(1, 2, 3, 3, 2), f32(4, 1, 3, 2, 2), strides=[1, 2], data_layout="NCHW2c", kernel_layout="IOHW2o"),
    ),
)
_TransposedConvolution(3).declare(
    "The transposed convolution over three axes: every element of data adds its multiple of the kernel to the result.",
    (example(f32("n", 2, 2, 3, 2), f32(2, 1, 2, 2, 3), strides=[1, 2, 1], padding=[0, 1, 1]),),
)
