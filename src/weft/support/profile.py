"""What parts of a program took in one call: loops that `InstrumentProfile` marked, callees of bytecode.

    rows = profiled(lambda: run(x))         the rows of the call, the most expensive first
    start(1, "f: i"); ...; end(1)           what the program says around a loop; unheard outside of `profiled`

A loop counts with all that is in it, and so do the loops in it: times do not add up to the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from weft.support.records import dataclass

__all__ = ["ProfileRow", "Profiled", "end", "most_expensive_first", "profiled", "start"]


@dataclass(frozen=True)
class ProfileRow:
    """What one loop, or one callee, took in a call: how often it ran, and seconds over all runs.

    `kind` is "loop", or that of a callee of bytecode: "kernel", "packed", "builtin".
    """

    kind: str
    name: str
    count: int
    seconds: float


@dataclass
class _Loops:
    """The loops of a call that is going on: those that are under way, and the spent seconds by name."""

    open: list[tuple[int, str, float]] = field(default_factory=list[tuple[int, str, float]])
    spent: dict[str, list[float]] = field(default_factory=dict[str, list[float]])


_heard: ContextVar[_Loops | None] = ContextVar("weft.profile", default=None)


def start(number: int, name: str = "") -> None:
    """A loop begins: its number in the program, and what it is called."""
    loops = _heard.get()
    if loops is not None:
        loops.open.append((number, name or f"loop {number}", time.perf_counter()))


def end(number: int) -> None:
    """The loop of a number is over, and with it those in it that were left otherwise."""
    now, loops = time.perf_counter(), _heard.get()
    if loops is None or all(number != item[0] for item in loops.open):
        return
    while loops.open:
        found, name, began = loops.open.pop()
        loops.spent.setdefault(name, []).append(now - began)
        if found == number:
            return


def profiled(call: Callable[[], object]) -> list[ProfileRow]:
    """Make a call, and give the rows of the loops that said when they began and ended.

    >>> profiled(lambda: (start(1, "f: i"), end(1)))[0].name
    'f: i'
    """
    loops = _Loops()
    token = _heard.set(loops)
    try:
        call()
    finally:
        _heard.reset(token)
    return most_expensive_first(ProfileRow("loop", name, len(times), sum(times)) for name, times in loops.spent.items())


class Profiled:
    """The base of functions that say what their loops took."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        """Run on arguments."""
        raise NotImplementedError

    def profile(self, /, *args: Any, **options: Any) -> list[ProfileRow]:
        """Run once and say what each loop took that `InstrumentProfile` marked, the most expensive first."""
        return profiled(lambda: self(*args, **options))


def most_expensive_first(rows: Iterable[ProfileRow]) -> list[ProfileRow]:
    """Rows in the order in which they are shown."""
    return sorted(rows, key=lambda row: -row.seconds)
