"""Python and text to IR and back: the syntax table, the readers, the printer, the decorators.

parse(text)         the module or function that a text defines (runs nothing)
script_of(node)     the text of a node
show(node)          print it, coloured on terminals
to_html(node)       the same for notebooks
ir, relax, tir      the namespaces I, R, T of scripts
"""

from __future__ import annotations

from weft.script.diagnostics import Limits
from weft.script.printer import script_of
from weft.script.read_module import parse
from weft.script.show import show, to_html
from weft.script.units import FileUnit, read_units

__all__ = ["FileUnit", "Limits", "parse", "read_units", "script_of", "show", "to_html"]

if __name__ != "weft.script":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.script, not script")
