"""Register tiles: rows of vectors that are summed in registers, and loops that cover a range with tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.ir import replace, substitute
from weft.ir.dtype import with_lanes
from weft.ir.prim import as_expr, binary, const
from weft.ir.tensor import (
    AllocBuffer,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.transform.contractions.planning import INDEX
from weft.transform.contractions.recognition import uses

__all__ = [
    "Access",
    "Tile",
    "cover",
    "cover_rows",
    "fresh",
    "minus",
    "plus",
    "row_at",
    "times",
    "vector_at",
    "vector_index",
]

Access = Callable[[PrimExpr], PrimExpr]


@dataclass(frozen=True)
class Tile:
    """rows x vectors accumulators.

    `scalar(i)` is the element of A in row i, `vector(j)` vector j of B, both for the current values of the `loops`
    (variable, extent) of the reduction; `element(i, j)` is the vector of C; `goes_on` says when C already holds a part
    of the sum (None: never).
    """

    rows: int
    vectors: int
    lanes: int
    scalar: Access
    vector: Access
    element: Callable[[PrimExpr, PrimExpr], BufferLoad]
    loops: Sequence[tuple[PrimVar, Extent]]
    goes_on: PrimExpr | None = None

    def build(self, dtype: str) -> Stmt:
        """Clear or load, accumulate, store."""
        sums = Buffer("sums", (self.rows * self.vectors * self.lanes,), dtype, "local")
        line = Buffer("line", (self.vectors * self.lanes,), dtype, "local")

        def local(buffer: Buffer, position: PrimExpr) -> BufferLoad:
            return BufferLoad(buffer, (vector_index(times(position, self.lanes), self.lanes),))

        def place(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            return plus(times(i, self.vectors), j) if self.vectors > 1 else i

        def accumulate(i: PrimExpr) -> Stmt:
            value = self.scalar(i)
            value = value if self.lanes == 1 else Broadcast(value, self.lanes)

            def add(j: PrimExpr) -> Stmt:
                total = local(sums, place(i, j))
                return _store(total, binary("add", total, binary("mul", value, local(line, j))))

            return _unrolled("j", self.vectors, add)

        def each(action: Callable[[PrimExpr, PrimExpr], Stmt]) -> Stmt:
            return _unrolled("i", self.rows, lambda i: _unrolled("j", self.vectors, lambda j: action(i, j)))

        zero = const(0.0, with_lanes(dtype, self.lanes))
        start = _unrolled("i", self.rows * self.vectors, lambda i: _store(local(sums, i), zero))
        if self.goes_on is not None:
            resume = each(lambda i, j: _store(local(sums, place(i, j)), self.element(i, j)))
            start = IfThenElse(self.goes_on, resume, start)
        loads = _unrolled("j", self.vectors, lambda j: _store(local(line, j), self.vector(j)))
        step: Stmt = SeqStmt((loads, _unrolled("i", self.rows, accumulate)))
        for var, extent in reversed(self.loops):
            step = For(var, 0, extent, step)
        write = each(lambda i, j: _store(self.element(i, j), local(sums, place(i, j))))
        return SeqStmt((AllocBuffer(sums), AllocBuffer(line), start, step, write))


def _store(place: BufferLoad, value: PrimExpr) -> Stmt:
    return BufferStore(place.buffer, value, place.indices)


def _unrolled(name: str, count: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
    if count == 1:
        return inner(const(0, INDEX))
    var = PrimVar(name, INDEX)
    return For(var, 0, count, inner(var), "unrolled")


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


def row_at(load: BufferLoad, r: PrimVar | None, row: PrimExpr | None) -> BufferLoad:
    """An access in one row."""
    return load if r is None or row is None else substitute(load, {r: row})


def fresh(var: PrimVar) -> PrimVar:
    """A loop variable for an iteration variable."""
    return PrimVar(var.name.removeprefix("v"), INDEX)


# Covering -----------------------------------------------------------------------------------------------------------


def cover(
    name: str, extent: Extent, tiers: Sequence[tuple[int, int]], inner: Callable[[PrimExpr, int, int], Stmt]
) -> Stmt:
    """Loops that cover a range with tiles: as many of each tier (count, lanes) as fit, widest first."""
    parts: list[Stmt] = []
    start: Extent = 0
    for count, lanes in tiers:
        width = count * lanes
        left = minus(extent, start)
        if isinstance(left, int) and left < width:
            continue
        tiles = left // width if isinstance(left, int) else binary("floordiv", left, const(width, INDEX))
        parts.append(_tiles(name, start, tiles, width, lambda at, c=count, w=lanes: inner(at, c, w)))
        start = _sum(start, tiles * width if isinstance(tiles, int) else binary("mul", tiles, const(width, INDEX)))
    return parts[0] if len(parts) == 1 else SeqStmt(tuple(parts))


def cover_rows(
    name: str, extent: Extent, rows: int, rests: Sequence[int],
    inner: Callable[[PrimExpr, int, Access], Stmt],
) -> Stmt:  # fmt: skip
    """Tiles of `rows` rows and one for the rest.

    `inner(start, rows, clamp)` builds a tile; `clamp` keeps a row inside the range: a symbolic rest is rounded up to
    one of the sizes `rests`, and rows beyond the last one do what the last one does once more.
    """
    if isinstance(extent, int):
        tiers = [(rows, 1), (extent % rows, 1)]
        return cover(name, extent, [tier for tier in tiers if tier[0]], lambda at, n, _: inner(at, n, lambda row: row))
    full = binary("floordiv", extent, const(rows, INDEX))
    start = binary("mul", full, const(rows, INDEX))
    left = binary("sub", extent, start)
    last = binary("sub", extent, const(1, INDEX))
    sizes = sorted({size for size in rests if size < rows} | {max(1, rows - 1)})
    rest = inner(start, sizes[-1], lambda row: binary("min", row, last))
    for size in reversed(sizes[:-1]):
        tile = inner(start, size, lambda row: binary("min", row, last))
        rest = IfThenElse(binary("le", left, const(size, INDEX)), tile, rest)
    body = _tiles(name, 0, full, rows, lambda at: inner(at, rows, lambda row: row))
    return SeqStmt((body, IfThenElse(binary("gt", left, const(0, INDEX)), rest, None)))


def _tiles(name: str, start: Extent, tiles: Extent, width: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
    if isinstance(tiles, int) and tiles == 1:
        return inner(as_expr(start, INDEX))
    index = PrimVar(f"{name.removeprefix('v')}_{width}", INDEX)
    at = times(index, width)
    if not (isinstance(start, int) and start == 0):
        at = binary("add", as_expr(start, INDEX), at)
    return For(index, 0, tiles, inner(at))


def times(a: PrimExpr, b: int) -> PrimExpr:
    """a * b."""
    return a if b == 1 else binary("mul", a, const(b, INDEX))


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
