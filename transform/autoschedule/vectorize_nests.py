"""VectorizeNests: loops that are no contractions as explicit vectors, rows that stay in the cache.

Each nest of a kernel goes to the first rule that knows its form (`transform/rules/`):

    rows          nests that hand on values row by row share the loops over the rows
    maps          every element once: vectors along the last axis
    transposes    elements along another axis: squares of vectors, turned in registers
    reductions    sums, products, least and greatest values: vectors along the rows or down the columns
    partial       reductions of much to few results in parts that threads can share
    gathers       rows fetched by numbers from memory: asked for ahead, checked once each
    extremes      positions of least and greatest values, the same two ways

Sizes may be symbolic: what whole vectors leave over is done under a mask. Nests of other forms stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace
from weft.ir.tensor import AllocBuffer, Buffer, For, IfThenElse, PrimFunc, SeqStmt, Stmt
from weft.transform.analysis.access_pattern import nest_of
from weft.transform.autoschedule.rules.argreduce import vector_extreme
from weft.transform.autoschedule.rules.block_fusion import is_chain
from weft.transform.autoschedule.rules.elementwise import vector_map
from weft.transform.autoschedule.rules.facts import Facts
from weft.transform.autoschedule.rules.gather import row_gather
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.nontemporal import with_streams
from weft.transform.autoschedule.rules.reductions import vector_reduction
from weft.transform.autoschedule.rules.row_fusion import Rows, shared_rows
from weft.transform.autoschedule.rules.split_reduction import partial_reduction
from weft.transform.autoschedule.rules.transposes import vector_transpose
from weft.transform.fusion.inline_blocks import reuse_outputs
from weft.transform.infra.base import FunctionPass
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["VectorizeNests"]

_RULES = (vector_map, vector_transpose, vector_reduction)


@dataclass(frozen=True)
class VectorizeNests(FunctionPass):
    """Compute on vectors what the rules know.

    `vector_bits` is the width of a vector register, `registers` their number, `accumulators` how many vectors a sum
    along a row runs in, `columns` how many one down the columns does, `shared` how many elements a
    reduction to few results has at least that is cut in parts. Results of `streaming_bytes` or more are stored past
    the caches (0: none is).
    """

    level: ClassVar[int] = 1
    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    vector_bits: int = 256
    registers: int = 16
    accumulators: int = 4
    columns: int = 8
    shared: int = 1 << 18
    streaming_bytes: int = 0

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with its nests on vectors."""
        if function.attrs.get("tir.is_scheduled"):
            return function
        facts = Facts(self.vector_bits, self.registers, self.accumulators, self.columns, shared=self.shared)
        outputs = [param for param in function.params if isinstance(param, Buffer)]
        wide = with_wide_indices(function.body)
        body = _sequence(reuse_outputs(_flat(wide), outputs), facts)
        if self.streaming_bytes:
            body = with_streams(function, body, self.streaming_bytes)
        return function if body is wide else replace(function, body=body)


def _sequence(stmts: Sequence[Stmt], facts: Facts) -> Stmt:
    parts = shared_rows(stmts)
    return sequence(_rows(part, facts) if isinstance(part, Rows) else _vectorised(part, facts) for part in parts)


def _flat(stmt: Stmt) -> Sequence[Stmt]:
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


def _rows(rows: Rows, facts: Facts) -> Stmt:
    return Rows(rows.loops, tuple(_vectorised(stmt, facts) for stmt in rows.stmts)).build()


def _vectorised(stmt: Stmt, facts: Facts) -> Stmt:
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_body is None else _branch(stmt.else_body, facts)
        then = _branch(stmt.then_body, facts)
        same = then is stmt.then_body and other is stmt.else_body
        return stmt if same else replace(stmt, then_body=then, else_body=other)
    if isinstance(stmt, For) and is_chain(stmt):
        return replace(stmt, body=_branch(stmt.body, facts))
    nest = nest_of(stmt) if isinstance(stmt, For) else None
    if nest is None:
        gathered = row_gather(stmt, facts) if isinstance(stmt, For) else None
        return gathered or vector_extreme(stmt, facts) or stmt
    parts = partial_reduction(nest, facts)
    if parts is not None:
        return sequence(part if isinstance(part, AllocBuffer) else _by_rules(part, facts) for part in parts)
    return _by_rules(stmt, facts)


def _branch(stmt: Stmt, facts: Facts) -> Stmt:
    """One statement, or several one after another where nests are among them."""
    if isinstance(stmt, SeqStmt):
        nests = any(is_chain(part) or nest_of(part) is not None for part in stmt.stmts if isinstance(part, For))
        return _sequence(stmt.stmts, facts) if nests else stmt
    return _vectorised(stmt, facts)


def _by_rules(stmt: Stmt, facts: Facts) -> Stmt:
    nest = nest_of(stmt)
    if nest is None:
        return stmt
    return next((new for new in (rule(nest, facts) for rule in _RULES) if new is not None), stmt)
