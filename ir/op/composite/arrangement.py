"""Elements in other places: roll, diagonals, rotations, parts and stacks; values by a condition."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.ir.deduction.subtyping import dims_of
from weft.ir.graph import Expr, Tuple
from weft.ir.op.common import example, f32, i64, typed
from weft.ir.op.composite.declaring import Parts, call, composite
from weft.ir.op.declare import Param
from weft.ir.op.layout_rules.families import broadcasting
from weft.ir.op.precision import Reads, always, follow
from weft.ir.op.untyped import untyped_np

__all__: list[str] = []

_FAMILY = "manipulate"


@composite(
    "unbind",
    [Param("x"), Param("axis", "attr", 0, "int")],
    family=_FAMILY,
    numpy=lambda x, axis: tuple(np.array(part, order="C") for part in np.moveaxis(x, axis, 0)),
    examples=(
        example(f32(3, 4)),
        example(f32("n", 2), axis=1),
        example(typed("int32", 2, "m"), axis=-2),
        example(f32(3)),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def unbind(args: Parts) -> Expr:
    """The slices along an axis, without it, as a tuple; the size of the axis has to be a number."""
    dims = args.dims("x")
    axis = args.axis_of("axis", len(dims))
    count = dims[axis]
    if not isinstance(count, int):
        raise args.error(f"the size of axis {axis} has to be a number, it is {count}")
    parts: list[Expr] = []
    for place in range(count):
        one = call("strided_slice", args.x, [axis], [place], [place + 1])
        parts.append(call("squeeze", one, axis=[axis]))
    return Tuple(tuple(parts))


@composite(
    "rot90",
    [Param("x"), Param("k", "attr", 1, "int"), Param("axes", "attr", (0, 1), "ints")],
    family=_FAMILY,
    numpy=lambda x, k, axes: np.ascontiguousarray(np.rot90(x, k, axes)),
    examples=(
        example(f32(2, 3)),
        example(f32("n", 4), k=2),
        example(f32(2, "n", 3), k=3, axes=[1, 2]),
        example(f32(2, 3), k=-4),
    ),
    precision=follow("x", reads=Reads.WHOLE),
)
def rot90(args: Parts) -> Expr:
    """x turned k times by a right angle, from the first of two axes towards the second."""
    dims = args.type("x")
    places = [args.place_of(axis, dims.ndim) for axis in args.axes]
    if len(places) != 2 or places[0] == places[1]:
        raise args.error(f"axes are two different ones, got {list(args.axes)}")
    first, second = places
    order = list(range(dims.ndim))
    order[first], order[second] = second, first
    turns = args.k % 4
    if turns == 0:
        return call("permute_dims", args.x, axes=list(range(dims.ndim)))
    if turns == 2:
        return call("flip", call("flip", args.x, axis=first), axis=second)
    if turns == 1:
        return call("permute_dims", call("flip", args.x, axis=second), axes=order)
    return call("flip", call("permute_dims", args.x, axes=order), axis=second)


@composite(
    "masked_fill",
    [Param("x"), Param("mask", of="bool"), Param("value", "attr", of="float")],
    family=_FAMILY,
    layout=broadcasting("x", "mask"),
    numpy=lambda x, mask, value: np.where(mask, np.asarray(value).astype(x.dtype), x),
    examples=(
        example(f32(2, 3), typed("bool", 2, 3), value=-1.5),
        example(f32("n", 4), typed("bool", 4), value=0.0),
        example(typed("int32", 3), typed("bool", 3), value=7.0),
    ),
    precision=follow("x"),
)
def masked_fill(args: Parts) -> Expr:
    """x with a value where the mask is true; both are broadcast."""
    dtype = args.type("x").dtype or ""
    whole = float(args.value).is_integer() and "int" in dtype
    return call("where", args.mask, args.number(int(args.value) if whole else args.value, "x"), args.x)


_LIMITS = (
    Param("nan", "attr", 0.0, "float"),
    Param("posinf", "attr", None, "float?"),
    Param("neginf", "attr", None, "float?"),
)


@composite(
    "nan_to_num",
    [Param("x"), *_LIMITS],
    family=_FAMILY,
    layout=broadcasting("x"),
    numpy=lambda x, nan, posinf, neginf: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    examples=(example(f32(2, 3)), example(f32("n"), nan=1.0, posinf=2.0, neginf=-2.0), example(typed("float64", 3))),
)
def nan_to_num(args: Parts) -> Expr:
    """x with numbers for nan and infinities: by default 0 and the greatest and least finite values."""
    ty = args.require("x", "float")
    if ty.dtype not in ("float16", "float32", "float64"):
        raise args.error(f"the dtype of x is float16, float32 or float64, it is {ty.dtype}")
    info = np.finfo(ty.dtype)
    high = float(info.max) if args.posinf is None else args.posinf
    low = float(info.min) if args.neginf is None else args.neginf
    infinite, positive = call("isinf", args.x), call("greater", args.x, args.number(0, "x"))
    limit = call("where", positive, args.number(high, "x"), args.number(low, "x"))
    found = call("where", infinite, limit, args.x)
    return call("where", call("isnan", args.x), args.number(args.nan, "x"), found)


def _stacked(name: str, axis: int, reference: Any, doc: str, shown: Any) -> None:
    @composite(
        name,
        [Param("tensors", "exprs", of="several")],
        family=_FAMILY,
        doc=doc,
        precision=follow("tensors", reads=Reads.WHOLE),
        examples=shown,
        numpy=reference,
    )
    def stacked(args: Parts) -> Expr:
        parts = list(args.tensors.fields) if isinstance(args.tensors, Tuple) else None
        if parts is None:
            raise args.error("the tensors are written out as a list or a tuple")
        if not parts:
            raise args.error("there are no tensors")
        ranks = [ty.ndim for ty in args.types("tensors")]
        whole = [_at_least(part, rank, 2 if axis == 0 else 1, args) for part, rank in zip(parts, ranks, strict=True)]
        along = axis if axis == 0 or max(ranks) > 1 else 0
        return call("concat", Tuple(tuple(whole)), axis=along)


def _at_least(part: Expr, rank: int, least: int, args: Parts) -> Expr:
    if rank < 0:
        raise args.error("the rank of every tensor has to be known")
    return part if rank >= least else call("expand_dims", part, axis=list(range(least - rank)))


_stacked(
    "vstack",
    0,
    np.vstack,
    "Tensors on top of each other: along axis 0, vectors as rows.",
    (
        example((f32(2, 3), f32(4, 3))),
        example((f32("n"), f32("n"))),
    ),
)
_stacked(
    "hstack",
    1,
    np.hstack,
    "Tensors beside each other: along axis 1, vectors and scalars along axis 0.",
    (
        example((f32(2, 3), f32(2, 1))),
        example((f32("n"), f32("m"))),
    ),
)


@composite(
    "searchsorted",
    [
        Param("sorted_sequence"),
        Param("values"),
        Param("right", "attr", False, "bool"),
        Param("out_int32", "attr", False, "bool"),
    ],
    family="indexing_search",
    numpy=lambda sequence, values, right, out_int32: np.asarray(
        untyped_np.searchsorted(sequence, values, "right" if right else "left")
    ).astype("int32" if out_int32 else "int64"),
    examples=(
        example(f32(5), f32(2, 3), ranges={"sorted_sequence": (0, 0)}),
        example(i64("n"), i64("m"), right=True, ranges={"sorted_sequence": (1, 1)}),
    ),
)
def searchsorted(args: Parts) -> Expr:
    """Where values would stand in a sorted vector: before equal elements, after them with right; int64."""
    return call("bucketize", args.values, args.sorted_sequence, out_int32=args.out_int32, right=args.right)


@composite(
    "dot",
    [Param("x1"), Param("x2")],
    numpy=np.dot,
    family="linear_algebra",
    examples=(example(f32("n"), f32("n")), example(f32(2, 3), f32(3)), example(f32("n", 4), f32(4, "m"))),
    precision=always("x1", "x2"),
)
def dot(args: Parts) -> Expr:
    """The product of vectors and matrices, of one or two dimensions each."""
    ranks = args.type("x1").ndim, args.type("x2").ndim
    if not all(1 <= rank <= 2 for rank in ranks):
        raise args.error(f"operands have one or two dimensions, these have {ranks[0]} and {ranks[1]}")
    return call("matmul", args.x1, args.x2)


@composite(
    "cross",
    [Param("x1"), Param("x2"), Param("axis", "attr", -1, "int")],
    family="linear_algebra",
    numpy=lambda x1, x2, axis: np.cross(x1, x2, axis=axis).astype(x1.dtype),
    examples=(example(f32(2, 3), f32(2, 3)), example(f32(3, "n"), f32(3, "n"), axis=0)),
    precision=follow("x1", "x2", reads=Reads.WHOLE),
)
def cross(args: Parts) -> Expr:
    """The vector product along an axis of size 3."""
    dims = dims_of(args.type("x1")) or ()
    axis = args.axis_of("axis", len(dims))
    if dims[axis] != 3:
        raise args.error(f"the axis of a vector product has size 3, this one has {dims[axis]}")

    def part(x: Expr, place: int) -> Expr:
        return call("strided_slice", x, [axis], [place], [place + 1])

    def one(first: int, second: int) -> Expr:
        left = call("multiply", part(args.x1, first), part(args.x2, second))
        return call("subtract", left, call("multiply", part(args.x1, second), part(args.x2, first)))

    return call("concat", Tuple((one(1, 2), one(2, 0), one(0, 1))), axis=axis)


def _distances(x1: Any, x2: Any, *, p: float) -> Any:
    gap = np.abs(x1[..., :, None, :].astype("float64") - x2[..., None, :, :])
    if p == np.inf:
        return (gap.max(-1) if gap.shape[-1] else np.zeros(gap.shape[:-1])).astype(x1.dtype)
    return (np.sign(gap).sum(-1) if p == 0 else (gap**p).sum(-1) ** (1 / p)).astype(x1.dtype)


@composite(
    "cdist",
    [Param("x1"), Param("x2"), Param("p", "attr", 2.0, "float")],
    numpy=_distances,
    family="linear_algebra",
    examples=(
        example(f32(2, 3), f32(4, 3)),
        example(f32("n", 3), f32("m", 3), p=1.0),
        example(f32(2, 3, 2), f32(2, 4, 2)),
        example(f32(2, 3), f32(4, 3), p=0.0),
    ),
)
def cdist(args: Parts) -> Expr:
    """The distances of each row of x1 from each row of x2 in the p norm; p = 0 counts what differs."""
    args.require("x1", "number")
    if not args.p >= 0:
        raise args.error(f"the p of a norm is 0 or more, got {args.p}")
    gap = call("subtract", call("expand_dims", args.x1, axis=-2), call("expand_dims", args.x2, axis=-3))
    if args.p == 2:
        return call("sqrt", call("sum", call("multiply", gap, gap), axis=-1))
    size = call("abs", gap)
    if args.p == 1:
        return call("sum", size, axis=-1)
    if args.p == float("inf"):
        return call("max", size, axis=-1)
    if args.p == 0:
        return call("sum", call("sign", size), axis=-1)
    return call("power", call("sum", call("power", size, args.p), axis=-1), 1 / args.p)
