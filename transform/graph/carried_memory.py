"""Where the tensors that a loop of a kernel carries stand, so that an iteration hands them on without a copy.

    a, b = b, f(a)          a, b and what f writes have a room each in one block of memory, and take them in turn:
    rooms[3, ...]           in iteration t, a is in room t % 3, b in (t + 1) % 3, and f(a) in (t + 2) % 3

A tensor whose elements the body assigns stays where it is, and so does one that takes what the body neither carries nor
makes (its arguments, a value that another one takes too): that is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Any

from weft.ir import replace
from weft.ir.kernel.prim import as_expr, binary, cast
from weft.ir.structure.structural import structural_equal
from weft.ir.structure.visit import substitute
from weft.ir.tensor import (
    Bind,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IntImm,
    PrimCall,
    PrimExpr,
    PrimVar,
    Stmt,
)
from weft.support.records import dataclass

__all__ = ["Carried", "Moves", "address_of_first", "copied", "made_in_rows", "moves", "taken_numbers"]

_INDEX = "int64"
Value = Any  # a buffer, or a scalar of the kernel


@dataclass(frozen=True)
class Carried:
    """A carried tensor: what the body reads, what it is before the loop, where it may stand, and its next value."""

    state: Buffer
    initial: Value
    place: Buffer
    result: Value


@dataclass
class Moves:
    """What a loop does for its carried tensors: statements before it, in each iteration first and last, and after it.

    `during` and `after` say where tensors stand in an iteration and after the loop; `blocks` is memory to allocate,
    and `gone` memory of the iteration in whose stead it is.
    """

    before: list[Stmt] = field(default_factory=list[Stmt])
    first: list[Stmt] = field(default_factory=list[Stmt])
    last: list[Stmt] = field(default_factory=list[Stmt])
    finally_: list[Stmt] = field(default_factory=list[Stmt])
    during: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    after: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    blocks: list[Buffer] = field(default_factory=list[Buffer])
    gone: list[Buffer] = field(default_factory=list[Buffer])


def moves(values: Sequence[Carried], made: Collection[Buffer], iteration: PrimExpr, rounds: PrimExpr) -> Moves:
    """The moves of the tensors of a loop.

    `made` is memory of one iteration, `iteration` how many were before it, `rounds` how many there are after the loop.
    """
    found = Moves()
    following, copies = _handed_on([item.state for item in values], [item.result for item in values], made)
    by_state = {item.state: item for item in values}
    for cycle in _cycles(following):
        if len(cycle) == 1:
            item = by_state[cycle[0]]
            found.during[item.state] = found.after[item.state] = item.place
            found.before += [copied(item.initial, item.place)] if item.initial is not item.place else []
            continue
        block = Buffer(f"{cycle[0].name}_rooms", (len(cycle), *cycle[0].shape), cycle[0].dtype)
        found.blocks.append(block)
        found.gone += [tensor for tensor in cycle if tensor not in by_state]
        for number, tensor in enumerate(cycle):
            found.during[tensor] = _in_room(tensor, block, number, iteration, found.first)
            if tensor in by_state:
                found.before.append(copied(by_state[tensor].initial, block, IntImm(number, _INDEX)))
                found.after[tensor] = _in_room(tensor, block, number, rounds, found.finally_)
    found.last = [substitute(copied(value, target), found.during) for value, target in copies]
    return found


def made_in_rows(
    given: Sequence[Value], rows: Sequence[Buffer], made: Collection[Buffer], number: PrimExpr
) -> dict[Buffer, Buffer]:
    """The views of rows in which an iteration makes what it gives for them alone, by the memory that it had for that.

    `given` are the values of an iteration, of which the last ones are for the rows.
    """
    found: dict[Buffer, Buffer] = {}
    for item, target in zip(given[len(given) - len(rows) :], rows, strict=True):
        once = sum(item is other for other in given) == 1
        if isinstance(item, Buffer) and item in made and once and _alike(item, replace(target, shape=target.shape[1:])):
            found[item] = replace(item, data=address_of_first(target, number))
    return found


def taken_numbers(values: Sequence[Carried]) -> tuple[list[Stmt], list[Buffer]]:
    """What gives carried numbers their next values, and memory for those that others have: they are read first."""
    states = [item.state for item in values]
    first, then, held = list[Stmt](), list[Stmt](), list[Buffer]()
    for item in values:
        value = item.result
        if value is not item.state and value in states:
            held.append(Buffer(f"held_{len(held)}", (), item.state.dtype))
            first.append(copied(value, held[-1]))
            value = held[-1]
        if value is not item.state:
            then.append(copied(value, item.state))
    return [*first, *then], held


def _handed_on(
    states: Sequence[Buffer], results: Sequence[Value], made: Collection[Buffer]
) -> tuple[dict[Buffer, Buffer], list[tuple[Value, Buffer]]]:
    """For each tensor the one where whose memory is next is its own, and copies of values into tensors before that.

    The tensors are the states and memory that the iteration makes; each follows another one, or itself.
    """
    following = {state: state for state, result in zip(states, results, strict=True) if result is state}
    for state, result in zip(states, results, strict=True):
        movable = isinstance(result, Buffer) and (result in states or result in made)
        if state not in following and movable and result not in following.values() and _alike(state, result):
            following[state] = result
    copied_values = {state: item for state, item in zip(states, results, strict=True) if state not in following}
    copies: list[tuple[Value, Buffer]] = []
    for state, result in copied_values.items():
        read = state in following.values() or any(state is item for item in copied_values.values())
        following[state] = replace(state, name=f"{state.name}_next") if read else state
        copies.append((result, following[state]))
    free = [state for state in states if state not in following.values()]
    for spare in [item for item in following.values() if item not in following]:
        following[spare] = next(state for state in free if _alike(state, spare))
        free.remove(following[spare])
    return following, copies


def _alike(first: Buffer, second: Buffer) -> bool:
    """Whether two tensors have one dtype and one shape."""
    if first.dtype != second.dtype or len(first.shape) != len(second.shape):
        return False
    pairs = zip(first.shape, second.shape, strict=True)
    return all(a == b or structural_equal(as_expr(a, _INDEX), as_expr(b, _INDEX)) for a, b in pairs)


def _cycles(following: dict[Buffer, Buffer]) -> list[tuple[Buffer, ...]]:
    found: list[tuple[Buffer, ...]] = []
    seen: set[Buffer] = set()
    for start in following:
        cycle: list[Buffer] = []
        while start not in seen:
            seen.add(start)
            cycle.append(start)
            start = following[start]
        if cycle:
            found.append(tuple(cycle))
    return found


def _in_room(tensor: Buffer, block: Buffer, first: int, rounds: PrimExpr, into: list[Stmt]) -> Buffer:
    """A tensor after some iterations, in the room of a block that it has then, where it had the given one at first."""
    room = PrimVar(f"{tensor.name}_room", _INDEX)
    turn = binary("floormod", rounds + IntImm(first, _INDEX), as_expr(block.shape[0], _INDEX))
    view = replace(tensor, data=address_of_first(block, room))
    into += [Bind(room, turn), DeclBuffer(view)]
    return view


def address_of_first(buffer: Buffer, *leading: PrimExpr) -> PrimExpr:
    """The address of a buffer's first element, or of the first one at some leading indices."""
    zeros = tuple(IntImm(0, _INDEX) for _ in buffer.shape[len(leading) :])
    return PrimCall("address_of", (BufferLoad(buffer, (*leading, *zeros)),), "handle")


def copied(value: Value, target: Buffer, *leading: PrimExpr) -> Stmt:
    """A tensor or a scalar into a buffer of its shape, or into the part of one at some leading indices."""
    if value is target:
        return Evaluate(IntImm(0))
    if isinstance(value, PrimExpr):
        return BufferStore(target, cast(target.dtype, value), leading)
    variables = [PrimVar(f"i{axis}", _INDEX) for axis in range(len(value.shape))]
    loaded = cast(target.dtype, BufferLoad(value, tuple(variables)))
    statement: Stmt = BufferStore(target, loaded, (*leading, *variables))
    for variable, extent in reversed(list(zip(variables, value.shape, strict=True))):
        statement = For(variable, 0, extent, statement)
    return statement
