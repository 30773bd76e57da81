"""Values of named symbols, found by matching dimensions with sizes, each with the place it came from."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, evaluate, free_symbols, solve_for
from weft.ir.kernel.extents import size_in_64_bits

__all__ = ["SymbolTable", "shape_text"]


def shape_text(dims: Sequence[object]) -> str:
    """Dimensions as a shape is written: `(n, 4)`, `(n,)`."""
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


class SymbolTable:
    """Symbol values; an inner table sees the values of the outer one.

    >>> from weft.ir.dim import symbol
    >>> table = SymbolTable()
    >>> table.bind((symbol("n"), 4), (3, 4), "argument 1")
    >>> table.values, table.explain((symbol("n"),))
    ({'n': 3}, 'n=3 from argument 1')
    """

    def __init__(self, outer: SymbolTable | None = None) -> None:
        self.values: dict[str, int] = dict(outer.values) if outer else {}
        self.sources: dict[str, str] = dict(outer.sources) if outer else {}

    def bind(self, dims: Sequence[Dim], sizes: Sequence[int], place: str) -> None:
        """Give every bare symbol without a value the size at its position."""
        for dim, size in zip(dims, sizes, strict=False):
            if isinstance(dim, DimExpr):
                names = free_symbols(dim)
                if len(names) == 1 and str(dim) == names[0] and names[0] not in self.values:
                    self.set(names[0], size, place)

    def set(self, name: str, value: int, place: str) -> None:
        """Give a symbol a value."""
        self.values[name] = int(value)
        self.sources[name] = place

    def solve(self, dims: Sequence[Dim], sizes: Sequence[int], place: str) -> bool:
        """Give a value to symbols that a linear dimension determines; whether any was found."""
        found = False
        for dim, size in zip(dims, sizes, strict=False):
            missing = [name for name in free_symbols(dim) if name not in self.values]
            if len(missing) == 1:
                from weft.ir.dim import substitute

                value = solve_for(substitute(dim, self.values), missing[0], int(size))
                if isinstance(value, int):
                    self.set(missing[0], value, place)
                    found = True
        return found

    def value(self, dim: Dim) -> int:
        """The value of a dimension; ShapeError W286 when a symbol has none, OutOfMemoryError W950 beyond 64 bits."""
        return dim if isinstance(dim, int) else size_in_64_bits(evaluate(dim, self.values), dim)

    def agrees(self, dims: Sequence[Dim], sizes: Sequence[int]) -> bool:
        """Whether the dimensions have these values."""
        if len(dims) != len(sizes):
            return False
        for dim, size in zip(dims, sizes, strict=True):
            try:
                if (dim if isinstance(dim, int) else evaluate(dim, self.values)) != size:
                    return False
            except ShapeError:
                return False
        return True

    def explain(self, dims: Sequence[Dim]) -> str:
        """The values of the symbols in some dimensions and where they came from."""
        names = dict.fromkeys(name for dim in dims for name in free_symbols(dim))
        known = [
            f"{n}={self.values[n]} from {self.sources[n]}" if n in self.values else f"{n} has no value" for n in names
        ]
        return ", ".join(known)
