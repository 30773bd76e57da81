"""Rules of rewriting that are written as two functions."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.script import ir as I
from weft.script import relax as R
from weft.transform.pattern import PatternMatchingRewriter

HEAD = "from weft.script import ir as I, relax as R, tir as T\n"
TWICE = (
    HEAD
    + """
@R.rewriter
class TwiceIsTwo:
    @R.function
    def pattern(x: R.Tensor(("n",), "float32")):
        return R.add(x, x)

    @R.function
    def replacement(x: R.Tensor(("n",), "float32")):
        return R.multiply(x, R.const(2.0))
"""
)
CLIPPED = (
    HEAD
    + """
@R.rewriter
class ReluOfProduct:
    @R.function
    def pattern(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")):
        y = R.matmul(x, w)
        z = R.nn.relu(y)
        return z

    @R.function
    def replacement(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")):
        n, m = T.int64(), T.int64()
        y = R.matmul(x, w)
        z = R.maximum(y, R.zeros((n, m), "float32"))
        return z
"""
)


def rule(text: str) -> PatternMatchingRewriter:
    module = weft.parse(text)
    assert isinstance(module, weft.IRModule)
    return PatternMatchingRewriter.from_module(module)


@R.rewriter
class HalvesAreWhole:
    @R.function
    def pattern(x: R.Tensor(("n",), "float32")):  # type: ignore[misc]
        return R.multiply(x, R.const(1.0))

    @R.function
    def replacement(x: R.Tensor(("n",), "float32")):  # type: ignore[misc]
        return x


@I.ir_module
class Main:
    @R.function
    def main(a: R.Tensor((8,), "float32"), b: R.Tensor((8,), "float32")):
        c = R.multiply(R.add(a, b), R.const(1.0))
        d = R.multiply(a, R.const(3.0))
        return R.add(c, d)


def test_a_decorated_class_is_a_rule_that_is_called_on_modules() -> None:
    assert isinstance(HalvesAreWhole, PatternMatchingRewriter)
    new = HalvesAreWhole(Main)
    text = new.script()
    assert "R.const(1.0" not in text
    assert "R.const(3.0" in text  # the value of a constant counts
    a, b = np.arange(8, dtype="float32"), np.full(8, 2.5, "float32")
    np.testing.assert_array_equal(weft.interpret(new)["main"](a, b), weft.interpret(Main)["main"](a, b))


def test_the_text_of_a_rule_is_a_module_that_reads_back() -> None:
    module = weft.parse(TWICE)
    text = module.script()
    assert "@R.rewriter\nclass TwiceIsTwo:" in text
    assert weft.structural_equal(weft.parse(text), module)
    assert weft.structural_equal(weft.parse(module.script(types="hidden")), module)
    assert "@R.rewriter" in module.script(spelling="tvm-0.27")
    assert "@I.ir_module" in module.without("replacement").script()  # half a rule is a module with an attribute


def test_symbols_stand_for_the_sizes_of_the_values() -> None:
    main = weft.parse("""
@R.function
def main(a: R.Tensor((8, 4), "float32"), b: R.Tensor((4, "k"), "float32"), c: R.Tensor((8, 3), "float32"),
         d: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        p = R.matmul(a, b)
        q = R.nn.relu(p)
        r = R.nn.relu(R.matmul(c, d))
        R.output(q, r)
    return q, r
""")
    new = rule(CLIPPED)(main)
    text = new.script()
    assert "R.zeros((8, k)" in text
    assert text.count("R.nn.relu") == 1  # of a product over three terms
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape, "float32") for shape in ((8, 4), (4, 5), (8, 3), (3, 4))]
    for ours, wanted in zip(weft.interpret(new)["main"](*values), weft.interpret(main)["main"](*values), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6)


def test_a_rule_is_applied_until_it_is_not_found_and_rules_are_joined() -> None:
    main = weft.parse("""
@R.function
def main(a: R.Tensor((8,), "float32")):
    b = R.add(a, a)
    c = R.multiply(R.add(b, b), R.const(1.0))
    return c
""")
    text = (rule(TWICE) | HalvesAreWhole)(main).script()
    assert "R.add" not in text
    assert text.count("R.multiply") == 2


def test_attributes_of_operators_count() -> None:
    sums = TWICE.replace("R.add(x, x)", "R.sum(R.expand_dims(x, axis=0), axis=0)").replace(
        "R.multiply(x, R.const(2.0))", "R.abs(x)"
    )
    main = '@R.function\ndef main(a: R.Tensor((3,), "float32")):\n    return R.sum(R.expand_dims(a, axis={}), axis=0)'
    other = rule(sums).unchecked()
    assert "R.abs" in other(weft.parse(main.format(0))).script()
    assert "R.abs" not in other(weft.parse(main.format(1))).script()


@pytest.mark.parametrize(
    ("text", "code", "said", "line"),
    [
        (TWICE.replace("def replacement", "def other"), "W104", "no graph function 'replacement'", 4),
        (TWICE.replace("R.rewriter", "R.rewriter(pure=True)"), "W113", "no option 'pure'", 3),
        (
            TWICE.replace("@R.rewriter\nclass TwiceIsTwo:", "@I.ir_module\nclass A:").replace(
                "def pattern", "def form"
            ),
            "W550",
            "a rule has a graph function 'pattern', this module has form, replacement",
            4,
        ),
        (TWICE.replace("R.add(x, x)", "x"), "W550", "a result that is no call cannot stand in the pattern", 6),
        (
            TWICE.replace("        return R.add(x, x)", "        y = R.add(x, x)\n        return (y, y)"),
            "W550",
            "no call",
            6,
        ),
        (
            TWICE.replace("return R.add(x, x)", 'return R.nn.relu(R.match_cast(x, R.Tensor((4,), "float32")))'),
            "W550",
            "R.match_cast cannot stand in the pattern",
            7,
        ),
        (
            TWICE.replace('replacement(x: R.Tensor(("n",)', "replacement(x: R.Tensor((4,)"),
            "W550",
            "parameter 'x' of the pattern is",
            10,
        ),
        (
            TWICE.replace(
                'pattern(x: R.Tensor(("n",), "float32"))',
                'pattern(x: R.Tensor(("n",), "float32"), y: R.Tensor((2,), "float32"))',
            ),
            "W550",
            "the pattern has 2 parameters, the replacement 1",
            10,
        ),
        (
            TWICE.replace('("n",), "float32"))', '("n",), "float32"), y: R.Tensor((2,), "int8"))'),
            "W550",
            "the pattern does not use y",
            6,
        ),
    ],
)
def test_what_states_no_rule_is_refused_where_it_stands(text: str, code: str, said: str, line: int) -> None:
    with pytest.raises(weft.WeftError, match=said) as caught:
        rule(text)
    assert caught.value.code == code
    assert caught.value.span is not None
    assert caught.value.span.line == line


def test_a_rule_without_an_end_and_other_things_than_modules_are_refused() -> None:
    endless = rule(TWICE.replace("R.multiply(x, R.const(2.0))", "R.add(x, x)"))
    main = weft.parse('@R.function\ndef main(a: R.Tensor((8,), "float32")):\n    return R.add(a, a)')
    with pytest.raises(weft.PassError, match="found again in 'main' after 100 rounds") as caught:
        endless(main)
    assert caught.value.code == "W554"
    with pytest.raises(weft.PassError) as caught:
        endless(3)  # type: ignore[call-overload]
    assert caught.value.code == "W551"
    with pytest.raises(weft.PassError) as caught:
        PatternMatchingRewriter.from_module(main)  # type: ignore[arg-type]
    assert caught.value.code == "W550"


def test_a_replacement_of_another_type_is_refused_at_the_value() -> None:
    wider = rule(TWICE.replace("R.multiply(x, R.const(2.0))", 'R.astype(x, "float64")')).unchecked()
    main = weft.parse('@R.function\ndef main(a: R.Tensor((8,), "float32")):\n    return R.add(a, a)')
    with pytest.raises(weft.PassError, match="the replacement for") as caught:
        wider(main)
    assert caught.value.code == "W553"
    assert caught.value.span is not None
    assert caught.value.span.line == 3
