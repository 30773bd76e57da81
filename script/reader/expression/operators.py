"""Reading operators: folded on plain values within limits, symbolic on dimensions, else built by the level."""

from __future__ import annotations

import ast
from typing import Any

from weft.ir.dim import DimExpr
from weft.ir.kernel.prim import never_defined
from weft.ir.node import FrozenMap
from weft.ir.tensor import Binary
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import BINARY_BY_TREE, COMPARE_BY_TREE, UNARY_BY_TREE
from weft.script.reader.folding import binary, contains, unary
from weft.script.reader.scope import is_dim, is_plain
from weft.script.reader.session import Session
from weft.script.source.budget import OPERATION
from weft.script.source.text import MISSING

__all__ = [
    "DIM_KINDS",
    "apply_binary",
    "both_operands",
    "no_operator",
    "no_unary_operator",
    "not_contained",
    "plain_condition",
    "refuse_conditional",
    "takes_dims",
]

_CONTAINERS = (tuple, list, dict, FrozenMap, str, range)
DIM_KINDS = frozenset({"add", "sub", "mul", "floordiv", "floormod", "pow"})


@COMMON.tree(ast.BinOp)
def _binop(session: Session, tree: ast.BinOp) -> Any:
    chain: list[ast.BinOp] = []
    current: ast.expr = tree
    while isinstance(current, ast.BinOp):  # a + b + c + ... is deep on the left; no recursion there
        chain.append(current)
        current = current.left
    result = session.value(current)
    for node in reversed(chain):
        kind = BINARY_BY_TREE.get(type(node.op))
        if kind is None:
            raise session.unsupported(node.op if hasattr(node.op, "lineno") else node)
        result = apply_binary(session, kind, result, session.value(node.right), node)
    return result


@COMMON.tree(ast.BoolOp)
def _boolop(session: Session, tree: ast.BoolOp) -> Any:
    kind = BINARY_BY_TREE[type(tree.op)]
    result = session.value(tree.values[0])
    for operand in tree.values[1:]:
        if session.known(result, operand) and bool(result) == (kind == "or"):
            return result  # as in Python, the rest is not read
        if session.known(result, operand):
            result = apply_binary(session, kind, result, session.value(operand), tree)
        else:
            result = session.level.either(session, kind, result, operand, tree)
    return result


def both_operands(session: Session, kind: str, left: Any, right: ast.expr, tree: ast.AST) -> Any:
    """`and`, `or` of two operands, both of which are computed."""
    return apply_binary(session, kind, left, session.value(right), tree)


@COMMON.tree(ast.Compare)
def _compare(session: Session, tree: ast.Compare) -> Any:
    left = session.value(tree.left)
    result: Any = None
    for op, comparator in zip(tree.ops, tree.comparators, strict=True):
        kind = COMPARE_BY_TREE.get(type(op))
        right = session.value(comparator)
        part = (
            apply_binary(session, kind, left, right, tree)
            if kind is not None
            else _membership(session, op, left, right, tree)
        )
        result = part if result is None else apply_binary(session, "and", result, part, tree)
        left = right
    return result


def _membership(session: Session, op: ast.cmpop, left: Any, right: Any, tree: ast.AST) -> Any:
    """`in` and `is`, where both sides are known while reading; `in` of values too, and of a range, as comparisons."""
    if isinstance(op, (ast.Is, ast.IsNot)) and (left is None or right is None):
        return (left is right) == isinstance(op, ast.Is)
    known = session.known(left, tree) and isinstance(right, _CONTAINERS) and session.known(right, tree)
    if isinstance(op, (ast.In, ast.NotIn)) and known:
        return session.fold_known(contains, (left, right), tree) == isinstance(op, ast.In)
    found = _is_among(session, left, right, tree) if isinstance(op, (ast.In, ast.NotIn)) else MISSING
    if found is not MISSING:
        if isinstance(op, ast.In):
            return found
        return not found if isinstance(found, bool) else session.level.combine_unary(session, "not", found, tree)
    raise session.fail(
        "W115",
        "`in` and `is` work on what is known while reading",
        tree,
        "compare with None, or ask whether a number or string is in a tuple, list or dictionary",
    )


def _is_among(session: Session, item: Any, values: Any, tree: ast.AST) -> Any:
    """Whether a value that a run computes is one of some values, or one of the values is it; MISSING for others."""
    if isinstance(item, (str, tuple, list)):
        return MISSING
    if isinstance(values, range) and values.step > 0:
        inside = apply_binary(session, "ge", item, values.start, tree)
        inside = apply_binary(session, "and", inside, apply_binary(session, "lt", item, values.stop, tree), tree)
        if values.step == 1:
            return inside
        steps = apply_binary(
            session, "floormod", apply_binary(session, "sub", item, values.start, tree), values.step, tree
        )
        return apply_binary(session, "and", inside, apply_binary(session, "eq", steps, 0, tree), tree)
    if isinstance(values, (tuple, list, range)):
        session.check_rounds(range(len(values)), session.unit.limits.unrolled, tree)
        found: Any = False
        for value in values:
            same = apply_binary(session, "eq", item, value, tree)
            found = same if found is False else apply_binary(session, "or", found, same, tree)
        return found
    return session.level.contained(session, item, values, tree)


def not_contained(session: Session, item: Any, values: Any, tree: ast.AST) -> Any:
    """What is no container has no items."""
    return MISSING


@COMMON.tree(ast.UnaryOp)
def _unaryop(session: Session, tree: ast.UnaryOp) -> Any:
    count = 0
    current: ast.expr = tree
    chain: list[ast.UnaryOp] = []
    while isinstance(current, ast.UnaryOp):
        chain.append(current)
        current = current.operand
        count += 1
    result = session.value(current)
    for node in reversed(chain):
        if isinstance(node.op, ast.UAdd):
            continue
        kind = UNARY_BY_TREE[type(node.op)]
        if session.known(result, node):
            result = session.fold_known(unary, (kind, result), node)
        elif isinstance(result, DimExpr) and kind == "neg":
            result = -result
        else:
            result = session.level.combine_unary(session, kind, result, node)
    return result


def apply_binary(session: Session, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
    """A binary operation: folded on plain values, symbolic on dimensions, else built by the level."""
    if session.known(left, tree) and session.known(right, tree):
        if kind in ("and", "or"):
            return (left and right) if kind == "and" else (left or right)
        return session.fold_known(binary, (kind, left, right, session.unit.limits), tree)
    joined = kind == "add" and isinstance(left, (tuple, list)) and type(left) is type(right)
    if joined or (kind == "mul" and isinstance(left, (tuple, list)) and isinstance(right, int)):
        return session.fold_known(binary, (kind, left, right, session.unit.limits), tree)
    session.unit.charge(OPERATION, tree)
    if takes_dims(kind, left, right):
        return session.fold(lambda: binary(kind, left, right, session.unit.limits), tree)
    made = session.level.combine(session, kind, left, right, tree)
    # Passes may make such nodes of code that does not run: those are written as calls (`T.floordiv(x, 0)`).
    wrong = never_defined(kind, made.a, made.b) if isinstance(made, Binary) else None
    if wrong is not None:
        raise session.fail("W124", wrong, tree)
    return made


def takes_dims(kind: str, left: Any, right: Any) -> bool:
    """Whether an operator on two sizes gives a size; the exponent of a power is a number."""
    if not (is_dim(left) and is_dim(right) and kind in DIM_KINDS):
        return False
    return kind != "pow" or (isinstance(right, int) and right >= 0)


def no_operator(session: Session, kind: str, left: Any, right: Any, tree: ast.AST) -> Any:
    """A binary operation on IR values."""
    raise NotImplementedError


def no_unary_operator(session: Session, kind: str, operand: Any, tree: ast.AST) -> Any:
    """A unary operation on IR values."""
    raise NotImplementedError


@COMMON.tree(ast.IfExp)
def _ifexp(session: Session, tree: ast.IfExp) -> Any:
    condition = session.level.condition(session, tree.test)
    if is_plain(condition):
        return session.value(tree.body if condition else tree.orelse)
    return session.level.conditional(session, condition, tree)


def plain_condition(session: Session, tree: ast.expr) -> Any:
    """A condition as it is."""
    return session.value(tree)


def refuse_conditional(session: Session, condition: Any, tree: ast.IfExp) -> Any:
    """`a if c else b` with a condition that is not known while reading."""
    raise session.fail(
        "W115", "a conditional expression needs a condition known while reading", tree, "use R.where or if/else"
    )
