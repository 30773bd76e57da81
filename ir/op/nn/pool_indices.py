"""Pools that say where the greatest element of each window stands: max pools with indices, and fractional ones.

An index counts the elements of the spatial axes in row-major order, as nn.max_unpool takes it: of equal elements the
first, of nan the first one. A window that lies in the padding alone has the least value of the dtype, and the index -1.
Dtypes: that of data, and int64.
Errors: those of windows (W205, W227); ShapeError W201, W202, W205; DTypeError W320, W321; at run time BoundsError for a
sample that is not in [0, 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from typing import Any

import numpy as np

from weft.dtypes import is_float, lowest
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Kernel,
    example,
    f32,
    require_dtype,
    require_known_rank,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.nn.pool import window_params
from weft.ir.op.nn.window import (
    SpatialFamily,
    Window,
    begins_and_ends,
    check_window,
    per_axis,
    spread,
    window_of,
    window_positions,
)
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType
from weft.support.records import dataclass

__all__: list[str] = []

Place = Callable[[Sequence[PrimExpr], int, PrimExpr], tuple[PrimExpr, Sequence[PrimExpr]]]
"""(indices of an output, spatial axis, offset in the window) -> the place along the axis in data, conditions of being
one."""


def _greatest(kernel: Kernel, data: Any, sizes: Sequence[Dim], place: Place) -> PrimFunc:
    """The greatest element of each window and its index.

    Two passes over the windows, both of them reductions: the second looks for the first element that is the greatest.
    """
    result = kernel.result
    assert isinstance(result, TupleType)
    dims = dims_of(result.fields[0]) or ()
    spatial = data.shape[2:]

    def offsets() -> list[Any]:
        return [te.reduce_axis((0, size), name=f"r{axis}") for axis, size in enumerate(sizes)]

    def element(indices: Sequence[PrimExpr], window: Sequence[Any]) -> tuple[PrimExpr, PrimExpr, list[PrimExpr]]:
        """The element, its index, and when there is one."""
        places: list[PrimExpr] = []
        inside: list[PrimExpr] = []
        flat = te.const(0, "int64")
        for axis, (offset, size) in enumerate(zip(window, spatial, strict=True)):
            at, conditions = place(indices, axis, offset)
            places.append(at)
            inside += conditions
            flat = flat * te.size(size) + at
        return data(*indices[:2], *places), flat, inside

    def best(*indices: PrimExpr) -> te.Reduction:
        window = offsets()
        value, _, inside = element(indices, window)
        least = te.const(lowest(data.dtype), data.dtype)
        return te.max(te.if_then_else(te.all(*inside), value, least) if inside else value, axis=window)

    pooled = te.compute(dims, best, "max_pool")
    none = te.const(np.iinfo("int64").max, "int64")

    def first(*indices: PrimExpr) -> te.Reduction:
        window = offsets()
        value, flat, inside = element(indices, window)
        top = pooled(*indices)
        found = te.equal(value, top)
        if is_float(data.dtype):
            found = te.any(found, te.all(te.isnan(value), te.isnan(top)))
        return te.min(te.if_then_else(te.all(*inside, found), flat, none), axis=window)

    firsts = te.compute(dims, first, "first")
    indices = te.compute(
        dims, lambda *i: te.select(te.equal(firsts(*i), none), te.const(-1, "int64"), firsts(*i)), "indices"
    )
    return kernel.finish(pooled, indices)


def _numpy_greatest(data: np.ndarray, reads: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The same, where `reads` says by axis which places of data (outside of it: none) each window has."""
    outputs = [read.shape[-2] for read in reads]
    values = np.full((*data.shape[:2], *outputs), lowest(str(data.dtype)), data.dtype)
    indices = np.full(values.shape, -1, "int64")
    for at in np.ndindex(*values.shape):
        found: list[tuple[int, ...]] = []
        for place in combinations(*(read[at[0], at[1], at[2 + axis]] for axis, read in enumerate(reads))):
            if all(0 <= p < size for p, size in zip(place, data.shape[2:], strict=True)):
                found.append(place)
        if found:
            window = np.array([data[(*at[:2], *place)] for place in found])
            nan = window != window
            best = int(np.argmax(nan) if nan.any() else np.argmax(window))
            values[at] = window[best]
            indices[at] = np.ravel_multi_index(found[best], data.shape[2:])
    return values, indices


@dataclass(frozen=True)
class _MaxPoolWithIndices(SpatialFamily):
    """The greatest element of each window over so many spatial axes, and its index."""

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.max_pool{self.count}d_with_indices"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return window_params(self.count)

    def _window(self, args: Arguments) -> Window:
        return window_of(args, self.spatial, per_axis(args, "pool_size", self.count), args.ceil_mode)

    def rule(self, args: Arguments, context: TypeContext) -> TupleType:
        data = tensor(args, "data", context)
        require_rank(args, "data", data, self.count + 2)
        require_dtype(args, "data", data, "number")
        window, dims = self._window(args), dims_of(data)
        if dims is None:
            rank = self.count + 2
            return TupleType((TensorType(dtype=data.dtype, ndim=rank), TensorType(dtype="int64", ndim=rank)))
        shape = (*dims[:2], *window.outputs(args, dims[2:]))
        return TupleType((TensorType(shape, data.dtype), TensorType(shape, "int64")))

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        window, data = self._window(kernel.args), kernel.input("data")
        check_window(kernel, window, data.shape[2:])

        def place(indices: Sequence[PrimExpr], axis: int, offset: PrimExpr) -> tuple[PrimExpr, list[PrimExpr]]:
            begin = window.begins[axis]
            at = indices[2 + axis] * window.strides[axis] + offset * window.dilation[axis] - begin
            inside = [at >= 0] if begin else []
            inside += [at < data.shape[2 + axis]] if window.ceil or window.ends[axis] else []
            return at, inside

        return _greatest(kernel, data, window.sizes, place)

    def reference(
        self, data: Any, *, pool_size: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool
    ) -> Any:
        reads: list[np.ndarray] = []
        given = (spread(values, self.count) for values in (pool_size, strides, dilation))
        options = (data.shape[2:], *given, *begins_and_ends(padding, self.count))
        for extent, size, step, gap, begin, end in zip(*options, strict=True):
            positions = window_positions(extent, (size - 1) * gap + 1, step, (begin, end), ceil_mode)
            outputs = untyped_np.arange(positions)
            read = outputs[:, None] * step - begin + untyped_np.arange(size) * gap
            reads.append(untyped_np.broadcast_to(read, (*data.shape[:2], *read.shape)))
        return _numpy_greatest(data, reads)


_MAX = "(values, indices): the greatest element of each window that slides over"
_WHERE = """and its index among the elements of a channel, the first one of several.

data (n, c, ...); the index of a window without an element, in the padding alone, is -1."""

_MaxPoolWithIndices(1).declare(
    f"{_MAX} one axis, {_WHERE}",
    (
        example(f32(2, 3, 8), pool_size=3, strides=2, padding=1),
        example(f32("n", 2, "w"), pool_size=2, ceil_mode=True, strides=2, least=2),
    ),
)
_MaxPoolWithIndices(2).declare(
    f"{_MAX} two axes, {_WHERE}",
    (
        example(f32(1, 2, 6, 7), pool_size=[2, 2], strides=[2, 2]),
        example(f32("n", 3, "h", 5), pool_size=3, strides=[1, 2], padding=[1, 1], least=1),
        example(f32(1, 2, 7, 7), pool_size=[2, 3], strides=3, dilation=[2, 1], ceil_mode=True),
        example(typed("int32", 1, 1, 4, 4), pool_size=3, padding=1),
        example(typed("float16", 1, 2, 3, 3), pool_size=1, padding=[1, 0, 0, 1]),
    ),
)
_MaxPoolWithIndices(3).declare(
    f"{_MAX} three axes, {_WHERE}",
    (example(f32("n", 2, 4, 5, 3), pool_size=[2, 3, 1], strides=[2, 1, 1], padding=[1, 0, 0]),),
)


# Fractional pools


@dataclass(frozen=True)
class _FractionalMaxPool(SpatialFamily):
    """The greatest elements of windows whose places a sample for each channel spreads over so many spatial axes."""

    @property
    def name(self) -> str:
        """The name of the operator."""
        return f"nn.fractional_max_pool{self.count}d"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return (
            Param("data"),
            Param("samples"),
            Param("pool_size", "attr", of="ints"),
            Param("output_size", "attr", of="ints"),
        )

    def rule(self, args: Arguments, context: TypeContext) -> TupleType:
        data, samples = tensor(args, "data", context), tensor(args, "samples", context)
        require_known_rank(args, "data", data, self.count + 2)
        require_known_rank(args, "samples", samples, 3)
        require_dtype(args, "data", data, "number")
        require_dtype(args, "samples", samples, "float")
        if is_float(data.dtype or ""):
            same_dtype(args, data, samples)
        sizes, outputs = (per_axis(args, name, self.count) for name in ("pool_size", "output_size"))
        dims, given = dims_of(data), dims_of(samples)
        if dims is None or given is None:
            rank = self.count + 2
            return TupleType((TensorType(dtype=data.dtype, ndim=rank), TensorType(dtype="int64", ndim=rank)))
        for own, other in zip(given, (*dims[:2], self.count), strict=True):
            context.require_equal(own, other, f"{args.name}: sizes of samples and data", args.span)
        for size, output, dim in zip(sizes, outputs, dims[2:], strict=True):
            if isinstance(dim, int) and dim < size + output - 1:
                message = f"{output} windows of {size} do not fit {dim} elements"
                raise shape_error(args, message, "W227", "an axis has at least pool_size + output_size - 1 elements")
        shape = (*dims[:2], *outputs)
        return TupleType((TensorType(shape, data.dtype), TensorType(shape, "int64")))

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        sizes, outputs = (per_axis(args, name, self.count) for name in ("pool_size", "output_size"))
        data = kernel.input("data")
        samples = kernel.input("samples", (*data.shape[:2], self.count))
        for size, output, dim in zip(sizes, outputs, data.shape[2:], strict=True):
            kernel.require_le(size + output - 1, dim, f"{output} windows of {size} do not fit")

        def is_fraction(*i: PrimExpr) -> PrimExpr:
            return te.all(samples(*i) >= 0, samples(*i) < 1)

        message = f"{args.name}: a sample is not in [0, 1)"
        kernel.checks.append(te.check(samples.shape, is_fraction, message, "BoundsError"))
        wide = "float64" if samples.dtype == "float64" else "float32"

        def place(indices: Sequence[PrimExpr], axis: int, offset: PrimExpr) -> tuple[PrimExpr, list[PrimExpr]]:
            last = te.size(data.shape[2 + axis]) - sizes[axis]
            if outputs[axis] == 1:
                return last + offset, []
            sample = te.cast(wide, samples(*indices[:2], self._sample(axis)))
            step = te.cast(wide, last) / te.cast(wide, te.size(outputs[axis] - 1))
            at = te.cast("int64", (te.cast(wide, indices[2 + axis]) + sample) * step)
            at = te.minimum(te.maximum(at - te.cast("int64", sample * step), 0), last)
            return te.select(te.equal(indices[2 + axis], outputs[axis] - 1), last, at) + offset, []

        return _greatest(kernel, data, sizes, place)

    def _sample(self, axis: int) -> int:
        """Which sample of a channel an axis takes: two axes take theirs from the last one on."""
        return 1 - axis if self.count == 2 else axis

    def reference(self, data: Any, samples: Any, *, pool_size: Any, output_size: Any) -> Any:
        reads: list[np.ndarray] = []
        wide = np.promote_types(samples.dtype, "float32").type
        sizes, outputs = spread(pool_size, self.count), spread(output_size, self.count)
        for axis, (size, output) in enumerate(zip(sizes, outputs, strict=True)):
            last = data.shape[2 + axis] - size
            if last < output - 1:
                raise ValueError("the windows do not fit")
            sample = samples[:, :, self._sample(axis), None].astype(wide)
            step = wide(last) / wide(max(output - 1, 1))
            starts = ((np.arange(output, dtype=wide) + sample) * step).astype("int64") - (sample * step).astype("int64")
            starts = np.clip(starts, 0, last)
            starts[..., -1] = last
            reads.append(starts[..., None] + np.arange(size))
        return _numpy_greatest(data, reads)


_FRACTION = """

data (n, c, ...), samples (n, c, {count}) in [0, 1), {order}. Window i of k along an axis of m elements begins at
int((i + u) a) - int(u a), a = (m - pool_size) / (k - 1) and u its sample; the last one ends with the axis.
Source: Graham, Fractional max-pooling, 2014."""

_FractionalMaxPool(2).declare(
    "(values, indices): the greatest elements of output_size windows, spread over two axes by samples, and their "
    "indices in the channel." + _FRACTION.format(count=2, order="for the columns and the rows"),
    (
        example(f32(1, 2, 7, 6), f32(1, 2, 2), pool_size=[2, 3], output_size=[3, 2], ranges={"samples": (0, 0.99)}),
        example(f32("n", 1, "h", 5), f32("n", 1, 2), 2, 2, ranges={"samples": (0, 0.99)}, least=3),
        example(typed("int32", 1, 1, 4, 4), f32(1, 1, 2), 2, [1, 3], ranges={"samples": (0, 0.99)}),
    ),
)
_FractionalMaxPool(3).declare(
    "(values, indices): the greatest elements of output_size windows, spread over three axes by samples, and their "
    "indices in the channel." + _FRACTION.format(count=3, order="one for each axis"),
    (example(f32("n", 2, 6, 4, 5), f32("n", 2, 3), 2, [3, 2, 4], ranges={"samples": (0, 0.99)}),),
)
