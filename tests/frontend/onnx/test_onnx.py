"""ONNX models as modules: values, sizes, names, the report, and what is refused. The node tests of ONNX itself run in
`make test-frontends` (node_tests.py)."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from weft.frontend import import_report
from weft.frontend.onnx.importer import Importer
from weft.frontend.onnx.model import read_model
from weft.frontend.onnx.table import DEFINED, REASONS, TABLE

F, I64 = TensorProto.FLOAT, TensorProto.INT64


def model(
    nodes: Sequence[Any],
    inputs: dict[str, Any],
    outputs: Sequence[str],
    values: dict[str, Any] | None = None,
    opset: int = 21,
    **options: Any,
) -> Any:
    """A model; inputs are shapes of float32, or (element type, shape)."""
    made = []
    for name, given in inputs.items():
        element, shape = given if isinstance(given, tuple) else (F, given)
        made.append(helper.make_tensor_value_info(name, element, shape))
    results = [helper.make_tensor_value_info(name, 0, None) for name in outputs]
    initial = [numpy_helper.from_array(np.asarray(array), name) for name, array in (values or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", made, results, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **options)


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def main_of(module: weft.IRModule) -> Any:
    """The function of an imported module."""
    return module["main"]


def rows() -> Any:
    """A projection whose result is reshaped by sizes that the model computes."""
    nodes = [
        node("MatMul", "x w", "a", name="project"),
        node("Shape", "a", "s"),
        node("Gather", "s zero", "b"),
        node("Unsqueeze", "b front", "b1"),
        node("Concat", "b1 rest", "sizes", axis=0),
        node("Reshape", "a sizes", "r"),
        node("Relu", "r", "y"),
    ]
    values = {"w": np.ones((4, 3), "float32"), "zero": np.array(0), "front": np.array([0]), "rest": np.array([-1])}
    return model(nodes, {"x": ["batch", 2, 4]}, ["y"], values)


def test_a_shape_subgraph_leaves_nothing_at_run_time() -> None:
    module = weft.frontend.onnx.load(rows())
    report = module.import_report()
    assert "shape_of" not in module.script()
    assert [row.how for row in report.nodes].count("known") == 4
    assert report.native_share == 1.0
    main = weft.compile(module)["main"]
    for size in (1, 5):
        x = np.arange(size * 8, dtype="float32").reshape(size, 2, 4) - 4
        np.testing.assert_allclose(main(x), np.maximum(x @ np.ones((4, 3)), 0).reshape(size, 6))


def test_the_text_of_an_imported_module_reads_back() -> None:
    module = weft.frontend.onnx.load(rows())
    assert weft.structural_equal(weft.parse(module.script()), module)


def test_a_model_is_a_path_bytes_a_file_or_a_message(tmp_path: Path) -> None:
    proto = rows()
    path = tmp_path / "rows.onnx"
    path.write_bytes(proto.SerializeToString())
    forms = [proto, path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes())]
    modules = [weft.frontend.onnx.load(form) for form in forms]
    assert all(weft.structural_equal(modules[0], module) for module in modules)


def test_large_arrays_stay_in_the_file(tmp_path: Path) -> None:
    w = np.random.default_rng(0).normal(size=(130, 140)).astype("float32")
    proto = model(
        [node("MatMul", "x w", "a"), node("MatMul", "a small", "y")],
        {"x": ["n", 130]},
        ["y"],
        {"w": w, "small": np.ones((140, 2), "float32")},
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    for given in (path, proto.SerializeToString()):
        read = read_model(given)
        assert list(read.arrays) == [0]
        assert not read.proto.graph.initializer[0].raw_data
        arrays = weft.frontend.onnx.parameters(given)
        np.testing.assert_array_equal(arrays["w"], w)
        assert weft.structural_equal(weft.frontend.onnx.load(given), weft.frontend.onnx.load(proto))
    cut = proto.SerializeToString()
    with pytest.raises(weft.ModelError):
        weft.frontend.onnx.load(cut[: len(cut) // 2])
    with pytest.raises(weft.ModelError, match="W973"):
        weft.frontend.onnx.load(tmp_path)


def test_weights_may_be_parameters() -> None:
    module = weft.frontend.onnx.load(
        model([node("MatMul", "x w", "y")], {"x": ["n", 32]}, ["y"], {"w": np.ones((32, 3), "float32")}),
        weights="parameters",
    )
    assert [param.name for param in main_of(module).params] == ["x", "w"]
    w = np.full((32, 3), 2, "float32")
    np.testing.assert_allclose(weft.compile(module)["main"](np.ones((2, 32), "float32"), w), np.full((2, 3), 64))


def test_named_sizes_are_one_symbol_and_expressions_of_them() -> None:
    proto = model([node("Concat", "past x", "y", axis=0)], {"past": ["past"], "x": ["n"], "mask": ["past + n"]}, ["y"])
    module = weft.frontend.onnx.load(proto)
    assert 'mask: R.Tensor(("n + past",)' in module.script() or 'mask: R.Tensor(("past + n",)' in module.script()


def test_variables_have_the_names_of_the_model() -> None:
    proto = model([node("Relu", "x", "/layer.0/act"), node("Exp", "/layer.0/act", "y")], {"x": [2]}, ["y"])
    assert "layer_0_act: R.Tensor" in weft.frontend.onnx.load(proto).script()


def test_an_error_of_the_run_shows_the_node() -> None:
    proto = model([node("Gather", "x i", "y", name="pick")], {"x": ["n"], "i": (I64, ["m"])}, ["y"])
    main = weft.compile(weft.frontend.onnx.load(proto))["main"]
    with pytest.raises(weft.BoundsError) as caught:
        main(np.ones(3, "float32"), np.array([7]))
    assert "y = Gather(x, i)" in str(caught.value)


@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize("axes", [[1], [-1, 0], [0, 1, 2]])
def test_axes_that_only_the_run_knows_are_native(axes: list[int], keeps: int) -> None:
    proto = model(
        [node("ReduceSum", "x axes", "y", keepdims=keeps)], {"x": ["n", 3, "m"], "axes": (I64, [len(axes)])}, ["y"]
    )
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    found = weft.interpret(module)["main"](x, np.array(axes))
    np.testing.assert_allclose(found, x.sum(tuple(axes), keepdims=bool(keeps)), rtol=1e-5)


@pytest.mark.parametrize(("operator", "noop"), [("ReduceSum", 0), ("ReduceL2", 1), ("ReduceLogSumExp", 1)])
def test_axes_of_the_run_that_are_known_to_be_none(operator: str, noop: int) -> None:
    axes = node(operator, "x axes", "y", noop_with_empty_axes=noop, keepdims=0)
    module = weft.frontend.onnx.load(model([axes], {"x": ["n", 3], "axes": (I64, [0])}, ["y"]))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    wanted = x.sum() if not noop else np.abs(x) if operator == "ReduceL2" else x
    np.testing.assert_allclose(weft.interpret(module)["main"](x, np.zeros(0, "int64")), wanted, rtol=1e-5)


def test_repeats_of_the_run_may_be_none() -> None:
    proto = model([node("Tile", "x times", "y")], {"x": ["n", 2, 4], "times": (I64, [3])}, ["y"])
    run = weft.interpret(weft.frontend.onnx.load(proto))["main"]
    for times in ((0, 2, 0), (2, 1, 3)):
        x = np.ones((3, 2, 4), "float32")
        np.testing.assert_array_equal(run(x, np.array(times)), np.tile(x, times))


def test_a_mean_of_integers_is_rounded_toward_zero() -> None:
    proto = model([node("ReduceMean", "x", "y", keepdims=0)], {"x": (I64, ["n"])}, ["y"])
    run = weft.interpret(weft.frontend.onnx.load(proto))["main"]
    assert [int(run(np.array([3, 4]))), int(run(np.array([-3, -4])))] == [3, -3]


@pytest.mark.parametrize("column_major", [0, 1])
def test_indices_of_a_pool_are_places_in_the_whole_tensor(column_major: int) -> None:
    options = {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1], "storage_order": column_major}
    proto = model([node("MaxPool", "x", "y i", **options)], {"x": ["n", 3, "h", 5]}, ["y", "i"])
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    x = np.random.default_rng(0).permutation(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype("float32")
    values, indices = weft.compile(module)["main"](x)
    flat = (x.transpose(0, 1, 3, 2) if column_major else x).reshape(-1)
    np.testing.assert_array_equal(flat[indices], values)
    np.testing.assert_array_equal(values.shape, (2, 3, 2, 3))


def test_what_has_no_native_form_runs_in_python_and_says_why() -> None:
    nodes = [node("GridSample", "x grid", "g", name="sampled", align_corners=1), node("Exp", "g", "y")]
    module = weft.frontend.onnx.load(model(nodes, {"x": ["n", 1, 4], "grid": ["n", 3, 1]}, ["y"], opset=22))
    (row,) = import_report(module).fallbacks
    assert (row.name, row.operator) == ("sampled", "GridSample")
    assert row.why in str(import_report(module))
    assert "R.call_py" in module.script()
    again = weft.parse(module.script())
    x = np.random.default_rng(0).normal(size=(2, 1, 4)).astype("float32")
    grid = np.array([[[-1.0], [1.0], [0.0]]] * 2, "float32")
    wanted = np.exp(np.stack([x[..., 0], x[..., 3], (x[..., 1] + x[..., 2]) / 2], -1))
    for made in (module, again):
        np.testing.assert_allclose(weft.compile(made)["main"](x, grid), wanted, rtol=1e-4)
    np.testing.assert_allclose(weft.interpret(again)["main"](x, grid), wanted, rtol=1e-4)


def evaluated(proto: Any, **inputs: Any) -> Any:
    """The result of a model of native nodes, and that of ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator

    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    reference: Any = ReferenceEvaluator(proto)
    return weft.compile(module)["main"](*inputs.values()), reference.run(None, inputs)[0]


def test_a_deformable_convolution_is_native() -> None:
    rng = np.random.default_rng(0)
    values = {"w": rng.normal(size=(4, 1, 2, 2)).astype("float32"), "b": np.ones(4, "float32")}
    shapes = {"x": ["n", 2, 4, 5], "offset": ["n", 16, 3, 4], "mask": ["n", 8, 3, 4]}
    options = {"group": 2, "offset_group": 2, "kernel_shape": [2, 2]}
    proto = model([node("DeformConv", "x w offset b mask", "y", **options)], shapes, ["y"], values, opset=22)
    inputs = {name: rng.normal(size=(3, *shape[1:])).astype("float32") for name, shape in shapes.items()}
    np.testing.assert_allclose(*evaluated(proto, **inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
def test_sequences_of_any_length_are_loops(operator: str) -> None:
    rng, gates = np.random.default_rng(0), {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    shapes = {"w": (1, gates * 5, 3), "r": (1, gates * 5, 5), "b": (1, 2 * gates * 5)}
    values = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    options: dict[str, Any] = {"linear_before_reset": 1} if operator == "GRU" else {}
    nodes = [node(operator, "x w r b", "y h", hidden_size=5, **options)]
    proto = model(nodes, {"x": ["t", "n", 3]}, ["y", "h"], values, opset=17)
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    from onnx.reference import ReferenceEvaluator

    main, wanted = weft.compile(module)["main"], cast(Any, ReferenceEvaluator(proto))
    for steps in (1, 4, 100):
        x = rng.normal(size=(steps, 2, 3)).astype("float32")
        for found, want in zip(main(x), wanted.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-4, atol=1e-5)


def test_elements_go_back_to_where_a_pool_found_them() -> None:
    x = np.arange(1, 13, dtype="float32").reshape(2, 1, 2, 3)
    places = (np.arange(12).reshape(2, 1, 2, 3) * 3 + np.arange(2).reshape(2, 1, 1, 1) * 6).astype("int64")
    for sizes in ({}, {"shape": np.array([2, 1, 5, 7])}):
        inputs = "x i shape" if sizes else "x i"
        nodes = [node("MaxUnpool", inputs, "y", kernel_shape=[2, 2], strides=[2, 2])]
        proto = model(nodes, {"x": ["n", 1, 2, "m"], "i": (I64, ["n", 1, 2, "m"])}, ["y"], sizes)
        if sizes:
            proto = model(nodes, {"x": [2, 1, 2, 3], "i": (I64, [2, 1, 2, 3])}, ["y"], sizes)
        np.testing.assert_array_equal(*evaluated(proto, x=x, i=places))


def test_norms_of_windows_over_the_end_leave_a_last_one_in_the_padding_out() -> None:
    pool = node("LpPool", "x", "y", kernel_shape=[2], strides=[2], pads=[0, 1], ceil_mode=1)
    module = weft.frontend.onnx.load(model([pool], {"x": [1, 1, "w"]}, ["y"]))
    assert not import_report(module).fallbacks
    for size, expected in ((5, [5, 5, 12]), (4, [5, 5])):
        x = np.array([[[3, -4, 0, 5, 12]]], "float32")[..., :size]
        np.testing.assert_allclose(np.asarray(weft.compile(module)["main"](x)), [[expected]], rtol=1e-6)


def test_norms_over_space_regions_and_bands_are_native() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")
    proto = model([node("GlobalLpPool", "x", "y", p=3)], {"x": ["n", 3, "h", 5]}, ["y"])
    found = weft.compile(weft.frontend.onnx.load(proto))["main"](x)
    np.testing.assert_allclose(found[..., 0, 0], (np.abs(x) ** 3).sum((2, 3)) ** (1 / 3), rtol=1e-5)
    proto = model([node("MaxRoiPool", "x r", "y", pooled_shape=[2, 1])], {"x": ["n", 3, "h", 5], "r": ["m", 5]}, ["y"])
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    found = weft.compile(module)["main"](x, np.array([[1, 0, 0, 4, 3]], "float32"))
    np.testing.assert_array_equal(found[0, :, :, 0], x[1].reshape(3, 2, 10).max(-1))
    values = {name: np.array(v) for name, v in {"b": 80, "n": 1024, "r": 16000}.items()}
    values |= {"low": np.array(20.0, "float32"), "high": np.array(7000.0, "float32")}
    proto = model([node("MelWeightMatrix", "b n r low high", "y")], {}, ["y"], values)
    np.testing.assert_allclose(*evaluated(proto), rtol=1e-6)


def test_a_version_of_an_operator_is_a_row_of_the_table() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    old = weft.frontend.onnx.load(model([node("Softmax", "x", "y", axis=1)], {"x": [2, 3, 4]}, ["y"], opset=11))
    new = weft.frontend.onnx.load(model([node("Softmax", "x", "y", axis=1)], {"x": [2, 3, 4]}, ["y"], opset=13))
    e = np.exp(x)
    np.testing.assert_allclose(weft.interpret(old)["main"](x), e / e.sum((1, 2), keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(weft.interpret(new)["main"](x), e / e.sum(1, keepdims=True), rtol=1e-5)


def test_functions_of_the_model_are_taken_apart() -> None:
    body = helper.make_function(
        "custom", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 21)]
    )
    proto = model([helper.make_node("Twice", ["x"], ["y"], domain="custom")], {"x": [2]}, ["y"])
    proto.functions.append(body)
    proto.opset_import.append(helper.make_opsetid("custom", 1))
    assert weft.interpret(weft.frontend.onnx.load(proto))["main"](np.ones(2, "float32")).tolist() == [2, 2]


def external(folder: Path, location: str, **more: str) -> Any:
    """A model whose weight lies in a file."""
    proto = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.arange(4, dtype="float32")})
    (tensor,) = proto.graph.initializer
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "weights.bin").write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_external_data_is_read_from_the_folder(tmp_path: Path) -> None:
    module = weft.frontend.onnx.load(external(tmp_path, "weights.bin", offset="0", length="16"))
    assert weft.interpret(module)["main"](np.zeros(4, "float32")).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "link", "missing", "", "weights.bin\0"])
def test_external_data_outside_of_the_folder_is_refused(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(16))
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(weft.ModelError) as caught:
        weft.frontend.onnx.load(external(folder, location))
    assert caught.value.code == "W975"
    assert "'w'" in caught.value.message


def hostile() -> dict[str, tuple[Any, str]]:
    """Models that are not valid, and what their error says."""
    cycle = model([node("Add", "x b", "a"), node("Relu", "a", "b")], {"x": [2]}, ["b"])
    unknown = model([node("Relu", "nothing", "y", name="act")], {"x": [2]}, ["y"])
    twice = model([node("Relu", "x", "y"), node("Exp", "x", "y")], {"x": [2]}, ["y"])
    short = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.arange(4, dtype="float32")})
    short.graph.initializer[0].raw_data = b"abc"
    great = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.arange(4, dtype="float32")})
    great.graph.initializer[0].dims[:] = [2**40, 2**40]
    listed = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.arange(4, dtype="float32")})
    listed.graph.initializer[0].ClearField("raw_data")
    listed.graph.initializer[0].dims[:] = [2**38]
    misspelt = model([node("Rellu", "x", "y", name="act")], {"x": [2]}, ["y"])
    attribute = model([node("Relu", "x", "y", name="act", slope=1.0)], {"x": [2]}, ["y"])
    types = model([node("Add", "x i", "y", name="mixed")], {"x": [2], "i": (I64, [2])}, ["y"])
    output = model([node("Relu", "x", "y")], {"x": [2]}, ["z"])
    deep, result = node("Relu", "x", "y"), helper.make_tensor_value_info("y", F, None)
    other = helper.make_graph([deep], "branch", [], [result])
    for _ in range(20):
        deep = node("If", "c", "y", then_branch=helper.make_graph([deep], "branch", [], [result]), else_branch=other)
    future = model([node("Relu", "x", "y")], {"x": [2]}, ["y"], opset=900)
    product = [node("MatMul", "x w", "a", name="product"), node("Relu", "a", "y")]
    sizes = model(product, {"x": [2, 3], "w": [4, 5]}, ["y"])
    unversioned = model([node("Relu", "x", "y", name="act")], {"x": [2]}, ["y"])
    del unversioned.opset_import[:]
    foreign = model([node("Own", "x", "y", name="act", domain="elsewhere")], {"x": [2]}, ["y"])
    element = model([node("Relu", "x", "y")], {"x": (99, [2])}, ["y"])
    weight = model([node("Add", "x w", "y")], {"x": [4]}, ["y"], {"w": np.arange(4, dtype="float32")})
    weight.graph.initializer[0].data_type = 77
    return {
        "sizes": (sizes, "node 0 MatMul 'product': Incompatible dimensions"),
        "unversioned": (unversioned, "node 0 Relu 'act': the model imports no version of the operators of 'ai.onnx'"),
        "foreign": (foreign, "node 0 Own 'act': the model imports no version of the operators of 'elsewhere'"),
        "element": (element, "the input 'x' has the unknown element type 99"),
        "weight": (weight, "the tensor 'w' has the unknown element type 77"),
        "cycle": (cycle, "a cycle, or nodes out of order"),
        "unknown": (unknown, "node 0 Relu 'act': it uses 'nothing'"),
        "twice": (twice, "the output of two nodes"),
        "short": (short, "takes 16 bytes and has 3"),
        "great": (great, "has the sizes"),
        "listed": (listed, "'w'"),
        "misspelt": (misspelt, "node 0 Rellu 'act': ONNX has no operator"),
        "attribute": (attribute, "no attribute 'slope'"),
        "types": (types, "mixed"),
        "output": (output, "'z'"),
        "future": (future, "version 900"),
        "deep": (model([deep], {"x": [2], "c": (TensorProto.BOOL, [])}, ["y"]), "nested deeper"),
        "bytes": (b"not a model", "no ONNX model"),
        "empty": (b"", "no graph"),
        "type": (7, "got int"),
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_what_is_no_valid_model_has_one_clear_error(name: str) -> None:
    proto, said = hostile()[name]
    with pytest.raises(weft.ModelError) as caught:
        weft.frontend.onnx.load(proto)
    assert said in str(caught.value)


def test_functions_that_call_themselves_are_refused() -> None:
    body = helper.make_function(
        "f", "Self", ["a"], ["b"], [helper.make_node("Self", ["a"], ["b"], domain="f")], [helper.make_opsetid("f", 1)]
    )
    proto = model([helper.make_node("Self", ["x"], ["y"], domain="f")], {"x": [2]}, ["y"])
    proto.functions.append(body)
    proto.opset_import.append(helper.make_opsetid("f", 1))
    with pytest.raises(weft.ModelError, match="call themselves"):
        weft.frontend.onnx.load(proto)


def test_functions_that_grow_without_bound_are_refused() -> None:
    bodies = [helper.make_function("f", "F0", ["a"], ["b"], [node("Neg", "a", "b")], [helper.make_opsetid("", 21)])]
    for level in range(1, 40):
        calls = [helper.make_node(f"F{level - 1}", [a], [b], domain="f") for a, b in ("ac", "cb")]
        bodies.append(helper.make_function("f", f"F{level}", ["a"], ["b"], calls, [helper.make_opsetid("f", 1)]))
    proto = model([helper.make_node("F39", ["x"], ["y"], domain="f")], {"x": [2]}, ["y"])
    proto.functions.extend(bodies)
    proto.opset_import.append(helper.make_opsetid("f", 1))
    with pytest.raises(weft.ModelError, match="taken apart, its functions have 549755813888 nodes"):
        weft.frontend.onnx.load(proto)


def test_loops_in_loops_are_not_taken_apart_without_bound() -> None:
    graph, result = node("Add", "s s", "s2"), helper.make_tensor_value_info("s2", F, None)
    given = [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    for _ in range(6):
        body = helper.make_graph(
            [node("Identity", "c", "c2"), graph],
            "body",
            [*given, helper.make_tensor_value_info("s", F, None)],
            [helper.make_tensor_value_info("c2", TensorProto.BOOL, None), result],
        )
        graph = helper.make_node("Loop", ["count", "", "s"], ["s2"], body=body)
    graph.input[2] = "x"
    importer = Importer(read_model(model([graph], {"x": [2]}, ["s2"], {"count": np.array(4)})))
    importer.limit = 2000
    module, report = importer.run()
    assert not report.fallbacks
    assert importer.lines < 2000
    assert "R.loop" in module.script()


def loop_model(body: Sequence[Any], state: str, rows: str = "", **inputs: Any) -> Any:
    """A model of one loop `s, rows = Loop(count, going, x)` whose body reads i, c, s."""
    given = [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    made = [helper.make_tensor_value_info(name, 0, None) for name in ("c2", state, *rows.split())]
    graph = helper.make_graph(list(body), "body", [*given, helper.make_tensor_value_info("s", F, None)], made)
    outputs = ["y", *(["rows"] if rows else [])]
    names = ["count" if "count" in inputs else "", "" if "count" in inputs else "going", "x"]
    values = {} if "count" in inputs else {"going": np.array(True)}
    return model([helper.make_node("Loop", names, outputs, body=graph)], inputs, outputs, values)


def test_a_loop_over_a_count_of_the_run_is_a_loop_that_stacks_its_rows() -> None:
    body = [node("Identity", "c", "c2"), node("Add", "s s", "s2"), node("Cast", "i", "f", to=F)]
    body.append(node("Add", "s2 f", "r"))
    proto = loop_model(body, "s2", "r", x=["n"], count=(I64, []))
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    assert "R.loop" in module.script()
    x = np.array([1.0, 2.0], "float32")
    for count in (3, 0):
        y, rows = weft.interpret(module)["main"](*(x, np.array(count)))
        assert y.tolist() == (x * 2**count).tolist()
        assert rows.tolist() == [(x * 2 ** (i + 1) + i).tolist() for i in range(count)]


def test_a_loop_ends_when_its_body_says_so_and_may_carry_a_tensor_that_grows() -> None:
    body = [
        node("Concat", "s s", "s2", axis=0),
        node("Size", "s2", "size"),
        node("Constant", "", "most", value_int=20),
        node("Less", "size most", "c2"),
        node("ReduceSum", "s2", "r", keepdims=0),
    ]
    module = weft.frontend.onnx.load(loop_model(body, "s2", "r", x=["n"]))
    assert not import_report(module).fallbacks
    y, rows = weft.interpret(module)["main"](np.ones(3, "float32"))
    assert y.shape == (24,)
    assert rows.tolist() == [6, 12, 24]


def test_branches_of_different_sizes_give_a_size_of_the_run() -> None:
    a, b = (helper.make_tensor_value_info(name, F, None) for name in "ab")
    double = helper.make_graph([node("Concat", "x x", "a", axis=0)], "then", [], [a])
    same = helper.make_graph([node("Neg", "x", "b")], "else", [], [b])
    nodes = [node("If", "c", "z", then_branch=double, else_branch=same), node("Exp", "z", "y")]
    module = weft.frontend.onnx.load(model(nodes, {"x": ["n"], "c": (TensorProto.BOOL, [])}, ["y"]))
    assert not import_report(module).fallbacks
    main = weft.interpret(module)["main"]
    assert [main(np.zeros(3, "float32"), np.array(test)).shape for test in (True, False)] == [(6,), (3,)]


def test_sizes_beyond_memory_are_not_allocated_while_importing() -> None:
    values = {"sizes": np.array([2**35, 2**10])}
    module = weft.frontend.onnx.load(model([node("ConstantOfShape", "sizes", "y")], {"x": [1]}, ["y"], values))
    assert main_of(module).ret_type.shape == (2**35, 2**10)


def test_a_module_that_nobody_imported_has_no_report() -> None:
    with pytest.raises(weft.ModelError):
        import_report(weft.IRModule())


def test_damaged_models_are_errors_of_the_model() -> None:
    rng, whole = random.Random(1), rows().SerializeToString()
    refused = 0
    for _ in range(1500):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(data))
            if rng.random() < 0.7:
                data[place] = rng.randrange(256)
            else:
                del data[place : place + rng.randint(1, 4)]
        try:
            weft.frontend.onnx.load(bytes(data))
        except weft.ModelError:
            refused += 1
    assert refused > 1000


def test_numbers_in_the_dtype_of_a_value_are_known() -> None:
    """A pad value that follows the dtype of an input must not leave the sizes of the result to the run."""
    nodes = [
        node("CastLike", "low x", "value"),
        node("Pad", "x widths value", "y"),
    ]
    values = {"low": np.float32(-np.inf), "widths": np.array([0, 1, 0, 1])}
    module = weft.frontend.onnx.load(model(nodes, {"x": (TensorProto.FLOAT16, ["n", 2])}, ["y"], values))
    assert 'R.Tensor((n, 4), "float16")' in module.script()
    x = np.ones((3, 2), "float16")
    np.testing.assert_array_equal(weft.compile(module)["main"](x), np.pad(x, ((0, 0), (1, 1)), constant_values=-np.inf))


@pytest.mark.parametrize(("operator", "attributes"), [("Elu", {}), ("Celu", {"alpha": 2.0}), ("Selu", {"gamma": 3.0})])
def test_exponentials_less_one_lose_no_digits_near_zero(operator: str, attributes: dict[str, float]) -> None:
    x = np.array([-1e-5, -0.25, -3.0, 0.0, 2.0], "float32")
    main = weft.compile(weft.frontend.onnx.load(model([node(operator, "x", "y", **attributes)], {"x": [5]}, ["y"])))
    alpha, gamma = attributes.get("alpha", 1.67326319217681884765625), attributes.get("gamma", 1.0)
    scale = {"Elu": 1.0, "Celu": 1.0, "Selu": alpha}[operator]
    inner = {"Elu": 1.0, "Celu": alpha, "Selu": 1.0}[operator]
    below = scale * inner * np.expm1(x.astype("float64") / inner)
    np.testing.assert_allclose(main["main"](x), gamma * np.where(x > 0, x, below), rtol=1e-6)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_images_of_any_size_are_merged_with_antialiasing(mode: str) -> None:
    """The weights that the run computes are those that the import computes where sizes are known."""
    options = {"mode": mode, "antialias": 1, "exclude_outside": 1, "cubic_coeff_a": -0.5}
    nodes = [node("Resize", "x none none sizes", "y", **options)]
    nodes[0].input[:] = ["x", "", "", "sizes"]
    values = {"sizes": np.array([1, 2, 5, 8])}
    mains = [
        weft.compile(weft.frontend.onnx.load(model(nodes, {"x": shape}, ["y"], values)))["main"]
        for shape in ([1, 2, "h", 6], [1, 2, 13, 6])
    ]
    x = np.random.default_rng(0).normal(size=(1, 2, 13, 6)).astype("float32")
    np.testing.assert_allclose(mains[0](x), mains[1](x), rtol=1e-5, atol=1e-6)
    assert mains[0](x[:, :, :3]).shape == (1, 2, 5, 8)


@pytest.mark.parametrize("way", [weft.compile, weft.interpret])
def test_what_a_reference_raises_is_an_error_that_names_the_node(way: Any) -> None:
    scales = np.array([1, 1, -2, 2], "float32")
    module = weft.frontend.onnx.load(
        model(
            [node("Resize", "x roi s", "y", name="up")], {"x": [1, 1, 4, 4]}, ["y"], {"s": scales, "roi": np.zeros(0)}
        )
    )
    assert "greater than 0" in import_report(module).fallbacks[0].why
    with pytest.raises(weft.ModelError, match=r"W978: the reference of ONNX cannot run the node Resize 'up'") as caught:
        way(module)["main"](np.zeros((1, 1, 4, 4), "float32"))
    assert "y = Resize(x, roi, s)" in str(caught.value)


def test_optional_values_are_what_they_hold_or_nothing() -> None:
    there = helper.make_tensor_type_proto(F, [2])
    kept = helper.make_optional_type_proto(there)

    def branch(name: str, *nodes: Any) -> Any:
        return helper.make_graph(list(nodes), name, [], [helper.make_value_info(name, kept)])

    value = helper.make_tensor("v", F, [2], [1.0, 2.0])
    full = branch("a", helper.make_node("Constant", [], ["v"], value=value), node("Optional", "v", "a"))
    empty = branch("b", helper.make_node("Optional", [], ["b"], type=there))
    proto = model([node("If", "c", "y", then_branch=full, else_branch=empty)], {"c": (TensorProto.BOOL, [])}, [])
    proto.graph.output.append(helper.make_value_info("y", kept))
    main = weft.compile(weft.frontend.onnx.load(proto))["main"]
    assert main(np.array(True)).tolist() == [1.0, 2.0]
    assert main(np.array(False)) is None
    proto = model([helper.make_node("Optional", [], ["y"], type=there)], {}, [])
    proto.graph.output.append(helper.make_value_info("y", kept))
    assert weft.compile(weft.frontend.onnx.load(proto))["main"]() is None


@pytest.mark.parametrize(
    "wrong",
    [node("Split", "x", "y z", num_outputs=1), node("GatherND", "x i", "y", batch_dims=-100)],
    ids=lambda wrong: wrong.op_type,
)
def test_attributes_that_the_package_cannot_bear_are_refused(wrong: Any) -> None:
    with pytest.raises(weft.ModelError, match=r"W973.*cannot be"):
        weft.frontend.onnx.load(model([wrong], {"x": [4, 4], "i": (I64, [2, 1])}, [wrong.output[0]]))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("mode", "wanted"), [("edge", [2, 3, 4, 4, 4]), ("reflect", [2, 3, 4, 3, 2]),
                                              ("wrap", [2, 3, 4, 2, 3]), ("constant", [2, 3, 4, 0, 0])])  # fmt: skip
def test_what_is_cut_off_is_not_padded_with(mode: str, wanted: list[int], fixed: bool) -> None:
    given = {"p": np.array([-1, 2])}
    inputs = {"x": ["n"]} if fixed else {"x": ["n"], "p": (I64, [2])}
    module = weft.frontend.onnx.load(
        model([node("Pad", "x p", "y", mode=mode)], inputs, ["y"], given if fixed else None)
    )
    assert not import_report(module).fallbacks
    x = np.arange(1, 5, dtype="float32")
    assert weft.interpret(module)["main"](*([x] if fixed else [x, given["p"]])).tolist() == wanted


@pytest.mark.parametrize("fixed", [True, False])
def test_sizes_and_nearest_elements_of_a_resize_are_those_of_onnxruntime(fixed: bool) -> None:
    x = np.arange(5, dtype="float32")

    def resized(scale: float) -> np.ndarray:
        scales = {"s": np.array([scale], "float32")}
        inputs = {"x": [5]} if fixed else {"x": [5], "s": (F, [1])}
        proto = model([node("Resize", "x s", "y", mode="nearest")], inputs, ["y"], scales if fixed else None, opset=10)
        return weft.interpret(weft.frontend.onnx.load(proto))["main"](*([x] if fixed else [x, scales["s"]]))

    assert resized(0.7).tolist() == [0, 2, 3]
    assert len(resized(2.6)) == 13  # 5 * 2.6 in float32


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_distinct_values_come_as_they_occur(axis: int | None, count: int) -> None:
    x = np.array([[3, 1, 3], [2, 1, 2], [3, 1, 3]], "float32")
    options: dict[str, Any] = {"sorted": 0} if axis is None else {"sorted": 0, "axis": axis}
    outputs = [f"y{index}" for index in range(count)]
    proto = model([helper.make_node("Unique", ["x"], outputs, **options)], {"x": ["n", 3]}, outputs)
    found = weft.interpret(weft.frontend.onnx.load(proto))["main"](x)
    wanted = {
        None: ([3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1, 2, 0, 1, 0], [4, 3, 2]),
        0: ([[3, 1, 3], [2, 1, 2]], [0, 1], [0, 1, 0], [2, 1]),
        1: ([[3, 1], [2, 1], [3, 1]], [0, 1], [0, 1, 0], [2, 1]),
    }[axis]
    for a, b in zip([found] if count == 1 else found, wanted, strict=False):
        assert a.tolist() == b
        assert a.dtype == ("float32" if a is found or a is found[0] else "int64")


@pytest.mark.parametrize("axis", [0, -1])
def test_a_running_sum_of_nothing_along_an_axis_of_the_run(axis: int) -> None:
    proto = model([node("CumSum", "x axis", "y", exclusive=1)], {"x": [0, 5], "axis": (I64, [])}, ["y"])
    run = weft.compile(weft.frontend.onnx.load(proto))["main"]
    assert run(np.zeros((0, 5), "float32"), np.array(axis)).shape == (0, 5)


def test_zeros_alone_are_quantized_by_the_scale_1() -> None:
    proto = model([node("DynamicQuantizeLinear", "x", "y scale zero")], {"x": ["n"]}, ["y", "scale", "zero"])
    run = weft.compile(weft.frontend.onnx.load(proto))["main"]
    y, scale, zero = run(np.zeros(3, "float32"))
    assert (y.tolist(), float(scale), int(zero)) == ([0, 0, 0], 1.0, 0)
    y, scale, zero = run(np.array([-1, 0, 1.55], "float32"))
    assert (y.tolist(), round(float(scale), 6), int(zero)) == ([0, 100, 255], 0.01, 100)


@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_windows_of_unknown_sizes_are_padded_as_those_of_known_ones(operator: str, mode: str) -> None:
    options = {"kernel_shape": [3, 4], "strides": [2, 3], "dilations": [2, 1], "auto_pad": mode}
    values = {"w": np.random.default_rng(1).normal(size=(2, 2, 3, 4)).astype("float32")}
    nodes = [node(operator, "x w" if operator == "Conv" else "x", "y", **options)]

    def compiled(*sizes: Any) -> Any:
        module = weft.frontend.onnx.load(model(nodes, {"x": [1, 2, *sizes]}, ["y"], values, opset=22))
        assert not import_report(module).fallbacks
        return weft.compile(module)["main"]

    unknown = compiled("h", "w")
    for sizes in ((1, 1), (8, 9), (7, 11)):
        x = np.random.default_rng(0).normal(size=(1, 2, *sizes)).astype("float32")
        found, wanted = unknown(x), compiled(*sizes)(x)
        assert found.shape == (1, 2, -(-sizes[0] // 2), -(-sizes[1] // 3))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_distinct_slices_are_native() -> None:
    x = np.array([[1, 0, 0], [2, 3, 4], [1, 0, 0], [0, 9, 9]], "float32")
    for occurring in (0, 1):
        nodes = [node("Unique", "x", "y first inverse counts", axis=-2, sorted=1 - occurring)]
        proto = model(nodes, {"x": ["n", "m"]}, ["y", "first", "inverse", "counts"])
        module = weft.frontend.onnx.load(proto)
        assert not import_report(module).fallbacks
        order = [0, 1, 3] if occurring else [3, 0, 1]
        values, first, inverse, counts = weft.compile(module)["main"](x)
        np.testing.assert_array_equal(values, x[order])
        np.testing.assert_array_equal(first, order)
        np.testing.assert_array_equal(values[inverse], x)
        np.testing.assert_array_equal(counts, [2 if place == 0 else 1 for place in order])


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Range"])
def test_deduction_does_not_follow_vectors_of_any_length(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    import onnx

    follows: list[bool] = []
    infer: Any = onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        onnx.shape_inference, "infer_shapes", lambda *args: (follows.append(args[3]), infer(*args[:3], False))[1]
    )
    values = {"first": np.array(0), "most": np.array(2**40), "step": np.array(1), "sizes": np.array([2**40])}
    made = node(operator, "sizes" if operator == "ConstantOfShape" else "first most step", "v")
    weft.frontend.onnx.load(model([made, node("CastLike", "v x", "y")], {"x": ["n"]}, ["y"], values))
    weft.frontend.onnx.load(rows())
    assert follows == [False, True]


def test_positions_that_no_memory_holds_leave_the_node_to_the_run() -> None:
    sizes = np.array([1, 1, 2.0**50, 1], "float32")
    proto = model([node("Resize", "x none sizes", "y")], {"x": [1, 1, 4, 4]}, ["y"], {"sizes": sizes})
    proto.graph.node[0].input[1] = ""
    (row,) = import_report(weft.frontend.onnx.load(proto)).fallbacks
    assert "MemoryError" in row.why


def test_a_shape_has_no_more_sizes_than_tensors_have_axes() -> None:
    nodes = [node("Reshape", "x sizes", "y")]
    inputs = {"x": ["n"], "sizes": (I64, [2**62])}
    (row,) = import_report(weft.frontend.onnx.load(model(nodes, inputs, ["y"]))).fallbacks
    assert "more than a shape has sizes" in row.why


def test_a_needed_input_without_a_name_is_refused() -> None:
    proto = model([node("Mul", "none x", "y", name="scale")], {"x": ["n"]}, ["y"])
    proto.graph.node[0].input[0] = ""
    with pytest.raises(weft.ModelError, match="node 0 Mul 'scale': it lacks the input 'A', which is not optional"):
        weft.frontend.onnx.load(proto)


def test_a_model_without_results_is_equal_to_its_reference() -> None:
    assert weft.frontend.onnx.check(model([node("Relu", "x", "y")], {"x": [2]}, [])).equal


def test_random_inputs_of_a_check_are_no_larger_than_memory() -> None:
    proto = model([node("Relu", "x", "y")], {"x": [2**40, "n"]}, ["y"])
    with pytest.raises(
        weft.ModelError, match=r"W978: no random value is made for the input 'x': .* \(1099511627776, 3\)"
    ):
        weft.frontend.onnx.check(proto)


def test_operators_of_the_default_domain_have_an_expression_or_a_reason() -> None:
    schemas: dict[str, Any] = {schema.name: schema for schema in onnx.defs.get_all_schemas() if not schema.domain}
    rows = {name for domain, name in TABLE if not domain}
    newest = {name for name, schema in schemas.items() if schema.has_function or schema.has_context_dependent_function}
    assert not DEFINED & rows
    assert not REASONS.keys() & (rows | DEFINED)
    assert DEFINED & schemas.keys() <= newest
    expressions = rows | DEFINED | {"Constant"}
    assert schemas.keys() <= expressions | REASONS.keys()
    assert len(schemas.keys() & expressions) >= 190


def test_a_report_says_why_an_operator_has_no_row() -> None:
    found = weft.frontend.onnx.load(model([node("RandomUniform", "", "y", shape=[2])], {}, ["y"]))
    assert [item.why for item in import_report(found).fallbacks] == [REASONS["RandomUniform"]]


def transposed(x: np.ndarray, w: np.ndarray, stride: int, before: int, size: int) -> np.ndarray:
    """A transposed convolution along one axis in groups of one channel each, element by element."""
    full = np.zeros((len(x), len(w), max(stride * (x.shape[2] - 1) + w.shape[2], before + size)), "float32")
    for channel in range(len(w)):
        for at in range(x.shape[2]):
            for k in range(w.shape[2]):
                full[:, channel, at * stride + k] += x[:, channel, at] * w[channel, 0, k]
    return full[:, :, before : before + size]


@pytest.mark.parametrize(
    ("options", "width", "before", "size"),
    [
        ({}, 3, 0, 9),
        ({"auto_pad": "SAME_UPPER"}, 4, 1, 8),
        ({"auto_pad": "SAME_LOWER"}, 3, 1, 8),
        ({"auto_pad": "SAME_UPPER"}, 1, 0, 7),  # steps wider than the window: as deduction and onnxruntime have it
        ({"output_shape": [6]}, 3, 2, 6),
        ({"output_shape": [11]}, 3, 0, 11),
    ],
)
def test_transposed_convolutions_of_the_run_are_native(
    options: dict[str, Any], width: int, before: int, size: int
) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype("float32") for shape in ((2, 3, 4), (3, 1, width)))
    convolution = node("ConvTranspose", "x w", "y", group=3, strides=[2], **options)
    proto = model([convolution], {"x": ["n", 3, "s"], "w": [3, 1, "k"]}, ["y"])
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    np.testing.assert_allclose(weft.compile(module)["main"](x, w), transposed(x, w, 2, before, size), rtol=1e-5)


def test_convolutions_by_windows_of_unknown_sizes_are_native() -> None:
    proto = model([node("Conv", "x w", "y", auto_pad="SAME_LOWER")], {"x": [1, 1, "s"], "w": [1, 1, "k"]}, ["y"])
    module = weft.frontend.onnx.load(proto)
    assert not import_report(module).fallbacks
    main, x = weft.compile(module)["main"], np.arange(5, dtype="float32")
    for window in ([1, 2], [1, 2, 3]):
        w = np.asarray(window, "float32")
        around = np.pad(x, (len(w) // 2, (len(w) - 1) // 2))
        np.testing.assert_array_equal(main(x[None, None], w[None, None])[0, 0], np.correlate(around, w))


def test_logarithms_of_sums_of_integers_are_cut_once() -> None:
    proto = model([node("ReduceLogSumExp", "x", "y")], {"x": (I64, ["n"])}, ["y"], opset=18)
    main = weft.compile(weft.frontend.onnx.load(proto))["main"]
    for values in ([5, 4, 4, 4, 4, 4], [-1, -2], [700, 700]):  # onnxruntime cuts every exponential: 5, -1
        x = np.asarray(values)  # the definition: Cast to double, Exp, ReduceSum, Log, CastLike
        assert main(x).item() == int(np.log(np.exp(x.astype("float64")).sum()))
