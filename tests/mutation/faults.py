"""What a fault is: it replaces one function, found by its qualified name, and names the tests that must notice.

    fault ::= statement, `module:qualified.name`, tests, (the function as it is) -> the wrong one

The faults stand in `tests.mutation.statements`, one module for each group of statements; `tests.mutation.catalogue`
has them all.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["FAULTS", "Fault", "fault", "returning", "then"]


@dataclass(frozen=True)
class Fault:
    """One fault; `statement` is its identifier in tests/requirements/proofs.md, `tests` what has to fail under it."""

    name: str
    statement: str
    target: str
    tests: tuple[str, ...]
    wrong: Callable[[Any], Any]

    def original(self) -> tuple[Any, str, Any]:
        """The owner of the function, its name there, and the function."""
        module, _, path = self.target.partition(":")
        owner: Any = importlib.import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        return owner, name, vars(owner)[name]

    def plant(self) -> None:
        """Put the wrong function in place of the right one, wherever it was imported to, in tables too."""
        owner, place, right = self.original()
        wrong = self.wrong(right)
        setattr(owner, place, wrong)
        for module in list(sys.modules.values()):
            if not getattr(module, "__name__", "").startswith(("weft", "tests")):
                continue
            if vars(module).get(place) is right:
                setattr(module, place, wrong)
            for table in [value for value in vars(module).values() if type(value) is dict]:
                for key in [key for key, value in table.items() if value is right]:
                    table[key] = wrong


FAULTS: list[Fault] = []


def fault(statement: str, target: str, *tests: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Keep a fault under the name of the function that makes it."""

    def keep(wrong: Callable[[Any], Any]) -> Callable[[Any], Any]:
        FAULTS.append(Fault(wrong.__name__, statement, target, tests, wrong))
        return wrong

    return keep


def returning(value: Any, name: str) -> Callable[[Any], Any]:
    """A fault of that name: a function that gives one value, whatever it is asked."""

    def wrong(right: Any) -> Any:
        return lambda *args, **options: value

    wrong.__name__ = name
    return wrong


def then(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A fault that changes what comes out."""
    return lambda right: lambda *args, **options: change(right(*args, **options))
