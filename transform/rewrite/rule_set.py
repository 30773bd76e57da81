"""Rule sets: rules under a name, read when they are first needed; those of packages are registered like our own.

    rule_set("scale-shift")                                 the set of a name
    RuleSet("mine", "what it is for", [rule, RuleText(("add",), text)])        rules, or their texts
    register_rules(RuleSet(...))                            `ApplyRules` and the command line know it from then on

A text is read once a function has all the operators that its pattern has (`needs`), so that a set costs nothing
elsewhere. Rules of other packages are proved or tested before their first use (`evidence`); the tests of weft do that
for its own.

Errors: PassError W557 an unknown set, a name that is taken, a set of other things.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from weft.errors import PassError, described
from weft.ir import IRModule
from weft.support.forks import cached_property
from weft.support.providers import provider
from weft.support.records import dataclass
from weft.transform.infra.registry import nearest
from weft.transform.pattern.declared import PatternMatchingRewriter, rule_of
from weft.transform.pattern.evidence.check import Evidence, evidence
from weft.transform.pattern.rule import Rule

__all__ = ["RuleSet", "RuleText", "register_rules", "remove_rules", "rule_set", "rule_sets"]

HEAD = "from weft.script import ir as I, relax as R, tir as T\n"


@dataclass(frozen=True)
class RuleText:
    """A rule as text, and the operators that its pattern has."""

    needs: tuple[str, ...]
    text: str

    @cached_property
    def rule(self) -> Rule:
        """The rule, read at the first question."""
        module = provider("parse")(HEAD + self.text)
        assert isinstance(module, IRModule)
        return rule_of(module)


@dataclass(frozen=True, eq=False)
class RuleSet:
    """Rules under a name. `items` are rules, their texts, or what `@R.rewriter` makes.

    Raises PassError W557 for other items.

    >>> [str(found) for found in rule_set("transposes").evidence()][0]
    'CancelTransposes: tested (24 instances, 6 sets of values each)'
    """

    name: str
    doc: str
    items: Sequence[Rule | RuleText | PatternMatchingRewriter] = field(default_factory=tuple)
    trusted: bool = False

    def __post_init__(self) -> None:
        flat: list[Rule | RuleText] = []
        for item in self.items:
            if isinstance(item, PatternMatchingRewriter):
                flat += item.rules
            elif isinstance(item, (Rule, RuleText)):
                flat.append(item)
            else:
                raise PassError(f"rule set {self.name!r} holds rules, got {described(item)}", code="W557")
        object.__setattr__(self, "items", tuple(flat))

    def __iter__(self) -> Iterator[Rule]:
        return (
            item.rule if isinstance(item, RuleText) else item
            for item in self.items
            if not isinstance(item, PatternMatchingRewriter)
        )

    def for_operators(self, operators: Iterable[str]) -> list[Rule]:
        """The rules that may be found where these operators occur, checked before their first use."""
        known = set(operators)
        found: list[Rule] = []
        for item in self.items:
            if isinstance(item, RuleText) and known.issuperset(item.needs):
                found.append(item.rule)
            elif isinstance(item, Rule) and not known.isdisjoint(item.operators):
                found.append(item)
        if not self.trusted:
            for rule in found:
                evidence(rule)
        return found

    def evidence(self) -> list[Evidence]:
        """What is known of each rule; PassError W555 and W556 for wrong ones."""
        return [evidence(rule) for rule in self]


_SETS: dict[str, RuleSet] = {}


def register_rules(rules: RuleSet) -> RuleSet:
    """Make a set known by its name; PassError W557 where another one has it."""
    old = _SETS.get(rules.name)
    if old is not None and old is not rules:
        raise PassError(f"there is a rule set {rules.name!r} already", code="W557", hint="remove_rules takes it away")
    _SETS[rules.name] = rules
    return rules


def remove_rules(name: str) -> None:
    """Forget a set; PassError W557 for an unknown one."""
    rule_set(name)
    del _SETS[name]


def rule_set(name: str) -> RuleSet:
    """The set with a name; PassError W557 with the nearest ones."""
    known = _SETS if name in _SETS else _named_sets()
    found = known.get(name)
    if found is None:
        hint = nearest(name, known) or ", ".join(sorted(known))
        raise PassError(f"there is no rule set {name!r}", code="W557", hint=hint)
    return found


def _named_sets() -> dict[str, RuleSet]:
    """The sets by name; weft's own are loaded with the first question."""
    importlib.import_module("weft.transform.public")
    return _SETS


def rule_sets() -> list[RuleSet]:
    """All sets, by name."""
    known = _named_sets()
    return [known[name] for name in sorted(known)]
