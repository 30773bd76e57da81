"""Calls of operators as their examples have them, in every dtype, with sizes of 0 and 1, and with odd arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weft.ir.dim import DimExpr, symbol
from weft.ir.op import Example, OpDef, Param
from weft.ir.types import TensorType

__all__ = ["DTYPES", "mutations", "variants"]

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


def variants(definition: OpDef) -> Iterator[tuple[str, Example]]:
    """Examples with the first tensor's dtype replaced wherever it occurs, and all constant sizes as they are, 1 or 0.

    Not all are calls that the operator takes.
    """
    for index, example in enumerate(definition.examples):
        types = [*_types(example.args), *_types(tuple(example.kwargs.values()))]
        if not types:
            continue
        for dtype in DTYPES:
            for size in (None, 1, 0):

                def changed(value: Any, old: Any = types[0].dtype, dtype: str = dtype, size: int | None = size) -> Any:
                    return _changed(value, old, dtype, size)

                args = tuple(map(changed, example.args))
                kwargs = {name: changed(value) for name, value in example.kwargs.items()}
                yield f"{definition.name}-{index} {dtype} {size}", replace(example, args=args, kwargs=kwargs)


def _types(value: Any) -> Iterator[TensorType]:
    if isinstance(value, TensorType):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _types(part)


def _changed(value: Any, old: str | None, dtype: str, size: int | None) -> Any:
    if isinstance(value, TensorType) and isinstance(value.shape, tuple):
        shape = tuple(size if size is not None and isinstance(dim, int) else dim for dim in value.shape)
        return TensorType(shape, dtype if value.dtype == old else value.dtype)
    if isinstance(value, (tuple, list)):
        return type(value)(_changed(part, old, dtype, size) for part in value)
    return value


_NUMBERS = (0, 1, -1, -2, -3, 2, 3, 7, 2**31, 2**40)
_FLOATS = (0.0, -1.0, 2.5, math.inf, -math.inf, math.nan, 1e300)


def mutations(definition: OpDef) -> Iterator[Example]:
    """Examples with one argument changed: a dtype, a size, a rank, a number, what a list has; and attributes given.

    Not all are calls that the operator takes.
    """
    for example in definition.examples:
        for index, value in enumerate(example.args):
            for new in _mutated(value):
                yield replace(example, args=(*example.args[:index], new, *example.args[index + 1 :]))
        for name, value in example.kwargs.items():
            for new in _mutated(value):
                yield replace(example, kwargs={**example.kwargs, name: new})
        given = {param.name for param in definition.params[: len(example.args)]} | set(example.kwargs)
        for param in definition.params:
            if param.name not in given and param.kind != "variadic":
                for new in _values(param):
                    yield replace(example, kwargs={**example.kwargs, param.name: new})


def _values(param: Param) -> tuple[Any, ...]:
    """Values for an attribute that an example leaves out."""
    if param.kind == "dtype":
        return DTYPES
    if isinstance(param.default, bool):
        return (not param.default,)
    if param.of in ("ints", "dims", "sections"):
        return (*_NUMBERS, (), (0, 0), (-1, -2), (2**40, 2**40))
    if param.of in ("int", "dim"):
        return _NUMBERS
    return _FLOATS if param.of == "float" else ()


def _mutated(value: Any) -> Iterator[Any]:
    if isinstance(value, TensorType) and isinstance(value.shape, tuple):
        shape = value.shape
        yield from (TensorType(shape, dtype) for dtype in DTYPES)
        yield from (
            TensorType((*shape[:axis], size, *shape[axis + 1 :]), value.dtype)
            for axis in range(len(shape))
            for size in (0, 1, 2, 5, symbol("q"))
        )
        yield from (TensorType(other, value.dtype) for other in ((), (*shape, 2), shape[1:]))
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, DimExpr)):
        yield from _NUMBERS
    elif isinstance(value, float):
        yield from _FLOATS
    elif isinstance(value, (tuple, list)):
        parts: list[Any] = list(value)
        yield from (
            [*parts[:index], new, *parts[index + 1 :]] for index, old in enumerate(parts) for new in _mutated(old)
        )
        yield from (parts[:-1], [*parts, *parts[-1:]], [])
