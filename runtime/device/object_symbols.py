"""What object code needs from outside, and what a process gives it.

    needed(code)     the names that an ELF object refers to and does not define; `defined(code)` those that it defines
    HOST_SYMBOLS     what a program may need of the C library and of its mathematical part
    PROCESS_SYMBOLS  what code in a Python process may need besides: of CPython, of the threads of POSIX

Every symbol that generated code refers to stands in these tables; the tests read the objects of every operator. LLVM is
free to call functions of the library of its own compiler (`__truncdfhf2`, `__udivti3`, ...): nothing loads that one, so
the code generators write nothing that it would call them for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from weft.errors import ArtifactError

__all__ = ["HOST_SYMBOLS", "PROCESS_SYMBOLS", "defined", "needed"]

_MEMORY = "memcpy memmove memset aligned_alloc free"
_ROUNDING = "floor ceil trunc nearbyint rint round roundeven"
_MATH = (
    "exp exp2 exp10 expm1 log log2 log10 log1p pow sqrt cbrt hypot sin cos sincos tan asin acos atan atan2 sinh cosh"
    " tanh asinh acosh atanh erf erfc fma fmod ldexp copysign nextafter fabs fmin fmax"
)
HOST_SYMBOLS = frozenset(_MEMORY.split()).union(
    *((name, f"{name}f") for name in (*_ROUNDING.split(), *_MATH.split()))
)
"""What every program on a system with a C library links."""
PROCESS_SYMBOLS = frozenset(
    "madvise pthread_attr_destroy pthread_attr_getstack pthread_create pthread_detach pthread_getattr_np pthread_self"
    " sched_yield usleep syscall PyBuffer_Release PyErr_Clear Py_DecRef Py_IncRef"
    " PyEval_RestoreThread PyEval_SaveThread PyLong_AsLongLong PyLong_FromLongLong PyObject_GetBuffer"
    " PyObject_Vectorcall PyTuple_GetItem PyTuple_New PyTuple_SetItem PyTuple_Size".split()
)
"""What only code inside a Python process needs."""

_SYMBOL_TABLE, _SECTIONLESS, _LOCAL = 2, 0, 0


@dataclass(frozen=True)
class _Symbol:
    """A row of the table of symbols (System V ABI, chapter 4)."""

    name: str
    section: int
    binding: int


def needed(code: bytes) -> frozenset[str]:
    """The names that an object refers to and leaves to others; ArtifactError W819 for what is no 64-bit ELF object."""
    return frozenset(symbol.name for symbol in _symbols(code) if symbol.section == _SECTIONLESS and symbol.name)


def defined(code: bytes) -> frozenset[str]:
    """The names that an object defines for others; ArtifactError W819 for what is no 64-bit ELF object."""
    return frozenset(
        symbol.name for symbol in _symbols(code) if symbol.section != _SECTIONLESS and symbol.binding != _LOCAL
    )


def _symbols(code: bytes) -> Iterator[_Symbol]:
    try:
        yield from _read(code)
    except (struct.error, IndexError, OverflowError, ValueError):
        raise ArtifactError("an object file is damaged", code="W819") from None


def _read(code: bytes) -> Iterator[_Symbol]:
    if code[:6] != b"\x7fELF\x02\x01":  # 64 bits, little endian
        raise ArtifactError("only 64-bit little-endian ELF objects are read", code="W819")
    (table,) = struct.unpack_from("<Q", code, 40)
    entry, count = struct.unpack_from("<HH", code, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + entry * index) for index in range(count)]
    for _, kind, _, _, start, size, link, _, _, row in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for place in range(start + row, start + size, row):  # the first row is empty
            name, info, _, section = struct.unpack_from("<IBBH", code, place)
            text = code[names + name : code.index(b"\0", names + name)].decode()
            yield _Symbol(text, section, info >> 4)
