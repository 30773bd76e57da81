"""Object code for other machines, emitted in a process of its own (`machine.child`)."""

from __future__ import annotations

from dataclasses import replace

from weft.codegen.backends.llvm.machine.child import Request, emit_apart
from weft.errors import TargetError
from weft.support.records import dataclass
from weft.target import Target
from weft.target.features import FLOATS_OF_X86, X86, named_features
from weft.target.float_units import llvm_features
from weft.target.processors import CPUS
from weft.target.triple import Triple

__all__ = ["CrossMachine", "cross_machine", "emit_object"]


@dataclass(frozen=True)
class CrossMachine:
    """A machine as LLVM is told of it."""

    triple: str
    cpu: str
    features: str = ""
    abi: str = ""
    code_model: str = "default"
    level: int = 2

    @property
    def names(self) -> frozenset[str]:
        """The features that the code may use."""
        arch = self.triple.split("-")[0]
        own = CPUS[self.cpu].features if arch in X86 and self.cpu in CPUS else ()
        return named_features(arch, self.cpu, ",".join((*(f"+{name}" for name in own), self.features)))


def cross_machine(target: Target, opt: int = 2) -> CrossMachine:
    """The machine of a target of kind llvm; TargetError W731 for one without triple and processor.

    >>> cross_machine(Target("llvm -mcpu=cortex-m0")).triple
    'thumbv6m-none-unknown-eabi'
    """
    triple, cpu = target.triple, target.cpu
    if triple is None:
        raise TargetError(f"{target} names no machine", code="W731", hint="give -mcpu=... or -mtriple=...")
    if triple.arch.startswith("nvptx"):
        raise TargetError(
            f"no code is made for graphics processors yet, {triple} among them: they are described (processors, thread "
            "bindings in schedules), not compiled for",
            code="W749",
            hint="a plug-in may add a kind of target that does (weft.target_kind)",
        )
    if triple.env.endswith("x32"):
        raise TargetError(f"{triple} has pointers of 32 bits in code of 64, which is not compiled for", code="W731")
    if triple.format not in ("", *triple.object_formats):
        hint = f"leave {triple.format} out, or say one of: {', '.join(triple.object_formats)}"
        raise TargetError(f"llvm writes no {triple.format} objects for {triple}", code="W749", hint=hint)
    name = str(cpu) if cpu is not None else ""
    features = [str(item) for item in target.get("mattr")]
    abi, model = "", "default"
    if cpu is not None:
        features[:0] = llvm_features(cpu, target.options)
    if triple.arch in X86:
        features[:0] = [f"+{feature}" for feature in FLOATS_OF_X86]
    if triple.arch == "riscv64":
        name, abi, model = ("generic-rv64" if not name or name.startswith("generic") else name), "lp64d", "medium"
        features[:0] = ["+m", "+a", "+f", "+d", "+c"]
    elif triple.arch.startswith("wasm"):
        name = "generic" if name in ("", "generic-wasm32") else name
    elif name.startswith("generic-"):
        name = "generic"
    return CrossMachine(_spelled(triple), name, ",".join(features), abi, model, opt)


def _spelled(triple: Triple) -> str:
    """All four components for bare metal: LLVM takes the convention of floats from the last one."""
    system = "unknown" if triple.os == "none" else triple.os
    return str(replace(triple, os=system))


def emit_object(machine: CrossMachine, text: str) -> bytes:
    """The object code of LLVM assembly; TargetError W749 with what LLVM said when it refuses."""
    level = machine.level if machine.level in (0, 3) else 2
    reloc = "pic" if "linux" in machine.triple else "static"
    pipeline = f"O{machine.level}" if machine.level else ""
    told = machine.triple, machine.cpu, machine.features, machine.abi, machine.code_model
    return emit_apart(Request(*told, reloc, level, pipeline, text))[0]
