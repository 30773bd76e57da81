"""Contractions with weights of few bits: converted in the tile that multiplies them, never in memory.

    for panels of B:                                a few vectors of columns, whole along k
      for tiles of rows:
        total = 0
        for groups along k:
          part = 0;  part += A * B for each k of the group;  total += (part - zero * sum of A) * scale
        C = total                                   (or what becomes of it: the epilogue)

B, its scales and its zero points, where they are constants, are copied in the order in which tiles read them, which
`PackConstants` takes out of the kernel; else they are read where they are. Where several elements share a byte
(`weft.transform.kernel.sub_bytes`), neighbours in memory are elements that two vectors take from the same lane, so that
a vector of bytes is masked for one of them and shifted for the other.

Where A holds integers and the machine has an instruction that multiplies bytes without a sign by bytes with one, four
neighbours along k go into one lane, sums of a group are exact integers, and B is offset so that it has no sign. Else
products are those of float32, or of digits of bytes (`digits`); of more rows than a few each element is scaled first,
which the rows then share, and of more than a tile the whole panel (`unpacked`). Where the machine has an instruction
over matrices of short floats, many rows go by that (`matrices`).
"""

from __future__ import annotations

import dataclasses

from weft.ir.tensor import Stmt
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.epilogue import with_epilogue
from weft.transform.autoschedule.gemm.groups.arrangement import Grouped, grouped_form
from weft.transform.autoschedule.gemm.groups.match import match_scaled
from weft.transform.autoschedule.gemm.groups.rows import grouped
from weft.transform.autoschedule.gemm.match import views_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.registry import GEMM_ORDER, Rule, Site, Taken
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.infra.decisions import Decision

__all__ = ["GroupedRule"]


def _found(site: Site, machine: MachineModel, knobs: Knobs) -> tuple[Grouped, bool] | None:
    """The arrangement of a nest, and whether the next statement is its epilogue."""
    found = match_scaled(site.stmt)
    form = None if found is None else grouped_form(found, machine, site.constants, knobs)
    if found is None or form is None:
        return None
    following, result = site.following, found.plain.result
    fused = with_epilogue(found.plain, following[0], following[1:]) if following else None
    if fused is None or (fused.store is not found.plain.store and (result is None or not site.is_local(result))):
        return form, False
    return dataclasses.replace(form, found=dataclasses.replace(found, plain=fused)), True


class GroupedRule(Rule):
    """Products with weights of few bits, which tiles convert, with what is done to their results next."""

    name = "grouped-gemm"
    order = GEMM_ORDER - 1

    def decide(self, site: Site, machine: MachineModel, knobs: Knobs) -> Decision | None:
        """The tile and the instruction."""
        found = site.once(_found, site, machine, knobs)
        if found is None:
            return None
        form = found[0]
        reason = "integers are multiplied" if form.dot is not None else "elements are converted as tiles read them"
        if form.matrices is not None:
            reason += f"; from {form.min_rows_of_matrices} rows on matrices of short floats are"
        return Decision(site.name, self.name, form.values(), reason)

    def apply(self, site: Site, decision: Decision, machine: MachineModel, knobs: Knobs) -> Stmt:
        """Copies of constants, and loops over panels, tiles and groups."""
        found = site.once(_found, site, machine, knobs)
        assert found is not None
        return sequence([*views_of(found[0].found.plain), grouped(found[0])])

    def takes(self, site: Site, decision: Decision) -> Taken:
        """The statement that became the epilogue, and the sums that nothing else needs."""
        found = site.once(_found, site)
        if found is None or not found[1]:
            return Taken()
        plain = found[0].found.plain
        gone = plain.partial_sums is not None and plain.result is not None
        return Taken(1, frozenset((plain.result,)) if gone and plain.result is not None else frozenset())
