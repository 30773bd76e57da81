"""The loss of connectionist temporal classification: how unlikely the targets are, whatever their places in time.

The forward variables run in float32 (float64 for float64), as logarithms, one row of them at a time.
Errors: ShapeError W201, W202 sizes that do not fit, W205 a reduction or a blank; DTypeError W320, W321; at run time
BoundsError for a length or a target that is out of range.

Source: Graves et al., Connectionist temporal classification, 2006, equations 5 to 8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import BoundsError
from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import symbol
from weft.ir.kernel.prim import binary, cast, const, intrinsic, unary
from weft.ir.op.common import (
    example,
    f32,
    i64,
    require_dtype,
    require_known_rank,
    shape_error,
    tensor,
    typed,
)
from weft.ir.op.declare import Arguments, Param
from weft.ir.op.kernel_builder import INDEX, LoopKernel, counted, index, joined, load, store, zero
from weft.ir.op.reductions.reduction import accumulator, sizes_of
from weft.ir.op.registry import register_op
from weft.ir.tensor import IfThenElse, PrimExpr, PrimFunc, PrimVar, Stmt
from weft.ir.types import TensorType

__all__: list[str] = []

_REDUCTIONS = ("none", "sum", "mean")


class _Loss(LoopKernel):
    """Place s of the extended target is a blank where s is even, and target s // 2 where it is odd.

    Before the first step the only path is an empty one, at place 0. A step renews the row from its end, so that what it
    reads is still that of the step before.
    """

    def body(self) -> PrimFunc:
        frame, args = self.frame, self.args
        dims, places = (sizes_of(args, name, frame.context) for name in ("log_probs", "targets"))
        self.scores, self.targets = frame.input("log_probs"), frame.input("targets")
        self.lengths = [frame.input(name) for name in ("input_lengths", "target_lengths")]
        self.out = frame.output()
        self.steps, batch, self.classes = map(frame.size, dims)
        self.flat = len(places) == 1
        for name in ("targets", "input_lengths", "target_lengths")[self.flat :]:
            frame.require_equal(sizes_of(args, name, frame.context)[0], dims[1])
        frame.require(binary("lt", index(args.blank), self.classes), "the blank is not a class")
        self.longest = frame.size(places[-1])
        self.wide = accumulator(self.out.dtype)
        self.infinity = const(float("inf"), self.wide)
        self.row = frame.local("row", self.wide, (2 * places[-1] + 1,))
        self.before, self.skipped, self.peak, self.loss, self.total = (
            frame.local(name, self.wide) for name in ("before", "skipped", "peak", "loss", "total")
        )
        self.start, self.label = frame.local("start"), frame.local("label")
        begin = (store(self.start, 0), store(self.total, zero(self.wide)))
        return frame.finish(*begin, counted("n", batch, self.one), *self.joined_losses(batch))

    def one(self, n: PrimVar) -> Stmt:
        """The loss of one of the batch."""
        steps, count = (cast(INDEX, load(lengths, [n])) for lengths in self.lengths)
        room = self.longest - load(self.start, [0]) if self.flat else self.longest
        places = count * 2 + 1
        return joined(
            self.within(steps, self.steps + 1, "an input length is out of range"),
            self.within(count, room + 1, "a target length is out of range"),
            counted("k", count, lambda k: self.within(self.target(n, k), self.classes, "a target is not a class")),
            counted("s", places, lambda s: store(self.row, unary("neg", self.infinity), [s])),
            store(self.row, zero(self.wide), [0]),
            counted("t", steps, lambda t: counted("s", places, lambda s: self.renew(t, n, places - 1 - s))),
            *self.ended(count),
            self.keep(n, count),
            store(self.start, load(self.start, [0]) + count) if self.flat else store(self.start, 0),
        )

    def within(self, value: PrimExpr, limit: PrimExpr, message: str) -> Stmt:
        """An assertion that a value is in [0, limit)."""
        return self.frame.check(binary("and", binary("ge", value, index(0)), binary("lt", value, limit)), message)

    def target(self, n: PrimVar, k: PrimExpr) -> PrimExpr:
        """Target k of one of the batch."""
        return cast(INDEX, load(self.targets, [load(self.start, [0]) + k] if self.flat else [n, k]))

    def renew(self, t: PrimVar, n: PrimVar, s: PrimExpr) -> Stmt:
        """The paths that are at place s after step t: from there, from the place before, or past a blank between."""
        odd, k = binary("eq", s % 2, index(1)), s // 2
        differs = binary("ne", self.target(n, k), self.target(n, k - 1))
        past = IfThenElse(differs, store(self.skipped, load(self.row, [s - 2])))
        named = joined(store(self.label, self.target(n, k)), IfThenElse(binary("ge", s, index(3)), past))
        paths = [load(self.row, [s]), load(self.before, [0]), load(self.skipped, [0])]
        peak = binary("max", paths[0], binary("max", paths[1], paths[2]))
        score = cast(self.wide, load(self.scores, [t, n, load(self.label, [0])]))
        return joined(
            store(self.before, unary("neg", self.infinity)),
            store(self.skipped, unary("neg", self.infinity)),
            store(self.label, self.args.blank),
            IfThenElse(binary("ge", s, index(1)), store(self.before, load(self.row, [s - 1]))),
            IfThenElse(odd, named),
            store(self.peak, peak),
            self.where_possible(store(self.row, self.logarithm_of_sum(paths) + score, [s])),
        )

    def where_possible(self, statement: Stmt) -> Stmt:
        """The statement where there is a path at all."""
        return IfThenElse(binary("ne", load(self.peak, [0]), unary("neg", self.infinity)), statement)

    def logarithm_of_sum(self, paths: list[PrimExpr]) -> PrimExpr:
        """The logarithm of the sum of likelihoods, of which the greatest is kept."""
        peak = load(self.peak, [0])
        first, *rest = (intrinsic("exp", path - peak) for path in paths)
        return intrinsic("log", sum(rest, first)) + peak

    def ended(self, count: PrimExpr) -> list[Stmt]:
        """The loss: paths end at the last target, or at the blank after it."""
        last = load(self.row, [count * 2])
        paths = [last, load(self.before, [0])]
        return [
            store(self.before, unary("neg", self.infinity)),
            IfThenElse(binary("gt", count, index(0)), store(self.before, load(self.row, [count * 2 - 1]))),
            store(self.peak, binary("max", paths[0], paths[1])),
            store(self.loss, self.infinity),
            self.where_possible(store(self.loss, unary("neg", self.logarithm_of_sum(paths)))),
        ]

    def keep(self, n: PrimVar, count: PrimExpr) -> Stmt:
        """The loss among the results, or in their total."""
        loss = load(self.loss, [0])
        steps: list[Stmt] = []
        if self.args.zero_infinity:
            steps.append(IfThenElse(binary("eq", loss, self.infinity), store(self.loss, zero(self.wide))))
        if self.args.reduction == "none":
            return joined(*steps, store(self.out, loss, [n]))
        share = loss / cast(self.wide, binary("max", count, index(1))) if self.args.reduction == "mean" else loss
        return joined(*steps, store(self.total, load(self.total, [0]) + share))

    def joined_losses(self, batch: PrimExpr) -> list[Stmt]:
        """The sum or the mean of the losses."""
        if self.args.reduction == "none":
            return []
        total = load(self.total, [0])
        return [store(self.out, total / cast(self.wide, batch) if self.args.reduction == "mean" else total, [])]


def _numpy_loss(scores: np.ndarray, targets: list[int], blank: int) -> float:
    """The loss of one sequence: scores (t, c)."""
    extended = [blank]
    for target in targets:
        extended += [target, blank]
    row = np.full(len(extended), -np.inf)
    row[0] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        for score in scores.astype(np.float64):
            old = row.copy()
            for s, label in enumerate(extended):
                paths = [old[s], old[s - 1] if s else -np.inf]
                if s >= 3 and s % 2 and label != extended[s - 2]:
                    paths.append(old[s - 2])
                row[s] = np.logaddexp.reduce(paths) + score[label]
        return -float(np.logaddexp.reduce(row[-2:]))


def _reference(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: str,
    zero_infinity: Any,
) -> Any:
    steps, batch, classes = log_probs.shape
    losses, begin = np.zeros(batch), 0
    for n, (length, count) in enumerate(zip(input_lengths.tolist(), target_lengths.tolist(), strict=True)):
        own = targets[begin:] if targets.ndim == 1 else targets[n]
        if not 0 <= length <= steps or not 0 <= count <= len(own):
            raise BoundsError("R.nn.ctc_loss: a length is out of range")
        labels = own[:count].tolist()
        if any(not 0 <= label < classes for label in labels):
            raise BoundsError("R.nn.ctc_loss: a target is not a class")
        loss = _numpy_loss(log_probs[:length, n], labels, blank)
        losses[n] = 0 if zero_infinity and loss == np.inf else loss
        begin += count
    with np.errstate(invalid="ignore"):
        total = np.asarray(losses / np.maximum(target_lengths, 1) if reduction == "mean" else losses)
        total = {"none": total, "sum": total.sum(), "mean": total.sum() / np.float64(batch)}[reduction]
    return np.asarray(total).astype(log_probs.dtype)


_RANGES = {"targets": (1, 3), "input_lengths": (2, 5), "target_lengths": (0, 2)}


@register_op(
    "nn.ctc_loss",
    [
        Param("log_probs"),
        Param("targets", of="int"),
        Param("input_lengths", of="int"),
        Param("target_lengths", of="int"),
        Param("blank", "attr", 0, "int"),
        Param("reduction", "attr", "mean", "str"),
        Param("zero_infinity", "attr", False, "bool"),
    ],
    lowering=_Loss.lowering(),
    numpy=_reference,
    pure=True,
    examples=(
        example(f32(5, 3, 4), i64(3, 2), i64(3), i64(3), ranges=_RANGES),
        example(f32(5, "n", 4), i64("n", 2), i64("n"), i64("n"), reduction="none", ranges=_RANGES, least=1),
        example(f32(5, 3, 4), typed("int32", 6), i64(3), i64(3), reduction="sum", zero_infinity=True, ranges=_RANGES),
        example(
            typed("float64", "t", 2, 4),
            i64(2, 3),
            i64(2),
            i64(2),
            blank=3,
            zero_infinity=True,
            ranges={"targets": (0, 2), "input_lengths": (0, symbol("t")), "target_lengths": (0, 3)},
        ),
    ),
)
def ctc_loss(args: Arguments, context: TypeContext) -> TensorType:
    """-log of the probability that sequences of classes, without repetitions and blanks, are the targets.

    log_probs (t, n, c), targets of integers (n, s), or one after the other (s,); input_lengths and target_lengths (n,)
    say how much of them counts. A target that no path gives has the loss inf, or 0 with zero_infinity.
    reduction: "none" (n,), "sum", or "mean" of the losses over the target lengths (at least 1).
    """
    names = ("log_probs", "targets", "input_lengths", "target_lengths")
    types = [tensor(args, name, context) for name in names]
    for name, ty, ranks in zip(names, types, ((3,), (1, 2), (1,), (1,)), strict=True):
        require_known_rank(args, name, ty, *ranks)
        require_dtype(args, name, ty, "float" if name == "log_probs" else "integer")
    if args.reduction not in _REDUCTIONS:
        hint = f"the reductions are {', '.join(_REDUCTIONS)}"
        raise shape_error(args, f"unknown reduction {args.reduction!r}", "W205", hint)
    dims, *others = map(dims_of, types)
    classes = None if dims is None else dims[2]
    if args.blank < 0 or (isinstance(classes, int) and args.blank >= classes):
        raise shape_error(args, f"blank is one of the classes, got {args.blank} of {classes}", "W205")
    for name, own in zip(names[1:], others, strict=True):
        if dims is not None and own is not None and not (name == "targets" and len(own) == 1):
            context.require_equal(dims[1], own[0], f"{args.name}: sequences of log_probs and {name}", args.span)
    if args.reduction != "none":
        return TensorType((), types[0].dtype)
    return TensorType(dtype=types[0].dtype, ndim=1) if dims is None else TensorType((dims[1],), types[0].dtype)
