"""Products and convolutions of dequantized operands as those of integers.

    R.matmul(R.dequantize(a, s, z), R.dequantize(w, t))
        -> R.dequantize(R.matmul(a, w, out_dtype="int32") - z * (sums of w), s * t)
    R.nn.conv2d(R.dequantize(x, s, z), R.dequantize(w, t, axis=0), padding=p)
        -> R.dequantize(R.nn.conv2d(R.nn.pad(x, p, pad_value=z), w, out_dtype="int32") - z * (sums of w), s * t, axis=1)
    R.nn.conv2d_transpose(R.dequantize(x, s, 0), R.dequantize(w, t))
        -> R.dequantize(R.nn.conv2d_transpose(x, w, out_dtype="int32"), s * t, axis=1)

The sums of a constant operand are constants. What zeros around an image stand for is the zero point, so that the image
is padded with it. How many taps of a transposed convolution see the image differs from place to place, so that its zero
point has to be 0. Operands of uint8 become int8, 128 taken from both the integers and their zero point. Sums have
int32: where more products are added than that has room for, the rule does not hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir import Call, Constant, Expr, Function, TensorType, Var
from weft.ir.op import OPS, get_op
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.quantized.operands import (
    Dequantized,
    constant_of,
    dequantized,
    scalar,
    signed,
    tensor_dims,
    whole,
)

__all__ = ["CONVOLUTIONS", "LARGEST_SUM", "PRODUCTS", "TRANSPOSED_CONVOLUTIONS"]

LARGEST_SUM = 1 << 16
"""The most products of two numbers of 8 bits, one of them about a zero point, whose sum fits int32."""

CONVOLUTIONS = {"nn.conv1d": "W", "nn.conv2d": "HW", "nn.conv3d": "DHW"}
"""The convolutions, and the letters of their spatial axes."""

TRANSPOSED_CONVOLUTIONS = tuple(f"{name}_transpose" for name in CONVOLUTIONS)


def _operands(site: Site) -> tuple[Dequantized, Dequantized] | None:
    assert isinstance(site.call, Call)
    found = [dequantized(site, arg) for arg in site.call.args]
    integers = [None if part is None else signed(site, part) for part in found]
    if len(integers) != 2 or integers[0] is None or integers[1] is None:
        return None
    result = site.tensor(site.call)
    return (integers[0], integers[1]) if result is not None and result.dtype == "float32" else None


def _scaled(total: Expr, left: Dequantized, right: Dequantized, axis: int) -> Expr:
    """The floats that sums of products stand for."""
    scale = left.scale * right.scale
    along = {"axis": axis} if scale.ndim else {}
    return get_op("dequantize")(total, scalar(scale, "float32"), 0, **along)


# Matrices


def _matmul(site: Site) -> Expr | None:
    both = _operands(site)
    if both is None:
        return None
    left, right = both
    size = tensor_dims(site.tensor(right.data))[-2:-1] if right.ndim >= 2 else ()
    if left.ndim < 2 or not size or not isinstance(size[0], int) or size[0] > LARGEST_SUM:
        return None
    columns = right.axis == right.ndim - 1
    if not left.is_uniform or not (right.is_uniform or columns):
        return None
    total: Expr = get_op("matmul")(left.data, right.data, out_dtype="int32")
    total = _without_left_zero(site, total, left, right)
    total = _without_right_zero(total, left, right, size[0])
    return _scaled(total, left, right, -1)


def _without_left_zero(site: Site, total: Expr, left: Dequantized, right: Dequantized) -> Expr:
    """The sums less those of the left zero point times each column."""
    zero = int(left.zero)
    if not zero:
        return total
    known = constant_of(site, right.data)
    if known is not None:
        sums = known.astype("int64").sum(axis=-2, keepdims=known.ndim > 2)
        return get_op("subtract")(total, whole(sums * zero))
    columns = get_op("sum")(get_op("astype")(right.data, "int32"), axis=-2, keepdims=True)
    return get_op("subtract")(total, get_op("multiply")(columns, whole(zero)))


def _without_right_zero(total: Expr, left: Dequantized, right: Dequantized, size: int) -> Expr:
    """The sums less those of the right zero points times each row, about its own zero point."""
    if not right.zero.any():
        return total
    rows = get_op("sum")(get_op("astype")(left.data, "int32"), axis=-1, keepdims=True)
    centred = get_op("subtract")(rows, whole(int(left.zero) * size))
    return get_op("subtract")(total, get_op("multiply")(centred, whole(right.zero)))


# Convolutions


def _convolution(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    both = _operands(site)
    if both is None:
        return None
    data, weight = both
    name = site.call.op.name  # type: ignore[attr-defined]
    args = OPS[name].values(site.call)
    result = args["out_layout"] or args["data_layout"]
    layouts = (args["data_layout"], args["kernel_layout"], result)
    if not all(layout.isupper() for layout in layouts):  # no blocks
        return None
    output = args["kernel_layout"].index("O")
    dims = tensor_dims(site.tensor(weight.data))
    sizes = [dim for axis, dim in enumerate(dims) if axis != output]
    if not all(isinstance(dim, int) for dim in sizes) or np.prod(sizes, dtype="int64") > LARGEST_SUM:
        return None
    if not data.is_uniform or weight.zero.any() or not (weight.is_uniform or weight.axis == output):
        return None
    sums = None
    if data.zero:
        known = constant_of(site, weight.data)
        if known is None:
            return None
        sums = known.astype("int64").sum(axis=tuple(axis for axis in range(known.ndim) if axis != output))
    padded, attrs = _padded(data, args, CONVOLUTIONS[name])
    total: Expr = get_op(name)(padded, weight.data, **attrs, out_dtype="int32")
    channel = result.index("C")
    if sums is not None:
        shape = (-1, *(1,) * (len(result) - 1 - channel))
        total = get_op("subtract")(total, whole(sums.reshape(shape) * int(data.zero)))
    return _scaled(total, data, weight, channel)


def _transposed(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    both = _operands(site)
    if both is None:
        return None
    data, weight = both
    definition = OPS[site.call.op.name]  # type: ignore[attr-defined]
    args = definition.values(site.call)
    result = args["out_layout"] or args["data_layout"]
    if not all(layout.isupper() for layout in (args["data_layout"], args["kernel_layout"], result)):  # no blocks
        return None
    output = args["kernel_layout"].index("O")
    sizes = [dim for axis, dim in enumerate(tensor_dims(site.tensor(weight.data))) if axis != output]
    if not all(isinstance(dim, int) for dim in sizes) or np.prod(sizes, dtype="int64") > LARGEST_SUM:
        return None
    by_channel = weight.axis == output and args["groups"] == 1
    if not data.is_uniform or data.zero.any() or weight.zero.any() or not (weight.is_uniform or by_channel):
        return None
    attrs = {param.name: args[param.name] for param in definition.params if param.kind == "attr"}
    total = get_op(definition.name)(data.data, weight.data, **attrs, out_dtype="int32")
    return _scaled(total, data, weight, result.index("C"))


def _padded(data: Dequantized, args: dict[str, Any], spatial: str) -> tuple[Expr, dict[str, Any]]:
    """The image with its zero point around it, where it has one, and the attributes of a convolution of that."""
    names = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout")
    attrs = {name: args[name] for name in names}
    padding = args["padding"]
    if not data.zero or not any(padding):
        return data.data, attrs
    count = len(spatial)
    padding = padding * count if len(padding) == 1 else padding
    begins, ends = (padding, padding) if len(padding) == count else (padding[:count], padding[count:])
    sides = dict(zip(spatial, zip(begins, ends, strict=True), strict=True))
    width = tuple(side for letter in args["data_layout"] for side in sides.get(letter, (0, 0)))
    padded = get_op("nn.pad")(data.data, width, pad_value=float(int(data.zero)))
    return padded, {**attrs, "padding": (0,) * count}


# Instances: scales are powers of two, so that what is compared has no rounding


def _integers(choices: Choices, shape: tuple[int, ...], dtype: str) -> Constant:
    low, high = (-100, 100) if dtype == "int8" else (0, 200)
    values = [choices.integer(low, high) for _ in range(int(np.prod(shape)))]
    return Constant(np.asarray(values, dtype).reshape(shape))


def _weight(choices: Choices, shape: tuple[int, ...], axis: int, zeros: tuple[int, ...]) -> Expr:
    dtype = choices.pick(("int8", "uint8"))
    zero = choices.pick(zeros) + (128 if dtype == "uint8" else 0)
    if not choices.flip(50):
        return get_op("dequantize")(_integers(choices, shape, dtype), 0.25, zero)
    scales = Constant(np.asarray([choices.pick((0.5, 0.25, 0.125)) for _ in range(shape[axis])], "float32"))
    return get_op("dequantize")(_integers(choices, shape, dtype), scales, zero, axis=axis)


def _matmul_instance(choices: Choices) -> Function:
    m, k, n = choices.pick((2, 1, 3, 0)), choices.pick((3, 1, 4)), choices.pick((2, 1, 3))
    dtype = choices.pick(("int8", "uint8"))
    a = Var("a", TensorType((m, k), dtype))
    left = get_op("dequantize")(a, 0.5, choices.pick((0, 3, 128 if dtype == "uint8" else -128)))
    zeros = (0, 0, 5)
    form = choices.integer(0, 2)
    if form == 0:
        b = Var("b", TensorType((k, n), "int8"))
        right: Expr = get_op("dequantize")(b, 0.25, choices.pick(zeros))
        return function_of(get_op("matmul")(left, right), [a, b])
    if form == 1:
        right = get_op("permute_dims")(_weight(choices, (n, k), 0, zeros), axes=(1, 0))
    else:
        right = _weight(choices, (k, n), 1, zeros)
    return function_of(get_op("matmul")(left, right), [a])


def _convolution_instance(count: int) -> Any:
    spatial = {1: "W", 2: "HW", 3: "DHW"}[count]

    def instance(choices: Choices) -> Function:
        groups = choices.pick((1, 1, 2))
        inner, outputs = choices.pick((1, 2)), groups * choices.pick((1, 2))
        sizes = tuple(choices.pick((3, 4)) for _ in spatial)
        last = choices.flip(30)
        dtype = choices.pick(("int8", "uint8"))
        shape = (choices.pick((1, 2)), *sizes, inner * groups) if last else (1, inner * groups, *sizes)
        x = Var("x", TensorType(shape, dtype))
        data = get_op("dequantize")(x, 0.5, choices.pick((0, 7)))
        kernel = (outputs, inner, *(choices.pick((1, 2, 3)) for _ in spatial))
        weight = _weight(choices, kernel, 0, (0,))
        options: dict[str, Any] = {"groups": groups, "strides": choices.pick((1, 2)), "padding": choices.pick((0, 1))}
        if last:
            options["data_layout"] = f"N{spatial}C"
        return function_of(get_op(f"nn.conv{count}d")(data, weight, **options), [x])

    return instance


def _transposed_instance(count: int) -> Any:
    spatial = {1: "W", 2: "HW", 3: "DHW"}[count]

    def instance(choices: Choices) -> Function:
        groups, inner, outputs = choices.pick((1, 1, 2)), choices.pick((1, 2)), choices.pick((1, 2))
        sizes = tuple(choices.pick((2, 3)) for _ in spatial)
        last, dtype = choices.flip(30), choices.pick(("int8", "uint8"))
        shape = (choices.pick((1, 2)), *sizes, inner * groups) if last else (1, inner * groups, *sizes)
        x = Var("x", TensorType(shape, dtype))
        data = get_op("dequantize")(x, 0.5, choices.pick((0, 128 if dtype == "uint8" else 0)))
        weight = _weight(choices, (inner * groups, outputs, *(choices.pick((1, 2, 3)) for _ in spatial)), 1, (0,))
        options: dict[str, Any] = {"groups": groups, "strides": choices.pick((1, 2))}
        if last:
            options["data_layout"] = f"N{spatial}C"
        return function_of(get_op(f"nn.conv{count}d_transpose")(data, weight, **options), [x])

    return instance


_DOC = "sums of products of integers"
PRODUCTS = [
    Rule("MatmulOfDequantized", is_op("matmul")(wildcard(), wildcard()), _matmul, _matmul_instance, "real", doc=_DOC),
    *(
        Rule(
            f"Conv{count}dOfDequantized",
            is_op(f"nn.conv{count}d")(wildcard(), wildcard()),
            _convolution,
            _convolution_instance(count),
            "real",
            doc=_DOC,
        )
        for count in (1, 2, 3)
    ),
    *(
        Rule(
            f"TransposedConv{count}dOfDequantized",
            is_op(f"nn.conv{count}d_transpose")(wildcard(), wildcard()),
            _transposed,
            _transposed_instance(count),
            "real",
            doc=_DOC,
        )
        for count in (1, 2, 3)
    ),
]
"""The rules of products."""
