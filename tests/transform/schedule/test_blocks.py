"""Blocks moved, inlined, cached, divided: the code that comes out, what is refused, and that results stay the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.transform.schedule.workloads import blur, chain, check, conv2d, dense, matmul, row_sums, softmax

from weft import ScheduleError, parse
from weft.ir import IRModule, PrimFunc
from weft.ir.dim import symbol
from weft.ir.tensor import Block, Buffer
from weft.script import tir as T
from weft.transform.schedule import BlockRV, Schedule

N = symbol("n")


def refused(code: str, run: Callable[[], object]) -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        run()
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint or code in ("W601", "W604"), caught.value  # what would make the step legal
    return caught.value


def underlined(error: ScheduleError) -> str:
    assert error.span is not None
    return error.span.source.text[error.span.start : error.span.end]


def order(schedule: Schedule) -> list[str]:
    """The names of the blocks in the order in which they stand."""
    return list(schedule._tree(schedule._name_of_function(None)).blocks)


# Inlining -----------------------------------------------------------------------------------------------------------


def test_compute_inline_puts_a_block_into_all_its_readers() -> None:
    function = chain(N, 10)
    sch = Schedule(function)
    sch.compute_inline(sch.get_block("B"))
    sch.compute_inline(sch.get_block("C"))
    assert order(sch) == ["D"]
    assert "alloc_buffer" not in check(function, sch, {"n": 13}).script()


def test_compute_inline_puts_a_padding_into_a_convolution() -> None:
    function = conv2d(6, 2, 2)
    sch = Schedule(function)
    sch.compute_inline(sch.get_block("P"))
    assert order(sch) == ["Y"]
    check(function, sch)


def test_compute_inline_refuses_sums_and_results() -> None:
    sch = Schedule(dense(12, 10, 9))
    error = refused("W609", lambda: sch.compute_inline(sch.get_block("C")))
    assert underlined(error) == 'with T.block("C"):'
    error = refused("W612", lambda: sch.compute_inline(sch.get_block("D")))
    assert error.message == "'D' is a parameter of the function: its values must be stored"


def test_compute_inline_refuses_a_value_that_changes_before_it_is_read() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
        t = T.alloc_buffer((8,), "int32")
        for i in range(8):
            with T.block("t"):
                vi = T.axis.spatial(8, i)
                t[vi] = x[vi] + 1
        for i in range(8):
            with T.block("change"):
                vi = T.axis.spatial(8, i)
                x[vi] = 0
        for i in range(8):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = t[vi]

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    error = refused("W613", lambda: sch.compute_inline(sch.get_block("t")))
    assert error.message == "block 'change' changes 'x', which block 't' reads"
    assert underlined(error) == 'with T.block("change"):'


def test_reverse_compute_inline_puts_a_reader_into_its_producer() -> None:
    function = chain(N, 10)
    sch = Schedule(function)
    sch.reverse_compute_inline(sch.get_block("C"))
    sch.reverse_compute_inline(sch.get_block("D"))
    assert order(sch) == ["B"]
    check(function, sch, {"n": 13}, {"n": 1})


def test_reverse_compute_inline_of_a_smaller_reader_gives_the_producer_a_condition() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((24,), "int32"), y: T.Buffer((5, 4), "int32")):
        t = T.alloc_buffer((24,), "int32")
        for i in range(24):
            with T.block("t"):
                vi = T.axis.spatial(24, i)
                t[vi] = x[vi] + 1
        for i, j in T.grid(5, 4):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = t[vi * 4 + vj + 2] * 2

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    sch.reverse_compute_inline(sch.get_block("y"))
    text = check(kernel, sch).script()
    assert "y[(vi + 2) // 4 - 1, (vi + 2) % 4] = (x[vi] + 1) * 2" in text
    assert "T.where(" in text


def test_reverse_compute_inline_refuses_indices_that_cannot_be_turned_round() -> None:
    sch = Schedule(blur(16))
    refused("W613", lambda: sch.reverse_compute_inline(sch.get_block("Y")))
    sch = Schedule(dense(12, 10, 9))
    error = refused("W609", lambda: sch.reverse_compute_inline(sch.get_block("D")))
    assert underlined(error) == 'with T.block("C"):'


def test_a_reader_with_a_padding_is_not_cut_down_to_what_it_reads() -> None:
    sch = Schedule(conv2d(6, 2, 2))
    copy = sch.cache_read(sch.get_block("P"), 0, "global")
    loop = sch.get_loops(copy)[1]
    error = refused("W613", lambda: sch.reverse_compute_at(sch.get_block("P"), loop))
    assert error.message == "the block 'P' reads 'X_global' under a condition"
    refused("W613", lambda: sch.reverse_compute_inline(sch.get_block("P")))
    check(conv2d(6, 2, 2), sch, compiled=False)


# Moving -------------------------------------------------------------------------------------------------------------


def test_compute_at_computes_what_an_iteration_reads() -> None:
    function = blur(16)
    sch = Schedule(function)
    outer, _ = sch.split(sch.get_loops(sch.get_block("Y"))[0], [None, 4])
    sch.compute_at(sch.get_block("B"), outer)
    text = check(function, sch).script()
    assert "for ax0 in range(T.int64(6)):" in text  # 4 elements and the two beside them
    assert order(sch) == ["B", "Y"]


def test_compute_at_with_symbolic_sizes() -> None:
    function = dense(N, 10, 9)
    sch = Schedule(function)
    i, j, k = sch.get_loops(sch.get_block("C"))
    io, ii = sch.split(i, [None, 4])
    sch.reorder(io, j, ii, k)
    sch.compute_at(sch.get_block("B"), io)
    sch.reverse_compute_at(sch.get_block("D"), j)
    check(function, sch, {"n": 13}, {"n": 4}, {"n": 1})


def test_compute_at_refuses_a_loop_that_not_all_readers_are_under() -> None:
    sch = Schedule(softmax(7, 11))
    total = sch.get_loops(sch.get_block("S"))[0]
    error = refused("W613", lambda: sch.compute_at(sch.get_block("E"), total))
    assert error.message == "block 'Y' reads 'E' outside of the loop"
    assert underlined(error) == 'with T.block("Y"):'


def test_compute_at_refuses_to_leave_an_empty_sum_without_a_result() -> None:
    @T.prim_func
    def kernel(x: T.Buffer(("n", "k"), "int32"), y: T.Buffer(("n",), "int32")):
        t = T.alloc_buffer((n, k), "int32")
        for i, j in T.grid(n, k):
            with T.block("t"):
                vi, vj = T.axis.remap("SS", [i, j])
                t[vi, vj] = x[vi, vj] * 2
        for i, j in T.grid(n, k):
            with T.block("y"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    y[vi] = 0
                y[vi] = y[vi] + t[vi, vj]

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    i, j = sch.get_loops(sch.get_block("y"))
    for step in (
        lambda: sch.compute_at(sch.get_block("t"), j),
        lambda: sch.split(j, [None, 4]),
        lambda: sch.fuse(i, j),
    ):
        assert refused("W610", step).hint == "decompose_reduction first"
    sch.decompose_reduction(sch.get_block("y"), j)
    outer, _ = sch.split(j, [None, 4])
    sch.compute_at(sch.get_block("t"), outer)
    check(kernel, sch, {"n": 3, "k": 9}, {"n": 2, "k": 0})


def test_rows_of_a_softmax_share_a_loop() -> None:
    function = softmax(N, 11)
    sch = Schedule(function)
    row = sch.get_loops(sch.get_block("Y"))[0]
    for name in ("S", "E", "M"):
        sch.compute_at(sch.get_block(name), row)
    sch.parallel(row)
    assert order(sch) == ["M", "E", "S", "Y"]
    text = check(function, sch, {"n": 7}, {"n": 1}).script()
    assert text.count("T.parallel") == 1


def test_reverse_compute_at_refuses_results_that_are_not_done() -> None:
    sch = Schedule(dense(12, 10, 9))
    k = sch.get_loops(sch.get_block("C"))[2]
    error = refused("W613", lambda: sch.reverse_compute_at(sch.get_block("D"), k))
    assert error.message == "block 'C' is not done with an element in one iteration of 'k'"


# Caches -------------------------------------------------------------------------------------------------------------


def test_caches_of_a_tiled_product() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji), (ko, ki) = (sch.split(loop, [None, 4]) for loop in (i, j, k))
    sch.reorder(io, jo, ko, ii, ji, ki)
    written = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(written, jo)
    for place in (0, 1):
        sch.compute_at(sch.cache_read(block, place, "shared"), ko)
    sch.decompose_reduction(block, ko)
    assert order(sch) == ["C_init", "A_shared", "B_shared", "C_update", "C_local"]
    check(function, sch, {"n": 13}, {"n": 1})
    local = next(b for b in _allocated(sch.mod) if b.name == "C_local")
    assert local.scope == "local"


def _allocated(module: IRModule) -> list[Buffer]:
    from weft.ir import walk
    from weft.ir.tensor import AllocBuffer

    return [part.buffer for part in walk(module) if isinstance(part, AllocBuffer)]


def test_cache_read_copies_the_part_that_is_read() -> None:
    function = blur(16)
    sch = Schedule(function)
    (loop,) = sch.get_loops(sch.get_block("Y"))
    sch.loop_partition(loop, [8, 8])
    reader = sch.get_block("Y")
    sch.cache_read(reader, "B", "local", consumer_blocks=[reader])
    text = check(function, sch).script()
    assert "for ax0 in range(T.int64(10)):" in text


def test_cache_read_refuses_a_buffer_that_changes_while_it_is_read() -> None:
    sch = Schedule(matmul(12, 10, 9))
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[2])
    refused("W613", lambda: sch.cache_read(block, "C", "local"))
    error = refused("W604", lambda: sch.cache_read(block, 7, "local"))
    assert error.hint == "it reads 0: C, 1: A, 2: B"


def test_reindex_gives_a_buffer_the_variables_of_the_block() -> None:
    function = conv2d(6, 2, 2)
    sch = Schedule(function)
    block = sch.get_block("Y")
    sch.reindex(block, ("read", 0))
    sch.reindex(block, "Y")
    sch.reindex_cache_read(block, "W", "local", lambda f, i, j, c, r, s: (c * 9 + r * 3 + s, f))
    text = check(function, sch).script()
    assert 'P_reindex = T.alloc_buffer((6, 6, 2, 3, 3), "float32")' in text
    assert 'W_local = T.alloc_buffer((18, 2), "float32", scope="local")' in text


def test_buffers_are_kept_elsewhere_in_another_dtype_and_layout() -> None:
    function = dense(12, 10, 9)
    sch = Schedule(function)
    sch.set_scope(sch.get_block("B"), 0, "local")
    sch.storage_align(sch.get_block("B"), 0, 0, 32, 1)
    sch.unsafe_set_dtype(sch.get_block("C"), 0, "float64")
    text = check(function, sch).script()
    assert 'B = T.alloc_buffer((12, 9), "float32", strides=(33, 1), scope="local")' in text
    assert 'C = T.alloc_buffer((12, 10), "float64")' in text
    refused("W612", lambda: sch.set_scope(sch.get_block("D"), 0, "local"))
    refused("W604", lambda: sch.storage_align(sch.get_block("B"), 0, 5, 32, 1))
    refused("W604", lambda: sch.unsafe_set_dtype(sch.get_block("B"), 0, "float31"))


# Sums ---------------------------------------------------------------------------------------------------------------


def test_decompose_reduction_takes_the_init_out() -> None:
    function = matmul(N, 10, symbol("k"))
    sch = Schedule(function)
    block = sch.get_block("C")
    i, _, k = sch.get_loops(block)
    error = refused("W605", lambda: (sch.reorder(k, i), sch.decompose_reduction(block, i)))
    assert error.hint == "decompose at it"
    made = sch.decompose_reduction(block, k)
    found = sch.get(block)
    assert isinstance(found, Block)
    assert (found.name, found.init) == ("C_update", None)
    assert isinstance(sch.get(made), Block)
    check(function, sch, {"n": 13, "k": 6}, {"n": 2, "k": 1}, {"n": 2, "k": 0})
    refused("W610", lambda: sch.decompose_reduction(block, k))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rfactor_adds_parts_of_a_sum_apart(axis: int) -> None:
    function = row_sums(N, symbol("m"))
    sch = Schedule(function)
    _, k = sch.get_loops(sch.get_block("Y"))
    _, ki = sch.split(k, [None, 4])
    sch.rfactor(ki, axis)
    assert order(sch)[-2:] == ["Y_rf", "Y"]
    check(function, sch, {"n": 5, "m": 14}, {"n": 3, "m": 1}, {"n": 2, "m": 8})


def test_rfactor_of_the_only_loop_of_a_sum() -> None:
    function = row_sums(5, 7)
    sch = Schedule(function)
    sch.rfactor(sch.get_loops(sch.get_block("Y"))[1])
    check(function, sch)


def test_rfactor_refuses_loops_of_the_result() -> None:
    sch = Schedule(row_sums(5, 7))
    i, k = sch.get_loops(sch.get_block("Y"))
    error = refused("W611", lambda: sch.rfactor(i))
    assert underlined(error) == "i"
    refused("W604", lambda: sch.rfactor(k, 3))


# Index spaces -------------------------------------------------------------------------------------------------------


def test_transform_layout_moves_the_elements_of_a_buffer() -> None:
    function = dense(N, 10, 9)
    sch = Schedule(function)
    sch.transform_layout(sch.get_block("B"), ("write", 0), lambda i, j: (j // 4, i, j % 4))
    sch.transform_layout(sch.get_block("C"), "C", lambda i, j: (j // 4, i, j % 4), pad_value=0)
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert 'B = T.alloc_buffer((3, n, 4), "float32")' in text
    assert order(sch) == ["B", "C_pad", "C", "D"]


def test_transform_layout_refuses_maps_that_give_two_elements_one_place() -> None:
    sch = Schedule(dense(12, 10, 9))
    block = sch.get_block("B")
    refused("W616", lambda: sch.transform_layout(block, "B", lambda i, j: (i, j // 2)))
    refused("W616", lambda: sch.transform_layout(block, "B", lambda i, j: (i + j, i)))
    refused("W604", lambda: sch.transform_layout(block, "B", lambda i: (i,)))
    refused("W604", lambda: sch.transform_layout(block, "B", "lambda i, j: (k, j)"))
    refused("W612", lambda: sch.transform_layout(block, "A", lambda i, j: (i, j // 4, j % 4)))


def test_transform_layout_of_a_parameter_changes_the_signature() -> None:
    sch = Schedule(matmul(12, 10, 9))
    sch.transform_layout(sch.get_block("C"), "A", lambda i, j: (j, i))
    assert sch.func.params[0].shape == (9, 12)  # type: ignore[union-attr]


def test_transform_block_layout_runs_a_block_over_other_variables() -> None:
    function = matmul(12, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.transform_block_layout(block, lambda i, j, k: (i // 4, j, k // 2, i % 4, k % 2))
    sch.reorder_block_iter_var(block, [0, 3, 1, 2, 4])
    found = sch.get(block)
    assert isinstance(found, Block)
    assert [item.kind for item in found.iter_vars] == ["spatial", "spatial", "spatial", "reduce", "reduce"]
    check(function, sch)
    refused("W604", lambda: sch.reorder_block_iter_var(block, [0, 0, 1, 2, 3]))


def test_transform_block_layout_refuses_to_mix_a_sum_with_its_result() -> None:
    sch = Schedule(matmul(12, 10, 9))
    error = refused("W604", lambda: sch.transform_block_layout(sch.get_block("C"), lambda i, j, k: (i, j * 9 + k)))
    assert "mixes reduce and spatial variables" in error.message


# Padding ------------------------------------------------------------------------------------------------------------


def test_pad_einsum_makes_whole_tiles_of_a_product() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.pad_einsum(block, [8, 4, 1])
    assert order(sch) == ["A_pad", "B_pad", "C", "C_pad"]
    i, j, _ = sch.get_loops(block)
    sch.split(i, [None, 8])
    sch.split(j, [None, 4])
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert "T.where" not in text
    refused("W605", lambda: sch.pad_einsum(block, [2, 2, 2]))
    refused("W604", lambda: sch.pad_einsum(block, [2, 2]))


def test_pad_einsum_takes_sums_of_products_only() -> None:
    sch = Schedule(softmax(7, 11))
    refused("W610", lambda: sch.pad_einsum(sch.get_block("M"), [8, 8]))


def test_decompose_padding_fills_and_then_copies() -> None:
    function = conv2d(6, 2, 2)
    sch = Schedule(function)
    block = sch.get_block("P")
    loop = sch.get_loops(block)[1]
    assert sch.can_decompose_padding(block, loop)
    fill = sch.decompose_padding(block, loop)
    assert not sch.can_decompose_padding(block, sch.get_loops(block)[1])
    sch.remove_rv(loop)
    refused("W603", lambda: sch.get(loop))
    assert order(sch) == ["P_pad", "P", "Y"]
    text = check(function, sch).script()
    assert "T.if_then_else" not in text
    assert isinstance(sch.get(fill), Block)
    error = refused("W609", lambda: sch.decompose_padding(sch.get_block("Y"), sch.get_loops(sch.get_block("Y"))[0]))
    assert underlined(error) == 'with T.block("Y"):'


# Looking ------------------------------------------------------------------------------------------------------------


def test_blocks_tell_who_computes_and_who_reads() -> None:
    sch = Schedule(softmax(7, 11))
    names = lambda handles: [sch.get(handle).name for handle in handles]
    assert names(sch.get_producers(sch.get_block("Y"))) == ["E", "S"]
    assert names(sch.get_consumers(sch.get_block("E"))) == ["S", "Y"]
    assert names(sch.get_output_blocks(sch.get_block("root"))) == ["Y"]
    assert names(sch.get_child_blocks(sch.get_block("root"))) == ["M", "E", "S", "Y"]
    assert names(sch.get_child_blocks(sch.get_loops(sch.get_block("E"))[0])) == ["E"]


def test_names_that_are_not_there_get_a_suggestion() -> None:
    sch = Schedule(softmax(7, 11))
    error = refused("W602", lambda: sch.get_block("EE"))
    assert error.message == "function 'kernel' has no block 'EE'"
    assert error.hint is not None
    assert "E" in error.hint
    refused("W601", lambda: sch.work_on("kernal"))
    refused("W602", lambda: sch.get_loops("EE"))
    refused("W604", lambda: sch.get_loops(3))  # type: ignore[arg-type]
    other = Schedule(softmax(7, 11)).get_block("E")
    refused("W603", lambda: sch.get_loops(other))
    inner = sch.get_block("E")
    sch.compute_inline(inner)
    refused("W603", lambda: sch.get_loops(inner))


def test_blocks_of_one_name_are_told_apart() -> None:
    @T.prim_func
    def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
        t = T.alloc_buffer((8,), "int32")
        for i in range(8):
            with T.block("same"):
                vi = T.axis.spatial(8, i)
                t[vi] = x[vi] + 1
        for i in range(8):
            with T.block("same"):
                vi = T.axis.spatial(8, i)
                y[vi] = t[vi] * 2

    assert isinstance(kernel, PrimFunc)
    sch = Schedule(kernel)
    assert order(sch) == ["same", "same_1"]
    sch.compute_inline(sch.get_block("same"))
    check(kernel, sch)


# Several blocks in one ----------------------------------------------------------------------------------------------


def test_blockize_joins_blocks_over_the_loops_that_they_share() -> None:
    function = dense(N, 10, 9)
    sch = Schedule(function)
    b, c = sch.get_block("B"), sch.get_block("C")
    sch.compute_at(b, sch.get_loops(c)[0])
    joined = sch.blockize([c, b], preserve_unit_iters=False)
    assert [loop.label for loop in sch.get_loops(joined)] == ["i"]
    block = sch.get(joined)
    assert isinstance(block, Block)
    assert block.name == "B_C_o"
    assert [item.kind for item in block.iter_vars] == ["spatial"]
    assert len(sch.get_child_blocks(joined)) == 2
    check(function, sch, {"n": 13})
    assert "sch.blockize(target=[b1, b0]" in str(sch.trace)


def test_blockize_of_blocks_without_a_shared_loop_has_no_variables() -> None:
    function = chain(N, 10)
    sch = Schedule(function)
    joined = sch.blockize([sch.get_block("B"), sch.get_block("C")], preserve_unit_iters=False)
    assert sch.get_loops(joined) == []
    text = check(function, sch, {"n": 13}).script()
    assert text.index('T.block("B_C_o")') < text.index('T.block("C")') < text.index('T.block("D")')


def test_blockize_of_one_block_takes_all_of_its_loops() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    c = sch.get_block("C")
    sch.decompose_reduction(c, sch.get_loops(c)[2])
    joined = sch.blockize([sch.get_block("C_update")])
    assert len(sch.get_loops(joined)) == 3
    check(function, sch, {"n": 13})


def test_blocks_over_parts_of_split_loops_share_their_variables() -> None:
    function = chain(N, 16)
    sch = Schedule(function)
    c, d = sch.get_block("C"), sch.get_block("D")
    outer, _ = sch.split(sch.get_loops(d)[0], [None, 4])
    sch.compute_at(c, outer)
    joined = sch.blockize([c, d], preserve_unit_iters=False)
    block = sch.get(joined)
    assert isinstance(block, Block)
    assert len(block.iter_vars) == 1
    check(function, sch, {"n": 13})


def test_blockize_refuses_blocks_that_do_not_go_together() -> None:
    sch = Schedule(chain(12, 10))
    b, c, d = (sch.get_block(name) for name in "BCD")
    error = refused("W605", lambda: sch.blockize([b, d]))
    assert error.message == "block 'C' stands between the blocks 'B', 'D'"
    assert underlined(error) == 'with T.block("C"):'
    for wrong in ([], [b, b]):
        error = refused("W604", lambda wrong=wrong: sch.blockize(wrong))
        assert error.message == f"different blocks are needed, and at least one, not {len(wrong)}"
    inner = sch.blockize([b, c])
    error = refused("W605", lambda: sch.blockize([sch.get_block("B"), d]))
    assert error.message == "the blocks 'B' and 'D' are not in one scope"
    assert sch.get_child_blocks(inner)
    total = Schedule(matmul(12, 10, 9))
    sums = total.get_block("C")
    error = refused("W611", lambda: total.blockize([sums]))
    assert error.message == "the sum of block 'C' runs over a loop that the blocks share"
    assert underlined(error) == 'with T.block("C"):'


def test_conditions_of_both_blocks_go_inward() -> None:
    function = chain(10, 16)
    sch = Schedule(function)
    c, d = sch.get_block("C"), sch.get_block("D")
    outer, _ = sch.split(sch.get_loops(d)[1], [4, None])
    sch.reorder(outer, sch.get_loops(d)[0])
    sch.compute_at(c, outer)
    sch.blockize([c, d])
    assert check(function, sch).script().count("T.where(vjo * 3 + ") == 2


def test_blockize_refuses_blocks_under_different_conditions() -> None:
    function = parse("""
@T.prim_func
def kernel(x: T.Buffer((8, 4), "int32"), y: T.Buffer((8, 4), "int32"), z: T.Buffer((8, 4), "int32")):
    for i in range(8):
        for j in range(4):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i < 7)
                y[vi, vj] = x[vi, vj]
        for j in range(4):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                z[vi, vj] = x[vi, vj]
""")
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    error = refused("W615", lambda: sch.blockize([sch.get_block("Y"), sch.get_block("Z")]))
    assert error.message == "the blocks run under different conditions on the loops that they share"
    assert underlined(error) == 'with T.block("Y"):'


def test_blocks_are_given_by_name_too() -> None:
    function = chain(12, 10)
    sch = Schedule(function)
    sch.compute_inline("B")
    sch.reverse_compute_at("D", sch.get_loops("C")[0])
    sch.cache_read("C", 0, "local", consumer_blocks=["C"])
    sch.annotate("C", "note", {"tiles": [1, 2], "name": "c"})
    assert [sch.get(item).name for item in sch.get_output_blocks("root")] == ["D"]  # type: ignore[union-attr]
    check(function, sch)
    error = refused("W602", lambda: sch.get_loops("CC"))
    assert error.hint == "did you mean `C`?"


def marks(schedule: Schedule, block: BlockRV) -> list[tuple[str, dict[str, object]]]:
    """The annotations of a block, and the kinds and annotations of the loops around it."""
    nodes = [schedule.get(block), *map(schedule.get, schedule.get_loops(block))]
    return [(getattr(node, "kind", "serial"), dict(node.annotations)) for node in nodes if not isinstance(node, int)]


def test_parts_of_a_reduction_keep_annotations_and_kinds_of_loops() -> None:
    function = matmul(12, 10, 8)
    sch = Schedule(function)
    block = sch.get_block("C")
    sch.annotate(block, "note", "kept")
    i, j, k = sch.get_loops(block)
    sch.parallel(i)
    sch.unroll(j)
    sch.annotate(j, "pragma", 2)
    parts = sch.rfactor(sch.split(k, [2, 4])[0], 0)
    for item in (parts, block):
        assert marks(sch, item)[:3] == [("serial", {"note": "kept"}), ("parallel", {}), ("unrolled", {"pragma": 2})]
    check(function, sch)
    sums = Schedule(function)
    block = sums.get_block("C")
    sums.annotate(block, "note", "kept")
    i, j, k = sums.get_loops(block)
    sums.reorder(i, k, j)
    sums.vectorize(j)
    init = sums.decompose_reduction(block, k)
    assert marks(sums, init) == [("serial", {"note": "kept"}), ("serial", {}), ("vectorized", {})]
    assert marks(sums, block)[0] == ("serial", {"note": "kept"})
    check(function, sums)
