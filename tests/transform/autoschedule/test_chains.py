"""Chains of contractions go through blocks of rows: attention without a matrix of all scores."""

from __future__ import annotations

import numpy as np
import pytest
from tests.transform.autoschedule.test_tile_contractions import legalized, random

import weft
from weft.ir import IRModule, PrimFunc, walk
from weft.ir.dim import Dim, symbol
from weft.ir.tensor import AllocBuffer, For, PrimVar, SeqStmt
from weft.transform import HoistScratch, ParallelizeOuterLoops, Pipeline, TileContractions, VectorizeNests

N, S, T = symbol("n"), symbol("s"), symbol("t")
PASSES = Pipeline([TileContractions.with_options({"vector_bits": 256, "chain_rows": 4}), VectorizeNests()])


def check(module: IRModule, *arrays: np.ndarray) -> IRModule:
    """Block a module and compare it with itself before, by the interpreter and compiled; sums change their order."""
    new = PASSES(module)
    assert weft.verify(new) == []
    weft.assert_structural_equal(weft.parse(new.script()), new)
    want = weft.interpret(module)["main"](*arrays)
    np.testing.assert_allclose(weft.interpret(new)["main"](*arrays), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weft.compile(module)["main"](*arrays), want, rtol=1e-5, atol=1e-5)
    return new


def is_blocked(module: IRModule) -> bool:
    return "weft.chain" in module.script()


@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 9), (4, 4), (9, 10), (6, 0)])
def test_attention_of_symbolic_lengths(rows: int, columns: int, causal: str | None) -> None:
    module = legalized("nn.attention", (N, S, 2, 3), (N, T, 2, 3), (N, T, 2, 5), causal_mask=causal)
    new = check(module, random(2, rows, 2, 3), random(2, columns, 2, 3), random(2, columns, 2, 5))
    assert is_blocked(new)


@pytest.mark.parametrize("length", [3, 4, 10, 12])
def test_attention_of_known_lengths(length: int) -> None:
    shape = (1, length, 2, 8)
    check(legalized("nn.attention", shape, shape, shape), random(*shape), random(*shape), random(*shape))


def test_attention_with_a_bias() -> None:
    module = legalized("nn.attention_bias", (1, S, 2, 3), (1, T, 2, 3), (1, T, 2, 3), (1, 1, S, T))
    arrays = random(1, 7, 2, 3), random(1, 5, 2, 3), random(1, 5, 2, 3), random(1, 1, 7, 5)
    assert is_blocked(check(module, *arrays))


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    module = PASSES(legalized("nn.attention", (1, S, 2, 8), (1, S, 2, 8), (1, S, 2, 8)))
    kernel = next(f for _, f in module.items() if isinstance(f, PrimFunc))
    for part in walk(kernel):
        if isinstance(part, AllocBuffer):
            assert sum(isinstance(extent, PrimVar) for extent in part.buffer.shape) <= 1


def test_a_single_product_is_no_chain() -> None:
    assert not is_blocked(PASSES(legalized("matmul", (N, 8), (8, 8))))


def test_a_loop_around_nothing_is_no_chain() -> None:
    kernel = PrimFunc((), For(PrimVar("i"), 0, 4, SeqStmt(())), name="main")
    assert PASSES(IRModule({"main": kernel}))["main"] is kernel


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((2, S, 8, 16), (2, 40, 8, 16)),
        ((2, S, 8, 16), (2, 5, 8, 16)),
        ((N, S, 20, 8), (3, 33, 20, 8)),
        ((N, S, 2, 32), (5, 70, 2, 32)),
    ],
    ids=["heads", "few rows", "heads in parts", "symbolic batch"],
)
def test_threads_share_the_heads_of_attention(shape: tuple[Dim, ...], sizes: tuple[int, ...]) -> None:
    """Bit by bit what one thread computes; no part allocates memory that grows with a length."""
    module = legalized("nn.attention", shape, shape, shape)
    shared = Pipeline([PASSES, ParallelizeOuterLoops()])(module)
    kernel = next(f for _, f in HoistScratch()(shared).items() if isinstance(f, PrimFunc))
    loops = [x for x in walk(kernel) if isinstance(x, For) and x.kind == "parallel"]
    alone, blocks = (x for x in loops if "weft.shared" in x.annotations)
    inside = [x.buffer for loop in (alone, blocks) for x in walk(loop) if isinstance(x, AllocBuffer)]
    assert all(isinstance(extent, int) for buffer in inside for extent in buffer.shape)
    main, before, found = weft.compile(shared)["main"], weft.get_num_threads(), []
    for threads in (1, 3):
        weft.set_num_threads(threads)
        found.append(main(*(random(*sizes) for _ in range(3))))
    weft.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    x = random(*sizes).astype("float64")
    powers = np.exp(np.einsum("bsnd,btnd->bnst", x, x) / np.sqrt(x.shape[-1]))
    want = np.einsum("bnst,btnd->bsnd", powers / powers.sum(-1, keepdims=True), x)
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-5)
