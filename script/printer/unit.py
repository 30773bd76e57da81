"""Writing modules, functions and smaller nodes."""

from __future__ import annotations

from typing import Any

from weft.errors import ScriptError
from weft.ir.deduction.device_mesh import DeviceMesh
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.graph import BindingBlock, Expr, ExternFunc, Function, If, MatchCast, PythonFunc, SeqExpr, Var, VarBinding
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, Node
from weft.ir.tensor import Buffer, BufferRegion, PrimExpr, PrimFunc, Stmt
from weft.ir.types import Type
from weft.ir.verify import certain_findings
from weft.script.forms.syntax import ALL_FORMS, BUFFERS, REWRITER, SIDES
from weft.script.printer.forms import join, show_form
from weft.script.printer.graph import (
    body_symbols,
    signature_symbols,
    type_symbols,
    write_binding,
    write_blocks,
    write_graph_function,
    write_if,
)
from weft.script.printer.scalars import show_box
from weft.script.printer.state import RESERVED, Printer, identifier, varies
from weft.script.printer.statements import buffer_values, write_statement
from weft.script.printer.tensor import write_prim_function
from weft.script.printer.types import show_type
from weft.script.printer.values import show_leaf, show_value
from weft.script.source.python_member import member_lines

__all__ = ["HEADER", "show_class_name", "show_function_name", "write_function", "write_python_member", "write_text"]

VERSION_LINE = "# weft-script 1"

HEADER = f"{VERSION_LINE}\nfrom weft.script import ir as I, relax as R, tir as T\n"

_HEADERS = {
    "weft": HEADER,
    "tvm-0.27": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tirx as T")),
    "tvm-0.20": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tir as T")),
}


def write_text(printer: Printer, node: Any) -> str:
    """The text of any node; ResourceError W952 for one whose parts use each other too often to be written out."""
    printer.root = node
    if isinstance(node, (IRModule, Function, PrimFunc)):
        printer.lines.append(_HEADERS[printer.spelling].rstrip("\n"))
        printer.lines.append("")
        printer.lines.append("")
        if isinstance(node, IRModule):
            write_module(printer, node)
        else:
            name = node.name or "main"
            printer.functions = {name: node}
            printer.unchecked = bool(certain_findings({name: node}, [name]))
            write_function(printer, identifier(name), name, node)
        return "\n".join(printer.lines) + "\n"
    return write_fragment(printer, node)


def write_module(printer: Printer, module: IRModule) -> None:
    """A module class."""
    unchecked = printer.unchecked or bool(certain_findings(module.functions, list(module.functions)))
    attrs = module.attrs
    sides = [isinstance(module.functions.get(name), Function) for name in SIDES]
    if attrs.get(REWRITER) is True and all(sides) and not unchecked:
        attrs = FrozenMap({name: value for name, value in attrs.items() if name != REWRITER})
        printer.line("@R.rewriter")
    else:
        printer.line("@I.ir_module(check_well_formed=False)" if unchecked else "@I.ir_module")
    printer.functions = module.functions
    printer.module_class = show_class_name(printer, module)
    printer.line(f"class {printer.module_class}:")
    printer.indent = "    "
    start = len(printer.lines)
    if attrs:
        printer.line(show_form(printer, ALL_FORMS["I.module_attrs"], {"attrs": attrs}))
    printer.meshes = [
        (f"{name}[{index}]", info)
        for name, infos in module.global_infos.items()
        for index, info in enumerate(infos if isinstance(infos, tuple) else ())
        if isinstance(info, DeviceMesh)
    ]
    if module.global_infos:
        printer.line(show_form(printer, ALL_FORMS["I.module_global_infos"], {"infos": module.global_infos}))
    taken: set[str] = set()
    for name, function in module.functions.items():
        if len(printer.lines) > start:
            printer.line("")
        written = show_function_name(printer, name, taken)
        taken.add(written)
        if isinstance(function, PythonFunc):
            write_python_member(printer, name, function)
        elif isinstance(function, ExternFunc):
            printer.reset()
            printer.line(f"{written} = {show_leaf(printer, function)}")
        else:
            write_function(printer, written, name, function)
    if len(printer.lines) == start:
        printer.line("pass")
    printer.indent = ""


@varies
def write_python_member(printer: Printer, name: str, function: PythonFunc) -> None:
    """A Python function, by its text."""
    lines = member_lines(function, printer.indent)
    if lines is None or name != function.name:
        hint = f"a member called {name!r} holds the text of one function of that name and nothing else"
        raise ScriptError(f"the Python function {name!r} has no text form", code="W116", hint=hint)
    printer.line("@I.pyfunc")
    printer.lines.extend(lines)


@varies
def show_class_name(printer: Printer, module: IRModule) -> str:
    """The name of the class of a module."""
    return identifier(module.name or "Module")


@varies
def show_function_name(printer: Printer, name: str, taken: set[str]) -> str:
    """The name of a function of a module as an identifier that no other has."""
    written = identifier(name)
    while written in taken or written in RESERVED:
        written += "_"
    return written


@varies
def write_function(printer: Printer, written: str, name: str, function: Function | PrimFunc) -> None:
    """A top-level function; `written` is its name as an identifier."""
    printer.reset()
    if isinstance(function, Function):
        printer.used |= signature_symbols(function) | body_symbols(function)
        write_graph_function(printer, written, name, function)
    else:
        write_prim_function(printer, written, name, function)


def write_fragment(printer: Printer, node: Any) -> str:
    """Readable text of a node that is no unit."""
    if isinstance(node, Type):
        printer.symbols |= type_symbols(node)
        return show_type(printer, node)
    if isinstance(node, PrimExpr):
        return join(printer, [(node, 0)])
    if isinstance(node, BufferRegion):
        return join(printer, show_box(printer, node))
    if isinstance(node, Buffer):
        return f"{printer.name(node)}: {show_form(printer, BUFFERS['T.Buffer'], buffer_values(printer, node))}"
    start = len(printer.lines)
    printer.symbols |= _all_symbols(node)
    if isinstance(node, Stmt):
        write_statement(printer, node)
    elif isinstance(node, (VarBinding, MatchCast)):
        write_binding(printer, node)
    elif isinstance(node, BindingBlock):
        write_blocks(printer, (node,))
    elif isinstance(node, SeqExpr):
        write_blocks(printer, node.blocks)
        printer.line(show_leaf(printer, node.body))
    elif isinstance(node, If):
        write_if(printer, Var("result", None), node)  # type: ignore[arg-type]
    elif isinstance(node, Expr):
        return show_value(printer, node)
    else:
        return repr(node)
    return "\n".join(printer.lines[start:])


def _all_symbols(node: Any) -> set[str]:
    """Every symbol below a small node."""
    found: set[str] = set()
    stack = [node]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, DimExpr):
            found.update(free_symbols(current))
        elif isinstance(current, (tuple, list)):
            stack.extend(current)
        elif isinstance(current, FrozenMap):
            stack.extend(current.values())
        elif isinstance(current, Node):
            stack.extend(getattr(current, slot, None) for slot in current.__dataclass_fields__)  # type: ignore[attr-defined]
    return found
