"""Names that are one array in Python: an assignment to elements of one of them would be seen by the others.

    y = x            one array         y = x.copy()      another one
    y = x[1:]        the same memory   y = x + 0         another one
    y[0] = v         y only: refused where x is read later

Tensors are values, so that such an assignment gives one name another value. What may share memory is noted while a
function is read that assigns elements: of each value the arrays that it may be, by the values that made them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from weft.ir.graph import Constant, Expr, If, Tuple, TupleGetItem, Var
from weft.ir.types import PrimType, TensorType, TupleType
from weft.script.reader.graph.element_targets import Updated
from weft.script.reader.graph.joined import Following
from weft.script.reader.graph.session import GraphSession
from weft.script.source.text import MISSING

__all__ = ["Memory", "handed_memory", "memory_of", "note_memory", "note_same_memory", "refuse_shared"]

Memory = frozenset[Any]
_NONE: Memory = frozenset()


def memory_of(session: GraphSession, value: Any) -> Memory:
    """The arrays that a value, or a part of it, may be."""
    if session.memory is None:
        return _NONE
    if isinstance(value, (list, tuple)):
        return _union(session, value) | {id(value)}
    if isinstance(value, dict):
        return _union(session, value.values()) | {id(value)}
    if not isinstance(value, Expr) or isinstance(value, Constant) or _is_number(value):
        return _NONE
    if value in session.memory:
        return session.memory[value]
    if isinstance(value, Tuple):
        return _union(session, value.fields)
    if isinstance(value, TupleGetItem):
        return _field_memory(session, value.value, value.index)
    if isinstance(value, If):
        return _union(session, (value.then_branch.body, value.else_branch.body))
    return frozenset([value]) if isinstance(value, Var) else _NONE


def _union(session: GraphSession, values: Iterable[Any]) -> Memory:
    return frozenset[Any]().union(*(memory_of(session, value) for value in values))


def _field_memory(session: GraphSession, value: Expr, index: int) -> Memory:
    """The arrays that a field of a tuple may be."""
    assert session.memory is not None
    if isinstance(value, Tuple):
        return memory_of(session, value.fields[index])
    if isinstance(value, If):
        branches = (value.then_branch.body, value.else_branch.body)
        return frozenset[Any]().union(*(_field_memory(session, branch, index) for branch in branches))
    return session.memory.get((value, index), frozenset([(value, index)]))


def _is_number(value: Expr) -> bool:
    ty = value.ty if isinstance(value, Var) else None
    return isinstance(ty, PrimType) or (isinstance(ty, TensorType) and ty.ndim == 0)


def note_same_memory(session: GraphSession, made: Expr, value: Any) -> None:
    """Note that a value may be the array that another one is."""
    if session.memory is None:
        return
    if isinstance(made, Var) and isinstance(made.ty, TupleType):
        for index in range(len(made.ty.fields)):
            session.memory[made, index] = _field_memory(session, value, index)
    elif found := memory_of(session, value):
        session.memory[made] = found


def note_memory(session: GraphSession, made: Expr, memory: Memory) -> None:
    """Note the arrays that a value may be."""
    if session.memory is not None:
        session.memory[made] = memory


def handed_memory(
    session: GraphSession, names: Sequence[str], before: Sequence[Memory], given: Sequence[Memory]
) -> list[Memory]:
    """What names that a loop hands on may be in an iteration: what they were before, or what an iteration gives them.

    Arrays that an iteration makes have the name that is first to be one.
    """
    known = frozenset[Any]().union(*before, *(memory_of(session, value) for _, value in _visible(session)))
    first: dict[Any, str] = {}
    for name, memory in zip(names, given, strict=True):
        for array in memory - known:
            first.setdefault(array, name)
    made = []
    for old, memory in zip(before, given, strict=True):
        shared = {first[array] for array in memory - known if sum(array in other for other in given) > 1}
        made.append(old | (memory & known) | shared)
    return made


def refuse_shared(session: GraphSession, base: Any, tree: Updated) -> None:
    """W115 where an array has another name, which is read later and would have the new elements in Python."""
    own = memory_of(session, base)
    if not own:
        return
    root = tree.base
    while isinstance(root, ast.Subscript):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    for other, value in _visible(session):
        if other != name and own & memory_of(session, value) and _is_live(session, other):
            message = f"`{name}` and `{other}` may be one array, of which an assignment changes the elements"
            hint = f"`{other}` is read later: write `.copy()` where one gets its value from the other"
            raise session.fail("W115", message, tree.element, hint)


def _visible(session: GraphSession) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name in session.scope.visible():
        value = session.scope.get(name) if name not in seen else MISSING
        seen.add(name)
        if isinstance(value, (Expr, list, tuple, dict)):
            yield name, value


def _is_live(session: GraphSession, name: str) -> bool:
    wanted = session.wanted
    return wanted.is_live(name) if isinstance(wanted, Following) else name in wanted
