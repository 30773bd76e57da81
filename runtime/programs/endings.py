"""What machine code does where objects of Python end, such that no function of Python runs then.

A handler of a signal may raise as a function of Python begins: in one that ends an object Python reports that, and
forgets it. A Ctrl-C would be lost, and with it the memory that the object held.

    release_with(release, code)    -> hold      hold(block): an object; `release` gets the block when it ends
    call_at_end(value, function)                machine code without arguments that is called as `value` ends
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.device.linker import Library, machine_code

__all__ = ["call_at_end", "release_with"]

_TEXT = """
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_GetContext(ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare i32 @PyCapsule_SetContext(ptr, ptr)

define ptr @weft.hold(ptr %block, ptr %release) nounwind {
  %capsule = call ptr @PyCapsule_New(ptr %block, ptr null, ptr @weft.end)
  %lost = icmp eq ptr %capsule, null
  br i1 %lost, label %out, label %tell
tell:
  %told = call i32 @PyCapsule_SetContext(ptr %capsule, ptr %release)
  br label %out
out:
  ret ptr %capsule
}

define void @weft.end(ptr %capsule) nounwind {
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %release = call ptr @PyCapsule_GetContext(ptr %capsule)
  call void %release(ptr %block)
  ret void
}
"""
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ended: list[weakref.ref[Any]] = []
"""References with what is called as they end; what has ended goes when another one comes."""


@functools.cache
def _library() -> Library | None:
    try:
        return Library([machine_code(_TEXT, 0)], ["weft.hold"])  # never unloaded
    except ArtifactError:  # an interpreter that does not export these
        return None


class _Released:
    """A block, where there are no capsules."""

    __slots__ = ("block", "release")

    def __init__(self, release: Callable[[int], None], block: int) -> None:
        self.release, self.block = release, block

    def __del__(self) -> None:
        self.release(self.block)


def release_with(release: int, code: object) -> Callable[[int], object]:
    """A function that makes an object of the address of a block, at whose end the function at `release` gets the block.

    What is made keeps `code`, in which the function at that address lies.
    """
    library = _library()
    if library is None:
        call = _RELEASE(release)
        return lambda block: (code, _Released(call, block))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)(library.addresses["weft.hold"])

    def hold(block: int) -> object:
        return code, make(block, release)  # a tuple ends its last item first

    return hold


def call_at_end(value: object, function: int) -> None:
    """Have machine code called as a value ends: with the reference to it, which the code leaves alone."""
    _ended[:] = [reference for reference in _ended if reference() is not None]
    _ended.append(weakref.ref(value, ctypes.PYFUNCTYPE(None, ctypes.py_object)(function)))
