"""Artifacts: what code generators make, as data.

    Artifact    ::= kind, name, data, target, provides, needs, codegen, loader, provenance      never callable
    ArtifactSet ::= artifacts ordered by (codegen, name) archive     ::= zip { manifest.json, blobs/<sha256> }
    no time stamps, no pickle; every length and hash is checked

An artifact that exists only in memory (`serialisable=False`) may stand in a module but refuses to be saved. Contents
compare by `content_hash`: SHA-256 over a canonical header and the data, the same in every process.

Errors: ArtifactError W810 malformed, W811 damaged, W812 unsupported version, W813 not serialisable
(`NotSerializable`), W814 two artifacts of one name, W815 symbols that nothing provides.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.errors import ArtifactError

__all__ = ["Artifact", "ArtifactSet", "NotSerializable", "Symbol", "artifacts_of", "write_archive"]

VERSION = 1
_MAX_ENTRIES = 100_000
_MAX_BYTES = 1 << 34
# What the standard library raises for archives that are cut or changed.
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, RecursionError, EOFError, OSError,
    NotImplementedError, RuntimeError,
)  # fmt: skip
_TIME = (1980, 1, 1, 0, 0, 0)


class NotSerializable(ArtifactError):
    """An artifact lives only in this process and cannot be saved (W813)."""

    default_code = "W813"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol that an artifact provides or needs: its name and its signature (a C prototype, or empty)."""

    name: str
    signature: str = ""


@dataclass(frozen=True)
class Artifact:
    """One compiled thing as data; running it needs an explicit load.

    >>> artifact = Artifact("c", "lib.c", b"int f(void) { return 1; }", provides=(Symbol("f"),))
    >>> Artifact.from_data(artifact.to_data()) == artifact
    True
    """

    kind: str
    name: str
    data: bytes = field(repr=False)
    target: str = "{}"
    provides: tuple[Symbol, ...] = ()
    needs: tuple[Symbol, ...] = ()
    codegen: str = ""
    loader: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    serialisable: bool = True

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or "\\" in self.name or self.name in (".", ".."):
            raise ArtifactError(f"an artifact is named like a file, got {self.name!r}", code="W810")
        object.__setattr__(self, "data", bytes(self.data))
        object.__setattr__(self, "provides", tuple(self.provides))
        object.__setattr__(self, "needs", tuple(self.needs))
        object.__setattr__(self, "provenance", json.loads(json.dumps(dict(self.provenance), sort_keys=True)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Artifact) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    @property
    def size(self) -> int:
        """Bytes of data."""
        return len(self.data)

    @property
    def content_hash(self) -> str:
        """SHA-256 of the canonical header and the data, in hexadecimal."""
        digest = hashlib.sha256(_canonical(self.header()))
        digest.update(b"\0")
        digest.update(self.data)
        return digest.hexdigest()

    def header(self) -> dict[str, Any]:
        """Everything but the data, as JSON-like data."""
        return {
            "kind": self.kind,
            "name": self.name,
            "target": self.target,
            "provides": [[symbol.name, symbol.signature] for symbol in self.provides],
            "needs": [[symbol.name, symbol.signature] for symbol in self.needs],
            "codegen": self.codegen,
            "loader": self.loader,
            "provenance": dict(self.provenance),
            "serialisable": self.serialisable,
        }

    def to_data(self) -> dict[str, Any]:
        """The artifact as JSON-like data, its bytes in base 64; NotSerializable for one that is only in memory."""
        self._check_serialisable()
        return {**self.header(), "data": base64.b64encode(self.data).decode("ascii")}

    def _check_serialisable(self) -> None:
        if not self.serialisable:
            names = ", ".join(symbol.name for symbol in self.provides) or "nothing"
            raise NotSerializable(f"artifact {self.name!r} (provides {names}) exists only in memory")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Artifact:
        """The artifact of `to_data`; ArtifactError W810 when the data does not have its form."""
        try:
            header = {key: value for key, value in data.items() if key != "data"}
            content = base64.b64decode(data["data"], validate=True)
            return cls._from_header(header, content)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"not an artifact: {error}", code="W810") from None

    @classmethod
    def _from_header(cls, header: Mapping[str, Any], content: bytes) -> Artifact:
        fields = dict(header)
        for name in ("provides", "needs"):
            fields[name] = tuple(Symbol(str(symbol), str(signature)) for symbol, signature in fields[name])
        for name in ("kind", "name", "target", "codegen", "loader"):
            if not isinstance(fields[name], str):
                raise ValueError(f"{name} is not text")
        return cls(data=content, **fields)

    def summary(self) -> str:
        """One line: kind, name, size, symbols, start of the hash."""
        symbols = ", ".join(symbol.name for symbol in self.provides)
        return f"{self.kind} {self.name} ({self.size} bytes, {self.content_hash[:12]}) provides {symbols or 'nothing'}"


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


class ArtifactSet(Mapping[str, Artifact]):
    """Artifacts by name, ordered by (code generator, name) whatever the order they came in.

    >>> ArtifactSet([Artifact("c", "b.c", b""), Artifact("c", "a.c", b"")]).names
    ('a.c', 'b.c')
    """

    def __init__(self, artifacts: Iterable[Artifact] = ()) -> None:
        by_name: dict[str, Artifact] = {}
        for artifact in sorted(artifacts, key=lambda item: (item.codegen, item.name)):
            if by_name.setdefault(artifact.name, artifact) != artifact:
                raise ArtifactError(f"two different artifacts are named {artifact.name!r}", code="W814")
        self._by_name = by_name

    def __getitem__(self, name: str) -> Artifact:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArtifactSet) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __repr__(self) -> str:
        return f"ArtifactSet({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._by_name)

    @property
    def content_hash(self) -> str:
        """SHA-256 over the hashes of the artifacts, in order."""
        return hashlib.sha256(_canonical([artifact.content_hash for artifact in self.values()])).hexdigest()

    def union(self, others: Iterable[Artifact]) -> ArtifactSet:
        """The set with more artifacts; equal ones are kept once."""
        return ArtifactSet([*self.values(), *others])

    def providers(self) -> dict[str, str]:
        """Each provided symbol with the name of its artifact; ArtifactError W814 when two provide one."""
        found: dict[str, str] = {}
        for artifact in self.values():
            for symbol in artifact.provides:
                if found.setdefault(symbol.name, artifact.name) != artifact.name:
                    raise ArtifactError(
                        f"{found[symbol.name]!r} and {artifact.name!r} both provide {symbol.name!r}", code="W814"
                    )
        return found

    def link_check(self, host: Iterable[str] = ()) -> None:
        """Check that the set or the host provides every needed symbol; ArtifactError W815 names the others."""
        known = {*self.providers(), *host}
        missing = [
            f"{symbol.name} (for {artifact.name})"
            for artifact in self.values()
            for symbol in artifact.needs
            if symbol.name not in known
        ]
        if missing:
            raise ArtifactError(f"nothing provides {', '.join(missing)}", code="W815")

    def to_data(self) -> list[dict[str, Any]]:
        """The set as JSON-like data."""
        return [artifact.to_data() for artifact in self.values()]

    @classmethod
    def from_data(cls, data: Iterable[Mapping[str, Any]]) -> ArtifactSet:
        """The set of `to_data`."""
        return cls(Artifact.from_data(item) for item in data)

    def to_bytes(self) -> bytes:
        """The archive; the same set gives the same bytes."""
        files: dict[str, bytes] = {}
        entries = []
        for artifact in self.values():
            artifact._check_serialisable()
            blob = hashlib.sha256(artifact.data).hexdigest()
            files[f"blobs/{blob}"] = artifact.data
            entries.append({**artifact.header(), "blob": blob, "hash": artifact.content_hash})
        manifest = {"format": "weft-artifacts", "version": VERSION, "artifacts": entries}
        return write_archive({"manifest.json": _canonical(manifest), **files})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the archive to a file, whole or not at all."""
        content = self.to_bytes()
        folder = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".weft-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    @classmethod
    def from_bytes(cls, content: bytes) -> ArtifactSet:
        """The set of an archive; ArtifactError W810, W811 or W812 for anything that `to_bytes` did not write."""
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return cls._read(archive)
        except ArtifactError:
            raise
        except _DAMAGE as error:
            raise ArtifactError(f"the archive is damaged: {error}", code="W811") from None

    @classmethod
    def _read(cls, archive: zipfile.ZipFile) -> ArtifactSet:
        infos = archive.infolist()
        if len(infos) > _MAX_ENTRIES or sum(info.file_size for info in infos) > _MAX_BYTES:
            raise ArtifactError("the archive exceeds the limits on entries or bytes", code="W811")
        manifest = json.loads(archive.read("manifest.json"))
        if manifest.get("format") != "weft-artifacts":
            raise ArtifactError("not an archive of artifacts", code="W810")
        if manifest.get("version") != VERSION:
            raise ArtifactError(
                f"archive version {manifest.get('version')!r} is not supported",
                code="W812",
                hint=f"this reads {VERSION}",
            )
        artifacts = []
        for entry in manifest["artifacts"]:
            data = archive.read(f"blobs/{entry['blob']}")
            header = {key: value for key, value in entry.items() if key not in ("blob", "hash")}
            artifact = Artifact._from_header(header, data)
            if hashlib.sha256(data).hexdigest() != entry["blob"] or artifact.content_hash != entry["hash"]:
                raise ArtifactError(f"artifact {artifact.name!r} does not have the hash it states", code="W811")
            artifacts.append(artifact)
        return cls(artifacts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ArtifactSet:
        """Read an archive from a file; ArtifactError as `from_bytes`, W811 when the file cannot be read."""
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError as error:
            raise ArtifactError(f"cannot read {os.fspath(path)!r}: {error.strerror}", code="W811") from None
        return cls.from_bytes(content)

    def diff(self, other: ArtifactSet) -> list[str]:
        """One line per artifact that the sets do not share."""
        lines = [f"- {self[name].summary()}" for name in self if name not in other]
        lines += [f"+ {other[name].summary()}" for name in other if name not in self]
        for name in self:
            if name in other and self[name] != other[name]:
                lines += [f"- {self[name].summary()}", f"+ {other[name].summary()}"]
        return lines


def artifacts_of(data: Iterable[Mapping[str, Any]]) -> ArtifactSet:
    """The set of `ArtifactSet.to_data`, from lists and mappings of any kind; ArtifactError W810 for anything else.

    >>> artifacts_of(ArtifactSet([Artifact("c", "a.c", b"")]).to_data()).names
    ('a.c',)
    """
    return ArtifactSet.from_data(_plain(item) for item in data)


def _plain(value: Any) -> Any:
    """Data in the types of JSON."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A zip with fixed time stamps and order, so that equal contents are equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()
