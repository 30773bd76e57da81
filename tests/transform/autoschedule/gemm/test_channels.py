"""Windows by channels: convolutions with constant weights, whose vectors run along the output channels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.gemm.convolutions import convolution, decided, expected, random

import weft
from weft.ir import FrozenMap, PrimFunc, replace
from weft.transform.autoschedule.knobs import Knobs
from weft.transform.infra.decisions import DECISIONS, decisions_of

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
ALL_PRODUCTS = Knobs(winograd=0)


@settings(max_examples=6, deadline=None)
@example((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), 40, "float32", True)
@example((14, 30), (3, 3), (2, 2), (1, 1), (1, 1), 64, "float32", False)
@example((1, 1), (1, 1), (1, 1), (1, 1), (1, 1), 16, "float32", False)
@given(SIZES, PAIRS, PAIRS, PAIRS, PAIRS, st.integers(16, 70), st.sampled_from(["float32", "float64"]), st.booleans())
def test_convolutions_agree_with_numpy(
    size: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    channels: int,
    dtype: str,
    is_symbolic: bool,
) -> None:
    if any(n + 2 * p < (k - 1) * d + 1 for n, k, p, d in zip(size, kernel, padding, dilation, strict=True)):
        return
    x, w = random(2, 40, *size, dtype=dtype), random(channels, 40, *kernel, dtype=dtype)
    want = expected(x, w, strides, padding, dilation)
    z, b = random(*want.shape, dtype=dtype), random(1, channels, 1, 1, dtype=dtype)
    batch = "n" if is_symbolic else 2
    shape = ", ".join(f'"{n}"' if isinstance(n, str) else str(n) for n in (batch, *want.shape[1:]))
    module = convolution(
        (batch, *x.shape[1:]), w.shape, dtype, "R.nn.relu(R.add(R.add({}, b), z))",
        f', b: R.Tensor((1, {channels}, 1, 1), "{dtype}"), z: R.Tensor(({shape}), "{dtype}")',
        strides=strides, padding=padding, dilation=dilation,
    )  # fmt: skip
    got = weft.compile(module, params={"w": w})["main"](x, b, z)
    np.testing.assert_allclose(got, np.maximum(want + b + z, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "w", "values"),
    [
        ((1, 16, 58, 58), (64, 16, 3, 3), {"mr": 14, "nr_vectors": 2, "mc": 112, "kc": 144}),
        ((1, 16, 9, 9), (64, 16, 3, 3), {"mr": 14, "nr_vectors": 2, "mc": 49}),  # two rows of 7
        ((1, 32, 22, 22), (32, 32, 3, 3), {"mr": 10}),
        ((1, 96, 22), (32, 96, 3), {"mr": 10, "mc": 20}),
        ((1, 64, 5, 6, 7), (32, 64, 2, 2, 2), {"mr": 6, "mc": 120}),
        ((1, 512, 9, 9), (32, 512, 3, 3), {"kc": 288}),  # a long sum goes in blocks
        ((1, 160, 7, 7), (64, 160, 1, 1), {"mr": 14}),  # a product of matrices with few columns
        ((1, 480, 7, 7), (32, 480, 1, 1), {"kc": 160}),  # a block of a panel is half of the first cache at most
    ],
)
def test_tiles_follow_from_the_sizes_of_the_picture(
    x: tuple[int, ...], w: tuple[int, ...], values: dict[str, int]
) -> None:
    target = "llvm -vector-bits=512 -vector-registers=32 -l1-cache=48K"
    executable = weft.compile(convolution(x, w), target, params={"w": random(*w)}, opt=ALL_PRODUCTS)
    found = decided(executable)
    assert found["form"] == "channels"
    assert {name: int(found[name]) for name in values} == values
    ones = [1] * (len(w) - 2)
    want = expected(random(*x), random(*w), ones, [0] * len(ones), ones)
    np.testing.assert_allclose(executable["main"](random(*x)), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("x", "w", "form"),
    [
        ((1, 16, 58, 58), (64, 16, 3, 3), "channels"),
        ((1, 3, 58, 58), (64, 3, 3, 3), "packed"),  # few products beside the transposed sums
        ((1, 16, 58, 58), (24, 16, 3, 3), "packed"),  # a third of the second vector would be empty
        ((1, 16, 58, 58), (8, 16, 3, 3), "packed"),
        ((1, 64, 56, 56), (256, 64, 1, 1), "columns"),  # few products beside the transposed sums
        ((1, 64, 1, 1), (256, 64, 1, 1), "direct"),
        ((1, 64, 56, 56), (24, 64, 1, 1), "direct"),  # a copy would be met by two tiles that are not full
        ((1, 256, 56, 56), (64, 256, 1, 1), "columns"),  # each step of k is in a page of its own
        ((1, 1024, 14, 14), (256, 1024, 1, 1), "channels"),
        ((1, 512, 7, 7), (256, 512, 1, 1), "channels"),  # lanes of positions would be empty
    ],
)
def test_the_form_follows_from_the_lanes_that_would_be_empty(x: tuple[int, ...], w: tuple[int, ...], form: str) -> None:
    target = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=1M"
    executable = weft.compile(convolution(x, w), target, params={"w": random(*w)}, opt=ALL_PRODUCTS)
    assert decided(executable)["form"] == form


@pytest.mark.parametrize("target", ["llvm -vector-bits=512 -vector-registers=32", "llvm -vector-bits=128 -masks=false"])
@pytest.mark.parametrize("channels", [64, 70])
def test_long_arithmetic_is_done_before_results_are_stored(target: str, channels: int) -> None:
    x, w = random(1, 16, 5, 5), random(channels, 16, 3, 3)
    module = convolution(x.shape, w.shape, after="R.nn.silu({})")
    scheduled = weft.lower(module, target, params={"w": w}, stop="schedule", opt=ALL_PRODUCTS)
    want = expected(x, w, (1, 1), (0, 0), (1, 1))
    want = want / (1 + np.exp(-want))
    np.testing.assert_allclose(weft.interpret(scheduled)["main"](x), want, rtol=1e-4, atol=1e-4)
    executable = weft.compile(module, target, params={"w": w}, opt=ALL_PRODUCTS)
    assert decided(executable)["form"] == "channels"
    np.testing.assert_allclose(executable["main"](x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("batch", "strides", "copies"), [("n", 1, True), (2, 2, True), (1, 1, False)])
@pytest.mark.parametrize("cache", ["256K", "4K"])
def test_images_are_padded_one_at_a_time(batch: object, strides: int, copies: bool, cache: str) -> None:
    """However large they are; a nest of its own pads a single one that meets weights from a far cache."""
    copies = copies or cache == "256K"
    w = random(16, 16, 3, 3)
    target = f"llvm -vector-bits=512 -vector-registers=32 -masks=true -l2-cache={cache}"
    module = convolution((batch, 16, 5, 11), w.shape, padding=2, strides=strides)
    executable = weft.compile(module, target, params={"w": w}, opt=ALL_PRODUCTS)
    assert decided(executable)["form"] == "channels"
    assert (decided(executable).get("images") == "copied") == copies
    assert ("padded: " in executable.explain()) != copies
    lowered = weft.lower(module, target, params={"w": w}, stop="schedule", opt=ALL_PRODUCTS)
    for images in (1, 0, 2) if batch == "n" else (batch,):
        assert isinstance(images, int)
        x = random(images, 16, 5, 11)
        want = expected(x, w, [strides] * 2, [2, 2], [1, 1])
        np.testing.assert_allclose(executable["main"](x), want, rtol=1e-4, atol=1e-4)
        if batch == images:
            np.testing.assert_allclose(weft.interpret(lowered)["main"](x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("size", "padding", "group"),
    [
        (9, 0, "6"),  # a picture has 5184 bytes, the second cache 32 KiB
        (9, 1, "1"),  # pictures are padded one at a time
        (20, 0, "1"),
        (20, 1, "1"),
        (42, 0, None),  # larger than the weights, which are read again for each block of a picture
    ],
)
def test_panels_of_large_weights_meet_as_many_images_as_the_cache_holds(
    size: int, padding: int, group: str | None
) -> None:
    w = random(64, 16, 3, 3)
    target = "llvm -vector-bits=512 -vector-registers=32 -masks=true -l2-cache=32K"
    module = convolution(("n", 16, size, size), w.shape, padding=padding)
    executable = weft.compile(module, target, params={"w": w}, opt=ALL_PRODUCTS)
    found = decided(executable)
    assert (found["form"], found.get("batch_block")) == ("channels", group)
    assert (found.get("images") == "copied") == (group == "1" and padding == 1)
    text = weft.lower(module, target, params={"w": w}, stop="schedule", opt=ALL_PRODUCTS).script()
    panels = text.index("for i1_32")
    assert text.index("for i0") < panels
    assert ("i0" in text[panels:].split("\n")[1]) == (group not in (None, "1"))
    for images in (0, 1, 7):
        x = random(images, 16, size, size)
        want = expected(x, w, (1, 1), (padding, padding), (1, 1))
        np.testing.assert_allclose(executable["main"](x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("batch", "prefetched"), [("n", True), (None, False)])
def test_what_is_added_to_a_product_of_images_is_asked_for_while_a_tile_sums(batch: object, prefetched: bool) -> None:
    """A single product is put together with what is near."""
    if batch is None:
        text = """
from weft.script import ir as I, relax as R

@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor((64, 48), "float32"), w: R.Tensor((48, 96), "float32"), z: R.Tensor((64, 96), "float32")):
        return R.add(R.matmul(x, w), z)
"""
        module = weft.parse(text)
    else:
        module = convolution(
            (batch, 48, 6, 9), (40, 48, 1, 1), "float32", "R.add({}, z)", ', z: R.Tensor(("n", 40, 6, 9), "float32")'
        )
    scheduled = weft.lower(module, "llvm -vector-bits=512 -vector-registers=32", stop="schedule").script()
    assert (scheduled.count('"prefetch", z') > 0) == prefetched
    if batch is not None:
        x, w, z = random(2, 48, 6, 9), random(40, 48, 1, 1), random(2, 40, 6, 9)
        want = expected(x, w, (1, 1), (0, 0), (1, 1)) + z
        np.testing.assert_allclose(weft.compile(module)["main"](x, w, z), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("batch", "channels", "kernel", "adds"), [(3, 64, 1, True), (1, 26, 1, False), (2, 5, 3, True), (0, 40, 1, False)]
)
def test_places_of_far_results_are_asked_for_by_the_steps_of_a_tile(
    batch: int, channels: int, kernel: int, adds: bool
) -> None:
    """As much as the second cache cannot hold; whatever the number of steps is beside that of rows."""
    x, w = random(batch, channels, 8, 9), random(40, channels, kernel, kernel)
    want = expected(x, w, (1, 1), (0, 0), (1, 1))
    z = random(*want.shape)
    rows, columns = want.shape[2:]
    module = convolution(
        ("n", *x.shape[1:]), w.shape, "float32", "R.nn.relu(R.add({}, z))" if adds else "R.nn.relu({})",
        f', z: R.Tensor(("n", 40, {rows}, {columns}), "float32")',
    )  # fmt: skip
    target = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=4K"
    executable = weft.compile(module, target)
    assert decided(executable)["results"] == "far"
    assert "for part" in weft.lower(module, target, stop="schedule").script()
    np.testing.assert_allclose(executable["main"](x, w, z), np.maximum(want + z * adds, 0), rtol=1e-4, atol=1e-4)
    near = weft.lower(module, "llvm -vector-bits=512 -vector-registers=32 -l2-cache=1M", stop="schedule").script()
    assert "for part" not in near


def test_weights_that_are_arguments_are_not_read_by_channels() -> None:
    assert decided(weft.compile(convolution((1, 16, 9, 9), (64, 16, 3, 3))))["form"] == "packed"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"mr": 7, "nr_vectors": 1, "mc": 7, "kc": 9}, None),
        ({"kc": 70}, "kc=70 is no multiple of the 9 products that stay together"),
        ({"mc": 10}, "mc=10 is no multiple of the 7 positions of a row"),
        ({"mr": 9, "nr_vectors": 4}, "needs 38 registers"),
        ({"form": "packed", "mc": 64}, None),
        ({"batch_block": 2}, "has no 'batch_block'"),  # the weights are small
    ],
)
def test_what_is_decided_can_be_pinned(values: dict[str, object], why: str | None) -> None:
    target, w, x = "llvm -vector-bits=512 -vector-registers=32", random(64, 16, 3, 3), random(1, 16, 7, 7)
    fused = weft.lower(convolution(x.shape, w.shape, padding=1), target, params={"w": w}, stop="fuse")
    name, function = next((name, f) for name, f in fused.items() if isinstance(f, PrimFunc))
    record = FrozenMap({"about": "conv2d", "kind": "gemm", **values})
    marked = replace(function, attrs=function.attrs.set(DECISIONS, (record,)))
    module = fused.with_functions({**fused.functions, name: marked})
    if why is not None:
        with pytest.raises(weft.PassError, match=why):
            weft.lower(module, target, start="schedule", stop="schedule")
        return
    scheduled = weft.lower(module, target, start="schedule", stop="schedule")
    found = [item for f in scheduled.functions.values() for item in decisions_of(f) if item.kind == "gemm"]
    assert {name: found[0].values[name] for name in values} == values
    got = weft.interpret(scheduled)["main"](x)
    np.testing.assert_allclose(got, expected(x, w, (1, 1), (1, 1), (1, 1)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("group", [2, 0])
def test_groups_of_images_can_be_pinned(group: int) -> None:
    target, w = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=32K", random(64, 16, 3, 3)
    fused = weft.lower(convolution(("n", 16, 5, 5), w.shape), target, params={"w": w}, stop="fuse")
    name, function = next((name, f) for name, f in fused.items() if isinstance(f, PrimFunc))
    record = FrozenMap({"about": "conv2d", "kind": "gemm", "form": "channels", "batch_block": group})
    module = fused.with_functions(
        {**fused.functions, name: replace(function, attrs=function.attrs.set(DECISIONS, (record,)))}
    )
    if not group:
        with pytest.raises(weft.PassError, match="batch_block=0 cannot be"):
            weft.lower(module, target, start="schedule", stop="schedule")
        return
    scheduled = weft.lower(module, target, start="schedule", stop="schedule")
    assert f"n - i0_block * {group}, {group})" in scheduled.script()
    x = random(3, 16, 5, 5)
    got = weft.compile(scheduled, target)["main"](x)
    np.testing.assert_allclose(got, expected(x, w, (1, 1), (0, 0), (1, 1)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("channels", "kernel", "strides", "prefetched"),
    [(32, 1, 1, True), (48, 1, 1, True), (32, 1, 2, False), (32, 3, 1, False), (256, 1, 1, False)],
)
def test_tiles_of_single_elements_prefetch_those_of_the_next_block(
    channels: int, kernel: int, strides: int, prefetched: bool
) -> None:
    """Of 256 channels the weights are large: panels meet elements of one image again and again."""
    target, w = "llvm -vector-bits=512 -vector-registers=32 -l2-cache=256K", random(channels, 480, kernel, kernel)
    module = convolution(("n", 480, 7, 7), w.shape, strides=strides)
    text = weft.lower(module, target, params={"w": w}, stop="schedule", opt=ALL_PRODUCTS).script()
    assert '"form": "channels"' in text
    assert ('"prefetch", data[T.min(i0 + ' in text) == prefetched
    compiled = weft.compile(module, target, params={"w": w}, opt=ALL_PRODUCTS)["main"]
    for images in (0, 1, 3):
        x = random(images, 480, 7, 7)
        want = expected(x, w, [strides] * 2, (0, 0), (1, 1))
        np.testing.assert_allclose(compiled(x), want, rtol=1e-4, atol=1e-4)
