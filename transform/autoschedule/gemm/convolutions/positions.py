"""Windows at positions of known sizes, in rows along the last axis."""

from __future__ import annotations

import math

from weft.support.records import dataclass
from weft.transform.autoschedule.gemm.blocking import known
from weft.transform.autoschedule.gemm.match import Contraction, Window

__all__ = ["Positions", "rows_of"]


def rows_of(window: Window) -> tuple[int, int]:
    """How many rows of positions there are, and how many positions in each."""
    *rows, width = map(known, window.sizes)
    return math.prod(rows), width


@dataclass(frozen=True, eq=False)
class Positions:
    """A contraction over windows whose sizes are known."""

    found: Contraction

    @property
    def window(self) -> Window:
        """The positions."""
        assert self.found.window is not None
        return self.found.window

    @property
    def width(self) -> int:
        """Positions in a row."""
        return rows_of(self.window)[1]

    @property
    def height(self) -> int:
        """Rows of positions."""
        return rows_of(self.window)[0]
