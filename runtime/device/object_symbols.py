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

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from weft.errors import ArtifactError
from weft.runtime.artifact import Artifact, Symbol
from weft.runtime.device.object_formats import object_symbols
from weft.runtime.device.process import address_in_process

__all__ = [
    "HOST_SYMBOLS",
    "LOAD_FIRST",
    "OF_TOOLCHAIN",
    "PROCESS_SYMBOLS",
    "absent_symbols",
    "check_symbols",
    "defined",
    "in_process",
    "needed",
    "outside_needs",
    "symbols_of",
    "true_symbols",
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


def true_symbols(artifact: Artifact) -> Artifact:
    """The artifact of object code with the symbols that its bytes provide and need; prototypes that it states stay."""
    stated = {symbol.name: symbol for symbol in (*artifact.provides, *artifact.needs)}
    provides, needs = symbols_of(artifact.data, stated)
    return replace(artifact, provides=provides, needs=needs)


def symbols_of(
    code: bytes, stated: Mapping[str, Symbol] = MappingProxyType({})
) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...]]:
    """The symbols that an object provides and those that it needs, as they are stated where they are."""
    found = object_symbols(code)
    provides = {symbol.name for symbol in found if symbol.defined and not symbol.local}
    needs = {symbol.name for symbol in found if not symbol.defined and symbol.name}
    first, second = ([stated.get(name) or Symbol(name) for name in sorted(names)] for names in (provides, needs))
    return tuple(first), tuple(second)


def outside_needs(code: bytes) -> tuple[Symbol, ...]:
    """What an object needs of other programs and libraries, without what its compiler and its linker bring along."""
    return tuple(Symbol(name) for name in sorted(needed(code)) if not name.startswith(OF_TOOLCHAIN))


def check_symbols(artifact: Artifact, read: Artifact | None = None) -> None:
    """ArtifactError W821 for object code that provides or needs other symbols than its artifact says.

    `read` is the artifact as its bytes say it, where it is no plain object code.
    """
    read = read or true_symbols(artifact)
    for what in ("provides", "needs"):
        said, there = ({symbol.name for symbol in getattr(item, what)} for item in (artifact, read))
        if said != there:
            wrong = sorted(said ^ there)[0]
            how = f"{what} {wrong!r}" + ("" if wrong in there else " by its word alone")
            message = f"artifact {artifact.name!r} {how}" + (", which it does not say" if wrong in there else "")
            raise ArtifactError(message, code="W821", hint="it was made by hand, or changed")
