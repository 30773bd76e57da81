"""The LLVM back end: machine code of this machine in an executable, object code with a header for another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.codegen.backends.base import BackEnd, Job, Plan, register_back_end
from weft.codegen.backends.generators import ARTIFACTS
from weft.codegen.backends.llvm.machine.cross import cross_machine, emit_object
from weft.codegen.backends.llvm.machine.host_target import HostTarget, host_target
from weft.codegen.backends.llvm.machine.machine import host
from weft.codegen.executors import entry, native, vm
from weft.codegen.executors.objects import object_artifacts, object_source
from weft.codegen.host.read import read_program
from weft.codegen.host.single_kernel import with_entry
from weft.errors import TargetError
from weft.ir.module import IRModule
from weft.runtime.artifact import ArtifactSet
from weft.runtime.executable import Executable, Program
from weft.target import Target
from weft.target.builtin import LLVM
from weft.target.triple import Triple

__all__ = ["EMITTERS", "LLVMBackEnd"]

Emitter = Callable[[IRModule, Plan, Mapping[str, str]], Program]


def _native(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    return native.generate(module, plan.machines, owner, plan.driver, c_functions=plan.c_functions)


def _vm(module: IRModule, plan: Plan, owner: Mapping[str, str]) -> Program:
    program = native.generate(
        module, plan.machines, owner, plan.driver, kernels_only=True, c_functions=plan.c_functions
    )
    program.driver = vm.emit_program(read_program(module), program)
    return program


EMITTERS: dict[str, Emitter] = {"native": _native, "vm": _vm, "graph": entry.graph, "aot": entry.aot}
"""For each executor, what makes a program of a lowered module whose other parts are artifacts."""


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
        return Executable(_link(job), job.members) if job.plan.runs_here else _objects(job)


def _link(job: Job) -> Program:
    """The program of a module that this machine drives."""
    remaining, owner = job.remaining(lambda label: label in job.plan.machines, job.generators)
    program = EMITTERS[job.plan.executor](remaining, job.plan, owner)
    program.artifacts = program.artifacts.union(remaining.attrs.get(ARTIFACTS, ArtifactSet()).values())
    return program


def _objects(job: Job) -> ArtifactSet:
    """Object code for another machine, with its header."""
    made, _ = job.remaining(lambda label: label == job.plan.driver)
    part = job.plan.parts[job.plan.driver]
    program = entry.only_entry(made)
    if program is None:
        made, _ = with_entry(made)
        program = entry.only_entry(made)
    assert program is not None
    hosted = part.triple is not None and part.triple.os == "linux"
    machine = cross_machine(part, job.plan.opt)
    source = object_source(
        made, program, job.plan.model, opt=job.plan.opt, fast_math=bool(part.get("fast_math")), hosted=hosted,
        c_functions=job.plan.c_functions, features=machine.names,
    )  # fmt: skip
    code = emit_object(machine, source.text)
    found = object_artifacts(source, code, job.plan.model, part.to_json())
    return made.attrs.get(ARTIFACTS, ArtifactSet()).union(found)


register_back_end(LLVM.name, LLVMBackEnd())
