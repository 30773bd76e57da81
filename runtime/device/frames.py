"""How much of the stack machine code takes, read from its instructions: what is asked for before a call makes frames.

    x86-64     sub rsp, n | lea rsp, [rsp - n] | and rsp, -n
    AArch64    sub sp, sp, n {, lsl 12}

Code generators spill what does not fit into registers, so that only the code itself knows the sizes: wide vectors, and
many values that live at once, take megabytes. Frames of few bytes, and other processors, are not read.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

import numpy as np

from weft.runtime.device.object_symbols import defined, needed

__all__ = ["stack_need"]

USUAL = 24 << 10
"""Bytes that a call takes without a question: a thread with the smallest stack has them."""
NESTED = 17
"""Calls that nest more deeply ask as they do (`weft.codegen.backends.llvm.asm.stack`)."""
_REST = 8 << 10
"""What smaller frames take, and functions from outside."""
_LARGE, _MOST = 2 << 10, 1 << 30
_X86 = ((b"\x48\x81\xec", 1), (b"\x48\x81\xe4", -1), (b"\x48\x8d\xa4\x24", -1))
"""What stands before a number of 32 bits, and the sign with which that is a size."""
_ARM, _ARM_MASK, _ARM_SHIFTED = 0xD10003FF, 0xFF8003FF, 1 << 22


def stack_need(objects: Sequence[bytes]) -> int:
    """The bytes of the stack that a call into objects takes before it asks itself; 0 where they are few."""
    if sum(_frames(b"".join(objects))[:NESTED]) <= USUAL:
        return 0
    own = [sum(_frames(code)[:NESTED]) for code in objects]
    callees = _callees(objects)
    need = own
    for _ in range(NESTED - 1):
        below = [max((need[callee] for callee in called), default=0) for called in callees]
        need = [mine + deeper for mine, deeper in zip(own, below, strict=True)]
    return max(need) + _REST if max(need) > USUAL else 0


def _frames(code: bytes) -> list[int]:
    """The sizes of the large frames that the functions of an object make, the largest first."""
    read = _READERS.get(platform.machine().lower())
    sizes = [] if read is None else read(code)
    return sorted((size for size in sizes if _LARGE <= size < _MOST and size % 8 == 0), reverse=True)


def _x86_frames(code: bytes) -> list[int]:
    bytes_ = np.frombuffer(code, np.uint8)
    return [
        sign * int.from_bytes(code[place : place + 4], "little", signed=True)
        for start, sign in _X86
        for place in _places_after(bytes_, start)
    ]


def _places_after(bytes_: np.ndarray, start: bytes) -> list[int]:
    """The places behind some bytes, with a number there."""
    found = np.flatnonzero(bytes_[2 : -1 - len(start)] == start[2])  # those before it are in many instructions
    for index, byte in enumerate(start):
        found = found[bytes_[found + index] == byte]
    return [int(place) + len(start) for place in found]


def _arm_frames(code: bytes) -> list[int]:
    words = np.frombuffer(code, "<u4", len(code) // 4)
    made = words[(words & _ARM_MASK) == _ARM]
    return [int(word >> 10 & 0xFFF) << (12 if word & _ARM_SHIFTED else 0) for word in made]


_READERS = {"x86_64": _x86_frames, "amd64": _x86_frames, "aarch64": _arm_frames, "arm64": _arm_frames}


def _callees(objects: Sequence[bytes]) -> list[set[int]]:
    """For each object the numbers of those that define what it needs."""
    places = {name: number for number, code in enumerate(objects) for name in defined(code)}
    return [{places[name] for name in needed(code) if name in places} for code in objects]
