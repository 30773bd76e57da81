"""A plug-in from outside the package: the kind `toy`, an accelerator for chains of element-wise operators.

It lowers a function to one graph function over kernels of its own and "compiles" kernels to their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weft import Artifact, IRModule, Target, target_kind
from weft.ir import Function, GlobalVar, replace
from weft.runtime.artifact import Symbol
from weft.target import Int, TargetKind, remove_target_kind
from weft.transform import LegalizeOps

__all__ = ["compile_functions", "installed", "lower", "named"]


def lower(module: IRModule, function: Function) -> tuple[IRModule, GlobalVar]:
    """A graph function that calls one kernel for each operator of the given one."""
    entry = replace(function, name="entry", private=True, attrs=function.attrs.without("target"))
    return LegalizeOps()(IRModule({"entry": entry})), GlobalVar("entry")


def compile_functions(module: IRModule, target: Target) -> list[Artifact]:
    """One program that provides every function of the module."""
    provides = tuple(Symbol(name) for name in module)
    return [
        Artifact(
            "toy-program", "toy.bin", module.script().encode(), provides=provides, provenance={"flags": ["--fast"]}
        )
    ]


def named(module: IRModule, target: Target) -> Artifact:
    """One program with the name of its kind of target."""
    provides = tuple(Symbol(name) for name in module)
    return Artifact("toy-program", f"{target.kind.name}.bin", module.script().encode(), provides=provides)


@contextmanager
def installed(name: str = "toy") -> Iterator[TargetKind]:
    """The kind, registered for a while; hooks are for the user to add."""
    kind = target_kind(name, {"lanes": Int(4, "elements per step")}, device=name, doc="a toy accelerator")
    try:
        yield kind
    finally:
        remove_target_kind(name)
