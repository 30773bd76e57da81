"""CheckBounds: no access of a compiled kernel leaves its buffer, and what is proved costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import weft
from weft.ir import IRModule, PrimFunc, TensorType, Var, walk
from weft.ir.builder import BlockBuilder
from weft.ir.dim import Dim, symbol
from weft.ir.kernel.prim import binary
from weft.ir.op import get_op
from weft.ir.tensor import (
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    Let,
    PrimCall,
    PrimExpr,
    PrimVar,
    Ramp,
    SeqStmt,
)
from weft.script import tir as T
from weft.transform import CheckBounds, LegalizeOps, default_pipeline, module_pass
from weft.transform.kernel.check_bounds import check_bounds


def asserts(function: PrimFunc) -> list[AssertStmt]:
    return [part for part in walk(function) if isinstance(part, AssertStmt)]


def checked(function: PrimFunc) -> PrimFunc:
    """The function after the pass: as well formed as before, it round-trips, and the pass does not change it again."""
    new = check_bounds(function)
    module = IRModule({"main": new})
    before = {finding.code for finding in weft.verify(IRModule({"main": function}))}
    assert {finding.code for finding in weft.verify(module)} == before
    weft.assert_structural_equal(weft.parse(module.script()), module)
    assert check_bounds(new) is new
    return new


def outcome(run: Any, arrays: list[Any]) -> Any:
    copies = [array.copy() if isinstance(array, np.ndarray) else array for array in arrays]
    try:
        run(*copies)
    except weft.BoundsError as error:
        # The interpreter also minds elements of an output that nothing has written.
        return copies if error.code == "W902" else "BoundsError"
    return copies


def agree(function: PrimFunc, *calls: list[Any]) -> None:
    """Compiled code and the interpreter, before and after the pass: the same results, or BoundsError from all."""
    new = checked(function)
    runs = [weft.interpret(function), weft.interpret(new), weft.compile(function)[function.name]]
    for arrays in calls:
        want, *others = [outcome(run, arrays) for run in runs]
        for got in others:
            assert isinstance(got, str) == isinstance(want, str)
            if not isinstance(want, str):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def guarded(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A view of `size` elements in the middle of memory that must stay zero."""
    whole = np.zeros(size + 128, "float32")
    return whole, whole[64 : 64 + size]


@T.prim_func
def copies(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(n):
        y[i] = x[i]


@T.prim_func
def gathers(x: T.Buffer(("n",)), idx: T.Buffer(("m",), "int32"), y: T.Buffer(("m",))):
    for i in range(m):
        y[i] = x[idx[i]]


@T.prim_func
def gathers_twice(x: T.Buffer(("n",)), a: T.Buffer(("k",), "int64"), b: T.Buffer(("m",), "int64"), y: T.Buffer(("m",))):
    for i in range(m):
        y[i] = x[a[b[i]]]


@T.prim_func
def transposes(x: T.Buffer(("n", "k")), y: T.Buffer(("m", "p"))):
    for i, j in T.grid(n, k):
        y[j, i] = x[i, j]


@T.prim_func
def runs_backwards(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(n):
        y[n - 1 - i] = x[i]


@T.prim_func
def starts_anywhere(x: T.Buffer(("n",)), y: T.Buffer(("n",)), k: T.int64):
    for i in T.serial(k, n):
        y[i] = x[i]


@T.prim_func
def pads(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(m):
        y[i] = T.if_then_else(i >= 1 and i - 1 < n, x[i - 1], T.float32(0))


@T.prim_func
def asks_first(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(n):
        if i < m:
            y[i] = x[i]


@T.prim_func
def where_in_blocks(x: T.Buffer(("n",)), y: T.Buffer(("n",))):
    for i, j in T.grid((n + 3) // 4, 4):
        with T.block("b"):
            v = T.axis.spatial(n, i * 4 + j)
            T.where(i * 4 + j < n)
            y[v] = x[v]


@T.prim_func
def sums_rows(x: T.Buffer(("n", "k")), y: T.Buffer(("m",))):
    for i, j in T.grid(n, k):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + x[vi, vj]


@T.prim_func
def leaves_early(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(n):
        if i >= m:
            break
        y[i] = x[i]


@T.prim_func
def leaves_after(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(n):
        y[i] = x[i]
        if i + 1 == m:
            break


@T.prim_func
def wraps_round(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    for i in range(m):
        y[i] = x[i % n]


@T.prim_func
def clamps(x: T.Buffer(("n",)), idx: T.Buffer(("m",), "int64"), y: T.Buffer(("m",))):
    for i in range(m):
        j = T.max(T.min(idx[i], n - 1), T.int64(0))
        y[i] = T.if_then_else(n > 0, x[j], T.float32(0))


@T.prim_func
def takes_a_scalar(x: T.Buffer(("n",)), y: T.Buffer(("m",)), k: T.int32):
    for i in range(m):
        y[i] = x[i + k]


@T.prim_func
def looks_for_a_zero(x: T.Buffer(("n",)), at: T.Buffer((1,), "int64")):
    at[0] = T.int64(0)
    while x[at[0]] != T.float32(0):
        at[0] = at[0] + T.int64(1)


@T.prim_func
def takes_vectors(x: T.Buffer(("n",)), y: T.Buffer((64,))):
    for i in T.vectorized(64):
        y[i] = x[i]


def test_a_copy_into_too_little_memory_is_stopped_by_one_check_before_the_loop() -> None:
    """DESIGN principle 4."""
    new = checked(copies)
    (check,) = asserts(new)
    assert check.kind == "BoundsError"
    assert check.message == "index out of range for 'y' (dimension 0): i must lie in [0, m)"
    assert check.span is not None
    assert isinstance(new.body, SeqStmt)
    assert new.body.stmts[0] is check
    agree(copies, [floats(5), floats(5)], [floats(5), floats(3)], [floats(0), floats(0)], [floats(3), floats(9)])


@pytest.mark.parametrize("size", [0, 1, 4])
def test_memory_outside_stays_as_it_was(size: int) -> None:
    whole, view = guarded(size)
    with pytest.raises(weft.BoundsError, match="'y'"):
        weft.compile(copies)["copies"](np.ones(50, "float32"), view)
    np.testing.assert_array_equal(whole, 0)


def test_gathers_are_checked_element_by_element() -> None:
    agree(
        gathers,
        *([floats(4), np.array(index, "int32"), floats(2)] for index in ([0, 3], [0, 4], [-1, 2], [2**31 - 1, 0])),
    )


def test_an_inner_gather_is_checked_before_the_outer_one_reads() -> None:
    inner, outer = asserts(checked(gathers_twice))
    assert "'a'" in inner.message
    assert "'x'" in outer.message
    calls = [([1, 0, 2], [0, 2]), ([1, 0, 9], [0, 2]), ([1, 0, 2], [0, 3]), ([1, -1, 2], [1, 0])]
    agree(gathers_twice, *([floats(3), np.array(a), np.array(b), floats(2)] for a, b in calls))


ASSERTED = """@T.prim_func
def f(x: T.Buffer(("n",)), idx: T.Buffer(("m", 2), "int64"), y: T.Buffer(("m",))):
    T.func_attr({"noalias": True})
    for i in range(m):
        with T.block("check"):
            v = T.axis.spatial(m, i)
            assert idx[v, 1] >= -n and idx[v, 1] < n, ("BoundsError", "no place")
    for j in range(m):
        y[j] = x[T.Select(idx[m - 1 - j, 1] < 0, idx[m - 1 - j, 1] + n, idx[m - 1 - j, 1])]
"""


def test_what_is_asserted_of_all_elements_is_not_asserted_again() -> None:
    function = weft.parse(ASSERTED)
    (only,) = asserts(checked(function))
    assert only.message == "no place"
    places = [[0, 3], [9, -4]], [[4, 0], [0, 4]], [[0, -5], [0, 0]], []
    agree(function, *([floats(4), np.array(x, "int64").reshape(-1, 2), floats(len(x))] for x in places))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in range(m):\n        with", "in range(1, m):\n        with"),  # not of all elements
        ("T.axis.spatial(m, i)", "T.axis.spatial(m, T.min(i, m - 1 - i))"),
        ("assert idx[v, 1]", "assert idx[v, 0]"),  # of others
        ("and idx[v, 1] <", "and idx[v, 0] <"),
        ("< n, (", "<= n, ("),  # too little
        ("        y[j]", "        idx[j, 1] = T.int64(7)\n        y[j]"),  # of what they were before
        ('"noalias": True', '"noalias": False'),  # of what stores to y may change
        ("x[T.Select(idx[m - 1 - j, 1]", "x[T.Select(idx[m - 1 - j, 0]"),
    ],
)
def test_what_is_asserted_of_some_elements_says_nothing_of_all(old: str, new: str) -> None:
    assert old in ASSERTED
    function = weft.parse(ASSERTED.replace(old, new))
    assert any("out of range for 'x'" in part.message for part in asserts(checked(function)))


def test_transposed_and_reversed_accesses() -> None:
    agree(transposes, [floats(2, 3), floats(3, 2)], [floats(2, 3), floats(2, 3)], [floats(0, 3), floats(1, 1)])
    agree(
        runs_backwards, [floats(4), floats(4)], [floats(4), floats(3)], [floats(4), floats(9)], [floats(0), floats(0)]
    )


def test_negative_indices_are_out_of_range() -> None:
    agree(starts_anywhere, *([floats(4), floats(4), k] for k in (0, 2, 4, 9, -1, -7)))
    agree(takes_a_scalar, *([floats(6), floats(3), k] for k in (0, 3, 4, -1, -(2**31), 2**31 - 1)))


@pytest.mark.parametrize("function", [pads, asks_first, where_in_blocks, leaves_early], ids=lambda f: f.name)
def test_guarded_accesses_need_no_assertion(function: PrimFunc) -> None:
    assert check_bounds(function) is function
    same = function is where_in_blocks
    agree(function, *([floats(n), floats(n if same else m)] for n, m in [(5, 7), (7, 5), (0, 3), (4, 4), (1, 0)]))


def test_what_holds_where_memory_was_read_into_a_variable_is_kept() -> None:
    assert check_bounds(clamps) is clamps
    agree(clamps, [floats(3), np.array([-7, 1, 9]), floats(3)], [floats(0), np.array([-7, 1, 9]), floats(3)])


def test_a_loop_that_is_left_early_is_checked_in_every_iteration() -> None:
    assert len(asserts(checked(leaves_after))) == 1
    assert isinstance(checked(leaves_after).body, For)
    agree(leaves_after, [floats(5), floats(3)], [floats(3), floats(5)], [floats(2), floats(0)])


def test_the_init_of_an_empty_reduction_is_checked_too() -> None:
    agree(sums_rows, [floats(3, 2), floats(3)], [floats(3, 0), floats(3)], [floats(3, 0), floats(2)])
    whole, view = guarded(2)
    with pytest.raises(weft.BoundsError):
        weft.compile(sums_rows)["sums_rows"](floats(9, 0), view)
    np.testing.assert_array_equal(whole, 0)


def test_a_remainder_by_zero_is_no_index() -> None:
    agree(wraps_round, [floats(3), floats(8)], [floats(0), floats(2)], [floats(0), floats(0)])


def test_a_condition_that_reads_memory_is_checked_in_every_iteration() -> None:
    agree(looks_for_a_zero, *([np.array(x, "float32"), np.zeros(1, "int64")] for x in ([1, 0], [1, 1], [])))


def test_vectorized_loops_keep_their_form() -> None:
    assert len(asserts(checked(takes_vectors))) == 1
    body = checked(takes_vectors).body
    assert isinstance(body, SeqStmt)
    assert isinstance(body.stmts[1], For)
    assert body.stmts[1].kind == "vectorized"
    agree(takes_vectors, [floats(64), floats(64)], [floats(63), floats(64)], [floats(0), floats(64)])


def test_vectors_are_checked_at_both_ends() -> None:
    n, k = PrimVar("n", "int64"), PrimVar("k", "int64")
    x, y = Buffer("x", (n,)), Buffer("y", (4,))
    for stride in (1, 3, -2):
        index = Ramp(k, binary("add", stride, PrimExpr.__mul__(k, 0)), 4)  # a stride that is no constant
        store = BufferStore(y, BufferLoad(x, (index,)), (Ramp(binary("sub", k, k), binary("sub", k + 1, k), 4),))
        function = PrimFunc((x, k, y), store, name="main")
        agree(function, *([floats(9), at, floats(4)] for at in (0, 5, 6, 8, -1, 9)))


def test_lanes_that_are_switched_off_are_not_checked() -> None:
    n, m, k = (PrimVar(name, "int64") for name in "nmk")
    x, y = Buffer("x", (n,)), Buffer("y", (m,))
    lanes = Ramp(k, binary("add", 1, k * 0), 4)
    active = binary("lt", lanes, T.Broadcast(n, 4))
    function = PrimFunc((x, y, k), BufferStore(y, BufferLoad(x, (lanes,), active), (lanes,), active), name="main")
    agree(function, *([floats(5), floats(size), at] for size in (5, 4) for at in (0, 2, 4, 5, 8, -1)))


@T.prim_func
def promises(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    T.evaluate(T.assume(m <= n))
    for i in range(m):
        y[i] = x[i]


def test_an_assumption_is_asserted_and_then_believed() -> None:
    (check,) = asserts(checked(promises))
    assert check.message == "an assumption does not hold"
    agree(promises, [floats(5), floats(5)], [floats(3), floats(5)])


@T.prim_func
def asserts_itself(x: T.Buffer(("n",)), y: T.Buffer(("m",))):
    assert n <= m, ("BoundsError", "y is too short")
    for i in range(n):
        y[i] = x[i]


def test_assertions_of_the_user_are_facts() -> None:
    assert check_bounds(asserts_itself) is asserts_itself


# Operators and pipelines ----------------------------------------------------------------------------------------------


def legalized(name: str, *shapes: tuple[Dim, ...], **options: object) -> IRModule:
    params = [Var(f"x{i}", TensorType(shape, "float32")) for i, shape in enumerate(shapes)]
    builder = BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(get_op(name).bind(params, options, None)))
    return LegalizeOps()(builder.get())


N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("name", "shapes", "options"),
    [
        ("add", [(N, 4), (4,)], {}),
        ("nn.gelu", [(N, M)], {}),
        ("matmul", [(N, M), (M, 5)], {}),
        ("linear", [(N, 7), (10, 7)], {}),
        ("nn.conv2d", [(N, 3, M, 9), (5, 3, 3, 3)], {"padding": 1}),
        ("nn.softmax", [(N, M)], {}),
        ("nn.layer_norm", [(N, M), (M,), (M,)], {"axes": [1]}),
        ("nn.max_pool2d", [(N, 3, M, 9)], {"pool_size": 2}),
        ("reshape", [(N, 6)], {"shape": [N, 2, 3]}),
        ("concat", [], {}),
        ("sum", [(N, M)], {"axis": [1]}),
    ],
)
def test_kernels_of_operators_are_proved(name: str, shapes: list[tuple[Dim, ...]], options: dict[str, Any]) -> None:
    if name == "concat":
        pair = [Var(f"x{i}", TensorType((N, 2 + i), "float32")) for i in range(2)]
        builder = BlockBuilder()
        with builder.function("main", pair):
            builder.emit_func_output(builder.emit(get_op("concat").bind([pair], {"axis": 1}, None)))
        module = LegalizeOps()(builder.get())
    else:
        module = legalized(name, *shapes, **options)
    assert CheckBounds()(module) is module


def test_user_kernels_in_a_module_with_graph_functions_are_checked() -> None:
    module = weft.parse("""
from weft.script import ir as I, relax as R, tir as T

@I.ir_module
class M:
    @T.prim_func
    def head(x: T.Buffer(("n",)), y: T.Buffer((3,))):
        for i in range(3):
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor((3,), "float32"):
        out = R.call_tir(M.head, (x,), R.Tensor((3,), "float32"))
        return out
""")

    @module_pass
    def same(module: IRModule) -> IRModule:
        return module

    for options in ({}, {"opt": 0}, {"pipeline": default_pipeline()}, {"pipeline": same}):
        main = weft.compile(module, **options)["main"]
        np.testing.assert_array_equal(main(floats(5)), [0, 1, 2])
        with pytest.raises(weft.BoundsError, match="'x'"):
            main(floats(2))


# Random kernels -------------------------------------------------------------------------------------------------------


def test_a_condition_that_binds_a_variable_guards_without_it() -> None:
    """A Let binds its variable in one place: what is asserted under a condition that has one has none."""
    x, y, i, t = Buffer("x", (PrimVar("n", "int64"),)), Buffer("y", (8,)), PrimVar("i", "int64"), PrimVar("t", "int64")
    condition = Let(t, i * 2, binary("lt", t + 1, 9))
    loaded = PrimCall("if_then_else", (condition, BufferLoad(x, (i,)), FloatImm(0.0)), "float32")
    function = PrimFunc((x, y), For(i, 0, 8, BufferStore(y, loaded, (i,))), name="main")
    assert asserts(checked(function))
    agree(function, [floats(4), floats(8)], [floats(3), floats(8)])


def test_a_claim_beyond_all_dimensions_says_nothing() -> None:
    """The difference of its sides does not fit in 64 bits."""
    x, m = Buffer("x", (4,)), PrimVar("m", "int64")
    claim = AssertStmt(binary("eq", m, IntImm(-(2**63), "int64")), "least", "ValueError")
    checked(PrimFunc((x, m), SeqStmt((claim, BufferStore(x, FloatImm(0.0), (m,)))), name="main"))


@st.composite
def affine_kernels(draw: st.DrawFn) -> PrimFunc:
    """y[...] = x[...] over up to three loops, with indices that are affine, divided, or clamped."""
    sizes = [PrimVar(name, "int64") for name in "nm"]
    loops = [PrimVar(f"i{k}", "int64") for k in range(draw(st.integers(1, 3)))]

    def affine(variables: list[PrimVar], least: int) -> PrimExpr:
        value: PrimExpr = binary("mul", variables[0], draw(st.integers(least, 2)))
        for variable in variables[1:]:
            value = value + variable * draw(st.sampled_from([0, 0, 1, -1, 2]))
        return value + draw(st.integers(-1, 1))

    def index() -> PrimExpr:
        value = affine([draw(st.sampled_from(loops)), *loops, draw(st.sampled_from(sizes))], -1)
        kind = draw(st.sampled_from(["", "", "floordiv", "floormod", "min", "max"]))
        other = draw(st.sampled_from([2, 3])) if kind.startswith("floor") else draw(st.sampled_from(sizes)) - 1
        return binary(kind, value, other) if kind else value

    x = Buffer("x", tuple(sizes[: draw(st.integers(1, 2))]))
    y = Buffer("y", (sizes[0], sizes[1]))
    body: Any = BufferStore(
        y, BufferLoad(x, tuple(index() for _ in x.shape)), (index(), draw(st.sampled_from([loops[0], index()])))
    )
    if draw(st.booleans()):
        condition = binary("lt", index(), draw(st.sampled_from(sizes)))
        body = IfThenElse(condition, body)
    for loop in reversed(loops):
        start = draw(st.sampled_from([0, 0, 0, 1, -1]))
        body = For(loop, start, draw(st.sampled_from([*sizes, 2, sizes[0] - 1])), body)
    return PrimFunc((x, y), body, name="main")


@settings(max_examples=60, deadline=None)
@given(affine_kernels(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=4))
def test_random_kernels_agree_with_the_interpreter(function: PrimFunc, sizes: list[tuple[int, int]]) -> None:
    """The interpreter checks every access: compiled code refuses just what it refuses."""
    assume(not weft.verify(IRModule({"main": function})))  # what is never in range is refused before
    x = function.params[0]
    assert isinstance(x, Buffer)
    agree(function, *([floats(*size[: x.ndim]), floats(*size)] for size in sizes))
