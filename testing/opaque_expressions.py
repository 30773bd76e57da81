"""Expressions of any constructs, over what a random function has defined so far (`weft.testing.opaque`)."""

from __future__ import annotations

from dataclasses import field

from weft.ir.graph import StringImm
from weft.ir.kernel.intrinsics import INTRINSICS
from weft.ir.kernel.prim import binary, const, intrinsic
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    Shuffle,
    Unary,
)
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import attribute_map

__all__ = ["FLOATS", "INTEGERS", "OpaqueState", "expression", "index", "leaf", "mask", "position", "vector"]

FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float4_e2m1fn")
INTEGERS = ("int32", "int64", "uint8", "int8", "uint64", "int16", "uint1", "int4")
_EXTREMES = {
    "int64": (2**63 - 1, -(2**63)),
    "uint64": (2**64 - 1, 2**63),
    "int32": (2**31 - 1, -(2**31)),
    "int8": (127, -128),
}
_ARITHMETIC = ("add", "sub", "mul", "min", "max")


@dataclass
class OpaqueState:
    """What is visible where the next expression stands."""

    choices: Choices
    variables: list[PrimVar] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    handles: list[PrimVar] = field(default_factory=list)
    loops: int = 0
    reduced: set[PrimVar] = field(default_factory=set)


def expression(state: OpaqueState, dtype: str, depth: int) -> PrimExpr:
    """An expression of a scalar dtype."""
    choices = state.choices
    if depth <= 0 or choices.flip(25):
        return leaf(state, dtype)
    kind = choices.integer(0, 9)
    if kind == 0:
        first, second = (expression(state, dtype, depth - 1) for _ in range(2))
        return Select(expression(state, "bool", depth - 1), first, second)
    if kind == 1:
        variable = PrimVar(choices.name(), "int32")
        value = expression(state, "int32", depth - 1)
        state.variables.append(variable)
        body = expression(state, dtype, depth - 1)
        state.variables.remove(variable)
        return Let(variable, value, body)
    if kind == 2:
        return Cast(dtype, expression(state, choices.pick(("int32", "float32", "bool", dtype)), depth - 1))
    if kind == 3:
        args = (expression(state, "bool", depth - 1), *(expression(state, dtype, depth - 1) for _ in range(2)))
        return PrimCall("if_then_else", args, dtype)
    if kind == 4:
        return PrimCall("call_pure_extern", (StringImm("lib.g"), expression(state, "int32", depth - 1)), dtype)
    if kind == 5:
        name = choices.pick(("mine.function", "ptx.mma", "vendor.op"))
        attrs = attribute_map(choices) if choices.flip(30) else attribute_map(choices, most=0)
        return PrimCall(name, (leaf(state, dtype),), dtype, attrs)
    if dtype == "bool":
        return truth(state, depth)
    if dtype in FLOATS:
        return float(state, dtype, depth)
    return integer(state, dtype, depth)


def leaf(state: OpaqueState, dtype: str) -> PrimExpr:
    """A variable, an element or a number of a dtype."""
    choices = state.choices
    variables = [variable for variable in state.variables if variable.dtype == dtype]
    if variables and choices.flip():
        return choices.pick(variables[::-1])
    buffers = [buffer for buffer in state.buffers if buffer.dtype == dtype]
    if buffers and choices.flip(40):
        buffer = choices.pick(buffers)
        predicate = leaf(state, "bool") if choices.flip(5) else None
        return BufferLoad(buffer, position(state, buffer), predicate)
    if dtype == "bool":
        return IntImm(int(choices.flip()), "bool")
    if dtype in FLOATS:
        return FloatImm(choices.number(), dtype)
    if dtype in _EXTREMES and choices.flip(20):
        return IntImm(choices.pick(_EXTREMES[dtype]), dtype)
    return IntImm(choices.integer(0, 1 if dtype == "uint1" else 7), dtype)


def truth(state: OpaqueState, depth: int) -> PrimExpr:
    choices = state.choices
    if choices.flip():
        dtype = choices.pick(("int32", "float32", "int64"))
        kind = choices.pick(("lt", "le", "gt", "ge", "eq", "ne"))
        return binary(kind, expression(state, dtype, depth - 1), expression(state, dtype, depth - 1))
    if choices.flip(30):
        return Unary("not", expression(state, "bool", depth - 1))
    return Binary(
        choices.pick(("and", "or")), expression(state, "bool", depth - 1), expression(state, "bool", depth - 1)
    )


def float(state: OpaqueState, dtype: str, depth: int) -> PrimExpr:
    choices = state.choices
    if choices.flip(40):
        names = sorted(name for name, row in INTRINSICS.items() if row.rule == "float" and row.arity == 1)
        return intrinsic(choices.pick(names), expression(state, dtype, depth - 1))
    if choices.flip(20):
        return Unary("neg", expression(state, dtype, depth - 1))
    kind = choices.pick((*_ARITHMETIC, "div"))
    return Binary(kind, expression(state, dtype, depth - 1), expression(state, dtype, depth - 1))


def integer(state: OpaqueState, dtype: str, depth: int) -> PrimExpr:
    choices = state.choices
    if choices.flip(15):
        return Unary(choices.pick(("neg", "bitwise_not")), expression(state, dtype, depth - 1))
    others = ("floordiv", "floormod", "truncdiv", "truncmod", "bitwise_and", "bitwise_or", "bitwise_xor")
    kind = choices.pick((*_ARITHMETIC, *others, "shift_left", "shift_right"))
    right = expression(state, dtype, depth - 1) if kind in _ARITHMETIC else IntImm(1, dtype)
    return Binary(kind, expression(state, dtype, depth - 1), right)


def vector(state: OpaqueState, dtype: str, lanes: int) -> PrimExpr:
    """A vector of a dtype."""
    choices = state.choices
    kind = choices.integer(0, 3)
    if kind == 0:
        return Cast(f"{dtype}x{lanes}", Ramp(expression(state, "int32", 1), const(1, "int32"), lanes))
    if kind == 1:
        parts = tuple(Broadcast(expression(state, dtype, 1), lanes) for _ in range(2))
        picked = tuple(const(choices.integer(0, 2 * lanes - 1), "int32") for _ in range(lanes))
        return Shuffle(parts, picked)
    if kind == 2 and dtype != "bool":
        return Binary("add", vector(state, dtype, lanes), Broadcast(expression(state, dtype, 1), lanes))
    return Broadcast(expression(state, dtype, 1), lanes)


def position(state: OpaqueState, buffer: Buffer, lanes: int = 1) -> tuple[PrimExpr, ...]:
    """Indices of one element, or of `lanes` along the last axis."""
    indices = [index(state, extent) for extent in buffer.shape]
    if lanes > 1 and indices:
        indices[-1] = Ramp(const(0, "int32"), const(state.choices.integer(1, 3) if lanes == 2 else 1, "int32"), lanes)
    return tuple(indices)


def index(state: OpaqueState, extent: int | PrimExpr) -> PrimExpr:
    """An index that is not plainly out of range."""
    dtype = state.choices.pick(("int32", "int64"))
    if not isinstance(extent, int):
        return const(0, dtype)
    varying = [variable for variable in state.variables if variable.dtype == dtype and variable not in state.reduced]
    if varying and state.choices.flip():
        return binary("floormod", state.choices.pick(varying[::-1]), const(extent, dtype))
    return const(state.choices.integer(0, extent - 1), dtype)


def mask(state: OpaqueState, lanes: int) -> PrimExpr:
    """A condition, or a vector of one for all lanes."""
    return Broadcast(expression(state, "bool", 1), lanes) if lanes > 1 else expression(state, "bool", 1)
