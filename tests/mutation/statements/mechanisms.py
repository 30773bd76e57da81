"""Breaks of mechanisms that several statements rest on: intervals, lifetimes, tables of symbols, labels, copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.mutation.faults import fault, returning, then

A = "tests/transform/target/test_phase_hooks.py"
B = "tests/transform/target/test_lowering_hooks.py"
C = "tests/runtime/test_artifacts_in_modules.py"
D = "tests/systems/test_one_module_for_all_levels.py"
FLOW = "tests/systems/test_target_flow.py"
H = "tests/transform/target/test_part_costs.py"
COMPILED = "tests/codegen/test_compiled_modules.py"
FIELDS = "tests/target/test_every_field.py::test_a_field_has_its_effect_or_is_refused"


@fault(
    "H10",
    "weft.transform.analysis.accesses:_lies_between",
    "tests/transform/analysis/test_independence.py",
    "tests/transform/autoschedule/test_parallelize_outer_loops.py",
)
def the_interval_of_an_iteration_is_one_longer(right: Any) -> Any:
    return lambda space, loops, low, dim, high: right(space, loops, low, dim, high + 1)


fault(
    "H10",
    "weft.transform.analysis.accesses:_has_other_views",
    "tests/transform/autoschedule/test_parallelize_outer_loops.py",
)(returning(False, "another_view_of_written_memory_is_not_seen"))


@fault("D5", "weft.transform.memory.share_memory:_Choice._may_view", "tests/transform/memory/test_plan_memory.py")
def a_later_write_is_overlooked(right: Any) -> Any:
    def wrong(self: Any, step: int, given: Any, output: Any) -> bool:
        lifetimes = self.lifetimes
        kept, lifetimes.last_write = lifetimes.last_write, lambda var: -1
        try:
            return right(self, step, given, output)
        finally:
            lifetimes.last_write = kept

    return wrong


fault("D20", "weft.transform.memory.share_memory:_Choice._is_new", "tests/transform/memory/test_plan_memory.py")(
    returning(True, "memory_that_holds_something_counts_as_new")
)


fault("D5", "weft.transform.memory.share_memory:_have_equal_sizes", "tests/transform/memory/test_plan_memory.py")(
    returning(True, "an_output_may_be_larger_than_the_input_that_it_overwrites")
)


@fault("G2", "weft.transform.memory.pack_memory:Request.meets", "tests/codegen/test_packages.py")
def requests_that_share_one_step_do_not_meet(right: Any) -> Any:
    return lambda self, other: self.first < other.last and other.first < self.last


@fault(
    "H2",
    "weft.runtime.device.artifact_symbols:symbols_of",
    f"{COMPILED}::test_objects_provide_and_need_what_their_tables_say",
)
def an_object_needs_nothing(right: Any) -> Any:
    return then(lambda found: (found[0], ()))(right)


fault(
    "H2",
    "weft.runtime.program_artifacts:_target_of",
    f"{COMPILED}::test_an_object_names_its_own_functions_and_what_was_decided_about_them",
)(returning("{}", "an_artifact_has_no_target"))


@fault(
    "H2",
    "weft.runtime.program_artifacts:_object_facts",
    f"{COMPILED}::test_an_object_names_its_own_functions_and_what_was_decided_about_them",
)
def an_object_claims_every_function(right: Any) -> Any:
    return lambda program, names: right(program, set(program.provenance.get("functions", {})))


@fault("C9", "weft.codegen.build:_facts", f"{COMPILED}::test_a_program_says_what_it_was_made_from")
def the_level_is_not_recorded(right: Any) -> Any:
    return then(lambda facts: {**facts, "opt": 2 if facts["opt"] == 3 else facts["opt"], "target": "llvm -x"})(right)


@fault(
    "H3",
    "weft.codegen.backends.llvm.machine.host_target:HostTarget.described",
    f"{FIELDS}[llvm-l2_cache-llvm -l2-cache=64K]",
)
def what_a_target_says_of_its_machine_is_lost(right: Any) -> Any:
    return lambda self: right(replace(self, overrides=()))


fault("H3", "weft.target.float_units:llvm_features", f"{FIELDS}[llvm-mfpu-llvm -mcpu=cortex-m7f -mfpu=fpv5-d16]")(
    returning((), "every_unit_is_alike_to_llvm")
)


fault(
    "H3", "weft.target.builtin:_same_system", f"{FIELDS}[c-mtriple-c -mcpu=cortex-m4f -mtriple=thumbv7em-linux-gnueabi]"
)(returning(True, "c_takes_any_triple"))


fault(
    "E11",
    "weft.target.float_units:_check_convention",
    f"{FIELDS}[llvm-mfloat_abi-llvm -mcpu=cortex-m7f -mtriple=thumbv7em-none-eabi -mfloat-abi=hard]",
)(returning(None, "a_convention_may_contradict_the_triple"))


@fault(
    "H5",
    "weft.transform.target.assign_by_cost:AssignByCost.run",
    f"{H}::test_a_label_and_a_policy_win_over_what_is_known",
)
def costs_win_over_labels(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        from weft.ir import Call, rewrite

        def follow(item: Any) -> Any:
            labelled = isinstance(item, Call) and "target" in item.attrs
            return replace(item, attrs=item.attrs.without("target")) if labelled else None

        return right(self, module.with_functions({name: rewrite(f, follow) for name, f in module.items()}))

    return wrong


fault(
    "H5",
    "weft.transform.target.part_costs:same_work",
    f"{H}::test_calls_go_where_they_take_less_as_far_as_that_is_known",
)(returning(True, "any_part_does_the_same_work"))


@fault(
    "H5",
    "weft.transform.target.assign_by_cost:_Choice.copies",
    f"{H}::test_copies_are_counted_once_for_all_readers",
)
def a_value_is_copied_for_each_reader(right: Any) -> Any:
    def wrong(self: Any, var: Any, labels: Any) -> float:
        number = self.source.get(var, -1)
        source = labels[number] if number >= 0 else self.home
        needed = [labels[index] for index in self.readers.get(var, ())]
        needed += [self.home] if var in self.results else []
        return sum(self.moved(var, source, label) for label in needed if label != source)

    return wrong


fault(
    "H6",
    "weft.transform.target.phase_hooks:_Placing.without",
    f"{A}::test_a_pass_is_replaced_for_the_functions_of_its_part",
)(returning(None, "a_pass_is_replaced_for_every_part"))


fault(
    "H6",
    "weft.transform.target.phase_hooks:_Placing.end",
    f"{A}::test_a_hook_stands_before_after_or_in_place_of_a_built_in_pass",
)(returning(None, "a_hook_without_a_place_runs_as_soon_as_it_can"))


fault(
    "B7", "weft.transform.target.origins:is_origin_of", f"{B}::test_a_public_function_is_recognised_as_it_was_written"
)(returning(True, "any_function_of_the_name_is_the_one"))


@fault("B10", "weft.transform.target.partition_calls:_with_a_parameter_for_each", "tests/plugins/test_int8_adder.py")
def repeated_operands_share_a_parameter(right: Any) -> Any:
    return lambda chain: (chain, {})


@fault(
    "B16",
    "weft.transform.fusion.fuse_ops:_Outlined.add",
    "tests/transform/fusion/test_fuse_ops.py",
    "tests/systems/test_target_flow.py",
)
def parts_share_the_kernels_of_their_groups(right: Any) -> Any:
    return lambda self, function, base, label: right(self, function, base, None)


@fault("E5", "weft.transform.target.place_copies:_Copier.back", f"{FLOW}::test_copies_stand_where_memories_differ")
def results_stay_in_the_memory_of_their_part(right: Any) -> Any:
    return lambda self, value, name, span, new: value


@fault(
    "A8",
    "weft.runtime.programs.bytecode:_without_spans",
    f"{FLOW}::test_stages_with_text_between_them_give_what_one_call_gives",
    f"{COMPILED}::test_modules_of_every_target_are_taken_apart_and_put_together_in_another_process",
)
def places_are_part_of_bytecode(right: Any) -> Any:
    return lambda value: value


@fault(
    "G3",
    "weft.codegen.backends.c.memory:_fitting",
    "tests/codegen/backends/c/test_c_library.py::test_tensors_live_in_pools_and_overflow_is_an_error_with_numbers",
)
def a_pool_takes_more_than_it_has(right: Any) -> Any:
    return lambda requests, waiting, pool, planner: right(requests, waiting, replace(pool, size=None), planner)


@fault(
    "G5",
    "weft.codegen.backends.c.files:_bracket",
    "tests/codegen/backends/c/test_c_library.py::test_several_devices_are_switched_off_in_the_reverse_order",
)
def devices_are_switched_off_in_the_order_they_were_switched_on(right: Any) -> Any:
    def wrong(program: Any) -> Any:
        lines = list(right(program))
        off = [line for line in lines if "deactivate" in line]
        return [*(line for line in lines[:-1] if line not in off), *reversed(off), lines[-1]]

    return wrong


fault(
    "C12",
    "weft.transform.graph.common_subexpressions:_Merge._forget",
    "tests/transform/graph/test_common_subexpressions.py",
)(returning(None, "what_a_branch_computed_is_there_after_it"))


@fault("D4", "weft.ir.dim.expression:_truncated", "tests/ir/dim/test_prover.py", "tests/ir/dim/test_dim.py")
def sizes_are_divided_towards_the_lower_number(right: Any) -> Any:
    return lambda coefficient, divisor: coefficient // divisor


@fault(
    "E13",
    "weft.target.value:_from_tag",
    "tests/target/test_target.py::test_a_tag_is_recorded_with_the_expanded_fields",
)
def another_processor_keeps_the_unit_of_the_tag(right: Any) -> Any:
    def wrong(name: str, overrides: Any, *args: Any) -> Any:
        found = right(name, overrides, *args)
        return found if not overrides else {**found, "tag": None}

    return wrong


fault(
    "A7",
    "weft.transform.infra.context:check_level",
    "tests/transform/infra/test_checks.py::test_the_level_of_a_context_switches_the_checks_on",
)(returning(0, "the_level_of_a_context_is_overlooked"))


@fault(
    "C1",
    "weft.codegen.build:_completed",
    f"{COMPILED}::test_every_artifact_says_what_it_was_made_from_and_by[c-None]",
)
def artifacts_of_others_say_nothing(right: Any) -> Any:
    return lambda item, facts: item


fault("H10", "weft.codegen.host.liveness:TextMemory.give_back", "tests/codegen/host/test_liveness.py")(
    returning(None, "memory_that_was_given_back_is_used")
)


fault("H10", "weft.codegen.host.liveness:TextMemory._check_written", "tests/codegen/host/test_liveness.py")(
    returning(None, "a_kernel_writes_a_constant")
)


fault("G2", "weft.transform.memory.planners:_check_places", "tests/codegen/test_packages.py")(
    returning(None, "the_places_of_a_planner_are_believed")
)


@fault(
    "H2",
    "weft.runtime.device.object_formats:object_symbols",
    "tests/runtime/device/test_object_formats.py::test_symbols_of_every_kind_are_told_apart",
)
def local_symbols_are_for_others(right: Any) -> Any:
    return then(lambda found: [replace(item, local=False) for item in found])(right)


@fault(
    "B13",
    "weft.transform.target.assign_by_cost:AssignByCost._chooses",
    "tests/transform/target/test_part_costs.py::test_the_label_of_a_function_wins_over_what_is_known_and_over_a_policy",
)
def costs_win_over_the_label_of_a_function(right: Any) -> Any:
    return lambda self, function: True


@fault(
    "D5",
    "weft.transform.memory.share_memory:_sizes_fit",
    "tests/transform/memory/test_plan_memory.py::test_a_copy_that_is_passed_its_sizes_becomes_a_view_where_they_fit",
)
def sizes_that_are_passed_are_believed(right: Any) -> Any:
    return lambda kernel, call: True


@fault(
    "H9",
    "weft.transform.kernel.bounds.elements:with_exact_sizes",
    "tests/codegen/executors/test_sizes.py::test_a_size_is_checked_though_fusion_leaves_its_tensor_out",
)
def a_size_goes_with_its_tensor(right: Any) -> Any:
    return lambda function, buffers: function


@fault(
    "H8",
    "weft.runtime.merging:implementations",
    "tests/runtime/test_merging.py::test_one_caller_of_two_functions_of_a_name_is_two_functions",
)
def what_a_program_calls_is_no_part_of_it(right: Any) -> Any:
    return lambda artifacts: {name: name for name in right(artifacts)}
