"""What is known after a statement, for the statements that follow it in a sequence."""

from __future__ import annotations

from weft.ir import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Bind,
    DeclBuffer,
    Evaluate,
    IfThenElse,
    PrimCall,
    SeqStmt,
    Stmt,
    While,
)
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts, negated
from weft.transform.kernel.bounds.jumps import always_jumps, is_loud, leaves_early
from weft.transform.kernel.bounds.values import bind

__all__ = ["facts_after"]


def facts_after(known: IndexAnalyzer, stmt: Stmt, facts: Facts) -> Facts:
    """What holds after a statement that goes on to the next one; the facts hold before it."""
    if isinstance(stmt, AssertStmt):
        return known.assume(stmt.condition, facts, exact=stmt.kind == "BoundsError")
    if isinstance(stmt, Bind):
        return bind(known, stmt.var, stmt.value, facts)
    if isinstance(stmt, (AllocBuffer, DeclBuffer)):
        return facts
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, PrimCall) and stmt.value.op == "assume":
        return known.assume(stmt.value.args[0], facts)
    if isinstance(stmt, IfThenElse):
        return _after_choice(known, stmt, facts)
    facts = facts.after_write()
    if isinstance(stmt, While) and not leaves_early(stmt.body):
        return known.assume(negated(stmt.condition), facts)
    return facts


def _after_choice(known: IndexAnalyzer, stmt: IfThenElse, facts: Facts) -> Facts:
    """What follows runs after a branch that goes on: where the other one jumps, its condition decides."""
    stops = always_jumps(stmt.then_body)
    if stops == (stmt.else_body is not None and always_jumps(stmt.else_body)):
        return facts.after_write()
    chosen = known.assume(negated(stmt.condition) if stops else stmt.condition, facts)
    written = stmt.else_body if stops else stmt.then_body
    if written is None:
        return chosen.after_write() if any(map(is_loud, walk(stmt.condition))) else chosen
    for part in written.stmts if isinstance(written, SeqStmt) else (written,):
        chosen = _after_choice(known, part, chosen) if isinstance(part, IfThenElse) else chosen.after_write()
    return chosen
