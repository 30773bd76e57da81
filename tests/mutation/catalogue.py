"""Every fault: what the modules of `tests.mutation.statements` hold, by statement."""

from __future__ import annotations

import importlib
import pkgutil
import re

from tests.mutation import statements
from tests.mutation.faults import FAULTS, Fault

__all__ = ["CATALOGUE"]


def _order(item: Fault) -> tuple[str, int, str]:
    letter, number = re.fullmatch(r"([A-H])(\d+)", item.statement).groups()  # type: ignore[union-attr]
    return letter, int(number), item.name


for _module in pkgutil.iter_modules(statements.__path__):
    importlib.import_module(f"{statements.__name__}.{_module.name}")

CATALOGUE: tuple[Fault, ...] = tuple(sorted(FAULTS, key=_order))
"""The faults in the order of their statements."""
