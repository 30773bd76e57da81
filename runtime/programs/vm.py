"""The executor `vm`: bytecode run instruction by instruction, kernels as machine code.

Calls of functions of the program push frames onto a stack of its own, so that neither recursion nor a loop of tail
calls depends on Python's. Hooks see every call as it ends; `profile` adds up what they say by callee.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from weft.dtypes import offered_items, presented, shares_bits, stored
from weft.errors import (
    ArgumentError,
    BoundsError,
    OutOfMemoryError,
    RecursionDepthError,
    ShapeError,
    Span,
    WeftError,
    note_call,
    note_kernel_caller,
    printable,
)
from weft.runtime.abi import types as abi
from weft.runtime.abi.closure import Closure
from weft.runtime.abi.dims import shape_text
from weft.runtime.abi.failures import span_of
from weft.runtime.abi.scalars import check_scalar, storage
from weft.runtime.abi.signature import arranged
from weft.runtime.abi.symbols import Symbols, broken_relation, converted
from weft.runtime.abi.values import ArgumentPacker, as_array, copy_into, dense
from weft.runtime.callbacks import action, outside, tensor_sizes
from weft.runtime.device.cpu import CPU
from weft.runtime.programs.bytecode import BytecodeFunction, check_program, read_functions
from weft.support.array_memory import content_bytes
from weft.support.forks import free_in_child
from weft.support.isolation import Typed, apart_from, arrays_in, isolated, map_items, refuse_nested, tuple_items
from weft.support.profile import ProfileRow, most_expensive_first, profiled
from weft.support.records import dataclass

__all__ = [
    "Closure",
    "Event",
    "VMFunction",
    "VirtualMachine",
    "adopted",
    "fresh_memory",
    "kernel_scalar",
    "machine_functions",
]

MOST_FRAMES = 200_000
_DISCARD = -1
_watching = free_in_child(threading.Lock())


@dataclass(frozen=True)
class Event:
    """One finished call: where it stands, what was called on what, what came back, how long it took in seconds.

    `kind` is kernel, packed or builtin; calls of functions of the program are seen through what they call.
    """

    function: str
    place: int
    kind: str
    name: str
    arguments: tuple[Any, ...]
    result: Any
    seconds: float


Hook = Callable[[Event], None]


class _Frame:
    __slots__ = ("code", "into", "name", "outer", "place", "registers", "result", "sizes", "symbols")

    def __init__(self, function: BytecodeFunction, into: int) -> None:
        self.name = function.signature.name
        self.code = function.code
        self.sizes = function.sizes
        self.result = function.signature.result
        self.registers: list[Any] = [None] * function.registers
        self.place = 0
        self.into = into
        self.symbols = Symbols()
        self.outer: list[Symbols] = []

    def exactly(self, size: Any) -> int:
        """The value of a size: a number, a symbol, or a register that holds one."""
        if isinstance(size, tuple):
            return self.registers[size[0]]
        return size if isinstance(size, int) else self.symbols.size(size)

    def size(self, size: Any) -> int:
        """The value of a size that 64 bits hold; OutOfMemoryError W950."""
        return self.symbols.within(self.registers[size[0]], size[1]) if isinstance(size, tuple) else self.exactly(size)

    def shape(self, sizes: Sequence[Any]) -> tuple[int, ...]:
        """The sizes of a shape; ShapeError W221 for a negative one."""
        values = tuple(map(self.size, sizes))
        for size, value in zip(sizes, values, strict=True):
            if value < 0:
                text = size[1] if isinstance(size, tuple) else size
                raise ShapeError(f"a shape has the negative size {text} = {value}", code="W221")
        return values


class VirtualMachine:
    """A program with the kernels, constants and linked functions that it calls. Threads may share one."""

    def __init__(
        self,
        program: Mapping[str, Any],
        kernels: Mapping[str, Callable[..., Any]],
        constants: Sequence[np.ndarray],
        linked: Mapping[str, Callable[..., Any]],
    ) -> None:
        check_program(program, kernels, len(constants))
        self.program = program
        self.kernels, self.constants, self.linked = kernels, constants, linked
        self.functions = read_functions(program)
        self.parameters = {name: _described(function) for name, function in self.functions.items()}
        self.hooks: tuple[Hook, ...] = ()

    @contextmanager
    def watching(self, hook: Hook) -> Iterator[None]:
        """Call a hook after each call of a kernel, a packed function or a builtin inside the `with` block."""
        with _watching:
            self.hooks = (*self.hooks, hook)
        try:
            yield
        finally:
            with _watching:
                self.hooks = tuple(item for item in self.hooks if item is not hook)

    def call(self, name: str, args: Sequence[Any]) -> Any:
        """Run a function on values that have its parameters' types already."""
        refuse_nested()
        stack = [self._frame(Closure(name), args, _DISCARD, None)]
        while True:
            frame = stack[-1]
            instruction = frame.code[frame.place]
            frame.place += 1
            kind = instruction[0]
            if kind == "call":
                self._step(frame, stack, instruction)
            elif kind == "size":
                self._compute(frame, instruction)
            elif kind == "if":
                if not _truth(self._value(frame, instruction[1])):
                    frame.place += instruction[2]
            elif kind == "goto":
                frame.place += instruction[1]
            else:
                value = self._value(frame, instruction[1])
                if frame.result is not None:
                    frame.symbols.match(value, frame.result, f"the result of {frame.name}")
                stack.pop()
                if not stack:
                    return value
                if frame.into != _DISCARD:
                    stack[-1].registers[frame.into] = value

    def _frame(self, closure: Closure, args: Sequence[Any], into: int, span: Span | None) -> _Frame:
        function = self.functions[closure.name]
        values = (*closure.fixed, *args)
        params = self.parameters[closure.name]
        if len(values) != len(params):
            message = f"{closure.name} takes {len(params)} arguments, got {len(values)}"
            raise ArgumentError(message, code="W850", span=span)
        frame = _Frame(function, into)
        frame.registers[: len(values)] = values
        frame.symbols.match_all([(value, ty, what) for value, (ty, what) in zip(values, params, strict=True)])
        for symbol, source in frame.symbols.sources.items():
            frame.symbols.sources[symbol] = source.removesuffix(f" of {closure.name}")
        return frame

    def _step(self, frame: _Frame, stack: list[_Frame], instruction: Sequence[Any]) -> None:
        _, into, (kind, name, *types), operands, span = instruction
        try:
            args = [self._value(frame, operand) for operand in operands]
            if kind == "value":
                callee = self._value(frame, name)
                if callable(callee):  # a function that the caller of the program passed in
                    kind, name, function = "packed", getattr(callee, "__name__", "a function"), isolated(callee)
                    given, ty = _typed(args, types[0]), types[1]
                    result = self._timed(frame, kind, name, args, lambda: function(*given))
                    result = result if ty is None else converted(result, ty, f"the result of {name!r}")
                    if into != _DISCARD:
                        frame.registers[into] = result
                    return
                if not isinstance(callee, Closure):
                    raise ArgumentError(f"a {type(callee).__name__} is no function", code="W851")
                if callee.name in self.kernels:
                    kind, name = "kernel", callee.name
                    args = [*callee.fixed, *args]
                else:
                    self._push(stack, self._frame(callee, args, into, None))
                    return
            if kind == "function":
                self._push(stack, self._frame(Closure(name), args, into, None))
                return
            run = {"kernel": self._kernel, "packed": self._packed, "builtin": self._builtin}[kind]
            result = self._timed(frame, kind, name, args, lambda: run(frame, name, args, operands))
            if into != _DISCARD:
                frame.registers[into] = result
        except WeftError as error:
            if kind == "kernel":
                note_kernel_caller(error, self._place(span))
            raise error.at(self._place(span)) from None
        except Exception as error:
            if kind == "kernel":
                note_kernel_caller(error, self._place(span))
            if kind == "packed":  # it is the user's function's
                note_call(error, name, self._place(span))
            raise

    @staticmethod
    def _push(stack: list[_Frame], frame: _Frame) -> None:
        if len(stack) >= MOST_FRAMES:
            raise RecursionDepthError(f"calls of {frame.name} are nested too deep", code="W951")
        stack.append(frame)

    def _timed(self, frame: _Frame, kind: str, name: str, args: list[Any], run: Callable[[], Any]) -> Any:
        hooks = self.hooks
        if not hooks:
            return run()
        place, started = frame.place - 1, time.perf_counter()
        result = run()
        event = Event(frame.name, place, kind, name, tuple(args), result, time.perf_counter() - started)
        for hook in hooks:
            hook(event)
        return result

    def _compute(self, frame: _Frame, instruction: Sequence[Any]) -> None:
        """A size out of others, exactly."""
        _, into, operation, sizes, text, span = instruction
        try:
            frame.registers[into] = operation(*map(frame.exactly, sizes))
        except ZeroDivisionError:
            error = ShapeError(f"division by zero in {text}", code="W280")
            raise error.at(self._place(span)) from None
        except WeftError as error:
            raise error.at(self._place(span)) from None

    def _place(self, span: int) -> Span | None:
        return span_of(self.program["spans"][span]) if span >= 0 else None

    # Operands

    def _value(self, frame: _Frame, operand: Sequence[Any]) -> Any:
        kind, value = operand
        if kind == "r":
            return frame.registers[value]
        if kind == "k":
            return self.constants[value]
        if kind == "d":
            return frame.size(value)
        if kind == "shape":
            return frame.shape(value)
        if kind == "t":
            return tuple(self._value(frame, item) for item in value)
        return Closure(value) if kind == "f" else value

    # Calls

    def _kernel(self, frame: _Frame, name: str, args: list[Any], operands: Sequence[Any]) -> Any:
        function = self.kernels[name]
        params = function.signature.params  # type: ignore[attr-defined]
        for index, (param, arg) in enumerate(zip(params, args, strict=False)):
            ty = param.type
            if isinstance(ty, abi.Scalar):
                args[index] = kernel_scalar(arg, ty.dtype)
            elif isinstance(ty, abi.Buffer) and ty.written and isinstance(arg, np.ndarray) and not arg.flags.writeable:
                args[index] = arg.copy()  # a constant; its variable means the copy from here on
                if index < len(operands) and operands[index][0] == "r":
                    frame.registers[operands[index][1]] = args[index]
        try:
            result = function(*args)
        except ArgumentError as error:
            message = error.message
            if error.code == "W850":  # an assertion of the kernel
                raise
            if error.code == "W852":
                message = broken_relation(params, args, frame.sizes.get(frame.place - 1, ())) or message
            raise ShapeError(message, code="W222" if error.code == "W852" else "W202") from None
        return () if result is None else result

    def _packed(self, frame: _Frame, name: str, args: list[Any], operands: Sequence[Any]) -> Any:
        """An external function; the last operands are the types of its arguments and of its result, if it has one."""
        *args, types, ty = args
        result = outside(self.linked, name)(*_typed(args, types))
        if ty is None:
            return ()
        what = f"the result of {name!r}"
        result = converted(result, ty, what)
        frame.symbols.match(result, ty, what, "W223")
        return result

    def _builtin(self, frame: _Frame, name: str, args: list[Any], operands: Sequence[Any]) -> Any:
        return _BUILTINS[name](frame, args)


def _described(function: BytecodeFunction) -> list[tuple[abi.Type, str]]:
    """The types of the parameters of a function, and what messages call the arguments."""
    signature = function.signature
    return [
        (param.type, f"argument {position} `{param.name}` of {signature.name}")
        for position, param in enumerate(signature.params, 1)
    ]


def _typed(values: Sequence[Any], types: abi.Tuple) -> list[Any]:
    """Values whose arrays say which dtype they have."""
    return [_with_dtype(value, ty) for value, ty in zip(values, types.fields, strict=True)]


def _with_dtype(value: Any, ty: abi.Type) -> Any:
    if isinstance(value, np.ndarray):
        return Typed(value, ty.dtype if isinstance(ty, abi.Tensor) else None)
    if isinstance(value, tuple) and isinstance(ty, abi.Tuple) and len(value) == len(ty.fields):
        return tuple(_typed(value, ty))
    return value  # arrays in it are asked themselves


def _truth(value: Any) -> bool:
    return bool(np.all(value))


def kernel_scalar(arg: Any, dtype: str) -> Any:
    """A scalar argument of a kernel: of a number, a tensor of rank 0 or a shape of one size."""
    if isinstance(arg, tuple) and len(arg) == 1:
        arg = arg[0]
    if isinstance(arg, np.ndarray) and arg.shape == ():
        arg = arg[()]
    if isinstance(arg, np.generic) and arg.dtype != storage(dtype):
        arg = arg.astype(storage(dtype))
    if isinstance(arg, (int, float)) and not isinstance(arg, bool) and check_scalar(arg, dtype) is None:
        arg = storage(dtype).type(arg)
    return arg


# Builtins: (frame, arguments) -> value.


def _alloc_tensor(frame: _Frame, args: list[Any]) -> np.ndarray:
    shape, dtype = args
    return fresh_memory(shape, storage(dtype))


def fresh_memory(shape: Sequence[int], kind: np.dtype[Any]) -> np.ndarray:
    """Fresh memory at a 64-byte boundary."""
    bytes_ = math.prod(shape) * kind.itemsize
    try:
        return CPU.allocate(bytes_).array(shape, kind)
    except (MemoryError, ValueError):  # more than there is, more than an array can have
        message = f"no memory for a tensor of shape {shape_text(shape)}: {bytes_} bytes"
        raise OutOfMemoryError(message, code="W950") from None


def _alloc_storage(frame: _Frame, args: list[Any]) -> np.ndarray:
    shape, dtype = args
    return fresh_memory(shape if isinstance(shape, tuple) else (shape,), storage(dtype))


def _view(frame: _Frame, args: list[Any]) -> np.ndarray:
    """Bytes of a tensor, from an offset on, as a tensor; BoundsError W903 when it does not fit."""
    data, offset, shape, dtype = args
    kind = data.dtype if dtype is None else storage(dtype)
    shape = data.shape if shape is None else shape
    end = offset + int(np.prod(shape, dtype=object)) * kind.itemsize
    if offset < 0 or end > data.nbytes:
        raise BoundsError(f"a tensor that ends at byte {end} does not fit in a storage of {data.nbytes}", code="W903")
    return content_bytes(data)[offset:end].view(kind).reshape(shape)


def _kill(frame: _Frame, args: list[Any]) -> Any:
    for register in args:
        frame.registers[register] = None
    return ()


def _print(frame: _Frame, args: list[Any]) -> Any:
    template, *values, types = args
    action({"name": "weft.print_format", "format": template})(*_typed(values, types))
    return ()


def _assert(frame: _Frame, args: list[Any]) -> Any:
    condition, template, *values, types = args
    if not _truth(condition):
        action({"name": "weft.assert", "format": template})(*_typed(values, types))
    return ()


def _match(frame: _Frame, args: list[Any]) -> Any:
    value, ty, what = args
    value = _as_stored(value, ty)
    frame.symbols.match(value, ty, what)
    return value


def _as_stored(value: Any, ty: abi.Type) -> Any:
    """A value whose type was not known, as the program holds one of the type."""
    if isinstance(value, np.ndarray):
        return value if not isinstance(ty, abi.Tensor) or ty.dtype is None else stored(value, ty.dtype)
    if isinstance(ty, abi.Tuple) and isinstance(value, tuple) and len(value) == len(ty.fields):
        return tuple(map(_as_stored, value, ty.fields))
    return value


def _enter(frame: _Frame, args: list[Any]) -> Any:
    frame.outer.append(frame.symbols)
    frame.symbols = Symbols(frame.symbols.values, frame.symbols.sources)
    return ()


def _leave(frame: _Frame, args: list[Any]) -> Any:
    frame.symbols = frame.outer.pop()
    return ()


def _range(frame: _Frame, args: list[Any]) -> range:
    start, stop, step = (int(value) for value in args)
    if step == 0:
        raise ArgumentError("the step of a loop is 0", code="W868")
    return range(start, stop, step)


def _set_row(frame: _Frame, args: list[Any]) -> Any:
    """Store what an iteration gave in its row; the place counts the iterations that began."""
    rows, place, value = args
    rows[place - 1] = value
    return ()


def _make_closure(frame: _Frame, args: list[Any]) -> Closure:
    function, fixed = args
    return Closure(function.name, (*function.fixed, *fixed))


_BUILTINS: dict[str, Callable[[_Frame, list[Any]], Any]] = {
    "alloc_tensor": _alloc_tensor,
    "alloc_storage": _alloc_storage,
    "tensor_in_storage": _view,
    "view": _view,
    "kill": _kill,
    "same": lambda frame, args: args[0],
    "null": lambda frame, args: None,
    "shape_of": lambda frame, args: tuple(args[0].shape),
    "tensor_to_shape": lambda frame, args: tensor_sizes(args[0]),
    "shape_to_tensor": lambda frame, args: np.array(args[0], np.int64),
    "print": _print,
    "assert": _assert,
    "make_closure": _make_closure,
    "range": _range,
    "more": lambda frame, args: args[1] < len(args[0]),
    "index": lambda frame, args: args[0][args[1]],
    "set_row": _set_row,
    "increment": lambda frame, args: args[0] + 1,
    "match": _match,
    "item": lambda frame, args: args[0][args[1]],
    "enter": _enter,
    "leave": _leave,
}


class VMFunction:
    """A function of a program of bytecode, called like a compiled one.

    Raises: what `weft.runtime.executable.CompiledFunction` raises.
    """

    def __init__(self, machine: VirtualMachine, signature: abi.Signature) -> None:
        self.machine = machine
        self.signature = signature
        self.name = signature.name

    def __repr__(self) -> str:
        names = ", ".join(param.name for param in self.signature.params)
        return printable(f"<bytecode function {self.name}({names})>")

    def __call__(self, /, *args: Any, out: Any = None, **named: Any) -> Any:
        """Run on arrays."""
        given = arranged(self.signature, args, named)
        values, copies = adopted(self.name, self.signature.params, given)
        value = self.machine.call(self.name, values)
        for array, copy in copies:
            array[...] = copy
        value = _shown(apart_from(value, [*arrays_in(values), *self.machine.constants]), self.signature.result)
        return value if out is None else copy_into(out, value, "out", self.name)

    def watching(self, hook: Hook) -> Any:
        """A context in which a hook sees every call that the program makes."""
        return self.machine.watching(hook)

    def profile(self, *args: Any) -> list[ProfileRow]:
        """Run once and say what each callee took, and each loop that says so, the most expensive first."""
        rows: dict[tuple[str, str], list[float]] = {}

        def note(event: Event) -> None:
            rows.setdefault((event.kind, event.name), []).append(event.seconds)

        with self.machine.watching(note):
            loops = profiled(lambda: self(*args))
        callees = [ProfileRow(kind, name, len(times), sum(times)) for (kind, name), times in rows.items()]
        return most_expensive_first([*callees, *loops])


def adopted(
    name: str, params: Sequence[abi.Parameter], args: Sequence[Any]
) -> tuple[list[Any], list[tuple[np.ndarray, np.ndarray]]]:
    """The arguments in the form that programs use, checked; and what has to be copied back."""
    packer = ArgumentPacker(name)
    position = 0
    try:
        for position, (param, value) in enumerate(zip(params, args, strict=True)):
            packer.pack(param.type, value, position + 1, param.name)
        packer.binder.solve()
    except ArgumentError as error:
        wrong = packer.binder.refused or position + 1
        raise error.at(span_of(params[wrong - 1].span)) from None
    copies: list[tuple[np.ndarray, np.ndarray]] = []
    return [_adopt(value, param.type, copies) for param, value in zip(params, args, strict=True)], copies


def _adopt(value: Any, ty: abi.Type, copies: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    if isinstance(ty, abi.Tensor):
        given = as_array(value)
        assert given is not None  # the packer took it
        target = given
        if ty.dtype is not None:
            given = stored(given, ty.dtype)
            target = given if shares_bits(ty.dtype) else target
        array = np.array(given, order="C", copy=True) if ty.use == "copied" else dense(given)
        if ty.use == "written" and array is not target:
            copies.append((target, array))
        return array
    if isinstance(ty, abi.Tuple):
        items = offered_items(value) or ()
        return tuple(_adopt(item, field, copies) for item, field in zip(items, ty.fields, strict=True))
    if isinstance(ty, abi.Shape):
        return tuple(int(item) for item in offered_items(value) or ())
    return check_scalar(value, ty.dtype) if isinstance(ty, abi.Scalar) and ty.dtype != "handle" else value


def _shown(value: Any, ty: abi.Type | None) -> Any:
    """A result as callers get it: arrays of types that NumPy lacks are those of `ml_dtypes`."""
    if isinstance(ty, abi.Tuple) and isinstance(value, tuple):
        return tuple(map(_shown, value, ty.fields))
    dtype = ty.dtype if isinstance(ty, abi.Tensor) else None
    return map_items(  # tuples are of a type that says nothing of their items
        value, tuple_items, lambda item: presented(item, dtype) if isinstance(item, np.ndarray) else item
    )


def machine_functions(
    program: Mapping[str, Any], constants: Sequence[np.ndarray], kernels: Mapping[str, Any], linked: Mapping[str, Any]
) -> dict[str, VMFunction]:
    """The functions of a program by name, run by one machine."""
    machine = VirtualMachine(program, kernels, constants, linked)
    return {name: VMFunction(machine, function.signature) for name, function in machine.functions.items()}
