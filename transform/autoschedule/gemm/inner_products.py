"""Inner products: rows of A and of B that lie along k are read once, where they lie.

    c[i, j] = c[i, j] + a[i, k] * b[j, k]

    for blocks of columns:  for blocks of rows:
        each result of the block in a vector of sums along k;  a vector of A or of B serves all results that use it
        the vectors are added up, and the results stored, with what is done to them next

Packing would bring B into an order that can be read across, which many rows pay for and few do not. Where columns are
few, the loop over blocks of rows is the outer one, and columns of B that do not lie along k are copied first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from math import prod

from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import AllocBuffer, Buffer, BufferLoad, BufferStore, Extent, For, PrimExpr, PrimVar, Stmt
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.gemm.dot_products.dot import dot_of
from weft.transform.autoschedule.gemm.few_columns import columns_along_k, few_columns
from weft.transform.autoschedule.gemm.match import Contraction
from weft.transform.autoschedule.gemm.tiles import ceil_of
from weft.transform.autoschedule.gemm.tiling import Capacity, packs_whole
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.rules.accumulators import Accumulators, Term, is_zero
from weft.transform.autoschedule.rules.loops import INDEX, nested, over_vectors, plus, sequence, split, times
from weft.transform.autoschedule.rules.strides import kinds_in, step_along, uses

__all__ = ["block_of_results", "inner_products", "is_inner", "rows_that_pack"]


def is_inner(found: Contraction, knobs: Knobs, constants: frozenset[Buffer]) -> bool:
    """Whether there are several rows, both operands lie along k, which is long, and B is not packed when compiled.

    Along a short k, bringing vectors of sums together costs as much as packing.
    """
    if found.window is not None or found.r is None or len(found.reduction) != 1:
        return False
    (k,) = found.reduction
    extent, rows = found.extents[k], found.extents[found.r]
    if (isinstance(rows, int) and rows < 2) or 0 in found.extents.values():
        return False
    along = step_along(found.scalar, k) == 1 and step_along(found.vector, k) == 1
    vectors = kinds_in(found.of_a(found.scalar)) is not None and kinds_in(found.of_b(found.vector)) is not None
    long = not isinstance(extent, int) or extent >= knobs.inner_k
    return along and vectors and long and not packs_whole(found, found.vector, found.v, constants)


def rows_that_pack(found: Contraction, machine: MachineModel, knobs: Knobs) -> int:
    """The number of rows from which on packing pays: instructions for dot products leave less to gain."""
    dot = dot_of(found, machine)
    if dot is None:
        return knobs.inner_rows
    return knobs.inner_dot_pair_rows if dot.group == 2 else knobs.inner_dot_rows


def block_of_results(found: Contraction, capacity: Capacity) -> tuple[int, int]:
    """Rows and columns of results at a time: their sums take half of the registers, what they share the rest."""
    assert found.r is not None
    rows, columns = found.extents[found.r], found.extents[found.v]
    shared = capacity.knobs.inner_columns
    across = capacity.pins.get("nr_vectors", _equal_blocks(columns, shared) if isinstance(columns, int) else shared)
    most = max(1, capacity.machine.vector_registers // (2 * min(across, shared)))
    return capacity.pins.get("mr", min(most, rows) if isinstance(rows, int) else most), across


def _equal_blocks(columns: int, most: int) -> int:
    """Columns of a block: one more than usual where blocks then are equal, since each other size is code of its own."""
    wanted = min(most, columns)
    return wanted + 1 if columns % wanted and columns % (wanted + 1) == 0 else wanted


def inner_products(found: Contraction, capacity: Capacity, constants: frozenset[Buffer]) -> Stmt:
    """The nest: few rows for each block of columns, or few columns for each block of rows."""
    few = few_columns(found, capacity, constants)
    outer = {var: PrimVar(var.name.removeprefix("v"), INDEX) for var in found.outer}
    loops = [(new, found.extents[var]) for var, new in outer.items()]
    copied, copy = (found, []) if few is False or not found.runs else _with_columns(found, capacity, constants)
    axes = _axes(found, capacity, few)
    blocks = _Blocks(copied, capacity).of(_Block(dict(outer), {}), axes)
    if any(uses(found.vector, var) for var in found.outer):
        return nested(loops, sequence([*(substitute(stmt, outer) for stmt in copy), *blocks]))
    return sequence([*copy, nested(loops, sequence(blocks))])


def _axes(found: Contraction, capacity: Capacity, few: bool | PrimExpr) -> list[_Axis]:
    """The loops over blocks of rows and columns, the outer one first."""
    assert found.r is not None
    rows, columns = block_of_results(found, capacity)
    if few is False:
        return [_Axis(found.v, columns), _Axis(found.r, rows)]
    if few is True:
        return [_Axis(found.r, rows), _Axis(found.v, columns)]
    return [_Axis(found.r, min(rows, _ROWS)), _Axis(found.v, _COLUMNS, clamps=True)]


_ROWS, _COLUMNS = 4, 2
"""The results of a block where a symbol says how many columns there are: one text, which is short, for all of them."""


def _with_columns(
    found: Contraction, capacity: Capacity, constants: frozenset[Buffer]
) -> tuple[Contraction, list[Stmt]]:
    """The contraction over columns of B that lie along k, and what copies them there."""
    (k,) = found.reduction
    buffer, there = columns_along_k(found, capacity, constants)
    converts = buffer.dtype == found.dtype
    j, columns = PrimVar("j", INDEX), found.extents[found.v]

    def element(p: PrimExpr) -> Stmt:
        value = substitute(found.of_b(found.vector) if converts else found.vector, {found.v: j, k: p})
        return BufferStore(buffer, value, (j, p))

    if packs_whole(found, found.vector, found.v, constants):  # as `PackConstants` knows copies
        p = PrimVar("p", INDEX)
        copy = nested([(j, columns), (p, found.extents[k])], element(p))
    else:
        row = over_vectors("p", found.extents[k], capacity.lanes, 1, element, capacity.masks)
        copy = For(j, 0, columns, sequence(row))
    casts = (found.casts[0], () if converts else found.casts[1])
    return dataclasses.replace(found, vector=there, casts=casts), [AllocBuffer(buffer), copy]


@dataclass(frozen=True)
class _Axis:
    """An axis of results that is cut into blocks: what fills none goes in smaller ones, or `clamps` to the last."""

    var: PrimVar
    width: int
    clamps: bool = False


@dataclass(frozen=True)
class _Block:
    """Some results side by side: where they start along each axis, and how many they are along two of them."""

    starts: Mapping[PrimVar, PrimExpr]
    sizes: Mapping[PrimVar, int]
    last: Mapping[PrimVar, PrimExpr] = field(default_factory=dict[PrimVar, PrimExpr])

    def with_axis(self, var: PrimVar, start: PrimExpr, size: int, last: PrimExpr | None = None) -> _Block:
        """The block along one more axis; results beyond the `last` one are that once more."""
        ends = self.last if last is None else {**self.last, var: last}
        return _Block({**self.starts, var: start}, {**self.sizes, var: size}, ends)

    @property
    def count(self) -> int:
        """The number of results."""
        return prod(self.sizes.values())

    def each(self, make: Callable[[Extent, Mapping[PrimVar, PrimExpr]], Stmt]) -> list[Stmt]:
        """What is made of the number and the place of a result, for all of them: loops that are unrolled."""
        number: Extent = 0
        place = dict(self.starts)
        loops: list[tuple[PrimVar, int]] = []
        for var, size in self.sizes.items():
            number = times(number, size)
            if size > 1:
                loops.append((PrimVar(f"{var.name.removeprefix('v')}_at", INDEX), size))
                number, place[var] = plus(number, loops[-1][0]), plus(self.starts[var], loops[-1][0])
            if var in self.last:
                place[var] = binary("min", place[var], self.last[var])
        stmt = make(number, place)
        for at, size in reversed(loops):
            stmt = For(at, 0, size, stmt, "unrolled")
        return [stmt]


@dataclass(frozen=True)
class _Blocks:
    found: Contraction
    capacity: Capacity

    def of(self, block: _Block, left: list[_Axis]) -> list[Stmt]:
        """Blocks along the axes that are left, and then what does not fill a block."""
        if not left:
            return self.results(block)
        axis, *more = left
        var, width, extent = axis.var, axis.width, self.found.extents[axis.var]
        if axis.clamps:
            i = PrimVar(f"{var.name.removeprefix('v')}_{width}", INDEX)
            last = binary("sub", as_expr(extent, INDEX), const(1, INDEX))
            clamped = block.with_axis(var, as_expr(times(i, width), INDEX), width, last)
            return [For(i, 0, ceil_of(as_expr(extent, INDEX), width), sequence(self.of(clamped, more)))]
        last = max(1, extent % width) if isinstance(extent, int) else 1
        parts: list[Stmt] = []
        done: int | PrimExpr = 0
        for size in sorted({width, last}, reverse=True):
            steps, end = split(done, extent, size)
            if not is_zero(steps):
                i = PrimVar(var.name.removeprefix("v") + (f"_{size}" if size > 1 else ""), INDEX)
                wider = block.with_axis(var, plus(done, times(i, size)), size)
                parts.append(For(i, 0, steps, sequence(self.of(wider, more))))
            done = end
        return parts

    def results(self, block: _Block) -> list[Stmt]:
        """The results of a block."""
        found = self.found
        (k,) = found.reduction
        most = max(1, min(4, self.capacity.machine.vector_registers // (2 * block.count)))
        vectors = 1 if block.last else 1 << (most.bit_length() - 1)  # a power of two, as k often is
        running = Accumulators.of(
            "add", found.dtype, self.capacity.lanes, vectors, self.capacity.masks, results=block.count
        )

        def each(make: Callable[[Extent, Term], Stmt]) -> list[Stmt]:
            return block.each(lambda number, place: make(times(number, running.width), partial(self.term, place)))

        steps = running.along(k.name.removeprefix("v"), found.extents[k], each)
        combined = each(lambda first, _: sequence(running.combined(first)))
        writes = block.each(
            lambda number, place: self.written(running.at(as_expr(times(number, running.width), INDEX)), place)
        )
        return [AllocBuffer(running.buffer), *running.clear(), *steps, *combined, *writes]

    def term(self, result: Mapping[PrimVar, PrimExpr], place: PrimExpr) -> PrimExpr:
        """The product at a place along k."""
        (k,) = self.found.reduction
        product = binary("mul", self.found.of_a(self.found.scalar), self.found.of_b(self.found.vector))
        return substitute(product, {**result, k: place})

    def written(self, total: BufferLoad, result: Mapping[PrimVar, PrimExpr]) -> Stmt:
        """A complete sum is stored, or what becomes of it."""
        found, value = self.found, total
        complete: PrimExpr = binary("add", found.target, value) if found.accumulates else value
        if found.epilogue is not None:
            complete = substitute(found.epilogue.value, {found.epilogue.total: complete})
        return substitute(BufferStore(found.store.buffer, complete, found.store.indices, span=found.store.span), result)
