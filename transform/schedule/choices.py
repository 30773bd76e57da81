"""Random choices of a schedule: their source, and what a trace keeps of them to repeat it."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["RandomChoices"]


class RandomChoices:
    """The source, what the present primitive decided, and what those inside of it have chosen or are to choose."""

    def __init__(self, seed: int | None = None) -> None:
        self.random = random.Random(seed)
        self.decision: Any = None
        self.inside: list[Any] = []
        self.given: list[Any] = []

    def start(self) -> None:
        """A new step begins."""
        self.decision, self.inside = None, []

    def copy(self) -> RandomChoices:
        """The same state, which goes on by itself."""
        new = RandomChoices()
        new.random.setstate(self.random.getstate())
        new.decision, new.inside, new.given = self.decision, list(self.inside), list(self.given)
        return new
