"""Python and text to IR and back.

    parse(text)         the module or function that a text defines (runs nothing)
    read_units(text)    every decorated unit of a Python file
    script_of(node)     the text of a node
    show(node)          print it, coloured on terminals
    to_html(node)       the same for notebooks
    statement_form(...) a statement form from outside
    ir, relax, tir      the namespaces I, R, T of scripts

    forms/          the syntax table: how every construct is written, once, for reading and printing
    reader/         Python syntax trees to IR: a session and functions (session, tree), registered by the form that they
                    read; expression/ for what both levels share, graph/ and tensor/, tvm/ for other spellings, module/
    printer/        IR to text; tvm/ for text that TVM reads
    source/         texts: where they are found, places in them, findings about them

    text -> source.text -> reader.module -> reader.graph | reader.tensor -> node     decorators feed live Python too
    node -> printer.module -> printer.graph | printer.tensor -> text

The stubs (*.pyi) are written by docs/stubs.py.
"""

from __future__ import annotations

from weft.script.printer.module import script_of
from weft.script.printer.show import show, to_html
from weft.script.reader.module.unit import parse
from weft.script.source.diagnostics import Limits
from weft.script.source.units import FileUnit, read_units
from weft.script.statement_form import remove_statement_form, statement_form

__all__ = [
    "FileUnit",
    "Limits",
    "parse",
    "read_units",
    "remove_statement_form",
    "script_of",
    "show",
    "statement_form",
    "to_html",
]

if __name__ != "weft.script":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.script, not script")
