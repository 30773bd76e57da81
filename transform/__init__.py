"""IRModule to IRModule: the passes and the pipelines made of them.

    base, registry, options      what a pass is; its name and options as text
    context, instruments         the surroundings in which passes run
    checks, sampling             what is checked after each pass (WEFT_CHECK)
    pipeline, phases             passes in order; the named phases from a module to an executable
    rewriting, keys, symbols,    what passes are written with
    purity, retype, index_facts
    pattern/                     what stands in a graph, found and replaced
    schedule/, scheduled         loops and blocks changed step by step by users; the mark of such functions
    one file per pass            normalize, legalize, fold_constant, ...

`weft.transform.phases` names the phases and what runs in each.
"""

from __future__ import annotations

from weft.transform import pattern
from weft.transform.annotate_pattern import AnnotateTIROpPattern
from weft.transform.assign_by_cost import AssignByCost
from weft.transform.base import FunctionPass, Pass, function_pass, map_functions, module_pass
from weft.transform.bind_params import BindParams
from weft.transform.bind_symbolic_vars import BindSymbolicVars
from weft.transform.canonicalize import CanonicalizeBindings
from weft.transform.check_bounds import CheckBounds
from weft.transform.check_memory_plan import CheckMemoryPlan
from weft.transform.combine_parallel_matmul import CombineParallelMatmul
from weft.transform.common_subexpressions import EliminateCommonSubexpr
from weft.transform.context import PassContext
from weft.transform.convert_to_dataflow import ConvertToDataflow
from weft.transform.dead_code import DeadCodeElimination
from weft.transform.fold_constant import FoldConstant
from weft.transform.fuse_ops import FuseOps
from weft.transform.fuse_ops_by_pattern import FuseOpsByPattern, FusionPattern, PatternCheckContext
from weft.transform.fuse_tir import FuseTIR
from weft.transform.hoist_scratch import HoistScratch
from weft.transform.inline_functions import InlinePrivateFunctions
from weft.transform.instruments import Instrument, PassTime, PrintAfter, PrintBefore, Timing, Verify
from weft.transform.lambda_lift import LambdaLift
from weft.transform.legalize import LegalizeOps
from weft.transform.lower_blocks import LowerBlocks
from weft.transform.lower_to_entry import LowerToEntry
from weft.transform.lower_to_memory import LowerToMemory
from weft.transform.lower_vector_loops import LowerVectorLoops
from weft.transform.name_unknown_sizes import NameUnknownSizes
from weft.transform.normalize import Normalize
from weft.transform.pack_constants import PackConstants
from weft.transform.parallelize_outer_loops import ParallelizeOuterLoops
from weft.transform.partition_calls import PartitionCalls
from weft.transform.phases import Step, default_pipeline, phase, phases, run_phases
from weft.transform.pipeline import Pipeline, parse_pipeline
from weft.transform.place_copies import PlaceCopies
from weft.transform.plan_memory import StaticPlanBlockMemory
from weft.transform.registry import find_pass, pass_names
from weft.transform.remove_unused_parameters import RemoveUnusedParameters
from weft.transform.schedule import Schedule
from weft.transform.share_memory import ShareMemory
from weft.transform.tile_contractions import TileContractions
from weft.transform.to_non_dataflow import ToNonDataflow
from weft.transform.vectorize_nests import VectorizeNests

if __name__ != "weft.transform":  # the checkout root on sys.path would load a second copy
    raise ImportError("import weft.transform, not transform")

__all__ = [
    "AnnotateTIROpPattern",
    "AssignByCost",
    "BindParams",
    "BindSymbolicVars",
    "CanonicalizeBindings",
    "CheckBounds",
    "CheckMemoryPlan",
    "CombineParallelMatmul",
    "ConvertToDataflow",
    "DeadCodeElimination",
    "EliminateCommonSubexpr",
    "FoldConstant",
    "FunctionPass",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseTIR",
    "FusionPattern",
    "HoistScratch",
    "InlinePrivateFunctions",
    "Instrument",
    "LambdaLift",
    "LegalizeOps",
    "LowerBlocks",
    "LowerToEntry",
    "LowerToMemory",
    "LowerVectorLoops",
    "NameUnknownSizes",
    "Normalize",
    "PackConstants",
    "ParallelizeOuterLoops",
    "PartitionCalls",
    "Pass",
    "PassContext",
    "PassTime",
    "PatternCheckContext",
    "Pipeline",
    "PlaceCopies",
    "PrintAfter",
    "PrintBefore",
    "RemoveUnusedParameters",
    "Schedule",
    "ShareMemory",
    "StaticPlanBlockMemory",
    "Step",
    "TileContractions",
    "Timing",
    "ToNonDataflow",
    "VectorizeNests",
    "Verify",
    "default_pipeline",
    "find_pass",
    "function_pass",
    "map_functions",
    "module_pass",
    "parse_pipeline",
    "pass_names",
    "pattern",
    "phase",
    "phases",
    "run_phases",
]  # fmt: skip
