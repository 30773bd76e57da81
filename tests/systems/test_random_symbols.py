"""Random graph programs over several symbols are what NumPy computes, at sizes of 0, 1, 2 and odd ones too.

`python tests/fuzz/symbolic.py --count 5000` runs as many as one likes.
"""

from __future__ import annotations

import shutil

import pytest
from tests.fuzz.symbolic import FINDINGS, outcomes
from tests.fuzz.symbolic_programs import made


def test_hardly_any_program_is_refused_and_none_is_wrong() -> None:
    found = {seed: outcomes(made(seed), "interpreter") for seed in range(28)}
    assert not [(seed, one) for seed, all_of in found.items() for one in all_of if one.kind in FINDINGS]
    refused = {seed: all_of for seed, all_of in found.items() if any(one.kind == "refused" for one in all_of)}
    assert len(refused) < 2, refused


@pytest.mark.parametrize("executor", ["native", "vm"])
@pytest.mark.parametrize("start", [1000, 1003])
def test_compiled_programs_are_what_numpy_computes(start: int, executor: str) -> None:
    found = {seed: outcomes(made(seed), executor) for seed in range(start, start + 3)}
    assert not [(seed, one) for seed, all_of in found.items() for one in all_of if one.kind not in ("right", "small")]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_programs_in_c_are_what_numpy_computes() -> None:
    kinds = [outcomes(made(seed), "c")[0].kind for seed in range(2000, 2004)]
    assert set(kinds) <= {"right", "unsupported"}
    assert "right" in kinds
