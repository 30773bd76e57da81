"""Macros: pieces of script that are read again in every place that calls them.

    @T.macro, @T.macro(hygienic=False), @T.inline      statements of a tensor-level function
    @R.macro, @R.macro(hygienic=False)                 statements and a result of a graph function
    lambda a, b: ...                                   an expression, at either level

A hygienic macro looks up its free names where it is defined; one that is not looks where it is called first. Names that
a macro binds end with it. `T.inline` follows Python's rules for nested functions: it is hygienic.
"""

from __future__ import annotations

import ast
import copy
from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from weft.errors import WeftError
from weft.script.reader.scope import Scope
from weft.script.source.diagnostics import fail
from weft.script.source.text import Unit
from weft.support.records import dataclass

__all__ = ["MACRO_OPTIONS", "Macro"]

MACRO_OPTIONS: dict[str, dict[str, Any]] = {
    "T.macro": {"hygienic": True},
    "T.inline": {},
    "R.macro": {"hygienic": True},
}


@dataclass(frozen=True, slots=True, eq=False)
class Macro:
    """A macro: its parameters and body as syntax trees, the text they stand in, and where it was defined.

    `level` is "T", "R", or "" for a lambda; `receiver` holds the object of a method.
    """

    name: str
    arguments: ast.arguments
    body: Sequence[ast.stmt] | ast.expr
    unit: Unit
    level: str = ""
    hygienic: bool = True
    scope: Scope | None = None
    receiver: tuple[Any, ...] = ()

    def __get__(self, instance: Any, owner: type | None = None) -> Macro:
        return self if instance is None else replace(self, receiver=(instance,))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """ScriptError W115: a macro has no meaning outside a script."""
        raise self.misplaced()

    def __repr__(self) -> str:
        return "a lambda" if not self.level else f"the macro '{self.name}'"

    @property
    def described_as(self) -> str:
        """What messages call it."""
        return repr(self)

    @property
    def text(self) -> str:
        """A lambda as text."""
        assert isinstance(self.body, ast.expr)
        return ast.unparse(ast.Lambda(self.arguments, self.body))

    def misplaced(self) -> WeftError:
        """The error for a macro that is called where it cannot be read."""
        where = {"T": "a T.prim_func", "R": "an R.function"}.get(self.level, "a script")
        return fail("W115", f"the macro '{self.name}' is expanded inside {where}; Python cannot call it")

    def unit_for(self, caller: Unit) -> Unit:
        """The text of the macro, read on the account of its caller."""
        if self.unit is caller:
            return caller
        made = copy.copy(self.unit)
        made.limits, made.budget = caller.limits, caller.budget
        if not self.hygienic and caller.captured is not None:
            made.captured = ChainMap(*_maps(caller.captured), *_maps(self.unit.captured))  # type: ignore[arg-type]
        return made


def _maps(captured: Any) -> tuple[Any, ...]:
    return () if captured is None else (captured,)
