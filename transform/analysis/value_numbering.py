"""Hashable keys: two values, types or expressions with one key are the same within a function.

Unlike `structural_equal`, names of symbols count: `(n, 4)` and `(m, 4)` are different types of one function. Floats go
by their bits; a large constant goes by its array object.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from weft.ir import (
    Call,
    Constant,
    DataTypeImm,
    Expr,
    ExternFunc,
    GlobalVar,
    Op,
    PrimType,
    PrimValue,
    ShapeExpr,
    ShapeType,
    StringImm,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from weft.ir.node import Node, fields_of

__all__ = ["data_key", "expr_key", "same_type", "type_key"]

_BYTES_COMPARED = 4096


def type_key(ty: Type) -> Hashable:
    """The key of a type; a shape variable goes by its identity."""
    if isinstance(ty, TensorType):
        shape = id(ty.shape) if isinstance(ty.shape, Var) else ty.shape
        return ("tensor", shape, ty.dtype, ty.ndim, data_key(ty.vdevice))
    if isinstance(ty, ShapeType):
        return ("shape", ty.dims, ty.ndim)
    if isinstance(ty, TupleType):
        return ("tuple", *map(type_key, ty.fields))
    if isinstance(ty, PrimType):
        return ("prim", ty.dtype, ty.dims or data_key(ty.value))
    return data_key(ty)


def same_type(a: Type | None, b: Type | None) -> bool:
    """Whether two types of one function are the same."""
    return a is b or (a is not None and b is not None and type_key(a) == type_key(b))


def expr_key(value: Expr) -> Hashable:
    """The key of a leaf, call, tuple or projection; None for what has none (conditionals, local functions)."""
    if isinstance(value, Var):
        return ("var", id(value))
    if isinstance(value, (GlobalVar, ExternFunc, Op)):
        return (type(value).__name__, value.name)
    if isinstance(value, Constant):
        data = value.data.tobytes() if value.data.nbytes <= _BYTES_COMPARED else id(value.data)
        return ("constant", value.dtype, value.data.shape, data)
    if isinstance(value, PrimValue):
        return ("prim", value.dtype, data_key(value.value))
    if isinstance(value, ShapeExpr):
        return ("dims", value.dims)
    if isinstance(value, (StringImm, DataTypeImm)):
        return (type(value).__name__, value.value)
    if isinstance(value, Tuple):
        return _all("fields", map(expr_key, value.fields))
    if isinstance(value, TupleGetItem):
        return _all("item", (expr_key(value.value), value.index))
    if isinstance(value, Call):
        types = tuple(map(type_key, value.ty_args))
        return _all("call", (expr_key(value.op), *map(expr_key, value.args), data_key(value.attrs), types))
    return None


def _all(kind: str, parts: Any) -> Hashable:
    key = (kind, *parts)
    return None if None in key else key


def data_key(value: Any) -> Hashable:
    """The key of attribute data."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, (list, tuple)):
        return ("tuple", *map(data_key, cast("Sequence[Any]", value)))
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return ("map", *((key, data_key(items[key])) for key in sorted(items)))
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return ("array", array.dtype.str, array.shape, array.tobytes())
    if isinstance(value, Type) and isinstance(value, (TensorType, ShapeType, PrimType, TupleType)):
        return type_key(value)
    if isinstance(value, Var):
        return ("var", id(value))
    if isinstance(value, Node):
        infos = fields_of(type(value))
        return (type(value).__name__, *(data_key(getattr(value, i.name)) for i in infos if i.role != "ignored"))
    return (type(value).__name__, value)
