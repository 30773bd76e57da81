"""Operators that ONNX defines in terms of others: the nodes of the definition for one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.frontend.emitter import Unsupported
from weft.frontend.onnx.tensors import element_type
from weft.frontend.onnx.values import ABSENT, Value
from weft.ir.types import TensorType

if TYPE_CHECKING:
    from weft.frontend.onnx.node import OnnxNode

__all__ = ["definition_of"]


def definition_of(node: OnnxNode) -> Any:
    """The function that defines the node's operator in its version, None when there is none."""
    schema = node.schema
    if schema is None:
        return None
    if schema.has_function:
        version = _newest(schema.function_opset_versions, node.version)
        if version is not None:
            return _parsed(node, schema.get_function_with_opset_version(version))
    if schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, node.version)
        if version is not None:
            types = [_type_proto(node, value) for value in node.inputs]
            proto = node.importer.resolved_node(node.proto).SerializeToString()
            return _parsed(node, schema.get_context_dependent_function_with_opset_version(version, proto, types))
    return None


def _newest(versions: Any, limit: int) -> int | None:
    return max((version for version in versions if version <= limit), default=None)


def _parsed(node: OnnxNode, data: bytes) -> Any:
    function = node.importer.onnx.FunctionProto()
    function.ParseFromString(data)
    return function if function.node else None


def _type_proto(node: OnnxNode, value: Value) -> bytes:
    """The type of a value as the format says it."""
    proto = node.importer.onnx.TypeProto()
    if value is ABSENT:
        return proto.SerializeToString()
    if value.known is not None:
        dtype, dims = value.dtype, tuple(value.known.shape)
    else:
        ty = node.type(node.importer.expr(value))
        if not isinstance(ty, TensorType) or ty.dtype is None or ty.dims is None:
            raise Unsupported("the rank or the type of an input is not known")
        dtype, dims = ty.dtype, ty.dims
    proto.tensor_type.elem_type = element_type(dtype)
    proto.tensor_type.shape.SetInParent()
    for dim in dims:
        made = proto.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            made.dim_value = dim
        else:
            made.dim_param = str(dim)
    return proto.SerializeToString()
