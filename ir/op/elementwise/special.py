"""More elementwise functions: logarithms, exponentials and remainders as other libraries name them.

Shape: that of x, or of two operands broadcast. Errors: those of `unary` and `binary`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from weft.dtypes import bits
from weft.ir import te
from weft.ir.kernel.intrinsics import next_after
from weft.ir.kernel.prim import binary, intrinsic
from weft.ir.op.common import example, f32, typed
from weft.ir.op.elementwise import complex_formulas
from weft.ir.op.elementwise.binary import binary_op, floor_mod_of, quiet, truncated_mod_of
from weft.ir.op.elementwise.unary import elementwise
from weft.ir.op.precision import RANGE
from weft.ir.tensor import Let, PrimExpr, PrimVar

__all__: list[str] = []


def _exp2_reference(x: Any) -> Any:
    return np.power(x.dtype.type(2), x) if np.iscomplexobj(x) else np.exp2(x)


for _base, _function in ((2, np.log2), (10, np.log10)):
    elementwise(
        f"log{_base}",
        f"The logarithm to base {_base}, elementwise; nan below 0.",
        "inexact",
        numpy=_function,
        ranges=(0.1, 4),
        precision=RANGE,
    )
elementwise(
    "log1p",
    "log(1 + x), elementwise, exact for small x; nan below -1.",
    "inexact",
    numpy=np.log1p,
    ranges=(-0.9, 4),
    precision=RANGE,
)
elementwise("exp2", "2 raised to x, elementwise.", "inexact", numpy=_exp2_reference, precision=RANGE)
elementwise(
    "expm1",
    "exp(x) - 1, elementwise, exact for small x.",
    "inexact",
    scalar=complex_formulas.expm1,
    numpy=np.expm1,
    precision=RANGE,
)
elementwise("sinc", "sin(pi x) / (pi x), elementwise; 1 at 0.", "inexact", scalar=complex_formulas.sinc, numpy=np.sinc)


def _greatest_common_divisor(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Euclid's algorithm with as many steps as the longest pair of the dtype takes, each a remainder or nothing."""
    dtype = a.dtype
    golden = (math.sqrt(5) + 1) / 2  # successive Fibonacci numbers take longest
    steps = int(bits(dtype) * math.log(2) / math.log(golden)) + 2
    first, second = te.abs(a), te.abs(b)
    names = [PrimVar(f"rest{step}", dtype) for step in range(steps + 1)]
    # rest[i + 1] = rest[i - 1] mod rest[i], and what is 0 stays; the last that is not 0 is the answer.
    result: PrimExpr = names[0]
    for step in range(1, steps + 1):
        result = te.select(te.equal(names[step], 0), result, names[step])
    body = result
    for step in range(steps, 1, -1):
        zero = te.const(0, dtype)
        safe = te.select(te.equal(names[step - 1], 0), te.const(1, dtype), names[step - 1])
        rest = te.select(te.equal(names[step - 1], 0), zero, binary("truncmod", names[step - 2], safe))
        body = Let(names[step], rest, body)
    return Let(names[0], first, Let(names[1], second, body))


def _least_common_multiple(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    divisor = PrimVar("divisor", a.dtype)
    one = te.const(1, a.dtype)
    safe = te.select(te.equal(divisor, 0), one, divisor)
    return Let(divisor, _greatest_common_divisor(a, b), te.abs(binary("truncdiv", a, safe) * b))


_FLOATS = (
    example(f32(2, 3), f32(3)),
    example(f32("n", 4), f32("n", 4)),
    example(typed("float64", 5), typed("float64", 1)),
)
_PAIRS = (
    example(typed("int32", 2, 3), typed("int32", 3), ranges={"x1": (-40, 40), "x2": (-40, 40)}),
    example(typed("int64", "n"), typed("int64", 1), ranges={"x1": (-1000, 1000), "x2": (-1000, 1000)}),
    example(typed("uint8", 30), typed("uint8", 30), ranges={"x1": (0, 255), "x2": (0, 14)}),
)
_REMAINDERS = (
    example(f32(2, 3), f32(2, 3), ranges={"x2": (0.5, 2)}),
    example(f32("n", 4), f32(4), ranges={"x2": (-2, -0.5)}),
    example(typed("int32", "n", 4), typed("int32", "n", 4), ranges={"x1": (-9, 9), "x2": (-3, 3)}),
)


binary_op(
    "hypot",
    "sqrt(x1**2 + x2**2), elementwise, without overflow.",
    "float",
    scalar=lambda a, b: intrinsic("hypot", a, b),
    numpy=np.hypot,
    examples=_FLOATS,
)
binary_op(
    "copysign",
    "x1 with the sign of x2, elementwise.",
    "float",
    scalar=lambda a, b: intrinsic("copysign", a, b),
    numpy=np.copysign,
    examples=_FLOATS,
)
binary_op(
    "nextafter",
    "The next number after x1 in the direction of x2, elementwise.",
    "float",
    scalar=lambda a, b: intrinsic("nextafter", a, b),
    numpy=next_after,
    examples=_FLOATS,
    precision=RANGE,
)
binary_op(
    "fmod",
    "The remainder of x1 / x2 with the sign of x1, elementwise: `mod` by its C name; of integers 0 by 0.",
    scalar=truncated_mod_of,
    numpy=quiet(np.fmod),
    examples=_REMAINDERS,
    precision=RANGE,
)
binary_op(
    "remainder",
    "The remainder of x1 / x2 with the sign of x2, elementwise: `floor_mod` by its name in Python.",
    scalar=floor_mod_of,
    numpy=quiet(np.remainder),
    examples=_REMAINDERS,
    precision=RANGE,
)
binary_op(
    "gcd",
    "The greatest common divisor, elementwise; 0 of zeros.",
    "integer",
    scalar=_greatest_common_divisor,
    numpy=np.gcd,
    examples=_PAIRS,
    precision=RANGE,
)
binary_op(
    "lcm",
    "The least common multiple, elementwise, wrapping; 0 where an operand is 0.",
    "integer",
    scalar=_least_common_multiple,
    numpy=np.lcm,
    examples=_PAIRS,
    precision=RANGE,
)
