"""Operators that select elements work on integers: `dequantize` comes after them, and `quantize` before them.

    R.reshape(R.dequantize(x, s, z), shape)      ->   R.dequantize(R.reshape(x, shape), s, z)
    R.quantize(R.nn.max_pool2d(x), s, z)         ->   R.nn.max_pool2d(R.quantize(x, s, z))
    R.dequantize(R.quantize(x, s, z, "uint8"))   ->   R.dequantize(R.quantize(x, s, z - 128, "int8"), s, z - 128)

Which operators select elements, their declarations say (`selects`): a quantization with one scale is an increasing
function of elements. The last rule brings every quantized value to int8, the dtype of weights.
"""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np

from weft.ir import Call, Constant, Expr, Function, Op, ShapeExpr, TensorType, Var, replace
from weft.ir.op import OPS, get_op
from weft.ir.op.declare import RUN_TIME
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.constructors import is_op, wildcard
from weft.transform.pattern.evidence.instances import function_of
from weft.transform.pattern.language import CallPattern, DFPattern
from weft.transform.pattern.rule import Rule, Site
from weft.transform.rewrite.quantized.operands import called, constant_of, dequantized, scalar

__all__ = ["MOVES", "selecting"]


def selecting(call: Expr) -> bool:
    """Whether a value is a call whose result consists of elements of its first argument, padding apart."""
    if not isinstance(call, Call) or not isinstance(call.op, Op) or call.op.name not in OPS:
        return False
    definition = OPS[call.op.name]
    run_time = [param.name for param in definition.params if param.kind in RUN_TIME]
    if not definition.selects or run_time[0] != definition.selects:
        return False
    return not definition.values(call).get("ceil_mode")  # a window may lie in the padding


def _after(site: Site) -> Expr | None:
    """The selection on the integers."""
    if not isinstance(site.call, Call) or not selecting(site.call):
        return None
    found = dequantized(site, site.call.args[0])
    if found is None or not found.is_uniform:
        return None
    moved = replace(site.call, args=(found.data, *site.call.args[1:]))
    return get_op("dequantize")(moved, scalar(found.scale, "float32"), int(found.zero))


def _before(site: Site) -> Expr | None:
    """The quantization of what is selected from."""
    assert isinstance(site.call, Call)
    args = OPS["quantize"].values(site.call)
    value = site.value(args["data"])
    if args["group_size"] or not selecting(value) or not site.is_used_once(args["data"]):
        return None
    scale, zero = (constant_of(site, args[name]) for name in ("scale", "zero_point"))
    if scale is None or zero is None or scale.ndim or zero.ndim or not scale > 0:
        return None
    assert isinstance(value, Call)
    attrs = {"out_dtype": args["out_dtype"]}
    return replace(value, args=(get_op("quantize")(value.args[0], *site.call.args[1:], **attrs), *value.args[1:]))


def _to_signed(site: Site) -> Expr | None:
    assert isinstance(site.call, Call)
    outer = dequantized(site, site.call)
    if outer is None or outer.dtype != "uint8" or outer.zero.ndim or called(site.call, "dequantize") is None:
        return None
    moved = _signed(site, outer.data)
    return (
        None
        if moved is None
        else replace(site.call, args=(moved, site.call.args[1], scalar(outer.zero - 128, "int32")))
    )


def _signed(site: Site, expr: Expr) -> Expr | None:
    """A quantized value of uint8 less 128, as int8: where it is quantized, whatever is selected of that."""
    value = site.value(expr)
    if isinstance(value, Call) and selecting(value):
        inner = _signed(site, value.args[0])
        return None if inner is None else replace(value, args=(inner, *value.args[1:]))
    if (limit := called(value, "maximum", "minimum")) is not None:
        inner, bound = _signed(site, limit.args[0]), constant_of(site, limit.args[1])
        if inner is None or bound is None:
            return None
        return replace(limit, args=(inner, Constant((bound.astype("int16") - 128).astype("int8"))))
    call = called(value, "quantize", "requantize")
    if call is None or call.attrs.get("out_dtype") != "uint8":
        return None
    zero = constant_of(site, call.args[2]) if len(call.args) > 2 else np.asarray(0)
    if zero is None or zero.ndim or zero.dtype.kind not in "iu":
        return None
    return replace(
        call, args=(*call.args[:2], scalar(zero.astype("int64") - 128, "int32")), attrs=call.attrs.without("out_dtype")
    )


# Instances


def _selection(value: Expr, choices: Choices) -> Expr:
    """A value of shape (2, 3, 4) with some of its elements selected."""
    made: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
        ("reshape", (ShapeExpr((6, 4)),), {}),
        ("flatten", (), {}),
        ("permute_dims", (), {"axes": (2, 0, 1)}),
        ("expand_dims", (), {"axis": (0, 2)}),
        ("squeeze", (), {}),
        ("broadcast_to", (ShapeExpr((2, 2, 3, 4)),), {}),
        ("strided_slice", (), {"axes": (1, 2), "begin": (0, 3), "end": (2, 0), "strides": (1, -1)}),
        ("nn.max_pool1d", (), {"pool_size": 3, "padding": 1, "strides": 2}),
    )
    name, args, attrs = choices.pick(made)
    return get_op(name)(value, *args, **attrs)


def _after_instance(choices: Choices) -> Function:
    x = Var("x", TensorType((2, 3, 4), choices.pick(("int8", "uint8", "int16"))))
    zero = choices.pick((0, 3))
    return function_of(_selection(get_op("dequantize")(x, choices.pick((0.3, 0.25)), zero), choices), [x])


def _before_instance(choices: Choices) -> Function:
    x = Var("x", TensorType((2, 3, 4), "float32"))
    dtype = choices.pick(("int8", "uint8"))
    value = get_op("quantize")(_selection(x, choices), choices.pick((0.3, 0.25)), choices.pick((0, 3)), out_dtype=dtype)
    return function_of(value, [x])


def _signed_instance(choices: Choices) -> Function:
    x = Var("x", TensorType((choices.pick((3, 1, 0)),), "float32"))
    zero = choices.pick((0, 3, 128))
    wanted = choices.pick((zero, 7))
    scale = Constant(np.asarray(choices.pick((0.3, 0.25)), "float32"))
    quantized: Expr = get_op("quantize")(x, scale, zero, out_dtype="uint8")
    if choices.flip(40):
        x = Var("x", TensorType((choices.pick((3, 1, 0)),), "int32"))
        quantized = get_op("requantize")(x, 3, zero, shift=1, out_dtype="uint8")
    if choices.flip(30):
        quantized = get_op(choices.pick(("maximum", "minimum")))(quantized, Constant(np.asarray(5, "uint8")))
    if choices.flip(30):
        quantized = get_op("expand_dims")(quantized, 0)
    return function_of(get_op("dequantize")(quantized, scale, wanted), [x])


_SELECTING: list[DFPattern] = [CallPattern(is_op(name)) for name in sorted(OPS) if OPS[name].selects]

MOVES = [
    Rule(
        "SignedIntegers",
        is_op("dequantize")(wildcard(), wildcard(), wildcard()),
        _to_signed,
        _signed_instance,
        "real",
        doc="integers of one dtype",
    ),
    Rule(
        "SelectBeforeDequantize",
        reduce(operator.or_, _SELECTING),
        _after,
        _after_instance,
        "bit",
        doc="elements are selected as integers",
    ),
    Rule(
        "QuantizeBeforeSelect",
        is_op("quantize")(wildcard(), wildcard(), wildcard()),
        _before,
        _before_instance,
        "real",
        doc="elements are selected as integers",
    ),
]
"""The rules of operators that select elements."""
