"""What buffers say of the variables in their layouts: sizes are not negative, and arrays that exist bound them."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.tensor import Buffer, PrimVar
from weft.transform.analysis.index_analyzer import IndexAnalyzer
from weft.transform.analysis.indices.exactness import LARGEST, most_elements
from weft.transform.analysis.indices.facts import Fact, Facts

__all__ = ["enter_layouts", "sizes_of"]


def sizes_of(buffers: Sequence[Buffer]) -> dict[PrimVar, int]:
    """The variables that are extents of buffers, with the most that each can be.

    >>> n = PrimVar("n", "int64")
    >>> sizes_of([Buffer("x", (n, 4), "int8")])[n] == 2**62
    True
    """
    sizes: dict[PrimVar, int] = {}
    for buffer in buffers:
        for extent in buffer.shape:
            if isinstance(extent, PrimVar):
                sizes[extent] = min(sizes.get(extent, LARGEST), most_elements(buffer))
    return sizes


def enter_layouts(known: IndexAnalyzer, buffers: Sequence[Buffer], facts: Facts) -> Facts:
    """The facts with what buffers that are there say; their variables are known afterwards."""
    sizes = sizes_of(buffers)
    for buffer in buffers:
        layout = (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset)
        for extent in layout:
            if isinstance(extent, PrimVar) and extent not in known.values:
                if extent in sizes:
                    known.size(extent, sizes[extent])
                else:
                    facts = known.unknown(extent, facts)
    for buffer in buffers:
        known.exactness.exists(buffer, tuple(known.dim(extent, facts) for extent in buffer.shape))
    sides = [known.dim(extent, facts) for buffer in buffers for extent in buffer.shape]
    return facts.with_facts(*(Fact(side) for side in sides if not known.proves(side, facts)))
