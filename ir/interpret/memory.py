"""Memory that knows what was written: storage, typed views of it, and pointers.

    Memory   bytes, and one mark per element that says whether it was written (no marks: all of it was)
    View     a buffer at run time: memory seen through a dtype, shape, strides and offset
    Pointer  an address inside a memory, possibly of a known view

Marks are per element of the memory, or per byte (`unit` 1) where views of several widths share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import BoundsError, OutOfMemoryError
from weft.ir.interpret.scalars import wrap_array, wrapper
from weft.support.array_memory import memory_bytes
from weft.support.isolation import Typed
from weft.support.small_floats import decode, encode

__all__ = ["Memory", "Pointer", "View", "compact_strides"]

_POISON = 0xA5


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense row-major array."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Memory:
    """Bytes and marks. `strict`: reading an unmarked element is an error; else it is noted in `read_first`."""

    __slots__ = ("marks", "name", "raw", "read_first", "strict", "touched", "unit")

    def __init__(self, raw: np.ndarray, unit: int, *, written: bool, strict: bool, name: str) -> None:
        self.raw = raw
        self.unit = unit
        self.name = name
        self.marks: bytearray | None = None if written else bytearray(len(raw) // unit)
        self.strict = strict
        self.read_first = False
        self.touched = False

    @staticmethod
    def allocate(count: int, dtype: str, unit: int, name: str) -> Memory:
        """Poisoned memory for `count` elements of which none was written."""
        size = count * dtypes.item_bytes(dtype)
        try:
            raw = np.full(size, _POISON, np.uint8)
        except (MemoryError, ValueError):  # more than there is, more than an array can have
            raise OutOfMemoryError(f"no memory for the buffer {name}: {size} bytes", code="W950") from None
        return Memory(raw, unit, written=False, strict=True, name=name)

    @staticmethod
    def of_array(array: np.ndarray, unit: int, *, written: bool, strict: bool, name: str) -> Memory:
        """The memory of a C-contiguous array."""
        return Memory(memory_bytes(array), unit, written=written, strict=strict, name=name)

    def mark_all(self) -> None:
        """Take everything as written."""
        if self.marks is not None:
            self.marks[:] = b"\1" * len(self.marks)

    def first_unwritten(self) -> int | None:
        """The index of the first unmarked unit, if any."""
        if self.marks is None:
            return None
        found = self.marks.find(0)
        return None if found < 0 else found


class _ByteMarks:
    """Element marks over byte marks."""

    __slots__ = ("marks", "size")

    def __init__(self, marks: bytearray, size: int) -> None:
        self.marks = marks
        self.size = size

    def __getitem__(self, index: int) -> bool:
        start = index * self.size
        return 0 not in self.marks[start : start + self.size]

    def __setitem__(self, index: int, value: int) -> None:
        start = index * self.size
        self.marks[start : start + self.size] = b"\1" * self.size


class View:
    """A buffer at run time. Addresses are element indices into `data`, the memory seen through the dtype."""

    __slots__ = ("data", "dtype", "marks", "memory", "name", "offset", "read", "shape", "size", "strides", "write")

    def __init__(
        self,
        memory: Memory,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        offset: int,
        name: str,
    ) -> None:
        stored = dtypes.storage(dtype)
        usable = len(memory.raw) - len(memory.raw) % stored.itemsize
        self.memory = memory
        self.dtype = dtype
        self.data: np.ndarray = memory.raw[:usable].view(stored)
        self.size = len(self.data)
        self.shape = shape
        self.strides = compact_strides(shape) if strides is None else strides
        self.offset = offset
        self.name = name
        self.marks: Any = memory.marks
        if memory.marks is not None and memory.unit != stored.itemsize:
            self.marks = _ByteMarks(memory.marks, stored.itemsize)
        scalar_float = dtypes.is_float(dtype)
        if scalar_float and not dtypes.is_numpy(dtype):
            self.read, self.write = self._small_floats(dtype)
        else:
            self.read = self.data.__getitem__ if scalar_float else self.data.item
            self.write = self.data.__setitem__
            if not dtypes.is_numpy(dtype) and dtypes.is_integer(dtype):
                self.read = self._short_integers(wrapper(dtype))

    def _short_integers(self, wrap: Callable[[int], int]) -> Callable[[Any], Any]:
        """How an integer of less than a byte is read: of the bits above it, which a caller may set, nothing."""
        return lambda address: wrap(self.data.item(address))

    def _small_floats(self, dtype: str) -> tuple[Callable[[Any], Any], Callable[[Any, Any], None]]:
        """How an element of a type that NumPy lacks is read and written."""

        def read(address: Any) -> Any:
            return decode(self.data[address], dtype)

        def write(address: Any, value: Any) -> None:
            self.data[address] = encode(value, dtype)

        return read, write

    def read_lanes(self, addresses: np.ndarray) -> np.ndarray:
        """The elements at several addresses."""
        raw = self.data[addresses]
        if dtypes.is_float(self.dtype) and not dtypes.is_numpy(self.dtype):
            return decode(raw, self.dtype)
        return wrap_array(self.dtype)(raw) if dtypes.is_integer(self.dtype) else raw

    def write_lanes(self, addresses: np.ndarray, values: np.ndarray) -> None:
        """Store elements at several addresses, in the order of the lanes, and mark them."""
        if dtypes.is_float(self.dtype) and not dtypes.is_numpy(self.dtype):
            values = encode(values, self.dtype)
        for address, value in zip(addresses.tolist(), values, strict=True):
            self.data[address] = value
            if self.marks is not None:
                self.marks[address] = 1

    def elements(self) -> int:
        """How many elements the shape holds."""
        return math.prod(self.shape)

    def span(self) -> int:
        """How many elements lie from the first to the last."""
        if self.strides == compact_strides(self.shape):
            return self.elements()
        return 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))

    def dense(self) -> bool:
        """Whether the elements lie one after another in row-major order."""
        return self.strides == compact_strides(self.shape)

    def array(self) -> np.ndarray:
        """The elements as a NumPy array that shares the memory (raw bits for types that NumPy lacks)."""
        size = self.data.itemsize  # of one element the stride may be more than NumPy holds
        steps = [stride * size if n > 1 else size for n, stride in zip(self.shape, self.strides, strict=True)]
        self.check_reach()
        return np.lib.stride_tricks.as_strided(self.data[self.offset :], self.shape, steps)

    def check_reach(self) -> None:
        """BoundsError W903 when some element of the shape lies outside the memory."""
        if 0 in self.shape:
            return
        ends = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(min(0, end) for end in ends)
        high = self.offset + sum(max(0, end) for end in ends)
        if low < 0 or high >= self.size:
            raise BoundsError(
                f"buffer {self.name!r} of shape {self.shape} reaches elements {low} to {high} of {self.size}",
                code="W903",
            )

    def unwritten_index(self) -> tuple[int, ...] | None:
        """The index of the first element of the shape that was not written, if any."""
        if self.memory.first_unwritten() is None:
            return None
        for index in np.ndindex(*self.shape):
            if not self.marks[self.offset + sum(i * s for i, s in zip(index, self.strides, strict=True))]:
                return index
        return None


class Pointer:
    """An address: a memory and an offset in bytes, inside of the buffer `source` if it was taken from one.

    `view` is the buffer whose first element is meant, if it is the first one of a buffer.
    """

    __slots__ = ("memory", "offset", "source", "view")

    def __init__(self, memory: Memory, offset: int, view: View | None = None, source: View | None = None) -> None:
        self.memory = memory
        self.offset = offset
        self.view = view
        self.source = view if source is None else source

    def moved(self, count: int) -> Pointer:
        """The pointer `count` bytes further on."""
        return Pointer(self.memory, self.offset + count, source=self.source)

    def check_holds(self, view: View) -> None:
        """BoundsError W900 when a view that was declared to begin here leaves the memory that is behind the pointer."""
        source = self.source
        item, end = view.data.itemsize, len(self.memory.raw)
        if source is not None:
            end = (source.offset + source.span()) * source.data.itemsize
        start = view.offset * item
        inside = self.offset <= start and start + view.span() * item <= end and self.offset % item == 0
        if not inside or min(view.strides, default=0) < 0:
            name = self.memory.name if source is None else source.name
            raise BoundsError(f"the buffer {view.name!r} lies outside of its memory, {name!r}", code="W900")

    def element_offset(self, dtype: str) -> int:
        """The offset in elements of a dtype."""
        return self.offset // dtypes.item_bytes(dtype)

    def typed(self) -> Typed:
        """`array` with the dtype of its elements."""
        view = self.view or self.source
        return Typed(self.array(), None if view is None else view.dtype)

    def array(self) -> np.ndarray:
        """What is there as an array: the buffer that begins here, else a row of what is left of the one around it."""
        if self.view is not None:
            return self.view.array()
        source = self.source
        if source is None:
            return self.memory.raw[self.offset :]
        start = self.offset // source.data.itemsize
        return source.data[start : source.offset + source.span()]
