"""Functions over vectors of keys that libraries of sorts are made of: networks, pivots, parting by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from string import Template

from weft.codegen.backends.llvm.asm.function import FunctionWriter
from weft.codegen.backends.llvm.asm.instructions import (
    Operand,
    binary,
    call,
    cast,
    extractelement,
    getelementptr,
    icmp,
    insertelement,
    load,
    phi,
    store,
)
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.network import Lanes, sorted_vectors
from weft.codegen.backends.llvm.values.lanes import broadcast, counted

__all__ = [
    "FEW_SHARE",
    "GOLDEN",
    "PARTS",
    "SAMPLED",
    "UNROLLED",
    "SortWriter",
    "declare_memory",
    "registers",
    "template",
]

PARTS = 16
"""How many parts threads share, a power of two."""
SAMPLED = 1 << 14
"""From how many keys on the pivot is the middle of a larger sample."""
FEW_SHARE = 32
"""Keys that are one in so many are put among the others one by one."""
GOLDEN = 0x9E3779B97F4A7C15
"""The golden ratio's part behind the point, times which neighbouring numbers are far apart (Knuth, 6.4)."""
UNROLLED = 8
"""The vectors that are parted at a time."""
Body = Callable[[list[str]], tuple[str, str]]
"""What a loop does, of the position and of how many keys were less and not less: how many are after it."""
_TEXT = Path(__file__).parent / "text"


def template(name: str) -> Template:
    """Functions that need no vector code of their own, as LLVM's text."""
    return Template((_TEXT / name).read_text("utf-8"))


def registers(keys: KeyVector) -> tuple[int, int]:
    """The networks that there are, by their vectors: the most leave registers for what else a merge needs."""
    return (4, 8) if keys.has_positions else (4, 16) if keys.bits == 16 else (8, 16)


def declare_memory(module: ModuleWriter, keys: KeyVector) -> None:
    """Declare what the functions call: moves of memory, and the first and the last lane of a mask."""
    module.declare("llvm.ctlz.i64", "i64", ("i64", "i1"))
    module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"))
    for name in ("memcpy", "memmove"):
        module.declare(f"llvm.{name}.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    module.declare(f"llvm.ctpop.i{keys.lanes}", f"i{keys.lanes}", (f"i{keys.lanes}",))
    for name in ("umin", "umax"):
        module.declare(f"llvm.{name}.{keys.suffix}", keys.type, (keys.type, keys.type))
    for name in ("cttz", "ctlz"):
        module.declare(f"llvm.{name}.i{keys.lanes}", f"i{keys.lanes}", (f"i{keys.lanes}", "i1"))
    module.declare(f"llvm.masked.load.{keys.suffix}.p0", keys.type, ("ptr", keys.mask_type, keys.type))
    module.declare(f"llvm.masked.store.{keys.suffix}.p0", "void", (keys.type, "ptr", keys.mask_type))


class SortWriter:
    """One of the functions under construction, over vectors of keys."""

    def __init__(
        self,
        module: ModuleWriter,
        keys: KeyVector,
        name: str,
        result: str,
        params: list[tuple[str, str]],
        attributes: str = "noinline nounwind",
    ) -> None:
        self.module, self.keys = module, keys
        self.w = FunctionWriter(module, f"weft.sort.{name}", result, params, attributes)

    def network(self, size: int) -> None:
        """Sort at most so many vectors of keys; what is beyond them counts as greatest, and is left."""
        masks = [self._below("%count", position * self.keys.lanes) for position in range(size)]
        loaded = [self._load_lanes(position, mask) for position, mask in enumerate(masks)]
        for position, (mask, value) in enumerate(zip(masks, sorted_vectors(self.w, self.keys, loaded), strict=True)):
            for (kind, base), vector in zip(self._kinds("%keys"), (value.keys, value.positions), strict=False):
                self._store(kind, self.w.emit(getelementptr(kind.type, base, position)), mask, vector)
        self.w.ret("void")
        self.w.finish()

    def _load_lanes(self, position: int, mask: str) -> Lanes:
        """A vector of keys and their positions, the greatest ones where there are none."""
        found = [
            self._load(kind, self.w.emit(getelementptr(kind.type, base, position)), mask, f"splat ({kind.element} -1)")
            for kind, base in self._kinds("%keys")
        ]
        return Lanes(*found)

    def _kinds(self, base: str) -> list[tuple[KeyVector, str]]:
        """The vectors and the memory of keys, and of their positions where they have some."""
        keys = (KeyVector(self.keys.bits, self.keys.lanes), base)
        return [keys, (self.keys.positions, f"{base}_positions")] if self.keys.has_positions else [keys]

    def pivot(self) -> None:
        """The median of a vector of keys, which stand at even distances, and 0 where all of these are equal."""
        keys, w = KeyVector(self.keys.bits, self.keys.lanes), self.w
        distance = w.emit(binary("lshr", "i64", "%count", keys.lanes.bit_length() - 1))
        found = "poison"
        for lane in range(keys.lanes):
            place = w.emit(getelementptr(keys.element, "%keys", w.emit(binary("mul", "i64", distance, lane))))
            key = w.emit(load(keys.element, place, keys.bits // 8))
            found = w.emit(insertelement(keys.type, found, keys.element, key, lane))
        (vector,) = sorted_vectors(w, keys, [Lanes(self._keys(found))])
        least, median, greatest = (
            w.emit(extractelement(keys.type, vector.keys, lane)) for lane in (0, keys.lanes // 2, keys.lanes - 1)
        )
        spread = w.emit(binary("sub", keys.element, greatest, least))
        is_least = w.emit(icmp("eq", keys.element, median, least))
        beyond = w.emit(binary("and", "i1", is_least, w.emit(icmp("ne", keys.element, spread, 0))))
        median = w.emit(binary("add", keys.element, median, w.emit(cast("zext", "i1", beyond, keys.element))))
        pair = f"<2 x {keys.element}>"
        found = w.emit(insertelement(pair, "poison", keys.element, median, 0))
        w.ret(pair, w.emit(insertelement(pair, found, keys.element, spread, 1)))
        w.finish()

    def _keys(self, vector: str) -> str:
        """The keys of a vector as it is read."""
        return vector

    def partition(self) -> None:
        """Put the keys below a pivot first; gives how many there are."""
        w, step = self.w, UNROLLED * self.keys.lanes
        pivots = broadcast(w, "%pivot", f"uint{self.keys.bits}", self.keys.lanes)
        whole = w.emit(binary("and", "i64", "%count", -step))
        first = w.emit(icmp("ne", "i64", whole, 0))
        w.branch(first, "vectors", "rest")
        after = self._loop("vectors", ("0", "0", "0"), "body", whole, step, lambda state: self._vectors(pivots, state))
        w.open("rest")
        states = [w.emit(phi("i64", ("0", "body"), (value, "vectors"))) for value in after]
        more = w.emit(icmp("ult", "i64", states[0], "%count"))
        w.branch(more, "tail", "back")
        rest = self._loop(
            "tail", (states[0], states[1], states[2]), "rest", "%count", self.keys.lanes,
            lambda state: self._tail(pivots, state),
        )  # fmt: skip
        w.open("back")
        less, others = (
            w.emit(phi("i64", (before, "rest"), (found, "tail")))
            for before, found in zip(states[1:], rest[1:], strict=True)
        )
        for (kind, base), (_, spare) in zip(self._kinds("%keys"), self._kinds("%spare"), strict=True):
            place = w.emit(getelementptr(kind.element, base, less))
            size = w.emit(binary("mul", "i64", others, kind.bits // 8))
            self._do("llvm.memcpy.p0.p0.i64", [("ptr", place), ("ptr", spare), ("i64", size), ("i1", "false")])
        w.ret("i64", less)
        w.finish()

    def _loop(self, label: str, start: tuple[str, str, str], before: str, end: str, step: int, body: Body) -> list[str]:
        """A loop over positions that carries how many keys were less and how many were not; what it leaves behind."""
        w = self.w
        w.open(label)
        names = [f"%{label}.{name}" for name in ("at", "less", "others")]
        following = [f"{name}.next" for name in names]
        for name, first, then in zip(names, start, following, strict=True):
            w.define(name, phi("i64", (first, before), (then, label)))
        less, others = body(names)
        w.define(following[0], binary("add", "i64", names[0], step))
        w.define(following[1], binary("add", "i64", less, 0))
        w.define(following[2], binary("add", "i64", others, 0))
        w.branch(w.emit(icmp("ult", "i64", following[0], end)), label, "rest" if label == "vectors" else "back")
        return following

    def _vectors(self, pivots: str, state: list[str]) -> tuple[str, str]:
        """Part whole vectors, which are all read before the first is written."""
        keys, w, (at, less, others) = self.keys, self.w, state
        starts = [w.emit(binary("add", "i64", at, position * keys.lanes)) for position in range(UNROLLED)]
        loaded = [
            [
                w.emit(load(kind.type, w.emit(getelementptr(kind.element, base, start)), kind.bits // 8))
                for start in starts
            ]
            for kind, base in self._kinds("%keys")
        ]
        for vectors in zip(*loaded, strict=True):
            below = w.emit(icmp("ult", keys.type, vectors[0], pivots))
            rest = w.emit(binary("xor", keys.mask_type, below, "splat (i1 true)"))
            for target, offset, mask in (("%keys", less, below), ("%spare", others, rest)):
                for (kind, base), vector in zip(self._kinds(target), vectors, strict=True):
                    place = w.emit(getelementptr(kind.element, base, offset))
                    w.do(store(kind.type, self._compressed(kind, vector, mask), place, kind.bits // 8))
            count = self._count(below)
            less = w.emit(binary("add", "i64", less, count))
            others = w.emit(binary("sub", "i64", w.emit(binary("add", "i64", others, keys.lanes)), count))
        return less, others

    def _tail(self, pivots: str, state: list[str]) -> tuple[str, str]:
        """Part a vector of which only the first keys may be there."""
        keys, w, (at, less, others) = self.keys, self.w, state
        left = w.emit(binary("sub", "i64", "%count", at))
        there = self._below(left, 0)
        vectors = [
            self._load(kind, w.emit(getelementptr(kind.element, base, at)), there, "poison")
            for kind, base in self._kinds("%keys")
        ]
        below = w.emit(binary("and", keys.mask_type, w.emit(icmp("ult", keys.type, vectors[0], pivots)), there))
        rest = w.emit(binary("xor", keys.mask_type, below, there))
        counts = [self._count(mask) for mask in (below, rest)]
        parts = (("%keys", less, below), ("%spare", others, rest))
        for (target, offset, mask), count in zip(parts, counts, strict=True):
            for (kind, base), vector in zip(self._kinds(target), vectors, strict=True):
                place = w.emit(getelementptr(kind.element, base, offset))
                self._store(kind, place, self._below(count, 0), self._compressed(kind, vector, mask))
        return w.emit(binary("add", "i64", less, counts[0])), w.emit(binary("add", "i64", others, counts[1]))

    def _below(self, count: str, base: int) -> str:
        """A mask of the lanes that are below a count, from a position on."""
        w, lanes = self.w, self.keys.lanes
        left = w.emit(binary("sub", "i64", count, base)) if base else count
        short = w.emit(cast("trunc", "i64", self._least(left, lanes), "i32"))
        return w.emit(icmp("slt", f"<{lanes} x i32>", counted("i32", lanes), broadcast(w, short, "int32", lanes)))

    def _least(self, value: str, bound: int) -> str:
        return self._call("llvm.smin.i64", "i64", [("i64", value), ("i64", bound)])

    def _count(self, mask: str) -> str:
        """How many lanes a mask picks."""
        ty = f"i{self.keys.lanes}"
        bits = self.w.emit(cast("bitcast", self.keys.mask_type, mask, ty))
        return self.w.emit(cast("zext", ty, self._call(f"llvm.ctpop.{ty}", ty, [(ty, bits)]), "i64"))

    def _compressed(self, kind: KeyVector, vector: str, mask: str) -> str:
        name = f"llvm.experimental.vector.compress.{kind.suffix}"
        return self._call(name, kind.type, [(kind.type, vector), (kind.mask_type, mask), (kind.type, "poison")])

    def _load(self, kind: KeyVector, place: str, mask: str, rest: str) -> str:
        name = f"llvm.masked.load.{kind.suffix}.p0"
        return self._call(name, kind.type, [("ptr", place), (kind.mask_type, mask), (kind.type, rest)])

    def _store(self, kind: KeyVector, place: str, mask: str, value: str) -> None:
        name = f"llvm.masked.store.{kind.suffix}.p0"
        self._do(name, [(kind.type, value), ("ptr", place), (kind.mask_type, mask)])

    def _call(self, name: str, result: str, arguments: list[tuple[str, Operand]]) -> str:
        return self.w.emit(call(result, self._declared(name, result, arguments), arguments))

    def _do(self, name: str, arguments: list[tuple[str, Operand]]) -> None:
        self.w.do(call("void", self._declared(name, "void", arguments), arguments))

    def _declared(self, name: str, result: str, arguments: list[tuple[str, Operand]]) -> str:
        return self.module.declare(name, result, tuple(ty for ty, _ in arguments))
