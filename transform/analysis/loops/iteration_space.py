"""The iterations of loops as a space: indices over loop variables as dimensions, their slopes, and what is proved of
them wherever the loops are.

    IterationSpace(buffers)     sizes of the buffers are not negative; other variables are of any sign
    space.enter(loops)          the variables run over their ranges
    space.dim(index)            the index as a dimension; None where it depends on memory
    space.slope(dim, loop)      what it grows by from one iteration to the next; None where that is not one number

A dimension may hold atoms (a minimum of variables of any sign, what may wrap): they count as what they are made of, so
that no index counts as linear in a variable that an atom hides.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from weft.dtypes import is_integer
from weft.errors import ShapeError
from weft.ir import walk
from weft.ir.dim import Dim
from weft.ir.tensor import Buffer, Extent, PrimVar
from weft.support.records import dataclass
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.facts import Facts
from weft.transform.analysis.indices.layouts import enter_layouts

__all__ = ["IterationSpace", "Loop"]


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around an access: variable, start and extent (lanes of a vector index are a loop too)."""

    var: PrimVar
    start: Extent
    extent: Extent


class IterationSpace:
    """Loops, and indices over them as dimensions.

    >>> i, x = PrimVar("i", "int64"), Buffer("x", (64,))
    >>> space = IterationSpace([x])
    >>> loop = Loop(i, 0, 8)
    >>> space.enter([loop]), space.slope(space.dim(i * 4 + 2), loop)
    (True, 4)
    """

    def __init__(self, buffers: Sequence[Buffer] = ()) -> None:
        self.known = IndexAnalyzer()
        self.facts = Facts()
        layouts = [x for b in buffers for x in (*b.shape, *(b.strides or ()), b.elem_offset) if x is not None]
        bare = {extent for extent in layouts if isinstance(extent, PrimVar)}
        for extent in layouts:
            self._meet(extent, bare)
        self.facts = enter_layouts(self.known, buffers, self.facts)
        self.loops: dict[PrimVar, Loop] = {}
        self._dims: dict[Extent, Dim | None] = {}

    def enter(self, loops: Sequence[Loop]) -> bool:
        """Take loops in; False when a range depends on memory, or a variable has another one, too."""
        for loop in loops:
            known = self.loops.get(loop.var)
            if known is loop:  # around many accesses
                continue
            start, extent = self.dim(loop.start), self.dim(loop.extent)
            if start is None or extent is None:
                return False
            if known is not None:
                if (self.dim(known.start), self.dim(known.extent)) != (start, extent):
                    return False
                continue
            self.facts = self.known.range(loop.var, start, extent, self.facts)
            self.loops[loop.var] = loop
        return True

    def dim(self, value: Extent) -> Dim | None:
        """An index as a dimension."""
        if isinstance(value, int):
            return value
        if value not in self._dims:
            self._meet(value)
            dim = self.known.dim(value, self.facts)
            self._dims[value] = None if self.known.is_volatile(dim) else dim
        return self._dims[value]

    def _meet(self, value: Extent, sizes: Set[PrimVar] = frozenset()) -> None:
        """Variables that nothing was said of are of any sign."""
        for part in () if isinstance(value, int) else walk(value):
            new = isinstance(part, PrimVar) and part not in sizes and part not in self.known.values
            if new and isinstance(part, PrimVar) and is_integer(part.dtype):
                self.facts = self.known.unknown(part, self.facts)

    def slope(self, dim: Dim, loop: Loop) -> Dim | None:
        """The factor of a variable that a dimension is linear in; None where it is not."""
        try:
            slope = self.known.replaced(dim, loop.var, self.known.values[loop.var] + 1) - dim
        except ShapeError:  # over the limits of dimensions
            return None
        return None if self.depends(slope, [loop]) or self.rest(dim, loop) is None else slope

    def rest(self, dim: Dim, loop: Loop) -> Dim | None:
        """What is left of a dimension at the start of a loop; None where it still depends on its variable."""
        start = self.dim(loop.start)
        assert start is not None
        try:
            rest = self.known.replaced(dim, loop.var, start)
        except ShapeError:  # over the limits of dimensions
            return None
        return None if self.depends(rest, [loop]) else rest

    def greatest(self, dim: Dim, loops: Sequence[Loop]) -> Dim:
        """A dimension in the last iteration of those loops that it grows with, where they run."""
        for loop in reversed(loops):
            slope = self.slope(dim, loop) if self.depends(dim, [loop]) else None
            start, extent = self.dim(loop.start), self.dim(loop.extent)
            if slope is not None and start is not None and extent is not None and self.at_most(0, slope):
                dim = self.known.replaced(dim, loop.var, start + extent - 1)
        return dim

    def depends(self, dim: Dim, loops: Sequence[Loop]) -> bool:
        """Whether a dimension, or an atom in it, depends on variables of some loops."""
        if isinstance(dim, int):
            return False
        used = self.known.variables(dim)
        return any(loop.var in used for loop in loops)

    def at_most(self, a: Dim, b: Dim) -> bool:
        """Whether a <= b wherever the loops are."""
        try:
            return self.known.proves(b - a, self.facts)
        except ShapeError:  # over the limits of dimensions
            return False

    def below(self, a: Dim, b: Dim) -> bool:
        """Whether a < b wherever the loops are."""
        return self.at_most(a + 1, b)

    def same(self, a: Dim, b: Dim) -> bool:
        """Whether a and b are equal wherever the loops are."""
        return a is b or (self.at_most(a, b) and self.at_most(b, a))
