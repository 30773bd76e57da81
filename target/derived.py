"""What follows from the options of a leaf target: processor, triple, features, the flags of GCC."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from weft.errors import TargetError
from weft.support.records import record
from weft.target.float_units import effective_unit
from weft.target.machine_model import MachineModel, machine_model
from weft.target.processors import CPU, HOST_CPUS, CPUFacts, find_cpu
from weft.target.triple import Triple

__all__ = ["Features", "cpu_of", "facts_of", "features_of", "gcc_flags_of", "machine_of", "triple_of"]

_BASELINES = {"x86_64": "x86-64", "AMD64": "x86-64", "aarch64": "generic-aarch64", "arm64": "generic-aarch64"}


@record
class Features:
    """What follows from a target's processor; read-only."""

    has_dsp: bool
    has_fpu: bool
    has_mve: bool
    pointer_bits: int
    endian: str
    vector_bits: int
    vector_registers: int
    streaming_bytes: int


def cpu_of(name: str | None, options: Mapping[str, Any]) -> CPU | None:
    """The processor, when it is named (None for `host` and kinds without one)."""
    if name is None or name in HOST_CPUS:
        return None
    cpu = find_cpu(name)
    assert cpu is not None  # the canonicaliser let only known names in
    return CPU(str(cpu), cpu.facts, effective_unit(cpu, options))


def triple_of(cpu: CPU | None, options: Mapping[str, Any]) -> Triple | None:
    """The triple given, or the one that follows from the processor; None for `host` without one."""
    if "mtriple" in options:
        return Triple.parse(options["mtriple"])
    if cpu is None:
        return None
    if cpu.arch.startswith("thumb"):
        return Triple(cpu.arch, "none", "none", "eabihf" if options.get("mfloat_abi") == "hard" else "eabi")
    if cpu.arch.startswith("wasm"):
        return Triple(cpu.arch)
    if cpu.arch == "armv7a":
        soft = options.get("mfloat_abi") in ("soft", "softfp") or not effective_unit(cpu, options)
        return Triple(cpu.arch, "unknown", "linux", "gnueabi" if soft else "gnueabihf")
    return Triple(cpu.arch, "unknown", "linux", "gnu")


def facts_of(cpu: CPU | None, triple: Triple | None) -> tuple[CPUFacts | None, str]:
    """The row of a processor and its floating-point unit; for `host`, what all of its architecture have."""
    if cpu is None:
        cpu = find_cpu(_BASELINES.get(triple.arch if triple else platform.machine(), ""))
    if cpu is None:
        return None, ""
    lacks = cpu.facts.vector_bits and cpu.facts.arch == "armv7a" and not cpu.fpu.startswith("neon")
    return replace(cpu.facts, vector_bits=0) if lacks else cpu.facts, cpu.fpu


def machine_of(options: Mapping[str, Any]) -> MachineModel:
    """The model of the machine that the options of a target name."""
    cpu = cpu_of(options.get("mcpu", HOST_CPUS[0]), options)
    return machine_model(facts_of(cpu, triple_of(cpu, options))[0], options, options.get("mattr", ()))


def features_of(facts: CPUFacts | None, unit: str, triple: Triple | None, machine: MachineModel) -> Features:
    """What a processor has; for `host`, what every machine of its architecture has."""
    return Features(
        has_dsp=bool(facts and facts.has_dsp),
        has_fpu=bool(unit),
        has_mve=bool(facts and facts.has_mve and unit),
        pointer_bits=triple.pointer_bits if triple else 64,
        endian="little",
        vector_bits=machine.vector_bits,
        vector_registers=machine.vector_registers,
        streaming_bytes=machine.nontemporal_bytes,
    )


def gcc_flags_of(cpu: CPU | None, options: Mapping[str, Any]) -> list[str]:
    """The options that make GCC compile for a processor; TargetError W725 for one it is not told by -mcpu."""
    if cpu is None:
        return []
    if cpu.arch == "armv7a":
        triple = Triple.parse(options["mtriple"]) if "mtriple" in options else triple_of(cpu, options)
        assert triple is not None
        soft = options.get("mfloat_abi") or ("hard" if triple.env.endswith("hf") else "softfp" if cpu.fpu else "soft")
        return [f"-mcpu={cpu}", f"-mfloat-abi={soft}", *([f"-mfpu={cpu.fpu}"] if cpu.fpu else [])]
    if cpu.arch.startswith("thumb"):
        hard = Triple.parse(options.get("mtriple", cpu.arch)).env.endswith("hf")
        convention = options.get("mfloat_abi") or ("hard" if hard else "softfp" if cpu.fpu else "soft")
        # Where the unit always is there, -mcpu says which; naming it again is refused by GCC.
        unit = [f"-mfpu={cpu.fpu}"] if cpu.fpu and cpu.facts.fpu_optional else []
        extra = "" if cpu.fpu or cpu.facts.fpu_optional or not cpu.facts.fpu else "+nofp"
        return ["-mthumb", f"-mcpu={cpu}{extra}", f"-mfloat-abi={convention}", *unit]
    if cpu.arch in ("x86_64", "i386"):
        return [f"-march={cpu}"]
    if cpu.arch == "aarch64":
        return [] if str(cpu).startswith("generic") else [f"-mcpu={cpu}"]
    raise TargetError(f"no GCC options are known for {cpu}", code="W725")
