"""Digests of the contents of arrays, each made once while a module is compiled.

A digest is SHA-256 over the bytes of a C-contiguous array; dtype and shape are no part of it. Weights may be a
gigabyte, and keys of caches and the provenance of code ask for their hash several times; inside of `digests_kept` an
array is taken to stay as it is, and is read for its first digest only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from weft.support.array_bytes import content_bytes

__all__ = ["array_digest", "digests_kept"]

_kept: ContextVar[dict[int, tuple[np.ndarray, bytes]] | None] = ContextVar("kept digests", default=None)
_SMALL = 1024  # bytes whose digest costs as much as keeping it


def array_digest(array: np.ndarray) -> bytes:
    """The digest of an array's elements.

    >>> array_digest(np.zeros(3)) == array_digest(np.zeros(3)), array_digest(np.zeros(3)) == array_digest(np.ones(3))
    (True, False)
    """
    kept = _kept.get()
    if kept is None or array.nbytes <= _SMALL:
        return _digest(array)
    found = kept.get(id(array))
    if found is None:  # the array stays alive with its digest, so that its number is not another's
        found = kept[id(array)] = array, _digest(array)
    return found[1]


@contextmanager
def digests_kept() -> Generator[None]:
    """Make the digest of each array once."""
    token = _kept.set({} if _kept.get() is None else _kept.get())
    try:
        yield
    finally:
        _kept.reset(token)


def _digest(array: np.ndarray) -> bytes:
    return hashlib.sha256(content_bytes(array).data).digest()
