"""Rules are proved or tested before their first use, and wrong ones are refused with a counter-example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.transform.pattern import PatternMatchingRewriter

HEAD = "from weft.script import ir as I, relax as R, tir as T\n"
X = 'x: R.Tensor(("n", "m"), "float32")'
XY = X + ', y: R.Tensor(("n", "m"), "float32")'
SQUARES = 'x: R.Tensor(("n", "n"), "float32"), y: R.Tensor(("n", "n"), "float32")'
CHAIN = ", ".join(f'{name}: R.Tensor(("{a}", "{b}"), "float32")' for name, a, b in ("xab", "ybc", "zcd"))
INTS = 'x: R.Tensor(("n",), "int32"), y: R.Tensor(("n",), "int32")'
ONE = 'x: R.Tensor(("n",), "int32")'
IMAGE = 'x: R.Tensor(("n", "c", "h", "v"), "float32"), w: R.Tensor(("o", "c", "a", "b"), "float32")'


def rule(params: str, pattern: str, replacement: str, **conditions: Any) -> PatternMatchingRewriter:
    attrs = f"    I.module_attrs({conditions!r})\n" if conditions else ""
    module = weft.parse(
        f"{HEAD}@R.rewriter\nclass Tried:\n{attrs}    @R.function\n    def pattern({params}):\n"
        f"        return {pattern}\n\n"
        f"    @R.function\n    def replacement({params}):\n        return {replacement}\n"
    )
    assert isinstance(module, weft.IRModule)
    return PatternMatchingRewriter.from_module(module)


ROW = 'x: R.Tensor(("m",), "float32")'
TIMES = ROW + ', n: R.Prim("int64")'
SPREAD = "R.reshape(R.broadcast_to(R.expand_dims(x, 1), R.shape([m, n])), R.shape([m * n]))"
FIRST = "R.strided_slice(x, [0], [0], [n])"

PROVED = (
    (X, "R.add(x, x)", "R.multiply(x, R.const(2.0))", "real"),
    (CHAIN, "R.matmul(x, R.matmul(y, z))", "R.matmul(R.matmul(x, y), z)", "real"),
    (X, "R.permute_dims(R.permute_dims(x))", "x", "bit"),
    (SQUARES, "R.matmul(R.permute_dims(x), R.permute_dims(y))", "R.permute_dims(R.matmul(y, x))", "real"),
    (SQUARES, "R.matmul(x, R.add(y, x))", "R.add(R.matmul(x, y), R.matmul(x, x))", "real"),
    (X, "R.sum(R.sum(x, axis=1), axis=0)", "R.sum(x)", "real"),
    (XY, "R.add(R.exp(x), R.tanh(y))", "R.add(R.tanh(y), R.exp(x))", "bit"),
    (X, 'R.reshape(R.reshape(x, R.shape(["n * m"])), R.shape(["n", "m"]))', "x", "bit"),
    (XY, "R.subtract(R.add(x, y), y)", "x", "real"),
    (X, "R.mean(R.multiply(x, R.const(3.0)), axis=0)", "R.multiply(R.mean(x, axis=0), R.const(3.0))", "real"),
    (X, "R.sum(R.exp(R.permute_dims(x)), axis=0)", "R.sum(R.exp(x), axis=1)", "real"),
    (X, "R.divide(R.negative(x), R.const(4.0))", "R.multiply(x, R.const(-0.25))", "real"),
)

TESTED = (
    (X, "R.add(x, x)", "R.multiply(x, R.const(2.0))", "bit"),
    ("x: R.Tensor", "R.negative(R.negative(x))", "x", "bit"),
    (X, "R.nn.relu(R.nn.relu(x))", "R.nn.relu(x)", "bit"),
    (X, "R.concat((R.exp(x), R.exp(x)), axis=0)", "R.exp(R.concat((x, x), axis=0))", "bit"),
    (X, "R.maximum(x, R.negative(x))", "R.abs(x)", "real"),
    (TIMES, "R.repeat(x, n)", SPREAD, "bit"),
    (ROW + ', s: R.Shape(["n"])', "R.repeat(x, n, axis=0)", SPREAD, "bit"),
    (ROW, "R.repeat(x, m)", SPREAD.replace(" n]", " m]"), "bit"),
    (TIMES, "R.tile(x, (n, 2))", "R.reshape(R.tile(x, (2 * n,)), R.shape([n, m * 2]))", "bit"),
    ('s: R.Shape(["n", "m"])', "R.zeros(s, 'float32')", "R.full(R.shape([n, m]), R.const(0.0))", "bit"),
    ('n: R.Prim("int64")', "R.arange(0, n, 1)", "R.arange(n)", "bit"),
)

WRONG = (
    (TIMES, "R.repeat(x, n)", "R.tile(x, (n,))", "real"),
    (TIMES, FIRST.replace("x,", FIRST + ",", 1), FIRST, "real"),  # not for negative numbers
    (X, "R.add(x, x)", "R.multiply(x, R.const(3.0))", "real"),
    (X, "R.add(x, x)", "x", "real"),
    (XY, "R.subtract(x, y)", "R.subtract(y, x)", "real"),
    (XY, "R.subtract(R.add(x, y), y)", "x", "bit"),
    (CHAIN, "R.matmul(x, R.matmul(y, z))", "R.matmul(R.matmul(x, y), z)", "bit"),
    (SQUARES, "R.matmul(R.permute_dims(x), R.permute_dims(y))", "R.permute_dims(R.matmul(x, y))", "real"),
    (SQUARES, "R.matmul(x, y)", "R.matmul(y, x)", "real"),
    (SQUARES, "R.matmul(x, R.permute_dims(y))", "R.matmul(x, y)", "real"),
    (SQUARES, "R.multiply(x, y)", "R.matmul(x, y)", "real"),
    (X, "R.sqrt(R.multiply(x, x))", "x", "real"),
    (X, "R.exp(R.log(x))", "x", "real"),
    (X, "R.divide(x, x)", "R.ones_like(x)", "real"),
    (X, "R.nn.relu(R.negative(x))", "R.negative(R.nn.relu(x))", "real"),
    (X, "R.nn.relu(R.multiply(x, R.const(-2.0)))", "R.multiply(R.nn.relu(x), R.const(-2.0))", "real"),
    (XY, "R.nn.relu(R.add(x, y))", "R.add(R.nn.relu(x), R.nn.relu(y))", "real"),
    (X, "R.sum(x, axis=0, keepdims=True)", "R.sum(x, axis=1, keepdims=True)", "real"),
    (X, "R.mean(R.mean(x, axis=1), axis=0)", "R.sum(x)", "real"),
    (X, "R.sum(R.multiply(x, x))", "R.multiply(R.sum(x), R.sum(x))", "real"),
    (X, "R.max(R.negative(x))", "R.negative(R.max(x))", "real"),
    (X, "R.exp(R.sum(x, axis=0))", "R.sum(R.exp(x), axis=0)", "real"),
    (X, "R.nn.softmax(x, axis=0)", "R.nn.softmax(x, axis=1)", "real"),
    (X, "R.nn.softmax(R.multiply(x, R.const(2.0)), axis=1)", "R.nn.softmax(x, axis=1)", "real"),
    (X, "R.floor(R.add(x, R.const(0.5)))", "R.floor(x)", "real"),
    (X, "R.clip(R.clip(x, -1, 1), 0, 2)", "R.clip(x, -1, 2)", "real"),
    (X, "R.clip(x, -1, 1)", "R.clip(x, -1, 1.5)", "real"),
    (XY, "R.maximum(x, y)", "R.minimum(x, y)", "real"),
    (XY, "R.concat((x, y), axis=0)", "R.concat((y, x), axis=0)", "real"),
    (X, "R.concat((x, x), axis=0)", "R.repeat(x, 2, axis=0)", "real"),
    (X, "R.flip(x, axis=0)", "R.flip(x, axis=1)", "real"),
    (X, "R.cumsum(x, axis=0)", "R.cumsum(x, axis=1)", "real"),
    (X, "R.flip(R.cumsum(x, axis=0), axis=0)", "R.cumsum(R.flip(x, axis=0), axis=0)", "real"),
    (X, "R.where(R.greater(x, R.const(0.0)), x, R.const(0.0))", "R.abs(x)", "real"),
    (XY, "R.where(R.greater(x, y), x, y)", "R.where(R.less(x, y), x, y)", "real"),
    (X, 'R.astype(R.astype(x, "int32"), "float32")', "x", "real"),
    (X, 'R.astype(R.astype(x, "float16"), "float32")', "x", "bit"),
    (ONE, 'R.astype(R.astype(x, "int8"), "int32")', "x", "real"),
    (ONE, "R.floor_divide(R.multiply(x, R.const(2)), R.const(2))", "x", "real"),
    (INTS, "R.subtract(x, y)", "R.abs(R.subtract(x, y))", "real"),
    (INTS, "R.bitwise_and(x, y)", "R.bitwise_or(x, y)", "real"),
    (ONE, "R.left_shift(R.right_shift(x, R.const(1)), R.const(1))", "x", "real"),
    (X, "R.tanh(R.tanh(x))", "R.tanh(x)", "real"),
    (X, "R.add(x, R.const(0.0))", "x", "bit"),
    (X, "R.multiply(x, R.const(0.0))", "R.zeros_like(x)", "bit"),
    (X, "R.subtract(x, x)", "R.zeros_like(x)", "bit"),
    (X, "R.round(x)", "R.floor(x)", "real"),
    (X, "R.rsqrt(x)", "R.sqrt(x)", "real"),
    (X, "R.power(x, R.const(2.0))", "R.multiply(x, R.const(2.0))", "real"),
    (X, "R.expand_dims(R.sum(x, axis=0), axis=0)", "R.sum(x, axis=1, keepdims=True)", "real"),
    (X, "R.variance(x, axis=0)", "R.mean(R.multiply(x, x), axis=0)", "real"),
    (X, "R.argmax(x, axis=0)", "R.argmin(x, axis=0)", "real"),
    (X, "R.reshape(R.permute_dims(x), R.shape([-1]))", "R.reshape(x, R.shape([-1]))", "real"),
    (IMAGE, "R.nn.conv2d(x, w, padding=1)", "R.nn.conv2d(x, w, padding=0)", "real"),
    (IMAGE, "R.nn.relu(R.nn.conv2d(x, w))", "R.nn.conv2d(R.nn.relu(x), w)", "real"),
    (IMAGE, "R.nn.conv2d(x, R.multiply(w, R.const(2.0)))", "R.nn.conv2d(x, w)", "real"),
    (
        IMAGE,
        "R.nn.conv2d(R.add(x, R.const(1.0)), w, padding=1)",
        "R.add(R.nn.conv2d(x, w, padding=1), R.sum(w))",
        "real",
    ),
    (
        X,
        "R.expand_dims(R.strided_slice(x, [0], [0], [1]), axis=0)",
        "R.expand_dims(R.strided_slice(x, [0], [1], [2]), axis=0)",
        "real",
    ),
)


@pytest.mark.parametrize(("params", "pattern", "replacement", "exactness"), PROVED)
def test_a_rule_whose_sides_have_one_normal_form_is_proved(
    params: str, pattern: str, replacement: str, exactness: str
) -> None:
    found = rule(params, pattern, replacement, exactness=exactness).evidence()[0]
    assert found.kind == "proved"


@pytest.mark.parametrize(("params", "pattern", "replacement", "exactness"), TESTED)
def test_other_rules_are_tested_and_say_on_how_much(
    params: str, pattern: str, replacement: str, exactness: str
) -> None:
    found = rule(params, pattern, replacement, exactness=exactness).evidence()[0]
    assert found.kind == "tested"
    assert found.instances >= 10
    assert "sets of values" in str(found)


@pytest.mark.parametrize(("params", "pattern", "replacement", "exactness"), WRONG)
def test_a_wrong_rule_is_refused(params: str, pattern: str, replacement: str, exactness: str) -> None:
    wrong = rule(params, pattern, replacement, exactness=exactness)
    with pytest.raises(weft.PassError) as caught:
        wrong.evidence()
    assert caught.value.code in ("W555", "W556")


def test_the_counter_example_is_shown_where_the_replacement_stands() -> None:
    wrong = rule(X, "R.add(x, x)", "R.multiply(x, R.const(3.0))")
    main = weft.parse('@R.function\ndef main(a: R.Tensor((2, 2), "float32")):\n    return R.add(a, a)')
    with pytest.raises(weft.PassError, match=r"rule 'Tried' is wrong \(real\): for x: .*the pattern gives") as caught:
        wrong(main)
    assert caught.value.span is not None
    assert caught.value.span.line == 9
    assert "R.multiply(a, " in wrong.unchecked()(main).script()


def test_side_conditions_are_what_a_rule_needs_to_be_right() -> None:
    params = 'x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m", "n"), "float32")'
    sides = (params, "R.matmul(x, y)", "R.matmul(R.permute_dims(y), R.permute_dims(x))")
    with pytest.raises(weft.PassError, match="is wrong"):
        rule(*sides).evidence()
    with pytest.raises(weft.PassError, match="is wrong"):
        rule(*sides, where=["n == m"]).evidence()
    assert rule(*sides, where=["n == 1"]).evidence()[0].kind == "tested"


def test_constants_and_relations_are_conditions_of_use() -> None:
    moved = rule(
        'x: R.Tensor(("k", "n"), "float32"), y: R.Tensor(("n", "k"), "float32")',
        "R.permute_dims(R.matmul(x, y))",
        "R.matmul(R.permute_dims(y), R.permute_dims(x))",
        where=["k < n"],
        constant=["y"],
    )
    text = """
@R.function
def main(a: R.Tensor(({}, 6), "float32"), b: R.Tensor((6, {}), "float32")):
    return R.permute_dims(R.matmul(a, b))
"""
    narrow, wide = (weft.parse(text.format(size, size)) for size in (4, 8))
    bound = {"b": np.ones((6, 4), "float32")}
    module = weft.IRModule({"main": narrow})  # type: ignore[dict-item]
    assert moved(module) is module  # b is a parameter
    new = moved(weft.transform.BindParams("main", bound)(module))
    assert new.script().count("R.permute_dims") == 2
    assert moved(wide) is wide


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ({"exactness": "nearly"}, "exactness is one of"),
        ({"exactness": "approximate"}, "states a tolerance"),
        ({"constant": ["q"]}, "wants 'q' to be constant"),
        ({"where": ["n + m"]}, "is no relation"),
        ({"attributes": ["nn.conv2d(stride)"]}, "no attribute stride"),
        ({"where": "n < m"}, "is a list of texts"),
    ],
)
def test_conditions_that_say_nothing_are_refused(conditions: dict[str, Any], said: str) -> None:
    with pytest.raises(weft.WeftError, match=said) as caught:
        rule(X, "R.add(x, x)", "R.multiply(x, R.const(2.0))", **conditions)
    assert caught.value.code == "W550"


def test_an_approximate_rule_states_how_far_off_it_is() -> None:
    sides = (X, "R.add(x, R.const(0.001))", "x")
    assert rule(*sides, exactness="approximate", tolerance=0.01).evidence()[0].kind == "tested"
    with pytest.raises(weft.PassError, match="is wrong"):
        rule(*sides, exactness="approximate", tolerance=1e-5).evidence()


def test_defaults_of_attributes_count_in_a_pattern() -> None:
    twice = rule(X, "R.nn.softmax(x)", "R.exp(R.nn.log_softmax(x))")
    main = '@R.function\ndef main(a: R.Tensor((3, 3), "float32")):\n    return R.nn.softmax(a, axis={})'
    assert "R.exp" in twice(weft.parse(main.format(-1))).script()
    assert "R.exp" not in twice(weft.parse(main.format(0))).script()


def test_sizes_in_attributes_are_what_symbols_stand_for() -> None:
    spread = rule(TIMES, "R.repeat(x, n)", SPREAD, exactness="bit")
    text = """
@R.function
def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor(("k",), "float32"), c: R.Tensor((3,), "float32")):
    u = R.repeat(a, 2)
    v = R.repeat(b, k + 1)
    w = R.repeat(c, 4, axis=0)
    y = R.repeat(c, 5)
    return u, v, w, y
"""
    main = weft.parse(text)
    assert isinstance(main, weft.ir.Function)
    new = spread(main)
    assert new.script().count("R.repeat") == 2  # of two axes, and along a given one
    rng = np.random.default_rng(0)
    given = [rng.normal(size=shape).astype("float32") for shape in ((2, 3), (4,), (3,))]
    old, made = (weft.interpret(weft.IRModule({"main": each}))["main"](*given) for each in (main, new))
    for one, other in zip(old, made, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_relation_keeps_negative_numbers_out() -> None:
    twice = FIRST.replace("x,", FIRST + ",", 1)
    found = rule(TIMES, twice, FIRST, exactness="bit", where=["0 <= n"])
    assert [each.kind for each in found.evidence()] == ["tested"]
    text = '@R.function\ndef main(x: R.Tensor((5,), "float32")):\n    return ' + twice
    positive, negative = (weft.parse(text.replace("[n]", f"[{number}]")) for number in (2, -2))
    assert isinstance(positive, weft.ir.Function)
    assert isinstance(negative, weft.ir.Function)
    assert found(positive).script().count("strided_slice") == 1
    assert found(negative) is negative


def test_a_size_that_nothing_says_is_refused() -> None:
    with pytest.raises(weft.PassError, match="the pattern does not use n"):
        rule(TIMES, "R.exp(x)", "R.exp(x)")
    product = rule(ROW + ', s: R.Shape(["a", "b"])', "R.tile(x, (a * b,))", "R.tile(R.tile(x, (a,)), (b,))")
    with pytest.raises(weft.PassError, match="no instance"):
        product.evidence()  # 6 is 2 * 3 and 6 * 1
