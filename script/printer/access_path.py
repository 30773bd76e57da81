"""Where a statement stands in the text of a module: for errors about code that passes or schedules have made.

    locate(module, statement)   the span of the statement's head in the module's text

Of a loop that `T.grid` shows together with others it is the name of the loop's variable.
"""

from __future__ import annotations

import re
from typing import Any

from weft.errors import Source, Span
from weft.ir.tensor import For, Stmt
from weft.script.printer.state import Printer, Style
from weft.script.printer.statements import write_loop, write_statement
from weft.script.printer.unit import write_text
from weft.script.source.text import print_deeply

__all__ = ["locate"]


def locate(root: Any, target: Stmt, name: str = "<module>") -> Span | None:
    """The span of a statement in the text of `root`, or None when it does not stand there.

    >>> from weft.ir.tensor import Buffer, BufferStore, FloatImm, IntImm, PrimFunc
    >>> x = Buffer("x", (4,))
    >>> store = BufferStore(x, FloatImm(0.0), (IntImm(0),))
    >>> span = locate(PrimFunc((x,), store), store)
    >>> span.source.text[span.start : span.end]
    'x[0] = T.float32(0.0)'
    """

    def written() -> tuple[str, _Place]:
        place = _Place(target)
        return write_text(Printer(style=place.style()), root), place

    text, place = print_deeply(root, written)
    if place.found is None:
        return None
    start, word = place.found
    line = text[start : text.index("\n", start)] if "\n" in text[start:] else text[start:]
    first, end = len(line) - len(line.lstrip(" ")), len(line)
    if word:
        found = re.search(rf"\b{re.escape(word)}\b", line)
        first, end = found.span() if found is not None else (first, end)
    return Span(Source(name, text), start + first, start + end)


class _Place:
    """Where the line of a statement begins, and the word of it that means a grouped loop."""

    def __init__(self, target: Stmt) -> None:
        self.target = target
        self.found: tuple[int, str] | None = None

    def style(self) -> Style:
        """The style that notes the place on the way."""
        return {write_statement: self._statement, write_loop: self._loop}

    def _statement(self, printer: Printer, stmt: Stmt) -> None:
        if stmt is self.target:
            self.found = (_offset(printer), "")
        write_statement.plain(printer, stmt)

    def _loop(self, printer: Printer, group: list[For], head: str) -> None:
        if len(group) > 1 and any(loop is self.target for loop in group):
            self.found = (_offset(printer), printer.name(self.target.loop_var))  # type: ignore[attr-defined]
        write_loop.plain(printer, group, head)


def _offset(printer: Printer) -> int:
    return sum(len(line) + 1 for line in printer.lines)
