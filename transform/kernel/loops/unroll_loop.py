"""UnrollLoop: loops of a few iterations as statements one after another.

    for i in T.unroll(2): y[i] = x[i]       y[0] = x[0]; y[1] = x[1]

Loops that are declared unrolled are, and so are serial ones without loops inside, of at most `auto_max_extent`
iterations or where at most `auto_max_step` stores and calls come of it: from the inside out, up to `auto_max_depth`
loops. With `explicit_unroll` off, and where a jump leaves the loop, it is declared unrolled and left to the code
generator.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from weft.ir import IRModule, replace, substitute
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.visit import map_statements, statements
from weft.ir.tensor import (
    Block,
    Break,
    BufferStore,
    Continue,
    Evaluate,
    For,
    PrimFunc,
    SeqStmt,
    Stmt,
    While,
)
from weft.support.records import dataclass
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.options import AtLeast
from weft.transform.kernel.own_names import with_own_names

__all__ = ["UnrollLoop"]


@dataclass(frozen=True)
class UnrollLoop(FunctionPass):
    """Write out the iterations of short loops."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    auto_max_step: Annotated[int, AtLeast(0)] = 0
    auto_max_depth: Annotated[int, AtLeast(0)] = 8
    auto_max_extent: Annotated[int, AtLeast(0)] = 0
    explicit_unroll: bool = True

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with fewer loops; the same object when none is to be unrolled."""
        return replace(function, body=_Unroller(self, function).statement(function.body))


class _Unroller:
    def __init__(self, limits: UnrollLoop, function: PrimFunc) -> None:
        self.limits = limits
        self.function = function
        self.depth = 0  # serial loops unrolled right inside of the present one

    def statement(self, stmt: Stmt) -> Stmt:
        """A statement with the loops in it unrolled, the innermost first."""
        if isinstance(stmt, For):
            self.depth = 0
            body = self.statement(stmt.body)
            return self._loop(replace(stmt, body=body))
        if isinstance(stmt, Block):  # not its init
            return replace(stmt, body=self.statement(stmt.body))
        return map_statements(stmt, self.statement)

    def _loop(self, loop: For) -> Stmt:
        if not isinstance(loop.extent, int) or loop.step not in (None, 1) or not self._is_wanted(loop):
            return loop
        if not self.limits.explicit_unroll or _ends_early(loop.body):
            return replace(loop, kind="unrolled")
        dtype = loop.loop_var.dtype
        values = [simplify(binary("add", as_expr(loop.start, dtype), as_expr(i, dtype))) for i in range(loop.extent)]
        copies = [substitute(loop.body, {loop.loop_var: value}) for value in values]
        own = [copy if i == 0 else with_own_names(copy, self.function) for i, copy in enumerate(copies)]
        return SeqStmt(tuple(own), span=loop.span) if len(own) != 1 else own[0]

    def _is_wanted(self, loop: For) -> bool:
        if loop.kind == "unrolled":
            return True
        if loop.kind != "serial" or loop.annotations or not isinstance(loop.extent, int):
            return False
        if any(isinstance(part, For) for part in statements(loop.body)) or self.depth >= self.limits.auto_max_depth:
            return False
        steps = sum(isinstance(part, (BufferStore, Evaluate)) for part in statements(loop.body)) * loop.extent
        wanted = loop.extent <= self.limits.auto_max_extent or 0 < steps <= self.limits.auto_max_step
        self.depth += wanted
        return wanted


def _ends_early(body: Stmt) -> bool:
    """Whether a jump in a loop's body leaves that loop, or goes to its next iteration."""
    if isinstance(body, (Break, Continue)):
        return True
    if isinstance(body, (For, While)):
        return False
    inner = (getattr(body, name, None) for name in ("body", "then_body", "else_body", "init"))
    return any(_ends_early(part) for part in (*inner, *getattr(body, "stmts", ())) if isinstance(part, Stmt))
