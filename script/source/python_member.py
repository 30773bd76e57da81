"""The text of `@I.pyfunc` functions, which a module keeps and nothing here runs.

    member ::= @I.pyfunc
               <decorators>? def name(...): <Python>

A module holds the text from behind `@I.pyfunc`, moved to the left margin; lines that begin inside a string stay as they
are, so that the text means the same at every margin.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from weft.ir.graph import PythonFunc
from weft.script.source.text import Unit
from weft.support.stack import with_stack

__all__ = ["member_lines", "member_source"]


def member_source(unit: Unit, tree: ast.FunctionDef) -> str:
    """The text of a member, its first decorator (`@I.pyfunc`) left out, at the left margin."""
    first = tree.decorator_list[1].lineno if len(tree.decorator_list) > 1 else tree.lineno
    assert tree.end_lineno is not None
    lines = unit.source.text.split("\n")[first - 1 : tree.end_lineno]
    margin = unit.offset(tree.lineno, tree.col_offset) - unit.offset(tree.lineno, 0)
    end = unit.offset(tree.end_lineno, tree.end_col_offset or 0) - unit.offset(tree.end_lineno, 0)
    lines[-1] = lines[-1][:end]
    return "\n".join(_moved(lines, tree, first, lambda line: line[min(margin, _indent(line)) :]))


def member_lines(member: PythonFunc, margin: str) -> list[str] | None:
    """The lines of a member at a margin; None when its text is not just the definition of one function of its name.

    What a reader leaves out (comments around the function, blanks on empty lines) would not come back.
    """
    try:
        body = with_stack(lambda: ast.parse(member.source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != member.name:
        return None
    lines = member.source.split("\n")
    start = min(part.lineno for part in (body[0], *body[0].decorator_list))
    end = (len(lines), len(lines[-1].encode()))
    whole = start == 1 and (body[0].end_lineno, body[0].end_col_offset) == end and "\r" not in member.source
    if not whole or _moved(lines, body[0], 1, lambda line: line) != lines:
        return None
    return _moved(lines, body[0], 1, lambda line: f"{margin}{line}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _moved(lines: list[str], tree: ast.FunctionDef, first: int, move: Callable[[str], str]) -> list[str]:
    """The lines, each moved that does not begin inside a string; `first` is the number of the first in the tree."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        constant = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
        if isinstance(node, ast.expr) and (constant or isinstance(node, ast.JoinedStr)):
            assert node.end_lineno is not None
            inside.update(range(node.lineno + 1, node.end_lineno + 1))
    return [
        line if number in inside else move(line) if line.strip() else "" for number, line in enumerate(lines, first)
    ]
