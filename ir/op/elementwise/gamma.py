"""The gamma function and its derivatives, the inverse of the error function, Bessel functions, parts of floats.

All are computed in float64 and rounded once. Shape: that of x. Errors: DTypeError W321.

Sources: Lanczos, A precision approximation of the gamma function, 1964 (the coefficients of Godfrey for g = 7);
Wichura, Algorithm AS 241, 1988 (the percentage points of the normal distribution); Abramowitz and Stegun, Handbook of
mathematical functions, 6.3.18 (digamma), 23.2.9 (the Hurwitz zeta function by Euler and Maclaurin), 9.6.10 and 9.7.1
(Bessel functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.kernel.prim import binary, intrinsic
from weft.ir.op.common import Kernel, example, f32, kernel_lowering, require_dtype, shape_error, tensor, typed
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.elementwise.unary import elementwise
from weft.ir.op.layout_rules.families import broadcasting
from weft.ir.op.precision import RANGE
from weft.ir.op.registry import register_op
from weft.ir.tensor import PrimCall, PrimExpr, PrimFunc
from weft.ir.types import TensorType, TupleType

__all__: list[str] = []

_WIDE = "float64"
Number = Any  # a scalar of a kernel, or an array of NumPy: the formulas are written once for both


def _horner(x: Number, coefficients: Sequence[float]) -> Number:
    """A polynomial, the highest power first."""
    value = x * 0.0 + coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


class _OfKernel:
    """What the formulas need, of scalars of kernels."""

    log, exp, sqrt, floor = staticmethod(te.log), staticmethod(te.exp), staticmethod(te.sqrt), staticmethod(te.floor)
    abs, select, equal = staticmethod(te.abs), staticmethod(te.select), staticmethod(te.equal)

    @staticmethod
    def tan(x: Number) -> Number:
        return intrinsic("tan", x)

    @staticmethod
    def number(value: float) -> Number:
        return te.const(value, _WIDE)


class _OfArrays:
    """What the formulas need, of arrays."""

    log, exp, sqrt, tan, floor, abs = np.log, np.exp, np.sqrt, np.tan, np.floor, np.abs
    select, equal = np.where, np.equal

    @staticmethod
    def number(value: float) -> Number:
        return np.float64(value)


# The logarithm of the gamma function

_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def _lgamma(x: Number) -> Number:
    whole = te.floor(x)
    low = x < 0.5
    z = te.select(low, 1.0 - x, x) - 1.0  # the reflection takes what is below 1/2 to above it
    total = z * 0.0 + _LANCZOS[0]
    for place, coefficient in enumerate(_LANCZOS[1:], 1):
        total = total + coefficient / (z + float(place))
    base = z + 7.5
    above = (z + 0.5) * te.log(base) - base + te.log(total) + 0.5 * math.log(2 * math.pi)
    at_infinity = te.equal(te.abs(x), te.const(math.inf, _WIDE))
    sine = te.abs(te.sin((x - whole) * math.pi))  # exactly 0 at whole numbers
    at_pole = te.all(low, te.equal(x, whole))
    safe = te.select(at_pole, te.const(1.0, _WIDE), sine)
    reflected = math.log(math.pi) - te.log(safe) - above
    pole = te.any(at_pole, at_infinity)
    return te.select(pole, te.const(math.inf, _WIDE), te.select(low, reflected, above))


def _lgamma_reference(x: Any) -> Any:
    def one(value: float) -> float:
        if math.isnan(value):
            return value
        return math.inf if math.isinf(value) or (value <= 0 and value == math.floor(value)) else math.lgamma(value)

    return np.vectorize(one, otypes=[np.float64])(x) if np.size(x) else np.zeros(np.shape(x))


# Its derivatives

_SHIFT = 12  # the asymptotic series begins at arguments above it
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # B2, B4, ...


def _digamma(x: Number, of: Any) -> Number:
    low = x < 0.5
    z = of.select(low, 1.0 - x, x)
    total = 1.0 / z
    for place in range(1, _SHIFT):
        total = total + 1.0 / (z + float(place))
    y = z + float(_SHIFT)
    inverse = 1.0 / (y * y)
    series = [number / (2 * place) for place, number in enumerate(_BERNOULLI, 1)]
    tail = _horner(inverse, [*reversed(series), 0.0])
    above = of.log(y) - 0.5 / y - tail - total
    fraction = x - of.floor(x)
    pole = of.equal(fraction, of.number(0.0))
    angle = of.select(pole, of.number(0.25), fraction) * math.pi
    reflected = above - math.pi / of.tan(angle)
    below = of.select(pole, of.number(math.nan), reflected)
    zero = of.equal(x, of.number(0.0))
    found = of.select(low, of.select(zero, of.number(-math.inf), below), above)
    return of.select(of.equal(x, of.number(math.inf)), x, found)


def _polygamma(x: Number, order: int, of: Any) -> Number:
    """(-1)**(order + 1) order! zeta(order + 1, x) for x above 0."""
    power = order + 1
    total, y = _to_minus(x, power), x
    for place in range(1, _SHIFT):
        y = x + float(place)
        total = total + _to_minus(y, power)
    y = x + float(_SHIFT)
    first = _to_minus(y, power)
    tail = first * y / float(power - 1) + 0.5 * first
    rising, inverse = float(power), 1.0 / (y * y)
    term = first / y
    for place, number in enumerate(_BERNOULLI, 1):
        tail = tail + term * (number / math.factorial(2 * place) * rising)
        rising *= (power + 2 * place - 1) * (power + 2 * place)
        term = term * inverse
    sign = 1.0 if order % 2 else -1.0
    value = (total + tail) * (sign * math.factorial(order))
    infinite = of.number(math.inf if order % 2 else -math.inf)
    at_zero = of.select(of.equal(x, of.number(0.0)), infinite, of.number(math.nan))
    inside = of.select(of.equal(x, of.number(math.inf)), of.number(0.0), value)
    return of.select(x > 0.0, inside, at_zero)


def _to_minus(x: Number, power: int) -> Number:
    inverse = 1.0 / x
    value = inverse
    for _ in range(power - 1):
        value = value * inverse
    return value


# The inverse of the error function

_CENTRE = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.3871328727963666080,
    ),
    (
        5226.4952788528545610,
        28729.085735721942674,
        39307.895800092710610,
        21213.794301586595867,
        5394.1960214247511077,
        687.18700749205790830,
        42.313330701600911252,
        1.0,
    ),
)
_MIDDLE = (
    (
        7.74545014278341407640e-4,
        0.0227238449892691845833,
        0.241780725177450611770,
        1.27045825245236838258,
        3.64784832476320460504,
        5.76949722146069140550,
        4.63033784615654529590,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.148103976427480074590,
        0.689767334985100004550,
        1.67638483018380384940,
        2.05319162663775882187,
        1.0,
    ),
)
_TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.00124266094738807843860,
        0.0265321895265761230930,
        0.296560571828504891230,
        1.78482653991729133580,
        5.46378491116411436990,
        6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        0.0148753612908506148525,
        0.136929880922735805310,
        0.599832206555887937690,
        1.0,
    ),
)


def _erfinv(x: Number, of: Any) -> Number:
    size = of.abs(x)
    q = 0.5 * x
    near = 0.180625 - q * q
    centre = q * _horner(near, _CENTRE[0]) / _horner(near, _CENTRE[1])
    rest = 0.5 * (1.0 - size)
    r = of.sqrt(0.0 - of.log(of.select(rest > 0.0, rest, of.number(0.25))))
    middle = _horner(r - 1.6, _MIDDLE[0]) / _horner(r - 1.6, _MIDDLE[1])
    tail = _horner(r - 5.0, _TAIL[0]) / _horner(r - 5.0, _TAIL[1])
    outer = of.select(r <= 5.0, middle, tail)
    signed = of.select(x < 0.0, 0.0 - outer, outer)
    inside = of.select(size <= 0.85, centre, signed) * math.sqrt(0.5)
    infinite = of.select(x < 0.0, of.number(-math.inf), of.number(math.inf))
    edge = of.select(of.equal(size, of.number(1.0)), infinite, of.number(math.nan))
    return of.select(size < 1.0, inside, edge)


# Bessel functions

_TERMS, _FAR = 50, 22.0


def _bessel(x: Number, order: int, of: Any) -> Number:
    """The modified Bessel function of the first kind, of order 0 or 1."""
    size = of.abs(x)
    inner = of.select(size < _FAR, size, of.number(1.0))
    quarter = inner * inner * 0.25
    series = [1.0 / (math.factorial(k) * math.factorial(k + order)) for k in range(_TERMS)]
    near = _horner(quarter, series[::-1])
    if order:
        near = near * inner * 0.5
    outer = of.select(size < _FAR, of.number(_FAR), size)
    coefficients, value = [1.0], 1.0
    for k in range(1, 15):
        value *= -(4 * order**2 - (2 * k - 1) ** 2) / (k * 8)
        coefficients.append(value)
    # exp is taken in halves: the whole overflows before the quotient does.
    half = of.exp(outer * 0.5)
    far = half * (half / of.sqrt(outer * (2 * math.pi)) * _horner(1.0 / outer, coefficients[::-1]))
    found = of.select(size < _FAR, near, of.select(of.equal(size, of.number(math.inf)), size, far))
    found = of.select(of.equal(x, x), found, x)
    return of.select(x < 0.0, 0.0 - found, found) if order else found


def _special(
    name: str, doc: str, formula: Callable[[Number, Any], Number], ranges: tuple[float, float], reference: Any = None
) -> None:
    """Declare a function of one number by a formula for kernels and arrays."""

    def scalar(x: PrimExpr) -> PrimExpr:
        return te.cast(x.dtype, formula(te.cast(_WIDE, x), _OfKernel))

    def numpy(x: Any) -> Any:
        with np.errstate(all="ignore"):
            wide = np.asarray(x, np.float64)
            return np.asarray(reference(wide) if reference else formula(wide, _OfArrays)).astype(x.dtype)

    elementwise(name, doc, scalar=scalar, numpy=numpy, ranges=ranges, precision=RANGE)


_special(
    "lgamma",
    "The logarithm of the absolute value of the gamma function, elementwise; an infinity at its poles.",
    lambda x, of: _lgamma(x),
    (0.1, 12),
    _lgamma_reference,
)
_special(
    "digamma", "The derivative of lgamma, elementwise; nan at whole numbers below 0, -inf at 0.", _digamma, (0.1, 9)
)
_special("erfinv", "The number whose error function is x, elementwise; nan outside [-1, 1].", _erfinv, (-0.999, 0.999))
_special("i0", "The modified Bessel function of order 0, elementwise.", lambda x, of: _bessel(x, 0, of), (-30, 30))
_special("i1", "The modified Bessel function of order 1, elementwise.", lambda x, of: _bessel(x, 1, of), (-30, 30))


@kernel_lowering
def _lower_polygamma(kernel: Kernel) -> PrimFunc | None:
    x, order = kernel.input("x"), kernel.args.n
    formula: Callable[[Any, Any], Any] = _digamma if order == 0 else lambda x, of: _polygamma(x, order, of)
    return kernel.compute(lambda *i: te.cast(x.dtype, formula(te.cast(_WIDE, x(*i)), _OfKernel)))


def _polygamma_reference(x: Any, *, n: int) -> Any:
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        return (_digamma(wide, _OfArrays) if n == 0 else _polygamma(wide, n, _OfArrays)).astype(x.dtype)


@register_op(
    "polygamma",
    [Param("x"), Param("n", "attr", of="int")],
    lowering=_lower_polygamma,
    numpy=_polygamma_reference,
    pure=True,
    layout=broadcasting("x"),
    family="unary",
    examples=(
        example(f32(2, 3), 1, ranges={"x": (0.1, 9)}),
        example(f32("n"), 0, ranges={"x": (0.1, 9)}),
        example(typed("float64", 5), 3, ranges={"x": (0.1, 9)}),
    ),
)
def polygamma(args: Arguments, context: TypeContext) -> TensorType:
    """The n-th derivative of digamma, elementwise, for x >= 0; nan below 0 where n > 0.

    Errors: ShapeError W205 for an order below 0 or above 20.
    """
    x = tensor(args, "x", context)
    require_dtype(args, "x", x, "float")
    if not 0 <= args.n <= 20:
        raise shape_error(args, f"n is an order from 0 to 20, got {args.n}", "W205")
    return x


# Parts of floats

_BITS = {"float16": ("uint16", 10, 5), "float32": ("uint32", 23, 8), "float64": ("uint64", 52, 11)}


@kernel_lowering
def _lower_frexp(kernel: Kernel) -> PrimFunc | None:
    x = kernel.input("x")
    mantissa = te.compute(x.shape, lambda *i: _parts(x(*i))[0], "mantissa")
    return kernel.finish(mantissa, te.compute(x.shape, lambda *i: _parts(x(*i))[1], "exponent"))


def _parts(x: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """The mantissa in [0.5, 1) and the exponent; 0, infinities and nan are their own mantissas."""
    dtype = x.dtype
    bits, fraction, width = _BITS[dtype]
    most = 2**width - 1
    bias = most // 2
    tiny = te.abs(x) < te.const(2.0 ** (1 - bias), dtype)  # subnormal: scaled into the normal range first
    scaled = te.select(tiny, x * te.const(2.0 ** (fraction + 1), dtype), x)
    word = PrimCall("reinterpret", (scaled,), bits)
    shifted = te.cast("int32", binary("shift_right", word, te.const(fraction, bits)))
    exponent = binary("bitwise_and", shifted, te.const(most, "int32"))
    kept = binary("bitwise_and", word, te.const((1 << (fraction + width + 1)) - 1 - (most << fraction), bits))
    merged = binary("bitwise_or", kept, te.const((bias - 1) << fraction, bits))
    mantissa = PrimCall("reinterpret", (merged,), dtype)
    plain = te.any(te.equal(x, te.const(0, dtype)), te.equal(exponent, te.const(most, "int32")))
    shift = te.select(tiny, te.const(fraction + 1, "int32"), te.const(0, "int32"))
    power = exponent - te.const(bias - 1, "int32") - shift
    return te.select(plain, x, mantissa), te.select(plain, te.const(0, "int32"), power)


def _frexp_reference(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, np.where(np.isfinite(x), exponent, 0).astype(np.int32)


@register_op(
    "frexp",
    [Param("x")],
    lowering=_lower_frexp,
    numpy=_frexp_reference,
    pure=True,
    family="unary",
    examples=(example(f32(2, 3)), example(f32("n")), example(typed("float64", 5), ranges={"x": (-1e-310, 1e-310)})),
)
def frexp(args: Arguments, context: TypeContext) -> TupleType:
    """The mantissa in [0.5, 1) with the sign of x, and the exponent (int32) of x = mantissa * 2**exponent, elementwise.

    0, infinities and nan are their own mantissas, with exponent 0. Dtype: float16, float32 or float64.
    """
    x = tensor(args, "x", context)
    require_dtype(args, "x", x, "float")
    if x.dtype is not None and x.dtype not in _BITS:
        raise shape_error(args, f"the dtype of x is float16, float32 or float64, it is {x.dtype}", "W205")
    return TupleType((x, TensorType(x.shape, "int32", x.ndim)))
