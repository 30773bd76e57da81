"""Sorting networks over vectors: a few registers of keys are sorted without a branch.

    columns   a network of exchanges of whole vectors sorts every lane for itself
    merges    sorted lanes are merged in pairs, fours, ...: each merge is bitonic, first register r of one half with the
              last but r of the other, then at halved distances
    order     the keys stand lane by lane; interleaving the vectors puts them in the order of memory

An exchange of two vectors is a minimum and a maximum. Within a vector it is a shuffle, both, and a choice by lane.

Source: Batcher, Sorting networks and their applications, 1968; Bramas, A novel hybrid quicksort algorithm vectorized
using AVX-512 on Intel Skylake, 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import call, select, shufflevector

__all__ = ["KeyVector", "batcher_exchanges", "sorted_vectors"]


@dataclass(frozen=True)
class KeyVector:
    """A vector of unsigned keys: how many bits each has, and how many there are."""

    bits: int
    lanes: int

    @property
    def element(self) -> str:
        """LLVM's type of a key."""
        return f"i{self.bits}"

    @property
    def type(self) -> str:
        """LLVM's type of a vector."""
        return f"<{self.lanes} x i{self.bits}>"

    @property
    def mask_type(self) -> str:
        """LLVM's type of a truth value for each key."""
        return f"<{self.lanes} x i1>"

    @property
    def suffix(self) -> str:
        """The end of the name of an intrinsic of LLVM over such vectors."""
        return f"v{self.lanes}i{self.bits}"

    @property
    def name(self) -> str:
        """The end of the names of functions over such vectors."""
        return f"u{self.bits}x{self.lanes}"


def batcher_exchanges(size: int) -> Iterator[tuple[int, int]]:
    """The exchanges of the odd-even merge sort of `size` values, a power of two.

    >>> list(batcher_exchanges(4))
    [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]
    """
    sorted_run = 1
    while sorted_run < size:
        distance = sorted_run
        while distance:
            for start in range(distance % sorted_run, size - distance, 2 * distance):
                for low in range(start, min(start + distance, size - distance)):
                    if low // (2 * sorted_run) == (low + distance) // (2 * sorted_run):
                        yield low, low + distance
            distance //= 2
        sorted_run *= 2


def sorted_vectors(w: FunctionWriter, keys: KeyVector, vectors: list[str]) -> list[str]:
    """The keys of a power of two of vectors in ascending order, as they stand in memory."""
    network = _Network(w, keys, list(vectors))
    for low, high in batcher_exchanges(len(vectors)):
        network.exchange(low, high)
    width = 2
    while width <= keys.lanes:
        network.merge(width)
        width *= 2
    return network.in_order()


class _Network:
    def __init__(self, w: FunctionWriter, keys: KeyVector, vectors: list[str]) -> None:
        self.w, self.keys, self.vectors = w, keys, vectors

    def exchange(self, low: int, high: int) -> None:
        """The lesser keys to one vector, the greater ones to another."""
        self.vectors[low], self.vectors[high] = self._both(self.vectors[low], self.vectors[high])

    def merge(self, width: int) -> None:
        """Merge the sorted halves of every group of `width` lanes."""
        count = len(self.vectors)
        for low in range((count + 1) // 2):
            self._fold(low, count - 1 - low, width)
        distance = width // 4
        while distance:
            for position in range(count):
                self._fold(position, position, 2 * distance, reverse=False)
            distance //= 2
        distance = count // 2
        while distance:
            for low in (position for position in range(count) if not position & distance):
                self.exchange(low, low + distance)
            distance //= 2

    def _fold(self, low: int, high: int, width: int, *, reverse: bool = True) -> None:
        """Exchange lanes of one vector with those of another: the mirrored ones of a group, or those of its half."""
        half = width // 2
        order = [lane ^ (width - 1 if reverse else half) for lane in range(self.keys.lanes)]
        lesser, greater = self._both(self.vectors[low], self._shuffled(self.vectors[high], order))
        mask = self._mask(lambda lane: not lane & half)
        first = self._chosen(mask, lesser, greater)
        if low != high:
            self.vectors[high] = self._shuffled(self._chosen(mask, greater, lesser), order)
        self.vectors[low] = first

    def in_order(self) -> list[str]:
        """The vectors with keys in the order of memory, which so far stand lane by lane."""
        lanes, found, rounds = self.keys.lanes, self.vectors, len(self.vectors)
        start = [lane for pair in range(lanes // 2) for lane in (pair, lanes + pair)]
        end = [lane + lanes // 2 for lane in start]
        while rounds > 1:
            half = len(found) // 2
            pairs = list(zip(found[:half], found[half:], strict=True))
            found = [self._interleaved(a, b, order) for a, b in pairs for order in (start, end)]
            rounds //= 2
        return found

    def _interleaved(self, a: str, b: str, order: list[int]) -> str:
        return self.w.emit(shufflevector(self.keys.type, a, b, order))

    def _shuffled(self, vector: str, order: list[int]) -> str:
        return self.w.emit(shufflevector(self.keys.type, vector, "poison", order))

    def _both(self, a: str, b: str) -> tuple[str, str]:
        """The lesser and the greater keys of two vectors."""
        keys, found = self.keys, []
        for name in ("umin", "umax"):
            spelled = self.w.module.declare(f"llvm.{name}.{keys.suffix}", keys.type, (keys.type, keys.type))
            found.append(self.w.emit(call(keys.type, spelled, [(keys.type, a), (keys.type, b)])))
        return found[0], found[1]

    def _chosen(self, mask: str, a: str, b: str) -> str:
        return self.w.emit(select(self.keys.mask_type, mask, self.keys.type, a, b))

    def _mask(self, picks: Callable[[int], bool]) -> str:
        return f"<{', '.join(f'i1 {str(picks(lane)).lower()}' for lane in range(self.keys.lanes))}>"
