"""Archives that lie: every one is refused before anything of it is used, and nothing is written anywhere."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import Artifact, ArtifactError, ArtifactSet
from weft.codegen.package import load_module
from weft.runtime.safe_archive import Limits, read_archive, write_archive, write_whole

ONE = Artifact("c", "a.c", b"int a;\n" * 40)


def rebuilt(change: Callable[[dict], None], files: dict[str, bytes] | None = None) -> bytes:
    """The archive of ONE with another manifest, and files besides."""
    parts = read_archive(ArtifactSet([ONE]).to_bytes())
    manifest = json.loads(parts["manifest.json"])
    change(manifest)
    parts["manifest.json"] = json.dumps(manifest).encode()
    return write_archive({**parts, **(files or {})})


def raw(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in entries:
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return info


PATHS = ["../evil", "/etc/passwd", "a/../../b", "C:\\evil", "a//b", "a/./b", "\x00", "blobs/..", "folder/"]


@pytest.mark.parametrize("name", PATHS)
def test_paths_that_lead_elsewhere_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = raw([(entry("aaa"), b"")]).replace(b"aaa", b"bbb")  # sanity: a plain name is read
    assert set(read_archive(content)) == {"bbb"}
    with pytest.raises(ArtifactError) as caught:
        read_archive(raw([(entry(name), b"x")]))
    assert caught.value.code == "W811"
    assert not list(tmp_path.iterdir())


def test_an_entry_twice_is_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        content = raw([(entry("manifest.json"), b"{}"), (entry("manifest.json"), b"[]")])
    with pytest.raises(ArtifactError, match=r"'manifest\.json' twice"):
        read_archive(content)


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o755, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_other_things_than_files_are_refused(mode: int) -> None:
    with pytest.raises(ArtifactError, match="no plain file"):
        read_archive(raw([(entry("link", mode), b"/etc/passwd")]))


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    """A gigabyte of zeros in a megabyte: neither by its ratio nor with stated sizes that lie."""
    packed = raw([(entry("zeros"), bytes(64 << 20))])
    tracemalloc.start()
    with pytest.raises(ArtifactError, match="more than"):
        read_archive(packed, Limits(total=1 << 20))
    at = packed.rindex(b"PK\x01\x02")
    lying = packed[: at + 24] + struct.pack("<I", 10) + packed[at + 28 :]  # the directory states ten bytes
    with pytest.raises(ArtifactError):
        read_archive(lying)
    boasting = packed[: at + 20] + struct.pack("<II", 10, 1 << 30) + packed[at + 28 :]
    with pytest.raises(ArtifactError, match="packed in 10"):
        read_archive(boasting)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_limits_are_stated() -> None:
    many = write_archive({f"f{i}": b"" for i in range(20)})
    with pytest.raises(ArtifactError, match="20 entries, more than 10"):
        read_archive(many, Limits(entries=10))
    with pytest.raises(ArtifactError, match="manifest of 100 bytes, more than 99"):
        read_archive(write_archive({"manifest.json": b"x" * 100}), Limits(manifest=99))
    assert len(read_archive(many)) == 20


HOSTILE = {
    "hash of the blob": lambda m: m["artifacts"][0].update(blob="0" * 64),
    "hash of the artifact": lambda m: m["artifacts"][0].update(hash="0" * 64),
    "size": lambda m: m["artifacts"][0].update(size=7),
    "size as truth": lambda m: m["artifacts"][0].update(size=True),
    "path as blob": lambda m: m["artifacts"][0].update(blob="../../etc/passwd"),
    "path as name": lambda m: m["artifacts"][0].update(name="../a.c"),
    "another name": lambda m: m["artifacts"][0].update(name="b.c"),
    "no list": lambda m: m.update(artifacts=3),
    "list of numbers": lambda m: m.update(artifacts=[3]),
    "unknown field": lambda m: m["artifacts"][0].update(extra=1),
    "provenance": lambda m: m["artifacts"][0].update(provenance=3),
    "symbols": lambda m: m["artifacts"][0].update(provides=[3]),
    "in memory": lambda m: m["artifacts"][0].update(serialisable=False),
    "version": lambda m: m.update(version=99),
    "format": lambda m: m.update(format="other"),
    "a file that is not there": lambda m: m.update(files={"src/module.txt": "0" * 64}),
    "a file of another kind": lambda m: m.update(files={"manifest.json": "0" * 64}),
    "files as number": lambda m: m.update(files=3),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_manifests_that_lie_are_refused(change: str) -> None:
    assert ArtifactSet.from_bytes(rebuilt(lambda m: None)) == ArtifactSet([ONE])
    with pytest.raises(ArtifactError) as caught:
        ArtifactSet.from_bytes(rebuilt(HOSTILE[change]))
    assert caught.value.code in ("W810", "W811", "W812")


def test_errors_about_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "model.weft"
    for content, said in (
        (rebuilt(HOSTILE["format"]), "W810: {}: not an archive of artifacts"),
        (b"PK no", "W811: {}: the archive is damaged: File is not a zip file"),
        (rebuilt(HOSTILE["version"]), "W812: {}: archive version 99 is not supported\nhint: this reads 1"),
    ):
        path.write_bytes(content)
        for read in (ArtifactSet.load, load_module):
            with pytest.raises(ArtifactError) as caught:
                read(path)
            assert str(caught.value) == said.format(path)
    path.write_bytes(ArtifactSet([ONE]).to_bytes())
    with pytest.raises(ArtifactError) as caught:
        load_module(path)
    assert str(caught.value) == f"W810: {path}: the archive has no module, only artifacts"


def test_only_paths_name_files() -> None:
    """A number is no file: the system would take it for one that is open."""
    for read, code in ((ArtifactSet.load, "W811"), (load_module, "W811"), (weft.load, "W800")):
        with pytest.raises(ArtifactError) as caught:
            read(3)  # type: ignore[arg-type]
        assert str(caught.value) == f"{code}: a file is named by its path, got int"


def test_files_that_the_manifest_does_not_describe_are_refused() -> None:
    digest = hashlib.sha256(b"hidden").hexdigest()
    for name in ("hidden", f"blobs/{digest}", "src/module.txt"):
        with pytest.raises(ArtifactError, match="does not describe"):
            ArtifactSet.from_bytes(rebuilt(lambda m: None, {name: b"hidden"}))


def test_a_module_text_that_was_changed_is_refused() -> None:
    parts = read_archive(ArtifactSet([ONE]).to_bytes(source="text", metadata={"a": 1}))
    assert ArtifactSet.contents(write_archive(parts)) == (ArtifactSet([ONE]), "text", {"a": 1})
    with pytest.raises(ArtifactError, match=r"'src/module.txt' does not have the hash"):
        ArtifactSet.contents(write_archive({**parts, "src/module.txt": b"other"}))


def test_deeply_nested_manifests_are_refused() -> None:
    with pytest.raises(ArtifactError):
        ArtifactSet.from_bytes(write_archive({"manifest.json": b"[" * 100_000}))


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}(/[a-z]{1,4})?", fullmatch=True), st.binary(max_size=60), max_size=4))
def test_what_is_written_is_read(files: dict[str, bytes]) -> None:
    content = write_archive(files)
    assert read_archive(content) == files
    assert write_archive(dict(reversed(files.items()))) == content


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    def fails(path: str) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", fails)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
