"""VectorizeNests: loops that are no contractions as explicit vectors, rows that stay in the cache.

Each nest of a kernel goes to the first rule that decides about it (`weft.transform.autoschedule.registry`):

    copy              copies in order, which only change the shape: as they were written, to become views
    assertion         assertions about every element, as a reduction where all of them hold
    gather            gathered rows: prefetched, checked once each
    argreduce         positions of minima and maxima, along rows or down columns
    scan              running sums and the like, along rows or down columns
    split_reduction   reductions of much to few results in chunks that threads can share
    elementwise       every element once: vectors along the last axis
    transpose         elements along another axis: squares of vectors, transposed in registers
    reduction         sums, products, minima and maxima: vectors along the rows or down the columns

before which nests that hand on values row by row share the loops over the rows. What was decided is recorded on the
kernel (`weft.transform.infra.decisions`).

Sizes may be symbolic: the remainder is done under a mask. Nests of other forms stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from weft.ir import IRModule, replace
from weft.ir.tensor import Buffer, PrimFunc
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import statements_of
from weft.transform.autoschedule.driver import Driver
from weft.transform.autoschedule.nontemporal import with_nontemporal_stores
from weft.transform.autoschedule.registry import Ledger
from weft.transform.autoschedule.rules.builtin import BUILTIN, rules_of_nests
from weft.transform.autoschedule.rules.loops import sequence
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
        "vector_bits": ("machine", "vector_bits"),
        "registers": ("machine", "vector_registers"),
        "streaming_bytes": ("machine", "nontemporal_bytes"),
        "accumulators": ("knobs", "accumulators"),
        "columns": ("knobs", "column_vectors"),
        "shared": ("knobs", "split_from"),
    }

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
        ledger, known = Ledger(function, self.machine, self.knobs), rules_of_nests()
        driver = Driver(ledger, known, shares_rows=True, is_outermost=False)
        body = sequence(driver.body(reuse_outputs(statements_of(wide), outputs)))
        if self.machine.nontemporal_bytes:
            body = with_nontemporal_stores(function, body, self.machine.nontemporal_bytes)
        ledger.check_pins(frozenset(rule.name for rule in (*BUILTIN, *known)), function.span)
        return function if body is wide else with_decisions(replace(function, body=body), ledger.made.values())
