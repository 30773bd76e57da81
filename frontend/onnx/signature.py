"""The types of a model's inputs: sizes with a name are symbols, one for each name.

dim_value 4        4                        dim_param "batch"        a symbol of that name
nothing            a symbol of its own      dim_param "past + 1"     that expression, where `past` is a symbol
"""

from __future__ import annotations

from typing import Any

from weft.errors import WeftError
from weft.frontend.emitter import Emitter, identifier
from weft.frontend.onnx.tensors import dtype_name
from weft.ir.dim import Dim, DimExpr, free_symbols, parse_dim
from weft.ir.types import AnyType, TensorType, Type

__all__ = ["Signature"]


class Signature:
    """The symbols that the inputs of one model have so far."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.symbols: dict[str, Dim] = {}

    def input_type(self, item: Any) -> Type:
        """The type of an input; strings, sequences and complex numbers are any value."""
        dtype = dtype_name(item.type.tensor_type.elem_type) if item.type.HasField("tensor_type") else None
        if dtype is None:
            return AnyType()
        tensor, base = item.type.tensor_type, identifier(item.name)
        if not tensor.HasField("shape"):
            return TensorType(None, dtype)
        dims = (self.dim(dim, f"{base}_{axis}") for axis, dim in enumerate(tensor.shape.dim))
        return TensorType(tuple(dims), dtype)

    def dim(self, dim: Any, fallback: str) -> Dim:
        """A size of the model."""
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return dim.dim_value
        name = dim.dim_param
        if not name or not isinstance(name, str):
            return self.emitter.fresh(fallback)
        if name not in self.symbols:
            written = self._written(name)
            self.symbols[name] = self.emitter.fresh(identifier(name, "n")) if written is None else written
        return self.symbols[name]

    def _written(self, text: str) -> Dim | None:
        try:
            made = parse_dim(text, max_length=200)
        except WeftError:
            return None
        known = {name for dim in self.symbols.values() for name in free_symbols(dim)}
        if not isinstance(made, DimExpr) or str(made).isidentifier() or not set(free_symbols(made)) <= known:
            return None
        return made
