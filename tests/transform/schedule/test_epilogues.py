"""What is added to a reduction becomes its start."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import order, refused, underlined
from tests.transform.schedule.workloads import check, matmul, softmax

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


@pytest.mark.parametrize("then", ["max", "twice"])
@pytest.mark.parametrize("transposed", [False, True])
def test_other_epilogues_are_applied_when_the_last_term_has_come(then: str, transposed: bool) -> None:
    function = biased(7, 5, 6, then=then, transposed=transposed)
    sch = fused(function)
    block = sch.get_block("C")
    text = check(function, sch).script()
    assert "if vk == 5:" in text
    assert "alloc_buffer" not in text
    i, j, k = sch.get_loops(block)
    sch.split(k, [None, 4])  # a last part that is not full: the last term still comes last
    sch.reorder(j, i)
    sch.parallel(j)
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    check(function, sch)


def test_epilogues_are_fused_one_after_the_other() -> None:
    a, b = te.placeholder((N, 6), dtype="int32", name="A"), te.placeholder((6, 4), dtype="int32", name="B")
    axis = te.reduce_axis((0, 6), name="k")
    c = te.compute((N, 4), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    d = te.compute((N, 4), lambda i, j: c[i, j] + b[0, j], name="D")
    e = te.compute((N, 4), lambda i, j: te.minimum(te.maximum(d[i, j], -100), 100), name="E")
    f = te.compute((N, 4), lambda i, j: e[i, j] * e[i, j] + a[i, 1], name="F")
    function = te.create_prim_func([a, b, f], "kernel")
    sch = Schedule(function)
    for name in "DEF":
        sch.fuse_reduction_epilogue("C", name)
    text = check(function, sch, {"n": 5}, {"n": 1}).script()
    assert "F[vi, vj] = B[T.int64(0), vj]" in text  # what is added is the start, the others follow the last term
    assert text.count("if vk == 5:") == 2


def test_an_epilogue_waits_for_the_last_term() -> None:
    for steps in ("split", "bound"):
        sch = Schedule(biased(then="max"))
        block = sch.get_block("C")
        k = sch.get_loops(block)[2]
        if steps == "split":
            outer, inner = sch.split(k, [None, 4])
            sch.reorder(inner, outer)
        else:
            sch.bind(k, "threadIdx.x")
        error = refused("W607", lambda: sch.fuse_reduction_epilogue("C", "D"))  # noqa: B023
        assert error.hint is not None
        assert error.hint.startswith("fuse the epilogue before")
    after = fused(biased(then="max"))
    block = after.get_block("C")
    outer, inner = after.split(after.get_loops(block)[2], [3, 3])
    refused("W607", lambda: after.reorder(inner, outer))
    refused("W610", lambda: after.rfactor(inner))
    refused("W608", lambda: after.bind(outer, "threadIdx.x"))


def test_an_epilogue_over_other_indices_is_refused() -> None:
    error = refused("W609", lambda: fused(biased(then="shift")))
    assert "is not a variable of block 'D' of its own, over all of the result" in error.message
    assert underlined(error) == 'with T.block("D"):'


def test_a_sum_stays_in_its_dtype() -> None:
    x = te.placeholder((8, 6), dtype="float32", name="X")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8,), lambda i: te.sum(x[i, k], axis=k), name="C")
    d = te.compute((8,), lambda i: te.cast("float16", c[i]), name="D")
    function = te.create_prim_func([x, d], "kernel")
    error = refused("W609", lambda: fused(function))
    assert error.message == "'D' is of dtype float16: the sum in float32 cannot be kept there"


def test_results_that_others_need_stay() -> None:
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
