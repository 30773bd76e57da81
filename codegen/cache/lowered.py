"""Lowered modules as text beside their programs, so that nothing has to hold the weights that they were made of.

Packed weights are other arrays than those of the module that was compiled. What is made of the module later, the
program for C, is made of its lowered form, whose constants are the program's. A process that finds the program on the
disk finds that form there too.

    text ::= the script of the lowered module, with constants of the program by their digest
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.graph import Constant, Function, If
from weft.ir.module import IRModule
from weft.ir.node import replace
from weft.ir.structure.array_digests import array_digests
from weft.ir.structure.visit import nodes_of, rewrite
from weft.runtime.programs.program import Program
from weft.script import parse
from weft.script.printer.module import script_unchecked

__all__ = ["lowered_module", "lowered_text", "on_constants", "stands_for"]

_MUCH = 1 << 20
"""Bytes of weights that are worth a second form of the module."""


def stands_for(lowered: IRModule, module: IRModule) -> bool:
    """Whether the lowered form is kept in the place of a module: it is one straight line, and frees many weights.

    Branches and loops are lowered in another way for C (`weft.transform.graph.control_flow_to_kernels`).
    """
    graphs = [function for function in lowered.functions.values() if isinstance(function, Function)]
    if len(graphs) != 1:
        return False
    needed = _arrays(lowered)
    freed = sum(array.nbytes for key, array in _arrays(module).items() if key not in needed)
    inner = (node for node in nodes_of(graphs[0], If, Function) if node is not graphs[0])
    return freed >= _MUCH and next(inner, None) is None


def _arrays(module: IRModule) -> dict[int, np.ndarray]:
    """The constants of graph functions, each once."""
    graphs = [function for function in module.functions.values() if isinstance(function, Function)]
    return {id(node.data): node.data for graph in graphs for node in nodes_of(graph, Constant)}


def on_constants(lowered: IRModule, program: Program) -> IRModule:
    """The module with the arrays of a program, some of which are copies at addresses that compiled code can use."""
    needed = _arrays(lowered)
    own = {id(array) for array, _ in program.constants}
    copied = [array for key, array in needed.items() if key not in own]
    names = {id(array): digest.hex() for array, digest in zip(copied, array_digests(copied), strict=True)}
    found = _named(program) if copied else {}

    def moved(node: Any) -> Any:
        array = found.get(f"sha256:{names.get(id(node.data))}") if isinstance(node, Constant) else None
        if array is None or (array.shape, array.dtype) != (node.data.shape, node.data.dtype):
            return None
        return replace(node, data=array)

    functions = {
        name: rewrite(function, post=moved) if isinstance(function, Function) else function
        for name, function in lowered.functions.items()
    }
    return lowered.with_functions(functions) if copied else lowered


def lowered_text(lowered: IRModule, program: Program) -> str:
    """The text of the module that a program was generated from; empty where that needs other constants too."""
    known = {name: b"" for name in _named(program)}  # nothing is copied
    blobs = dict(known)
    text = script_unchecked(lowered, blobs)
    return text if blobs == known else ""


def lowered_module(text: str, program: Program) -> IRModule:
    """The module of a text."""
    found = parse(text, blobs=_named(program))
    assert isinstance(found, IRModule)
    return found


def _named(program: Program) -> dict[str, np.ndarray]:
    """The constants of a program by what texts call them."""
    arrays = [array for array, _ in program.constants]
    return {f"sha256:{digest.hex()}": array for array, digest in zip(arrays, array_digests(arrays), strict=True)}
