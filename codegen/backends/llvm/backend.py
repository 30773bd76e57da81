"""The LLVM back end: machine code of this machine in an executable, object code with a header for another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.codegen.backends.base import BackEnd, Job, Plan
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.backends.llvm.machine.host_target import HostTarget, host_target
from weft.codegen.backends.llvm.machine.machine import host
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.providers import load
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable, Program
from weft.target import Target
from weft.target.triple import Triple

__all__ = ["BACK_END", "EMITTERS", "LLVMBackEnd"]

Emitter = Callable[[IRModule, Plan, Mapping[str, str]], Program]


EMITTERS: dict[str, str] = {
    "native": "weft.codegen.executors.native:native",
    "vm": "weft.codegen.executors.vm:vm",
    "graph": "weft.codegen.executors.entry:graph",
    "aot": "weft.codegen.executors.entry:aot",
}
"""For each executor, the place of its `Emitter`: what makes a program of a lowered module whose other parts are
artifacts. Each is imported when it is first asked for.
"""
_OBJECTS = "weft.codegen.executors.entry:object_code"


class LLVMBackEnd(BackEnd):
    """Machine code by LLVM."""

    executors = tuple(EMITTERS)
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
            if triple is None or ("mtriple" not in part.options and triple.arch == Triple.parse(host()[0]).arch):
                raise
            return None

    def served(self, plan: Plan) -> tuple[str, ...]:
        """All executors in this process; another machine gets straight-line code."""
        return self.executors if plan.runs_here else ("native", "aot")

    def is_straight_line(self, plan: Plan) -> bool:
        """Object code for another machine has no calls between graph functions."""
        return not plan.runs_here

    def build(self, job: Job) -> Executable | ArtifactSet:
        """An executable in this process, else object code."""
        return Executable(_link(job), job.members) if job.plan.runs_here else load(_OBJECTS)(job)


def _link(job: Job) -> Program:
    """The program of a module that this machine drives."""
    remaining, owner = job.remaining(lambda label: label in job.plan.machines, job.generators)
    emit: Emitter = load(EMITTERS[job.plan.executor])
    program = emit(remaining, job.plan, owner)
    program.artifacts = program.artifacts.union(remaining.attrs.get(ARTIFACTS, ArtifactSet()).values())
    return program


BACK_END = LLVMBackEnd()
