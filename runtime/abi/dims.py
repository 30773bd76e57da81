"""Sizes of shapes as records: numbers, symbols, and what is computed from them.

    dim   ::= int | name | Expression | None        None: any size
    tree  ::= int | name | Operation(operation, tree*)          add mul floordiv mod min max pow

The numbers are exact: nothing wraps. `solve_linear` finds the symbol of a size that is linear in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce

from weft.support.records import record

__all__ = [
    "OPERATIONS",
    "Dim",
    "Expression",
    "Operation",
    "Tree",
    "dim_names",
    "dim_text",
    "evaluate_dim",
    "first_solved",
    "shape_text",
    "solve_linear",
]


def _product(*values: int) -> int:
    return reduce(lambda a, b: a * b, values, 1)


OPERATIONS: Mapping[str, Callable[..., int]] = {
    "add": lambda *values: sum(values),
    "mul": _product,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "pow": lambda a, b: a**b,
}


@record
class Operation:
    """One operation of a size's tree."""

    name: str
    operands: tuple[Tree, ...]


@record
class Expression:
    """A size that is computed: its text, as messages show it, and its tree."""

    text: str
    tree: Tree

    def __str__(self) -> str:
        return self.text


Tree = int | str | Operation
Dim = int | str | Expression | None


def evaluate_dim(dim: Dim | Operation, values: Mapping[str, int]) -> int | None:
    """The value of a size; None for any size, when a symbol has no value or a divisor is 0.

    >>> evaluate_dim(Expression("2 * n", Operation("mul", (2, "n"))), {"n": 3})
    6
    """
    if isinstance(dim, int) or dim is None:
        return dim
    if isinstance(dim, str):
        return values.get(dim)
    if isinstance(dim, Expression):
        return evaluate_dim(dim.tree, values)
    operands = [evaluate_dim(operand, values) for operand in dim.operands]
    if None in operands:
        return None
    try:
        return OPERATIONS[dim.name](*operands)
    except ZeroDivisionError:
        return None


def dim_names(dim: Dim | Operation) -> list[str]:
    """The symbols of a size, in order."""
    if isinstance(dim, str):
        return [dim]
    if isinstance(dim, Expression):
        return dim_names(dim.tree)
    if isinstance(dim, Operation):
        return [name for operand in dim.operands for name in dim_names(operand)]
    return []


def solve_linear(dim: Dim | Operation, symbol: str, size: int, values: Mapping[str, int]) -> int | None:
    """The value of a symbol at which a dimension that is linear in it has the given size."""
    zero, one = (evaluate_dim(dim, {**values, symbol: point}) for point in (0, 1))
    if zero is None or one is None or zero == one:
        return None
    value, rest = divmod(size - zero, one - zero)
    return value if rest == 0 and value >= 0 and evaluate_dim(dim, {**values, symbol: value}) == size else None


def first_solved(dims: Sequence[Dim], sizes: Sequence[int], values: Mapping[str, int]) -> tuple[str, int] | None:
    """The first symbol without a value that one of the dimensions gives, with that value.

    >>> first_solved(["n", 4], [3, 4], {})
    ('n', 3)
    """
    for dim, size in zip(dims, sizes, strict=True):
        missing = {name for name in dim_names(dim) if name not in values}
        if len(missing) == 1:
            symbol = missing.pop()
            value = solve_linear(dim, symbol, size, values)
            if value is not None:
                return symbol, value
    return None


def dim_text(dim: object) -> str:
    """A size as it is written; `?` for any."""
    return "?" if dim is None else str(dim)


def shape_text(dims: Sequence[object] | Iterable[object]) -> str:
    """Sizes as a shape is written.

    >>> shape_text(["n", 4]), shape_text([3])
    ('(n, 4)', '(3,)')
    """
    texts = [dim_text(dim) for dim in dims]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
