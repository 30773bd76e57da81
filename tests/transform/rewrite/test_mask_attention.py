"""A bias that hides keys by position becomes a causal mask or a window, one that is nearly so stays a bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Call, Function, Op
from weft.ir.structure.visit import walk
from weft.testing import assert_same_meaning

RANGES = """
i = R.reshape(R.arange(0, s), (1, 1, s, 1))
j = R.reshape(R.arange(0, t), (1, 1, 1, t))
last = R.add(i, R.full((), t - s, "int64"))
zero = R.const(0.0, "float32")
low = R.const(float("-inf"), "float32")
"""
LOWEST = float(np.finfo("float32").min)


def attention(bias: str, rows: str = "s", keys: str = "t") -> weft.IRModule:
    lines = "\n".join(f"    {line}" for line in f"{RANGES}bias = {bias}".strip().splitlines())
    text = f"""@R.function
def main(
    q: R.Tensor((2, "{rows}", 2, 4), "float32"),
    k: R.Tensor((2, "{keys}", 2, 4), "float32"),
    v: R.Tensor((2, "{keys}", 2, 4), "float32"),
    given: R.Tensor((2, "{keys}"), "int64"),
):
{lines}
    out = R.nn.attention(q, k, v, bias, scale=0.5)
    return out"""
    text = (
        text.replace("s, 1)", f"{rows}, 1)").replace("arange(0, s)", f"arange(0, {rows})").replace("- s", f"- {rows}")
    )
    text = (
        text.replace("1, t)", f"1, {keys})").replace("arange(0, t)", f"arange(0, {keys})").replace("t -", f"{keys} -")
    )
    made = weft.parse(text)
    return weft.IRModule({"main": made})  # type: ignore[dict-item]


def found(module: weft.IRModule) -> tuple[int, dict[str, Any]]:
    """The operands and the attributes of the attention."""
    main = module["main"]
    assert isinstance(main, Function)
    calls = [node for node in walk(main) if isinstance(node, Call) and isinstance(node.op, Op)]
    (call,) = (node for node in calls if isinstance(node.op, Op) and node.op.name == "nn.attention")
    return len(call.args), {name: value for name, value in call.attrs.items() if name != "scale"}


INFINITE = float("-inf")
CAUSAL = (
    ("R.where(R.less_equal(j, i), zero, low)", "TopLeft", None, INFINITE),
    ("R.where(R.greater(j, i), low, zero)", "TopLeft", None, INFINITE),
    ("R.where(R.less_equal(j, last), zero, low)", "BottomRight", None, INFINITE),
    (f"R.where(R.less_equal(j, i), zero, R.const({LOWEST}, 'float32'))", "TopLeft", None, LOWEST),
    ("R.triu(R.full((1, 1, s, t), float('-inf'), 'float32'), 1)", "TopLeft", None, INFINITE),
    ("R.where(R.tril(R.full((1, 1, s, t), True, 'bool')), zero, low)", "TopLeft", None, INFINITE),
    (
        "R.where(R.logical_and(R.less_equal(j, i), R.greater(j, R.subtract(i, R.const(3, 'int64')))), zero, low)",
        "TopLeft",
        3,
        INFINITE,
    ),
    ("R.broadcast_to(R.where(R.less_equal(j, i), zero, low), (2, 2, s, t))", "TopLeft", None, INFINITE),
)


@pytest.mark.parametrize(("bias", "mask", "window", "masked"), CAUSAL)
def test_masks_of_positions_are_attributes(bias: str, mask: str, window: int | None, masked: float) -> None:
    before = attention(bias)
    after = weft.transform.MaskAttention()(before)
    operands, attributes = found(after)
    wanted = {"causal_mask": mask, "masked_bias": masked}
    assert operands == 3
    assert attributes == (wanted if window is None else {**wanted, "window_size": window})
    assert_same_meaning(before, after)


@pytest.mark.parametrize(
    "bias",
    [
        "R.where(R.less(j, i), zero, low)",  # a query does not see its own key
        "R.where(R.less_equal(j, R.add(i, R.const(1, 'int64'))), zero, low)",
        "R.where(R.less_equal(i, j), zero, low)",  # the other way round
        "R.where(R.less_equal(j, i), low, zero)",
        "R.where(R.less_equal(j, i), R.const(1.0, 'float32'), low)",
        "R.where(R.less_equal(j, R.add(i, i)), zero, low)",
        "R.where(R.logical_and(R.less_equal(j, i), R.not_equal(j, R.const(2, 'int64'))), zero, low)",
        "R.where(R.logical_or(R.less_equal(j, i), R.equal(j, R.const(3, 'int64'))), zero, low)",
        "R.where(R.less_equal(j, R.subtract(last, R.const(1, 'int64'))), zero, low)",
        "R.where(R.logical_and(R.less_equal(j, i), R.greater(j, last)), zero, low)",
        "R.where(R.less_equal(R.reshape(given, (2, 1, 1, t)), i), zero, low)",
    ],
)
def test_masks_that_are_nearly_causal_stay(bias: str) -> None:
    before = attention(bias)
    after = weft.transform.MaskAttention()(before)
    assert found(after) == (4, {})


def test_a_mask_that_lets_everything_through_goes() -> None:
    before = attention("R.where(R.greater_equal(R.add(i, j), R.const(0, 'int64')), zero, low)")
    after = weft.transform.MaskAttention()(before)
    assert found(after) == (3, {})
    assert_same_meaning(before, after)


@pytest.mark.parametrize("change", [None, (5, 6, 1), (6, 5, 0)])
def test_constants_are_masks_if_all_of_their_elements_are(change: tuple[int, int, int] | None) -> None:
    mask = np.tri(8, 8, dtype=bool)
    if change is not None:
        mask[change[0], change[1]] = change[2]
    before = attention(f"R.where(R.const({[[mask.tolist()]]}, 'bool'), zero, low)", "8", "8")
    after = weft.transform.MaskAttention()(before)
    assert found(after)[0] == (3 if change is None else 4)


def test_results_of_masks_are_those_of_the_bias() -> None:
    """For several lengths, with hidden values that are not finite."""
    module = attention("R.where(R.less_equal(j, i), zero, low)")
    main = weft.compile(module)["main"]
    formula = weft.interpret(module)["main"]
    for rows, keys, value in ((7, 7, 0.0), (40, 40, np.nan), (20, 30, 0.0)):
        rng = np.random.default_rng(rows)
        q, k, v = (rng.standard_normal((2, size, 2, 4)).astype("float32") for size in (rows, keys, keys))
        k[0, -1, 0, 0] += np.float32(value)
        given = np.zeros((2, keys), "int64")
        np.testing.assert_allclose(main(q, k, v, given), formula(q, k, v, given), rtol=1e-4, atol=1e-5)
