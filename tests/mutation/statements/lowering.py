"""A: one lowering, shared by every flow, in named phases."""

from __future__ import annotations

import itertools
from typing import Any

from tests.mutation.faults import fault, returning, then

A = "tests/transform/target/test_phase_hooks.py"
FLOW = "tests/systems/test_target_flow.py"


@fault(
    "A1", "weft.target.kinds:TargetKind.hook", f"{A}::test_lowering_takes_no_callback_and_other_kinds_do_not_change_it"
)
def a_hook_joins_every_kind(right: Any) -> Any:
    def wrong(self: Any, *args: Any, **options: Any) -> Any:
        from weft.target.kinds import KINDS

        added = [right(kind, *args, **options) for kind in KINDS.values()]
        return lambda function: [add(function) for add in added].pop()

    return wrong


@fault(
    "A2",
    "weft.ir.te.functions:create_prim_func",
    "tests/ir/te/test_te.py::test_equal_formulas_give_equal_functions_with_equal_hashes",
)
def a_formula_gives_another_function_each_time(right: Any) -> Any:
    numbers = itertools.count()
    return then(lambda function: function.with_attr("made", next(numbers)))(right)


@fault(
    "A3",
    "weft.transform.infra.phase:Phase.passes_for",
    f"{A}::test_a_hook_after_legalization_sees_graph_functions_and_kernels",
)
def hooks_run_before_their_phase(right: Any) -> Any:
    def wrong(self: Any, target: Any, *args: Any) -> Any:
        from weft.target import Target
        from weft.transform.target.phase_hooks import with_hooks

        found = right(self, target, *args)
        hooks = len(with_hooks(Target(target), self.name, ())) if target is not None else 0
        return (*found[len(found) - hooks :], *found[: len(found) - hooks])

    return wrong


@fault("A4", "weft.target.kinds:target_kind", "tests/target/test_target.py::test_a_kind_is_added_from_outside")
def a_kind_from_outside_is_forgotten(right: Any) -> Any:
    def wrong(name: str, *args: Any, **options: Any) -> Any:
        from weft.target.kinds import remove_target_kind

        made = right(name, *args, **options)
        remove_target_kind(name)
        return made

    return wrong


fault("A5", "weft.transform.infra.pipeline:_between", "tests/transform/infra/test_pipeline.py")(
    returning([], "a_later_phase_brings_nothing")
)


@fault("A5", "weft.transform.infra.phases:phases", f"{A}::test_phases_are_listed_and_a_hook_names_one_of_them")
def a_phase_is_not_listed(right: Any) -> Any:
    return then(lambda names: names[:-1])(right)


@fault("A6", "weft.transform.target.phase_hooks:_Placing.made", f"{A}::test_a_hook_that_gives_no_pass_is_refused")
def what_a_hook_gives_is_taken(right: Any) -> Any:
    def wrong(self: Any, found: Any) -> Any:
        return found.hook.make(*((found.target, found.label or "") if found.hook.labelled else (found.target,)))

    return wrong


fault("A7", "weft.transform.infra.checks:verify_after", f"{A}::test_the_module_is_verified_after_the_pass_of_a_hook")(
    returning(None, "a_pass_is_not_followed_by_the_verifier")
)


@fault(
    "A8", "weft.ir.node:Node.script", f"{FLOW}::test_a_module_is_taken_on_in_another_process_after_each_phase[schedule]"
)
def the_text_leaves_attributes_of_kernels_out(right: Any) -> Any:
    def wrong(self: Any, **options: Any) -> Any:
        from weft.ir import FrozenMap, IRModule, PrimFunc, replace

        if isinstance(self, IRModule):
            for name, function in self.items():
                if isinstance(function, PrimFunc):
                    self = self.with_function(name, replace(function, attrs=FrozenMap({})))
        return right(self, **options)

    return wrong


@fault("A9", "weft.transform.infra.phases:run_phases", f"{FLOW}::test_every_executor_sees_the_same_lowering")
def every_second_lowering_skips_the_schedules(right: Any) -> Any:
    runs = itertools.count()

    def wrong(module: Any, target: Any = None, **options: Any) -> Any:
        from weft.transform import PassContext

        with PassContext(disabled=["vectorize-nests"] if next(runs) % 2 else []):
            return right(module, target, **options)

    return wrong


@fault("A10", "weft.target.builtin:EXECUTORS", f"{A}::test_no_kind_executor_or_runtime_is_named_in_the_passes")
def an_executor_has_a_name_that_passes_use(right: Any) -> Any:
    return (*right, "legalize")


@fault("A11", "weft.transform.target.parts:OnParts.run", f"{A}::test_the_pass_of_one_part_changes_only_its_functions")
def the_pass_of_a_part_sees_the_whole(right: Any) -> Any:
    return lambda self, module: self.item(module)


fault("A12", "weft.target.kinds:TargetKind.remove_hook", f"{A}::test_unloading_a_plug_in_restores_the_output")(
    returning(None, "a_hook_stays_when_it_is_removed")
)


@fault("A13", "weft.transform.target.phase_hooks:_Placing.order", f"{A}::test_before_and_after_change_the_order")
def before_and_after_are_overlooked(right: Any) -> Any:
    return lambda self: list(range(len(self.waits)))
