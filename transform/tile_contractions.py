"""TileContractions: sums of products as register tiles over explicit vectors.

A loop nest around one block

    C[...] = C[...] + A[...] * B[...]          (init: C[...] = 0)

in which one spatial variable `v` runs along the last axis of C and, with stride one, of B, and does not occur in A,
becomes

    for the other spatial variables:
      for tiles along v:  for tiles along r:   (r: a spatial variable of A that B does not have; more rows share loads
      of B)
        accumulators[rows, vectors] = 0        in registers
        for the reduction variables:  accumulators[i, j] += broadcast(A[r + i]) * B[v + j * lanes : + lanes]
        C[r + i, v + j * lanes : + lanes] = accumulators[i, j]

Products of matrices, batched ones and convolutions are of this form alike; sizes may be symbolic: what a size leaves
over is done by smaller tiles. A matrix B that is read across (`v` not its last axis) is first copied into an order
that can be read along. The order of each sum stays the same, so results differ only by the fusion of multiply and add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.ir import IRModule, replace, substitute, walk
from weft.ir.dim import DimExpr, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.dtype import bits, with_lanes
from weft.ir.prim import as_expr, binary, const
from weft.ir.prim_dim import prim_to_dim
from weft.ir.tensor import (
    AllocBuffer,
    Binary,
    Block,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    FloatImm,
    For,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Ramp,
    SeqStmt,
    Stmt,
)
from weft.transform.base import FunctionPass

__all__ = ["TileContractions"]

INDEX = "int64"


@dataclass(frozen=True)
class TileContractions(FunctionPass):
    """Compute sums of products in register tiles.

    `vector_bits` is the width of a vector register, `registers` their number, `most_vectors` how many a row of a tile
    has.
    """

    kinds: ClassVar[type | tuple[type, ...]] = PrimFunc
    vector_bits: int = 256
    registers: int = 16
    most_vectors: int = 2

    def run_function(self, name: str, function: PrimFunc, module: IRModule) -> PrimFunc:
        """The function with its contractions tiled."""
        return replace(function, body=self._statement(function.body))

    def _statement(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, SeqStmt):
            new = tuple(self._statement(part) for part in stmt.stmts)
            return stmt if all(a is b for a, b in zip(new, stmt.stmts, strict=True)) else replace(stmt, stmts=new)
        if isinstance(stmt, For):
            found = _match(stmt)
            return stmt if found is None or not found.pays else _Tiling(found, self).build()
        return stmt


@dataclass(frozen=True)
class _Contraction:
    """What was recognised: the store, both operands, the loop of each iteration variable, v and r."""

    store: BufferStore
    scalar: BufferLoad  # A: read once a row
    vector: BufferLoad  # B: read along v
    extents: dict[PrimVar, Extent]
    outer: tuple[PrimVar, ...]
    reduction: tuple[PrimVar, ...]
    v: PrimVar
    r: PrimVar | None

    @property
    def pays(self) -> bool:
        """Whether there is something to compute, and a copy of B, where one is needed, is read more than once."""
        if any(isinstance(extent, int) and extent == 0 for extent in self.extents.values()):
            return False
        rows = 1 if self.r is None else self.extents[self.r]
        return _runs_along(self.vector, self.v) or not (isinstance(rows, int) and rows < 4)


# Recognition --------------------------------------------------------------------------------------------------------


def _match(loop: For) -> _Contraction | None:
    extents: dict[PrimVar, Extent] = {}
    inner: Stmt = loop
    while isinstance(inner, For):
        if inner.kind != "serial" or inner.annotations or inner.step is not None or inner.start != 0:
            return None
        extents[inner.loop_var] = inner.extent
        inner = inner.body
    if not isinstance(inner, Block) or not _is_plain(inner, extents):
        return None
    spatial = [item.var for item in inner.iter_vars if item.kind == "spatial"]
    reduction = [item.var for item in inner.iter_vars if item.kind == "reduce"]
    sizes = {item.var: extents[item.value] for item in inner.iter_vars if isinstance(item.value, PrimVar)}
    parts = _multiply_add(inner)
    if parts is None or not reduction or len(sizes) != len(extents):
        return None
    store, a, b = parts
    for scalar, vector in ((a, b), (b, a)):
        v = _vector_variable(store, scalar, vector, spatial)
        if v is not None:
            r = _row_variable(store, scalar, vector, [x for x in spatial if x is not v], sizes)
            outer = tuple(x for x in spatial if x is not v and x is not r)
            return _Contraction(store, scalar, vector, sizes, outer, tuple(reduction), v, r)
    return None


def _is_plain(block: Block, extents: dict[PrimVar, Extent]) -> bool:
    """Whether the block stands for its loops one to one and nothing else is attached to it."""
    values = [item.value for item in block.iter_vars]
    covered = all(isinstance(value, PrimVar) and value in extents for value in values)
    used = {x for extent in extents.values() if isinstance(extent, PrimExpr) for x in walk(extent)}
    kinds = {item.kind for item in block.iter_vars} <= {"spatial", "reduce"}
    bare = block.predicate is None and not block.alloc_buffers and not block.match_buffers and not block.annotations
    return covered and kinds and bare and len(set(values)) == len(extents) and not used & set(extents)


def _multiply_add(block: Block) -> tuple[BufferStore, BufferLoad, BufferLoad] | None:
    """(store, a, b) of a block that adds a * b to an element that starts at zero."""
    store, init = block.body, block.init
    if not isinstance(store, BufferStore) or not isinstance(init, BufferStore) or init.buffer is not store.buffer:
        return None
    if (
        not isinstance(init.value, FloatImm)
        or init.value.value != 0.0
        or store.buffer.dtype not in ("float32", "float64")
    ):
        return None
    total = store.value
    if not isinstance(total, Binary) or total.kind != "add" or store.predicate is not None:
        return None
    same = [part for part in (total.a, total.b) if _is_element(part, store)]
    products = [part for part in (total.a, total.b) if isinstance(part, Binary) and part.kind == "mul"]
    if len(same) != 1 or len(products) != 1 or not _same_indices(init.indices, store.indices):
        return None
    a, b = products[0].a, products[0].b
    if (
        not isinstance(a, BufferLoad)
        or not isinstance(b, BufferLoad)
        or a.predicate is not None
        or b.predicate is not None
    ):
        return None
    if store.buffer in (a.buffer, b.buffer) or a.dtype != store.buffer.dtype or b.dtype != store.buffer.dtype:
        return None
    return store, a, b


def _is_element(part: PrimExpr, store: BufferStore) -> bool:
    return isinstance(part, BufferLoad) and part.buffer is store.buffer and _same_indices(part.indices, store.indices)


def _same_indices(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _uses(indices: Sequence[PrimExpr], var: PrimVar) -> bool:
    return any(item is var for index in indices for item in walk(index))


def _runs_along(load: BufferLoad | BufferStore, var: PrimVar) -> bool:
    """Whether the variable moves an access by one element: stride one in the last index, absent from the others."""
    if not load.indices or load.buffer.strides is not None or _uses(load.indices[:-1], var):
        return False
    names = {x: f"x{i}" for i, x in enumerate({y for y in walk(load.indices[-1]) if isinstance(y, PrimVar)})}
    if var not in names:
        return False
    here = prim_to_dim(load.indices[-1], names)
    if here is None or not isinstance(here, DimExpr):
        return False
    step = symbol(names[var]) + 1
    return substitute_dim(here, {names[var]: step}) - here == 1


def _vector_variable(
    store: BufferStore, scalar: BufferLoad, vector: BufferLoad, spatial: Sequence[PrimVar]
) -> PrimVar | None:
    for var in reversed(spatial):
        if _runs_along(store, var) and not _uses(scalar.indices, var):
            if _runs_along(vector, var):
                return var
            if _can_reorder(vector, var):
                return var
    return None


def _can_reorder(load: BufferLoad, var: PrimVar) -> bool:
    """Whether an operand that is read across can be copied: several indices, each a variable of its own."""
    bare = all(isinstance(index, PrimVar) for index in load.indices) and len(set(load.indices)) == len(load.indices)
    return bare and var in load.indices and len(load.indices) > 1


def _row_variable(
    store: BufferStore, scalar: BufferLoad, vector: BufferLoad, spatial: Sequence[PrimVar], sizes: dict[PrimVar, Extent]
) -> PrimVar | None:
    """The variable of A's rows that B does not have: the longest one (a symbolic size counts as long)."""
    candidates = [
        x for x in spatial if _uses(scalar.indices, x) and not _uses(vector.indices, x) and x in store.indices
    ]

    def length(var: PrimVar) -> int:
        extent = sizes[var]
        return extent if isinstance(extent, int) else 1 << 20

    return max(candidates, key=length, default=None)


# Construction -------------------------------------------------------------------------------------------------------


class _Tiling:
    def __init__(self, found: _Contraction, options: TileContractions) -> None:
        self.found = found
        self.dtype = found.store.buffer.dtype
        self.lanes = max(1, options.vector_bits // bits(self.dtype))
        self.vectors = options.most_vectors
        # Accumulators take what the vectors of B and one broadcast value leave.
        self.rows = max(1, (options.registers - self.vectors - 2) // self.vectors)
        self.vector = found.vector

    def build(self) -> Stmt:
        """The whole nest."""
        found = self.found
        before: list[Stmt] = []
        if not _runs_along(self.vector, found.v):
            before.append(self._reordered())
        variables = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in found.outer}
        body = self._along(found.v, self._vector_tiers(), lambda v, count, lanes: self._rows_of(v, count, lanes))
        body = substitute(body, variables)
        for var in reversed(found.outer):
            body = For(variables[var], 0, found.extents[var], body, span=found.store.span)
        return SeqStmt((*before, body)) if before else body

    def _reordered(self) -> Stmt:
        """B copied so that v is its last axis; the operand is read from the copy afterwards."""
        load, v = self.vector, self.found.v
        order = [index for index in load.indices if index is not v] + [v]
        shape = [load.buffer.shape[load.indices.index(index)] for index in order]
        copy = Buffer(f"{load.buffer.name}_reordered", tuple(shape), self.dtype)
        fresh = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in order if isinstance(var, PrimVar)}
        stmt: Stmt = BufferStore(copy, substitute(load, fresh), tuple(fresh[var] for var in order))  # type: ignore[index]
        # Read along, write across: rows of the source are the long way through memory.
        for var, extent in reversed(list(zip(load.indices, load.buffer.shape, strict=True))):
            stmt = For(fresh[var], 0, extent, stmt)  # type: ignore[index]
        self.vector = BufferLoad(copy, tuple(order), span=load.span)
        return SeqStmt((AllocBuffer(copy, span=load.span), stmt))

    def _vector_tiers(self) -> list[tuple[int, int]]:
        """(vectors, lanes) from the widest tile along v to single elements."""
        extent = self.found.extents[self.found.v]
        tiers = [(self.vectors, self.lanes)]
        tiers += [(count, self.lanes) for count in range(self.vectors - 1, 0, -1)]
        lanes = self.lanes // 2
        while lanes >= 1:
            if isinstance(extent, int) or lanes == 1:
                tiers.append((1, lanes))
            lanes //= 2
        return tiers

    def _along(
        self, var: PrimVar, tiers: Sequence[tuple[int, int]], inner: Callable[[PrimExpr, int, int], Stmt]
    ) -> Stmt:
        """Loops that cover a variable's range with tiles: as many of each tier as fit, widest first."""
        extent = self.found.extents[var]
        parts: list[Stmt] = []
        start: Extent = 0
        for count, lanes in tiers:
            width = count * lanes
            left = extent - start if isinstance(extent, int) and isinstance(start, int) else _minus(extent, start)
            if isinstance(left, int) and left < width:
                continue
            tiles = left // width if isinstance(left, int) else binary("floordiv", left, const(width, INDEX))
            parts.append(self._tiles(var, start, tiles, width, lambda at, c=count, w=lanes: inner(at, c, w)))
            covered = tiles * width if isinstance(tiles, int) else binary("mul", tiles, const(width, INDEX))
            start = _plus(start, covered)
        return parts[0] if len(parts) == 1 else SeqStmt(tuple(parts))

    def _tiles(self, var: PrimVar, start: Extent, tiles: Extent, width: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
        if isinstance(tiles, int) and tiles == 1:
            return inner(as_expr(start, INDEX))
        index = PrimVar(f"{var.name.removeprefix('v')}_{width}", INDEX)
        at = index if width == 1 else binary("mul", index, const(width, INDEX))
        if not (isinstance(start, int) and start == 0):
            at = binary("add", as_expr(start, INDEX), at)
        return For(index, 0, tiles, inner(at), span=self.found.store.span)

    def _rows_of(self, v: PrimExpr, vectors: int, lanes: int) -> Stmt:
        r = self.found.r
        if r is None:
            return self._tile(None, v, 1, vectors, lanes)
        extent = self.found.extents[r]
        rows = self.rows * self.vectors // vectors if vectors < self.vectors and lanes == self.lanes else self.rows
        rows = min(rows, 16)
        sizes = [rows, rows // 2, 1] if not isinstance(extent, int) else [rows, extent % rows or 1]
        tiers = [(size, 1) for size in dict.fromkeys(size for size in sizes if size)]
        return self._along(r, tiers, lambda at, count, _: self._tile(at, v, count, vectors, lanes))

    def _tile(self, r: PrimExpr | None, v: PrimExpr, rows: int, vectors: int, lanes: int) -> Stmt:
        """One register tile: clear, accumulate over the reduction, store."""
        found = self.found
        sums = Buffer("sums", (rows * vectors * lanes,), self.dtype, "local")
        line = Buffer("line", (vectors * lanes,), self.dtype, "local")
        zero = const(0.0, with_lanes(self.dtype, lanes))

        def local(position: PrimExpr) -> tuple[PrimExpr]:
            """The index of a whole vector in local memory."""
            if lanes == 1:
                return (position,)
            return (Ramp(binary("mul", position, const(lanes, INDEX)), const(1, INDEX), lanes),)

        def column(j: PrimExpr) -> PrimExpr:
            first = v if lanes == 1 else binary("add", v, binary("mul", j, const(lanes, INDEX)))
            first = binary("add", v, j) if lanes == 1 and vectors > 1 else first
            return first if lanes == 1 else Ramp(first, const(1, INDEX), lanes)

        def place(load: BufferLoad | BufferStore, i: PrimExpr | None, j: PrimExpr | None) -> tuple[PrimExpr, ...]:
            mapping: dict[PrimVar, PrimExpr] = {}
            if found.r is not None and r is not None:
                mapping[found.r] = r if i is None else binary("add", r, i)
            return tuple(_at(index, mapping, found.v, None if j is None else column(j)) for index in load.indices)

        def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
            return binary("add", binary("mul", i, const(vectors, INDEX)), j) if vectors > 1 else i

        def unrolled(name: str, count: int, inner: Callable[[PrimExpr], Stmt]) -> Stmt:
            if count == 1:
                return inner(const(0, INDEX))
            var = PrimVar(name, INDEX)
            return For(var, 0, count, inner(var), "unrolled")

        def accumulate(i: PrimExpr) -> Stmt:
            value: PrimExpr = BufferLoad(found.scalar.buffer, place(found.scalar, i, None))
            value = value if lanes == 1 else Broadcast(value, lanes)

            def add(j: PrimExpr) -> Stmt:
                place_of_sum = local(element(i, j))
                product = binary("mul", value, BufferLoad(line, local(j)))
                return BufferStore(sums, binary("add", BufferLoad(sums, place_of_sum), product), place_of_sum)

            return unrolled("j", vectors, add)

        def store(i: PrimExpr, j: PrimExpr) -> Stmt:
            return BufferStore(found.store.buffer, BufferLoad(sums, local(element(i, j))), place(found.store, i, j))

        def load(j: PrimExpr) -> Stmt:
            return BufferStore(line, BufferLoad(self.vector.buffer, place(self.vector, None, j)), local(j))

        clear = unrolled("i", rows * vectors, lambda i: BufferStore(sums, zero, local(i)))
        step: Stmt = SeqStmt((unrolled("j", vectors, load), unrolled("i", rows, accumulate)))
        fresh = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in found.reduction}
        step = substitute(step, fresh)
        for var in reversed(found.reduction):
            step = For(fresh[var], 0, found.extents[var], step, span=found.store.span)
        write = unrolled("i", rows, lambda i: unrolled("j", vectors, lambda j: store(i, j)))
        return SeqStmt((AllocBuffer(sums), AllocBuffer(line), clear, step, write))


def _at(index: PrimExpr, mapping: dict[PrimVar, PrimExpr], v: PrimVar, column: PrimExpr | None) -> PrimExpr:
    """An index with rows and column in place; along v a vector of consecutive elements."""
    if column is None or not _uses((index,), v):
        return substitute(index, mapping)
    if not isinstance(column, Ramp):
        return substitute(index, {**mapping, v: column})
    return Ramp(substitute(index, {**mapping, v: column.base}), column.stride, column.lanes)


def _plus(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if isinstance(a, int) and a == 0 else binary("add", as_expr(a, INDEX), as_expr(b, INDEX))


def _minus(a: Extent, b: Extent) -> Extent:
    return a if isinstance(b, int) and b == 0 else binary("sub", as_expr(a, INDEX), as_expr(b, INDEX))
