"""Passes that load weights and hand over results one by one, change the types of parameters, and detach constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.transform.helpers import graph_function, parsed

import weft
from weft import transform
from weft.ir import TensorType, Type, Var

LAYER = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, "k"), "float32"), b: R.Tensor(("k",), "float32"),
             unused: R.Tensor((7,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.exp(x)
            z = R.matmul(y, w)
            out = R.add(z, b)
            R.output(y, out)
        return (out, y, x)
"""
X, W, B = np.ones((2, 3), "float32"), np.full((3, 4), 0.5, "float32"), np.arange(4, dtype="float32")


def test_weights_are_asked_for_when_they_are_needed() -> None:
    before = parsed(LAYER)
    after = transform.LazyGetInput()(before)
    assert weft.verify(after) == []
    weft.testing.assert_round_trip(after)
    asked: list[tuple[int, str]] = []

    def get(place: int, name: str) -> Any:
        asked.append((int(place), str(name)))
        return {"w": W, "b": B}[str(name)]

    expected = weft.interpret(before)["main"](X, W, B, np.zeros(7, "float32"))
    for one, other in zip(weft.interpret(after)["main"](X, get), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert asked == [(0, "w"), (1, "b")]  # nothing uses the third
    assert graph_function(after).attrs["num_input"] == 2  # the function is one
    assert transform.LazyGetInput()(after) is after
    lines = graph_function(after).script()
    assert lines.index("R.exp(x)") < lines.index('R.str("w")') < lines.index("R.matmul") < lines.index('R.str("b")')
    plain = parsed(LAYER.replace('        R.func_attr({"num_input": 1})\n', ""))
    assert transform.LazyGetInput()(plain) is plain


def test_results_are_handed_over_when_they_are_there() -> None:
    before = parsed(LAYER)
    after = transform.LazySetOutput()(before)
    assert weft.verify(after) == []
    weft.testing.assert_round_trip(after)
    assert [param.name for param in graph_function(after).params] == ["x", "fset_output", "w", "b", "unused"]
    assert graph_function(after).attrs["num_input"] == 2
    given: dict[int, Any] = {}

    def put(place: int, value: Any) -> tuple[()]:
        given[int(place)] = np.array(value)
        return ()

    unused = np.zeros(7, "float32")
    expected = weft.interpret(before)["main"](X, W, B, unused)
    assert weft.interpret(after)["main"](X, put, W, B, unused) == ()
    assert list(given) == [2, 1, 0]  # a parameter is there first
    for place, value in given.items():
        np.testing.assert_array_equal(value, expected[place])


TRANSFORM = """
@I.ir_module
class Module:
    @R.function
    def main_transform_params(params: R.Tuple(R.Tensor((3, 4), "float32"), R.Tensor((4,), "float32"))):
        with R.dataflow():
            w = params[0]
            b = params[1]
            t = R.permute_dims(w)
            out = (t, b, R.const([1.0], "float32"))
            R.output(out)
        return out
"""


@pytest.mark.parametrize("store", ["lazy_put", None])
def test_weights_are_prepared_one_by_one(store: str | None) -> None:
    before = parsed(TRANSFORM)
    after = transform.LazyTransformParams("lazy_get", store)(before)
    assert weft.verify(after) == []
    weft.testing.assert_round_trip(after)
    given: dict[int, Any] = {}
    weft.register_func("lazy_get", lambda place: (W, B)[int(place)], override=True)
    weft.register_func(
        "lazy_put", lambda place, value: given.update({int(place): np.array(value)}) or (), override=True
    )
    expected = weft.interpret(before)["main_transform_params"]((W, B))
    result = weft.interpret(after)["main_transform_params"]()
    values = result if store is None else [given[place] for place in range(3)]
    assert store is None or result == ()
    for one, other in zip(values, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    whole = parsed(TRANSFORM.replace("out = (t, b, ", "out = (t, params, "))
    assert weft.verify(transform.LazyTransformParams()(whole)) == []
    other = parsed(TRANSFORM.replace("main_transform_params", "main"))
    assert transform.LazyTransformParams()(other) is other


def test_what_a_parameter_is_reaches_results_and_callers() -> None:
    text = """
@I.ir_module
class Module:
    @R.function(private=True)
    def layer(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return Module.layer(x)
"""
    wider = transform.UpdateParamType(lambda var: TensorType((2, 5), "float64") if var.name == "x" else None)
    after = wider(parsed(text))
    assert weft.verify(after) == []
    assert weft.structural_equal(graph_function(after).ret_type, TensorType((2, 5), "float64"))
    nothing = parsed(text)
    assert transform.UpdateParamType(lambda var: None)(nothing) is nothing
    assert transform.UpdateParamType(lambda var: var.ty)(nothing) is nothing
    wrong: Any = lambda var: "float16"
    with pytest.raises(weft.PassError, match="gives a type or None, for 'x' of 'layer' it gave") as caught:
        transform.UpdateParamType(wrong)(nothing)
    assert caught.value.code == "W506"

    def square(var: Var) -> Type | None:
        return TensorType((3, 3), "float32") if var.name == "w" else None

    with pytest.raises(weft.ShapeError):
        transform.UpdateParamType(square)(parsed(LAYER.replace('"k"', "4").replace("R.Tensor((4,)", "R.Tensor((4,)")))


def test_constants_are_detached_and_bound_again() -> None:
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")):
        y = R.add(x, R.const([1.0, 2.0], "float32"))
        z = R.multiply(y, R.const(3.0, "float32"))
        return R.add(z, R.const([[5.0, 6.0]], "float32"))
"""
    before = parsed(text)
    after, arrays = transform.detach_params(before)
    assert weft.structural_equal(transform.DetachParams()(before), after)
    assert {name: array.tolist() for name, array in arrays["main"].items()} == {
        "constant": [1.0, 2.0],
        "constant_1": [[5.0, 6.0]],
    }
    assert graph_function(after).attrs["num_input"] == 1
    x = np.ones((3, 2), "float32")
    expected = weft.interpret(before)["main"](x)
    np.testing.assert_array_equal(weft.interpret(after)["main"](x, *arrays["main"].values()), expected)
    bound = transform.BindParams("main", arrays["main"])(after)
    np.testing.assert_array_equal(weft.interpret(bound)["main"](x), expected)
    assert transform.detach_params(before, min_size=3) == (before, {})
