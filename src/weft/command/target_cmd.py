"""`weft target` and `weft artifact`: what targets mean, what archives and compiled modules hold; none of it is run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import weft
from weft.command.inputs.files import as_module, is_archive, load_one
from weft.command.inputs.targets import UsageError, chosen_target
from weft.command.report import print_json, say
from weft.errors import ArtifactError
from weft.ir.attrs import ARTIFACTS
from weft.runtime import archive
from weft.runtime.abi.scalars import storage
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.device.artifact_symbols import check_symbols
from weft.runtime.device.object_symbols import HOST_SYMBOLS, OF_TOOLCHAIN, PROCESS_SYMBOLS
from weft.runtime.program_artifacts import PROGRAM, program_artifacts, program_of_file
from weft.runtime.programs.c_kernels import C_KERNELS, check_c_kernels
from weft.target.kinds import KINDS

__all__ = ["artifact_command", "target_command"]

_WIDE = 160  # characters of a line; --json has all of them


def target_command(options: argparse.Namespace) -> int:
    """List kinds or tags, or show, complete and explain a target."""
    weft.load_plugins()
    if options.action == "list":
        rows = {name: kind.doc for name, kind in sorted(KINDS.items())}
        print_json(_kinds()) if options.json else _table(rows)
        return 0
    if options.action == "tags":
        tags = {name: str(weft.tag[name]) for name in weft.tag.names()}
        print_json(tags) if options.json else _table(tags)
        return 0
    if options.text is not None and options.target is not None:
        raise UsageError("the target is given twice: by itself and with --target")
    options.target = options.text if options.text is not None else options.target
    target, _ = chosen_target(options)
    if target is None:
        raise UsageError(f"weft target {options.action} needs a target", hint="weft target list shows the kinds")
    if options.action == "show":
        print_json(target.to_dict()) if options.json else print(target)
        return 0
    explained = target.complete()
    print_json(explained.to_dict()) if options.json else print(explained.explain())
    return 0


def _kinds() -> list[dict[str, Any]]:
    return [
        {
            "kind": name,
            "doc": kind.doc,
            "device": kind.device,
            "options": {
                key: {"type": field.type, "default": field.default, "choices": list(field.choices), "doc": field.doc}
                for key, field in kind.fields.items()
            },
        }
        for name, kind in sorted(KINDS.items())
    ]


def _table(rows: dict[str, str]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        print(f"{name:<{width}}  {text}")


def artifact_command(options: argparse.Namespace) -> int:
    """Show, verify or compare archives of artifacts."""
    wanted = 2 if options.action == "diff" else 1
    if len(options.files) != wanted:
        raise UsageError(f"weft artifact {options.action} takes {wanted} file{'s' * (wanted > 1)}")
    sets = [_artifacts(file) for file in options.files]
    if options.action == "diff":
        return _diff(sets[0], sets[1], options.json)
    artifacts = sets[0]
    if options.action == "verify":
        return _verify(options.files[0], artifacts, options.json)
    print_json([_described(item) for item in artifacts.values()]) if options.json else _show(artifacts)
    return 0


def _artifacts(file: str) -> ArtifactSet:
    """The artifacts of an archive, of an executable that was saved, or of the text of a module that has them.

    Raises: what reading raised; ArtifactError W823 for a module without artifacts.
    """
    if Path(file).is_file() and not is_archive(file):
        artifacts = as_module(load_one(file, None)).attrs.get(ARTIFACTS)
        if artifacts is None:
            hint = 'the phase codegen makes them: weft.lower(module, stop="codegen")'
            raise ArtifactError(f"the module of {file} has no artifacts", code="W823", hint=hint)
        return artifacts
    try:
        return ArtifactSet.load(file)
    except ArtifactError as error:
        if error.code != "W810":
            raise
        try:
            return program_artifacts(archive.read(file, program_of_file, storage))
        except ArtifactError:
            raise error from None


def _described(artifact: Artifact) -> dict[str, Any]:
    return {**artifact.header(), "size": artifact.size, "sha256": artifact.content_hash}


def _show(artifacts: ArtifactSet) -> None:
    for artifact in artifacts.values():
        say(artifact.summary())
        rows = {"target": artifact.target, "codegen": artifact.codegen, "loader": artifact.loader}
        rows["needs"] = ", ".join(symbol.name for symbol in artifact.needs)
        rows.update({key: str(value) for key, value in artifact.provenance.items()})
        for key, value in rows.items():
            if value and value != "{}":
                say(f"    {key}: {value if len(value) <= _WIDE else value[: _WIDE - 3] + '...'}")
    print(f"{len(artifacts)} artifacts, {artifacts.content_hash}")


def _verify(file: str, artifacts: ArtifactSet, as_json: bool) -> int:
    """Reading checked every hash; what objects provide and need is read, and every symbol but the system's is there."""
    objects = [item for item in artifacts.values() if item.kind == "object"]
    for item in objects:
        check_symbols(item)
    for item in artifacts.values():
        if item.kind == C_KERNELS:
            check_c_kernels(item)
    elsewhere = all(item.kind != PROGRAM for item in artifacts.values())  # where the C compiler's own library is linked
    runtime = {symbol.name for item in objects for symbol in item.needs if symbol.name.startswith(OF_TOOLCHAIN)}
    artifacts.link_check((HOST_SYMBOLS | PROCESS_SYMBOLS).union(runtime if elsewhere else ()))
    if as_json:
        print_json({"file": file, "artifacts": len(artifacts), "sha256": artifacts.content_hash})
    else:
        say(f"{file}: {len(artifacts)} artifacts, every hash is right, every symbol is there")
    return 0


def _diff(left: ArtifactSet, right: ArtifactSet, as_json: bool) -> int:
    lines = left.diff(right)
    if as_json:
        print_json(lines)
    else:
        say("\n".join(lines) or "the same artifacts")
    return 1 if lines else 0
