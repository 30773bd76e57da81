"""Tensor-level expressions to Python closures.

    compiled ::= frame -> value          frame is a list with one slot per variable and buffer of the function

The value forms are those of `weft.ir.interpret.scalars`; a handle is a `Pointer`, a string a str. Each node is compiled
once; what is known beforehand (dtypes, slots, the arithmetic of the dtype) is decided then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import BoundsError, Span, VerifyError, WeftError
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.interpret.compiled import CallKernel, Compiled, Frame, Lookup
from weft.ir.interpret.indices import index_closure
from weft.ir.interpret.intrinsics import compile_intrinsic
from weft.ir.interpret.memory import Pointer, View
from weft.ir.interpret.scalars import binary_function, cast_function, coerce, element_type, unary_function
from weft.ir.node import Node
from weft.ir.tensor import (
    Binary,
    Broadcast,
    Buffer,
    BufferLoad,
    Cast,
    Extent,
    FloatImm,
    IntImm,
    Let,
    PrimCall,
    PrimVar,
    Ramp,
    Select,
    Shuffle,
    Unary,
)

__all__ = ["FunctionCompiler", "is_vector"]


class FunctionCompiler:
    """The slots of one function, and its expressions as closures.

    `call_kernel(name, values, span)` calls another function of the module; `lookup(symbol)` finds an external function.
    """

    def __init__(self, call_kernel: CallKernel, lookup: Lookup) -> None:
        self.call_kernel = call_kernel
        self.lookup = lookup
        self.slots: dict[int, int] = {}
        self.named: list[tuple[str, int]] = []
        self.kept: list[Node] = []  # nodes stay alive, so that their ids stay theirs
        self.doubts: dict[int, int] = {}  # slots that say whether the value of a variable has wrapped, by its id

    # Slots

    def slot(self, node: PrimVar | Buffer) -> int:
        """The slot of a variable or buffer, made on first use."""
        key = id(node)
        if key not in self.slots:
            self.slots[key] = len(self.slots)
            self.kept.append(node)
            if isinstance(node, PrimVar) and node.dtype != "handle":
                self.named.append((node.name, self.slots[key]))
        return self.slots[key]

    def extra_slot(self) -> int:
        """A slot of no node."""
        self.slots[-1 - len(self.slots)] = len(self.slots)
        return len(self.slots) - 1

    def frame(self) -> Frame:
        """An empty frame."""
        return [None] * len(self.slots)

    def values_in(self, frame: Frame) -> tuple[str, ...]:
        """The values of the variables as a note for an error."""
        known = [f"{name}={frame[slot]}" for name, slot in self.named if frame[slot] is not None]
        return (f"with {', '.join(known)}",) if known else ()

    # Expressions

    def extent(self, value: Extent) -> Compiled:
        """A size: a plain int or an expression."""
        if isinstance(value, int):
            return lambda frame: value
        return self.index(value)

    def index(self, node: Expr) -> Compiled:
        """An index, a size or the binding of a block variable, which may not overflow its dtype."""
        return index_closure(self, node)

    def expression(self, node: Expr) -> Compiled:
        """The closure of an expression."""
        compile_node = _COMPILERS.get(type(node))
        if compile_node is None:
            raise WeftError(
                f"cannot interpret a {type(node).__name__} in a tensor-level function", code="W860", span=node.span
            )
        if dtypes.is_scalable(getattr(node, "dtype", "void")):
            raise WeftError(
                f"cannot interpret a {node.dtype}: T.vscale() is known to a machine alone",  # type: ignore[attr-defined]
                code="W860", span=node.span, hint="write a constant length",
            )  # fmt: skip
        return compile_node(self, node)

    def _variable(self, node: PrimVar) -> Compiled:
        if id(node) not in self.slots:  # definitions are compiled before uses
            raise VerifyError(f"variable {node.name!r} is not defined", code="W401", span=node.span)
        return operator.itemgetter(self.slots[id(node)])

    def _constant(self, node: IntImm | FloatImm) -> Compiled:
        value = coerce(node.value, node.dtype)
        return lambda frame: value

    def _string(self, node: StringImm) -> Compiled:
        return lambda frame: node.value

    def _unary(self, node: Unary) -> Compiled:
        function, a = unary_function(node.kind, node.dtype), self.expression(node.a)
        return lambda frame: function(a(frame))

    def _binary(self, node: Binary) -> Compiled:
        a, b = self.expression(node.a), self.expression(node.b)
        if node.kind in ("and", "or") and dtypes.lanes(node.dtype) == 1:
            return (lambda frame: a(frame) and b(frame)) if node.kind == "and" else (lambda frame: a(frame) or b(frame))
        function = binary_function(node.kind, node.a.dtype)
        return lambda frame: function(a(frame), b(frame))

    def _cast(self, node: Cast) -> Compiled:
        function, value = cast_function(node.value.dtype, node.dtype), self.expression(node.value)
        return lambda frame: function(value(frame))

    def _select(self, node: Select) -> Compiled:
        condition, a, b = (
            self.expression(node.condition),
            self.expression(node.true_value),
            self.expression(node.false_value),
        )
        if dtypes.lanes(node.condition.dtype) > 1:
            return lambda frame: np.where(condition(frame), a(frame), b(frame))

        def select(frame: Frame) -> Any:
            first, second = a(frame), b(frame)
            return first if condition(frame) else second

        return select

    def _ramp(self, node: Ramp) -> Compiled:
        base, stride = self.expression(node.base), self.expression(node.stride)
        kind, steps = element_type(node.dtype), np.arange(node.lanes)
        return lambda frame: (base(frame) + stride(frame) * steps).astype(kind)

    def _broadcast(self, node: Broadcast) -> Compiled:
        value, kind, lanes = self.expression(node.value), element_type(node.dtype), node.lanes
        return lambda frame: np.full(lanes, value(frame), kind)

    def _shuffle(self, node: Shuffle) -> Compiled:
        vectors = [self.expression(vector) for vector in node.vectors]
        indices = [self.expression(index) for index in node.indices]

        def shuffle(frame: Frame) -> Any:
            lanes = np.concatenate([np.atleast_1d(vector(frame)) for vector in vectors])
            picked = [index(frame) for index in indices]
            for index in picked:
                if not 0 <= index < len(lanes):
                    raise BoundsError(f"lane {index} of a shuffle of {len(lanes)} lanes", code="W900", span=node.span)
            return lanes[picked] if len(picked) > 1 else lanes[picked[0]].item()

        return shuffle

    def _let(self, node: Let) -> Compiled:
        value, slot, body = self.expression(node.value), self.slot(node.var), self.expression(node.body)

        def let(frame: Frame) -> Any:
            frame[slot] = value(frame)
            return body(frame)

        return let

    def _call(self, node: PrimCall) -> Compiled:
        if isinstance(node.op, GlobalVar):
            return self._call_function(node, node.op)
        return compile_intrinsic(self, node)

    def _call_function(self, node: PrimCall, callee: GlobalVar) -> Compiled:
        args = [self.argument(arg) for arg in node.args]
        return lambda frame: self.call_kernel(callee.name, [arg(frame) for arg in args], node.span)

    def argument(self, node: Any) -> Compiled:
        """An argument of a call: a buffer stands for the pointer to it."""
        return self.pointer_to(node) if isinstance(node, Buffer) else self.expression(node)

    # Accesses

    def pointer_to(self, buffer: Buffer) -> Compiled:
        """The pointer to the first element of a buffer."""
        slot = self.slot(buffer)

        def point(frame: Frame) -> Pointer:
            view: View = frame[slot]
            return Pointer(view.memory, view.offset * view.data.itemsize, view)

        return point

    def _load(self, node: BufferLoad) -> Compiled:
        slot, buffer = self.slot(node.buffer), node.buffer
        if is_vector(node.indices):
            return self._load_lanes(node)
        locate = self.locator(buffer, node.indices, node.span)
        guard = None if node.predicate is None else self.expression(node.predicate)

        def load(frame: Frame) -> Any:
            if guard is not None and not guard(frame):
                return coerce(0, buffer.dtype)
            view: View = frame[slot]
            address = locate(frame, view)
            if view.marks is not None and not view.marks[address]:
                self.unwritten(frame, view, node)
            return view.read(address)

        return load

    def locator(self, buffer: Buffer, indices: tuple[Expr, ...], span: Span | None) -> Callable[[Frame, View], int]:
        """The address of an element, with every index checked against the shape."""
        compiled = [self.index(index) for index in indices]
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
                    raise self.out_of_range(frame, view, tuple(index(frame) for index in compiled), span)
                address += position * stride
            if not 0 <= address < view.size:
                raise BoundsError(
                    f"element {address} of buffer {view.name!r} lies outside its memory of {view.size} elements",
                    code="W903", span=span, notes=self.values_in(frame),
                )  # fmt: skip
            return address

        return locate

    def out_of_range(self, frame: Frame, view: View, index: Any, span: Span | None) -> BoundsError:
        """The error of an index outside the shape."""
        text = ", ".join(str(position) for position in index)
        message = f"index ({text}) is out of range for buffer {view.name!r} of shape {view.shape}"
        return BoundsError(message, code="W900", span=span, notes=self.values_in(frame))

    def unwritten(self, frame: Frame, view: View, node: BufferLoad) -> None:
        """Note, or refuse, a read of an element that was not written."""
        if not view.memory.strict:
            view.memory.read_first = True
            return
        position = ", ".join(str(self.expression(index)(frame)) for index in node.indices)
        raise BoundsError(
            f"element ({position}) of buffer {view.name!r} is read before it is written",
            code="W901", span=node.span, notes=self.values_in(frame),
        )  # fmt: skip

    def lanes_locator(
        self, buffer: Buffer, indices: tuple[Expr, ...], predicate: Expr | None, span: Span | None
    ) -> Callable[[Frame, View], tuple[Any, Any]]:
        """(addresses, active) of the lanes of a vector access; `active` None when all are."""
        if len(indices) != buffer.ndim:
            raise BoundsError(
                f"buffer {buffer.name!r} has {buffer.ndim} dimensions, got {len(indices)} indices",
                code="W904",
                span=span,
            )
        compiled = [self.expression(index) for index in indices]
        guard = None if predicate is None else self.expression(predicate)

        def locate(frame: Frame, view: View) -> tuple[Any, Any]:
            positions = np.broadcast_arrays(*(np.asarray(index(frame), np.int64) for index in compiled))
            active = None if guard is None else np.broadcast_to(np.asarray(guard(frame), np.bool_), positions[0].shape)
            if active is not None:
                positions = [position[active] for position in positions]
            addresses = np.full(positions[0].shape, view.offset, np.int64)
            for position, extent, stride in zip(positions, view.shape, view.strides, strict=True):
                if ((position < 0) | (position >= extent)).any():
                    raise self.out_of_range(frame, view, [p.tolist() for p in positions], span)
                addresses = addresses + position * stride
            if len(addresses) and not (0 <= addresses.min() and addresses.max() < view.size):
                raise BoundsError(
                    f"elements {addresses.tolist()} of buffer {view.name!r} lie outside its memory of {view.size}",
                    code="W903", span=span, notes=self.values_in(frame),
                )  # fmt: skip
            return addresses, active

        return locate

    def _load_lanes(self, node: BufferLoad) -> Compiled:
        slot, lanes = self.slot(node.buffer), dtypes.lanes(node.dtype)
        locate = self.lanes_locator(node.buffer, node.indices, node.predicate, node.span)
        kind = element_type(node.buffer.dtype)

        def load(frame: Frame) -> Any:
            view: View = frame[slot]
            addresses, active = locate(frame, view)
            if view.marks is not None and not all(view.marks[address] for address in addresses.tolist()):
                self.unwritten(frame, view, node)
            values = view.read_lanes(addresses)
            if active is None:
                return values
            out = np.zeros(lanes, kind)
            out[active] = values
            return out

        return load


def is_vector(indices: tuple[Any, ...]) -> bool:
    """Whether some index has several lanes."""
    return any(dtypes.lanes(index.dtype) > 1 for index in indices)


_COMPILERS: dict[type, Callable[[FunctionCompiler, Any], Compiled]] = {
    PrimVar: FunctionCompiler._variable,
    IntImm: FunctionCompiler._constant,
    FloatImm: FunctionCompiler._constant,
    StringImm: FunctionCompiler._string,
    Unary: FunctionCompiler._unary,
    Binary: FunctionCompiler._binary,
    Cast: FunctionCompiler._cast,
    Select: FunctionCompiler._select,
    BufferLoad: FunctionCompiler._load,
    Ramp: FunctionCompiler._ramp,
    Broadcast: FunctionCompiler._broadcast,
    Shuffle: FunctionCompiler._shuffle,
    Let: FunctionCompiler._let,
    PrimCall: FunctionCompiler._call,
}
