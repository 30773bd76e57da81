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
from dataclasses import dataclass, replace

from weft.errors import ArtifactError
from weft.runtime.artifact import Artifact, Symbol

__all__ = ["HOST_SYMBOLS", "OF_TOOLCHAIN", "PROCESS_SYMBOLS", "check_symbols", "defined", "needed", "true_symbols"]

_MEMORY = "memcpy memmove memset aligned_alloc free"
_ROUNDING = "floor ceil trunc nearbyint rint round roundeven"
_MATH = (
    "exp exp2 exp10 expm1 log log2 log10 log1p pow sqrt cbrt hypot sin cos sincos tan asin acos atan atan2 sinh cosh"
    " tanh asinh acosh atanh erf erfc fma fmod ldexp copysign nextafter fabs fmin fmax"
)
HOST_SYMBOLS = frozenset(_MEMORY.split()).union(*((name, f"{name}f") for name in (*_ROUNDING.split(), *_MATH.split())))
"""What every program on a system with a C library links."""
PROCESS_SYMBOLS = frozenset(
    "madvise pthread_attr_destroy pthread_attr_getstack pthread_create pthread_detach pthread_getattr_np pthread_self"
    " sched_yield usleep syscall PyBuffer_Release PyErr_Clear Py_DecRef Py_IncRef"
    " PyEval_RestoreThread PyEval_SaveThread PyLong_AsLongLong PyLong_FromLongLong PyObject_GetBuffer"
    " PyObject_Vectorcall PyTuple_GetItem PyTuple_New PyTuple_SetItem PyTuple_Size".split()
)
"""What only code inside a Python process needs."""
OF_TOOLCHAIN = ("__", "_GLOBAL_OFFSET_TABLE_")
"""How the names begin that a C compiler's own library and its linker provide, for objects that others link."""

_SYMBOL_TABLE, _SECTIONLESS, _LOCAL = 2, 0, 0
_ELF = b"\x7fELF"
_LAYOUTS = {
    1: ("<I", 32, 46, "<10I", "<IIIBBH"),  # 32 bits: name, value, size, info, other, section
    2: ("<Q", 40, 58, "<IIQQQQIIQQ", "<IBBH"),  # 64 bits: name, info, other, section
}
"""By class of the file: where the table of sections is, and how its rows and those of the symbols are laid out."""


@dataclass(frozen=True)
class _Symbol:
    """A row of the table of symbols (System V ABI, chapter 4)."""

    name: str
    section: int
    binding: int


def needed(code: bytes) -> frozenset[str]:
    """The names that an object refers to and leaves to others; ArtifactError W819 for what is no ELF object."""
    return frozenset(symbol.name for symbol in _symbols(code) if symbol.section == _SECTIONLESS and symbol.name)


def defined(code: bytes) -> frozenset[str]:
    """The names that an object defines for others; ArtifactError W819 for what is no ELF object."""
    return frozenset(
        symbol.name for symbol in _symbols(code) if symbol.section != _SECTIONLESS and symbol.binding != _LOCAL
    )


def true_symbols(artifact: Artifact) -> Artifact:
    """The artifact of object code with the symbols that its bytes provide and need; prototypes that it states stay."""
    if not artifact.data.startswith(_ELF):  # WebAssembly, say
        return artifact
    stated = {symbol.name: symbol for symbol in (*artifact.provides, *artifact.needs)}
    provides, needs = (
        tuple(stated.get(name, Symbol(name)) for name in sorted(names))
        for names in (defined(artifact.data), needed(artifact.data))
    )
    return replace(artifact, provides=provides, needs=needs)


def check_symbols(artifact: Artifact) -> None:
    """ArtifactError W821 for object code that provides or needs other symbols than its artifact says."""
    read = true_symbols(artifact)
    for what in ("provides", "needs"):
        said, there = ({symbol.name for symbol in getattr(item, what)} for item in (artifact, read))
        if said != there:
            wrong = sorted(said ^ there)[0]
            how = f"{what} {wrong!r}" + ("" if wrong in there else " by its word alone")
            message = f"artifact {artifact.name!r} {how}" + (", which it does not say" if wrong in there else "")
            raise ArtifactError(message, code="W821", hint="it was made by hand, or changed")


def _symbols(code: bytes) -> Iterator[_Symbol]:
    try:
        yield from _read(code)
    except (struct.error, IndexError, OverflowError, ValueError):
        raise ArtifactError("an object file is damaged", code="W819") from None


def _read(code: bytes) -> Iterator[_Symbol]:
    if code[:4] != _ELF or code[4] not in _LAYOUTS or code[5] != 1:
        raise ArtifactError("only little-endian ELF objects are read", code="W819")
    table_format, table_at, counts_at, section_format, symbol_format = _LAYOUTS[code[4]]
    (table,) = struct.unpack_from(table_format, code, table_at)
    entry, count = struct.unpack_from("<HH", code, counts_at)
    if not count:
        raise ArtifactError("an object file has no sections", code="W819")
    sections = [struct.unpack_from(section_format, code, table + entry * index) for index in range(count)]
    for _, kind, _, _, start, size, link, _, _, row in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for place in range(start + row, start + size, row):  # the first row is empty
            fields = struct.unpack_from(symbol_format, code, place)
            name, info, section = fields[0], fields[-3], fields[-1]
            text = code[names + name : code.index(b"\0", names + name)].decode()
            yield _Symbol(text, section, info >> 4)
