"""Loop primitives: what the loops look like, what is refused and where, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transform.schedule.workloads import blur, chain, check, matmul, row_sums, same_results

import weft
from weft import ScheduleError, parse
from weft.ir import PrimFunc
from weft.ir.dim import symbol
from weft.ir.tensor import For
from weft.script import tir as T
from weft.transform.schedule import LoopRV, Schedule
from weft.transform.schedule.primitives import loop_kinds

N = symbol("n")


def shapes(schedule: Schedule, block: str) -> list[tuple[str, str]]:
    """The names and extents of the loops around a block."""
    loops = [schedule.get(loop) for loop in schedule.get_loops(schedule.get_block(block))]
    return [
        (x.loop_var.name, str(x.extent) if isinstance(x.extent, int) else x.extent.script())
        for x in loops
        if isinstance(x, For)
    ]


def refused(code: str, run: object) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        run()  # type: ignore[operator]
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint or code in ("W601", "W604"), caught.value  # what would make the step legal
    return caught.value


def underlined(error: ScheduleError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def test_split_gives_loops_of_the_factors_and_a_condition_where_they_do_not_divide() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 4])
    sch.split(j, [2, None, 3])
    assert shapes(sch, "C") == [("i_0", "3"), ("i_1", "4"), ("j_0", "2"), ("j_1", "2"), ("j_2", "3"), ("k", "9")]
    text = check(function, sch).script()
    assert "T.where((j_0 * 2 + j_1) * 3 + j_2 < 10)" in text
    assert "i_0 * 4 + i_1 <" not in text


def test_split_of_a_symbolic_extent_takes_symbolic_factors() -> None:
    function = matmul(N, 10, symbol("k"))
    sch = Schedule(function)
    i, _, k = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 4])
    sch.split(k, ["k", 1])
    assert shapes(sch, "C")[:2] == [("i_0", "(n + 3) // 4"), ("i_1", "4")]
    check(function, sch, {"n": 13, "k": 6}, {"n": 1, "k": 1}, {"n": 8, "k": 3})


@pytest.mark.parametrize("factors", [[], [None, None], [2, 3], [0, None], ["m"], [-1, None], ["2 *"]])
def test_split_refuses_factors_that_do_not_make_the_loop(factors: list[object]) -> None:
    sch = Schedule(matmul(12, 10, 9))
    before = sch.mod
    i, _, _ = sch.get_loops(sch.get_block("C"))
    refused("W604", lambda: sch.split(i, factors))  # type: ignore[arg-type]
    assert sch.mod is before
    assert len(sch.trace) == 2


def test_split_without_predicates_must_divide() -> None:
    sch = Schedule(matmul(12, 10, 9))
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, [3, 4], disable_predication=True)
    error = refused("W604", lambda: sch.split(j, [3, 4], disable_predication=True))
    assert underlined(error) == "j"


def test_fuse_and_split_of_the_fused_loop_keep_the_meaning() -> None:
    function = chain(N, 10)
    sch = Schedule(function)
    i, j = sch.get_loops(sch.get_block("B"))
    fused = sch.fuse(i, j)
    assert shapes(sch, "B") == [("i_j_fused", "n * 10")]
    sch.split(fused, [None, 16])
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert "vj = T.axis.spatial(10, (i_j_fused_0 * 16 + i_j_fused_1) % 10)" in text


def test_fusing_what_was_split_gives_the_old_bindings_back() -> None:
    sch = Schedule(matmul(12, 10, 9))
    i, _, _ = sch.get_loops(sch.get_block("C"))
    sch.fuse(*sch.split(i, [3, 4]))
    assert 'vi, vj, vk = T.axis.remap("SSR", [i_0_i_1_fused, j, k])' in sch.mod.script()


def test_fuse_refuses_loops_that_are_not_directly_inside_one_another() -> None:
    sch = Schedule(matmul(12, 10, 9))
    i, j, k = sch.get_loops(sch.get_block("C"))
    error = refused("W605", lambda: sch.fuse(i, k))
    assert error.span is not None
    assert (error.span.line, error.span.column) == (9, 19)
    assert underlined(error) == "k"
    refused("W605", lambda: sch.fuse(j, i))


def test_reorder_permutes_the_loops_of_a_nest_and_leaves_the_others() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i)
    assert [name for name, _ in shapes(sch, "C")] == ["k", "j", "i"]
    check(function, sch)
    assert isinstance(j, LoopRV)
    sch.reorder(j, k)
    check(function, sch)


def test_reorder_refuses_loops_whose_order_matters() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((8, 9), "int32"), y: T.Buffer((9, 9), "int32")):
        for j in range(9):
            with T.block("first"):
                vj = T.axis.spatial(9, j)
                y[0, vj] = x[0, vj]
        for i, j in T.grid(8, 8):
            with T.block("next"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi + 1, vj] = x[vi, vj] + y[vi, vj + 1]
        for i in range(8):
            with T.block("last"):
                vi = T.axis.spatial(8, i)
                y[vi + 1, 8] = x[vi, 8]

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    i, j = sch.get_loops(sch.get_block("next"))
    error = refused("W607", lambda: sch.reorder(j, i))
    assert "'y'" in error.message
    assert underlined(error) == "j_1"  # the name that the text gives the second loop called j


def test_the_init_of_a_sum_stays_before_its_updates() -> None:
    """Fused loops of a result and its sum cannot be taken apart in the wrong order."""
    function = row_sums(9, 14)
    sch = Schedule(function)
    fused = sch.fuse(*sch.get_loops(sch.get_block("Y")))
    outer, inner = sch.split(fused, [None, 4])
    refused("W607", lambda: sch.reorder(inner, outer))
    check(function, sch)


def test_reorder_refuses_an_extent_that_depends_on_a_loop_further_in() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")):
        for i in range(8):
            for j in range(i + 1):
                with T.block("low"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj]

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    i, j = sch.get_loops(sch.get_block("low"))
    refused("W606", lambda: sch.reorder(j, i))
    refused("W606", lambda: sch.fuse(i, j))


def test_merge_joins_loops_that_follow_one_another() -> None:
    @T.prim_func
    def kernel(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "int32")):
        t = T.alloc_buffer((n,), "int32")
        for i in range(n):
            with T.block("t"):
                vi = T.axis.spatial(n, i)
                t[vi] = x[vi] + 1
        for i in range(n):
            with T.block("y"):
                vi = T.axis.spatial(n, i)
                y[vi] = t[vi] * 2

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    (a,), (b,) = (sch.get_loops(sch.get_block(name)) for name in "ty")
    merged = sch.merge(a, b)
    assert shapes(sch, "y") == shapes(sch, "t") == [("i_m", "n")]
    assert isinstance(merged, LoopRV)
    check(kernel, sch, {"n": 7}, {"n": 0})


def test_merge_refuses_a_reader_of_later_elements() -> None:
    sch = Schedule(blur(16))
    (outer,) = sch.get_loops(sch.get_block("B"))
    sch.loop_partition(outer, [16, 2])
    first, last = sch.get_loops(sch.get_block("B"))[0], sch.get_loops(sch.get_block("B_1"))[0]
    (reader,) = sch.get_loops(sch.get_block("Y"))
    refused("W605", lambda: sch.merge(first, reader))
    refused("W606", lambda: sch.merge(last, reader))


def test_a_partition_of_a_loop_runs_its_parts_one_after_the_other() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    _, j, k = sch.get_loops(sch.get_block("C"))
    sch.loop_partition(k, [2, None, 1])
    assert sorted(block.name for block in sch._tree("kernel").blocks.values()) == ["C", "C_1", "C_2"]
    sch.loop_partition(j, [None, 3])
    check(function, sch)
    refused("W604", lambda: sch.loop_partition(sch.get_loops(sch.get_block("C"))[0], [5, 8]))
    parts = sch.loop_partition(sch.get_loops(sch.get_block("C"))[0], [5, 5])
    assert [getattr(sch.get(part), "extent", None) for part in parts] == [5, 5, 2]  # the last part is what is left over
    check(function, sch)


@pytest.mark.parametrize("rows", [0, 1, 15, 16, 37])
def test_a_partition_takes_dimensions_and_vectors_go_as_far_as_they_do(rows: int) -> None:
    @T.prim_func
    def doubled(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            y[i] = x[i] * T.float32(2)

    sch = Schedule(doubled)
    whole, rest = sch.loop_partition(sch.get_loop("i"), ["n // 16 * 16", None])
    sch.vectorize(sch.split(whole, [None, 16])[1])
    sch.vectorize(sch.split(rest, [None, 16])[1])
    assert sch.func.script().count("T.vectorized(") == 2
    again = Schedule(doubled)
    sch.trace.apply_to(again)
    weft.assert_structural_equal(again.func, sch.func)
    x = np.arange(rows, dtype="float32")
    y = np.full_like(x, np.nan)
    weft.compile(sch.func, "llvm")["doubled"](x, y)
    np.testing.assert_array_equal(y, 2 * x)
    fresh = Schedule(doubled)
    refused("W604", lambda: fresh.loop_partition(fresh.get_loop("i"), ["k", None]))


def test_loops_are_proved_once_and_again_where_something_around_them_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    prove = loop_kinds.require_separate

    def counted(tree: object, loop: For, *rest: object) -> None:
        asked.append(loop.loop_var.name)
        prove(tree, loop, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(loop_kinds, "require_separate", counted)
    sch = Schedule(chain())
    loops = [sch.get_loops(sch.get_block(name)) for name in ("B", "C")]
    sch.parallel(loops[0][0])
    sch.split(loops[1][0], [None, 4])
    assert len(asked) == 1
    sch.split(loops[0][1], [None, 4])
    assert len(asked) == 2


def test_a_sum_is_not_partitioned_where_its_first_part_may_be_empty() -> None:
    sch = Schedule(row_sums(N, symbol("m")))
    _, k = sch.get_loops(sch.get_block("Y"))
    refused("W604", lambda: sch.loop_partition(k, [None, 0]))
    refused("W604", lambda: sch.loop_partition(k, [2, None]))


def test_unit_loops_are_added_around_blocks_and_loops() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.add_unit_loop(block)
    sch.add_unit_loop(sch.get_loops(block)[0])
    assert [extent for _, extent in shapes(sch, "C")] == ["1", "12", "10", "9", "1"]
    check(function, sch)


def test_loops_without_blocks_are_scheduled_too() -> None:
    @T.prim_func
    def kernel(x: T.Buffer(("n",), "int32"), y: T.Buffer(("n",), "int32")):
        for i in range(n):
            y[i] = x[i] * 3

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    outer, inner = sch.split(sch.get_loop("i"), [None, 4])
    sch.parallel(outer)
    sch.vectorize(inner)
    for size in (0, 1, 9):
        same_results(kernel, sch.mod, {"n": size})
    assert "if i_0 * 4 + i_1 < n:" in sch.mod.script()
    assert weft.verify(sch.mod) == []


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_tiles_of_fused_loops_reach_their_whole_domain(dtype: str) -> None:
    function = parse(
        f"""
@T.prim_func
def kernel(a: T.handle, c: T.handle):
    n = T.{dtype}()
    A = T.match_buffer(a, (n, 16), "int32")
    C = T.match_buffer(c, (n, 16), "int32")
    for i, j in T.grid(n, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 2
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    fused = sch.fuse(*sch.get_loops("C"))
    _, inner = sch.split(fused, [None, 32])  # a tile of two rows
    sch.vectorize(inner)
    sch.cache_write("C", 0, "local")
    check(function, sch, {"n": 5}, {"n": 4})


def test_loops_of_one_name_are_told_apart_by_numbers() -> None:
    @T.prim_func
    def twice(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            y[i] = x[i]
        for i in range(8):
            x[i] = y[i]

    sch = Schedule(twice)
    refused("W602", lambda: sch.get_loop("i"))
    refused("W602", lambda: sch.get_loop("i", number=2))
    refused("W602", lambda: sch.get_loop("i", number=-1))
    sch.parallel(sch.get_loop("i", number=1))
    again = Schedule(twice)
    sch.trace.apply_to(again)
    weft.assert_structural_equal(again.func, sch.func)
    first, second = (line for line in sch.func.script().splitlines() if "for " in line)
    assert "parallel" not in first
    assert "parallel" in second


def test_a_loop_of_one_iteration_may_be_parallel_whatever_it_touches() -> None:
    schedule = Schedule(row_sums())
    schedule.parallel(schedule.add_unit_loop(schedule.get_block("Y")))
    check(row_sums(), schedule)
