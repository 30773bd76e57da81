"""Driver: the statements of a kernel, each loop nest given to the first rule of the registry that decides about it.

    for each nest of a sequence:  decide -> settle (pins, replacements) -> apply -> record

A rule may take statements after its nest along (`Rule.takes`): a contraction what is done to its result next, a chain
all its nests. What rules made of a chain, and the branches of a condition, are walked through in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.ir import replace as replaced
from weft.ir.tensor import AllocBuffer, Buffer, Extent, For, IfThenElse, SeqStmt, Stmt
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import nest_of, statements_of
from weft.transform.autoschedule.registry import Ledger, Rule, Site, Taken, only_sets
from weft.transform.autoschedule.rules.loops import is_chain, sequence
from weft.transform.autoschedule.rules.row_fusion import Rows, shared_rows

__all__ = ["Driver"]


@dataclass(frozen=True)
class Driver:
    """Gives the nests of one function to rules, in order.

    `constants` are buffers that are known when the kernel is compiled. Inside of loops and branches there are none:
    what is done once is done before. With `shares_rows`, nests that hand on values row by row get loops in common;
    `shared` are the extents of such loops around.
    """

    ledger: Ledger
    rules: Sequence[Rule]
    constants: frozenset[Buffer] = frozenset()
    shares_rows: bool = False
    is_outermost: bool = True
    in_chain: bool = False
    shared: tuple[Extent, ...] = ()

    def body(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        """Statements one after another."""
        if not self.shares_rows:
            return self._each(stmts)
        new: list[Stmt] = []
        alone: list[Stmt] = []
        for part in shared_rows(stmts):
            if not isinstance(part, Rows):
                alone.append(part)
                continue
            new += self._each(alone)
            alone = []
            inner = replace(self, shared=(*self.shared, *(extent for _, extent in part.loops)))
            new.append(Rows(part.loops, tuple(inner._each(part.stmts))).build())
        return new + self._each(alone)

    def _each(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        new: list[Stmt] = []
        gone: set[Buffer] = set()
        position = 0
        while position < len(stmts):
            stmt = stmts[position]
            position += 1
            if not isinstance(stmt, For) or is_chain(stmt):
                new.append(self._other(stmt))
                continue
            site = Site(stmt, self.constants, tuple(stmts), position - 1, self.is_outermost, self.in_chain, self.shared)
            made, taken = self._nest(site)
            gone |= taken.buffers
            if taken.earlier:
                new = [x for x in new if x not in taken.earlier]
            for _ in range(taken.nests):
                while isinstance(stmts[position], AllocBuffer):
                    new.append(stmts[position])
                    position += 1
                position += 1
            new.append(made)
        return [x for x in new if not only_sets(x, gone)] if gone else new

    def _other(self, stmt: Stmt) -> Stmt:
        """A statement that is no nest: what is inside of it."""
        inner = replace(self, constants=frozenset(), is_outermost=False)
        if isinstance(stmt, IfThenElse):
            then = inner._inside(stmt.then_body)
            other = None if stmt.else_body is None else inner._inside(stmt.else_body)
            same = then is stmt.then_body and other is stmt.else_body
            return stmt if same else replaced(stmt, then_body=then, else_body=other)
        if isinstance(stmt, For):
            body = replace(inner, in_chain=True)._inside(stmt.body)
            return stmt if body is stmt.body else replaced(stmt, body=body)
        return stmt

    def _inside(self, stmt: Stmt) -> Stmt:
        """One statement, or several one after another where nests are among them."""
        stmts = statements_of(stmt)
        if isinstance(stmt, SeqStmt) and not any(map(_has_nests, stmts)):
            return stmt
        new = self.body(stmts)
        same = len(new) == len(stmts) and all(a is b for a, b in zip(new, stmts, strict=True))
        return stmt if same else sequence(new)

    def _nest(self, site: Site) -> tuple[Stmt, Taken]:
        """The nest as the first rule that decides about it makes it, and what else the rule takes."""
        machine, knobs = self.ledger.machine, self.ledger.knobs
        found = self.ledger.chosen(self.rules, site)
        if found is None:
            return site.stmt, Taken()
        rule, decision = found
        decision = rule.completed(site, decision, machine, knobs)
        new = rule.apply(site, decision, machine, knobs)
        self.ledger.record(decision)
        if rule.again:
            later = self.rules[self.rules.index(rule) + 1 :]
            inner = replace(self, rules=later, constants=frozenset(), shares_rows=False, is_outermost=False)
            new = sequence(inner.body(statements_of(new)))
        return new, rule.takes(site, decision)


def _has_nests(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and (is_chain(stmt) or nest_of(stmt) is not None)
