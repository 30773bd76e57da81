"""Normalize: A-normal form, with a type on every variable.

Source: Flanagan et al., The essence of compiling with continuations, 1993.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir import Function, IRModule, replace
from weft.ir.builder import normalize_function
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.rewriting import merge_blocks

__all__ = ["Normalize"]


@dataclass(frozen=True)
class Normalize(FunctionPass):
    """Bind nested calls to variables of their own and fill in the types that are missing.

    Modules that were read from a script are in this form; modules built by hand may not be.
    """

    aliases: ClassVar[tuple[str, ...]] = ("anf",)

    def run_function(self, name: str, function: Function, module: IRModule) -> Function:
        """The function in normal form; neighbouring plain blocks are joined where something changed."""
        new = normalize_function(function, module.functions)
        if new is function:
            return function
        return replace(new, body=replace(new.body, blocks=merge_blocks(new.body.blocks)))
