"""AxisLayout: in which order the axes of a value lie, and which of them lie in blocks; what an operator makes of one.

    AxisLayout ::= ((axis, block), ...)       axis: its number in the program as written; block: 0 for the axis itself,
                                              else the size of the block that the innermost index of it runs over

    NCHW -> NHWC     ((0, 0), (2, 0), (3, 0), (1, 0))
    NCHW -> NCHW4c   ((0, 0), (1, 0), (2, 0), (3, 0), (1, 4))

A `LayoutRule` is asked about a call (`LayoutQuestion`: how operands lie now, how the user wants the operator to work)
and answers with the layouts of its operands, attributes and result (`LayoutAnswer`), or None: as it is written. An axis
of one element that others are broadcast along has a block of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.ir.deduction.infer import TypeContext
from weft.ir.deduction.subtyping import dims_of
from weft.ir.dim import Dim, prove_equal
from weft.ir.graph import Expr, Tuple
from weft.ir.op.declare import Arguments
from weft.ir.op.nn.layouts import read_layout
from weft.ir.types import PrimType, TensorType, Type
from weft.support.records import dataclass

__all__ = ["AxisLayout", "LayoutAnswer", "LayoutQuestion", "LayoutRule", "is_one"]

Axes = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class AxisLayout:
    """An order of axes, some of them in blocks; see the module.

    >>> AxisLayout.between("NCHW", "NHWC").axes
    ((0, 0), (2, 0), (3, 0), (1, 0))
    >>> AxisLayout.between("NCHW", "NCHW4c").dims((2, 8, 5, 5))
    (2, 2, 5, 5, 4)
    """

    axes: Axes

    @staticmethod
    def plain(ndim: int) -> AxisLayout:
        """The layout of a value as the program has it."""
        return AxisLayout(tuple((axis, 0) for axis in range(ndim)))

    @staticmethod
    def between(own: str, wanted: str) -> AxisLayout | None:
        """The layout that makes one text of another: None where they have other letters, or the first one has blocks.

        >>> AxisLayout.between("NCHW", "NHW") is None
        True
        """
        first, second = read_layout(own), read_layout(wanted)
        if first is None or second is None or first.blocks or sorted(first.letters) != sorted(second.letters):
            return None
        return AxisLayout(tuple((own.index(letter), block) for letter, block in second.axes))

    @property
    def ndim(self) -> int:
        """The rank of the value as the program has it."""
        return sum(1 for _, block in self.axes if not block)

    @property
    def is_plain(self) -> bool:
        """Whether nothing moves."""
        return self == AxisLayout.plain(self.ndim)

    @property
    def blocks(self) -> dict[int, int]:
        """The sizes of blocks by axis."""
        return {axis: block for axis, block in self.axes if block}

    def index(self, axis: int) -> int:
        """Where an axis stands (the outer part of one in blocks)."""
        return self.axes.index((axis, 0))

    def dims(self, dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
        """The sizes of a value of these sizes; None where a block is not proved to divide one."""
        blocks = self.blocks
        for axis, block in blocks.items():
            if not is_one(dims[axis]) and prove_equal(dims[axis] % block, 0) is not True:
                return None

        def size(axis: int, block: int) -> Dim:
            if is_one(dims[axis]):
                return 1
            return block or dims[axis] // blocks.get(axis, 1)

        return tuple(size(axis, block) for axis, block in self.axes)

    def grouped(self) -> list[int]:
        """The places of the axes and their blocks in the order of the program: each block behind its axis."""
        return sorted(range(len(self.axes)), key=lambda place: self.axes[place])

    def renumbered(self, new: Mapping[int, int]) -> AxisLayout:
        """The layout of fewer axes, numbered anew."""
        return AxisLayout(tuple((new[axis], block) for axis, block in self.axes if axis in new))

    def without(self, axes: Iterable[int]) -> AxisLayout:
        """The layout of what is left when axes go."""
        gone = set(axes)
        left = [axis for axis in range(self.ndim) if axis not in gone]
        return self.renumbered({axis: place for place, axis in enumerate(left)})

    def text(self, letters: str) -> str | None:
        """The text of a layout attribute whose value lies so; None where the text has blocks already.

        >>> AxisLayout.between("NCHW", "NHWC").text("NCHW")
        'NHWC'
        """
        own = read_layout(letters)
        if own is None or own.blocks or own.ndim != self.ndim:
            return None
        return "".join(f"{block}{letters[axis].lower()}" if block else letters[axis] for axis, block in self.axes)


def is_one(dim: Dim) -> bool:
    """Whether a size is the number 1."""
    return isinstance(dim, int) and dim == 1


@dataclass(frozen=True)
class LayoutQuestion:
    """What a rule is asked: a call as written, and the layouts in which its operands lie (`is_both`: as written too);
    `wanted` are the texts that the user gave for the operator."""

    args: Arguments
    context: TypeContext
    lies: Callable[[Expr], AxisLayout | None]
    wanted: tuple[str, ...] = ()
    is_both: Callable[[Expr], bool] = lambda value: False

    def tensor(self, name: str) -> TensorType | None:
        """The type of an operand of known sizes; None for another."""
        return self._known(self.args[name])

    def is_scalar(self, name: str) -> bool:
        """Whether an operand is a number, or absent."""
        value = self.args[name]
        return value is None or isinstance(self.context.type_of(value), PrimType)

    def _known(self, value: Any) -> TensorType | None:
        ty = self.context.type_of(value) if isinstance(value, Expr) else None
        return ty if isinstance(ty, TensorType) and ty.dims is not None else None

    def fields(self, name: str) -> list[TensorType] | None:
        """The types of the tensors of a tuple that is written out."""
        value = self.args[name]
        found = [self._known(item) for item in value.fields] if isinstance(value, Tuple) else [None]
        return [ty for ty in found if ty is not None] if None not in found else None

    @property
    def result(self) -> Type:
        """The type of the call."""
        return self.context.type_of(self.args.call)

    def layout(self, name: str) -> AxisLayout | None:
        """How an operand lies, None where it lies as written."""
        return self._moved(self.args[name])

    def _moved(self, value: Any) -> AxisLayout | None:
        found = self.lies(value) if isinstance(value, Expr) else None
        return found if found is not None and not found.is_plain else None

    def chosen(self, values: Iterable[Any], ndim: int) -> AxisLayout | None:
        """The layout that moves the fewest elements: that of the largest operand of full rank that lies otherwise."""
        best: tuple[int, AxisLayout] | None = None
        plain = 0
        for value in values:
            ty = self._known(value)
            if ty is None or ty.ndim != ndim:
                continue
            size = 0 if self.is_both(value) else _weight(dims_of(ty) or ())
            layout = self._moved(value)
            if layout is None:
                plain = max(plain, size)
            elif best is None or size > best[0]:
                best = size, layout
        return best[1] if best is not None and best[0] >= plain else None


def _weight(dims: Sequence[Dim]) -> int:
    """The elements of a value, where a symbol stands for many."""
    total = 1
    for dim in dims:
        total *= dim if isinstance(dim, int) else 64
    return total


@dataclass(frozen=True)
class LayoutAnswer:
    """How a call computes on moved operands: their layouts by parameter (a list for a tuple), the attributes that
    change, and the layout of the result (a list for a tuple). `same` names the operand that is the result already."""

    operands: Mapping[str, AxisLayout | list[AxisLayout]]
    result: AxisLayout | list[AxisLayout]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    same: str | None = None


LayoutRule = Callable[[LayoutQuestion], LayoutAnswer | None]
