"""Looking ahead: tiles that read B where it is prefetch what a later panel reads of it.

for products:  for panels of columns:  for tiles of rows:  for steps of k:  prefetch B[k, a later panel]; products

Each step of k meets another row of B, often in another page, of which a panel reads a few cache lines: no processor
prefetches them by itself. So it is with images, which 1x1 convolutions of few channels read once. A panel stays near
while all tiles of rows meet it, and the last panels of one product look ahead to the first ones of the next.
"""

from __future__ import annotations

import math

from weft.dtypes import bits
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import BufferLoad, PrimExpr, PrimVar, Select
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.tiles import Panel, plus, times
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, tile_rows, vectors_of

__all__ = ["later_columns", "looks_ahead"]

_FEW_TILES = 2
"""Tiles of rows that meet a panel from the second cache as well: there is little else that they would read."""
_MIN_PANELS = 4
"""Panels of columns that there are at least."""
_WAYS = 8
"""Lines that a set of the first cache holds at least."""
_AHEAD, _MAX_PANELS = 2000, 4
"""Vectors of products that take as long as memory does, and panels up to which tiles look ahead for them."""


def looks_ahead(found: Contraction, capacity: Capacity) -> bool:
    """Whether tiles look ahead: in one of many products, whose sums have no more rows than steps of k.

    Results of more rows would be written in pieces as short as those that are read, and a panel of B has to stay near.
    """
    is_plain = len(found.reduction) == 1 and found.parts is None and not any(found.casts)
    if found.r is None or found.window is not None or not found.outer or not is_plain:
        return False
    extents = [*(found.extents[x] for x in (found.r, found.v, found.reduction[0])), found.vector.buffer.shape[-1]]
    if not all(isinstance(extent, int) for extent in extents):
        return False
    rows, columns, steps, _ = (extent for extent in extents if isinstance(extent, int))
    most = tile_rows(rows, capacity)
    width = vectors_of(found, most, capacity) * capacity.lanes
    panel_bytes = width * steps * bits(found.vector.dtype) // 8
    if rows > steps or columns < _MIN_PANELS * width:
        return False
    if rows <= _FEW_TILES * most:
        return 4 * panel_bytes <= capacity.machine.l2_bytes
    if columns * steps >= capacity.pack_from or rows * (columns + steps) >= 2 * capacity.pack_from:
        return False  # packed panels are better
    return 2 * panel_bytes <= capacity.machine.l1_bytes and steps <= _rows_in_first_cache(found, capacity, width)


def _rows_in_first_cache(found: Contraction, capacity: Capacity, width: int) -> int:
    """How many rows of a panel the first cache holds: those that are a power of two apart share a few of its sets."""
    line, length = capacity.machine.line_bytes, found.vector.buffer.shape[-1]
    assert isinstance(length, int)
    size = bits(found.vector.dtype) // 8
    sets = max(1, capacity.machine.l1_bytes // (_WAYS * line))
    apart = length * size
    of_starts = sets // math.gcd(apart // line, sets) if apart % line == 0 else sets
    return _WAYS * min(of_starts, sets // ceil_div(width * size, line))


def later_columns(
    found: Contraction, capacity: Capacity, panel: Panel, row: PrimExpr, rows: int, k: PrimExpr
) -> list[BufferLoad]:
    """What a step of k of a tile of `rows` rows from `row` on prefetches: its share of the row of a later panel."""
    extent, columns, steps = (found.extents[x] for x in (found.r, found.v, found.reduction[0]) if x is not None)
    assert isinstance(extent, int)
    assert isinstance(columns, int)
    assert isinstance(steps, int)
    most = tile_rows(extent, capacity)
    tiles = ceil_div(extent, most)
    line = max(1, capacity.machine.line_bytes * 8 // bits(found.vector.dtype))
    lines = ceil_div(panel.width, line)
    each = ceil_div(lines, tiles)
    panels = min(_MAX_PANELS, ceil_div(_AHEAD, steps * rows * tiles * panel.vectors))
    outer, start = _after(found, plus(panel.start, const(panels * panel.width, INDEX)), columns)
    first = times(binary("floordiv", row, const(most, INDEX)), each)
    loads: list[BufferLoad] = []
    for number in range(each):
        part = binary("min", plus(first, const(number, INDEX)), const(lines - 1, INDEX))
        column = binary("min", plus(start, times(part, line)), const(columns - 1, INDEX))
        loads.append(substitute(found.vector, {**outer, found.v: column, found.reduction[0]: k}))
    return loads


def _after(found: Contraction, column: PrimExpr, columns: int) -> tuple[dict[PrimVar, PrimExpr], PrimExpr]:
    """Where a column is that may be one of the next product; one beyond the last product's where nothing is known."""
    first, *rest = found.outer
    if rest or found.vector.indices[0] is not first:
        return {}, column
    is_beyond = binary("ge", column, const(columns, INDEX))
    last = binary("sub", as_expr(found.extents[first], INDEX), const(1, INDEX))
    product = binary("min", plus(first, Select(is_beyond, const(1, INDEX), const(0, INDEX))), last)
    return {first: product}, Select(is_beyond, binary("sub", column, const(columns, INDEX)), column)
