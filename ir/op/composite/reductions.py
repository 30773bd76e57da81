"""Reductions: any, all, logsumexp, trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.graph import Expr
from weft.ir.op.common import example, f32, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import OpDef, Param
from weft.ir.op.layout_rules.families import reducing
from weft.support.guards import is_listing

__all__: list[str] = []

_OVER = (Param("x"), Param("axis", "attr", None, "ints?"), Param("keepdims", "attr", False, "bool"))


def _axes(axis: Any) -> Any:
    return tuple(axis) if is_listing(axis) else axis


def _truths(name: str, doc: str, of_zero: bool) -> OpDef:
    """Whether some element, or every one, is not zero: sums and products of bools, defined for no elements, too."""
    reference: Any = np.all if of_zero else np.any

    def definition(args: Parts) -> Expr:
        args.require("x", "any")
        truth = call("logical_not", call("logical_not", args.x))
        return call("prod" if of_zero else "sum", truth, axis=args.axis, keepdims=args.keepdims)

    shown = (
        example(typed("bool", 2, 3)),
        example(typed("bool", "n", 4), axis=1),
        example(typed("int32", "n", 3), axis=[0, 1]),
        example(f32(2, 3), axis=-1, keepdims=True),
    )
    numpy: Callable[[Any, Any, Any], Any] = lambda x, axis, keepdims: reference(x, axis=_axes(axis), keepdims=keepdims)  # noqa: E731
    declare = composite(
        name,
        _OVER,
        numpy=numpy,
        examples=shown,
        family="reductions_statistical",
        doc=doc,
        layout=reducing("x"),
    )
    return declare(definition)


_truths("any", "Whether any element along the axes is not zero; bool. False of no elements.", False)
_truths("all", "Whether all elements along the axes are not zero; bool. True of no elements.", True)


def _log_sum_exp(x: Any, *, axis: Any, keepdims: bool) -> Any:
    return np.asarray(np.logaddexp.reduce(x.astype("float64"), axis=_axes(axis), keepdims=keepdims)).astype(x.dtype)


def _over_many(x: Any, *, axis: Any, keepdims: bool) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else tuple(a % x.ndim for a in _axes(axis))
    moved = np.moveaxis(x, axes, range(len(axes)))
    count = int(np.prod(moved.shape[: len(axes)], dtype=int))
    flat = moved.reshape(count, *moved.shape[len(axes) :]) if axes else x[None]
    result = _log_sum_exp(flat, axis=0, keepdims=False)
    return np.asarray(np.expand_dims(result, axes)) if keepdims else result


@composite(
    "logsumexp",
    _OVER,
    numpy=_over_many,
    family="reductions_statistical",
    layout=reducing("x"),
    examples=(
        example(f32(2, 3), least=1),
        example(f32("n", 4), axis=1, ranges={"x": (-200, 200)}),
        example(f32("n", 3, 2), axis=[1, 2], keepdims=True),
        example(typed("float64", 3, 5), axis=-1),
    ),
)
def logsumexp(args: Parts) -> Expr:
    """log(sum(exp(x))) over the axes, without overflow; infinities stay what they are."""
    args.require("x", "float")
    greatest = call("max", args.x, axis=args.axis, keepdims=True)
    # An infinity is no shift: inf - inf is nan.
    shift = call("where", call("isfinite", greatest), greatest, args.number(0, "x"))
    total = call("sum", call("exp", call("subtract", args.x, shift)), axis=args.axis, keepdims=True)
    result = call("add", call("log", total), shift)
    return result if args.keepdims else call("sum", result, axis=args.axis)
