"""The state of one attempt to match: what each part stands for so far, undone where a choice turns out wrong.

Matching tries every choice there is (sides of `|`, orders of operands and of unordered tuples), so that it finds
a match whenever there is one. The patterns themselves say how they look at an expression (`language`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol

from weft.errors import PassError, WeftError, described
from weft.ir import BaseFunc, BindingBlock, Expr, Function, If, Type, Var, VarBinding
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.structure.recursion import deeply
from weft.transform.analysis.value_numbering import expr_key
from weft.transform.infra.rewriting import bindings_of

__all__ = ["Match", "bindings_of_block", "bindings_of_function", "extract"]


class Form(Protocol):
    """A pattern as an attempt sees it."""

    def _solutions(self, expr: Expr, match: Match) -> Generator[None]: ...

    def _stands_for(self, expr: Expr, match: Match) -> Expr: ...

    def _agrees(self, match: Match) -> bool: ...


def bindings_of_function(function: Function) -> dict[Var, Expr]:
    """The value of each variable of a function, branches and local functions included.

    What a `match_cast` binds is left out: it is a check, which nothing looks through.

    >>> from weft.script import relax as R
    >>> import weft
    >>> text = '@R.function\\ndef f(x: R.Tensor((2,), "float32")):\\n    y = R.exp(x)\\n    return y'
    >>> [var.name for var in bindings_of_function(weft.parse(text))]
    ['y']
    """
    if not isinstance(function, Function):
        raise PassError(f"bindings belong to a graph function, got {described(function)}", code="W551")
    found: dict[Var, Expr] = {}
    pending = [function.body]
    while pending:
        for binding in bindings_of(pending.pop()):
            if not isinstance(binding, VarBinding):
                continue
            value = found[binding.var] = binding.value
            if isinstance(value, If):
                pending += [value.then_branch, value.else_branch]
            elif isinstance(value, Function):
                pending.append(value.body)
    return found


def bindings_of_block(block: BindingBlock) -> dict[Var, Expr]:
    """The value of each variable of one block; see `bindings_of_function`."""
    return {item.var: item.value for item in block.bindings if isinstance(item, VarBinding)}


def extract(pattern: Form, expr: Expr, bindings: Mapping[Var, Expr]) -> dict[Any, Expr] | None:
    """What each part of a pattern stands for in an expression, None without a match."""
    if not isinstance(expr, Expr):
        raise PassError(f"a pattern is matched against an expression, got {described(expr)}", code="W551")
    return Match(bindings).first(pattern, expr)


class Match:
    """An attempt; `bindings` are the variables that it looks through, `functions` those that types come from."""

    def __init__(
        self,
        bindings: Mapping[Var, Expr],
        functions: Mapping[str, BaseFunc] | None = None,
        owners: Mapping[int, Var] | None = None,
    ) -> None:
        self.bindings = bindings
        self.owners = {id(value): var for var, value in bindings.items()} if owners is None else owners
        self.context = TypeContext(dict(functions or {}))
        self.found: dict[Any, Expr] = {}

    def first(self, pattern: Form, expr: Expr) -> dict[Any, Expr] | None:
        """The first match whose conditions between the parts hold."""
        return deeply(None, lambda: self._first(pattern, expr))

    def _first(self, pattern: Form, expr: Expr) -> dict[Any, Expr] | None:
        self.found.clear()
        for _ in self.solutions(pattern, expr):
            if self.holds():
                return dict(self.found)
        return None

    def holds(self) -> bool:
        """Whether what the parts say of each other is so."""
        return all(pattern._agrees(self) for pattern in self.found)

    def solutions(self, pattern: Form, expr: Expr) -> Generator[None]:
        """Each way in which the expression is of the form, with `found` filled in while it is looked at."""
        known = self.found.get(pattern)
        if known is not None:
            if self.same(known, expr):
                yield
            return
        for _ in pattern._solutions(expr, self):
            self.found[pattern] = pattern._stands_for(expr, self)
            try:
                yield
            finally:
                del self.found[pattern]

    def sequences(self, patterns: Sequence[Form], exprs: Sequence[Expr]) -> Generator[None]:
        """Each way in which expressions, one by one, are of the forms."""
        if not patterns:
            yield
            return
        for _ in self.solutions(patterns[0], exprs[0]):
            yield from self.sequences(patterns[1:], exprs[1:])

    def behind(self, expr: Expr) -> Expr:
        """The value behind a variable, as far as it is known."""
        seen: set[Var] = set()
        while isinstance(expr, Var) and expr in self.bindings and expr not in seen:
            seen.add(expr)
            expr = self.bindings[expr]
        return expr

    def same(self, one: Expr, other: Expr) -> bool:
        """Whether two operands are one value."""
        one, other = self.behind(one), self.behind(other)
        if one is other:
            return True
        key = None if self.place(one) is not one or self.place(other) is not other else expr_key(one)
        return key is not None and key == expr_key(other)

    def place(self, expr: Expr) -> Expr:
        """The variable that an expression is the value of, else the expression."""
        return self.owners.get(id(expr), expr)

    def type_of(self, expr: Expr) -> Type | None:
        """The type of an expression, None where it cannot be told."""
        place = self.place(expr)
        if isinstance(place, Var):
            return place.ty
        try:
            return infer_type(place, self.context)
        except WeftError:
            return None
