"""TileContractions: sums of products as register tiles over explicit vectors.

A loop nest around one block

    C[...] = C[...] + A[...] * B[...]          (init: C[...] = 0)

in which one spatial variable `v` runs along the last axis of C and, with stride one, of B, and does not occur in A,
becomes

    for the other spatial variables:
      for tiles along v:  for tiles along r:   (r: a spatial variable of A that B does not have; more rows share loads
      of B)
        accumulators[rows, vectors] = 0        in registers
        for the reduction variables:  accumulators[i, j] += broadcast(A[r + i]) * B[v + j * lanes : + lanes]
        C[r + i, v + j * lanes : + lanes] = accumulators[i, j]

Neighbouring axes of rows are one, so that tiles fill up whichever of their sizes is small.
Products of matrices, batched ones and convolutions are of this form alike; sizes may be symbolic: what a size leaves
over is done by smaller tiles. Large products of matrices go through packed blocks that fit the caches; so do those
whose B is read across (`v` not its last axis). A symbolic size decides at run time. Operands that are constants in all
calls are packed as a whole by plain copies at the start, which `PackConstants` then takes out of the kernel. The order
of each sum stays the same, so results differ only by the fusion of multiply and add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace
from weft.ir.tensor import AllocBuffer, Buffer, Extent, For, IfThenElse, PrimFunc, SeqStmt, Stmt
from weft.transform.autoschedule.gemm.collapse_rows import with_joined_rows
from weft.transform.autoschedule.gemm.decide import GEMM, apply_gemm, decide_gemm
from weft.transform.autoschedule.gemm.epilogue import with_epilogue
from weft.transform.autoschedule.gemm.implicit_gemm import match_windows
from weft.transform.autoschedule.gemm.match import Contraction, match, products_of
from weft.transform.autoschedule.gemm.tiling import Capacity, packing_pays, tile_of
from weft.transform.autoschedule.registry import GEMM_ORDER, Ledger, Rule, Site, rules
from weft.transform.autoschedule.rules.axes import Chains
from weft.transform.autoschedule.rules.block_fusion import ATTENTION, CHAIN_RULE, blocked_chains, is_chain
from weft.transform.autoschedule.scheduling_pass import SchedulingPass
from weft.transform.infra.base import map_functions
from weft.transform.infra.decisions import with_decisions
from weft.transform.kernel.pack_constants import constant_params
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["TileContractions"]


@dataclass(frozen=True)
class TileContractions(SchedulingPass):
    """Compute sums of products in register tiles.

    Blocks and tiles follow from `machine` and `knobs`: see `weft.transform.autoschedule.knobs`.
    """

    level: ClassVar[int] = 1
    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    former_options: ClassVar[Mapping[str, tuple[str, str]]] = {
        "vector_bits": ("machine", "vector_bits"), "registers": ("machine", "vector_registers"),
        "most_vectors": ("knobs", "nr_vectors"), "widest": ("knobs", "nr_max_vectors"), "block_sums": ("knobs", "kc"),
        "block_rows": ("knobs", "mc"), "block_columns": ("knobs", "nc"), "pack_from": ("knobs", "pack_from"),
        "chain_rows": ("knobs", "row_block"), "chain_keys": ("knobs", "key_block"), "parts": ("knobs", "chunks"),
        "apart_from": ("knobs", "remainders_from"),
    }  # fmt: skip

    def run(self, module: IRModule) -> IRModule:
        """Every tensor function, with what is known of the constants in its calls."""
        constants = constant_params(module)
        item = self.in_context()

        def tiled(name: str, function: PrimFunc) -> PrimFunc:
            return item._function(function, constants.get(name, frozenset()))

        return map_functions(module, tiled, self.kinds)

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with its contractions tiled; itself when a schedule has arranged its loops."""
        return self.in_context()._function(function, constant_params(module).get(name, frozenset()))

    def capacity(self, dtype: str) -> Capacity:
        """What the machine has for sums of a dtype."""
        return Capacity(self.machine, self.knobs, dtype)

    def _function(self, function: PrimFunc, constants: frozenset[int]) -> PrimFunc:
        if is_scheduled(function):
            return function
        buffers = frozenset(param for at in constants if isinstance(param := function.params[at], Buffer))
        body = wide = with_wide_indices(function.body)
        ledger = Ledger(function, self.machine, self.knobs)
        if isinstance(body, SeqStmt):
            chained = blocked_chains(body.stmts, Chains(self.machine, self.knobs, ledger, self._tile))
            body = body if chained is None else SeqStmt(tuple(chained))
        first = tuple(rule for rule in rules(last=GEMM_ORDER) if rule not in _OWN)
        new = _Tiler(self, buffers, ledger, first).statement(body)
        ledger.check_pins(frozenset(rule.name for rule in (*first, *_OWN)), function.span)
        return function if new is wide else with_decisions(replace(function, body=new), ledger.made.values())

    def _tile(self, dtype: str) -> tuple[int, int]:
        return tile_of(self.capacity(dtype))


_OWN = (GEMM, ATTENTION, CHAIN_RULE)


@dataclass(frozen=True)
class _Tiler:
    """Tiles the statements of one function; `constants` are its parameters that are known when it is compiled."""

    options: TileContractions
    constants: frozenset[Buffer]
    ledger: Ledger
    first: tuple[Rule, ...] = ()

    def statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, SeqStmt):
            new = self._sequence(stmt.stmts)
            same = len(new) == len(stmt.stmts) and all(a is b for a, b in zip(new, stmt.stmts, strict=True))
            return stmt if same else replace(stmt, stmts=new)
        if isinstance(stmt, IfThenElse):
            then = self._inside(stmt.then_body)
            other = None if stmt.else_body is None else self._inside(stmt.else_body)
            same = then is stmt.then_body and other is stmt.else_body
            return stmt if same else replace(stmt, then_body=then, else_body=other)
        if isinstance(stmt, For) and is_chain(stmt):
            return replace(stmt, body=self._inside(stmt.body))
        if isinstance(stmt, For):
            taken = self._taken(stmt)
            if taken is not None:
                return taken
            found = self._found(stmt)
            return stmt if found is None or not found.pays else self._tiled(found, stmt)
        return stmt

    def _taken(self, stmt: For) -> Stmt | None:
        """What a rule of somebody's own that comes before contractions makes of a nest."""
        if not self.first:
            return None
        site = Site(stmt, self.constants)
        chosen = self.ledger.chosen(self.first, site)
        if chosen is None:
            return None
        rule, decision = chosen
        new = rule.apply(site, decision, self.ledger.machine, self.ledger.knobs)
        self.ledger.record(decision)
        return new

    def _inside(self, stmt: Stmt) -> Stmt:
        """A part of a loop or a branch: what is done once is done before, so constants are operands like others."""
        return _Tiler(self.options, frozenset(), self.ledger, self.first).statement(stmt)

    def _sequence(self, stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Statements one after another: a contraction takes what is done to its result next with it."""
        new: list[Stmt] = []
        taken: set[int] = set()
        for position, stmt in enumerate(stmts):
            if position in taken:
                continue
            if not isinstance(stmt, For):
                new.append(self.statement(stmt))
                continue
            first = self._taken(stmt)
            if first is not None:
                new.append(first)
                continue
            found = self._found(stmt)
            if found is None or not found.pays:
                new.append(self.statement(stmt))
                continue
            after = [at for at in range(position + 1, len(stmts)) if not isinstance(stmts[at], AllocBuffer)]
            if after:
                fused = with_epilogue(found, stmts[after[0]], [stmts[at] for at in after[1:]])
                new.extend(stmts[position + 1 : after[0]])
                taken.update(range(position + 1, after[0]))
                if fused is not None and self._can_tile(fused):
                    found = fused
                    taken.add(after[0])
            new.append(self._tiled(found, stmt))
        return tuple(new)

    def _found(self, stmt: For) -> Contraction | None:
        products = products_of(stmt)
        if products is None:
            return None
        found = match(products)
        if found is not None and (found.r is None or (found.runs and not self._is_short(found.extents[found.v]))):
            return found
        windows = match_windows(products, 1 if found is None else 2)
        return windows if windows is not None and windows.pays else found

    def _is_short(self, columns: Extent) -> bool:
        """Whether a row of columns leaves a part of its last vector empty, so that rows are better joined."""
        return isinstance(columns, int) and columns % 16 != 0

    def _joined(self, found: Contraction) -> tuple[Contraction, Capacity]:
        capacity = self.options.capacity(found.store.buffer.dtype)
        return with_joined_rows(found, 2 * capacity.max_mr), capacity

    def _can_tile(self, found: Contraction) -> bool:
        found, capacity = self._joined(found)
        return found.runs or packing_pays(found, capacity, self.constants) is not False

    def _tiled(self, found: Contraction, stmt: For) -> Stmt:
        found, capacity = self._joined(found)
        decision = decide_gemm(Site(stmt).name, found, capacity, self.constants)
        if decision is None:
            return stmt
        decision = self.ledger.settle(GEMM, Site(stmt, self.constants), decision)
        first, new, decision = apply_gemm(found, decision, capacity, self.constants)
        self.ledger.record(decision)
        return SeqStmt((*found.views, *first, new)) if found.views or first else new
