"""A model held against its reference: onnxruntime where it is installed and runs it, else that of ONNX itself.

onnxruntime runs the nodes as they stand, not what it would make of them: it quantizes activations beside weights of 4
bits, for one. Inputs are random. Where a result differs, every value of the graph is compared in order, and the first
node whose result differs is named.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.codegen import compile as compile_module
from weft.dtypes import array_dtype, is_float, is_numpy
from weft.errors import ModelError
from weft.frontend.comparison import CheckResult, difference, input_shape, require_symbols, same
from weft.frontend.extras import require
from weft.frontend.onnx.importer import Importer
from weft.frontend.onnx.model import Model, node_line, read_model
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.ir.types import TensorType

__all__ = ["CheckResult", "check"]


def check(
    model: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    rtol: float = 1e-3,
    atol: float = 1e-5,
) -> CheckResult:
    """Compare a model with its reference on given or random inputs.

    `sizes` are those of the symbols of inputs, by default 3. Raises what `load` raises; ModelError W978 for a symbol
    that the inputs do not have, an input that no array can be made for, and a model that its reference cannot run.
    """
    read = read_model(model, whole=True)
    module, main = _main(read)
    given = dict(inputs or {})
    shapes = (param.ty.dims or () for param in main.params if isinstance(param.ty, TensorType))
    require_symbols(sizes or {}, itertools.chain.from_iterable(shapes))
    for item, param in zip(_inputs(read), main.params, strict=True):
        if item.name not in given:
            given[item.name] = _random(item.name, param.ty, dict(sizes or {}), np.random.default_rng(seed))
    values = [given[item.name] for item in _inputs(read)]
    found = _listed(compile_module(module)["main"](*values), len(read.graph.output))
    name, wanted = _referred(read, [item.name for item in read.graph.output], given)
    worst = max((difference(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    if all(same(a, b, rtol, atol) for a, b in zip(found, wanted, strict=True)):
        return CheckResult(True, name, worst)
    return CheckResult(False, name, worst, _first_difference(read, values, given, rtol, atol))


def _main(model: Model) -> tuple[IRModule, Function]:
    module, _ = Importer(model).run()
    main = module["main"]
    assert isinstance(main, Function)
    return module, main


def _inputs(model: Model) -> list[Any]:
    initial = {item.name for item in model.graph.initializer}
    initial.update(item.values.name for item in model.graph.sparse_initializer)
    return [item for item in model.graph.input if item.name not in initial]


def _random(name: str, ty: Any, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
    if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
        raise ModelError(f"no random value can be made for the input {name!r}", code="W978", hint="give its array")
    shape = input_shape(name, ty.dims, sizes)
    if is_float(ty.dtype):
        return rng.normal(size=shape).astype(array_dtype(ty.dtype))
    if ty.dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if not is_numpy(ty.dtype):
        raise ModelError(f"no random value can be made for the input {name!r}", code="W978", hint="give its array")
    return rng.integers(0, 2, shape).astype(ty.dtype)


def _referred(model: Model, names: Sequence[str], given: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The name of the reference, and the values of the graph that it gives for some names."""
    onnx = require("onnx", "onnx")
    proto = _with_outputs(onnx, model.proto, names)
    with contextlib.suppress(Exception):  # it is not there, or knows not every operator
        return "onnxruntime", _by_runtime(require("onnxruntime", "onnx"), proto, model.folder, names, given)
    try:
        if model.folder is not None:
            require("onnx.external_data_helper", "onnx").load_external_data_for_model(proto, str(model.folder))
        evaluator = require("onnx.reference", "onnx").ReferenceEvaluator(proto)
        return "the reference of ONNX", evaluator.run(list(names), dict(given))
    except Exception as error:
        raise ModelError(f"the reference cannot run the model: {error}", code="W978") from None


def _by_runtime(
    runtime: Any, proto: Any, folder: Path | None, names: Sequence[str], given: Mapping[str, Any]
) -> list[Any]:
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    session = runtime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(list(names), dict(given))


def _with_outputs(onnx: Any, proto: Any, names: Sequence[str]) -> Any:
    """The model with further values of the graph among its outputs."""
    new = onnx.ModelProto()
    new.CopyFrom(proto)
    there = {item.name for item in new.graph.output}
    for name in names:
        if name not in there:
            new.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    return new


def _listed(result: Any, count: int) -> list[Any]:
    return [result] if count == 1 else list(result)


def _first_difference(model: Model, values: Sequence[Any], given: Mapping[str, Any], rtol: float, atol: float) -> str:
    """The first node of the graph whose result differs."""
    onnx = require("onnx", "onnx")
    made = [(name, index) for index, node in enumerate(model.graph.node) for name in node.output if name]
    names = [name for name, _ in made]
    module, _ = _main(read_model(_with_outputs(onnx, model.proto, names), model.folder))
    order = [item.name for item in model.graph.output]
    order += [name for name in names if name not in order]
    results = _listed(compile_module(module)["main"](*values), len(order))
    _, values_wanted = _referred(model, names, given)
    found, wanted = dict(zip(order, results, strict=True)), dict(zip(names, values_wanted, strict=True))
    for name, index in made:
        if not same(found[name], wanted[name], rtol, atol):
            node = model.graph.node[index]
            return f"{index} {node.name or node.op_type}: {node_line(node)}"
    return "none: the values differ only where nodes are fused"
