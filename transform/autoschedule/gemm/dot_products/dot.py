"""Dot-product instructions: which one adds up the products of a contraction, and in what order operands lie for it.

    sums[j] += a[g * q] * b[g * q, j] + ... + a[g * q + g - 1] * b[g * q + g - 1, j]

Neighbours along k go in groups of g: in a tile of A those of each row lie side by side, in a panel of B those of each
column. A last group is filled up with zeros in both. The table of instructions is that of the machine model; one is
taken when its types hold all values of the operands, and the sums are of its type.

Where an instruction takes A without a sign and A has one, A is offset by half of its range, and so many times the sums
of B's columns, which the tile computes as well, are subtracted again: exact, as sums wrap.

    a * b = (a + 128) * b - 128 * b
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from weft.dtypes import bits, includes
from weft.target.machine_model import DotProduct, MachineModel
from weft.transform.autoschedule.gemm.match import Contraction

__all__ = ["Dot", "dot_of"]


@dataclass(frozen=True)
class Dot:
    """An instruction, and the types that A and B have for it; `is_swapped` where its first operand is B.

    `offset` is what is added to A.
    """

    instruction: DotProduct
    a_type: str
    b_type: str
    is_swapped: bool = False
    offset: int = 0

    @property
    def group(self) -> int:
        """The products that one instruction adds to each lane."""
        return self.instruction.terms


def dot_of(found: Contraction, machine: MachineModel) -> Dot | None:
    """The instruction with the largest groups; None where none fits."""
    fitting: list[Dot] = []
    for row in machine.dot_products:
        first, second, sums = row.types
        if not row.is_vector or sums != found.dtype:
            continue
        for a, b in ((first, second), (second, first)):
            if _fits(found.scalar.dtype, found.casts[0], a) and _fits(found.vector.dtype, found.casts[1], b):
                fitting.append(Dot(row, a, b, (a, b) != (first, second)))
                break
        else:
            if (
                first == f"u{found.scalar.dtype}"
                and _fits(found.scalar.dtype, found.casts[0], found.dtype)
                and _fits(found.vector.dtype, found.casts[1], second)
            ):
                fitting.append(Dot(row, first, second, offset=1 << (bits(first) - 1)))
    return max(fitting, key=lambda dot: dot.group, default=None)


def _fits(stored: str, casts: Sequence[str], wanted: str) -> bool:
    """Whether a type holds all values of the stored one, which no conversion changes."""
    kinds = (stored, *casts)
    return includes(wanted, stored) and all(includes(b, a) for a, b in pairwise(kinds))
