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
from weft.frontend.onnx.reference.bodies import own_bodies
from weft.frontend.references import as_reference
from weft.runtime.registry import register_func
from weft.support.records import record

__all__ = ["FUNCTION", "node_data", "node_inputs", "run_node"]

FUNCTION = "weft.frontend.onnx:node"
_REFERENCE = "the reference of ONNX"


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
    optional: Sequence[bool],
) -> str:
    """What the text of a module keeps of a node: itself, the dtypes of inputs and results, the ranks of these, and
    which of them may be absent.
    """
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
        **({"optional": list(optional)} if any(optional) else {}),
    }
    return json.dumps({**told, "model": base64.b64encode(model.SerializeToString()).decode()})


@record
class _Stated:
    """What the text keeps of a node, read: its label, and what its inputs and results are."""

    label: str
    evaluator: Any
    names: list[str]
    given: list[str | None]
    wanted: list[tuple[str | None, int]]
    optional: list[bool]


@lru_cache(maxsize=512)
def _stated(text: str) -> _Stated:
    onnx = require("onnx", "onnx")
    data = json.loads(text)
    label = f"the node {data['op']} {data['name']!r}" if data["name"] else f"a node {data['op']}"
    model = onnx.ModelProto()
    model.ParseFromString(base64.b64decode(data["model"]))
    with as_reference(_REFERENCE, label):
        try:
            evaluator = require("onnx.reference", "onnx").ReferenceEvaluator(model, new_ops=own_bodies())
        except NotImplementedError as error:
            raise ModelError(f"{label}: {error}", code="W976") from None
    names = [item.name for item in model.graph.input]
    wanted = list(zip(data["results"], data["ranks"], strict=True))
    return _Stated(label, evaluator, names, data["given"], wanted, data.get("optional") or [False] * len(wanted))


def run_node(data: str, *values: Any) -> Any:
    """Run a node on its inputs; ModelError W976 where its operator has no reference, W978 for what that raises."""
    node = _stated(data)
    with np.errstate(all="ignore"), as_reference(_REFERENCE, node.label):
        inputs = {name: _given(value, dtype) for name, value, dtype in zip(node.names, values, node.given, strict=True)}
        results = node.evaluator.run(None, inputs)
        told = zip(results, node.wanted, node.optional, strict=True)
        made = [_result(_element(value) if optional else value, *stated) for value, stated, optional in told]
    return made[0] if len(made) == 1 else tuple(made)


def _element(value: Any) -> Any:
    """What an optional value holds: the reference keeps it in a list of one."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


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
