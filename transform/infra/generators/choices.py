"""Where generated programs get their decisions from: a seeded source, or hypothesis (`weft.testing.strategies`).

    choices.integer(low, high)   ends included          choices.pick(options)    one of a sequence
    choices.flip(percent)        True that often        choices.number()         any float, nan and infinities included
    choices.text()               any short string       choices.name()           a name hint, odd ones included

Generators are written once against `Choices`. The order of options matters: the first of a sequence, the low end of a
range, and False are the simplest, and hypothesis shrinks towards them.
"""

from __future__ import annotations

import random
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["Choices", "SeededChoices"]

T = TypeVar("T")

_NUMBERS = (
    0.0, 1.0, -0.0, 0.5, -1.5, 3.141592653589793, 1e-7, 1e30, 0.1, float("inf"), float("-inf"), float("nan"), 5e-324,
    65504.0, -2.0**-24, 1.7976931348623157e308,
)
_NAMES = (
    "x", "y", "lv", "gv", "h", "n", "m", "x1", "x_1", "R", "T", "I", "cls", "Module", "main", "self", "_", "", "for",
    "None", "is", "x y", "1x", "é", "名", "a.b", "lv1", "float32", "len", "print", "_x", "__y", "True", "weft", "T.x",
    "x\n", "μ", "axis",
)
_TEXTS = (
    "", "a", "two words", 'quote "', "it's", "back\\slash", "new\nline", "tab\t", "{braces}", "%s", "é", "名前", "\x00",
    "\x7f", "'''", '"""', "#", "\r\n", "\u2028", "😀", "\\n", "R.Tensor((2,), \"float32\")", "\x1b[0m", "nan",
)


class Choices(ABC):
    """A source of decisions."""

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""

    @abstractmethod
    def any_float(self) -> float:
        """A float of any bits."""

    @abstractmethod
    def any_text(self) -> str:
        """A short string of any characters that text files can hold."""

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def flip(self, percent: int = 50) -> bool:
        """True in `percent` of a hundred cases."""
        return self.integer(0, 99) >= 100 - percent

    def number(self) -> float:
        """A float: mostly telling ones, sometimes any."""
        return self.any_float() if self.flip(20) else self.pick(_NUMBERS)

    def text(self) -> str:
        """A string: mostly telling ones, sometimes any."""
        return self.any_text() if self.flip(20) else self.pick(_TEXTS)

    def name(self) -> str:
        """A name hint: mostly plain, sometimes one that the text cannot use as it is."""
        return self.pick(_NAMES) if self.flip(25) else self.pick(_NAMES[:9])

    def several(self, low: int, high: int, make: Callable[[], T]) -> list[T]:
        """Between `low` and `high` values."""
        return [make() for _ in range(self.integer(low, high))]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One of (weight, option) pairs."""
        position = self.integer(0, sum(weight for weight, _ in options) - 1)
        for weight, option in options:
            if position < weight:
                return option
            position -= weight
        raise AssertionError("weights are positive")


class SeededChoices(Choices):
    """Decisions of `random.Random(seed)`: the same module for the same seed, in any process."""

    def __init__(self, seed: int | random.Random) -> None:
        self.random = seed if isinstance(seed, random.Random) else random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return (
            low + int(self.random.random() * (high - low + 1)) if high - low < 2**40 else self.random.randint(low, high)
        )

    def any_float(self) -> float:
        """A float of any bits."""
        return struct.unpack("<d", self.random.randbytes(8))[0]

    def any_text(self) -> str:
        """A short string of any characters that text files can hold."""
        return "".join(
            chr(self.random.choice((self.random.randrange(1, 128), self.random.randrange(160, 0xD800), 0x1F600)))
            for _ in range(self.random.randrange(6))
        )
