"""Where the functions that show nodes are registered, by the class of the node.

    @SHOWN.statement(For)     a statement of a tensor function     f(printer, node), writes lines
    @SHOWN.scalar(Binary)     a tensor-level expression            f(printer, node) -> pieces of text and precedence
    @SHOWN.leaf(Constant)     a leaf of a graph function           f(printer, node) -> text
    @SHOWN.hole("extent")     a kind of argument (see `holes`)     f(printer, value) -> text or pieces

The other direction of `reading`.
"""

from __future__ import annotations

from weft.script.forms.reading import Table

__all__ = ["SHOWN", "Showing"]


class Showing:
    """The functions that show nodes and arguments."""

    def __init__(self) -> None:
        self.statement: Table[type] = Table()
        self.scalar: Table[type] = Table()
        self.leaf: Table[type] = Table()
        self.hole: Table[str] = Table()


SHOWN = Showing()
