"""ToMixedPrecision: products compute in half precision, what needs float32 has it, and types of functions stay."""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from tests.dataflow import dataflow_module

import weft
from weft.ir import Call, Function, IRModule, Op, TensorType, Var
from weft.ir.structure.visit import walk
from weft.testing import assert_round_trip, random_arguments
from weft.transform import FoldConstant, ToMixedPrecision
from weft.transform.infra.decisions import without_decisions
from weft.transform.infra.generators.choices import SeededChoices

Half = Literal["float16", "bfloat16"]
HALVES: tuple[Half, ...] = ("float16", "bfloat16")
EPSILON: dict[Half, float] = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the distance from 1 to the next number: what one rounding costs, relative to the value."""


def module_of(body: str, params: str = 'x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32")') -> IRModule:
    return dataflow_module(params, body)


def calls(module: IRModule, name: str) -> list[Call]:
    found = [node for node in walk(module["main"]) if isinstance(node, Call) and isinstance(node.op, Op)]
    return [call for call in found if call.op.name == name]  # type: ignore[union-attr]


def dtypes(call: Call) -> list[Any]:
    types = [getattr(arg, "ty", None) for arg in call.args]
    return [ty.dtype for ty in types if isinstance(ty, TensorType)]


def check_numbers(
    module: IRModule, dtype: Half, seed: int = 0, roundings: float = 8, run: Any = weft.interpret
) -> IRModule:
    """The module in mixed precision gives what it gave within some roundings of the largest value."""
    mixed = ToMixedPrecision(dtype)(module)
    weft.assert_well_formed(mixed)
    function = module["main"]
    assert isinstance(function, Function)
    given = random_arguments(function, seed)
    old, new = weft.interpret(module)["main"](*given), run(mixed)["main"](*given)
    for a, b in zip(*(both if isinstance(both, tuple) else (both,) for both in (old, new)), strict=True):
        assert a.dtype == b.dtype
        scale = np.abs(a).max() if a.size else 1
        np.testing.assert_allclose(b, a, rtol=0, atol=roundings * EPSILON[dtype] * (scale or 1))
    return mixed


# What becomes of operators ------------------------------------------------------------------------------------------


def test_a_product_computes_in_half_and_gives_float32() -> None:
    expected = module_of(
        """
x16 = R.astype(x, "bfloat16")
w16 = R.astype(w, "bfloat16")
y = R.matmul(x16, w16, out_dtype="float32")
"""
    )
    mixed = ToMixedPrecision("bfloat16")(module_of("y = R.matmul(x, w)"))
    function = mixed["main"]
    assert isinstance(function, Function)
    weft.assert_structural_equal(without_decisions(function), expected["main"])


def test_what_elementwise_operators_give_is_rounded_once_where_it_is_stored() -> None:
    mixed = ToMixedPrecision()(module_of("h = R.nn.silu(R.nn.relu(R.matmul(x, w)))\ny = R.matmul(h, w)"))
    assert dtypes(calls(mixed, "nn.relu")[0]) == ["float32"]
    assert dtypes(calls(mixed, "nn.silu")[0]) == ["float32"]
    assert [dtypes(call) for call in calls(mixed, "matmul")] == [["float16"] * 2] * 2
    assert len(calls(mixed, "astype")) == 3


def test_a_value_of_several_half_readers_is_stored_in_half_and_moved_in_half() -> None:
    mixed = ToMixedPrecision()(
        module_of(
            """
h = R.matmul(x, w)
parts = R.split(h, 2, axis=1)
c = R.concat((parts[1], parts[0]), axis=1)
y = R.add(R.matmul(c, w), R.matmul(R.permute_dims(R.permute_dims(c)), w))
"""
        )
    )
    for name in ("split", "concat", "permute_dims"):
        assert {dtype for call in calls(mixed, name) for dtype in dtypes(call)} <= {"float16"}


def test_what_needs_float32_has_it() -> None:
    mixed = ToMixedPrecision()(module_of("s = R.nn.softmax(R.matmul(x, w))\ny = R.matmul(s, w)"))
    assert dtypes(calls(mixed, "nn.softmax")[0]) == ["float32"]
    assert calls(mixed, "nn.softmax")[0].args[0].name == "lv"  # type: ignore[attr-defined]
    assert {dtype for call in calls(mixed, "matmul") for dtype in dtypes(call)} == {"float16"}


def test_a_part_of_a_large_table_is_cast_after_it_is_taken() -> None:
    params = 'x: R.Tensor((1000, 8), "float32"), i: R.Tensor(("n",), "int64"), w: R.Tensor((8, 8), "float32")'
    mixed = ToMixedPrecision()(module_of("y = R.matmul(R.take(x, i, axis=0), w)", params))
    assert dtypes(calls(mixed, "take")[0]) == ["float32", "int64"]


@pytest.mark.parametrize(
    "body",
    [
        "y = R.nn.softmax(R.add(x, x))",
        'y = R.matmul(R.astype(x, "float64"), R.astype(w, "float64"))',
        'y = R.matmul(R.astype(x, "float16"), R.astype(w, "float16"), out_dtype="float32")',
        'y = R.astype(R.sum(x), "int32")',
    ],
)
def test_a_function_without_products_of_float32_is_left_alone(body: str) -> None:
    module = module_of(body)
    new = ToMixedPrecision()(module)
    assert new is module


def test_products_that_the_program_casts_itself_meet_no_cast_twice() -> None:
    params = 'x: R.Tensor((4, 8), "float16"), w: R.Tensor((8, 8), "float32")'
    mixed = ToMixedPrecision()(module_of('y = R.matmul(R.astype(x, "float32"), w)', params))
    (product,) = calls(mixed, "matmul")
    assert product.args[0].name == "x"  # type: ignore[attr-defined]


def test_sums_may_be_given_in_half() -> None:
    mixed = ToMixedPrecision("bfloat16", "bfloat16")(module_of("y = R.matmul(R.matmul(x, w), w)"))
    assert [call.attrs.get("out_dtype") for call in calls(mixed, "matmul")] == [None, None]
    assert mixed["main"].ret_type.dtype == "float32"  # type: ignore[attr-defined]


# Functions, loops, calls --------------------------------------------------------------------------------------------

CONTROL = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(a: T.Buffer((8, 8), "float32"), b: T.Buffer((8, 8), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] * T.float32(2)

    @R.function(private=True)
    def layer(x: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32")) -> R.Tensor((8, 8), "float32"):
        with R.dataflow():
            y = R.tanh(R.matmul(x, w))
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor((8, 8), "float32"), w: R.Tensor((8, 8), "float32"), c: R.Tensor((), "bool")):
        h = R.matmul(x, w)
        k = R.call_tir(Module.double, (h,), out_ty=R.Tensor((8, 8), "float32"))
        if c:
            a = R.matmul(k, w)
            b = R.nn.relu(a)
        else:
            b = R.nn.relu(k)
        l = Module.layer(b, w)
        state = l
        for i in range(3):
            state = R.tanh(R.matmul(state, w))
        return (state, h, R.sum(l))
"""


def test_calls_branches_loops_and_private_functions_keep_their_types() -> None:
    module = weft.parse(CONTROL)
    assert isinstance(module, IRModule)
    check_numbers(module, "float16", roundings=16)
    mixed = check_numbers(module, "bfloat16", roundings=16)
    for name in ("main", "layer"):
        old, new = module[name], mixed[name]
        assert isinstance(old, Function)
        assert isinstance(new, Function)
        assert weft.structural_equal(new.ret_type, old.ret_type)
        products = [n for n in walk(new) if isinstance(n, Call) and getattr(n.op, "name", "") == "matmul"]
        assert products
        assert {dtype for call in products for dtype in dtypes(call)} == {"bfloat16"}
    assert mixed["double"] is module["double"]


def test_a_recurrent_layer_is_written_out_and_its_products_compute_in_half() -> None:
    params = (
        'x: R.Tensor(("t", 2, 6), "float32"), w: R.Tensor((1, 16, 6), "float32"), r: R.Tensor((1, 16, 4), "float32")'
    )
    module = module_of("y = R.nn.lstm(x, w, r)", params)
    mixed = check_numbers(module, "bfloat16")
    assert not calls(mixed, "nn.lstm")
    assert {dtype for call in calls(mixed, "matmul") for dtype in dtypes(call)} == {"bfloat16"}


def test_constants_are_cast_once_when_compiling() -> None:
    rng = np.random.default_rng(0)
    module = module_of("y = R.nn.relu(R.matmul(R.nn.relu(R.matmul(x, w)), w))")
    bound = weft.transform.BindParams("main", {"w": rng.standard_normal((8, 8)).astype("float32")})(module)
    folded = FoldConstant()(ToMixedPrecision()(bound))
    constants = [node for node in walk(folded["main"]) if isinstance(node, weft.ir.Constant)]
    assert {constant.dtype for constant in constants} == {"float16"}
    assert all(isinstance(call.args[0], Var) for call in calls(folded, "astype"))
    check_numbers(bound, "float16", run=weft.compile)


def test_a_function_that_is_made_of_operators_already_stays() -> None:
    module = module_of("y = R.matmul(x, w)")
    function = module["main"]
    assert isinstance(function, Function)
    sealed = module.with_function("main", function.with_attr("Primitive", True))
    assert ToMixedPrecision()(sealed) is sealed


# Numbers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_give_what_they_gave_within_the_tolerance(seed: int) -> None:
    item, text = ToMixedPrecision.sample(SeededChoices(seed))
    module = weft.parse(text)
    assert isinstance(module, IRModule)
    mixed = check_numbers(module, item.dtype, seed, roundings=40, run=weft.compile if seed < 3 else weft.interpret)
    assert_round_trip(mixed)
    for call in (*calls(mixed, "matmul"), *calls(mixed, "einsum")):
        operands = call.args[0].fields if call.op.name == "einsum" else call.args  # type: ignore[union-attr]
        assert {arg.ty.dtype for arg in operands} == {item.dtype}  # type: ignore[union-attr]


def test_convolutions_norms_and_pools_as_networks_have_them() -> None:
    params = (
        'x: R.Tensor(("n", 3, 4, 4), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), '
        'u: R.Tensor((4, 4, 3, 3), "float32"), v: R.Tensor((4,), "float32"), d: R.Tensor((5, 4), "float32")'
    )
    body = """
s = R.add(R.multiply(v, v), R.const(1.0))
a = R.nn.relu(R.nn.batch_norm(R.nn.conv2d(x, w, padding=1), v, v, v, s, axis=1, training=False)[0])
b = R.nn.max_pool2d(a, pool_size=2, strides=2)
c = R.nn.relu(R.add(R.nn.conv2d(b, u, padding=1), b))
e = R.nn.batch_flatten(R.nn.adaptive_avg_pool2d(c, 1))
y = R.matmul(e, R.permute_dims(d))
"""
    module = module_of(body, params)
    for dtype in HALVES:
        mixed = check_numbers(module, dtype, run=weft.compile if dtype == "bfloat16" else weft.interpret)
        assert {found for call in calls(mixed, "nn.conv2d") for found in dtypes(call)} == {dtype}
        assert dtypes(calls(mixed, "nn.max_pool2d")[0]) == [dtype]
        assert dtypes(calls(mixed, "nn.batch_norm")[0])[0] == "float32"


def test_large_values_overflow_float16_only_where_products_read_them() -> None:
    module = module_of("y = R.nn.softmax(R.multiply(R.matmul(x, w), R.const(1000.0)))")
    mixed = ToMixedPrecision("float16")(module)
    x, w = np.full((2, 8), 8, "float32"), np.full((8, 8), 8, "float32")
    assert np.isfinite(weft.compile(mixed)["main"](x, w)).all()


# Options and records ------------------------------------------------------------------------------------------------


def test_options_have_choices() -> None:
    with pytest.raises(weft.PassError, match="float16"):
        ToMixedPrecision("int8")  # type: ignore[arg-type]
    with pytest.raises(weft.PassError, match="out_dtype") as error:
        ToMixedPrecision("float16", "bfloat16")
    assert error.value.code == "W502"
    parsed = weft.transform.parse_pipeline("to-mixed-precision{dtype=bfloat16}")
    assert "bfloat16" in str(parsed)


def test_decisions_say_what_became_of_each_operator() -> None:
    mixed = ToMixedPrecision()(module_of("h = R.nn.relu(R.matmul(x, w))\ny = R.nn.softmax(R.matmul(h, w))"))
    found = mixed["main"].attrs["decisions"]  # type: ignore[attr-defined]
    assert [item["policy"] for item in found] == ["always", "follow", "always", "never"]
    assert all(item["reason"] for item in found)
    assert "softmax" in weft.compile(mixed).explain() or "never" in str(weft.compile(mixed).explain())


def test_half_arrays_go_in_and_out_as_themselves() -> None:
    params = 'x: R.Tensor((4, 8), "bfloat16"), w: R.Tensor((8, 8), "float32")'
    module = module_of('y = R.astype(R.matmul(R.astype(x, "float32"), w), "bfloat16")', params)
    mixed = ToMixedPrecision("bfloat16")(module)
    out = weft.compile(mixed)["main"](np.ones((4, 8), ml_dtypes.bfloat16), np.ones((8, 8), "float32"))
    assert out.dtype == ml_dtypes.bfloat16
    assert (out.astype("float32") == 8).all()
