"""Operators whose result has a size that depends on the data.

Their types know the rank only. Each is written out as three steps: a kernel that computes the shape, a match_cast that
names the sizes, and a kernel that fills a result of that shape (`dynamic.*`); the steps are operators like others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.dtypes import bits, is_float, is_integer
from weft.errors import BoundsError, ShapeError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext, quick_type
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product, symbol
from weft.ir.graph import Expr, PrimValue, StringImm, Tuple, Var
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.op.common import (
    Kernel,
    axis_of,
    broadcast,
    example,
    f32,
    i64,
    kernel_lowering,
    require_dtype,
    require_rank,
    require_scalar,
    scalar_of,
    shape_error,
    shape_of_arg,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Builtin, Param
from weft.ir.op.indexing.block_hits import BLOCK, BlockHits
from weft.ir.op.indexing.row_order import differs, distinct_rows
from weft.ir.op.indexing.sort_keys import has_keys
from weft.ir.op.kernel_builder import INDEX, Loops, counted, index, joined, load, loops, loops_lowering, store
from weft.ir.op.precision import Reads, follow
from weft.ir.op.registry import OPS, register_op
from weft.ir.tensor import Bind, Evaluate, Extent, IfThenElse, PrimCall, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.ir.types import ShapeType, TensorType, TupleType, Type

__all__ = ["decompose_range", "range_length"]


def _hint(expr: Expr) -> str:
    return expr.name if isinstance(expr, Var) else "data"


def _with_sizes(expr: Expr, builder: Any) -> Expr:
    """The tensor with named sizes: where they are not known, a match_cast names them."""
    ty = quick_type(expr)
    if not isinstance(ty, TensorType) or dims_of(ty) is not None or ty.ndim < 0:
        return expr
    sizes = tuple(symbol(builder.get_unique_name(f"{_hint(expr)}_size{axis}")) for axis in range(ty.ndim))
    return builder.match_cast(expr, TensorType(sizes, ty.dtype, vdevice=ty.vdevice))


def _named_shape(counts: Expr, builder: Any, sizes: Sequence[Dim]) -> None:
    """Name the sizes that a vector of counts holds."""
    shape = builder.emit(OPS["tensor_to_shape"].bind([counts]))
    builder.match_cast(shape, ShapeType(tuple(sizes)))


def _require_rank_known(args: Arguments, ty: TensorType) -> None:
    if ty.ndim < 0:
        raise shape_error(args, "the number of dimensions of x is not known", "W202", "use R.match_cast to state it")


def _result(args: Arguments, context: TypeContext, dtype: str | None, ndim: int = -1) -> TensorType:
    dims, given = shape_of_arg(args, "shape", context)
    if given not in (-1, ndim) and ndim >= 0:
        raise shape_error(args, f"shape must have {ndim} sizes, got {given}")
    return TensorType(dims, dtype, given if dims is None else len(dims))


# ---------------------------------------------------------------------------------------------------------------------
# Nonzero
# ---------------------------------------------------------------------------------------------------------------------


def _numpy_nonzero(x: np.ndarray) -> np.ndarray:
    x = np.atleast_1d(x)
    return np.stack(np.nonzero(x)).astype(np.int64)


def _decompose_nonzero(args: Arguments, builder: Any) -> Expr:
    x = _with_sizes(args.x, builder)
    ty = quick_type(x)
    assert isinstance(ty, TensorType)
    counts = builder.emit(OPS["dynamic.nonzero_shape"].bind([x]))
    sizes = (max(ty.ndim, 1), symbol(builder.get_unique_name(f"{_hint(args.x)}_nonzero")))
    _named_shape(counts, builder, sizes)
    return OPS["dynamic.nonzero_at"].bind([x, sizes])


@register_op(
    "nonzero", [Param("x")], decompose=_decompose_nonzero, numpy=_numpy_nonzero, pure=True, builtin=Builtin.WRITTEN_OUT
)
def nonzero(args: Arguments, context: TypeContext) -> Type:
    """The positions of the elements that are not zero, in row-major order: (rank, how many), of int64.

    A scalar counts as a vector of one. Errors: ShapeError W202 when the rank of x is not known.
    """
    _require_rank_known(args, tensor(args, "x", context))
    return TensorType(None, "int64", 2)


def _decompose_masked_select(args: Arguments, builder: Any) -> Expr:
    x, mask = (_with_sizes(operand, builder) for operand in (args.x, args.mask))
    types = [ty for ty in map(quick_type, (x, mask)) if isinstance(ty, TensorType)]
    both = dims_of(broadcast(args, builder.types, *types))
    x, mask = (
        builder.emit(OPS["flatten"].bind([builder.emit(OPS["broadcast_to"].bind([operand, both]))]))
        for operand in (x, mask)
    )
    found = builder.emit(_decompose_nonzero(Arguments(OPS["nonzero"], OPS["nonzero"].bind([mask])), builder))
    return OPS["take"].bind([x, builder.emit(OPS["flatten"].bind([found]))], {"axis": 0})


def _masked(x: Any, mask: Any) -> Any:
    values, chosen = np.broadcast_arrays(x, mask)
    return values[chosen]


@register_op(
    "masked_select",
    [Param("x"), Param("mask", of="bool")],
    decompose=_decompose_masked_select,
    numpy=_masked,
    pure=True,
    builtin=Builtin.WRITTEN_OUT,
)
def masked_select(args: Arguments, context: TypeContext) -> Type:
    """The elements of x where the mask is true, as a vector, in row-major order; both are broadcast.

    Errors: ShapeError W201, W202 when a rank is not known; DTypeError W321 when the mask is not bool.
    """
    x, mask = tensor(args, "x", context), tensor(args, "mask", context)
    require_dtype(args, "mask", mask, "bool")
    broadcast(args, context, x, mask)
    for operand in (x, mask):
        _require_rank_known(args, operand)
    return TensorType(None, x.dtype, 1)


def _is_nonzero(value: PrimExpr) -> PrimExpr:
    return value if value.dtype == "bool" else binary("ne", value, as_expr(0, value.dtype))


@loops_lowering
def _lower_nonzero_shape(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    x = frame.input("x")
    out = frame.output()
    rank = max(len(dims_of(tensor(args, "x", context)) or ()), 1)
    start = (store(out, index(rank), [0]), store(out, index(0), [1]))
    shape = () if not hasattr(x, "shape") else x.shape

    def more(i: Sequence[PrimExpr]) -> Stmt:
        return store(out, load(out, [1]) + cast("int64", _is_nonzero(load(x, i))), [1])

    return frame.finish(*start, loops(shape, more))


def _numpy_nonzero_shape(x: Any) -> Any:
    return np.asarray(_numpy_nonzero(x).shape, np.int64)


@register_op(
    "dynamic.nonzero_shape",
    [Param("x")],
    lowering=_lower_nonzero_shape,
    numpy=_numpy_nonzero_shape,
    pure=True,
    examples=(example(typed("int64", 2, 5), ranges={"x": (0, 1)}), example(f32("n")), example(typed("bool", 3))),
)
def nonzero_shape(args: Arguments, context: TypeContext) -> Type:
    """The shape that nonzero gives: (rank, how many)."""
    _require_rank_known(args, tensor(args, "x", context))
    return TensorType((2,), "int64")


@loops_lowering
def _lower_nonzero_at(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    x = frame.input("x")
    out = frame.output()
    found = frame.local("found")
    room = index(out.shape[1])
    for size in (dims_of(frame.result) or ())[:1]:
        frame.require_equal(size, max(tensor(args, "x", context).ndim, 1))

    at = load(found, [0])

    def keep(i: Sequence[PrimExpr]) -> Stmt:
        """Every position is stored, and stays where the element is not zero: nobody can guess which ones are."""
        place = list(i) or [index(0)]
        steps = joined(*(store(out, value, [axis, at]) for axis, value in enumerate(place)))
        more = store(found, at + cast("int64", _is_nonzero(load(x, i))))
        return joined(IfThenElse(binary("lt", at, room), steps), more)

    shape = () if not hasattr(x, "shape") else x.shape
    look = loops(shape, keep)
    if len(shape) == 1 and (x.dtype == "bool" or has_keys(x.dtype)):
        memory = (load(out, [0, 0]), at, load(x, [0]))
        addresses = [PrimCall("address_of", (each,), "handle") for each in memory]
        query = PrimCall("has_intrinsic", (StringImm("keep_positions"), StringImm(x.dtype)), "bool")
        kept = Evaluate(PrimCall("keep_positions", (*addresses, index(shape[0]), room), "void"))
        look = IfThenElse(query, kept, look)
    end = joined(
        frame.check(binary("le", at, room), "more elements are not zero than the shape has room for"),
        frame.check(binary("eq", at, room), "fewer elements are not zero than the shape says"),
    )
    return frame.finish(store(found, index(0)), look, end)


@register_op(
    "dynamic.nonzero_at",
    [Param("x"), Param("shape", "shape")],
    lowering=_lower_nonzero_at,
    numpy=lambda x, shape: _numpy_nonzero(x),
    pure=True,
    examples=(
        example(f32("n", 4), (2, symbol("n") * 4), ranges={"x": (1, 2)}),
        example(typed("int32", 3), (1, 3), ranges={"x": (1, 2)}),
    ),
)
def nonzero_at(args: Arguments, context: TypeContext) -> Type:
    """What nonzero gives, in a result of a shape that is known; BoundsError for another number of elements."""
    x = tensor(args, "x", context)
    _require_rank_known(args, x)
    result = _result(args, context, "int64", 2)
    for size in (dims_of(result) or ())[:1]:
        context.require_equal(size, max(x.ndim, 1), f"{args.name}: the first size and the rank of x", args.span)
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Slices
# ---------------------------------------------------------------------------------------------------------------------

_BOUNDS = ("begin", "end", "strides")


def _slice_rule(args: Arguments, context: TypeContext, names: Sequence[str]) -> TensorType:
    """The type of x, of which the boundaries tell the rank where nothing else does."""
    x = tensor(args, "x", context)
    for name in names:
        ty = tensor(args, name, context)
        require_dtype(args, name, ty, "integer")
        require_rank(args, name, ty, 1)
        for size in dims_of(ty) or ():
            if x.ndim < 0 and isinstance(size, int):
                x = TensorType(None, x.dtype, size, x.vdevice)
            elif x.ndim >= 0:
                context.require_equal(size, x.ndim, f"{args.name}: the size of {name} and the rank of x", args.span)
    return x


def _numpy_dynamic_slice(x: np.ndarray, begin: Any, end: Any, strides: Any) -> np.ndarray:
    if not np.all(strides):
        raise BoundsError("R.dynamic_strided_slice: a stride is 0")
    if len(begin) != x.ndim:
        message = f"R.dynamic_strided_slice: {len(begin)} boundaries for {x.ndim} dimensions"
        raise ShapeError(message, code="W222")
    parts = zip(begin, end, strides, strict=True)
    return x[tuple(slice(*map(int, part)) for part in parts)].copy()


def _decompose_slice(args: Arguments, builder: Any) -> Expr:
    x = _with_sizes(args.x, builder)
    ty = quick_type(x)
    assert isinstance(ty, TensorType)
    counts = builder.emit(OPS["dynamic.slice_shape"].bind([x, args.begin, args.end, args.strides]))
    sizes = tuple(symbol(builder.get_unique_name(f"{_hint(args.x)}_slice{axis}")) for axis in range(ty.ndim))
    _named_shape(counts, builder, sizes)
    return OPS["dynamic.slice_at"].bind([x, args.begin, args.strides, sizes])


@register_op(
    "dynamic_strided_slice",
    [Param("x"), Param("begin", of="int"), Param("end", of="int"), Param("strides", of="int")],
    decompose=_decompose_slice,
    numpy=_numpy_dynamic_slice,
    pure=True,
    builtin=Builtin.WRITTEN_OUT,
    precision=follow("x", reads=Reads.PART),
)
def dynamic_strided_slice(args: Arguments, context: TypeContext) -> Type:
    """x[begin:end:strides] along all axes, by vectors that are computed; boundaries are those of Python slices.

    The result is known by its rank only, if that is known. Errors: ShapeError W201, W202; DTypeError W321; BoundsError
    for a stride of 0.
    """
    x = _slice_rule(args, context, _BOUNDS)
    return TensorType(None, x.dtype, x.ndim, x.vdevice)


def _boundary(value: PrimExpr, size: PrimExpr, step: PrimExpr) -> PrimExpr:
    """A boundary as Python reads it: counted from the end where negative, clamped by the direction."""
    value = te.cast(te.INDEX, value)
    value = te.select(value < 0, value + size, value)
    backward = step < 0
    low = te.select(backward, index(-1), index(0))
    high = te.select(backward, size - 1, size)
    return te.minimum(te.maximum(value, low), high)


@kernel_lowering
def _lower_slice_shape(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    x = kernel.input("x")
    begin, end, strides = (kernel.input(each, (x.ndim,)) for each in _BOUNDS)

    def moves(d: PrimExpr) -> PrimExpr:
        return te.not_equal(strides(d), 0)

    moving = te.check((x.ndim,), moves, f"{args.name}: a stride is 0", "BoundsError")
    kernel.checks.append(moving)

    def length(d: PrimExpr) -> PrimExpr:
        size = te.size(x.shape[-1] if x.ndim else 0)
        for axis in range(x.ndim - 1):
            size = te.select(te.equal(d, axis), te.size(x.shape[axis]), size)
        step = te.cast(te.INDEX, strides(d))
        first, last = (_boundary(each(d), size, step) for each in (begin, end))
        away = te.select(step < 0, first - last, last - first)
        pace = te.maximum(te.abs(step), 1)
        return te.maximum((away + pace - 1) // pace, 0)

    return kernel.compute(length)


_SLICES = {"begin": (-7, 7), "end": (-7, 7), "strides": (1, 3)}


@register_op(
    "dynamic.slice_shape",
    [Param("x"), Param("begin", of="int"), Param("end", of="int"), Param("strides", of="int")],
    lowering=_lower_slice_shape,
    numpy=lambda x, begin, end, strides: np.asarray(_numpy_dynamic_slice(x, begin, end, strides).shape, np.int64),
    pure=True,
    examples=(
        example(f32(4, 5), i64(2), i64(2), i64(2), ranges=_SLICES),
        example(f32("n", 3), i64(2), i64(2), i64(2), ranges={**_SLICES, "strides": (-3, -1)}),
    ),
)
def slice_shape(args: Arguments, context: TypeContext) -> Type:
    """The shape that dynamic_strided_slice gives."""
    x = _slice_rule(args, context, _BOUNDS)
    _require_rank_known(args, x)
    return TensorType((x.ndim,), "int64")


@kernel_lowering
def _lower_slice_at(kernel: Kernel) -> PrimFunc | None:
    x = kernel.input("x")
    begin, strides = (kernel.input(each, (x.ndim,)) for each in ("begin", "strides"))

    def place(axis: int, i: PrimExpr) -> PrimExpr:
        step = te.cast(te.INDEX, strides(axis))
        return _boundary(begin(axis), te.size(x.shape[axis]), step) + i * step

    for axis, count in enumerate(kernel.dims):
        size, number = te.size(x.shape[axis]), te.size(count)
        first, last = place(axis, te.size(0)), place(axis, number - 1)
        inside = te.all(first >= 0, first < size, last >= 0, last < size)
        kernel.require_inside(te.any(number <= 0, inside), f"the slice of axis {axis} is out of range")
    return kernel.compute(lambda *i: x(*(place(axis, at) for axis, at in enumerate(i))))


@register_op(
    "dynamic.slice_at",
    [Param("x"), Param("begin", of="int"), Param("strides", of="int"), Param("shape", "shape")],
    lowering=_lower_slice_at,
    numpy=lambda x, begin, strides, shape: x[
        np.ix_(
            *(
                np.arange(n) * int(s) + slice(int(b), None, int(s)).indices(size)[0]
                for n, b, s, size in zip(shape, begin, strides, x.shape, strict=True)
            )
        )
    ],
    pure=True,
    examples=(
        example(f32(6, 5), i64(2), i64(2), (2, 2), ranges={"begin": (0, 1), "strides": (1, 2)}),
        example(f32("n", 5), i64(2), i64(2), (symbol("n"), 2), ranges={"begin": (-9, -9), "strides": (1, 1)}),
    ),
)
def slice_at(args: Arguments, context: TypeContext) -> Type:
    """The elements of a strided slice that has a shape that is known; BoundsError where it leaves x."""
    x = _slice_rule(args, context, ("begin", "strides"))
    return _result(args, context, x.dtype, x.ndim)


# ---------------------------------------------------------------------------------------------------------------------
# Ranges
# ---------------------------------------------------------------------------------------------------------------------

_MOST_STEPS = 1 << 61
"""Differences of integers below it stay exact, and more elements than it has no memory."""


def decompose_range(args: Arguments, builder: Any) -> Expr:
    """A range whose length only a run can tell: counted first, then one of a named size that is scaled and moved."""
    start, end, step = (PrimValue(0), args.start, PrimValue(1)) if args.end is None else (args[name] for name in _RANGE)
    ty = quick_type(args.call)
    assert isinstance(ty, TensorType)
    assert ty.dtype is not None
    work = INDEX if is_integer(ty.dtype) else ty.dtype
    size = symbol(builder.get_unique_name("range_size"))
    _named_shape(builder.emit(OPS["dynamic.range_shape"].bind([start, end, step])), builder, (size,))
    steps = builder.emit(OPS["arange"].bind([PrimValue(0), PrimValue(size)], {"dtype": work}))
    for name, value in (("multiply", step), ("add", start)):
        steps = builder.emit(OPS[name].bind([steps, builder.emit(OPS["full"].bind([(), value, work]))]))
    return steps if work == ty.dtype else OPS["astype"].bind([steps, ty.dtype])


_RANGE = ("start", "end", "step")


def range_length(start: float, end: float, step: float) -> int:
    """How many elements a range of numbers has.

    BoundsError for a step of 0, fractions that are not finite, and more elements than any memory holds.
    """
    if step == 0:
        raise BoundsError("R.arange: the step is 0")
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        count = -((start - end) // step)
    elif all(-_MOST_STEPS < value < _MOST_STEPS for value in (start, end, step)):
        count = math.ceil((end - start) / step)
    else:
        raise BoundsError("R.arange: a boundary or the step is too large")
    if count >= _MOST_STEPS:
        raise BoundsError("R.arange: the range is too large")
    return max(count, 0)


def _numpy_range_shape(start: Any, end: Any, step: Any) -> np.ndarray:
    start, end, step = (np.asarray(value).item() for value in (start, end, step))
    if not all(-_MOST_STEPS < value < _MOST_STEPS for value in (start, end)) or step == -(1 << 63):
        raise BoundsError("R.arange: a boundary or the step is too large")
    return np.asarray([range_length(start, end, step)])


@kernel_lowering
def _lower_range_shape(kernel: Kernel) -> PrimFunc | None:
    given = [scalar_of(kernel.input(name)) for name in _RANGE]

    def require(condition: PrimExpr, message: str) -> None:
        kernel.checks.append(te.Check(condition, f"R.arange: {message}", "BoundsError"))

    work = "float64" if any(is_float(value.dtype) for value in given) else INDEX
    start, end, step = (te.cast(work, value) for value in given)
    most = te.const(_MOST_STEPS, work)
    require(te.not_equal(step, te.const(0, work)), "the step is 0")
    near = [te.all(value < most, -most < value) for value in (start, end)]
    large = te.const(-(1 << 63), INDEX) if work == INDEX else -most  # whose absolute value 64 bits do not hold
    near.append(te.all(large < step) if work == INDEX else te.all(step < most, large < step))
    require(te.all(*near), "a boundary or the step is too large")
    ahead = step > te.const(0, work)
    away, pace = te.select(ahead, end - start, start - end), te.abs(step)
    if work == INDEX:
        pace = te.maximum(pace, 1)
        count = away // pace + te.cast(INDEX, away % pace > te.const(0, work))  # rounded up, within 64 bits
    else:
        steps = te.ceil(away / pace)
        require(steps < most, "the range is too long")
        count = te.cast(INDEX, steps)

    def length(_: PrimExpr) -> PrimExpr:
        return te.maximum(count, 0)

    return kernel.compute(length)


@register_op(
    "dynamic.range_shape",
    [Param(name, "prim", of="dim") for name in _RANGE],
    lowering=_lower_range_shape,
    numpy=_numpy_range_shape,
    pure=True,
    examples=(
        example(i64(), symbol("n"), 2),
        example(9, i64(), -3),
        example(f32(), 4.0, 0.5, ranges={"start": (-2, 2)}),
    ),
)
def range_shape(args: Arguments, context: TypeContext) -> Type:
    """How many elements arange gives, as a shape.

    Errors: DTypeError W321 complex numbers; when it runs BoundsError a step of 0, boundaries of 2**61 and more.
    """
    for name in _RANGE:
        require_scalar(args, name, context, "float64")
    return TensorType((1,), "int64")


# ---------------------------------------------------------------------------------------------------------------------
# Unique
# ---------------------------------------------------------------------------------------------------------------------

_EXTRAS = ("return_index", "return_inverse", "return_counts")


def _numpy_unique(
    x: np.ndarray, sorted: bool, return_index: bool, return_inverse: bool, return_counts: bool, axis: int | None
) -> Any:
    if axis is None or x.ndim == 1:
        values, *rest = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    else:
        values, *rest = distinct_rows(x, axis)
    extras = zip(rest, (return_index, return_inverse, return_counts), strict=True)
    found = (values, *(np.ravel(extra).astype(np.int64) for extra, wanted in extras if wanted))
    return found if len(found) > 1 else values


def _decompose_unique(args: Arguments, builder: Any) -> Expr:
    x = _with_sizes(args.x, builder)
    ty = quick_type(x)
    if isinstance(ty, TensorType):
        _require_rank_known(args, ty)
        if ty.dtype == "bool":  # which are sorted as numbers
            x = builder.emit(OPS["astype"].bind([x], {"dtype": "uint8"}))
        if args.axis is not None and ty.ndim > 1:
            return _unique_slices(args, builder, x, ty)
    flat = builder.emit(OPS["flatten"].bind([x]))
    if not any(args[name] for name in _EXTRAS):
        ordered = builder.emit(OPS["sort"].bind([flat]))
        size = symbol(builder.get_unique_name(f"{_hint(args.x)}_unique"))
        _named_shape(builder.emit(OPS["dynamic.unique_shape"].bind([ordered])), builder, (size,))
        return _as_given(ty, builder, OPS["dynamic.unique_values"].bind([ordered, (size,)]))
    order = builder.emit(OPS["argsort"].bind([flat], {"dtype": "int64"}))
    ordered = builder.emit(OPS["take"].bind([flat, order], {"axis": 0}))
    runs = _unique_runs(args, builder, ordered, order)
    return _unique_parts(args, builder, runs, builder.emit(_as_given(ty, builder, runs[0])))


def _as_given(ty: Type | None, builder: Any, values: Expr) -> Expr:
    """Values in the dtype of what was given: bools stood for as numbers."""
    is_bool = isinstance(ty, TensorType) and ty.dtype == "bool"
    return OPS["astype"].bind([builder.emit(values)], {"dtype": "bool"}) if is_bool else values


def _unique_runs(args: Arguments, builder: Any, ordered: Expr, order: Expr) -> Expr:
    """What unique_runs gives for a sorted vector, whose number of values gets a name."""
    size = symbol(builder.get_unique_name(f"{_hint(args.x)}_unique"))
    _named_shape(builder.emit(OPS["dynamic.unique_shape"].bind([ordered])), builder, (size,))
    return builder.emit(OPS["dynamic.unique_runs"].bind([ordered, order, (size,)]))


def _unique_parts(args: Arguments, builder: Any, runs: Any, values: Expr) -> Expr:
    """The values, and of what comes with them what is asked for."""
    extras = [builder.emit(runs[1 + at]) for at, name in enumerate(_EXTRAS) if args[name]]
    return Tuple((values, *extras)) if extras else values


def _unique_slices(args: Arguments, builder: Any, x: Expr, ty: TensorType) -> Expr:
    """The distinct slices along an axis, as rows of a matrix."""
    dims, axis = dims_of(ty) or dims_of(quick_type(x)), axis_of(args, args.axis, ty.ndim)
    assert dims is not None  # they have been given names
    others = [other for other in range(ty.ndim) if other != axis]
    moved = builder.emit(OPS["permute_dims"].bind([x, [axis, *others]]))
    rows = builder.emit(OPS["reshape"].bind([moved, (dims[axis], product(dims[other] for other in others))]))
    both = builder.emit(OPS["dynamic.row_order"].bind([rows]))
    runs = _unique_runs(args, builder, builder.emit(both[1]), builder.emit(both[0]))
    values = OPS["take"].bind([x, builder.emit(runs[1])], {"axis": axis})
    return _unique_parts(args, builder, runs, builder.emit(_as_given(ty, builder, values)))


@register_op(
    "unique",
    [
        Param("x"),
        Param("sorted", "attr", True, "bool"),
        *(Param(name, "attr", False, "bool") for name in _EXTRAS),
        Param("axis", "attr", None, "int?"),
    ],
    decompose=_decompose_unique,
    numpy=_numpy_unique,
    pure=True,
    builtin=Builtin.WRITTEN_OUT,
)
def unique(args: Arguments, context: TypeContext) -> Type:
    """The distinct elements in ascending order (slices along an axis), and as asked for: the position of the first of
    each, for each element the position of its value among the distinct ones, and how often each occurs (int64 vectors).

    The results are known by rank only; they are sorted whatever `sorted` says, and all nan are one. Errors: ShapeError
    W202, W203; DTypeError W321.
    """
    x = tensor(args, "x", context)
    require_dtype(args, "x", x, "ordered")
    if args.axis is not None and x.ndim >= 0:
        axis_of(args, args.axis, x.ndim)
    values = TensorType(None, x.dtype, 1 if args.axis is None else x.ndim, x.vdevice)
    extras = tuple(TensorType(None, "int64", 1) for name in _EXTRAS if args[name])
    return TupleType((values, *extras)) if extras else values


def _starts_run(buffer: Any, i: PrimExpr) -> PrimExpr:
    """Whether a sorted element is the first of its value."""
    before = load(buffer, [te.maximum(i - 1, 0)])
    return binary("or", binary("eq", i, index(0)), differs(load(buffer, [i]), before))


def _differs_from_next(buffer: Any, i: PrimExpr) -> PrimExpr:
    """Whether the element after one has another value."""
    return differs(load(buffer, [i + 1]), load(buffer, [i]))


def _unless_alike(frame: Loops, buffer: Any, start: PrimExpr, body: Stmt) -> Stmt:
    """What is done for the elements of a block, each beside the next: nothing where floats have the same bits.

    Elements of other dtypes are compared in as little time.
    """
    if not has_keys(buffer.dtype) or not is_float(buffer.dtype):
        return body
    hits = BlockHits()
    frame.own(hits.buffer)

    def raw(i: PrimExpr) -> PrimExpr:
        return PrimCall("reinterpret", (load(buffer, [i]),), f"uint{bits(buffer.dtype)}")

    look = hits.look(lambda j: binary("ne", raw(start + j + 1), raw(start + j)))
    return joined(look, IfThenElse(hits.is_hit, body))


def _numpy_unique_shape(ordered: Any) -> Any:
    return np.asarray([sum(1 for i in range(ordered.size) if i == 0 or ordered[i] != ordered[i - 1])])


@loops_lowering
def _lower_unique_shape(frame: Loops) -> PrimFunc | None:
    x = frame.input("ordered")
    out = frame.output()

    def more(i: PrimExpr) -> Stmt:
        return store(out, load(out, [0]) + cast("int64", _differs_from_next(x, i)))

    def block(number: PrimExpr) -> Stmt:
        start = number * BLOCK
        return _unless_alike(frame, x, start, counted("j", BLOCK, lambda j: more(start + j)))

    count = te.maximum(index(x.shape[0]) - 1, 0)
    blocks, rest = binary("floordiv", count, index(BLOCK)), binary("floormod", count, index(BLOCK))
    walk = (counted("number", blocks, block), counted("i", rest, lambda i: more(blocks * BLOCK + i)))
    return frame.finish(store(out, te.minimum(index(x.shape[0]), 1)), *walk)


@register_op(
    "dynamic.unique_shape",
    [Param("ordered")],
    lowering=_lower_unique_shape,
    numpy=_numpy_unique_shape,
    pure=True,
    examples=(example(i64("n")), example(f32(5))),
)
def unique_shape(args: Arguments, context: TypeContext) -> Type:
    """How many different values a sorted vector has, as a shape."""
    require_rank(args, "ordered", tensor(args, "ordered", context), 1)
    return TensorType((1,), "int64")


@loops_lowering
def _lower_unique_values(frame: Loops) -> PrimFunc | None:
    """Blocks of elements that are all new are copied, those without a new one passed by: vectors do both."""
    x, values, found, changes = frame.input("ordered"), frame.output(), frame.local("found"), frame.local("changes")
    room, at = index(values.shape[0]), load(found, [0])
    have_room = "more values than the shape has room for"

    def keep(i: PrimExpr) -> Stmt:
        check = frame.check(binary("lt", at, room), have_room)
        return joined(check, store(values, load(x, [i]), [at]), store(found, at + index(1)))

    def keep_new(start: PrimExpr, count: Extent) -> Stmt:
        return counted("j", count, lambda j: IfThenElse(_differs_from_next(x, start + j), keep(start + j + 1)))

    def block(number: PrimExpr) -> Stmt:
        start, base = number * BLOCK, PrimVar("base", INDEX)

        def more(j: PrimExpr) -> Stmt:
            return store(changes, load(changes, [0]) + cast(INDEX, _differs_from_next(x, start + j)))

        copied = counted("k", BLOCK, lambda k: store(values, load(x, [start + k + 1]), [base + k]))
        check = frame.check(binary("le", base + BLOCK, room), have_room)
        whole = joined(Bind(base, at), check, copied, store(found, base + BLOCK))
        some = IfThenElse(binary("lt", index(0), load(changes, [0])), keep_new(start, BLOCK))
        are_new = binary("eq", load(changes, [0]), index(BLOCK))
        look = joined(store(changes, index(0)), counted("i", BLOCK, more), IfThenElse(are_new, whole, some))
        return _unless_alike(frame, x, start, look)

    count = te.maximum(index(x.shape[0]) - 1, 0)
    blocks, rest = binary("floordiv", count, index(BLOCK)), binary("floormod", count, index(BLOCK))
    first = IfThenElse(binary("gt", index(x.shape[0]), index(0)), keep(index(0)))
    end = frame.check(binary("eq", at, room), "fewer values than the shape says")
    walk = (counted("number", blocks, block), keep_new(blocks * BLOCK, rest))
    return frame.finish(store(found, index(0)), first, *walk, end)


def _numpy_unique_values(ordered: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    values = np.unique(ordered)
    if values.shape != tuple(shape):
        raise ShapeError(f"R.dynamic.unique_values: {values.size} values for a shape of {shape}", code="W224")
    return values


@register_op(
    "dynamic.unique_values",
    [Param("ordered"), Param("shape", "shape")],
    lowering=_lower_unique_values,
    numpy=_numpy_unique_values,
    pure=True,
    examples=(
        example(f32(1), (1,)),
        example(typed("int32", 3), (1,), ranges={"ordered": (3, 3)}),
        example(i64("n"), ((symbol("n") + 9) // 10,), ranges={"ordered": (3, 3)}),
    ),
)
def unique_values(args: Arguments, context: TypeContext) -> Type:
    """The values of a sorted vector; BoundsError where there are not as many as the shape says."""
    ordered = tensor(args, "ordered", context)
    require_rank(args, "ordered", ordered, 1)
    return _result(args, context, ordered.dtype, 1)


@loops_lowering
def _lower_unique_runs(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    x, order = frame.input("ordered"), frame.input("order")
    for own, other in zip(*(dims_of(tensor(args, each, context)) or () for each in ("ordered", "order")), strict=True):
        frame.require_equal(own, other)
    values, first, inverse, counts = frame.outputs("values", "index", "inverse", "counts")
    found = frame.local("found")
    room, size = index(values.shape[0]), index(x.shape[0])

    def element(i: Sequence[PrimExpr]) -> Stmt:
        at = load(found, [0])
        last = at - index(1)
        start = joined(
            frame.check(binary("lt", at, room), "more values than the shape has room for"),
            store(values, load(x, i), [at]),
            store(first, load(order, i), [at]),
            store(counts, index(0), [at]),
            store(found, at + index(1)),
        )
        return joined(
            frame.check_index(load(order, i), size),
            IfThenElse(_starts_run(x, i[0]), start),
            store(counts, load(counts, [last]) + index(1), [last]),
            store(inverse, last, [load(order, i)]),
        )

    # Where the order is no permutation, places that nothing is written to are 0.
    clear = loops(inverse.shape, lambda i: store(inverse, index(0), i))
    end = frame.check(binary("eq", load(found, [0]), room), "fewer values than the shape says")
    return frame.finish(store(found, index(0)), clear, loops(x.shape, element), end)


def _numpy_unique_runs(ordered: np.ndarray, order: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    values, first, places, counts = np.unique(ordered, return_index=True, return_inverse=True, return_counts=True)
    if values.shape != tuple(shape):
        raise ShapeError(f"R.dynamic.unique_runs: {values.size} values for a shape of {shape}", code="W224")
    inverse = np.zeros(ordered.shape, np.int64)
    inverse[order] = np.ravel(places)
    return values, order[first], inverse, counts.astype(np.int64)


@register_op(
    "dynamic.unique_runs",
    [Param("ordered"), Param("order", of="int"), Param("shape", "shape")],
    lowering=_lower_unique_runs,
    numpy=_numpy_unique_runs,
    pure=True,
    examples=(
        example(f32(1), i64(1), (1,), ranges={"order": (0, 0)}),
        example(typed("int32", 3), np.asarray([2, 0, 1]), (1,), ranges={"ordered": (3, 3)}),
        example(i64("n"), i64("n"), ((symbol("n") + 9) // 10,), ranges={"ordered": (3, 3), "order": (0, 0)}),
    ),
)
def unique_runs(args: Arguments, context: TypeContext) -> Type:
    """The values of a sorted vector, the first position of each, the place of each element among them, and counts.

    `order` tells where each sorted element stood; BoundsError where there are not as many values as the shape says.
    """
    ordered, order = tensor(args, "ordered", context), tensor(args, "order", context)
    for name, ty in (("ordered", ordered), ("order", order)):
        require_rank(args, name, ty, 1)
    require_dtype(args, "order", order, "integer")
    own, other = dims_of(ordered), dims_of(order)
    if own is not None and other is not None:
        context.require_equal(own[0], other[0], f"{args.name}: sizes of ordered and order", args.span)
    values = _result(args, context, ordered.dtype, 1)
    places = TensorType(values.shape, "int64", 1)
    return TupleType((values, places, TensorType(ordered.shape, "int64", 1), places))
