"""A node of a graph of ATen operators as the functions of the table see it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from weft.dtypes import is_complex, is_float
from weft.frontend.emitter import Emitter, Unsupported
from weft.frontend.operands import Operands
from weft.ir.dim import Dim, DimExpr
from weft.ir.graph import Expr, PrimValue, Var
from weft.ir.types import TensorType, TupleType
from weft.script import relax as R

__all__ = ["FxNode"]


class FxNode(Operands):
    """One call while it is imported: types of its operands, the type that PyTorch gives its result."""

    def __init__(self, importer: Any, call: Any) -> None:
        self.importer, self.call = importer, call

    @property
    def operator(self) -> str:
        """The name of the operator without its overload."""
        return self.call.operator

    @property
    def spatial(self) -> int:
        """The number of axes that the operator's name says: max_pool2d has two."""
        return next(int(letter) for letter in self.operator if letter.isdigit())

    def wanted(self, index: int) -> bool:
        """Whether somebody uses one of several results."""
        return any(user.target is not operator.getitem or user.args[1] == index for user in self.call.users)

    @property
    def out(self) -> TensorType:
        """The type of the (first) result."""
        ty = self.importer.types.type_of(self.call.value)
        first = ty.fields[0] if isinstance(ty, TupleType) else ty
        if not isinstance(first, TensorType) or first.dims is None or first.dtype is None:
            raise Unsupported("the type of the result is not known")
        return first

    @property
    def dtype_out(self) -> str:
        """The dtype of the result."""
        assert self.out.dtype is not None
        return self.out.dtype

    @property
    def dims_out(self) -> tuple[Dim, ...]:
        """The sizes of the result."""
        assert self.out.dims is not None
        return self.out.dims

    @property
    def emitter(self) -> Emitter:
        """Where the bindings of the import go."""
        return self.importer.out

    def tensor(self, expr: Expr) -> TensorType:
        """The type of a tensor of known sizes."""
        ty = super().tensor(expr)
        if ty.dims is None:
            raise Unsupported("the sizes of an operand are not known")
        return ty

    def dims_of(self, expr: Expr) -> list[int]:
        """The sizes of a tensor, which must be numbers."""
        return self.ints(self.shape(expr))

    def dims_of_last(self, expr: Expr, count: int) -> list[int]:
        """The sizes of the last axes of a tensor, which must be numbers."""
        return self.ints(self.shape(expr)[self.rank(expr) - count :])

    def axis(self, expr: Expr, axis: int) -> int:
        """An axis counted from the front."""
        return axis % max(self.rank(expr), 1)

    def axes(self, expr: Expr, axes: Any) -> tuple[int, ...]:
        """Axes counted from the front; all where none are given."""
        rank = self.rank(expr)
        if axes is None or (isinstance(axes, (list, tuple)) and not axes):
            return tuple(range(rank))
        return tuple(axis % max(rank, 1) for axis in (axes if isinstance(axes, (list, tuple)) else [axes]))

    def emit(self, expr: Expr, name: str = "") -> Var:
        """A value that is used more than once."""
        return self.importer.out.emit(expr, name or self.call.name)

    def cast(self, value: Any, dtype: str) -> Expr:
        """An operand in a dtype: a tensor is converted, a number or a size becomes a scalar."""
        if isinstance(value, Expr):
            return value if self.dtype(value) == dtype else R.astype(value, dtype)
        if isinstance(value, DimExpr):
            return R.astype(R.full((), PrimValue(value), "int64"), dtype)
        if is_complex(dtype):
            return R.const(complex(value), dtype)
        return R.const(float(value) if is_float(dtype) else bool(value) if dtype == "bool" else int(value), dtype)

    def number(self, value: Any) -> int | float | bool:
        """A number that must be known."""
        if not isinstance(value, (int, float, bool)):
            raise Unsupported("a number that is known only at run time")
        return value

    def ints(self, values: Any) -> list[int]:
        """Integers that must be known."""
        values = values if isinstance(values, (list, tuple)) else [values]
        if not all(isinstance(value, int) for value in values):
            raise Unsupported("numbers that are known only at run time")
        return list(values)


def sequence(values: Any, count: int) -> Sequence[Any]:
    """A list of a length: one number stands for all."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return values * count if len(values) == 1 else values
