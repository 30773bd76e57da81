"""Assertions about every element of a tensor: looked at as a reduction first, which vectors can do.

    for i: assert c(i), message

    bad = 0; for i: bad = bad | (0 if c(i) else 1)
    if bad: for i: assert c(i), message                 says which one, as before

An assertion ends the kernel at the first element that fails, so that the next one cannot be looked at before: one
element at a time. What a condition reads is read anyway where all of them hold.

Where the nest that follows reads the same elements once each, as a gather does that chooses every element by an index
of its own, the assertion moves in there, so that memory gives them once:

    for i: assert c(index[i]), message              for i: assert c(index[i]), message; y[i] = x[index[i]]
    for i: y[i] = x[index[i]]

What has been written until an assertion fails is part of a result that nobody gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.ir import Node, rewrite, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Binary,
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
from weft.transform.analysis.access_pattern import is_pure_value, same_extents, statements_of
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts
from weft.transform.analysis.loops.plain_loops import plain_loops
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import Rule, Site, Taken
from weft.transform.autoschedule.rules.gather.rule import taken_checks
from weft.transform.autoschedule.rules.loops import INDEX, nested
from weft.transform.autoschedule.rules.strides import loads_in, same_place, uses
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
        if site.once(_condition, site.stmt) is None or _goes_along(site, machine, knobs):
            return None
        if site.once(_with_reader, site) is not None:
            return Decision(site.name, self.name, {"form": "inside"}, "the nest that follows reads the same elements")
        return Decision(site.name, self.name, {"form": "before"}, "vectors can ask about all elements at once")

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """The reduction, then the loops where an element fails."""
        inside = site.once(_with_reader, site)
        if inside is not None:
            return inside
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

    def takes(self, site: Site, decision: Decision) -> Taken:
        """The nest that the assertion moves into."""
        return Taken(nests=int(site.once(_with_reader, site) is not None))


def _goes_along(site: Site, machine: MachineModel, knobs: Knobs) -> bool:
    """Whether the gather that follows takes the assertion along."""
    for position, stmt in enumerate(site.stmts[site.position + 1 :], site.position + 1):
        if isinstance(stmt, For) and _asserted(stmt) is None:
            reader = replace(site, stmt=stmt, position=position, _known={})
            return site.stmt in taken_checks(reader, machine, knobs)
        if not isinstance(stmt, (For, AllocBuffer)):
            return False
    return False


def _with_reader(site: Site) -> For | None:
    """The nest that follows with the assertion in it, where each of its elements reads what the assertion reads."""
    own, following = _asserted(site.stmt), next(iter(site.following), None)
    other = plain_loops(following) if isinstance(following, For) else None
    if own is None or other is None:
        return None
    loops, part = own
    others, inner = other
    *more, store = statements_of(inner)
    if not isinstance(store, BufferStore) or not all(isinstance(x, AssertStmt) for x in more):
        return None
    if len(loops) != len(others) or not same_extents([x.extent for x in loops], [x.extent for x in others]):
        return None
    part = substitute(part, {old.loop_var: new.loop_var for old, new in zip(loops, others, strict=True)})
    asked, places = loads_in(part.condition), [x for load in loads_in(store.value) for x in load.indices]
    read = [load for place in places for load in loads_in(place)]
    used_once = all(any(uses(load, loop.loop_var) for load in asked) for loop in others)
    apart = all(load.buffer is not store.buffer for load in (*asked, *loads_in(store.value)))
    if not asked or not used_once or not apart or not all(any(same_place(a, b) for b in read) for a in asked):
        return None
    body = SeqStmt((part, *(_unclamped(x, part.condition) for x in (*more, store))))
    made = nested([(loop.loop_var, loop.extent) for loop in others], body)
    return made if isinstance(made, For) else None


def _unclamped(stmt: Stmt, condition: PrimExpr) -> Stmt:
    """A statement in which what the condition limits anyway is not made to fit."""
    known = IndexAnalyzer()
    facts = known.assume(condition, Facts())

    def simpler(node: Node) -> Node | None:
        if not isinstance(node, Binary) or node.kind not in ("min", "max") or node.dtype != INDEX:
            return None
        a, b = known.dim(node.a, facts), known.dim(node.b, facts)
        less, more = (node.a, node.b) if node.kind == "min" else (node.b, node.a)
        return less if known.proves(b - a, facts) else more if known.proves(a - b, facts) else None

    return rewrite(stmt, post=simpler)


def _condition(stmt: For) -> tuple[Sequence[For], PrimExpr] | None:
    """The serial loops from 0 around nothing but an assertion, and its condition in terms of their variables."""
    found = _asserted(stmt)
    return None if found is None else (found[0], found[1].condition)


def _asserted(stmt: For) -> tuple[Sequence[For], AssertStmt] | None:
    found = plain_loops(stmt)
    if found is None or not isinstance(found[1], AssertStmt) or not _may_be_asked(found[1].condition):
        return None
    return found[0], found[1]


def _may_be_asked(condition: PrimExpr) -> bool:
    """Whether a condition is defined wherever the loops go, whatever came before."""
    return is_pure_value(condition) and all(x.kind in _SAFE for x in walk(condition) if isinstance(x, Binary))
