"""Reading types."""

from __future__ import annotations

import ast
from typing import Any

from weft.dtypes import can_hold, is_float, is_integer
from weft.ir.dim import DimExpr
from weft.ir.graph import PrimValue
from weft.ir.tensor import FloatImm, IntImm
from weft.ir.types import FuncType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.reading import COMMON
from weft.script.forms.syntax import ALL_FORMS, TYPES
from weft.script.reader.expression.arguments import argument_trees, bind_arguments
from weft.script.reader.expression.dims import as_dim, is_dtype
from weft.script.reader.scope import describe
from weft.script.reader.session import Session

__all__ = ["as_type", "bare_type", "check_fields", "read_scalar_value", "read_type", "read_types", "type_call"]

_MAX_FIELDS = 100_000


def bare_type(session: Session, name: str, tree: ast.expr) -> Any:
    """A type written without parentheses (`R.Tensor`)."""
    if name == "R.Callable":
        return FuncType(None, ALL_FORMS["R.Any"].build(), False, span=session.span(tree))  # type: ignore[misc]
    form = TYPES.get(name)
    if form is None or name in ("R.Prim", "I.vdevice", "R.DTensor", "R.device_mesh"):
        raise session.fail("W114", f"`{name}` must be called here", tree, f"write `{name}(...)`")
    return form.build(span=session.span(tree))  # type: ignore[misc]


@COMMON.hole("type")
def read_type(session: Session, tree: ast.expr) -> Type:
    """A type; W114 for anything else."""
    value = session.value(tree)
    ty = as_type(session, value, tree)
    if ty is None:
        raise session.fail("W114", f"expected a type, got {describe(value)}", tree, _type_hint(tree))
    return ty


def as_type(session: Session, value: Any, tree: ast.expr) -> Type | None:
    """A value as a type: types, and dtypes that stand for scalars."""
    if isinstance(value, Type):
        return value
    if value is None:
        return TupleType((), session.span(tree))
    if isinstance(value, str) and isinstance(tree, ast.Attribute):
        return PrimType(value, span=session.span(tree))
    if isinstance(value, (tuple, list)) and value and all(isinstance(item, Type) for item in value):
        return TupleType(tuple(value), session.span(tree))
    return None


@COMMON.hole("types")
def read_types(session: Session, tree: ast.expr) -> tuple[Type, ...]:
    """One type or a list of them."""
    if isinstance(tree, (ast.List, ast.Tuple)):
        return tuple(read_type(session, item) for item in tree.elts)
    return (read_type(session, tree),)


def type_call(session: Session, name: str, tree: ast.Call) -> Any:
    """A type written as a call."""
    read = COMMON.type.get(name)
    if read is not None:
        return read(session, tree)
    values = bind_arguments(session, TYPES[name], tree)
    return TYPES[name].build(**values, span=session.span(tree))  # type: ignore[misc]


@COMMON.type("R.Tensor")
def _tensor_type(session: Session, tree: ast.Call) -> TensorType:
    form = TYPES["R.Tensor"]
    if len(tree.args) == 3 and not any(k.arg == "vdevice" for k in tree.keywords):
        device = ast.copy_location(ast.keyword("vdevice", tree.args[2]), tree.args[2])
        tree = ast.copy_location(ast.Call(tree.func, tree.args[:2], [*tree.keywords, device]), tree)
    if len(tree.args) == 1 and is_dtype(session, tree.args[0]) and not any(k.arg == "dtype" for k in tree.keywords):
        tree = ast.Call(tree.func, [ast.copy_location(ast.Constant(None), tree.args[0]), tree.args[0]], tree.keywords)
        ast.copy_location(tree, tree.func)
    values = bind_arguments(session, form, tree)
    if isinstance(values["shape"], tuple) and values["ndim"] not in (-1, len(values["shape"])):
        raise session.fail("W121", f"ndim={values['ndim']} contradicts the shape of rank {len(values['shape'])}", tree)
    return TensorType(**values, span=session.span(tree))


@COMMON.type("R.Shape")
def _shape_type(session: Session, tree: ast.Call) -> ShapeType:
    values = bind_arguments(session, TYPES["R.Shape"], tree)
    dims = values["dims"]
    if dims is not None and values["ndim"] not in (-1, len(dims)):
        raise session.fail("W121", f"ndim={values['ndim']} contradicts a shape of {len(dims)} sizes", tree)
    return session.fold(lambda: ShapeType(**values, span=session.span(tree)), tree)


@COMMON.type("R.Tuple")
def _tuple_type(session: Session, tree: ast.Call) -> TupleType:
    if len(tree.args) == 1 and isinstance(tree.args[0], (ast.List, ast.Tuple)):
        return TupleType(read_types(session, tree.args[0]), session.span(tree))
    fields: list[Type] = []
    for argument in argument_trees(session, tree):
        fields.append(read_type(session, argument))
    check_fields(session, fields, tree)
    if tree.keywords:
        raise session.fail("W113", f"R.Tuple has no argument '{tree.keywords[0].arg}'", tree.keywords[0])
    return TupleType(tuple(fields), session.span(tree))


def check_fields(session: Session, fields: list[Type], tree: ast.AST) -> None:
    """A type may hold another one many times: that must not explode."""
    stack: list[Type] = list(fields)
    count = 0
    while stack:
        current = stack.pop()
        count += 1
        if count > _MAX_FIELDS:
            raise session.fail("W103", f"a tuple type of more than {_MAX_FIELDS} parts", tree)
        if isinstance(current, TupleType):
            stack.extend(current.fields)


@COMMON.type("R.Callable")
def _func_type(session: Session, tree: ast.Call) -> FuncType:
    known, before = set(session.symbols), session.defining
    if session.scopes_function_types:
        session.defining = True
    try:
        values = bind_arguments(session, TYPES["R.Callable"], tree)
    finally:
        session.defining = before
        if session.scopes_function_types:
            session.symbols &= known
    opaque = values["params"] is None
    ret = values["ret"] if values["ret"] is not None else ALL_FORMS["R.Any"].build()  # type: ignore[misc]
    pure = values["pure"] if values["pure"] is not None else not opaque
    return FuncType(values["params"], ret, pure, values["derive"], span=session.span(tree))


@COMMON.type("R.Prim")
def _prim_type(session: Session, tree: ast.Call) -> PrimType:
    """`R.Prim("int64")`, `R.Prim(value="n")`: a scalar, or the one that has a value."""
    if not tree.args and not tree.keywords:
        raise session.fail("W113", "R.Prim takes a dtype or a value", tree, 'R.Prim("int64")')
    values = bind_arguments(session, TYPES["R.Prim"], tree)
    if values["value"] is None:
        return PrimType(values["dtype"], span=session.span(tree))
    natural, value = values["value"]
    dtype = values["dtype"] or natural
    if dtype != natural:
        integral = type(value) is int and is_integer(dtype) and can_hold(dtype, value)
        if not integral and not (type(value) is float and is_float(dtype)):
            raise session.fail("W123", f"the value is {natural}, not {dtype}", tree)
    return PrimType(dtype, value, session.span(tree))


@COMMON.hole("scalar_value")
def read_scalar_value(session: Session, tree: ast.expr) -> tuple[str, Any] | None:
    """The value of a scalar type with its dtype: a dimension, or a constant; None for none."""
    value = session.value(tree)
    if value is None:
        return None
    if isinstance(value, (bool, float)):
        return ("bool" if isinstance(value, bool) else "float32"), value
    if isinstance(value, (FloatImm, IntImm, PrimValue)) and not isinstance(value.value, DimExpr):
        number = bool(value.value) if value.dtype == "bool" else value.value
        return value.dtype, number if value.dtype != "int64" else as_dim(session, number, tree)
    return "int64", as_dim(session, value, tree)


def _type_hint(tree: ast.expr) -> str | None:
    if isinstance(tree, (ast.Attribute, ast.Call)):
        written = ast.unparse(tree.func if isinstance(tree, ast.Call) else tree)
        meant = next((name for name in TYPES if name.lower() == written.lower() and name != written), None)
        return f"did you mean `{meant}`?" if meant else None
    if not isinstance(tree, ast.Constant) or not isinstance(tree.value, str):
        return None
    if tree.value.partition(".")[0] in ("R", "T", "I"):
        return "write the type without quotes"
    return f"did you mean `R.Prim({ast.unparse(tree)[:60]})`?"
