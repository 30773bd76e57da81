"""Operators with many attributes, at random attributes and sizes: the loops are what the NumPy reference says."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.op.running import apply, reference

from weft.ir.op.nn.layouts import read_layout

LIGHT = settings(max_examples=25, deadline=None)
small = st.integers(1, 3)


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype("float32")


def agree(name: str, *arrays: Any, symbolic: bool, **attrs: Any) -> None:
    got, want = apply(name, *arrays, symbolic=symbolic, **attrs), reference(name, *arrays, **attrs)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def ordered(text: str, sizes: dict[str, int]) -> tuple[Any, ...]:
    layout = read_layout(text)
    assert layout is not None
    return layout.dims(sizes)


@st.composite
def layouts(draw: Any, sizes: dict[str, int]) -> str:
    """An order of the letters, with axes that are not spatial in blocks of a divisor of their size, or whole."""
    axes = list(sizes)
    for letter, size in sizes.items():
        blocks = [block for block in (1, 2, 3) if size % block == 0]
        if letter in "NCOI" and draw(st.booleans()):
            axes.append(f"{draw(st.sampled_from(blocks))}{letter.lower()}")
    return "".join(draw(st.permutations(axes)))


@st.composite
def windows(draw: Any, count: int) -> dict[str, Any]:
    """Strides, dilation and padding, in any of the forms that they may have."""
    pads = st.integers(0, 2)
    sides = draw(st.sampled_from([1, count, 2 * count]))
    return {
        "strides": draw(st.lists(small, min_size=count, max_size=count)),
        "dilation": draw(st.one_of(st.integers(1, 2), st.lists(st.integers(1, 2), min_size=count, max_size=count))),
        "padding": draw(st.lists(pads, min_size=sides, max_size=sides)),
    }


@LIGHT
@given(data=st.data(), count=st.sampled_from([1, 2]), symbolic=st.booleans())
def test_convolutions(data: st.DataObject, count: int, symbolic: bool) -> None:
    spatial = "HW"[-count:]
    groups, per_group, filters = data.draw(small), data.draw(small), data.draw(small)
    sizes = {"N": data.draw(st.integers(0, 2)), "C": groups * per_group}
    sizes |= {letter: data.draw(st.integers(5, 8)) for letter in spatial}
    kernel = {"O": groups * filters, "I": per_group} | {letter: data.draw(small) for letter in spatial}
    layout, kernel_layout = data.draw(layouts(sizes)), data.draw(layouts(kernel))
    out_layout = data.draw(layouts({"N": sizes["N"], "C": kernel["O"]} | dict.fromkeys(spatial, 1)))
    agree(
        f"nn.conv{count}d",
        array(*ordered(layout, sizes)),
        array(*ordered(kernel_layout, kernel), seed=1),
        symbolic=symbolic,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        **data.draw(windows(count)),
    )


@LIGHT
@given(data=st.data(), symbolic=st.booleans())
def test_transposed_convolutions(data: st.DataObject, symbolic: bool) -> None:
    groups, per_group, filters = data.draw(small), data.draw(small), data.draw(small)
    window: dict[str, Any] = {**data.draw(windows(1)), "padding": data.draw(st.integers(0, 1))}
    stride = window["strides"][0]
    sizes = {"N": data.draw(st.integers(0, 2)), "C": groups * per_group, "W": data.draw(st.integers(3, 5))}
    kernel = {"I": groups * per_group, "O": filters, "W": data.draw(small)}
    layout, kernel_layout = data.draw(layouts(sizes)), data.draw(layouts(kernel))
    agree(
        "nn.conv1d_transpose",
        array(*ordered(layout, sizes)),
        array(*ordered(kernel_layout, kernel), seed=1),
        symbolic=symbolic,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        out_layout=data.draw(layouts({"N": sizes["N"], "C": filters * groups, "W": 1})),
        output_padding=data.draw(st.integers(0, stride - 1)),
        **window,
    )


@LIGHT
@given(
    data=st.data(),
    name=st.sampled_from(["nn.max_pool2d", "nn.avg_pool2d"]),
    ceil_mode=st.booleans(),
    count_include_pad=st.booleans(),
    symbolic=st.booleans(),
)
def test_pools(data: st.DataObject, name: str, ceil_mode: bool, count_include_pad: bool, symbolic: bool) -> None:
    sizes = {"N": data.draw(st.integers(0, 2)), "C": 2, "H": data.draw(st.integers(5, 8)), "W": 5}
    layout, out_layout = data.draw(layouts(sizes)), data.draw(layouts(sizes))
    agree(
        name,
        array(*ordered(layout, sizes)),
        symbolic=symbolic,
        pool_size=data.draw(st.lists(small, min_size=2, max_size=2)),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
        **data.draw(windows(2)),
    )


@LIGHT
@given(data=st.data(), height=st.integers(1, 9), width=st.integers(1, 9), symbolic=st.booleans())
def test_adaptive_pools(data: st.DataObject, height: int, width: int, symbolic: bool) -> None:
    wanted = data.draw(st.lists(st.integers(1, 10), min_size=2, max_size=2))
    agree("nn.adaptive_avg_pool2d", array(1, 2, height, width), symbolic=symbolic, output_size=wanted)


@LIGHT
@given(data=st.data(), mode=st.sampled_from(["constant", "reflect", "replicate", "circular"]), symbolic=st.booleans())
def test_padding(data: st.DataObject, mode: str, symbolic: bool) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    most = {"constant": [3] * len(shape), "replicate": [3] * len(shape), "circular": shape}
    limits = most.get(mode, [size - 1 for size in shape])
    widths = [data.draw(st.integers(0, limit)) for limit in limits for _ in range(2)]
    agree("nn.pad", array(*shape), symbolic=symbolic, pad_width=widths, pad_mode=mode, pad_value=0.5)


@LIGHT
@given(
    data=st.data(),
    name=st.sampled_from(["sum", "prod", "max", "min", "mean", "variance", "std", "median"]),
    keepdims=st.booleans(),
    symbolic=st.booleans(),
)
def test_reductions(data: st.DataObject, name: str, keepdims: bool, symbolic: bool) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axes = data.draw(st.none() | st.lists(st.sampled_from(range(len(shape))), unique=True, max_size=len(shape)))
    axes = axes and [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    agree(name, array(*shape), symbolic=symbolic, axis=axes, keepdims=keepdims)


@LIGHT
@given(data=st.data(), name=st.sampled_from(["cumsum", "cumprod"]), exclusive=st.booleans(), symbolic=st.booleans())
def test_running_sums(data: st.DataObject, name: str, exclusive: bool, symbolic: bool) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    agree(name, array(*shape), symbolic=symbolic, axis=axis, exclusive=exclusive)


@LIGHT
@given(data=st.data(), name=st.sampled_from(["argmax", "argmin"]), symbolic=st.booleans())
def test_positions_of_extremes_with_many_equal_values(data: st.DataObject, name: str, symbolic: bool) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).choice([0, 1, np.nan], shape, p=[0.5, 0.4, 0.1])
    agree(name, values.astype("float32"), symbolic=symbolic, axis=axis, keepdims=data.draw(st.booleans()))


@LIGHT
@given(
    mask=st.sampled_from([None, "TopLeft", "BottomRight"]),
    window=st.none() | st.integers(1, 3),
    queries=st.integers(0, 4),
    keys=st.integers(0, 4),
    shared=st.sampled_from((1, 2)),
    symbolic=st.booleans(),
)
def test_attention(mask: str | None, window: int | None, queries: int, keys: int, shared: int, symbolic: bool) -> None:
    shared = 2 if symbolic else shared
    q, k, v = array(2, queries, 2, 3), array(2, keys, shared, 3, seed=1), array(2, keys, shared, 4, seed=2)
    bias = array(1, 2, queries, 1, seed=3) if not symbolic else None
    window = window if mask else None
    agree("nn.attention", q, k, v, bias, symbolic=symbolic, causal_mask=mask, window_size=window)
