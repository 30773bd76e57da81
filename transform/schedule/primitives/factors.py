"""Factors: the sizes that loop primitives take, as dimensions.

factor ::= a number | the handle of one | a dimension over the function's symbols ("n // 2") | None: what is left
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import WeftError
from weft.ir.dim import Dim, DimExpr, free_symbols, parse_dim, substitute, symbol
from weft.ir.kernel.prim_dim import symbol_names
from weft.ir.tensor import PrimExpr, PrimVar
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import ExprRV
from weft.transform.schedule.tree import Tree

__all__ = ["Factor", "factor_of", "recorded"]

Factor = int | ExprRV | str | DimExpr | PrimExpr | None


def factor_of(number: Callable[[Any], int], tree: Tree, point: Point, factor: Factor, minimum: int = 1) -> Dim | None:
    """A factor as a dimension; `number` gives what a handle stands for.

    ScheduleError W604 for one that is none, or is known to be less than the minimum.
    """
    if factor is None:
        return None
    if isinstance(factor, PrimExpr):
        found = point.dim(factor)
    elif isinstance(factor, (str, DimExpr)):
        found = _symbolic(tree, point, factor)
    else:
        found = number(factor)
    if found is None or _is_less(point, found, minimum):
        raise failure("W604", f"{factor!r} is no extent of a loop", hint="a positive number, or a dimension")
    return found


def _is_less(point: Point, found: Dim, minimum: int) -> bool:
    """Whether a factor is known to be less than the minimum; nothing is where no iteration gets, and all is proved."""
    if isinstance(found, int):
        return found < minimum
    return point.below(found, minimum) and not point.below(minimum - 1, found)


def _symbolic(tree: Tree, point: Point, factor: str | DimExpr) -> Dim:
    """A dimension over names of the function as one over the names of a point."""
    try:
        dim = parse_dim(factor) if isinstance(factor, str) else factor
    except WeftError as error:
        raise failure("W604", f"{factor!r} is no dimension: {error.message}") from None
    visible = {name: variable for variable, name in sorted(symbol_names(tree.function).items(), key=lambda x: x[1])}
    unknown = [name for name in free_symbols(dim) if name not in visible]
    if unknown:
        raise failure(
            "W604", f"the function has no symbol {unknown[0]!r}", hint=f"it has: {', '.join(visible) or 'none'}"
        )
    return substitute(dim, {name: symbol(point.name(visible[name])) for name in free_symbols(dim)})


def recorded(factor: Any) -> Any:
    """A factor as a trace keeps it: dimensions as text."""
    if isinstance(factor, DimExpr):
        return str(factor)
    return str(factor.name) if isinstance(factor, PrimVar) else factor
