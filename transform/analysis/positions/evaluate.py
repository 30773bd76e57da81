"""The element of a tensor at a position, as a formula of the position: `Positions(...).element(expr, position)`.

    R.arange(0, n)[i]                                   i
    R.reshape(R.arange(0, n), (1, n, 1))[0, i, 0]       i
    R.less_equal(keys, rows)[0, 0, s, t]                All((s - t,))
    R.where(R.tril(ones), 0.0, -inf)[s, t]              Choice(All((s - t,)), 0.0, -inf)
    R.cumsum(R.not_equal(differences, 1))[b, i]         0, where the differences are proved to be 1

Known are the operators that masks are made of (`operators`): ranges, constants, indices that are proved to lie within,
comparisons, arithmetic of integers, views. Anything else has no formula: None. Formulas hold for all sizes; integers
are those of positions and sizes with small factors, which do not wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from weft.ir import Call, Constant, Expr, Op, PrimValue, TensorType
from weft.ir.dim import Dim, DimExpr, Facts, free_symbols, fresh_name, prove_equal, prove_le, symbol
from weft.ir.op import OPS
from weft.transform.analysis.positions.constants import element_of_constant
from weft.transform.analysis.positions.formulas import Element, is_dim

__all__ = ["Operator", "Position", "Positions", "View", "position_in"]

Position: TypeAlias = "tuple[Dim, ...]"
_MOST_STEPS, _MOST_DEPTH = 2000, 150
_PREFIX = "position__in__"


def position_in(axis: str, used: Iterable[str] = ()) -> DimExpr:
    """A symbol for the position in an axis; tensors with sizes of such a name have no formulas."""
    return symbol(fresh_name(_PREFIX + axis, used))


def _are_sizes(dims: Iterable[Any]) -> bool:
    """Whether none of some parameters is a symbol of a position."""
    return not any(
        isinstance(dim, DimExpr) and any(name.startswith(_PREFIX) for name in free_symbols(dim)) for dim in dims
    )


class Positions:
    """Elements of the tensors of a function; `facts` bound the symbols of positions.

    `value` looks through variables, `tensor` gives the type of an expression where its sizes are known.
    """

    def __init__(
        self,
        operators: Mapping[str, Operator],
        value: Callable[[Expr], Expr],
        tensor: Callable[[Expr], TensorType | None],
        facts: Facts,
    ) -> None:
        self.operators, self.value, self.tensor, self.facts = operators, value, tensor, facts
        self._known: dict[tuple[int, Position], Element | None] = {}
        self._steps = self._depth = 0

    def element(self, expr: Expr, position: Sequence[Dim]) -> Element | None:
        """The element at a position within the tensor, None where it has no formula."""
        value, at = self.value(expr), tuple(position)
        key = (id(value), at)
        if key in self._known:
            return self._known[key]
        if self._steps >= _MOST_STEPS or self._depth >= _MOST_DEPTH:
            return None
        self._steps += 1
        self._depth += 1
        try:
            found = self._known[key] = self._element(value, at)
        finally:
            self._depth -= 1
        return found

    def _element(self, value: Expr, at: Position) -> Element | None:
        if isinstance(value, Constant):
            return element_of_constant(value, at, self.facts)
        if not isinstance(value, Call) or not isinstance(value.op, Op) or value.op.name not in self.operators:
            return None
        result = self.tensor(value)
        if result is None or result.dims is None or result.dtype is None or not _are_sizes(result.dims):
            return None
        view = View(self, OPS[value.op.name].values(value), result.dims, result.dtype)
        return self.operators[value.op.name](view, at)

    def under(self, facts: Facts) -> Positions:
        """The same tensors under more facts."""
        return Positions(self.operators, self.value, self.tensor, facts)

    def is_within(self, index: Element | None, size: Dim) -> bool:
        """Whether an index is proved to lie within an axis."""
        if not isinstance(index, (int, DimExpr)) or not is_dim(index):
            return False
        return prove_le(0, index, self.facts) is True and prove_le(index + 1, size, self.facts) is True


class View:
    """One call of an operator: its parameters, the sizes and the dtype of its result."""

    def __init__(self, positions: Positions, values: Mapping[str, Any], dims: tuple[Dim, ...], dtype: str) -> None:
        self.positions, self.values, self.dims, self.dtype = positions, values, dims, dtype
        self.facts = positions.facts

    def __getitem__(self, name: str) -> Any:
        """A parameter of the call."""
        return self.values[name]

    def sizes(self, operand: Expr) -> tuple[Dim, ...] | None:
        """The sizes of an operand."""
        ty = self.positions.tensor(operand)
        return None if ty is None or ty.dims is None or not _are_sizes(ty.dims) else ty.dims

    def dtype_of(self, operand: Expr) -> str | None:
        """The dtype of an operand."""
        ty = self.positions.tensor(operand)
        return None if ty is None else ty.dtype

    def number(self, name: str) -> Any:
        """A scalar parameter: a dimension or a number."""
        value = self.positions.value(self.values[name]) if isinstance(self.values[name], Expr) else self.values[name]
        return value.value if isinstance(value, PrimValue) and _are_sizes([value.value]) else None

    def numbers(self, name: str) -> tuple[Any, ...]:
        """A parameter that is a tuple of dimensions; empty where it is another."""
        value: tuple[Any, ...] = self.values[name] if isinstance(self.values[name], tuple) else ()
        return value if _are_sizes(value) else ()

    def axis(self, rank: int, name: str = "axis") -> int:
        """A parameter that is an axis, counted from the first one."""
        axis: int = self.values[name] or 0
        return axis % rank

    def element(self, operand: Expr, at: Sequence[Dim]) -> Element | None:
        """The element of an operand."""
        return self.positions.element(operand, at)

    def broadcast(self, operand: Expr, at: Sequence[Dim], full: Sequence[Dim] | None = None) -> Element | None:
        """The element of an operand that is broadcast to sizes, those of the result by default."""
        dims, full = self.sizes(operand), self.dims if full is None else full
        if dims is None or len(dims) > len(full):
            return None
        missing = len(full) - len(dims)
        own: list[Dim] = []
        for size, wanted, index in zip(dims, full[missing:], at[missing:], strict=True):
            if size != 1 and prove_equal(size, wanted) is not True:
                return None
            own.append(0 if size == 1 else index)
        return self.element(operand, own)


Operator: TypeAlias = "Callable[[View, Position], Element | None]"
