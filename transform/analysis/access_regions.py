"""Which part of each buffer parameter a kernel reads and writes, as a box of its sizes.

access_regions(kernel) -> (reads, writes), each by buffer: a BufferRegion that is never too small
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.kernel.regions import block_accesses
from weft.ir.tensor import Block, Buffer, BufferRegion, PrimFunc

__all__ = ["access_regions"]

Regions = Mapping[Buffer, BufferRegion]


def access_regions(kernel: PrimFunc) -> tuple[Regions, Regions]:
    """The boxes that a kernel reads and writes of the buffers that it is given.

    >>> import weft
    >>> head = '@T.prim_func\\ndef f(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):\\n'
    >>> f = weft.parse(head + "    for i in range(4):\\n        y[i] = x[i + 2]")
    >>> reads, writes = access_regions(f)
    >>> [(buffer.name, [(r.start, r.extent) for r in region.region]) for buffer, region in writes.items()]
    [('y', [(0, 4)])]
    """
    given = [param for param in kernel.params if isinstance(param, Buffer)]
    reads, writes = block_accesses(Block("kernel", kernel.body))
    return _of(reads, given), _of(writes, given)


def _of(regions: tuple[BufferRegion, ...], given: list[Buffer]) -> Regions:
    return {region.buffer: region for region in regions if region.buffer in given}
