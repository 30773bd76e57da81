"""The processor that this process runs on: memory of the process, copies by NumPy, machine code called by ctypes.

Its work is done when a call returns, so that a stream of it is always at its end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.errors import OutOfMemoryError
from weft.runtime.device.base import Device, Launcher, Memory, Stream, register_device
from weft.support.array_memory import aligned_bytes

__all__ = ["CPU", "HostMemory", "Processor"]

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class HostMemory:
    """Memory of this process, as an array of bytes."""

    __slots__ = ("address", "data", "size")

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.size: int = data.nbytes
        self.address: int = data.__array_interface__["data"][0]

    def array(self, shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
        """All of it as an array."""
        return self.data.view(dtype).reshape(tuple(shape))


class _Done:
    """A stream without work."""

    def synchronize(self) -> None:
        """Nothing is under way."""


class Processor(Device):
    """The device `cpu`."""

    name = "cpu"

    def allocate(self, size: int) -> HostMemory:
        """Fresh memory of the process."""
        try:
            return HostMemory(aligned_bytes(size))
        except (MemoryError, ValueError):  # more than there is, more than an array can have
            raise OutOfMemoryError(f"no memory: {size} bytes", code="W950") from None

    def write(self, target: Memory, source: np.ndarray, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy an array into memory."""
        place = _bytes(target)[offset : offset + source.nbytes]
        place.view(source.dtype).reshape(source.shape)[...] = source

    def read(self, target: np.ndarray, source: Memory, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy memory into an array."""
        target[...] = _bytes(source)[offset : offset + target.nbytes].view(target.dtype).reshape(target.shape)

    def copy(self, target: Memory, source: Memory, size: int, stream: Stream | None = None) -> None:
        """Copy from memory to memory."""
        _bytes(target)[:size] = _bytes(source)[:size]

    def stream(self) -> Stream:
        """A stream that is always at its end."""
        return _Done()

    def launcher(self, address: int, keep: Any) -> Launcher:
        """Machine code as a function of ctypes, which releases the GIL."""
        entry = _ENTRY(address)
        entry.keep = keep  # pyright: ignore[reportAttributeAccessIssue]
        return entry


def _bytes(memory: Memory) -> np.ndarray:
    assert isinstance(memory, HostMemory)
    return memory.data


CPU = Processor()
register_device(CPU)
