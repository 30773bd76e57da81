"""Windows of one element by columns: positions are copied, some at a time, for all rows of constant weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import convolution, decided, expected, random

import weft
from weft.ir import FrozenMap, PrimFunc, replace
from weft.transform.infra.decisions import DECISIONS, decisions_of

TARGET = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=1M"


@settings(max_examples=6, deadline=None)
@example((7, 7), (1, 1), 512, 40, False)  # lanes beyond the positions
@example((30, 31), (2, 3), 24, 57, True)  # rows that windows step over, a tile of channels that is not full
@example((56, 56), (1, 1), 16, 96, True)  # several blocks
@example((65, 31), (2, 2), 16, 40, False)  # blocks of 17 rows of 33, which have 11 in common
@given(
    st.tuples(st.integers(4, 40), st.integers(4, 40)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(2, 60),
    st.integers(28, 70),
    st.booleans(),
)
def test_windows_of_one_element_agree_with_numpy(
    size: tuple[int, int], strides: tuple[int, int], k: int, channels: int, is_symbolic: bool
) -> None:
    x, w = random(2, k, *size), random(channels, k, 1, 1)
    want = expected(x, w, strides, (0, 0), (1, 1))
    z, b = random(*want.shape), random(1, channels, 1, 1)
    batch = "n" if is_symbolic else 2
    shape = ", ".join(f'"{n}"' if isinstance(n, str) else str(n) for n in (batch, *want.shape[1:]))
    module = convolution(
        (batch, *x.shape[1:]), w.shape, "float32", "R.nn.relu(R.add(R.add({}, b), z))",
        f', b: R.Tensor((1, {channels}, 1, 1), "float32"), z: R.Tensor(({shape}), "float32")', strides=strides,
    )  # fmt: skip
    got = weft.compile(module, params={"w": w})["main"](x, b, z)
    np.testing.assert_allclose(got, np.maximum(want + b + z, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "strides", "values"),
    [
        ((1, 256, 56, 56), (64, 256, 1, 1), 1, {"form": "columns", "mr": "13", "mc": "448"}),
        ((1, 1024, 28, 28), (56, 1024, 1, 1), 1, {"form": "columns", "mr": "14", "mc": "128"}),
        ((1, 256, 56, 56), (512, 256, 1, 1), 2, {"form": "columns", "mr": "14", "mc": "392"}),  # 14 rows of 28
        ((1, 64, 1024), (96, 64, 1), 1, {"form": "columns", "mc": "512"}),
        ((1, 32, 8, 9, 10), (64, 32, 1, 1, 1), 1, {"form": "columns", "mc": "384"}),
    ],
)
def test_blocks_are_what_half_of_the_second_cache_holds(
    x: tuple[int, ...], w: tuple[int, ...], strides: int, values: dict[str, str]
) -> None:
    executable = weft.compile(convolution(x, w, strides=[strides] * (len(w) - 2)), TARGET, params={"w": random(*w)})
    found = decided(executable)
    assert {name: found[name] for name in values} == values
    steps, ones = [strides] * (len(w) - 2), [1] * (len(w) - 2)
    want = expected(random(*x), random(*w), steps, [0] * len(ones), ones)
    np.testing.assert_allclose(executable["main"](random(*x)), want, rtol=1e-4, atol=1e-3)


def test_lanes_beyond_the_positions_are_zeros() -> None:
    x, w = (1, 64, 20, 17), (128, 64, 1, 1)
    module = convolution(x, w)
    lowered = weft.lower(module, TARGET, params={"w": random(*w)}, stop="schedule").script()
    assert "near = T.alloc_buffer((64, 368)" in lowered  # 340 positions, 23 cache lines
    assert "near[p, T.Ramp(T.int64(336), T.int64(1), 16)] = T.Broadcast(T.float32(0.0), 16)" in lowered


def test_few_channels_and_windows_of_several_elements_take_other_forms() -> None:
    for x, w in (((1, 64, 20, 17), (16, 64, 1, 1)), ((1, 64, 20, 17), (64, 64, 3, 3))):
        executable = weft.compile(convolution(x, w), TARGET, params={"w": random(*w)})
        assert decided(executable)["form"] != "columns"


@pytest.mark.parametrize(
    ("kernel", "values", "why"),
    [
        (1, {"mc": 64, "mr": 7}, None),
        (1, {"mc": 341}, "mc=341 cannot be"),
        (3, {}, "they have several elements"),
    ],
)
def test_the_form_can_be_pinned(kernel: int, values: dict[str, object], why: str | None) -> None:
    w, x = random(32, 16, kernel, kernel), random(2, 16, 20, 17)
    fused = weft.lower(convolution(x.shape, w.shape), TARGET, params={"w": w}, stop="fuse")
    name, function = next((name, f) for name, f in fused.items() if isinstance(f, PrimFunc))
    record = FrozenMap({"about": "conv2d", "kind": "gemm", "form": "columns", **values})
    marked = replace(function, attrs=function.attrs.set(DECISIONS, (record,)))
    module = fused.with_functions({**fused.functions, name: marked})
    if why is not None:
        with pytest.raises(weft.PassError, match=why):
            weft.lower(module, TARGET, start="schedule", stop="schedule")
        return
    scheduled = weft.lower(module, TARGET, start="schedule", stop="schedule")
    found = [item for f in scheduled.functions.values() for item in decisions_of(f) if item.kind == "gemm"]
    assert {name: found[0].values[name] for name in values} == values
    got = weft.interpret(scheduled)["main"](x)
    np.testing.assert_allclose(got, expected(x, w, (1, 1), (0, 0), (1, 1)), rtol=1e-4, atol=1e-4)
