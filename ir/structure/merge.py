"""Merging modules: the functions of one join another, conflicting private names are renamed, references follow.

    merge(into, other) -> MergeResult(module, mapping)      mapping: old name in `other` -> name in the result

A function of both modules under one name is shared when it is structurally equal (and what it refers to is shared too);
a private one of `other` gets a fresh name otherwise; a public one is an error, unless the policy says to rename it.
Attributes and global infos of both must agree or be joinable (`union`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.errors import PassError, WeftError
from weft.ir.graph import ExternFunc, GlobalVar
from weft.ir.module import BaseFunc, IRModule, fresh_name
from weft.ir.node import FrozenMap, Node, replace
from weft.ir.structure.structural import first_mismatch
from weft.ir.structure.visit import rewrite, walk

__all__ = ["MergeResult", "merge", "rename_functions"]


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged module and, for every function of the other module, its name in the result."""

    module: IRModule
    mapping: dict[str, str]


def merge(into: IRModule, other: IRModule, *, public: str = "error") -> MergeResult:
    """Add the functions of `other` to `into`.

    `public` says what happens to a public function whose name is taken by a different one: "error" (PassError W530) or
    "rename". PassError W531 for attributes that disagree.

    >>> merge(IRModule({}), IRModule({})).mapping
    {}
    """
    if public not in ("error", "rename"):
        raise PassError(f"unknown policy {public!r}", code="W532", hint="error or rename")
    shared = _shared(into, other)
    mapping: dict[str, str] = {}
    used = {*into.functions, *other.functions}
    for name, function in other.items():
        if name not in into or name in shared:
            mapping[name] = name
            continue
        if not getattr(function, "private", False) and public == "error":
            mismatch = first_mismatch(into[name], function)
            raise PassError(
                f"both modules have a different public function {name!r}",
                code="W530",
                span=function.span,
                notes=[f"first mismatch: {mismatch}"],
                hint="make one private, or rename it",
            )
        mapping[name] = fresh_name(name, used)
        used.add(mapping[name])
    incoming = rename_functions(other, mapping)
    functions = {**into.functions, **{k: f for k, f in incoming.items() if k not in into}}
    return MergeResult(
        replace(
            into,
            functions=FrozenMap(functions),
            attrs=_joined("attribute", into.attrs, other.attrs),
            global_infos=_joined("global info", into.global_infos, other.global_infos),
        ),
        mapping,
    )


def _shared(into: IRModule, other: IRModule) -> set[str]:
    """Names whose functions are equal in both, down to everything they refer to."""
    shared = {name for name in other if name in into and first_mismatch(into[name], other[name]) is None}
    while True:
        broken = {name for name in shared if any(ref in into and ref not in shared for ref in _references(other[name]))}
        if not broken:
            return shared
        shared -= broken


def _references(function: BaseFunc) -> set[str]:
    return {item.name for item in walk(function) if isinstance(item, GlobalVar)}


def rename_functions(module: IRModule, mapping: dict[str, str]) -> IRModule:
    """The module with functions renamed; calls follow. A registered function of the same name is another one."""
    changed = {old: new for old, new in mapping.items() if old != new}
    if not changed:
        return module

    def follow(item: Node) -> Node | None:
        if isinstance(item, GlobalVar) and item.name in changed:
            return replace(item, name=changed[item.name])
        return None

    functions = {}
    for name, function in module.items():
        new = rewrite(function, follow)
        if name in changed and not isinstance(new, ExternFunc):
            new = replace(new, name=changed[name])
        functions[changed.get(name, name)] = new
    return replace(module, functions=FrozenMap(functions))


def _united(left: Any, right: Any) -> Any:
    """The artifacts of both; W814 where two have one name, or provide one symbol."""
    try:
        united = left.union(right.values())
        united.providers()
    except WeftError as error:
        error.hint = error.hint or 'merge the modules before their code is generated: weft.lower(module, stop="plan")'
        raise
    return united


def _joined(what: str, left: FrozenMap, right: FrozenMap) -> FrozenMap:
    joined: dict[str, Any] = dict(left)
    for key, value in right.items():
        if key not in joined:
            joined[key] = value
        elif hasattr(joined[key], "union") and isinstance(value, type(joined[key])):
            joined[key] = _united(joined[key], value)
        elif first_mismatch(joined[key], value) is not None:
            raise PassError(f"the modules disagree on {what} {key!r}: {joined[key]!r} against {value!r}", code="W531")
    return FrozenMap(joined)
