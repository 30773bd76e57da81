"""Attention by blocks of rows and of keys: the same values, bit by bit for any number of threads, in little memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.transform.autoschedule.test_tile_contractions import legalized, random

import weft
from weft.codegen.backends.llvm.kernel.explicit import is_explicit
from weft.ir import IRModule, PrimFunc, walk
from weft.ir.dim import Dim, symbol
from weft.ir.op import get_op
from weft.ir.tensor import AllocBuffer, AttrStmt, BufferStore, For, PrimVar
from weft.target import MachineModel
from weft.transform import HoistScratch, Knobs, ParallelizeOuterLoops, Pipeline, TileContractions, VectorizeNests
from weft.transform.infra.decisions import decisions_of
from weft.transform.kernel.lower_blocks import lower_blocks
from weft.transform.kernel.lower_vector_loops import lower_vector_loops

S, T = symbol("s"), symbol("t")
MASKS = (None, "TopLeft", "BottomRight")


def blocked(module: IRModule, rows: int = 6, keys: int = 8, bits: int = 256, shared: bool = False) -> IRModule:
    """A module in blocks small enough for short sequences to have several."""
    size: dict[str, Any] = {"vector_bits": bits, "registers": 32 if bits == 512 else 16}
    tiles = TileContractions.with_options({**size, "chain_rows": rows, "chain_keys": keys})
    passes = [tiles, VectorizeNests.with_options(size)]
    new = Pipeline([*passes, *([ParallelizeOuterLoops()] if shared else [])])(module)
    assert weft.verify(new) == []
    return new


def goes_by_keys(module: IRModule) -> bool:
    """Whether scores are never stored for all keys."""
    loops = {node.loop_var.name for f in module.functions.values() for node in walk(f) if isinstance(node, For)}
    return "key_block" in loops


def expected(
    *arrays: np.ndarray,
    causal_mask: str | None = None,
    window_size: int | None = None,
    masked_bias: float | None = None,
) -> np.ndarray:
    """What the declaration of the operator says, in float64."""
    bias = arrays[3] if len(arrays) > 3 else None
    formula = get_op("nn.attention").numpy
    assert formula is not None
    with np.errstate(all="ignore"):
        mask = {"causal_mask": causal_mask, "window_size": window_size, "masked_bias": masked_bias}
        return formula(*arrays[:3], bias, scale=None, **mask)


def agree(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


Case = tuple[IRModule, list[np.ndarray], dict[str, Any], dict[str, int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Attention of some sizes, known or not, with masks, windows, biases, and values that are not finite."""
    rows, keys = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    batch, heads, width, depth = (draw(st.sampled_from(sizes)) for sizes in ((1, 2), (1, 2, 6), (1, 3, 16), (1, 4, 19)))
    shared = draw(st.sampled_from([count for count in (1, 2, 3, 6) if heads % count == 0]))
    s, t = draw(st.sampled_from((S, rows))), draw(st.sampled_from((T, keys)))
    mask = draw(st.sampled_from(MASKS))
    options = {
        "causal_mask": mask,
        "window_size": None if mask is None else draw(st.sampled_from((None, 1, 9))),
        "masked_bias": None if mask is None else draw(st.sampled_from((None, -np.inf, -3e38, -2.0))),
    }
    numbers = np.random.default_rng(draw(st.integers(0, 99)))
    sizes = ((batch, rows, heads, width), (batch, keys, shared, width), (batch, keys, shared, depth))
    arrays = [numbers.standard_normal(size).astype("float32") for size in sizes]
    shapes: list[tuple[Dim, ...]] = [(batch, s, heads, width), (batch, t, shared, width), (batch, t, shared, depth)]
    name = "nn.attention"
    if draw(st.booleans()):
        name = "nn.attention_bias"
        ones = [draw(st.booleans()) for _ in range(4)]
        full: tuple[Dim, ...] = (batch, heads, s, t)
        shapes.append(tuple(1 if one else size for one, size in zip(ones, full, strict=True)))
        size = tuple(1 if one else n for one, n in zip(ones, (batch, heads, rows, keys), strict=True))
        bias = numbers.standard_normal(size).astype("float32")
        hidden = numbers.random(size) < draw(st.sampled_from((0.0, 0.5, 1.0)))
        arrays.append(np.where(hidden, -np.inf, bias).astype("float32"))
    wild = draw(st.sampled_from((None, None, None, 0, 1, 2)))
    if wild is not None:
        arrays[wild].flat[numbers.integers(arrays[wild].size)] = draw(st.sampled_from((np.nan, np.inf, -np.inf)))
    blocks = {
        "rows": draw(st.sampled_from((6, 12))),
        "keys": draw(st.sampled_from((8, 32))),
        "bits": draw(st.sampled_from((128, 256, 512))),
    }
    return legalized(name, *shapes, **options), arrays, options, blocks


@settings(max_examples=6, deadline=None)
@given(cases())
def test_blocks_give_what_the_operator_says(case: Case) -> None:
    module, arrays, options, blocks = case
    new = blocked(module, blocks["rows"], blocks["keys"], blocks["bits"])
    agree(weft.compile(new)["main"](*arrays), expected(*arrays, **options))


def test_loops_that_were_arranged_are_no_pins_of_a_later_run() -> None:
    """What the first run left over for its vectors, a second run with others may arrange along another axis."""
    module = legalized("nn.attention", (1, S, 2, 3), (1, T, 1, 3), (1, T, 1, 1), causal_mask="TopLeft")
    assert "main" in weft.compile(blocked(module, 6, 32, 128)).functions


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("rows", "keys"), [(7, 11), (17, 8), (1, 9), (3, 0)])
def test_the_text_of_the_blocks_runs_in_the_interpreter(mask: str | None, rows: int, keys: int) -> None:
    module = legalized("nn.attention", (1, S, 1, 2), (1, T, 1, 2), (1, T, 1, 3), causal_mask=mask)
    new = blocked(module)
    weft.assert_structural_equal(weft.parse(new.script()), new)
    arrays = random(1, rows, 1, 2), random(1, keys, 1, 2), random(1, keys, 1, 3)
    assert goes_by_keys(new)
    agree(weft.interpret(new)["main"](*arrays), weft.interpret(module)["main"](*arrays))


def test_rows_that_see_nothing_are_zeros() -> None:
    shapes = (1, 9, 1, 4), (1, 40, 1, 4), (1, 40, 1, 4), (1, 1, 20, 40)
    arrays = [random(*shape) for shape in ((1, 20, 1, 4), *shapes[1:])]
    arrays[3][:, :, ::3] = -np.inf
    module = blocked(legalized("nn.attention_bias", *(a.shape for a in arrays)))
    got = weft.compile(module)["main"](*arrays)
    assert goes_by_keys(module)
    assert not got[:, ::3].any()
    agree(got, expected(*arrays))


@pytest.mark.parametrize(
    ("options", "skips"),
    [
        ({"causal_mask": "TopLeft"}, True),
        ({"causal_mask": "TopLeft", "masked_bias": -np.inf}, True),
        ({"causal_mask": "BottomRight", "masked_bias": -3e38}, True),
        ({"causal_mask": "TopLeft", "masked_bias": -100.0}, False),  # too little to make a score vanish
        ({}, False),
    ],
)
def test_hidden_keys_are_left_out_where_they_vanish(options: dict[str, Any], skips: bool) -> None:
    module = blocked(legalized("nn.attention", (1, S, 2, 4), (1, T, 2, 4), (1, T, 2, 4), **options))
    loops = {node.loop_var.name for f in module.functions.values() for node in walk(f) if isinstance(node, For)}
    assert ("again" in loops) == skips


def test_hidden_keys_stay_where_a_bias_may_be_anything() -> None:
    options = {"causal_mask": "TopLeft", "masked_bias": -np.inf}
    module = blocked(legalized("nn.attention_bias", *((1, S, 2, 4),) * 3, (1, 1, S, S), **options))
    loops = {node.loop_var.name for f in module.functions.values() for node in walk(f) if isinstance(node, For)}
    assert "again" not in loops


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_a_mask_hides_belongs_to_the_sum_all_the_same(value: float) -> None:
    """0 * nan is nan: a block of hidden keys is left out only where its values are finite."""
    arrays = [random(1, 40, 1, 4) for _ in range(3)]
    arrays[2][0, 39, 0, 1] = value
    module = blocked(legalized("nn.attention", *(a.shape for a in arrays), causal_mask="TopLeft"))
    got = weft.compile(module)["main"](*arrays)
    assert np.isnan(got[0, :39, 0, 1]).all()
    agree(got, expected(*arrays, causal_mask="TopLeft"))


SOFTMAX = """
@I.ir_module
class Chain:
    @T.prim_func
    def main(
        q: T.Buffer((2, {rows}, 3), "float32"), k: T.Buffer((2, {keys}, 3), "float32"),
        v: T.Buffer((2, {keys}, 5), "float32"), mask: T.Buffer(({rows}, {keys}), "float32"),
        y: T.Buffer((2, {rows}, 5), "float32"),
    ):
        c = T.alloc_buffer((2, {rows}, {keys}), "float32")
        greatest = T.alloc_buffer((2, {rows}), "float32")
        powers = T.alloc_buffer((2, {rows}, {keys}), "float32")
        total = T.alloc_buffer((2, {rows}), "float32")
        weights = T.alloc_buffer((2, {rows}, {keys}), "float32")
        for b, s, t, k_ in T.grid(2, {rows}, {keys}, 3):
            with T.block("c"):
                vb, vs, vt, vk = T.axis.remap("SSSR", [b, s, t, k_])
                with T.init():
                    c[vb, vs, vt] = T.float32(0)
                c[vb, vs, vt] = c[vb, vs, vt] + q[vb, vs, vk] * k[vb, vt, vk]
        for b, s, t in T.grid(2, {rows}, {keys}):
            with T.block("masked"):
                vb, vs, vt = T.axis.remap("SSS", [b, s, t])
                c[vb, vs, vt] = c[vb, vs, vt] * T.float32(0.5) + mask[vs, vt]
        for b, s, t in T.grid(2, {rows}, {keys}):
            with T.block("greatest"):
                vb, vs, vt = T.axis.remap("SSR", [b, s, t])
                with T.init():
                    greatest[vb, vs] = T.float32("-inf")
                greatest[vb, vs] = T.max(greatest[vb, vs], c[vb, vs, vt])
        for b, s, t in T.grid(2, {rows}, {keys}):
            with T.block("powers"):
                vb, vs, vt = T.axis.remap("SSS", [b, s, t])
                powers[vb, vs, vt] = T.exp(c[vb, vs, vt] - greatest[vb, vs])
        for b, s, t in T.grid(2, {rows}, {keys}):
            with T.block("total"):
                vb, vs, vt = T.axis.remap("SSR", [b, s, t])
                with T.init():
                    total[vb, vs] = T.float32(0)
                total[vb, vs] = total[vb, vs] + powers[vb, vs, vt]
        for b, s, t in T.grid(2, {rows}, {keys}):
            with T.block("weights"):
                vb, vs, vt = T.axis.remap("SSS", [b, s, t])
                weights[vb, vs, vt] = {weights}
        for b, s, d, t in T.grid(2, {rows}, 5, {keys}):
            with T.block("y"):
                vb, vs, vd, vt = T.axis.remap("SSSR", [b, s, d, t])
                with T.init():
                    y[vb, vs, vd] = T.float32(0)
                y[vb, vs, vd] = y[vb, vs, vd] + weights[vb, vs, vt] * v[vb, vt, vd]
"""


@pytest.mark.parametrize(
    "weights", ["powers[vb, vs, vt] / total[vb, vs]", "powers[vb, vs, vt] * (T.float32(1) / total[vb, vs])"]
)
@pytest.mark.parametrize(("rows", "keys"), [(20, 27), (20, 7)])
def test_a_softmax_between_two_products_goes_by_keys_too(weights: str, rows: int, keys: int) -> None:
    """Rows that see -inf alone are nan, as they are without blocks; weights never exceed 1."""
    module = weft.parse(SOFTMAX.format(rows=rows, keys=keys, weights=weights))
    assert isinstance(module, IRModule)
    q, k, v, mask = random(2, rows, 3), random(2, keys, 3), random(2, keys, 5), random(rows, keys)
    v *= np.float32(1e37)  # a sum of unscaled powers would overflow
    mask[::4, : keys // 2] = -np.inf
    mask[1] = -np.inf
    new = blocked(module)
    assert goes_by_keys(new)
    got = np.zeros((2, rows, 5), "float32")
    weft.compile(new)["main"](q, k, v, mask, got)
    with np.errstate(all="ignore"):
        scores = np.einsum("bsk,btk->bst", q, k).astype("float64") * 0.5 + mask
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        want = np.einsum("bst,btd->bsd", powers / powers.sum(-1, keepdims=True), v.astype("float64"))
    assert np.isnan(got[:, 1]).all()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e33)


def test_halves_are_summed_in_floats() -> None:
    """Copies of keys and values have the type that sums have, which tiles are made for."""
    shape = (1, 40, 2, 16)
    new = blocked(legalized("nn.attention", shape, shape, shape, dtype="float16"))
    kernel = next(f for f in new.functions.values() if isinstance(f, PrimFunc))
    tiles = [node for node in walk(kernel) if isinstance(node, AllocBuffer) and node.buffer.name == "accumulators"]
    assert goes_by_keys(new)
    assert tiles
    arrays = [random(*shape).astype("float16") for _ in range(3)]
    np.testing.assert_allclose(weft.compile(new)["main"](*arrays), expected(*arrays), rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize(("rows", "keys", "depth", "mask"), [(100, 130, 64, None), (140, 600, 19, "BottomRight")])
def test_both_products_of_bfloat16_go_through_matrices(rows: int, keys: int, depth: int, mask: str | None) -> None:
    """Scores are sums of the same products; probabilities are rounded, unless a knob says that they are not."""
    shapes = (1, rows, 2, 64), (1, keys, 2, 64), (1, keys, 2, depth)
    module = weft.lower(legalized("nn.attention", *shapes, dtype="bfloat16", causal_mask=mask), "llvm", stop="fuse")
    machine = MachineModel(512, 32, dot_features=("amx-bf16",))
    new = TileContractions(machine, Knobs())(module)
    assert weft.verify(new) == []
    instructions = [node.value for f in new.functions.values() for node in walk(f) if isinstance(node, AttrStmt)]
    assert instructions.count("tdpbf16ps") >= 2
    assert "matrix_tiles" not in TileContractions(machine, Knobs(narrow_attention=0))(module).script()
    arrays = [random(*shape).astype(ml_dtypes.bfloat16) for shape in shapes]
    want = expected(*(x.astype("float64") for x in arrays), causal_mask=mask)
    got = weft.compile(new)["main"](*arrays).astype("float64")
    np.testing.assert_allclose(got, want, rtol=2.0**-7, atol=2.0**-8)


@pytest.mark.parametrize("heads", [1, 5], ids=["rows", "heads"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "symbolic"])
def test_threads_change_no_bit(heads: int, known: bool) -> None:
    rows, keys = 700, 600
    s, t = (rows, keys) if known else (S, T)
    shapes: list[tuple[Dim, ...]] = [(1, s, heads, 16), (1, t, heads, 16), (1, t, heads, 8)]
    module = legalized("nn.attention", *shapes, causal_mask="BottomRight")
    new = blocked(module, 84, 256, shared=True)
    kinds = {node.kind for f in new.functions.values() for node in walk(f) if isinstance(node, For)}
    assert "parallel" in kinds
    arrays = random(1, rows, heads, 16), random(1, keys, heads, 16), random(1, keys, heads, 8)
    main, before, found = weft.compile(new)["main"], weft.get_num_threads(), []
    for threads in (1, 3):
        weft.set_num_threads(threads)
        found.append(main(*arrays))
    weft.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    agree(found[0], expected(*arrays, causal_mask="BottomRight"))


def test_keys_are_copied_once_for_all_rows() -> None:
    """The copies stand before the loop over blocks of rows, and are the only memory that grows with a length."""
    shape = (1, S, 8, 16)
    new = blocked(legalized("nn.attention", shape, shape, shape), shared=True)
    kernel = next(f for f in HoistScratch()(new).functions.values() if isinstance(f, PrimFunc))
    rows = [node for node in walk(kernel) if isinstance(node, For) and node.loop_var.name.endswith("_rows")]
    assert len(rows) == 1
    stored = {node.buffer.name for node in walk(rows[0]) if isinstance(node, BufferStore)}
    assert "weighted" in stored
    assert not {"keys", "values"} & stored
    long = {
        node.buffer.name
        for f in new.functions.values()
        for node in walk(f)
        if isinstance(node, AllocBuffer)
        and any(isinstance(x, PrimVar) for e in node.buffer.shape if not isinstance(e, int) for x in walk(e))
    }
    assert long == {"keys", "values", "query_key"}  # the scores of one row, where rows go alone


@pytest.mark.parametrize("mask", MASKS)
def test_a_few_rows_of_an_unknown_number_go_alone(mask: str | None) -> None:
    """They read keys and values where they are, and give what blocks of rows give."""
    shapes: list[tuple[Dim, ...]] = [(1, S, 4, 8), (1, T, 2, 8), (1, T, 2, 8)]
    module = legalized("nn.attention", *shapes, causal_mask=mask)
    alone, blocks = (
        weft.compile(Pipeline([TileContractions(knobs=Knobs(attention_single_rows=rows))])(module))["main"]
        for rows in (6, 0)
    )
    for rows in (1, 2, 6, 7):
        arrays = random(1, rows, 4, 8), random(1, 19, 2, 8), random(1, 19, 2, 8)
        want = expected(*arrays, causal_mask=mask)
        agree(alone(*arrays), want)
        agree(blocks(*arrays), want)


def test_how_many_rows_go_alone_is_decided() -> None:
    shapes: list[tuple[Dim, ...]] = [(1, S, 4, 8), (1, T, 2, 8), (1, T, 2, 8)]
    for module, rows in (
        (legalized("nn.attention", *shapes), 6),
        (legalized("nn.attention", (1, 20, 4, 8), *shapes[1:]), None),
    ):
        (kernel,) = (f for f in TileContractions()(module).functions.values() if isinstance(f, PrimFunc))
        (made,) = (item for item in decisions_of(kernel) if item.kind == "attention")
        assert made.values.get("single_rows") == rows
        loops = {node.loop_var.name for node in walk(kernel) if isinstance(node, For)}
        assert ("row" in loops) == (rows is not None)


def test_attention_of_any_length_says_what_is_computed_on_vectors() -> None:
    """LLVM need not look for vectors in what is left of keys beside them, which took most of the time to compile."""
    module = legalized("nn.attention", (2, S, 8, 64), (2, T, 8, 64), (2, T, 8, 64))
    lowered = weft.lower(module, "llvm -vector-bits=512 -vector-registers=32", start="fuse")
    kernels = [lower_vector_loops(lower_blocks(x)) for x in lowered.functions.values() if isinstance(x, PrimFunc)]
    assert kernels
    assert all(map(is_explicit, kernels))


def test_what_comes_after_attention_may_read_other_axes() -> None:
    module = weft.parse(
        """
@R.function
def main(q: R.Tensor((2, "n", 4, 8), "float32"), h: R.Tensor((2, 1, "n", 1), "bool")):
    with R.dataflow():
        a = R.nn.attention(q, q, q)
        p = R.permute_dims(h, (0, 2, 1, 3))
        y = R.where(p, R.const(7.0, "float32"), a)
        R.output(y)
    return y
"""
    )
    run = weft.compile(module)["main"]
    for length in (1, 5, 33):
        q, hidden = random(2, length, 4, 8), np.arange(2 * length).reshape(2, 1, length, 1) % 3 == 0
        agree(run(q, hidden), np.where(hidden.transpose(0, 2, 1, 3), np.float32(7), expected(q, q, q)))
