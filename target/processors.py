"""The table of processors: name, architecture and what the hardware has.

    cpu ::= name ["f"]        the suffix f of a Cortex-M name means "with its floating-point unit"

Facts are the vendors' (Arm, Intel, AMD, RISC-V International, NVIDIA). A `CPU` is its canonical name with attributes.
"""

from __future__ import annotations

import difflib
from typing import Any

from weft.support.records import record

__all__ = ["CPU", "CPUS", "HOST_CPUS", "CPUFacts", "find_cpu", "nearest_cpu"]

HOST_CPUS = ("host", "native")
"""The names of the processor of this machine, whatever it is."""


@record
class CPUFacts:
    """One row: architecture (the first component of the triple), optional units, vector width in bits.

    `features` are LLVM's names of what schedules ask for (`weft.target.machine_model`); `caches` the bytes of the
    first, second and third level that one core works with (0: there is none), typical ones where a name stands for
    many processors. `slow` names dot-product instructions that are slower than multiply-adds of converted operands.
    `units` are the floating-point units that the same processor is made with, where there are several.
    """

    arch: str
    fpu: str = ""
    has_dsp: bool = False
    has_mve: bool = False
    vector_bits: int = 0
    fpu_optional: bool = False
    features: tuple[str, ...] = ()
    caches: tuple[int, int, int] = (32 << 10, 1 << 20, 32 << 20)
    slow: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @property
    def possible_units(self) -> tuple[str, ...]:
        """The floating-point units that such a processor may have."""
        return self.units or (self.fpu,)

    @property
    def vector_registers(self) -> int:
        """How many vector registers an instruction can name."""
        if not self.vector_bits:
            return 0
        if self.has_mve:
            return 8
        return 32 if self.vector_bits == 512 or self.arch in ("aarch64", "riscv64", "nvptx64") else 16

    @property
    def nontemporal_bytes(self) -> int:
        """From how many bytes on results are better stored past the caches; 0 where that is not known to pay."""
        return 1 << 25 if self.arch == "x86_64" else 0


class CPU(str):
    """The canonical name of a processor, with its architecture and floating-point unit.

    >>> cpu = find_cpu("cortex-m7f")
    >>> cpu == "cortex-m7", cpu.fpu
    (True, 'fpv5-sp-d16')
    """

    __slots__ = ("facts", "fpu")
    facts: CPUFacts
    fpu: str

    def __new__(cls, name: str, facts: CPUFacts, fpu: str) -> CPU:  # noqa: D102 (the class says it)
        cpu = super().__new__(cls, name)
        cpu.facts, cpu.fpu = facts, fpu
        return cpu

    @property
    def arch(self) -> str:
        """The architecture: the first component of its triple."""
        return self.facts.arch


_V3 = ("avx2", "fma")
_V4 = (*_V3, "avx512f")
_VNNI = (*_V4, "avx512vnni")
_BF16 = (*_VNNI, "avx512bf16")
_ICE_LAKE = (*_VNNI, "avx512vbmi2")
_ZEN_4 = (*_BF16, "avx512vbmi2")
_AMX = (*_ZEN_4, "avxvnni", "amx-int8", "amx-bf16")
_SLOW = ("vdpbf16ps",)  # 84 beside 153 GF/s in a product of 512x512x512 on emeraldrapids
_ARM_V8_4 = ("dotprod",)
_ARM_V9 = ("dotprod", "i8mm", "bf16", "sve")
_K, _M = 1 << 10, 1 << 20
_SMALL = (16 * _K, 0, 0)  # microcontrollers: a cache before flash memory at most


def _rows() -> dict[str, CPUFacts]:
    rows: dict[str, CPUFacts] = {}

    def add(names: str, arch: str, fpu: str = "", vector_bits: int = 0, **facts: Any) -> None:
        rows.update(dict.fromkeys(names.split(), CPUFacts(arch, fpu, vector_bits=vector_bits, **facts)))

    dsp: dict[str, Any] = {"has_dsp": True, "fpu_optional": True, "features": ("dsp",), "caches": _SMALL}
    add("cortex-m0 cortex-m0plus cortex-m1", "thumbv6m", caches=_SMALL)
    add("cortex-m3", "thumbv7m", caches=_SMALL)
    add("cortex-m4", "thumbv7em", "fpv4-sp-d16", **dsp)
    add("cortex-m7", "thumbv7em", "fpv5-sp-d16", units=("fpv5-sp-d16", "fpv5-d16"), **dsp)
    add("cortex-m23", "thumbv8m.base", caches=_SMALL)
    add("cortex-m33 cortex-m35p", "thumbv8m.main", "fpv5-sp-d16", **dsp)
    add(
        "cortex-m55 cortex-m85",
        "thumbv8.1m.main",
        "fp-armv8-fullfp16-d16",
        128,
        has_dsp=True,
        has_mve=True,
        features=("dsp", "mve"),
        caches=_SMALL,
    )
    add("cortex-a8 cortex-a9", "armv7a", "neon", 128, units=("neon", "vfpv3-d16"))
    add("cortex-a5 cortex-a7 cortex-a15", "armv7a", "neon-vfpv4", 128, units=("neon-vfpv4", "neon", "vfpv3-d16"))
    add("generic-aarch64 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73", "aarch64", "neon", 128)
    add("cortex-a55 cortex-a75 cortex-a76 cortex-a78 cortex-x1 neoverse-n1", "aarch64", "neon", 128, features=_ARM_V8_4)
    add("apple-m1 apple-m2 apple-m3", "aarch64", "neon", 128, features=_ARM_V8_4, caches=(128 * _K, 12 * _M, 0))
    add("neoverse-n2 neoverse-v2 cortex-a510 cortex-a710 cortex-x2", "aarch64", "neon", 128, features=_ARM_V9)
    add("neoverse-v1", "aarch64", "neon", 256, features=_ARM_V9)
    add("x86-64 x86-64-v2 core2 nehalem westmere", "x86_64", "sse2", 128)
    add("sandybridge ivybridge btver2 bdver1 bdver2", "x86_64", "avx", 256)
    add("x86-64-v3", "x86_64", "avx2", 256, features=_V3)
    add("haswell broadwell skylake", "x86_64", "avx2", 256, features=_V3, caches=(32 * _K, 256 * _K, 8 * _M))
    add("znver1 znver2 znver3", "x86_64", "avx2", 256, features=_V3, caches=(32 * _K, 512 * _K, 16 * _M))
    add(
        "alderlake raptorlake meteorlake arrowlake lunarlake",
        "x86_64",
        "avx2",
        256,
        features=(*_V3, "avxvnni"),
        caches=(48 * _K, 1280 * _K, 30 * _M),
    )
    add("x86-64-v4 skylake-avx512 cannonlake", "x86_64", "avx512", 512, features=_V4)
    add("cascadelake", "x86_64", "avx512", 512, features=_VNNI)
    add("cooperlake", "x86_64", "avx512", 512, features=_BF16, slow=_SLOW)
    add(
        "icelake-client tigerlake rocketlake",
        "x86_64",
        "avx512",
        512,
        features=_ICE_LAKE,
        caches=(48 * _K, 512 * _K, 8 * _M),
    )
    add("icelake-server", "x86_64", "avx512", 512, features=_ICE_LAKE, caches=(48 * _K, 1280 * _K, 36 * _M))
    add(
        "sapphirerapids emeraldrapids graniterapids",
        "x86_64",
        "avx512",
        512,
        features=_AMX,
        caches=(48 * _K, 2 * _M, 64 * _M),
        slow=_SLOW,
    )
    add("znver4", "x86_64", "avx512", 512, features=_ZEN_4)
    add("znver5", "x86_64", "avx512", 512, features=(*_ZEN_4, "avxvnni"), caches=(48 * _K, 1 * _M, 32 * _M))
    add("generic-rv32 sifive-e31", "riscv32", caches=_SMALL)
    add("sifive-e76", "riscv32", "f", caches=_SMALL)
    add("generic-rv64 sifive-u54 sifive-u74 rocket-rv64", "riscv64", "d")
    add("sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120", "nvptx64", "f64", 128)
    add("generic-wasm32 mvp", "wasm32", "f64")
    add("bleeding-edge", "wasm32", "f64", 128)
    return rows


CPUS: dict[str, CPUFacts] = _rows()
_ALIASES = {"cortex-m0+": "cortex-m0plus", "apple-a14": "apple-m1"}


def find_cpu(name: str) -> CPU | None:
    """The processor of a name, alias, or Cortex-M name with the suffix f; None when the table has no such name."""
    name = _ALIASES.get(name, name)
    if name in CPUS:
        facts = CPUS[name]
        return CPU(name, facts, "" if facts.fpu_optional else facts.fpu)
    base = name[:-1]
    if name.endswith("f") and base in CPUS and CPUS[base].fpu_optional:
        return CPU(base, CPUS[base], CPUS[base].fpu)
    return None


def nearest_cpu(name: str) -> str | None:
    """The known name closest to a misspelt one."""
    close = difflib.get_close_matches(name, [*CPUS, *_ALIASES], 1)
    return close[0] if close else None
