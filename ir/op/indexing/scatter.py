"""Operators that write elements at integer indices: a copy of the data, changed in the order of the updates.

Negative indices count from the end; one out of range stops the kernel with a BoundsError: there is no result then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.dtypes import is_float
from weft.errors import BoundsError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, free_symbols, prove_equal, prove_le, symbol
from weft.ir.kernel.prim import as_expr, binary, cast, const, unary
from weft.ir.kernel.prim_dim import dim_to_prim
from weft.ir.op.common import (
    axis_of,
    example,
    f32,
    i64,
    require_dtype,
    same_dtype,
    shape_error,
    shape_of_arg,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.indexing.index import depth_of
from weft.ir.op.kernel_builder import Loops, joined, load, loops, loops_lowering, store
from weft.ir.op.precision import never
from weft.ir.op.registry import register_op
from weft.ir.tensor import (
    AssertStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    Extent,
    For,
    PrimExpr,
    PrimFunc,
    PrimVar,
    Select,
    SeqStmt,
    Stmt,
)
from weft.ir.types import TensorType
from weft.support.records import dataclass

INDEX = "int64"
_COMBINE: dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: binary("add", old, new),
    "mul": lambda old, new: binary("mul", old, new),
    "min": lambda old, new: binary("min", old, new),
    "max": lambda old, new: binary("max", old, new),
    "mean": lambda old, new: _halved(binary("add", old, new)),
}
_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": lambda old, new: (old + new) / 2 if old.dtype.kind == "f" else np.trunc((old + new) / 2).astype(old.dtype),
}


def _halved(value: PrimExpr) -> PrimExpr:
    half = const(2, value.dtype)
    return binary("div", value, half) if is_float(value.dtype) else binary("truncdiv", value, half)


def _index(value: int | PrimExpr) -> PrimExpr:
    return as_expr(value, INDEX)


def _loops(extents: Sequence[Extent], body: Callable[[list[PrimVar]], Stmt], first: int = 0) -> Stmt:
    """Serial loops over a shape, whose variables are numbered from `first` on."""
    variables = [PrimVar(f"i{first + position}", INDEX) for position in range(len(extents))]
    statement = body(variables)
    for variable, extent in reversed(list(zip(variables, extents, strict=True))):
        statement = For(variable, 0, extent, statement)
    return statement


@dataclass
class _Scatter:
    """The kernel of a scatter: copy, then check and write.

    `positions` are the axes that indices choose; `index_at(i)` gives the indices (into the index tensor) that hold them
    for the update at `i`, of which only the first `outer` axes matter, and `rest(i)` the positions on the other axes in
    order.
    """

    name: str
    operator: str
    types: tuple[TensorType, TensorType, TensorType]
    reduction: str
    positions: tuple[int, ...]
    index_at: Callable[[Sequence[PrimExpr]], list[list[PrimExpr]]]
    rest: Callable[[Sequence[PrimExpr]], list[PrimExpr]]
    checks: Sequence[tuple[str, Dim, Dim]]
    outer: int

    def build(self) -> PrimFunc:
        """The function."""
        shapes = [dims_of(ty) or () for ty in self.types]
        names = dict.fromkeys(name for shape in shapes for dim in shape for name in free_symbols(dim))
        symbols = {name: PrimVar(name, INDEX) for name in names}
        self.data, self.indices, self.updates = (
            Buffer(label, tuple(dim_to_prim(dim, symbols) for dim in shape), str(ty.dtype))
            for label, shape, ty in zip(("data", "indices", "updates"), shapes, self.types, strict=True)
        )
        self.out = Buffer("out", self.data.shape, self.data.dtype)
        asserts = [
            AssertStmt(
                binary(kind, _index(dim_to_prim(a, symbols)), _index(dim_to_prim(b, symbols))),
                self._sizes(a, b),
                "ShapeError",
            )
            for kind, a, b in self.checks
        ]
        copy = _loops(self.data.shape, lambda i: BufferStore(self.out, BufferLoad(self.data, tuple(i)), tuple(i)))
        steps = (*asserts, copy, self._changes())
        bound = {
            e for buffer in (self.data, self.indices, self.updates) for e in buffer.shape if isinstance(e, PrimVar)
        }
        scalars = [variable for variable in symbols.values() if variable not in bound]
        return PrimFunc((self.data, self.indices, self.updates, self.out, *scalars), SeqStmt(steps), name=self.name)

    def _changes(self) -> Stmt:
        """Every index tuple checked, then what stands at it written: checked all before, they would be read twice."""
        shape, outer = self.updates.shape, self.outer

        def at_indices(i: list[PrimVar]) -> Stmt:
            return SeqStmt((self._check(i), _loops(shape[outer:], lambda rest: self._write([*i, *rest]), outer)))

        return _loops(shape[:outer], at_indices)

    def _sizes(self, a: Dim, b: Dim) -> str:
        return f"{self.operator}: the sizes {a} and {b} do not fit"

    def _chosen(self, i: Sequence[PrimExpr]) -> list[tuple[PrimExpr, PrimExpr]]:
        """(index, size) of the axes that indices choose."""
        loads = [cast(INDEX, BufferLoad(self.indices, tuple(at))) for at in self.index_at(i)]
        return [(load, _index(self.data.shape[axis])) for load, axis in zip(loads, self.positions, strict=True)]

    def _check(self, i: list[PrimVar]) -> Stmt:
        inside = [
            binary("and", binary("ge", value, unary("neg", size)), binary("lt", value, size))
            for value, size in self._chosen(i)
        ]
        message = f"{self.operator}: index out of range"
        asserts = tuple(AssertStmt(condition, message, "BoundsError") for condition in inside)
        return asserts[0] if len(asserts) == 1 else SeqStmt(asserts)

    def _write(self, i: list[PrimVar]) -> Stmt:
        chosen = iter(Select(binary("lt", value, 0), value + size, value) for value, size in self._chosen(i))
        rest = iter(self.rest(i))
        target = tuple(next(chosen) if axis in self.positions else next(rest) for axis in range(self.out.ndim))
        value = _COMBINE[self.reduction](BufferLoad(self.out, target), BufferLoad(self.updates, tuple(i)))
        return BufferStore(self.out, value, target)


def _operands(args: Arguments, context: TypeContext) -> tuple[TensorType, TensorType, TensorType]:
    """The types of data, indices and updates; what they have in common is checked."""
    data, indices, updates = (tensor(args, name, context) for name in ("data", "indices", "updates"))
    require_dtype(args, "indices", indices, "integer")
    same_dtype(args, data, updates)
    if args.reduction not in _COMBINE:
        raise shape_error(args, f"unknown reduction {args.reduction!r}", "W205", f"one of {', '.join(_COMBINE)}")
    if args.reduction != "update":
        require_dtype(args, "data", data, "number")
    return data, indices, updates


def _known(types: Sequence[TensorType]) -> bool:
    return all(dims_of(ty) is not None and ty.dtype is not None for ty in types)


def _unequal(sizes: Sequence[Dim], others: Sequence[Dim], context: TypeContext) -> list[tuple[str, Dim, Dim]]:
    """The checks that sizes are those of others, where it is not proved."""
    return [("eq", a, b) for a, b in zip(sizes, others, strict=True) if prove_equal(a, b, context.facts) is not True]


def _beyond(sizes: Sequence[Dim], data: Sequence[Dim], axis: int, context: TypeContext) -> list[tuple[str, Dim, Dim]]:
    """The checks that sizes fit into those of the data on all axes but one, where it is not proved."""
    pairs = enumerate(zip(sizes, data, strict=True))
    return [("le", a, b) for d, (a, b) in pairs if d != axis and prove_le(a, b, context.facts) is not True]


def _but(axis: int) -> Callable[[Sequence[PrimExpr]], list[PrimExpr]]:
    """What takes the indices of all axes but one."""
    return lambda i: [index for d, index in enumerate(i) if d != axis]


# ---------------------------------------------------------------------------------------------------------------------
# Elements
# ---------------------------------------------------------------------------------------------------------------------


def _lower_elements(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    types = _operands(args, context)
    if not _known(types):
        return None
    data, indices, updates = (dims_of(ty) or () for ty in types)
    axis = axis_of(args, args.axis, len(data))
    checks = [*_unequal(indices, updates, context), *_beyond(indices, data, axis, context)]
    outer = len(indices)
    return _Scatter(
        name, args.name, types, args.reduction, (axis,), lambda i: [list(i)], _but(axis), checks, outer
    ).build()


def _numpy_elements(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, reduction: str
) -> np.ndarray:
    out = data.copy()
    for at in np.ndindex(indices.shape):
        position = list(at)
        position[axis] = int(indices[at])
        out[tuple(position)] = _NUMPY[reduction](out[tuple(position)], updates[at])
    return out


@register_op(
    "scatter_elements",
    [
        Param("data"),
        Param("indices", of="int"),
        Param("updates"),
        Param("axis", "attr", 0, "int"),
        Param("reduction", "attr", "update", "str"),
    ],
    lowering=_lower_elements,
    numpy=_numpy_elements,
    pure=True,
    examples=(
        example(f32(4, 3), i64(2, 3), f32(2, 3), ranges={"indices": (-4, 3)}),
        example(f32("n", 5), i64("n", "m"), f32("n", "m"), axis=1, reduction="add", ranges={"indices": (0, 4)}),
        example(i64(6), typed("int32", "n"), i64("n"), reduction="max", ranges={"indices": (-6, 5)}),
        example(f32(4), i64("n"), f32("n"), reduction="mean", ranges={"indices": (0, 3)}),
        example(typed("int32", 4), i64("n"), typed("int32", "n"), reduction="mean", ranges={"indices": (0, 3)}),
    ),
)
def scatter_elements(args: Arguments, context: TypeContext) -> TensorType:
    """A copy of data with out[indices[i, j], j] set to updates[i, j] (for axis 0), or combined with it by the
    reduction.

    Reductions: update, add, mul, min, max, and mean, half of the sum, one update after the other. Updates have the
    indices' shape, which fits into that of data on the other axes. Errors: ShapeError W201 sizes, W202 ranks, W203 the
    axis, W205 the reduction; DTypeError W320, W321.
    """
    data, indices, updates = _operands(args, context)
    ranks = {ty.ndim for ty in (data, indices, updates) if ty.ndim >= 0}
    if len(ranks) > 1:
        raise shape_error(args, f"data, indices and updates have {', '.join(map(str, sorted(ranks)))} dimensions")
    shapes = [dims_of(ty) for ty in (data, indices, updates)]
    if None in shapes:
        return data
    sizes, chosen, given = (shape or () for shape in shapes)
    axis = axis_of(args, args.axis, len(sizes))
    for d, (size, index, update) in enumerate(zip(sizes, chosen, given, strict=True)):
        context.require_equal(index, update, f"{args.name}: sizes of indices and updates", args.span)
        if d != axis and prove_le(index, size, context.facts) is False:
            raise shape_error(args, f"{index} indices on axis {d} of size {size}", "W201")
    return data


# ---------------------------------------------------------------------------------------------------------------------
# Slices
# ---------------------------------------------------------------------------------------------------------------------


def _lower_nd(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    types = _operands(args, context)
    if not _known(types):
        return None
    data, indices, updates = (dims_of(ty) or () for ty in types)
    depth, count = depth_of(args, types[1]), len(indices) - 1
    wanted = (*indices[:-1], *data[depth:])
    checks = _unequal(wanted, updates, context)

    def index_at(i: Sequence[PrimExpr]) -> list[list[PrimExpr]]:
        return [[*i[:count], _index(position)] for position in range(depth)]

    positions = tuple(range(depth))
    return _Scatter(
        name, args.name, types, args.reduction, positions, index_at, lambda i: list(i[count:]), checks, count
    ).build()


def _numpy_nd(data: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str) -> np.ndarray:
    out = data.copy()
    for at in np.ndindex(indices.shape[:-1]):
        position = tuple(int(index) for index in indices[at])
        out[position] = _NUMPY[reduction](out[position], updates[at])
    return out


@register_op(
    "scatter_nd",
    [Param("data"), Param("indices", of="int"), Param("updates"), Param("reduction", "attr", "update", "str")],
    lowering=_lower_nd,
    numpy=_numpy_nd,
    pure=True,
    examples=(
        example(f32(4, 3), i64("m", 1), f32("m", 3), ranges={"indices": (-4, 3)}),
        example(f32(4, 3, "n"), i64(5, 2), f32(5, "n"), reduction="add", ranges={"indices": (0, 2)}),
        example(f32(4), i64(2, "m", 1), f32(2, "m"), reduction="mul", ranges={"indices": (0, 3)}),
    ),
)
def scatter_nd(args: Arguments, context: TypeContext) -> TensorType:
    """A copy of data with the slice at each index tuple set to its update, or combined with it by the reduction.

    The last axis of indices holds positions along data's leading axes. Reductions: update, add, mul, min, max.
    Errors: ShapeError W201 sizes, W202 ranks, W205; DTypeError W320, W321.
    """
    data, indices, updates = _operands(args, context)
    shapes = [dims_of(ty) for ty in (data, indices, updates)]
    if None in shapes:
        return data
    sizes, chosen, given = (shape or () for shape in shapes)
    depth = depth_of(args, indices)
    wanted = (*chosen[:-1], *sizes[depth:])
    if depth > len(sizes) or len(wanted) != len(given):
        raise shape_error(
            args, f"{depth} indices, {len(sizes)} dimensions of data and {len(given)} of updates do not fit"
        )
    for a, b in zip(wanted, given, strict=True):
        context.require_equal(a, b, f"{args.name}: sizes of updates", args.span)
    return data


# ---------------------------------------------------------------------------------------------------------------------
# Slices along an axis
# ---------------------------------------------------------------------------------------------------------------------


def _lower_slices(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    types = _operands(args, context)
    if not _known(types):
        return None
    data, indices, updates = (dims_of(ty) or () for ty in types)
    axis = axis_of(args, args.axis, len(data))
    checks = [*_unequal(indices, updates[axis : axis + 1], context), *_beyond(updates, data, axis, context)]
    return _Scatter(
        name, args.name, types, args.reduction, (axis,), lambda i: [[i[axis]]], _but(axis), checks, axis + 1
    ).build()


def _numpy_slices(data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, reduction: str) -> np.ndarray:
    out = data.copy()
    rows, given = np.moveaxis(out, axis, 0), np.moveaxis(updates, axis, 0)
    inner = tuple(map(slice, given.shape[1:]))
    for row, at in zip(given, indices, strict=True):
        place = (int(at), *inner)
        rows[place] = _NUMPY[reduction](rows[place], row)
    return out


@register_op(
    "scatter_slices",
    [
        Param("data"),
        Param("indices", of="int"),
        Param("updates"),
        Param("axis", "attr", 0, "int"),
        Param("reduction", "attr", "update", "str"),
    ],
    lowering=_lower_slices,
    numpy=_numpy_slices,
    pure=True,
    examples=(
        example(f32(4, 3), i64(5), f32(5, 3), ranges={"indices": (-4, 3)}),
        example(f32("n", 4), i64("m"), f32("n", "m"), axis=1, reduction="max", ranges={"indices": (-4, 3)}),
        example(typed("int32", 2, 3, 5), i64(4), typed("int32", 2, 4, 5), 1, "add", ranges={"indices": (0, 2)}),
        example(f32(4, "n"), typed("int32", "m"), f32("m", "n"), reduction="mul", ranges={"indices": (0, 3)}),
        example(f32(3, 4), i64(2), f32(2, 3), reduction="mean", ranges={"indices": (0, 2)}),
    ),
)
def scatter_slices(args: Arguments, context: TypeContext) -> TensorType:
    """A copy of data with slice indices[i] along an axis set to slice i of the updates, or combined with it by the
    reduction.

    Reductions: update, add, mul, min, max, and mean, half of the sum, one update after the other. The other axes of the
    updates fit into those of data. Errors: ShapeError W201 sizes, W202 ranks, W203 the axis, W205 the reduction;
    DTypeError W320, W321.
    """
    data, indices, updates = _operands(args, context)
    if indices.ndim not in (-1, 1):
        raise shape_error(args, f"indices are a vector, got {indices.ndim} dimensions")
    if data.ndim >= 0 and updates.ndim >= 0 and data.ndim != updates.ndim:
        raise shape_error(args, f"data and updates have {data.ndim} and {updates.ndim} dimensions")
    shapes = [dims_of(ty) for ty in (data, indices, updates)]
    if None in shapes:
        return data
    sizes, chosen, given = (shape or () for shape in shapes)
    axis = axis_of(args, args.axis, len(sizes))
    for index in chosen:  # the one size of a vector
        context.require_equal(index, given[axis], f"{args.name}: sizes of indices and updates", args.span)
    for d, (size, update) in enumerate(zip(sizes, given, strict=True)):
        if d != axis and prove_le(update, size, context.facts) is False:
            raise shape_error(args, f"{update} updates on axis {d} of size {size}", "W201")
    return data


# ---------------------------------------------------------------------------------------------------------------------
# Counts
# ---------------------------------------------------------------------------------------------------------------------


@loops_lowering
def _lower_count_indices(frame: Loops) -> PrimFunc | None:
    indices, out = frame.input("indices"), frame.output()
    size = _index(out.shape[0])

    def count(i: Sequence[PrimExpr]) -> Stmt:
        place = cast(INDEX, load(indices, i))
        inside = binary("and", binary("ge", place, 0), binary("lt", place, size))
        return joined(frame.check(inside, "index out of range"), store(out, load(out, [place]) + _index(1), [place]))

    shape = indices.shape if hasattr(indices, "shape") else ()
    return frame.finish(loops(out.shape, lambda i: store(out, 0, i)), loops(shape, count))


def _numpy_count_indices(indices: Any, shape: Sequence[int]) -> np.ndarray:
    (size,) = shape
    indices = np.asarray(indices)
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise BoundsError("R.count_indices: index out of range")
    return np.bincount(indices.reshape(-1), None, size).astype(np.int64)


@register_op(
    "count_indices",
    [Param("indices", of="int"), Param("shape", "shape")],
    lowering=_lower_count_indices,
    numpy=_numpy_count_indices,
    pure=True,
    examples=(
        example(i64(6), (5,), ranges={"indices": (0, 4)}),
        example(typed("int32", "n", 2), (symbol("m"),), ranges={"indices": (0, 0)}, least=1),
    ),
    precision=never("it counts"),
)
def count_indices(args: Arguments, context: TypeContext) -> TensorType:
    """How often each index of an axis of one size occurs in a tensor, as a vector of that shape, int64.

    No index counts from the end; one out of range is a BoundsError. Errors: ShapeError W205 another shape than one
    size; DTypeError W321.
    """
    indices = tensor(args, "indices", context)
    require_dtype(args, "indices", indices, "integer")
    dims, ndim = shape_of_arg(args, "shape", context)
    if ndim not in (-1, 1):
        raise shape_error(args, f"shape has one size, got {ndim}", "W205")
    return TensorType(dims, "int64", 1)
