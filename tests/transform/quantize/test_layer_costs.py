"""What layers cost: the side that integers are on, for a processor with dot products, one without, and a small one."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft.ir import Function
from weft.target import Target
from weft.transform.quantize.layer_costs import costs_of
from weft.transform.quantize.layers import plan_of, read_by_layers
from weft.transform.quantize.model_schemes import model_scheme


def two_layers(shape: tuple[int, ...], channels: int, groups: int) -> Function:
    """A convolution of so many channels, and one of 1x1 that reads its results."""
    text = f"""
@R.function
def main(x: R.Tensor((1, {channels}, 14, 14), "float32"), w: R.Tensor({shape}, "float32"),
         v: R.Tensor((64, {shape[0]}, 1, 1), "float32")):
    first = R.nn.conv2d(x, w, padding=1, groups={groups})
    last = R.nn.conv2d(R.nn.relu(first), v)
    return last
"""
    params = {"w": np.ones(shape, "float32"), "v": np.ones((64, shape[0], 1, 1), "float32")}
    module = weft.IRModule({"main": weft.parse(text)})  # type: ignore[dict-item]
    found = weft.transform.FoldConstant()(weft.transform.BindParams("main", params)(module))["main"]
    assert isinstance(found, Function)
    return found


@pytest.mark.parametrize(
    ("shape", "channels", "groups", "is_slower"),
    [((64, 64, 3, 3), 64, 1, False), ((64, 1, 3, 3), 64, 64, True), ((64, 16, 3, 3), 64, 4, True)],
)
def test_sums_over_channels_gain_and_groups_do_not(
    shape: tuple[int, ...], channels: int, groups: int, is_slower: bool
) -> None:
    function = two_layers(shape, channels, groups)
    layers = plan_of(function).layers
    assert {var.name for var in read_by_layers(function, layers)} == {"first"}
    for cpu in ("sapphirerapids", "skylake"):
        machine = Target(f"llvm -mcpu={cpu}").machine
        costs = costs_of(function, layers, {}, model_scheme("int8"), machine)
        assert costs["first"].is_slower == is_slower
        assert all(cost.float_ms > 0 and cost.int8_ms > 0 and not cost.is_measured for cost in costs.values())
    small = Target("llvm -mcpu=cortex-m4").machine
    assert costs_of(function, layers, {}, model_scheme("int8"), small) == {}
