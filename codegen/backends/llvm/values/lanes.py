"""Vectors whose lanes follow from a scalar: broadcasts, ramps, masks of the first lanes."""

from __future__ import annotations

import functools

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, icmp, insertelement, select, shufflevector
from weft.codegen.backends.llvm.asm.types import value_type
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic

__all__ = ["broadcast", "counted", "lanes_below", "ramp"]


def broadcast(w: FunctionWriter, value: str, dtype: str, lanes: int) -> str:
    """A scalar value of `dtype` in every lane."""
    scalar = value_type(dtype)
    if not value.startswith("%"):
        return f"splat ({scalar} {value})"
    if scalar == "i1":
        return w.emit(select("i1", value, f"<{lanes} x i1>", "splat (i1 true)", "zeroinitializer"))
    ty = f"<{lanes} x {scalar}>"
    first = w.emit(insertelement(ty, "poison", scalar, value, 0))
    return w.emit(shufflevector(ty, first, "poison", (0,) * lanes))


@functools.cache
def counted(scalar: str, lanes: int) -> str:
    """The constant 0, 1, 2, ... of a scalar type.

    >>> counted("i64", 2)
    '<i64 0, i64 1>'
    """
    return f"<{', '.join([f'{scalar} {lane}' for lane in range(lanes)])}>"


def ramp(w: FunctionWriter, base: Size, step: Size, lanes: int) -> str:
    """The int64 vector base, base + step, base + 2 step, ..."""
    ty = f"<{lanes} x i64>"
    steps = counted("i64", lanes)
    if step != 1:
        steps = w.emit(binary("mul", ty, steps, broadcast(w, str(step), "int64", lanes)))
    return steps if base == 0 else w.emit(binary("add", ty, steps, broadcast(w, str(base), "int64", lanes)))


def lanes_below(arith: Arithmetic, base: Size, limit: Size, lanes: int, turned: bool = False) -> str:
    """Lane k is true when base + k < limit, or (turned) when not."""
    w = arith.w
    count = w.sub(limit, base)
    least, most = w.range_of(count) or (-1, lanes + 1)
    if least == most or least >= lanes or most <= 0:
        bits = [f"i1 {'true' if (lane < least) != turned else 'false'}" for lane in range(lanes)]
        return f"splat ({bits[0]})" if len(set(bits)) == 1 else f"<{', '.join(bits)}>"
    for kind, bound, needed in (("max", 0, least < 0), ("min", lanes, most > lanes)):
        count = arith.binary(kind, "int64", str(count), str(bound)) if needed else count
    # 32 bits are enough for a number of lanes, and the ramp is a constant that takes few registers.
    until = broadcast(w, arith.cast("int64", "int32", str(count)), "int32", lanes)
    return w.emit(icmp("sge" if turned else "slt", f"<{lanes} x i32>", counted("i32", lanes), until))
