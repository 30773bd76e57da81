"""Whether compiling costs more than in another source tree: fresh processes of both, in turns, by processor time.

    git worktree add /tmp/before HASH
    python benchmarks/compile_trees.py /tmp/before [--only TEXT] [--rounds 7] [--noise]

Each round runs every case once in each tree, in a process of its own with an empty cache; the order of the two changes
from round to round. A figure is the least of its rounds, in processor time of all threads of the process, since others
on the machine only add. `process` is everything from the start of Python, `import` is `import weft`, `compile` is the
first `weft.compile` of that process (with what it imports), `second` that of the same text with other sizes, which
finds everything imported and nothing kept. A ratio above 1 says that this tree is slower. With --noise, both sides are
this tree: what the ratios say then is the noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEAD = "from weft.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Case:\n    @R.function\n"
PARTS = ("process", "import", "compile", "second")


def function_text(parameters: list[str], lines: list[str]) -> str:
    """A module of one function that returns the last name of its lines."""
    last = lines[-1].split("=")[0].strip()
    body = "\n".join(f"        {line}" for line in (*lines, f"return {last}"))
    return f"{HEAD}    def main({', '.join(parameters)}):\n{body}\n"


def tensors(*shapes: str) -> list[str]:
    """Parameters x0, x1, ... of these shapes."""
    return [f'x{i}: R.Tensor(({shape}), "float32")' for i, shape in enumerate(shapes)]


def any_sizes(extra: int) -> str:
    """A product whose three sizes are symbols."""
    lines = ["m, k, n = T.int64(), T.int64(), T.int64()"]
    return function_text(
        tensors('"m", "k"', '"k", "n"'), [*lines, "y = R.matmul(x0, x1)", *["y = R.nn.relu(y)"] * extra]
    )


def layers(depth: int, width: int) -> str:
    """Equal layers over a sequence of any length: product, bias, gelu, residual, norm."""
    lines, shapes = ["n = T.int64()"], ['2, "n", ' + str(width)]
    value = "x0"
    for layer in range(depth):
        first = len(shapes)
        shapes += [f"{width}, {4 * width}", f"{4 * width},", f"{4 * width}, {width}", f"{width},", f"{width},"]
        w1, b1, w2, scale, shift = (f"x{first + i}" for i in range(5))
        lines += [
            f"a{layer} = R.nn.gelu(R.add(R.matmul({value}, {w1}), {b1}))",
            f"b{layer} = R.add({value}, R.matmul(a{layer}, {w2}))",
            f"y{layer} = R.nn.layer_norm(b{layer}, {scale}, {shift}, axes=-1)",
        ]
        value = f"y{layer}"
    return function_text(tensors(*shapes), lines)


def residual_blocks(depth: int, channels: int, size: int) -> str:
    """Equal residual blocks: two convolutions, relu, and their sum with what came in."""
    lines, shapes, value = [], [f"1, {channels}, {size}, {size}"], "x0"
    for block in range(depth):
        first = len(shapes)
        shapes += [f"{channels}, {channels}, 3, 3"] * 2
        lines += [
            f"a{block} = R.nn.relu(R.nn.conv2d({value}, x{first}, padding=1))",
            f"y{block} = R.nn.relu(R.add({value}, R.nn.conv2d(a{block}, x{first + 1}, padding=1)))",
        ]
        value = f"y{block}"
    return function_text(tensors(*shapes), lines)


CASES: dict[str, tuple[str, ...]] = {
    "one addition": tuple(function_text(tensors(f"{n},", f"{n},"), ["y = R.add(x0, x1)"]) for n in (1024, 1056)),
    "chain": tuple(function_text(tensors(f"{n}, 1024"), ["y = R.abs(R.tanh(R.exp(x0)))"]) for n in (1024, 1056)),
    "softmax": tuple(function_text(tensors(f"{n}, 1024"), ["y = R.nn.softmax(x0, axis=-1)"]) for n in (4096, 4128)),
    "matmul": tuple(function_text(tensors(f"{n}, 512", "512, 512"), ["y = R.matmul(x0, x1)"]) for n in (512, 544)),
    "matmul of any sizes": (any_sizes(0), any_sizes(1)),
    "convolution": tuple(
        function_text(tensors(f"1, 128, {n}, {n}", "128, 128, 3, 3"), ["y = R.nn.conv2d(x0, x1, padding=1)"])
        for n in (28, 30)
    ),
    "6 residual blocks": (residual_blocks(6, 64, 56), residual_blocks(6, 128, 28)),
    "4 layers, any length": (layers(4, 256), layers(4, 320)),
}
"""Name -> two texts that differ in their sizes; written so that versions of some time ago read them."""


def report_on_process(name: str) -> None:
    """Compile in this process, and print what each part of it took."""
    at_start = time.process_time()
    import weft

    imported = time.process_time()
    first, second = (weft.parse(text) for text in CASES[name])
    parsed = time.process_time()
    weft.compile(first)
    compiled = time.process_time()
    weft.compile(second)
    end = time.process_time()
    whole = compiled
    print(json.dumps(dict(zip(PARTS, (whole, imported - at_start, compiled - parsed, end - compiled), strict=True))))


def in_tree(tree: Path, name: str) -> dict[str, float]:
    """What a new process measures with the sources of a tree, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WEFT_CACHE_DIR": folder, "PYTHONPATH": str(tree / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, str(Path(__file__).resolve()), ".", "--process", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{tree}: {name}\n{done.stderr[-2000:]}")
    return {part: 1e3 * seconds for part, seconds in json.loads(done.stdout).items()}


def main() -> None:
    """Measure both trees and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("before", type=Path, help="the folder of the other source tree")
    parser.add_argument("--only", default="", help="cases whose name contains the text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--noise", action="store_true", help="measure this tree beside itself")
    parser.add_argument("--process", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        report_on_process(arguments.process)
        return
    now = HERE.parent
    trees = [now if arguments.noise else arguments.before.resolve(), now]
    names = [name for name in CASES if arguments.only in name]
    least: dict[tuple[str, int, str], float] = {}
    for round_number in range(arguments.rounds + 1):  # the first writes the compiled modules of Python: not counted
        for name in names:
            for side in (0, 1) if round_number % 2 else (1, 0):
                found = in_tree(trees[side], name)
                for part, spent in found.items() if round_number else ():
                    key = (name, side, part)
                    least[key] = min(least.get(key, spent), spent)
    print("| case | " + " | ".join(f"{part} before | now | ratio" for part in PARTS) + " |")
    print("|---" * (1 + 3 * len(PARTS)) + "|")
    for name in names:
        cells = []
        for part in PARTS:
            before, after = least[name, 0, part], least[name, 1, part]
            cells += [f"{before:.1f}", f"{after:.1f}", f"{after / before:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
