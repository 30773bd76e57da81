"""The constants of a program: one copy of each, read for one digest, used where they lie."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.cache import programs
from weft.ir.structure.array_digests import array_digest, digests_kept
from weft.runtime.artifact import Artifact
from weft.script import ir as I
from weft.script import relax as R
from weft.support.array_memory import ALIGNMENT, aligned_bytes, aligned_zeros, frozen_copy

WEIGHT = frozen_copy(np.arange(64 * 256, dtype="float32").reshape(64, 256) / 256)


def layer(weight: np.ndarray) -> weft.IRModule:
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((3, 256), "float32")):
            y = R.add(x, R.const(weight[0]))
            z = R.add(R.sum(R.const(weight), axis=0), y)
            return z

    return M


def constants(exe: Any) -> list[Artifact]:
    return [item for item in exe.artifacts.values() if item.kind == "constants"]


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_the_artifact_of_a_large_constant_is_a_view_of_the_array(executor: str) -> None:
    exe = weft.compile(layer(WEIGHT), executor=executor, opt=0)
    large = [item for item in constants(exe) if item.size == WEIGHT.nbytes]
    assert len(large) == 1
    assert np.shares_memory(np.frombuffer(large[0].data, np.uint8), WEIGHT)
    with pytest.raises(TypeError):
        memoryview(large[0].data)[0] = 1
    x = np.ones((3, 256), "float32")
    np.testing.assert_allclose(exe(x), WEIGHT.sum(0) + (x + WEIGHT[0]), rtol=1e-5)


def test_the_artifact_of_a_constant_that_had_to_be_moved_is_a_view_of_what_is_used() -> None:
    """So that the array it was moved from need not stay."""
    whole = np.empty(WEIGHT.nbytes + 1, np.uint8)
    places = (part for part in (whole[:-1], whole[1:]) if part.ctypes.data % ALIGNMENT)
    weight = next(places).view("float32").reshape(WEIGHT.shape)
    weight[...] = WEIGHT
    weight.flags.writeable = False
    exe: Any = weft.compile(layer(weight), opt=0)
    (large,) = (item for item in constants(exe) if item.size == WEIGHT.nbytes)
    (used,) = (array for loaded in exe._all_loaded for array in loaded.constants if array.nbytes == WEIGHT.nbytes)
    assert used.ctypes.data % ALIGNMENT == 0
    assert np.shares_memory(np.frombuffer(large.data, np.uint8), used)
    assert not np.shares_memory(used, weight)


def test_an_artifact_that_is_a_view_equals_copies_and_travels_as_bytes() -> None:
    array = np.arange(5000, dtype="int64")
    array.flags.writeable = False
    view: Any = array.view(np.uint8).data.toreadonly()
    item, copy = Artifact("constants", "constant0.bin", view), Artifact("constants", "constant0.bin", array.tobytes())
    assert item == copy
    assert hash(item) == hash(copy)
    again = pickle.loads(pickle.dumps(item))
    assert type(again.data) is bytes
    assert again == item
    assert Artifact.from_data(item.to_data()) == item


@pytest.mark.parametrize("executor", ["native", "vm", "graph", "aot"])
def test_archives_and_text_hold_the_large_constant(executor: str, tmp_path: Path) -> None:
    exe = weft.compile(layer(WEIGHT), executor=executor)
    x = np.ones((3, 256), "float32")
    exe.save(tmp_path / "layer.weft")
    np.testing.assert_array_equal(weft.load(tmp_path / "layer.weft")(x), exe(x))
    again = weft.parse(exe.module.script())
    assert weft.first_mismatch(exe.module, again) is None
    np.testing.assert_array_equal(weft.load_module(again, trust=True)(x), exe(x))
    np.testing.assert_array_equal(weft.load_module(exe.module.script(), trust=True)(x), exe(x))


def test_a_view_that_can_be_written_is_copied() -> None:
    array = np.zeros(5000, "uint8")
    data: Any = array.data
    item = Artifact("constants", "constant0.bin", data)
    array[0] = 1
    assert item.data[0] == 0


def test_constants_with_the_same_bytes_are_kept_once_and_others_apart() -> None:
    other = WEIGHT.copy()
    other[-1, -1] += 1  # alike in the first bytes
    twin = WEIGHT.copy()

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((64, 256), "float32")):
            y = R.subtract(R.add(x, R.const(WEIGHT)), R.const(other))
            z = R.add(y, R.const(twin))
            return z

    exe = weft.compile(M, opt=0)
    assert sorted(item.size for item in constants(exe)) == [WEIGHT.nbytes, WEIGHT.nbytes]
    x = np.zeros((64, 256), "float32")
    np.testing.assert_array_equal(exe(x), (x + WEIGHT) - other + WEIGHT)


def test_a_digest_is_made_once_while_digests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = hashlib.sha256

    def counted(content: Any = b"") -> Any:
        made.append(memoryview(content).nbytes)
        return real(content)

    monkeypatch.setattr("weft.ir.structure.array_digests.hashlib.sha256", counted)
    array = np.arange(4096, dtype="float32")
    with digests_kept():
        first = array_digest(array)
        assert array_digest(array) == first
        with digests_kept():
            assert array_digest(array) == first
    assert made == [array.nbytes]
    array[0] = 1
    assert array_digest(array) != first


@pytest.mark.parametrize("size", [0, 1, 63, 64, 1000])
def test_aligned_memory(size: int) -> None:
    assert aligned_bytes(size).nbytes == size
    assert size == 0 or aligned_bytes(size).ctypes.data % ALIGNMENT == 0
    zeros = aligned_zeros((size, 2), np.dtype("float64"))
    assert zeros.shape == (size, 2)
    assert not zeros.any()


def test_a_module_beyond_the_cache_s_size_has_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WEFT_CHECK", "0")
    assert programs.key_of(layer(WEIGHT)) is not None
    monkeypatch.setattr(programs, "_LARGEST", WEIGHT.nbytes - 1)
    assert programs.key_of(layer(WEIGHT)) is None
