"""The decorated units of a Python file, each as a text for the script reader. Nothing of the file is run.

    file ::= statement*
    unit ::= class decorated with `I.ir_module` | function decorated with `R.function` or `T.prim_func`

A unit stands at the top level of the file, or inside a function, class or compound statement there. Its text reads as
that unit alone: what it does not need is blank, so that every line and column is the file's. What it may need is kept:
comments, imports of the script's namespaces, and top-level assignments of literals and `TypeVar`s before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.script.diagnostics import Limits
from weft.script.source import NAMESPACE_MODULES, PRELUDE, make_source, parse_python

__all__ = ["DecoratedUnit", "find_units"]

_KINDS = {"I.ir_module": "module", "R.function": "function", "T.prim_func": "prim_func"}

Definition = ast.ClassDef | ast.FunctionDef


@dataclass(frozen=True, slots=True)
class DecoratedUnit:
    """One decorated definition: its name, "module", "function" or "prim_func", its first line, and its text."""

    name: str
    kind: str
    line: int
    text: str


def find_units(text: str, filename: str = "<text>") -> list[DecoratedUnit]:
    """The units of a file, in order.

    Raises: ScriptError W101 where the file is not Python, W103 when it is nested too deeply.

    >>> text = "import os\\n@R.function\\ndef main(x: R.Tensor((2,), 'float32')):\\n    return x\\n"
    >>> [(unit.name, unit.kind, unit.line) for unit in find_units(text)]
    [('main', 'function', 2)]
    """
    source = make_source(filename, text)
    tree = parse_python(source, Limits())
    aliases = _aliases(tree)
    lines = source.text.split("\n")
    return [
        DecoratedUnit(node.name, kind, node.decorator_list[0].lineno, _only([*_context(tree, node), node], tree, lines))
        for node, kind in _definitions(tree.body, aliases)
    ]


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Name in the file -> "I", "R" or "T", or "R.function" for a decorator that is imported by itself."""
    aliases = dict(PRELUDE)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for item in node.names:
                target = _imported(node.module, item.name)
                if target:
                    aliases[item.asname or item.name] = target
    return aliases


def _imported(module: str, name: str) -> str | None:
    """What `from module import name` gives, if it is of the script's."""
    space = NAMESPACE_MODULES.get(module)
    return f"{space}.{name}" if space else NAMESPACE_MODULES.get(f"{module}.{name}")


def _definitions(body: Sequence[ast.AST], aliases: dict[str, str]) -> Iterator[tuple[Definition, str]]:
    """Decorated definitions in a body and in the statements that it holds, but not inside units."""
    for node in body:
        kind = _kind(node, aliases) if isinstance(node, Definition) else None
        if isinstance(node, Definition) and kind:
            yield node, kind
        else:
            for part in ("body", "orelse", "handlers", "finalbody", "cases"):
                inner = getattr(node, part, [])
                yield from _definitions(inner if isinstance(inner, list) else [], aliases)


def _kind(node: Definition, aliases: dict[str, str]) -> str | None:
    """What its decorators make of a definition, or None when it is no unit."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = _KINDS.get(_canonical(called, aliases))
        if kind:
            return kind
    return None


def _canonical(expr: ast.expr, aliases: dict[str, str]) -> str:
    """A decorator as "R.function", whatever the file calls the namespace; "" for what is not of the script's."""
    if isinstance(expr, ast.Name):
        return aliases.get(expr.id, "")
    if not isinstance(expr, ast.Attribute):
        return ""
    if isinstance(expr.value, ast.Name):
        return f"{aliases.get(expr.value.id, '')}.{expr.attr}"
    space = NAMESPACE_MODULES.get(ast.unparse(expr.value))  # weft.script.relax.function
    return f"{space}.{expr.attr}" if space else ""


def _context(tree: ast.Module, unit: Definition) -> list[ast.stmt]:
    """The top-level statements before a unit that it may need."""
    return [node for node in tree.body if node.lineno < unit.lineno and _is_context(node)]


def _is_context(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return bool(node.module) and not node.level and all(_imported(node.module, item.name) for item in node.names)
    if isinstance(node, ast.AnnAssign):
        return isinstance(node.target, ast.Name) and node.value is not None and _is_constant(node.value)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and _is_constant(node.value)
    return False


def _is_constant(value: ast.expr) -> bool:
    """A literal, or `TypeVar("n")`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "TypeVar"
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


def _only(kept: Sequence[ast.stmt], tree: ast.Module, lines: Sequence[str]) -> str:
    """The lines of the kept statements and of comments between statements; every other line is empty."""
    shown = [True] * len(lines)
    for node in tree.body:
        _mark(shown, node, False)
    for node in kept:
        _mark(shown, node, True)
    end = kept[-1].end_lineno or len(lines)
    return "\n".join(line if show else "" for line, show in zip(lines[:end], shown, strict=False)) + "\n"


def _mark(shown: list[bool], node: ast.stmt, value: bool) -> None:
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])
    last = node.end_lineno or first
    shown[first - 1 : last] = [value] * (last - first + 1)
