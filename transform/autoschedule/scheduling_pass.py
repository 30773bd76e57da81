"""SchedulingPass: the base of passes that arrange loops for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Self

from weft.errors import PassError
from weft.support.records import dataclass
from weft.target.machine_model import MachineModel
from weft.transform.autoschedule.knobs import Knobs, as_knobs, in_context
from weft.transform.infra.base import FunctionPass
from weft.transform.infra.registry import nearest

__all__ = ["SchedulingPass", "machine_of"]


@dataclass(frozen=True)
class SchedulingPass(FunctionPass, abstract=True):
    """A pass with a `machine` and `knobs`; either may be given as some of its fields, as in the text of a pipeline.

    Raises: PassError W502 for a machine that has no such field, W526 and W527 for knobs that are none.
    """

    machine: MachineModel = field(default=MachineModel())
    knobs: Knobs = field(default=Knobs())

    def __post_init__(self) -> None:
        if not isinstance(self.knobs, Knobs):
            object.__setattr__(self, "knobs", as_knobs(self.knobs))
        if not isinstance(self.machine, MachineModel):
            object.__setattr__(self, "machine", machine_of(self.machine))

    def in_context(self) -> Self:
        """The pass with what the context says of its knobs."""
        knobs = in_context(self.knobs)
        return self if knobs is self.knobs else replace(self, knobs=knobs)


def machine_of(given: MachineModel | Mapping[str, object]) -> MachineModel:
    """A machine from some of its fields; PassError W502 for one that it has not."""
    if isinstance(given, MachineModel):
        return given
    known = [item.name for item in fields(MachineModel)]
    for name in given:
        if name not in known:
            hint = nearest(name, known) or ", ".join(known)
            raise PassError(f"a machine has no {name!r}", code="W502", hint=hint)
    return MachineModel(**given)  # type: ignore[arg-type]
