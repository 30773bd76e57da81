"""Sizes, indices and symbols of tensor expressions.

A shape holds dimensions (int or `DimExpr`) or scalar expressions; a dimension used in arithmetic stands for its value,
an int64. One variable stands for a symbol in all formulas; every created function replaces it by one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from weft.errors import ShapeError
from weft.ir.dim import Dim, DimExpr, parse_dim, symbol
from weft.ir.kernel import prim
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.tensor import Extent, PrimExpr, PrimVar

__all__ = ["INDEX", "SYMBOLS", "Index", "Size", "as_extent", "as_shape", "index", "size", "var"]

INDEX = "int64"
Size: TypeAlias = Dim | PrimExpr
Index: TypeAlias = PrimExpr | Dim

SYMBOLS: dict[str, PrimVar] = {}
"""What stands for a symbol in formulas; every created function replaces them by variables of its own."""


class _Symbols(Mapping[str, PrimVar]):
    """The formula variables of symbols, made when first asked for."""

    def __getitem__(self, name: str) -> PrimVar:
        return SYMBOLS.setdefault(name, PrimVar(name, INDEX))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __iter__(self) -> Iterator[str]:
        return iter(SYMBOLS)

    def __len__(self) -> int:
        return len(SYMBOLS)


def size(extent: Size) -> PrimExpr:
    """The value of a dimension as an int64 expression.

    >>> size(3).dtype
    'int64'
    """
    if isinstance(extent, PrimExpr):
        return extent
    return prim.as_expr(dim_to_prim(extent, _Symbols()), INDEX)


prim.CONVERSIONS[DimExpr] = size


def as_extent(extent: Size) -> Extent:
    """A size as a buffer or a loop has it: an int, or an expression."""
    return extent if isinstance(extent, int) else size(extent)


def index(value: Index) -> PrimExpr:
    """An index expression: Python integers and dimensions are int64."""
    return value if isinstance(value, PrimExpr) else size(value)


def as_shape(shape: Iterable[Size] | Size) -> tuple[Size, ...]:
    """The sizes of a shape; one size is a shape of one dimension.

    A name is a symbol, text an expression of symbols. Errors: ShapeError W221 for a negative size.
    """
    given: tuple[Any, ...] = (shape,) if isinstance(shape, str) or not isinstance(shape, Iterable) else tuple(shape)
    sizes = tuple(parse_dim(extent) if isinstance(extent, str) else extent for extent in given)
    for extent in sizes:
        if isinstance(extent, int) and extent < 0:
            raise ShapeError(f"a shape has the negative size {extent}", code="W221", hint="sizes are 0 or more")
    return sizes


def var(name: str, dtype: str = INDEX) -> Any:
    """A symbol for the sizes of shapes; with another dtype than int64 a scalar parameter.

    >>> from weft.ir.te import placeholder
    >>> placeholder((var("n"), 4)).shape
    (n, 4)
    """
    return symbol(name) if dtype == INDEX else PrimVar(name, dtype)
