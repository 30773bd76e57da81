"""LoopPartition: a loop is cut where a condition in it turns, so that most of its iterations need not ask.

    for i, j in T.grid(ceildiv(n, 4), 4):       for i, j in T.grid(n // 4, 4): y[i * 4 + j] = x[i * 4 + j]
        if i * 4 + j < n: y[...] = x[...]       for i in range(n // 4, ceildiv(n, 4)): ...

Conditions that are linear in the loop count: those of statements, of lazy choices, and the predicates of blocks. The
cut is where the condition holds for all loops further inside. A loop of constant extent is cut where
`partition_const_loop` says so, or its annotation `pragma_loop_partition_hint`; the outermost loops are cut first.

Source: Ragan-Kelley et al., Halide, 2013 (prologue, steady state and epilogue of a loop).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import ClassVar

from weft import dtypes
from weft.errors import ShapeError
from weft.ir import IRModule, Node, replace, rewrite, walk
from weft.ir.dim import Dim
from weft.ir.kernel.prim import as_expr, binary
from weft.ir.kernel.simplify import is_pure, simplify
from weft.ir.tensor import (
    COMPARISONS,
    Binary,
    Block,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts, reads_memory
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.bounds.loops import least_over
from weft.transform.kernel.facts_rewriter import FactsRewriter
from weft.transform.kernel.own_names import with_own_names
from weft.transform.kernel.scalars.normal_form import spelled
from weft.transform.kernel.scalars.stmt_simplify import simplified

__all__ = ["LoopPartition"]

HINT = "pragma_loop_partition_hint"
_KINDS = ("serial", "unrolled", "parallel")
_CUTS = 3
_LOOPS = 32


@dataclass(frozen=True)
class LoopPartition(FunctionPass):
    """Cut loops where conditions turn."""

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    partition_const_loop: bool = False

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with loops in parts; the same object when no condition turns in one."""
        old = function
        seen: set[PrimVar] = set()
        for _ in range(_LOOPS):
            new = _partitioned(function, seen, constant=self.partition_const_loop)
            if new is function:
                break
            function = new
        return old if function is old else simplified(function)


class _Survey(FactsRewriter):
    """Changes nothing, and keeps what is known before each loop."""

    def __init__(self, function: PrimFunc) -> None:
        super().__init__(function)
        self.before: dict[For, Facts] = {}

    def done(self, stmt: Stmt, facts: Facts) -> Stmt:
        if isinstance(stmt, For):
            self.before[stmt] = facts
        return stmt


@dataclass(frozen=True)
class _Cut:
    """A condition that holds for iterations before `at` (`first`), or from it on."""

    condition: PrimExpr
    at: PrimExpr
    first: bool


@dataclass(frozen=True)
class _Part:
    start: PrimExpr
    end: PrimExpr
    body: Stmt


def _partitioned(function: PrimFunc, seen: set[PrimVar], *, constant: bool) -> PrimFunc:
    """The function with the first loop that can be cut."""
    survey = _Survey(function)
    survey.rewritten()
    for loop in [part for part in walk(function.body) if isinstance(part, For)]:
        if loop.loop_var in seen or not _is_wanted(loop, constant=constant):
            continue
        seen.add(loop.loop_var)
        cuts = list(_cuts(survey.known, loop, survey.before[loop]))[:_CUTS]
        if cuts:
            parts = _assembled(loop, cuts, function)
            seen.update(part.loop_var for part in parts)
            new = SeqStmt(tuple(parts), span=loop.span)
            return rewrite(function, pre=lambda node, loop=loop, new=new: new if node is loop else None)
    return function


def _is_wanted(loop: For, *, constant: bool) -> bool:
    fixed = isinstance(loop.extent, int) and isinstance(loop.start, int)
    hinted = bool(loop.annotations.get(HINT))
    return loop.kind in _KINDS and loop.step in (None, 1) and (constant or hinted or not fixed)


def _cuts(known: IndexAnalyzer, loop: For, facts: Facts) -> Iterator[_Cut]:
    for condition, inside in _conditions(loop.body, ()):
        try:
            cut = _cut(known, loop, condition, inside, facts)
        except ShapeError:  # over the limits of dimensions
            continue
        if cut is not None:
            yield cut


def _conditions(stmt: Node, loops: tuple[For, ...]) -> Iterator[tuple[PrimExpr, tuple[For, ...]]]:
    """The comparisons that the code below asks about, with the loops inside which it does."""
    if isinstance(stmt, IfThenElse):
        yield from ((part, loops) for part in _comparisons(stmt.condition))
    elif isinstance(stmt, Block) and stmt.predicate is not None:
        yield from ((part, loops) for part in _comparisons(stmt.predicate))
    elif isinstance(stmt, PrimCall) and stmt.op == "if_then_else":
        yield from ((part, loops) for part in _comparisons(stmt.args[0]))
    if isinstance(stmt, For):
        loops = (*loops, stmt)
    for child in _below(stmt):
        yield from _conditions(child, loops)


def _below(node: Node) -> Iterator[Node]:
    for name in ("stmts", "init", "body", "then_body", "else_body", "value", "a", "b", "args"):
        part = getattr(node, name, None)
        yield from (item for item in (part if isinstance(part, tuple) else (part,)) if isinstance(item, Node))


def _comparisons(condition: object) -> Iterator[PrimExpr]:
    if isinstance(condition, Binary) and condition.kind == "and":
        yield from _comparisons(condition.a)
        yield from _comparisons(condition.b)
    elif isinstance(condition, PrimCall) and condition.op == "likely":
        yield from _comparisons(condition.args[0])
    elif isinstance(condition, Binary) and condition.kind in COMPARISONS and condition.kind not in ("eq", "ne"):
        if dtypes.is_integer(condition.a.dtype) and dtypes.lanes(condition.dtype) == 1:
            yield condition


def _cut(known: IndexAnalyzer, loop: For, condition: PrimExpr, inside: Sequence[For], facts: Facts) -> _Cut | None:
    """Where a condition turns: it holds on one side whatever the loops further inside do."""
    assert isinstance(condition, Binary)
    if reads_memory(condition) or not is_pure(condition):
        return None
    need = _need(known, condition, facts)
    for inner in reversed(inside):
        least = least_over(known, need, inner.loop_var, *_range(known, inner, facts), facts)
        if least is None:
            return None
        need = least
    var, dtype = loop.loop_var, loop.loop_var.dtype
    slope = known.replaced(need, var, known.values[var] + 1) - need
    rest = known.replaced(need, var, 0)
    if not isinstance(slope, int) or slope == 0 or var in known.variables(rest):
        return None
    if not _is_outside(known, rest, loop) or not known.is_exact(rest, facts, dtype):
        return None
    value = spelled(known, rest, dtype)
    if value is None:
        return None
    return _Cut(condition, _turn(value, slope), first=slope < 0)


def _turn(rest: PrimExpr, slope: int) -> PrimExpr:
    """The first iteration at which slope * i + rest has another sign."""
    if slope < 0:
        return binary("add", binary("floordiv", rest, -slope), 1)
    negative = binary("sub", 0, rest)
    return binary("floordiv", binary("add", negative, slope - 1), slope)


def _need(known: IndexAnalyzer, condition: Binary, facts: Facts) -> Dim:
    """What must not be negative for a comparison to hold."""
    more = known.compared(condition.b, facts) - known.compared(condition.a, facts)
    if condition.kind in ("gt", "ge"):
        more = -more
    return more - 1 if condition.kind in ("lt", "gt") else more


def _range(known: IndexAnalyzer, loop: For, facts: Facts) -> tuple[Dim, Dim]:
    return known.dim(loop.start, facts), known.dim(loop.extent, facts)


def _is_outside(known: IndexAnalyzer, dim: Dim, loop: For) -> bool:
    """Whether a dimension uses nothing that the loop's body binds."""
    used = known.variables(dim)
    return not any(part in used for part in _bound(loop))


def _bound(loop: For) -> Iterator[PrimVar]:
    for part in walk(loop):
        if isinstance(part, For):
            yield part.loop_var
        elif isinstance(part, Block):
            yield from (item.var for item in part.iter_vars)
        var = getattr(part, "var", None)
        if isinstance(var, PrimVar):
            yield var


def _assembled(loop: For, cuts: Sequence[_Cut], function: PrimFunc) -> list[For]:
    """The loops that a loop falls into, in order."""
    dtype = loop.loop_var.dtype
    start = as_expr(loop.start, dtype)
    whole = _Part(start, simplify(binary("add", start, as_expr(loop.extent, dtype))), loop.body)
    parts = [_loop(loop, part, function) for part in _parts(whole, cuts)]
    return [part for part in parts if not (isinstance(part.extent, int) and part.extent <= 0)]


def _parts(part: _Part, cuts: Sequence[_Cut]) -> Iterator[_Part]:
    if not cuts:
        yield part
        return
    cut, rest = cuts[0], cuts[1:]
    at = simplify(binary("min", binary("max", cut.at, part.start), part.end))
    sides = [dataclasses.replace(part, end=at), dataclasses.replace(part, start=at)]
    which = 0 if cut.first else 1
    sides[which] = dataclasses.replace(sides[which], body=_granted(part.body, cut.condition))
    for side in sides:
        yield from _parts(side, rest)


def _granted(body: Stmt, condition: PrimExpr) -> Stmt:
    return rewrite(body, pre=lambda node: IntImm(1, "bool") if node is condition else None)


def _loop(loop: For, part: _Part, function: PrimFunc) -> For:
    extent: Extent = simplify(binary("sub", part.end, part.start))
    new = with_own_names(replace(loop, start=part.start, extent=extent, body=part.body), function)
    assert isinstance(new, For)
    return new
