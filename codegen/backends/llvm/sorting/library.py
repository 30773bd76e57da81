"""The functions that sort unsigned keys with vectors: what T.sort_keys, T.select_key and those of pairs call.

    weft.sort.<keys>(keys, spare, count)             the keys in ascending order
    weft.select.<keys>(keys, spare, count, rank)     the key of that rank in its place, lesser ones before, others after

    weft.sort.shared.<keys>(keys, spare, count, runner, frame, limit)     sort, by several threads

Keys with positions take two pointers where others take one: to keys and to their positions, to memory to spare for
both. Positions move with their keys and ascend where keys are equal, as they do when the function is called.

A quicksort: keys of at most `registers` vectors are sorted by a network; more are parted by a pivot, the median of a
vector of them, until they are that few. Parting keeps the lesser keys in front and moves the others through the spare
memory, of as many keys; lanes that a mask picks are put together by one instruction (`vpcompressd`). Equal keys keep
their order. A pivot that is the least of its sample makes way for the next number, so that keys that equal it part at
once; where no key is less than the pivot those that equal it are parted, and done. Pivots that are bad too often (2
log2 n times) lead to a heap sort, so that no order of keys takes more than n log n. Where those at even distances
are all equal, a look tells whether all keys are. For many keys the sample is as large as a network takes.

Keys that ascend or descend already are seen at once. Of others the runs at both ends are looked at (`runs.ll`): where
all keys but one in `_FEW_SHARE` are in them, what lies between is sorted, and the runs are merged. Each key of the
shorter one is looked for in the other, whose blocks move; where neither is short, wide keys are merged one by one, and
narrow ones are parted as if there were no runs, which takes less time.

Threads halve the keys by the middle of a sample, then the halves, until there are `_PARTS` parts, which they sort. The
order is the same: equal keys are the same keys, or have positions.

The code follows from the width of the keys and the number of lanes alone, and is compiled once for a machine.

Source: Hoare, Quicksort, 1962; Musser, Introspective sorting and selection algorithms, 1997; Peters, Timsort, 2002.
"""

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

__all__ = ["emit_sorts", "registers"]

_PARTS = 16
"""How many parts threads share, a power of two."""
_SAMPLED = 1 << 14
"""From how many keys on the pivot is the middle of a larger sample."""
_FEW_SHARE, _MERGED = 32, 1 << 12
"""Keys that are one in so many are put among the others one by one; from how many keys on longer runs are merged."""
UNROLLED = 8
"""The vectors that are parted at a time."""
Body = Callable[[list[str]], tuple[str, str]]
"""What a loop does, of the position and of how many keys were less and not less: how many are after it."""
_HERE = Path(__file__).parent


def registers(keys: KeyVector) -> tuple[int, int]:
    """The networks that there are, by their vectors: the most leave registers for what else a merge needs."""
    return (4, 8) if keys.has_positions else (8, 16)


def emit_sorts(module: ModuleWriter, keys: KeyVector) -> None:
    """Define the functions for keys of a width in a module."""
    module.declare("llvm.ctlz.i64", "i64", ("i64", "i1"))
    module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"))
    module.declare("llvm.memcpy.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    module.declare("llvm.memmove.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    for name in ("cttz", "ctlz"):
        module.declare(f"llvm.{name}.i{keys.lanes}", f"i{keys.lanes}", (f"i{keys.lanes}", "i1"))
    few, many = registers(keys)
    count = ("i64", "count")
    for size in (few, many):
        _Writer(module, keys, f"block{size}", "void", [*_memory(keys, "keys"), count]).network(size)
    _Writer(module, keys, "pivot", f"<2 x {keys.element}>", [("ptr", "keys"), count]).pivot()
    parted = [*_memory(keys, "keys", "noalias"), *_memory(keys, "spare", "noalias"), count, (keys.element, "pivot")]
    _Writer(module, keys, "part", "i64", parted).partition()
    reverse = ", ".join(f"i32 {lane}" for lane in reversed(range(keys.lanes)))
    facts: dict[str, object] = {"key": keys.element, "name": keys.name, "bytes": keys.bits // 8, "reverse": reverse}
    facts |= {"vector": keys.type, "lanes": keys.lanes, "few": few, "many": many}
    facts |= {"few_keys": few * keys.lanes, "many_keys": many * keys.lanes}
    facts |= {"keys": _spelled(keys, "keys"), "spare": _spelled(keys, "spare"), "from": _spelled(keys, "from")}
    found = "  %from_positions = getelementptr i32, ptr %keys_positions, i64 %first\n"
    facts |= {"find_positions": found if keys.has_positions else ""}
    sample = few * keys.lanes
    facts |= {"sampled": _SAMPLED, "half_sample": sample // 2, "last_sample": sample - 1}
    facts |= {"sample": _spelled(keys, "sample"), "sample_bytes": 4 * sample}
    facts |= {"few_share": _FEW_SHARE, "merged": _MERGED if keys.bits == 64 else -1}
    facts |= _of_threads(keys, sample)
    files = ("quicksort.ll", "runs.ll", "pairs.ll" if keys.has_positions else "keys.ll", "threads.ll")
    texts = [_template(name).substitute(facts) for name in files]
    for name, breaks in (("ascends", "ugt"), ("descends", "ule" if keys.has_positions else "ult")):
        texts.append(_template("ordered.ll").substitute(facts, ordered=name, breaks=breaks))
    module.define(f"weft.sort.{keys.name}", "\n".join(texts))


def _template(name: str) -> Template:
    return Template((_HERE / name).read_text("utf-8"))


def _of_threads(keys: KeyVector, sample: int) -> dict[str, object]:
    """What the functions for several threads need: a context of words, in which ends of parts stand from the 9th on."""
    found: dict[str, object] = {"parts": _PARTS, "end_word": 9 + _PARTS, "words": 10 + _PARTS}
    found |= {"context_bytes": 8 * (10 + _PARTS), "least": 4 * sample, "beside": _spelled(keys, "beside")}
    stores, places = [], []
    sources = [("keys", "from", keys.element, 4), ("spare", "beside", keys.element, 5)]
    if keys.has_positions:
        more = [("keys_positions", "from_positions", "i32", 6), ("spare_positions", "beside_positions", "i32", 7)]
        for name, _, _, word in more:
            stores.append(f"  %{name}_word = getelementptr i64, ptr %context, i64 {word}\n")
            stores.append(f"  store ptr %{name}, ptr %{name}_word, align 8\n")
        sources += more
    for name, place, element, word in sources:
        places.append(f"  %{name}_word = getelementptr i64, ptr %context, i64 {word}\n")
        places.append(f"  %{name} = load ptr, ptr %{name}_word, align 8\n")
        places.append(f"  %{place} = getelementptr {element}, ptr %{name}, i64 %low\n")
    return found | {"store_positions": "".join(stores), "locate": "".join(places)}


def _memory(keys: KeyVector, name: str, facts: str = "") -> list[tuple[str, str]]:
    """The parameters for memory of keys, and of their positions where they have some."""
    names = [name, f"{name}_positions"] if keys.has_positions else [name]
    return [(f"ptr {facts}".strip(), each) for each in names]


def _spelled(keys: KeyVector, name: str) -> str:
    """Those parameters as LLVM spells them, or arguments for them."""
    return ", ".join(f"{ty} %{each}" for ty, each in _memory(keys, name))


class _Writer:
    """One of the functions under construction."""

    def __init__(
        self, module: ModuleWriter, keys: KeyVector, name: str, result: str, params: list[tuple[str, str]]
    ) -> None:
        self.module, self.keys = module, keys
        self.w = FunctionWriter(module, f"weft.sort.{name}.{keys.name}", result, params, "noinline nounwind")

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
        (vector,) = sorted_vectors(w, keys, [Lanes(found)])
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
