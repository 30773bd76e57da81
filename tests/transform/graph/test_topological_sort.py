"""TopologicalSort: orders of dataflow blocks."""

from __future__ import annotations

import pytest

import weft
from weft.ir import Function, IRModule
from weft.testing import assert_round_trip, assert_same_meaning, random_module
from weft.transform import TopologicalSort

MIXED = """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(y)
        c = R.negative(a)
        d = R.negative(b)
        e = R.add(c, d)
        out = R.multiply(e, a)
        R.output(out)
    return out
"""


def names(module: IRModule) -> str:
    main = module["main"]
    assert isinstance(main, Function)
    return "".join(binding.var.name[0] for block in main.body.blocks for binding in block.bindings)


def program(text: str) -> IRModule:
    return IRModule({"main": weft.parse(text)})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("order", "direction", "expected"),
    [
        ("depth-first", "from-inputs", "acbdeo"),
        ("breadth-first", "from-inputs", "abcdeo"),
        ("depth-first", "from-outputs", "acbdeo"),
        ("breadth-first", "from-outputs", "abcdeo"),
    ],
)
def test_the_order_of_bindings(order: str, direction: str, expected: str) -> None:
    item = TopologicalSort(order, direction)
    once = item(program(MIXED))
    assert names(once) == expected
    assert item(once) is once


def test_little_memory_comes_from_using_large_values_at_once() -> None:
    text = """
@R.function
def main(x: R.Tensor((64,), "float32")):
    with R.dataflow():
        a = R.outer(x, x)
        b = R.outer(x, x)
        c = R.sum(a)
        d = R.sum(b)
        out = R.add(c, d)
        R.output(out)
    return out
"""
    assert names(TopologicalSort("memory")(program(text))) == "acbdo"
    small = program(text.replace("R.outer(x, x)", "R.sum(x)"))
    assert TopologicalSort("memory")(small) is small  # nothing is gained


def test_what_names_a_size_stands_before_what_uses_it() -> None:
    text = """
@R.function
def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor((3,), "float32")):
    with R.dataflow():
        a = R.exp(y)
        b = R.match_cast(x, R.Tensor(("m",), "float32"))
        c = R.zeros(R.shape([m]), "float32")
        out = R.add(R.sum(c), R.sum(R.add(R.sum(b), R.sum(a))))
        R.output(out)
    return out
"""
    for order in ("depth-first", "breadth-first", "memory"):
        for direction in ("from-inputs", "from-outputs"):
            after = TopologicalSort(order, direction)(program(text))
            assert weft.verify(after) == []
            assert_same_meaning(program(text), after, trials=2)


@pytest.mark.parametrize("order", ["depth-first", "breadth-first", "memory"])
@pytest.mark.parametrize("direction", ["from-inputs", "from-outputs"])
def test_random_modules_mean_the_same_in_every_order(order: str, direction: str) -> None:
    for seed in range(4):
        before = random_module(seed)
        after = TopologicalSort(order, direction)(before)
        assert weft.verify(after) == []
        assert_round_trip(after)
        assert_same_meaning(before, after, trials=4)


def test_orders_that_there_are_not_are_refused() -> None:
    with pytest.raises(weft.PassError, match="order is one of depth-first, breadth-first, memory, got 'any'"):
        TopologicalSort("any")
    with pytest.raises(weft.PassError, match="direction is one of from-inputs, from-outputs, got 'up'"):
        TopologicalSort(direction="up")
