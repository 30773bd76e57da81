"""Functions of complex elements as formulas of their parts, z = a + b i.

    exp   e^a (cos b, sin b)         sin   (sin a cosh b,  cos a sinh b)         sinh   (sinh a cos b, cosh a sin b)
    log   (log |z|, angle z)         cos   (cos a cosh b, -sin a sinh b)         cosh   (cosh a cos b, sinh a sin b)
    sqrt, tanh, asin, acos, acosh            Kahan's, which lose no digits; asinh z = -i asin(i z)
    atanh                                    (log1p(4 a / ((1 - a)^2 + b^2)) / 4, atan2(2 b, (1 - a)(1 + a) - b^2) / 2)

What is infinite or nan in one part may make both nan: the special cases of Annex G of C are not written out. Sources:
W. Kahan, Branch cuts for complex elementary functions, 1987; T. E. Hull et al., Implementing complex elementary
functions using exception handling, 1994.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.dtypes import is_complex
from weft.ir import te
from weft.ir.kernel.prim import binary, intrinsic, unary
from weft.ir.tensor import FloatImm, PrimCall, PrimExpr

__all__ = ["FORMULAS", "absolute", "angle", "either", "expm1", "function", "power", "sinc"]

Formula = Callable[[PrimExpr, PrimExpr], PrimExpr]


def function(name: str) -> Callable[[PrimExpr], PrimExpr]:
    """The function of a name for elements of either kind: the intrinsic of floats, the formula of complex ones."""

    def of(x: PrimExpr) -> PrimExpr:
        return FORMULAS[name](te.real(x), te.imag(x)) if is_complex(x.dtype) else intrinsic(name, x)

    return of


def either(name: str, of_others: Callable[[PrimExpr], PrimExpr]) -> Callable[[PrimExpr], PrimExpr]:
    """Whether an intrinsic holds for some part of complex elements; another function of others."""

    def of(x: PrimExpr) -> PrimExpr:
        if not is_complex(x.dtype):
            return of_others(x)
        a, b = intrinsic(name, te.real(x)), intrinsic(name, te.imag(x))
        return te.all(a, b) if name == "isfinite" else te.any(a, b)

    return of


def absolute(x: PrimExpr) -> PrimExpr:
    """|x|, a float of complex elements."""
    return _length(te.real(x), te.imag(x)) if is_complex(x.dtype) else intrinsic("abs", x)


def angle(x: PrimExpr) -> PrimExpr:
    """The angle of a number in the plane: of floats 0 or pi, nan of nan."""
    if is_complex(x.dtype):
        return intrinsic("atan2", te.imag(x), te.real(x))
    pi, zero = te.const(math.pi, x.dtype), te.const(0.0, x.dtype)
    return te.select(intrinsic("isnan", x), x, te.select(x < 0, pi, zero))


def _length(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """hypot(a, b) as code of vectors: squares of float32 do not overflow in float64, others are scaled."""
    infinite = te.any(intrinsic("isinf", a), intrinsic("isinf", b))
    if a.dtype == "float32":
        x, y = te.cast("float64", a), te.cast("float64", b)
        length = te.cast("float32", te.sqrt(x * x + y * y))
    else:
        x, y = te.abs(a), te.abs(b)
        great = te.maximum(x, y)
        ratio = te.minimum(x, y) / te.select(te.equal(great, 0), te.const(1.0, a.dtype), great)
        length = great * te.sqrt(ratio * ratio + 1)
    return te.select(infinite, te.const(math.inf, a.dtype), length)


def _exp(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    grown = te.exp(a)
    return te.complex(grown * te.cos(b), te.select(te.equal(b, 0), b, grown * te.sin(b)))


def _log(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The logarithm of the length by log1p where it is near 0, so that it keeps its digits."""
    x, y = te.abs(a), te.abs(b)
    great, small = te.maximum(x, y), te.minimum(x, y)
    near = intrinsic("log1p", (great - 1) * (great + 1) + small * small) * 0.5
    around = te.all(great > 0.5, great < 2)
    return te.complex(te.select(around, near, te.log(_length(a, b))), intrinsic("atan2", b, a))


def _sqrt(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    # Not from the sum of squares: it overflows, and the difference of |z| and a cancels.
    root = te.sqrt(te.abs(a) * 0.5 + _length(a, b) * 0.5)
    zero = te.equal(root, 0)
    other = te.abs(b) * 0.5 / te.select(zero, te.const(1.0, a.dtype), root)
    right = binary("ge", a, 0)
    real = te.select(right, root, other)
    imaginary = intrinsic("copysign", te.select(right, other, root), b)
    return te.complex(real, te.select(zero, b, imaginary))


def _tanh(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    slope, grown = te.tan(b), te.sinh(a)
    beta = slope * slope + 1
    below = beta * grown * grown + 1
    near = te.complex(beta * te.sqrt(grown * grown + 1) * grown / below, slope / below)
    limit = 11 if a.dtype == "float32" else 22
    sign = intrinsic("copysign", te.const(1.0, a.dtype), a)
    far = te.complex(sign, te.sin(b) * te.cos(b) * 4 * te.exp(te.abs(a) * -2))
    return te.select(te.abs(a) > limit, far, near)


def _expm1_of_reals(x: PrimExpr) -> PrimExpr:
    # Near 0 the difference would cancel: exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2).
    half = te.tanh(x * 0.5)
    return te.select(te.abs(x) < 0.5, 2 * half / (1 - half), te.exp(x) - 1)


def expm1(x: PrimExpr) -> PrimExpr:
    """exp(x) - 1, exact for small x."""
    return function("expm1")(x) if is_complex(x.dtype) else _expm1_of_reals(x)


def sinc(x: PrimExpr) -> PrimExpr:
    """sin(pi x) / (pi x), 1 at 0."""
    turned = x * math.pi
    one, at_zero = te.const(1, x.dtype), te.equal(x, 0)
    return te.select(at_zero, one, function("sin")(turned) / te.select(at_zero, one, turned))


def _expm1(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    sine = te.sin(b * 0.5)
    return te.complex(_expm1_of_reals(a) * te.cos(b) - sine * sine * 2, te.exp(a) * te.sin(b))


def _log1p(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """The logarithm of 1 + z; its length by log1p where it is near 1, without the rounding of 1 + a."""
    great = te.maximum(te.abs(a + 1), te.abs(b))
    near = intrinsic("log1p", a * (a + 2) + b * b) * 0.5
    around = te.all(great > 0.5, great < 2)
    return te.complex(te.select(around, near, te.log(_length(a + 1, b))), intrinsic("atan2", b, a + 1))


def _scaled(formula: Formula, scale: float) -> Formula:
    """A formula times a real number."""

    def of(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        found = formula(a, b)
        return te.complex(te.real(found) * scale, te.imag(found) * scale)

    return of


def _sigmoid(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """1 / (1 + exp(-z)), on the left exp(z) / (1 + exp(z)), so that nothing overflows."""
    right = binary("ge", a, 0)
    grown = _exp(unary("neg", te.abs(a)), te.select(right, unary("neg", b), b))
    share = te.const(1, grown.dtype) / (grown + 1)
    return te.select(right, share, grown * share)


def _rsqrt(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    root = _sqrt(a, b)
    return te.const(1, root.dtype) / root


def _roots(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr, PrimExpr, PrimExpr]:
    """The parts of sqrt(1 - z) and of sqrt(1 + z)."""
    less, more = _sqrt(1 - a, unary("neg", b)), _sqrt(a + 1, b)
    return te.real(less), te.imag(less), te.real(more), te.imag(more)


def _acos(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    less, less_i, more, more_i = _roots(a, b)
    return te.complex(intrinsic("atan2", less, more) * 2, te.asinh(more * less_i - more_i * less))


def _asin(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    less, less_i, more, more_i = _roots(a, b)
    real = intrinsic("atan2", a, less * more - less_i * more_i)
    return te.complex(real, te.asinh(less * more_i - less_i * more))


def _acosh(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    less, more = _sqrt(a - 1, b), _sqrt(a + 1, b)
    real = te.asinh(te.real(less) * te.real(more) + te.imag(less) * te.imag(more))
    return te.complex(real, intrinsic("atan2", te.imag(less), te.real(more)) * 2)


def _atanh(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x = te.abs(a)
    real = intrinsic("log1p", x * 4 / ((1 - x) * (1 - x) + b * b)) * 0.25
    return te.complex(intrinsic("copysign", real, a), intrinsic("atan2", b * 2, (1 - x) * (x + 1) - b * b) * 0.5)


def _turned(formula: Formula) -> Formula:
    """-i f(i z)."""

    def of(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        found = formula(unary("neg", b), a)
        return te.complex(te.imag(found), unary("neg", te.real(found)))

    return of


FORMULAS: dict[str, Formula] = {
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": lambda a, b: te.complex(te.sin(a) * te.cosh(b), te.cos(a) * te.sinh(b)),
    "cos": lambda a, b: te.complex(te.cos(a) * te.cosh(b), unary("neg", te.sin(a) * te.sinh(b))),
    "sinh": lambda a, b: te.complex(te.sinh(a) * te.cos(b), te.cosh(a) * te.sin(b)),
    "cosh": lambda a, b: te.complex(te.cosh(a) * te.cos(b), te.sinh(a) * te.sin(b)),
    "tan": _turned(_tanh),
    "tanh": _tanh,
    "asin": _asin,
    "acos": _acos,
    "atan": _turned(_atanh),
    "asinh": _turned(_asin),
    "acosh": _acosh,
    "atanh": _atanh,
    "expm1": _expm1,
    "exp2": lambda a, b: _exp(a * math.log(2), b * math.log(2)),
    "log1p": _log1p,
    "log2": _scaled(_log, 1 / math.log(2)),
    "log10": _scaled(_log, 1 / math.log(10)),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
}
_MOST_FACTORS = 64


def power(x: PrimExpr, exponent: PrimExpr) -> PrimExpr:
    """x to a complex power: by products for a small whole constant, else exp(exponent log x); 0 to 0 is 1."""
    whole = _whole(exponent)
    if whole is not None:
        result = _multiplied(x, abs(whole))
        return result if whole >= 0 else te.const(1, x.dtype) / result
    found = function("exp")(exponent * function("log")(x))
    zero, one = te.const(0, x.dtype), te.const(1, x.dtype)
    of_zero = te.select(te.equal(exponent, 0), one, zero)
    return te.select(te.equal(x, 0), of_zero, found)


def _whole(value: PrimExpr) -> int | None:
    """A constant that is a small integer."""
    if not isinstance(value, PrimCall) or value.op != "complex":
        return None
    parts = [float(part.value) for part in value.args if isinstance(part, FloatImm)]
    if len(parts) != 2:
        return None
    real, imaginary = parts
    is_small = imaginary == 0 and abs(real) <= _MOST_FACTORS  # which infinity and nan are not
    return int(real) if is_small and real == int(real) else None


def _multiplied(x: PrimExpr, count: int) -> PrimExpr:
    result: PrimExpr | None = None
    while count:
        if count % 2:
            result = x if result is None else result * x
        count //= 2
        x = x * x if count else x
    return te.const(1, x.dtype) if result is None else result
