"""Products that read images where they are: tiles prefetch what later panels read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import convolution, decided, expected, random

import weft

TARGET = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=1M"


@settings(max_examples=6, deadline=None)
@example((13, 10), 40, 24, True)  # columns that are no whole vectors
@example((16, 16), 16, 16, True)  # few steps: tiles look several panels ahead
@example((40, 31), 100, 60, False)  # several tiles of rows share a panel
@given(st.tuples(st.integers(8, 40), st.integers(16, 40)), st.integers(16, 100), st.integers(2, 60), st.booleans())
def test_convolutions_that_look_ahead_agree_with_numpy(
    size: tuple[int, int], k: int, channels: int, is_symbolic: bool
) -> None:
    x, w = random(3, k, *size), random(channels, k, 1, 1)
    want = expected(x, w, (1, 1), (0, 0), (1, 1))
    z = random(*want.shape)
    batch = '"n"' if is_symbolic else "3"
    module = convolution(
        ("n" if is_symbolic else 3, *x.shape[1:]), w.shape, "float32", "R.nn.relu(R.add({}, z))",
        f', z: R.Tensor(({batch}, {channels}, {size[0]}, {size[1]}), "float32")',
    )  # fmt: skip
    got = weft.compile(module, params={"w": w})["main"](x, z)
    np.testing.assert_allclose(got, np.maximum(want + z, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "looks_ahead"),
    [
        ((2, 72, 56, 56), (24, 72, 1, 1), True),
        ((2, 120, 28, 28), (40, 120, 1, 1), True),  # three tiles of rows
        ((2, 32, 112, 112), (16, 32, 1, 1), True),  # rows of whole vectors are one row all the same
        ((2, 24, 56, 56), (72, 24, 1, 1), False),  # results are more than what is read
        ((2, 64, 64, 64), (48, 64, 1, 1), False),  # rows that share sets of the first cache
        ((2, 480, 14, 14), (80, 480, 1, 1), False),  # a panel that no near cache holds for several tiles
    ],
)
def test_few_channels_look_ahead(x: tuple[int, ...], w: tuple[int, ...], looks_ahead: bool) -> None:
    lowered = weft.lower(convolution(x, w), TARGET, params={"w": random(*w)}, stop="schedule").script()
    reads = [line for line in lowered.splitlines() if "prefetch" in line and "data" in line]
    assert (("'form': 'direct'" in lowered or '"form": "direct"' in lowered) and bool(reads)) == looks_ahead


def test_the_last_panels_look_ahead_to_the_next_image() -> None:
    x, w = (2, 64, 16, 20), (24, 64, 1, 1)
    lowered = weft.lower(convolution(x, w), TARGET, params={"w": random(*w)}, stop="schedule").script()
    (line, *_) = [line for line in lowered.splitlines() if "prefetch" in line]
    assert "T.min(i0 + T.Select(" in line  # not beyond the last image


@pytest.mark.parametrize(
    ("x", "w", "form"),
    [
        ((1, 480, 14, 14), (80, 480, 1, 1), "direct"),  # panels of 32 channels would be half empty
        ((1, 960, 7, 7), (160, 960, 1, 1), "channels"),  # vectors of positions would be
        ((1, 24, 56, 56), (72, 24, 1, 1), "columns"),
        ((1, 16, 112, 112), (48, 16, 1, 1), "columns"),
    ],
)
def test_1x1_convolutions_take_the_form_that_costs_least(x: tuple[int, ...], w: tuple[int, ...], form: str) -> None:
    executable = weft.compile(convolution(x, w), TARGET, params={"w": random(*w)})
    assert decided(executable)["form"] == form
    np.testing.assert_allclose(
        executable["main"](random(*x)), expected(random(*x), random(*w), (1, 1), (0, 0), (1, 1)), rtol=1e-4, atol=1e-3
    )
