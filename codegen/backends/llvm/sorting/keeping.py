"""The functions that keep keys of elements or positions: what T.keep_keys and T.keep_positions call.

    weft.sort.keep<bits>.<keys>(to, counts, from, count, low, high, code)     elements are combined with a code
    weft.sort.keep<bits>f.<keys>(...)                                         floats of so many bits
    weft.sort.found<bits>.<positions>(to, counts, from, count, room, magnitude)

The first keep the keys of elements in a range, and count those before it, the last the positions of elements that are
not zero, of which `magnitude` has the bits that say so.

One walk compares vectors of keys with both ends of the range and puts those between next to each other (`vpcompressd`).
The keys of floats are those of `weft.ir.op.indexing.sort_keys` that only order: one for both zeros, and one for all
nan.
"""

from __future__ import annotations

from string import Template

import numpy as np

from weft.codegen.backends.llvm.asm.key_vector import KeyVector
from weft.codegen.backends.llvm.asm.module import ModuleWriter
from weft.codegen.backends.llvm.sorting.writer import declare_memory, template

__all__ = ["emit_kept_positions", "keeping_functions"]

_INTEGER_KEY = Template("""  %key = xor $elements %values, %codes
  ret $elements %key""")
_FLOAT_KEY = Template("""  %is_negative = icmp slt $elements %values, zeroinitializer
  %below = sub $elements zeroinitializer, %values
  %above = xor $elements %values, splat ($element $top)
  %number = select <$lanes x i1> %is_negative, $elements %below, $elements %above
  %magnitude = and $elements %values, splat ($element $magnitude)
  %is_nan = icmp ugt $elements %magnitude, splat ($element $infinity)
  %ordered = select <$lanes x i1> %is_nan, $elements splat ($element $nan), $elements %number
  %key = xor $elements %ordered, %codes
  ret $elements %key""")


def keeping_functions(module: ModuleWriter, keys: KeyVector) -> list[str]:
    """The text of the functions for keys of a width: of elements as wide, and of narrower ones."""
    widths = [keys.bits] if keys.bits > 32 else [16, keys.bits]
    return [_function(module, keys, bits, of_floats) for bits in widths for of_floats in (False, True)]


def _function(module: ModuleWriter, keys: KeyVector, bits: int, of_floats: bool) -> str:
    source = KeyVector(bits, keys.lanes)
    facts: dict[str, object] = {"name": keys.name, "kind": f"{bits}{'f' if of_floats else ''}", "lanes": keys.lanes}
    facts |= {"key": keys.element, "vector": keys.type, "bytes": keys.bits // 8, "key_suffix": keys.suffix}
    facts |= {"element": source.element, "elements": source.type, "element_bytes": bits // 8, "suffix": source.suffix}
    facts |= {"widen": "bitcast" if bits == keys.bits else "zext", "widen_word": "bitcast" if bits == 64 else "zext"}
    module.declare(f"llvm.umax.{source.suffix}", source.type, (source.type, source.type))
    module.declare(f"llvm.vector.reduce.umax.{source.suffix}", source.element, (source.type,))
    module.declare(
        f"llvm.experimental.vector.compress.{keys.suffix}", keys.type, (keys.type, keys.mask_type, keys.type)
    )
    formula = _FLOAT_KEY if of_floats else _INTEGER_KEY
    if of_floats:
        infinity, nan = (int(np.array(value, f"float{bits}").view(f"u{bits // 8}")) for value in (np.inf, np.nan))
        top = 1 << (bits - 1)
        facts |= {"top": top, "magnitude": top - 1, "infinity": infinity, "nan": nan | top}
    return template("keep.ll").substitute(facts, key_of=formula.substitute(facts))


def emit_kept_positions(module: ModuleWriter, positions: KeyVector) -> None:
    """Define the functions for elements of each width."""
    declare_memory(module, positions)
    module.declare("llvm.smin.i64", "i64", ("i64", "i64"))
    module.declare(
        f"llvm.experimental.vector.compress.{positions.suffix}",
        positions.type,
        (positions.type, positions.mask_type, positions.type),
    )
    facts: dict[str, object] = {"name": positions.name, "lanes": positions.lanes, "suffix": positions.suffix}
    facts |= {"key": positions.element, "vector": positions.type, "bytes": positions.bits // 8}
    facts |= {"counted": ", ".join(f"{positions.element} {lane}" for lane in range(positions.lanes))}
    for bits in (8, 16, 32, 64):
        source = KeyVector(bits, positions.lanes)
        facts |= {"bits": bits, "element": source.element, "elements": source.type, "element_bytes": bits // 8}
        module.define_all(template("keep_positions.ll").substitute(facts))
