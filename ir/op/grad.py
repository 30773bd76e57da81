"""Operators that gradients are written in, and marks for the differentiation.

A gradient accumulates in float32 where its dtype is narrower. Errors: those of the forward operators; ShapeError W201,
W202 for an output gradient that has not the shape of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product as combinations
from typing import Any

import numpy as np

from weft.errors import BoundsError, ScriptError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product
from weft.ir.graph import Var
from weft.ir.kernel.prim import binary, cast, intrinsic, unary
from weft.ir.op.common import (
    Dims,
    Kernel,
    axis_of,
    example,
    f32,
    i64,
    kernel_lowering,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, OpDef, Param
from weft.ir.op.kernel_builder import (
    INDEX,
    LoopKernel,
    Loops,
    index,
    joined,
    load,
    loops,
    loops_lowering,
    store,
    wrapped,
    zero,
)
from weft.ir.op.manipulate import split_index
from weft.ir.op.nn.layouts import Layout, finished, layout_of, packed, unpacked
from weft.ir.op.nn.window import Window, begins_and_ends, by_letter, spread, window_of
from weft.ir.op.reductions.reduction import accumulator, reduce_stage
from weft.ir.op.registry import add_op, register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import Buffer, IfThenElse, PrimExpr, PrimFunc, Stmt
from weft.ir.types import TensorType

__all__: list[str] = []


def _identity(name: str, doc: str, of_variable: bool = False) -> OpDef:
    def rule(args: Arguments, context: TypeContext) -> TensorType:
        if of_variable and not isinstance(args.input, Var):
            hint = "constants are known: no part of a model computes them again"
            raise ScriptError(f"{name} marks a variable, not a constant", code="W134", span=args.span, hint=hint)
        return tensor(args, "input", context)

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        x = kernel.input("input")
        return kernel.compute(lambda *i: x(*i))

    shown = (example(f32(2, 3)), example(typed("int32", "n")))
    params = (Param("input"),)
    numpy = np.copy
    return add_op(OpDef(name, params, rule, doc, lowering, numpy=numpy, pure=True, examples=shown, family="grad"))


_identity("grad.no_grad", "The value itself; no gradient flows through it.")
_identity(
    "grad.start_checkpoint",
    "The value itself, where a part of the model starts whose values are computed again for the gradient.",
    of_variable=True,
)
_identity(
    "grad.end_checkpoint",
    "The value itself, where a part of the model ends whose values are computed again for the gradient.",
    of_variable=True,
)


# ---------------------------------------------------------------------------------------------------------------------
# Pools
# ---------------------------------------------------------------------------------------------------------------------

_SPATIAL = "HW"
_POOL = [
    Param("output_grad"),
    Param("data"),
    Param("pool_size", "attr", (1, 1), "ints"),
    Param("strides", "attr", (1, 1), "ints"),
    Param("padding", "attr", (0, 0, 0, 0), "ints"),
    Param("dilation", "attr", (1, 1), "ints"),
    Param("ceil_mode", "attr", False, "bool"),
    Param("count_include_pad", "attr", False, "bool"),
    Param("layout", "attr", "NCHW", "str"),
    Param("out_layout", "attr", None, "str?"),
]


def _pool_window(args: Arguments) -> Window:
    sizes = args.pool_size * 2 if len(args.pool_size) == 1 else args.pool_size
    if len(sizes) != 2 or min(sizes) < 1:
        raise shape_error(args, f"pool_size must be 1 or 2 positive values, got {args.pool_size}", "W205")
    return window_of(args, _SPATIAL, sizes, args.ceil_mode)


def _layouts(args: Arguments) -> tuple[Layout, Layout]:
    """The layouts of data and of the gradient of the result."""
    out = args.out_layout or args.layout
    return layout_of(args, "layout", args.layout, "NCHW"), layout_of(args, "out_layout", out, "NCHW")


def _pool_rule(args: Arguments, context: TypeContext) -> TensorType:
    data, grad = tensor(args, "data", context), tensor(args, "output_grad", context)
    layout, out_layout = _layouts(args)
    for name, operand, own in (("data", data, layout), ("output_grad", grad, out_layout)):
        require_rank(args, name, operand, own.ndim)
        require_dtype(args, name, operand, "float")
    same_dtype(args, data, grad)
    window = _pool_window(args)
    dims, given = dims_of(data), dims_of(grad)
    if dims is not None:
        sizes = layout.check(args, "data", dims, context)
        sizes |= by_letter(_SPATIAL, window.outputs(args, [sizes[letter] for letter in _SPATIAL]))
        for wanted, own in zip(out_layout.result(args, sizes, context), given or (), strict=given is not None):
            context.require_equal(wanted, own, f"{args.name}: sizes of the output and of its gradient", args.span)
    return data


class _PoolGradient(LoopKernel):
    """The kernel: every window gives its output's gradient to the elements that made it."""

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        frame, args = self.frame, self.args
        self.window = _pool_window(args)
        self.layout, self.out_layout = _layouts(args)
        self.grad, self.data = frame.input("output_grad"), frame.input("data")
        out = frame.output()
        dims = dims_of(frame.context.type_of(args.data)) or ()
        given = dims_of(frame.context.type_of(args.output_grad)) or ()
        sizes = self.layout.sizes(dims)
        self.sizes = {letter: frame.size(size) for letter, size in sizes.items()}
        outputs = {**sizes, **by_letter(_SPATIAL, self.window.outputs(args, [sizes[letter] for letter in _SPATIAL]))}
        for wanted, own in zip(self.out_layout.dims(outputs), given, strict=True):
            frame.require_equal(wanted, own)
        for axis, letter in enumerate(_SPATIAL):
            room = self.window.padded(axis, sizes[letter]) - self.window.reach(axis)
            if not isinstance(room, int):
                frame.require(binary("ge", frame.size(room), index(0)), f"the window does not fit along {letter}")
        self.wide = accumulator(out.dtype)
        self.total = out if self.wide == out.dtype else frame.local("total", self.wide, dims)
        clear = loops(out.shape, lambda i: store(self.total, zero(self.wide), i))
        steps = [clear, loops(self.grad.shape, lambda i: self.give(self.out_layout.places(i)))]
        if self.total is not out:
            steps.append(loops(out.shape, lambda i: store(out, load(self.total, i), i)))
        return finished(frame.finish(*steps), self.layout, self.out_layout)

    def give(self, at: dict[str, PrimExpr]) -> Stmt:
        """Give the gradient of one output to its window."""
        raise NotImplementedError

    def _over_window(
        self, at: dict[str, PrimExpr], body: Callable[[Sequence[PrimExpr]], Stmt], padded: bool = False
    ) -> Stmt:
        """The body for every element of the window of an output; `padded` counts those in the padding too."""

        def element(offsets: Sequence[PrimExpr]) -> Stmt:
            place = dict(at)
            inside: list[PrimExpr] = []
            for axis, letter in enumerate(_SPATIAL):
                begin, end = (self.window.begins[axis], self.window.ends[axis]) if padded else (0, 0)
                first = at[letter] * self.window.strides[axis] - self.window.begins[axis]
                place[letter] = first + offsets[axis] * self.window.dilation[axis]
                inside.append(binary("ge", place[letter], index(-begin)))
                inside.append(binary("lt", place[letter], self.sizes[letter] + end))
            condition = inside[0]
            for part in inside[1:]:
                condition = binary("and", condition, part)
            return IfThenElse(condition, body(self.layout.indices(place)))

        return loops([int(size) for size in self.window.sizes], element)  # type: ignore[arg-type]

    def _give(self, place: Sequence[PrimExpr], value: PrimExpr) -> Stmt:
        return store(self.total, load(self.total, place) + cast(self.wide, value), place)

    def _own(self, at: dict[str, PrimExpr]) -> PrimExpr:
        return cast(self.wide, load(self.grad, self.out_layout.indices(at)))

    def _local(self, name: str, dtype: str = INDEX) -> Buffer:
        return self.frame.local(name, dtype)


class _AveragePoolGradient(_PoolGradient):
    def give(self, at: dict[str, PrimExpr]) -> Stmt:
        """In equal shares."""
        count = self._local("count")
        tally = self._over_window(
            at, lambda place: store(count, load(count, [0]) + index(1)), self.args.count_include_pad
        )
        share = self._own(at) / cast(self.wide, load(count, [0]))
        return joined(store(count, index(0)), tally, self._over_window(at, lambda place: self._give(place, share)))


class _MaxPoolGradient(_PoolGradient):
    def give(self, at: dict[str, PrimExpr]) -> Stmt:
        """All of it to the first of the greatest elements."""
        found, best = self._local("found"), self._local("best", self.data.dtype)
        row, column = self._local("row"), self._local("column")

        def look(place: Sequence[PrimExpr]) -> Stmt:
            value, top = load(self.data, place), load(best, [0])
            named = self.layout.places(place)
            nan = binary("and", intrinsic("isnan", value), unary("not", intrinsic("isnan", top)))
            better = binary("or", binary("eq", load(found, [0]), index(0)), binary("or", binary("gt", value, top), nan))
            kept = joined(store(found, index(1)), store(best, value), store(row, named["H"]), store(column, named["W"]))
            return IfThenElse(better, kept)

        target = self.layout.indices({**at, "H": load(row, [0]), "W": load(column, [0])})
        give = IfThenElse(binary("eq", load(found, [0]), index(1)), self._give(target, self._own(at)))
        start = (store(found, index(0)), store(best, zero(self.data.dtype)))
        return joined(*start, self._over_window(at, look), give)


def _numpy_pool_gradient(
    grad: np.ndarray,
    data: np.ndarray,
    average: bool,
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    layout: str,
    out_layout: str | None,
) -> np.ndarray:
    size, step, gap = (spread(values, 2) for values in (pool_size, strides, dilation))
    begins, ends = begins_and_ends(padding, 2)
    extents = unpacked(data, layout, "NCHW").shape[2:]
    if any(extent + begins[a] + ends[a] < (size[a] - 1) * gap[a] + 1 for a, extent in enumerate(extents)):
        raise ValueError("the window does not fit")
    x = unpacked(data, layout, "NCHW").astype(np.float64)
    g = unpacked(grad, out_layout or layout, "NCHW").astype(np.float64)
    out = np.zeros(x.shape)
    for n, c, oy, ox in np.ndindex(g.shape):
        places: list[tuple[int, int]] = []
        count = 0
        for offset in combinations(*map(range, size)):
            y, z = (o * s - b + k * d for o, s, b, k, d in zip((oy, ox), step, begins, offset, gap, strict=True))
            in_padding = -begins[0] <= y < x.shape[2] + ends[0] and -begins[1] <= z < x.shape[3] + ends[1]
            inside = 0 <= y < x.shape[2] and 0 <= z < x.shape[3]
            places += [(y, z)] if inside else []
            count += in_padding if count_include_pad else inside
        if average:
            for place in places:
                out[n, c][place] += g[n, c, oy, ox] / count
        elif places:
            out[n, c][places[int(np.argmax([x[n, c][place] for place in places]))]] += g[n, c, oy, ox]
    return packed(out, layout, "NCHW").astype(data.dtype)


@register_op(
    "grad.max_pool2d_backward",
    _POOL,
    lowering=_MaxPoolGradient.lowering(),
    numpy=partial(_numpy_pool_gradient, average=False),
    pure=True,
    examples=(
        example(f32(1, 2, 3, 3), f32(1, 2, 6, 7), pool_size=(2, 2), strides=(2, 2)),
        example(f32("n", 1, 3, 2), f32("n", 1, 5, 4), pool_size=3, strides=2, padding=(1, 1)),
        example(f32(1, 4, 3, 2), f32(1, 7, 6, 2), pool_size=(2, 3), strides=2, ceil_mode=True, layout="NHWC"),
        example(f32(1, 1, 4, 4), f32(1, 1, 6, 6), pool_size=2, dilation=2),
    ),
)
def max_pool2d_backward(args: Arguments, context: TypeContext) -> TensorType:
    """The gradient of nn.max_pool2d for data: each output's gradient goes to the greatest element of its window, the
    first of equal ones.
    """
    return _pool_rule(args, context)


@register_op(
    "grad.avg_pool2d_backward",
    _POOL,
    lowering=_AveragePoolGradient.lowering(),
    numpy=partial(_numpy_pool_gradient, average=True),
    pure=True,
    examples=(
        example(f32(1, 2, 3, 3), f32(1, 2, 6, 7), pool_size=(2, 2), strides=(2, 2)),
        example(f32("n", 1, 3, 2), f32("n", 1, 5, 4), pool_size=3, strides=2, padding=(1, 1), count_include_pad=True),
        example(f32(1, 4, 3, 2), f32(1, 7, 6, 2), pool_size=(2, 3), strides=2, ceil_mode=True, layout="NHWC"),
        example(typed("float16", 1, 1, 5, 5), typed("float16", 1, 1, 7, 7), pool_size=3),
    ),
)
def avg_pool2d_backward(args: Arguments, context: TypeContext) -> TensorType:
    """The gradient of nn.avg_pool2d for data: each output's gradient in equal shares to the elements of its window."""
    return _pool_rule(args, context)


# ---------------------------------------------------------------------------------------------------------------------
# Losses
# ---------------------------------------------------------------------------------------------------------------------

_REDUCTIONS = ("none", "sum", "mean")


def _without(dims: Dims, axis: int) -> Dims:
    return (*dims[:axis], *dims[axis + 1 :])


@kernel_lowering
def _lower_nll(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    axis = 0 if len(kernel.dims) == 1 else 1
    shape, classes = _without(kernel.dims, axis), kernel.dims[axis]
    grad = kernel.input("output_grad", shape if args.reduction == "none" else ())
    kernel.input("predictions")
    targets = kernel.input("targets", shape)
    weights = kernel.input("weights", (classes,)) if args.weights is not None else None
    wide, ignored = accumulator(kernel.dtype), te.const(args.ignore_index, INDEX)

    def valid(*i: PrimExpr) -> PrimExpr:
        target = te.cast(INDEX, targets(*i))
        return te.any(te.equal(target, ignored), te.all(target >= 0, target < te.size(classes)))

    kernel.checks.append(te.check(shape, valid, f"{args.name}: a target is not a class", "BoundsError"))

    def weight(target: PrimExpr) -> PrimExpr:
        value = te.const(1, wide) if weights is None else te.cast(wide, weights(target))
        return te.if_then_else(te.not_equal(target, ignored), value, te.const(0, wide))

    total: Any = None
    if args.reduction == "mean":

        def own(*i: PrimExpr) -> PrimExpr:
            return weight(te.cast(INDEX, targets(*i)))

        total = reduce_stage(shape, range(len(shape)), te.sum, own, "weight")

    def formula(*i: PrimExpr) -> PrimExpr:
        place = (*i[:axis], *i[axis + 1 :])
        target = te.cast(INDEX, targets(*place))
        given = te.cast(wide, grad(*place) if args.reduction == "none" else grad())
        share = given * weight(target) if total is None else given * weight(target) / total()
        return te.if_then_else(te.equal(target, i[axis]), te.const(0, wide) - share, te.const(0, wide))

    return kernel.compute(formula, "nll_loss_backward")


def _numpy_nll(
    grad: np.ndarray, predictions: np.ndarray, targets: np.ndarray, weights: Any, reduction: str, ignore_index: int
) -> np.ndarray:
    axis = 0 if predictions.ndim == 1 else 1
    classes = predictions.shape[axis]
    counted_ones = targets != ignore_index
    if np.any(counted_ones & ((targets < 0) | (targets >= classes))):
        raise BoundsError("R.grad.nll_loss_backward: a target is not a class")
    chosen = np.where(counted_ones, targets, 0).astype(np.int64)
    own = np.ones(max(classes, 1)) if weights is None else weights.astype(np.float64)
    weight = np.where(counted_ones, own[chosen], 0.0)
    share = grad.astype(np.float64) * weight
    if reduction == "mean":
        share = share / weight.sum()
    hit = untyped_np.expand_dims(np.where(counted_ones, targets, -1), axis) == untyped_np.arange(classes).reshape(
        [-1 if d == axis else 1 for d in range(predictions.ndim)]
    )
    return np.where(hit, -np.expand_dims(share, axis), 0.0).astype(predictions.dtype)


@register_op(
    "grad.nll_loss_backward",
    [
        Param("output_grad"),
        Param("predictions"),
        Param("targets", of="int"),
        Param("weights", default=None),
        Param("reduction", "attr", "mean", "str"),
        Param("ignore_index", "attr", -100, "int"),
    ],
    lowering=_lower_nll,
    numpy=_numpy_nll,
    pure=True,
    examples=(
        example(f32(), f32(4, 5), i64(4), ranges={"targets": (0, 4)}),
        example(f32(), f32("n", 3), i64("n"), f32(3), reduction="sum", ranges={"targets": (0, 2), "weights": (0.5, 2)}),
        example(
            f32("n", "m"),
            f32("n", 3, "m"),
            typed("int32", "n", "m"),
            reduction="none",
            ignore_index=1,
            ranges={"targets": (0, 2)},
        ),
        example(f32(), f32(5), i64(), ranges={"targets": (0, 4)}),
        example(
            f32(), f32(6, 3, 2), i64(6, 2), f32(3), ranges={"targets": (1, 2), "weights": (0.5, 2)}, ignore_index=0
        ),
    ),
)
def nll_loss_backward(args: Arguments, context: TypeContext) -> TensorType:
    """The gradient of nn.nll_loss for predictions: minus the target's weight where the class is the target, else 0.

    output_grad has the shape of the targets for reduction "none", else it is a scalar.
    """
    if args.reduction not in _REDUCTIONS:
        hint = f"the reductions are {', '.join(_REDUCTIONS)}"
        raise shape_error(args, f"unknown reduction {args.reduction!r}", "W205", hint)
    grad, predictions, targets = (tensor(args, name, context) for name in ("output_grad", "predictions", "targets"))
    require_dtype(args, "predictions", predictions, "float")
    require_dtype(args, "targets", targets, "integer")
    same_dtype(args, predictions, grad)
    if predictions.ndim == 0:
        raise shape_error(args, "predictions is a scalar; it needs an axis of classes")
    if predictions.ndim > 0:
        require_rank(args, "targets", targets, predictions.ndim - 1)
    if args.reduction != "none":
        require_rank(args, "output_grad", grad, 0)
    elif predictions.ndim > 0:
        require_rank(args, "output_grad", grad, predictions.ndim - 1)
    dims = dims_of(predictions)
    if dims is None:
        return predictions
    axis = 0 if len(dims) == 1 else 1
    others = [("targets", targets)] + ([("output_grad", grad)] if args.reduction == "none" else [])
    for name, operand in others:
        for size, own in zip(_without(dims, axis), dims_of(operand) or (), strict=dims_of(operand) is not None):
            context.require_equal(size, own, f"{args.name}: sizes of predictions and {name}", args.span)
    if args.weights is not None:
        weights = tensor(args, "weights", context)
        require_rank(args, "weights", weights, 1)
        same_dtype(args, predictions, weights)
        for size in dims_of(weights) or ():
            context.require_equal(dims[axis], size, f"{args.name}: classes and the size of weights", args.span)
    return predictions


# ---------------------------------------------------------------------------------------------------------------------
# Gathers
# ---------------------------------------------------------------------------------------------------------------------


def _taken(dims: Dims, chosen: Dims, axis: int | None) -> Dims:
    """The shape of a take."""
    return chosen if axis is None else (*dims[:axis], *chosen, *dims[axis + 1 :])


@loops_lowering
def _lower_take(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    grad, x, indices = (frame.input(each) for each in ("output_grad", "x", "indices"))
    out = frame.output()
    dims, chosen, given = (dims_of(tensor(args, each, context)) or () for each in ("x", "indices", "output_grad"))
    axis = None if args.axis is None else axis_of(args, args.axis, len(dims))
    for wanted, own in zip(_taken(dims, chosen, axis), given, strict=True):
        frame.require_equal(wanted, own)
    size: Dim = product(dims) if axis is None else dims[axis]
    extent = frame.size(size)
    wide = accumulator(out.dtype)
    total = out if wide == out.dtype else frame.local("total", wide, dims)
    front = axis or 0
    count = len(chosen)

    def add(i: Sequence[PrimExpr]) -> Stmt:
        at = wrapped(load(indices, i[front : front + count]), extent)
        target = split_index(at, dims, frame.size) if axis is None else [*i[:axis], at, *i[axis + count :]]
        return store(total, load(total, target) + cast(wide, load(grad, i)), target)

    shape = [frame.extent(dim) for dim in chosen]
    check = loops(shape, lambda i: frame.check_index(load(indices, i), extent))
    steps = [check, loops(x.shape, lambda i: store(total, zero(wide), i)), loops(grad.shape, add)]
    if total is not out:
        steps.append(loops(x.shape, lambda i: store(out, load(total, i), i)))
    return frame.finish(*steps)


def _numpy_take(grad: np.ndarray, x: np.ndarray, indices: Any, axis: int | None, mode: str) -> np.ndarray:
    indices = np.asarray(indices)
    size = x.size if axis is None else x.shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise BoundsError("R.grad.take_backward: index out of range")
    out = np.zeros(x.shape)
    if axis is None:
        flat = out.reshape(-1)
        np.add.at(flat, indices.ravel(), grad.ravel())
        return flat.reshape(x.shape).astype(x.dtype)
    axis %= x.ndim
    moved = np.moveaxis(out, axis, 0)
    rest = np.moveaxis(grad.astype(np.float64), range(axis, axis + indices.ndim), range(indices.ndim))
    np.add.at(moved, indices, rest)
    return out.astype(x.dtype)


@register_op(
    "grad.take_backward",
    [
        Param("output_grad"),
        Param("x"),
        Param("indices", of="int"),
        Param("axis", "attr", None, "int?"),
        Param("mode", "attr", "", "str"),
    ],
    lowering=_lower_take,
    numpy=_numpy_take,
    pure=True,
    examples=(
        example(f32("m", 4), f32(5, 4), i64("m"), axis=0, ranges={"indices": (-5, 4)}),
        example(f32(2, 3, 2, "n"), f32(2, 6, "n"), i64(3, 2), axis=1, ranges={"indices": (0, 5)}),
        example(f32(7), f32(2, 3), i64(7), ranges={"indices": (-6, 5)}),
        example(f32("n"), f32(2, "n"), i64("n"), ranges={"indices": (-2, 1)}),
        example(f32(2), f32(2, 3), 1, axis=-1),
    ),
)
def take_backward(args: Arguments, context: TypeContext) -> TensorType:
    """The gradient of take for x: each element is the sum of the gradients of the places that it was taken to.

    Negative indices count from the end; one out of range is a BoundsError.
    """
    grad, x, indices = (tensor(args, name, context) for name in ("output_grad", "x", "indices"))
    require_dtype(args, "indices", indices, "integer")
    require_dtype(args, "x", x, "number")
    same_dtype(args, grad, x)
    if args.mode not in ("", "fast"):
        raise shape_error(args, f"mode {args.mode!r}: the gradient is that of the plain take", "W205")
    if args.axis is not None and x.ndim >= 0:
        axis_of(args, args.axis, x.ndim)
    if indices.ndim >= 0 and (args.axis is None or x.ndim >= 0):
        require_rank(args, "output_grad", grad, indices.ndim + (0 if args.axis is None else x.ndim - 1))
    dims, chosen, given = dims_of(x), dims_of(indices), dims_of(grad)
    if dims is None or chosen is None:
        return x
    wanted = _taken(dims, chosen, None if args.axis is None else axis_of(args, args.axis, len(dims)))
    for size, own in zip(wanted, given or (), strict=given is not None):
        context.require_equal(size, own, f"{args.name}: sizes of the output and of its gradient", args.span)
    return x
