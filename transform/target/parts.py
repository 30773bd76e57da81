"""Which functions belong to which part of a target, and passes that see the functions of some parts only.

    leaf target         one part without a label; every function belongs to it
    composite, config   parts by label; the attribute `target` of a function holds the label of its part
    no label            a private function belongs to the part of all its callers when they agree;
                        every other one to the first part

A pass restricted to parts gets a view: the functions of the parts, the kernels that they call, and for other graph
functions that they call their signatures. What it makes is merged back: a shared kernel that it changed becomes a
function of its own, and functions of other parts stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weft.errors import TargetError
from weft.ir import BaseFunc, ExternFunc, FrozenMap, Function, IRModule, replace
from weft.ir.attrs import LABEL
from weft.ir.deduction.infer import func_type
from weft.ir.structure.merge import merge
from weft.ir.structure.references import referenced_functions
from weft.target import Target
from weft.target.kinds import DRIVING_LABEL
from weft.transform.infra.base import Pass
from weft.transform.infra.options import to_text
from weft.transform.infra.pipeline import parse_pipeline

__all__ = ["LABEL", "OnParts", "driving_label", "leaf_parts", "owners", "part_view"]


def leaf_parts(target: Target) -> tuple[tuple[str, Target], ...]:
    """The labelled parts of a target, in order; the label of a leaf target is empty.

    A part that is a configuration of its own (executor, memory, ...) is one part: it is compiled by itself.

    >>> [(label, str(part)) for label, part in leaf_parts(Target("a: c; b: llvm"))]
    [('a', 'c'), ('b', 'llvm')]
    """
    if not target.parts:
        return (("", target),)
    found: dict[str, Target] = {}
    for label, part in target.parts.items():
        for inner, leaf in ((label, part),) if part.parts and part.options else leaf_parts(part):
            name = inner or label
            if name in found:
                raise TargetError(f"two parts of the target have the label {name!r}", code="W707")
            found[name] = leaf
    return tuple(found.items())


def driving_label(parts: Collection[str]) -> str:
    """The label of the part that drives the others: `host` where there is one, else the first."""
    return DRIVING_LABEL if DRIVING_LABEL in parts else next(iter(parts))


def owned_parts(target: str, module: IRModule) -> tuple[dict[str, Target], dict[str, str]]:
    """The parts of a target by label, and the label of each function; TargetError W707 as `owners`."""
    parts = dict(leaf_parts(Target(target)))
    return parts, owners(module, parts)


def owners(module: IRModule, labels: Collection[str]) -> dict[str, str]:
    """The label of the part that each function belongs to.

    Raises: TargetError W707 for an attribute that is no label of the target.
    """
    first = next(iter(labels))
    if len(labels) == 1:
        return dict.fromkeys(module, first)
    found = {name: label for name, function in module.items() if (label := _label(name, function, labels)) is not None}
    callers: dict[str, set[str]] = {name: set() for name in module}
    for name, function in module.items():
        for callee in referenced_functions(function) - {name}:
            callers.get(callee, set()).add(name)
    for name, function in module.items():
        if name not in found and not getattr(function, "private", False):
            found[name] = first
    # Labels flow from callers to private callees until nothing changes; a second label makes the first part the owner.
    reached: dict[str, set[str]] = {name: {label} for name, label in found.items()}
    pending = list(found)
    calls = {name: referenced_functions(function) for name, function in module.items()}
    while pending:
        name = pending.pop()
        for callee in calls[name]:
            if callee in callers and callee not in found and not reached[name] <= reached.setdefault(callee, set()):
                reached[callee] |= reached[name]
                pending.append(callee)
    for name in module:
        if name not in found:
            given = reached.get(name, set())
            found[name] = next(iter(given)) if len(given) == 1 else first
    return found


def _label(name: str, function: BaseFunc, labels: Collection[str]) -> str | None:
    label = getattr(function, "attrs", {}).get(LABEL)
    if label is None or label in labels:
        return label
    raise TargetError(
        f"function {name!r} is labelled {str(label)!r}, which is no part of the target",
        code="W707",
        span=function.span,
        hint=f"labels: {', '.join(labels)}",
    )


def part_view(module: IRModule, mine: Collection[str]) -> tuple[IRModule, set[str]]:
    """The view of some functions of a module, and which of its names are there to be seen only."""
    shown: dict[str, BaseFunc] = {}
    signatures: set[str] = set()
    pending = list(mine)
    reached = set(pending)
    while pending:
        name = pending.pop()
        function = module[name]
        if name not in mine and isinstance(function, Function):
            shown[name] = ExternFunc(name, func_type(function))
            signatures.add(name)
            continue
        if name not in mine and (LABEL in getattr(function, "attrs", {}) or not getattr(function, "private", False)):
            signatures.add(name)  # a kernel of another part: to be seen, not to be changed
        shown[name] = function
        for callee in sorted(referenced_functions(function) - reached):
            if callee in module:
                reached.add(callee)
                pending.append(callee)
    ordered = {name: shown[name] for name in module if name in shown}
    return replace(module, functions=FrozenMap(ordered)), signatures


@dataclass(frozen=True)
class OnParts(Pass):
    """Run a pass on the functions of some parts of a target.

    `parts` are the labels meant, `labels` all labels of the target in order; `item` is a pass or its text.
    """

    checks_itself: ClassVar[bool] = True
    parts: tuple[str, ...]
    labels: tuple[str, ...]
    item: Any

    def __post_init__(self) -> None:
        if isinstance(self.item, str):
            object.__setattr__(self, "item", parse_pipeline(self.item))
        object.__setattr__(self, "level", getattr(self.item, "level", 0))

    def __str__(self) -> str:
        given: Mapping[str, Any] = {"parts": self.parts, "labels": self.labels, "item": str(self.item)}
        return f"{self.name}{{{', '.join(f'{key}={to_text(value)}' for key, value in given.items())}}}"

    def run(self, module: IRModule) -> IRModule:
        """Run the pass on a view of the module, and merge what it made."""
        if set(self.labels) == set(self.parts):
            return self.item(module)
        owner = owners(module, self.labels)
        mine = {name for name in module if owner[name] in self.parts}
        if not mine:
            return module
        view, signatures = part_view(module, mine)
        new = self.item(view)
        return module if new is view else _merged(module, mine, new, signatures)


def _merged(module: IRModule, mine: set[str], new: IRModule, signatures: set[str]) -> IRModule:
    made = replace(new, functions=FrozenMap({k: f for k, f in new.items() if k not in signatures}))
    rest = replace(
        module,
        functions=FrozenMap({name: function for name, function in module.items() if name not in mine}),
        attrs=new.attrs,
        global_infos=new.global_infos,
    )
    result = merge(rest, made).module
    ordered = [name for name in module if name in result]
    ordered += [name for name in result if name not in module]
    functions = FrozenMap({name: result[name] for name in ordered})
    return replace(result, functions=functions, name=module.name, span=module.span)
