"""Formulas of elements are what the interpreter computes, at every position; what has none says so."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.ir import Expr, Function, TensorType
from weft.ir.deduction.infer import TypeContext, infer_type
from weft.ir.dim import Facts, evaluate
from weft.transform.analysis.positions.evaluate import Positions, position_in
from weft.transform.analysis.positions.formulas import All, Choice, Element
from weft.transform.analysis.positions.operators import OPERATORS
from weft.transform.pattern.matching import bindings_of_function

ROW, KEY = position_in("rows"), position_in("keys")
HEAD = "i = R.reshape(R.arange(0, s), (s, 1))\nj = R.reshape(R.arange(0, t), (1, t))\n"


def written(body: str) -> Function:
    """A function of tensors (s,) and (t,), whose result has s rows and t columns."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    params = 'x: R.Tensor(("s",), "int64"), y: R.Tensor(("t",), "int64")'
    made = weft.parse(f"@R.function\ndef main({params}):\n{lines}\n    return out")
    assert isinstance(made, Function)
    return made


def formula(function: Function) -> Element | None:
    """The element of the result in row ROW and column KEY."""
    bindings, context = bindings_of_function(function), TypeContext({})

    def value(expr: Expr) -> Expr:
        while expr in bindings:
            expr = bindings[expr]  # type: ignore[index]
        return expr

    def tensor(expr: Expr) -> TensorType | None:
        ty = expr.ty if getattr(expr, "ty", None) is not None else infer_type(expr, context)
        return ty if isinstance(ty, TensorType) else None

    result: Any = function.body
    ty = tensor(result.body)
    assert ty is not None
    assert ty.dims is not None
    facts = Facts().assume_le(ROW + 1, ty.dims[0]).assume_le(KEY + 1, ty.dims[1])
    return Positions(OPERATORS, value, tensor, facts).element(result.body, (ROW, KEY))


def at(element: Element, values: dict[str, int]) -> Any:
    """The value of a formula at a point."""
    if isinstance(element, Choice):
        return at(element.then if at(element.condition, values) else element.otherwise, values)
    if isinstance(element, All):
        return all(evaluate(dim, values) >= 0 for dim in element.dims)
    return element if isinstance(element, (bool, float)) else evaluate(element, values)


def agrees(body: str, *, known: bool = True) -> None:
    """Whether a formula, which is there if `known`, gives what the interpreter does, for some sizes."""
    function = written(body)
    found = formula(function)
    assert found is not None or not known
    for s, t in ((4, 4), (1, 3), (5, 2)) if found is not None else ():
        module = weft.IRModule({"main": function})
        got = weft.interpret(module)["main"](np.arange(s), np.arange(t))
        for row, key in product(*map(range, got.shape)):
            values = {"s": s, "t": t, str(ROW): row, str(KEY): key}
            assert got[row, key] == at(found, values), (body, row, key)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "result",
    [
        "R.less_equal(j, i)",
        "R.where(R.less(j, i), R.const(0.0, 'float32'), R.const(-3e38, 'float32'))",
        "R.tril(R.full((s, t), 1, 'float32'), 1)",
        "R.triu(R.full((s, t), float('-inf'), 'float32'), 1)",
        "R.multiply(R.astype(R.greater(j, i), 'float32'), R.const(-3e38, 'float32'))",
        "R.add(R.multiply(i, R.const(3, 'int64')), R.negative(j))",
        "R.take(R.arange(2, s + 9), R.add(i, R.full((s, t), 1, 'int64')), axis=0)",
        "R.permute_dims(R.add(R.reshape(R.arange(0, s), (1, s)), R.reshape(R.arange(0, t), (t, 1))), [1, 0])",
        "R.cumsum(R.astype(R.less(R.add(i, j), R.const(0, 'int64')), 'int64'), axis=1)",
        "R.cumsum(R.full((s, t), 2, 'int64'), axis=0, exclusive=True)",
        "R.logical_and(R.less_equal(j, i), R.greater(j, R.subtract(i, R.const(2, 'int64'))))",
        "R.logical_not(R.less(j, i))",
        "R.strided_slice(R.add(R.arange(0, 2 * t + 1), R.reshape(R.arange(0, s), (s, 1))), [1], [1], [2 * t + 1], [2])",
        "R.concat((R.broadcast_to(R.const(-1, 'int64'), (s, 1)), R.broadcast_to(R.arange(0, t), (s, t))), axis=1)",
        "R.broadcast_to(R.equal(i, i), (s, t))",
    ],
)
def test_formulas_are_what_is_computed(result: str) -> None:
    agrees(f"{HEAD}out = {result}")


@pytest.mark.parametrize(
    "result",
    [
        "R.less_equal(j, R.reshape(x, (s, 1)))",  # given at run time
        "R.not_equal(i, j)",
        "R.take(R.arange(0, s), j, axis=0)",  # may lie outside
        "R.logical_or(R.less(j, i), R.less(i, j))",
        "R.cumsum(R.broadcast_to(j, (s, t)), axis=1)",  # terms of a sum differ
        "R.add(R.multiply(i, R.const(1099511627776, 'int64')), j)",  # may wrap
    ],
)
def test_what_is_no_formula_has_none(result: str) -> None:
    if "take" in result:
        result = f"R.broadcast_to({result}, (s, t))"
    assert formula(written(f"{HEAD}out = {result}")) is None


def test_ranges_in_one_row_have_no_second_segment() -> None:
    """Packed sequences, as transformers finds them: where positions do not grow by one, a segment starts."""
    body = """p = R.broadcast_to(R.reshape(R.arange(0, t), (1, t)), (s, t))
first = R.subtract(R.strided_slice(p, [1], [0], [1]), R.const(1, 'int64'))
whole = R.concat((first, p), axis=1)
steps = R.subtract(R.strided_slice(whole, [1], [1], [t + 1]), R.strided_slice(whole, [1], [0], [t]))
out = R.cumsum(R.astype(R.not_equal(steps, R.const(1, 'int64')), "int64"), axis=1)"""
    assert formula(written(body)) == 0
    assert formula(written(body.replace("arange(0, t)", "arange(0, 2 * t, 2)"))) is None


PARTS = ("i", "j", "R.const(1, 'int64')", "R.const(-2, 'int64')", "R.arange(0, t)", "R.reshape(R.arange(0, s), (s, 1))")


@st.composite
def masks(draw: st.DrawFn) -> str:
    """Conditions on sums of positions, joined, and two numbers that they choose from."""
    part = st.sampled_from(PARTS)
    tests = list[str]()
    for _ in range(draw(st.integers(1, 3))):
        sums = [f"R.{draw(st.sampled_from(('add', 'subtract')))}({draw(part)}, {draw(part)})" for _ in range(2)]
        kind = draw(st.sampled_from(("less", "less_equal", "greater", "greater_equal", "equal")))
        tests.append(f"R.broadcast_to(R.{kind}({sums[0]}, {sums[1]}), (s, t))")
    test = tests[0]
    for other in tests[1:]:
        test = f"R.{draw(st.sampled_from(('logical_and', 'logical_or')))}({test}, {other})"
    return f"R.where({test}, R.const(0.0, 'float32'), R.const(-1.0, 'float32'))"


@settings(max_examples=25, deadline=None)
@given(masks())
def test_formulas_of_any_masks_are_what_is_computed(mask: str) -> None:
    agrees(f"{HEAD}out = {mask}", known=False)
