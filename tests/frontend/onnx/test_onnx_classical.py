"""Classical models (domain ai.onnx.ml): native rows beside the reference, and what runs in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import weft
from weft.frontend import import_report
from weft.frontend.onnx.reference.bodies import coupled_probabilities

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(7, 4)), 2).astype("float32")
ML = "ai.onnx.ml"


def given(operator: str, x: np.ndarray, outputs: int = 1, **attributes: Any) -> Any:
    """A model of one node on one input, whose first size is a symbol."""
    names = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, ["x"], names, domain=ML, **attributes)
    ty = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["n", *x.shape[1:]])
    graph = helper.make_graph([node], operator, [ty], [helper.make_empty_tensor_value_info(name) for name in names])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)])


def trees(
    kind: str, columns: int, count: int = 3, *, mode: str = "BRANCH_LEQ", missing: bool = False
) -> dict[str, Any]:
    """The attributes of random trees of at most three levels; nodes are numbered apart from their places."""
    made: dict[str, list[Any]] = {
        name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for node in range(7):
            leaf = node > 2 or (node == 2 and tree == 1)
            below = (2 * node + 1, 2 * node + 2) if not leaf else (0, 0)
            value = float(np.round(RNG.normal(), 1))
            told = (tree, node, int(RNG.integers(4)), value, "LEAF" if leaf else mode, *below)
            for name, item in zip(made, told, strict=True):
                made[name].append(item)
            for column in range(columns) if leaf else ():
                for name, item in zip(leaves, (tree, node, column, float(RNG.random())), strict=True):
                    leaves[name].append(item)
    named: dict[str, Any] = {f"nodes_{name}": value for name, value in made.items()}
    named.update({f"{kind}_{name}": value for name, value in leaves.items()})
    if missing:
        named["nodes_missing_value_tracks_true"] = [int(item) for item in RNG.integers(0, 2, 7 * count)]
    return named


WITH_NAN = np.where(RNG.random(X.shape) < 0.3, np.float32("nan"), X)
NATIVE: dict[str, Any] = {
    "scaler": given("Scaler", X, offset=[1.0, 2.0, 3.0, 4.0], scale=[0.5]),
    "max": given("Normalizer", X, norm="MAX"),
    "l1": given("Normalizer", X, norm="L1"),
    "l2": given("Normalizer", X, norm="L2"),
    "binarizer": given("Binarizer", X, threshold=0.25),
    "imputer": given("Imputer", WITH_NAN, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan")),
    "regressor": given("LinearRegressor", X, coefficients=list(range(8)), intercepts=[0.5, -0.5], targets=2),
    "classes": given(
        "LinearClassifier", X, 2, coefficients=[0.1 * i for i in range(12)], intercepts=[0.0, 1.0, 2.0],
        classlabels_ints=[4, 5, 9], post_transform="SOFTMAX",
    ),
    "two classes": given(
        "LinearClassifier", X, 2, coefficients=[1.0, -1.0, 0.5, 2.0], intercepts=[0.1],
        classlabels_ints=[3, 7], post_transform="LOGISTIC",
    ),
    "names": given(
        "LinearClassifier", X, 2, coefficients=[0.1 * i for i in range(8)], intercepts=[0.0, 1.0],
        classlabels_strings=["no", "yes"], post_transform="NONE",
    ),
    "trees": given("TreeEnsembleRegressor", X, n_targets=2, base_values=[1.0, 2.0], **trees("target", 2)),
    "mean of trees": given("TreeEnsembleRegressor", X, n_targets=1, aggregate_function="AVERAGE", **trees("target", 1)),
    "trees below": given("TreeEnsembleRegressor", X, n_targets=1, **trees("target", 1, mode="BRANCH_LT")),
    "missing": given("TreeEnsembleRegressor", WITH_NAN, n_targets=1, **trees("target", 1, missing=True)),
    "forest": given("TreeEnsembleClassifier", X, 2, classlabels_int64s=[1, 4, 8], **trees("class", 3)),
    "forest of names": given("TreeEnsembleClassifier", X, 2, classlabels_strings=["a", "b"], **trees("class", 2)),
    "one score": given(
        "TreeEnsembleClassifier", X, 2, classlabels_int64s=[0, 1], post_transform="LOGISTIC", **trees("class", 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_rows_are_what_the_reference_gives(name: str) -> None:
    model = NATIVE[name]
    x = WITH_NAN if name in ("imputer", "missing") else X
    module = weft.frontend.onnx.load(model)
    assert not import_report(module).fallbacks
    found = weft.interpret(module)["main"](x)
    wanted = ReferenceEvaluator(model).run(None, {"x": x})
    for own, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        other = np.asarray(other)
        if other.dtype.kind == "U":
            assert np.asarray(own).astype(str).tolist() == other.tolist()
        else:
            assert own.dtype == (np.int64 if other.dtype.kind == "i" else np.float32)
            np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("operator", "x", "attributes"),
    [
        ("LabelEncoder", np.array([3, 5, 3, 8]), {"keys_int64s": [8, 3], "values_floats": [0.5, 1.5]}),
        ("LabelEncoder", np.array([1.5, 2.5], "float32"), {"keys_floats": [2.5], "values_int64s": [4]}),
        ("OneHotEncoder", np.array([[1, 5], [2, 9]]), {"cats_int64s": [1, 2, 5]}),
        ("Imputer", np.array([[1, -1], [-1, 9]]), {"imputed_value_int64s": [7], "replaced_value_int64": -1}),
    ],
)
def test_encoders_of_numbers_are_native(operator: str, x: np.ndarray, attributes: dict[str, Any]) -> None:
    model = given(operator, x, **attributes)
    module = weft.frontend.onnx.load(model)
    assert not import_report(module).fallbacks
    found, wanted = weft.interpret(module)["main"](x), ReferenceEvaluator(model).run(None, {"x": x})[0]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_a_forest_is_compiled_once_for_any_number_of_rows() -> None:
    main = weft.compile(weft.frontend.onnx.load(NATIVE["forest"]))["main"]
    for rows in (0, 1, 7):
        labels, scores = main(X[:rows])
        wanted = ReferenceEvaluator(NATIVE["forest"]).run(None, {"x": X[:rows]}) if rows else [np.zeros(0), X[:0, :3]]
        np.testing.assert_array_equal(labels, wanted[0])
        np.testing.assert_allclose(scores, wanted[1], rtol=1e-6)


def test_maps_are_values_of_python() -> None:
    zipped = weft.compile(weft.frontend.onnx.load(given("ZipMap", X[:, :2], classlabels_strings=["a", "b"])))["main"]
    assert zipped(np.array([[0.25, 0.75]], "float32")) == [{"a": 0.25, "b": 0.75}]
    mapped = given("CategoryMapper", np.array([1]), cats_int64s=[1, 2], cats_strings=["one", "two"])
    assert weft.interpret(weft.frontend.onnx.load(mapped))["main"](np.array([2, 1, 5])).tolist() == [
        "two", "one", "_Unused",
    ]  # fmt: skip


def test_initial_values_that_are_strings_pass_through() -> None:
    texts = numpy_helper.from_array(np.array(["a", "b", "c"], object), "texts")
    node = helper.make_node("ArrayFeatureExtractor", ["texts", "i"], ["y"], domain=ML)
    place = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    graph = helper.make_graph([node], "g", [place], [helper.make_empty_tensor_value_info("y")], [texts])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)])
    found = weft.compile(weft.frontend.onnx.load(model))["main"](np.array([2, 0]))
    assert np.asarray(found).astype(str).tolist() == [["c", "a"]]


def test_probabilities_of_pairs_are_coupled() -> None:
    chances = np.array([0.5, 0.3, 0.2])
    pairs = chances[:, None] / (chances[:, None] + chances)
    np.fill_diagonal(pairs, 0)
    np.testing.assert_allclose(coupled_probabilities(pairs), chances, atol=2e-3)
