"""Layouts: in which order the axes of images and kernels lie, and which of them lie in blocks.

    layout ::= axis+        axis ::= letter            an axis: N batch, C channels, D, H, W; kernels O and I
                                   | number letter     a block of that many along the axis of the capital letter

`NCHW4c` holds channels in blocks of four: the element of channel c is at (n, c // 4, h, w, c % 4), and the size of C is
four times that of its axis. Each letter is one axis, and has at most one block. What stands in a block is computed by
operators as if there were none: only sizes, indices and arrays go through the layout.

Errors: ShapeError W228 another text, other letters or a block of a spatial axis; W201 a block of another size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from weft.ir import te
from weft.ir.deduction.infer import TypeContext
from weft.ir.dim import Dim
from weft.ir.kernel.simplify import simplify
from weft.ir.op.common import Dims, shape_error
from weft.ir.op.declare import Arguments
from weft.ir.tensor import PrimExpr, PrimFunc
from weft.support.records import dataclass

__all__ = ["Layout", "axis_of", "finished", "layout_of", "packed", "read_layout", "unpacked"]

F = TypeVar("F", PrimFunc, PrimFunc | None)
_AXIS = re.compile(r"([A-Z])|([1-9]\d*)([a-z])")


@dataclass(frozen=True)
class Layout:
    """The axes in order: a letter and no block (0), or a letter and the size of the block.

    >>> read_layout("NCHW4c").sizes((2, 3, 8, 8, 4))["C"]
    12
    """

    axes: tuple[tuple[str, int], ...]

    @property
    def ndim(self) -> int:
        """How many dimensions a tensor of this layout has."""
        return len(self.axes)

    @property
    def letters(self) -> str:
        """The letters, without blocks."""
        return "".join(letter for letter, block in self.axes if not block)

    @property
    def blocks(self) -> dict[str, int]:
        """The sizes of blocks by letter."""
        return {letter: block for letter, block in self.axes if block}

    def index(self, letter: str) -> int:
        """Where the axis of a letter stands."""
        return self.axes.index((letter, 0))

    def sizes(self, dims: Sequence[Dim]) -> dict[str, Dim]:
        """The whole sizes by letter, of the dimensions of a tensor."""
        found = {letter: dim for (letter, block), dim in zip(self.axes, dims, strict=True) if not block}
        return {letter: size * self.blocks.get(letter, 1) for letter, size in found.items()}

    def dims(self, sizes: Mapping[str, Dim]) -> Dims:
        """The dimensions of a tensor of these whole sizes."""
        blocks = self.blocks
        return tuple(block or sizes[letter] // blocks.get(letter, 1) for letter, block in self.axes)

    def places(self, indices: Sequence[PrimExpr]) -> dict[str, PrimExpr]:
        """The whole indices by letter, of the indices of an element."""
        blocks = {letter: at for (letter, block), at in zip(self.axes, indices, strict=True) if block}
        found = {letter: at for (letter, block), at in zip(self.axes, indices, strict=True) if not block}
        sizes = self.blocks
        return {letter: at * sizes[letter] + blocks[letter] if letter in blocks else at for letter, at in found.items()}

    def indices(self, places: Mapping[str, PrimExpr]) -> tuple[PrimExpr, ...]:
        """The indices of an element at whole indices by letter."""
        blocks = self.blocks

        def index(letter: str, block: int) -> PrimExpr:
            if block:
                return places[letter] % block
            return places[letter] // blocks[letter] if letter in blocks else places[letter]

        return tuple(index(letter, block) for letter, block in self.axes)

    def reduction(self, letter: str, size: Dim, name: str) -> tuple[list[Any], PrimExpr]:
        """Reduction axes over a letter, one more where it lies in blocks that divide the size, and the whole index."""
        block = self.blocks.get(letter, 1)
        if block == 1 or size % block != 0:
            axis = te.reduce_axis((0, size), name=name)
            return [axis], axis
        outer, inner = te.reduce_axis((0, size // block), name=f"{name}o"), te.reduce_axis((0, block), name=f"{name}i")
        return [outer, inner], outer * block + inner

    def check(self, args: Arguments, name: str, dims: Dims, context: TypeContext) -> dict[str, Dim]:
        """The whole sizes of an operand, whose blocks are required to have their sizes."""
        for (letter, block), dim in zip(self.axes, dims, strict=True):
            if block:
                context.require_equal(dim, block, f"{args.name}: the block of {letter} in {name}", args.span)
        return self.sizes(dims)

    def result(self, args: Arguments, sizes: Mapping[str, Dim], context: TypeContext) -> Dims:
        """The dimensions of a result of these whole sizes, which blocks are required to divide."""
        for letter, block in self.blocks.items():
            reason = f"{args.name}: {letter} of the result modulo its block of {block}"
            context.require_equal(sizes[letter] % block, 0, reason, args.span)
        return self.dims(sizes)

    def axes_of(self, letter: str) -> list[tuple[str, int]]:
        """The axis of a letter, and then its block."""
        return sorted(axis for axis in self.axes if axis[0] == letter)


@lru_cache(maxsize=256)
def read_layout(text: str) -> Layout | None:
    """The layout that a text writes, None where it writes none."""
    parts = list(_AXIS.finditer(text))
    if "".join(part[0] for part in parts) != text:
        return None
    axes = tuple((part[1], 0) if part[1] else (part[3].upper(), int(part[2])) for part in parts)
    letters = [letter for letter, block in axes if not block]
    blocks = [letter for letter, block in axes if block]
    once = len(set(letters)) == len(letters) and len(set(blocks)) == len(blocks)
    return Layout(axes) if once and set(blocks) <= set(letters) else None


def layout_of(args: Arguments, name: str, text: str, letters: str) -> Layout:
    """The layout of an attribute; ShapeError W228 unless it is an order of the letters, maybe with blocks of others
    than D, H and W."""
    found = read_layout(text)
    if found is None or sorted(found.letters) != sorted(letters):
        hint = f"blocks are written {letters}4c: the channels in blocks of four" if "C" in letters else None
        raise shape_error(args, f"{name} must be an order of {letters}, got {text!r}", "W228", hint)
    blocked = [letter for letter in found.blocks if letter in "DHW"]
    if blocked:
        raise shape_error(args, f"{name} {text!r} has blocks of {blocked[0]}, which windows slide over", "W228")
    return found


def unpacked(array: Any, layout: str, order: str) -> Any:
    """An array of a layout with one axis for each letter, in an order; for references."""
    own = _known(layout)
    apart = [own.axes.index(axis) for letter in order for axis in own.axes_of(letter)]
    return array.transpose(apart).reshape([own.sizes(array.shape)[letter] for letter in order])


def packed(array: Any, layout: str, order: str) -> Any:
    """An array with one axis for each letter, in an order, in a layout; for references."""
    own = _known(layout)
    dims = dict(zip(own.axes, own.dims(dict(zip(order, array.shape, strict=True))), strict=True))
    apart = [axis for letter in order for axis in own.axes_of(letter)]
    return array.reshape([dims[axis] for axis in apart]).transpose([apart.index(axis) for axis in own.axes])


def axis_of(layout: str, letter: str) -> int:
    """Where the axis of a letter stands in an array of a layout; for references."""
    return _known(layout).index(letter)


def _known(layout: str) -> Layout:
    found = read_layout(layout)
    assert found is not None  # the rule of the operator has read it
    return found


def finished(kernel: F, *layouts: Layout) -> F:
    """A kernel whose indices of blocks are put together again: (c * 4 + k) // 4 is c."""
    return simplify(kernel) if kernel is not None and any(layout.blocks for layout in layouts) else kernel
