"""The labels of functions and calls, and the parts of a target that they mean.

    leaf target         one part without a label; every function belongs to it
    composite, config   parts by label; the attribute `target` of a function holds the label of its part
    no label            a private function belongs to the part of all its callers when they agree;
                        every other one to the first part

Nothing here is a pass: what a program is to be compiled for is asked also where it comes from the disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from weft.errors import TargetError
from weft.ir.attrs import LABEL
from weft.ir.graph import Binding, Call, Function, VarBinding
from weft.ir.module import BaseFunc, IRModule
from weft.ir.structure.references import referenced_functions
from weft.ir.structure.visit import walk
from weft.target import Target
from weft.target.kinds import DRIVING_LABEL

__all__ = ["driving_label", "labelled_calls", "leaf_parts", "owned_parts", "owners", "refuse_labels"]


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


def labelled_calls(function: BaseFunc) -> Iterator[tuple[Binding, Call]]:
    """The calls of a graph function, which may have a label, with what binds them."""
    if isinstance(function, Function):
        for node in walk(function):
            if isinstance(node, VarBinding) and isinstance(node.value, Call):
                yield node, node.value


def refuse_labels(module: IRModule, target: Target) -> None:
    """TargetError W707 for a label of a function or call where the target is one part without a label."""
    for name, function in module.items():
        labels = [(getattr(function, "attrs", {}).get(LABEL), f"function {name!r}", function.span)]
        for binding, call in labelled_calls(function):
            span = call.span or binding.span
            labels.append((call.attrs.get(LABEL), f"the call bound to {binding.var.name!r}", span))
        for label, what, span in labels:
            if label is not None:
                raise TargetError(
                    f"{what} is labelled {str(label)!r}, and the target {target} has no parts",
                    code="W707",
                    span=span,
                    hint=f'a target of parts: "host: {target}; {label}: ..."',
                )
