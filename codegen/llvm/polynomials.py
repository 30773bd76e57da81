"""exp and tanh of float32 without the C library, so that loops over them become vector code.

    exp(x)  = 2**n * (1 + p),  n = round(x / ln 2),  r = x - n ln 2,  p = r + r**2 * P(r),  |r| <= ln(2) / 2
    tanh(x) = t / (t + 2),     t = exp(2 |x|) - 1 = 2**n * p + (2**n - 1), with the sign of x

P is the minimax polynomial (relative error of exp below 4e-9 before rounding). Bounds in units in the last place: exp
1.5, tanh 2.5. exp overflows to infinity, underflows through the denormals to 0; nan is handed on. Branch-free.
Polynomials are summed in pairs (Estrin), so that few operations wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.llvm.arithmetic import Arithmetic
from weft.codegen.llvm.spelling import constant, splat, value_type
from weft.ir import dtype as dtypes

__all__ = ["exp_float32", "polynomial", "tanh_float32"]

_P = (0.4999999343179059, 0.16666520394949, 0.041668390844173876, 0.008368745541078705, 0.0013814538095785)
_LOW, _HIGH = -104.0, 89.0  # exp is 0 below and infinite above
_ONE = 9.02  # tanh is 1 from here on
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # the first has few bits: its product with n is exact
_MAGIC = 12582912.0  # 1.5 * 2**23: adding it rounds to an integer, which stands in the low bits
_MAGIC_BITS = 0x4B400000


def _mul(arith: Arithmetic, ty: str, a: str, b: str) -> str:
    return arith.w.emit(f"fmul contract {ty} {a}, {b}")


def _add(arith: Arithmetic, ty: str, a: str, b: str) -> str:
    return arith.w.emit(f"fadd contract {ty} {a}, {b}")


def polynomial(arith: Arithmetic, dtype: str, coefficients: Sequence[float], x: str) -> str:
    """The polynomial with coefficients from the constant one on, summed in pairs: (a + b x) + (c + d x) x**2 + ..."""
    ty = value_type(dtype)
    parts = [constant(value, dtype) for value in coefficients]

    def joined(low: str, high: str) -> str:
        return _add(arith, ty, _mul(arith, ty, high, x), low)

    while len(parts) > 1:
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [joined(low, high) for low, high in zip(parts[::2], parts[1::2], strict=False)]
        if parts[1:] or odd:
            x = _mul(arith, ty, x, x)
        if odd:
            parts[-1] = joined(parts[-1], odd[0])
    return parts[0]


def _reduced(arith: Arithmetic, dtype: str, x: str, times: float) -> tuple[str, str, str]:
    """(n with the bits of an integer below, n, p) of exp(times * x); `times` is a power of two, which costs nothing."""
    w, ty, magic = arith.w, value_type(dtype), constant(_MAGIC, dtype)
    shifted = _add(arith, ty, _mul(arith, ty, x, constant(times * 1.4426950408889634, dtype)), magic)
    n, r = w.emit(f"fsub {ty} {shifted}, {magic}"), x
    for part in (_LN2_HIGH, _LN2_LOW):
        r = w.emit(f"fsub contract {ty} {r}, {_mul(arith, ty, n, constant(part / times, dtype))}")
    scaled = [coefficient * times ** (power + 2) for power, coefficient in enumerate(_P)]
    first = r if times == 1.0 else _mul(arith, ty, r, constant(times, dtype))
    square = _mul(arith, ty, r, r)
    return shifted, n, _add(arith, ty, _mul(arith, ty, square, polynomial(arith, dtype, scaled, r)), first)


def exp_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """e to the power x."""
    ty = value_type(dtype)
    low, high = (constant(value, dtype) for value in (_LOW, _HIGH))
    x = arith.select(arith.compare("lt", dtype, x, low), dtype, low, x)
    x = arith.select(arith.compare("gt", dtype, x, high), dtype, high, x)
    shifted, n, tail = _reduced(arith, dtype, x, 1.0)
    value = _add(arith, ty, tail, constant(1.0, dtype))
    lanes = dtypes.lanes(dtype)
    if {"avx512f", "avx512vl"} <= arith.features and lanes in (4, 8, 16, 32, 64):
        return _scaled(arith, lanes, value, n)
    return _scaled_by_parts(arith, dtype, value, shifted)


def _scaled(arith: Arithmetic, lanes: int, value: str, power: str) -> str:
    """value * 2**power by the instruction for it, a register at a time."""
    w, one = arith.w, min(lanes, 16)
    whole, part = f"<{lanes} x float>", f"<{one} x float>"
    mask = f"i{max(8, one)}"
    name = f"llvm.x86.avx512.mask.scalef.ps.{one * 32}"
    extra = (("i32", "4"),) if one == 16 else ()  # the rounding mode: the current one

    def scaled(a: str, b: str) -> str:
        return arith.call(name, f"float32x{one}", (part, a), (part, b), (part, "zeroinitializer"), (mask, "-1"), *extra)

    if lanes == one:
        return scaled(value, power)
    pieces = []
    for start in range(0, lanes, one):
        picks = ", ".join(f"i32 {start + lane}" for lane in range(one))
        a, b = (w.emit(f"shufflevector {whole} {x}, {whole} poison, <{one} x i32> <{picks}>") for x in (value, power))
        pieces.append(scaled(a, b))
    while len(pieces) > 1:
        half, count = f"<{one} x float>", 2 * one
        picks = ", ".join(f"i32 {lane}" for lane in range(count))
        pieces = [
            w.emit(f"shufflevector {half} {a}, {half} {b}, <{count} x i32> <{picks}>")
            for a, b in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        one = count
    return pieces[0]


def _scaled_by_parts(arith: Arithmetic, dtype: str, value: str, shifted: str) -> str:
    """value * 2**n in two factors, for one alone would leave the range for the largest and the denormal results."""
    w, ty, int32 = arith.w, value_type(dtype), dtypes.with_lanes("int32", dtypes.lanes(dtype))
    ints, twenty_three = value_type(int32), splat("23", int32)
    exponent = w.emit(f"sub {ints} {w.emit(f'bitcast {ty} {shifted} to {ints}')}, {splat(str(_MAGIC_BITS), int32)}")
    first = w.emit(f"ashr {ints} {exponent}, {splat('1', int32)}")
    for power in (first, w.emit(f"sub {ints} {exponent}, {first}")):
        biased = w.emit(f"add {ints} {power}, {splat('127', int32)}")
        scale = w.emit(f"bitcast {ints} {w.emit(f'shl {ints} {biased}, {twenty_three}')} to {ty}")
        value = w.emit(f"fmul {ty} {value}, {scale}")
    return value


def tanh_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The hyperbolic tangent of x."""
    w, ty, int32 = arith.w, value_type(dtype), dtypes.with_lanes("int32", dtypes.lanes(dtype))
    ints, one, most = value_type(int32), constant(1.0, dtype), constant(_ONE, dtype)
    size = arith.overloaded("fabs", dtype, x)
    size = arith.select(arith.compare("gt", dtype, size, most), dtype, most, size)
    shifted, _, tail = _reduced(arith, dtype, size, 2.0)
    # n lies between 0 and 27: shifted into the exponent's place, the rest of the number it stands in is gone.
    exponent = w.emit(f"shl {ints} {w.emit(f'bitcast {ty} {shifted} to {ints}')}, {splat('23', int32)}")
    biased = w.emit(f"add {ints} {exponent}, {splat(str(0x3F800000), int32)}")
    power = w.emit(f"bitcast {ints} {biased} to {ty}")
    t = _add(arith, ty, _mul(arith, ty, power, tail), w.emit(f"fsub {ty} {power}, {one}"))
    value = w.emit(f"fdiv {ty} {t}, {w.emit(f'fadd {ty} {t}, {constant(2.0, dtype)}')}")
    return arith.overloaded("copysign", dtype, value, x)
