"""Kernels that concatenate, and kernels whose result is written as part of a concatenation.

    out[i, j] = T.if_then_else(j < 4, a[i, j], b[i, j - 4])         parts a from 0 on and b from 4 on, along axis 1

    def k(x, a: (n, 4)): a[i, j] = f(x[i, j])                       def k_part(x, a: (n, 9)):
                                                                        a_part = T.decl_buffer((n, 4), strides=(9, 1),
                                                                                     data=T.address_of(a[0, 5]))
                                                                        a_part[i, j] = f(x[i, j])

Loops stay as they are, whatever they were scheduled to: what changes is where elements of a buffer lie. Views of that
buffer in which the axes before the one of the concatenation are whole get the same strides; a kernel with others, or
one that hands addresses on, has no such form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from weft.dtypes import bits
from weft.ir import structural_equal, substitute
from weft.ir.dim import Dim
from weft.ir.kernel.prim import buffer_strides, const, extent_product
from weft.ir.kernel.prim_dim import prim_to_dim
from weft.ir.kernel.views import ADDRESSES, place_of
from weft.ir.node import Node, replace
from weft.ir.structure.visit import nodes_of, statements
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Extent,
    For,
    IfThenElse,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimFunc,
    Select,
    SeqStmt,
)
from weft.support.records import dataclass
from weft.transform.analysis.access_pattern import same_extents
from weft.transform.analysis.accesses import is_plain
from weft.transform.schedule.copies import fresh_function

__all__ = ["Concatenation", "Part", "as_part", "concatenation"]


@dataclass(frozen=True)
class Part:
    """The place of an input in a concatenation: which parameter it is, and where it begins."""

    position: int
    start: int


@dataclass(frozen=True)
class Concatenation:
    """A kernel whose parameter `output` is some others, one after the other along an axis."""

    output: int
    axis: int
    total: int
    parts: tuple[Part, ...]


# Which kernels concatenate -------------------------------------------------------------------------------------------


def concatenation(kernel: PrimFunc) -> Concatenation | None:
    """What a kernel concatenates: buffers of known sizes along one axis, and nothing else; None for any other kernel.

    Loads are in their buffers, so the part that an element is taken from follows from where it is loaded.
    """
    stores = _stores(kernel)
    if not stores or any(store.buffer is not stores[0].buffer for store in stores):
        return None
    output = stores[0].buffer
    loads = [(store, load) for store in stores for load in _chosen(store.value)]
    sources = tuple(dict.fromkeys(load.buffer for _, load in loads if isinstance(load, BufferLoad)))
    if len(sources) < 2 or output in sources or not all(isinstance(load, BufferLoad) for _, load in loads):
        return None
    if not all(_has_whole_elements(buffer) and buffer in kernel.params for buffer in (output, *sources)):
        return None
    axis = _axis(output, sources)
    if axis is None:
        return None
    starts: dict[Buffer, int] = {}
    for store, load in loads:
        assert isinstance(load, BufferLoad)
        start = _start(store, load, axis)
        if start is None or starts.setdefault(load.buffer, start) != start:
            return None
    ordered = sorted(sources, key=starts.__getitem__)
    sizes = [size for buffer in ordered if isinstance(size := buffer.shape[axis], int)]
    if [starts[buffer] for buffer in ordered] != [0, *accumulate(sizes[:-1])] or sum(sizes) != output.shape[axis]:
        return None
    parts = tuple(Part(kernel.params.index(buffer), starts[buffer]) for buffer in ordered)
    return Concatenation(kernel.params.index(output), axis, sum(sizes), parts)


def _stores(kernel: PrimFunc) -> list[BufferStore]:
    """The stores of a kernel of loops, conditions and stores; none for any other."""
    if sum(isinstance(param, Buffer) for param in kernel.params) < 3:  # two parts and the result
        return []
    found = list(statements(kernel.body))
    if not all(isinstance(part, (For, SeqStmt, IfThenElse, BufferStore)) for part in found):
        return []
    return [part for part in found if isinstance(part, BufferStore) and part.predicate is None]


def _chosen(value: PrimExpr) -> Iterator[PrimExpr]:
    """The values that a value may be."""
    if isinstance(value, Select):
        yield from _chosen(value.true_value)
        yield from _chosen(value.false_value)
    elif isinstance(value, PrimCall) and value.op == "if_then_else":
        for arm in value.args[1:]:
            if isinstance(arm, PrimExpr):
                yield from _chosen(arm)
    else:
        yield value


def _has_whole_elements(buffer: Buffer) -> bool:
    """Whether a buffer has its elements in order in memory of its own, each of whole bytes."""
    return is_plain(buffer) and not buffer.axis_separators and bits(buffer.dtype) % 8 == 0


def _axis(output: Buffer, parts: Sequence[Buffer]) -> int | None:
    """The only axis along which parts are not as long as the result, where all sizes along it are known."""
    if any(part.ndim != output.ndim or part.dtype != output.dtype for part in parts):
        return None
    axes = [
        axis
        for axis, size in enumerate(output.shape)
        if not all(same_extents((part.shape[axis],), (size,)) for part in parts)
    ]
    sizes = [buffer.shape[axis] for buffer in (output, *parts) for axis in axes]
    return axes[0] if len(axes) == 1 and all(isinstance(size, int) for size in sizes) else None


def _start(store: BufferStore, load: BufferLoad, axis: int) -> int | None:
    """How far the element that is stored lies behind the one that is loaded, along an axis alone."""
    for at, (here, there) in enumerate(zip(store.indices, load.indices, strict=True)):
        if at != axis and not structural_equal(here, there):
            return None
    here, there = prim_to_dim(store.indices[axis]), prim_to_dim(load.indices[axis])
    distance = None if here is None or there is None else here - there
    return distance if isinstance(distance, int) else None


# What is written as a part of one -------------------------------------------------------------------------------------


def as_part(kernel: PrimFunc, position: int, axis: int, start: int, total: int) -> PrimFunc | None:
    """The kernel with the buffer at a position in place in a larger one; None where its text does not allow that.

    The larger buffer is `total` long along an axis, and the kernel's own begins at `start`.
    """
    own = kernel.params[position]
    if not isinstance(own, Buffer) or not _has_whole_elements(own) or own.ndim <= axis:
        return None
    whole = Buffer(own.name, (*own.shape[:axis], total, *own.shape[axis + 1 :]), own.dtype, span=own.span)
    first = BufferLoad(whole, tuple(const(start if at == axis else 0, "int64") for at in range(own.ndim)))
    pointer = PrimCall("address_of", (first,), "handle")
    part = Buffer(f"{own.name}_part", own.shape, own.dtype, strides=_strides(own, axis, total), data=pointer)
    views = _moved_views(kernel, own, part, axis)
    if views is None:
        return None
    params = (*kernel.params[:position], whole, *kernel.params[position + 1 :])
    body = SeqStmt((DeclBuffer(part), substitute(kernel.body, views)))
    return fresh_function(replace(kernel, params=params, body=body))


def _strides(own: Buffer, axis: int, total: int) -> tuple[Extent, ...] | None:
    """The strides of a buffer in the larger one; None where its elements are one after the other there, too."""
    if all(size == 1 for size in own.shape[:axis]):
        return None
    whole = Buffer("", (*own.shape[:axis], total, *own.shape[axis + 1 :]), own.dtype)
    return buffer_strides(whole)


def _moved_views(kernel: PrimFunc, own: Buffer, part: Buffer, axis: int) -> dict[Node, Node] | None:
    """What stands for a buffer and for each view of it, its own first; None where something cannot be followed."""
    moved: dict[Node, Node] = {own: part}
    pointers: set[int] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, Block):
            return None
        view = stmt.buffer if isinstance(stmt, DeclBuffer) else None
        place = None if view is None else place_of(view.data)
        if view is None or place is None or place[0] not in moved:
            continue
        base, indices = place
        here = moved[base]
        assert isinstance(here, Buffer)
        strides = view.strides
        if part.strides is not None:
            strides = _view_strides(view, base, here, indices, axis)
            if strides is None:
                return None
        pointers.add(id(view.data))
        assert view.data is not None
        moved[view] = replace(view, strides=strides, data=substitute(view.data, {base: here}))
    return None if any(id(call) not in pointers and _hands_on(call, moved) for call in _calls(kernel)) else moved


def _calls(kernel: PrimFunc) -> Sequence[PrimCall]:
    return nodes_of(kernel.body, PrimCall)


def _hands_on(call: PrimCall, buffers: dict[Node, Node]) -> bool:
    """Whether a call takes one of the buffers, or the address of an element, and not an element."""
    loads = (arg.buffer for arg in call.args if isinstance(arg, BufferLoad)) if call.op in ADDRESSES else ()
    return any(arg in buffers for arg in (*loads, *(arg for arg in call.args if isinstance(arg, Buffer))))


def _view_strides(
    view: Buffer, base: Buffer, here: Buffer, indices: Sequence[PrimExpr], axis: int
) -> tuple[Extent, ...] | None:
    """The strides of a view of a buffer that has others now: None unless the view has the axes before one as they were.

    Then an element of the view lies within what the base has at the same place of these axes, where nothing moves.
    """
    old, before = buffer_strides(view), buffer_strides(base)
    if view.dtype != base.dtype or view.elem_offset is not None or view.ndim <= axis:
        return None
    if not same_extents(view.shape[:axis], base.shape[:axis]) or not same_extents(old[:axis], before[:axis]):
        return None
    if not all(isinstance(index, IntImm) and index.value == 0 for index in indices[:axis]):
        return None
    whole = view.strides is None and same_extents(
        (extent_product(view.shape[axis:]),), (extent_product(base.shape[axis:]),)
    )
    from_start = all(isinstance(index, IntImm) and index.value == 0 for index in indices)
    if not (whole and from_start) and not _stays_inside(view, base, indices, axis):
        return None
    return (*buffer_strides(here)[:axis], *old[axis:])


def _stays_inside(view: Buffer, base: Buffer, indices: Sequence[PrimExpr], axis: int) -> bool:
    """Whether a view is seen not to go beyond the elements that its base has at one place of the axes before one."""
    places = [prim_to_dim(index) for index in indices]
    steps: list[object] = [*places[axis:], *view.shape[axis:], *buffer_strides(view)[axis:], *base.shape[axis:]]
    steps += buffer_strides(base)[axis:]
    if not all(isinstance(step, int) for step in steps):
        return False
    strides = buffer_strides(base)[axis:]
    last: Dim = sum(int(a) * int(b) for a, b in zip(places[axis:], strides, strict=False))  # type: ignore[arg-type]
    for size, stride in zip(view.shape[axis:], buffer_strides(view)[axis:], strict=True):
        last += (int(size) - 1) * int(stride)  # type: ignore[arg-type]
    return isinstance(last, int) and last < int(extent_product(base.shape[axis:]))  # type: ignore[arg-type]
