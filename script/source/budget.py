"""What reading may cost: one account for everything that is computed while a text is read.

Reading computes on what is known (`[0] * n`, `3 in range(9)`, comprehensions, static loops, macros), so a short text
can ask for much. Whatever does so charges this account before it works, in units of about the time of one element of a
list; what is written out in the text is paid for by its characters, so that only repetition can use the account up.

    a unit          one element that is copied, compared or looked at; 8 characters of a string; 64 bits of a number
    VALUE           one expression that is read
    OPERATION       one operation that is built (a call of `R.exp`, `x + y` of tensors)
    W103            the account is empty (`Limits.work`), or the program has too many statements (`Limits.unrolled`)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import Span
from weft.ir.node import FrozenMap
from weft.script.source.diagnostics import Limits, fail
from weft.support.records import dataclass, record

__all__ = ["OPERATION", "VALUE", "Budget", "Measured", "measure"]

VALUE = 4
OPERATION = 60
_PER_CHARACTER = 40  # no text asks for more by one character than by repetition


@dataclass(slots=True)
class Budget:
    """What is left of the account of a text, and of the macros that it reads."""

    limits: Limits
    left: int
    statements: int = 0

    @staticmethod
    def of_text(limits: Limits, text: str) -> Budget:
        """The account of a text."""
        return Budget(limits, limits.work + _PER_CHARACTER * len(text))

    def charge(self, units: int, span: Span | None) -> None:
        """Pay for work that is about to be done; ScriptError W103 at the place that asks for too much."""
        self.left -= units
        if self.left < 0:
            raise fail(
                "W103",
                f"reading computes more than the limit of {self.limits.work} steps on what is known",
                span,
                "compute it outside the script, or allow more by Limits(work=...)",
            )

    def statement(self, span: Span) -> None:
        """Count a statement, or one round, of a static loop or macro; ScriptError W103 past the limit."""
        self.statements += 1
        if self.statements > self.limits.unrolled:
            raise fail(
                "W103",
                f"static loops and macros unroll to more than {self.limits.unrolled} statements",
                span,
                "Limits(unrolled=...) allows more",
            )


@record
class Measured:
    """Whether a value is plain data (see `scope.is_plain`), and how many units it takes to look at all of it."""

    plain: bool
    units: int


def measure(value: Any, most: int, *, deep: bool = False) -> Measured:
    """How large a value is, counted to a little over `most`; `deep` looks into dictionaries too.

    A value may hold another one many times: it counts each time, as whatever goes through it will meet it.
    """
    units, plain = 0, True
    stack = [value]
    while stack and units <= most:
        current = stack.pop()
        units += _units(current)
        if isinstance(current, (tuple, list)):
            if units + len(current) > most:
                return Measured(plain, units + len(current))
            if _FLAT.issuperset(map(type, current)):
                units += len(current)
            else:
                stack.extend(current)
        elif isinstance(current, (dict, FrozenMap)):
            if deep:
                stack.extend(current.keys())
                stack.extend(current.values())
        elif not isinstance(current, _PLAIN):
            plain = False
    return Measured(plain, units)


_FLAT = frozenset({bool, int, float, complex, type(None)})
_PLAIN = (bool, int, float, complex, str, range, np.ndarray, np.generic, type(None))


def _units(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value) // 8
    if isinstance(value, int):
        return 1 + value.bit_length() // 64
    return 1 + value.size if isinstance(value, np.ndarray) else 1
