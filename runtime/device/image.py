"""Object code linked into an image: bytes that run wherever they are put, without a linker.

    objects   => linked  => Image         places of sections, relocations; names from outside are left as words
    Image     => Mapped  => addresses     memory for it, the words filled in, its code made runnable

    image ::= code (read and run), data (written), words: a place in the image that holds the address of another one,
              or of a name from outside; exports: names and their places

Objects for x86-64 in ELF, as LLVM writes them, are linked: everything is reached relative to the instruction, and what
is outside by a word that holds its address. What needs more than that (other formats and processors, storage of
threads, constructors, two definitions of a name) is left to the linker of LLVM: `linked` gives None.

Sources: System V ABI, AMD64 supplement, section 4.4 (relocation).
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence

from weft.runtime.device.object_formats import text_at
from weft.runtime.device.process import address_in_process, allocate, free, make_runnable
from weft.support.records import dataclass

__all__ = ["Absent", "Image", "Mapped", "can_run", "linked"]


@dataclass(frozen=True)
class Image:
    """Linked code: `data` stands `gap` bytes behind the start and goes on with zeros up to `size` bytes in all."""

    code: bytes
    data: bytes
    gap: int
    size: int
    words: Sequence[tuple[int, int | str]]
    exports: Mapping[str, int]


class Absent(Exception):
    """Names that nothing provides."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(*names)
        self.names = names


class _Unknown(Exception):
    """What only another linker knows."""


# Link.

_ALLOCATED, _WRITTEN, _OF_THREADS = 0x2, 0x1, 0x400
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8
_CONTENTS = (1, _ZEROS, 0x70000001)
"""Kinds of sections that are put into memory: bytes, zeros, tables for unwinding."""
_UNDEFINED = 0
_WORD, _RELATIVE, _CALL = 1, 2, 4
_BY_WORD = (9, 41, 42)
_STUB = b"\xff\x25\0\0\0\0\xcc\xcc"  # jmp *word(%rip)
_PAGE = 4096


@dataclass(frozen=True)
class _Section:
    kind: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int


class _Object:
    """One object: its sections, where each is put in the image, its symbols."""

    def __init__(self, code: bytes) -> None:
        if code[:6] != b"\x7fELF\x02\x01" or code[18:20] != b"\x3e\0":
            raise _Unknown
        self.code = code
        (table,) = struct.unpack_from("<Q", code, 40)
        entry, count = struct.unpack_from("<HH", code, 58)
        rows = (struct.unpack_from("<IIQQQQIIQQ", code, table + entry * index) for index in range(count))
        self.sections = [_Section(row[1], row[2], *row[4:9]) for row in rows]
        self.places: dict[int, int] = {}
        self.symbols: list[tuple[str, int, int, bool]] = []
        """Name, section, place in it, whether others see it."""
        for section in self.sections:
            if section.kind == _SYMBOLS:
                names = self.sections[section.link].start
                self.symbols = [
                    (text_at(code, names + name), inside, value, info >> 4 != 0)
                    for name, info, _, inside, value, _ in struct.iter_unpack("<IBBHQQ", self.content(section))
                ]

    def content(self, section: _Section) -> bytes:
        """The bytes of a section."""
        end = section.start + section.size
        return bytes(section.size) if section.kind == _ZEROS else self.code[section.start : end]

    def put(self, part: bytearray, start: int, *, written: bool) -> None:
        """Put the sections that are written, or the others, at the end of a part of the image that has a start."""
        for index, section in enumerate(self.sections):
            if not section.flags & _ALLOCATED or not section.size or bool(section.flags & _WRITTEN) != written:
                continue
            if section.kind not in _CONTENTS or section.flags & _OF_THREADS or section.alignment > _PAGE:
                raise _Unknown
            part += bytes(-len(part) % max(1, section.alignment))
            self.places[index] = start + len(part)
            part += self.content(section)

    def relocations(self) -> Iterator[tuple[int, int, int, int]]:
        """Place in the image, kind, symbol, addend."""
        for section in self.sections:
            if section.kind == _RELOCATIONS and section.info in self.places:
                start = self.places[section.info]
                for place, info, addend in struct.iter_unpack("<QQq", self.content(section)):
                    yield start + place, info & 0xFFFFFFFF, info >> 32, addend


class _Linker:
    """Objects that are put together: code, instructions that lead outside, then data, and words that hold addresses."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        self.objects = [_Object(code) for code in objects]
        self.code, self.data = bytearray(), bytearray()
        for item in self.objects:
            item.put(self.code, 0, written=False)
        self.code += bytes(-len(self.code) % len(_STUB))
        names = dict.fromkeys(name for item in self.objects for name, inside, _, _ in item.symbols if not inside)
        self.stubs = {name: len(self.code) + len(_STUB) * index for index, name in enumerate(names)}
        self.code += _STUB * len(names)
        self.gap = len(self.code) + -len(self.code) % _PAGE
        for item in self.objects:
            item.put(self.data, self.gap, written=True)
        self.slots: dict[int | str, int] = {}
        self.words: list[tuple[int, int | str]] = []
        self.defined: dict[str, int] = {}
        for item in self.objects:
            for name, section, value, seen in item.symbols:
                if seen and section != _UNDEFINED:
                    if section not in item.places or name in self.defined:
                        raise _Unknown
                    self.defined[name] = item.places[section] + value

    def image(self, exports: Iterable[str]) -> Image:
        """The image of all of them."""
        for item in self.objects:
            for place, kind, number, addend in item.relocations():
                self.relocate(place, kind, self.target(item, number), addend)
        places = {name: self.defined[name] for name in exports}
        size = self.gap + len(self.data)
        return Image(bytes(self.code), bytes(self.data).rstrip(b"\0"), self.gap, size, self.words, places)

    def target(self, item: _Object, number: int) -> int | str:
        """Where a symbol is, or its name if it is outside."""
        name, section, value, _ = item.symbols[number]
        if section in item.places:
            return item.places[section] + value
        if section != _UNDEFINED or not name:
            raise _Unknown
        return self.defined.get(name, name)

    def relocate(self, place: int, kind: int, target: int | str, addend: int) -> None:
        """Do what an object wants to stand at a place."""
        inside = isinstance(target, int)
        if kind == _WORD and place >= self.gap and (inside or not addend):
            self.words.append((place, target + addend if inside else target))
        elif kind in _BY_WORD:
            self.lead(place, self.slot(target) + addend)
        elif kind == _CALL:
            self.lead(place, (target if inside else self.stub(target)) + addend)
        elif kind == _RELATIVE and inside:
            self.lead(place, target + addend)
        else:
            raise _Unknown

    def lead(self, place: int, target: int) -> None:
        """Write a displacement into the code."""
        struct.pack_into("<i", self.code, place, target - place)

    def slot(self, target: int | str) -> int:
        """The place of the word that holds an address."""
        found = self.slots.get(target)
        if found is None:
            self.data += bytes(-len(self.data) % 8)
            found = self.slots[target] = self.gap + len(self.data)
            self.data += bytes(8)
            self.words.append((found, target))
        return found

    def stub(self, name: str) -> int:
        """The place of the instruction that goes on to what is outside."""
        found = self.stubs[name]
        self.lead(found + 2, self.slot(name) - 4)
        return found


def linked(objects: Iterable[bytes], exports: Iterable[str]) -> Image | None:
    """The image of objects that are linked together, with the places of some names; None as the module says."""
    try:
        return _Linker(objects).image(exports)
    except (_Unknown, KeyError, IndexError, ValueError, struct.error):
        return None


# Map.


def can_run() -> bool:
    """Whether images run in this process."""
    named = hasattr(mmap, "MAP_ANONYMOUS") and hasattr(mmap, "PROT_EXEC")
    return named and platform.machine().lower() in ("x86_64", "amd64") and struct.calcsize("P") == 8


class Mapped:
    """An image in memory, which is given back when nothing refers to it any more.

    It stays when the process ends, where threads may run in it. Raises: Absent for names that neither `imports` nor the
    process have; OSError where the system gives no such memory.
    """

    def __init__(self, image: Image, imports: Mapping[str, int]) -> None:
        names = dict.fromkeys(target for _, target in image.words if isinstance(target, str))
        outside = {name: imports.get(name) or address_in_process(name) for name in names}
        if absent := sorted(name for name, place in outside.items() if not place):
            raise Absent(absent)
        start = allocate(image.size)
        weakref.finalize(self, free, start, image.size).atexit = False
        for place, content in ((start, image.code), (start + image.gap, image.data)):
            ctypes.memmove(place, content, len(content))
        for place, target in image.words:
            word = ctypes.c_uint64.from_address(start + place)
            word.value = outside[target] if isinstance(target, str) else start + target
        make_runnable(start, image.gap)
        self.addresses = {name: start + place for name, place in image.exports.items()}
