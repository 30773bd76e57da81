"""What the names of a model stand for while it is imported.

    Value ::= expr                a value of the run, an expression of ours
            | known               numbers, or sizes: an array of dimensions (dtype object)
            | items               a sequence of values

A known value becomes an expression when a node needs one; shape subgraphs therefore leave no trace at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.ir.dim import DimExpr, prove_nonnegative
from weft.ir.graph import Constant, Expr, PrimValue, ShapeExpr
from weft.script import relax as R

__all__ = ["ABSENT", "Value", "is_sizes", "known_value", "made_expr", "run_value"]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """See the module. `dtype` is that of known contents."""

    expr: Expr | None = None
    known: np.ndarray | None = None
    items: tuple[Value, ...] | None = None
    dtype: str = ""


ABSENT = Value()
"""An optional input that is not given."""


def is_sizes(array: np.ndarray) -> bool:
    """Whether the contents are dimensions and not numbers."""
    return array.dtype == object


def known_value(array: np.ndarray, dtype: str = "") -> Value:
    """A value of known contents; dimensions that are all numbers are numbers."""
    array = np.asarray(array)
    if array.dtype == object and not any(isinstance(item, DimExpr) for item in array.flat):
        array = array.astype(dtype or "int64")
    return Value(known=array, dtype=dtype or ("int64" if array.dtype == object else array.dtype.name))


def run_value(expr: Expr) -> Value:
    """A value of the run; a constant is known as well."""
    if isinstance(expr, Constant) and expr.is_numpy:
        return Value(expr, expr.data, dtype=expr.dtype)
    return Value(expr)


def made_expr(value: Value) -> Expr:
    """The expression of a known value."""
    assert value.known is not None
    if not is_sizes(value.known):
        return Constant(value.known, value.dtype if value.dtype in ("bfloat16",) else "")
    flat = tuple(value.known.flat)
    if all(prove_nonnegative(dim) is True for dim in flat):
        vector = R.shape_to_tensor(ShapeExpr(flat))
    else:
        parts = [R.full((1,), PrimValue(dim), "int64") for dim in flat]
        vector = R.concat(parts, 0) if len(parts) > 1 else parts[0]
    if value.known.ndim != 1:
        vector = R.reshape(vector, value.known.shape)
    return vector if value.dtype == "int64" else R.astype(vector, value.dtype)
