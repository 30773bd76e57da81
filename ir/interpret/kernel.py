"""A PrimFunc ready to run: parameters bound and checked, outputs watched.

    argument ::= NumPy array (buffers, handles) | number (scalars) | Pointer

Buffers of the caller are used in place when they are dense; others are copied in, and out again when the function may
write them. Errors: W850 number of arguments, W851 dtype or kind, W852 shape or rank, W853 read-only output; W902 an
output that is not wholly written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft import dtypes
from weft.errors import ArgumentError, BoundsError, OutOfMemoryError, RecursionDepthError, Span, WeftError
from weft.ir.dim import Dim
from weft.ir.graph import Function
from weft.ir.interpret.closures.allocations import view_maker
from weft.ir.interpret.closures.compiled import Frame, Lookup, Returned
from weft.ir.interpret.closures.statements import StatementCompiler
from weft.ir.interpret.memory import Memory, Pointer, View, compact_strides
from weft.ir.interpret.scalars import check_scalar
from weft.ir.interpret.symbols import SymbolTable, shape_text
from weft.ir.kernel.prim_dim import kernel_signature, symbol_names
from weft.ir.structure.malformed import FAILURES
from weft.ir.structure.recursion import nesting, room_of
from weft.ir.structure.visit import nodes_of, walk
from weft.ir.tensor import (
    Block,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    MatchBufferRegion,
    PrimCall,
    PrimFunc,
    PrimVar,
)
from weft.ir.types import TensorType
from weft.ir.verify import fault_of
from weft.support.dlpack import offered_array
from weft.support.guards import is_array
from weft.support.isolation import raised_outside
from weft.support.profile import Profiled
from weft.support.records import dataclass

__all__ = ["Caller", "Kernel", "in_order", "quiet_room", "too_deep", "written_buffers"]


@dataclass(frozen=True)
class Caller:
    """How a call names itself in errors: the class to raise and what its arguments are called.

    `outputs` are the positions of parameters that hold nothing yet and must be wholly written; None finds them out:
    what is written and was not read before. `partial` has the memory of arguments that are watched already.
    """

    error: type[WeftError] = ArgumentError
    what: str = "argument"
    span: Span | None = None
    outputs: Collection[int] | None = None
    partial: dict[int, Memory] | None = None


@contextmanager
def quiet_room(levels: int) -> Generator[None]:
    """Room for expressions of a nesting, whose closures call each other; floating-point warnings off."""
    with room_of(levels), np.errstate(all="ignore"):
        yield


def written_buffers(function: PrimFunc) -> dict[Buffer, bool]:
    """The parameter buffers that the body may write; True where a store names them, else their address escapes.

    An address that only buffers have as their memory does not escape: stores to these are stores to what they view.
    """
    behind: dict[Buffer, Buffer] = {}
    found: dict[Buffer, bool] = {}
    viewed = _only_viewed(function)
    for node in nodes_of(function, Block, MatchBufferRegion, Buffer, BufferStore, PrimCall):
        if isinstance(node, Block):
            for match in node.match_buffers:
                behind[match.buffer] = match.source.buffer
            for buffer in node.alloc_buffers:
                _follow(buffer, behind)
        elif isinstance(node, MatchBufferRegion):
            behind[node.buffer] = node.source.buffer
        elif isinstance(node, Buffer):
            _follow(node, behind)
        elif isinstance(node, BufferStore):
            found[node.buffer] = True
        elif id(node) not in viewed:
            for arg in node.args:
                if isinstance(arg, Buffer):
                    found.setdefault(arg, False)
                elif isinstance(arg, BufferLoad) and node.op == "address_of":
                    found.setdefault(arg.buffer, False)
    result: dict[Buffer, bool] = {}
    for buffer, stored in found.items():
        while buffer in behind:
            buffer = behind[buffer]
        result[buffer] = result.get(buffer, False) or stored
    return {param: result[param] for param in function.params if isinstance(param, Buffer) and param in result}


def _only_viewed(function: PrimFunc) -> set[int]:
    """The addresses (`id`) that stand nowhere but as the memory of declared buffers: a walk meets them there alone."""
    views = Counter(id(item.buffer.data) for item in nodes_of(function, DeclBuffer))
    taken = Counter(id(call) for call in nodes_of(function, PrimCall) if call.op == "address_of")
    return {place for place, count in views.items() if taken[place] == count}


def _follow(buffer: Buffer, behind: dict[Buffer, Buffer]) -> None:
    """Remember whose memory a view shares, where its pointer says so directly."""
    if buffer.data is None:
        return
    for node in walk(buffer.data):
        if isinstance(node, BufferLoad):
            behind[buffer] = node.buffer
        elif isinstance(node, Buffer) and node is not buffer:
            behind[buffer] = node


def in_order(function: PrimFunc | Function, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments by position and name in the order of the parameters; ArgumentError W850 when they do not fit."""
    names = [param.name for param in function.params]
    takes = f"{function.name} takes {len(names)} arguments ({', '.join(names)})"
    given = dict(zip(names, args, strict=False))
    for name in named:
        if name not in names or name in given:
            wrong = "got two values for" if name in given else "has no parameter"
            message = f"{function.name} {wrong} {name!r}"
            raise ArgumentError(message, code="W850", span=function.span, notes=[takes])
    given.update(named)
    missing = [name for name in names if name not in given]
    if missing or len(args) > len(names):
        raise ArgumentError(f"{takes}, got {len(args) + len(named)}", code="W850", span=function.span)
    return [given[name] for name in names]


def too_deep(function: PrimFunc) -> RecursionDepthError:
    """The error for a kernel whose expressions or calls nest deeper than there is stack for."""
    return RecursionDepthError(
        f"{function.name} is nested too deeply to be interpreted",
        code="W951",
        span=function.span,
        hint="bind parts of long expressions to variables",
    )


class Kernel(Profiled):
    """A compiled PrimFunc."""

    def __init__(self, function: PrimFunc, call_kernel: Callable[..., Any], lookup: Lookup) -> None:
        _refuse_vectors(function)
        self.function = function
        self.written = written_buffers(function)
        self.signature = kernel_signature(function)
        self.names = symbol_names(function)
        self.compiler = StatementCompiler(call_kernel, lookup, _mark_unit(function))
        self.levels = nesting(function)
        with quiet_room(self.levels):
            self.slots = [self.compiler.slot(param) for param in function.params]
            for node in _layout_symbols(function):
                self.compiler.slot(node)
            self.symbol_slots = [(self.compiler.slot(variable), name) for variable, name in self.names.items()]
            self.makers = [view_maker(self.compiler, p) if isinstance(p, Buffer) else None for p in function.params]
            self.body = self.compiler.statement(function.body)

    def output_positions(self) -> list[int]:
        """The positions of the parameters that stores write."""
        return [i for i, p in enumerate(self.function.params) if isinstance(p, Buffer) and self.written.get(p)]

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Run on arrays given by a user, by position or name; outputs are written in place."""
        given = in_order(self.function, args, named) if named else args
        plain = len(given) != len(self.function.params) or all(type(arg) is not np.ndarray for arg in given)
        try:
            return self.run(given, Caller()) if plain else self._run_stored(given)
        except RecursionError as error:
            if raised_outside(error):
                raise
            raise too_deep(self.function) from None
        except FAILURES as error:
            raise fault_of(self.function) or error from error.__cause__

    def _run_stored(self, given: Sequence[Any]) -> Any:
        """Run on arrays, those of `ml_dtypes` as their bits."""
        params = self.function.params
        raw = [
            dtypes.stored(arg, param.dtype) if is_array(arg) and isinstance(param, Buffer) else arg
            for arg, param in zip(given, params, strict=True)
        ]
        result = self.run(raw, Caller())
        for param, arg, own in zip(params, given, raw, strict=True):
            if own is not arg and isinstance(param, Buffer) and param in self.written and arg.flags.writeable:
                if not dtypes.shares_bits(param.dtype):
                    arg[...] = own
        return result

    def run(self, args: Sequence[Any], caller: Caller) -> Any:
        """Bind, run, check what was written, copy out; the value of the return statement if any."""
        params = self.function.params
        if len(args) != len(params):
            names = ", ".join(param.name for param in params)
            raise caller.error(
                f"{self.function.name} takes {len(params)} arguments ({names}), got {len(args)}",
                code="W850",
                span=caller.span,
            )
        frame = self.compiler.frame()
        symbols = SymbolTable()
        arrays = [self._accept(i, arg, caller) for i, arg in enumerate(args)]
        self._match(arrays, symbols, caller)
        for slot, name in self.symbol_slots:
            frame[slot] = symbols.values.get(name)
        apart = () if caller.outputs else self._overlapped(arrays)
        memories: list[tuple[int, Memory, View]] = []
        copies: list[tuple[np.ndarray, View]] = []
        for i, value in enumerate(arrays):
            param = params[i]
            if isinstance(param, Buffer):
                view, copied = self._view(frame, i, value, caller, apart=i in apart)
                frame[self.slots[i]] = view
                memories.append((i, view.memory, view))
                if copied is not None:
                    copies.append((copied, view))
            else:
                frame[self.slots[i]] = value
        with quiet_room(self.levels):
            signal = self.body(frame)
        for position, memory, view in memories:
            self._check_written(position, memory, view, caller)
        for array, view in copies:
            array[...] = view.array()
        return signal.value if isinstance(signal, Returned) else None

    # Accepting arguments

    def _place(self, position: int, caller: Caller) -> str:
        return f"{caller.what} {position + 1}"

    def _refuse(self, position: int, expected: str, got: str, caller: Caller, code: str, why: str = "") -> WeftError:
        name = self.function.params[position].name
        message = f"{self._place(position, caller)} `{name}` of {self.function.name}: expected {expected}, got {got}"
        return caller.error(message + (f"; {why}" if why else ""), code=code, span=caller.span)

    def _accept(self, position: int, value: Any, caller: Caller) -> Any:
        param = self.function.params[position]
        if isinstance(param, PrimVar):
            return self._accept_scalar(position, param, value, caller)
        expected = f"{param.dtype}[{shape_text(self._dims(position))}]"
        if isinstance(value, Pointer):
            return value
        if type(value) is not np.ndarray:
            value = _as_array(value)
            if value is None:
                raise self._refuse(position, expected, "no array", caller, "W851")
        if value.dtype != dtypes.storage(param.dtype) or value.ndim != param.ndim:
            got = f"{value.dtype}[{shape_text(value.shape)}]"
            code = "W851" if value.dtype != dtypes.storage(param.dtype) else "W852"
            raise self._refuse(position, expected, got, caller, code)
        if self.written.get(param) and not value.flags.writeable:
            raise self._refuse(position, "an array that can be written", "a read-only one", caller, "W853")
        return value

    def _accept_scalar(self, position: int, param: PrimVar, value: Any, caller: Caller) -> Any:
        if param.dtype == "handle":
            if is_array(value):
                if caller.outputs is not None and not value.flags.writeable:
                    value = np.array(value, order="C")  # an input in a graph function, which stays what it is
                value = np.asarray(value)
                if value.dtype.hasobject or not value.flags.c_contiguous or not value.flags.writeable:
                    raise self._refuse(position, "an array of numbers in a row", "another one", caller, "W852")
                memory = Memory.of_array(value, 1, written=True, strict=False, name=param.name)
                return Pointer(memory, 0, View(memory, value.dtype.name, value.shape, None, 0, param.name))
            return value
        number = check_scalar(value, param.dtype)
        if number is None:
            raise self._refuse(position, param.dtype, f"{type(value).__name__} {value!r}", caller, "W851")
        return number

    def _dims(self, position: int) -> tuple[Dim, ...]:
        ty = self.signature[position]
        return (ty.dims or ()) if isinstance(ty, TensorType) else ()

    def _match(self, arrays: list[Any], symbols: SymbolTable, caller: Caller) -> None:
        """Give symbols their values and compare every shape with its parameter."""
        shaped: list[tuple[int, tuple[int, ...]]] = []
        for i, (param, value) in enumerate(zip(self.function.params, arrays, strict=True)):
            if isinstance(param, PrimVar):
                if isinstance(value, int) and not isinstance(value, bool):
                    symbols.set(self.names[param], value, self._place(i, caller))
            elif is_array(value):
                shaped.append((i, value.shape))
            elif value.view is not None:
                shaped.append((i, value.view.shape))
        for i, shape in shaped:
            symbols.bind(self._dims(i), shape, self._place(i, caller))
        while any(symbols.solve(self._dims(i), shape, self._place(i, caller)) for i, shape in shaped):
            pass
        for i, shape in shaped:
            # A pointer may stand for a part of its buffer, seen in another shape.
            if not isinstance(arrays[i], Pointer) and not symbols.agrees(self._dims(i), shape):
                dims, dtype = self._dims(i), self.function.params[i].dtype
                raise self._refuse(
                    i,
                    f"{dtype}[{shape_text(dims)}]",
                    f"{dtype}[{shape_text(shape)}]",
                    caller,
                    "W852",
                    symbols.explain(dims),
                )

    def _overlapped(self, arrays: Sequence[Any]) -> set[int]:
        """The positions of written arrays that overlap others: they are copied, as for compiled code."""
        given = [(i, array) for i, array in enumerate(arrays) if is_array(array)]
        return {
            i
            for i, array in given
            if self.function.params[i] in self.written
            and any(j != i and np.may_share_memory(array, other) for j, other in given)
        }

    def _view(
        self, frame: Frame, position: int, value: Any, caller: Caller, *, apart: bool = False
    ) -> tuple[View, np.ndarray | None]:
        """The view of an argument, and the caller's array when the view is of a copy that must be copied back."""
        param = self.function.params[position]
        assert isinstance(param, Buffer)
        shape = value.shape if is_array(value) else value.view.shape if value.view is not None else ()
        self._bind_layout(frame, param, shape)
        make = self.makers[position]
        assert make is not None
        sizes, strides, offset = make(frame)
        if isinstance(value, Pointer):
            start = value.element_offset(param.dtype) + offset
            view = View(value.memory, param.dtype, sizes, strides, start, param.name)
            value.check_holds(view)
            return view, None
        fresh = position in (caller.outputs or ())
        known = None if caller.partial is None else caller.partial.get(position)
        if known is not None:
            return View(known, param.dtype, sizes, strides, offset, param.name), None
        may_write = param in self.written
        plain = (strides is None or strides == compact_strides(sizes)) and offset == 0
        in_place = plain and not apart and value.flags.c_contiguous and (value.flags.writeable or not may_write)
        unit = self.compiler.unit_of(param.dtype)
        if in_place:
            memory = Memory.of_array(value, unit, written=not may_write, strict=fresh, name=param.name)
            return View(memory, param.dtype, sizes, strides, offset, param.name), None
        steps = compact_strides(sizes) if strides is None else strides
        count = offset + 1 + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True)) if 0 not in sizes else 0
        memory = Memory(
            _fresh_bytes(count * dtypes.storage(param.dtype).itemsize, param),
            unit,
            written=not may_write,
            strict=fresh,
            name=param.name,
        )
        view = View(memory, param.dtype, sizes, strides, offset, param.name)
        if count:
            view.array()[...] = value
        return view, value if may_write and value.flags.writeable and count else None

    def _bind_layout(self, frame: Frame, param: Buffer, shape: Sequence[int]) -> None:
        """Symbols that only strides or the offset name: arguments are laid out densely at offset 0."""
        if param.elem_offset is not None and isinstance(param.elem_offset, PrimVar):
            slot = self.compiler.slot(param.elem_offset)
            frame[slot] = 0 if frame[slot] is None else frame[slot]
        for stride, step in zip(param.strides or (), compact_strides(shape), strict=False):
            if isinstance(stride, PrimVar):
                slot = self.compiler.slot(stride)
                frame[slot] = step if frame[slot] is None else frame[slot]

    def _check_written(self, position: int, memory: Memory, view: View, caller: Caller) -> None:
        """W902 for an output with an element that no store reached.

        A parameter of a direct call is an output when it was written and none of its elements was read before.
        """
        expected = memory.touched and not memory.read_first if caller.outputs is None else position in caller.outputs
        if isinstance(self.function.params[position], PrimVar) or not expected or memory.marks is None:
            return
        if caller.partial is not None and position in caller.partial:
            return
        index = view.unwritten_index()
        if index is not None:
            raise BoundsError(
                f"output `{view.name}` of {self.function.name} is not written at {shape_text(index)}",
                code="W902",
                span=caller.span or self.function.span,
                hint="every element of an output must be stored",
            )


def _fresh_bytes(size: int, param: Buffer) -> np.ndarray:
    try:
        return np.zeros(size, np.uint8)
    except (MemoryError, ValueError):  # more than there is, more than an array can have
        message = f"no memory for the buffer {param.name}: {size} bytes"
        raise OutOfMemoryError(message, code="W950", span=param.span) from None


def _refuse_vectors(function: PrimFunc) -> None:
    """W864 for a buffer of vectors."""
    for node in walk(function):
        if isinstance(node, Buffer) and dtypes.lanes(node.dtype) != 1:
            raise ArgumentError(
                f"the buffer {node.name!r} is one of vectors, which has no meaning in the interpreter: {node.dtype}",
                code="W864",
                span=node.span,
                hint="give a buffer of scalars one more dimension",
            )


def _layout_symbols(function: PrimFunc) -> Generator[PrimVar]:
    """The variables in the shapes, strides and offsets of parameters: the call binds them."""
    for param in function.params:
        if isinstance(param, Buffer):
            yield from (node for node in walk(param) if isinstance(node, PrimVar))


def _mark_unit(function: PrimFunc) -> int:
    """Marks are per byte (1) when buffers of several widths may share memory, else per element (0)."""
    buffers = [*function.params, *(node for node in walk(function.body) if isinstance(node, Buffer))]
    buffers.extend(node.buffer for node in walk(function.body) if isinstance(node, (BufferLoad, BufferStore)))
    shared = any(isinstance(b, Buffer) and b.data is not None for b in buffers)
    calls = any(isinstance(node, PrimCall) and node.op == "address_of" for node in walk(function.body))
    widths = {dtypes.item_bytes(b.dtype) for b in buffers if isinstance(b, Buffer)}
    return 1 if (shared or calls or _takes_handles(function)) and len(widths) > 1 else 0


def _takes_handles(function: PrimFunc) -> bool:
    return any(isinstance(p, PrimVar) and p.dtype == "handle" for p in function.params)


def _as_array(value: Any) -> np.ndarray | None:
    """An array of anything that offers one without a change of dtype."""
    return offered_array(value)
