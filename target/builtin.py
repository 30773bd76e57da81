"""The built-in kinds: llvm, c, composite (labelled parts) and config (a compilation configuration).

The canonicaliser of the processor kinds checks triple, processor, floating-point unit and calling convention against
each other, so that a contradiction is found when the target is built and not by a linker.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from typing import Any

from weft.errors import TargetError
from weft.target.derived import machine_of, triple_of
from weft.target.features import FLOATS_OF_X86, X86, with_flags
from weft.target.float_units import UNITS, canonical_floats, no_unit
from weft.target.kinds import Bool, Field, Int, List, Size, Str, target_kind
from weft.target.processors import CPU, HOST_CPUS, find_cpu, nearest_cpu
from weft.target.triple import Triple

__all__ = ["EXECUTORS", "HOST_CPUS", "RUNTIMES", "canonical_processor"]

EXECUTORS = ["native", "vm", "graph", "aot"]
"""The names of executors, those of plug-ins after them (`weft.codegen.executors.register_executor`)."""
RUNTIMES = ("host", "bare", "rtos")
_FPUS = ("none", "auto", *UNITS)

_PROCESSOR = {
    "mtriple": Str(None, "the machine, as arch-vendor-os-environment"),
    "mcpu": Str("host", "the processor; `host` is this machine's"),
    "mattr": List((), "features switched on or off: +name or -name"),
    "mfpu": Str("auto", "the floating-point unit of an Arm processor", _FPUS),
    "mfloat_abi": Str(None, "how floats are passed: soft, softfp or hard", ("soft", "softfp", "hard")),
}


_WIDTHS = (0, 64, 128, 256, 512, 1024, 2048)
_CACHE = (0, 1 << 40)
_PLANNER = {"planner": Str(None, "the memory planner, by the name it is registered under; default: that of weft")}
_MACHINE = {
    "vector_bits": Field("int", None, "the width of a vector register; 0: no vectors; default by -mcpu", _WIDTHS),
    "vector_registers": Int(None, "how many vector registers there are; default by -mcpu", (0, 1024)),
    "masks": Bool(None, "whether part of a vector is loaded and stored by one instruction; default by -mcpu"),
    "gather": Bool(None, "whether lanes are loaded from anywhere by one instruction; default by -mcpu"),
    "l1_cache": Size(None, "bytes of the first cache; default by -mcpu", _CACHE),
    "l2_cache": Size(None, "bytes of the second cache, which packed blocks fill; default by -mcpu", _CACHE),
    "l3_cache": Size(None, "bytes of the last cache; default by -mcpu", _CACHE),
    "cores": Int(None, "the cores that loops are cut for; default: what the process has when it runs", (0, 4096)),
    "streaming_bytes": Int(
        None, "results of so many bytes are stored past the caches; 0: none; default by -mcpu", (0, 1 << 60)
    ),
    "stack_bytes": Size(None, "buffers of at most so many bytes stay on the stack", (0, 16 << 10)),
}
"""What a target may say of its machine instead of the table of processors (`weft.target.machine_model.OVERRIDES`)."""
OF_VECTORS = tuple(name for name in _MACHINE if name not in ("vector_bits", "stack_bytes"))
"""Those that only schedules over vectors go by."""


def _architecture_family(arch: str) -> str:
    return arch.replace("arm", "thumb", 1) if arch.startswith("arm") else arch


def _check_architecture(cpu: CPU, triple: Triple) -> None:
    wanted, given = _architecture_family(cpu.arch), _architecture_family(triple.arch)
    if given not in (wanted, "thumb") and not (given == "i386" and wanted == "x86_64"):
        raise TargetError(
            f"processor {cpu} is {cpu.arch}, but the triple {triple} says {triple.arch}",
            code="W722",
            hint=f"leave -mtriple out, or use {cpu.arch}-...",
        )


def canonical_processor(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a processor kind, checked and in canonical form.

    Errors: W720 triple, W721 processor, W722 both contradict, W723 floating-point unit, W724 float convention.
    """
    triple = Triple.parse(options["mtriple"]) if "mtriple" in options else None
    if triple is not None:
        options["mtriple"] = str(triple)
        if triple.env.endswith("hf") and triple.arch in ("thumbv6m", "armv6m"):
            raise no_unit(f"no processor of {triple.arch}", triple)
    name = options.get("mcpu", "host")
    if name in HOST_CPUS:
        if "mcpu" in options:
            options["mcpu"] = "host"
        canonical_floats(None, triple, options)
        return options
    cpu = find_cpu(name)
    if cpu is None:
        close = nearest_cpu(name)
        raise TargetError(
            f"unknown processor {name!r}", code="W721", hint=f"did you mean {close!r}?" if close else None
        )
    options["mcpu"] = str(cpu)
    if triple is not None:
        _check_architecture(cpu, triple)
    canonical_floats(cpu, triple, options)
    return options


def _architecture(options: Mapping[str, Any]) -> str:
    """The architecture that options name, else that of this machine."""
    cpu, triple = find_cpu(options.get("mcpu", "host")), options.get("mtriple")
    arch = Triple.parse(triple).arch if triple else cpu.arch if cpu is not None else platform.machine().lower()
    return arch.replace("amd64", "x86_64")


def _check_x86_floats(options: dict[str, Any]) -> None:
    """TargetError W727 for an x86 whose floats the x87 unit would compute: kernels that round would be wrong there."""
    arch = _architecture(options)
    if arch not in X86:
        return
    flags = ",".join(map(str, options.get("mattr", ())))
    lost = set(FLOATS_OF_X86) - with_flags(FLOATS_OF_X86, flags)
    if lost:
        raise TargetError(
            f"-mattr={flags} leaves {arch} without {' and '.join(sorted(lost))}, and the x87 unit keeps more digits "
            "than float32 and float64 have",
            code="W727",
            hint="leave it out; processors without SSE2 are not compiled for",
        )


_M_PROFILE = re.compile(r"(?:thumb|arm)v(6m|7m|7em|8m\.base|8m\.main|8\.1m\.main)")
_OF_A_PROFILE = ("+neon", "+aes", "+sha2", "+crypto", "+virtualization")


def _check_profile(options: Mapping[str, Any]) -> None:
    """TargetError W732 for what no microcontroller has, and LLVM would emit for it."""
    arch = _architecture(options)
    found = [flag for flag in map(str, options.get("mattr", ())) if flag in _OF_A_PROFILE]
    if found and _M_PROFILE.fullmatch(arch):
        raise TargetError(f"no processor of {arch} has the feature {found[0][1:]!r}", code="W732", hint="leave it out")


def _canonical_llvm(options: dict[str, Any]) -> dict[str, Any]:
    """The options of LLVM; TargetError W726 for what is said of the vectors of a machine that has none, W727."""
    options = canonical_processor(options)
    _check_x86_floats(options)
    _check_profile(options)
    if options.get("streaming_bytes") and _architecture(options) not in X86:
        raise TargetError(
            f"-streaming-bytes: stores past the caches are not emitted for {_architecture(options)}",
            code="W726",
            hint="leave it out",
        )
    said, machine = [name for name in OF_VECTORS if options.get(name) is not None], machine_of(options)
    if options.get("gather") and machine.vector_bits and not machine.has_masks:
        raise TargetError(
            "-gather=true: lanes are loaded from anywhere under masks, and this machine has none",
            code="W726",
            hint="-masks=true",
        )
    if said and not machine.vector_bits:
        flags = ", ".join(f"-{name.replace('_', '-')}" for name in said)
        raise TargetError(
            f"{flags}: schedules go by that on machines with vectors, and this one has none",
            code="W726",
            hint="leave it out, or say -vector-bits",
        )
    return options


def _same_system(given: Triple, derived: Triple) -> bool:
    """Whether two triples differ in the vendor and in how floats are passed alone."""
    return (given.os.replace("unknown", "none"), given.env.removesuffix("hf"), given.format) == (
        derived.os.replace("unknown", "none"),
        derived.env.removesuffix("hf"),
        derived.format,
    )


def _canonical_c(options: dict[str, Any]) -> dict[str, Any]:
    """The options of C: what the compiler is told follows from the processor; TargetError W725 for what does not."""
    options = canonical_processor(options)
    if options.get("mattr"):
        flags = ",".join(map(str, options["mattr"]))
        raise TargetError(
            f"C sources do not obey -mattr={flags}: what the C compiler is told follows from -mcpu and -mfpu",
            code="W725",
            hint="leave it out, or choose another processor",
        )
    if "mtriple" in options and options.get("mcpu", "host") in HOST_CPUS:
        raise TargetError(
            f"what the C compiler is told follows from the processor, which {options['mtriple']} does not name",
            code="W725",
            hint="c -mcpu=...",
        )
    if "mtriple" in options:
        cpu = find_cpu(str(options["mcpu"]))
        assert cpu is not None
        given, derived = Triple.parse(options["mtriple"]), triple_of(cpu, {})
        assert derived is not None
        if not _same_system(given, derived):
            raise TargetError(
                f"C sources do not obey the triple {given}: what the C compiler is told follows from {cpu}, as for "
                f"{derived}",
                code="W725",
                hint="leave it out",
            )
    return options


LLVM = target_kind(
    "llvm",
    {
        **_PROCESSOR,
        "fast_math": Bool(False, "allow reassociation and contraction of floating-point operations"),
        "strict_math": Bool(False, "call the C library for exp, log, sin and the like instead of vector polynomials"),
        "threads": Int(None, "the threads a parallel loop may use; default WEFT_NUM_THREADS or all cores", (0, 4096)),
        **_PLANNER,
        **_MACHINE,
    },
    doc="machine code by LLVM, for this machine or another",
    canonicalise=_canonical_llvm,
)
C = target_kind(
    "c",
    {**_PROCESSOR, "std": Str("c99", "the language standard", ("c99", "c11")), **_PLANNER},
    doc="C source without heap or runtime files",
    canonicalise=_canonical_c,
)


def _on_this_machine(home: Any, other: Any) -> bool:
    """Whether two parts both are code of this machine, which is linked into one program."""
    own = Triple.parse(f"{platform.machine() or 'x86_64'}-{platform.system().lower()}")
    triples = [part.triple for part in (home, other) if part.triple is not None]
    return all((triple.arch, triple.os) == (own.arch, own.os) for triple in triples)


def _in_one_image(home: Any, other: Any) -> bool:
    """Whether two parts both are sources for this machine, or for microcontrollers of one family."""
    families = [_architecture_family(part.cpu.arch)[:5] if part.cpu is not None else "" for part in (home, other)]
    return families[0] == families[1] and families[0] in ("", "thumb")


C.plans_memory = True
C.alike = _in_one_image
LLVM.alike = _on_this_machine
LLVM.explicit_vectors = True
LLVM.intrinsics = frozenset(
    (
        *("sort_keys", "select_key", "sort_pairs", "select_pair"),
        *("keep_keys", "keep_positions", "sort_values", "sort_positions"),
    )
)
COMPOSITE = target_kind("composite", {}, device="several", doc="labelled parts; functions carry a label")
CONFIG = target_kind("config", {}, device="several", doc="parts with executor, runtime, memory pools and packaging")
