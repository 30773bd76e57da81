"""Direct nests: tiles that read both operands where they are.

Where B comes from a far cache its rows are read from end to end, some at a time, and C holds the partial sums. Where
memory alone holds B and few rows read it, threads share parts of k, and each has partial sums of its own. Where C is of
another type, partial sums of some rows and columns at a time are on the stack:

for blocks of rows:  for blocks of columns:  for some rows of B:  for panels:  the block's tile += A's tile * B
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from weft.dtypes import bits
from weft.ir import FrozenMap, replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.gemm.convolutions.look_ahead import later_columns, looks_ahead
from weft.transform.autoschedule.gemm.epilogue import ends_of
from weft.transform.autoschedule.gemm.match import Contraction, steps_of
from weft.transform.autoschedule.gemm.tiles import (
    Access,
    Panel,
    Tile,
    blocks,
    column_at,
    cover_columns,
    cover_rows,
    epilogue_of,
    fresh,
    in_panels,
    plus,
    row_at,
    tiles_of,
    times,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, tile_rows, vectors_of
from weft.transform.autoschedule.rules.loops import BLOCK, SHARED

__all__ = ["direct", "streams"]

_ZERO = const(0, INDEX)
Element = Callable[[PrimExpr, PrimExpr], BufferLoad]
"""(row of a tile, vector in it) -> where its partial sums are."""


def direct(found: Contraction, capacity: Capacity) -> Stmt:
    """The nest, with a version of its own for a single row when the number of rows is symbolic."""
    rows = None if found.r is None else found.extents[found.r]
    far = _FarRows.of(found, capacity, 1 if rows is None else rows)
    if far is not None:
        return far.build()
    if found.parts is not None and _is_far(found, capacity):
        return _outer(found, _in_blocks_of_rows(found, capacity))
    if _streams_partial_sums(found, capacity):
        return _outer(found, _PartialSumBlocks(found, capacity).build())
    over_columns = _streams if streams(found, capacity) else _columns

    def single(panel: Panel, k_range: KRange | None) -> Stmt:
        return _tile(found, None if rows is None else lambda i: _ZERO, panel, 1, k_range)

    def many(panel: Panel, k_range: KRange | None) -> Stmt:
        return _rows(found, capacity, panel, k_range)

    if rows is None or (isinstance(rows, int) and rows == 1):
        return _outer(found, over_columns(found, capacity, 1, single))
    several = _outer(found, over_columns(found, capacity, tile_rows(rows, capacity), many))
    if isinstance(rows, int) or tiles_of(rows, tile_rows(rows, capacity)) is not None:
        return several
    far = _FarRows.of(found, capacity, 1)
    one = _outer(found, over_columns(found, capacity, 1, single)) if far is None else far.build()
    return IfThenElse(binary("eq", rows, const(1, INDEX)), one, several)


def _in_blocks_of_rows(found: Contraction, capacity: Capacity) -> Stmt:
    """All columns of some rows as those of a product without parts, which are put together next."""
    rows, sums_at = 1 if found.r is None else found.extents[found.r], found.partial_sums
    assert sums_at is not None
    size = 2 * capacity.max_mr if found.store.buffer.dtype == found.dtype else 8

    def block(first: PrimExpr, count: Extent) -> Stmt:
        most = rows if isinstance(rows, int) and rows < size else size
        if not isinstance(rows, int):
            most = binary("min", rows, const(size, INDEX))
        sums = Buffer("sums", (most, found.extents[found.v]), found.dtype)
        place = (_ZERO if found.r is None else found.r, found.v)
        scalar, extents = found.scalar, found.extents
        if found.r is not None:
            scalar = substitute(scalar, {found.r: plus(first, found.r)})
            extents = {**extents, found.r: count}
        product = dataclasses.replace(
            found,
            store=replace(sums_at, buffer=sums, indices=place),
            scalar=scalar,
            extents=extents,
            outer=(),
            epilogue=None,
            partial_sums=None,
            parts=None,
        )
        i = PrimVar("i", INDEX)
        complete = _completed(found, capacity, vectors_of(found, 1, capacity), sums, i, plus(first, i))
        return SeqStmt((AllocBuffer(sums), direct(product, capacity), For(i, 0, count, complete)))

    return block(_ZERO, 1) if found.r is None else blocks(found.r, rows, size, block)


def _completed(found: Contraction, capacity: Capacity, vectors: int, sums: Buffer, at: PrimExpr, row: PrimExpr) -> Stmt:
    """What becomes of the sums of a row, which are in row `at` of a buffer: along its first axis, where it has three,
    are parts of each."""
    chunks = sums.shape[0] if sums.ndim == 3 else 1

    def panel(panel: Panel) -> Stmt:
        chunk = PrimVar("chunk", INDEX)

        def columns(j: PrimExpr) -> PrimExpr:
            return column_at(found, panel.start, panel.width, times(j, panel.lanes))

        def part(j: PrimExpr) -> BufferLoad:
            place = (at, vector_index(columns(j), panel.lanes))
            load = BufferLoad(sums, place if sums.ndim == 2 else (chunk, *place))
            mask = panel.mask(j)
            return load if mask is None else replace(load, predicate=mask)

        return Tile(
            1,
            panel,
            scalar=lambda i: const(1.0, found.dtype),
            vector=part,
            element=lambda i, j: vector_at(row_at(found.target, found.r, row), found.v, columns(j), panel.lanes),
            loops=[(chunk, chunks)],
            accumulates=found.accumulates,
            epilogue=epilogue_of(found, panel, lambda i: row),
            parts=found.part_count,
            long_epilogue=found.has_long_epilogue,
        ).build(found.dtype)

    return cover_columns(found.v.name, found.extents[found.v], vectors, capacity, panel)


def streams(found: Contraction, capacity: Capacity) -> bool:
    """Whether rows of B are read from end to end, and C holds partial sums: it comes from a far cache, or may do so."""
    return found.partial_sums is None and not looks_ahead(found, capacity) and _is_far(found, capacity)


def _streams_partial_sums(found: Contraction, capacity: Capacity) -> bool:
    """Whether rows of B are read from end to end, and partial sums are on the stack."""
    rows = None if found.r is None else found.extents[found.r]
    has_many = isinstance(rows, int) and rows > capacity.knobs.stream_max_rows
    return found.partial_sums is not None and not has_many and _is_far(found, capacity)


def _is_far(found: Contraction, capacity: Capacity) -> bool:
    """Whether B comes from a far cache, or may do so."""
    if len(found.reduction) != 1:
        return False
    columns, k_extent = most_of(found.extents[found.v]), most_of(found.extents[found.reduction[0]])
    return columns is None or k_extent is None or columns * k_extent >= capacity.pack_from


def _stream_vectors(found: Contraction, rows: int, depth: int, capacity: Capacity) -> int:
    """Vectors in a row of a tile: many, so that memory is read in long runs, where `depth` rows of B stay in the second
    cache, as far as threads have some tiles each.
    """
    knobs, columns = capacity.knobs, found.extents[found.v]
    most = knobs.stream_min_vectors
    if isinstance(columns, int) and depth * columns * bits(found.vector.dtype) <= 8 * capacity.machine.l2_bytes:
        most = max(most, min(knobs.stream_vectors, columns // (capacity.lanes * knobs.few_chunks)))
    return vectors_of(found, rows, capacity, most)


def _is_in_last_cache(found: Contraction, columns: int, k_extent: Extent, capacity: Capacity) -> bool:
    """Whether B stays in a part of the last cache, which gives pieces of its rows as fast as whole ones: more rows of B
    at a time load and store fewer partial sums, and threads meet less often."""
    size = bits(found.vector.dtype) // 8
    return isinstance(k_extent, int) and 4 * columns * k_extent * size <= capacity.machine.l3_bytes


def _streams(found: Contraction, capacity: Capacity, rows: int, tile: Callable[[Panel, KRange | None], Stmt]) -> Stmt:
    """Some rows of B at a time from end to end, as memory likes to be read; C holds the partial sums."""
    (k,) = found.reduction
    columns, k_extent = found.extents[found.v], found.extents[k]
    depth = capacity.knobs.stream_k
    if isinstance(columns, int):  # enough for threads to share
        shared = columns if _is_in_last_cache(found, columns, k_extent, capacity) else columns * rows
        depth = max(depth, min(capacity.knobs.stream_max_k, capacity.knobs.stream_from // shared))
    vectors = _stream_vectors(found, rows, depth, capacity)

    def rows_of_b(start: PrimExpr, count: Extent) -> Stmt:
        def panel(at: Panel) -> Stmt:
            is_last = binary("ge", plus(start, as_expr(count, INDEX)), as_expr(k_extent, INDEX))
            return tile(at, KRange(start, count, binary("gt", start, _ZERO), is_last))

        return cover_columns(found.v.name, columns, vectors, capacity, panel, capacity.chunks)

    return blocks(k, k_extent, depth, rows_of_b, at_least_one=True, one_loop=True)


@dataclass(frozen=True)
class _FarRows:
    """Rows of B that memory alone holds, in chunks along k that threads share.

    for chunks: for some rows: for panels: partial[chunk] += A * B        partial: all columns of a few rows
    for panels: C = sums of partial, or what becomes of it

    Memory is read in long runs, some rows side by side, and what comes next is prefetched. The chunks are as many
    whatever the number of threads, so that it changes no result.
    """

    found: Contraction
    capacity: Capacity
    rows: int
    columns: int
    k_extent: int

    @classmethod
    def of(cls, found: Contraction, capacity: Capacity, rows: Extent) -> _FarRows | None:
        """The nest, where B is in no cache, one matrix, and a few rows read it; None for others."""
        if not _is_far(found, capacity) or found.outer or not isinstance(rows, int) or not capacity.machine.l3_bytes:
            return None
        columns, k_extent = found.extents[found.v], found.extents[found.reduction[0]]
        knobs = capacity.knobs
        if not isinstance(columns, int) or not isinstance(k_extent, int) or rows > knobs.stream_far_rows:
            return None
        if _is_in_last_cache(found, columns, k_extent, capacity) or k_extent < knobs.few_chunks * knobs.stream_far_k:
            return None
        if knobs.few_chunks * rows * columns * bits(found.dtype) > 8 * knobs.partial_sums_bytes:
            return None
        return cls(found, capacity, rows, columns, k_extent)

    def build(self) -> Stmt:
        """The partial sums, and C from them."""
        chunks = self.capacity.knobs.few_chunks
        partial = Buffer("partial_sums", (chunks, self.rows, self.columns), self.found.dtype)
        size = ceil_div(self.k_extent, chunks)
        chunk = PrimVar("chunk", INDEX)
        start = times(chunk, size)
        count: Extent = size
        if self.k_extent % size:
            left = binary("sub", const(self.k_extent, INDEX), start)
            count = binary("max", _ZERO, binary("min", left, const(size, INDEX)))
        body = self._chunk(partial, chunk, start, count)
        shared = For(chunk, 0, chunks, body, annotations=FrozenMap({SHARED: True}), span=self.found.store.span)
        return SeqStmt((AllocBuffer(partial), shared, *self._finish(partial)))

    @property
    def _vectors(self) -> int:
        return vectors_of(self.found, self.rows, self.capacity, self.capacity.knobs.stream_far_vectors)

    def _chunk(self, partial: Buffer, chunk: PrimExpr, first: PrimExpr, count: Extent) -> Stmt:
        """The sums along a part of k."""
        found, knobs = (
            dataclasses.replace(self.found, epilogue=None, accumulates=False, parts=None),
            self.capacity.knobs,
        )
        depth, vectors = knobs.stream_far_k, self._vectors
        ahead = min(self.columns - 1, knobs.stream_ahead * 8 // bits(found.vector.dtype))

        def rows_of_b(at: PrimExpr, steps: Extent) -> Stmt:
            def panel(panel: Panel) -> Stmt:
                later = plus(panel.start, const(ahead, INDEX))
                beyond = binary("ge", later, const(self.columns, INDEX))
                column = Select(beyond, binary("sub", later, const(self.columns, INDEX)), later)
                row = plus(plus(first, at), Select(beyond, const(depth, INDEX), _ZERO))
                k_range = KRange(
                    plus(first, at), steps, binary("gt", at, _ZERO), None, (row, column) if ahead else None
                )

                def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
                    place = plus(panel.start, times(j, panel.lanes))
                    return BufferLoad(partial, (chunk, i, vector_index(place, panel.lanes)))

                own = None if found.r is None else (lambda i: i)
                return _tile(found, own, panel, self.rows, k_range, element)

            return cover_columns(found.v.name, self.columns, vectors, self.capacity, panel)

        (k,) = found.reduction
        return blocks(k, count, depth, rows_of_b, at_least_one=True, one_loop=True)

    def _finish(self, partial: Buffer) -> list[Stmt]:
        """C, a row after the other."""
        rows = [const(number, INDEX) for number in range(self.rows)]
        return [_completed(self.found, self.capacity, self._vectors, partial, row, row) for row in rows]


@dataclass(frozen=True)
class _PartialSumBlocks:
    """Some rows of B at a time from end to end, for a block of rows and columns whose partial sums are on the stack."""

    found: Contraction
    capacity: Capacity

    def build(self) -> Stmt:
        """All rows; a single one of a symbolic number has a version of its own."""
        found = self.found
        if found.r is None:
            return self._columns(None, 1)
        rows = found.extents[found.r]
        if isinstance(rows, int):
            return self._columns(_ZERO, rows)
        size = 2 * self.capacity.max_mr
        several = blocks(found.r, rows, size, self._columns)
        return IfThenElse(binary("eq", rows, const(1, INDEX)), self._columns(_ZERO, 1), several)

    def _columns(self, first: PrimExpr | None, rows: Extent) -> Stmt:
        """The blocks of columns for `rows` rows from `first` on (None: there are no rows)."""
        found, capacity = self.found, self.capacity
        columns = found.extents[found.v]
        most = rows if isinstance(rows, int) else 2 * capacity.max_mr
        vectors = _stream_vectors(found, tile_rows(most, capacity), capacity.knobs.stream_k, capacity)
        width = vectors * capacity.lanes
        size = min(capacity.knobs.stream_max_columns, capacity.machine.stack_bytes * 8 // (most * bits(found.dtype)))
        if isinstance(columns, int):  # enough for threads to share
            size = min(size, ceil_div(columns, capacity.knobs.few_chunks))
        size = max(1, size // width) * width

        def block(start: PrimExpr, count: Extent) -> Stmt:
            partial_sums = Buffer("partial_sums", (most, size), found.dtype)
            return SeqStmt((AllocBuffer(partial_sums), self._over_k(partial_sums, first, rows, start, count, vectors)))

        return blocks(found.v, columns, size, block, one_loop=True)

    def _over_k(
        self, partial_sums: Buffer, first: PrimExpr | None, rows: Extent, start: PrimExpr, count: Extent, vectors: int
    ) -> Stmt:
        """A block of columns from `start` on."""
        found, capacity = self.found, self.capacity
        (k,) = found.reduction
        k_extent, width = found.extents[k], vectors * capacity.lanes

        def rows_of_b(at: PrimExpr, depth: Extent) -> Stmt:
            is_last = binary("ge", plus(at, as_expr(depth, INDEX)), as_expr(k_extent, INDEX))
            k_range = KRange(at, depth, binary("gt", at, _ZERO), is_last)

            def panel(panel: Panel) -> Stmt:
                def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
                    column = plus(panel.start, times(j, panel.lanes))
                    return BufferLoad(partial_sums, (i, vector_index(column, panel.lanes)))

                there = dataclasses.replace(panel, start=plus(start, panel.start))
                return self._rows(there, k_range, element, first, rows)

            return cover_columns(found.v.name, in_panels(found, count, width), vectors, capacity, panel)

        return blocks(k, k_extent, capacity.knobs.stream_k, rows_of_b, at_least_one=True, one_loop=True)

    def _rows(self, panel: Panel, k_range: KRange, element: Element, first: PrimExpr | None, rows: Extent) -> Stmt:
        """The tiles of a panel."""
        found, capacity = self.found, self.capacity
        if first is None or found.r is None:
            return _tile(found, None, panel, 1, k_range, element)
        start, most = first, tile_rows(rows, capacity)

        def tile(at: PrimExpr, count: int, clamp: Access) -> Stmt:
            return _tile(
                found,
                lambda i: plus(start, clamp(plus(at, i))),
                panel,
                count,
                k_range,
                lambda i, j: element(clamp(plus(at, i)), j),
                capacity,
            )

        return cover_rows(found.r.name, rows, most, (ceil_div(most, 2),), tile)


@dataclass(frozen=True)
class KRange:
    """A range of k: `extent` from `start` on, whether it adds to partial sums, and completes them.

    `following` is the row and the column of B from which on as much as a tile reads is prefetched.
    """

    start: PrimExpr
    extent: Extent
    accumulates: PrimExpr
    is_last: PrimExpr | None
    following: tuple[PrimExpr, PrimExpr] | None = None


def _outer(found: Contraction, body: Stmt) -> Stmt:
    variables = {var: fresh(var) for var in found.outer}
    body = substitute(body, variables)
    for var in reversed(found.outer):
        body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
    return body


def _columns(found: Contraction, capacity: Capacity, rows: int, tile: Callable[[Panel, KRange | None], Stmt]) -> Stmt:
    columns = found.extents[found.v]
    vectors = vectors_of(found, rows, capacity)
    return cover_columns(found.v.name, columns, vectors, capacity, lambda panel: tile(panel, None))


def _rows(found: Contraction, capacity: Capacity, panel: Panel, k_range: KRange | None) -> Stmt:
    assert found.r is not None
    extent = found.extents[found.r]
    most = tile_rows(extent, capacity)
    return cover_rows(
        found.r.name,
        extent,
        most,
        (ceil_div(most, 2),),
        lambda at, rows, clamp: _tile(found, lambda i: clamp(plus(at, i)), panel, rows, k_range, capacity=capacity),
    )


def _tile(
    found: Contraction,
    row: Access | None,
    panel: Panel,
    rows: int,
    k_range: KRange | None = None,
    element: Element | None = None,
    capacity: Capacity | None = None,
) -> Stmt:
    """One tile, over all of k or a range of it; `element` is where its partial sums are (None: in C).

    With a `capacity` it prefetches where sums end.
    """
    reduction: dict[PrimVar, PrimExpr]
    if k_range is None:
        variables = {var: fresh(var) for var in found.reduction}
        loops = [(variables[var], found.extents[var]) for var in found.reduction]
        reduction = {**variables}
    else:
        p = PrimVar("p", INDEX)
        loops = [(p, k_range.extent)]
        reduction = {found.reduction[0]: plus(k_range.start, p)}
    target = found.target
    vectors, lanes = panel.vectors, panel.lanes

    def columns(load: BufferLoad, j: PrimExpr) -> BufferLoad:
        if vectors == 1:
            return vector_at(load, found.v, panel.start, lanes)
        return vector_at(load, found.v, column_at(found, panel.start, panel.width, times(j, lanes)), lanes)

    def in_row(load: BufferLoad, i: PrimExpr) -> BufferLoad:
        return load if row is None else row_at(load, found.r, row(i))

    def of_b(j: PrimExpr) -> PrimExpr:
        load = substitute(columns(found.vector, j), reduction)
        mask = panel.mask(j)
        return found.of_b(load if mask is None else replace(load, predicate=mask))

    prefetch_b: list[BufferLoad] = []
    if k_range is not None and k_range.following is not None:
        row_of_b, column = k_range.following
        later = {found.reduction[0]: plus(row_of_b, loops[0][0])}
        places = (plus(column, const(j * lanes, INDEX)) for j in range(vectors))
        prefetch_b = [substitute(vector_at(found.vector, found.v, at, lanes), later) for at in places]
    elif row is not None and capacity is not None and k_range is None and looks_ahead(found, capacity):
        prefetch_b = later_columns(found, capacity, panel, row(_ZERO), rows, loops[0][0])
    is_last = None if k_range is None else k_range.is_last
    return Tile(
        rows,
        panel,
        scalar=lambda i: found.of_a(substitute(in_row(found.scalar, i), reduction)),
        vector=of_b,
        element=element or (lambda i, j: columns(in_row(target, i), j)),
        loops=loops,
        accumulates=found.accumulates or (k_range is not None and k_range.accumulates),
        is_last=is_last,
        epilogue=epilogue_of(found, panel, row),
        parts=found.part_count,
        long_epilogue=found.has_long_epilogue,
        adds_last=found.is_long_sum,
        prefetch_b=prefetch_b,
        ends=None if capacity is None else ends_of(found, capacity, panel, rows, row, is_last),
        block=None if k_range is not None else _block(found),
    ).build(target.buffer.dtype)


def _block(found: Contraction) -> int | None:
    """How many steps of the first loop over k are added up by themselves; None: all of them."""
    if not found.is_long_sum:
        return None
    return max(1, BLOCK // steps_of(found.extents[var] for var in found.reduction[1:]))
