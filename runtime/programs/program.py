"""What an executable consists of, as plain data: what it takes to run it, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.runtime.abi.types import Signature
from weft.support.records import dataclass

if TYPE_CHECKING:
    from weft.runtime.artifact import Artifact

__all__ = ["Program", "is_for_c"]


@dataclass
class Program:
    """What an executable consists of: plain data, and what its file holds.

    `functions` are signatures (`weft.runtime.abi.types`), `sites` the places that may fail or call out, `constants`
    arrays with their dtype, `objects` object code, `target` (triple, CPU, features) and `sources` the LLVM text of
    each object. `python` names the functions that have a form for calls from Python, `threads` says whether
    there are parallel loops. `driver` is the program of an executor that is no machine code, `decisions` what was
    decided about the functions, `artifacts` what other code generators made, `kind` the kind of target that drives,
    `provenance` what it was made from and by. `names` are the public functions by the names that callers see, where
    those are others or fewer; `beside` are programs that are loaded with it, and `uses` what it calls of them: by the
    name that it calls, the program and the function's name there.
    """

    functions: list[Signature]
    sites: list[dict[str, Any]]
    constants: list[tuple[np.ndarray, str]]
    objects: list[bytes]
    target: tuple[str, str, str]
    sources: Sequence[str] = field(default_factory=list[str])
    python: list[str] = field(default_factory=list)
    threads: bool = False
    driver: dict[str, Any] | None = None
    decisions: list[dict[str, Any]] = field(default_factory=list)
    artifacts: Mapping[str, Artifact] = field(default_factory=lambda: {})
    kind: str = "llvm"
    provenance: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] | None = None
    beside: list[Program] = field(default_factory=list)
    uses: dict[str, tuple[Program, str]] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """What is kept of a program beside its code and its arrays, as JSON-like data."""
        return {
            "python": self.python,
            "threads": self.threads,
            "driver": self.driver,
            "decisions": self.decisions,
            "kind": self.kind,
            "provenance": self.provenance,
        }

    def seen(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """What callers see of something that the program has by the names of its public functions."""
        if self.names is None:
            return dict(own)
        return {name: own[inner] for name, inner in self.names.items() if inner in own}


def is_for_c(program: Program) -> bool:
    """Whether a program has a library for C to link."""
    return any(item.kind == "object" and item.loader == "cc" for item in program.artifacts.values())
