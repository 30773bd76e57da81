"""Showing modules as TVM's readers of this language want them: versions 0.27 and 0.20.

`script(spelling="tvm-0.27")` gives the text that this version reads as the same module: renamed forms, arguments that
its operators ask for, constants as nested lists, symbols that are declared. What it has no form for is refused by name
(ScriptError W116) and never printed as something else.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from weft.ir.graph import ExternFunc, Function, PythonFunc, Var
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.structure.visit import walk
from weft.ir.tensor import Buffer, PrimVar
from weft.script.forms.holes import string_text
from weft.script.printer.graph import body_symbols, signature_symbols
from weft.script.printer.state import identifier
from weft.script.printer.tvm.style import TVM, TvmPrinter
from weft.script.printer.unit import show_class_name, show_function_name, write_python_member

__all__ = []

# Names that a function of a module would hide from the functions after it.
_NAMESPACES = frozenset({"I", "R", "T", "tvm"})


@TVM(write_python_member)
def _python_member(printer: TvmPrinter, name: str, function: PythonFunc) -> None:
    """Refused: these versions print of such a function only that there is one."""
    printer.place = ""
    raise printer.refuse(f"the Python function '{name}'", function, "replace it by an R.ExternFunc of its name")


@TVM(show_class_name)
def _class_name(printer: TvmPrinter, module: IRModule) -> str:
    """A name of the class that nothing inside of it has: the functions speak of it."""
    printer.external = {name for name, function in module.functions.items() if isinstance(function, ExternFunc)}
    wanted = identifier(module.name or "Module")
    taken = set(module.functions) | set(_names_in(module)) | _NAMESPACES
    while wanted in taken or keyword.iskeyword(wanted):
        wanted += "_"
    return wanted


@TVM(show_function_name)
def _function_name(printer: TvmPrinter, name: str, taken: set[str]) -> str:
    """The name of a function, which is the name of its definition."""
    printer.place = f"the function '{name}'"
    if not name.isidentifier() or keyword.iskeyword(name) or name in _NAMESPACES:
        why = "it is no name" if not name.isidentifier() or keyword.iskeyword(name) else "it hides the namespace"
        printer.place = ""
        raise printer.refuse(f"a function called {string_text(name)}", hint=f"{why}: rename the function")
    return name


def _names_in(module: IRModule) -> Iterator[str]:
    """The names of variables, buffers and symbols of a module."""
    for function in module.functions.values():
        if isinstance(function, Function):
            yield from signature_symbols(function) | body_symbols(function)
        for node in walk(function) if isinstance(function, Node) else ():
            if isinstance(node, (Var, PrimVar, Buffer)):
                yield node.name
