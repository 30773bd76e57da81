"""Random modules of graph functions, kernels and library calls: compiled, they agree with the interpreter.

D10: high-level operators, call_tir, call_dps_packed and effectful calls mixed.
"""

from __future__ import annotations

import pytest

import weft
from weft.testing.meaning import compare_random, random_module, register_library, runner


@pytest.mark.parametrize("seed", range(80))
def test_compiled_modules_agree_with_the_interpreter(seed: int) -> None:
    """D10."""
    register_library()
    module = random_module(seed)
    if not compare_random(module, runner(weft.compile(module, opt=seed % 4)), seed):
        pytest.skip("the module has no value at any of the sizes tried")
