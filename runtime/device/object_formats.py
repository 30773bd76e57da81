"""The symbols of an object file, in the four formats that LLVM writes, as records of (name, defined, local).

    ELF      sections; a table of symbols with its strings        System V ABI, chapter 4
    Mach-O   load commands; LC_SYMTAB                             Apple, mach-o/nlist.h
    COFF     a table of symbols, names of up to 8 bytes in it     Microsoft, PE format
    wasm     sections: imports, and the custom section `linking`  WebAssembly tool conventions, Linking.md

Names are those of C: the underscore that Mach-O, and COFF for x86 of 32 bits, put before them is taken off.

Errors: ArtifactError W819 for what is none of them, or is damaged.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator

from weft.errors import ArtifactError
from weft.support.records import record

__all__ = [
    "COFF_MACHINES",
    "COFF_ROW",
    "ObjectSymbol",
    "SymbolTable",
    "elf_tables",
    "mach_tables",
    "object_symbols",
    "text_at",
]


@record
class ObjectSymbol:
    """A symbol that an object defines, or refers to; a local one is seen by the object alone."""

    name: str
    defined: bool
    local: bool = False


@record
class SymbolTable:
    """Where the rows of a table of symbols stand in a file, where their names begin, and the header of these names."""

    rows: range
    names: int
    size: int
    header: int


@functools.lru_cache(maxsize=64)
def object_symbols(code: bytes) -> tuple[ObjectSymbol, ...]:
    """The symbols of an object file; ArtifactError W819 for what is none.

    Those of the latest objects are kept: some are part of every program, and each is asked several times.
    """
    read = next((read for magics, read in _FORMATS if code.startswith(magics)), None)
    if read is None:
        raise ArtifactError("this is no object file: little-endian ELF, Mach-O, COFF and wasm are read", code="W819")
    try:
        return tuple(read(code))
    except (struct.error, IndexError, OverflowError, ValueError):
        raise ArtifactError("an object file is damaged", code="W819") from None


def text_at(code: bytes, place: int) -> str:
    """The string that ends in a zero byte."""
    return code[place : code.index(b"\0", place)].decode()


# ELF


_ELF_LAYOUTS = {
    1: ("<I", 32, 46, "<10I", "<IIIBBH"),  # 32 bits: name, value, size, info, other, section
    2: ("<Q", 40, 58, "<IIQQQQIIQQ", "<IBBH"),  # 64 bits: name, info, other, section
}
"""By class of the file: where the table of sections is, and how its rows and those of the symbols are laid out."""
_ELF_SYMBOL_TABLE = 2


def elf_tables(code: bytes) -> Iterator[SymbolTable]:
    """The tables of symbols of an ELF object; the header of their names is that of their section."""
    if code[4] not in _ELF_LAYOUTS or code[5] != 1:
        raise ArtifactError("only little-endian ELF objects are read", code="W819")
    table_format, table_at, counts_at, section_format, _ = _ELF_LAYOUTS[code[4]]
    (table,) = struct.unpack_from(table_format, code, table_at)
    entry, count = struct.unpack_from("<HH", code, counts_at)
    if not count:
        raise ArtifactError("an object file has no sections", code="W819")
    sections = [struct.unpack_from(section_format, code, table + entry * index) for index in range(count)]
    for _, kind, _, _, start, size, link, _, _, row in sections:
        if kind == _ELF_SYMBOL_TABLE:
            rows = range(start + row, start + size, row)  # the first row is empty
            yield SymbolTable(rows, sections[link][4], sections[link][5], table + entry * link)


def _elf(code: bytes) -> Iterator[ObjectSymbol]:
    for table in elf_tables(code):
        for place in table.rows:
            fields = struct.unpack_from(_ELF_LAYOUTS[code[4]][-1], code, place)
            name, info, section = fields[0], fields[-3], fields[-1]
            yield ObjectSymbol(text_at(code, table.names + name), section != 0, not info >> 4)


# Mach-O


_MACH_LAYOUTS = {b"\xce\xfa\xed\xfe": (28, "<IBBHI"), b"\xcf\xfa\xed\xfe": (32, "<IBBHQ")}
"""By magic number: the size of the header, and the row of a symbol: name, type, section, description, value."""
_MACH_SYMBOL_TABLE, _MACH_DEBUGGING, _MACH_KIND, _MACH_EXTERNAL = 2, 0xE0, 0x0E, 0x01


def mach_tables(code: bytes) -> Iterator[SymbolTable]:
    """The table of symbols of a Mach-O object; the header of its names is in a load command."""
    place, row = _MACH_LAYOUTS[code[:4]]
    (commands,) = struct.unpack_from("<I", code, 16)
    for _ in range(commands):
        command, size = struct.unpack_from("<II", code, place)
        if size < 8:
            raise ValueError("a load command without a size")
        if command == _MACH_SYMBOL_TABLE:
            start, count, names, total = struct.unpack_from("<IIII", code, place + 8)
            step = struct.calcsize(row)
            yield SymbolTable(range(start, start + count * step, step), names, total, place + 16)
        place += size


def _mach(code: bytes) -> Iterator[ObjectSymbol]:
    for table in mach_tables(code):
        for place in table.rows:
            name, kind, _, _, value = struct.unpack_from(_MACH_LAYOUTS[code[:4]][1], code, place)
            if not kind & _MACH_DEBUGGING:
                known = bool(kind & _MACH_KIND) or value != 0  # without a section, a size: of a common symbol
                text = text_at(code, table.names + name).removeprefix("_")
                yield ObjectSymbol(text, known, not kind & _MACH_EXTERNAL)


# COFF


COFF_MACHINES = (b"\x64\x86", b"\x4c\x01", b"\x64\xaa", b"\xc4\x01")  # x86-64, x86, AArch64, ARM
COFF_ROW, _COFF_EXTERNAL, _COFF_WEAK = "<8sIhHBB", 2, 105


def _coff(code: bytes) -> Iterator[ObjectSymbol]:
    table, count = struct.unpack_from("<II", code, 8)
    names = table + count * struct.calcsize(COFF_ROW)
    prefix = "_" if code.startswith(b"\x4c\x01") else ""
    index = 0
    while index < count:
        name, value, section, _, kind, more = struct.unpack_from(COFF_ROW, code, table + index * 18)
        if (
            kind == _COFF_WEAK and more
        ):  # the row after it names the default, which stands in no section for a reference
            (default,) = struct.unpack_from("<I", code, table + (index + 1) * 18)
            section = max(0, struct.unpack_from(COFF_ROW, code, table + default * 18)[2])
        index += 1 + more
        long = struct.unpack("<II", name)[1] if name[:4] == b"\0\0\0\0" else None
        text = name.rstrip(b"\0").decode() if long is None else text_at(code, names + long)
        known = section != 0 or (kind == _COFF_EXTERNAL and value != 0)
        yield ObjectSymbol(text.removeprefix(prefix), known, kind not in (_COFF_EXTERNAL, _COFF_WEAK))


# WebAssembly


class _Bytes:
    """Bytes that are read one after another."""

    def __init__(self, code: bytes, place: int, end: int) -> None:
        if end > len(code):
            raise ValueError("a section goes beyond the end")
        self.code, self.place, self.end = code, place, end

    def number(self) -> int:
        """An unsigned number in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError("a number is too long")

    def byte(self) -> int:
        if self.place >= self.end:
            raise ValueError("a section ends too early")
        self.place += 1
        return self.code[self.place - 1]

    def part(self) -> _Bytes:
        """As many bytes as the number before them says."""
        size = self.number()
        start, self.place = self.place, self.place + size
        if self.place > self.end:
            raise ValueError("a part goes beyond its section")
        return _Bytes(self.code, start, self.place)

    def text(self) -> str:
        part = self.part()
        return self.code[part.place : part.end].decode()

    def __bool__(self) -> bool:
        return self.place < self.end


_WASM_IMPORTS, _WASM_SYMBOL_TABLE, _WASM_DATA, _WASM_SECTION = 2, 8, 1, 3
_WASM_LOCAL, _WASM_UNDEFINED, _WASM_NAMED = 0x02, 0x10, 0x40
_WASM_KINDS = {0: 0, 2: 3, 4: 4, 5: 1}
"""The kind of import that an undefined symbol of a kind is: function, global, tag, table."""


def _wasm(code: bytes) -> Iterator[ObjectSymbol]:
    whole = _Bytes(code, 8, len(code))
    imports: dict[int, list[str]] = {}
    while whole:
        kind, section = whole.byte(), whole.part()
        if kind == _WASM_IMPORTS:
            imports = _wasm_imports(section)
        elif kind == 0 and section.text() == "linking":
            section.number()  # the version
            while section:
                what, table = section.byte(), section.part()
                if what == _WASM_SYMBOL_TABLE:
                    yield from (_wasm_symbol(table, imports) for _ in range(table.number()))


def _wasm_imports(section: _Bytes) -> dict[int, list[str]]:
    """The names of what is imported, by kind."""
    found: dict[int, list[str]] = {}
    for _ in range(section.number()):
        section.text()
        name, kind = section.text(), section.byte()
        found.setdefault(kind, []).append(name)
        if kind in (0, 4):  # a function has a type, a tag an attribute and a type
            for _ in range(1 if kind == 0 else 2):
                section.number()
            continue
        if kind in (1, 3):  # a table has a type of elements, a global one of its value
            section.byte()
        flags = section.number()  # limits of a table or a memory; whether a global changes
        if kind != 3:
            section.number()
            if flags & 1:
                section.number()
    return found


def _wasm_symbol(table: _Bytes, imports: dict[int, list[str]]) -> ObjectSymbol:
    kind, flags = table.byte(), table.number()
    known, local = not flags & _WASM_UNDEFINED, bool(flags & _WASM_LOCAL)
    if kind == _WASM_DATA:
        name = table.text()
        for _ in range(3 if known else 0):  # segment, offset, size
            table.number()
        return ObjectSymbol(name, known, local)
    index = table.number()
    if kind == _WASM_SECTION:
        return ObjectSymbol("", True, True)
    if known or flags & _WASM_NAMED:
        return ObjectSymbol(table.text(), known, local)
    return ObjectSymbol(imports[_WASM_KINDS[kind]][index], known, local)


_FORMATS: tuple[tuple[tuple[bytes, ...], Callable[[bytes], Iterator[ObjectSymbol]]], ...] = (
    ((b"\x7fELF",), _elf),
    (tuple(_MACH_LAYOUTS), _mach),
    ((b"\0asm",), _wasm),
    (COFF_MACHINES, _coff),
)
