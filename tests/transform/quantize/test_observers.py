"""Observers: the intervals of values against NumPy, however the values come in batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.transform.quantize.model_schemes import model_scheme
from weft.transform.quantize.observers import EntropyObserver, MinMaxObserver, Observer, PercentileObserver

OBSERVERS = (MinMaxObserver, PercentileObserver, EntropyObserver)


def seen(observer: Observer, *batches: np.ndarray) -> tuple[float, float]:
    for batch in batches:
        observer.observe(batch)
    return observer.interval()


@given(st.lists(st.lists(st.floats(-(2.0**40), 2.0**40, width=32), max_size=9), min_size=1, max_size=4))
def test_min_max_is_that_of_numpy(batches: list[list[float]]) -> None:
    arrays = [np.array(batch, "float32") for batch in batches]
    every = np.concatenate(arrays)
    expected = (float(every.min()), float(every.max())) if every.size else (0.0, 0.0)
    assert seen(MinMaxObserver(), *arrays) == expected


@pytest.mark.parametrize("percentile", [90.0, 99.0, 99.9, 100.0])
def test_percentiles_are_those_of_numpy_up_to_a_bin(percentile: float) -> None:
    generator = np.random.default_rng(0)
    batches = [generator.normal(size=20000).astype("float32") * scale + 0.3 for scale in (0.1, 1, 3)]
    every = np.concatenate(batches)
    low, high = seen(PercentileObserver(percentile), *batches)
    tail = (100 - percentile) / 2
    step = 4 * float(np.abs(every).max()) / PercentileObserver.bins
    for end, place in ((low, tail), (high, 100 - tail)):
        least, most = (float(np.percentile(every, place, method=method)) for method in ("lower", "higher"))
        assert least - step <= end <= most + step


def test_entropy_leaves_out_what_is_rare_and_far() -> None:
    generator = np.random.default_rng(0)
    values = generator.normal(size=50000).astype("float32")
    low, high = seen(EntropyObserver(), values, np.array([60.0], "float32"))
    assert -60 < low < -2
    assert 2 < high < 12


def divergence(sizes: np.ndarray, end: int, steps: int) -> float:
    """The divergence of a histogram up to a bin from itself in steps, one step after the other."""
    seen_ = sizes[:end].astype("float64")
    seen_[-1] += sizes[end:].sum()
    spread = np.zeros(end)
    for step in range(steps):
        inside = [i for i in range(end) if i * steps // end == step]
        filled = [i for i in inside if sizes[i]]
        for i in filled:
            spread[i] = sizes[inside].sum() / len(filled)
    p, q = seen_ / seen_.sum(), spread / spread.sum()
    return float(sum(a * np.log(a / max(b, 1e-12)) for a, b in zip(p, q, strict=True) if a > 0))


def test_entropy_is_the_interval_of_the_least_divergence() -> None:
    values = np.random.default_rng(1).laplace(size=4000).astype("float32")
    observer = EntropyObserver()
    low, high = seen(observer, values)
    half = observer.bins // 2
    sizes = (observer.counts[half:] + observer.counts[:half][::-1]).astype("float64")
    sizes[0] = sizes[1]
    chosen = round(max(-low, high) / observer.reach * half)
    ends = [end for end in (chosen - 64, chosen, chosen + 64) if 128 <= end <= half]
    assert min(ends, key=lambda end: divergence(sizes, end, 128)) == chosen


@pytest.mark.parametrize("kind", OBSERVERS)
def test_values_that_are_no_numbers_are_not_counted(kind: type[Observer]) -> None:
    observer = kind()
    assert observer.is_empty
    low, high = seen(observer, np.array([np.nan, 1.0, -2.0, np.inf], "float32"), np.zeros((0, 3), "float32"))
    assert not observer.is_finite
    assert -2 <= low < -1.9
    assert 0.9 < high <= 2.0
    assert seen(kind(), np.zeros(5, "float32")) == (0.0, 0.0)


@pytest.mark.parametrize("kind", [PercentileObserver, EntropyObserver])
def test_larger_batches_double_the_histogram(kind: type[Observer]) -> None:
    small, large = np.full(100, 0.25, "float32"), np.full(3, 100.0, "float32")
    first, second = kind(), kind()
    seen(first, small, large)
    seen(second, np.concatenate([small, large]))
    assert first.counts.sum() == second.counts.sum() == 103  # type: ignore[attr-defined]
    assert first.interval()[1] <= 100.0


@pytest.mark.parametrize("axis", [0, 1])
def test_weights_are_the_nearest_integers_by_channel(axis: int) -> None:
    values = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
    values[2, :], values[:, 3] = 0, 0
    codes, grid = model_scheme("int8").weights(values, axis)
    spread = grid.scale.reshape((-1, 1) if axis == 0 else (1, -1))
    assert np.abs(codes * spread - values).max() <= spread.max() / 2 + 1e-6
    assert np.abs(codes).max() == 127
    whole, one = model_scheme("int8-tensor").weights(values, axis)
    assert one.scale.shape == ()
    assert np.abs(whole * one.scale - values).max() <= one.scale / 2 + 1e-6


@given(st.floats(-100, 100), st.floats(-100, 100), st.booleans())
def test_activations_cover_the_interval_and_zero_is_exact(a: float, b: float, symmetric: bool) -> None:
    low, high = min(a, b), max(a, b)
    grid = model_scheme("int8-symmetric" if symmetric else "int8").activations(low, high)
    least, most = ((q - grid.zero) * float(grid.scale) for q in (-128, 127))
    assert least <= min(low, 0) + 0.51 * grid.scale
    assert most >= max(high, 0) - 0.51 * grid.scale
    assert not symmetric or grid.zero == 0
