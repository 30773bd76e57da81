# pyright: reportMissingImports=false
"""The models of the examples beside the same written in torch, where that is installed: `make test-frontends` does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="torch is large: make test-frontends installs it")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "search")]

import compare  # noqa: E402
import llama  # noqa: E402
import model  # noqa: E402


def rotated(x: Any, places: Any, base: float) -> Any:
    """(t, heads, size) turned by the angles of places."""
    half = x.shape[-1] // 2
    angles = places[:, None] * base ** (-torch.arange(half) * 2 / (2 * half))
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def next_scores(c: Any, w: dict[str, Any], tokens: list[int]) -> Any:
    """The scores of the next token, from all of the tokens at once, without a cache."""

    def norm(x: Any, name: str) -> Any:
        return x * (x.square().mean(-1, keepdim=True) + c.epsilon).rsqrt() * w[f"{name}.weight"]

    places, count = torch.arange(len(tokens)), len(tokens)
    x = w["model.embed_tokens.weight"][tokens]
    for layer in range(c.layers):
        name = f"model.layers.{layer}"
        y = norm(x, f"{name}.input_layernorm")
        q, k, v = (
            (y @ w[f"{name}.self_attn.{part}_proj.weight"].T).reshape(count, -1, c.size) for part in ("q", "k", "v")
        )
        q, k = rotated(q, places, c.base), rotated(k, places, c.base)
        k, v = (part.repeat_interleave(c.heads // c.groups, 1) for part in (k, v))
        q, k, v = (part.transpose(0, 1) for part in (q, k, v))
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + heads.transpose(0, 1).reshape(count, -1) @ w[f"{name}.self_attn.o_proj.weight"].T
        y = norm(x, f"{name}.post_attention_layernorm")
        gate = torch.nn.functional.silu(y @ w[f"{name}.mlp.gate_proj.weight"].T)
        x = x + (gate * (y @ w[f"{name}.mlp.up_proj.weight"].T)) @ w[f"{name}.mlp.down_proj.weight"].T
    return norm(x[-1], "model.norm") @ w["lm_head.weight"].T


def test_the_decoder_is_equal_to_torch_token_by_token(tmp_path: Path) -> None:
    config = llama.Config(layers=2)
    path = tmp_path / "llama.safetensors"
    llama.random_checkpoint(config, path)
    arrays = weft.frontend.safetensors.load(path)
    weights = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    tokens = [1, 17, 300, 42]
    exe = weft.compile(llama.decoder(config, arrays))
    keys = values = np.zeros((config.layers, 0, config.groups, config.size), "float32")
    new = np.array(tokens)
    for _ in range(24):
        scores, keys, values = exe["step"](new, keys, values)
        np.testing.assert_allclose(scores, next_scores(config, weights, tokens).numpy(), rtol=1e-3, atol=1e-4)
        new = scores.argmax(keepdims=True)
        assert int(new[0]) == int(next_scores(config, weights, tokens).argmax())
        tokens.append(int(new[0]))


def random_weights(vocabulary: int = 50) -> dict[str, np.ndarray]:
    """Weights under the names of the sentence encoder's checkpoint."""
    rng, hidden = np.random.default_rng(0), model.HIDDEN
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (vocabulary, hidden),
        "embeddings.position_embeddings.weight": (64, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
    }
    norms = ["embeddings"]
    for layer in range(model.LAYERS):
        name = f"encoder.layer.{layer}"
        parts = [*(f"attention.self.{part}" for part in ("query", "key", "value")), "attention.output.dense"]
        shapes |= {f"{name}.{part}.weight": (hidden, hidden) for part in parts}
        shapes |= {f"{name}.intermediate.dense.weight": (1536, hidden), f"{name}.output.dense.weight": (hidden, 1536)}
        norms += [f"{name}.attention.output", f"{name}.output"]
    shapes |= {name.removesuffix("weight") + "bias": shape[:1] for name, shape in shapes.items() if "encoder" in name}
    shapes |= {f"{name}.LayerNorm.{part}": (hidden,) for name in norms for part in ("weight", "bias")}
    return {name: rng.normal(0, 0.05, shape).astype("float32") for name, shape in shapes.items()}


def test_the_sentence_encoder_is_equal_to_torch_for_every_batch_and_length() -> None:
    weights = random_weights()
    exe, net = weft.compile(model.sentence_encoder(weights)), compare.Encoder(weights).eval()
    rng = np.random.default_rng(1)
    for batch, length in ((1, 1), (3, 7), (2, 33)):
        ids, mask = compare.sample(rng, batch, length)
        ids %= 50
        with torch.no_grad():
            wanted = net(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
        np.testing.assert_allclose(exe["encode"](ids, mask), wanted, atol=1e-5)
