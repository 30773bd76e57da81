"""Planes: depthwise convolutions, each of whose results has a plane of the input to itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import convolution, decided, expected, random

import weft
from weft.ir import walk
from weft.ir.tensor import AllocBuffer

TARGET = "llvm -vector-bits=512 -vector-registers=32 -masks=true"
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@settings(max_examples=6, deadline=None)
@example((14, 14), (5, 5), (1, 1), (2, 2), (1, 1), "float32", True, True)
@example((15, 37), (3, 3), (2, 2), (1, 1), (1, 1), "float64", False, True)
@example((15, 37), (3, 3), (1, 1), (1, 1), (1, 1), "float32", True, False)
@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.tuples(st.integers(1, 5), st.integers(1, 5)), PAIRS, PAIRS, PAIRS, st.sampled_from(["float32", "float64"]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_depthwise_convolutions_agree_with_numpy(
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    dtype: str,
    is_symbolic: bool,
    adds: bool,
) -> None:
    """What is added to results is read where they are; other short arithmetic is done to sums in registers."""
    if any(n + 2 * p < (k - 1) * d + 1 for n, k, p, d in zip(size, kernel, padding, dilation, strict=True)):
        return
    x, w = random(2, 6, *size, dtype=dtype), random(6, 1, *kernel, dtype=dtype)
    want = expected(x, w, strides, padding, dilation)
    z, b = random(*want.shape, dtype=dtype), random(1, 6, 1, 1, dtype=dtype)
    batch = "n" if is_symbolic else 2
    shape = ", ".join(f'"{n}"' if isinstance(n, str) else str(n) for n in (batch, *want.shape[1:]))
    module = convolution(
        (batch, *x.shape[1:]), w.shape, dtype,
        "R.nn.relu(R.add(R.add({}, b), z))" if adds else "R.clip(R.add({}, b), 0.0, 1.5)",
        f', b: R.Tensor((1, 6, 1, 1), "{dtype}"), z: R.Tensor(({shape}), "{dtype}")',
        strides=strides, padding=padding, dilation=dilation, groups=6,
    )  # fmt: skip
    got = weft.compile(module, params={"w": w})["main"](x, b, z)
    want = np.maximum(want + b + z, 0) if adds else np.clip(want + b, 0, 1.5)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "strides", "form"),
    [
        ((1, 8, 9, 9), (8, 1, 3, 3), 1, {"form": "planes", "mr": "7", "nr_vectors": "1", "lanes": "8"}),
        ((1, 8, 58, 58), (8, 1, 3, 3), 2, {"form": "planes", "mr": "7", "nr_vectors": "1"}),
        ((1, 8, 58, 58), (8, 1, 3, 3), 1, {"form": "planes", "mr": "14", "nr_vectors": "1"}),
        ((1, 8, 9), (8, 1, 3), 1, {"form": "planes", "mr": "1"}),
        ((1, 8, 9, 300), (8, 1, 3, 3), 1, {"form": "planes", "mr": "7"}),  # a row has more sums than registers
        ((1, 8, 5, 9, 21), (8, 1, 2, 3, 3), 1, {"form": "planes", "mr": "7", "nr_vectors": "1"}),
        ((1, 8, 30, 30), (8, 1, 7, 7), 3, {"form": "planes", "mr": "4"}),
        ((1, 8, 9, 9), (16, 1, 3, 3), 1, {"form": "planes"}),  # two results share a plane
    ],
)
def test_tiles_hold_their_input(x: tuple[int, ...], w: tuple[int, ...], strides: int, form: dict[str, str]) -> None:
    module = convolution(x, w, groups=8, strides=strides)
    executable = weft.compile(module, TARGET)
    found = decided(executable)
    assert {name: found[name] for name in form} == form
    lowered = weft.lower(module, TARGET, stop="schedule")  # nothing is read that is not there
    np.testing.assert_allclose(
        weft.interpret(lowered)["main"](random(*x), random(*w)),
        weft.interpret(module)["main"](random(*x), random(*w)),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("size", "channels", "strides", "planes", "after"),
    [
        (30, 2, 1, "in place", "{}"),
        (30, 2, 2, "copied", "R.nn.silu({})"),
        (30, 2, 3, "copied", "R.nn.relu(R.add({}, R.const(1.0)))"),
        (9, 3, 1, "in place", "{}"),
        (9, 3, 2, None, "{}"),
        (9, 10, 2, "copied", "{}"),  # ten small ones at once
        (9, 4, 2, "copied", "R.nn.silu({})"),
    ],
)
def test_planes_are_padded_where_they_are_read(
    size: int, channels: int, strides: int, planes: str | None, after: str
) -> None:
    x, w = random(1 if size > 9 else 2, channels, size, size), random(channels, 1, 5, 5)
    module = convolution(x.shape, w.shape, after=after, groups=channels, padding=2, strides=strides)
    executable = weft.compile(module, TARGET)
    assert decided(executable).get("planes") == planes
    assert ("padded:" in executable.explain()) == (planes is None)  # no nest of its own is left
    lowered = weft.lower(module, TARGET, stop="schedule")
    want = weft.interpret(module)["main"](x, w)
    np.testing.assert_allclose(weft.interpret(lowered)["main"](x, w), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(executable["main"](x, w), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("strides", "dilation", "height", "kilobytes"), [(2, 1, 58, 5), (3, 2, 62, 6)])
def test_large_planes_are_padded_in_strips(strides: int, dilation: int, height: int, kilobytes: int) -> None:
    """A part that rows of results read fits on the stack, of the last rows as well."""
    x, w = random(1, 2, height, 30), random(2, 1, 3, 3)
    module = convolution(x.shape, w.shape, groups=2, padding=2, strides=strides, dilation=dilation)
    small = f"{TARGET} -stack-bytes={kilobytes}K"
    lowered = weft.lower(module, small, stop="schedule")
    parts = [part for _, function in lowered.items() for part in walk(function) if isinstance(part, AllocBuffer)]
    shapes = [part.buffer.shape for part in parts if part.buffer.name == "plane"]
    assert len(shapes) > 1 or "for strip" in lowered.script()
    for shape in shapes:
        assert math.prod(n for n in shape if isinstance(n, int)) * 4 <= kilobytes << 10
    want = expected(x, w, [strides] * 2, [2] * 2, [dilation] * 2)
    np.testing.assert_allclose(weft.interpret(lowered)["main"](x, w), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weft.compile(module, small)["main"](x, w), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("after", "in_memory"),
    [("R.nn.relu({})", False), ("R.multiply({0}, R.nn.hardsigmoid({0}))", False), ("R.nn.silu({})", True)],
)
def test_short_arithmetic_is_done_to_sums_in_registers(after: str, in_memory: bool) -> None:
    module = convolution((2, 8, 20, 20), (8, 1, 3, 3), "float32", after, padding=(1, 1), groups=8)
    lowered = weft.lower(module, TARGET, stop="schedule", params={"w": random(8, 1, 3, 3)})
    allocated = [
        node.buffer.name for f in lowered.functions.values() for node in walk(f) if isinstance(node, AllocBuffer)
    ]
    assert ("sums" in allocated) is in_memory
    assert "accumulators" in allocated


def test_machines_without_masks_keep_other_forms() -> None:
    module = convolution((1, 8, 9, 9), (8, 1, 3, 3), groups=8)
    assert decided(weft.compile(module, "llvm -vector-bits=256 -masks=false"))["form"] == "direct"
