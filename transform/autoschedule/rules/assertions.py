"""Assertions about every element of a tensor: looked at as a reduction first, which vectors can do.

    for i: assert c(i), message

    bad = 0; for i: bad = bad | (0 if c(i) else 1)
    if bad: for i: assert c(i), message                 says which one, as before

An assertion ends the kernel at the first element that fails, so that the next one cannot be looked at before: one
element at a time. What a condition reads is read anyway where all of them hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import substitute, walk
from weft.ir.kernel.nests import perfect_nest
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import is_pure_value
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site
from weft.transform.autoschedule.rules.loops import nested
from weft.transform.infra.decisions import Decision

__all__ = ["AssertionRule"]

_SAFE = frozenset({"add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "gt", "ge", "and", "or"})
"""What is defined for all operands."""


class AssertionRule(Rule):
    """Assertions about every element: one question about all of them, the assertions where the answer is no."""

    name = "assertion"
    order = 205

    def applies(self, site: Site, machine: MachineModel, knobs: Knobs) -> bool:
        """A nest around an assertion is no nest around a store."""
        return site.nest is None

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """Where nothing but one assertion stands in the loops, and what it asks may be asked of every element."""
        if site.once(_condition, site.stmt) is None:
            return None
        return Decision(site.name, self.name, {}, "vectors can ask about all elements at once")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The reduction, then the loops where an element fails."""
        found = site.once(_condition, site.stmt)
        assert found is not None
        loops, condition = found
        fresh = {loop.loop_var: PrimVar(loop.loop_var.name, loop.loop_var.dtype) for loop in loops}
        bad, zero = Buffer("bad", (1,), "int32"), as_expr(0, "int64")
        kept = BufferLoad(bad, (zero,))
        fails = Select(substitute(condition, fresh), const(0, "int32"), const(1, "int32"))
        look = BufferStore(bad, binary("bitwise_or", kept, fails), (zero,))
        extents = [(fresh[loop.loop_var], loop.extent) for loop in loops]
        return SeqStmt(
            (
                AllocBuffer(bad),
                BufferStore(bad, const(0, "int32"), (zero,)),
                nested(extents, look),
                IfThenElse(binary("ne", kept, const(0, "int32")), site.stmt),
            )
        )


def _condition(stmt: For) -> tuple[Sequence[For], PrimExpr] | None:
    """The serial loops from 0 around nothing but an assertion, and its condition in terms of their variables."""
    loops, inner = perfect_nest(stmt)
    names: dict[PrimVar, PrimExpr] = {}
    if isinstance(inner, Block):
        if inner.init is not None or inner.predicate is not None or inner.alloc_buffers or inner.match_buffers:
            return None
        names = {item.var: item.value for item in inner.iter_vars if item.value is not None}
        inner = inner.body
    plain = all(loop.kind == "serial" and loop.start == 0 and loop.step is None for loop in loops)
    if not isinstance(inner, AssertStmt) or not plain or not _may_be_asked(inner.condition):
        return None
    return loops, substitute(inner.condition, names)


def _may_be_asked(condition: PrimExpr) -> bool:
    """Whether a condition is defined wherever the loops go, whatever came before."""
    return is_pure_value(condition) and all(x.kind in _SAFE for x in walk(condition) if isinstance(x, Binary))
