"""Attention that is written out becomes one kernel: at any length, with rows that see nothing, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir import Function, Op
from weft.ir.structure.visit import walk

SCORES = "R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])) * R.const(0.5, 'float32')"
FORMS = {
    "plain": (SCORES, True),
    "divided": ("R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])) / R.const(2.0, 'float32')", True),
    "bias": (f"{SCORES} + bias", True),
    "bias first": (f"bias + {SCORES}", True),
    "unscaled": ("R.matmul(q, R.permute_dims(k, [0, 1, 3, 2]))", True),
    "another map": (f"R.tanh({SCORES})", False),
    "a factor of each head": ("R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])) * heads", False),
    "a bias of more": (f"{SCORES} + R.reshape(more, (3, 1, 1, 1))", False),
}


def written_out(scores: str, *, softmax: str = "R.nn.softmax(s, axis=-1)", result: str = "o") -> weft.IRModule:
    module = weft.parse(f"""
@I.ir_module
class Module:
    @R.function
    def main(
        query: R.Tensor(("b", "s", 3, 4), "float32"),
        key: R.Tensor(("b", "t", 3, 4), "float32"),
        value: R.Tensor(("b", "t", 3, 5), "float32"),
        bias: R.Tensor(("s", "t"), "float32"),
        heads: R.Tensor((3, 1, 1), "float32"),
        more: R.Tensor((3,), "float32"),
    ):
        q = R.permute_dims(query, [0, 2, 1, 3])
        k = R.permute_dims(key, [0, 2, 1, 3])
        v = R.permute_dims(value, [0, 2, 1, 3])
        s = {scores}
        p = {softmax}
        o = R.permute_dims(R.matmul(p, v), [0, 2, 1, 3])
        return {result}
""")
    assert isinstance(module, weft.IRModule)
    return module


def is_fused(module: weft.IRModule) -> bool:
    main = weft.transform.FuseAttention()(module)["main"]
    assert isinstance(main, Function)
    return any(isinstance(node, Op) and node.name == "nn.attention" for node in walk(main))


def arrays(rng: np.random.Generator, batch: int, rows: int, keys: int) -> list[Any]:
    shapes = [(batch, rows, 3, 4), (batch, keys, 3, 4), (batch, keys, 3, 5), (rows, keys), (3, 1, 1), (3,)]
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_attention_is_found_and_nothing_else(form: str) -> None:
    scores, expected = FORMS[form]
    assert is_fused(written_out(scores)) is expected


def test_scores_that_others_use_are_left_as_they_are() -> None:
    assert not is_fused(written_out(SCORES, result="o, s"))
    assert not is_fused(written_out(SCORES, result="o, p"))
    assert not is_fused(written_out(SCORES, softmax="R.nn.softmax(s, axis=2)"))


@pytest.mark.parametrize("form", ["plain", "bias", "divided"])
def test_one_program_is_right_at_every_length(form: str) -> None:
    module = written_out(FORMS[form][0])
    compiled, meant = weft.compile(module)["main"], weft.interpret(module)["main"]
    rng = np.random.default_rng(0)
    for sizes in ((1, 1, 1), (2, 7, 3), (1, 70, 600), (1, 5, 0), (0, 5, 4)):
        given = arrays(rng, *sizes)
        np.testing.assert_allclose(compiled(*given), meant(*given), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("keys", [3, 600])
def test_rows_that_see_nothing_are_nan_and_others_what_they_were(keys: int) -> None:
    module = written_out(FORMS["bias"][0])
    compiled, meant = weft.compile(module)["main"], weft.interpret(module)["main"]
    given = arrays(np.random.default_rng(1), 1, 40, keys)
    given[3][4] = -np.inf
    given[3][:, : keys // 2] = -np.inf
    given[3][9, keys - 1] = np.nan
    given[3][11, keys - 1] = np.inf
    found, wanted = compiled(*given), meant(*given)
    assert np.isnan(wanted[0, [4, 9, 11]]).all()
    assert np.isfinite(np.delete(wanted, [4, 9, 11], axis=1)).all()
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
