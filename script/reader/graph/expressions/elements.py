"""Parts of values of graph functions: attributes, fields, elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from weft.ir.deduction.infer import type_text
from weft.ir.graph import Expr, TupleGetItem
from weft.ir.types import AnyType, ShapeType, TensorType, TupleType
from weft.script.reader.expression.arguments import KnownValue, spread_container
from weft.script.reader.expression.names import slice_of
from weft.script.reader.expression.unrolling import iterable_container
from weft.script.reader.expression.values import attribute_of_object, element_of_container
from weft.script.reader.graph.bindings import as_leaf, fields_of, type_of
from weft.script.reader.graph.expressions.index import index_tensor
from weft.script.reader.graph.expressions.operators import as_operator
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import describe

__all__ = ["attribute_of_value", "element_of_value", "iterable_value", "parts_of", "spread_value"]


def attribute_of_value(session: GraphSession, base: Any, tree: ast.Attribute) -> Any:
    """`x.ty` of a value; `x.shape`, `x.dtype`, `x.ndim` of a tensor whose type says them."""
    if isinstance(base, Expr) and tree.attr in ("ty", "struct_info"):
        return type_of(session, as_leaf(session, base, tree.value), tree)
    if isinstance(base, Expr) and tree.attr in ("shape", "dtype", "ndim"):
        ty = type_of(session, as_leaf(session, base, tree.value), tree)
        if isinstance(ty, TensorType):
            found = {"shape": ty.dims, "dtype": ty.dtype, "ndim": ty.ndim if ty.ndim >= 0 else None}[tree.attr]
            if found is not None:
                return found
            raise session.fail(
                "W114", f"the {tree.attr} of {type_text(ty)} is not known here", tree, "use R.match_cast to name it"
            )
    if isinstance(base, Expr):
        message = f"`.{tree.attr}` of {describe(base)} is not part of the script"
        raise session.fail("W115", message, tree, as_operator(session, tree))
    return attribute_of_object(session, base, tree)


def spread_value(session: GraphSession, value: Any, tree: ast.expr) -> Sequence[Any]:
    """The parts of `*value`: the fields of a tuple of the graph too."""
    ty = type_of(session, value, tree) if isinstance(value, Expr) else None
    if not isinstance(ty, TupleType):
        return spread_container(session, value, tree)
    whole = as_leaf(session, value, tree)
    fields = [TupleGetItem(whole, position, span=session.span(tree)) for position in range(len(ty.fields))]
    return [as_leaf(session, field, tree) for field in fields]


def element_of_value(session: GraphSession, base: Any, tree: ast.Subscript) -> Any:
    """A field of a tuple; of a tensor, an error that says what to write."""
    if not isinstance(base, Expr):
        return element_of_container(session, base, tree)
    value = as_leaf(session, base, tree.value)
    ty = type_of(session, value, tree.value)
    if isinstance(ty, TensorType):
        return index_tensor(session, value, ty, tree)
    if isinstance(ty, ShapeType) and ty.dims is not None:
        index, dims = slice_of(session, tree.slice), ty.dims
        return session.fold(lambda: dims[index], tree)
    if isinstance(ty, TupleType) and isinstance(tree.slice, ast.Slice):
        index = slice_of(session, tree.slice)
        fields = [TupleGetItem(value, position, span=session.span(tree)) for position in range(len(ty.fields))]
        return tuple(as_leaf(session, field, tree) for field in session.fold(lambda: fields[index], tree))
    if not isinstance(ty, (TupleType, AnyType)):
        raise session.fail("W114", f"a {type_text(ty)} has no fields", tree)
    index = session.constant(tree.slice)
    if isinstance(index, bool) or not isinstance(index, int):
        raise session.fail("W114", f"a field is chosen by a constant, got {describe(index)}", tree.slice)
    if isinstance(ty, TupleType):
        count = len(ty.fields)
        if not -count <= index < count:
            raise session.fail("W121", f"field {index} of a tuple of {count}", tree.slice)
        index %= count
    return TupleGetItem(value, index, span=session.span(tree))


def parts_of(session: GraphSession, value: Any, tree: ast.expr) -> Sequence[Any]:
    """The parts of a value to unpack: those of a tuple variable are its fields."""
    if not isinstance(value, Expr):
        if not isinstance(value, (tuple, list, range)):
            raise session.fail("W114", f"cannot unpack {describe(value)}", tree)
        return value
    fields = fields_of(session, value, tree)
    ty = type_of(session, as_leaf(session, value, tree), tree) if fields is None else None
    if isinstance(ty, TensorType) and ty.dims and isinstance(ty.dims[0], int):
        return _rows_of(session, as_leaf(session, value, tree), ty.dims[0], tree)
    if fields is None:
        raise session.fail(
            "W114", f"cannot unpack a {type_text(type_of(session, as_leaf(session, value, tree), tree))}", tree
        )
    return fields


def _rows_of(session: GraphSession, value: Expr, count: int, tree: ast.expr) -> list[Any]:
    """The rows of a tensor of a known number of them."""
    session.check_rounds(range(count), session.unit.limits.parts, tree)
    whole = KnownValue(value, tree)
    places = (ast.copy_location(ast.Constant(place), tree) for place in range(count))
    trees = (ast.copy_location(ast.Subscript(whole, place, ast.Load()), tree) for place in places)
    return [as_leaf(session, session.value(row), tree) for row in trees]


def iterable_value(session: GraphSession, value: Any, tree: ast.expr) -> Sequence[Any]:
    """What a loop can go through: also the fields of a tuple variable."""
    if isinstance(value, Expr):
        value = as_leaf(session, value, tree)
        ty = type_of(session, value, tree)
        if isinstance(ty, TensorType):
            raise session.fail(
                "W115",
                "a tensor cannot be looped over while reading",
                tree,
                "`for part in R.split(x, 4):` loops over parts; `for i in range(4):` over indices",
            )
        return [as_leaf(session, part, tree) for part in parts_of(session, value, tree)]
    return iterable_container(session, value, tree)
