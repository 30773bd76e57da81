"""Artifacts of several programs in one set: each program names the artifacts that are its own.

    program.json ::= { ..., "artifacts": [name of each other artifact of the program],
                       "names": {name for callers: name in the program},        where they are not all as they were
                       "uses": {name that it calls: [program.json of another, name in that one]} }

A symbol has one provider among the artifacts that are loaded together: those of a program, and those of none. Artifacts
of a program whose names are taken by others get fresh ones, equal ones are shared; the names of functions that callers
see are never renamed but as the caller of `merge_artifacts` says, and no two programs provide one.

Errors: ArtifactError W814 for two functions, symbols or files of one name that are not the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.artifact import PROGRAM, Artifact, ArtifactSet, Symbol, members_of
from weft.runtime.programs.bytecode import program_bytes
from weft.runtime.programs.library_names import UNNAMED, fresh_library, libraries, library_apart

__all__ = [
    "extract_artifacts",
    "implementations",
    "kept_artifacts",
    "merge_artifacts",
    "merged_programs",
    "split_programs",
]

FOR_C = "cc"
"""The loader of what C programs link: their compiler looks files up by name."""


def merge_artifacts(
    left: Mapping[str, Artifact],
    right: ArtifactSet,
    names: Mapping[str, str] | None = None,
    *,
    rename_libraries: bool = False,
) -> ArtifactSet:
    """The artifacts of both; the programs of `right` provide functions under other `names` where they say so.

    Of two libraries for C of one name that of `right` gets another one, where nobody named it or the caller says so.

    >>> merge_artifacts(ArtifactSet(), ArtifactSet([Artifact("c", "a.c", b"")])).names
    ('a.c',)
    """
    return _merged(ArtifactSet(left.values()), right, names or {}, rename_libraries=rename_libraries)[0]


def _merged(
    left: ArtifactSet, right: ArtifactSet, names: Mapping[str, str], *, rename_libraries: bool = False
) -> tuple[ArtifactSet, dict[str, str]]:
    """The artifacts of both, and the name of each of `right` in the result."""
    left, right = _stated(left), _stated(right)
    placed = _Placed(left)
    belonging = {name for item in _programs(right) for name in members_of(item) or ()}
    moved = _moved_libraries(left, right, every=rename_libraries)
    mapping: dict[str, str] = {}
    for item in right.values():
        if item.kind != PROGRAM:
            mapping[item.name] = placed.add(moved.get(item.name, item), renames=_has_any_name(item, belonging))
    for item in _in_order(right):
        mapping[item.name] = placed.add(_moved(item, mapping, names), renames=True)
    merged = ArtifactSet(placed.by_name.values())
    merged.providers()  # no symbol has two
    return merged, mapping


def _moved_libraries(left: ArtifactSet, right: ArtifactSet, *, every: bool) -> dict[str, Artifact]:
    """The artifacts of those libraries of `right` that must have other names beside `left`, by the names they had."""
    ours, theirs = libraries(left), libraries(right)
    used = {*ours, *theirs}
    found: dict[str, Artifact] = {}
    for name, items in theirs.items():
        same = all(left.get(item.name) == item for item in items)
        if name in ours and not same and (every or name == UNNAMED):
            new = fresh_library(name, used)
            used.add(new)
            found |= library_apart(items, name, new, left)
    return found


def _has_any_name(item: Artifact, belonging: Container[str]) -> bool:
    """Whether an artifact may get another name: not where C sources include it, or nothing says whose it is."""
    return item.kind == "build" or (item.name in belonging and item.loader != FOR_C)


class _Placed:
    """Artifacts by name, to which others are added."""

    def __init__(self, artifacts: ArtifactSet) -> None:
        self.by_name: dict[str, Artifact] = dict(artifacts)
        self.constants: dict[str, str] = {}
        self.unread = [item for item in artifacts.values() if item.kind == "constants"]

    def add(self, item: Artifact, *, renames: bool) -> str:
        """The name under which an artifact, or one that is equal, is in the set; W814 where it may have no other."""
        taken = self.by_name.get(item.name)
        if taken is None:
            self.by_name[item.name] = item
            return item.name
        if taken == item:
            return item.name
        if not renames:
            raise ArtifactError(f"two different artifacts are named {item.name!r}", code="W814")
        if item.kind == "constants" and (same := self._same_constant(item)) is not None:
            return same
        name = _fresh(item.name, self.by_name)
        self.by_name[name] = replace(item, name=name)
        return name

    def _same_constant(self, item: Artifact) -> str | None:
        """The name of an equal constant; all of them are hashed once that is asked."""
        while self.unread:
            known = self.unread.pop()
            self.constants[_content(known)] = known.name
        return self.constants.get(_content(item))


def _content(item: Artifact) -> str:
    return replace(item, name="constant").content_hash


def _fresh(name: str, used: Container[str]) -> str:
    """A free file name that continues the number of another: `code2.o` is followed by `code3.o`."""
    stem, dot, ending = name.partition(".")
    base = stem.rstrip("0123456789")
    count = int(stem[len(base) :]) + 1 if base != stem else 1
    base = base if base != stem else f"{stem}_"
    while f"{base}{count}{dot}{ending}" in used:
        count += 1
    return f"{base}{count}{dot}{ending}"


def _programs(artifacts: ArtifactSet) -> list[Artifact]:
    return [item for item in artifacts.values() if item.kind == PROGRAM]


def _in_order(artifacts: ArtifactSet) -> Iterator[Artifact]:
    """The programs, each after those that it uses; W823 for programs that use each other, or others that are absent."""
    left = {item.name: item for item in _programs(artifacts)}
    done: set[str] = set()
    while left:
        ready = [item for item in left.values() if done.issuperset(_used(item))]
        if not ready:
            raise ArtifactError(f"{next(iter(left))!r} uses programs that are not there", code="W823")
        for item in ready:
            del left[item.name]
            done.add(item.name)
            yield item


def _used(item: Artifact) -> list[str]:
    """The programs whose functions a program calls."""
    uses = _read(item).get("uses", {})
    try:
        return [str(place) for place, _ in uses.values()]
    except (TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(f"{item.name!r} is no program: {error}", code="W823") from None


def _read(item: Artifact) -> dict[str, Any]:
    try:
        return dict(json.loads(item.data))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{item.name!r} is no program: {error}", code="W823") from None


def _written(item: Artifact, whole: Mapping[str, Any], provides: Iterable[Symbol] | None = None) -> Artifact:
    return replace(item, data=program_bytes(whole), provides=item.provides if provides is None else tuple(provides))


def _stated(artifacts: ArtifactSet) -> ArtifactSet:
    """The same artifacts, where a program alone among them says that all of them are its own."""
    programs = _programs(artifacts)
    if len(programs) != 1 or "artifacts" in _read(programs[0]):
        return artifacts
    others = [item for item in artifacts.values() if item.kind != PROGRAM]
    whole = {**_read(programs[0]), "artifacts": [item.name for item in others]}
    return ArtifactSet([*others, _written(programs[0], whole)])


def _moved(item: Artifact, mapping: Mapping[str, str], names: Mapping[str, str]) -> Artifact:
    """A program whose artifacts have other names, and some of whose functions have."""
    whole = _read(item)
    if "uses" in whole:
        whole["uses"] = {name: [mapping.get(place, place), own] for name, (place, own) in whole["uses"].items()}
    for key in ("objects", "constants", "artifacts"):
        if key in whole:
            moved = [mapping.get(name, name) for name in whole[key]]
            whole[key] = list(dict.fromkeys(moved)) if key == "artifacts" else moved
    for key, usual in (("driver", None), ("signatures", "signatures.json")):
        moved = mapping.get(name := whole.get(key, usual), name)
        if moved != usual:
            whole[key] = moved
    if not any(symbol.name in names for symbol in item.provides):
        return _written(item, whole)
    seen = whole.get("names") or {symbol.name: symbol.name for symbol in item.provides}
    whole["names"] = {names.get(outer, outer): own for outer, own in seen.items()}
    return _written(
        item, whole, (replace(symbol, name=names.get(symbol.name, symbol.name)) for symbol in item.provides)
    )


def implementations(artifacts: ArtifactSet) -> dict[str, str]:
    """What does each function that programs provide: a hash of the code, the constants and the function's own name.

    >>> implementations(ArtifactSet())
    {}
    """
    found: dict[str, str] = {}
    stated = _stated(artifacts)
    hashes = {item.name: _content(item) for item in stated.values() if item.kind != PROGRAM}
    for item in _in_order(stated):
        moved = _read(_moved(item, hashes, {}))
        own = moved.pop("names", {})
        digest = hashlib.sha256(json.dumps(moved, sort_keys=True).encode()).hexdigest()
        hashes[item.name] = digest
        found.update({symbol.name: f"{digest} {own.get(symbol.name, symbol.name)}" for symbol in item.provides})
    return found


def extract_artifacts(artifacts: ArtifactSet, names: Collection[str]) -> ArtifactSet:
    """The artifacts without the programs that provide none of the names, each program with the names of it alone.

    >>> extract_artifacts(ArtifactSet([Artifact("c", "a.c", b"")]), ["f"]).names
    ('a.c',)
    """
    stated = _stated(artifacts)
    programs = {item.name: item for item in _in_order(stated)}
    kept: dict[str, Artifact] = {}
    used: set[str] = set()
    for name, item in reversed(programs.items()):
        chosen = [symbol for symbol in item.provides if symbol.name in names]
        if not chosen and name not in used:
            continue
        whole = _read(item)
        used.update(_used(item))
        if len(chosen) == len(item.provides):
            kept[name] = item
            continue
        seen = whole.get("names") or {symbol.name: symbol.name for symbol in item.provides}
        whole["names"] = {symbol.name: seen[symbol.name] for symbol in chosen}
        kept[name] = _written(item, whole, chosen)
    if len(kept) == len(programs) and all(kept[name] is programs[name] for name in programs):
        return artifacts
    mine = {member for item in kept.values() for member in members_of(item) or ()}
    gone = {member for item in programs.values() for member in members_of(item) or ()} - mine
    others = [item for item in stated.values() if item.kind != PROGRAM and item.name not in gone]
    return ArtifactSet([*others, *kept.values()])


def kept_artifacts(artifacts: ArtifactSet, keep: Callable[[Artifact], bool]) -> ArtifactSet:
    """Those artifacts that are to be kept, of which the programs name no others as their own.

    >>> kept_artifacts(ArtifactSet([Artifact("c", "a.c", b"")]), lambda item: item.kind != "c").names
    ()
    """
    kept = {item.name: item for item in artifacts.values() if keep(item)}
    for item in _programs(artifacts):
        mine = members_of(item)
        if mine is not None and not kept.keys() >= set(mine):
            kept[item.name] = _written(item, {**_read(item), "artifacts": [name for name in mine if name in kept]})
    return ArtifactSet(kept.values())


def split_programs(artifacts: ArtifactSet) -> list[tuple[Artifact, ArtifactSet]]:
    """Each program with the artifacts that are its own, after the programs that it uses.

    Raises: ArtifactError W814 for a function that two of them provide, W823 for programs that use each other.
    """
    artifacts.providers()
    programs = list(_in_order(artifacts))
    found = []
    for item in programs:
        mine = members_of(item)
        others = (
            other for other in artifacts.values() if other.kind != PROGRAM and (mine is None or other.name in mine)
        )
        found.append((item, ArtifactSet(others)))
    return found


def merged_programs(
    programs: Iterable[tuple[ArtifactSet, Mapping[str, tuple[int, str]]]], aside: ArtifactSet | None = None
) -> tuple[ArtifactSet, list[str]]:
    """The artifacts of programs and some of none, and the name of each program.

    Each uses functions of some of those before it: by the name that it calls, their number and the name there.
    """
    merged, places = aside or ArtifactSet(), []
    for artifacts, uses in programs:
        merged, mapping = _merged(merged, artifacts, {})
        (name,) = (mapping[item.name] for item in _programs(artifacts))
        places.append(name)
        if uses:
            item = merged[name]
            used = {called: [places[number], own] for called, (number, own) in uses.items()}
            changed = _written(item, {**_read(item), "uses": used})
            merged = ArtifactSet(changed if other is item else other for other in merged.values())
    return merged, places
