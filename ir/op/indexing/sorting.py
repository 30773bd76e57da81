"""Sorting along an axis.

One kernel serves all operators: it sorts the positions of a row (`radix_sort`, `vectors.sort`), then writes the
elements, the positions, or both: of every rank, of the first ones, or of one (`ranks`). nan counts as greater than
every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.dtypes import bits
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, free_symbols, product, prove_le
from weft.ir.graph import Expr
from weft.ir.kernel.prim import binary, cast, unary
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.op.common import axis_of, example, f32, i64, require_dtype, shape_error, tensor, typed
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.indexing.counting_sort import is_counted
from weft.ir.op.indexing.merge_sort import RowRuns
from weft.ir.op.indexing.radix_sort import Sort, sort_of
from weft.ir.op.indexing.selecting import MOST, FewFirst
from weft.ir.op.indexing.sort_keys import has_keys
from weft.ir.op.indexing.vectors.few import VectorFew
from weft.ir.op.indexing.vectors.leading import VectorLeading
from weft.ir.op.indexing.vectors.positions import VectorPositions
from weft.ir.op.indexing.vectors.sort import VectorSort
from weft.ir.op.indexing.vectors.values import VectorValues
from weft.ir.op.kernel_builder import INDEX, index
from weft.ir.op.layout_rules.families import along
from weft.ir.op.registry import OPS, register_op
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    IfThenElse,
    PrimExpr,
    PrimFunc,
    PrimVar,
    SeqStmt,
    Stmt,
)
from weft.ir.types import TensorType, TupleType, Type
from weft.support.records import dataclass

__all__ = ["Order", "RowKernel", "order_of", "sorted_type"]

_LEAST_KEY = 16
"""The bits of elements that have no room in keys of vectors on some machines."""
Order = Sort | FewFirst | VectorSort | VectorValues


@dataclass
class RowKernel:
    """The kernel that sorts axes of a tensor as one; `outputs` are (dtype, whether of positions).

    It has more forms where vector code sorts the rows, which targets take that have the intrinsics.
    """

    name: str
    dims: tuple[Dim, ...]
    dtype: str
    axes: Sequence[int]
    descending: bool
    outputs: Sequence[tuple[str, bool]]

    def build(self) -> PrimFunc:
        """The function."""
        shape = self._shape()
        names = dict.fromkeys(name for dim in (*self.dims, *shape) for name in free_symbols(dim))
        self.symbols = {name: PrimVar(name, INDEX) for name in names}
        self.sizes = tuple(dim_to_prim(dim, self.symbols) for dim in self.dims)
        count = dim_to_prim(product(self.dims[axis] for axis in self.axes), self.symbols)
        self.size = index(count)
        self.source = Buffer("data", self.sizes, self.dtype)
        kept = tuple(dim_to_prim(dim, self.symbols) for dim in shape)
        results = [Buffer("indices" if positions else "out", kept, dtype) for dtype, positions in self.outputs]
        self.results = results
        nest = self._nest(self._sort, count, results)
        for sort in (self._vector_sort, self._vector_values):
            form = self._nest(sort, count, results)
            if form is not None and nest is not None and isinstance(self.order, (VectorSort, VectorValues)):
                nest = IfThenElse(self.order.condition, form, nest)
        assert nest is not None
        statements = SeqStmt((*self._checks(), nest))
        bound = {extent for buffer in (self.source, *results) for extent in buffer.shape if isinstance(extent, PrimVar)}
        scalars = [variable for variable in self.symbols.values() if variable not in bound]
        return PrimFunc((self.source, *results, *scalars), statements, name=self.name)

    def _nest(self, sort: Callable[[Extent], Order | None], count: Extent, results: Sequence[Buffer]) -> Stmt | None:
        """The loops over rows with one way to sort, and its memory; None where that is none."""
        self.row = {d: PrimVar(f"i{d}", INDEX) for d in range(len(self.sizes)) if d not in self.axes}
        order = sort(count)
        if order is None:
            return None
        self.order = order
        memory = [AllocBuffer(buffer) for buffer in order.buffers]  # of each row, so that threads share rows out
        if isinstance(order, VectorValues):  # which looks for runs, and may write the results
            written = () if order.writes_results else (self._write(results),)
            body: Stmt = SeqStmt((*memory, *order.statements(), *written))
        else:
            sorted_row = SeqStmt((*memory, *order.statements(), self._write(results)))
            body = self._unless_ordered(count, results, sorted_row)
        for d, variable in reversed(self.row.items()):
            body = For(variable, 0, self.sizes[d], body)
        return body

    def _unless_ordered(self, count: Extent, results: Sequence[Buffer], sort: Stmt) -> Stmt:
        """What sorts a row and writes the results, or something quicker where the row is in order."""
        return sort

    def _sort(self, count: Extent) -> Order:
        """What puts the positions of a row in order."""
        return sort_of(count, self.size, self._element, self.dtype, self.descending)

    def _vector_sort(self, count: Extent) -> VectorSort | None:
        """What does so in vector code, where the target has it; None where there is no such form."""
        return VectorSort.of(count, self.size, self._element, self.dtype, self.descending)

    def _vector_values(self, count: Extent) -> VectorValues | None:
        """What sorts elements from memory to memory, where the target has it; None where there is no such form."""
        return None

    def _shape(self) -> Sequence[Dim]:
        """The shape of a result."""
        raise NotImplementedError

    def _checks(self) -> list[Stmt]:
        raise NotImplementedError

    def _write(self, results: Sequence[Buffer]) -> Stmt:
        """Write what the order of a row says."""
        raise NotImplementedError

    def _stores(self, results: Sequence[Buffer], position: PrimExpr, target: Sequence[PrimExpr]) -> Stmt:
        stores = [
            BufferStore(buffer, cast(dtype, position) if positions else self._element(position), tuple(target))
            for buffer, (dtype, positions) in zip(results, self.outputs, strict=True)
        ]
        return stores[0] if len(stores) == 1 else SeqStmt(tuple(stores))

    def _element(self, position: PrimExpr) -> PrimExpr:
        """The element at a position of the row, which counts the sorted axes in row-major order."""
        places: dict[int, PrimExpr] = dict(self.row)
        for axis in reversed(self.axes[1:]):
            places[axis] = binary("floormod", position, index(self.sizes[axis]))
            position = binary("floordiv", position, index(self.sizes[axis]))
        for axis in self.axes[:1]:
            places[axis] = position
        return BufferLoad(self.source, tuple(places[d] for d in range(len(self.sizes))))


@dataclass
class _Leading(RowKernel):
    """The first `count` elements of one axis in order."""

    count: Dim

    def _sort(self, count: Extent) -> Order:
        if self._takes_few(count):
            kept = int(self.count)  # type: ignore[arg-type]
            return FewFirst(kept, count, self.size, self._element, self.dtype, self.descending)
        return sort_of(count, self.size, self._element, self.dtype, self.descending, self._of_values)

    def _vector_sort(self, count: Extent) -> VectorSort | None:
        if self._takes_few(count):
            return VectorFew.of_few(count, self._element, self.dtype, self.descending, int(self.count))  # type: ignore[arg-type]
        if self._is_counted(count):
            return None
        if isinstance(self.count, int) and self.count != self.dims[self.axes[0]]:
            kept = index(self.count)
            return VectorLeading.of_count(count, self.size, self._element, self.dtype, self.descending, kept)
        if self._has_values(count) and bits(self.dtype) > _LEAST_KEY:  # every machine that has one form has the other
            return None
        return VectorSort.of(count, self.size, self._element, self.dtype, self.descending, self._of_values)

    def _vector_values(self, count: Extent) -> VectorValues | None:
        if not self._has_values(count):
            return None
        places = None
        if self.axes[0] == len(self.dims) - 1 and len(self.results) == 1:
            places = (self._in_row(self.source), self._in_row(self.results[0]))
        return VectorValues(count, self.size, self._element, self.dtype, self.descending, places)

    def _has_values(self, count: Extent) -> bool:
        """Whether all elements are wanted in order, and nothing else, of a dtype that is sorted so."""
        is_whole = self.count == self.dims[self.axes[0]]
        return is_whole and self._of_values and VectorValues.has(self.dtype, count)

    def _in_row(self, buffer: Buffer) -> Callable[[PrimExpr], BufferLoad]:
        """Where the element of the row stands that is at a position of its last axis."""
        row = dict(self.row)
        return lambda i: BufferLoad(buffer, (*(row[d] for d in range(len(self.sizes) - 1)), i))

    def _unless_ordered(self, count: Extent, results: Sequence[Buffer], sort: Stmt) -> Stmt:
        if self.count != self.dims[self.axes[0]] or not RowRuns.pays(count) or not has_keys(self.dtype):
            return sort
        ties = self._of_values and not dtypes.is_float(self.dtype)
        if self._knows_positions():
            return self._unless_known(count, results, sort)
        runs = RowRuns(self.size, self._element, self.dtype, self.descending, ties, lambda i: self._put(results, i, i))
        rank = PrimVar("rank", INDEX)
        turned = For(rank, 0, self.size, self._put(results, self.size - 1 - rank, rank))
        memory = [AllocBuffer(buffer) for buffer in runs.flags]
        chosen = IfThenElse(unary("not", runs.is_rising), IfThenElse(runs.is_falling, turned, sort))
        return SeqStmt((*memory, *runs.statements(), chosen))

    def _knows_positions(self) -> bool:
        """Whether vector code looks whether the positions are known without a sort, as machines that sort can."""
        is_last = self.axes[0] == len(self.dims) - 1
        return isinstance(self.order, VectorSort) and is_last and not self._of_values and bits(self.dtype) > 8

    def _unless_known(self, count: Extent, results: Sequence[Buffer], sort: Stmt) -> Stmt:
        """What sorts a row whose positions are not known without that, and writes the results."""
        is_direct = self.outputs == [("int32", True)] and isinstance(count, int)
        target = self._in_row(results[0]) if is_direct else None
        known = VectorPositions(count, self.size, self._in_row(self.source), self.descending, target)
        rank = PrimVar("rank", INDEX)
        written = For(rank, 0, self.size, self._put(results, known.at(rank), rank))
        rest = IfThenElse(known.is_known, written, sort)
        if is_direct:
            rest = IfThenElse(unary("not", known.is_known), sort)
        return SeqStmt((*(AllocBuffer(buffer) for buffer in known.buffers), *known.statements(), rest))

    def _put(self, results: Sequence[Buffer], position: PrimExpr, rank: PrimExpr) -> Stmt:
        """The results of a rank, which the element at a position has."""
        places: dict[int, PrimExpr] = {**self.row, self.axes[0]: rank}
        return self._stores(results, position, [places[d] for d in range(len(self.sizes))])

    def _takes_few(self, count: Extent) -> bool:
        """Whether one walk keeps the few elements that are asked for."""
        few = isinstance(self.count, int) and 0 < self.count <= MOST
        return few and not (isinstance(count, int) and count < 2 * int(self.count))  # type: ignore[arg-type]

    def _is_counted(self, count: Extent) -> bool:
        """Whether values of few bits are counted: no comparison is as quick."""
        return self._of_values and self.count == self.dims[self.axes[0]] and is_counted(self.dtype, count)

    @property
    def _of_values(self) -> bool:
        """Whether nobody asks for positions."""
        return not any(positions for _, positions in self.outputs)

    def _shape(self) -> Sequence[Dim]:
        (axis,) = self.axes
        return *self.dims[:axis], self.count, *self.dims[axis + 1 :]

    def _checks(self) -> list[Stmt]:
        (axis,) = self.axes
        if prove_le(self.count, self.dims[axis]) is True:
            return []
        kept = index(dim_to_prim(self.count, self.symbols))
        message = f"R.topk: {self.count} of {self.dims[axis]} elements"
        return [AssertStmt(binary("le", kept, self.size), message, "ShapeError")]

    def _write(self, results: Sequence[Buffer]) -> Stmt:
        rank = PrimVar("rank", INDEX)
        places: dict[int, PrimExpr] = {**self.row, self.axes[0]: rank}
        target = [places[d] for d in range(len(self.sizes))]
        kept = index(dim_to_prim(self.count, self.symbols))
        if any(positions for _, positions in self.outputs):
            return For(rank, 0, kept, self._stores(results, self.order.at(rank), target))
        stores = [BufferStore(buffer, self.order.value(rank), tuple(target)) for buffer in results]
        return For(rank, 0, kept, SeqStmt(tuple(stores)))


def sorted_type(args: Arguments, name: str, context: TypeContext, domain: str = "number") -> tuple[TensorType, int]:
    """The type of the data and the axis (from the front where the rank is known)."""
    ty = tensor(args, name, context)
    require_dtype(args, name, ty, domain)
    if ty.ndim == 0:
        raise shape_error(args, "a scalar has no axis to sort", "W203")
    return ty, axis_of(args, args.axis, ty.ndim) if ty.ndim > 0 else 0


def _kernel(
    args: Arguments, context: TypeContext, name: str, data: str, descending: bool, outputs: Sequence[tuple[str, bool]]
) -> PrimFunc | None:
    ty, axis = sorted_type(args, data, context, "ordered")
    dims = dims_of(ty)
    if dims is None or ty.dtype in (None, "bool"):
        return None
    return _Leading(name, dims, ty.dtype, (axis,), descending, outputs, _count(args, dims[axis])).build()


def _of_bools(args: Arguments, builder: Any, data: str, positions: bool) -> Expr:
    """Bools are sorted as numbers; the call itself for other elements."""
    if tensor(args, data, builder.types).dtype != "bool":
        return args.call
    numbers = builder.emit(OPS["astype"].bind([args[data]], {"dtype": "uint8"}))
    attributes: dict[str, Any] = {"axis": args.axis, "descending": args.descending}
    if positions:
        return OPS["argsort"].bind([numbers], {**attributes, "dtype": args.dtype})
    return OPS["astype"].bind([builder.emit(OPS["sort"].bind([numbers], attributes))], {"dtype": "bool"})


def _count(args: Arguments, size: Dim) -> Dim:
    """How many elements are kept."""
    return args.k if args.name == "R.topk" and args.k >= 1 else size


def order_of(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The positions that sort an axis, equal elements in the order of their positions."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    flipped = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - flipped


_AXIS = Param("axis", "attr", -1, "int")
_DESCENDING = Param("descending", "attr", False, "bool")
_TIES: dict[str, tuple[Any, Any]] = {"data": (-3, 3), "x": (-3, 3)}


@register_op(
    "sort",
    [Param("x"), _AXIS, _DESCENDING],
    lowering=lambda args, context, name: _kernel(
        args, context, name, "x", args.descending, [(str(tensor(args, "x", context).dtype), False)]
    ),
    decompose=lambda args, builder: _of_bools(args, builder, "x", False),
    numpy=lambda x, axis, descending: np.take_along_axis(x, order_of(x, axis, descending), axis),
    pure=True,
    layout=along("x"),
    examples=(
        example(f32(3, 9)),
        example(f32("n", 5), 0, True),
        example(i64("n"), descending=True, ranges=_TIES),
        example(f32(2, "n", 3), axis=1),
        example(typed("bool", 3, "n")),
    ),
)
def sort(args: Arguments, context: TypeContext) -> Type:
    """The elements along an axis in ascending (or descending) order; nan counts as the greatest, False is below True.

    Errors: ShapeError W203 the axis; DTypeError W321.
    """
    return sorted_type(args, "x", context, "ordered")[0]


@register_op(
    "argsort",
    [Param("data"), _AXIS, _DESCENDING, Param("dtype", "dtype", "int32")],
    lowering=lambda args, context, name: _kernel(args, context, name, "data", args.descending, [(args.dtype, True)]),
    decompose=lambda args, builder: _of_bools(args, builder, "data", True),
    numpy=lambda data, axis, descending, dtype: order_of(data, axis, descending).astype(dtype),
    pure=True,
    layout=along("data"),
    examples=(
        example(f32(3, 9)),
        example(i64("n", 5), 0, ranges=_TIES),
        example(i64("n"), descending=True, dtype="int64", ranges=_TIES),
        example(typed("bool", 2, 9), descending=True),
    ),
)
def argsort(args: Arguments, context: TypeContext) -> Type:
    """The positions that sort an axis; equal elements keep their order.

    Errors: ShapeError W203 the axis; DTypeError W321.
    """
    ty, _ = sorted_type(args, "data", context, "ordered")
    return TensorType(ty.shape, args.dtype, ty.ndim, ty.vdevice)


_RESULTS = ("both", "values", "indices")


def _topk_outputs(args: Arguments, dtype: str | None) -> list[tuple[str | None, bool]]:
    """(dtype, whether of positions) of the results that are asked for."""
    if args.ret_type not in _RESULTS:
        hint = f"ret_type is one of {', '.join(_RESULTS)}"
        raise shape_error(args, f"unknown ret_type {args.ret_type!r}", "W205", hint)
    both: list[tuple[str | None, bool]] = [(dtype, False), (args.dtype, True)]
    return {"both": both, "values": both[:1], "indices": both[1:]}[args.ret_type]


def _lower_topk(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    outputs = _topk_outputs(args, tensor(args, "data", context).dtype)
    return _kernel(args, context, name, "data", args.largest, [(str(dtype), positions) for dtype, positions in outputs])


def _numpy_topk(data: np.ndarray, k: int, axis: int, ret_type: str, largest: bool, dtype: str) -> Any:
    count = data.shape[axis] if k < 1 else k
    order = np.take(order_of(data, axis, largest), np.arange(count), axis)
    values = np.take_along_axis(data, order, axis)
    return {"both": (values, order.astype(dtype)), "values": values, "indices": order.astype(dtype)}[ret_type]


@register_op(
    "topk",
    [
        Param("data"),
        Param("k", "attr", 1, "int"),
        _AXIS,
        Param("ret_type", "attr", "both", "str"),
        Param("largest", "attr", True, "bool"),
        Param("dtype", "dtype", "int32"),
    ],
    lowering=_lower_topk,
    numpy=_numpy_topk,
    pure=True,
    layout=along("data"),
    examples=(
        example(f32(3, 9), 2),
        example(f32("n", 5), 3, ret_type="values", largest=False),
        example(i64("n", 4), 1, axis=0, ret_type="indices", dtype="int64", least=1, ranges=_TIES),
        example(f32("n"), 0),
        example(f32("n", 3), 2, axis=0, least=2),
    ),
)
def topk(args: Arguments, context: TypeContext) -> Type:
    """The k greatest (or least) elements along an axis in order, their positions, or both; all of them when k is below
    1.

    An axis shorter than k is refuted (ShapeError W201) or stops the kernel. Errors: W203 the axis, W205 another
    ret_type; DTypeError W321.
    """
    ty, axis = sorted_type(args, "data", context)
    dims = dims_of(ty)
    if dims is None:
        kept: tuple[Dim, ...] | None = None
    else:
        count = _count(args, dims[axis])
        if prove_le(count, dims[axis], context.facts) is False:
            raise shape_error(args, f"{count} of {dims[axis]} elements", "W201")
        kept = (*dims[:axis], count, *dims[axis + 1 :])
    types = tuple(TensorType(kept, dtype, ty.ndim, ty.vdevice) for dtype, _ in _topk_outputs(args, ty.dtype))
    return types[0] if len(types) == 1 else TupleType(types)
