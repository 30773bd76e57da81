"""Which scalars a function uses as sizes: those are symbols, `n: T.int64` like the `n` of a shape.

A name is used as a size where it stands in a shape, in an argument of an operator that takes dimensions, in a scalar
that is written out (`R.prim_value(n + 1)`), or in an expression that is bound to a name which is used as a size. Found
before a function is read: its signature says what parameters are, and the body how they are used.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from weft.ir.op import OPS
from weft.ir.op.declare import Param, ParamKind, ValueKind
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.session import Session

__all__ = ["sizes_used", "takes_sizes"]

_SHAPES = ("R.Tensor", "R.DTensor", "R.Shape", "R.shape", "R.ShapeExpr", "R.Prim", "R.prim_value")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def sizes_used(session: Session, function: ast.FunctionDef) -> set[str]:
    """The names that a function uses as sizes."""
    found: set[str] = set()
    made: dict[str, set[str]] = {}
    for tree in ast.walk(function):
        if isinstance(tree, ast.Call):
            for part in _sizes_of(session, tree):
                found |= _names(part)
        elif isinstance(tree, ast.Assign) and len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Name):
            made.setdefault(tree.targets[0].id, set()).update(_terms(tree.value))
        elif isinstance(tree, ast.AnnAssign) and isinstance(tree.target, ast.Name) and tree.value is not None:
            made.setdefault(tree.target.id, set()).update(_terms(tree.value))
            if dotted_name(session, tree.annotation) == "T.int64":
                found |= _terms(tree.value)
    ready = list(found)
    while ready:
        new = made.get(ready.pop(), set()) - found
        found |= new
        ready.extend(new)
    return found


def _sizes_of(session: Session, tree: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call that hold sizes."""
    name = dotted_name(session, tree.func) or ""
    if name in _SHAPES:
        yield from tree.args[:1]
        yield from (keyword.value for keyword in tree.keywords if keyword.arg in ("shape", "values", "value", "dims"))
    definition = OPS.get(name.removeprefix("R.")) if name.startswith("R.") else None
    if definition is None:
        return
    for position, param in enumerate(definition.params):
        if takes_sizes(param):
            yield from tree.args[position : position + 1]
            yield from (keyword.value for keyword in tree.keywords if keyword.arg == param.name)


def takes_sizes(param: Param) -> bool:
    """Whether a parameter of an operator takes sizes."""
    return param.kind == ParamKind.SHAPE or param.of in (ValueKind.DIM, ValueKind.DIMS, ValueKind.SECTIONS)


def _names(tree: ast.expr) -> set[str]:
    """Names in a shape, also of symbols in strings."""
    texts = [part.value for part in ast.walk(tree) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    quoted = {name for text in texts for name in _IDENTIFIER.findall(text)}
    return quoted | {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}


def _terms(tree: ast.expr) -> set[str]:
    """The names in arithmetic."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    if isinstance(tree, ast.BinOp):
        return _terms(tree.left) | _terms(tree.right)
    if isinstance(tree, ast.UnaryOp):
        return _terms(tree.operand)
    if isinstance(tree, ast.Call):
        return {name for argument in tree.args for name in _terms(argument)}
    return set()
