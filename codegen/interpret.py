"""The reference interpreter with the functions registered by `weft.register_func` in reach."""

from __future__ import annotations

from weft.codegen.compiled import holds_program, load_module
from weft.codegen.foreign import member_functions
from weft.ir.interpret import entry as reference
from weft.ir.module import BaseFunc, IRModule
from weft.runtime.registry import find_func

__all__ = ["interpret"]


def interpret(module: IRModule | BaseFunc, *, trace: bool = False, trust: bool = False) -> reference.Interpreter:
    """The functions of a module as callables on NumPy arrays, by name; callable itself when there is one, or `main`.

    Declarations of a compiled module run its machine code, which the caller has to `trust` (ArtifactError W830).
    With `trace` a graph function returns its result and a list of (binding name, value). Raises ArgumentError for wrong
    arguments, ShapeError where a shape claim fails, BoundsError for accesses out of range, reads of what was never
    written and outputs that are not wholly written.
    """
    members = member_functions(module) if isinstance(module, IRModule) else {}
    if isinstance(module, IRModule) and holds_program(module):
        compiled = load_module(module, trust=trust).functions
        members = {**members, **{name: compiled[name] for name in module if name in compiled}}
    return reference.interpret(module, functions=lambda name: members.get(name) or find_func(name), trace=trace)
