"""Parts of indices that stay the same in all rounds of an unrolled loop, so that only the first round emits them.

    for i in T.unroll(13):
        for j in T.unroll(2):                                  depth 1, 2
            x[(row * 13 + i) * 28 + j]                         row * 13: level 0; (row * 13 + i) * 28: level 1

The level of a variable is the number of unrolled loops that were open where it was bound, that of an expression the
highest one of its variables. What has a lower level than the innermost loop's is kept, until a variable of its level
or below is bound again, or another block begins.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.ir.tensor import Binary, PrimVar

__all__ = ["RoundSums"]

_CHANGES = 1 << 30
"""The level of what may have another value in the next statement."""
Sum = tuple[Size, int]
"""What is known when it runs, and a constant to be added."""


class RoundSums:
    """What was emitted of the expressions in one block."""

    def __init__(self, w: FunctionWriter) -> None:
        self.depth = 0
        """The unrolled loops that are open."""
        self._w = w
        self._block = ""
        self._level = 0
        """The highest level of the variables that were seen since this was set to 0."""
        self._levels: dict[PrimVar, int] = {}
        self._found: dict[Binary, tuple[Sum, int]] = {}
        self._kept: list[list[Binary]] = []
        """The keys by their level."""

    def uses(self, var: PrimVar) -> None:
        """A variable is part of the expression that is emitted."""
        level = self._levels.get(var, 0)
        if level > self._level:
            self._level = level

    def changes(self) -> None:
        """So is a value that may change."""
        self._level = _CHANGES

    def bind(self, var: PrimVar) -> None:
        """A variable gets a value."""
        before = self._levels.get(var)
        self._levels[var] = self.depth
        if before is not None:
            for keys in self._kept[before:]:
                for key in keys:
                    del self._found[key]
                keys.clear()

    def find(self, expr: Binary, emit: Callable[[Binary], Sum]) -> Sum:
        """What an expression is here, emitted where it has to be."""
        if self._block != self._w.block_label:
            self._found.clear()
            self._kept.clear()
            self._block = self._w.block_label
        known = self._found.get(expr)
        if known is not None:
            if known[1] > self._level:
                self._level = known[1]
            return known[0]
        outer, self._level = self._level, 0
        value, level = emit(expr), self._level
        if level < self.depth and self._block == self._w.block_label:
            while len(self._kept) <= level:
                self._kept.append([])
            self._kept[level].append(expr)
            self._found[expr] = value, level
        self._level = max(outer, level)
        return value
