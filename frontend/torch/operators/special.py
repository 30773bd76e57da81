"""Special functions and polynomials by recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.dtypes import bits, is_float
from weft.frontend.emitter import Unsupported
from weft.frontend.torch.node import FxNode
from weft.frontend.torch.table import row
from weft.ir.graph import Expr, Function, SeqExpr, Tuple, TupleGetItem, Var
from weft.ir.types import PrimType, TensorType, TupleType
from weft.script import relax as R

# Polynomials ----------------------------------------------------------------------------------------------------------


def polynomial(first: Callable[[Expr], Expr], step: Callable[[Expr, Expr, Expr, Expr], Expr]) -> Any:
    """p_0 = 1, p_1 = first(x), p_(k+1) = step(x, k, p_k, p_(k-1)), for the degree of each element; 0 below 0."""

    def made(n: FxNode, x: Any, degree: Any) -> Expr:
        dims, dtype = n.dims_out, n.dtype_out
        wide = n.emit(R.broadcast_to(n.cast(x, dtype), dims), "x")
        degrees = n.emit(R.broadcast_to(R.astype(R.trunc(n.cast(degree, dtype)), "int64"), dims), "degree")
        ty = TensorType(dims, dtype)
        index = Var("k", PrimType("int64"))
        low, high = Var("p0", ty), Var("p1", ty)
        runs = R.greater(degrees, index)
        new = step(wide, R.astype(R.full((), index, "int64"), dtype), high, low)
        after = Tuple((R.where(runs, high, low), R.where(runs, new, high)))
        body = Function((index, low, high), SeqExpr((), after), TupleType((ty, ty)), name="recurrence")
        top = n.emit(R.max(R.reshape(degrees, (-1,)), 0) if dims else degrees, "greatest")
        one = n.emit(R.ones(dims, dtype), "one")
        bounds = (R.const(1, "int64"), n.emit(top), R.const(1, "int64"))
        loop = n.emit(R.loop(body, (one, n.emit(first(wide))), [ty, ty], range=bounds))
        zero, less = R.zeros(dims, dtype), R.const(0, "int64")
        result = R.where(R.equal(degrees, less), one, TupleGetItem(loop, 1))
        return R.where(R.less(degrees, less), zero, result)

    return made


def _chebyshev(x: Expr, k: Expr, now: Expr, before: Expr) -> Expr:
    return R.subtract(R.multiply(R.multiply(x, 2.0), now), before)


def _shifted(x: Expr) -> Expr:
    return R.subtract(R.multiply(x, 2.0), 1.0)


def _shifted_step(x: Expr, k: Expr, now: Expr, before: Expr) -> Expr:
    return _chebyshev(_shifted(x), k, now, before)


_FIRST: dict[str, Callable[[Expr], Expr]] = {
    "t": lambda x: x,
    "u": lambda x: R.multiply(x, 2.0),
    "v": lambda x: R.subtract(R.multiply(x, 2.0), 1.0),
    "w": lambda x: R.add(R.multiply(x, 2.0), 1.0),
}
for _kind, _first in _FIRST.items():
    row(f"special_chebyshev_polynomial_{_kind}", polynomial(_first, _chebyshev))
    row(
        f"special_shifted_chebyshev_polynomial_{_kind}",
        polynomial(lambda x, first=_first: first(_shifted(x)), _shifted_step),
    )
row(
    "special_hermite_polynomial_h",
    polynomial(
        lambda x: R.multiply(x, 2.0),
        lambda x, k, now, before: R.multiply(R.subtract(R.multiply(x, now), R.multiply(k, before)), 2.0),
    ),
)
row(
    "special_hermite_polynomial_he",
    polynomial(lambda x: x, lambda x, k, now, before: R.subtract(R.multiply(x, now), R.multiply(k, before))),
)
row(
    "special_laguerre_polynomial_l",
    polynomial(
        lambda x: R.subtract(R.ones_like(x), x),
        lambda x, k, now, before: R.divide(
            R.subtract(R.multiply(R.subtract(R.add(R.multiply(k, 2.0), 1.0), x), now), R.multiply(k, before)),
            R.add(k, 1.0),
        ),
    ),
)
row(
    "special_legendre_polynomial_p",
    polynomial(
        lambda x: x,
        lambda x, k, now, before: R.divide(
            R.subtract(R.multiply(R.multiply(R.add(R.multiply(k, 2.0), 1.0), x), now), R.multiply(k, before)),
            R.add(k, 1.0),
        ),
    ),
)

# Elementwise ----------------------------------------------------------------------------------------------------------


def floats(function: Any, least: str = "float32") -> Any:
    """A function of floats, which computes in a dtype at least: PyTorch does so where elements are narrower."""

    def made(n: FxNode, *values: Any) -> Expr:
        dtype = n.dtype_out
        wide = least if is_float(dtype) and bits(dtype) < bits(least) else dtype
        return n.cast(n.emit(function(*(n.emit(n.cast(value, wide)) for value in values))), n.dtype_out)

    return made


def _not_nan(function: Any) -> Any:
    """The extreme of two values of which nan is neither."""

    def made(a: Expr, b: Expr) -> Expr:
        return R.where(R.isnan(a), b, R.where(R.isnan(b), a, function(a, b)))

    return made


def _x_log_y(a: Expr, b: Expr, log: Any) -> Expr:
    zero = R.zeros_like(a)
    made = R.where(R.equal(a, zero), zero, R.multiply(a, log(b)))
    return R.where(R.isnan(b), b, made)


def _log_add_exp2(a: Expr, b: Expr) -> Expr:
    scale = math.log(2.0)
    return R.divide(R.log_add_exp(R.multiply(a, scale), R.multiply(b, scale)), scale)


_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3, -9.46595344482036e-4,
    3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5, -1.624290004647e-6, 1.303655835580e-6,
    1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9, 5.059343495e-9, -9.91364156e-10, -2.27365122e-10,
    9.6467911e-11, 2.394038e-12, -6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15,
    -1.523e-15, -9.4e-17, 1.21e-16, -2.8e-17,
)  # fmt: skip
"""Chebyshev coefficients of log(erfc(x) / t) + x^2, t = 2 / (2 + x): Press et al., Numerical Recipes, 2007, 6.2."""


def _erfc(x: Expr) -> Expr:
    """1 - erf(x), with as many digits where that is near 0."""
    size = R.abs(x)
    t = R.divide(2.0, R.add(size, 2.0))
    twice = R.subtract(R.multiply(t, 4.0), 2.0)
    low, high = R.zeros_like(x), R.zeros_like(x)
    for factor in reversed(_ERFC[1:]):
        low, high = high, R.add(R.subtract(R.multiply(twice, high), low), factor)
    power = R.add(
        R.subtract(R.multiply(R.add(R.multiply(twice, high), _ERFC[0]), 0.5), low), R.negative(R.square(size))
    )
    above = R.multiply(t, R.exp(power))
    far = R.where(R.isinf(x), R.zeros_like(x), above)
    return R.where(R.less(x, 0.0), R.subtract(2.0, far), far)


_NEAR = 100.0
"""From here on the first terms of an asymptotic series have all digits of float64."""


def _scaled_bessel(order: int) -> Any:
    """e^-|x| I(x), the modified Bessel function of an order: Abramowitz and Stegun, 9.7.1, where x is large."""
    terms = [1.0]
    for k in range(1, 9):
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))

    def made(x: Expr) -> Expr:
        size = R.abs(x)
        near = R.minimum(size, _NEAR)
        inverse, series = R.divide(1.0, R.maximum(size, _NEAR)), R.add(R.zeros_like(x), terms[-1])
        for term in reversed(terms[:-1]):
            series = R.add(R.multiply(series, inverse), term)
        far = R.multiply(R.sqrt(R.multiply(inverse, 0.5 / math.pi)), series)
        bessel = R.i1(near) if order else R.i0(near)
        found = R.where(R.less_equal(size, _NEAR), R.multiply(bessel, R.exp(R.negative(near))), far)
        found = R.where(R.isnan(x), x, found)
        return R.multiply(found, R.sign(x)) if order else found

    return made


def _digamma(x: Expr) -> Expr:
    """The derivative of log gamma, whose pole at 0 has the sign of the zero."""
    return R.where(R.equal(x, 0.0), R.divide(-1.0, x), R.digamma(x))


row("erfc special_erfc", floats(_erfc, "float64"))
row("mish", floats(lambda x: R.multiply(x, R.tanh(R.log1p(R.exp(x))))))
row("fmax", floats(_not_nan(R.maximum)))
row("fmin", floats(_not_nan(R.minimum)))
row("xlogy special_xlogy", floats(lambda a, b: _x_log_y(a, b, R.log)))
row("special_xlog1py", floats(lambda a, b: _x_log_y(a, b, R.log1p)))
row("logaddexp", floats(R.log_add_exp))
row("logaddexp2", floats(_log_add_exp2))
row("hypot", floats(R.hypot))
row("copysign", floats(R.copysign))
row("nextafter", floats(R.nextafter, "float16"))
row("sinc special_sinc", floats(R.sinc))
row("gcd", floats(R.gcd))
row("lcm", floats(R.lcm))
row("lgamma", floats(R.lgamma))
row("digamma special_digamma", floats(_digamma))
row("erfinv special_erfinv", floats(R.erfinv))
row("i0", floats(R.i0))
row("special_i1", floats(R.i1))
row("special_i0e", floats(_scaled_bessel(0), "float64"))
row("special_i1e", floats(_scaled_bessel(1), "float64"))
row(
    "special_ndtri",
    floats(lambda x: R.multiply(R.erfinv(R.subtract(R.multiply(x, 2.0), 1.0)), math.sqrt(2.0)), "float64"),
)
row("special_modified_bessel_i0", floats(R.i0))
row("special_modified_bessel_i1", floats(R.i1))
row(
    "polygamma special_polygamma",
    lambda n, order, x: R.digamma(n.cast(x, n.dtype_out)) if order == 0 else _raise("derivatives of digamma below 0"),
)
row("frexp", lambda n, x: [TupleGetItem(n.emit(R.frexp(x)), 0), TupleGetItem(n.emit(R.frexp(x)), 1)])


def _raise(why: str) -> Any:
    raise Unsupported(why)


# Random numbers -------------------------------------------------------------------------------------------------------


def drawn(n: FxNode, *args: Any, **options: Any) -> Expr:
    """Random numbers, which stay in PyTorch: `R.random.*` draws from keys that a program is given."""
    raise Unsupported("random numbers come from the state of PyTorch's generator, which a call advances")


row("rand randn randperm rand_like randn_like randint randint_like bernoulli multinomial normal poisson", drawn)
