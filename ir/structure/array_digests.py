"""Digests of the contents of arrays, each made once.

A digest is SHA-256 over the bytes of a C-contiguous array; dtype and shape are no part of it. Weights may be a
gigabyte, and keys of caches and the provenance of code ask for their hash several times: that of an array that nobody
may write, as constants are, is kept as long as the array. Inside of `digests_kept` any array is taken to stay as it is.
Several large ones are read by several threads at once.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from weft.support.array_memory import content_bytes
from weft.support.spread import spread

__all__ = ["array_digest", "array_digests", "digests_kept"]

_kept: ContextVar[dict[int, tuple[np.ndarray, bytes]] | None] = ContextVar("kept digests", default=None)
_lasting: dict[int, tuple[weakref.ref[np.ndarray], bytes]] = {}
_SMALL = 1024  # bytes whose digest costs as much as keeping it
_LARGE = 1 << 20
"""Bytes that are worth waking a thread for."""


def array_digest(array: np.ndarray) -> bytes:
    """The digest of an array's elements.

    >>> array_digest(np.zeros(3)) == array_digest(np.zeros(3)), array_digest(np.zeros(3)) == array_digest(np.ones(3))
    (True, False)
    """
    if array.nbytes <= _SMALL:
        return _digest(array)
    found = _found(array)
    return _keep(array, _digest(array)) if found is None else found


def array_digests(arrays: Sequence[np.ndarray]) -> list[bytes]:
    """The digests of several arrays.

    >>> array_digests([np.zeros(3)]) == [array_digest(np.zeros(3))]
    True
    """
    large = {id(array): array for array in arrays if array.nbytes >= _LARGE and _found(array) is None}
    made = spread(_digest, list(large.values()))
    digests = {key: _keep(large[key], digest) for key, digest in zip(large, made, strict=True)}
    return [digests.get(id(array)) or array_digest(array) for array in arrays]


@contextmanager
def digests_kept() -> Generator[None]:
    """Make the digest of each array once."""
    token = _kept.set({} if _kept.get() is None else _kept.get())
    try:
        yield
    finally:
        _kept.reset(token)


def _found(array: np.ndarray) -> bytes | None:
    """The digest that is kept of an array."""
    lasting = _lasting.get(id(array))
    if lasting is not None and lasting[0]() is array:
        return lasting[1]
    kept = (_kept.get() or {}).get(id(array))
    return None if kept is None else kept[1]


def _keep(array: np.ndarray, digest: bytes) -> bytes:
    """Keep a digest as long as it is sure to be that of the array."""
    kept = _kept.get()
    key = id(array)
    if _stays(array):
        _lasting[key] = weakref.ref(array, lambda _: _lasting.pop(key, None)), digest
    elif kept is not None:  # the array stays alive with its digest, so that its number is not another's
        kept[key] = array, digest
    return digest


def _stays(array: np.ndarray) -> bool:
    """Whether nobody can write an array: neither it nor what it is a view of."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or isinstance(base, bytes)


def _digest(array: np.ndarray) -> bytes:
    return hashlib.sha256(content_bytes(array).data).digest()
