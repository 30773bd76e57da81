"""Rules of rewriting that are written as two functions, one the form of what is replaced and one what takes its place.

    @R.rewriter
    class TwiceIsTwo:
        I.module_attrs({"exactness": "bit"})

        @R.function
        def pattern(x: R.Tensor(("n",), "float32")):
            return R.add(x, x)

        @R.function
        def replacement(x: R.Tensor(("n",), "float32")):
            return R.multiply(x, R.const(2.0))

A parameter stands for any value whose type is proved to fit, the same wherever it occurs, symbols for what the types
of those values and the sizes in calls say (`R.repeat(x, n)`); `R.Tensor` without a rank or a dtype stands for tensors
of any. Parameters that are sizes (`n: R.Prim("int64")`, `R.Shape(["n", "m"])`) may be used through their symbols alone.
What is replaced is the value that the pattern returns; the replacement is typed afresh where it goes, and must be
proved to have the type of what it replaces. A rule is applied until its pattern is not found any more. Side conditions
are attributes of the class:

    exactness    "bit", "real" (the default) or "approximate", with tolerance: see `rule`
    constant     names of parameters that have to be known at compile time
    where        relations of sizes that have to be proved: "k <= n"; of <=, <, ==, !=
    attributes   operators whose attributes are any, "nn.conv2d", or some of them, "nn.conv2d(strides, padding)": the
                 first call of one in the replacement has those of the first in the pattern, and so on. Others count.
    cheaper      True: only where the replacement is proved to cost less

Before its first use a rule is proved or tested (`evidence`), and refused where it is wrong; `unchecked()` is the rule
that means something else on purpose.

Errors: PassError W550 a module that states no rule, W551 what is rewritten is neither a function nor a module, W553 a
replacement that does not fit, W554 a rule without an end, W555 a wrong rule, W556 a rule that nothing is known of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from weft.errors import PassError, described
from weft.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    Op,
    PrimType,
    PrimValue,
    ShapeExpr,
    ShapeType,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.attrs import ATTRIBUTES, CHEAPER, CONSTANT, DOC, EXACTNESS, NAME, TOLERANCE, WHERE
from weft.ir.deduction.infer import type_text
from weft.ir.deduction.subtyping import match_types
from weft.ir.dim import Dim, DimExpr, free_symbols, parse_dim, prove_equal, prove_le, prove_lt, prove_ne, substitute
from weft.ir.node import EMPTY
from weft.ir.op import get_op
from weft.ir.op.declare import FIXED
from weft.support.records import dataclass
from weft.transform.analysis.value_numbering import same_type
from weft.transform.infra.rewriting import bindings_of, value_behind
from weft.transform.pattern.application import applied
from weft.transform.pattern.constructors import has_attr, is_expr, is_tuple, is_tuple_get_item, wildcard
from weft.transform.pattern.evidence.check import Evidence, evidence
from weft.transform.pattern.evidence.instances import instance_of_sides
from weft.transform.pattern.instantiate import instantiated
from weft.transform.pattern.language import CallPattern, DFPattern
from weft.transform.pattern.matching import bindings_of_function
from weft.transform.pattern.rule import Rule, Sides, Site, any_attributes_of

__all__ = ["PatternMatchingRewriter", "relation_holds", "rewriter_of", "rule_of"]

_CONDITIONS = (EXACTNESS, TOLERANCE, CONSTANT, WHERE, ATTRIBUTES, CHEAPER)


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
    >>> [found.kind for found in rule.evidence()]
    ['proved']
    """

    rules: tuple[Rule, ...]
    checked: bool = True

    @classmethod
    def from_module(cls, module: IRModule, name: str = "") -> PatternMatchingRewriter:
        """The rule that a module with the functions `pattern` and `replacement` states; PassError W550 for others."""
        return cls((rule_of(module, name),))

    def __or__(self, other: PatternMatchingRewriter) -> PatternMatchingRewriter:
        return PatternMatchingRewriter((*self.rules, *other.rules), self.checked and other.checked)

    def evidence(self) -> list[Evidence]:
        """What is known of each rule: that it is proved, or on how much it was tested.

        Raises PassError W555 with a counter-example for a wrong rule, W556 for one that no instance was found of.
        """
        return [evidence(rule) for rule in self.rules]

    def unchecked(self) -> PatternMatchingRewriter:
        """The same rules, for programs that are to mean something else afterwards: nothing is proved or tested."""
        return replace(self, checked=False)

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
        if self.checked:
            self.evidence()
        for rule in self.rules:
            for name, function in target.items():
                if isinstance(function, Function):
                    target = target.with_function(name, applied([rule], function, target))
        return target


def rewriter_of(module: IRModule) -> PatternMatchingRewriter:
    """What `@R.rewriter` makes of a class."""
    return PatternMatchingRewriter.from_module(module)


def rule_of(module: IRModule, name: str = "") -> Rule:
    """The rule that a module states; PassError W550 for a module that states none."""
    if not isinstance(module, IRModule):
        raise PassError(f"a rule is a module of two functions, got {described(module)}", code="W550")
    pattern, replacement = (_function(module, side) for side in ("pattern", "replacement"))
    _check_parameters(pattern, replacement)
    conditions = _conditions(module, pattern)
    sides = Sides(
        pattern,
        replace(replacement, private=True),
        *(tuple(conditions.get(key, ())) for key in ("constant", "where", "attributes")),
    )
    reader = _Reader(pattern, sides.attributes)
    form, parameters = reader.read()
    stated = {key: conditions[key] for key in ("exactness", "tolerance", "cheaper") if key in conditions}
    name = name or str(module.attrs.get(NAME, "")) or getattr(module, "name", "") or "rule"
    maker = _Maker(sides, parameters, reader.calls(), tuple(reader.sizes))
    return Rule(
        name,
        form,
        maker,
        lambda choices: instance_of_sides(sides, choices),
        doc=str(module.attrs.get(DOC, "")),
        sides=sides,
        **stated,
    )


def _check_parameters(pattern: Function, replacement: Function) -> None:
    if len(pattern.params) != len(replacement.params):
        raise PassError(
            f"the pattern has {len(pattern.params)} parameters, the replacement {len(replacement.params)}",
            code="W550",
            span=replacement.span,
            hint="both have the same parameters, in the same order",
        )
    for ours, theirs in zip(pattern.params, replacement.params, strict=True):
        if not same_type(ours.ty, theirs.ty):
            raise PassError(
                f"parameter {ours.name!r} of the pattern is {type_text(ours.ty)}, that of the replacement "
                f"{type_text(theirs.ty)}",
                code="W550",
                span=theirs.span,
            )


def _conditions(module: IRModule, pattern: Function) -> Mapping[str, Any]:
    """The side conditions that a class states, checked."""
    stated = {key: value for key, value in module.attrs.items() if key in _CONDITIONS}
    for key in ("constant", "where", "attributes"):
        items = stated.get(key, ())
        if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) for item in items):
            raise PassError(
                f"the condition {key!r} of a rule is a list of texts, got {items!r}", code="W550", span=pattern.span
            )
    names = {param.name for param in pattern.params}
    for item in stated.get("constant", ()):
        if item not in names:
            message = f"the rule wants {item!r} to be constant, its parameters are {', '.join(sorted(names))}"
            raise PassError(message, code="W550", span=pattern.span)
    for item in stated.get("where", ()):
        _relation(item)
    for key, kind in (("exactness", str), ("tolerance", (int, float)), ("cheaper", bool)):
        if key in stated and not isinstance(stated[key], kind):
            raise PassError(
                f"the condition {key!r} of a rule cannot be {stated[key]!r}", code="W550", span=pattern.span
            )
    return stated


_RELATIONS: dict[str, Callable[[Dim, Dim], bool | None]] = {
    "<=": prove_le,
    "==": prove_equal,
    "!=": prove_ne,
    "<": prove_lt,
}


def _relation(text: str) -> tuple[Dim, str, Dim]:
    for sign in _RELATIONS:
        left, found, right = text.partition(sign)
        if found:
            return parse_dim(left.strip()), sign, parse_dim(right.strip())
    hint = "write a relation of sizes: k <= n"
    raise PassError(f"the condition {text!r} of a rule is no relation", code="W550", hint=hint)


def relation_holds(text: str, symbols: Mapping[str, Dim]) -> bool:
    """Whether a relation of sizes is proved for the values of symbols.

    >>> relation_holds("k <= 2 * n", {"k": 6, "n": 3}), relation_holds("k < n", {"k": 6, "n": 3})
    (True, False)
    """
    left, sign, right = _relation(text)
    return _RELATIONS[sign](substitute(left, symbols), substitute(right, symbols)) is True


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Sizes that a pattern writes with symbols: a shape or number as a value, or an attribute of a call."""

    part: DFPattern
    written: object
    attribute: str = ""

    @property
    def names(self) -> set[str]:
        """The symbols in them."""
        return {name for dim in _dims_in(self.written) for name in free_symbols(dim)}

    def given(self, site: Site) -> list[tuple[Dim, Dim]] | None:
        """Each size as written with that at a site; None where these have another form."""
        value: object = site.value(self.part)
        if not self.attribute:
            value = _sizes_of(value)  # type: ignore[arg-type]
        elif isinstance(value, Call):
            value = get_op(value.op.name).values(value)[self.attribute]  # type: ignore[union-attr]
        return _paired(self.written, value)


def _dims_in(value: object) -> list[Dim]:
    """The sizes in an attribute."""
    if isinstance(value, tuple):
        return [dim for item in value for dim in _dims_in(item)]
    return [value] if isinstance(value, (int, DimExpr)) and not isinstance(value, bool) else []


def _paired(written: object, given: object) -> list[tuple[Dim, Dim]] | None:
    if isinstance(written, tuple) and isinstance(given, tuple) and len(written) == len(given):
        parts = [_paired(*each) for each in zip(written, given, strict=True)]
        return None if None in parts else [pair for part in parts if part for pair in part]
    ours, theirs = _dims_in(written), _dims_in(given)
    if isinstance(written, tuple) or isinstance(given, tuple) or not ours or not theirs:
        return [] if type(written) is type(given) and written == given else None
    return [(ours[0], theirs[0])]


@dataclass(frozen=True, eq=False)
class _Maker:
    """What takes the place of a value of the form of a pattern."""

    sides: Sides
    parameters: tuple[DFPattern | None, ...]  # None: sizes, used through their symbols
    calls: tuple[tuple[str, DFPattern], ...] = ()
    sizes: tuple[_Sizes, ...] = ()

    def __call__(self, site: Site) -> Expr | None:
        sides, params = self.sides, self.sides.pattern.params
        given = {param: site[part] for param, part in zip(params, self.parameters, strict=True) if part is not None}
        symbols = self._symbols(site, given)
        if symbols is None or not all(relation_holds(text, symbols) for text in sides.where):
            return None
        args = [given[param] if param in given else _size_argument(param, symbols) for param in params]
        if sides.constant and not _has_its_constants(site, sides, args):
            return None
        attributes = [(name, getattr(site[part], "attrs", EMPTY)) for name, part in self.calls]
        return instantiated(sides.replacement, args, symbols, attributes)

    def _symbols(self, site: Site, given: Mapping[Var, Expr]) -> dict[str, Dim] | None:
        """What symbols stand for, where all types and sizes are proved to be those of the pattern."""
        types = [site.type(arg) for arg in given.values()]
        parts = [part.given(site) for part in self.sizes]
        if None in types or None in parts:
            return None
        pairs = [pair for part in parts if part for pair in part]
        wanted = [*(param.ty for param in given), ShapeType(tuple(ours for ours, _ in pairs))]
        match = match_types(wanted, [*types, ShapeType(tuple(theirs for _, theirs in pairs))])  # type: ignore[list-item]
        if match.answer is not True or not all(prove_equal(a, b) for a, b in match.pairs):
            return None
        known = all(part.names <= set(match.symbols) for part in self.sizes)
        return match.symbols if known else None


def _size_argument(param: Var, symbols: Mapping[str, Dim]) -> Expr:
    """A parameter of sizes as a value."""
    dims = tuple(substitute(dim, symbols) for dim in param.ty.dims)  # type: ignore[union-attr]
    return ShapeExpr(dims) if isinstance(param.ty, ShapeType) else PrimValue(dims[0], "int64")


def _has_its_constants(site: Site, sides: Sides, args: Sequence[Expr]) -> bool:
    """Whether the parameters that have to be constant are; a value of constants alone is folded, not rewritten."""
    constant = [site.is_constant(arg) for arg in args]
    wanted = (param.name in sides.constant for param in sides.pattern.params)
    return not all(constant) and all(known or not want for known, want in zip(constant, wanted, strict=True))


def _sizes_of(expr: Expr) -> tuple[Dim, ...] | None:
    """The sizes of a shape, or the one that a number is; None for other values."""
    if isinstance(expr, ShapeExpr):
        return expr.dims
    if isinstance(expr, PrimValue) and not isinstance(expr.value, (bool, float)):
        return (expr.value,)
    return None


def _function(module: IRModule, name: str) -> Function:
    found = module.functions.get(name)
    if not isinstance(found, Function):
        raise PassError(
            f"a rule has a graph function {name!r}, this module has {', '.join(module) or 'none'}",
            code="W550",
            span=module.span if found is None else found.span,
            hint="@R.rewriter takes a class of two graph functions, `pattern` and `replacement`",
        )
    if found.attrs:
        message = f"the {name} of a rule has no attributes, this one has {', '.join(found.attrs)}"
        raise PassError(message, code="W550", span=found.span)
    return found


class _Reader:
    """Makes a pattern of a function."""

    def __init__(self, function: Function, any_attributes: Sequence[str] = ()) -> None:
        self.function = function
        self.any_attributes = dict(map(any_attributes_of, any_attributes))
        self.values = bindings_of_function(function)
        self.made: dict[Var, DFPattern] = {param: wildcard() for param in function.params}
        self.used: set[Var] = set()
        self.sizes: list[_Sizes] = []

    def read(self) -> tuple[DFPattern, tuple[DFPattern | None, ...]]:
        """The form of the result, and what stands for the parameters."""
        for binding in bindings_of(self.function.body):
            if not isinstance(binding, VarBinding):
                raise self.refuse("R.match_cast", binding.span)
        result = self.value(self.function.body.body)
        if not isinstance(self.behind(self.function.body.body), (Call, TupleGetItem)):
            raise self.refuse("a result that is no call", self.function.span)
        named = {name for part in self.sizes for name in part.names}
        idle = [param.name for param in self.function.params if not self._is_used(param, named)]
        if idle:
            raise PassError(
                f"the pattern does not use {', '.join(idle)}: nothing says what it stands for",
                code="W550",
                span=self.function.span,
            )
        return result, tuple(self.made[param] if param in self.used else None for param in self.function.params)

    def _is_used(self, param: Var, named: set[str]) -> bool:
        """Whether something says what a parameter stands for: its own place, or its symbols in sizes."""
        sizes = param.ty.dims if isinstance(param.ty, (ShapeType, PrimType)) else None
        return param in self.used or (sizes is not None and {n for d in sizes for n in free_symbols(d)} <= named)

    def calls(self) -> tuple[tuple[str, DFPattern], ...]:
        """The calls whose attributes are any, in the order of the text."""
        found: list[tuple[str, DFPattern]] = []
        for binding in bindings_of(self.function.body):
            value = binding.value
            if isinstance(value, Call) and isinstance(value.op, Op) and value.op.name in self.any_attributes:
                found.append((value.op.name, self.value(binding.var)))
        return tuple(found)

    def behind(self, expr: Expr) -> Expr:
        return value_behind(expr, self.values)

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
        sizes = _sizes_of(expr)
        if sizes is not None and any(map(free_symbols, sizes)):
            made = wildcard()  # compared once the symbols are known
            self.sizes.append(_Sizes(made, sizes))
            return made
        try:
            return is_expr(expr)
        except PassError:
            raise self.refuse(described(expr), expr.span) from None

    def call(self, call: Call) -> DFPattern:
        if not isinstance(call.op, Op):
            raise self.refuse("a call of a function", call.span)
        made = CallPattern(is_expr(call.op), tuple(self.value(arg) for arg in call.args))
        definition = get_op(call.op.name)
        values = definition.values(call)
        names = [param.name for param in definition.params if param.kind in FIXED]
        free = self.any_attributes.get(call.op.name)
        attrs = {name: values[name] for name in names if free is None or (free and name not in free)}
        sized = [name for name, value in attrs.items() if any(map(free_symbols, _dims_in(value)))]
        plain = {name: value for name, value in attrs.items() if name not in sized}
        self.sizes += (_Sizes(made, attrs[name], name) for name in sized)
        return has_attr(plain, made) if plain else made

    def refuse(self, what: str, span: Any) -> PassError:
        hint = "a pattern is made of calls of operators, tuples and constants"
        return PassError(f"{what} cannot stand in the pattern of a rule", code="W550", span=span, hint=hint)
