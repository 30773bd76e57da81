"""Readers by digits of one variable, v // 16 and v % 16, under the loops that compute what they read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import refused, underlined
from tests.transform.schedule.workloads import check

from weft import parse
from weft.ir import PrimFunc, te
from weft.ir.dim import symbol
from weft.transform.schedule import Schedule

TILES = """
@T.prim_func
def kernel(x: T.Buffer((ROWS * SIZE,), "int32"), y: T.Buffer((N,), "int32")):
    b = T.alloc_buffer((ROWS, SIZE), "int32")
    for i, j in T.grid(ROWS, SIZE):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = x[vi * SIZE + vj] * 2
    for i in range(N):
        with T.block("y"):
            v = T.axis.spatial(N, i)
            y[v] = READ
"""
PLAIN = "b[v // SIZE, v % SIZE] + 1"


def tiles(rows: int, size: int, n: int, read: str = PLAIN) -> PrimFunc:
    text = TILES.replace("READ", read)
    for name, value in (("ROWS", rows), ("SIZE", size), ("N", n)):
        text = text.replace(name, str(value))
    function = parse(text)
    assert isinstance(function, PrimFunc)
    return function


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(2, 6), st.integers(0, 5), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))
def test_a_reader_of_tiles_moves_under_the_loops_of_its_producer(
    rows: int, size: int, missing: int, high: int, low: int, at: int
) -> None:
    function = tiles(rows, size, max(1, rows * size - missing))
    sch = Schedule(function)
    i, j = sch.get_loops("b")
    outer, inner = sch.split(i, [None, high]) if rows % high == 0 else (i, None)
    first, second = sch.split(j, [None, low]) if size % low == 0 else (j, None)
    loops = [outer, first, *(loop for loop in (inner, second) if loop is not None)]
    sch.reorder(*loops)
    sch.reverse_compute_at("y", loops[min(at, len(loops) - 1)])
    check(function, sch, compiled=False)


def test_tiles_of_tiles_are_loops_over_their_digits() -> None:
    function = tiles(8, 16, 128)
    sch = Schedule(function)
    i, j = sch.get_loops("b")
    io, ii = sch.split(i, [2, 4])
    jo, ji = sch.split(j, [4, 4])
    sch.reorder(io, jo, ii, ji)
    sch.reverse_compute_at("y", jo)
    assert [getattr(sch.get(loop), "extent", None) for loop in sch.get_loops("y")] == [2, 4, 4, 4]
    check(function, sch)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_windows_side_by_side_move_under_the_rows_that_they_read(
    count: int, step: int, width: int, rows: int, more: int, fixed: bool
) -> None:
    width = min(width, step)
    size = count if fixed else symbol("n")
    length = size * step + more
    x = te.placeholder((length,), dtype="int32", name="X")
    b = te.compute((length,), lambda i: x[i] * 2, name="B")
    k = te.reduce_axis((0, width), name="k")
    y = te.compute((size,), lambda i: te.sum(b[i * step + k], axis=k), name="Y")
    function = te.create_prim_func([x, y], "kernel")
    sch = Schedule(function)
    (loop,) = sch.get_loops("B")
    outer, _ = sch.split(loop, [None, rows * step])
    sch.reverse_compute_at("Y", outer)
    check(function, sch, {"n": count}, compiled=False)


def test_windows_that_overlap_or_lie_across_tiles_are_refused() -> None:
    x = te.placeholder((18,), dtype="int32", name="X")
    b = te.compute((18,), lambda i: x[i] * 2, name="B")
    k = te.reduce_axis((0, 3), name="k")
    for step, tile in ((2, 6), (3, 2)):
        y = te.compute((5,), lambda i, step=step: te.sum(b[i * step + k], axis=k), name="Y")
        sch = Schedule(te.create_prim_func([x, y], "kernel"))
        outer, _ = sch.split(sch.get_loops("B")[0], [None, tile])
        refused("W616", lambda: sch.reverse_compute_at("Y", outer))  # noqa: B023


@pytest.mark.parametrize("read", ["b[v // SIZE, v % SIZE] + b[ROWS - 1 - v // SIZE, v % SIZE]", "b[v // SIZE, v % 2]"])
def test_other_digits_are_refused(read: str) -> None:
    sch = Schedule(tiles(8, 16, 128, read))
    error = refused("W613" if "ROWS" in read else "W616", lambda: sch.reverse_compute_at("y", sch.get_loops("b")[1]))
    assert underlined(error) == 'with T.block("y"):'
