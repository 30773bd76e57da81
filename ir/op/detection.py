"""Operators of object detection: choosing among boxes by their scores.

Their results have the sizes of the worst case, with a count of what is valid. Errors: ShapeError W201, W202, W205 an
unknown form of output; DTypeError W320, W321.
"""

from __future__ import annotations

from weft.ir.infer import TypeContext
from weft.ir.op.common import require_dtype, require_rank, same_dtype, shape_error, tensor
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.registry import register_op
from weft.ir.relations import dims_of
from weft.ir.types import TensorType, TupleType, Type

__all__: list[str] = []

_LIBRARY = "a library of detection, by R.call_dps_packed"
_FORMS = ("onnx", "tensorflow")


@register_op(
    "vision.get_valid_counts",
    [
        Param("data"), Param("score_threshold", "attr", 0.0, "float"), Param("id_index", "attr", 0, "int"),
        Param("score_index", "attr", 1, "int"),
    ],
    pure=True,
    builtin=_LIBRARY,
)  # fmt: skip
def get_valid_counts(args: Arguments, context: TypeContext) -> Type:
    """Boxes whose score is over a threshold: (their number per image, the boxes moved to the front, their indices).

    data (b, n, e), rows of class, score and corners -> ((b,), (b, n, e), (b, n)), counts and indices int32.
    """
    data = tensor(args, "data", context)
    require_rank(args, "data", data, 3)
    require_dtype(args, "data", data, "float")
    dims = dims_of(data)
    counts = TensorType(None if dims is None else dims[:1], "int32", 1, data.vdevice)
    indices = TensorType(None if dims is None else dims[:2], "int32", 2, data.vdevice)
    return TupleType((counts, TensorType(dims, data.dtype, 3, data.vdevice), indices))


@register_op(
    "vision.non_max_suppression",
    [
        Param("data"), Param("valid_count", of="int"), Param("indices", of="int"),
        Param("max_output_size", "attr", -1, "int"), Param("iou_threshold", "attr", 0.5, "float"),
        Param("force_suppress", "attr", False, "bool"), Param("top_k", "attr", -1, "int"),
        Param("coord_start", "attr", 2, "int"), Param("score_index", "attr", 1, "int"),
        Param("id_index", "attr", 0, "int"), Param("return_indices", "attr", True, "bool"),
        Param("invalid_to_bottom", "attr", False, "bool"), Param("soft_nms_sigma", "attr", 0.0, "float"),
        Param("score_threshold", "attr", 0.0, "float"),
    ],
    pure=True,
    builtin=_LIBRARY,
)  # fmt: skip
def non_max_suppression(args: Arguments, context: TypeContext) -> Type:
    """Boxes that overlap no better one: their indices (b, n) and number (b, 1), or the boxes themselves.

    data (b, n, e). Without return_indices the boxes, moved to the front; with soft_nms_sigma the boxes with their new
    scores, the indices and the number.
    """
    data = tensor(args, "data", context)
    require_rank(args, "data", data, 3)
    require_dtype(args, "data", data, "float")
    for name, rank in (("valid_count", 1), ("indices", 2)):
        given = tensor(args, name, context)
        require_rank(args, name, given, rank)
        require_dtype(args, name, given, "integer")
    dims = dims_of(data)
    boxes = TensorType(dims, data.dtype, 3, data.vdevice)
    if not args.return_indices:
        return boxes
    chosen = TensorType(None if dims is None else dims[:2], "int32", 2, data.vdevice)
    count = TensorType(None if dims is None else (dims[0], 1), "int32", 2, data.vdevice)
    return TupleType((boxes, chosen, count) if args.soft_nms_sigma > 0 else (chosen, count))


@register_op(
    "vision.all_class_non_max_suppression",
    [
        Param("boxes"), Param("scores"), Param("max_output_boxes_per_class"), Param("iou_threshold"),
        Param("score_threshold"), Param("output_format", "attr", "onnx", "str"),
    ],
    pure=True,
    builtin=_LIBRARY,
)  # fmt: skip
def all_class_non_max_suppression(args: Arguments, context: TypeContext) -> Type:
    """Boxes that overlap no better one of their class, for every class.

    boxes (b, n, 4), scores (b, c, n). "onnx": rows (image, class, box) of shape (b * c * n, 3) and their number (1,);
    "tensorflow": rows (class, box) of shape (b, c * n, 2), their scores (b, c * n), and a number per image (b,).
    """
    boxes, scores = tensor(args, "boxes", context), tensor(args, "scores", context)
    for name, ty in (("boxes", boxes), ("scores", scores)):
        require_rank(args, name, ty, 3)
        require_dtype(args, name, ty, "float")
    same_dtype(args, boxes, scores)
    if args.output_format not in _FORMS:
        raise shape_error(args, f"unknown output_format {args.output_format!r}", "W205", f"one of {', '.join(_FORMS)}")
    places, dims = dims_of(boxes), dims_of(scores)
    if places is not None and dims is not None:
        context.require_equal(places[0], dims[0], f"{args.name}: images of boxes and of scores", args.span)
        context.require_equal(places[1], dims[2], f"{args.name}: boxes and scores of an image", args.span)
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


@register_op(
    "vision.multibox_transform_loc",
    [
        Param("cls_pred"), Param("loc_pred"), Param("anchor"), Param("clip", "attr", False, "bool"),
        Param("threshold", "attr", 0.0, "float"), Param("variances", "attr", (1.0, 1.0, 1.0, 1.0), "any"),
        Param("keep_background", "attr", True, "bool"), Param("apply_softmax", "attr", True, "bool"),
    ],
    pure=True,
    builtin=_LIBRARY,
)  # fmt: skip
def multibox_transform_loc(args: Arguments, context: TypeContext) -> Type:
    """Boxes from anchors and predicted offsets, with the scores of every class.

    cls_pred (b, c, n), loc_pred (b, 4 * n), anchor (1, n, 4) -> boxes (b, n, 4), scores (b, c, n).
    """
    scores, offsets, anchor = (tensor(args, name, context) for name in ("cls_pred", "loc_pred", "anchor"))
    for name, ty, rank in (("cls_pred", scores, 3), ("loc_pred", offsets, 2), ("anchor", anchor, 3)):
        require_rank(args, name, ty, rank)
        require_dtype(args, name, ty, "float")
    same_dtype(args, scores, offsets)
    same_dtype(args, scores, anchor)
    dims, given, places = dims_of(scores), dims_of(offsets), dims_of(anchor)
    if dims is None:
        unknown = TensorType(None, scores.dtype, 3, scores.vdevice)
        return TupleType((unknown, unknown))
    if given is not None:
        context.require_equal(given[1], dims[2] * 4, f"{args.name}: four offsets for each anchor", args.span)
    if places is not None:
        context.require_equal(places[1], dims[2], f"{args.name}: anchors and scores", args.span)
    boxes = TensorType((dims[0], dims[2], 4), scores.dtype, vdevice=scores.vdevice)
    return TupleType((boxes, TensorType(dims, scores.dtype, vdevice=scores.vdevice)))


@register_op(
    "nn.attention_var_len",
    [
        Param("queries"), Param("keys"), Param("values"), Param("seqstart_q", of="int"),
        Param("max_seqlen_q", of="int"), Param("seqstart_k", default=None, of="int"),
        Param("max_seqlen_k", default=None, of="int"), Param("scale", "attr", None, "float?"),
        Param("causal_mask", "attr", None, "str?"), Param("window_size", "attr", None, "int?"),
    ],
    pure=True,
    builtin="a library of attention, by R.call_dps_packed",
)  # fmt: skip
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
