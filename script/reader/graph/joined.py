"""Branches that give several names: each `if` ends both branches by one tuple of all the names that it gives.

    if t: b = ...             if t: b = ...; joined = (b, c)
    else: b = ...; c = ...    else: b = ...; c = ...; joined = (b, c)
                              b, c = joined

An `if` gives the names that have a value before it and are bound in a branch, and those that both branches bind.

    >>> tree = ast.parse("if t:\\n    b = f(b)").body[0]
    >>> print(ast.unparse(joined([tree], lambda name: name == "b")[0]))
    if t:
        b = f(b)
        b = b
    else:
        b = b
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from typing import TypeVar

from weft.support.records import dataclass

__all__ = [
    "Following",
    "assigned",
    "at",
    "bound_names",
    "fresh_name",
    "joined",
    "joined_if",
    "live_after",
    "live_in",
    "loaded_names",
    "name_at",
]

_T = TypeVar("_T", bound=ast.AST)
_Known = Callable[[str], bool]


_GIVES_ALL = "gives_all"
"""The attribute of the tree of an `if` that gives what it can."""


def at(place: ast.AST, made: _T) -> _T:
    """A tree that stands where another one does."""
    return ast.copy_location(made, place)


def name_at(name: str, context: ast.expr_context, place: ast.AST) -> ast.expr:
    """A name at the place of a tree."""
    return at(place, ast.Name(name, context))


def assigned(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    """`name = value` at the place of a tree."""
    return at(place, ast.Assign([name_at(name, ast.Store(), place)], value))


def bound_names(trees: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, those of the statements in them included, functions left out."""
    stack: list[ast.AST] = list(reversed(trees))
    while stack:
        current = stack.pop()
        if isinstance(current, ast.FunctionDef):
            yield current.name
        elif isinstance(current, ast.Name):
            if isinstance(current.ctx, ast.Store):
                yield current.id
        elif not isinstance(current, (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)):
            stack.extend(reversed(list(ast.iter_child_nodes(current))))


def loaded_names(tree: ast.AST) -> set[str]:
    """The names that a statement reads; one that it updates (`x += 1`) is read."""
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    updated = (node.target for node in ast.walk(tree) if isinstance(node, ast.AugAssign))
    return found | {target.id for target in updated if isinstance(target, ast.Name)}


@dataclass(eq=False)
class Following:
    """The names that the statements after a position of a block read, and those after the block around it."""

    trees: Sequence[ast.stmt]
    outer: Container[str]
    position: int = 0
    after: Container[str] = ()  # names that are read after a loop around the block, which hands on only what it binds
    _last: dict[str, int] | None = None  # name -> the last statement that reads it

    def __contains__(self, name: object, /) -> bool:
        if self._last is None:
            self._last = {name: position for position, tree in enumerate(self.trees) for name in loaded_names(tree)}
        return self._last.get(str(name), -1) > self.position or str(name) in self.outer

    @property
    def statement(self) -> ast.stmt | None:
        """The statement at the position."""
        return self.trees[self.position] if 0 <= self.position < len(self.trees) else None

    def is_live(self, name: str) -> bool:
        """Whether the value that a name has after the position may be read."""
        read = _is_read(self.trees[self.position + 1 :], name)
        return any(live_in(names, name) for names in (self.outer, self.after)) if read is None else read


def live_in(names: Container[str], name: str) -> bool:
    """Whether the value of a name may be read, of names that are, or by what follows."""
    return names.is_live(name) if isinstance(names, Following) else name in names


def live_after(names: Container[str], name: str) -> bool:
    """The same of a value that the name has before the current statement, which may give it another one."""
    statement = names.statement if isinstance(names, Following) else None
    return live_in(names, name) and (statement is None or name not in surely_bound([statement]))


def _is_read(trees: Sequence[ast.stmt], name: str) -> bool | None:
    """Whether statements read the value that a name has before them; None where they neither do nor give another."""
    for tree in trees:
        found = _is_read_by(tree, name)
        if found is not None:
            return found
    return None


def _is_read_by(tree: ast.stmt, name: str) -> bool | None:
    if isinstance(tree, ast.If):
        if name in loaded_names(tree.test):
            return True
        found = [_is_read(branch, name) for branch in (tree.body, tree.orelse)]
        return True if True in found else None if None in found else False
    if isinstance(tree, ast.For) and name in bound_names([at(tree, ast.Assign([tree.target], tree.iter))]):
        return True if name in loaded_names(tree.iter) else None  # an iteration gives it another value first
    if name in loaded_names(tree):
        return True
    return False if isinstance(tree, ast.Return) or name in surely_bound([tree]) else None


def fresh_name(base: str, taken: Callable[[str], bool]) -> str:
    """The base, or the base with the first number that is not taken."""
    name, count = base, 0
    while taken(name):
        count += 1
        name = f"{base}_{count}"
    return name


def joined(trees: Sequence[ast.stmt], known: _Known, bound: Collection[str] = ()) -> list[ast.stmt]:
    """Statements in which no `if` loses a name; `known` says which names have a value before, and so has `bound`."""
    return _Joined(known, set(bound)).statements(trees)


def joined_if(tree: ast.If, known: _Known, wanted: Container[str]) -> list[ast.stmt] | None:
    """An `if` that gives those of the wanted names that it can; None where it gives them as it stands."""
    if hasattr(tree, _GIVES_ALL):
        return None
    given = _given_names(tree, known)
    found = [name for name in given if name in wanted]
    ends = [name for name in found or given if _ends_by(tree.body, name) and _ends_by(tree.orelse, name)]
    if (ends and len(found) < 2) or _has_effect(tree):
        return None
    if not given or (not found and any(live_in(wanted, name) for name in bound_names([tree]))):
        return None  # what is wrong with it stands here
    return _Joined(known, set()).conditional(tree, found or given[:1])  # what is not read is given all the same


def _has_effect(tree: ast.If) -> bool:
    """Whether both branches end by an effect, or a dataflow block, which says what it gives."""
    return all(branch and isinstance(branch[-1], (ast.Expr, ast.With)) for branch in (tree.body, tree.orelse))


def _given_names(tree: ast.If, known: _Known) -> list[str]:
    surely = surely_bound([tree])
    return [name for name in dict.fromkeys(bound_names([tree])) if name in surely or known(name)]


def surely_bound(trees: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind, whatever runs: a loop may have no iteration."""
    found: set[str] = set()
    for tree in trees:
        if isinstance(tree, ast.If):
            found |= surely_bound(tree.body) & surely_bound(tree.orelse)
        elif not isinstance(tree, (ast.For, ast.While)):
            found.update(bound_names([tree]))
    return found


def _ends_by(trees: Sequence[ast.stmt], name: str) -> bool:
    """Whether a branch ends by binding a name; one that is left out keeps it."""
    if not trees:
        return True
    last = trees[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _ends_by(last.body, name) and _ends_by(last.orelse, name)
    targets = last.targets if isinstance(last, ast.Assign) else [getattr(last, "target", None)]
    return isinstance(last, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and [
        getattr(target, "id", None) for target in targets
    ] == [name]


class _Joined:
    def __init__(self, known: _Known, bound: set[str]) -> None:
        self.known, self.bound = known, bound

    def statements(self, trees: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements in which no `if` loses a name."""
        made: list[ast.stmt] = []
        for tree in trees:
            if isinstance(tree, ast.If):
                names = _given_names(tree, lambda name: name in self.bound or self.known(name))
                made.extend([tree] if not names and _has_effect(tree) else self.conditional(tree, names))
            else:
                made.append(tree)
            self.bound |= surely_bound([tree])
        return made

    def conditional(self, tree: ast.If, names: Sequence[str]) -> list[ast.stmt]:
        """An `if` that gives some names, and the statement that takes them from it."""
        own = set(bound_names([tree]))
        before, both = set(self.bound), fresh_name("joined", lambda name: name in own or self.known(name))
        branches = []
        for branch in (tree.body, tree.orelse):
            self.bound = set(before)
            branches.append([*self.statements(branch), _given(both, names, tree)])
        self.bound = before
        made: list[ast.stmt] = [at(tree, ast.If(tree.test, branches[0], branches[1]))]
        setattr(made[0], _GIVES_ALL, True)
        if len(names) > 1:
            targets = at(tree, ast.Tuple([name_at(name, ast.Store(), tree) for name in names], ast.Store()))
            made.append(at(tree, ast.Assign([targets], name_at(both, ast.Load(), tree))))
        return made


def _given(both: str, names: Sequence[str], tree: ast.stmt) -> ast.stmt:
    values = [name_at(name, ast.Load(), tree) for name in names]
    if not names:
        return at(tree, ast.Pass())
    if len(names) == 1:
        return assigned(names[0], values[0], tree)
    return assigned(both, at(tree, ast.Tuple(list(values), ast.Load())), tree)
