"""Which importer reads a file: one row for each ending.

    weft.frontend.load("model.onnx")               a module, by the importer of `.onnx`
    register_importer(".tiny", read)               `weft import net.tiny` and `weft.frontend.load` know it from then on

An importer is a function from a path, and what is told how much is done, to a module; `attach_report` keeps beside the
module what became of each node, and `weft.frontend.emitter.Emitter` is what it builds with. Files of no known ending
are read as ONNX.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from weft.errors import ModelError
from weft.ir.module import IRModule
from weft.support.providers import load as load_place
from weft.support.records import record

__all__ = [
    "IMPORTERS",
    "Importer",
    "Progress",
    "Read",
    "importer_of",
    "load",
    "register_importer",
    "unregister_importer",
]

Progress = Callable[[int, int], None]
"""What is told that so many nodes of so many are done."""
Read = Callable[[Path, Progress], IRModule]
"""An importer: (path, progress) -> the module."""


@record
class Importer:
    """What reads files of an ending, and what compares a model with its reference where it has one.

    `check` takes a path, `sizes` by symbol and a `seed`, and gives what prints and has `equal` and `first`.
    """

    read: Read
    check: Callable[..., Any] | None = None

    def compare(self, path: Path, **options: Any) -> Any:
        """The results of the module beside those of the reference; ModelError W978 where the importer has none."""
        if self.check is None:
            raise ModelError(f"models of the kind {path.suffix!r} have no reference to compare with", code="W978")
        return self.check(path, **options)


def _read_onnx(path: Path, progress: Progress) -> IRModule:
    return load_place("weft.frontend.onnx:load")(path, progress=progress)


def _check_onnx(path: Path, **options: Any) -> Any:
    return load_place("weft.frontend.onnx:check")(path, **options)


def _read_torch(path: Path, progress: Progress) -> IRModule:
    return load_place("weft.frontend.torch:from_exported")(load_place("weft.frontend.torch.program:read_file")(path))


def _check_torch(path: Path, **options: Any) -> Any:
    return load_place("weft.frontend.torch:check")(load_place("weft.frontend.torch.program:read_file")(path), **options)


IMPORTERS: dict[str, Importer] = {
    ".onnx": Importer(_read_onnx, _check_onnx),
    ".pt2": Importer(_read_torch, _check_torch),
}
"""The importers by the ending of their files; the packages that they need are imported when first asked for."""
_BUILT_IN = tuple(IMPORTERS)


def register_importer(suffix: str, read: Read, check: Callable[..., Any] | None = None) -> None:
    """Let an importer read files of an ending; ModelError W980 where one does, or for no ending."""
    if not suffix.startswith(".") or suffix in IMPORTERS:
        why = "there is one already" if suffix in IMPORTERS else "an ending begins with a dot"
        raise ModelError(f"an importer for {suffix!r}: {why}", code="W980")
    IMPORTERS[suffix] = Importer(read, check)


def unregister_importer(suffix: str) -> None:
    """Forget an importer that was added."""
    if suffix not in _BUILT_IN:
        IMPORTERS.pop(suffix, None)


def importer_of(path: Path) -> Importer:
    """The importer of a file."""
    return IMPORTERS.get(path.suffix, IMPORTERS[".onnx"])


def load(path: str | PathLike[str]) -> IRModule:
    """The module of a model in a file, by the importer of its ending; errors are those of the importer."""
    return importer_of(Path(path)).read(Path(path), lambda done, total: None)
