"""Classify real handwritten digits with a model written as decorated Python and compiled to machine code.

    python examples/digits.py

The model holds the three kinds of call that a module can: graph operators (`R.nn.conv2d`, `R.matmul`, ...), an
operator written here as a loop nest (`scale`, used by `R.call_tir`), and a library call (`digits.softmax`, a NumPy
function, used by `R.call_dps_packed`). The batch size is the symbol `n`, so one compilation serves every batch.

The images are the UCI optical digits and the weights come from examples/train_digits.py; see examples/data/README.md.
Exit status: 0 when the module survives its own text, agrees with NumPy and classifies above 0.96; else 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from train_digits import DATA, Weights, forward, load_split

import weft
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

REQUIRED_ACCURACY = 0.96
BATCH_SIZES = (1, 7, 64, 500)
REPEATS = 5


@weft.register_func("digits.softmax")
def softmax(logits: np.ndarray, out: np.ndarray) -> None:
    """The library call: row-wise softmax, written into the array that the compiled code provides."""
    np.exp(logits - logits.max(axis=1, keepdims=True), out=out)
    out /= out.sum(axis=1, keepdims=True)


@I.ir_module
class Digits:
    @T.prim_func
    def scale(
        pixels: T.Buffer(("n", 8, 8), "uint8"),
        scaled: T.Buffer(("n", 1, 8, 8), "float32"),
    ):
        for i, y, x in T.grid(n, 8, 8):
            with T.block("scale"):
                vi, vy, vx = T.axis.remap("SSS", [i, y, x])
                scaled[vi, 0, vy, vx] = T.Cast("float32", pixels[vi, vy, vx]) * T.float32(0.0625)

    @R.function
    def main(
        images: R.Tensor(("n", 8, 8), "uint8"),
        conv_weight: R.Tensor((16, 1, 3, 3), "float32"),
        conv_bias: R.Tensor((16,), "float32"),
        hidden_weight: R.Tensor((256, 64), "float32"),
        hidden_bias: R.Tensor((64,), "float32"),
        out_weight: R.Tensor((64, 10), "float32"),
        out_bias: R.Tensor((10,), "float32"),
    ) -> R.Tuple(R.Tensor(("n",), "int64"), R.Tensor(("n", 10), "float32")):
        with R.dataflow():
            x = R.call_tir(Digits.scale, (images,), out_ty=R.Tensor((n, 1, 8, 8), "float32"))
            conv = R.nn.conv2d(x, conv_weight, padding=1) + R.reshape(conv_bias, (1, 16, 1, 1))
            pooled = R.nn.max_pool2d(R.nn.relu(conv), pool_size=(2, 2), strides=(2, 2))
            flat = R.reshape(pooled, (n, 256))
            hidden = R.nn.relu(R.matmul(flat, hidden_weight) + hidden_bias)
            logits = R.matmul(hidden, out_weight) + out_bias
            confidence = R.call_dps_packed("digits.softmax", (logits,), out_ty=R.Tensor((n, 10), "float32"))
            digit = R.argmax(confidence, axis=1)
            R.output(digit, confidence)
        return digit, confidence


def load_weights() -> Weights:
    """The trained arrays, by the names of the parameters of `main`."""
    with np.load(DATA / "digits_weights.npz") as file:
        return dict(file)


@contextmanager
def progress(title: str) -> Iterator[None]:
    """Show that a step is under way, and how long it took: a spinner with rich on a terminal, plain lines without."""
    start = time.perf_counter()
    try:
        from rich.console import Console  # an optional extra: `pip install weft[rich]`
    except ImportError:
        Console = None
    if Console is not None and sys.stdout.isatty():
        with Console().status(title):
            yield
    else:
        print(f"{title} ...", flush=True)
        yield
    print(f"{title}: {time.perf_counter() - start:.2f} s", flush=True)


def classify(exe: weft.Executable, images: np.ndarray, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits and confidences of all images, taken `batch` at a time; the last batch may be smaller."""
    parts = [exe["main"](images[start : start + batch]) for start in range(0, len(images), batch)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def best_time(exe: weft.Executable, images: np.ndarray, batch: int) -> float:
    """Seconds to classify all images, the best of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        classify(exe, images, batch)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    Digits.show()
    survives = weft.structural_equal(weft.parse(Digits.script()), Digits)
    print(f"read back from its own text: {'the same module' if survives else 'A DIFFERENT MODULE'}")

    weights = load_weights()
    _, _, scaled, labels = load_split()
    images = np.rint(scaled[:, 0] * 16).astype(np.uint8)  # the pixels as they are in the file, 0..16

    with progress("compile for every batch size"):
        exe = weft.compile(weft.transform.BindParams("main", weights)(Digits))

    expected = forward(scaled, weights)[0].argmax(axis=1)
    worst, agrees = 1.0, True
    with progress("classify the test set"):
        print(f"{'batch':>6} {'accuracy':>9} {'time per image':>15} {'as NumPy':>9}")
        for batch in BATCH_SIZES:
            digits, confidence = classify(exe, images, batch)
            accuracy = float((digits == labels).mean())
            same = bool((digits == expected).all() and np.allclose(confidence.sum(axis=1), 1, atol=1e-5))
            microseconds = best_time(exe, images, batch) / len(images) * 1e6
            print(f"{batch:>6} {accuracy:>9.4f} {microseconds:>12.1f} us {'yes' if same else 'NO':>9}", flush=True)
            worst, agrees = min(worst, accuracy), agrees and same

    digits, confidence = classify(exe, images[:1], 1)
    print(f"\nthe first test image, read as {digits[0]} with confidence {confidence[0].max():.3f}:")
    print("\n".join("    " + "".join(" .:-=+*#%"[value // 2] * 2 for value in row) for row in images[0]))
    print(f"\naccuracy {worst:.4f} on {len(images)} test images (required: above {REQUIRED_ACCURACY})")
    return 0 if survives and agrees and worst > REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    raise SystemExit(main())
