"""What convolutions and pools share: strides, padding, dilation, and the sizes that follow.

One value of strides or dilation stands for all axes; padding is one value, one for each axis, or the begins of all axes
followed by the ends. Errors: ShapeError W205 wrong attributes, W227 a window that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir import te
from weft.ir.dim import Dim
from weft.ir.op.common import Dims, Kernel, shape_error
from weft.ir.op.declare import Arguments
from weft.ir.op.family import OperatorFamily
from weft.ir.tensor import PrimExpr
from weft.support.records import dataclass

__all__ = ["SPATIAL", "SpatialFamily", "Window", "by_letter", "check_window", "per_axis", "window_of"]

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True)
class SpatialFamily(OperatorFamily):
    """Operators over so many spatial axes."""

    count: int

    @property
    def spatial(self) -> str:
        """The letters of the spatial axes."""
        return SPATIAL[self.count]


def by_letter(letters: str, values: Sequence[Any]) -> dict[str, Any]:
    """The values (sizes or indices) of axes by letter."""
    return dict(zip(letters, values, strict=True))


def per_axis(args: Arguments, name: str, count: int, least: int = 1) -> tuple[int, ...]:
    """An attribute with one value for all axes, or one for each; ShapeError W205 otherwise."""
    values = args[name]
    values = values * count if len(values) == 1 else values
    if len(values) != count:
        raise shape_error(args, f"{name} must have 1 or {count} values, got {len(values)}", "W205")
    if min(values) < least:
        raise shape_error(args, f"{name} must be at least {least}, got {min(values)}", "W205")
    return values


def spread(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    """One value for each axis, for references."""
    return values * count if len(values) == 1 else values


def begins_and_ends(padding: tuple[int, ...], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A padding before and after each axis, for references."""
    padding = spread(padding, count)
    return (padding, padding) if len(padding) == count else (padding[:count], padding[count:])


def window_positions(size: int, reach: int, step: int, padding: tuple[int, int], ceil: bool) -> int:
    """The number of positions of a window along an axis, for references; ValueError where it does not fit."""
    begin, end = padding
    room = size + begin + end - reach
    if room < 0:
        raise ValueError("the window does not fit")
    count = (-(-room // step) if ceil else room // step) + 1
    begins_behind = (count - 1) * step >= begin + size
    return count - 1 if ceil and begins_behind else count


def _padding(args: Arguments, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    values = args.padding
    if min(values, default=0) < 0:
        raise shape_error(args, f"padding must not be negative, got {min(values)}", "W205")
    if len(values) == 1:
        values = values * count
    if len(values) == count:
        return values, values
    if len(values) == 2 * count:
        return values[:count], values[count:]
    raise shape_error(args, f"padding must have 1, {count} or {2 * count} values, got {len(values)}", "W205")


@dataclass(frozen=True)
class Window:
    """How windows slide over the spatial axes; every field has one value for each axis.

    With ceil also windows that hang over the end count, but a last one that begins in the padding there.
    """

    letters: str
    sizes: Dims
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    ceil: bool = False

    def reach(self, axis: int) -> Dim:
        """The length that a dilated window covers."""
        return (self.sizes[axis] - 1) * self.dilation[axis] + 1

    def padded(self, axis: int, size: Dim) -> Dim:
        """The size of a padded axis."""
        return size + self.begins[axis] + self.ends[axis]

    def outputs(self, args: Arguments, shape: Sequence[Dim]) -> Dims:
        """The number of positions of the window along each axis; ShapeError W227 where it does not fit once."""
        return tuple(self._output(args, axis, size) for axis, size in enumerate(shape))

    def _output(self, args: Arguments, axis: int, size: Dim) -> Dim:
        room = self.padded(axis, size) - self.reach(axis)
        if isinstance(room, int) and room < 0:
            along = f"{self.padded(axis, size)} elements along {self.letters[axis]}"
            raise shape_error(args, f"a window of {self.reach(axis)} does not fit {along}", "W227")
        step, reach = self.strides[axis], self.reach(axis)
        if not self.ceil or not isinstance(reach, int):
            return room // step + 1
        # Rounded up, less one position if the last window would begin behind data, in the padding at the end.
        return (room + min(max(reach - self.ends[axis], 0), step) - 1) // step + 1


def window_of(args: Arguments, letters: str, sizes: Sequence[Dim], ceil: bool = False) -> Window:
    """The window that the attributes strides, padding and dilation describe."""
    count = len(letters)
    begins, ends = _padding(args, count)
    strides, dilation = per_axis(args, "strides", count), per_axis(args, "dilation", count)
    return Window(letters, tuple(sizes), strides, dilation, begins, ends, ceil)


def check_window(kernel: Kernel, window: Window, shape: Sequence[Dim]) -> None:
    """Assert in the kernel what cannot be known before: that the window fits symbolic sizes."""
    for axis, size in enumerate(shape):
        room = window.padded(axis, size) - window.reach(axis)
        if not isinstance(room, int):
            kernel.require(te.size(room) >= 0, f"the window does not fit along {window.letters[axis]}")


def padded_stage(x: te.Tensor, begins: Mapping[int, int], ends: Mapping[int, int], value: PrimExpr) -> te.Tensor:
    """x with a constant around it; itself when there is nothing to add. Axes by position."""
    if not any((*begins.values(), *ends.values())):
        return x
    shape = tuple(size + begins.get(axis, 0) + ends.get(axis, 0) for axis, size in enumerate(x.shape))

    def formula(*i: PrimExpr) -> PrimExpr:
        source = [index - begins.get(axis, 0) if begins.get(axis, 0) else index for axis, index in enumerate(i)]
        inside = [source[axis] >= 0 for axis, count in begins.items() if count]
        inside += [source[axis] < x.shape[axis] for axis, count in ends.items() if count]
        return te.if_then_else(te.all(*inside), x(*source), value)

    return te.compute(shape, formula, "padded")
