"""How far the stack of a thread reaches down: where calls out of compiled code stop nesting (W951), before it ends.

Compiled code that calls itself through registered functions takes much more of the stack than Python counts; code whose
frames are large (`weft.runtime.device.frames`) is asked for in threads that have little left.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from weft.errors import RecursionDepthError
from weft.runtime.abi.frame import FRAME_WORDS, STACK
from weft.support.stack import thread_stack

__all__ = ["ENOUGH", "NEED", "Asked", "lowest_place"]

_MARGIN = 160 << 10
ENOUGH, NEED = "weft.stack.enough", "weft.stack.need"
"""The symbols of the function that asks, and of the word that says what a call takes."""
_Enough = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
_Frame = ctypes.c_int64 * FRAME_WORDS


def lowest_place() -> int:
    """The lowest address that calls of this thread may reach; 0 where the system does not say.

    >>> lowest_place() >= 0
    True
    """
    start, size = thread_stack()
    return start + min(_MARGIN, size // 2)  # the end of the stack, and a margin above


class Asked:
    """The functions of a program whose frames are large: called where the thread has so many bytes of stack left."""

    def __init__(self, need: int, addresses: Mapping[str, int]) -> None:
        self.need = need
        self._enough = _Enough(addresses[ENOUGH])
        ctypes.c_int64.from_address(addresses[NEED]).value = need

    def function(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function that asks first; RecursionDepthError W951 where too little is left."""

        def asking(*args: Any, **options: Any) -> Any:
            self._ask(name)
            return call(*args, **options)

        return asking

    def _ask(self, name: str) -> None:
        start, size = thread_stack()
        frame = _Frame()
        frame[STACK] = start + self.need
        if start and not self._enough(ctypes.addressof(frame)):
            message = f"{name} takes {self.need >> 10} KiB of the stack, of which this thread has less left"
            hint = f"the stack of this thread has {size >> 10} KiB: threading.stack_size(...) before it starts"
            raise RecursionDepthError(message, code="W951", hint=hint)
