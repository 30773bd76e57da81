"""Coloured text: on terminals, and as HTML in notebooks.

Colours follow the habits of terminals: none when the output is no terminal, NO_COLOR turns them off, FORCE_COLOR on.
"""

from __future__ import annotations

import html
import io
import keyword
import os
import re
import sys
import tokenize
from collections.abc import Iterator
from typing import Any, TextIO

from weft.script.printer.module import script_of

__all__ = ["show", "to_html"]

_ANSI = {"keyword": "35", "string": "32", "number": "36", "comment": "90", "namespace": "34", "definition": "1;33"}
_HTML = {
    "keyword": "color:#8250df",
    "string": "color:#0a7d34",
    "number": "color:#0550ae",
    "comment": "color:#6e7781",
    "namespace": "color:#0969da",
    "definition": "color:#953800;font-weight:bold",
}
_NUMBERED = re.compile(r"^ *\d+ \| ?", re.MULTILINE)


def _classes(text: str) -> Iterator[tuple[str, str]]:
    """(class or "", text) for every part of the text, in order."""
    lines = text.splitlines(keepends=True)
    position = (1, 0)
    previous = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
                continue
            yield "", _between(lines, position, token.start)
            yield _class_of(token, previous), token.string
            position = token.end
            previous = token.string
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    yield "", _between(lines, position, (len(lines) + 1, 0))


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start >= end:
        return ""
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]]
    parts = [lines[start[0] - 1][start[1] :]] if start[0] <= len(lines) else []
    parts.extend(lines[start[0] : end[0] - 1])
    if end[0] <= len(lines):
        parts.append(lines[end[0] - 1][: end[1]])
    return "".join(parts)


def _class_of(token: tokenize.TokenInfo, previous: str) -> str:
    if token.type == tokenize.COMMENT:
        return "comment"
    if token.type == tokenize.STRING:
        return "string"
    if token.type == tokenize.NUMBER:
        return "number"
    if token.type == tokenize.NAME:
        if previous in ("def", "class"):
            return "definition"
        if keyword.iskeyword(token.string):
            return "keyword"
        if token.string in ("I", "R", "T", "cls"):
            return "namespace"
    return ""


def _wants_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return bool(getattr(stream, "isatty", lambda: False)()) and os.environ.get("TERM") != "dumb"


def show(node: Any, *, file: TextIO | None = None, **options: Any) -> None:
    """Print a node's script, coloured where the output is a terminal; options as in `script_of`."""
    stream = file or sys.stdout
    text = script_of(node, **options)
    if _wants_colour(stream):
        text = "".join(f"\x1b[{_ANSI[kind]}m{part}\x1b[0m" if kind else part for kind, part in _classes(text))
    stream.write(text if text.endswith("\n") else text + "\n")


def to_html(node: Any, **options: Any) -> str:
    """A node's script as coloured HTML."""
    parts = (
        f'<span style="{_HTML[kind]}">{html.escape(part)}</span>' if kind else html.escape(part)
        for kind, part in _classes(script_of(node, **options))
    )
    return f"<pre>{''.join(parts)}</pre>"
