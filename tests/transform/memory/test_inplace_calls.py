"""DataflowUseInplaceCalls: operands that nothing needs any more are written over, and no others."""

from __future__ import annotations

import pytest

import weft
from weft.ir import Call, Function, IRModule, Op
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, assert_same_meaning, random_module
from weft.transform import DataflowUseInplaceCalls, LegalizeOps, LowerToMemory

MAIN = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
    with R.dataflow():
        {0}
        R.output(out)
    return out
"""


def program(lines: str) -> IRModule:
    made = weft.parse(MAIN.format(lines.replace("\n", "\n        ")))
    return IRModule({"main": made})  # type: ignore[dict-item]


def in_place(module: IRModule) -> int:
    main = module["main"]
    assert isinstance(main, Function)
    calls = [node for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]
    return sum(node.op.name == "call_tir_inplace" for node in calls)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("a = R.exp(x)\nout = R.add(a, y)", 1),
        ("a = R.exp(x)\nb = R.nn.relu(a)\nout = R.negative(b)", 2),
        ("out = R.exp(x)", 0),  # a parameter
        ("a = R.exp(x)\nb = R.negative(a)\nout = R.add(a, b)", 1),  # only at the last use
        ("a = R.exp(x)\nout = R.add(a, a)", 0),
        ("a = R.exp(x)\nb = R.reshape(a, (4, n))\nc = R.negative(a)\nout = R.add(R.sum(b), c)", 1),  # b may view a
        ("a = R.exp(y)\nout = R.add(x, a)", 0),  # another size
        ("a = R.reshape(x, (n, 4))\nout = R.exp(a)", 0),  # a may view a parameter
        ("a = R.exp(x)\nout = R.greater(a, y)", 0),  # another dtype
        ("a = R.exp(x)\nout = R.nn.softmax(a, axis=1)", 0),
    ],
)
def test_what_is_computed_in_place(lines: str, count: int) -> None:
    before = program(lines)
    after = DataflowUseInplaceCalls()(before)
    assert in_place(after) == count
    assert weft.verify(after) == []
    assert_round_trip(after)
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, weft.compile(after), name="main", trials=2)


@pytest.mark.parametrize("seed", range(8))
def test_random_modules_mean_the_same(seed: int) -> None:
    before = random_module(seed)
    after = DataflowUseInplaceCalls()(before)
    assert_same_meaning(before, after, trials=4)
    assert_same_meaning(before, LowerToMemory()(LegalizeOps()(after)), trials=4)
