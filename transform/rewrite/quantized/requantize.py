"""Quantized sums of dequantized values: integers under another scale, by a fixed-point product.

    R.quantize(R.dequantize(total, s), t, z)                   -> R.requantize(total, s / t, z)
    R.quantize(R.nn.relu(R.dequantize(total, s)), t, z)        -> R.maximum(R.requantize(total, s / t, z), z)
    R.quantize(R.dequantize(total, s) + bias, t, z)            -> R.requantize(total + bias / s, s / t, z)
    R.quantize(R.dequantize(a, s) + R.dequantize(b, u), t, z)  -> R.requantize(a + R.requantize(b, u / s), s / t, z)
    R.quantize(R.mean(R.dequantize(a, s)), t, z)               -> R.requantize(R.sum(a), s / count / t, z)

What the integers stand for is followed through sums, `relu`, means and factors up to the `dequantize` before them, with
the largest value that they can have: where int32 has no room, the rule does not hold. Constants become whole numbers
under the scale of what they are added to. The greatest error of a result is one step of it, where floats would have
rounded to the other side of a half.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from weft.dtypes import bits, is_integer
from weft.ir import Call, Constant, Expr, Function, Op, TensorType, Var
from weft.ir.op import OPS, get_op
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.quantized.operands import (
    Dequantized,
    called,
    constant_of,
    dequantized,
    fixed_point,
    limits,
    scalar,
    tensor_dims,
    whole,
)
from weft.transform.rewrite.quantized.products import CONVOLUTIONS, TRANSPOSED_CONVOLUTIONS

__all__ = ["REQUANTIZATIONS"]

_ROOM = 1 << 30
"""The largest value that a term of a sum may have."""
_FINE = 4.0
"""How many steps of a sum of products one step of what is added to it has at least, so that rounding it is harmless."""


@dataclass(frozen=True)
class _Integers:
    """Integers of a tensor and what one of them is worth: `scale` has shape () or (n,), for the axis from the end.

    No value is larger than `bound`; `is_product` where they are sums of products, whose steps are fine.
    """

    data: Expr
    scale: np.ndarray
    axis: int
    bound: float
    is_product: bool = False

    def along(self, values: np.ndarray) -> dict[str, int]:
        """The attribute of an operator with these values along the axis."""
        return {"axis": self.axis} if values.ndim else {}

    def spread(self) -> np.ndarray:
        """The scale in a shape that is broadcast over the tensor."""
        return self.scale.reshape(-1, *(1,) * (-self.axis - 1)) if self.scale.ndim else self.scale


# What integers a value of floats stands for


def _integers(site: Site, expr: Expr) -> _Integers | None:
    value = site.value(expr)
    name = value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else ""
    follow = _FOLLOWED.get(name)
    return None if follow is None or not isinstance(value, Call) else follow(site, value)


def _of_dequantized(site: Site, call: Call) -> _Integers | None:
    found = dequantized(site, call)
    if found is None or bits(found.dtype) > 32 or found.dtype == "uint32":
        return None
    data, bound = found.data, _bound(site, found.data, found.dtype)
    if found.zero.any():
        if found.zero.ndim or bits(found.dtype) > 16:
            return None
        data = get_op("subtract")(get_op("astype")(data, "int32"), whole(int(found.zero)))
        bound += abs(int(found.zero))
    return _Integers(data, found.scale, found.axis - found.ndim, bound, is_product=found.dtype == "int32")


def _bound(site: Site, expr: Expr, dtype: str) -> float:
    """The largest value that integers can have."""
    low, high = limits(dtype)
    most = float(max(-low, high))
    if bits(dtype) <= 16:
        return most
    known = constant_of(site, expr)
    if known is not None:
        return float(np.abs(known.astype("float64")).max(initial=0))
    value = site.value(expr)
    if called(value, "matmul", *CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS) is not None and isinstance(value, Call):
        types = [site.tensor(arg) for arg in value.args]
        if any(ty is None or bits(ty.dtype or "int64") > 8 for ty in types):
            return most
        dims = tensor_dims(types[1])
        terms = dims[-2:-1] if called(value, "matmul") else _without_outputs(value, dims)
        return min(most, math.prod(terms) * 128.0 * 128.0) if all(isinstance(dim, int) for dim in terms) else most
    if (total := called(value, "add", "subtract")) is not None:
        return min(most, sum(_bound(site, arg, dtype) for arg in total.args))
    return most


def _without_outputs(call: Call, dims: tuple[Any, ...]) -> tuple[Any, ...]:
    assert isinstance(call.op, Op)
    output = OPS[call.op.name].values(call)["kernel_layout"].index("O")
    return tuple(dim for axis, dim in enumerate(dims) if axis != output)


def _of_relu(site: Site, call: Call) -> _Integers | None:
    inner = _integers(site, call.args[0])
    return None if inner is None else replace(inner, data=get_op("maximum")(_wide(site, inner.data), whole(0)))


def _wide(site: Site, data: Expr) -> Expr:
    ty = site.tensor(data) if isinstance(data, (Var, Constant)) else None
    return get_op("astype")(data, "int32") if ty is not None and ty.dtype != "int32" else data


def _of_factor(site: Site, call: Call) -> _Integers | None:
    """A value times a positive number, or divided by one."""
    for place in (1, 0):
        factor = constant_of(site, call.args[place])
        if factor is None or factor.size != 1 or not factor.reshape(()) > 0 or factor.ndim:
            continue
        if called(call, "divide") is not None and place == 0:
            continue
        inner = _integers(site, call.args[1 - place])
        if inner is not None:
            number = float(factor)
            return replace(inner, scale=inner.scale / number if called(call, "divide") else inner.scale * number)
    return None


def _of_sum(site: Site, call: Call) -> _Integers | None:
    for value, other in (call.args, call.args[::-1]):
        known = constant_of(site, other)
        if known is not None:
            inner = _integers(site, value)
            return None if inner is None else _with_constant(site, inner, value, known)
    left, right = (_integers(site, arg) for arg in call.args)
    types = [site.tensor(arg) for arg in call.args]
    if left is None or right is None or tensor_dims(types[0]) != tensor_dims(types[1]):
        return None
    if right.is_product and not left.is_product:
        left, right = right, left
    return _joined(left, right) or _rescaled(left, right)


def _with_constant(site: Site, inner: _Integers, value: Expr, known: np.ndarray) -> _Integers | None:
    ty = site.tensor(value)
    if ty is None or known.ndim > ty.ndim or not np.isfinite(known).all():
        return None
    steps = np.rint(known.astype("float64") / inner.spread())
    if np.abs(steps).max(initial=0) + inner.bound > 2 * _ROOM or not _fits(steps.shape, tensor_dims(ty)):
        return None
    if not inner.is_product:
        return None  # too coarse for what is added
    data, steps = _without_constant(site, _wide(site, inner.data), steps)
    data = get_op("add")(data, whole(steps)) if steps.any() else data
    return replace(inner, data=data, bound=inner.bound + float(np.abs(steps).max(initial=0)))


def _without_constant(site: Site, data: Expr, steps: np.ndarray) -> tuple[Expr, np.ndarray]:
    """A sum of a value and a constant as the value alone, its constant joined with what is added to it."""
    total = called(site.value(data), "add", "subtract")
    known = None if total is None else constant_of(site, total.args[1])
    if total is None or known is None:
        return data, steps
    return total.args[0], steps - known if called(total, "subtract") else steps + known


def _fits(shape: tuple[int, ...], dims: tuple[Any, ...]) -> bool:
    """Whether values of a shape are broadcast over a tensor without making it larger."""
    pairs = zip(shape, dims[len(dims) - len(shape) :], strict=True)
    return len(shape) <= len(dims) and all(size in (1, dim) for size, dim in pairs)


def _joined(left: _Integers, right: _Integers) -> _Integers | None:
    """Sums of products, and what is added to them under their scale."""
    ratio = right.scale / left.scale if not right.scale.ndim else None
    if not left.is_product or ratio is None or float(np.min(ratio)) < _FINE:
        return None
    bound = right.bound * float(np.max(ratio))
    fixed = fixed_point(ratio)
    if fixed is None or bound > _ROOM or left.bound > _ROOM:
        return None
    added = _under(right.data, fixed, left, ratio)
    return replace(left, data=get_op("add")(left.data, added), bound=left.bound + bound)


def _under(data: Expr, fixed: tuple[np.ndarray, int], like: _Integers, factors: np.ndarray) -> Expr:
    along = like.along(factors)
    return get_op("requantize")(data, scalar(fixed[0], "int32"), 0, shift=fixed[1], **along, out_dtype="int32")


def _power_of_two(size: float) -> float:
    """The least power of two that is not below a positive size."""
    fraction, exponent = math.frexp(size)
    return math.ldexp(1.0, exponent - (fraction == 0.5))


def _at_scale(part: _Integers, room: float, most: float) -> _Integers | None:
    """The integers under one scale, so fine that what stands for `most` just has room."""
    scale = _power_of_two(most / room) if 0 < most < math.inf else 0.0
    fixed = fixed_point(part.scale / scale) if scale else None
    if fixed is None:
        return None
    return _Integers(_under(part.data, fixed, part, part.scale), np.asarray(scale), -1, room, is_product=True)


def _largest(part: _Integers) -> float:
    """The largest value that the integers stand for."""
    return part.bound * float(np.max(part.scale))


def _rescaled(left: _Integers, right: _Integers) -> _Integers | None:
    """The sum of both under one scale."""
    most = max(_largest(left), _largest(right))
    a, b = (_at_scale(part, _ROOM / 4, most) for part in (left, right))
    if a is None or b is None:
        return None
    return replace(a, data=get_op("add")(a.data, b.data), bound=a.bound + b.bound)


def _of_mean(site: Site, call: Call) -> _Integers | None:
    args = OPS["mean"].values(call)
    inner, ty = _integers(site, call.args[0]), site.tensor(call.args[0])
    if inner is None or ty is None:
        return None
    axes = range(ty.ndim) if args["axis"] is None else [axis % ty.ndim for axis in args["axis"]]
    return _mean(site, inner, [tensor_dims(ty)[axis] for axis in axes], args["axis"], args["keepdims"])


def _of_pool(site: Site, call: Call) -> _Integers | None:
    """The mean over the whole image."""
    assert isinstance(call.op, Op)
    args = OPS[call.op.name].values(call)
    inner, ty = _integers(site, call.args[0]), site.tensor(call.args[0])
    if inner is None or ty is None or args["out_layout"] not in (None, args["layout"]):
        return None
    sizes = args["output_size"]
    if sizes is None or any(size != 1 for size in sizes) or not args["layout"].isupper():
        return None
    axes = tuple(axis for axis, letter in enumerate(args["layout"]) if letter not in "NC")
    return _mean(site, inner, [tensor_dims(ty)[axis] for axis in axes], axes, keepdims=True)


def _mean(site: Site, inner: _Integers, sizes: list[Any], axis: Any, keepdims: bool) -> _Integers | None:
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    count = math.prod(sizes)
    if inner.scale.ndim or inner.bound * count > _ROOM:
        known = _at_scale(inner, _ROOM / count, _largest(inner))
        if known is None or count > _ROOM / 1024:
            return None
        inner = known
    data = get_op("sum")(_wide(site, inner.data), axis=axis, keepdims=keepdims)
    return _Integers(data, inner.scale / count, -1, inner.bound * count, is_product=True)


_FOLLOWED: dict[str, Callable[[Site, Call], _Integers | None]] = {
    "dequantize": _of_dequantized,
    "permute_dims": _of_dequantized,
    "nn.relu": _of_relu,
    "add": _of_sum,
    "multiply": _of_factor,
    "divide": _of_factor,
    "mean": _of_mean,
    "nn.adaptive_avg_pool1d": _of_pool,
    "nn.adaptive_avg_pool2d": _of_pool,
    "nn.adaptive_avg_pool3d": _of_pool,
}
"""How integers are followed through operators."""


# The rule


@dataclass(frozen=True)
class _Limits:
    """A value, and between which numbers it is limited."""

    value: Expr
    low: float = -math.inf
    high: float = math.inf


def _limited(site: Site, expr: Expr) -> _Limits:
    """What is below the limits (`relu`, `clip`, ...) around a value: what is quantized may be limited after that."""
    low, high = -math.inf, math.inf
    while (found := _limits_of(site, site.value(expr))) is not None:
        # The outer limits hold in the end.
        low = min(max(low, found.low), high)
        high = max(min(high, found.high), low)
        expr = found.value
    return _Limits(expr, low, high)


def _limits_of(site: Site, value: Expr) -> _Limits | None:
    """What a call limits by numbers that are known."""
    if (call := called(value, "nn.relu", "nn.relu6")) is not None:
        return _Limits(call.args[0], 0.0, 6.0 if called(call, "nn.relu6") else math.inf)
    if (call := called(value, "clip", "maximum", "minimum")) is None:
        return None
    inner, *others = call.args if constant_of(site, call.args[0]) is None else call.args[::-1]
    bounds = [constant_of(site, bound) for bound in others]
    numbers = [float(bound) for bound in bounds if bound is not None and bound.ndim == 0]
    if len(numbers) < len(bounds) or not numbers or any(map(math.isnan, numbers)):
        return None
    low = -math.inf if called(call, "minimum") else numbers[0]
    return _Limits(inner, low, math.inf if called(call, "maximum") else numbers[-1])


def _requantized(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    args = OPS["quantize"].values(site.call)
    scale, zero = (constant_of(site, args[name]) for name in ("scale", "zero_point"))
    dtype = args["out_dtype"]
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or zero.dtype.kind not in "iu":
        return None
    if args["group_size"] or bits(dtype) > 16 or not is_integer(dtype) or not 0 < float(scale.reshape(())) < math.inf:
        return None
    step, origin = float(scale.reshape(())), int(zero.reshape(()))
    inside = _limited(site, args["data"])
    data = _same(site, inside.value, step, origin, dtype)
    if data is None:
        found = _integers(site, inside.value)
        fixed = None if found is None else fixed_point(found.scale / step)
        if found is None or fixed is None or found.bound >= 1 << 31:
            return None
        attrs = {"shift": fixed[1], **found.along(found.scale), "out_dtype": dtype}
        data = get_op("requantize")(found.data, scalar(fixed[0], "int32"), origin, **attrs)
    return _between(data, inside, step, origin, dtype)


def _same(site: Site, expr: Expr, step: float, origin: int, dtype: str) -> Expr | None:
    """The integers of a value that has been quantized in the same way."""
    found = dequantized(site, expr)
    wanted = Dequantized(expr, dtype, 0, np.asarray(step), np.asarray(origin), 0)
    return found.data if found is not None and found.dtype == dtype and found.same_as(wanted) else None


def _between(data: Expr, inside: _Limits, step: float, origin: int, dtype: str) -> Expr:
    least, most = limits(dtype)
    for bound, name in ((inside.low, "maximum"), (inside.high, "minimum")):
        if math.isinf(bound):
            continue
        place = float(np.clip(np.rint(np.float32(bound) / np.float32(step)) + origin, least, most))
        if place != (least if name == "maximum" else most):
            data = get_op(name)(data, Constant(np.asarray(int(place), dtype)))
    return data


def _by_one(site: Site) -> Expr | None:
    """Integers about their zero point, requantized by one: the integers themselves."""
    assert isinstance(site.call, Call)
    args = OPS["requantize"].values(site.call)
    multiplier, zero = (constant_of(site, args[name]) for name in ("multiplier", "zero_point"))
    if multiplier is None or zero is None or multiplier.ndim or zero.ndim or int(multiplier) != 1 << args["shift"]:
        return None
    centred = called(site.value(args["data"]), "subtract")
    wide = None if centred is None else called(site.value(centred.args[0]), "astype")
    known = None if centred is None else constant_of(site, centred.args[1])
    source = None if wide is None else site.tensor(wide.args[0])
    if known is None or known.ndim or source is None or wide is None:
        return None
    same = source.dtype == args["out_dtype"] and int(known) == int(zero)
    return wide.args[0] if same and tensor_dims(source) == tensor_dims(site.tensor(site.call)) else None


def _by_one_instance(choices: Choices) -> Function:
    dtype = choices.pick(("int8", "uint8"))
    x = Var("x", TensorType((choices.pick((3, 1, 0)), 2), dtype))
    zero, shift = choices.integer(-9, 9), choices.integer(0, 30)
    wide = get_op("subtract")(get_op("astype")(x, "int32"), whole(zero))
    return function_of(get_op("requantize")(wide, 1 << shift, zero, shift=shift, out_dtype=dtype), [x])


# Instances: scales are powers of two, so that what is compared has no rounding


def _instance(choices: Choices) -> Function:
    shape = (choices.pick((2, 1, 0)), 3, choices.pick((2, 1)))
    dtype = choices.pick(("int8", "uint8", "int16"))
    a = Var("a", TensorType(shape, choices.pick(("int16", "int8", "uint8"))))
    zero = choices.pick((0, 5, -3))
    dequantize = get_op("dequantize")
    form = choices.integer(0, 6)
    given = [a]
    value: Expr = dequantize(a, 2.0 ** -choices.integer(0, 6), choices.pick((0, 2)))
    if form == 0:
        scales = np.asarray([0.5, 0.125, 2.0], "float32")
        a = Var("a", TensorType(shape, "int32"))
        given = [a]
        value = dequantize(a, Constant(scales), 0, axis=1)
    elif form == 1:
        w = Constant(np.asarray([[choices.integer(-9, 9) for _ in range(4)] for _ in range(shape[2])], "int8"))
        bias = Constant(np.asarray([choices.integer(-9, 9) / 8 for _ in range(4)], "float32"))
        given = [a := Var("a", TensorType(shape, "int8"))]
        product = get_op("matmul")(a, w, out_dtype="int32")
        value = get_op("add")(dequantize(product, 0.125, 0), bias)
    elif form == 2:
        given.append(b := Var("b", TensorType(shape, "int8")))
        value = get_op("add")(value, dequantize(b, 0.25, choices.pick((0, -4))))
    elif form == 3:
        value = get_op("mean")(value, axis=(2,)) if shape[2] > 1 else value
    elif form == 4:
        value = get_op("multiply")(value, Constant(np.asarray(0.5, "float32")))
    if choices.flip(40):
        value = get_op("nn.relu")(value)
    elif choices.flip(20):
        value = get_op("clip")(value, -1.5, 2.0)
    elif choices.flip(20):
        value = get_op("minimum")(Constant(np.asarray(2.0, "float32")), get_op("maximum")(value, 0.5))
    if choices.flip(20) and form in (2, 5):
        value = get_op("add")(get_op("nn.relu")(value), dequantize(given[0], 1.0, 0))
    return function_of(get_op("quantize")(value, 2.0 ** choices.integer(-5, 3), zero, out_dtype=dtype), given)


REQUANTIZATIONS = [
    Rule(
        "Requantize",
        is_op("quantize")(wildcard(), wildcard(), wildcard()),
        _requantized,
        _instance,
        "real",
        doc="integers under another scale, without floats",
    ),
    Rule(
        "RequantizeByOne",
        is_op("requantize")(wildcard(), wildcard(), wildcard()),
        _by_one,
        _by_one_instance,
        "bit",
        doc="integers that are quantized in the same way already",
    ),
]
"""The rules of requantization."""
