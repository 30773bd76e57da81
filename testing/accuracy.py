"""How far results may be from exact arithmetic: a row for each kind of operator.

Read by docs/reference/accuracy.md and by tests.

    |result - exact|  <=  ulp(exact) / 2  +  roundings * 2^-24 * scale           (float16, bfloat16 and float32)

`exact` is the result in real arithmetic of the same operands (tests: float64), `ulp` the distance of neighbours in the
type that stores the result. The second part is what float32, in which narrower types compute, adds: so many roundings,
relative to `scale`. It holds at every `opt` level and number of threads where operands and results are finite and
normal. In `roundings` stands L for the longest chain of additions that one term of a sum goes through (`chain`).

Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002 (chapters 3 and 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.dtypes import float_format
from weft.support.records import dataclass

__all__ = ["ACCURACY", "CHAINS", "UNIT", "Accuracy", "Case", "chain", "ulp"]

UNIT = 2.0**-24
"""The rounding of float32: half the distance of 1 and the next number."""
_SHORT = 4096
CHAINS = (
    ("up to 4096 terms", "n"),
    (
        "what no rule arranges: everything at `opt=0`, and back ends without vectors",
        "3072 (for more than 2^30: n / 2^20)",
    ),
    (
        "products of known sizes",
        "1024 + n / 1024; with packed operands the block of k (about 400, to 1024 of a constant) + n / the block",
    ),
    (
        "products along rows of both operands, sums along rows of known sizes, sums to at most 16 results",
        "1024 + n / (1024 * width); the width of vectors times their number is 64 with AVX-512",
    ),
    ("sums along rows of symbolic sizes, and along several axes", "n / width"),
    ("sums down columns", "n / 16 of up to 4096 columns, else n"),
    ("products of symbolic sizes with many rows and columns (packed)", "the block of k (about 400) + n / the block"),
    ("running sums (`cumsum`) along rows", "n / lanes + log2(lanes) + 1; the lanes of a vector are 16 with AVX-512"),
    ("other products of symbolic sizes, running sums down columns", "n"),
)
"""How long the longest chain of additions of n terms is, by how the loops are arranged."""

Array = Any
Calculation = Callable[..., Array]
Shapes = Callable[[int, int], Sequence[tuple[int, ...]]]


def chain(terms: int, is_known: bool = True) -> float:
    """The most additions that one term of a sum goes through; `is_known`: the sizes are, when it is compiled.

    >>> chain(100), chain(1 << 20), chain(1 << 20, is_known=False)
    (100, 262144.0, 1048576)
    """
    return max(_SHORT, terms / 4) if is_known and terms > _SHORT else terms


def ulp(value: Array, dtype: str) -> Array:
    """The distance of neighbours in a type around values.

    >>> float(ulp(np.float64(1.5), "bfloat16")), float(ulp(np.float64(4), "float16"))
    (0.0078125, 0.00390625)
    """
    layout = float_format(dtype)
    least = 2.0 ** (1 - layout.bias)
    _, exponent = np.frexp(np.maximum(np.abs(value), least))
    return np.ldexp(1.0, exponent - 1 - layout.mantissa)


@dataclass(frozen=True)
class Case:
    """An operator of a row: how the script calls it, and what it computes in float64."""

    script: str
    exact: Calculation
    scale: Calculation | None = None
    ranges: tuple[float, float] = (-4.0, 4.0)

    @property
    def name(self) -> str:
        """The operator."""
        return self.script.partition("(")[0].removeprefix("R.")


@dataclass(frozen=True)
class Accuracy:
    """A row of the table; see the module.

    `fixed` roundings, and `chains` for each addition of the longest chain; `shapes(n, m)` are those of operands for
    which sums have n terms; `constants` are the operands that are known when a module is compiled.
    """

    title: str
    cases: tuple[Case, ...]
    scale: str = ""
    fixed: int = 0
    chains: int = 0
    shapes: Shapes = lambda n, m: ((m, n),)
    constants: tuple[int, ...] = ()

    @property
    def roundings(self) -> str:
        """The roundings as a text: 0, 8, or L + 2."""
        factor = f"{self.chains} " if self.chains > 1 else ""
        return f"{factor}L + {self.fixed}" if self.chains else str(self.fixed)

    def bound(self, case: Case, operands: Sequence[Array], dtype: str, terms: int, is_known: bool = True) -> Array:
        """The greatest error of each element of the result of a case in a type."""
        wide = [np.asarray(operand).astype("float64") for operand in operands]
        exact = np.asarray(case.exact(*wide))
        scale = np.abs(exact) if case.scale is None else case.scale(*wide)
        roundings = self.fixed + self.chains * chain(terms, is_known)
        return ulp(exact, dtype) / 2 + roundings * UNIT * scale


def _two(n: int, m: int) -> Sequence[tuple[int, ...]]:
    return ((m, n), (m, n))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _windows(x: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))  # type: ignore[call-overload]


def _convolution(x: Array, w: Array) -> Array:
    return np.einsum("nchwij,ocij->nohw", _windows(x), w)


def _windows_by_weights(x: Array, w: Array) -> Array:
    return np.einsum("nchw,oc->nohw", _windows(np.abs(x)).sum((4, 5)), np.abs(w).sum((2, 3)))


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _rms(x: Array, w: Array) -> Array:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w


def _deviation(x: Array) -> Array:
    return np.sqrt(x.var(1, keepdims=True) + 1e-5)


def _layer(x: Array, w: Array, b: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / _deviation(x) * w + b


def _layer_scale(x: Array, w: Array, b: Array) -> Array:
    return 2 * (np.abs(x) + np.abs(x).mean(1, keepdims=True)) / _deviation(x) * np.abs(w) + np.abs(b)


_POSITIVE = (1e-3, 1e3)

ACCURACY: tuple[Accuracy, ...] = (
    Accuracy(
        "Arithmetic: the exact result, rounded once",
        (
            Case("R.add({0}, {1})", np.add),
            Case("R.subtract({0}, {1})", np.subtract),
            Case("R.multiply({0}, {1})", np.multiply),
            Case("R.divide({0}, {1})", np.divide, ranges=(0.5, 8.0)),
            Case("R.maximum({0}, {1})", np.maximum),
            Case("R.minimum({0}, {1})", np.minimum),
        ),
        shapes=_two,
    ),
    Accuracy(
        "Arithmetic of one tensor",
        (
            Case("R.abs({0})", np.abs),
            Case("R.negative({0})", np.negative),
            Case("R.square({0})", np.square),
            Case("R.sqrt({0})", np.sqrt, ranges=_POSITIVE),
            Case("R.nn.relu({0})", lambda x: np.maximum(x, 0)),
            Case("R.floor({0})", np.floor),
        ),
    ),
    Accuracy(
        "Functions",
        (
            Case("R.exp({0})", np.exp, ranges=(-9.0, 9.0)),
            Case("R.exp2({0})", np.exp2, ranges=(-9.0, 9.0)),
            Case("R.expm1({0})", np.expm1, ranges=(-9.0, 9.0)),
            Case("R.log({0})", np.log, ranges=_POSITIVE),
            Case("R.log2({0})", np.log2, ranges=_POSITIVE),
            Case("R.log1p({0})", np.log1p, ranges=(-0.9, 99.0)),
            Case("R.rsqrt({0})", lambda x: 1 / np.sqrt(x), ranges=_POSITIVE),
            Case("R.sin({0})", np.sin, ranges=(-30.0, 30.0)),
            Case("R.cos({0})", np.cos, ranges=(-30.0, 30.0)),
            Case("R.tan({0})", np.tan, ranges=(-1.5, 1.5)),
            Case("R.atan({0})", np.arctan),
            Case("R.tanh({0})", np.tanh),
            Case("R.sinh({0})", np.sinh),
            Case("R.cosh({0})", np.cosh),
            Case("R.sigmoid({0})", _sigmoid, ranges=(-9.0, 9.0)),
            Case("R.erf({0})", _erf),
            Case("R.nn.silu({0})", lambda x: x * _sigmoid(x), ranges=(-9.0, 9.0)),
        ),
        "the absolute result",
        fixed=8,
    ),
    Accuracy(
        "Gelu, whose two parts cancel for negative operands",
        (
            Case("R.nn.gelu({0})", lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2, np.abs),
            Case(
                "R.nn.gelu_tanh({0})",
                lambda x: x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
                np.abs,
            ),
        ),
        "the absolute operand",
        fixed=8,
    ),
    Accuracy(
        "Sums and means",
        (
            Case("R.sum({0}, axis=1)", lambda x: x.sum(1), lambda x: np.abs(x).sum(1)),
            Case("R.sum({0}, axis=[0, 1])", np.sum, lambda x: np.abs(x).sum()),
            Case("R.mean({0}, axis=1)", lambda x: x.mean(1), lambda x: np.abs(x).mean(1)),
            Case("R.variance({0}, axis=1)", lambda x: x.var(1), lambda x: (x * x).mean(1)),
        ),
        "the sum of absolute terms (of a mean, their mean; of a variance, the mean square)",
        fixed=8,
        chains=1,
    ),
    Accuracy(
        "Running sums",
        (
            Case("R.cumsum({0}, axis=1)", lambda x: x.cumsum(1), lambda x: np.abs(x).cumsum(1)),
            Case("R.cumsum({0}, axis=0)", lambda x: x.cumsum(0), lambda x: np.abs(x).cumsum(0)),
        ),
        "the running sum of absolute terms",
        fixed=2,
        chains=1,
    ),
    Accuracy(
        "Products",
        (
            Case("R.matmul({0}, {1})", np.matmul, lambda a, b: np.abs(a) @ np.abs(b)),
            Case('R.einsum(({0}, {1}), "ik,kj->ij")', np.matmul, lambda a, b: np.abs(a) @ np.abs(b)),
        ),
        "the sum of absolute products",
        fixed=2,
        chains=1,
        shapes=lambda n, m: ((m, n), (n, m + 1)),
    ),
    Accuracy(
        "Products with transposed weights",
        (
            Case("R.linear({0}, {1})", lambda a, b: a @ b.T, lambda a, b: np.abs(a) @ np.abs(b).T),
            Case("R.matmul({0}, R.permute_dims({1}))", lambda a, b: a @ b.T, lambda a, b: np.abs(a) @ np.abs(b).T),
        ),
        "the sum of absolute products",
        fixed=2,
        chains=1,
        shapes=_two,
    ),
    Accuracy(
        "Other convolutions, n input channels",
        (
            Case(
                "R.nn.conv2d({0}, {1}, padding=1)",
                _convolution,
                lambda x, w: _convolution(np.abs(x), np.abs(w)),
            ),
        ),
        "the sum of absolute products, of which there are 9 n",
        fixed=2,
        chains=9,
        shapes=lambda n, m: ((1, n, 4, 5), (m, n, 3, 3)),
    ),
    Accuracy(
        "Convolutions of 3x3 that move by one, n input channels, constant weights",
        (Case("R.nn.conv2d({0}, {1}, padding=1)", _convolution, lambda x, w: 4 * _windows_by_weights(x, w)),),
        "for each input channel four times the sum of the absolute window times the sum of the absolute weights",
        fixed=10,
        chains=3,
        shapes=lambda n, m: ((1, n, 6, m + 3), (32, n, 3, 3)),
        constants=(1,),
    ),
    Accuracy(
        "Softmax",
        (Case("R.nn.softmax({0}, axis=1)", _softmax, lambda x: _softmax(x) * (1 + x.max(1, keepdims=True) - x)),),
        "the result times 1 + (the greatest operand - the operand)",
        fixed=16,
        chains=1,
    ),
    Accuracy(
        "Root mean square norm",
        (Case("R.nn.rms_norm({0}, {1})", _rms),),
        "the absolute result",
        fixed=8,
        chains=1,
        shapes=lambda n, m: ((m, n), (n,)),
    ),
    Accuracy(
        "Layer norm",
        (Case("R.nn.layer_norm({0}, {1}, {2}, axes=[1])", _layer, _layer_scale),),
        "twice (the absolute operand + their mean) times the absolute weight, over the deviation, + the absolute bias",
        fixed=8,
        chains=1,
        shapes=lambda n, m: ((m, n), (n,), (n,)),
    ),
)
"""The rows of the table."""
