"""The functions that sort elements from one memory to another: what T.sort_values calls.

    weft.sort.values.<keys>(to, from, count, negative, other, infinity)
    weft.sort.values.shared.<keys>(..., runner, frame, limit)    the same, by several threads

An element is combined (exclusive or) with one of two numbers, by its sign bit, so that its key is an unsigned number of
the order that is wanted. Keys are made where elements are read for the first time, and are elements again where a part
of them is in order, so that neither takes a walk of its own.

The first pivot parts the elements on their way to the other memory. There keys are parted in place: a few vectors of
both ends are set aside, so that there is room at both; the next ones are taken from the end that has less, the lesser
keys are put to one end and the others to the other. Equal keys are the same keys, so that no order among them is lost.

That order has zeros of both signs apart, and nan at both ends. Floats, whose `infinity` is not 0, are looked at once
they are sorted: where the ends or a search tell of nan or of -0.0, a walk over the elements puts zeros in the order in
which they came, and all nan where the greatest element stands.

Elements are copied as long as they are in order, and those in the opposite order from the other end. Where all but one
in `FEW_SHARE` are in runs at both ends, the runs are merged and the others, at most `_PUT_BYTES`, are sorted and put
among them. A merge works from both ends at once, without a branch on keys: the lesser lanes of a vector of one run and
of the next of the other, turned around, are the least keys of both, how many of them are of the first run says where
both go on, and half a merge puts them in order. Where one run is short, the other is merged block by block.

Many elements of at most a quarter of `_SLOTS` kinds are counted: a table of slots, found by multiplication, has each
kind and how many there are, in the memory of the result. Where the first ones are of at most `_COMPARED` kinds,
vectors of the rest are compared with each. Kinds are sorted, and every one is written as often as it was counted. One
kind too many, or too many steps from slot to slot, and the elements are parted as any others.

Source: Hoare, Quicksort, 1962; Knuth, The Art of Computer Programming 3, 6.4; Bramas, A novel hybrid quicksort
algorithm vectorized using AVX-512 on Intel Skylake, 2017; Peters, Timsort, 2002;
Papaphilippou et al., FLiMS: Fast Lightweight Merge Sorter, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from weft.codegen.backends.llvm.asm.instructions import binary, cast, getelementptr, icmp, load, phi, select, store
from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.network import Lanes, sorted_bitonic, sorted_vectors
from weft.codegen.backends.llvm.sorting.writer import (
    FEW_SHARE,
    GOLDEN,
    PARTS,
    SAMPLED,
    UNROLLED,
    SortWriter,
    declare_memory,
    registers,
    template,
)
from weft.codegen.backends.llvm.values.lanes import broadcast

__all__ = ["emit_value_sorts"]

_PUT_BYTES = 16 << 10
"""The most bytes of elements between runs that are put among the others one by one: they stand on the stack."""
_RARE_SHARE = 128
"""Where what is left of one run is one in so many, each is searched for in the other: a search takes as long as merging
about 50 others of 10,000, 300 of a million."""
_SLOTS, _LEAST_COUNTED = 1 << 10, 1 << 12
"""The table in which elements of few kinds are counted, a power of two, and of how many elements they are."""
_COMPARED = 8
"""Elements of at most so many kinds are compared with each, vector by vector."""
_IN_TABLE = 8
"""The lanes of vectors whose lanes are put apart by one move, which a table has for each choice of lanes."""
_MOVES = {32: "llvm.x86.avx2.permd", 64: "llvm.x86.avx512.permvar.di.512"}
_GROUPS = {"decoding": 2, "none": 4}
"""Where behind those of elements two numbers stand that keys are combined with, so that they are elements or stay."""
State = dict[str, str]
"""What a loop carries, by name: i64."""


def emit_value_sorts(module: ModuleWriter, keys: KeyVector) -> None:
    """Define the functions for elements of a width in a module."""
    declare_memory(module, keys)
    count = ("i64", "count")
    few, many = registers(keys)
    in_place = [("ptr", "keys"), count, ("ptr", "codes")]
    for size in (few, many):
        ValueWriter(module, keys, f"block{size}.{keys.name}", "void", in_place).decoded_network(size)
    ValueWriter(module, keys, f"pivot.{keys.name}", f"<2 x {keys.element}>", in_place).pivot()
    ValueWriter(
        module, keys, f"ascending.{keys.name}", keys.type, [(keys.type, "keys")], "alwaysinline nounwind"
    ).bitonic()
    for kinds in (_COMPARED // 2, _COMPARED):
        params = [("ptr", "from"), count, ("ptr", "distinct"), ("ptr", "found")]
        ValueWriter(module, keys, f"compare{kinds}.{keys.name}", "void", params).compare(kinds)
    pivot = (keys.element, "pivot")
    parted = replace(keys, lanes=_IN_TABLE) if keys.bits in _MOVES and keys.lanes > _IN_TABLE else keys
    if parted.lanes == _IN_TABLE:
        _emit_table(module, keys.element)
    encoded = [("ptr noalias", "to"), ("ptr noalias", "from"), count, pivot, ("ptr", "codes")]
    ValueWriter(module, parted, f"encode.{keys.name}", "i64", encoded).encode()
    ValueWriter(module, parted, f"part.{keys.name}", "i64", [("ptr", "to"), count, pivot]).part()
    facts: dict[str, object] = {"key": keys.element, "name": keys.name, "bytes": keys.bits // 8, "lanes": keys.lanes}
    facts |= {"vector": keys.type, "keys": "ptr %keys", "spare": "ptr %spare", "few": few, "many": many}
    facts |= {"few_keys": few * keys.lanes, "many_keys": many * keys.lanes}
    facts |= {"counted": ", ".join(f"i32 {lane}" for lane in range(keys.lanes)), "suffix": keys.suffix}
    facts |= {"reverse": ", ".join(f"i32 {lane}" for lane in reversed(range(keys.lanes)))}
    facts |= {"shifted": ", ".join(f"i32 {lane}" for lane in range(keys.lanes - 1, 2 * keys.lanes - 1))}
    facts |= {"sampled": SAMPLED, "half_sample": few * keys.lanes // 2, "last_sample": few * keys.lanes - 1}
    facts |= {
        "few_share": FEW_SHARE,
        "rare_share": _RARE_SHARE,
        "two_vectors": 2 * keys.lanes,
        "put": _PUT_BYTES * 8 // keys.bits,
        "parts": PARTS,
        "least": 4 * few * keys.lanes,
        **_GROUPS,
    }
    facts |= {"words": 10 + PARTS, "context_bytes": 8 * (10 + PARTS), "end_word": 9 + PARTS, "half_parts": PARTS // 2}
    facts |= _of_counts(keys)
    facts |= {"sign": 1 << (keys.bits - 1), "magnitude": (1 << (keys.bits - 1)) - 1}
    texts = [
        template(name).substitute(facts)
        for name in ("heap.ll", "keys.ll", "values.ll", "value_counts.ll", "value_runs.ll", "value_ties.ll")
    ]
    module.define_all("\n".join(texts))


def _of_counts(keys: KeyVector) -> dict[str, object]:
    """What the functions that count elements of few kinds need."""
    found: dict[str, object] = {"slots": _SLOTS, "last_slot": _SLOTS - 1, "most_distinct": _SLOTS // 4}
    found |= {"slot_shift": keys.bits + 1 - _SLOTS.bit_length(), "mixes": GOLDEN >> (64 - keys.bits) | 1}
    found |= {
        "least_counted": max(_LEAST_COUNTED, 16 * _SLOTS * 8 // keys.bits),
        "looked_at": _LEAST_COUNTED // 4,
        "last_lane": keys.lanes - 1,
    }
    found |= {"most_compared": _COMPARED, "half_compared": _COMPARED // 2}
    found |= {"count_bytes": 8 * _SLOTS, "most_summed": min(keys.lanes * ((1 << keys.bits) - 1), (1 << 63) - 1)}
    return found | {"widened": "bitcast i64" if keys.bits == 64 else f"zext {keys.element}"}


def _emit_table(module: ModuleWriter, element: str) -> None:
    """Define the order of 8 lanes for each choice of lanes: those that are chosen, then the others."""
    rows = (sorted(range(_IN_TABLE), key=lambda lane: not choice >> lane & 1) for choice in range(1 << _IN_TABLE))
    numbers = ", ".join(f"{element} {lane}" for row in rows for lane in row)
    size = _IN_TABLE << _IN_TABLE
    module.add_global(f"@weft.sort.lanes = internal constant [{size} x {element}] [{numbers}], align 64")


class ValueWriter(SortWriter):
    """One of the functions under construction, over keys that elements become and become elements."""

    def decoded_network(self, size: int) -> None:
        """Sort at most so many vectors, and make elements of them; what is beyond them counts as greatest."""
        masks = [self._below("%count", position * self.keys.lanes) for position in range(size)]
        codes = self._code(0), self._code(1)
        vectors = [self._load_lanes(position, mask) for position, mask in enumerate(masks)]
        for position, (mask, value) in enumerate(zip(masks, sorted_vectors(self.w, self.keys, vectors), strict=True)):
            self._store(self.keys, self._at(position), mask, self._coded(value.keys, *codes))
        self.w.ret("void")
        self.w.finish()

    def bitonic(self) -> None:
        """The keys of a vector, the lesser or the greater halves of two sorted ones, in ascending order."""
        self.w.ret(self.keys.type, sorted_bitonic(self.w, self.keys, Lanes("%keys")).keys)
        self.w.finish()

    def _at(self, position: int) -> str:
        """Where a vector of keys stands."""
        return self.w.emit(getelementptr(self.keys.type, "%keys", position))

    def compare(self, kinds: int) -> None:
        """How many elements, of which there are whole vectors, equal each of so many."""
        w, keys = self.w, self.keys
        vectors = []
        for kind in range(kinds):
            element = w.emit(load(keys.element, w.emit(getelementptr(keys.element, "%distinct", kind)), keys.bits // 8))
            vectors.append(broadcast(w, element, f"uint{keys.bits}", keys.lanes))
        w.jump("vectors")
        w.open("vectors")
        w.define("%at", phi("i64", ("0", "body"), ("%at.next", "vectors")))
        for kind in range(kinds):
            w.define(f"%sum{kind}", phi(keys.type, ("zeroinitializer", "body"), (f"%sum{kind}.next", "vectors")))
        found = w.emit(load(keys.type, self._place("%from", "%at"), keys.bits // 8))
        for kind, vector in enumerate(vectors):
            same = w.emit(cast("sext", keys.mask_type, w.emit(icmp("eq", keys.type, found, vector)), keys.type))
            w.define(f"%sum{kind}.next", binary("sub", keys.type, f"%sum{kind}", same))
        w.define("%at.next", binary("add", "i64", "%at", keys.lanes))
        w.branch(w.emit(icmp("ult", "i64", "%at.next", "%count")), "vectors", "back")
        w.open("back")
        for kind in range(kinds):
            wide = KeyVector(64, keys.lanes)
            sums = f"%sum{kind}.next"
            if keys.bits < wide.bits:
                sums = w.emit(cast("zext", keys.type, sums, wide.type))
            total = self._call(f"llvm.vector.reduce.add.{wide.suffix}", "i64", [(wide.type, sums)])
            w.do(store("i64", total, w.emit(getelementptr("i64", "%found", kind)), 8))
        w.ret("void")
        w.finish()

    def _keys(self, vector: str) -> str:
        """The keys of a vector of elements."""
        return self._coded(vector, self._code(0), self._code(1))

    def encode(self) -> None:
        """Put keys of elements below a pivot first in another memory, others last; gives how many are below it.

        There are two blocks of vectors at least. Whole vectors are written as long as there is room for two.
        """
        w, lanes, step = self.w, self.keys.lanes, UNROLLED * self.keys.lanes
        pivots, codes = self._pivots(), (self._code(0), self._code(1))
        roomy = w.emit(binary("sub", "i64", "%count", step + 2 * lanes - 1))

        def body(state: State) -> State:
            parted = self._block("%from", state["at"], UNROLLED, pivots, codes, state)
            return {"at": w.emit(binary("add", "i64", state["at"], step)), **parted}

        w.jump("vectors")
        start = {"at": "0", "less": "0", "right": "%count"}
        state = self._repeat("vectors", "body", start, body, ("at", roomy), "rest")
        w.open("rest")
        self._rest("%from", "%count", pivots, codes, state)

    def part(self) -> None:
        """Put keys below a pivot first, in place; gives how many there are.

        There are two blocks of vectors at least.
        """
        w, step = self.w, UNROLLED * self.keys.lanes
        size = self.keys.bits // 8
        pivots, codes = self._pivots(), None
        saved = w.alloca(self.keys.element, 3 * step, align=64)
        whole = w.emit(binary("and", "i64", "%count", -step))
        last = w.emit(binary("sub", "i64", whole, step))
        rest = w.emit(binary("sub", "i64", "%count", whole))
        for place, start in ((0, "0"), (step, last)):
            self._copy(saved, place, "%to", start, step * size)
        final = w.emit(binary("sub", "i64", "%count", step))
        self._copy(saved, w.emit(binary("add", "i64", rest, step)), "%to", final, step * size)
        start = {"low": str(step), "high": last, "less": "0", "right": "%count"}
        some = w.emit(icmp("ult", "i64", str(step), last))
        w.branch(some, "vectors", "rest")

        def body(state: State) -> State:
            room = w.emit(binary("sub", "i64", state["low"], state["less"]))
            other_room = w.emit(binary("sub", "i64", state["right"], state["high"]))
            is_low = w.emit(icmp("ule", "i64", room, other_room))
            below = w.emit(binary("sub", "i64", state["high"], step))
            at = w.emit(select("i1", is_low, "i64", state["low"], below))
            above = w.emit(binary("add", "i64", state["low"], step))
            low = w.emit(select("i1", is_low, "i64", above, state["low"]))
            high = w.emit(select("i1", is_low, "i64", state["high"], below))
            return {"low": low, "high": high, **self._block("%to", at, UNROLLED, pivots, codes, state)}

        after = self._repeat("vectors", "body", start, body, ("low", "high"), "rest")
        w.open("rest")
        state = {n: w.emit(phi("i64", (start[n], "body"), (after[n], "vectors"))) for n in ("less", "right")}
        left = w.emit(binary("add", "i64", rest, 2 * step))
        self._rest(saved, left, pivots, codes, {"at": "0", **state})

    def _rest(self, source: str, count: str, pivots: str, codes: tuple[str, str] | None, state: State) -> None:
        """Part what is left of a memory, two vectors at least, into as much room; ends the function.

        Whole vectors are written as long as there is room for two.
        """
        w, keys = self.w, self.keys
        roomy = w.emit(binary("sub", "i64", count, 2 * keys.lanes))

        def whole(now: State) -> State:
            parted = self._block(source, now["at"], 1, pivots, codes, now)
            return {"at": w.emit(binary("add", "i64", now["at"], keys.lanes)), **parted}

        w.jump("whole")
        state = self._repeat("whole", "rest", state, whole, ("at", roomy), "end")
        w.open("end")
        w.jump("tail")

        def body(now: State) -> State:
            there = self._below(w.emit(binary("sub", "i64", count, now["at"])), 0)
            vector = self._load(keys, self._place(source, now["at"]), there, "zeroinitializer")
            key = self._coded(vector, *codes) if codes else vector
            below = w.emit(binary("and", keys.mask_type, w.emit(icmp("ult", keys.type, key, pivots)), there))
            others = w.emit(binary("xor", keys.mask_type, below, there))
            less, right = self._count(below), w.emit(binary("sub", "i64", now["right"], self._count(others)))
            self._store(keys, self._place("%to", now["less"]), self._first(less), self._compressed(keys, key, below))
            shown = self._first(self._count(others))
            self._store(keys, self._place("%to", right), shown, self._compressed(keys, key, others))
            at = w.emit(binary("add", "i64", now["at"], keys.lanes))
            return {"at": at, "less": w.emit(binary("add", "i64", now["less"], less)), "right": right}

        after = self._repeat("tail", "end", state, body, ("at", count), "back")
        w.open("back")
        w.ret("i64", after["less"])
        w.finish()

    def _block(
        self, source: str, at: str, vectors: int, pivots: str, codes: tuple[str, str] | None, state: State
    ) -> State:
        """Part some vectors, which are all read before the first is written; where keys go then."""
        w, keys = self.w, self.keys
        places = [w.emit(binary("add", "i64", at, position * keys.lanes)) for position in range(vectors)]
        loaded = [w.emit(load(keys.type, self._place(source, place), keys.bits // 8)) for place in places]
        for vector in loaded:
            key = self._coded(vector, *codes) if codes else vector
            below = w.emit(icmp("ult", keys.type, key, pivots))
            state = (self._moved if keys.lanes == _IN_TABLE else self._picked)(key, below, state)
        return state

    def _moved(self, key: str, below: str, state: State) -> State:
        """Put all lanes to both ends, those below first, as a table says: of each, what is no key there is free."""
        w, keys = self.w, self.keys
        bits = w.emit(cast("zext", "i8", w.emit(cast("bitcast", keys.mask_type, below, "i8")), "i64"))
        row = w.emit(getelementptr(keys.type, "@weft.sort.lanes", bits))
        lanes = w.emit(load(keys.type, row, keys.bits))
        apart = self._call(_MOVES[keys.bits], keys.type, [(keys.type, key), (keys.type, lanes)])
        w.do(store(keys.type, apart, self._place("%to", state["less"]), keys.bits // 8))
        start = w.emit(binary("sub", "i64", state["right"], keys.lanes))
        w.do(store(keys.type, apart, self._place("%to", start), keys.bits // 8))
        count = self._count(below)
        less = w.emit(binary("add", "i64", state["less"], count))
        return {"less": less, "right": w.emit(binary("add", "i64", start, count))}

    def _picked(self, key: str, below: str, state: State) -> State:
        """Put the lanes below to one end, the others to the other."""
        w, keys = self.w, self.keys
        others = w.emit(binary("xor", keys.mask_type, below, "splat (i1 true)"))
        count = self._count(below)
        beside = w.emit(binary("sub", "i64", str(keys.lanes), count))
        right = w.emit(binary("sub", "i64", state["right"], beside))
        place = self._place("%to", state["less"])
        w.do(store(keys.type, self._compressed(keys, key, below), place, keys.bits // 8))
        self._store(keys, self._place("%to", right), self._first(beside), self._compressed(keys, key, others))
        return {"less": w.emit(binary("add", "i64", state["less"], count)), "right": right}

    def _repeat(
        self,
        label: str,
        before: str,
        start: Mapping[str, str],
        body: Callable[[State], State],
        bounds: tuple[str, str],
        end: str,
    ) -> State:
        """A loop of one block that carries numbers, while one is below another or a value; what it leaves behind."""
        w = self.w
        w.open(label)
        names = {name: f"%{label}.{name}" for name in start}
        for name, first in start.items():
            w.define(names[name], phi("i64", (first, before), (f"{names[name]}.next", label)))
        found = body(names)
        following = {name: f"{names[name]}.next" for name in start}
        for name in start:
            w.define(following[name], binary("add", "i64", found[name], 0))
        below, above = (following.get(bound, bound) for bound in bounds)
        w.branch(w.emit(icmp("ult", "i64", below, above)), label, end)
        return following

    def _pivots(self) -> str:
        return broadcast(self.w, "%pivot", f"uint{self.keys.bits}", self.keys.lanes)

    def _code(self, position: int) -> str:
        """A number that elements or keys are combined with, in every lane."""
        keys = self.keys
        place = self.w.emit(getelementptr(keys.element, "%codes", position))
        return broadcast(self.w, self.w.emit(load(keys.element, place, keys.bits // 8)), f"uint{keys.bits}", keys.lanes)

    def _coded(self, vector: str, negative: str, other: str) -> str:
        """Each lane combined with one of two numbers, by its sign bit."""
        w, keys = self.w, self.keys
        is_negative = w.emit(icmp("slt", keys.type, vector, "zeroinitializer"))
        return w.emit(
            binary("xor", keys.type, vector, w.emit(select(keys.mask_type, is_negative, keys.type, negative, other)))
        )

    def _first(self, count: str) -> str:
        """A mask of so many lanes from the first on."""
        w, lanes = self.w, self.keys.lanes
        above = w.emit(binary("shl", "i64", "1", count))
        bits = w.emit(cast("trunc", "i64", w.emit(binary("sub", "i64", above, 1)), f"i{lanes}"))
        return w.emit(cast("bitcast", f"i{lanes}", bits, self.keys.mask_type))

    def _place(self, base: str, index: str) -> str:
        return self.w.emit(getelementptr(self.keys.element, base, index))

    def _copy(self, to: str, place: int | str, source: str, start: str, size: int) -> None:
        target = self.w.emit(getelementptr(self.keys.element, to, place))
        moved = [("ptr", target), ("ptr", self._place(source, start)), ("i64", size), ("i1", "false")]
        self._do("llvm.memcpy.p0.p0.i64", moved)  # type: ignore[arg-type]
