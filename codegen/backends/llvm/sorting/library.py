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
all keys but one in `FEW_SHARE` are in them, what lies between is sorted, and the runs are merged. Each key of the
shorter one is looked for in the other, whose blocks move; where neither is short, wide keys are merged one by one, and
narrow ones are parted as if there were no runs, which takes less time.

Threads halve the keys by the middle of a sample, then the halves, until there are `PARTS` parts, which they sort. The
order is the same: equal keys are the same keys, or have positions.

The code follows from the width of the keys and the number of lanes alone, and is compiled once for a machine.

Source: Hoare, Quicksort, 1962; Musser, Introspective sorting and selection algorithms, 1997; Peters, Timsort, 2002.
"""

from __future__ import annotations

from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.keeping import emit_kept_positions, keeping_functions
from weft.codegen.backends.llvm.sorting.positions import emit_positions
from weft.codegen.backends.llvm.sorting.values import emit_value_sorts
from weft.codegen.backends.llvm.sorting.writer import (
    FEW_SHARE,
    PARTS,
    SAMPLED,
    SortWriter,
    declare_memory,
    registers,
    template,
)

__all__ = ["emit_sorts"]

_MERGED = 1 << 12
"""From how many keys on long runs are merged."""


def emit_sorts(module: ModuleWriter, keys: KeyVector) -> None:
    """Define the functions for keys of a width in a module."""
    if keys.are_positions:
        emit_kept_positions(module, keys)
        return
    if keys.of_values or keys.of_order:
        (emit_value_sorts if keys.of_values else emit_positions)(module, keys)
        return
    declare_memory(module, keys)
    few, many = registers(keys)
    count = ("i64", "count")
    for size in (few, many):
        SortWriter(module, keys, f"block{size}.{keys.name}", "void", [*_memory(keys, "keys"), count]).network(size)
    SortWriter(module, keys, f"pivot.{keys.name}", f"<2 x {keys.element}>", [("ptr", "keys"), count]).pivot()
    parted = [*_memory(keys, "keys", "noalias"), *_memory(keys, "spare", "noalias"), count, (keys.element, "pivot")]
    SortWriter(module, keys, f"part.{keys.name}", "i64", parted).partition()
    reverse = ", ".join(f"i32 {lane}" for lane in reversed(range(keys.lanes)))
    facts: dict[str, object] = {"key": keys.element, "name": keys.name, "bytes": keys.bits // 8, "reverse": reverse}
    facts |= {"vector": keys.type, "lanes": keys.lanes, "few": few, "many": many}
    facts |= {"few_keys": few * keys.lanes, "many_keys": many * keys.lanes}
    facts |= {"keys": _spelled(keys, "keys"), "spare": _spelled(keys, "spare"), "from": _spelled(keys, "from")}
    found = "  %from_positions = getelementptr i32, ptr %keys_positions, i64 %first\n"
    facts |= {"find_positions": found if keys.has_positions else ""}
    sample = few * keys.lanes
    facts |= {"sampled": SAMPLED, "half_sample": sample // 2, "last_sample": sample - 1}
    facts |= {"sample": _spelled(keys, "sample"), "sample_bytes": 4 * sample}
    facts |= {"few_share": FEW_SHARE, "merged": _MERGED if keys.bits == 64 else -1}
    facts |= _of_threads(keys, sample)
    files = ("heap.ll", "quicksort.ll", "runs.ll", "pairs.ll" if keys.has_positions else "keys.ll", "threads.ll")
    texts = [template(name).substitute(facts) for name in files]
    for name, breaks in (("ascends", "ugt"), ("descends", "ule" if keys.has_positions else "ult")):
        texts.append(template("ordered.ll").substitute(facts, ordered=name, breaks=breaks))
    if not keys.has_positions:
        texts += keeping_functions(module, keys)
    module.define_all("\n".join(texts))


def _of_threads(keys: KeyVector, sample: int) -> dict[str, object]:
    """What the functions for several threads need: a context of words, in which ends of parts stand from the 9th on."""
    found: dict[str, object] = {"parts": PARTS, "end_word": 9 + PARTS, "words": 10 + PARTS}
    found |= {"context_bytes": 8 * (10 + PARTS), "least": 4 * sample, "beside": _spelled(keys, "beside")}
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
