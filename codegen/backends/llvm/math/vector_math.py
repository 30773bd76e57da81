"""log, log1p, erf, sin, cos and pow of float32 without the C library, so that loops over them become vector code.

    log(x)    = e ln 2 + f - f**2 / 2 + f**3 P(f),  x = 2**e (1 + f),  1 + f between sqrt(1/2) and sqrt(2)
    erf(x)    = x + x P(x**2) for |x| < 1,  else 1 - exp(Q(|x|)) with the sign of x;  Q approximates log(1 - erf)
    sin, cos  : x - n pi / 2 in float64, then polynomials in float32; where |x| > 10**6 the C library
    pow(x, y) = 2**(y log2 |x|) in float64, then the cases that the standard lists

P and Q are interpolations at Chebyshev nodes; their errors are below 1e-8 of the result. The bounds in units in the
last place are those of docs/guide/performance.md, which tests hold them to. Zeros, infinities, denormals and nan give
what the C library gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft import dtypes
from weft.codegen.backends.llvm.asm.instructions import cast, icmp, phi
from weft.codegen.backends.llvm.asm.types import splat
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.math.polynomials import exp_polynomial
from weft.codegen.backends.llvm.math.vector_builder import Lanes

__all__ = [
    "cos_float32",
    "erf_float32",
    "error_function",
    "log1p_float32",
    "log_float32",
    "logarithm_at_special_values",
    "logarithm_of_one_more",
    "pow_float32",
    "power_at_special_values",
    "sin_float32",
    "whole_power_float32",
    "with_library",
]

_LOG = (
    0.33333331180030046,
    -0.2499999695795088,
    0.20000715748892078,
    -0.16667802319501407,
    0.14249057645697993,
    -0.12425687331448645,
    0.11685419923481065,
    -0.1147973384665086,
    0.06971611471479526,
)
_ERF = (
    0.1283791670615433,
    -0.3761263846802868,
    0.1128378249523712,
    -0.026865430727706544,
    0.005221031807980016,
    -0.000848408040733081,
    0.00011265959038012888,
    -9.667044604667603e-06,
)
_LOG_REST = (
    0.00032013805006033715,
    -1.1302334348436933,
    -0.6318260515559823,
    -0.1100800829520944,
    0.026421136007691397,
    -0.004759596294040368,
    0.0005968056258389999,
    -4.6058042711854146e-05,
    1.6371514158151568e-06,
)
_SIN = (-0.16666664656312208, 0.008332747104664529, -0.00019587639098737376)
_COS = (0.041666664653488804, -0.0013888301867562864, 2.454768977251765e-05)
_LOG2 = (
    2.88539008177785,
    0.9617966941132127,
    0.5770779423594805,
    0.41220925678436743,
    0.3199053739854526,
    0.2829066158009062,
)
_EXP2 = (
    1.0,
    0.6931471805459335,
    0.2402265069581299,
    0.05550410941205934,
    0.009618129159402628,
    0.0013333450567999414,
    0.0001540345585240991,
    1.531007940254368e-05,
    1.3255224887502117e-06,
)
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)  # the first two have 33 bits each
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_MAGIC_BITS = 0x4338000000000000
_LARGE = 1.0e6


def log_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The natural logarithm of x."""
    v = Lanes(arith, dtype)
    small = v.test("olt", x, v.const(2.0**-126))
    scaled = v.select(small, v.do("fmul", x, v.const(2.0**23)), x)
    # Bits above those of sqrt(1/2) count in the exponent, so that what is left lies around 1.
    above = v.on_bits("sub", v.bits(scaled), v.int(0x3F3504F3))
    exponent = v.on_bits("ashr", above, v.int(23))
    mantissa = v.from_bits(v.on_bits("sub", v.bits(scaled), v.on_bits("shl", exponent, v.int(23))))
    e = v.w.emit(cast("sitofp", v.int_type, exponent, v.ty))
    e = v.do("fadd", e, v.select(small, v.const(-23.0), v.const(0.0)))
    f = v.do("fsub", mantissa, v.const(1.0))
    square = v.mul(f, f)
    tail = v.mul(v.mul(square, f), v.polynomial(_LOG, f))
    tail = v.add(v.mul(e, v.const(_LN2_LOW)), tail)
    tail = v.add(v.mul(square, v.const(-0.5)), tail)
    value = v.add(v.mul(e, v.const(_LN2_HIGH)), v.add(f, tail))
    return logarithm_at_special_values(v, x, value)


def log1p_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The natural logarithm of 1 + x."""
    return logarithm_of_one_more(Lanes(arith, dtype), x, lambda value: log_float32(arith, dtype, value))


def logarithm_of_one_more(v: Lanes, x: str, log: Callable[[str], str]) -> str:
    """log(1 + x) by the logarithm of what 1 + x is rounded to, and c / (1 + x) for the c that is lost.

    Source: Sun Microsystems, fdlibm, 1993.
    """
    near = v.do("fadd", x, v.const(1.0))
    lost = v.do("fsub", x, v.do("fsub", near, v.const(1.0)))
    rest = v.do("fdiv", lost, near)
    rest = v.select(v.test("ord", rest, rest), rest, v.const(0.0))  # of 0 and of an infinity nothing is lost
    return v.select(v.test("oeq", near, v.const(1.0)), x, v.do("fadd", log(near), rest))


def logarithm_at_special_values(v: Lanes, x: str, value: str) -> str:
    """The logarithm of x where that of positive numbers is the value."""
    value = v.select(v.test("oeq", x, v.const(float("inf"))), x, value)
    value = v.select(v.test("oeq", x, v.const(0.0)), v.const(float("-inf")), value)
    return v.select(v.test("ult", x, v.const(0.0)), v.const(float("nan")), value)


def erf_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The error function of x."""
    return error_function(Lanes(arith, dtype), x, _ERF, _LOG_REST, 4.0)


def error_function(v: Lanes, x: str, near: Sequence[float], far: Sequence[float], most: float) -> str:
    """The error function of x by P and Q of the module; it is 1 from `most` on."""
    size = v.size(x)
    inner = v.add(v.mul(x, v.polynomial(near, v.mul(x, x))), x)
    clamped = v.select(v.test("ogt", size, v.const(most)), v.const(most), size)
    rest = exp_polynomial(v.arith, v.dtype, v.polynomial(far, clamped))
    outer = v.with_sign(v.do("fsub", v.const(1.0), rest), x)
    return v.select(v.test("olt", size, v.const(1.0)), inner, outer)


def sin_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The sine of x."""
    v = Lanes(arith, dtype)

    def usual() -> str:  # sums of zeros lose their sign
        return v.select(v.test("oeq", x, v.const(0.0)), x, _circular(arith, dtype, x, 0))

    return with_library(arith, dtype, x, "sin", usual)


def cos_float32(arith: Arithmetic, dtype: str, x: str) -> str:
    """The cosine of x."""
    return with_library(arith, dtype, x, "cos", lambda: _circular(arith, dtype, x, 1))


def _circular(arith: Arithmetic, dtype: str, x: str, quarter: int) -> str:
    """sin(x + quarter * pi / 2)."""
    v, wide = Lanes(arith, dtype), Lanes(arith, dtypes.with_lanes("float64", dtypes.lanes(dtype)))
    w = v.w
    x_wide = arith.cast(dtype, wide.dtype, x)
    shifted = wide.do("fadd", wide.do("fmul", x_wide, wide.const(0.6366197723675814)), wide.const(_MAGIC))
    n = wide.do("fsub", shifted, wide.const(_MAGIC))
    r = x_wide
    for part in _HALF_PI:
        r = wide.do("fsub", r, wide.do("fmul", n, wide.const(part)))
    count = w.emit(cast("trunc", wide.int_type, wide.bits(shifted), v.int_type))
    count = v.on_bits("add", count, v.int(quarter))
    r = arith.cast(wide.dtype, dtype, r)
    square = v.mul(r, r)
    sine = v.add(v.mul(v.mul(square, r), v.polynomial(_SIN, square)), r)
    # The tail is added to 1 - r**2 / 2, whose rounding error it makes good.
    half = v.do("fmul", square, v.const(0.5))
    head = v.do("fsub", v.const(1.0), half)
    lost = v.do("fsub", v.do("fsub", v.const(1.0), head), half)
    cosine = v.add(head, v.add(v.mul(v.mul(square, square), v.polynomial(_COS, square)), lost))
    odd = v.on_bits("and", count, v.int(1))
    is_odd = w.emit(icmp("ne", v.int_type, odd, v.int(0)))
    sign = v.on_bits("shl", v.on_bits("and", count, v.int(2)), v.int(30))
    return v.from_bits(v.on_bits("xor", v.bits(v.select(is_odd, cosine, sine)), sign))


def with_library(arith: Arithmetic, dtype: str, x: str, name: str, usual: Callable[[], str]) -> str:
    """The usual value; where an argument is too large for it (10**6) the C library's, for all lanes."""
    v, w, lanes = Lanes(arith, dtype), arith.w, dtypes.lanes(dtype)
    large = v.test("ogt", v.size(x), v.const(_LARGE))
    some = large
    if lanes > 1:
        some = w.emit(icmp("ne", f"i{lanes}", w.emit(cast("bitcast", f"<{lanes} x i1>", large, f"i{lanes}")), "0"))
    value = usual()
    start, slow, done = w.block_label, w.label("large"), w.label("reduced")
    w.branch(some, slow, done, ', !prof !{!"branch_weights", i32 1, i32 2000}')
    w.open(slow)
    exact, end = arith.overloaded(name, dtype, x), w.block_label
    w.open(done)
    return w.emit(phi(v.ty, (value, start), (exact, end)))


def pow_float32(arith: Arithmetic, dtype: str, x: str, y: str) -> str:
    """x to the power y."""
    v, wide = Lanes(arith, dtype), Lanes(arith, dtypes.with_lanes("float64", dtypes.lanes(dtype)))
    size = v.size(x)
    exponent = wide.do("fmul", _log2(wide, arith.cast(dtype, wide.dtype, size)), arith.cast(dtype, wide.dtype, y))
    return power_at_special_values(v, x, y, arith.cast(wide.dtype, dtype, _exp2(wide, exponent)))


def power_at_special_values(v: Lanes, x: str, y: str, value: str) -> str:
    """x to the power y where |x| to the power y is the value: signs, zeros, infinities, nan as the standard lists."""
    one, zero, infinity = v.const(1.0), v.const(0.0), v.const(float("inf"))
    size = v.size(x)
    falls = v.test("olt", y, zero)
    value = v.select(v.test("oeq", size, zero), v.select(falls, infinity, zero), value)
    value = v.select(v.test("oeq", size, infinity), v.select(falls, zero, infinity), value)
    value = v.select(v.test("oeq", size, one), one, value)
    whole = v.test("oeq", v.arith.overloaded("floor", v.dtype, y), y)
    half = v.do("fmul", y, v.const(0.5))
    odd = v.both("and", whole, v.test("one", v.arith.overloaded("floor", v.dtype, half), half))
    negative = v.w.emit(icmp("slt", v.int_type, v.bits(x), v.int(0)))
    value = v.select(v.both("and", negative, odd), v.neg(value), value)
    below = v.both("and", v.test("olt", x, zero), v.test("one", size, infinity))
    bad = v.both("and", below, v.both("xor", whole, splat("true", dtypes.with_lanes("bool", dtypes.lanes(v.dtype)))))
    bad = v.both("or", bad, v.test("uno", x, y))
    value = v.select(bad, v.const(float("nan")), value)
    return v.select(v.both("or", v.test("oeq", x, one), v.test("oeq", y, zero)), one, value)


def whole_power_float32(arith: Arithmetic, dtype: str, x: str, count: int) -> str:
    """x to a power that is known: products in float64, whose range and precision leave one rounding to see."""
    wide = Lanes(arith, dtypes.with_lanes("float64", dtypes.lanes(dtype)))
    square = arith.cast(dtype, wide.dtype, x)
    value, left = None, abs(count)
    while left:
        if left % 2:
            value = square if value is None else wide.mul(value, square)
        left //= 2
        square = wide.mul(square, square) if left else square
    assert value is not None
    if count < 0:
        value = wide.do("fdiv", wide.const(1.0), value)
    return arith.cast(wide.dtype, dtype, value)


def _log2(v: Lanes, x: str) -> str:
    """The binary logarithm of positive float64 values that are normal."""
    above = v.on_bits("sub", v.bits(x), v.int(0x3FE6A09E667F3BCD))
    exponent = v.on_bits("ashr", above, v.int(52))
    mantissa = v.from_bits(v.on_bits("sub", v.bits(x), v.on_bits("shl", exponent, v.int(52))))
    ratio = v.do("fdiv", v.do("fsub", mantissa, v.const(1.0)), v.do("fadd", mantissa, v.const(1.0)))
    tail = v.mul(ratio, v.polynomial(_LOG2, v.mul(ratio, ratio)))
    return v.do("fadd", v.w.emit(cast("sitofp", v.int_type, exponent, v.ty)), tail)


def _exp2(v: Lanes, x: str) -> str:
    """2 to the power x in float64, for results in the range of float32 and a little beyond."""
    x = v.select(v.test("olt", x, v.const(-400.0)), v.const(-400.0), x)
    x = v.select(v.test("ogt", x, v.const(400.0)), v.const(400.0), x)
    shifted = v.do("fadd", x, v.const(_MAGIC))
    r = v.do("fsub", x, v.do("fsub", shifted, v.const(_MAGIC)))
    n = v.on_bits("shl", v.on_bits("sub", v.bits(shifted), v.int(_MAGIC_BITS)), v.int(52))
    return v.from_bits(v.on_bits("add", v.bits(v.polynomial(_EXP2, r)), n))
