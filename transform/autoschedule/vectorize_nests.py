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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace
from weft.ir.tensor import AllocBuffer, Buffer, For, IfThenElse, PrimFunc, SeqStmt, Stmt
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import nest_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.argreduce import vector_extreme
from weft.transform.autoschedule.rules.block_fusion import is_chain
from weft.transform.autoschedule.rules.elementwise import vector_map
from weft.transform.autoschedule.rules.gather import row_gather
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.nontemporal import with_streams
from weft.transform.autoschedule.rules.reductions import vector_reduction
from weft.transform.autoschedule.rules.row_fusion import Rows, shared_rows
from weft.transform.autoschedule.rules.split_reduction import partial_reduction
from weft.transform.autoschedule.rules.transposes import vector_transpose
from weft.transform.autoschedule.scheduling_pass import SchedulingPass
from weft.transform.fusion.inline_blocks import reuse_outputs
from weft.transform.infra.base import map_functions
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["VectorizeNests"]

_RULES = (vector_map, vector_transpose, vector_reduction)


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
        if function.attrs.get("tir.is_scheduled"):
            return function
        outputs = [param for param in function.params if isinstance(param, Buffer)]
        wide = with_wide_indices(function.body)
        body = _Nests(self.machine, self.knobs).sequence(reuse_outputs(_flat(wide), outputs))
        if self.machine.nontemporal_bytes:
            body = with_streams(function, body, self.machine.nontemporal_bytes)
        return function if body is wide else replace(function, body=body)


def _flat(stmt: Stmt) -> Sequence[Stmt]:
    return stmt.stmts if isinstance(stmt, SeqStmt) else (stmt,)


@dataclass(frozen=True)
class _Nests:
    """Gives each nest of one function to the rules."""

    machine: MachineModel
    knobs: Knobs

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
        nest = nest_of(stmt) if isinstance(stmt, For) else None
        if nest is None:
            gathered = row_gather(stmt, self.machine, self.knobs) if isinstance(stmt, For) else None
            return gathered or vector_extreme(stmt, self.machine, self.knobs) or stmt
        parts = partial_reduction(nest, self.machine, self.knobs)
        if parts is not None:
            return sequence(part if isinstance(part, AllocBuffer) else self._by_rules(part) for part in parts)
        return self._by_rules(stmt)

    def _branch(self, stmt: Stmt) -> Stmt:
        """One statement, or several one after another where nests are among them."""
        if isinstance(stmt, SeqStmt):
            nests = any(is_chain(part) or nest_of(part) is not None for part in stmt.stmts if isinstance(part, For))
            return self.sequence(stmt.stmts) if nests else stmt
        return self.vectorised(stmt)

    def _by_rules(self, stmt: Stmt) -> Stmt:
        nest = nest_of(stmt)
        if nest is None:
            return stmt
        made = (rule(nest, self.machine, self.knobs) for rule in _RULES)
        return next((new for new in made if new is not None), stmt)
