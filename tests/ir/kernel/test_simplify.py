"""Simplification: what it does, and that it never changes a value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from weft.errors import WeftError
from weft.ir import structural_equal, te
from weft.ir.interpret import interpret
from weft.ir.kernel import prim
from weft.ir.kernel.simplify import simplify
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AssertStmt,
    Binary,
    Bind,
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    Let,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
    While,
)

x, y = PrimVar("x", "int32"), PrimVar("y", "int32")
f = PrimVar("f", "float32")
i, j = PrimVar("i", "int32"), PrimVar("j", "int32")
flag = PrimVar("flag", "bool")
out = Buffer("out", (4,), "int32")


def i32(value: int) -> IntImm:
    return IntImm(value, "int32")


def f32(value: float) -> FloatImm:
    return FloatImm(value, "float32")


SAME = [
    x + 0,
    0 + x,
    x - 0,
    x * 1,
    1 * x,
    x // 1,
    x | 0,
    x ^ 0,
    x << 0,
    x >> 0,
    prim.unary("neg", -x),
    prim.unary("bitwise_not", ~x),
    prim.binary("min", x, x),
    prim.binary("max", x, x),
    prim.binary("truncdiv", x, 1),
]


@pytest.mark.parametrize("expression", SAME, ids=range(len(SAME)))
def test_neutral_operands_disappear(expression: PrimExpr) -> None:
    assert simplify(expression) is x


RESULTS: list[tuple[PrimExpr, PrimExpr]] = [
    (i32(7) // i32(-2), i32(-4)),
    (i32(7) % i32(-2), i32(-1)),
    (prim.binary("truncdiv", i32(-7), i32(2)), i32(-3)),
    (prim.binary("truncmod", i32(-7), i32(2)), i32(-1)),
    (x * 0, i32(0)),
    (x % 1, i32(0)),
    (x - x, i32(0)),
    (x + 3 + 4, x + 7),
    (x + 3 - 4, x - 1),
    (x * 3 * 4, x * 12),
    (i32(3) < i32(4), IntImm(1, "bool")),
    (prim.equal(x, x), IntImm(1, "bool")),
    (prim.unary("not", x < y), x >= y),
    (prim.cast("int64", i32(5)), IntImm(5, "int64")),
    (prim.cast("float32", i32(5)), f32(5.0)),
    (f32(0.1) + f32(0.2), f32(float(np.float32(0.1) + np.float32(0.2)))),
    (f32(1.0) / f32(0.0), f32(math.inf)),
    (te.select(i32(1) < i32(2), x, y), x),
    (te.if_then_else(i32(1) > i32(2), x, y), y),
    (te.all(i32(1) < i32(2), flag), flag),
    (te.any(i32(1) < i32(2), flag), IntImm(1, "bool")),
]


@pytest.mark.parametrize(("before", "after"), RESULTS, ids=range(len(RESULTS)))
def test_expressions_become(before: PrimExpr, after: PrimExpr) -> None:
    assert structural_equal(simplify(before), after)


KEPT = [
    f + 0.0,  # -0.0 + 0.0 is 0.0
    f * 0.0,  # nan for a nan
    f - f,
    i32(2**31 - 1) + i32(1),  # would wrap
    i32(1) // i32(0),
    prim.unary("not", f < 1.0),  # a nan is neither less nor not less
    f32(math.inf) - f32(math.inf),  # a nan has many forms
    x // 0,
    PrimCall("call_extern", (i32(1),), "int32") * 0,
    x + y,
]


@pytest.mark.parametrize("expression", KEPT, ids=range(len(KEPT)))
def test_what_might_change_a_value_stays(expression: PrimExpr) -> None:
    assert simplify(expression) is expression


def test_let_of_a_constant_is_substituted_and_an_unused_one_dropped() -> None:
    a = PrimVar("a", "int32")
    assert simplify(Let(a, i32(2), a + x)) is not None
    assert structural_equal(simplify(Let(a, i32(2), a + 3)), i32(5))
    assert simplify(Let(a, x * y, y)) is y


def store(value: PrimExpr, index: PrimExpr | None = None) -> BufferStore:
    return BufferStore(out, value, (index if index is not None else i32(0),))


def loops(value: PrimExpr, rows: int = 8, columns: int = 4) -> Stmt:
    return For(i, 0, rows, For(j, 0, columns, store(value)))


def value_of(statement: Stmt) -> PrimExpr:
    (found,) = (node.value for node in walk(statement) if isinstance(node, BufferStore))
    return found


RANGED = [
    ((i * 4 + j) // 4, i),
    ((i * 4 + j) % 4, j),
    (i // 8, i32(0)),
    (i % 8, i),
    (prim.binary("min", i, 100), i),
    (prim.binary("max", i, 7), i32(7)),
    (te.select(i < 8, x, y), x),
    (te.select(te.all(i >= 0, i + j < 11), x, y), x),
]


@pytest.mark.parametrize(("before", "after"), RANGED, ids=range(len(RANGED)))
def test_ranges_of_loop_variables_decide(before: PrimExpr, after: PrimExpr) -> None:
    assert structural_equal(value_of(simplify(loops(before))), after)


def test_a_variable_of_a_guarded_block_keeps_its_guard() -> None:
    v = PrimVar("v", "int32")
    axis = IterVar(v, 0, 5, "spatial", i * 4 + j)
    block = Block("b", store(te.select(v < 5, x, y)), (axis,), predicate=v < 5)
    simplified = simplify(For(i, 0, 2, For(j, 0, 4, block)))
    (found,) = (node for node in walk(simplified) if isinstance(node, Block))
    assert found.predicate is block.predicate


def test_statements_without_effect_disappear() -> None:
    body = SeqStmt(
        (
            Evaluate(i32(0)),
            AssertStmt(i32(1) < i32(2), "always"),
            IfThenElse(i32(1) > i32(2), store(x)),
            While(i32(1) > i32(2), store(x)),
            For(i, 0, 0, store(x)),
            IfThenElse(flag, store(y), SeqStmt(())),
        )
    )
    simplified = simplify(body)
    assert isinstance(simplified, IfThenElse)
    assert simplified.else_body is None


def test_a_loop_of_one_iteration_becomes_its_body() -> None:
    simplified = simplify(For(i, 3, 1, store(x, i - 3)))
    assert isinstance(simplified, BufferStore)
    assert structural_equal(simplified.indices[0], i32(0))
    thread = For(i, 0, 1, store(x), kind="thread_binding", thread="threadIdx.x")
    assert simplify(thread) is thread


def test_what_is_simple_is_returned_as_it_is() -> None:
    statement = loops(x + y)
    assert simplify(statement) is statement


def test_a_deep_expression_does_not_recurse() -> None:
    value: PrimExpr = x
    for _ in range(5000):
        value = value + 1
    assert structural_equal(simplify(value), x + 5000)


@pytest.mark.parametrize("kind", ["min", "max", "lt"])
def test_operands_that_stay_are_not_walked_for_effects(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk of each operand of a deep chain is quadratic: 20,000 minima took a minute."""
    monkeypatch.setattr("weft.ir.kernel.simplify.is_pure", lambda _: pytest.fail("walked"))
    value: PrimExpr = x
    for _ in range(500):
        value = prim.binary("min" if kind == "lt" else kind, value * 3, y)
    value = prim.binary("lt", value, y) if kind == "lt" else value
    assert simplify(value) is value


# ---------------------------------------------------------------------------------------------------------------------
# Soundness
# ---------------------------------------------------------------------------------------------------------------------

ROWS, COLUMNS = 3, 5
DTYPES = ("int32", "int8", "uint8", "float32", "bool")
VARIABLES = {dtype: PrimVar(f"p_{dtype}", dtype) for dtype in DTYPES}
EDGES = {
    "int32": [0, 1, -1, 2, 3, 4, 5, 7, 2**31 - 1, -(2**31)],
    "int8": [0, 1, -1, 2, 3, 127, -128],
    "uint8": [0, 1, 2, 3, 5, 255],
    "float32": [0.0, -0.0, 1.0, -1.0, 0.5, math.inf, -math.inf, math.nan, 1e30, 0.1],
    "bool": [False, True],
}
INTEGER_KINDS = [
    "add",
    "sub",
    "mul",
    "min",
    "max",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
]
COMPARISON_KINDS = ["eq", "ne", "lt", "le", "gt", "ge"]


@st.composite
def expressions(draw: Any, dtype: str, depth: int = 4) -> PrimExpr:
    """Expressions of a dtype over the loop variables i, j and one parameter of each dtype."""
    leaf = depth == 0 or draw(st.integers(0, 4)) == 0
    if leaf:
        if dtype == "int32" and draw(st.booleans()):
            return draw(st.sampled_from([i, j, i * COLUMNS + j]))
        if draw(st.booleans()):
            return VARIABLES[dtype]
        return prim.const(draw(st.sampled_from(EDGES[dtype])), dtype)
    sub = lambda ty: draw(expressions(ty, depth - 1))
    choice = draw(st.integers(0, 9))
    if choice == 0:
        return prim.cast(dtype, sub(draw(st.sampled_from([t for t in DTYPES if t != "float32"]))))
    if choice == 1:
        return te.select(sub("bool"), sub(dtype), sub(dtype))
    if choice == 2:
        return te.if_then_else(sub("bool"), sub(dtype), sub(dtype))
    if dtype == "bool":
        if choice < 5:
            return prim.binary(draw(st.sampled_from(["and", "or"])), sub("bool"), sub("bool"))
        if choice == 5:
            return prim.unary("not", sub("bool"))
        operand = draw(st.sampled_from(DTYPES[:-1]))
        return prim.binary(draw(st.sampled_from(COMPARISON_KINDS)), sub(operand), sub(operand))
    if choice == 3:
        return prim.unary("neg", sub(dtype))
    constant = prim.const(draw(st.sampled_from(EDGES[dtype])), dtype)
    if dtype == "float32":
        kind = draw(st.sampled_from(["add", "sub", "mul", "div", "min", "max"]))
        return prim.binary(kind, *draw(st.permutations([sub(dtype), constant if choice < 8 else sub(dtype)])))
    divisor = prim.const(draw(st.sampled_from([1, 2, 3, 4, 5])), dtype)
    division = draw(st.sampled_from(["floordiv", "floormod", "truncdiv", "truncmod"]))
    if choice == 4:
        return prim.binary(division, sub(dtype) * divisor + draw(st.sampled_from([sub(dtype), constant])), divisor)
    if choice == 5:
        return prim.binary(division, sub(dtype), divisor)
    kinds = st.sampled_from(INTEGER_KINDS)
    if choice < 8:
        inner = prim.binary(draw(kinds), sub(dtype), divisor)
        return prim.binary(draw(kinds), inner, draw(st.sampled_from([constant, divisor])))
    return prim.binary(draw(kinds), *draw(st.permutations([sub(dtype), constant])))


CASES = 16


def table(values: list[PrimExpr], cases: dict[str, np.ndarray], run_simplified: bool) -> list[np.ndarray] | None:
    """The values of expressions for every i, j and case of the parameters, or None where there is an error."""
    case = PrimVar("case", "int32")
    inputs = {dtype: Buffer(f"in_{dtype}", (CASES,), dtype) for dtype in DTYPES}
    results = [Buffer(f"result_{number}", (ROWS, COLUMNS, CASES), value.dtype) for number, value in enumerate(values)]
    binds = [Bind(VARIABLES[dtype], BufferLoad(inputs[dtype], (case,))) for dtype in DTYPES]
    stores = [BufferStore(result, value, (i, j, case)) for result, value in zip(results, values, strict=True)]
    body = For(i, 0, ROWS, For(j, 0, COLUMNS, For(case, 0, CASES, SeqStmt((*binds, *stores)))))
    function = PrimFunc((*inputs.values(), *results), body)
    if run_simplified:
        function = simplify(function)
    arrays = [np.zeros((ROWS, COLUMNS, CASES), value.dtype) for value in values]
    try:
        with np.errstate(all="ignore"):
            interpret(function)(*(cases[dtype] for dtype in DTYPES), *arrays)
    except (WeftError, ArithmeticError, ValueError):
        return None
    return arrays


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.sampled_from(DTYPES).flatmap(lambda dtype: expressions(dtype, 2)), min_size=4, max_size=8),
    seed=st.integers(0, 1000),
)
def test_a_simplified_expression_has_the_same_bits(values: list[PrimExpr], seed: int) -> None:
    rng = np.random.default_rng(seed)
    cases = {dtype: rng.choice(np.asarray(EDGES[dtype], dtype), CASES) for dtype in DTYPES}
    before = table(values, cases, False)
    assume(before is not None)
    after = table(values, cases, True)
    assert before is not None
    assert after is not None
    for expected, got in zip(before, after, strict=True):
        same = expected == got
        if expected.dtype == np.float32:
            same = (same & (np.signbit(expected) == np.signbit(got))) | (np.isnan(expected) & np.isnan(got))
        assert np.all(same)


@settings(max_examples=100, deadline=None)
@given(value=st.sampled_from(DTYPES).flatmap(expressions))
def test_simplifying_twice_changes_nothing_more_than_once(value: PrimExpr) -> None:
    once = simplify(value)
    assert len(list(walk(simplify(once)))) <= len(list(walk(once))) <= len(list(walk(value)))


def test_the_folded_sum_of_a_wrapped_constant_stays() -> None:
    wrapped = Binary("add", IntImm(127, "int8"), IntImm(1, "int8"))
    assert simplify(wrapped) is wrapped
