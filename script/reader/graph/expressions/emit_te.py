"""Reading `R.emit_te(f, x, ...)`: a Python function over te tensors is called while reading and becomes a kernel.

    R.emit_te(f, x, ..., primfunc_name_hint="name", primfunc_attrs={...}, option=...)
    f ::= a Python function of the program that the script stands in | lambda

The kernel joins the module as a private function (one for equal kernels) that `R.call_tir` calls; symbols that no
tensor argument binds are passed as `tir_vars`. Only a decorator reads this: a text is never run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

from weft.ir.dim import symbol
from weft.ir.graph import Call, Expr, GlobalVar
from weft.ir.node import Node, replace
from weft.ir.te.emit_te import call_formula
from weft.ir.tensor import PrimFunc
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.arguments import static_arguments
from weft.script.reader.expression.static import run_python, static_path
from weft.script.reader.graph.bindings import as_leaf, type_of
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.macros import Macro
from weft.script.reader.scope import Scope, describe, is_dim, is_plain
from weft.script.source.text import MISSING, Unit
from weft.support.stack import with_stack

__all__ = ["read_emit_te"]


@GRAPH.value("R.emit_te")
def read_emit_te(session: GraphSession, tree: ast.Call) -> Call:
    """The call of the kernel that a formula computes, which joins the module.

    Errors: W113 (no function), W114 (what is no Python function), W115 (in a text), W153 (the function raised), and
    those of the formula, at the call.
    """
    if session.unit.captured is None:
        raise session.level.unknown(session, "R.emit_te", tree.func)
    if not tree.args or isinstance(tree.args[0], ast.Starred):
        hint = "R.emit_te(function, x, ...)"
        raise session.fail("W113", "R.emit_te takes the function that computes the kernel first", tree, hint)
    formula = _python_function(session, tree.args[0])
    rest = ast.copy_location(ast.Call(tree.func, tree.args[1:], tree.keywords), tree)
    args, options = static_arguments(session, rest)
    place = session.span(tree)

    def add(kernel: PrimFunc, name: str) -> GlobalVar:
        return GlobalVar(session.module.adopt(replace(kernel, name=name, span=place), place), place)

    def call() -> Call:
        return call_formula(
            formula,
            args,
            options,
            leaf=lambda value: as_leaf(session, value, tree),
            infer=lambda value: type_of(session, value, tree),
            add=add,
        )

    made = run_python(session, call, ast.unparse(tree.args[0])[:60], tree)
    return replace(made, span=place)


def _python_function(session: GraphSession, tree: ast.expr) -> Callable[..., Any]:
    """The function that an argument names, or the lambda that it is."""
    if isinstance(tree, ast.Lambda):
        return _evaluated(session, tree, session.unit, session.scope)
    found = static_path(session, tree)
    if isinstance(found, Macro) and isinstance(found.body, ast.expr):
        lambda_tree = ast.copy_location(ast.Lambda(found.arguments, found.body), found.body)
        return _evaluated(session, lambda_tree, found.unit, found.scope)
    if found is MISSING and isinstance(tree, ast.Name):
        session.level.lookup(session, tree.id, tree)
    if found is MISSING or isinstance(found, (Node, Macro)) or not callable(found):
        said = f"`{ast.unparse(tree)[:60]}`" if found is MISSING else describe(found)
        hint = "a function that takes te tensors and returns one, or a tuple of them"
        raise session.fail("W114", f"R.emit_te takes a Python function, got {said}", tree, hint)
    return found


def _evaluated(session: GraphSession, tree: ast.Lambda, unit: Unit, scope: Scope | None) -> Callable[..., Any]:
    """A lambda of a decorated script as the function that Python makes of it."""
    if unit.captured is None:
        raise session.level.unknown(session, "R.emit_te", tree)
    names: dict[str, Any] = {}
    own = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
            value = _outer_value(session, node.id, unit, scope)
            if isinstance(value, Expr):
                raise session.fail(
                    "W114",
                    f"'{node.id}' is a graph value, which a formula takes as an argument",
                    tree,
                    "R.emit_te(lambda a: ..., x)",
                )
            if value is not MISSING:
                names[node.id] = value
    code = with_stack(lambda: compile(ast.Expression(tree), unit.source.name, "eval"))
    # The text is that of the program, which runs around the script: a decorator may call what Python makes of it.
    return eval(code, {"__builtins__": builtins, **names})


def _outer_value(session: GraphSession, name: str, unit: Unit, scope: Scope | None) -> Any:
    """What a name of a lambda stands for outside of it, or MISSING."""
    if scope is not None:
        found = scope.get(name)
        if isinstance(found, Expr) or is_plain(found) or is_dim(found) or isinstance(found, Mapping):
            return found
    if name in session.symbols:
        return symbol(name)
    return unit.capture(name)
