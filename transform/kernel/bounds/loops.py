"""Checks of the body of a loop as checks before it: at the first or the last iteration, where all iterations run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.errors import ShapeError
from weft.ir import walk
from weft.ir.dim import Dim
from weft.ir.tensor import Block, For, PrimVar
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Fact, Facts
from weft.transform.kernel.bounds.checks import Check, changed

__all__ = ["before_loop", "least_over", "reduction_loops"]


def before_loop(
    known: IndexAnalyzer, check: Check, loop: For, start: Dim, extent: Dim, facts: Facts, *, is_quiet: bool
) -> Check | None:
    """A check of the start of a loop's body as one before the loop; None when it cannot go there."""
    var, needs = loop.loop_var, check.needs
    if any(var in walk(guard) for guard in check.guards):
        return None
    if any(var in known.variables(dim) for dim in check.exact):
        return None
    if any(var in known.variables(need) for need in needs):
        if (
            not (loop.step is None or (isinstance(loop.step, int) and loop.step == 1))
            or not is_quiet
            or var in check.always
        ):
            return None
        inside = facts.with_facts(Fact(extent - 1))
        extreme = [least_over(known, need, var, start, extent, inside) for need in needs]
        if any(need is None for need in extreme):
            return None
        needs = tuple(need for need in extreme if need is not None)
    guards = check.guards
    if var not in check.always and not known.proves(extent - 1, facts):
        guards = (known.symbols.condition(extent - 1), *guards)
    return changed(check, needs=needs, guards=guards)


def least_over(known: IndexAnalyzer, need: Dim, var: PrimVar, start: Dim, extent: Dim, facts: Facts) -> Dim | None:
    """The least value over the iterations of what is linear in the loop's variable."""
    try:
        slope = known.replaced(need, var, known.values[var] + 1) - need
        if var in known.variables(slope):
            return None
        rising = known.proves(slope, facts)
        if rising or known.proves(-slope, facts):
            least = known.replaced(need, var, start if rising else start + extent - 1)
            return None if var in known.variables(least) else least  # in what is no arithmetic, say
    except ShapeError:  # over the limits of dimensions
        pass
    return None


def reduction_loops(block: Block, chain: Sequence[PrimVar]) -> frozenset[PrimVar]:
    """The loops around a block whose variables only its reduction uses."""
    used: dict[bool, set[Any]] = {True: set(), False: set()}
    for item in block.iter_vars:
        if item.value is not None:
            used[item.kind in ("reduce", "scan")].update(walk(item.value))
    return frozenset(var for var in chain if var in used[True] and var not in used[False])
