"""The body of a loop in the form that functions have: no jumps, and each `if` gives all the names that it binds.

    while c:                  goes_on = True
        a = ...               while goes_on and c:
        if t:                     a = ...
            b = ...               if t: b = ...; goes_on = False; joined = (b, goes_on)
            break                 else: d = ...; goes_on = True; joined = (b, goes_on)
        d = ...                   b, goes_on = joined

Statements after an `if` that may leave the iteration move into the branches that do not leave. An `if` gives the names
that have a value before it and are bound in a branch, and those that both branches bind. The flag is carried, and the
condition asks it before each iteration; a loop without `break` has none.

    >>> tree = ast.parse("while c:\\n    if t:\\n        continue\\n    b = b + 1").body[0]
    >>> print(ast.unparse(straight(tree, lambda name: name == "b").body[0]))
    if t:
        pass
        b = b
    else:
        b = b + 1
        b = b
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["LoopBody", "bound_names", "straight"]

_T = TypeVar("_T", bound=ast.AST)
_FLAG, _JOINED = "goes_on", "joined"


@dataclass(frozen=True)
class LoopBody:
    """The statements of a body, and the name of the flag that says whether to go on (None without `break`)."""

    body: list[ast.stmt]
    flag: str | None


def straight(tree: ast.For | ast.While, known: Callable[[str], bool]) -> LoopBody:
    """The body of a loop without jumps; `known` says which names have a value before the loop."""
    flag = _FLAG if _leaves(tree.body, ast.Break) else None
    body = _Straight(flag).statements(tree.body)
    return LoopBody(_Joined(known, flag).statements(body), flag)


def bound_names(trees: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, those of the statements in them included, functions left out."""
    stack: list[ast.AST] = list(trees)
    while stack:
        current = stack.pop(0)
        if isinstance(current, ast.FunctionDef):
            yield current.name
        elif isinstance(current, ast.Name):
            if isinstance(current.ctx, ast.Store):
                yield current.id
        elif not isinstance(current, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            stack[:0] = list(ast.iter_child_nodes(current))


def _leaves(trees: Sequence[ast.stmt], kind: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> bool:
    """Whether some of the statements may leave the iteration; loops inside have jumps of their own."""
    return any(
        isinstance(tree, kind) or (isinstance(tree, ast.If) and _leaves([*tree.body, *tree.orelse], kind))
        for tree in trees
    )


class _Straight:
    """Takes jumps out; the flag, where there is one, is set at each end of an iteration."""

    def __init__(self, flag: str | None) -> None:
        self.flag = flag

    def statements(self, trees: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements without jumps."""
        made: list[ast.stmt] = []
        for position, tree in enumerate(trees):
            if isinstance(tree, (ast.Break, ast.Continue)):
                return [*made, *self._end(tree)]
            if isinstance(tree, ast.If) and _leaves([tree], (ast.Break, ast.Continue)):
                rest = trees[position + 1 :]
                then, other = self.statements([*tree.body, *rest]), self.statements([*tree.orelse, *rest])
                return [*made, _at(tree, ast.If(tree.test, then or [_at(tree, ast.Pass())], other))]
            made.append(tree)
        return [*made, *(self._end(trees[-1]) if trees else ())]

    def _end(self, tree: ast.stmt) -> list[ast.stmt]:
        if self.flag is None:
            return [_at(tree, ast.Pass())] if isinstance(tree, ast.Continue) else []
        return [_assign(self.flag, _at(tree, ast.Constant(not isinstance(tree, ast.Break))), tree)]


class _Joined:
    """Has each `if` end both branches by all the names that it gives."""

    def __init__(self, known: Callable[[str], bool], flag: str | None) -> None:
        self.known = known
        self.bound: set[str] = {flag} if flag is not None else set()

    def statements(self, trees: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements in which no `if` loses a name."""
        made: list[ast.stmt] = []
        for tree in trees:
            made.extend(self._if(tree) if isinstance(tree, ast.If) else [tree])
            self.bound.update(bound_names([tree]))
        return made

    def _if(self, tree: ast.If) -> list[ast.stmt]:
        then_names, other_names = dict.fromkeys(bound_names(tree.body)), dict.fromkeys(bound_names(tree.orelse))
        names = [
            name
            for name in {**then_names, **other_names}
            if (name in then_names and name in other_names) or name in self.bound or self.known(name)
        ]
        if not names:
            return [tree]
        before = set(self.bound)
        branches = []
        for branch in (tree.body, tree.orelse):
            self.bound = set(before)
            branches.append([*self.statements(branch), self._given(names, tree)])
        self.bound = before
        made: list[ast.stmt] = [_at(tree, ast.If(tree.test, branches[0], branches[1]))]
        if len(names) > 1:
            targets = _at(tree, ast.Tuple([_name(name, ast.Store(), tree) for name in names], ast.Store()))
            made.append(_at(tree, ast.Assign([targets], _name(_JOINED, ast.Load(), tree))))
        return made

    @staticmethod
    def _given(names: Sequence[str], tree: ast.stmt) -> ast.stmt:
        values = [_name(name, ast.Load(), tree) for name in names]
        if len(names) == 1:
            return _assign(names[0], values[0], tree)
        return _assign(_JOINED, _at(tree, ast.Tuple(list(values), ast.Load())), tree)


def _at(place: ast.AST, made: _T) -> _T:
    return ast.copy_location(made, place)


def _name(name: str, context: ast.expr_context, place: ast.AST) -> ast.expr:
    return _at(place, ast.Name(name, context))


def _assign(name: str, value: ast.expr, place: ast.stmt) -> ast.stmt:
    return _at(place, ast.Assign([_name(name, ast.Store(), place)], value))
