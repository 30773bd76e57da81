"""Softmax and normalisation.

Statistics are computed in float32 at least, variances in two passes. Axes may be negative.
Errors: ShapeError W201 sizes of scales and offsets, W203, W204 axes, W205 groups; DTypeError W320, W321.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim
from weft.ir.op.common import (
    Dims,
    Kernel,
    axes_of,
    axis_of,
    dtype_error,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_known_rank,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.family import OperatorFamily
from weft.ir.op.layout_rules.families import along, batch_normalising, normalising_channels
from weft.ir.op.reductions.reduction import (
    accumulator,
    element_count,
    kept,
    mean_stage,
    reduce_stage,
    squared_deviation_stage,
)
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType
from weft.support.records import dataclass

__all__: list[str] = []


def _wide(array: Any) -> Any:
    return array.astype(np.float64)


# ---------------------------------------------------------------------------------------------------------------------
# softmax
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Softmax(OperatorFamily):
    """The softmax, or its logarithm."""

    logarithm: bool
    layout: ClassVar[Any] = staticmethod(along("data"))

    @property
    def name(self) -> str:
        """The name of the operator."""
        return "nn.log_softmax" if self.logarithm else "nn.softmax"

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the operator."""
        return (Param("data"), Param("axis", "attr", -1, "int"))

    def rule(self, args: Arguments, context: TypeContext) -> TensorType:
        data = tensor(args, "data", context)
        require_dtype(args, "data", data, "float")
        if data.ndim >= 0:
            axis_of(args, args.axis, data.ndim)
        return data

    def lower(self, kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        data = kernel.input("data")
        axes = (axis_of(args, args.axis, data.ndim),)
        wide = accumulator(kernel.dtype)

        def value(*i: PrimExpr) -> PrimExpr:
            return te.cast(wide, data(*i))

        greatest = reduce_stage(data.shape, axes, te.max, value, "greatest", may_be_empty=False)

        def shifted(*i: PrimExpr) -> PrimExpr:
            # Without the shift by the greatest value, exp would overflow.
            return value(*i) - greatest(*kept(i, axes))

        def joined(formula: Callable[..., PrimExpr]) -> te.Tensor:
            return reduce_stage(data.shape, axes, te.sum, formula, "total", may_be_empty=False)

        if self.logarithm:
            total = joined(lambda *i: te.exp(shifted(*i)))
            return kernel.compute(lambda *i: shifted(*i) - te.log(total(*kept(i, axes))), "log_softmax")
        powers = te.compute(data.shape, lambda *i: te.exp(shifted(*i)), "powers")
        total = joined(powers)
        # One division for all elements of a sum, which lies between 1 and their number.
        return kernel.compute(lambda *i: powers(*i) * (1.0 / total(*kept(i, axes))), "softmax")

    def reference(self, data: Any, *, axis: int) -> Any:
        if data.size == 0:
            return data.copy()
        shifted = _wide(data) - _wide(data).max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        return (shifted - np.log(total) if self.logarithm else np.exp(shifted) / total).astype(data.dtype)


_SOFTMAX_EXAMPLES = (
    example(f32(2, 5)),
    example(f32("n", "m"), ranges={"data": (-200, 200)}),
    example(f32("n", 3, 4), axis=1),
    example(typed("float16", 2, 70)),
)
_Softmax(False).declare("exp(data) divided by its sum along an axis, without overflow.", _SOFTMAX_EXAMPLES)
_Softmax(True).declare(
    "The logarithm of the softmax along an axis, without overflow or cancellation.", _SOFTMAX_EXAMPLES
)


# ---------------------------------------------------------------------------------------------------------------------
# Normalisation with a scale and an offset
# ---------------------------------------------------------------------------------------------------------------------

_EPSILON = Param("epsilon", "attr", 1e-05, "float")
_FLAGS = (Param("center", "attr", True, "bool"), Param("scale", "attr", True, "bool"))


def _require_like(args: Arguments, name: str, data: TensorType, parameter: TensorType) -> None:
    """Refuse a parameter of another dtype than data, one of unknown rank, and one of which only one dtype is known."""
    same_dtype(args, data, parameter)
    if (data.dtype is None) != (parameter.dtype is None):
        unknown = "data" if data.dtype is None else name
        raise dtype_error(args, f"the dtype of {unknown} is not known", "W320", "annotate it")
    require_known_rank(args, name, parameter)


def _parameter(args: Arguments, name: str, data: TensorType, axes: Sequence[int], context: TypeContext) -> None:
    """Check a scale or an offset: one dimension for each of the axes of data, of the same size, in the same dtype."""
    parameter = tensor(args, name, context)
    _require_like(args, name, data, parameter)
    require_rank(args, name, parameter, len(axes))
    sizes, own = dims_of(data), dims_of(parameter)
    if sizes is not None and own is not None:
        for axis, size in zip(axes, own, strict=True):
            context.require_equal(sizes[axis], size, f"{args.name}: axis {axis} of data and {name}", args.span)


def _finished(args: Arguments, normal: PrimExpr, gamma: PrimExpr | None, beta: PrimExpr | None, wide: str) -> PrimExpr:
    """The normalised value with its scale and offset, as the flags say."""
    if gamma is not None and args.scale:
        normal = normal * te.cast(wide, gamma)
    if beta is not None and args.center:
        normal = normal + te.cast(wide, beta)
    return normal


def _affine(normal: Any, gamma: Any, beta: Any, shape: Sequence[int], center: bool, scale: bool) -> Any:
    if scale:
        normal = normal * _wide(gamma).reshape(shape)
    return normal + _wide(beta).reshape(shape) if center else normal


def _normal(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)


@kernel_lowering
def _lower_layer_norm(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    axes = axes_of(args, args.axes, data.ndim)
    sizes = tuple(data.shape[axis] for axis in axes)
    gamma, beta = kernel.input("gamma", sizes), kernel.input("beta", sizes)
    return _normalised(kernel, data, axes, lambda i: [i[axis] for axis in axes], gamma, beta, "layer_norm")


def _normalised(
    kernel: Kernel,
    data: Any,
    axes: Sequence[int],
    place: Callable[[Sequence[PrimExpr]], list[PrimExpr]],
    gamma: Any,
    beta: Any,
    name: str,
) -> PrimFunc:
    """data normalised over the axes; `place` gives the indices of the scale and offset."""
    wide = accumulator(kernel.dtype)
    mean = mean_stage(data, axes, wide, may_be_empty=False)
    variance = squared_deviation_stage(data, mean, axes, wide, may_be_empty=False)

    def formula(*i: PrimExpr) -> PrimExpr:
        at = kept(i, axes)
        normal = (te.cast(wide, data(*i)) - mean(*at)) * te.rsqrt(variance(*at) + kernel.args.epsilon)
        return _finished(kernel.args, normal, gamma(*place(i)), beta(*place(i)), wide)

    return kernel.compute(formula, name)


def _layer_norm_reference(
    data: Any, gamma: Any, beta: Any, *, axes: Any, epsilon: float, center: bool, scale: bool
) -> Any:
    axes = tuple(axis % data.ndim for axis in axes)
    normal = _normal(_wide(data), axes, epsilon)
    order = np.argsort(axes)
    shape = [data.shape[axis] if axis in axes else 1 for axis in range(data.ndim)]
    return _affine(normal, gamma.transpose(order), beta.transpose(order), shape, center, scale).astype(data.dtype)


@register_op(
    "nn.layer_norm",
    [Param("data"), Param("gamma"), Param("beta"), Param("axes", "attr", of="ints"), _EPSILON, *_FLAGS],
    lowering=_lower_layer_norm,
    numpy=_layer_norm_reference,
    pure=True,
    layout=along("data", "axes"),
    examples=(
        example(f32(2, 5), f32(5), f32(5), axes=-1),
        example(f32("n", 3, 4), f32(3, 4), f32(3, 4), axes=[-2, -1], epsilon=0.01),
        example(f32("n", "m"), f32("m"), f32("m"), axes=[1], center=False),
        example(typed("float16", 2, 70), typed("float16", 70), typed("float16", 70), axes=[1], scale=False),
        example(f32(3, 2, 4), f32(4, 3), f32(4, 3), axes=[2, 0]),
    ),
)
def layer_norm(args: Arguments, context: TypeContext) -> TensorType:
    """(data - mean) / sqrt(variance + epsilon) over the axes, times gamma (if scale), plus beta (if center).

    gamma and beta have the sizes of the axes.
    """
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    for name in ("gamma", "beta"):
        _require_like(args, name, data, tensor(args, name, context))
    if data.ndim >= 0:
        axes = axes_of(args, args.axes, data.ndim)
        for name in ("gamma", "beta"):
            _parameter(args, name, data, axes, context)
    return data


@kernel_lowering
def _lower_rms_norm(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    axes = axes_of(args, args.axes, data.ndim)
    weight = kernel.input("weight", tuple(data.shape[axis] for axis in axes))
    wide = accumulator(kernel.dtype)

    def squared(*i: PrimExpr) -> PrimExpr:
        return te.cast(wide, data(*i)) * te.cast(wide, data(*i))

    square = reduce_stage(data.shape, axes, te.sum, squared, "square_sum", may_be_empty=False)
    count = element_count(data.shape, axes, wide)

    def formula(*i: PrimExpr) -> PrimExpr:
        factor = te.rsqrt(square(*kept(i, axes)) / count + args.epsilon)
        return te.cast(wide, data(*i)) * factor * te.cast(wide, weight(*(i[axis] for axis in axes)))

    return kernel.compute(formula, "rms_norm")


def _rms_norm_reference(data: Any, weight: Any, *, axes: Any, epsilon: float) -> Any:
    axes = tuple(axis % data.ndim for axis in axes)
    x = _wide(data)
    normal = x / np.sqrt((x * x).mean(axes, keepdims=True) + epsilon)
    shape = [data.shape[axis] if axis in axes else 1 for axis in range(data.ndim)]
    return (normal * _wide(weight).transpose(np.argsort(axes)).reshape(shape)).astype(data.dtype)


@register_op(
    "nn.rms_norm",
    [Param("data"), Param("weight"), Param("axes", "attr", (-1,), "ints"), _EPSILON],
    lowering=_lower_rms_norm,
    numpy=_rms_norm_reference,
    pure=True,
    layout=along("data", "axes"),
    examples=(
        example(f32(2, 5), f32(5)),
        example(f32("n", "m"), f32("m"), axes=-1),
        example(f32("n", 3, 4), f32(3, 4), axes=[1, 2], epsilon=0.1),
        example(typed("float16", 2, 70), typed("float16", 70)),
    ),
)
def rms_norm(args: Arguments, context: TypeContext) -> TensorType:
    """data / sqrt(mean(data**2) + epsilon) over the axes, times weight, which has the sizes of the axes."""
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    _require_like(args, "weight", data, tensor(args, "weight", context))
    if data.ndim >= 0:
        _parameter(args, "weight", data, axes_of(args, args.axes, data.ndim), context)
    return data


# ---------------------------------------------------------------------------------------------------------------------
# group_norm, instance_norm
# ---------------------------------------------------------------------------------------------------------------------


def _channel_rule(args: Arguments, context: TypeContext) -> tuple[TensorType, int, tuple[int, ...]]:
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    for name in ("gamma", "beta"):
        _require_like(args, name, data, tensor(args, name, context))
    if data.ndim < 0:
        return data, 0, ()
    channel = axis_of(args, args.channel_axis, data.ndim)
    axes = axes_of(args, args.axes, data.ndim)
    if channel in axes:
        raise shape_error(args, f"the channel axis {channel} is among the axes", "W204")
    for name in ("gamma", "beta"):
        _parameter(args, name, data, (channel,), context)
    return data, channel, axes


@kernel_lowering
def _lower_instance_norm(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    axes, channel = axes_of(args, args.axes, data.ndim), axis_of(args, args.channel_axis, data.ndim)
    sizes = (data.shape[channel],)
    gamma, beta = kernel.input("gamma", sizes), kernel.input("beta", sizes)
    return _normalised(kernel, data, tuple(sorted(axes)), lambda i: [i[channel]], gamma, beta, "instance_norm")


def _instance_norm_reference(
    data: Any, gamma: Any, beta: Any, *, channel_axis: int, axes: Any, epsilon: float, center: bool, scale: bool
) -> Any:
    shape = [1] * data.ndim
    shape[channel_axis] = data.shape[channel_axis]
    normal = _normal(_wide(data), tuple(axes), epsilon)
    return _affine(normal, gamma, beta, shape, center, scale).astype(data.dtype)


_CHANNEL_PARAMS = (Param("channel_axis", "attr", of="int"), Param("axes", "attr", of="ints"), _EPSILON, *_FLAGS)


@register_op(
    "nn.instance_norm",
    [Param("data"), Param("gamma"), Param("beta"), *_CHANNEL_PARAMS],
    lowering=_lower_instance_norm,
    numpy=_instance_norm_reference,
    pure=True,
    layout=normalising_channels,
    examples=(
        example(f32(2, 3, 4, 5), f32(3), f32(3), channel_axis=1, axes=[2, 3]),
        example(f32("n", 4, "c"), f32("c"), f32("c"), channel_axis=-1, axes=[1]),
    ),
)
def instance_norm(args: Arguments, context: TypeContext) -> TensorType:
    """data normalised over the axes for each instance and channel, times gamma, plus beta, given by channel."""
    return _channel_rule(args, context)[0]


@kernel_lowering
def _lower_group_norm(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    axes, channel = axes_of(args, args.axes, data.ndim), axis_of(args, args.channel_axis, data.ndim)
    sizes = (data.shape[channel],)
    gamma, beta = kernel.input("gamma", sizes), kernel.input("beta", sizes)
    rest: Dim = data.shape[channel] % args.num_groups
    kernel.require_equal(rest, 0, f"the number of channels is not a multiple of num_groups ({args.num_groups})")
    wide, width = accumulator(kernel.dtype), data.shape[channel] // args.num_groups
    # The channel axis is seen as two: group, and channel within the group.
    shape: Dims = (*data.shape[:channel], args.num_groups, width, *data.shape[channel + 1 :])
    over = tuple(sorted((channel + 1, *(axis + (axis > channel) for axis in axes))))

    def grouped(*i: PrimExpr) -> PrimExpr:
        joined = i[channel] * width + i[channel + 1]
        return te.cast(wide, data(*i[:channel], joined, *i[channel + 2 :]))

    count = element_count(shape, over, wide)
    total = reduce_stage(shape, over, te.sum, grouped, "mean_sum", may_be_empty=False)
    mean = te.compute(total.shape, lambda *i: total(*i) / count, "mean")

    def deviation(*i: PrimExpr) -> PrimExpr:
        difference = grouped(*i) - mean(*kept(i, over))
        return difference * difference

    squares = reduce_stage(shape, over, te.sum, deviation, "variance_sum", may_be_empty=False)
    variance = te.compute(squares.shape, lambda *i: squares(*i) / count, "variance")

    def formula(*i: PrimExpr) -> PrimExpr:
        split = (*i[:channel], i[channel] // width, i[channel] % width, *i[channel + 1 :])
        at = kept(split, over)
        normal = (te.cast(wide, data(*i)) - mean(*at)) * te.rsqrt(variance(*at) + args.epsilon)
        return _finished(args, normal, gamma(i[channel]), beta(i[channel]), wide)

    return kernel.compute(formula, "group_norm")


def _group_norm_reference(
    data: Any,
    gamma: Any,
    beta: Any,
    *,
    num_groups: int,
    channel_axis: int,
    axes: Any,
    epsilon: float,
    center: bool,
    scale: bool,
) -> Any:
    channel = channel_axis % data.ndim
    moved = np.moveaxis(_wide(data), channel, 0)
    groups = moved.reshape(num_groups, data.shape[channel] // num_groups, *moved.shape[1:])
    rest = [axis for axis in range(data.ndim) if axis != channel]
    over = (1, *(2 + rest.index(axis % data.ndim) for axis in axes))
    normal = np.moveaxis(_normal(groups, over, epsilon).reshape(moved.shape), 0, channel)
    shape = [1] * data.ndim
    shape[channel] = data.shape[channel]
    return _affine(normal, gamma, beta, shape, center, scale).astype(data.dtype)


@register_op(
    "nn.group_norm",
    [Param("data"), Param("gamma"), Param("beta"), Param("num_groups", "attr", of="int"), *_CHANNEL_PARAMS],
    lowering=_lower_group_norm,
    numpy=_group_norm_reference,
    pure=True,
    layout=normalising_channels,
    examples=(
        example(f32(2, 6, 4, 5), f32(6), f32(6), num_groups=3, channel_axis=1, axes=[2, 3]),
        example(f32("n", 4, "h", 4), f32(4), f32(4), num_groups=2, channel_axis=-1, axes=[1, 2], scale=False),
        example(typed("float16", 2, 4, 30), typed("float16", 4), typed("float16", 4), 2, 1, [2]),
    ),
)
def group_norm(args: Arguments, context: TypeContext) -> TensorType:
    """data normalised over the axes and the channels of each group, times gamma, plus beta, given by channel."""
    if args.num_groups < 1:
        raise shape_error(args, f"num_groups must be positive, got {args.num_groups}", "W205")
    data, channel, _ = _channel_rule(args, context)
    dims = dims_of(data)
    if dims is not None:
        rest: Dim = dims[channel] % args.num_groups
        context.require_equal(rest, 0, f"{args.name}: the channels ({dims[channel]}) modulo num_groups", args.span)
    return data


# ---------------------------------------------------------------------------------------------------------------------
# batch_norm
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_batch_norm(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data = kernel.input("data")
    axis = axis_of(args, args.axis, data.ndim)
    sizes = (data.shape[axis],)
    gamma, beta, moving_mean, moving_var = (
        kernel.input(name, sizes) for name in ("gamma", "beta", "moving_mean", "moving_var")
    )
    wide = accumulator(data.dtype)
    mean: Any = moving_mean
    variance: Any = moving_var
    if args.training:
        others = tuple(other for other in range(data.ndim) if other != axis)
        mean = mean_stage(data, others, wide)
        variance = squared_deviation_stage(data, mean, others, wide)

    def formula(*i: PrimExpr) -> PrimExpr:
        at = i[axis]
        deviation = te.cast(wide, data(*i)) - te.cast(wide, mean(at))
        normal = deviation * te.rsqrt(te.cast(wide, variance(at)) + args.epsilon)
        return te.cast(data.dtype, _finished(args, normal, gamma(at), beta(at), wide))

    def moved(old: Any, new: Any, label: str) -> te.Tensor:
        def element(c: PrimExpr) -> PrimExpr:
            if not args.training:
                return old(c)
            keep, take = 1 - args.momentum, args.momentum
            return te.cast(data.dtype, te.cast(wide, old(c)) * keep + new(c) * take)

        return te.compute(sizes, element, label)

    return kernel.finish(
        te.compute(data.shape, formula, "batch_norm"),
        moved(moving_mean, mean, "new_mean"),
        moved(moving_var, variance, "new_var"),
    )


def _batch_norm_reference(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    *,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> Any:
    x = _wide(data)
    others = tuple(other for other in range(x.ndim) if other != axis % x.ndim)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    mean = x.mean(others) if training else _wide(moving_mean)
    variance = x.var(others) if training else _wide(moving_var)
    normal = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    out = _affine(normal, gamma, beta, shape, center, scale).astype(data.dtype)
    if not training:
        return out, moving_mean.copy(), moving_var.copy()
    new_mean = (1 - momentum) * _wide(moving_mean) + momentum * mean
    new_var = (1 - momentum) * _wide(moving_var) + momentum * variance
    return out, new_mean.astype(data.dtype), new_var.astype(data.dtype)


_POSITIVE = {"moving_var": (0.5, 2)}


@register_op(
    "nn.batch_norm",
    [
        *(Param(name) for name in ("data", "gamma", "beta", "moving_mean", "moving_var")),
        Param("axis", "attr", of="int"),
        _EPSILON,
        *_FLAGS,
        Param("momentum", "attr", 0.1, "float"),
        Param("training", "attr", True, "bool"),
    ],
    lowering=_lower_batch_norm,
    numpy=_batch_norm_reference,
    pure=True,
    layout=batch_normalising,
    examples=(
        example(f32(2, 3, 4), *(f32(3) for _ in range(4)), axis=1, ranges=_POSITIVE),
        example(f32(4, "c"), *(f32("c") for _ in range(4)), axis=-1, training=False, ranges=_POSITIVE),
        example(f32(3, 2), *(f32(2) for _ in range(4)), axis=1, momentum=0.3, center=False, ranges=_POSITIVE),
    ),
)
def batch_norm(args: Arguments, context: TypeContext) -> TupleType:
    """A triple: data normalised for each index along an axis, and the running mean and variance.

    With training the statistics are those of data, and the running ones move towards them by momentum; without it the
    running ones are used and stay. gamma (if scale) and beta (if center) have the size of the axis.
    """
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    names = ("gamma", "beta", "moving_mean", "moving_var")
    for name in names:
        _require_like(args, name, data, tensor(args, name, context))
    if data.ndim >= 0:
        axis = axis_of(args, args.axis, data.ndim)
        for name in names:
            _parameter(args, name, data, (axis,), context)
    return TupleType((data, tensor(args, "moving_mean", context), tensor(args, "moving_var", context)))
