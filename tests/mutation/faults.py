"""The faults: each replaces one function, found by its qualified name, and names the tests that must notice.

    fault ::= statement, `module:qualified.name`, tests, (the function as it is) -> the wrong one
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["FAULTS", "Fault", "plant"]


@dataclass(frozen=True)
class Fault:
    """One fault; `statement` is its identifier in docs/requirements.md, `tests` what has to fail under it."""

    name: str
    statement: str
    target: str
    tests: tuple[str, ...]
    wrong: Callable[[Any], Any]

    def original(self) -> tuple[Any, str, Any]:
        """The owner of the function, its name there, and the function."""
        module, _, path = self.target.partition(":")
        owner: Any = importlib.import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        return owner, name, vars(owner)[name]


FAULTS: list[Fault] = []


def fault(statement: str, target: str, *tests: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Keep a fault under the name of the function that makes it."""

    def keep(wrong: Callable[[Any], Any]) -> Callable[[Any], Any]:
        FAULTS.append(Fault(wrong.__name__, statement, target, tests, wrong))
        return wrong

    return keep


def plant(name: str) -> None:
    """Put the wrong function in place of the right one, wherever it was imported to."""
    found = next(item for item in FAULTS if item.name == name)
    owner, place, right = found.original()
    wrong = found.wrong(right)
    setattr(owner, place, wrong)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("weft") and vars(module).get(place) is right:
            setattr(module, place, wrong)


@fault("H5", "weft.transform.target.assign:_Assigner.rewrite_binding",
       "tests/systems/test_flow.py::test_the_policy_is_a_pass_that_can_be_replaced",
       "tests/systems/test_flow.py::test_a_function_called_under_two_labels_is_cloned")  # fmt: skip
def a_policy_wins_over_the_label(right: Any) -> Any:
    def wrong(self: Any, binding: Any) -> Any:
        call: Any = getattr(binding, "value", None)
        if "target" in (getattr(call, "attrs", None) or {}):
            attrs = type(call.attrs)({key: value for key, value in call.attrs.items() if key != "target"})
            binding = replace(binding, value=replace(call, attrs=attrs))
        return right(self, binding)

    return wrong


@fault("H5", "weft.transform.fusion.fuse_ops:_check_groups", "tests/transform/test_fuse_ops.py")
def a_custom_decision_crosses_labels(right: Any) -> Any:
    return lambda groups, calls: None


@fault("H8", "weft.ir.structure.merge:rename_functions", "tests/ir/test_merge.py")
def references_to_externs_keep_their_old_name(right: Any) -> Any:
    def wrong(module: Any, mapping: dict[str, str]) -> Any:
        from weft.ir import ExternFunc  # after the fault is looked up: weft is not loaded by listing them

        new = right(module, mapping)
        back = {new_name: old for old, new_name in mapping.items()}
        functions = {
            name: replace(item, name=back.get(item.name, item.name)) if isinstance(item, ExternFunc) else item
            for name, item in new.items()
        }
        return replace(new, functions=type(new.functions)(functions))

    return wrong


@fault("D5", "weft.transform.memory.pack_memory:_neighbours", "tests/transform/test_plan_memory.py")
def ranges_of_living_that_touch_are_apart(right: Any) -> Any:
    return lambda requests: right([replace(item, last=max(item.first, item.last - 1)) for item in requests])


@fault("A5", "weft.transform.infra.pipeline:_between", "tests/transform/test_pipeline.py")
def a_later_phase_brings_nothing(right: Any) -> Any:
    return lambda last, name: []


@fault("D4", "weft.codegen.host.relations:relations", "tests/codegen/test_relations.py")
def sizes_that_do_not_fit_are_told_without_names(right: Any) -> Any:
    def wrong(kernel: Any, arguments: Sequence[Any], signature: Any = None) -> Any:
        return right(kernel, (), signature)

    return wrong


@fault("C13", "weft.ir.structure.malformed:malformed", "tests/test_raw_exceptions.py")
def odd_nodes_pass(right: Any) -> Any:
    return lambda root: None
