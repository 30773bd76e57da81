"""Reading the statements of graph functions one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from weft.ir.deduction.infer import VOID, type_text
from weft.ir.graph import Expr, VarBinding
from weft.ir.node import FrozenMap
from weft.ir.structure.structural import structural_equal
from weft.ir.types import AnyType
from weft.script.forms.reading import GRAPH
from weft.script.forms.syntax import ALL_FORMS
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.expression.attributes import check_private, joined_attributes
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.graph.bindings import LEAVES, emit_binding, make_var, type_of
from weft.script.reader.graph.expressions.operators import call_operator
from weft.script.reader.graph.joined import Following
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.recovery import attempt
from weft.script.reader.scope import describe

__all__ = ["in_order", "read_statement", "statement_list"]


def read_statement(session: GraphSession, tree: ast.stmt) -> None:
    """Read one statement into the current block."""
    attempt(session, tree, lambda: _statement(session, tree))


def in_order(session: GraphSession, trees: Sequence[ast.stmt]) -> Iterator[tuple[int, ast.stmt]]:
    """The statements of a block with their positions; while one is read, `session.wanted` has what comes after it."""
    outer = session.wanted
    session.wanted = following = Following(trees, outer)
    try:
        for following.position, tree in enumerate(trees):
            yield following.position, tree
    finally:
        session.wanted = outer


def _statement(session: GraphSession, tree: ast.stmt) -> None:
    read = GRAPH.tree.get(type(tree))
    if read is None:
        raise session.unsupported(tree)
    read(session, tree)


def statement_list(session: GraphSession, trees: Sequence[ast.stmt]) -> list[Any]:
    """Read statements into the current block."""
    for _, tree in in_order(session, trees):
        read_statement(session, tree)
    return []


@GRAPH.tree(ast.Pass)
def _pass(session: GraphSession, tree: ast.stmt) -> None:
    return None


@GRAPH.tree(ast.Expr)
def _expression(session: GraphSession, tree: ast.Expr) -> None:
    call = tree.value
    if isinstance(call, ast.Constant) and isinstance(call.value, str):
        return  # a docstring
    if isinstance(call, ast.Call):
        name = dotted_name(session, call.func)
        if name == "R.func_attr":
            values = bind_arguments(session, ALL_FORMS["R.func_attr"], call)
            if not isinstance(values["attrs"], FrozenMap):
                raise session.fail("W114", "R.func_attr takes a dictionary", call)
            check_private(session, values["attrs"], call)
            session.attrs = joined_attributes(session, session.attrs, values["attrs"], "function", call)
            return
        if name == "R.is_impure":
            session.pure = False
            return
        if name == "R.output":
            raise session.fail("W119", "`R.output` belongs at the end of a `with R.dataflow()`", call)
    value = session.value(call)
    if value is None and isinstance(call, ast.Call):
        return  # what happened while reading, such as adding to a list
    if not isinstance(value, Expr) or isinstance(value, LEAVES):
        raise session.fail("W115", f"a statement of {describe(value)} does nothing", tree)
    ty = type_of(session, value, call)
    if ty is not VOID and not structural_equal(ty, VOID) and not isinstance(ty, AnyType):
        raise session.fail("W115", f"the value ({type_text(ty)}) is not used", tree, "bind it to a name: `_ = ...`")
    emit_binding(session, VarBinding(make_var(session, "_", ty, tree), value, span=session.span(tree)))


@GRAPH.tree(ast.Assert)
def _assert(session: GraphSession, tree: ast.Assert) -> None:
    test = session.value(tree.test)
    message = session.constant(tree.msg) if tree.msg is not None else None
    if session.known(test, tree.test):
        if not test:
            said = f": {message}" if message is not None else ""
            raise session.fail("W124", f"the assertion is false while reading{said}", tree)
        return
    if session.pure or session.dataflow_names is not None:
        where = "outside of the dataflow block" if session.dataflow_names is not None else "with pure=False"
        raise session.fail(
            "W115", "an assertion about values is an effect", tree, f"it can stand in an R.function {where}"
        )
    keywords = {"format": str(message)} if message is not None else {}
    call = call_operator(session, "assert_op", [test], keywords, tree)
    emit_binding(
        session, VarBinding(make_var(session, "_", type_of(session, call, tree), tree), call, span=session.span(tree))
    )
