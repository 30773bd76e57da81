"""Losses.

Errors: ShapeError W201, W202 sizes that do not fit, W205 an unknown reduction; DTypeError W320, W321; at run time
BoundsError for a target that is no class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.op.common import (
    Dims,
    Kernel,
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
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.reductions.reduction import accumulator, reduce_stage, sizes_of
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType

__all__: list[str] = []

_REDUCTIONS = ("none", "sum", "mean")


@kernel_lowering
def _lower_nll_loss(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    sizes, rest = sizes_of(args, "predictions", context), sizes_of(args, "targets", context)
    axis = 0 if len(sizes) == 1 else 1
    classes = sizes[axis]
    pairs = zip(_without(sizes, axis), rest, strict=True)
    shape: Dims = tuple(own if isinstance(own, int) else other for own, other in pairs)
    predictions = kernel.input("predictions", (*shape[:axis], classes, *shape[axis:]))
    targets = kernel.input("targets", shape)
    weights = kernel.input("weights", (classes,)) if args.weights is not None else None
    wide, ignored = accumulator(kernel.dtype), args.ignore_index

    def target(*i: PrimExpr) -> PrimExpr:
        return te.cast("int64", targets(*i))

    def counts(*i: PrimExpr) -> PrimExpr:
        return te.not_equal(target(*i), te.const(ignored, "int64"))

    def valid(*i: PrimExpr) -> PrimExpr:
        inside = te.all(target(*i) >= 0, target(*i) < te.size(classes))
        return te.any(te.equal(target(*i), te.const(ignored, "int64")), inside)

    kernel.checks.append(te.check(shape, valid, f"{args.name}: a target is not a class", "BoundsError"))

    def weight(*i: PrimExpr) -> PrimExpr:
        value = te.const(1, wide) if weights is None else te.cast(wide, weights(target(*i)))
        return te.if_then_else(counts(*i), value, te.const(0, wide))

    def loss(*i: PrimExpr) -> PrimExpr:
        chosen = te.cast(wide, predictions(*i[:axis], target(*i), *i[axis:]))
        scaled = chosen if weights is None else chosen * te.cast(wide, weights(target(*i)))
        return te.if_then_else(counts(*i), te.const(0, wide) - scaled, te.const(0, wide))

    if args.reduction == "none":
        return kernel.compute(loss, "nll_loss")
    axes = range(len(shape))
    total = reduce_stage(shape, axes, te.sum, loss, "total")
    if args.reduction == "sum":
        return kernel.compute(total, "nll_loss")
    share = reduce_stage(shape, axes, te.sum, weight, "weight")
    return kernel.compute(lambda: total() / share(), "nll_loss")


def _without(sizes: Dims, axis: int) -> Dims:
    return (*sizes[:axis], *sizes[axis + 1 :])


def _nll_loss_reference(predictions: Any, targets: Any, weights: Any, *, reduction: str, ignore_index: int) -> Any:
    scores = predictions.astype(np.float64)
    classes = scores.shape[0 if scores.ndim == 1 else 1]
    counted = targets != ignore_index
    if np.any(counted & ((targets < 0) | (targets >= classes))):
        raise BoundsError("R.nn.nll_loss: a target is not a class")
    chosen = np.where(counted, targets, 0).astype(np.int64)
    moved = scores if scores.ndim == 1 else np.moveaxis(scores, 1, -1)
    own = np.ones(classes) if weights is None else weights.astype(np.float64)
    weight = np.where(counted, own[chosen], 0.0) if classes else np.zeros(targets.shape)
    loss = -np.take_along_axis(moved, chosen[..., None], -1)[..., 0] * weight if classes else weight
    loss = np.where(counted, loss, 0.0)
    with np.errstate(invalid="ignore"):
        total = np.asarray(weight.sum())
        result = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / total}[reduction]
    return np.asarray(result).astype(predictions.dtype)


@register_op(
    "nn.nll_loss",
    [
        Param("predictions"),
        Param("targets"),
        Param("weights", default=None),
        Param("reduction", "attr", "mean", "str"),
        Param("ignore_index", "attr", -100, "int"),
    ],
    lowering=_lower_nll_loss,
    numpy=_nll_loss_reference,
    pure=True,
    examples=(
        example(f32(4, 5), i64(4), ranges={"targets": (0, 4)}),
        example(f32("n", 3), i64("n"), f32(3), ranges={"targets": (0, 2), "weights": (0.5, 2)}, reduction="sum"),
        example(
            f32("n", 3, "m"), typed("int32", "n", "m"), ranges={"targets": (0, 2)}, reduction="none", ignore_index=1
        ),
        example(f32(5), i64(), ranges={"targets": (0, 4)}),
        example(f32(6, 3, 2), i64(6, 2), f32(3), ranges={"targets": (0, 2), "weights": (0.5, 2)}, ignore_index=0),
        example(typed("float16", 20, 3), i64(20), ranges={"targets": (0, 2)}),
    ),
)
def nll_loss(args: Arguments, context: TypeContext) -> TensorType:
    """The negative log likelihood of the target classes: -predictions[target] * weights[target], reduced.

    predictions (n, c, ...) or (c,), targets (n, ...) or () of integers, weights (c,). Targets equal to ignore_index
    count for nothing. reduction: "none", "sum", or "mean" (the sum divided by the weights that count).
    """
    if args.reduction not in _REDUCTIONS:
        hint = f"the reductions are {', '.join(_REDUCTIONS)}"
        raise shape_error(args, f"unknown reduction {args.reduction!r}", "W205", hint)
    predictions, targets = tensor(args, "predictions", context), tensor(args, "targets", context)
    require_dtype(args, "predictions", predictions, "float")
    require_dtype(args, "targets", targets, "integer")
    if predictions.ndim == 0:
        raise shape_error(args, "predictions is a scalar; it needs an axis of classes")
    if predictions.ndim > 0:
        require_rank(args, "targets", targets, predictions.ndim - 1)
    scores, places = dims_of(predictions), dims_of(targets)
    if scores is not None and places is not None:
        for own, other in zip(_without(scores, min(len(scores) - 1, 1)), places, strict=True):
            context.require_equal(own, other, f"{args.name}: sizes of predictions and targets", args.span)
    if args.weights is not None:
        weights = tensor(args, "weights", context)
        require_rank(args, "weights", weights, 1)
        same_dtype(args, predictions, weights)
        own = dims_of(weights)
        if scores is not None and own is not None:
            classes = scores[min(len(scores) - 1, 1)]
            context.require_equal(classes, own[0], f"{args.name}: classes and the size of weights", args.span)
    if args.reduction != "none":
        return TensorType((), predictions.dtype)
    return TensorType(targets.shape, predictions.dtype, targets.ndim)


@kernel_lowering
def _lower_cross_entropy(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    a, b = sizes_of(args, "predictions", context), sizes_of(args, "labels", context)
    shape: Dims = tuple(x if isinstance(x, int) else y for x, y in zip(a, b, strict=True))
    predictions, labels = kernel.input("predictions", shape), kernel.input("labels", shape)
    wide = accumulator(kernel.dtype)
    total = reduce_stage(
        shape, range(len(shape)), te.sum, lambda *i: te.cast(wide, predictions(*i)) * te.cast(wide, labels(*i)), "total"
    )
    zero = te.const(0, wide)
    if len(shape) == 1:
        return kernel.compute(lambda: zero - total(), "cross_entropy")
    return kernel.compute(lambda: (zero - total()) / te.cast(wide, te.size(shape[0])), "cross_entropy")


def _cross_entropy_reference(predictions: Any, labels: Any) -> Any:
    count = predictions.shape[0] if predictions.ndim > 1 else 1
    total = -(predictions.astype(np.float64) * labels.astype(np.float64)).sum()
    return np.asarray(total / count if count else np.nan).astype(predictions.dtype)


@register_op(
    "nn.cross_entropy_with_logits",
    [Param("predictions"), Param("labels")],
    lowering=_lower_cross_entropy,
    numpy=_cross_entropy_reference,
    pure=True,
    examples=(example(f32(3, 4), f32(3, 4)), example(f32("n", "c"), f32("n", "c")), example(f32(5), f32(5))),
)
def cross_entropy_with_logits(args: Arguments, context: TypeContext) -> TensorType:
    """-sum(predictions * labels), divided by the number of rows of a matrix; predictions are log probabilities."""
    predictions, labels = tensor(args, "predictions", context), tensor(args, "labels", context)
    require_dtype(args, "predictions", predictions, "float")
    if predictions.ndim == 0:
        raise shape_error(args, "predictions is a scalar; it needs an axis of classes")
    if predictions.ndim > 0:
        require_rank(args, "labels", labels, predictions.ndim)
    dtype = same_dtype(args, predictions, labels)
    a, b = dims_of(predictions), dims_of(labels)
    if a is not None and b is not None:
        for x, y in zip(a, b, strict=True):
            context.require_equal(x, y, f"{args.name}: sizes of predictions and labels", args.span)
    return TensorType((), dtype)
