"""Train the weights that examples/digits.py runs: a small convolutional network, in NumPy alone.

    python examples/train_digits.py

reads examples/data/digits.npz, trains for a fixed number of epochs from a fixed seed, prints the accuracy on the
test images and writes examples/data/digits_weights.npz. Takes well under a minute on one core.

The network, for images x of shape (n, 1, 8, 8) with values 0..1:

    conv2d 3x3, 1 -> 16 channels, padding 1; relu; max_pool2d 2x2; flatten
    linear 256 -> 64; relu; linear 64 -> 10; softmax
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

DATA = Path(__file__).resolve().parent / "data"
SEED = 7
TRAIN_COUNT = 1297
EPOCHS = 100
BATCH = 32
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-2

Weights = dict[str, np.ndarray]


def load_split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, then test images and labels; images are (n, 1, 8, 8) float32 in 0..1."""
    with np.load(DATA / "digits.npz") as file:
        images, labels = file["images"], file["labels"]
    order = np.random.RandomState(SEED).permutation(len(images))  # RandomState's stream is frozen for all time
    scaled = (images[order, None].astype(np.float32) / np.float32(16)).copy()
    ordered = labels[order].astype(np.int64)
    return scaled[:TRAIN_COUNT], ordered[:TRAIN_COUNT], scaled[TRAIN_COUNT:], ordered[TRAIN_COUNT:]


def initial_weights(random: np.random.RandomState) -> Weights:
    """He initialisation; biases start at zero. Linear weights are (inputs, outputs)."""

    def he(shape: tuple[int, ...], inputs: int) -> np.ndarray:
        return (random.standard_normal(shape) * np.sqrt(2.0 / inputs)).astype(np.float32)

    return {
        "conv_weight": he((16, 1, 3, 3), 9),
        "conv_bias": np.zeros(16, np.float32),
        "hidden_weight": he((256, 64), 256),
        "hidden_bias": np.zeros(64, np.float32),
        "out_weight": he((64, 10), 64),
        "out_bias": np.zeros(10, np.float32),
    }


def windows(x: np.ndarray) -> np.ndarray:
    """The 3x3 neighbourhood of every pixel of one-channel images: (n, 64, 9)."""
    padded = np.pad(x[:, 0], ((0, 0), (1, 1), (1, 1)))
    return sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(len(x), 64, 9)


def forward(x: np.ndarray, w: Weights) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Logits of a batch, and the intermediate values that the gradient needs."""
    patches = windows(x)
    conv = patches @ w["conv_weight"].reshape(16, 9).T + w["conv_bias"]  # (n, 64, 16)
    cells = np.maximum(conv, 0).reshape(-1, 4, 2, 4, 2, 16)  # rows and columns in pairs
    pooled = cells.max(axis=(2, 4))  # (n, 4, 4, 16)
    flat = pooled.transpose(0, 3, 1, 2).reshape(len(x), 256)  # channels first, as conv2d's NCHW layout has it
    hidden = np.maximum(flat @ w["hidden_weight"] + w["hidden_bias"], 0)
    logits = hidden @ w["out_weight"] + w["out_bias"]
    return logits, {"patches": patches, "conv": conv, "cells": cells, "pooled": pooled, "flat": flat, "hidden": hidden}


def gradients(x: np.ndarray, labels: np.ndarray, w: Weights) -> Weights:
    """Gradient of the mean cross entropy with respect to every weight."""
    logits, kept = forward(x, w)
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    delta = exponents / exponents.sum(axis=1, keepdims=True)
    delta[np.arange(len(x)), labels] -= 1
    delta /= len(x)

    d_hidden = (delta @ w["out_weight"].T) * (kept["hidden"] > 0)
    d_flat = d_hidden @ w["hidden_weight"].T
    d_pooled = d_flat.reshape(-1, 16, 4, 4).transpose(0, 2, 3, 1)
    winners = kept["cells"] == kept["pooled"][:, :, None, :, None, :]
    d_cells = winners * d_pooled[:, :, None, :, None, :]
    d_conv = d_cells.reshape(-1, 64, 16) * (kept["conv"] > 0)
    return {
        "conv_weight": np.tensordot(d_conv, kept["patches"], axes=((0, 1), (0, 1))).reshape(16, 1, 3, 3),
        "conv_bias": d_conv.sum(axis=(0, 1)),
        "hidden_weight": kept["flat"].T @ d_hidden,
        "hidden_bias": d_hidden.sum(axis=0),
        "out_weight": kept["hidden"].T @ delta,
        "out_bias": delta.sum(axis=0),
    }


def shifted(images: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """The images, each moved by at most one pixel each way, so that a small set is not learnt by heart."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    crops = sliding_window_view(padded, (8, 8), axis=(2, 3))  # (n, 1, 3, 3, 8, 8)
    rows, columns = random.choice(3, size=(2, len(images)), p=(0.2, 0.6, 0.2))
    return crops[np.arange(len(images)), :, rows, columns]


def train(images: np.ndarray, labels: np.ndarray) -> Weights:
    """Adam with weight decay and a cosine learning rate, over a fixed number of epochs."""
    random = np.random.RandomState(SEED)
    weights = initial_weights(random)
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    step, total = 0, EPOCHS * -(-len(images) // BATCH)
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for start in range(0, len(images), BATCH):
            chosen = order[start : start + BATCH]
            step += 1
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / total))
            for name, gradient in gradients(shifted(images[chosen], random), labels[chosen], weights).items():
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                update = (first[name] / (1 - 0.9**step)) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                weights[name] -= (rate * (update + WEIGHT_DECAY * weights[name])).astype(np.float32)
    return weights


def accuracy(images: np.ndarray, labels: np.ndarray, weights: Weights) -> float:
    """Share of the images whose largest logit is the label's."""
    return float((forward(images, weights)[0].argmax(axis=1) == labels).mean())


def main() -> int:
    train_images, train_labels, test_images, test_labels = load_split()
    weights = train(train_images, train_labels)
    print(f"training accuracy {accuracy(train_images, train_labels, weights):.4f}")
    test_accuracy = accuracy(test_images, test_labels, weights)
    print(f"test accuracy     {test_accuracy:.4f} on {len(test_images)} images")
    arrays: dict[str, Any] = dict(weights)
    np.savez_compressed(DATA / "digits_weights.npz", **arrays)
    return 0 if test_accuracy > 0.97 else 1


if __name__ == "__main__":
    raise SystemExit(main())
