"""BindParams and BindSymbolicVars."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.helpers import module

from weft.errors import DTypeError, PassError, ShapeError, WeftError
from weft.ir import Function, assert_structural_equal
from weft.ir.dim import symbol
from weft.ir.interpret import interpret
from weft.transform import BindParams, BindSymbolicVars

LINEAR = """
@R.function
def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
    with R.dataflow():
        y = R.matmul(x, w)
        R.output(y)
    return y
"""
W = np.arange(6, dtype="float32").reshape(3, 2)


def test_a_parameter_becomes_a_constant_and_fixes_its_symbols() -> None:
    before = module(LINEAR)
    new = BindParams("main", {"w": W})(before)
    expected = module("""
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            y = R.matmul(x, R.const([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], "float32"))
            R.output(y)
        return y
    """)
    assert_structural_equal(new, expected)
    x = np.ones((4, 3), "float32")
    np.testing.assert_allclose(interpret(new)["main"](x), x @ W)


def test_a_parameter_may_be_named_by_its_variable() -> None:
    before = module(LINEAR)
    function = before["main"]
    assert isinstance(function, Function)
    new = BindParams("main", {function.params[1]: W})(before)
    assert_structural_equal(new, BindParams("main", {"w": W})(before))


def test_no_parameters_change_nothing() -> None:
    before = module(LINEAR)
    assert BindParams("main", {})(before) is before


def test_a_restriction_that_the_array_leaves_open_is_checked_when_the_function_runs() -> None:
    new = BindParams("main", {"w": np.ones(6, "float32")})(
        module("""
        @R.function
        def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("2 * n",), "float32")) -> R.Tensor(("2 * n",), "float32"):
            y = R.negative(w)
            return y
        """)
    )
    run = interpret(new)["main"]
    np.testing.assert_array_equal(run(np.zeros(3, "float32")), -np.ones(6, "float32"))
    with pytest.raises(WeftError):
        run(np.zeros(4, "float32"))


@pytest.mark.parametrize(
    ("params", "kind", "code", "said"),
    [
        ({"v": W}, PassError, "W543", "no parameter 'v'"),
        ({"w": W.astype("float64")}, DTypeError, "W320", "float64"),
        ({"w": W.T}, ShapeError, "W202", "(2, 3)"),
        ({"w": W[0]}, ShapeError, "W202", "(2,)"),
        ({"w": "text"}, PassError, "W545", "cannot be bound to a str"),
        ({"w": [[1.0, 2.0]]}, PassError, "W545", "cannot be bound to a list"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(params: Any, kind: type[WeftError], code: str, said: str) -> None:
    with pytest.raises(kind) as caught:
        BindParams("main", params)(module(LINEAR))
    assert caught.value.code == code
    assert said in caught.value.message


def test_two_arrays_that_disagree_on_a_symbol_are_refused() -> None:
    with pytest.raises(ShapeError):
        BindParams("main", {"x": np.ones((4, 5), "float32"), "w": W})(module(LINEAR))


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(PassError) as caught:
        BindParams("mian", {"w": W})(module(LINEAR))
    assert caught.value.code == "W510"


def test_the_parameters_of_a_called_function_are_not_bound_behind_its_callers() -> None:
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = Module.inner(x)
        return y

    @R.function
    def inner(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return x
    """
    with pytest.raises(PassError) as caught:
        BindParams("inner", {"x": np.ones(2, "float32")})(module(text))
    assert caught.value.code == "W544"


def test_shapes_and_scalars_are_bound_too() -> None:
    new = BindParams("main", {"s": (2, 3)})(
        module("""
        @R.function
        def main(x: R.Tensor((6,), "float32"), s: R.Shape(["a", "b"])) -> R.Tensor(("a", "b"), "float32"):
            y = R.reshape(x, s)
            return y
        """)
    )
    expected = module("""
    @R.function
    def main(x: R.Tensor((6,), "float32")) -> R.Tensor((2, 3), "float32"):
        y = R.reshape(x, R.shape([2, 3]))
        return y
    """)
    assert_structural_equal(new, expected)


SYMBOLIC = """
@R.function
def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m",), "float32"):
    with R.dataflow():
        y = R.flatten(x)
        R.output(y)
    return y
"""


def test_symbols_get_numbers_and_types_follow() -> None:
    new = BindSymbolicVars({"n": 7})(module(SYMBOLIC))
    expected = module("""
    @R.function
    def main(x: R.Tensor((7, "m"), "float32")) -> R.Tensor(("7 * m",), "float32"):
        with R.dataflow():
            y = R.flatten(x)
            R.output(y)
        return y
    """)
    assert_structural_equal(new, expected)


def test_types_that_become_known_are_deduced() -> None:
    new = BindSymbolicVars({"n": 4})(
        module("""
        @R.function
        def main(x: R.Tensor(("n", 1), "float32")) -> R.Tensor(dtype="float32"):
            n = T.int64()
            s = R.shape([n, 3])
            y = R.broadcast_to(x, s)
            return y
        """)
    )["main"]
    assert isinstance(new, Function)
    assert new.body.blocks[0].bindings[-1].var.ty.shape == (4, 3)  # type: ignore[union-attr]


def test_a_symbol_object_may_be_the_key_and_one_function_may_be_named() -> None:
    text = SYMBOLIC + SYMBOLIC.replace("def main", "def other")
    new = BindSymbolicVars({symbol("n"): 7}, "other")(module(text))  # type: ignore[dict-item]
    assert_structural_equal(new["main"], module(text)["main"])
    assert_structural_equal(new["other"], BindSymbolicVars({"n": 7})(module(SYMBOLIC))["main"])


def test_callers_follow_when_a_result_changes() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(("a", 4), "float32")) -> R.Tensor(("a", 4), "float32"):
        y = Module.inner(x)
        z = R.exp(y)
        return z

    @R.function
    def inner(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        y = R.tanh(x)
        return y
    """
    new = BindSymbolicVars({"n": 7}, "inner")(module(text))
    run = interpret(new)["main"]
    assert run(np.ones((7, 4), "float32")).shape == (7, 4)
    with pytest.raises(WeftError):
        run(np.ones((6, 4), "float32"))


@pytest.mark.parametrize(
    ("values", "code", "said"),
    [
        ({"k": 3}, "W541", "no function has a symbol 'k'"),
        ({"n": -1}, "W542", "cannot be -1"),
        ({"n": 1.5}, "W542", "cannot be 1.5"),
        ({"n": True}, "W542", "cannot be True"),
    ],
)
def test_a_wrong_symbol_or_value_is_refused(values: Any, code: str, said: str) -> None:
    with pytest.raises(PassError) as caught:
        BindSymbolicVars(values)(module(SYMBOLIC))
    assert caught.value.code == code
    assert said in caught.value.message


def test_a_value_that_contradicts_a_constraint_is_refused_with_the_place() -> None:
    text = """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        z = R.add(x, y)
        return z
    """
    with pytest.raises(ShapeError) as caught:
        BindSymbolicVars({"n": 5})(module(text))
    assert caught.value.span is not None


def test_no_values_change_nothing() -> None:
    before = module(SYMBOLIC)
    assert BindSymbolicVars({})(before) is before
