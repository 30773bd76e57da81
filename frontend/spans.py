"""The place of a node of a foreign model, given to everything that it becomes, and the calls of an expression."""

from __future__ import annotations

from weft.errors import Span
from weft.ir.graph import Call, Expr, Tuple, TupleGetItem
from weft.ir.node import replace

__all__ = ["calls_in", "placed"]


def placed(expr: Expr, span: Span | None) -> Expr:
    """The expression with the place on every call that has none; what is shared stays shared."""
    return _placed(expr, span, {})


def _placed(expr: Expr, span: Span | None, done: dict[int, Expr]) -> Expr:
    found = done.get(id(expr))
    if found is not None:
        return found
    new = expr
    if isinstance(expr, Call):
        args = tuple(_placed(arg, span, done) for arg in expr.args)
        same = all(a is b for a, b in zip(args, expr.args, strict=True))
        new = replace(expr, args=expr.args if same else args, span=expr.span or span)
    elif isinstance(expr, Tuple):
        new = replace(expr, fields=tuple(_placed(field, span, done) for field in expr.fields))
    elif isinstance(expr, TupleGetItem):
        new = replace(expr, value=_placed(expr.value, span, done))
    done[id(expr)] = new
    return new


def calls_in(root: Expr) -> list[Call]:
    """The calls that an expression consists of, each once."""
    found: dict[int, Call] = {}
    stack = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, Call) and id(current) not in found:
            found[id(current)] = current
            stack.extend(current.args)
        elif isinstance(current, Tuple):
            stack.extend(current.fields)
        elif isinstance(current, TupleGetItem):
            stack.append(current.value)
    return list(found.values())
