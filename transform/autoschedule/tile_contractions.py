"""TileContractions: contractions (sums of products) as register tiles over explicit vectors.

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
Products of matrices, batched ones and convolutions are of this form alike; sizes may be symbolic: remainders are
done by smaller tiles. Large products of matrices go through packed blocks that fit the caches; so do those
whose B is read across (`v` not its last axis). A symbolic size decides at run time. Operands that are constants in all
calls are packed as a whole by plain copies at the start, which `PackConstants` then takes out of the kernel. The order
of each sum stays the same, so results differ only by the fusion of multiply and add; from opt=2 on convolutions may
take Winograd's products, which are equal in real arithmetic (as rules of rewriting are allowed there).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Self

from weft.ir import IRModule, replace
from weft.ir.tensor import Buffer, PrimFunc
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import statements_of
from weft.transform.autoschedule.driver import Driver
from weft.transform.autoschedule.registry import Ledger
from weft.transform.autoschedule.rules.builtin import rules_of_contractions
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.scheduling_pass import SchedulingPass
from weft.transform.infra.base import map_functions
from weft.transform.infra.context import PassContext
from weft.transform.infra.decisions import with_decisions
from weft.transform.kernel.pack_constants import constant_params
from weft.transform.kernel.scheduled import is_scheduled
from weft.transform.kernel.widen_indices import with_wide_indices

__all__ = ["TileContractions"]

_EQUAL_IN_REAL_ARITHMETIC = 2
"""The level from which on results may round otherwise."""


@dataclass(frozen=True)
class TileContractions(SchedulingPass):
    """Compute contractions in register tiles.

    Blocks and tiles follow from `machine` and `knobs`: see `weft.transform.autoschedule.knobs`.
    """

    level: ClassVar[int] = 1
    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    former_options: ClassVar[Mapping[str, tuple[str, str]]] = {
        "vector_bits": ("machine", "vector_bits"),
        "registers": ("machine", "vector_registers"),
        "most_vectors": ("knobs", "nr_vectors"),
        "widest": ("knobs", "nr_max_vectors"),
        "block_sums": ("knobs", "kc"),
        "block_rows": ("knobs", "mc"),
        "block_columns": ("knobs", "nc"),
        "pack_from": ("knobs", "pack_from"),
        "chain_rows": ("knobs", "row_block"),
        "chain_keys": ("knobs", "key_block"),
        "parts": ("knobs", "chunks"),
        "apart_from": ("knobs", "remainders_from"),
    }

    def in_context(self) -> Self:
        """The pass with what the context says of its knobs; below opt=2 with none that changes results."""
        item = super().in_context()
        if PassContext.current().opt >= _EQUAL_IN_REAL_ARITHMETIC or not item.knobs.winograd:
            return item
        return dataclasses.replace(item, knobs=dataclasses.replace(item.knobs, winograd=0))

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

    def _function(self, function: PrimFunc, constants: frozenset[int]) -> PrimFunc:
        if is_scheduled(function):
            return function
        buffers = frozenset(param for at in constants if isinstance(param := function.params[at], Buffer))
        wide = with_wide_indices(function.body)
        ledger, known = Ledger(function, self.machine, self.knobs), rules_of_contractions()
        stmts = statements_of(wide)
        new = Driver(ledger, known, buffers).body(stmts)
        ledger.check_pins(frozenset(rule.name for rule in known), function.span)
        if len(new) == len(stmts) and all(a is b for a, b in zip(new, stmts, strict=True)):
            return function
        return with_decisions(replace(function, body=sequence(new)), ledger.made.values())
