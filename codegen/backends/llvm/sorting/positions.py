"""The functions that put the positions of elements in order where that takes no sort: what T.sort_positions calls.

    weft.sort.positions.<keys>(to, from, count, negative, other, magnitude, infinity)

The positions, numbers of 32 bits, of elements that rise or fall, also with equal ones, are written at once, those of
two runs that nearly all elements are in are merged from both ends at once, block by block where one run is short, and
what stands between the runs is put among them. Many elements of few kinds are counted: a table of slots, found by
multiplication, has each kind; then a second walk puts each position where those of its kind begin. Where the first ones
are of at most `_COMPARED` kinds, vectors of elements are compared with each instead. Of other elements the first
position is -1.

The key of a float is one for zeros of both signs and one for all nan: `magnitude` masks the bits that say its size, of
which those above `infinity` say nan; integers have one code. Equal keys keep the order of their positions throughout.

Source: Knuth, The Art of Computer Programming 3, 5.2.4 and 6.4; Peters, Timsort, 2002.
"""

from __future__ import annotations

from string import Template

from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.writer import FEW_SHARE, GOLDEN, template

__all__ = ["emit_positions"]

_MOST_LANES = 16
"""The lanes of a vector of positions."""
_MOST_PUT = 64
"""The most elements between two runs."""
_LEAST_MERGED = {16: 1 << 15, 32: 1 << 11, 64: 1 << 8}
"""Of how many elements long runs are merged, by their bits: narrow ones are sorted in less time."""
_LEAST_COUNTED = 1 << 12
"""Of how many elements few kinds are counted."""
_SLOTS, _LOOKED_AT, _COMPARED = 256, 1 << 10, 8
"""The slots of the table, how many elements are counted before it is asked whether few kinds are compared, how few."""
_KEY = Template("""\
  %other_place = getelementptr $key, ptr %codes, i64 1
  %magnitude_place = getelementptr $key, ptr %codes, i64 2
  %infinity_place = getelementptr $key, ptr %codes, i64 3
  %negative = load $key, ptr %codes, align $bytes
  %other = load $key, ptr %other_place, align $bytes
  %magnitude = load $key, ptr %magnitude_place, align $bytes
  %infinity = load $key, ptr %infinity_place, align $bytes
  %size = and $key %element, %magnitude
  %is_zero = icmp eq $key %size, 0
  %is_nan = icmp ugt $key %size, %infinity
  %number = select i1 %is_zero, $key 0, $key %element
  %known = select i1 %is_nan, $key $greatest, $key %number
  %is_negative = icmp slt $key %known, 0
  %code = select i1 %is_negative, $key %negative, $key %other
  %key = xor $key %known, %code
""")
_KEYS = Template("""\
  %size = and $vector %elements, %magnitude
  %is_zero = icmp eq $vector %size, zeroinitializer
  %is_nan = icmp ugt $vector %size, %infinity
  %number = select <$lanes x i1> %is_zero, $vector zeroinitializer, $vector %elements
  %known = select <$lanes x i1> %is_nan, $vector splat ($key $greatest), $vector %number
  %is_negative = icmp slt $vector %known, zeroinitializer
  %code = select <$lanes x i1> %is_negative, $vector %negative, $vector %other
  %keys = xor $vector %known, %code
""")
_INTEGER_KEY = Template("""\
  %code = load $key, ptr %codes, align $bytes
  %key = xor $key %element, %code
""")
_INTEGER_KEYS = Template("""\
  %keys = xor $vector %elements, %negative
""")


def emit_positions(module: ModuleWriter, keys: KeyVector) -> None:
    """Define the functions for elements of a width in a module."""
    lanes = min(keys.lanes, _MOST_LANES)
    module.declare("llvm.memset.p0.i64", "void", ("ptr", "i8", "i64", "i1"))
    module.declare("llvm.memmove.p0.p0.i64", "void", ("ptr", "ptr", "i64", "i1"))
    for name, size in (("cttz", lanes), ("ctlz", lanes), ("cttz", 64)):
        module.declare(f"llvm.{name}.i{size}", f"i{size}", (f"i{size}", "i1"))
    module.declare(f"llvm.ctpop.i{lanes}", f"i{lanes}", (f"i{lanes}",))
    vector, mask = f"<{lanes} x i32>", f"<{lanes} x i1>"
    module.declare(f"llvm.experimental.vector.compress.v{lanes}i32", vector, (vector, mask, vector))
    module.declare(f"llvm.masked.compressstore.v{lanes}i32", "void", (vector, "ptr", mask))
    facts: dict[str, object] = {"key": keys.element, "name": keys.name, "bytes": keys.bits // 8, "lanes": lanes}
    facts |= {"vector": f"<{lanes} x {keys.element}>", "greatest": (1 << (keys.bits - 1)) - 1}
    facts |= {"counted": ", ".join(f"i32 {lane}" for lane in range(lanes)), "few_share": FEW_SHARE}
    facts |= {
        "least_looked_at": 2 * lanes,
        "most_looked_at": (1 << 31) - 2 * lanes,
        "most_put": _MOST_PUT,
        "least_merged": _LEAST_MERGED[keys.bits],
    }
    facts |= {"slots": _SLOTS, "last_slot": _SLOTS - 1, "most_distinct": _SLOTS // 2, "looked_at": _LOOKED_AT}
    facts |= {"least_counted": _LEAST_COUNTED, "most_compared": _COMPARED}
    facts |= {"slot_shift": keys.bits + 1 - _SLOTS.bit_length(), "mixes": GOLDEN >> (64 - keys.bits) | 1}
    facts |= {"widened": "bitcast i64" if keys.bits == 64 else f"zext {keys.element}"}
    facts |= {"key_of_element": _KEY.substitute(facts), "keys_of_elements": _KEYS.substitute(facts)}
    if not keys.of_floats:
        facts |= {"key_of_element": _INTEGER_KEY.substitute(facts), "keys_of_elements": _INTEGER_KEYS.substitute(facts)}
    texts = [template(name).substitute(facts) for name in ("positions.ll", "position_counts.ll")]
    for name, breaks in (("ascends", "ugt"), ("falls", "ule"), ("descends", "ult")):
        texts.append(template("position_run.ll").substitute(facts, ordered=name, breaks=breaks))
    module.define(f"weft.sort.{keys.name}", "\n".join(texts))
