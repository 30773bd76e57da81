"""Operators of object detection: choosing among boxes by their scores.

Their results have the sizes of the worst case, with a count of what is valid. Errors: ShapeError W201, W202, W205 an
unknown form of output; DTypeError W320, W321.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import symbol
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.op.common import (
    Dims,
    example,
    f32,
    i64,
    require_dtype,
    require_rank,
    same_dtype,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Builtin, Param
from weft.ir.op.kernel_builder import LoopKernel, Loops, counted, index, joined, load, loops, loops_lowering, store
from weft.ir.op.registry import register_op
from weft.ir.op.vision.nms import (
    lower_all_class_suppression,
    lower_suppression,
    numpy_all_class_suppression,
    numpy_suppression,
)
from weft.ir.tensor import Buffer, IfThenElse, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.ir.types import TensorType, TupleType, Type
from weft.support.guards import is_listing

__all__: list[str] = []

_COUNTS = typed("int32", "b")
_BOXES: dict[str, tuple[Any, Any]] = {"data": (0, 1), "valid_count": (0, 9), "indices": (0, 99)}
_CHOICE: dict[str, tuple[Any, Any]] = {
    "boxes": (0, 1),
    "scores": (0, 1),
    "max_output_boxes_per_class": (0, 4),
    "iou_threshold": (0.1, 0.6),
    "score_threshold": (0, 0.6),
}
_FORMS = ("onnx", "tensorflow")


def _numpy_get_valid_counts(
    data: np.ndarray, score_threshold: float, id_index: int, score_index: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    counts = np.zeros(len(data), np.int32)
    boxes, places = np.full_like(data, -1), np.full(data.shape[:2], -1, np.int32)
    for image, rows in enumerate(data):
        valid = rows[:, score_index] > data.dtype.type(score_threshold)
        if id_index >= 0:
            valid &= rows[:, id_index] >= 0
        kept = np.flatnonzero(valid)
        counts[image] = len(kept)
        boxes[image, : len(kept)], places[image, : len(kept)] = rows[kept], kept
    return counts, boxes, places


@loops_lowering
def _lower_get_valid_counts(frame: Loops) -> PrimFunc | None:
    args, context = frame.args, frame.context
    data = frame.input("data")
    counts, boxes, places = frame.outputs("counts", "boxes", "places")
    images, count, length = data.shape
    for place in (args.score_index, args.id_index):
        frame.require_at_most(place + 1, (dims_of(tensor(args, "data", context)) or (0,))[-1])

    def row(target: Buffer, values: Callable[[PrimVar], PrimExpr], image: PrimVar, at: PrimExpr) -> Stmt:
        return counted("k", length, lambda k: store(target, values(k), [image, at, k]))

    def cleared(image: PrimVar, j: PrimVar) -> Stmt:
        return joined(row(boxes, lambda k: const(-1, data.dtype), image, j), store(places, -1, [image, j]))

    def moved(image: PrimVar, j: PrimVar) -> Stmt:
        at = cast("int64", load(counts, [image]))
        valid = binary("gt", load(data, [image, j, args.score_index]), const(args.score_threshold, data.dtype))
        if args.id_index >= 0:
            known = binary("ge", load(data, [image, j, args.id_index]), const(0, data.dtype))
            valid = binary("and", valid, known)
        copy = row(boxes, lambda k: load(data, [image, j, k]), image, at)
        more = store(counts, load(counts, [image]) + 1, [image])
        return IfThenElse(valid, joined(copy, store(places, j, [image, at]), more))

    def each(image: Sequence[PrimVar]) -> Stmt:
        first = counted("j", count, lambda j: cleared(image[0], j))
        return joined(store(counts, 0, image), first, counted("j", count, lambda j: moved(image[0], j)))

    return frame.finish(loops((images,), each))


@register_op(
    "vision.get_valid_counts",
    [
        Param("data"),
        Param("score_threshold", "attr", 0.0, "float"),
        Param("id_index", "attr", 0, "int"),
        Param("score_index", "attr", 1, "int"),
    ],
    pure=True,
    lowering=_lower_get_valid_counts,
    numpy=_numpy_get_valid_counts,
    examples=(
        example(f32(2, 7, 6), 0.2),
        example(f32("b", "n", 5), 0.0, -1, 4),
        example(f32(1, 4, 3), 9.0, 2, 0),
    ),
)
def get_valid_counts(args: Arguments, context: TypeContext) -> Type:
    """Boxes whose score is over a threshold: (their number per image, the boxes moved to the front, their indices).

    data (b, n, e), rows of class, score and corners -> ((b,), (b, n, e), (b, n)), counts and indices int32.
    """
    data = tensor(args, "data", context)
    require_rank(args, "data", data, 3)
    require_dtype(args, "data", data, "float")
    dims = dims_of(data)
    if args.score_index < 0:
        raise shape_error(args, f"score_index is the place of the score in a row, got {args.score_index}", "W205")
    require_class(args)
    for name in ("score_index", "id_index"):
        if dims is not None and isinstance(dims[2], int) and getattr(args, name) >= dims[2]:
            raise shape_error(args, f"{name} is {getattr(args, name)}, and rows have {dims[2]} elements", "W205")
    counts = TensorType(None if dims is None else dims[:1], "int32", 1, data.vdevice)
    indices = TensorType(None if dims is None else dims[:2], "int32", 2, data.vdevice)
    return TupleType((counts, TensorType(dims, data.dtype, 3, data.vdevice), indices))


def require_class(args: Arguments) -> None:
    """ShapeError W205 for a place of the class in a row that is neither one nor -1, which is none."""
    if args.id_index < -1:
        raise shape_error(args, f"id_index is the place of the class in a row, or -1, got {args.id_index}", "W205")


def _require_fields(args: Arguments, dims: Dims | None) -> None:
    """Refuse places of fields outside of a row."""
    for name in ("score_index", "coord_start"):
        if args[name] < 0:
            what = "score" if name == "score_index" else "corners"
            raise shape_error(args, f"{name} is the place of the {what} in a row, got {args[name]}", "W205")
    require_class(args)
    last = max(args.coord_start + 4, args.score_index + 1, args.id_index + 1)
    if dims is not None and isinstance(dims[2], int) and dims[2] < last:
        what = f"rows have {dims[2]} elements, and the corners, the score and the class reach to {last}"
        raise shape_error(args, what, "W205")


@register_op(
    "vision.non_max_suppression",
    [
        Param("data"),
        Param("valid_count", of="int"),
        Param("indices", of="int"),
        Param("max_output_size", "attr", -1, "int"),
        Param("iou_threshold", "attr", 0.5, "float"),
        Param("force_suppress", "attr", False, "bool"),
        Param("top_k", "attr", -1, "int"),
        Param("coord_start", "attr", 2, "int"),
        Param("score_index", "attr", 1, "int"),
        Param("id_index", "attr", 0, "int"),
        Param("return_indices", "attr", True, "bool"),
        Param("invalid_to_bottom", "attr", False, "bool"),
        Param("soft_nms_sigma", "attr", 0.0, "float"),
        Param("score_threshold", "attr", 0.0, "float"),
    ],
    pure=True,
    lowering=lower_suppression,
    numpy=numpy_suppression,
    examples=(
        example(f32("b", "n", 6), _COUNTS, typed("int32", "b", "n"), ranges=_BOXES),
        example(f32(2, 9, 6), typed("int32", 2), typed("int32", 2, 9), 2, 0.2, True, 6, ranges=_BOXES),
        example(f32("b", 7, 6), _COUNTS, typed("int32", "b", 7), return_indices=False, ranges=_BOXES),
        example(
            f32("b", "n", 5),
            _COUNTS,
            typed("int32", "b", "n"),
            iou_threshold=0.1,
            id_index=-1,
            coord_start=1,
            score_index=0,
            return_indices=False,
            invalid_to_bottom=True,
            ranges=_BOXES,
        ),
        example(
            f32("b", "n", 6),
            _COUNTS,
            typed("int32", "b", "n"),
            soft_nms_sigma=0.5,
            score_threshold=0.2,
            max_output_size=3,
            ranges=_BOXES,
        ),
        example(
            typed("float64", 2, 5, 6),
            typed("int64", 2),
            typed("int64", 2, 5),
            soft_nms_sigma=0.3,
            id_index=-1,
            return_indices=False,
            ranges=_BOXES,
        ),
    ),
)
def non_max_suppression(args: Arguments, context: TypeContext) -> Type:
    """Boxes that overlap no better one: their indices (b, n) and number (b, 1), or the boxes themselves.

    data (b, n, e), of which the first valid_count of an image count and only the top_k best of these where it is over
    0. Boxes whose score is over 0 are taken by descending score, at most max_output_size where it is over 0; one that
    is taken suppresses those whose overlap with it is at least iou_threshold, of the same class unless id_index is
    below 0 or force_suppress holds. The results are filled up with -1. Without return_indices: the boxes in the order
    of their scores, each in its place, or moved to the front with invalid_to_bottom. With soft_nms_sigma an overlap
    below the threshold multiplies the score by exp(-overlap**2 / (2 * soft_nms_sigma)), boxes count while their score
    is over score_threshold, and the boxes with their new scores, at the front, come before the indices and the number.
    """
    data = tensor(args, "data", context)
    require_rank(args, "data", data, 3)
    require_dtype(args, "data", data, "float")
    for name, rank in (("valid_count", 1), ("indices", 2)):
        given = tensor(args, name, context)
        require_rank(args, name, given, rank)
        require_dtype(args, name, given, "integer")
    dims = dims_of(data)
    _require_fields(args, dims)
    if dims is not None:
        for name, axes in (("valid_count", ("images",)), ("indices", ("images", "boxes"))):
            own = dims_of(tensor(args, name, context))
            for size, other, what in zip(dims, own or (), axes, strict=False):
                context.require_equal(size, other, f"{args.name}: {what} of data and of {name}", args.span)
    boxes = TensorType(dims, data.dtype, 3, data.vdevice)
    if not args.return_indices:
        return boxes
    chosen = TensorType(None if dims is None else dims[:2], "int32", 2, data.vdevice)
    count = TensorType(None if dims is None else (dims[0], 1), "int32", 2, data.vdevice)
    return TupleType((boxes, chosen, count) if args.soft_nms_sigma > 0 else (chosen, count))


@register_op(
    "vision.all_class_non_max_suppression",
    [
        Param("boxes"),
        Param("scores"),
        Param("max_output_boxes_per_class", of="int"),
        Param("iou_threshold"),
        Param("score_threshold"),
        Param("output_format", "attr", "onnx", "str"),
    ],
    pure=True,
    lowering=lower_all_class_suppression,
    numpy=numpy_all_class_suppression,
    examples=(
        example(f32("b", "n", 4), f32("b", 3, "n"), i64(), f32(), f32(), ranges=_CHOICE),
        example(f32(2, 5, 4), f32(2, 2, 5), i64(1), f32(1), f32(1), "tensorflow", ranges=_CHOICE),
        example(f32("b", "n", 4), f32("b", "c", "n"), i64(), f32(), f32(), "tensorflow", ranges=_CHOICE),
        example(f32(1, 6, 4), f32(1, 2, 6), 2, 0.5, 0.25, ranges=_CHOICE),
    ),
)
def all_class_non_max_suppression(args: Arguments, context: TypeContext) -> Type:
    """Boxes that overlap no better one of their class, for every class.

    boxes (b, n, 4), scores (b, c, n). "onnx": rows (image, class, box) of shape (b * c * n, 3) and their number (1,);
    "tensorflow": rows (class, box) of shape (b, c * n, 2), their scores (b, c * n), and a number per image (b,). The
    boxes of a class whose score is over score_threshold are taken by descending score, at most
    max_output_boxes_per_class of them; one that is taken suppresses those whose overlap with it is at least
    iou_threshold. Each of the three is one number. The results are filled up with 0.
    """
    boxes, scores = tensor(args, "boxes", context), tensor(args, "scores", context)
    for name, ty in (("boxes", boxes), ("scores", scores)):
        require_rank(args, name, ty, 3)
        require_dtype(args, name, ty, "float")
    same_dtype(args, boxes, scores)
    for name in ("max_output_boxes_per_class", "iou_threshold", "score_threshold"):
        domain = "integer" if name == "max_output_boxes_per_class" else "float"
        given = tensor(args, name, context)
        require_rank(args, name, given, 0, 1)
        require_dtype(args, name, given, domain)
        for dim in dims_of(given) or ():
            context.require_equal(dim, 1, f"{args.name}: {name} is one number", args.span)
    if args.output_format not in _FORMS:
        raise shape_error(args, f"unknown output_format {args.output_format!r}", "W205", f"one of {', '.join(_FORMS)}")
    places, dims = dims_of(boxes), dims_of(scores)
    if places is not None and dims is not None:
        context.require_equal(places[0], dims[0], f"{args.name}: images of boxes and of scores", args.span)
        context.require_equal(places[1], dims[2], f"{args.name}: boxes and scores of an image", args.span)
    if places is not None:
        context.require_equal(places[2], 4, f"{args.name}: the corners of a box", args.span)
    onnx = args.output_format == "onnx"
    if dims is None:
        rows = TensorType(None, "int64", 2 if onnx else 3, boxes.vdevice)
        number = TensorType((1,) if onnx else None, "int64", 1, boxes.vdevice)
        return TupleType((rows, number) if onnx else (rows, TensorType(None, scores.dtype, 2, boxes.vdevice), number))
    images, most = dims[0], dims[1] * dims[2]
    if onnx:
        rows = TensorType((images * most, 3), "int64", vdevice=boxes.vdevice)
        return TupleType((rows, TensorType((1,), "int64", vdevice=boxes.vdevice)))
    rows = TensorType((images, most, 2), "int64", vdevice=boxes.vdevice)
    kept = TensorType((images, most), scores.dtype, vdevice=boxes.vdevice)
    return TupleType((rows, kept, TensorType((images,), "int64", vdevice=boxes.vdevice)))


def _numpy_multibox_transform_loc(
    cls_pred: np.ndarray,
    loc_pred: np.ndarray,
    anchor: np.ndarray,
    clip: bool,
    threshold: float,
    variances: Any,
    keep_background: bool,
    apply_softmax: bool,
) -> tuple[np.ndarray, np.ndarray]:
    dtype = cls_pred.dtype
    left, top, right, bottom = np.moveaxis(anchor.astype("float64"), 2, 0)
    x, y, w, h = np.moveaxis(loc_pred.astype("float64").reshape(len(loc_pred), loc_pred.shape[1] // 4, 4), 2, 0)
    sizes = right - left, bottom - top
    centres = x * variances[0] * sizes[0] + (left + right) / 2, y * variances[1] * sizes[1] + (top + bottom) / 2
    halves = np.exp(w * variances[2]) * sizes[0] / 2, np.exp(h * variances[3]) * sizes[1] / 2
    ends = [centres[1] - halves[1], centres[0] - halves[0], centres[1] + halves[1], centres[0] + halves[0]]
    boxes = np.stack(ends, 2)
    scores = cls_pred.astype("float64")
    if apply_softmax:
        scores = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
        scores = scores / scores.sum(1, keepdims=True)
    scores = scores * (scores.astype(dtype) >= dtype.type(threshold))
    if not keep_background:
        scores[:, :1] = 0
    return (np.clip(boxes, 0, 1) if clip else boxes).astype(dtype), scores.astype(dtype)


class _Multibox(LoopKernel):
    """The kernel of multibox_transform_loc: half floats are computed in float32."""

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        names = ("cls_pred", "loc_pred", "anchor")
        self.given, self.offsets, self.anchor = (self.frame.input(name) for name in names)
        dims = self._dims("cls_pred")
        for name, wanted in (("loc_pred", (dims[0], dims[2] * 4)), ("anchor", (1, dims[2], 4))):
            for own, size in zip(self._dims(name), wanted, strict=True):
                self.frame.require_equal(own, size)
        self.boxes, self.scores = self.frame.outputs("boxes", "scores")
        self.wide = "float64" if self.given.dtype == "float64" else "float32"
        self.top, self.total = (self.frame.local(name, self.wide) for name in ("top", "total"))
        images, self.classes, count = self.given.shape
        return self.frame.finish(loops((images, count), lambda at: joined(*self._box(*at), *self._scores(*at))))

    def _dims(self, name: str) -> Dims:
        dims = dims_of(tensor(self.args, name, self.context))
        assert dims is not None  # the frame is known
        return dims

    def _get(self, buffer: Buffer, *at: int | PrimExpr) -> PrimExpr:
        return cast(self.wide, load(buffer, at))

    def _number(self, value: float) -> PrimExpr:
        return const(value, self.wide)

    def _box(self, image: PrimVar, n: PrimVar) -> list[Stmt]:
        """The corners (y, x) and (y, x) of a box."""
        corners = [self._get(self.anchor, 0, n, place) for place in range(4)]
        half = self._number(0.5)
        low: list[PrimExpr] = []
        high: list[PrimExpr] = []
        for axis in (1, 0):
            moves, grows = (self._get(self.offsets, image, n * 4 + place) for place in (axis, axis + 2))
            size = corners[axis + 2] - corners[axis]
            middle = (corners[axis] + corners[axis + 2]) * half
            centre = moves * self._number(self.args.variances[axis]) * size + middle
            reach = intrinsic("exp", grows * self._number(self.args.variances[axis + 2])) * size * half
            low.append(centre - reach)
            high.append(centre + reach)
        return [store(self.boxes, self._clipped(end), [image, n, place]) for place, end in enumerate([*low, *high])]

    def _clipped(self, end: PrimExpr) -> PrimExpr:
        if not self.args.clip:
            return end
        return binary("max", self._number(0), binary("min", self._number(1), end))

    def _scores(self, image: PrimVar, n: PrimVar) -> list[Stmt]:
        """The scores of a box for every class."""

        def given(c: PrimExpr) -> PrimExpr:
            return self._get(self.given, image, c, n)

        def power(c: PrimExpr) -> PrimExpr:
            return intrinsic("exp", given(c) - load(self.top, [0]))

        def kept(c: PrimExpr) -> Stmt:
            value = power(c) / load(self.total, [0]) if self.args.apply_softmax else given(c)
            over = binary("ge", cast(self.scores.dtype, value), const(self.args.threshold, self.scores.dtype))
            return store(self.scores, value * cast(self.wide, over), [image, c, n])

        steps: list[Stmt] = []
        if self.args.apply_softmax:
            higher = self._each_class(lambda c: store(self.top, binary("max", load(self.top, [0]), given(c))))
            added = self._each_class(lambda c: store(self.total, load(self.total, [0]) + power(c)))
            steps += [store(self.top, self._number(float("-inf"))), higher, store(self.total, self._number(0)), added]
        steps.append(self._each_class(kept))
        if not self.args.keep_background:
            background = store(self.scores, 0, [image, index(0), n])
            steps.append(IfThenElse(binary("gt", index(self.classes), 0), background))
        return steps

    def _each_class(self, body: Callable[[PrimVar], Stmt]) -> Stmt:
        return counted("c", self.classes, body)


@register_op(
    "vision.multibox_transform_loc",
    [
        Param("cls_pred"),
        Param("loc_pred"),
        Param("anchor"),
        Param("clip", "attr", False, "bool"),
        Param("threshold", "attr", 0.0, "float"),
        Param("variances", "attr", (1.0, 1.0, 1.0, 1.0), "any"),
        Param("keep_background", "attr", True, "bool"),
        Param("apply_softmax", "attr", True, "bool"),
    ],
    pure=True,
    lowering=_Multibox.lowering(),
    numpy=_numpy_multibox_transform_loc,
    examples=(
        example(f32(2, 3, 5), f32(2, 20), f32(1, 5, 4)),
        example(
            f32("b", 4, "n"),
            TensorType((symbol("b"), symbol("n") * 4), "float32"),
            f32(1, "n", 4),
            clip=True,
            threshold=0.3,
            variances=(0.1, 0.2, 0.3, 0.4),
        ),
        example(f32(1, 2, 3), f32(1, 12), f32(1, 3, 4), keep_background=False, apply_softmax=False),
    ),
)
def multibox_transform_loc(args: Arguments, context: TypeContext) -> Type:
    """Boxes from anchors and predicted offsets, with the scores of every class.

    cls_pred (b, c, n), loc_pred (b, 4 * n) as (x, y, w, h), anchor (1, n, 4) as (left, top, right, bottom) -> boxes
    (b, n, 4) as (top, left, bottom, right), scores (b, c, n). Offsets are multiplied by the variances; scores below the
    threshold are 0, after softmax over the classes, and those of class 0 without keep_background.
    """
    scores, offsets, anchor = (tensor(args, name, context) for name in ("cls_pred", "loc_pred", "anchor"))
    for name, ty, rank in (("cls_pred", scores, 3), ("loc_pred", offsets, 2), ("anchor", anchor, 3)):
        require_rank(args, name, ty, rank)
        require_dtype(args, name, ty, "float")
    same_dtype(args, scores, offsets)
    same_dtype(args, scores, anchor)
    if not (
        is_listing(args.variances)
        and len(args.variances) == 4
        and all(isinstance(item, (int, float)) for item in args.variances)
    ):
        raise shape_error(args, f"variances are four numbers (x, y, w, h), got {args.variances!r}", "W205")
    dims, given, places = dims_of(scores), dims_of(offsets), dims_of(anchor)
    if dims is None:
        unknown = TensorType(None, scores.dtype, 3, scores.vdevice)
        return TupleType((unknown, unknown))
    if given is not None:
        context.require_equal(given[0], dims[0], f"{args.name}: images of offsets and of scores", args.span)
        context.require_equal(given[1], dims[2] * 4, f"{args.name}: four offsets for each anchor", args.span)
    if places is not None:
        context.require_equal(places[0], 1, f"{args.name}: sets of anchors", args.span)
        context.require_equal(places[1], dims[2], f"{args.name}: anchors and scores", args.span)
        context.require_equal(places[2], 4, f"{args.name}: corners of an anchor", args.span)
    boxes = TensorType((dims[0], dims[2], 4), scores.dtype, vdevice=scores.vdevice)
    return TupleType((boxes, TensorType(dims, scores.dtype, vdevice=scores.vdevice)))


@register_op(
    "nn.attention_var_len",
    [
        Param("queries"),
        Param("keys"),
        Param("values"),
        Param("seqstart_q", of="int"),
        Param("max_seqlen_q", of="int"),
        Param("seqstart_k", default=None, of="int"),
        Param("max_seqlen_k", default=None, of="int"),
        Param("scale", "attr", None, "float?"),
        Param("causal_mask", "attr", None, "str?"),
        Param("window_size", "attr", None, "int?"),
    ],
    pure=True,
    builtin=Builtin.ATTENTION,
)
def attention_var_len(args: Arguments, context: TypeContext) -> Type:
    """Attention within each of several sequences that lie one after the other: see nn.attention.

    queries (1, s, n, h), keys (1, t, n, h), values (1, t, n, v) -> (1, s, n, v). Sequence i of the queries is the rows
    from seqstart_q[i] up to seqstart_q[i + 1]; without seqstart_k the keys are cut alike.
    """
    queries, keys, values = (tensor(args, name, context) for name in ("queries", "keys", "values"))
    for name, ty in (("queries", queries), ("keys", keys), ("values", values)):
        require_rank(args, name, ty, 4)
        require_dtype(args, name, ty, "float")
    same_dtype(args, queries, keys)
    same_dtype(args, queries, values)
    own, other, last = dims_of(queries), dims_of(keys), dims_of(values)
    if own is None or last is None:
        return TensorType(None, queries.dtype, 4, queries.vdevice)
    context.require_equal(own[0], 1, f"{args.name}: the batch of packed sequences", args.span)
    if other is not None:
        context.require_equal(own[3], other[3], f"{args.name}: widths of queries and of keys", args.span)
        context.require_equal(other[1], last[1], f"{args.name}: keys and values", args.span)
    return TensorType((*own[:3], last[3]), queries.dtype, vdevice=queries.vdevice)
