"""Bytes by their hash, beside a text: what `script(blobs=...)` writes and `parse(blobs=...)` reads.

    blobs ::= mapping "sha256:<64 hex digits>" -> bytes | path of a folder with a file `<64 hex digits>` for each

Nothing but files of such names in that folder is opened, and what is read is compared with its hash (see `constants`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from weft.errors import ScriptError

__all__ = ["BlobFolder", "Blobs", "as_blobs"]

Blobs = Mapping[str, Any] | str | os.PathLike[str]
_HASH = re.compile(r"(?:sha256:)?([0-9a-f]{64})\Z")


class BlobFolder(MutableMapping[str, bytes]):
    """A folder as a mapping of hashes to bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blobs = BlobFolder(folder)
    ...     blobs["sha256:" + "0" * 64] = b"data"
    ...     len(blobs), blobs["sha256:" + "0" * 64]
    (1, b'data')
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

    def _path(self, key: str) -> Path:
        match = _HASH.match(key)
        if match is None:
            raise KeyError(key)
        return self.folder / match.group(1)

    def __getitem__(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except OSError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, data: bytes) -> None:
        path = self._path(key)
        self.folder.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        part.write_bytes(data)
        part.replace(path)  # all or nothing, whoever else writes

    def __delitem__(self, key: str) -> None:
        try:
            self._path(key).unlink()
        except OSError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        return (f"sha256:{name}" for name in names if _HASH.match(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def as_blobs(blobs: Any) -> Any:
    """A mapping for what a caller gives; ScriptError W113 for anything else."""
    if blobs is None or isinstance(blobs, Mapping):
        return blobs
    if isinstance(blobs, (str, os.PathLike)):
        return BlobFolder(blobs)
    raise ScriptError(
        f"blobs is a mapping or a folder, got {type(blobs).__name__}",
        code="W113",
        hint='blobs={"sha256:...": bytes} or blobs="folder"',
    )
