"""Python values to the words of compiled code and back (the words are those of `weft.runtime.abi.frame`).

Arrays are taken as they are when they are dense, aligned and in native byte order; others are copied, and copied back
where the function writes them. Nothing is ever cast. A result that compiled code allocated becomes an array over that
memory, freed with the array; one that belongs to somebody else (an argument handed back, a constant) is copied.
"""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from weft.dtypes import offered_array, presented, shares_bits, stored
from weft.errors import ArgumentError
from weft.runtime.abi.frame import DYNAMIC_RANK
from weft.runtime.abi.signature import Binder, expected_text, shape_text

__all__ = ["DTYPE_CODES", "ArgumentPacker", "FastPath", "Occupied", "copy_into", "unpack"]

_CODES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4", "uint4", "int1",
    "uint1", "int2", "uint2",
)  # fmt: skip
DTYPE_CODES = {name: code for code, name in enumerate(_CODES, 1)}
DTYPE_NAMES = {code: name for name, code in DTYPE_CODES.items()}
_NUMPY = {
    "bool",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
}


def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy dtype of the elements of an array (raw bits for types NumPy lacks)."""
    if dtype in _NUMPY:
        return np.dtype(dtype)
    if dtype.startswith("int"):
        return np.dtype("int8")
    return np.dtype("uint16" if dtype == "bfloat16" else "uint8")


def value_text(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{shape_text(value.shape)}]"
    if isinstance(value, np.generic):
        return f"{value.dtype}[()]"
    if isinstance(value, (tuple, list)) and value and all(isinstance(item, int) for item in value):
        return f"shape {shape_text(value)}"
    if isinstance(value, tuple):
        return f"tuple({', '.join(map(value_text, value))})"
    return f"{type(value).__name__} {value!r}"[:80]


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

    def pack(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        """Append the words of a value of a type; ArgumentError when it does not have it."""
        _PACK[ty[0]](self, ty, value, position, name)

    def refuse(
        self, ty: Sequence[Any], value: Any, position: int, name: str, code: str = "W851", hint: str | None = None
    ) -> ArgumentError:
        """The error for a value that does not have its type."""
        return self.binder.refuse(position, name, expected_text(ty), value_text(value), code=code, hint=hint)

    def _array(self, ty: Sequence[Any], value: Any, position: int, name: str, written: bool) -> np.ndarray:
        array = as_array(value)
        if array is None:
            hint = "pass a NumPy array, or anything with __dlpack__ or __array__"
            raise self.refuse(ty, value, position, name, hint=hint)
        dtype, dims, rank = ty[1], ty[2], len(ty[2]) if ty[2] is not None else ty[3]
        if dtype is not None and array.dtype != storage(dtype):
            given, array = array, stored(array, dtype)
            if written and array is not given and not shares_bits(dtype):
                self.require_writable(given, position, name)
                self.copy_back.append((given, array))
            if array is given:
                hint = None if dtype not in _NUMPY else f"convert it first: {name}.astype({dtype!r})"
                raise self.refuse(ty, array, position, name, hint=hint)
        if rank >= 0 and array.ndim != rank:
            raise self.refuse(ty, array, position, name, code="W852")
        if dims is not None:
            self.binder.add(ty, array.shape, value_text(array), position, name)
        return array

    def _tensor(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        use = ty[4] if len(ty) > 4 else ""
        given = self._array(ty, value, position, name, use == "written")
        if use == "written":
            self.require_writable(given, position, name)
        array = np.array(given, order="C", copy=True) if use == "copied" else dense(given)
        if use == "written" and array is not given:
            self.copy_back.append((given, array))
        if not given.flags.writeable:
            self.read_only.append((address(array), array.nbytes))
        self.keep.append(array)
        if ty[1] is not None and (ty[2] is not None or ty[3] >= 0):
            self.words += (address(array), 0, *array.shape)
        else:
            self.words += self._dynamic(array, ty, position, name)

    def require_writable(self, array: np.ndarray, position: int, name: str) -> None:
        """ArgumentError W853 for a read-only array that the function writes."""
        if not array.flags.writeable:
            message = f"argument {position} `{name}` of {self.function} is read-only, and the function writes it"
            raise ArgumentError(message, code="W853")

    def _dynamic(self, array: np.ndarray, ty: Sequence[Any], position: int, name: str) -> list[int]:
        if array.ndim > DYNAMIC_RANK:
            raise self.refuse(
                ty, array, position, name, code="W852", hint=f"compiled code takes ranks up to {DYNAMIC_RANK}"
            )
        code = DTYPE_CODES.get(ty[1] or array.dtype.name)
        if code is None:
            raise self.refuse(ty, array, position, name)
        return [address(array), 0, array.ndim, code, *array.shape, *[0] * (DYNAMIC_RANK - array.ndim)]

    def _buffer(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        _, _, _, strides, written = ty
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
        self, strides: Sequence[Any], steps: Sequence[int], array: np.ndarray, position: int, name: str
    ) -> None:
        """The strides of a buffer are claims like its sizes; a fixed one only where there is a second element."""
        counted = [
            axis
            for axis, (stride, extent) in enumerate(zip(strides, array.shape, strict=True))
            if stride is not None and (not isinstance(stride, int) or (extent > 1 and array.size))
        ]
        wanted, got = [strides[axis] for axis in counted], [steps[axis] for axis in counted]
        if counted:
            self.binder.add(["strides", wanted], got, f"strides {tuple(steps)}", position, name)

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

    def _shape(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        _, dims, rank = ty
        if not isinstance(value, (tuple, list)) or not all(is_size(item) for item in value):
            raise self.refuse(ty, value, position, name, hint="pass a tuple of nonnegative ints")
        sizes = [int(item) for item in value]
        if (rank >= 0 and len(sizes) != rank) or len(sizes) > max(rank, DYNAMIC_RANK):
            hint = None if rank >= 0 else f"compiled code takes ranks up to {DYNAMIC_RANK}"
            raise self.refuse(ty, tuple(sizes), position, name, code="W852", hint=hint)
        if dims is not None:
            self.binder.add(ty, sizes, value_text(tuple(sizes)), position, name)
        if rank >= 0:
            self.words += sizes
        else:
            self.words += [len(sizes), *sizes, *[0] * (DYNAMIC_RANK - len(sizes))]

    def _prim(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        if ty[1] == "handle" and isinstance(value, np.ndarray):
            self.keep.append(value)
            value = address(value)
        scalar = check_scalar(value, ty[1])
        if scalar is None:
            raise self.refuse(ty, value, position, name)
        if ty[3:] == ["size"] and int(scalar) < 0:
            raise self.refuse(ty, value, position, name, hint="it is a size, which is not negative", code="W852")
        if ty[2] is not None:
            self.binder.add(ty, [int(scalar)], value_text(scalar), position, name)
        self.words.append(scalar_word(scalar, ty[1]))

    def _tuple(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        if not isinstance(value, (tuple, list)) or len(value) != len(ty) - 1:
            raise self.refuse(ty, value, position, name)
        for index, (item, kind) in enumerate(zip(value, ty[1:], strict=True)):
            self.pack(kind, item, position, f"{name}[{index}]")

    def _string(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        if not isinstance(value, str):
            raise self.refuse(ty, value, position, name)
        self._object(ty, value, position, name)

    def _object(self, ty: Sequence[Any], value: Any, position: int, name: str) -> None:
        self.words.append(len(self.objects))
        self.objects.append(value)


class FastPath:
    """Arguments that are what most calls pass: dense writable arrays of the right dtypes, rank and sizes.

    `words` gives None for anything else, which `ArgumentPacker` then accepts or refuses.
    """

    def __init__(self, plans: Sequence[tuple[np.dtype[Any], int, Sequence[Any]]], written: Sequence[int]) -> None:
        self.plans = plans
        self.written = written

    @staticmethod
    def of(types: Sequence[Sequence[Any]]) -> FastPath | None:
        """The fast path of parameters that are all tensors with plain dimensions; None where it does not apply."""
        plans = []
        for ty in types:
            if ty[0] not in ("tensor", "buffer") or (ty[3] is not None if ty[0] == "buffer" else len(ty) > 4):
                return None
            dtype, dims = ty[1], ty[2]
            if dtype is None or dims is None or not all(isinstance(dim, (int, str)) for dim in dims):
                return None
            plans.append((storage(dtype), len(dims), dims))
        return FastPath(plans, [i for i, ty in enumerate(types) if ty[0] == "buffer" and ty[4]])

    def words(self, args: Sequence[Any]) -> list[int] | None:
        """The words of the arguments, or None."""
        if len(args) != len(self.plans):
            return None
        symbols: dict[str, int] = {}
        words: list[int] = []
        for array, (dtype, rank, dims) in zip(args, self.plans, strict=True):
            if type(array) is not np.ndarray or array.dtype is not dtype or not array.flags.carray:
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


_PACK: dict[str, Callable[[ArgumentPacker, Sequence[Any], Any, int, str], None]] = {
    "tensor": ArgumentPacker._tensor,
    "buffer": ArgumentPacker._buffer,
    "shape": ArgumentPacker._shape,
    "prim": ArgumentPacker._prim,
    "tuple": ArgumentPacker._tuple,
    "string": ArgumentPacker._string,
    "object": ArgumentPacker._object,
}


def as_array(value: Any) -> np.ndarray | None:
    """An array over the same memory; None for what offers none."""
    if type(value) is np.ndarray:
        return value
    return offered_array(value)


def dense(array: np.ndarray) -> np.ndarray:
    """The array itself when it is row-major, aligned and in native byte order, else such a copy."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)


def address(array: np.ndarray) -> int:
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


def is_size(value: Any) -> bool:
    """Whether a value is a nonnegative integer (and no bool)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < 2**63


def shape_sizes(value: Any, rank: int) -> list[int] | None:
    """The sizes of a shape of a rank, or of any up to `DYNAMIC_RANK` where that is -1; None for what is no such shape.

    >>> shape_sizes((2, 3), 2), shape_sizes((1.5,), 1), shape_sizes(range(17), -1)
    ([2, 3], None, None)
    """
    if not isinstance(value, (tuple, list)) or not all(map(is_size, value)):
        return None
    fits = len(value) == rank if rank >= 0 else len(value) <= DYNAMIC_RANK
    return [int(size) for size in value] if fits else None


def check_scalar(value: Any, dtype: str) -> Any:
    """A number as a value of the dtype, or None when its kind or range does not fit."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    if isinstance(value, np.generic):
        if value.dtype.name != dtype and not (isinstance(value, np.integer) and "int" in dtype):
            return None
        value = value.item()
    if dtype == "bool":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if "int" in dtype:
        bits = int(dtype.lstrip("uint"))
        low, high = (0, 1 << bits) if dtype.startswith("u") else (-(1 << (bits - 1)), 1 << (bits - 1))
        return value if isinstance(value, int) and low <= value < high else None
    if dtype == "handle":
        return value if isinstance(value, int) else None
    return float(value) if isinstance(value, (int, float)) else None


_FORMATS = {"float64": ("<d", "<q"), "float32": ("<f", "<i"), "float16": ("<e", "<h")}


def scalar_word(value: Any, dtype: str) -> int:
    """The 64-bit word that holds a scalar."""
    if dtype in _FORMATS:
        with np.errstate(over="ignore"):
            exact = np.dtype(dtype).type(value)
        return int(exact.view(f"int{exact.dtype.itemsize * 8}"))
    if dtype == "bfloat16":
        bits = int(np.float32(value).view("uint32"))
        return (bits >> 16) | 0x40 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return value - (1 << 64) if isinstance(value, int) and value >= 1 << 63 else int(value)


def word_scalar(word: int, dtype: str) -> Any:
    """The Python scalar that a word holds."""
    if dtype in _FORMATS:
        float_format, _ = _FORMATS[dtype]
        size = struct.calcsize(float_format)
        return struct.unpack(float_format, struct.pack("<q", word)[:size])[0]
    if dtype == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", (word & 0xFFFF) << 16))[0]
    if dtype == "bool":
        return bool(word)
    return word & (1 << int(dtype[4:])) - 1 if dtype.startswith("uint") else word


class _Block:
    """Memory that compiled code allocated, as the base of an array; released with it."""

    __slots__ = ("__array_interface__", "_owner", "_release")

    def __init__(
        self, data: int, owner: int, shape: tuple[int, ...], dtype: np.dtype[Any], release: Callable[[int], None]
    ) -> None:
        self._owner, self._release = owner, release
        self.__array_interface__ = {"shape": shape, "typestr": dtype.str, "data": (data, False), "version": 3}

    def __del__(self) -> None:
        self._release(self._owner)


def words_of(ty: Sequence[Any]) -> int:
    """How many words a value of a type takes."""
    if ty[0] == "tensor":
        rank = len(ty[2]) if ty[2] is not None else ty[3]
        return 2 + rank if ty[1] is not None and rank >= 0 else 4 + DYNAMIC_RANK
    if ty[0] == "buffer":
        return 2 + len(ty[2]) * (1 if ty[3] is None else 2)
    if ty[0] == "shape":
        return ty[2] if ty[2] >= 0 else 1 + DYNAMIC_RANK
    return sum(map(words_of, ty[1:])) if ty[0] == "tuple" else 1


def tensor_parts(ty: Sequence[Any], words: Sequence[int]) -> tuple[int, int, tuple[int, ...], str]:
    """(data, owner, shape, dtype) of a tensor."""
    rank = len(ty[2]) if ty[2] is not None else ty[3]
    if ty[1] is not None and rank >= 0:
        return words[0], words[1], tuple(words[2 : 2 + rank]), ty[1]
    return words[0], words[1], tuple(words[4 : 4 + words[2]]), DTYPE_NAMES[words[3]]


def view_memory(data: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array over memory that the caller keeps alive."""
    kind = storage(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.empty(shape, kind)
    source = (ctypes.c_uint8 * (count * kind.itemsize)).from_address(data)
    return np.ctypeslib.as_array(source).view(kind).reshape(shape)


def unpack(
    ty: Sequence[Any], words: Sequence[int], release: Callable[[int], None], objects: Sequence[Any],
    places: Mapping[int, np.ndarray] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """The Python value of a result; takes over the references that the words hold.

    `places` are arrays of the caller by address: what was written there is the array itself.
    """
    kind = ty[0]
    if kind == "tensor":
        data, owner, shape, dtype = tensor_parts(ty, words)
        if owner:
            return presented(np.asarray(_Block(data, owner, shape, storage(dtype), release)), dtype)
        if data in places and places[data].shape == shape:
            return places[data]
        return presented(view_memory(data, shape, dtype).copy(), dtype)
    if kind == "shape":
        return tuple(words[1 : 1 + words[0]] if ty[2] < 0 else words[: ty[2]])
    if kind == "prim":
        return word_scalar(words[0], ty[1])
    if kind == "tuple":
        values, start = [], 0
        for item in ty[1:]:
            size = words_of(item)
            values.append(unpack(item, words[start : start + size], release, objects, places))
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
    fits = isinstance(out, np.ndarray) and out.dtype in (value.dtype, raw.dtype) and out.shape == value.shape
    if not fits:
        raise ArgumentError(f"{where} of {function}: expected {value_text(value)}, got {value_text(out)}", code="W854")
    if not out.flags.writeable:
        raise ArgumentError(f"{where} of {function} is read-only", code="W853")
    if out is not value:
        out[...] = value if out.dtype == value.dtype else raw
    return out
