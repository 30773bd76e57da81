"""Applying rules to functions: one walk looks at every binding, walks are repeated until nothing is found any more.

Rules are found by the operator of their form, so that a function without it costs nothing. The first rule of a list
that holds has the binding. Each application is told to `note`, and asked of `allowed` before it is made.

Errors: PassError W553 a replacement whose type is not proved to fit, W554 rules without an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from weft.errors import PassError
from weft.ir import Binding, Call, Expr, Function, IRModule, Op, TupleGetItem, Var, VarBinding
from weft.ir.structure.variables import use_counts
from weft.ir.structure.visit import walk
from weft.transform.analysis.purity import is_pure
from weft.transform.graph.dead_code import without_dead_bindings
from weft.transform.infra.rewriting import FunctionRewriter, is_marked, value_behind
from weft.transform.pattern.language import CallPattern, TupleGetItemPattern, TuplePattern
from weft.transform.pattern.rewriting import ValueRewriter
from weft.transform.pattern.rule import Rule, Site

__all__ = ["Allowed", "Note", "applied", "applied_once"]

ROUNDS = 100
Note = Callable[[Rule, Var], None]
Allowed = Callable[[Rule, Site, Expr], bool]
_COMPUTED = (CallPattern, TuplePattern, TupleGetItemPattern)


def _no_note(rule: Rule, var: Var) -> None:
    """Applications that nobody asks about."""


def _any_place(rule: Rule, site: Site, new: Expr) -> bool:
    return True


def applied(
    rules: Sequence[Rule],
    function: Function,
    module: IRModule | None = None,
    *,
    note: Note = _no_note,
    allowed: Allowed = _any_place,
) -> Function:
    """The function where the rules were applied until none is found; itself where none was."""
    names: Counter[str] = Counter()

    def counted(rule: Rule, var: Var) -> None:
        names[rule.name] += 1
        note(rule, var)

    for _ in range(ROUNDS):
        new = applied_once(rules, function, module, note=counted, allowed=allowed)
        if new is function:
            return function
        function = new
    most = ", ".join(repr(name) for name, count in names.most_common(3) if count >= ROUNDS // 2)
    sides = [rule.sides for rule in rules if rule.sides is not None and rule.name == names.most_common(1)[0][0]]
    span = sides[0].replacement.span if sides else None
    raise PassError(
        f"rule {most} is found again in {function.name!r} after {ROUNDS} rounds",
        code="W554",
        span=span,
        hint='let the replacement have another form than the pattern, or cost less ("cheaper": True)',
    )


def applied_once(
    rules: Sequence[Rule],
    function: Function,
    module: IRModule | None = None,
    *,
    note: Note = _no_note,
    allowed: Allowed = _any_place,
) -> Function:
    """The function after one walk, without what nothing uses any more; itself where no rule was found."""
    by_operator: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in rule.operators:
            by_operator.setdefault(name, []).append(rule)
    if not any(isinstance(node, Op) and node.name in by_operator for node in walk(function)):
        return function
    module = module or IRModule()
    walked = _Walk(by_operator, function, module, note, allowed)
    new = walked.run(function)
    if new is function:
        return function
    new = without_dead_bindings(new, module)
    return _Replaced(walked.matched, new, module).run(new)


class _Replaced(FunctionRewriter):
    """Drops what patterns compute and nothing uses now, though it may fail: the replacement fails for the same values.

    Values that stand for any in a pattern stay.
    """

    def __init__(self, matched: set[Var], function: Function, module: IRModule) -> None:
        super().__init__()
        self.matched, self.module = matched, module
        self.uses = use_counts(function) if matched else {}

    def rewrite_binding(self, binding: Binding) -> Binding | Sequence[Binding]:
        dead = binding.var in self.matched and not self.uses.get(binding.var, 0)
        return () if dead and isinstance(binding, VarBinding) and is_pure(binding.value, self.module) else binding


class _Walk(ValueRewriter):
    def __init__(
        self, rules: Mapping[str, list[Rule]], function: Function, module: IRModule, note: Note, allowed: Allowed
    ) -> None:
        super().__init__(function, module)
        self.rules, self.note, self.allowed = rules, note, allowed
        self.matched: set[Var] = set()
        self.constants: set[Var] = set()
        self.uses = use_counts(function)

    def replacement(self, binding: VarBinding) -> Expr | None:
        for rule in self.rules.get(self.operator(binding.value), ()):
            other = self.applied(rule, binding)
            if other is not None:
                self.note(rule, binding.var)
                return other
        return None

    def operator(self, value: Expr) -> str:
        """The operator that a value is a call of, or a field of a call of."""
        if isinstance(value, TupleGetItem):
            value = value_behind(value.value, self.values)
        return value.op.name if isinstance(value, Call) and isinstance(value.op, Op) else ""

    def applied(self, rule: Rule, binding: VarBinding) -> Expr | None:
        """What a rule makes of a binding; None where it does not hold."""
        value, match = binding.value, self.match(binding)
        found = match.first(rule.form, value)
        if found is None:
            return None
        if any(is_marked(match.behind(part)) for part in found.values()):
            return None  # what a part of a target is to do stays as it is
        site = Site(value, found, match, self.uses, self.constants)
        other = rule.make(site)
        if other is None or other is value or not self.allowed(rule, site, other):
            return None
        inner = (part for pattern, part in found.items() if pattern is not rule.form and isinstance(pattern, _COMPUTED))
        places = (match.place(match.behind(part)) for part in inner)
        self.matched.update(place for place in places if isinstance(place, Var))
        return other
