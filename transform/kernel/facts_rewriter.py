"""Rewriting a kernel with what is known at each place of it.

    class Decide(FactsRewriter):
        def value(self, value, facts): ...      each expression, its parts first, under the facts that hold there

Facts come from parameters, the ranges of loops, bindings, conditions around and before the place, assertions and
assumptions (`weft.transform.analysis.index_analyzer`). An arm that is evaluated only where a condition holds knows it:
`T.if_then_else`, `and`, `or`; both arms of a `T.Select` are evaluated, and know nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.ir import Node, replace, rewrite
from weft.ir.tensor import (
    LOGICAL,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferStore,
    Evaluate,
    Extent,
    For,
    IfThenElse,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    While,
)
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts, negated
from weft.transform.kernel.bounds.loops import reduction_loops
from weft.transform.kernel.bounds.values import enter_iteration, parameter_facts
from weft.transform.kernel.bounds.what_follows import facts_after

__all__ = ["FactsRewriter"]


class FactsRewriter:
    """The base of passes that decide by what is known; a subclass says what becomes of values and of statements."""

    def __init__(self, function: PrimFunc) -> None:
        self.function = function
        self.known = IndexAnalyzer()
        self._chain: tuple[PrimVar, ...] = ()  # the loops of the perfect nest that ends here

    def rewritten(self) -> PrimFunc:
        """The function; the same object when nothing changed."""
        facts = parameter_facts(self.function, self.known)
        return replace(self.function, body=self.statement(self.function.body, facts))

    # What subclasses say ----------------------------------------------------------------------------------------------

    def value(self, value: PrimExpr, facts: Facts) -> PrimExpr:
        """What stands in place of an expression whose parts are done."""
        return value

    def goes_together(self, value: PrimExpr) -> bool:
        """Whether an expression is done at once with its parts of the same kind; only the rest is done before."""
        return False

    def done(self, stmt: Stmt, facts: Facts) -> Stmt:
        """What stands in place of a statement whose parts are done; the facts hold before it."""
        return stmt

    # Expressions ------------------------------------------------------------------------------------------------------

    def expression(self, root: PrimExpr, facts: Facts) -> PrimExpr:
        """An expression with every part of it under what holds where it is evaluated."""

        def lazy(node: Node) -> Node | None:
            if isinstance(node, Buffer):
                return node
            if isinstance(node, PrimExpr) and self.goes_together(node):
                return self.value(self._with_parts(node, facts), facts)
            if isinstance(node, PrimCall) and node.op == "if_then_else":
                return self.value(self._choice(node, facts), facts)
            if isinstance(node, Binary) and node.kind in LOGICAL and dtypes.lanes(node.dtype) == 1:
                left = self.expression(node.a, facts)
                test = self.known.closed(left if node.kind == "and" else negated(left))
                right = self.expression(node.b, self.known.assume(test, facts))
                return self.value(replace(node, a=left, b=right), facts)
            if isinstance(node, Let):
                value = self.expression(node.value, facts)
                self.known.lets[node.var] = value
                return self.value(replace(node, value=value, body=self.expression(node.body, facts)), facts)
            return None

        return rewrite(root, lambda node: self.value(node, facts) if isinstance(node, PrimExpr) else None, pre=lazy)

    def _with_parts(self, root: PrimExpr, facts: Facts) -> PrimExpr:
        """An expression with the parts done that do not go together with it."""

        def part(node: Node) -> Node | None:
            together = node is root or (isinstance(node, PrimExpr) and self.goes_together(node))
            return None if together else self.expression(node, facts)  # type: ignore[arg-type]

        return rewrite(root, pre=part)

    def _choice(self, node: PrimCall, facts: Facts) -> PrimCall:
        condition, *arms = (arg for arg in node.args if isinstance(arg, PrimExpr))
        new = [self.expression(condition, facts)]
        for arm, test in zip(arms, (condition, negated(condition)), strict=True):
            new.append(self.expression(arm, self.known.assume(self.known.closed(test), facts)))
        same = all(a is b for a, b in zip(new, node.args, strict=True))
        return node if same else replace(node, args=tuple(new))

    def _extent(self, extent: Extent | None, facts: Facts) -> Any:
        return self.expression(extent, facts) if isinstance(extent, PrimExpr) else extent

    def _each(self, values: tuple[PrimExpr, ...], facts: Facts) -> tuple[PrimExpr, ...]:
        new = tuple(self.expression(value, facts) for value in values)
        return values if all(a is b for a, b in zip(new, values, strict=True)) else new

    # Statements -------------------------------------------------------------------------------------------------------

    def statement(self, stmt: Stmt, facts: Facts) -> Stmt:
        """A statement with every part of it under what holds there."""
        chain, self._chain = self._chain, ()
        if isinstance(stmt, (For, Block)):
            self._chain = chain
        method = _STATEMENTS.get(type(stmt))
        return self.done(stmt if method is None else method(self, stmt, facts), facts)

    def _sequence(self, stmt: SeqStmt, facts: Facts) -> Stmt:
        out: list[Stmt] = []
        for part in stmt.stmts:
            new = self.statement(part, facts)
            out.append(new)
            for item in new.stmts if isinstance(new, SeqStmt) else (new,):
                facts = facts_after(self.known, item, facts)
        same = all(a is b for a, b in zip(out, stmt.stmts, strict=True))
        return stmt if same else replace(stmt, stmts=tuple(out))

    def _store(self, stmt: BufferStore, facts: Facts) -> Stmt:
        value, indices = self.expression(stmt.value, facts), self._each(stmt.indices, facts)
        return replace(stmt, value=value, indices=indices, predicate=self._extent(stmt.predicate, facts))

    def _leaf(self, stmt: AssertStmt | Bind | Evaluate | Return, facts: Facts) -> Stmt:
        name = "condition" if isinstance(stmt, AssertStmt) else "value"
        value = getattr(stmt, name)
        return replace(stmt, **{name: self.expression(value, facts)}) if isinstance(value, PrimExpr) else stmt

    def _for(self, stmt: For, facts: Facts) -> Stmt:
        chain = self._chain
        start, extent = self._extent(stmt.start, facts), self._extent(stmt.extent, facts)
        first, count = self.known.dim(start, facts), self.known.dim(extent, facts)
        inside = self.known.range(stmt.loop_var, first, count, facts).after_write()
        self._chain = (*chain, stmt.loop_var)
        body = self.statement(stmt.body, inside)
        return replace(stmt, start=start, extent=extent, step=self._extent(stmt.step, facts), body=body)

    def _while(self, stmt: While, facts: Facts) -> Stmt:
        facts = facts.after_write()
        condition = self.expression(stmt.condition, facts)
        return replace(stmt, condition=condition, body=self.statement(stmt.body, self.known.assume(condition, facts)))

    def _if(self, stmt: IfThenElse, facts: Facts) -> Stmt:
        condition = self.expression(stmt.condition, facts)
        then_body = self.statement(stmt.then_body, self.known.assume(condition, facts))
        other = stmt.else_body
        if other is not None:
            other = self.statement(other, self.known.assume(negated(condition), facts))
        return replace(stmt, condition=condition, then_body=then_body, else_body=other)

    def _attribute(self, stmt: AttrStmt, facts: Facts) -> Stmt:
        value, item = stmt.value, stmt.node
        if isinstance(item, IterVar) and item.var not in self.known.values and isinstance(value, (int, PrimExpr)):
            inside = self.known.range(item.var, 0, self.known.dim(value, facts), facts).after_write()
            return replace(stmt, body=self.statement(stmt.body, inside))
        return replace(stmt, body=self.statement(stmt.body, facts))

    def _block(self, stmt: Block, facts: Facts) -> Stmt:
        """A block; its init runs once even where a loop of the reduction is empty, so those loops prove nothing of it.

        What the block states of its accesses, and the regions that buffers stand for, are left as they are.
        """
        always = reduction_loops(stmt, self._chain)
        self._chain = ()
        items = []
        for item in stmt.iter_vars:
            items.append(replace(item, value=self._extent(item.value, facts)))
        for item in items:
            facts = enter_iteration(self.known, item, facts)
        predicate = self._extent(stmt.predicate, facts)
        inside = facts if predicate is None else self.known.assume(predicate, facts)
        init = None if stmt.init is None else self.statement(stmt.init, inside.without_owners(set(always)))
        after = inside if init is None else inside.after_write()
        body = self.statement(stmt.body, after)
        same = all(a is b for a, b in zip(items, stmt.iter_vars, strict=True))
        kept = stmt.iter_vars if same else tuple(items)
        return replace(stmt, iter_vars=kept, predicate=predicate, init=init, body=body)


_STATEMENTS: dict[type, Callable[[FactsRewriter, Any, Facts], Stmt]] = {
    SeqStmt: FactsRewriter._sequence,
    BufferStore: FactsRewriter._store,
    For: FactsRewriter._for,
    While: FactsRewriter._while,
    IfThenElse: FactsRewriter._if,
    Block: FactsRewriter._block,
    Bind: FactsRewriter._leaf,
    AssertStmt: FactsRewriter._leaf,
    AttrStmt: FactsRewriter._attribute,
    Evaluate: FactsRewriter._leaf,
    Return: FactsRewriter._leaf,
}
