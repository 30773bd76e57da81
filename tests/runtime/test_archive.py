"""Executables in files: saved, loaded without the compiler, and refused when damaged or foreign."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runtime.saved_program import SOURCE, X

import weft
from weft.errors import ArtifactError

Y = np.array([[5, 7, 9], [5, 7, 9]], "float32")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "model.weft"
    weft.compile(weft.parse(SOURCE)).save(path)
    return path


def test_a_saved_executable_runs_the_same(saved: Path) -> None:
    loaded = weft.load(saved)
    np.testing.assert_array_equal(loaded["main"](X), Y)
    with pytest.raises(weft.ArgumentError, match=r"expected float32\[\(n, 2\)\], got float32\[\(2, 3\)\]"):
        loaded["main"](np.ones((2, 3), "float32"))
    assert "weft.kernel" in loaded.source("llvm")


def test_loading_imports_nothing_of_the_compiler(saved: Path) -> None:
    code = f"""
import sys, weft, numpy
exe = weft.load({str(saved)!r})
print(exe["main"](numpy.ones((2, 2), "float32")).tolist())
loaded = [m for m in sys.modules if m.startswith(("weft.ir", "weft.script", "weft.transform", "weft.codegen"))]
print(loaded, "sympy" in sys.modules, "lark" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert result.stdout.splitlines() == [str(Y.tolist()), "[] False False"]


def test_the_same_module_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    weft.compile(weft.parse(SOURCE)).save(tmp_path / "again.weft")
    assert (tmp_path / "again.weft").read_bytes() == saved.read_bytes()


def test_a_loaded_executable_saves_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    weft.load(saved).save(tmp_path / "copy.weft")
    assert (tmp_path / "copy.weft").read_bytes() == saved.read_bytes()


def test_there_is_no_pickle_in_the_file(saved: Path) -> None:
    with zipfile.ZipFile(saved) as file:
        for name in file.namelist():
            assert name == "manifest.json" or name.startswith(("manifest.sha256", "code/", "data/", "source/"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_file_is_refused_or_means_the_same(saved: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "damaged.weft"
    path.write_bytes(content)
    try:
        loaded = weft.load(path)
    except ArtifactError:
        return
    np.testing.assert_array_equal(loaded["main"](X), Y)


def repacked(saved: Path, path: Path, change: object) -> Path:
    """A copy of the file with its manifest changed, hash and all."""
    import hashlib

    with zipfile.ZipFile(saved) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(parts["manifest.json"])
    change(manifest)  # type: ignore[operator]
    parts["manifest.json"] = json.dumps(manifest).encode()
    parts["manifest.sha256"] = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def test_another_version_is_refused(saved: Path, tmp_path: Path) -> None:
    path = repacked(saved, tmp_path / "v.weft", lambda m: m.update(version=99))
    with pytest.raises(ArtifactError, match="version 99") as info:
        weft.load(path)
    assert info.value.code == "W802"


def test_code_for_another_machine_is_refused(saved: Path, tmp_path: Path) -> None:
    path = repacked(saved, tmp_path / "m.weft", lambda m: m.update(target=["sparc-sun-solaris", "v9", ""]))
    with pytest.raises(ArtifactError, match="another one") as info:
        weft.load(path)
    assert info.value.code == "W803"
    path = repacked(saved, tmp_path / "f.weft", lambda m: m["target"].__setitem__(2, "+avx1024"))
    with pytest.raises(ArtifactError, match="lacks avx1024"):
        weft.load(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.weft"
    for content in (b"", b"\x7fELF....", pickle.dumps({"a": 1}), b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match="not a saved executable"):
            weft.load(path)
    with pytest.raises(ArtifactError, match="cannot read"):
        weft.load(tmp_path / "absent.weft")
    with pytest.raises(ArtifactError):
        weft.load(tmp_path)


def test_a_file_that_cannot_be_written_is_an_error(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot write"):
        weft.load(saved).save(tmp_path / "no" / "folder" / "x.weft")
