"""Random arguments that fit the signature of a function: sizes from 0 up, moderate values, the rest as types allow.

random_arguments(function, choices)          a list of values
random_arguments(..., symbols={"n": 1})      with given symbol values
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ArgumentError
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, evaluate, free_symbols
from weft.ir.graph import Function, Var
from weft.ir.kernel.prim_dim import kernel_signature
from weft.ir.tensor import Buffer, PrimFunc
from weft.ir.types import FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.transform.infra.generators.choices import Choices
from weft.transform.infra.generators.values import small_array

__all__ = ["random_arguments", "signature", "symbol_values"]

SIZES = (2, 3, 1, 0, 5, 4)


def signature(function: Function | PrimFunc) -> list[Type]:
    """The parameter types."""
    if isinstance(function, PrimFunc):
        return list(kernel_signature(function))
    return [param.ty for param in function.params]


def _dims_in(ty: Type) -> list[Dim]:
    if isinstance(ty, TupleType):
        return [dim for field in ty.fields for dim in _dims_in(field)]
    return list(dims_of(ty) or ()) if isinstance(ty, (TensorType, ShapeType)) else []


def symbol_values(types: Sequence[Type], choices: Choices) -> dict[str, int]:
    """A value for every symbol, such that no dimension is negative or undefined."""
    dims = [dim for ty in types for dim in _dims_in(ty)]
    names = sorted({name for dim in dims for name in free_symbols(dim)})
    for attempt in range(20):
        values = {name: choices.pick(SIZES) if attempt < 10 else 6 + attempt for name in names}
        try:
            if all(evaluate(dim, values) >= 0 for dim in dims):
                return values
        except Exception:  # an undefined dimension: other values
            continue
    shown = ", ".join(map(str, dims[:8]))
    raise ArgumentError(f"no sizes were found for which {shown} are all at least 0", code="W866")


def random_arguments(
    function: Function | PrimFunc, choices: Choices, symbols: Mapping[str, int] | None = None
) -> list[Any]:
    """Values for the parameters of a function; the buffers that a kernel writes come filled with any values."""
    types = signature(function)
    values = dict(symbols) if symbols is not None else symbol_values(types, choices)
    shapes: dict[Var, tuple[int, ...]] = {}
    made: list[Any] = []
    for position, ty in enumerate(types):
        value = _value(ty, choices, values, shapes)
        param = function.params[position]
        if isinstance(ty, ShapeType) and isinstance(param, Var):
            shapes[param] = value
        made.append(value)
    return made


def _value(ty: Type, choices: Choices, symbols: Mapping[str, int], shapes: dict[Var, tuple[int, ...]]) -> Any:
    if isinstance(ty, TensorType):
        if isinstance(ty.shape, Var):
            shape = shapes[ty.shape]
        elif ty.dims is not None:
            shape = tuple(evaluate(dim, symbols) for dim in ty.dims)
        else:
            shape = _shape(ty.ndim, choices)
        return small_array(choices, ty.dtype or "float32", shape)
    if isinstance(ty, ShapeType):
        return tuple(evaluate(dim, symbols) for dim in ty.dims) if ty.dims is not None else _shape(ty.ndim, choices)
    if isinstance(ty, PrimType):
        return _scalar(ty.dtype, choices)
    if isinstance(ty, TupleType):
        return tuple(_value(field, choices, symbols, shapes) for field in ty.fields)
    if isinstance(ty, StringType):
        return choices.text()
    if isinstance(ty, FuncType):
        return lambda *args: args[0]
    return small_array(choices, "float32", (2,))


def _shape(ndim: int, choices: Choices) -> tuple[int, ...]:
    return tuple(choices.pick(SIZES) for _ in range(ndim if ndim >= 0 else choices.integer(0, 2)))


def _scalar(dtype: str, choices: Choices) -> Any:
    if dtypes.is_bool(dtype):
        return choices.flip()
    return small_array(choices, dtype, ()).item()


def copied(arguments: Sequence[Any]) -> list[Any]:
    """The arguments with arrays of their own."""
    return [np.array(value) if isinstance(value, np.ndarray) else value for value in arguments]


def buffers(function: PrimFunc) -> list[int]:
    """The positions of buffer parameters."""
    return [index for index, param in enumerate(function.params) if isinstance(param, Buffer)]
