"""Parts of values of graph functions: attributes, fields, elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import WeftError
from weft.ir.deduction.infer import type_text
from weft.ir.dim import DimExpr
from weft.ir.graph import Constant, Expr, TupleGetItem
from weft.ir.types import AnyType, ShapeType, TensorType, TupleType
from weft.script.reader.expression.arguments import KnownValue, spread_container
from weft.script.reader.expression.names import slice_of
from weft.script.reader.expression.unrolling import iterable_container
from weft.script.reader.expression.values import attribute_of_object, element_of_container
from weft.script.reader.graph.bindings import as_leaf, fields_of, type_of
from weft.script.reader.graph.expressions.index import element_of, index_tensor
from weft.script.reader.graph.expressions.operators import as_operator
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import describe

__all__ = ["attribute_of_value", "element_of_value", "iterable_value", "parts_of", "run_time_field", "spread_value"]


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
        return _element_of_list(session, base, tree)
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
    index = session.value(tree.slice)
    if isinstance(ty, TupleType) and isinstance(index, (Expr, DimExpr)):
        raise run_time_field(session, ty, tree)
    if isinstance(index, bool) or not isinstance(index, int):
        raise session.fail("W114", f"a field is chosen by a constant, got {describe(index)}", tree.slice)
    if isinstance(ty, TupleType):
        count = len(ty.fields)
        if not -count <= index < count:
            raise session.fail("W121", f"field {index} of a tuple of {count}", tree.slice)
        index %= count
    return TupleGetItem(value, index, span=session.span(tree))


def _element_of_list(session: GraphSession, base: Any, tree: ast.Subscript) -> Any:
    """An element of a container; of a list of numbers a run may say which."""
    if not isinstance(base, (tuple, list)) or isinstance(tree.slice, ast.Slice):
        return element_of_container(session, base, tree)
    index = session.value(tree.slice)
    if session.known(index, tree.slice):
        settled = ast.copy_location(ast.Subscript(tree.value, KnownValue(index, tree.slice), ast.Load()), tree)
        return element_of_container(session, base, settled)
    table = _as_table(base)
    if table is None or not isinstance(index, (Expr, DimExpr)):
        message = "a run says which element of a list this is, and not all are numbers"
        raise session.fail("W115", message, tree, f"write `R.stack({ast.unparse(tree.value)[:30]})[...]`")
    whole = Constant(table, span=session.span(tree))
    ty = type_of(session, whole, tree)
    assert isinstance(ty, TensorType)
    made = as_leaf(session, element_of(session, whole, ty, [(index, tree.slice)], tree), tree)
    if table.ndim == 1:
        session.weak.add(made)
    return made


def _as_table(values: Sequence[Any]) -> np.ndarray[Any, Any] | None:
    """Numbers of Python, also in lists of one length, as an array; None for anything else."""
    if not all(isinstance(value, (int, float, tuple, list)) and not isinstance(value, bool) for value in values):
        return None
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        return None
    wide = {"i": "int64", "f": "float64"}.get(found.dtype.kind)
    return found.astype(wide) if wide is not None and found.size else None


def run_time_field(session: GraphSession, ty: TupleType, tree: ast.Subscript) -> WeftError:
    """The error for a part of a list or tuple that a run chooses: a tensor has such elements."""
    count, name = len(ty.fields), ast.unparse(tree.value)[:30]
    dtypes = {part.dtype for part in ty.fields if isinstance(part, TensorType) and part.ndim == 0}
    hint = "R.stack makes a tensor of tensors of one shape, and a run may choose an element of it"
    if len(dtypes) == 1 and None not in dtypes:
        hint = f'a tensor has such elements: begin with `{name} = R.zeros(({count},), "{dtypes.pop()}")`'
    message = f"which of the {count} elements of the list `{name}` this is, only a run says"
    return session.fail("W114", message, tree, hint)


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
