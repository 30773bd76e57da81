"""What the names of a model stand for while it is imported, scope by scope.

    Value ::= expr                a value of the run, an expression of ours
            | known               numbers, or sizes: an array of dimensions (dtype object)
            | items               a sequence of values

A known value becomes an expression when a node needs one; shape subgraphs therefore leave no trace at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from weft.errors import ModelError
from weft.ir.dim import DimExpr, prove_nonnegative
from weft.ir.graph import Constant, Expr, PrimValue, ShapeExpr
from weft.script import relax as R
from weft.support.records import dataclass

__all__ = ["ABSENT", "Scopes", "Value", "is_sizes", "known_value", "made_expr", "run_value"]


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """See the module. `dtype` is that of known contents."""

    expr: Expr | None = None
    known: np.ndarray | None = None
    items: tuple[Value, ...] | None = None
    dtype: str = ""


ABSENT = Value()
"""An optional input that is not given."""


class Scopes:
    """The names of values that are in sight: those of the graph, of graphs inside it, of the body of a function."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._scopes: list[dict[str, Value]] = [{}]

    @property
    def current(self) -> dict[str, Value]:
        """The innermost scope."""
        return self._scopes[-1]

    @current.setter
    def current(self, names: dict[str, Value]) -> None:
        self._scopes[-1] = names

    @property
    def outermost(self) -> bool:
        """Whether the current scope is the graph's own."""
        return len(self._scopes) == 1

    def value(self, name: str) -> Value:
        """What a name stands for; W973 where nothing defines it."""
        if not name:
            return ABSENT
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise ModelError(f"{self._model}: nothing defines {name!r}", code="W973")

    @contextmanager
    def scope(self, names: Mapping[str, Value], inner: bool) -> Iterator[None]:
        """A scope that ends with the block: inside the current one, or of a function, which sees no other."""
        before = self._scopes
        self._scopes = [*(before if inner else []), dict(names)]
        try:
            yield
        finally:
            self._scopes = before


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
