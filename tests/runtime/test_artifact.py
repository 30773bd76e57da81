"""Artifacts are data: content-hashed, ordered, saved without pickle, damaged files refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hash_seeds import printed_under_hash_seeds

from weft import ArtifactError
from weft.runtime.artifact import Artifact, ArtifactSet, NotSerializable, Symbol

C = Artifact(
    "c",
    "lib.c",
    b"int f(void) { return g(); }",
    '{"kind": "c"}',
    (Symbol("f", "int f(void)"),),
    (Symbol("g"),),
    "c",
    "cc",
    {"weft": "0.1.0", "flags": ["-O2"]},
)
OBJECT = Artifact(
    "object", "lib.o", bytes(range(256)), '{"kind": "llvm"}', (Symbol("g"),), codegen="llvm", loader="llvm"
)


def test_an_artifact_is_data_only() -> None:
    """C2: nothing to call, nothing to index."""
    assert not callable(C)
    assert not hasattr(C, "__getitem__")


@pytest.mark.parametrize("artifact", [C, OBJECT], ids=lambda item: item.kind)
def test_an_artifact_survives_data_bytes_and_file(artifact: Artifact, tmp_path: Path) -> None:
    """C3: save and load give an equal artifact."""
    assert Artifact.from_data(artifact.to_data()) == artifact
    assert ArtifactSet.from_bytes(ArtifactSet([artifact]).to_bytes())[artifact.name] == artifact
    ArtifactSet([artifact]).save(tmp_path / "one.weft")
    loaded = ArtifactSet.load(tmp_path / "one.weft")[artifact.name]
    assert loaded == artifact
    assert (loaded.provenance, loaded.provides, loaded.data) == (artifact.provenance, artifact.provides, artifact.data)
    assert [path.name for path in tmp_path.iterdir()] == ["one.weft"]


def test_one_flipped_byte_makes_another_artifact() -> None:
    """C7."""
    changed = Artifact(
        "object", "lib.o", bytes([1, *range(1, 256)]), OBJECT.target, OBJECT.provides, codegen="llvm", loader="llvm"
    )
    assert changed != OBJECT
    assert ArtifactSet([OBJECT]) != ArtifactSet([changed])
    assert len(ArtifactSet([OBJECT]).diff(ArtifactSet([changed]))) == 2


def test_an_artifact_in_memory_refuses_to_be_saved() -> None:
    """C5: the error names the symbol."""
    jit = Artifact("jit", "jit", b"", provides=(Symbol("kernel"),), serialisable=False)
    assert "kernel" in jit.summary()
    for save in (jit.to_data, ArtifactSet([jit]).to_bytes):
        with pytest.raises(NotSerializable, match="kernel"):
            save()


def test_the_order_is_by_code_generator_and_name() -> None:
    """C10."""
    assert ArtifactSet([OBJECT, C]).names == ArtifactSet([C, OBJECT]).names == ("lib.c", "lib.o")
    assert ArtifactSet([OBJECT, C]).content_hash == ArtifactSet([C, OBJECT]).content_hash


def test_two_artifacts_of_one_name_are_an_error_unless_equal() -> None:
    assert len(ArtifactSet([C, Artifact.from_data(C.to_data())])) == 1
    with pytest.raises(ArtifactError, match=r"lib\.c") as caught:
        ArtifactSet([C, Artifact("c", "lib.c", b"other", codegen="c")])
    assert caught.value.code == "W814"


def test_the_link_check_names_what_is_missing() -> None:
    ArtifactSet([C, OBJECT]).link_check()
    ArtifactSet([C]).link_check(host=["g"])
    with pytest.raises(ArtifactError, match=r"nothing provides g \(for lib\.c\)") as caught:
        ArtifactSet([C]).link_check()
    assert caught.value.code == "W815"


def test_the_hash_is_the_same_in_every_process() -> None:
    """C9."""
    code = (
        "from weft.runtime.artifact import *; a = Artifact('c', 'a.c', b'x', provenance={'b': 1, 'a': 2});"
        "import hashlib; print(a.content_hash, hashlib.sha256(ArtifactSet([a]).to_bytes()).hexdigest())"
    )
    artifact = Artifact("c", "a.c", b"x", provenance={"b": 1, "a": 2})
    here = artifact.content_hash, hashlib.sha256(ArtifactSet([artifact]).to_bytes()).hexdigest()
    assert printed_under_hash_seeds(code) == {" ".join(here) + "\n"}


@pytest.mark.parametrize("name", ["", "../evil", "a/b", ".."])
def test_an_artifact_cannot_name_a_path(name: str) -> None:
    with pytest.raises(ArtifactError):
        Artifact("c", name, b"")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04" + b"\0" * 40])
def test_foreign_files_are_refused(content: bytes) -> None:
    with pytest.raises(ArtifactError):
        ArtifactSet.from_bytes(content)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_archives_are_refused_or_equal(data: st.DataObject) -> None:
    original = ArtifactSet([C, OBJECT])
    content = bytearray(original.to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    try:
        loaded = ArtifactSet.from_bytes(bytes(content))
    except ArtifactError:
        return
    assert loaded == original  # the damage was in what the format does not use
