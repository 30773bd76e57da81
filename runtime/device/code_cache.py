"""Compiled code by content, on disk: what was compiled once is not compiled again, in any process.

    entry ::= digest of the rest, key, stamp, length of the object, object, compressed LLVM text    file: <key>.code
    digest ::= sha256, of more than `_CHUNK` bytes that of the sha256 of each so many               on several cores
    key   ::= 64 hexadecimal digits
    stamp ::= the time of its last change that the file was given, in seconds: one that no later write has

A key is the hash of everything that the code follows from: the LLVM text, the processor, the level, the version of
LLVM. The folder is WEFT_CACHE_DIR, else `weft` in XDG_CACHE_HOME or ~/.cache; WEFT_CACHE_DIR=off keeps nothing. A
cache is never needed: one that cannot be read or written, or holds a damaged entry (which is logged), is as good as an
empty one.

Entries are machine code that will run, so only the user's own are read: the folder and the entry belong to the user,
nobody else may write them or put another folder in the place of one above them, and the entry is a plain file that
holds its key. What is not so is ignored, and the reason logged. Files of other names are left alone. Large entries are
mapped, not read; their digest is made again where the file was written since it got its stamp. Entries that were not
used (the time of the last access) for longest go when all together pass `LIMIT` bytes; what a writer of the user's that
was killed left behind goes after an hour.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import mmap
import os
import re
import stat
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from weft.support.records import dataclass
from weft.support.spread import spread

__all__ = ["HEAD", "LIMIT", "CacheInfo", "DiskCache", "object_cache", "unpacked"]

LIMIT = 2 << 30
_log = logging.getLogger("weft.cache")
_SUFFIX = ".code"
_OURS = re.compile(r"[0-9a-f]{64}\.code")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.\w+\.part")
_ABANDONED = 3600  # seconds after which nobody is still writing
_KEY = 64
HEAD = 32 + _KEY + 8 + 8
"""Bytes of an entry before the object."""
_CHUNK = 4 << 20
_LONG_AGO = 86400
"""How many seconds before a file is written its stamp lies: what is written later has another time."""
_UNKNOWN = 65534  # the owner of folders of the system in a container that has no name for root
_LOOK_EVERY = 64
"""One in so many keys has the folder looked through, which reads the names of all entries, and each large entry."""


@dataclass(frozen=True)
class CacheInfo:
    """Where a cache is and what it holds; `folder` is None when nothing is kept, `refused` says why it is ignored."""

    folder: Path | None
    entries: int
    bytes: int
    limit: int
    refused: str = ""


class DiskCache:
    """Entries of (object code, LLVM text) by key.

    >>> DiskCache(None).get("key") is None
    True
    """

    def __init__(self, folder: Path | None, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit

    def get(self, key: str) -> tuple[memoryview, str] | None:
        """The entry, if it is there, whole, the user's own, and that of the key."""
        found = self.packed(key)
        if found is not None:
            with contextlib.suppress(zlib.error, UnicodeDecodeError):
                return found[0], unpacked(found[1])
        return None

    def packed(self, key: str) -> tuple[memoryview, memoryview] | None:
        """The entry as `get` gives it, with its text as it is stored (`unpacked`)."""
        if self.folder is None or self.refused():
            return None
        path = self.folder / f"{key}{_SUFFIX}"
        found = _read(path)
        if found is None:
            return None
        data, changed = found
        stamp, size = (int.from_bytes(data[at : at + 8], "little") for at in (HEAD - 16, HEAD - 8))
        large = len(data) > _CHUNK
        unchanged = large and changed == stamp * _SECOND
        if not unchanged and _digest(data[32:]) != data[:32]:
            _log.warning("the cache entry %s is damaged; it is removed, and what it held is compiled again", path)
        elif len(data) < HEAD + size:
            _log.info("the cache entry %s is that of another version; it is removed", path)
        elif data[32 : 32 + _KEY] != key.encode():
            _log.warning("the cache entry %s is that of another key; it is removed", path)
        else:
            if large and not unchanged:
                _stamp(path, stamp)
            return data[HEAD : HEAD + size], data[HEAD + size :]
        _removed(path)
        return None

    def put(self, key: str, code: Sequence[bytes | memoryview], text: str) -> None:
        """Keep an entry, of code in pieces, whole or not at all."""
        if self.folder is None:
            return
        stamp = int(time.time()) - _LONG_AGO & ~1  # some systems keep even seconds
        numbers = (stamp, sum(len(piece) for piece in code))
        head = [bytes(32), key.encode(), *(number.to_bytes(8, "little") for number in numbers)]
        temporary = ""
        try:
            _make_private(self.folder)
            if self.refused():
                return
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=f"{key}.", suffix=".part")
            with os.fdopen(handle, "w+b") as file:
                file.writelines([*head, *code, zlib.compress(text.encode(), 1)])
                file.seek(32)
                digest = _combined([_sha256(chunk) for chunk in iter(lambda: file.read(_CHUNK), b"")])
                file.seek(0)
                file.write(digest)
            _stamp(temporary, stamp)
            os.replace(temporary, self.folder / f"{key}{_SUFFIX}")
        except BaseException as error:  # an interrupt too leaves no unfinished file
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            if isinstance(error, OSError):
                return
            raise
        if int(key[-4:], 16) % _LOOK_EVERY == 0 or numbers[1] > self.limit // _LOOK_EVERY:
            self._shrink()

    def refused(self) -> str:
        """Why the folder is not used, or empty: as for keys of ssh, it is the user's and nobody else may write it."""
        try:
            why = "" if self.folder is None else _not_safe(self.folder)
        except OSError:
            why = ""  # not there: it will be made, or the next step fails as well
        if why:
            _log_once(str(self.folder), why)
        return why

    def info(self) -> CacheInfo:
        """What is there now."""
        found = list(self._entries())
        return CacheInfo(self.folder, len(found), sum(size for _, size, _ in found), self.limit, self.refused())

    def clear(self) -> int:
        """Remove all entries, and give their number."""
        self._sweep()
        return sum(_removed(path) for _, _, path in self._entries())

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """(time of the last use or change, bytes, file)."""
        return self._files(_OURS)

    def _files(self, names: re.Pattern[str]) -> Iterator[tuple[float, int, Path]]:
        """The user's own plain files of such names, if the folder is the user's."""
        if self.folder is None or self.refused():
            return
        with contextlib.suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                if names.fullmatch(file.name):
                    with contextlib.suppress(OSError):
                        status = file.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and _is_own(status):
                            yield max(status.st_atime, status.st_mtime), status.st_size, Path(file.path)

    def _shrink(self) -> None:
        self._sweep()
        entries = sorted(self._entries(), key=lambda entry: (entry[0], entry[2].name))
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit:
                return
            total -= size if _removed(path) else 0

    def _sweep(self) -> None:
        """Remove what writers that were killed have left."""
        for changed, _, path in list(self._files(_UNFINISHED)):
            if changed < time.time() - _ABANDONED:
                _removed(path)


def unpacked(text: bytes | memoryview) -> str:
    """The text of an entry; zlib.error or UnicodeDecodeError for what is none."""
    return zlib.decompress(text).decode()


_SECOND = 10**9


def _stamp(path: str | os.PathLike[str], stamp: int) -> None:
    """Give a file that is whole the time that says so, and the present one as that of its last use."""
    with contextlib.suppress(OSError, OverflowError):
        os.utime(path, ns=(time.time_ns(), stamp * _SECOND))


def _digest(rest: memoryview) -> bytes:
    """The digest of an entry without its first bytes."""
    chunks = [rest[start : start + _CHUNK] for start in range(0, len(rest), _CHUNK)]
    return _combined(spread(_sha256, chunks))


def _combined(digests: Sequence[bytes]) -> bytes:
    return digests[0] if len(digests) == 1 else _sha256(b"".join(digests))


def _sha256(data: bytes | memoryview) -> bytes:
    return hashlib.sha256(data).digest()


def _read(path: Path) -> tuple[memoryview, int] | None:
    """The bytes of an entry and when it was changed, if it is a plain file of the user's that nobody else may write."""
    try:
        # Neither a link nor a pipe that nobody writes to: the file that is checked is the one that is read.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        why = _not_private(status, stat.S_ISREG)
        if why:
            _log_once(str(path), why)
            return None
        with open(handle, "rb", closefd=False) as file:
            large = status.st_size > _CHUNK
            data = mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if large else file.read()
            os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
    except (OSError, ValueError):
        return None
    finally:
        os.close(handle)
    return memoryview(data), status.st_mtime_ns


def _make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, for the user alone whatever the umask."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _not_safe(folder: Path) -> str:
    """Why others may decide what is in a folder, or empty."""
    if why := _not_private(folder.stat(), stat.S_ISDIR):
        return why
    if not hasattr(os, "geteuid"):
        return ""
    for above in folder.resolve().parents:
        status = above.stat()
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
            return f"others may replace it: they may write {above} (mode {stat.S_IMODE(status.st_mode):o})"
        if status.st_uid not in (0, os.geteuid(), _UNKNOWN):
            return f"others may replace it: {above} belongs to somebody else"
    return ""


def _not_private(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Why a folder or file is not the user's alone, or empty."""
    if not is_kind(status.st_mode):
        return "it is of another kind"
    if not _is_own(status):
        return "it belongs to somebody else"
    if hasattr(os, "geteuid") and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


@functools.lru_cache(maxsize=256)
def _log_once(path: str, why: str) -> None:
    _log.warning("the compiled code in %s is ignored: %s", path, why)


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
