"""Activations and other elementwise operators of neural networks.

Shape and dtype: those of data, which is floating except for relu. Errors: DTypeError W321; ShapeError W201, W203.
Types narrower than float32 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, product
from weft.ir.kernel.prim import intrinsic
from weft.ir.op.common import (
    Kernel,
    axis_of,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Numbers, OpDef, Param
from weft.ir.op.layout_rules.families import along, broadcasting, with_mask
from weft.ir.op.precision import RANGE, Precision, Reads, follow, never
from weft.ir.op.reductions.reduction import accumulator, sizes_of
from weft.ir.op.registry import add_op, register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType

__all__ = ["erf"]

Scalar = Callable[[PrimExpr], PrimExpr] | Callable[[PrimExpr, Any], PrimExpr] | Callable[[PrimExpr, Any, Any], PrimExpr]


def erf(x: Any) -> Any:
    """The error function for references, in double precision by the standard library."""
    return np.vectorize(math.erf, otypes=[np.float64])(x) if np.size(x) else np.zeros(np.shape(x))


def _activation(
    name: str,
    doc: str,
    scalar: Scalar,
    numpy: Numbers,
    params: tuple[Param, ...] = (),
    domain: str = "float",
    precision: Precision | None = None,
    **options: Any,
) -> OpDef:
    """Declare an elementwise operator; `scalar` and `numpy` take the value and the attributes by name."""

    def rule(args: Arguments, context: TypeContext) -> TensorType:
        data = tensor(args, "data", context)
        require_dtype(args, "data", data, domain)
        return data

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        data = kernel.input("data")
        wide = accumulator(kernel.dtype)
        attrs = {param.name: args[param.name] for param in params}
        function = cast("Callable[..., PrimExpr]", scalar)
        return kernel.compute(lambda *i: function(te.cast(wide, data(*i)), **attrs), name.rpartition(".")[2])

    def reference(data: Any, **attrs: Any) -> Any:
        exact = data.astype(np.float64) if np.issubdtype(data.dtype, np.floating) else data
        return np.asarray(cast("Callable[..., Any]", numpy)(exact, **attrs)).astype(data.dtype)

    examples = [example(f32(2, 3)), example(f32("n", 4), ranges={"data": (-30, 30)}), example(typed("float16", "n"))]
    if options:
        examples.append(example(f32(2, 3), **options))
    if domain == "number":
        examples.append(example(typed("int32", 2, 3)))
    return add_op(
        OpDef(
            name,
            (Param("data"), *params),
            rule,
            doc,
            lowering,
            numpy=reference,
            pure=True,
            examples=tuple(examples),
            family="nn_activations",
            layout=broadcasting("data"),
            precision=precision or follow("data"),
        )
    )


def _sigmoid(x: Any) -> Any:
    decay: Any = np.exp(-np.abs(x))
    return untyped_np.where(x >= 0, 1 / (1 + decay), decay / (1 + decay))


def _gelu_tanh(x: PrimExpr) -> PrimExpr:
    # (1 + tanh(u)) / 2 is sigmoid(2 u), which loses no digits where the result is small.
    double = 2 * math.sqrt(2 / math.pi)
    return x * te.sigmoid(x * (0.044715 * double * x * x + double))


def _softplus(x: PrimExpr, beta: float, threshold: float) -> PrimExpr:
    # Above the threshold the function is x to within rounding, and exp would overflow.
    small = intrinsic("log1p", te.exp(te.minimum(x * beta, threshold))) / beta
    return te.select(x * beta > threshold, x, small)


_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

_activation(
    "nn.relu",
    "max(data, 0), elementwise.",
    lambda x: te.maximum(x, 0),
    lambda x: np.maximum(x, 0),
    domain="number",
)
_activation(
    "nn.relu6",
    "min(max(data, 0), 6), elementwise.",
    lambda x: te.minimum(te.maximum(x, 0), 6),
    lambda x: np.clip(x, 0, 6),
    domain="number",
)
_activation(
    "nn.leakyrelu",
    "data where it is positive, alpha * data elsewhere.",
    lambda x, alpha: te.select(x > 0.0, x, x * alpha),
    lambda x, alpha: untyped_np.where(x > 0, x, x * alpha),
    (Param("alpha", "attr", 0.01, "float"),),
    alpha=0.3,
)
_activation(
    "nn.silu",
    "data * sigmoid(data), elementwise.",
    lambda x: x * te.sigmoid(x),
    lambda x: x * _sigmoid(x),
)
_activation(
    "nn.gelu",
    "data * P(X <= data) for a standard normal X, elementwise, by the error function.",
    lambda x: 0.5 * x * (te.erf(x * math.sqrt(0.5)) + 1.0),
    lambda x: 0.5 * x * (1 + erf(x * math.sqrt(0.5))),
)
_activation(
    "nn.gelu_tanh",
    "The approximation of gelu by tanh, elementwise.",
    _gelu_tanh,
    lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
)
_activation(
    "nn.selu",
    "scale * (max(data, 0) + min(alpha * (exp(data) - 1), 0)) with the self-normalising constants.",
    lambda x: _SCALE * te.select(x > 0.0, x, _ALPHA * (te.exp(te.minimum(x, 0.0)) - 1.0)),
    lambda x: _SCALE * untyped_np.where(x > 0, x, _ALPHA * np.expm1(np.minimum(x, 0))),
)
_activation(
    "nn.softplus",
    "log(1 + exp(beta * data)) / beta, elementwise; data itself where beta * data exceeds the threshold.",
    _softplus,
    lambda x, beta, threshold: untyped_np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta),
    (Param("beta", "attr", 1.0, "float"), Param("threshold", "attr", 20.0, "float")),
    beta=2.0,
    threshold=1.0,
    precision=RANGE,
)


# ---------------------------------------------------------------------------------------------------------------------
# prelu
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_prelu(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    data = kernel.input("data")
    axis = axis_of(args, args.axis, data.ndim)
    one = sizes_of(args, "alpha", context)[0] == 1
    alpha = kernel.input("alpha", (1,) if one else (data.shape[axis],))
    return kernel.compute(
        lambda *i: te.select(data(*i) > 0.0, data(*i), data(*i) * alpha(0 if one else i[axis])), "prelu"
    )


def _prelu_reference(data: Any, alpha: Any, *, axis: int) -> Any:
    shape = [1] * data.ndim
    shape[axis] = alpha.size
    return untyped_np.where(data > 0, data, data * alpha.reshape(shape)).astype(data.dtype)


@register_op(
    "nn.prelu",
    [Param("data"), Param("alpha"), Param("axis", "attr", 1, "int")],
    lowering=_lower_prelu,
    numpy=_prelu_reference,
    pure=True,
    layout=along("data"),
    examples=(
        example(f32(2, 3, 4), f32(3)),
        example(f32("n", "c"), f32("c"), axis=-1),
        example(f32("n", 3), f32(1)),
    ),
    precision=follow("data", "alpha"),
)
def prelu(args: Arguments, context: TypeContext) -> TensorType:
    """data where it is positive, elsewhere data times alpha, which has a value for each index along an axis, or one."""
    data, alpha = tensor(args, "data", context), tensor(args, "alpha", context)
    require_dtype(args, "data", data, "float")
    same_dtype(args, data, alpha)
    require_rank(args, "alpha", alpha, 1)
    if data.ndim >= 0:
        axis = axis_of(args, args.axis, data.ndim)
        sizes, slopes = dims_of(data), dims_of(alpha)
        if sizes is not None and slopes is not None and slopes[0] != 1:
            context.require_equal(
                sizes[axis], slopes[0], f"{args.name}: the size of axis {axis} and of alpha", args.span
            )
    return data


# ---------------------------------------------------------------------------------------------------------------------
# dropout, batch_flatten, pixel_shuffle
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_dropout(kernel: Kernel) -> PrimFunc | None:
    data = kernel.input("data")
    out = te.compute(data.shape, lambda *i: data(*i), "dropout")
    return kernel.finish(out, te.compute(data.shape, lambda *i: te.const(1, data.dtype), "mask"))


@register_op(
    "nn.dropout",
    [Param("data"), Param("rate", "attr", 0.5, "float")],
    lowering=_lower_dropout,
    numpy=lambda data, rate: (data.copy(), np.ones_like(data)),
    pure=True,
    layout=with_mask,
    examples=(example(f32(2, 3)), example(f32("n", 4), rate=0.1)),
    precision=never("only training needs it"),
)
def dropout(args: Arguments, context: TypeContext) -> TupleType:
    """A pair: data as it is (nothing is dropped when a model is run, only when it is trained), and a mask of ones."""
    data = tensor(args, "data", context)
    require_dtype(args, "data", data, "float")
    if not 0 <= args.rate <= 1:
        raise shape_error(args, f"rate must be in [0, 1], got {args.rate}", "W205")
    return TupleType((data, data))


def _numpy_flatten(data: Any) -> Any:
    return data.reshape(data.shape[0], math.prod(data.shape[1:]))


@kernel_lowering
def _lower_batch_flatten(kernel: Kernel) -> PrimFunc | None:
    data = kernel.input("data")

    def formula(row: PrimExpr, position: PrimExpr) -> PrimExpr:
        indices: list[PrimExpr] = []
        for size in reversed(data.shape[2:]):
            indices.append(position % size)
            position = position // size
        return data(row, *([position] if data.ndim > 1 else []), *reversed(indices))

    return kernel.compute(formula, "batch_flatten")


@register_op(
    "nn.batch_flatten",
    [Param("data")],
    lowering=_lower_batch_flatten,
    numpy=_numpy_flatten,
    pure=True,
    examples=(example(f32(2, 3, 4)), example(f32("n", 3, "m")), example(f32("n", 3))),
    precision=follow("data", reads=Reads.WHOLE),
)
def batch_flatten(args: Arguments, context: TypeContext) -> TensorType:
    """The tensor as a matrix: the first axis stays, the others become one. ShapeError W202: fewer than two axes."""
    data = tensor(args, "data", context)
    if data.ndim in (0, 1):
        raise shape_error(args, f"data has {data.ndim} dimensions, and needs at least two")
    dims = dims_of(data)
    return (
        TensorType(dtype=data.dtype, ndim=2) if dims is None else TensorType((dims[0], product(dims[1:])), data.dtype)
    )


@kernel_lowering
def _lower_pixel_shuffle(kernel: Kernel) -> PrimFunc | None:
    args = kernel.args
    data, factor = kernel.input("data"), args.upscale_factor
    rest: Dim = data.shape[-3] % factor**2
    kernel.require_equal(rest, 0, f"the number of channels is not a multiple of {factor**2}")

    def formula(*i: PrimExpr) -> PrimExpr:
        *batch, channel, row, column = i
        source = (channel * factor + row % factor) * factor + column % factor
        return data(*batch, source, row // factor, column // factor)

    return kernel.compute(formula, "pixel_shuffle")


def _pixel_shuffle_reference(data: Any, *, upscale_factor: int) -> Any:
    *batch, channels, height, width = data.shape
    r = upscale_factor
    split = data.reshape(*batch, channels // r**2, r, r, height, width)
    first = len(batch)
    order = (*range(first + 1), first + 3, first + 1, first + 4, first + 2)
    return split.transpose(order).reshape(*batch, channels // r**2, height * r, width * r)


@register_op(
    "nn.pixel_shuffle",
    [Param("data"), Param("upscale_factor", "attr", of="int")],
    lowering=_lower_pixel_shuffle,
    numpy=_pixel_shuffle_reference,
    pure=True,
    examples=(example(f32(2, 8, 3, 4), 2), example(f32(9, "h", "w"), 3)),
    precision=follow("data", reads=Reads.WHOLE),
)
def pixel_shuffle(args: Arguments, context: TypeContext) -> TensorType:
    """Channels moved into the plane: (..., c * r**2, h, w) -> (..., c, h * r, w * r) for the factor r."""
    data, factor = tensor(args, "data", context), args.upscale_factor
    if factor < 1:
        raise shape_error(args, f"upscale_factor must be positive, got {factor}", "W205")
    if 0 <= data.ndim < 3:
        raise shape_error(args, f"data needs at least 3 dimensions, got {data.ndim}")
    dims = dims_of(data)
    if dims is None:
        return TensorType(dtype=data.dtype, ndim=data.ndim)
    *batch, channels, height, width = dims
    rest: Dim = channels % factor**2
    context.require_equal(rest, 0, f"{args.name}: the channels ({channels}) modulo upscale_factor**2", args.span)
    return TensorType((*batch, channels // factor**2, height * factor, width * factor), data.dtype)
