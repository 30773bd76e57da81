"""Tensor-level expressions to Python closures.

    compiled ::= frame -> value          frame is a list with one slot per variable and buffer of the function

The value forms are those of `weft.ir.interpret.scalars`; a handle is a `Pointer`, a string a str. Each node is compiled
once; what is known beforehand (dtypes, slots, the arithmetic of the dtype) is decided then.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.errors import ArgumentError, BoundsError, VerifyError
from weft.ir.graph import Expr, GlobalVar, StringImm
from weft.ir.interpret.closures.accesses import argument, load
from weft.ir.interpret.closures.compiled import CallKernel, Compiled, Compiler, Frame, Lookup
from weft.ir.interpret.closures.indices import index_closure
from weft.ir.interpret.closures.intrinsics import compile_intrinsic, no_number
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

__all__ = ["FunctionCompiler"]


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
            raise ArgumentError(
                f"cannot interpret a {type(node).__name__} in a tensor-level function", code="W860", span=node.span
            )
        if dtypes.is_scalable(getattr(node, "dtype", "void")):
            raise ArgumentError(
                f"cannot interpret a {node.dtype}: T.vscale() is known to a machine alone",  # type: ignore[attr-defined]
                code="W860",
                span=node.span,
                hint="write a constant length",
            )
        return compile_node(self, node)


def _variable(compiler: Compiler, node: PrimVar) -> Compiled:
    if id(node) not in compiler.slots:  # definitions are compiled before uses
        raise VerifyError(f"variable {node.name!r} is not defined", code="W401", span=node.span)
    return operator.itemgetter(compiler.slots[id(node)])


def _constant(compiler: Compiler, node: IntImm | FloatImm) -> Compiled:
    value = coerce(node.value, node.dtype)
    return lambda frame: value


def _string(compiler: Compiler, node: StringImm) -> Compiled:
    return lambda frame: node.value


def _unary(compiler: Compiler, node: Unary) -> Compiled:
    function, a = unary_function(node.kind, node.dtype), compiler.expression(node.a)
    return lambda frame: function(a(frame))


def _binary(compiler: Compiler, node: Binary) -> Compiled:
    a, b = compiler.expression(node.a), compiler.expression(node.b)
    if node.kind in ("and", "or") and dtypes.lanes(node.dtype) == 1:
        return (lambda frame: a(frame) and b(frame)) if node.kind == "and" else (lambda frame: a(frame) or b(frame))
    function = binary_function(node.kind, node.a.dtype)
    return lambda frame: function(a(frame), b(frame))


def _cast(compiler: Compiler, node: Cast) -> Compiled:
    if node.value.dtype == "handle" and node.dtype != "handle":
        raise no_number(node.span)
    function, value = cast_function(node.value.dtype, node.dtype), compiler.expression(node.value)
    return lambda frame: function(value(frame))


def _select(compiler: Compiler, node: Select) -> Compiled:
    condition, a, b = (
        compiler.expression(node.condition),
        compiler.expression(node.true_value),
        compiler.expression(node.false_value),
    )
    if dtypes.lanes(node.condition.dtype) > 1:

        def select_lanes(frame: Frame) -> Any:
            return cast("Any", np.where(condition(frame), a(frame), b(frame)))

        return select_lanes

    def select(frame: Frame) -> Any:
        first, second = a(frame), b(frame)
        return first if condition(frame) else second

    return select


def _ramp(compiler: Compiler, node: Ramp) -> Compiled:
    base, stride = compiler.expression(node.base), compiler.expression(node.stride)
    kind, steps = element_type(node.dtype), np.arange(node.lanes)
    return lambda frame: (base(frame) + stride(frame) * steps).astype(kind)


def _broadcast(compiler: Compiler, node: Broadcast) -> Compiled:
    value, kind, lanes = compiler.expression(node.value), element_type(node.dtype), node.lanes
    return lambda frame: np.full(lanes, value(frame), kind)


def _shuffle(compiler: Compiler, node: Shuffle) -> Compiled:
    vectors = [compiler.expression(vector) for vector in node.vectors]
    indices = [compiler.expression(index) for index in node.indices]

    def shuffle(frame: Frame) -> Any:
        lanes = np.concatenate([np.atleast_1d(vector(frame)) for vector in vectors])
        picked = [index(frame) for index in indices]
        for index in picked:
            if not 0 <= index < len(lanes):
                raise BoundsError(f"lane {index} of a shuffle of {len(lanes)} lanes", code="W900", span=node.span)
        return lanes[picked] if len(picked) > 1 else lanes[picked[0]].item()

    return shuffle


def _let(compiler: Compiler, node: Let) -> Compiled:
    value, slot, body = compiler.expression(node.value), compiler.slot(node.var), compiler.expression(node.body)

    def let(frame: Frame) -> Any:
        frame[slot] = value(frame)
        return body(frame)

    return let


def _call(compiler: Compiler, node: PrimCall) -> Compiled:
    if isinstance(node.op, GlobalVar):
        return _call_function(compiler, node, node.op)
    return compile_intrinsic(compiler, node)


def _call_function(compiler: Compiler, node: PrimCall, callee: GlobalVar) -> Compiled:
    args = [argument(compiler, arg) for arg in node.args]
    return lambda frame: compiler.call_kernel(callee.name, [arg(frame) for arg in args], node.span)


_COMPILERS: dict[type, Callable[[Compiler, Any], Compiled]] = {
    PrimVar: _variable,
    IntImm: _constant,
    FloatImm: _constant,
    StringImm: _string,
    Unary: _unary,
    Binary: _binary,
    Cast: _cast,
    Select: _select,
    BufferLoad: load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Shuffle: _shuffle,
    Let: _let,
    PrimCall: _call,
}
