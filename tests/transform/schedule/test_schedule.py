"""Traces, random choices, intrinsics, primitives of users, and how scheduled functions go through the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.transform.schedule.workloads import arguments, chain, check, dense, matmul, row_sums, same_results

import weft
from weft import ScheduleError
from weft.ir import IRModule, PrimFunc, walk
from weft.ir.dim import symbol
from weft.ir.tensor import For
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.transform import default_pipeline
from weft.transform.schedule import PRIMITIVES, ExprRV, LoopRV, Schedule, TensorIntrin, Trace, register_primitive

N = symbol("n")


def refused(code: str, step: Callable[[], object]) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        step()
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint or code in ("W601", "W604"), caught.value  # what would make the step legal
    return caught.value


def tiled(function: PrimFunc, **options: Any) -> Schedule:
    sch = Schedule(function, **options)
    i, j, k = sch.get_loops(sch.get_block("C"))
    (io, ii), (jo, ji), (ko, ki) = (sch.split(loop, [None, 4]) for loop in (i, j, k))
    sch.reorder(io, jo, ko, ii, ji, ki)
    return sch


# Marks --------------------------------------------------------------------------------------------------------------


def test_marked_loops_stand_in_the_text() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(i, k, j)
    sch.parallel(i)
    sch.vectorize(j)
    sch.unroll(k)
    sch.annotate(k, "pragma", [1, "two"])
    text = check(function, sch).script()
    assert "for i in T.parallel(T.int64(12)):" in text
    assert "for j in T.vectorized(T.int64(10)):" in text
    assert 'for k in T.unroll(T.int64(9), annotations={"pragma": [1, "two"]}):' in text
    sch.unannotate(k, "pragma")
    refused("W604", lambda: sch.unannotate(k, "pragma"))
    refused("W604", lambda: sch.annotate(k, "bad", object()))


@pytest.mark.parametrize("mark", ["parallel", "vectorize"])
def test_loops_whose_iterations_share_elements_are_not_marked(mark: str) -> None:
    sch = Schedule(matmul(12, 10, 9))
    before = sch.mod
    k = sch.get_loops(sch.get_block("C"))[2]
    error = refused("W608", lambda: getattr(sch, mark)(k))
    assert "different iterations of 'k' touch the same elements of 'C'" in error.message
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.end_column) == (9, 19, 20)
    assert error.span.filename == "<schedule of kernel>"
    assert sch.mod is before


def test_the_threads_of_a_block_share_a_reduction() -> None:
    function = row_sums(N, 14)
    sch = Schedule(function)
    block = sch.get_block("Y")
    i, k = sch.get_loops(block)
    _, ki = sch.split(k, [None, 4])
    sch.bind(i, "blockIdx.x")
    for axis in ("blockIdx.y", "vthread"):
        error = refused("W608", lambda axis=axis: sch.bind(ki, axis))
        assert error.message.endswith("different iterations of 'k_1' touch the same elements of 'Y'")
    sch.bind(ki, "threadIdx.x")
    text = check(function, sch, {"n": 5}).script()
    assert 'T.thread_binding(T.int64(4), thread="threadIdx.x")' in text


def test_threads_do_not_share_what_depends_on_the_order() -> None:
    scan = weft.parse(
        """
@T.prim_func
def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((1,), "int32")):
    for k in range(8):
        with T.block("last"):
            vk = T.axis.reduce(8, k)
            with T.init():
                y[0] = 0
            y[0] = y[0] - x[vk]
"""
    )
    assert isinstance(scan, PrimFunc)
    sch = Schedule(scan)
    loop = sch.get_loops(sch.get_block("last"))[0]
    error = refused("W608", lambda: sch.bind(loop, "threadIdx.x"))
    assert error.span is not None
    assert (error.span.line, error.span.column) == (9, 9)


def test_a_thread_axis_has_a_known_name() -> None:
    sch = Schedule(matmul(12, 10, 9))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "blockIdx.x")
    assert 'T.thread_binding(T.int64(12), thread="blockIdx.x")' in sch.mod.script()
    refused("W604", lambda: sch.bind(j, "threadIdx.w"))


def test_a_later_step_may_not_break_a_parallel_loop() -> None:
    """A producer moved under a parallel loop would write the elements that the neighbours read too."""

    @T.prim_func
    def kernel(x: T.Buffer((18,), "int32"), y: T.Buffer((16,), "int32")):
        t = T.alloc_buffer((18,), "int32")
        for i in range(18):
            with T.block("t"):
                vi = T.axis.spatial(18, i)
                t[vi] = x[vi] * 2
        for i in range(16):
            with T.block("y"):
                vi = T.axis.spatial(16, i)
                y[vi] = t[vi] + t[vi + 1] + t[vi + 2]

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    (i,) = sch.get_loops(sch.get_block("y"))
    sch.parallel(i)
    error = refused("W608", lambda: sch.compute_at(sch.get_block("t"), i))
    assert error.hint == "allocate 't' inside the loop, or mark a loop further in"
    check(kernel, sch)


def test_tiles_of_fused_loops_run_in_parallel() -> None:
    function = matmul(N, 10, 9)
    sch = tiled(function)
    io, jo, *_ = sch.get_loops(sch.get_block("C"))
    sch.parallel(sch.fuse(io, jo))
    check(function, sch, {"n": 13}, {"n": 0})
    other = Schedule(chain(N, 10))
    flat = other.fuse(*other.get_loops(other.get_block("B")))
    outer, inner = other.split(flat, [None, 8])
    other.parallel(outer)
    other.vectorize(inner)
    check(chain(N, 10), other, {"n": 13}, {"n": 0})


# Traces -------------------------------------------------------------------------------------------------------------


def test_a_trace_prints_as_python_and_does_the_same_again() -> None:
    sch = Schedule(matmul(12, 10, 9))
    i, *_ = sch.get_loops(sch.get_block("C"))
    (only,) = sch.split(i, [12])
    sch.parallel(only)
    assert sch.trace.script() == (
        "def apply(sch):\n"
        "    b0 = sch.get_block(name='C')\n"
        "    l0, l1, l2 = sch.get_loops(block=b0)\n"
        "    l3, = sch.split(loop=l0, factors=[12])\n"
        "    sch.parallel(loop=l3)\n"
    )
    check(matmul(12, 10, 9), sch)


def test_a_trace_applies_to_other_sizes() -> None:
    sch = tiled(matmul(12, 10, 9))
    other = Schedule(matmul(N, 7, 5))
    sch.trace.apply_to(other)
    same_results(matmul(N, 7, 5), other.mod, {"n": 6})


def test_a_trace_that_does_not_fit_is_refused() -> None:
    sch = tiled(matmul(12, 10, 9))
    refused("W602", lambda: sch.trace.apply_to(Schedule(row_sums(3, 4))))
    refused("W619", lambda: Trace.from_json([{"name": "split"}]))
    data = sch.trace.to_json()
    data[0]["name"] = "get_blok"
    error = refused("W619", lambda: Trace.from_json(data).apply_to(Schedule(matmul(12, 10, 9))))
    assert error.hint is not None
    assert "get_block" in error.hint


def test_a_step_that_fails_leaves_everything_as_it_was() -> None:
    sch = Schedule(dense(12, 10, 9))
    sch.compute_inline(sch.get_block("B"))
    before, steps = sch.mod, len(sch.trace)
    c = sch.get_block("C")
    refused("W609", lambda: sch.compute_inline(c))
    assert sch.mod is before
    assert len(sch.trace) == steps + 1  # get_block


def test_copies_share_handles_and_go_their_own_ways() -> None:
    sch = Schedule(matmul(12, 10, 9), seed=1)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    other = sch.copy()
    other.parallel(i)
    sch.vectorize(j)
    assert "T.parallel" in other.mod.script()
    assert "T.parallel" not in sch.mod.script()
    assert len(other.trace) == len(sch.trace) == 3


def test_the_module_that_was_given_stays_as_it_was() -> None:
    function = matmul(12, 10, 9)
    before = function.script()
    tiled(function)
    assert function.script() == before


def test_functions_of_a_module_are_worked_on_by_name() -> None:
    module = IRModule({"first": matmul(12, 10, 9), "second": row_sums(3, 4)})
    sch = Schedule(module)
    refused("W601", lambda: sch.get_block("C"))
    sch.work_on("second")
    sch.parallel(sch.get_loops(sch.get_block("Y"))[0])
    sch.unroll(sch.get_loops(sch.get_block("C", "first"))[0])
    assert "tir.is_scheduled" in sch.mod["first"].attrs
    assert sch.func is sch.mod["second"]
    refused("W601", lambda: Schedule("matmul"))  # type: ignore[arg-type]


# Random choices -----------------------------------------------------------------------------------------------------


def test_choices_follow_from_the_seed_and_are_kept_in_the_trace() -> None:
    def chosen(seed: int | None) -> Schedule:
        sch = Schedule(matmul(12, 10, 9), seed=seed)
        i, j, k = sch.get_loops(sch.get_block("C"))
        sch.split(i, sch.sample_perfect_tile(i, 3))
        sch.split(j, [None, sch.sample_categorical([1, 2, 5], [0.2, 0.3, 0.5])])
        sch.split(k, sch.sample_partitioned_tile(k, 2, 1, 3))
        return sch

    one, same, other = chosen(3), chosen(3), chosen(4)
    assert one.trace.script() == same.trace.script() != other.trace.script()
    check(matmul(12, 10, 9), one)
    again = Schedule(matmul(12, 10, 9), seed=9)
    one.trace.apply_to(again)
    weft.assert_structural_equal(again.mod, one.mod)
    fresh = Schedule(matmul(12, 10, 9), seed=4)
    one.trace.apply_to(fresh, decisions=False)
    weft.assert_structural_equal(fresh.mod, other.mod)


def test_sampled_tiles_are_the_extent() -> None:
    for seed in range(20):
        sch = Schedule(matmul(48, 10, 9), seed=seed)
        i, *_ = sch.get_loops(sch.get_block("C"))
        factors = [sch.get(item) for item in sch.sample_perfect_tile(i, 4, max_innermost_factor=6)]
        assert int(np.prod(factors)) == 48  # type: ignore[arg-type]
        assert factors[-1] <= 6  # type: ignore[operator]


def test_decisions_that_do_not_fit_are_refused() -> None:
    sch = Schedule(matmul(12, 10, N))
    i, _, k = sch.get_loops(sch.get_block("C"))
    refused("W604", lambda: sch.sample_perfect_tile(i, 2, decision=[5, 2]))
    refused("W604", lambda: sch.sample_perfect_tile(k, 2))
    refused("W604", lambda: sch.sample_categorical([1, 2], [0.5], None))
    refused("W604", lambda: sch.sample_categorical([1, 2], [0.5, 0.5], 2))


def test_a_sampled_place_is_computed_at() -> None:
    for seed in range(6):
        sch = Schedule(dense(12, 10, 9), seed=seed)
        place = sch.sample_compute_location(sch.get_block("B"))
        assert isinstance(place, LoopRV)
        sch.compute_at(sch.get_block("B"), place)
        check(dense(12, 10, 9), sch, compiled=False)
    inline = Schedule(dense(12, 10, 9))
    inline.compute_at(inline.get_block("B"), inline.sample_compute_location(inline.get_block("B"), decision=-2))
    refused("W602", lambda: inline.get_block("B"))


# Blocks of blocks ---------------------------------------------------------------------------------------------------


def product_intrinsic(name: str) -> TensorIntrin:
    @T.prim_func
    def desc(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def impl(
        A: T.Buffer((4, 4), "float32", strides=("a", "a1")),
        B: T.Buffer((4, 4), "float32", strides=("b", "b1")),
        C: T.Buffer((4, 4), "float32", strides=("c", "c1")),
    ):
        for i, k in T.grid(4, 4):
            for j in T.vectorized(4):
                C[i, j] = C[i, j] + A[i, k] * B[k, j]

    assert isinstance(desc, PrimFunc)
    assert isinstance(impl, PrimFunc)
    return TensorIntrin.register(name, desc, impl, override=True)


def test_blockize_divides_the_variables_of_a_block() -> None:
    function = matmul(N, 12, 8)
    sch = tiled(function)
    ii = sch.get_loops(sch.get_block("C"))[3]
    outer = sch.blockize(ii)
    text = check(function, sch, {"n": 13}).script()
    assert 'with T.block("C_o"):' in text
    assert 'vio, vjo, vko = T.axis.remap("SSR", [i_0, j_0, k_0])' in text
    sch.decompose_reduction(outer, sch.get_loops(outer)[2])
    check(function, sch, {"n": 13}, {"n": 1})


def test_tensorize_lets_an_intrinsic_do_the_inner_loops() -> None:
    product_intrinsic("test.product")
    function = matmul(16, 12, 8)
    sch = tiled(function)
    outer = sch.blockize(sch.get_loops(sch.get_block("C"))[3])
    sch.decompose_reduction(outer, sch.get_loops(outer)[2])
    sch.tensorize(outer, "test.product")
    text = check(function, sch).script()
    assert "T.match_buffer(" in text
    assert "T.vectorized(4)" in text


def test_tensorize_refuses_other_code() -> None:
    product_intrinsic("test.product")
    sch = tiled(matmul(N, 12, 8))
    block = sch.get_block("C")
    ii = sch.get_loops(block)[3]
    error = refused("W617", lambda: sch.tensorize(ii, "test.product"))
    assert error.span is not None
    refused("W604", lambda: sch.tensorize(ii, "test.prod"))
    intrinsic = product_intrinsic("test.product")
    refused("W604", lambda: TensorIntrin.register("test.product", intrinsic.desc, intrinsic.impl))
    refused("W604", lambda: TensorIntrin.register("test.other", intrinsic.desc, matmul(4, 4, 5)))


# Extension ----------------------------------------------------------------------------------------------------------


def test_users_register_primitives_of_their_own() -> None:
    @register_primitive
    def tile_and_mark(sch: Schedule, block: Any, size: int | ExprRV = 4) -> list[LoopRV]:
        i, j, _ = sch.get_loops(block)
        outer, inner = sch.split(i, [None, size])
        sch.split(j, sch.sample_perfect_tile(j, 2))
        sch.parallel(outer)
        return [outer, inner]

    try:
        sch = Schedule(matmul(12, 10, 9), seed=5)
        outer, _ = sch.tile_and_mark(sch.get_block("C"), size=3)  # type: ignore[attr-defined]
        assert isinstance(outer, LoopRV)
        assert "l0, l1 = sch.tile_and_mark(block=b0, size=3)" in sch.trace.script()
        check(matmul(12, 10, 9), sch)
        refused("W604", lambda: register_primitive(tile_and_mark))
    finally:
        del PRIMITIVES["tile_and_mark"]
    with pytest.raises(AttributeError, match="a schedule has no 'splitt'"):
        _ = Schedule(matmul(2, 2, 2)).splitt


def test_a_trace_is_simplified_to_what_does_something() -> None:
    sch = Schedule(matmul(12, 10, 9), seed=3)
    block = sch.get_block("C")
    sch.get_block("C")
    sch.get_producers(block)
    i, j, _ = sch.get_loops(block)
    sch.sample_perfect_tile(i, 2)
    sch.split(j, sch.sample_perfect_tile(j, 2))
    sch.enter_postproc()
    sch.unroll(sch.get_loops(block)[0])
    assert [step.name for step in sch.trace.simplified()] == [
        "get_block",
        "get_loops",
        "sample_perfect_tile",
        "split",
        "enter_postproc",
        "get_loops",
        "unroll",
    ]
    again = Schedule(matmul(12, 10, 9))
    sch.trace.simplified().apply_to(again)
    weft.assert_structural_equal(again.mod, sch.mod)
    before = sch.trace.simplified(remove_postproc=True)
    assert [step.name for step in before] == ["get_block", "get_loops", "sample_perfect_tile", "split"]
    assert len(sch.trace) == 10


def test_the_page_on_schedules_names_every_primitive() -> None:
    page = Path(__file__).parents[3].joinpath("docs", "guide", "schedules.md").read_text(encoding="utf-8")
    table = page[page.index("| family |") : page.index("Factors of `split`")]
    known = {name for name in PRIMITIVES if hasattr(Schedule, name)} | {"seed", "fork_seed"}
    assert set(re.findall(r"`(\w+)`", table)) == known


# The compiler -------------------------------------------------------------------------------------------------------


def test_the_pipeline_leaves_scheduled_loops_as_they_are() -> None:
    function = matmul(64, 64, 64)
    plain = default_pipeline(weft.Target("llvm"))(IRModule({"kernel": function}))
    assert any(isinstance(part, For) and part.loop_var.name not in "ijk" for part in walk(plain["kernel"]))
    sch = Schedule(function)
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(i, k, j)
    sch.vectorize(j)
    done = default_pipeline(weft.Target("llvm"))(sch.mod)
    loops = [part.loop_var.name for part in walk(done["kernel"]) if isinstance(part, For)]
    assert loops == ["i", "k", "j"]


def test_a_scheduled_kernel_is_called_from_a_graph() -> None:
    @I.ir_module
    class Model:
        @T.prim_func
        def scale(x: T.Buffer(("n", 16), "float32"), y: T.Buffer(("n", 16), "float32")):
            for i, j in T.grid(n, 16):
                with T.block("scale"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] * T.float32(0.5)

        @R.function
        def main(x: R.Tensor(("n", 16), "float32")) -> R.Tensor(("n", 16), "float32"):
            with R.dataflow():
                h = R.nn.relu(x)
                y = R.call_tir(Model.scale, (h,), out_ty=R.Tensor((n, 16), "float32"))
                R.output(y)
            return y

    assert isinstance(Model, IRModule)
    sch = Schedule(Model)
    i, j = sch.get_loops(sch.get_block("scale", "scale"))
    sch.parallel(i)
    sch.vectorize(j)
    x = np.random.default_rng(0).standard_normal((5, 16)).astype("float32")
    np.testing.assert_array_equal(weft.compile(sch.mod)["main"](x), np.maximum(x, 0) * np.float32(0.5))
    done = default_pipeline(weft.Target("llvm"))(sch.mod)
    assert "T.parallel" in done.script()
    assert "T.vectorized" in done.script()


def test_a_good_schedule_computes_what_the_written_loops_do() -> None:
    function = matmul(128, 128, 128)
    sch = Schedule(function)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    _, ji = sch.split(j, [None, 32])
    sch.reorder(i, k, ji)
    sch.decompose_reduction(block, k)
    sch.vectorize(ji)
    arrays = arguments(function)
    written = weft.compile(IRModule({"kernel": function.with_attr("tir.is_scheduled", True)}))["kernel"]
    better = weft.compile(sch.mod)["kernel"]
    for run in (written, better):
        arrays[2][...] = 0
        run(*arrays)
        np.testing.assert_allclose(arrays[2], arrays[0] @ arrays[1], rtol=1e-4, atol=1e-4)


def test_a_module_of_graph_functions_alone_has_nothing_to_schedule() -> None:
    @R.function
    def graph(x: R.Tensor((4,), "float32")):
        return R.exp(x)

    sch = Schedule(IRModule({"main": graph}))
    with pytest.raises(weft.ScheduleError, match="W601: the module has no tensor function") as caught:
        sch.get_block("exp")
    assert caught.value.hint == "weft.transform.LegalizeOps() makes them"
