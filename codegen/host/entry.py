"""Straight-line programs: a host function as a list of steps, with a place for every tensor planned ahead.

    entry ::= inputs, constants, outputs, steps (kernels and external functions), copies, bytes of the arena
    place ::= a number of an input, constant or output | an offset in bytes into the arena

The executors `graph` and `aot`, and object code for C, are written from it. Functions must be straight-line, of sizes
that are known or bounded (attribute `tir_var_upper_bound`).

Errors: TargetError W741 a construct that cannot stand in such a function, W745 a size neither known nor bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from weft import dtypes
from weft.codegen.host import program as host
from weft.codegen.host.kernels import shared_positions, written_positions
from weft.codegen.host.read import read_function
from weft.codegen.host.relations import relations
from weft.errors import Span, TargetError, VerifyError
from weft.ir.deduction.subtyping import dims_of, match_types, type_text
from weft.ir.dim import Dim, DimExpr, free_symbols, operation, product, prove_equal, prove_le, substitute, symbol
from weft.ir.dim.upper_bounds import upper_bounds
from weft.ir.graph import Constant, Function, Var
from weft.ir.kernel.prim_dim import kernel_signature, symbol_names
from weft.ir.module import IRModule
from weft.ir.tensor import PrimFunc, PrimVar
from weft.ir.types import ShapeType, TensorType, TupleType, Type
from weft.support.array_memory import ALIGNMENT
from weft.support.records import dataclass
from weft.transform.graph.bind_symbolic_vars import how_to_bind
from weft.transform.memory.plan_memory import bounds_of

_EVERYTHING = 'executor="native" and executor="vm" can'

__all__ = ["Entry", "Place", "Scalar", "Step", "element_width", "only_entry", "read_entry"]


@dataclass(frozen=True)
class Place:
    """Where a tensor lives: the number of an input, constant or output, or an offset in bytes into the arena."""

    kind: str
    index: int
    shape: tuple[Dim, ...]
    dtype: str
    offset: Dim = 0


@dataclass(frozen=True)
class Scalar:
    """A number that a step takes."""

    value: Dim | float | bool
    dtype: str


@dataclass(frozen=True)
class Step:
    """A call of a kernel of the module, or of an external function, which writes into its last arguments.

    Of kind "check": two sizes that must be equal; the name says which.
    """

    kind: str
    name: str
    arguments: tuple[Place | Scalar, ...]
    span: Span | None = None


@dataclass
class Entry:
    """A straight-line program: tensors, steps in order, copies into outputs at the end, bytes of the arena."""

    name: str
    function: Function
    inputs: list[Place] = field(default_factory=list)
    outputs: list[Place] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    copies: list[tuple[Place, Place]] = field(default_factory=list)
    arena: Dim = 0
    bounds: Mapping[str, int] = field(default_factory=dict)

    @property
    def symbols(self) -> list[str]:
        """The symbols of the inputs, in order."""
        return list(dict.fromkeys(name for place in self.inputs for dim in place.shape for name in _symbols(dim)))

    def arena_bytes(self) -> int:
        """The bytes of arena that suffice for every size; TargetError W745 when a size is not bounded."""
        return self.bytes_at_most(self.arena)

    def bytes_at_most(self, dim: Dim) -> int:
        """The greatest value of a number of bytes."""
        missing = [name for name in _symbols(dim) if name not in self.bounds]
        if missing or not _grows(dim):
            what = f"the size {missing[0]} is" if missing else f"the bytes {dim} are"
            name = (missing or _symbols(dim))[0]
            raise TargetError(
                f"{what} neither known nor bounded in {self.name}",
                code="W745",
                span=self.function.span,
                hint=f"bind it: {how_to_bind(name)}; or state a bound:"
                f' R.func_attr({{"tir_var_upper_bound": {{"{name}": 64}}}}); {_EVERYTHING}',
            )
        most = substitute(dim, self.bounds) if isinstance(dim, DimExpr) else dim
        assert isinstance(most, int)
        return most


def _symbols(dim: Dim) -> tuple[str, ...]:
    return tuple(free_symbols(dim)) if isinstance(dim, DimExpr) else ()


def _grows(dim: Dim) -> bool:
    """Whether a dimension never decreases when a symbol increases."""
    kind, operands = operation(dim)
    if kind in ("constant", "symbol"):
        return kind == "symbol" or operands[0] >= 0
    if kind == "floordiv":
        return isinstance(operands[1], int) and operands[1] > 0 and _grows(operands[0])
    if kind == "add":
        return all(isinstance(item, int) or _grows(item) for item in operands)
    if kind == "pow":
        return _grows(operands[0])
    return kind in ("mul", "max", "min") and all(map(_grows, operands))


def only_entry(module: IRModule) -> Entry | None:
    """The program of the one public graph function, None when there is none; TargetError W739 for several."""
    public = {name: item for name, item in module.items() if isinstance(item, Function) and not item.private}
    if len(public) > 1:
        raise TargetError(
            f"one entry can be compiled ahead, the module has {', '.join(public)}",
            code="W739",
            span=[*public.values()][1].span,
            hint="make the others private (@R.function(private=True)), or compile them one by one",
        )
    return read_entry(module, *public) if public else None


def read_entry(module: IRModule, name: str = "main") -> Entry:
    """The program of a graph function; errors as above."""
    function = module[name]
    if not isinstance(function, Function):
        raise TargetError(f"{name!r} is no graph function", code="W741", span=function.span)
    return _Reader(read_function(name, function, module.functions), module).read()


def _refused(what: str, span: Span | None, hint: str | None = None) -> TargetError:
    return TargetError(
        f"{what} cannot stand in a straight-line program", code="W741", span=span, hint=hint or _EVERYTHING
    )


def _check_memory(
    kernel: PrimFunc, arguments: Sequence[Place | Scalar], functions: Mapping[str, Any], span: Span | None
) -> None:
    """Refuse a kernel that reads a tensor while it writes it, unless that is known to do no harm."""
    shared = shared_positions(kernel)
    for i in written_positions(kernel, functions):
        for j, other in enumerate(arguments):
            item = arguments[i]
            if isinstance(item, Place) and isinstance(other, Place) and j != i and j not in shared.get(i, ()):
                same = (item.kind, item.index, item.offset) == (other.kind, other.index, other.offset)
                if same and 0 not in (*item.shape, *other.shape):
                    raise _refused(f"a call of {kernel.name} on one tensor that it reads and writes", span)


class _Reader:
    """Reads one function; `values` are those of variables: places, tuples as tuples, else operands."""

    def __init__(self, function: host.HostFunction, module: IRModule) -> None:
        self.function, self.module = function, module
        self.entry = Entry(function.name, function.source, bounds=upper_bounds(function.source))
        self.facts = bounds_of(function.source)
        self.values: dict[Var, Any] = {}
        self.constants: dict[int, int] = {}
        self.results: dict[Var, int] = {}

    def read(self) -> Entry:
        entry, function = self.entry, self.function
        for index, param in enumerate(function.params):
            shape, dtype = self.tensor(param.ty, param)
            place = Place("input", index, shape, dtype)
            entry.inputs.append(place)
            self.values[param] = place
        self.find_results(function.body)
        for step in function.body.steps:
            if (refusal := _REFUSED.get(type(step))) is not None:
                raise refusal(step)
            _STEPS[type(step)](self, step)
        declared, given = _fields(function.source.ret_type), self.flat(self.value(function.body.result))
        if len(declared) != len(given):
            raise _refused("a result whose type does not say which tensors it holds", function.body.span)
        for index, value in enumerate(given):
            if isinstance(value, host.Number):  # a tensor of rank 0: there are no other results
                held = np.array(value.value, dtypes.array_dtype(value.dtype))
                value = Constant(dtypes.stored(held, value.dtype), value.dtype)
            place = self.place(value, function.body.span)
            self.check_type(declared[index], place, f"the result of {entry.name}", function.body.span)
            wanted = Place("output", index, place.shape, place.dtype)
            entry.outputs.append(wanted)
            if place != wanted:
                entry.copies.append((place, wanted))
        return entry

    def find_results(self, body: host.Body) -> None:
        """Tensors of their own that are returned live in the caller's memory from the start."""
        steps = {step.into: step for step in body.steps if isinstance(step, (host.Alloc, host.Bind, host.Match))}
        index = 0

        def visit(operand: host.Operand) -> None:
            nonlocal index
            while isinstance(operand, Var) and isinstance(made := steps.get(operand), (host.Bind, host.Match)):
                operand = made.value
            if isinstance(operand, host.Group):
                for item in operand.fields:
                    visit(item)
                return
            made = steps.get(operand) if isinstance(operand, Var) else None
            if isinstance(made, host.Alloc) and not made.block:
                self.results.setdefault(made.into, index)
            index += 1

        visit(body.result)

    def tensor(self, ty: Any, var: Var) -> tuple[tuple[Dim, ...], str]:
        if not isinstance(ty, TensorType) or ty.dims is None or ty.dtype is None:
            raise _refused(f"{var.name!r}, which is no tensor of known rank and dtype,", var.span)
        return tuple(ty.dims), ty.dtype

    # Steps

    def alloc(self, step: host.Alloc) -> None:
        if step.block:
            sizes = self.shape(self.value(step.shape), step.span)
            room = product(sizes) * element_width(step.dtype)
            self.values[step.into] = Place("arena", 0, (room,), "uint8", self.reserve(room))
            return
        shape, dtype = self.tensor(step.into.ty, step.into)
        if step.into in self.results:
            self.values[step.into] = Place("output", self.results[step.into], shape, dtype)
        else:
            offset = self.reserve(product(shape) * element_width(dtype))
            self.values[step.into] = Place("arena", 0, shape, dtype, offset)

    def reserve(self, size: Dim) -> Dim:
        """Room at the end of the arena; gives its offset."""
        offset = self.entry.arena
        self.entry.arena = offset + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
        return offset

    def view(self, step: host.View) -> None:
        data = self.place(self.value(step.source), step.span)
        shape = data.shape if step.shape is None else self.shape(self.value(step.shape), step.span)
        offset = self.value(step.offset)
        at = offset.dim if isinstance(offset, host.Size) else getattr(offset, "value", None)
        if isinstance(at, (bool, float)) or not isinstance(at, (int, DimExpr)):
            raise _refused("an offset that only the values decide", step.span)
        width = element_width(step.dtype or data.dtype)
        end, room = at + product(shape) * width, product(data.shape) * element_width(data.dtype)
        inside = prove_le(end, room, self.facts) is True and prove_le(0, at, self.facts) is True
        if not inside or prove_equal((data.offset + at) % width, 0) is not True:
            message = f"{step.into.name!r} is not proved to lie in its memory: bytes {at} to {end} of {room}"
            raise VerifyError(message, code="W438", span=step.span)
        self.values[step.into] = Place(data.kind, data.index, shape, step.dtype or data.dtype, data.offset + at)

    def launch(self, step: host.Launch) -> None:
        self.add("kernel", step.kernel, step)

    def extern(self, step: host.Extern) -> None:
        if step.python:
            raise _refused(f"R.call_py of {step.name!r}, which runs in a Python process,", step.span)
        if step.result is not None:
            raise _refused(f"a call of {step.name!r}, which gives a value of its own,", step.span)
        self.add("extern", step.name, step)

    def add(self, kind: str, name: str, step: host.Launch | host.Extern) -> None:
        arguments = tuple(self.argument(self.value(arg), step.span) for arg in step.arguments)
        kernel = self.module.functions.get(name) if kind == "kernel" else None
        if isinstance(kernel, PrimFunc):
            _check_memory(kernel, arguments, self.module.functions, step.span)
            self.check_kernel(kernel, step.arguments, arguments, step.span)
        self.entry.steps.append(Step(kind, name, arguments, step.span))
        self.values[step.into] = ()

    def match(self, step: host.Match) -> None:
        place, ty = self.place(self.value(step.value), step.span), step.type
        known = set(self.entry.symbols)
        if isinstance(ty, TensorType) and ty.dims is not None and len(ty.dims) == len(place.shape):
            if all(known.issuperset(_symbols(dim)) for dim in ty.dims):
                self.check_type(ty, place, f"match_cast of {step.into.name}", step.span)
                self.values[step.into] = place
                return
        raise _refused("a match_cast that gives a size its name", step.span)

    def bind(self, step: host.Bind) -> None:
        self.values[step.into] = self.value(step.value)

    # Sizes

    def check_type(self, ty: Type, place: Place, what: str, span: Span | None) -> None:
        """Compare the sizes of a tensor with those of a type."""
        text = f"{what}: expected {type_text(ty)}, got {type_text(TensorType(place.shape, place.dtype))}"
        self.compare(zip(dims_of(ty) or (), place.shape, strict=False), text, span)

    def check_kernel(
        self, kernel: PrimFunc, operands: Sequence[host.Operand], arguments: Sequence[Place | Scalar], span: Span | None
    ) -> None:
        """Compare the sizes that a kernel's parameters relate: the kernel gets addresses alone."""
        names, wanted, given = symbol_names(kernel), list(kernel_signature(kernel)), list[Type]()
        for position, (param, item) in enumerate(zip(kernel.params, arguments, strict=True)):
            if isinstance(item, Place):
                given.append(TensorType(item.shape, item.dtype))
            elif isinstance(item.value, (int, DimExpr)) and isinstance(param, PrimVar):
                wanted[position] = ShapeType((symbol(names[param]),))
                given.append(ShapeType((item.value,)))
            else:
                given.append(wanted[position])
        open_pairs = [pair for pair in match_types(wanted, given).pairs if prove_equal(*pair) is not True]
        if not open_pairs:
            return
        texts = {
            (item.wanted, item.given): f"{kernel.name}: {item.claim}"
            for row in relations(kernel, operands)
            for item in row
        }
        for pair in open_pairs:
            self.compare([pair], f"the sizes of the arguments of {kernel.name}", span, texts.get(pair))

    def compare(self, pairs: Iterable[tuple[Dim, Dim]], what: str, span: Span | None, text: str | None = None) -> None:
        """Have the program stop where two sizes that are not proved equal are not."""
        for wanted, given in pairs:
            if prove_equal(wanted, given) is not True:
                if isinstance(wanted, int):
                    wanted, given = given, wanted
                sizes = Scalar(wanted, "int64"), Scalar(given, "int64")
                self.entry.steps.append(Step("check", text or f"{what}: {wanted} must be {given}", sizes, span))

    # Values

    def value(self, operand: host.Operand) -> Any:
        """What an operand stands for: a place, a tuple of values, or the operand itself."""
        return host.value_of(operand, self.values, _refused)

    def flat(self, value: Any) -> list[Any]:
        return [part for item in value for part in self.flat(item)] if isinstance(value, tuple) else [value]

    def place(self, value: Any, span: Span | None) -> Place:
        if isinstance(value, Constant):
            index = self.constants.get(id(value.data))
            if index is None:
                index = self.constants[id(value.data)] = len(self.entry.constants)
                self.entry.constants.append(value)
            return Place("constant", index, tuple(value.data.shape), value.dtype)
        if isinstance(value, Place):
            return value
        raise _refused(f"a {type(value).__name__} as a tensor", span)

    def shape(self, value: Any, span: Span | None) -> tuple[Dim, ...]:
        if isinstance(value, host.Extents):
            return value.dims
        if isinstance(value, (host.Size, host.Number)):
            return (value.dim if isinstance(value, host.Size) else int(value.value),)
        raise _refused("a shape that only the values decide", span)

    def argument(self, value: Any, span: Span | None) -> Place | Scalar:
        if isinstance(value, host.Number):
            return Scalar(value.value, value.dtype)
        if isinstance(value, host.Size):
            return Scalar(value.dim, value.dtype)
        if isinstance(value, host.Extents) and len(value.dims) == 1:
            return Scalar(value.dims[0], "int64")
        return self.place(value, span)


_STEPS: Mapping[type, Callable[[_Reader, Any], None]] = {
    host.Alloc: _Reader.alloc,
    host.View: _Reader.view,
    host.Free: lambda reader, step: None,  # places were planned before
    host.Launch: _Reader.launch,
    host.Extern: _Reader.extern,
    host.Match: _Reader.match,
    host.Bind: _Reader.bind,
}
_LOOPS = f"{_EVERYTHING}; ControlFlowToKernels makes kernels of loops"
_CALLS = f"{_EVERYTHING}; private functions that are not recursive become part of their callers"
_REFUSED: Mapping[type, Callable[[Any], TargetError]] = {
    host.Conditional: lambda step: _refused("control flow", step.span),
    host.Loop: lambda step: _refused("a loop", step.span, _LOOPS),
    host.Call: lambda step: _refused(f"a call of the graph function {step.function!r}", step.span, _CALLS),
    host.Invoke: lambda step: _refused("a call of a function value", step.span),
    host.Closure: lambda step: _refused("a call of a function value", step.span),
    host.Operation: lambda step: _refused(f"R.{step.name}", step.span),
}


def _fields(ty: Type) -> list[Type]:
    return [part for item in ty.fields for part in _fields(item)] if isinstance(ty, TupleType) else [ty]


def element_width(dtype: str) -> int:
    """Bytes of an element."""
    return max(1, dtypes.bits(dtype) // 8)
