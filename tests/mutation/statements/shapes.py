"""D: symbolic shapes, and programs at any stage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.mutation.faults import fault, returning

D = "tests/systems/test_one_module_for_all_levels.py"
FLOW = "tests/systems/test_target_flow.py"
INFER = "tests/ir/deduction/test_infer.py"
PATTERN = "tests/transform/fusion/test_fuse_ops_by_pattern.py"


@fault("D1", "weft.ir.dim.expression:DimExpr.__sub__", f"{D}::test_a_size_is_an_integer_or_an_expression_of_symbols")
def a_difference_without_symbols_stays_an_expression(right: Any) -> Any:
    def wrong(self: Any, other: Any) -> Any:
        found = right(self, other)
        return self if isinstance(found, int) else found

    return wrong


@fault(
    "D2", "weft.ir.deduction.subtyping:unnamed", f"{INFER}::test_unknown_shapes_stay_unknown_and_ranks_are_kept", INFER
)
def an_unknown_shape_is_given_back_as_it_was(right: Any) -> Any:
    return lambda ty, *args, **options: ty


@fault("D3", "weft.ir.dim.expression:product", f"{INFER}::test_shapes_are_deduced_as_numpy_has_them")
def a_product_of_sizes_is_the_last(right: Any) -> Any:
    return lambda dims: (list(dims) or [1])[-1]


@fault(
    "D4",
    "weft.ir.dim.expression:_multiply_monomials",
    f"{INFER}::test_shapes_are_deduced_as_numpy_has_them",
    "tests/ir/dim/test_prover.py::test_an_identity_is_proved",
)
def powers_are_forgotten(right: Any) -> Any:
    return lambda left, other: left or other


@fault("D4", "weft.codegen.host.relations:relations", "tests/codegen/host/test_relations.py")
def sizes_that_do_not_fit_are_told_without_names(right: Any) -> Any:
    def wrong(kernel: Any, arguments: Any, signature: Any = None) -> Any:
        return right(kernel, (), signature)

    return wrong


@fault("D5", "weft.transform.memory.pack_memory:_neighbours", "tests/transform/memory/test_plan_memory.py")
def ranges_of_living_that_touch_are_apart(right: Any) -> Any:
    return lambda requests: right([replace(item, last=max(item.first, item.last - 1)) for item in requests])


fault("D5", "weft.ir.dim.proofs:prove_equal", "tests/ir/dim/test_prover.py::test_an_identity_is_proved")(
    returning(None, "equal_sizes_are_not_proved")
)


fault(
    "D6",
    "weft.codegen.backends.llvm.host.checks:CheckingEmitter.check",
    f"{D}::test_sizes_that_depend_on_data_are_checked_when_they_are_there",
)(returning(None, "sizes_of_data_are_not_checked"))


@fault(
    "D7",
    "weft.ir.deduction.infer:match_call",
    f"{INFER}::test_a_call_of_a_function_substitutes_the_symbols_its_arguments_bind",
)
def the_symbols_of_a_callee_reach_its_caller(right: Any) -> Any:
    return lambda signature, *args, **options: signature.ret


@fault("D8", "weft.ir.deduction.infer:infer_type", f"{INFER}::test_deduction_of_a_chain_takes_steps_in_proportion")
def what_was_deduced_is_looked_at_again(right: Any) -> Any:
    before: list[Any] = []

    def wrong(value: Any, *args: Any, **options: Any) -> Any:
        before.append(value)
        for item in before:
            hash(id(item))
        return right(value, *args, **options)

    return wrong


@fault(
    "D9",
    "weft.runtime.abi.signature:Binder.solve",
    f"{D}::test_the_boundary_of_a_function_checks_rank_dtype_and_relations",
)
def relations_of_arguments_are_not_checked(right: Any) -> Any:
    def wrong(self: Any, *args: Any, **options: Any) -> Any:
        from weft.errors import WeftError

        try:
            return right(self, *args, **options)
        except WeftError:
            return None

    return wrong


@fault(
    "D10",
    "weft.transform.memory.lower_to_memory:LowerToMemory.run",
    "tests/systems/test_one_module_for_all_levels.py::test_an_operator_of_a_shared_library_takes_two_steps",
)
def calls_of_libraries_are_not_lowered(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        return module if "call_dps_packed" in module.script() else right(self, module)

    return wrong


@fault(
    "D11",
    "weft.transform.memory.lower_to_memory:LowerToMemory.run",
    f"{D}::test_a_kernel_that_was_tuned_is_swapped_for_a_library",
    f"{FLOW}::test_a_lowered_call_turns_back_into_a_library_call",
)
def no_library_is_called_where_there_are_kernels(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        from weft.ir import PrimFunc, rewrite

        def follow(item: Any) -> Any:
            swapped = getattr(getattr(item, "op", None), "name", "") == "call_dps_packed"
            return type(item)(type(item.op)("zeros"), (item.ty_args[0].shape,), ty_args=()) if swapped else None

        if any(isinstance(function, PrimFunc) for _, function in module.items()):
            module = module.with_functions({name: rewrite(function, follow) for name, function in module.items()})
        return right(self, module)

    return wrong


@fault(
    "D12",
    "weft.transform.graph.legalize:LegalizeOps.run",
    f"{D}::test_any_half_of_a_module_may_be_lowered_before_the_rest",
)
def a_module_with_kernels_is_not_lowered_further(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        from weft.ir import PrimFunc

        return module if any(isinstance(item, PrimFunc) for _, item in module.items()) else right(self, module)

    return wrong


fault(
    "D13",
    "weft.transform.fusion.annotate_pattern:op_pattern",
    "tests/transform/fusion/test_fuse_ops.py::test_a_relu_written_by_hand_is_fused_after_a_product",
)(returning("opaque", "loops_are_not_looked_at"))


@fault("D14", "weft.runtime.registry:lookup", f"{D}::test_an_operator_of_a_shared_library_takes_two_steps")
def a_registered_function_is_not_found(right: Any) -> Any:
    def wrong(name: str) -> Any:
        return lambda *args: None

    return wrong


fault(
    "D15",
    "weft.transform.fusion.fuse_ops_by_pattern:_Outliner.groups",
    f"{PATTERN}::test_several_runs_take_what_is_left_and_the_program_compiles",
)(returning([], "a_pattern_takes_nothing"))


@fault(
    "D16",
    "weft.codegen.host.entry_kernel:lower_to_entry",
    "tests/codegen/executors/test_executors.py::test_ahead_of_time_compilation_is_a_lowering_to_one_kernel",
)
def the_entry_kernel_keeps_the_functions(right: Any) -> Any:
    return lambda module, *args, **options: module


@fault("D17", "weft.transform.fusion.fuse_ops:FuseOps.run", f"{D}::test_the_decision_of_fusion_is_replaceable")
def the_decision_of_a_user_is_overlooked(right: Any) -> Any:
    def wrong(self: Any, module: Any) -> Any:
        from weft.transform.fusion.fuse_ops import group_by_consumers

        return right(replace(self, decide=group_by_consumers), module)

    return wrong


@fault("D18", "weft.transform.infra.phases:_run_phase", f"{FLOW}::test_hooks_run_at_every_level")
def hooks_are_an_optimisation(right: Any) -> Any:
    return lambda module, passes, trace: right(module, passes.__class__([*passes][:1], name=passes.name), trace)


fault(
    "D19",
    "weft.ir.verify.purity:check_purity",
    f"{D}::test_the_rules_of_dataflow_blocks_are_verified_for_built_modules_too",
)(returning(None, "effects_in_dataflow_blocks_are_not_seen"))


@fault(
    "D20",
    "weft.transform.memory.share_memory:_Choice._is_spent",
    f"{D}::test_an_update_in_place_keeps_the_values_that_others_read",
)
def a_value_that_others_read_is_overwritten(right: Any) -> Any:
    return lambda self, step, given, call: given in self.lifetimes.made


@fault(
    "D21",
    "weft.codegen.executors.bytecode:BytecodeBuilder.compute",
    f"{D}::test_sizes_are_read_once_and_computed_without_work_for_each_operator",
)
def a_size_is_computed_for_each_operator(right: Any) -> Any:
    def wrong(self: Any, tree: Any, text: str) -> int:
        self.computed.clear()
        return right(self, tree, text)

    return wrong


@fault(
    "D21",
    "weft.codegen.executors.vm:_Emitter.branch",
    "tests/codegen/executors/test_executors.py::test_a_size_that_one_way_computes_is_not_used_on_another",
)
def sizes_of_a_branch_are_used_after_it(right: Any) -> Any:
    def wrong(self: Any, branch: Any, into: int) -> None:
        made: dict[Any, int] = {}
        compute = type(self.out).compute
        self.out.compute = lambda tree, text: made.setdefault(tree, compute(self.out, tree, text))
        right(self, branch, into)
        del self.out.compute
        self.out.computed.update(made)

    return wrong
