"""Marks around the texts of chosen nodes; of what a text does not show, around the nearest node that it shows.

Printing goes twice: first to see which nodes the text shows, then with marks around those that were chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.ir.graph import Var
from weft.ir.node import Node
from weft.script.printer.forms import prim_pieces
from weft.script.printer.graph import write_binding
from weft.script.printer.scalars import show_box
from weft.script.printer.state import Printer, Style, Varies
from weft.script.printer.statements import write_statement
from weft.script.printer.types import show_type
from weft.script.printer.values import show_leaf, show_value
from weft.script.source.annotate import CLOSE, OPEN, Chain

__all__ = ["Marks"]


class Marks:
    """What is looked for and, once the text was printed, what is marked."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = chains
        self.marked = frozenset(id(node) for chain in chains for node in chain)
        self.shown: set[int] = set()
        self.holders: list[int] = []  # nodes around the one that is printed
        self.only_in: dict[int, set[int]] = {}  # for variables: the holders in which they are marked

    def choose(self) -> None:
        """After a first printing: of each chain keep the innermost node that was shown."""
        chosen: set[int] = set()
        for chain in self.chains:
            position = next((index for index, node in enumerate(chain) if id(node) in self.shown), None)
            if position is None:
                continue
            node = chain[position]
            chosen.add(id(node))
            holder = next((item for item in chain[position + 1 :] if isinstance(item, Node)), None)
            if isinstance(node, Var) and holder is not None:
                self.only_in.setdefault(id(node), set()).add(id(holder))
        self.marked = frozenset(chosen)

    def around(self, style: Style, function: Varies[..., Any]) -> Style:
        """A style with marks; `function` is what writes a function."""
        made = dict(style)
        texts = {show_leaf: False, show_type: False, show_value: True}
        made.update({show: self._text(style.get(show, show.plain), holds) for show, holds in texts.items()})
        made[prim_pieces] = self._scalar(style.get(prim_pieces, prim_pieces.plain))
        made[show_box] = self._box(style.get(show_box, show_box.plain))
        for write, position in ((write_statement, 0), (write_binding, 0), (function, 2)):
            made[write] = self._lines(style.get(write, write.plain), position)
        return made

    def _is_marked(self, node: Any) -> bool:
        if id(node) not in self.marked:
            return False
        self.shown.add(id(node))
        places = self.only_in.get(id(node))
        return places is None or not self.holders or self.holders[-1] in places

    def _text(self, show: Callable[..., str], holds: bool) -> Callable[..., str]:
        def marked(printer: Printer, node: Any) -> str:
            if holds:
                self.holders.append(id(node))
            try:
                text = show(printer, node)
            finally:
                if holds:
                    self.holders.pop()
            return f"{OPEN}{text}{CLOSE}" if self._is_marked(node) else text

        return marked

    def _scalar(self, show: Callable[..., tuple[list[Any], int]]) -> Callable[..., tuple[list[Any], int]]:
        def marked(printer: Printer, expr: Any) -> tuple[list[Any], int]:
            pieces, precedence = show(printer, expr)
            return ([OPEN, *pieces, CLOSE] if self._is_marked(expr) else pieces), precedence

        return marked

    def _box(self, show: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def marked(printer: Printer, region: Any) -> list[Any]:
            pieces = show(printer, region)
            return [OPEN, *pieces, CLOSE] if self._is_marked(region) else pieces

        return marked

    def _lines(self, write: Callable[..., None], position: int) -> Callable[..., None]:
        """The first line that a node writes, the head of a function, is marked."""

        def marked(printer: Printer, *arguments: Any) -> None:
            node, lines, start = arguments[position], printer.lines, len(printer.lines)
            self.holders.append(id(node))
            try:
                write(printer, *arguments)
            finally:
                self.holders.pop()
            if len(lines) > start and self._is_marked(node):
                head = next((at for at in range(start, len(lines)) if lines[at].lstrip().startswith("def ")), start)
                body = lines[head].lstrip(" ")
                lines[head] = f"{lines[head][: len(lines[head]) - len(body)]}{OPEN}{body}{CLOSE}"

        return marked
