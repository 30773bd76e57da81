"""Packed nests: blocks of both operands are copied into the order in which tiles read them.

for blocks of columns:  for blocks of k:
  for panels of B, a tile wide:  B's panel packed
  for blocks of rows:
    A's block packed                                    stays in the second cache: read by every panel
    for panels of B:
      for tiles of rows:  C's tile += A's tile * panel  C holds the partial sums from one block to the next

Blocks of columns bound the memory that panels are kept in; tiles prefetch the panel some steps ahead, as it comes from
a further cache, and while they sum, step by step, the part of C that they are added to in the end: sums of blocks lose
fewer digits than one long sum, and no tile waits for C. Where few tiles read a panel of a constant, which may come from
memory, they share out what the next one has, and prefetch that: sums of few rows are done before what is asked for some
steps ahead is there. With a single block of rows each panel is packed right before its tiles, and stays in the first
cache.
The panels are shared out to chunks, so that threads may take one each. Where there are few panels and many rows, the
tiles of rows are what threads share:

for blocks of k:
  for panels of B:  B's panel packed
  for tiles of rows:  for panels of B:  C's tile += A's tile * panel

Where C is narrower than the sums and k takes several blocks, partial sums have memory of their own, which one block of
rows and columns needs; each panel is packed right before its tiles then:

for blocks of columns:  for blocks of rows:  for blocks of k:
  A's block packed
  for panels of B:  B's panel packed;  for tiles of rows:  the block's tile += A's tile * panel   (the last: C's tile)

Where rows of a narrow A are few, the blocks of columns are what threads share: each packs A for itself.

Columns that no whole panel covers are a panel under a mask.

Source: Goto and van de Geijn, Anatomy of high-performance matrix multiplication, 2008.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const, unary
from weft.ir.tensor import (
    AllocBuffer,
    Buffer,
    BufferLoad,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import (
    Blocking,
    depth_of,
    has_matrices,
    in_one_loop,
    keeps_sums,
    reads_parts,
    row_of_a,
    rows_of_parts,
    steps_of_part,
)
from weft.transform.autoschedule.gemm.dot_products.matrix_packing import MatrixPacking
from weft.transform.autoschedule.gemm.dot_products.matrix_tile import MatrixTile, Part
from weft.transform.autoschedule.gemm.dot_products.packing import DotPacking
from weft.transform.autoschedule.gemm.epilogue import ends_of, has_far_results, operands_of
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.packing import Packing, place_in_b
from weft.transform.autoschedule.gemm.tiles import (
    Access,
    Ends,
    Panel,
    Tile,
    blocks,
    ceil_of,
    column_at,
    cover,
    cover_columns,
    cover_rows,
    divided,
    epilogue_of,
    fresh,
    in_panels,
    minus,
    plus,
    row_at,
    times,
    times_of,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX, ceil_div
from weft.transform.autoschedule.gemm.whole_constants import row_of_constant
from weft.transform.autoschedule.rules.loops import sequence

__all__ = ["packed"]


RowTile = Callable[[PrimExpr, int, Access], Stmt]
"""A tile of rows: where it starts, how many rows it has, what keeps a row inside the range."""
_FEW_TURNS = 3
"""Tiles that meet a panel one after another in less time than the next panel takes to come from memory."""
_ROWS_AT_ONCE = 128
"""Rows of B that all panels are packed of before the next ones."""
Panels = Callable[[Callable[[Panel], Stmt]], Stmt]
"""Loops over panels around what is done with each."""


def packed(blocking: Blocking) -> Stmt:
    """The loops of a contraction over packed blocks, inside those over outer variables."""
    return _Loops(blocking, _packing_of(blocking)).build()


def _packing_of(blocking: Blocking) -> Packing | DotPacking:
    if blocking.dot is None:
        return Packing(blocking)
    of_dot = MatrixPacking if blocking.dot.instruction.is_matrix else DotPacking
    return of_dot(blocking, blocking.dot)


@dataclass(frozen=True)
class Remainder:
    """The remainder of rows: so many, from `at` on in the last block."""

    is_last: PrimExpr
    at: int
    rows: int


@dataclass(frozen=True)
class Rows:
    """A block of rows: `count` of them from `first` on; with a `remainder` these are whole tiles, and it follows."""

    first: PrimExpr
    count: Extent
    remainder: Remainder | None = None


@dataclass(frozen=True)
class KBlock:
    """A block of k: `steps` of the outermost reduction from `k` on, for a block of columns from `column` on."""

    k: PrimExpr
    steps: Extent
    column: PrimExpr


@dataclass(frozen=True)
class _Loops:
    """The loops over blocks, panels and tiles."""

    blocking: Blocking
    packing: Packing | DotPacking

    def build(self) -> Stmt:
        """The loops over blocks, inside those over outer variables."""
        blocking, found = self.blocking, self.blocking.found
        columns = found.extents[found.v]
        in_blocks = blocking.reuses_panels or blocking.has_partial_sums
        if (isinstance(columns, int) and columns <= blocking.nc) or not in_blocks:
            body = self._over_k(const(0, INDEX), columns)
        else:
            body = blocks(found.v, columns, blocking.nc, self._over_k, one_loop=True)
        variables = {var: fresh(var) for var in found.outer}
        body = substitute(body, variables)
        for var in reversed(found.outer):
            body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
        views = (blocking.view_of_a, blocking.a_along_k)
        declared = [DeclBuffer(view) for view in views if view is not None and view is not found.scalar.buffer]
        return sequence([*declared, *([] if blocking.shares_blocks else self._buffers()), body])

    def _buffers(self) -> list[Stmt]:
        """What packed operands and partial sums are kept in."""
        blocking = self.blocking
        own: list[Stmt] = [AllocBuffer(blocking.a)] if self._packs_a else []
        own += [] if blocking.constant_b else [AllocBuffer(blocking.b)]
        own += [] if blocking.rows_of_b is None else [AllocBuffer(blocking.rows_of_b)]
        return own + ([AllocBuffer(blocking.partial_sums)] if blocking.has_partial_sums else [])

    @property
    def _packs_a(self) -> bool:
        return self.blocking.view_of_a is None and not self.blocking.constant_a

    def _over_k(self, first: PrimExpr, columns: Extent) -> Stmt:
        """The blocks of k for columns from `first` on."""
        blocking = self.blocking
        extent = blocking.found.extents[blocking.k]

        def panels(inner: Callable[[Panel], Stmt]) -> Stmt:
            return cover_columns(
                blocking.found.v.name,
                in_panels(blocking.found, columns, blocking.nr),
                blocking.nr_vectors,
                blocking.capacity,
                lambda panel: inner(_moved(panel, first)),
                blocking.chunks,
                blocking.separate_remainders,
                has_matrices(blocking),
            )

        def over_k(block: Callable[[KBlock], Stmt]) -> Stmt:
            return blocks(
                blocking.k,
                extent,
                blocking.steps,
                lambda k, steps: block(KBlock(k, steps, first)),
                at_least_one=True,
                one_loop=in_one_loop(blocking),
            )

        if not blocking.has_partial_sums:
            return over_k(lambda k_block: self._block(panels, k_block))
        body = self._blocks_of_rows(
            lambda rows: over_k(lambda k_block: self._by_panels(rows, panels, k_block, self._pack_b(k_block)))
        )
        return sequence([*self._buffers(), body]) if blocking.shares_blocks else body

    def _pack_b(self, k_block: KBlock) -> Callable[[Panel], Stmt]:
        """How a panel of a block is packed."""
        return lambda panel: self.packing.panel_of_b(k_block.k, k_block.steps, panel)

    def _block(self, panels: Panels, k_block: KBlock) -> Stmt:
        """A block of B with all blocks of rows."""
        blocking, pack_b = self.blocking, self._pack_b(k_block)
        if not blocking.shares_rows and not blocking.reuses_panels:
            return self._blocks_of_rows(lambda rows: self._by_panels(rows, panels, k_block, pack_b))
        if blocking.constant_b:
            return self._blocks_of_rows(lambda rows: self._by_rows(rows, panels, k_block))
        packing = _packed_in_runs(self.packing, k_block, panels) or panels(pack_b)
        if blocking.has_several_blocks is not None:
            packing = IfThenElse(blocking.has_several_blocks, packing, None)
        if blocking.shares_rows or _goes_along_rows(blocking):
            return sequence([packing, self._blocks_of_rows(lambda rows: self._by_rows(rows, panels, k_block))])
        return sequence([packing, self._blocks_of_rows(lambda rows: self._by_panels(rows, panels, k_block, pack_b))])

    def _by_rows(self, rows: Rows, panels: Panels, k_block: KBlock) -> Stmt:
        """All panels for each tile of rows."""
        tiles = self.over_rows(
            rows, lambda row, n, clamp: panels(lambda panel: self.tile(rows.first, row, n, clamp, k_block, panel))
        )
        return sequence([*self._pack_a(rows, k_block), tiles])

    def _by_panels(self, rows: Rows, panels: Panels, k_block: KBlock, pack_b: Callable[[Panel], Stmt]) -> Stmt:
        """All tiles of rows for each panel, which is packed right before them where it is not reused."""
        blocking = self.blocking

        def tiles(panel: Panel) -> Stmt:
            if reads_parts(blocking) and isinstance(_groups(blocking, k_block), int):
                return _in_parts(self, rows, k_block, panel)

            def tile(row: PrimExpr, n: int, clamp: Access, turns: int | None) -> Stmt:
                return self.tile(rows.first, row, n, clamp, k_block, panel, turns)

            return self.over_rows(
                rows,
                lambda row, n, clamp: tile(row, n, clamp, _turns(blocking, rows, n)),
                lambda row, n, clamp: tile(row, n, clamp, _FEW_TURNS),
            )

        def with_packing(panel: Panel) -> Stmt:
            packing = pack_b(panel)
            if blocking.has_several_blocks is not None:
                packing = IfThenElse(unary("not", blocking.has_several_blocks), packing, None)
            return SeqStmt((packing, tiles(panel)))

        packs_here = not blocking.constant_b and (not blocking.reuses_panels or blocking.has_several_blocks is not None)
        return sequence([*self._pack_a(rows, k_block), panels(with_packing if packs_here else tiles)])

    def _pack_a(self, rows: Rows, k_block: KBlock) -> tuple[Stmt, ...]:
        """The copy of a block of A, where there is one."""
        if not self._packs_a:
            return ()
        return (
            self.over_rows(
                rows,
                lambda at, count, clamp: self.packing.tile_of_a(rows.first, at, count, clamp, k_block.k, k_block.steps),
            ),
        )

    def _blocks_of_rows(self, inner: Callable[[Rows], Stmt]) -> Stmt:
        blocking = self.blocking
        extent, size = blocking.found.extents[blocking.r], blocking.mc
        if blocking.view_of_a is not None:  # nothing is packed
            return inner(Rows(const(0, INDEX), extent))
        if not isinstance(extent, int) or extent <= size:
            return blocks(blocking.r, extent, size, lambda first, count: inner(Rows(first, count)))
        index = PrimVar(f"{blocking.r.name.removeprefix('v')}_block", INDEX)
        whole = extent // blocking.mr * blocking.mr
        number = ceil_div(whole, size)
        first = times(index, size)
        rest = binary("min", binary("sub", const(whole, INDEX), first), const(size, INDEX))
        count: Extent = rest if whole % size else size
        is_last = binary("eq", index, const(number - 1, INDEX))
        remainder = Remainder(is_last, whole - (number - 1) * size, extent % blocking.mr)
        return For(index, 0, number, inner(Rows(first, count, remainder)))

    def over_rows(self, rows: Rows, inner: RowTile, even: RowTile | None = None) -> Stmt:
        """The tiles of a block of rows; `even` builds those of which two or three take all."""
        blocking, mr, name = self.blocking, self.blocking.mr, self.blocking.r.name
        if rows.remainder is None:
            evens = None if blocking.even_rows is None else (blocking.even_rows, even or inner)
            return cover_rows(name, rows.count, mr, blocking.remainder_sizes, inner, evens)
        index = PrimVar(f"{name.removeprefix('v')}_{mr}", INDEX)
        if isinstance(rows.count, int):
            tiles: Extent = rows.count // mr
        else:
            tiles = binary("floordiv", rows.count, const(mr, INDEX))
        body: Stmt = For(index, 0, tiles, inner(times(index, mr), mr, lambda row: row))
        if rows.remainder.rows:
            last = inner(const(rows.remainder.at, INDEX), rows.remainder.rows, lambda row: row)
            body = SeqStmt((body, IfThenElse(rows.remainder.is_last, last, None)))
        return body

    # Tiles

    def tile(
        self,
        first: PrimExpr,
        at: PrimExpr,
        rows: int,
        clamp: Access,
        k_block: KBlock,
        panel: Panel,
        turns: int | None = None,
        part: Part | None = None,
    ) -> Stmt:
        """The tile of `rows` rows from `at` on in the block of rows that starts at `first`.

        `turns` tiles of so many rows meet the panel before the next panel (None: many, or other panels come between).
        """
        blocking, found = self.blocking, self.blocking.found
        step, lanes = PrimVar("p", INDEX), panel.lanes
        p = step if part is None else plus(part.start, step)
        g = PrimVar("g", INDEX) if has_matrices(blocking) else None

        def element(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            if blocking.has_partial_sums:
                column, i = minus(plus(panel.start, times(j, lanes)), k_block.column), clamp(plus(at, i))
                indices = (i if part is None else plus(part.at, i), vector_index(as_expr(column, INDEX), lanes))
                return BufferLoad(blocking.partial_sums, indices)
            row = row_at(found.target, blocking.r, plus(first, clamp(plus(at, i))))
            return vector_at(row, found.v, column_at(found, panel.start, panel.width, times(j, lanes)), lanes)

        groups = as_expr(_groups(blocking, k_block), INDEX)

        def prefetch_b(j: int) -> BufferLoad:
            if turns is not None and blocking.constant_b:
                part = _part(at, rows, turns, j, panel.vectors)
                return _of_next_panel(blocking, plus(binary("mul", part, groups), p), k_block, panel)
            later = plus(p, const(blocking.capacity.knobs.prefetch_k, INDEX))
            return _of_b(blocking, later, const(j, INDEX), 1, k_block, panel)

        each = ceil_div(panel.vectors, turns or 1)  # prefetches in a step
        by_vectors = not has_matrices(blocking)
        # Windows are packed right before their tiles, and of many rows.
        prefetches = by_vectors and rows > 2 and found.window is None
        several = blocking.splits_k
        keeps = part is not None and keeps_sums(blocking)
        is_last = _is_last(blocking, k_block) if several and not keeps else None

        def row(i: PrimExpr) -> PrimExpr:
            return plus(first, clamp(plus(at, i)))

        ends = ends_of(found, blocking.capacity, panel, rows, row, is_last, at_once=not by_vectors)
        if _asks_for_results(blocking, rows) and (ends is None or (several and not operands_of(found))):
            place = element if several else partial(_result, found, panel, row)
            columns = [const(j, INDEX) for j in range(panel.vectors)]
            ends = Ends(rows, lambda i: [place(i, j) for j in columns], is_spread=True, is_nearest=True)
        in_registers = (
            partial(MatrixTile, part=part, at=None if part is None else at) if has_matrices(blocking) else Tile
        )
        tile = in_registers(
            rows,
            panel,
            scalar=lambda i: blocking.of_a(
                _of_a(blocking, p, i, first, at, rows, clamp, k_block)
                if g is None
                else _group_of_a(blocking, (p, g), i, at if part is None else plus(part.at, at), rows)
            ),
            vector=lambda j: blocking.of_b(_of_b(blocking, _group_of_b(blocking, p, g), j, lanes, k_block, panel)),
            element=element,
            loops=[
                (step, _groups(blocking, k_block) if part is None else part.steps),
                *([] if g is None else [(g, depth_of(blocking) // blocking.group)]),
            ],
            dot=blocking.dot,
            adds_last=found.may_be_long or (by_vectors and several),
            accumulates=found.accumulates or (several and not keeps and binary("gt", k_block.k, const(0, INDEX))),
            epilogue=epilogue_of(found, panel, row),
            parts=found.part_count,
            is_last=is_last,
            long_epilogue=found.has_long_epilogue,
            prefetch_b=[prefetch_b(j) for j in range(each)] if prefetches else [],
            is_nearest=not blocking.constant_b,
            ends=ends if by_vectors else None,
        ).build(blocking.capacity.dtype)
        return tile if by_vectors or ends is None else SeqStmt((ends.before(), tile))


def _asks_for_results(blocking: Blocking, rows: int) -> bool:
    """Whether a tile of so many rows prefetches where its sums end: not what is near, and few windows go to."""
    found = blocking.found
    is_near = blocking.shares_rows or blocking.has_partial_sums or found.parts is not None
    few_sums = found.window is not None and not blocking.splits_k
    return rows > 2 and not (is_near or few_sums or has_matrices(blocking))


def _result(found: Contraction, panel: Panel, row: Access, i: PrimExpr, j: PrimExpr) -> BufferLoad:
    """The first element of a vector of results."""
    assert found.r is not None
    places = {found.r: row(i), found.v: plus(panel.start, times(j, panel.lanes))}
    return substitute(BufferLoad(found.store.buffer, found.store.indices), places)


def _goes_along_rows(blocking: Blocking) -> bool:
    """Whether all panels meet a tile of rows before the next one does: what far results are put together with is read
    along as many rows at a time as a tile has, not all."""
    found, is_packed = blocking.found, blocking.has_several_blocks is None and not has_matrices(blocking)
    is_far = has_far_results(found, blocking.capacity)
    return blocking.constant_a and is_packed and is_far and bool(operands_of(found))


def _packed_in_runs(packing: Packing | DotPacking, k_block: KBlock, panels: Panels) -> Stmt | None:
    """All panels for some rows of B before the next ones: a panel alone meets as many pages of memory as rows."""
    steps = k_block.steps
    if not isinstance(packing, MatrixPacking) or not packing.blocking.found.runs:
        return None
    if not isinstance(steps, int) or steps % _ROWS_AT_ONCE or steps == _ROWS_AT_ONCE:
        return None
    index, groups = PrimVar("run", INDEX), _ROWS_AT_ONCE // packing.dot.group
    return For(
        index,
        0,
        steps // _ROWS_AT_ONCE,
        panels(lambda panel: packing.groups_of_b(k_block.k, times(index, groups), groups, panel)),
    )


def _in_parts(loops: _Loops, rows: Rows, k_block: KBlock, panel: Panel) -> Stmt:
    """The tiles of several rows for each part of a panel of matrices, which stays in the first cache."""
    blocking, name = loops.blocking, loops.blocking.r.name
    size, remainder = rows_of_parts(blocking), rows.remainder

    def group(at: PrimExpr, count: Extent) -> Stmt:
        rest = None if remainder is None else dataclasses.replace(remainder, rows=0)
        own = Rows(plus(rows.first, at), count, rest)

        def tiles(part: Part) -> Stmt:
            return loops.over_rows(
                own, lambda row, n, clamp: loops.tile(own.first, row, n, clamp, k_block, panel, part=part)
            )

        return _parts(blocking, k_block, panel, at, tiles)

    def alone(at: PrimExpr, count: int) -> Stmt:
        if not keeps_sums(blocking):
            return loops.tile(rows.first, at, count, lambda row: row, k_block, panel)
        part = _kept(blocking, k_block, panel, Part(const(0, INDEX), _groups(blocking, k_block), at=at))
        return loops.tile(plus(rows.first, at), const(0, INDEX), count, lambda row: row, k_block, panel, part=part)

    if isinstance(rows.count, int):
        tiers = [(n, 1) for n in (size, rows.count % size) if n]
        body = cover(f"{name}_block", rows.count, tiers, lambda at, n, _: group(at, n))
    else:
        index = PrimVar(f"{name.removeprefix('v')}_{size}", INDEX)
        at = times(index, size)
        own = binary("min", binary("sub", rows.count, at), const(size, INDEX))
        body = For(index, 0, ceil_of(rows.count, size), group(at, own))
    if remainder is None or not remainder.rows:
        return body
    last = alone(const(remainder.at, INDEX), remainder.rows)
    return SeqStmt((body, IfThenElse(remainder.is_last, last, None)))


def _is_last(blocking: Blocking, k_block: KBlock) -> PrimExpr:
    """Whether sums are complete after a block of k."""
    end = plus(k_block.k, as_expr(k_block.steps, INDEX))
    return binary("ge", end, as_expr(blocking.found.extents[blocking.k], INDEX))


def _parts(blocking: Blocking, k_block: KBlock, panel: Panel, at: PrimExpr, inner: Callable[[Part], Stmt]) -> Stmt:
    """The parts of a block of k for the rows from `at` on, and the sums that stay from one to the next."""
    steps = _groups(blocking, k_block)
    assert isinstance(steps, int)
    each = steps_of_part(blocking)
    index, count = PrimVar("part", INDEX), ceil_div(steps, each)
    start, is_last = times(index, each), binary("eq", index, const(count - 1, INDEX))
    size: Extent = each
    if steps % each:
        size = binary("min", binary("sub", const(steps, INDEX), start), const(each, INDEX))
    part = Part(start, size, binary("eq", index, const(0, INDEX)), is_last, at=at)
    if keeps_sums(blocking):
        return For(index, 0, count, inner(_kept(blocking, k_block, panel, part)))
    sums = Buffer("sums", (rows_of_parts(blocking) * blocking.nr,), blocking.capacity.dtype)
    return SeqStmt((AllocBuffer(sums), For(index, 0, count, inner(dataclasses.replace(part, sums=sums)))))


def _kept(blocking: Blocking, k_block: KBlock, panel: Panel, part: Part) -> Part:
    """A part whose sums stay in the memory of a block's partial sums, where each panel has all rows: they begin in the
    first block of k, and are complete after the last one."""
    begins, ends = binary("eq", k_block.k, const(0, INDEX)), _is_last(blocking, k_block)
    return dataclasses.replace(
        part,
        sums=blocking.partial_sums,
        lead=(as_expr(panel.number, INDEX), as_expr(panel.chunk, INDEX)),
        first=part.at,
        is_first=begins if part.is_first is None else binary("and", part.is_first, begins),
        is_last=ends if part.is_last is None else binary("and", part.is_last, ends),
    )


def _of_a(
    blocking: Blocking,
    p: PrimExpr,
    i: PrimExpr,
    first: PrimExpr,
    at: PrimExpr,
    rows: int,
    clamp: Access,
    k_block: KBlock,
) -> PrimExpr:
    """The element of A in a row at a step of k."""
    load = blocking.found.scalar
    k = plus(times(k_block.k, blocking.granularity), p)  # of the whole sum
    if blocking.view_of_a is not None:
        lead = row_at(load, blocking.r, plus(first, clamp(plus(at, i)))).indices[: blocking.view_of_a.ndim - 1]
        return BufferLoad(blocking.view_of_a, (*lead, k))
    if blocking.constant_a:
        row, _ = row_of_constant(blocking, blocking.a, plus(first, at))
        return BufferLoad(blocking.a, (row, plus(times(k, rows), i)))
    if blocking.packs_rows_of_a:
        return BufferLoad(blocking.a, (plus(times(plus(at, i), row_of_a(blocking)), p),))
    place = plus(times(at, blocking.padded_kc), times(plus(times(p, rows), i), blocking.group))
    return BufferLoad(blocking.a, (vector_index(place, blocking.group),))


def _groups(blocking: Blocking, k_block: KBlock) -> Extent:
    """How many groups along k a tile sums in a block."""
    count, group = times_of(k_block.steps, blocking.granularity), depth_of(blocking)
    if group == 1:
        return count
    return ceil_div(count, group) if isinstance(count, int) else ceil_of(count, group)


def _of_b(blocking: Blocking, k: PrimExpr, j: PrimExpr, lanes: int, k_block: KBlock, panel: Panel) -> BufferLoad:
    """The elements of B at a step of k, `lanes` of them from the j-th vector on."""
    group = blocking.group
    lanes = lanes if lanes == 1 and panel.lanes > 1 else lanes * group
    if not blocking.constant_b:
        place = times(plus(times(k, panel.width), times(j, panel.lanes)), group)
        return BufferLoad(blocking.b, place_in_b(blocking, panel, place, lanes))
    first = k_block.k if group == 1 else divided(k_block.k, group)
    k = plus(times(first, blocking.granularity), k)
    place = times(plus(times(k, panel.width), times(j, panel.lanes)), group)
    row, skipped = row_of_constant(blocking, blocking.b, panel.start)
    place = plus(const(skipped, INDEX), place) if skipped else place
    return BufferLoad(blocking.b, (row, vector_index(place, lanes)))


def _turns(blocking: Blocking, rows: Rows, size: int) -> int | None:
    """How many tiles of so many rows meet a panel one after another; None: many, or an unknown number.

    Those of fewer rows than others come last, and alone.
    """
    if size < blocking.mr:
        return 1
    tiles = rows.count // size if isinstance(rows.count, int) else _FEW_TURNS + 1
    return tiles if tiles <= _FEW_TURNS else None


def _of_next_panel(blocking: Blocking, number: PrimExpr, k_block: KBlock, panel: Panel) -> BufferLoad:
    """The first element of a vector, by its number, of the next panel of a constant in a block of k."""
    row, skipped = row_of_constant(blocking, blocking.b, panel.start)
    first = times(k_block.k if blocking.group == 1 else divided(k_block.k, blocking.group), blocking.granularity)
    place = times(plus(times(first, panel.vectors), number), panel.lanes * blocking.group)
    return BufferLoad(blocking.b, (plus(row, const(1, INDEX)), plus(const(skipped, INDEX), place)))


def _part(at: PrimExpr, rows: int, turns: int, j: int, parts: int) -> PrimExpr:
    """Which of so many parts the j-th prefetches of a tile are for, where `turns` tiles share them out."""
    if turns == 1:
        return const(j, INDEX)
    tile = binary("floordiv", at, const(rows, INDEX))
    return binary("min", plus(tile, const(turns * j, INDEX)) if j else tile, const(parts - 1, INDEX))


def _group_of_b(blocking: Blocking, p: PrimExpr, g: PrimExpr | None) -> PrimExpr:
    """The number of the group of B at a step of k, and at a group of it where several make a step."""
    return p if g is None else plus(times(p, depth_of(blocking) // blocking.group), g)


def _group_of_a(
    blocking: Blocking, step: tuple[PrimExpr, PrimExpr], i: PrimExpr, at: PrimExpr, rows: int
) -> BufferLoad:
    """A group of A in a row at a step of k, of a tile of matrices."""
    assert blocking.dot is not None
    row = plus(times(step[0], blocking.dot.padded_rows(rows)), i)
    place = plus(times(at, blocking.padded_kc), plus(times(row, depth_of(blocking)), times(step[1], blocking.group)))
    return BufferLoad(blocking.a, (vector_index(place, blocking.group),))


def _moved(panel: Panel, start: PrimExpr) -> Panel:
    """A panel of a block of columns that starts at a column."""
    if isinstance(start, IntImm) and start.value == 0:
        return panel
    return dataclasses.replace(panel, start=plus(start, panel.start))
