"""Python and text to IR and back.

    parse(text)         the module or function that a text defines (runs nothing)
    read_units(text)    every decorated unit of a Python file
    script_of(node)     the text of a node
    show(node)          print it, coloured on terminals
    to_html(node)       the same for notebooks
    ir, relax, tir      the namespaces I, R, T of scripts

    text -> source -> read_module -> read_graph | read_tensor -> node          decorators feed live Python the same way
    node -> printer -> print_graph | print_tensor -> text

Both ways use one table: `syntax` (the forms), `kinds` (the arguments of forms), `defaults` and `constants`. The readers
build on each other: read_expression, read_call, read_static (what is known while reading: macros, loops, captured
functions), reader (types); then for graph functions read_value, read_index, read_assign, read_region, read_graph; for
tensor functions read_scalar, read_intrinsic, read_buffer, read_block, read_declaration, read_thread, read_store,
read_binding, read_early and read_recent (spellings of other releases), read_tensor. `live_source` finds the text of a
running program, `blobs` keeps data beside a text, `underline` marks parts of one; the stubs (*.pyi) are written by
docs/stubs.py.
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
