"""What a compilation configuration may say: its fields, their values, memory pools.

    executor ::= kind, entry                         how the graph function is driven
    runtime  ::= kind, alloc                         what is there when it runs
    memory   ::= pool: bytes, rw, ro, ...            pools in order; rw: the parts that may write it, ro: for constants
    package  ::= format, name                        what is written in the end

A field may be given by its first value alone: `-executor=aot` is `-executor.kind=aot`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from weft.errors import TargetError
from weft.target.builtin import EXECUTORS, RUNTIMES
from weft.target.kinds import CONFIG_FIELDS, Bool, Field, Int, List, Str

__all__ = ["POOL", "SCHEMA", "check_pools", "config_default", "config_field", "typed", "unknown_field"]

SCHEMA: dict[str, dict[str, Field]] = {
    "executor": {
        "kind": Str(None, "machine code, bytecode, a graph, a library for later; default: what drives", EXECUTORS),
        "entry": Str("struct", "how the entry of a library takes its arguments", ("struct",)),
    },
    "runtime": {
        "kind": Str(None, "an operating system, or none; default: what the machine of the driving part has", RUNTIMES),
        "alloc": Str("none", "where memory comes from while it runs: the caller", ("none",)),
    },
    "package": {
        "format": Str("archive", "one file, a folder of sources, or a shared object", ("archive", "tree", "shared")),
        "name": Str("model", "the name of the library"),
    },
}
POOL: dict[str, Field] = {
    "bytes": Int(None, "its size; 16K, 1M and 2G are read"),
    "rw": List((), "the labels of the parts that may write it; all when it does not say"),
    "ro": Bool(False, "holds constants only"),
}
_SIZE = re.compile(r"(\d{1,15})([KMG]?)")


def config_field(name: str, value: Any) -> dict[str, Any]:
    """The checked value of a field of a configuration.

    Raises: TargetError W702 for a name that is none, W703 for a wrong value; both with the nearest one.

    >>> config_field("executor", "aot")
    {'kind': 'aot'}
    """
    if name not in CONFIG_FIELDS:
        raise unknown_field("a configuration has no field", name, CONFIG_FIELDS)
    if name == "memory":
        return {pool: _pool(pool, facts) for pool, facts in _named("field 'memory' takes pools by name", value).items()}
    fields = SCHEMA[name]
    if isinstance(value, str):
        value = {next(iter(fields)): value}
    where = f"field {name!r}"
    given = _named(f"{where} takes named values", value)
    read = {key: typed(where, key, _known(where, key, fields), item) for key, item in given.items()}
    return {key: read[key] for key in fields if key in read}


def config_default(name: str) -> dict[str, Any]:
    """What holds where a configuration does not say."""
    return {key: field.default for key, field in SCHEMA.get(name, {}).items() if field.default is not None}


def _named(wanted: str, value: Any) -> Mapping[str, Any]:
    """A mapping; TargetError W703 for anything else."""
    if not isinstance(value, Mapping):
        raise TargetError(f"{wanted}, got {value!r}", code="W703")
    return cast("Mapping[str, Any]", value)


def _pool(pool: str, facts: Any) -> dict[str, Any]:
    where = f"memory pool {pool!r}"
    if not pool.isidentifier() or not pool.isascii():
        raise TargetError(f"a memory pool is named like a variable of C, got {pool!r}", code="W703")
    read: dict[str, Any] = {}
    for key, value in _named(f"{where} takes named values", facts).items():
        field = _known(where, key, POOL)
        if key == "bytes" and isinstance(value, str):
            value = _size(where, value)
        read[key] = typed(where, key, field, value)
    if read.get("bytes", 1) < 1:
        raise TargetError(f"{where} has {read['bytes']} bytes", code="W703")
    if read.get("ro") and "rw" in read:
        raise TargetError(f"{where} is read only, and {', '.join(read['rw'])} may write it", code="W703")
    return {key: read[key] for key in POOL if key in read}


def _size(where: str, value: str) -> int:
    match = _SIZE.fullmatch(value)
    if match is None:
        raise TargetError(f"{where} has no size {value!r}", code="W703", hint="as in 16384, 256K, 4M")
    return int(match.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[match.group(2)]


def check_pools(memory: Mapping[str, Any], labels: Collection[str]) -> None:
    """TargetError W703 for a pool that a part may write which is not there."""
    for pool, facts in memory.items():
        writers: Sequence[str] = facts.get("rw", ())
        for label in writers:
            if label not in labels:
                close = difflib.get_close_matches(label, labels, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"labels: {', '.join(labels) or 'none'}"
                raise TargetError(f"memory pool {pool!r} is for {label!r}, which is no part", code="W703", hint=hint)


def unknown_field(what: str, name: str, known: Collection[str]) -> TargetError:
    """TargetError W702 for a name that is none of the known ones, with the nearest of them."""
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"fields: {', '.join(known)}"
    return TargetError(f"{what} {name!r}", code="W702", hint=hint)


def _known(where: str, key: str, fields: Mapping[str, Field]) -> Field:
    if key not in fields:
        raise unknown_field(f"{where} has no", key, fields)
    return fields[key]


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _items(value: Any) -> Sequence[Any]:
    return value


def typed(where: str, name: str, field: Field, value: Any) -> Any:
    """A value in the type of its field; strings are read (`-macs=128`). TargetError W703 for what does not fit."""
    read: Any = value
    if field.type == "int" and isinstance(value, str):
        read = int(value) if re.fullmatch(r"-?\d{1,18}", value) else value
    elif field.type == "size" and isinstance(value, str):
        read = _size(f"option {name!r} of {where}", value)
    elif field.type == "bool" and isinstance(value, str):
        read = {"true": True, "1": True, "false": False, "0": False}.get(value.lower(), value)
    elif field.type == "list":
        read = (value,) if isinstance(value, str) else tuple(_items(value)) if _is_list(value) else value
    elif field.type == "str" and _is_list(value):
        read = ",".join(map(str, _items(value)))
    expected: Any = {"int": int, "size": int, "bool": bool, "str": str, "list": tuple}[field.type]
    if not isinstance(read, expected) or (expected is int and isinstance(read, bool)):
        raise TargetError(f"option {name!r} of {where} takes {field.type}, got {value!r}", code="W703")
    if field.bounds is not None and not field.bounds[0] <= read <= field.bounds[1]:
        low, high = field.bounds
        raise TargetError(f"option {name!r} of {where} is {low} to {high}, got {read}", code="W703")
    if field.choices and read not in field.choices:
        choices = [str(choice) for choice in field.choices]
        close = difflib.get_close_matches(str(read), choices, 1) if field.type == "str" else []
        hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(choices)}"
        raise TargetError(f"option {name!r} of {where} cannot be {read!r}", code="W703", hint=hint)
    return read
