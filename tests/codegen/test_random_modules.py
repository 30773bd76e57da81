"""Random modules of graph functions, kernels and library calls: compiled, they agree with the interpreter.

D10: high-level operators, call_tir, call_dps_packed and effectful calls mixed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import weft
from weft.runtime import register_func, unregister_func
from weft.testing import graphs
from weft.testing.checks import assert_agree, interpreted, nudged, precision, run_main
from weft.testing.strategies import generate
from weft.transform.infra.generators.arguments import copied


@pytest.fixture(autouse=True, scope="module")
def library() -> Iterator[None]:
    """The external functions that generated modules call."""
    for name, function in graphs.EXTERN.items():
        register_func(name, function)
    yield
    for name in graphs.EXTERN:
        unregister_func(name)


@pytest.mark.parametrize("seed", range(80))
def test_compiled_modules_agree_with_the_interpreter(seed: int) -> None:
    """D10."""
    module = generate(seed)
    compiled = weft.compile(module, opt=seed % 4)["main"]
    arguments, want = interpreted(module, seed)
    if want is None:
        pytest.skip("the module has no value at any of the sizes tried")
    got = compiled(*copied(arguments))
    other, moved = nudged(module, arguments)
    assert_agree(want, got, run_main(other, moved), precision(module))
