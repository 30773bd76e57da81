"""The symbols of artifacts of object code: what their bytes provide and need beside what they say.

Errors: ArtifactError W821 for an artifact that says something else, W819 for what is no object file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from weft.errors import ArtifactError
from weft.runtime.artifact import Artifact, Symbol
from weft.runtime.device.object_formats import object_symbols
from weft.runtime.device.object_symbols import OF_TOOLCHAIN, needed

__all__ = ["check_symbols", "outside_needs", "symbols_of", "true_symbols"]


def true_symbols(artifact: Artifact) -> Artifact:
    """The artifact of object code with the symbols that its bytes provide and need; prototypes that it states stay."""
    stated = {symbol.name: symbol for symbol in (*artifact.provides, *artifact.needs)}
    provides, needs = symbols_of(artifact.data, stated)
    return replace(artifact, provides=provides, needs=needs)


def symbols_of(
    code: bytes, stated: Mapping[str, Symbol] = MappingProxyType({})
) -> tuple[tuple[Symbol, ...], tuple[Symbol, ...]]:
    """The symbols that an object provides and those that it needs, as they are stated where they are."""
    found = object_symbols(code)
    provides = {symbol.name for symbol in found if symbol.defined and not symbol.local}
    needs = {symbol.name for symbol in found if not symbol.defined and symbol.name}
    first, second = ([stated.get(name) or Symbol(name) for name in sorted(names)] for names in (provides, needs))
    return tuple(first), tuple(second)


def outside_needs(code: bytes) -> tuple[Symbol, ...]:
    """What an object needs of other programs and libraries, without what its compiler and its linker bring along."""
    return tuple(Symbol(name) for name in sorted(needed(code)) if not name.startswith(OF_TOOLCHAIN))


def check_symbols(artifact: Artifact, read: Artifact | None = None) -> None:
    """ArtifactError W821 for object code that provides or needs other symbols than its artifact says.

    `read` is the artifact as its bytes say it, where it is no plain object code.
    """
    read = read or true_symbols(artifact)
    for what in ("provides", "needs"):
        said, there = ({symbol.name for symbol in getattr(item, what)} for item in (artifact, read))
        if said != there:
            wrong = sorted(said ^ there)[0]
            how = f"{what} {wrong!r}" + ("" if wrong in there else " by its word alone")
            message = f"artifact {artifact.name!r} {how}" + (", which it does not say" if wrong in there else "")
            raise ArtifactError(message, code="W821", hint="it was made by hand, or changed")
