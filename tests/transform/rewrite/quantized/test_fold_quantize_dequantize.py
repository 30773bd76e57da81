"""FoldQuantizeDequantize: graphs in QDQ form as integers, the same on every target and as the floats say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.helpers import check, left_alone

import weft
from weft.ir import IRModule
from weft.script import parse
from weft.transform import BindParams, FoldQuantizeDequantize
from weft.transform.infra.decisions import without_decisions
from weft.transform.rewrite.quantized.operands import fixed_point

run = FoldQuantizeDequantize()


def text(parameters: str, *lines: str) -> IRModule:
    """A module with one function of these lines, the last of which gives its result `y`."""
    body = "".join(f"        {line}\n" for line in lines)
    found = parse(
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({parameters}):\n{body}        return y\n"
    )
    assert isinstance(found, IRModule)
    return found


def test_a_product_between_quantizations_is_one_of_integers() -> None:
    check(
        lambda module: module.with_function("main", without_decisions(run(module)["main"])),
        """
        @R.function
        def main(x: R.Tensor(("n", 2), "int8")):
            a = R.dequantize(x, 0.5, 3)
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const([0.25, 0.5], "float32"), 0, axis=1)
            p = R.matmul(a, w)
            b = R.add(p, R.const([1, 2], "float32"))
            r = R.nn.relu(b)
            y = R.quantize(r, 2.0, -1)
            return y
        """,
        """
        @R.function
        def main(x: R.Tensor(("n", 2), "int8")):
            p = R.matmul(x, R.const([[1, 2], [3, 4]], "int8"), out_dtype="int32")
            b = R.add(p, R.const([-4, -10], "int32"))
            q = R.requantize(b, R.const([536870912, 1073741824], "int32"), -1, shift=33)
            y = R.maximum(q, R.const(-1, "int8"))
            return y
        """,
        idempotent=False,
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("y = R.quantize(x, 0.5, 0)",),
        ("a = R.dequantize(R.quantize(x, 0.5, 0), s, 0)", "y = R.matmul(a, x)"),
        ("a = R.dequantize(R.quantize(x, 0.5, 0), 0.5, 0)", "y = R.exp(a)"),
    ],
)
def test_what_no_rule_knows_stays(lines: tuple[str, ...]) -> None:
    body = "\n".join(f"    {line}" for line in lines)
    left_alone(
        run, f'@R.function\ndef main(x: R.Tensor((2, 2), "float32"), s: R.Tensor((), "float32")):\n{body}\n    return y'
    )


def test_more_products_than_int32_has_room_for_stay_floats() -> None:
    module = text(
        'x: R.Tensor((1, 70000), "int8"), w: R.Tensor((70000, 1), "int8")',
        "y = R.matmul(R.dequantize(x, 0.5, 0), R.dequantize(w, 0.5, 0))",
    )
    assert run(module) is module


SIZES = st.integers(1, 5)
STEPS = st.floats(0.001, 2.0).map(lambda x: float(np.float32(x)))


@st.composite
def layers(draw: st.DrawFn) -> tuple[IRModule, list[np.ndarray]]:
    """A quantized product or convolution with what may follow it, and its input."""
    seed = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    dtype, weight_dtype = draw(st.sampled_from(("int8", "uint8"))), draw(st.sampled_from(("int8", "uint8")))
    inner, outer, size = draw(SIZES), draw(SIZES), draw(st.integers(3, 5))
    convolution = draw(st.booleans())
    info, weight_info = np.iinfo(dtype), np.iinfo(weight_dtype)
    zero = draw(st.integers(info.min, info.max))
    middle = 128 if weight_dtype == "uint8" else 0
    shape = (draw(st.integers(1, 2)), inner, size, size) if convolution else (draw(st.integers(0, 3)), inner)
    kernel = (outer, inner, draw(st.sampled_from((1, 3))), 2) if convolution else (inner, outer)
    w = seed.integers(weight_info.min, weight_info.max + 1, kernel).astype(weight_dtype)
    axis = 0 if convolution else 1
    scales = (seed.random(outer if draw(st.booleans()) else 1) * 0.1 + 1e-4).astype("float32")
    bias = seed.normal(size=(outer, 1, 1) if convolution else (outer,)).astype("float32")
    step, out = draw(STEPS), draw(STEPS)
    out_dtype = draw(st.sampled_from(("int8", "uint8")))
    product = f"R.nn.conv2d(a, b, padding={draw(st.sampled_from((0, 1)))})" if convolution else "R.matmul(a, b)"
    module = text(
        f'x: R.Tensor({shape}, "{dtype}"), w: R.Tensor({kernel}, "{weight_dtype}"), '
        f's: R.Tensor({scales.shape}, "float32"), c: R.Tensor({bias.shape}, "float32")',
        f"a = R.dequantize(x, {step}, {zero})",
        f"b = R.dequantize(w, s, {middle}, axis={axis})",
        f"p = {product}",
        "q = R.add(p, c)",
        f"r = {draw(st.sampled_from(('q', 'R.nn.relu(q)', 'R.clip(q, -1.0, 6.0)')))}",
        f'y = R.quantize(r, {out}, {draw(st.integers(-8, 8))}, out_dtype="{out_dtype}")',
    )
    bound = BindParams("main", {"w": w, "s": scales, "c": bias})(module)
    return bound, [seed.integers(info.min, info.max + 1, shape).astype(dtype)]


@settings(max_examples=25, deadline=None)
@given(layers())
def test_integers_are_those_of_the_floats_up_to_a_step(case: tuple[IRModule, list[np.ndarray]]) -> None:
    module, arguments = case
    folded = run(module)
    weft.assert_structural_equal(parse(folded.script()), folded)
    assert " R.dequantize(" not in folded.script()
    wanted, got = (weft.interpret(item)["main"](*arguments) for item in (module, folded))
    assert got.dtype == wanted.dtype
    assert np.abs(got.astype("int32") - wanted.astype("int32")).max(initial=0) <= 1


@settings(max_examples=3, deadline=None)
@given(layers())
def test_compiled_integers_are_those_of_the_interpreter(case: tuple[IRModule, list[np.ndarray]]) -> None:
    module, arguments = case
    expected = weft.interpret(run(module))["main"](*arguments)
    np.testing.assert_array_equal(weft.compile(module)["main"](*arguments), expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(2.0**-40, 2.0**20), min_size=1, max_size=4), st.integers(-(2**31), 2**31 - 1))
def test_a_fixed_point_factor_is_the_nearest(factors: list[float], value: int) -> None:
    found = fixed_point(np.array(factors))
    assert found is not None
    multipliers, shift = found
    assert multipliers.dtype == np.int32
    for factor, multiplier in zip(factors, multipliers.tolist(), strict=True):
        assert abs(Fraction(multiplier, 1 << shift) - Fraction(factor)) <= Fraction(1, 1 << (shift + 1))
    module = text(
        'x: R.Tensor((1,), "int32")',
        f'y = R.requantize(x, {multipliers.tolist()[0]}, shift={shift}, out_dtype="int32")',
    )
    exact = round(Fraction(value * multipliers.tolist()[0], 1 << shift))  # halves to even
    got = weft.interpret(module)["main"](np.array([value], "int32"))[0]
    assert got == max(-(2**31), min(2**31 - 1, exact))


def test_sums_of_two_quantized_values_and_means_are_integers() -> None:
    module = text(
        'x: R.Tensor((1, 3, 4, 4), "int8"), z: R.Tensor((1, 3, 4, 4), "int8")',
        "k = R.const([[[[1]], [[2]], [[3]]], [[[4]], [[5]], [[-6]]], [[[7]], [[8]], [[9]]]], 'int8')",
        "w = R.dequantize(k, 0.01, 0)",
        "p = R.nn.conv2d(R.dequantize(x, 0.03, 2), w)",
        "r = R.nn.relu(R.add(p, R.dequantize(z, 0.07, -5)))",
        "q = R.dequantize(R.quantize(r, 0.05, -128), 0.05, -128)",
        "m = R.nn.adaptive_avg_pool2d(q, output_size=[1, 1])",
        "f = R.reshape(m, (1, 3))",
        "y = R.quantize(f, 0.04, -128)",
    )
    folded = run(module)
    assert "quantize(" not in folded.script().replace("R.requantize(", "")
    generator = np.random.default_rng(0)
    x, z = (generator.integers(-128, 128, (1, 3, 4, 4)).astype("int8") for _ in range(2))
    wanted, got = (weft.interpret(item)["main"](x, z) for item in (module, folded))
    assert np.abs(wanted.astype("int32") - got).max() <= 1
    np.testing.assert_array_equal(weft.compile(module)["main"](x, z), got)


def test_the_mean_of_a_sum_of_products_has_one_scale() -> None:
    module = text(
        'x: R.Tensor(("n", 2, 3, 3), "int8")',
        "k = R.const([[[[1]], [[2]]], [[[4]], [[5]]]], 'int8')",
        "w = R.dequantize(k, R.const([0.01, 0.07], 'float32'), 0, axis=0)",
        "r = R.nn.relu(R.nn.conv2d(R.dequantize(x, 0.03, 2), w))",
        "y = R.quantize(R.mean(r, axis=[2, 3]), 0.02, -128)",
    )
    folded = run(module)
    assert " R.quantize(" not in folded.script()
    x = np.random.default_rng(0).integers(-128, 128, (3, 2, 3, 3)).astype("int8")
    wanted, got = (weft.interpret(item)["main"](x) for item in (module, folded))
    assert np.abs(wanted.astype("int32") - got).max() <= 1


def test_an_unsigned_chain_becomes_signed_throughout() -> None:
    module = text(
        'x: R.Tensor((1, 1, 4, 4), "float32")',
        'q = R.quantize(x, 0.1, 10, out_dtype="uint8")',
        "d = R.dequantize(q, 0.1, 10)",
        "m = R.nn.max_pool2d(d, pool_size=[2, 2], strides=[2, 2])",
        'k = R.quantize(R.reshape(m, (1, 4)), 0.1, 10, out_dtype="uint8")',
        "v = R.dequantize(R.const([[1], [2], [3], [4]], 'int8'), 0.5, 0)",
        "y = R.matmul(R.dequantize(k, 0.1, 10), v)",
    )
    script = run(module).script()
    assert "uint8" not in script.split("def main")[1].split("decisions")[0]
    assert script.count("R.astype") == 0
    x = np.random.default_rng(1).normal(size=(1, 1, 4, 4)).astype("float32")
    np.testing.assert_allclose(
        weft.interpret(run(module))["main"](x), weft.interpret(module)["main"](x), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    "limit",
    [
        "R.minimum(R.maximum(s, R.const(0.5, 'float32')), R.const(3.0, 'float32'))",
        "R.maximum(R.const(0.5, 'float32'), R.minimum(R.const(3.0, 'float32'), s))",
        "R.clip(s, 0.5, 3.0)",
    ],
)
def test_limits_of_floats_are_limits_of_integers(limit: str) -> None:
    module = text(
        'x: R.Tensor((2, 3), "int8")',
        "s = R.dequantize(x, 0.125, 0)",
        f"r = {limit}",
        "y = R.quantize(r, 0.25, 0)",
    )
    new = run(module)
    assert "float32" not in without_decisions(new["main"]).script()
    x = np.array([[-90, 2, 4], [11, 24, 90]], "int8")
    expected = np.rint(np.clip(x * 0.125, 0.5, 3.0) / 0.25)
    assert np.array_equal(weft.interpret(new)["main"](x), expected)
