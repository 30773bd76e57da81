"""What a condition says where it holds, and whether it is proved to.

    assume(condition, facts)    the facts, and what the condition says besides
    holds(condition, facts)     whether it is proved

A comparison sees values of its dtype (`compared`); those of checks of bounds are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from weft import dtypes
from weft.errors import ShapeError
from weft.ir.dim import Dim
from weft.ir.kernel.prim import binary
from weft.ir.tensor import COMPARISONS, Binary, IntImm, PrimCall, PrimExpr, PrimVar, Unary
from weft.transform.analysis.indices.exactness import is_reinterpreted
from weft.transform.analysis.indices.facts import Fact, Facts, negated

__all__ = ["Conditions"]


class Values(Protocol):
    """What conditions ask about the values that they compare."""

    def dim(self, expr: Any, facts: Facts) -> Dim:
        """The dimension of an expression."""
        ...

    def compared(self, expr: PrimExpr, facts: Facts) -> Dim:
        """The value that a comparison sees."""
        ...

    def proves(self, dim: Dim, facts: Facts) -> bool:
        """Whether a dimension is never negative."""
        ...

    def is_volatile(self, dim: Dim) -> bool:
        """Whether a dimension depends on memory."""
        ...

    def definition(self, variable: PrimVar) -> PrimExpr | None:
        """What a truth value stands for."""
        ...


class Conditions:
    """Conditions over the values of one function."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def assume(self, condition: Any, facts: Facts, *, exact: bool = False) -> Facts:
        """What holds where a condition does, besides; the comparisons of a check of bounds are `exact`."""
        if not isinstance(condition, PrimExpr) or dtypes.lanes(condition.dtype) > 1:
            return facts
        if isinstance(condition, IntImm):
            return facts if condition.value else facts.with_facts(Fact(-1))  # nothing gets here
        if isinstance(condition, PrimVar):
            value = self.values.definition(condition)
            return facts if value is None else self.assume(value, facts)
        if isinstance(condition, PrimCall) and condition.op == "likely":
            return self.assume(condition.args[0], facts)
        if isinstance(condition, Unary) and condition.kind == "not":
            return self._assume_not(condition.a, facts)
        if not isinstance(condition, Binary):
            return facts
        if condition.kind == "and" or (condition.kind == "bitwise_and" and dtypes.is_bool(condition.dtype)):
            return self.assume(condition.b, self.assume(condition.a, facts, exact=exact), exact=exact)
        if condition.kind == "or":
            if isinstance(condition.b, IntImm) and not condition.b.value:
                return self.assume(condition.a, facts, exact=exact)
            pair = (negated(condition.a), condition.b)
            return replace(facts, implications=(*facts.implications, pair))
        if condition.kind in COMPARISONS and dtypes.is_integer(condition.a.dtype):
            plain = exact and not is_reinterpreted(condition.a.dtype)
            return self._assume_order(condition, facts, self.values.dim if plain else self.values.compared)
        return facts

    def _assume_not(self, condition: PrimExpr, facts: Facts) -> Facts:
        if isinstance(condition, PrimVar):
            value = self.values.definition(condition)
            return facts if value is None else self._assume_not(value, facts)
        if isinstance(condition, PrimCall) and condition.op == "likely":
            return self._assume_not(condition.args[0], facts)  # type: ignore[arg-type]
        if isinstance(condition, Binary) and condition.kind == "or":
            return self._assume_not(condition.b, self._assume_not(condition.a, facts))
        if isinstance(condition, Binary) and condition.kind == "and":
            return self.assume(binary("or", negated(condition.a), negated(condition.b)), facts)
        opposite = negated(condition)
        return facts if isinstance(opposite, Unary) and opposite.kind == "not" else self.assume(opposite, facts)

    def _assume_order(self, condition: Binary, facts: Facts, value: Callable[[PrimExpr, Facts], Dim]) -> Facts:
        try:
            more = value(condition.b, facts) - value(condition.a, facts)
        except ShapeError:  # over the limits of dimensions
            return facts
        volatile = self.values.is_volatile(more)
        if condition.kind == "eq":
            return facts.with_facts(Fact(more, equal=True, volatile=volatile))
        if condition.kind == "ne":
            apart = [side for side in (more, -more) if self.values.proves(side, facts)]
            facts = facts.with_facts(*(Fact(side - 1, volatile=volatile) for side in apart))
            return facts if apart else facts.with_nonzero(more, volatile=volatile)
        if condition.kind in ("gt", "ge"):
            more = -more
        return facts.with_facts(Fact(more - 1 if condition.kind in ("lt", "gt") else more, volatile=volatile))

    def holds(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether a condition is proved."""
        if isinstance(condition, IntImm):
            return bool(condition.value)
        if isinstance(condition, PrimVar):
            value = self.values.definition(condition)
            return value is not None and self.holds(value, facts)
        if isinstance(condition, Unary) and condition.kind == "not":
            return self._fails(condition.a, facts)
        if isinstance(condition, Binary) and condition.kind == "and":
            return self.holds(condition.a, facts) and self.holds(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind == "or":
            return self.holds(condition.a, facts) or self.holds(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind in COMPARISONS and dtypes.is_integer(condition.a.dtype):
            if dtypes.lanes(condition.a.dtype) == 1:
                try:
                    more = self.values.compared(condition.b, facts) - self.values.compared(condition.a, facts)
                except ShapeError:
                    if is_reinterpreted(condition.a.dtype):
                        return False
                    raise
                if condition.kind == "ne":
                    apart = facts.is_nonzero(more)
                    return apart or any(self.values.proves(side - 1, facts) for side in (more, -more))
                wanted = {"le": [more], "lt": [more - 1], "ge": [-more], "gt": [-more - 1], "eq": [more, -more]}
                sides = wanted.get(condition.kind)
                return sides is not None and all(self.values.proves(side, facts) for side in sides)
        return False

    def _fails(self, condition: PrimExpr, facts: Facts) -> bool:
        """Whether the opposite of a condition is proved."""
        if isinstance(condition, Binary) and condition.kind == "or":
            return self._fails(condition.a, facts) and self._fails(condition.b, facts)
        if isinstance(condition, Binary) and condition.kind == "and":
            return self._fails(condition.a, facts) or self._fails(condition.b, facts)
        opposite = negated(condition)
        return not (isinstance(opposite, Unary) and opposite.a is condition) and self.holds(opposite, facts)
