"""Names that are one array in Python: an assignment to elements of one of them would be seen by the others.

    y = x            one array         y = x.copy()      another one
    y = x[1:]        the same memory   y = x + 0         another one
    y = M.f(x)       one array where f returns its parameter, or a part of it
    y[0] = v         y only: refused where x is read later
    y += v           the same of arrays and lists
    M.f(x)           the same where f assigns elements of its parameter, and x is read later

Tensors are values, so that such an assignment gives one name another value. What may share memory is noted while a
function is read: of each value the arrays that it may be, by the values that made them. A tuple or a list is not what
it holds: it has an identity of its own, beside the arrays of its fields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from weft.ir.graph import Call, Constant, Expr, ExternFunc, GlobalVar, If, Op, Tuple, TupleGetItem, Var
from weft.ir.types import TensorType, TupleType, Type, is_scalar_type
from weft.script.reader.graph.element_targets import Updated, root_of
from weft.script.reader.graph.joined import at, live_after, live_in
from weft.script.reader.graph.session import GraphSession
from weft.script.source.text import MISSING
from weft.support.records import dataclass

__all__ = [
    "Memory",
    "Sharing",
    "carried_memory",
    "changed_arrays",
    "given_memory",
    "handed_memory",
    "is_changed_in_place",
    "note_branches",
    "note_copy",
    "note_function",
    "note_memory",
    "note_same_memory",
    "part_memories",
    "refuse_changed",
    "refuse_gone_through",
    "refuse_kept",
    "refuse_outer",
    "refuse_shared",
    "refuse_shared_list",
    "refuse_updated",
]

Memory = frozenset[Any]
_NONE: Memory = frozenset()
_ITSELF = "itself"  # in the place of the number of a field: the tuple or the list


@dataclass(frozen=True)
class Returned:
    """What a function may return and change: arrays of its parameters, by the number of the parameter and its part."""

    own: Mapping[Any, tuple[int, Any]]
    parts: Sequence[Memory]
    changed: Memory


@dataclass(eq=False)
class Sharing:
    """Which arrays the values of a function may be."""

    arrays: dict[Any, Memory] = field(default_factory=dict)  # of a value, or of (a tuple, a field)
    alternatives: dict[Expr, list[list[Memory]]] = field(default_factory=dict)  # of the fields, in each branch of an if
    functions: dict[Expr, Returned] = field(default_factory=dict)  # local ones
    changed: set[Any] = field(default_factory=set)  # arrays that have elements assigned
    origins: dict[Any, set[Any]] = field(default_factory=dict)  # of what a loop or an if names anew: what it may be

    def before(self, arrays: Iterable[Any]) -> set[Any]:
        """The arrays, and those that they may have been before loops and branches."""
        found, stack = set[Any](), list(arrays)
        while stack:
            array = stack.pop()
            if array not in found:
                found.add(array)
                stack.extend(self.origins.get(array, ()))
        return found


# What a value may be


def memory_of(session: GraphSession, value: Any) -> Memory:
    """The arrays that a value, or a part of it, may be."""
    if session.memory is None:
        return _NONE
    if isinstance(value, (list, tuple)):
        return _union(session, value) | {id(value)}
    if isinstance(value, dict):
        return _union(session, value.values()) | {id(value)}
    if not isinstance(value, Expr) or isinstance(value, Constant):
        return _NONE
    if isinstance(value, Var) and is_scalar_type(value.ty):
        return _NONE
    if value in session.memory.arrays:
        return session.memory.arrays[value]
    if isinstance(value, Tuple):
        return _union(session, value.fields)
    if isinstance(value, TupleGetItem):
        return _part_memory(session, value.value, value.index)
    if isinstance(value, If):
        return _union(session, _results(value))
    if isinstance(value, Call):
        return _call_memory(session, value, None)
    if not isinstance(value, Var):
        return _NONE
    return _NONE.union(*part_memories(session, value, value.ty)) if isinstance(value.ty, TupleType) else {value}  # type: ignore[return-value]


def _union(session: GraphSession, values: Iterable[Any]) -> Memory:
    return _NONE.union(*(memory_of(session, value) for value in values))


def part_memories(session: GraphSession, value: Expr, ty: Type) -> list[Memory]:
    """The arrays that each field of a tuple may be, and last what it is itself; else those of the value."""
    if session.memory is None or not isinstance(ty, TupleType):
        return [memory_of(session, value)]
    return [_part_memory(session, value, place) for place in _places(ty)]


def _part_memory(session: GraphSession, value: Any, place: Any) -> Memory:
    """The arrays that a field of a tuple may be; what it is itself."""
    assert session.memory is not None
    if place is None:
        return memory_of(session, value)
    if isinstance(value, (list, dict, tuple)):
        return frozenset([id(value)])
    if isinstance(value, Tuple):
        return memory_of(session, value.fields[place]) if place != _ITSELF else _NONE
    if isinstance(value, If):
        return _NONE.union(*(_part_memory(session, result, place) for result in _results(value)))
    if isinstance(value, Call):
        return _call_memory(session, value, place)
    if isinstance(value, TupleGetItem):
        return memory_of(session, value)
    arrays, key = session.memory.arrays, (value, place)
    return arrays[key] if key in arrays else arrays.get(value, frozenset([key]))


def _parts(session: GraphSession, value: Any) -> Iterator[Memory]:
    """The arrays that each part of a list, a dictionary or a tuple may be."""
    if isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(session, part)
    elif isinstance(value, Expr) and isinstance(ty := getattr(value, "ty", None), TupleType):
        yield from part_memories(session, value, ty)[:-1]
    else:
        yield memory_of(session, value)


def _results(value: If) -> tuple[Expr, Expr]:
    """What the branches of an `if` give."""
    return value.then_branch.body, value.else_branch.body


def _places(ty: TupleType) -> tuple[Any, ...]:
    """The fields of a tuple, and last the tuple itself."""
    return (*range(len(ty.fields)), _ITSELF)


def note_same_memory(session: GraphSession, made: Expr, value: Any) -> None:
    """Note that a value may be the array that another one is."""
    if session.memory is None:
        return
    if isinstance(made, Var) and isinstance(made.ty, TupleType):
        _note_parts(session, made, made.ty, part_memories(session, value, made.ty))
        if isinstance(value, If):
            session.memory.alternatives[made] = [
                part_memories(session, result, made.ty)[:-1] for result in _results(value)
            ]
    elif found := memory_of(session, value):
        session.memory.arrays[made] = found


def _note_parts(session: GraphSession, made: Var, ty: TupleType, parts: Sequence[Memory]) -> None:
    assert session.memory is not None
    for place, memory in zip(_places(ty), parts, strict=True):
        nested = place != _ITSELF and isinstance(ty.fields[place], TupleType)
        memory = memory | {(made, place, _ITSELF)} if nested else memory
        if memory:
            session.memory.arrays[made, place] = memory


def note_memory(session: GraphSession, made: Var, parts: Sequence[Memory]) -> None:
    """Note the arrays that a value may be, as `part_memories` gives them."""
    if session.memory is None:
        return
    if isinstance(made.ty, TupleType):
        _note_parts(session, made, made.ty, parts)
    else:
        session.memory.arrays[made] = parts[0]


def note_copy(session: GraphSession, made: Var) -> None:
    """Note that a value is an array of its own; a list holds what the other one does."""
    assert session.memory is not None
    key = (made, _ITSELF) if isinstance(made.ty, TupleType) else made
    session.memory.arrays[key] = frozenset([key])


# Names that a loop hands on, and those that an if gives


def carried_memory(
    session: GraphSession,
    owner: object,
    names: Sequence[object],
    found: Sequence[Sequence[Memory]],
    others: Memory,
) -> list[Memory]:
    """What names may be that a loop hands on, or that an `if` gives, which is found for each of its branches.

    It is an array of their own, which those share that may be one, and arrays that others have.
    """
    first = list(range(len(names)))
    for place in range(len(names)):
        for other in range(place):
            if any(memory[place] & memory[other] for memory in found):
                first = [first[other] if group == first[place] else group for group in first]
    made = []
    for place, group in enumerate(first):
        same = [memory[at] for memory in found for at, other in enumerate(first) if other == group]
        own = {(owner, names[group])} if any(memory[place] for memory in found) else set()
        _note_origins(session, own, _NONE.union(*(memory[place] for memory in found)))
        made.append(_NONE.union(own, *(memory & others for memory in same)))
    return made


def handed_memory(
    session: GraphSession,
    owner: object,
    names: Sequence[object],
    before: Sequence[Memory],
    given: Sequence[Memory],
    others: Memory,
) -> list[Memory]:
    """The same where an iteration gives them other arrays: two that it gives one array may be one from then on."""
    shared = [
        memory | {("given", array) for array in new if sum(array in other for other in given) > 1}
        for memory, new in zip(before, given, strict=True)
    ]
    merged = carried_memory(session, owner, names, [shared], others)
    for memory, new in zip(merged, given, strict=True):
        _note_origins(session, [array for array in memory if isinstance(array, tuple) and array[0] is owner], new)
    return [memory | (new & others) for memory, new in zip(merged, given, strict=True)]


def _note_origins(session: GraphSession, arrays: Iterable[Any], before: Memory) -> None:
    if session.memory is None:
        return
    for array in arrays:
        session.memory.origins.setdefault(array, set()).update(before - {array})


def given_memory(session: GraphSession, names: Sequence[str], *, live: bool = False) -> Memory:
    """The arrays that other names may be; those names only that are read later."""
    return _NONE.union(
        *(
            memory_of(session, value)
            for name, value in _visible(session)
            if name not in names and (not live or live_in(session.wanted, name))
        )
    )


def note_branches(session: GraphSession, value: Any, names: Sequence[str]) -> None:
    """Names that get what an `if` gives: after `if c: a, b = b, a` they are two arrays as before."""
    found = session.memory.alternatives.get(value) if session.memory is not None and isinstance(value, Var) else None
    if found is None:
        return
    others = given_memory(session, names, live=True)
    for name, memory in zip(names, carried_memory(session, value, names, found, others), strict=True):
        made = session.scope.get(name)
        if isinstance(made, Var) and not isinstance(made.ty, TupleType):
            note_memory(session, made, [memory])


# Functions


def note_function(session: GraphSession, params: Sequence[Var], result: Expr, ty: Type) -> Returned | None:
    """What a function that has been read may return and change; None where that was not noted."""
    if session.memory is None:
        return None
    own: dict[Any, tuple[int, Any]] = {}
    for number, param in enumerate(params):
        if isinstance(param.ty, TupleType):
            own |= {(param, place): (number, place) for place in _places(param.ty)}
        else:
            own[param] = number, None
    changed = frozenset(array for array in session.memory.before(session.memory.changed) if array in own)
    parts = [frozenset(session.memory.before(part)) for part in part_memories(session, result, ty)]
    return Returned(own, parts, changed)


def _function_of(session: GraphSession, callee: Any) -> Returned | None:
    """What is known of a function; None for one that is being read, and for one that is a value."""
    assert session.memory is not None
    if isinstance(callee, GlobalVar):
        return session.module.returned_by(callee.name)
    return session.memory.functions.get(callee)


def _call_memory(session: GraphSession, call: Call, place: Any) -> Memory:
    """The arrays that the result of a call may be: what operators and functions outside give is new."""
    if isinstance(call.op, (Op, ExternFunc)):
        return _NONE
    function = _function_of(session, call.op)
    if function is None:
        return _union(session, call.args)
    parts = function.parts if place is None else [function.parts[-1 if place == _ITSELF else place]]
    arrays, found = _NONE.union(*parts), _NONE
    for array in arrays & function.own.keys():
        number, part = function.own[array]
        found |= _part_memory(session, call.args[number], part) if number < len(call.args) else _NONE
    rest = arrays - function.own.keys()
    return found | (rest & given_memory(session, ())) if rest and isinstance(call.op, Var) else found


# What is refused


def is_changed_in_place(value: Any) -> bool:
    """Whether `name += ...` changes what others may see: of numbers it does not."""
    ty = value.ty if isinstance(value, Var) else None
    return isinstance(value, list) or (isinstance(ty, (TensorType, TupleType)) and not is_scalar_type(ty))


def refuse_shared(session: GraphSession, base: Any, tree: Updated) -> None:
    """W115 where an array has another name, which is read later and would have the new elements in Python."""
    root = root_of(tree.base)
    name = root.id if isinstance(root, ast.Name) else ""
    own = _changed(session, base)
    hint = (
        f"write `{name} = {name}.copy()` before"
        if tree.base is root
        else "write `.copy()` where one gets its value from the other"
    )
    for other in _seen(session, own, {name}):
        message = f"`{name}` and `{other}` may be one array, of which an assignment changes the elements"
        raise session.fail("W115", message, tree.element, f"`{other}` is read later: {hint}")
    if tree.base is not root and sum(bool(own & part) for part in _parts(session, session.scope.get(name))) > 1:
        message = f"two parts of `{name}` may be one array, of which an assignment changes the elements"
        raise session.fail("W115", message, tree.element, hint)


def refuse_shared_list(session: GraphSession, base: Any, tree: ast.Call) -> None:
    """W115 where a list that gets one value more has another name, which is read later."""
    name = ast.unparse(tree.func.value)  # type: ignore[attr-defined]
    for other in _seen(session, _changed(session, base), {name}):
        message = f"`{name}` and `{other}` may be one list, to which a value is appended"
        raise session.fail("W115", message, tree, f"`{other}` is read later: write `{name} = {name}.copy()` before")


def refuse_kept(session: GraphSession, owner: object, name: str, value: Expr, tree: ast.AST) -> None:
    """W115 for an array that each iteration appends to a list, and changes: in Python the list has it many times."""
    if session.memory is None:
        return
    kept, changed = session.memory.before(memory_of(session, value)), session.memory.before(session.memory.changed)
    if any(isinstance(array, tuple) and array[0] is owner for array in kept & changed):
        message = f"each iteration appends one array to the list `{name}`, and changes its elements"
        raise session.fail("W115", message, tree, f"append a copy: `{name}.append(value.copy())`")


def changed_arrays(session: GraphSession) -> Memory:
    """The arrays that have elements assigned so far."""
    return frozenset(session.memory.changed) if session.memory is not None else _NONE


def refuse_gone_through(session: GraphSession, arrays: Iterable[Expr], before: Memory, tree: ast.expr) -> None:
    """W115 where a loop goes through an array of which it assigns elements: in Python it would come to the new ones."""
    if session.memory is None:
        return
    changed = session.memory.before(session.memory.changed - before)
    if any(changed & session.memory.before(memory_of(session, array)) for array in arrays):
        message = f"the loop goes through `{ast.unparse(tree)[:40]}`, and assigns elements of what that may be"
        raise session.fail("W115", message, tree, "go through a copy, `.copy()`, or over the indices")


def refuse_updated(session: GraphSession, base: Any, tree: ast.AugAssign, instead: ast.expr) -> None:
    """W115 where `name += value` would change what another name is, which is read later."""
    assert isinstance(tree.target, ast.Name)
    name, line = tree.target.id, f"{tree.target.id} = {ast.unparse(instead)}"
    for other in _seen(session, _changed(session, base), {name}):
        message = f"`{name}` and `{other}` may be one array, which `{ast.unparse(tree)[:40]}` changes"
        raise session.fail("W115", message, tree.target, f"`{other}` is read later: `{line}` makes another array")


def refuse_changed(session: GraphSession, call: Call, tree: ast.Call) -> None:
    """W115 where a function changes elements of what it is given, which has a name that is read later."""
    function = _function_of(session, call.op) if session.memory is not None else None
    for array in function.changed if function is not None else ():
        number, part = function.own[array]  # type: ignore[union-attr]
        if number >= len(call.args):
            continue
        memory = _part_memory(session, call.args[number], part)
        session.memory.changed.update(memory)  # type: ignore[union-attr]
        for other in _seen(session, memory, set(), tree):
            name = ast.unparse(tree.func)
            message = f"`{name}` assigns elements of its argument {number + 1}, which `{other}` may be"
            args = list(tree.args)
            if number < len(args):
                args[number] = at(tree, ast.Call(ast.Attribute(args[number], "copy", ast.Load()), [], []))
            line = ast.unparse(ast.Call(tree.func, args, tree.keywords))
            raise session.fail("W115", message, tree, f"`{other}` is read later: write `{line}`")


def refuse_outer(session: GraphSession, tree: Updated) -> None:
    """W115 for elements of a name of the function around: the name has its new value in the inner one only."""
    root, scope = root_of(tree.base), session.scope
    name = root.id if isinstance(root, ast.Name) else ""
    while scope is not None and name not in scope.names:
        if scope.own and scope.get(name) is not MISSING:
            message = f"`{name}` belongs to the function around this one, which sees no other elements of it"
            line = f"give it to the function and return it: `{name} = f({name})`"
            raise session.fail("W115", message, tree.element, line)
        scope = scope.parent


def _changed(session: GraphSession, base: Any) -> Memory:
    """What an assignment to elements changes: an array, or a list and not the arrays in it."""
    if session.memory is None:
        return _NONE
    holds = isinstance(base, (list, dict)) or isinstance(getattr(base, "ty", None), TupleType)
    memory = _part_memory(session, base, _ITSELF) if holds else memory_of(session, base)
    session.memory.changed.update(memory)
    return memory


def _seen(session: GraphSession, own: Memory, names: set[str], call: ast.Call | None = None) -> Iterator[str]:
    """Other names that may be some of the arrays, and are read later; those of a call beside it too."""
    beside = _read_beside(session, call) if call is not None else set()
    for other, value in _visible(session) if own else ():
        if other in names or not own & memory_of(session, value):
            continue
        after = live_in(session.wanted, other) if call is None else live_after(session.wanted, other)
        if after or other in beside:
            yield other


def _read_beside(session: GraphSession, call: ast.Call) -> set[str]:
    """Names that the statement of a call reads outside of it."""
    statement = getattr(session.wanted, "statement", None)
    if statement is None:
        return set()
    inside = {id(node) for node in ast.walk(call)}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside
    }


def _visible(session: GraphSession) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for name in session.scope.visible():
        value = session.scope.get(name) if name not in seen else MISSING
        seen.add(name)
        if isinstance(value, (Expr, list, tuple, dict)):
            yield name, value
