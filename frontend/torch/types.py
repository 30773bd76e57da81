"""Types of what a program computes, as PyTorch deduced them, in ours: parameters, and names for sizes of the run."""

from __future__ import annotations

from typing import Any

from weft.errors import WeftError
from weft.frontend.emitter import Emitter, Unsupported, identifier
from weft.frontend.torch.sizes import Sizes
from weft.ir.dim import Dim
from weft.ir.graph import Expr, Var
from weft.ir.types import AnyType, PrimType, ShapeType, TensorType, TupleType, Type
from weft.script import relax as R

__all__ = ["Types", "dtype_name"]

_DTYPES = {"half": "float16", "float": "float32", "double": "float64", "long": "int64", "int": "int32"}


def dtype_name(dtype: Any) -> str:
    """The dtype of a torch.dtype.

    >>> dtype_name("torch.float32")
    'float32'
    """
    name = str(dtype).removeprefix("torch.")
    return _DTYPES.get(name, name)


class Types:
    """The types of one import."""

    def __init__(self, torch: Any, out: Emitter, sizes: Sizes) -> None:
        self.torch, self.out, self.sizes = torch, out, sizes

    def type_of(self, value: Any) -> Type:
        """The type of a value that PyTorch has deduced; any value where ours has no such type."""
        if isinstance(value, (list, tuple)):
            return TupleType(tuple(map(self.type_of, value)))
        if not isinstance(value, self.torch.Tensor) or value.layout != self.torch.strided:
            return AnyType()
        if value.dtype == self.torch.complex32:
            return AnyType()
        try:
            return TensorType(tuple(self.sizes.dim(size) for size in value.shape), dtype_name(value.dtype))
        except (WeftError, Unsupported):
            return TensorType(None, dtype_name(value.dtype), value.ndim)

    def parameter(self, value: Any, name: str, params: list[Var]) -> Any:
        """What a placeholder stands for; its parameter is added to those of the function."""
        if isinstance(value, self.torch.SymInt):
            dim = self.sizes.dim(value)
            params.append(self.out.parameter(name, PrimType("int64", dim)))
            return dim
        if isinstance(value, self.torch.SymFloat):
            params.append(self.out.parameter(name, TensorType((), "float64")))
            return params[-1]
        if not isinstance(value, self.torch.Tensor):  # a constant of the program, which its callers pass all the same
            params.append(self.out.parameter(name, AnyType()))
            return value
        params.append(self.out.parameter(name, self.type_of(value)))
        return params[-1]

    def named(self, var: Var, value: Any, name: str) -> Var:
        """A tensor whose sizes only the run can tell, with the symbols by which PyTorch calls them."""
        if not isinstance(var.ty, TensorType):
            return var
        if var.ty.dims is not None:  # what PyTorch calls by a new name from here on
            if isinstance(value, self.torch.Tensor) and value.ndim == len(var.ty.dims):
                self.sizes.learn_symbols(value.shape, var.ty.dims)
            return var
        wanted = self.type_of(value)
        if isinstance(wanted, TensorType) and wanted.dims is not None:
            self.sizes.learn_symbols(value.shape, wanted.dims)
            return self.out.builder.match_cast(var, wanted, identifier(name))
        return self.out.named_result(var, name)

    def scalar_as_size(self, scalar: Expr, size: Any, name: str) -> Dim:
        """A whole number of the run as a size, under the symbol by which PyTorch calls it."""
        vector = self.out.emit(R.reshape(R.astype(scalar, "int64"), (1,)), name)
        expr = getattr(getattr(size, "node", None), "expr", None)
        if expr is not None and expr.is_Symbol:
            dim = self.sizes.dim(size)
            self.sizes.learn_symbols([size], [dim])
            self.out.builder.match_cast(R.tensor_to_shape(vector), ShapeType((dim,)), "sizes")
            return dim
        (dim,) = self.out.sizes_of(vector, name)
        self.sizes.learn(size, dim)
        return dim
