"""The reference interpreter with the functions registered by `weft.register_func` in reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.codegen.foreign import member_functions
from weft.errors import ArtifactError
from weft.ir.attrs import ARTIFACTS
from weft.ir.graph import ExternFunc
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.malformed import explained_by
from weft.ir.verify import fault_of
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.loaded import LoadedModule
from weft.runtime.loading import COMPILED, loadable
from weft.runtime.registry import find_func

if TYPE_CHECKING:
    from weft.ir.interpret.entry import Interpreter

__all__ = ["interpret"]


@explained_by(fault_of)
def interpret(module: IRModule | BaseFunc, *, trace: bool = False, trust: bool = False) -> Interpreter:
    """The functions of a module as callables on NumPy arrays, by name; callable itself when there is one, or `main`.

    Declarations of a compiled module, and symbols that its artifacts provide, run their machine code, which the caller
    has to `trust` (ArtifactError W830).
    With `trace` a graph function returns its result and a list of (binding name, value). Raises ArgumentError for wrong
    arguments, ShapeError where a shape claim fails, BoundsError for accesses out of range, reads of what was never
    written and outputs that are not wholly written.
    """
    # Who compiles programs loads no interpreter.
    from weft.codegen.compiled import holds_program, load_module
    from weft.ir.interpret import entry as reference

    if not isinstance(module, IRModule):
        return reference.interpret(module, functions=find_func, trace=trace)
    members = member_functions(module)
    if holds_program(module):
        compiled = load_module(module, trust=trust).functions
        members = {**members, **{name: compiled[name] for name in module if name in compiled}}
    carried = _carried(module, trust)

    def functions(name: str) -> Any:
        return members.get(name) or find_func(name) or carried(name)

    return reference.interpret(module, functions=functions, trace=trace)


def _carried(module: IRModule, trust: bool) -> Callable[[str], Any]:
    """What finds the functions that artifacts of a module provide, where they can be loaded and are trusted.

    Raises (when asked for one that is there): ArtifactError W830 that names an artifact which nobody trusts, W819 one
    that this process cannot load.
    """
    artifacts = module.attrs.get(ARTIFACTS)
    if not isinstance(artifacts, ArtifactSet):
        return lambda name: None
    declared = {name for name, function in module.items() if isinstance(function, ExternFunc)}
    loaded: dict[str, Any] = {}

    def find(name: str) -> Any:
        makers = [item for item in artifacts.values() if any(symbol.name == name for symbol in item.provides)]
        if not makers and name not in declared:
            return None
        foreign = [] if trust else [item for item in makers or artifacts.values() if not _is_loaded(item)]
        if foreign:
            raise ArtifactError(
                f"{name!r} is done by the artifact {foreign[0].name!r}, which is not run unless it is trusted",
                code="W830",
                hint="if you trust it: weft.interpret(module, trust=True)",
            )
        if not loaded:
            loaded.update(loadable(item for item in artifacts.values() if trust or _is_loaded(item)))
        if name not in loaded:
            code = [item.name for item in makers or artifacts.values() if item.kind in COMPILED]
            what = ", ".join(code[:4])
            raise ArtifactError(
                f"{name!r} is declared, and what it was compiled to does not run in this process: {what}",
                code="W819",
                hint="export the artifacts, and build them for the machine that they are for",
            )
        return loaded[name]

    return find


def _is_loaded(artifact: Artifact) -> bool:
    """Whether the caller has loaded an artifact already."""
    return isinstance(artifact.memory, LoadedModule)
