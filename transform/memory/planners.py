"""Memory planners: functions that give the tensors of a program places in one block of memory.

    planner ::= (requests) -> (offsets, bytes of the block)        a request has a size, a first and a last step, and an
                                                                   alignment; all of them are known numbers

A planner is registered under a name (`weft.memory_planner`), and a target asks for it: `c -planner=mine`, in text, in
Python and on the command line. What it answers is checked, whoever wrote it: tensors that are needed at one step are
apart, each begins at a multiple of its alignment and ends within the block.

Errors: TargetError W754 for a planner that nobody registered, for a wrong answer, for sizes that only a run knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from weft.errors import TargetError, WeftError, described
from weft.transform.memory.pack_memory import Packing, Request, pack

__all__ = ["Planner", "checked_plan", "find_planner", "memory_planner", "remove_memory_planner"]

Planner = Callable[[Sequence[Request]], "tuple[Sequence[int], int]"]
_DEFAULT = "greedy"
_MOST_BYTES = 1 << 62  # what addresses and sizes in compiled code are exact for


def _greedy(requests: Sequence[Request]) -> tuple[Sequence[int], int]:
    """The planner of weft."""
    alignment = max((request.alignment for request in requests), default=1)
    found: Packing = pack(requests, alignment=alignment)
    return [int(offset) for offset in found.offsets], int(found.total)  # type: ignore[arg-type]


_PLANNERS: dict[str, Planner] = {_DEFAULT: _greedy}


def memory_planner(name: str) -> Callable[[Planner], Planner]:
    """Register a memory planner under a name that targets ask for; TargetError W754 when another one has it.

    >>> @memory_planner("one-after-another")
    ... def spread(requests):
    ...     ends = [0]
    ...     for request in requests:
    ...         ends.append(-(-(ends[-1] + request.size) // request.alignment) * request.alignment)
    ...     return ends[:-1], ends[-1]
    >>> find_planner("one-after-another") is spread
    True
    >>> remove_memory_planner("one-after-another")
    """

    def register(planner: Planner) -> Planner:
        if _PLANNERS.setdefault(name, planner) is not planner:
            raise TargetError(f"there is a memory planner {name!r} already", code="W754")
        return planner

    return register


def remove_memory_planner(name: str) -> None:
    """Forget a planner, as a plug-in does that is unloaded."""
    _PLANNERS.pop(name, None)


def find_planner(name: str) -> Planner:
    """The planner of a name; TargetError W754 with the nearest one otherwise."""
    if name in _PLANNERS:
        return _PLANNERS[name]
    close = difflib.get_close_matches(name, _PLANNERS, 1)
    hint = f"did you mean {close[0]!r}?" if close else "register it: @weft.memory_planner(name)"
    raise TargetError(f"there is no memory planner {name!r}", code="W754", hint=hint)


def checked_plan(planner: Planner, requests: Sequence[Request]) -> tuple[list[int], int]:
    """What a planner answers, checked; TargetError W754 says what is wrong with it."""
    for request in requests:
        if not isinstance(request.size, int):
            raise TargetError(
                f"{_name(planner)} takes sizes that are known, and a tensor has {request.size} bytes",
                code="W754",
                hint="bind the sizes (weft.transform.BindSymbolicVars), or leave the planner out",
            )
    try:
        answer: Any = planner(tuple(requests))
    except Exception as error:
        if isinstance(error, WeftError):
            raise
        raise _wrong(planner, f"failed: {type(error).__name__}: {error}") from error
    try:
        listed, total = answer
        offsets = [*listed]
    except (TypeError, ValueError):
        raise _wrong(planner, f"must return (offsets, bytes), it returned {described(answer)}") from None
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in (*offsets, total)):
        raise _wrong(planner, "must return numbers of bytes that are int")
    if len(offsets) != len(requests):
        raise _wrong(planner, f"gives {len(offsets)} offsets for {len(requests)} tensors")
    if not 0 <= total < _MOST_BYTES:
        raise _wrong(planner, f"asks for a block of {total} bytes")
    _check_places(planner, requests, offsets, total)
    return offsets, total


def _check_places(planner: Planner, requests: Sequence[Request], offsets: Sequence[int], total: int) -> None:
    places = sorted(zip(offsets, requests, range(len(offsets)), strict=True), key=lambda item: item[0])
    for at, (offset, request, number) in enumerate(places):
        end = offset + int(request.size)  # type: ignore[call-overload]
        where = f"tensor {number} at {offset}"
        if offset % request.alignment:
            raise _wrong(planner, f"puts {where}, which is no multiple of {request.alignment}")
        if offset < 0 or end > total:
            raise _wrong(planner, f"puts {where}, and its {request.size} bytes do not fit in the {total} of the block")
        for start, other, index in places[at + 1 :]:
            if start >= end:
                break
            if other.size and request.meets(other):
                raise _wrong(planner, f"puts {where} and tensor {index} at {start}: they overlap and live at one time")


def _name(planner: Planner) -> str:
    names = [name for name, item in _PLANNERS.items() if item is planner]
    return f"the memory planner {(names or [getattr(planner, '__name__', 'of the caller')])[0]!r}"


def _wrong(planner: Planner, what: str) -> TargetError:
    return TargetError(f"{_name(planner)} {what}", code="W754")
