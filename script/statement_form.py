"""Statement forms from outside: one row says how a statement is written, read, shown and documented.

    statement_form("T.pragma(name: text)", doc=..., read=..., node=AttrStmt, show=...)

    read(values, span) -> a statement, several, or a function from the statements that follow it in its block to the
                          statement around them: the form is then also written `with T.pragma("x"):`
    show(node)         -> the values of the form's holes where it says all of a node of the class `node`, else None

The holes of the signature are those of the syntax table (`weft.script.forms.holes`). Text for TVM shows the node as it
is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from weft.errors import Span
from weft.ir.tensor import AttrStmt, Stmt
from weft.script.forms.reading import TENSOR
from weft.script.forms.syntax import ALL_FORMS, CLAUSES, NAMES, SHOWN_AS, Form, ShownAs, add_form
from weft.script.reader.expression.arguments import bind_arguments
from weft.script.reader.tensor.session import TensorSession
from weft.script.reader.tensor.statements import nested_one

__all__ = ["remove_statement_form", "statement_form"]

_ADDED: dict[str, Form] = {}

Read = Callable[[Mapping[str, Any], Span], Any]


def statement_form(
    signature: str,
    *,
    doc: str,
    read: Read,
    node: type[Stmt] | None = None,
    show: Callable[[Any], Mapping[str, Any] | None] | None = None,
) -> Form:
    """Add a statement form of tensor functions, `T.<name>(...)`, as one row.

    Raises: ValueError for a name that the table has, or that is not one of T.

    >>> from weft.ir.tensor import AttrStmt
    >>> row = statement_form(
    ...     "T.region(name: text)", doc="A name for the statements that follow.", node=AttrStmt,
    ...     read=lambda values, span: lambda body: AttrStmt(None, "region", values["name"], body, span=span),
    ...     show=lambda stmt: {"name": stmt.value} if stmt.key == "region" and stmt.node is None else None,
    ... )
    >>> import weft
    >>> f = weft.parse('''
    ... @T.prim_func
    ... def f(x: T.Buffer((4,), "float32")):
    ...     T.region("start")
    ...     x[0] = T.float32(1)
    ... ''')
    >>> print(f.script().split("\\n\\n\\n")[1], end="")
    @T.prim_func
    def f(x: T.Buffer((4,), "float32")):
        with T.region("start"):
            x[0] = T.float32(1.0)
    >>> remove_statement_form(row.name)
    """
    if not signature.startswith("T."):
        raise ValueError(f"{signature}: a statement form is one of T")
    row = add_form(CLAUSES, signature, doc=doc)

    def statement(session: TensorSession, tree: ast.Call) -> Any:
        return read(bind_arguments(session, row, tree), session.span(tree))

    def scope(session: TensorSession, tree: ast.With, call: ast.Call, target: ast.expr | None) -> Stmt | Sequence[Stmt]:
        made = statement(session, call)
        if target is not None or not isinstance(made, FunctionType):
            hint = "it is a statement of its own"
            raise session.fail("W115", f"`with {row.name}(...)` is not part of the script", call, hint)
        return made(nested_one(session, tree.body))

    TENSOR.statement(row.name)(statement)
    TENSOR.scope(row.name)(scope)
    if node is not None and show is not None:
        SHOWN_AS.setdefault(node, []).append(ShownAs(row, show, issubclass(node, AttrStmt)))
    _ADDED[row.name] = row
    return row


def remove_statement_form(name: str) -> None:
    """Take a statement form back; KeyError for a name that `statement_form` did not add."""
    del _ADDED[name]
    for rows in SHOWN_AS.values():
        rows[:] = [row for row in rows if row.form.name != name]
    for table in (TENSOR.statement, TENSOR.scope, CLAUSES, ALL_FORMS):
        del table[name]
    NAMES.remove(name)
