"""The table of processors: name, architecture and what the hardware has.

    cpu ::= name ["f"]        the suffix f of a Cortex-M name means "with its floating-point unit"

Facts are the vendors' (Arm, Intel, AMD, RISC-V International, NVIDIA). A `CPU` is its canonical name with attributes.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

__all__ = ["CPU", "CPUS", "CPUFacts", "find_cpu", "nearest_cpu"]


@dataclass(frozen=True, slots=True)
class CPUFacts:
    """One row: architecture (the first component of the triple), optional units, vector width in bits."""

    arch: str
    fpu: str = ""
    has_dsp: bool = False
    has_mve: bool = False
    vector_bits: int = 0
    fpu_optional: bool = False

    @property
    def vector_registers(self) -> int:
        """How many vector registers an instruction can name."""
        if not self.vector_bits:
            return 0
        if self.has_mve:
            return 8
        return 32 if self.vector_bits == 512 or self.arch in ("aarch64", "riscv64", "nvptx64") else 16

    @property
    def streaming_bytes(self) -> int:
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


def _rows() -> dict[str, CPUFacts]:
    rows: dict[str, CPUFacts] = {}

    def add(names: str, facts: CPUFacts) -> None:
        rows.update(dict.fromkeys(names.split(), facts))

    add("cortex-m0 cortex-m0plus cortex-m1", CPUFacts("thumbv6m"))
    add("cortex-m3", CPUFacts("thumbv7m"))
    add("cortex-m4", CPUFacts("thumbv7em", "fpv4-sp-d16", has_dsp=True, fpu_optional=True))
    add("cortex-m7", CPUFacts("thumbv7em", "fpv5-sp-d16", has_dsp=True, fpu_optional=True))
    add("cortex-m23", CPUFacts("thumbv8m.base"))
    add("cortex-m33 cortex-m35p", CPUFacts("thumbv8m.main", "fpv5-sp-d16", has_dsp=True, fpu_optional=True))
    add(
        "cortex-m55 cortex-m85",
        CPUFacts("thumbv8.1m.main", "fp-armv8-fullfp16-d16", has_dsp=True, has_mve=True, vector_bits=128),
    )
    add("cortex-a5 cortex-a7 cortex-a8 cortex-a9 cortex-a15", CPUFacts("armv7a", "neon-vfpv4", vector_bits=128))
    add(
        "generic-aarch64 cortex-a35 cortex-a53 cortex-a55 cortex-a57 cortex-a72 cortex-a73 cortex-a75 cortex-a76"
        " cortex-a78 cortex-x1 neoverse-n1 apple-m1 apple-m2 apple-m3",
        CPUFacts("aarch64", "neon", vector_bits=128),
    )
    add("neoverse-n2 neoverse-v2 cortex-a510 cortex-a710 cortex-x2", CPUFacts("aarch64", "neon", vector_bits=128))
    add("neoverse-v1", CPUFacts("aarch64", "neon", vector_bits=256))
    add("x86-64 x86-64-v2 core2 nehalem westmere", CPUFacts("x86_64", "sse2", vector_bits=128))
    add("sandybridge ivybridge btver2 bdver1 bdver2", CPUFacts("x86_64", "avx", vector_bits=256))
    add(
        "x86-64-v3 haswell broadwell skylake alderlake znver1 znver2 znver3",
        CPUFacts("x86_64", "avx2", vector_bits=256),
    )
    add(
        "x86-64-v4 skylake-avx512 cascadelake cooperlake icelake-client icelake-server tigerlake sapphirerapids"
        " graniterapids znver4 znver5",
        CPUFacts("x86_64", "avx512", vector_bits=512),
    )
    add("generic-rv32 sifive-e31", CPUFacts("riscv32"))
    add("sifive-e76", CPUFacts("riscv32", "f"))
    add("generic-rv64 sifive-u54 sifive-u74 rocket-rv64", CPUFacts("riscv64", "d"))
    add("sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120", CPUFacts("nvptx64", "f64", vector_bits=128))
    add("generic-wasm32 mvp", CPUFacts("wasm32", "f64"))
    add("bleeding-edge", CPUFacts("wasm32", "f64", vector_bits=128))
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
