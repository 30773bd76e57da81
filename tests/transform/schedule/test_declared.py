"""What blocks and buffers declare: boxes of buffers, axes of memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.transform.schedule.test_blocks import refused, underlined
from tests.transform.schedule.workloads import check, matmul

from weft import parse
from weft.ir import PrimFunc, structural_equal
from weft.ir.dim import symbol
from weft.ir.tensor import Block
from weft.transform.schedule import BlockRV, Schedule

N = symbol("n")


def test_a_block_declares_the_box_that_it_is_told() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.annotate_buffer_access(block, 0, "read", lambda i, j, k: (i, (0, 9)))
    sch.annotate_buffer_access(block, "C", "write", "lambda i, j, k: (i, i + 1, j, j + 1)")
    text = check(function, sch, {"n": 13}).script()
    assert "T.reads(A[vi, 0:9], B[vk, vj])\n                T.writes(C[vi, vj])" in text
    assert "gen_new_ranges='lambda i0, i1, i2: (i0, i0 + 1, 0, 9)')" in sch.trace.script()


@pytest.mark.parametrize(
    ("code", "step", "said"),
    [
        (
            "W620",
            lambda sch, b: sch.annotate_buffer_access(b, 0, "read", lambda i, j, k: (i, (0, 8))),
            "block 'C' may read elements of 'A' outside of the box along dimension 1",
        ),
        (
            "W620",
            lambda sch, b: sch.annotate_buffer_access(b, 0, "write", lambda i, j, k: (i + 1, j)),
            "block 'C' may write elements of 'C' outside of the box along dimension 0",
        ),
        (
            "W604",
            lambda sch, b: sch.annotate_buffer_access(b, 0, "red", lambda i, j, k: (i, k)),
            "a block reads or writes, it does not 'red'",
        ),
        (
            "W604",
            lambda sch, b: sch.annotate_buffer_access(b, 0, "read", lambda i, j, k: i),
            "lambda i0, i1, i2: (i0, i0 + 1) does not give a box of the 2 dimensions of 'A' for the "
            "3 variables of block"
            " 'C'",
        ),
        (
            "W604",
            lambda sch, b: sch.annotate_buffer_access(b, "D", "read", lambda i, j, k: (i, k)),
            "the block 'C' reads no buffer 'D'",
        ),
        ("W620", lambda sch, b: sch.unsafe_hide_buffer_access(b, "read", [1]), "block 'C' does read 'B'"),
        (
            "W604",
            lambda sch, b: sch.set_axis_separator(b, "A", [1, 1]),
            "[1, 1] does not divide the 2 dimensions of 'A'",
        ),
        ("W604", lambda sch, b: sch.set_axis_separator(b, "A", [2]), "[2] does not divide the 2 dimensions of 'A'"),
    ],
)
def test_what_does_not_hold_is_not_declared(code: str, step: Callable[[Schedule, BlockRV], None], said: str) -> None:
    sch = Schedule(matmul(N, 10, 9))
    error = refused(code, lambda: step(sch, sch.get_block("C")))
    assert error.message == said
    assert underlined(error) == 'with T.block("C"):'


def test_what_a_block_does_not_read_need_not_be_declared() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32"), z: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("b"):
            v = T.axis.spatial(8, i)
            T.reads(x[v], y[0:8])
            T.writes(z[v])
            z[v] = x[v] + 1
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    block = sch.get_block("b")
    sch.unsafe_hide_buffer_access(block, "read", [1])
    check(function, sch)
    found = sch.get(block)
    assert isinstance(found, Block)
    assert [region.buffer.name for region in found.reads or ()] == ["x"]


def test_axes_of_memory_are_kept_in_the_text() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.set_axis_separator(block, ("read", 0), [1])
    text = check(function, sch, {"n": 13}).script()
    assert 'A: T.Buffer(("n", 9), "float32", axis_separators=[1])' in text
    sch.set_axis_separator(block, ("read", 0), [])
    assert "axis_separators" not in sch.func.script()


def test_a_layout_may_say_where_axes_of_memory_begin() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.set_axis_separator(block, ("read", 0), [1])
    sch.transform_layout(block, ("read", 1), lambda k, j: (j, k // 3, k % 3), axis_separators=[1, 2])
    text = sch.func.script()
    assert 'B: T.Buffer((10, 3, 3), "float32", axis_separators=[1, 2])' in text
    assert 'A: T.Buffer(("n", 9), "float32", axis_separators=[1])' in text
    assert "axis_separators=[1, 2]" in str(sch.trace)
    again = Schedule(function)
    sch.trace.apply_to(again)
    assert structural_equal(again.mod, sch.mod)
    sch.transform_layout(block, ("read", 0), lambda i, k: (k, i))
    assert 'A: T.Buffer((9, "n"), "float32")' in sch.func.script()  # they belonged to the old dimensions
    error = refused("W604", lambda: sch.transform_layout(block, ("read", 0), lambda i, k: (k, i), axis_separators=[2]))
    assert error.message == "[2] does not divide the 2 dimensions of 'A'"
    assert underlined(error) == 'with T.block("C"):'
