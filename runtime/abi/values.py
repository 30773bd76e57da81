"""Python values to the words of compiled code and back (the words are those of `weft.runtime.abi.frame`).

Arrays are taken as they are when they are dense, aligned and in native byte order; others are copied, and copied back
where the function writes them. Nothing is ever cast. A result that compiled code allocated becomes an array over that
memory, freed with the array; one that belongs to somebody else (an argument handed back, a constant) is copied.
"""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.dtypes import conversion_hint, held, offered_items, presented, shares_bits, stored
from weft.errors import ArgumentError, OutOfMemoryError, tuple_words, value_words
from weft.runtime.abi import types as abi
from weft.runtime.abi.closure import is_function
from weft.runtime.abi.dims import Dim, shape_text
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.runtime.abi.scalars import (
    DTYPE_CODES,
    DTYPE_NAMES,
    check_scalar,
    is_size,
    scalar_word,
    storage,
    word_scalar,
)
from weft.runtime.abi.signature import Binder
from weft.support.dlpack import offered_array
from weft.support.records import dataclass, record

__all__ = ["DTYPE_CODES", "ArgumentPacker", "FastPath", "Occupied", "copy_into", "unpack"]


def value_text(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"{held(value) or value.dtype}[{shape_text(value.shape)}]"
    if isinstance(value, np.generic):
        return f"{value.dtype}[()]"
    if isinstance(value, (tuple, list)) and _is_shape(value):
        return f"shape {shape_text(value)}"
    return tuple_words(value, _items, value_text) if isinstance(value, tuple) else value_words(value)


def _is_shape(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(item, int) and abs(item) < 1 << 64 for item in value)


def _items(value: Any) -> tuple[Any, ...] | None:
    """What a tuple holds that is no shape."""
    return value if isinstance(value, tuple) and not _is_shape(value) else None


@dataclass
class ArgumentPacker:
    """The words of one call's arguments, and what must stay alive or be copied back afterwards."""

    function: str
    binder: Binder = field(init=False)
    words: list[int] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    copy_back: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    read_only: list[tuple[int, int]] = field(default_factory=list)
    buffers: list[tuple[np.ndarray, np.ndarray, bool, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.binder = Binder(self.function)

    def pack(self, ty: abi.Type, value: Any, position: int, name: str) -> None:
        """Append the words of a value of a type; ArgumentError when it does not have it."""
        _PACK[type(ty)](self, ty, value, position, name)

    def refuse(
        self, ty: abi.Type, value: Any, position: int, name: str, code: str = "W851", hint: str | None = None
    ) -> ArgumentError:
        """The error for a value that does not have its type."""
        return self.binder.refuse(position, name, str(ty), value_text(value), code=code, hint=hint)

    def _array(self, ty: abi.Tensor | abi.Buffer, value: Any, position: int, name: str, written: bool) -> np.ndarray:
        array = as_array(value)
        if array is None:
            raise self.refuse(ty, value, position, name, hint=conversion_hint(name, value, ty.dtype))
        dtype, dims, rank = ty.dtype, ty.dims, ty.rank
        given = array
        if dtype is not None and array.dtype != storage(dtype):
            array = stored(array, dtype)
            if written and array is not given and not shares_bits(dtype):
                self.require_writable(given, position, name)
                self.copy_back.append((given, array))
            if array is given:
                raise self.refuse(ty, array, position, name, hint=conversion_hint(name, array, dtype))
        if rank >= 0 and array.ndim != rank:
            raise self.refuse(ty, given, position, name, code="W852")
        if dims is not None:
            self.binder.add(ty, array.shape, value_text(given), position, name)
        return array

    def _tensor(self, ty: abi.Tensor, value: Any, position: int, name: str) -> None:
        use = ty.use
        given = self._array(ty, value, position, name, use == "written")
        if use == "written":
            self.require_writable(given, position, name)
        array = np.array(given, order="C", copy=True) if use == "copied" else dense(given)
        if use == "written" and array is not given:
            self.copy_back.append((given, array))
        if not given.flags.writeable:
            self.read_only.append((address(array), array.nbytes))
        self.keep.append(array)
        if ty.is_static:
            self.words += (address(array), 0, *array.shape)
        else:
            self.words += self._dynamic(array, ty, position, name)

    def require_writable(self, array: np.ndarray, position: int, name: str) -> None:
        """ArgumentError W853 for a read-only array that the function writes."""
        if not array.flags.writeable:
            message = f"argument {position} `{name}` of {self.function} is read-only, and the function writes it"
            raise ArgumentError(message, code="W853")

    def _dynamic(self, array: np.ndarray, ty: abi.Tensor, position: int, name: str) -> list[int]:
        if array.ndim > DYNAMIC_RANK:
            raise self.refuse(
                ty, array, position, name, code="W852", hint=f"compiled code takes ranks up to {DYNAMIC_RANK}"
            )
        code = DTYPE_CODES.get(ty.dtype or array.dtype.name)
        if code is None:
            raise self.refuse(ty, array, position, name)
        return [address(array), 0, array.ndim, code, *array.shape, *[0] * (DYNAMIC_RANK - array.ndim)]

    def _buffer(self, ty: abi.Buffer, value: Any, position: int, name: str) -> None:
        strides, written = ty.strides, ty.written
        array = self._array(ty, value, position, name, written)
        if written:
            self.require_writable(array, position, name)
        size = array.itemsize
        if (
            strides is not None
            and array.dtype.isnative
            and array.flags.aligned
            and not any(s % size for s in array.strides)
        ):
            steps = [stride // size for stride in array.strides]
            if all(
                not isinstance(want, int) or want == got or extent <= 1
                for want, got, extent in zip(strides, steps, array.shape, strict=True)
            ):
                self.keep.append(array)
                self.buffers.append((array, array, written, len(self.words)))
                self.words += (address(array), 0, *array.shape, *steps)
                self._strides(strides, steps, array, position, name)
                return
        plain = dense(array)
        self.keep.append(plain)
        if plain is not array and written:
            self.copy_back.append((array, plain))
        self.buffers.append((plain, array, written, len(self.words)))
        self.words += (address(plain), 0, *plain.shape)
        if strides is not None:
            steps = [stride // size for stride in plain.strides]
            self.words += steps
            self._strides(strides, steps, plain, position, name)

    def _strides(
        self, strides: Sequence[Dim], steps: Sequence[int], array: np.ndarray, position: int, name: str
    ) -> None:
        """The strides of a buffer are claims like its sizes; a fixed one only where there is a second element."""
        counted = [
            axis
            for axis, (stride, extent) in enumerate(zip(strides, array.shape, strict=True))
            if stride is not None and (not isinstance(stride, int) or (extent > 1 and array.size))
        ]
        wanted, got = tuple(strides[axis] for axis in counted), [steps[axis] for axis in counted]
        if counted:
            self.binder.add(abi.Strides(wanted), got, f"strides {tuple(steps)}", position, name)

    def separate(self) -> None:
        """Give each buffer that is written memory of its own where it overlaps another one."""
        for index, (plain, given, written, place) in enumerate(self.buffers):
            others = (other for j, (other, *_) in enumerate(self.buffers) if j != index)
            if written and plain is given and any(np.may_share_memory(plain, other) for other in others):
                copy = np.array(plain, order="C", copy=True)
                if copy.strides != plain.strides:
                    continue  # a strided view that the function reads as it is
                self.keep.append(copy)
                self.copy_back.append((given, copy))
                self.words[place] = address(copy)

    def _shape(self, ty: abi.Shape, value: Any, position: int, name: str) -> None:
        dims, rank = ty.dims, ty.rank
        items = offered_items(value)
        sizes = None if items is None or not all(map(is_size, items)) else [int(item) for item in items]
        if sizes is None or not all(map(is_size, sizes)):
            raise self.refuse(ty, value, position, name, hint="pass a tuple of nonnegative ints")
        if (rank >= 0 and len(sizes) != rank) or len(sizes) > max(rank, DYNAMIC_RANK):
            hint = None if rank >= 0 else f"compiled code takes ranks up to {DYNAMIC_RANK}"
            raise self.refuse(ty, tuple(sizes), position, name, code="W852", hint=hint)
        if dims is not None:
            self.binder.add(ty, sizes, value_text(tuple(sizes)), position, name)
        if rank >= 0:
            self.words += sizes
        else:
            self.words += [len(sizes), *sizes, *[0] * (DYNAMIC_RANK - len(sizes))]

    def _prim(self, ty: abi.Scalar, value: Any, position: int, name: str) -> None:
        if ty.dtype == "handle":
            return self._memory(ty, value, position, name)
        scalar = check_scalar(value, ty.dtype)
        if scalar is None:
            raise self.refuse(ty, value, position, name)
        if ty.is_size and int(scalar) < 0:
            raise self.refuse(ty, value, position, name, hint="it is a size, which is not negative", code="W852")
        if ty.dim is not None:
            self.binder.add(ty, [int(scalar)], value_text(scalar), position, name)
        self.words.append(scalar_word(scalar, ty.dtype))

    def _memory(self, ty: abi.Scalar, value: Any, position: int, name: str) -> None:
        """The address of an array that is as large as what is looked at there."""
        needed = ty.dim if isinstance(ty.dim, int) else 0
        value = value if type(value) is np.ndarray or not isinstance(value, np.ndarray) else np.asarray(value)
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise self.refuse(ty, value, position, name, hint="behind a handle there is an array of numbers")
        if not value.flags.c_contiguous or not value.flags.writeable or value.nbytes < needed:
            hint = f"behind the handle there are {needed} bytes in a row that can be written"
            raise self.refuse(ty, value, position, name, hint=hint, code="W852")
        self.keep.append(value)
        self.words.append(scalar_word(address(value), "handle"))

    def _tuple(self, ty: abi.Tuple, value: Any, position: int, name: str) -> None:
        items = offered_items(value)
        if items is None or len(items) != len(ty.fields):
            raise self.refuse(ty, value, position, name)
        for index, (item, part) in enumerate(zip(items, ty.fields, strict=True)):
            self.pack(part, item, position, f"{name}[{index}]")

    def _string(self, ty: abi.String, value: Any, position: int, name: str) -> None:
        if not isinstance(value, str):
            raise self.refuse(ty, value, position, name)
        self._object(ty, value, position, name)

    def _function(self, ty: abi.Function, value: Any, position: int, name: str) -> None:
        if not is_function(value):
            raise self.refuse(ty, value, position, name)
        self._object(ty, value, position, name)

    def _object(self, ty: abi.Object | abi.String | abi.Function, value: Any, position: int, name: str) -> None:
        self.words.append(len(self.objects))
        self.objects.append(value)


@record
class PlainArray:
    """Dense arrays of one dtype, whose sizes are numbers and symbols."""

    dtype: str
    dims: tuple[int | str, ...]
    written: bool


def plain_array(ty: abi.Type) -> PlainArray | None:
    """A type as `PlainArray`; None where its values are something else, or are copied or copied back."""
    if isinstance(ty, abi.Tensor):
        plain = not ty.use
    else:
        plain = isinstance(ty, abi.Buffer) and ty.strides is None
    if not plain or ty.dtype is None or ty.dims is None:  # type: ignore[union-attr]
        return None
    dims = tuple(dim for dim in ty.dims if isinstance(dim, (int, str)))  # type: ignore[union-attr]
    written = isinstance(ty, abi.Buffer) and ty.written
    return PlainArray(ty.dtype, dims, written) if len(dims) == len(ty.dims) else None  # type: ignore[union-attr]


class FastPath:
    """Arguments that are what most calls pass: dense writable arrays of the right dtypes, rank and sizes.

    `words` gives None for anything else, which `ArgumentPacker` then accepts or refuses.
    """

    def __init__(self, plans: Sequence[tuple[np.dtype[Any], int, Sequence[int | str]]], written: Sequence[int]) -> None:
        self.plans = plans
        self.written = written

    @staticmethod
    def of(types: Sequence[abi.Type]) -> FastPath | None:
        """The fast path of parameters that are all tensors with plain dimensions; None where it does not apply."""
        arrays = [array for ty in types if (array := plain_array(ty)) is not None]
        if len(arrays) < len(types):
            return None
        plans = [(storage(array.dtype), len(array.dims), array.dims) for array in arrays]
        return FastPath(plans, [i for i, array in enumerate(arrays) if array.written])

    def words(self, args: Sequence[Any]) -> list[int] | None:
        """The words of the arguments, or None."""
        if len(args) != len(self.plans):
            return None
        symbols: dict[str, int] = {}
        words: list[int] = []
        for array, (dtype, rank, dims) in zip(args, self.plans, strict=True):
            if type(array) is not np.ndarray or not array.flags.carray:
                return None
            if array.dtype is not dtype and array.dtype != dtype:  # raw bits may name the type they hold
                return None
            shape = array.shape
            if len(shape) != rank or not array.size:
                return None
            for dim, size in zip(dims, shape, strict=True):
                if (dim if isinstance(dim, int) else symbols.setdefault(dim, size)) != size:
                    return None
            memory: Any = array  # an object with the buffer protocol, which is three times quicker than its address
            words.append(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
            words.append(0)
            words += shape
        for position in self.written:
            if any(np.may_share_memory(args[position], other) for i, other in enumerate(args) if i != position):
                return None
        return words


class Occupied:
    """The memory that arrays span, as disjoint ranges of addresses in order.

    >>> memory = np.zeros(8)
    >>> occupied = Occupied([memory[:4]])
    >>> occupied.take(memory[3:6]), occupied.take(memory[4:6]), occupied.take(memory[5:])
    (False, True, False)
    """

    def __init__(self, arrays: Iterable[np.ndarray]) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for start, end in sorted(map(_span_of, arrays)):
            if self.ends and start < self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            elif start < end:
                self.starts.append(start)
                self.ends.append(end)

    def take(self, array: np.ndarray) -> bool:
        """Add the memory of an array if it is apart from all before; whether it was."""
        start, end = _span_of(array)
        place = bisect_left(self.starts, end)
        if place and self.ends[place - 1] > start:
            return False
        self.starts.insert(place, start)
        self.ends.insert(place, end)
        return True


def _span_of(array: np.ndarray) -> tuple[int, int]:
    """The addresses from the first byte to behind the last."""
    if not array.size:
        return 0, 0
    steps = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    start = array.__array_interface__["data"][0]
    low, high = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    return start + low, start + high + array.itemsize


_PACK: dict[type, Callable[[ArgumentPacker, Any, Any, int, str], None]] = {
    abi.Tensor: ArgumentPacker._tensor,
    abi.Buffer: ArgumentPacker._buffer,
    abi.Shape: ArgumentPacker._shape,
    abi.Scalar: ArgumentPacker._prim,
    abi.Tuple: ArgumentPacker._tuple,
    abi.String: ArgumentPacker._string,
    abi.Function: ArgumentPacker._function,
    abi.Object: ArgumentPacker._object,
}


def as_array(value: Any) -> np.ndarray | None:
    """An array over the same memory; None for what offers none."""
    if type(value) is np.ndarray:
        return value
    return offered_array(value)


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself when it is row-major, aligned and in native byte order, else such a copy; W950 without room."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    try:
        return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)
    except MemoryError:  # one of few bytes may have more elements than there is memory for
        message = f"no memory for a copy of {value_text(array)}: {array.nbytes} bytes"
        raise OutOfMemoryError(message, code="W950") from None


def address(array: np.ndarray) -> int:
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


@lru_cache(1024)
def _block_type(size: int) -> Any:
    """The type of blocks of so many bytes, with the buffer protocol: an array is made of it in half of the time that
    one with `__array_interface__` takes."""
    return type("Block", (ctypes.c_uint8 * size,), {"__slots__": ("_held",)})


def _block_array(data: int, owner: int, shape: tuple[int, ...], dtype: str, hold: Callable[[int], object]) -> Any:
    """An array over memory that is released with it."""
    kind = storage(dtype)
    block = _block_type(math.prod(shape) * kind.itemsize).from_address(data)
    block._held = hold(owner)
    return np.ndarray(shape, kind, block)


def tensor_parts(ty: abi.Tensor, words: Sequence[int]) -> tuple[int, int, tuple[int, ...], str]:
    """(data, owner, shape, dtype) of a tensor."""
    if ty.dtype is not None and ty.rank >= 0:
        return words[0], words[1], tuple(words[2 : 2 + ty.rank]), ty.dtype
    return words[0], words[1], tuple(words[4 : 4 + words[2]]), DTYPE_NAMES[words[3]]


def view_memory(data: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array over memory that the caller keeps alive."""
    kind = storage(dtype)
    count = math.prod(shape)
    if count == 0:
        return np.empty(shape, kind)
    source: Any = (ctypes.c_uint8 * (count * kind.itemsize)).from_address(data)
    return np.ndarray(shape, kind, source)


def unpack(
    ty: abi.Type,
    words: Sequence[int],
    hold: Callable[[int], object],
    objects: Sequence[Any],
    places: Mapping[int, np.ndarray] = MappingProxyType({}),
) -> Any:
    """The Python value of a result; takes over the references that the words hold, `hold` each one of them.

    `places` are arrays of the caller by address: what was written there is the array itself.
    """
    if isinstance(ty, abi.Tensor):
        data, owner, shape, dtype = tensor_parts(ty, words)
        if owner:
            return presented(_block_array(data, owner, shape, dtype, hold), dtype)
        if data in places and places[data].shape == shape:
            return places[data]
        return presented(view_memory(data, shape, dtype).copy(), dtype)
    if isinstance(ty, abi.Shape):
        return tuple(words[1 : 1 + words[0]] if ty.rank < 0 else words[: ty.rank])
    if isinstance(ty, abi.Scalar):
        return word_scalar(words[0], ty.dtype)
    if isinstance(ty, abi.Tuple):
        values, start = [], 0
        for part in ty.fields:
            size = part.words
            values.append(unpack(part, words[start : start + size], hold, objects, places))
            start += size
        return tuple(values)
    return objects[words[0]]


def copy_into(out: Any, value: Any, where: str, function: str) -> Any:
    """Copy a result into the caller's arrays (`out=`); ArgumentError W854 when they do not fit."""
    if isinstance(value, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(value):
            got = f"{len(out)} arrays" if isinstance(out, (tuple, list)) else type(out).__name__
            raise ArgumentError(f"{where} of {function}: expected {len(value)} arrays, got {got}", code="W854")
        return tuple(
            copy_into(o, v, f"{where}[{i}]", function) for i, (o, v) in enumerate(zip(out, value, strict=True))
        )
    if not isinstance(value, np.ndarray):
        return value
    raw = stored(value, value.dtype.name)
    array = np.asarray(out) if isinstance(out, np.ndarray) else None  # whatever a class of its own says of its shape
    if array is None or array.dtype not in (value.dtype, raw.dtype) or array.shape != value.shape:
        got = value_text(out if array is None else array)
        raise ArgumentError(f"{where} of {function}: expected {value_text(value)}, got {got}", code="W854")
    if not array.flags.writeable:
        raise ArgumentError(f"{where} of {function} is read-only", code="W853")
    if _shares_elements(array):
        message = f"{where} of {function}: its elements share memory (strides {array.strides}), and hold no result"
        raise ArgumentError(message, code="W854")
    if out is not value:
        array[...] = value if array.dtype == value.dtype else raw
    return out


def _shares_elements(array: np.ndarray) -> bool:
    """Whether two elements may lie in the same bytes: a dimension steps by less than those inside it span."""
    span = array.itemsize
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if size > 1 and stride < span and array.size:
            return True
        span += stride * (size - 1)
    return False
