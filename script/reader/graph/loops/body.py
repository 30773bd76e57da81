"""The body of a loop in the form that functions have: no jumps, and each `if` gives all the names that it binds.

    while c:                  goes_on = True
        a = ...               while goes_on and c:
        if t:                     a = ...
            b = ...               if t: b = ...; goes_on = False; joined = (b, goes_on)
            break                 else: d = ...; goes_on = True; joined = (b, goes_on)
        d = ...                   b, goes_on = joined

    for ...: A                broke = False
        if t: break           for ...: A; if t: broke = True; break
    else: B                   if broke: pass
                              else: B

    for ...:                  for ...:
        for ...:                  for ...:
            if t: return v            if t: result = v; returned = True; break
                                  if returned: break

Statements after an `if` that may leave the iteration move into the branches that do not leave. The flag is carried, and
the condition asks it before each iteration; a loop without `break` has none.

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
from collections.abc import Callable, Iterable, Sequence

from weft.script.reader.graph.joined import assigned, at, bound_names, fresh_name, joined, name_at, surely_bound
from weft.support.records import dataclass

__all__ = [
    "LoopBody",
    "LoopTree",
    "Returned",
    "bound_when_left",
    "continues",
    "leaves",
    "paths_to_break",
    "returns",
    "straight",
    "with_body",
    "without_else",
    "without_returns",
]

LoopTree = ast.For | ast.While


@dataclass(frozen=True)
class LoopBody:
    """The statements of a body, and the name of the flag that says whether to go on (None without `break`)."""

    body: list[ast.stmt]
    flag: str | None


class Returned(ast.Assign):
    """`result = value`, where the text says `return value`."""


def straight(tree: LoopTree, known: Callable[[str], bool]) -> LoopBody:
    """The body of a loop without jumps; `known` says which names have a value before the loop."""
    taken = {*bound_names([tree])}
    flag = fresh_name("goes_on", lambda name: name in taken or known(name)) if _leaves(tree.body, ast.Break) else None
    plain = _without_inner_else(tree.body, lambda name: name in taken or known(name))
    body = _Straight(flag).statements(plain)
    return LoopBody(joined(body, known, [flag] if flag is not None else []), flag)


def _leaves(trees: Sequence[ast.stmt], kind: type[ast.stmt] | tuple[type[ast.stmt], ...]) -> bool:
    """Whether some of the statements may leave the iteration; loops inside have jumps of their own, but for `else`."""
    return any(
        isinstance(tree, kind)
        or (isinstance(tree, ast.If) and _leaves([*tree.body, *tree.orelse], kind))
        or (isinstance(tree, (ast.For, ast.While)) and _leaves(tree.orelse, kind))
        for tree in trees
    )


def leaves(tree: LoopTree) -> bool:
    """Whether a loop has a `break` of its own."""
    return _leaves(tree.body, ast.Break)


def continues(tree: LoopTree) -> bool:
    """Whether a loop has a `continue` of its own."""
    return _leaves(tree.body, ast.Continue)


def paths_to_break(trees: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    """For each `break` of a loop, the statements of an iteration that ends with it.

    >>> tree = ast.parse("while True:\\n    a = 1\\n    if t:\\n        b = 2\\n        break\\n    c = 3").body[0]
    >>> [[ast.unparse(statement) for statement in path] for path in paths_to_break(tree.body)]
    [['a = 1', 'b = 2', 'break']]
    """
    found: list[list[ast.stmt]] = []
    for position, tree in enumerate(trees):
        if isinstance(tree, ast.Break):
            return [*found, list(trees[: position + 1])]
        if isinstance(tree, ast.If):
            inner = [*paths_to_break(tree.body), *paths_to_break(tree.orelse)]
            found.extend([*trees[:position], *path] for path in inner)
    return found


def bound_when_left(tree: LoopTree) -> set[str]:
    """Names that every `break` of a loop has bound, which only a `break` ends, or else its `else` binds them, too."""
    endless = isinstance(tree, ast.While) and isinstance(tree.test, ast.Constant) and bool(tree.test.value)
    paths = paths_to_break(tree.body)
    if not paths or not (endless or tree.orelse):
        return set()
    ends = paths if endless else [*paths, tree.orelse]
    return set.intersection(*map(surely_bound, ends))


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
                return [*made, at(tree, ast.If(tree.test, then or [at(tree, ast.Pass())], other))]
            made.append(tree)
        return [*made, *(self._end(trees[-1]) if trees else ())]

    def _end(self, tree: ast.stmt) -> list[ast.stmt]:
        if self.flag is None:
            return [at(tree, ast.Pass())] if isinstance(tree, ast.Continue) else []
        return [assigned(self.flag, at(tree, ast.Constant(not isinstance(tree, ast.Break))), tree)]


# `else` of loops


def without_else(tree: LoopTree, taken: Callable[[str], bool]) -> list[ast.stmt]:
    """A loop whose `else` is an `if` after it."""
    broke = fresh_name("broke", taken)
    loop = _replaced(tree, _mapped(tree.body, lambda inner: _noted(broke, inner)), [])
    after = at(tree, ast.If(name_at(broke, ast.Load(), tree), [at(tree, ast.Pass())], tree.orelse))
    return [assigned(broke, at(tree, ast.Constant(False)), tree), loop, after]


def _noted(broke: str, tree: ast.stmt) -> list[ast.stmt] | None:
    if isinstance(tree, ast.Break):
        return [assigned(broke, at(tree, ast.Constant(True)), tree), tree]
    return None


def _without_inner_else(trees: Sequence[ast.stmt], taken: Callable[[str], bool]) -> list[ast.stmt]:
    """Statements of a body whose loops have no `else`: what stands there may leave the iteration."""
    names: set[str] = set()

    def opened(tree: ast.stmt) -> list[ast.stmt] | None:
        if not isinstance(tree, (ast.For, ast.While)) or not tree.orelse:
            return None
        made = without_else(tree, lambda name: name in names or taken(name))
        names.update(bound_names(made[:1]))
        return [*made[:2], *_mapped(made[2:], opened)]

    return _mapped(trees, opened)


def _mapped(trees: Iterable[ast.stmt], change: Callable[[ast.stmt], list[ast.stmt] | None]) -> list[ast.stmt]:
    """Statements and those of the branches of an `if`, each replaced by what `change` gives (None: left as it is).

    The bodies of loops are left alone, their `else` is not: it stands where the loop does.
    """
    made: list[ast.stmt] = []
    for tree in trees:
        found = change(tree)
        if found is not None:
            made.extend(found)
        elif isinstance(tree, ast.If):
            made.append(at(tree, ast.If(tree.test, _mapped(tree.body, change), _mapped(tree.orelse, change))))
        elif isinstance(tree, (ast.For, ast.While)) and tree.orelse:
            made.append(_replaced(tree, tree.body, _mapped(tree.orelse, change)))
        else:
            made.append(tree)
    return made


def with_body(tree: LoopTree, body: list[ast.stmt]) -> LoopTree:
    """A loop with another body, and without `else`."""
    return _replaced(tree, body, [])


def _replaced(tree: LoopTree, body: list[ast.stmt], orelse: list[ast.stmt]) -> LoopTree:
    if isinstance(tree, ast.While):
        return at(tree, ast.While(tree.test, body, orelse))
    return at(tree, ast.For(tree.target, tree.iter, body, orelse))


# `return` in loops


def returns(tree: ast.stmt) -> bool:
    """Whether a statement may return."""
    if isinstance(tree, ast.Return):
        return True
    if isinstance(tree, (ast.If, ast.For, ast.While)):
        return any(map(returns, (*tree.body, *tree.orelse)))
    return False


def without_returns(tree: LoopTree, returned: str, result: str) -> LoopTree:
    """A loop that instead of returning sets `returned` and `result`, and ends; its `else` is left alone."""

    def change(tree: ast.stmt) -> list[ast.stmt] | None:
        if isinstance(tree, ast.Return):
            value = tree.value if tree.value is not None else at(tree, ast.Tuple([], ast.Load()))
            given = at(tree, Returned([name_at(result, ast.Store(), tree)], value))
            return [given, assigned(returned, at(tree, ast.Constant(True)), tree), at(tree, ast.Break())]
        if not isinstance(tree, (ast.For, ast.While)) or not returns(tree):
            return None
        loop = _replaced(tree, _mapped(tree.body, change), _mapped(tree.orelse, change))
        leave = at(tree, ast.If(name_at(returned, ast.Load(), tree), [at(tree, ast.Break())], []))
        return [loop, leave]

    return _replaced(tree, _mapped(tree.body, change), tree.orelse)
