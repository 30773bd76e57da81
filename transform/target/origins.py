"""MarkOrigins: public functions carry the hash of how they were written, for parts that lower functions themselves.

A lowering hook runs when kernels are scheduled and graph functions lowered. What it returns under a public name is held
against what the user wrote under that name (`is_origin_of`), not against what became of it.
"""

from __future__ import annotations

from weft.ir import BaseFunc, Function, IRModule, PrimFunc
from weft.ir.structure.structural import structural_hash
from weft.support.records import dataclass
from weft.transform.infra.base import Pass

__all__ = ["ORIGIN", "MarkOrigins", "is_origin_of"]

ORIGIN = "origin"
"""The attribute of a function that holds the hash of how it was written."""


@dataclass(frozen=True)
class MarkOrigins(Pass):
    """Give every public function the hash of itself, unless it has one."""

    def run(self, module: IRModule) -> IRModule:
        """Mark the functions."""
        marked: dict[str, BaseFunc] = {}
        for name, function in module.items():
            if isinstance(function, (Function, PrimFunc)) and not function.private and ORIGIN not in function.attrs:
                marked[name] = function.with_attr(ORIGIN, f"{structural_hash(function):x}")
        return module.with_functions({**module.functions, **marked}) if marked else module


def is_origin_of(written: BaseFunc, function: BaseFunc) -> bool:
    """Whether a function of a module is what became of another one."""
    return getattr(function, "attrs", {}).get(ORIGIN) == f"{structural_hash(written):x}"
