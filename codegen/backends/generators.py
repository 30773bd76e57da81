"""Code generators of target kinds: their functions leave the module and come back as artifacts.

    code generator ::= (module, target) -> Artifact | artifacts

A part of the target whose kind has a code generator gets the functions that belong to it, with its own target, and
returns artifacts that provide a symbol for each function which is public or called from elsewhere. The artifacts stand
in the attribute `artifacts` of the module; what called the functions calls the symbols:

    cls.kernel(x, y)     R.call_packed("kernel", x, y) with dps=True       a kernel writes its outputs
    y = cls.f(x)         y = R.call_packed("f", x)                         a graph function returns its result

A generator that returns `Translated(artifacts, statements)` says what of each function its artifacts do: a statement
that stores, calls or asserts and is left out of it is an error, instead of memory that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace as with_fields
from typing import Any

from weft.errors import ArtifactError, described
from weft.ir.attrs import ARTIFACTS, DPS
from weft.ir.graph import Binding, Call, ExternFunc, Function, GlobalVar, Op
from weft.ir.module import BaseFunc, IRModule
from weft.ir.node import FrozenMap, Node, replace
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.structural import structural_hash
from weft.ir.structure.visit import rewrite, walk
from weft.ir.tensor import AssertStmt, BufferStore, Evaluate, PrimFunc, Stmt
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.support.records import dataclass
from weft.target import Target
from weft.transform.infra.base import failing_in
from weft.transform.target.labels import leaf_parts, owners
from weft.transform.target.parts import part_view
from weft.version import VERSION

__all__ = ["ARTIFACTS", "Translated", "generate_artifacts", "provenance"]


Generator = Callable[[IRModule, Target], Any]


@dataclass(frozen=True)
class Translated:
    """What a code generator made, and of what: the statements of each function that its artifacts do.

    A statement stands for those inside of it; bindings are the statements of graph functions.
    """

    artifacts: Artifact | Iterable[Artifact]
    statements: Mapping[str, Iterable[Node]]


def generate_artifacts(
    module: IRModule, target: Target | str, generators: Mapping[str, Generator] | None = None
) -> IRModule:
    """The module without the functions of parts that have a code generator, and with the artifacts made of them.

    `generators` are those of parts, by label, whose kinds have none.
    Raises: ArtifactError W816 for a code generator that returns something else than artifacts, W817 for a symbol that
    it does not provide, W814 for two artifacts of one name.
    """
    parts = dict(leaf_parts(Target(target)))
    owner = owners(module, parts)
    made: list[Artifact] = []
    gone: dict[str, str] = {}
    for label in sorted(parts):
        mine = [name for name in module if owner[name] == label]
        generator = parts[label].kind.code_generator or (generators or {}).get(label)
        if generator is None or not mine:
            continue
        made += _generated(module, mine, label, parts[label], generator)
        gone.update(dict.fromkeys(mine, label))
    if not gone:
        return module
    kept = {name: _calling_symbols(module, function, gone) for name, function in module.items() if name not in gone}
    old = module.attrs.get(ARTIFACTS, ArtifactSet())
    new = replace(module, functions=FrozenMap(kept)).with_attr(ARTIFACTS, old.union(made))
    new.attrs[ARTIFACTS].providers()  # no symbol has two providers
    return new


def _generated(module: IRModule, mine: list[str], label: str, part: Target, generator: Generator) -> list[Artifact]:
    """The artifacts of one part, checked."""
    view, _ = part_view(module, mine)
    if ARTIFACTS in view.attrs:  # what others made is not its concern
        view = view.without_attr(ARTIFACTS)
    with failing_in(f" in the code generator of {part} ({_where(label)})"):
        result = generator(view, part)
    if isinstance(result, Translated):
        if not isinstance(result.statements, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArtifactError(
                f"the code generator of {part} ({_where(label)}) must say the statements of each function, as "
                f"Translated(artifacts, {{name: statements}}), got {described(result.statements)}",
                code="W816",
            )
        for name in mine:
            _check_translated(name, view[name], result.statements.get(name, ()), part, label)
        result = result.artifacts
    artifacts = [_completed(item, part, view) for item in _listed(result, part, label)]
    provided = {symbol.name for artifact in artifacts for symbol in artifact.provides}
    missing = [name for name in _promised(module, mine) if name not in provided]
    if missing:
        raise ArtifactError(
            f"the code generator of {part} ({_where(label)}) does not provide {', '.join(missing)}",
            code="W817",
            span=module[missing[0]].span,
            hint=f"it provides {', '.join(sorted(provided)) or 'nothing'}",
        )
    return artifacts


def _check_translated(name: str, function: BaseFunc, statements: Iterable[Node], part: Target, label: str) -> None:
    """W820 unless everything that a function does is among the statements that were translated."""
    done = {id(node) for statement in statements for node in walk(statement)}
    for node in _effects(function):
        if id(node) not in done:
            text = " ".join(node.script().split())
            raise ArtifactError(
                f"the code generator of {part} ({_where(label)}) leaves out a statement of {name!r}: {text[:80]}",
                code="W820",
                span=node.span or function.span,
                hint=f"kind {part.kind.name!r} cannot do it: leave its label out",
            )


def _effects(function: BaseFunc) -> Iterator[Stmt | Binding]:
    """What a function does: statements that hold no others and declare nothing, bindings of a graph function."""
    if isinstance(function, Function):
        yield from (node for node in walk(function.body) if isinstance(node, Binding))
    elif isinstance(function, PrimFunc):
        yield from (node for node in walk(function.body) if isinstance(node, (BufferStore, Evaluate, AssertStmt)))


def _where(label: str) -> str:
    return f"part {label!r}" if label else "the whole target"


def _listed(result: Any, part: Target, label: str) -> list[Artifact]:
    if isinstance(result, ArtifactSet):
        return list(result.values())
    listed: list[Any] = list(result) if isinstance(result, (list, tuple)) else [result]
    for item in listed:
        if not isinstance(item, Artifact):
            raise ArtifactError(
                f"the code generator of {part} ({_where(label)}) must return artifacts, got {described(item)}",
                code="W816",
            )
    return listed


def _completed(artifact: Artifact, part: Target, view: IRModule) -> Artifact:
    """The artifact with the code generator and the target that made it, and what it was made from."""
    target = artifact.target if artifact.target != "{}" else part.to_json()
    return with_fields(
        artifact,
        codegen=artifact.codegen or part.kind.name,
        target=target,
        provenance={**provenance(view), **artifact.provenance},
    )


def provenance(module: IRModule) -> dict[str, Any]:
    """What an artifact was made from and by: the hashes of the functions, the version of weft.

    >>> provenance(IRModule({}))["functions"]
    {}
    """
    hashes = {name: f"{structural_hash(function):016x}" for name, function in module.items()}
    return {"functions": hashes, "weft": VERSION}


def _promised(module: IRModule, mine: list[str]) -> list[str]:
    """The functions that something outside may call: public ones, and those that other functions refer to."""
    outside = {
        callee for name, function in module.items() if name not in mine for callee in referenced_functions(function)
    }
    return [name for name in mine if name in outside or not getattr(module[name], "private", False)]


def _calling_symbols(module: IRModule, function: Any, gone: dict[str, str]) -> Any:
    """The function with calls of symbols in place of calls of functions that are gone."""

    def follow(item: Node) -> Node | None:
        if not isinstance(item, Call):
            return None
        if isinstance(item.op, GlobalVar) and item.op.name in gone:
            callee = module[item.op.name]
            symbol = ExternFunc(item.op.name, span=item.op.span)
            if isinstance(callee, Function):
                return replace(item, op=symbol, ty_args=(callee.ret_type,))
            return replace(item, op=symbol, attrs=item.attrs.set(DPS, True))
        if isinstance(item.op, Op) and item.op.name == "call_tir" and getattr(item.args[0], "name", None) in gone:
            symbol = ExternFunc(getattr(item.args[0], "name", ""), span=item.args[0].span)
            return replace(item, op=Op("call_dps_packed"), args=(symbol, *item.args[1:]))
        return None

    return rewrite(function, follow)
