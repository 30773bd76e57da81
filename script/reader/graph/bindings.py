"""Binding values of a graph function: leaves, variables with their types, claims."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.errors import ShapeError, WeftError
from weft.ir.deduction.device_mesh import is_spread
from weft.ir.deduction.infer import check_claim, exact_type, infer_type, type_text
from weft.ir.deduction.subtyping import dims_of, substitute_type, type_symbols
from weft.ir.dim import DimExpr, prove_equal
from weft.ir.graph import (
    Constant,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    Op,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.ir.op import get_op, likely_operators
from weft.ir.tensor import FloatImm, IntImm, PrimExpr, PrimFunc
from weft.ir.types import AnyType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script.forms.constants import constant_value
from weft.script.forms.reading import GRAPH
from weft.script.reader.expression.dims import read_dims
from weft.script.reader.expression.names import undefined_name
from weft.script.reader.expression.types import check_fields
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.graph.sharing import note_same_memory
from weft.script.reader.macros import Macro
from weft.script.reader.scope import describe, is_dim

__all__ = [
    "LEAVES",
    "WHOLE",
    "as_expr",
    "as_leaf",
    "bind_checked",
    "bind_value",
    "dims_within",
    "emit_binding",
    "fields_of",
    "fresh_target",
    "in_dtype",
    "is_weak",
    "make_var",
    "note_assumed",
    "note_weak",
    "number_dtype",
    "prim_leaf",
    "read_callee",
    "read_leaf",
    "read_shape_value",
    "scalar_tensor",
    "settled_value",
    "type_of",
    "undefined_value",
    "weak_parts",
]

LEAVES = (Var, Constant, GlobalVar, ExternFunc, Op, ShapeExpr, PrimValue, StringImm, DataTypeImm)


def type_of(session: GraphSession, value: Expr, tree: ast.AST) -> Type:
    """The type of a value; errors point at the tree when they point nowhere."""
    try:
        return infer_type(value, session.context)
    except WeftError as error:
        raise error.at(session.span(tree)) from None


def make_var(session: GraphSession, name: str, ty: Type, tree: ast.AST) -> Var:
    """A variable of the right class for the place: outputs of a dataflow block are visible outside."""
    names = session.dataflow_names
    if names is None or (names.get(name) == session.position and session.place is None):
        return Var(name, ty, span=session.span(tree))
    return DataflowVar(name, ty, span=session.span(tree))


def bind_value(session: GraphSession, target: ast.Name, value: Expr, declared: Type | None, tree: ast.AST) -> Var:
    """Bind a value to a new variable."""
    ty = type_of(session, value, tree)
    if isinstance(ty, TupleType):
        check_fields(session, list(ty.fields), tree)
    if declared is not None:
        ty = exact_type(value, session.context) if isinstance(value, PrimValue) else ty
        ty = _with_declared_names(session, ty, declared)
        what = f"annotation of {target.id}"
        if not check_claim(declared, ty, session.context, what, _place_of_claim(session, tree), at_run_time=True):
            note_assumed(session, declared, ty, what, _place_of_claim(session, tree), value.span)
            return bind_checked(session, target, value, declared, tree)
        # The value of a scalar that is written out is there to see: its variable has the plain type.
        known = isinstance(value, PrimValue) and isinstance(declared, PrimType)
        ty = PrimType(value.dtype, span=declared.span) if known else declared  # type: ignore[attr-defined]
    else:
        for name in type_symbols(ty) if not isinstance(value, Var) else ():
            session.symbols.add(name)
    var = make_var(session, target.id, ty, target)
    if isinstance(value, PrimValue) and value.dtype == "int64" and is_dim(value.value):
        session.sizes[var] = value.value  # type: ignore[assignment]
    emit_binding(session, VarBinding(var, value, span=session.span(tree)))
    note_weak(session, var, weak_parts(session, value))
    note_same_memory(session, var, value)
    if value in session.stacked:
        session.stacked.add(var)
    return var


WHOLE = -1
"""In the place of the number of a field: the value itself."""


def note_weak(session: GraphSession, var: Var, weak: frozenset[int]) -> None:
    """Note which parts of a value are numbers of Python: the fields of a tuple, or the whole."""
    if WHOLE in weak:
        session.weak.add(var)
    elif weak:
        session.weak_fields[var] = weak


def weak_parts(session: GraphSession, value: Expr) -> frozenset[int]:
    """The parts of a value that are numbers of Python, as `note_weak` takes them."""
    if is_weak(session, value):
        return frozenset([WHOLE])
    if isinstance(value, Tuple):
        return frozenset(place for place, part in enumerate(value.fields) if is_weak(session, part))
    return session.weak_fields.get(value, frozenset())


def is_weak(session: GraphSession, value: Any) -> bool:
    """Whether a value is a number of Python, or made of such: it takes the dtype of the tensor that it meets."""
    if isinstance(value, TupleGetItem):
        return value.index in session.weak_fields.get(value.value, ())
    if isinstance(value, Expr):
        return value in session.weak
    return isinstance(value, (int, float, DimExpr)) and not isinstance(value, bool)


def number_dtype(session: GraphSession, value: Any, tree: ast.AST) -> str:
    """The dtype of a number."""
    if isinstance(value, Expr):
        return str(getattr(type_of(session, value, tree), "dtype", None))
    return "bool" if isinstance(value, bool) else "float64" if isinstance(value, float) else "int64"


def in_dtype(session: GraphSession, value: Any, dtype: str, tree: ast.AST) -> Expr:
    """A number, or a tensor, in another dtype."""
    known = value.value if isinstance(value, PrimValue) else value
    if isinstance(known, Constant) and known.data.ndim == 0:
        known = known.data.item()
    if isinstance(known, (bool, int, float)):
        return Constant(np.asarray(known, dtype), span=session.span(tree))
    scalar = as_leaf(session, value, tree)
    return as_leaf(session, get_op("astype").bind([scalar], {"dtype": dtype}, session.span(tree)), tree)


def note_assumed(session: GraphSession, declared: Type, found: Type, what: str, place: Any, value: Any) -> None:
    """Note a relation of sizes that nothing but a declared type states: the program checks it when it runs."""
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        for index, (a, b) in enumerate(zip(declared.fields, found.fields, strict=False)):
            note_assumed(session, a, b, f"{what}, field {index}", place, value)
        return
    pairs = zip(dims_of(declared) or (), dims_of(found) or (), strict=False)
    open_ = [f"{a} is taken to be {b}" for a, b in pairs if prove_equal(a, b) is not True]
    if open_ and not is_spread(declared):
        notes = [f"declared {type_text(declared)}, computed {type_text(found)}"]
        if value is not None:
            notes.append(f"computed at {value.filename}:{value.line}:{value.column}")
        message = f"{what}: {', '.join(open_)}, which is checked when the program runs"
        session.unit.assumed.append(ShapeError(message, code="W213", span=place, notes=notes))


def bind_checked(session: GraphSession, target: ast.Name, value: Expr, declared: Type, tree: ast.AST) -> Var:
    """Bind a value to a new variable of a type that deduction leaves open: it is checked at run time."""
    known = as_leaf(session, value, tree)
    var = make_var(session, target.id, declared, target)
    emit_binding(session, MatchCast(var, known, declared, span=session.span(tree)))
    session.context.learn(declared, type_of(session, known, tree))
    return var


def _with_declared_names(session: GraphSession, ty: Type, declared: Type) -> Type:
    """The deduced type, with symbols that deduction has just made called as the annotation calls them."""
    renamed: dict[str, Any] = {}
    for made, named in zip(dims_within(ty), dims_within(declared), strict=False):
        if isinstance(made, DimExpr) and isinstance(named, DimExpr) and made is not named:
            name = str(made)
            if name.isidentifier() and name not in session.symbols:
                renamed[name] = named
    return substitute_type(ty, renamed) if renamed else ty


def _place_of_claim(session: GraphSession, tree: ast.AST) -> Any:
    return session.span(tree.annotation if isinstance(tree, ast.AnnAssign) else tree)


def emit_binding(session: GraphSession, binding: VarBinding | MatchCast) -> None:
    """Add a binding to the current block."""
    session.blocks.bindings.append(binding)


def fresh_target(session: GraphSession, tree: ast.AST, base: str = "lv") -> ast.Name:
    """A target for a value that the text does not name."""
    count = session.counter
    session.counter += 1
    return ast.copy_location(ast.Name(base if count == 0 else f"{base}{count}", ast.Store()), tree)


def undefined_value(session: GraphSession, name: str, tree: ast.AST) -> WeftError:
    """The error for an unknown name; says why when it was visible elsewhere."""
    why = session.hidden.get(name)
    if why is not None:
        return session.fail("W119", f"'{name}' is not visible here", tree, why)
    error = undefined_name(session, name, tree)
    if error.hint is None:
        named = [operator for operator in likely_operators(name) if operator.rpartition(".")[2] == name]
        error.hint = f"did you mean `R.{named[0]}`?" if named else None
    return error


def as_leaf(session: GraphSession, value: Any, tree: ast.AST) -> Expr:
    """A value as a leaf; anything else is bound to a variable first."""
    made = as_expr(session, value, tree)
    if isinstance(made, LEAVES) or (isinstance(made, Tuple)):
        return made
    before, session.place = session.place, tree
    try:
        return bind_value(session, fresh_target(session, tree), made, None, tree)
    finally:
        session.place = before


def as_expr(session: GraphSession, value: Any, tree: ast.AST) -> Expr:
    """A value as an expression; tuples of leaves become tuples."""
    if isinstance(value, PrimFunc):
        return GlobalVar(session.module.adopt(value, session.span(tree)), session.span(tree))
    if isinstance(value, PrimExpr):
        return prim_leaf(session, value, tree)
    if isinstance(value, Function):
        return GlobalVar(session.module.adopt(value, session.span(tree)), session.span(tree))
    if isinstance(value, Expr):
        return value
    if isinstance(value, (tuple, list)):
        return Tuple(tuple(as_leaf(session, item, tree) for item in value), span=session.span(tree))
    if isinstance(value, str):
        return StringImm(value, span=session.span(tree))
    if isinstance(value, np.ndarray):
        return constant_value(value, None, None, False, session.span(tree), None)
    if isinstance(value, complex):  # there are no scalars of them
        return Constant(np.asarray(value, "complex64"), span=session.span(tree))
    if isinstance(value, (bool, int, float, DimExpr)):
        made = PrimValue(value, span=session.span(tree))
        if is_weak(session, value):
            session.weak.add(made)
        return made
    found = "a lambda" if isinstance(value, Macro) and isinstance(value.body, ast.expr) else describe(value)
    raise session.fail("W114", f"expected a value, got {found}", tree)


def prim_leaf(session: GraphSession, value: PrimExpr, tree: ast.AST) -> PrimValue:
    """A scalar constant of the tensor level as a leaf."""
    if isinstance(value, IntImm):
        return PrimValue(
            bool(value.value) if value.dtype == "bool" else value.value, value.dtype, span=session.span(tree)
        )
    if isinstance(value, FloatImm):
        return PrimValue(value.value, value.dtype, span=session.span(tree))
    raise session.fail("W114", f"a tensor-level {type(value).__name__} is no value of a graph function", tree)


def scalar_tensor(session: GraphSession, value: Any, tree: ast.AST) -> Expr:
    """A scalar as a tensor of rank 0, which arithmetic gives; every other value as it is."""
    made = _scalar_tensor(session, value, tree)
    if made is not value and is_weak(session, value):
        session.weak.add(made)
    return made


def _scalar_tensor(session: GraphSession, value: Any, tree: ast.AST) -> Expr:
    if isinstance(value, PrimValue) and not isinstance(value.value, DimExpr):
        return Constant(np.asarray(value.value, value.dtype), span=session.span(tree))
    if isinstance(value, (bool, int, float, complex)):
        dtype = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"
        dtype = "complex64" if isinstance(value, complex) else dtype
        return Constant(np.asarray(value, dtype), span=session.span(tree))
    made = as_leaf(session, value, tree)
    ty = type_of(session, made, tree)
    if not isinstance(ty, PrimType):
        return made
    call = get_op("full").bind([(), made], {"dtype": ty.dtype}, session.span(tree))
    return as_leaf(session, call, tree)


@GRAPH.hole("leaf")
def read_leaf(session: GraphSession, tree: ast.expr) -> Expr:
    """A leaf as an argument."""
    return as_leaf(session, session.value(tree), tree)


@GRAPH.hole("shape")
def read_shape_value(session: GraphSession, tree: ast.expr) -> Any:
    """A shape in a type: dimensions, or a variable of shape type."""
    if isinstance(tree, ast.Name):
        value = session.value(tree)
        if isinstance(value, Var):
            if not isinstance(value.ty, (ShapeType, AnyType)):
                raise session.fail("W114", f"'{tree.id}' is a {type_text(value.ty)}, not a shape", tree)
            return value
    return read_dims(session, tree)


@GRAPH.hole("callee")
def read_callee(session: GraphSession, tree: ast.expr) -> Expr:
    """The function of a packed call: a name or an ExternFunc."""
    value = session.value(tree)
    if isinstance(value, str):
        return ExternFunc(value, span=session.span(tree))
    if isinstance(value, (ExternFunc, GlobalVar)):
        return value
    raise session.fail("W114", f"expected the name of a function, got {describe(value)}", tree)


def fields_of(session: GraphSession, value: Expr, tree: ast.AST) -> Sequence[Expr] | None:
    """The fields of a tuple of the graph, or None for another value."""
    if isinstance(value, Tuple):
        return value.fields
    var = as_leaf(session, value, tree)
    ty = type_of(session, var, tree)
    if not isinstance(ty, TupleType):
        return None
    return [TupleGetItem(var, index, span=session.span(tree)) for index in range(len(ty.fields))]


def settled_value(session: GraphSession, value: Any, tree: ast.expr) -> Any:
    """A value that may be used more than once: what computes is bound first."""
    return as_leaf(session, value, tree) if isinstance(value, Expr) and not isinstance(value, PrimExpr) else value


def dims_within(ty: Type) -> Iterator[Any]:
    """The dimensions of a type in order."""
    if isinstance(ty, TensorType):
        yield from ty.dims or ()
    elif isinstance(ty, (ShapeType, PrimType)):
        yield from ty.dims or ()
    elif isinstance(ty, TupleType):
        for part in ty.fields:
            yield from dims_within(part)
