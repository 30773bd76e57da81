"""The symbols of a graph function, and those that a value of a type binds."""

from __future__ import annotations

from weft.ir import Node, TupleType, Type, rewrite
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, DimExpr, free_symbols, operation

__all__ = ["bare_symbols", "symbols_of", "symbols_of_type"]


def symbols_of(function: Node) -> set[str]:
    """The names of all symbols that occur in a graph function."""
    found: set[str] = set()

    def see(dim: DimExpr) -> Dim:
        found.update(free_symbols(dim))
        return dim

    rewrite(function, dim=see)
    return found


def symbols_of_type(ty: Type) -> tuple[str, ...]:
    """The names of the symbols in the sizes that a type states, fields of tuples included, in order."""
    if isinstance(ty, TupleType):
        return tuple(dict.fromkeys(name for field in ty.fields for name in symbols_of_type(field)))
    return tuple(dict.fromkeys(name for dim in dims_of(ty) or () for name in free_symbols(dim)))


def bare_symbols(ty: Type) -> set[str]:
    """The symbols that a value of the type binds: those that stand alone as a dimension, in fields of tuples too."""
    if isinstance(ty, TupleType):
        return {name for field in ty.fields for name in bare_symbols(field)}
    return {str(dim) for dim in dims_of(ty) or () if operation(dim)[0] == "symbol"}
