"""What loop primitives share: conditions for what a loop must not run, bindings in their simplest form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.ir import replace, walk
from weft.ir.kernel.prim import binary
from weft.ir.tensor import Block, For, IfThenElse, PrimExpr, SeqStmt, Stmt
from weft.transform.analysis.loops.affine import Bindings
from weft.transform.analysis.loops.points import Point, conjuncts

__all__ = ["all_of", "guarded", "nest_of_loops", "tidied"]


def all_of(conditions: Iterable[PrimExpr | None]) -> PrimExpr | None:
    """The condition that all of some hold; None when there are none."""
    result: PrimExpr | None = None
    for condition in conditions:
        if condition is not None:
            result = condition if result is None else binary("and", result, condition)
    return result


def guarded(stmt: Stmt, condition: PrimExpr) -> Stmt:
    """The statement run where a condition holds: a predicate of its blocks where only loops are around them."""
    if isinstance(stmt, Block):
        return replace(stmt, predicate=all_of((stmt.predicate, condition)))
    if isinstance(stmt, For) and _only_blocks(stmt):
        return replace(stmt, body=guarded(stmt.body, condition))
    if isinstance(stmt, SeqStmt) and _only_blocks(stmt):
        return replace(stmt, stmts=tuple(guarded(part, condition) for part in stmt.stmts))
    return IfThenElse(condition, stmt, span=stmt.span)


def _only_blocks(stmt: Stmt) -> bool:
    if isinstance(stmt, Block):
        return True
    if isinstance(stmt, For):
        return _only_blocks(stmt.body)
    return isinstance(stmt, SeqStmt) and bool(stmt.stmts) and all(map(_only_blocks, stmt.stmts))


def nest_of_loops(loops: Sequence[For], body: Stmt) -> Stmt:
    """The loops inside one another around a body."""
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def tidied(stmt: Stmt, loops: Sequence[For], point: Point) -> Stmt:
    """The statement with the bindings and predicates of its blocks in their simplest form.

    `loops` are those of the scope around the statement, `point` is outside of all of them.
    """
    if isinstance(stmt, For):
        return replace(stmt, body=tidied(stmt.body, [*loops, stmt], point))
    if isinstance(stmt, SeqStmt):
        new = tuple(tidied(part, loops, point) for part in stmt.stmts)
        return stmt if all(a is b for a, b in zip(new, stmt.stmts, strict=True)) else replace(stmt, stmts=new)
    return _tidied_block(stmt, loops, point) if isinstance(stmt, Block) else stmt


def _tidied_block(block: Block, loops: Sequence[For], point: Point) -> Block:
    bindings = Bindings.of(block, loops, point)
    reader = bindings.reader
    inner = reader.point

    def simpler(expr: PrimExpr) -> PrimExpr:
        dim = inner.dim(expr)
        value = None if dim is None else reader.read(dim)
        if dim is None or value is None:
            return expr
        new = reader.expr_of(value, expr.dtype)
        return new if _size(new) < _size(expr) else expr

    items = tuple(item if item.value is None else replace(item, value=simpler(item.value)) for item in block.iter_vars)
    kept: list[PrimExpr] = []
    for part in conjuncts(block.predicate):
        kind = getattr(part, "kind", "")
        if kind in ("lt", "le"):
            a, b = inner.dim(part.a), inner.dim(part.b)  # type: ignore[attr-defined]
            if a is not None and b is not None and (inner.below(a, b) if kind == "lt" else inner.at_most(a, b)):
                continue
            part = binary(kind, simpler(part.a), part.b)  # type: ignore[attr-defined]
        kept.append(part)
    if all(a is b for a, b in zip(items, block.iter_vars, strict=True)):
        items = block.iter_vars
    if len(kept) == len(conjuncts(block.predicate)) and items is block.iter_vars:
        return block
    return replace(block, iter_vars=items, predicate=all_of(kept))


def _size(expr: PrimExpr) -> int:
    return sum(1 for _ in walk(expr))
