"""Recurrent layers: one program for sequences of any length, in every executor that has loops, and inside of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ShapeError
from weft.ir import Call, IRModule, Op, walk
from weft.transform import LegalizeOps

TEXT = """
@R.function
def main(x: R.Tensor(("t", "b", 3), "float32"), w: R.Tensor((1, 16, 3), "float32"),
         r: R.Tensor((1, 16, 4), "float32")):
    return R.nn.lstm(x, w, r)
"""


def _by_hand(x: Any, w: Any, r: Any) -> tuple[Any, Any, Any]:
    """The layer in ONNX's order of gates, step by step."""
    h = c = np.zeros((x.shape[1], 4), "float32")
    rows = np.zeros((*x.shape[:2], 4), "float32")
    for t, row in enumerate(x):
        i, o, f, n = np.split(row @ w[0].T + h @ r[0].T, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(n) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        rows[t] = h
    return rows[:, None], h[None], c[None]


def _arrays(*sizes: int) -> list[Any]:
    random = np.random.default_rng(sum(sizes))
    return [random.normal(size=s).astype("float32") for s in ((*sizes, 3), (1, 16, 3), (1, 16, 4))]


@pytest.mark.parametrize("executor", ["native", "vm"])
def test_one_program_runs_sequences_of_any_length(executor: str) -> None:
    run = weft.compile(weft.parse(TEXT), executor=executor)
    for sizes in ((0, 2), (1, 1), (5, 3), (70, 2), (3, 0)):
        arrays = _arrays(*sizes)
        for got, want in zip(run(*arrays), _by_hand(*arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_a_layer_of_known_sizes_is_a_kernel_where_programs_have_no_loops(executor: str) -> None:
    run = weft.compile(weft.parse(TEXT.replace('"t", "b"', "5, 3")), executor=executor)
    arrays = _arrays(5, 3)
    for got, want in zip(run(*arrays), _by_hand(*arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_the_body_of_the_loop_is_made_of_kernels() -> None:
    function = weft.parse(TEXT)
    assert not isinstance(function, IRModule)
    module = LegalizeOps()(IRModule({"main": function}))
    operators = {node.op.name for node in walk(module["main"]) if isinstance(node, Call) and isinstance(node.op, Op)}
    assert operators == {"call_tir", "loop"}


def test_a_layer_inside_of_a_loop() -> None:
    text = """
@R.function
def main(x: R.Tensor(("t", 2, 4), "float32"), w: R.Tensor((1, 4, 4), "float32"), k: R.Tensor((), "int64")):
    for i in range(k):
        y = R.nn.rnn(x, w, w)
        x = R.squeeze(y[0], [1])
    return x
"""
    x, w = np.linspace(-1, 1, 24, dtype="float32").reshape(3, 2, 4), np.eye(4, dtype="float32")[None]
    want = x
    for _ in range(2):
        h, rows = np.zeros((2, 4), "float32"), []
        for row in want:
            h = np.tanh(row + h)
            rows.append(h)
        want = np.stack(rows)
    np.testing.assert_allclose(weft.compile(weft.parse(text))(x, w, np.array(2)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('direction="up"', "unknown direction 'up'"),
        ('activations=["Sigmoid"]', "there are 3 activations, got 1"),
        ('activations=["Sigmoid", "Tanh", "Tan"]', "unknown activation 'Tan'"),
        ('gates="iof"', "letters of 'iofc' in some order"),
        ("layout=2", "layout is 0 or 1"),
        ("clip=-1.0", "clip is positive"),
        ('direction="bidirectional"', "axis 0 of weight"),
    ],
)
def test_what_is_no_layer_is_refused_at_the_call(given: str, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        weft.parse(TEXT.replace("(x, w, r)", f"(x, w, r, {given})"))


def test_what_a_step_is_given_is_no_copy() -> None:
    """The number of a step is a scalar that kernels are fused over."""
    module = weft.lower(weft.parse(TEXT), "llvm", stop="fuse")
    assert "fused_take_matmul_add" in module.functions
    assert "take" not in module.functions
