"""Reductions of several values at once: taken apart where the order of their elements does not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.schedule.test_blocks import refused, underlined
from tests.transform.schedule.workloads import check

import weft
from weft import parse
from weft.ir import IRModule, PrimFunc
from weft.transform import LegalizeOps
from weft.transform.schedule import Schedule

GREATEST = """
@T.prim_func
def kernel(x: T.Buffer((SIZE, 24), "int32"), best: T.Buffer((SIZE,), "int32"), where: T.Buffer((SIZE,), "int32")):
    for i, k in T.grid(ROWS, 24):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                where[vi] = START
                best[vi] = T.min_value("int32")
            v0: T.let = T.Select(CHOICE, where[vi], vk)
            v1: T.let = VALUE
            where[vi] = v0
            best[vi] = v1
"""
FIRST = "best[vi] >= x[vi, vk]"
LAST = "best[vi] > x[vi, vk]"
LEAST_INDEX = "best[vi] > x[vi, vk] or (best[vi] == x[vi, vk] and where[vi] < vk)"
LARGER = "T.max(best[vi], x[vi, vk])"


def greatest(choice: str = FIRST, value: str = LARGER, start: str = "-1", size: str = "n") -> PrimFunc:
    quoted = f'"{size}"' if size == "n" else size
    text = GREATEST.replace("SIZE", quoted).replace("ROWS", size).replace("VALUE", value)
    function = parse(text.replace("CHOICE", choice).replace("START", start))
    assert isinstance(function, PrimFunc)
    return function


@pytest.mark.parametrize(
    ("choice", "start"), [(FIRST, "-1"), (LEAST_INDEX, "-1"), (LEAST_INDEX, 'T.max_value("int32")')]
)
def test_an_index_and_its_value_are_chosen_in_pieces(choice: str, start: str) -> None:
    value = f"T.Select({choice}, best[vi], x[vi, vk])"
    for written in (value, LARGER):
        function = greatest(choice, written, start)
        text = check(function, rfactored(function, [None, 4], 0), {"n": 9}, {"n": 1}).script()
        assert "where_rf = T.alloc_buffer((n, 6)" in text
        assert "best_rf = T.alloc_buffer((n, 6)" in text


def rfactored(function: PrimFunc, factors: list[int | None], place: int, axis: int = -1) -> Schedule:
    sch = Schedule(function)
    parts = sch.split(sch.get_loops(sch.get_block("m"))[1], factors)
    sch.rfactor(parts[place], axis)
    return sch


def test_what_depends_on_the_order_is_taken_apart_from_outside_only() -> None:
    sch = Schedule(greatest())
    _, inner = sch.split(sch.get_loops(sch.get_block("m"))[1], [None, 4])
    error = refused("W607", lambda: sch.rfactor(inner))
    assert error.message == (
        "what block 'm' chooses depends on the order of its elements: only its outermost loop 'k_0' can be factored"
    )
    assert underlined(error) == "k_1"
    function = greatest(LEAST_INDEX, start='T.max_value("int32")')
    check(function, rfactored(function, [None, 4], 1, 0), {"n": 9})


@pytest.mark.parametrize(
    ("choice", "value", "start", "said"),
    [
        ("best[vi] >= x[vi, vk] or where[vi] < vk", LARGER, "-1", "depends on how its elements are grouped"),
        (FIRST, "best[vi] + x[vi, vk]", "-1", "is no reduction"),
        (FIRST, "T.max(best[vi], x[vi, 0])", "-1", "is no reduction"),
        ("best[vi] >= vk", LARGER, "-1", "is no reduction"),
        ("best[vi] >= 0", LARGER, "-1", "is no reduction"),
        (LAST, LARGER, "-1", "is not neutral"),  # of elements that all are the least, the last piece would give -1
        ("not best[vi] >= x[vi, vk]", "T.min(best[vi], x[vi, vk])", "-1", "is not neutral"),
        (FIRST, LARGER, "vi", "is not neutral"),
    ],
)
def test_what_cannot_be_computed_in_pieces_is_refused(choice: str, value: str, start: str, said: str) -> None:
    sch = Schedule(greatest(choice, value, start))
    loop = sch.get_loops(sch.get_block("m"))[1]
    error = refused("W610", lambda: sch.rfactor(loop))
    assert said in error.message
    assert underlined(error) == 'with T.block("m"):'


def test_sums_of_several_things_are_added_in_pieces() -> None:
    function = parse(
        """
@T.prim_func
def kernel(x: T.Buffer(("n", 14), "int32"), s: T.Buffer(("n",), "int32"), q: T.Buffer(("n",), "int32")):
    for i, k in T.grid(n, 14):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = 0
                q[vi] = 1
            s[vi] = s[vi] + x[vi, vk]
            q[vi] = x[vi, vk] * x[vi, vk] * q[vi]
"""
    )
    assert isinstance(function, PrimFunc)
    for place in (0, 1):
        check(function, rfactored(function, [None, 3], place), {"n": 5}, {"n": 1})
    mixed = parse(function.script().replace("q[vi] = x[vi, vk] * x[vi, vk] * q[vi]", "q[vi] = q[vi] * s[vi]"))
    assert isinstance(mixed, PrimFunc)
    error = refused("W610", lambda: rfactored(mixed, [None, 3], 0))
    assert underlined(error) == 'with T.block("m"):'


def test_argmax_of_the_operators_is_computed_in_pieces_in_any_order() -> None:
    """Elements that are no numbers and equal ones included: the operator says for all of them which one it is."""
    text = """
@R.function
def main(x: R.Tensor((4, 24), "float32")):
    y = R.argmax(x, axis=1)
    return y
"""
    main = parse(text)
    assert isinstance(main, weft.ir.Function)
    module = LegalizeOps()(IRModule({"main": main}))
    for place in (0, 1):
        sch = Schedule(IRModule({"kernel": module["argmax"]}))
        block = sch.get_block("argmax")
        parts = sch.split(sch.get_loops(block)[1], [None, 5])
        sch.rfactor(parts[place])
        x = np.random.default_rng(0).integers(0, 5, (4, 24)).astype("float32")
        x[1, [3, 9]] = np.nan
        x[2] = -np.inf
        out = np.zeros(4, "int64")
        weft.interpret(sch.mod)["kernel"](x, out)
        np.testing.assert_array_equal(out, np.argmax(x, axis=1))


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(1, 7), st.booleans(), st.integers(0, 1), st.sampled_from([FIRST, LEAST_INDEX]))
def test_any_division_gives_the_same_choice(rows: int, factor: int, inner: bool, axis: int, choice: str) -> None:
    start = 'T.max_value("int32")' if choice is LEAST_INDEX else "-1"
    function = greatest(choice, start=start, size=str(rows))
    sch = Schedule(function)
    parts = sch.split(sch.get_loops(sch.get_block("m"))[1], [None, factor])
    if inner and choice is not LEAST_INDEX:
        refused("W607", lambda: sch.rfactor(parts[1], axis))
    else:
        sch.rfactor(parts[int(inner)], axis)
        check(function, sch, compiled=False)


def test_a_choice_that_depends_on_the_order_keeps_it() -> None:
    function = greatest(size="6")
    sch = Schedule(function)
    block = sch.get_block("m")
    error = refused("W607", lambda: sch.transform_block_layout(block, "lambda i, k: (i, k % 8, k // 8)"))
    assert underlined(error) == "k"
    sch.transform_block_layout(block, "lambda i, k: (i // 2, k, i % 2)")
    check(function, sch)
    once = Schedule(function)
    _, k = once.get_loops("m")
    outer, inner = once.split(k, [1, 24])  # a loop of one iteration is in nobody's way
    once.rfactor(inner)
    check(function, once)
    assert once.get(outer) is not None
    error = refused("W607", lambda: split_and_factored(function))
    assert error.hint is not None
    assert "told apart by their index" in error.hint


def split_and_factored(function: PrimFunc) -> None:
    sch = Schedule(function)
    sch.rfactor(sch.split(sch.get_loops("m")[1], [4, 6])[1])


WINDOWS = """
@T.prim_func
def kernel(x: T.Buffer((ROWS, A, B, C), "int32"), y: T.Buffer((ROWS,), "int32")):
    for i, a, b, c in T.grid(ROWS, A, B, C):
        with T.block("m"):
            vi, va, vb, vc = T.axis.remap("SRRR", [i, a, b, c])
            with T.init():
                y[vi] = 0
            y[vi] = y[vi] + x[vi, va, vb, vc]
"""


def windows(rows: str, sizes: tuple[int, int, int]) -> PrimFunc:
    text = WINDOWS.replace("(ROWS", f'("{rows}"' if rows == "n" else f"({rows}", 2).replace("ROWS", rows)
    for name, size in zip("ABC", sizes, strict=True):
        text = text.replace(f" {name}", f" {size}")
    function = parse(text)
    assert isinstance(function, PrimFunc)
    return function


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(*[st.integers(1, 5)] * 3),
    st.integers(1, 12),
    st.booleans(),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from(["4", "n"]),
)
def test_a_split_may_cut_across_fused_axes(
    sizes: tuple[int, int, int], factor: int, from_inside: bool, place: int, whole: bool, rows: str
) -> None:
    """Digits of the fused number stay digits of it, whatever loops it is made of."""
    factor = math.gcd(factor, math.prod(sizes)) if whole else factor
    sch = Schedule(windows(rows, sizes))
    parts = sch.split(
        sch.fuse(*sch.get_loops(sch.get_block("m"))[1:]), [None, factor] if from_inside else [factor, None]
    )
    sch.rfactor(parts[place])
    check(windows(rows, sizes), sch, *([{"n": 3}] if rows == "n" else []))


def test_windows_are_summed_in_pieces_of_any_length() -> None:
    sch = Schedule(windows("n", (4, 3, 3)))
    outer, _ = sch.split(sch.fuse(*sch.get_loops(sch.get_block("m"))[1:]), [None, 6])
    sch.rfactor(outer)
    text = check(windows("n", (4, 3, 3)), sch, {"n": 2}).script()
    assert "y_rf = T.alloc_buffer((6, n)" in text
