"""explain: everything that was decided about a module, as plain records.

    fusion        which calls became one kernel, and why
    gemm, elementwise, reduction, ...      what the rules of the scheduler decided (with what of it can be pinned)
    parallel      the loops that threads share, or why there are none
    placement     the part of the target that a function belongs to
    checks        assertions that are left for the call

Decisions are read from the functions themselves (`weft.transform.infra.decisions`), whatever phase the module is after.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.ir import IRModule
from weft.ir.graph import Function
from weft.ir.structure.visit import statements
from weft.ir.tensor import AssertStmt, PrimFunc
from weft.transform.autoschedule.registry import rules
from weft.transform.infra.decisions import Decision, decisions_of
from weft.transform.target.parts import LABEL

__all__ = ["explain"]


def explain(module: IRModule) -> list[dict[str, Any]]:
    """The records of all functions: dictionaries of plain values, `function` first.

    >>> explain(IRModule({}))
    []
    """
    pins = {rule.name: sorted(rule.pins) for rule in rules()}
    found = []
    for name, function in module.items():
        if not isinstance(function, (Function, PrimFunc)):
            continue
        for item in _decisions(name, function):
            record: dict[str, Any] = {"function": name, "about": item.about, "kind": item.kind}
            record.update((key, _plain(value)) for key, value in item.values.items())
            if item.reason:
                record["reason"] = item.reason
            if can := [key for key in pins.get(item.kind, ()) if key in item.values]:
                record["pins"] = can
            found.append(record)
    return found


def _decisions(name: str, function: Function | PrimFunc) -> Iterator[Decision]:
    if "fusion" in function.attrs:
        yield Decision(name, "fusion", {}, str(function.attrs["fusion"]))
    yield from decisions_of(function)
    if LABEL in function.attrs:
        yield Decision(name, "placement", {"part": str(function.attrs[LABEL])})
    if isinstance(function, PrimFunc):
        left = sum(isinstance(part, AssertStmt) for part in statements(function.body))
        if left:
            yield Decision(name, "checks", {"assertions": left}, "sizes or indices that only the call knows")


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
