"""Winograd convolutions: windows of 3x3 over constant weights with fewer products."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import convolution, decided, expected, random

import weft
from weft.codegen.backends.llvm.kernel.explicit import is_explicit
from weft.ir import FrozenMap, IRModule, PrimFunc, replace, walk
from weft.ir.tensor import PREFETCH, AttrStmt, BufferLoad
from weft.transform.autoschedule.gemm.convolutions.toom_cook import Matrix, transform_of
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.decisions import DECISIONS, decisions_of
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

WIDE, NARROW = "llvm -vector-bits=512 -vector-registers=32", "llvm -vector-bits=128 -masks=false"
ONE = (1, 1)
SIZES = st.tuples(st.integers(1, 12), st.integers(1, 24))
UNIT = 2.0**-24


def pinned(module: IRModule, target: str, values: dict[str, object], **options: Any) -> IRModule:
    """The module before its loops are arranged, with something decided about its convolution."""
    fused = weft.lower(module, target, stop="fuse", **options)
    name, function = next((name, f) for name, f in fused.items() if isinstance(f, PrimFunc))
    record = FrozenMap({"about": "conv2d", "kind": "gemm", **values})
    marked = replace(function, attrs=function.attrs.set(DECISIONS, (record,)))
    return fused.with_functions({**fused.functions, name: marked})


def compiled(module: IRModule, target: str, values: dict[str, object], **options: Any) -> weft.Executable:
    return weft.compile(pinned(module, target, values, **options), target, start="schedule")


def form_of(module: IRModule, target: str, **options: Any) -> object:
    lowered = weft.lower(module, target, stop="schedule", **options)
    (record,) = [item for f in lowered.functions.values() for item in decisions_of(f) if item.kind == "gemm"]
    return record.values["form"]


@pytest.mark.parametrize("m", [2, 4])
def test_transforms_are_convolutions_in_real_arithmetic(m: int) -> None:
    transform = transform_of(m)

    def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]

    inputs, weights = (
        [Fraction(3 * k * k - 7, k + 1) for k in range(m + 2)],
        [Fraction(5), Fraction(-2, 3), Fraction(7)],
    )
    products = [a * b for a, b in zip(times(transform.inputs, inputs), times(transform.weights, weights), strict=True)]
    want = [sum(inputs[i + k] * weights[k] for k in range(3)) for i in range(m)]
    assert times(transform.results, products) == want
    exact = [x for row in (*transform.inputs, *transform.results) for x in row]
    assert all(Fraction(float(np.float32(x))) == x for x in exact)  # what runs in float32 has no factor rounded


@settings(max_examples=4, deadline=None)
@example((7, 7), (1, 1), "winograd2", WIDE, 70, 130, True)
@example((14, 30), (1, 1), "winograd4", WIDE, 64, 40, False)
@example((2, 4), (1, 1), "winograd2", WIDE, 16, 1, False)
@example((2, 9), (1, 1), "winograd4", WIDE, 33, 3, True)
@example((9, 5), (0, 2), "winograd2", NARROW, 24, 5, True)
@given(
    SIZES,
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.sampled_from(["winograd2", "winograd4"]),
    st.sampled_from([WIDE, NARROW]),
    st.integers(16, 70),
    st.integers(1, 40),
    st.booleans(),
)
def test_convolutions_agree_with_numpy(
    size: tuple[int, int],
    padding: tuple[int, int],
    form: str,
    target: str,
    channels: int,
    terms: int,
    is_symbolic: bool,
) -> None:
    if any(n + 2 * p < 3 for n, p in zip(size, padding, strict=True)):
        return
    x, w = random(2, terms, *size), random(channels, terms, 3, 3)
    want = expected(x, w, ONE, padding, ONE)
    z, b = random(*want.shape), random(1, channels, 1, 1)
    batch = "n" if is_symbolic else 2
    shape = ", ".join(f'"{n}"' if isinstance(n, str) else str(n) for n in (batch, *want.shape[1:]))
    module = convolution(
        (batch, *x.shape[1:]), w.shape, "float32", "R.nn.relu(R.add(R.add({}, b), z))",
        f', b: R.Tensor((1, {channels}, 1, 1), "float32"), z: R.Tensor(({shape}), "float32")', padding=padding,
    )  # fmt: skip
    if form_of(module, target, params={"w": w}) not in ("channels", "winograd2"):  # no windows, or too few products
        return
    got = compiled(module, target, {"form": form}, params={"w": w})["main"](x, b, z)
    np.testing.assert_allclose(got, np.maximum(want + b + z, 0), rtol=1e-4, atol=3e-4)


def bound(form: str, x: np.ndarray, w: np.ndarray, padding: int) -> np.ndarray:
    """The roundings of docs/reference/accuracy.md times what is rounded: the same sums of absolute values."""
    transform, m = transform_of(int(form[-1])), int(form[-1])
    inputs, weights, results = (
        np.array([[abs(float(x)) for x in row] for row in matrix])
        for matrix in (transform.inputs, transform.weights, transform.results)
    )
    images, _, height, width = x.shape
    down, across = -(-(height + 2 * padding - 2) // m), -(-(width + 2 * padding - 2) // m)
    x = np.pad(abs(x.astype("float64")), ((0, 0), (0, 0), (padding, padding + m), (padding, padding + m)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (m + 2, m + 2), (2, 3))[:, :, ::m, ::m][:, :, :down, :across]
    windows = inputs @ windows @ inputs.T
    products = np.einsum("ncyxij,ocij->noyxij", windows, weights @ abs(w.astype("float64")) @ weights.T, optimize=True)
    tiles = results @ products @ results.T
    scale = tiles.transpose(0, 1, 2, 4, 3, 5).reshape(images, w.shape[0], down * m, across * m)
    return (w.shape[1] + 4 * m + 2) * UNIT * scale[:, :, : height + 2 * padding - 2, : width + 2 * padding - 2]


@settings(max_examples=6, deadline=None)
@given(
    st.sampled_from(["winograd2", "winograd4"]),
    st.tuples(st.integers(3, 9), st.integers(4, 9)),
    st.integers(2, 130),
    st.integers(0, 1 << 30),
    st.booleans(),
    st.booleans(),
)
def test_results_are_within_their_bound(
    form: str, size: tuple[int, int], terms: int, seed: int, is_positive: bool, has_outliers: bool
) -> None:
    generator = np.random.default_rng(seed)
    x, w = (
        generator.uniform(0.25 if is_positive else -4, 4, shape).astype("float32")
        for shape in ((2, terms, *size), (32, terms, 3, 3))
    )
    if has_outliers:
        x, w = (a * np.where(generator.random(a.shape) < 0.02, np.float32(1e6), np.float32(1)) for a in (x, w))
    module = convolution(x.shape, w.shape, padding=1)
    got = compiled(module, WIDE, {"form": form}, params={"w": w})["main"](x)
    exact = expected(x, w, ONE, ONE, ONE)
    assert (np.abs(got - exact) <= np.abs(exact) * UNIT + bound(form, x, w, 1)).all()


@pytest.mark.parametrize("form", ["winograd2", "winograd4"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_multiplied_as_it_is(form: str, value: float) -> None:
    """As a sum of products has it: infinite where there is one infinity, nan where it meets zero or another sign."""
    x, w = random(3, 5, 11, 20), random(20, 5, 3, 3)
    w[7, 2, 1] = 0
    x[1, 2, 4, 6] = value
    x[2, 0, 10, 19], x[2, 4, 10, 19], x[2, 1, 0, 0] = value, -value, 3e38
    module = convolution(("n", *x.shape[1:]), w.shape, padding=1)
    executable = compiled(module, WIDE, {"form": form}, params={"w": w})
    with np.errstate(all="ignore"):
        want = weft.interpret(module)["main"](x, w)
    got = executable["main"](x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    assert np.isinf(got[1]).any() == np.isinf(value)
    np.testing.assert_array_equal(got[0], executable["main"](x[:1])[0])


@pytest.mark.parametrize(
    ("x", "w", "options", "form"),
    [
        (("n", 64, 56, 56), (64, 64, 3, 3), {}, "winograd2"),
        ((1, 64, 56, 56), (64, 64, 3, 3), {"opt": Knobs(winograd=4)}, "winograd4"),
        ((1, 64, 56, 56), (64, 64, 3, 3), {"opt": Knobs(winograd=0)}, "channels"),
        ((1, 64, 56, 56), (64, 64, 3, 3), {"opt": 1}, "channels"),  # results are the same bits there
        ((1, 512, 15, 15), (512, 512, 3, 3), {"opt": Knobs(winograd=4)}, "winograd2"),  # larger weights come from far
        (("n", 512, 9, 9), (512, 512, 3, 3), {}, "channels"),  # too few tiles for weights that come from far
        ((1, 2, 56, 56), (64, 2, 3, 3), {}, "packed"),  # transforms cost more than they save
        ((1, 64, 56, 56), (64, 64, 3, 3), {"strides": 2}, "channels"),
        ((1, 64, 56, 56), (64, 64, 3, 3), {"dilation": 2}, "channels"),
        ((1, 64, 56, 56), (64, 64, 5, 5), {}, "channels"),
        ((1, 64, 56, 56), (64, 64, 1, 3), {}, "channels"),
    ],
)
def test_the_form_is_what_costs_least(
    x: tuple[object, ...], w: tuple[int, ...], options: dict[str, Any], form: str
) -> None:
    own = {name: options.pop(name) for name in ("strides", "dilation") if name in options}
    assert form_of(convolution(x, w, **own), WIDE, params={"w": random(*w)}, **options) == form


def test_weights_that_are_arguments_are_not_transformed() -> None:
    found = decided(weft.compile(convolution((1, 64, 20, 20), (64, 64, 3, 3)), WIDE))
    assert found["form"] == "packed"


@pytest.mark.parametrize("form", ["winograd2", "winograd4"])
def test_weights_are_transformed_when_the_module_is_compiled(form: str) -> None:
    x, w = random(1, 3, 6, 9), random(33, 3, 3, 3)
    module = pinned(convolution(x.shape, w.shape, padding=1), WIDE, {"form": form}, params={"w": w})
    scheduled = weft.lower(module, WIDE, start="schedule", stop="schedule")
    (packing,) = [x for f in scheduled.functions.values() for x in decisions_of(f) if x.kind == "packing"]
    assert packing.values["packed_as"] == ("weights_transformed",)
    assert packing.values["keeps_original"]  # for what is not finite
    np.testing.assert_allclose(weft.interpret(scheduled)["main"](x), expected(x, w, ONE, ONE, ONE), atol=1e-4)
    again = weft.parse(scheduled.script())
    np.testing.assert_array_equal(weft.interpret(again)["main"](x), weft.interpret(scheduled)["main"](x))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"form": "winograd2", "mr": 5, "mc": 12}, None),
        ({"form": "winograd4", "nr_vectors": 1}, None),
        ({"form": "winograd2", "mc": 7}, "mc=7 is no multiple of the 6 tiles of a row"),
        ({"form": "winograd2", "mc": 40}, "there are 24 tiles of results"),
    ],
)
def test_what_is_decided_can_be_pinned(values: dict[str, object], why: str | None) -> None:
    x, w = random(2, 8, 7, 11), random(24, 8, 3, 3)
    module = pinned(convolution(x.shape, w.shape, padding=1), WIDE, values, params={"w": w})
    if why is not None:
        with pytest.raises(weft.PassError, match=why):
            weft.lower(module, WIDE, start="schedule", stop="schedule")
        return
    executable = weft.compile(module, WIDE, start="schedule")
    found = decided(executable)
    assert {name: found[name] for name in values} == {name: str(value) for name, value in values.items()}
    np.testing.assert_allclose(executable["main"](x), expected(x, w, ONE, ONE, ONE), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["winograd2", "winograd4"])
@pytest.mark.parametrize(("size", "channels", "terms"), [((2, 4), 16, 1), ((7, 11), 70, 3), ((14, 30), 64, 40)])
def test_what_is_computed_on_vectors_is_said(form: str, size: tuple[int, int], channels: int, terms: int) -> None:
    """LLVM need not look for vectors in loops over elements, which takes most of the time to compile."""
    w = random(channels, terms, 3, 3)
    module = pinned(convolution((1, terms, *size), w.shape, padding=1), WIDE, {"form": form}, params={"w": w})
    lowered = weft.lower(module, WIDE, start="schedule")
    kernels = [lower_vector_loops(lower_blocks(x)) for x in lowered.functions.values() if isinstance(x, PrimFunc)]
    assert kernels
    assert all(map(is_explicit, kernels))


def test_a_form_that_windows_do_not_have_is_refused() -> None:
    w = random(24, 8, 3, 3)
    module = pinned(convolution((2, 8, 7, 11), w.shape, strides=2), WIDE, {"form": "winograd2"}, params={"w": w})
    with pytest.raises(weft.PassError, match="others than 3x3 summed in float32 that move by one"):
        weft.lower(module, WIDE, start="schedule", stop="schedule")


@pytest.mark.parametrize(
    ("terms", "channels", "size", "are_asked_for"),
    [(64, 64, 56, True), (16, 32, 8, True), (256, 256, 14, False)],  # large weights come from far themselves
)
def test_what_results_are_put_together_with_is_prefetched(
    terms: int, channels: int, size: int, are_asked_for: bool
) -> None:
    w, shape = random(channels, terms, 3, 3), f'("n", {channels}, {size}, {size})'
    module = convolution(
        ("n", terms, size, size), w.shape, "float32", "R.add({}, z)", f', z: R.Tensor({shape}, "float32")', padding=1
    )
    module = pinned(module, WIDE, {"form": "winograd2"}, params={"w": w})
    (kernel,) = [
        x
        for x in weft.lower(module, WIDE, start="schedule", stop="schedule").functions.values()
        if isinstance(x, PrimFunc) and DECISIONS in x.attrs and any(d.kind == "gemm" for d in decisions_of(x))
    ]
    marks = [part.value for part in walk(kernel.body) if isinstance(part, AttrStmt) and part.key == PREFETCH]
    asked = {value.buffer for value in marks if isinstance(value, BufferLoad)}
    assert len(asked) == (2 if are_asked_for else 0)  # z and the result


@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_the_same_for_any_number_of_threads(threads: int) -> None:
    x, w = random(3, 16, 20, 21), random(64, 16, 3, 3)
    main = compiled(convolution(x.shape, w.shape, padding=1), WIDE, {"form": "winograd2"}, params={"w": w})["main"]
    before = weft.get_num_threads()
    weft.set_num_threads(1)
    want = main(x)
    try:
        weft.set_num_threads(threads)
        np.testing.assert_array_equal(main(x), want)
    finally:
        weft.set_num_threads(before)
