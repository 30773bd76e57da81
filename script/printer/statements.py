"""Showing the statements of tensor-level functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.errors import ScriptError
from weft.ir.graph import StringImm
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import walk
from weft.ir.tensor import (
    AllocBuffer,
    AssertStmt,
    AttrStmt,
    Binary,
    Bind,
    Block,
    Break,
    Buffer,
    BufferStore,
    Cast,
    Continue,
    DeclBuffer,
    Evaluate,
    FloatImm,
    For,
    IfThenElse,
    IntImm,
    IterVar,
    MatchBufferRegion,
    PrimExpr,
    PrimVar,
    Return,
    SeqStmt,
    Stmt,
    Unary,
    While,
)
from weft.script.forms.defaults import axis_dtype, loop_dtype
from weft.script.forms.holes import string_text
from weft.script.forms.showing import SHOWN
from weft.script.forms.syntax import BUFFERS, CLAUSES, LOOPS, SCOPES, SHOWN_AS
from weft.script.printer.forms import as_operand, join, show_form, show_immediate
from weft.script.printer.scalars import show_element, show_position
from weft.script.printer.state import Always, Piece, Printer, Ready, varies
from weft.script.printer.types import show_extent, show_variable_type
from weft.script.printer.values import show_value

__all__ = [
    "buffer_values",
    "show_condition",
    "show_loop_head",
    "show_loop_text",
    "write_alloc",
    "write_assert",
    "write_attr",
    "write_axis",
    "write_bind",
    "write_decl",
    "write_for",
    "write_if_statement",
    "write_inner",
    "write_loop",
    "write_return",
    "write_seq",
    "write_statement",
    "write_statements",
    "write_store",
]

_LOOP_NAMES = {
    "serial": "T.serial",
    "parallel": "T.parallel",
    "vectorized": "T.vectorized",
    "unrolled": "T.unroll",
    "thread_binding": "T.thread_binding",
}
_AXIS_LETTERS = {"spatial": "S", "reduce": "R", "scan": "C", "opaque": "O"}


@varies
def buffer_values(printer: Printer, buffer: Buffer) -> dict[str, Any]:
    """What a buffer says of itself, by the holes of its forms."""
    fields = ("shape", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "axis_separators")
    # The dtype is always written: a reader should not have to know the default.
    return {**{field: getattr(buffer, field) for field in fields}, "dtype": Always(buffer.dtype)}


def write_statements(printer: Printer, body: Stmt) -> None:
    """The statements of a block."""
    items = body.stmts if isinstance(body, SeqStmt) and len(body.stmts) != 1 else (body,)
    if not items:
        printer.line("pass")
    for item in items:
        write_statement(printer, item)


@varies
def write_statement(printer: Printer, stmt: Stmt) -> None:
    """One statement."""
    if type(stmt) in SHOWN_AS and not printer.foreign and _written_as_row(printer, stmt):
        return
    show = SHOWN.statement.get(type(stmt))
    if show is None:
        raise ScriptError(f"a {type(stmt).__name__} has no text form", code="W114")
    show(printer, stmt)


def _written_as_row(printer: Printer, stmt: Any) -> bool:
    """Write a statement in a form from outside, where one says all of it."""
    for row in SHOWN_AS[type(stmt)]:
        values = row.values(stmt)
        if values is not None:
            text = show_form(printer, row.form, values)
            if row.has_body:
                write_inner(printer, f"with {text}:", stmt.body)
            else:
                printer.line(text)
            return True
    return False


def write_inner(printer: Printer, head: str, body: Stmt) -> None:
    """A compound statement."""
    printer.block_of(head, lambda: write_statements(printer, body))


@SHOWN.statement(SeqStmt)
@varies
def write_seq(printer: Printer, stmt: SeqStmt) -> None:
    """`with T.seq():`."""

    def body() -> None:
        for item in stmt.stmts:
            write_statement(printer, item)

    printer.block_of("with T.seq():", body, empty=not stmt.stmts)


@SHOWN.statement(BufferStore)
@varies
def write_store(printer: Printer, stmt: BufferStore) -> None:
    """A store into a buffer."""
    if stmt.predicate is not None:
        head = [
            f"{printer.name(stmt.buffer)}.vstore(",
            *show_position(printer, stmt.indices),
            ", ",
            *as_operand(printer, stmt.value),
        ]
        printer.line(join(printer, [*head, ", predicate=", (stmt.predicate, 0), ")"]))
        return
    pieces = [*show_element(printer, stmt.buffer, stmt.indices), " = ", *as_operand(printer, stmt.value)]
    printer.line(join(printer, pieces))


@SHOWN.statement(For)
@varies
def write_for(printer: Printer, stmt: For) -> None:
    """A loop, or the loops that `T.grid` says at once."""
    if stmt.loop_var in printer.threads:  # declared before, because something outside of the loop names it
        head = show_form(printer, LOOPS["T.launch_thread"], {"thread": stmt.loop_var, "extent": stmt.extent})
        write_loop(printer, [stmt], f"with {head}:")
        return
    group = _grid_of(stmt)
    if len(group) > 1:
        extents = [
            _typed_extent(printer, loop.extent, loop.loop_var.dtype, loop_dtype(0, loop.extent)) for loop in group
        ]
        head = show_form(printer, LOOPS["T.grid"], {"extents": extents})
        write_loop(printer, group, f"for {', '.join(printer.name(loop.loop_var) for loop in group)} in {head}:")
        return
    head = show_loop_head(printer, stmt)
    write_loop(printer, [stmt], f"for {printer.name(stmt.loop_var)} in {head}:")


@varies
def write_loop(printer: Printer, group: list[For], head: str) -> None:
    """The head of loops and their body."""
    for loop in group:
        printer.loops[loop.loop_var] = loop
    write_inner(printer, head, group[-1].body)


def _grid_of(stmt: For) -> list[For]:
    """The loops that `T.grid` can say at once."""
    group: list[For] = []
    inner: Stmt = stmt
    variables: set[PrimVar] = set()
    while isinstance(inner, For) and inner.kind == "serial" and inner.step is None and not inner.annotations:
        plain = isinstance(inner.start, int) and inner.start == 0 and inner.thread is None
        if not plain or _mentions(inner.extent, variables):
            break
        if not isinstance(inner.extent, int) and inner.extent.dtype != inner.loop_var.dtype:
            break
        group.append(inner)
        variables.add(inner.loop_var)
        inner = inner.body
    return group


def _typed_extent(printer: Printer, extent: Any, wanted: str, natural: str) -> Any:
    """The extent, as a typed constant where that says the dtype of the variable."""
    if wanted != natural and isinstance(extent, int) and dtypes.is_integer(wanted):
        return f"T.{wanted}({extent})"
    return extent


@varies
def show_loop_head(printer: Printer, stmt: For) -> str:
    """What a loop goes over."""
    start, extent, dtype = stmt.start, stmt.extent, stmt.loop_var.dtype
    values: dict[str, Any] = {"step": stmt.step, "annotations": dict(stmt.annotations), "thread": stmt.thread or ""}
    natural = loop_dtype(start, extent)
    if isinstance(start, int) and isinstance(extent, int):
        values.update(_constant_range(start, extent, dtype))
    else:
        if isinstance(start, int) and start == 0:
            values["start"] = extent
        else:
            values.update(start=start, extent=extent)
        if natural != dtype:
            values["dtype"] = dtype
    return show_loop_text(printer, stmt, values)


def show_loop_text(printer: Printer, stmt: For, values: dict[str, Any]) -> str:
    """What stands after `in`: `range` where it says everything."""
    if stmt.kind == "serial" and not stmt.annotations and "extent" not in values and "dtype" not in values:
        if stmt.step is not None and "stop" not in values:
            values = {**values, "start": 0, "stop": values["start"]}
        return show_form(printer, LOOPS["range"], values)
    return show_form(printer, LOOPS[_LOOP_NAMES[stmt.kind]], values)


def _constant_range(start: int, extent: int, dtype: str) -> dict[str, Any]:
    def typed(value: int) -> Any:
        return value if dtype == "int32" else f"T.{dtype}({value})"

    return {"start": typed(extent)} if start == 0 else {"start": typed(start), "stop": typed(start + extent)}


@SHOWN.statement(While)
def _while(printer: Printer, stmt: While) -> None:
    write_inner(printer, f"while {join(printer, show_condition(printer, stmt.condition))}:", stmt.body)


def show_condition(printer: Printer, condition: PrimExpr) -> list[Piece]:
    """A condition that is not known while reading, even when it is a constant."""
    return [show_immediate(printer, condition)] if isinstance(condition, (IntImm, FloatImm)) else [(condition, 0)]


@SHOWN.statement(IfThenElse)
@varies
def write_if_statement(printer: Printer, stmt: IfThenElse) -> None:
    """`if`, `elif`, `else`."""
    head = "if"
    current: Stmt | None = stmt
    while isinstance(current, IfThenElse):
        write_inner(printer, f"{head} {join(printer, show_condition(printer, current.condition))}:", current.then_body)
        head = "elif"
        current = current.else_body
    if current is not None:
        write_inner(printer, "else:", current)


@SHOWN.statement(Block)
def _block(printer: Printer, stmt: Block) -> None:
    values = {"name": stmt.name, "no_realize": stmt.bare or any(item.value is None for item in stmt.iter_vars)}
    printer.block_of(f"with {show_form(printer, SCOPES['T.block'], values)}:", lambda: _block_body(printer, stmt))


def _block_body(printer: Printer, stmt: Block) -> None:
    _axes(printer, stmt.iter_vars)
    if stmt.predicate is not None:
        printer.line(show_form(printer, CLAUSES["T.where"], {"predicate": stmt.predicate}))
    for buffer in stmt.alloc_buffers:
        values = {**buffer_values(printer, buffer), "block": True, "annotations": {}}
        printer.line(f"{printer.name(buffer)} = {show_form(printer, printer.block_buffer, values)}")
    for match in stmt.match_buffers:
        _match(printer, match)
    for name, regions in (("T.reads", stmt.reads), ("T.writes", stmt.writes)):
        if regions is not None:
            printer.line(show_form(printer, CLAUSES[name], {"regions": regions}))
    if stmt.annotations:
        printer.line(show_form(printer, CLAUSES["T.block_attr"], {"attrs": stmt.annotations}))
    if stmt.init is not None:
        write_inner(printer, "with T.init():", stmt.init)
    items = stmt.body.stmts if isinstance(stmt.body, SeqStmt) and len(stmt.body.stmts) != 1 else (stmt.body,)
    for item in items:
        if isinstance(item, AllocBuffer):
            write_alloc(printer, item, True)
        else:
            write_statement(printer, item)
    if not items:
        printer.line("pass")


def _match(printer: Printer, match: MatchBufferRegion) -> None:
    values = {**buffer_values(printer, match.buffer), "source": match.source}
    text = show_form(printer, BUFFERS["T.match_buffer"], values)
    printer.line(f"{printer.name(match.buffer)} = {text}")


def _axes(printer: Printer, iter_vars: Sequence[IterVar]) -> None:
    if len(iter_vars) > 1 and all(_is_remap(printer, item) for item in iter_vars):
        letters = "".join(_AXIS_LETTERS[item.kind] for item in iter_vars)
        text = show_form(
            printer, CLAUSES["T.axis.remap"], {"kinds": letters, "values": [item.value for item in iter_vars]}
        )
        printer.line(f"{', '.join(printer.name(item.var) for item in iter_vars)} = {text}")
        return
    for item in iter_vars:
        write_axis(printer, item)


def _is_remap(printer: Printer, item: IterVar) -> bool:
    loop = printer.loops.get(item.value) if isinstance(item.value, PrimVar) else None  # type: ignore[arg-type]
    if loop is None or item.kind not in ("spatial", "reduce") or item.var.dtype != loop.loop_var.dtype:
        return False
    return _same_extent(item.start, loop.start) and _same_extent(item.extent, loop.extent)


@varies
def write_axis(printer: Printer, item: IterVar) -> None:
    """A block variable."""
    values: dict[str, Any] = {"value": item.value, "start": item.start}
    extent = item.extent
    if axis_dtype(extent, item.value) != item.var.dtype:
        if isinstance(extent, int) and dtypes.is_integer(item.var.dtype):
            values["extent"] = Ready(f"T.{item.var.dtype}({extent})")
        else:
            values["dtype"] = item.var.dtype
    values.setdefault("extent", Ready(join(printer, show_extent(printer, extent))))
    text = show_form(printer, CLAUSES[f"T.axis.{item.kind}"], values)
    printer.line(f"{printer.name(item.var)} = {text}")


@SHOWN.statement(Bind)
@varies
def write_bind(printer: Printer, stmt: Bind) -> None:
    """`x: T.let = value`."""
    value = join(printer, as_operand(printer, stmt.value))
    variable = stmt.var
    typed = variable.dtype == "handle" and variable.pointee is not None
    annotation = f"T.let[{show_variable_type(printer, variable)}]" if typed else "T.let"
    printer.line(f"{printer.name(variable)}: {annotation} = {value}")


@SHOWN.statement(AllocBuffer)
@varies
def write_alloc(printer: Printer, stmt: AllocBuffer, in_block: bool = False) -> None:
    """Memory for a buffer."""
    values = {**buffer_values(printer, stmt.buffer), "block": not in_block, "annotations": dict(stmt.annotations)}
    printer.line(f"{printer.name(stmt.buffer)} = {show_form(printer, BUFFERS['T.alloc_buffer'], values)}")


@SHOWN.statement(DeclBuffer)
@varies
def write_decl(printer: Printer, stmt: DeclBuffer) -> None:
    """A buffer in memory that is there already."""
    form = "T.decl_buffer" if stmt.buffer.data is not None else "T.Buffer"  # the former would allocate memory
    text = show_form(printer, BUFFERS[form], buffer_values(printer, stmt.buffer))
    printer.line(f"{printer.name(stmt.buffer)} = {text}")


@SHOWN.statement(AssertStmt)
@varies
def write_assert(printer: Printer, stmt: AssertStmt) -> None:
    """`assert`."""
    message = string_text(stmt.message)
    if stmt.parts or (stmt.kind != "AssertionError" and not stmt.message):
        message = f"[{', '.join(map(string_text, stmt.parts))}]"
    if stmt.kind != "AssertionError" or stmt.parts:
        message = f"({string_text(stmt.kind)}, {message})"
    printer.line(f"assert {join(printer, [*show_condition(printer, stmt.condition), f', {message}'])}")


@SHOWN.statement(AttrStmt)
@varies
def write_attr(printer: Printer, stmt: AttrStmt) -> None:
    # A typed constant, so that it does not read back as a plain number.
    """`with T.attr(...)`."""
    value = Ready(show_immediate(printer, stmt.value)) if isinstance(stmt.value, (IntImm, FloatImm)) else stmt.value
    values = {"node": _string_node(stmt.node), "key": stmt.key, "value": _string_node(value)}
    write_inner(printer, f"with {show_form(printer, SCOPES['T.attr'], values)}:", stmt.body)


def _string_node(value: Any) -> Any:
    """A string that is a node of its own, as no plain string reads back."""
    return Ready(f"T.StringImm({string_text(value.value)})") if isinstance(value, StringImm) else value


@SHOWN.statement(Evaluate)
def _evaluate(printer: Printer, stmt: Evaluate) -> None:
    value = _string_node(stmt.value)
    if isinstance(value, Ready):
        printer.line(f"T.evaluate({value.text})")
    elif isinstance(value, PrimExpr):
        printer.line(show_form(printer, CLAUSES["T.evaluate"], {"value": value}))
    else:
        printer.line(f"T.evaluate({show_value(printer, value)})")


@SHOWN.statement(Return)
@varies
def write_return(printer: Printer, stmt: Return) -> None:
    """`return`."""
    printer.line("return" if stmt.value is None else f"return {join(printer, as_operand(printer, stmt.value))}")


def _same_extent(a: Any, b: Any) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or structural_equal(a, b)


def _mentions(extent: Any, variables: set[PrimVar]) -> bool:
    """Whether a size uses one of the variables."""
    parts = walk(extent) if isinstance(extent, PrimExpr) and variables else ()
    plain = (PrimVar, IntImm, FloatImm, Binary, Cast, Unary)
    return any(part in variables or not isinstance(part, plain) for part in parts)  # something richer: do not merge


@SHOWN.statement(Break, Continue)
@varies
def write_jump(printer: Printer, stmt: Break | Continue) -> None:
    """`break` or `continue`."""
    printer.line("break" if isinstance(stmt, Break) else "continue")
