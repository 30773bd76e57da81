"""The LLVM back end: machine code of this machine in an executable, object code with a header for another one."""

from __future__ import annotations

from collections.abc import Mapping

from weft.codegen.backends.base import BackEnd, Job, Plan
from weft.codegen.backends.llvm.machine.host_target import HostTarget, host_target
from weft.codegen.executors import EXECUTORS
from weft.codegen.host.entry import Entry
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.runtime.artifact import Artifact, ArtifactSet
from weft.runtime.device.host import host, llvm_version
from weft.runtime.device.linker import assembly
from weft.runtime.executable import Executable, Program
from weft.support.providers import load
from weft.target import Target
from weft.target.triple import Triple

__all__ = ["BACK_END", "LLVMBackEnd"]

_PROGRAM = "weft.codegen.backends.llvm.program:generate"
_LINKABLE = "weft.codegen.backends.llvm.linkable:linkable"
_OBJECTS = "weft.codegen.backends.llvm.linkable:object_code"
"""What emits is imported when it is first asked for."""


class LLVMBackEnd(BackEnd):
    """Machine code by LLVM."""

    executors = tuple(EXECUTORS)
    forms = ("llvm", "asm")

    def processor(self, part: Target, opt: int) -> HostTarget | None:
        """The processor of a part whose code runs in this process; None for other kinds and other machines."""
        try:
            return host_target(part, opt)
        except TargetError as error:
            if error.code not in ("W731", "W732"):
                raise
            # Without a triple, a processor of this family that this machine lacks is a mistake; with one it is meant.
            triple = part.triple
            if triple is None or ("mtriple" not in part.options and triple.arch == Triple.parse(host().triple).arch):
                raise
            return None

    def served(self, plan: Plan) -> tuple[str, ...]:
        """All executors in this process; another machine gets straight-line code."""
        return tuple(EXECUTORS) if plan.runs_here else ("native", "aot")

    def is_straight_line(self, plan: Plan) -> bool:
        """Object code for another machine has no calls between graph functions."""
        return not plan.runs_here

    def build(self, job: Job) -> Executable | ArtifactSet:
        """An executable in this process, else object code."""
        return Executable(job.program(), job.members) if job.plan.runs_here else load(_OBJECTS)(job)

    def machine_code(
        self, module: IRModule, plan: Plan, owner: Mapping[str, str], *, kernels_only: bool = False
    ) -> Program:
        """Object code, optimised for the processor of each part."""
        program: Program = load(_PROGRAM)(
            module,
            plan.machines,
            owner,
            plan.driver,
            kernels_only=kernels_only,
            c_functions=plan.c_functions,
            workers=plan.workers,
        )
        program.provenance["llvm"] = llvm_version()
        return program

    def linkable(self, module: IRModule, entry: Entry, plan: Plan) -> list[Artifact]:
        """Object code and a header."""
        return load(_LINKABLE)(module, entry, plan)

    def source(self, program: Program, form: str) -> str:
        """LLVM's text, or the assembly of this machine made of it."""
        if form not in self.forms:
            return super().source(program, form)
        texts = program.sources if form == "llvm" else [assembly(text, program.target) for text in program.sources]
        return "\n".join(texts)


BACK_END = LLVMBackEnd()
