"""Each weight is in the memory of a process once, in the form that is used; counted are arrays and their memory."""

from __future__ import annotations

import mmap
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.errors import ArtifactError
from weft.ir.graph import Constant
from weft.runtime.executable import Executable
from weft.script import relax as R
from weft.support.array_memory import ALIGNMENT, aligned_copy

ROWS, WIDTH = 8, 256


def perceptron(layers: int = 2, bias: bool = True) -> weft.IRModule:
    """Products with constant weights, which are packed, and a table that stays as it is."""
    random = np.random.default_rng(0)
    weights = [random.standard_normal((WIDTH, WIDTH), "float32") for _ in range(layers)]
    table = random.standard_normal((WIDTH, WIDTH), "float32")

    @R.function
    def main(x: R.Tensor((ROWS, WIDTH), "float32"), rows: R.Tensor((ROWS,), "int64")):
        for weight in weights:
            x = R.nn.relu(R.matmul(x, R.const(weight)))
        return x + R.take(R.const(table), rows, axis=0)

    return weft.IRModule({"main": main})


X = np.random.default_rng(1).standard_normal((ROWS, WIDTH), "float32")
PLACES = np.arange(ROWS)[::-1].copy()


@pytest.fixture(scope="module")
def made() -> Executable:
    return weft.compile(perceptron())


@pytest.fixture(scope="module")
def saved(made: Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "model.weft"
    made.save(path)
    return path


def memory_of(array: np.ndarray) -> object:
    """What an array is a view of."""
    base: object = array
    while True:
        if isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        elif isinstance(base, memoryview):
            base = base.obj
        else:
            return base


def used(exe: Executable) -> list[np.ndarray]:
    """The constants that compiled code reads."""
    return [array for loaded in exe._all_loaded for array in loaded.constants]


def test_what_is_saved_is_what_is_used(made: Executable) -> None:
    assert len(used(made)) == 3
    for array, (kept, _) in zip(used(made), made._program.constants, strict=True):
        assert array is kept


def test_a_loaded_executable_uses_constants_where_the_file_is_mapped(
    made: Executable, saved: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(saved, tmp_path))
    loaded = weft.load(path)
    path.unlink()
    for array, (kept, _) in zip(used(loaded), loaded._program.constants, strict=True):
        assert array is kept
        assert isinstance(memory_of(array), mmap.mmap)
    assert len({id(memory_of(array)) for array in used(loaded)}) == 1
    np.testing.assert_array_equal(loaded["main"](X, PLACES), made["main"](X, PLACES))


def test_a_file_that_places_constants_elsewhere_is_used_too(made: Executable, saved: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(saved) as file, zipfile.ZipFile(tmp_path / "moved.weft", "w") as moved:
        for name in file.namelist():
            moved.writestr(name, file.read(name))
    loaded = weft.load(tmp_path / "moved.weft")
    assert all(array.ctypes.data % ALIGNMENT == 0 for array in used(loaded))
    assert all(array is kept for array, (kept, _) in zip(used(loaded), loaded._program.constants, strict=True))
    np.testing.assert_array_equal(loaded["main"](X, PLACES), made["main"](X, PLACES))


@pytest.mark.parametrize("place", ["data", "head"])
def test_damage_to_what_is_mapped_is_seen(saved: Path, tmp_path: Path, place: str) -> None:
    path = Path(shutil.copy(saved, tmp_path))
    with zipfile.ZipFile(path) as file:
        info = max(file.infolist(), key=lambda entry: entry.file_size)
    content = bytearray(path.read_bytes())
    at = content.index(info.filename.encode())
    assert content[at - 30 : at - 28] == b"PK"
    at += len(info.filename) + 1000 if place == "data" else 5
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError) as caught:
        weft.load(path)
    assert caught.value.code == "W801"


def test_a_constant_that_is_copied_lies_as_compiled_code_takes_it() -> None:
    array = np.ones((WIDTH, WIDTH), "float32")
    constant = Constant(array)
    array[0] = 2
    assert constant.data.ctypes.data % ALIGNMENT == 0
    assert not constant.data.flags.writeable
    assert (constant.data == 1).all()
    same = aligned_copy(array.T)
    assert Constant(same).data is same
