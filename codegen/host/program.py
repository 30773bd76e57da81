"""HostProgram: what the host does between kernels, as data. All executors are written from it and from nothing else.

    program   ::= functions by name, kernels by name
    function  ::= name, parameters, body, type of the result
    body      ::= step*, operand                                 the operand is what the body gives: its `return`
    step      ::= alloc | view | free | launch | extern | match | conditional | loop | call | invoke | closure | bind
                | operation
    operand   ::= variable | constant | Size | Number | Extents | Group | Item | Text | FunctionName

A step binds the variable `into`; each variable is bound once, and its name and type are those of the text of the
module. Free steps stand where memory is used for the last time, and where the text says so.

`codegen.host.read` makes programs of graph functions in explicit-memory form. `str(program)` shows one:

    func main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32")
      y = alloc (4,) float32
      launch double(x, y)
      return y
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from weft.errors import Span
from weft.ir.deduction.subtyping import type_text
from weft.ir.dim import Dim
from weft.ir.graph import Constant, Function, Var
from weft.ir.tensor import PrimFunc
from weft.ir.types import TensorType, Type
from weft.support.records import dataclass, record

__all__ = [
    "Alloc",
    "Bind",
    "Body",
    "Call",
    "Closure",
    "Conditional",
    "Extents",
    "Extern",
    "Free",
    "FunctionName",
    "Group",
    "HostFunction",
    "HostProgram",
    "Invoke",
    "Item",
    "Launch",
    "Loop",
    "Match",
    "Number",
    "Operand",
    "Operation",
    "Size",
    "Step",
    "Text",
    "View",
    "value_of",
]


# Operands.


@record
class Size:
    """A number computed from the symbols of the function."""

    dim: Dim
    dtype: str = "int64"
    span: Span | None = None

    def __str__(self) -> str:
        return str(self.dim)


@record
class Number:
    """A number that is known."""

    value: int | float | bool
    dtype: str

    def __str__(self) -> str:
        return f"{self.value}:{self.dtype}"


@record
class Extents:
    """A shape, whose sizes are computed from the symbols of the function."""

    dims: tuple[Dim, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.dims))}{',' if len(self.dims) == 1 else ''})"


@record
class Group:
    """A tuple."""

    fields: tuple[Operand, ...]

    def __str__(self) -> str:
        return f"[{_listed(self.fields)}]"


@record
class Item:
    """A field of a tuple."""

    value: Operand
    index: int
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.value)}[{self.index}]"


@record
class Text:
    """A string; dtypes as values are strings as well."""

    text: str

    def __str__(self) -> str:
        return repr(self.text)


@record
class FunctionName:
    """A function of the module as a value."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


Operand = Var | Constant | Size | Number | Extents | Group | Item | Text | FunctionName


def operand_text(operand: Operand) -> str:
    """An operand as programs show it."""
    if isinstance(operand, Var):
        return operand.name or "_"
    if isinstance(operand, Constant):
        return f"constant {operand.dtype}{list(operand.data.shape)}"
    return str(operand)


def _listed(operands: tuple[Operand, ...]) -> str:
    return ", ".join(map(operand_text, operands))


# Steps. Those without `into` bind nothing.


@dataclass(frozen=True, slots=True, eq=False)
class Alloc:
    """Fresh memory: a tensor, or a `block` in which several tensors are placed."""

    into: Var
    shape: Operand
    dtype: str
    block: bool
    span: Span | None = None

    def __str__(self) -> str:
        kind = "alloc block" if self.block else "alloc"
        return f"{operand_text(self.into)} = {kind} {operand_text(self.shape)} {self.dtype}"


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A tensor over memory of another one, or (`block`) placed in a block: from `offset`, in bytes, on.

    Without a shape or dtype it has that of its source.
    """

    into: Var
    source: Operand
    offset: Operand
    shape: Operand | None
    dtype: str | None
    block: bool
    span: Span | None = None

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" {operand_text(self.shape)}"
        source = f"{operand_text(self.source)} + {operand_text(self.offset)}"
        return f"{operand_text(self.into)} = view {source}{shape}{f' {self.dtype}' if self.dtype else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class Free:
    """The memory of variables is used no more; `stated` where the text of the module says so."""

    variables: tuple[Var, ...]
    stated: bool = False
    span: Span | None = None

    def __str__(self) -> str:
        return f"free {_listed(self.variables)}"


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A kernel of the module, which writes into its arguments; `into` gets its scalar result, if it has one."""

    into: Var
    kernel: str
    arguments: tuple[Operand, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"launch {self.kernel}({_listed(self.arguments)})"


@dataclass(frozen=True, slots=True, eq=False)
class Extern:
    """A function outside the program; its result has the type stated, None for one that only writes arguments.

    `python` ones (`R.call_py`) run in a Python process only.
    """

    into: Var
    name: str
    arguments: tuple[Operand, ...]
    result: Type | None
    span: Span | None = None
    python: bool = False

    def __str__(self) -> str:
        into = "" if self.result is None else f"{operand_text(self.into)}: {type_text(self.result)} = "
        return f"{into}extern {self.name}({_listed(self.arguments)})"


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A value of which the program checks that it has a type; symbols that the type binds get their values."""

    into: Var
    value: Operand
    type: Type
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = match {operand_text(self.value)} as {type_text(self.type)}"


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """One of two bodies, by a condition; symbols that a body binds end with it."""

    into: Var
    condition: Operand
    then: Body
    other: Body
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = if {operand_text(self.condition)}"


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A body that takes the carried values, after the index of a loop over `bounds` (start, stop, step), and gives the
    next ones; a condition of the carried values is asked before each iteration. `into` gets a tuple of the last ones,
    and of the `stacked` tensors, which have a row of each iteration: what the body gives after the carried values.
    """

    into: Var
    body: Operand
    initial: tuple[Operand, ...]
    types: tuple[Type, ...]
    bounds: tuple[Operand, ...] | None
    condition: Operand | None
    stacked: tuple[TensorType, ...] = ()
    span: Span | None = None

    def __str__(self) -> str:
        over = "" if self.bounds is None else f" over ({_listed(self.bounds)})"
        asked = "" if self.condition is None else f" while {operand_text(self.condition)}"
        return f"{operand_text(self.into)} = loop {operand_text(self.body)}({_listed(self.initial)}){over}{asked}"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Another graph function of the module, or this one."""

    into: Var
    function: str
    arguments: tuple[Operand, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = call {self.function}({_listed(self.arguments)})"


@dataclass(frozen=True, slots=True, eq=False)
class Invoke:
    """A function that is a value."""

    into: Var
    callee: Operand
    arguments: tuple[Operand, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = invoke {operand_text(self.callee)}({_listed(self.arguments)})"


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function with its first arguments fixed."""

    into: Var
    callee: Operand
    fixed: Operand
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = closure {operand_text(self.callee)} {operand_text(self.fixed)}"


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """Another name of a value."""

    into: Var
    value: Operand
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = {operand_text(self.value)}"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operator that an executor does by itself (shapes, printing, assertions), or refuses by its name."""

    into: Var
    name: str
    arguments: tuple[Operand, ...]
    span: Span | None = None

    def __str__(self) -> str:
        return f"{operand_text(self.into)} = {self.name}({_listed(self.arguments)})"


Step = Alloc | View | Free | Launch | Extern | Match | Conditional | Loop | Call | Invoke | Closure | Bind | Operation


# Programs.


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """Steps in order, and the operand that they are done for."""

    steps: tuple[Step, ...]
    result: Operand
    span: Span | None = None

    def lines(self, indent: str = "  ") -> Iterator[str]:
        """The text of the body."""
        for step in self.steps:
            yield f"{indent}{step}"
            if isinstance(step, Conditional):
                yield from step.then.lines(indent + "  ")
                yield f"{indent}else"
                yield from step.other.lines(indent + "  ")
        yield f"{indent}return {operand_text(self.result)}"


@dataclass(frozen=True, slots=True, eq=False)
class HostFunction:
    """A graph function. `source` is the function it was read from: its attributes, its purity, its place."""

    name: str
    params: tuple[Var, ...]
    body: Body
    result: Type
    source: Function

    def __str__(self) -> str:
        params = ", ".join(f"{param.name}: {type_text(param.ty)}" for param in self.params)
        return "\n".join([f"func {self.name}({params}) -> {type_text(self.result)}", *self.body.lines()])


@dataclass(frozen=True, slots=True, eq=False)
class HostProgram:
    """The graph functions of a module and the kernels that they launch."""

    functions: Mapping[str, HostFunction]
    kernels: Mapping[str, PrimFunc]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.functions.values()))


def value_of(operand: Operand, values: Mapping[Var, Any], refuse: Callable[[str, Span | None], Exception]) -> Any:
    """What an operand stands for where variables have values: one of them, a tuple of them, or the operand itself.

    `refuse(what, span)` makes the error for a tuple that is no tuple of the function.
    """
    if isinstance(operand, Var):
        return values.get(operand, operand)
    if isinstance(operand, Group):
        return tuple(value_of(field, values, refuse) for field in operand.fields)
    if isinstance(operand, Item):
        whole = value_of(operand.value, values, refuse)
        if not isinstance(whole, tuple):
            raise refuse("a tuple that is not made in the function", operand.span)
        return whole[operand.index]
    return operand
