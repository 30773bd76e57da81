"""Passes over parameters and results of functions."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.testing
from weft import transform
from weft.ir import Function, TupleType

HEAD = "from weft.script import ir as I, relax as R, tir as T\n"
WEIGHTS = (
    HEAD
    + """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((4,), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w)
            s = R.multiply(b, R.const(2.0))
            y = R.matmul(x, t)
            z = R.add(y, s)
            out = R.add(z, b)
            R.output(out)
        return out
"""
)
PAIRS = (
    HEAD
    + """
@I.ir_module
class Module:
    @R.function(private=True)
    def pair(t: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32"))):
        with R.dataflow():
            a = R.add(t[0], t[1])
            b = R.multiply(t[0], t[1])
            out = (a, b, a)
            R.output(out)
        return out

    @R.function
    def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
        t = Module.pair((x, y))
        u = (y, x)
        v = Module.pair(u)
        return R.add(t[1], v[1])
"""
)


def module(text: str) -> weft.IRModule:
    made = weft.parse(text)
    assert isinstance(made, weft.IRModule)
    return made


def function(program: weft.IRModule, name: str = "main") -> Function:
    found = program[name]
    assert isinstance(found, Function)
    return found


def test_what_weights_alone_decide_is_computed_once() -> None:
    before = module(WEIGHTS)
    after = transform.LiftTransformParams()(before)
    assert weft.structural_equal(weft.parse(after.script()), after)
    text = function(after).script()
    assert "permute_dims" not in text
    assert [param.name for param in function(after).params] == ["x", "t", "s", "b"]
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape, "float32") for shape in ((2, 3), (4, 3), (4,)))
    ready = weft.interpret(after)["main_transform_params"]((w, b))
    for run in (weft.interpret(after), weft.compile(after)):
        np.testing.assert_allclose(run["main"](x, *ready), weft.interpret(before)["main"](x, w, b), rtol=1e-6)


def test_weights_become_one_tuple() -> None:
    before = module(WEIGHTS)
    after = transform.BundleModelParams()(before)
    assert weft.structural_equal(weft.parse(after.script()), after)
    params = function(after).params
    assert [param.name for param in params] == ["x", "model_params"]
    assert isinstance(params[1].ty, TupleType)
    x, w, b = np.ones((2, 3), "float32"), np.ones((4, 3), "float32"), np.ones(4, "float32")
    np.testing.assert_array_equal(weft.interpret(after)["main"](x, (w, b)), weft.interpret(before)["main"](x, w, b))
    plain = module(WEIGHTS.replace('        R.func_attr({"num_input": 1})\n', ""))
    assert transform.BundleModelParams()(plain) is plain
    with pytest.raises(weft.PassError, match="num_input of 'main' is a number of its 3 parameters, got 7"):
        transform.BundleModelParams()(module(WEIGHTS.replace('"num_input": 1', '"num_input": 7')))


def test_fields_that_no_caller_takes_are_not_given() -> None:
    before = module(PAIRS)
    after = transform.RemoveUnusedOutputs()(before)
    assert "R.add" not in function(after, "pair").script()
    weft.testing.assert_round_trip(after)
    weft.testing.assert_same_meaning(before, after)
    both = module(PAIRS.replace("R.add(t[1], v[1])", "R.add(t[1], v[0])"))
    fewer = transform.RemoveUnusedOutputs()(both)
    assert isinstance(function(fewer, "pair").ret_type, TupleType)
    assert len(function(fewer, "pair").ret_type.fields) == 2  # type: ignore[union-attr]
    weft.testing.assert_same_meaning(both, fewer)
    whole = module(PAIRS.replace("return R.add(t[1], v[1])", "return (t, v[1])"))
    assert transform.RemoveUnusedOutputs()(whole) is whole


def test_private_functions_take_the_fields_of_tuples() -> None:
    before = module(PAIRS)
    after = transform.ExpandTupleArguments()(before)
    assert [param.name for param in function(after, "pair").params] == ["t_0", "t_1"]
    weft.testing.assert_round_trip(after)
    weft.testing.assert_same_meaning(before, after)
    assert transform.ExpandTupleArguments()(after) is after


@pytest.mark.parametrize("seed", range(8))
def test_random_modules_mean_the_same(seed: int) -> None:
    before = weft.testing.random_module(seed)
    after = transform.ExpandTupleArguments()(transform.RemoveUnusedOutputs()(before))
    weft.testing.assert_same_meaning(before, after, trials=2)


def test_what_is_not_to_be_lifted_stays_and_runs() -> None:
    text = WEIGHTS.replace("R.permute_dims(w)", "R.permute_dims(R.builtin.stop_lift_params(w))")
    module = weft.parse(text)
    assert isinstance(module, weft.IRModule)
    new = transform.LiftTransformParams()(module)
    main, lifted = new["main"].script(), new["main_transform_params"].script()
    assert "stop_lift_params" not in main
    assert ("R.permute_dims" in main, "R.permute_dims" in lifted) == (True, False)
    assert ("R.multiply" in main, "R.multiply" in lifted) == (False, True)
    x, w, b = (np.random.default_rng(0).random(shape, "float32") for shape in ((2, 3), (4, 3), (4,)))
    prepared = weft.compile(new)["main_transform_params"]((w, b))
    for result in (weft.compile(new)["main"](x, *prepared), weft.compile(module)["main"](x, w, b)):
        np.testing.assert_allclose(result, x @ w.T + 3 * b, rtol=1e-5)
