"""Every pass that has samples changes them, at check level 3, and keeps what it registers to keep."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Function, IRModule, structural_equal
from weft.testing import assert_round_trip, assert_same_meaning, random_arguments
from weft.transform import Pass, PassContext, find_pass, pass_names
from weft.transform.infra.generators.choices import SeededChoices

SAMPLED = [
    name
    for name in pass_names()
    if find_pass(name).sample(SeededChoices(0)) is not None  # type: ignore[misc]
]


def sample(name: str, seed: int) -> tuple[Pass, IRModule]:
    made = find_pass(name).sample(SeededChoices(seed))
    assert made is not None
    module = weft.parse(made[1])
    assert isinstance(module, IRModule)
    return made[0], module


def types(module: IRModule) -> dict[str, Any]:
    """The types of parameters and results of the functions that others may call."""
    return {
        name: ([param.ty for param in function.params], function.ret_type)
        for name, function in module.items()
        if isinstance(function, Function) and not function.private
    }


def leaves(value: Any) -> list[bytes]:
    """The bytes of every array of a result."""
    return (
        [part for item in value for part in leaves(item)] if isinstance(value, tuple) else [np.asarray(value).tobytes()]
    )


def assert_same_bits(before: IRModule, after: IRModule, seed: int) -> None:
    for name in types(before):
        function = before[name]
        assert isinstance(function, Function)
        arguments = random_arguments(function, seed)
        results = [weft.interpret(module)[name](*copy.deepcopy(arguments)) for module in (before, after)]
        assert leaves(results[0]) == leaves(results[1])


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("seed", range(4))
def test_a_pass_does_what_it_registers(name: str, seed: int) -> None:
    item, before = sample(name, seed)
    with PassContext(config={"check.level": 3}):
        after = item(before)
    assert not structural_equal(before, after)
    assert_round_trip(after)
    if item.keeps_meaning:
        assert_same_meaning(before, after, trials=1, seed=seed)
        if item.exact == "bit":
            assert_same_bits(before, after, seed)
    if item.keeps_names:
        assert set(types(before)) <= set(types(after))
    if item.keeps_types:
        for function, found in types(after).items():
            assert function not in types(before) or all(
                structural_equal(one, other) for one, other in zip(found[0], types(before)[function][0], strict=True)
            )


@pytest.mark.parametrize("name", SAMPLED)
def test_the_text_of_a_pass_reads_back(name: str) -> None:
    item, _ = sample(name, 0)
    if "<" not in str(item):
        assert weft.transform.parse_pipeline(str(item)).passes[0] == item
