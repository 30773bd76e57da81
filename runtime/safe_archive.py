"""Archives that hold what their manifest says and nothing else.

    archive ::= zip { manifest.json, files of the manifest }      with fixed time stamps and order

Reading trusts nothing: entries, names, sizes and the ratio of compression are checked before anything is unpacked, and
unpacking stops at the size that was stated. Nothing is ever written to a path that an archive names.

Errors: ArtifactError W811 for an archive that is damaged, or made to do damage.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.errors import ArtifactError

__all__ = ["DAMAGE", "Limits", "read_archive", "write_archive", "write_whole"]

# What the standard library raises for archives that are cut or changed.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, RecursionError, EOFError, OSError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
_TIME = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may hold at most: entries, bytes of all of them, bytes of the manifest, times compressed."""

    entries: int = 100_000
    total: int = 1 << 34
    manifest: int = 64 << 20
    ratio: int = 1100  # deflate cannot reach more than 1032


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A zip with fixed time stamps and order, so that equal contents are equal bytes.

    >>> write_archive({"a": b"1", "b": b"2"}) == write_archive({"b": b"2", "a": b"1"})
    True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()


def read_archive(content: bytes, limits: Limits | None = None) -> dict[str, bytes]:
    """The files of an archive by name; ArtifactError W811 for one that `write_archive` cannot have written."""
    limits = limits or Limits()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _check_entries(infos, limits)
            return {info.filename: _unpacked(archive, info) for info in infos}
    except ArtifactError:
        raise
    except DAMAGE as error:
        raise _refused(f"is damaged: {error}") from None


def _refused(why: str) -> ArtifactError:
    return ArtifactError(f"the archive {why}", code="W811")


def _check_entries(infos: list[zipfile.ZipInfo], limits: Limits) -> None:
    if len(infos) > limits.entries:
        raise _refused(f"has {len(infos)} entries, more than {limits.entries}")
    seen: set[str] = set()
    for info in infos:
        name = info.filename
        if not _NAME.fullmatch(name) or ".." in name.split("/") or "." in name.split("/"):
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
    if total > limits.total:
        raise _refused(f"holds {total} bytes, more than {limits.total}")
    manifest = next((info.file_size for info in infos if info.filename == "manifest.json"), 0)
    if manifest > limits.manifest:
        raise _refused(f"has a manifest of {manifest} bytes, more than {limits.manifest}")


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
