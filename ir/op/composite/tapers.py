"""Windows of signals (tapers): weights of the values of a frame, 1 in its middle.

A periodic window is that of one value more, without the last one. A window of one value is 1. They are computed in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft.dtypes import is_float
from weft.ir.dim import maximum, symbol
from weft.ir.graph import Expr, PrimValue
from weft.ir.op.common import dtype_error, example
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Example, Param

__all__: list[str] = []

_PARAMS = (
    Param("window_size", "attr", of="dim"),
    Param("periodic", "attr", True, "bool"),
    Param("dtype", "dtype", "float32"),
)
_EXAMPLES = (
    example(8),
    example(symbol("n"), False, dtype="float64"),
    example(1, False),
    example(1),
    example(2, False),
)


def _positions(args: Parts) -> Expr:
    """Where the values of a window stand, from 0 to 1."""
    if not is_float(args.dtype):
        raise dtype_error(args.arguments, f"dtype must be floating, got {args.dtype}", "W321")
    size = args.window_size
    if isinstance(size, int) and size < 0:
        raise args.error(f"window_size must not be negative, got {size}")
    steps = maximum(size if args.periodic else size - 1, 1)
    alone = call("full", (), PrimValue(maximum(2 - size, 0)), "float64")  # 1 for a window of one value, else 0
    counted = call("astype", call("arange", 0, size, 1, "int64"), "float64")
    place = call("divide", counted, call("full", (), PrimValue(steps), "float64"))
    return call("add", place, call("multiply", alone, 0.5))


Formula = Callable[[Any], Any] | Callable[[Any, Any], Any]


def _reference(formula: Formula) -> Callable[..., Any]:
    def window(window_size: int, periodic: bool, dtype: str, **attributes: Any) -> Any:
        steps = max(window_size if periodic else window_size - 1, 1)
        values = cast("Callable[..., Any]", formula)(np.arange(window_size) / steps, **attributes)
        return (np.ones(1) if window_size == 1 else values).astype(dtype)

    return window


def _declare(
    name: str,
    formula: Formula,
    doc: str,
    params: tuple[Param, ...] = (),
    examples: tuple[Example, ...] = _EXAMPLES,
) -> Callable[[Callable[[Parts, Expr], Expr]], Any]:
    """A window by its formula in NumPy and by that in operators."""

    def declare(write: Callable[[Parts, Expr], Expr]) -> Any:
        made = composite(
            name,
            [*_PARAMS[:1], *params, *_PARAMS[1:]],
            numpy=_reference(formula),
            family="window",
            examples=examples,
            doc=f"{doc}\n\nErrors: ShapeError W205 a negative size; DTypeError W321 a dtype that is not floating.",
        )
        return made(lambda args: call("astype", write(args, _positions(args)), args.dtype))

    return declare


def _cosine(place: Expr, times: int) -> Expr:
    return call("cos", call("multiply", place, 2 * math.pi * times))


@_declare(
    "hann_window",
    lambda x: 0.5 - 0.5 * np.cos(2 * np.pi * x),
    "The window 0.5 - 0.5 cos(2 pi x), x from 0 to 1, named after Julius von Hann.",
)
def _hann(args: Parts, place: Expr) -> Expr:
    return call("subtract", 0.5, call("multiply", _cosine(place, 1), 0.5))


@_declare(
    "blackman_window",
    lambda x: 0.42 - 0.5 * np.cos(2 * np.pi * x) + 0.08 * np.cos(4 * np.pi * x),
    "The window 0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x), x from 0 to 1, of R. B. Blackman.",
)
def _blackman(args: Parts, place: Expr) -> Expr:
    first = call("subtract", 0.42, call("multiply", _cosine(place, 1), 0.5))
    return call("add", first, call("multiply", _cosine(place, 2), 0.08))


@_declare(
    "bartlett_window",
    lambda x: 1 - np.abs(2 * x - 1),
    "The triangular window 1 - |2 x - 1|, x from 0 to 1.",
)
def _bartlett(args: Parts, place: Expr) -> Expr:
    return call("subtract", 1.0, call("abs", call("subtract", call("multiply", place, 2.0), 1.0)))


@_declare(
    "kaiser_window",
    lambda x, beta: np.i0(beta * np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0))) / np.i0(beta),
    "The window i0(beta sqrt(1 - (2 x - 1)**2)) / i0(beta), x from 0 to 1, of J. F. Kaiser.",
    params=(Param("beta", "attr", 12.0, "float"),),
    examples=(example(8), example(symbol("n"), 5.0, False, "float64"), example(1, 3.0)),
)
def _kaiser(args: Parts, place: Expr) -> Expr:
    away = call("subtract", call("multiply", place, 2.0), 1.0)
    inside = call("maximum", call("subtract", 1.0, call("multiply", away, away)), 0.0)
    value = call("i0", call("multiply", call("sqrt", inside), args.beta))
    return call("multiply", value, 1 / float(np.i0(args.beta)))
