"""Transposed convolutions as plain ones, one for each phase of the result.

    y[s * i + a] = sum over k of x[(s * i + a + begin - k) / s] * w[k]      only k = s * j + r, r = (a + begin) % s
                 = sum over j of padded[i + j + offset] * w'[j]             w' the taps of that phase, last one first

Results whose places leave the same remainder by the strides (a phase) see the same taps of the kernel, so each phase is
a convolution with stride 1 of the padded data, without products by zero. With stride 1 there is one phase, which may
have gaps between its taps.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product as combinations

from weft.ir import te
from weft.ir.dim import Dim
from weft.ir.op.common import Kernel
from weft.ir.op.linalg.products import contraction
from weft.ir.op.nn.layouts import Layout
from weft.ir.op.nn.window import Window, padded_stage
from weft.ir.tensor import PrimExpr
from weft.support.records import dataclass

__all__ = ["MOST_PHASES", "TransposedShape", "by_phases"]

MOST_PHASES = 9
"""Phases beyond which one nest with all taps under a condition is the smaller kernel."""


@dataclass(frozen=True)
class TransposedShape:
    """What a transposed convolution is made of: axes by letter, sizes of operands and of the result."""

    spatial: str
    data_layout: Layout
    kernel_layout: Layout
    out_layout: Layout
    window: Window
    extra: tuple[int, ...]
    groups: int
    channels: Dim
    kernel: Mapping[str, Dim]
    result: Mapping[str, Dim]

    @property
    def has_few_phases(self) -> bool:
        """Whether phases are told by the sizes, and few."""
        count = 1
        for axis, letter in enumerate(self.spatial):
            step, gap = self.window.strides[axis], self.window.dilation[axis]
            if not isinstance(self.kernel[letter], int) or (step > 1 and gap > 1):
                return False
            count *= step
        return count <= MOST_PHASES


@dataclass(frozen=True)
class _Phase:
    """One remainder along one axis: the taps of the kernel from `first` on that it sees, `gap` data elements apart."""

    taps: int
    first: int
    ahead: int
    gap: int

    @property
    def reach(self) -> int:
        """How far before the first data element of its own place a result looks."""
        return self.gap * (self.taps - 1) - self.ahead


def _phases(shape: TransposedShape, axis: int) -> list[_Phase]:
    size = shape.kernel[shape.spatial[axis]]
    step, gap, begin = shape.window.strides[axis], shape.window.dilation[axis], shape.window.begins[axis]
    assert isinstance(size, int)
    found: list[_Phase] = []
    for remainder in range(step):
        ahead, first = divmod(remainder + begin, step)
        found.append(_Phase(max(0, -(-(size - first) // step)), first, ahead, gap if step == 1 else 1))
    return found


def by_phases(frame: Kernel, data: te.Tensor, weight: te.Tensor, shape: TransposedShape) -> te.Tensor:
    """The result as one convolution for each phase, and the phases put together."""
    window, spatial = shape.window, shape.spatial
    phases = {letter: _phases(shape, axis) for axis, letter in enumerate(spatial)}
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for axis, letter in enumerate(spatial):
        size, step = shape.kernel[letter], window.strides[axis]
        assert isinstance(size, int)
        reached = window.dilation[axis] * (size - 1) + 1 + shape.extra[axis] - window.begins[axis] - window.ends[axis]
        place = shape.data_layout.index(letter)
        begins[place] = max(0, *(phase.reach for phase in phases[letter]))
        ends[place] = max(0, -(-reached // step) - 1 + max(phase.ahead for phase in phases[letter]))
    source = padded_stage(data, begins, ends, te.const(0, data.dtype))
    sizes = {
        letter: shape.result[letter] if step == 1 else (shape.result[letter] + (step - 1)) // step
        for letter, step in zip(spatial, window.strides, strict=True)
    }
    dims = shape.out_layout.dims({**shape.result, **sizes})
    made: dict[tuple[int, ...], te.Tensor] = {}
    for remainders in combinations(*(range(step) for step in window.strides)):
        own = {letter: phases[letter][at] for letter, at in zip(spatial, remainders, strict=True)}
        if all(phase.taps for phase in own.values()):
            starts = {letter: begins[shape.data_layout.index(letter)] - phase.reach for letter, phase in own.items()}
            made[remainders] = _convolved(frame, source, weight, shape, own, starts, dims)
    if len(made) == 1 and all(step == 1 for step in window.strides):
        return next(iter(made.values()))
    return _together(frame, made, shape)


def _convolved(
    frame: Kernel,
    source: te.Tensor,
    weight: te.Tensor,
    shape: TransposedShape,
    own: Mapping[str, _Phase],
    starts: Mapping[str, int],
    dims: tuple[Dim, ...],
) -> te.Tensor:
    """One phase: a convolution with its taps, which first are put in the order of a plain kernel."""
    inner, outputs = shape.channels // shape.groups, shape.kernel["O"]
    steps = dict(zip(shape.spatial, shape.window.strides, strict=True))

    def tap(output: PrimExpr, depth: PrimExpr, *offsets: PrimExpr) -> PrimExpr:
        places = {
            letter: _moved((phase.taps - 1 - offset) * steps[letter], phase.first)
            for (letter, phase), offset in zip(own.items(), offsets, strict=True)
        }
        if shape.groups > 1:
            depth, output = output // outputs * inner + depth, output % outputs
        return weight(*shape.kernel_layout.indices({"O": output, "I": depth, **places}))

    kernel = (outputs * shape.groups, inner, *(phase.taps for phase in own.values()))
    taps = te.compute(kernel, tap, "taps")
    channels, channel = shape.data_layout.reduction("C", inner, "rc")
    offsets = {letter: te.reduce_axis((0, phase.taps), name=f"r{letter.lower()}") for letter, phase in own.items()}

    def formula(dtype: str) -> object:
        def body(*indices: PrimExpr) -> PrimExpr:
            at = shape.out_layout.places(indices)
            within = {
                letter: _moved(at[letter], starts[letter]) + (offsets[letter] if gap == 1 else offsets[letter] * gap)
                for letter, gap in ((letter, phase.gap) for letter, phase in own.items())
            }
            depth = channel if shape.groups == 1 else at["C"] // outputs * inner + channel
            left = source(*shape.data_layout.indices({"N": at["N"], "C": depth, **within}))
            right = taps(at["C"], channel, *offsets.values())
            return te.cast(dtype, left) * te.cast(dtype, right)

        return body

    name = "phase" if max(steps.values()) > 1 else f"conv{len(steps)}d_transpose"
    return contraction(frame, dims, formula, [*channels, *offsets.values()], name)


def _moved(index: PrimExpr, by: int) -> PrimExpr:
    return index + by if by else index


def _together(frame: Kernel, made: Mapping[tuple[int, ...], te.Tensor], shape: TransposedShape) -> te.Tensor:
    """Every element of the result from the phase that its place belongs to."""

    def formula(*indices: PrimExpr) -> PrimExpr:
        at = shape.out_layout.places(indices)

        def chosen(remainders: tuple[int, ...]) -> PrimExpr:
            """The element, where the first axes are known to leave these remainders."""
            axis = len(remainders)
            if axis == len(shape.spatial):
                if remainders not in made:
                    return te.const(0, frame.dtype)
                places = {
                    letter: at[letter] // step if step > 1 else at[letter]
                    for letter, step in zip(shape.spatial, shape.window.strides, strict=True)
                }
                return made[remainders](*shape.out_layout.indices({**at, **places}))
            step = shape.window.strides[axis]
            value = chosen((*remainders, step - 1))
            for remainder in range(step - 2, -1, -1):
                same = te.equal(at[shape.spatial[axis]] % step, te.const(remainder, "int64"))
                value = te.if_then_else(same, chosen((*remainders, remainder)), value)
            return value

        return chosen(())

    return te.compute(frame.dims, formula, f"conv{len(shape.spatial)}d_transpose")
