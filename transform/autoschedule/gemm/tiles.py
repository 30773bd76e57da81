"""Register tiles: rows of accumulators in vector registers, and loops that cover a range with tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weft.dtypes import with_lanes
from weft.ir import replace, substitute
from weft.ir.kernel.prim import as_expr, binary, const, extent_product
from weft.ir.tensor import (
    NEAREST,
    PREFETCH,
    AllocBuffer,
    AttrStmt,
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.dot_products.dot import Dot
from weft.transform.autoschedule.gemm.match import Contraction, uses
from weft.transform.autoschedule.gemm.tiling import INDEX, Capacity, ceil_div, vector_tiers
from weft.transform.autoschedule.rules.loops import in_blocks, sequence

__all__ = [
    "Access",
    "Ends",
    "Panel",
    "Tile",
    "blocks",
    "ceil_of",
    "column_at",
    "cover",
    "cover_columns",
    "cover_rows",
    "divided",
    "epilogue_of",
    "flat_view",
    "fresh",
    "in_panels",
    "masked",
    "minus",
    "panels_of_chunk",
    "plus",
    "prefetch",
    "row_at",
    "runs_of_panels",
    "store",
    "tiles_of",
    "times",
    "times_of",
    "unrolled",
    "vector_at",
    "vector_index",
]

Access = Callable[[PrimExpr], PrimExpr]


@dataclass(frozen=True)
class Panel:
    """Columns from `start` on: `vectors` vectors of `lanes`; with `left`, only so many columns of them.

    `chunk` says which part of all panels it belongs to, where threads share them, and `number` which panel of that.
    """

    start: PrimExpr
    vectors: int
    lanes: int
    left: Extent | None = None
    chunk: Extent = 0
    number: Extent = 0

    @property
    def width(self) -> int:
        """Columns that the vectors have."""
        return self.vectors * self.lanes

    def mask(self, j: PrimExpr) -> PrimExpr | None:
        """Which lanes of vector j are columns; None: all of them."""
        if self.left is None:
            return None
        first = times(j, self.lanes)
        if self.lanes == 1:
            return binary("lt", first, as_expr(self.left, INDEX))
        return binary("lt", Ramp(first, const(1, INDEX), self.lanes), Broadcast(as_expr(self.left, INDEX), self.lanes))


@dataclass(frozen=True)
class Ends:
    """Where the sums of a tile end: `places(number)` for each of `count` numbers, which are prefetched meanwhile.

    `is_spread` says that steps along k share them, as a processor waits for few lines at a time: where near caches hold
    most of them, one loop before all steps takes less. `condition` says whether they are prefetched (None: always),
    `is_nearest` that they go to the first cache.
    """

    count: int
    places: Callable[[PrimExpr], Sequence[BufferLoad]]
    is_spread: bool
    condition: PrimExpr | None = None
    is_nearest: bool = False

    def before(self) -> Stmt:
        """Prefetches of all places at once."""
        number = PrimVar("i", INDEX)
        return For(number, 0, self.count, self._prefetched(number))

    def around(self, var: PrimVar, extent: Extent, step: Stmt) -> Stmt:
        """A loop over steps of k: where places are spread in about as many parts, each of which begins with its own."""
        if not self.is_spread:
            return For(var, 0, extent, step)
        if not isinstance(extent, int):
            return self._around_symbolic(var, extent, step)
        part, steps = PrimVar("part", INDEX), ceil_div(extent, self.count)
        parts = ceil_div(extent, steps)
        share = ceil_div(self.count, parts)
        numbers = [plus(times(part, share), const(each, INDEX)) for each in range(share)]
        if parts * share > self.count:
            numbers = [binary("min", number, const(self.count - 1, INDEX)) for number in numbers]
        prefetches = [self._prefetched(number) for number in numbers]
        if steps == 1:
            return For(var, 0, extent, substitute(SeqStmt((*prefetches, step)), {part: var}))
        start, own = times(part, steps), as_expr(steps, INDEX)
        if extent % steps:
            own = binary("min", binary("sub", const(extent, INDEX), start), own)
        inner = PrimVar(var.name, var.dtype)
        loop = For(inner, 0, own, substitute(step, {var: plus(start, inner)}))
        return For(part, 0, parts, SeqStmt((*prefetches, loop)))

    def _around_symbolic(self, var: PrimVar, extent: PrimExpr, step: Stmt) -> Stmt:
        """As many parts as there are places, the last of which may be empty."""
        part, inner = PrimVar("part", INDEX), PrimVar(var.name, var.dtype)
        steps = ceil_of(extent, self.count)
        start = binary("mul", part, steps)
        own = binary("min", binary("sub", extent, start), steps)
        loop = For(inner, 0, own, substitute(step, {var: plus(start, inner)}))
        return For(part, 0, self.count, SeqStmt((self._prefetched(part), loop)))

    def _prefetched(self, number: PrimExpr) -> Stmt:
        stmt = sequence([prefetch(place, is_nearest=self.is_nearest) for place in self.places(number)])
        return stmt if self.condition is None else IfThenElse(self.condition, stmt, None)


@dataclass(frozen=True)
class Tile:
    """rows x vectors accumulators over a panel.

    `scalar(i)` is the element of A in row i, `vector(j)` vector j of B, both for the current values of the `loops`
    (variable, extent) of the reduction; `element(i, j)` is the vector of C; `accumulates` says when C already holds a
    partial sum. `epilogue(i, column, sums)` stores what becomes of the sums of a column of the panel, one of each of
    `parts`, once `is_last` says that they are complete (None: always); `long_epilogue` that this takes many
    instructions.
    It is added last (`adds_last`), for a sum of sums loses fewer digits than one long sum, or gone on with.
    `block` steps of the first loop are added up by themselves before they go to the sum of all (None: all steps).
    `prefetch_b` are vectors of B that a later step reads, in the first cache where `is_nearest` says so; `ends` are the
    places that what becomes of sums reads and writes.
    """

    rows: int
    panel: Panel
    scalar: Access
    vector: Access
    element: Callable[[PrimExpr, PrimExpr], BufferLoad]
    loops: Sequence[tuple[PrimVar, Extent]]
    accumulates: PrimExpr | bool = False
    epilogue: Callable[[PrimExpr, PrimExpr, Sequence[BufferLoad]], BufferStore] | None = None
    parts: int = 1
    is_last: PrimExpr | None = None
    long_epilogue: bool = False
    prefetch_b: Sequence[BufferLoad] = ()
    is_nearest: bool = False
    ends: Ends | None = None
    dot: Dot | None = None
    adds_last: bool = False
    block: int | None = None

    def build(self, dtype: str) -> Stmt:
        """Clear or load, accumulate, store."""
        vectors, lanes, mask = self.panel.vectors, self.panel.lanes, self.panel.mask
        accumulators = Buffer("accumulators", (self.rows * vectors * lanes,), dtype, "local")
        group, line_type = (1, dtype) if self.dot is None else (self.dot.group, self.dot.b_type)
        b_row = Buffer("b_row", (vectors * lanes * group,), line_type, "local")

        def local(buffer: Buffer, position: PrimExpr, group: int = 1) -> BufferLoad:
            return BufferLoad(buffer, (vector_index(times(position, lanes * group), lanes * group),))

        def place(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            return plus(times(i, vectors), j) if vectors > 1 else i

        def accumulate(i: PrimExpr) -> Stmt:
            value = self.repeated(self.scalar(i))

            def add(j: PrimExpr) -> Stmt:
                total = local(accumulators, place(i, j))
                return store(total, self._added(total, value, local(b_row, j, group)))

            return unrolled("j", vectors, add)

        def each(action: Callable[[PrimExpr, PrimExpr], Stmt], count: int = vectors) -> Stmt:
            return unrolled("i", self.rows, lambda i: unrolled("j", count, lambda j: action(i, j)))

        def added(total: BufferLoad, value: PrimExpr) -> Stmt:
            return store(total, binary("add", total, value))

        def own(i: PrimExpr, j: PrimExpr) -> BufferLoad:
            return local(accumulators, place(i, j))

        begin = clear = self._cleared(accumulators)
        if self.accumulates is not False and not self.adds_last:
            held = each(lambda i, j: store(own(i, j), masked(self.element(i, j), mask(j))))
            begin = self.if_accumulates(held, clear)
        loads = unrolled("j", vectors, lambda j: store(local(b_row, j, group), self.vector(j)))
        prefetches = [prefetch(place, is_nearest=self.is_nearest) for place in self.prefetch_b]
        columns = self._column_sums(vectors, lambda j: local(b_row, j, group))
        step: Stmt = SeqStmt((*prefetches, loads, *columns.update, unrolled("i", self.rows, accumulate)))
        for var, extent in reversed(self.loops[1:]):
            step = For(var, 0, extent, step)
        step = self._first_loop(step, accumulators)
        write = each(lambda i, j: store(masked(self.element(i, j), mask(j)), local(accumulators, place(i, j))))
        if self.epilogue is not None:
            if self.long_epilogue:
                # One text for all vectors; they go through memory, where they can be indexed.
                done = Buffer("done", accumulators.shape, dtype, "local")
                copy = unrolled("i", self.rows * vectors, lambda i: store(local(done, i), local(accumulators, i)))
                i, j = PrimVar("i", INDEX), PrimVar("j", INDEX)
                each_vector = For(i, 0, self.rows, For(j, 0, vectors // self.parts, self.finished(done, i, j, place)))
                finished: Stmt = SeqStmt((AllocBuffer(done), copy, each_vector))
            else:
                finished = each(lambda i, j: self.finished(accumulators, i, j, place), vectors // self.parts)
            write = finished if self.is_last is None else IfThenElse(self.is_last, finished, write)
        last = [each(lambda i, j: columns.correct(own(i, j), j))] if columns.init else []
        if self.accumulates is not False and self.adds_last:
            held = each(lambda i, j: added(own(i, j), masked(self.element(i, j), mask(j))))
            last.append(self.if_accumulates(held, None))
        early = [] if self.ends is None or self.ends.is_spread else [self.ends.before()]
        return SeqStmt(
            (*early, AllocBuffer(accumulators), AllocBuffer(b_row), *columns.init, begin, step, *last, write)
        )

    def if_accumulates(self, stmt: Stmt, otherwise: Stmt | None) -> Stmt:
        """A statement where C already holds a partial sum, another one where it does not."""
        assert self.accumulates is not False
        return stmt if self.accumulates is True else IfThenElse(self.accumulates, stmt, otherwise)

    def _each_vector(self, action: Callable[[PrimExpr], Stmt]) -> Stmt:
        """An action on the place of every vector of accumulators."""
        lanes = self.panel.lanes
        count = self.rows * self.panel.vectors
        return unrolled("i", count, lambda i: action(vector_index(times(i, lanes), lanes)))

    def _cleared(self, buffer: Buffer) -> Stmt:
        zero = const(0.0, with_lanes(buffer.dtype, self.panel.lanes))
        return self._each_vector(lambda at: BufferStore(buffer, zero, (at,)))

    def _first_loop(self, step: Stmt, accumulators: Buffer) -> Stmt:
        """The outermost loop over k, in blocks that are added up by themselves where it may be long."""
        (var, extent), block = self.loops[0], self.block
        if block is None or (isinstance(extent, int) and extent <= block):
            return For(var, 0, extent, step) if self.ends is None else self.ends.around(var, extent, step)
        zero = const(0.0, with_lanes(accumulators.dtype, self.panel.lanes))
        return in_blocks(For(var, 0, extent, step), block, accumulators, zero, self._each_vector)

    def _column_sums(self, vectors: int, b_row: Callable[[PrimExpr], PrimExpr]) -> _ColumnSums:
        """What sums the columns of B where A is offset."""
        dot, lanes = self.dot, self.panel.lanes
        if dot is None or not dot.offset:
            return _ColumnSums((), (), lambda total, j: SeqStmt(()))
        dtype = dot.instruction.types[2]
        buffer = Buffer("columns", (vectors * lanes,), dtype, "local")
        kind, ones = with_lanes(dtype, lanes), const(1, with_lanes(dot.a_type, lanes * dot.group))

        def place(j: PrimExpr) -> BufferLoad:
            return BufferLoad(buffer, (vector_index(times(j, lanes), lanes),))

        def add(j: PrimExpr) -> Stmt:
            return store(place(j), PrimCall("dot_product", (place(j), ones, b_row(j)), kind))

        def correct(total: BufferLoad, j: PrimExpr) -> Stmt:
            return store(total, binary("sub", total, binary("mul", place(j), const(dot.offset, kind))))

        begin = unrolled("j", vectors, lambda j: store(place(j), const(0, kind)))
        return _ColumnSums((AllocBuffer(buffer), begin), (unrolled("j", vectors, add),), correct)

    def repeated(self, value: PrimExpr) -> PrimExpr:
        """An element of A, or a group of them, for all lanes."""
        lanes = self.panel.lanes
        if self.dot is None:
            return value if lanes == 1 else Broadcast(value, lanes)
        order = tuple(const(x, "int32") for x in range(self.dot.group))
        return value if lanes == 1 else Shuffle((value,), order * lanes)

    def _added(self, total: PrimExpr, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """A vector of accumulators with products added."""
        if self.dot is None:
            return binary("add", total, binary("mul", a, b))
        first, second = (b, a) if self.dot.is_swapped else (a, b)
        return PrimCall("dot_product", (total, first, second), total.dtype)

    def finished(
        self,
        accumulators: Buffer,
        i: PrimExpr,
        j: PrimExpr,
        place: Callable[[PrimExpr, PrimExpr], PrimExpr],
        lead: tuple[PrimExpr, ...] = (),
    ) -> Stmt:
        """What becomes of vector j of the finished sums of each part, stored."""
        assert self.epilogue is not None
        lanes, lane = self.panel.lanes, PrimVar("lane", INDEX)
        column, each = plus(times(j, lanes), lane), self.panel.vectors // self.parts
        places = [place(i, plus(j, const(part * each, INDEX)) if part else j) for part in range(self.parts)]
        sums = [BufferLoad(accumulators, (*lead, plus(times(at, lanes), lane))) for at in places]
        stmt: Stmt = self.epilogue(i, column, sums)
        if self.panel.left is not None:
            stmt = IfThenElse(binary("lt", column, as_expr(self.panel.left, INDEX)), stmt, None)
        return For(lane, 0, lanes, stmt, "vectorized")


@dataclass(frozen=True)
class _ColumnSums:
    """Sums of the columns of a panel: what sets them to zero, what adds a step of k, what corrects a sum by them."""

    init: tuple[Stmt, ...]
    update: tuple[Stmt, ...]
    correct: Callable[[BufferLoad, PrimExpr], Stmt]


def store(place: BufferLoad, value: PrimExpr) -> Stmt:
    """A value stored to a place, under the mask of a vector that has one."""
    return BufferStore(place.buffer, value, place.indices, place.predicate)


def prefetch(place: BufferLoad, *, is_nearest: bool = False) -> Stmt:
    """Prefetch the cache line of the first element of a vector into the second cache, or into the first one."""
    indices = tuple(index.base if isinstance(index, Ramp) else index for index in place.indices)
    return AttrStmt(NEAREST if is_nearest else None, PREFETCH, BufferLoad(place.buffer, indices), SeqStmt(()))


def masked(place: BufferLoad, mask: PrimExpr | None) -> BufferLoad:
    """A vector of which a mask says the lanes that are there; None: all of them."""
    return place if mask is None else replace(place, predicate=mask)


def unrolled(name: str, count: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
    """A loop that is written out; of one iteration there is none."""
    if count == 1:
        return inner(const(0, INDEX))
    var = PrimVar(name, INDEX)
    return For(var, 0, count, inner(var), "unrolled")


def epilogue_of(
    found: Contraction, panel: Panel, row: Access | None
) -> Callable[[PrimExpr, PrimExpr, Sequence[BufferLoad]], BufferStore] | None:
    """What a tile does with its sums when the contraction has an epilogue."""
    described = found.epilogue
    if described is None:
        return None
    totals = (described.total,) if found.parts is None else found.parts.totals
    start = divided(panel.start, len(totals))

    def epilogue(i: PrimExpr, column: PrimExpr, sums: Sequence[BufferLoad]) -> BufferStore:
        places: dict[PrimVar, PrimExpr] = {found.v: plus(start, column)}
        if found.r is not None and row is not None:
            places[found.r] = row(i)
        value = substitute(described.value, {**places, **dict(zip(totals, sums, strict=True))})
        indices = tuple(substitute(index, places) for index in found.store.indices)
        return BufferStore(found.store.buffer, value, indices, span=found.store.span)

    return epilogue


# Places -------------------------------------------------------------------------------------------------------------


def vector_index(first: PrimExpr, lanes: int) -> PrimExpr:
    """The index of `lanes` consecutive elements."""
    return first if lanes == 1 else Ramp(first, const(1, INDEX), lanes)


def vector_at(load: BufferLoad, v: PrimVar, first: PrimExpr, lanes: int) -> BufferLoad:
    """An access with a vector of consecutive elements along v."""

    def at(index: PrimExpr) -> PrimExpr:
        if not uses((index,), v):
            return index
        return vector_index(substitute(index, {v: first}), lanes)

    return replace(load, indices=tuple(at(index) for index in load.indices))


def column_at(found: Contraction, start: PrimExpr, width: int, at: PrimExpr) -> PrimExpr:
    """The column of the operands at a place in a panel of some width that starts at `start`."""
    parts = found.parts
    if parts is None:
        return plus(start, at)
    each = width // parts.count
    within = plus(divided(start, parts.count), binary("floormod", at, const(each, INDEX)))
    return plus(times(binary("floordiv", at, const(each, INDEX)), parts.columns), within)


def divided(a: PrimExpr, b: int) -> PrimExpr:
    """a / b for what is a sum of multiples of b in form, or in fact."""
    if b == 1:
        return a
    if isinstance(a, IntImm) and a.value % b == 0:
        return const(a.value // b, INDEX)
    if isinstance(a, Binary) and a.kind == "mul" and isinstance(a.b, IntImm) and a.b.value % b == 0:
        return times(a.a, a.b.value // b)
    if isinstance(a, Binary) and a.kind == "add":
        return plus(divided(a.a, b), divided(a.b, b))
    return binary("floordiv", a, const(b, INDEX))


def row_at(load: BufferLoad, r: PrimVar | None, row: PrimExpr | None) -> BufferLoad:
    """An access in one row."""
    return load if r is None or row is None else substitute(load, {r: row})


def fresh(var: PrimVar) -> PrimVar:
    """A loop variable for an iteration variable."""
    return PrimVar(var.name.removeprefix("v"), INDEX)


def flat_view(buffer: Buffer, count: int, lead: int | None = None) -> Buffer:
    """A view of a buffer in which `count` axes from `lead` on are one (None: the last ones)."""
    lead = buffer.ndim - count if lead is None else lead
    first = BufferLoad(buffer, tuple(const(0, INDEX) for _ in buffer.shape))
    pointer = PrimCall("address_of", (first,), "handle")
    end = lead + count
    shape = (*buffer.shape[:lead], extent_product(buffer.shape[lead:end]), *buffer.shape[end:])
    return Buffer(f"{buffer.name}_flat", shape, buffer.dtype, data=pointer)


# Covering -----------------------------------------------------------------------------------------------------------


def cover(
    name: str, extent: Extent, tiers: Sequence[tuple[int, int]], inner: Callable[[PrimExpr, int, int], Stmt]
) -> Stmt:
    """Loops that cover a range with tiles: as many of each tier (count, lanes) as fit, widest first."""
    return sequence(
        [
            _tiles(name, start, tiles, count * lanes, lambda at, c=count, w=lanes: inner(at, c, w))
            for count, lanes, start, tiles in _tiers(extent, tiers)
        ]
    )


def _tiers(extent: Extent, tiers: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, Extent, Extent]]:
    """(count, lanes, where tiles of the tier start, how many there are)."""
    start: Extent = 0
    for count, lanes in tiers:
        width = count * lanes
        left = minus(extent, start)
        if isinstance(left, int) and left < width:
            continue
        tiles = left // width if isinstance(left, int) else binary("floordiv", left, const(width, INDEX))
        yield count, lanes, start, tiles
        start = _sum(start, tiles * width if isinstance(tiles, int) else binary("mul", tiles, const(width, INDEX)))


def blocks(
    var: PrimVar,
    extent: Extent,
    size: int,
    inner: Callable[[PrimExpr, Extent], Stmt],
    at_least_one: bool = False,
    one_loop: bool = False,
) -> Stmt:
    """A loop over blocks, `inner(start, count)` each; of a known extent the remainder is separate, with a known size.

    With `at_least_one` there is one block at least. With `one_loop` the remainder is in the loop, too.
    """
    index = PrimVar(f"{var.name.removeprefix('v')}_block", INDEX)
    start = times(index, size)
    if not isinstance(extent, int) or (one_loop and extent % size and extent > size):
        count = binary("min", binary("sub", as_expr(extent, INDEX), start), const(size, INDEX))
        if isinstance(extent, int):
            return For(index, 0, ceil_div(extent, size), inner(start, count))
        blocks = ceil_of(extent, size)
        if at_least_one:  # an empty sum is stored too
            blocks = binary("max", blocks, const(1, INDEX))
        return For(index, 0, blocks, inner(start, count))
    tiers = [(count, 1) for count in (size, extent % size) if count]
    return cover(f"{var.name}_block", extent, tiers, lambda at, count, _: inner(at, count))


def cover_columns(
    name: str,
    extent: Extent,
    vectors: int,
    capacity: Capacity,
    inner: Callable[[Panel], Stmt],
    chunks: int | None = None,
    separate_remainders: bool = False,
    whole_vectors: bool = False,
) -> Stmt:
    """Panels of `vectors` vectors and one for the rest: under a mask, where the machine has those.

    Of a symbolic number of columns every panel is under its mask, so that there is one text for all of them, unless it
    is a number of whole panels. With `chunks` the panels are shared out to so many at most, each of which is one
    iteration of the outermost loop; many of them have one text with the rest then, unless `separate_remainders`. With
    `whole_vectors` the rest has vectors as wide as all others.
    """
    lanes = capacity.lanes
    width = vectors * lanes
    shared = chunks is not None
    last = chunks - 1 if chunks is not None else 0

    def panels(start: Extent, count: Extent, each: Callable[[PrimExpr, Extent, Extent], Stmt]) -> Stmt:
        if chunks is None:
            return _tiles(name, start, count, width, lambda at: each(at, 0, 0))
        return _chunks(name, count, width, chunks, each)

    several = None if isinstance(extent, int) else tiles_of(extent, width)
    if several is not None:
        return panels(0, several, lambda at, chunk, number: inner(Panel(at, vectors, lanes, None, chunk, number)))
    if not capacity.masks:
        return sequence(
            [
                panels(start, tiles, lambda at, chunk, number: inner(Panel(at, vectors, lanes, None, chunk, number)))
                if shared and (count, w) == (vectors, lanes)
                else _tiles(name, start, tiles, count * w, lambda at, n=count, w=w: inner(Panel(at, n, w, None, last)))
                for count, w, start, tiles in _tiers(extent, vector_tiers(vectors, extent, capacity))
            ]
        )
    whole, left = (extent // width, extent % width) if isinstance(extent, int) else (0, 0)
    shares_text = shared and left and whole >= capacity.knobs.many_panels and not separate_remainders
    if not isinstance(extent, int) or shares_text:
        columns = as_expr(extent, INDEX)

        def masked(at: PrimExpr, chunk: Extent, number: Extent) -> Stmt:
            rest = binary("min", binary("sub", columns, at), const(width, INDEX))
            return inner(Panel(at, vectors, lanes, rest, chunk, number))

        number = ceil_div(extent, width) if isinstance(extent, int) else ceil_of(extent, width)
        return panels(0, number, masked)
    found: list[Stmt] = []
    if whole:
        found.append(panels(0, whole, lambda at, chunk, number: inner(Panel(at, vectors, lanes, None, chunk, number))))
    if left:
        start = const(extent - left, INDEX)
        lanes = lanes if whole_vectors else min(lanes, 1 << (left - 1).bit_length())
        count = -(-left // lanes)
        number = _number_of_last(whole, last + 1)
        found.append(inner(Panel(start, count, lanes, left if left < count * lanes else None, last, number)))
    return sequence(found)


def in_panels(found: Contraction, columns: Extent, width: int) -> Extent:
    """A number of columns, said to be whole panels where parts of them are put together."""
    if found.parts is None or isinstance(columns, int):
        return columns
    return times(divided(columns, width), width)


def runs_of_panels(
    extent: int, vectors: int, capacity: Capacity, separate_remainders: bool, whole_vectors: bool = False
) -> Iterator[tuple[int, int, int, int]]:
    """The panels that `cover_columns` shares out: (first column, width, how many, columns of the last one)."""
    width = vectors * capacity.lanes
    if not capacity.masks:
        for count, lanes, start, tiles in _tiers(extent, vector_tiers(vectors, extent, capacity)):
            assert isinstance(start, int)
            assert isinstance(tiles, int)
            yield start, count * lanes, tiles, count * lanes
        return
    whole, left = divmod(extent, width)
    if left and whole >= capacity.knobs.many_panels and not separate_remainders:
        yield 0, width, whole + 1, left
        return
    if whole:
        yield 0, width, whole, width
    if left:
        lanes = capacity.lanes if whole_vectors else min(capacity.lanes, 1 << (left - 1).bit_length())
        yield whole * width, ceil_div(left, lanes) * lanes, 1, left


def _number_of_last(whole: int, chunks: int) -> int:
    """Which panel of the last chunk a panel is that comes after so many whole ones."""
    each = max(1, ceil_div(whole, chunks))
    return 0 if ceil_div(whole, each) < chunks else each


def panels_of_chunk(columns: int, width: int, chunks: int, separate_remainders: bool, many: int) -> int:
    """The maximum of panels that a chunk has of those that cover up to so many columns."""
    whole, left = divmod(columns, width)
    alone = _number_of_last(whole, chunks) + 1 if left and (whole < many or separate_remainders) else 1
    return max(alone, ceil_div(ceil_div(columns, width), chunks))


def _chunks(
    name: str, count: Extent, width: int, chunks: int, inner: Callable[[PrimExpr, Extent, Extent], Stmt]
) -> Stmt:
    """Panels shared out to chunks of neighbours: `inner(first column, chunk, which of the chunk's panels)`."""
    chunk, panel = PrimVar("chunk", INDEX), PrimVar(f"{name.removeprefix('v')}_{width}", INDEX)
    each: Extent
    own: Extent
    if isinstance(count, int):
        each = ceil_div(count, chunks)
        number = ceil_div(count, each)
        rest = binary("sub", const(count, INDEX), times(chunk, each))
        own = each if number * each == count else binary("min", rest, const(each, INDEX))
        first = times(chunk, each)
        if number == 1:
            one = each == 1
            return inner(const(0, INDEX), 0, 0) if one else For(panel, 0, own, inner(times(panel, width), 0, panel))
    else:
        each, number = binary("max", ceil_of(count, chunks), const(1, INDEX)), chunks
        first = binary("mul", chunk, each)
        own = binary("min", binary("sub", count, first), each)
    if isinstance(each, int) and each == 1:
        return For(chunk, 0, number, inner(times(chunk, width), chunk, 0))
    return For(chunk, 0, number, For(panel, 0, own, inner(times(plus(first, panel), width), chunk, panel)))


def cover_rows(
    name: str,
    extent: Extent,
    rows: int,
    remainder_sizes: Sequence[int],
    inner: Callable[[PrimExpr, int, Access], Stmt],
    even: tuple[int, Callable[[PrimExpr, int, Access], Stmt]] | None = None,
) -> Stmt:
    """Tiles of `rows` rows, the last one with the rest.

    `inner(start, rows, clamp)` builds a tile; `clamp` keeps a row inside the range: a symbolic remainder is rounded up
    to one of `remainder_sizes` or to `rows`, and rows beyond the last one do what that does once more. Where two or
    three tiles of as many rows as `even` has are full but for one row, they take all, built as it says. An extent that
    is so many times `rows` has no remainder.
    """
    if isinstance(extent, int):
        tiers = [(rows, 1), (extent % rows, 1)]
        return cover(name, extent, [tier for tier in tiers if tier[0]], lambda at, n, _: inner(at, n, lambda row: row))
    tiles = tiles_of(extent, rows)
    if tiles is not None:
        return _tiles(name, 0, tiles, rows, lambda at: inner(at, rows, lambda row: row))
    last = binary("sub", extent, const(1, INDEX))

    def clamp(row: PrimExpr) -> PrimExpr:
        return binary("min", row, last)

    index = PrimVar(f"{name.removeprefix('v')}_{rows}", INDEX)
    at = times(index, rows)
    left = binary("sub", extent, at)
    body = inner(at, rows, clamp)
    for size in sorted({size for size in remainder_sizes if size < rows}, reverse=True):
        body = IfThenElse(binary("le", left, const(size, INDEX)), inner(at, size, clamp), body)
    several = For(index, 0, ceil_of(extent, rows), body)
    if even is None:
        return several
    size, inner_of_even = even
    part = PrimVar(f"{name.removeprefix('v')}_{size}", INDEX)
    halves = For(part, 0, ceil_of(extent, size), inner_of_even(times(part, size), size, clamp))
    return IfThenElse(_fills(extent, rows, size), halves, several)


def _fills(extent: PrimExpr, rows: int, even: int) -> PrimExpr:
    """Whether more rows than a tile has fill two or three smaller ones but for one row."""
    some = binary("and", binary("gt", extent, const(rows, INDEX)), binary("le", extent, const(3 * even, INDEX)))
    beyond = binary("floormod", plus(extent, const(1, INDEX)), const(even, INDEX))
    return binary("and", some, binary("le", beyond, const(1, INDEX)))


def tiles_of(extent: PrimExpr, rows: int) -> PrimExpr | None:
    """n, where an extent is n * rows."""
    if isinstance(extent, Binary) and extent.kind == "mul" and isinstance(extent.b, IntImm) and extent.b.value == rows:
        return extent.a
    return None


def _tiles(name: str, start: Extent, tiles: Extent, width: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
    if isinstance(tiles, int) and tiles == 1:
        return inner(as_expr(start, INDEX))
    index = PrimVar(f"{name.removeprefix('v')}_{width}", INDEX)
    at = times(index, width)
    if not (isinstance(start, int) and start == 0):
        at = binary("add", as_expr(start, INDEX), at)
    return For(index, 0, tiles, inner(at))


def ceil_of(a: PrimExpr, b: int) -> PrimExpr:
    """a / b, rounded up."""
    return binary("floordiv", binary("add", a, const(b - 1, INDEX)), const(b, INDEX))


def times(a: PrimExpr, b: int) -> PrimExpr:
    """a * b."""
    return a if b == 1 else binary("mul", a, const(b, INDEX))


def times_of(a: Extent, b: int) -> Extent:
    """a * b."""
    return a * b if isinstance(a, int) else times(a, b)


def plus(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b."""
    return binary("add", a, b)


def _sum(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if isinstance(a, int) and a == 0 else binary("add", as_expr(a, INDEX), as_expr(b, INDEX))


def minus(a: Extent, b: Extent) -> Extent:
    """a - b."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if isinstance(b, int) and b == 0 else binary("sub", as_expr(a, INDEX), as_expr(b, INDEX))
