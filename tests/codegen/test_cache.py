"""The disk cache of compiled code: found again by content, bounded, and never in the way."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.__main__ import main
from weft.codegen.backends.llvm.machine import machine
from weft.codegen.cache.code import DiskCache, object_cache

KERNEL = """
@T.prim_func
def k(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        y[i] = x[i] * T.float32({factor})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    path = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE_DIR", str(path))
    return path


def run(factor: int, opt: int = 2) -> np.ndarray:
    """The result of the kernel on ones."""
    out = np.zeros(4, "float32")
    weft.compile(weft.parse(KERNEL.format(factor=factor)), opt=opt)["k"](np.ones(4, "float32"), out)
    return out


def test_equal_code_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(run(3), 3)
    entries = object_cache().info().entries
    assert entries >= 2

    def refuse(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(machine, "_compiled", refuse)
    np.testing.assert_array_equal(run(3), 3)
    assert object_cache().info().entries == entries
    with pytest.raises(AssertionError, match="compiled again"):
        run(4)


def test_other_code_and_another_level_are_other_entries(folder: Path) -> None:
    run(3)
    before = object_cache().info().entries
    run(4)
    after = object_cache().info().entries
    run(4, opt=0)
    assert before < after < object_cache().info().entries


def test_the_text_comes_back_with_the_code(folder: Path) -> None:
    function = weft.parse(KERNEL.format(factor=5))
    assert weft.compile(function).source("llvm") == weft.compile(function).source("llvm")


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 100])
def test_a_damaged_entry_is_no_entry(folder: Path, damage: bytes) -> None:
    run(3)
    for path in folder.iterdir():
        path.write_bytes(damage)
    np.testing.assert_array_equal(run(3), 3)
    for path in folder.iterdir():
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))
    np.testing.assert_array_equal(run(3), 3)


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    for place in (str(file), str(file / "below"), "/proc/weft", "off"):
        monkeypatch.setenv("WEFT_CACHE_DIR", place)
        np.testing.assert_array_equal(run(3), 3)
        assert object_cache().info().entries == 0


def test_the_entries_that_were_not_used_for_longest_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=4000)
    for index in range(8):
        cache._writes = 0
        cache.put(f"k{index}", b"x" * 1000, "")
        os.utime(tmp_path / f"k{index}.code", (index, index))
        if index >= 2:
            assert cache.get("k1") is not None
            os.utime(tmp_path / "k1.code", (100, 100))
    assert cache.info().bytes <= 4000 + 1100
    assert cache.get("k1") == (b"x" * 1000, "")
    assert cache.get("k0") is None


def test_the_command_shows_and_empties_the_cache(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(3)
    assert main(["cache", "info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["folder"] == str(folder)
    assert facts["entries"] >= 2
    assert 0 < facts["bytes"] < facts["limit"]
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == f"removed {facts['entries']} entries\n"
    assert main(["cache", "info"]) == 0
    assert "entries  0" in capsys.readouterr().out
