"""What a `for` goes through: ranges that only a run decides, the rows of tensors, and both together.

    source ::= range(start, stop, step) | tensor | enumerate(source, start) | zip(source, ...) | reversed(source)

A source has a number of items, and an expression for the item at an index. As in Python, rows are those that an array
has when their turn comes: of a name whose elements the loop assigns they are read anew in each iteration. Everything
else that can be looped over is known while reading, and its loop is unrolled: so is a range that is written out, unless
it has many rounds or its rounds leave it early (`unrolled` says how many are many).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from weft.ir.deduction.infer import type_text
from weft.ir.dim import Dim, DimExpr, minimum, prove_equal
from weft.ir.graph import Expr, PrimValue, Tuple
from weft.ir.op.program.loop import iterations
from weft.ir.types import TensorType
from weft.script.reader.expression.arguments import KnownValue
from weft.script.reader.graph.bindings import as_leaf, type_of
from weft.script.reader.graph.element_targets import Updated
from weft.script.reader.graph.expressions.boundaries import counted_range
from weft.script.reader.graph.joined import at
from weft.script.reader.graph.session import GraphSession
from weft.script.reader.scope import is_dim
from weft.script.source.text import MISSING
from weft.support.records import dataclass

__all__ = ["Bounds", "Source", "changed_names", "sized", "source_of", "table_source"]

Bounds = tuple[Any, Any, Any]


@dataclass(frozen=True)
class Source:
    """The bounds of the index, the tree of the whole, and the item at an index (None: it is the index)."""

    bounds: Bounds
    tree: ast.expr
    item: Callable[[ast.expr], ast.expr] | None = None
    known: bool = False  # a range that is known while reading
    arrays: tuple[Expr, ...] = ()  # whose rows are those that they had before the loop

    @property
    def count(self) -> Dim | None:
        """How many items there are; None where only a run decides."""
        return iterations(Tuple(tuple(PrimValue(b, "int64") if is_dim(b) else b for b in self.bounds)))


def changed_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that a loop gives another value by assigning elements of it, and in no other way."""
    bound, updated = Counter[str](), Counter[str]()
    for node in (node for tree in body for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
        elif isinstance(node, ast.Assign) and isinstance(node.value, Updated):
            updated.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(name for name, count in updated.items() if bound[name] == count)


def source_of(session: GraphSession, tree: ast.expr, changed: frozenset[str] = frozenset()) -> Source | ast.expr:
    """The source of a loop, or the tree of a value that is known while reading, with what was read of it.

    `changed` are names of which an iteration reads the rows anew (`changed_names`).
    """
    name = _function(session, tree)
    if name is None:
        value = session.value(tree)
        value = as_leaf(session, value, tree) if isinstance(value, Expr) else value
        return _rows(session, value, tree, changed) or KnownValue(value, tree)
    assert isinstance(tree, ast.Call)
    if name == "range":
        return _range(session, tree)
    gone_through = tree.args[:1] if name == "enumerate" else tree.args
    found = [source_of(session, argument, changed) for argument in gone_through]
    parts = [part for part in found if isinstance(part, Source)]
    if len(parts) < len(found) or all(part.known for part in parts):
        given = [part.tree if isinstance(part, Source) else part for part in found]
        return at(tree, ast.Call(tree.func, [*given, *tree.args[len(given) :]], tree.keywords))
    made = _COMBINED[name](session, [sized(session, part, tree) for part in parts], tree)
    return replace(made, arrays=tuple(array for part in parts for array in part.arrays))


def table_source(session: GraphSession, tree: ast.expr) -> Source | None:
    """Numbers that are known while reading as the source of a loop that a run may leave; None for other values."""
    values = session.value(tree)
    if not isinstance(values, (tuple, list)) or not values or not (_are(values, (int, float)) or _are_rows(values)):
        return None
    whole = KnownValue(values, tree)
    return Source((0, len(values), 1), whole, lambda index: at(index, ast.Subscript(whole, index, ast.Load())))


def _are(values: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(values, (tuple, list)) and all(type(value) in kinds for value in values)


def _are_rows(values: Any) -> bool:
    """Whether values are integers in rows of one length."""
    return all(_are(row, (int,)) for row in values) and len({len(row) for row in values}) == 1


def _function(session: GraphSession, tree: ast.expr) -> str | None:
    """The name of the function of Python that makes the source."""
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.func.id not in _FUNCTIONS:
        return None
    if session.scope.get(tree.func.id) is not MISSING or not tree.args:
        return None
    if any(isinstance(argument, ast.Starred) for argument in tree.args):
        return None
    plain = not tree.keywords or (tree.func.id == "enumerate" and [word.arg for word in tree.keywords] == ["start"])
    return tree.func.id if plain and _FUNCTIONS[tree.func.id](len(tree.args)) else None


_FUNCTIONS: dict[str, Callable[[int], bool]] = {
    "range": lambda count: count <= 3,
    "enumerate": lambda count: count <= 2,
    "zip": lambda count: count > 0,
    "reversed": lambda count: count == 1,
}


def _range(session: GraphSession, tree: ast.Call) -> Source | ast.expr:
    values = [session.value(argument) for argument in tree.args]
    bounds = (0, values[0], 1) if len(values) == 1 else (*values, 1) if len(values) == 2 else tuple(values)
    start, stop, step = bounds
    if any(isinstance(value, (Expr, DimExpr)) for value in bounds):
        settled: list[ast.expr] = [KnownValue(value, place) for value, place in zip(values, tree.args, strict=True)]
        return Source((start, stop, step), at(tree, ast.Call(tree.func, settled, [])))
    if all(type(value) is int for value in bounds) and step:
        return Source((start, stop, step), KnownValue(range(start, stop, step), tree), known=True)
    return at(tree, ast.Call(tree.func, [KnownValue(value, tree) for value in values], []))


def _rows(session: GraphSession, value: Any, tree: ast.expr, changed: frozenset[str] = frozenset()) -> Source | None:
    """A tensor as the source of its rows."""
    ty = type_of(session, value, tree) if isinstance(value, Expr) else None
    if not isinstance(ty, TensorType):
        return None
    if not ty.dims:
        message = f"a loop goes through the rows of a tensor of known rank above 0, got {type_text(ty)}"
        raise session.fail("W115", message, tree, "use R.match_cast to say its shape" if ty.ndim else None)
    is_read_anew = isinstance(tree, ast.Name) and tree.id in changed
    whole = tree if is_read_anew else KnownValue(value, tree)
    made = Source((0, ty.dims[0], 1), whole, lambda index: at(index, ast.Subscript(whole, index, ast.Load())))
    return made if is_read_anew else replace(made, arrays=(value,))


def _item(source: Source, index: ast.expr) -> ast.expr:
    """The item of a source at an index that counts from 0."""
    if source.item is not None:
        return source.item(index)
    start, _, step = source.bounds
    scaled = index if step == 1 else _binary(index, ast.Mult(), KnownValue(step, index))
    return scaled if start == 0 else _binary(scaled, ast.Add(), KnownValue(start, index))


def _binary(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    return at(left, ast.BinOp(left, operator, right))


def sized(session: GraphSession, source: Source, tree: ast.AST) -> Source:
    """A source whose number of items has a name: a range that only a run decides is the rows of a tensor."""
    if source.count is not None:
        return source
    numbers = counted_range(session, source.bounds, "rounds", source.tree)
    made = _rows(session, numbers, source.tree)
    assert made is not None
    return made


def _count(source: Source) -> Dim:
    count = source.count
    assert count is not None  # of what is `sized`
    return count


def _enumerate(session: GraphSession, parts: list[Source], tree: ast.Call) -> Source:
    source, extra = parts[0], [*tree.args[1:], *(word.value for word in tree.keywords)]
    start = session.value(extra[0]) if extra else 0

    def item(index: ast.expr) -> ast.expr:
        number = index if start == 0 else _binary(index, ast.Add(), KnownValue(start, tree))
        return at(index, ast.Tuple([number, _item(source, index)], ast.Load()))

    return Source((0, _count(source), 1), tree, item)


def _zip(session: GraphSession, parts: list[Source], tree: ast.Call) -> Source:
    count = _count(parts[0])
    for part in parts[1:]:
        other = _count(part)
        count = count if prove_equal(count, other) is True else minimum(count, other)

    def item(index: ast.expr) -> ast.expr:
        return at(index, ast.Tuple([_item(part, index) for part in parts], ast.Load()))

    return Source((0, count, 1), tree, item)


def _reversed(session: GraphSession, parts: list[Source], tree: ast.Call) -> Source:
    count = _count(parts[0])

    def item(index: ast.expr) -> ast.expr:
        return _item(parts[0], _binary(KnownValue(count - 1, tree), ast.Sub(), index))

    return Source((0, count, 1), tree, item)


_COMBINED: dict[str, Callable[[GraphSession, list[Source], ast.Call], Source]] = {
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
}
