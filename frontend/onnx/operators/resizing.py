"""Another size for the axes of an image: a product with a matrix of weights, or positions computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.computed import element
from weft.frontend.onnx.node import OnnxNode
from weft.frontend.onnx.table import row
from weft.frontend.sampling import cubic_weight, product_along, smoothed_weights, triangle_weight
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Expr, PrimValue
from weft.script import relax as R


def resize(n: OnnxNode, x: Expr) -> Any:
    """Another size for the last axes: the result is a product with a matrix of weights along each of them."""
    rank = n.rank(x)
    axes = [axis % rank for axis in (n.attr("axes") or range(rank))]
    roi, scales, sizes = (1, 2, 3) if n.version >= 11 else (9, 1, 9)
    if any(n.has(index) and n.known(index) is None for index in (roi, scales, sizes)) or not all(
        isinstance(n.shape(x)[axis], int) for axis in axes
    ):
        return _resized_at_run(n, x, axes, roi, scales, sizes)
    dims = n.dims(x, axes)
    wanted = n.constant(sizes).reshape(-1) if n.has(sizes) and n.constant(sizes).size else None
    factors = n.constant(scales).reshape(-1).astype("float64") if wanted is None else None
    region = n.constant(roi).reshape(-1) if n.has(roi) and n.constant(roi).size else None
    mode = n.attr("mode", "nearest")
    transform = n.attr("coordinate_transformation_mode", "half_pixel") if n.version >= 11 else "asymmetric"
    if factors is not None and not (factors > 0).all():
        raise Unsupported(f"scales must be greater than 0, got {factors.tolist()}")
    if wanted is not None:
        wanted, factors = _target(n, dims, wanted)
    result = x
    for position, axis in enumerate(axes):
        assert factors is not None
        scale, size = float(factors[position]), dims[position]
        new = int(wanted[position]) if wanted is not None else int(np.floor(np.float32(size) * np.float32(scale)))
        if new == size and scale == 1.0 and transform != "tf_crop_and_resize":
            continue
        ends = (region[position], region[len(axes) + position]) if region is not None else (0.0, 1.0)
        result = _resized(n, result, axis, AxisResize(size, new, scale, mode, transform, ends, n))
    return n.inputs[0] if result is x else result


def _target(n: OnnxNode, dims: list[int], wanted: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The sizes that are asked for, with the proportions kept where the policy says so."""
    policy = n.attr("keep_aspect_ratio_policy", "stretch")
    ratios = np.asarray([int(size) / own for size, own in zip(wanted, dims, strict=True)])
    if policy == "stretch":
        return [int(size) for size in wanted], ratios
    scale = ratios.min() if policy == "not_larger" else ratios.max()
    return [int(np.floor(scale * own + 0.5)) for own in dims], np.full(len(dims), scale)


def _oldest(scale: float) -> str:
    """What is nearest before version 11, which leaves it open: as onnxruntime has it."""
    return "ceil" if scale < 1 else "floor"


class AxisResize:
    """One axis of a resize: which elements, with which weights, make each new one."""

    def __init__(
        self, size: int, new: int, scale: float, mode: str, transform: str, ends: tuple[float, float], n: OnnxNode
    ) -> None:
        self.size, self.new, self.scale, self.mode, self.transform, self.ends = size, new, scale, mode, transform, ends
        self.nearest = n.attr("nearest_mode", "round_prefer_floor") if n.version >= 11 else _oldest(scale)
        self.cubic, self.exclude = float(n.attr("cubic_coeff_a", -0.75)), bool(n.attr("exclude_outside", 0))
        self.outside = float(n.attr("extrapolation_value", 0.0))
        self.antialias = bool(n.attr("antialias", 0)) and scale < 1

    def positions(self) -> np.ndarray:
        """Where each new element lies among the old ones."""
        index = np.arange(self.new, dtype="float64")
        length = self.size * self.scale
        if self.transform == "asymmetric":
            return index / self.scale
        if self.transform == "align_corners":
            return np.zeros(self.new) if length == 1 else index * (self.size - 1) / (length - 1)
        if self.transform == "pytorch_half_pixel":
            return (index + 0.5) / self.scale - 0.5 if length > 1 else np.full(self.new, -0.5)
        if self.transform == "tf_crop_and_resize":
            start, end = self.ends
            if self.new == 1:
                return np.asarray([0.5 * (start + end) * (self.size - 1)])
            return start * (self.size - 1) + index * (end - start) * (self.size - 1) / (length - 1)
        if self.transform == "half_pixel_symmetric":
            adjustment = self.new / length
            centre = self.size / 2
            return centre * (1 - adjustment) + (index + 0.5) / self.scale - 0.5
        return (index + 0.5) / self.scale - 0.5

    def chosen(self) -> np.ndarray:
        """The nearest old element of each new one."""
        at = self.positions()
        rounded = {
            "round_prefer_floor": np.ceil(at - 0.5),
            "round_prefer_ceil": np.floor(at + 0.5),
            "floor": np.floor(at),
            "ceil": np.ceil(at),
        }[self.nearest]
        return np.clip(rounded, 0, self.size - 1).astype("int64")

    def outside_rows(self) -> np.ndarray:
        """Which new elements lie outside of the old ones."""
        at = self.positions()
        return (at < 0) | (at > self.size - 1) if self.transform == "tf_crop_and_resize" else np.zeros(self.new, bool)

    def weights(self) -> np.ndarray:
        """The matrix (new, old) of weights."""
        kernel = self._linear if self.mode == "linear" else self._cubic
        half = 1 if self.mode == "linear" else 2
        stretch = self.scale if self.antialias else 1.0
        reach = int(np.ceil(half / stretch))
        made = np.zeros((self.new, self.size))
        for row_index, at in enumerate(self.positions()):
            first = int(np.floor(at)) - reach + 1
            places = np.arange(first, first + 2 * reach)
            values = kernel((places - at) * stretch)
            if self.exclude:
                values = np.where((places < 0) | (places >= self.size), 0.0, values)
            if self.exclude or self.antialias:
                values = values / values.sum()
            np.add.at(made[row_index], np.clip(places, 0, self.size - 1), values)
        return made

    @staticmethod
    def _linear(x: np.ndarray) -> np.ndarray:
        return np.maximum(1 - np.abs(x), 0)

    def _cubic(self, x: np.ndarray) -> np.ndarray:
        a, x = self.cubic, np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _resized(n: OnnxNode, x: Expr, axis: int, how: AxisResize) -> Expr:
    rank = n.rank(x)
    if how.mode == "nearest":
        result = R.take(x, Constant(how.chosen()), axis)
    else:
        dtype = n.dtype(x)
        if dtype not in ("float32", "float64", "float16"):
            raise Unsupported(f"the mode {how.mode} of {dtype}")
        matrix = Constant(how.weights().astype(dtype))
        result = product_along(x, rank, axis, matrix)
    outside = how.outside_rows()
    if outside.any():
        mask = Constant(outside.reshape([-1 if a == axis else 1 for a in range(rank)]))
        result = R.where(mask, Constant(np.asarray(how.outside, n.dtype(x))), result)
    return result


def upsample(n: OnnxNode, x: Expr) -> Any:
    """Resize before it had that name: positions are index / scale."""
    if n.has(1) and (n.known(1) is None or not all(isinstance(size, int) for size in n.shape(x))):
        return _resized_at_run(n, x, list(range(n.rank(x))), 9, 1, 9)
    scales = np.asarray(n.attr("scales"), "float64") if n.given("scales") else n.constant(1).reshape(-1)
    result, mode = x, n.attr("mode", "nearest")
    for axis, (size, scale) in enumerate(zip(n.dims(x, range(n.rank(x))), scales, strict=True)):
        if scale != 1:
            how = AxisResize(
                size,
                int(np.floor(np.float32(size) * np.float32(scale))),
                float(scale),
                mode,
                "asymmetric",
                (0.0, 1.0),
                n,
            )
            how.nearest = "floor"
            result = _resized(n, result, axis, how)
    return n.inputs[0] if result is x else result


# Sizes of the run -----------------------------------------------------------------------------------------------------

_WIDE = "float64"


def _number(size: Dim) -> Expr:
    return R.astype(R.full((), PrimValue(size), "int64"), _WIDE)


def _weighs_the_inside(n: OnnxNode) -> bool:
    """Whether antialiasing is what `smoothed_weights` computes."""
    return bool(n.attr("exclude_outside", 0)) and n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"


def _resized_at_run(n: OnnxNode, x: Expr, axes: list[int], roi: int, scales: int, sizes: int) -> Expr:
    """Scales or sizes that only the run can tell: every axis is read at computed positions."""
    if n.attr("antialias", 0) and not _weighs_the_inside(n):
        raise Unsupported("antialiasing with a scale of the run, of what lies outside too")
    dims = [n.shape(x)[axis] for axis in axes]
    by_size = n.has(sizes) and n.shape(n.need(sizes)) != (0,)
    own = n.emit(R.concat([R.reshape(_number(size), (1,)) for size in dims], 0), "own")
    if by_size:
        factors = n.emit(R.divide(R.astype(n.need(sizes), _WIDE), own), "scales")
        policy = n.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = R.min(factors, 0, True) if policy == "not_larger" else R.max(factors, 0, True)
            factors = n.emit(R.broadcast_to(one, (len(axes),)), "scales")
            wanted = R.floor(R.add(R.multiply(factors, own), 0.5))
        else:
            wanted = R.astype(n.need(sizes), _WIDE)
    else:
        factors = n.emit(R.astype(n.need(scales), _WIDE), "scales")
        wanted = R.floor(R.multiply(R.astype(factors, "float32"), R.astype(own, "float32")))
    new_sizes = n.sizes_of(n.emit(R.astype(wanted, "int64"), "sizes"), n.proto.output[0])
    result: Expr = x
    for position, (axis, new) in enumerate(zip(axes, new_sizes, strict=True)):
        ends = None
        if n.has(roi) and n.shape(n.need(roi)) != (0,):
            region = R.astype(n.need(roi), _WIDE)
            ends = n.emit(element(region, position), "start"), n.emit(element(region, len(axes) + position), "end")
        how = RunAxis(n, result, axis, new, n.emit(element(factors, position), "scale"), ends)
        result = n.emit(how.resized(result), "resized")
    return result


class RunAxis:
    """One axis of a resize at run time."""

    def __init__(self, n: OnnxNode, x: Expr, axis: int, new: Dim, scale: Expr, ends: tuple[Expr, Expr] | None) -> None:
        self.n, self.axis, self.new, self.scale, self.ends = n, axis, new, scale, ends
        self.rank, self.dtype = n.rank(x), n.dtype(x)
        self.size = n.emit(_number(n.shape(x)[axis]), "size")
        self.last = n.emit(R.subtract(self.size, 1.0), "last")
        self.transform = n.attr("coordinate_transformation_mode", "half_pixel") if n.version >= 11 else "asymmetric"
        if n.version == 10 or n.operator == "Upsample":
            self.transform = "asymmetric"

    def positions(self) -> Expr:
        """Where each new element lies among the old ones."""
        index = R.astype(R.arange(self.new), _WIDE)
        length = R.multiply(self.size, self.scale)
        if self.transform == "asymmetric":
            return R.divide(index, self.scale)
        if self.transform == "align_corners":
            return R.divide(R.multiply(index, self.last), R.maximum(R.subtract(length, 1.0), 1e-30))
        half = R.subtract(R.divide(R.add(index, 0.5), self.scale), 0.5)
        if self.transform == "pytorch_half_pixel":
            return R.where(R.greater(length, 1.0), half, R.full((), -0.5, _WIDE))
        if self.transform == "tf_crop_and_resize" and self.ends is not None:
            start, end = self.ends
            step = R.divide(R.multiply(R.subtract(end, start), self.last), R.maximum(R.subtract(length, 1.0), 1e-30))
            middle = R.multiply(R.multiply(R.add(start, end), 0.5), self.last)
            spread = R.add(R.multiply(start, self.last), R.multiply(index, step))
            return R.where(R.greater(_number(self.new), 1.0), spread, middle)
        if self.transform == "half_pixel_symmetric":
            adjustment = R.subtract(R.full((), 1.0, _WIDE), R.divide(_number(self.new), length))
            return R.add(half, R.multiply(R.multiply(self.size, 0.5), adjustment))
        return half

    def resized(self, x: Expr) -> Expr:
        """The tensor with the axis at its new size."""
        n, mode = self.n, self.n.attr("mode", "nearest")
        at = n.emit(self.positions(), "at")
        if mode == "nearest":
            result = self.taken(x, self.rounded(at))
        else:
            if self.dtype not in ("float32", "float64", "float16"):
                raise Unsupported(f"the mode {mode} of {self.dtype}")
            result = self.smoothed(x, mode) if n.attr("antialias", 0) else self.weighted(x, at, mode)
        if self.transform == "tf_crop_and_resize":
            outside = R.logical_or(R.less(at, 0.0), R.greater(at, self.last))
            value = Constant(np.asarray(n.attr("extrapolation_value", 0.0), self.dtype))
            result = R.where(self.along(outside), value, result)
        return result

    def along(self, vector: Expr) -> Expr:
        """A vector in the rank of the tensor, along the axis."""
        return R.reshape(vector, tuple(self.new if axis == self.axis else 1 for axis in range(self.rank)))

    def taken(self, x: Expr, place: Expr) -> Expr:
        """The elements at places, the first or last for those outside."""
        inside = R.minimum(R.maximum(place, 0.0), self.last)
        return R.take(x, self.n.emit(R.astype(inside, "int64"), "index"), self.axis)

    def rounded(self, at: Expr) -> Expr:
        """The nearest old element of each new one."""
        if self.n.version < 11 and self.n.operator == "Resize":
            return R.where(R.less(self.scale, 1.0), R.ceil(at), R.floor(at))  # as `_oldest` says
        mode = self.n.attr("nearest_mode", "round_prefer_floor") if self.n.version >= 11 else "floor"
        if mode == "round_prefer_floor":
            return R.ceil(R.subtract(at, 0.5))
        if mode == "round_prefer_ceil":
            return R.floor(R.add(at, 0.5))
        return R.floor(at) if mode == "floor" else R.ceil(at)

    def weighted(self, x: Expr, at: Expr, mode: str) -> Expr:
        """The sum of neighbours by their weights."""
        n, first = self.n, self.n.emit(R.floor(at), "first")
        offsets = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
        places = [n.emit(R.add(first, float(offset)), "place") for offset in offsets]
        weights = [n.emit(self.weight(R.abs(R.subtract(place, at)), mode), "weight") for place in places]
        if n.attr("exclude_outside", 0):
            inside = [R.logical_and(R.greater_equal(p, 0.0), R.less_equal(p, self.last)) for p in places]
            weights = [n.emit(R.where(i, w, R.zeros_like(w)), "weight") for i, w in zip(inside, weights, strict=True)]
            total: Expr = weights[0]
            for weight in weights[1:]:
                total = R.add(total, weight)
            total = n.emit(total, "total")
            weights = [n.emit(R.divide(weight, total), "weight") for weight in weights]
        result: Any = None
        for place, weight in zip(places, weights, strict=True):
            part = R.multiply(self.taken(x, place), self.along(R.astype(weight, self.dtype)))
            result = part if result is None else R.add(result, part)
        return result

    def smoothed(self, x: Expr, mode: str) -> Expr:
        """The sum of all that are merged into one."""
        n, cubic = self.n, None if mode == "linear" else float(self.n.attr("cubic_coeff_a", -0.75))
        step = n.emit(R.divide(R.const(1.0, _WIDE), self.scale), "step")
        weights = smoothed_weights(n.shape(x)[self.axis], self.new, step, cubic, n.emit)
        return product_along(x, self.rank, self.axis, n.emit(R.astype(weights, self.dtype), "weights"))

    def weight(self, distance: Expr, mode: str) -> Expr:
        """The weight of a neighbour at a distance."""
        if mode == "linear":
            return triangle_weight(distance)
        return cubic_weight(self.n.emit(distance, "distance"), float(self.n.attr("cubic_coeff_a", -0.75)))


row("Resize", resize)
row("Upsample", upsample)
