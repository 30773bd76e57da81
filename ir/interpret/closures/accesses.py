"""Loads and stores as closures: an element is located with every index checked against the shape (W900, W903)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import BoundsError, Span
from weft.ir.graph import Expr
from weft.ir.interpret.closures.compiled import Compiled, Compiler, Frame
from weft.ir.interpret.memory import Pointer, View
from weft.ir.interpret.scalars import coerce, element_type
from weft.ir.tensor import Buffer, BufferLoad, BufferStore

__all__ = ["argument", "load", "locator", "pointer_to", "store"]


def argument(compiler: Compiler, node: Any) -> Compiled:
    """An argument of a call: a buffer stands for the pointer to it."""
    return pointer_to(compiler, node) if isinstance(node, Buffer) else compiler.expression(node)


def pointer_to(compiler: Compiler, buffer: Buffer) -> Compiled:
    """The pointer to the first element of a buffer."""
    slot = compiler.slot(buffer)

    def point(frame: Frame) -> Pointer:
        view: View = frame[slot]
        return Pointer(view.memory, view.offset * view.data.itemsize, view)

    return point


def load(compiler: Compiler, node: BufferLoad) -> Compiled:
    """The closure of a load of an element, or of lanes."""
    slot, buffer = compiler.slot(node.buffer), node.buffer
    if _is_vector(node.indices):
        return _load_lanes(compiler, node)
    locate = locator(compiler, buffer, node.indices, node.span)
    guard = None if node.predicate is None else compiler.expression(node.predicate)

    def load(frame: Frame) -> Any:
        if guard is not None and not guard(frame):
            return coerce(0, buffer.dtype)
        view: View = frame[slot]
        address = locate(frame, view)
        if view.marks is not None and not view.marks[address]:
            _unwritten(compiler, frame, view, node)
        return view.read(address)

    return load


def locator(
    compiler: Compiler, buffer: Buffer, indices: tuple[Expr, ...], span: Span | None
) -> Callable[[Frame, View], int]:
    """The address of an element, with every index checked against the shape."""
    compiled = [compiler.index(index) for index in indices]
    if len(indices) != buffer.ndim:
        raise BoundsError(
            f"buffer {buffer.name!r} has {buffer.ndim} dimensions, got {len(indices)} indices",
            code="W904",
            span=span,
        )

    def locate(frame: Frame, view: View) -> int:
        address = view.offset
        for index, extent, stride in zip(compiled, view.shape, view.strides):  # noqa: B905  ranks are equal
            position = index(frame)
            if not 0 <= position < extent:
                raise _out_of_range(compiler, frame, view, tuple(index(frame) for index in compiled), span)
            address += position * stride
        if not 0 <= address < view.size:
            raise BoundsError(
                f"element {address} of buffer {view.name!r} lies outside its memory of {view.size} elements",
                code="W903",
                span=span,
                notes=compiler.values_in(frame),
            )
        return address

    return locate


def _out_of_range(compiler: Compiler, frame: Frame, view: View, index: Any, span: Span | None) -> BoundsError:
    """The error of an index outside the shape."""
    text = ", ".join(str(position) for position in index)
    message = f"index ({text}) is out of range for buffer {view.name!r} of shape {view.shape}"
    return BoundsError(message, code="W900", span=span, notes=compiler.values_in(frame))


def _unwritten(compiler: Compiler, frame: Frame, view: View, node: BufferLoad) -> None:
    """Note, or refuse, a read of an element that was not written."""
    if not view.memory.strict:
        view.memory.read_first = True
        return
    position = ", ".join(str(compiler.expression(index)(frame)) for index in node.indices)
    raise BoundsError(
        f"element ({position}) of buffer {view.name!r} is read before it is written",
        code="W901",
        span=node.span,
        notes=compiler.values_in(frame),
    )


def _lanes_locator(
    compiler: Compiler, buffer: Buffer, indices: tuple[Expr, ...], predicate: Expr | None, span: Span | None
) -> Callable[[Frame, View], tuple[Any, Any]]:
    """(addresses, active) of the lanes of a vector access; `active` None when all are."""
    if len(indices) != buffer.ndim:
        raise BoundsError(
            f"buffer {buffer.name!r} has {buffer.ndim} dimensions, got {len(indices)} indices",
            code="W904",
            span=span,
        )
    compiled = [compiler.expression(index) for index in indices]
    guard = None if predicate is None else compiler.expression(predicate)

    def locate(frame: Frame, view: View) -> tuple[Any, Any]:
        positions = np.broadcast_arrays(*(np.asarray(index(frame), np.int64) for index in compiled))
        active = None if guard is None else np.broadcast_to(np.asarray(guard(frame), np.bool_), positions[0].shape)
        if active is not None:
            positions = [position[active] for position in positions]
        addresses = np.full(positions[0].shape, view.offset, np.int64)
        for position, extent, stride in zip(positions, view.shape, view.strides, strict=True):
            if ((position < 0) | (position >= extent)).any():
                raise _out_of_range(compiler, frame, view, [p.tolist() for p in positions], span)
            addresses = addresses + position * stride
        if len(addresses) and not (0 <= addresses.min() and addresses.max() < view.size):
            raise BoundsError(
                f"elements {addresses.tolist()} of buffer {view.name!r} lie outside its memory of {view.size}",
                code="W903",
                span=span,
                notes=compiler.values_in(frame),
            )
        return addresses, active

    return locate


def _load_lanes(compiler: Compiler, node: BufferLoad) -> Compiled:
    slot, lanes = compiler.slot(node.buffer), dtypes.lanes(node.dtype)
    locate = _lanes_locator(compiler, node.buffer, node.indices, node.predicate, node.span)
    kind = element_type(node.buffer.dtype)

    def load(frame: Frame) -> Any:
        view: View = frame[slot]
        addresses, active = locate(frame, view)
        if view.marks is not None and not all(view.marks[address] for address in addresses.tolist()):
            _unwritten(compiler, frame, view, node)
        values = view.read_lanes(addresses)
        if active is None:
            return values
        out = np.zeros(lanes, kind)
        out[active] = values
        return out

    return load


def store(compiler: Compiler, node: BufferStore) -> Compiled:
    """The closure of a store of an element, or of lanes."""
    slot, value = compiler.slot(node.buffer), compiler.expression(node.value)
    if _is_vector(node.indices):
        return _store_lanes(compiler, node)
    locate = locator(compiler, node.buffer, node.indices, node.span)
    guard = None if node.predicate is None else compiler.expression(node.predicate)

    def store(frame: Frame) -> None:
        if guard is not None and not guard(frame):
            return
        stored = value(frame)
        view: View = frame[slot]
        address = locate(frame, view)
        view.write(address, stored)
        if view.marks is not None:
            view.marks[address] = 1
            view.memory.touched = True

    return store


def _store_lanes(compiler: Compiler, node: BufferStore) -> Compiled:
    slot, value = compiler.slot(node.buffer), compiler.expression(node.value)
    locate = _lanes_locator(compiler, node.buffer, node.indices, node.predicate, node.span)

    def store(frame: Frame) -> None:
        stored = value(frame)
        view: View = frame[slot]
        addresses, active = locate(frame, view)
        lanes = len(addresses) if active is None else len(active)
        stored = np.broadcast_to(stored, (lanes,))
        view.write_lanes(addresses, stored if active is None else stored[active])
        view.memory.touched = True

    return store


def _is_vector(indices: tuple[Any, ...]) -> bool:
    """Whether some index has several lanes."""
    return any(dtypes.lanes(index.dtype) > 1 for index in indices)
