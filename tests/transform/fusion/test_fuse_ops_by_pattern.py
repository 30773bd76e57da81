"""FuseOpsByPattern: what patterns find becomes functions of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.helpers import assert_same_meaning, check, left_alone

import weft
from weft.errors import PassError
from weft.ir import Call, Function, IRModule
from weft.ir.verify import assert_well_formed
from weft.transform import FuseOpsByPattern, FusionPattern, PatternCheckContext
from weft.transform.pattern import DFPattern, is_const, is_op, wildcard

BEFORE = """
@R.function
def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.add(a, R.const([1, 2, 3, 4], "float32"))
        c = R.nn.relu(b)
        d = R.matmul(x, w)
        e = R.add(c, d)
        R.output(e)
    return e
"""


def product() -> DFPattern:
    return is_op("matmul")(wildcard(), wildcard())


def biased() -> DFPattern:
    return is_op("nn.relu")(is_op("add")(product(), is_const()))


def run(*patterns: Any, **options: Any) -> FuseOpsByPattern:
    return FuseOpsByPattern(patterns, **options)


def test_earlier_patterns_come_first_and_every_binding_has_one_function() -> None:
    """D15, D17: patterns become functions before the generic fusion, which leaves them as they are."""
    check(
        run(("acc.layer", biased()), ("acc.product", product())),
        BEFORE,
        """
        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
            with R.dataflow():
                c = cls.acc_layer(x, w)
                d = cls.acc_product(x, w)
                e = R.add(c, d)
                R.output(e)
            return e

        @R.function(private=True)
        def acc_layer(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(
            ("n", 4), "float32"
        ):
            R.func_attr({"Composite": "acc.layer"})
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.add(a, R.const([1, 2, 3, 4], "float32"))
                c = R.nn.relu(b)
                R.output(c)
            return c

        @R.function(private=True)
        def acc_product(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(
            ("n", 4), "float32"
        ):
            R.func_attr({"Composite": "acc.product"})
            with R.dataflow():
                d = R.matmul(x, w)
                R.output(d)
            return d
        """,
    )


def module(text: str = BEFORE) -> IRModule:
    indented = "\n".join(f"    {line}" for line in text.strip().splitlines())
    found = weft.parse(f"@I.ir_module\nclass Module:\n{indented}")
    assert isinstance(found, IRModule)
    return found


def composites(after: IRModule) -> list[str]:
    return [str(f.attrs["Composite"]) for _, f in after.items() if isinstance(f, Function) and "Composite" in f.attrs]


def test_constants_may_be_arguments_and_functions_may_belong_to_a_part() -> None:
    after = run(("acc.layer", biased()), bind_constants=False, label="acc")(module())
    assert_well_formed(after)
    layer = after["acc_layer"]
    assert isinstance(layer, Function)
    assert layer.attrs["target"] == "acc"
    assert len(layer.params) == 3
    assert "R.const" not in layer.script()
    assert_same_meaning(module(), after)


def test_a_value_in_between_that_something_else_uses_is_no_part_of_a_match() -> None:
    left_alone(run(("acc.layer", biased())), BEFORE.replace("R.add(c, d)", "R.add(c, b)"))
    left_alone(
        run(("acc.layer", biased())), BEFORE.replace("R.output(e)", "R.output(b, e)").replace("return e", "return b")
    )


def test_an_operand_on_both_sides_of_a_diamond_is_inside() -> None:
    x = wildcard()
    root = is_op("exp")(x)
    pattern = is_op("add")(is_op("tanh")(root), is_op("negative")(root))
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    with R.dataflow():
        a = R.exp(x)
        b = R.tanh(a)
        c = R.negative(a)
        d = R.add(b, c)
        R.output(d)
    return d
"""
    after = run(("diamond", pattern))(module(text))
    assert composites(after) == ["diamond"]
    assert_same_meaning(module(text), after)
    left_alone(run(("diamond", pattern)), text.replace("R.negative(a)", "R.negative(x)"))


def test_a_check_sees_the_match_and_may_refuse_it() -> None:
    seen: list[PatternCheckContext] = []

    def check_(context: PatternCheckContext) -> bool:
        seen.append(context)
        return isinstance(context.annotated_expr["bias"], weft.ir.Constant) and len(seen) > 1

    bias = is_const()
    root = product()
    pattern = FusionPattern("acc.biased", is_op("add")(root, bias), {"bias": bias, "root": root}, check_)
    assert composites(run(pattern)(module())) == []
    (context,) = seen
    assert isinstance(context.annotated_expr["root"], Call)
    assert [var.name for var in context.matched_bindings] == ["a", "b"]
    var = context.value_to_bound_var[context.matched_expr]
    assert var.name == "b"
    assert [user.name for user in context.var_usages[var]] == ["c"]
    assert composites(run(("acc.biased", pattern.pattern, pattern.annotation_patterns, check_))(module())) == [
        "acc.biased"
    ]


def test_only_the_named_functions_are_looked_at() -> None:
    both = module(BEFORE + BEFORE.replace("def main", "def other"))
    after = run(("acc.product", product()), entry_functions=("other",))(both)
    assert after["main"] is both["main"]
    assert composites(after) == ["acc.product"] * 2


def test_several_runs_take_what_is_left_and_the_program_compiles() -> None:
    """D15: passes of several backends, one after the other."""
    before = module()
    first = run(("one.layer", biased()))(before)
    after = run(("two.product", product()))(first)
    assert composites(after) == ["one.layer", "two.product"]
    x, w = (np.random.default_rng(0).normal(size=size).astype("float32") for size in ((3, 8), (8, 4)))
    expected = weft.interpret(before)["main"](x, w)
    np.testing.assert_allclose(weft.compile(after)["main"](x, w), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FuseOpsByPattern(product()), "patterns are a list, got a CallPattern"),  # type: ignore[arg-type]
        (lambda: run(product()), "a fusion pattern is (name, pattern, annotations, check), got a CallPattern"),
        (lambda: run(("acc", 3)), "acc: pattern is a pattern, got an int"),
        (lambda: run(("", product())), "a fusion pattern has a name, got a str"),
        (lambda: run(("acc", product(), {"root": 3})), "acc: root is a pattern, got an int"),
        (lambda: run(("acc", product(), {}, 3)), "acc: check is a function, got an int"),
    ],
)
def test_what_is_no_pattern_is_refused(make: Any, message: str) -> None:
    with pytest.raises(PassError) as caught:
        make()
    assert (caught.value.code, caught.value.message) == ("W550", message)
