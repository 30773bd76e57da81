"""Values against types inside a running program: symbols get their values, and what does not fit is a ShapeError.

The executors that are no machine code check with these what machine code checks by itself, in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from weft.dtypes import holds, offered_items, stored, tensor_dtype
from weft.errors import OutOfMemoryError, ShapeError
from weft.runtime.abi import types as abi
from weft.runtime.abi.closure import is_function
from weft.runtime.abi.dims import Dim, dim_names, evaluate_dim, first_solved
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.runtime.abi.scalars import check_scalar, is_size, shape_sizes
from weft.runtime.abi.values import as_array, value_text

__all__ = ["Symbols", "broken_relation", "converted"]

_SETTLED = (int, str, type(None))
"""Sizes that are known, or bound where they stand: nothing is solved for them."""


class Symbols:
    """The symbols of one running function: values, and where each came from.

    >>> symbols = Symbols()
    >>> symbols.match(np.zeros((3, 4), "float32"), abi.Tensor("float32", ("n", 4), 2), "x")
    >>> symbols.values
    {'n': 3}
    """

    def __init__(self, values: dict[str, int] | None = None, sources: dict[str, str] | None = None) -> None:
        self.values = dict(values or {})
        self.sources = dict(sources or {})

    def size(self, dim: Dim) -> int:
        """The value of a dimension.

        Raises: ShapeError W280 for a division by zero, W744 for a symbol without a value; OutOfMemoryError W950 for one
        that 64 bits do not hold.
        """
        return self.within(self._exactly(dim), dim)

    @staticmethod
    def within(value: int, dim: object) -> int:
        """A value that 64 bits hold, of a dimension; OutOfMemoryError W950."""
        if not -(1 << 63) <= value < 1 << 63:
            raise OutOfMemoryError(f"no memory for a size of {dim}: it does not fit 64 bits", code="W950")
        return value

    def _exactly(self, dim: Dim) -> int:
        value = evaluate_dim(dim, self.values)
        if value is not None:
            return value
        missing = [name for name in dim_names(dim) if name not in self.values]
        if missing:
            raise ShapeError(f"the symbol {missing[0]} of {dim} has no value here", code="W286")
        raise ShapeError(f"division by zero in {dim}", code="W280")

    def shape(self, dims: Sequence[Dim]) -> tuple[int, ...]:
        """The sizes of a shape; ShapeError W221 for a negative one."""
        sizes = tuple(self.size(dim) for dim in dims)
        for dim, size in zip(dims, sizes, strict=True):
            if size < 0:
                raise ShapeError(f"a shape has the negative size {dim} = {size}", code="W221")
        return sizes

    def match(self, value: Any, ty: abi.Type, what: str, code: str = "W222") -> None:
        """Check that a value has a type, and give the symbols that it binds their values; ShapeError W222."""
        self.match_all([(value, ty, what)], code)

    def match_all(self, given: Sequence[tuple[Any, abi.Type, str]], code: str = "W222") -> None:
        """Check (value, type, what it is) triples together: a symbol may be bound by a later one than it is used in."""
        claims = [(what, claim) for value, ty, what in given for claim in _claims(value, ty, what, code)]
        open_claims, values = [], self.values
        for item in claims:
            what, (dims, sizes, *_) = item
            settled = True
            for dim, size in zip(dims, sizes, strict=True):
                if isinstance(dim, str):
                    if dim not in values:
                        self.bind(dim, size, what)
                elif not isinstance(dim, _SETTLED):
                    settled = False
            if not settled:
                open_claims.append(item)
        while open_claims and any(self._solved(dims, sizes, what) for what, (dims, sizes, *_) in open_claims):
            pass
        for what, (dims, sizes, part, kind) in claims:
            for dim, size in zip(dims, sizes, strict=True):
                if dim is None or dim == size or (isinstance(dim, str) and values.get(dim) == size):
                    continue
                if any(name not in self.values for name in dim_names(dim)) or self._exactly(dim) != size:
                    raise _mismatch(what, kind, part, code, self.explain(dims))

    def bind(self, symbol: str, value: int, source: str) -> None:
        """Give a symbol its value."""
        self.values[symbol] = int(value)
        self.sources[symbol] = source

    def _solved(self, dims: Sequence[Dim], sizes: Sequence[int], what: str) -> bool:
        found = first_solved(dims, sizes, self.values)
        if found is not None:
            self.bind(*found, what)
        return found is not None

    def explain(self, dims: Sequence[Dim]) -> str:
        """The symbols of some dimensions with values and sources."""
        return ", ".join(
            f"{name}={self.values[name]} from {self.sources.get(name, 'the caller')}"
            if name in self.values
            else f"{name} has no value"
            for name in dict.fromkeys(name for dim in dims for name in dim_names(dim))
        )


def broken_relation(
    params: Sequence[abi.Parameter], args: Sequence[Any], messages: Sequence[Sequence[Sequence[str | int]]]
) -> str | None:
    """The message of the first size of an array that is not what the types of the parameters say, if there is one.

    `messages` are those of each argument and axis, as lists of texts, 0 for the size wanted and 1 for the one given.
    """
    symbols = Symbols()
    claims = [
        (dim, size, message)
        for param, arg, row in zip(params, args, messages, strict=False)
        if isinstance(param.type, abi.Buffer) and isinstance(arg, np.ndarray)
        for dim, size, message in zip(param.type.dims, arg.shape, row, strict=False)
    ]
    for dim, size, _ in claims:
        if isinstance(dim, str) and dim not in symbols.values:
            symbols.bind(dim, size, "")
    for dim, size, message in claims:
        wanted = evaluate_dim(dim, symbols.values) if dim is not None else size
        if wanted is not None and wanted != size:
            return "".join(part if isinstance(part, str) else str((wanted, size)[part]) for part in message)
    return None


def _mismatch(what: str, ty: abi.Type, value: Any, code: str, why: str = "") -> ShapeError:
    message = f"{what}: expected {ty}, got {value_text(value)}"
    return ShapeError(f"{message}; {why}" if why else message, code=code)


def _claims(
    value: Any, ty: abi.Type, what: str, code: str
) -> Iterator[tuple[Sequence[Dim], Sequence[int], Any, abi.Type]]:
    """(dims, sizes, value, type) of each sized part; ShapeError for another kind, dtype or rank."""
    if isinstance(ty, (abi.Tensor, abi.Buffer)):
        right = isinstance(value, np.ndarray) and _has_dtype(value, ty.dtype)
        if not right or (ty.rank >= 0 and value.ndim != ty.rank):
            raise _mismatch(what, ty, value, code)
        if ty.dims is not None:
            yield ty.dims, value.shape, value, ty
    elif isinstance(ty, abi.Shape):
        if not isinstance(value, tuple) or not all(map(is_size, value)) or (ty.rank >= 0 and len(value) != ty.rank):
            raise _mismatch(what, ty, value, code)
        if ty.dims is not None:
            yield ty.dims, value, value, ty
    elif isinstance(ty, abi.Tuple):
        if not isinstance(value, tuple) or len(value) != len(ty.fields):
            raise _mismatch(what, ty, value, code)
        for item, field in zip(value, ty.fields, strict=True):
            yield from _claims(item, field, what, code)
    elif isinstance(ty, abi.Scalar):
        if ty.is_size and not is_size(value):
            raise _mismatch(what, ty, value, code)
        if ty.dim is not None and is_size(value):
            yield ty.dims, [value], value, ty
    elif (isinstance(ty, abi.String) and not isinstance(value, str)) or (
        isinstance(ty, abi.Function) and not is_function(value)
    ):
        raise _mismatch(what, ty, value, code)


def _has_dtype(array: np.ndarray, dtype: str | None) -> bool:
    """Whether an array is a tensor of a dtype, or of any where none is stated."""
    return tensor_dtype(array) is not None if dtype is None else holds(array, dtype)


def converted(value: Any, ty: abi.Type, what: str) -> Any:
    """What a function outside the program returned, as a value of the program; ShapeError W223.

    It has the kind, the dtypes and the ranks of its type; sizes are compared by `Symbols.match`.
    """
    made = _formed(value, ty, what)
    for _ in _claims(made, ty, what, "W223"):
        pass
    return made


def _formed(value: Any, ty: abi.Type, what: str) -> Any:
    """A value in the form that programs use for a type; ShapeError W223 for one that has no such form."""
    if isinstance(ty, abi.Tensor):
        array = as_array(value)
        if array is None or (not ty.is_static and array.ndim > DYNAMIC_RANK):
            raise _mismatch(what, ty, value, "W223")
        array = array if array is value else np.array(array)  # memory of somebody's else is copied
        return array if ty.dtype is None else stored(array, ty.dtype)
    if isinstance(ty, abi.Tuple):
        if not ty.fields:
            return ()
        items = offered_items(value)
        if items is None or len(items) != len(ty.fields):
            raise _mismatch(what, ty, value, "W223")
        return tuple(_formed(item, field, what) for item, field in zip(items, ty.fields, strict=True))
    if isinstance(ty, abi.Shape):
        sizes = shape_sizes(value, ty.rank)
        if sizes is None:
            raise _mismatch(what, ty, value, "W223")
        return tuple(sizes)
    if isinstance(ty, abi.Scalar):
        scalar = check_scalar(value, ty.dtype)
        if scalar is None:
            raise _mismatch(what, ty, value, "W223")
        return scalar
    return value
