"""Convolutions of float16 and bfloat16: the forms of float32, whose sums are rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import WITHOUT_MATRICES, convolution, decided, random

import weft
from weft.dtypes import array_dtype
from weft.ir import walk
from weft.ir.tensor import AllocBuffer, Cast, For

TARGETS = ("llvm -vector-bits=512 -vector-registers=32 -masks=true", "llvm -vector-bits=256 -masks=false")
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def exact(
    x: np.ndarray,
    w: np.ndarray,
    strides: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> np.ndarray:
    """The sums in float64."""
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), *((p, p) for p in padding)))
    size = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilation[0], :: dilation[1]]
    n, c, height, width, *window = windows.shape
    parted = windows.reshape(n, groups, c // groups, height, width, *window)
    weights = w.astype("float64").reshape(groups, w.shape[0] // groups, *w.shape[1:])
    return np.einsum("ngcyxij,gocij->ngoyx", parted, weights, optimize=True).reshape(n, w.shape[0], height, width)


def tolerance(want: np.ndarray, terms: int, scale: np.ndarray, dtype: str) -> np.ndarray:
    """Half a unit in the last place of the result, and the roundings of float32 sums and of Winograd's transforms."""
    info = ml_dtypes.finfo(array_dtype(dtype))
    ulp = np.maximum(np.abs(want) * float(info.eps), float(info.smallest_subnormal))
    return ulp / 2 * 1.01 + (4 * terms + 72) * 2.0**-24 * scale


@settings(max_examples=3, deadline=None)
@example((14, 14), 64, 64, 1, (3, 3), (1, 1), (1, 1), (1, 1), "float16", True, TARGETS[0])  # Winograd
@example((7, 7), 48, 33, 1, (3, 3), (1, 1), (1, 1), (1, 1), "bfloat16", False, TARGETS[0])
@example((9, 14), 20, 33, 1, (3, 3), (2, 2), (1, 1), (1, 1), "float16", False, TARGETS[0])  # by channels
@example((14, 14), 12, 12, 12, (5, 5), (1, 1), (2, 2), (1, 1), "bfloat16", True, TARGETS[0])  # planes
@example((15, 37), 6, 6, 6, (3, 3), (2, 2), (0, 0), (1, 1), "float16", False, TARGETS[0])
@example((9, 9), 16, 16, 1, (3, 3), (1, 1), (1, 1), (1, 1), "bfloat16", False, TARGETS[1])
@given(
    st.tuples(st.integers(1, 20), st.integers(1, 20)),
    st.integers(1, 24),
    st.integers(1, 40),
    st.integers(1, 4),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    PAIRS,
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    PAIRS,
    st.sampled_from(["float16", "bfloat16"]),
    st.booleans(),
    st.sampled_from(TARGETS),
)
def test_convolutions_are_sums_that_are_rounded_once(
    size: tuple[int, int],
    terms: int,
    channels: int,
    groups: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    dtype: str,
    is_symbolic: bool,
    target: str,
) -> None:
    if any(n + 2 * p < (k - 1) * d + 1 for n, k, p, d in zip(size, kernel, padding, dilation, strict=True)):
        return
    terms, channels = (-(-count // groups) * groups for count in (terms, channels))
    kind = array_dtype(dtype)
    x, w = (random(*shape).astype(kind) for shape in ((2, terms, *size), (channels, terms // groups, *kernel)))
    module = convolution(
        ("n" if is_symbolic else 2, *x.shape[1:]), w.shape, dtype,
        strides=strides, padding=padding, dilation=dilation, groups=groups,
    )  # fmt: skip
    got = weft.compile(module, target, params={"w": w})["main"](x).astype("float64")
    want = exact(x, w, strides, padding, dilation, groups)
    scale = exact(abs(x), abs(w), strides, padding, dilation, groups)
    assert (np.abs(got - want) <= tolerance(want, terms * w[0, 0].size, scale * 8, dtype)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("x", "w", "groups", "form"),
    [
        ((1, 32, 28, 28), (32, 32, 3, 3), 1, "winograd4"),
        ((1, 32, 14, 14), (32, 32, 5, 5), 1, "channels"),
        ((1, 32, 28, 28), (32, 1, 3, 3), 32, "planes"),
    ],
)
def test_windows_have_the_forms_of_float32(
    x: tuple[int, ...], w: tuple[int, ...], groups: int, form: str, dtype: str
) -> None:
    module = convolution(x, w, dtype, padding=w[-1] // 2, groups=groups)
    target = TARGETS[0] + WITHOUT_MATRICES
    executable = weft.compile(module, target, params={"w": random(*w).astype(array_dtype(dtype))})
    assert decided(executable)["form"] == form


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_elements_and_weights_are_converted_before_products(dtype: str) -> None:
    """Each element once, where it is copied, and weights when the module is compiled."""
    weights = random(32, 16, 5, 5).astype(array_dtype(dtype))
    module = convolution((1, 16, 14, 14), weights.shape, dtype, padding=2)
    lowered = weft.lower(module, TARGETS[0] + WITHOUT_MATRICES, params={"w": weights}, stop="schedule")
    nodes = [node for function in lowered.functions.values() for node in walk(function)]
    assert {node.buffer.dtype for node in nodes if isinstance(node, AllocBuffer)} == {"float32"}
    loops = [node for node in nodes if isinstance(node, For) and node.loop_var.name == "p"]
    assert loops
    assert not any(isinstance(node, Cast) and node.dtype.startswith("float32") for loop in loops for node in walk(loop))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 65504.0])
def test_what_is_not_finite_or_large_is_multiplied_as_it_is(value: float) -> None:
    x, w = (random(*shape, dtype="float16") for shape in ((1, 32, 14, 14), (32, 32, 3, 3)))
    x[0, 3, 6, 7] = value
    module = convolution(x.shape, w.shape, "float16", padding=1)
    executable = weft.compile(module, TARGETS[0], params={"w": w})
    assert decided(executable)["form"].startswith("winograd")
    with np.errstate(over="ignore", invalid="ignore"):
        want = exact(x, w, (1, 1), (1, 1), (1, 1), 1).astype("float16")
    near = 2e-2 if not np.isfinite(value) else value * 2.0**-15  # a large element counts in its whole tile
    np.testing.assert_allclose(executable["main"](x), want, rtol=2e-3, atol=near)
