"""Borders: values that are there within bounds only, as those of an input that is padded.

T.if_then_else(0 <= i and 0 <= j, x[i, j], y)      along j: T.if_then_else(0 <= j, x[i, j], y) where 0 <= i, else y
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from weft.ir import replace
from weft.ir.kernel.prim import binary
from weft.ir.tensor import PrimCall, PrimExpr, PrimVar
from weft.transform.analysis.loops.points import conjuncts
from weft.transform.autoschedule.rules.strides import uses

__all__ = ["cases_along"]


def cases_along(value: PrimExpr, var: PrimVar) -> tuple[PrimExpr | None, PrimExpr, PrimExpr | None]:
    """What of the condition of a value is the same along a variable, and the values where that holds and where not.

    (None, the value, None) where there is no such part.
    """
    if not isinstance(value, PrimCall) or value.op != "if_then_else":
        return None, value, None
    condition, chosen, other = value.args
    assert isinstance(condition, PrimExpr)
    assert isinstance(chosen, PrimExpr)
    assert isinstance(other, PrimExpr)
    parts = conjuncts(condition)
    same, along = ([part for part in parts if uses(part, var) is wanted] for wanted in (False, True))
    if not same:
        return None, value, None
    within = replace(value, args=(_all_of(along), chosen, other)) if along else chosen
    return _all_of(same), within, other


def _all_of(parts: Sequence[PrimExpr]) -> PrimExpr:
    return reduce(partial(binary, "and"), parts)
