"""`weft.testing`: its assertions fail where they must, and ten lines test a pass or a back end."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import weft
from weft import testing, transform
from weft.errors import ArgumentError
from weft.ir.graph import Call, Function, Op
from weft.ir.module import IRModule
from weft.ir.node import Node, replace
from weft.ir.structure.visit import rewrite

HALVE = """
@R.function
def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
    y = R.multiply(x, R.const(0.5, "float32"))
    return R.add(y, y)
"""


def parsed(text: str) -> IRModule:
    function = weft.parse(text)
    return function if isinstance(function, IRModule) else IRModule({function.name: function})


SWAPPED = (
    ("sin", "cos"),
    ("maximum", "minimum"),
    ("floor", "ceil"),
    ("exp", "exp2"),
    ("tanh", "sigmoid"),
    ("add", "multiply"),
    ("max", "min"),
)
WRONG = {"abs": "negative", "square": "abs", **dict(SWAPPED), **{b: a for a, b in SWAPPED}}


@dataclass(frozen=True)
class SwapsOperators(transform.Pass):
    """A wrong pass."""

    def run(self, module: IRModule) -> IRModule:
        def change(node: Node) -> Node | None:
            if isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in WRONG:
                return replace(node, op=Op(WRONG[node.op.name]))
            return None

        return rewrite(module, change)


def test_the_same_seed_gives_the_same_module_and_another_one_another() -> None:
    assert testing.random_module(5).script() == testing.random_module(5).script()
    assert testing.random_module(5).script() != testing.random_module(6).script()


def test_arguments_fit_and_sizes_may_be_given() -> None:
    main = parsed(HALVE)["main"]
    assert isinstance(main, Function)
    (x,) = testing.random_arguments(main, 1, symbols={"n": 7})
    assert (x.shape, x.dtype) == ((7, 4), np.dtype("float32"))


def test_sizes_that_nothing_fits_are_an_error_with_a_code() -> None:
    function = weft.parse('@R.function\ndef main(x: R.Tensor(("n", "0 - n - 1"), "float32")):\n    return x\n')
    with pytest.raises(ArgumentError) as caught:
        testing.random_arguments(function)
    assert caught.value.code == "W866"


def test_modules_that_compute_the_same_pass() -> None:
    module = parsed(HALVE)
    testing.assert_same_meaning(module, transform.LegalizeOps()(module))
    testing.assert_same_meaning(module, module, target="llvm")
    testing.assert_same_meaning(module, weft.compile(module), name="main")


def test_modules_that_do_not_are_told_with_the_place_and_both_values() -> None:
    module = parsed(HALVE)
    other = parsed(HALVE.replace("0.5", "0.25"))
    with pytest.raises(AssertionError, match=r"main: expected[\s\S]*got"):
        testing.assert_same_meaning(module, other, arguments=[np.ones((2, 4), "float32")])


def test_another_dtype_or_shape_is_another_meaning() -> None:
    module = parsed(HALVE)
    cast = parsed(
        HALVE.replace("return R.add(y, y)", 'return R.astype(R.add(y, y), "float16")').replace(
            '-> R.Tensor(("n", 4), "float32")', ""
        )
    )
    with pytest.raises(AssertionError, match="float32 expected, got float16"):
        testing.assert_same_meaning(module, cast)


def test_a_comparison_that_compares_nothing_fails() -> None:
    """No argument is accepted: the sum of two sizes is never less than one of them by two."""
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n + 1",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
    z = R.match_cast(x, R.Tensor((100,), "float32"))
    return z
"""
    with pytest.raises(AssertionError, match="give arguments="):
        testing.assert_same_meaning(parsed(text), parsed(text))


def test_fuzz_finds_a_wrong_pass_and_a_seed_that_shows_it() -> None:
    report = testing.fuzz(passes=[SwapsOperators()], count=200, stop=1)
    assert report.failures
    assert "seeds" in str(report)
    first = report.failures[0]
    module = testing.random_module(first.seed)
    assert SwapsOperators()(module) is not module
    with pytest.raises(AssertionError, match=f"seed {first.seed}"):
        report.assert_clean()


def test_fuzz_of_right_passes_and_of_a_target_is_clean_and_compares_results() -> None:
    report = testing.fuzz(passes=[transform.FoldConstant(), transform.DeadCodeElimination()], targets=["llvm"], count=6)
    report.assert_clean()
    assert report.compared >= 12


def test_a_check_of_ones_own() -> None:
    def small(module: IRModule) -> None:
        assert len(module.functions) < 2, "too many functions"

    report = testing.fuzz(check=small, count=30, stop=2)
    assert {failure.kind for failure in report.failures} == {"AssertionError too many functions"}
    assert len(report.failures) == 2


def test_only_the_strategies_need_hypothesis() -> None:
    code = "import sys; sys.modules['hypothesis'] = None; import weft; weft.testing.random_module(1)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_random_modules_compile_in_a_program_that_registered_nothing() -> None:
    """The functions that they call are brought along."""
    code = (
        "from weft import testing\n"
        "texts = [testing.random_module(seed).script() for seed in range(12)]\n"
        "assert any('test.copy' in text or 'test.reversed' in text for text in texts)\n"
        "testing.fuzz(targets=['llvm'], count=12).assert_clean()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
