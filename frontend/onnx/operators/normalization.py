"""Norms, and dropout, which leaves values as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.node import OnnxNode, element_dtype
from weft.frontend.onnx.table import row
from weft.ir.dim import product
from weft.ir.graph import Constant, Expr
from weft.script import relax as R


def _channels(n: OnnxNode, v: Expr, rank: int) -> Expr:
    return R.reshape(v, (n.shape(v)[0], *(1,) * (rank - 2)))


def batch_norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr) -> Any:
    """Each channel normalised by the statistics that were learnt; in training by its own."""
    epsilon = float(n.attr("epsilon"))
    if n.attr("training_mode", 0) or (n.version < 7 and not n.attr("is_test", 0)):
        return _training(n, x, scale, bias, mean, variance, epsilon)
    wide = n.dtype(scale) != n.dtype(x)
    if wide:
        scale, bias, mean, variance = (R.astype(v, n.dtype(x)) for v in (scale, bias, mean, variance))
    factor = n.emit(R.divide(scale, R.sqrt(R.add(variance, epsilon))), "factor")
    offset = R.subtract(bias, R.multiply(mean, factor))
    rank = n.rank(x)
    return R.add(R.multiply(x, _channels(n, factor, rank)), _channels(n, n.emit(offset, "offset"), rank))


def _training(n: OnnxNode, x: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr, epsilon: float) -> Any:
    rank, momentum = n.rank(x), float(n.attr("momentum"))
    axes = (0, *range(2, rank))
    own_mean = n.emit(R.mean(x, axes), "mean")
    centred = n.emit(R.subtract(x, _channels(n, own_mean, rank)), "centred")
    own_variance = n.emit(R.mean(R.square(centred), axes), "variance")
    factor = n.emit(R.divide(scale, R.sqrt(R.add(own_variance, epsilon))), "factor")
    y = R.add(R.multiply(centred, _channels(n, factor, rank)), _channels(n, bias, rank))

    def moved(old: Expr, new: Expr) -> Expr:
        return R.add(R.multiply(old, momentum), R.multiply(new, 1 - momentum))

    return (y, moved(mean, own_mean), moved(variance, own_variance))[: len(n.proto.output)]


def _normalised(n: OnnxNode, x: Expr, axes: Any, epsilon: float) -> tuple[Expr, Expr, Expr]:
    mean = n.emit(R.mean(x, axes, True), "mean")
    centred = n.emit(R.subtract(x, mean), "centred")
    inverse = n.emit(
        R.divide(Constant(np.asarray(1, n.dtype(x))), R.sqrt(R.add(R.mean(R.square(centred), axes, True), epsilon))),
        "inverse",
    )
    return R.multiply(centred, inverse), mean, inverse


def layer_norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr | None) -> Any:
    """The axes from one on normalised together."""
    axis, rank = n.axis(x, "axis", -1), n.rank(x)
    axes, epsilon = tuple(range(axis, rank)), float(n.attr("epsilon"))
    plain = n.dtype(x) == n.dtype(scale) == "float32" and n.shape(scale) == n.shape(x)[axis:]
    if plain and len(n.proto.output) == 1:
        beta = bias if bias is not None else R.zeros_like(scale)
        return R.nn.layer_norm(x, scale, beta, axes, epsilon)
    wide = x if n.dtype(x) in ("float32", "float64") else n.emit(R.astype(x, "float32"))
    y, mean, inverse = _normalised(n, wide, axes, epsilon)
    y = R.multiply(R.astype(y, n.dtype(x)) if wide is not x else y, scale)
    stash = element_dtype(n.attr("stash_type", 1))  # of the mean and the deviation
    mean, inverse = (v if n.dtype(v) == stash else R.astype(v, stash) for v in (mean, inverse))
    return (y if bias is None else R.add(y, bias), mean, inverse)[: len(n.proto.output)]


def rms_norm(n: OnnxNode, x: Expr, scale: Expr) -> Any:
    """The axes from one on over their root mean square."""
    axis, rank = n.axis(x, "axis", -1), n.rank(x)
    wide = x if n.dtype(x) in ("float32", "float64") else n.emit(R.astype(x, "float32"))
    axes = tuple(range(axis, rank))
    root = R.sqrt(R.add(R.mean(R.square(wide), axes, True), float(n.attr("epsilon"))))
    y = R.divide(wide, root)
    return R.multiply(R.astype(y, n.dtype(x)) if wide is not x else y, scale)


def instance_norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr) -> Expr:
    """Each channel of each image normalised by its own statistics."""
    rank = n.rank(x)
    y, _, _ = _normalised(n, x, tuple(range(2, rank)), float(n.attr("epsilon")))
    return R.add(R.multiply(y, _channels(n, scale, rank)), _channels(n, bias, rank))


def group_norm(n: OnnxNode, x: Expr, scale: Expr, bias: Expr) -> Expr:
    """Groups of channels normalised together; scale and bias are of channels (of groups before version 21)."""
    dims, groups, rank = n.shape(x), int(n.attr("num_groups")), n.rank(x)
    wide = x if n.dtype(x) in ("float32", "float64") else n.emit(R.astype(x, "float32"))
    apart = n.emit(R.reshape(wide, (dims[0], groups, product(dims[1:]) // groups)), "groups")
    y, _, _ = _normalised(n, apart, (2,), float(n.attr("epsilon")))
    if n.version < 21:
        parts = R.reshape(y, (dims[0], groups, product(dims[1:]) // groups))
        scaled = R.add(R.multiply(parts, R.reshape(scale, (groups, 1))), R.reshape(bias, (groups, 1)))
        return R.reshape(scaled, dims)
    y = R.reshape(y, dims)
    y = R.astype(y, n.dtype(x)) if wide is not x else y
    return R.add(R.multiply(y, _channels(n, scale, rank)), _channels(n, bias, rank))


def lp_norm(n: OnnxNode, x: Expr) -> Expr:
    """An axis over its p-norm, 0 where that is 0."""
    axis, p = n.axis(x, "axis", -1), int(n.attr("p", 2))
    if p not in (1, 2):
        raise Unsupported(f"the {p}-norm")
    norm = R.sum(R.abs(x), axis, True) if p == 1 else R.sqrt(R.sum(R.square(x), axis, True))
    norm = n.emit(norm, "norm")
    one = R.ones_like(norm)
    zero = R.equal(norm, R.zeros_like(norm))
    return R.where(zero, R.zeros_like(x), R.divide(x, R.where(zero, one, norm)))


def mean_variance(n: OnnxNode, x: Expr) -> Expr:
    """(x - mean) / (standard deviation + 1e-9) along axes."""
    axes = tuple(n.attr("axes") or (0, 2, 3))
    mean = n.emit(R.mean(x, axes, True), "mean")
    deviation = R.sqrt(R.subtract(R.mean(R.square(x), axes, True), R.square(mean)))
    return R.divide(R.subtract(x, mean), R.add(deviation, 1e-9))


def dropout(n: OnnxNode, x: Expr) -> Any:
    """The values themselves, and a mask of all that is kept; in training with a ratio of 0 as well."""
    training = bool(n.constant(2).item()) if n.has(2) else bool(n.version < 7 and not n.attr("is_test", 0))
    if training and float(n.constant(1, 0.5).item() if n.version >= 12 else n.attr("ratio", 0.5)) != 0:
        raise Unsupported("dropout in training")
    mask = R.ones_like(x, "bool") if n.version >= 10 else R.ones_like(x)
    return (n.inputs[0], mask)[: len(n.proto.output)]


row("BatchNormalization", batch_norm)
row("LayerNormalization", layer_norm)
row("RMSNormalization", rms_norm)
row("InstanceNormalization", instance_norm)
row("GroupNormalization", group_norm)
row("LpNormalization", lp_norm)
row("MeanVarianceNormalization", mean_variance)
row("Dropout", dropout)
