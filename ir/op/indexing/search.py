"""Positions of extremes, choice by a condition, and search in sorted boundaries.

Positions are int64. Of equal values the first counts; a nan counts as the extreme, as in NumPy.
Errors: ShapeError W203 axis out of range, W226 an empty axis; DTypeError W321.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.dtypes import highest, is_float, lowest, max_value
from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.kernel.prim import binary
from weft.ir.node import replace
from weft.ir.op.common import (
    Kernel,
    broadcast,
    broadcast_load,
    broadcast_shape,
    example,
    f32,
    kernel_lowering,
    require_dtype,
    require_rank,
    same_dtype,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, OpDef, Param
from weft.ir.op.kernel_builder import INDEX, Loops, index, joined, load, loops, loops_lowering, store
from weft.ir.op.layout_rules.families import broadcasting, reducing
from weft.ir.op.precision import follow
from weft.ir.op.reductions.reduction import check_elements, reduce_stage, reduced_axes, reduced_type, require_elements
from weft.ir.op.registry import add_op, register_op
from weft.ir.op.untyped import untyped_np
from weft.ir.tensor import Bind, Buffer, PrimExpr, PrimFunc, PrimVar, Stmt, While
from weft.ir.types import TensorType

__all__ = ["is_first"]

_PARAMS = (Param("x"), Param("axis", "attr", None, "int?"), Param("keepdims", "attr", False, "bool"))
_EXAMPLES = (
    example(f32(2, 5), axis=1),
    example(f32("n", 3), axis=-1, keepdims=True),
    example(f32(3, 4)),
    example(f32("n", "m"), axis=0, least=1),
    example(typed("int32", 3, 6), axis=1),
)


Better = Callable[[PrimExpr, PrimExpr], PrimExpr]


def is_first(better: Better, x: tuple[PrimExpr, PrimExpr], y: tuple[PrimExpr, PrimExpr]) -> PrimExpr:
    """Whether x is the one to keep of two (position, value) pairs: the better one, nan above all, then the earlier."""
    (i, a), (j, b) = x, y
    wins, ties = better(a, b), te.equal(a, b)
    if is_float(a.dtype):
        a_nan, b_nan = te.not_equal(a, a), te.not_equal(b, b)
        wins = te.any(wins, te.all(a_nan, te.equal(b, b)))
        ties = te.any(ties, te.all(a_nan, b_nan))
    return te.any(wins, te.all(ties, i < j))


def _extreme_reducer(better: Better, worst: Callable[[str], Any]) -> Callable[..., Any]:
    """Of two (position, value) pairs the one whose value is better, a nan being best; of equal ones the first."""

    def combine(x: tuple[PrimExpr, PrimExpr], y: tuple[PrimExpr, PrimExpr]) -> tuple[PrimExpr, PrimExpr]:
        first = is_first(better, x, y)
        (i, a), (j, b) = x, y
        return te.select(first, i, j), te.select(first, a, b)

    def identity(position: str, value: str) -> tuple[PrimExpr, PrimExpr]:
        return te.const(max_value(position), position), te.const(worst(value), value)

    return te.comm_reducer(combine, identity, "extreme")


def _extreme(name: str, doc: str, reducer: Callable[..., Any], numpy: Callable[..., Any]) -> OpDef:
    def rule(args: Arguments, context: TypeContext) -> TensorType:
        x = tensor(args, "x", context)
        require_dtype(args, "x", x, "number")
        if x.ndim >= 0:
            require_elements(args, dims_of(x), reduced_axes(args, args.axis, x.ndim))
        return reduced_type(args, x, args.keepdims, "int64")

    @kernel_lowering
    def lowering(kernel: Kernel) -> PrimFunc | None:
        args = kernel.args
        x = kernel.input("x")
        axes = reduced_axes(args, args.axis, x.ndim)
        check_elements(kernel, x.shape, axes)
        if not axes:
            return kernel.compute(lambda *i: te.const(0, "int64"), name)

        def pair(*indices: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
            position = indices[axes[0]]
            for axis in axes[1:]:
                position = position * x.shape[axis] + indices[axis]
            return position, x(*indices)

        positions, _ = reduce_stage(x.shape, axes, reducer, pair, name, args.keepdims, False)
        return kernel.finish(positions)

    def reference(x: Any, *, axis: Any, keepdims: bool) -> Any:
        return np.asarray(numpy(x, axis=axis, keepdims=keepdims), np.int64)

    return add_op(
        OpDef(
            name,
            _PARAMS,
            rule,
            doc,
            lowering,
            numpy=reference,
            pure=True,
            examples=_EXAMPLES,
            family="search",
            layout=reducing("x", in_order=True),
        )
    )


_PLACE = "along an axis (of the flattened tensor for None), the first of equal ones."
_extreme(
    "argmax", f"The position of the greatest value {_PLACE}", _extreme_reducer(lambda a, b: a > b, lowest), np.argmax
)
_extreme(
    "argmin", f"The position of the least value {_PLACE}", _extreme_reducer(lambda a, b: a < b, highest), np.argmin
)


# ---------------------------------------------------------------------------------------------------------------------
# where, bucketize
# ---------------------------------------------------------------------------------------------------------------------


@kernel_lowering
def _lower_where(kernel: Kernel) -> PrimFunc | None:
    args, context = kernel.args, kernel.context
    names = ("condition", "x1", "x2")
    shapes = [broadcast_shape(tensor(args, operand, context), kernel.dims) for operand in names]
    operands = [kernel.input(operand, shape) for operand, shape in zip(names, shapes, strict=True)]

    def formula(*i: PrimExpr) -> PrimExpr:
        condition, x1, x2 = (broadcast_load(operand, i) for operand in operands)
        return te.select(condition, x1, x2)

    return kernel.compute(formula, "where")


@register_op(
    "where",
    [Param("condition", of="bool"), Param("x1"), Param("x2")],
    lowering=_lower_where,
    numpy=lambda condition, x1, x2: untyped_np.where(condition, x1, x2).astype(np.result_type(x1)),
    pure=True,
    layout=broadcasting("condition", "x1", "x2"),
    examples=(
        example(typed("bool", 2, 3), f32(2, 3), f32(2, 3)),
        example(typed("bool", "n", 1), f32(4), f32("n", 4)),
        example(typed("bool", "n"), f32("m"), typed("float32")),
        example(typed("bool", 3), typed("int64", 3), typed("int64", 2, 1)),
    ),
    precision=follow("x1", "x2"),
)
def where(args: Arguments, context: TypeContext) -> TensorType:
    """x1 where the (bool) condition holds, x2 elsewhere; the three broadcast. Dtype: that of x1 and x2."""
    condition, x1, x2 = (tensor(args, name, context) for name in ("condition", "x1", "x2"))
    require_dtype(args, "condition", condition, "bool")
    return replace(broadcast(args, context, condition, x1, x2), dtype=same_dtype(args, x1, x2))


_FEW = 32
"""So many boundaries are counted, by vector code; more are searched in halves."""


def _is_before(bound: PrimExpr, value: PrimExpr, right: bool) -> PrimExpr:
    """Whether a value stands after a boundary. A nan is above every number, as in NumPy's order."""
    before = bound <= value if right else bound < value
    if not is_float(value.dtype):
        return before
    unordered = te.not_equal(value, value)
    return te.any(before, unordered if right else te.all(unordered, te.equal(bound, bound)))


@kernel_lowering
def _count_boundaries(kernel: Kernel) -> PrimFunc | None:
    data, boundaries = kernel.input("input_tensor"), kernel.input("boundaries")
    k = te.reduce_axis((0, boundaries.shape[0]), name="k")

    def below(*indices: PrimExpr) -> Any:
        return te.sum(te.cast(kernel.dtype, _is_before(boundaries[k], data(*indices), kernel.args.right)), axis=k)

    return kernel.finish(te.compute(kernel.dims, below, "bucketize"))


@loops_lowering
def _search_boundaries(frame: Loops) -> PrimFunc | None:
    """Of the boundaries that are left the middle one is looked at; how many are left is the same for every value."""
    data, boundaries, out = frame.input("input_tensor"), frame.input("boundaries"), frame.output()
    size = boundaries.shape[0]
    state = () if isinstance(size, int) else (frame.local("base"), frame.local("left"))
    search: Callable[..., list[Any]] = _known_steps if isinstance(size, int) else _counted_steps

    def found(place: list[PrimVar]) -> Stmt:
        given = load(data, place)
        value = PrimVar("value", str(given.dtype))

        def after(base: PrimExpr, half: PrimExpr | int, at: PrimExpr) -> PrimExpr:
            return te.select(_is_before(load(boundaries, [at]), value, frame.args.right), base + half, base)

        *steps, position = search(size, after, *state)
        return joined(Bind(value, given), *steps, store(out, position, place))

    return frame.finish(loops(out.shape, found))


After = Callable[[PrimExpr, PrimExpr | int, PrimExpr], PrimExpr]
"""Where what is left begins: of where it began, of how many are skipped or not, and of the boundary looked at."""


def _known_steps(size: int, after: After) -> list[Any]:
    """As many steps as the size says, without branches, and the position that they find."""
    base: PrimExpr = index(0)
    steps: list[Any] = []
    while size > 0:
        half = (size + 1) // 2
        var = PrimVar("base", INDEX)
        steps.append(Bind(var, after(base, half, base + half - 1)))
        base, size = var, size - half
    return [*steps, base]


def _counted_steps(size: PrimVar, after: After, base_in: Buffer, left_in: Buffer) -> list[Any]:
    """A loop until nothing is left, and the position that it finds."""
    base, left, half, at = load(base_in, [0]), load(left_in, [0]), PrimVar("half", INDEX), PrimVar("at", INDEX)
    step = joined(
        Bind(half, te.floordiv(left + 1, 2)),
        Bind(at, te.minimum(te.maximum(base + half - 1, 0), size - 1)),
        store(base_in, after(base, half, at)),
        store(left_in, left - half),
    )
    return [store(base_in, 0), store(left_in, size), While(binary("gt", left, index(0)), step), base]


def _lower_bucketize(args: Arguments, context: TypeContext, name: str) -> PrimFunc | None:
    dims = dims_of(tensor(args, "boundaries", context))
    few = dims is not None and isinstance(dims[0], int) and dims[0] <= _FEW
    return (_count_boundaries if few else _search_boundaries)(args, context, name)


@register_op(
    "bucketize",
    [
        Param("input_tensor"),
        Param("boundaries"),
        Param("out_int32", "attr", False, "bool"),
        Param("right", "attr", False, "bool"),
    ],
    lowering=_lower_bucketize,
    numpy=lambda x, boundaries, out_int32, right: untyped_np.searchsorted(
        boundaries, x, side="right" if right else "left"
    ).astype(np.int32 if out_int32 else np.int64),
    pure=True,
    examples=(
        example(f32(2, 3), np.asarray([-1.0, 0.0, 0.5, 2.0], "float32")),
        example(f32("n"), np.asarray([-1.0, 0.5], "float32"), right=True, out_int32=True),
        example(f32(2, 3), np.linspace(-2, 2, 45).astype("float32"), right=True),
    ),
)
def bucketize(args: Arguments, context: TypeContext) -> TensorType:
    """The number of ascending boundaries below each value (right: below or equal). Dtype: int64, or int32 if asked.

    Up to 32 boundaries are all looked at, of more log2 as many.
    """
    data, boundaries = tensor(args, "input_tensor", context), tensor(args, "boundaries", context)
    same_dtype(args, data, boundaries)
    require_dtype(args, "input_tensor", data, "number")
    require_rank(args, "boundaries", boundaries, 1)
    return TensorType(data.shape, "int32" if args.out_int32 else "int64", data.ndim)
