"""Conditions of graph functions: bool scalars, and numbers, which are true where they are not 0.

if n: ...            if n != 0: ...
while not x: ...     while not x != 0: ...
if a and b > 0: ...  if a != 0 and b > 0: ...
"""

from __future__ import annotations

import ast
from typing import Any

from weft.dtypes import is_float, is_integer
from weft.ir.deduction.infer import type_text
from weft.ir.graph import Expr
from weft.ir.types import AnyType, PrimType, TensorType, TupleType, is_scalar_type
from weft.script.forms.reading import COMMON
from weft.script.reader.graph.bindings import as_expr, type_of
from weft.script.reader.graph.expressions.operators import combine_value, combine_values
from weft.script.reader.graph.joined import at
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import is_dim

__all__ = ["check_condition", "read_condition", "truth_of", "unary_value"]


class _Truth(ast.expr):
    """Whether a value is true."""

    _fields = ("operand",)

    def __init__(self, operand: ast.expr) -> None:
        super().__init__()
        self.operand = operand
        ast.copy_location(self, operand)


def read_condition(session: GraphSession, tree: ast.expr) -> Any:
    """A condition: what is known while reading as it is, of numbers whether they are not 0."""
    return session.value(_truths(tree))


def _truths(tree: ast.expr) -> ast.expr:
    """A condition in which each operand of `and`, `or` and `not` is one."""
    if isinstance(tree, ast.BoolOp):
        return at(tree, ast.BoolOp(tree.op, [_truths(operand) for operand in tree.values]))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return at(tree, ast.UnaryOp(tree.op, _truths(tree.operand)))
    return tree if isinstance(tree, (ast.Compare, ast.Constant)) else _Truth(tree)


@COMMON.tree(_Truth)
def _truth(session: GraphSession, tree: _Truth) -> Any:
    value = session.value(tree.operand)
    return bool(value) if isinstance(value, (int, float)) else truth_of(session, value, tree.operand)


def truth_of(session: GraphSession, value: Any, tree: ast.AST) -> Any:
    """Whether a number that a run computes is not 0; every other value as it is."""
    if session.known(value, tree) or not (isinstance(value, Expr) or is_dim(value)):
        return value
    ty = type_of(session, as_expr(session, value, tree), tree)
    if not is_scalar_type(ty) or ty.dtype is None or not (is_integer(ty.dtype) or is_float(ty.dtype)):
        return value
    return combine_values(session, "ne", value, 0, tree)


def unary_value(session: GraphSession, kind: str, operand: Any, tree: ast.AST) -> Any:
    """A unary operator on a value of the graph; `not` asks of a number whether it is 0."""
    return combine_value(session, kind, truth_of(session, operand, tree) if kind == "not" else operand, tree)


def check_condition(session: GraphSession, condition: Expr, tree: ast.AST) -> None:
    """W123 for a condition that is no bool scalar."""
    ty = type_of(session, condition, tree)
    right = (
        isinstance(ty, AnyType)
        or (isinstance(ty, PrimType) and ty.dtype == "bool")
        or (isinstance(ty, TensorType) and ty.dtype in ("bool", None) and ty.ndim in (0, -1))
    )
    if right:
        return
    hint = None
    if isinstance(ty, TensorType) and ty.ndim != 0:
        hint = "R.any and R.all give one truth value, R.where(condition, a, b) chooses for each element"
    elif not isinstance(ty, TupleType):
        hint = "compare it, as in `x > 0`"
    raise session.fail("W123", f"a condition is a bool scalar, got {type_text(ty)}", tree, hint)
