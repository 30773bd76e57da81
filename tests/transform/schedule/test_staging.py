"""Buffers of loops: read_at, write_at, cache_inplace, compact_buffer, rolling_buffer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import refused, underlined
from tests.transform.schedule.workloads import blur, chain, check, conv2d, dense, matmul, softmax

from weft import parse
from weft.ir import PrimFunc, te, walk
from weft.ir.dim import Dim, symbol
from weft.ir.tensor import AllocBuffer, Buffer, For
from weft.transform.schedule import Schedule

N = symbol("n")


def shape_of(function: PrimFunc, name: str) -> tuple[object, ...]:
    """The shape of an allocated buffer."""
    (found,) = [part.buffer for part in walk(function) if isinstance(part, AllocBuffer) and part.buffer.name == name]
    return found.shape


def places(function: PrimFunc, name: str) -> list[str]:
    """The loops around the allocation of a buffer."""

    def search(stmt: object, loops: list[str]) -> list[str] | None:
        if isinstance(stmt, AllocBuffer):
            return loops if stmt.buffer.name == name else None
        inner = [*loops, stmt.loop_var.name] if isinstance(stmt, For) else loops
        parts = [getattr(stmt, "body", None), *getattr(stmt, "stmts", ())]
        return next((found for part in parts if part is not None and (found := search(part, inner)) is not None), None)

    found = search(function.body, [])
    assert found is not None
    return found


def updated(n: Dim = 12) -> PrimFunc:
    """Elements of a parameter that a block changes."""
    size = n if isinstance(n, int) else f'"{n}"'
    function = parse(
        f"""
@T.prim_func
def kernel(x: T.Buffer(({size}, 6), "int32"), y: T.Buffer(({size}, 6), "int32")):
    for i, j in T.grid({n}, 6):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi, vj] * 2
    for i, j in T.grid({n}, 6):
        with T.block("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = y[vi, vj] + x[vi, 5 - vj]
"""
    )
    assert isinstance(function, PrimFunc)
    return function


# Copies under loops -------------------------------------------------------------------------------------------------


def test_read_at_copies_what_an_iteration_reads() -> None:
    function = matmul(N, 10, 12)
    sch = Schedule(function)
    block = sch.get_block("C")
    i, _, k = sch.get_loops(block)
    io, _ = sch.split(i, [None, 4])
    copy = sch.read_at(io, block, 0, "shared")
    assert [sch.get(loop).extent for loop in sch.get_loops(copy)][1:] == [4, 12]  # type: ignore[union-attr]
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert 'scope="shared"' in text
    assert "C[vi, vj] = C[vi, vj] + A_shared[vi, vk] * B[vk, vj]" in text
    sch.compact_buffer(copy, 0)
    assert shape_of(sch.func, "A_shared") == (4, 12)
    sch.parallel(io)
    check(function, sch, {"n": 13}, {"n": 1})
    error = refused("W605", lambda: sch.read_at(k, copy, 0, "local"))
    assert underlined(error).startswith("k")


def test_read_at_refuses_what_the_loop_writes() -> None:
    function = updated()
    sch = Schedule(function)
    second = sch.get_block("second")
    i, _ = sch.get_loops(second)
    error = refused("W613", lambda: sch.read_at(i, second, "y", "local"))
    assert underlined(error) == 'with T.block("second"):'
    sch.read_at(i, second, "x", "local")
    check(function, sch)


def test_write_at_copies_what_an_iteration_wrote() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    io, ii = sch.split(i, [None, 4])
    copy = sch.write_at(io, block, 0, "local")
    assert len(sch.get_loops(copy)) == 3
    check(function, sch, {"n": 13}, {"n": 1})
    sch.compact_buffer(block, 0)
    assert shape_of(sch.func, "C_local") == (4, 10)
    assert places(sch.func, "C_local") == ["i_0"]
    sch.reorder(k, ii, j)
    check(function, sch, {"n": 13}, {"n": 1})
    error = refused("W614", lambda: sch.write_at(k, block, 0, "local"))
    assert underlined(error) == 'with T.block("C"):'
    assert "may not start its sum there" in error.message


def test_write_at_refuses_what_is_only_changed_or_partly_written() -> None:
    sch = Schedule(updated())
    second = sch.get_block("second")
    error = refused("W614", lambda: sch.write_at(sch.get_loops(second)[0], second, 0, "local"))
    assert underlined(error) == 'with T.block("second"):'
    assert error.message.endswith("block 'second' reads it first")
    holes = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
    for i, j in T.grid(2, 4):
        with T.block("b"):
            v = T.axis.spatial(8, i * 4 + j)
            T.where(j < 3)
            y[v] = x[v]
"""
    )
    assert isinstance(holes, PrimFunc)
    sch = Schedule(holes)
    block = sch.get_block("b")
    error = refused("W614", lambda: sch.write_at(sch.get_loops(block)[0], block, 0, "local"))
    assert underlined(error) == 'with T.block("b"):'


def test_cache_inplace_copies_before_and_back() -> None:
    function = updated(N)
    sch = Schedule(function)
    second = sch.get_block("second")
    before, back = sch.cache_inplace(second, 0, "local")
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert "y_local[vi_1, vj_1] = y_local[vi_1, vj_1] + x[vi_1, 5 - vj_1]" in text
    assert [sch.get(item).name for item in (before, back)] == ["y_local", "y_local_back"]  # type: ignore[union-attr]
    error = refused("W604", lambda: sch.cache_inplace(sch.get_block("first"), 0, "local"))
    assert (underlined(error), error.hint) == ('with T.block("first"):', "it reads and writes nothing")
    sums = Schedule(matmul())
    error = refused("W604", lambda: sums.cache_inplace(sums.get_block("C"), "C", "local"))
    assert (underlined(error), error.hint) == ('with T.block("C"):', "cache_write: the block starts anew")


def test_indices_are_computed_before() -> None:
    x = te.placeholder((N, 12), dtype="int32", name="X")
    y = te.compute((N, 12), lambda i, j: x[(i * 3) % N, (j * 5 + i) % 12] + x[i, (j * 5 + i) % 12] + x[i, j], name="Y")
    function = te.create_prim_func([x, y], "kernel")
    sch = Schedule(function)
    first, second = sch.cache_index(sch.get_block("Y"), "global")
    text = check(function, sch, {"n": 13}, {"n": 1}).script()
    assert [sch.get(item).name for item in (first, second)] == ["Y_index", "Y_index_1"]  # type: ignore[union-attr]
    assert "X[Y_index[vi_2], Y_index_1[vi_2, vj_1]] + X[vi_2, Y_index_1[vi_2, vj_1]] + X[vi_2, vj_1]" in text
    assert sch.cache_index(sch.get_block("Y"), "global") == []
    often = Schedule(function)
    assert len(often.cache_index(often.get_block("Y"), "global", 1)) == 1
    check(function, often, {"n": 13})
    plain = Schedule(matmul())
    assert plain.cache_index(plain.get_block("C"), "global") == []
    assert "is_scheduled" not in plain.mod.script()


# Buffers of their own -----------------------------------------------------------------------------------------------


def test_a_buffer_computed_at_a_loop_becomes_that_of_an_iteration() -> None:
    function = dense(N, 10, 9)
    sch = Schedule(function)
    b, c = sch.get_block("B"), sch.get_block("C")
    i, *_ = sch.get_loops(c)
    io, _ = sch.split(i, [None, 4])
    sch.compute_at(b, io)
    sch.compact_buffer(b, 0)
    assert shape_of(sch.func, "B") == (4, 9)
    assert places(sch.func, "B") == ["i_0"]
    sch.parallel(io)
    check(function, sch, {"n": 13}, {"n": 1})


def test_a_row_of_a_softmax_is_all_that_is_kept() -> None:
    function = softmax(N, 11)
    sch = Schedule(function)
    y = sch.get_block("Y")
    i, _ = sch.get_loops(y)
    for name in ("S", "E", "M"):
        sch.compute_at(sch.get_block(name), i)
    for name in ("M", "E", "S"):
        sch.compact_buffer(sch.get_block(name), 0)
    assert [shape_of(sch.func, name) for name in ("M", "E", "S")] == [(1,), (1, 11), (1,)]
    sch.parallel(i)
    check(function, sch, {"n": 13}, {"n": 1})


def test_compact_buffer_refuses_what_goes_on_or_is_elsewhere() -> None:
    sch = Schedule(chain(12, 10))
    error = refused("W605", lambda: sch.compact_buffer(sch.get_block("B"), 0))
    assert underlined(error) == 'with T.block("B"):'
    scan = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((8,), "int32"), y: T.Buffer((8,), "int32")):
    s = T.alloc_buffer((1,), "int32")
    s[0] = 0
    for i in range(8):
        with T.block("sum"):
            vi = T.axis.opaque(8, i)
            s[0] = s[0] + x[vi]
        with T.block("out"):
            vi = T.axis.opaque(8, i)
            y[vi] = s[0]
"""
    )
    assert isinstance(scan, PrimFunc)
    sch = Schedule(scan)
    block = sch.get_block("sum")
    error = refused("W605", lambda: sch.compact_buffer(block, 0))
    assert error.message == "no loop holds all that uses 's'"
    error = refused("W614", lambda: sch.write_at(sch.get_loops(block)[0], block, 0, "local"))
    assert underlined(error) == 'with T.block("sum"):'


# Windows ------------------------------------------------------------------------------------------------------------


def test_a_rolling_buffer_computes_each_element_once() -> None:
    function = blur(N)
    sch = Schedule(function)
    b, y = sch.get_block("B"), sch.get_block("Y")
    sch.compute_at(b, sch.get_loops(y)[0])
    sch.rolling_buffer(b, 0)
    text = check(function, sch, {"n": 16}, {"n": 1}, {"n": 2}).script()
    assert shape_of(sch.func, "B") == (3,)
    assert "B[vi % 3] = X[vi] * 2" in text
    assert "T.where(i == 0 or i + 1 < i + ax0)" in text
    error = refused("W608", lambda: sch.parallel(sch.get_loops(y)[0]))
    assert underlined(error) == "for i in range(n):"


def test_rows_of_an_image_roll_through_two_convolutions() -> None:
    function = conv2d(8, 2, 3)
    sch = Schedule(function)
    p, y = sch.get_block("P"), sch.get_block("Y")
    f, i, j, *rest = sch.get_loops(y)
    io, ii = sch.split(i, [None, 2])
    sch.reorder(io, f, ii, j, *rest)
    sch.compute_at(p, io)
    sch.rolling_buffer(p, 0)
    check(function, sch)
    assert shape_of(sch.func, "P") == (2, 4, 10)


def test_rolling_buffer_refuses_what_does_not_roll() -> None:
    sch = Schedule(dense(N, 10, 9))
    b, c = sch.get_block("B"), sch.get_block("C")
    error = refused("W614", lambda: sch.rolling_buffer(b, 0))
    assert (underlined(error), error.hint) == ('with T.block("B"):', "compute_at the loop that moves it first")
    sch.compute_at(b, sch.get_loops(c)[0])
    refused("W614", lambda: sch.rolling_buffer(b, 0))
    changing = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((10,), "int32"), y: T.Buffer((8,), "int32")):
    b = T.alloc_buffer((10,), "int32")
    c = T.alloc_buffer((1,), "int32")
    for i in range(8):
        with T.block("count"):
            v = T.axis.opaque(1, 0)
            c[v] = i
        for k in range(3):
            with T.block("b"):
                v = T.axis.spatial(10, i + k)
                b[v] = x[v] + c[0]
        with T.block("y"):
            v = T.axis.spatial(8, i)
            y[v] = b[v] + b[v + 1] + b[v + 2]
"""
    )
    assert isinstance(changing, PrimFunc)
    sch = Schedule(changing)
    error = refused("W613", lambda: sch.rolling_buffer(sch.get_block("b"), 0))
    assert underlined(error) == 'with T.block("count"):'


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_windows_of_any_size_and_step_roll(n: int, width: int, step: int, tile: int, fixed: bool) -> None:
    size: Dim = n if fixed else N
    x = te.placeholder((size * step + width,), dtype="int32", name="X")
    b = te.compute((size * step + width,), lambda i: x[i] * 2, name="B")
    k = te.reduce_axis((0, width), name="k")
    y = te.compute((size,), lambda i: te.sum(b[i * step + k], axis=k), name="Y")
    function = te.create_prim_func([x, y], "kernel")
    sch = Schedule(function)
    block = sch.get_block("B")
    loop, *_ = sch.get_loops(sch.get_block("Y"))
    if tile > 1:
        loop, _ = sch.split(loop, [None, tile])
    sch.compute_at(block, loop)
    rolls = (tile - 1) * step + width > tile * step
    if not rolls:
        refused("W614", lambda: sch.rolling_buffer(block, 0))
        sch.compact_buffer(block, 0)
    elif n > tile or not fixed:
        sch.rolling_buffer(block, 0)
    check(function, sch, {"n": n}, compiled=False)


def test_a_parameter_is_not_compacted() -> None:
    sch = Schedule(matmul())
    error = refused("W612", lambda: sch.compact_buffer(sch.get_block("C"), 0))
    assert underlined(error) == 'with T.block("C"):'
    assert all(isinstance(param, Buffer) for param in sch.func.params)
    with pytest.raises(AttributeError):
        _ = sch.compact_buffers


# Copies inside of blocks, with several writers -----------------------------------------------------------------------


def test_copies_inside_a_block_are_of_what_it_does() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((16, 12), "int32"), y: T.Buffer((16, 12), "int32")):
    for io, jo in T.grid(4, 3):
        with T.block("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for ii, ji, k in T.grid(4, 4, 12):
                with T.block("inner"):
                    vi = T.axis.spatial(16, vio * 4 + ii)
                    vj = T.axis.spatial(12, vjo * 4 + ji)
                    vk = T.axis.reduce(12, k)
                    with T.init():
                        y[vi, vj] = 0
                    y[vi, vj] = y[vi, vj] + x[vi, vk] * (vk + vj)
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    sch.cache_read("inner", 0, "local")
    back = sch.cache_write("inner", 0, "local")
    assert [getattr(sch.get(loop), "extent", None) for loop in sch.get_loops(back)] == [4, 4]
    check(function, sch)
    whole = Schedule(function)
    whole.cache_write("outer", 0, "local")
    check(function, whole)


def test_a_sum_that_goes_on_in_an_outer_block_is_not_written_to_a_copy() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((4, 12), "int32"), y: T.Buffer((4,), "int32")):
    for i, ko in T.grid(4, 3):
        with T.block("outer"):
            vi, vko = T.axis.remap("SR", [i, ko])
            for ki in range(4):
                with T.block("inner"):
                    v = T.axis.spatial(4, vi)
                    vk = T.axis.reduce(12, vko * 4 + ki)
                    with T.init():
                        y[v] = 0
                    y[v] = y[v] + x[v, vk]
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    error = refused("W611", lambda: sch.cache_write("inner", 0, "local"))
    assert underlined(error) == 'with T.block("inner"):'


def halves() -> PrimFunc:
    """A buffer of which two blocks write a half each."""
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer(("n", 16), "int32"), y: T.Buffer(("n", 16), "int32")):
    b = T.alloc_buffer((n, 16), "int32")
    for i, j in T.grid(n, 8):
        with T.block("low"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = x[vi, vj] + 1
    for i, j in T.grid(n, 8):
        with T.block("high"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj + 8] = x[vi, vj] * 2
    for i, j in T.grid(n, 16):
        with T.block("y"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = b[vi, 15 - vj]
"""
    )
    assert isinstance(function, PrimFunc)
    return function


def test_one_of_several_writers_gets_a_copy() -> None:
    function = halves()
    sch = Schedule(function)
    sch.cache_write("high", 0, "local")
    sch.cache_write("low", 0, "shared")
    sch.cache_read("y", 0, "shared")
    check(function, sch, {"n": 5}, {"n": 1})


def test_a_decomposed_sum_is_copied_once() -> None:
    function = matmul(N, 10, 9)
    sch = Schedule(function)
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    sch.split(i, [None, 4])
    init = sch.decompose_reduction("C", k)
    error = refused("W613", lambda: sch.cache_write(init, 0, "local"))
    assert error.hint is not None
    sch = Schedule(function)
    sch.decompose_reduction("C", sch.get_loops("C")[2])
    sch.cache_write("C_update", 0, "local")
    assert "C_local[vi, vj] = T.float32(0.0)" in check(function, sch, {"n": 5}, {"n": 1}).script()
    apart = Schedule(function)
    apart.decompose_reduction("C", apart.get_loops("C")[0])
    error = refused("W613", lambda: apart.cache_write("C_update", 0, "local"))
    assert error.hint == "cache_inplace copies them before and back"


def test_what_a_block_takes_the_address_of_is_copied_as_declared() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((8, 16), "int32"), y: T.Buffer((8, 16), "int32")):
    for i in range(8):
        with T.block("move"):
            vi = T.axis.spatial(8, i)
            T.reads(x[vi, 0:16])
            T.writes(y[vi, 0:16])
            T.evaluate(
                T.call_extern("int32", "move", y.access_ptr("w", offset=vi * 16), x.access_ptr("r", offset=vi * 16))
            )
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    before, back = sch.cache_read("move", 0, "shared"), sch.cache_write("move", 0, "shared")
    for item in (before, back):
        assert [getattr(sch.get(loop), "extent", None) for loop in sch.get_loops(item)] == [8, 16]
    text = sch.mod.script()
    assert "T.reads(x_shared[vi, 0:16])" in text
    assert "T.address_of(y_shared[0, 0])" in text


def test_what_is_updated_in_place_need_not_be_declared_as_read() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer(("n", 6), "int32"), y: T.Buffer(("n", 6), "int32")):
    for i, j in T.grid(n, 6):
        with T.block("start"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = vi
    for i, j in T.grid(n, 6):
        with T.block("update"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(x[vi, vj])
            T.writes(y[vi, vj])
            y[vi, vj] = y[vi, vj] * 2 + x[vi, vj]
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    error = refused("W613", lambda: sch.cache_write("update", 0, "local"))
    assert error.hint == "cache_inplace copies them before and back"
    sch.cache_inplace("update", 0, "local")
    sch.merge(sch.get_loops("start")[1], sch.get_loops("y_local")[1])
    check(function, sch, {"n": 5})


# Parts of buffers --------------------------------------------------------------------------------------------------


def test_parts_that_blocks_match_follow_their_buffer() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer((16, 16), "int32"), y: T.Buffer((16, 16), "int32")):
    b = T.alloc_buffer((16, 16), "int32")
    for i, j in T.grid(16, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = x[vi, vj] * 2
    for io, jo in T.grid(4, 4):
        with T.block("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            part = T.match_buffer(
                b[vio * 4 : vio * 4 + 4, vjo * 4 : vjo * 4 + 4], (4, 4), "int32", strides=["s", "t"], offset_factor=1
            )
            for ii, ji in T.grid(4, 4):
                with T.block("inner"):
                    vi, vj = T.axis.remap("SS", [ii, ji])
                    y[vio * 4 + vi, vjo * 4 + vj] = part[vi, 3 - vj] + 1
"""
    )
    assert isinstance(function, PrimFunc)
    sch = Schedule(function)
    sch.set_scope("b", 0, "shared")
    sch.unsafe_set_dtype("b", 0, "int64")
    text = check(function, sch).script()
    assert 'b = T.alloc_buffer((16, 16), "int64", scope="shared")' in text
    assert '(4, 4), "int64", strides=' in text
    assert 'T.Cast("int32", part[' in text
    error = refused("W612", lambda: sch.storage_align("b", 0, 0, 32, 1))
    assert underlined(error) == 'with T.block("b"):'


def test_loops_inside_of_merged_loops_merge_too() -> None:
    function = chain(N, 10)
    sch = Schedule(function)
    sch.transform_layout("B", ("write", 0), "lambda i, j: (j, i)")
    loops = [sch.get_loops(name) for name in ("C", "D")]
    merged = sch.merge(*(nest[1] for nest in loops))
    assert [len(sch.get_loops(name)) for name in ("C", "D")] == [2, 2]
    assert sch.get_loops("C")[1] is not None
    sch.vectorize(merged)
    check(function, sch, {"n": 5}, {"n": 1})
