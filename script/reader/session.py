"""The state of reading one function, and what its level makes of the parts of an expression.

A session is what the functions `(session, tree)` of the reader share: the text, the module, the scope of names. What
an operator, a name or a call means depends on the level: `session.level` holds those functions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from weft.errors import Span, WeftError
from weft.ir.dim import Dim
from weft.script.forms.reading import COMMON, Readers
from weft.script.reader.folding import check_bits, too_many
from weft.script.reader.macros import Macro
from weft.script.reader.scope import ModuleScope, Scope, describe
from weft.script.source.budget import VALUE, measure
from weft.script.source.diagnostics import fail
from weft.script.source.text import Unit
from weft.support.records import dataclass, record

__all__ = ["Level", "Session"]

_SCALARS = frozenset({bool, int, float, complex, type(None)})

_UNSUPPORTED = {
    ast.SetComp: "a set comprehension",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
    ast.NamedExpr: "an assignment expression",
    ast.Set: "a set",
    ast.Starred: "a starred expression",
    ast.FormattedValue: "a format",
    ast.AsyncFunctionDef: "an asynchronous function",
    ast.AsyncFor: "`async for`",
    ast.AsyncWith: "`async with`",
    ast.ClassDef: "a class",
    ast.FunctionDef: "a function without a decorator",
    ast.Delete: "`del`",
    ast.ImportFrom: "`import`",
}

_HINTS: dict[type, str] = {
    ast.While: "write the loop as a T.prim_func, or use a static `for i in range(3)`",
    ast.NamedExpr: "bind the name in a statement of its own",
    ast.Set: "write a tuple or a list",
    ast.SetComp: "write a list comprehension",
    ast.Try: "nothing can be caught while a script runs; choose with `if`",
    ast.Raise: "`assert condition, message` is checked",
    ast.Import: "import outside the script",
    ast.ImportFrom: "import outside the script",
    ast.Match: "write `if` and `elif`",
    ast.FunctionDef: "decorate it with @R.function, @R.macro or @T.macro",
    ast.ClassDef: "define it outside the script",
    ast.Delete: "names end with their block",
    ast.Global: "a script binds its own names only; outside names can be read as they are",
    ast.Nonlocal: "a script binds its own names only; outside names can be read as they are",
    ast.Yield: "a function gives its result by `return`",
    ast.YieldFrom: "a function gives its result by `return`",
    ast.Await: "scripts are not asynchronous",
    ast.AsyncFunctionDef: "scripts are not asynchronous",
    ast.AsyncFor: "scripts are not asynchronous",
    ast.AsyncWith: "scripts are not asynchronous",
}


@record
class Level:
    """What names, operators and calls mean at a level: of graph functions, of tensor functions, around both.

    Every function takes the session first and the syntax tree last.
    """

    letter: str  # of the namespace: "R", "T", "" around functions
    readers: Readers
    loop_hint: str  # what a loop can go through
    # names
    lookup: Callable[[Any, str, ast.AST], Any]
    undefined: Callable[[Any, str, ast.AST], WeftError]
    unknown: Callable[[Any, str, ast.AST], WeftError]
    extra_names: Callable[[Any, str], Sequence[str]]  # more names of a namespace, for suggestions
    instead_of: Callable[[Any, str], str | None]  # a hint: what has the name of a Python function here
    captured: Callable[[Any, Any, str, ast.AST], Any]
    # sizes
    symbol_value: Callable[[Any, str, ast.AST], Any]
    use_symbol: Callable[[Any, str, ast.expr], None]
    declared_outside: Callable[[Any, str, Any, ast.AST], Any]
    dim_text: Callable[[Any, str, ast.expr], Dim]
    # values
    attribute_of: Callable[[Any, Any, ast.Attribute], Any]
    pointer_dtype: Callable[[Any, ast.Attribute], str | None]
    subscript_of: Callable[[Any, Any, ast.Subscript], Any]
    spread: Callable[[Any, Any, ast.expr], Sequence[Any]]
    settled: Callable[[Any, Any, ast.expr], Any]  # a value that may be used more than once
    iterable: Callable[[Any, Any, ast.expr], Sequence[Any]]
    combine: Callable[[Any, str, Any, Any, ast.AST], Any]
    combine_unary: Callable[[Any, str, Any, ast.AST], Any]
    contained: Callable[[Any, Any, Any, ast.AST], Any]  # `v in x` of a value of the level, or MISSING
    condition: Callable[[Any, ast.expr], Any]
    comprehension: Callable[[Any, ast.ListComp | ast.GeneratorExp], Any]
    reduction: Callable[[Any, str, ast.Call], Any]  # `sum(x)` and its like of what only a run decides, or MISSING
    conditional: Callable[[Any, Any, ast.IfExp], Any]
    either: Callable[[Any, str, Any, ast.expr, ast.AST], Any]  # `and`, `or` whose first operand only a run decides
    # calls and statements
    call_named: Callable[[Any, str, ast.Call], Any]
    call_other: Callable[[Any, ast.Call], Any]
    builtin_of: Callable[[Any, str, list[Any], ast.Call], Any]
    expand_body: Callable[[Any, Macro, ast.Call], Any]  # what a macro gives whose names are bound
    statement_list: Callable[[Any, Sequence[ast.stmt]], list[Any]]


@dataclass(eq=False)
class Session:
    """The state of reading one function, or what stands around functions."""

    unit: Unit
    module: ModuleScope
    level: Level
    scope: Scope = field(default_factory=Scope)
    symbols: set[str] = field(default_factory=set)
    sizes: dict[Any, Dim] = field(default_factory=dict)  # scalar variables whose value is a size
    defining: bool = False  # whether strings in shapes may define symbols
    foreign: bool = False  # whether a macro from outside the function is being read: its own names come first
    depth: int = 0  # of the expression
    expanding: int = 0  # macros around this place
    private: bool = False
    negative_dims: bool = True
    scopes_function_types: bool = True  # whether the symbols of a function type are read as its own

    def span(self, tree: ast.AST) -> Span:
        """The place of a syntax tree."""
        return self.unit.span(tree)

    def fail(self, code: str, message: str, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error to raise about a syntax tree."""
        return fail(code, message, self.unit.span(tree), hint)

    def unsupported(self, tree: ast.AST, hint: str | None = None) -> WeftError:
        """The error for Python that the script does not read."""
        what = _UNSUPPORTED.get(type(tree), f"`{type(tree).__name__.lower()}`")
        return self.fail("W115", f"{what} is not part of the script", tree, hint or _HINTS.get(type(tree)))

    def value(self, tree: ast.expr) -> Any:
        """What an expression stands for: an IR expression, a type, a dimension, or a plain Python value."""
        self.unit.charge(VALUE, tree)
        self.depth += 1
        if self.depth > self.unit.limits.nesting:
            raise self.fail(
                "W103",
                f"expressions nest deeper than {self.unit.limits.nesting}",
                tree,
                "name parts of it by bindings; Limits(nesting=...) allows more",
            )
        try:
            read = COMMON.tree.get(type(tree))
            if read is None:
                raise self.unsupported(tree)
            return read(self, tree)
        finally:
            self.depth -= 1

    def constant(self, tree: ast.expr) -> Any:
        """A plain Python value; W114 for anything else."""
        value = self.value(tree)
        if isinstance(value, np.dtype):
            return value
        if not self.known(value, tree):
            raise self.fail("W114", f"expected a constant, got {describe(value)}", tree)
        return value

    def known(self, value: Any, tree: ast.AST) -> bool:
        """Whether a value is Python data that is known while reading; looking at it is charged.

        An array is one value: none of its elements is looked at.
        """
        if type(value) in _SCALARS or isinstance(value, np.ndarray):
            return True
        found = measure(value, self.unit.budget.left)
        self.unit.charge(found.units, tree)
        return found.plain

    def fold_known(self, function: Callable[..., Any], values: tuple[Any, ...], tree: ast.AST) -> Any:
        """A function of Python on values that are known while reading, charged by the sizes of what goes in and out."""
        for value in values:
            if type(value) not in _SCALARS:
                self.unit.charge(measure(value, self.unit.budget.left, deep=True).units, tree)
        made = self.fold(lambda: check_bits(function(*values)), tree)
        if isinstance(made, (str, tuple, list)):
            self.unit.charge(len(made), tree)
        return made

    def fold(self, compute: Callable[[], Any], tree: ast.AST) -> Any:
        """A constant computation whose failures are the script's."""
        try:
            return compute()
        except WeftError as error:
            raise error.at(self.span(tree)) from None
        except (ArithmeticError, TypeError, ValueError, KeyError, IndexError) as error:
            why = f"there is no key {error}" if isinstance(error, KeyError) else error
            raise self.fail("W124", f"the constant cannot be computed: {why}", tree) from None

    def too_many(self, what: str, tree: ast.AST) -> WeftError:
        """The error for a constant over the limit."""
        return too_many(what, self.unit.limits).at(self.span(tree))

    def check_rounds(self, values: Sequence[Any], most: int, tree: ast.AST) -> None:
        """Charge for going through values once; W103 when they are more than a limit."""
        count = _length(values)
        if count > most:
            raise self.fail(
                "W103",
                f"{count} rounds of a static loop, the limit is {most}",
                tree,
                "Limits(unrolled=...) allows more",
            )
        self.unit.charge(count, tree)


def _length(values: Sequence[Any]) -> int:
    """How many elements there are; `len` has no answer for a range of 2**63 and more."""
    if isinstance(values, range):
        return max(0, -((values.start - values.stop) // values.step))
    return len(values)
