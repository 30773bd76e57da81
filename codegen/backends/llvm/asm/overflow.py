"""Arithmetic of 64-bit sizes that notices when a result leaves 64 bits: the one overflow helper of this back end.

    exact = Exact(w)                       nothing has left 64 bits yet
    bytes_ = exact.mul(exact.mul(n, m), 4) the wrapped numbers
    exact.holds()                          an i1: no sum, difference or product that was asked for left 64 bits

What is known when compiling folds, and what the known ranges of its operands keep inside 64 bits is computed plainly.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from weft.codegen.backends.llvm.asm.function import FunctionWriter, Size
from weft.codegen.backends.llvm.asm.instructions import binary, call, extractvalue, icmp, select

__all__ = ["LIMIT", "Exact"]

LIMIT = 1 << 62
"""Bytes that no memory has: a tensor has fewer."""
_INT64 = 1 << 63


class Exact:
    """Sums, differences and products of one computation, and whether all of them are what they would be in integers."""

    def __init__(self, w: FunctionWriter) -> None:
        self._w = w
        self._left: list[str] = []  # for each operation that may leave 64 bits, whether it did
        self._is_lost = False

    def add(self, a: Size, b: Size) -> Size:
        """a + b."""
        return self._apply("sadd", a, b, operator.add, self._w.add)

    def sub(self, a: Size, b: Size) -> Size:
        """a - b."""
        return self._apply("ssub", a, b, operator.sub, self._w.sub)

    def mul(self, a: Size, b: Size) -> Size:
        """a * b."""
        return self._apply("smul", a, b, operator.mul, self._w.mul)

    def product(self, sizes: Iterable[Size], factor: int) -> Size:
        """The bytes of `factor` times the sizes; one that is 0 hides no product of the others that leaves 64 bits."""
        found: Size = factor
        empty: list[str] = []
        for size in sizes:
            if isinstance(size, int):
                found = self.mul(found, size or 1)
                empty += ["true"] if size == 0 else []
                continue
            none = self._w.emit(icmp("eq", "i64", size, "0"))
            empty.append(none)
            found = self.mul(found, self._w.emit(select("i1", none, "i64", "1", size)))
        if isinstance(found, int):
            self._is_lost |= found > LIMIT
        else:
            self._left.append(self._w.emit(icmp("ugt", "i64", found, LIMIT)))
        if "true" in empty:
            return 0
        for none in empty:
            found = self._w.emit(select("i1", none, "i64", "0", found))
        return found

    def bytes_of(self, sizes: Iterable[Size], itemsize: int) -> Size:
        """The bytes of a tensor; LIMIT, which no allocator gives, where the sizes leave 64 bits."""
        found, holds = self.product(sizes, itemsize), self.holds()
        if isinstance(holds, bool):
            return found if holds else LIMIT
        return self._w.emit(select("i1", holds, "i64", found, LIMIT))

    def holds(self) -> bool | str:
        """Whether nothing has left 64 bits: known, or the spelling of an i1."""
        if self._is_lost or not self._left:
            return not self._is_lost
        lost = self._left[0]
        for other in self._left[1:]:
            lost = self._w.emit(binary("or", "i1", lost, other))
        return self._w.emit(binary("xor", "i1", lost, "true"))

    def _apply(
        self, name: str, a: Size, b: Size, compute: Callable[[int, int], int], plain: Callable[[Size, Size], Size]
    ) -> Size:
        w = self._w
        if isinstance(a, int) and isinstance(b, int):
            value = compute(a, b)
            self._is_lost |= not -_INT64 <= value < _INT64
            return value if -_INT64 <= value < _INT64 else 0
        ranges = w.range_of(a), w.range_of(b)
        if ranges[0] is not None and ranges[1] is not None:
            ends = [compute(x, y) for x in ranges[0] for y in ranges[1]]
            if -_INT64 <= min(ends) and max(ends) < _INT64:
                return plain(a, b)
        neutral = (0, 1) if name == "smul" else (0,)
        if b in neutral or (a in neutral and name != "ssub"):
            return plain(a, b)
        spelled = w.module.declare(f"llvm.{name}.with.overflow.i64", "{ i64, i1 }", ("i64", "i64"))
        pair = w.emit(call("{ i64, i1 }", spelled, [("i64", a), ("i64", b)]))
        self._left.append(w.emit(extractvalue("{ i64, i1 }", pair, 1)))
        return w.emit(extractvalue("{ i64, i1 }", pair, 0))
