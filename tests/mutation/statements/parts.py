"""B: accelerators, hooks, and programs of several parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.mutation.faults import fault, returning, then

B = "tests/transform/target/test_lowering_hooks.py"
FLOW = "tests/systems/test_target_flow.py"
MERGE = "tests/ir/structure/test_merge.py"
EXAMPLES = "tests/plugins/test_examples.py"
LIBRARY = "tests/codegen/backends/c/test_c_library.py"


@fault(
    "B1",
    "weft.transform.target.partition_calls:PartitionCalls.run",
    f"{EXAMPLES}::test_the_network_on_the_accelerator_is_equal_to_that_on_the_host",
)
def nothing_is_handed_to_an_accelerator(right: Any) -> Any:
    return lambda self, module: module


fault(
    "B2", "weft.target.kinds:_check_arity", f"{B}::test_the_form_of_a_lowering_hook_is_checked_when_it_is_registered"
)(returning(None, "a_hook_of_any_form_is_registered"))


@fault("B3", "weft.ir.node:FrozenMap.__init__", f"{B}::test_the_module_that_a_hook_looks_at_cannot_be_changed")
def functions_of_a_module_can_be_changed(right: Any) -> Any:
    def wrong(self: Any, items: Any = ()) -> None:
        cls: Any = type(self)
        cls.__setitem__ = lambda self, key, value: self._items.__setitem__(key, value)
        right(self, items)

    return wrong


@fault(
    "B4",
    "weft.transform.target.hooks:_Contract.checked_result",
    f"{B}::test_the_name_that_a_hook_returns_decides_among_functions_of_one_form",
)
def the_first_function_of_a_hook_is_the_top_one(right: Any) -> Any:
    def wrong(self: Any, result: Any) -> Any:
        made, top = right(self, result)
        return made, next((name for name in made if self.module.functions.get(name) is not made[name]), top)

    return wrong


fault("B5", "weft.transform.target.hooks:_Contract.check_signature", f"{B}::test_a_breach_of_the_contract_is_an_error")(
    returning(None, "a_hook_may_change_a_signature")
)


fault("B5", "weft.transform.target.hooks:_Contract.check_lowered", f"{B}::test_a_breach_of_the_contract_is_an_error")(
    returning(None, "a_hook_may_leave_operators")
)


@fault(
    "B6",
    "weft.ir.structure.merge:rename_functions",
    f"{MERGE}::test_conflicting_private_names_are_renamed_with_their_references",
)
def references_keep_the_old_name(right: Any) -> Any:
    def wrong(module: Any, mapping: dict[str, str]) -> Any:
        return module.__class__({mapping.get(name, name): function for name, function in module.items()})

    return wrong


@fault("B7", "weft.ir.structure.merge:_shared", f"{MERGE}::test_a_public_name_is_never_silently_renamed")
def functions_of_one_name_are_taken_as_equal(right: Any) -> Any:
    return lambda into, other: {name for name in other if name in into}


@fault(
    "B8", "weft.ir.module:fresh_name", "tests/ir/test_module.py::test_fresh_names_count_on_from_their_numeric_suffix"
)
def a_fresh_name_gets_a_number_of_its_own(right: Any) -> Any:
    def wrong(base: str, used: Any) -> str:
        return next(name for number in range(1, 10_000) if (name := f"{base}_{number}") not in used)

    return wrong


@fault(
    "B9",
    "weft.runtime.programs.vm:VirtualMachine._packed",
    "tests/codegen/executors/test_executors.py::test_one_plug_in_works_under_every_executor",
)
def bytecode_leaves_out_what_others_provide(right: Any) -> Any:
    def wrong(self: Any, frame: Any, name: str, args: Any, operands: Any) -> Any:
        return () if args[-1] is None else right(self, frame, name, args, operands)

    return wrong


@fault(
    "B10", "weft.codegen.backends.generators:part_view", f"{B}::test_a_code_generator_gets_its_functions_and_its_target"
)
def a_code_generator_sees_the_functions_of_others(right: Any) -> Any:
    return lambda module, mine: (module, right(module, mine)[1])


fault("B11", "weft.codegen.backends.generators:_promised", f"{B}::test_a_code_generator_provides_what_it_promised")(
    returning([], "a_code_generator_may_leave_symbols_out")
)


@fault(
    "B12",
    "weft.target.processors:find_cpu",
    "tests/target/test_target.py::test_two_labelled_processors_read_exactly_as_written",
)
def the_suffix_f_says_nothing(right: Any) -> Any:
    def wrong(name: str) -> Any:
        return right(name.removesuffix("f")) or right(name)

    return wrong


@fault(
    "B13",
    "weft.transform.target.assign:_Specialiser.references",
    f"{FLOW}::test_a_function_called_under_two_labels_is_cloned",
)
def the_function_wins_over_the_call_site(right: Any) -> Any:
    return lambda self, function: ((name, self.own(name) or label) for name, label in right(self, function))


fault(
    "B14",
    "weft.transform.target.assign:check_label",
    f"{FLOW}::test_a_call_with_an_unknown_label_is_refused_where_it_stands",
)(returning(None, "any_label_is_known"))


@fault(
    "B15",
    "weft.transform.target.labels:owners",
    f"{FLOW}::test_functions_without_labels_belong_to_one_part_the_same_way_in_every_process",
)
def what_has_no_label_belongs_to_any_part(right: Any) -> Any:
    def wrong(module: Any, labels: Any) -> dict[str, str]:
        found, known = right(module, labels), list(labels)
        stated = {name for name, function in module.items() if "target" in getattr(function, "attrs", {})}
        return {name: label if name in stated else known[-1] for name, label in found.items()}

    return wrong


fault("B16", "weft.transform.fusion.fuse_ops:_check_groups", "tests/transform/fusion/test_fuse_ops.py")(
    returning(None, "a_group_may_cross_labels")
)


@fault(
    "B17",
    "weft.target.derived:gcc_flags_of",
    "tests/codegen/backends/c/test_c_library.py",
    "tests/target/test_target.py",
)
def every_processor_is_compiled_for_alike(right: Any) -> Any:
    return lambda cpu, options: [] if cpu is None else ["-mthumb", "-mcpu=cortex-m0", "-mfloat-abi=soft"]


@fault(
    "B18",
    "weft.codegen.backends.c.steps:_Reader.launch",
    f"{LIBRARY}::test_scratch_memory_of_kernels_shares_the_arena_of_tensors",
)
def scratch_stays_after_its_kernel(right: Any) -> Any:
    def wrong(self: Any, step: Any, label: str) -> None:
        before = len(self.lifetimes)
        right(self, step, label)
        for place in range(before, len(self.lifetimes)):
            self.lifetimes[place] = [0, 10**6]

    return wrong


fault(
    "B19",
    "weft.codegen.backends.c.steps:_Reader.extern",
    "tests/codegen/backends/c/test_c.py::test_a_library_call_is_carried_by_the_host_code",
)(returning(None, "calls_of_libraries_are_left_out"))


fault("B20", "weft.codegen.backends.generators:_check_translated", "tests/plugins/test_conformance.py")(
    returning(None, "a_code_generator_may_leave_statements_out")
)


@fault("B21", "weft.target.derived:features_of", "tests/target/test_target.py::test_features_follow_from_the_processor")
def a_processor_has_no_vectors_of_bytes(right: Any) -> Any:
    return then(lambda features: replace(features, has_dsp=False))(right)
