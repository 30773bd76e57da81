"""Reading dimensions and shapes, and the symbols that strings in them name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from weft.dtypes import check_dtype
from weft.errors import ShapeError, WeftError
from weft.ir.dim import Dim, DimExpr, parse_dim, symbol
from weft.ir.graph import Var
from weft.ir.tensor import IntImm
from weft.ir.types import PrimType
from weft.script.forms.reading import COMMON
from weft.script.reader.expression.names import dotted_name, dtype_name
from weft.script.reader.folding import rounded
from weft.script.reader.scope import describe, is_dim
from weft.script.reader.session import Session
from weft.script.source.diagnostics import did_you_mean
from weft.support.stack import with_stack

__all__ = [
    "BUILTINS",
    "as_dim",
    "dim_of_text",
    "is_dtype",
    "not_a_size",
    "read_dim",
    "read_dims",
    "read_shape",
    "size_of",
    "tree_of_text",
    "use_symbol_name",
]

BUILTINS: dict[str, Callable[..., Any]] = {
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "len": len,
    "abs": abs,
    "min": min,
    "max": max,
    "ceildiv": lambda a, b: -(-a // b),
    "round": rounded,
}


@COMMON.hole("shape")
def read_shape(session: Session, tree: ast.expr) -> Any:
    """A shape in a type: dimensions or a variable of shape type."""
    return read_dims(session, tree)


@COMMON.hole("dims")
def read_dims(session: Session, tree: ast.expr) -> tuple[Dim, ...]:
    """A tuple or list of dimensions."""
    if isinstance(tree, (ast.Tuple, ast.List)) and not any(isinstance(item, ast.Starred) for item in tree.elts):
        return tuple(read_dim(session, item) for item in tree.elts)
    value = session.value(tree)
    if is_dim(value):
        raise session.fail("W114", f"expected a shape, got {describe(value)}", tree, f"write `({ast.unparse(tree)},)`")
    if not isinstance(value, (tuple, list)):
        hint = "the shape comes first, then the dtype" if isinstance(value, str) else None
        raise session.fail("W114", f"expected a shape, got {describe(value)}", tree, hint)
    return tuple(as_dim(session, item, tree) for item in value)


@COMMON.hole("dim")
def read_dim(session: Session, tree: ast.expr) -> Dim:
    """One dimension."""
    return as_dim(session, session.value(tree), tree)


def as_dim(session: Session, value: Any, tree: ast.expr) -> Dim:
    """A value as a dimension; strings are expressions over symbols."""
    if isinstance(value, str):
        return session.level.dim_text(session, value, tree)
    if isinstance(value, IntImm) and value.dtype != "bool":
        value = value.value
    value = size_of(session, value, value)
    if isinstance(value, (int, DimExpr)) and not isinstance(value, bool):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise session.fail("W103", f"the dimension {value} does not fit in 64 bits", tree)
        if isinstance(value, int) and value < 0 and session.negative_dims is False:
            raise session.fail("W114", f"a dimension cannot be negative, got {value}", tree)
        return value
    hint = 'a size that only the run can tell is a symbol, as "n"' if value is None else None
    raise session.fail("W114", f"expected a dimension, got {describe(value)}", tree, hint)


def size_of(session: Session, value: Any, default: Any = None) -> Any:
    """The dimension that a value is: a number, an expression over symbols, a scalar that is known to be one."""
    if is_dim(value):
        return value
    if isinstance(value, Var):
        known = session.sizes.get(value)
        if known is not None:
            return known
        if isinstance(value.ty, PrimType) and value.ty.dims is not None:
            return value.ty.dims[0]
    return default


def dim_of_text(session: Session, text: str, tree: ast.expr) -> Dim:
    """A dimension written as a string; in a signature it may define symbols."""
    if text.isidentifier():
        session.level.use_symbol(session, text, tree)
        return session.fold(lambda: symbol(text), tree)
    inner = tree_of_text(session, text, tree)
    for name in {node.id for node in ast.walk(inner) if isinstance(node, ast.Name)} - BUILTINS.keys():
        if session.unit.namespace(name) is None or name in session.symbols:
            session.level.use_symbol(session, name, tree)
    value = session.value(inner)
    if not is_dim(value):
        raise session.fail("W114", f"expected a dimension, got {describe(value)}", tree)
    return value


def tree_of_text(session: Session, text: str, tree: ast.expr) -> ast.expr:
    """The expression that a string holds, with the place of the string."""
    try:
        inner = with_stack(lambda: ast.parse(text.strip(), mode="eval")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise not_a_size(session, text, tree) from None
    for node in ast.walk(inner):
        if isinstance(node, ast.Div):
            raise not_a_size(session, text, tree)
        ast.copy_location(node, tree)
    return inner


def not_a_size(session: Session, text: str, tree: ast.expr) -> WeftError:
    """The error for a string that does not read as a size, with what the grammar of sizes says of it."""
    try:
        parse_dim(text)
    except ShapeError as error:
        return session.fail(error.code, f"{text!r} is not a size: {error.message}", tree, error.hint)
    return session.fail("W101", f"{text!r} is not an expression", tree)


def use_symbol_name(session: Session, name: str, tree: ast.expr) -> None:
    """A symbol named by a string: defined here in a signature, else it must be known."""
    if name in session.symbols:
        return
    if session.defining or name in session.unit.symbols:
        session.symbols.add(name)
        return
    hint = did_you_mean(name, session.symbols) or "symbols come from the signature or from R.match_cast"
    raise session.fail("W117", f"undefined symbol '{name}'", tree, hint)


def is_dtype(session: Session, tree: ast.expr) -> bool:
    """Whether an expression is written as a dtype."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        try:
            check_dtype(tree.value)
        except WeftError:
            return False
        return True
    return isinstance(tree, ast.Attribute) and dtype_name(dotted_name(session, tree) or "") is not None
