"""The symbols of the dimensions of one function: what each stands for, and dimensions back as expressions.

    spelling    symbols that are an expression
    formal      helper symbols, in terms of spelled ones: a value of any sign is the difference of two of them

The symbols of a dimension are nonnegative, variables are not; a signed symbol stands only in sums and products.
"""

from __future__ import annotations

import keyword
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from weft import dtypes
from weft.ir import walk
from weft.ir.dim import Dim, free_symbols, fresh_name, operation, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.tensor import Binary, Cast, IntImm, PrimExpr, PrimVar
from weft.transform.analysis.indices.exactness import LARGEST, LEAST, Exactness, is_reinterpreted, limits_of

__all__ = ["INDEX", "Symbols", "terms"]

INDEX = "int64"


class Symbols:
    """Names for the values of one function."""

    def __init__(self) -> None:
        self.spelling: dict[str, PrimExpr] = {}  # symbols to expressions
        self.formal: dict[str, Dim] = {}  # helper symbols in terms of spelled ones
        self.signed: set[str] = set()  # symbols that stand only in sums and products
        self.volatile: set[str] = set()  # symbols of what memory says
        self.exactness = Exactness()
        self._spelled: dict[Dim, Dim] = {}

    def fresh(self, base: str) -> str:
        """A name that no symbol has."""
        plain = base.isidentifier() and base.isascii() and not keyword.iskeyword(base)
        base = base if plain else "v"
        return fresh_name(base, ChainMap[str, Any](self.spelling, self.formal))

    def difference(self, expr: PrimExpr, base: str) -> tuple[Dim, str]:
        """(above - below, above) for a value of any sign."""
        name = self.fresh(base)
        self.spelling[name] = expr
        above, below = self.fresh(f"{name}_above"), self.fresh(f"{name}_below")
        self.formal[above] = symbol(name) + symbol(below)
        self.formal[below] = symbol(below)  # cancels
        self.signed |= {above, below, name}
        known = dtypes.is_integer(expr.dtype) and not is_reinterpreted(expr.dtype)
        self.exactness.note(name, *(limits_of(expr.dtype) if known else (LEAST, LARGEST)))
        return symbol(above) - symbol(below), above

    def variables(self, dim: Dim) -> set[PrimVar]:
        """The variables that the spelling of a dimension uses."""
        spelled = (self.spelling[name] for name in free_symbols(self.spelled(dim)))
        return {part for expr in spelled for part in walk(expr) if isinstance(part, PrimVar)}

    def is_volatile(self, dim: Dim) -> bool:
        """Whether a dimension depends on memory."""
        return not self.volatile.isdisjoint(free_symbols(dim))

    def is_signed(self, dim: Dim) -> bool:
        """Whether a dimension stands only in sums and products."""
        return not self.signed.isdisjoint(free_symbols(dim))

    def interval(self, dim: Dim) -> tuple[float, float]:
        """Bounds of a dimension, by the intervals of its symbols."""
        return self.exactness.interval(self.spelled(dim))

    def spelled(self, dim: Dim) -> Dim:
        """A dimension in symbols that have a spelling; what a helper symbol stands for never changes."""
        found = self._spelled.get(dim)
        if found is None:
            found = self._spelled[dim] = self._spell(dim)
        return found

    def _spell(self, dim: Dim) -> Dim:
        while True:
            helpers = {
                name: self.formal[name]
                for name in free_symbols(dim)
                if name in self.formal and self.formal[name] != symbol(name)
            }
            if not helpers:
                return dim
            dim = substitute_dim(dim, helpers)

    def condition(self, dim: Dim) -> PrimExpr:
        """`dim` >= 0 as an expression: what is subtracted stands on the left of a comparison."""
        env: Mapping[str, Any] = {name: cast(INDEX, self.spelling[name]) for name in free_symbols(self.spelled(dim))}
        left: Dim = 0
        right: Dim = 0
        for part in terms(self.spelled(dim)):
            if (part if isinstance(part, int) else part.terms[0][1]) < 0:
                left = left - part
            else:
                right = right + part
        kind = "le"
        if _constant(left) == 1:
            kind, left = "lt", left - 1
        if isinstance(left, int) and isinstance(right, int):
            return IntImm(int(left <= right if kind == "le" else left < right), "bool")
        return binary(kind, as_expr(dim_to_prim(left, env), INDEX), as_expr(dim_to_prim(right, env), INDEX))

    def is_computed(self, dim: Dim) -> bool:
        """Whether a symbol of a dimension stands for a sum or product in 64 bits, which may have wrapped."""
        open_: list[Any] = [self.spelling[name] for name in free_symbols(self.spelled(dim))]
        while open_:
            expr = open_.pop()
            if isinstance(expr, Cast):
                open_.append(expr.value)
            elif isinstance(expr, Binary) and dtypes.bits(expr.dtype) == 64:
                if expr.kind in ("add", "sub", "mul"):
                    return True
                open_ += (expr.a, expr.b)
        return False

    def exact_condition(self, dim: Dim) -> PrimExpr:
        """That a dimension is a number of 64 bits, as a check of bounds says it: its arithmetic does not overflow."""
        env: Mapping[str, Any] = {name: cast(INDEX, self.spelling[name]) for name in free_symbols(self.spelled(dim))}
        return binary("le", as_expr(dim_to_prim(self.spelled(dim), env), INDEX), IntImm(LARGEST, INDEX))

    def text(self, dim: Dim) -> str | None:
        """A dimension as users read it; None when it has parts without a name."""
        spelled = self.spelled(dim)
        plain = all(isinstance(self.spelling[name], PrimVar) for name in free_symbols(spelled))
        return str(spelled) if plain else None


def terms(dim: Dim) -> Iterator[Any]:
    """What a dimension is the sum of."""
    kind, operands = operation(dim)
    yield from operands if kind == "add" else (dim,)


def _constant(dim: Dim) -> int:
    return sum(part for part in terms(dim) if isinstance(part, int))
