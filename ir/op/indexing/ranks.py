"""The element of one rank along axes: the middle, and the k-th.

The kernel is that of sorts, with selection in place of them where the target has vector code for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weft import dtypes
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, prove_le
from weft.ir.kernel.prim import binary, intrinsic
from weft.ir.op.common import example, f32, require_dtype, shape_error, tensor, typed
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.indexing.merge_sort import lazy
from weft.ir.op.indexing.selecting import MOST, FewFirst
from weft.ir.op.indexing.sorting import Order, RowKernel, order_of, sorted_type
from weft.ir.op.indexing.vectors.few import VectorFew
from weft.ir.op.indexing.vectors.select import VectorSelect
from weft.ir.op.indexing.vectors.sort import VectorSort
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.op.reductions.reduction import empty_axis, reduced_axes, reduced_type, require_elements, require_values
from weft.ir.op.registry import register_op
from weft.ir.tensor import AssertStmt, Bind, Buffer, BufferLoad, Extent, PrimExpr, PrimFunc, PrimVar, SeqStmt, Stmt
from weft.ir.types import TupleType, Type
from weft.support.records import dataclass

__all__: list[str] = []

_FAMILY = "indexing_sorting"
_FEW_OF = 16
"""Of how many times as many elements the first ones are kept by a walk."""
_TIES: dict[str, tuple[Any, Any]] = {"x": (-3, 3)}


@dataclass
class _Ranked(RowKernel):
    """The element of one rank of the axes; equal elements are ranked in the order of their positions."""

    keepdims: bool

    def _shape(self) -> Sequence[Dim]:
        if self.keepdims:
            return [1 if axis in self.axes else dim for axis, dim in enumerate(self.dims)]
        return [dim for axis, dim in enumerate(self.dims) if axis not in self.axes]

    @property
    def _rank(self) -> PrimExpr:
        """The rank, from 0."""
        raise NotImplementedError

    @property
    def _nan_counts(self) -> bool:
        """Whether a nan is chosen in place of the element of the rank."""
        return False

    def _vector_sort(self, count: Extent) -> VectorSort | None:
        return VectorSelect.of_rank(
            count, self.size, self._element, self.dtype, self.descending, self._rank, self._nan_counts, self._place
        )

    @property
    def _place(self) -> BufferLoad | None:
        """Where the first element of the row stands, if the others stand behind it."""
        ndim = len(self.sizes)
        if tuple(self.axes) != tuple(range(ndim - len(self.axes), ndim)):
            return None
        return BufferLoad(self.source, tuple(self.row.get(d, index(0)) for d in range(ndim)))

    def _chosen(self) -> PrimExpr:
        """The position that is chosen."""
        return self.order.at(self._rank)

    def _write(self, results: Sequence[Buffer]) -> Stmt:
        chosen = PrimVar("chosen", INDEX)
        places: dict[int, PrimExpr] = dict(self.row)
        if self.keepdims:
            places |= {axis: index(0) for axis in self.axes}
        target = [places[d] for d in sorted(places)]
        return SeqStmt((Bind(chosen, self._chosen()), self._stores(results, chosen, target)))


@dataclass
class _Middle(_Ranked):
    """The middle element of the axes, the lower of two; the last nan where there is one."""

    def _checks(self) -> list[Stmt]:
        return [
            AssertStmt(binary("lt", index(0), index(self.sizes[axis])), f"R.median: {empty_axis(axis)}", "ShapeError")
            for axis in self.axes
            if prove_le(1, self.dims[axis]) is not True
        ]

    @property
    def _rank(self) -> PrimExpr:
        return binary("floordiv", self.size - 1, index(2))

    @property
    def _nan_counts(self) -> bool:
        return dtypes.is_float(self.dtype)

    def _chosen(self) -> PrimExpr:
        middle = self.order.at(self._rank)
        if not self._nan_counts:
            return middle
        last = self.order.last() if isinstance(self.order, VectorSelect) else self.order.at(self.size - 1)
        return lazy(intrinsic("isnan", self._element(last)), last, middle)


@dataclass
class _Kth(_Ranked):
    """The element with k - 1 others before it."""

    k: int

    def _is_few(self, count: Extent) -> bool:
        """Whether the first elements are kept by a walk, in less time than one is selected."""
        return self.k <= MOST and not (isinstance(count, int) and count < _FEW_OF * self.k)

    def _sort(self, count: Extent) -> Order:
        if self._is_few(count):
            return FewFirst(self.k, count, self.size, self._element, self.dtype, self.descending)
        return super()._sort(count)

    def _vector_sort(self, count: Extent) -> VectorSort | None:
        if not self._is_few(count):
            return super()._vector_sort(count)
        return VectorFew.of_few(count, self._element, self.dtype, self.descending, self.k)

    def _checks(self) -> list[Stmt]:
        (axis,) = self.axes
        if prove_le(self.k, self.dims[axis]) is True:
            return []
        message = f"R.kthvalue: k is {self.k}, the axis has {self.dims[axis]} elements"
        return [AssertStmt(binary("le", index(self.k), self.size), message, "ShapeError")]

    @property
    def _rank(self) -> PrimExpr:
        return index(self.k - 1)


def _is_single(axis: int | Sequence[int] | None) -> bool:
    """Whether a median runs over one axis that was named, and so has a position along it."""
    return axis is not None and (isinstance(axis, int) or len(axis) == 1)


def _lower_median(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    x = tensor(args, "x", context)
    dims = dims_of(x)
    if dims is None or x.dtype is None:
        return None
    outputs = [(x.dtype, False), (INDEX, True)][: 1 + _is_single(args.axis)]
    axes = reduced_axes(args, args.axis, len(dims))
    return _Middle(name, dims, x.dtype, axes, False, outputs, args.keepdims).build()


def _numpy_median(x: np.ndarray, axis: int | Sequence[int] | None, keepdims: bool) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else tuple(sorted(a % x.ndim for a in np.atleast_1d(axis)))
    others = [a for a in range(x.ndim) if a not in axes]
    require_values(x, axes)
    size = int(np.prod([x.shape[a] for a in axes]))
    rows = x.transpose((*others, *axes)).reshape(*(x.shape[a] for a in others), size)
    order = np.argsort(rows, -1, kind="stable")
    last, middle = order[..., -1:], order[..., (size - 1) // 2, None]
    greatest = np.take_along_axis(rows, last, -1)
    chosen = np.where(greatest != greatest, last, middle)  # nan alone is not itself
    shape = [1 if a in axes else extent for a, extent in enumerate(x.shape) if keepdims or a not in axes]
    values, positions = np.take_along_axis(rows, chosen, -1).reshape(shape), chosen.reshape(shape)
    return (values, positions) if _is_single(axis) else values


@register_op(
    "median",
    [Param("x"), Param("axis", "attr", None, "ints?"), Param("keepdims", "attr", False, "bool")],
    lowering=_lower_median,
    numpy=_numpy_median,
    pure=True,
    family=_FAMILY,
    examples=(
        example(f32(2, 3, 4), axis=1),
        example(f32("n", 4), axis=[-1], keepdims=True),
        example(f32(3, 5)),
        example(f32("n", 4, "m"), axis=[0, 1], least=1),
        example(f32("n", "m"), axis=1, least=1),
        example(typed("float16", 2, 70), axis=1),
        example(typed("float64", "n", 3), axis=[0, 1], keepdims=True, least=1),
        example(typed("int32", "n", 9), axis=1, least=1, ranges=_TIES),
        example(typed("uint8", 3, 40), axis=[1], keepdims=True),
    ),
)
def median(args: Arguments, context: TypeContext) -> Type:
    """The middle value along the axes, the lower one of two; nan if there is one.

    Over one axis that is named also its position along the axis (int64): (values, positions). Of equal values the
    first counts as the smallest; of several nan the last is taken. Errors: ShapeError W203, W204 the axes, W226 an
    empty axis; DTypeError W321.
    """
    x = tensor(args, "x", context)
    require_dtype(args, "x", x, "number")
    if x.ndim >= 0:
        require_elements(args, dims_of(x), reduced_axes(args, args.axis, x.ndim))
    values = reduced_type(args, x, args.keepdims, x.dtype)
    return TupleType((values, replace(values, dtype=INDEX))) if _is_single(args.axis) else values


def _lower_kth(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    x, axis = sorted_type(args, "x", context)
    dims = dims_of(x)
    if dims is None or x.dtype is None:
        return None
    return _Kth(
        name, dims, x.dtype, (axis,), args.largest, [(x.dtype, False), (INDEX, True)], args.keepdims, args.k
    ).build()


def _numpy_kth(x: np.ndarray, *, k: int, axis: int, keepdims: bool, largest: bool) -> Any:
    chosen = np.take(order_of(x, axis, largest), [k - 1], axis=axis).astype(INDEX)
    value = np.take_along_axis(x, chosen, axis)
    return (value, chosen) if keepdims else (np.squeeze(value, axis), np.squeeze(chosen, axis))


@register_op(
    "kthvalue",
    [
        Param("x"),
        Param("k", "attr", of="int"),
        Param("axis", "attr", -1, "int"),
        Param("keepdims", "attr", False, "bool"),
        Param("largest", "attr", False, "bool"),
    ],
    lowering=_lower_kth,
    numpy=_numpy_kth,
    pure=True,
    family=_FAMILY,
    examples=(
        example(f32(2, 5), 2),
        example(f32("n", 4), 4, axis=1, keepdims=True),
        example(f32(5, "m"), 1, axis=0),
        example(f32(2, 5), 3, largest=True),
        example(typed("int32", 3, 300), 120, ranges=_TIES),
        example(typed("float64", "n"), 2, least=2),
    ),
)
def kthvalue(args: Arguments, context: TypeContext) -> Type:
    """The k-th least (or greatest) value along an axis, and its index (int64); k counts from 1, nan is greatest.

    Of equal values the first counts as the least, and as the greatest. Errors: ShapeError W203 the axis, W205 a k that
    is not from 1 to the size of the axis; DTypeError W321.
    """
    x, axis = sorted_type(args, "x", context)
    dims = dims_of(x)
    if args.k < 1 or (dims is not None and prove_le(args.k, dims[axis], context.facts) is False):
        size = "" if dims is None else f", {dims[axis]}"
        raise shape_error(args, f"k is from 1 to the size of the axis{size}, got {args.k}", "W205")
    values = reduced_type(args, x, args.keepdims, x.dtype)
    return TupleType((values, replace(values, dtype=INDEX)))
