"""Primitives that choose at random: tiles, numbers, places. What was chosen is kept in the trace and done again.

The choices of one schedule follow from its seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir.tensor import For
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV, ExprRV, LoopRV
from weft.transform.schedule.primitives.compute_at import INLINE, ROOT, can_compute_at
from weft.transform.schedule.primitives.queries import consumers
from weft.transform.schedule.tree import Tree

__all__ = ["Sampling"]


class Sampling(ScheduleCore):
    """Random choices."""

    @primitive
    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """`n` factors whose product is the extent of a loop, the last one not above a limit.

        ScheduleError W604 for a loop of unknown extent, or a decision that does not fit it.
        """
        tree, found = self._loop(loop)
        extent = _known_extent(tree, found)
        if n < 1 or max_innermost_factor < 1:
            raise failure("W604", f"there are no {n} factors up to {max_innermost_factor}", tree, found)
        if decision is None:
            return self._tiling(self._factors(extent, n, max_innermost_factor))
        return self._tiling(self._decided(decision, extent, n, loop))

    @primitive
    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` factors of the extent of a loop, the product of those from a place on being a multiple of a number.

        Where the extent is no such multiple, all of it is the first factor. ScheduleError W604 as for perfect tiles.
        """
        tree, found = self._loop(loop)
        extent = _known_extent(tree, found)
        if not 0 <= partition_pos < n or innerpart_factor < 1:
            raise failure("W604", f"there is no place {partition_pos} among {n} factors", tree, found)
        if decision is not None:
            return self._tiling(self._decided(decision, extent, n, loop))
        if extent % innerpart_factor:
            return self._tiling([extent, *([1] * (n - 1))])
        factors = self._factors(extent // innerpart_factor, n, extent)
        factors[partition_pos] *= innerpart_factor
        return self._tiling(factors)

    def _decided(self, decision: Sequence[int], extent: int, n: int, loop: LoopRV) -> list[int]:
        """The factors of a decision; W604 where they are no tiling of a loop."""
        factors = [self._number(item) for item in decision]
        if len(factors) != n or math.prod(factors) != extent:
            tree, found = self._loop(loop)
            raise failure("W604", f"the decision {factors} is no tiling of {extent} by {n} factors", tree, found)
        return factors

    def _tiling(self, factors: list[int]) -> list[ExprRV]:
        """Note the factors as what was chosen; their handles."""
        self._chosen.decision = list(factors)
        return [self._expr_handle(factor) for factor in factors]

    @primitive
    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of some numbers, with given probabilities; the decision is its place. W604 for lists that do not fit."""
        if len(candidates) != len(probs) or not candidates or min(probs) < 0 or sum(probs) <= 0:
            raise failure("W604", f"{list(probs)} are no probabilities of {len(candidates)} numbers")
        if decision is None:
            decision = self._chosen.random.choices(range(len(candidates)), probs)[0]
        if not 0 <= decision < len(candidates):
            raise failure("W604", f"the decision {decision} is no place among {len(candidates)} numbers")
        self._chosen.decision = decision
        return self._expr_handle(self._number(candidates[decision]))

    @primitive
    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A loop at which a block can be computed; the decision is its place around the first reader.

        Decision -1 leaves the block where it is, -2 puts it into its readers: `compute_at` does that with the handle.
        ScheduleError W604 for a decision that does not fit.
        """
        tree, found = self._block(block)
        readers = consumers(tree, found)
        loops = tree.loops_around(readers[0]) if readers else []
        places = [-1]
        for position, loop in enumerate(loops):
            if not tree.is_above(loop, found) and can_compute_at(
                self, block, self._loop_handle(tree.name, loop.loop_var)
            ):
                places.append(position)
        if decision is None:
            decision = self._chosen.random.choice(places)
        if not (decision in (-1, -2) or 0 <= decision < len(loops)):
            raise failure(
                "W604", f"the decision {decision} is none of the {len(loops)} loops around the reader", tree, found
            )
        self._chosen.decision = decision
        if decision < 0:
            handle = LoopRV("root" if decision == -1 else "inline")
            self._keys[handle] = (tree.name, ROOT if decision == -1 else INLINE)
            return handle
        return self._loop_handle(tree.name, loops[decision].loop_var)

    def _factors(self, extent: int, count: int, limit: int) -> list[int]:
        """Random factors: each prime of the extent in a random place; the last one within the limit."""
        factors = [1] * count
        for prime in sorted(_primes(extent), reverse=True):
            places = [i for i in range(count) if i < count - 1 or factors[i] * prime <= limit]
            factors[self._chosen.random.choice(places) if places else 0] *= prime
        if count == 1 and factors[0] != extent:
            factors[0] = extent
        return factors


def _known_extent(tree: Tree, loop: For) -> int:
    if not isinstance(loop.extent, int):
        raise failure(
            "W604",
            f"the extent of the loop {loop.loop_var.name!r} is not known",
            tree,
            loop,
            hint="split by numbers and None instead",
        )
    return loop.extent


def _primes(number: int) -> list[int]:
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
