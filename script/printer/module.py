"""Showing nodes as script text: the other direction of the syntax table.

The text of a module or function reads back as an equal node, and printing that gives the same text again. Names are
made unique per top-level function and valid; everything else is taken from the node as it is.
"""

from __future__ import annotations

from typing import Any

from weft.errors import ScriptError
from weft.ir.deduction.device_mesh import DeviceMesh
from weft.ir.dim import DimExpr, free_symbols
from weft.ir.graph import (
    BindingBlock,
    Expr,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PythonFunc,
    SeqExpr,
    Var,
    VarBinding,
)
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap, Node, replace
from weft.ir.tensor import (
    Buffer,
    BufferRegion,
    PrimExpr,
    PrimFunc,
    Stmt,
)
from weft.ir.types import Type
from weft.ir.verify import certain_findings
from weft.script.forms.syntax import (
    ALL_FORMS,
    BUFFERS,
    REWRITER,
    SIDES,
)
from weft.script.printer.base import RESERVED, SPELLINGS, identifier
from weft.script.printer.graph import GraphPrinter, body_symbols, signature_symbols, type_symbols
from weft.script.printer.tensor import TensorPrinter
from weft.script.printer.tvm.module import PeerPrinter
from weft.script.source.annotate import Chain, Marking, decorated_text, marked_nodes
from weft.script.source.blobs import as_blobs
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.python_member import member_lines
from weft.script.source.text import deep_stack

__all__ = ["HEADER", "script_of"]

VERSION_LINE = "# weft-script 1"

HEADER = f"{VERSION_LINE}\nfrom weft.script import ir as I, relax as R, tir as T\n"

_HEADERS = {
    "weft": HEADER,
    "tvm-0.27": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tirx as T")),
    "tvm-0.20": "\n".join(f"# from tvm.script import {name}" for name in ("ir as I", "relax as R", "tir as T")),
}


def script_of(
    node: Any, *, spelling: str = "weft", types: str = "all", line_numbers: bool = False,
    blobs: Any = None, only: str | None = None, underline: Any = None,
) -> str:  # fmt: skip
    """The script text of a module or function, or readable text of any smaller node.

    `spelling` is "weft", "tvm-0.27" or "tvm-0.20" (what those versions of the field call the same things); `types` is
    "all" or "hidden" (annotations of bindings); with `line_numbers` the text is for reading only.
    Large constants are written in the text, or, given `blobs` (a dictionary or the path of a folder), put there by
    their hash. `only` names the one function of a module to print. `underline` marks parts of the text with carets,
    for reading only: a node or a path to one (what `first_mismatch` gives), or a list of them.

    Errors: ScriptError W113 an unknown option or function, W114 what is to be underlined is not in the text.

    >>> from weft.ir import TensorType
    >>> script_of(TensorType((2, 3), "float32"))
    'R.Tensor((2, 3), "float32")'
    """
    if spelling not in SPELLINGS:
        raise ScriptError(f"unknown spelling {spelling!r}", code="W113", hint=f"one of {', '.join(SPELLINGS)}")
    if types not in ("all", "hidden"):
        raise ScriptError(f"unknown option types={types!r}", code="W113", hint='"all" or "hidden"')
    if only is not None:
        node = _only(node, only)
    marked = () if underline is None else marked_nodes(node, underline)
    with deep_stack():
        kind = _Printer if spelling == "weft" else _PeerPrinter
        if marked:
            return decorated_text(_marked_text(kind, (spelling, types == "all"), node, marked), line_numbers)
        printer = kind(spelling, types == "all")
        printer.blobs = as_blobs(blobs)
        text = printer.text(node)
    return decorated_text(text, True) if line_numbers else text


def _marked_text(kind: type[_Printer], options: tuple[str, bool], node: Any, chains: list[Chain]) -> str:
    """The text with marks around parts: printed once to see what the text shows, then with the marks."""
    marking = type("MarkingPrinter", (Marking, kind), {})
    first = marking(*options)
    first.reset_marks(chains)
    first.text(node)
    first.choose_marks()
    printer = marking(*options)
    printer.reset_marks(())
    printer.marked, printer.only_in = first.marked, first.only_in
    return printer.text(node)


def _only(node: Any, name: str) -> Any:
    if not isinstance(node, IRModule):
        raise ScriptError("only a module has functions to choose from", code="W113")
    if name not in node.functions:
        hint = did_you_mean(name, node.functions) or f"it has {', '.join(node.functions)}"
        raise ScriptError(f"the module has no function '{name}'", code="W113", hint=hint)
    function = node.functions[name]
    return function if isinstance(function, ExternFunc) else replace(function, name=name)


class _Printer(GraphPrinter, TensorPrinter):
    """Prints one node."""

    def text(self, node: Any) -> str:
        """The text of any node."""
        if isinstance(node, (IRModule, Function, PrimFunc)):
            self.lines.append(_HEADERS[self.spelling].rstrip("\n"))
            self.lines.append("")
            self.lines.append("")
            if isinstance(node, IRModule):
                self.module(node)
            else:
                name = node.name or "main"
                self.functions = {name: node}
                self.unchecked = bool(certain_findings({name: node}, [name]))
                self.function(identifier(name), name, node)
            return "\n".join(self.lines) + "\n"
        return self.fragment(node)

    def module(self, module: IRModule) -> None:
        """A module class."""
        unchecked = bool(certain_findings(module.functions, list(module.functions)))
        attrs = module.attrs
        sides = [isinstance(module.functions.get(name), Function) for name in SIDES]
        if attrs.get(REWRITER) is True and all(sides) and not unchecked:
            attrs = FrozenMap({name: value for name, value in attrs.items() if name != REWRITER})
            self.line("@R.rewriter")
        else:
            self.line("@I.ir_module(check_well_formed=False)" if unchecked else "@I.ir_module")
        self.functions = module.functions
        self.module_class = self.class_name(module)
        self.line(f"class {self.module_class}:")
        self.indent = "    "
        start = len(self.lines)
        if attrs:
            self.line(self.form_text(ALL_FORMS["I.module_attrs"], {"attrs": attrs}))
        self.meshes = [
            (f"{name}[{index}]", info)
            for name, infos in module.global_infos.items()
            for index, info in enumerate(infos if isinstance(infos, tuple) else ())
            if isinstance(info, DeviceMesh)
        ]
        if module.global_infos:
            self.line(self.form_text(ALL_FORMS["I.module_global_infos"], {"infos": module.global_infos}))
        taken: set[str] = set()
        for name, function in module.functions.items():
            if len(self.lines) > start:
                self.line("")
            written = self.function_name(name, taken)
            taken.add(written)
            if isinstance(function, PythonFunc):
                self.python_member(name, function)
            elif isinstance(function, ExternFunc):
                self.reset()
                self.line(f"{written} = {self.leaf(function)}")
            else:
                self.function(written, name, function)
        if len(self.lines) == start:
            self.line("pass")
        self.indent = ""

    def python_member(self, name: str, function: PythonFunc) -> None:
        """A Python function, by its text."""
        lines = member_lines(function, self.indent)
        if lines is None or name != function.name:
            hint = f"a member called {name!r} holds the text of one function of that name and nothing else"
            raise ScriptError(f"the Python function {name!r} has no text form", code="W116", hint=hint)
        self.line("@I.pyfunc")
        self.lines.extend(lines)

    def class_name(self, module: IRModule) -> str:
        """The name of the class of a module."""
        return identifier(module.name or "Module")

    def function_name(self, name: str, taken: set[str]) -> str:
        """The name of a function of a module as an identifier that no other has."""
        written = identifier(name)
        while written in taken or written in RESERVED:
            written += "_"
        return written

    def function(self, written: str, name: str, function: Function | PrimFunc) -> None:
        """A top-level function; `written` is its name as an identifier."""
        self.reset()
        if isinstance(function, Function):
            self.used |= signature_symbols(function) | body_symbols(function)
            self.graph_function(written, name, function)
        else:
            self.prim_function(written, name, function)

    def fragment(self, node: Any) -> str:
        """Readable text of a node that is no unit."""
        if isinstance(node, Type):
            self.symbols |= type_symbols(node)
            return self.show_type(node)
        if isinstance(node, PrimExpr):
            return self.join([(node, 0)])
        if isinstance(node, BufferRegion):
            return self.join(self.region(node))
        if isinstance(node, Buffer):
            return f"{self.name(node)}: {self.form_text(BUFFERS['T.Buffer'], self._buffer_values(node))}"
        start = len(self.lines)
        self.symbols |= _all_symbols(node)
        if isinstance(node, Stmt):
            self.statement(node)
        elif isinstance(node, (VarBinding, MatchCast)):
            self.binding(node)
        elif isinstance(node, BindingBlock):
            self.blocks((node,))
        elif isinstance(node, SeqExpr):
            self.blocks(node.blocks)
            self.line(self.leaf(node.body))
        elif isinstance(node, If):
            self._if(Var("result", None), node)  # type: ignore[arg-type]
        elif isinstance(node, Expr):
            return self.value(node)
        else:
            return repr(node)
        return "\n".join(self.lines[start:])


class _PeerPrinter(PeerPrinter, _Printer):
    """Prints one node in the spelling of another reader."""


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
