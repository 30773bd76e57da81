"""Files that somebody made to do harm: refused with W800, W801, W810 or W811 before they unpack, whatever they hold."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.runtime.saved_program import SOURCE, X

import weft
from weft.errors import ArtifactError
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.safe_archive import Limits, read_archive, write_archive

CODES = {"W800", "W801", "W802", "W803", "W810", "W811", "W812"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The entries of a saved executable."""
    path = tmp_path_factory.mktemp("saved") / "model.weft"
    weft.compile(weft.parse(SOURCE), opt=0).save(path)
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def sealed(parts: dict[str, bytes], manifest: Any) -> dict[str, bytes]:
    """The entries with another manifest, its hash made new."""
    text = json.dumps(manifest).encode()
    return {**parts, "manifest.json": text, "manifest.sha256": hashlib.sha256(text).hexdigest().encode()}


def written(path: Path, parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return path


def refused(path: Path) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        weft.load(path)
    assert caught.value.code in CODES
    return caught.value


def test_the_entries_as_they_are_load(parts: dict[str, bytes], tmp_path: Path) -> None:
    manifest = json.loads(parts["manifest.json"])
    exe = weft.load(written(tmp_path / "same.weft", sealed(parts, manifest)))
    np.testing.assert_array_equal(exe["main"](X), [[5, 7, 9], [5, 7, 9]])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of a manifest."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in items for found in places(item, (*path, key)))]


ODD = st.sampled_from(
    [None, True, -1, 0, 1, 2**70, 0.5, "", "x", "../x", [], {}, [None], ["tensor"], {"a": 1}, [[]] * 3, "\x00", 1 << 40]
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_manifest_that_is_not_the_one_of_the_code_is_refused(
    parts: dict[str, bytes], tmp_path: Path, data: st.DataObject
) -> None:
    manifest = json.loads(parts["manifest.json"])
    fields = [place for place in places(manifest) if place]
    place = data.draw(st.sampled_from(fields))
    holder = manifest
    for key in place[:-1]:
        holder = holder[key]
    change = data.draw(st.sampled_from(["set", "remove", "add"]))
    if change == "set":
        value = data.draw(ODD)
        if value == holder[place[-1]]:
            return
        holder[place[-1]] = value
    elif change == "remove":
        del holder[place[-1]]
    elif isinstance(holder, dict):
        holder["odd field"] = data.draw(ODD)
    else:
        holder.append(data.draw(ODD))
    path = written(tmp_path / "odd.weft", sealed(parts, manifest))
    if json.dumps(manifest) != json.dumps(json.loads(parts["manifest.json"])) and place != ("bound",):
        assert refused(path).code in CODES | {"W804", "W840"}


def test_the_manifest_of_another_program_does_not_fit_the_code(parts: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "other.weft"
    other = SOURCE.replace("1.0, 2.0, 3.0", "1.0, 2.0").replace("4.0, 5.0, 6.0", "4.0, 5.0")
    other = other.replace('("n", 3)', '("n", 2)')
    weft.compile(weft.parse(other), opt=0).save(path)
    with zipfile.ZipFile(path) as file:
        theirs = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(theirs["manifest.json"])
    code = {name: content for name, content in parts.items() if name.startswith("code/")}
    manifest["hashes"] |= {name: hashlib.sha256(content).hexdigest() for name, content in code.items()}
    error = refused(written(path, sealed({**theirs, **code}, manifest)))
    assert (error.code, "its code belongs to another manifest" in error.message) == ("W801", True)


@pytest.mark.parametrize("constants", [{}, [], None, [{}], "data", [[1, 2]]])
def test_constants_that_the_code_needs_are_there(parts: dict[str, bytes], tmp_path: Path, constants: Any) -> None:
    manifest = {**json.loads(parts["manifest.json"]), "constants": constants}
    assert refused(written(tmp_path / "c.weft", sealed(parts, manifest))).code == "W801"


def test_entries_that_are_not_listed_are_refused(parts: dict[str, bytes], tmp_path: Path) -> None:
    assert "other parts" in refused(written(tmp_path / "more.weft", {**parts, "extra": b"1"})).message


NAMES = ["/etc/passwd", "../up", "a/../../b", "nul@name", "n" * 60_000, "folder/", "\x1b[2J"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere_are_refused(parts: dict[str, bytes], tmp_path: Path, name: str) -> None:
    path = written(tmp_path / "names.weft", {**parts, name: b"1"})
    path.write_bytes(path.read_bytes().replace(b"nul@name", b"nul\0name"))  # which zipfile writes no name with
    error = refused(path)
    assert "names the path" in error.message
    assert error.code == "W801"
    assert len(str(error)) < 2_000
    assert "\x1b" not in str(error)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_twice_is_refused(parts: dict[str, bytes], tmp_path: Path) -> None:
    path = written(tmp_path / "twice.weft", parts)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("manifest.json", parts["manifest.json"])
    assert "twice" in refused(path).message


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_ways_of_packing_are_not_unpacked(parts: dict[str, bytes], tmp_path: Path, method: int) -> None:
    path = written(tmp_path / "packed.weft", parts, method)
    content = bytearray(path.read_bytes())
    content[80:120] = bytes(40)  # damaged besides
    path.write_bytes(content)
    assert refused(path).code == "W801"


def bomb(size: int, copies: int = 1) -> bytes:
    """An archive that unpacks to many times its size."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for index in range(copies):
            with file.open(f"data/{index}", "w") as entry:
                for _ in range(size >> 20):
                    entry.write(bytes(1 << 20))
    return buffer.getvalue()


def test_what_unpacks_to_many_times_its_file_is_refused_before(tmp_path: Path) -> None:
    content = bomb(40 << 20, 3)  # 120 MiB in 120 kB
    path = tmp_path / "bomb.weft"
    path.write_bytes(content)
    error = refused(path)
    assert "more than the" in error.message
    with pytest.raises(ArtifactError, match="more than the"):
        ArtifactSet.load(path)
    with pytest.raises(ArtifactError, match="more than the"):  # the limit for the whole, whatever the file's size
        read_archive(bomb(2 << 20), Limits(total=1 << 20))


def test_an_archive_inside_an_archive_has_the_limit_of_the_file(parts: dict[str, bytes], tmp_path: Path) -> None:
    inner = bomb(40 << 20, 3)
    manifest = json.loads(parts["manifest.json"])
    manifest["bound"] = False  # or the code would have to be changed as well
    manifest["hashes"]["artifacts.zip"] = hashlib.sha256(inner).hexdigest()
    path = written(tmp_path / "nested.weft", {**sealed(parts, manifest), "artifacts.zip": inner})
    assert "more than the" in refused(path).message


@pytest.mark.parametrize("size", [0, 1 << 10, 1 << 20, 3 << 20])
def test_what_weft_writes_it_reads_however_well_it_packs(size: int) -> None:
    made = ArtifactSet([Artifact("constants", f"c{index}", bytes([index]) * size) for index in range(4)])
    limits = Limits(free=64 << 10)
    assert ArtifactSet.from_bytes(made.to_bytes(), limits) == made
    files = {f"small/{index}": bytes(4 << 10) for index in range(64)}
    assert read_archive(write_archive(files), limits) == files


def test_a_long_list_of_entries_is_refused_before_it_is_read() -> None:
    content = bytearray(write_archive({"a": b"1"}))
    content[-10:-6] = (200 << 20).to_bytes(4, "little")
    with pytest.raises(ArtifactError, match="list of entries"):
        read_archive(bytes(content))
    with pytest.raises(ArtifactError, match="entries, more than 3"):
        read_archive(write_archive({str(index): b"" for index in range(4)}), Limits(entries=3))


LOADERS: list[Callable[[Any], object]] = [weft.load, ArtifactSet.load]


@pytest.mark.parametrize("load", LOADERS, ids=["executable", "artifacts"])
def test_files_that_are_no_plain_files_are_refused(load: Callable[[Any], object], tmp_path: Path) -> None:
    pipe, folder, device = tmp_path / "pipe.weft", tmp_path / "folder.weft", Path("/dev/zero")
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (pipe, folder, device, Path("nul\0name"), tmp_path / ("long" * 2_000)):
        with pytest.raises(ArtifactError) as caught:
            load(path)
        assert caught.value.code in CODES


@pytest.mark.parametrize("load", LOADERS, ids=["executable", "artifacts"])
def test_sparse_files_are_refused_unread(load: Callable[[Any], object], tmp_path: Path) -> None:
    path = tmp_path / "sparse.weft"
    with path.open("wb") as file:
        file.write(b"PK")
        file.truncate(8 << 30)
    with pytest.raises(ArtifactError, match="on the disk"):
        load(path)


def test_refusing_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.weft"
    path.write_bytes(bomb(256 << 20))
    code = f"""
import resource, weft, weft.runtime.executable
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    weft.load({str(path)!r})
except weft.WeftError as error:
    print(error.code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert ran.stdout == "W801 True\n"
