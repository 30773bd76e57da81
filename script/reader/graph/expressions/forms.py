"""Reading the leaves of graph functions that have forms of their own."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from weft.ir.dim import DimExpr
from weft.ir.graph import Call, Constant, DataTypeImm, Expr, Op, PrimValue, ShapeExpr
from weft.ir.node import EMPTY, FrozenMap, replace
from weft.ir.tensor import PrimExpr
from weft.ir.types import PrimType, TensorType
from weft.script.forms.constants import constant_value
from weft.script.forms.reading import GRAPH
from weft.script.forms.syntax import ALL_FORMS, VALUES
from weft.script.reader.expression.arguments import OLD_KEYWORDS, KnownValue, bind_arguments
from weft.script.reader.expression.attributes import joined_attributes, read_literal
from weft.script.reader.expression.names import dotted_name
from weft.script.reader.graph.bindings import as_expr, as_leaf, bind_value, fresh_target, type_of
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import describe

__all__ = ["scalar_value"]


def scalar_value(session: GraphSession, value: Any, dtype: str, tree: ast.AST) -> PrimValue:
    """A number as a scalar of a dtype."""
    if dtype == "bool":
        value = bool(value)
    elif dtype.startswith(("float", "bfloat")) and not isinstance(value, DimExpr):
        value = float(value)
    elif isinstance(value, float):
        raise session.fail("W114", f"{value!r} is not a value of {dtype}", tree)
    return PrimValue(value, dtype, span=session.span(tree))


@GRAPH.value("R.const")
def _const(session: GraphSession, tree: ast.Call) -> Constant:
    values = bind_arguments(session, VALUES["R.const"], tree)
    data = session.value(values["data"])
    if isinstance(data, DimExpr):
        hint = f'a size is a scalar of the graph already: write `{data}`, or `R.astype({data}, "float32")`'
        raise session.fail("W114", f"expected a constant, got {describe(data)}", values["data"], hint)
    data = session.constant(KnownValue(data, values["data"]))
    dtype = values["dtype"]
    if dtype is None and isinstance(data, np.dtype):
        raise session.fail("W114", "expected a number or array", tree)
    if isinstance(data, np.ndarray) and not data.dtype.hasobject:
        data = session.unit.kept_array(data)
    return constant_value(data, dtype, values["shape"], values["bits"], session.span(tree), session.unit.blobs)


@GRAPH.value("R.shape")
def _shape(session: GraphSession, tree: ast.Call) -> ShapeExpr:
    dims = bind_arguments(session, VALUES["R.shape"], tree)["dims"]
    trees = tree.args[0].elts if tree.args and isinstance(tree.args[0], (ast.List, ast.Tuple)) else []
    computed = len(trees) == len(dims) and any(isinstance(item, ast.BinOp) for item in trees)
    return ShapeExpr(dims, span=session.span(tree), written=tuple(map(ast.unparse, trees)) if computed else ())


@GRAPH.value("R.prim_value")
def _prim_value(session: GraphSession, tree: ast.Call) -> Expr:
    """A number or a size as a scalar; a scalar, also one that is computed of sizes, is one already."""
    values = bind_arguments(session, VALUES["R.prim_value"], tree)
    value = session.value(values["value"])
    if isinstance(value, str):
        value = session.level.dim_text(session, value, values["value"])
    if isinstance(value, PrimValue):
        return replace(value, span=session.span(tree))
    if isinstance(value, Expr) and not isinstance(value, PrimExpr):
        ty = type_of(session, value, values["value"])
        if isinstance(ty, PrimType) and ty.dims is not None and values["dtype"] is None:
            return PrimValue(ty.dims[0], span=session.span(tree))  # a scalar that is a size stands for the size
        if isinstance(ty, PrimType) or (isinstance(value, Call) and isinstance(ty, TensorType) and ty.ndim == 0):
            return as_leaf(session, value, values["value"])
    if not isinstance(value, (bool, int, float, DimExpr)):
        raise session.fail("W114", f"expected a number or dimension, got {describe(value)}", values["value"])
    if values["dtype"] is not None:
        return scalar_value(session, value, values["dtype"], tree)
    return PrimValue(value, span=session.span(tree))


@GRAPH.value("R.dtype")
def _dtype_value(session: GraphSession, tree: ast.Call) -> DataTypeImm:
    """`R.dtype("float32")`; the empty text is how TVM prints void."""
    if len(tree.args) == 1 and isinstance(tree.args[0], ast.Constant) and tree.args[0].value == "":
        return DataTypeImm("void", span=session.span(tree))
    return _plain_form(session, tree)


@GRAPH.value("R.str", "R.ExternFunc", "R.tuple")
def _plain_form(session: GraphSession, tree: ast.Call) -> Any:
    form = ALL_FORMS[dotted_name(session, tree.func) or ""]
    return form.build(**bind_arguments(session, form, tree), span=session.span(tree))  # type: ignore[misc]


@GRAPH.value("R.call_packed")
def _call_packed(session: GraphSession, tree: ast.Call) -> Call:
    """A call of a packed function; keywords that the form does not have are attributes of the call."""
    form = VALUES["R.call_packed"]
    known = {hole.name for hole in form.holes} | {*(form.old_names or {}), *OLD_KEYWORDS}
    extra = [keyword for keyword in tree.keywords if keyword.arg is not None and keyword.arg not in known]
    rest = [keyword for keyword in tree.keywords if keyword not in extra]
    values = bind_arguments(session, form, ast.copy_location(ast.Call(tree.func, tree.args, rest), tree))
    said = FrozenMap({keyword.arg: read_literal(session, keyword.value) for keyword in extra})  # type: ignore[misc]
    attrs = joined_attributes(session, values["attrs"] or EMPTY, said, "call", tree)
    return Call(values["func"], values["args"], attrs, values["ty_args"], span=session.span(tree))


@GRAPH.value("R.TupleGetItem")
def _tuple_get_item(session: GraphSession, tree: ast.Call) -> Any:
    """`R.TupleGetItem(t, 0)`: the field `t[0]`."""
    values = bind_arguments(session, VALUES["R.TupleGetItem"], tree)
    index = ast.copy_location(ast.Constant(values["index"]), tree)
    element = ast.Subscript(KnownValue(values["tuple_value"], tree), index, ast.Load())  # type: ignore[arg-type]
    return session.level.subscript_of(session, values["tuple_value"], ast.copy_location(element, tree))


@GRAPH.value("R.emit")
def _emit(session: GraphSession, tree: ast.Call) -> Expr:
    """`R.emit(value)`: the value, bound to a variable, of a type that it is checked to have."""
    values = bind_arguments(session, VALUES["R.emit"], tree)
    value = as_expr(session, session.value(values["value"]), tree)
    return bind_value(session, fresh_target(session, tree), value, values["annotate_ty"], tree)


@GRAPH.value("R.call_op")
def _call_op(session: GraphSession, tree: ast.Call) -> Call:
    values = bind_arguments(session, VALUES["R.call_op"], tree)
    op = Op(values["name"], span=session.span(tree))
    return Call(op, values["args"], values["attrs"] or EMPTY, values["ty_args"], span=session.span(tree))
