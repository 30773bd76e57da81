"""Planning: the shape of the register tiles, and the sizes of the blocks that operands are packed in."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import Buffer, BufferLoad, Extent, PrimExpr, PrimVar
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.gemm.match import Contraction, uses

__all__ = [
    "INDEX", "Limits", "ceil_div", "packing_pays", "packs_whole", "tile_of", "tile_rows", "tile_vectors",
    "vector_tiers",
]  # fmt: skip

INDEX = "int64"


@dataclass(frozen=True)
class Limits:
    """What the machine has, and from where on work is done another way (the fields of TileContractions)."""

    lanes: int
    registers: int
    most_vectors: int
    widest: int
    block_sums: int
    block_rows: int
    pack_from: int
    parts: int = 16
    block_columns: int = 2048
    apart_from: int = 1 << 27
    masks: bool = False
    window_rows: int = 512
    early_terms: int = 8
    few_rows: int = 8
    few_parts: int = 8
    few_panels: int = 8
    stream_rows: int = 16
    stream_most: int = 128
    stream_from: int = 1 << 17
    stream_vectors: int = 4

    @property
    def most_rows(self) -> int:
        """Rows of a full tile: accumulators take what the vectors of B and one broadcast value leave."""
        return max(1, (self.registers - self.most_vectors - 2) // self.most_vectors)


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def tile_rows(extent: Extent, limits: Limits) -> int:
    """Rows of a tile: as many as fit, for a known number of rows shared out evenly (33 as 11 + 11 + 11)."""
    if not isinstance(extent, int):
        return limits.most_rows
    return ceil_div(extent, ceil_div(extent, limits.most_rows))


def tile_vectors(rows: int, columns: Extent, limits: Limits) -> int:
    """Vectors in a row of a tile: few rows leave registers for longer ones, which read more of B at a time."""
    vectors = limits.most_vectors
    while vectors < limits.widest and 2 * vectors * rows + 2 <= limits.registers:
        vectors *= 2
    if isinstance(columns, int):
        vectors = max(1, min(vectors, columns // limits.lanes))
    return vectors


def tile_of(limits: Limits) -> tuple[int, int]:
    """Rows and columns of a tile where both are many."""
    return limits.most_rows, tile_vectors(limits.most_rows, 1 << 20, limits) * limits.lanes


def vector_tiers(vectors: int, columns: Extent, limits: Limits) -> list[tuple[int, int]]:
    """(vectors, lanes) from the widest tile along the columns to single elements."""
    tiers = [(vectors, limits.lanes)]
    while vectors > 1:
        vectors = 1 << (vectors - 1).bit_length() - 1
        tiers.append((vectors, limits.lanes))
    lanes = limits.lanes // 2
    while lanes >= 1:
        if isinstance(columns, int) or lanes == 1:
            tiers.append((1, lanes))
        lanes //= 2
    return tiers


def packs_whole(found: Contraction, load: BufferLoad, var: PrimVar, constants: frozenset[Buffer]) -> bool:
    """Whether an operand is a constant that all outer iterations share, read by the terms and by `var` alone."""
    own = (var, *found.reduction)
    known = all(isinstance(found.extents[x], int) for x in own)
    return load.buffer in constants and known and not any(uses(load.indices, x) for x in found.outer)


def packing_pays(
    found: Contraction, limits: Limits, constants: frozenset[Buffer] = frozenset()
) -> bool | PrimExpr:
    """Whether packed operands are worth their copies, or the condition on symbolic sizes under which they are.

    Packed elements must be used by several tiles, and B too large to be read in its own order from a near cache. The
    copy of a constant B costs nothing, so that any number of rows is enough, or more than a few where a near cache
    holds B, as those read it as fast where it is.
    """
    if found.window is not None:
        return True  # packing is how windows become columns
    if found.r is None or len(found.reduction) != 1:
        return False
    rows, columns, sums = found.extents[found.r], found.extents[found.v], found.extents[found.reduction[0]]
    if not found.runs:
        return True  # packing is how B is brought into an order that can be read along
    several = _at_least(rows, 2 * limits.most_rows)
    wide = _at_least(columns, 2 * limits.most_vectors * limits.lanes)
    large = _at_least(_times(columns, sums), limits.pack_from)
    if packs_whole(found, found.vector, found.v, constants):
        huge = _at_least(_times(columns, sums), 4 * limits.pack_from) is True
        several = huge or _at_least(rows, limits.few_rows)
    result: bool | PrimExpr = True
    for condition in (several, wide, large):
        if condition is False or result is False:
            return False
        if condition is not True:
            result = condition if result is True else binary("and", result, condition)
    return result


def _at_least(a: Extent, b: int) -> bool | PrimExpr:
    most = most_of(a)
    if most is not None and most < b:
        return False
    return True if isinstance(a, int) else binary("ge", a, const(b, INDEX))


def _times(a: Extent, b: Extent) -> Extent:
    return a * b if isinstance(a, int) and isinstance(b, int) else binary("mul", as_expr(a, INDEX), as_expr(b, INDEX))
