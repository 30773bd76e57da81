"""G: what users of such systems expect besides."""

from __future__ import annotations

from typing import Any

from tests.mutation.faults import fault, returning, then

C = "tests/codegen/backends/c/test_c.py"
G = "tests/transform/target/test_assign_by_cost.py"
KERNELS = "tests/script/reader/test_kernels_in_functions.py"
LIBRARY = "tests/codegen/backends/c/test_c_library.py"


@fault("G1", "weft.codegen.backends.c.files:together", f"{C}::test_there_is_no_heap")
def generated_code_calls_the_heap(right: Any) -> Any:
    return then(
        lambda text: text + "\n#include <stdlib.h>\nvoid *heap(void);\nvoid *heap(void) { return malloc(8); }\n"
    )(right)


@fault(
    "G2",
    "weft.codegen.backends.c.memory:greedy",
    f"{C}::test_planned_memory_never_overlaps",
    f"{C}::test_a_planner_is_a_plug_in",
)
def everything_is_planned_at_one_place(right: Any) -> Any:
    return then(lambda placed: ([0 for _ in placed[0]], placed[1]))(right)


fault("G3", "weft.codegen.backends.c.memory:Pool.serves", f"{LIBRARY}::test_a_part_writes_only_the_pools_that_it_may")(
    returning(True, "a_part_may_write_any_pool")
)


@fault(
    "G4",
    "weft.codegen.backends.c.files:header",
    f"{C}::test_the_digits_network_in_c_agrees_with_the_interpreter",
    f"{LIBRARY}::test_each_label_has_a_file_of_its_own",
)
def the_entry_has_another_name(right: Any) -> Any:
    return then(lambda text: text.replace("_run(", "_start("))(right)


@fault("G5", "weft.codegen.backends.c.files:_bracket", f"{LIBRARY}::test_calls_of_devices_bracket_their_operators")
def devices_are_not_opened(right: Any) -> Any:
    return lambda step, lines, *args: list(lines) if isinstance(lines, list) else []


@fault("G6", "weft.codegen.backends.c.library:_metadata", f"{LIBRARY}::test_two_models_share_memory_for_the_larger_one")
def metadata_knows_one_model(right: Any) -> Any:
    def wrong(*args: Any, **options: Any) -> Any:
        found = right(*args, **options)
        return {**found, "models": {}} if isinstance(found, dict) else "{}"

    return wrong


@fault("G7", "weft.codegen.backends.c.expressions:_signed", f"{C}::test_the_integer_network_is_exact_everywhere")
def integers_wrap_as_they_like(right: Any) -> Any:
    return lambda text, *args, **options: f"({text} + 1)" if isinstance(text, str) else right(text, *args, **options)


@fault(
    "G8",
    "weft.transform.target.assign_by_cost:_Choice.improved",
    f"{G}::test_a_placement_by_cost_is_never_worse_than_one_part_alone",
)
def a_placement_is_not_improved(right: Any) -> Any:
    return lambda self, labels: list(reversed(labels))


fault(
    "G8",
    "weft.transform.target.assign_by_cost:_Choice.moved",
    f"{G}::test_copies_decide_whether_a_cheap_call_leaves_its_neighbours",
)(returning(0.0, "copies_cost_nothing"))


@fault(
    "G9",
    "weft.script.decorators:_Cells.__getitem__",
    f"{KERNELS}::test_a_kernel_inside_a_function_uses_the_values_around_it",
)
def values_around_a_kernel_are_one_greater(right: Any) -> Any:
    return then(lambda value: value + 1 if isinstance(value, int) else value)(right)


@fault(
    "G10",
    "weft.ir.node:Node.script",
    "tests/systems/test_properties.py::test_modules_are_well_formed_and_their_text_reads_back_as_them[0]",
)
def the_text_says_another_number(right: Any) -> Any:
    return lambda self, **options: right(self, **options).replace("float32(1", "float32(2").replace("(2,", "(3,")
