"""Devices: where the memory of programs is, how it is copied, in what order work happens, how code is started.

    device ::= allocate    fresh memory of so many bytes, which lives as long as the object
             | write, read, copy    bytes from the host, to the host, within the device; in order of a stream
             | stream      work in order; `synchronize` waits until all of it is done
             | launcher    code at an address as a function (frame, arguments, results) -> status of
                           `weft.runtime.abi.frame`

    register_device(MyDevice())        find_device("name")

The processor that this process runs on is the device `cpu` (`weft.runtime.device.cpu`): constants, workspaces and
entries of executables go through it. The loader of a kind of artifact (`weft.runtime.loading.register_loader`) finds
the device of its code here.

Errors: ArgumentError W867 a device that is not there, or a second one of a name; OutOfMemoryError W950.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from weft.errors import ArgumentError

__all__ = ["Device", "Launcher", "Memory", "Stream", "device_names", "find_device", "register_device"]

Launcher = Callable[..., int]
"""(address of the frame, of the argument words, of the result words) -> 0 or the kind of failure."""


class Memory(Protocol):
    """Memory of a device: its first address there, and its bytes."""

    @property
    def address(self) -> int:
        """The address of the first byte, as code of the device sees it."""
        ...

    @property
    def size(self) -> int:
        """The bytes of it."""
        ...


class Stream(Protocol):
    """Work of a device in order."""

    def synchronize(self) -> None:
        """Wait until all work is done."""
        ...


class Device(ABC):
    """One kind of device; `name` is what it is found by."""

    name: str

    @abstractmethod
    def allocate(self, size: int) -> Memory:
        """Fresh memory of so many bytes, aligned to 64; its contents are undefined. OutOfMemoryError W950."""

    @abstractmethod
    def write(self, target: Memory, source: np.ndarray, offset: int = 0, stream: Stream | None = None) -> None:
        """Copy an array of the host, row by row, to memory from `offset` bytes on."""

    @abstractmethod
    def read(self, target: np.ndarray, source: Memory, offset: int = 0, stream: Stream | None = None) -> None:
        """Fill a dense array of the host with memory from `offset` bytes on."""

    @abstractmethod
    def copy(self, target: Memory, source: Memory, size: int, stream: Stream | None = None) -> None:
        """Copy the first bytes of one memory to another one."""

    @abstractmethod
    def stream(self) -> Stream:
        """A new stream; without one, calls return when their work is done."""

    @abstractmethod
    def launcher(self, address: int, keep: Any) -> Launcher:
        """The code at an address, ready to be called; `keep` is what it lives in."""


_devices: dict[str, Device] = {}


def register_device(device: Device) -> None:
    """Let a device be found by its name; ArgumentError W867 when another one has the name."""
    if _devices.setdefault(device.name, device) is not device:
        raise ArgumentError(f"there is a device {device.name!r} already", code="W867")


def unregister_device(name: str) -> None:
    """Forget a device."""
    _devices.pop(name, None)


def find_device(name: str) -> Device:
    """The device of a name; ArgumentError W867 when there is none.

    >>> from weft.runtime.device.cpu import CPU
    >>> find_device("cpu") is CPU
    True
    """
    found = _devices.get(name)
    if found is None:
        raise ArgumentError(f"there is no device {name!r}", code="W867", hint=f"known: {', '.join(device_names())}")
    return found


def device_names() -> tuple[str, ...]:
    """The names of the devices, in order."""
    return tuple(sorted(_devices))
