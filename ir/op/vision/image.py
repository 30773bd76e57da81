"""Images: resizing along axes, and sampling at given positions.

A resize is separable: one stage for each axis, whose elements are sums of one (nearest_neighbor), two (linear) or four
(cubic) elements of the stage before. Positions are computed in float64, values in float32 (in float64 where data has
it, or integers of more than 16 bits).

    coordinate_transformation_mode     where the output x of w stands in an input of size s
    half_pixel                         (x + 0.5) * s / w - 0.5
    pytorch_half_pixel                 the same; 0 for w = 1
    align_corners                      x * (s - 1) / (w - 1); 0 for w = 1
    asymmetric                         x * s / w
    tf_half_pixel_for_nn               (x + 0.5) * s / w
    tf_crop_and_resize                 roi_start * (s - 1) + x * (roi_end - roi_start) * (s - 1) / (w - 1);
                                       the middle of the region for w = 1

Errors: ShapeError W201, W202, W205 unknown modes, W226 an empty image, W228 a layout; DTypeError W321.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, ClassVar, cast

import numpy as np

from weft.dtypes import bits, is_float
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, prove_le, symbol
from weft.ir.op.common import (
    Kernel,
    converted,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    shape_error,
    shape_of_arg,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.layout_rules.families import by_text
from weft.ir.op.nn.layouts import Layout, axis_of, finished, layout_of, packed, unpacked
from weft.ir.op.nn.window import SPATIAL, SpatialFamily, by_letter
from weft.ir.op.precision import Precision, Reads, follow
from weft.ir.op.registry import register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import Let, PrimExpr, PrimFunc, PrimVar
from weft.ir.types import TensorType
from weft.support.records import dataclass

__all__: list[str] = []

_MODES = (
    "half_pixel",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
_METHODS = ("nearest_neighbor", "linear", "cubic")
_ROUNDING = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_EPSILON = 1e-5
"""Floors and ceilings of positions forgive so much of an error in the position."""

Tap = tuple[PrimExpr, PrimExpr | None]
"""The index of an element and its weight (None: 1)."""


def _wide(dtype: str) -> str:
    return "float64" if bits(dtype) > (32 if is_float(dtype) else 16) else "float32"


def _one_of(args: Arguments, name: str, values: Sequence[str]) -> None:
    if args[name] not in values:
        known = ", ".join(value for value in values if value)
        raise shape_error(args, f"unknown {name} {args[name]!r}", "W205", f"one of {known}")


# ---------------------------------------------------------------------------------------------------------------------
# Resizing
# ---------------------------------------------------------------------------------------------------------------------


def _roi(args: Arguments, count: int) -> list[tuple[float, float]]:
    """(start, end) of the region of interest along each axis."""
    stated: Any = args.roi
    values: tuple[Any, ...] = (
        cast("tuple[Any, ...]", stated) if isinstance(stated, tuple) else (0.0,) * count + (1.0,) * count
    )
    if len(values) != 2 * count or not all(isinstance(value, (int, float)) for value in values):
        raise shape_error(args, f"roi must be {2 * count} numbers, the starts and then the ends", "W205")
    return [(float(values[axis]), float(values[count + axis])) for axis in range(count)]


def _real(value: Dim | PrimExpr) -> PrimExpr:
    return te.cast("float64", te.size(value) if not isinstance(value, PrimExpr) else value)


def _number(value: float, dtype: str = "float64") -> PrimExpr:
    return te.const(value, dtype)


def _position(mode: str, roi: tuple[float, float], x: PrimExpr, size: Dim, count: Dim) -> PrimExpr:
    """Where the output x of `count` stands in an axis of a size."""
    place, sizes, counts = _real(x), _real(size), _real(count)
    if mode in ("half_pixel", "pytorch_half_pixel"):
        found = (place + _number(0.5)) * (sizes / counts) - _number(0.5)
        if mode == "half_pixel":
            return found
        return te.select(counts > _number(1), found, _number(0))
    if mode == "asymmetric":
        return place * (sizes / counts)
    if mode == "tf_half_pixel_for_nn":
        return (place + _number(0.5)) * (sizes / counts)
    last, steps = sizes - _number(1), te.maximum(counts - _number(1), _number(1))
    if mode == "align_corners":
        return place * (last / steps)
    start, end = map(_number, roi)
    inside = start * last + place * ((end - start) * last / steps)
    return te.select(counts > _number(1), inside, _number(0.5) * (start + end) * last)


def _rounding(method: str, mode: str) -> str:
    """What an empty rounding method stands for."""
    return method or ("round" if mode == "align_corners" else "floor")


def _nearest(position: PrimExpr, rounding: str) -> PrimExpr:
    if rounding == "floor":
        return te.floor(position + _number(_EPSILON))
    if rounding == "ceil":
        return te.ceil(position - _number(_EPSILON))
    if rounding == "round_prefer_floor":
        return te.ceil(position - _number(0.5))
    if rounding == "round_prefer_ceil":
        return te.floor(position + _number(0.5))
    return te.round(position)


def _taps(args: Arguments, position: PrimExpr, size: Dim, wide: str) -> list[Tap]:
    """What an output at a position along one axis is made of."""

    def clamped(place: PrimExpr) -> PrimExpr:
        return te.minimum(te.maximum(te.cast("int64", place), 0), te.size(size) - 1)

    if args.method == "nearest_neighbor":
        return [
            (clamped(_nearest(position, _rounding(args.rounding_method, args.coordinate_transformation_mode))), None)
        ]
    base = te.floor(position)
    share = te.cast(wide, position - base)
    one = _number(1, wide)
    if args.method == "linear":
        return [(clamped(base), one - share), (clamped(base + _number(1)), share)]
    places = [base + _number(offset) for offset in (-1, 0, 1, 2)]
    weights = list(_cubic(share, args.cubic_alpha, lambda value: _number(value, wide)))
    if args.cubic_exclude:
        inside = [te.all(place >= _number(0), place < _real(size)) for place in places]
        weights = [te.select(ok, weight, _number(0, wide)) for ok, weight in zip(inside, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [weight / total for weight in weights]
    return [(clamped(place), weight) for place, weight in zip(places, weights, strict=True)]


def _cubic(t: Any, alpha: float, number: Callable[[float], Any]) -> tuple[Any, Any, Any, Any]:
    """The weights of the four neighbours of a position, t after the second one."""
    a = number(alpha)
    t2, t3 = t * t, t * t * t
    return (
        a * (t3 - number(2) * t2 + t),
        (a + number(2)) * t3 - (a + number(3)) * t2 + number(1),
        (number(2) * a + number(3)) * t2 - (a + number(2)) * t3 - a * t,
        a * (t2 - t3),
    )


def _require_image(kernel: Kernel, sizes: Sequence[Dim]) -> None:
    for size in sizes:
        if prove_le(1, size, kernel.context.facts) is not True:
            kernel.require(te.size(size) > 0, "the image is empty")


def _sum(parts: Sequence[PrimExpr]) -> PrimExpr:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _product(parts: Sequence[PrimExpr]) -> PrimExpr:
    total = parts[0]
    for part in parts[1:]:
        total = total * part
    return total


@dataclass(frozen=True)
class _Resize(SpatialFamily):
    """Images of so many spatial axes at another size; `rounding` is the default of rounding_method."""

    layout: ClassVar[Any] = staticmethod(by_text("data"))
    precision: ClassVar[Precision] = follow("data", reads=Reads.WHOLE)
    rounding: str

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"image.resize{self.count}d"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return (
            Param("data"),
            Param("size", "shape"),
            Param("roi", "attr", None),
            Param("layout", "attr", f"NC{self.spatial}", "str"),
            Param("method", "attr", "linear", "str"),
            Param("coordinate_transformation_mode", "attr", "half_pixel", "str"),
            Param("rounding_method", "attr", self.rounding, "str"),
            Param("cubic_alpha", "attr", -0.75, "float"),
            Param("cubic_exclude", "attr", 0, "int"),
            Param("extrapolation_value", "attr", 0.0, "float"),
            Param("out_dtype", "dtype", None),
        )

    def rule(self, args: Arguments, context: TypeContext) -> TensorType:
        data = tensor(args, "data", context)
        layout = layout_of(args, "layout", args.layout, f"NC{self.spatial}")
        require_rank(args, "data", data, layout.ndim)
        require_dtype(args, "data", data, "number")
        _one_of(args, "method", _METHODS)
        _one_of(args, "coordinate_transformation_mode", _MODES)
        _one_of(args, "rounding_method", _ROUNDING)
        _roi(args, self.count)
        wanted, ndim = shape_of_arg(args, "size", context)
        if ndim not in (-1, 1, self.count):
            raise shape_error(args, f"size must have {self.count} values, got {ndim}")
        dims, dtype = dims_of(data), args.out_dtype or data.dtype
        if dims is None or wanted is None:
            return TensorType(None, dtype, layout.ndim)
        sizes = layout.check(args, "data", dims, context)
        for letter in self.spatial:
            if sizes[letter] == 0:
                raise shape_error(args, f"axis {letter} of the image is empty", "W226")
        wanted = wanted * self.count if len(wanted) == 1 else wanted
        return TensorType(layout.dims({**sizes, **by_letter(self.spatial, wanted)}), dtype)

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        layout = layout_of(args, "layout", args.layout, f"NC{self.spatial}")
        stage: Any = kernel.input("data")
        sizes, outputs = layout.sizes(stage.shape), layout.sizes(kernel.dims)
        _require_image(kernel, [sizes[letter] for letter in self.spatial])
        nearest = args.method == "nearest_neighbor"
        wide = stage.dtype if nearest else _wide(stage.dtype)
        mode, regions = args.coordinate_transformation_mode, by_letter(self.spatial, _roi(args, self.count))

        def position(letter: str, x: PrimExpr) -> PrimExpr:
            return _position(mode, regions[letter], x, sizes[letter], outputs[letter])

        for letter in self.spatial:
            axis = layout.index(letter)
            shape = (*stage.shape[:axis], kernel.dims[axis], *stage.shape[axis + 1 :])

            def formula(*i: PrimExpr, source: Any = stage, axis: int = axis, letter: str = letter) -> PrimExpr:
                taps = _taps(args, position(letter, i[axis]), sizes[letter], wide)
                loads = [(te.cast(wide, source(*i[:axis], at, *i[axis + 1 :])), weight) for at, weight in taps]
                return _sum([value if weight is None else value * weight for value, weight in loads])

            stage = te.compute(shape, formula, f"resized_{letter.lower()}")

        def inside(*i: PrimExpr) -> PrimExpr:
            at = layout.places(i)
            places = [(position(letter, at[letter]), _real(sizes[letter]) - _number(1)) for letter in self.spatial]
            return te.all(*(te.all(place >= _number(0), place <= last) for place, last in places))

        if mode != "tf_crop_and_resize":
            return kernel.compute(lambda *i: stage(*i))
        outside = te.cast(wide, te.const(args.extrapolation_value, "float64"))
        return kernel.compute(lambda *i: te.select(inside(*i), stage(*i), outside))

    def reference(self, data: Any, size: Any, **attrs: Any) -> Any:
        """The resized images, axis by axis."""
        return _numpy_resize(data, size, self.spatial, **attrs)


def _numpy_position(mode: str, roi: tuple[float, float], size: int, count: int) -> np.ndarray:
    x = np.arange(count, dtype=np.float64)
    if mode == "half_pixel" or (mode == "pytorch_half_pixel" and count > 1):
        return (x + 0.5) * (size / max(count, 1)) - 0.5
    if mode == "pytorch_half_pixel":
        return x * 0
    if mode == "asymmetric":
        return x * (size / max(count, 1))
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) * (size / max(count, 1))
    if mode == "align_corners":
        return x * ((size - 1) / max(count - 1, 1))
    if count == 1:
        return np.asarray([0.5 * (roi[0] + roi[1]) * (size - 1)])
    return roi[0] * (size - 1) + x * ((roi[1] - roi[0]) * (size - 1) / max(count - 1, 1))


def _numpy_nearest(position: np.ndarray, rounding: str) -> np.ndarray:
    if rounding == "floor":
        return np.floor(position + _EPSILON)
    if rounding == "ceil":
        return np.ceil(position - _EPSILON)
    if rounding == "round_prefer_floor":
        return np.ceil(position - 0.5)
    return np.floor(position + 0.5) if rounding == "round_prefer_ceil" else np.rint(position)


def _numpy_require_image(sizes: Iterable[int]) -> None:
    if 0 in sizes:  # though no image, or no channel, would need a value of it
        raise ValueError("the image is empty")


def _numpy_resize(
    data: np.ndarray,
    size: tuple[int, ...],
    spatial: str,
    roi: Any,
    layout: str,
    method: str,
    coordinate_transformation_mode: str,
    rounding_method: str,
    cubic_alpha: float,
    cubic_exclude: int,
    extrapolation_value: float,
    out_dtype: str | None,
) -> np.ndarray:
    count, dtype = len(spatial), out_dtype or str(data.dtype)
    axes = {letter: axis_of(layout, letter) for letter in spatial}
    _numpy_require_image(data.shape[axis] for axis in axes.values())
    size = size * count if len(size) == 1 else size
    region: tuple[Any, ...] = (
        cast("tuple[Any, ...]", roi) if isinstance(roi, tuple) else (0.0,) * count + (1.0,) * count
    )
    result: Any = data if method == "nearest_neighbor" else data.astype(_wide(str(data.dtype)))
    rounding = _rounding(rounding_method, coordinate_transformation_mode)
    kept: list[np.ndarray] = []
    for axis, letter in enumerate(spatial):
        own = data.shape[axes[letter]]
        ends = (float(region[axis]), float(region[count + axis]))
        position = _numpy_position(coordinate_transformation_mode, ends, own, size[axis])
        kept.append((position >= 0) & (position <= own - 1))
        base = np.floor(position)
        share = (position - base).astype(result.dtype if method != "nearest_neighbor" else np.float64)
        if method == "nearest_neighbor":
            places, weights = [_numpy_nearest(position, rounding)], [np.ones_like(base)]
        elif method == "linear":
            places, weights = [base, base + 1], [1 - share, share]
        else:
            places = [base - 1, base, base + 1, base + 2]
            weights = list(_cubic(share, cubic_alpha, share.dtype.type))
            if cubic_exclude:
                weights = [w * ((p >= 0) & (p < own)) for p, w in zip(places, weights, strict=True)]
                total = sum(weights)
                weights = [weight / total for weight in weights]
        at = axes[letter]
        shape = [-1 if d == at else 1 for d in range(data.ndim)]
        parts = [np.take(result, np.clip(place, 0, own - 1).astype(np.int64), at) for place in places]
        if method == "nearest_neighbor":
            result = parts[0]
        else:
            result = sum(part * w.astype(result.dtype).reshape(shape) for part, w in zip(parts, weights, strict=True))
    if coordinate_transformation_mode == "tf_crop_and_resize":
        inside = np.ones((1,) * data.ndim, bool)
        for letter, mask in zip(spatial, kept, strict=True):
            inside = inside & mask.reshape([-1 if d == axes[letter] else 1 for d in range(data.ndim)])
        result = np.where(inside, result, np.asarray(extrapolation_value).astype(result.dtype))
    return converted(result, dtype)


def _resize_doc(count: int) -> str:
    return (
        f"Images of {count} axes at another size (one number stands for all axes).\n\n"
        "Methods: nearest_neighbor, linear, cubic (cubic_alpha is its parameter; cubic_exclude leaves out what is\n"
        "outside). rounding_method says which neighbour is nearest: round (halves to even), round_prefer_floor,\n"
        "round_prefer_ceil, floor, ceil, or nothing for floor (round with align_corners). With tf_crop_and_resize,\n"
        "roi gives the starts and then the ends of a region as shares of the image, and what is outside the image is\n"
        "extrapolation_value. Dtype: out_dtype, by default that of data."
    )


_Resize(2, "round").declare(
    _resize_doc(2),
    (
        example(f32(1, 2, 4, 5), (8, 3)),
        example(f32("n", 3, "h", 4), (7, 6), coordinate_transformation_mode="align_corners", least=1),
        example(
            f32(1, 4, 5, 2),
            (9, 2),
            layout="NHWC",
            method="nearest_neighbor",
            rounding_method="floor",
            coordinate_transformation_mode="asymmetric",
        ),
        example(f32(1, 1, 5, 6), (4, 9), method="cubic"),
        example(f32(1, 1, 5, 6), (10, 3), method="cubic", cubic_exclude=1, cubic_alpha=-0.5),
        example(
            f32(1, 2, 5, 6),
            (3, 4),
            roi=(0.1, -0.2, 0.9, 0.8),
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=3.0,
        ),
        example(typed("uint8", 1, 2, 4, 4), 6, method="nearest_neighbor", rounding_method="round_prefer_ceil"),
        example(
            typed("float16", 1, 2, 4, 4),
            (3, 1),
            coordinate_transformation_mode="pytorch_half_pixel",
            out_dtype="float32",
        ),
        example(
            f32(1, 2, 3, 4),
            (5, 7),
            method="nearest_neighbor",
            coordinate_transformation_mode="tf_half_pixel_for_nn",
            rounding_method="ceil",
        ),
        example(f32("n", "c", 3, 4, 4), (5, 2), layout="NCHW4c", least=1),
    ),
)
_Resize(3, "").declare(
    _resize_doc(3),
    (
        example(f32(1, 2, 3, 4, 5), (6, 3, 4)),
        example(f32("n", 1, "d", 3, 4), (4, 5, 6), method="nearest_neighbor", least=1),
        example(
            f32(1, 4, 3, 5, 2),
            (2, 6, 5),
            layout="NDHWC",
            method="cubic",
            coordinate_transformation_mode="align_corners",
        ),
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# Grids
# ---------------------------------------------------------------------------------------------------------------------

_GRID_METHODS = ("nearest", "bilinear", "bicubic")
_PADDING = ("zeros", "border", "reflection")
_GRID_ALPHA = -0.75


def _unnormalised(value: Any, size: Any, align_corners: bool, number: Callable[[float], Any]) -> Any:
    """The position along an axis of a grid's value: -1 is its start, 1 its end."""
    if align_corners:
        return (value + number(1)) * number(0.5) * (size - number(1))
    return ((value + number(1)) * size - number(1)) * number(0.5)


def _padded_position(args: Arguments, place: PrimExpr, size: PrimExpr) -> PrimExpr:
    """A position moved into the image, by the padding mode."""
    if args.padding_mode == "zeros":
        return place
    zero, last = _number(0), size - _number(1)
    if args.padding_mode == "reflection":
        low = zero if args.align_corners else _number(-0.5)
        span = last if args.align_corners else size
        place = _named("way", te.abs(place - low), lambda way: _reflected(way, low, span))

    def inside(place: PrimExpr) -> PrimExpr:
        return te.select(place < zero, zero, te.select(place > last, last, place))

    return _named("inner", place, inside)


def _reflected(way: PrimExpr, low: PrimExpr, span: PrimExpr) -> PrimExpr:
    """The position as far from the lowest after it was reflected at both ends as often as it takes."""

    def turned(turns: PrimExpr) -> PrimExpr:
        rest = way - turns * span
        even = te.equal(turns, te.floor(turns * _number(0.5)) * _number(2))
        return te.select(span > _number(0), te.select(even, rest, span - rest) + low, _number(0))

    return _named("turns", te.floor(way / te.select(span > _number(0), span, _number(1))), turned)


def _named(name: str, value: PrimExpr, body: Callable[[PrimExpr], PrimExpr]) -> PrimExpr:
    """What is made of a value that is computed once."""
    var = PrimVar(name, str(value.dtype))
    return Let(var, value, body(var))


_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


@kernel_lowering
def _lower_grid_sample(kernel: Kernel) -> PrimFunc | None:
    """Stages: the position on each axis, index and weight of each tap on it, and sums over the taps of all axes."""
    args, context = kernel.args, kernel.context
    own = dims_of(tensor(args, "grid", context)) or ()
    layout, spatial = _grid_layout(args)
    data = kernel.input("data")
    whole = layout.sizes(data.shape)
    grid = kernel.input("grid", (whole["N"], *own[1:]))
    shape = [whole[letter] for letter in spatial]
    _require_image(kernel, shape)
    count, wide, cubic = len(spatial), _wide(kernel.dtype), args.method == "bicubic"

    def size_of(axis: PrimExpr) -> PrimExpr:
        size = te.size(shape[0])
        for position in range(1, count):
            size = te.select(te.equal(axis, position), te.size(shape[position]), size)
        return te.cast("float64", size)

    # The grid names the last axis first.
    def placed(n: PrimExpr, axis: PrimExpr, *at: PrimExpr) -> PrimExpr:
        size = size_of(axis)
        value = te.cast("float64", grid(n, te.size(count - 1) - axis, *at))
        place = _unnormalised(value, size, args.align_corners, _number)
        return place if cubic else _padded_position(args, place, size)

    def tapped(n: PrimExpr, axis: PrimExpr, tap: PrimExpr, *at: PrimExpr) -> PrimExpr:
        if args.method == "nearest":
            return _named("place", te.round(places(n, axis, *at)), lambda place: _index(place, size_of(axis)))
        base = te.floor(places(n, axis, *at)) + te.cast("float64", tap - (1 if cubic else 0))
        size = size_of(axis)
        padded = _named("around", base, lambda place: _padded_position(args, place, size)) if cubic else base
        return _named("place", padded, lambda place: _index(place, size))

    def weighed(n: PrimExpr, axis: PrimExpr, tap: PrimExpr, *at: PrimExpr) -> PrimExpr:
        def weight(share: PrimExpr) -> PrimExpr:
            def number(value: Any) -> PrimExpr:
                return _number(value, wide)

            weights = _cubic(share, _GRID_ALPHA, number) if cubic else (number(1) - share, share)
            chosen = weights[-1]
            for place in reversed(range(len(weights) - 1)):
                chosen = te.select(te.equal(tap, place), weights[place], chosen)
            return chosen

        place = places(n, axis, *at)
        return _named("share", te.cast(wide, place - te.floor(place)), weight)

    places = te.compute((whole["N"], count, *own[2:]), placed, "places")
    taps = _TAPS[args.method]
    indices = te.compute((whole["N"], count, taps, *own[2:]), tapped, "indices")
    weights = te.compute((whole["N"], count, taps, *own[2:]), weighed, "weights") if taps > 1 else None

    def sampled(*whole_indices: PrimExpr) -> PrimExpr:
        here = layout.places(whole_indices)
        n, at = here["N"], [here[letter] for letter in spatial]

        def part(chosen: tuple[int, ...]) -> PrimExpr:
            places = [(n, te.index(axis), te.index(tap), *at) for axis, tap in enumerate(chosen)]
            index = [indices(*place) for place in places]
            last = [te.size(size) - 1 for size in shape]
            inside = [te.minimum(te.maximum(at, 0), end) for at, end in zip(index, last, strict=True)]
            known = te.cast(wide, data(*layout.indices({**here, **by_letter(spatial, inside)})))
            value = te.select(te.all(*(at >= 0 for at in index)), known, _number(0, wide))
            return value if weights is None else value * _product([weights(*place) for place in places])

        return _sum([part(chosen) for chosen in product(range(taps), repeat=count)])

    return finished(kernel.compute(sampled), layout)


def _grid_layout(args: Arguments) -> tuple[Layout, str]:
    """The layout of the image, and its spatial letters."""
    spatial = SPATIAL[3 if "D" in args.layout else 2]
    return layout_of(args, "layout", args.layout, f"NC{spatial}"), spatial


def _index(place: PrimExpr, size: PrimExpr) -> PrimExpr:
    """A position as an index of the axis, -1 outside of it, and where it is nan."""
    valid = te.all(place >= _number(0), place <= size - _number(1))
    return te.cast("int64", te.select(valid, place, _number(-1)))


def _numpy_padded(place: np.ndarray, size: int, padding_mode: str, align_corners: bool) -> np.ndarray:
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span > 0:
            turns, rest = np.divmod(np.abs(place - low), span)
            place = np.where(turns % 2 == 0, rest, span - rest) + low
        else:
            place = np.zeros_like(place)
    return np.clip(place, 0, size - 1)


def _numpy_grid_sample(
    data: np.ndarray, grid: np.ndarray, method: str, layout: str, padding_mode: str, align_corners: bool
) -> np.ndarray:
    order = "NCDHW" if "D" in layout else "NCHW"
    data, dtype = unpacked(data, layout, order), data.dtype
    count, shape = data.ndim - 2, data.shape[2:]
    _numpy_require_image(shape)
    taps: list[list[tuple[np.ndarray, np.ndarray]]] = []
    for axis, size in enumerate(shape):
        place = _unnormalised(grid[:, count - 1 - axis].astype(np.float64), size, align_corners, float)
        if method != "bicubic":
            place = _numpy_padded(place, size, padding_mode, align_corners)
        base = np.floor(place)
        share = place - base
        if method == "nearest":
            taps.append([(np.rint(place), np.ones_like(place))])
        elif method == "bilinear":
            taps.append([(base, 1 - share), (base + 1, share)])
        else:
            around = [_numpy_padded(base + offset, size, padding_mode, align_corners) for offset in (-1, 0, 1, 2)]
            taps.append(list(zip(around, _cubic(share, _GRID_ALPHA, float), strict=True)))
    batch = untyped_np.arange(data.shape[0]).reshape(-1, *(1,) * count)
    total = np.zeros((data.shape[1], *grid.shape[:1], *grid.shape[2:]))
    for combination in product(*taps):
        weight, inside = np.ones(()), np.ones((), bool)
        index: list[np.ndarray] = []
        for (place, part), size in zip(combination, shape, strict=True):
            weight, inside = weight * part, inside & (place >= 0) & (place <= size - 1)
            index.append(untyped_np.where(np.isnan(place), 0, np.clip(place, 0, size - 1)).astype(np.int64))
        values = np.moveaxis(data, 1, 0)[(slice(None), batch, *index)].astype(np.float64)
        total = total + np.where(inside, values, 0) * weight
    return packed(np.moveaxis(total, 0, 1), layout, order).astype(dtype)


@register_op(
    "image.grid_sample",
    [
        Param("data"),
        Param("grid"),
        Param("method", "attr", "bilinear", "str"),
        Param("layout", "attr", "NCHW", "str"),
        Param("padding_mode", "attr", "zeros", "str"),
        Param("align_corners", "attr", False, "bool"),
    ],
    lowering=_lower_grid_sample,
    numpy=_numpy_grid_sample,
    pure=True,
    layout=by_text("data"),
    examples=(
        example(f32(1, 2, 4, 5), f32(1, 2, 3, 3), ranges={"grid": (-1.5, 1.5)}),
        example(
            f32("n", 1, "h", 4),
            f32("n", 2, 2, "w"),
            padding_mode="border",
            align_corners=True,
            ranges={"grid": (-1.5, 1.5)},
            least=1,
        ),
        example(
            f32(1, 2, 4, 5), f32(1, 2, 3, 2), method="nearest", padding_mode="reflection", ranges={"grid": (-3, 3)}
        ),
        example(f32(1, 1, 4, 5), f32(1, 2, 2, 2), method="bicubic", ranges={"grid": (-1.2, 1.2)}),
        example(
            f32(1, 1, 4, 5),
            f32(1, 2, 2, 2),
            method="bicubic",
            padding_mode="reflection",
            align_corners=True,
            ranges={"grid": (-2, 2)},
        ),
        example(
            f32(1, 2, 3, 4, 2), f32(1, 3, 2, 2, 2), layout="NCDHW", padding_mode="reflection", ranges={"grid": (-2, 2)}
        ),
        example(f32(1, 2, 4, 5, 3), f32(1, 2, 3, 2), layout="NCHW3c", ranges={"grid": (-2, 2)}),
    ),
)
def grid_sample(args: Arguments, context: TypeContext) -> TensorType:
    """The image at positions that a grid gives: data (n, c, h, w), grid (n, 2, y, x) -> (n, c, y, x), or with a third
    axis and layout NCDHW; the result has the layout of data.

    The grid holds the position along w, then h (then d): -1 is the start and 1 the end of the axis, the middle of the
    outermost elements with align_corners, else their outer edges. Methods: nearest, bilinear, bicubic (two axes).
    padding_mode says what is outside: zeros, the border, or the image reflected.
    """
    data, grid = tensor(args, "data", context), tensor(args, "grid", context)
    _one_of(args, "method", _GRID_METHODS)
    _one_of(args, "padding_mode", _PADDING)
    layout, spatial = _grid_layout(args)
    if args.method == "bicubic" and len(spatial) != 2:
        raise shape_error(args, "bicubic samples images of two axes", "W205")
    for name, operand, ndim in (("data", data, layout.ndim), ("grid", grid, len(spatial) + 2)):
        require_rank(args, name, operand, ndim)
        require_dtype(args, name, operand, "float")
    dims, places = dims_of(data), dims_of(grid)
    if dims is None or places is None:
        return TensorType(None, data.dtype, layout.ndim)
    sizes = layout.check(args, "data", dims, context)
    context.require_equal(sizes["N"], places[0], f"{args.name}: batches of data and grid", args.span)
    context.require_equal(places[1], len(spatial), f"{args.name}: the second size of grid", args.span)
    for letter in spatial:
        if sizes[letter] == 0:
            raise shape_error(args, f"axis {letter} of the image is empty", "W226")
    return TensorType(layout.dims({**sizes, **by_letter(spatial, places[2:])}), data.dtype)


@kernel_lowering
def _lower_affine_grid(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    count = len(kernel.dims) - 2
    data = kernel.input("data", (kernel.dims[0], count, count + 1))
    wide = _wide(kernel.dtype)

    def place(x: PrimExpr, size: Dim) -> PrimExpr:
        steps = _real(size)
        if args.align_corners:
            return _real(x) * (_number(2) / te.maximum(steps - _number(1), _number(1))) - _number(1)
        return (_real(x) * _number(2) + _number(1)) / steps - _number(1)

    def formula(n: PrimExpr, row: PrimExpr, *at: PrimExpr) -> PrimExpr:
        places = [te.cast(wide, place(x, size)) for x, size in zip(at, kernel.dims[2:], strict=True)][::-1]
        parts = [te.cast(wide, data(n, row, te.size(axis))) * value for axis, value in enumerate(places)]
        return _sum([*parts, te.cast(wide, data(n, row, te.size(count)))])

    return kernel.compute(formula)


def _numpy_affine_grid(data: np.ndarray, size: tuple[int, ...], align_corners: bool) -> np.ndarray:
    count = data.shape[1]
    size = size * count if len(size) == 1 else size
    axes = [
        np.arange(n) * (2 / max(n - 1, 1)) - 1 if align_corners else (np.arange(n) * 2 + 1) / max(n, 1) - 1
        for n in size
    ]
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size)])
    return np.einsum("nrk,k...->nr...", data.astype(np.float64), places).astype(data.dtype)


@register_op(
    "image.affine_grid",
    [Param("data"), Param("size", "shape"), Param("align_corners", "attr", True, "bool")],
    lowering=_lower_affine_grid,
    numpy=_numpy_affine_grid,
    pure=True,
    examples=(
        example(f32(2, 2, 3), (3, 4)),
        example(f32("n", 2, 3), (symbol("h"), 5), align_corners=False),
        example(f32(1, 2, 3), 1),
        example(f32(1, 3, 4), (2, 3, 4)),
    ),
)
def affine_grid(args: Arguments, context: TypeContext) -> TensorType:
    """The grid of image.grid_sample that an affine map of each batch gives.

    data (n, 2, 3), size (y, x) -> (n, 2, y, x); three sizes for data (n, 3, 4).

    The first and the last position of an axis stand for -1 and 1 with align_corners; without, the outer edges of the
    first and the last element do. One size stands for all axes.
    """
    data = tensor(args, "data", context)
    require_rank(args, "data", data, 3)
    require_dtype(args, "data", data, "float")
    wanted, ndim = shape_of_arg(args, "size", context)
    dims = dims_of(data)
    if dims is None or wanted is None:
        return TensorType(None, data.dtype, 2 + ndim if ndim > 1 else -1)
    count = dims[1] if isinstance(dims[1], int) else len(wanted)
    if count not in (2, 3) or len(wanted) not in (1, count):
        raise shape_error(args, f"data of {count} rows and {len(wanted)} sizes are no map of 2 or 3 axes")
    context.require_equal(dims[1], count, f"{args.name}: rows of data", args.span)
    context.require_equal(dims[2], count + 1, f"{args.name}: columns of data", args.span)
    return TensorType((dims[0], count, *(wanted * count if len(wanted) == 1 else wanted)), data.dtype)
