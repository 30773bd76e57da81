"""Types of graph-level values.

    type ::= Tensor(shape, dtype)      shape ::= (dim, ...) | Var of shape type | unknown (ndim may be known)
           | Shape(dims | ndim)        a tuple of sizes
           | Prim(dtype)               one scalar
           | Tuple(types)  | Func(params, ret, pure)  | String | Any

A dimension (`Dim`) is an int or a `DimExpr` over named symbols. -1 stands for an unknown rank.
"""

from __future__ import annotations

from typing import TypeGuard

from weft.dtypes import check_dtype
from weft.errors import RecursionDepthError, ShapeError, Span
from weft.ir.dim import Dim, DimExpr
from weft.ir.node import Node, derived, ignored, node
from weft.ir.variables import Type, Var

__all__ = [
    "AnyType",
    "FuncType",
    "PrimType",
    "ShapeType",
    "StringType",
    "TensorType",
    "TupleType",
    "Type",
    "VDevice",
    "is_scalar_type",
]

MOST_DIMENSIONS = 64
"""Of a tensor: no array of NumPy has more."""
_MOST_VALUES = 1 << 15


@node
class AnyType(Type):
    """Any value at all."""

    span: Span | None = ignored(default=None)


@node
class StringType(Type):
    """A string."""

    span: Span | None = ignored(default=None)


@node
class PrimType(Type):
    """One scalar of the given dtype; with a `value` (a dimension of an int64, a constant of any) the one that it is."""

    dtype: str
    value: object = None
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        check_dtype(self.dtype)

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The value when it is a dimension, alone in a tuple, as if the scalar were a shape of one size."""
        sized = self.dtype == "int64" and isinstance(self.value, (int, DimExpr)) and not isinstance(self.value, bool)
        return (self.value,) if sized else None  # type: ignore[return-value]


@node
class VDevice(Node):
    """A virtual device: a target (its string or dictionary form), an index and a memory scope."""

    target: object
    index: int = 0
    scope: str = "global"
    span: Span | None = ignored(default=None)


def _check_rank(ndim: int, what: str, span: Span | None) -> None:
    if ndim < -1:
        hint = "leave ndim out where it is not known"
        raise ShapeError(f"a {what} of {ndim} dimensions is none", code="W291", span=span, hint=hint)


@node
class ShapeType(Type):
    """A tuple of sizes: known dimensions, or only their number (`ndim`, -1 when unknown)."""

    dims: tuple[Dim, ...] | None = None
    ndim: int = -1
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if self.dims is not None:
            object.__setattr__(self, "dims", tuple(self.dims))
            object.__setattr__(self, "ndim", len(self.dims))
        _check_rank(self.ndim, "shape", self.span)


@node
class TensorType(Type):
    """A tensor: shape (dimensions, a shape variable, or unknown), dtype (None when unknown), rank, device.

    Raises: ShapeError W291 for more than 64 dimensions, and for fewer than -1, which is an unknown number.

    >>> TensorType((2, 3), "float32").ndim
    2
    """

    shape: tuple[Dim, ...] | Var | None = None
    dtype: str | None = None
    ndim: int = -1
    vdevice: VDevice | str | None = None
    span: Span | None = ignored(default=None)

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", check_dtype(self.dtype))
        if isinstance(self.shape, (tuple, list)):
            object.__setattr__(self, "shape", tuple(self.shape))
            object.__setattr__(self, "ndim", len(self.shape))
        elif self.shape is not None and isinstance(self.shape.ty, ShapeType):
            object.__setattr__(self, "ndim", self.shape.ty.ndim)
        _check_rank(self.ndim, "tensor", self.span)
        if self.ndim > MOST_DIMENSIONS:
            message = f"a tensor of {self.ndim} dimensions is refused (limit {MOST_DIMENSIONS})"
            raise ShapeError(message, code="W291", span=self.span, hint="arrays of NumPy have no more")

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The dimensions when they are written out, else None."""
        return self.shape if isinstance(self.shape, tuple) else None


def is_scalar_type(ty: object) -> TypeGuard[PrimType | TensorType]:
    """Whether a type is that of one number: a scalar, or a tensor of rank 0.

    >>> is_scalar_type(TensorType((), "float32")), is_scalar_type(TensorType((1,), "float32"))
    (True, False)
    """
    return isinstance(ty, PrimType) or (isinstance(ty, TensorType) and ty.ndim == 0)


@node
class TupleType(Type):
    """A tuple of values; no fields means "no value" (void).

    Raises: RecursionDepthError W951 for more than 32,768 values, which tuples held twice at each level soon have:
    who reads a type looks at each of them.
    """

    fields: tuple[Type, ...] = ()
    span: Span | None = ignored(default=None)
    count: int = derived()
    """Its values that are no tuples, each time that one is held."""

    def __post_init__(self) -> None:
        count = sum(part.count if isinstance(part, TupleType) else 1 for part in self.fields)
        if count > _MOST_VALUES:
            message = f"a type of {count} values is refused (limit {_MOST_VALUES})"
            raise RecursionDepthError(message, code="W951", span=self.span, hint="hold them in tensors")
        object.__setattr__(self, "count", count)


@node
class FuncType(Type):
    """A function: parameter types (None for an opaque function), result type, purity."""

    params: tuple[Type, ...] | None
    ret: Type
    pure: bool = True
    derive: str | None = None
    span: Span | None = ignored(default=None)
