"""Pools over one, two or three spatial axes, adaptive pools, and padding.

A window that hangs over the end (ceil_mode) joins what there is of it; a last one that begins in the padding at the
end is left out. The greatest value of a window in the padding alone is the least of the dtype. Dtype: that of data;
means of integers are rounded toward zero.
Errors: those of windows (W205, W227, W228); ShapeError W203, W205 for padding; DTypeError W321.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as combinations
from typing import Any, ClassVar

import numpy as np

from weft.dtypes import is_complex, is_float, lowest
from weft.errors import ShapeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Kernel,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.layout_rules.families import by_text, padding
from weft.ir.op.nn.layouts import Layout, finished, layout_of, packed, unpacked
from weft.ir.op.nn.window import (
    SpatialFamily,
    Window,
    begins_and_ends,
    by_letter,
    check_window,
    spread,
    window_of,
    window_positions,
)
from weft.ir.op.precision import Precision, Reads, follow
from weft.ir.op.reductions.reduction import mean_dtype
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType
from weft.support.records import dataclass

__all__: list[str] = []


def _layouts(args: Arguments, spatial: str) -> tuple[Layout, Layout]:
    """The layouts of data and of the result, checked."""
    letters = f"NC{spatial}"
    out = args.out_layout or args.layout
    return layout_of(args, "layout", args.layout, letters), layout_of(args, "out_layout", out, letters)


def _operands(args: Arguments, spatial: str, context: TypeContext) -> tuple[TensorType, Layout, Layout]:
    """The type of data and the layouts, checked."""
    data = tensor(args, "data", context)
    layout, out_layout = _layouts(args, spatial)
    require_rank(args, "data", data, layout.ndim)
    require_dtype(args, "data", data, "number")
    return data, layout, out_layout


def _pool_window(args: Arguments, spatial: str) -> Window:
    sizes = args.pool_size * len(spatial) if len(args.pool_size) == 1 else args.pool_size
    if len(sizes) != len(spatial) or min(sizes) < 1:
        message = f"pool_size must be 1 or {len(spatial)} positive values, got {args.pool_size}"
        raise shape_error(args, message, "W205")
    return window_of(args, spatial, sizes, args.ceil_mode)


def _ceil_quotient(a: PrimExpr, b: int) -> PrimExpr:
    """a / b rounded up."""
    return a if b == 1 else (a + (b - 1)) // b


def _elements(window: Window, axis: int, position: PrimExpr, size: Dim, with_padding: bool) -> PrimExpr:
    """How many elements the window has at a position along an axis: of data, or of data with its padding."""
    begin = window.begins[axis]
    first = position * window.strides[axis] - begin
    low, high = (-begin, size + window.ends[axis]) if with_padding else (0, size)
    gap = window.dilation[axis]
    start = te.maximum(_ceil_quotient(te.size(low) - first, gap), 0)
    stop = te.minimum(_ceil_quotient(te.size(high) - first, gap), te.size(window.sizes[axis]))
    return te.maximum(stop - start, 0)


def _whole_windows(window: Window) -> bool:
    """Whether every window lies inside data."""
    return not window.ceil and not any((*window.begins, *window.ends))


def window_params(count: int) -> tuple[Param, ...]:
    """The data of a pool over so many axes, and what its windows are."""
    one, none = (1,) * count, (0,) * count
    return (
        Param("data"),
        Param("pool_size", "attr", one, "ints"),
        Param("strides", "attr", one, "ints"),
        Param("padding", "attr", none, "ints"),
        Param("dilation", "attr", one, "ints"),
        Param("ceil_mode", "attr", False, "bool"),
    )


@dataclass(frozen=True)
class _Pool(SpatialFamily):
    """The greatest or the mean of the windows over so many spatial axes."""

    layout: ClassVar[Any] = staticmethod(by_text("data", out="out_layout"))
    precision: ClassVar[Precision] = follow("data", reads=Reads.WHOLE)
    average: bool
    include_pad: bool = False

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.{'avg' if self.average else 'max'}_pool{self.count}d"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return (
            *window_params(self.count),
            Param("count_include_pad", "attr", self.include_pad, "bool"),
            Param("layout", "attr", f"NC{self.spatial}", "str"),
            Param("out_layout", "attr", None, "str?"),
        )

    @property
    def selects(self) -> str:
        """The greatest values of windows are elements of data."""
        return "" if self.average else "data"

    def rule(self, args: Arguments, context: TypeContext) -> TensorType:
        data, layout, out_layout = _operands(args, self.spatial, context)
        window = _pool_window(args, self.spatial)
        dims = dims_of(data)
        if dims is None:
            return TensorType(dtype=data.dtype, ndim=out_layout.ndim)
        sizes = layout.check(args, "data", dims, context)
        outputs = window.outputs(args, [sizes[letter] for letter in self.spatial])
        result = {**sizes, **by_letter(self.spatial, outputs)}
        return TensorType(out_layout.result(args, result, context), data.dtype)

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        layout, out_layout = _layouts(args, self.spatial)
        window = _pool_window(args, self.spatial)
        data = kernel.input("data")
        sizes = layout.sizes(data.shape)
        check_window(kernel, window, [sizes[letter] for letter in self.spatial])
        wide = mean_dtype(kernel.dtype) if self.average else kernel.dtype
        least = te.const(lowest(wide), wide)
        neutral = te.const(0, wide) if self.average else least
        offsets = [
            te.reduce_axis((0, size), name=f"r{letter.lower()}")
            for letter, size in zip(self.spatial, window.sizes, strict=True)
        ]

        def body(*indices: PrimExpr) -> te.Reduction:
            at = out_layout.places(indices)
            inside: list[PrimExpr] = []
            for axis, letter in enumerate(self.spatial):
                begin = window.begins[axis]
                place = at[letter] * window.strides[axis] + offsets[axis] * window.dilation[axis] - begin
                inside += [place >= 0] if begin else []
                inside += [place < sizes[letter]] if window.ceil or window.ends[axis] else []
                at[letter] = place
            value = te.cast(wide, data(*layout.indices(at)))
            if not _whole_windows(window):
                value = te.if_then_else(te.all(*inside), value, neutral)
            return te.sum(value, axis=offsets) if self.average else te.max(value, axis=offsets)

        pooled = te.compute(kernel.dims, body, "pool_sum" if self.average else "max_pool")
        if not self.average:
            return finished(kernel.finish(pooled), layout, out_layout)

        def mean(*indices: PrimExpr) -> PrimExpr:
            at = out_layout.places(indices)
            number: PrimExpr = te.size(1)
            for axis, letter in enumerate(self.spatial):
                number = number * _elements(window, axis, at[letter], sizes[letter], args.count_include_pad)
            return pooled(*indices) / te.cast(wide, te.maximum(number, 1))

        def whole(*indices: PrimExpr) -> PrimExpr:
            return pooled(*indices) / float(np.prod([int(size) for size in window.sizes if isinstance(size, int)]))

        means = kernel.compute(whole if _whole_windows(window) else mean, "avg_pool")
        return finished(means, layout, out_layout)

    def reference(self, data: Any, **attrs: Any) -> Any:
        """The pool by windows."""
        return _pooled(self.spatial, self.average, data, **attrs)


def _pooled(
    spatial: str,
    average: bool,
    data: Any,
    *,
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    layout: str,
    out_layout: str | None,
) -> Any:
    """The pool by windows of a padded copy in which nan marks what is not to be joined."""
    count = len(spatial)
    size, step, gap = (spread(values, count) for values in (pool_size, strides, dilation))
    begins, ends = begins_and_ends(padding, count)
    x = unpacked(data, layout, f"NC{spatial}").astype(np.float64)
    reach = [gap[a] * (size[a] - 1) + 1 for a in range(count)]
    pads = list(zip(begins, ends, strict=True))
    outputs = [window_positions(x.shape[2 + a], reach[a], step[a], pads[a], ceil_mode) for a in range(count)]
    around = [(0, 0), (0, 0), *pads]
    weight = np.pad(np.ones(x.shape), around, constant_values=count_include_pad)
    x = np.pad(x, around, constant_values=0.0 if average else -np.inf)
    hang = [(0, 0), (0, 0), *((0, step[a]) for a in range(count))]
    x = np.pad(x, hang, constant_values=0.0 if average else -np.inf)
    weight = np.pad(weight, hang)
    total = np.full((*x.shape[:2], *outputs), 0.0 if average else -np.inf)
    number = np.zeros(total.shape)
    for offset in combinations(*map(range, size)):
        parts = zip(offset, gap, outputs, step, strict=True)
        cut = tuple(slice(o * g, o * g + (n - 1) * s + 1, s) for o, g, n, s in parts)
        part = x[(slice(None), slice(None), *cut)]
        total = total + part if average else np.maximum(total, part)
        number += weight[(slice(None), slice(None), *cut)]
    least = lowest(str(data.dtype))  # of a window in the padding alone
    result = total / np.maximum(number, 1) if average else np.maximum(total, least)
    return packed(result, out_layout or layout, f"NC{spatial}").astype(data.dtype)


_MAX = "The greatest value of each window that slides over"
_AVG = "The mean of each window that slides over"
_COUNT = "Padding counts as zeros when count_include_pad is true, else not at all."

_Pool(1, False).declare(
    f"{_MAX} one axis.",
    (
        example(f32(2, 3, 8), pool_size=3, strides=2, padding=1),
        example(f32("n", "w", 2), pool_size=2, ceil_mode=True, strides=2, layout="NWC", least=2),
    ),
)
_Pool(2, False).declare(
    f"{_MAX} two axes.",
    (
        example(f32(1, 2, 6, 7), pool_size=[2, 2], strides=[2, 2]),
        example(f32("n", 3, "h", 5), pool_size=3, strides=[1, 2], padding=[1, 1], least=1),
        example(f32(1, 7, 7, 2), pool_size=[2, 3], strides=3, dilation=[2, 1], ceil_mode=True, layout="NHWC"),
        example(f32(1, 2, 5, 5), pool_size=2, padding=[0, 1, 1, 0], out_layout="NHWC"),
        example(typed("int32", 1, 1, 4, 4), pool_size=3, padding=1),
        example(f32(1, 2, 5, 5, 4), pool_size=2, layout="NCHW4c"),
    ),
)
_Pool(3, False).declare(
    f"{_MAX} three axes.", (example(f32("n", 2, 4, 5, 3), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 0, 0]),)
)
_Pool(1, True, True).declare(
    f"{_AVG} one axis. {_COUNT}",
    (
        example(f32(2, 3, 8), pool_size=3, strides=2, padding=1),
        example(f32("n", 2, 7), pool_size=3, strides=3, padding=[1, 0], ceil_mode=True, count_include_pad=False),
    ),
)
_Pool(2, True, False).declare(
    f"{_AVG} two axes. {_COUNT}",
    (
        example(f32(1, 2, 6, 7), pool_size=[2, 2], strides=[2, 2]),
        example(f32("n", 3, "h", 5), pool_size=3, strides=[1, 2], padding=[1, 1], count_include_pad=True, least=1),
        example(
            f32(1, 7, 7, 2), pool_size=[2, 3], strides=3, dilation=[2, 1], padding=1, ceil_mode=True, layout="NHWC"
        ),
        example(f32(1, 1, 6, 6), pool_size=3, strides=2, ceil_mode=True, count_include_pad=True, padding=1),
        example(typed("float16", 1, 1, 9, 9), pool_size=9),
        example(typed("int8", 1, 2, 5, 5), pool_size=3, padding=1),
        example(f32("n", "c", 6, 6, 4), pool_size=3, strides=2, padding=1, layout="NCHW4c", out_layout="NHWC", least=1),
    ),
)
_Pool(3, True, True).declare(
    f"{_AVG} three axes. {_COUNT}",
    (example(f32("n", 2, 4, 5, 3), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 1, 0]),),
)


# ---------------------------------------------------------------------------------------------------------------------
# Adaptive pools
# ---------------------------------------------------------------------------------------------------------------------


def _output_sizes(args: Arguments, spatial: str, sizes: Sequence[Dim]) -> tuple[Dim, ...]:
    wanted = args.output_size
    if wanted is None:
        return tuple(sizes)
    wanted = wanted * len(spatial) if len(wanted) == 1 else wanted
    if len(wanted) != len(spatial) or min(wanted) < 1:
        message = f"output_size must be 1 or {len(spatial)} positive values, got {args.output_size}"
        raise shape_error(args, message, "W205")
    return wanted


def _longest(size: Dim, count: Dim) -> Dim:
    """The length of the longest window where an axis is cut into `count` windows."""
    if isinstance(size, int) and isinstance(count, int):
        # Window i has its first and its last element at multiples of gcd(size, count) / count of an element.
        rest = size % count
        return size // count + (0 if rest == 0 else 1 if count % rest == 0 else 2)
    return 1 if size is count else size // count + 2


@dataclass(frozen=True)
class _AdaptivePool(SpatialFamily):
    """The mean of the windows into which each axis is cut."""

    layout: ClassVar[Any] = staticmethod(by_text("data", out="out_layout"))
    precision: ClassVar[Precision] = follow("data", reads=Reads.WHOLE)

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.adaptive_avg_pool{self.count}d"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return (
            Param("data"),
            Param("output_size", "attr", None, "ints?"),
            Param("layout", "attr", f"NC{self.spatial}", "str"),
            Param("out_layout", "attr", None, "str?"),
        )

    def rule(self, args: Arguments, context: TypeContext) -> TensorType:
        data, layout, out_layout = _operands(args, self.spatial, context)
        dims = dims_of(data)
        if dims is None:
            return TensorType(dtype=data.dtype, ndim=out_layout.ndim)
        sizes = layout.check(args, "data", dims, context)
        for letter in self.spatial:
            if sizes[letter] == 0:
                raise shape_error(args, f"axis {letter} is empty, and the mean of nothing has no value", "W226")
        outputs = _output_sizes(args, self.spatial, [sizes[letter] for letter in self.spatial])
        result = {**sizes, **by_letter(self.spatial, outputs)}
        return TensorType(out_layout.result(args, result, context), data.dtype)

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        layout, out_layout = _layouts(args, self.spatial)
        data = kernel.input("data")
        sizes = layout.sizes(data.shape)
        outputs = by_letter(self.spatial, _output_sizes(args, self.spatial, [sizes[letter] for letter in self.spatial]))
        for letter in self.spatial:
            if not isinstance(sizes[letter], int) and outputs[letter] is not sizes[letter]:
                message = f"axis {letter} is empty, and the mean of nothing has no value"
                kernel.require(te.size(sizes[letter]) > 0, message)
        wide = mean_dtype(kernel.dtype)
        longest = {letter: _longest(sizes[letter], outputs[letter]) for letter in self.spatial}
        offsets = {letter: te.reduce_axis((0, longest[letter]), name=f"r{letter.lower()}") for letter in self.spatial}

        def bounds(letter: str, position: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
            size, number = te.size(sizes[letter]), te.size(outputs[letter])
            return position * size // number, ((position + 1) * size + number - 1) // number

        def body(*indices: PrimExpr) -> te.Reduction:
            at = out_layout.places(indices)
            inside: list[PrimExpr] = []
            for letter in self.spatial:
                start, stop = bounds(letter, at[letter])
                at[letter] = start + offsets[letter]
                even = isinstance(sizes[letter], int) and sizes[letter] % outputs[letter] == 0
                inside += [] if even or longest[letter] == 1 else [at[letter] < stop]
            value = te.cast(wide, data(*layout.indices(at)))
            guarded = te.if_then_else(te.all(*inside), value, te.const(0, wide)) if inside else value
            return te.sum(guarded, axis=list(offsets.values()))

        total = te.compute(kernel.dims, body, "pool_sum")

        def mean(*indices: PrimExpr) -> PrimExpr:
            at = out_layout.places(indices)
            number: PrimExpr = te.size(1)
            for letter in self.spatial:
                start, stop = bounds(letter, at[letter])
                number = number * (stop - start)
            return total(*indices) / te.cast(wide, number)

        return finished(kernel.compute(mean, "adaptive_avg_pool"), layout, out_layout)

    def reference(self, data: Any, *, output_size: Any, layout: str, out_layout: str | None) -> Any:
        x = unpacked(data, layout, f"NC{self.spatial}").astype(np.float64)
        wanted = x.shape[2:] if output_size is None else output_size
        wanted = wanted * self.count if len(wanted) == 1 else wanted
        if 0 in x.shape[2:] and 0 not in wanted:
            raise ValueError("an axis is empty, and the mean of nothing has no value")
        result = np.zeros((*x.shape[:2], *wanted))
        for place in np.ndindex(*wanted):
            parts = zip(place, x.shape[2:], wanted, strict=True)
            cut = tuple(slice(p * size // n, -(-(p + 1) * size // n)) for p, size, n in parts)
            mean = x[(slice(None), slice(None), *cut)].mean(tuple(range(2, 2 + self.count)))
            result[(slice(None), slice(None), *place)] = mean
        return packed(result, out_layout or layout, f"NC{self.spatial}").astype(data.dtype)


_ADAPTIVE = "The means of output_size nearly equal parts of data (of the elements themselves for None) along"
_AdaptivePool(1).declare(
    f"{_ADAPTIVE} one axis.",
    (
        example(f32(2, 3, 7), output_size=3),
        example(f32("n", 2, "w"), output_size=[2], least=1),
    ),
)
_AdaptivePool(2).declare(
    f"{_ADAPTIVE} two axes.",
    (
        example(f32(1, 2, 6, 4), output_size=[3, 2]),
        example(f32("n", "h", 5, 3), output_size=[2, 3], layout="NHWC", least=1),
        example(f32("n", 2, "h", "w"), output_size=1, least=1),
        example(f32(1, 2, 3, "w")),
        example(typed("float16", 1, 1, 12, 12), output_size=1),
        example(typed("int32", 1, 1, 5, 7), output_size=2),
        example(f32(1, 2, 6, 4, 4), output_size=[3, 2], layout="NCHW4c", out_layout="NCHW8c"),
    ),
)
_AdaptivePool(3).declare(f"{_ADAPTIVE} three axes.", (example(f32("n", 2, 3, 4, 5), output_size=[2, 4, 1]),))


# ---------------------------------------------------------------------------------------------------------------------
# Padding
# ---------------------------------------------------------------------------------------------------------------------

_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}


def _pad_pairs(args: Arguments, ndim: int) -> list[tuple[int, int]]:
    """(before, after) of each axis, checked."""
    if args.pad_mode not in _PAD_MODES:
        hint = f"the modes are {', '.join(_PAD_MODES)}"
        raise shape_error(args, f"unknown pad_mode {args.pad_mode!r}", "W205", hint)
    if len(args.pad_width) != 2 * ndim:
        message = f"pad_width needs two values for each of {ndim} axes, got {len(args.pad_width)}"
        raise shape_error(args, message, "W205", "write before and after of the first axis, then of the second, ...")
    if min(args.pad_width, default=0) < 0:
        raise shape_error(args, f"pad_width must not be negative, got {min(args.pad_width)}", "W205")
    return list(zip(args.pad_width[::2], args.pad_width[1::2], strict=True))


def _needed(mode: str, before: int, after: int) -> int:
    """The least size that an axis must have to be padded in a mode."""
    most = max(before, after)
    if not most or mode == "constant":
        return 0
    return {"reflect": most + 1, "circular": most}.get(mode, 1)


def _pad_source(mode: str, index: PrimExpr, before: int, size: Dim) -> PrimExpr:
    """The index in data of an index in the result."""
    place, length = index - before, te.size(size)
    if mode == "reflect":
        folded = te.select(place < 0, te.size(0) - place, place)
        return te.select(folded >= length, (length - 1) * 2 - folded, folded)
    if mode == "circular":
        folded = te.select(place < 0, place + length, place)
        return te.select(folded >= length, folded - length, folded)
    return te.maximum(te.minimum(place, length - 1), 0)


@kernel_lowering
def _lower_pad(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    pairs = _pad_pairs(args, data.ndim)
    mode = args.pad_mode
    for axis, (before, after) in enumerate(pairs):
        least = _needed(mode, before, after)
        if least and not isinstance(data.shape[axis], int):
            kernel.require(te.size(data.shape[axis]) >= least, f"axis {axis} is too short for {mode} padding")
    fill = te.const(_fill(args, data.dtype), data.dtype)

    def formula(*i: PrimExpr) -> PrimExpr:
        if mode != "constant":
            return data(
                *(
                    _pad_source(mode, index, pair[0], size) if any(pair) else index
                    for index, pair, size in zip(i, pairs, data.shape, strict=True)
                )
            )
        place = [index - pair[0] if pair[0] else index for index, pair in zip(i, pairs, strict=True)]
        inside = [place[axis] >= 0 for axis, pair in enumerate(pairs) if pair[0]]
        inside += [place[axis] < data.shape[axis] for axis, pair in enumerate(pairs) if pair[1]]
        return te.if_then_else(te.all(*inside), data(*place), fill) if inside else data(*i)

    return kernel.compute(formula, "pad")


def _fill(args: Arguments, dtype: str) -> float | int | bool:
    """The padding value in the dtype of data."""
    value = args.pad_value
    if is_float(dtype) or is_complex(dtype):
        return value
    if not math.isfinite(value) or value != int(value):
        raise shape_error(args, f"pad_value {value} is not a value of {dtype}", "W205")
    return bool(value) if dtype == "bool" else int(value)


def _pad_reference(data: Any, *, pad_width: Any, pad_mode: str, pad_value: float) -> Any:
    pairs = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    for axis, (size, (before, after)) in enumerate(zip(data.shape, pairs, strict=True)):
        if size < _needed(pad_mode, before, after):
            raise ShapeError(f"R.nn.pad: axis {axis} is too short for {pad_mode} padding", code="W222")
    if pad_mode == "constant":
        value = np.asarray(pad_value).astype(data.dtype)
        return np.pad(data, pairs, constant_values=value) if data.ndim else data.copy()
    if data.size == 0:  # nothing to repeat: the padded axes are not the empty ones
        return np.zeros([size + sum(pair) for size, pair in zip(data.shape, pairs, strict=True)], data.dtype)
    return np.pad(data, pairs, mode=_PAD_MODES[pad_mode])  # type: ignore[call-overload]


@register_op(
    "nn.pad",
    [
        Param("data"),
        Param("pad_width", "attr", of="ints"),
        Param("pad_mode", "attr", "constant", "str"),
        Param("pad_value", "attr", 0.0, "float"),
    ],
    lowering=_lower_pad,
    numpy=_pad_reference,
    pure=True,
    layout=padding,
    examples=(
        example(f32(2, 3), [1, 0, 2, 1]),
        example(f32("n", 4), [0, 2, 1, 1], pad_value=-1.5),
        example(f32("n", 4), [0, 0, 3, 2], pad_mode="reflect"),
        example(f32(2, "m"), [1, 1, 0, 2], pad_mode="replicate", least=1),
        example(f32(3, "m"), [2, 1, 1, 0], pad_mode="circular", least=1),
        example(typed("int32", 3), [1, 1], pad_value=7),
    ),
    precision=follow("data", reads=Reads.WHOLE),
)
def pad(args: Arguments, context: TypeContext) -> TensorType:
    """data with elements added before and after it along each axis.

    pad_width is before and after of the first axis, then of the second, and so on. The added elements are pad_value
    (constant), the mirror image without the edge (reflect), the edge (replicate or edge), or the other end (circular).
    """
    data = tensor(args, "data", context)
    if data.ndim < 0:
        return TensorType(dtype=data.dtype)
    pairs = _pad_pairs(args, data.ndim)
    if data.dtype is not None:
        _fill(args, data.dtype)
    dims = dims_of(data)
    if dims is None:
        return TensorType(dtype=data.dtype, ndim=data.ndim)
    for axis, ((before, after), size) in enumerate(zip(pairs, dims, strict=True)):
        if isinstance(size, int) and size < _needed(args.pad_mode, before, after):
            message = f"axis {axis} of {size} elements is too short for {args.pad_mode} padding by {max(before, after)}"
            raise shape_error(args, message, "W227")
    return TensorType(tuple(size + sum(pair) for size, pair in zip(dims, pairs, strict=True)), data.dtype)
