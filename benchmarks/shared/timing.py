"""How benchmarks measure calls beside one another."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any


def least(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least time of each call in seconds; calls alternate, so that what else the machine does counts little."""
    found = dict.fromkeys(calls, float("inf"))
    end = time.perf_counter() + seconds * len(calls)
    for number in itertools.count():
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
        if number >= 5 and time.perf_counter() > end:
            return found
    raise AssertionError
