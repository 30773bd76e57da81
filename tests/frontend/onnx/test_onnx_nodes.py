"""Single nodes beside the reference implementation of ONNX: versions, dtypes and inputs that are rare, natively; and
what the reference itself has wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import weft
from weft.frontend import import_report

Sizes = Sequence[int | str]
RNG = np.random.default_rng(0)


def one_node(
    operator: str,
    inputs: Mapping[str, Any],
    *,
    constants: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Sizes] | None = None,
    outputs: int = 1,
    opset: int = 21,
    **attributes: Any,
) -> ModelProto:
    """A model of one node; the inputs are the arrays that it is run on, `sizes` what is said of their sizes."""
    constants, names = constants or {}, [f"y{index}" for index in range(outputs)]
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), (sizes or {}).get(name, array.shape)
        )
        for name, array in inputs.items()
    ]
    values = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    order = sorted((*inputs, *constants), key=lambda name: int(name[1:]))
    given = [f"x{index}" if f"x{index}" in order else "" for index in range(int(order[-1][1:]) + 1)]
    node = helper.make_node(operator, given, names, **attributes)
    results = [helper.make_tensor_value_info(name, 0, None) for name in names]
    graph = helper.make_graph([node], "graph", infos, results, values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def run(model: ModelProto, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """The results of a model in which nothing runs in Python."""
    module = weft.frontend.onnx.load(model)
    assert [row.why for row in module.import_report().fallbacks] == []
    results = weft.compile(module)["main"](*inputs.values())
    return list(results) if isinstance(results, tuple) else [results]


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "DFT along an axis of the run": ("DFT", {"x0": normal(3, 4, 5, 1), "x2": np.array(-3)}, {"opset": 20}),
    "DFT back, of half of it": (
        "DFT",
        {"x0": normal(2, 5, 2), "x2": np.array(1)},
        {"opset": 20, "inverse": 1, "onesided": 1},
    ),
    "DFT of a length of the run": ("DFT", {"x0": normal(2, 5, 2), "x1": np.array(7)}, {"opset": 20}),
    "STFT with a step of the run": (
        "STFT",
        {"x0": normal(2, 14, 1), "x1": np.array(3), "x2": normal(5)},
        {"opset": 17},
    ),
    "Col2Im with sizes of the run": (
        "Col2Im",
        {"x0": normal(1, 8, 6), "x1": np.array([4, 5]), "x2": np.array([2, 2])},
        {"strides": [2, 2], "pads": [0, 1, 0, 1]},
    ),
    "Split of an unknown size": (
        "Split",
        {"x0": normal(2, 7)},
        {"sizes": {"x0": (2, "n")}, "outputs": 3, "axis": 1, "num_outputs": 3},
    ),
    "CenterCropPad of unknown sizes": (
        "CenterCropPad",
        {"x0": normal(3, 6)},
        {"sizes": {"x0": ("n", "m")}, "constants": {"x1": np.array([6, 3])}},
    ),
    "Upsample of unknown sizes": (
        "Upsample",
        {"x0": normal(1, 2, 3, 4)},
        {
            "sizes": {"x0": (1, 2, "h", "w")},
            "constants": {"x1": np.array([1, 1, 2, 2], "float32")},
            "opset": 9,
            "mode": "nearest",
        },
    ),
    "Unique of booleans": ("Unique", {"x0": np.array([True, False, True])}, {"outputs": 4}),
    "Shrink of unsigned integers": ("Shrink", {"x0": np.array([0, 1, 5], "uint8")}, {"lambd": 1.0, "bias": 1.0}),
    "ReduceL2 of integers": ("ReduceL2", {"x0": np.array([[3, 4], [5, 12]])}, {"opset": 13, "axes": [1]}),
    "Gemm of integers with factors": (
        "Gemm",
        {"x0": np.array([[1, 2]]), "x1": np.array([[3], [4]]), "x2": np.array([7])},
        {"alpha": 2.0, "beta": 3.0},
    ),
    "Det of half precision": ("Det", {"x0": np.array([[[2, 1], [1, 2]]], "float16")}, {"opset": 22}),
}


@pytest.mark.parametrize("name", CASES)
def test_rare_forms_of_operators_are_native(name: str) -> None:
    operator, inputs, options = CASES[name]
    model = one_node(operator, inputs, **options)
    if operator == "Det":
        wanted: Any = [np.linalg.det(inputs["x0"].astype("float32")).astype("float16")]
    elif operator == "Upsample":
        wanted = [inputs["x0"].repeat(2, 2).repeat(2, 3)]
    elif operator == "ReduceL2":
        wanted = [np.array([[5], [13]])]
    else:
        wanted = ReferenceEvaluator(model).run(None, inputs)
    for a, b in zip(run(model, inputs), wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_rows_are_written_into_caches_of_unknown_sizes() -> None:
    inputs = {"x0": normal(2, 3, 6, 2), "x1": normal(2, 3, 2, 2), "x2": np.array([1, 5])}
    sizes = {"x0": ("b", 3, "m", 2), "x1": ("b", 3, "s", 2)}
    (found,) = run(one_node("TensorScatter", inputs, sizes=sizes, opset=24, mode="circular"), inputs)
    wanted = inputs["x0"].copy()
    wanted[0, :, [1, 2]], wanted[1, :, [5, 0]] = (update.transpose(1, 0, 2) for update in inputs["x1"])
    np.testing.assert_array_equal(found, wanted)


def test_operators_on_constants_are_computed_as_they_are_defined() -> None:
    """The reference has a pool of a constant, and a norm along the default axis, wrong."""
    x = normal(2, 3, 4, 5)
    zero = {"x9": np.zeros((), "float32")}
    (found,) = _beside_a_constant("GlobalMaxPool", x, zero)
    np.testing.assert_array_equal(found, x.max((2, 3), keepdims=True))
    (found,) = _beside_a_constant("LpNormalization", x, zero, p=1)
    np.testing.assert_allclose(found, x / np.abs(x).sum(-1, keepdims=True), rtol=1e-5)


def _beside_a_constant(operator: str, x: np.ndarray, inputs: Mapping[str, Any], **attributes: Any) -> list[np.ndarray]:
    nodes = [
        helper.make_node(operator, ["x0"], ["a"], **attributes),
        helper.make_node("Add", ["a", "x9"], ["y0"]),
    ]
    infos = [helper.make_tensor_value_info("x9", TensorProto.FLOAT, [])]
    results = [helper.make_tensor_value_info("y0", 0, None)]
    graph = helper.make_graph(nodes, "graph", infos, results, [numpy_helper.from_array(x, "x0")])
    return run(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), inputs)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_a_scalar_has_no_rows_of_positions(value: float) -> None:
    (found,) = run(one_node("NonZero", {"x0": np.float32(value)}), {"x0": np.float32(value)})
    assert (found.shape, found.dtype) == ((0, int(value != 0)), np.int64)


def test_means_of_layers_are_of_the_stated_dtype() -> None:
    inputs = {"x0": normal(2, 5).astype("float64"), "x1": normal(5).astype("float64")}
    y, mean, inverse = run(one_node("LayerNormalization", inputs, outputs=3), inputs)
    assert (y.dtype, mean.dtype, inverse.dtype) == (np.float64, np.float32, np.float32)
    np.testing.assert_allclose(mean, inputs["x0"].mean(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_loop_in_python_stacks_its_rows(times: int) -> None:
    """A loop that carries a sequence, without a condition; the reference takes that for a false one."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["still"]),
            helper.make_node("SequenceInsert", ["old", "x"], ["new"]),
            helper.make_node("Cast", ["step"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["x", "number"], ["row"]),
        ],
        "body",
        [
            info("step", TensorProto.INT64, []),
            info("going", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("old", TensorProto.FLOAT, None),
        ],
        [
            info("still", TensorProto.BOOL, []),
            helper.make_tensor_sequence_value_info("new", TensorProto.FLOAT, None),
            info("row", TensorProto.FLOAT, [2, 3]),
            info("number", TensorProto.FLOAT, []),
        ],
    )
    nodes = [
        helper.make_node("SequenceEmpty", [], ["empty"]),
        helper.make_node("Loop", ["times", "", "empty"], ["all", "rows", "numbers"], body=body),
    ]
    inputs = [info("times", TensorProto.INT64, []), info("x", TensorProto.FLOAT, [2, 3])]
    graph = helper.make_graph(nodes, "graph", inputs, [info(name, 0, None) for name in ("rows", "numbers")])
    module = weft.frontend.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    x = normal(2, 3)
    rows, numbers = weft.compile(module)["main"](np.array(times), x)
    np.testing.assert_array_equal(numbers, np.arange(times, dtype="float32"))
    np.testing.assert_array_equal(rows, x * np.arange(times, dtype="float32")[:, None, None])


@pytest.mark.parametrize("operator", ["GatherND", "ScatterND"])
def test_positions_of_what_is_not_zero_choose_elements(operator: str) -> None:
    """`x[mask]` and `x[mask] = u` as they are exported: the positions have as many columns as the mask has axes."""
    given = ["x", "rows", *(["u"] if operator == "ScatterND" else [])]
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        helper.make_node(operator, given, ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, 1, ["a", "b"] if name == "x" else ["k"]) for name in ("x", *given[2:])
    ]
    graph = helper.make_graph(nodes, "graph", inputs, [helper.make_tensor_value_info("y", 1, None)])
    module = weft.frontend.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    assert not import_report(module).fallbacks
    run = weft.compile(module)["main"]
    for shape in ((3, 4), (2, 5)):
        x = (np.arange(np.prod(shape)).reshape(shape) % 3).astype("float32")
        wanted, chosen = x.copy(), x != 0
        values = np.arange(chosen.sum(), dtype="float32")
        if operator == "ScatterND":
            wanted[chosen] = values
            np.testing.assert_array_equal(run(x, values), wanted)
        else:
            np.testing.assert_array_equal(run(x), x[chosen])
