"""Quantize the model of examples/digits.py to int8, and compare: accuracy, sizes, and the results on every executor.

    python examples/quantize_digits.py

The model runs over 200 training images to see which values occur; the accuracy is that on the test images, before and
after. The library call of the model and its argmax stay as they are: everything before them is integers, also layers
that are too small to gain from it.
Exit status: 0 when the accuracy falls by less than 0.005 and the integers are the interpreter's; else 1.
"""

from __future__ import annotations

import numpy as np
from digits import Digits, load_weights
from train_digits import load_split

import weft

LARGEST_LOSS = 0.005
SCHEMES = ("int8", "int8-symmetric", "int8-tensor", "int8-percentile99.9", "int8-entropy")


def pixels(scaled: np.ndarray) -> np.ndarray:
    """The images as they are in the file, 0 to 16."""
    return np.rint(scaled[:, 0] * 16).astype(np.uint8)


def accuracy(model: weft.IRModule, images: np.ndarray, labels: np.ndarray) -> float:
    """The share of images that the compiled model reads as what they are."""
    return float((weft.compile(model)["main"](images)[0] == labels).mean())


def main() -> int:
    seen, _, scaled, labels = load_split()
    images = pixels(scaled)
    data = [(batch,) for batch in pixels(seen[:200]).reshape(4, 50, 8, 8)]
    model = weft.transform.BindParams("main", load_weights())(Digits)
    before = accuracy(model, images, labels)
    print(f"float32: accuracy {before:.4f} on {len(images)} images")
    worst = before
    for scheme in SCHEMES:
        quantized = weft.quantize(model, data, scheme, force="*")
        after = accuracy(quantized, images, labels)
        print(f"{scheme}: accuracy {after:.4f}")
        worst = min(worst, after)
    quantized = weft.quantize(model, data, force="*")
    print(quantized.quantization_report())
    compiled, exact = weft.compile(quantized)["main"](images[:20]), weft.interpret(quantized)["main"](images[:20])
    same = np.array_equal(compiled[0], exact[0]) and np.allclose(compiled[1], exact[1], rtol=1e-5)
    print(f"compiled and interpreted the same: {'yes' if same else 'NO'}")
    return 0 if same and before - worst < LARGEST_LOSS else 1


if __name__ == "__main__":
    raise SystemExit(main())
