"""A function of a program as a value of the executors that are no machine code."""

from __future__ import annotations

from typing import Any

from weft.support.records import dataclass

__all__ = ["Closure", "is_function"]


@dataclass(frozen=True)
class Closure:
    """A function of the program with its first arguments."""

    name: str
    fixed: tuple[Any, ...] = ()


def is_function(value: Any) -> bool:
    """Whether a program can call a value: a function of the caller's or one of its own.

    >>> is_function(len), is_function(Closure("main")), is_function(3)
    (True, True, False)
    """
    return callable(value) or isinstance(value, Closure)
