"""Activations of neural networks beyond those of `nn.activations`, each over elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft.ir.graph import Expr
from weft.ir.op.common import example, f32, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Numbers, Param
from weft.ir.op.layout_rules.families import broadcasting
from weft.ir.op.precision import RANGE, Precision, follow
from weft.ir.op.untyped import untyped_np

__all__: list[str] = []

_FAMILY = "nn_activations"
_FOLLOWS = follow("data")
_SHOWN = (example(f32(2, 3)), example(f32("n", 4)), example(typed("float64", 5)))


def _wide(function: Numbers) -> Callable[..., Any]:
    """A reference in double precision, rounded to the dtype of the data."""

    def reference(data: Any, **attributes: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.asarray(cast("Callable[..., Any]", function)(data.astype("float64"), **attributes)).astype(
                data.dtype
            )

    return reference


def _activation(
    name: str, doc: str, numpy: Numbers, *attributes: Param, precision: Precision = _FOLLOWS
) -> Callable[[Callable[[Parts], Expr]], Any]:
    params = (Param("data"), *attributes)
    return composite(
        f"nn.{name}",
        params,
        numpy=_wide(numpy),
        examples=_SHOWN,
        family=_FAMILY,
        doc=doc,
        layout=broadcasting("data"),
        precision=precision,
    )


def _if_positive(args: Parts, then: Expr, otherwise: Expr) -> Expr:
    return call("where", call("greater", args.data, args.number(0, "data")), then, otherwise)


@_activation(
    "elu",
    "data where it is positive, else alpha * (exp(data) - 1).",
    lambda x, alpha: untyped_np.where(x > 0, x, alpha * np.expm1(x)),
    Param("alpha", "attr", 1.0, "float"),
)
def elu(args: Parts) -> Expr:
    args.require("data", "float")
    return _if_positive(args, args.data, call("multiply", call("expm1", args.data), args.alpha))


@_activation(
    "celu",
    "data where it is positive, else alpha * (exp(data / alpha) - 1).",
    lambda x, alpha: untyped_np.where(x > 0, x, alpha * np.expm1(x / alpha)),
    Param("alpha", "attr", 1.0, "float"),
)
def celu(args: Parts) -> Expr:
    args.require("data", "float")
    if not args.alpha:
        raise args.error("alpha divides, and is 0")
    power = call("expm1", call("multiply", args.data, 1 / args.alpha))
    return _if_positive(args, args.data, call("multiply", power, args.alpha))


@_activation("mish", "data * tanh(softplus(data)).", lambda x: x * np.tanh(np.logaddexp(x, 0)))
def mish(args: Parts) -> Expr:
    args.require("data", "float")
    return call("multiply", args.data, call("tanh", call("log_add_exp", args.data, args.number(0, "data"))))


@_activation("softsign", "data / (1 + |data|).", lambda x: x / (1 + np.abs(x)))
def softsign(args: Parts) -> Expr:
    args.require("data", "float")
    return call("divide", args.data, call("add", call("abs", args.data), 1))


@_activation(
    "hardtanh",
    "data limited to [min_val, max_val].",
    lambda x, min_val, max_val: np.clip(x, min_val, max_val),
    Param("min_val", "attr", -1.0, "float"),
    Param("max_val", "attr", 1.0, "float"),
)
def hardtanh(args: Parts) -> Expr:
    args.require("data", "float")
    return call("clip", args.data, args.min_val, args.max_val)


@_activation(
    "hardsigmoid",
    "alpha * data + beta, limited to [0, 1].",
    lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    Param("alpha", "attr", 1 / 6, "float"),
    Param("beta", "attr", 0.5, "float"),
)
def hardsigmoid(args: Parts) -> Expr:
    args.require("data", "float")
    return call("clip", call("add", call("multiply", args.data, args.alpha), args.beta), 0, 1)


@_activation("hardswish", "data * hardsigmoid(data).", lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
def hardswish(args: Parts) -> Expr:
    args.require("data", "float")
    return call("multiply", args.data, call("nn.hardsigmoid", args.data))


@_activation(
    "logsigmoid", "log(1 / (1 + exp(-data))), without overflow.", lambda x: -np.logaddexp(0, -x), precision=RANGE
)
def logsigmoid(args: Parts) -> Expr:
    args.require("data", "float")
    return call("negative", call("log_add_exp", call("negative", args.data), args.number(0, "data")))


@_activation(
    "thresholded_relu",
    "data where it is above alpha, else 0.",
    lambda x, alpha: untyped_np.where(x > alpha, x, 0),
    Param("alpha", "attr", 1.0, "float"),
)
def thresholded_relu(args: Parts) -> Expr:
    args.require("data", "float")
    zero, limit = args.number(0, "data"), args.number(args.alpha, "data")
    return call("where", call("greater", args.data, limit), args.data, zero)


@_activation(
    "softshrink",
    "data moved towards 0 by alpha, 0 within.",
    lambda x, alpha: np.sign(x) * np.maximum(np.abs(x) - alpha, 0),
    Param("alpha", "attr", 0.5, "float"),
)
def softshrink(args: Parts) -> Expr:
    args.require("data", "float")
    zero = args.number(0, "data")
    high = call("maximum", call("subtract", args.data, args.alpha), zero)
    return call("add", high, call("minimum", call("add", args.data, args.alpha), zero))


@_activation(
    "hardshrink",
    "data where it is further than alpha from 0, else 0.",
    lambda x, alpha: untyped_np.where(np.abs(x) > alpha, x, 0),
    Param("alpha", "attr", 0.5, "float"),
)
def hardshrink(args: Parts) -> Expr:
    args.require("data", "float")
    far = call("greater", call("abs", args.data), args.number(args.alpha, "data"))
    return call("where", far, args.data, args.number(0, "data"))


def _rotated(x: Any, cos: Any, sin: Any, *, interleaved: bool) -> Any:
    if interleaved:
        first, second = x[..., ::2], x[..., 1::2]
    else:
        first, second = np.split(x, 2, -1)
    parts = first * cos - second * sin, first * sin + second * cos
    if interleaved:
        return np.stack(parts, -1).reshape(x.shape).astype(x.dtype)
    return np.concatenate(parts, -1).astype(x.dtype)


@composite(
    "nn.rotary_embedding",
    [Param("x"), Param("cos"), Param("sin"), Param("interleaved", "attr", False, "bool")],
    family=_FAMILY,
    numpy=_rotated,
    examples=(
        example(f32(2, 3, 4), f32(3, 2), f32(3, 2)),
        example(f32(1, "n", 6), f32("n", 3), f32("n", 3), interleaved=True),
    ),
)
def rotary_embedding(args: Parts) -> Expr:
    """The pairs of the last axis of x turned by angles, given by their cosines and sines (half as long, broadcast).

    Pairs are one of each half, or neighbours with interleaved. Source: Su et al., RoFormer, 2021.
    """
    dims = args.dims("x")
    size, rank = dims[-1] if dims else 1, len(dims)
    if not isinstance(size, int) or size % 2:
        raise args.error(f"the last axis of x has an even number of elements, it has {size}")
    half = size // 2
    if interleaved := args.interleaved:
        pairs = call("reshape", args.x, (*dims[:-1], half, 2))
        parts = [call("squeeze", call("strided_slice", pairs, [rank], [k], [k + 1]), axis=[rank]) for k in (0, 1)]
    else:
        parts = [call("strided_slice", args.x, [rank - 1], [k * half], [(k + 1) * half]) for k in (0, 1)]
    first, second = parts
    left = call("subtract", call("multiply", first, args.cos), call("multiply", second, args.sin))
    right = call("add", call("multiply", first, args.sin), call("multiply", second, args.cos))
    if interleaved:
        return call("reshape", call("stack", (left, right), axis=rank), dims)
    return call("concat", (left, right), axis=rank - 1)
