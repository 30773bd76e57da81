"""Matching: loop nests that sum products of two operands (contractions), and the roles of their variables.

    for ...: C[...] = C[...] + A[...] * B[...]          (init: C[...] = 0)

`v` runs along the last axis of C and, with stride one, of B, and does not occur in A; `r` is a variable of A's rows
that B does not have; the other spatial variables are outer ones.

One description holds for all types: what each operand is stored in, how it is converted to the type that products are
taken and summed in, where partial sums are kept, and what becomes of complete ones (`Epilogue`: rounding,
scale, bias, activation).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from weft.dtypes import bits, is_bool, is_float, is_integer, lanes, with_lanes
from weft.ir import walk
from weft.ir.dim import DimExpr, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.tensor import (
    Binary,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Cast,
    DeclBuffer,
    Extent,
    FloatImm,
    For,
    IntImm,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.forks import cached_property
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import most_of
from weft.transform.autoschedule.rules.strides import difference_along, kinds_in

__all__ = [
    "Contraction",
    "Epilogue",
    "Filling",
    "Moves",
    "Parts",
    "Products",
    "Window",
    "converted",
    "match",
    "products_of",
    "row_variable",
    "rows_length",
    "runs_along",
    "steps_of",
    "sum_of_products",
    "uses",
    "views_of",
]


@dataclass(frozen=True)
class Window:
    """How v goes through the elements of B where windows move over it.

    v numbers the positions of `axes` (variables of B, outermost first) one after another.
    """

    axes: tuple[PrimVar, ...]
    sizes: tuple[Extent, ...]


@dataclass(frozen=True)
class Moves:
    """How windows move along an axis of the input: `step` from result to result, `gap` from element to element.

    `axis` numbers the results, `reduced` the elements of a window (None: there is one).

    >>> Moves(PrimVar("y", "int64"), 2, None, 1, 3).read(4)
    9
    """

    axis: PrimVar
    step: int
    reduced: PrimVar | None
    gap: int
    count: int

    def read(self, results: int) -> int:
        """How many neighbours of the input so many results read."""
        return (results - 1) * self.step + (self.count - 1) * self.gap + 1


@dataclass(frozen=True, eq=False)
class Filling:
    """What computes the second operand of a contraction: `store`, for all values of the variables in its indices.

    `stmt` is the nest before the contraction that does so, as where the operand is padded; None where elements are only
    converted, which each would otherwise be by every tile that reads it.
    """

    store: BufferStore
    stmt: Stmt | None = None


@dataclass(frozen=True)
class Epilogue:
    """What becomes of a complete sum, `total`: `value`, over the variables of the contraction."""

    total: PrimVar
    value: PrimExpr
    is_long: bool = False


@dataclass(frozen=True)
class Parts:
    """Equal parts of the columns, of which an epilogue puts the same column of each together.

    v numbers the columns of all parts in the order of panels: each has as many columns of every part, one part after
    another. `totals` are the sums of a column in the epilogue, part after part.
    """

    columns: int
    totals: tuple[PrimVar, ...]

    @property
    def count(self) -> int:
        """How many parts there are."""
        return len(self.totals)


_FEW_STEPS = 4096


def steps_of(extents: Iterable[Extent]) -> int:
    """The number of steps of loops, as far as it is known."""
    return math.prod(most_of(extent) or 1 for extent in extents)


@dataclass(frozen=True)
class Contraction:
    """A contraction: the store, both operands, the loop of each iteration variable, v and r.

    `casts` convert elements of A and of B to the type of the sums, the first one first. `result` is the buffer that the
    nest writes, of which `store` may go through a view; `partial_sums` stores sums that are not complete, where their
    epilogue stores another type. Where there is a `window`, B has its axes in place of v. `views` declare buffers that
    the accesses go through. A nest that `accumulates` adds to what C holds already. `filling` computes B, and becomes
    part of the nest. Where the epilogue puts `parts` of the columns together, `store` has those of one part.
    """

    store: BufferStore
    scalar: BufferLoad  # A: read once a row
    vector: BufferLoad  # B: read along v
    extents: dict[PrimVar, Extent]
    outer: tuple[PrimVar, ...]
    reduction: tuple[PrimVar, ...]
    v: PrimVar
    r: PrimVar | None
    window: Window | None = None
    views: tuple[DeclBuffer, ...] = ()
    result: Buffer | None = None
    epilogue: Epilogue | None = None
    accumulates: bool = False
    casts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    partial_sums: BufferStore | None = None
    filling: Filling | None = None
    parts: Parts | None = None

    @property
    def dtype(self) -> str:
        """The type of the sums."""
        return (self.partial_sums or self.store).buffer.dtype

    @property
    def part_count(self) -> int:
        """How many parts of the columns are put together."""
        return 1 if self.parts is None else self.parts.count

    @property
    def target(self) -> BufferLoad:
        """Where a partial sum is kept."""
        store = self.partial_sums or self.store
        return BufferLoad(store.buffer, store.indices)

    @cached_property
    def moves(self) -> tuple[Moves, ...] | None:
        """How windows move along each of their axes, or None where that is no step from element to element."""
        assert self.window is not None
        axes, moves = self.window.axes, []
        if len(self.vector.indices) < len(axes):
            return None
        for axis, index in zip(axes, self.vector.indices[-len(axes) :], strict=True):
            reduced = [x for x in self.reduction if uses((index,), x)]
            step = difference_along(index, axis)
            gap = difference_along(index, reduced[0]) if reduced else 1
            if len(reduced) > 1 or not step or not gap or step < 0 or gap < 0:
                return None
            count = self.extents[reduced[0]] if reduced else 1
            if any(uses((index,), x) for x in axes if x is not axis) or not isinstance(count, int):
                return None
            moves.append(Moves(axis, step, reduced[0] if reduced else None, gap, count))
        used = [x.reduced for x in moves if x.reduced is not None]
        return tuple(moves) if len(set(used)) == len(used) else None

    @property
    def is_long_sum(self) -> bool:
        """Whether it is known to sum so many products that one long sum of float32 would lose digits."""
        return self.dtype == "float32" and steps_of(self.extents[var] for var in self.reduction) > _FEW_STEPS

    @property
    def may_be_long(self) -> bool:
        """Whether it is such a sum, or nothing says that it is none: its sizes are symbolic."""
        is_known = all(most_of(self.extents[var]) is not None for var in self.reduction)
        return self.is_long_sum or (self.dtype == "float32" and not is_known)

    def of_a(self, value: PrimExpr) -> PrimExpr:
        """Elements of A in the type of the sums."""
        return converted(value, self.casts[0])

    def of_b(self, value: PrimExpr) -> PrimExpr:
        """Elements of B in the type of the sums."""
        return converted(value, self.casts[1])

    @property
    def has_long_epilogue(self) -> bool:
        """Whether what becomes of a sum takes many instructions."""
        return self.epilogue is not None and self.epilogue.is_long

    @property
    def runs(self) -> bool:
        """Whether B is read along v without a copy."""
        return self.window is None and runs_along(self.vector, self.v)

    @property
    def pays(self) -> bool:
        """Whether there is something to compute, and a copy of B, where one is needed, is read more than once."""
        if any(isinstance(extent, int) and extent == 0 for extent in self.extents.values()):
            return False
        if self.r is None:
            return self.runs or self.window is not None  # windows of a single row are read where they are
        rows = self.extents[self.r]
        return self.runs or not (isinstance(rows, int) and rows < 4)


@dataclass(frozen=True)
class Products:
    """A nest that sums products: its store, the two factors with how they are converted, its variables and their
    extents; whether it adds to sums that are there."""

    store: BufferStore
    factors: tuple[BufferLoad, BufferLoad]
    extents: dict[PrimVar, Extent]
    spatial: tuple[PrimVar, ...]
    reduction: tuple[PrimVar, ...]
    accumulates: bool = False
    casts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def orders(self) -> tuple[Products, Products]:
        """The products with their factors in both orders."""
        (a, b), (first, second) = self.factors, self.casts
        return self, replace(self, factors=(b, a), casts=(second, first))


def converted(value: PrimExpr, casts: Sequence[str]) -> PrimExpr:
    """A value, or a vector of values, after conversions."""
    for dtype in casts:
        value = Cast(with_lanes(dtype, lanes(value.dtype)), value)
    return value


@dataclass(frozen=True)
class SumOfProducts:
    """A nest that adds a product to an element: its store, the product, its variables and their extents."""

    store: BufferStore
    product: Binary
    extents: dict[PrimVar, Extent]
    spatial: tuple[PrimVar, ...]
    reduction: tuple[PrimVar, ...]
    accumulates: bool


def products_of(loop: For) -> Products | None:
    """A loop nest as a sum of products of two loads, or None."""
    found = sum_of_products(loop)
    if found is None:
        return None
    a, b = _factor(found.product.a), _factor(found.product.b)
    if a is None or b is None or found.store.buffer in (a[0].buffer, b[0].buffer):
        return None
    return Products(
        found.store, (a[0], b[0]), found.extents, found.spatial, found.reduction, found.accumulates, (a[1], b[1])
    )


def sum_of_products(loop: For) -> SumOfProducts | None:
    """A loop nest as a sum of products of anything, or None."""
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
    return SumOfProducts(*parts, sizes, tuple(spatial), tuple(reduction), inner.init is None)


def match(found: Products) -> Contraction | None:
    """The contraction along one variable of the result that a sum of products is, or None."""
    store, spatial = found.store, found.spatial
    for order in found.orders:
        scalar, vector = order.factors
        v = _vector_variable(store, scalar, vector, spatial)
        if v is not None:
            r = row_variable(store, scalar, vector, [x for x in spatial if x is not v], found.extents)
            outer = tuple(x for x in spatial if x is not v and x is not r)
            return Contraction(
                store,
                scalar,
                vector,
                found.extents,
                outer,
                found.reduction,
                v,
                r,
                result=store.buffer,
                accumulates=found.accumulates,
                casts=order.casts,
            )
    return None


def _is_plain(block: Block, extents: dict[PrimVar, Extent]) -> bool:
    """Whether the block stands for its loops one to one and nothing else is attached to it."""
    values = [item.value for item in block.iter_vars]
    covered = all(isinstance(value, PrimVar) and value in extents for value in values)
    used = {x for extent in extents.values() if isinstance(extent, PrimExpr) for x in walk(extent)}
    kinds = {item.kind for item in block.iter_vars} <= {"spatial", "reduce"}
    bare = block.predicate is None and not block.alloc_buffers and not block.match_buffers and not block.annotations
    return covered and kinds and bare and len(set(values)) == len(extents) and not used & set(extents)


_Factor = tuple[BufferLoad, tuple[str, ...]]
"""What is loaded, and how it is converted."""


def _multiply_add(block: Block) -> tuple[BufferStore, Binary] | None:
    """(store, a * b) of a block that adds a * b to an element that starts at zero, or that does not start anew."""
    store, init = block.body, block.init
    if not isinstance(store, BufferStore) or not _can_sum(store.buffer.dtype):
        return None
    if init is not None and not _is_zero_at(init, store):
        return None
    total = store.value
    if not isinstance(total, Binary) or total.kind != "add" or store.predicate is not None:
        return None
    same = [part for part in (total.a, total.b) if _is_element(part, store)]
    products = [part for part in (total.a, total.b) if isinstance(part, Binary) and part.kind == "mul"]
    if len(same) != 1 or len(products) != 1:
        return None
    return store, products[0]


def _can_sum(dtype: str) -> bool:
    """Whether vectors of a type are added and multiplied by single instructions."""
    return lanes(dtype) == 1 and bits(dtype) >= 32 and (is_float(dtype) or is_integer(dtype))


def _factor(value: PrimExpr) -> _Factor | None:
    """A load and its conversions, all of types that vectors are converted between."""
    casts: list[str] = []
    if kinds_in(value) is None:
        return None
    while isinstance(value, Cast):
        casts.insert(0, value.dtype)
        value = value.value
    plain = isinstance(value, BufferLoad) and value.predicate is None and not is_bool(value.dtype)
    return (value, tuple(casts)) if plain and isinstance(value, BufferLoad) else None


def _is_zero_at(init: Stmt, store: BufferStore) -> bool:
    """Whether an element starts at zero."""
    if not isinstance(init, BufferStore) or init.buffer is not store.buffer:
        return False
    zero = isinstance(init.value, (FloatImm, IntImm)) and init.value.value == 0
    return zero and _same_indices(init.indices, store.indices)


def _is_element(part: PrimExpr, store: BufferStore) -> bool:
    return isinstance(part, BufferLoad) and part.buffer is store.buffer and _same_indices(part.indices, store.indices)


def _same_indices(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def uses(indices: Sequence[PrimExpr], var: PrimVar) -> bool:
    """Whether a variable occurs in any of the indices."""
    return any(item is var for index in indices for item in walk(index))


def runs_along(load: BufferLoad | BufferStore, var: PrimVar) -> bool:
    """Whether the variable moves an access by one element: stride one in the last index, absent from the others."""
    if not load.indices or load.buffer.strides is not None or uses(load.indices[:-1], var):
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
        if runs_along(store, var) and not uses(scalar.indices, var):
            if runs_along(vector, var):
                return var
            if _can_reorder(vector, var):
                return var
    return None


def _can_reorder(load: BufferLoad, var: PrimVar) -> bool:
    """Whether an operand that is read across can be copied: several indices, each a variable of its own."""
    bare = all(isinstance(index, PrimVar) for index in load.indices) and len(set(load.indices)) == len(load.indices)
    return bare and var in load.indices and len(load.indices) > 1


def row_variable(
    store: BufferStore, scalar: BufferLoad, vector: BufferLoad, spatial: Sequence[PrimVar], sizes: dict[PrimVar, Extent]
) -> PrimVar | None:
    """The variable of A's rows that B does not have: the longest one (a symbolic size counts as long), of several the
    innermost.
    """
    candidates = [x for x in spatial if uses(scalar.indices, x) and not uses(vector.indices, x) and x in store.indices]
    return max(reversed(candidates), key=lambda x: rows_length((x,), sizes), default=None)


def rows_length(axes: Sequence[PrimVar], sizes: dict[PrimVar, Extent]) -> int:
    """How many rows some axes are; a symbolic size counts as long."""
    return math.prod(extent if isinstance(extent, int) else 1 << 20 for extent in (sizes[x] for x in axes))


def views_of(found: Contraction) -> list[DeclBuffer]:
    """The views that the nest goes through, without those of partial sums, of which C has no place."""
    if found.partial_sums is None:
        return list(found.views)
    gone: set[object] = {found.result}
    views: list[DeclBuffer] = []
    for view in found.views:
        if view.buffer.data is not None and any(part in gone for part in walk(view.buffer.data)):
            gone.add(view.buffer)
        else:
            views.append(view)
    return views
