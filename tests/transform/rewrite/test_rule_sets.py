"""The rule sets that weft comes with, sets of others, their cost and what they say they did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import transform
from weft.ir import Call, Function, Op
from weft.ir.structure.visit import walk
from weft.testing import assert_same_meaning, random_module
from weft.transform import PassContext, RuleSet, register_rules, remove_rules, rule_set, rule_sets
from weft.transform.pattern.evidence.check import evidence
from weft.transform.rewrite.rule_set import RuleText

RULES = [(found.name, place) for found in rule_sets() for place in range(len(found.items))]


def module(body: str, params: str) -> weft.IRModule:
    lines = "\n".join(f"        {line.strip()}" for line in body.strip().splitlines())
    made = weft.parse(
        f"@R.function\ndef main({params}):\n    with R.dataflow():\n{lines}\n        R.output(out)\n    return out"
    )
    return weft.IRModule({"main": made})  # type: ignore[dict-item]


def operators(program: weft.IRModule) -> list[str]:
    main = program["main"]
    assert isinstance(main, Function)
    return [node.op.name for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]


@pytest.mark.parametrize(("name", "place"), RULES)
def test_every_rule_that_weft_comes_with_is_proved_or_tested(name: str, place: int) -> None:
    item: Any = rule_set(name).items[place]
    made = item.rule if isinstance(item, RuleText) else item
    assert evidence(made).kind in ("proved", "tested")
    if isinstance(item, RuleText):
        assert made.sides is not None
        found = {node.name for node in walk(made.sides.pattern) if isinstance(node, Op)}
        assert found == set(item.needs)


X = 'x: R.Tensor(("n", 3, 4), "float32")'
NORM = """
y = R.nn.conv2d(x, w, strides=2, padding=1)
z = R.nn.batch_norm(y, g, b, m, v, axis=1, training=False)
out = R.nn.relu(z[0])
"""
PAIR = 'x: R.Tensor(("n", 4), "float32"), y: R.Tensor((5, 4), "float32")'
TAKEN = 'x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 6), "float32"), i: R.Tensor((3,), "int64")'
SUM = 'x: R.Tensor(("n", 4), "float32"), a: R.Tensor((4, 5), "float32"), b: R.Tensor((4, 5), "float32")'
IMAGE = 'x: R.Tensor(("n", 3, 8, 8), "float32"), w: R.Tensor((5, 3, 3, 3), "float32")'
STATISTICS = ", ".join(f'{name}: R.Tensor((5,), "float32")' for name in "gbmv")
CANCEL, RESHAPE = transform.CancelTransposes(), transform.RemoveRedundantReshape()
BEFORE_AFTER = (
    (CANCEL, "a = R.permute_dims(x, axes=[1, 0, 2])\nout = R.permute_dims(a, axes=[2, 1, 0])", X, ["permute_dims"]),
    (CANCEL, "a = R.permute_dims(x)\nb = R.permute_dims(a)\nout = R.exp(b)", X, ["exp"]),
    (RESHAPE, "a = R.expand_dims(x, axis=1)\nb = R.flatten(a)\nout = R.reshape(b, (n, 12))", X, ["reshape"]),
    (RESHAPE, "a = R.reshape(x, (n, 12))\nb = R.reshape(a, (n, 3, 4))\nout = R.exp(b)", X, ["exp"]),
    (transform.RemoveRedundantCasts(), 'a = R.astype(x, "float64")\nout = R.astype(a, "float16")', X, ["astype"]),
    (transform.RemoveRedundantCasts(), 'a = R.astype(x, "float16")\nout = R.astype(a, "float32")', X, ["astype"] * 2),
    (
        transform.SplitToSlices(),
        "s = R.split(x, 2, axis=2)\nout = R.add(s[1], s[0])",
        X,
        ["strided_slice", "strided_slice", "add"],
    ),
    (transform.SplitToSlices(), "s = R.split(x, 2)\nout = R.exp(s[1])", X, ["split", "exp"]),  # a symbol is split
    (
        transform.UnflattenMatmul(),
        "a = R.reshape(x, (-1, 4))\nb = R.matmul(a, w)\nd = R.add(c, b)\nout = R.reshape(d, (n, 3, 5))",
        f'{X}, w: R.Tensor((4, 5), "float32"), c: R.Tensor((5,), "float32")',
        ["reshape", "matmul", "add"],
    ),
    (
        transform.UnflattenMatmul(),
        "a = R.reshape(x, (-1, 4))\nb = R.matmul(a, w)\nc = R.reshape(b, (n, 3, 5))\nout = R.add(c, R.sum(b))",
        f'{X}, w: R.Tensor((4, 5), "float32")',
        ["reshape", "matmul", "reshape", "sum", "add"],  # the product is used twice
    ),
    (
        transform.GroupAttentionHeads(),
        "a = R.broadcast_to(R.expand_dims(k, axis=2), (x.shape[0], 2, 3, 5, 4))\n"
        "b = R.reshape(a, (x.shape[0], 6, 5, 4))\nc = R.permute_dims(b, axes=[0, 2, 1, 3])\n"
        "out = R.nn.attention(x, c, c)",
        'x: R.Tensor(("n", 3, 6, 4), "float32"), k: R.Tensor(("n", 2, 5, 4), "float32")',
        ["expand_dims", "reshape", "permute_dims", "reshape", "permute_dims", "nn.attention"],
    ),
    (transform.FuseTransposeMatmul(), "t = R.permute_dims(y)\nout = R.matmul(x, t)", PAIR, ["linear"]),
    (transform.ExpandMatmulOfSum(), "s = R.add(a, b)\nout = R.matmul(x, s)", SUM, ["matmul", "matmul", "add"]),
    (
        transform.ExpandMatmulOfSum(),
        "s = R.add(a, b)\nout = R.matmul(x, s)",
        'x: R.Tensor((4,), "float32"), a: R.Tensor((4, 3), "float32"), b: R.Tensor((4, 3), "float32")',
        ["matmul", "matmul", "add"],
    ),
    (transform.ReorderTakeAfterMatmul(), "t = R.take(w, i, axis=1)\nout = R.matmul(x, t)", TAKEN, ["matmul", "take"]),
    (
        transform.ReorderPermuteDimsAfterConcat(),
        "a = R.permute_dims(x)\nb = R.permute_dims(y)\nout = R.concat((a, b), axis=1)",
        PAIR,
        ["concat", "permute_dims"],
    ),
    (transform.FoldBatchnormToConv2D(), NORM, f"{IMAGE}, {STATISTICS}", ["nn.conv2d", "add", "nn.relu"]),
    (transform.DecomposeOpsForInference(), NORM, f"{IMAGE}, {STATISTICS}", ["nn.conv2d", "multiply", "add", "nn.relu"]),
)


@pytest.mark.parametrize(("item", "body", "params", "left"), BEFORE_AFTER)
def test_what_a_pass_leaves(item: transform.Pass, body: str, params: str, left: list[str]) -> None:
    body = body.replace("(n, ", "(T.int64_n, ").replace("T.int64_n", "x.shape[0]")
    before = module(body, params)
    rng = np.random.default_rng(0)
    bound = {name: rng.uniform(0.5, 1.5, 5).astype("float32") for name in "gbmv" if f"{name}: R.Tensor((5,)" in params}
    if bound:
        bound["w"] = rng.standard_normal((5, 3, 3, 3), "float32")
        before = transform.BindParams("main", bound)(before)
    after = item(before)
    assert operators(after) == left
    assert_same_meaning(before, after)
    assert_same_meaning(before, weft.compile(before), name="main")


def test_products_are_multiplied_in_the_order_that_costs_least() -> None:
    params = 'x: R.Tensor(("n", 64), "float32"), a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 64), "float32")'
    before = module("ab = R.matmul(a, b)\nout = R.matmul(x, ab)", params)
    after = transform.AdjustMatmulOrder()(before)
    assert "R.matmul(x, a)" in after.script()
    assert_same_meaning(before, after)
    shared = module("ab = R.matmul(a, b)\ny = R.matmul(x, ab)\nout = R.add(R.sum(ab), R.sum(y))", params)
    assert operators(transform.AdjustMatmulOrder()(shared)) == operators(shared)  # `ab` is computed anyway
    any_size = params.replace("64", '"k"').replace("(2,", '("r",').replace(" 2)", ' "r")')
    unknown = module("ab = R.matmul(a, b)\nout = R.matmul(x, ab)", any_size)
    assert transform.AdjustMatmulOrder()(unknown) is unknown  # sizes decide, and are not known


@pytest.mark.parametrize(
    ("x", "y", "written", "first"),
    [
        ('R.Tensor((64,), "float32")', 'R.Tensor((2, 64), "float32")', "R.matmul(x, R.matmul(a, y))", "R.matmul(x, a)"),
        ('R.Tensor((9, 2), "float32")', 'R.Tensor((2,), "float32")', "R.matmul(R.matmul(x, b), y)", "R.matmul(b, y)"),
        ('R.Tensor((64,), "float32")', 'R.Tensor((2,), "float32")', "R.matmul(R.matmul(x, a), y)", ""),
        (
            'R.Tensor((2, 3, 64), "float32")',
            'R.Tensor((2,), "float32")',
            "R.matmul(R.matmul(x, a), y)",
            "R.matmul(a, y)",
        ),
    ],
)
def test_vectors_stand_at_both_ends_of_a_product(x: str, y: str, written: str, first: str) -> None:
    """A row before all matrices, and a column behind them: a result that is a vector is no factor in the middle."""
    params = f'x: {x}, y: {y}, a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 2), "float32")'
    before = module(f"out = {written}", params)
    after = transform.AdjustMatmulOrder()(before)
    assert first in after.script()
    assert (after is before) == (not first)
    assert_same_meaning(before, after)
    assert_same_meaning(before, weft.compile(before), name="main")


def test_a_vector_that_a_product_gives_is_no_matrix() -> None:
    params = 'x: R.Tensor((8, 2), "float32"), v: R.Tensor((2,), "float32"), a: R.Tensor((8, 9), "float32")'
    before = module("out = R.matmul(R.matmul(x, v), a)", params)
    assert transform.AdjustMatmulOrder()(before) is before
    assert_same_meaning(before, weft.compile(before), name="main")


def test_a_low_rank_update_of_a_weight_is_not_multiplied_out() -> None:
    params = 'x: R.Tensor(("n", 64), "float32"), a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 64), "float32")'
    before = module("ab = R.matmul(a, b)\nt = R.permute_dims(ab, axes=[1, 0])\nout = R.matmul(x, t)", params)
    after = transform.AdjustMatmulOrder()(before)
    assert "R.matmul(x, " in after.script().split("lv2")[1] or "permute_dims(b" in after.script()
    assert_same_meaning(before, after)


def test_each_rewriting_is_a_decision_that_says_why() -> None:
    params = 'x: R.Tensor((1, 64), "float32"), a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 64), "float32")'
    program = module("ab = R.matmul(a, b)\nout = R.matmul(x, ab)", params)
    said = weft.compile(program).explain()
    assert "out: rewrite: rule=AdjustMatmulOrder exactness=real (costs " in said
    assert "instead of" in said


def test_rules_of_real_arithmetic_are_applied_from_level_two_on() -> None:
    params = 'x: R.Tensor((1, 64), "float32"), a: R.Tensor((64, 2), "float32"), b: R.Tensor((2, 64), "float32")'
    program = module("ab = R.matmul(a, b)\nout = R.matmul(x, ab)", params)
    assert "AdjustMatmulOrder" not in weft.compile(program, opt=1).explain()
    with PassContext(config={"apply-rules.exactness": "bit"}):
        assert "AdjustMatmulOrder" in weft.compile(program).explain()  # an option that a pipeline states stays
    with PassContext(disabled=["apply-rules"]):
        assert "AdjustMatmulOrder" not in weft.compile(program).explain()


TWICE = """
@R.rewriter
class Twice:
    I.module_attrs({"exactness": "bit"})

    @R.function
    def pattern(x: R.Tensor(dtype="float32")):
        return R.add(x, x)

    @R.function
    def replacement(x: R.Tensor(dtype="float32")):
        return R.multiply(x, R.const(2.0))
"""


def test_a_set_of_others_is_checked_before_its_first_use() -> None:
    program = module("out = R.add(x, x)", X)
    register_rules(RuleSet("test-twice", "sums as products", [RuleText(("add",), TWICE)]))
    register_rules(RuleSet("test-wrong", "wrong", [RuleText(("add",), TWICE.replace("2.0", "3.0"))]))
    try:
        new = transform.ApplyRules(sets=("test-twice",))(program)
        assert operators(new) == ["multiply"]
        with pytest.raises(weft.PassError, match="rule 'Twice' is wrong") as caught:
            transform.ApplyRules(sets=("test-wrong",))(program)
        assert caught.value.code == "W555"
        with pytest.raises(weft.PassError, match="there is a rule set 'test-twice' already"):
            register_rules(RuleSet("test-twice", "another", []))
    finally:
        remove_rules("test-twice")
        remove_rules("test-wrong")
    with pytest.raises(weft.PassError, match="there is no rule set 'test-twice'") as caught:
        transform.ApplyRules(sets=("test-twice",))(program)
    assert caught.value.code == "W557"
    with pytest.raises(weft.PassError, match="holds rules, got an int"):
        RuleSet("other", "", [3])  # type: ignore[list-item]


def test_rules_that_turn_in_a_circle_are_told_of() -> None:
    back = TWICE.replace("R.add(x, x)", "R.sum_").replace("R.multiply(x, R.const(2.0))", "R.add(x, x)")
    back = back.replace("R.sum_", "R.multiply(x, R.const(2.0))").replace("Twice", "Back")
    register_rules(RuleSet("test-circle", "there and back", [RuleText(("add",), TWICE), RuleText(("multiply",), back)]))
    try:
        with pytest.raises(weft.PassError, match="again in 'main' after 100 rounds") as caught:
            transform.ApplyRules(sets=("test-circle",))(module("out = R.add(x, x)", X))
        assert caught.value.code == "W554"
    finally:
        remove_rules("test-circle")


@pytest.mark.parametrize("seed", range(12))
def test_random_modules_mean_the_same_after_all_rules(seed: int) -> None:
    before = random_module(seed)
    with PassContext(config={"check.level": 1}):
        after = transform.ApplyRules("real", tuple(found.name for found in rule_sets()))(before)
    assert_same_meaning(before, after, trials=4)


def test_calls_for_a_part_of_a_target_stay_as_they_are() -> None:
    program = module("a = R.permute_dims(x)\nout = R.permute_dims(a)", X)
    labelled = weft.ir.rewrite(
        program,
        lambda node: weft.ir.replace(node, attrs=node.attrs.set("target", "npu")) if isinstance(node, Call) else None,
    )
    assert transform.CancelTransposes()(labelled) is labelled


@pytest.mark.parametrize("count", [5, 150])
def test_offsets_one_after_another_are_added_once(count: int) -> None:
    """Sums of constants alone stay as they are: to change them again and again has no end."""
    offsets = "\n".join(f'y{i + 1} = R.add(y{i}, R.const({i}.5, "float32"))' for i in range(1, count))
    program = module(f'y1 = R.add(x, R.const(0.5, "float32"))\n{offsets}\nout = R.exp(y{count})', X)
    folded = transform.FoldConstant()(transform.FoldScaleShift()(program))
    assert operators(folded) == ["add", "exp"]
    x = np.full((2, 3, 4), -float(count * count / 2), "float32")
    np.testing.assert_allclose(weft.compile(program)["main"](x), np.ones_like(x), rtol=1e-5)


def test_a_value_is_known_to_be_constant_however_deep_its_chain_is() -> None:
    chain = "\n".join(f"c{i + 1} = R.negative(c{i})" for i in range(1500))
    program = module(f'c0 = R.exp(R.const(0.0, "float32"))\n{chain}\ny = R.add(x, c1500)\nout = R.add(y, c0)', X)
    x = np.zeros((1, 3, 4), "float32")
    np.testing.assert_array_equal(weft.compile(program)["main"](x), x + 2)


def test_products_of_constants_that_are_not_folded_are_not_free() -> None:
    shapes = {f"w{place}": (256, 1024)[:: -1 if place % 2 else 1] for place in range(12)}
    params = ", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items())
    body = "\n".join(f"    x = R.matmul(x, {name})" for name in shapes)
    program = weft.parse(f'@R.function\ndef main(x: R.Tensor((1, 256), "float32"), {params}):\n{body}\n    return x')
    weights = {name: np.zeros(shape, "float32") for name, shape in shapes.items()}
    bound = transform.BindParams("main", weights)(weft.IRModule({"main": program}))  # type: ignore[dict-item]
    passes = [transform.AdjustMatmulOrder(), transform.FoldConstant(), transform.DeadCodeElimination()]
    assert operators(transform.Pipeline(passes)(bound)) == ["matmul"]
