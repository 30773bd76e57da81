"""Compiled code by content, on disk: what was compiled once is not compiled again, in any process.

    entry ::= sha256 of the rest, length of the object, object, compressed LLVM text          one file, named by its key

A key is the hash of everything that the code follows from: the LLVM text, the processor, the level, the version of
LLVM. The folder is WEFT_CACHE_DIR, else `weft` in XDG_CACHE_HOME or ~/.cache; WEFT_CACHE_DIR=off keeps nothing. A
cache is never needed: one that cannot be read or written, or holds a damaged entry (which is logged), is as good as an
empty one.
Entries that were not used for longest go when all together pass `LIMIT` bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LIMIT", "CacheInfo", "DiskCache", "object_cache"]

LIMIT = 512 << 20
_log = logging.getLogger("weft.cache")
_SUFFIX = ".code"
_LOOK_EVERY = 64  # writes between two looks at the size of all


@dataclass(frozen=True)
class CacheInfo:
    """Where a cache is and what it holds; `folder` is None when nothing is kept."""

    folder: Path | None
    entries: int
    bytes: int
    limit: int


class DiskCache:
    """Entries of (object code, LLVM text) by key.

    >>> DiskCache(None).get("key") is None
    True
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._writes = 0

    def get(self, key: str) -> tuple[bytes, str] | None:
        """The entry, if it is there and whole."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}{_SUFFIX}"
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        size = int.from_bytes(data[32:40], "little")
        if len(data) >= 40 + size and hashlib.sha256(data[32:]).digest() == data[:32]:
            with contextlib.suppress(zlib.error, UnicodeDecodeError):
                return data[40 : 40 + size], zlib.decompress(data[40 + size :]).decode()
        _log.warning("the cache entry %s is damaged; it is removed, and what it held is compiled again", path)
        _removed(path)
        return None

    def put(self, key: str, code: bytes, text: str) -> None:
        """Keep an entry, whole or not at all."""
        if self.folder is None:
            return
        rest = len(code).to_bytes(8, "little") + code + zlib.compress(text.encode(), 1)
        temporary = ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(rest).digest() + rest)
            os.replace(temporary, self.folder / f"{key}{_SUFFIX}")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            return
        if self._writes % _LOOK_EVERY == 0:
            self._shrink()
        self._writes += 1

    def info(self) -> CacheInfo:
        """What is there now."""
        found = list(self._entries())
        return CacheInfo(self.folder, len(found), sum(size for _, size, _ in found), self.limit)

    def clear(self) -> int:
        """Remove all entries, and give their number."""
        return sum(_removed(path) for _, _, path in self._entries())

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """(time of the last use, bytes, file)."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if file.name.endswith(_SUFFIX):
                    with contextlib.suppress(OSError):
                        status = file.stat()
                        yield status.st_mtime, status.st_size, Path(file.path)

    def _shrink(self) -> None:
        entries = sorted(self._entries(), key=lambda entry: (entry[0], entry[2].name))
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit:
                return
            total -= size if _removed(path) else 0


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def object_cache() -> DiskCache:
    """The cache of this process's environment."""
    stated = os.environ.get("WEFT_CACHE_DIR")
    if stated:
        return DiskCache(None if stated == "off" else Path(stated))
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return DiskCache((Path(base) if base else Path.home() / ".cache") / "weft")
    except RuntimeError:  # there is no home
        return DiskCache(None)
