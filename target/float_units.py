"""The floating-point units of 32-bit Arm processors: which a processor may have, and what compilers are told of each.

    unit in effect ::= none where `-mfpu=none` or `-mfloat-abi=soft` say so | that of `-mfpu` | that of the processor

Errors: TargetError W723 a unit that the processor does not have, or a processor without such units; W724 a convention
of floats that the processor, its unit or the triple contradict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import TargetError
from weft.target.processors import CPU
from weft.target.triple import Triple

__all__ = ["UNITS", "canonical_floats", "effective_unit", "llvm_features"]

UNITS: Mapping[str, tuple[str, ...]] = {
    "fpv4-sp-d16": ("+vfp4d16sp", "-fp64"),
    "fpv5-sp-d16": ("+fp-armv8d16sp", "-fp64"),
    "fpv5-d16": ("+fp-armv8d16",),
    "fp-armv8-fullfp16-d16": ("+fp-armv8d16", "+fullfp16"),
    "vfpv3-d16": ("-d32", "-vfp4d16sp", "+vfp3d16"),
    "neon": ("-vfp4d16sp", "+neon"),
    "neon-vfpv4": ("+vfp4", "+neon"),
}
"""Unit, as GCC names it -> the features of LLVM that say the same of a processor."""
_NONE = ("+soft-float", "-neon", "-mve.fp")


def effective_unit(cpu: CPU, options: Mapping[str, Any]) -> str:
    """The unit that code may use; empty for none."""
    unit = str(options.get("mfpu", cpu.fpu))
    if has_units(cpu) and options.get("mfloat_abi") == "soft":
        return ""
    return "" if unit == "none" else cpu.fpu if unit == "auto" else unit


def has_units(cpu: CPU | None) -> bool:
    """Whether a processor is one whose unit is chosen and whose floats are passed by convention."""
    return cpu is not None and (cpu.arch.startswith("thumb") or cpu.arch == "armv7a")


def llvm_features(cpu: CPU, options: Mapping[str, Any]) -> tuple[str, ...]:
    """What LLVM is told of the unit of a processor, beside its name."""
    if not has_units(cpu):
        return ()
    unit = effective_unit(cpu, options)
    if not unit:
        return _NONE if cpu.facts.vector_bits else _NONE[:1]
    return UNITS[unit] if "mfpu" in options else ()


def canonical_floats(cpu: CPU | None, triple: Triple | None, options: dict[str, Any]) -> None:
    """Check the unit and the convention of floats, and state the unit where a processor may lack it."""
    if cpu is None or not has_units(cpu):
        if options.get("mfpu") == "auto":
            del options["mfpu"]
        for name, code in (("mfpu", "W723"), ("mfloat_abi", "W724")):
            if name in options:
                subject = f"{cpu} has none" if cpu is not None else "no processor is named"
                option = f"-{name.replace('_', '-')}={options[name]}"
                raise TargetError(
                    f"{option} is about the floating-point units of 32-bit Arm processors, and {subject}",
                    code=code,
                    hint="leave it out, or name such a processor: -mcpu=cortex-m7",
                )
        return
    _state_unit(cpu, options)
    _check_convention(cpu, triple, options)


def _state_unit(cpu: CPU, options: dict[str, Any]) -> None:
    wanted = options.get("mfpu", "auto")
    if wanted not in ("none", "auto"):
        if not cpu.facts.fpu:
            raise TargetError(f"{cpu} has no floating-point unit, but -mfpu={wanted} asks for one", code="W723")
        if wanted not in cpu.facts.possible_units:
            may = ", ".join(cpu.facts.possible_units)
            raise TargetError(f"{cpu} has no floating-point unit {wanted}", code="W723", hint=f"it may have: {may}")
    if wanted == "auto" and "mfpu" in options and cpu.facts.fpu_optional:
        options["mfpu"] = cpu.facts.fpu
    elif wanted == "auto":
        options.pop("mfpu", None)
        if cpu.facts.fpu_optional and cpu.fpu:
            options["mfpu"] = cpu.fpu


def _check_convention(cpu: CPU, triple: Triple | None, options: Mapping[str, Any]) -> None:
    convention, unit = options.get("mfloat_abi"), options.get("mfpu", cpu.fpu) not in ("", "none")
    in_registers = triple is not None and triple.env.endswith("hf")
    if convention in ("hard", "softfp") and not unit:
        raise TargetError(f"{cpu} without a floating-point unit cannot use -mfloat-abi={convention}", code="W724")
    if triple is not None and convention is not None and (convention == "hard") != in_registers:
        where = "in registers" if in_registers else "in registers of integers"
        raise TargetError(
            f"-mfloat-abi={convention} contradicts the triple {triple}, which passes floats {where}",
            code="W724",
            hint="leave one of them out",
        )
    if in_registers and not unit:
        raise no_unit(f"{cpu} without a floating-point unit", triple)


def no_unit(subject: str, triple: Triple | None) -> TargetError:
    """W724: a triple that passes floats in registers which there are not."""
    wanted = f"passes floats in registers, as {triple} says"
    return TargetError(f"{subject} {wanted}", code="W724", hint="eabi in place of eabihf, or a processor with a unit")
