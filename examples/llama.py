"""A decoder of the shape of Llama, written as decorated functions: rotary positions, grouped heads, a cache, SwiGLU.

    python examples/llama.py                  makes a small checkpoint with random weights, and decodes from it
    python examples/llama.py checkpoint.safetensors

The checkpoint has Llama's own names, so that it loads elsewhere too. One function serves the prompt and every token
after it: the number of new tokens and the length of the cache are symbols, and it is compiled once.
Source: Touvron et al., LLaMA, 2023; Su et al., RoFormer, 2021.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import weft
from weft.script import relax as R


@dataclass(frozen=True)
class Config:
    """The sizes of a model."""

    vocabulary: int = 512
    hidden: int = 128
    wide: int = 352
    layers: int = 4
    heads: int = 8
    groups: int = 2  # heads of keys and values
    base: float = 10000.0
    epsilon: float = 1e-5

    @property
    def size(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads


def random_checkpoint(config: Config, path: Path, seed: int = 0) -> None:
    """Write a checkpoint of random weights under Llama's names."""
    rng, c = np.random.default_rng(seed), config
    shapes = {"model.embed_tokens.weight": (c.vocabulary, c.hidden), "lm_head.weight": (c.vocabulary, c.hidden)}
    for layer in range(c.layers):
        name = f"model.layers.{layer}"
        shapes |= {
            f"{name}.self_attn.q_proj.weight": (c.hidden, c.hidden),
            f"{name}.self_attn.o_proj.weight": (c.hidden, c.hidden),
            f"{name}.self_attn.k_proj.weight": (c.groups * c.size, c.hidden),
            f"{name}.self_attn.v_proj.weight": (c.groups * c.size, c.hidden),
            f"{name}.mlp.gate_proj.weight": (c.wide, c.hidden),
            f"{name}.mlp.up_proj.weight": (c.wide, c.hidden),
            f"{name}.mlp.down_proj.weight": (c.hidden, c.wide),
        }
    arrays = {name: rng.normal(0, shape[-1] ** -0.5, shape).astype("float32") for name, shape in shapes.items()}
    kinds = ("input_layernorm", "post_attention_layernorm")
    norms = [f"model.layers.{layer}.{kind}.weight" for layer in range(c.layers) for kind in kinds]
    arrays |= {name: rng.normal(1, 0.1, c.hidden).astype("float32") for name in [*norms, "model.norm.weight"]}
    weft.frontend.safetensors.save(path, arrays)


def decoder(config: Config, weights: Mapping[str, np.ndarray]) -> weft.Function:
    """(new tokens, keys, values) -> (the scores of the next token, keys, values): caches (layers, t, groups, size)."""
    c = config
    frequencies = (c.base ** (-np.arange(0, c.size, 2) / c.size)).astype("float32")

    def dense(x, name):
        return R.matmul(x, R.const(weights[f"{name}.weight"].T))

    def norm(x, name):
        return R.nn.rms_norm(x, R.const(weights[f"{name}.weight"]), epsilon=c.epsilon)

    @R.function
    def step(
        tokens: R.Tensor(("new",), "int64"),
        keys: R.Tensor((c.layers, "past", c.groups, c.size), "float32"),
        values: R.Tensor((c.layers, "past", c.groups, c.size), "float32"),
    ):
        places = R.astype(R.arange(past, past + new), "float32")
        angles = R.expand_dims(places, [1]) * R.const(frequencies)
        cos, sin = R.expand_dims(R.cos(angles), [1]), R.expand_dims(R.sin(angles), [1])
        x = R.take(R.const(weights["model.embed_tokens.weight"]), tokens, axis=0)
        all_keys, all_values = (), ()
        for layer in range(c.layers):
            name = f"model.layers.{layer}"
            y = norm(x, f"{name}.input_layernorm")
            q = R.reshape(dense(y, f"{name}.self_attn.q_proj"), (new, c.heads, c.size))
            k = R.reshape(dense(y, f"{name}.self_attn.k_proj"), (new, c.groups, c.size))
            v = R.reshape(dense(y, f"{name}.self_attn.v_proj"), (new, c.groups, c.size))
            q, k = R.nn.rotary_embedding(q, cos, sin), R.nn.rotary_embedding(k, cos, sin)
            k, v = R.concat((keys[layer], k), axis=0), R.concat((values[layer], v), axis=0)
            all_keys, all_values = (*all_keys, k), (*all_values, v)
            q, k, v = R.expand_dims(q, [0]), R.expand_dims(k, [0]), R.expand_dims(v, [0])
            heads = R.nn.attention(q, k, v, causal_mask="BottomRight")
            x = x + dense(R.reshape(heads, (new, c.hidden)), f"{name}.self_attn.o_proj")
            y = norm(x, f"{name}.post_attention_layernorm")
            gate = R.nn.silu(dense(y, f"{name}.mlp.gate_proj")) * dense(y, f"{name}.mlp.up_proj")
            x = x + dense(gate, f"{name}.mlp.down_proj")
        last = norm(x, "model.norm")[new - 1]
        return dense(last, "lm_head"), R.stack(all_keys), R.stack(all_values)

    return step


def generate(exe: weft.Executable, config: Config, prompt: Sequence[int], count: int) -> Iterator[int]:
    """The tokens after a prompt, each the likeliest one."""
    keys = values = np.zeros((config.layers, 0, config.groups, config.size), "float32")
    tokens = np.array(prompt, "int64")
    for _ in range(count):
        scores, keys, values = exe["step"](tokens, keys, values)
        tokens = scores.argmax(keepdims=True)
        yield int(tokens[0])


def main() -> int:
    config, prompt = Config(), [1, 17, 300, 42]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1] if len(sys.argv) > 1 else folder + "/llama.safetensors")
        if not path.exists():
            random_checkpoint(config, path)
        start = time.perf_counter()
        exe = weft.compile(decoder(config, weft.frontend.safetensors.load(path)))
        print(f"compiled in {time.perf_counter() - start:.2f} s, for every prompt and length")
        start = time.perf_counter()
        tokens = list(generate(exe, config, prompt, 64))
        print(f"{len(tokens)} tokens, {1e3 * (time.perf_counter() - start) / len(tokens):.2f} ms each: {tokens}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
