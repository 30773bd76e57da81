"""The C back end: a tree of sources when it drives, kernels compiled here when it works for another part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields
from typing import Any

from weft.codegen.backends.base import BackEnd, Job, Plan
from weft.codegen.backends.c.library import source_tree
from weft.codegen.backends.c.part import compiles_here, kernels_of_part
from weft.codegen.backends.generators import Generator
from weft.codegen.host.single_kernel import with_entry
from weft.errors import TargetError
from weft.ir.graph import Function
from weft.ir.module import IRModule
from weft.runtime.artifact import ArtifactSet
from weft.target import Target
from weft.target.builtin import C
from weft.transform.memory.planners import find_planner

__all__ = ["BACK_END", "CBackEnd"]


class CBackEnd(BackEnd):
    """C99."""

    executors, forms = ("aot",), ("c",)

    def is_straight_line(self, plan: Plan) -> bool:
        """The driver in C calls kernels and nothing else."""
        return True

    def generator(self, label: str, part: Target) -> Generator | None:
        """Kernels, compiled by the C compiler of this machine."""
        return kernels_of_part(label) if compiles_here(part) else None

    def build(self, job: Job) -> ArtifactSet:
        """C for all parts: those of other kinds give C drivers of their own."""
        made, entry = _c_module(job)
        return source_tree(made, name=job.plan.model, function=entry, **_options(job.plan)).artifacts()

    def library(self, jobs: Sequence[Job]) -> ArtifactSet:
        """One tree, with memory that suffices for each of its models."""
        made = {job.plan.model: _c_module(job) for job in jobs}
        plan = with_fields(jobs[0].plan, name="")
        entries = {name: entry for name, (_, entry) in made.items()}
        modules = {name: module for name, (module, _) in made.items()}
        return source_tree(modules, name=plan.model, function=entries, **_options(plan)).artifacts()


def _options(plan: Plan) -> dict[str, Any]:
    planner = plan.parts[plan.driver].options.get("planner")
    chosen = {} if planner is None else {"planner": find_planner(planner)}
    return {"target": plan.target, "externs": plan.externs, "runtime": plan.runtime, **chosen}


def _c_module(job: Job) -> tuple[IRModule, str]:
    """The module with what the C entry calls, and the graph function that it runs."""
    made, _ = job.remaining(lambda label: job.plan.parts[label].kind is C)
    graphs = [name for name, function in made.items() if isinstance(function, Function) and not function.private]
    if not graphs:
        made, graphs = with_entry(made)
    if len(graphs) == 1:
        return made, graphs[0]
    raise TargetError(
        f"c: one entry can be compiled, the module has {', '.join(graphs)}",
        code="W739",
        span=made[graphs[1]].span,
        hint="make the others private, or compile them one by one",
    )


BACK_END = CBackEnd()
