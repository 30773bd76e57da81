"""Primitives on what blocks and buffers declare.

annotate_buffer_access      the box of a buffer that a block says it reads or writes
unsafe_hide_buffer_access   a block says no more that it does what it does not
set_axis_separator          where the dimensions of a buffer fall into axes of memory
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.ir import replace, substitute
from weft.ir.dim import Dim, symbol
from weft.ir.dim import substitute as substitute_dim
from weft.ir.kernel.index_map import read_index_map
from weft.ir.kernel.regions import block_accesses
from weft.ir.tensor import Block, Buffer, BufferRegion, Range
from weft.transform.analysis.loops.points import Point
from weft.transform.schedule.buffers import require_dividing
from weft.transform.schedule.copies import fresh_buffer
from weft.transform.schedule.core import ScheduleCore, primitive
from weft.transform.schedule.failure import failure
from weft.transform.schedule.handles import BlockRV
from weft.transform.schedule.primitives.caching import Choice, Where, buffer_of, index_dtype, read_map, where_of
from weft.transform.schedule.primitives.queries import regions_of
from weft.transform.schedule.tree import Tree, without_regions

__all__ = ["Annotations"]

_FIELDS = {"read": "reads", "write": "writes"}


class Annotations(ScheduleCore):
    """What is declared."""

    @primitive
    def annotate_buffer_access(
        self, block: BlockRV | str, buffer_index: Choice, buf_type: str, gen_new_ranges: Any
    ) -> None:
        """Let a block declare which box of a buffer it reads or writes.

        `gen_new_ranges` gives for the block's variables an index, or its (begin, end), for each dimension: a function,
        or the text of one that gives begin and end of all of them. ScheduleError W604 no such buffer or function, W620
        a box that is not proved to hold what the block touches.
        """
        tree, found = self._block(block)
        _require_kind(tree, found, buf_type)
        buffer = buffer_of(tree, found, buffer_index, buf_type)
        text = read_map(gen_new_ranges if isinstance(gen_new_ranges, str) else _flat(gen_new_ranges))
        self._record(gen_new_ranges=text)
        known = read_index_map(text)
        if len(known.names) != len(found.iter_vars) or len(known.targets) != 2 * buffer.ndim:
            raise failure(
                "W604",
                f"{text} does not give a box of the {buffer.ndim} dimensions of {buffer.name!r} for"
                f" the {len(found.iter_vars)} variables of block {found.name!r}",
                tree,
                found,
            )
        point = Point.inside(tree, found)
        names = {name: symbol(point.name(item.var)) for name, item in zip(known.names, found.iter_vars, strict=True)}
        ends = [substitute_dim(end, names) if not isinstance(end, int) else end for end in known.targets]
        box = list(zip(ends[::2], ends[1::2], strict=True))
        region = _region(buffer, box, point, index_dtype(found))
        _require_holding(tree, found, buffer, buf_type, box, point)
        reads, writes = regions_of(found)
        declared = {"read": reads, "write": writes}
        declared[buf_type] = tuple(region if item.buffer is buffer else item for item in declared[buf_type])
        new = replace(found, reads=declared["read"], writes=declared["write"])
        self._set(tree, tree.replaced((found, new)))

    @primitive
    def unsafe_hide_buffer_access(self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """Let a block no more declare that it reads, or writes, some buffers (given by their places).

        The name is the peers'; nothing is unsafe here: what a block touches stays declared. ScheduleError W604 for no
        such buffer, W620 for one that the block reads, or writes.
        """
        tree, found = self._block(block)
        _require_kind(tree, found, buf_type)
        hidden = [buffer_of(tree, found, index, buf_type) for index in buf_index_array]
        touched = block_accesses(without_regions(found))[0 if buf_type == "read" else 1]
        real = next((item.buffer for item in touched if item.buffer in hidden), None)
        if real is not None:
            raise failure("W620", f"block {found.name!r} does {buf_type} {real.name!r}", tree, found)
        reads, writes = regions_of(found)
        declared = {"read": reads, "write": writes}
        declared[buf_type] = tuple(item for item in declared[buf_type] if item.buffer not in hidden)
        new = replace(found, reads=declared["read"], writes=declared["write"])
        self._set(tree, tree.replaced((found, new)))

    @primitive
    def set_axis_separator(self, block: BlockRV | str, buffer: Where, axis_separators: Sequence[int]) -> None:
        """Say before which dimensions of a buffer another axis of its memory begins (for memory of several axes).

        ScheduleError W604 for places that do not grow from 1 to the number of dimensions.
        """
        tree, found = self._block(block)
        _, target = where_of(tree, found, buffer)
        places = tuple(self._number(item) for item in axis_separators)
        require_dividing(tree, found, target.name, target.ndim, places)
        new = fresh_buffer(target, {}, axis_separators=places)
        params = tuple(new if param is target else param for param in tree.function.params)
        body = substitute(tree.function.body, {target: new})
        self._set(tree, replace(tree.function, params=params, body=body))


def _require_kind(tree: Tree, block: Block, kind: str) -> None:
    if kind not in _FIELDS:
        raise failure("W604", f"a block reads or writes, it does not {kind!r}", tree, block, hint='"read" or "write"')


def _flat(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the begin and the end of each range one after the other."""

    @functools.wraps(function)
    def ends(*variables: Any) -> tuple[Any, ...]:
        result = function(*variables)
        parts = result if isinstance(result, (tuple, list)) else (result,)
        return tuple(end for part in parts for end in (part if isinstance(part, (tuple, list)) else (part, part + 1)))

    return ends


def _region(buffer: Buffer, box: Sequence[tuple[Dim, Dim]], point: Point, dtype: str) -> BufferRegion:
    ranges = (Range(point.extent(begin, dtype), point.extent(end - begin, dtype)) for begin, end in box)
    return BufferRegion(buffer, tuple(ranges))


def _require_holding(
    tree: Tree, block: Block, buffer: Buffer, kind: str, box: Sequence[tuple[Dim, Dim]], point: Point
) -> None:
    """W620 unless everything that a block touches of a buffer is in a box."""
    reads, writes = block_accesses(without_regions(block))
    for region in (item for item in (reads if kind == "read" else writes) if item.buffer is buffer):
        for axis, (part, (begin, end)) in enumerate(zip(region.region, box, strict=True)):
            low, count = point.dim(part.start), point.dim(part.extent)
            last = None if low is None or count is None else low + count
            size = point.dim(buffer.shape[axis])
            inside = point.at_most(begin, low) and point.at_most(last, end)
            if not inside and not (point.at_most(begin, 0) and point.at_most(size, end)):
                raise failure(
                    "W620",
                    f"block {block.name!r} may {kind} elements of {buffer.name!r} outside of the box"
                    f" along dimension {axis}",
                    tree,
                    block,
                )
