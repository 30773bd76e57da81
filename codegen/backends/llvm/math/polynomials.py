"""exp and tanh of float32 and float64 without the C library, so that loops over them become vector code.

    exp(x)  = 2**n * (1 + p),  n = round(x / ln 2),  r = x - n ln 2,  p = r + r**2 * P(r),  |r| <= ln(2) / 2
    tanh(x) = t / (t + 2),     t = exp(2 |x|) - 1 = 2**n * p + (2**n - 1), with the sign of x

P is an interpolation at Chebyshev nodes or better (relative error of exp before rounding below 4e-9 in float32, 2e-17
in float64); the bounds in units in the last place are in docs/guide/performance.md. exp overflows to infinity,
underflows through the denormals to 0; nan is handed on. Branch-free.

Sources: Cody and Waite, Software manual for the elementary functions, 1980 (the reduction of x by ln 2 in two parts);
Muller, Elementary functions, 2016.
"""

from __future__ import annotations

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import shufflevector
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.math.vector_builder import Lanes
from weft.support.records import dataclass

__all__ = ["exp_polynomial", "scaled", "tanh_polynomial"]


@dataclass(frozen=True)
class _Width:
    """The constants of one dtype.

    exp is 0 below `low` and infinite above `high`; tanh is 1 from `one` on. `ln2` in two parts: the first has few bits,
    so that its product with n is exact. Adding `magic` rounds to an integer, which then stands in the low bits.
    """

    p: tuple[float, ...]
    low: float
    high: float
    one: float
    ln2: tuple[float, float]
    magic: float
    magic_bits: int
    mantissa: int
    bias: int
    suffix: str
    most_lanes: int


_WIDTHS = {
    "float32": _Width(
        (0.4999999343179059, 0.16666520394949, 0.041668390844173876, 0.008368745541078705, 0.0013814538095785),
        -104.0, 89.0, 9.02, (0.693359375, -2.12194440e-4), 12582912.0, 0x4B400000, 23, 127, "ps", 16,
    ),
    "float64": _Width(
        (0.5000000000000001, 0.16666666666666669, 0.04166666666662416, 0.008333333333330063, 0.0013888888917199863,
         0.00019841269863042963, 2.4801521317484083e-05, 2.7557268476553695e-06, 2.7620078203806394e-07,
         2.5100377619606372e-08),
        -746.0, 710.0, 19.1, (0.6931471805598903, 5.497923018708371e-14), 6755399441055744.0, 0x4338000000000000, 52,
        1023, "pd", 8,
    ),
}


def _width(dtype: str) -> _Width:
    return _WIDTHS[dtypes.element(dtype)]


def _reduced(v: Lanes, x: str, times: float) -> tuple[str, str, str]:
    """(n with the bits of an integer below, n, p) of exp(times * x); `times` is a power of two, which costs nothing."""
    width = _width(v.dtype)
    magic = v.const(width.magic)
    shifted = v.add(v.mul(x, v.const(times * 1.4426950408889634)), magic)
    n, r = v.do("fsub", shifted, magic), x
    for part in width.ln2:
        r = v.sub(r, v.mul(n, v.const(part / times)))
    coefficients = [coefficient * times ** (power + 2) for power, coefficient in enumerate(width.p)]
    first = r if times == 1.0 else v.mul(r, v.const(times))
    square = v.mul(r, r)
    return shifted, n, v.add(v.mul(square, v.polynomial(coefficients, r)), first)


def exp_polynomial(arith: Arithmetic, dtype: str, x: str, rest: str | None = None) -> str:
    """e to the power x, or to the power x + rest, where the rest is too small to be seen in x + rest.

    Results that are 0 are 0 times a power: products that underflow take a hundred times as long (masked scores).
    """
    v, width = Lanes(arith, dtype), _width(dtype)
    low, high = v.const(width.low), v.const(width.high)
    vanishes = v.test("olt", x, low)
    if not _has_scaling(v):  # where there is, 0 times 2**-inf is 0
        x = v.select(vanishes, low, x)
    x = v.select(v.test("ogt", x, high), high, x)
    shifted, n, tail = _reduced(v, x, 1.0) if rest is None else _reduced_sum(v, x, rest)
    value = v.select(vanishes, v.const(0.0), v.add(tail, v.const(1.0)))
    return scaled(v, value, n, shifted)


def _reduced_sum(v: Lanes, x: str, rest: str) -> tuple[str, str, str]:
    """As `_reduced`, of exp(x + rest), with what is lost in r added to the tail."""
    width = _width(v.dtype)
    magic = v.const(width.magic)
    shifted = v.add(v.mul(x, v.const(1.4426950408889634)), magic)
    n = v.do("fsub", shifted, magic)
    high = v.sub(x, v.mul(n, v.const(width.ln2[0])))
    low = v.do("fsub", v.do("fmul", n, v.const(width.ln2[1])), rest)
    r = v.do("fsub", high, low)
    lost = v.do("fsub", v.do("fsub", high, r), low)
    return shifted, n, v.add(v.add(v.mul(v.mul(r, r), v.polynomial(width.p, r)), lost), r)


def scaled(v: Lanes, value: str, power: str, shifted: str) -> str:
    """value * 2**power; `shifted` is the power with the bits of an integer below."""
    width = _width(v.dtype)
    if _has_scaling(v):
        return _scaled_by_registers(v.arith, v.dtype, width, value, power)
    return _scaled_by_parts(v, width, value, shifted)


def _has_scaling(v: Lanes) -> bool:
    """Whether an instruction multiplies by powers of two."""
    return {"avx512f", "avx512vl"} <= v.arith.features and dtypes.lanes(v.dtype) in (4, 8, 16, 32, 64)


def _scaled_by_registers(arith: Arithmetic, dtype: str, width: _Width, value: str, power: str) -> str:
    """value * 2**power by the instruction for it, a register at a time."""
    w, lanes, element = arith.w, dtypes.lanes(dtype), dtypes.element(dtype)
    one = min(lanes, width.most_lanes)
    scalar = {"ps": "float", "pd": "double"}[width.suffix]
    whole, part = f"<{lanes} x {scalar}>", f"<{one} x {scalar}>"
    mask = f"i{max(8, one)}"
    name = f"llvm.x86.avx512.mask.scalef.{width.suffix}.{one * dtypes.bits(element)}"
    extra = (("i32", "4"),) if one == width.most_lanes else ()  # the rounding mode: the current one

    def instruction(a: str, b: str) -> str:
        operands = (part, a), (part, b), (part, "zeroinitializer"), (mask, "-1"), *extra
        return arith.call(name, dtypes.with_lanes(element, one), *operands)

    if lanes == one:
        return instruction(value, power)
    pieces = []
    for start in range(0, lanes, one):
        picks = range(start, start + one)
        a, b = (w.emit(shufflevector(whole, x, "poison", picks)) for x in (value, power))
        pieces.append(instruction(a, b))
    while len(pieces) > 1:
        half, count = f"<{one} x {scalar}>", 2 * one
        pieces = [
            w.emit(shufflevector(half, a, b, range(count))) for a, b in zip(pieces[::2], pieces[1::2], strict=True)
        ]
        one = count
    return pieces[0]


def _scaled_by_parts(v: Lanes, width: _Width, value: str, shifted: str) -> str:
    """value * 2**n in two factors, for one alone would leave the range for the largest and the denormal results."""
    exponent = v.on_bits("sub", v.bits(shifted), v.int(width.magic_bits))
    first = v.on_bits("ashr", exponent, v.int(1))
    for power in (first, v.on_bits("sub", exponent, first)):
        biased = v.on_bits("add", power, v.int(width.bias))
        value = v.do("fmul", value, v.from_bits(v.on_bits("shl", biased, v.int(width.mantissa))))
    return value


def tanh_polynomial(arith: Arithmetic, dtype: str, x: str) -> str:
    """The hyperbolic tangent of x."""
    v, width = Lanes(arith, dtype), _width(dtype)
    one, most = v.const(1.0), v.const(width.one)
    size = v.size(x)
    size = v.select(v.test("ogt", size, most), most, size)
    shifted, _, tail = _reduced(v, size, 2.0)
    # n is small and not negative: shifted into the exponent's place, the rest of the number it stands in is gone.
    exponent = v.on_bits("shl", v.bits(shifted), v.int(width.mantissa))
    power = v.from_bits(v.on_bits("add", exponent, v.int(width.bias << width.mantissa)))
    t = v.add(v.mul(power, tail), v.do("fsub", power, one))
    return v.with_sign(v.do("fdiv", t, v.do("fadd", t, v.const(2.0))), x)
