"""Special functions and polynomials by recurrences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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


def _floats(function: Any) -> Any:
    return lambda n, *values: function(*(n.emit(n.cast(value, n.dtype_out)) for value in values))


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


row("fmax", _floats(_not_nan(R.maximum)))
row("fmin", _floats(_not_nan(R.minimum)))
row("xlogy special_xlogy", _floats(lambda a, b: _x_log_y(a, b, R.log)))
row("special_xlog1py", _floats(lambda a, b: _x_log_y(a, b, R.log1p)))
row("logaddexp", _floats(R.log_add_exp))
row("logaddexp2", _floats(_log_add_exp2))
row("hypot", _floats(R.hypot))
row("copysign", _floats(R.copysign))
row("nextafter", _floats(R.nextafter))
row("sinc special_sinc", _floats(R.sinc))
row("gcd", _floats(R.gcd))
row("lcm", _floats(R.lcm))
row("lgamma", _floats(R.lgamma))
row("digamma special_digamma", _floats(R.digamma))
row("erfinv special_erfinv", _floats(R.erfinv))
row("i0", _floats(R.i0))
row("special_i1", _floats(R.i1))
row("special_i0e", _floats(lambda x: R.multiply(R.i0(x), R.exp(R.negative(R.abs(x))))))
row("special_i1e", _floats(lambda x: R.multiply(R.i1(x), R.exp(R.negative(R.abs(x))))))
row("special_ndtri", _floats(lambda x: R.multiply(R.erfinv(R.subtract(R.multiply(x, 2.0), 1.0)), math.sqrt(2.0))))
row("special_modified_bessel_i0", _floats(R.i0))
row("special_modified_bessel_i1", _floats(R.i1))
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
