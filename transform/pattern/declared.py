"""Rules of rewriting that are written as two functions, one the form of what is replaced and one what takes its place.

    @R.rewriter
    class TwiceIsTwo:
        @R.function
        def pattern(x: R.Tensor(("n",), "float32")):
            return R.add(x, x)

        @R.function
        def replacement(x: R.Tensor(("n",), "float32")):
            return R.multiply(x, R.const(2.0))

A parameter stands for any value whose type is proved to fit, the same wherever it occurs, symbols for what the types
of those values say. Attributes of the operators count. What is replaced is the value that the pattern returns; the
bindings of the replacement take its place, and their result must be proved to have the type of what it replaces. A rule
is applied until its pattern is not found any more.

Errors: PassError W550 a module that states no rule, W551 what is rewritten is neither a function nor a module, W553 a
replacement that does not fit, W554 a rule without an end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, overload

from weft.errors import PassError, described
from weft.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.deduction.infer import TypeContext, infer_type, type_text
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import free_symbols, prove_equal
from weft.transform.analysis.value_numbering import same_type
from weft.transform.graph.inline_functions import InlinePrivateFunctions
from weft.transform.infra.rewriting import bindings_of
from weft.transform.pattern.constructors import has_attr, is_expr, is_tuple, is_tuple_get_item, wildcard
from weft.transform.pattern.language import CallPattern, DFPattern
from weft.transform.pattern.matching import bindings_of_function
from weft.transform.pattern.rewriting import rewrite_call

__all__ = ["PatternMatchingRewriter", "rewriter_of"]

_ROUNDS = 100


@dataclass(frozen=True)
class _Rule:
    """The form, what its parts that are parameters are called, and the two functions."""

    form: DFPattern
    parameters: tuple[DFPattern, ...]
    pattern: Function
    replacement: Function


@dataclass(frozen=True)
class PatternMatchingRewriter:
    """Rules that are applied to functions and modules, one after the other; `a | b` has the rules of both.

    >>> import weft
    >>> rule = PatternMatchingRewriter.from_module(weft.parse('''
    ... from weft.script import ir as I, relax as R
    ... @R.rewriter
    ... class TwiceIsTwo:
    ...     @R.function
    ...     def pattern(x: R.Tensor(("n",), "float32")):
    ...         return R.add(x, x)
    ...     @R.function
    ...     def replacement(x: R.Tensor(("n",), "float32")):
    ...         return R.multiply(x, R.const(2.0))
    ... '''))
    >>> main = weft.parse('@R.function\\ndef main(a: R.Tensor((8,), "float32")):\\n    return R.add(a, a)')
    >>> "R.multiply(a, " in rule(main).script()
    True
    """

    rules: tuple[_Rule, ...]

    @classmethod
    def from_module(cls, module: IRModule) -> PatternMatchingRewriter:
        """The rule that a module with the functions `pattern` and `replacement` states; PassError W550 for others."""
        if not isinstance(module, IRModule):
            raise PassError(f"a rule is a module of two functions, got {described(module)}", code="W550")
        pattern, replacement = (_function(module, name) for name in ("pattern", "replacement"))
        if len(pattern.params) != len(replacement.params):
            raise PassError(
                f"the pattern has {len(pattern.params)} parameters, the replacement {len(replacement.params)}",
                code="W550", span=replacement.span, hint="both have the same parameters, in the same order",
            )  # fmt: skip
        for ours, theirs in zip(pattern.params, replacement.params, strict=True):
            if not same_type(ours.ty, theirs.ty):
                raise PassError(
                    f"parameter {ours.name!r} of the pattern is {type_text(ours.ty)}, that of the replacement "
                    f"{type_text(theirs.ty)}", code="W550", span=theirs.span,
                )  # fmt: skip
        form, parameters = _Reader(pattern).read()
        return cls((_Rule(form, parameters, pattern, replace(replacement, private=True)),))

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter((*self.rules, *other.rules))

    @overload
    def __call__(self, target: IRModule) -> IRModule: ...
    @overload
    def __call__(self, target: Function) -> Function: ...
    def __call__(self, target: IRModule | Function) -> IRModule | Function:
        """The function, or the module with all its graph functions, where the rules were applied."""
        if isinstance(target, Function):
            name = target.name or "main"
            found = self(IRModule({name: target}))[name]
            assert isinstance(found, Function)
            return found
        if not isinstance(target, IRModule):
            raise PassError(f"rules are applied to functions and modules, got {described(target)}", code="W551")
        for rule in self.rules:
            for name, function in target.items():
                if isinstance(function, Function):
                    target = _applied(rule, target, name)
        return target


def rewriter_of(module: IRModule) -> PatternMatchingRewriter:
    """What `@R.rewriter` makes of a class."""
    return PatternMatchingRewriter.from_module(module)


def _function(module: IRModule, name: str) -> Function:
    found = module.functions.get(name)
    if not isinstance(found, Function):
        raise PassError(
            f"a rule has a graph function {name!r}, this module has {', '.join(module) or 'none'}", code="W550",
            span=module.span if found is None else found.span,
            hint="@R.rewriter takes a class of two graph functions, `pattern` and `replacement`",
        )  # fmt: skip
    if found.attrs:
        message = f"the {name} of a rule has no attributes, this one has {', '.join(found.attrs)}"
        raise PassError(message, code="W550", span=found.span)
    return found


class _Reader:
    """Makes a pattern of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.values = bindings_of_function(function)
        self.made: dict[Var, DFPattern] = {param: wildcard() for param in function.params}
        self.used: set[Var] = set()

    def read(self) -> tuple[DFPattern, tuple[DFPattern, ...]]:
        """The form of the result, and what stands for the parameters."""
        for binding in bindings_of(self.function.body):
            if not isinstance(binding, VarBinding):
                raise self.refuse("R.match_cast", binding.span)
        result = self.value(self.function.body.body)
        if not isinstance(self.behind(self.function.body.body), Call):
            raise self.refuse("a result that is no call", self.function.span)
        idle = [param.name for param in self.function.params if param not in self.used]
        if idle:
            raise PassError(
                f"the pattern does not use {', '.join(idle)}: nothing says what it stands for", code="W550",
                span=self.function.span,
            )  # fmt: skip
        return result, tuple(self.made[param] for param in self.function.params)

    def behind(self, expr: Expr) -> Expr:
        while isinstance(expr, Var) and expr in self.values:
            expr = self.values[expr]
        return expr

    def value(self, expr: Expr) -> DFPattern:
        if isinstance(expr, Var):
            self.used.add(expr)
            if expr not in self.made:
                if expr not in self.values:
                    raise self.refuse(f"{expr.name!r}, which is bound outside of it,", expr.span)
                self.made[expr] = self.value(self.values[expr])
            return self.made[expr]
        if isinstance(expr, Call):
            return self.call(expr)
        if isinstance(expr, Tuple):
            return is_tuple([self.value(field) for field in expr.fields])
        if isinstance(expr, TupleGetItem):
            return is_tuple_get_item(self.value(expr.value), expr.index)
        if isinstance(expr, ShapeExpr) and any(free_symbols(dim) for dim in expr.dims):
            raise self.refuse("a shape with symbols as a value", expr.span)
        try:
            return is_expr(expr)
        except PassError:
            raise self.refuse(described(expr), expr.span) from None

    def call(self, call: Call) -> DFPattern:
        if not isinstance(call.op, Op):
            raise self.refuse("a call of a function", call.span)
        made = CallPattern(is_expr(call.op), tuple(self.value(arg) for arg in call.args))
        return has_attr(call.attrs, made) if call.attrs else made

    def refuse(self, what: str, span: Any) -> PassError:
        hint = "a pattern is made of calls of operators, tuples and constants"
        return PassError(f"{what} cannot stand in the pattern of a rule", code="W550", span=span, hint=hint)


def _applied(rule: _Rule, module: IRModule, name: str) -> IRModule:
    """The module where a rule was applied to one function until it does not match any more."""
    rule_name = module.fresh_name("replacement")
    with_rule = module.with_function(rule_name, rule.replacement)
    context = TypeContext(with_rule.functions)

    def rewritten(expr: Expr, found: dict[DFPattern, Expr]) -> Expr | None:
        args = tuple(found[part] for part in rule.parameters)
        match = match_types([param.ty for param in rule.pattern.params], [infer_type(arg, context) for arg in args])
        fits = match.answer is True and all(prove_equal(a, b) for a, b in match.pairs)
        return Call(GlobalVar(rule_name), args, span=expr.span) if fits else None

    for _ in range(_ROUNDS):
        function = with_rule[name]
        assert isinstance(function, Function)
        new = rewrite_call(rule.form, rewritten, function, with_rule)
        if new is function:
            return with_rule.without(rule_name)
        changed = InlinePrivateFunctions((rule_name,))(with_rule.with_function(name, new))
        with_rule = changed.with_function(rule_name, rule.replacement)
    raise PassError(
        f"the rule is found again in {name!r} after {_ROUNDS} rounds", code="W554", span=rule.replacement.span,
        hint="let the replacement have another form than the pattern",
    )  # fmt: skip
