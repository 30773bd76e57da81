"""weft.quantize: whole models, what stays in floats, the report, and wrong input."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest

import weft
from weft import transform
from weft.errors import MissingExtraError, PassError
from weft.ir import Function, IRModule
from weft.transform import FoldQuantizeDequantize

NET = """
@R.function
def main(
    x: R.Tensor(("n", 3, 6, 6), "float32"), w1: R.Tensor((8, 3, 3, 3), "float32"), b1: R.Tensor((8, 1, 1), "float32"),
    w2: R.Tensor((8, 8, 3, 3), "float32"), w3: R.Tensor((5, 8), "float32"), b3: R.Tensor((5,), "float32"),
):
    with R.dataflow():
        stem = R.nn.relu(R.nn.conv2d(x, w1, padding=1) + b1)
        pool = R.nn.max_pool2d(stem, pool_size=[2, 2], strides=[2, 2])
        inner = R.nn.conv2d(pool, w2, padding=1)
        total = R.nn.relu(inner + pool)
        mean = R.mean(total, axis=[2, 3])
        y = R.matmul(mean, R.permute_dims(w3)) + b3
        R.output(y)
    return y
"""


def function(text: str) -> Function:
    found = weft.parse(text)
    assert isinstance(found, Function)
    return found


def weights() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = {"w1": (8, 3, 3, 3), "b1": (8, 1, 1), "w2": (8, 8, 3, 3), "w3": (5, 8), "b3": (5,)}
    return {name: (generator.normal(size=shape) / 4).astype("float32") for name, shape in shapes.items()}


def net() -> IRModule:
    return weft.transform.BindParams("main", weights())(IRModule({"main": function(NET)}))


def images(count: int = 3, size: int = 2) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    return [generator.normal(size=(size, 3, 6, 6)).astype("float32") for _ in range(count)]


def quantize(*args: Any, **options: Any) -> IRModule:
    """The model with every layer on integers: those of these tests are too small to gain from it."""
    return weft.quantize(*args, **{"force": "*", **options})


def error(exact: np.ndarray, short: np.ndarray) -> float:
    return float(np.linalg.norm(exact - short) / np.linalg.norm(exact))


@pytest.fixture(scope="module")
def quantized() -> IRModule:
    return quantize(net(), images())


def test_a_network_is_integers_throughout_and_near_the_floats(quantized: IRModule) -> None:
    script = quantized.script()
    weft.assert_structural_equal(weft.parse(script), quantized)
    code = [line for line in script.splitlines() if "=" in line and "func_attr" not in line]
    between = [line for line in code if "R.Tensor((n" in line and '"float32")' in line.split(" = ")[0]]
    assert len(between) == 2  # the last product as floats, and its bias
    x = images(5)[-1]
    exact, short = weft.interpret(net())["main"](x), weft.interpret(quantized)["main"](x)
    assert error(exact, short) < 0.03
    np.testing.assert_allclose(weft.compile(quantized)["main"](x), short, rtol=1e-5, atol=1e-6)


def test_the_report_tells_of_each_layer(quantized: IRModule) -> None:
    report = quantized.quantization_report()
    assert [layer.name for layer in report.layers] == ["stem", "inner", "y"]
    assert all(layer.dtype == "int8" and layer.decibels > 30 for layer in report.layers)
    assert all(layer.worst_decibels <= layer.decibels + 1e-6 for layer in report.layers)
    assert report.share == 1.0
    assert 0 < report.drop < 0.03
    first = report.layers[0]
    assert (first.bytes_before, first.bytes_after) == (8 * 27 * 4, 8 * 27 + 8 * 4)
    assert first.operations == 2 * 27 * 2 * 8 * 36
    told = json.loads(report.to_json())
    assert told["layers"][1]["name"] == "inner"
    assert str(report).splitlines()[0].startswith("int8: 3 of 3 layers, 100.0 % of operations; weights ")


def test_the_noise_is_that_of_the_layer_alone(quantized: IRModule) -> None:
    """The ratio of the first layer, computed with NumPy."""
    x, w = np.concatenate(images()), weights()["w1"]
    scale = np.float32((x.max() - x.min()) / 255)
    zero = np.rint(-128 - x.min() / scale)
    rounded = (np.clip(np.rint(x / scale) + zero, -128, 127) - zero) * scale
    steps = np.abs(w).max(axis=(1, 2, 3), keepdims=True) / np.float32(127)
    conv = function(
        "@R.function\ndef main(x: R.Tensor((6, 3, 6, 6), 'float32'), w: R.Tensor((8, 3, 3, 3), 'float32')):\n"
        "    y = R.nn.conv2d(x, w, padding=1)\n    return y"
    )
    run = weft.interpret(IRModule({"main": conv}))["main"]
    exact, short = run(x, w), run(rounded.astype("float32"), (np.rint(w / steps) * steps).astype("float32"))
    wanted = 10 * np.log10((exact**2).sum() / ((exact - short) ** 2).sum())
    assert quantized.quantization_report().layers[0].decibels == pytest.approx(wanted, abs=0.1)


def test_qdq_form_means_the_same_and_folds_when_it_is_compiled() -> None:
    model = quantize(net(), images(), form="qdq")
    script = model.script()
    assert script.count("R.quantize(") == 4  # what three layers read, and the mean; the sum reads what `inner` does
    assert "R.requantize(" not in script
    weft.assert_structural_equal(weft.parse(script), model)
    x = images()[0]
    np.testing.assert_allclose(
        weft.compile(model)["main"](x), weft.compile(FoldQuantizeDequantize()(model))["main"](x), rtol=1e-5, atol=1e-6
    )


def test_layers_stay_in_floats_until_the_drop_is_small_enough() -> None:
    free = quantize(net(), images()).quantization_report()
    limit = free.drop * 0.8
    model = quantize(net(), images(), max_drop=limit)
    report = model.quantization_report()
    assert report.drop <= limit
    kept = [layer for layer in report.layers if layer.dtype == "float32"]
    assert kept
    assert kept[0].reason == "with it the drop is above max_drop"
    assert all(layer.bytes_after == layer.bytes_before for layer in kept)
    least = min(report.layers, key=lambda layer: layer.decibels or 0)
    assert least in kept
    none = quantize(net(), images(), max_drop=0.0)
    assert not none.quantization_report().quantized
    assert "quantize" not in none.script()


def test_a_metric_of_all_results_says_what_a_drop_is() -> None:
    seen: list[int] = []

    def metric(results: list[Any]) -> float:
        seen.append(len(results))
        return -float(np.abs(results[0]).sum())

    report = quantize(net(), images(), metric=metric).quantization_report()
    assert set(seen) == {3}
    assert report.metric_before is not None
    assert report.metric_after is not None
    assert report.drop == pytest.approx(report.metric_before - report.metric_after)


@pytest.mark.parametrize("scheme", ["int8-symmetric", "int8-tensor", "int8-percentile99.9", "int8-symmetric-entropy"])
def test_every_scheme_gives_a_model(scheme: str) -> None:
    model = quantize(net(), images(), scheme)
    x = images()[0]
    assert error(weft.interpret(net())["main"](x), weft.interpret(model)["main"](x)) < 0.15


def test_names_leave_layers_out_and_data_comes_by_name() -> None:
    model = quantize(IRModule({"main": function(NET)}), [{"x": images()[0]}], params=weights(), exclude="inn*")
    layers = model.quantization_report().layers
    assert [layer.dtype for layer in layers] == ["int8", "float32", "int8"]
    assert layers[1].reason == "excluded"


def test_two_activations_multiply_as_integers() -> None:
    text = """
@R.function
def main(q: R.Tensor((2, "t", 8), "float32"), k: R.Tensor((2, 4, 8), "float32"), w: R.Tensor((2, 4), "float32")):
    scores = R.matmul(q, R.permute_dims(k, axes=[0, 2, 1]))
    y = R.linear(R.nn.softmax(scores), w)
    return y
"""
    generator = np.random.default_rng(0)
    items = [tuple(generator.normal(size=(2, t, 8)).astype("float32") for t in (size, 4)) for size in (3, 5)]
    model = quantize(function(text), items, params={"w": generator.normal(size=(2, 4)).astype("float32")})
    assert [layer.operator for layer in model.quantization_report().quantized] == ["matmul", "linear"]
    assert model.script().count('out_dtype="int32"') == 2


SMALL = "@R.function\ndef main(x: R.Tensor((1, 2), 'float32')):\n    y = {}\n    return y"
ONE = np.ones((1, 2), "float32")


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        ({"scheme": "int3"}, "W580", "there is no scheme 'int3' for models"),
        ({"scheme": "int8-percentile20"}, "W580", "no percentile"),
        ({"scheme": 8}, "W580", "there is no scheme"),
        ({"data": []}, "W581", "nothing to observe"),
        ({"data": 3}, "W581", "data is an iterable of arguments"),
        ({"data": {"x": ONE}}, "W581", "data is an iterable of arguments"),
        ({"data": [{"z": ONE}]}, "W582", "'z', which is no parameter"),
        ({"data": [{}]}, "W582", "lacks x"),
        ({"data": [(ONE, ONE)]}, "W582", "2 arguments for 1 parameter"),
        ({"data": [ONE, ONE * np.nan]}, "W583", "item 1 of data has nan in x"),
        ({"max_drop": -1}, "W586", "max_drop"),
        ({"metric": 3}, "W586", "metric"),
        ({"form": "float"}, "W586", "form is 'integer' or 'qdq', got 'float'"),
        ({"costs": "guessed"}, "W586", "costs is 'estimated' or 'measured', got 'guessed'"),
        ({"costs": "measured", "target": "llvm"}, "W586", "costs are measured on this machine"),
        ({"force": 3}, "W571", "force"),
        ({"exclude": 3}, "W571", "exclude"),
        ({"exclude": "*"}, "W585", "nothing to quantize"),
        ({"model": "R.nn.relu(x)"}, "W585", "nothing to quantize"),
        ({"model": "R.dequantize(R.quantize(x, 1.0, 0), 1.0, 0)"}, "W584", "quantized already: it holds R.dequantize"),
    ],
)
def test_wrong_input_has_one_clear_error(change: dict[str, Any], code: str, says: str) -> None:
    product = 'R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0]], "float32"))'
    given = {"model": product, "data": [ONE], **change}
    model, data = function(SMALL.format(given.pop("model"))), given.pop("data")
    with pytest.raises(PassError, match=says) as caught:
        quantize(model, data, **given)
    assert caught.value.code == code


def test_wrong_shapes_name_the_item() -> None:
    with pytest.raises(weft.WeftError) as caught:
        quantize(net(), [images()[0], np.ones((1, 3, 6), "float32")])
    assert "in item 1 of data" in str(caught.value)
    with pytest.raises(weft.WeftError) as caught:
        quantize(net(), [images()[0].astype("float64")])
    assert "in item 0 of data" in str(caught.value)


def test_a_model_without_the_function_and_a_module_without_a_report() -> None:
    with pytest.raises(PassError, match="a graph function 'main'") as caught:
        quantize(IRModule({}), [ONE])
    assert caught.value.code == "W585"
    with pytest.raises(PassError, match=r"weft\.quantize did not return it") as caught:
        net().quantization_report()
    assert caught.value.code == "W586"


def test_values_that_are_not_finite_keep_their_layer_in_floats() -> None:
    text = """
@R.function
def main(x: R.Tensor((2, 2), "float32"), v: R.Tensor((2, 2), "float32")):
    m = R.where(R.greater(x, R.const(0.0, "float32")), x, R.const(-float("inf"), "float32"))
    a = R.matmul(m, v)
    y = R.matmul(R.nn.relu(R.matmul(x, v)), v)
    return (a, y)
"""
    x = np.array([[1, -1], [2, 3]], "float32")
    report = quantize(function(text), [x], params={"v": np.abs(x)}).quantization_report()
    assert report.layers[0].dtype == "float32"
    assert "finite" in report.layers[0].reason
    assert all(layer.dtype == "int8" for layer in report.layers[1:])


def test_layers_that_integers_make_slower_stay_in_floats_unless_forced() -> None:
    text = """
@R.function
def main(x: R.Tensor((1, 32, 28, 28), "float32"), w: R.Tensor((32, 1, 3, 3), "float32"),
         v: R.Tensor((64, 32, 3, 3), "float32")):
    deep = R.nn.conv2d(x, w, padding=1, groups=32)
    y = R.nn.conv2d(R.nn.relu(deep), v)
    return y
"""
    generator = np.random.default_rng(0)
    bound = {"w": (32, 1, 3, 3), "v": (64, 32, 3, 3)}
    params = {name: generator.normal(size=shape).astype("float32") for name, shape in bound.items()}
    x = generator.normal(size=(1, 32, 28, 28)).astype("float32")

    def dtypes(**options: Any) -> list[str]:
        layers = weft.quantize(function(text), [x], params=params, **options).quantization_report().layers
        assert all(layer.float_ms is None or layer.float_ms > 0 for layer in layers)
        slower = [layer for layer in layers if layer.dtype == "float32"]
        assert all(layer.reason.startswith("slower: int8 ") for layer in slower)
        return [layer.dtype for layer in layers]

    server, board = "llvm -mcpu=sapphirerapids", "llvm -mcpu=cortex-m4"
    assert dtypes(target=server) == ["float32", "int8"]
    assert dtypes(target=server, force="deep") == ["int8", "int8"]
    assert dtypes(target=board) == ["int8", "int8"]  # small processors have no estimate: integers spare memory


def test_costs_are_measured_on_request() -> None:
    report = weft.quantize(net(), images(1), costs="measured").quantization_report()
    assert all(layer.float_ms is not None and layer.int8_ms is not None for layer in report.layers)
    assert all(layer.float_ms > 0 and layer.int8_ms > 0 for layer in report.layers)
    assert all((layer.int8_ms > layer.float_ms) == (layer.dtype == "float32") for layer in report.layers)
    assert all(layer.reason.endswith("measured") for layer in report.layers if layer.dtype == "float32")


def test_transposed_convolutions_are_integers() -> None:
    text = """
@R.function
def main(x: R.Tensor(("n", 3, 5, 5), "float32"), w: R.Tensor((3, 4, 3, 3), "float32"),
         v: R.Tensor((4, 2, 2, 2), "float32"), g: R.Tensor((2, 1, 2, 2), "float32")):
    up = R.nn.relu(R.nn.conv2d_transpose(x, w, strides=2, padding=1, output_padding=1))
    wide = R.nn.conv2d_transpose(up, v, strides=2)
    y = R.nn.conv2d_transpose(wide, g, groups=2)
    return y
"""
    generator = np.random.default_rng(0)
    bound = {"w": (3, 4, 3, 3), "v": (4, 2, 2, 2), "g": (2, 1, 2, 2)}
    params = {name: generator.normal(size=shape).astype("float32") for name, shape in bound.items()}
    x = generator.normal(size=(2, 3, 5, 5)).astype("float32")
    model = quantize(function(text), [x], params=params)
    layers = model.quantization_report().layers
    assert [layer.dtype for layer in layers] == ["int8", "int8", "float32"]
    assert "in groups" in layers[2].reason
    assert model.script().count('out_dtype="int32"') == 2
    exact = weft.interpret(transform.BindParams("main", params)(IRModule({"main": function(text)})))["main"](x)
    short = weft.interpret(model)["main"](x)
    assert error(exact, short) < 0.03
    np.testing.assert_allclose(weft.compile(model)["main"](x), short, rtol=1e-5, atol=1e-6)


PARTS = """
@I.ir_module
class Net:
    @R.function(private=True)
    def block(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        y = R.nn.relu(R.matmul(x, w))
        return y

    @R.function(private=True)
    def again(x: R.Tensor((2, 8), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((2, 8), "float32"):
        cls = Net
        if R.less(n, R.const(1, "int64")):
            r = x
        else:
            kept = R.matmul(x, R.permute_dims(x)) @ x
            r = cls.again(kept, R.subtract(n, R.const(1, "int64")))
        return r

    @R.function
    def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 8), "float32"), n: R.Tensor((), "int64")):
        cls = Net
        a = cls.block(x, w)
        b = cls.block(a, w)
        if R.less(n, R.const(3, "int64")):
            inner = R.matmul(b, w)
            c = inner
        else:
            c = b
        for i in range(100):
            c = R.matmul(c, w)
        d = cls.again(c, n)
        return d
"""


def test_private_functions_are_quantized_and_branches_and_loops_say_why_not() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2, 8)).astype("float32")
    w = np.linalg.qr(generator.normal(size=(8, 8)))[0].astype("float32")
    module = weft.parse(PARTS)
    assert isinstance(module, IRModule)
    model = quantize(module, [(x, np.asarray(0))], params={"w": w})
    layers = model.quantization_report().layers
    assert [layer.dtype for layer in layers] == ["int8", "int8", *["float32"] * 4]
    reasons = [layer.reason for layer in layers[2:]]
    assert sum("in a branch" in reason for reason in reasons) == 1
    assert sum("in a loop" in reason for reason in reasons) == 1
    assert sum("by the function again" in reason for reason in reasons) == 2
    assert layers[-1].name.startswith("again.")
    exact = weft.interpret(transform.BindParams("main", {"w": w})(module))["main"](x, np.asarray(0))
    assert error(exact, weft.interpret(model)["main"](x, np.asarray(0))) < 0.03


def test_a_plot_needs_matplotlib(quantized: IRModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError) as caught:
        quantized.quantization_report().plot()
    assert "weft[plot]" in str(caught.value)
