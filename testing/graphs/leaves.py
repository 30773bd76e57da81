"""Values without computation: variables, constants, tuples, casts."""

from __future__ import annotations

from functools import partial

from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, fresh_name, is_symbolic, prove_equal, symbol
from weft.ir.graph import (
    DataflowVar,
    DataTypeImm,
    Expr,
    MatchCast,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.ir.types import FuncType, ShapeType, TensorType, TupleType, Type
from weft.testing.graphs.state import FunctionState, Rejected
from weft.transform.infra.generators.values import constant


def copy_of_variable(f: FunctionState) -> tuple[Expr, bool]:
    """A visible value under another name."""
    if not f.visible:
        raise Rejected
    var = f.choices.pick(f.visible[::-1])
    if isinstance(var.ty, FuncType):
        raise Rejected
    return var, var in f.exact


def leaf(f: FunctionState) -> tuple[Expr, bool]:
    """A shape, a scalar, a string, a dtype."""
    choices = f.choices
    kind = choices.integer(0, 4)
    if kind == 0:
        return ShapeExpr(tuple(f.dim() for _ in range(choices.integer(0, 3)))), True
    if kind == 1:
        return PrimValue(f.dim()), True
    if kind == 2:
        value = choices.number() if not f.runnable else 0.5
        return choices.pick(
            (PrimValue(True), PrimValue(value), PrimValue(3, "int32"), PrimValue(value, "float64"))
        ), True
    if kind == 3:
        return StringImm(choices.text()), True
    if f.runnable:
        raise Rejected
    return DataTypeImm(choices.pick(("float32", "bfloat16", "bool", "int8", "float32x4"))), True


def tuple_of_leaves(f: FunctionState) -> tuple[Expr, bool]:
    """A tuple of visible values and leaves."""
    fields = f.choices.several(0 if f.choices.flip(10) else 1, 3, partial(any_leaf, f))
    return Tuple(tuple(fields)), all(not isinstance(field, Var) or field in f.exact for field in fields)


def any_leaf(f: FunctionState) -> Expr:
    """A visible value or a leaf."""
    values = [var for var in f.visible if not isinstance(var.ty, FuncType)]
    if values and f.choices.flip(85):
        return f.choices.pick(values[::-1])
    return f.choices.pick((constant(f.choices, runnable=f.runnable), ShapeExpr((f.dim(),)), Tuple(())))


def item(f: FunctionState) -> tuple[Expr, bool]:
    """A field of a visible tuple."""
    tuples = [var for var in f.visible if isinstance(var.ty, TupleType) and var.ty.fields]
    if not tuples:
        raise Rejected
    var = f.choices.pick(tuples[::-1])
    return TupleGetItem(var, f.choices.integer(0, len(var.ty.fields) - 1)), var in f.exact  # type: ignore[attr-defined]


def cast_of(f: FunctionState) -> tuple[Expr | MatchCast, bool]:
    """A match_cast: it holds in a module that runs."""
    values = [var for var in f.visible if isinstance(var.ty, (TensorType, ShapeType)) and var.ty.ndim >= 0]
    if not values:
        raise Rejected
    source = f.choices.pick(values[::-1])
    ty = source.ty
    assert isinstance(ty, (TensorType, ShapeType))
    known = dims_of(ty) or (None,) * ty.ndim
    target: Type
    if f.choices.flip(10):
        target = ShapeType(ndim=ty.ndim) if isinstance(ty, ShapeType) else TensorType(None, ty.dtype, ty.ndim)
    else:
        dims = tuple(cast_dim(f, dim) for dim in known)
        target = ShapeType(dims) if isinstance(ty, ShapeType) else TensorType(dims, ty.dtype, vdevice=ty.vdevice)
    kind = DataflowVar if f.dataflow and f.choices.flip(60) else Var
    return MatchCast(kind(f.choices.name(), target), source, target), source in f.exact


def cast_dim(f: FunctionState, dim: Dim | None) -> Dim:
    """A dimension that a match_cast claims."""
    if dim is not None and not f.choices.flip(30):
        return dim
    if not f.runnable and is_symbolic(dim) and f.choices.flip():  # type: ignore[arg-type]
        other = f.dim()
        return dim if prove_equal(dim, other) is False else other  # type: ignore[arg-type]
    name = fresh_name(f.choices.pick(("p", "q", "n", "rows")), f.used_symbols)
    f.used_symbols.add(name)
    f.symbols.append(name)
    return symbol(name)
