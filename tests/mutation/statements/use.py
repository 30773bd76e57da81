"""H: statements that grew from use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.mutation.faults import fault, returning

FLOW = "tests/systems/test_target_flow.py"


@fault(
    "H1",
    "weft.codegen.generate:GenerateCode.run",
    "tests/codegen/test_compiled_modules.py::test_the_text_of_a_compiled_module_is_the_program[codegen-vm]",
)
def compiled_functions_stay_beside_their_code(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        made = right(self, module)
        return made.with_functions({**made.functions, **module.functions})

    return wrong


@fault(
    "H1",
    "weft.codegen.generate:GenerateCode.loaded",
    "tests/codegen/test_compiled_modules.py::test_a_hook_that_changes_an_artifact_changes_what_runs",
)
def what_was_made_first_is_run(right: Any) -> Any:
    return lambda self, module: self.made.get("executable") or right(self, module)


fault(
    "H2",
    "weft.runtime.device.artifact_symbols:check_symbols",
    "tests/codegen/test_compiled_modules.py::test_an_object_that_does_not_say_the_truth_is_found_by_reading",
)(returning(None, "what_an_object_provides_is_believed"))


@fault(
    "H3",
    "weft.target.builtin:C.canonicalise",
    "tests/target/test_honoured_targets.py::test_what_nothing_obeys_is_refused",
)
def flags_of_c_are_taken_unread(right: Any) -> Any:
    return lambda options, *args, **more: options


fault("H4", "weft.codegen.backends.generators:_check_translated", "tests/plugins/test_conformance.py")(
    returning(None, "statements_that_are_left_out_are_not_missed")
)


@fault(
    "H5",
    "weft.transform.target.assign:_Assigner.rewrite_binding",
    f"{FLOW}::test_the_policy_is_a_pass_that_can_be_replaced",
    f"{FLOW}::test_a_function_called_under_two_labels_is_cloned",
)
def a_policy_wins_over_the_label(right: Any) -> Any:
    def wrong(self: Any, binding: Any) -> Any:
        call: Any = getattr(binding, "value", None)
        if "target" in (getattr(call, "attrs", None) or {}):
            attrs = type(call.attrs)({key: value for key, value in call.attrs.items() if key != "target"})
            binding = replace(binding, value=replace(call, attrs=attrs))
        return right(self, binding)

    return wrong


fault("H5", "weft.transform.fusion.fuse_ops:_check_groups", "tests/transform/fusion/test_fuse_ops.py")(
    returning(None, "a_custom_decision_crosses_labels")
)


fault(
    "H6",
    "weft.target.kinds:check_phase",
    "tests/transform/target/test_phase_hooks.py::test_phases_are_listed_and_a_hook_names_one_of_them",
)(returning(None, "a_hook_may_name_any_phase"))


@fault(
    "H7",
    "weft.transform.infra.decisions:Decision.of_attribute",
    "tests/transform/autoschedule/test_decisions.py::test_a_decision_that_was_edited_changes_the_loops_and_not_the_results",
)
def what_was_edited_in_a_decision_is_overlooked(right: Any) -> Any:
    def wrong(cls: Any, data: Any) -> Any:
        found = right.__func__(cls, data)
        return replace(found, values=type(found.values)({})) if not found.is_intact else found

    return classmethod(wrong)


@fault("H8", "weft.ir.structure.merge:rename_functions", "tests/ir/structure/test_merge.py")
def a_symbol_is_renamed_with_the_function_that_declares_it(right: Any) -> Any:
    def wrong(module: Any, mapping: dict[str, str], *symbols: Any) -> Any:
        from weft.ir import ExternFunc  # after the fault is looked up: weft is not loaded by listing them

        new = right(module, mapping, *symbols)
        names = set(mapping.values())
        functions = {
            name: replace(item, name=name) if isinstance(item, ExternFunc) and name in names else item
            for name, item in new.items()
        }
        return replace(new, functions=type(new.functions)(functions))

    return wrong


@fault(
    "H8",
    "weft.runtime.artifact:ArtifactSet.providers",
    "tests/ir/structure/test_merge.py",
    "tests/runtime/test_artifact.py",
)
def two_artifacts_may_provide_one_symbol(right: Any) -> Any:
    def wrong(self: Any) -> Any:
        return {symbol.name: item.name for item in self.values() for symbol in item.provides}

    return wrong


MERGING = "tests/runtime/test_merging.py"


fault(
    "H8", "weft.runtime.merging:implementations", f"{MERGING}::test_public_functions_of_one_name_are_refused_or_renamed"
)(returning({}, "declarations_of_one_type_are_one_function"))


fault("H8", "weft.runtime.merging:_used", f"{MERGING}::test_a_program_calls_a_function_that_was_compiled_before")(
    returning([], "a_program_is_taken_out_without_what_it_calls")
)


@fault("H1", "weft.runtime.merging:_moved", f"{MERGING}::test_programs_of_two_modules_are_merged_and_taken_apart")
def a_merged_program_has_the_files_of_the_other(right: Any) -> Any:
    return lambda item, mapping, names: right(item, {}, names)


fault("H9", "weft.codegen.backends.llvm.asm.overflow:Exact.holds", "tests/codegen/executors/test_sizes.py")(
    returning("true", "a_size_may_wrap")
)


fault("H10", "weft.ir.verify.externs:refuse_undeclared_kernels", "tests/codegen/test_externs.py")(
    returning(None, "any_symbol_of_c_may_be_called")
)


@fault(
    "H11",
    "weft.transform.infra.decisions:with_decisions",
    "tests/transform/autoschedule/test_decisions.py::test_what_was_decided_is_in_the_text_and_gives_the_same_loops_again",
)
def a_decision_is_not_kept(right: Any) -> Any:
    return lambda function, *args, **options: function


fault("H12", "tests.mutation.run:survives", "tests/mutation/test_faults.py::test_the_tool_tells_what_is_noticed")(
    returning(False, "every_fault_is_told_as_noticed")
)
