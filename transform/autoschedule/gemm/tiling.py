"""Tiling: the shape of the register tiles, and the sizes of the blocks that operands are packed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.dtypes import bits
from weft.ir import FrozenMap
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import Binary, Buffer, BufferLoad, Extent, IntImm, PrimExpr, PrimVar
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.gemm.dot_products.dot import dot_of
from weft.transform.autoschedule.gemm.match import Contraction, uses
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.strides import step_along

__all__ = [
    "INDEX",
    "Capacity",
    "at_least",
    "ceil_div",
    "even_vectors",
    "packing_pays",
    "packs_whole",
    "tile_of",
    "tile_rows",
    "tile_vectors",
    "vector_tiers",
    "vectors_of",
]

INDEX = "int64"
_UNEVEN_FROM = 1 << 13
"""Elements of B from which on operands are packed where the length of sums is a symbol."""
_SMALL_PART = 8
"""Of the elements from which on B is packed for its own sake."""


@dataclass(frozen=True)
class Capacity:
    """What a machine and the knobs give contractions of one dtype; blocks are no larger than the caches have room for.

    `pins` are values of a decision that are followed whatever the rest says.

    >>> Capacity(MachineModel(512, 32), Knobs(), "float32").max_mr
    14
    """

    machine: MachineModel
    knobs: Knobs
    dtype: str
    pins: Mapping[str, Any] = FrozenMap()

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector."""
        return max(1, self.machine.vector_bits // bits(self.dtype))

    @property
    def masks(self) -> bool:
        """Whether part of a vector is loaded and stored by one instruction."""
        return self.machine.has_masks

    @cached_property
    def max_mr(self) -> int:
        """Rows of a full tile: accumulators take what the vectors of B and one broadcast value leave."""
        vectors = self.knobs.nr_vectors
        return max(1, (self.machine.vector_registers - vectors - 2) // vectors)

    @cached_property
    def mc(self) -> int:
        """Rows of A in a packed block: with kc columns it has room in the second cache."""
        return self._room(self.knobs.mc, self.machine.l2_bytes, self.max_mr)

    @cached_property
    def nc(self) -> int:
        """Columns of B that are packed at a time: with kc rows they have room in half of the last cache."""
        return self._room(self.knobs.nc, self.machine.l3_bytes // 2, self.knobs.nr_vectors * self.lanes)

    @cached_property
    def chunks(self) -> int:
        """The maximum of chunks that threads share: a few for each core, where their number is known."""
        cores = self.machine.cores
        return min(self.knobs.chunks, 4 * cores) if cores else self.knobs.chunks

    @cached_property
    def pack_from(self) -> int:
        """Elements of B from which on operands are packed: half of the second cache, of four bytes each."""
        return self.knobs.pack_from or max(1, self.machine.l2_bytes // 8)

    def _room(self, wanted: int, cache: int, minimum: int) -> int:
        room = cache // (self.knobs.kc * bits(self.dtype) // 8)
        return min(wanted, max(room, minimum)) if cache else wanted


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def tile_rows(extent: Extent, capacity: Capacity) -> int:
    """Rows of a tile: as many as fit, for a known number of rows shared out evenly (33 as 11 + 11 + 11).

    Where an unknown number is so many times what most of a tile holds, there is no remainder in tiles of that.
    """
    if "mr" in capacity.pins:
        return capacity.pins["mr"]
    if not isinstance(extent, int):
        factor = _factor_of(extent)
        return factor if capacity.max_mr <= 2 * factor <= 2 * capacity.max_mr else capacity.max_mr
    return ceil_div(extent, ceil_div(extent, capacity.max_mr))


def _factor_of(extent: PrimExpr) -> int:
    """What an extent is known to be so many times of."""
    if isinstance(extent, Binary) and extent.kind == "mul" and isinstance(extent.b, IntImm):
        return extent.b.value
    return 1


def tile_vectors(rows: int, columns: Extent, capacity: Capacity) -> int:
    """Vectors in a row of a tile: few rows leave registers for longer ones, which read more of B at a time."""
    if "nr_vectors" in capacity.pins and rows == capacity.pins.get("mr", rows):
        return capacity.pins["nr_vectors"]
    vectors = capacity.knobs.nr_vectors
    while vectors < capacity.knobs.nr_max_vectors and 2 * vectors * rows + 2 <= capacity.machine.vector_registers:
        vectors *= 2
    if isinstance(columns, int):
        whole = ceil_div(columns, capacity.lanes) if capacity.masks else columns // capacity.lanes
        vectors = max(1, min(vectors, whole))
    return vectors


def vectors_of(found: Contraction, rows: int, capacity: Capacity, most: int = 1 << 20) -> int:
    """Vectors in a row of a tile of a contraction, at most so many."""
    return even_vectors(found, min(tile_vectors(rows, found.extents[found.v], capacity), most), capacity)


def even_vectors(found: Contraction, vectors: int, capacity: Capacity) -> int:
    """So many vectors, or as many as leave no remainder with each part of the columns in whole ones."""
    if found.parts is None:
        return vectors
    each = max(1, vectors // found.parts.count)
    while found.parts.columns % (each * capacity.lanes):
        each -= 1
    return each * found.parts.count


def tile_of(capacity: Capacity) -> tuple[int, int]:
    """Rows and columns of a tile where both are many."""
    return capacity.max_mr, tile_vectors(capacity.max_mr, 1 << 20, capacity) * capacity.lanes


def vector_tiers(vectors: int, columns: Extent, capacity: Capacity) -> list[tuple[int, int]]:
    """(vectors, lanes) from the widest tile along the columns to single elements."""
    tiers = [(vectors, capacity.lanes)]
    while vectors > 1:
        vectors = 1 << (vectors - 1).bit_length() - 1
        tiers.append((vectors, capacity.lanes))
    lanes = capacity.lanes // 2
    while lanes >= 1:
        if isinstance(columns, int) or lanes == 1:
            tiers.append((1, lanes))
        lanes //= 2
    return tiers


def packs_whole(found: Contraction, load: BufferLoad, var: PrimVar, constants: frozenset[Buffer]) -> bool:
    """Whether an operand is a constant that all outer iterations share, read by k and by `var` alone."""
    own = (var, *found.reduction)
    known = all(isinstance(found.extents[x], int) for x in own)
    return load.buffer in constants and known and not any(uses(load.indices, x) for x in found.outer)


def packing_pays(found: Contraction, capacity: Capacity, constants: frozenset[Buffer] = frozenset()) -> bool | PrimExpr:
    """Whether packed operands are worth their copies, or the condition on symbolic sizes under which they are.

    Packed elements must be used by several tiles, and B too large to be read in its own order from a near cache, or A
    and C: then blocks of rows, which packed operands go in, meet all panels before the next ones. The copy of a
    constant B costs nothing, so that any number of rows is enough: each panel is one run, which even one row reads
    faster than pieces of rows. Where a near cache holds B, few rows read it as fast where it is. Elements that are
    converted are worth it wherever a few tiles are, and for few columns where vectors of A are converted along k.
    """
    if found.window is not None:
        return True  # packing is how windows become columns
    if found.r is None or len(found.reduction) != 1:
        return False
    rows, columns, k_extent = found.extents[found.r], found.extents[found.v], found.extents[found.reduction[0]]
    if not found.runs:
        return True  # packing is how B is brought into an order that can be read along
    several = at_least(rows, 2 * capacity.max_mr)
    wide = at_least(columns, 2 * capacity.knobs.nr_vectors * capacity.lanes)
    large = _either(
        at_least(_times(columns, k_extent), _large_from(k_extent, capacity)), _streams_rows(found, capacity)
    )
    if any(found.casts):  # a copy converts each element once, which tiles do again and again
        has_dot = dot_of(found, capacity.machine) is not None
        several = at_least(rows, 4 if has_dot else 16 if isinstance(rows, int) else 8)
        large = at_least(_times(columns, k_extent), min(capacity.knobs.converted_from, capacity.pack_from))
        reads_rows = bool(found.casts[0]) and step_along(found.scalar, found.reduction[0]) == 1
        wide = at_least(columns, 2 if reads_rows else capacity.knobs.nr_vectors * capacity.lanes)
    if packs_whole(found, found.vector, found.v, constants):
        is_far = at_least(_times(columns, k_extent), capacity.pack_from) is True
        several = is_far or at_least(rows, capacity.knobs.few_rows)
    result: bool | PrimExpr = True
    for condition in (several, wide, large):
        if condition is False or result is False:
            return False
        if condition is not True:
            result = condition if result is True else binary("and", result, condition)
    return result


def _large_from(k_extent: Extent, capacity: Capacity) -> int:
    """Elements of B from which on it is packed: fewer where rows of A are at distances that only the call knows, as a
    tile has no registers for the places of all of them."""
    return capacity.pack_from if isinstance(k_extent, int) else min(_UNEVEN_FROM, capacity.pack_from)


def _streams_rows(found: Contraction, capacity: Capacity) -> bool | PrimExpr:
    """Whether rows of A and C are more than the second cache holds, so that they come anew for each panel
    of a B that is read where it is. Of an unknown number of rows only where B is not small, as there are two forms."""
    assert found.r is not None
    rows, columns, k_extent = found.extents[found.r], found.extents[found.v], found.extents[found.reduction[0]]
    if not isinstance(columns, int) or not isinstance(k_extent, int):
        return False
    if not isinstance(rows, int) and columns * k_extent < capacity.pack_from // _SMALL_PART:
        return False
    return at_least(_times(rows, columns + k_extent), 2 * capacity.pack_from)


def _either(a: bool | PrimExpr, b: bool | PrimExpr) -> bool | PrimExpr:
    """Whether one of two conditions holds."""
    if isinstance(a, bool):
        return True if a else b
    return (True if b else a) if isinstance(b, bool) else binary("or", a, b)


def at_least(a: Extent, b: int) -> bool | PrimExpr:
    """Whether a size is so large, or the condition that it is."""
    maximum = most_of(a)
    if maximum is not None and maximum < b:
        return False
    return True if isinstance(a, int) else binary("ge", a, const(b, INDEX))


def _times(a: Extent, b: Extent) -> Extent:
    return a * b if isinstance(a, int) and isinstance(b, int) else binary("mul", as_expr(a, INDEX), as_expr(b, INDEX))
