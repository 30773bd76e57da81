"""Symbols of an object file under other names: ELF, Mach-O and COFF.

The new names go to the end of the file's strings; no code moves.

Errors: ArtifactError W814 for a format whose symbols are not renamed (wasm), W819 for what is no object file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from weft.errors import ArtifactError
from weft.runtime.device.object_formats import (
    COFF_MACHINES,
    COFF_ROW,
    SymbolTable,
    elf_tables,
    mach_tables,
    object_symbols,
    text_at,
)

__all__ = ["renamed_symbols"]

Rename = Callable[[str], str]


def renamed_symbols(code: bytes, rename: Rename, what: str) -> bytes:
    """The object with each symbol under the name that `rename` gives it; `what` is the object in messages."""
    if all(rename(symbol.name) == symbol.name for symbol in object_symbols(code)):
        return code
    if code.startswith(b"\x7fELF"):
        return _elf(code, rename)
    if code.startswith(b"\0asm"):
        message = f"the symbols of {what!r} cannot get other names: wasm is not rewritten"
        raise ArtifactError(message, code="W814", hint="give each model for C its own name: -package.name")
    return _coff(code, rename) if code.startswith(COFF_MACHINES) else _mach(code, rename)


def _with_names(code: bytes, out: bytearray, table: SymbolTable, rename: Rename, prefix: str = "") -> bytes:
    """The strings of a table with the new names behind the old ones; the rows in `out` refer to those."""
    strings = bytearray(code[table.names : table.names + table.size])
    for place in table.rows:
        (offset,) = struct.unpack_from("<I", code, place)
        name = text_at(code, table.names + offset).removeprefix(prefix)
        if (new := rename(name)) != name:
            struct.pack_into("<I", out, place, len(strings))
            strings += f"{prefix}{new}\0".encode()
    return bytes(strings)


_ELF_NAMES = {1: ("<II", 16), 2: ("<QQ", 24)}
"""By class of the file: how the offset and the size of a section are written, and where in its header."""


def _elf(code: bytes, rename: Rename) -> bytes:
    out = bytearray(code)
    form, inside = _ELF_NAMES[code[4]]
    for table in elf_tables(code):
        strings = _with_names(code, out, table, rename)
        struct.pack_into(form, out, table.header + inside, len(out), len(strings))
        out += strings
    return bytes(out)


def _mach(code: bytes, rename: Rename) -> bytes:
    out = bytearray(code)
    for table in mach_tables(code):
        strings = _with_names(code, out, table, rename, "_")
        struct.pack_into("<II", out, table.header, len(out), len(strings))
        out += strings
    return bytes(out)


def _coff(code: bytes, rename: Rename) -> bytes:
    out = bytearray(code)
    start, count = struct.unpack_from("<II", code, 8)
    row = struct.calcsize(COFF_ROW)
    names = start + count * row
    (size,) = struct.unpack_from("<I", code, names)
    if names + size != len(code):
        raise ArtifactError("an object file is damaged: its names are not at its end", code="W819")
    prefix = "_" if code.startswith(b"\x4c\x01") else ""
    index = 0
    while index < count:
        field, *_, more = struct.unpack_from(COFF_ROW, code, start + index * row)
        long = field[:4] == b"\0\0\0\0"
        text = text_at(code, names + struct.unpack("<II", field)[1]) if long else field.rstrip(b"\0").decode()
        name = text.removeprefix(prefix)
        if (new := rename(name)) != name:
            struct.pack_into("<II", out, start + index * row, 0, len(out) - names)
            out += f"{prefix}{new}\0".encode()
        index += 1 + more
    struct.pack_into("<I", out, names, len(out) - names)
    return bytes(out)
