"""Command streams as functions: what the run time needs to know of the NPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

import weft
from weft.runtime.loading import register_loader
from weft_npu import hardware

__all__ = ["cycles"]

cycles: Counter[str] = Counter()
"""The cycles that each kernel has taken so far."""


def load(artifact: weft.Artifact) -> dict[str, Callable[..., None]]:
    """A stream as a function of arrays."""
    (symbol,) = artifact.provides

    def run(*arrays: np.ndarray) -> None:
        cycles[symbol.name] += hardware.execute(artifact.data, arrays)

    return {symbol.name: run}


register_loader("npu-stream", load)
