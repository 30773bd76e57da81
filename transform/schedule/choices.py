"""Random choices of a schedule: their source, and what a trace keeps of them to repeat it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

__all__ = ["RandomChoices"]


class RandomChoices:
    """The part of a schedule that chooses."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)
        self._decision: Any = None
        self._choices: list[Any] = []  # what primitives inside of the present one have chosen
        self._given: list[Any] = []  # what they are to choose

    def seed(self, seed: int) -> None:
        """Start the sequence of random choices anew."""
        self._random = random.Random(seed)

    def choose_next(self, choices: Sequence[Any]) -> None:
        """What the sampling primitives choose that the next primitive uses: how traces repeat primitives of users."""
        self._given = list(choices)

    def fork_seed(self) -> int:
        """A seed for another schedule."""
        return self._random.randrange(1, 2**31)

    def _decide(self, decision: Any) -> None:
        """Keep what a sampling primitive decided."""
        self._decision = decision
