"""What every pass promises, on generated modules: well formed, readable, a fixed point, of the same meaning."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.testing.checks import check_round_trip, check_well_formed
from weft.testing.meaning import compare_random, random_module, runner
from weft.transform import (
    CanonicalizeBindings,
    DeadCodeElimination,
    EliminateCommonSubexpr,
    FoldConstant,
    InlinePrivateFunctions,
    LambdaLift,
    LegalizeOps,
    LowerToMemory,
    Normalize,
    Pass,
    PassContext,
    Pipeline,
    ToNonDataflow,
)

FIXED_POINT = [
    Normalize(),
    CanonicalizeBindings(),
    DeadCodeElimination(),
    EliminateCommonSubexpr(),
    FoldConstant(),
    InlinePrivateFunctions(),
    LambdaLift(),
    ToNonDataflow(),
    LegalizeOps(),
    LowerToMemory(),
]
TOGETHER = Pipeline(
    [
        InlinePrivateFunctions(),
        FoldConstant(),
        CanonicalizeBindings(),
        EliminateCommonSubexpr(),
        LambdaLift(),
        LegalizeOps(),
        CanonicalizeBindings(),
        DeadCodeElimination(),
        LowerToMemory(),
    ],
    name="all",
)
SETTINGS = settings(max_examples=12, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32 - 1)


def check_result(item: Pass, seed: int) -> None:
    """What the pass makes is well formed and reads back, of a module that runs and of any that can be written."""
    with PassContext(config={"check.level": 0}):
        for runnable in (True, False):
            new = item(random_module(seed, runnable=runnable))
            check_well_formed(new)
            check_round_trip(new)


def check_fixed_point(item: Pass, seed: int) -> None:
    """A second run finds nothing left to do."""
    with PassContext(config={"check.level": 0}):
        once = item(random_module(seed))
        assert item(once) is once


def check_meaning(item: Pass, seed: int) -> None:
    """The interpreter gives the same before and after."""
    old = random_module(seed, bindings=8)
    with PassContext(config={"check.level": 0}):
        new = item(old)
    compare_random(old, runner(new), seed)


def names(item: Pass) -> str:
    """The pass, as the test's id."""
    return item.name


@pytest.mark.parametrize("item", [*FIXED_POINT, TOGETHER], ids=names)
@SETTINGS
@given(seed=SEEDS)
def test_a_pass_gives_a_well_formed_module_that_reads_back(item: Pass, seed: int) -> None:
    check_result(item, seed)


@pytest.mark.parametrize("item", FIXED_POINT, ids=names)
@SETTINGS
@given(seed=SEEDS)
def test_a_second_run_of_a_pass_changes_nothing(item: Pass, seed: int) -> None:
    check_fixed_point(item, seed)


@pytest.mark.parametrize("item", [*FIXED_POINT, TOGETHER], ids=names)
@SETTINGS
@given(seed=SEEDS)
def test_a_pass_keeps_the_meaning_of_a_module(item: Pass, seed: int) -> None:
    check_meaning(item, seed)
