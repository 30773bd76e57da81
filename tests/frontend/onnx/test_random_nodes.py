"""A few random nodes of ONNX; `python -m tests.frontend.onnx.random_nodes` tries as many as are asked for."""

from __future__ import annotations

import pytest
from tests.frontend.onnx.random_nodes import status


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [range(20), range(20, 40)], ids=str)
def test_random_nodes_are_what_onnx_says(seeds: range) -> None:
    found = {seed: status(seed) for seed in seeds}
    assert {
        seed: told for seed, told in found.items() if told[0] not in ("right", "python", "disputed", "invalid")
    } == {}
    assert sum(told[0] == "right" for told in found.values()) >= 8
