"""Loops over vectors by the steps of a schedule: whole ones, several at a time, then the remainder under a mask.

for i in range(n // 64): for u in T.unroll(4): for j in T.vectorized(16): ...
for i in range(n // 16 - n // 64 * 4): for j in T.vectorized(16): ...
for i in range((n % 16 + 15) // 16): for j in T.vectorized(16): if i * 16 + j < n % 16: ...
"""

from __future__ import annotations

from weft.ir.dim import Dim, floordiv
from weft.ir.kernel.prim_dim import prim_to_dim, symbol_names
from weft.ir.tensor import For
from weft.transform.schedule import LoopRV, Schedule

__all__ = ["along_vectors"]


def along_vectors(sch: Schedule, loop: LoopRV, lanes: int, unroll: int, *, masks: bool, wide: bool) -> None:
    """A loop as loops over vectors, `unroll` of them in a step of the first one.

    `wide` makes these one long vector: its parts go through each operation side by side, so that none of them waits
    for a long chain of operations. Without `masks` the remainder is done one by one.
    """
    extent = _extent(sch, loop)
    whole = {width: floordiv(extent, width) * width for width in (lanes * unroll, lanes)}
    counts: dict[int, Dim] = {}
    done: Dim = 0
    for width, end in whole.items():
        counts[width], done = end - done, end
    counts[0] = extent - done
    kept = {width: count for width, count in counts.items() if count != 0}
    parts = sch.loop_partition(loop, [*list(kept.values())[:-1], None]) if len(kept) > 1 else [loop]
    for (width, count), part in zip(kept.items(), parts, strict=True):
        if width == 0:
            _rest(sch, part, count, lanes, masks=masks)
        elif width > lanes and not wide:
            _, vectors, vector = sch.split(part, [None, unroll, lanes])
            sch.unroll(vectors)
            sch.vectorize(vector)
        else:
            sch.vectorize(sch.split(part, [None, width])[1])


def _extent(sch: Schedule, loop: LoopRV) -> Dim:
    """The extent of a loop as a dimension over the function's symbols."""
    found = sch.get(loop)
    assert isinstance(found, For)
    extent = prim_to_dim(found.extent, symbol_names(sch.func))
    assert extent is not None
    return extent


def _rest(sch: Schedule, loop: LoopRV, left: Dim, lanes: int, *, masks: bool) -> None:
    """What does not fill a vector."""
    if not masks or left == 1:
        return
    if not isinstance(left, int):
        sch.vectorize(sch.split(loop, [None, lanes])[1])
        return
    width = 1 << (left - 1).bit_length()
    sch.vectorize(loop if width == left else sch.split(loop, [width])[0])
