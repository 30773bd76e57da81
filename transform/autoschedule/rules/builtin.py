"""The built-in rules, in the registry when this is imported."""

from __future__ import annotations

from weft.transform.autoschedule.gemm.decide import GEMM
from weft.transform.autoschedule.registry import register_rule
from weft.transform.autoschedule.rules.argreduce import ArgReduceRule
from weft.transform.autoschedule.rules.block_fusion import ATTENTION, CHAIN_RULE
from weft.transform.autoschedule.rules.elementwise import ElementwiseRule
from weft.transform.autoschedule.rules.gather import GatherRule
from weft.transform.autoschedule.rules.reductions import ReductionRule
from weft.transform.autoschedule.rules.split_reduction import SplitReductionRule
from weft.transform.autoschedule.rules.transposes import TransposeRule

__all__ = ["BUILTIN"]

BUILTIN = tuple(
    register_rule(rule)
    for rule in (
        ATTENTION, CHAIN_RULE, GEMM, GatherRule(), ArgReduceRule(), SplitReductionRule(), ElementwiseRule(),
        TransposeRule(), ReductionRule(),
    )
)
"""In the order in which they are asked."""
