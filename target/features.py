"""The features of a processor that generated code may use by name.

    flags     ::= (("+" | "-") name) ("," ...)*          later ones win
    +name     that feature and all that it implies
    -name     neither that feature nor any that implies it: `-avx2` leaves no AVX-512

The implications are LLVM's (`llvm/lib/Target/X86/X86.td`), so that what the rules believe of a processor is what LLVM
is told of it. Names that nothing here implies or is implied by stand for themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

__all__ = ["FLOATS_OF_X86", "LEVELS", "X86", "named_features", "vector_bits", "with_flags"]

_V2 = ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
LEVELS: Mapping[str, tuple[str, ...]] = {"x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4}
"""What the levels of the x86-64 psABI add to its first one."""
X86 = ("x86_64", "i386", "i586", "i686")
FLOATS_OF_X86 = ("sse", "sse2")
"""What weft's code needs of an x86: without them the x87 unit computes, which keeps more digits than the dtype has."""
_ALWAYS: Mapping[str, tuple[str, ...]] = {**dict.fromkeys(X86, FLOATS_OF_X86), "aarch64": ("fp-armv8", "neon")}

_IMPLIES: Mapping[str, tuple[str, ...]] = {
    "sse2": ("sse",), "sse3": ("sse2",), "ssse3": ("sse3",), "sse4.1": ("ssse3",), "sse4.2": ("sse4.1",),
    "avx": ("sse4.2",), "avx2": ("avx",), "f16c": ("avx",), "fma": ("avx",), "avxvnni": ("avx2",), "vaes": ("avx2",),
    "avxifma": ("avx2",), "avxneconvert": ("avx2",), "avxvnniint8": ("avx2",), "avxvnniint16": ("avx2",),
    "vpclmulqdq": ("avx",), "xop": ("avx",), "fma4": ("avx",), "aes": ("sse2",), "pclmul": ("sse2",), "sha": ("sse2",),
    "gfni": ("sse2",), "avx512f": ("avx2", "f16c", "fma"),
    **{f"avx512{name}": ("avx512f",) for name in ("cd", "dq", "bw", "vl", "ifma", "vpopcntdq", "vnni")},
    **{f"avx512{name}": ("avx512bw",) for name in ("vbmi", "vbmi2", "bitalg", "bf16")},
    "avx512vp2intersect": ("avx512f",), "avx512fp16": ("avx512bw", "avx512dq", "avx512vl"),
    "avx10.1": ("avx512fp16", "avx512bf16", "avx512cd", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni",
                "avx512bitalg", "avx512vpopcntdq"),
    "amx-bf16": ("amx-tile",), "amx-int8": ("amx-tile",), "amx-fp16": ("amx-tile",),
    "avx10.2": ("avx10.1",), "neon": ("fp-armv8",), "fullfp16": ("neon",), "sve": ("fullfp16",), "sve2": ("sve",),
}


@functools.cache
def _implied(name: str) -> frozenset[str]:
    """A feature and all that it implies."""
    return frozenset((name,)).union(*(_implied(other) for other in _IMPLIES.get(name, ())))


def with_flags(features: Iterable[str], flags: str) -> frozenset[str]:
    """Features after flags were applied, in order.

    >>> sorted(with_flags(["avx512f", "avx2"], "-avx512f,+popcnt"))
    ['avx2', 'popcnt']
    """
    found = set(features)
    for flag in filter(None, flags.split(",")):
        name = flag[1:]
        if flag[0] == "+":
            found |= _implied(name)
        else:
            found = {other for other in found if name not in _implied(other)}
    return frozenset(found)


@functools.lru_cache(maxsize=64)
def named_features(arch: str, cpu: str, flags: str) -> frozenset[str]:
    """The features of a processor by its name: of its level where the name is one, else of its architecture.

    >>> "f16c" in named_features("x86_64", "x86-64-v3", ""), "f16c" in named_features("x86_64", "x86-64-v3", "-avx")
    (True, False)
    """
    known = with_flags((), ",".join(f"+{name}" for name in (*_ALWAYS.get(arch, ()), *LEVELS.get(cpu, ()))))
    return with_flags(known, flags)


def vector_bits(arch: str, bits: int, flags: str) -> int:
    """The width of the vectors of a processor, of so many bits, with features switched on and off.

    >>> vector_bits("x86_64", 512, "-avx512f"), vector_bits("x86_64", 128, "+avx2"), vector_bits("aarch64", 128, "+sve")
    (256, 256, 128)
    """
    if arch != "x86_64":
        return bits
    level = {512: "x86-64-v4", 256: "x86-64-v3"}.get(bits, "x86-64")
    names = named_features(arch, level, flags)
    return 512 if "avx512f" in names else 256 if "avx" in names else 128
