"""Indices, sizes and bindings of block variables: integers that may not overflow.

An index means the exact number: compiled code computes it in 64 bits and holds that against the buffer. Where it is not
a number of its dtype, arithmetic in that dtype would mean another element, so the interpreter reports it: BoundsError
W905. So it does for operands of quotients, remainders, minima and maxima, in what a choice takes too, and in less than
64 bits for every part; sums and products in 64 bits may leave them on the way to a number that fits (`(a + b) - b`).
Values wrap, as everywhere; a variable is doubtful when the value that it was bound to has wrapped, and an index that
uses it is an error too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft import dtypes
from weft.errors import BoundsError
from weft.ir.graph import Expr
from weft.ir.interpret.closures.compiled import Compiled, Compiler, Frame
from weft.ir.interpret.scalars import binary_function
from weft.ir.tensor import COMPARISONS, Binary, Cast, PrimCall, PrimVar, Select

__all__ = ["doubt_of", "exact_condition", "index_closure"]

_EXACTLY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: int(a) + int(b),
    "sub": lambda a, b: int(a) - int(b),
    "mul": lambda a, b: int(a) * int(b),
}
_ARITHMETIC = frozenset({"add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max"})


def _is_integer(node: Any) -> bool:
    dtype = getattr(node, "dtype", "handle")
    return dtypes.lanes(dtype) == 1 and dtypes.is_integer(dtype) and dtypes.is_signed(dtype)


def index_closure(compiler: Compiler, node: Expr) -> Compiled:
    """The closure of an index expression."""
    return _within(compiler, node) or compiler.expression(node)


def _within(compiler: Compiler, node: Any) -> Compiled | None:
    """The closure of a number that its dtype has to hold, None where nothing can overflow."""
    exact = _closure(compiler, node)
    while isinstance(node, Cast):  # one that keeps the number
        node = node.value
    if exact is None or not _is_ring(node):
        return exact

    def within(frame: Frame) -> Any:
        value = exact(frame)
        if not -_LIMIT <= value < _LIMIT:
            raise _overflow(compiler, node, value, frame)
        return value

    return within


_LIMIT = 1 << 63


def _is_ring(node: Any) -> bool:
    """Whether a number may be on the way to one that fits: of a sum or product in 64 bits."""
    return isinstance(node, Binary) and node.kind in _EXACTLY and dtypes.bits(node.dtype) == 64


def _overflow(compiler: Compiler, node: Binary, value: int, frame: Frame) -> BoundsError:
    message = f"the index {node.script()} is {value}, which {node.dtype} does not hold"
    hint = "compute it in int64" if dtypes.bits(node.dtype) < 64 else None
    return BoundsError(message, code="W905", span=node.span, notes=compiler.values_in(frame), hint=hint)


def _closure(compiler: Compiler, node: Any) -> Compiled | None:
    """The closure that finds an overflow, None where there can be none."""
    if isinstance(node, PrimVar):
        return _variable(compiler, node)
    if isinstance(node, Cast) and _is_integer(node) and _is_integer(node.value):
        return _closure(compiler, node.value) if dtypes.bits(node.dtype) >= dtypes.bits(node.value.dtype) else None
    if isinstance(node, Binary) and node.kind in _ARITHMETIC and _is_integer(node):
        return _binary(compiler, node)
    if isinstance(node, Select) and _is_integer(node):
        return _choice(compiler, node.condition, node.true_value, node.false_value)
    if isinstance(node, PrimCall) and node.op == "if_then_else" and _is_integer(node):
        return _choice(compiler, *node.args)
    return None


def _choice(compiler: Compiler, condition: Any, *arms: Any) -> Compiled | None:
    """The closure of a choice, which is a value, so that sums and products wrap; their parts may not overflow."""
    exact = [_closure(compiler, arm) for arm in arms]
    if exact == [None, None] or dtypes.lanes(condition.dtype) != 1:
        return None
    test = compiler.expression(condition)
    a, b = (_value(compiler, arm, part) for arm, part in zip(arms, exact, strict=True))
    return lambda frame: a(frame) if test(frame) else b(frame)


def _value(compiler: Compiler, node: Any, exact: Compiled | None) -> Compiled:
    """The closure of a value of which the parts may not overflow."""
    value = compiler.expression(node)
    if exact is None:
        return value

    def checked(frame: Frame) -> Any:
        exact(frame)
        return value(frame)

    return checked


def _variable(compiler: Compiler, node: PrimVar) -> Compiled | None:
    doubt = compiler.doubts.get(id(node))
    if doubt is None:
        return None
    value = compiler.expression(node)

    def variable(frame: Frame) -> Any:
        if frame[doubt] is not None:
            raise frame[doubt]
        return value(frame)

    return variable


def _binary(compiler: Compiler, node: Binary) -> Compiled:
    closure = _closure if _is_ring(node) else _within
    parts = [closure(compiler, part) for part in (node.a, node.b)]
    a, b = (part or compiler.expression(side) for part, side in zip(parts, (node.a, node.b), strict=True))
    function = _EXACTLY.get(node.kind) or binary_function(node.kind, "int64")
    if _is_ring(node):
        return lambda frame: function(a(frame), b(frame))
    limit = 1 << (dtypes.bits(node.dtype) - 1)

    def binary(frame: Frame) -> Any:
        value = function(a(frame), b(frame))
        if not -limit <= value < limit:
            raise _overflow(compiler, node, value, frame)
        return value

    return binary


def exact_condition(compiler: Compiler, node: Expr) -> Compiled:
    """The closure of the condition of a check of bounds: a comparison whose arithmetic overflows does not hold."""
    if isinstance(node, Binary) and node.kind in ("and", "or") and dtypes.lanes(node.dtype) == 1:
        a, b = (exact_condition(compiler, side) for side in (node.a, node.b))
        if node.kind == "and":
            return lambda frame: a(frame) and b(frame)
        return lambda frame: a(frame) or b(frame)
    if not isinstance(node, Binary) or node.kind not in COMPARISONS or not _is_integer(node.a):
        return compiler.expression(node)
    a, b = (index_closure(compiler, side) for side in (node.a, node.b))
    compare = binary_function(node.kind, "int64")

    def condition(frame: Frame) -> Any:
        try:
            return compare(a(frame), b(frame))
        except BoundsError as error:
            if error.code != "W905":
                raise
            return False

    return condition


def doubt_of(compiler: Compiler, node: PrimVar, value: Expr) -> Compiled | None:
    """What notes, when a variable is bound, that its value has wrapped; None where it cannot."""
    exact = _within(compiler, value) if _is_integer(node) else None
    if exact is None:
        compiler.doubts.pop(id(node), None)
        return None
    slot = compiler.doubts[id(node)] = compiler.extra_slot()

    def note(frame: Frame) -> None:
        try:
            exact(frame)
        except BoundsError as error:
            if error.code != "W905":
                raise
            frame[slot] = error
        else:
            frame[slot] = None

    return note
