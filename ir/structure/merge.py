"""Merging modules, and taking them apart: conflicting private names are renamed, references follow.

    merge(into, other) -> MergeResult(module, mapping)      mapping: old name in `other` -> name in the result
    extract(module, *names) -> module                       the functions and what they refer to

A function of both modules under one name is shared when it is structurally equal (and what it refers to is shared too);
a private one of `other` gets a fresh name otherwise; a public one is an error, unless the policy says to rename it.
Attributes and global infos of both must agree.

Compiled modules are modules: a declaration stands for the code that the artifacts provide for it, so two of one name
are equal when their code is. Programs of both stay whole beside each other (`weft.runtime.merging`); a declaration that
nothing provides yet meets the code that the other module has for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import PassError, WeftError
from weft.ir.attrs import ARTIFACTS
from weft.ir.graph import ExternFunc, GlobalVar
from weft.ir.module import BaseFunc, IRModule, fresh_name
from weft.ir.node import EMPTY, FrozenMap, Node, replace
from weft.ir.structure.structural import first_mismatch
from weft.ir.structure.visit import rewrite, walk
from weft.support.providers import provider
from weft.support.records import record

__all__ = ["MergeResult", "extract", "merge", "rename_functions"]


@record
class MergeResult:
    """The merged module and, for every function of the other module, its name in the result."""

    module: IRModule
    mapping: dict[str, str]


def merge(into: IRModule, other: IRModule, *, public: str = "error") -> MergeResult:
    """Add the functions of `other` to `into`, and the artifacts of both where they are compiled.

    `public` says what happens to a public function whose name is taken by a different one: "error" (PassError W530) or
    "rename"; to a library for C of a name that was chosen (`package.name`) as well: ArtifactError W814. One that nobody
    named becomes `model_1` beside another. PassError W531 for attributes that disagree.

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
                notes=["they are compiled to different code" if mismatch is None else f"first mismatch: {mismatch}"],
                hint='make one private, or rename it: merge(into, other, public="rename")',
            )
        mapping[name] = fresh_name(name, used)
        used.add(mapping[name])
    symbols = _renamed_symbols(other, mapping)
    incoming = rename_functions(other, mapping, symbols)
    functions = {**into.functions, **{k: f for k, f in incoming.items() if k not in into}}
    return MergeResult(
        replace(
            into,
            functions=FrozenMap(functions),
            attrs=_joined("attribute", into.attrs, other.attrs, symbols, rename_libraries=public == "rename"),
            global_infos=_joined("global info", into.global_infos, other.global_infos),
        ),
        mapping,
    )


def extract(module: IRModule, *names: str) -> IRModule:
    """The functions of some names, what they refer to, and the artifacts of the programs that do them.

    PassError W510 for a name that the module does not have.

    >>> module = IRModule({"f": ExternFunc("f"), "g": ExternFunc("g")})
    >>> list(extract(module, "g"))
    ['g']
    """
    kept: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in kept:
            kept.add(name)
            left += [reference for reference in _references(module[name]) if reference in module]
    functions = {name: function for name, function in module.items() if name in kept}
    if ARTIFACTS not in module.attrs:
        return module.with_functions(functions)
    symbols = {item.name for function in functions.values() for item in walk(function) if isinstance(item, ExternFunc)}
    artifacts = provider("extract_artifacts")(module.attrs[ARTIFACTS], symbols)
    alone = module.with_functions(functions)
    return alone.with_attr(ARTIFACTS, artifacts) if len(artifacts) else alone.without_attr(ARTIFACTS)


def _code(module: IRModule) -> Mapping[str, str]:
    """What stands for the code of each symbol that the programs of a module provide."""
    return provider("implementations")(module.attrs[ARTIFACTS]) if ARTIFACTS in module.attrs else {}


def _shared(into: IRModule, other: IRModule) -> set[str]:
    """Names whose functions are equal in both, down to everything they refer to, and to the code they stand for."""
    ours, theirs = _code(into), _code(other)

    def same(name: str) -> bool:
        left, right = into[name], other[name]
        if first_mismatch(left, right) is not None:
            return False
        codes = {ours.get(left.name), theirs.get(right.name)} if isinstance(left, ExternFunc) else {None}
        return len(codes - {None}) <= 1

    shared = {name for name in other if name in into and same(name)}
    while True:
        broken = {name for name in shared if any(ref in into and ref not in shared for ref in _references(other[name]))}
        if not broken:
            return shared
        shared -= broken


def _renamed_symbols(module: IRModule, mapping: Mapping[str, str]) -> dict[str, str]:
    """The symbols whose code the module has, by whose declarations they get other names."""
    code = _code(module)
    return {
        function.name: mapping[name]
        for name, function in module.items()
        if isinstance(function, ExternFunc) and function.name in code and mapping[name] != name
    }


def _references(function: BaseFunc) -> set[str]:
    return {item.name for item in walk(function) if isinstance(item, GlobalVar)}


def rename_functions(module: IRModule, mapping: Mapping[str, str], symbols: Mapping[str, str] = EMPTY) -> IRModule:
    """The module with functions renamed; calls follow. A registered function of the same name is another one.

    `symbols` are new names of what stands outside of the module.
    """
    changed = {old: new for old, new in mapping.items() if old != new}
    if not changed:
        return module

    def follow(item: Node) -> Node | None:
        if isinstance(item, ExternFunc) and item.name in symbols:
            return replace(item, name=symbols[item.name])
        if isinstance(item, GlobalVar) and item.name in changed:
            return replace(item, name=changed[item.name])
        return None

    functions: dict[str, BaseFunc] = {}
    for name, function in module.items():
        new = rewrite(function, follow)
        if name in changed and not isinstance(new, ExternFunc):
            new = replace(new, name=changed[name])
        functions[changed.get(name, name)] = new
    return replace(module, functions=FrozenMap(functions))


def _united(left: Any, right: Any, names: Mapping[str, str], *, rename_libraries: bool) -> Any:
    """The artifacts of both; W814 where two have one name, or provide one symbol."""
    try:
        return provider("merge_artifacts")(left, right, names, rename_libraries=rename_libraries)
    except WeftError as error:
        error.hint = error.hint or (
            'give each model for C its own name (-package.name), have it renamed: merge(into, other, public="rename"),'
            " or merge the modules before their code is generated"
        )
        raise


def _joined(
    what: str,
    left: FrozenMap,
    right: FrozenMap,
    names: Mapping[str, str] = EMPTY,
    *,
    rename_libraries: bool = False,
) -> FrozenMap:
    joined: dict[str, Any] = dict(left)
    for key, value in right.items():
        if key == ARTIFACTS:
            ours = joined.get(key, {})
            united = key in joined or names
            joined[key] = _united(ours, value, names, rename_libraries=rename_libraries) if united else value
        elif key not in joined:
            joined[key] = value
        elif first_mismatch(joined[key], value) is not None:
            raise PassError(f"the modules disagree on {what} {key!r}: {joined[key]!r} against {value!r}", code="W531")
    return FrozenMap(joined)
