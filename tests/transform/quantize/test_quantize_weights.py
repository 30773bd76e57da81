"""QuantizeWeights: matrices in few bits, their error, and what stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.transform import BindParams, FuseDequantizeMatmul, QuantizeWeights, parse_pipeline
from weft.transform.quantize.schemes import QuantizedMatrix, weight_scheme

MODEL = """
@R.function
def main(
    x: R.Tensor((3, 256), "float32"), w1: R.Tensor((384, 256), "float32"), b1: R.Tensor((384,), "float32"),
    w2: R.Tensor((384, 320), "float32"), w3: R.Tensor((320, 264), "float32"),
):
    hidden = R.linear(x, w1, b1)
    active = R.nn.silu(hidden)
    gate = R.matmul(active, w2)
    again = R.matmul(active, w2)
    head = R.matmul(R.add(gate, again), R.permute_dims(R.permute_dims(w3)))
    return head
"""


def model() -> weft.IRModule:
    choices = np.random.default_rng(0)
    shapes = {"w1": (384, 256), "b1": (384,), "w2": (384, 320), "w3": (320, 264)}
    weights = {name: (choices.normal(size=shape) / 16).astype("float32") for name, shape in shapes.items()}
    return BindParams("main", weights)(weft.IRModule({"main": weft.parse(MODEL)}))


def decibels(a: np.ndarray, b: np.ndarray) -> float:
    return float(20 * np.log10(np.linalg.norm(a) / np.linalg.norm(a - b)))


@pytest.mark.parametrize(
    ("scheme", "least"),
    [
        ("int8", 40),
        ("int8-channel", 36),
        ("int8-a8", 36),
        ("int4", 16),
        ("int4-affine", 16),
        ("int4-a8", 16),
        ("int4-g128-affine-a8-s32", 15),
        ("int2-g8-affine", 5),
    ],
)
def test_the_error_is_that_of_the_bits(scheme: str, least: float) -> None:
    module = model()
    x = np.random.default_rng(1).normal(size=(3, 256)).astype("float32")
    quantized = QuantizeWeights(scheme)(module)
    weft.assert_structural_equal(weft.parse(quantized.script()), quantized)
    exact, short = weft.interpret(module)["main"](x), weft.interpret(quantized)["main"](x)
    assert decibels(exact, short) > least
    if scheme in ("int8", "int4-a8"):
        run = weft.compile(quantized)
        assert decibels(short, run["main"](x)) > 55
        assert str(run.explain()).count("grouped-gemm") == 3  # two of the products are one


@pytest.mark.parametrize("scheme", ["int4", "int4-affine", "int8", "int2-affine-s32"])
def test_codes_are_the_nearest(scheme: str) -> None:
    """No other code is nearer to the weight, under the scale and zero point that are stored."""
    form = weight_scheme(scheme)
    matrix = np.random.default_rng(2).normal(size=(64, 5)).astype("float32")
    matrix[:32, 0] = 0
    found = QuantizedMatrix.of(matrix, form, 32)
    scale = np.repeat(found.scale.astype("float64"), 32, axis=0)
    zero = np.repeat(found.zero_point, 32, axis=0) if isinstance(found.zero_point, np.ndarray) else found.zero_point
    every = np.arange(1 << form.bits)[:, None, None]
    errors = np.abs((every - np.asarray(zero, "float64")) * scale - matrix)
    own = np.take_along_axis(errors, found.codes.astype("int64")[None], axis=0)[0]
    assert (own <= errors.min(axis=0) + 1e-6).all()
    assert (((found.codes.astype("float64") - zero) * scale)[:32, 0] == 0).all()


def test_names_choose_products_and_the_function_says_what_became_of_them() -> None:
    quantized = QuantizeWeights("int4", include=("hidden", "g*", "head"), exclude=("head",))(model())
    decided = {item["about"] for item in quantized["main"].attrs["decisions"]}
    assert decided == {"hidden", "gate"}
    assert quantized.script().count("R.dequantize") == 2
    one = QuantizeWeights("int4-a8")(model()).script()
    assert one.count("R.quantize_dynamic") == 3  # once for the two products that read one value


def test_what_cannot_be_shared_stays_as_it_is() -> None:
    text = """
@R.function
def main(x: R.Tensor((2, 5), "float32"), w: R.Tensor((5, 4), "float32")):
    y = R.matmul(x, w)
    return y
"""
    module = weft.IRModule({"main": weft.parse(text)})
    odd = BindParams("main", {"w": np.ones((5, 4), "float32")})(module)
    quantized = QuantizeWeights("int4")(odd)
    assert "R.dequantize" not in quantized.script()
    assert "too few weights share a divisor" in str(quantized["main"].attrs["decisions"])
    assert QuantizeWeights("int4")(module) is module  # an argument is no constant


@pytest.mark.parametrize("bad", ["int3", "int4-g4", "int4-g32-channel", "int4-b", "", 5])
def test_other_schemes_are_refused(bad: object) -> None:
    with pytest.raises(weft.PassError) as caught:
        QuantizeWeights(bad)  # type: ignore[arg-type]
    assert caught.value.code == "W570"
    with pytest.raises(weft.PassError) as caught:
        QuantizeWeights("int4", include=3)  # type: ignore[arg-type]
    assert caught.value.code == "W571"


def test_the_pass_has_a_text() -> None:
    item = QuantizeWeights("int4-a8", exclude=("head",))
    assert str(parse_pipeline(str(item))) == str(item) == "quantize-weights{scheme=int4-a8, exclude=[head]}"


TURNED = """
@R.function
def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((6, 8), "int8"), s: R.Tensor(SCALES, "float32")):
    d = R.dequantize(w, s, 3, axis=AXIS, group_size=GROUP)
    y = R.matmul(x, R.permute_dims(d))
    return y
"""


@pytest.mark.parametrize(
    ("scales", "axis", "group", "fused"),
    [((6, 2), 1, 4, True), ((6,), 0, 0, True), ((8,), 1, 0, False), ((3, 8), 0, 2, False)],
)
def test_scales_along_the_contracted_axis_or_the_columns_fuse(
    scales: tuple[int, ...], axis: int, group: int, fused: bool
) -> None:
    program = TURNED.replace("SCALES", str(scales)).replace("AXIS", str(axis)).replace("GROUP", str(group))
    module = weft.IRModule({"main": weft.parse(program)})
    choices = np.random.default_rng(3)
    weights = {
        "w": choices.integers(-9, 9, (6, 8)).astype("int8"),
        "s": choices.uniform(0.1, 1, scales).astype("float32"),
    }
    x = choices.normal(size=(2, 8)).astype("float32")
    want = weft.interpret(module)["main"](x, *weights.values())
    bound = BindParams("main", weights)(module)
    found = FuseDequantizeMatmul()(bound)
    assert ("R.matmul_dequantized" in found.script()) == fused
    np.testing.assert_allclose(weft.interpret(found)["main"](x), want, rtol=1e-5)
    assert (
        "R.matmul_dequantized" not in FuseDequantizeMatmul()(module).script()
    )  # the transpose would be made each time


def test_a_matrix_and_its_transpose_have_codes_of_their_own() -> None:
    """They are one array in memory, as tied embeddings are."""
    text = """
@R.function
def main(x: R.Tensor((2, 32), "float32"), w: R.Tensor((32, 32), "float32")):
    return R.matmul(R.matmul(x, w), R.permute_dims(w))
"""
    choices = np.random.default_rng(4)
    module = weft.IRModule({"main": weft.parse(text)})
    bound = BindParams("main", {"w": choices.normal(size=(32, 32)).astype("float32")})(module)
    x = choices.normal(size=(2, 32)).astype("float32")
    exact, short = (weft.interpret(form)["main"](x) for form in (bound, QuantizeWeights("int8")(bound)))
    assert decibels(exact, short) > 38
