"""Nodes without a native form: a call of a Python function, whose body is the reference implementation of ONNX.

    R.call_py("weft.frontend.onnx:node", (R.str(data), x, ...), out_ty=...)

`data` is JSON: the operator for readers, the node and what it needs (versions, functions) as a message, the dtypes of
the results. Importing `weft.frontend.onnx` registers the function; nothing is read from a module's text but this data.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from weft.dtypes import array_dtype, presented, stored
from weft.errors import ModelError
from weft.frontend.extras import require
from weft.frontend.onnx.model import free_names
from weft.runtime.registry import register_func

__all__ = ["FUNCTION", "node_data", "node_inputs", "run_node"]

FUNCTION = "weft.frontend.onnx:node"


def node_inputs(node: Any) -> list[str]:
    """The names that a node uses: its inputs, then what its graphs use of outer ones; each once."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            names.extend(free_names(inner))
    return list(dict.fromkeys(names))


def node_data(
    node: Any,
    opsets: Mapping[str, int],
    functions: Sequence[Any],
    given: Sequence[str | None],
    results: Sequence[str | None],
    ranks: Sequence[int],
) -> str:
    """What the text of a module keeps of a node: itself, the dtypes of inputs and results, the ranks of these."""
    onnx = require("onnx", "onnx")
    helper = onnx.helper
    inputs = [helper.make_tensor_value_info(name, 0, None) for name in node_inputs(node)]
    outputs = [helper.make_tensor_value_info(name, 0, None) for name in node.output if name]
    graph = helper.make_graph([node], node.name or node.op_type, inputs, outputs)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)
    told = {
        "op": node.op_type,
        "name": node.name,
        "opset": opsets.get(node.domain, 0),
        "given": list(given),
        "results": list(results),
        "ranks": list(ranks),
    }
    return json.dumps({**told, "model": base64.b64encode(model.SerializeToString()).decode()})


@lru_cache(maxsize=512)
def _evaluator(text: str) -> tuple[Any, list[str], list[str | None], list[tuple[str | None, int]]]:
    onnx = require("onnx", "onnx")
    data = json.loads(text)
    model = onnx.ModelProto()
    model.ParseFromString(base64.b64decode(data["model"]))
    evaluator = require("onnx.reference", "onnx").ReferenceEvaluator(model)
    names = [item.name for item in model.graph.input]
    return evaluator, names, data["given"], list(zip(data["results"], data["ranks"], strict=True))


def run_node(data: str, *values: Any) -> Any:
    """Run a node on its inputs; ModelError W976 where its operator has no reference implementation."""
    try:
        evaluator, names, given, wanted = _evaluator(data)
    except NotImplementedError as error:
        raise ModelError(str(error), code="W976") from None
    with np.errstate(all="ignore"):
        inputs = {name: _given(value, dtype) for name, value, dtype in zip(names, values, given, strict=True)}
        results = evaluator.run(None, inputs)
    made = [_result(value, *stated) for value, stated in zip(results, wanted, strict=True)]
    return made[0] if len(made) == 1 else tuple(made)


def _given(value: Any, dtype: str | None) -> Any:
    """A value as the reference implementation takes it: short floats as such, sequences as lists."""
    if isinstance(value, tuple):
        return list(value)
    return presented(value, dtype) if dtype is not None and isinstance(value, np.ndarray) else value


def _result(value: Any, dtype: str | None, rank: int) -> Any:
    if dtype is None or isinstance(value, (list, tuple)) or value is None:
        return value
    array = np.asarray(value)
    wanted = array_dtype(dtype)
    dense = np.ascontiguousarray(array if array.dtype == wanted else array.astype(wanted)).reshape(array.shape)
    if rank >= 0 and dense.ndim == rank + 1 and dense.shape[rank] == 1:  # scalars that a loop has collected
        dense = dense.reshape(dense.shape[:rank])
    return stored(dense, dtype)


register_func(FUNCTION, run_node)
