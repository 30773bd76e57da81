"""Passes that see the functions of some parts of a target only; which are whose says `weft.transform.target.labels`.

A pass restricted to parts gets a view: the functions of the parts, the kernels that they call, and for other graph
functions that they call their signatures. What it makes is merged back: a shared kernel that it changed becomes a
function of its own, and functions of other parts stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from weft.ir import BaseFunc, ExternFunc, FrozenMap, Function, IRModule, replace
from weft.ir.attrs import LABEL
from weft.ir.deduction.infer import func_type
from weft.ir.structure.merge import merge
from weft.ir.structure.references import referenced_functions
from weft.support.records import dataclass
from weft.transform.infra.base import Pass
from weft.transform.infra.options import to_text
from weft.transform.infra.pipeline import parse_pipeline
from weft.transform.target.labels import owners

__all__ = ["OnParts", "part_view"]


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
