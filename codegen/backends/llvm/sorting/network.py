"""Sorting networks over vectors: a few registers of keys are sorted without a branch.

    columns   a network of exchanges of whole vectors sorts every lane for itself
    merges    sorted lanes are merged in pairs, fours, ...: each merge is bitonic, first register r of one half with the
              last but r of the other, then at halved distances
    order     the keys stand lane by lane; interleaving the vectors puts them in the order of memory

An exchange of two vectors is a minimum and what that leaves of both, which is their exclusive or: processors have more
units for logic than for maxima. Within a vector it is a shuffle, both, and a choice by lane.
Keys with positions beside them are pairs of vectors: a comparison by key, then by position, says which lanes change
places. No two are equal, so that the order is that of a stable sort.

Source: Batcher, Sorting networks and their applications, 1968; Bramas, A novel hybrid quicksort algorithm vectorized
using AVX-512 on Intel Skylake, 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import binary, call, icmp, select, shufflevector
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.support.records import dataclass

__all__ = ["Lanes", "batcher_exchanges", "sorted_bitonic", "sorted_vectors"]

_LOGIC = {32: "llvm.x86.avx512.pternlog.d", 64: "llvm.x86.avx512.pternlog.q"}
"""The intrinsics of logic of three vectors, by the bits of their lanes, of which a mask may keep some as they are."""
_ODD = 0x96
"""The logic that is exclusive or of three bits: the results of all eight of them."""


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


@dataclass(frozen=True)
class Lanes:
    """The names of a vector of keys, and of the vector of their positions where they have some."""

    keys: str
    positions: str = ""


def sorted_vectors(w: FunctionWriter, keys: KeyVector, vectors: list[Lanes]) -> list[Lanes]:
    """The keys of a power of two of vectors in ascending order, as they stand in memory."""
    network = _Network(w, keys, list(vectors))
    for low, high in batcher_exchanges(len(vectors)):
        network.exchange(low, high)
    width = 2
    while width <= keys.lanes:
        network.merge(width)
        width *= 2
    return network.in_order()


def sorted_bitonic(w: FunctionWriter, keys: KeyVector, vector: Lanes) -> Lanes:
    """The keys of a vector that ascend and then descend, or the other way around, in ascending order."""
    network = _Network(w, keys, [vector])
    network.halve(keys.lanes)
    return network.vectors[0]


class _Network:
    def __init__(self, w: FunctionWriter, keys: KeyVector, vectors: list[Lanes]) -> None:
        self.w, self.keys, self.vectors = w, keys, vectors

    def exchange(self, low: int, high: int) -> None:
        """The lesser keys to one vector, the greater ones to another."""
        a, b = self.vectors[low], self.vectors[high]
        if self.keys.has_positions:
            less = self._less(a, b)
            self.vectors[low], self.vectors[high] = self._chosen(less, a, b), self._chosen(less, b, a)
        else:
            lesser = self._lesser(a, b)
            self.vectors[low], self.vectors[high] = lesser, self._greater(lesser, a, b)

    def merge(self, width: int) -> None:
        """Merge the sorted halves of every group of `width` lanes."""
        count = len(self.vectors)
        for low in range((count + 1) // 2):
            self._fold(low, count - 1 - low, width)
        self.halve(width // 2)
        distance = count // 2
        while distance:
            for low in (position for position in range(count) if not position & distance):
                self.exchange(low, low + distance)
            distance //= 2

    def halve(self, width: int) -> None:
        """Exchange lanes at halved distances within every group of `width` lanes of a vector."""
        distance = width // 2
        while distance:
            for position in range(len(self.vectors)):
                self._fold(position, position, 2 * distance, reverse=False)
            distance //= 2

    def _fold(self, low: int, high: int, width: int, *, reverse: bool = True) -> None:
        """Exchange lanes of one vector with those of another: the mirrored ones of a group, or those of its half."""
        half = width // 2
        order = [lane ^ (width - 1 if reverse else half) for lane in range(self.keys.lanes)]
        first, second = self._halves(self.vectors[low], self._shuffled(self.vectors[high], order), half, low == high)
        if second is not None:
            self.vectors[high] = self._shuffled(second, order)
        self.vectors[low] = first

    def _halves(self, a: Lanes, b: Lanes, half: int, is_one: bool) -> tuple[Lanes, Lanes | None]:
        """The lesser keys of two vectors in lanes of first halves, the greater ones in the others; and what is left."""
        mask = self._mask(lambda lane: not lane & half)
        if self.keys.has_positions:
            turned = self._mask(lambda lane: bool(lane & half))
            stays = self.w.emit(binary("xor", self.keys.mask_type, self._less(a, b), turned))
            return self._chosen(stays, a, b), None if is_one else self._chosen(stays, b, a)
        lesser = self._lesser(a, b)
        # The greater keys are spelled anew for each choice, which is part of the logic then and takes no instruction.
        first = self._chosen(mask, lesser, self._greater(lesser, a, b))
        return first, None if is_one else self._chosen(mask, self._greater(lesser, b, a), lesser)

    def in_order(self) -> list[Lanes]:
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

    def _interleaved(self, a: Lanes, b: Lanes, order: list[int]) -> Lanes:
        return self._each(lambda ty, x, y: self.w.emit(shufflevector(ty, x, y, order)), a, b)

    def _shuffled(self, vector: Lanes, order: list[int]) -> Lanes:
        return self._each(lambda ty, x, y: self.w.emit(shufflevector(ty, x, "poison", order)), vector, vector)

    def _chosen(self, mask: str, a: Lanes, b: Lanes) -> Lanes:
        return self._each(lambda ty, x, y: self.w.emit(select(self.keys.mask_type, mask, ty, x, y)), a, b)

    def _each(self, made: Callable[[str, str, str], str], a: Lanes, b: Lanes) -> Lanes:
        """What is made of two vectors of a type: of keys, and of positions."""
        found = made(self.keys.type, a.keys, b.keys)
        if not self.keys.has_positions:
            return Lanes(found)
        return Lanes(found, made(self.keys.positions.type, a.positions, b.positions))

    def _lesser(self, a: Lanes, b: Lanes) -> Lanes:
        """The lesser keys of two vectors."""
        keys = self.keys
        spelled = self.w.module.declare(f"llvm.umin.{keys.suffix}", keys.type, (keys.type, keys.type))
        return Lanes(self.w.emit(call(keys.type, spelled, [(keys.type, a.keys), (keys.type, b.keys)])))

    def _greater(self, lesser: Lanes, a: Lanes, b: Lanes) -> Lanes:
        """The greater keys of two vectors: what the lesser ones leave of both."""
        keys = self.keys
        if keys.bits in _LOGIC:
            types = (keys.type, keys.type, keys.type, "i32")
            name = self.w.module.declare(f"{_LOGIC[keys.bits]}.{keys.bits * keys.lanes}", keys.type, types)
            operands = zip(types, (lesser.keys, a.keys, b.keys, _ODD), strict=True)
            return Lanes(self.w.emit(call(keys.type, name, list(operands))))
        both = self.w.emit(binary("xor", keys.type, a.keys, b.keys))
        return Lanes(self.w.emit(binary("xor", keys.type, both, lesser.keys)))

    def _less(self, a: Lanes, b: Lanes) -> str:
        """The lanes in which a is before b, by key and then by position."""
        ty, mask = self.keys.type, self.keys.mask_type
        before = self.w.emit(icmp("ult", self.keys.positions.type, a.positions, b.positions))
        ties = self.w.emit(binary("and", mask, self.w.emit(icmp("eq", ty, a.keys, b.keys)), before))
        return self.w.emit(binary("or", mask, self.w.emit(icmp("ult", ty, a.keys, b.keys)), ties))

    def _mask(self, picks: Callable[[int], bool]) -> str:
        return f"<{', '.join(f'i1 {str(picks(lane)).lower()}' for lane in range(self.keys.lanes))}>"
