"""A library for C under another name, so that two of one name can be linked together.

    library    ::= the artifacts for C programs whose provenance names it (LIBRARY)
    its names  ::= <name>_..., <NAME>_..., the files <name>..., and what its artifacts say they provide

Every use follows: identifiers and included files in C, symbols of objects, files in build files and in metadata.json.
Members of structures are what callers write, and texts of messages what they read: those stay.

Errors: ArtifactError W814 for object code whose symbols cannot be renamed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from weft.runtime.artifact import Artifact, ArtifactSet, Symbol
from weft.runtime.device.object_renaming import renamed_symbols
from weft.support.records import dataclass

__all__ = ["LIBRARY", "UNNAMED", "fresh_library", "libraries", "library_apart"]

LIBRARY = "library"
"""The entry of the provenance of an artifact that says which library it is a part of."""
UNNAMED = "model"
"""The name of a library that nobody named."""


def libraries(artifacts: ArtifactSet) -> dict[str, list[Artifact]]:
    """The libraries among artifacts by name, each with its artifacts.

    >>> libraries(ArtifactSet([Artifact("c", "a.c", b"", loader="cc", provenance={"library": "a"})])).keys()
    dict_keys(['a'])
    """
    found: dict[str, list[Artifact]] = {}
    for item in artifacts.values():
        if item.loader == "cc" and LIBRARY in item.provenance:
            found.setdefault(str(item.provenance[LIBRARY]), []).append(item)
    return found


def fresh_library(name: str, used: Container[str]) -> str:
    """A free name for a library.

    >>> fresh_library("model", {"model", "model_1"})
    'model_2'
    """
    count = 1
    while f"{name}_{count}" in used:
        count += 1
    return f"{name}_{count}"


def library_apart(items: Iterable[Artifact], old: str, new: str, beside: ArtifactSet) -> dict[str, Artifact]:
    """A library as `new`, to stand beside other artifacts, by the names that its artifacts had.

    What does not bear the library's name (sources of other code generators) is renamed where the others have it, and is
    shared where they have the same.
    """
    items = list(items)
    shared = {item.name: beside[item.name] for item in items if _is_shared(item, old, beside)}
    apart = [item for item in items if item.name not in shared]
    taken = {symbol.name for item in beside.values() for symbol in item.provides if item.loader == "cc"}
    renaming = _Renaming(
        old,
        new,
        {
            symbol.name: f"{new}_{symbol.name}"
            for item in apart
            for symbol in item.provides
            if symbol.name in taken and not symbol.name.startswith(f"{old}_")
        },
        {
            item.name: f"{new}_{item.name}"
            for item in apart
            if item.kind != "build" and item.name in beside and not _bears(item.name, old)
        },
    )
    return {**shared, **{item.name: renaming.artifact(item) for item in apart}}


def _bears(name: str, library: str) -> bool:
    return name.startswith((f"{library}.", f"{library}_"))


def _is_shared(item: Artifact, library: str, beside: ArtifactSet) -> bool:
    if item.kind == "build" or _bears(item.name, library) or item.name not in beside:
        return False
    other = beside[item.name]
    return (item.kind, item.data, item.loader) == (other.kind, other.data, other.loader)


_COMMENT = r"/\*.*?\*/|//[^\n]*"
_C = re.compile(
    r'(?P<include>#\s*include\s*"(?P<file>[^"\n]*)")'
    rf"|(?P<comment>{_COMMENT})"
    r"""|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"|struct\s+(?P<tag>\w+)\s*\{(?P<members>[^{}]*)\}"
    r"|(?P<member>(?:->|\.)\s*[A-Za-z_]\w*)"
    r"|(?P<word>[A-Za-z_]\w*)",
    re.DOTALL,
)
_MEMBERS = re.compile(
    rf"(?P<comment>{_COMMENT})|(?P<name>[A-Za-z_]\w*\s*(?:\[[^\]]*\])?\s*;)|(?P<word>[A-Za-z_]\w*)", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_FILE = re.compile(r"[A-Za-z_][\w.]*")
_ABOUT = re.compile(r"^(# |project\(|add_library\(|target_\w+\()", re.MULTILINE)


@dataclass(frozen=True)
class _Renaming:
    """The names of a library, of its other symbols and of its files, each before and after."""

    old: str
    new: str
    symbols: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    def artifact(self, item: Artifact) -> Artifact:
        """An artifact of the library under its names."""
        return replace(
            item,
            name=self.file(item.name) if item.kind != "build" else item.name,
            data=self._data(item),
            provides=tuple(map(self._symbol, item.provides)),
            needs=tuple(map(self._symbol, item.needs)),
            provenance={**item.provenance, LIBRARY: self.new},
        )

    def _symbol(self, symbol: Symbol) -> Symbol:
        return Symbol(self.word(symbol.name), self._c(symbol.signature))

    def _data(self, item: Artifact) -> bytes:
        if item.kind == "object":
            return renamed_symbols(item.data, self.word, item.name)
        if item.kind in ("c", "header"):
            return self._c(item.data.decode()).encode()
        if item.name.endswith(".json"):
            return self._metadata(item.data)
        return self._build(item.data.decode()).encode() if item.kind == "build" else item.data

    def word(self, word: str) -> str:
        """An identifier of C."""
        for old, new in ((f"{self.old}_", f"{self.new}_"), (f"{self.old.upper()}_", f"{self.new.upper()}_")):
            if word.startswith(old):
                return new + word.removeprefix(old)
        return self.symbols.get(word, word)

    def file(self, name: str) -> str:
        """The name of a file, or of the object made of a source."""
        if _bears(name, self.old):
            return self.new + name.removeprefix(self.old)
        stem, dot, _ = name.rpartition(".")
        if dot and name.endswith(".o") and f"{stem}.c" in self.files:
            return f"{self.files[f'{stem}.c'].removesuffix('.c')}.o"
        return self.files.get(name, name)

    def _c(self, text: str) -> str:
        return _C.sub(self._token, text)

    def _token(self, found: re.Match[str]) -> str:
        whole = found.group()
        if found["include"]:
            return whole.replace(found["file"], self.file(found["file"]))
        if found["comment"]:
            return _WORD.sub(self._plain, whole)
        if found["tag"]:
            return f"struct {self.word(found['tag'])} {{{_MEMBERS.sub(self._in_structure, found['members'])}}}"
        return self.word(whole) if found["word"] else whole

    def _plain(self, found: re.Match[str]) -> str:
        return self.word(found.group())

    def _in_structure(self, found: re.Match[str]) -> str:
        if found["comment"]:
            return _WORD.sub(self._plain, found.group())
        return self.word(found.group()) if found["word"] else found.group()

    def _build(self, text: str) -> str:
        """A Makefile or a CMakeLists.txt."""
        return "".join(map(self._line, text.splitlines(keepends=True)))

    def _line(self, line: str) -> str:
        about = _ABOUT.match(line) is not None

        def follow(found: re.Match[str]) -> str:
            word = found.group()
            library = word.startswith(f"lib{self.old}.") or (about and word == self.old)
            return word.replace(self.old, self.new, 1) if library else self.file(word)

        return _FILE.sub(follow, line)

    def _metadata(self, data: bytes) -> bytes:
        whole: dict[str, Any] = json.loads(data)
        whole["library"] = self.new if whole["library"] == self.old else whole["library"]
        models: dict[str, Any] = whole["models"]
        whole["models"] = {self.new if name == self.old else name: self._model(model) for name, model in models.items()}
        paths: Collection[tuple[str, str]] = whole["files"].items()
        whole["files"] = {self._path(path): label for path, label in paths}
        return (json.dumps(whole, indent=1) + "\n").encode()

    def _model(self, model: dict[str, Any]) -> dict[str, Any]:
        operators = [{**item, "name": self.word(item["name"])} for item in model["memory"]["operators"]]
        return {
            **model,
            "entry": self.word(model["entry"]),
            "memory": {**model["memory"], "operators": operators},
        }

    def _path(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        return f"{folder}{slash}{self.file(name)}"
