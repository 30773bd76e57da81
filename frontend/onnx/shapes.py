"""What the package of the format deduces of a model's values: the types that results of Python functions have.

Large initial values are left out of the question, so that nothing is copied. A deduction that finds a contradiction is
an error of the model (ModelError W973).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from weft.errors import ModelError
from weft.frontend.onnx.model import Model, node_fault
from weft.frontend.onnx.tensors import dtype_name
from weft.ir.types import AnyType, TensorType, Type
from weft.support.records import record

__all__ = ["Declared", "declared_types"]

_SMALL = 1024  # bytes of an initial value that deduction may look at


@record
class Declared:
    """The types of the values of the main graph by name, of sizes only what is a number; and which may be absent."""

    types: Mapping[str, Type]
    optional: frozenset[str]


def declared_types(onnx: Any, model: Model) -> Declared:
    """What the format's own deduction tells of the values of the main graph."""
    follows = not any(_grows(body.node) for body in (model.graph, *model.functions.values()))
    try:
        inferred = onnx.shape_inference.infer_shapes(_without_data(onnx, model.proto), True, True, follows)
    except Exception as error:
        if type(error).__name__ != "InferenceError":
            return Declared({}, frozenset())
        first = _first_line(str(error))
        if first.count("(op_type:") > 1:  # in the definition of an operator: a fault of the package
            return Declared({}, frozenset())
        raise _contradiction(model, first) from None
    items = (*inferred.graph.value_info, *inferred.graph.output)
    optional = frozenset(item.name for item in items if item.type.HasField("optional_type"))
    return Declared({item.name: _type(item.type) for item in items}, optional)


def _grows(nodes: Any) -> bool:
    """Whether a node makes as many elements as a number says: the package follows each of them, however many."""
    return any(
        node.op_type in ("ConstantOfShape", "Range")
        or any(_grows(inner.node) for item in node.attribute for inner in (item.g, *item.graphs))
        for node in nodes
    )


def _first_line(message: str) -> str:
    """What the package found first: what follows is said of nodes that read what the first one makes."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else message


_TOLD = re.compile(r".*\(op_type:(?P<operator>[^,]*), node name: (?P<name>.*?)\): (?:\[\w+\] )?(?P<what>.*)")


def _contradiction(model: Model, line: str) -> ModelError:
    """The error of a model for what the package says of a node, at that node where it can be told which it is."""
    told = _TOLD.fullmatch(line)
    if told is None:
        return ModelError(f"{model.name}: {line}", code="W973")
    operator, name, what = told["operator"], told["name"], told["what"]
    places = [at for at, node in enumerate(model.graph.node) if (node.op_type, node.name) == (operator, name)]
    if len(places) == 1:
        return node_fault(model, places[0], model.graph.node[places[0]], what)
    return ModelError(f"{model.name}: node {operator} {name!r}: {what}", code="W973")


def _without_data(onnx: Any, proto: Any) -> Any:
    new = onnx.ModelProto()
    new.ir_version = proto.ir_version
    new.opset_import.extend(proto.opset_import)
    new.functions.extend(proto.functions)
    graph = new.graph
    graph.name = proto.graph.name or "graph"
    graph.node.extend(proto.graph.node)
    graph.input.extend(proto.graph.input)
    graph.output.extend(proto.graph.output)
    graph.value_info.extend(proto.graph.value_info)
    inputs = {item.name for item in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.ByteSize() <= _SMALL and tensor.data_location != 1:
            graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for sparse in proto.graph.sparse_initializer:
        if sparse.values.name not in inputs:
            graph.input.append(
                onnx.helper.make_tensor_value_info(sparse.values.name, sparse.values.data_type, list(sparse.dims))
            )
    return new


def _type(proto: Any) -> Type:
    if not proto.HasField("tensor_type"):
        return AnyType()
    tensor = proto.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if dtype is None:
        return AnyType()
    if not tensor.HasField("shape"):
        return TensorType(None, dtype)
    dims = tensor.shape.dim
    if all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return TensorType(tuple(dim.dim_value for dim in dims), dtype)
    return TensorType(None, dtype, len(dims))
