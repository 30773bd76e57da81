"""Digests of weights for keys: the sums that the definition says, other ones for any other weights."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from weft.codegen.cache import weights
from weft.codegen.cache.weights import weight_digests
from weft.ir.structure.array_digests import array_digests
from weft.runtime.device.code_cache import object_cache

BLOCK = 4096


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and arrays that are large from one block on."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "_LARGE", BLOCK)
    return tmp_path / "cache"


def digest(array: np.ndarray) -> bytes:
    (found,) = weight_digests([array])
    return found


def stated(content: np.ndarray, keys: bytes) -> bytes:
    """The digest as the definition says, in NumPy."""
    key, sums = np.frombuffer(keys, np.uint32), list[np.uint64]()
    for start in range(0, len(content) - BLOCK + 1, BLOCK):
        halves = content[start : start + BLOCK].view(np.uint32)
        for number in range(4):
            added = (halves + key[16 * number :][: BLOCK // 4]).astype(np.uint64)
            sums.append(np.sum(added[::2] * added[1::2], dtype=np.uint64))
    tail = content[len(content) // BLOCK * BLOCK :]
    whole = len(content).to_bytes(8, "little") + np.array(sums, np.uint64).tobytes() + tail.tobytes()
    return hashlib.sha256(whole).digest()


@pytest.mark.parametrize("size", [BLOCK, BLOCK + 1, 3 * BLOCK - 1, 5 * BLOCK])
def test_the_digest_is_what_is_defined(size: int) -> None:
    content = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert digest(content) == stated(content, weights._keys())
    odd = np.concatenate([content[:1], content])[1:]  # at an odd address
    assert digest(odd) == digest(content)


@pytest.mark.parametrize("place", [0, 5, BLOCK - 1, BLOCK, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 6])
def test_one_bit_makes_another_digest(place: int) -> None:
    content = np.zeros(2 * BLOCK + 7, np.uint8)
    before = digest(content)
    content[place] = 128
    assert digest(content) != before


def test_blocks_in_another_order_and_zeros_at_the_end_are_other_weights() -> None:
    content = np.random.default_rng(0).random((4, BLOCK // 8))
    assert digest(content) != digest(content[::-1])
    assert digest(np.zeros(BLOCK)) != digest(np.zeros(2 * BLOCK))
    assert digest(content.T) == digest(np.ascontiguousarray(content.T))


def test_keys_stay_in_a_cache_and_are_others_in_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(BLOCK)
    first = digest(array)
    assert digest(array.copy()) == first
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "another"))
    assert digest(array) != first
    monkeypatch.undo()


def test_small_arrays_and_machines_without_llvm_use_sha(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.arange(3), np.arange(BLOCK), np.ones(5, "float32")]
    mixed = weight_digests(arrays)
    assert [mixed[0], mixed[2]] == array_digests([arrays[0], arrays[2]])
    assert mixed[1] != array_digests(arrays)[1]
    monkeypatch.setattr(weights, "_hash", lambda: None)
    assert weight_digests(arrays) == array_digests(arrays)


def test_nobody_else_reads_the_keys(folder: Path) -> None:
    weights._keys()
    assert object_cache().get(weights._KEYS) is not None
    assert [path.stat().st_mode & 0o077 for path in folder.iterdir()] == [0]
