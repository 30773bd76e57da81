"""Python operators on graph-level expressions build operator calls.

    x + y, - * / // % ** @      add, subtract, multiply, divide, floor_divide, floor_mod, power, matmul
    x < y, <= > >=              less, less_equal, greater, greater_equal        (== stays identity)
    -x                          negative
    t[0], a, b = t              fields of tuples

Python numbers take the dtype of the other operand. Importing this module installs the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np

from weft.errors import ScriptError
from weft.ir.deduction.infer import quick_type, type_text
from weft.ir.dim import DimExpr
from weft.ir.graph import Call, Constant, DataflowVar, Expr, If, PrimValue, TupleGetItem, Var
from weft.ir.tensor import PrimExpr
from weft.ir.types import TupleType

__all__ = ["BINARY_OPERATORS", "UNARY_OPERATORS"]

BINARY_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "floor_mod",
    "pow": "power",
    "matmul": "matmul",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
"""The operator that each Python operator (its method name without underscores) stands for."""

UNARY_OPERATORS = {"neg": "negative"}

_COMPARISONS = ("lt", "le", "gt", "ge")
_CLASSES: tuple[type[Expr], ...] = (Var, DataflowVar, Constant, Call, TupleGetItem, If, PrimValue)
_OPERANDS = (bool, int, float, np.generic, np.ndarray, DimExpr, Expr)


def _call(name: str, *operands: Any) -> Call:
    # Operators are loaded at their first use.
    from weft.ir.op import get_op

    return get_op(name).bind(operands)


def _binary(name: str, reflected: bool) -> Any:
    def method(self: Expr, other: Any) -> Any:
        if not isinstance(other, _OPERANDS) or isinstance(other, PrimExpr):
            return NotImplemented
        return _call(name, other, self) if reflected else _call(name, self, other)

    return method


def _fields(value: Expr) -> int:
    ty = quick_type(value)
    if not isinstance(ty, TupleType):
        raise ScriptError(
            f"only tuples have fields, this is {type_text(ty)}",
            code="W133",
            span=value.span,
            hint="R.strided_slice and R.take select parts of a tensor",
        )
    return len(ty.fields)


def _getitem(self: Expr, index: Any) -> TupleGetItem:
    count = _fields(self)
    if isinstance(index, bool) or not isinstance(index, int) or not -count <= index < count:
        raise ScriptError(f"field {index!r} of a tuple of {count}", code="W133", span=self.span)
    return TupleGetItem(self, index % count)


def _iter(self: Expr) -> Iterator[TupleGetItem]:
    return iter([TupleGetItem(self, index) for index in range(_fields(self))])


def _unary(name: str) -> Callable[[Any], Expr]:
    def applied(operand: Any) -> Expr:
        return _call(name, operand)

    return applied


def _install() -> None:
    for node_class in _CLASSES:
        cls = cast(Any, node_class)
        for method, name in BINARY_OPERATORS.items():
            setattr(cls, f"__{method}__", _binary(name, reflected=False))
            if method not in _COMPARISONS:
                setattr(cls, f"__r{method}__", _binary(name, reflected=True))
        for method, name in UNARY_OPERATORS.items():
            setattr(cls, f"__{method}__", _unary(name))
        if cls not in (Constant, PrimValue):
            setattr(cls, "__getitem__", _getitem)  # noqa: B010
            setattr(cls, "__iter__", _iter)  # noqa: B010
        # NumPy arrays on the left leave the operator to us.
        setattr(cls, "__array_ufunc__", None)  # noqa: B010


_install()
