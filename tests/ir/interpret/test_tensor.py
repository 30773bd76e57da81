"""Tensor-level functions run with every access checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentError, BoundsError, ShapeError, VerifyError, WeftError
from weft.ir import IRModule
from weft.ir.graph import GlobalVar, StringImm
from weft.ir.interpret import decode, encode, interpret
from weft.ir.interpret.kernel import written_buffers
from weft.ir.kernel.prim import as_expr, binary, cast, equal, intrinsic
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Bind,
    Block,
    Break,
    Broadcast,
    Buffer,
    BufferLoad,
    BufferRegion,
    BufferStore,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    MatchBufferRegion,
    PrimCall,
    PrimFunc,
    PrimVar,
    Ramp,
    Range,
    Return,
    Select,
    SeqStmt,
    Shuffle,
    Stmt,
    While,
)


def seq(*stmts: Stmt) -> SeqStmt:
    return SeqStmt(stmts)


def loop(name: str, extent: Any, body: Callable[[PrimVar], Stmt], dtype: str = "int32", **options: Any) -> For:
    variable = PrimVar(name, dtype)
    return For(variable, 0, extent, body(variable), **options)


def load(buffer: Buffer, *indices: Any) -> BufferLoad:
    return BufferLoad(buffer, tuple(as_expr(index) for index in indices))


def store(buffer: Buffer, value: Any, *indices: Any) -> BufferStore:
    return BufferStore(buffer, as_expr(value, buffer.dtype), tuple(as_expr(index) for index in indices))


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.zeros(shape, dtype)


X, Y = Buffer("x", (4,)), Buffer("y", (4,))
COPY = PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, load(X, i), i)), name="copy")


def test_loops_store_what_they_compute() -> None:
    out = zeros(4)
    interpret(COPY)(np.arange(4, dtype="float32"), out)
    np.testing.assert_array_equal(out, [0, 1, 2, 3])


def test_an_index_out_of_range_names_buffer_index_shape_and_loop_values() -> None:
    function = PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, load(X, i + 1), i)))
    with pytest.raises(BoundsError) as caught:
        interpret(function)(zeros(4), zeros(4))
    assert caught.value.code == "W900"
    assert "index (4) is out of range for buffer 'x' of shape (4,)" in caught.value.message
    assert "i=3" in caught.value.notes[0]


def test_a_negative_index_is_out_of_range() -> None:
    function = PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, load(X, i - 1), i)))
    with pytest.raises(BoundsError, match=r"index \(-1\)"):
        interpret(function)(zeros(4), zeros(4))


def test_reading_what_was_never_written_is_an_error() -> None:
    local = Buffer("local", (4,))
    function = PrimFunc((Y,), seq(AllocBuffer(local), loop("i", 4, lambda i: store(Y, load(local, i), i))))
    with pytest.raises(BoundsError) as caught:
        interpret(function)(zeros(4))
    assert caught.value.code == "W901"
    assert "element (0) of buffer 'local'" in caught.value.message


def test_an_output_that_is_not_wholly_written_is_an_error() -> None:
    function = PrimFunc((X, Y), loop("i", 3, lambda i: store(Y, load(X, i), i)), name="partial")
    with pytest.raises(BoundsError) as caught:
        interpret(function)(zeros(4), zeros(4))
    assert caught.value.code == "W902"
    assert "output `y` of partial is not written at (3,)" in caught.value.message


def test_a_buffer_that_is_read_before_it_is_written_is_updated_in_place() -> None:
    function = PrimFunc((Y,), loop("i", 2, lambda i: store(Y, load(Y, i) + 1.0, i)))
    out = zeros(4)
    interpret(function)(out)
    np.testing.assert_array_equal(out, [1, 1, 0, 0])


def matmul(init: bool = True) -> PrimFunc:
    n = PrimVar("n", "int64")
    a, b, c = Buffer("A", (n, 3)), Buffer("B", (3, 2)), Buffer("C", (n, 2))
    i, j, k = PrimVar("i", "int64"), PrimVar("j", "int64"), PrimVar("k", "int64")
    vi, vj, vk = PrimVar("vi", "int64"), PrimVar("vj", "int64"), PrimVar("vk", "int64")
    block = Block(
        "matmul",
        store(c, load(c, vi, vj) + load(a, vi, vk) * load(b, vk, vj), vi, vj),
        (IterVar(vi, 0, n, "spatial", i), IterVar(vj, 0, 2, "spatial", j), IterVar(vk, 0, 3, "reduce", k)),
        init=store(c, 0.0, vi, vj) if init else None,
    )
    return PrimFunc((a, b, c), For(i, 0, n, For(j, 0, 2, For(k, 0, 3, block))), name="matmul")


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_block_runs_init_before_the_first_reduction_step(n: int) -> None:
    a, b = np.random.default_rng(0).random((n, 3), "float32"), np.random.default_rng(1).random((3, 2), "float32")
    out = np.full((n, 2), 99, "float32")
    interpret(matmul())(a, b, out)
    np.testing.assert_allclose(out, a @ b, rtol=1e-6)


def test_a_reduction_over_nothing_gives_its_init() -> None:
    m, i, k = PrimVar("m", "int64"), PrimVar("i", "int64"), PrimVar("k", "int64")
    vi, vk = PrimVar("vi", "int64"), PrimVar("vk", "int64")
    x, y = Buffer("x", (2, m)), Buffer("y", (2,))
    block = Block(
        "sum",
        store(y, load(y, vi) + load(x, vi, vk), vi),
        (IterVar(vi, 0, 2, "spatial", i), IterVar(vk, 0, m, "reduce", k)),
        init=store(y, 7.0, vi),
    )
    for nest in (For(i, 0, 2, For(k, 0, m, block)), For(k, 0, m, For(i, 0, 2, block))):
        for size in (0, 3):
            out = zeros(2)
            interpret(PrimFunc((x, y), nest))(np.ones((2, size), "float32"), out)
            assert out.tolist() == [7 + size] * 2


def test_a_block_variable_outside_its_domain_is_an_error() -> None:
    v, i = PrimVar("v"), PrimVar("i")
    block = Block("b", store(Y, 1.0, v), (IterVar(v, 0, 4, "spatial", i),))
    with pytest.raises(BoundsError, match=r"variable 'v' of block 'b' is 4, outside \[0, 4\)"):
        interpret(PrimFunc((Y,), For(i, 0, 5, block)))(zeros(4))


def test_a_predicate_guards_the_block() -> None:
    v, i = PrimVar("v"), PrimVar("i")
    block = Block("b", store(Y, 1.0, v), (IterVar(v, 0, 4, "spatial", i),), predicate=i < 4)
    out = zeros(4)
    interpret(PrimFunc((Y,), For(i, 0, 6, block)))(out)
    np.testing.assert_array_equal(out, np.ones(4))


def test_symbols_are_bound_by_shapes_and_a_mismatch_says_where_they_came_from() -> None:
    with pytest.raises(ArgumentError) as caught:
        interpret(matmul())(zeros(5, 3), zeros(3, 2), zeros(4, 2))
    assert caught.value.code == "W852"
    assert caught.value.message.endswith(
        "argument 3 `C` of matmul: expected float32[(n, 2)], got float32[(4, 2)]; n=5 from argument 1"
    )


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        ((zeros(4),), "W850", "takes 2 arguments (x, y), got 1"),
        ((zeros(4, dtype="float64"), zeros(4)), "W851", "expected float32[(4,)], got float64[(4,)]"),
        ((zeros(4, 1), zeros(4)), "W852", "got float32[(4, 1)]"),
        (("no array", zeros(4)), "W851", "got no array"),
    ],
)
def test_wrong_arguments_are_refused(args: tuple[Any, ...], code: str, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        interpret(COPY)(*args)
    assert caught.value.code == code
    assert text in caught.value.message


def test_a_read_only_output_is_refused_and_a_read_only_input_is_not() -> None:
    frozen = zeros(4)
    frozen.flags.writeable = False
    interpret(COPY)(frozen, zeros(4))
    with pytest.raises(ArgumentError, match="read-only"):
        interpret(COPY)(zeros(4), frozen)


def test_arrays_of_any_layout_are_read_and_written() -> None:
    source, out = np.arange(8, dtype="float32")[::-2], zeros(8)
    interpret(COPY)(source, out[::2])
    np.testing.assert_array_equal(out[::2], source)
    np.testing.assert_array_equal(out[1::2], np.zeros(4))


def test_scalar_parameters_are_numbers_of_their_dtype() -> None:
    n = PrimVar("n", "int32")
    function = PrimFunc((n, Y), loop("i", 4, lambda i: store(Y, cast("float32", n), i)))
    out = zeros(4)
    interpret(function)(7, out)
    assert out.tolist() == [7] * 4
    for wrong in (1.5, 2**31, True, "7"):
        with pytest.raises(ArgumentError):
            interpret(function)(wrong, out)


def test_while_break_and_continue() -> None:
    count = Buffer("count", (1,), "int32")
    body = seq(
        store(count, 0, 0),
        While(
            load(count, 0) < 100,
            seq(store(count, load(count, 0) + 1, 0), IfThenElse(load(count, 0) >= 5, Break())),
        ),
        loop("i", 10, lambda i: seq(IfThenElse(i < 8, Continue()), store(count, load(count, 0) + 10, 0))),
    )
    out = zeros(1, dtype="int32")
    interpret(PrimFunc((count,), body))(out)
    assert out[0] == 25


def test_loops_have_start_and_step() -> None:
    i = PrimVar("i")
    seen = Buffer("seen", (10,), "int32")
    body = seq(loop("j", 10, lambda j: store(seen, 0, j)), For(i, 2, 7, store(seen, 1, i), step=3))
    out = zeros(10, dtype="int32")
    interpret(PrimFunc((seen,), body))(out)
    assert np.flatnonzero(out).tolist() == [2, 5, 8]


def test_return_gives_a_scalar() -> None:
    a, b = PrimVar("a"), PrimVar("b")
    assert interpret(PrimFunc((a, b), Return(binary("max", a, b))))(3, 5) == 5


def test_bind_and_let_name_values() -> None:
    t, u = PrimVar("t", "float32"), PrimVar("u", "float32")
    body = loop("i", 4, lambda i: seq(Bind(t, load(X, i)), store(Y, Let(u, t * 2.0, u + t), i)))
    out = zeros(4)
    interpret(PrimFunc((X, Y), body))(np.ones(4, "float32"), out)
    assert out.tolist() == [3] * 4


def test_a_variable_without_a_definition_is_an_error() -> None:
    with pytest.raises(VerifyError, match="variable 'ghost' is not defined"):
        interpret(PrimFunc((Y,), store(Y, cast("float32", PrimVar("ghost")), 0)))(zeros(4))


def test_if_then_else_evaluates_only_what_it_chooses() -> None:
    value = intrinsic("if_then_else", as_expr(False), load(X, 9), as_expr(1.0))
    out = zeros(4)
    interpret(PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, value, i))))(zeros(4), out)
    assert out.tolist() == [1] * 4


def test_select_evaluates_both_sides() -> None:
    value = Select(as_expr(False), load(X, 9), as_expr(1.0))
    with pytest.raises(BoundsError):
        interpret(PrimFunc((X, Y), store(Y, value, 0)))(zeros(4), zeros(4))


def test_and_stops_at_the_first_false_operand() -> None:
    def body(i: PrimVar) -> Stmt:
        inside = binary("and", i < 4, load(X, i) > 0.0)
        return IfThenElse(inside, store(Y, 1.0, i))

    out = zeros(4)
    interpret(PrimFunc((X, Y), loop("i", 6, body)))(np.ones(4, "float32"), out)
    assert out.tolist() == [1] * 4


def test_vector_loads_and_stores_take_ramps_and_predicates() -> None:
    lanes = Ramp(IntImm(0), IntImm(1), 4)
    mask = Binary_lt(lanes, 3)
    body = seq(
        BufferStore(Y, Broadcast(FloatImm(9.0), 4), (lanes,)),
        BufferStore(Y, BufferLoad(X, (lanes,)) * Broadcast(FloatImm(2.0), 4), (lanes,), predicate=mask),
    )
    out = zeros(4)
    interpret(PrimFunc((X, Y), body))(np.arange(4, dtype="float32"), out)
    assert out.tolist() == [0, 2, 4, 9]


def Binary_lt(vector: Any, limit: int) -> Any:
    return binary("lt", vector, Broadcast(IntImm(limit), 4))


def test_lanes_that_a_predicate_turns_off_are_not_accessed() -> None:
    lanes = Ramp(IntImm(2), IntImm(1), 4)
    value = BufferLoad(X, (lanes,), predicate=Binary_lt(lanes, 4))
    out = zeros(4)
    interpret(PrimFunc((X, Y), BufferStore(Y, value, (Ramp(IntImm(0), IntImm(1), 4),))))(
        np.arange(4, dtype="float32"), out
    )
    assert out.tolist() == [2, 3, 0, 0]


def test_a_vector_access_past_the_end_is_an_error() -> None:
    lanes = Ramp(IntImm(2), IntImm(1), 4)
    with pytest.raises(BoundsError, match=r"\[2, 3, 4, 5\]"):
        interpret(PrimFunc((Y,), BufferStore(Y, Broadcast(FloatImm(0.0), 4), (lanes,))))(zeros(4))


def test_shuffle_picks_lanes() -> None:
    picked = Shuffle((BufferLoad(X, (Ramp(IntImm(0), IntImm(1), 4),)),), tuple(IntImm(k) for k in (3, 2, 1, 0)))
    out = zeros(4)
    interpret(PrimFunc((X, Y), BufferStore(Y, picked, (Ramp(IntImm(0), IntImm(1), 4),))))(
        np.arange(4, dtype="float32"), out
    )
    assert out.tolist() == [3, 2, 1, 0]


def test_indices_that_overflow_int32_are_out_of_range() -> None:
    function = PrimFunc((X, Y), store(Y, load(X, as_expr(2**31 - 1) + 1), 0))
    with pytest.raises(BoundsError, match="is 2147483648, which int32 does not hold"):
        interpret(function)(zeros(4), zeros(4))


def test_a_view_shares_the_memory_of_its_buffer() -> None:
    flat = Buffer("flat", (6,), data=PrimCall("address_of", (load(M, 0, 0),), "handle"))
    body = seq(DeclBuffer(flat), loop("i", 6, lambda i: store(flat, cast("float32", i), i)))
    out = zeros(2, 3)
    interpret(PrimFunc((M,), body))(out)
    assert out.tolist() == [[0, 1, 2], [3, 4, 5]]


M = Buffer("m", (2, 3))


def test_a_view_of_another_width_reads_the_same_bits() -> None:
    bits = Buffer("bits", (4,), "uint32", data=PrimCall("address_of", (load(X, 0),), "handle"))
    out_bits = Buffer("out", (4,), "uint32")
    body = seq(DeclBuffer(bits), loop("i", 4, lambda i: store(out_bits, load(bits, i), i)))
    out = zeros(4, dtype="uint32")
    interpret(PrimFunc((X, out_bits), body))(np.ones(4, "float32"), out)
    assert out.tolist() == [0x3F800000] * 4


def test_a_matched_buffer_stands_for_a_region() -> None:
    big, stride = Buffer("big", (4, 6)), PrimVar("s")
    tile = Buffer("tile", (2, 3), strides=(stride, 1))
    i, j = PrimVar("i"), PrimVar("j")
    vi, vj = PrimVar("vi"), PrimVar("vj")
    region = BufferRegion(big, (Range(vi * 2, 2), Range(vj * 3, 3)))
    fill = loop("a", 2, lambda a: loop("b", 3, lambda b: store(tile, cast("float32", vi * 2 + vj), a, b)))
    block = Block(
        "tiles",
        fill,
        (IterVar(vi, 0, 2, "spatial", i), IterVar(vj, 0, 2, "spatial", j)),
        match_buffers=(MatchBufferRegion(tile, region),),
    )
    out = zeros(4, 6)
    interpret(PrimFunc((big,), For(i, 0, 2, For(j, 0, 2, block))))(out)
    assert out[:, ::3].tolist() == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_parameters_with_strides_and_offset_are_laid_out_for_the_function() -> None:
    padded = Buffer("padded", (2, 3), strides=(5, 1), elem_offset=2)
    body = loop("i", 2, lambda i: loop("j", 3, lambda j: store(padded, load(padded, i, j) + 1.0, i, j)))
    out = np.arange(6, dtype="float32").reshape(2, 3)
    interpret(PrimFunc((padded,), body))(out)
    assert out.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_external_functions_get_arrays() -> None:
    call = Evaluate(
        PrimCall(
            "call_extern",
            (StringImm("twice"), *(PrimCall("address_of", (load(b, 0),), "handle") for b in (X, Y))),
            "int32",
        )
    )
    out = zeros(4)
    interpret(PrimFunc((X, Y), call), functions={"twice": lambda a, b: np.multiply(a, 2, out=b)[0] and None}.get)(
        np.ones(4, "float32"), out
    )
    assert out.tolist() == [2] * 4
    with pytest.raises(ArgumentError) as caught:
        interpret(PrimFunc((X, Y), call))(zeros(4), out)
    assert caught.value.code == "W861"


def test_functions_of_the_module_are_called_with_buffers() -> None:
    i, value = PrimVar("i"), PrimVar("value", "float32")
    one = Buffer("one", (4,))
    fill = PrimFunc((one, value), For(i, 0, 4, store(one, value, i)), name="fill")
    call = Evaluate(PrimCall(GlobalVar("fill"), (PrimCall("address_of", (load(Y, 0),), "handle"), FloatImm(3.0))))
    out = zeros(4)
    interpret(IRModule({"main": PrimFunc((Y,), call), "fill": fill}))["main"](out)
    assert out.tolist() == [3] * 4


def test_print_buffer_shows_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    show = Evaluate(PrimCall("print_buffer", (PrimCall("address_of", (load(X, 0),), "handle"),)))
    interpret(PrimFunc((X,), show))(np.array([1, 2, 3, 4], "float32"))
    assert "x" in (out := capsys.readouterr().out)
    assert "[1. 2. 3. 4.]" in out


def test_an_assertion_raises_its_kind_with_its_message() -> None:
    n = PrimVar("n")
    function = PrimFunc((n,), AssertStmt(equal(n, 2), "n must be 2", "ShapeError"))
    interpret(function)(2)
    with pytest.raises(ShapeError, match="n must be 2"):
        interpret(function)(3)


def test_bfloat16_buffers_hold_raw_bits_and_round_at_each_step() -> None:
    x, y = Buffer("x", (2,), "bfloat16"), Buffer("y", (2,), "bfloat16")
    function = PrimFunc((x, y), loop("i", 2, lambda i: store(y, load(x, i) + load(x, i) * load(x, i), i)))
    values = np.array([1.5, 0.1], "float32")
    out = zeros(2, dtype="uint16")
    interpret(function)(encode(values, "bfloat16"), out)
    exact = decode(encode(values, "bfloat16"), "bfloat16")
    square = decode(encode(exact * exact, "bfloat16"), "bfloat16")
    np.testing.assert_array_equal(decode(out, "bfloat16"), decode(encode(exact + square, "bfloat16"), "bfloat16"))


def test_intrinsics_keep_the_dtype() -> None:
    x, y = Buffer("x", (2,), "float16"), Buffer("y", (2,), "float16")
    function = PrimFunc((x, y), loop("i", 2, lambda i: store(y, intrinsic("exp", load(x, i)), i)))
    values = np.array([0.5, 2], "float16")
    out = zeros(2, dtype="float16")
    interpret(function)(values, out)
    np.testing.assert_array_equal(out, np.exp(values))


def test_an_intrinsic_without_meaning_is_an_error() -> None:
    with pytest.raises(WeftError) as caught:
        interpret(PrimFunc((), Evaluate(PrimCall("tvm_storage_sync", (StringImm("shared"),)))))()
    assert caught.value.code == "W864"


def test_parallel_and_vectorized_loops_run_serially() -> None:
    out = zeros(4)
    for kind in ("parallel", "vectorized", "unrolled"):
        interpret(PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, load(X, i), i), kind=kind)))(
            np.ones(4, "float32"), out
        )
        assert out.tolist() == [1] * 4


def test_a_deep_expression_is_no_problem() -> None:
    value: Any = load(X, 0)
    for _ in range(5000):
        value = value + 1.0
    out = zeros(4)
    interpret(PrimFunc((X, Y), loop("i", 4, lambda i: store(Y, value, i))))(zeros(4), out)
    assert out[0] == 5000


@pytest.mark.parametrize(
    ("base", "exponent", "expected"), [(3, 4, 81), (2, -1, 0), (1, -5, 1), (-1, -3, -1), (0, -1, 0)]
)
def test_an_integer_power_is_an_integer(base: int, exponent: int, expected: int) -> None:
    a, b = PrimVar("a"), PrimVar("b")
    assert interpret(PrimFunc((a, b), Return(intrinsic("pow", a, b))))(base, exponent) == expected


def test_ldexp_takes_a_float_exponent() -> None:
    a, b = PrimVar("a", "float32"), PrimVar("b", "float32")
    function = interpret(PrimFunc((a, b), Return(intrinsic("ldexp", a, b))))
    assert function(1.5, 3.0) == 12
    assert function(1.0, float("inf")) == float("inf")


def test_an_init_of_each_step_runs_for_no_step_of_an_empty_reduction() -> None:
    """It names the variable of the reduction, which has no value there."""
    kernel = weft.parse("""
@T.prim_func
def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), n: T.int64):
    for j in range(n):
        with T.block("b"):
            v = T.axis.reduce(n, j)
            with T.init():
                y[v] = x[v]
""")
    y = np.zeros(4, "float32")
    weft.interpret(kernel)["f"](np.ones(4, "float32"), y, 0)
    assert y.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("y[i, 0] = flat[i]", {"y": True}),
        ("flat[i] = y[i, 0]", {"x": True}),
        ("T.evaluate(T.call_extern('void', 'use', T.address_of(x[0, 0])))", {"x": False}),
        ("T.evaluate(T.call_extern('void', 'use', flat.data))", {"x": False}),
    ],
)
def test_memory_that_views_read_is_not_written(line: str, written: dict[str, bool]) -> None:
    kernel = weft.parse(f"""
@T.prim_func
def kernel(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
    flat = T.decl_buffer((32,), "float32", data=T.address_of(x[0, 0]))
    for i in range(4):
        {line}
""")
    assert isinstance(kernel, PrimFunc)
    assert {buffer.name: stored for buffer, stored in written_buffers(kernel).items()} == written


def test_an_address_that_a_view_and_a_call_have_is_handed_on() -> None:
    address = PrimCall("address_of", (load(X, 0),), "handle")
    view = Buffer("view", (4,), "float32", data=address)
    used = Evaluate(PrimCall("call_extern", (StringImm("use"), address), "void"))
    for body, written in ((SeqStmt((DeclBuffer(view), used)), [X]), (SeqStmt((DeclBuffer(view),)), [])):
        assert list(written_buffers(PrimFunc((X,), body, name="kernel"))) == written
