"""DecomposeOpsForTraining: normalisation in training as arithmetic."""

from __future__ import annotations

import pytest

import weft
from weft.ir import Call, Function, IRModule, Op
from weft.ir.structure.visit import walk
from weft.testing import assert_same_meaning
from weft.transform import CanonicalizeBindings, DecomposeOpsForTraining

MAIN = """
@R.function
def main(x: R.Tensor((2, 3, 4), "{dtype}"), g: R.Tensor((3,), "{dtype}"), w: R.Tensor({sizes}, "{dtype}")):
    with R.dataflow():
        {line}
        R.output(out)
    return out
"""


def program(line: str, dtype: str = "float32", sizes: str = "(3, 4)") -> IRModule:
    return IRModule({"main": weft.parse(MAIN.format(line=line, dtype=dtype, sizes=sizes))})  # type: ignore[dict-item]


def operators(module: IRModule) -> set[str]:
    main = module["main"]
    assert isinstance(main, Function)
    return {node.op.name for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", ["", ", scale=False", ", center=False", ", momentum=0.7, epsilon=0.5"])
def test_the_arithmetic_of_batch_norm_is_that_of_the_operator(dtype: str, options: str) -> None:
    before = program(f"out = R.nn.batch_norm(x, g, g, g, g, axis=1{options})", dtype)
    after = DecomposeOpsForTraining()(before)
    assert "nn.batch_norm" not in operators(after)
    assert_same_meaning(before, after, trials=2)
    assert_same_meaning(before, CanonicalizeBindings()(after), trials=1)
    assert DecomposeOpsForTraining()(after) is after


@pytest.mark.parametrize("axes", ["[-2, -1]", "[1, 2]", "-1", "[0]"])
def test_the_arithmetic_of_layer_norm_is_that_of_the_operator(axes: str) -> None:
    sizes = {"-1": "(4,)", "[0]": "(2,)"}.get(axes, "(3, 4)")
    before = program(f"out = R.nn.layer_norm(x, w, w, axes={axes}, epsilon=0.25)", sizes=sizes)
    after = DecomposeOpsForTraining()(before)
    assert "nn.layer_norm" not in operators(after)
    assert_same_meaning(before, after, trials=2)


def test_what_is_left_alone() -> None:
    for line, dtype in (
        ("out = R.nn.batch_norm(x, g, g, g, g, axis=1, training=False)", "float32"),
        ("out = R.nn.batch_norm(x, g, g, g, g, axis=1)", "float16"),  # sums would round otherwise
        ("out = R.nn.softmax(x, axis=1)", "float32"),
    ):
        module = program(line, dtype)
        assert DecomposeOpsForTraining()(module) is module
    other = program("out = R.nn.batch_norm(x, g, g, g, g, axis=1)")
    assert DecomposeOpsForTraining("another")(other) is other
