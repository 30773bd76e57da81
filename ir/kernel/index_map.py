"""Index maps: where the elements of a tensor go under another layout.

    map ::= "lambda i, j: (expr, ...)"        over + - * // % and whole numbers

An index map is kept as its text in canonical form, with indices i0, i1, ...; a Python function of the indices is read
as it (it is called with symbols). Errors: ScriptError W142 no index map; ShapeError W205 an index that may be negative.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from weft.errors import ScriptError, ShapeError, Span
from weft.ir.dim import Dim, DimExpr, free_symbols, maximum, operation, parse_dim, prove_nonnegative, substitute, symbol
from weft.ir.node import Node, ignored, node
from weft.support.guards import is_listing
from weft.support.stack import with_stack

__all__ = ["IndexMap", "MappedLayout", "index_map", "index_map_text", "read_index_map"]


@node
class MappedLayout(Node):
    """An index map as attribute data, by its canonical text; `inverse` where the text states it.

    >>> MappedLayout("lambda i0, i1: (i1, i0)").inverse
    ''
    """

    text: str
    inverse: str = ""
    span: Span | None = ignored(default=None)


class IndexMap:
    """Where the element at indices i0, i1, ... goes: one dimension expression for each axis of the result."""

    def __init__(self, count: int, targets: tuple[Dim, ...]) -> None:
        self.names = tuple(f"i{position}" for position in range(count))
        self.targets = targets

    def __str__(self) -> str:
        parts = ", ".join(map(str, self.targets))
        return f"lambda {', '.join(self.names)}: ({parts}{',' if len(self.targets) == 1 else ''})"

    def sizes(self, dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """The sizes of the result for sizes of the data; ShapeError W205 where an index may be negative."""
        ranges = dict(zip(self.names, dims, strict=True))
        found: list[Dim] = []
        for target in self.targets:
            low, high = _bounds(target, ranges)
            if prove_nonnegative(low) is not True:
                raise ShapeError(f"the index {target} may be negative", code="W205")
            size = high + 1  # of data without elements, less than nothing
            found.append(size if prove_nonnegative(size) is True else maximum(size, 0))
        return tuple(found)


def _bounds(target: Dim, ranges: dict[str, Dim]) -> tuple[Dim, Dim]:
    """The least and the greatest value of an index expression (of a remainder: whatever its operand is)."""
    kind, operands = operation(target)
    if kind == "constant":
        return operands[0], operands[0]
    if kind == "symbol":
        return 0, ranges[operands[0]] - 1
    if kind == "add":
        parts = [_bounds(part, ranges) for part in operands]
        return sum((low for low, _ in parts[1:]), parts[0][0]), sum((high for _, high in parts[1:]), parts[0][1])
    if kind == "mul" and len(operands) == 2 and isinstance(operands[0], int):
        low, high = (bound * operands[0] for bound in _bounds(operands[1], ranges))
        return (low, high) if operands[0] >= 0 else (high, low)
    if kind in ("floordiv", "mod") and isinstance(operands[1], int) and operands[1] > 0:
        if kind == "mod":
            return 0, operands[1] - 1
        low, high = _bounds(operands[0], ranges)
        return low // operands[1], high // operands[1]
    raise ShapeError(f"an index map has no {target}", code="W205", hint="it is made of + - * // % by whole numbers")


def index_map(count: int, targets: Any) -> IndexMap:
    """The index map with the given targets; ScriptError W142 for anything else than expressions of i0, i1, ..."""
    listed: tuple[Any, ...] = tuple(targets) if is_listing(targets) else (targets,)
    known = {f"i{position}" for position in range(count)}
    for target in listed:
        plain = isinstance(target, int) and not isinstance(target, bool)
        if not (plain or (isinstance(target, DimExpr) and set(free_symbols(target)) <= known)):
            raise ScriptError(f"an index map gives {target!r}, which is no expression of its indices", code="W142")
    return IndexMap(count, listed)


def index_map_text(value: Any) -> str:
    """The canonical text of an index map given as a function or as text; ScriptError W142 when it is none.

    >>> index_map_text(lambda n, c: (n, c // 4, c % 4))
    'lambda i0, i1: (i0, i1 // 4, i1 % 4)'
    """
    return str(read_index_map(value) if isinstance(value, str) else _called(value))


def _called(function: Callable[..., Any]) -> IndexMap:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ScriptError("an index map must be a function of the indices", code="W142") from None
    if any(each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in parameters):
        raise ScriptError("an index map names its indices one by one", code="W142", hint="lambda i, j: (j, i)")
    count = len(parameters)
    return index_map(count, function(*(symbol(f"i{position}") for position in range(count))))


@lru_cache(maxsize=1 << 10)
def read_index_map(text: str) -> IndexMap:
    """The index map of a text; ScriptError W142 when it is none."""
    try:
        tree = with_stack(lambda: ast.parse(text.strip(), mode="eval")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if not isinstance(tree, ast.Lambda) or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
        hint = 'write it as "lambda i, j: (j, i)"'
        raise ScriptError(f"{text!r} is not an index map", code="W142", hint=hint)
    own = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
    names: dict[str, Dim] = {name: symbol(f"i{position}") for position, name in enumerate(own)}
    parts = tree.body.elts if isinstance(tree.body, (ast.Tuple, ast.List)) else [tree.body]
    targets = [parse_dim(ast.unparse(part)) for part in parts]
    for name in (name for target in targets for name in free_symbols(target)):
        if name not in names:
            raise ScriptError(f"{name!r} in the index map {text!r} is no index of it", code="W142")
    return index_map(len(own), tuple(substitute(target, names) for target in targets))
