"""LowerToEntry: a graph function in explicit-memory form becomes one tensor-level function.

    @T.prim_func
    def main(x, ..., constant0, ..., output0, ...):
        arena = T.alloc_buffer((bytes,), "uint8")                     all memory that lives within a call
        t = T.decl_buffer(shape, dtype, data=T.address_of(arena[offset]))
        T.evaluate(cls.kernel(T.address_of(x[0]), T.address_of(t[0])))

Constants are parameters; the attribute `constants` of the module holds them. Functions must be straight-line, of sizes
that are known or bounded (attribute `tir_var_upper_bound`). Code generation has the program behind it
(`weft.codegen.host.entry`), from which the executors `graph` and `aot` are written.

Errors: TargetError W741 a construct that cannot stand in such a function, W745 a size neither known nor bounded.
"""

from __future__ import annotations

from typing import ClassVar

from weft.ir.attrs import CONSTANTS
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.support.providers import provider
from weft.support.records import dataclass
from weft.transform.infra.base import Pass

__all__ = ["LowerToEntry"]


@dataclass(frozen=True)
class LowerToEntry(Pass):
    """Replace the graph functions by one tensor-level function; its constants stand in the attribute `constants`.

    `function` is the graph function to lower. Raises: PassError W510 when there is none; TargetError W741 and W745.
    """

    text_name: ClassVar[str] = "lower-to-entry"
    keeps_meaning: ClassVar[bool] = False
    function: str = "main"

    def run(self, module: IRModule) -> IRModule:
        """Lower the function; kernels stay, other graph functions go."""
        if not isinstance(module[self.function], Function):
            return module  # a tensor-level function already
        new, constants = provider("entry")(module, self.function)
        return new.with_attr(CONSTANTS, constants) if constants else new
