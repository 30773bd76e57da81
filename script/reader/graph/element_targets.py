"""Assignments to elements, as statements that give a name another value: tensors are values.

    y[i] = v                y = <y with [i] set to v>
    y[i] += v               y = <y with [i] set to y[i] + v>
    y[i][j] = v             y = <y with [i] set to <y[i] with [j] set to v>>
    y[i], y[j] = a, b       part, part_1 = a, b; y = <y with [i] set to part>; y = <y with [j] set to part_1>

What has an element set is a tree of its own, `Updated`, which `expressions.updates` reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.script.reader.graph.joined import assigned, at, fresh_name, name_at

__all__ = ["Updated", "changes_arrays", "root_of", "with_elements"]


class Updated(ast.expr):
    """A value with what stands at `element` (a subscript) set to `value`, or to what an operator makes of both."""

    _fields = ("base", "element", "value")

    def __init__(
        self, base: ast.expr, element: ast.Subscript, value: ast.expr, operator: ast.operator | None = None
    ) -> None:
        super().__init__()
        self.base, self.element, self.value, self.operator = base, element, value, operator
        ast.copy_location(self, element)


def with_elements(trees: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """Statements, those inside of them included, in which no element is assigned."""
    if not any(_assigns_elements(tree) for tree in trees):
        return trees
    taken = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def new_name() -> str:
        name = fresh_name("part", taken.__contains__)
        taken.add(name)
        return name

    return _statements(trees, new_name)


def changes_arrays(trees: Sequence[ast.stmt]) -> bool:
    """Whether statements change an array or a list in place, those of the functions in them included."""
    return any(
        any(isinstance(part, ast.Subscript) for target in _targets(tree) for part in _parts(target))
        or isinstance(tree, ast.AugAssign)
        or _appends(tree)
        or any(changes_arrays(inner) for _, inner in _inner(tree))
        or (isinstance(tree, (ast.FunctionDef, ast.ClassDef)) and changes_arrays(tree.body))
        for tree in trees
    )


def _appends(tree: ast.stmt) -> bool:
    called = tree.value.func if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "append"


def _inner(tree: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The lists of statements in a statement, functions left out."""
    if isinstance(tree, (ast.If, ast.For, ast.While, ast.With)):
        for field in ("body", "orelse"):
            if hasattr(tree, field):
                yield field, getattr(tree, field)


def _targets(tree: ast.stmt) -> list[ast.expr]:
    if isinstance(tree, ast.Assign):
        return tree.targets
    return [tree.target] if isinstance(tree, ast.AugAssign) else []


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _parts(part)
    else:
        yield target


def _assigns_elements(tree: ast.stmt) -> bool:
    """Whether a statement assigns elements, or one inside of it does."""
    if any(_is_element(part) for target in _targets(tree) for part in _parts(target)):
        return True
    return any(_assigns_elements(inner) for _, trees in _inner(tree) for inner in trees)


def _is_element(target: ast.expr) -> bool:
    """Whether a target is an element of a name, or of an element of one."""
    return isinstance(target, ast.Subscript) and isinstance(root_of(target), ast.Name)


def root_of(target: ast.expr) -> ast.expr:
    """What all subscripts of a target are of, itself without any."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _statements(trees: Sequence[ast.stmt], new_name: Callable[[], str]) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for tree in trees:
        if not _assigns_elements(tree):
            made.append(tree)
        elif isinstance(tree, (ast.Assign, ast.AugAssign)):
            made.extend(_assignments(tree, new_name))
        else:
            changed: dict[str, Any] = {field: _statements(inner, new_name) for field, inner in _inner(tree)}
            made.append(at(tree, type(tree)(**dict(ast.iter_fields(tree)) | changed)))
    return made


def _assignments(tree: ast.Assign | ast.AugAssign, new_name: Callable[[], str]) -> list[ast.stmt]:
    if isinstance(tree, ast.AugAssign):
        assert isinstance(tree.target, ast.Subscript)
        return [_update(tree.target, tree.value, tree, tree.op)]
    if len(tree.targets) == 1 and isinstance(tree.targets[0], ast.Subscript):
        return [_update(tree.targets[0], tree.value, tree)]
    made, value = list[ast.stmt](), tree.value
    if len(tree.targets) > 1:  # it is computed once
        name = new_name()
        made, value = [assigned(name, value, tree)], name_at(name, ast.Load(), tree)
    for target in tree.targets:
        later = list[ast.stmt]()
        made.append(at(tree, ast.Assign([_plain_target(target, later, new_name)], value)))
        made.extend(later)
    return made


def _plain_target(target: ast.expr, later: list[ast.stmt], new_name: Callable[[], str]) -> ast.expr:
    """A target in which names stand for elements, which are assigned later."""
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = [_plain_target(part, later, new_name) for part in target.elts]
        return at(target, type(target)(parts, ast.Store()))
    if not isinstance(target, ast.Subscript) or not _is_element(target):
        return target
    name = new_name()
    later.append(_update(target, name_at(name, ast.Load(), target), target))
    return name_at(name, ast.Store(), target)


def _update(target: ast.Subscript, value: ast.expr, place: ast.AST, operator: ast.operator | None = None) -> ast.stmt:
    """The statement that gives the name at the root of a target its new value."""
    whole: ast.expr = target
    while isinstance(whole, ast.Subscript):
        element = at(whole, ast.Subscript(_loaded(whole.value), whole.slice, ast.Load()))
        value, operator = Updated(element.value, element, value, operator), None
        whole = whole.value
    assert isinstance(whole, ast.Name)
    return assigned(whole.id, value, place)


def _loaded(tree: ast.expr) -> ast.expr:
    if isinstance(tree, ast.Name):
        return name_at(tree.id, ast.Load(), tree)
    if isinstance(tree, ast.Subscript):
        return at(tree, ast.Subscript(_loaded(tree.value), tree.slice, ast.Load()))
    return tree
