"""A module in one file: its text, its artifacts and its large constants, each by its hash.

    package ::= archive of `weft.runtime.artifact` { artifacts of the module, one `constants` artifact per weight,
                src/module.txt: the module without them, metadata.json }

A constant that occurs twice is one artifact, and artifacts of equal bytes share one blob. Reading runs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weft.codegen.backends.generators import ARTIFACTS
from weft.errors import ArtifactError
from weft.ir.module import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet, naming_file, read_file
from weft.script import parse

__all__ = ["load_module", "module_bytes", "module_of", "save_module"]

CONSTANTS = "constants"


def module_bytes(module: IRModule, *, metadata: Mapping[str, Any] | None = None) -> bytes:
    """The package of a module; NotSerializable when one of its artifacts is only in memory.

    >>> module_of(module_bytes(IRModule({}))).functions
    FrozenMap({})
    """
    artifacts, text = _split(module)
    return artifacts.to_bytes(source=text, metadata=metadata)


def _split(module: IRModule) -> tuple[ArtifactSet, str]:
    artifacts = module.attrs.get(ARTIFACTS, ArtifactSet())
    blobs: dict[str, bytes] = {}
    text = (module.without_attr(ARTIFACTS) if ARTIFACTS in module.attrs else module).script(blobs=blobs)
    constants = [
        Artifact(CONSTANTS, f"{name.removeprefix('sha256:')}.bin", data, codegen=CONSTANTS)
        for name, data in blobs.items()
    ]
    return artifacts.union(constants), text


def save_module(module: IRModule, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write the package of a module to a file, whole or not at all."""
    artifacts, text = _split(module)
    artifacts.save(path, source=text, metadata=metadata)


def module_of(content: bytes) -> IRModule:
    """The module of a package.

    Raises: ArtifactError W810-W812 for what is no package; ScriptError when its text is not that of a module.
    """
    artifacts, text, _ = ArtifactSet.contents(content)
    if text is None:
        raise ArtifactError("the archive has no module, only artifacts", code="W810")
    constants = {item.name.removesuffix(".bin"): item.data for item in artifacts.values() if item.kind == CONSTANTS}
    module = parse(text, filename="src/module.txt", blobs=constants)
    if not isinstance(module, IRModule):
        raise ArtifactError("the text of the archive is that of a function, not of a module", code="W810")
    kept = [item for item in artifacts.values() if item.codegen != CONSTANTS]
    return module.with_attr(ARTIFACTS, ArtifactSet(kept)) if kept else module


def load_module(path: str | os.PathLike[str]) -> IRModule:
    """The module of a file that `save_module` wrote; errors as `module_of`, ArtifactError W811 for a missing file."""
    content = read_file(path)
    with naming_file(path):
        return module_of(content)
