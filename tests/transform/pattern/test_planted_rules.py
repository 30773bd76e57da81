"""Rules written from the documentation alone: right ones are accepted, and planted wrong ones refused with an example.

The wrong ones have a wrong sign, axis or dtype, lack a condition, broadcast otherwise, or are off by one; some are
wrong only around the numbers and sizes that they name, or only for equal elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.pattern import planted_rules
from tests.transform.pattern.planted_rules import Row

import weft
from weft.transform.pattern import PatternMatchingRewriter

RIGHT: dict[str, Row] = {
    "DoubleNegation": ({"x": 'R.Tensor(dtype="float32")'}, "R.negative(R.negative(x))", "x", {"exactness": "bit"}),
    "ExpOfSum": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.multiply(R.exp(x), R.exp(y))",
        "R.exp(R.add(x, y))",
        {"exactness": "approximate", "tolerance": 0.001},
    ),
    "ReluTwice": ({"x": 'R.Tensor(dtype="float32")'}, "R.nn.relu(R.nn.relu(x))", "R.nn.relu(x)", {"exactness": "bit"}),
    "TransposeOfProduct": (
        {"a": "R.Tensor(('m', 'k'), \"float32\")", "b": "R.Tensor(('k', 'n'), \"float32\")"},
        "R.permute_dims(R.matmul(a, b), axes=[1, 0])",
        "R.matmul(R.permute_dims(b, axes=[1, 0]), R.permute_dims(a, axes=[1, 0]))",
        {},
    ),
    "FactorOut": (
        {
            "x": "R.Tensor(('n',), \"float32\")",
            "y": "R.Tensor(('n',), \"float32\")",
            "z": "R.Tensor(('n',), \"float32\")",
        },
        "R.add(R.multiply(x, y), R.multiply(x, z))",
        "R.multiply(x, R.add(y, z))",
        {},
    ),
    "SumOfConcat": (
        {"x": "R.Tensor(('n', 4), \"float32\")", "y": "R.Tensor(('m', 4), \"float32\")"},
        "R.sum(R.concat((x, y), axis=0), axis=[0])",
        "R.add(R.sum(x, axis=[0]), R.sum(y, axis=[0]))",
        {},
    ),
    "MaxOfNegative": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")"},
        "R.max(R.negative(x), axis=[1])",
        "R.negative(R.min(x, axis=[1]))",
        {"exactness": "bit"},
    ),
    "SumTwice": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")"},
        "R.sum(R.sum(x, axis=[1]), axis=[0])",
        "R.sum(x, axis=[0, 1])",
        {},
    ),
    "ReshapeOfReshape": (
        {"x": "R.Tensor(('n', 6), \"float32\")"},
        "R.reshape(R.reshape(x, (n * 6,)), (n, 2, 3))",
        "R.reshape(x, (n, 2, 3))",
        {"exactness": "bit"},
    ),
    "ScaleIntoProduct": (
        {
            "x": "R.Tensor(('n', 'k'), \"float32\")",
            "w": "R.Tensor(('k', 'm'), \"float32\")",
            "s": "R.Tensor(('m',), \"float32\")",
        },
        "R.multiply(R.matmul(x, w), s)",
        "R.matmul(x, R.multiply(w, s))",
        {},
    ),
}
WRONG: dict[str, Row] = {
    "SubSwapped": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.negative(R.subtract(x, y))",
        "R.subtract(x, y)",
        {},
    ),
    "SinEven": ({"x": 'R.Tensor(dtype="float32")'}, "R.sin(R.negative(x))", "R.sin(x)", {}),
    "CosOdd": ({"x": 'R.Tensor(dtype="float32")'}, "R.cos(R.negative(x))", "R.negative(R.cos(x))", {}),
    "AbsOfNegative": ({"x": 'R.Tensor(dtype="float32")'}, "R.abs(R.negative(x))", "R.negative(R.abs(x))", {}),
    "MaxToMin": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")"},
        "R.max(R.negative(x), axis=[1])",
        "R.negative(R.max(x, axis=[1]))",
        {},
    ),
    "SquareOfRoot": ({"x": 'R.Tensor(dtype="float32")'}, "R.sqrt(R.square(x))", "x", {}),
    "SumWrongAxis": (
        {"x": "R.Tensor(('n', 'n'), \"float32\")"},
        "R.sum(R.permute_dims(x), axis=[0])",
        "R.sum(x, axis=[0])",
        {},
    ),
    "SoftmaxAxis": (
        {"x": "R.Tensor(('n', 'n'), \"float32\")"},
        "R.nn.softmax(R.permute_dims(x), axis=0)",
        "R.permute_dims(R.nn.softmax(x, axis=0))",
        {},
    ),
    "ConcatAxis": (
        {"x": 'R.Tensor((2, 2), "float32")', "y": 'R.Tensor((2, 2), "float32")'},
        "R.permute_dims(R.concat((x, y), axis=0))",
        "R.concat((R.permute_dims(y), R.permute_dims(x)), axis=1)",
        {},
    ),
    "PermuteOrder": (
        {"x": "R.Tensor(('a', 'a', 'a'), \"float32\")"},
        "R.permute_dims(R.permute_dims(x, axes=[1, 2, 0]), axes=[1, 2, 0])",
        "R.permute_dims(x, axes=[1, 2, 0])",
        {},
    ),
    "CumsumAxis": (
        {"x": "R.Tensor(('n', 'n'), \"float32\")"},
        "R.cumsum(R.permute_dims(x), axis=1)",
        "R.permute_dims(R.cumsum(x, axis=1))",
        {},
    ),
    "ArgmaxAxis": (
        {"x": "R.Tensor(('n', 'n'), \"float32\")"},
        "R.argmax(R.permute_dims(x), axis=0)",
        "R.argmax(x, axis=0)",
        {},
    ),
    "SliceWhole": (
        {"x": "R.Tensor(('n', 4), \"float32\")"},
        "R.strided_slice(x, axes=[0], begin=[0], end=[3])",
        "R.strided_slice(x, axes=[0], begin=[0], end=[3], assume_inbound=True)",
        {},
    ),
    "DivideCancels": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.divide(R.multiply(x, y), y)",
        "x",
        {"exactness": "bit"},
    ),
    "LogOfExpBits": ({"x": 'R.Tensor(dtype="float32")'}, "R.log(R.exp(x))", "x", {"exactness": "bit"}),
    "ReluScaled": (
        {"x": "R.Tensor(('n',), \"float32\")", "s": "R.Tensor(('n',), \"float32\")"},
        "R.multiply(R.nn.relu(x), s)",
        "R.nn.relu(R.multiply(x, s))",
        {},
    ),
    "SqrtOfProduct": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.sqrt(R.multiply(x, y))",
        "R.multiply(R.sqrt(x), R.sqrt(y))",
        {},
    ),
    "MeanOfMeans": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")"},
        "R.mean(R.concat((R.mean(x, axis=[1]), R.mean(x, axis=[1])), axis=0), axis=[0])",
        "R.mean(R.sum(x, axis=[1]), axis=[0])",
        {},
    ),
    "BatchNormTraining": (
        {
            "x": "R.Tensor(('n', 3), \"float32\")",
            "g": 'R.Tensor((3,), "float32")',
            "b": 'R.Tensor((3,), "float32")',
            "m": 'R.Tensor((3,), "float32")',
            "v": 'R.Tensor((3,), "float32")',
        },
        "R.nn.batch_norm(x, g, b, m, v, axis=1, training=True)[0]",
        "R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)[0]",
        {},
    ),
    "PowHalf": ({"x": 'R.Tensor(dtype="float32")'}, "R.power(R.square(x), R.const(0.5))", "x", {}),
    "CastThroughInt8": (
        {"x": "R.Tensor(('n',), \"int32\")"},
        'R.astype(R.astype(x, "int8"), "int32")',
        "x",
        {"exactness": "bit"},
    ),
    "CastThroughHalf": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        'R.astype(R.astype(x, "float16"), "float32")',
        "x",
        {"exactness": "bit"},
    ),
    "CastSumLater": (
        {"x": "R.Tensor(('n',), \"int8\")"},
        'R.sum(R.astype(x, "int32"), axis=[0])',
        'R.astype(R.sum(x, axis=[0]), "int32")',
        {},
    ),
    "IntDivide": (
        {"x": "R.Tensor(('n',), \"int32\")", "y": "R.Tensor(('n',), \"int32\")"},
        "R.floor_divide(R.negative(x), y)",
        "R.negative(R.floor_divide(x, y))",
        {},
    ),
    "AbsInt": ({"x": "R.Tensor(('n',), \"int8\")"}, "R.abs(R.negative(x))", "R.maximum(x, R.const(0, 'int8'))", {}),
    "ModSign": (
        {"x": "R.Tensor(('n',), \"int32\")"},
        "R.floor_mod(x, R.const(3, 'int32'))",
        "R.mod(x, R.const(3, 'int32'))",
        {},
    ),
    "ScaleRows": (
        {
            "x": "R.Tensor(('n', 'k'), \"float32\")",
            "w": "R.Tensor(('k', 'n'), \"float32\")",
            "s": "R.Tensor(('n',), \"float32\")",
        },
        "R.multiply(R.matmul(x, w), s)",
        "R.matmul(R.multiply(x, R.expand_dims(s, axis=1)), w)",
        {},
    ),
    "SumBroadcast": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")", "y": "R.Tensor(('m',), \"float32\")"},
        "R.sum(R.add(x, y), axis=[0])",
        "R.add(R.sum(x, axis=[0]), y)",
        {},
    ),
    "MaxBroadcast": (
        {"x": "R.Tensor(('n', 'n'), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.add(x, R.expand_dims(y, axis=0))",
        "R.add(x, R.expand_dims(y, axis=1))",
        {},
    ),
    "OuterOrder": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.outer(x, y)",
        "R.outer(y, x)",
        {},
    ),
    "MatmulCommutes": (
        {"a": "R.Tensor(('n', 'n'), \"float32\")", "b": "R.Tensor(('n', 'n'), \"float32\")"},
        "R.matmul(a, b)",
        "R.matmul(b, a)",
        {},
    ),
    "SliceOffByOne": (
        {"x": "R.Tensor(('n', 5), \"float32\")"},
        "R.strided_slice(R.strided_slice(x, axes=[1], begin=[1], end=[5]), axes=[1], begin=[1], end=[3])",
        "R.strided_slice(x, axes=[1], begin=[1], end=[3])",
        {},
    ),
    "PadThenSlice": (
        {"x": "R.Tensor(('n', 4), \"float32\")"},
        "R.strided_slice(R.nn.pad(x, [0, 0, 1, 1]), axes=[1], begin=[1], end=[5])",
        "R.strided_slice(R.nn.pad(x, [0, 0, 1, 1]), axes=[1], begin=[0], end=[4])",
        {},
    ),
    "FlipTwiceOff": (
        {"x": "R.Tensor(('n', 4), \"float32\")"},
        "R.flip(R.roll(x, shift=1, axis=1), axis=1)",
        "R.roll(R.flip(x, axis=1), shift=1, axis=1)",
        {},
    ),
    "TrilPlusTriu": ({"x": "R.Tensor(('n', 'n'), \"float32\")"}, "R.add(R.tril(x, 0), R.triu(x, 0))", "x", {}),
    "CumsumExclusive": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        "R.cumsum(x, axis=0)",
        "R.cumsum(x, axis=0, exclusive=True)",
        {},
    ),
    "RepeatTile": ({"x": "R.Tensor(('n',), \"float32\")"}, "R.repeat(x, 2, axis=0)", "R.tile(x, 2)", {}),
    "PoolStride": (
        {"x": "R.Tensor((1, 1, 'h', 6), \"float32\")"},
        "R.nn.max_pool2d(R.nn.max_pool2d(x, pool_size=[2, 2]), pool_size=[2, 2])",
        "R.nn.max_pool2d(x, pool_size=[4, 4])",
        {},
    ),
    "ClipOrder": (
        {"x": 'R.Tensor(dtype="float32")'},
        "R.clip(R.clip(x, 0.0, 2.0), 1.0, 3.0)",
        "R.clip(x, 0.0, 2.0)",
        {},
    ),
    "ReshapeTranspose": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")"},
        "R.reshape(x, (m, n))",
        "R.permute_dims(x, axes=[1, 0])",
        {},
    ),
    "VarianceShift": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        "R.variance(R.multiply(x, R.const(2.0)), axis=[0])",
        "R.multiply(R.variance(x, axis=[0]), R.const(2.0))",
        {},
    ),
    "WhereSwapped": (
        {"c": 'R.Tensor(("n",), "bool")', "x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.where(R.logical_not(c), x, y)",
        "R.where(c, x, y)",
        {},
    ),
    "LeqNotLess": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.logical_not(R.less(x, y))",
        "R.greater(x, y)",
        {},
    ),
    "LeqNotLessNan": (
        {"x": "R.Tensor(('n',), \"float32\")", "y": "R.Tensor(('n',), \"float32\")"},
        "R.logical_not(R.less(x, y))",
        "R.greater_equal(x, y)",
        {"exactness": "bit"},
    ),
    "ZeroTimes": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        "R.multiply(x, R.const(0.0))",
        "R.zeros_like(x)",
        {"exactness": "bit"},
    ),
    "PlusZeroBits": ({"x": "R.Tensor(('n',), \"float32\")"}, "R.add(x, R.const(0.0))", "x", {"exactness": "bit"}),
    "SoftmaxShiftAxis": (
        {"x": "R.Tensor(('n', 'm'), \"float32\")", "b": "R.Tensor(('n', 1), \"float32\")"},
        "R.nn.softmax(R.add(x, b), axis=0)",
        "R.nn.softmax(x, axis=0)",
        {},
    ),
    "TakeNegative": (
        {"x": 'R.Tensor((4,), "float32")', "i": "R.Tensor(('n',), \"int64\")"},
        "R.take(x, i, axis=0, mode='wrap')",
        "R.take(x, i, axis=0, mode='clip')",
        {},
    ),
    "LargeOnly": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        "R.tanh(R.multiply(x, R.const(1.0)))",
        "R.clip(x, -1.0, 1.0)",
        {},
    ),
    "Exp2": ({"x": 'R.Tensor(dtype="float32")'}, "R.exp(x)", "R.exp2(x)", {}),
    "GeluTanh": ({"x": 'R.Tensor(dtype="float32")'}, "R.nn.gelu(x)", "R.nn.gelu_tanh(x)", {}),
    "GeluSilu": (
        {"x": 'R.Tensor(dtype="float32")'},
        "R.nn.gelu(x)",
        "R.nn.silu(x)",
        {"exactness": "approximate", "tolerance": 0.001},
    ),
    "Relu6": ({"x": 'R.Tensor(dtype="float32")'}, "R.nn.relu(x)", "R.nn.relu6(x)", {}),
    "BigThreshold": ({"x": 'R.Tensor(dtype="float32")'}, "R.minimum(x, R.const(1000.0))", "x", {}),
    "IntBigThreshold": ({"x": "R.Tensor(('n',), \"int32\")"}, "R.minimum(x, R.const(100000, 'int32'))", "x", {}),
    "OnlyLargeSizes": (
        {"x": "R.Tensor(('n',), \"float32\")"},
        "R.strided_slice(x, axes=[0], begin=[0], end=[9])",
        "R.strided_slice(x, axes=[0], begin=[0], end=[8])",
        {},
    ),
    "TopkTies": (
        {"x": 'R.Tensor((6,), "float32")'},
        "R.argmax(x, axis=0)",
        "R.subtract(R.const(5, 'int64'), R.argmax(R.flip(x, axis=0), axis=0))",
        {},
    ),
}
TEXT = """
from weft.script import ir as I, relax as R
@R.rewriter
class {name}:
    I.module_attrs({attrs!r})
    @R.function
    def pattern({params}):
        return {pattern}

    @R.function
    def replacement({params}):
        return {replacement}
"""

RIGHT |= planted_rules.RIGHT
WRONG |= planted_rules.WRONG


def rule(name: str, row: Row) -> PatternMatchingRewriter:
    params, pattern, replacement, attrs = row
    shown = ", ".join(f"{key}: {value}" for key, value in params.items())
    made: Any = weft.parse(
        TEXT.format(
            name=name, attrs=attrs or {"exactness": "real"}, params=shown, pattern=pattern, replacement=replacement
        )
    )
    return made if isinstance(made, PatternMatchingRewriter) else PatternMatchingRewriter.from_module(made)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rule_is_proved_or_tested(name: str) -> None:
    (found,) = rule(name, RIGHT[name]).evidence()
    assert found.kind in ("proved", "tested")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(weft.PassError, match=f"rule '{name}' is wrong") as caught:
        rule(name, WRONG[name]).evidence()
    assert caught.value.code == "W555"


def test_what_lies_far_outside_is_wrapped_at_once() -> None:
    """NumPy's own wrapping takes as many steps as the index has multiples of the size."""
    x, i = np.arange(4, dtype="float32"), np.array([2**62, -(2**62) - 1, 5], "int64")
    text = '@R.function\ndef main(x: R.Tensor((4,), "float32"), i: R.Tensor((3,), "int64")):\n'
    module = weft.IRModule({"main": weft.parse(text + '    return R.take(x, i, axis=0, mode="wrap")')})  # type: ignore[dict-item]
    for run in (weft.interpret(module), weft.compile(module)):
        assert run["main"](x, i).tolist() == [0.0, 3.0, 1.0]
