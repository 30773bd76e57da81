"""E: what a target says reaches every choice, or is refused."""

from __future__ import annotations

from typing import Any

from tests.mutation.faults import fault, returning, then

FLOW = "tests/systems/test_target_flow.py"
CONFIG = "tests/target/test_config.py"
TARGET = "tests/target/test_target.py"


fault(
    "E1",
    "weft.codegen.backends.c.library:SourceTree.write",
    f"{FLOW}::test_one_call_makes_c_for_a_board",
    "tests/codegen/backends/c/test_c_library.py::test_each_label_has_a_file_of_its_own",
)(returning(None, "a_tree_is_not_written"))


@fault(
    "E1",
    "weft.codegen.backends.llvm.machine.cross:cross_machine",
    "tests/codegen/backends/llvm/machine/test_cross.py::test_an_object_is_for_the_machine_of_the_target",
)
def every_object_is_for_one_machine(right: Any) -> Any:
    def wrong(target: Any, *args: Any, **options: Any) -> Any:
        from weft.target import Target

        return right(Target("llvm -mtriple=aarch64-linux-gnu"), *args, **options)

    return wrong


@fault("E2", "weft.codegen.lowering:_through", f"{FLOW}::test_stages_with_text_between_them_give_what_one_call_gives")
def a_module_taken_on_is_lowered_no_further(right: Any) -> Any:
    def wrong(module: Any, *args: Any, start: Any = None, **options: Any) -> Any:
        return right(module, *args, start="codegen" if start else None, **options)

    return wrong


@fault(
    "E3",
    "weft.transform.infra.phases:run_phases",
    f"{FLOW}::test_stages_with_text_between_them_give_what_one_call_gives",
)
def a_module_in_stages_is_not_scheduled(right: Any) -> Any:
    def wrong(module: Any, target: Any = None, *, start: Any = None, **options: Any) -> Any:
        return module if start == "schedule" else right(module, target, start=start, **options)

    return wrong


@fault("E4", "weft.ir.node:Node.script", f"{FLOW}::test_labels_of_call_sites_are_part_of_the_text_in_every_phase")
def labels_are_not_printed(right: Any) -> Any:
    return lambda self, **options: right(self, **options).replace(', target="b")', ")")


fault("E5", "weft.codegen.plan:_check_fields", f"{FLOW}::test_what_a_configuration_asks_for_is_honoured_or_refused")(
    returning(None, "fields_of_a_configuration_are_overlooked")
)


fault("E6", "weft.codegen.plan:_carried", f"{FLOW}::test_a_module_that_carries_its_target_needs_no_argument")(
    returning(None, "the_target_of_a_module_is_overlooked")
)


@fault(
    "E7", "weft.target.schema:unknown_field", f"{CONFIG}::test_what_a_field_cannot_be_is_refused_with_the_nearest_name"
)
def the_nearest_field_is_not_named(right: Any) -> Any:
    def wrong(what: str, name: str, known: Any) -> Any:
        return right(what, name, ())

    return wrong


@fault(
    "E8",
    "weft.target.config:Config.to_target",
    "tests/codegen/test_target.py::test_a_configuration_is_taken_as_the_target_that_it_is",
    CONFIG,
)
def a_configuration_loses_its_executor(right: Any) -> Any:
    def wrong(self: Any) -> Any:
        from weft.target import Target

        data = right(self).to_dict()
        return Target({key: value for key, value in data.items() if key != "executor"})

    return wrong


@fault("E9", "weft.target.value:_field", f"{CONFIG}::test_what_belongs_to_a_configuration_is_refused_by_a_leaf")
def a_leaf_may_have_any_field(right: Any) -> Any:
    def wrong(kind: Any, name: str, *args: Any, **options: Any) -> Any:
        from weft.errors import TargetError
        from weft.target.kinds import Str

        try:
            return right(kind, name, *args, **options)
        except TargetError:
            return Str()

    return wrong


@fault("E10", "weft.codegen.compile:as_module", f"{FLOW}::test_one_target_argument_serves_kernels_operators_and_models")
def a_kernel_alone_is_no_module(right: Any) -> Any:
    def wrong(item: Any, *args: Any, **options: Any) -> Any:
        from weft.ir import IRModule

        return item if isinstance(item, IRModule) else IRModule({})

    return wrong


fault("E11", "weft.target.builtin:_check_architecture", f"{TARGET}::test_wrong_targets_are_refused_at_the_right_place")(
    returning(None, "a_processor_may_contradict_its_triple")
)


@fault("E12", "weft.target.schema:config_field", f"{FLOW}::test_choices_of_runtime_live_in_configurations")
def a_configuration_has_no_runtime(right: Any) -> Any:
    def wrong(name: str, value: Any) -> Any:
        from weft.errors import TargetError

        if name == "runtime":
            raise TargetError("there is no field 'runtime'", code="W704")
        return right(name, value)

    return wrong


@fault("E13", "weft.target.value:_from_tag", f"{TARGET}::test_a_tag_is_recorded_with_the_expanded_fields")
def overrides_of_a_tag_are_overlooked(right: Any) -> Any:
    return lambda name, overrides, *args, **options: right(name, {}, *args, **options)


@fault("E14", "weft.target.value:Target.to_str", f"{TARGET}::test_the_four_forms_are_one_value")
def the_text_of_a_target_is_its_kind(right: Any) -> Any:
    return lambda self: self.kind.name


@fault("E15", "weft.target.value:Target.to_dict", f"{TARGET}::test_a_tag_is_recorded_with_the_expanded_fields")
def a_tag_alone_is_recorded(right: Any) -> Any:
    def wrong(self: Any) -> Any:
        data = right(self)
        return {key: value for key, value in data.items() if key in ("tag", "kind")} if data.get("tag") else data

    return wrong


@fault("E16", "weft.target.value:Target.explain", f"{TARGET}::test_explain_says_what_was_given_defaulted_and_derived")
def defaults_are_not_told(right: Any) -> Any:
    return then(lambda text: text.replace("default", "given"))(right)


@fault("E17", "weft.target.config:Config._with_host", f"{CONFIG}::test_separate_arguments_are_merged_into_one_target")
def a_separate_host_is_overlooked(right: Any) -> Any:
    return lambda self, target: target


@fault(
    "E18",
    "weft.command.inputs.targets:_with_fields",
    "tests/command/test_command_line_targets.py::test_the_command_line_wins_over_the_file_and_the_file_over_defaults",
)
def the_file_wins_over_the_command_line(right: Any) -> Any:
    return lambda target, fields, *, wins: right(target, fields, wins=not wins)


@fault("E19", "weft.transform.target.labels:leaf_parts", f"{FLOW}::test_a_part_may_be_a_configuration_of_its_own")
def a_configuration_among_the_parts_is_taken_apart(right: Any) -> Any:
    def wrong(target: Any) -> Any:
        if not target.parts:
            return (("", target),)
        each = ((label, leaf_parts(part)) for label, part in target.parts.items())
        return tuple((inner or label, leaf) for label, leaves in each for inner, leaf in leaves)

    leaf_parts = wrong
    return wrong


@fault("E20", "weft.target.config:_composite", f"{CONFIG}::test_the_common_case_needs_no_nesting")
def a_single_part_is_nested(right: Any) -> Any:
    def wrong(parts: Any) -> Any:
        from weft.target import Target

        return Target({"kind": "config", "parts": {"whole": right(parts)}})

    return wrong
