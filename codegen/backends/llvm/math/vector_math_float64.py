"""log, log1p, erf, sin, cos and pow of float64 without the C library, so that loops over them become vector code.

    log(x)    = e ln 2 + f - (f**2 / 2 - s (f**2 / 2 + R(s**2))),  x = 2**e (1 + f),  s = f / (2 + f)
    erf(x)    = x + x P(x**2) for |x| < 1,  else 1 - exp(Q(|x|)) with the sign of x;  Q approximates log(1 - erf)
    sin, cos  : x - n pi / 2 as a sum of two numbers, then polynomials; where |x| > 10**6 the C library
    pow(x, y) = exp(y log |x|) with the logarithm and the product as sums of two numbers, then the cases that the
                standard lists; the C library on processors without fused multiply-add, which the sums need

The polynomials are interpolations at Chebyshev nodes; their errors are below 2e-17 of the result. The bounds in units
in the last place are those of docs/guide/performance.md, which tests hold them to. Zeros, infinities, denormals and nan
give what the C library gives.

Sources: Dekker, A floating-point technique for extending the available precision, 1971 (sums of two numbers); Cody and
Waite, Software manual for the elementary functions, 1980.
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.instructions import icmp
from weft.codegen.backends.llvm.math.arithmetic import Arithmetic
from weft.codegen.backends.llvm.math.polynomials import exp_polynomial
from weft.codegen.backends.llvm.math.vector_builder import Lanes
from weft.codegen.backends.llvm.math.vector_math import (
    error_function,
    logarithm_at_special_values,
    logarithm_of_one_more,
    power_at_special_values,
    with_library,
)

__all__ = ["cos_float64", "erf_float64", "log1p_float64", "log_float64", "pow_float64", "sin_float64"]

_LOG = (
    0.666666666666667,
    0.3999999999989924,
    0.2857142862609589,
    0.2222221111514416,
    0.18182890556695602,
    0.1533167403016786,
    0.1461703754879165,
)
_LOG_TAIL = (
    0.142857142857143,
    0.11111111111070249,
    0.09090909113077864,
    0.07692303188398482,
    0.06667101471244481,
    0.05860891151691933,
    0.057833636360163296,
)
_ERF = (
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954879,
    -0.026866170645076792,
    0.0052239776248180145,
    -0.000854832698083379,
    0.0001205533111164271,
    -1.4925595266831182e-05,
    1.6461000484121368e-06,
    -1.6350312701054695e-07,
    1.4659775274047436e-08,
    -1.1372848856791674e-09,
    5.957176147748911e-11,
)
_LOG_REST = (
    9.500596436636486e-08,
    -1.1283802455656253,
    -0.636613960903923,
    -0.10279239389853814,
    0.019176278554258568,
    0.00012186485661000362,
    -0.001571069019949099,
    0.0004458702499818829,
    0.0001100548521219971,
    -0.00017015623738726225,
    9.764709000637323e-05,
    -3.930293691543411e-05,
    1.2452416583195703e-05,
    -3.2349073609369935e-06,
    7.005584238667667e-07,
    -1.271616570815886e-07,
    1.9322784539874932e-08,
    -2.442621800222298e-09,
    2.540086103451864e-10,
    -2.1361365767751822e-11,
    1.4164992742743795e-12,
    -7.127552601309342e-14,
    2.5567825175661117e-15,
    -5.822965054790444e-17,
    6.325520588718493e-19,
)
_SIN = (
    -0.16666666666666666,
    0.008333333333330936,
    -0.00019841269836740532,
    2.7557316093198404e-06,
    -2.5051129896450185e-08,
    1.5917988979397435e-10,
)
_COS = (
    0.041666666666666664,
    -0.0013888888888887389,
    2.48015872987544e-05,
    -2.755731726587808e-07,
    2.087614504941318e-09,
    -1.138254464534925e-11,
)
_HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)  # 33 bits each
_LN2_HIGH, _LN2_LOW = 0.6931471805598903, 5.497923018708371e-14  # the first has 42 bits
_THIRD, _FIFTH = (0.3333333333333333, 1.850371707708594e-17), (0.2, -1.1102230246251566e-17)  # and what they lack
_MAGIC = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which stands in the low bits
_MAGIC_BITS = 0x4338000000000000


def _split(v: Lanes, x: str) -> tuple[str, str]:
    """(e, f) of a positive x = 2**e * (1 + f), with 1 + f between sqrt(1/2) and sqrt(2)."""
    small = v.test("olt", x, v.const(2.0**-1022))
    raised = v.bits(v.select(small, v.do("fmul", x, v.const(2.0**54)), x))
    above = v.on_bits("sub", raised, v.int(0x3FE6A09E667F3BCD))
    exponent = v.on_bits("ashr", above, v.int(52))
    mantissa = v.from_bits(v.on_bits("sub", raised, v.on_bits("shl", exponent, v.int(52))))
    e = v.do("fsub", v.from_bits(v.on_bits("add", exponent, v.int(_MAGIC_BITS))), v.const(_MAGIC))
    e = v.do("fadd", e, v.select(small, v.const(-54.0), v.const(0.0)))
    return e, v.do("fsub", mantissa, v.const(1.0))


def log_float64(arith: Arithmetic, dtype: str, x: str) -> str:
    """The natural logarithm of x."""
    v = Lanes(arith, dtype)
    e, f = _split(v, x)
    s = v.do("fdiv", f, v.do("fadd", f, v.const(2.0)))
    z = v.mul(s, s)
    half = v.mul(v.mul(f, f), v.const(0.5))
    tail = v.add(v.mul(s, v.add(v.mul(z, v.polynomial(_LOG, z)), half)), v.mul(e, v.const(_LN2_LOW)))
    value = v.add(v.mul(e, v.const(_LN2_HIGH)), v.sub(f, v.sub(half, tail)))
    return logarithm_at_special_values(v, x, value)


def log1p_float64(arith: Arithmetic, dtype: str, x: str) -> str:
    """The natural logarithm of 1 + x."""
    return logarithm_of_one_more(Lanes(arith, dtype), x, lambda value: log_float64(arith, dtype, value))


def erf_float64(arith: Arithmetic, dtype: str, x: str) -> str:
    """The error function of x."""
    return error_function(Lanes(arith, dtype), x, _ERF, _LOG_REST, 6.0)


def sin_float64(arith: Arithmetic, dtype: str, x: str) -> str:
    """The sine of x."""
    v = Lanes(arith, dtype)

    def usual() -> str:  # the sum of two numbers loses the sign of zero
        return v.select(v.test("oeq", x, v.const(0.0)), x, _circular(v, x, 0))

    return with_library(arith, dtype, x, "sin", usual)


def cos_float64(arith: Arithmetic, dtype: str, x: str) -> str:
    """The cosine of x."""
    return with_library(arith, dtype, x, "cos", lambda: _circular(Lanes(arith, dtype), x, 1))


def _circular(v: Lanes, x: str, quarter: int) -> str:
    """sin(x + quarter * pi / 2)."""
    shifted = v.do("fadd", v.do("fmul", x, v.const(0.6366197723675814)), v.const(_MAGIC))
    n = v.do("fsub", shifted, v.const(_MAGIC))
    first, *middle, last = (v.do("fmul", n, v.const(part)) for part in _HALF_PI)
    high, low = v.do("fsub", x, first), v.neg(last)  # exact, as the products with all but the last are
    for product in middle:
        high, lost = _difference(v, high, product)
        low = v.do("fadd", low, lost)
    r = v.do("fadd", high, low)
    low = v.do("fadd", v.do("fsub", high, r), low)
    count = v.on_bits("add", v.bits(shifted), v.int(quarter))
    z = v.mul(r, r)
    half = v.do("fmul", z, v.const(0.5))
    head = v.do("fsub", v.const(1.0), half)
    lost = v.do("fsub", v.do("fsub", v.const(1.0), head), half)
    sine = v.add(v.add(v.mul(v.mul(z, r), v.polynomial(_SIN, z)), v.mul(low, head)), r)
    tail = v.add(v.mul(v.mul(z, z), v.polynomial(_COS, z)), v.sub(lost, v.mul(r, low)))
    cosine = v.do("fadd", head, tail)
    is_odd = v.w.emit(icmp("ne", v.int_type, v.on_bits("and", count, v.int(1)), v.int(0)))
    sign = v.on_bits("shl", v.on_bits("and", count, v.int(2)), v.int(62))
    return v.from_bits(v.on_bits("xor", v.bits(v.select(is_odd, cosine, sine)), sign))


def _difference(v: Lanes, a: str, b: str) -> tuple[str, str]:
    """a - b as a number and what it lacks."""
    new = v.do("fsub", a, b)
    taken = v.do("fsub", a, new)
    kept = v.do("fadd", new, taken)
    return new, v.do("fadd", v.do("fsub", a, kept), v.do("fsub", taken, b))


def pow_float64(arith: Arithmetic, dtype: str, x: str, y: str) -> str:
    """x to the power y."""
    if not {"fma", "sve", "neon"} & arith.features:
        return arith.overloaded("pow", dtype, x, y)
    v = Lanes(arith, dtype)
    high, low = _long_log(v, v.size(x))
    exponent = v.do("fmul", y, high)
    rest = v.do("fadd", v.fma(y, high, v.neg(exponent)), v.do("fmul", y, low))
    inside = v.test("olt", v.size(exponent), v.const(800.0))
    value = exp_polynomial(arith, dtype, exponent, v.select(inside, rest, v.const(0.0)))
    return power_at_special_values(v, x, y, value)


def _long_log(v: Lanes, x: str) -> tuple[str, str]:
    """log(x) of positive x as a sum: 2 s (1 + W) + e ln 2, W = z / 3 + z**2 / 5 + z**3 T(z), z = s**2."""
    e, f = _split(v, x)
    two = v.const(2.0)
    g = v.do("fadd", f, two)
    g_low = v.do("fsub", f, v.do("fsub", g, two))
    inverse = v.do("fdiv", v.const(1.0), g)
    s = v.do("fmul", f, inverse)
    s_low = v.do("fmul", v.fma(v.neg(s), g_low, v.fma(v.neg(s), g, f)), inverse)
    u = v.do("fmul", s, two), v.do("fmul", s_low, two)
    z = _product(v, (s, s_low), (s, s_low))
    third = _product(v, z, (v.const(_THIRD[0]), v.const(_THIRD[1])))
    fifth = _product(v, _product(v, z, z), (v.const(_FIFTH[0]), v.const(_FIFTH[1])))
    rest = v.mul(v.mul(v.mul(z[0], z[0]), z[0]), v.polynomial(_LOG_TAIL, z[0]))
    w, lost = _sum(v, third[0], fifth[0])
    w_low = v.do("fadd", v.do("fadd", lost, rest), v.do("fadd", third[1], fifth[1]))
    m = _product(v, u, (w, w_low))
    h, lost = _sum(v, u[0], m[0])
    h_low = v.do("fadd", lost, v.do("fadd", m[1], u[1]))
    high, lost = _sum(v, v.do("fmul", e, v.const(_LN2_HIGH)), h)
    return _sum(v, high, v.do("fadd", lost, v.fma(e, v.const(_LN2_LOW), h_low)))


def _sum(v: Lanes, a: str, b: str) -> tuple[str, str]:
    """a + b as a number and what it lacks; a is 0 or the larger one."""
    total = v.do("fadd", a, b)
    return total, v.do("fadd", v.do("fsub", a, total), b)


def _product(v: Lanes, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    """The product of two numbers that come with what they lack."""
    total = v.do("fmul", a[0], b[0])
    return total, v.fma(a[1], b[0], v.fma(a[0], b[1], v.fma(a[0], b[0], v.neg(total))))
