"""Buffers as closures: memory for one, a view of memory that its `data` points to, a region of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import BoundsError, OutOfMemoryError, ShapeError
from weft.ir.interpret.closures.compiled import Frame, KernelCompiler
from weft.ir.interpret.memory import Memory, Pointer, View
from weft.ir.tensor import Buffer, MatchBufferRegion, PrimVar

__all__ = ["Layout", "allocate", "match_region", "view_maker"]

Layout = tuple[tuple[int, ...], tuple[int, ...] | None, int]
"""Shape, strides (None where they follow from the shape) and offset of a buffer, in elements."""


def allocate(compiler: KernelCompiler, buffer: Buffer) -> Callable[[Frame], None]:
    """The closure that gives a buffer new memory, or a view of the memory that its `data` points to."""
    if buffer.data is not None:
        return _view(compiler, buffer)
    slot, make = compiler.slot(buffer), view_maker(compiler, buffer)

    def allocate(frame: Frame) -> None:
        try:
            shape, strides, offset = make(frame)
        except BoundsError as error:
            if error.code != "W905":
                raise
            message = f"no memory for the buffer {buffer.name}: {error.message}"
            raise OutOfMemoryError(message, code="W950", span=error.span, notes=error.notes) from None
        if strides is None:
            count = _product(shape)
        else:
            count = (
                1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
                if 0 not in shape
                else 0
            )
        memory = Memory.allocate(count + offset, buffer.dtype, compiler.unit_of(buffer.dtype), buffer.name)
        frame[slot] = View(memory, buffer.dtype, shape, strides, offset, buffer.name)

    return allocate


def view_maker(compiler: KernelCompiler, buffer: Buffer) -> Callable[[Frame], Layout]:
    """The closure that evaluates (shape, strides, offset) of a buffer."""
    shape = [compiler.extent(extent) for extent in buffer.shape]
    strides = None if buffer.strides is None else [compiler.extent(stride) for stride in buffer.strides]
    offset = compiler.extent(0 if buffer.elem_offset is None else buffer.elem_offset)

    def make(frame: Frame) -> Layout:
        sizes = tuple(extent(frame) for extent in shape)
        if min(sizes, default=0) < 0:
            raise ShapeError(
                f"buffer {buffer.name!r} has the negative shape {sizes}",
                code="W221",
                span=buffer.span,
                notes=compiler.values_in(frame),
            )
        return sizes, None if strides is None else tuple(stride(frame) for stride in strides), offset(frame)

    return make


def _view(compiler: KernelCompiler, buffer: Buffer) -> Callable[[Frame], None]:
    assert buffer.data is not None
    slot, make, data = compiler.slot(buffer), view_maker(compiler, buffer), compiler.expression(buffer.data)

    def view(frame: Frame) -> None:
        shape, strides, offset = make(frame)
        pointer = data(frame)
        if not isinstance(pointer, Pointer):
            raise BoundsError(f"the data of buffer {buffer.name!r} is not a pointer", code="W903", span=buffer.span)
        base = pointer.element_offset(buffer.dtype)
        made = View(pointer.memory, buffer.dtype, shape, strides, base + offset, buffer.name)
        try:
            pointer.check_holds(made)
        except BoundsError as error:
            error.notes = (*error.notes, *compiler.values_in(frame))
            raise error.at(buffer.span) from None
        frame[slot] = made

    return view


def match_region(compiler: KernelCompiler, node: MatchBufferRegion) -> Callable[[Frame], None]:
    """A buffer over a region of another: strides and offset follow from the region; bare symbols are bound."""
    source, target = node.source, node.buffer
    source_slot = compiler.slot(source.buffer)
    starts = [compiler.extent(part.start) for part in source.region]
    extents = [compiler.extent(part.extent) for part in source.region]
    layout = (
        *target.shape,
        *(target.strides or ()),
        *(() if target.elem_offset is None else (target.elem_offset,)),
    )
    fresh = [compiler.slot(part) for part in layout if isinstance(part, PrimVar) and id(part) not in compiler.slots]
    slot, bind = compiler.slot(target), _binder(compiler, target)

    def match(frame: Frame) -> None:
        view: View = frame[source_slot]
        first = [start(frame) for start in starts]
        sizes = [extent(frame) for extent in extents]
        for position, size, limit in zip(first, sizes, view.shape, strict=True):
            if position < 0 or position + size > limit:
                raise BoundsError(
                    f"region {_box(first, sizes)} is out of range for buffer {view.name!r} of shape {view.shape}",
                    code="W900",
                    span=node.span,
                    notes=compiler.values_in(frame),
                )
        # Leading dimensions of extent 1 may be dropped by the matched buffer.
        dropped = len(sizes) - target.ndim
        offset = view.offset + sum(p * s for p, s in zip(first, view.strides, strict=True))
        shape, strides = tuple(sizes[dropped:]), tuple(view.strides[dropped:])
        for symbol in fresh:
            frame[symbol] = None
        bind(frame, shape, strides, offset)
        frame[slot] = View(view.memory, target.dtype, shape, strides, offset, target.name)

    return match


def _binder(compiler: KernelCompiler, buffer: Buffer) -> Callable[[Frame, tuple[int, ...], tuple[int, ...], int], None]:
    """The closure that binds the bare symbols of a buffer's layout and compares sizes and strides (W220)."""
    parts = [("shape", tuple(buffer.shape)), ("strides", buffer.strides)]
    compared = [
        (what, [(_symbol_slot(compiler, p), compiler.extent(p)) for p in part])
        for what, part in parts
        if part is not None
    ]
    offset_slot = compiler.slot(buffer.elem_offset) if isinstance(buffer.elem_offset, PrimVar) else None

    def bind(frame: Frame, sizes: tuple[int, ...], steps: tuple[int, ...], start: int) -> None:
        if offset_slot is not None and frame[offset_slot] is None:
            frame[offset_slot] = start
        for what, entries in compared:
            actual = sizes if what == "shape" else steps
            if len(entries) != len(actual):
                raise ShapeError(
                    f"buffer {buffer.name!r} has {len(entries)} dimensions, got {what} {actual}",
                    code="W220",
                    span=buffer.span,
                )
            for (slot, _), value in zip(entries, actual, strict=True):
                if slot is not None and frame[slot] is None:
                    frame[slot] = value
            expected = tuple(extent(frame) for _, extent in entries)
            if expected != actual:
                raise ShapeError(
                    f"buffer {buffer.name!r}: expected {what} {expected}, got {actual}",
                    code="W220",
                    span=buffer.span,
                    notes=compiler.values_in(frame),
                )

    return bind


def _symbol_slot(compiler: KernelCompiler, part: Any) -> int | None:
    return compiler.slot(part) if isinstance(part, PrimVar) else None


def _product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _box(first: list[int], sizes: list[int]) -> str:
    return "[" + ", ".join(f"{start}:{start + size}" for start, size in zip(first, sizes, strict=True)) + "]"
