"""Graph-level values against types.

    value ::= NumPy array (tensors; raw bits for dtypes that NumPy lacks) | tuple (tuples, shapes) | number | str |
    callable

`kind_mismatch` compares everything but sizes; `sizes_of` pairs the dimensions that a type writes out with the sizes of
the value, for a `SymbolTable` to bind and compare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import tuple_words, value_words
from weft.ir.dim import Dim
from weft.ir.graph import Var
from weft.ir.interpret.scalars import check_scalar, wrap_array
from weft.ir.interpret.symbols import SymbolTable, shape_text
from weft.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType, Type
from weft.support.dlpack import offered_array
from weft.support.guards import is_array, is_number, is_tuple
from weft.support.isolation import Typed, map_items, tuple_items

__all__ = ["Mismatch", "adopt", "check", "expected_text", "masked", "shown", "typed", "value_text"]

ShapeOf = Callable[[Var], Sequence[int]]


class Mismatch(Exception):
    """A value that does not have a type; `why` names the symbol values that were compared."""

    def __init__(self, expected: str, got: str, why: str = "", kind: str = "W851") -> None:
        super().__init__(f"expected {expected}, got {got}" + (f"; {why}" if why else ""))
        self.kind = kind
        self.place = ""
        """Which of several values it is."""


def value_text(value: Any) -> str:
    """A value in a few words, for messages.

    >>> value_text(np.zeros((2, 3), "float32"))
    'float32[(2, 3)]'
    """
    if is_array(value):
        return f"{dtypes.held(value) or value.dtype}[{shape_text(value.shape)}]"
    if is_number(value):
        return f"{value.dtype}[()]"
    if is_tuple(value):
        if _is_shape(value):
            return f"shape {shape_text(value)}"
        return tuple_words(value, _items, value_text)
    return value_words(value)


def _is_shape(value: tuple[Any, ...]) -> bool:
    return bool(value) and all(isinstance(item, int) and abs(item) < 1 << 64 for item in value)


def _items(value: Any) -> tuple[Any, ...] | None:
    """What a tuple holds that is no shape."""
    return value if is_tuple(value) and not _is_shape(value) else None


def expected_text(ty: Type) -> str:
    """A type in the same words."""
    if isinstance(ty, TensorType):
        dtype = ty.dtype or "tensor"
        if isinstance(ty.shape, Var):
            return f"{dtype}[{ty.shape.name}]"
        if ty.dims is not None:
            return f"{dtype}[{shape_text(ty.dims)}]"
        return dtype if ty.ndim < 0 else f"{dtype} of rank {ty.ndim}"
    if isinstance(ty, ShapeType):
        if ty.dims is not None:
            return f"shape {shape_text(ty.dims)}"
        return "a shape" if ty.ndim < 0 else f"a shape of {ty.ndim} sizes"
    if isinstance(ty, TupleType):
        return tuple_words(ty, lambda item: item.fields if isinstance(item, TupleType) else None, expected_text)
    names: dict[type, str] = {StringType: "a string", FuncType: "a function", AnyType: "anything"}
    if isinstance(ty, PrimType):
        return ty.dtype if ty.value is None else f"{ty.dtype} {ty.value}"
    return names.get(type(ty), "a value")


def adopt(value: Any, ty: Type | None) -> Any:
    """A value from outside in the form the interpreter uses for the type (no conversion of dtypes)."""
    if isinstance(ty, TensorType):
        if type(value) is not np.ndarray:
            offered = offered_array(value)
            value = value if offered is None else offered
        if is_array(value) and ty.dtype is None and not value.dtype.isnative:
            value = value.astype(value.dtype.newbyteorder("="))
        return dtypes.stored(value, ty.dtype) if ty.dtype is not None and is_array(value) else value
    items = dtypes.offered_items(value)
    if isinstance(ty, TupleType) and items is not None and len(items) == len(ty.fields):
        return tuple(adopt(item, field) for item, field in zip(items, ty.fields, strict=True))
    if isinstance(ty, TupleType) and items is not None:
        return items
    if isinstance(ty, ShapeType) and items is not None:
        return tuple(int(size) if _is_whole(size) else size for size in items)
    if isinstance(ty, PrimType):
        scalar = check_scalar(value, ty.dtype)
        return value if scalar is None else scalar
    return items if isinstance(value, list) else value


def masked(value: Any, ty: Type | None) -> Any:
    """A value from outside whose integers of less than a byte have no bits above them, as compiled code reads them."""
    if isinstance(ty, TupleType) and is_tuple(value) and len(value) == len(ty.fields):
        return tuple(map(masked, value, ty.fields))
    if not isinstance(ty, TensorType) or ty.dtype is None or dtypes.is_numpy(ty.dtype) or not is_array(value):
        return value
    if not dtypes.is_integer(ty.dtype) or value.dtype != dtypes.storage(ty.dtype):
        return value
    wrapped = wrap_array(ty.dtype)(value)
    return value if np.array_equal(wrapped, value) else wrapped


def _is_whole(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool)
    return is_number(value) and np.issubdtype(value.dtype, np.integer)


def shown(value: Any, ty: Type | None) -> Any:
    """A result as callers get it: arrays of types that NumPy lacks are those of `ml_dtypes`."""
    if isinstance(ty, TupleType) and is_tuple(value):
        return tuple(map(shown, value, ty.fields))
    dtype = ty.dtype if isinstance(ty, TensorType) else None
    return map_items(  # tuples are of a type that says nothing of their items
        value, tuple_items, lambda item: _presented(item, dtype)
    )


def _presented(value: Any, dtype: str | None) -> Any:
    return dtypes.presented(value, dtype) if is_array(value) else value


def typed(value: Any, ty: Type | None) -> Any:
    """A value for a function outside: its arrays say which dtype they hold, where a type says it."""
    if is_array(value):
        return Typed(value, ty.dtype if isinstance(ty, TensorType) else None)
    if isinstance(ty, TupleType) and is_tuple(value) and len(value) == len(ty.fields):
        return tuple(map(typed, value, ty.fields))
    return value


def check(values: Sequence[tuple[Any, Type, str]], table: SymbolTable, shape_of: ShapeOf) -> None:
    """Check (value, type, place) triples together: symbols without a value are bound first, then all sizes compared.

    Raises Mismatch; `place` of the first value that does not fit is set as its `place`.
    """
    sized: list[tuple[int, Sequence[Dim], Sequence[int]]] = []
    for position, (value, ty, place) in enumerate(values):
        try:
            sized.extend((position, dims, sizes) for dims, sizes in _sizes(value, ty, shape_of))
        except Mismatch as mismatch:
            mismatch.place = place
            raise
    for position, dims, sizes in sized:
        table.bind(dims, sizes, values[position][2])
    while any(table.solve(dims, sizes, values[position][2]) for position, dims, sizes in sized):
        pass
    for position, dims, sizes in sized:
        if not table.agrees(dims, sizes):
            value, ty, place = values[position]
            mismatch = Mismatch(expected_text(ty), value_text(value), table.explain(dims), "W852")
            mismatch.place = place
            raise mismatch


def _sizes(value: Any, ty: Type, shape_of: ShapeOf) -> Iterator[tuple[Sequence[Dim], Sequence[int]]]:
    """(dimensions, sizes) pairs inside a value; Mismatch when its kind, dtype or rank differs."""
    if isinstance(ty, TensorType):
        yield from _tensor_sizes(value, ty, shape_of)
    elif isinstance(ty, ShapeType):
        if not is_tuple(value) or not all(map(_is_size, value)):
            raise Mismatch(expected_text(ty), value_text(value))
        if ty.ndim >= 0 and len(value) != ty.ndim:
            raise Mismatch(expected_text(ty), value_text(value), kind="W852")
        if ty.dims is not None:
            yield ty.dims, value
    elif isinstance(ty, TupleType):
        if not is_tuple(value) or len(value) != len(ty.fields):
            raise Mismatch(expected_text(ty), value_text(value))
        for item, field in zip(value, ty.fields, strict=True):
            yield from _sizes(item, field, shape_of)
    elif isinstance(ty, PrimType):
        yield from _scalar_sizes(value, ty)
    elif (isinstance(ty, StringType) and not isinstance(value, str)) or (
        isinstance(ty, FuncType) and not callable(value)
    ):
        raise Mismatch(expected_text(ty), value_text(value))


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _scalar_sizes(value: Any, ty: PrimType) -> Iterator[tuple[Sequence[Dim], Sequence[int]]]:
    scalar = check_scalar(value, ty.dtype)
    if scalar is None or (ty.value is not None and ty.dims is None and not _is_constant(scalar, ty)):
        raise Mismatch(expected_text(ty), value_text(value))
    if ty.dims is not None:
        if int(scalar) < 0:  # symbols are sizes
            raise Mismatch(expected_text(ty), value_text(value), "a size is not negative", "W852")
        yield ty.dims, (int(scalar),)


def _is_constant(scalar: Any, ty: PrimType) -> bool:
    """Whether a scalar has the bits of the value that its type states."""
    storage = dtypes.storage(ty.dtype)
    return np.asarray(scalar, storage).tobytes() == np.asarray(ty.value, storage).tobytes()


def _tensor_sizes(value: Any, ty: TensorType, shape_of: ShapeOf) -> Iterator[tuple[Sequence[Dim], Sequence[int]]]:
    if not is_array(value) or not (dtypes.holds(value, ty.dtype) if ty.dtype else dtypes.tensor_dtype(value)):
        raise Mismatch(expected_text(ty), value_text(value))
    if ty.ndim >= 0 and value.ndim != ty.ndim:
        raise Mismatch(expected_text(ty), value_text(value), kind="W852")
    if isinstance(ty.shape, Var):
        wanted = tuple(shape_of(ty.shape))
        if wanted != value.shape:
            raise Mismatch(expected_text(ty), value_text(value), f"{ty.shape.name}={shape_text(wanted)}", "W852")
    elif ty.dims is not None:
        yield ty.dims, value.shape
