"""Showing nodes as script text: the other direction of the syntax table.

The text of a module or function reads back as an equal node, and printing that gives the same text again. Names are
made unique per top-level function and valid; everything else is taken from the node as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from weft.errors import ScriptError
from weft.ir.graph import ExternFunc
from weft.ir.module import IRModule
from weft.ir.node import replace
from weft.ir.structure.malformed import explained_by
from weft.ir.verify import fault_of
from weft.script.printer.marks import Marks
from weft.script.printer.state import SPELLINGS, Printer, Style
from weft.script.printer.tvm.every import TVM, TvmPrinter
from weft.script.printer.unit import HEADER, write_function, write_text
from weft.script.source.annotate import Chain, decorated_text, marked_nodes
from weft.script.source.blobs import as_blobs
from weft.script.source.diagnostics import did_you_mean
from weft.script.source.text import print_deeply

__all__ = ["HEADER", "script_of"]


@explained_by(fault_of)
def script_of(
    node: Any,
    *,
    spelling: str = "weft",
    types: str = "all",
    line_numbers: bool = False,
    blobs: Any = None,
    only: str | None = None,
    underline: Any = None,
) -> str:
    """The script text of a module or function, or readable text of any smaller node.

    `spelling` is "weft", "tvm-0.27" or "tvm-0.20" (what those versions of TVM call the same things); `types` is
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
    make = Printer if spelling == "weft" else TvmPrinter
    style = {} if spelling == "weft" else TVM
    if marked:
        shown = partial(make, spelling, types == "all")
        return decorated_text(print_deeply(node, lambda: _marked_text(shown, style, node, marked)), line_numbers)
    text = print_deeply(node, lambda: write_text(make(spelling, types == "all", style, as_blobs(blobs)), node))
    return decorated_text(text, True) if line_numbers else text


def script_unchecked(module: IRModule, blobs: dict[str, bytes]) -> str:
    """The text of a module that is well formed, without another look at that; large constants that `blobs` lacks
    are put there.
    """
    return print_deeply(module, lambda: write_text(Printer(blobs=blobs, unchecked=True), module))


def _marked_text(make: Callable[[Style], Printer], style: Style, node: Any, chains: list[Chain]) -> str:
    """The text with marks around parts: printed once to see what the text shows, then with the marks."""
    marks = Marks(chains)
    wrapped = marks.around(style, write_function)
    write_text(make(wrapped), node)
    marks.choose()
    return write_text(make(wrapped), node)


def _only(node: Any, name: str) -> Any:
    if not isinstance(node, IRModule):
        raise ScriptError("only a module has functions to choose from", code="W113")
    if name not in node.functions:
        hint = did_you_mean(name, node.functions) or f"it has {', '.join(node.functions)}"
        raise ScriptError(f"the module has no function '{name}'", code="W113", hint=hint)
    function = node.functions[name]
    return function if isinstance(function, ExternFunc) else replace(function, name=name)
