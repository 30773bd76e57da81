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
from weft.ir.types import TupleType, is_scalar_type
from weft.script.reader.graph.element_targets import Updated, root_of
from weft.script.reader.graph.joined import live_in
from weft.script.reader.graph.session import GraphSession
from weft.script.source.text import MISSING

__all__ = ["Memory", "carried_memory", "handed_memory", "memory_of", "note_memory", "note_same_memory", "refuse_shared"]

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
    return _NONE.union(*(memory_of(session, value) for value in values))


def _field_memory(session: GraphSession, value: Expr, index: int) -> Memory:
    """The arrays that a field of a tuple may be."""
    assert session.memory is not None
    if isinstance(value, Tuple):
        return memory_of(session, value.fields[index])
    if isinstance(value, If):
        branches = (value.then_branch.body, value.else_branch.body)
        return _NONE.union(*(_field_memory(session, branch, index) for branch in branches))
    return session.memory.get((value, index), frozenset([(value, index)]))


def _is_number(value: Expr) -> bool:
    return isinstance(value, Var) and is_scalar_type(value.ty)


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


def carried_memory(session: GraphSession, loop: object, names: Sequence[str], found: Sequence[Memory]) -> list[Memory]:
    """What names that a loop hands on may be in an iteration: an array of their own, which those share that may be one,
    and arrays that have other names.
    """
    others = _others(session, names)
    first = list(range(len(names)))
    for place, memory in enumerate(found):
        for other in range(place):
            if memory & found[other]:
                first = [first[other] if group == first[place] else group for group in first]
    made = []
    for place, memory in enumerate(found):
        group = [other for at, other in enumerate(found) if first[at] == first[place]]
        own = {(loop, names[first[place]])} if memory else ()
        made.append(_NONE.union(own, *(other & others for other in group)))
    return made


def handed_memory(
    session: GraphSession, loop: object, names: Sequence[str], before: Sequence[Memory], given: Sequence[Memory]
) -> list[Memory]:
    """The same where an iteration gives them other arrays: two that it gives one array may be one from then on."""
    shared = [
        memory | {("given", array) for array in new if sum(array in other for other in given) > 1}
        for memory, new in zip(before, given, strict=True)
    ]
    merged, others = carried_memory(session, loop, names, shared), _others(session, names)
    return [memory | (new & others) for memory, new in zip(merged, given, strict=True)]


def _others(session: GraphSession, names: Sequence[str]) -> Memory:
    """The arrays that names may be which a loop does not hand on."""
    return _NONE.union(*(memory_of(session, value) for name, value in _visible(session) if name not in names))


def refuse_shared(session: GraphSession, base: Any, tree: Updated) -> None:
    """W115 where an array has another name, which is read later and would have the new elements in Python."""
    own = memory_of(session, base)
    if not own:
        return
    root = root_of(tree.base)
    name = root.id if isinstance(root, ast.Name) else ""
    for other, value in _visible(session):
        if other != name and own & memory_of(session, value) and live_in(session.wanted, other):
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
