"""Tensor-level functions to C99 functions.

    int32_t name(buffers and scalars in order, symbols as int64_t, [workspace])

The result is 0, or the number of the assertion that failed (`message` gives its text). There is no heap: memory that a
function allocates is a local array when it is small, else a fixed offset into the workspace that the caller gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from weft import dtypes
from weft.codegen.backends.c.expressions import expression, offset, unsupported
from weft.codegen.backends.c.helpers import c_type
from weft.codegen.backends.c.names import identifier
from weft.codegen.backends.c.short_floats import SHORT_FLOATS
from weft.codegen.host.kernels import is_noalias, written_positions
from weft.errors import Span, TargetError
from weft.ir.graph import GlobalVar, StringImm
from weft.ir.kernel.prim_dim import buffer_symbols
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AttrStmt,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    PrimCall,
    PrimExpr,
    PrimFunc,
    PrimVar,
)
from weft.support.records import dataclass

__all__ = ["Helpers", "KernelWriter", "align", "check_dtype", "prototype"]

_ALIGNMENT = 16


def align(size: int) -> int:
    """The size rounded up to the alignment of workspace offsets."""
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@dataclass
class Helpers:
    """What the functions of one source file share: helper definitions, external prototypes, assertion messages."""

    definitions: dict[str, str] = field(default_factory=dict)
    externs: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def message(self, kind: str, text: str) -> int:
        """The number of an assertion."""
        entry = f"{kind}: {text}"
        if entry not in self.messages:
            self.messages.append(entry)
        return self.messages.index(entry) + 1


def _written(function: PrimFunc, callees: Mapping[str, PrimFunc]) -> set[Buffer]:
    """The buffers that a kernel may write: one whose address is handed on, unless the callee is known not to.

    What an attribute is about, `T.attr(x.data, ...)`, is only named.
    """
    found = {item.buffer for item in walk(function.body) if isinstance(item, BufferStore)}
    only_read = {
        id(arg)
        for item in walk(function.body)
        if isinstance(item, PrimCall) and isinstance(item.op, GlobalVar) and item.op.name in callees
        for position, arg in enumerate(item.args)
        if position not in written_positions(callees[item.op.name], callees)
    }
    only_read |= {id(item.node) for item in walk(function.body) if isinstance(item, AttrStmt)}
    views = {id(item.buffer.data): item.buffer for item in walk(function.body) if isinstance(item, DeclBuffer)}
    taken = [
        item
        for item in walk(function.body)
        if isinstance(item, PrimCall) and item.op == "address_of" and id(item) not in only_read
    ]
    count = -1
    while count < len(found):  # what views of views write
        count = len(found)
        for item in taken:
            if id(item) not in views or views[id(item)] in found:
                found.update(part.buffer for part in item.args if isinstance(part, BufferLoad))
    return found


def prototype(
    name: str, function: PrimFunc, names: dict[object, str], callees: Mapping[str, PrimFunc], *, workspace: bool
) -> str:
    """The C prototype of a kernel, with the names that `names` gives to parameters and symbols."""
    written = _written(function, callees)
    alone = "restrict " if is_noalias(function) else ""
    parameters = []
    for item in function.params:
        if isinstance(item, Buffer):
            parameters.append(f"{'' if item in written else 'const '}{c_type(item.dtype)} *{alone}{names[item]}")
        else:
            parameters.append(f"{c_type(item.dtype)} {names[item]}")
    parameters += [f"int64_t {names[symbol]}" for symbol in buffer_symbols(function)]
    if workspace:
        parameters.append("uint8_t *workspace")
    return f"int32_t {name}({', '.join(parameters) or 'void'})"


class KernelWriter:
    """A function while it is written (`statements.write_kernel`); `workspace_bytes` is what it needs of its caller."""

    def __init__(self, name: str, function: PrimFunc, helpers: Helpers, callees: dict[str, KernelWriter]) -> None:
        self.name = name
        self.function = function
        self.helpers = helpers
        self.callees = callees
        self.names: dict[object, str] = {}
        self.lets: dict[PrimVar, PrimExpr] = {}
        self.ranges: dict[PrimVar, tuple[int, int]] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.workspace_bytes = 0
        self.used = 0
        taken: set[str] = {"workspace"}
        for item in (*function.params, *buffer_symbols(function)):
            check_dtype(item.dtype, item.span)
            self.names[item] = identifier(item.name or "p", taken)
        self.taken = taken

    def text(self) -> str:
        """The definition."""
        head = self.head()
        unused = [f"  (void){self.names[item]};" for item in (*self.function.params, *buffer_symbols(self.function))]
        return "\n".join([f"{head} {{", *unused, *self.lines, "  return 0;", "}"])

    def head(self) -> str:
        """The prototype."""
        callees = dict(self.called())
        return prototype(self.name, self.function, self.names, callees, workspace=self.workspace_bytes > 0)

    def called(self) -> Iterator[tuple[str, PrimFunc]]:
        """The kernels that this one calls, and those that they call."""
        for name, writer in self.callees.items():
            yield name, writer.function
            yield from writer.called()

    # What expressions ask for.

    def use(self, item: tuple[str, str]) -> str:
        """Make sure that a helper is defined; gives its name."""
        self.helpers.definitions[item[0]] = item[1]
        return item[0]

    def check_dtype(self, dtype: str, span: Span | None) -> None:
        """TargetError W741 for a type that C99 lacks."""
        check_dtype(dtype, span)

    def variable(self, var: PrimVar, lane: str | None) -> str:
        """A variable in scope: its name, the element of a vector's array, or what it stands for, in parentheses."""
        if var in self.lets:
            return f"({expression(self, self.lets[var], lane)})"
        if var not in self.names:
            raise TargetError(f"c: {var.name!r} has no value here", code="W742", span=var.span)
        return self.names[var] if lane is None or dtypes.lanes(var.dtype) == 1 else f"{self.names[var]}[{lane}]"

    def range_of(self, var: PrimVar) -> tuple[int, int] | None:
        """The least and the greatest value of a loop's variable, where they are known."""
        return self.ranges.get(var)

    def pointer(self, buffer: Buffer) -> str:
        """The pointer to a buffer's first element."""
        if buffer not in self.names:
            raise TargetError(f"c: buffer {buffer.name!r} has no memory here", code="W742", span=buffer.span)
        return self.names[buffer]

    def let(self, var: PrimVar, value: PrimExpr) -> None:
        """Give a variable the value of an expression, which may stand in several places, for other lanes in each."""
        self.lets[var] = value

    def address(self, expr: PrimCall) -> str:
        """The address of a buffer element."""
        load = expr.args[0]
        if not isinstance(load, BufferLoad):
            raise unsupported("an address of something else than a buffer element", expr.span)
        return f"({self.pointer(load.buffer)} + ({offset(self, load.buffer, load.indices, None)}))"

    def call_extern(self, expr: PrimCall) -> str:
        """A call of an external symbol; its prototype follows from the arguments."""
        symbol = expr.args[0]
        if not isinstance(symbol, StringImm) or not symbol.value.isidentifier():
            raise unsupported("an external call without a C name", expr.span)
        types, values = [], []
        for arg in expr.args[1:]:
            if isinstance(arg, StringImm):
                raise unsupported("a string argument", expr.span)
            dtype = getattr(arg, "dtype", "handle")
            values.append(expression(self, arg))
            types.append("void *" if dtype == "handle" else c_type(dtype))
        if dtypes.lanes(expr.dtype) > 1:
            raise unsupported(f"an external call that gives {expr.dtype}", expr.span)
        result = "void" if expr.dtype == "void" else c_type(expr.dtype)
        declared = f"extern {result} {symbol.value}({', '.join(types) or 'void'});"
        if self.helpers.externs.setdefault(symbol.value, declared) != declared:
            raise TargetError(f"c: {symbol.value!r} is called with different types", code="W743", span=expr.span)
        return f"{symbol.value}({', '.join(values)})"

    def call_function(self, expr: PrimCall) -> str:
        """A call of a function of the module."""
        if not isinstance(expr.op, GlobalVar) or expr.op.name not in self.callees:
            raise unsupported("a call of an unknown function", expr.span)
        callee = self.callees[expr.op.name]
        args = [expression(self, arg) for arg in expr.args]
        args += [self._symbol_value(callee.function, symbol, expr) for symbol in buffer_symbols(callee.function)]
        if callee.workspace_bytes:
            args.append(f"workspace + {self.used}")
            self.workspace_bytes = max(self.workspace_bytes, self.used + callee.workspace_bytes)
        return f"{callee.name}({', '.join(args)})"

    def _symbol_value(self, callee: PrimFunc, symbol: PrimVar, expr: PrimCall) -> str:
        for param, arg in zip(callee.params, expr.args, strict=False):
            if isinstance(param, Buffer) and symbol in param.shape and isinstance(arg, PrimCall):
                load = arg.args[0]
                if isinstance(load, BufferLoad) and load.buffer.ndim == param.ndim:
                    return expression(self, load.buffer.shape[param.shape.index(symbol)])
        raise unsupported(f"a call that does not give {symbol.name!r} a value", expr.span)

    # What statements ask for.

    def declared(self, var: PrimVar | Buffer) -> str:
        """A new name for what a statement declares."""
        self.names[var] = identifier(var.name or "v", self.taken)
        return self.names[var]

    def line(self, text: str) -> None:
        """One line at the current depth."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def block(self, head: str):
        """Lines inside braces; memory allocated inside is free afterwards."""
        self.line(head + " {")
        self.depth += 1
        used = self.used
        yield
        self.used = used
        self.depth -= 1
        self.line("}")


def check_dtype(dtype: str, span: Span | None) -> None:
    """TargetError W741 for a type that C99 lacks."""
    scalar = dtypes.element(dtype)
    if dtypes.is_float(scalar) and scalar not in ("float32", "float64", *SHORT_FLOATS):
        raise unsupported(scalar, span)
