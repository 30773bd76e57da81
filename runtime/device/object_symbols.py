"""What object code needs from outside, and what a process gives it.

    needed(code)     the names that an object refers to and does not define; `defined(code)` those that it defines
    HOST_SYMBOLS     what a program may need of the C library and of its mathematical part
    PROCESS_SYMBOLS  what code in a Python process may need besides: of CPython, of the threads of POSIX
    in_process(name) whether this process has a symbol, as those of libraries are that it has loaded for all

Every symbol that generated code refers to stands in these tables; the tests read the objects of every operator. LLVM is
free to call functions of the library of its own compiler (`__truncdfhf2`, `__udivti3`, ...): nothing loads that one, so
the code generators write nothing that it would call them for.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from weft.runtime.device.object_formats import object_symbols
from weft.runtime.device.process import address_in_process

__all__ = [
    "HOST_SYMBOLS",
    "LOAD_FIRST",
    "OF_TOOLCHAIN",
    "PROCESS_SYMBOLS",
    "absent_symbols",
    "defined",
    "in_process",
    "needed",
]

_MEMORY = "memcpy memmove memset aligned_alloc free"
_ROUNDING = "floor ceil trunc nearbyint rint round roundeven"
_MATH = (
    "exp exp2 exp10 expm1 log log2 log10 log1p pow sqrt cbrt hypot sin cos sincos tan asin acos atan atan2 sinh cosh"
    " tanh asinh acosh atanh erf erfc fma fmod ldexp copysign nextafter fabs fmin fmax"
)
HOST_SYMBOLS = frozenset(_MEMORY.split()).union(*((name, f"{name}f") for name in (*_ROUNDING.split(), *_MATH.split())))
"""What every program on a system with a C library links."""
PROCESS_SYMBOLS = frozenset(
    "madvise pthread_attr_destroy pthread_attr_getstack pthread_attr_init pthread_attr_setstacksize pthread_create"
    " pthread_detach pthread_getattr_np pthread_self sched_yield usleep syscall PyErr_Clear Py_DecRef Py_IncRef"
    " PyEval_RestoreThread PyEval_SaveThread PyLong_AsLongLong PyLong_FromLongLong"
    " PyObject_Vectorcall PyTuple_GetItem PyTuple_New PyTuple_SetItem PyTuple_Size".split()
)
"""What only code inside a Python process needs."""
OF_TOOLCHAIN = ("__", "_GLOBAL_OFFSET_TABLE_", "_fltused")
"""How the names begin that a C compiler's own library and its linker provide, for objects that others link."""

LOAD_FIRST = "load the library that has it first: ctypes.CDLL(path, ctypes.RTLD_GLOBAL)"
"""What to do about a symbol that this process lacks."""


def needed(code: bytes) -> frozenset[str]:
    """The names that an object refers to and leaves to others; ArtifactError W819 for what is no object file."""
    return frozenset(symbol.name for symbol in object_symbols(code) if not symbol.defined and symbol.name)


def defined(code: bytes) -> frozenset[str]:
    """The names that an object defines for others; ArtifactError W819 for what is no object file."""
    return frozenset(symbol.name for symbol in object_symbols(code) if symbol.defined and not symbol.local)


def in_process(name: str) -> bool:
    """Whether the process has a C symbol of that name."""
    return address_in_process(name) != 0


def absent_symbols(objects: Iterable[bytes], given: Container[str] = ()) -> list[str]:
    """The names that objects which are linked together in this process need, and neither they nor it have."""
    together = list(objects)
    inside = frozenset[str]().union(*map(defined, together))
    outside = sorted(frozenset[str]().union(*map(needed, together)) - inside)
    asked = (name for name in outside if name not in given and not name.startswith(OF_TOOLCHAIN))
    return [name for name in asked if not in_process(name)]
