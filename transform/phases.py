"""From a module to an executable: the named phases, in order, and the passes of each.

    import > partition > assign > legalize > optimize > fuse > schedule > lower > plan > codegen > link

Each phase is data: a list of passes. A phase with an empty list has its place in the order and nothing built in yet:

    partition, assign   functions and calls to targets and external code generators
    fuse                kernels of one fused group merged into one
    schedule            loops tiled, vectorised and spread over cores
    plan                memory of the explicit-memory form shared between tensors
    codegen, link       done by `weft.codegen` (artifacts), which runs after the passes listed here
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.errors import PassError
from weft.transform.base import Pass
from weft.transform.canonicalize import CanonicalizeBindings
from weft.transform.common_subexpressions import EliminateCommonSubexpr
from weft.transform.dead_code import DeadCodeElimination
from weft.transform.fold_constant import FoldConstant
from weft.transform.lambda_lift import LambdaLift
from weft.transform.legalize import LegalizeOps
from weft.transform.lower_to_memory import LowerToMemory
from weft.transform.normalize import Normalize
from weft.transform.pipeline import Pipeline
from weft.transform.registry import nearest

__all__ = ["PHASES", "Phase", "default_pipeline", "phase", "phases"]


@dataclass(frozen=True)
class Phase:
    """A named step on the way from a module to an executable, and its built-in passes."""

    name: str
    passes: tuple[Pass, ...] = ()


PHASES: tuple[Phase, ...] = (
    Phase("import", (Normalize(), CanonicalizeBindings())),
    Phase("partition"),
    Phase("assign"),
    Phase("legalize", (FoldConstant(), LegalizeOps())),  # whole operators fold faster than their loops
    Phase("optimize", (CanonicalizeBindings(), EliminateCommonSubexpr(), DeadCodeElimination())),
    Phase("fuse"),
    Phase("schedule"),
    Phase("lower", (LambdaLift(), LowerToMemory())),
    Phase("plan"),
    Phase("codegen"),
    Phase("link"),
)


def phases() -> list[str]:
    """The names of the phases in order.

    >>> " > ".join(phases())
    'import > partition > assign > legalize > optimize > fuse > schedule > lower > plan > codegen > link'
    """
    return [item.name for item in PHASES]


def phase(name: str, target: Any = None) -> Pipeline:
    """The passes of one phase as a pipeline; PassError W507 for an unknown name.

    >>> str(phase("lower"))
    'lambda-lift,lower-to-memory'
    """
    for item in PHASES:
        if item.name == name:
            return Pipeline(item.passes, name=name)
    raise PassError(f"there is no phase {name!r}", code="W507", hint=nearest(name, phases()) or ", ".join(phases()))


def default_pipeline(target: Any = None) -> Pipeline:
    """The passes of all phases, one pipeline per phase that has any: what `weft.compile` runs for a target.

    >>> [item.name for item in default_pipeline()]
    ['import', 'legalize', 'optimize', 'lower']
    """
    return Pipeline([phase(item.name, target) for item in PHASES if item.passes], name="default")
