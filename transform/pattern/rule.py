"""Rule: a form that is looked for and what takes its place, however it is written.

    rule     ::= name, form (a pattern of a call of an operator), make, exactness, doc
    make     ::= (site) -> the expression that takes the place of the value, None where the rule does not hold
    site     ::= the call, what each part of the form stands for, types and uses of values

How exact a rule is:

    bit           the same bits, whatever the values: nan, infinities, signs of zero, integers that wrap
    real          the same number in real arithmetic (floats round otherwise); integers the same bits
    approximate   off by at most `tolerance` of the greatest value

Errors: PassError W550 a rule that lacks something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from weft.errors import PassError
from weft.ir import Call, Constant, Expr, Function, Op, PrimValue, ShapeExpr, TensorType, Type, Var
from weft.ir.op import OPS, get_op
from weft.ir.op.declare import FIXED
from weft.support.records import dataclass
from weft.transform.infra.generators.choices import Choices
from weft.transform.pattern.language import (
    AndPattern,
    CallPattern,
    DFPattern,
    ExprPattern,
    OrPattern,
    TupleGetItemPattern,
)
from weft.transform.pattern.matching import Match

__all__ = ["EXACTNESS", "Make", "Rule", "Sides", "Site", "any_attributes_of"]

EXACTNESS = ("bit", "real", "approximate")
"""The classes, each more than the one before."""


class Site:
    """A place where the form of a rule was found."""

    def __init__(
        self,
        call: Expr,
        found: Mapping[DFPattern, Expr],
        match: Match,
        uses: Mapping[Var, int],
        constants: set[Var] | None = None,
    ) -> None:
        self.call, self.found, self._match, self._uses = call, found, match, uses
        self._constants = set[Var]() if constants is None else constants  # known to be constant, at other sites too

    def __getitem__(self, part: DFPattern) -> Expr:
        """What a part of the form stands for."""
        return self.found[part]

    def type(self, part: DFPattern | Expr) -> Type | None:
        """The type of a part, or of any expression."""
        return self._match.type_of(self.found[part] if isinstance(part, DFPattern) else part)

    def tensor(self, part: DFPattern | Expr) -> TensorType | None:
        """The type of a part if it is a tensor of known sizes and dtype."""
        ty = self.type(part)
        return ty if isinstance(ty, TensorType) and ty.dims is not None and ty.dtype is not None else None

    def value(self, part: DFPattern | Expr) -> Expr:
        """The value behind the variable that a part stands for."""
        return self._match.behind(self.found[part] if isinstance(part, DFPattern) else part)

    def is_constant(self, part: DFPattern | Expr) -> bool:
        """Whether a part is known at compile time: a constant, or operators of constants, which are folded."""
        pending = [self.found[part] if isinstance(part, DFPattern) else part]
        seen: set[Var] = set()
        while pending:
            expr = pending.pop()
            if isinstance(expr, Var):
                if expr in seen or expr in self._constants:
                    continue
                seen.add(expr)
            value = self._match.behind(expr)
            if isinstance(value, Call) and _is_folded(value):
                pending += value.args
            elif not _is_leaf_constant(value):
                return False
        self._constants |= seen
        return True

    def is_used_once(self, part: DFPattern | Expr) -> bool:
        """Whether nothing but what is replaced uses a part."""
        place = self._match.place(self.found[part] if isinstance(part, DFPattern) else part)
        return not isinstance(place, Var) or self._uses.get(place, 0) <= 1

    def uses(self, expr: Expr) -> int:
        """How often a value is used in the function."""
        place = self._match.place(expr)
        return self._uses.get(place, 0) if isinstance(place, Var) else 1


def _is_folded(call: Call) -> bool:
    """Whether a call is computed when compiling once its arguments are known."""
    return isinstance(call.op, Op) and call.op.name in OPS and OPS[call.op.name].pure and bool(call.args)


def _is_leaf_constant(value: Expr) -> bool:
    sizes = isinstance(value, ShapeExpr) and all(isinstance(dim, int) for dim in value.dims)
    return sizes or isinstance(value, (Constant, PrimValue))


Make = Callable[[Site], "Expr | None"]
Instance = Callable[[Choices], "Function | None"]


@dataclass(frozen=True, eq=False)
class Sides:
    """The two functions of a rule that is written as text, and its side conditions."""

    pattern: Function
    replacement: Function
    constant: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule; see the module. `instance` gives functions that it is for, which it is tested on.

    `cheaper` rules are applied only where what they give is proved to cost less; `sides` are there for rules written as
    two functions. Raises PassError W550 for another exactness, and an approximate rule without a tolerance.
    """

    name: str
    form: DFPattern
    make: Make
    instance: Instance
    exactness: str = "real"
    tolerance: float = 0.0
    cheaper: bool = False
    doc: str = ""
    sides: Sides | None = None
    operators: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        if self.exactness not in EXACTNESS:
            known = ", ".join(EXACTNESS)
            raise PassError(f"rule {self.name!r}: exactness is one of {known}, got {self.exactness!r}", code="W550")
        if (self.exactness == "approximate") != (self.tolerance > 0):
            message = f"rule {self.name!r}: an approximate rule, and no other, states a tolerance above 0"
            raise PassError(message, code="W550")
        operators = _operators(self.form)
        if operators is None:
            raise PassError(f"rule {self.name!r}: its form is no call of an operator", code="W550")
        object.__setattr__(self, "operators", operators)

    def __repr__(self) -> str:
        return f"<rule {self.name} ({self.exactness})>"


def any_attributes_of(text: str) -> tuple[str, frozenset[str]]:
    """The operator and the names of its attributes that a condition `attributes` says; no names are all.

    >>> name, free = any_attributes_of("nn.conv2d(strides, padding)")
    >>> name, sorted(free), any_attributes_of("matmul")
    ('nn.conv2d', ['padding', 'strides'], ('matmul', frozenset()))
    """
    name, opened, rest = text.partition("(")
    definition = get_op(name.strip())
    free = frozenset(word.strip() for word in rest.rstrip(") ").split(",")) if opened else frozenset[str]()
    known = {param.name for param in definition.params if param.kind in FIXED}
    if not free <= known:
        unknown = ", ".join(sorted(free - known))
        raise PassError(
            f"R.{definition.name} has no attribute {unknown}", code="W550", hint=f"it has: {', '.join(sorted(known))}"
        )
    return definition.name, free


def _operators(form: DFPattern) -> frozenset[str] | None:
    """The operators that calls of a form are of."""
    if isinstance(form, CallPattern):
        op: Any = form.op.expr if isinstance(form.op, ExprPattern) else None
        return frozenset((op.name,)) if isinstance(op, Op) else None
    if isinstance(form, OrPattern):
        left, right = _operators(form.left), _operators(form.right)
        return None if left is None or right is None else left | right
    if isinstance(form, AndPattern):
        return _operators(form.left) or _operators(form.right)
    if isinstance(form, TupleGetItemPattern):
        return _operators(form.tuple_value)
    inner = getattr(form, "pattern", None)  # a form with a property
    return None if inner is None else _operators(inner)
