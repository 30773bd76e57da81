"""ApplyRules: the rules of sets applied to graph functions until none is found any more.

How exact rules must be is an option: "bit", "real" or "approximate", each with those before it, or "level", which the
default pipeline has: results keep their bits up to opt=1, from opt=2 on rules of real arithmetic are applied as
well, which round otherwise, and never approximate ones. Where a rule that states `cheaper` is found, both sides are
priced with symbolic sizes (`cost`), and it is applied only if the replacement is proved to cost less, whatever the
sizes. Sets come in order: the first rule that holds has a value.

Each application is a decision in the attributes of the function: which rule, how exact, what it is known by.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from weft.errors import PassError
from weft.ir import Expr, Function, IRModule, Op, Var
from weft.ir.attrs import CODEGEN, COMPOSITE, PRIMITIVE, attribute
from weft.ir.structure.visit import walk
from weft.support.records import dataclass
from weft.transform.graph.fold_constant import FoldConstant
from weft.transform.infra.base import Pass
from weft.transform.infra.context import PassContext
from weft.transform.infra.decisions import Decision, with_decisions
from weft.transform.pattern.application import ROUNDS, applied
from weft.transform.pattern.rule import EXACTNESS, Rule, Site
from weft.transform.rewrite.cost import cheaper, replacement_costs
from weft.transform.rewrite.rule_set import rule_set

__all__ = ["ApplyRules", "RulePass"]


_OPAQUE = (COMPOSITE, CODEGEN, PRIMITIVE)
"""Attributes of functions that are a unit for a part of a target."""


@dataclass(frozen=True)
class RulePass(Pass, abstract=True):
    """The base of passes that are rule sets: `sets` of the class says which.

    `exactness` is what rules may change at most: "bit", "real", "approximate"; "level": bit up to level 1, then real.
    """

    level: ClassVar[int] = 1
    sets_of_class: ClassVar[tuple[str, ...]] = ()
    exactness: Literal["bit", "real", "approximate", "level"] = "real"

    @property
    def set_names(self) -> tuple[str, ...]:
        """The names of the sets, in order."""
        return self.sets_of_class

    def run(self, module: IRModule) -> IRModule:
        """Apply the rules to every graph function, and compute what became constant."""
        allowed = self.allowed_classes()
        for name, function in module.items():
            if isinstance(function, Function) and not any(attribute(function.attrs, key) for key in _OPAQUE):
                module = self._to_fixed_point(name, function, module, allowed)
        return module

    def _to_fixed_point(self, name: str, function: Function, module: IRModule, allowed: frozenset[str]) -> IRModule:
        """The module with rules applied to one function; operators that a rule brings in are looked at again."""
        for _ in range(ROUNDS):
            new = self._applied(function, module, allowed)
            if new is function:
                return module
            module = FoldConstant()(module.with_function(name, new))
            function = module[name]  # type: ignore[assignment]
        raise PassError(f"rules are found again in {name!r} after {ROUNDS} rounds", code="W554")

    def allowed_classes(self) -> frozenset[str]:
        """The classes of exactness that are allowed here."""
        stated: str = self.exactness
        if stated == "level":
            stated = "real" if PassContext.current().opt >= 2 else "bit"
        return frozenset(EXACTNESS[: EXACTNESS.index(stated) + 1])

    def _applied(self, function: Function, module: IRModule, allowed: frozenset[str]) -> Function:
        operators = {node.name for node in walk(function) if isinstance(node, Op)}
        rules = [
            rule
            for name in self.set_names
            for rule in rule_set(name).for_operators(operators)
            if rule.exactness in allowed
        ]
        if not rules:
            return function
        made: list[Decision] = []
        reasons: dict[str, str] = {}

        def note(rule: Rule, var: Var) -> None:
            values = {"rule": rule.name, "exactness": rule.exactness}
            made.append(Decision(var.name, "rewrite", values, reasons.pop(rule.name, rule.doc)))

        def is_allowed(rule: Rule, site: Site, new: Expr) -> bool:
            if not rule.cheaper:
                return True
            costs = replacement_costs(site, new)
            if costs is None or not cheaper(costs[1], costs[0]):
                return False
            reasons[rule.name] = f"costs {costs[1]} instead of {costs[0]}"
            return True

        return with_decisions(applied(rules, function, module, note=note, allowed=is_allowed), made)


@dataclass(frozen=True)
class ApplyRules(RulePass):
    """Apply the rules of the named sets, of ours and of other packages, in order.

    >>> str(ApplyRules(sets=("transposes",), exactness="bit"))
    'apply-rules{exactness=bit, sets=[transposes]}'
    """

    sets: tuple[str, ...] = ()

    @property
    def set_names(self) -> tuple[str, ...]:
        """The names of the sets, in order."""
        return self.sets
