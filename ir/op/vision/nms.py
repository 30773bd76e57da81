"""Suppression of boxes that overlap a better one: the references in NumPy and the kernels.

The boxes of an image (of a class) are taken by descending score, those of equal score in their order. One that is taken
suppresses those after it whose overlap with it, intersection over union of the areas, is at least the threshold. A box
is two opposite corners in any order. Half floats are computed in float32.

Source: Neubeck and Van Gool, Efficient non-maximum suppression, 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.kernel.prim import binary, cast, const, intrinsic
from weft.ir.op.common import Dims, tensor
from weft.ir.op.declare import Arguments
from weft.ir.op.indexing.merge_sort import RowSort, lazy
from weft.ir.op.kernel_builder import INDEX, LoopKernel, Loops, counted, index, joined, load, loops, store
from weft.ir.tensor import Buffer, For, IfThenElse, PrimExpr, PrimFunc, PrimVar, SeqStmt, Stmt

__all__ = [
    "lower_all_class_suppression",
    "lower_suppression",
    "numpy_all_class_suppression",
    "numpy_suppression",
]


def _wide(dtype: str) -> str:
    """What overlaps are computed in."""
    return "float64" if dtype == "float64" else "float32"


# The references ------------------------------------------------------------------------------------------------------


def _descending(scores: np.ndarray) -> np.ndarray:
    """Positions by descending score, nan first, those of equal score in their order."""
    return len(scores) - 1 - np.argsort(scores[::-1], kind="stable")[::-1]


def _overlap(first: np.ndarray, second: np.ndarray) -> Any:
    """Intersection over union of two boxes."""
    lows = [np.minimum(box[:2], box[2:]) for box in (first, second)]
    highs = [np.maximum(box[:2], box[2:]) for box in (first, second)]
    zero = first.dtype.type(0)
    common = np.maximum(zero, np.minimum(*highs) - np.maximum(*lows))
    areas = [high - low for low, high in zip(lows, highs, strict=True)]
    shared = common[1] * common[0]
    union = areas[0][0] * areas[0][1] + areas[1][0] * areas[1][1] - shared
    return zero if union <= zero else shared / union


def _greedy(
    boxes: np.ndarray, alive: np.ndarray, same: Callable[[int, int], bool], threshold: Any, most: int
) -> list[int]:
    """The boxes that are taken, which stand by descending score; at most `most` of them."""
    alive, taken = alive.copy(), list[int]()
    for j in range(len(boxes)):
        if not alive[j] or len(taken) >= most:
            continue
        taken.append(j)
        for k in range(j + 1, len(boxes)):
            if alive[k] and same(j, k) and _overlap(boxes[j], boxes[k]) >= threshold:
                alive[k] = False
    return taken


def _soft(
    boxes: np.ndarray,
    scores: np.ndarray,
    same: Callable[[int, int], bool],
    threshold: Any,
    most: int,
    sigma: float,
    least: Any,
) -> list[int]:
    """The boxes that are taken where an overlap lowers a score, which is written to `scores`."""
    alive, taken = scores > least, list[int]()
    scale = scores.dtype.type(-0.5 / sigma)
    while alive.any() and len(taken) < most:
        j = max(map(int, np.flatnonzero(alive)), key=lambda at: scores[at])  # the first of several
        taken.append(j)
        alive[j] = False
        for k in map(int, np.flatnonzero(alive)):
            if not same(j, k):
                continue
            overlap = _overlap(boxes[j], boxes[k])
            if overlap < threshold:
                scores[k] *= np.exp(scale * overlap * overlap)
            alive[k] = overlap < threshold and scores[k] > least
    return taken


def numpy_suppression(
    data: np.ndarray,
    valid_count: np.ndarray,
    indices: np.ndarray,
    max_output_size: int,
    iou_threshold: float,
    force_suppress: bool,
    top_k: int,
    coord_start: int,
    score_index: int,
    id_index: int,
    return_indices: bool,
    invalid_to_bottom: bool,
    soft_nms_sigma: float,
    score_threshold: float,
) -> Any:
    """The reference of vision.non_max_suppression."""
    images, number, _ = data.shape
    kept, chosen = np.full_like(data, -1), np.full((images, number), -1, "int32")
    counts = np.zeros((images, 1), "int32")
    kind = np.dtype(_wide(str(data.dtype))).type
    for image, rows in enumerate(data):
        valid = min(max(int(valid_count[image]), 0), number)
        order = _descending(rows[:valid, score_index])[: top_k if top_k > 0 else None]
        ordered = rows[order]
        classes = ordered[:, id_index] if id_index >= 0 and not force_suppress else np.zeros(len(ordered))
        boxes, scores = ordered[:, coord_start : coord_start + 4].astype(kind), ordered[:, score_index].astype(kind)
        most = max_output_size if max_output_size > 0 else number

        def same(j: int, k: int, classes: np.ndarray = classes) -> bool:
            return bool(classes[j] == classes[k])

        if soft_nms_sigma > 0:
            least = kind(score_threshold)
            taken = _soft(boxes, scores, same, kind(iou_threshold), most, soft_nms_sigma, least)
            ordered = ordered.copy()
            ordered[:, score_index] = scores
        else:
            taken = _greedy(boxes, scores > 0, same, kind(iou_threshold), most)
        front = soft_nms_sigma > 0 or invalid_to_bottom
        kept[image, list(range(len(taken))) if front else taken] = ordered[taken]
        chosen[image, : len(taken)] = indices[image][order[taken]]
        counts[image] = len(taken)
    if not return_indices:
        return kept
    return (kept, chosen, counts) if soft_nms_sigma > 0 else (chosen, counts)


def numpy_all_class_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str,
) -> Any:
    """The reference of vision.all_class_non_max_suppression."""
    most = int(np.reshape(max_output_boxes_per_class, ()))
    kind = np.dtype(_wide(str(boxes.dtype))).type
    overlap, least = (kind(np.reshape(value, ())) for value in (iou_threshold, score_threshold))
    images, classes, number = scores.shape
    found: list[list[tuple[int, int]]] = [[] for _ in range(images)]
    for image in range(images):
        for label in range(classes):
            order = _descending(scores[image, label])
            alive = scores[image, label][order].astype(kind) > least
            taken = _greedy(boxes[image][order].astype(kind), alive, lambda j, k: True, overlap, most)
            found[image] += [(label, int(order[j])) for j in taken]
    if output_format == "onnx":
        rows = np.zeros((images * classes * number, 3), "int64")
        all_rows = [(image, *row) for image in range(images) for row in found[image]]
        rows[: len(all_rows)] = np.reshape(np.array(all_rows, "int64"), (-1, 3))
        return rows, np.array([len(all_rows)], "int64")
    rows, kept = np.zeros((images, classes * number, 2), "int64"), np.zeros((images, classes * number), scores.dtype)
    for image, places in enumerate(found):
        for at, (label, box) in enumerate(places):
            rows[image, at], kept[image, at] = (label, box), scores[image, label, box]
    return rows, kept, np.array([len(places) for places in found], "int64")


# The kernels ---------------------------------------------------------------------------------------------------------


def _dims(args: Arguments, name: str, context: TypeContext) -> Dims:
    dims = dims_of(tensor(args, name, context))
    assert dims is not None  # the frame is known
    return dims


class _Suppression:
    """What both kernels share: a row of candidates by descending score, and which of them are still there."""

    def __init__(self, frame: Loops, number: Any, dtype: str, element: Callable[[PrimExpr], PrimExpr]) -> None:
        """`number` is the dimension of a row, `element` the score at a position of it."""
        self.frame = frame
        self.wide = _wide(dtype)
        self.total, self.taken = (frame.local(name) for name in ("total", "taken"))
        self.alive = frame.local("alive", "bool", (number,))
        self.order = RowSort(frame.extent(number), load(self.total, [0]), element, dtype, descending=True)
        for buffer in self.order.buffers:
            frame.own(buffer)
        self.count = load(self.total, [0])
        self.number = load(self.taken, [0])

    def of(self, value: Any) -> PrimExpr:
        """A number of the type that overlaps are computed in."""
        return cast(self.wide, value) if isinstance(value, PrimExpr) else const(value, self.wide)

    def overlap(self, first: Sequence[PrimExpr], second: Sequence[PrimExpr]) -> PrimExpr:
        """Intersection over union of two boxes, each the four numbers of two corners."""
        lows, highs = (
            [[binary(which, box[axis], box[axis + 2]) for axis in range(2)] for box in (first, second)]
            for which in ("min", "max")
        )
        zero = self.of(0)
        common = [
            binary(
                "max", zero, binary("min", highs[0][axis], highs[1][axis]) - binary("max", lows[0][axis], lows[1][axis])
            )
            for axis in range(2)
        ]
        areas = [(highs[box][0] - lows[box][0]) * (highs[box][1] - lows[box][1]) for box in range(2)]
        shared = common[1] * common[0]
        union = areas[0] + areas[1] - shared
        return lazy(binary("le", union, zero), zero, shared / union)

    def greedy(
        self,
        take: Callable[[PrimExpr], Stmt],
        more: PrimExpr,
        same: Callable[[PrimExpr, PrimExpr], PrimExpr | None],
        overlap: Callable[[PrimExpr, PrimExpr], PrimExpr],
        threshold: PrimExpr,
    ) -> Stmt:
        """Take candidates in order while `more` holds."""

        def suppressed(j: PrimExpr, k: PrimVar) -> Stmt:
            over = IfThenElse(binary("ge", overlap(j, k), threshold), store(self.alive, False, [k]))
            return IfThenElse(self.candidate(k, same(j, k)), over)

        def candidate(j: PrimVar) -> Stmt:
            k = PrimVar("k", INDEX)
            rest = For(k, j + 1, self.count - j - 1, suppressed(j, k))
            return IfThenElse(binary("and", load(self.alive, [j]), more), joined(take(j), self.one_more(), rest))

        return counted("j", self.count, candidate)

    def candidate(self, k: PrimExpr, same: PrimExpr | None) -> PrimExpr:
        """Whether a candidate is still there, and may be suppressed."""
        alive = load(self.alive, [k])
        return alive if same is None else binary("and", alive, same)

    def one_more(self) -> Stmt:
        """Count what is taken."""
        return store(self.taken, self.number + 1)


class _Classic(LoopKernel):
    """The kernel of vision.non_max_suppression."""

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        args, frame = self.args, self.frame
        self.data, self.valid, self.indices = (frame.input(name) for name in ("data", "valid_count", "indices"))
        dims = _dims(args, "data", self.context)
        frame.require_at_most(max(args.coord_start + 4, args.score_index + 1, args.id_index + 1), dims[2])
        for name, axes in (("valid_count", (0,)), ("indices", (0, 1))):
            given = _dims(args, name, self.context)
            for axis in axes:
                frame.require_equal(given[axis], dims[axis])
        self._outputs()
        self.image = PrimVar("image", INDEX)
        self.row = _Suppression(frame, dims[1], self.data.dtype, lambda at: self._score(at))
        self.scores = frame.local("scores", self.row.wide, (dims[1],)) if self.soft else None
        images, number, self.length = self.data.shape
        self.size = index(number)
        body = joined(*self._begin(), self._taken_softly() if self.soft else self._taken())
        return frame.finish(For(self.image, 0, images, body))

    def _outputs(self) -> None:
        self.soft = self.args.soft_nms_sigma > 0
        self.kept = self.chosen = self.counts = None
        if not self.args.return_indices:
            (self.kept,) = self.frame.outputs("kept")
        elif self.soft:
            self.kept, self.chosen, self.counts = self.frame.outputs("kept", "chosen", "counts")
        else:
            self.chosen, self.counts = self.frame.outputs("chosen", "counts")

    def _field(self, at: PrimExpr, field: int) -> PrimExpr:
        """A field of the candidate of a rank."""
        return load(self.data, [self.image, self.row.order.at(at), field])

    def _score(self, position: PrimExpr) -> PrimExpr:
        return load(self.data, [self.image, position, self.args.score_index])

    def _begin(self) -> list[Stmt]:
        """Sort the valid boxes, and clear the results."""
        row, args = self.row, self.args
        valid = binary("max", index(0), binary("min", cast(INDEX, load(self.valid, [self.image])), self.size))
        steps: list[Stmt] = [store(row.total, valid), *row.order.statements()]
        if args.top_k > 0:
            steps.append(store(row.total, binary("min", row.count, index(args.top_k))))
        steps += [store(row.taken, 0), counted("c", self.size, self._cleared), counted("c", row.count, self._valid)]
        return steps

    def _cleared(self, at: PrimVar) -> Stmt:
        steps: list[Stmt] = []
        if self.kept is not None:
            steps.append(self._row(at, lambda k: const(-1, self.data.dtype)))
        if self.chosen is not None:
            steps.append(store(self.chosen, -1, [self.image, at]))
        return joined(*steps)

    def _row(self, at: PrimExpr, value: Callable[[PrimVar], PrimExpr]) -> Stmt:
        assert self.kept is not None
        kept = self.kept
        return counted("f", self.length, lambda field: store(kept, value(field), [self.image, at, field]))

    def _valid(self, at: PrimVar) -> Stmt:
        score = self.row.of(self._field(at, self.args.score_index))
        alive = store(self.row.alive, binary("gt", score, self._least()), [at])
        return alive if self.scores is None else joined(alive, store(self.scores, score, [at]))

    def _least(self) -> PrimExpr:
        return self.row.of(self.args.score_threshold if self.soft else 0)

    def _more(self) -> PrimExpr:
        """Whether another box may be taken."""
        most = self.args.max_output_size
        return binary("lt", self.row.number, index(most)) if most > 0 else const(True, "bool")

    def _same(self, j: PrimExpr, k: PrimExpr) -> PrimExpr | None:
        """Whether two candidates may suppress each other; None for all."""
        if self.args.id_index < 0 or self.args.force_suppress:
            return None
        return binary("eq", self._field(j, self.args.id_index), self._field(k, self.args.id_index))

    def _overlap(self, j: PrimExpr, k: PrimExpr) -> PrimExpr:
        first = self.args.coord_start
        boxes = [[self.row.of(self._field(at, first + place)) for place in range(4)] for at in (j, k)]
        return self.row.overlap(*boxes)

    def _take(self, j: PrimExpr, score: PrimExpr | None = None) -> Stmt:
        """Write a box that is taken."""
        steps: list[Stmt] = []
        if self.kept is not None:
            at = self.row.number if self.soft or self.args.invalid_to_bottom else j
            steps.append(self._row(at, lambda field: load(self.data, [self.image, self.row.order.at(j), field])))
            if score is not None:
                steps.append(store(self.kept, score, [self.image, at, self.args.score_index]))
        if self.chosen is not None:
            place = load(self.indices, [self.image, self.row.order.at(j)])
            steps.append(store(self.chosen, place, [self.image, self.row.number]))
        return joined(*steps)

    def _counted(self) -> list[Stmt]:
        return [] if self.counts is None else [store(self.counts, self.row.number, [self.image, 0])]

    def _taken(self) -> Stmt:
        threshold = self.row.of(self.args.iou_threshold)
        return joined(self.row.greedy(self._take, self._more(), self._same, self._overlap, threshold), *self._counted())

    def _taken_softly(self) -> Stmt:
        """Take the best score there is now, then lower those that overlap it."""
        row, frame, scores = self.row, self.frame, self.scores
        assert scores is not None
        best, overlap = frame.local("best"), frame.local("overlap", row.wide)
        found = load(best, [0])

        def better(at: PrimVar) -> Stmt:
            none_yet = binary("lt", found, index(0))
            over = lazy(none_yet, const(True, "bool"), binary("gt", load(scores, [at]), load(scores, [found])))
            return IfThenElse(load(row.alive, [at]), IfThenElse(over, store(best, at)))

        def lowered(at: PrimVar) -> Stmt:
            much = load(overlap, [0])
            factor = intrinsic("exp", row.of(-0.5 / self.args.soft_nms_sigma) * much * much)
            stays = joined(
                store(scores, load(scores, [at]) * factor, [at]),
                store(row.alive, binary("gt", load(scores, [at]), self._least()), [at]),
            )
            below = binary("lt", much, row.of(self.args.iou_threshold))
            changed = IfThenElse(below, stays, store(row.alive, False, [at]))
            measured = store(overlap, self._overlap(found, at))
            return IfThenElse(row.candidate(at, self._same(found, at)), joined(measured, changed))

        def turn(_: PrimVar) -> Stmt:
            take = self._take(found, load(scores, [found]))
            rest = counted("k", row.count, lowered)
            taken = joined(take, row.one_more(), store(row.alive, False, [found]), rest)
            search = joined(store(best, -1), counted("s", row.count, better))
            return IfThenElse(self._more(), joined(search, IfThenElse(binary("ge", found, index(0)), taken)))

        return joined(counted("j", row.count, turn), *self._counted())


lower_suppression = _Classic.lowering()


class _AllClasses(LoopKernel):
    """The kernel of vision.all_class_non_max_suppression."""

    def body(self) -> PrimFunc:
        """The statements in the frame."""
        frame = self.frame
        self.boxes, self.scores = frame.input("boxes"), frame.input("scores")
        most, threshold, least = (
            self._scalar(name) for name in ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
        )
        dims = _dims(self.args, "scores", self.context)
        places = _dims(self.args, "boxes", self.context)
        frame.require_equal(places[0], dims[0])
        frame.require_equal(places[1], dims[2])
        frame.require_equal(places[2], 4)
        self.onnx = self.args.output_format == "onnx"
        names = ("rows", "number") if self.onnx else ("rows", "kept", "number")
        self.rows, *kept, self.number = frame.outputs(*names)
        self.kept: Buffer | None = kept[0] if kept else None
        self.image, self.label = PrimVar("image", INDEX), PrimVar("label", INDEX)
        self.row = row = _Suppression(
            frame, dims[2], self.scores.dtype, lambda at: load(self.scores, [self.image, self.label, at])
        )
        images, labels, number = self.scores.shape
        alive = counted(
            "c",
            number,
            lambda at: store(row.alive, binary("gt", row.of(self._score(at)), row.of(least)), [at]),
        )
        more = binary("lt", row.number, cast(INDEX, most))
        found = row.greedy(self._take, more, lambda j, k: None, self._overlap, row.of(threshold))
        each = joined(store(row.total, number), store(row.taken, 0), *row.order.statements(), alive, found)
        classes = For(self.label, 0, labels, each)
        count = [0] if self.onnx else [self.image]
        zero = store(self.number, 0, count)
        body = classes if self.onnx else joined(zero, classes)
        return frame.finish(*self._cleared(), *([zero] if self.onnx else []), For(self.image, 0, images, body))

    def _scalar(self, name: str) -> PrimExpr:
        """The value of an argument that is one number."""
        given = self.frame.input(name)
        return load(given, [0] * len(given.shape) if isinstance(given, Buffer) else [])

    def _cleared(self) -> list[Stmt]:
        """Zeros where no box stands."""
        rows = loops(self.rows.shape, lambda at: store(self.rows, 0, at))
        kept = self.kept
        return [rows] if kept is None else [rows, loops(kept.shape, lambda at: store(kept, 0, at))]

    def _score(self, at: PrimExpr) -> PrimExpr:
        return load(self.scores, [self.image, self.label, self.row.order.at(at)])

    def _overlap(self, j: PrimExpr, k: PrimExpr) -> PrimExpr:
        boxes = [
            [self.row.of(load(self.boxes, [self.image, self.row.order.at(at), place])) for place in range(4)]
            for at in (j, k)
        ]
        return self.row.overlap(*boxes)

    def _take(self, j: PrimExpr) -> Stmt:
        count = [index(0)] if self.onnx else [self.image]
        at = load(self.number, count)
        place = self.row.order.at(j)
        fields = (self.image, self.label, place) if self.onnx else (self.label, place)
        first = [at] if self.onnx else [self.image, at]
        steps = [store(self.rows, field, [*first, index(position)]) for position, field in enumerate(fields)]
        if self.kept is not None:
            steps.append(store(self.kept, self._score(j), first))
        return SeqStmt((*steps, store(self.number, at + 1, count)))


lower_all_class_suppression = _AllClasses.lowering()
