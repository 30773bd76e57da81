"""Calls of intrinsics and of external functions as closures.

Mathematical intrinsics get their meaning from the table `weft.ir.kernel.intrinsics`, applied to scalars of the exact
dtype. The others are here: lazy choice, bits, pointers, vectors, printing, external calls. An intrinsic without a
meaning is an error (W864) when the function is interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ArgumentError, BoundsError, ShapeError, Span, WeftError, described
from weft.ir.graph import StringImm
from weft.ir.interpret.closures.accesses import argument, locator, pointer_to
from weft.ir.interpret.closures.compiled import Compiled, Compiler, Frame
from weft.ir.interpret.memory import Pointer, View
from weft.ir.interpret.scalars import check_scalar, coerce, element_type
from weft.ir.kernel.formulas import expanded
from weft.ir.kernel.intrinsics import INTRINSICS, InOwnType
from weft.ir.tensor import Buffer, BufferLoad, PrimCall, PrimExpr
from weft.support import profile
from weft.support.isolation import hand_over
from weft.support.small_floats import decode, encode, round_to

__all__ = ["compile_intrinsic", "missing_function", "no_number", "shown_values"]

_EXTERNAL = ("call_extern", "call_pure_extern", "call_packed", "call_cpacked", "tvm_call_packed")


def compile_intrinsic(compiler: Compiler, node: PrimCall) -> Compiled:
    """The closure of a call whose `op` is the name of an intrinsic."""
    name = str(node.op)
    if name in _EXTERNAL:
        return _external(compiler, node)
    special = _SPECIAL.get(name)
    if special is not None:
        return special(compiler, node)
    entry = INTRINSICS.get(name)
    if entry is not None and entry.numpy is None and entry.formula is not None:
        return compiler.expression(expanded(node))
    if entry is None or entry.numpy is None:
        raise ArgumentError(
            f"the intrinsic T.{name} has no meaning in the interpreter",
            code="W864",
            span=node.span,
            hint="register one with weft.ir.kernel.intrinsics.register_intrinsic",
        )
    function = entry.numpy
    if name == "nextafter" and not dtypes.is_numpy(dtypes.element(node.dtype)):
        function = _next_of(dtypes.array_dtype(dtypes.element(node.dtype)))
    return _mathematical(compiler, node, function)


def _next_of(kind: np.dtype[Any]) -> Callable[[Any, Any], Any]:
    """The next value of a type that NumPy lacks, which its own steps make, not those of float32."""
    return lambda a, b: np.nextafter(np.asarray(a).astype(kind), np.asarray(b).astype(kind)).astype(np.float32)


def _mathematical(compiler: Compiler, node: PrimCall, function: Callable[..., Any]) -> Compiled:
    args = [compiler.expression(arg) for arg in node.args]
    kind_of = dtypes.array_dtype if isinstance(function, InOwnType) else element_type
    kinds = [kind_of(dtypes.element(arg.dtype)).type for arg in node.args]  # type: ignore[attr-defined]
    if dtypes.lanes(node.dtype) > 1:
        finish = _finish_lanes(node.dtype)
    else:
        finish = _finish(node.dtype)
    vectors = [dtypes.lanes(arg.dtype) > 1 for arg in node.args]  # type: ignore[attr-defined]

    def call(frame: Frame) -> Any:
        # Python ints become NumPy scalars of their dtype, so that the function sees the width.
        values = [
            arg(frame) if vector else kind(arg(frame)) for arg, kind, vector in zip(args, kinds, vectors, strict=True)
        ]
        return finish(function(*values))

    return call


def _finish(dtype: str) -> Callable[[Any], Any]:
    if dtypes.is_integer(dtype):
        return lambda value: coerce(int(value), dtype)
    if dtypes.is_bool(dtype):
        return bool
    kind = element_type(dtype).type
    return kind if dtypes.is_numpy(dtype) else (lambda value: round_to(value, dtype))


def _finish_lanes(dtype: str) -> Callable[[Any], Any]:
    scalar, kind = dtypes.element(dtype), element_type(dtype)
    if dtypes.is_float(scalar) and not dtypes.is_numpy(scalar):
        return lambda value: round_to(value, scalar)
    return lambda value: np.asarray(value).astype(kind)


# Choice, bits -------------------------------------------------------------------------------------------------------


def _if_then_else(compiler: Compiler, node: PrimCall) -> Compiled:
    condition, a, b = (compiler.expression(arg) for arg in node.args)
    return lambda frame: a(frame) if condition(frame) else b(frame)


def _likely(compiler: Compiler, node: PrimCall) -> Compiled:
    return compiler.expression(node.args[0])


def _assume(compiler: Compiler, node: PrimCall) -> Compiled:
    condition = compiler.expression(node.args[0])

    def assume(frame: Frame) -> None:
        if not condition(frame):
            raise BoundsError(
                "an assumption does not hold", code="W906", span=node.span, notes=compiler.values_in(frame)
            )

    return assume


def _undefined(compiler: Compiler, node: PrimCall) -> Compiled:
    lanes = dtypes.lanes(node.dtype)
    value = coerce(0, dtypes.element(node.dtype))
    return lambda frame: np.full(lanes, value, element_type(node.dtype)) if lanes > 1 else value


def _to_bits(value: Any, dtype: str) -> np.ndarray:
    scalar = dtypes.element(dtype)
    if dtypes.is_float(scalar) and not dtypes.is_numpy(scalar):
        return np.atleast_1d(encode(value, scalar))
    return np.atleast_1d(np.asarray(value, element_type(dtype)))


def _reinterpret(compiler: Compiler, node: PrimCall) -> Compiled:
    value = compiler.expression(node.args[0])
    operand = node.args[0]
    assert isinstance(operand, PrimExpr)
    source, target = operand.dtype, node.dtype
    if source == target == "handle":
        return value
    if "handle" in (source, target):
        raise no_number(node.span)
    scalar = dtypes.element(target)
    small = dtypes.is_float(scalar) and not dtypes.is_numpy(scalar)

    def reinterpret(frame: Frame) -> Any:
        bits = _to_bits(value(frame), source).view(dtypes.storage(scalar))
        values = decode(bits, scalar) if small else bits
        if dtypes.lanes(target) > 1:
            return values
        first: Any = values[0]
        return first if dtypes.is_float(scalar) or dtypes.is_complex(scalar) else first.item()

    return reinterpret


def no_number(span: Span | None) -> WeftError:
    """The error for a pointer where a number is wanted, or the other way round."""
    return ArgumentError("a pointer is no number in the interpreter, nor a number a pointer", code="W864", span=span)


def _q_multiply_shift(compiler: Compiler, node: PrimCall) -> Compiled:
    args = [compiler.expression(arg) for arg in node.args]

    def multiply(frame: Frame) -> int:
        x, y, fraction, shift = (int(arg(frame)) for arg in args)
        product = (x << max(shift, 0)) * y
        total = fraction + max(-shift, 0)
        return coerce((product + (1 << (total - 1))) >> total if total > 0 else product, node.dtype)

    return multiply


# Vectors ------------------------------------------------------------------------------------------------------------


def _lane_half(low: bool) -> Callable[[Compiler, PrimCall], Compiled]:
    def build(compiler: Compiler, node: PrimCall) -> Compiled:
        value = compiler.expression(node.args[-1])

        def half(frame: Frame) -> Any:
            lanes = value(frame)
            return lanes[: len(lanes) // 2] if low else lanes[len(lanes) // 2 :]

        return half

    return build


def _combine(compiler: Compiler, node: PrimCall) -> Compiled:
    parts = [compiler.expression(arg) for arg in node.args]
    return lambda frame: np.concatenate([part(frame) for part in parts])


def _lane_mask(compiler: Compiler, node: PrimCall) -> Compiled:
    base, limit = (compiler.expression(arg) for arg in node.args)
    steps = np.arange(dtypes.lanes(node.dtype))
    return lambda frame: base(frame) + steps < limit(frame)


# Pointers -----------------------------------------------------------------------------------------------------------


def _address_of(compiler: Compiler, node: PrimCall) -> Compiled:
    target = node.args[0]
    if isinstance(target, Buffer):
        return pointer_to(compiler, target)
    if not isinstance(target, BufferLoad):
        raise ArgumentError("T.address_of takes a buffer element", code="W865", span=node.span)
    slot, locate = compiler.slot(target.buffer), locator(compiler, target.buffer, target.indices, target.span)

    def address(frame: Frame) -> Pointer:
        view: View = frame[slot]
        if view.elements() == 0:  # there is no first element, yet its address may be passed on
            return Pointer(view.memory, view.offset * view.data.itemsize, view)
        position = locate(frame, view)
        return Pointer(view.memory, position * view.data.itemsize, view if position == view.offset else None, view)

    return address


def _access_ptr(compiler: Compiler, node: PrimCall) -> Compiled:
    """The pointer to a buffer, or an offset in its elements further on when a number is given."""
    base = node.args[0]
    taken = (
        PrimCall("address_of", (base,), "handle", span=node.span) if isinstance(base, (BufferLoad, Buffer)) else base
    )
    pointer = compiler.expression(taken)
    numbers = [arg for arg in node.args[1:] if isinstance(arg, PrimExpr) and dtypes.is_integer(arg.dtype)]
    if not numbers:
        return pointer
    offset = compiler.expression(numbers[0])

    def point(frame: Frame) -> Pointer:
        start, count = pointer(frame), offset(frame)
        return start.moved(count * start.source.data.itemsize) if count and start.source is not None else start

    return point


def _byte_offset(compiler: Compiler, node: PrimCall) -> Compiled:
    pointer, count = (compiler.expression(arg) for arg in node.args)
    return lambda frame: pointer(frame).moved(count(frame))


# Printing -----------------------------------------------------------------------------------------------------------


def _print_buffer(compiler: Compiler, node: PrimCall) -> Compiled:
    args = [argument(compiler, arg) for arg in node.args]
    labels = [_label(arg) for arg in node.args]

    def show(frame: Frame) -> int:
        values = [arg(frame) for arg in args]
        # What follows a pointer describes it (dtype, shape) and is known here already.
        if any(isinstance(value, Pointer) for value in values):
            shown = [(label, value) for label, value in zip(labels, values, strict=True) if isinstance(value, Pointer)]
        else:
            shown = list(zip(labels, values, strict=True))
        for label, value in shown:
            text = value
            if isinstance(value, Pointer):
                label = label or (value.view.name if value.view is not None else "")
                dtype = value.view.dtype if value.view is not None else "uint8"
                text = shown_values(value.array(), dtype)
            print(f"{label}: {text}" if label else text)
        return 0

    return show


def _label(arg: Any) -> str:
    while isinstance(arg, PrimCall) and arg.args:
        arg = arg.args[0]
    if isinstance(arg, BufferLoad):
        return arg.buffer.name
    return arg.name if isinstance(arg, Buffer) else ""


def shown_values(array: np.ndarray, dtype: str) -> np.ndarray:
    """An array as a person wants to see it: the values of types that NumPy lacks instead of their bits."""
    return decode(array, dtype) if dtypes.is_float(dtype) and not dtypes.is_numpy(dtype) else array


# External functions -------------------------------------------------------------------------------------------------


def missing_function(name: str, span: Any = None) -> ArgumentError:
    """The error of a call of a function that is not registered."""
    return ArgumentError(
        f"external function {name!r} is not registered",
        code="W861",
        span=span,
        hint=f"weft.register_func({name!r}, function)",
    )


def _external(compiler: Compiler, node: PrimCall) -> Compiled:
    symbol = node.args[0]
    if not isinstance(symbol, StringImm):
        raise ArgumentError(f"the first argument of T.{node.op} is the name of a function", code="W865", span=node.span)
    args = [argument(compiler, arg) for arg in node.args[1:]]
    returns = None if node.dtype in ("void", "handle") else _returned(node, symbol.value)

    def call(frame: Frame) -> Any:
        function = compiler.lookup(symbol.value)
        if function is None:
            raise missing_function(symbol.value, node.span)
        values = [arg(frame) for arg in args]
        # What an external function writes is not known, so all the memory it gets counts as written afterwards.
        pointers = [value for value in values if isinstance(value, Pointer)]
        result = hand_over(function, *(value.typed() if isinstance(value, Pointer) else value for value in values))
        for pointer in pointers:
            pointer.memory.touched = True
            pointer.memory.mark_all()
        return result if returns is None else returns(0 if result is None else result)

    return call


def _returned(node: PrimCall, name: str) -> Callable[[Any], Any]:
    """The result of an external function as a scalar of its declared dtype; ShapeError W223 for what is none."""

    def returned(value: Any) -> Any:
        plain = int(value) if isinstance(value, bool) and dtypes.is_integer(node.dtype) else value
        found = check_scalar(plain, node.dtype) if dtypes.lanes(node.dtype) == 1 else None
        if found is None:
            message = f"the result of {name!r}: expected {node.dtype}, got {described(value)}"
            raise ShapeError(message, code="W223", span=node.span)
        return found

    return returned


# Sorting ------------------------------------------------------------------------------------------------------------


def _has_intrinsic(compiler: Compiler, node: PrimCall) -> Compiled:
    """Nobody compiles for a machine here: the form that runs everywhere is meant."""
    return lambda frame: False


def _sorted_keys(compiler: Compiler, node: PrimCall) -> Compiled:
    """Sort the first keys behind a pointer; all of them is as good as one in its place."""
    keys, _, count, *_ = (compiler.expression(arg) for arg in node.args)

    def sort(frame: Frame) -> int:
        start, size = keys(frame), count(frame)
        start.array().reshape(-1)[:size].sort()
        return 0

    return sort


def _sorted_pairs(compiler: Compiler, node: PrimCall) -> Compiled:
    """Sort the first keys behind a pointer with the positions behind another."""
    keys, positions, _, _, count, *_ = (compiler.expression(arg) for arg in node.args)

    def sort(frame: Frame) -> int:
        size = count(frame)
        pair = [pointer(frame).array().reshape(-1)[:size] for pointer in (keys, positions)]
        order = np.lexsort(pair[::-1])
        for array in pair:
            array[:] = array[order]
        return 0

    return sort


def _sorted_values(compiler: Compiler, node: PrimCall) -> Compiled:
    """Sort elements behind one pointer, or their positions, into the memory behind another: stable, nan as greatest."""
    target, source, count, descending = (compiler.expression(arg) for arg in node.args)
    of_positions = node.op == "sort_positions"

    def sort(frame: Frame) -> int:
        size = count(frame)
        elements = source(frame).array().reshape(-1)[:size]
        if descending(frame):
            order = size - 1 - np.argsort(elements[::-1], kind="stable")[::-1]
        else:
            order = np.argsort(elements, kind="stable")
        _written(target(frame), order if of_positions else elements[order])
        return 0

    return sort


def _kept_keys(compiler: Compiler, node: PrimCall) -> Compiled:
    """The keys of elements behind a pointer that lie in a range, and how many lie before it."""
    target, counts, source, count, low, high, descending = (compiler.expression(arg) for arg in node.args)

    def keep(frame: Frame) -> int:
        keys = _keys_of(source(frame).array().reshape(-1)[: count(frame)], bool(descending(frame)))
        kept = keys[(keys >= low(frame)) & (keys <= high(frame))]
        _written(target(frame), kept)
        _written(counts(frame), np.array([(keys < low(frame)).sum(), len(kept), keys.max(initial=0)], "uint64"))
        return 0

    return keep


def _kept_positions(compiler: Compiler, node: PrimCall) -> Compiled:
    """The positions of elements behind a pointer that are not zero, as many as there is room for."""
    target, counts, source, count, room = (compiler.expression(arg) for arg in node.args)

    def keep(frame: Frame) -> int:
        found = np.flatnonzero(source(frame).array().reshape(-1)[: count(frame)])
        _written(target(frame), found[: room(frame)])
        _written(counts(frame), np.array([len(found)], "int64"))
        return 0

    return keep


def _keys_of(elements: np.ndarray, descending: bool) -> np.ndarray:
    """Unsigned numbers in the order of elements: one for both zeros, and the greatest for all nan."""
    width, bits = f"u{elements.itemsize}", 8 * elements.itemsize
    raw, top = elements.view(width), np.array(1 << (bits - 1), width)
    keys = raw if elements.dtype.kind == "u" else raw ^ top
    if elements.dtype.kind == "f":
        nan = np.array(np.nan, elements.dtype).view(width) | top
        keys = np.where(np.isnan(elements), nan, np.where(raw & top != 0, np.negative(raw), keys))
    return ~keys if descending else keys


def _written(to: Any, values: Any) -> None:
    """Write values behind a pointer, and note that they are."""
    to.array().reshape(-1)[: len(values)] = values
    if to.source is not None and to.source.marks is not None:
        start = to.element_offset(to.source.dtype)
        for place in range(start, start + len(values)):
            to.source.marks[place] = 1


# Profiles ------------------------------------------------------------------------------------------------------------


def _start_profile(compiler: Compiler, node: PrimCall) -> Compiled:
    number, *rest = node.args
    value, name = compiler.expression(number), rest[0].value if rest and isinstance(rest[0], StringImm) else ""
    return lambda frame: profile.start(value(frame), name)


def _end_profile(compiler: Compiler, node: PrimCall) -> Compiled:
    number = compiler.expression(node.args[0])
    return lambda frame: profile.end(number(frame))


_SPECIAL: dict[str, Callable[[Compiler, PrimCall], Compiled]] = {
    "if_then_else": _if_then_else,
    "likely": _likely,
    "assume": _assume,
    "undef": _undefined,
    "reinterpret": _reinterpret,
    "q_multiply_shift": _q_multiply_shift,
    "vectorlow": _lane_half(True),
    "vectorhigh": _lane_half(False),
    "vectorcombine": _combine,
    "get_active_lane_mask": _lane_mask,
    "address_of": _address_of,
    "access_ptr": _access_ptr,
    "tvm_access_ptr": _access_ptr,
    "handle_add_byte_offset": _byte_offset,
    "print_buffer": _print_buffer,
    "has_intrinsic": _has_intrinsic,
    "keep_keys": _kept_keys,
    "keep_positions": _kept_positions,
    "select_key": _sorted_keys,
    "select_pair": _sorted_pairs,
    "start_profile_intrinsic": _start_profile,
    "end_profile_intrinsic": _end_profile,
    "sort_keys": _sorted_keys,
    "sort_pairs": _sorted_pairs,
    "sort_positions": _sorted_values,
    "sort_values": _sorted_values,
}
