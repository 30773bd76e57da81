"""VectorizeNests: loops that are no contractions as explicit vectors, rows that stay in the cache.

Each nest of a kernel goes to the first rule that decides about it (`weft.transform.autoschedule.registry`):

    gather            rows fetched by numbers from memory: prefetched, checked once each
    argreduce         positions of minima and maxima, along rows or down columns
    split_reduction   reductions of much to few results in chunks that threads can share
    elementwise       every element once: vectors along the last axis
    transpose         elements along another axis: squares of vectors, transposed in registers
    reduction         sums, products, minima and maxima: vectors along the rows or down the columns

before which nests that hand on values row by row share the loops over the rows. What was decided is recorded on the
kernel (`weft.transform.infra.decisions`).

Sizes may be symbolic: what whole vectors leave over is done under a mask. Nests of other forms stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace
from weft.ir.tensor import Buffer, For, IfThenElse, PrimFunc, SeqStmt, Stmt
from weft.transform.analysis.access_pattern import nest_of
from weft.transform.autoschedule.registry import GEMM_ORDER, Ledger, Rule, Site, rules
from weft.transform.autoschedule.rules.block_fusion import is_chain
from weft.transform.autoschedule.rules.builtin import BUILTIN
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.nontemporal import with_streams
from weft.transform.autoschedule.rules.row_fusion import Rows, shared_rows
from weft.transform.autoschedule.scheduling_pass import SchedulingPass
from weft.transform.fusion.inline_blocks import reuse_outputs
from weft.transform.infra.base import map_functions
from weft.transform.infra.decisions import with_decisions
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["VectorizeNests"]


@dataclass(frozen=True)
class VectorizeNests(SchedulingPass):
    """Compute on vectors what the rules know.

    How many vectors at a time follows from `machine` and `knobs`: see `weft.transform.autoschedule.knobs`.
    """

    level: ClassVar[int] = 1
    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    former_options: ClassVar[Mapping[str, tuple[str, str]]] = {
        "vector_bits": ("machine", "vector_bits"), "registers": ("machine", "vector_registers"),
        "streaming_bytes": ("machine", "nontemporal_bytes"), "accumulators": ("knobs", "accumulators"),
        "columns": ("knobs", "column_vectors"), "shared": ("knobs", "split_from"),
    }  # fmt: skip

    def run(self, module: IRModule) -> IRModule:
        """Every tensor function."""
        return map_functions(module, self.in_context()._function, self.kinds)

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with its nests on vectors."""
        return self.in_context()._function(name, function)

    def _function(self, name: str, function: PrimFunc) -> PrimFunc:
        if is_scheduled(function):
            return function
        outputs = [param for param in function.params if isinstance(param, Buffer)]
        wide = with_wide_indices(function.body)
        nests = _Nests(Ledger(function, self.machine, self.knobs), rules(first=GEMM_ORDER))
        body = nests.sequence(reuse_outputs(_flat(wide), outputs))
        if self.machine.nontemporal_bytes:
            body = with_streams(function, body, self.machine.nontemporal_bytes)
        nests.ledger.check_pins(frozenset(rule.name for rule in (*BUILTIN, *nests.rules)), function.span)
        return function if body is wide else with_decisions(replace(function, body=body), nests.ledger.made.values())


def _flat(stmt: Stmt) -> Sequence[Stmt]:
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


@dataclass(frozen=True)
class _Nests:
    """Gives each nest of one function to the rules."""

    ledger: Ledger
    rules: list[Rule]

    def sequence(self, stmts: Sequence[Stmt]) -> Stmt:
        parts = shared_rows(stmts)
        return sequence(self._rows(part) if isinstance(part, Rows) else self.vectorised(part) for part in parts)

    def _rows(self, rows: Rows) -> Stmt:
        return Rows(rows.loops, tuple(self.vectorised(stmt) for stmt in rows.stmts)).build()

    def vectorised(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, IfThenElse):
            other = None if stmt.else_body is None else self._branch(stmt.else_body)
            then = self._branch(stmt.then_body)
            same = then is stmt.then_body and other is stmt.else_body
            return stmt if same else replace(stmt, then_body=then, else_body=other)
        if isinstance(stmt, For) and is_chain(stmt):
            return replace(stmt, body=self._branch(stmt.body))
        return self._scheduled(stmt, self.rules) if isinstance(stmt, For) else stmt

    def _branch(self, stmt: Stmt) -> Stmt:
        """One statement, or several one after another where nests are among them."""
        if isinstance(stmt, SeqStmt):
            nests = any(is_chain(part) or nest_of(part) is not None for part in stmt.stmts if isinstance(part, For))
            return self.sequence(stmt.stmts) if nests else stmt
        return self.vectorised(stmt)

    def _scheduled(self, stmt: For, rules: list[Rule]) -> Stmt:
        """The nest as the first rule that decides about it makes it."""
        site, ledger = Site(stmt), self.ledger
        found = ledger.chosen(rules, site)
        if found is None:
            return stmt
        rule, decision = found
        new = rule.apply(site, decision, ledger.machine, ledger.knobs)
        ledger.record(decision)
        if not rule.again:
            return new
        later = rules[rules.index(rule) + 1 :]
        return sequence(self._scheduled(x, later) if isinstance(x, For) else x for x in _flat(new))
