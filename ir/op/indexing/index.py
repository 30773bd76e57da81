"""Operators that select elements: slices and gathers.

Slices are Python's: negative boundaries count from the end, and boundaries are clamped. Two things are assumed of
symbolic sizes, and checked at run time (`_Slice.assumed`): a boundary such as `n - 3`, which only a few small sizes
make negative, is not negative; and a slice of at most one element (`x[:1]`, `x[n - 1:n]`, `x[i:i + 1]`) has one.
Indices that are data count from the end when negative and are checked: one out of range stops the kernel with a
BoundsError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext, type_text
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import (
    Dim,
    DimExpr,
    bounds,
    ceildiv,
    maximum,
    minimum,
    product,
    prove_le,
    prove_lt,
    prove_nonnegative,
    same,
    symbol,
)
from weft.ir.graph import Constant, Expr, PrimValue
from weft.ir.op.common import (
    Dims,
    Kernel,
    axes_of,
    axis_of,
    dtype_error,
    example,
    f32,
    i64,
    kernel_lowering,
    require_dtype,
    scalar_of,
    shape_error,
    tensor,
    typed,
    wrapped_index,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.layout_rules.families import along
from weft.ir.op.manipulate import (
    UNLIMITED,
    extent,
    from_start,
    inside,
    is_one_element,
    negative_boundary,
    split_index,
)
from weft.ir.op.precision import Reads, follow, never
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType
from weft.support.records import dataclass

# ---------------------------------------------------------------------------------------------------------------------
# Slices
# ---------------------------------------------------------------------------------------------------------------------


def _last(index: Dim, size: Dim) -> Dim:
    """A boundary of a slice that runs backwards, clamped to [-1, size - 1]."""
    if isinstance(index, int) and abs(index) >= UNLIMITED:
        return size - 1 if index > 0 else -1
    if isinstance(index, int):
        from_start = index if index >= 0 else maximum(size + index, -1)
    elif prove_nonnegative(index) is True:
        from_start = index
    else:
        negative = 1 - minimum(maximum(index + 1, 0), 1)
        from_start = maximum(index + size * negative, -1)
    return from_start if prove_le(from_start, size - 1) is True else minimum(from_start, size - 1)


@dataclass(frozen=True)
class _Slice:
    """A sliced axis; `assumed` are pairs (a, b) with a <= b, each with what it means."""

    start: Dim
    length: Dim
    step: int
    assumed: tuple[tuple[Dim, Dim, str], ...] = ()

    @property
    def last(self) -> Dim:
        """The position of the last element."""
        return self.start + (self.length - 1) * self.step


def _slice(args: Arguments, position: int, axis: int, size: Dim) -> _Slice:
    begin, end = args.begin[position], args.end[position]
    step = args.strides[position] if args.strides is not None else 1
    if step == 0:
        raise shape_error(args, "a stride is 0", "W205")
    if args.assume_inbound:
        return _slice_as_written(begin, end, step, axis, size)
    if step > 0:
        start = inside(begin, size) if _is_unlimited(begin) else from_start(begin, size)
        length = ceildiv(extent(start, inside(end, size)), step)
    else:
        start, stop = _last(begin, size), _last(end, size)
        length = ceildiv(start - stop, -step)
        length = length if prove_nonnegative(length) is True else maximum(length, 0)
    named = {"begin": begin, "end": end} if step > 0 else {}
    assumed = [
        (0, index, f"{name} {index} of axis {axis} must not be negative")
        for name, index in named.items()
        if negative_boundary(index, size)
    ]
    if is_one_element(length) or _is_one_apart(begin, end, size, length):
        assumed.append((1, length, f"the slice of axis {axis} must have its one element"))
        length = 1
    return _Slice(start, length, step, tuple(assumed))


def _is_one_apart(begin: Dim, end: Dim, size: Dim, length: Dim) -> bool:
    """Whether a slice is `x[i:i + 1]`, which has its element unless i is outside of the axis."""
    if not isinstance(length, DimExpr) or bounds(length)[1] != 1 or not same(begin + 1, end):
        return False
    return prove_nonnegative(begin) is True or negative_boundary(begin, size)


def _slice_as_written(begin: Dim, end: Dim, step: int, axis: int, size: Dim) -> _Slice:
    """A slice whose boundaries are promised to be inside: its length is their distance."""
    start, stop = (_as_written(index, size) for index in (begin, end))
    length = ceildiv(stop - start, step) if step > 0 else ceildiv(start - stop, -step)
    if isinstance(length, int):
        return _Slice(start, max(length, 0), step)
    message = f"the slice of axis {axis} must not end before it starts"
    return _Slice(start, length, step, () if prove_nonnegative(length) is True else ((0, length, message),))


def _is_unlimited(index: Dim) -> bool:
    return isinstance(index, int) and abs(index) >= UNLIMITED


def _as_written(index: Dim, size: Dim) -> Dim:
    if _is_unlimited(index):
        return inside(index, size)
    return size + index if isinstance(index, int) and index < 0 else index


def _sliced_axes(args: Arguments, ndim: int) -> tuple[int, ...]:
    axes = axes_of(args, args.axes, ndim)
    _check_lengths(args, len(axes))
    return axes


def _check_lengths(args: Arguments, count: int) -> None:
    counts = {len(args.begin), len(args.end), count, count if args.strides is None else len(args.strides)}
    if len(counts) != 1:
        raise shape_error(args, "axes, begin, end and strides have different lengths", "W205")


def _slices(args: Arguments, dims: Dims) -> dict[int, _Slice]:
    """The slices by axis."""
    axes = _sliced_axes(args, len(dims))
    return {axis: _slice(args, position, axis, dims[axis]) for position, axis in enumerate(axes)}


@kernel_lowering
def _lower_slice(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    slices = _slices(args, x.shape)
    for axis, part in slices.items():
        for low, high, message in part.assumed:
            kernel.require_le(low, high, message)
        if args.assume_inbound:
            _require_inside(kernel, axis, part, x.shape[axis])

    def element(*i: PrimExpr) -> PrimExpr:
        return x(*(_stepped(index, slices[axis]) if axis in slices else index for axis, index in enumerate(i)))

    return kernel.compute(element)


def _stepped(index: PrimExpr, part: _Slice) -> PrimExpr:
    scaled = index if part.step == 1 else index * part.step
    return scaled if part.start == 0 else scaled + te.size(part.start)


def _refuse_outside(args: Arguments, axis: int, part: _Slice, size: Dim) -> None:
    """BoundsError W901 where what `assume_inbound` promises is false for all values of the symbols."""
    for end in (part.start, part.last) if prove_lt(0, part.length) is True else ():
        if prove_lt(end, 0) is True or prove_le(size, end) is True:
            message = f"index {end} of axis {axis} is outside of its {size} elements, which assume_inbound rules out"
            raise BoundsError(f"{args.name}: {message}", code="W901", span=args.span)


def _require_inside(kernel: Kernel, axis: int, part: _Slice, size: Dim) -> None:
    """Assert what `assume_inbound` promises, where it is not proved: a broken promise must not read other memory."""
    for end in (part.start, part.last):
        if prove_nonnegative(end) is not True or prove_lt(end, size) is not True:
            fits = te.all(te.size(end) >= 0, te.size(end) < te.size(size))
            kernel.require_inside(te.any(te.size(part.length) <= 0, fits), f"the slice of axis {axis} is out of range")


def _check_inside(size: int, axis: int, begin: int, end: int, step: int) -> None:
    """BoundsError W900 for a promise of `assume_inbound` that is broken, as the kernel has it."""
    first, stop = _as_written(begin, size), _as_written(end, size)
    assert isinstance(first, int)
    assert isinstance(stop, int)
    positions = range(first, stop, step)
    if any(not 0 <= position < size for position in (*positions[:1], *positions[-1:])):
        raise BoundsError(f"R.strided_slice: the slice of axis {axis} is out of range", code="W900")


def _numpy_slice(x: np.ndarray, axes: Sequence[int], begin: Any, end: Any, strides: Any, assume_inbound: bool) -> Any:
    chosen = [slice(None)] * x.ndim
    for axis, low, high, step in zip(axes, begin, end, strides or (1,) * len(axes), strict=True):
        if assume_inbound:
            _check_inside(x.shape[axis], axis, low, high, step)
        chosen[axis] = slice(low, high, step)
    return x[tuple(chosen)]


@register_op(
    "strided_slice",
    [
        Param("x"),
        Param("axes", "attr", of="ints"),
        Param("begin", "attr", of="dims"),
        Param("end", "attr", of="dims"),
        Param("strides", "attr", None, "ints?"),
        Param("assume_inbound", "attr", False, "bool"),
    ],
    lowering=_lower_slice,
    numpy=_numpy_slice,
    pure=True,
    selects="x",
    layout=along("x", "axes"),
    examples=(
        example(f32(6, 4), [0, 1], [1, 0], [5, -1], [2, 1]),
        example(f32("n", 4), [0], [0], [UNLIMITED * 2 - 1], [2]),
        example(f32("n", 4), [0, 1], [-2, 3], [UNLIMITED * 2 - 1, -5], [1, -1]),
        example(f32("n", 3), [0], [1], [symbol("n") - 1]),
        example(f32("n"), [0], [-1], [-(1 << 60)], [-2]),
        example(f32("n", 6), [1], [1], [4], assume_inbound=True),
        example(f32("n"), [0], [1], [3], assume_inbound=True, least=3),
        example(f32(8), [0], [100], [-100], [-3]),
    ),
    precision=follow("x", reads=Reads.PART),
)
def strided_slice(args: Arguments, context: TypeContext) -> TensorType:
    """x[begin:end:stride] along each of the axes, with Python's rules: negative boundaries count from the end, and all
    are clamped to the axis. With assume_inbound boundaries are taken as they are, which the kernel checks.

    Of symbolic sizes it is checked at run time that a boundary such as `n - 3` is not negative, and that a slice of at
    most one element (`x[:1]`), which has the size 1, is not empty.

    Errors: ShapeError W201 an element that is never there, W203, W204 for the axes, W205 lists of different lengths or
    a stride of 0; BoundsError W901 an element that assume_inbound promises and that is never there.
    """
    x = tensor(args, "x", context)
    dims = dims_of(x)
    _check_lengths(args, len(args.axes))
    if dims is None:
        if x.ndim >= 0:
            _sliced_axes(args, x.ndim)
        return TensorType(None, x.dtype, x.ndim, x.vdevice)
    slices = _slices(args, dims)
    for axis, part in slices.items():
        if args.assume_inbound:
            _refuse_outside(args, axis, part, dims[axis])
        for low, high, message in part.assumed:
            context.require_le(low, high, f"{args.name}: {message}", args.span)
    sliced = tuple(slices[axis].length if axis in slices else dim for axis, dim in enumerate(dims))
    return TensorType(sliced, x.dtype, vdevice=x.vdevice)


# ---------------------------------------------------------------------------------------------------------------------
# Gathers
# ---------------------------------------------------------------------------------------------------------------------

_MODES = ("fast", "clip", "wrap", "nan")


def _indices(args: Arguments, context: TypeContext, name: str = "indices") -> TensorType:
    ty = tensor(args, name, context)
    require_dtype(args, name, ty, "integer")
    return ty


def _refuse_constant(args: Arguments, value: Expr, size: Dim) -> None:
    """BoundsError W901 for constant indices that are out of range whatever the symbols are."""
    if isinstance(value, PrimValue) and isinstance(value.value, int):
        low = high = value.value
    elif isinstance(value, Constant) and value.is_numpy and value.data.size:
        low, high = int(value.data.min()), int(value.data.max())
    else:
        return
    if isinstance(size, int) and (low < -size or high >= size):
        wrong = low if low < -size else high
        raise BoundsError(f"{args.name}: index {wrong} of a size of {size}", code="W901", span=args.span)


def _take_axis(args: Arguments, ndim: int) -> int | None:
    return None if args.axis is None else axis_of(args, args.axis, ndim)


def _fitted(args: Arguments, value: PrimExpr, size: Dim, *, by_element: bool) -> PrimExpr:
    """An index of a take as a valid one, by the mode; `by_element` where neighbours have indices of their own."""
    if args.mode in ("clip", "nan"):
        return te.maximum(te.minimum(te.cast(te.INDEX, value), te.size(size) - 1), 0)
    if args.mode == "wrap":
        # The kernel has checked that an indexed axis is not empty; the maximum guards the division all the same.
        return te.cast(te.INDEX, value) % te.maximum(te.size(size), 1)
    return _element_index(value, size) if by_element else wrapped_index(value, size)


def _element_index(value: PrimExpr, size: Dim) -> PrimExpr:
    """An index made to fit: the check has seen to it, and loads that are proved to be inside can be vectors."""
    return te.maximum(te.minimum(wrapped_index(value, size), te.size(size) - 1), 0)


@kernel_lowering
def _lower_take(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x, indices = kernel.input("x"), kernel.input("indices")
    axis = _take_axis(args, x.ndim)
    size = product(x.shape) if axis is None else x.shape[axis]
    kernel.check_indices(indices, size, any_value=args.mode != "fast")

    def element(*i: PrimExpr) -> PrimExpr:
        front = axis or 0
        chosen = i[front : front + indices.ndim]
        value = indices(*chosen) if indices.ndim else scalar_of(indices)
        index = _fitted(args, value, size, by_element=axis in (None, x.ndim - 1))
        if axis is None:
            found = x(*split_index(index, x.shape))
        else:
            found = x(*i[:axis], index, *i[axis + indices.ndim :])
        if args.mode != "nan":
            return found
        place = te.cast(te.INDEX, value)
        return te.select(te.all(place >= 0, place < te.size(size)), found, te.const(float("nan"), kernel.dtype))

    return kernel.compute(element)


def _numpy_take(x: np.ndarray, indices: Any, axis: int | None, mode: str) -> np.ndarray:
    indices = np.asarray(indices)
    size = x.size if axis is None else x.shape[axis]
    if mode == "fast" and indices.size and (indices.min() < -size or indices.max() >= size):
        raise BoundsError("R.take: index out of range")
    if mode == "wrap" and size:
        indices = indices % size  # NumPy takes as many steps as the index has multiples of the size
    modes: dict[str, Any] = {"fast": "raise", "clip": "clip", "wrap": "wrap", "nan": "clip"}
    found = np.asarray(np.take(x, indices, axis, mode=modes[mode]))
    if mode != "nan":
        return found
    inside = ((indices >= 0) & (indices < size)).reshape(indices.shape + (1,) * (x.ndim - 1 - (axis or 0)))
    return np.where(inside, found, np.asarray(np.nan, x.dtype)).astype(x.dtype)


@register_op(
    "take",
    [Param("x"), Param("indices", of="int"), Param("axis", "attr", None, "int?"), Param("mode", "attr", "fast", "str")],
    lowering=_lower_take,
    numpy=_numpy_take,
    pure=True,
    examples=(
        example(f32(5), i64(3), ranges={"indices": (-5, 4)}),
        example(f32("n", 4), i64("m", 2), axis=0, ranges={"indices": (-1, 0)}, least=1),
        example(f32(2, 5, 3), typed("int32", "m"), axis=-2, ranges={"indices": (0, 4)}),
        example(f32(2, 3), i64("m"), axis=0, mode="clip", ranges={"indices": (-9, 9)}),
        example(f32(2, 3), i64("m"), axis=1, mode="wrap", ranges={"indices": (-9, 9)}),
        example(f32(2, "n"), 1, axis=0),
        example(f32(6), i64("m"), ranges={"indices": (-6, 5)}),
        example(f32(2, 3, 2), i64("m"), axis=1, mode="nan", ranges={"indices": (-5, 5)}),
    ),
    precision=follow("x", reads=Reads.PART),
)
def take(args: Arguments, context: TypeContext) -> TensorType:
    """The elements of an axis (which vectors need not name) at integer indices.

    Shape: the indices' shape stands where the axis was. Mode "fast" checks indices (BoundsError W901; negative ones
    count from the end), "clip" limits them, "wrap" takes them modulo the size, "nan" gives nan for those outside, which
    negative ones are, too. Errors: DTypeError W321, ShapeError W202 no axis, W203, W205 another mode.
    """
    x, indices = tensor(args, "x", context), _indices(args, context)
    if args.mode not in _MODES:
        raise shape_error(args, f"unknown mode {args.mode!r}", "W205", f"the modes are {', '.join(_MODES)}")
    if args.mode == "nan":
        require_dtype(args, "x", x, "float")
    if args.axis is None and x.ndim != 1:
        raise shape_error(args, f"x is a {type_text(x)}: say the axis", "W202", "R.flatten(x) makes a vector")
    axis = _take_axis(args, x.ndim) if x.ndim >= 0 else 0
    dims, chosen = dims_of(x), dims_of(indices)
    if dims is not None and args.mode == "fast":
        _refuse_constant(args, args.indices, product(dims) if axis is None else dims[axis])
    if args.axis is None:
        return TensorType(indices.shape, x.dtype, indices.ndim, x.vdevice)
    if dims is None or chosen is None or axis is None:
        known = min(x.ndim, indices.ndim) >= 0
        return TensorType(None, x.dtype, x.ndim - 1 + indices.ndim if known else -1, x.vdevice)
    return TensorType((*dims[:axis], *chosen, *dims[axis + 1 :]), x.dtype, vdevice=x.vdevice)


@kernel_lowering
def _lower_gather_elements(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x, indices = kernel.input("data"), kernel.input("indices")
    axis = axis_of(args, args.axis, x.ndim)
    for d, (size, given) in enumerate(zip(x.shape, indices.shape, strict=True)):
        if d != axis:
            kernel.require_le(given, size, f"size {size} of axis {d} is below {given}")
    kernel.check_indices(indices, x.shape[axis])

    def place(*i: PrimExpr) -> PrimExpr:
        return _element_index(indices(*i), x.shape[axis])

    return kernel.compute(lambda *i: x(*(place(*i) if d == axis else index for d, index in enumerate(i))))


def _numpy_gather_elements(data: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    kept = [slice(None) if d == axis % data.ndim else slice(size) for d, size in enumerate(indices.shape)]
    return np.take_along_axis(data[tuple(kept)], indices, axis)


@register_op(
    "gather_elements",
    [Param("data"), Param("indices", of="int"), Param("axis", "attr", 0, "int")],
    lowering=_lower_gather_elements,
    numpy=_numpy_gather_elements,
    pure=True,
    examples=(
        example(f32(4, 3), i64(2, 3), ranges={"indices": (-4, 3)}),
        example(f32(4, 3, 5), i64(2, 3, 1), axis=1, ranges={"indices": (-3, 2)}),
        example(f32("n", 5), i64("n", "m"), axis=1, ranges={"indices": (-5, 4)}),
        example(f32("n", 5), i64("m", 2), axis=-1, ranges={"indices": (0, 4)}),
    ),
    precision=follow("data", reads=Reads.PART),
)
def gather_elements(args: Arguments, context: TypeContext) -> TensorType:
    """out[i, j] = data[indices[i, j], j] (for axis 0): one index per element; the result has the indices' shape.

    The other sizes of the indices are at most those of the data: proved, refuted (ShapeError W201), or checked at run
    time. An index out of range is a BoundsError. Errors: W202 ranks, W203 the axis; DTypeError W321.
    """
    x, indices = tensor(args, "data", context), _indices(args, context)
    if x.ndim >= 0 and indices.ndim >= 0 and x.ndim != indices.ndim:
        raise shape_error(args, f"data has {x.ndim} dimensions, indices have {indices.ndim}")
    dims, chosen = dims_of(x), dims_of(indices)
    if dims is not None and chosen is not None:
        axis = axis_of(args, args.axis, len(dims))
        for d, (size, given) in enumerate(zip(dims, chosen, strict=True)):
            if d != axis:
                context.require_le(given, size, f"{args.name}: size of axis {d}", args.span)
        _refuse_constant(args, args.indices, dims[axis])
    return TensorType(indices.shape, x.dtype, max(x.ndim, indices.ndim), x.vdevice)


def depth_of(args: Arguments, indices: TensorType) -> int:
    """How many leading axes (after the batch) an index tuple chooses."""
    dims = dims_of(indices)
    if dims is None or not dims or not isinstance(dims[-1], int):
        raise shape_error(args, "the last size of indices must be a known number", "W205")
    return dims[-1]


@kernel_lowering
def _lower_gather_nd(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    batch, depth = args.batch_dims, depth_of(args, _indices(args, context))
    x, indices = kernel.input("data"), kernel.input("indices")
    for size, given in zip(x.shape[:batch], indices.shape[:batch], strict=True):
        kernel.require_equal(size, given, f"batch size {size} is not {given}")
    count = indices.ndim - 1
    for position in range(depth):
        kernel.check_indices(indices, x.shape[batch + position], last=position)

    def element(*i: PrimExpr) -> PrimExpr:
        wrapped = _element_index if batch + depth == x.ndim else wrapped_index
        chosen = [wrapped(indices(*i[:count], p), x.shape[batch + p]) for p in range(depth)]
        return x(*i[:batch], *chosen, *i[count:])

    return kernel.compute(element)


def _numpy_gather_nd(data: np.ndarray, indices: np.ndarray, batch_dims: int) -> np.ndarray:
    grid = np.indices(indices.shape[:-1])
    chosen = tuple(np.moveaxis(indices, -1, 0))
    return data[(*grid[:batch_dims], *chosen)]


@register_op(
    "gather_nd",
    [Param("data"), Param("indices", of="int"), Param("batch_dims", "attr", 0, "int")],
    lowering=_lower_gather_nd,
    numpy=_numpy_gather_nd,
    pure=True,
    examples=(
        example(f32(4, 3), i64("m", 2), ranges={"indices": (-3, 2)}),
        example(f32("n", 4, 3), i64("n", 2, 1), 1, ranges={"indices": (-4, 3)}),
        example(f32(4, "n"), i64(5, 1), ranges={"indices": (0, 3)}),
    ),
    precision=follow("data", reads=Reads.PART),
)
def gather_nd(args: Arguments, context: TypeContext) -> TensorType:
    """Slices of data at index tuples: the last axis of indices holds positions along data's axes after the batch axes.

    An index out of range is a BoundsError. Errors: ShapeError W201 batch sizes that differ, W202 ranks, W205;
    DTypeError W321.
    """
    x, indices = tensor(args, "data", context), _indices(args, context)
    batch = args.batch_dims
    dims, chosen = dims_of(x), dims_of(indices)
    if dims is None or chosen is None:
        last = chosen[-1] if chosen else None
        known = x.ndim >= 0 and isinstance(last, int)
        ndim = len(chosen or ()) - 1 + x.ndim - batch - last if known and isinstance(last, int) else -1
        if known and not 0 <= ndim:
            raise shape_error(args, f"{batch} batch axes and {last} indices do not fit {x.ndim} dimensions")
        return TensorType(None, x.dtype, ndim, x.vdevice)
    depth = depth_of(args, indices)
    if not 0 <= batch < len(chosen) or batch + depth > len(dims):
        raise shape_error(args, f"{batch} batch axes and {depth} indices do not fit {len(dims)} dimensions")
    for size, given in zip(dims[:batch], chosen[:batch], strict=True):
        context.require_equal(given, size, f"{args.name}: batch sizes", args.span)
    return TensorType((*chosen[:-1], *dims[batch + depth :]), x.dtype, vdevice=x.vdevice)


# ---------------------------------------------------------------------------------------------------------------------
# One-hot
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_one_hot(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    indices, on, off = kernel.input("indices"), kernel.input("on_value"), kernel.input("off_value")
    axis = axis_of(args, args.axis, len(kernel.dims))

    def element(*i: PrimExpr) -> PrimExpr:
        rest = (*i[:axis], *i[axis + 1 :])
        chosen = te.equal(te.cast(te.INDEX, indices(*rest)), i[axis])
        return te.select(chosen, scalar_of(on), te.cast(kernel.dtype, scalar_of(off)))

    return kernel.compute(element)


def _numpy_one_hot(indices: np.ndarray, on_value: Any, off_value: Any, depth: int, axis: int) -> np.ndarray:
    chosen = np.expand_dims(indices, axis) == np.arange(depth).reshape(
        [-1 if d == axis % (indices.ndim + 1) else 1 for d in range(indices.ndim + 1)]
    )
    on = np.asarray(on_value)
    return np.where(chosen, on, np.asarray(off_value, on.dtype)).astype(on.dtype)


@register_op(
    "one_hot",
    [
        Param("indices", of="int"),
        Param("on_value", "prim"),
        Param("off_value", "prim"),
        Param("depth", "attr", of="dim"),
        Param("axis", "attr", -1, "int"),
    ],
    lowering=_lower_one_hot,
    numpy=_numpy_one_hot,
    pure=True,
    examples=(
        example(i64(3), 1.0, 0.0, 5, ranges={"indices": (0, 4)}),
        example(i64("n", 2), 1, 0, 4, axis=1, ranges={"indices": (-1, 4)}),
        example(typed("int32", "n"), 2.0, -1.0, symbol("m"), axis=0),
    ),
    precision=never("it reads no values of tensors"),
)
def one_hot(args: Arguments, context: TypeContext) -> TensorType:
    """A new axis of size depth that holds on_value at the index and off_value elsewhere (everywhere, for other
    indices).

    Dtype: that of on_value. Errors: ShapeError W203 the axis; DTypeError W320 two dtypes, W321 indices that are no
    integers.
    """
    indices = _indices(args, context)
    if isinstance(args.depth, int) and args.depth < 1:
        raise shape_error(args, f"depth must be positive, got {args.depth}", "W205")
    on, off = tensor(args, "on_value", context), tensor(args, "off_value", context)
    if None not in (on.dtype, off.dtype) and on.dtype != off.dtype:
        raise dtype_error(args, f"on_value is {on.dtype}, off_value is {off.dtype}")
    dims = dims_of(indices)
    if dims is None:
        return TensorType(None, on.dtype, indices.ndim + 1 if indices.ndim >= 0 else -1, indices.vdevice)
    axis = axis_of(args, args.axis, len(dims) + 1)
    return TensorType((*dims[:axis], args.depth, *dims[axis:]), on.dtype, vdevice=indices.vdevice)
