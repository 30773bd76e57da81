"""exp and tanh of float32 without the C library, so that loops over them become vector code.

    exp(x)  = 2**n * exp(r),  n = round(x / ln 2),  |r| <= ln(2) / 2:   1 + r + r**2 * P(r)
    tanh(x) = x + x**3 * Q(x**2)                    |x| < 0.625
            = 1 - 2 / (exp(2 |x|) + 1), with the sign of x, elsewhere

P and Q are interpolations at Chebyshev nodes (relative error below 1e-9 before rounding); results are within 2 units in
the last place, overflow to infinity, underflow through the denormals to 0, and hand on nan. Branch-free.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.arithmetic import Arithmetic
from weft.codegen.llvm.spelling import constant, splat, value_type
from weft.ir import dtype as dtypes

__all__ = ["exp_float32", "tanh_float32"]

_P = (0.5000000014, 0.1666666668, 0.04166645681, 0.008333310024, 0.001393454193, 0.0001989198138)
_Q = (-0.3333333312, 0.1333329635, -0.05395759513, 0.02175570033, -0.008301695328, 0.002246003657)
_LOW, _HIGH = -104.0, 89.0  # exp is 0 below and infinite above
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the first has few bits: its product with n is exact
_MAGIC = 12582912.0  # 1.5 * 2**23: adding it rounds to an integer, which stands in the low bits
_MAGIC_BITS = 0x4B400000


def _mul(arith: Arithmetic, ty: str, a: str, b: str) -> str:
    return arith.w.emit(f"fmul contract {ty} {a}, {b}")


def _add(arith: Arithmetic, ty: str, a: str, b: str) -> str:
    return arith.w.emit(f"fadd contract {ty} {a}, {b}")


def _polynomial(arith: Arithmetic, dtype: str, coefficients: Sequence[float], x: str) -> str:
    ty = value_type(dtype)
    result = constant(coefficients[-1], dtype)
    for coefficient in reversed(coefficients[:-1]):
        result = _add(arith, ty, _mul(arith, ty, result, x), constant(coefficient, dtype))
    return result


def exp_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """e to the power x."""
    w, ty, int32 = arith.w, value_type(dtype), dtypes.with_lanes("int32", dtypes.lanes(dtype))
    low, high, magic = (constant(value, dtype) for value in (_LOW, _HIGH, _MAGIC))
    x = arith.select(arith.compare("lt", dtype, x, low), dtype, low, x)
    x = arith.select(arith.compare("gt", dtype, x, high), dtype, high, x)
    shifted = _add(arith, ty, _mul(arith, ty, x, constant(1.4426950408889634, dtype)), magic)
    n = w.emit(f"fsub {ty} {shifted}, {magic}")
    r = w.emit(f"fsub {ty} {x}, {w.emit(f'fmul {ty} {n}, {constant(_LN2_HIGH, dtype)}')}")
    r = w.emit(f"fsub {ty} {r}, {w.emit(f'fmul {ty} {n}, {constant(_LN2_LOW, dtype)}')}")
    square = _mul(arith, ty, r, r)
    tail = _add(arith, ty, _mul(arith, ty, square, _polynomial(arith, dtype, _P, r)), r)
    value = _add(arith, ty, tail, constant(1.0, dtype))
    ints = value_type(int32)
    exponent = w.emit(f"sub {ints} {w.emit(f'bitcast {ty} {shifted} to {ints}')}, {splat(str(_MAGIC_BITS), int32)}")
    # Two factors: one alone would leave the range for the largest and the denormal results.
    twenty_three = splat("23", int32)
    first = w.emit(f"ashr {ints} {exponent}, {splat('1', int32)}")
    for power in (first, w.emit(f"sub {ints} {exponent}, {first}")):
        biased = w.emit(f"add {ints} {power}, {splat('127', int32)}")
        scale = w.emit(f"bitcast {ints} {w.emit(f'shl {ints} {biased}, {twenty_three}')} to {ty}")
        value = w.emit(f"fmul {ty} {value}, {scale}")
    return value


def tanh_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The hyperbolic tangent of x."""
    w, ty, one = arith.w, value_type(dtype), constant(1.0, dtype)
    size = arith.overloaded("fabs", dtype, x)
    square = _mul(arith, ty, x, x)
    cubic = _mul(arith, ty, _mul(arith, ty, square, x), _polynomial(arith, dtype, _Q, square))
    small = _add(arith, ty, cubic, x)
    below = w.emit(f"fadd {ty} {exp_float32(arith, dtype, w.emit(f'fadd {ty} {size}, {size}'))}, {one}")
    large = w.emit(f"fsub {ty} {one}, {w.emit(f'fdiv {ty} {constant(2.0, dtype)}, {below}')}")
    is_small = arith.compare("lt", dtype, size, constant(0.625, dtype))
    return arith.overloaded("copysign", dtype, arith.select(is_small, dtype, small, large), x)
