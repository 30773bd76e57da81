"""The disk cache of compiled code: found again by content, bounded, and never in the way."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.__main__ import main
from weft.codegen.backends.llvm.machine import machine
from weft.codegen.cache import programs
from weft.runtime.device import code_cache as code
from weft.runtime.device.code_cache import DiskCache, object_cache

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

    monkeypatch.setattr(machine._Emitter, "compiled", refuse)
    np.testing.assert_array_equal(run(3), 3)
    assert object_cache().info().entries == entries
    with pytest.raises(weft.errors.PassError, match="compiled again"):
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
        data = path.read_bytes()  # none, where this process had made the code already
        path.write_bytes(data[:-1] + bytes(byte ^ 1 for byte in data[-1:]))
    np.testing.assert_array_equal(run(3), 3)


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    for place in (str(file), str(file / "below"), "/proc/weft", "off"):
        monkeypatch.setenv("WEFT_CACHE_DIR", place)
        np.testing.assert_array_equal(run(3), 3)
        assert object_cache().info().entries == 0


def key(index: int) -> str:
    return f"{index:064x}"


def test_the_entries_that_were_not_used_for_longest_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, limit=4000)
    for index in range(8):
        cache.put(key(index), [b"x" * 900], "")
        os.utime(tmp_path / f"{key(index)}.code", (index, index))
        if index >= 2:
            assert cache.get(key(1)) is not None
            os.utime(tmp_path / f"{key(1)}.code", (100, 100))
    assert cache.info().bytes <= 4000 + 1100
    assert cache.get(key(1)) == (b"x" * 900, "")
    assert cache.get(key(0)) is None


def test_a_full_folder_is_looked_through_once_for_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    monkeypatch.setattr(DiskCache, "_shrink", lambda self: looks.append(None))
    for index in range(64):
        DiskCache(tmp_path).put(key(index), [b"x"], "")  # every compilation has a cache of its own
    assert len(looks) == 1
    DiskCache(tmp_path).put(key(64), [b"x"], "")
    assert len(looks) == 2
    DiskCache(tmp_path, limit=6400).put(key(65), [b"x" * 200], "")  # large beside the limit
    assert len(looks) == 3


def test_an_entry_is_that_of_its_key(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An entry in the place of another one would be run in its stead."""
    run(3)
    three = {path.name: path.read_bytes() for path in folder.iterdir()}
    run(4)
    four = [path for path in folder.iterdir() if path.name not in three]
    assert four
    for path in four:
        for content in three.values():
            path.write_bytes(content)
            np.testing.assert_array_equal(run(4), 4)
    assert "that of another key" in caplog.text


@given(st.binary(max_size=200), st.integers(0, 300), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_written_over_an_entry_it_is_whole_or_none(
    tmp_path: Path, content: bytes, start: int, cut: bool
) -> None:
    cache = DiskCache(tmp_path)
    cache.put(key(1), [b"code" * 20], "text")
    path = tmp_path / f"{key(1)}.code"
    whole = path.read_bytes()
    changed = whole[:start] + content + (b"" if cut else whole[start + len(content) :])
    path.write_bytes(changed)
    assert cache.get(key(1)) == ((b"code" * 20, "text") if changed == whole else None)


@given(st.binary(max_size=120), st.lists(st.integers(-(2**70), 2**70), max_size=3))
@settings(deadline=None)
def test_a_program_of_another_form_is_none(data: bytes, lengths: list[int]) -> None:
    head = json.dumps({"lengths": lengths, "objects": 0, "constants": []}).encode()
    for content in (data, len(head).to_bytes(8, "little") + head + data):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(programs, "object_cache", lambda content=content: Kept(content))
            assert programs.find("key") is None


class Kept:
    """A cache that holds one content under every key."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def packed(self, key: str) -> tuple[bytes, bytes]:
        return self.content, b""


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_ignored(
    folder: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    run(3)
    entries = sorted(folder.iterdir())
    folder.chmod(mode)
    code._log_once.cache_clear()
    assert object_cache().get(entries[0].stem) is None
    np.testing.assert_array_equal(run(5), 5)
    assert sorted(folder.iterdir()) == entries
    assert "others may write it" in caplog.text
    assert main(["cache", "info"]) == 0
    assert "ignored  others may write it" in capsys.readouterr().out
    assert object_cache().clear() == 0
    folder.chmod(0o700)
    assert object_cache().get(entries[0].stem) is not None


def test_a_folder_that_others_may_replace_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    monkeypatch.setenv("WEFT_CACHE_DIR", str(shared / "mine" / "cache"))
    run(3)
    key = sorted((shared / "mine" / "cache").iterdir())[0].stem
    shared.chmod(0o777)
    code._log_once.cache_clear()
    assert object_cache().get(key) is None
    assert f"others may replace it: they may write {shared} (mode 777)" in caplog.text
    shared.chmod(0o1777)  # as /tmp
    assert object_cache().get(key) is not None
    if os.geteuid() == 0:
        os.chown(shared, 12345, 12345)
        assert "belongs to somebody else" in object_cache().refused()


def test_an_entry_that_others_may_write_or_own_is_ignored(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(3)
    path = sorted(folder.iterdir())[0]
    path.chmod(0o602)
    code._log_once.cache_clear()
    assert object_cache().get(path.stem) is None
    assert "others may write it (mode 602)" in caplog.text
    path.chmod(0o600)
    assert object_cache().get(path.stem) is not None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert object_cache().get(path.stem) is None
    assert "belongs to somebody else" in caplog.text


def test_a_new_folder_and_its_entries_are_the_users_alone(folder: Path) -> None:
    run(3)
    assert folder.stat().st_mode & 0o077 == 0
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


def test_folders_above_it_that_weft_makes_are_the_users_alone_whatever_the_umask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "a" / "b" / "c"))
    before = os.umask(0)
    try:
        run(3)
    finally:
        os.umask(before)
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert {path.stat().st_mode & 0o077 for path in made} == {0}
    assert object_cache().info().entries


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
def test_a_writer_that_is_interrupted_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def interrupted(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "replace", interrupted)
    with contextlib.nullcontext() if error is OSError else pytest.raises(error):
        DiskCache(tmp_path / "c").put(key(1), [b"code"], "")
    assert list((tmp_path / "c").iterdir()) == []


def test_folders_are_no_entries(folder: Path) -> None:
    run(3)
    before = len(os.listdir("/dev/fd"))
    for path in list(folder.iterdir()):
        path.unlink()
        path.mkdir()
    np.testing.assert_array_equal(run(3), 3)
    assert all(path.is_dir() for path in folder.iterdir())
    assert len(os.listdir("/dev/fd")) == before


def test_links_and_pipes_are_no_entries(folder: Path) -> None:
    run(3)
    first, second, *_ = sorted(folder.iterdir())
    other = folder / "elsewhere"
    first.rename(other)
    first.symlink_to(other)
    second.unlink()
    os.mkfifo(second, 0o600)
    assert object_cache().get(first.stem) is None
    assert object_cache().get(second.stem) is None


def test_only_its_own_names_are_cleaned_its_unfinished_files_among_them(folder: Path) -> None:
    run(3)
    theirs = [folder / name for name in ("notes.code", "a.part", f"{key(1)}.txt", f"{key(1).upper()}A.code")]
    for path in theirs:
        path.write_text("kept")
        os.utime(path, (1, 1))
    old, new = folder / f"{key(2)}.abc.part", folder / f"{key(3)}.def.part"
    old.write_text("")
    new.write_text("")
    os.utime(old, (1, 1))
    cache = object_cache()
    cache.limit = 0
    cache._shrink()
    assert sorted(folder.iterdir()) == sorted([*theirs, new])


def test_only_the_users_plain_files_are_cleaned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    elsewhere = folder / "elsewhere"
    elsewhere.write_text("")
    (folder / f"{key(1)}.abc.part").symlink_to(elsewhere)
    (folder / f"{key(2)}.code").symlink_to(elsewhere)
    os.mkfifo(folder / f"{key(3)}.abc.part")
    theirs = folder / f"{key(4)}.abc.part"
    theirs.write_text("")
    for path in folder.iterdir():
        os.utime(path, (1, 1), follow_symlinks=False)
    before = sorted(folder.iterdir())
    owned = os.lstat(theirs).st_ino
    monkeypatch.setattr(code, "_is_own", lambda status: status.st_ino != owned)
    assert object_cache().clear() == 0
    assert sorted(folder.iterdir()) == before
    monkeypatch.undo()
    DiskCache(folder).clear()
    assert sorted(folder.iterdir()) == [path for path in before if path != theirs]


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
