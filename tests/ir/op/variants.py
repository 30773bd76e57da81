"""Calls of operators as their examples have them, in every dtype and with sizes of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weft.ir.op import Example, OpDef
from weft.ir.types import TensorType

__all__ = ["DTYPES", "variants"]

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
