"""What a call of `weft.compile` asks for, before anything of it is looked at (`weft.codegen.plan` does that)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.ir.module import IRModule

if TYPE_CHECKING:
    from weft.transform.autoschedule.knobs import Knobs

__all__ = ["Asked"]


class Asked(NamedTuple):
    """The arguments of a call; their meanings are those of `weft.compile`."""

    module: IRModule
    target: object
    opt: int | Knobs
    params: Mapping[str, Any] | None
    executor: str | None
    externs: Collection[str]
    trust: bool
    workers: int | None
