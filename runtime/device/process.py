"""This process as code sees it: the addresses of C symbols that it has loaded for all, memory for code.

Errors: OSError where the system refuses memory, or to run what is in it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from typing import Any

__all__ = ["address_in_process", "allocate", "free", "make_runnable"]


def address_in_process(name: str) -> int:
    """The address of a C symbol that this process has, libraries that are loaded later included; 0 where it has none.

    >>> address_in_process("memcpy") != 0, address_in_process("no such symbol")
    (True, 0)
    """
    try:
        found = getattr(_process(), name)
    except (AttributeError, ValueError):
        return 0
    return ctypes.cast(found, ctypes.c_void_p).value or 0


@functools.cache
def _process() -> Any:
    """The C library among others; calls leave the number of an error (`ctypes.get_errno`)."""
    library: Any = ctypes.CDLL(None, use_errno=True)
    return library


@functools.cache
def _calls() -> tuple[Any, Any, Any]:
    """The functions of the system for memory, of signatures that say how wide their arguments are."""
    place, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library = ctypes.CDLL(None, use_errno=True)  # whose functions nobody else declares
    library.mmap.restype, library.mmap.argtypes = place, (place, size, number, number, number, ctypes.c_long)
    library.mprotect.argtypes, library.munmap.argtypes = (place, size, number), (place, size)
    return library.mmap, library.mprotect, library.munmap


def allocate(size: int) -> int:
    """The address of new memory, full of zeros, from the start of a page on."""
    readable, mine = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = _calls()[0](None, size, readable, mine, -1, 0)
    if found in (None, ctypes.c_void_p(-1).value):
        raise _refused()
    return int(found)


def make_runnable(start: int, size: int) -> None:
    """Let memory of `allocate` be run, and not be written any more."""
    if _calls()[1](start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise _refused()


def free(start: int, size: int) -> None:
    """Give memory of `allocate` back."""
    _calls()[2](start, size)


def _refused() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
