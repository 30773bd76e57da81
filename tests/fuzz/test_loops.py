"""Random programs with loops are what Python computes on NumPy arrays, in every executor, and read back as printed.

`python tests/fuzz/loops.py --count 1000` runs as many as one likes.
"""

from __future__ import annotations

import pytest
from tests.fuzz.loop_programs import made
from tests.fuzz.loops import outcomes, read_back


@pytest.mark.parametrize("seed", range(2000, 2006))
def test_a_program_is_what_python_computes(seed: int) -> None:
    program = made(seed)
    assert read_back(program).kind == "right"
    assert {one.kind for one in outcomes(program, "interpreter")} == {"right"}


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_a_compiled_program_is_what_python_computes(executor: str) -> None:
    assert {one.kind for one in outcomes(made(2003), executor)} == {"right"}
