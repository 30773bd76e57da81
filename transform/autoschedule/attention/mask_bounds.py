"""Bounds of a mask: which keys a condition on the positions (a causal mask, a window) lets a row see.

    x[s, t] = select(t <= s, c[s, t] * scale, -inf)                          hidden scores are -inf
    x[s, t] = select(t <= s, c[s, t] * scale, c[s, t] * scale + masked)      something is added to them

Hidden scores have probability 0 where something else of the row is visible, and are left out then. What is added to
hidden scores makes them vanish only if they are not nan and not infinite, which the squares of queries and keys tell
(Cauchy-Schwarz): |c| <= sqrt(sum(q^2) * sum(k^2)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from weft.ir import structural_equal
from weft.ir.kernel.prim import const
from weft.ir.tensor import (
    Binary,
    BufferLoad,
    FloatImm,
    PrimExpr,
    PrimVar,
    Select,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.attention.match import INFINITY, Attention, Role, is_number, scores_of
from weft.transform.autoschedule.rules.loops import plus
from weft.transform.autoschedule.rules.strides import difference_along, loads_in, uses

__all__ = ["MAX_SQUARES", "MaskBound", "MaskBounds", "mask_bounds_of"]

_MAX_SCALE, _MASKED = 1e6, -1e37
MAX_SQUARES = 1e36
"""Of queries times keys: scores below 1e24 in absolute value, to which -1e37 is added, vanish beside any other."""


@dataclass(frozen=True)
class MaskBound:
    """Keys are visible below `end` of a row (from `end` on where `is_first`), which grows with the row."""

    end: PrimExpr
    is_first: bool


@dataclass(frozen=True)
class MaskBounds:
    """The map of scores that masks, and the bounds that it sets: the last of a row, and the first where it has one.

    `added`: something is added to hidden scores, of -inf otherwise. `is_finite`: that is a number, so that a row whose
    scores are all hidden has probabilities other than 0.
    """

    role: Role
    bounds: tuple[MaskBound, ...]
    added: bool = False
    is_finite: bool = False

    @property
    def ends(self) -> tuple[MaskBound, ...]:
        """Bounds below which keys are visible."""
        return tuple(bound for bound in self.bounds if not bound.is_first)

    @property
    def starts(self) -> tuple[MaskBound, ...]:
        """Bounds from which on keys are visible."""
        return tuple(bound for bound in self.bounds if bound.is_first)


def mask_bounds_of(found: Attention) -> MaskBounds | None:
    """The last map of scores and the bounds that its condition sets; None where there are none."""
    scores = scores_of(found)
    maps = [role for role in found.roles if role.name == "score_map" and role.nest.store.buffer is scores]
    role = maps[-1] if maps else None
    value = None if role is None else role.nest.store.value
    if role is None or role.key is None or not isinstance(value, Select):
        return None
    added = None if is_number(value.false_value, -INFINITY) else _added(found, value)
    if added is not None and not added <= _MASKED:
        return None
    row = found.row.variables[role.number]
    found_bounds = (mask_bound_of(test, role.key, row) for test in _conjuncts(value.condition))
    bounds = tuple(bound for bound in found_bounds if bound is not None)
    is_finite = added is not None and added > -INFINITY
    if not bounds or (is_finite and (len(bounds) > 1 or any(bound.is_first for bound in bounds))):
        return None
    return MaskBounds(role, bounds, added is not None, is_finite)


def _added(found: Attention, value: Select) -> float:
    """What is added to hidden scores, which are products and small factors; nan for anything else."""
    hidden, seen = value.false_value, value.true_value
    if not isinstance(hidden, Binary) or hidden.kind != "add" or not isinstance(hidden.b, FloatImm):
        return math.nan
    if not structural_equal(hidden.a, seen):
        return math.nan
    factor: PrimExpr = const(1.0, seen.dtype)
    if isinstance(seen, Binary) and seen.kind == "mul":
        seen, factor = seen.a, seen.b
    plain = isinstance(seen, BufferLoad) and seen.buffer is found.buffer("scores")
    small = isinstance(factor, FloatImm) and abs(factor.value) <= _MAX_SCALE
    return hidden.b.value if plain and small else math.nan


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
