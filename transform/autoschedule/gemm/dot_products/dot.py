"""Dot-product instructions: which one adds up the products of a contraction, and in what order operands lie for it.

    sums[j] += a[g * q] * b[g * q, j] + ... + a[g * q + g - 1] * b[g * q + g - 1, j]

Neighbours along k go in groups of g: in a tile of A those of each row lie side by side, in a panel of B those of each
column. A last group is filled up with zeros in both. The table of instructions is that of the machine model; one is
taken when its types hold all values of the operands, and the sums are of its type.

Where an instruction takes A without a sign and A has one, A is offset by half of its range, and so many times the sums
of B's columns, which the tile computes as well, are subtracted again: exact, as sums wrap.

    a * b = (a + 128) * b - 128 * b

Instructions over matrices come first where rows, columns and k fill them: A's tile has one row of MATRIX_BYTES after
another then, B's panel is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any

from weft.dtypes import bits, includes
from weft.ir.tensor import BufferLoad, Extent, PrimVar
from weft.support.records import dataclass
from weft.target.machine_model import DotProduct, MachineModel
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.rules.strides import step_along

__all__ = ["Dot", "axes_of_k", "dot_of", "matrix_dot_of"]

_MATRIX_BITS = 512
"""Bits of a row of a matrix in registers, and of the vectors that its sums go through."""
_FEWEST_STEPS = 2
"""Steps along k from which on matrices in registers pay for being configured, cleared and stored."""


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
        """Neighbours along k that lie side by side in a panel of B: what vectors of the sums have lanes for."""
        return _MATRIX_BITS // 16 // bits(self.b_type) if self.instruction.is_matrix else self.instruction.terms

    @property
    def depth(self) -> int:
        """The products that one instruction adds to each sum, of which there are so many zeros as fill it up."""
        return self.instruction.terms

    @property
    def most_rows(self) -> int:
        """The rows of the largest tile over matrices, two of them; 0 for an instruction over vectors."""
        return 2 * self.instruction.shape[0] if self.instruction.is_matrix else 0

    def padded_rows(self, rows: int) -> int:
        """So many rows, filled up to whole matrices."""
        return -(-rows // self.instruction.shape[0]) * self.instruction.shape[0]


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


_MATRIX_VECTORS = 2
"""In a row of a tile of matrices."""


def matrix_dot_of(found: Contraction, machine: MachineModel, pins: Mapping[str, Any]) -> Dot | None:
    """The instruction over matrices that a contraction is large enough for; None where there is none.

    `pins` are values of a decision: a tile of other sizes than those of matrices is one of vectors.
    """
    rows = [row for row in machine.dot_products if row.is_matrix and row.types[2] == found.dtype]
    if not rows or machine.vector_bits != _MATRIX_BITS or not machine.has_masks:
        return None
    if found.r is None or found.part_count > _MATRIX_VECTORS or not _lies_along_k(found):
        return None
    terms = _terms_of(found)
    for row in rows:
        first, second, _ = row.types
        if found.vector.dtype != second or not _keeps(second, found.casts[1]):
            continue  # constants are packed as they are stored
        fits = _fits(found.scalar.dtype, found.casts[0], first)
        if fits and _fills(found, row, terms) and _may_have(row, terms, pins):
            return Dot(row, first, second)
    return None


def _lies_along_k(found: Contraction) -> bool:
    """Whether neighbours along k are neighbours in A, and B is brought into the order of panels."""
    if found.window is None and len(found.reduction) != 1:
        return False
    return axes_of_k(found.scalar, found) is not None or (
        len(found.reduction) == 1 and step_along(found.scalar, found.reduction[0]) == 1
    )


def _terms_of(found: Contraction) -> Extent:
    """The products of each sum."""
    first, *rest = (found.extents[x] for x in found.reduction)
    return math.prod((first, *(x for x in rest if isinstance(x, int)))) if isinstance(first, int) else first


def axes_of_k(load: BufferLoad, found: Contraction) -> int | None:
    """How many of an operand's last axes are k as one axis, axes of one element that follow included; None where it
    lies in another order."""
    count, units = len(found.reduction), _unit_axes(load, found.reduction[-1])
    end = len(load.indices) - units
    last = load.indices[max(0, end - count) : end]
    is_ordered = end > count and all(x is y for x, y in zip(last, found.reduction, strict=True))
    sizes = [found.extents[x] for x in found.reduction]
    is_whole = same_extents(load.buffer.shape[max(0, end - count) : end], sizes)
    return count + units if is_ordered and is_whole and load.buffer.strides is None else None


def _unit_axes(load: BufferLoad, k: PrimVar) -> int:
    """How many axes of one element follow that of k."""
    axes = zip(reversed(load.buffer.shape), reversed(load.indices), strict=True)
    return sum(1 for _ in takewhile(lambda axis: axis[0] == 1 and axis[1] is not k, axes))


def _fills(found: Contraction, row: DotProduct, terms: Extent) -> bool:
    """Whether there is work for whole matrices, as far as sizes are known."""
    assert found.r is not None
    least = (row.shape[0], row.shape[1], _FEWEST_STEPS * row.terms)
    sizes = (found.extents[found.r], found.extents[found.v], terms)
    return all(not isinstance(size, int) or size >= low for size, low in zip(sizes, least, strict=True))


def _may_have(row: DotProduct, k_extent: Extent, pins: Mapping[str, Any]) -> bool:
    rows, vectors, kc = pins.get("mr", 0), pins.get("nr_vectors", 0), pins.get("kc", k_extent)
    whole_k = kc == k_extent or (isinstance(kc, int) and kc % row.terms == 0)
    return rows in (0, row.shape[0], 2 * row.shape[0]) and vectors in (0, 1, 2) and whole_k


def _fits(stored: str, casts: Sequence[str], wanted: str) -> bool:
    """Whether a type holds all values of the stored one, which no conversion changes."""
    return includes(wanted, stored) and _keeps(stored, casts)


def _keeps(stored: str, casts: Sequence[str]) -> bool:
    """Whether no conversion changes a value."""
    return all(includes(b, a) for a, b in pairwise((stored, *casts)))
