"""Every public name of `weft.transform`, which loads this file when one of them is first used.

With it every pass of weft is defined, so `weft.transform.infra.registry` loads it to find passes by name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.transform import pattern
from weft.transform.autoschedule.block_sums import BlockSums
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.parallelize_outer_loops import ParallelizeOuterLoops
from weft.transform.autoschedule.tile_contractions import TileContractions
from weft.transform.autoschedule.vectorize_nests import VectorizeNests
from weft.transform.fusion.annotate_pattern import AnnotateTIROpPattern
from weft.transform.fusion.combine_parallel_matmul import CombineParallelMatmul
from weft.transform.fusion.fuse_ops import FuseOps
from weft.transform.fusion.fuse_ops_by_pattern import FuseOpsByPattern, FusionPattern, PatternCheckContext
from weft.transform.fusion.fuse_tir import FuseTIR
from weft.transform.graph.bind_params import BindParams
from weft.transform.graph.bind_symbolic_vars import BindSymbolicVars
from weft.transform.graph.canonicalize import CanonicalizeBindings
from weft.transform.graph.common_subexpressions import EliminateCommonSubexpr
from weft.transform.graph.compute_prim_value import ComputePrimValue
from weft.transform.graph.control_flow_to_kernels import ControlFlowToKernels
from weft.transform.graph.convert_to_dataflow import ConvertToDataflow
from weft.transform.graph.dead_code import DeadCodeElimination
from weft.transform.graph.fold_constant import FoldConstant
from weft.transform.graph.hoist_loop_invariants import HoistLoopInvariants
from weft.transform.graph.inline_functions import InlinePrivateFunctions
from weft.transform.graph.lambda_lift import LambdaLift
from weft.transform.graph.legalize import LegalizeOps
from weft.transform.graph.name_unknown_sizes import NameUnknownSizes
from weft.transform.graph.normalize import Normalize
from weft.transform.graph.remove_unused_parameters import RemoveUnusedParameters
from weft.transform.graph.to_non_dataflow import ToNonDataflow
from weft.transform.graph.topological_sort import TopologicalSort
from weft.transform.graph.unroll_loops import UnrollLoops
from weft.transform.infra.base import FunctionPass, Pass, function_pass, map_functions, module_pass
from weft.transform.infra.context import PassContext
from weft.transform.infra.instruments import Instrument, PassTime, PrintAfter, PrintBefore, Timing, Verify
from weft.transform.infra.phases import Step, default_pipeline, phase, phases, run_phases
from weft.transform.infra.pipeline import Pipeline, parse_pipeline
from weft.transform.infra.registry import find_pass, pass_names
from weft.transform.interface.bundle_model_params import BundleModelParams
from weft.transform.interface.detach_params import DetachParams, detach_params
from weft.transform.interface.expand_tuple_arguments import ExpandTupleArguments
from weft.transform.interface.lazy_get_input import LazyGetInput
from weft.transform.interface.lazy_set_output import LazySetOutput
from weft.transform.interface.lazy_transform_params import LazyTransformParams
from weft.transform.interface.lift_transform_params import LiftTransformParams
from weft.transform.interface.remove_unused_outputs import RemoveUnusedOutputs
from weft.transform.interface.update_param_type import UpdateParamType
from weft.transform.kernel.blocks.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.transform.kernel.blocks.lower_init_block import LowerInitBlock
from weft.transform.kernel.blocks.lower_match_buffer import LowerMatchBuffer
from weft.transform.kernel.blocks.lower_opaque_block import LowerOpaqueBlock
from weft.transform.kernel.blocks.plan_and_update_buffer_allocation_location import (
    PlanAndUpdateBufferAllocationLocation,
)
from weft.transform.kernel.buffers.compact_buffer_allocation import CompactBufferAllocation
from weft.transform.kernel.buffers.flatten_buffer import FlattenBuffer
from weft.transform.kernel.buffers.remove_store_undef import RemoveStoreUndef
from weft.transform.kernel.buffers.storage_rewrite import StorageRewrite
from weft.transform.kernel.check_bounds import CheckBounds
from weft.transform.kernel.check_handles import CheckHandles
from weft.transform.kernel.check_writes import CheckWrites
from weft.transform.kernel.choose_intrinsics import ChooseIntrinsics
from weft.transform.kernel.expand_intrinsics import ExpandIntrinsics
from weft.transform.kernel.loops.canonicalize_loop import CanonicalizeLoop
from weft.transform.kernel.loops.hoist_expression import HoistExpression
from weft.transform.kernel.loops.hoist_if_then_else import HoistIfThenElse
from weft.transform.kernel.loops.inject_double_buffer import InjectDoubleBuffer
from weft.transform.kernel.loops.inject_software_pipeline import InjectSoftwarePipeline
from weft.transform.kernel.loops.instrument_profile import InstrumentProfile
from weft.transform.kernel.loops.loop_partition import LoopPartition
from weft.transform.kernel.loops.unroll_loop import UnrollLoop
from weft.transform.kernel.lower_blocks import LowerBlocks
from weft.transform.kernel.lower_complex import LowerComplex
from weft.transform.kernel.lower_vector_loops import LowerVectorLoops
from weft.transform.kernel.pack_constants import PackConstants
from weft.transform.kernel.scalars.common_subexpr_elim import CommonSubexprElim
from weft.transform.kernel.scalars.narrow_data_type import NarrowDataType
from weft.transform.kernel.scalars.remove_assume import RemoveAssume
from weft.transform.kernel.scalars.remove_no_op import RemoveNoOp
from weft.transform.kernel.scalars.renormalize_split_pattern import RenormalizeSplitPattern
from weft.transform.kernel.scalars.rewrite_unsafe_select import RewriteUnsafeSelect
from weft.transform.kernel.scalars.stmt_simplify import StmtSimplify
from weft.transform.kernel.scalars.use_assume_to_reduce_branches import UseAssumeToReduceBranches
from weft.transform.layout.alter_op_impl import AlterOpImpl
from weft.transform.layout.convert_layout import ConvertLayout
from weft.transform.layout.optimize_layout_transform import OptimizeLayoutTransform
from weft.transform.memory.allocate_workspace import AllocateWorkspace
from weft.transform.memory.check_memory_plan import CheckMemoryPlan
from weft.transform.memory.hoist_scratch import HoistScratch
from weft.transform.memory.in_place.concatenate_in_place import ConcatenateInPlace
from weft.transform.memory.in_place.dataflow_use_inplace_calls import DataflowUseInplaceCalls
from weft.transform.memory.in_place.update_in_place import UpdateInPlace
from weft.transform.memory.kill_after_last_use import KillAfterLastUse
from weft.transform.memory.lower_to_entry import LowerToEntry
from weft.transform.memory.lower_to_memory import LowerToMemory
from weft.transform.memory.pack_sub_bytes import PackSubBytes
from weft.transform.memory.plan_memory import StaticPlanBlockMemory
from weft.transform.memory.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.transform.memory.share_memory import ShareMemory
from weft.transform.quantize.insert_quantize_dequantize import InsertQuantizeDequantize
from weft.transform.quantize.quantize_weights import QuantizeWeights
from weft.transform.quantize.to_mixed_precision import ToMixedPrecision
from weft.transform.rewrite.adjust_matmul_order import AdjustMatmulOrder
from weft.transform.rewrite.apply_rules import ApplyRules
from weft.transform.rewrite.cancel_transposes import CancelTransposes
from weft.transform.rewrite.decompose_ops_for_inference import DecomposeOpsForInference
from weft.transform.rewrite.decompose_ops_for_training import DecomposeOpsForTraining
from weft.transform.rewrite.expand_matmul_of_sum import ExpandMatmulOfSum
from weft.transform.rewrite.fold_batchnorm_to_conv2d import FoldBatchnormToConv2D
from weft.transform.rewrite.fold_scale_shift import FoldScaleShift
from weft.transform.rewrite.fuse_attention import FuseAttention
from weft.transform.rewrite.fuse_dequantize_matmul import FuseDequantizeMatmul
from weft.transform.rewrite.fuse_transpose_matmul import FuseTransposeMatmul
from weft.transform.rewrite.group_attention_heads import GroupAttentionHeads
from weft.transform.rewrite.mask_attention import MaskAttention
from weft.transform.rewrite.quantized.fold_quantize_dequantize import FoldQuantizeDequantize
from weft.transform.rewrite.remove_redundant_casts import RemoveRedundantCasts
from weft.transform.rewrite.remove_redundant_reshape import RemoveRedundantReshape
from weft.transform.rewrite.reorder_permute_dims_after_concat import ReorderPermuteDimsAfterConcat
from weft.transform.rewrite.reorder_take_after_matmul import ReorderTakeAfterMatmul
from weft.transform.rewrite.rule_set import RuleSet, register_rules, remove_rules, rule_set, rule_sets
from weft.transform.rewrite.split_to_slices import SplitToSlices
from weft.transform.rewrite.unflatten_matmul import UnflattenMatmul
from weft.transform.target.assign_by_cost import AssignByCost
from weft.transform.target.merge_composite_functions import MergeCompositeFunctions
from weft.transform.target.partition_calls import Declined, PartitionCalls
from weft.transform.target.place_copies import PlaceCopies
from weft.transform.target.realize_vdevice import RealizeVDevice
from weft.transform.target.split_call_tir_by_pattern import SplitCallTIRByPattern
from weft.transform.target.update_vdevice import UpdateVDevice

if TYPE_CHECKING:
    from weft.transform.schedule import Schedule

CallTIRRewrite = LowerToMemory
"""The name in TVM of what makes memory explicit."""

__all__ = [
    "AdjustMatmulOrder",
    "AllocateWorkspace",
    "AlterOpImpl",
    "AnnotateTIROpPattern",
    "ApplyRules",
    "AssignByCost",
    "BindParams",
    "BindSymbolicVars",
    "BlockSums",
    "BundleModelParams",
    "CallTIRRewrite",
    "CancelTransposes",
    "CanonicalizeBindings",
    "CanonicalizeLoop",
    "CheckBounds",
    "CheckHandles",
    "CheckMemoryPlan",
    "CheckWrites",
    "ChooseIntrinsics",
    "CombineParallelMatmul",
    "CommonSubexprElim",
    "CompactBufferAllocation",
    "ComputePrimValue",
    "ConcatenateInPlace",
    "ControlFlowToKernels",
    "ConvertBlocksToOpaque",
    "ConvertLayout",
    "ConvertToDataflow",
    "DataflowUseInplaceCalls",
    "DeadCodeElimination",
    "Declined",
    "DecomposeOpsForInference",
    "DecomposeOpsForTraining",
    "DetachParams",
    "EliminateCommonSubexpr",
    "ExpandIntrinsics",
    "ExpandMatmulOfSum",
    "ExpandTupleArguments",
    "FlattenBuffer",
    "FoldBatchnormToConv2D",
    "FoldConstant",
    "FoldQuantizeDequantize",
    "FoldScaleShift",
    "FunctionPass",
    "FuseAttention",
    "FuseDequantizeMatmul",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseTIR",
    "FuseTransposeMatmul",
    "FusionPattern",
    "GroupAttentionHeads",
    "HoistExpression",
    "HoistIfThenElse",
    "HoistLoopInvariants",
    "HoistScratch",
    "InjectDoubleBuffer",
    "InjectSoftwarePipeline",
    "InlinePrivateFunctions",
    "InsertQuantizeDequantize",
    "Instrument",
    "InstrumentProfile",
    "KillAfterLastUse",
    "Knobs",
    "LambdaLift",
    "LazyGetInput",
    "LazySetOutput",
    "LazyTransformParams",
    "LegalizeOps",
    "LiftTransformParams",
    "LoopPartition",
    "LowerBlocks",
    "LowerComplex",
    "LowerInitBlock",
    "LowerMatchBuffer",
    "LowerOpaqueBlock",
    "LowerToEntry",
    "LowerToMemory",
    "LowerVectorLoops",
    "MaskAttention",
    "MergeCompositeFunctions",
    "NameUnknownSizes",
    "NarrowDataType",
    "Normalize",
    "OptimizeLayoutTransform",
    "PackConstants",
    "PackSubBytes",
    "ParallelizeOuterLoops",
    "PartitionCalls",
    "Pass",
    "PassContext",
    "PassTime",
    "PatternCheckContext",
    "Pipeline",
    "PlaceCopies",
    "PlanAndUpdateBufferAllocationLocation",
    "PrintAfter",
    "PrintBefore",
    "QuantizeWeights",
    "RealizeVDevice",
    "RemoveAssume",
    "RemoveNoOp",
    "RemoveRedundantCasts",
    "RemoveRedundantReshape",
    "RemoveStoreUndef",
    "RemoveUnusedOutputs",
    "RemoveUnusedParameters",
    "RenormalizeSplitPattern",
    "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul",
    "RewriteDataflowReshape",
    "RewriteUnsafeSelect",
    "RuleSet",
    "Schedule",
    "ShareMemory",
    "SplitCallTIRByPattern",
    "SplitToSlices",
    "StaticPlanBlockMemory",
    "Step",
    "StmtSimplify",
    "StorageRewrite",
    "TileContractions",
    "Timing",
    "ToMixedPrecision",
    "ToNonDataflow",
    "TopologicalSort",
    "UnflattenMatmul",
    "UnrollLoop",
    "UnrollLoops",
    "UpdateInPlace",
    "UpdateParamType",
    "UpdateVDevice",
    "UseAssumeToReduceBranches",
    "VectorizeNests",
    "Verify",
    "default_pipeline",
    "detach_params",
    "find_pass",
    "function_pass",
    "map_functions",
    "module_pass",
    "parse_pipeline",
    "pass_names",
    "pattern",
    "phase",
    "phases",
    "register_rules",
    "remove_rules",
    "rule_set",
    "rule_sets",
    "run_phases",
]


def __getattr__(name: str) -> Any:
    if name == "Schedule":
        return importlib.import_module("weft.transform.schedule").Schedule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
