"""AssignByCost: calls are placed where they and the copies between them cost least in sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft import PassError, Target
from weft.ir import Call, IRModule, Type
from weft.transform import AssignByCost, Normalize
from weft.transform.target.assign import assignment
from weft.transform.target.assign_by_cost import total_cost

PARTS = "a: llvm; b: llvm -mcpu=x86-64-v2; c: llvm -mcpu=x86-64"
LABELS = ("a", "b", "c")


@st.composite
def problems(draw: st.DrawFn) -> tuple[IRModule, dict[str, dict[str, float]], float]:
    """A random graph of additions, the price of each sum on each part, the price of a copy."""
    count = draw(st.integers(1, 9))
    lines, prices = [], {}
    for index in range(count):
        operands = [draw(st.integers(-1, index - 1)) for _ in range(2)]
        left, right = ("x" if item < 0 else f"v{item}" for item in operands)
        lines.append(f'        v{index} = R.ewise_fma({left}, {right}, R.const({index}, "float32"))')
        price = st.sampled_from([0.0, 1.0, 2.0, 3.5, 10.0, math.inf])
        prices[f"v{index}"] = {"a": draw(st.sampled_from([1.0, 4.0, 9.0])), "b": draw(price), "c": draw(price)}
    text = (
        '@R.function\ndef main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):\n    with R.dataflow():\n'
        + "\n".join(lines)
        + f"\n        y = R.exp(v{count - 1})\n        R.output(y)\n    return y\n"
    )
    function = weft.parse(text)
    assert not isinstance(function, IRModule)
    return Normalize()(IRModule({"main": function})), prices, draw(st.sampled_from([0.0, 0.5, 2.0, 20.0]))


def priced(prices: dict[str, dict[str, float]]) -> Any:
    """The price of a call, which its constant names, on a part."""
    label_of = {str(part): label for label, part in Target(PARTS).parts.items()}

    def cost(call: Call, part: Target) -> float:
        if len(call.args) < 3:
            return 1.0
        return prices[f"v{int(call.args[2].data)}"][label_of[str(part)]]  # type: ignore[union-attr]

    return cost


@settings(max_examples=60, deadline=None)
@given(problems())
def test_a_placement_by_cost_is_never_worse_than_one_part_alone(problem: Any) -> None:
    """G8: whatever calls and copies cost; what a part cannot do is not given to it."""
    module, prices, copy = problem
    cost = priced(prices)

    def transfer(ty: Type, source: Target, destination: Target) -> float:
        return copy

    placed = AssignByCost(PARTS, cost, transfer)(module)
    mixed = total_cost(placed, PARTS, cost, transfer)
    alone = [total_cost(module, PARTS, cost, transfer, everything=label) for label in LABELS]
    assert mixed <= min(alone)
    assert math.isfinite(mixed)
    again = AssignByCost(PARTS, cost, transfer)(module)
    assert assignment(again, PARTS) == assignment(placed, PARTS)
    if copy == 0.0:  # every call can be where it is cheapest
        assert mixed == pytest.approx(sum(min(price.values()) for price in prices.values()) + 1.0)


MODEL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 64), "float32"), w: R.Tensor((64, 64), "float32")) -> R.Tensor((64, 64), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.exp(a)
            c = R.matmul(b, w)
            R.output(c)
        return c
"""


@pytest.mark.parametrize(("copy", "expected"), [(0.1, "bab"), (3.0, "bbb"), (1000.0, "aaa")])
def test_copies_decide_whether_a_cheap_call_leaves_its_neighbours(copy: float, expected: str) -> None:
    """G8: products are cheap on one part, the rest on the other; dear copies keep things together."""
    target = "a: llvm; b: llvm -mcpu=x86-64-v2"
    second = Target(target).part("b")

    def cost(call: Call, part: Target) -> float:
        product = getattr(call.op, "name", "") == "matmul"
        prices = {(True, True): 1.0, (True, False): 20.0, (False, True): 4.0, (False, False): 1.0}
        return prices[product, part == second]

    module = weft.parse(MODEL)
    assert isinstance(module, IRModule)
    placed = AssignByCost(target, cost, lambda ty, source, destination: copy)(module)
    assert "".join(label for _, _, label in assignment(placed, target)) == expected
    x, w = np.random.default_rng(0).normal(scale=0.05, size=(2, 64, 64)).astype("float32")
    run = weft.compile(placed, target)["main"]
    np.testing.assert_allclose(run(x, w), weft.interpret(module)["main"](x, w), rtol=1e-4, atol=1e-5)


def test_labels_that_are_there_stay_and_what_no_part_can_do_is_an_error() -> None:
    """G8: the choice is for what nobody has chosen."""
    target = "a: llvm; b: llvm -mcpu=x86-64-v2"
    second = Target(target).part("b")
    module = weft.parse(MODEL.replace("R.exp(a)", 'R.exp(a, target="b")'))
    assert isinstance(module, IRModule)
    placed = AssignByCost(target, lambda call, part: 9.0 if part == second else 1.0)(module)
    assert "".join(label for _, _, label in assignment(placed, target)) == "aba"
    with pytest.raises(PassError, match="cannot be done by any part") as caught:
        AssignByCost(target, lambda call, part: math.inf)(module)
    assert caught.value.code == "W563"
    assert caught.value.span is not None
    assert caught.value.span.line == 7
