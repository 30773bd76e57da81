"""What the manifest of an executable may say; anything else is refused before something is made of it.

    manifest  ::= format, version, functions, sites, constants, objects, sources, target, python, threads, driver,
                  decisions, kind, provenance, names, uses, bound, hashes
    function  ::= {name, kind, symbol, params, result, span, private}     signatures: `weft.runtime.abi.json_form`
    site      ::= {kind, ...}                  a place that may fail: message and note are texts and indices of values
    constant  ::= {dtype, shape, file}         bytes in row order, as many as the shape needs
    hashes    ::= {name: sha256}               of every other entry, each of which has its use

Errors: ArtifactError W811 for a manifest that no saved program has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.errors import ArtifactError
from weft.runtime.abi.frame import VALUE_COUNT
from weft.runtime.abi.json_form import signature_from_json, site_from_json
from weft.runtime.abi.scalars import DTYPE_CODES

__all__ = ["check_manifest"]

_Check = Callable[[Any], bool]
_MOST = 1 << 62


def check_manifest(manifest: Mapping[str, Any], parts: Iterable[str]) -> None:
    """Check a manifest and that its parts are those of the file; ArtifactError W811."""
    known = _FIELDS.keys() - _OPTIONAL <= manifest.keys() <= _FIELDS.keys()
    _expect(known, f"its fields are {', '.join(sorted(map(str, manifest)))}")
    for name, said in manifest.items():
        _expect(_FIELDS[name](said), f"{name} is nothing that a manifest says")
    used = {constant["file"] for constant in manifest["constants"]}
    used |= {f"code/{index}.o" for index in range(min(manifest["objects"], len(manifest["hashes"]) + 1))}
    used |= {f"source/{index}.ll" for index in range(min(manifest["sources"], len(manifest["hashes"]) + 1))}
    _expect(manifest["hashes"].keys() - {"artifacts.zip"} == used, "it has parts without a use, or uses others")
    _expect(manifest["hashes"].keys() == set(parts), "the file holds other parts than the manifest lists")
    names = [function["name"] for function in manifest["functions"]]
    own = len(set(names)) == len(names) and set(manifest.get("python", ())) <= set(names)
    _expect(own, "it names functions twice, or none of its own")


def _expect(right: bool, wrong: str) -> None:
    if not right:
        raise ArtifactError(f"the manifest is not one that weft writes: {wrong}", code="W811")


def _is(kind: type | tuple[type, ...]) -> _Check:
    return lambda value: isinstance(value, kind) and not (isinstance(value, bool) and kind is int)


def _list_of(check: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _record(fields: Mapping[str, _Check], optional: Iterable[str] = ()) -> _Check:
    """Whether a value has these fields and no others, each of its kind."""
    needed = fields.keys() - set(optional)
    return lambda value: (
        isinstance(value, dict)
        and needed <= value.keys() <= fields.keys()
        and all(fields[name](value[name]) for name in value)
    )


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _reads(read: Callable[[Any], object]) -> _Check:
    """Whether a value is the JSON form of a record."""

    def check(value: Any) -> bool:
        try:
            read(value)
        except ValueError:
            return False
        return True

    return check


def _span(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 6 and all(map(_is((str, int)), value))


def _dtype(value: Any) -> bool:
    return isinstance(value, str) and value in DTYPE_CODES


_text = _is(str)
_words = _list_of(lambda part: isinstance(part, str) or (_count(part) and part < VALUE_COUNT))


def _site(value: Any) -> bool:
    """Whether a value is a place that may fail or call out; calls have fields of their own."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("kind"), str)
        and _or_none(_span)(value.get("span"))
        and all(_words(value.get(name, [])) for name in ("message", "note"))
        and all(_or_none(_text)(value.get(name)) for name in ("code", "hint"))
        and _reads(site_from_json)(value)
    )


_CONSTANT = _record({"dtype": _dtype, "shape": _list_of(_count), "file": lambda name: str(name)[:5] == "data/"})
_FIELDS: Mapping[str, _Check] = {
    "format": _text,
    "version": _count,
    "functions": _list_of(_reads(signature_from_json)),
    "sites": _list_of(_site),
    "constants": _list_of(_CONSTANT),
    "objects": _count,
    "sources": _count,
    "target": lambda value: _list_of(_text)(value) and len(value) == 3,
    "python": _list_of(_text),
    "threads": _is(bool),
    "driver": _or_none(_is(dict)),
    "decisions": _list_of(_is(dict)),
    "kind": _text,
    "provenance": _is(dict),
    "names": _or_none(lambda value: isinstance(value, dict) and all(map(_text, value.values()))),
    "uses": lambda value: isinstance(value, dict) and all(_list_of(_text)(v) and len(v) == 2 for v in value.values()),
    "bound": _is(bool),
    "hashes": lambda value: isinstance(value, dict) and all(map(_text, value.values())),
}
_OPTIONAL = ("python", "threads", "driver", "decisions", "kind", "provenance", "names", "uses")
