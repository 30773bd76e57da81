"""Bounds of a mask: which keys a condition on the positions (a causal mask, a window) lets a row see."""

from __future__ import annotations

from collections.abc import Iterator

from weft.ir.tensor import (
    Binary,
    PrimExpr,
    PrimVar,
    Select,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.attention.match import INFINITY, Attention, Role, is_number, scores_of
from weft.transform.autoschedule.rules.loops import plus
from weft.transform.autoschedule.rules.strides import difference_along, loads_in, uses

__all__ = ["MaskBound", "mask_bounds_of"]


@dataclass(frozen=True)
class MaskBound:
    """Keys are visible below `end` of a row (from `end` on where `is_first`), which grows with the row."""

    end: PrimExpr
    is_first: bool


def mask_bounds_of(found: Attention) -> tuple[Role, list[MaskBound]] | None:
    """The last map of scores and the bounds that its condition sets; None where there are none."""
    scores = scores_of(found)
    maps = [role for role in found.roles if role.name == "score_map" and role.nest.store.buffer is scores]
    role = maps[-1] if maps else None
    value = None if role is None else role.nest.store.value
    if role is None or role.key is None or not isinstance(value, Select):
        return None
    if not is_number(value.false_value, -INFINITY):
        return None
    row = found.row.variables[role.number]
    found_bounds = (mask_bound_of(test, role.key, row) for test in _conjuncts(value.condition))
    bounds = [bound for bound in found_bounds if bound is not None]
    return (role, bounds) if bounds else None


def _conjuncts(test: PrimExpr) -> Iterator[PrimExpr]:
    if isinstance(test, Binary) and test.kind == "and":
        yield from _conjuncts(test.a)
        yield from _conjuncts(test.b)
    else:
        yield test


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def mask_bound_of(test: PrimExpr, key: PrimVar, row: PrimVar) -> MaskBound | None:
    if not isinstance(test, Binary) or test.kind not in _MIRRORED:
        return None
    kind, end = (test.kind, test.b) if test.a is key else (_MIRRORED[test.kind], test.a)
    if key not in (test.a, test.b) or uses(end, key) or any(True for _ in loads_in(end)):
        return None
    step = difference_along(end, row)
    if step is None or step < 0:
        return None
    return MaskBound(plus(end, 1) if kind in ("le", "gt") else end, kind in ("gt", "ge"))
