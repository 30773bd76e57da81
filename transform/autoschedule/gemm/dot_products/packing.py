"""Packing for dot-product instructions, which take neighbours along k in groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.dtypes import bits, lanes, with_lanes
from weft.ir import substitute
from weft.ir.kernel.prim import as_expr, binary, const
from weft.ir.tensor import (
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimCall,
    PrimExpr,
    PrimVar,
    SeqStmt,
    Shuffle,
    Stmt,
)
from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import Blocking
from weft.transform.autoschedule.gemm.dot_products.dot import Dot
from weft.transform.autoschedule.gemm.match import converted
from weft.transform.autoschedule.gemm.packing import place_in_b, windows
from weft.transform.autoschedule.gemm.tiles import (
    Access,
    Panel,
    column_at,
    minus,
    plus,
    row_at,
    times,
    times_of,
    vector_at,
    vector_index,
)
from weft.transform.autoschedule.gemm.tiling import INDEX
from weft.transform.autoschedule.rules.loops import sequence
from weft.transform.autoschedule.rules.strides import step_along
from weft.transform.autoschedule.rules.transposes import transposed

__all__ = ["DotPacking"]

Group = Callable[[PrimExpr, Callable[[int], PrimExpr | bool]], Stmt]
"""(number of the group, whether its t-th element is there) -> what is done for the group."""


@dataclass(frozen=True)
class DotPacking:
    """The copies of the operands of a contraction whose products an instruction adds up in groups."""

    blocking: Blocking
    dot: Dot

    def tile_of_a(self, row: PrimExpr, at: PrimExpr, count: int, clamp: Access, k: PrimExpr, steps: Extent) -> Stmt:
        """A tile of `count` rows from `at` on, of the block that starts at `row`."""
        blocking, group = self.blocking, self.dot.group
        start = times(at, blocking.padded_kc)

        def put(q: PrimExpr, is_there: Callable[[int], PrimExpr | bool]) -> Stmt:
            i = PrimVar("i", INDEX)
            load = row_at(blocking.found.scalar, blocking.r, plus(row, clamp(plus(at, i))))
            place = plus(start, times(plus(times(q, count), i), group))
            if blocking.a_along_k is not None and is_there(group - 1) is True:
                whole = self._of_a(load, k, times(q, group), group)
                store: Stmt = BufferStore(blocking.a, self._as_a(whole), (vector_index(place, group),))
                return For(i, 0, count, store, "unrolled")
            elements = [self._of_a(load, k, plus(times(q, group), const(t, INDEX)), 1) for t in range(group)]
            values = [_guarded(self._as_a(x), is_there(t)) for t, x in enumerate(elements)]
            stores = [BufferStore(blocking.a, x, (plus(place, const(t, INDEX)),)) for t, x in enumerate(values)]
            return For(i, 0, count, sequence(stores), "unrolled")

        return self._each_group(times_of(steps, blocking.granularity), put)

    def panel_of_b(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """The groups of the panel one after another; zeros where it has no columns."""
        found, blocking = self.blocking.found, self.blocking
        if found.window is not None:
            return self._windows(k, steps, panel)
        if found.runs:
            return self._each_group(steps, lambda q, is_there: self._rows(k, q, panel, is_there))
        load = found.vector
        if load.indices[-1] is blocking.k and step_along(load, blocking.k) == 1 and panel.lanes > 1:
            return self._squares(k, steps, panel)
        return self._each_group(steps, lambda q, is_there: self._elements(k, q, panel, is_there))

    # Parts

    def _of_a(self, load: BufferLoad, k: PrimExpr, number: PrimExpr, count: int) -> BufferLoad:
        """`count` neighbours of A along k from the given one of a block on."""
        blocking = self.blocking
        if blocking.a_along_k is None:
            return vector_at(load, blocking.k, plus(k, number), count)
        first = plus(times(k, blocking.granularity), number)
        lead = load.indices[: blocking.a_along_k.ndim - 1]
        return BufferLoad(blocking.a_along_k, (*lead, vector_index(first, count)))

    def _windows(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """One k after another as without groups, then the lanes of each group interleaved."""
        source, group, j = self.blocking.rows_of_b, self.dot.group, PrimVar("j", INDEX)
        assert source is not None
        chunk = as_expr(panel.chunk, INDEX)
        count = times_of(steps, self.blocking.granularity)

        def put(panel: Panel, place: PrimExpr, load: PrimExpr) -> Stmt:
            return BufferStore(source, load, (chunk, place))

        def interleave(q: PrimExpr, is_there: Callable[[int], PrimExpr | bool]) -> Stmt:
            j = PrimVar("j", INDEX)

            def row(t: int) -> PrimExpr:
                number = plus(times(q, group), const(t, INDEX))
                place = plus(times(number, panel.width), times(j, panel.lanes))
                load = BufferLoad(source, (chunk, vector_index(place, panel.lanes)))
                return _guarded(self._as_b(load), is_there(t))

            place = times(plus(times(q, panel.width), times(j, panel.lanes)), group)
            store = self._store(panel, place, _interleaved([row(t) for t in range(group)]))
            return For(j, 0, panel.vectors, store, "unrolled")

        copy = windows(self.blocking, k, steps, panel, put)
        if panel.left is not None:
            zero = const(0, with_lanes(source.dtype, panel.lanes))
            clear = BufferStore(source, zero, (chunk, vector_index(times(j, panel.lanes), panel.lanes)))
            copy = SeqStmt((For(j, 0, times_of(count, panel.vectors), clear), copy))
        return SeqStmt((copy, self._each_group(count, interleave)))

    def _as_a(self, value: PrimExpr) -> PrimExpr:
        moved = _as(value, self.dot.a_type)
        return binary("bitwise_xor", moved, const(self.dot.offset, moved.dtype)) if self.dot.offset else moved

    def _as_b(self, value: PrimExpr) -> PrimExpr:
        return _as(value, self.dot.b_type)

    def _at_k(self, load: BufferLoad, k: PrimExpr, q: PrimExpr, t: int) -> BufferLoad:
        return substitute(load, {self.blocking.k: plus(k, plus(times(q, self.dot.group), const(t, INDEX)))})

    def _each_group(self, steps: Extent, body: Group) -> Stmt:
        """A loop over whole groups, and the remainder filled up with zeros."""
        group, q = self.dot.group, PrimVar("q", INDEX)
        whole = steps // group if isinstance(steps, int) else binary("floordiv", steps, const(group, INDEX))
        stmts: list[Stmt] = [] if whole == 0 else [For(q, 0, whole, body(q, lambda t: True))]
        rest = minus(steps, times_of(whole, group))
        if isinstance(rest, int):
            if rest:
                stmts.append(body(as_expr(whole, INDEX), lambda t: t < rest))
        else:
            last = body(as_expr(whole, INDEX), lambda t: binary("lt", const(t, INDEX), rest))
            stmts.append(IfThenElse(binary("gt", rest, const(0, INDEX)), last, None))
        return sequence(stmts)

    def _store(self, panel: Panel, place: PrimExpr, value: PrimExpr) -> Stmt:
        return BufferStore(self.blocking.b, value, place_in_b(self.blocking, panel, place, lanes(value.dtype)))

    def _rows(self, k: PrimExpr, q: PrimExpr, panel: Panel, is_there: Callable[[int], PrimExpr | bool]) -> Stmt:
        """Vectors of the rows of B, their lanes interleaved."""
        j, found, group = PrimVar("j", INDEX), self.blocking.found, self.dot.group
        at, mask = times(j, panel.lanes), panel.mask(j)

        def row(t: int) -> PrimExpr:
            column = column_at(found, panel.start, panel.width, at)
            load = vector_at(self._at_k(found.vector, k, q, t), found.v, column, panel.lanes)
            load = load if mask is None else BufferLoad(load.buffer, load.indices, mask)
            return _guarded(self._as_b(load), is_there(t))

        place = times(plus(times(q, panel.width), at), group)
        store = self._store(panel, place, _interleaved([row(t) for t in range(group)]))
        return For(j, 0, panel.vectors, store, "unrolled")

    def _elements(self, k: PrimExpr, q: PrimExpr, panel: Panel, is_there: Callable[[int], PrimExpr | bool]) -> Stmt:
        """One by one; columns beyond the last one are copies of it."""
        j, found, group = PrimVar("j", INDEX), self.blocking.found, self.dot.group
        load = substitute(found.vector, {found.v: self._column(panel, j)})
        place = times(plus(times(q, panel.width), j), group)
        values = [_guarded(self._as_b(self._at_k(load, k, q, t)), is_there(t)) for t in range(group)]
        stores = [self._store(panel, plus(place, const(t, INDEX)), x) for t, x in enumerate(values)]
        return For(j, 0, panel.width, sequence(stores))

    def _column(self, panel: Panel, at: PrimExpr) -> PrimExpr:
        found = self.blocking.found
        place = column_at(found, panel.start, panel.width, at)
        if panel.left is None:
            return place
        return binary("min", place, binary("sub", as_expr(found.extents[found.v], INDEX), const(1, INDEX)))

    def _squares(self, k: PrimExpr, steps: Extent, panel: Panel) -> Stmt:
        """Squares of groups, transposed in registers as if each were one number."""
        found, group, count = self.blocking.found, self.dot.group, panel.lanes
        load, j, p = found.vector, PrimVar("j", INDEX), PrimVar("p", INDEX)
        group_type = with_lanes(f"int{bits(self.dot.b_type) * group}", count)
        kind = with_lanes(self.dot.b_type, count * group)

        def row(t: int) -> PrimExpr:
            column = self._column(panel, plus(times(j, count), const(t, INDEX)))
            indices = tuple(substitute(x, {found.v: column}) for x in load.indices[:-1])
            first = plus(k, times(p, count * group))
            elements = BufferLoad(load.buffer, (*indices, vector_index(first, count * group)))
            return PrimCall("reinterpret", (self._as_b(elements),), group_type)

        def put(t: int, value: PrimExpr) -> Stmt:
            place = times(plus(times(plus(times(p, count), const(t, INDEX)), panel.width), times(j, count)), group)
            return self._store(panel, place, PrimCall("reinterpret", (value,), kind))

        size = count * group
        whole = steps // size if isinstance(steps, int) else binary("floordiv", steps, const(size, INDEX))
        squares = transposed(row, put, count, f"int{bits(self.dot.b_type) * group}")
        stmts: list[Stmt] = [For(p, 0, whole, For(j, 0, panel.vectors, squares))]
        done = times_of(whole, size)
        rest = minus(steps, done)
        if not (isinstance(rest, int) and rest == 0):
            first = as_expr(times_of(whole, count), INDEX)  # the group after the squares
            stmts.append(self._each_group(rest, lambda q, is_there: self._elements(k, plus(first, q), panel, is_there)))
        return SeqStmt(tuple(stmts))


def _as(value: PrimExpr, dtype: str) -> PrimExpr:
    return converted(value, () if value.dtype == with_lanes(dtype, lanes(value.dtype)) else (dtype,))


def _guarded(value: PrimExpr, is_there: PrimExpr | bool) -> PrimExpr:
    """A value, or zeros where a condition does not hold."""
    if is_there is True:
        return value
    zero = const(0, value.dtype)
    return zero if is_there is False else PrimCall("if_then_else", (is_there, value, zero), value.dtype)


def _interleaved(vectors: Sequence[PrimExpr]) -> PrimExpr:
    """The first lanes of all vectors, then the second ones, and so on; 2 or 4 vectors."""
    if len(vectors) > 2:
        return _interleaved([_interleaved(vectors[::2]), _interleaved(vectors[1::2])])
    count = lanes(vectors[0].dtype)
    order = [x + half for x in range(count) for half in (0, count)]
    return Shuffle(tuple(vectors), tuple(const(x, "int32") for x in order))
