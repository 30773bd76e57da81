"""The built-in rules, in the registry when this is imported; the rules of each pass."""

from __future__ import annotations

from weft.transform.autoschedule.gemm.decide import GemmRule
from weft.transform.autoschedule.gemm.groups.rule import GroupedRule
from weft.transform.autoschedule.registry import GEMM_ORDER, Rule, register_rule, rules
from weft.transform.autoschedule.rules.argreduce.rule import ArgReduceRule
from weft.transform.autoschedule.rules.block_fusion import AttentionRule, ChainRule
from weft.transform.autoschedule.rules.copies import CopyRule
from weft.transform.autoschedule.rules.elementwise import ElementwiseRule
from weft.transform.autoschedule.rules.gather.assertions import AssertionRule
from weft.transform.autoschedule.rules.gather.rule import GatherRule
from weft.transform.autoschedule.rules.reductions import ReductionRule
from weft.transform.autoschedule.rules.split_reduction import SplitReductionRule
from weft.transform.autoschedule.rules.transposes import TransposeRule
from weft.transform.autoschedule.scans.rule import ScanRule

__all__ = ["BUILTIN", "rules_of_contractions", "rules_of_nests"]

BUILTIN = tuple(
    register_rule(rule)
    for rule in (
        AttentionRule(),
        ChainRule(),
        GroupedRule(),
        GemmRule(),
        CopyRule(),
        AssertionRule(),
        GatherRule(),
        ArgReduceRule(),
        ScanRule(),
        SplitReductionRule(),
        ElementwiseRule(),
        TransposeRule(),
        ReductionRule(),
    )
)
"""In the order in which they are asked."""


def rules_of_contractions() -> list[Rule]:
    """The rules up to that of contractions, those from outside among them."""
    return rules(last=GEMM_ORDER)


def rules_of_nests() -> list[Rule]:
    """The rules after that of contractions."""
    return rules(first=GEMM_ORDER)
