"""Readers by digits of one variable, v // 16 and v % 16, under the loops that compute what they read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import refused, underlined
from tests.transform.schedule.workloads import check

from weft import parse
from weft.ir import PrimFunc
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


@pytest.mark.parametrize("read", ["b[v // SIZE, v % SIZE] + b[ROWS - 1 - v // SIZE, v % SIZE]", "b[v // SIZE, v % 2]"])
def test_other_digits_are_refused(read: str) -> None:
    sch = Schedule(tiles(8, 16, 128, read))
    error = refused("W613" if "ROWS" in read else "W616", lambda: sch.reverse_compute_at("y", sch.get_loops("b")[1]))
    assert underlined(error) == 'with T.block("y"):'
