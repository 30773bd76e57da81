"""What the analysis of dependences claims of loops, beside running them in another order and beside all their accesses.

A claim (no conflict, nothing shared, independent, never before) must hold for every program; programs that it does not
hold for, and plain ones for which it must be found, are given by hand.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import replace, substitute
from weft.ir.kernel.prim import binary
from weft.ir.tensor import (
    AllocBuffer,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    For,
    IntImm,
    IterVar,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.transform.analysis.loops.dependence import (
    Nest,
    barrier,
    conflict,
    loop_carried_dependence,
    outer_accesses,
    private_buffers,
    shared,
    update_of,
)
from weft.transform.analysis.loops.points import Point

ROW, COL = PrimVar("i", "int64"), PrimVar("j", "int64")
X, Y = Buffer("x", (64,), "int64"), Buffer("y", (64,), "int64")
Index = tuple[int, int, int, int, int]  # (a, b, c, d, m): (a*i + b*j + c) // d % m


def index(row: Index) -> PrimExpr:
    a, b, c, d, m = row
    return binary("floormod", binary("floordiv", ROW * a + COL * b + c, d), m)


def place(row: Index, i: int, j: int) -> int:
    a, b, c, d, m = row
    return (a * i + b * j + c) // d % m


def loops_over(sizes: tuple[int, int], body: Stmt, order: tuple[int, int] = (0, 1)) -> tuple[For, For]:
    """Two loops, and the same extents in another order."""
    pairs = [(ROW, sizes[0]), (COL, sizes[1])]
    (outer, first), (inner, second) = (pairs[item] for item in order)
    inside = For(inner, 0, second, body)
    return For(outer, 0, first, inside), inside


def nest_of(sizes: tuple[int, int], body: Stmt) -> Nest:
    loops = loops_over(sizes, body)
    return Nest(loops, body, Point(PrimFunc((X, Y), loops[0])))


def run(stmt: Stmt) -> tuple[list[int], list[int]]:
    """What the buffers hold afterwards."""
    x, y = np.arange(64, dtype="int64") * 5 + 2, np.arange(64, dtype="int64") * 3 + 1
    every = PrimVar("e", "int64")  # what is read first is no output, which would have to be written as a whole
    kept = For(every, 0, 64, SeqStmt(tuple(BufferStore(b, BufferLoad(b, (every,)), (every,)) for b in (X, Y))))
    weft.interpret(weft.IRModule({"main": PrimFunc((X, Y), SeqStmt((kept, stmt)), name="main")}))["main"](x, y)
    return x.tolist(), y.tolist()


def bodies() -> st.SearchStrategy[tuple[Stmt, list[tuple[Buffer, Index]], list[tuple[Buffer, Index]]]]:
    """A statement, what it writes, what it reads; values tell which iteration, and which element, they come from."""
    row = st.tuples(
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 3),
        st.sampled_from((1, 1, 2, 3)),
        st.sampled_from((64, 64, 5)),
    )

    def made(kind: str, at: Index, source: Index) -> Any:
        mark = ROW * 7 + COL * 3
        if kind == "fill":
            return BufferStore(X, mark, (index(at),)), [(X, at)], []
        if kind == "update":
            value: PrimExpr = BufferLoad(X, (index(at),)) + mark
            return BufferStore(X, value, (index(at),)), [(X, at)], [(X, at)]
        value = BufferLoad(X if kind == "move" else Y, (index(source),)) * 3 + mark
        return BufferStore(X, value, (index(at),)), [(X, at)], [(X if kind == "move" else Y, source)]

    one = st.builds(made, st.sampled_from(("fill", "update", "move", "copy")), row, row)
    two = st.tuples(one, one).map(lambda p: (SeqStmt((p[0][0], p[1][0])), p[0][1] + p[1][1], p[0][2] + p[1][2]))
    return one | two


SIZES = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(deadline=None, max_examples=60)
@given(SIZES, bodies())
def test_loops_without_a_clash_may_be_interchanged(sizes: tuple[int, int], program: Any) -> None:
    body, _, _ = program
    nest = nest_of(sizes, body)
    if conflict(nest, nest.loops[::-1]) is None:
        assert run(loops_over(sizes, body, (1, 0))[0]) == run(nest.loops[0])


@settings(deadline=None, max_examples=60)
@given(SIZES, bodies())
def test_iterations_that_share_nothing_touch_no_element_that_another_one_writes(
    sizes: tuple[int, int], program: Any
) -> None:
    body, writes, reads = program
    nest = nest_of(sizes, body)

    def touched(rows: list[tuple[Buffer, Index]], buffer: Buffer, axis: int, at: int) -> set[int]:
        points = itertools.product(range(sizes[0]), range(sizes[1]))
        return {place(row, *point) for point in points if point[axis] == at for b, row in rows if b is buffer}

    def conflict(buffer: Buffer, axis: int) -> bool:
        pairs = itertools.permutations(range(sizes[axis]), 2)
        return any(touched(writes, buffer, axis, a) & touched([*writes, *reads], buffer, axis, b) for a, b in pairs)

    if shared(nest) is None:
        assert not conflict(X, 0)
    independent = nest.independent(X)
    if nest.loops[0] in independent and nest.loops[1] not in independent:
        assert not conflict(X, 0)
    if nest.loops[1] in independent and nest.loops[0] not in independent:
        assert not conflict(X, 1)


@settings(deadline=None, max_examples=60)
@given(SIZES, bodies(), bodies())
def test_what_needs_nothing_of_later_iterations_may_run_inside_of_the_loop(
    sizes: tuple[int, int], first: Any, second: Any
) -> None:
    one, other = (For(COL, 0, sizes[1], body[0]) for body in (first, second))
    loop = For(ROW, 0, sizes[0], one)
    if loop_carried_dependence(loop, other, Point(PrimFunc((X, Y), loop))) is None:
        after = PrimVar("k", "int64")
        apart = SeqStmt((loop, For(after, 0, sizes[0], substitute(other, {ROW: after}))))
        assert run(replace(loop, body=SeqStmt((one, other)))) == run(apart)


def sum_block(kind: str, init: bool = True) -> Block:
    """x[v] = x[v] `kind` y[v * 4 + k], v bound to i and k to j."""
    v, k = PrimVar("v", "int64"), PrimVar("k", "int64")
    value = binary(kind, BufferLoad(X, (v,)), BufferLoad(Y, (v * 4 + k,)))
    return Block(
        name="sum",
        iter_vars=(IterVar(v, 0, 4, "spatial", ROW), IterVar(k, 0, 4, "reduce", COL)),
        body=BufferStore(X, value, (v,)),
        init=BufferStore(X, IntImm(0, "int64"), (v,)) if init else None,
    )


@pytest.mark.parametrize(
    ("body", "interchanges", "parallel"),
    [
        (BufferStore(X, ROW * 7 + COL, (ROW * 4 + COL,)), True, True),
        (BufferStore(X, ROW * 7 + COL, (ROW * 3 + COL,)), False, False),  # 0, 3 and 1, 0 are one element
        (BufferStore(X, ROW * 7 + COL, (COL,)), True, False),  # the last row stays the last one of each element
        (BufferStore(X, BufferLoad(X, (COL * 4 + ROW,)) + 1, (ROW * 4 + COL,)), False, False),  # a transpose in place
        (BufferStore(X, BufferLoad(Y, (COL * 4 + ROW,)) + 1, (ROW * 4 + COL,)), True, True),
        (BufferStore(X, BufferLoad(X, (ROW * 4 + COL + 4,)), (ROW * 4 + COL,)), False, False),  # from the row below
        (sum_block("add"), True, True),
        (sum_block("add", init=False), True, True),
        (sum_block("sub"), True, True),  # it is no update, but its rows are apart
    ],
)
def test_each_claim_about_loops_has_its_counter_example(body: Stmt, interchanges: bool, parallel: bool) -> None:
    nest = nest_of((4, 4), body)
    assert (conflict(nest, nest.loops[::-1]) is None) is interchanges
    assert (shared(nest) is None) is parallel
    assert conflict(nest, nest.loops) is None


@pytest.mark.parametrize(
    ("read", "may"),
    [(ROW, True), (binary("max", ROW - 1, 0), True), (ROW + 1, False), (3 - ROW, False)],
)
def test_a_later_element_keeps_a_reader_out_of_the_loop(read: PrimExpr, may: bool) -> None:
    loop = For(ROW, 0, 4, BufferStore(X, ROW * 7, (ROW,)))
    reader = BufferStore(Y, BufferLoad(X, (read,)), (ROW,))
    assert (loop_carried_dependence(loop, reader, Point(PrimFunc((X, Y), loop))) is None) is may


def test_what_is_not_arithmetic_on_elements_bars_every_order() -> None:
    call = PrimCall("call_extern", (), "int64")
    body = BufferStore(X, call, (ROW * 4 + COL,))
    assert barrier(body) is call
    nest = nest_of((4, 4), body)
    assert conflict(nest, nest.loops[::-1]) is not None
    assert shared(nest) is not None
    assert barrier(BufferStore(X, PrimCall("popcount", (ROW,), "int64"), (ROW,))) is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (BufferLoad(X, (ROW,)) + COL, "add"),
        (COL + BufferLoad(X, (ROW,)), "add"),
        (binary("max", BufferLoad(X, (ROW,)), COL), "max"),
        (BufferLoad(X, (ROW,)) - COL, None),
        (BufferLoad(X, (ROW + 1,)) + COL, None),
        (BufferLoad(Y, (ROW,)) + COL, None),
        (BufferLoad(X, (ROW,)) + BufferLoad(X, (COL,)), None),
    ],
)
def test_an_update_is_one_operation_in_any_order_on_the_element_itself(value: PrimExpr, kind: str | None) -> None:
    found = update_of(Block(name="b", iter_vars=(), body=BufferStore(X, value, (ROW,))))
    assert (None if found is None else found.kind) == kind


def test_private_memory_is_no_memory_of_others() -> None:
    own = Buffer("own", (4,), "int64")
    body = SeqStmt((AllocBuffer(own), BufferStore(own, ROW, (COL,)), BufferStore(X, BufferLoad(own, (COL,)), (ROW,))))
    assert private_buffers(body) == {own}
    point = Point(PrimFunc((X, Y), body))
    assert {(touch.buffer, touch.writes) for touch in outer_accesses(body, point.bounds())} == {(X, True)}
