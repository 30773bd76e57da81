"""From a module to an executable: the named phases, in order, and the passes of each.

    import > partition > assign > legalize > optimize > fuse > schedule > lower > plan > codegen > link

Each phase is data: a list of passes. A phase with an empty list has its place in the order and nothing built in yet.
What depends on the target:

    partition           functions handed to external code generators, by the hooks of their kinds
    assign              for targets of several parts: every function and call gets the label of a part
    legalize            kernels that have a form for intrinsics that few machines have
    schedule            for targets with vector registers: sums of products in register tiles, other loops on vectors
    plan                memory of the explicit-memory form shared between tensors, for targets that do not plan it
    codegen, link       done by `weft.codegen` (artifacts), which runs after the passes listed here

Their names are names in the text of a pipeline too: `legalize,fuse{max_ops=8}`.
`run_phases` runs them from any phase to any other, so that a module may be kept as text in between.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from weft.errors import PassError
from weft.ir.module import IRModule
from weft.ir.node import FrozenMap
from weft.ir.structure.structural import structural_hash
from weft.support.records import dataclass
from weft.target import Target
from weft.target.kinds import know_phases
from weft.transform.autoschedule.block_sums import BlockSums
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.autoschedule.parallelize_outer_loops import ParallelizeOuterLoops
from weft.transform.autoschedule.tile_contractions import TileContractions
from weft.transform.autoschedule.vectorize_nests import VectorizeNests
from weft.transform.fusion.annotate_pattern import AnnotateTIROpPattern
from weft.transform.fusion.combine_parallel_matmul import CombineParallelMatmul
from weft.transform.fusion.fuse_ops import FuseOps
from weft.transform.fusion.fuse_tir import FuseTIR
from weft.transform.graph.canonicalize import CanonicalizeBindings
from weft.transform.graph.common_subexpressions import EliminateCommonSubexpr
from weft.transform.graph.convert_to_dataflow import ConvertToDataflow
from weft.transform.graph.dead_code import DeadCodeElimination
from weft.transform.graph.fold_constant import FoldConstant
from weft.transform.graph.hoist_loop_invariants import HoistLoopInvariants
from weft.transform.graph.lambda_lift import LambdaLift
from weft.transform.graph.legalize import LegalizeOps
from weft.transform.graph.name_unknown_sizes import NameUnknownSizes
from weft.transform.graph.normalize import Normalize
from weft.transform.infra.base import Pass
from weft.transform.infra.phase import Phase, RunPhase
from weft.transform.infra.pipeline import Pipeline
from weft.transform.infra.registry import name_phases, nearest
from weft.transform.kernel.check_bounds import CheckBounds
from weft.transform.kernel.check_handles import CheckHandles
from weft.transform.kernel.check_writes import CheckWrites
from weft.transform.kernel.choose_intrinsics import ChooseIntrinsics
from weft.transform.kernel.expand_intrinsics import ExpandIntrinsics
from weft.transform.kernel.lower_complex import LowerComplex
from weft.transform.kernel.mark_overlaps import MarkOverlaps
from weft.transform.kernel.order_vector_loops import OrderVectorLoops
from weft.transform.kernel.pack_constants import PackConstants
from weft.transform.kernel.resolve_pointers import ResolvePointers
from weft.transform.memory.check_memory_plan import CheckMemoryPlan
from weft.transform.memory.hoist_scratch import HoistScratch
from weft.transform.memory.in_place.concatenate_in_place import ConcatenateInPlace
from weft.transform.memory.in_place.update_in_place import UpdateInPlace
from weft.transform.memory.lower_to_memory import LowerToMemory
from weft.transform.memory.pack_sub_bytes import PackSubBytes
from weft.transform.memory.plan_memory import StaticPlanBlockMemory
from weft.transform.memory.share_memory import ShareMemory
from weft.transform.rewrite.adjust_matmul_order import AdjustMatmulOrder
from weft.transform.rewrite.apply_rules import ApplyRules
from weft.transform.rewrite.cancel_transposes import CancelTransposes
from weft.transform.rewrite.fold_batchnorm_to_conv2d import FoldBatchnormToConv2D
from weft.transform.rewrite.fuse_attention import FuseAttention
from weft.transform.rewrite.fuse_dequantize_matmul import FuseDequantizeMatmul
from weft.transform.rewrite.fuse_transpose_matmul import FuseTransposeMatmul
from weft.transform.rewrite.group_attention_heads import GroupAttentionHeads
from weft.transform.rewrite.mask_attention import MaskAttention
from weft.transform.rewrite.quantized.fold_quantize_dequantize import FoldQuantizeDequantize
from weft.transform.rewrite.remove_redundant_casts import RemoveRedundantCasts
from weft.transform.rewrite.remove_redundant_reshape import RemoveRedundantReshape
from weft.transform.rewrite.split_to_slices import SplitToSlices
from weft.transform.rewrite.unflatten_matmul import UnflattenMatmul
from weft.transform.target.assign import OutlineLabelled, SpecialiseByLabel, VerifyTargets
from weft.transform.target.assign_by_cost import AssignByCost
from weft.transform.target.labels import driving_label, leaf_parts
from weft.transform.target.parts import OnParts
from weft.transform.target.place_copies import PlaceCopies

__all__ = ["PHASES", "Phase", "Step", "default_pipeline", "phase", "phases", "phases_of", "run_phases"]


def _assign(target: Target, knobs: Knobs) -> tuple[Pass, ...]:
    """Parts for functions and calls, and copies where their memories differ."""
    if len(leaf_parts(target)) == 1:
        return ()
    passes = (VerifyTargets, AssignByCost, OutlineLabelled, SpecialiseByLabel, PlaceCopies)
    return tuple(item(target.to_str()) for item in passes)


def _legalize(target: Target, knobs: Knobs) -> tuple[Pass, ...]:
    """The forms of kernels that the machine of each part has instructions for."""
    parts = leaf_parts(target)
    labels = tuple(label for label, _ in parts)
    made = [(label, ChooseIntrinsics(part.machine, tuple(sorted(part.kind.intrinsics)))) for label, part in parts]
    return tuple(item if len(parts) == 1 else OnParts((label,), labels, item) for label, item in made)


def _schedule(target: Target, knobs: Knobs) -> tuple[Pass, ...]:
    """Loops in the form that the registers of each part like best."""
    parts = leaf_parts(target)
    labels = tuple(label for label, _ in parts)
    made: list[Pass] = []
    for label, part in parts:
        machine = part.machine
        items: tuple[Pass, ...] = (BlockSums(),)  # what is left as it was written, at opt=0 everything
        if part.kind.explicit_vectors and machine.vector_bits:
            items = (
                TileContractions(machine, knobs),
                PackConstants(),
                VectorizeNests(machine, knobs),
                *items,
                ParallelizeOuterLoops(knobs),
            )
        made += items if len(parts) == 1 else (OnParts((label,), labels, item) for item in items)
    return tuple(made)


def _plan(target: Target, knobs: Knobs) -> tuple[Pass, ...]:
    """One block of memory for what lives within a call, unless a code generator of the target sees to that itself."""
    labelled = dict(leaf_parts(target))
    parts = list(labelled.values())
    if any(part.kind.plans_memory for part in parts):
        return ()
    planner = labelled[driving_label(labelled)].options.get("planner")
    stack = min(part.machine.stack_bytes for part in parts)
    return (HoistScratch(stack), ConcatenateInPlace(), ShareMemory(), StaticPlanBlockMemory(planner))


_RULES = (
    *FuseDequantizeMatmul.sets_of_class,
    *CancelTransposes.sets_of_class,
    *UnflattenMatmul.sets_of_class,
    *RemoveRedundantReshape.sets_of_class,
    *RemoveRedundantCasts.sets_of_class,
    *AdjustMatmulOrder.sets_of_class,
    *FuseTransposeMatmul.sets_of_class,
    *FuseAttention.sets_of_class,
    *GroupAttentionHeads.sets_of_class,
    *MaskAttention.sets_of_class,
    *FoldBatchnormToConv2D.sets_of_class,
    *SplitToSlices.sets_of_class,
)
"""What every module gains by: fewer operators, or products that are proved to cost less."""


def _partition(target: Target, knobs: Knobs) -> tuple[Pass, ...]:
    """Hooks find what their parts can do in dataflow blocks; pure bindings that stand outside of one are as good."""
    hooked = any("partition" in part.kind.hooks for part in (target, *(part for _, part in leaf_parts(target))))
    return (ConvertToDataflow(min_size=1),) if hooked else ()


PHASES: tuple[Phase, ...] = (
    # A text may place tensors in memory itself: that is proved before anything is changed.
    Phase("import", (CheckMemoryPlan(), Normalize(), CanonicalizeBindings())),
    Phase("partition", for_target=_partition),
    Phase("assign", for_target=_assign),
    # Whole operators fold faster than their loops; accesses are checked while loops are as they were written.
    Phase(
        "legalize",
        (
            NameUnknownSizes(),
            # Before constants in few bits are folded to floats.
            ApplyRules("level", FoldQuantizeDequantize.sets_of_class),
            FoldConstant(),
            ApplyRules("level", _RULES),
            CombineParallelMatmul(),
            ResolvePointers(),
            MarkOverlaps(),
            OrderVectorLoops(),
            CheckHandles(),
            CheckWrites(),
            LegalizeOps(),
            ExpandIntrinsics(),
            CheckBounds(),
        ),
        _legalize,
    ),
    Phase(
        "optimize",
        (CanonicalizeBindings(), HoistLoopInvariants(), EliminateCommonSubexpr(), DeadCodeElimination()),
        mandatory=False,
    ),
    # Groups form within dataflow blocks; pure bindings that stand outside of one are as good.
    Phase(
        "fuse", (ConvertToDataflow(), AnnotateTIROpPattern(), FuseOps(), FuseTIR(), UpdateInPlace()), mandatory=False
    ),
    Phase("schedule", (LowerComplex(),), _schedule, mandatory=False),
    Phase("lower", (LowerComplex(), LambdaLift(), PackSubBytes(), LowerToMemory())),
    Phase("plan", for_target=_plan),
    Phase("codegen", whole=True),
    Phase("link", whole=True),
)
know_phases(item.name for item in PHASES)
name_phases({item.name: item for item in PHASES})


def phases() -> list[str]:
    """The names of the phases in order.

    >>> " > ".join(phases())
    'import > partition > assign > legalize > optimize > fuse > schedule > lower > plan > codegen > link'
    """
    return [item.name for item in PHASES]


def phase(name: str, target: Target | str | None = None) -> Pipeline:
    """The passes of one phase as a pipeline; PassError W507 for an unknown name.

    >>> str(phase("lower"))
    'lower-complex,lambda-lift,pack-sub-bytes,lower-to-memory'
    """
    for item in PHASES:
        if item.name == name:
            return Pipeline(item.passes_for(target, more=item.provided(target)), name=name)
    raise PassError(f"there is no phase {name!r}", code="W507", hint=nearest(name, phases()) or ", ".join(phases()))


def default_pipeline(target: Target | str | None = None) -> Pipeline:
    """The passes of all phases, one pipeline per phase that has any: what `weft.compile` runs.

    The kinds of `target` and of its parts add the passes of their hooks.

    >>> [item.name for item in default_pipeline()]
    ['import', 'legalize', 'optimize', 'fuse', 'schedule', 'lower']
    """
    made = [Pipeline(item.passes_for(target), name=item.name) for item in PHASES]
    return Pipeline([item for item in made if len(item)], name="default")


def phases_of(item: object) -> list[str]:
    """The phases that a pipeline names, in order.

    >>> from weft.transform import parse_pipeline
    >>> phases_of(parse_pipeline("dce,legalize,plan"))
    ['legalize', 'lower', 'plan']
    """
    if isinstance(item, RunPhase):
        return [item.name]
    return [name for part in item.passes for name in phases_of(part)] if isinstance(item, Pipeline) else []


@dataclass(frozen=True)
class Step:
    """One pass as it ran: its phase, its text, the part it ran for, hashes of the module before and after, the time."""

    phase: str
    item: str
    label: str
    before: str
    after: str
    milliseconds: float

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Everything but the time: what is the same whenever the same module is compiled."""
        return self.phase, self.item, self.label, self.before, self.after


def run_phases(
    module: IRModule,
    target: Target | str | None = None,
    *,
    start: str | None = None,
    stop: str | None = None,
    trace: list[Step] | None = None,
    knobs: Knobs | None = None,
    before: Mapping[str, tuple[Pass, ...]] = FrozenMap(),
    more: Mapping[str, tuple[Pass, ...]] = FrozenMap(),
) -> IRModule:
    """Run the phases from `start` to `stop`, both included; the result may be printed, read again and taken on.

    With a list as `trace`, every pass is recorded there. `knobs` are those of the schedules; `before` and `more` are
    passes that stand before those which are built in, recorded where they change something, and that join them, by
    phase.
    Passes whose level is above `opt` of the `PassContext` are left out.
    Raises: PassError W507 for an unknown phase, and what the passes raise.

    >>> steps = []
    >>> run_phases(IRModule({}), stop="legalize", trace=steps).functions
    FrozenMap({})
    >>> steps[0].phase, steps[0].item
    ('import', 'check-memory-plan')
    """
    names = phases()
    for name in (start, stop):
        if name is not None:
            phase(name)  # refuses an unknown one
    first = 0 if start is None else names.index(start)
    last = len(names) if stop is None else names.index(stop) + 1
    for item in PHASES[first:last]:
        prepared: list[Step] | None = None if trace is None else []
        module = _run_phase(module, Pipeline(before.get(item.name, ()), name=item.name), prepared)
        if trace is not None:
            trace.extend(step for step in prepared or () if step.before != step.after)
        passes = item.passes_for(target, knobs, more.get(item.name, ()))
        module = _run_phase(module, Pipeline(passes, name=item.name), trace)
    return module


def _run_phase(module: IRModule, passes: Pipeline, trace: list[Step] | None) -> IRModule:
    if trace is None:
        return passes(module) if len(passes) else module
    before = _hash(module)
    for item in passes:
        started = time.perf_counter()
        new = Pipeline([item], name=passes.name)(module)
        spent = time.perf_counter() - started
        after = before if new is module else _hash(new)
        label = ", ".join(item.parts) if isinstance(item, OnParts) else ""
        trace.append(Step(passes.name, str(item), label, before, after, spent * 1e3))
        module, before = new, after
    return module


def _hash(module: IRModule) -> str:
    value: Any = structural_hash(module)
    return f"{value:x}" if isinstance(value, int) else str(value)
