"""Each weight is in the memory of a process once, in the form that is used; counted are arrays and their memory."""

from __future__ import annotations

import gc
import mmap
import shutil
import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen import lowering
from weft.codegen.cache import programs
from weft.errors import ArtifactError
from weft.ir.graph import Constant
from weft.ir.structure.visit import nodes_of
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable
from weft.script import relax as R
from weft.support.array_memory import ALIGNMENT, forget_pages, frozen_copy

ROWS, WIDTH = 64, 512


def perceptron(layers: int = 2) -> weft.IRModule:
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


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty cache, and no checks after passes: with them, every pass runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("WEFT_CHECK", "0")
        yield


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
    same = frozen_copy(array.T)
    assert Constant(same).data is same


# -- what the module held is not held for it


def dropped(module: weft.IRModule) -> list[weakref.ref[np.ndarray]]:
    """References to the large constants of a module, which do not keep them."""
    return [weakref.ref(node.data) for node in nodes_of(module, Constant) if node.data.size == WIDTH * WIDTH]


def contents(artifacts: ArtifactSet) -> dict[str, bytes]:
    return {name: bytes(item.data) for name, item in artifacts.items()}


def test_a_program_holds_no_weights_that_were_packed_and_gives_its_library_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = contents(weft.compile(perceptron(3), executor="aot").linkable())
    for again in (False, True):
        if again:
            nothing_is_compiled(monkeypatch)
        module = perceptron(3)
        weights = dropped(module)
        exe = weft.compile(module)
        assert len(weights) == 4
        assert all(weight() is not None for weight in weights)
        del module
        gc.collect()
        # The table is used as it is: by this process, or where the cache is mapped.
        assert sum(weight() is not None for weight in weights) == (0 if again else 1)
        assert exe["main"](X, PLACES).shape == (ROWS, WIDTH)
        if again:
            monkeypatch.undo()
        assert contents(exe.linkable()) == expected


def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the program is on the disk")

    monkeypatch.setattr(lowering, "compiled_program", fail)


def test_programs_with_branches_keep_their_module() -> None:
    random = np.random.default_rng(0)
    weight, other = (random.standard_normal((WIDTH, WIDTH), "float32") for _ in range(2))

    @R.function
    def main(x: R.Tensor((ROWS, WIDTH), "float32"), flag: R.Tensor((), "bool")):
        if flag:
            y = R.matmul(x, R.const(weight))
        else:
            y = R.matmul(x, R.const(other))
        return y

    for _ in range(2):
        assert any(name.endswith(".o") for name in weft.compile(main).linkable())


def test_a_text_that_is_not_there_any_more_is_an_error_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    weft.compile(perceptron())  # which the disk has from now on
    monkeypatch.setattr(programs._Texts, "lowered", lambda _: "")
    exe = weft.compile(perceptron())
    with pytest.raises(ArtifactError) as caught:
        exe.linkable()
    assert caught.value.code == "W819"


# -- files that weights are read from


def resident(path: Path) -> int:
    """The bytes of a mapped file that are in the memory of this process."""
    text = Path("/proc/self/smaps").read_text()
    parts = text.split(str(path))[1:]
    return sum(1024 * int(part.split("Rss:", 1)[1].split(maxsplit=1)[0]) for part in parts)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says what of a file is in memory")
def test_a_file_of_weights_is_not_in_memory_once_it_was_compiled(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    weft.frontend.safetensors.save(path, {"w": np.eye(WIDTH, dtype="float32")})
    weights = weft.frontend.safetensors.load(path)

    @R.function
    def main(x: R.Tensor((ROWS, WIDTH), "float32")):
        return R.matmul(x, R.const(weights["w"]))

    assert weights["w"].sum() == WIDTH
    assert resident(path) >= weights["w"].nbytes
    exe = weft.compile(main)
    assert resident(path) == 0
    np.testing.assert_allclose(exe["main"](X), X, rtol=1e-5)
    assert weights["w"].sum() == WIDTH


def test_what_was_written_to_a_mapped_copy_of_a_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "array"
    np.ones(1 << 14, "uint8").tofile(path)
    read, written = (np.memmap(path, "uint8", mode) for mode in ("r", "c"))
    written[:] = 7
    forget_pages([read, written[10:]])
    assert (read == 1).all()
    assert (written == 7).all()
