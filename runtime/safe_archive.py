"""Archives that hold what their manifest says and nothing else.

    archive ::= zip { manifest.json, files of the manifest }      with fixed time stamps and order

Reading trusts nothing: the size of the directory, entries, names, sizes and the ratio of compression are checked before
anything is unpacked, and unpacking stops at the size that was stated. All of an archive takes at most 64 MiB and 64
times the room of its file, which writing keeps to: what packs better is stored as it is. Only plain files without large
holes are opened. Nothing is ever written to a path that an archive names.

Errors: ArtifactError W811 for an archive that is damaged, or made to do damage.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import IO

from weft.errors import ArtifactError
from weft.support.records import record

__all__ = [
    "DAMAGE",
    "Limits",
    "map_archive",
    "open_file",
    "packing",
    "read_archive",
    "write_archive",
    "write_whole",
]

# What the standard library raises for archives that are cut or changed.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    TypeError,
    ValueError,
    RecursionError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    AttributeError,
    IndexError,
    OverflowError,
    struct.error,
)
_TIME = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*")
_LONGEST_NAME = 255
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@record
class Limits:
    """What an archive may hold at most: entries, bytes of all of them, bytes of the manifest and of the directory.

    `growth` is how many times the size of the file all contents may have beyond the first `free` bytes.
    """

    entries: int = 100_000
    total: int = 1 << 34
    manifest: int = 64 << 20
    directory: int = 32 << 20
    ratio: int = 1100  # deflate cannot reach more than 1032
    growth: int = 64
    free: int = 64 << 20

    def contents(self, size: int) -> int:
        """The bytes that a file of a size may unpack to."""
        return min(self.total, self.free + self.growth * size)

    def within(self, size: int) -> Limits:
        """The limits of an archive inside a file of a size."""
        return replace(self, total=self.contents(size))


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A zip with fixed time stamps and order, so that equal contents are equal bytes.

    >>> write_archive({"a": b"1", "b": b"2"}) == write_archive({"b": b"2", "a": b"1"})
    True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = packing(files[name])
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


_SMALL = 4 << 10  # what the directory says of an entry is enough room for so many bytes
_PACKED = 50


def packing(data: bytes) -> int:
    """How an entry is packed: as it is where reading would take the packed one for an attack."""
    packs = len(data) > _SMALL and len(zlib.compress(data, 1)) * _PACKED < len(data)
    return zipfile.ZIP_STORED if packs else zipfile.ZIP_DEFLATED


def open_file(path: str | os.PathLike[str], limits: Limits | None = None) -> IO[bytes]:
    """A plain file, open for reading; a pipe is not waited for.

    Raises: ArtifactError W811 for anything that is no plain file, and for one that holes make larger than its room on
    the disk lets expect; OSError when it cannot be opened.
    """
    limits = limits or Limits()
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _refused("is no plain file")
        room = getattr(status, "st_blocks", status.st_size) * 512
        if status.st_size > min(limits.contents(room), limits.total):
            raise _refused(f"has {status.st_size} bytes, {room} of them on the disk")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_archive(content: bytes | IO[bytes], limits: Limits | None = None) -> dict[str, bytes]:
    """The files of an archive by name; ArtifactError W811 for one that `write_archive` cannot have written."""
    with _opened(io.BytesIO(content) if isinstance(content, bytes) else content, limits) as archive:
        return {info.filename: _unpacked(archive, info) for info in archive.infolist()}


def map_archive(file: IO[bytes], folder: str) -> tuple[dict[str, bytes], dict[str, memoryview]]:
    """The files of an archive, and views of the mapped file that are the large ones of a folder, stored as they are.

    Sums of views are not looked at: who reads them knows their hash. ArtifactError as `read_archive`.
    """
    with _opened(file, None) as archive:
        infos = archive.infolist()
        chosen = [info for info in infos if info.filename.startswith(f"{folder}/") and _is_plain(info)]
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if chosen else b"")
        views = {info.filename: _view(data, info) for info in chosen}
        return {info.filename: _unpacked(archive, info) for info in infos if info.filename not in views}, views


@contextlib.contextmanager
def _opened(file: IO[bytes], limits: Limits | None) -> Generator[zipfile.ZipFile]:
    """An archive whose list of entries is checked; what it does then is ArtifactError W811 too."""
    limits = limits or Limits()
    try:
        size = file.seek(0, os.SEEK_END)
        _check_directory(file, size, limits)
        with zipfile.ZipFile(file) as archive:
            _check_entries(archive.infolist(), limits, limits.contents(size))
            yield archive
    except ArtifactError:
        raise
    except DAMAGE as error:
        raise _refused(f"is damaged: {error}") from None


def _refused(why: str) -> ArtifactError:
    return ArtifactError(f"the archive {why}", code="W811")


_END = struct.Struct("<4s4H2LH")  # the end of a zip: ..., bytes of the directory, ...
_END_64 = struct.Struct("<4sQ2H2L4Q")
_UNKNOWN_32 = 0xFFFF_FFFF


def _check_directory(file: IO[bytes], size: int, limits: Limits) -> None:
    """The list of entries is read as a whole before any is looked at: its size is known first."""
    tail = _at_end(file, size, _END.size + 0xFFFF + _LOCATOR + _END_64.size)
    start = tail.rfind(b"PK\x05\x06")
    if start < 0 or start + _END.size > len(tail):
        return  # no zip, which the reader says
    directory = _END.unpack_from(tail, start)[5]
    wide = start - _LOCATOR - _END_64.size
    if directory == _UNKNOWN_32 and wide >= 0:
        directory = _END_64.unpack_from(tail, wide)[8]
    if directory > limits.directory:
        raise _refused(f"has a list of entries of {directory} bytes, more than {limits.directory}")


_LOCATOR = 20  # bytes between the wide end of a zip and its end


def _at_end(file: IO[bytes], size: int, count: int) -> bytes:
    file.seek(max(0, size - count))
    return file.read(count)


def _check_entries(infos: list[zipfile.ZipInfo], limits: Limits, room: int) -> None:
    if len(infos) > limits.entries:
        raise _refused(f"has {len(infos)} entries, more than {limits.entries}")
    seen: set[str] = set()
    for info in infos:
        name = info.orig_filename  # `filename` ends at the first NUL
        if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name) or ".." in name.split("/") or "." in name.split("/"):
            raise _refused(f"names the path {name[:80]!r}")
        if name in seen:
            raise _refused(f"holds {name!r} twice")
        seen.add(name)
        mode = info.external_attr >> 16
        if info.is_dir() or (mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode)):
            raise _refused(f"holds {name!r}, which is no plain file")
        if info.flag_bits & 0x1 or info.compress_type not in _METHODS:
            raise _refused(f"packs {name!r} in a way that is not read")
        if info.file_size > limits.ratio * (info.compress_size + 1):
            raise _refused(f"states {info.file_size} bytes for {name!r}, packed in {info.compress_size}")
    total = sum(info.file_size for info in infos)
    if total > room:
        raise _refused(f"holds {total} bytes, more than the {room} that a file of its size may hold")
    manifest = next((info.file_size for info in infos if info.filename == "manifest.json"), 0)
    if manifest > limits.manifest:
        raise _refused(f"has a manifest of {manifest} bytes, more than {limits.manifest}")


_LOCAL = struct.Struct("<4s22x2H")  # what stands before an entry: ..., bytes of its name, bytes between that and it
_LARGE = 64 << 10
"""Bytes that are worth pages of their own."""


def _is_plain(info: zipfile.ZipInfo) -> bool:
    return info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size >= _LARGE


def _view(data: memoryview, info: zipfile.ZipInfo) -> memoryview:
    """The bytes of an entry where they stand in the file."""
    at = info.header_offset + _LOCAL.size
    sign, name, more = _LOCAL.unpack_from(data, info.header_offset)
    start = at + name + more
    inside = start + info.file_size <= len(data) and data[at : at + name] == info.orig_filename.encode()
    if sign != b"PK\x03\x04" or not inside:
        raise _refused(f"has no {info.filename!r} where it says")
    return data[start : start + info.file_size]


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The bytes of an entry: as many as it states, and not one more is unpacked."""
    with archive.open(info) as file:
        data = file.read(info.file_size)
        if len(data) != info.file_size or file.read(1):
            raise _refused(f"holds another number of bytes for {info.filename!r} than it states")
    return data


def write_whole(path: str | os.PathLike[str], content: bytes | Callable[[str], object]) -> None:
    """Write a file whole or not at all: bytes, or what a function writes at the path that it is given."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".weft-")
    try:
        with os.fdopen(handle, "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
        if callable(content):
            content(temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
