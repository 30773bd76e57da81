"""A node as the functions of the table see it: inputs, attributes, types, and bindings of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from weft.frontend.emitter import Emitter, Unsupported
from weft.frontend.onnx.tensors import dense_array, dtype_name, tensor_array
from weft.frontend.onnx.values import Scopes, Value, is_sizes
from weft.frontend.operands import Operands
from weft.ir.dim import Dim, DimExpr
from weft.ir.graph import Expr, Var

__all__ = ["OnnxNode", "attribute_value", "element_dtype"]


class Import(Protocol):
    """What a node asks of the import that it is part of."""

    out: Emitter
    onnx: Any
    model: Any
    names: Scopes

    @property
    def grown(self) -> bool:
        """Whether loops have been taken apart into so many nodes that others had better stay loops."""
        ...

    def nodes(self, nodes: Sequence[Any]) -> None:
        """Import nodes in order."""
        ...

    def version(self, domain: str) -> int:
        """The version of the operators of a domain."""
        ...

    def expr(self, value: Value) -> Expr:
        """A value as an expression."""
        ...

    def attribute(self, proto: Any) -> Any:
        """The value of an attribute."""
        ...

    def resolved_node(self, proto: Any) -> Any:
        """A copy of a node whose attributes refer to no other ones."""
        ...


class OnnxNode(Operands):
    """One node while it is imported.

    `n[i]` is an input as an expression; `n.constant(i)` and `n.sizes(i)` its contents where they are known, and a new
    size for each element of a vector of the run.
    """

    def __init__(self, importer: Import, proto: Any, inputs: Sequence[Value], schema: Any) -> None:
        self.importer, self.proto, self.inputs, self.schema = importer, proto, inputs, schema
        self._attributes = {item.name: item for item in proto.attribute}

    @property
    def operator(self) -> str:
        """The name of the operator."""
        return self.proto.op_type

    @property
    def version(self) -> int:
        """The version of the operators of the node's domain."""
        return self.importer.version(self.proto.domain)

    # Inputs

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        if index >= len(self.inputs):
            return False
        value = self.inputs[index]
        return value.expr is not None or value.known is not None or value.items is not None

    def __getitem__(self, index: int) -> Expr | None:
        """An input as an expression, None where it is not given."""
        return self.importer.expr(self.inputs[index]) if self.has(index) else None

    def need(self, index: int) -> Expr:
        """An input as an expression."""
        found = self[index]
        if found is None:
            raise Unsupported(f"input {index} is not given")
        return found

    def known(self, index: int) -> np.ndarray | None:
        """The contents of an input where they are known: numbers, or sizes (an array of objects)."""
        return self.inputs[index].known if self.has(index) else None

    def constant(self, index: int, default: Any = None) -> np.ndarray:
        """The numbers of an input; the default where it is not given."""
        if not self.has(index):
            if default is None:
                raise Unsupported(f"input {index} is not given")
            return np.asarray(default)
        known = self.inputs[index].known
        if known is None or is_sizes(known):
            raise Unsupported(f"input {index} is known only at run time")
        return known

    def ints(self, index: int, attribute: str = "") -> list[int] | None:
        """Integers of an input, or of an attribute in older versions; None where neither is given."""
        if attribute in self._attributes:
            return [int(item) for item in self.attr(attribute)]
        return [int(item) for item in self.constant(index).reshape(-1)] if self.has(index) else None

    def sizes(self, index: int) -> tuple[Dim, ...]:
        """The elements of an integer vector as sizes; those of the run are named and must not be negative."""
        known = self.known(index)
        if known is not None:
            return tuple(item if isinstance(item, DimExpr) else int(item) for item in known.reshape(-1))
        return self.sizes_of(self.need(index), self.input_name(index))

    def sizes_of(self, vector: Expr, name: str) -> tuple[Dim, ...]:
        """The elements of an integer vector of the run as sizes of their own, which must not be negative."""
        return self.importer.out.sizes_of(vector, name)

    def input_name(self, index: int) -> str:
        """The name of an input in the model."""
        return self.proto.input[index]

    # Attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute: that of the node, of the operator's definition, or the default."""
        found = self._attributes.get(name)
        if found is None and self.schema is not None and name in self.schema.attributes:
            found = self.schema.attributes[name].default_value
        if found is None or not found.name:
            return default
        value = self.importer.attribute(found)
        return default if value is None else value

    def given(self, name: str) -> bool:
        """Whether the node itself states an attribute."""
        return name in self._attributes

    # Types

    @property
    def emitter(self) -> Emitter:
        """Where the bindings of the import go."""
        return self.importer.out

    def axis(self, expr: Expr, name: str = "axis", default: int | None = None) -> int:
        """An attribute that is an axis of a tensor, counted from the front."""
        axis = int(self.attr(name, default))
        rank = self.rank(expr)
        if not -rank <= axis < max(rank, 1):
            raise Unsupported(f"the {name} {axis} of a tensor of rank {rank}")
        return axis % max(rank, 1)

    def dims(self, expr: Expr, axes: Sequence[int]) -> list[int]:
        """The sizes along axes, which must be numbers."""
        sizes = [self.shape(expr)[axis] for axis in axes]
        if not all(isinstance(size, int) for size in sizes):
            raise Unsupported(f"a size that must be known is {next(s for s in sizes if not isinstance(s, int))}")
        return sizes  # type: ignore[return-value]

    # Bindings

    def emit(self, expr: Expr, name: str = "") -> Var:
        """A value that is used more than once."""
        return self.importer.out.emit(expr, name or (self.proto.output[0] if self.proto.output else self.operator))

    def named_result(self, expr: Expr, name: str, known: Mapping[int, Dim] | None = None) -> Var:
        """A result whose sizes only the run can tell, with a symbol for each axis whose size is not known."""
        return self.importer.out.named_result(expr, name, known)

    def output_wanted(self, index: int) -> bool:
        """Whether somebody may use an output."""
        return index < len(self.proto.output) and bool(self.proto.output[index])


def element_dtype(element: int) -> str:
    """The dtype of an element type; Unsupported for strings and complex numbers."""
    found = dtype_name(element)
    if found is None:
        raise Unsupported(f"there is no dtype for elements of type {element}")
    return found


def attribute_value(attribute: Any, folder: Any) -> Any:
    """The value of an AttributeProto: numbers, text, lists, arrays; graphs as they are."""
    kind = attribute.type
    if kind == 1:
        return attribute.f
    if kind == 2:
        return attribute.i
    if kind == 3:
        return attribute.s.decode("utf-8", "replace")
    if kind == 4:
        return tensor_array(attribute.t, folder)
    if kind == 5:
        return attribute.g
    if kind == 6:
        return list(attribute.floats)
    if kind == 7:
        return list(attribute.ints)
    if kind == 8:
        return [item.decode("utf-8", "replace") for item in attribute.strings]
    if kind == 11:
        return dense_array(attribute.sparse_tensor, folder)
    if kind in (9, 10):
        return list(attribute.tensors or attribute.graphs)
    return None
