"""Types of parameters and results."""

from __future__ import annotations

from weft import dtypes
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, is_symbolic, symbol
from weft.ir.graph import (
    Var,
)
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.testing.graphs.state import FunctionState
from weft.transform.infra.generators.values import DTYPES

_SYMBOLS = ("n", "m", "k", "batch", "x", "lv")


def needs_other(ty: Type) -> bool:
    """Whether a type mentions variables or symbols that only another parameter defines."""
    if isinstance(ty, TensorType):
        return isinstance(ty.shape, Var) or any(
            is_symbolic(dim) and not str(dim).isidentifier() for dim in ty.dims or ()
        )
    if isinstance(ty, TupleType):
        return any(needs_other(field) for field in ty.fields)
    return isinstance(ty, FuncType)


def is_void(ty: Type) -> bool:
    """Whether a type has no values worth a name."""
    return isinstance(ty, TupleType) and not ty.fields


def is_discrete(ty: Type) -> bool:
    """Whether a value of the type holds no floats."""
    if isinstance(ty, (TensorType, PrimType)):
        return ty.dtype is not None and not dtypes.is_float(dtypes.part(ty.dtype))
    if isinstance(ty, TupleType):
        return all(is_discrete(field) for field in ty.fields)
    return isinstance(ty, (ShapeType, StringType))


def is_partly_discrete(ty: Type) -> bool:
    """Whether a part of a type is of integers or truth values."""
    if isinstance(ty, TupleType):
        return any(is_partly_discrete(field) for field in ty.fields)
    return is_discrete(ty)


def is_definite(ty: Type) -> bool:
    """Whether a type says enough for a program that runs."""
    if isinstance(ty, TupleType):
        return all(is_definite(field) for field in ty.fields)
    return not isinstance(ty, AnyType)


def too_large(ty: Type) -> bool:
    """Whether a tensor is larger than tests want."""
    if isinstance(ty, TupleType):
        return any(too_large(field) for field in ty.fields)
    if not isinstance(ty, TensorType):
        return False
    if ty.ndim > 6 or (ty.dtype is not None and not dtypes.is_numpy(ty.dtype)):
        return True
    count = 1
    for dim in ty.dims or ():
        count *= dim if isinstance(dim, int) else 4 * len(str(dim))
    return count > 20_000


def same_shape(a: Type, b: Type) -> bool:
    """Whether two tensors surely have one shape."""
    left, right = dims_of(a), dims_of(b)
    return left is not None and right is not None and left == right


def same_type(a: Type, b: Type) -> bool:
    """Whether two types are one."""
    if type(a) is not type(b):
        return False
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype == b.dtype and a.dims is not None and a.dims == b.dims and a.vdevice is b.vdevice
    if isinstance(a, PrimType) and isinstance(b, PrimType):
        return a.dtype == b.dtype
    return False


def bindable(f: FunctionState) -> Dim:
    """A dimension that a parameter may define."""
    return symbol(f.choices.pick(_SYMBOLS[:3] if f.choices.flip(80) else _SYMBOLS))


def parameter_type(f: FunctionState, depth: int = 1) -> Type:
    """A type for a new parameter."""
    choices = f.choices
    kind = choices.integer(0, 19)
    if kind < 13 or (depth == 0 and kind == 17):
        dims = [bindable(f) if choices.flip(40) else f.dim() for _ in range(choices.pick((2, 1, 3, 0, 4)))]
        device = choices.pick(f.home.devices) if f.home.devices and choices.flip(30) else None
        return TensorType(tuple(dims), choices.pick(DTYPES), vdevice=device)
    if kind == 13:
        return TensorType((), "bool")
    if kind == 14:
        return PrimType(choices.pick(("int64", "float32", "bool", "int32")))
    if kind == 15:
        return ShapeType(tuple(bindable(f) for _ in range(choices.integer(1, 2))))
    if kind == 16:
        shapes = [var for var in f.params if isinstance(var.ty, ShapeType)]
        if shapes and choices.flip():
            return TensorType(choices.pick(shapes), choices.pick(DTYPES))
        return choices.pick(
            (ShapeType(ndim=2), ShapeType(), TensorType(ndim=2, dtype="float32"), TensorType(dtype="int32"))
        )
    if kind == 17:
        return TupleType(tuple(choices.several(1, 3, lambda: parameter_type(f, depth - 1))))
    if kind == 18 and not f.runnable:
        tensor = TensorType((symbol("n"),), "float32")
        return choices.pick((AnyType(), FuncType((tensor,), tensor), FuncType(None, AnyType(), False), TensorType()))
    return choices.pick((StringType(), TensorType(ndim=1, dtype="float32")))


def weaker(f: FunctionState, ty: Type) -> Type:
    """A type of which the given one is a subtype."""
    if isinstance(ty, TensorType) and f.choices.flip():
        return TensorType(None, ty.dtype, ty.ndim)
    if isinstance(ty, TupleType) and ty.fields and f.choices.flip():
        return TupleType(tuple(weaker(f, field) for field in ty.fields))
    return f.choices.pick((ty, AnyType())) if not isinstance(ty, FuncType) else ty
