"""What is added to a reduction becomes its start."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import order, refused, underlined
from tests.transform.schedule.workloads import check, dense, matmul, softmax

from weft.ir import PrimFunc, te
from weft.ir.dim import Dim, symbol
from weft.transform.schedule import Schedule

N = symbol("n")


def biased(n: Dim = 12, m: Dim = 10, k: Dim = 9, *, then: str = "add", transposed: bool = False) -> PrimFunc:
    """A product and a bias, in whole numbers."""
    a, b = te.placeholder((n, k), dtype="int32", name="A"), te.placeholder((k, m), dtype="int32", name="B")
    bias = te.placeholder((m,), dtype="int32", name="bias")
    axis = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    forms = {
        "add": lambda i, j: bias[j] + c[i, j],
        "max": lambda i, j: te.maximum(c[i, j], bias[j]),
        "shift": lambda i, j: c[n - 1 - i, j] + bias[j],
        "twice": lambda i, j: c[i, j] + bias[j] + c[i, j],
    }
    form = (lambda i, j: forms[then](j, i)) if transposed else forms[then]
    d = te.compute((m, n) if transposed else (n, m), form, name="D")
    return te.create_prim_func([a, b, bias, d], "kernel")


def fused(function: PrimFunc) -> Schedule:
    sch = Schedule(function)
    sch.fuse_reduction_epilogue(sch.get_block("C"), sch.get_block("D"))
    return sch


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.booleans(), st.booleans())
def test_a_bias_is_where_a_sum_starts(n: int, m: int, k: int, transposed: bool, fixed: bool) -> None:
    function = biased(n if fixed else N, m, k, transposed=transposed)
    sch = fused(function)
    assert order(sch) == ["C"]
    text = check(function, sch, {"n": n}, compiled=False).script()
    assert "alloc_buffer" not in text


def test_the_reduction_can_be_scheduled_as_before() -> None:
    function = biased(N, 10, 9)
    sch = fused(function)
    block = sch.get_block("C")
    i, _, k = sch.get_loops(block)
    text = check(function, sch, {"n": 13}).script()
    assert "D[vi, vj] = bias[vj]" in text
    sch.split(i, [None, 4])
    sch.decompose_reduction(block, k)
    check(function, sch, {"n": 13})


@pytest.mark.parametrize(
    ("then", "code", "block", "said"),
    [
        ("max", "W609", "D", "the block 'D' does more than to add something and its element of 'C'"),
        ("shift", "W609", "D", "is not a variable of block 'D' of its own, over all of the result"),
        ("twice", "W609", "D", "the block 'D' does more than to add something and its element of 'C'"),
    ],
)
def test_other_epilogues_are_refused(then: str, code: str, block: str, said: str) -> None:
    error = refused(code, lambda: fused(biased(then=then)))
    assert said in error.message
    assert underlined(error) == f'with T.block("{block}"):'


def test_results_that_others_need_stay() -> None:
    error = refused("W609", lambda: fused(dense()))
    assert underlined(error) == 'with T.block("D"):'
    sch = Schedule(matmul())
    error = refused("W612", lambda: sch.fuse_reduction_epilogue(sch.get_block("C"), sch.get_block("C")))
    assert underlined(error) == 'with T.block("C"):'
    sch = Schedule(softmax())
    error = refused("W610", lambda: sch.fuse_reduction_epilogue(sch.get_block("E"), sch.get_block("Y")))
    assert underlined(error) == 'with T.block("E"):'
    started = Schedule(biased())
    started.fuse_reduction_epilogue(started.get_block("C"), started.get_block("D"))
    block = started.get_block("C")
    error = refused("W610", lambda: started.rfactor(started.get_loops(block)[2]))
    assert "is not neutral" in error.message
