"""Artifacts: what code generators make, as data.

    Artifact    ::= kind, name, data, target, provides, needs, codegen, loader, provenance      never callable
    ArtifactSet ::= artifacts ordered by (codegen, name)
    archive     ::= zip { manifest.json, blobs/<sha256>, src/module.txt, metadata.json }
    no time stamps, no pickle; every length and hash is checked

    build => Artifact <=> bytes           `weft.runtime.loading` has the others:
    Artifact => export => shared object => load => LoadedModule            Artifact => JIT => LoadedModule

An artifact that exists only in memory (`serialisable=False`) may stand in a module and in its text, without data, but
refuses to be saved. Contents compare by `content_hash`: SHA-256 over a canonical header and the data, the same in every
process.

Errors: ArtifactError W810 malformed, W811 damaged, W812 unsupported version, W813 not serialisable
(`NotSerializable`), W814 two artifacts of one name, W815 symbols that nothing provides,
W822 no artifact of a name.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from weft.errors import ArtifactError, printable
from weft.runtime.loaded import LoadedModule
from weft.runtime.safe_archive import DAMAGE, Limits, open_file, read_archive, write_archive, write_whole
from weft.support.forks import cached_property
from weft.support.providers import provider
from weft.support.records import dataclass, record

__all__ = ["Artifact", "ArtifactSet", "NotSerializable", "Symbol", "artifacts_of", "missing_symbols"]

PROGRAM = "weft-program"
"""The kind of the artifact that says which others are one program."""
VERSION = 1
MANIFEST, SOURCE, METADATA = "manifest.json", "src/module.txt", "metadata.json"


class NotSerializable(ArtifactError):
    """An artifact lives only in this process and cannot be saved (W813)."""

    default_code = "W813"


@record
class Symbol:
    """A symbol that an artifact provides or needs: its name and its signature (a C prototype, or empty)."""

    name: str
    signature: str = ""


@dataclass(frozen=True)
class Artifact:
    """One compiled thing as data; running it needs an explicit load (`weft.runtime.loading`).

    `kind` says what the bytes are (object, c, header, ptx, constants, ...), `target` is the expanded JSON of a target,
    `provenance` what it was made from and by. `memory` is the loaded module of an artifact that exists only in memory;
    it is no part of the value. The data of a large constant may be a read-only view of the array, for there to be one
    copy of it.

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
    memory: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name or "\\" in self.name or self.name in (".", ".."):
            raise ArtifactError(f"an artifact is named like a file, got {self.name!r}", code="W810")
        if self.data and not self.serialisable:
            raise ArtifactError(f"artifact {self.name!r} exists only in memory, so it has no bytes", code="W810")
        view = isinstance(self.data, memoryview) and self.data.readonly
        object.__setattr__(self, "data", self.data if view else bytes(self.data))
        object.__setattr__(self, "provides", tuple(self.provides))
        object.__setattr__(self, "needs", tuple(self.needs))
        try:
            provenance = json.loads(json.dumps(dict(self.provenance), sort_keys=True, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ArtifactError(f"the provenance of {self.name!r} is no JSON: {error}", code="W810") from None
        object.__setattr__(self, "provenance", provenance)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Artifact) and self.content_hash == other.content_hash)

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __getstate__(self) -> dict[str, Any]:
        """A copy keeps no view of memory that is not its own."""
        return {**self.__dict__, "data": bytes(self.data)}

    @property
    def size(self) -> int:
        """Bytes of data."""
        return len(self.data)

    @cached_property
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
        return self.to_text_data()

    def to_text_data(self) -> dict[str, Any]:
        """The data of the text of a module, with size and hash; one that is only in memory has None for its bytes."""
        content = base64.b64encode(self.data).decode("ascii") if self.serialisable else None
        return {**self.header(), "size": self.size, "sha256": self.content_hash, "data": content}

    def _check_serialisable(self) -> None:
        if not self.serialisable:
            names = ", ".join(symbol.name for symbol in self.provides) or "nothing"
            raise NotSerializable(f"artifact {self.name!r} (provides {names}) exists only in memory")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Artifact:
        """The artifact of `to_data`.

        Raises: ArtifactError W810 when the data does not have its form, W811 when the stated size or hash is not that
        of the artifact.
        """
        try:
            header = {key: value for key, value in data.items() if key not in ("data", "size", "sha256")}
            text = data["data"]
            if text is None and header.get("serialisable") is not False:
                raise ValueError("it has no data")
            content = b"" if text is None else base64.b64decode(text, validate=True)
            made = cls._from_header(header, content)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"not an artifact: {error}", code="W810") from None
        made._check_stated(data.get("size", made.size), data.get("sha256", made.content_hash))
        return made

    def _check_stated(self, size: Any, digest: Any) -> None:
        if size != self.size or isinstance(size, bool):
            message = f"artifact {self.name!r} has {self.size} bytes, not the {size!r} it states"
            raise ArtifactError(message, code="W811")
        if digest != self.content_hash:
            raise ArtifactError(f"artifact {self.name!r} does not have the hash it states", code="W811")

    @classmethod
    def _from_header(cls, header: Mapping[str, Any], content: bytes) -> Artifact:
        fields = dict(header)
        for name in ("provides", "needs"):
            fields[name] = tuple(Symbol(str(symbol), str(signature)) for symbol, signature in fields[name])
        for name in ("kind", "name", "target", "codegen", "loader"):
            if not isinstance(fields[name], str):
                raise ValueError(f"{name} is not text")
        if not isinstance(fields["serialisable"], bool) or not isinstance(fields["provenance"], Mapping):
            raise ValueError("serialisable is a truth value, provenance has names")
        unknown = sorted(set(fields) - _HEADER)
        if unknown:
            raise ValueError(f"it has no field {unknown[0]!r}")
        return cls(data=content, **fields)

    def load(self) -> LoadedModule:
        """Load the artifact into this process (`weft.runtime.loading`); ArtifactError W819 when that is no edge."""
        return provider("load_artifact")(self)  # data alone needs no loader

    def summary(self) -> str:
        """One line: kind, name, size, start of the hash, symbols (the first of many)."""
        symbols = ", ".join(symbol.name for symbol in self.provides[:_NAMED])
        if len(self.provides) > _NAMED:
            symbols += f" and {len(self.provides) - _NAMED} more"
        return f"{self.kind} {self.name} ({self.size} bytes, {self.content_hash[:12]}) provides {symbols or 'nothing'}"


_NAMED = 8
"""How many symbols a summary names."""
_HEADER = {"kind", "name", "target", "provides", "needs", "codegen", "loader", "provenance", "serialisable"}


def members_of(program: Artifact) -> tuple[str, ...] | None:
    """The names of the artifacts that are a program's own; None for one that is alone in its set and says nothing."""
    try:
        named = json.loads(program.data).get("artifacts")
    except (ValueError, AttributeError, RecursionError):  # what it is wrong with is said when it is loaded
        return None
    return tuple(map(str, named)) if isinstance(named, list) else None


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


class NoSuchArtifact(ArtifactError, KeyError):
    """A set has no artifact of a name (W822)."""

    __str__ = ArtifactError.__str__


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
        try:
            return self._by_name[name]
        except KeyError:
            has = f"it has: {', '.join(self.names) or 'none'}"
            raise NoSuchArtifact(f"there is no artifact {name!r}", code="W822", hint=has) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArtifactSet) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)

    def __repr__(self) -> str:
        return printable(f"ArtifactSet({', '.join(self.names)})")

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
        """Each provided symbol with the name of its artifact.

        A symbol may be there in forms for several loaders, and in several programs, which see their own alone;
        ArtifactError W814 when two for one loader have it.
        """
        found: dict[tuple[str, str, int], str] = {}
        for number, group in enumerate(_together(self)):
            for artifact in group:
                scope = -1 if artifact.loader in ("cc", PROGRAM) else number  # what callers see is one for all
                for symbol in artifact.provides:
                    first = found.setdefault((symbol.name, artifact.loader, scope), artifact.name)
                    if first != artifact.name:
                        message = f"{first!r} and {artifact.name!r} both provide {symbol.name!r}"
                        raise ArtifactError(message, code="W814")
        return {key[0]: found[key] for key in reversed(found)}

    def source(self, form: str | None = None) -> str:
        """The artifacts of a kind that is text ("c", "header", ...), W806 for other kinds.

        The default is "c", or the first where there is none.
        """
        texts: dict[str, list[str]] = {}
        for artifact in self.values():
            with contextlib.suppress(UnicodeDecodeError):
                if b"\0" not in artifact.data:
                    texts.setdefault(artifact.kind, []).append(artifact.data.decode())
        form = next(iter(sorted(texts, key="c".__ne__)), None) if form is None else form
        if form not in texts:
            hint = f"choose one of: {', '.join(texts) or 'none'}"
            raise ArtifactError(f"no {form!r} source", code="W806", hint=hint)
        return "\n".join(texts[form])

    def link_check(self, host: Iterable[str] = (), *, hint: str | None = None) -> None:
        """Check that the set or the host provides every needed symbol; ArtifactError W815 names the others.

        `hint` says what to do about them.
        """
        self.providers()
        missing = [f"{symbol} (for {name})" for symbol, name in missing_symbols(self, host)]
        if missing:
            hint = hint or "add the source or the object that has it: artifacts.union([weft.Artifact(...)])"
            raise ArtifactError(f"nothing provides {', '.join(missing)}", code="W815", hint=hint)

    def to_data(self) -> list[dict[str, Any]]:
        """The set as JSON-like data; NotSerializable when one is only in memory."""
        return [artifact.to_data() for artifact in self.values()]

    def to_text_data(self) -> list[dict[str, Any]]:
        """The set as the text of a module has it."""
        return [artifact.to_text_data() for artifact in self.values()]

    @classmethod
    def from_data(cls, data: Iterable[Mapping[str, Any]]) -> ArtifactSet:
        """The set of `to_data`."""
        return cls(Artifact.from_data(item) for item in data)

    def to_bytes(self, *, source: str | None = None, metadata: Mapping[str, Any] | None = None) -> bytes:
        """The archive; the same set gives the same bytes.

        `source` is the text of the module that the artifacts were made from, `metadata` describes the whole.
        Raises: NotSerializable when an artifact is only in memory.
        """
        files: dict[str, bytes] = {}
        entries = []
        for artifact in self.values():
            artifact._check_serialisable()
            blob = hashlib.sha256(artifact.data).hexdigest()
            files[f"blobs/{blob}"] = artifact.data
            entries.append({**artifact.header(), "size": artifact.size, "blob": blob, "hash": artifact.content_hash})
        more = {} if source is None else {SOURCE: source.encode()}
        if metadata is not None:
            more[METADATA] = json.dumps(metadata, indent=1).encode()
        manifest = {
            "format": "weft-artifacts",
            "version": VERSION,
            "artifacts": entries,
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in more.items()},
        }
        return write_archive({MANIFEST: _canonical(manifest), **files, **more})

    def save(
        self, path: str | os.PathLike[str], *, source: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Write the archive to a file, whole or not at all; ArtifactError W818 when the file cannot be written."""
        content = self.to_bytes(source=source, metadata=metadata)
        try:
            write_whole(path, content)
        except OSError as error:
            raise ArtifactError(f"cannot write {os.fspath(path)!r}: {error.strerror}", code="W818") from None

    @classmethod
    def from_bytes(cls, content: bytes, limits: Limits | None = None) -> ArtifactSet:
        """The set of an archive; ArtifactError W810, W811 or W812 for anything that `to_bytes` did not write."""
        return cls.contents(content, limits)[0]

    @classmethod
    def contents(
        cls, content: bytes, limits: Limits | None = None
    ) -> tuple[ArtifactSet, str | None, dict[str, Any] | None]:
        """The set of an archive, the text of its module and its metadata, where it has them."""
        files = read_archive(content, limits)
        try:
            return _read(files)
        except ArtifactError:
            raise
        except DAMAGE as error:
            raise ArtifactError(f"the archive is damaged: {error}", code="W811") from None

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write a shared object (a path that ends in .so) or a folder of files; see `weft.runtime.loading.export`."""
        return provider("export")(self.values(), path)  # data alone needs no loader

    def load_module(self) -> LoadedModule:
        """Load all artifacts together into this process; see `weft.runtime.loading.load_set`."""
        return provider("load_set")(self.values())  # data alone needs no loader

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ArtifactSet:
        """Read an archive from a file; ArtifactError as `from_bytes`, W811 when the file cannot be read."""
        content = read_file(path)
        with naming_file(path):
            return cls.from_bytes(content)

    def diff(self, other: ArtifactSet) -> list[str]:
        """One line per artifact that the sets do not share."""
        lines = [f"- {self[name].summary()}" for name in self if name not in other]
        lines += [f"+ {other[name].summary()}" for name in other if name not in self]
        for name in self:
            if name in other and self[name] != other[name]:
                lines += [f"- {self[name].summary()}", f"+ {other[name].summary()}"]
        return lines


def _read(files: Mapping[str, bytes]) -> tuple[ArtifactSet, str | None, dict[str, Any] | None]:
    manifest = json.loads(files[MANIFEST]) if MANIFEST in files else {}
    if not isinstance(manifest, dict) or manifest.get("format") != "weft-artifacts":
        raise ArtifactError("not an archive of artifacts", code="W810")
    if manifest.get("version") != VERSION:
        raise ArtifactError(
            f"archive version {manifest.get('version')!r} is not supported",
            code="W812",
            hint=f"this reads {VERSION}",
        )
    artifacts = [_of_entry(entry, files) for entry in manifest["artifacts"]]
    more = manifest.get("files", {})
    named = {MANIFEST, *more, *(f"blobs/{entry['blob']}" for entry in manifest["artifacts"])}
    if set(more) - {SOURCE, METADATA} or set(files) - named:
        unknown = sorted((set(more) - {SOURCE, METADATA}) | (set(files) - named))
        raise ArtifactError(f"the archive holds {unknown[0]!r}, which it does not describe", code="W811")
    for name, digest in more.items():
        if hashlib.sha256(files[name]).hexdigest() != digest:
            raise ArtifactError(f"{name!r} does not have the hash it states", code="W811")
    metadata = json.loads(files[METADATA]) if METADATA in more else None
    return ArtifactSet(artifacts), files[SOURCE].decode() if SOURCE in more else None, metadata


def missing_symbols(artifacts: ArtifactSet, host: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The symbols that neither the set nor the host provides, each with the name of an artifact that needs it."""
    rest, *programs = _together(artifacts)
    always = {*host, *(symbol.name for item in rest for symbol in item.provides)}
    lacking: dict[tuple[str, str], None] = {}
    for group in (rest, *programs):
        known = always.union(symbol.name for item in group for symbol in item.provides)
        needed = ((symbol.name, item.name) for item in group for symbol in item.needs)
        lacking.update(dict.fromkeys(pair for pair in needed if pair[0] not in known))
    return list(lacking)


def _together(artifacts: ArtifactSet) -> list[list[Artifact]]:
    """The artifacts that are loaded together: those of each program that names its own, and the others."""
    named = {
        item.name: members
        for item in artifacts.values()
        if item.kind == PROGRAM and (members := members_of(item)) is not None
    }
    owned = {*named, *(name for members in named.values() for name in members)}
    groups = [[artifacts[name], *(artifacts[m] for m in members if m in artifacts)] for name, members in named.items()]
    return [[item for item in artifacts.values() if item.name not in owned], *groups]


def _of_entry(entry: Mapping[str, Any], files: Mapping[str, bytes]) -> Artifact:
    """The artifact of an entry of a manifest, with its blob."""
    data = files[f"blobs/{entry['blob']}"]
    header = {key: value for key, value in entry.items() if key not in ("blob", "hash", "size")}
    artifact = Artifact._from_header(header, data)
    if hashlib.sha256(data).hexdigest() != entry["blob"]:
        raise ArtifactError(f"artifact {artifact.name!r} does not have the hash it states", code="W811")
    artifact._check_stated(entry.get("size", artifact.size), entry["hash"])
    return artifact


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; ArtifactError W811 when it cannot be read."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArtifactError(f"a file is named by its path, got {type(path).__name__}", code="W811")
    try:
        with naming_file(path), open_file(path) as file:
            return file.read()
    except (OSError, ValueError) as error:  # a path may not even be one
        raise ArtifactError(f"cannot read {os.fspath(path)!r}: {_reason(error)}", code="W811") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextlib.contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors about the contents of a file say which file it is."""
    try:
        yield
    except ArtifactError as error:
        message = f"{os.fspath(path)}: {error.message}"
        raise ArtifactError(message, code=error.code, span=error.span, notes=error.notes, hint=error.hint) from None


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
