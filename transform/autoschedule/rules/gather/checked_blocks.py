"""Gathers of short rows with the assertions about their indices: blocks of rows, checked just before they are read.

    for i: assert -n <= index[i] < n
    for i, j: y[i, j] = x[index[i] < 0 ? index[i] + n : index[i], j]

    for b: bad = 0; for i in block b: bad = bad | (0 if 0 <= index[i] < n else 1)
           if not bad: for i in block b, j: y[i, j] = x[index[i], j]
           else:       for i in block b: assert ...; for i in block b, j: as before

Memory gives the indices once, and what chooses between them and others (those that count from the end) is asked of a
whole block: where no index of it needs the choice, as is usual, its rows are read without. What has been written until
an assertion fails is part of a result that nobody gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from weft.ir import Node, rewrite, substitute, walk
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.structure.structural import structural_equal
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import Nest, is_pure_value, same_extents
from weft.transform.analysis.loops.plain_loops import plain_loops
from weft.transform.autoschedule.rules.loops import INDEX, minus, nested, plus, sequence

__all__ = ["Checked", "checks_before", "without_choices"]


@dataclass(frozen=True)
class Checked:
    """Assertions about the indices of rows: the statements, and each condition in terms of the rows of the nest."""

    stmts: tuple[Stmt, ...]
    asserts: tuple[AssertStmt, ...]
    rows: tuple[PrimVar, ...]
    extents: tuple[Extent, ...]

    def block_of(self, rows: int) -> int:
        """How many iterations of the outermost loop have so many rows; 0 where that is not known, or all there are."""
        first, *others = self.extents
        inner = [extent for extent in others if isinstance(extent, int)]
        if len(inner) < len(others):
            return 0
        size = max(1, rows // max(1, math.prod(inner)))
        return 0 if isinstance(first, int) and first <= size else size

    def blocks(self, size: int, choices: Sequence[PrimExpr], fast: Stmt, slow: Stmt) -> Stmt:
        """Blocks of `size` iterations of the outermost loop: `fast` where none of the choices is taken, or `slow`.

        Both are the loops over all rows.
        """
        first, *others = self.extents
        block = PrimVar("block", INDEX)
        start = binary("mul", block, const(size, INDEX))
        whole = isinstance(first, int) and first % size == 0
        count: Extent = size if whole else binary("min", const(size, INDEX), as_expr(minus(first, start), INDEX))
        bad, zero = Buffer("bad", (1,), "int32"), as_expr(0, INDEX)
        kept = BufferLoad(bad, (zero,))

        def each(body: Callable[[Mapping[PrimVar, PrimExpr]], Stmt]) -> Stmt:
            loops = [PrimVar(row.name.removeprefix("v"), INDEX) for row in self.rows]
            at = {
                row: plus(start, var) if row is self.rows[0] else var for row, var in zip(self.rows, loops, strict=True)
            }
            return nested(list(zip(loops, (count, *others), strict=True)), body(at))

        def look(at: Mapping[PrimVar, PrimExpr]) -> Stmt:
            value: PrimExpr = kept
            for part in self.asserts:
                value = binary("bitwise_or", value, Select(substitute(part.condition, at), _GOOD, _BAD))
            for choice in choices:
                value = binary("bitwise_or", value, Select(substitute(choice, at), _BAD, _GOOD))
            return BufferStore(bad, value, (zero,))

        steps = [each(lambda at, part=part: substitute(part, at)) for part in self.asserts]
        choose = IfThenElse(
            binary("eq", kept, _GOOD),
            _from(fast, start, count),
            sequence([*steps, _from(slow, start, count)]),
        )
        clear = BufferStore(bad, _GOOD, (zero,))
        number = (
            -(-first // size)
            if isinstance(first, int)
            else binary("floordiv", plus(first, size - 1), const(size, INDEX))
        )
        return For(block, 0, number, SeqStmt((AllocBuffer(bad), clear, each(look), choose)))


_GOOD, _BAD = const(0, "int32"), const(1, "int32")


def _from(loops: Stmt, start: PrimExpr, count: Extent) -> Stmt:
    """Some iterations of the outermost loop."""
    assert isinstance(loops, For)
    var = PrimVar(loops.loop_var.name, INDEX)
    return For(var, 0, count, substitute(loops.body, {loops.loop_var: plus(start, var)}))


def checks_before(stmts: Sequence[Stmt], nest: Nest) -> Checked | None:
    """The assertions right before a nest about each of its rows; None where there are none."""
    *rows, _ = nest.spatial
    found: list[tuple[Stmt, AssertStmt]] = []
    used: tuple[PrimVar, ...] = ()
    for stmt in reversed([stmt for stmt in stmts if not isinstance(stmt, AllocBuffer)]):
        loops, part = plain_loops(stmt) or ((), stmt)
        extents = [loop.extent for loop in loops]
        if not loops or not isinstance(part, AssertStmt) or not is_pure_value(part.condition):
            break
        if len(loops) > len(rows) or not same_extents(extents, [nest.extents[row] for row in rows[: len(loops)]]):
            break
        if any(isinstance(x, BufferLoad) and x.buffer is nest.store.buffer for x in walk(part.condition)):
            break
        if used and len(used) != len(loops):
            break
        used = tuple(rows[: len(loops)])
        names = {loop.loop_var: row for loop, row in zip(loops, used, strict=True)}
        found.insert(0, (stmt, substitute(part, names)))
    if not found:
        return None
    stmts, asserts = zip(*found, strict=True)
    return Checked(tuple(stmts), tuple(asserts), used, tuple(nest.extents[row] for row in used))


def without_choices(nest: Nest, rows: Sequence[PrimVar]) -> tuple[PrimExpr, list[PrimExpr]]:
    """The value of a nest with the places that no choice changes, and the conditions of the choices of each row."""
    choices: list[PrimExpr] = []

    def chosen(node: Node) -> Node | None:
        if not isinstance(node, Select) or not is_pure_value(node.condition):
            return None
        parts = list(walk(node.condition))
        if any(part in nest.extents and part not in rows for part in parts if isinstance(part, PrimVar)):
            return None
        if any(part is nest.store.buffer for part in parts):
            return None
        if not any(structural_equal(node.condition, other) for other in choices):
            choices.append(node.condition)
        return node.false_value

    def plain(node: Node) -> Node | None:
        if not isinstance(node, BufferLoad):
            return None
        indices = tuple(rewrite(index, chosen) for index in node.indices)
        same = all(new is old for new, old in zip(indices, node.indices, strict=True))
        return None if same else BufferLoad(node.buffer, indices, span=node.span)

    return rewrite(nest.store.value, plain), choices
